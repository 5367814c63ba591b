/*
 * rows.c
 *		Rows from buckets: decoding the needed columns, and ordering the buckets of
 *		one span.
 *
 * A span may have several buckets, whose times may overlap (a late measurement
 * opened a new one).  An ordered scan reads them together.
 */
#include "postgres.h"

#include "access/itup.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "patterns/bucket/scan.h"

/* A bucket of a span that has several: a copy in the span's context */
typedef struct SpanBucket
{
	Datum data;
	int seq;
	ItemPointerData tid;
	int from;
	int to;
} SpanBucket;

static bool fetch_bucket(DpBucketScan *scan);
static bool fetch_pending(DpBucketScan *scan);
static bool same_span(DpBucketScan *scan);
static bool usable(DpBucketScan *scan, int *from, int *to);
static void single_bucket(DpBucketScan *scan, int from, int to);
static void several_buckets(DpBucketScan *scan, List *buckets);
static SpanBucket *keep_bucket(DpBucketScan *scan, int from, int to);
static int compare_buckets(const ListCell *a, const ListCell *b);
static int compare_times(const void *a, const void *b, void *arg);

/* Room for n rows. */
void
dp_scan_rows_make(DpBucketScan *scan, int n, bool times)
{
	DpScanRows *rows = &scan->rows;
	int i;

	rows->n = n;
	rows->order = NULL;
	rows->ordinals = NULL;
	rows->positions = NULL;
	rows->times = times ? palloc(sizeof(int64) * n) : NULL;
	for (i = 0; i < scan->nneeded; i++)
	{
		const DpBucketColumn *column = scan->needed[i];

		if (column->role != DP_BUCKET_VALUE)
			continue;
		rows->values[column->number] = palloc(sizeof(Datum) * n);
		rows->nulls[column->number] = palloc(sizeof(bool) * n);
	}
}

/* Decodes the needed columns of a bucket. */
void
dp_scan_rows_decode(DpBucketScan *scan, DpBucketReader *reader, int offset, bool times)
{
	DpScanRows *rows = &scan->rows;
	int i;

	if (times)
		dp_bucket_times(reader, rows->times + offset);
	for (i = 0; i < scan->nneeded; i++)
	{
		const DpBucketColumn *column = scan->needed[i];
		int number = column->number;

		if (column->role != DP_BUCKET_VALUE)
			continue;
		/* a column that was added later is not in older buckets */
		if (number < reader->ncolumns)
			dp_bucket_datums(reader, number, column->type, column->typmod,
							 rows->values[number] + offset, rows->nulls[number] + offset);
		else
			memset(rows->nulls[number] + offset, true, sizeof(bool) * reader->count);
	}
	dp_bucket_scan_count(scan, &scan->counters->read);
}

/*
 * Load the rows of the next span that match the keys on time.  They are
 * between scan->next and scan->end, in the direction of the scan.
 */
bool
dp_scan_rows_span(DpBucketScan *scan)
{
	List *buckets = NIL;
	bool found = false;
	int from = 0;
	int to = 0;

	while (!found)
	{
		if (!fetch_bucket(scan))
			return false;
		found = usable(scan, &from, &to);
	}
	scan->nspans++;

	/* most spans have one bucket, which is read in place */
	while (same_span(scan))
	{
		if (buckets == NIL)
		{
			MemoryContextReset(scan->span_context);
			buckets = lappend(NIL, keep_bucket(scan, from, to));
		}
		if (fetch_pending(scan) && usable(scan, &from, &to))
			buckets = lappend(buckets, keep_bucket(scan, from, to));
	}
	if (buckets == NIL)
		single_bucket(scan, from, to);
	else
		several_buckets(scan, buckets);
	return true;
}

