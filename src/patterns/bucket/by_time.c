/*
 * by_time.c
 *		Reading all groups of a relation of measurements in the order of time.
 *
 * Spans do not overlap, so the measurements of one span come before those of the
 * next.  A pass over both tables, which decodes nothing, lists buckets and waiting
 * measurements by span.  Then one span after the other is decoded and sorted, so a
 * query for the newest measurements decodes the last span only.
 */
#include "postgres.h"

#include "access/tableam.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "patterns/bucket/scan.h"

/* A bucket or a waiting measurement */
typedef struct Entry
{
	int64 start; /* of its span */
	ItemPointerData tid;
	bool waits;
} Entry;

struct DpBucketByTime
{
	bool from_end;
	MemoryContext context; /* of the list */
	Entry *entries;
	Size n;
	Size room;
	Size next;            /* the first one that was not read */
	Tuplesortstate *sort; /* of the present span */
	TupleTableSlot *given;
	TupleTableSlot *sorted;
};

static void list_all(DpBucketScan *scan);
static void
add_entry(struct DpBucketByTime *b, int64 start, const ItemPointerData *tid, bool waits);
static int compare_entries(const void *a, const void *b);
static void read_span(DpBucketScan *scan);
static void read_bucket(DpBucketScan *scan);

/* Prepare. */
struct DpBucketByTime *
dp_bucket_by_time_begin(DpBucketScan *scan, bool from_end)
{
	struct DpBucketByTime *b = palloc0(sizeof(struct DpBucketByTime));

	b->from_end = from_end;
	return b;
}

bool
dp_bucket_by_time_from_end(const struct DpBucketByTime *b)
{
	return b->from_end;
}

/* The next row. */
TupleTableSlot *
dp_bucket_by_time_next(DpBucketScan *scan)
{
	struct DpBucketByTime *b = scan->by_time;

	if (b->context == NULL)
		list_all(scan);
	for (;;)
	{
		if (b->sort != NULL)
		{
			if (tuplesort_gettupleslot(b->sort, true, false, b->sorted, NULL))
				return b->sorted;
			tuplesort_end(b->sort);
			b->sort = NULL;
		}
		if (b->next == b->n)
			return ExecClearTuple(b->sorted);
		read_span(scan);
	}
}

/* Forget what was read. */
void
dp_bucket_by_time_restart(struct DpBucketByTime *b)
{
	if (b->sort != NULL)
		tuplesort_end(b->sort);
	b->sort = NULL;
	if (b->context != NULL)
		MemoryContextDelete(b->context);
	b->context = NULL;
	b->entries = NULL;
	b->n = b->room = b->next = 0;
}

/* List buckets and waiting measurements, in the order of their spans. */
static void
list_all(DpBucketScan *scan)
{
	struct DpBucketByTime *b = scan->by_time;
	DpBucketRel *rel = scan->rel;
	Size i;

	b->context = AllocSetContextCreate(scan->estate->es_query_cxt, "docpatterns bucket spans",
									   ALLOCSET_DEFAULT_SIZES);
	if (b->given == NULL)
	{
		TupleDesc desc = scan->node->ss.ss_ScanTupleSlot->tts_tupleDescriptor;
		MemoryContext old = MemoryContextSwitchTo(scan->estate->es_query_cxt);

		b->given = ExecInitExtraTupleSlot(scan->estate, desc, &TTSOpsVirtual);
		b->sorted = ExecInitExtraTupleSlot(scan->estate, desc, &TTSOpsMinimalTuple);
		MemoryContextSwitchTo(old);
	}
	while (dp_bucket_scan_bucket(scan))
		add_entry(b, scan->start, &scan->packed_slot->tts_tid, false);
	while (dp_bucket_scan_recent(scan))
	{
		bool isnull;
		int64 time = DatumGetInt64(slot_getattr(scan->recent_slot, rel->time->recent, &isnull));

		add_entry(b, dp_bucket_rel_start(rel, time), &scan->recent_slot->tts_tid, true);
	}
	if (b->n > 1)
		qsort(b->entries, b->n, sizeof(Entry), compare_entries);
	for (i = 0; b->from_end && i < b->n / 2; i++)
	{
		Entry first = b->entries[i];

		b->entries[i] = b->entries[b->n - 1 - i];
		b->entries[b->n - 1 - i] = first;
	}
}

