/*
 * move.c
 *		Changes of keys: the extras of an outlier follow its row.
 *
 * A statement may exchange the keys of two rows.  So all extras first leave their
 * old keys, marked as moving, and get their new keys when the statement has ended.
 * Until then they are stored under the row's old key, and a row that gets or has
 * this key is corrected afterwards too.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"

#include "kit/side/moves.h"
#include "patterns/outlier/outlier.h"

static void move_arrive(DpOutlier *o, const DpKey *to);

/*
 * Called at the end of the statement: moves all extras, then corrects each row, because its array
 * may have changed together with its key.
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
 * Removes the mark of moving extras. A user's trigger may have written to the row and added extras
 * under the new key: they are newer.
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
