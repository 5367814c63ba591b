/*
 * write.c
 *		Writes rows from C, without a statement for each.
 *
 * A writer does what the executor does for a statement: an EState with the table as its only
 * relation, triggers fired and queued, indexes opened when an entry is made.  Facts that do not
 * change between statements (owner, columns, triggers to fire, prepared checks) are cached until
 * any relation changes.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "parser/parse_relation.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/note.h"
#include "kit/rows/later.h"
#include "kit/rows/state.h"
#include "kit/shard.h"
#include "kit/sql/text.h"

/* After so many consecutive new rows, index entries are batched */
#define NEW_ROWS 64

/* New rows that are inserted into a table at once */
#define MANY_ROWS 128

static void leaf_arm(DpWriter *w, DpWriteLeaf *leaf);
static void leaf_indexes(DpWriter *w, DpWriteLeaf *leaf);
static bool leaf_batches(DpWriteLeaf *leaf);
static void statement_begin(DpWriter *w, CmdType event);
static void statement_end(DpWriter *w);
static Snapshot crosscheck_of(const DpWriter *w);
static DpWriteResult write_update(DpWriter *w, DpWriteLeaf *leaf, struct varlena *doc);
static DpLockResult lock_for_update(DpWriter *w, TupleTableSlot *slot);
static DpWriteResult write_delete(DpWriter *w, DpWriteLeaf *leaf);
static void write_insert(DpWriter *w, DpWriteLeaf *leaf);
static DpWriteResult run_update(DpWriter *w, struct varlena *doc);
static void run_insert(DpWriter *w, struct varlena *doc);
static void
write_many(DpWriter *w, DpWriteLeaf *leaf, Datum *const *values, bool *const *nulls, int n);
static void insert_statement(DpWriter *w, const Datum *values, const bool *nulls);
static void check_row(DpWriter *w, DpWriteLeaf *leaf, TupleTableSlot *slot);
static void all_columns(DpWriter *w);
static bool same_id(struct varlena *a, struct varlena *b);
static void defaults_prepare(DpWriter *w);
static DpWriteResult write_failed(DpWriter *w, TM_Result result);
static void write_lost(DpWriter *w) pg_attribute_noreturn();
static void write_suppressed(DpWriter *w) pg_attribute_noreturn();

DpWriter *
dp_writer_open(Oid relid, const char *column, int flags, const char *mark)
{
	EState *estate;
	MemoryContext old;
	DpWriter *w;
	RangeTblEntry *rte;

	dp_later_write(InvalidOid);
	estate = CreateExecutorState();
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	w = palloc0(sizeof(DpWriter));
	w->context = estate->es_query_cxt;
	w->estate = estate;
	w->column = column != NULL ? pstrdup(column) : NULL;
	w->flags = flags;
	w->mark_name = mark != NULL ? pstrdup(mark) : NULL;
	w->mark_kind = (flags & DP_WRITE_ORDINARY) ? DP_MARK_NONE
				   : mark != NULL              ? DP_MARK_INTERNAL
											   : DP_MARK_DERIVED;
	dp_note_watch(relid);
	w->rel = table_open(relid, RowExclusiveLock);
	if (w->rel->rd_rel->relkind != RELKIND_RELATION &&
		w->rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" is not a table", dp_relation_name(relid))));
	dp_refuse_distributed(relid);

	rte = makeNode(RangeTblEntry);
	rte->rtekind = RTE_RELATION;
	rte->relid = relid;
	rte->relkind = w->rel->rd_rel->relkind;
	rte->rellockmode = RowExclusiveLock;
	w->root = dp_write_leaf(w, w->rel);
	dp_init_range_table(estate, rte, w->columns);
	if (w->root->doc > 0)
		*w->columns = bms_make_singleton(w->root->doc - FirstLowInvalidHeapAttributeNumber);
	MemoryContextSwitchTo(old);
	return w;
}

/* Uses the facts of this skip from now on. */
void
dp_writer_skip(DpWriter *w, DpSkipTrigger skip)
{
	MemoryContext old = MemoryContextSwitchTo(w->context);

	w->skip = skip;
	w->root->facts = dp_table_facts(w->rel, skip);
	leaf_arm(w, w->root);
	MemoryContextSwitchTo(old);
}

