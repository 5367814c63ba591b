/*
 * statement.c
 *		State that is kept until a statement or its transaction ends.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "bson/compare.h"
#include "bson/reader.h"
#include "kit/statement.h"

typedef struct Collected
{
	DpState state;
	Oid relid;
	const void *id; /* which collection */
	DpStatement statement;
	struct varlena *value; /* in the same chunk */
} Collected;

static DpStates *heard = NULL; /* the last one first */
static DpStates collections;   /* of Collected; none outlives its statement */
static List *buried = NIL;     /* in TopMemoryContext */

static void state_free(DpState *state);
static void states_xact(XactEvent event, void *arg);
static void
states_subxact(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg);
static int collected_compare(const ListCell *a, const ListCell *b);

void
dp_statement_init(void)
{
	RegisterXactCallback(states_xact, NULL);
	RegisterSubXactCallback(states_subxact, NULL);
}

int
dp_trigger_depth(void)
{
	return DatumGetInt32(DirectFunctionCall1(pg_trigger_depth, (Datum) 0));
}

/*
 * Triggers run while their statement's snapshot is the active one, and each nested statement has a
 * later one.  Without an active snapshot (after a SELECT whose WITH writes), the statement is the
 * outermost.
 */
DpStatement
dp_statement_now(void)
{
	DpStatement now;

	now.depth = dp_trigger_depth();
	now.command = ActiveSnapshotSet() ? GetActiveSnapshot()->curcid : FirstCommandId;
	return now;
}

void
dp_states_hear(DpStates *states)
{
	if (states->heard)
		return;
	states->heard = true;
	states->next = heard;
	heard = states;
}

void *
dp_state_begin(DpStates *states, Size size)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	DpState *state = palloc0(size);

	dp_states_hear(states);
	state->owner = GetCurrentSubTransactionId();
	states->list = lappend(states->list, state);
	MemoryContextSwitchTo(old);
	return state;
}

void
dp_state_end(DpStates *states, void *state)
{
	states->list = list_delete_ptr(states->list, state);
	state_free(state);
}

static void
state_free(DpState *state)
{
	if (state->context != NULL)
		MemoryContextDelete(state->context);
	pfree(state);
}

void
dp_bury(MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	buried = lappend(buried, context);
	MemoryContextSwitchTo(old);
}

static void
states_xact(XactEvent event, void *arg)
{
	DpStates *states;
	ListCell *lc;

	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			for (states = heard; states != NULL; states = states->next)
			{
				if (states->before_commit != NULL)
					states->before_commit();
			}
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			for (states = heard; states != NULL; states = states->next)
			{
				states->list = NIL; /* its memory is the transaction's */
				if (states->ended != NULL)
					states->ended();
			}
			foreach(lc, buried)
				MemoryContextDelete(lfirst(lc));
			list_free(buried);
			buried = NIL;
			break;
		default:
			break;
	}
}

static void
states_subxact(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	bool aborts = event == SUBXACT_EVENT_ABORT_SUB;
	DpStates *states;
	int i;

	if (!aborts && event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	for (states = heard; states != NULL; states = states->next)
	{
		/* states of outer subtransactions come first */
		for (i = list_length(states->list) - 1; i >= 0; i--)
		{
			DpState *state = list_nth(states->list, i);

			if (state->owner != mine)
				break;
			if (states->outlives && !aborts)
				state->owner = parent;
			else
			{
				states->list = list_delete_last(states->list);
				state_free(state);
			}
		}
		if (aborts && states->rolled_back != NULL)
			states->rolled_back();
	}
}

void
dp_collect(Oid relid, const void *id, struct varlena *value)
{
	Collected *c = dp_state_begin(&collections, MAXALIGN(sizeof(Collected)) + VARSIZE_ANY(value));

	c->relid = relid;
	c->id = id;
	c->statement = dp_statement_now();
	c->value = (struct varlena *) ((char *) c + MAXALIGN(sizeof(Collected)));
	memcpy(c->value, value, VARSIZE_ANY(value));
}

List *
dp_collected(Oid relid, const void *id)
{
	List *result = NIL;
	List *distinct = NIL;
	List *taken = NIL;
	List *others = NIL;
	struct varlena *last = NULL;
	DpStatement statement = dp_statement_now();
	ListCell *lc;

	foreach(lc, collections.list)
	{
		Collected *c = lfirst(lc);

		if (c->relid == relid && c->id == id && dp_statement_noted(&statement, &c->statement))
		{
			struct varlena *copy = palloc(VARSIZE_ANY(c->value));

			memcpy(copy, c->value, VARSIZE_ANY(c->value));
			result = lappend(result, copy);
			taken = lappend(taken, c);
		}
		else
		{
			MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

			others = lappend(others, c);
			MemoryContextSwitchTo(old);
		}
	}

	/* nothing can fail from here on: until now everything was in the list */
	list_free(collections.list);
	collections.list = others;
	list_free_deep(taken);

	list_sort(result, collected_compare);
	foreach(lc, result)
	{
		struct varlena *value = lfirst(lc);

		if (last == NULL || VARSIZE_ANY(last) != VARSIZE_ANY(value) ||
			memcmp(last, value, VARSIZE_ANY(value)) != 0)
			distinct = lappend(distinct, value);
		last = value;
	}
	list_free(result);
	return distinct;
}

/* Orders collected values, so that locks are taken in one order. */
static int
collected_compare(const ListCell *a, const ListCell *b)
{
	DpValue left = dp_value_of_varlena(lfirst(a));
	DpValue right = dp_value_of_varlena(lfirst(b));
	int cmp = dp_value_compare(&left, &right);

	if (cmp != 0)
		return cmp;

	/* equal numbers of different types are different values here */
	if (left.type != right.type)
		return left.type < right.type ? -1 : 1;
	if (left.len != right.len)
		return left.len < right.len ? -1 : 1;
	return memcmp(left.data, right.data, left.len);
}
