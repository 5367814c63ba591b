/*
 * merge.c
 *		Reading the buckets of all groups in the order of time.
 *
 * The indexes are in the order of group and time.  They are read once, without
 * the tables, into a heap: a bucket is first in it with a bound of its times that
 * follows from its span, then with the one of its header, and when its turn comes
 * with the time of its next row.  So only buckets are unpacked that have rows to
 * give out, and a LIMIT leaves most of them alone.
 *
 * DISTINCT ON the group needs the last row of each group only: then the heap is
 * filled group by group, and emptied after a row.
 */
#include "postgres.h"

#include "access/itup.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "patterns/bucket/scan.h"

typedef enum EntryKind
{
	ENTRY_UNREAD, /* a bucket whose span is known */
	ENTRY_CLOSED, /* a bucket whose header was read */
	ENTRY_OPEN,   /* an unpacked bucket */
	ENTRY_WAITING /* a waiting measurement */
} EntryKind;

/* Of the heap; DP_MERGE_ENTRY bytes */
typedef struct Entry
{
	int64 order;         /* no row is before that time; inverted when backward */
	ItemPointerData tid; /* when open: the block is the number of the open bucket */
	uint16 kind;
} Entry;

StaticAssertDecl(sizeof(Entry) == DP_MERGE_ENTRY, "the planner knows the size of an entry");

typedef struct Open
{
	MemoryContext context;
	Datum *group_values;
	bool *group_nulls;
	DpScanRows rows;
	int next;
	int end;
} Open;

typedef struct DpBucketMerge
{
	bool filled;
	bool given; /* the first entry's row was given out */
	Entry *entries;
	Size nentries;
	Size maxentries;
	Open **open;
	int nopen; /* numbers in use, free ones (NULL) included */
	int maxopen;
	int nfree;
	int *free; /* free numbers */
	IndexFetchTableData *packed_fetch;
	IndexFetchTableData *recent_fetch;
	ItemPointerData loaded; /* the bucket that the reader has open */

	/* group by group */
	bool packed_pending; /* the index is at an entry that is not in the heap yet */
	bool recent_pending;
	MemoryContext group_context;
	Datum *group_values;
	bool *group_nulls;
} DpBucketMerge;

static void merge_fill(DpBucketScan *scan);
static void merge_empty(DpBucketMerge *merge);
static bool merge_row(DpBucketScan *scan, TupleTableSlot *slot);
static bool group_fill(DpBucketScan *scan);
static int group_compare(DpBucketScan *scan, IndexScanDesc iscan, bool is_first);
static bool merges_backward(const DpBucketScan *scan);
static void entry_add(DpBucketScan *scan, IndexScanDesc iscan, EntryKind kind);
static int64 entry_order(DpBucketScan *scan, int64 time);
static void heap_sift(DpBucketMerge *merge, Size i);
static void heap_remove(DpBucketMerge *merge);
static void entry_advance(DpBucketScan *scan);
static bool bucket_load(DpBucketScan *scan, ItemPointer tid);
static bool
row_fetch(DpBucketScan *scan, IndexFetchTableData *fetch, ItemPointer tid, TupleTableSlot *slot);
static void bucket_header(DpBucketScan *scan);
static void bucket_unpack(DpBucketScan *scan);
static int open_number(DpBucketScan *scan);
static void open_free(DpBucketMerge *merge, int number);
static void row_emit(DpBucketScan *scan, TupleTableSlot *slot);

