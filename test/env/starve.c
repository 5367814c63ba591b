/*
 * starve.c
 *		A malloc() that fails once, when it is told to: loaded before everything
 *		else into the server (LD_PRELOAD), and a library of functions for SQL.
 *
 *		starve(n)	the nth allocation of the session from now on fails
 *		starved()	whether it has, since then; no more will fail
 *
 * Only memory that a session asks the system for is counted: what PostgreSQL has in
 * its contexts already it hands out by itself.
 */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

extern void *__libc_malloc(size_t size);
extern void *__libc_realloc(void *pointer, size_t size);

static int left = 0; /* allocations until the one that fails; 0: none does */
static bool failed = false;

static inline bool
fails(void)
{
	if (likely(left == 0) || --left > 0)
		return false;
	failed = true;
	return true;
}

void *
malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *
realloc(void *pointer, size_t size)
{
	return fails() ? NULL : __libc_realloc(pointer, size);
}

PG_FUNCTION_INFO_V1(starve);
Datum
starve(PG_FUNCTION_ARGS)
{
	failed = false;
	left = PG_GETARG_INT32(0);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(starved);
Datum
starved(PG_FUNCTION_ARGS)
{
	bool was = failed;

	left = 0;
	failed = false;
	PG_RETURN_BOOL(was);
}
