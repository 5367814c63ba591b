/*
 * side.c
 *		Side tables: their rows follow the rows of the user's table.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"

#include "kit/registry.h"
#include "kit/rows/by_statement.h"
#include "kit/side/side.h"
#include "kit/sql/template.h"

void
dp_side_trigger(DpDecl *decl, TriggerData *trigdata)
{
	if (!TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		dp_side_statement(decl, trigdata);
	else if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		return;
	else if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		dp_moves_before(decl, trigdata);
	else
		dp_side_after(decl, trigdata);
}

DpMove *
dp_side_after(DpDecl *decl, TriggerData *trigdata)
{
	DpMove deleted = { .gone = true };
	DpMove *move = dp_moves_after(decl, trigdata, &deleted.from);

	if (move != NULL)
		return move;
	SPI_connect();
	(void) decl->methods->side->leave(decl, &deleted);
	SPI_finish();
	return NULL;
}

void
dp_side_statement(DpDecl *decl, TriggerData *trigdata)
{
	const DpSideMethods *side = decl->methods->side;
	List *moves;
	List *left = NIL;
	ListCell *lc;
	ListCell *lc2;

	if (TRIGGER_FIRED_BY_TRUNCATE(trigdata->tg_event))
	{
		side->drop_orphans(decl);
		return;
	}
	moves = dp_moves_take(decl);
	if (moves == NIL)
		return;
	SPI_connect();
	foreach(lc, moves)
	{
		DpMove *move = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		/* a later statement, or a trigger, may have deleted the row */
		move->gone = move->gone || !dp_row_lock(decl, &move->to, "", DP_RUN_AS_OWNER);
		left = lappend(left, side->leave(decl, move));
	}
	forboth(lc, moves, lc2, left)
	{
		DpMove *move = lfirst(lc);

		if (!move->gone && lfirst(lc2) != NULL)
			side->arrive(decl, move, lfirst(lc2));
	}
	foreach(lc, moves)
	{
		DpMove *move = lfirst(lc);

		if (!move->gone && side->correct != NULL)
			side->correct(decl, move);
	}
	SPI_finish();
	list_free(moves);
}

void
dp_side_drop_orphans(DpDecl *decl, Oid side, const char *condition)
{
	SPIPlanPtr plan;

	SPI_connect();
	plan = dp_statement(decl,
						"DELETE FROM {relation} AS side WHERE {sql} NOT EXISTS"
						" (SELECT FROM {table} AS base WHERE {base.key = side.key})",
						side, condition);
	dp_run_marked(decl, plan, NULL, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE, side, decl->name,
				  DP_MARK_INTERNAL);
	SPI_finish();
}
