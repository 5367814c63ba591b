/*
 * collation.h
 *		Collations in MongoDB's form: {locale: "de", strength: 1}.  ICU compares.
 *
 * A collation is in force while one function computes: all comparisons of strings in it, of strings
 * in documents and arrays as well, and all sort keys use it.  Nothing that is computed then may
 * reach an index.
 */
#ifndef DP_BSON_COLLATION_H
#define DP_BSON_COLLATION_H

#include "lib/stringinfo.h"

#include "bson/reader.h"

typedef struct DpCollation DpCollation;

/* The collation in force; NULL: strings are bytes. */
extern const DpCollation *dp_collation;

/*
 * The collation that a document describes; NULL if it is simple.  Valid until other ones have been
 * asked for: ask in each call.  INVALID_PARAMETER_VALUE if there is no such collation.
 */
extern const DpCollation *dp_collation_get(const DpValue *spec);

/* Calls a function, which must not run SQL, while a collation is in force; NULL: none. */
extern void dp_collated(const DpValue *spec, void (*function)(void *), void *arg);

/* The same for a function of SQL: by a collation, or by that in its last argument. */
extern Datum dp_collated_by(const DpValue *spec, FunctionCallInfo fcinfo, PGFunction function);
extern Datum dp_collated_call(FunctionCallInfo fcinfo, PGFunction function);

/* By the collation in force. */
extern int dp_collation_compare(const char *a, uint32 alen, const char *b, uint32 blen);

/* Bytes, none of them 0, that compare as the string does by the collation in force. */
extern char *dp_collation_key(const char *s, uint32 len, uint32 *keylen);

#endif /* DP_BSON_COLLATION_H */
