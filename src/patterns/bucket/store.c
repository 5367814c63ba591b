/*
 * store.c
 *		The two tables underlying a relation of measurements, for writers.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_type.h"
#include "commands/sequence.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "kit/side/side.h"
#include "patterns/bucket/store.h"

static void open_recent(DpBucketStore *store);
static void found_recent(DpBucketStore *store);
static void open_packed(DpBucketStore *store);
static TupleTableSlot *
fill_recent(DpBucketStore *store, TupleTableSlot *slot, const Datum *values, const bool *nulls);
static void row_arrives(DpBucketStore *store, TupleTableSlot *slot);
static int
group_keys(DpBucketStore *store, Relation index, const DpBucketGroup *group, ScanKey keys);
static void table_ready(DpBucketStore *store, DpTable *t, Oid relid);
static void forget(DpBucketStore *store);
static Relation index_of(DpBucketStore *store, Oid index);

/* Opens the tables; those of buckets when first used. */
DpBucketStore *
dp_bucket_store_open(DpBucketRel *rel, EState *estate)
{
	bool own = estate == NULL;
	MemoryContext context;
	MemoryContext old;
	DpBucketStore *store;

	if (own)
		estate = CreateExecutorState();
	context = AllocSetContextCreate(estate->es_query_cxt, "docpatterns bucket store",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	store = palloc0(sizeof(DpBucketStore));
	store->rel = rel;
	store->estate = estate;
	store->own_estate = own;
	store->context = context;
	store->cid = InvalidCommandId;
	store->scratch =
		AllocSetContextCreate(context, "docpatterns bucket scratch", ALLOCSET_DEFAULT_SIZES);
	open_recent(store);
	MemoryContextSwitchTo(old);
	return store;
}

/* Writes collected measurements and closes everything. */
void
dp_bucket_store_close(DpBucketStore *store)
{
	EState *estate = store->estate;
	bool own = store->own_estate;

	dp_bucket_recent_flush(store);
	dp_bucket_packed_flush(store);
	if (store->packed_bulk != NULL)
	{
		table_finish_bulk_insert(store->packed.rel, 0);
		FreeBulkInsertState(store->packed_bulk);
	}
	if (store->snapshot != NULL)
		UnregisterSnapshot(store->snapshot);
	if (store->builder != NULL)
		dp_bucket_builder_free(store->builder);
	if (store->has_reader)
		dp_bucket_reader_free(&store->reader);

	if (store->recent_index != NULL)
		index_close(store->recent_index, NoLock);
	dp_table_close(&store->recent);
	if (store->packed.rel != NULL)
	{
		if (store->packed_index != NULL)
			index_close(store->packed_index, NoLock);
		dp_table_close(&store->packed);
	}
	MemoryContextDelete(store->context);
	if (own)
	{
		/* what AFTER ROW triggers opened */
		ExecCloseResultRelations(estate);
		ExecResetTupleTable(estate->es_tupleTable, false);
		FreeExecutorState(estate);
	}
}

/*
 * The snapshot to read with for writing.
 */
Snapshot
dp_bucket_store_snapshot(DpBucketStore *store, bool renew)
{
	if (store->snapshot != NULL && !renew)
		return store->snapshot;
	if (store->snapshot != NULL)
		UnregisterSnapshot(store->snapshot);
	store->snapshot = NULL;
	store->snapshot = RegisterSnapshot(IsolationUsesXactSnapshot() ? GetTransactionSnapshot()
																   : GetLatestSnapshot());
	return store->snapshot;
}

/*
 * Triggers of the underlying tables (those of foreign keys) that the following writes queue are
 * fired by dp_bucket_store_end().
 */
void
dp_bucket_store_begin(DpBucketStore *store)
{
	AfterTriggerBeginQuery();
}

void
dp_bucket_store_end(DpBucketStore *store)
{
	dp_bucket_packed_flush(store);
	AfterTriggerEndQuery(store->estate);
}

/*
 * The group of a row.
 */
void
dp_bucket_group_of_row(const DpBucketRel *rel, const Datum *values, const bool *nulls,
					   DpBucketGroup *group)
{
	int i;

	for (i = 0; i < rel->ngroups; i++)
	{
		int column = rel->groups[i] - rel->columns;

		group->values[i] = values[column];
		group->nulls[i] = nulls[column];
	}
}

/*
 * A copy in the current context, of plain values.
 */
void
dp_bucket_group_copy(const DpBucketRel *rel, const DpBucketGroup *from, DpBucketGroup *to)
{
	int i;

	for (i = 0; i < rel->ngroups; i++)
	{
		const DpBucketColumn *column = rel->groups[i];

		to->nulls[i] = from->nulls[i];
		if (from->nulls[i])
			to->values[i] = (Datum) 0;
		else if (column->typbyval)
			to->values[i] = from->values[i];
		else if (column->typlen == -1)
			to->values[i] = PointerGetDatum(PG_DETOAST_DATUM_COPY(from->values[i]));
		else
			to->values[i] = datumCopy(from->values[i], false, column->typlen);
	}
}

/*
 * Whether two groups are the same to the last bit.  What the columns' types
 * call equal may differ (numeric 1.0 and 1.00), and then it is not one group:
 * a bucket holds its group only once.
 */
bool
dp_bucket_group_same(const DpBucketRel *rel, const DpBucketGroup *a, const DpBucketGroup *b)
{
	int i;

	for (i = 0; i < rel->ngroups; i++)
	{
		const DpBucketColumn *column = rel->groups[i];

		if (a->nulls[i] != b->nulls[i])
			return false;
		if (a->nulls[i])
			continue;
		if (column->typbyval)
		{
			if (a->values[i] != b->values[i])
				return false;
		}
		else if (!datum_image_eq(a->values[i], b->values[i], false, column->typlen))
			return false;
	}
	return true;
}

/*
 * A hash for that.
 */
uint32
dp_bucket_group_hash(const DpBucketRel *rel, const DpBucketGroup *group)
{
	uint32 hash = 0;
	int i;

	for (i = 0; i < rel->ngroups; i++)
	{
		const DpBucketColumn *column = rel->groups[i];
		uint32 one = 0;

		if (group->nulls[i])
			one = 1;
		else if (column->typbyval)
			one = murmurhash32((uint32) group->values[i] ^ (uint32) (group->values[i] >> 32));
		else
			one = datum_image_hash(group->values[i], false, column->typlen);
		hash = hash_combine(hash, one);
	}
	return hash;
}

/* Inserts a waiting measurement. Sets tid to its TID unless that is NULL. */
void
dp_bucket_recent_insert(DpBucketStore *store, const Datum *values, const bool *nulls,
						ItemPointer tid)
{
	TupleTableSlot *slot = fill_recent(store, dp_table_blank(&store->recent), values, nulls);

	row_arrives(store, slot);
	dp_table_insert(&store->recent);
	forget(store);
	if (tid != NULL)
		*tid = slot->tts_tid;
}

/* Pages: gives a new row its position. */
static void
row_arrives(DpBucketStore *store, TupleTableSlot *slot)
{
	if (OidIsValid(store->arrived))
	{
		slot->tts_values[store->rel->recent_arrived - 1] =
			Int64GetDatum(nextval_internal(store->arrived, false));
		slot->tts_isnull[store->rel->recent_arrived - 1] = false;
	}
}

/* Inserts one of many waiting measurements. */
void
dp_bucket_recent_add(DpBucketStore *store, const Datum *values, const bool *nulls)
{
	row_arrives(store,
				fill_recent(store, dp_table_next_blank(&store->recent, NULL), values, nulls));
}

void
dp_bucket_recent_flush(DpBucketStore *store)
{
	dp_table_flush(&store->recent, NULL);
	forget(store);
}

/* Replaces a waiting measurement. */
TM_Result
dp_bucket_recent_update(DpBucketStore *store, ItemPointer tid, const Datum *values,
						const bool *nulls)
{
	TupleTableSlot *slot = fill_recent(store, dp_table_blank(&store->recent), values, nulls);
	AttrNumber arrived = store->rel->recent_arrived;
	TM_Result result;

	if (arrived > 0)
	{
		/* it keeps its position among the others */
		if (!dp_bucket_recent_fetch(store, tid))
			elog(ERROR, "a waiting measurement has vanished");
		slot->tts_values[arrived - 1] =
			slot_getattr(store->recent.row, arrived, &slot->tts_isnull[arrived - 1]);
		ExecClearTuple(store->recent.row);
	}
	result = dp_table_update(&store->recent, tid, InvalidAttrNumber, true);
	forget(store);
	return result;
}

/*
 * The columns of the row in store->recent.row, in the relation's order.
 */
void
dp_bucket_recent_row(DpBucketStore *store, Datum *values, bool *nulls)
{
	TupleTableSlot *slot = store->recent.row;
	int i;

	slot_getallattrs(slot);
	for (i = 0; i < store->rel->ncolumns; i++)
	{
		int att = store->rel->columns[i].recent - 1;

		values[i] = slot->tts_values[att];
		nulls[i] = slot->tts_isnull[att];
	}
}

/*
 * Start to read waiting measurements of a group and a range of times.
 */
IndexScanDesc
dp_bucket_recent_scan(DpBucketStore *store, const DpBucketGroup *group, int64 since, int64 until,
					  Snapshot snapshot)
{
	DpBucketRel *rel = store->rel;
	ScanKeyData keys[INDEX_MAX_KEYS + 2];
	int nkeys = 0;
	IndexScanDesc scan;

	found_recent(store);
	if (store->recent_index == NULL)
		store->recent_index = index_of(store, rel->recent_index);
	if (group != NULL)
		nkeys = group_keys(store, store->recent_index, group, keys);
	if (rel->time != NULL && group != NULL)
	{
		bool zoned = rel->time->type == TIMESTAMPTZOID;

		if (since > PG_INT64_MIN)
			ScanKeyInit(&keys[nkeys++], rel->ngroups + 1, BTGreaterEqualStrategyNumber,
						zoned ? F_TIMESTAMPTZ_GE : F_TIMESTAMP_GE, Int64GetDatum(since));
		if (until < PG_INT64_MAX)
			ScanKeyInit(&keys[nkeys++], rel->ngroups + 1, BTLessStrategyNumber,
						zoned ? F_TIMESTAMPTZ_LT : F_TIMESTAMP_LT, Int64GetDatum(until));
	}
	scan = dp_index_beginscan(store->recent.rel, store->recent_index, snapshot, nkeys);
	index_rescan(scan, keys, nkeys, NULL, 0);
	return scan;
}

/*
 * Returns the next row of an index scan, which keeps what it allocates until it ends, although the
 * current context may be shorter-lived.
 */
static bool
scan_next(IndexScanDesc scan, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(scan));
	bool result = index_getnext_slot(scan, ForwardScanDirection, slot);

	MemoryContextSwitchTo(old);
	return result;
}

