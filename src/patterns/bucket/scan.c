/*
 * scan.c
 *		Reading a relation of measurements: rows from buckets, and waiting rows.
 *
 * Both tables are read with the query's snapshot, so that each measurement is seen
 * exactly once, even while it is packed.  The user's privileges on the relation
 * suffice: the underlying tables are read as parts of it.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "patterns/bucket/upper.h"

/* Bounds of the time that are nearer to the ends of the calendar than this are taken for none */
#define CALENDAR_MARGIN (1000 * 366 * USECS_PER_DAY)

static void begin_scan(ForeignScanState *node, int eflags);
static void begin_state(DpBucketScan *scan, ForeignScan *plan, Snapshot snapshot);
static void counters_init(DpBucketCounters *counters);
static void begin_tables(DpBucketScan *scan);
static TupleTableSlot *iterate(ForeignScanState *node);
static TupleTableSlot *iterate_ordered(DpBucketScan *scan, TupleTableSlot *slot);
static void rescan(ForeignScanState *node);
static void end_scan(ForeignScanState *node);
static void keys_evaluate(DpBucketScan *scan);
static void time_bounds(DpBucketScan *scan);
static void time_bound(DpBucketScan *scan, const DpBucketKey *key);
static int index_keys(DpBucketScan *scan, ScanKeyData *scankeys, bool packed);
static void index_start(DpBucketScan *scan, bool packed);
static bool group_matches(DpBucketScan *scan, const Datum *values, const bool *nulls);
static bool value_excluded(DpBucketScan *scan, DpBucketKey *key);
static int compare_recent(DpBucketScan *scan);
static inline void emit_packed(DpBucketScan *scan, TupleTableSlot *slot);
static bool parallel_safe(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte);
static Size parallel_estimate(ForeignScanState *node, ParallelContext *pcxt);
static void parallel_init(ForeignScanState *node, ParallelContext *pcxt, void *coordinate);
static void parallel_reinit(ForeignScanState *node, ParallelContext *pcxt, void *coordinate);
static void parallel_worker(ForeignScanState *node, shm_toc *toc, void *coordinate);
static void shutdown_scan(ForeignScanState *node);
static void bucket_scan_start(DpBucketScan *scan);

/* Shared by workers: the counters, then the scans of the two tables */
typedef struct Shared
{
	DpBucketCounters counters;
	Size recent_offset; /* of the second scan, from the first */
} Shared;

#define SHARED_SIZE MAXALIGN(sizeof(Shared))

/* The callbacks of scans. */
void
dp_bucket_scan_routine(FdwRoutine *routine)
{
	routine->BeginForeignScan = begin_scan;
	routine->IterateForeignScan = iterate;
	routine->ReScanForeignScan = rescan;
	routine->EndForeignScan = end_scan;
	routine->IsForeignScanParallelSafe = parallel_safe;
	routine->EstimateDSMForeignScan = parallel_estimate;
	routine->InitializeDSMForeignScan = parallel_init;
	routine->ReInitializeDSMForeignScan = parallel_reinit;
	routine->InitializeWorkerForeignScan = parallel_worker;
	routine->ShutdownForeignScan = shutdown_scan;
	dp_bucket_plan_routine(routine);
	dp_bucket_explain_routine(routine);
	dp_bucket_analyze_routine(routine);
}

/* Make the state and open the tables. */
static void
begin_scan(ForeignScanState *node, int eflags)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	EState *estate = node->ss.ps.state;
	MemoryContext old = MemoryContextSwitchTo(estate->es_query_cxt);
	DpBucketScan *scan = palloc0(sizeof(DpBucketScan));

	scan->node = node;
	scan->estate = estate;
	counters_init(&scan->own);
	scan->counters = &scan->own;
	node->fdw_state = scan;
	begin_state(scan, plan, (eflags & EXEC_FLAG_EXPLAIN_ONLY) ? NULL : estate->es_snapshot);
	if (!(eflags & EXEC_FLAG_EXPLAIN_ONLY))
		begin_tables(scan);
	MemoryContextSwitchTo(old);
}

