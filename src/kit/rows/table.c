/*
 * table.c
 *		Rows of the tables that patterns keep, without a statement.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "miscadmin.h"
#include "parser/parse_relation.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "kit/declaration.h"
#include "kit/rows/later.h"
#include "kit/rows/table.h"
#include "kit/shard.h"

/* New rows that are written at once */
#define MANY_ROWS 128

static void check_row(DpTable *t, TupleTableSlot *row);
static void row_added(DpTable *t, TupleTableSlot *row);
static int row_compare(const void *a, const void *b, void *arg);
static void require_key(DpTable *t, int n);
static CommandId command_id(DpTable *t);
static void check_identity(DpTable *t);
static List *make_entries(DpTable *t, TupleTableSlot *row, bool update, AttrNumber changed,
						  DpUpdateIndexes which);
static bool predicate_holds(DpTable *t, IndexInfo *info, TupleTableSlot *row);
static bool has_column(const IndexInfo *info, AttrNumber column);
static void info_ready(DpTable *t);
static void executor_ready(DpTable *t);

void
dp_table_open(DpTable *t, Oid relid, LOCKMODE lock)
{
	dp_later_write(relid);
	memset(t, 0, sizeof(DpTable));
	t->context = CurrentMemoryContext;
	t->rel = table_open(relid, lock);
	if (t->rel->rd_rel->relkind != RELKIND_RELATION)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" is not a table", dp_relation_name(relid))));
	dp_refuse_distributed(relid);
	t->indexes = dp_table_indexes(t->rel);
}

void
dp_table_close(DpTable *t)
{
	if (t->scan != NULL)
		index_endscan(t->scan);
	if (t->row != NULL)
		ExecDropSingleTupleTableSlot(t->row);
	if (t->written != NULL)
		ExecDropSingleTupleTableSlot(t->written);
	if (t->executor)
		ExecCloseIndices(t->info);
	if (t->estate != NULL && !t->lent)
	{
		FreeExecutorState(t->estate);
		if (t->pushed)
			PopActiveSnapshot();
	}
	for (int i = 0; t->opened != NULL && i < t->indexes->n; i++)
	{
		if (t->opened[i] != NULL)
			index_close(t->opened[i], NoLock);
	}
	if (t->key != NULL)
		index_close(t->key, NoLock);
	table_close(t->rel, NoLock);
}

void
dp_table_fire(DpTable *t, EState *estate)
{
	const TriggerDesc *triggers = t->rel->trigdesc;

	t->estate = estate;
	t->lent = true;
	t->fires =
		triggers != NULL && (triggers->trig_insert_after_row || triggers->trig_update_after_row ||
							 triggers->trig_delete_after_row);
}

/*
 * Searches
 */

Relation
dp_table_key(DpTable *t)
{
	MemoryContext old;

	if (likely(t->key != NULL))
		return t->key;
	if (!OidIsValid(t->indexes->key->index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has no primary key",
						dp_relation_name(RelationGetRelid(t->rel))),
				 errdetail("Patterns find rows by primary key, which must not be deferrable.")));
	old = MemoryContextSwitchTo(t->context);
	t->key = index_open(t->indexes->key->index, AccessShareLock);
	t->row = table_slot_create(t->rel, NULL);
	MemoryContextSwitchTo(old);
	return t->key;
}

void
dp_table_seek(DpTable *t, Snapshot snapshot, const Datum *key, int n)
{
	(void) dp_table_key(t);
	require_key(t, n);
	if (t->keys == NULL)
		t->keys =
			MemoryContextAlloc(t->context, sizeof(ScanKeyData) * (t->indexes->key->nkeys + 2));
	memcpy(t->keys, t->indexes->key->keys, n * sizeof(ScanKeyData));
	for (int i = 0; i < n; i++)
	{
		t->keys[i].sk_argument = key[i];
		t->keys[i].sk_func.fn_mcxt = t->context; /* functions may cache there */
	}
	t->nequal = t->nkeys = n;
	t->snapshot = snapshot;
	t->begun = false;
}

void
dp_table_bound(DpTable *t, StrategyNumber strategy, RegProcedure function, Datum value)
{
	Assert(!t->begun && t->nkeys < t->nequal + 2);
	require_key(t, t->nequal + 1);
	ScanKeyInit(&t->keys[t->nkeys++], t->nequal + 1, strategy, function, value);
}