int64
dp_writer_close(DpWriter *w)
{
	int64 rows = w->rows;
	ListCell *lc;
	int i;

	dp_write_clear(w);
	dp_write_scan_end(w);
	dp_write_entries(w);
	if (w->query)
		statement_end(w);
	foreach(lc, w->scans)
	{
		DpWriteSearch *scan = lfirst(lc);

		index_endscan(scan->desc);
		index_close(scan->index, NoLock);
	}
	if (w->epq_ready)
		EvalPlanQualEnd(&w->epq);
	if (w->snapshot != NULL)
		UnregisterSnapshot(w->snapshot);
	if (w->kept != NULL)
		UnregisterSnapshot(w->kept);
	foreach(lc, w->leaves)
	{
		DpWriteLeaf *leaf = lfirst(lc);

		if (leaf->found != NULL)
			ExecDropSingleTupleTableSlot(leaf->found);
		if (leaf->written != NULL)
			ExecDropSingleTupleTableSlot(leaf->written);
	}
	for (i = 0; w->many != NULL && i < MANY_ROWS && w->many[i] != NULL; i++)
		ExecDropSingleTupleTableSlot(w->many[i]);
	ExecResetTupleTable(w->estate->es_tupleTable, false); /* slots of triggers */
	ExecCloseResultRelations(w->estate);
	foreach(lc, w->leaves)
		table_close(((DpWriteLeaf *) lfirst(lc))->rel, NoLock);
	FreeExecutorState(w->estate);
	return rows;
}

void
dp_writer_refresh(DpWriter *w)
{
	dp_write_entries(w);
	CommandCounterIncrement();
	w->outdated = true;
}

void
dp_writer_keep(DpWriter *w)
{
	if (w->kept == NULL && w->snapshot != NULL)
		w->kept = RegisterSnapshot(w->snapshot);
}

void
dp_writer_refresh_keep_refs(DpWriter *w)
{
	dp_writer_keep(w);
	dp_writer_refresh(w);
}

void
dp_writer_inserted(DpWriter *w, bool inserted)
{
	w->inserted = inserted;
	if (!inserted)
		dp_write_entries(w);
}

void
dp_writer_leave(DpWriter *w, bool leave)
{
	w->leave = leave;
}

Relation
dp_writer_relation(DpWriter *w)
{
	return w->rel;
}

DpWriteResult
dp_writer_update(DpWriter *w, struct varlena *doc)
{
	DpWriteLeaf *leaf = w->current;
	struct varlena *before = dp_writer_document(w);
	TupleTableSlot *slot = leaf->written;
	int natts = RelationGetDescr(leaf->rel)->natts;

	if (before != NULL && (doc == before || dp_same_bytes(doc, before)))
	{
		dp_write_clear(w);
		return DP_WRITE_SAME;
	}
	ExecClearTuple(slot);
	slot_getallattrs(leaf->found);
	memcpy(slot->tts_values, leaf->found->tts_values, sizeof(Datum) * natts);
	memcpy(slot->tts_isnull, leaf->found->tts_isnull, sizeof(bool) * natts);
	slot->tts_values[leaf->doc - 1] = PointerGetDatum(doc);
	slot->tts_isnull[leaf->doc - 1] = false;
	ExecStoreVirtualTuple(slot);
	return run_update(w, doc);
}

DpWriteResult
dp_writer_update_row(DpWriter *w, const Datum *values, const bool *nulls)
{
	DpWriteLeaf *leaf = w->current;
	TupleTableSlot *slot = leaf->written;
	TupleDesc desc = RelationGetDescr(leaf->rel);
	bool same = true;
	int i;

	slot_getallattrs(leaf->found);
	for (i = 0; i < desc->natts && same; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || att->attgenerated)
			continue;
		same = nulls[i] == leaf->found->tts_isnull[i] &&
			   (nulls[i] ||
				datum_image_eq(values[i], leaf->found->tts_values[i], att->attbyval, att->attlen));
	}
	if (same)
	{
		dp_write_clear(w);
		return DP_WRITE_SAME;
	}
	all_columns(w);
	ExecClearTuple(slot);
	memcpy(slot->tts_values, values, sizeof(Datum) * desc->natts);
	memcpy(slot->tts_isnull, nulls, sizeof(bool) * desc->natts);
	ExecStoreVirtualTuple(slot);
	return run_update(w, NULL);
}

