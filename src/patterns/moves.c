/*
 * moves.c
 *		Rows whose keys change, until the end of the statement that changes them.
 */
#include "postgres.h"

#include "access/xact.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "patterns/moves.h"
#include "patterns/run.h"

/* Of DpMove: those of this transaction, in its context */
static List *moves = NIL;
static int	first_announced = 0;	/* those before it are more than announced */
static bool callbacks_registered = false;

static void move_note(DpDecl *decl, const DpKey *from, const DpKey *to, bool announced);
static bool move_is_of(const DpMove *move, DpDecl *decl, int depth);
static DpMove *move_happens(DpDecl *decl, const DpKey *from);
static void moves_xact(XactEvent event, void *arg);
static void moves_subxact(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg);

void
dp_moves_before(DpDecl *decl, TriggerData *trigdata)
{
	TupleDesc	desc = RelationGetDescr(trigdata->tg_relation);
	DpKey		from;
	DpKey		to;

	if (!trigdata->tg_relation->rd_rel->relispartition)
		return;
	dp_key_of_tuple(decl, trigdata->tg_trigtuple, desc, &from);
	dp_key_of_tuple(decl, trigdata->tg_newtuple, desc, &to);
	if (!dp_key_identical(decl, &from, &to))
		move_note(decl, &from, &to, true);
}

bool
dp_moves_after(DpDecl *decl, TriggerData *trigdata, DpKey *from)
{
	TupleDesc	desc = RelationGetDescr(trigdata->tg_relation);
	DpMove	   *move;

	dp_key_of_tuple(decl, trigdata->tg_trigtuple, desc, from);
	move = move_happens(decl, from);
	if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
	{
		DpKey		to;

		/* other triggers may have changed what was announced */
		dp_key_of_tuple(decl, trigdata->tg_newtuple, desc, &to);
		if (move == NULL)
			move_note(decl, from, &to, false);
		else
		{
			MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

			dp_key_copy(decl, &to, &move->to);
			MemoryContextSwitchTo(old);
		}
		return true;
	}
	return move != NULL;
}

List *
dp_moves_take(DpDecl *decl)
{
	List	   *mine = NIL;
	List	   *others = NIL;
	int			depth;
	ListCell   *lc;

	if (moves == NIL)
		return NIL;
	depth = dp_trigger_depth();
	foreach(lc, moves)
	{
		DpMove	   *move = lfirst(lc);

		if (!move_is_of(move, decl, depth))
		{
			MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

			others = lappend(others, move);
			MemoryContextSwitchTo(old);
		}
		else if (!move->announced)
			mine = lappend(mine, move);
	}
	list_free(moves);
	moves = others;
	first_announced = 0;
	return mine;
}

/* Remember that the key of a row changes. */
static void
move_note(DpDecl *decl, const DpKey *from, const DpKey *to, bool announced)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	DpMove	   *move = palloc(sizeof(DpMove));

	if (!callbacks_registered)
	{
		RegisterXactCallback(moves_xact, NULL);
		RegisterSubXactCallback(moves_subxact, NULL);
		callbacks_registered = true;
	}
	move->target = decl->target;
	move->pattern = pstrdup(decl->pattern);
	move->name = pstrdup(decl->name);
	move->announced = announced;
	move->depth = dp_trigger_depth();
	move->nestlevel = GetCurrentTransactionNestLevel();
	dp_key_copy(decl, from, &move->from);
	dp_key_copy(decl, to, &move->to);
	moves = lappend(moves, move);
	MemoryContextSwitchTo(old);
}

/*
 * Whether a move is that of a row of the declaration, and of the statement
 * whose triggers are being called: not of one around it, which a trigger of
 * the user's interrupts.  What a foreign key's action does is seen before by
 * triggers inside of its own, and afterwards by the statement's.
 */
static bool
move_is_of(const DpMove *move, DpDecl *decl, int depth)
{
	return move->depth >= depth && move->target == decl->target && strcmp(move->name, decl->name) == 0 &&
		strcmp(move->pattern, decl->pattern) == 0;
}

/*
 * The row of this key is gone, or has another one: the announcement of that,
 * which is now more, or NULL.  Rows are usually met in the order in which they were announced,
 * so that the search begins where the last one ended.
 */
static DpMove *
move_happens(DpDecl *decl, const DpKey *from)
{
	int			n = list_length(moves);
	int			depth = n > 0 ? dp_trigger_depth() : 0;
	int			i;

	for (i = first_announced; i < n; i++)
	{
		DpMove	   *move = list_nth(moves, i);

		if (!move->announced || !move_is_of(move, decl, depth) || !dp_key_identical(decl, &move->from, from))
			continue;
		move->announced = false;
		while (first_announced < n && !((DpMove *) list_nth(moves, first_announced))->announced)
			first_announced++;
		return move;
	}
	return NULL;
}

/* At the end of a transaction nothing is remembered; its memory goes with it. */
static void
moves_xact(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		moves = NIL;
		first_announced = 0;
	}
}

/* What a subtransaction remembered is void when it is rolled back. */
static void
moves_subxact(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	ListCell   *lc;

	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	foreach(lc, moves)
	{
		DpMove	   *move = lfirst(lc);

		if (move->nestlevel >= GetCurrentTransactionNestLevel())
			moves = foreach_delete_current(moves, lc);
	}
	first_announced = 0;
}
