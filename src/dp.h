/*
 * dp.h
 *		What every file of the extension shares: the settings of the module.
 *
 * Every symbol that leaves a file begins with dp_ (libbson exports two hundred
 * names that begin with bson_).  SQL-callable functions follow the same rule:
 * the C name of the SQL function bson_size is dp_bson_size.
 */
#ifndef DP_H
#define DP_H

#include "postgres.h"

#include "fmgr.h"

#include "dp_compat.h"

/*
 * Introduces a SQL-callable function: its version-1 record, and a prototype
 * that is exported when symbols are hidden by default (PostgreSQL 16 and later).
 */
#define DP_FUNCTION(name)                                                                          \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS);                                               \
	PG_FUNCTION_INFO_V1(name)

/* Whether two values, detoasted, have the same bytes; NULL is only NULL. */
static inline bool
dp_same_bytes(const void *a, const void *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
		   memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

#endif /* DP_H */