DpWriteResult
dp_writer_delete(DpWriter *w)
{
	MemoryContext old = MemoryContextSwitchTo(w->context); /* indexes and triggers allocate there */
	DpActing saved;
	DpMark mark;
	volatile DpWriteResult result = DP_WRITE_DONE;

	dp_act_as(w->root->facts->owner, &saved);
	dp_mark_push(&mark, RelationGetRelid(w->rel), w->mark_name, w->mark_kind);
	PG_TRY();
	{
		statement_begin(w, CMD_DELETE);
		result = write_delete(w, w->current);
	}
	PG_FINALLY();
	{
		dp_mark_pop(&mark);
		dp_act_end(&saved);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	ResetPerTupleExprContext(w->estate);
	if (result != DP_WRITE_DEADLOCK)
		dp_write_clear(w);
	return result;
}

void
dp_writer_insert(DpWriter *w, struct varlena *doc)
{
	TupleTableSlot *slot = w->root->written;
	TupleDesc desc = RelationGetDescr(w->rel);
	ExprContext *econtext;
	int i;

	if (w->rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		Datum *values = palloc0(sizeof(Datum) * desc->natts);
		bool *nulls = palloc(sizeof(bool) * desc->natts);

		memset(nulls, true, sizeof(bool) * desc->natts);
		values[w->root->doc - 1] = PointerGetDatum(doc);
		nulls[w->root->doc - 1] = false;
		insert_statement(w, values, nulls);
		return;
	}

	if (w->defaults == NULL)
		defaults_prepare(w);
	ExecClearTuple(slot);
	econtext = GetPerTupleExprContext(w->estate);
	for (i = 0; i < desc->natts; i++)
	{
		slot->tts_values[i] = (Datum) 0;
		slot->tts_isnull[i] = true;
		if (i == w->root->doc - 1)
		{
			slot->tts_values[i] = PointerGetDatum(doc);
			slot->tts_isnull[i] = false;
		}
		else if (w->defaults[i] != NULL)
			slot->tts_values[i] =
				ExecEvalExprSwitchContext(w->defaults[i], econtext, &slot->tts_isnull[i]);
	}
	ExecStoreVirtualTuple(slot);
	run_insert(w, doc);
}

void
dp_writer_insert_row(DpWriter *w, const Datum *values, const bool *nulls)
{
	TupleTableSlot *slot = w->root->written;
	int natts = RelationGetDescr(w->rel)->natts;

	if (w->rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		insert_statement(w, values, nulls);
		return;
	}
	ExecClearTuple(slot);
	memcpy(slot->tts_values, values, sizeof(Datum) * natts);
	memcpy(slot->tts_isnull, nulls, sizeof(bool) * natts);
	ExecStoreVirtualTuple(slot);
	run_insert(w, NULL);
}

/* Inserts MANY_ROWS at a time. */
void
dp_writer_insert_rows(DpWriter *w, Datum *const *values, bool *const *nulls, int n)
{
	DpWriteLeaf *leaf = w->root;
	TriggerDesc *triggers = leaf->info->ri_TrigDesc;
	MemoryContext old;
	DpActing saved;
	DpMark mark;
	int i;

	if (n < 2 || w->rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE ||
		(triggers != NULL && (triggers->trig_insert_before_row || triggers->trig_insert_after_row ||
							  triggers->trig_insert_new_table)))
	{
		for (i = 0; i < n; i++)
			dp_writer_insert_row(w, values[i], nulls[i]);
		return;
	}
	old = MemoryContextSwitchTo(w->context);
	dp_act_as(leaf->facts->owner, &saved);
	dp_mark_push(&mark, RelationGetRelid(w->rel), w->mark_name, w->mark_kind);
	PG_TRY();
	{
		statement_begin(w, CMD_INSERT);
		for (i = 0; i < n; i += MANY_ROWS)
			write_many(w, leaf, values + i, nulls + i, Min(MANY_ROWS, n - i));
	}
	PG_FINALLY();
	{
		dp_mark_pop(&mark);
		dp_act_end(&saved);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	ResetPerTupleExprContext(w->estate);
}

/* Updates the current row to the slot's values, as the owner and marked. */
static DpWriteResult
run_update(DpWriter *w, struct varlena *doc)
{
	MemoryContext old = MemoryContextSwitchTo(w->context); /* indexes and triggers allocate there */
	DpActing saved;
	DpMark mark;
	volatile DpWriteResult result = DP_WRITE_DONE;

	dp_act_as(w->root->facts->owner, &saved);
	dp_mark_push(&mark, RelationGetRelid(w->rel), w->mark_name, w->mark_kind);
	mark.doc = w->mark_kind != DP_MARK_NONE ? doc : NULL;
	PG_TRY();
	{
		statement_begin(w, CMD_UPDATE);
		result = write_update(w, w->current, doc);
	}
	PG_FINALLY();
	{
		dp_mark_pop(&mark);
		dp_act_end(&saved);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	ResetPerTupleExprContext(w->estate);
	if (result != DP_WRITE_DEADLOCK)
		dp_write_clear(w);
	return result;
}

/* Inserts the row of the table's slot, likewise. */
static void
run_insert(DpWriter *w, struct varlena *doc)
{
	MemoryContext old = MemoryContextSwitchTo(w->context); /* indexes and triggers allocate there */
	DpActing saved;
	DpMark mark;

	dp_act_as(w->root->facts->owner, &saved);
	dp_mark_push(&mark, RelationGetRelid(w->rel), w->mark_name, w->mark_kind);
	mark.doc = w->mark_kind != DP_MARK_NONE ? doc : NULL;
	PG_TRY();
	{
		statement_begin(w, CMD_INSERT);
		write_insert(w, w->root);
	}
	PG_FINALLY();
	{
		dp_mark_pop(&mark);
		dp_act_end(&saved);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	ExecClearTuple(w->root->written);
	ResetPerTupleExprContext(w->estate);
}

/*
 * Triggers see the row before it is written and lock it, so it is locked here, where a change can
 * be reported; likewise if a failure could not be distinguished from one of the crosscheck.
 */
static DpWriteResult
write_update(DpWriter *w, DpWriteLeaf *leaf, struct varlena *doc)
{
	TriggerDesc *triggers = leaf->info->ri_TrigDesc;
	TupleTableSlot *slot = leaf->written;
	ItemPointerData tid = leaf->found->tts_tid;
	bool before = triggers != NULL && triggers->trig_update_before_row;
	TM_FailureData failure;
	LockTupleMode mode;
	DpUpdateIndexes indexes;
	TM_Result result;
	DpLockResult locked;
	List *recheck = NIL;

	dp_writer_may_write(w);
	if (!w->locked)
		dp_write_noted(w);
	if (leaf->facts->collection && doc != NULL && !same_id(dp_writer_document(w), doc))
		before = true;
	if (!w->locked && (before || w->tid_uncertain || IsolationUsesXactSnapshot()) &&
		(locked = lock_for_update(w, slot)) != DP_LOCK_OK)
		return locked == DP_LOCK_DEADLOCK ? DP_WRITE_DEADLOCK : DP_WRITE_CHANGED;
	if (before)
	{
		if (!w->epq_ready)
		{
			dp_epq_init(&w->epq, w->estate);
			w->epq_ready = true;
		}
		if (!dp_before_update_triggers(w->estate, &w->epq, leaf->info, &tid, slot, &failure))
			write_suppressed(w);
	}
	check_row(w, leaf, slot);
	CheckCmdReplicaIdentity(leaf->rel, CMD_UPDATE);
	result =
		table_tuple_update(leaf->rel, &tid, slot, GetCurrentCommandId(true), dp_write_snapshot(w),
						   crosscheck_of(w), !w->leave || w->locked, &failure, &mode, &indexes);
	if (result == TM_BeingModified)
	{
		locked = lock_for_update(w, slot);
		if (locked != DP_LOCK_OK)
			return locked == DP_LOCK_DEADLOCK ? DP_WRITE_DEADLOCK : DP_WRITE_CHANGED;
		result = table_tuple_update(leaf->rel, &tid, slot, GetCurrentCommandId(true),
									dp_write_snapshot(w), crosscheck_of(w), true, &failure, &mode,
									&indexes);
	}
	if (result != TM_Ok)
		return write_failed(w, result);
	w->rows++;

	if (dp_update_needs_indexes(indexes))
	{
		leaf_indexes(w, leaf);
		if (!w->inserted || !dp_update_needs_all_indexes(indexes))
			recheck = dp_update_index_tuples(leaf->info, slot, w->estate, indexes);
		else if (w->new_rows++ < NEW_ROWS || before || doc == NULL || !leaf_batches(leaf))
			recheck = dp_insert_index_tuples(leaf->info, slot, w->estate);
		else
		{
			if (leaf->entries == NULL)
				leaf->entries = dp_entries_begin(leaf->info, leaf->doc);
			dp_entries_add(leaf->entries, slot, w->estate);
		}
	}
	if ((triggers != NULL && triggers->trig_update_after_row) || w->capture[CMD_UPDATE] != NULL)
		ExecARUpdateTriggers(w->estate, leaf->info, NULL, NULL, &tid, NULL, slot, recheck,
							 w->capture[CMD_UPDATE], false);
	return DP_WRITE_DONE;
}

/* Locks the current row; data made from it, in the slot, stay valid. */
static DpLockResult
lock_for_update(DpWriter *w, TupleTableSlot *slot)
{
	struct varlena *seen = w->doc;
	DpLockResult result;

	w->doc = NULL;
	ExecMaterializeSlot(slot);
	result = dp_writer_lock(w, LockTupleNoKeyExclusive);
	w->doc = seen;
	return result;
}

/* Deletes the current row. */
static DpWriteResult
write_delete(DpWriter *w, DpWriteLeaf *leaf)
{
	TriggerDesc *triggers = leaf->info->ri_TrigDesc;
	ItemPointerData tid = leaf->found->tts_tid;
	bool before = triggers != NULL && triggers->trig_delete_before_row;
	TM_FailureData failure;
	TM_Result result;
	DpLockResult locked;

	dp_writer_may_write(w);
	if (!w->locked && (before || w->tid_uncertain || w->leave || IsolationUsesXactSnapshot()) &&
		(locked = dp_writer_lock(w, LockTupleExclusive)) != DP_LOCK_OK)
		return locked == DP_LOCK_DEADLOCK ? DP_WRITE_DEADLOCK : DP_WRITE_CHANGED;
	if (before)
	{
		if (!w->epq_ready)
		{
			dp_epq_init(&w->epq, w->estate);
			w->epq_ready = true;
		}
		if (!dp_before_delete_triggers(w->estate, &w->epq, leaf->info, &tid))
			write_suppressed(w);
	}
	CheckCmdReplicaIdentity(leaf->rel, CMD_DELETE);
	result = table_tuple_delete(leaf->rel, &tid, GetCurrentCommandId(true), dp_write_snapshot(w),
								crosscheck_of(w), true, &failure, false);
	if (result != TM_Ok)
		return write_failed(w, result);
	w->rows++;
	if ((triggers != NULL && triggers->trig_delete_after_row) || w->capture[CMD_DELETE] != NULL)
		ExecARDeleteTriggers(w->estate, leaf->info, &tid, NULL, w->capture[CMD_DELETE], false);
	return DP_WRITE_DONE;
}

/* Inserts the row of the slot. */
static void
write_insert(DpWriter *w, DpWriteLeaf *leaf)
{
	TriggerDesc *triggers = leaf->info->ri_TrigDesc;
	TupleTableSlot *slot = leaf->written;
	List *recheck = NIL;

	dp_writer_may_write(w);
	slot->tts_tableOid = RelationGetRelid(leaf->rel);
	if (triggers != NULL && triggers->trig_insert_before_row &&
		!ExecBRInsertTriggers(w->estate, leaf->info, slot))
		write_suppressed(w);
	check_row(w, leaf, slot);
	table_tuple_insert(leaf->rel, slot, GetCurrentCommandId(true), 0, NULL);
	w->rows++;
	leaf_indexes(w, leaf);
	if (leaf->info->ri_NumIndices > 0)
		recheck = dp_insert_index_tuples(leaf->info, slot, w->estate);
	if ((triggers != NULL && triggers->trig_insert_after_row) || w->capture[CMD_INSERT] != NULL)
		ExecARInsertTriggers(w->estate, leaf->info, slot, recheck, w->capture[CMD_INSERT]);
}

/* Inserts up to MANY_ROWS rows into a table without row-level triggers. */
static void
write_many(DpWriter *w, DpWriteLeaf *leaf, Datum *const *values, bool *const *nulls, int n)
{
	int natts = RelationGetDescr(leaf->rel)->natts;
	int i;

	if (w->many == NULL)
		w->many = palloc0(sizeof(TupleTableSlot *) * MANY_ROWS);
	for (i = 0; i < n; i++)
	{
		if (w->many[i] == NULL)
			w->many[i] = MakeSingleTupleTableSlot(RelationGetDescr(leaf->rel), &TTSOpsVirtual);
		else
			ExecClearTuple(w->many[i]);
		memcpy(w->many[i]->tts_values, values[i], sizeof(Datum) * natts);
		memcpy(w->many[i]->tts_isnull, nulls[i], sizeof(bool) * natts);
		ExecStoreVirtualTuple(w->many[i]);
		w->many[i]->tts_tableOid = RelationGetRelid(leaf->rel);
		check_row(w, leaf, w->many[i]);
	}
	table_multi_insert(leaf->rel, w->many, n, GetCurrentCommandId(true), 0, NULL);
	w->rows += n;
	leaf_indexes(w, leaf);
	for (i = 0; i < n && leaf->info->ri_NumIndices > 0; i++)
	{
		(void) dp_insert_index_tuples(leaf->info, w->many[i], w->estate);
		ResetPerTupleExprContext(w->estate);
	}
}

/* Computes generated columns, checks constraints and partition bounds. */
static void
check_row(DpWriter *w, DpWriteLeaf *leaf, TupleTableSlot *slot)
{
	TupleConstr *constr = RelationGetDescr(leaf->rel)->constr;

	if (constr != NULL)
	{
		/* all of them: an UPDATE of some columns would compute only those that depend on these */
		if (constr->has_generated_stored)
			ExecComputeStoredGenerated(leaf->info, w->estate, slot, CMD_INSERT);
		if (constr->num_check > 0 && dp_check_exprs(leaf->info) == NULL &&
			leaf->facts->checks != NULL)
			dp_check_exprs(leaf->info) = leaf->facts->checks;
		ExecConstraints(leaf->info, slot, w->estate);
	}
	if (leaf->rel->rd_rel->relispartition)
		ExecPartitionCheck(leaf->info, slot, w->estate, true);
}

/* Tells triggers that all columns are written. */
static void
all_columns(DpWriter *w)
{
	MemoryContext old = MemoryContextSwitchTo(w->context);
	int i;

	for (i = 1; i <= RelationGetDescr(w->rel)->natts; i++)
		*w->columns = bms_add_member(*w->columns, i - FirstLowInvalidHeapAttributeNumber);
	MemoryContextSwitchTo(old);
}

/* True if two documents have the same _id, byte for byte. */
static bool
same_id(struct varlena *a, struct varlena *b)
{
	DpValue left;
	DpValue right;

	return a != NULL && dp_document_find(DP_DOC_DATA(a), DP_DOC_SIZE(a), "_id", 3, &left) &&
		   dp_document_find(DP_DOC_DATA(b), DP_DOC_SIZE(b), "_id", 3, &right) &&
		   left.type == right.type && left.len == right.len &&
		   memcmp(left.data, right.data, left.len) == 0;
}

/*
 * A statement inserts a row into a partitioned table, because the executor finds the partition.
 * Columns that are null get their defaults.
 */
static void
insert_statement(DpWriter *w, const Datum *values, const bool *nulls)
{
	TupleDesc desc = RelationGetDescr(w->rel);
	StringInfoData columns;
	StringInfoData parameters;
	Oid *types = palloc(sizeof(Oid) * desc->natts);
	Datum *given = palloc(sizeof(Datum) * desc->natts);
	int n = 0;
	int i;
	struct varlena *doc = NULL;
	DpActing saved;
	DpMark mark;

	initStringInfo(&columns);
	initStringInfo(&parameters);
	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || att->attgenerated || nulls[i])
			continue;
		appendStringInfo(&columns, "%s%s", n > 0 ? ", " : "",
						 quote_identifier(NameStr(att->attname)));
		types[n] = att->atttypid;
		given[n++] = values[i];
		appendStringInfo(&parameters, "%s$%d", n > 1 ? ", " : "", n);
	}
	if (w->mark_kind != DP_MARK_NONE && w->root->doc > 0 && !nulls[w->root->doc - 1])
		doc = PG_DETOAST_DATUM_PACKED(values[w->root->doc - 1]);
	dp_act_as(w->root->facts->owner, &saved);
	dp_mark_push(&mark, RelationGetRelid(w->rel), w->mark_name, w->mark_kind);
	mark.doc = doc;
	PG_TRY();
	{
		StringInfoData sql;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "INSERT INTO ");
		dp_sql_table(&sql, RelationGetRelid(w->rel));
		appendStringInfo(&sql, " (%s) OVERRIDING SYSTEM VALUE VALUES (%s)", columns.data,
						 parameters.data);
		SPI_connect();
		if (SPI_execute_with_args(sql.data, n, types, given, NULL, false, 0) != SPI_OK_INSERT)
			elog(ERROR, "could not insert into \"%s\"", dp_relation_name(RelationGetRelid(w->rel)));
		if (SPI_processed == 0)
			write_suppressed(w);
		SPI_finish();
	}
	PG_FINALLY();
	{
		dp_mark_pop(&mark);
		dp_act_end(&saved);
	}
	PG_END_TRY();
	w->rows++;
	w->outdated = true;
}

/* Prepares the defaults of columns other than the document. */
static void
defaults_prepare(DpWriter *w)
{
	TupleDesc desc = RelationGetDescr(w->rel);
	MemoryContext old = MemoryContextSwitchTo(w->context);
	int i;

	w->defaults = palloc0(sizeof(ExprState *) * desc->natts);
	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Node *expr;

		if (att->attisdropped || att->attgenerated || i == w->root->doc - 1)
			continue;
		expr = build_column_default(w->rel, i + 1);
		if (expr != NULL)
			w->defaults[i] = ExecInitExpr(expression_planner((Expr *) expr), NULL);
	}
	MemoryContextSwitchTo(old);
}