/* Add one to the list. */
static void
add_entry(struct DpBucketByTime *b, int64 start, const ItemPointerData *tid, bool waits)
{
	if (b->n == b->room)
	{
		b->room = Max(b->room * 2, 1024);
		b->entries = b->entries == NULL ? MemoryContextAlloc(b->context, sizeof(Entry) * b->room)
										: repalloc_huge(b->entries, sizeof(Entry) * b->room);
	}
	b->entries[b->n].start = start;
	b->entries[b->n].tid = *tid;
	b->entries[b->n++].waits = waits;
}

/* By span, and by position in the tables, so that pages are read once. */
static int
compare_entries(const void *a, const void *b)
{
	const Entry *x = a;
	const Entry *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->waits != y->waits)
		return x->waits ? 1 : -1;
	return ItemPointerCompare((ItemPointer) &x->tid, (ItemPointer) &y->tid);
}

/* Decode and sort the measurements of the next span. */
static void
read_span(DpBucketScan *scan)
{
	struct DpBucketByTime *b = scan->by_time;
	DpBucketColumn *time = scan->rel->time;
	TypeCacheEntry *type = lookup_type_cache(time->type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	MemoryContext old = MemoryContextSwitchTo(scan->estate->es_query_cxt);
	AttrNumber attnum = time->attnum;
	Oid operator= b->from_end ? type->gt_opr : type->lt_opr;
	Oid collation = InvalidOid;
	bool nulls_first = b->from_end;
	int64 start = b->entries[b->next].start;

	b->sort =
		tuplesort_begin_heap(b->given->tts_tupleDescriptor, 1, &attnum, &operator, & collation,
							 &nulls_first, work_mem, NULL, TUPLESORT_NONE);
	MemoryContextSwitchTo(old);
	for (; b->next < b->n && b->entries[b->next].start == start; b->next++)
	{
		Entry *entry = &b->entries[b->next];

		CHECK_FOR_INTERRUPTS();
		if (!table_tuple_fetch_row_version(entry->waits ? scan->recent : scan->packed, &entry->tid,
										   scan->estate->es_snapshot,
										   entry->waits ? scan->recent_slot : scan->packed_slot))
			elog(ERROR, "a bucket that was listed is gone");
		if (entry->waits)
		{
			ExecClearTuple(b->given);
			dp_bucket_emit_recent(scan, b->given);
			tuplesort_puttupleslot(b->sort, b->given);
		}
		else
			read_bucket(scan);
	}
	tuplesort_performsort(b->sort);
}

/* Sort the rows of the bucket in packed_slot that match the keys on time. */
static void
read_bucket(DpBucketScan *scan)
{
	struct DpBucketByTime *b = scan->by_time;
	MemoryContext old;
	int to;

	(void) dp_bucket_scan_fits(scan);
	dp_bucket_open(&scan->reader, scan->packed_slot->tts_values[scan->rel->packed_data - 1]);
	if (dp_bucket_scan_hopeless(scan))
	{
		dp_bucket_scan_count(scan, &scan->counters->skipped);
		return;
	}
	if (!dp_bucket_scan_range(scan, &scan->next, &to))
		return;
	MemoryContextReset(scan->rows_context);
	old = MemoryContextSwitchTo(scan->rows_context);
	dp_scan_rows_make(scan, scan->reader.count, true);
	dp_scan_rows_decode(scan, &scan->reader, 0, true);
	MemoryContextSwitchTo(old);
	for (; scan->next < to; scan->next++)
	{
		ExecClearTuple(b->given);
		dp_bucket_emit_packed(scan, b->given);
		tuplesort_puttupleslot(b->sort, b->given);
	}
}
