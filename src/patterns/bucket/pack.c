/*
 * pack.c
 *		Packing: waiting measurements become buckets or are added to existing ones.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/relscan.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "kit/locks.h"
#include "patterns/bucket/pack.h"

/* Number of measurements to collect before they are packed, for any limit of a bucket */
#define PACK_AT_ONCE 100000

/* A bucket of the span that is there already */
typedef struct Existing
{
	ItemPointerData tid;
	int seq;
	Datum data;
	int count;
	int64 first;
	int64 last;
	bool hidden; /* the transaction does not see it */
	bool target;
} Existing;

/*
 * A session's state of a group: the newest span that it has seen, and how many measurements it has
 * added since it last checked.
 */
typedef struct Seen
{
	uint32 hash;
	Oid relid;
	int64 start;
	int added;
} Seen;

#define SEEN_SIZE 65536

static Seen *seen = NULL;

static int
existing_find(DpBucketStore *store, const DpBucketGroup *group, int64 start, Existing **result);
static void targets_choose(DpBucketStore *store, Existing *there, int n, int64 first, int64 last);
static bool target_lock(DpBucketStore *store, Existing *target);
static void split_range(DpBucketStore *store, Datum whole, int from, int to, List **result);
static int compare_first(const void *a, const void *b);
static int64 count_waiting(DpBucketStore *store, const DpBucketGroup *group, int64 since,
						   int64 until, int64 most);

/*
 * Put new measurements of one group and span where they belong.
 */