/* The plan, with the spans that the snapshot shows */
static void
begin_state(DpBucketScan *scan, ForeignScan *plan, Snapshot snapshot)
{
	List *mode = list_nth(plan->fdw_private, DP_PLAN_MODE);
	DpBucketRel *rel;
	ListCell *lc;

	rel =
		dp_bucket_rel_for(exec_rt_fetch(bms_next_member(plan->fs_relids, -1), scan->estate)->relid,
						  snapshot);
	scan->rel = rel;
	scan->mode = linitial_int(mode);
	scan->one_group = lsecond_int(mode) != 0;
	if (scan->mode != DP_SCAN_ALL &&
		(!OidIsValid(rel->packed_index) || !OidIsValid(rel->recent_index)))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("an index of \"%s\" is missing", dp_bucket_rel_name(rel))));

	scan->needed = palloc(sizeof(DpBucketColumn *) * Max(rel->ncolumns, 1));
	foreach(lc, list_nth(plan->fdw_private, DP_PLAN_NEEDED))
	{
		DpBucketColumn *column = rel->by_attnum[lfirst_int(lc) - 1];

		scan->needed[scan->nneeded++] = column;
		if (column->role == DP_BUCKET_TIME)
			scan->need_time = true;
	}
	scan->need_ctid = plan->fsSystemCol;
	dp_bucket_keys_decode(rel, list_nth(plan->fdw_private, DP_PLAN_KEYS), plan->fdw_exprs,
						  &scan->node->ss.ps, &scan->keys, &scan->nkeys);
	scan->upper_plan = list_nth(plan->fdw_private, DP_PLAN_UPPER);
	scan->fields = list_nth(plan->fdw_private, DP_PLAN_FIELDS);
	scan->group_filters =
		dp_bucket_group_filters_compile(list_nth(plan->fdw_private, DP_PLAN_GROUP_FILTERS));
	scan->tail = PG_INT64_MIN;
}

/* No bucket was read yet. */
static void
counters_init(DpBucketCounters *counters)
{
	pg_atomic_init_u64(&counters->read, 0);
	pg_atomic_init_u64(&counters->skipped, 0);
	pg_atomic_init_u64(&counters->summed, 0);
	pg_atomic_init_u64(&counters->waiting, 0);
}

/* Opens the tables to read. */
static void
begin_tables(DpBucketScan *scan)
{
	DpBucketRel *rel = scan->rel;
	EState *estate = scan->estate;
	int i;

	scan->packed = table_open(rel->packed, AccessShareLock);
	scan->recent = table_open(rel->recent, AccessShareLock);
	scan->packed_slot = table_slot_create(scan->packed, &estate->es_tupleTable);
	scan->recent_slot = table_slot_create(scan->recent, &estate->es_tupleTable);
	if (scan->mode != DP_SCAN_ALL)
	{
		scan->packed_index = index_open(rel->packed_index, AccessShareLock);
		/*
		 * Rows that the snapshot shows existed before it. A serializable transaction must still
		 * read, to register the read.
		 */
		scan->nothing_waits =
			RelationGetNumberOfBlocks(scan->recent) == 0 && !IsolationIsSerializable();
		if (!scan->nothing_waits)
			scan->recent_index = index_open(rel->recent_index, AccessShareLock);
	}
	if (DP_SCAN_BY_GROUP(scan->mode) && !scan->one_group)
	{
		scan->group_cmp = palloc(sizeof(FmgrInfo) * Max(rel->ngroups, 1));
		for (i = 0; i < rel->ngroups; i++)
			fmgr_info_copy(&scan->group_cmp[i],
						   index_getprocinfo(scan->packed_index, i + 1, BTORDER_PROC),
						   CurrentMemoryContext);
	}

	scan->key_context = AllocSetContextCreate(estate->es_query_cxt, "docpatterns bucket keys",
											  ALLOCSET_SMALL_SIZES);
	scan->rows_context = AllocSetContextCreate(estate->es_query_cxt, "docpatterns bucket rows",
											   ALLOCSET_DEFAULT_SIZES);
	scan->span_context = AllocSetContextCreate(estate->es_query_cxt, "docpatterns bucket span",
											   ALLOCSET_DEFAULT_SIZES);
	dp_bucket_reader_init(&scan->reader, estate->es_query_cxt);
	scan->reader.fields = scan->fields;
	scan->group_values = palloc(sizeof(Datum) * Max(rel->ngroups, 1));
	scan->group_nulls = palloc(sizeof(bool) * Max(rel->ngroups, 1));
	scan->rows.values = palloc0(sizeof(Datum *) * Max(rel->nvalues, 1));
	scan->rows.nulls = palloc0(sizeof(bool *) * Max(rel->nvalues, 1));
	if (scan->need_ctid)
		scan->origins = dp_bucket_origins_of(estate, rel->relid, true);
	if (DP_SCAN_MERGES(scan->mode))
		scan->merge = dp_bucket_merge_begin(scan);
	if (scan->upper_plan != NIL)
		scan->upper = dp_bucket_upper_begin(scan, scan->upper_plan);
}

