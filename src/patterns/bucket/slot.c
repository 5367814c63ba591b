/*
 * slot.c
 *		Relations with a granularity: one measurement per group and slot of time.
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "patterns/bucket/change.h"
#include "patterns/bucket/pack.h"
#include "patterns/bucket/slot.h"

/* The measurement in a slot */
typedef struct Holder
{
	bool packed;
	ItemPointerData tid;
	int position;
	Datum *values;
	bool *nulls;
} Holder;

static bool find_holder(DpBucketStore *store, const DpBucketGroup *group, int64 time,
						const ItemPointerData *except, Holder *holder);
static void slot_bounds(DpBucketStore *store, int64 time, int64 *since, int64 *until);
static void taken(DpBucketStore *store, int64 time) pg_attribute_noreturn();
static void add_values(DpBucketStore *store, const Holder *holder, Datum *values, bool *nulls);
static void check_seen(Relation rel, TupleTableSlot *slot);

/*
 * Write a measurement as same_slot says.
 */
bool
dp_bucket_slot_insert(DpBucketStore *store, const Datum *values, const bool *nulls, ItemPointer tid)
{
	DpBucketRel *rel = store->rel;
	int64 time = DatumGetInt64(values[rel->time - rel->columns]);
	DpBucketGroup group;
	MemoryContext context;
	MemoryContext old;
	bool written = false;

	dp_bucket_group_of_row(rel, values, nulls, &group);
	dp_bucket_group_lock(store,
						 dp_bucket_group_lock_number(store, &group, dp_bucket_rel_start(rel, time)),
						 true);

	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns bucket slot",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	for (;;)
	{
		Holder holder;
		Datum *next;
		bool *next_nulls;

		MemoryContextReset(context);
		if (!find_holder(store, &group, time, NULL, &holder))
		{
			dp_bucket_recent_insert(store, values, nulls, tid);
			written = true;
			break;
		}
		if (rel->same_slot == DP_SLOT_REFUSE)
			taken(store, time);
		if (rel->same_slot == DP_SLOT_KEEP)
			break;

		next = palloc(sizeof(Datum) * rel->ncolumns);
		next_nulls = palloc(sizeof(bool) * rel->ncolumns);
		memcpy(next, values, sizeof(Datum) * rel->ncolumns);
		memcpy(next_nulls, nulls, sizeof(bool) * rel->ncolumns);
		if (rel->same_slot == DP_SLOT_ADD)
			add_values(store, &holder, next, next_nulls);
		written = true;
		if (holder.packed)
		{
			DpBucketChanges *changes = dp_bucket_changes_create(store);

			dp_bucket_changes_add(changes, &holder.tid, holder.position, next, next_nulls);
			dp_bucket_changes_apply(changes);
			break;
		}
		else
		{
			TM_Result result = dp_bucket_recent_update(store, &holder.tid, next, next_nulls);

			if (result == TM_Ok)
			{
				if (tid != NULL)
					*tid = holder.tid;
				break;
			}
			if (IsolationUsesXactSnapshot())
				dp_bucket_lost();
		}
		/* it was changed or packed meanwhile: look again */
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return written;
}

/*
 * Raise an error if a slot is taken.
 */
void
dp_bucket_slot_free(DpBucketStore *store, const Datum *values, const bool *nulls,
					const ItemPointerData *except)
{
	DpBucketRel *rel = store->rel;
	int64 time = DatumGetInt64(values[rel->time - rel->columns]);
	DpBucketGroup group;
	MemoryContext context;
	MemoryContext old;
	Holder holder;

	dp_bucket_group_of_row(rel, values, nulls, &group);
	dp_bucket_group_lock(store,
						 dp_bucket_group_lock_number(store, &group, dp_bucket_rel_start(rel, time)),
						 true);
	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns bucket slot",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	if (find_holder(store, &group, time, except, &holder))
		taken(store, time);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* Returns whether two rows belong to the same slot of the same group. */
bool
dp_bucket_slot_same(DpBucketStore *store, const Datum *a, const bool *a_nulls, const Datum *b,
					const bool *b_nulls)
{
	DpBucketRel *rel = store->rel;
	int at = rel->time - rel->columns;
	DpBucketGroup left;
	DpBucketGroup right;
	int64 since;
	int64 until;

	dp_bucket_group_of_row(rel, a, a_nulls, &left);
	dp_bucket_group_of_row(rel, b, b_nulls, &right);
	if (!dp_bucket_group_same(rel, &left, &right))
		return false;
	slot_bounds(store, DatumGetInt64(a[at]), &since, &until);
	return DatumGetInt64(b[at]) >= since && DatumGetInt64(b[at]) < until;
}

/* Raises an error if two measurements of a bucket belong to one slot. */
void
dp_bucket_slot_verify(DpBucketStore *store, Datum data)
{
	DpBucketReader reader;
	int64 *times;
	int64 until = PG_INT64_MIN;
	int i;

	dp_bucket_reader_init(&reader, CurrentMemoryContext);
	dp_bucket_open(&reader, data);
	times = palloc(sizeof(int64) * reader.count);
	dp_bucket_times(&reader, times);
	for (i = 0; i < reader.count; i++)
	{
		int64 since;

		if (times[i] < until)
			taken(store, times[i]);
		slot_bounds(store, times[i], &since, &until);
	}
	pfree(times);
	dp_bucket_reader_free(&reader);
}

/* The slot of a time; a span's end ends it, too. */
static void
slot_bounds(DpBucketStore *store, int64 time, int64 *since, int64 *until)
{
	DpBucketRel *rel = store->rel;
	int64 start = dp_bucket_rel_start(rel, time);

	if (!store->has_slots)
	{
		char *text = dp_decl_text(rel->decl, "origin");
		bool zoned = rel->time->type == TIMESTAMPTZOID;
		TimestampTz origin = 0;

		if (text != NULL)
			origin = DatumGetTimestampTz(DirectFunctionCall3(zoned ? timestamptz_in : timestamp_in,
															 CStringGetDatum(text),
															 ObjectIdGetDatum(InvalidOid),
															 Int32GetDatum(-1)));
		zoned = zoned && rel->time_zone != NULL;
		dp_span_init(&store->slots, &rel->granularity, text != NULL ? &origin : NULL,
					 zoned ? rel->time_zone : NULL, zoned ? strlen(rel->time_zone) : 0);
		store->has_slots = true;
	}
	*since = dp_span_start(&store->slots, time, until);
	*since = Max(*since, start);
	*until = Min(*until, dp_bucket_rel_end(rel, start));
}

/*
 * Returns the measurement in the slot of a time; in the current context. The caller holds the
 * lock, so it stays.
 */
static bool
find_holder(DpBucketStore *store, const DpBucketGroup *group, int64 time,
			const ItemPointerData *except, Holder *holder)
{
	DpBucketRel *rel = store->rel;
	Snapshot snapshot;
	IndexScanDesc scan;
	int64 since;
	int64 until;
	bool found = false;
	int i;

	slot_bounds(store, time, &since, &until);

	/* include rows of this command, and those that others have committed since it began */
	CommandCounterIncrement();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	holder->values = palloc0(sizeof(Datum) * rel->ncolumns);
	holder->nulls = palloc0(sizeof(bool) * rel->ncolumns);
	scan = dp_bucket_recent_scan(store, group, since, until, snapshot);
	while (!found && dp_bucket_recent_next(store, scan))
	{
		DpBucketGroup there;

		dp_bucket_recent_row(store, holder->values, holder->nulls);
		dp_bucket_group_of_row(rel, holder->values, holder->nulls, &there);
		if (!dp_bucket_group_same(rel, group, &there))
			continue;
		check_seen(store->recent.rel, store->recent.row);
		holder->packed = false;
		holder->tid = store->recent.row->tts_tid;
		for (i = 0; i < rel->ncolumns; i++)
		{
			if (!holder->nulls[i])
				holder->values[i] =
					datumCopy(holder->values[i], rel->columns[i].typbyval, rel->columns[i].typlen);
		}
		found = true;
	}
	index_endscan(scan);
	ExecClearTuple(store->recent.row);

	if (!found)
	{
		scan = dp_bucket_packed_scan(store, group, dp_bucket_rel_start(rel, time), snapshot);
		while (!found && dp_bucket_packed_next(store, scan))
		{
			DpBucketReader *reader = dp_bucket_store_reader(store);
			DpBucketGroup there;
			Datum data;
			int from;
			int to;

			dp_bucket_packed_row(store, &there, NULL, NULL, &data);
			if (!dp_bucket_group_same(rel, group, &there) ||
				(except != NULL &&
				 ItemPointerEquals(&store->packed.row->tts_tid, (ItemPointer) except)))
				continue;
			dp_bucket_open(reader, data);
			if (reader->last < since || reader->first >= until ||
				!dp_bucket_find_times(reader, since, until, &from, &to))
				continue;
			check_seen(store->packed.rel, store->packed.row);
			holder->packed = true;
			holder->tid = store->packed.row->tts_tid;
			holder->position = from;
			if (rel->same_slot == DP_SLOT_ADD)
				dp_bucket_read_row(store, reader, from, holder->values, holder->nulls);
			found = true;
		}
		index_endscan(scan);
		ExecClearTuple(store->packed.row);
	}
	UnregisterSnapshot(snapshot);
	return found;
}

/*
 * In REPEATABLE READ and above nothing is changed that the transaction does
 * not see.
 */
static void
check_seen(Relation rel, TupleTableSlot *slot)
{
	if (IsolationUsesXactSnapshot() &&
		!table_tuple_satisfies_snapshot(rel, slot, GetTransactionSnapshot()))
		dp_bucket_lost();
}

/* The slot is taken. */
static void
taken(DpBucketStore *store, int64 time)
{
	DpBucketRel *rel = store->rel;
	int64 since;
	int64 until;
	char *text;

	slot_bounds(store, time, &since, &until);
	text = DatumGetCString(DirectFunctionCall1(rel->time->type == TIMESTAMPTZOID ? timestamptz_out
																				 : timestamp_out,
											   Int64GetDatum(since)));
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("\"%s\" already has a measurement in this slot", dp_bucket_rel_name(rel)),
			 errdetail("The slot of its group begins at %s.", text), errtable(store->recent.rel)));
}

/*
 * Adds the new row to the existing one: numbers are added, other values replaced, nulls ignored.
 * The time stays.
 */
static void
add_values(DpBucketStore *store, const Holder *holder, Datum *values, bool *nulls)
{
	DpBucketRel *rel = store->rel;
	int i;

	values[rel->time - rel->columns] = holder->values[rel->time - rel->columns];
	for (i = 0; i < rel->nvalues; i++)
	{
		int at = rel->values[i] - rel->columns;
		Oid type = getBaseType(rel->values[i]->type);
		Oid plus;

		if (holder->nulls[at])
			continue;
		if (nulls[at])
		{
			values[at] = holder->values[at];
			nulls[at] = false;
			continue;
		}
		plus = OpernameGetOprid(list_make2(makeString("pg_catalog"), makeString("+")), type, type);
		if (OidIsValid(plus) && get_op_rettype(plus) == type)
			values[at] = OidFunctionCall2(get_opcode(plus), holder->values[at], values[at]);
	}
}