/*
 * Later searches restart the first scan. It allocates memory as it proceeds,
 * and the caller's context may not live as long.
 */
bool
dp_table_next(DpTable *t, ScanDirection direction)
{
	MemoryContext old = MemoryContextSwitchTo(t->context);
	bool found;

	CHECK_FOR_INTERRUPTS();
	if (!t->begun)
	{
		if (t->scan == NULL)
			t->scan = dp_index_beginscan(t->rel, t->key, t->snapshot, t->indexes->key->nkeys + 2);
		t->scan->xs_snapshot = t->snapshot;
		t->scan->numberOfKeys = t->nkeys;
		index_rescan(t->scan, t->keys, t->nkeys, NULL, 0);
		t->begun = true;
	}
	found = index_getnext_slot(t->scan, direction, t->row);
	MemoryContextSwitchTo(old);
	return found;
}

bool
dp_table_find(DpTable *t, Snapshot snapshot, const Datum *key, int n)
{
	bool found;

	dp_table_seek(t, snapshot, key, n);
	found = dp_table_next(t, ForwardScanDirection);

	/* without the pins of the scan */
	t->scan->numberOfKeys = 0;
	index_rescan(t->scan, NULL, 0, NULL, 0);
	return found;
}

bool
dp_table_any(DpTable *t, Snapshot snapshot, Datum low, Datum high)
{
	Relation key = dp_table_key(t);
	IndexScanDesc scan = dp_index_beginscan(t->rel, key, snapshot, 2);
	ScanKeyData keys[2];
	bool found;

	for (int i = 0; i < 2; i++)
	{
		StrategyNumber strategy = i == 0 ? BTGreaterEqualStrategyNumber : BTLessEqualStrategyNumber;
		Oid type = key->rd_opcintype[0];

		ScanKeyEntryInitialize(&keys[i], 0, 1, strategy, InvalidOid, key->rd_indcollation[0],
							   get_opcode(get_opfamily_member(key->rd_opfamily[0], type, type,
															  strategy)),
							   i == 0 ? low : high);
	}
	index_rescan(scan, keys, 2, NULL, 0);
	found = index_getnext_slot(scan, ForwardScanDirection, t->row);
	index_endscan(scan);
	return found;
}

bool
dp_table_lock(DpTable *t, LockWaitPolicy policy)
{
	ItemPointerData tid = t->row->tts_tid;
	TM_FailureData failure;

	ExecClearTuple(t->row);
	return table_tuple_lock(t->rel, &tid, t->snapshot, t->row, GetCurrentCommandId(true),
							LockTupleExclusive, policy, TUPLE_LOCK_FLAG_FIND_LAST_VERSION,
							&failure) == TM_Ok;
}

/*
 * Writing
 */

TupleTableSlot *
dp_table_blank(DpTable *t)
{
	if (t->written == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(t->context);

		t->written = MakeSingleTupleTableSlot(RelationGetDescr(t->rel), &TTSOpsVirtual);
		t->written->tts_tableOid = RelationGetRelid(t->rel);
		MemoryContextSwitchTo(old);
	}
	ExecClearTuple(t->written);
	memset(t->written->tts_isnull, true, RelationGetDescr(t->rel)->natts);
	return t->written;
}

TupleTableSlot *
dp_table_copy(DpTable *t)
{
	TupleTableSlot *slot = dp_table_blank(t);

	slot_getallattrs(t->row);
	memcpy(slot->tts_values, t->row->tts_values, sizeof(Datum) * RelationGetDescr(t->rel)->natts);
	memcpy(slot->tts_isnull, t->row->tts_isnull, sizeof(bool) * RelationGetDescr(t->rel)->natts);
	return slot;
}

void
dp_table_insert(DpTable *t)
{
	ExecStoreVirtualTuple(t->written);
	check_row(t, t->written);
	table_tuple_insert(t->rel, t->written, command_id(t), 0, NULL);
	row_added(t, t->written);
}

