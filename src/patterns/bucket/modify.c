/*
 * modify.c
 *		Writing to a relation of measurements: INSERT, COPY, UPDATE, DELETE and
 *		TRUNCATE, called by the executor.
 *
 * A statement that inserts one measurement leaves it waiting and packs due spans.
 * One that may insert many (INSERT ... SELECT, COPY) collects them (bulk.h) and
 * packs directly when it ends.  UPDATE and DELETE change waiting measurements at
 * once; changes in buckets are collected (change.h), and each bucket is packed
 * again when the statement ends.
 *
 * A statement ends here when its plan returns no more rows, before its AFTER
 * triggers fire, so that these see the result.  COPY does not show its end: with
 * triggers it does not collect.  BEFORE ROW triggers may read previous rows: with
 * them, nothing is collected.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "common/int.h"
#include "executor/executor.h"
#include "foreign/fdwapi.h"
#include "nodes/makefuncs.h"
#include "nodes/plannodes.h"
#include "optimizer/appendinfo.h"
#include "parser/parsetree.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "kit/derive/change.h"
#include "kit/sql/text.h"
#include "patterns/bucket/bulk.h"
#include "patterns/bucket/change.h"
#include "patterns/bucket/pack.h"
#include "patterns/bucket/slot.h"
#include "patterns/bucket/store.h"

/* A statement that writes to a relation */
typedef struct Modify
{
	DpBucketRel *rel;
	DpBucketStore *store;
	ResultRelInfo *info;
	CmdType operation;
	AttrNumber ctid; /* in the plan's rows */
	AttrNumber wholerow;
	DpBucketBulk *bulk; /* NULL: measurements are written immediately */
	DpBucketChanges *changes;
	bool ended;
	Datum *values; /* a row, in the relation's order of columns */
	bool *nulls;
	Datum *was; /* UPDATE: the row that is updated */
	bool *was_null;

	/* plan whose end is waited for */
	PlanState *plan;
	ExecProcNodeMtd plan_proc;
	MemoryContextCallback callback;
	struct Modify *next;
} Modify;

/* Those whose plans are watched */
static Modify *watched = NULL;

static void
add_targets(PlannerInfo *root, Index rtindex, RangeTblEntry *target_rte, Relation target);
static List *plan_modify(PlannerInfo *root, ModifyTable *plan, Index rtindex, int subplan);
static void begin_modify(ModifyTableState *mtstate, ResultRelInfo *info, List *private, int subplan,
						 int eflags);
static TupleTableSlot *
insert_row(EState *estate, ResultRelInfo *info, TupleTableSlot *slot, TupleTableSlot *plan_slot);
static TupleTableSlot *
update_row(EState *estate, ResultRelInfo *info, TupleTableSlot *slot, TupleTableSlot *plan_slot);
static TupleTableSlot *
delete_row(EState *estate, ResultRelInfo *info, TupleTableSlot *slot, TupleTableSlot *plan_slot);
static void end_modify(EState *estate, ResultRelInfo *info);
static void begin_insert(ModifyTableState *mtstate, ResultRelInfo *info);
static int updatable(Relation rel);
static RowMarkType row_mark(RangeTblEntry *rte, LockClauseStrength strength);
static void truncate_rows(List *rels, DropBehavior behavior, bool restart_seqs);
static Modify *modify_make(EState *estate, ResultRelInfo *info, CmdType operation);
static bool collects(ModifyTableState *mtstate, ResultRelInfo *info);
static void watch(Modify *modify, PlanState *plan);
static void unwatch(void *arg);
static TupleTableSlot *watched_plan(PlanState *plan);
static void statement_ended(Modify *modify);
static void read_slot(Modify *modify, TupleTableSlot *slot, Datum *values, bool *nulls);
static void check_row(Modify *modify, TupleTableSlot *slot, EState *estate);
static void follow_document(Modify *modify, TupleTableSlot *slot, EState *estate);
static bool field_of(DpBucketRel *rel, const DpValue *doc, const DpPath *path, DpValue *value);
static Datum time_of(DpBucketRel *rel, const DpValue *doc);
static void was_row(Modify *modify, TupleTableSlot *plan_slot);