/* The next row. */
static TupleTableSlot *
iterate(ForeignScanState *node)
{
	DpBucketScan *scan = node->fdw_state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	if (unlikely(!scan->started))
		bucket_scan_start(scan);
	if (scan->upper != NULL)
		return dp_bucket_upper_next(scan, slot);
	if (scan->merge != NULL)
		return dp_bucket_merge_next(scan, slot);
	if (scan->mode >= DP_SCAN_ORDERED)
		return iterate_ordered(scan, slot);

	for (;;)
	{
		int from;
		int to;

		if (likely(scan->next < scan->end))
		{
			emit_packed(scan, slot);
			scan->next++;
			return slot;
		}
		if (scan->packed_done || !dp_bucket_scan_next(scan))
			break;
		if (!dp_bucket_scan_range(scan, &from, &to))
			continue;
		MemoryContextReset(scan->rows_context);
		{
			MemoryContext old = MemoryContextSwitchTo(scan->rows_context);

			dp_scan_rows_make(scan, scan->reader.count, scan->need_time);
			dp_scan_rows_decode(scan, &scan->reader, 0, scan->need_time);
			MemoryContextSwitchTo(old);
		}
		if (scan->need_ctid)
			scan->rows.ordinal =
				dp_bucket_origin_add(scan->origins, true, &scan->packed_slot->tts_tid);
		scan->next = from;
		scan->end = to;
	}
	if (dp_bucket_scan_recent(scan))
		dp_bucket_emit_recent(scan, slot);
	return slot;
}

/* The next row in the order of group and time, or backwards. */
static TupleTableSlot *
iterate_ordered(DpBucketScan *scan, TupleTableSlot *slot)
{
	if (!scan->recent_pending && !scan->recent_done)
		scan->recent_pending = dp_bucket_scan_recent(scan);
	if (scan->next == scan->end && !scan->packed_done)
		(void) dp_scan_rows_span(scan);

	if (scan->next != scan->end && (!scan->recent_pending || compare_recent(scan) <= 0))
	{
		emit_packed(scan, slot);
		scan->next += scan->mode == DP_SCAN_BACKWARD ? -1 : 1;
	}
	else if (scan->recent_pending)
	{
		dp_bucket_emit_recent(scan, slot);
		scan->recent_pending = false;
	}
	return slot;
}

/* Restarts the scan when the next row is requested. */
static void
rescan(ForeignScanState *node)
{
	DpBucketScan *scan = node->fdw_state;

	if (scan->mode == DP_SCAN_BACKWARD && scan->one_group && scan->started)
		scan->tail = scan->nspans == 1 && !scan->packed_done ? scan->start : PG_INT64_MIN;
	scan->started = false;
	if (scan->merge != NULL)
		dp_bucket_merge_rescan(scan);
	if (scan->upper != NULL)
		dp_bucket_upper_rescan(scan);
}

/* Closes the tables. */
static void
end_scan(ForeignScanState *node)
{
	DpBucketScan *scan = node->fdw_state;

	if (scan == NULL || scan->packed == NULL)
		return;
	if (scan->merge != NULL)
		dp_bucket_merge_end(scan);
	if (scan->packed_scan != NULL)
		table_endscan(scan->packed_scan);
	if (scan->recent_scan != NULL)
		table_endscan(scan->recent_scan);
	if (scan->packed_iscan != NULL)
		index_endscan(scan->packed_iscan);
	if (scan->recent_iscan != NULL)
		index_endscan(scan->recent_iscan);
	dp_bucket_reader_free(&scan->reader);
	if (scan->packed_index != NULL)
		index_close(scan->packed_index, NoLock);
	if (scan->recent_index != NULL)
		index_close(scan->recent_index, NoLock);
	table_close(scan->packed, NoLock);
	table_close(scan->recent, NoLock);
	scan->packed = NULL;
}

/* ---------------------------------------------------------------- keys */