/* The slots need not be dropped: their descriptor is not counted. */
TupleTableSlot *
dp_table_next_blank(DpTable *t, struct BulkInsertStateData *bulk)
{
	TupleTableSlot *slot;

	if (t->nmany == MANY_ROWS)
		dp_table_flush(t, bulk);
	if (t->many == NULL)
	{
		t->many = MemoryContextAllocZero(t->context, sizeof(TupleTableSlot *) * MANY_ROWS);
		t->many_context =
			AllocSetContextCreate(t->context, "docpatterns new rows", ALLOCSET_DEFAULT_SIZES);
	}
	slot = t->many[t->nmany];
	if (slot == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(t->context);

		if (t->many_desc == NULL)
			t->many_desc = CreateTupleDescCopy(RelationGetDescr(t->rel));
		slot = t->many[t->nmany] = MakeTupleTableSlot(t->many_desc, &TTSOpsVirtual);
		slot->tts_tableOid = RelationGetRelid(t->rel);
		MemoryContextSwitchTo(old);
	}
	t->nmany++;
	memset(slot->tts_isnull, true, t->many_desc->natts);
	return slot;
}

void
dp_table_flush(DpTable *t, struct BulkInsertStateData *bulk)
{
	int n = t->nmany;
	MemoryContext old;

	if (n == 0)
		return;
	CHECK_FOR_INTERRUPTS();
	t->nmany = 0;
	for (int i = 0; i < n; i++)
	{
		ExecStoreVirtualTuple(t->many[i]);
		check_row(t, t->many[i]);
	}
	old = MemoryContextSwitchTo(t->many_context);
	table_multi_insert(t->rel, t->many, n, command_id(t), 0, bulk);
	MemoryContextSwitchTo(old);
	for (int i = 0; i < n; i++)
	{
		row_added(t, t->many[i]);
		ExecClearTuple(t->many[i]);
	}
	MemoryContextReset(t->many_context);
}

void
dp_table_insert_many(DpTable *t, HeapTuple *rows, int n)
{
	for (int i = 0; i < n; i++)
	{
		TupleTableSlot *slot = dp_table_next_blank(t, NULL);

		heap_deform_tuple(rows[i], slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
	}
	dp_table_flush(t, NULL);
}

void
dp_table_sort(DpTable *t, HeapTuple *rows, int n)
{
	(void) dp_table_key(t);
	qsort_arg(rows, n, sizeof(HeapTuple), row_compare, t);
}

static int
row_compare(const void *a, const void *b, void *arg)
{
	DpTable *t = arg;
	HeapTuple left = *(HeapTuple *) a;
	HeapTuple right = *(HeapTuple *) b;
	int cmp = dp_table_compare(t, left, right, t->indexes->key->nkeys);

	return cmp != 0 ? cmp : ItemPointerCompare(&left->t_self, &right->t_self);
}

int
dp_table_compare(DpTable *t, HeapTuple a, HeapTuple b, int ncolumns)
{
	Relation key = dp_table_key(t);
	int cmp = 0;

	for (int k = 0; k < ncolumns && cmp == 0; k++)
	{
		AttrNumber column = key->rd_index->indkey.values[k];
		bool isnull;

		cmp = DatumGetInt32(FunctionCall2Coll(index_getprocinfo(key, k + 1, BTORDER_PROC),
											  key->rd_indcollation[k],
											  heap_getattr(a, column, RelationGetDescr(t->rel),
														   &isnull),
											  heap_getattr(b, column, RelationGetDescr(t->rel),
														   &isnull)));
	}
	return cmp;
}

/* Makes index entries and fires triggers. */
static void
row_added(DpTable *t, TupleTableSlot *row)
{
	List *recheck = make_entries(t, row, false, InvalidAttrNumber, (DpUpdateIndexes) 0);

	if (t->fires && t->rel->trigdesc->trig_insert_after_row)
	{
		info_ready(t);
		ExecARInsertTriggers(t->estate, t->info, row, recheck, NULL);
	}
	list_free(recheck);
}

bool
dp_table_insert_unless(DpTable *t)
{
	List *arbiters = list_make1_oid(RelationGetRelid(dp_table_key(t)));
	bool failed = true;

	executor_ready(t);
	ExecStoreVirtualTuple(t->written);
	check_row(t, t->written);
	while (failed)
	{
		ItemPointerData conflict;
		uint32 token;

		CHECK_FOR_INTERRUPTS();
		ItemPointerSetInvalid(&t->written->tts_tid);
		if (!dp_check_index_constraints(t->info, t->written, t->estate, &conflict, arbiters))
			break;
		failed = false;
		token = SpeculativeInsertionLockAcquire(GetCurrentTransactionId());
		table_tuple_insert_speculative(t->rel, t->written, command_id(t), 0, NULL, token);
		list_free(dp_insert_index_tuples_unless(t->info, t->written, t->estate, &failed, arbiters));
		table_tuple_complete_speculative(t->rel, t->written, token, !failed);
		SpeculativeInsertionLockRelease(GetCurrentTransactionId());
	}
	list_free(arbiters);
	return !failed;
}

TM_Result
dp_table_update(DpTable *t, ItemPointer tid, AttrNumber changed, bool wait)
{
	LockTupleMode mode;
	DpUpdateIndexes which;
	List *recheck = NIL;
	TM_Result result;

	ExecStoreVirtualTuple(t->written);
	check_row(t, t->written);
	check_identity(t);
	result = table_tuple_update(t->rel, tid, t->written, command_id(t), t->snapshot, t->crosscheck,
								wait, &t->failure, &mode, &which);
	if (result == TM_Ok && dp_update_needs_indexes(which))
		recheck = make_entries(t, t->written, true, changed, which);
	if (result == TM_Ok && t->fires && t->rel->trigdesc->trig_update_after_row)
	{
		info_ready(t);
		ExecARUpdateTriggers(t->estate, t->info, NULL, NULL, tid, NULL, t->written, recheck, NULL,
							 false);
	}
	list_free(recheck);
	return result;
}

TM_Result
dp_table_delete(DpTable *t, ItemPointer tid, bool wait)
{
	TM_Result result;

	check_identity(t);
	result = table_tuple_delete(t->rel, tid, command_id(t), t->snapshot, t->crosscheck, wait,
								&t->failure, false);
	if (result == TM_Ok && t->fires && t->rel->trigdesc->trig_delete_after_row)
	{
		info_ready(t);
		ExecARDeleteTriggers(t->estate, t->info, tid, NULL, NULL, false);
	}
	return result;
}

static CommandId
command_id(DpTable *t)
{
	return t->cid != NULL && *t->cid != InvalidCommandId ? *t->cid : GetCurrentCommandId(true);
}

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE unless the primary key has that many columns. */
static void
require_key(DpTable *t, int n)
{
	if (unlikely(t->indexes->key->nkeys < n))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" does not have its primary key",
						dp_relation_name(RelationGetRelid(t->rel))),
				 errdetail("Patterns find rows by primary key, which must not be deferrable.")));
}