void
dp_bucket_modify_routine(FdwRoutine *routine)
{
	routine->AddForeignUpdateTargets = add_targets;
	routine->PlanForeignModify = plan_modify;
	routine->BeginForeignModify = begin_modify;
	routine->ExecForeignInsert = insert_row;
	routine->ExecForeignUpdate = update_row;
	routine->ExecForeignDelete = delete_row;
	routine->EndForeignModify = end_modify;
	routine->BeginForeignInsert = begin_insert;
	routine->EndForeignInsert = end_modify;
	routine->IsForeignRelUpdatable = updatable;
	routine->GetForeignRowMarkType = row_mark;
	routine->ExecForeignTruncate = truncate_rows;
}

/* UPDATE and DELETE need the origin of a row, and the whole row for RETURNING or triggers. */
static void
add_targets(PlannerInfo *root, Index rtindex, RangeTblEntry *target_rte, Relation target)
{
	Var *var = makeVar(rtindex, SelfItemPointerAttributeNumber, TIDOID, -1, InvalidOid, 0);

	add_row_identity_var(root, var, rtindex, "ctid");
	if (root->parse->commandType == CMD_DELETE && root->parse->returningList != NIL)
	{
		var = makeVar(rtindex, InvalidAttrNumber, RECORDOID, -1, InvalidOid, 0);
		add_row_identity_var(root, var, rtindex, "wholerow");
	}
}

/*
 * Refuse what would do nothing.
 */
static List *
plan_modify(PlannerInfo *root, ModifyTable *plan, Index rtindex, int subplan)
{
	if (plan->onConflictAction != ONCONFLICT_NONE)
	{
		RangeTblEntry *rte = planner_rt_fetch(rtindex, root);

		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("ON CONFLICT is not supported for \"%s\"", dp_relation_name(rte->relid)),
			 errdetail("It is a relation of buckets, which has no unique index."),
			 errhint(
				 "Give bucket_create() a granularity and same_slot: 'keep' ignores a second measurement of a slot, 'replace' and 'add' update the first.")));
	}
	return NIL;
}

/*
 * A statement begins.
 */
static void
begin_modify(ModifyTableState *mtstate, ResultRelInfo *info, List *private, int subplan, int eflags)
{
	EState *estate = mtstate->ps.state;
	PlanState *plan = outerPlanState(mtstate);
	Modify *modify;

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	modify = modify_make(estate, info, mtstate->operation);
	if (mtstate->operation != CMD_INSERT)
	{
		modify->store->cid = estate->es_output_cid;
		modify->ctid = ExecFindJunkAttributeInTlist(plan->plan->targetlist, "ctid");
		modify->wholerow = ExecFindJunkAttributeInTlist(plan->plan->targetlist, "wholerow");
		modify->changes = dp_bucket_changes_create(modify->store);
		if (!AttributeNumberIsValid(modify->ctid))
			elog(ERROR, "could not find junk ctid column");
		watch(modify, plan);
	}
	else if (!(IsA(plan, ResultState) && outerPlanState(plan) == NULL) && collects(mtstate, info))
	{
		modify->bulk = dp_bucket_bulk_create(modify->store);
		watch(modify, plan);
	}
}

/*
 * COPY, or an INSERT that was routed here from a partitioned table.
 */
