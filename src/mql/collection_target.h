/*
 * collection_target.h
 *		A relation with documents, for the files that turn calls and pipelines into SQL.
 */
#ifndef DP_MQL_COLLECTION_TARGET_H
#define DP_MQL_COLLECTION_TARGET_H

#include "mql/collection_calls.h"
#include "mql/collection_split.h"

typedef struct DpTarget
{
	Relation rel;
	bool is_table;  /* rows have a tableoid and a ctid, */
	bool is_remote; /* unless they are on other servers */

	/* by dp_target_find(): */
	AttrNumber doc;
	AttrNumber key;     /* holds the document's _id and is unique; or 0 */
	List *row;          /* columns (ints) that identify a row of a view, or a remote one; or NIL */
	DpDocFacts *facts;  /* NULL until they are needed */
	DpSplit *split;     /* NULL unless patterns have split the documents */
	char *seen;         /* condition for the rows that calls see; NULL: all */
	Oid hiding;         /* the table with rows that they do not see, also of a view; or 0 */
	char *name;         /* "schema"."relation" */
	const char *schema; /* of the extension, quoted */
} DpTarget;

/* Opens the relation; raises UNDEFINED_TABLE. */
extern void dp_target_open(DpTarget *target, Oid relid);

/*
 * Finds the columns.  Raises WRONG_OBJECT_TYPE for what is no table or view, UNDEFINED_COLUMN and
 * AMBIGUOUS_COLUMN unless there is one column of type bson (a collection takes its first).
 */
extern void dp_target_find(DpTarget *target);

/* The name of a column; the second quotes it. */
extern const char *dp_target_attribute(const DpTarget *target, AttrNumber attnum);
extern const char *dp_target_column(const DpTarget *target, AttrNumber attnum);

extern Oid dp_target_key_type(const DpTarget *target);

/* Whether the key column has the order of the documents' _id. */
extern bool dp_target_key_sorts(const DpTarget *target);

/*
 * Whether one row at most can have a key, and no trigger of the user's on the event
 * (TRIGGER_TYPE_..) could tell that a statement for it is made twice.
 */
extern bool dp_target_is_single(const DpTarget *target, int event);

/* SQL: the value at the path, if dp_doc_index() knows an index; otherwise NULL. */
extern char *dp_target_indexed(DpTarget *target, const DpPath *path, bool *arrays);

/* SQL: a bson_value as a key of that type, NULL for one that is none. */
extern char *dp_key_operand(Oid type, const char *value);

/* SQL: the _id of a row as a bson_value. */
extern char *dp_target_id(const DpTarget *target);

/* SQL: an INSERT of rows s (doc), up to its FROM. */
extern char *dp_target_insertion(const DpTarget *target);

/* SQL that selects the documents of the array $15, each with an _id. */
extern char *dp_target_new_ids(const DpTarget *target);

/* SQL that selects, as a text, the condition that identifies a row by its identifying columns. */
extern char *dp_target_row_condition(const DpTarget *target);

/*
 * The table of a view whose rows must be locked before they are written: a trigger of the extension
 * executes its writes, based on what the statement has read.  InvalidOid for other relations.
 */
extern Oid dp_target_base(const DpTarget *target);

/* Whether the path is _id. */
extern bool dp_path_is_id(const DpPath *path);

#endif /* DP_MQL_COLLECTION_TARGET_H */