/* Computes generated columns and raises NOT_NULL_VIOLATION and CHECK_VIOLATION. */
static void
check_row(DpTable *t, TupleTableSlot *row)
{
	TupleConstr *constr = RelationGetDescr(t->rel)->constr;

	if (constr == NULL)
		return;
	if (constr->num_check > 0 || constr->has_generated_stored || dp_has_virtual_columns(constr))
		executor_ready(t);
	info_ready(t);
	if (constr->has_generated_stored)
		ExecComputeStoredGenerated(t->info, t->estate, row, CMD_INSERT);
	ExecConstraints(t->info, row, t->estate);
}

/* Subscribers identify changed rows by it. */
static void
check_identity(DpTable *t)
{
	if (likely(t->checked))
		return;
	CheckCmdReplicaIdentity(t->rel, CMD_UPDATE);
	CheckCmdReplicaIdentity(t->rel, CMD_DELETE);
	t->checked = true;
}

/* Inserts the index entries of a row. Returns the indexes whose constraints are deferred. */
static List *
make_entries(DpTable *t, TupleTableSlot *row, bool update, AttrNumber changed,
			 DpUpdateIndexes which)
{
	if (!t->indexes->plain)
	{
		executor_ready(t);
		if (!t->lent)
			*t->columns = changed == InvalidAttrNumber
							  ? NULL
							  : bms_make_singleton(changed - FirstLowInvalidHeapAttributeNumber);
		return update ? dp_update_index_tuples(t->info, row, t->estate, which)
					  : dp_insert_index_tuples(t->info, row, t->estate);
	}

	/* summarizing indexes are not plain */
	if (update && !dp_update_needs_all_indexes(which))
		return NIL;
	slot_getallattrs(row);
	if (t->opened == NULL)
		t->opened = MemoryContextAllocZero(t->context, sizeof(Relation) * (t->indexes->n + 1));
	for (int i = 0; i < t->indexes->n; i++)
	{
		const DpTableIndex *x = &t->indexes->index[i];
		Datum values[INDEX_MAX_KEYS];
		bool nulls[INDEX_MAX_KEYS];
		bool same = update && changed != InvalidAttrNumber && !has_column(x->info, changed);

		if (x->info->ii_Predicate != NIL && !predicate_holds(t, x->info, row))
			continue;
		if (t->opened[i] == NULL)
			t->opened[i] = index_open(x->oid, RowExclusiveLock);
		for (int k = 0; k < x->info->ii_NumIndexAttrs; k++)
		{
			AttrNumber column = x->info->ii_IndexAttrNumbers[k];

			values[k] = row->tts_values[column - 1];
			nulls[k] = row->tts_isnull[column - 1];
		}

		/*
		 * The old row's entry was checked and excludes others.  A check would read all versions of
		 * the row that this transaction has written.
		 */
		(void) index_insert(t->opened[i], values, nulls, &row->tts_tid, t->rel,
							x->info->ii_Unique && !(same && x->info->ii_Predicate == NIL)
								? UNIQUE_CHECK_YES
								: UNIQUE_CHECK_NO,
							same, x->info);
	}
	return NIL;
}

