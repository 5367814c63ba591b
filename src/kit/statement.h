/*
 * statement.h
 *		State that is kept until a statement or its transaction ends.
 */
#ifndef DP_KIT_STATEMENT_H
#define DP_KIT_STATEMENT_H

#include "postgres.h"

#include "nodes/pg_list.h"

/* The number of running triggers, nested in each other. */
extern int dp_trigger_depth(void);

/* The statement whose triggers are being called: dp_statement_now(). */
typedef struct DpStatement
{
	int depth;         /* of its triggers: dp_trigger_depth() */
	CommandId command; /* its snapshot's command ID */
} DpStatement;

extern DpStatement dp_statement_now(void);

/*
 * True if the recorded event belongs to this statement or a foreign key action it caused.  Events
 * at a smaller trigger depth, or at the same depth with an earlier command ID, belong to another
 * statement.
 */
static inline bool
dp_statement_noted(const DpStatement *statement, const DpStatement *noted)
{
	return noted->depth >= statement->depth && noted->command >= statement->command;
}

/*
 * States.  Each user has a static DpStates, whose list holds structs that
 * begin with a DpState, the oldest first.  They are in TopTransactionContext.
 * A state is forgotten when the subtransaction that made it is rolled back.
 * When that subtransaction commits, a state that outlives its statement passes
 * to the parent; any other is forgotten, because its statement has ended.
 */
typedef struct DpState
{
	SubTransactionId owner;
	MemoryContext context; /* deleted with the state; or NULL */
} DpState;

typedef struct DpStates
{
	bool outlives;             /* states may outlive their statement */
	void (*ended)(void);       /* called after the transaction has ended and its states are freed */
	void (*rolled_back)(void); /* likewise for a subtransaction */
	void (*before_commit)(void); /* or prepare; the last one registered is called first */
	List *list;
	bool heard;
	struct DpStates *next;
} DpStates;

/* Registers the functions above; dp_state_begin() does so itself. */
extern void dp_states_hear(DpStates *states);

/* Returns a new zeroed state, which belongs to the current subtransaction. */
extern void *dp_state_begin(DpStates *states, Size size);

/* Removes the state from the list and frees it. */
extern void dp_state_end(DpStates *states, void *state);

/* Deletes the context when the transaction ends, because its data may be in use until then. */
extern void dp_bury(MemoryContext context);

/*
 * Collects keys or values (bson_values) from row triggers, so that the statement trigger handles
 * them all at once, in order.  id is the address of something static that identifies the
 * collection.
 */
extern void dp_collect(Oid relid, const void *id, struct varlena *value);

/*
 * Removes and returns what this statement's row triggers collected: a sorted list of distinct
 * bson_values in the current context.
 */
extern List *dp_collected(Oid relid, const void *id);

/* Called when the library is loaded. */
extern void dp_statement_init(void);

#endif /* DP_KIT_STATEMENT_H */