/* Fetch the next bucket of the index into the slot; false if there is none. */
static bool
fetch_bucket(DpBucketScan *scan)
{
	ScanDirection direction =
		scan->mode == DP_SCAN_BACKWARD ? BackwardScanDirection : ForwardScanDirection;

	while (!scan->packed_done)
	{
		CHECK_FOR_INTERRUPTS();
		if (!scan->packed_pending &&
			(scan->tail_done || dp_bucket_scan_tid(scan, scan->packed_iscan, direction) == NULL))
		{
			if (scan->only_tail)
				dp_bucket_scan_widen(scan);
			else
				scan->packed_done = true;
		}
		else if (fetch_pending(scan))
			return true;
	}
	return false;
}

/* Fetch the bucket that the index has given; false if the query does not see it. */
static bool
fetch_pending(DpBucketScan *scan)
{
	TupleTableSlot *slot = scan->packed_slot;

	scan->packed_pending = false;
	if (!index_fetch_heap(scan->packed_iscan, slot))
		return false;
	slot_getsomeattrs(slot, scan->rel->packed_data);
	return !slot->tts_isnull[scan->rel->packed_data - 1];
}

/*
 * Whether the next bucket of the index is of the span of the one in the slot.
 * Looks at the index only.
 */
static bool
same_span(DpBucketScan *scan)
{
	DpBucketRel *rel = scan->rel;
	ScanDirection direction =
		scan->mode == DP_SCAN_BACKWARD ? BackwardScanDirection : ForwardScanDirection;
	TupleDesc desc;
	IndexTuple itup;
	bool isnull;
	int i;

	if (!scan->packed_pending)
	{
		if (scan->tail_done)
			return false;
		if (dp_bucket_scan_tid(scan, scan->packed_iscan, direction) == NULL)
		{
			scan->tail_done = scan->only_tail;
			scan->packed_done = !scan->only_tail;
			return false;
		}
		scan->packed_pending = true;
	}
	itup = scan->packed_iscan->xs_itup;
	desc = scan->packed_iscan->xs_itupdesc;
	if (DatumGetInt64(index_getattr(itup, rel->ngroups + 1, desc, &isnull)) != scan->start)
		return false;
	for (i = 0; scan->group_cmp != NULL && i < rel->ngroups; i++)
	{
		Datum value = index_getattr(itup, i + 1, desc, &isnull);

		if (isnull != scan->group_nulls[i] ||
			(!isnull &&
			 DatumGetInt32(FunctionCall2Coll(&scan->group_cmp[i], rel->groups[i]->collation, value,
											 scan->group_values[i])) != 0))
			return false;
	}
	return true;
}

/* Open the bucket in the slot; whether rows of it may match, and which by the time. */
static bool
usable(DpBucketScan *scan, int *from, int *to)
{
	DpBucketRel *rel = scan->rel;
	TupleTableSlot *slot = scan->packed_slot;
	int i;

	for (i = 0; i < rel->ngroups; i++)
	{
		scan->group_values[i] = slot->tts_values[rel->groups[i]->packed - 1];
		scan->group_nulls[i] = slot->tts_isnull[rel->groups[i]->packed - 1];
	}
	scan->start = DatumGetInt64(slot->tts_values[rel->packed_start - 1]);
	dp_bucket_open(&scan->reader, slot->tts_values[rel->packed_data - 1]);
	if (dp_bucket_scan_hopeless(scan) || !dp_bucket_scan_range(scan, from, to))
	{
		dp_bucket_scan_count(scan, &scan->counters->skipped);
		return false;
	}
	return true;
}

/* The span has one bucket, which is open. */
static void
single_bucket(DpBucketScan *scan, int from, int to)
{
	bool times = scan->need_time || scan->recent_pending; /* to be compared */
	MemoryContext old;

	MemoryContextReset(scan->rows_context);
	old = MemoryContextSwitchTo(scan->rows_context);
	dp_scan_rows_make(scan, scan->reader.count, times);
	dp_scan_rows_decode(scan, &scan->reader, 0, times);
	if (scan->need_ctid)
		scan->rows.ordinal = dp_bucket_origin_add(scan->origins, true, &scan->packed_slot->tts_tid);
	MemoryContextSwitchTo(old);
	scan->next = scan->mode == DP_SCAN_BACKWARD ? to - 1 : from;
	scan->end = scan->mode == DP_SCAN_BACKWARD ? from - 1 : to;
}

