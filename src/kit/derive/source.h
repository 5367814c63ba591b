/*
 * source.h
 *		Rows of a source, as those read them who compute a group anew.
 *
 * What is triggered by a statement gets its rows from change.h.  Here rows are
 * read by prepared statements, as the owner of the declaration's tables, with
 * the latest snapshot or the one that is active.
 */
#ifndef DP_KIT_DERIVE_SOURCE_H
#define DP_KIT_DERIVE_SOURCE_H

#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "nodes/params.h"

#include "bson/path.h"
#include "kit/declaration.h"
#include "kit/derive/derive.h"

/* What is known of a source.  Lives as long as the declaration that it was made for. */
typedef struct DpSource
{
	Oid relid;
	bool is_foreign;  /* a relation of measurements */
	char *doc_column; /* NULL: its rows are the documents */
	int nkeys;        /* columns of its primary key; 0: it has none */
	char **keys;
	Oid *key_types;

	/* where the key's columns are in the rows that were seen last */
	Oid seen_type;
	AttrNumber seen[INDEX_MAX_KEYS];
	StringInfo key; /* the last row's key */
} DpSource;

/*
 * Looks at a table, in the current context.  doc_column is the one that was
 * declared; another one is taken if the table has it no more, and NULL is the
 * only one, or none.
 */
extern DpSource *dp_source_open(Oid relid, const char *doc_column);

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE if the table has no primary key. */
extern void dp_source_require_key(const DpSource *source);

/* The key of a row as bytes that are ordered as rows are (accumulate.h), until the next call. */
extern const char *dp_source_row_key(DpSource *source, TupleTableSlot *slot, uint32 *len);

/* SELECT document [, columns of the key] FROM table AS s */
extern void dp_source_sql_select(StringInfo sql, const DpSource *source, bool with_key);

/*
 * The field that a path leads to, of a row s: of type bson_value, or, where
 * rows are the documents, a column.  Returns its type, InvalidOid if there is no such column.
 */
extern Oid dp_source_sql_field(StringInfo sql, const DpSource *source, const DpPath *path);

/*
 * The same; raises UNDEFINED_COLUMN instead: rows of measurements have columns
 * and nothing inside them, and a column may have been renamed.
 */
extern Oid dp_source_sql_require_field(StringInfo sql, const DpSource *source, const DpPath *path);

/*
 * Runs such a statement inside SPI_connect(), and calls visit for each row that
 * it gives, in a memory context that is reset after each.  It returns false
 * when no more rows are wanted.  key is NULL without with_key.  latest: with
 * the latest snapshot.  Returns the number of rows that were visited.
 */
typedef bool (*DpSourceVisit)(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);

extern int64 dp_source_each(DpSource *source, DpDecl *decl, SPIPlanPtr plan, ParamListInfo params,
							bool latest, bool with_key, DpSourceVisit visit, void *arg);

/* A list of n parameters, all null of no type yet. */
extern ParamListInfo dp_source_params(int n);

/* A parameter of that type (as dp_source_sql_field() gave it) with that value. */
extern void dp_source_param(ParamListInfo params, int i, Oid type, const DpValue *value);

#endif /* DP_KIT_DERIVE_SOURCE_H */