/* Fires BEFORE STATEMENT triggers, once for each kind of event, and prepares transition tables. */
static void
statement_begin(DpWriter *w, CmdType event)
{
	ResultRelInfo *info = w->root->info;
	MemoryContext old;

	w->estate->es_output_cid = GetCurrentCommandId(true);
	(void) dp_write_snapshot(w);
	if (w->began[event])
		return;
	w->began[event] = true;
	if (!w->query && w->root->facts->fires)
	{
		AfterTriggerBeginQuery();
		w->query = true;
	}
	if (info->ri_TrigDesc == NULL)
		return;
	old = MemoryContextSwitchTo(w->context);
	switch (event)
	{
		case CMD_UPDATE:
			if (info->ri_TrigDesc->trig_update_before_statement)
				ExecBSUpdateTriggers(w->estate, info);
			break;
		case CMD_INSERT:
			if (info->ri_TrigDesc->trig_insert_before_statement)
				ExecBSInsertTriggers(w->estate, info);
			break;
		case CMD_DELETE:
			if (info->ri_TrigDesc->trig_delete_before_statement)
				ExecBSDeleteTriggers(w->estate, info);
			break;
		default:
			break;
	}
	w->capture[event] =
		MakeTransitionCaptureState(info->ri_TrigDesc, RelationGetRelid(w->rel), event);
	MemoryContextSwitchTo(old);
}