static void
begin_insert(ModifyTableState *mtstate, ResultRelInfo *info)
{
	EState *estate = mtstate->ps.state;
	Modify *modify;
	TriggerDesc *triggers = info->ri_TrigDesc;

	if (mtstate->ps.plan != NULL &&
		((ModifyTable *) mtstate->ps.plan)->onConflictAction != ONCONFLICT_NONE)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("ON CONFLICT is not supported for relations of buckets")));
	modify = modify_make(estate, info, CMD_INSERT);
	if (collects(mtstate, info) && !(triggers != NULL && (triggers->trig_insert_after_row ||
														  triggers->trig_insert_after_statement ||
														  triggers->trig_insert_new_table)))
		modify->bulk = dp_bucket_bulk_create(modify->store);
}

/*
 * One new measurement.
 */
static TupleTableSlot *
insert_row(EState *estate, ResultRelInfo *info, TupleTableSlot *slot, TupleTableSlot *plan_slot)
{
	Modify *modify = info->ri_FdwState;
	DpBucketRel *rel = modify->rel;
	DpBucketGroup group;
	int64 time = 0;

	check_row(modify, slot, estate);
	if (modify->bulk != NULL)
	{
		dp_bucket_bulk_add(modify->bulk, modify->values, modify->nulls);
		if (unlikely(modify->ended))
			statement_ended(modify);
		return slot;
	}

	if (rel->same_slot != DP_SLOT_NONE)
	{
		if (!dp_bucket_slot_insert(modify->store, modify->values, modify->nulls, NULL))
			return NULL;
	}
	else
		dp_bucket_recent_insert(modify->store, modify->values, modify->nulls, NULL);
	dp_bucket_group_of_row(rel, modify->values, modify->nulls, &group);
	if (rel->time != NULL)
		time = DatumGetInt64(modify->values[rel->time - rel->columns]);
	if (dp_bucket_note(modify->store, &group, time, 1))
	{
		CommandCounterIncrement();
		dp_bucket_pack(modify->store, &group, dp_bucket_rel_start(rel, time), false);
		dp_bucket_packed_flush(modify->store);
	}
	return slot;
}

/*
 * A measurement gets other values.  Returns NULL if this statement has changed
 * it already.
 */
static TupleTableSlot *
update_row(EState *estate, ResultRelInfo *info, TupleTableSlot *slot, TupleTableSlot *plan_slot)
{
	Modify *modify = info->ri_FdwState;
	DpBucketStore *store = modify->store;
	DpBucketOrigin origin;
	TM_Result result;
	Datum ctid;
	bool isnull;

	ctid = ExecGetJunkAttribute(plan_slot, modify->ctid, &isnull);
	if (isnull)
		elog(ERROR, "ctid is NULL");
	dp_bucket_origin(estate, RelationGetRelid(info->ri_RelationDesc),
					 (ItemPointer) DatumGetPointer(ctid), &origin);
	check_row(modify, slot, estate);

	if (origin.packed)
		return dp_bucket_changes_add(modify->changes, &origin.tid, origin.position, modify->values,
									 modify->nulls)
				   ? slot
				   : NULL;

	if (modify->rel->same_slot != DP_SLOT_NONE)
	{
		was_row(modify, plan_slot);
		if (!dp_bucket_slot_same(store, modify->was, modify->was_null, modify->values,
								 modify->nulls))
			dp_bucket_slot_free(store, modify->values, modify->nulls, NULL);
	}
	result = dp_bucket_recent_update(store, &origin.tid, modify->values, modify->nulls);
	if (result == TM_SelfModified && store->recent.failure.cmax == store->cid)
		return NULL;
	if (result == TM_SelfModified)
		dp_bucket_changed_twice(false);
	if (result == TM_Deleted)
		dp_bucket_changes_again(modify->changes, &origin.tid, modify->values, modify->nulls);
	else if (result != TM_Ok)
		dp_bucket_lost();
	return slot;
}