/* The present values of the keys. */
static void
keys_evaluate(DpBucketScan *scan)
{
	ExprContext *econtext = scan->node->ss.ps.ps_ExprContext;
	int i;

	scan->impossible = false;
	if (scan->nkeys == 0)
		return;
	MemoryContextReset(scan->key_context);
	for (i = 0; i < scan->nkeys; i++)
	{
		DpBucketKey *key = &scan->keys[i];
		MemoryContext old = MemoryContextSwitchTo(scan->key_context);

		key->datum = ExecEvalExpr(key->state, econtext, &key->isnull);
		MemoryContextSwitchTo(old);
		if (key->isnull)
			scan->impossible = true; /* no operator of a btree is true for null */
	}
}

/* Evaluates the keys on the time. */
static void
time_bounds(DpBucketScan *scan)
{
	DpBucketRel *rel = scan->rel;
	int i;

	scan->since = PG_INT64_MIN;
	scan->until = PG_INT64_MAX;
	for (i = 0; i < scan->nkeys && !scan->impossible; i++)
	{
		if (scan->keys[i].column->role == DP_BUCKET_TIME)
			time_bound(scan, &scan->keys[i]);
	}
	if (scan->since > scan->until)
		scan->impossible = true;
	if (scan->impossible || rel->time == NULL)
		return;

	/* measurements of a time are in the buckets of its span */
	scan->start_since = PG_INT64_MIN;
	scan->start_until = PG_INT64_MAX;
	if (scan->since > MIN_TIMESTAMP + CALENDAR_MARGIN)
		scan->start_since = scan->since < END_TIMESTAMP - CALENDAR_MARGIN
								? dp_bucket_rel_start(rel, scan->since)
								: END_TIMESTAMP - 2 * CALENDAR_MARGIN;
	if (scan->until < END_TIMESTAMP - CALENDAR_MARGIN)
		scan->start_until = scan->until > MIN_TIMESTAMP + CALENDAR_MARGIN
								? dp_bucket_rel_start(rel, scan->until)
								: MIN_TIMESTAMP + 2 * CALENDAR_MARGIN;
}

/* Narrow the bounds of the time by one key. */
static void
time_bound(DpBucketScan *scan, const DpBucketKey *key)
{
	int64 t;
	int overflow; /* out of range becomes infinite */

	if (key->righttype == DATEOID && scan->rel->time->type == TIMESTAMPTZOID)
		t = date2timestamptz_opt_overflow(DatumGetDateADT(key->datum), &overflow);
	else if (key->righttype == DATEOID)
		t = date2timestamp_opt_overflow(DatumGetDateADT(key->datum), &overflow);
	else if (key->righttype != scan->rel->time->type)
		t = timestamp2timestamptz_opt_overflow(DatumGetTimestamp(key->datum), &overflow);
	else
		t = DatumGetInt64(key->datum);

	switch (key->strategy)
	{
		case BTLessStrategyNumber:
			if (t == PG_INT64_MIN)
				scan->impossible = true;
			else
				scan->until = Min(scan->until, t - 1);
			break;
		case BTLessEqualStrategyNumber:
			scan->until = Min(scan->until, t);
			break;
		case BTEqualStrategyNumber:
			scan->since = Max(scan->since, t);
			scan->until = Min(scan->until, t);
			break;
		case BTGreaterEqualStrategyNumber:
			scan->since = Max(scan->since, t);
			break;
		case BTGreaterStrategyNumber:
			if (t == PG_INT64_MAX)
				scan->impossible = true;
			else
				scan->since = Max(scan->since, t + 1);
			break;
		default:
			elog(ERROR, "unexpected strategy %d", key->strategy);
	}
}