/* Fires AFTER STATEMENT triggers and queued triggers. */
static void
statement_end(DpWriter *w)
{
	ResultRelInfo *info = w->root->info;
	DpActing saved;
	DpMark mark;

	dp_act_as(w->root->facts->owner, &saved);
	dp_mark_push(&mark, RelationGetRelid(w->rel), w->mark_name, w->mark_kind);
	PG_TRY();
	{
		if (w->began[CMD_UPDATE])
			ExecASUpdateTriggers(w->estate, info, w->capture[CMD_UPDATE]);
		if (w->began[CMD_INSERT])
			ExecASInsertTriggers(w->estate, info, w->capture[CMD_INSERT]);
		if (w->began[CMD_DELETE])
			ExecASDeleteTriggers(w->estate, info, w->capture[CMD_DELETE]);
		AfterTriggerEndQuery(w->estate);
	}
	PG_FINALLY();
	{
		dp_mark_pop(&mark);
		dp_act_end(&saved);
	}
	PG_END_TRY();
}

/* At REPEATABLE READ or above, a transaction cannot overwrite what it does not see. */
static Snapshot
crosscheck_of(const DpWriter *w)
{
	return IsolationUsesXactSnapshot() && !(w->flags & DP_WRITE_LATEST) ? GetTransactionSnapshot()
																		: InvalidSnapshot;
}

