/*
 * moves.c
 *		Rows whose keys change, until the end of the statement that changes them.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "kit/side/moves.h"

static int first_announced = 0; /* earlier ones have taken place */
static int outermost = 0;       /* triggers of a smaller depth have seen no move */

static DpMove *move_note(DpDecl *decl, const DpKey *from, const DpKey *to, bool announced);
static bool move_is_of(const DpMove *move, DpDecl *decl, int depth);
static int move_depth(const DpMove *move);
static bool move_arrives(const DpMove *move, DpDecl *decl, const DpKey *key, int depth);
static bool move_meets(const DpMove *move, DpDecl *decl, const DpKey *key);
static void move_origin(DpDecl *decl, const DpKey *key, int depth, DpKey *origin);
static DpMove *move_around(DpDecl *decl, const DpKey *key, int depth);
static void moves_wait(DpDecl *decl, int depth);
static DpMove *move_wait(DpDecl *decl, const DpKey *key, const DpMove *around);
static void move_join(DpDecl *decl, List **joined, DpMove *move);
static DpMove *move_happens(DpDecl *decl, const DpKey *from);
static void moves_forgotten(void);

/* Of DpMove.  A move may be deferred to a statement outside its subtransaction. */
static DpStates moves = { .outlives = true,
						  .ended = moves_forgotten,
						  .rolled_back = moves_forgotten };

DpMove *
dp_moves_before(DpDecl *decl, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	DpKey from;
	DpKey to;

	dp_key_of_tuple(decl, trigdata->tg_trigtuple, desc, &from);
	dp_key_of_tuple(decl, trigdata->tg_newtuple, desc, &to);
	return dp_key_identical(decl, &from, &to) ? NULL : move_note(decl, &from, &to, true);
}

DpMove *
dp_moves_after(DpDecl *decl, TriggerData *trigdata, DpKey *from)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	DpMove *move;

	dp_key_of_tuple(decl, trigdata->tg_trigtuple, desc, from);
	move = move_happens(decl, from);
	if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
	{
		DpKey to;

		/* other triggers may have changed the recorded key */
		dp_key_of_tuple(decl, trigdata->tg_newtuple, desc, &to);
		if (move == NULL)
			move = move_note(decl, from, &to, false);
		else
		{
			MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

			dp_key_copy(decl, &to, &move->to);
			MemoryContextSwitchTo(old);
		}
	}
	else if (move == NULL)
	{
		DpMove *around = move_around(decl, from, dp_trigger_depth());

		/* rows under this key may not be this row's */
		if (around != NULL)
		{
			move = move_wait(decl, from, around);
			move->deleted = true;
		}
	}
	return move;
}

void
dp_moves_origin(DpDecl *decl, const DpKey *key, DpKey *origin)
{
	move_origin(decl, key, dp_trigger_depth(), origin);
}

void
dp_moves_stored(DpDecl *decl, const DpKey *key, DpKey *stored)
{
	move_origin(decl, key, moves.list == NIL ? 0 : dp_trigger_depth() + 1, stored);
}

bool
dp_moves_pending(DpDecl *decl, const DpKey *key)
{
	return moves.list != NIL && move_around(decl, key, dp_trigger_depth() + 1) != NULL;
}

DpMove *
dp_moves_stay(DpDecl *decl, const DpKey *key)
{
	DpMove *around;
	ListCell *lc;

	if (moves.list == NIL)
		return NULL;
	around = move_around(decl, key, dp_trigger_depth());
	if (around != NULL)
		return move_wait(decl, key, around);
	foreach(lc, moves.list)
	{
		DpMove *move = lfirst(lc);

		if (move_is_of(move, decl, 0) && dp_key_identical(decl, &move->from, key))
			return move_note(decl, key, key, false);
	}
	return NULL;
}

bool
dp_moves_arriving(DpDecl *decl, const DpKey *key)
{
	int n = list_length(moves.list);
	int depth = n > 0 ? dp_trigger_depth() : 0;
	int i;

	/* usually the last one recorded, or the last one that took place */
	for (i = 0; i < n; i++)
	{
		if (move_arrives(list_nth(moves.list, n - 1 - i), decl, key, depth) ||
			(i < first_announced &&
			 move_arrives(list_nth(moves.list, first_announced - 1 - i), decl, key, depth)))
			return true;
	}
	return false;
}

List *
dp_moves_take(DpDecl *decl)
{
	List *mine = NIL;
	List *others = NIL;
	int depth;
	ListCell *lc;

	if (moves.list == NIL)
		return NIL;
	depth = dp_trigger_depth();
	if (depth > outermost)
		moves_wait(decl, depth);
	outermost = depth;
	foreach(lc, moves.list)
	{
		DpMove *move = lfirst(lc);

		if (!move_is_of(move, decl, depth) || (move->announced && move_depth(move) < depth))
		{
			MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

			others = lappend(others, move);
			MemoryContextSwitchTo(old);
			outermost = Min(outermost, move_depth(move));
		}
		else if (!move->announced)
			move_join(decl, &mine, move);
	}
	list_free(moves.list);
	moves.list = others;
	first_announced = 0;
	return mine;
}

/*
 * If one of the moves of the ending statement concerns a row that the outer statement moved, or the
 * key of one, all of them are deferred to it.
 */
