/*
 * collect.h
 *		The extended reference pattern: ids collected by the row triggers of a
 *		statement until its own trigger processes them.  Only for this pattern.
 *
 * collect.c collects, lock.c locks the sources.
 */
#ifndef DP_PATTERNS_REFERENCE_COLLECT_H
#define DP_PATTERNS_REFERENCE_COLLECT_H

#include "access/htup.h"
#include "access/tupdesc.h"

#include "kit/sql/run.h"
#include "kit/statement.h"
#include "patterns/reference/reference.h"

/* A set that a statement's row triggers have begun */
typedef struct DpRefCollecting
{
	DpState state;
	char *link_id;
	char *name;
	Oid target;
	Oid source;
	bool of_source;
	DpStatement statement;
	DpRefIds *set;
} DpRefCollecting;

/* Whether anything at all is collected: most statements need not look further. */
extern bool dp_ref_collecting_any(void);

/* The collections of rows of the target for the statement in progress: DpRefCollectings. */
extern List *dp_ref_collecting_of(Oid target);

/*
 * INSERT .. ON CONFLICT proposes a row, which may become an update of another
 * one.  The references of the last proposal are known by its key, and are none
 * any more when the row of that key is updated instead.
 */
extern void dp_ref_proposals_forget(DpReference *ref);
extern void dp_ref_proposal_note(DpReference *ref, HeapTuple tuple, TupleDesc desc);
extern void dp_ref_proposal_withdraw(DpReference *ref, HeapTuple tuple, TupleDesc desc);

/*
 * Returns whether the sources are in a table with data derived from the rows that refer to them.
 * Then both kinds of locks are taken in one order, by the engine of derived data.
 */
extern bool dp_ref_locked_later(DpReference *ref);

/* Locks all missing sources of the statement's new references. */
extern void dp_ref_lock_absent_wanted(Oid target);

/*
 * If several declarations of the table have new references to one source, locks the rows of all of
 * them first, in one order.
 */
extern void dp_ref_lock_together(DpReference *ref);

#endif /* DP_PATTERNS_REFERENCE_COLLECT_H */