DpWriteLeaf *
dp_write_leaf(DpWriter *w, Relation rel)
{
	DpWriteLeaf *leaf = palloc0(sizeof(DpWriteLeaf));

	leaf->rel = rel;
	leaf->facts = dp_table_facts(rel, w->skip);
	leaf->doc = leaf->facts->doc;
	if (w->column != NULL)
	{
		if (leaf->doc == 0 ||
			strcmp(NameStr(TupleDescAttr(RelationGetDescr(rel), leaf->doc - 1)->attname),
				   w->column) != 0)
			leaf->doc = get_attnum(RelationGetRelid(rel), w->column);
		if (leaf->doc == InvalidAttrNumber)
			ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
							errmsg("table \"%s\" has no column \"%s\"",
								   dp_relation_name(RelationGetRelid(rel)), w->column)));
	}
	leaf->info = makeNode(ResultRelInfo);
	InitResultRelInfo(leaf->info, rel, w->root == NULL ? 1 : 0,
					  w->root == NULL ? NULL : w->root->info, 0);
	w->estate->es_opened_result_relations =
		lappend(w->estate->es_opened_result_relations, leaf->info);
	leaf_arm(w, leaf);
	if (rel->rd_rel->relkind == RELKIND_RELATION)
	{
		leaf->found = table_slot_create(rel, NULL);
		leaf->written = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsVirtual);
	}
	w->leaves = lappend(w->leaves, leaf);
	return leaf;
}