/* Whether a row satisfies the predicate of an index, which is prepared once. */
static bool
predicate_holds(DpTable *t, IndexInfo *info, TupleTableSlot *row)
{
	static ExprContext *econtext = NULL;
	MemoryContext old;
	bool result;

	if (econtext == NULL)
	{
		old = MemoryContextSwitchTo(TopMemoryContext);
		econtext = CreateStandaloneExprContext();
		MemoryContextSwitchTo(old);
	}
	if (info->ii_PredicateState == NULL)
	{
		old = MemoryContextSwitchTo(GetMemoryChunkContext(t->indexes));
		info->ii_PredicateState = ExecInitQual(info->ii_Predicate, NULL);
		MemoryContextSwitchTo(old);
	}
	econtext->ecxt_scantuple = row;
	result = ExecQual(info->ii_PredicateState, econtext);
	ResetExprContext(econtext);
	return result;
}

static bool
has_column(const IndexInfo *info, AttrNumber column)
{
	for (int k = 0; k < info->ii_NumIndexKeyAttrs; k++)
	{
		if (info->ii_IndexAttrNumbers[k] == column)
			return true;
	}
	return false;
}

static void
info_ready(DpTable *t)
{
	MemoryContext old;

	if (t->info != NULL)
		return;
	old = MemoryContextSwitchTo(t->context);
	t->info = makeNode(ResultRelInfo);

	/* InitResultRelInfo() copies all triggers */
	if (t->fires)
		InitResultRelInfo(t->info, t->rel, 0, NULL, 0);
	else
		t->info->ri_RelationDesc = t->rel;
	MemoryContextSwitchTo(old);
}

/*
 * The range table tells the executor the columns that an update changes.
 */
static void
executor_ready(DpTable *t)
{
	MemoryContext old;
	RangeTblEntry *rte;

	if (t->executor)
	{
		if (!t->lent)
			ResetPerTupleExprContext(t->estate);
		return;
	}
	info_ready(t);
	old = MemoryContextSwitchTo(t->context);
	if (!t->lent)
	{
		t->estate = CreateExecutorState();
		MemoryContextSwitchTo(t->estate->es_query_cxt);
		rte = makeNode(RangeTblEntry);
		rte->rtekind = RTE_RELATION;
		rte->relid = RelationGetRelid(t->rel);
		rte->relkind = RELKIND_RELATION;
		rte->rellockmode = RowExclusiveLock;
		dp_init_range_table(t->estate, rte, t->columns);
		t->info->ri_RangeTableIndex = 1;

		/* expressions may need a snapshot, and at commit there is none */
		t->pushed = !ActiveSnapshotSet();
		if (t->pushed)
			PushActiveSnapshot(GetTransactionSnapshot());
	}
	ExecOpenIndices(t->info, true);
	t->executor = true;
	MemoryContextSwitchTo(old);
}
