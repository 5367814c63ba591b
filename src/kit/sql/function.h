/*
 * function.h
 *		Functions of users that a declaration names and its trigger calls, in
 *		whatever language they are.
 */
#ifndef DP_KIT_SQL_FUNCTION_H
#define DP_KIT_SQL_FUNCTION_H

#include "fmgr.h"

/* A function of one argument that is kept longer than a statement */
typedef struct DpUserFunction
{
	Oid oid;
	bool strict;
	char *search_path;     /* that it is called with; NULL: any */
	FmgrInfo *flinfo;      /* in context */
	MemoryContext context; /* of what it keeps from call to call */
	MemoryContext parent;
	bool running;      /* or a call of it ended with an error */
	uint64 generation; /* of functions, when it was looked up */
} DpUserFunction;

/*
 * Prepares a function, which is there.  What it keeps lives in the parent
 * context; the search_path is allocated in the current one.
 */
extern void dp_user_function_init(DpUserFunction *f, Oid oid, MemoryContext parent);

/* Whether it is still there. */
extern bool dp_user_function_exists(const DpUserFunction *f);

/*
 * Calls it with one argument, under its search_path.  A strict function is not
 * called for null.  Raises what the function raises, and UNDEFINED_FUNCTION if
 * it was dropped.
 */
extern Datum
dp_user_function_call(DpUserFunction *f, Oid collation, Datum arg, bool arg_null, bool *isnull);

/*
 * Sets a search_path, if it is one and another one than there is, until the other function is
 * called with the result.
 */
extern int dp_user_path_begin(const char *path);
extern void dp_user_path_end(int nestlevel);

/*
 * Whether a function, for check_functions_in_node(), is neither built in nor in C: it may keep
 * something that ends before the backend does.
 */
extern bool dp_function_keeps_state(Oid function, void *context);

#endif /* DP_KIT_SQL_FUNCTION_H */