/* Determines which of its triggers must fire. */
static void
leaf_arm(DpWriter *w, DpWriteLeaf *leaf)
{
	TriggerDesc *desc = leaf->info->ri_TrigDesc;
	TriggerDesc all;

	if (desc == NULL)
		return;
	all = leaf->facts->fire;
	all.triggers = desc->triggers;
	all.numtriggers = desc->numtriggers;
	*desc = all;
}

/* Opens the indexes for the first entry. */
static void
leaf_indexes(DpWriter *w, DpWriteLeaf *leaf)
{
	MemoryContext old;

	if (leaf->indexes_open)
		return;
	old = MemoryContextSwitchTo(w->context);
	ExecOpenIndices(leaf->info, false);
	MemoryContextSwitchTo(old);
	leaf->indexes_open = true;
}

/* True if entries can be made later: nothing waits for them or searches them. */
static bool
leaf_batches(DpWriteLeaf *leaf)
{
	if (leaf->batching == 0)
		leaf->batching =
			(leaf->info->ri_TrigDesc == NULL || !leaf->info->ri_TrigDesc->trig_update_before_row) &&
					dp_entries_possible(leaf->info)
				? 1
				: -1;
	return leaf->batching > 0;
}

void
dp_write_entries(DpWriter *w)
{
	ListCell *lc;

	if (w->new_rows == 0)
		return;
	w->new_rows = 0;
	foreach(lc, w->leaves)
	{
		DpWriteLeaf *leaf = lfirst(lc);
		DpEntries *entries = leaf->entries;

		leaf->entries = NULL;
		if (entries != NULL)
			dp_entries_write(entries);
	}
}

/* A row that was not locked has changed, or this command has written it already. */
static DpWriteResult
write_failed(DpWriter *w, TM_Result result)
{
	if (w->locked || (result != TM_Updated && result != TM_Deleted && result != TM_SelfModified))
		write_lost(w);
	if (result == TM_SelfModified)
		CommandCounterIncrement();
	w->outdated = true;
	return DP_WRITE_CHANGED;
}

/*
 * Raises T_R_SERIALIZATION_FAILURE: the transaction's snapshot does not show the row version to
 * overwrite.
 */
static void
write_lost(DpWriter *w)
{
	if (!IsolationUsesXactSnapshot())
		elog(ERROR, "a row of %s has changed although it was locked",
			 RelationGetRelationName(w->rel));
	ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					errmsg("could not serialize access due to concurrent update")));
}

/* Raises TRIGGERED_DATA_CHANGE_VIOLATION: a user's trigger suppressed the write. */
static void
write_suppressed(DpWriter *w)
{
	ereport(ERROR, (errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
					errmsg("BEFORE trigger on \"%s\" suppressed a write required by a pattern",
						   dp_relation_name(RelationGetRelid(w->rel))),
					errdetail("Without the write, the pattern's data would be inconsistent.")));
}
