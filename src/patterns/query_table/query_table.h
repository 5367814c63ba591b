/*
 * query_table.h
 *		Query tables: tables of real columns, one for each query, whose rows
 *		are projections of the rows of a source.
 *
 * Words:
 *
 *		source		the table that carries the declaration
 *		table		the query table: its columns are those of the partition, of
 *					the clustering, the other fields, and then the source's key
 *		primary key	partition, clustering, and the source's key unless the former
 *					are declared unique
 *		expiry		the column expires_at, if a field of the source decides when rows
 *					expire; expired rows are not read, and stay until they are purged
 *		image		the row of the table for a row of the source, none if it lacks
 *					a value of partition or clustering
 *
 * A row of the table only depends on one row of the source.  The transaction that
 * has written, and so locked, the latter may write the former: there are no other
 * locks.  With a limit it also depends on other rows of its partition; then the
 * partition is locked as a group (derive.h) and read again.
 *
 * query_table.c reads declarations and computes images, follow.c
 * processes statements, write.c writes rows and partitions, calls.c
 * has the SQL functions.
 */
#ifndef DP_PATTERNS_QUERY_TABLE_QUERY_TABLE_H
#define DP_PATTERNS_QUERY_TABLE_QUERY_TABLE_H

#include "executor/tuptable.h"

#include "bson/path.h"
#include "kit/declaration.h"
#include "kit/derive/derive.h"
#include "kit/rows/write.h"
#include "mql/expression.h"

typedef struct DpQueryColumn
{
	char *name;   /* as it was declared */
	DpPath *path; /* or NULL: */
	DpExpr *expr;
	bool expiry; /* its value is when the row expires */
	Oid type;
	int32 typmod;
	bool byval;
	int16 len;
	bool descending;   /* of the clustering */
	AttrNumber attnum; /* in the table */
	Oid collation;     /* of primary keys: */
	FmgrInfo cmp;
} DpQueryColumn;

typedef struct DpQueryTable
{
	DpDecl *decl;
	Oid source;
	Oid table; /* InvalidOid: it is missing */
	int npartition;
	int nprimary; /* partition and clustering */
	int ncolumns;
	DpQueryColumn *columns;
	int nkeys;           /* of the source's primary key */
	DpQueryColumn *keys; /* without path and expr */
	bool is_unique;
	int limit;                                    /* 0: none */
	DpPath *ttl;                                  /* or NULL; the last column is the expiry */
	DpValue partition, clustering, fields, types; /* as declared */
	Oid bson_value;
	int natts;        /* of the table, dropped columns included */
	DpLookup *lookup; /* of primary keys */
	DpLookup *source_lookup;
	DpDerivation *group; /* for locks of partitions */

	/* statements */
	char plan_top;
	char plan_partition;
	char plan_last;
	char plan_purge;
	char plan_read[INDEX_MAX_KEYS + 1];
} DpQueryTable;

/* A row of the table, all columns of it in the table's order, in the current context. */
typedef struct DpQueryImage
{
	Datum *values;
	bool *nulls;
	uint64 abbreviated; /* first value of the key, see dp_query_abbreviate() */
} DpQueryImage;

/* query_table.c */

/*
 * Returns the declaration, cached. Raises INVALID_PARAMETER_VALUE and
 * OBJECT_NOT_IN_PREREQUISITE_STATE.
 */
extern DpQueryTable *dp_query_table(DpDecl *decl);

/* Does the same; raises OBJECT_NOT_IN_PREREQUISITE_STATE if the table is missing. */
extern DpQueryTable *dp_query_table_present(DpDecl *decl);

/* The image of a document whose row has that key (of nkeys values); false if it has none. */
extern bool
dp_query_image(DpQueryTable *q, struct varlena *doc, const Datum *key, DpQueryImage *image);

/* Whether the row of an image has expired by now */
extern bool dp_query_expired(const DpQueryTable *q, const DpQueryImage *image);

/* Copies the primary key of an image into an array of INDEX_MAX_KEYS. */
extern void dp_query_key(const DpQueryTable *q, const DpQueryImage *image, Datum *key);

/*
 * Compares the primary keys of two images; for qsort_arg() of DpQueryImage. The second prepares an
 * image that dp_query_image() did not create.
 */
extern int dp_query_compare(const void *a, const void *b, void *q);
extern void dp_query_abbreviate(const DpQueryTable *q, DpQueryImage *image);

/* The hash of the partition of an image. */
extern uint64 dp_query_partition_hash(const DpQueryTable *q, const DpQueryImage *image);

/* The key of a row of the source, from its slot; nulls raise NOT_NULL_VIOLATION. */
extern void dp_query_source_key(const DpQueryTable *q, TupleTableSlot *slot, Datum *key);

/* write.c */

/* Opens the table for writing. */
extern DpWriter *dp_query_writer(const DpQueryTable *q);

/* Deletes the row of the image's primary key and source key if it exists. */
extern bool dp_query_remove(const DpQueryTable *q, DpWriter *w, const DpQueryImage *image);

/*
 * Replaces the row of the image's primary key and source key by the image. Returns whether
 * anything was written.
 */
extern bool dp_query_put(const DpQueryTable *q, DpWriter *w, const DpQueryImage *image);

/*
 * Puts the image of a row of the source as it is now.  Locks that row first (FOR SHARE), so no
 * other transaction does the same until this one ends.  Returns whether anything was written.
 */
extern bool dp_query_repair_row(DpQueryTable *q, DpWriter *w, const Datum *key);

/*
 * The image of a row of the source as it is now, which this transaction has written; false if there
 * is none.
 */
extern bool dp_query_source_image(DpQueryTable *q, const Datum *key, DpQueryImage *image);

/*
 * Recomputes the partition of an image and locks it until the transaction ends. Returns the number
 * of rows written.
 */
extern int64 dp_query_partition(DpQueryTable *q, DpWriter *w, const DpQueryImage *image);

/*
 * Does the same if one row was inserted into the source and nothing else has changed: that is its
 * image.
 */
extern int64 dp_query_partition_add(DpQueryTable *q, DpWriter *w, const DpQueryImage *image);

/* Does the same for the partition of a row of the source, which is not locked. */
extern int64 dp_query_repair_partition(DpQueryTable *q, DpWriter *w, const Datum *key);

/* Deletes all rows that do not follow from the source. Returns the number of rows written. */
extern int64 dp_query_sweep(DpQueryTable *q);

/* follow.c, for change.c: handles what statements do to sources */
struct DpChanges;
extern void dp_query_table_changed(struct DpChanges *changes);

#endif /* DP_PATTERNS_QUERY_TABLE_QUERY_TABLE_H */