/* Deletes a measurement. Returns NULL if this statement has already changed it. */
static TupleTableSlot *
delete_row(EState *estate, ResultRelInfo *info, TupleTableSlot *slot, TupleTableSlot *plan_slot)
{
	Modify *modify = info->ri_FdwState;
	DpBucketStore *store = modify->store;
	DpBucketOrigin origin;
	Datum ctid;
	bool isnull;

	ctid = ExecGetJunkAttribute(plan_slot, modify->ctid, &isnull);
	if (isnull)
		elog(ERROR, "ctid is NULL");
	dp_bucket_origin(estate, RelationGetRelid(info->ri_RelationDesc),
					 (ItemPointer) DatumGetPointer(ctid), &origin);

	if (origin.packed)
	{
		if (!dp_bucket_changes_add(modify->changes, &origin.tid, origin.position, NULL, NULL))
			return NULL;
	}
	else
	{
		TM_Result result = dp_table_delete(&store->recent, &origin.tid, true);

		if (result == TM_SelfModified && store->recent.failure.cmax == store->cid)
			return NULL;
		if (result == TM_SelfModified)
			dp_bucket_changed_twice(false);
		if (result == TM_Deleted)
			dp_bucket_changes_again(modify->changes, &origin.tid, NULL, NULL);
		else if (result != TM_Ok)
			dp_bucket_lost();
	}

	/* for RETURNING: the former row */
	if (AttributeNumberIsValid(modify->wholerow))
	{
		Datum row = ExecGetJunkAttribute(plan_slot, modify->wholerow, &isnull);

		if (!isnull)
		{
			HeapTupleHeader header = DatumGetHeapTupleHeader(row);
			HeapTupleData tuple;

			tuple.t_len = HeapTupleHeaderGetDatumLength(header);
			ItemPointerSetInvalid(&tuple.t_self);
			tuple.t_tableOid = RelationGetRelid(info->ri_RelationDesc);
			tuple.t_data = header;
			ExecForceStoreHeapTuple(heap_copytuple(&tuple), slot, true);
		}
		else
			ExecStoreAllNullTuple(slot);
	}
	else
		ExecStoreAllNullTuple(slot);
	return slot;
}

/*
 * The statement has ended.
 */
static void
end_modify(EState *estate, ResultRelInfo *info)
{
	Modify *modify = info->ri_FdwState;

	if (modify == NULL)
		return;
	statement_ended(modify);
	unwatch(modify);
	dp_bucket_store_close(modify->store);
	info->ri_FdwState = NULL;
}

static int
updatable(Relation rel)
{
	return (1 << CMD_INSERT) | (1 << CMD_UPDATE) | (1 << CMD_DELETE);
}

/*
 * Row locks would lock nothing; rows of a join with UPDATE are copied.
 */
static RowMarkType
row_mark(RangeTblEntry *rte, LockClauseStrength strength)
{
	if (strength != LCS_NONE)
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot lock single measurements of \"%s\"", dp_relation_name(rte->relid)),
			 errhint(
				 "Update them in one statement, or take a lock with pg_advisory_xact_lock() or on a row of another table first.")));
	return ROW_MARK_COPY;
}

/*
 * TRUNCATE of relations: their owners truncate the underlying tables. Informs derivations of them.
 */
static void
truncate_rows(List *rels, DropBehavior behavior, bool restart_seqs)
{
	ListCell *lc;

	foreach(lc, rels)
	{
		DpBucketRel *rel = dp_bucket_rel(RelationGetRelid((Relation) lfirst(lc)), false);
		StringInfoData sql;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "TRUNCATE TABLE ");
		dp_sql_table(&sql, rel->packed);
		appendStringInfoString(&sql, ", ");
		dp_sql_table(&sql, rel->recent);
		if (restart_seqs)
			appendStringInfoString(&sql, " RESTART IDENTITY");

		dp_bucket_run_beneath(rel, sql.data, (Datum) 0);

		/* before PostgreSQL 16 foreign tables have no TRUNCATE triggers */
		dp_changed_wholly(rel->relid, true);
	}
}

