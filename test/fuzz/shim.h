/*
 * shim.h
 *		The few functions of a PostgreSQL server that the code under test calls,
 *		for a program that runs outside of one.
 */
#ifndef FUZZ_SHIM_H
#define FUZZ_SHIM_H

#include "postgres.h"

#include <setjmp.h>

/*
 * Runs what follows and comes back to it, with a value other than 0, when an
 * error is raised: if (FUZZ_TRY() == 0) ... else ...
 */
extern jmp_buf fuzz_error;
#define FUZZ_TRY() setjmp(fuzz_error)

/* The last error: its SQLSTATE, message and detail. */
extern int fuzz_sqlstate;
extern char fuzz_message[256];
extern char fuzz_detail[1024];

/* Frees everything that palloc gave. */
extern void fuzz_reset_memory(void);

/* Where the stack begins, for check_stack_depth(). */
extern char *fuzz_stack_base;

#endif /* FUZZ_SHIM_H */