/* Keys for one of the two indexes; their number. */
static int
index_keys(DpBucketScan *scan, ScanKeyData *scankeys, bool packed)
{
	DpBucketRel *rel = scan->rel;
	int64 since = packed ? (scan->only_tail ? scan->tail : scan->start_since) : scan->since;
	int64 until = packed ? scan->start_until : scan->until;
	bool listed = true; /* the columns before have one value each, or a list of them */
	int g;
	int i;
	int n = 0;

	/* in the order of the index's columns, as btree requires */
	for (g = 0; g < rel->ngroups; g++)
	{
		bool listed_now = false;

		for (i = 0; i < scan->nkeys; i++)
		{
			DpBucketKey *key = &scan->keys[i];

			if (key->column != rel->groups[g] || n >= INDEX_MAX_KEYS * 2)
				continue;
			/*
			 * an array below a range is read value by value, which is not the order; its clause is
			 * checked above anyway
			 */
			if (key->is_array && !listed && DP_SCAN_BY_GROUP(scan->mode))
				continue;
			if (key->strategy == BTEqualStrategyNumber || key->strategy == DP_KEY_IS_NULL)
				listed_now = true;
			if (key->strategy == DP_KEY_IS_NULL)
				ScanKeyEntryInitialize(&scankeys[n++], SK_ISNULL | SK_SEARCHNULL, g + 1,
									   InvalidStrategy, InvalidOid, InvalidOid, InvalidOid,
									   (Datum) 0);
			else
				ScanKeyEntryInitialize(&scankeys[n++], key->is_array ? SK_SEARCHARRAY : 0, g + 1,
									   key->strategy, key->righttype, key->collation, key->function,
									   key->datum);
		}
		listed = listed && listed_now;
	}
	if (rel->time != NULL)
	{
		bool zoned = rel->time->type == TIMESTAMPTZOID;

		if (since == until)
			ScanKeyEntryInitialize(&scankeys[n++], 0, g + 1, BTEqualStrategyNumber, rel->time->type,
								   InvalidOid, zoned ? F_TIMESTAMPTZ_EQ : F_TIMESTAMP_EQ,
								   Int64GetDatum(since));
		else
		{
			if (since != PG_INT64_MIN)
				ScanKeyEntryInitialize(&scankeys[n++], 0, g + 1, BTGreaterEqualStrategyNumber,
									   rel->time->type, InvalidOid,
									   zoned ? F_TIMESTAMPTZ_GE : F_TIMESTAMP_GE,
									   Int64GetDatum(since));
			if (until != PG_INT64_MAX)
				ScanKeyEntryInitialize(&scankeys[n++], 0, g + 1, BTLessEqualStrategyNumber,
									   rel->time->type, InvalidOid,
									   zoned ? F_TIMESTAMPTZ_LE : F_TIMESTAMP_LE,
									   Int64GetDatum(until));
		}
	}
	return n;
}

/* Start the scan of one of the two indexes, again if it was running. */
static void
index_start(DpBucketScan *scan, bool packed)
{
	IndexScanDesc *iscan = packed ? &scan->packed_iscan : &scan->recent_iscan;
	ScanKeyData keys[INDEX_MAX_KEYS * 2 + 2];
	int nkeys = index_keys(scan, keys, packed);

	/* their number may change with the values of parameters */
	if (*iscan != NULL && (*iscan)->numberOfKeys != nkeys)
	{
		index_endscan(*iscan);
		*iscan = NULL;
	}
	if (*iscan == NULL)
	{
		*iscan = dp_index_beginscan(packed ? scan->packed : scan->recent,
									packed ? scan->packed_index : scan->recent_index,
									scan->estate->es_snapshot, nkeys);
		(*iscan)->xs_want_itup =
			packed ? scan->mode >= DP_SCAN_ORDERED : DP_SCAN_MERGES(scan->mode);
	}
	index_rescan(*iscan, keys, nkeys, NULL, 0);
}

/*
 * The tail was not enough: go on before it.
 */
void
dp_bucket_scan_widen(DpBucketScan *scan)
{
	MemoryContext old = MemoryContextSwitchTo(scan->estate->es_query_cxt);
	int64 until = scan->start_until;

	scan->only_tail = scan->tail_done = false;
	scan->start_until = scan->tail - 1;
	index_start(scan, true);
	scan->start_until = until;
	MemoryContextSwitchTo(old);
}

/* Whether a group satisfies the keys on it. */
static bool
group_matches(DpBucketScan *scan, const Datum *values, const bool *nulls)
{
	int i;

	for (i = 0; i < scan->nkeys; i++)
	{
		DpBucketKey *key = &scan->keys[i];
		int number = key->column->number;

		if (key->column->role != DP_BUCKET_GROUP || !key->exact)
			continue;
		if (key->strategy == DP_KEY_IS_NULL)
		{
			if (!nulls[number])
				return false;
		}
		else if (nulls[number] || !DatumGetBool(FunctionCall2Coll(&key->finfo, key->collation,
																  values[number], key->datum)))
			return false;
	}
	return true;
}

