/*
 * collection_calls.h
 *		How the calls for collections (collection_find() and the others) find
 *		indexes for their conditions.
 */
#ifndef DP_MQL_COLLECTION_CALLS_H
#define DP_MQL_COLLECTION_CALLS_H

#include "nodes/pg_list.h"
#include "nodes/primnodes.h"
#include "utils/reltrigger.h"
#include "utils/relcache.h"

#include "bson/path.h"

/* Parts of a statement on a relation called t */
typedef enum DpCallPart
{
	DP_CALL_SOURCE,     /* what follows FROM */
	DP_CALL_DOC,        /* the document, whole if the call concerns fields that are split off */
	DP_CALL_CONDITIONS, /* of the filter */
	DP_CALL_ORDERING,   /* of the sort specification; NULL without one, or for {} */
	DP_CALL_DOC_COLUMN, /* its name, not quoted */
	DP_CALL_KEY_COLUMN, /* the same, NULL if there is none */

	/*
	 * If an update or a deletion concerns split fields, otherwise NULL: counts the rows that match
	 * and those that it changes, $6 of them at most, and if $14 returns the documents before and
	 * after as _pattern_change() does.  An update that is NULL deletes.
	 */
	DP_CALL_CHANGE,

	/*
	 * Selects the table and the TID of the first row, and a condition that identifies it.  LOCATED
	 * is that condition, with the other two as $9 and $10, if this is none.  Both are NULL if
	 * nothing identifies rows.
	 */
	DP_CALL_LOCATE,
	DP_CALL_LOCATED,

	DP_CALL_INSERTION, /* INSERT of rows s (doc), up to its FROM */
	DP_CALL_NEW_IDS,   /* selects $15 with an _id in each, if rows are remote; or NULL */
	DP_CALL_ID,        /* the _id of a row */
	DP_CALL_PARTS
} DpCallPart;

/* The parameters of these statements */
typedef enum DpCallParam
{
	DP_PARAM_FILTER,     /* $1 */
	DP_PARAM_OPERANDS,   /* $2, a bson_value[]: values from the filter */
	DP_PARAM_SORT,       /* $3 */
	DP_PARAM_PROJECTION, /* $4 */
	DP_PARAM_SKIP,       /* $5 */
	DP_PARAM_TAKE,       /* $6 */
	DP_PARAM_FIELD,      /* $7 */
	DP_PARAM_COLLATION,  /* $8 */
	DP_PARAM_TABLE,      /* $9 */
	DP_PARAM_TID,        /* $10 */
	DP_PARAM_UPDATE,     /* $11 */
	DP_PARAM_FILTERS,    /* $12, array_filters */
	DP_PARAM_TICKET,     /* $13 */
	DP_PARAM_FINDS,      /* $14 */
	DP_PARAM_DOCS,       /* $15, a bson[] */
	DP_CALL_PARAMS
} DpCallParam;

/* What a call makes of its arguments: parts of a statement, and its second parameter */
typedef struct DpCall
{
	/* arguments; NULL without one */
	Oid relid;
	struct varlena *filter;
	struct varlena *sort;
	struct varlena *projection;
	text *field;
	struct varlena *collation;
	struct varlena *update;
	struct varlena *array_filters;

	/* results */
	const char *sql[DP_CALL_PARTS];
	bool is_table;  /* rows can be locked while they are located */
	bool is_remote; /* they are on other servers, which run only immutable functions */
	bool is_single; /* one row at most, by its key, and one statement may try */
	Oid base;       /* of a view whose rows triggers of ours write: their table; else 0 */
	Oid hiding;     /* the table with rows that calls do not see, for dp_make_way_hook; else 0 */
	bool once;      /* they are for these values only */
	Datum *operands;
	const uint8 **origins; /* where in the filter each is a value, if not once */
	int noperands;
} DpCall;

/* Begins with the relation and the filter, which is that argument; raises NULL_VALUE_NOT_ALLOWED */
extern void dp_call_begin(DpCall *call, FunctionCallInfo fcinfo, int filter);

/* Computes the results. */
extern void dp_call_prepare(DpCall *call);

/* The operands as a bson_value[]. */
extern Datum dp_call_operands(const DpCall *call);

/*
 * Facts about a table's documents: expressions with btree indexes, and checks.  They are valid in
 * this memory context, and no longer than the transaction.
 */
typedef struct DpDocFacts DpDocFacts;

/*
 * Looks at the indexes and the checks of a relation, of which attnum is the column with the
 * documents.
 */
extern DpDocFacts *dp_doc_facts(Relation rel, AttrNumber attnum);

