/*
 * function.h
 *		Users' functions in any language that a declaration names and its trigger calls.
 */
#ifndef DP_KIT_SQL_FUNCTION_H
#define DP_KIT_SQL_FUNCTION_H

#include "fmgr.h"

/* A function of one argument that is cached longer than a statement */
typedef struct DpUserFunction
{
	Oid oid;
	bool strict;
	char *search_path;     /* to call it with; NULL: unchanged */
	FmgrInfo *flinfo;      /* in context */
	MemoryContext context; /* of its fn_extra */
	MemoryContext parent;
	bool running;      /* or a call ended with an error */
	uint64 generation; /* of functions, when it was looked up */
} DpUserFunction;

/*
 * Prepares an existing function.  Its state lives in the parent context; the search_path is
 * allocated in the current one.
 */
extern void dp_user_function_init(DpUserFunction *f, Oid oid, MemoryContext parent);

/* True if it still exists. */
extern bool dp_user_function_exists(const DpUserFunction *f);

/*
 * Calls it with one argument, under its search_path.  A strict function is not called for null.
 * Raises the function's errors, and UNDEFINED_FUNCTION if it was dropped.
 */
extern Datum
dp_user_function_call(DpUserFunction *f, Oid collation, Datum arg, bool arg_null, bool *isnull);

/*
 * Sets a search_path, unless it is NULL or already set, until dp_user_path_end() is called with the
 * result.
 */
extern int dp_user_path_begin(const char *path);
extern void dp_user_path_end(int nestlevel);

/*
 * True if a function, for check_functions_in_node(), is neither built in nor in C: it may keep
 * state that ends before the backend does.
 */
extern bool dp_function_keeps_state(Oid function, void *context);

#endif /* DP_KIT_SQL_FUNCTION_H */