void
dp_bucket_add_new(DpBucketStore *store, const DpBucketGroup *group, int64 start, const Datum *fresh,
				  int nfresh)
{
	DpBucketRel *rel = store->rel;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns bucket merge",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	DpBucketReader *reader = dp_bucket_store_reader(store);
	Existing *there;
	int n = existing_find(store, group, start, &there);
	int seq = 0;
	int64 first = PG_INT64_MAX;
	int64 last = PG_INT64_MIN;
	int count = 0;
	List *made;
	ListCell *lc;
	int ntargets = 0;
	bool even = false;
	int i;

	for (i = 0; i < nfresh; i++)
	{
		dp_bucket_open(reader, fresh[i]);
		first = Min(first, reader->first);
		last = Max(last, reader->last);
		count += reader->count;
	}
	for (i = 0; i < n; i++)
		seq = Max(seq, there[i].seq);
	if (n > 0)
		targets_choose(store, there, n, first, last);

	if (nfresh == 1 && count <= rel->max_count &&
		VARSIZE_ANY(DatumGetPointer(fresh[0])) <= rel->max_bytes)
	{
		for (i = 0; i < n; i++)
			ntargets += there[i].target;
		if (ntargets == 0)
		{
			dp_bucket_packed_insert(store, group, start, seq + 1, fresh[0]);
			MemoryContextSwitchTo(old);
			MemoryContextDelete(context);
			return;
		}
	}

	/* existing rows first, so that they stay first among equal times */
	{
		DpBucketBuilder *builder = dp_bucket_store_builder(store);

		ntargets = 0;
		for (i = 0; i < n; i++)
		{
			if (!there[i].target)
				continue;
			if (rel->time != NULL && there[i].last > first)
				even = true;
			there[ntargets++] = there[i];
			dp_bucket_open(reader, there[i].data);
			dp_bucket_append_bucket(builder, reader, 0, reader->count);
		}
		for (i = 0; i < nfresh; i++)
		{
			dp_bucket_open(reader, fresh[i]);
			dp_bucket_append_bucket(builder, reader, 0, reader->count);
		}
		made = dp_bucket_split(store, builder, even);
	}

	i = 0;
	foreach(lc, made)
	{
		if (i < ntargets)
		{
			if (!dp_bucket_packed_fetch(store, &there[i].tid) ||
				dp_bucket_packed_update(store, &there[i].tid, PointerGetDatum(lfirst(lc))) != TM_Ok)
				elog(ERROR, "a locked bucket has changed");
			i++;
		}
		else
			dp_bucket_packed_insert(store, group, start, ++seq, PointerGetDatum(lfirst(lc)));
	}
	for (; i < ntargets; i++)
	{
		if (dp_table_delete(&store->packed, &there[i].tid, true) != TM_Ok)
			elog(ERROR, "a locked bucket has changed");
	}
	if (store->packed.rel != NULL)
		ExecClearTuple(store->packed.row);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/*
 * The buckets of a group and span, in the order of their times; in the current
 * context.  Of pages all that there are, so that none gets a number twice: the
 * caller has the group's lock.
 */
static int
existing_find(DpBucketStore *store, const DpBucketGroup *group, int64 start, Existing **result)
{
	DpBucketRel *rel = store->rel;
	DpBucketReader *reader = dp_bucket_store_reader(store);
	Snapshot snapshot =
		RegisterSnapshot(rel->time == NULL ? GetLatestSnapshot()
										   : dp_bucket_store_snapshot(store, false));
	IndexScanDesc scan = dp_bucket_packed_scan(store, group, start, snapshot);
	int n = 0;
	int max = 0;
	Existing *there = NULL;

	while (dp_bucket_packed_next(store, scan))
	{
		DpBucketGroup found;
		Datum data;
		int seq;

		dp_bucket_packed_row(store, &found, NULL, &seq, &data);
		if (!dp_bucket_group_same(rel, group, &found))
			continue;
		if (n == max)
		{
			max = Max(8, max * 2);
			there = there == NULL ? palloc(sizeof(Existing) * max)
								  : repalloc(there, sizeof(Existing) * max);
		}
		there[n].tid = store->packed.row->tts_tid;
		there[n].seq = seq;
		there[n].data = datumCopy(data, false, -1);
		there[n].target = false;
		there[n].hidden = IsolationUsesXactSnapshot() && rel->time == NULL &&
						  !table_tuple_satisfies_snapshot(store->packed.rel, store->packed.row,
														  GetTransactionSnapshot());
		dp_bucket_open(reader, there[n].data);
		there[n].count = reader->count;
		there[n].first = reader->first;
		there[n].last = reader->last;
		n++;
	}
	index_endscan(scan);
	UnregisterSnapshot(snapshot);
	ExecClearTuple(store->packed.row);
	if (n > 1 && rel->time != NULL)
		qsort(there, n, sizeof(Existing), compare_first);
	*result = there;
	return n;
}

/*
 * Selects and locks the buckets for new measurements: those with overlapping times, or else a
 * neighbour with room. None while a statement of this session changes measurements.
 */
static void
targets_choose(DpBucketStore *store, Existing *there, int n, int64 first, int64 last)
{
	DpBucketRel *rel = store->rel;
	int neighbour = -1;
	bool overlap = false;
	int i;

	if (dp_bucket_changing(rel->relid))
		return;
	if (rel->time == NULL)
		neighbour = n - 1; /* the last page */
	else
	{
		for (i = 0; i < n; i++)
		{
			if (there[i].first < last && there[i].last > first)
			{
				there[i].target = true;
				overlap = true;
			}
			else if (there[i].last <= first)
				neighbour = i;
			else if (neighbour < 0)
				neighbour = i;
		}
	}
	if (!overlap && neighbour >= 0 && !there[neighbour].hidden &&
		there[neighbour].count < rel->max_count &&
		toast_datum_size(there[neighbour].data) < rel->max_bytes / 2)
		there[neighbour].target = true;
	for (i = 0; i < n; i++)
	{
		if (there[i].target)
			there[i].target = target_lock(store, &there[i]);
	}
}

/* Locks a bucket unless another transaction is changing it. */
static bool
target_lock(DpBucketStore *store, Existing *target)
{
	TM_FailureData failure;
	TM_Result result;

	result =
		table_tuple_lock(store->packed.rel, &target->tid, dp_bucket_store_snapshot(store, false),
						 store->packed.row, GetCurrentCommandId(true), LockTupleNoKeyExclusive,
						 LockWaitSkip, 0, &failure);
	ExecClearTuple(store->packed.row);
	return result == TM_Ok;
}

/* By the first time. */
static int
compare_first(const void *a, const void *b)
{
	const Existing *left = a;
	const Existing *right = b;

	if (left->first != right->first)
		return left->first < right->first ? -1 : 1;
	return left->seq < right->seq ? -1 : left->seq > right->seq;
}

/*
 * The number of a group's next page.
 */
int
dp_bucket_next_page(DpBucketStore *store, const DpBucketGroup *group)
{
	Snapshot snapshot;
	IndexScanDesc scan;
	int last = 0;

	dp_bucket_group_lock(store, dp_bucket_group_lock_number(store, group, 0), true);
	CommandCounterIncrement();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan = dp_bucket_packed_scan(store, group, 0, snapshot);
	while (dp_bucket_packed_next(store, scan))
	{
		DpBucketGroup found;
		int seq;

		dp_bucket_packed_row(store, &found, NULL, &seq, NULL);
		if (dp_bucket_group_same(store->rel, group, &found))
			last = Max(last, seq);
	}
	index_endscan(scan);
	UnregisterSnapshot(snapshot);
	ExecClearTuple(store->packed.row);
	return last + 1;
}

/* Returns the builder's contents as buckets within the limits. The builder is used up. */
List *
dp_bucket_split(DpBucketStore *store, DpBucketBuilder *builder, bool even)
{
	DpBucketRel *rel = store->rel;
	int count = dp_bucket_builder_count(builder);
	struct varlena *whole = dp_bucket_builder_finish(builder);
	List *result = NIL;
	int nparts;
	int from = 0;
	int i;

	if (whole == NULL)
		return NIL;
	if (count <= rel->max_count && VARSIZE_ANY(whole) <= rel->max_bytes)
		return list_make1(whole);

	nparts = (count + rel->max_count - 1) / rel->max_count;
	for (i = 0; i < nparts; i++)
	{
		int to =
			even ? (int) ((int64) count * (i + 1) / nparts) : Min(count, from + rel->max_count);

		split_range(store, PointerGetDatum(whole), from, to, &result);
		from = to;
	}
	return result;
}

/* Rows [from, to) of a bucket as buckets that are not too large. */
static void
split_range(DpBucketStore *store, Datum whole, int from, int to, List **result)
{
	DpBucketBuilder *builder = dp_bucket_store_builder(store);
	DpBucketReader *reader = dp_bucket_store_reader(store);
	struct varlena *part;

	CHECK_FOR_INTERRUPTS();
	dp_bucket_open(reader, whole);
	dp_bucket_append_bucket(builder, reader, from, to);
	part = dp_bucket_builder_finish(builder);
	if (VARSIZE_ANY(part) > store->rel->max_bytes && to - from > 1)
	{
		int middle = from + (to - from) / 2;

		pfree(part);
		split_range(store, whole, from, middle, result);
		split_range(store, whole, middle, to, result);
		return;
	}
	*result = lappend(*result, part);
}

/*
 * Pack waiting measurements.
 */
int64
dp_bucket_pack(DpBucketStore *store, const DpBucketGroup *group, int64 until, bool full)
{
	DpBucketRel *rel = store->rel;
	Snapshot snapshot;
	MemoryContext run_context;
	MemoryContext old = CurrentMemoryContext;
	Datum *values = palloc(sizeof(Datum) * Max(rel->ncolumns, 1));
	bool *nulls = palloc(sizeof(bool) * Max(rel->ncolumns, 1));
	DpBucketBuilder *builder = NULL;
	DpBucketGroup run;
	int64 run_start = 0;
	int64 run_end = 0;
	bool running = false;
	bool skip = false;
	int64 room = PG_INT64_MAX;
	int64 packed = 0;
	IndexScanDesc scan;

	if (dp_bucket_changing(rel->relid))
		return 0;
	snapshot = RegisterSnapshot(dp_bucket_store_snapshot(store, true));
	run_context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns bucket run",
										ALLOCSET_DEFAULT_SIZES);
	if (full)
	{
		room = count_waiting(store, group, PG_INT64_MIN, until, PG_INT64_MAX);
		room -= room % rel->max_count;
	}
	scan = dp_bucket_recent_scan(store, group, PG_INT64_MIN, until, snapshot);
	for (;;)
	{
		bool more = room > 0 && dp_bucket_recent_next(store, scan);
		DpBucketGroup here;
		int64 time = 0;

		CHECK_FOR_INTERRUPTS();
		if (more)
		{
			dp_bucket_recent_row(store, values, nulls);
			dp_bucket_group_of_row(rel, values, nulls, &here);
			if (rel->time != NULL)
				time = DatumGetInt64(values[rel->time - rel->columns]);
			if (time >= until && rel->time != NULL)
				continue;
		}

		/* the end of a group or span */
		if (running && (!more || (rel->time != NULL && (time < run_start || time >= run_end)) ||
						!dp_bucket_group_same(rel, &run, &here) ||
						(builder != NULL && dp_bucket_builder_count(builder) >= PACK_AT_ONCE)))
		{
			if (builder != NULL && dp_bucket_builder_count(builder) > 0)
			{
				Datum fresh;

				MemoryContextSwitchTo(run_context);
				fresh = PointerGetDatum(dp_bucket_builder_finish(builder));
				dp_bucket_add_new(store, &run, run_start, &fresh, 1);
				MemoryContextSwitchTo(old);
				if (more && dp_bucket_group_same(rel, &run, &here) &&
					(rel->time == NULL || (time >= run_start && time < run_end)))
				{
					/* the rest of the span is added to buckets that were just written */
					CommandCounterIncrement();
					dp_bucket_store_snapshot(store, true);
				}
			}
			running = false;
		}
		if (!more)
			break;

		if (!running)
		{
			MemoryContextReset(run_context);
			MemoryContextSwitchTo(run_context);
			dp_bucket_group_copy(rel, &here, &run);
			MemoryContextSwitchTo(old);
			if (rel->time != NULL)
			{
				run_start = dp_bucket_rel_start(rel, time);
				run_end = dp_bucket_rel_end(rel, run_start);
			}
			builder = dp_bucket_store_builder(store);
			running = true;

			/* pages are numbered by one session at a time */
			skip = rel->time == NULL &&
				   !dp_bucket_group_lock(store, dp_bucket_group_lock_number(store, &run, 0), false);
		}
		if (skip || dp_table_delete(&store->recent, &store->recent.row->tts_tid, false) != TM_Ok)
			continue;
		dp_bucket_append_row(store, builder, values, nulls);
		packed++;
		room--;
	}
	index_endscan(scan);
	ExecClearTuple(store->recent.row);
	UnregisterSnapshot(snapshot);
	MemoryContextDelete(run_context);
	pfree(values);
	pfree(nulls);
	return packed;
}