/* Whether the header says that no value of the bucket satisfies a key. */
static bool
value_excluded(DpBucketScan *scan, DpBucketKey *key)
{
	DpBucketColumn *column = key->column;
	const DpPackedColumn *packed;
	Datum bound;

	if (column->number >= scan->reader.ncolumns)
		return true; /* all null */
	packed = dp_bucket_column(&scan->reader, column->number);
	if (packed->summary.nvalues == 0)
		return true;
	if (!packed->summary.has_range || (dp_bucket_kind_type(packed->kind) != key->righttype &&
									   (key->strategy == BTEqualStrategyNumber ||
										dp_bucket_kind_type(packed->kind) != column->type)))
		return false;
	switch (key->strategy)
	{
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			return dp_bucket_min(packed, &bound) &&
				   !DatumGetBool(FunctionCall2Coll(&key->finfo, key->collation, bound, key->datum));
		case BTGreaterStrategyNumber:
		case BTGreaterEqualStrategyNumber:
			return dp_bucket_max(packed, &bound) &&
				   !DatumGetBool(FunctionCall2Coll(&key->finfo, key->collation, bound, key->datum));
		default:
		{
			Datum min;
			Datum max;
			TypeCacheEntry *type = lookup_type_cache(key->righttype, TYPECACHE_CMP_PROC_FINFO);

			if (!OidIsValid(type->cmp_proc_finfo.fn_oid) || !dp_bucket_min(packed, &min) ||
				!dp_bucket_max(packed, &max))
				return false;
			return DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, key->collation, min,
												   key->datum)) > 0 ||
				   DatumGetInt32(FunctionCall2Coll(&type->cmp_proc_finfo, key->collation, max,
												   key->datum)) < 0;
		}
	}
}

/* ---------------------------------------------------------------- reading */

/* Position before the first row. */
static void
bucket_scan_start(DpBucketScan *scan)
{
	MemoryContext old;

	keys_evaluate(scan);
	time_bounds(scan);
	scan->started = true;
	scan->only_tail = scan->tail_done = false;
	scan->nspans = 0;
	scan->next = scan->end = 0;
	scan->packed_pending = scan->recent_pending = false;
	scan->packed_done = scan->impossible;
	scan->recent_done = scan->impossible || scan->nothing_waits;
	if (scan->impossible)
		return;
	scan->only_tail = scan->tail > scan->start_since && scan->tail <= scan->start_until;

	old = MemoryContextSwitchTo(scan->estate->es_query_cxt);
	if (scan->mode != DP_SCAN_ALL)
	{
		index_start(scan, true);
		if (!scan->nothing_waits)
			index_start(scan, false);
	}
	else if (scan->packed_scan != NULL)
	{
		table_rescan(scan->packed_scan, NULL);
		table_rescan(scan->recent_scan, NULL);
	}
	else if (scan->packed_shared != NULL)
	{
		scan->packed_scan = table_beginscan_parallel(scan->packed, scan->packed_shared);
		scan->recent_scan = table_beginscan_parallel(scan->recent, scan->recent_shared);
	}
	else
	{
		scan->packed_scan = table_beginscan(scan->packed, scan->estate->es_snapshot, 0, NULL);
		scan->recent_scan = table_beginscan(scan->recent, scan->estate->es_snapshot, 0, NULL);
	}
	MemoryContextSwitchTo(old);
}

/* Open the next bucket that may have rows that match. */
bool
dp_bucket_scan_next(DpBucketScan *scan)
{
	DpBucketRel *rel = scan->rel;
	TupleTableSlot *slot = scan->packed_slot;
	int i;

	if (scan->packed_done)
		return false;
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (scan->mode == DP_SCAN_ALL
				? !table_scan_getnextslot(scan->packed_scan, ForwardScanDirection, slot)
				: !dp_bucket_scan_slot(scan, scan->packed_iscan, ForwardScanDirection, slot))
		{
			scan->packed_done = true;
			return false;
		}
		slot_getsomeattrs(slot, rel->packed_data);
		if (slot->tts_isnull[rel->packed_data - 1])
			continue;
		for (i = 0; i < rel->ngroups; i++)
		{
			scan->group_values[i] = slot->tts_values[rel->groups[i]->packed - 1];
			scan->group_nulls[i] = slot->tts_isnull[rel->groups[i]->packed - 1];
		}
		if (rel->time != NULL)
			scan->start = DatumGetInt64(slot->tts_values[rel->packed_start - 1]);
		if (scan->mode == DP_SCAN_ALL &&
			((rel->time != NULL &&
			  (scan->start < scan->start_since || scan->start > scan->start_until)) ||
			 !group_matches(scan, scan->group_values, scan->group_nulls)))
		{
			dp_bucket_scan_count(scan, &scan->counters->skipped);
			continue;
		}
		dp_bucket_open(&scan->reader, slot->tts_values[rel->packed_data - 1]);
		if (dp_bucket_scan_hopeless(scan))
		{
			dp_bucket_scan_count(scan, &scan->counters->skipped);
			continue;
		}
		return true;
	}
}