/* A copy of the bucket that is in the slot and open. */
static SpanBucket *
keep_bucket(DpBucketScan *scan, int from, int to)
{
	MemoryContext old = MemoryContextSwitchTo(scan->span_context);
	TupleTableSlot *slot = scan->packed_slot;
	DpBucketRel *rel = scan->rel;
	SpanBucket *bucket = palloc(sizeof(SpanBucket));
	int i;

	bucket->data = datumCopy(slot->tts_values[rel->packed_data - 1], false, -1);
	bucket->seq = DatumGetInt32(slot->tts_values[rel->packed_seq - 1]);
	bucket->tid = slot->tts_tid;
	bucket->from = from;
	bucket->to = to;
	for (i = 0; i < rel->ngroups; i++)
	{
		if (!scan->group_nulls[i])
			scan->group_values[i] =
				datumCopy(scan->group_values[i], rel->groups[i]->typbyval, rel->groups[i]->typlen);
	}
	MemoryContextSwitchTo(old);
	return bucket;
}

/* Merges copies of the several buckets of a span. */
static void
several_buckets(DpBucketScan *scan, List *buckets)
{
	DpScanRows *rows = &scan->rows;
	MemoryContext old;
	ListCell *lc;
	int total = 0;
	int offset = 0;
	int n = 0;
	int i;

	list_sort(buckets, compare_buckets);
	foreach(lc, buckets)
	{
		dp_bucket_open(&scan->reader, ((SpanBucket *) lfirst(lc))->data);
		total += scan->reader.count;
	}

	MemoryContextReset(scan->rows_context);
	old = MemoryContextSwitchTo(scan->rows_context);
	dp_scan_rows_make(scan, total, true);
	rows->order = palloc(sizeof(int) * total);
	if (scan->need_ctid)
	{
		rows->ordinals = palloc(sizeof(BlockNumber) * total);
		rows->positions = palloc(sizeof(int) * total);
	}
	foreach(lc, buckets)
	{
		SpanBucket *bucket = lfirst(lc);

		dp_bucket_open(&scan->reader, bucket->data);
		dp_scan_rows_decode(scan, &scan->reader, offset, true);
		for (i = bucket->from; i < bucket->to; i++)
			rows->order[n++] = offset + i;
		if (scan->need_ctid)
		{
			BlockNumber ordinal = dp_bucket_origin_add(scan->origins, true, &bucket->tid);

			for (i = 0; i < scan->reader.count; i++)
			{
				rows->ordinals[offset + i] = ordinal;
				rows->positions[offset + i] = i;
			}
		}
		offset += scan->reader.count;
	}
	for (i = 1; i < n; i++)
	{
		if (rows->times[rows->order[i - 1]] > rows->times[rows->order[i]])
		{
			qsort_arg(rows->order, n, sizeof(int), compare_times, rows->times);
			break;
		}
	}
	MemoryContextSwitchTo(old);
	scan->next = scan->mode == DP_SCAN_BACKWARD ? n - 1 : 0;
	scan->end = scan->mode == DP_SCAN_BACKWARD ? -1 : n;
}

/* Buckets by their number in the span. */
static int
compare_buckets(const ListCell *a, const ListCell *b)
{
	int x = ((SpanBucket *) lfirst(a))->seq;
	int y = ((SpanBucket *) lfirst(b))->seq;

	return x < y ? -1 : x > y;
}

/* Sorts rows by time, equal times in order of insertion. */
static int
compare_times(const void *a, const void *b, void *arg)
{
	const int64 *times = arg;
	int x = *(const int *) a;
	int y = *(const int *) b;

	if (times[x] != times[y])
		return times[x] < times[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}
