/*
 * outlier_move.c
 *		Changes of keys: the extras of an outlier follow its row.
 *
 * While one statement changes the keys of several rows, the new key of one may
 * be the old key of another.  So the extras leave their old key when the row's
 * AFTER trigger runs, marked as moving, and arrive when the statement has
 * ended.  What arrives then is remembered here.
 *
 * An update that carries a row from one partition to another looks like a
 * DELETE and an INSERT to AFTER triggers.  The BEFORE UPDATE trigger of the
 * old partition, which sees both keys, announces the move, and the others
 * recognize it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "patterns/outlier.h"
#include "patterns/run.h"

/* A row whose key changes in a statement that has not ended. */
typedef struct Move
{
	Oid			target;
	char	   *name;			/* of the declaration */
	int			depth;			/* of the statement's triggers */
	int			nestlevel;
	bool		started;		/* the extras have left the old key */
	bool		grown;			/* elements were added behind those that stay */
	DpKey		from;
	DpKey		to;
} Move;

static List *moves = NIL;
static int	announced = 0;		/* moves that have not started */
static int	next_announced = 0; /* where the first of them may stand */
static MemoryContext moves_context = NULL;
static bool callbacks_registered = false;

static Move *move_add(Outlier *o, const DpKey *from, const DpKey *to, bool grown);
static void move_arrive(Outlier *o, const DpKey *to);
static Move *move_announced(Outlier *o, const DpKey *from);
static void move_started(Move *m);
static void moves_recount(void);
static bool move_is_mine(const Move *m, Outlier *o, int depth);
static void moves_xact(XactEvent event, void *arg);
static void moves_subxact(SubXactEvent event, SubTransactionId mine,
						  SubTransactionId parent, void *arg);

/*
 * BEFORE UPDATE on a partition: the row may go to another one.
 */
void
dp_outlier_move_announce(Outlier *o, const DpKey *from, const DpKey *to, bool grown)
{
	(void) move_add(o, from, to, grown);
}

/*
 * AFTER UPDATE: the row has another key.  Called inside SPI_connect().
 */
void
dp_outlier_move_start(Outlier *o, const DpKey *from, const DpKey *to, bool grown)
{
	/* if it was announced, it stayed in its partition */
	Move	   *m = announced > 0 ? move_announced(o, from) : NULL;

	if (m == NULL || !dp_key_identical(o->decl, &m->to, to))
		m = move_add(o, from, to, grown);
	move_started(m);
	m->grown = grown;
	dp_outlier_move(o, from, to);
}

/*
 * AFTER DELETE of a row with extras: whether it goes to another partition, and
 * its extras have been sent after it.  Called inside SPI_connect().
 */
bool
dp_outlier_move_leaving(Outlier *o, const DpKey *from)
{
	Move	   *m = announced > 0 ? move_announced(o, from) : NULL;

	if (m == NULL)
		return false;
	move_started(m);
	dp_outlier_move(o, &m->from, &m->to);
	return true;
}

/*
 * BEFORE and AFTER INSERT: whether the row comes from another partition and
 * its extras are on the way.
 */
bool
dp_outlier_move_arriving(Outlier *o, const DpKey *to)
{
	int			depth = dp_trigger_depth();
	int			n = list_length(moves);
	int			i;

	/* it is the last one that was announced, or the last one that has started */
	for (i = n - 1; i >= 0; i--)
	{
		Move	   *m = list_nth(moves, i);

		if (move_is_mine(m, o, depth) && dp_key_identical(o->decl, &m->to, to))
			return true;
		if (i == n - 1 && next_announced > 0 && next_announced <= n)
		{
			m = list_nth(moves, next_announced - 1);
			if (move_is_mine(m, o, depth) && dp_key_identical(o->decl, &m->to, to))
				return true;
		}
	}
	return false;
}

/* Whether any move is under way: if not, nobody need look for one. */
bool
dp_outlier_moving(void)
{
	return moves != NIL;
}

/*
 * The statement has ended: all extras arrive, and then each row is brought in
 * order, because its array may have changed together with its key.
 */
