/*
 * collation.h
 *		Collations in MongoDB's form: {locale: "de", strength: 1}.  ICU compares.
 *
 * A collation is in force while one function computes (mql/collationfn.c): all comparisons of
 * strings in it, of strings in documents and arrays as well, and all sort keys use it.  Nothing
 *that is computed then may reach an index.
 */
#ifndef DP_BSON_COLLATION_H
#define DP_BSON_COLLATION_H

#include "lib/stringinfo.h"

#include "bson/reader.h"

typedef struct DpCollation DpCollation;

/* The collation in force; NULL: strings are bytes. */
extern const DpCollation *dp_collation;

/*
 * For dp_spec_cached(): the collation that a document describes, in the current memory context;
 * NULL for the locale "simple".  Raises INVALID_PARAMETER_VALUE.
 */
extern void *dp_collation_compile(const DpValue *spec, void *arg);

/* By the collation in force. */
extern int dp_collation_compare(const char *a, uint32 alen, const char *b, uint32 blen);

/* Bytes, none of them 0, that compare as the string does by the collation in force. */
extern char *dp_collation_key(const char *s, uint32 len, uint32 *keylen);

#endif /* DP_BSON_COLLATION_H */
