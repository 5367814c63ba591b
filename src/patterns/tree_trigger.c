/*
 * tree_trigger.c
 *		The triggers of the tree pattern.
 */
#include "postgres.h"

#include "commands/trigger.h"

#include "patterns/tree.h"

DP_FUNCTION(dp_tree_trigger);
Datum
dp_tree_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;

	(void) dp_tree(dp_decl_of_trigger(fcinfo, "tree"));
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event) ? trigdata->tg_newtuple : trigdata->tg_trigtuple);
	return PointerGetDatum(NULL);
}