/* Prepare, in the current context, which lasts as long as the scan. */
struct DpBucketMerge *
dp_bucket_merge_begin(DpBucketScan *scan)
{
	DpBucketMerge *merge = palloc0(sizeof(DpBucketMerge));

	merge->maxentries = 1024;
	merge->entries = palloc(sizeof(Entry) * merge->maxentries);
	merge->maxopen = 64;
	merge->open = palloc0(sizeof(Open *) * merge->maxopen);
	merge->free = palloc(sizeof(int) * merge->maxopen);
	merge->packed_fetch = table_index_fetch_begin(scan->packed);
	merge->recent_fetch = table_index_fetch_begin(scan->recent);
	merge->group_context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns bucket group",
												 ALLOCSET_SMALL_SIZES);
	merge->group_values = palloc0(sizeof(Datum) * Max(scan->rel->ngroups, 1));
	merge->group_nulls = palloc0(sizeof(bool) * Max(scan->rel->ngroups, 1));
	return merge;
}

/* The next row. */
TupleTableSlot *
dp_bucket_merge_next(DpBucketScan *scan, TupleTableSlot *slot)
{
	DpBucketMerge *merge = scan->merge;

	if (!merge->filled)
		merge_fill(scan);
	if (scan->mode == DP_SCAN_LAST)
	{
		do
			merge_empty(merge);
		while (group_fill(scan) && !merge_row(scan, slot));
		return slot;
	}
	if (merge->given)
		entry_advance(scan);
	(void) merge_row(scan, slot);
	return slot;
}

/* Puts the next row into the slot, if there is one. */
static bool
merge_row(DpBucketScan *scan, TupleTableSlot *slot)
{
	DpBucketMerge *merge = scan->merge;

	while (merge->nentries > 0)
	{
		Entry *first = &merge->entries[0];

		CHECK_FOR_INTERRUPTS();
		switch ((EntryKind) first->kind)
		{
			case ENTRY_UNREAD:
				bucket_header(scan);
				break;
			case ENTRY_CLOSED:
				bucket_unpack(scan);
				break;
			case ENTRY_OPEN:
				row_emit(scan, slot);
				merge->given = true;
				return true;
			case ENTRY_WAITING:
				if (!row_fetch(scan, merge->recent_fetch, &first->tid, scan->recent_slot))
				{
					heap_remove(merge);
					break;
				}
				dp_bucket_scan_count(scan, &scan->counters->waiting);
				dp_bucket_emit_recent(scan, slot);
				merge->given = true;
				return true;
		}
	}
	return false;
}

/* Restarts. */
void
dp_bucket_merge_rescan(DpBucketScan *scan)
{
	DpBucketMerge *merge = scan->merge;

	merge_empty(merge);
	merge->filled = false;
	table_index_fetch_reset(merge->packed_fetch);
	table_index_fetch_reset(merge->recent_fetch);
}

/* Empties the heap. */
static void
merge_empty(DpBucketMerge *merge)
{
	int i;

	for (i = 0; i < merge->nopen; i++)
	{
		if (merge->open[i] != NULL)
			MemoryContextDelete(merge->open[i]->context);
	}
	merge->nopen = merge->nfree = 0;
	merge->nentries = 0;
	merge->given = false;
}

/* Releases what pins buffers. */
void
dp_bucket_merge_end(DpBucketScan *scan)
{
	table_index_fetch_end(scan->merge->packed_fetch);
	table_index_fetch_end(scan->merge->recent_fetch);
}

/* Reads the indexes into the heap, or goes to their first entries. */
static void
merge_fill(DpBucketScan *scan)
{
	DpBucketMerge *merge = scan->merge;
	Size i;

	ItemPointerSetInvalid(&merge->loaded);
	merge->packed_pending = !scan->packed_done && dp_bucket_scan_tid(scan, scan->packed_iscan,
																	 ForwardScanDirection) != NULL;
	merge->recent_pending = !scan->recent_done && dp_bucket_scan_tid(scan, scan->recent_iscan,
																	 ForwardScanDirection) != NULL;
	merge->filled = true;
	if (scan->mode == DP_SCAN_LAST)
		return;
	while (merge->packed_pending)
	{
		entry_add(scan, scan->packed_iscan, ENTRY_UNREAD);
		merge->packed_pending =
			dp_bucket_scan_tid(scan, scan->packed_iscan, ForwardScanDirection) != NULL;
	}
	while (merge->recent_pending)
	{
		entry_add(scan, scan->recent_iscan, ENTRY_WAITING);
		merge->recent_pending =
			dp_bucket_scan_tid(scan, scan->recent_iscan, ForwardScanDirection) != NULL;
	}
	for (i = merge->nentries / 2; i > 0; i--)
		heap_sift(merge, i - 1);
}

