/*
 * trigger.c
 *		How trigger functions begin, and the documents of the rows that they get.
 */
#include "postgres.h"

#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "kit/link.h"
#include "kit/note.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/tenant.h"
#include "kit/trigger.h"

static uint32 event_bit(TriggerEvent event);
static const char *creator_of(const char *pattern);

TriggerData *
dp_trigger_require(FunctionCallInfo fcinfo, const char *pattern, uint32 events, int nargs)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || (event_bit(trigdata->tg_event) & events) == 0 ||
		trigdata->tg_trigger->tgnargs < nargs)
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
						errmsg("trigger function \"%s\" must be created by %s()",
							   get_func_name(fcinfo->flinfo->fn_oid), creator_of(pattern))));
	return trigdata;
}

static uint32
event_bit(TriggerEvent event)
{
	uint32 operation = 1 << (event & TRIGGER_EVENT_OPMASK);

	if (TRIGGER_FIRED_INSTEAD(event))
		return DP_INSTEAD_OF(operation);
	if (TRIGGER_FIRED_FOR_ROW(event))
		return TRIGGER_FIRED_BEFORE(event) ? DP_BEFORE_ROW(operation) : DP_AFTER_ROW(operation);
	return TRIGGER_FIRED_BEFORE(event) ? DP_BEFORE_STATEMENT(operation)
									   : DP_AFTER_STATEMENT(operation);
}

static const char *
creator_of(const char *name)
{
	const DpPattern *pattern = dp_pattern_find(name);

	if (pattern == NULL)
		return name;
	return pattern->creator != NULL ? pattern->creator : psprintf("%s_enable", name);
}

bool
dp_trigger_elsewhere(const TriggerData *trigdata)
{
	return TRIGGER_FIRED_BY_TRUNCATE(trigdata->tg_event) &&
		   dp_is_distributed(RelationGetRelid(trigdata->tg_relation));
}

DpDecl *
dp_trigger_enter(FunctionCallInfo fcinfo, const char *pattern, uint32 events)
{
	TriggerData *trigdata = dp_trigger_require(fcinfo, pattern, events, 1);
	bool row = TRIGGER_FIRED_FOR_ROW(trigdata->tg_event);
	DpDecl *decl;

	if (row && fcinfo->flinfo->fn_extra == NULL && dp_partition_restoring(trigdata->tg_relation))
		return NULL;
	if (dp_trigger_elsewhere(trigdata))
		return NULL;
	dp_tenant_require_made(RelationGetRelid(trigdata->tg_relation));
	decl = dp_decl_of_trigger(fcinfo, pattern);
	if (decl == NULL && row)
		ereport(
			ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("trigger \"%s\" belongs to no declaration of the %s pattern on table \"%s\"",
					trigdata->tg_trigger->tgname, pattern,
					dp_relation_name(RelationGetRelid(trigdata->tg_relation))),
			 errhint(
				 "A trigger of the pattern was dropped or renamed by hand; drop the others and declare the pattern again.")));
	return decl != NULL && dp_decl_maintained(decl) ? decl : NULL;
}

DpDecl *
dp_trigger_enter_side(FunctionCallInfo fcinfo, const char *pattern, uint32 events)
{
	List *decls = dp_trigger_enter_sides(fcinfo, pattern, events);

	if (list_length(decls) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a table that each server has cannot be part of the %s pattern", pattern)));
	return decls == NIL ? NULL : linitial(decls);
}

List *
dp_trigger_enter_sides(FunctionCallInfo fcinfo, const char *pattern, uint32 events)
{
	TriggerData *trigdata = dp_trigger_require(fcinfo, pattern, events, 3);
	Oid relid = RelationGetRelid(trigdata->tg_relation);
	const char *link_id = trigdata->tg_trigger->tgargs[1];
	List *mains;
	List *decls = NIL;
	ListCell *lc;

	if (dp_trigger_elsewhere(trigdata))
		return NIL;
	dp_note_watch(relid);
	mains = dp_link_mains(link_id, relid);
	if (mains != NIL)
	{
		/* the declaration stays as it is until the statement ends */
		foreach(lc, mains)
			LockRelationOid(lfirst_oid(lc), RowExclusiveLock);
		mains = dp_link_mains(link_id, relid);
	}
	if (mains == NIL)
		dp_link_require_owner(link_id, true, relid);
	foreach(lc, mains)
	{
		DpDecl *decl = dp_decl_find(lfirst_oid(lc), pattern, trigdata->tg_trigger->tgargs[2]);

		if (dp_decl_maintained(decl))
			decls = lappend(decls, decl);
	}
	return decls;
}

Datum
dp_trigger_pass(FunctionCallInfo fcinfo)
{
	const TriggerData *trigdata = (TriggerData *) fcinfo->context;

	return PointerGetDatum(TRIGGER_FIRED_FOR_ROW(trigdata->tg_event) ? dp_trigger_row(trigdata)
																	 : NULL);
}

bool
dp_trigger_same_document(const TriggerData *trigdata, const DpDecl *decl)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	bool old_null;
	bool new_null;
	Datum old = heap_getattr(trigdata->tg_trigtuple, decl->doc_attnum, desc, &old_null);
	Datum new = heap_getattr(trigdata->tg_newtuple, decl->doc_attnum, desc, &new_null);
	Size size;

	if (old_null || new_null)
		return old_null && new_null;
	size = VARSIZE_ANY(DatumGetPointer(old));
	return (VARSIZE_ANY(DatumGetPointer(new)) == size &&
			memcmp(DatumGetPointer(old), DatumGetPointer(new), size) == 0) ||
		   datum_image_eq(old, new, false, -1);
}

struct varlena *
dp_tuple_bson(HeapTuple tuple, TupleDesc desc, int attnum)
{
	bool isnull;
	Datum value = heap_getattr(tuple, attnum, desc, &isnull);

	return isnull ? NULL : PG_DETOAST_DATUM_PACKED(value);
}

HeapTuple
dp_tuple_with_bson(HeapTuple tuple, TupleDesc desc, int attnum, struct varlena *value)
{
	Datum datum = PointerGetDatum(value);
	bool isnull = false;

	return heap_modify_tuple_by_cols(tuple, desc, 1, &attnum, &datum, &isnull);
}