/*
 * Appends the TIDs of a group's waiting measurements before until.  Not every row needs to be
 * visible.
 */
void
dp_bucket_recent_tids(DpBucketStore *store, const DpBucketGroup *group, int64 until,
					  Snapshot snapshot, DpTids *tids)
{
	IndexScanDesc scan = dp_bucket_recent_scan(store, group, PG_INT64_MIN, until, snapshot);
	ItemPointer tid;

	while ((tid = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (tids->n == tids->max)
		{
			Size max = Max(tids->max * 2, 1024);

			tids->tid = tids->max == 0
							? MemoryContextAllocHuge(store->context, sizeof(uint64) * max)
							: repalloc_huge(tids->tid, sizeof(uint64) * max);
			tids->max = max;
		}
		tids->tid[tids->n++] =
			((uint64) ItemPointerGetBlockNumber(tid) << 16) | ItemPointerGetOffsetNumber(tid);
	}
	index_endscan(scan);
}

/*
 * Read a version of a waiting measurement.
 */
bool
dp_bucket_recent_fetch(DpBucketStore *store, ItemPointer tid)
{
	found_recent(store);
	return table_tuple_fetch_row_version(store->recent.rel, tid, SnapshotAny, store->recent.row);
}

bool
dp_bucket_recent_next(DpBucketStore *store, IndexScanDesc scan)
{
	return scan_next(scan, store->recent.row);
}

/*
 * Start to read the buckets of a group and start.
 */
IndexScanDesc
dp_bucket_packed_scan(DpBucketStore *store, const DpBucketGroup *group, int64 start,
					  Snapshot snapshot)
{
	DpBucketRel *rel = store->rel;
	ScanKeyData keys[INDEX_MAX_KEYS + 1];
	int nkeys;
	IndexScanDesc scan;

	open_packed(store);
	nkeys = group_keys(store, store->packed_index, group, keys);
	if (rel->time != NULL)
		ScanKeyInit(&keys[nkeys++], rel->ngroups + 1, BTEqualStrategyNumber,
					rel->time->type == TIMESTAMPTZOID ? F_TIMESTAMPTZ_EQ : F_TIMESTAMP_EQ,
					Int64GetDatum(start));
	scan = dp_index_beginscan(store->packed.rel, store->packed_index, snapshot, nkeys);
	index_rescan(scan, keys, nkeys, NULL, 0);
	return scan;
}

/*
 * Start to read all buckets.
 */
IndexScanDesc
dp_bucket_packed_scan_all(DpBucketStore *store, Snapshot snapshot)
{
	IndexScanDesc scan;

	open_packed(store);
	dp_bucket_packed_flush(store);
	scan = dp_index_beginscan(store->packed.rel, store->packed_index, snapshot, 0);
	index_rescan(scan, NULL, 0, NULL, 0);
	return scan;
}

bool
dp_bucket_packed_next(DpBucketStore *store, IndexScanDesc scan)
{
	return scan_next(scan, store->packed.row);
}

/*
 * The contents of the row in store->packed.row; points into it
 */
void
dp_bucket_packed_row(DpBucketStore *store, DpBucketGroup *group, int64 *start, int *seq,
					 Datum *data)
{
	DpBucketRel *rel = store->rel;
	TupleTableSlot *slot = store->packed.row;
	int i;

	slot_getallattrs(slot);
	if (group != NULL)
	{
		for (i = 0; i < rel->ngroups; i++)
		{
			group->values[i] = slot->tts_values[rel->groups[i]->packed - 1];
			group->nulls[i] = slot->tts_isnull[rel->groups[i]->packed - 1];
		}
	}
	if (start != NULL)
		*start = rel->packed_start > 0 ? DatumGetInt64(slot->tts_values[rel->packed_start - 1]) : 0;
	if (seq != NULL)
		*seq = DatumGetInt32(slot->tts_values[rel->packed_seq - 1]);
	if (data != NULL)
		*data = slot->tts_values[rel->packed_data - 1];
}

/*
 * Read a version of a bucket's row.
 */
bool
dp_bucket_packed_fetch(DpBucketStore *store, ItemPointer tid)
{
	open_packed(store);
	return table_tuple_fetch_row_version(store->packed.rel, tid, SnapshotAny, store->packed.row);
}

/*
 * Write a new bucket, at once or, when there are many, with the next ones.
 */
void
dp_bucket_packed_insert(DpBucketStore *store, const DpBucketGroup *group, int64 start, int seq,
						Datum data)
{
	DpBucketRel *rel = store->rel;
	TupleTableSlot *slot;
	MemoryContext old = NULL;
	DpBucketGroup copy;
	int i;

	open_packed(store);
	if (store->packed_many)
	{
		if (store->packed_bulk == NULL)
		{
			old = MemoryContextSwitchTo(store->context);
			store->packed_bulk = GetBulkInsertState();
			MemoryContextSwitchTo(old);
		}
		slot = dp_table_next_blank(&store->packed, store->packed_bulk);
		old = MemoryContextSwitchTo(store->packed.many_context);
		dp_bucket_group_copy(rel, group, &copy);
		group = &copy;
		data = datumCopy(data, false, -1);
		MemoryContextSwitchTo(old);
	}
	else
		slot = dp_table_blank(&store->packed);

	for (i = 0; i < rel->ngroups; i++)
	{
		slot->tts_values[rel->groups[i]->packed - 1] = group->values[i];
		slot->tts_isnull[rel->groups[i]->packed - 1] = group->nulls[i];
	}
	slot->tts_values[rel->packed_seq - 1] = Int32GetDatum(seq);
	slot->tts_isnull[rel->packed_seq - 1] = false;
	if (rel->packed_start > 0)
	{
		slot->tts_values[rel->packed_start - 1] = Int64GetDatum(start);
		slot->tts_isnull[rel->packed_start - 1] = false;
	}
	slot->tts_values[rel->packed_data - 1] = data;
	slot->tts_isnull[rel->packed_data - 1] = false;
	if (!store->packed_many)
		dp_table_insert(&store->packed);
	forget(store);
}

/* Writes the collected buckets. */
void
dp_bucket_packed_flush(DpBucketStore *store)
{
	if (store->packed.rel != NULL)
		dp_table_flush(&store->packed, store->packed_bulk);
	forget(store);
}

/*
 * Replaces the bucket in store->packed.row.
 */
TM_Result
dp_bucket_packed_update(DpBucketStore *store, ItemPointer tid, Datum data)
{
	AttrNumber column = store->rel->packed_data;
	TM_Result result;

	dp_table_copy(&store->packed)->tts_values[column - 1] = data;
	result = dp_table_update(&store->packed, tid, column, true);
	forget(store);
	return result;
}

/*
 * An empty builder for the relation's buckets; there is only one.
 */
DpBucketBuilder *
dp_bucket_store_builder(DpBucketStore *store)
{
	DpBucketRel *rel = store->rel;
	DpPackedColumnDef *defs;
	MemoryContext old;
	int i;

	if (store->builder != NULL)
	{
		dp_bucket_builder_reset(store->builder);
		return store->builder;
	}
	old = MemoryContextSwitchTo(store->context);
	defs = palloc0(sizeof(DpPackedColumnDef) * Max(rel->nvalues, 1));
	for (i = 0; i < rel->nvalues; i++)
	{
		defs[i].typid = rel->values[i]->type;
		defs[i].split = defs[i].typid == dp_types()->bson;
	}
	store->builder =
		dp_bucket_builder_create(store->context, rel->time == NULL ? DP_BUCKET_TIMELESS : 0,
								 rel->nvalues, defs);
	MemoryContextSwitchTo(old);
	return store->builder;
}

/*
 * A reader; there is only one.
 */
DpBucketReader *
dp_bucket_store_reader(DpBucketStore *store)
{
	if (!store->has_reader)
	{
		dp_bucket_reader_init(&store->reader, store->context);
		store->has_reader = true;
	}
	return &store->reader;
}

/*
 * One row of a bucket, but for its group.
 */
void
dp_bucket_read_row(DpBucketStore *store, DpBucketReader *reader, int position, Datum *values,
				   bool *nulls)
{
	DpBucketRel *rel = store->rel;
	Datum *column = palloc(sizeof(Datum) * reader->count);
	bool *column_nulls = palloc(sizeof(bool) * reader->count);
	int i;

	if (rel->time != NULL)
	{
		int64 *times = palloc(sizeof(int64) * reader->count);

		dp_bucket_times(reader, times);
		values[rel->time - rel->columns] = Int64GetDatum(times[position]);
		nulls[rel->time - rel->columns] = false;
		pfree(times);
	}
	for (i = 0; i < rel->nvalues; i++)
	{
		int at = rel->values[i] - rel->columns;

		dp_bucket_datums(reader, i, rel->values[i]->type, rel->values[i]->typmod, column,
						 column_nulls);
		values[at] = column[position];
		nulls[at] = column_nulls[position];
	}
	pfree(column);
	pfree(column_nulls);
}

/*
 * Append a row.
 */
void
dp_bucket_append_row(DpBucketStore *store, DpBucketBuilder *builder, const Datum *values,
					 const bool *nulls)
{
	DpBucketRel *rel = store->rel;
	Datum few[32];
	bool few_nulls[32];
	Datum *measured = rel->nvalues <= 32 ? few : palloc(sizeof(Datum) * rel->nvalues);
	bool *measured_nulls = rel->nvalues <= 32 ? few_nulls : palloc(sizeof(bool) * rel->nvalues);
	int i;

	for (i = 0; i < rel->nvalues; i++)
	{
		int column = rel->values[i] - rel->columns;

		measured[i] = values[column];
		measured_nulls[i] = nulls[column];
	}
	dp_bucket_append(builder,
					 rel->time != NULL ? DatumGetInt64(values[rel->time - rel->columns]) : 0,
					 measured, measured_nulls);
}

/* The table of waiting measurements. */
static void
open_recent(DpBucketStore *store)
{
	DpBucketRel *rel = store->rel;

	table_ready(store, &store->recent, rel->recent);
	if (rel->recent_arrived > 0)
		store->arrived = dp_identity_sequence(store->recent.rel, rel->recent_arrived);
}

/* One of the tables. */
static void
table_ready(DpBucketStore *store, DpTable *t, Oid relid)
{
	dp_table_open(t, relid, RowExclusiveLock);
	dp_table_fire(t, store->estate);
	t->cid = &store->cid;
}

/* Creates store->recent.row, which few INSERTs need. */
static void
found_recent(DpBucketStore *store)
{
	MemoryContext old;

	if (store->recent.row != NULL)
		return;
	old = MemoryContextSwitchTo(store->context);
	store->recent.row = table_slot_create(store->recent.rel, NULL);
	MemoryContextSwitchTo(old);
}

/* The table of buckets. */
static void
open_packed(DpBucketStore *store)
{
	MemoryContext old;

	if (store->packed.rel != NULL)
		return;
	old = MemoryContextSwitchTo(store->context);
	table_ready(store, &store->packed, store->rel->packed);
	store->packed.row = table_slot_create(store->packed.rel, NULL);
	store->packed_index = index_of(store, store->rel->packed_index);
	MemoryContextSwitchTo(old);
}

/* An index that cannot be done without. */
static Relation
index_of(DpBucketStore *store, Oid index)
{
	if (!OidIsValid(index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("an index of \"%s\" is missing", dp_bucket_rel_name(store->rel)),
				 errdetail("It was dropped from the table of buckets or of waiting measurements."),
				 errhint("Create it again with pattern_repair().")));
	return index_open(index, RowExclusiveLock);
}

/* A row as one of the table of waiting measurements. */
static TupleTableSlot *
fill_recent(DpBucketStore *store, TupleTableSlot *slot, const Datum *values, const bool *nulls)
{
	DpBucketRel *rel = store->rel;
	int i;

	for (i = 0; i < rel->ncolumns; i++)
	{
		int att = rel->columns[i].recent - 1;

		slot->tts_values[att] = values[i];
		slot->tts_isnull[att] = nulls[i];
	}
	return slot;
}

/* Keys that find a group in an index; returns how many. */
static int
group_keys(DpBucketStore *store, Relation index, const DpBucketGroup *group, ScanKey keys)
{
	DpBucketRel *rel = store->rel;
	int i;

	for (i = 0; i < rel->ngroups; i++)
	{
		if (group->nulls[i])
			ScanKeyEntryInitialize(&keys[i], SK_ISNULL | SK_SEARCHNULL, i + 1, InvalidStrategy,
								   InvalidOid, InvalidOid, InvalidOid, (Datum) 0);
		else
		{
			Oid eqop = rel->groups[i]->eqop;

			if (!OidIsValid(eqop))
				eqop = get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i],
										   index->rd_opcintype[i], BTEqualStrategyNumber);
			ScanKeyEntryInitialize(&keys[i], 0, i + 1, BTEqualStrategyNumber, InvalidOid,
								   index->rd_indcollation[i], get_opcode(eqop), group->values[i]);
		}
	}
	return rel->ngroups;
}

/* Frees what checks of a row left in a call's own executor; a statement may still use it. */
static void
forget(DpBucketStore *store)
{
	if (store->own_estate)
		ResetPerTupleExprContext(store->estate);
}