/* Reads the next group of the indexes into the empty heap; false if there is none. */
static bool
group_fill(DpBucketScan *scan)
{
	DpBucketMerge *merge = scan->merge;
	Size i;

	if (!merge->packed_pending && !merge->recent_pending)
		return false;
	if (merge->packed_pending)
		(void) group_compare(scan, scan->packed_iscan, true);
	if (merge->recent_pending &&
		(!merge->packed_pending || group_compare(scan, scan->recent_iscan, false) < 0))
		(void) group_compare(scan, scan->recent_iscan, true);
	while (merge->packed_pending && group_compare(scan, scan->packed_iscan, false) == 0)
	{
		entry_add(scan, scan->packed_iscan, ENTRY_UNREAD);
		merge->packed_pending =
			dp_bucket_scan_tid(scan, scan->packed_iscan, ForwardScanDirection) != NULL;
	}
	while (merge->recent_pending && group_compare(scan, scan->recent_iscan, false) == 0)
	{
		entry_add(scan, scan->recent_iscan, ENTRY_WAITING);
		merge->recent_pending =
			dp_bucket_scan_tid(scan, scan->recent_iscan, ForwardScanDirection) != NULL;
	}
	for (i = merge->nentries / 2; i > 0; i--)
		heap_sift(merge, i - 1);
	return true;
}

/*
 * Whether the group of an index's entry is before (-1), at (0) or after (1) the current one. If
 * is_first, it becomes the current one.
 */
static int
group_compare(DpBucketScan *scan, IndexScanDesc iscan, bool is_first)
{
	DpBucketMerge *merge = scan->merge;
	DpBucketRel *rel = scan->rel;
	int i;

	if (is_first)
		MemoryContextReset(merge->group_context);
	for (i = 0; i < rel->ngroups; i++)
	{
		const DpBucketColumn *group = rel->groups[i];
		bool isnull;
		Datum value = index_getattr(iscan->xs_itup, i + 1, iscan->xs_itupdesc, &isnull);
		int c;

		if (is_first)
		{
			MemoryContext old = MemoryContextSwitchTo(merge->group_context);

			merge->group_nulls[i] = isnull;
			if (!isnull)
				merge->group_values[i] = datumCopy(value, group->typbyval, group->typlen);
			MemoryContextSwitchTo(old);
			continue;
		}
		if (isnull || merge->group_nulls[i])
			c = (int) isnull - (int) merge->group_nulls[i]; /* nulls are last */
		else
			c = DatumGetInt32(FunctionCall2Coll(&scan->group_cmp[i], group->collation, value,
												merge->group_values[i]));
		if (c != 0)
			return c < 0 ? -1 : 1;
	}
	return 0;
}

/* Whether later times come first. */
static bool
merges_backward(const DpBucketScan *scan)
{
	return scan->mode != DP_SCAN_TIME;
}

/* Appends the entry that an index is at. */
static void
entry_add(DpBucketScan *scan, IndexScanDesc iscan, EntryKind kind)
{
	DpBucketMerge *merge = scan->merge;
	DpBucketRel *rel = scan->rel;
	bool isnull;
	int64 time =
		DatumGetInt64(index_getattr(iscan->xs_itup, rel->ngroups + 1, iscan->xs_itupdesc, &isnull));
	Entry *entry;

	CHECK_FOR_INTERRUPTS();
	if (kind == ENTRY_UNREAD && merges_backward(scan))
		time = rel->span_us > 0 ? time + rel->span_us - 1 : dp_bucket_rel_end(rel, time) - 1;
	if (merge->nentries == merge->maxentries)
	{
		merge->maxentries *= 2;
		merge->entries = repalloc_huge(merge->entries, sizeof(Entry) * merge->maxentries);
	}
	entry = &merge->entries[merge->nentries++];
	entry->order = entry_order(scan, time);
	entry->tid = iscan->xs_heaptid;
	entry->kind = kind;
}