/* The state of a statement. */
static Modify *
modify_make(EState *estate, ResultRelInfo *info, CmdType operation)
{
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	Modify *modify = palloc0(sizeof(Modify));

	modify->rel = dp_bucket_rel(RelationGetRelid(info->ri_RelationDesc), false);
	modify->info = info;
	modify->operation = operation;
	modify->values = palloc(sizeof(Datum) * Max(modify->rel->ncolumns, 1));
	modify->nulls = palloc(sizeof(bool) * Max(modify->rel->ncolumns, 1));
	if (operation == CMD_UPDATE)
	{
		modify->was = palloc(sizeof(Datum) * Max(modify->rel->ncolumns, 1));
		modify->was_null = palloc(sizeof(bool) * Max(modify->rel->ncolumns, 1));
	}
	modify->store = dp_bucket_store_open(modify->rel, estate);
	info->ri_FdwState = modify;
	MemoryContextSwitchTo(old);
	return modify;
}

/* Whether an INSERT or COPY may hold measurements back. */
static bool
collects(ModifyTableState *mtstate, ResultRelInfo *info)
{
	DpBucketRel *rel = ((Modify *) info->ri_FdwState)->rel;

	/* pages are in the order of arrival, and slots are taken one by one */
	return rel->time != NULL && rel->same_slot == DP_SLOT_NONE &&
		   !(info->ri_TrigDesc != NULL && info->ri_TrigDesc->trig_insert_before_row);
}

/* Have statement_ended() called when the plan gives no more rows. */
static void
watch(Modify *modify, PlanState *plan)
{
	Modify *other;

	modify->plan = plan;
	modify->plan_proc = plan->ExecProcNodeReal;
	for (other = watched; other != NULL; other = other->next)
	{
		if (other->plan == plan)
			modify->plan_proc = other->plan_proc;
	}
	modify->next = watched;
	watched = modify;
	modify->callback.func = unwatch;
	modify->callback.arg = modify;
	MemoryContextRegisterResetCallback(modify->store->estate->es_query_cxt, &modify->callback);
	ExecSetExecProcNode(plan, watched_plan);
}

/* The query is over, one way or the other. */
static void
unwatch(void *arg)
{
	Modify **m;

	for (m = &watched; *m != NULL; m = &(*m)->next)
	{
		if (*m == arg)
		{
			*m = (*m)->next;
			return;
		}
	}
}

/* See fdw.h. */
bool
dp_bucket_changing(Oid relid)
{
	Modify *modify;

	for (modify = watched; modify != NULL; modify = modify->next)
	{
		if (modify->changes != NULL && !modify->ended && modify->rel->relid == relid)
			return true;
	}
	return false;
}

/* A plan that is watched gives a row. */
static TupleTableSlot *
watched_plan(PlanState *plan)
{
	Modify *modify;
	TupleTableSlot *slot = NULL;
	bool first = true;

	for (modify = watched; modify != NULL; modify = modify->next)
	{
		if (modify->plan != plan)
			continue;
		if (first)
		{
			slot = modify->plan_proc(plan);
			first = false;
			if (likely(!TupIsNull(slot)))
				return slot;
		}
		modify->ended = true;
		statement_ended(modify);
	}
	if (first)
		elog(ERROR, "a plan is not watched any more");
	return slot;
}

/* Writes collected measurements and changes. */
static void
statement_ended(Modify *modify)
{
	DpBucketStore *store = modify->store;
	bool fires = store->recent.fires || store->packed.fires;

	if (modify->operation == CMD_INSERT && modify->bulk == NULL)
		return;
	if (fires)
		dp_bucket_store_begin(store);
	if (modify->bulk != NULL)
		dp_bucket_bulk_finish(modify->bulk);
	if (modify->changes != NULL)
		dp_bucket_changes_apply(modify->changes);
	if (fires)
		dp_bucket_store_end(store);
}

