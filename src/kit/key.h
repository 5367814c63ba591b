/*
 * key.h
 *		Keys of rows: the values of a primary key, of any types.
 */
#ifndef DP_KIT_KEY_H
#define DP_KIT_KEY_H

#include "access/htup.h"
#include "access/tupdesc.h"

#include "kit/declaration.h"

typedef struct DpKey
{
	int n;
	Datum values[INDEX_MAX_KEYS];
} DpKey;

/* The key of a row of decl->relid.  Points into the tuple. */
extern void dp_key_of_tuple(DpDecl *decl, HeapTuple tuple, TupleDesc desc, DpKey *key);

/* The same for a row of rel, which may also be a partition with other attribute numbers. */
extern void dp_key_of_row(DpDecl *decl, Relation rel, HeapTuple tuple, DpKey *key);

/*
 * The key that was passed to a SQL function as an argument of any type: a plain value, text that
 * the key column's type reads, or a row with one value per key column.  A row of the
 * type of the only key column is a plain value.  Raises WRONG_OBJECT_TYPE if the type does not fit
 * and NULL_VALUE_NOT_ALLOWED for nulls.  The second function takes a value of that type.
 */
extern void dp_key_of_argument(DpDecl *decl, FunctionCallInfo fcinfo, int argno, DpKey *key);
extern void dp_key_of_datum(DpDecl *decl, Datum value, Oid type, DpKey *key);

/*
 * Reads the key from a BSON value that dp_key_to_value() made.  Returns false if the value is not
 * one.
 */
extern bool dp_key_of_value(DpDecl *decl, const DpValue *value, DpKey *key);

/* The same for one column of a key; false also for a null and, but for bson_value, for undefined.
 */
extern bool dp_key_column_of_value(const DpKeyColumn *column, const DpValue *value, Datum *result);

/* True if two keys have the same bytes. */
extern bool dp_key_identical(DpDecl *decl, const DpKey *a, const DpKey *b);

/* The key as a BSON value; an array if it has several columns.  A new bson_value. */
extern struct varlena *dp_key_to_value(DpDecl *decl, const DpKey *key);

/* The key as text for messages, truncated to 100 bytes. */
extern char *dp_key_to_text(DpDecl *decl, const DpKey *key);

/* A copy in the current context. */
extern void dp_key_copy(DpDecl *decl, const DpKey *from, DpKey *to);

#endif /* DP_KIT_KEY_H */