/* A time as the heap has it. */
static int64
entry_order(DpBucketScan *scan, int64 time)
{
	return merges_backward(scan) ? ~time : time;
}

/* Moves an entry down to its place. */
static void
heap_sift(DpBucketMerge *merge, Size i)
{
	Entry *entries = merge->entries;
	Entry moved = entries[i];

	for (;;)
	{
		Size child = 2 * i + 1;

		if (child >= merge->nentries)
			break;
		if (child + 1 < merge->nentries && entries[child + 1].order < entries[child].order)
			child++;
		if (moved.order <= entries[child].order)
			break;
		entries[i] = entries[child];
		i = child;
	}
	entries[i] = moved;
}

/* Removes the first entry. */
static void
heap_remove(DpBucketMerge *merge)
{
	merge->entries[0] = merge->entries[--merge->nentries];
	if (merge->nentries > 0)
		heap_sift(merge, 0);
}

/* Goes on behind the row of the first entry. */
static void
entry_advance(DpBucketScan *scan)
{
	DpBucketMerge *merge = scan->merge;
	Entry *first = &merge->entries[0];

	merge->given = false;
	if (first->kind == ENTRY_OPEN)
	{
		int number = (int) ItemPointerGetBlockNumberNoCheck(&first->tid);
		Open *open = merge->open[number];

		open->next += merges_backward(scan) ? -1 : 1;
		if (open->next != open->end)
		{
			first->order = entry_order(scan, open->rows.times[open->next]);
			heap_sift(merge, 0);
			return;
		}
		open_free(merge, number);
	}
	heap_remove(merge);
}

/* Opens a bucket in the reader; false if the query does not see it. */
static bool
bucket_load(DpBucketScan *scan, ItemPointer tid)
{
	DpBucketMerge *merge = scan->merge;
	AttrNumber data = scan->rel->packed_data;

	if (ItemPointerIsValid(&merge->loaded) && ItemPointerEquals(&merge->loaded, tid))
		return true;
	ItemPointerSetInvalid(&merge->loaded);
	if (!row_fetch(scan, merge->packed_fetch, tid, scan->packed_slot))
		return false;
	slot_getsomeattrs(scan->packed_slot, data);
	if (scan->packed_slot->tts_isnull[data - 1])
		return false;
	dp_bucket_open(&scan->reader, scan->packed_slot->tts_values[data - 1]);
	merge->loaded = *tid;
	return true;
}

/* Fetches the row of an index entry; false if the query does not see it. */
static bool
row_fetch(DpBucketScan *scan, IndexFetchTableData *fetch, ItemPointer tid, TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(scan->estate->es_query_cxt);
	ItemPointerData at = *tid; /* the fetch changes it */
	bool again = false;
	bool result =
		table_index_fetch_tuple(fetch, &at, scan->estate->es_snapshot, slot, &again, NULL);

	MemoryContextSwitchTo(old);
	return result;
}

/* The first entry is a bucket: reads its header for a closer bound. */
static void
bucket_header(DpBucketScan *scan)
{
	DpBucketMerge *merge = scan->merge;
	Entry *first = &merge->entries[0];

	if (!bucket_load(scan, &first->tid))
		heap_remove(merge);
	else if (dp_bucket_scan_hopeless(scan))
	{
		dp_bucket_scan_count(scan, &scan->counters->skipped);
		heap_remove(merge);
	}
	else
	{
		first->kind = ENTRY_CLOSED;
		first->order =
			entry_order(scan, merges_backward(scan) ? Min(scan->reader.last, scan->until)
													: Max(scan->reader.first, scan->since));
		heap_sift(merge, 0);
	}
}

