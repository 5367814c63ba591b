/*
 * dp.h
 *		What every file of the extension includes.
 *
 * Exported symbols begin with dp_, because libbson exports two hundred names that begin with bson_.
 * The C name of the SQL function bson_size is dp_bson_size.
 */
#ifndef DP_H
#define DP_H

#include "postgres.h"

#include "fmgr.h"

#include "dp_compat.h"

/*
 * Declares a SQL-callable function: its version-1 record, and a prototype that is exported although
 * symbols are hidden by default (PostgreSQL 16 and later).
 */
#define DP_FUNCTION(name)                                                                          \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS);                                               \
	PG_FUNCTION_INFO_V1(name)

/* True if two detoasted values have the same bytes; NULL equals only NULL. */
static inline bool
dp_same_bytes(const void *a, const void *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
		   memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

#endif /* DP_H */