static void
moves_wait(DpDecl *decl, int depth)
{
	int around = 0;
	ListCell *lc;

	foreach(lc, moves.list)
	{
		DpMove *move = lfirst(lc);

		if (!move->announced && move_is_of(move, decl, depth) &&
			(move_around(decl, &move->from, depth) != NULL ||
			 move_around(decl, &move->to, depth) != NULL))
			break;
	}
	if (lc == NULL)
		return;
	foreach(lc, moves.list)
	{
		DpMove *move = lfirst(lc);

		if (move_is_of(move, decl, 0) && move_depth(move) < depth)
			around = Max(around, move_depth(move));
	}
	foreach(lc, moves.list)
	{
		DpMove *move = lfirst(lc);

		if (!move->announced && move_is_of(move, decl, depth))
		{
			move->waits = true;
			move->depth = around;
		}
	}
}

/* Where the rows of a key were stored before statements at a smaller depth moved them. */
static void
move_origin(DpDecl *decl, const DpKey *key, int depth, DpKey *origin)
{
	*origin = *key;
	if (moves.list == NIL || depth <= outermost)
		return;
	for (int i = list_length(moves.list) - 1; i >= 0; i--)
	{
		DpMove *move = list_nth(moves.list, i);

		if (move_depth(move) < depth && !move->deleted && move_is_of(move, decl, 0) &&
			dp_key_identical(decl, &move->to, origin))
			*origin = move->from;
	}
}

/* A move by an outer statement, from or to a key, any if NULL; NULL if there is none. */
static DpMove *
move_around(DpDecl *decl, const DpKey *key, int depth)
{
	ListCell *lc;

	if (moves.list == NIL || depth <= outermost)
		return NULL;
	foreach(lc, moves.list)
	{
		DpMove *move = lfirst(lc);

		if (move_depth(move) < depth && move_is_of(move, decl, 0) &&
			(key == NULL || move_meets(move, decl, key)))
			return move;
	}
	return NULL;
}

static bool
move_arrives(const DpMove *move, DpDecl *decl, const DpKey *key, int depth)
{
	return !move->deleted && move_is_of(move, decl, depth) &&
		   dp_key_identical(decl, &move->to, key);
}

static bool
move_meets(const DpMove *move, DpDecl *decl, const DpKey *key)
{
	return dp_key_identical(decl, &move->from, key) ||
		   (!move->deleted && dp_key_identical(decl, &move->to, key));
}

/*
 * Adds a move to the list; a deferred one continues where an earlier one ended.  Rows were moved in
 * this order, and no two had the same key at any time.
 */
static void
move_join(DpDecl *decl, List **joined, DpMove *move)
{
	int i;

	for (i = list_length(*joined) - 1; move->waits && i >= 0; i--)
	{
		DpMove *earlier = list_nth(*joined, i);

		if (earlier->deleted || !dp_key_identical(decl, &earlier->to, &move->from))
			continue;
		earlier->to = move->to;
		earlier->deleted = move->deleted;
		earlier->flags |= move->flags;
		return;
	}
	*joined = lappend(*joined, move);
}

/* A move from a key to itself, deferred like another one. */
static DpMove *
move_wait(DpDecl *decl, const DpKey *key, const DpMove *around)
{
	int depth = move_depth(around);
	DpMove *move = move_note(decl, key, key, false);

	move->waits = true;
	move->depth = depth;
	return move;
}

/* Records that the key of a row changes. */
static DpMove *
move_note(DpDecl *decl, const DpKey *from, const DpKey *to, bool announced)
{
	bool first = moves.list == NIL;
	DpMove *move = dp_state_begin(&moves, sizeof(DpMove));
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
	Oid user;
	int context;

	move->target = decl->target;
	move->pattern = pstrdup(decl->pattern);
	move->name = pstrdup(decl->name);
	move->announced = announced;
	GetUserIdAndSecContext(&user, &context);
	move->by_key = (context & SECURITY_NOFORCE_RLS) != 0;
	move->depth = dp_trigger_depth();
	dp_key_copy(decl, from, &move->from);
	dp_key_copy(decl, to, &move->to);
	MemoryContextSwitchTo(old);
	outermost = first ? move_depth(move) : Min(outermost, move_depth(move));
	return move;
}

/*
 * True if a move belongs to a row of the declaration and to the statement whose triggers are being
 * called, not to an outer one that a user's trigger interrupts.  A foreign key action is seen first
 * by triggers inside its own, and afterwards by the statement's.
 */
static bool
move_is_of(const DpMove *move, DpDecl *decl, int depth)
{
	return move->depth >= depth && move->target == decl->target &&
		   strcmp(move->name, decl->name) == 0 && strcmp(move->pattern, decl->pattern) == 0;
}

/*
 * The trigger depth of the statement of a move.  A foreign key action's BEFORE UPDATE belongs to
 * the outer statement.
 */
static int
move_depth(const DpMove *move)
{
	return move->announced && move->by_key ? move->depth - 1 : move->depth;
}

/*
 * The row of this key was deleted, or has another key: the move that BEFORE UPDATE recorded, which
 * now takes place, or NULL.  Rows usually come in the order of recording, so the search begins
 * where the last one ended.
 */
static DpMove *
move_happens(DpDecl *decl, const DpKey *from)
{
	int n = list_length(moves.list);
	int depth = n > 0 ? dp_trigger_depth() : 0;
	int i;

	for (i = first_announced; i < n; i++)
	{
		DpMove *move = list_nth(moves.list, i);

		if (!move->announced || !move_is_of(move, decl, depth) ||
			!dp_key_identical(decl, &move->from, from))
			continue;
		move->announced = false;
		move->depth = depth;
		while (first_announced < n &&
			   !((DpMove *) list_nth(moves.list, first_announced))->announced)
			first_announced++;
		return move;
	}
	return NULL;
}

static void
moves_forgotten(void)
{
	first_announced = 0;
}