/* Whether the header or the group of the open bucket says that no row can match. */
bool
dp_bucket_scan_hopeless(DpBucketScan *scan)
{
	int i;

	if (scan->rel->time != NULL &&
		(scan->reader.last < scan->since || scan->reader.first > scan->until))
		return true;
	for (i = 0; i < scan->nkeys; i++)
	{
		if (scan->keys[i].column->role == DP_BUCKET_VALUE && value_excluded(scan, &scan->keys[i]))
			return true;
	}
	return !dp_bucket_group_passes(scan);
}

/* The rows of the open bucket that match the keys on time. */
bool
dp_bucket_scan_range(DpBucketScan *scan, int *from, int *to)
{
	*from = 0;
	*to = scan->reader.count;
	if (scan->rel->time == NULL ||
		(scan->reader.first >= scan->since && scan->reader.last <= scan->until))
		return true;
	return dp_bucket_find_times(&scan->reader, scan->since,
								scan->until == PG_INT64_MAX ? PG_INT64_MAX : scan->until + 1, from,
								to);
}

/* Go to the next waiting measurement that matches the keys. */
bool
dp_bucket_scan_recent(DpBucketScan *scan)
{
	DpBucketRel *rel = scan->rel;
	TupleTableSlot *slot = scan->recent_slot;
	ScanDirection direction =
		scan->mode == DP_SCAN_BACKWARD ? BackwardScanDirection : ForwardScanDirection;

	while (!scan->recent_done)
	{
		int i;

		if (scan->mode == DP_SCAN_ALL
				? !table_scan_getnextslot(scan->recent_scan, ForwardScanDirection, slot)
				: !dp_bucket_scan_slot(scan, scan->recent_iscan, direction, slot))
		{
			scan->recent_done = true;
			break;
		}
		dp_bucket_scan_count(scan, &scan->counters->waiting);
		if (scan->mode != DP_SCAN_ALL)
			return true;
		if (rel->time != NULL)
		{
			bool isnull;
			int64 time = DatumGetInt64(slot_getattr(slot, rel->time->recent, &isnull));

			if (isnull || time < scan->since || time > scan->until)
				continue;
		}
		if (scan->nkeys == 0)
			return true;
		{
			Datum values[INDEX_MAX_KEYS];
			bool nulls[INDEX_MAX_KEYS];

			for (i = 0; i < rel->ngroups; i++)
				values[i] = slot_getattr(slot, rel->groups[i]->recent, &nulls[i]);
			if (group_matches(scan, values, nulls))
				return true;
		}
	}
	return false;
}

/*
 * Returns whether the next row from buckets is before (-1) or after (1) the next waiting one, in
 * the direction of the scan.
 */
static int
compare_recent(DpBucketScan *scan)
{
	DpBucketRel *rel = scan->rel;
	int sign = scan->mode == DP_SCAN_BACKWARD ? -1 : 1;
	int i;
	bool isnull;
	int64 packed;
	int64 recent;

	for (i = 0; scan->group_cmp != NULL && i < rel->ngroups; i++)
	{
		Datum value = slot_getattr(scan->recent_slot, rel->groups[i]->recent, &isnull);
		int c;

		if (isnull || scan->group_nulls[i])
			c = (int) scan->group_nulls[i] - (int) isnull;
		else
			c = DatumGetInt32(FunctionCall2Coll(&scan->group_cmp[i], rel->groups[i]->collation,
												scan->group_values[i], value));
		if (c != 0)
			return c < 0 ? -sign : sign;
	}
	packed = scan->rows.times[scan->rows.order != NULL ? scan->rows.order[scan->next] : scan->next];
	recent = DatumGetInt64(slot_getattr(scan->recent_slot, rel->time->recent, &isnull));
	return packed < recent ? -sign : packed > recent ? sign : -1;
}