void
dp_outlier_move_end(Outlier *o)
{
	List	   *mine = NIL;
	List	   *others = NIL;
	int			depth;
	MemoryContext old;
	ListCell   *lc;

	if (moves == NIL)
		return;
	depth = dp_trigger_depth();
	old = MemoryContextSwitchTo(moves_context);
	foreach(lc, moves)
	{
		Move	   *m = lfirst(lc);

		if (!move_is_mine(m, o, depth))
			others = lappend(others, m);
		else if (m->started)
			mine = lappend(mine, m);
	}
	list_free(moves);
	moves = others;
	moves_recount();
	MemoryContextSwitchTo(old);

	if (mine != NIL)
	{
		SPI_connect();
		foreach(lc, mine)
			move_arrive(o, &((Move *) lfirst(lc))->to);
		foreach(lc, mine)
		{
			Move	   *m = lfirst(lc);

			dp_outlier_moved(o, &m->to, m->grown);
		}
		SPI_finish();
	}
	if (moves == NIL && moves_context != NULL)
	{
		MemoryContextDelete(moves_context);
		moves_context = NULL;
	}
}

/*
 * The extras arrive.  A trigger of the user's may have written to the row in
 * the meantime and so given extras to the new key: they are newer.
 */
static void
move_arrive(Outlier *o, const DpKey *to)
{
	DpValueList newer = {0};

	if (o->link == NULL && dp_outlier_exists(o, to))
	{
		dp_outlier_page(o, to, 0, PG_INT64_MAX, &newer, true);
		dp_outlier_drop(o, to);
	}
	dp_outlier_move_finish(o, to);
	dp_outlier_append(o, to, newer.v, newer.n);
}

/* Remember a move until the statement ends. */
static Move *
move_add(Outlier *o, const DpKey *from, const DpKey *to, bool grown)
{
	MemoryContext old;
	Move	   *m;

	if (!callbacks_registered)
	{
		RegisterXactCallback(moves_xact, NULL);
		RegisterSubXactCallback(moves_subxact, NULL);
		callbacks_registered = true;
	}
	if (moves_context == NULL)
		moves_context = AllocSetContextCreate(TopTransactionContext, "docpatterns moves", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(moves_context);
	m = palloc0(sizeof(Move));
	m->target = o->decl->target;
	m->name = pstrdup(o->decl->name);
	m->depth = dp_trigger_depth();
	m->nestlevel = GetCurrentTransactionNestLevel();
	m->grown = grown;
	dp_key_copy(o->decl, from, &m->from);
	dp_key_copy(o->decl, to, &m->to);
	moves = lappend(moves, m);
	announced++;
	MemoryContextSwitchTo(old);
	return m;
}

/*
 * The move from this key that was announced and has not started.  Rows are
 * updated in one order and their AFTER triggers fire in the same, so that it is
 * usually the first.  An update that was tried again after waiting for a lock
 * has announced it twice: then the last counts.
 */
static Move *
move_announced(Outlier *o, const DpKey *from)
{
	int			depth = dp_trigger_depth();
	int			n = list_length(moves);
	Move	   *found = NULL;
	int			i;

	for (i = next_announced; i < n; i++)
	{
		Move	   *m = list_nth(moves, i);
		bool		matches = !m->started && move_is_mine(m, o, depth) && dp_key_identical(o->decl, &m->from, from);

		if (matches)
			found = m;
		else if (found != NULL)
			break;				/* attempts follow each other */
	}
	return found;
}

static void
move_started(Move *m)
{
	int			n = list_length(moves);

	if (!m->started)
		announced--;
	m->started = true;
	while (next_announced < n && ((Move *) list_nth(moves, next_announced))->started)
		next_announced++;
}

/* After moves have gone from the list. */
static void
moves_recount(void)
{
	ListCell   *lc;

	announced = 0;
	next_announced = 0;
	foreach(lc, moves)
	{
		if (!((Move *) lfirst(lc))->started)
			announced++;
	}
}

/* Whether a move belongs to the declaration and to the statement whose triggers are running. */
static bool
move_is_mine(const Move *m, Outlier *o, int depth)
{
	/* deeper: announced inside of the trigger of a foreign key, whose rows' other triggers are called by the statement around it */
	return m->depth >= depth && m->target == o->decl->target &&
		strcmp(m->name, o->decl->name) == 0;
}

/* At the end of a transaction nothing moves any more; the memory goes with it. */
static void
moves_xact(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		moves = NIL;
		moves_recount();
		moves_context = NULL;
	}
}

/* What a subtransaction was about to move is void when it is rolled back. */
static void
moves_subxact(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();
	ListCell   *lc;

	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	foreach(lc, moves)
	{
		if (((Move *) lfirst(lc))->nestlevel >= level)
			moves = foreach_delete_current(moves, lc);
	}
	moves_recount();
}
