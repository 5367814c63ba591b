/*
 * source.h
 *		Reading source rows to recompute a group.
 *
 * A statement's changes come from change.h.  Here, prepared statements read rows as the owner of
 * the declaration's tables, with the latest or the active snapshot.
 */
#ifndef DP_KIT_DERIVE_SOURCE_H
#define DP_KIT_DERIVE_SOURCE_H

#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "nodes/params.h"

#include "bson/path.h"
#include "kit/declaration.h"
#include "kit/derive/derive.h"

/* Cached facts about a source.  Lives as long as the declaration that it was made for. */
typedef struct DpSource
{
	Oid relid;
	bool is_foreign;  /* a relation of measurements */
	char *doc_column; /* NULL: the rows are the documents */
	int nkeys;        /* columns of its primary key; 0: none */
	char **keys;
	Oid *key_types;

	/* positions of the key's columns in rows of the type seen last */
	Oid seen_type;
	AttrNumber seen[INDEX_MAX_KEYS];
	StringInfo key; /* the last row's key */
} DpSource;

/*
 * Reads the facts about a table, in the current context.  doc_column is the declared one; if the
 * table no longer has it or it is NULL, its only column of type bson, or none.
 */
extern DpSource *dp_source_open(Oid relid, const char *doc_column);

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE if the table has no primary key. */
extern void dp_source_require_key(const DpSource *source);

/* The key of a row as bytes in the order of rows (accumulate.h), until the next call. */
extern const char *dp_source_row_key(DpSource *source, TupleTableSlot *slot, uint32 *len);

/* SELECT document [, columns of the key] FROM table AS s */
extern void dp_source_sql_select(StringInfo sql, const DpSource *source, bool with_key);

/*
 * The field at a path of a row s: a bson_value or, if rows are the documents, a column.  Returns
 * its type, InvalidOid if there is no such column.
 */
extern Oid dp_source_sql_field(StringInfo sql, const DpSource *source, const DpPath *path);

/*
 * Does the same, but raises UNDEFINED_COLUMN: rows of measurements have only columns, which may
 * have been renamed.
 */
extern Oid dp_source_sql_require_field(StringInfo sql, const DpSource *source, const DpPath *path);

/*
 * Runs such a statement inside SPI_connect(), and calls visit for each row, in a memory context
 * that is reset after each.  visit returns false to stop.  key is NULL without with_key.  latest:
 * with the latest snapshot.  Returns the number of rows visited.
 */
typedef bool (*DpSourceVisit)(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);

extern int64 dp_source_each(DpSource *source, DpDecl *decl, SPIPlanPtr plan, ParamListInfo params,
							bool latest, bool with_key, DpSourceVisit visit, void *arg);

/* A list of n parameters, all null without a type. */
extern ParamListInfo dp_source_params(int n);

/* Sets a parameter of that type (from dp_source_sql_field()) to the value. */
extern void dp_source_param(ParamListInfo params, int i, Oid type, const DpValue *value);

#endif /* DP_KIT_DERIVE_SOURCE_H */