/* The first entry is a bucket whose turn may have come: unpacks it. */
static void
bucket_unpack(DpBucketScan *scan)
{
	DpBucketMerge *merge = scan->merge;
	DpBucketRel *rel = scan->rel;
	Entry *first = &merge->entries[0];
	TupleTableSlot *slot = scan->packed_slot;
	MemoryContext context;
	MemoryContext old;
	Open *open;
	int from;
	int to;
	int number;
	int i;

	if (!bucket_load(scan, &first->tid))
	{
		heap_remove(merge);
		return;
	}
	if (!dp_bucket_scan_range(scan, &from, &to))
	{
		dp_bucket_scan_count(scan, &scan->counters->skipped);
		heap_remove(merge);
		return;
	}
	context = AllocSetContextCreate(scan->estate->es_query_cxt, "docpatterns bucket rows",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	open = palloc(sizeof(Open));
	open->context = context;
	open->group_values = palloc(sizeof(Datum) * Max(rel->ngroups, 1));
	open->group_nulls = palloc(sizeof(bool) * Max(rel->ngroups, 1));
	for (i = 0; i < rel->ngroups; i++)
	{
		const DpBucketColumn *group = rel->groups[i];

		open->group_nulls[i] = slot->tts_isnull[group->packed - 1];
		open->group_values[i] =
			open->group_nulls[i]
				? (Datum) 0
				: datumCopy(slot->tts_values[group->packed - 1], group->typbyval, group->typlen);
	}
	scan->rows.values = palloc0(sizeof(Datum *) * Max(rel->nvalues, 1));
	scan->rows.nulls = palloc0(sizeof(bool *) * Max(rel->nvalues, 1));
	dp_scan_rows_make(scan, scan->reader.count, true);
	dp_scan_rows_decode(scan, &scan->reader, 0, true);
	MemoryContextSwitchTo(old);
	if (scan->need_ctid)
		scan->rows.ordinal = dp_bucket_origin_add(scan->origins, true, &slot->tts_tid);
	open->rows = scan->rows;
	open->next = merges_backward(scan) ? to - 1 : from;
	open->end = merges_backward(scan) ? from - 1 : to;

	number = open_number(scan);
	merge->open[number] = open;
	first->kind = ENTRY_OPEN;
	ItemPointerSet(&first->tid, number, 1);
	first->order = entry_order(scan, open->rows.times[open->next]);
	heap_sift(merge, 0);
}

/* A number for an open bucket. */
static int
open_number(DpBucketScan *scan)
{
	DpBucketMerge *merge = scan->merge;

	if (merge->nfree > 0)
		return merge->free[--merge->nfree];
	if (merge->nopen == merge->maxopen)
	{
		merge->maxopen *= 2;
		merge->open = repalloc_huge(merge->open, sizeof(Open *) * merge->maxopen);
		merge->free = repalloc_huge(merge->free, sizeof(int) * merge->maxopen);
	}
	return merge->nopen++;
}

/* Forgets an open bucket. */
static void
open_free(DpBucketMerge *merge, int number)
{
	MemoryContextDelete(merge->open[number]->context);
	merge->open[number] = NULL;
	merge->free[merge->nfree++] = number;
}

/* Puts the row of the first entry, an open bucket, into the slot. */
static void
row_emit(DpBucketScan *scan, TupleTableSlot *slot)
{
	DpBucketMerge *merge = scan->merge;
	const Open *open = merge->open[ItemPointerGetBlockNumberNoCheck(&merge->entries[0].tid)];

	scan->rows = open->rows;
	scan->next = open->next;
	scan->group_values = open->group_values;
	scan->group_nulls = open->group_nulls;
	dp_bucket_emit_packed(scan, slot);
}
