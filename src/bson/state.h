/*
 * state.h
 *		States of aggregates that other processes and servers take over as bytes.
 *
 * A state is an expanded object: SQL knows it as a bytea, but it is packed only when it leaves the
 * process.  So PostgreSQL combines states of parallel workers, and Citus those of its nodes; Citus
 * refuses the type internal, and looks up an aggregate's functions again for each row.
 *
 * Aggregates with arguments of any type stay on Citus's coordinator.  Their states are declared
 * internal, which is the same datum, with state_serialize() and state_deserialize().
 */
#ifndef DP_BSON_STATE_H
#define DP_BSON_STATE_H

#include "bson/varint.h"

typedef struct DpStateKind
{
	Size size;                                        /* of the state, */
	void (*init)(void *state, MemoryContext context); /* which is zeroed memory; its context */
	void (*pack)(StringInfo out, void *state);        /* in the current context */
} DpStateKind;

/*
 * The state in argument 0 of an aggregate's function, or a new one in the aggregate's memory.
 * Raises GROUPING_ERROR outside of an aggregate, and for a state of another kind.
 */
extern void *dp_state_get(FunctionCallInfo fcinfo, const DpStateKind *kind);

/* The same for final functions: NULL if there is no state. */
extern void *dp_state_final(FunctionCallInfo fcinfo, const DpStateKind *kind);

/* What the functions return. */
extern Datum dp_state_datum(void *state);

/* The memory of a state. */
extern MemoryContext dp_state_context(void *state);

/* For combine functions: the packed state in argument 1; false if there is none. */
extern bool dp_state_packed(FunctionCallInfo fcinfo, DpPacked *p);

#endif /* DP_BSON_STATE_H */