/*
 * If a btree index has the expression (doc -> path): the path as the index
 * spells it.  Otherwise NULL; also where documents may have an array at the path
 * or on the way to it, unless arrays is given and set to true.  It is set only
 * if a document with an array on the way has nothing at (doc -> path), and if
 * the index can be searched by the path alone.
 */
extern const char *dp_doc_index(DpDocFacts *facts, const DpPath *path, bool *arrays);

/* Whether a GIN index serves filters on the path. */
extern bool dp_doc_gin(DpDocFacts *facts, const DpPath *path);

/* Whether no document can have a value of the type (its name) at such a path. */
extern bool dp_doc_never(DpDocFacts *facts, const DpPath *path, const char *type);

/*
 * Whether an expression calls a function of the extension, by name or as an
 * operator, with a column of the type bson and a constant, and which.
 */
extern bool dp_doc_is_call(Node *node, const char *function, Oid argtype, Const **arg);

/* True for the trigger that maintains the key of a collection. */
extern bool dp_collection_is_trigger(const Trigger *trigger);

/* The column that is the key of a collection, 0 if the relation is not one. */
extern AttrNumber dp_collection_key(Relation rel);

/* The columns that the trigger of a collection names. Returns false for any other trigger. */
extern bool
dp_collection_columns(const Trigger *trigger, TupleDesc desc, AttrNumber *key, AttrNumber *doc);

/* SQL: whether that column of a table t is among the values, an expression of type bson_value[]. */
extern char *dp_collection_key_in(Relation rel, AttrNumber key, const char *values);

/* How the rows of a relation, called t, are found by values at a path; all are pieces of SQL. */
typedef struct DpDocLookup
{
	char *source;  /* "schema"."relation" AS t */
	char *doc;     /* t."column" with the documents */
	char *key;     /* the row's key as a bson_value; NULL if it has none */
	char *expr;    /* the column or expression with an index for the path; NULL if there is none */
	Oid type;      /* its type: bson_value, unless it is the key */
	bool is_key;   /* it is the key: unique, and neither null nor an array */
	bool arrays;   /* it may be an array, or NULL for an array on the way if the path is ... */
	bool deep;     /* ... of several steps: for filters these rows count, too */
	bool filters;  /* a GIN index serves filters on the path */
	bool is_table; /* rows have a tableoid and a ctid */
	bool is_split; /* patterns have split the documents */
} DpDocLookup;

/* Conditions on expr: that it is a value, or among values (SQL: a bson_value, a bson_value[]) */
extern char *dp_doc_lookup_is(const DpDocLookup *lookup, const char *value);
extern char *dp_doc_lookup_in(const DpDocLookup *lookup, const char *values);

/* Raises what collection_find() does for relations without documents. */
extern void dp_collection_lookup(Oid relid, const DpPath *path, DpDocLookup *lookup);

/* How a query reads documents, all as pieces of SQL in which values are literals. */
typedef struct DpDocSource
{
	char *from;       /* the relation, called alias, and what else makes up its whole documents */
	char *doc;        /* the document */
	bool computed;    /* it is more than a column */
	char *conditions; /* of the filter; NULL if there are none */
	char *order;      /* of the sort specification; NULL if there is none */
} DpDocSource;

/*
 * How the documents of a relation that match the filter are read in the order of the sort
 * specification; both may be NULL.  fields: names (char *) of those that are needed; NIL: all.
 * Raises what collection_find() does.
 */
extern void dp_collection_source(Oid relid, const DpValue *filter, const DpValue *sort,
								 const List *fields, DpDocSource *source);

/* How a statement writes documents to a relation; pieces of SQL */
typedef struct DpDocTarget
{
	char *name;      /* "schema"."relation" */
	const char *doc; /* the column with the documents */
	const char *key; /* that with their keys; NULL if there is none */
	char *id;        /* its value for a row s (doc), or NULL */
	char *insert;    /* INSERT INTO name AS t (..) SELECT .. of rows s (doc), up to its FROM */
	char *same;      /* that a row s (doc) has the key of a row t */
	char *change;    /* of split documents: DpSplit's call that changes a row t, else NULL */
	Oid hiding;      /* the relation, if calls do not see all of its rows; else 0 */
} DpDocTarget;

/* Refuses what is no table. */
extern void dp_collection_target(Oid relid, DpDocTarget *target);

/* The path of a field as filters spell it: dots separate, nothing is quoted. */
extern DpPath *dp_path_of_field(const char *name);

#endif /* DP_MQL_COLLECTION_CALLS_H */