/* Put the next row of the buckets into the slot. */
static inline void
emit_packed(DpBucketScan *scan, TupleTableSlot *slot)
{
	const DpScanRows *rows = &scan->rows;
	int row = rows->order != NULL ? rows->order[scan->next] : scan->next;
	Datum *values = slot->tts_values;
	bool *nulls = slot->tts_isnull;
	int i;

	memset(nulls, true, sizeof(bool) * slot->tts_tupleDescriptor->natts);
	for (i = 0; i < scan->nneeded; i++)
	{
		const DpBucketColumn *column = scan->needed[i];
		int att = column->attnum - 1;
		int number = column->number;

		switch (column->role)
		{
			case DP_BUCKET_GROUP:
				values[att] = scan->group_values[number];
				nulls[att] = scan->group_nulls[number];
				break;
			case DP_BUCKET_TIME:
				values[att] = Int64GetDatum(rows->times[row]);
				nulls[att] = false;
				break;
			case DP_BUCKET_VALUE:
				values[att] = rows->values[number][row];
				nulls[att] = rows->nulls[number][row];
				break;
		}
	}
	ExecStoreVirtualTuple(slot);
	if (unlikely(scan->need_ctid))
	{
		int position = rows->positions != NULL ? rows->positions[row] : row;

		ItemPointerSet(&slot->tts_tid, rows->ordinals != NULL ? rows->ordinals[row] : rows->ordinal,
					   position + 1);
	}
}

/* For other files; here it is part of the loop. */
void
dp_bucket_emit_packed(DpBucketScan *scan, TupleTableSlot *slot)
{
	emit_packed(scan, slot);
}

/* Put the waiting measurement into the slot. */
void
dp_bucket_emit_recent(DpBucketScan *scan, TupleTableSlot *slot)
{
	int i;

	memset(slot->tts_isnull, true, sizeof(bool) * slot->tts_tupleDescriptor->natts);
	for (i = 0; i < scan->nneeded; i++)
	{
		DpBucketColumn *column = scan->needed[i];
		int att = column->attnum - 1;

		slot->tts_values[att] =
			slot_getattr(scan->recent_slot, column->recent, &slot->tts_isnull[att]);
	}
	ExecStoreVirtualTuple(slot);
	if (unlikely(scan->need_ctid))
		ItemPointerSet(&slot->tts_tid,
					   dp_bucket_origin_add(scan->origins, false, &scan->recent_slot->tts_tid),
					   ItemPointerGetOffsetNumber(&scan->recent_slot->tts_tid));
}

/* ---------------------------------------------------------------- parallel */

/* Everything that is read can be read by workers. */
static bool
parallel_safe(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte)
{
	return true;
}

static Size
parallel_estimate(ForeignScanState *node, ParallelContext *pcxt)
{
	DpBucketScan *scan = node->fdw_state;

	return SHARED_SIZE +
		   MAXALIGN(table_parallelscan_estimate(scan->packed, scan->estate->es_snapshot)) +
		   MAXALIGN(table_parallelscan_estimate(scan->recent, scan->estate->es_snapshot));
}

static void
parallel_init(ForeignScanState *node, ParallelContext *pcxt, void *coordinate)
{
	DpBucketScan *scan = node->fdw_state;
	Shared *shared = coordinate;

	counters_init(&shared->counters);
	shared->recent_offset =
		MAXALIGN(table_parallelscan_estimate(scan->packed, scan->estate->es_snapshot));
	scan->counters = &shared->counters;
	scan->packed_shared = (ParallelTableScanDesc) ((char *) coordinate + SHARED_SIZE);
	scan->recent_shared =
		(ParallelTableScanDesc) ((char *) scan->packed_shared + shared->recent_offset);
	table_parallelscan_initialize(scan->packed, scan->packed_shared, scan->estate->es_snapshot);
	table_parallelscan_initialize(scan->recent, scan->recent_shared, scan->estate->es_snapshot);
}

static void
parallel_reinit(ForeignScanState *node, ParallelContext *pcxt, void *coordinate)
{
	DpBucketScan *scan = node->fdw_state;

	table_parallelscan_reinitialize(scan->packed, scan->packed_shared);
	table_parallelscan_reinitialize(scan->recent, scan->recent_shared);
}

static void
parallel_worker(ForeignScanState *node, shm_toc *toc, void *coordinate)
{
	DpBucketScan *scan = node->fdw_state;
	Shared *shared = coordinate;

	scan->counters = &shared->counters;
	scan->packed_shared = (ParallelTableScanDesc) ((char *) coordinate + SHARED_SIZE);
	scan->recent_shared =
		(ParallelTableScanDesc) ((char *) scan->packed_shared + shared->recent_offset);
}

/* The shared memory will be freed: keeps the counts for EXPLAIN. */
static void
shutdown_scan(ForeignScanState *node)
{
	DpBucketScan *scan = node->fdw_state;

	if (scan == NULL || scan->counters == &scan->own)
		return;
	scan->own = *scan->counters;
	scan->counters = &scan->own;
}