/* Returns the number of waiting measurements of a group, counted up to most. */
static int64
count_waiting(DpBucketStore *store, const DpBucketGroup *group, int64 since, int64 until,
			  int64 most)
{
	IndexScanDesc scan =
		dp_bucket_recent_scan(store, group, since, until, dp_bucket_store_snapshot(store, false));
	int64 n = 0;

	while (n < most && dp_bucket_recent_next(store, scan))
		n++;
	index_endscan(scan);
	ExecClearTuple(store->recent.row);
	return n;
}

/*
 * Records that n measurements of a span were added, packs a full bucket, and returns whether the
 * spans before are over. A session remembers the newest span of each group to which it has written.
 * When a later one begins (or the group is new to the session), the spans before are over. A
 * session checks for a full bucket when it has added half of one; it begins with a random count, so
 * that many short sessions check as often as one long one.
 */
bool
dp_bucket_note(DpBucketStore *store, const DpBucketGroup *group, int64 time, int n)
{
	DpBucketRel *rel = store->rel;
	uint32 hash = hash_combine(dp_bucket_group_hash(rel, group), (uint32) rel->relid);
	int enough = Max(rel->max_count / 2, 1);
	int64 start = rel->time != NULL ? dp_bucket_rel_start(rel, time) : 0;
	int64 end = PG_INT64_MAX;
	bool over = false;
	Seen *known;

	if (seen == NULL)
		seen = MemoryContextAllocZero(TopMemoryContext, sizeof(Seen) * SEEN_SIZE);
	known = &seen[hash % SEEN_SIZE];
	if (known->relid != rel->relid || known->hash != hash)
	{
		known->relid = rel->relid;
		known->hash = hash;
		known->start = start;
		known->added = (int) pg_prng_uint64_range(&pg_global_prng_state, 0, enough - 1);
		over = rel->time != NULL;
	}
	else if (start > known->start)
	{
		known->start = start;
		known->added = 0;
		over = true;
	}
	known->added += n;
	if (likely(known->added < enough))
		return over;
	known->added = 0;

	/* include what this session has added so far */
	CommandCounterIncrement();
	dp_bucket_store_snapshot(store, true);
	if (rel->time != NULL)
		end = dp_bucket_rel_end(rel, known->start);
	if (count_waiting(store, group, known->start, end, rel->max_count) >= rel->max_count)
		dp_bucket_pack(store, group, end, rel->time == NULL);
	dp_bucket_packed_flush(store);
	return over;
}

/*
 * The number of the lock of a group and span.
 */
uint32
dp_bucket_group_lock_number(DpBucketStore *store, const DpBucketGroup *group, int64 start)
{
	uint32 hash = dp_bucket_group_hash(store->rel, group);

	hash = hash_combine(hash, murmurhash32((uint32) start ^ (uint32) ((uint64) start >> 32)));
	return hash % DP_BUCKET_LOCKS;
}

/* Takes that lock until the transaction ends. */
bool
dp_bucket_group_lock(DpBucketStore *store, uint32 number, bool wait)
{
	return dp_lock(DP_LOCK_BUCKETS, store->rel->packed, number, ExclusiveLock,
				   wait ? DP_LOCK_WAIT : DP_LOCK_NO_WAIT);
}
