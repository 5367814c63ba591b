/*
 * statement.h
 *		What is remembered until a statement ends, or its transaction.
 */
#ifndef DP_KIT_STATEMENT_H
#define DP_KIT_STATEMENT_H

#include "postgres.h"

#include "nodes/pg_list.h"

/* The number of triggers that are running, one inside the other. */
extern int dp_trigger_depth(void);

/* The statement whose triggers are being called: dp_statement_now(). */
typedef struct DpStatement
{
	int depth;         /* of its triggers: dp_trigger_depth() */
	CommandId command; /* what it sees of its transaction */
} DpStatement;

extern DpStatement dp_statement_now(void);

/*
 * Whether what a trigger noted is of this statement, or of a foreign key's
 * action inside of it.  Such an action's BEFORE triggers are called inside of
 * the key's trigger, the others by the statement around it, further out.  Not
 * what is noted further out, by a statement that a trigger of the user's
 * interrupts, nor as deep but before this one began: by a key's action around.
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
	MemoryContext context; /* deleted with the state; may be NULL */
} DpState;

typedef struct DpStates
{
	bool outlives;               /* states may outlive the statement that made them */
	void (*ended)(void);         /* the transaction has ended; its states are forgotten already */
	void (*rolled_back)(void);   /* likewise a subtransaction */
	void (*before_commit)(void); /* or prepare; what was heard last is called first */
	List *list;
	bool heard;
	struct DpStates *next;
} DpStates;

/* Has the functions called from now on; dp_state_begin() does so itself. */
extern void dp_states_hear(DpStates *states);

/* Returns a new state, zeroed, which belongs to the current subtransaction. */
extern void *dp_state_begin(DpStates *states, Size size);

/* Takes the state off the list and frees it. */
extern void dp_state_end(DpStates *states, void *state);

/* Deletes the context when the transaction ends: what is in it may be in use until then. */
extern void dp_bury(MemoryContext context);

/*
 * Keys or values (bson_values) that row triggers collect and that the statement's own
 * trigger then handles all at once, in order.  id is the address of something static: it tells
 * which collection.
 */
extern void dp_collect(Oid relid, const void *id, struct varlena *value);

/*
 * Takes what this statement's row triggers have collected, sorted, each value once.  A list of
 * bson_values in the current context.
 */
extern List *dp_collected(Oid relid, const void *id);

/* Called when the library is loaded. */
extern void dp_statement_init(void);

#endif /* DP_KIT_STATEMENT_H */