/* The columns of a row of the relation. */
static void
read_slot(Modify *modify, TupleTableSlot *slot, Datum *values, bool *nulls)
{
	DpBucketRel *rel = modify->rel;
	int i;

	slot_getallattrs(slot);
	for (i = 0; i < rel->ncolumns; i++)
	{
		int att = rel->columns[i].attnum - 1;

		values[i] = slot->tts_values[att];
		nulls[i] = slot->tts_isnull[att];
	}
}

/*
 * Reads a new row and checks it: the executor does not check constraints of foreign tables, and an
 * infinite time belongs to no bucket.
 */
static void
check_row(Modify *modify, TupleTableSlot *slot, EState *estate)
{
	DpBucketRel *rel = modify->rel;

	read_slot(modify, slot, modify->values, modify->nulls);
	if (rel->doc != NULL && !modify->nulls[rel->doc - rel->columns])
		follow_document(modify, slot, estate);
	if (rel->time != NULL)
	{
		int at = rel->time - rel->columns;

		if (unlikely(modify->nulls[at]))
			ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
							errmsg("the time of a measurement in column \"%s\" of \"%s\" is null",
								   rel->time->name, dp_bucket_rel_name(rel)),
							errtablecol(modify->info->ri_RelationDesc, rel->time->attnum)));
		if (unlikely(TIMESTAMP_NOT_FINITE(DatumGetTimestamp(modify->values[at]))))
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
					 errmsg("the time of a measurement in column \"%s\" of \"%s\" is infinite",
							rel->time->name, dp_bucket_rel_name(rel)),
					 errhint("No bucket begins or ends at infinity.")));
	}
	if (RelationGetDescr(modify->info->ri_RelationDesc)->constr != NULL)
		ExecConstraints(modify->info, slot, estate);
	if (unlikely(modify->info->ri_RelationDesc->rd_rel->relispartition))
		ExecPartitionCheck(modify->info, slot, estate, true);
}

/*
 * Sets the columns that follow the document.  Raises CHECK_VIOLATION if the statement gives one of
 * them another value.
 */
static void
follow_document(Modify *modify, TupleTableSlot *slot, EState *estate)
{
	DpBucketRel *rel = modify->rel;
	Bitmapset *assigned =
		modify->operation == CMD_UPDATE ? ExecGetUpdatedCols(modify->info, estate) : NULL;
	MemoryContext old = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	DpValue doc =
		dp_value_of_document(PG_DETOAST_DATUM_PACKED(modify->values[rel->doc - rel->columns]));

	for (int i = -1; i < rel->ngroups; i++)
	{
		DpBucketColumn *column = i < 0 ? rel->time : rel->groups[i];
		int at = column - rel->columns;
		Datum given = modify->values[at];
		bool is_given =
			!modify->nulls[at] &&
			(modify->operation != CMD_UPDATE ||
			 bms_is_member(column->attnum - FirstLowInvalidHeapAttributeNumber, assigned));
		bool same;
		DpValue value;

		if (i < 0)
		{
			modify->values[at] = time_of(rel, &doc);
			modify->nulls[at] = false;
			same = is_given && given == modify->values[at];
		}
		else
		{
			modify->nulls[at] = !field_of(rel, &doc, rel->group_paths[i], &value);
			if (!modify->nulls[at])
				modify->values[at] = PointerGetDatum(dp_value_to_varlena(&value));
			same = is_given && !modify->nulls[at] &&
				   datumIsEqual(PointerGetDatum(PG_DETOAST_DATUM(given)), modify->values[at], false,
								-1);
		}
		if (is_given && !same)
			ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
							errmsg("column \"%s\" of \"%s\" follows a field of the document",
								   column->name, dp_bucket_rel_name(rel)),
							errdetail("It was written with another value."),
							errhint("Write the document alone."),
							errtablecol(modify->info->ri_RelationDesc, column->attnum)));
		slot->tts_values[column->attnum - 1] = modify->values[at];
		slot->tts_isnull[column->attnum - 1] = modify->nulls[at];
	}
	/* triggers read the tuple, if there is one */
	if (TTS_IS_HEAPTUPLE(slot) && ((HeapTupleTableSlot *) slot)->tuple != NULL)
	{
		ExecForceStoreHeapTuple(heap_form_tuple(slot->tts_tupleDescriptor, slot->tts_values,
												slot->tts_isnull),
								slot, false);
		read_slot(modify, slot, modify->values, modify->nulls);
	}
	MemoryContextSwitchTo(old);
}

