/*
 * row.h
 *		Relations without documents: a row is the document of its columns, as row_to_bson() makes
 *		it, so NULL is null and no field is missing.
 *
 * Filters and orders become conditions on columns and an order by columns where SQL's comparisons
 * give what BSON's give for the documents; the rest is computed from documents of the columns that
 * it uses.  All SQL calls the relation t.
 */
#ifndef DP_MQL_PIPELINE_ROW_H
#define DP_MQL_PIPELINE_ROW_H

#include "nodes/pg_list.h"

#include "mql/collection_calls.h"

/* How the values of a column compare in SQL and in BSON */
typedef enum DpRowKind
{
	DP_ROW_INTEGER,
	DP_ROW_FLOAT, /* NaN is the greatest in SQL and the least in BSON; numerics, too */
	DP_ROW_NUMERIC,
	DP_ROW_TEXT,
	DP_ROW_TIMESTAMP, /* BSON cuts off microseconds; with and without time zone */
	DP_ROW_DATE,
	DP_ROW_BOOL,
	DP_ROW_UUID,
	DP_ROW_OBJECTID,
	DP_ROW_OTHER /* may be an array or a document, or have another order */
} DpRowKind;

typedef struct DpRowColumn
{
	const char *name;
	AttrNumber attnum;
	const char *sql; /* t."name" */
	Oid type;        /* not a domain */
	Oid collation;
	DpRowKind kind;
	bool not_null; /* the column is, or a condition on it excludes NULL */
} DpRowColumn;

typedef struct DpRow
{
	const char *source; /* "schema"."relation" AS t */
	const char *own;    /* schema of the extension, quoted */
	List *columns;      /* of DpRowColumn */
	bool is_foreign;    /* a foreign table */
	const char *doc;    /* its documents, of which columns are fields, too; NULL if it has none */
} DpRow;

/* Whether the documents of a foreign table have all that its other columns say. */
extern bool (*dp_documents_hook)(Oid relid);
extern bool dp_has_documents(Oid relid);

/*
 * NULL for what is no table or view, and for a relation with a column of type bson: unless it is
 * the only one of a foreign table without an _id, whose other columns say what a document is about.
 */
extern DpRow *dp_row_open(Oid relid);

/* The column that is the field of this name, which may be a path; NULL if there is none. */
extern DpRowColumn *dp_row_column(const DpRow *row, const char *name);

/* A copy with only the columns of these names (char *); NIL: all. */
extern DpRow *dp_row_with(const DpRow *row, const List *names);

/* The document with these fields (char *) of the row; NIL: all. */
extern char *dp_row_document(const DpRow *row, const List *fields);

/* The conditions that a compiled filter's specification becomes, NULL for none. */
extern char *dp_row_conditions(const DpRow *row, const DpValue *filter);

/* The ORDER BY of a sort specification that has been checked. */
extern char *dp_row_order(const DpRow *row, const DpValue *spec);

/*
 * How rows are found by values of a field; false if the relation has documents.  indexed: only a
 * column with an index that begins with it has an expr.
 */
extern bool dp_row_lookup(Oid relid, const char *field, bool indexed, DpDocLookup *lookup);

/* Whether SQL compares texts of the column by their bytes; whether it finds equal ones as BSON. */
extern bool dp_row_has_byte_order(const DpRowColumn *column);
extern bool dp_row_has_equality(const DpRowColumn *column);

#endif /* DP_MQL_PIPELINE_ROW_H */
