/*
 * move.c
 *		Changes of keys: the extras of an outlier follow its row.
 *
 * While one statement changes the keys of several rows, the new key of one may
 * be the old key of another.  So the extras leave their old keys, marked as
 * moving, and arrive, when the statement has ended.  Until then they lie under
 * the key that their row had before, and a row that gets or has this key is
 * brought in order afterwards, too.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"

#include "kit/side/moves.h"
#include "patterns/outlier/outlier.h"

static void move_arrive(DpOutlier *o, const DpKey *to);

/*
 * The statement has ended: all extras leave, then they arrive, and then each
 * row is brought in order, because its array may have changed together with its
 * key.
 */
void
dp_outlier_move_end(DpOutlier *o)
{
	List *moves = dp_moves_take(o->decl);
	ListCell *lc;

	if (moves == NIL)
		return;
	SPI_connect();
	foreach(lc, moves)
	{
		DpMove *move = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (move->gone)
			dp_outlier_drop(o, &move->from);
		else
			dp_outlier_move(o, &move->from, &move->to);
	}
	foreach(lc, moves)
	{
		DpMove *move = lfirst(lc);

		if (!move->gone)
			move_arrive(o, &move->to);
	}
	foreach(lc, moves)
	{
		DpMove *move = lfirst(lc);

		if (!move->gone)
			dp_outlier_moved(o, &move->to, (move->flags & DP_OUTLIER_GROWN) != 0);
	}
	SPI_finish();
}

/*
 * The extras arrive.  A trigger of the user's may have written to the row in
 * the meantime and so given extras to the new key: they are newer.
 */
static void
move_arrive(DpOutlier *o, const DpKey *to)
{
	DpValueList newer = { 0 };

	if (o->link == NULL && dp_outlier_exists(o, to))
	{
		dp_outlier_page(o, to, 0, PG_INT64_MAX, &newer, true);
		dp_outlier_drop(o, to);
	}
	dp_outlier_move_finish(o, to);
	dp_outlier_append(o, to, newer.v, newer.n);
}