/*
 * The value of a field that a document is grouped by; false if it has none.  Raises CHECK_VIOLATION
 * for an array there or on the way: filters look into arrays, and a column has one value.
 */
static bool
field_of(DpBucketRel *rel, const DpValue *doc, const DpPath *path, DpValue *value)
{
	const uint8 *element;

	*value = *doc;
	for (int i = 0; i < path->nsteps; i++)
	{
		DpValue container = *value;

		if (container.type != DP_TYPE_DOCUMENT ||
			!dp_step_find(&container, &path->steps[i], &element, value))
			return false;
		if (value->type == DP_TYPE_ARRAY)
		{
			StringInfoData field;

			initStringInfo(&field);
			dp_path_to_text(&field, path);
			ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
							errmsg("field \"%s\" of a document of \"%s\" must not be an array",
								   field.data, dp_bucket_rel_name(rel)),
							errdetail("Documents are grouped by this field.")));
		}
	}
	return true;
}

/*
 * The time of a document.  Raises NOT_NULL_VIOLATION if it has none, CHECK_VIOLATION if it is not a
 * date, DATETIME_VALUE_OUT_OF_RANGE for a date that is not a timestamptz.
 */
static Datum
time_of(DpBucketRel *rel, const DpValue *doc)
{
	DpValue value = { .type = DP_TYPE_EOD };
	StringInfoData field;
	int64 time;

	if (likely(dp_path_find(doc->data, doc->len, rel->time_path, &value) &&
			   value.type == DP_TYPE_DATE))
	{
		time = dp_get_int64(value.data);
		if (pg_sub_s64_overflow(time, DP_EPOCH_SHIFT_MS, &time) ||
			pg_mul_s64_overflow(time, 1000, &time) || !IS_VALID_TIMESTAMP(time))
			ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
							errmsg("timestamp out of range")));
		return Int64GetDatum(time);
	}
	initStringInfo(&field);
	dp_path_to_text(&field, rel->time_path);
	if (value.type == DP_TYPE_EOD || value.type == DP_TYPE_NULL)
		ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
						errmsg("a document of \"%s\" has no time in field \"%s\"",
							   dp_bucket_rel_name(rel), field.data)));
	ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
					errmsg("field \"%s\" of a document of \"%s\" must be a date", field.data,
						   dp_bucket_rel_name(rel)),
					errdetail("Found a value of BSON type \"%s\".", dp_type_name(value.type))));
}

/* The row that is updated, as it was when it was read. */
static void
was_row(Modify *modify, TupleTableSlot *plan_slot)
{
	bool isnull;
	Datum row = ExecGetJunkAttribute(plan_slot, modify->wholerow, &isnull);
	HeapTupleHeader header;
	HeapTupleData tuple;
	TupleDesc desc = RelationGetDescr(modify->info->ri_RelationDesc);
	Datum *values = palloc(sizeof(Datum) * desc->natts);
	bool *nulls = palloc(sizeof(bool) * desc->natts);
	int i;

	if (isnull)
		elog(ERROR, "a row that is updated is NULL");
	header = DatumGetHeapTupleHeader(row);
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = header;
	heap_deform_tuple(&tuple, desc, values, nulls);
	for (i = 0; i < modify->rel->ncolumns; i++)
	{
		modify->was[i] = values[modify->rel->columns[i].attnum - 1];
		modify->was_null[i] = nulls[modify->rel->columns[i].attnum - 1];
	}
	pfree(values);
	pfree(nulls);
}
