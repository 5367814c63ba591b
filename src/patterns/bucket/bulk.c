/*
 * bulk.c
 *		Many measurements in one statement.
 *
 * Rows are appended to heaps, one for each group and span: times and values one
 * after the other, values passed by reference copied behind them.  When memory is
 * used up, all heaps but the newest of each group are packed, and their buckets
 * sorted by group and start; if data come in order of time, these are complete.
 * At the end the rest is packed and the sorted buckets are written: those of the
 * same group and span are merged, and added to the existing ones.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "access/xact.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

#include "patterns/bucket/bulk.h"
#include "patterns/bucket/pack.h"

/* A span that may continue is left waiting if a statement has fewer measurements of it */
#define LEAST_OF_LAST_SPAN 32

typedef struct Series Series;

/* Measurements of one group and span */
typedef struct Heap
{
	Series *series;
	int64 start;
	int64 end;
	int n;
	int max;
	Datum *rows; /* of the width of a row: time, values, nulls */
	char *bytes; /* data of values passed by reference */
	Size nbytes;
	Size maxbytes;
	struct Heap *next; /* of the group, newest first */
} Heap;

struct Series
{
	uint32 hash;
	DpBucketGroup *key;
	Heap *last; /* heap of the last row */
	Heap *heaps;
	Series *next;  /* in the table's chain */
	Series *later; /* the next new one */
};

/* A group with waiting measurements of spans that are over */
typedef struct Due
{
	const DpBucketGroup *group;
	int64 until;
} Due;

struct DpBucketBulk
{
	DpBucketStore *store;
	DpBucketRel *rel;
	MemoryContext context;
	MemoryContext heaps_context; /* rows of heaps */
	int width;                   /* Datums of a row */
	int time_at;                 /* index of the time among the relation's columns */
	int *value_at;               /* and of the values */
	bool by_reference;           /* some values are */
	Series **table;
	uint32 mask;
	uint32 ngroups;
	Series *first_group; /* in the order of arrival */
	Series *newest_group;
	Series *last_group; /* of the last row */
	int64 nrows;
	int64 npacked;
	Size limit;
	Size used;
	Tuplesortstate *sort;
	TupleDesc sort_desc;
	TupleTableSlot *sort_slot;
	bool finished;
	bool whole;    /* the input was packed before: nothing is left waiting */
	Datum *values; /* for one row of a bucket */
	bool *nulls;
	Datum *row_values; /* and one of the relation */
	bool *row_nulls;
};

static void rows_wait(DpBucketBulk *bulk);
static void due_pack(DpBucketBulk *bulk, const Due *due, int ndue);
static Series *group_get(DpBucketBulk *bulk, const Datum *values, const bool *nulls);
static void table_grow(DpBucketBulk *bulk);
static Heap *heap_get(DpBucketBulk *bulk, Series *group, int64 time);
static void heap_grow(DpBucketBulk *bulk, Heap *heap);
static Datum heap_copy(DpBucketBulk *bulk, Heap *heap, Datum value, int16 typlen);
static void
heap_row(DpBucketBulk *bulk, Heap *heap, int n, int64 *time, Datum *values, bool *nulls);
static void heap_pack(DpBucketBulk *bulk, Heap *heap);
static void heap_wait(DpBucketBulk *bulk, Heap *heap);
static void heap_free(DpBucketBulk *bulk, Heap *heap);
static void heaps_pack(DpBucketBulk *bulk, bool all);
static void
sort_put(DpBucketBulk *bulk, const DpBucketGroup *group, int64 start, struct varlena *bucket);
static void sort_begin(DpBucketBulk *bulk);
static void sort_write(DpBucketBulk *bulk);
static void run_write(DpBucketBulk *bulk, const DpBucketGroup *group, int64 start, Datum *buckets,
					  int n, int64 count, bool last);
static void bucket_wait(DpBucketBulk *bulk, const DpBucketGroup *group, Datum bucket);

#define ST_SORT sort_tids
#define ST_ELEMENT_TYPE uint64
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Begin to collect.
 */
DpBucketBulk *
dp_bucket_bulk_create(DpBucketStore *store)
{
	MemoryContext context =
		AllocSetContextCreate(store->context, "docpatterns bucket bulk", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	DpBucketBulk *bulk = palloc0(sizeof(DpBucketBulk));
	DpBucketRel *rel = store->rel;
	int i;

	bulk->store = store;
	bulk->rel = rel;
	bulk->context = context;
	bulk->heaps_context =
		AllocSetContextCreate(context, "docpatterns bucket heaps", ALLOCSET_DEFAULT_SIZES);
	bulk->width = 1 + rel->nvalues + (rel->nvalues + 63) / 64;
	bulk->time_at = rel->time - rel->columns;
	bulk->value_at = palloc(sizeof(int) * Max(rel->nvalues, 1));
	for (i = 0; i < rel->nvalues; i++)
	{
		bulk->value_at[i] = rel->values[i] - rel->columns;
		if (!rel->values[i]->typbyval)
			bulk->by_reference = true;
	}
	bulk->mask = 255;
	bulk->table = palloc0(sizeof(Series *) * (bulk->mask + 1));
	bulk->limit = (Size) maintenance_work_mem * 1024;
	bulk->values = palloc(sizeof(Datum) * Max(rel->nvalues, 1));
	bulk->nulls = palloc(sizeof(bool) * Max(rel->nvalues, 1));
	bulk->row_values = palloc(sizeof(Datum) * rel->ncolumns);
	bulk->row_nulls = palloc(sizeof(bool) * rel->ncolumns);
	MemoryContextSwitchTo(old);
	return bulk;
}

/*
 * Collect a row.
 */
void
dp_bucket_bulk_add(DpBucketBulk *bulk, const Datum *values, const bool *nulls)
{
	DpBucketRel *rel = bulk->rel;
	int64 time = DatumGetInt64(values[bulk->time_at]);
	Series *group = group_get(bulk, values, nulls);
	Heap *heap = group->last;
	Datum *row;
	uint64 *bits;
	int i;

	if (unlikely(heap == NULL || time < heap->start || time >= heap->end))
		heap = group->last = heap_get(bulk, group, time);
	if (unlikely(heap->n == heap->max))
		heap_grow(bulk, heap);
	row = heap->rows + (Size) heap->n * bulk->width;
	*row++ = Int64GetDatum(time);
	bits = (uint64 *) (row + rel->nvalues);
	for (i = 0; i < rel->nvalues; i += 64)
		bits[i / 64] = 0;
	for (i = 0; i < rel->nvalues; i++)
	{
		int at = bulk->value_at[i];

		if (nulls[at])
		{
			bits[i / 64] |= UINT64CONST(1) << (i % 64);
			row[i] = (Datum) 0;
		}
		else if (rel->values[i]->typbyval)
			row[i] = values[at];
		else
			row[i] = heap_copy(bulk, heap, values[at], rel->values[i]->typlen);
	}
	heap->n++;
	bulk->nrows++;
	if (unlikely(bulk->used > bulk->limit))
	{
		heaps_pack(bulk, false);
		if (bulk->used > bulk->limit / 2)
			heaps_pack(bulk, true);
	}
	else if (unlikely(heap->n >= DP_BUCKET_MAX_COUNT / 2))
	{
		heap_pack(bulk, heap);
		heap->n = 0;
		heap->nbytes = 0;
	}
}

/* Adds the rows of a bucket, divided by spans. */
void
dp_bucket_bulk_add_bucket(DpBucketBulk *bulk, const DpBucketGroup *group, Datum bucket)
{
	DpBucketReader reader;
	int64 *times;
	int from = 0;

	bulk->whole = true;
	dp_bucket_reader_init(&reader, CurrentMemoryContext);
	dp_bucket_open(&reader, bucket);
	times = palloc(sizeof(int64) * reader.count);
	dp_bucket_times(&reader, times);
	while (from < reader.count)
	{
		int64 start = dp_bucket_rel_start(bulk->rel, times[from]);
		int64 end = dp_bucket_rel_end(bulk->rel, start);
		int to = from + 1;
		DpBucketBuilder *builder = dp_bucket_store_builder(bulk->store);
		struct varlena *part;

		while (to < reader.count && times[to] < end)
			to++;
		dp_bucket_append_bucket(builder, &reader, from, to);
		part = dp_bucket_builder_finish(builder);
		sort_put(bulk, group, start, part);
		pfree(part);
		from = to;
	}
	pfree(times);
	dp_bucket_reader_free(&reader);
}

/*
 * Write everything that was collected.
 */
void
dp_bucket_bulk_finish(DpBucketBulk *bulk)
{
	if (bulk->finished && bulk->nrows == 0 && bulk->sort == NULL)
		return;
	bulk->finished = true;
	if (bulk->sort == NULL && bulk->nrows < DP_BUCKET_BULK_LEAST)
		rows_wait(bulk);
	else
	{
		heaps_pack(bulk, true);
		sort_write(bulk);
	}
	bulk->nrows = 0;
}

/* All rows wait like single ones; then what is due is packed. */
static void
rows_wait(DpBucketBulk *bulk)
{
	Series *group;
	Heap *heap;
	Due *due;
	int ndue = 0;

	for (group = bulk->first_group; group != NULL; group = group->later)
	{
		for (heap = group->heaps; heap != NULL; heap = heap->next)
			heap_wait(bulk, heap);
	}
	dp_bucket_recent_flush(bulk->store);
	due = palloc(sizeof(Due) * bulk->ngroups);
	for (group = bulk->first_group; group != NULL; group = group->later)
	{
		Heap *newest = group->heaps;

		for (heap = group->heaps; heap != NULL; heap = heap->next)
		{
			if (heap->start > newest->start)
				newest = heap;
		}
		group->heaps = group->last = NULL;
		if (newest == NULL || !dp_bucket_note(bulk->store, group->key, newest->start, newest->n))
			continue;
		due[ndue].group = group->key;
		due[ndue++].until = newest->start;
	}
	MemoryContextReset(bulk->heaps_context);
	bulk->used = bulk->ngroups * (sizeof(Series) + sizeof(DpBucketGroup));
	if (ndue > 0)
		CommandCounterIncrement(); /* includes the statement's own rows */
	if (ndue == 1)
		(void) dp_bucket_pack(bulk->store, due->group, due->until, false);
	else if (ndue > 1)
		due_pack(bulk, due, ndue);
	pfree(due);
}

/*
 * Packs what waits of several groups.  Rows of neighbouring times are neighbours in the table, so
 * it is read and written in its own order.
 */
static void
due_pack(DpBucketBulk *bulk, const Due *due, int ndue)
{
	DpBucketStore *store = bulk->store;
	DpTids tids = { NULL, 0, 0 };
	Snapshot snapshot;
	IndexFetchTableData *fetch;
	bool dead = false;
	Size n;
	int i;

	if (dp_bucket_changing(bulk->rel->relid))
		return;
	snapshot = RegisterSnapshot(dp_bucket_store_snapshot(store, true));
	for (i = 0; i < ndue; i++)
		dp_bucket_recent_tids(store, due[i].group, due[i].until, snapshot, &tids);
	sort_tids(tids.tid, tids.n);
	fetch = table_index_fetch_begin(store->recent.rel);
	for (n = 0; n < tids.n; n++)
	{
		ItemPointerData tid;
		bool again = false;
		bool all_dead = false;

		CHECK_FOR_INTERRUPTS();
		ItemPointerSet(&tid, (BlockNumber) (tids.tid[n] >> 16), (OffsetNumber) tids.tid[n]);
		if (!table_index_fetch_tuple(fetch, &tid, snapshot, store->recent.row, &again, &all_dead))
		{
			dead |= all_dead;
			continue;
		}
		if (dp_table_delete(&store->recent, &store->recent.row->tts_tid, false) != TM_Ok)
			continue;
		dp_bucket_recent_row(store, bulk->row_values, bulk->row_nulls);
		dp_bucket_bulk_add(bulk, bulk->row_values, bulk->row_nulls);
	}
	ExecClearTuple(store->recent.row);
	table_index_fetch_end(fetch);

	/* a scan by the index marks entries of dead rows, which the next one skips */
	for (i = 0; dead && i < ndue; i++)
	{
		IndexScanDesc scan =
			dp_bucket_recent_scan(store, due[i].group, PG_INT64_MIN, due[i].until, snapshot);

		(void) dp_bucket_recent_next(store, scan);
		index_endscan(scan);
	}
	ExecClearTuple(store->recent.row);
	UnregisterSnapshot(snapshot);
	if (tids.tid != NULL)
		pfree(tids.tid);

	bulk->whole = true;
	heaps_pack(bulk, true);
	sort_write(bulk);
	bulk->whole = false;
}

/* Returns the group of a row, created if it is new. */
static Series *
group_get(DpBucketBulk *bulk, const Datum *values, const bool *nulls)
{
	DpBucketRel *rel = bulk->rel;
	DpBucketGroup key;
	uint32 hash;
	Series *group;
	MemoryContext old;

	dp_bucket_group_of_row(rel, values, nulls, &key);
	if (bulk->last_group != NULL && dp_bucket_group_same(rel, bulk->last_group->key, &key))
		return bulk->last_group;
	hash = dp_bucket_group_hash(rel, &key);
	for (group = bulk->table[hash & bulk->mask]; group != NULL; group = group->next)
	{
		if (group->hash == hash && dp_bucket_group_same(rel, group->key, &key))
			return bulk->last_group = group;
	}

	if (bulk->ngroups > bulk->mask)
		table_grow(bulk);
	old = MemoryContextSwitchTo(bulk->context);
	group = palloc0(sizeof(Series));
	group->hash = hash;
	group->key = palloc(sizeof(DpBucketGroup));
	dp_bucket_group_copy(rel, &key, group->key);
	MemoryContextSwitchTo(old);
	group->next = bulk->table[hash & bulk->mask];
	bulk->table[hash & bulk->mask] = group;
	if (bulk->first_group == NULL)
		bulk->first_group = group;
	else
		bulk->newest_group->later = group;
	bulk->newest_group = group;
	bulk->ngroups++;
	bulk->used += sizeof(Series) + sizeof(DpBucketGroup);
	return bulk->last_group = group;
}

/* Twice as many chains. */
static void
table_grow(DpBucketBulk *bulk)
{
	uint32 mask = bulk->mask * 2 + 1;
	Series **table = MemoryContextAllocExtended(bulk->context, sizeof(Series *) * ((Size) mask + 1),
												MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	uint32 i;

	for (i = 0; i <= bulk->mask; i++)
	{
		Series *group = bulk->table[i];

		while (group != NULL)
		{
			Series *next = group->next;

			group->next = table[group->hash & mask];
			table[group->hash & mask] = group;
			group = next;
		}
	}
	pfree(bulk->table);
	bulk->table = table;
	bulk->mask = mask;
}

/* Returns the group's heap for a time, created if it is new. */
static Heap *
heap_get(DpBucketBulk *bulk, Series *group, int64 time)
{
	Heap *heap;

	for (heap = group->heaps; heap != NULL; heap = heap->next)
	{
		if (time >= heap->start && time < heap->end)
			return heap;
	}
	heap = MemoryContextAllocZero(bulk->heaps_context, sizeof(Heap));
	heap->series = group;
	heap->start = dp_bucket_rel_start(bulk->rel, time);
	heap->end = dp_bucket_rel_end(bulk->rel, heap->start);
	heap->next = group->heaps;
	group->heaps = heap;
	bulk->used += sizeof(Heap);
	return heap;
}

/* Room for more rows. */
static void
heap_grow(DpBucketBulk *bulk, Heap *heap)
{
	int max = heap->max == 0 ? 4 : heap->max * 2;
	Size size = sizeof(Datum) * bulk->width * (Size) max;

	heap->rows = heap->rows == NULL
					 ? MemoryContextAllocExtended(bulk->heaps_context, size, MCXT_ALLOC_HUGE)
					 : repalloc_huge(heap->rows, size);
	bulk->used += sizeof(Datum) * bulk->width * (Size) (max - heap->max);
	heap->max = max;
}

/* Copy what a value refers to; returns where it is among the heap's bytes. */
static Datum
heap_copy(DpBucketBulk *bulk, Heap *heap, Datum value, int16 typlen)
{
	Size size;
	Size at = MAXALIGN(heap->nbytes);
	void *from = DatumGetPointer(value);

	if (typlen == -1 && VARATT_IS_EXTERNAL(from))
		from = detoast_external_attr((struct varlena *) from);
	size = datumGetSize(PointerGetDatum(from), false, typlen);
	if (at + size > heap->maxbytes)
	{
		Size max = Max(Max(heap->maxbytes * 2, 256), at + size);

		heap->bytes = heap->bytes == NULL
						  ? MemoryContextAllocExtended(bulk->heaps_context, max, MCXT_ALLOC_HUGE)
						  : repalloc_huge(heap->bytes, max);
		bulk->used += max - heap->maxbytes;
		heap->maxbytes = max;
	}
	memcpy(heap->bytes + at, from, size);
	heap->nbytes = at + size;
	if (from != DatumGetPointer(value))
		pfree(from);
	return (Datum) at;
}

/* A row of a heap, as columns of a bucket. */
static void
heap_row(DpBucketBulk *bulk, Heap *heap, int n, int64 *time, Datum *values, bool *nulls)
{
	DpBucketRel *rel = bulk->rel;
	const Datum *row = heap->rows + (Size) n * bulk->width;
	const uint64 *bits;
	int i;

	*time = DatumGetInt64(*row++);
	bits = (const uint64 *) (row + rel->nvalues);
	for (i = 0; i < rel->nvalues; i++)
	{
		nulls[i] = (bits[i / 64] >> (i % 64)) & 1;
		values[i] = nulls[i]                   ? (Datum) 0
					: rel->values[i]->typbyval ? row[i]
											   : PointerGetDatum(heap->bytes + (Size) row[i]);
	}
}

/* Packs the rows of a heap into a bucket for the sort. */
static void
heap_pack(DpBucketBulk *bulk, Heap *heap)
{
	DpBucketBuilder *builder = dp_bucket_store_builder(bulk->store);
	struct varlena *bucket;
	int i;

	if (heap->n == 0)
		return;
	for (i = 0; i < heap->n; i++)
	{
		int64 time;

		heap_row(bulk, heap, i, &time, bulk->values, bulk->nulls);
		dp_bucket_append(builder, time, bulk->values, bulk->nulls);
	}
	bucket = dp_bucket_builder_finish(builder);
	sort_put(bulk, heap->series->key, heap->start, bucket);
	pfree(bucket);
}

/* Adds a bucket to the sort. */
static void
sort_put(DpBucketBulk *bulk, const DpBucketGroup *group, int64 start, struct varlena *bucket)
{
	DpBucketRel *rel = bulk->rel;
	TupleTableSlot *slot;
	int i;

	sort_begin(bulk);
	slot = bulk->sort_slot;
	ExecClearTuple(slot);
	for (i = 0; i < rel->ngroups; i++)
	{
		slot->tts_values[i] = group->values[i];
		slot->tts_isnull[i] = group->nulls[i];
	}
	slot->tts_values[rel->ngroups] = Int64GetDatum(start);
	slot->tts_isnull[rel->ngroups] = false;
	slot->tts_values[rel->ngroups + 1] = Int64GetDatum(bulk->npacked++);
	slot->tts_isnull[rel->ngroups + 1] = false;
	slot->tts_values[rel->ngroups + 2] = PointerGetDatum(bucket);
	slot->tts_isnull[rel->ngroups + 2] = false;
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(bulk->sort, slot);
	ExecClearTuple(slot);
}

/* The rows of a heap wait like single ones. */
static void
heap_wait(DpBucketBulk *bulk, Heap *heap)
{
	DpBucketRel *rel = bulk->rel;
	int n;
	int i;

	for (i = 0; i < rel->ngroups; i++)
	{
		bulk->row_values[rel->groups[i] - rel->columns] = heap->series->key->values[i];
		bulk->row_nulls[rel->groups[i] - rel->columns] = heap->series->key->nulls[i];
	}
	for (n = 0; n < heap->n; n++)
	{
		int64 time;

		heap_row(bulk, heap, n, &time, bulk->values, bulk->nulls);
		bulk->row_values[bulk->time_at] = Int64GetDatum(time);
		bulk->row_nulls[bulk->time_at] = false;
		for (i = 0; i < rel->nvalues; i++)
		{
			bulk->row_values[bulk->value_at[i]] = bulk->values[i];
			bulk->row_nulls[bulk->value_at[i]] = bulk->nulls[i];
		}
		dp_bucket_recent_add(bulk->store, bulk->row_values, bulk->row_nulls);
	}
}

/* Frees the memory of a heap; its struct is freed with the others. */
static void
heap_free(DpBucketBulk *bulk, Heap *heap)
{
	bulk->used -= sizeof(Datum) * bulk->width * (Size) heap->max + heap->maxbytes;
	if (heap->rows != NULL)
		pfree(heap->rows);
	if (heap->bytes != NULL)
		pfree(heap->bytes);
	heap->rows = NULL;
	heap->bytes = NULL;
	heap->n = heap->max = 0;
	heap->nbytes = heap->maxbytes = 0;
}

/* Pack all heaps, or all but the newest of each group. */
static void
heaps_pack(DpBucketBulk *bulk, bool all)
{
	Series *group;

	for (group = bulk->first_group; group != NULL; group = group->later)
	{
		Heap *heap = group->heaps;
		Heap *newest = NULL;
		Heap *kept = NULL;

		CHECK_FOR_INTERRUPTS();
		if (!all)
		{
			Heap *h;

			for (h = heap; h != NULL; h = h->next)
			{
				if (newest == NULL || h->start > newest->start)
					newest = h;
			}
		}
		while (heap != NULL)
		{
			Heap *next = heap->next;

			if (heap == newest)
				kept = heap;
			else
			{
				heap_pack(bulk, heap);
				heap_free(bulk, heap);
				bulk->used -= sizeof(Heap);
				pfree(heap);
			}
			heap = next;
		}
		group->heaps = group->last = kept;
		if (kept != NULL)
			kept->next = NULL;
	}
}

/* The sort order: group, start, order of input. */
static void
sort_begin(DpBucketBulk *bulk)
{
	DpBucketRel *rel = bulk->rel;
	int nkeys = rel->ngroups + 2;
	AttrNumber *attnums;
	Oid *operators;
	Oid *collations;
	bool *nulls_first;
	MemoryContext old;
	int i;

	if (bulk->sort != NULL)
		return;
	old = MemoryContextSwitchTo(bulk->context);
	bulk->sort_desc = CreateTemplateTupleDesc(rel->ngroups + 3);
	attnums = palloc(sizeof(AttrNumber) * nkeys);
	operators = palloc(sizeof(Oid) * nkeys);
	collations = palloc(sizeof(Oid) * nkeys);
	nulls_first = palloc0(sizeof(bool) * nkeys);
	for (i = 0; i < nkeys - 1; i++)
	{
		const DpBucketColumn *column = i < rel->ngroups ? rel->groups[i] : rel->time;

		TupleDescInitEntry(bulk->sort_desc, i + 1, NULL, column->type, column->typmod, 0);
		TupleDescInitEntryCollation(bulk->sort_desc, i + 1, column->collation);
		attnums[i] = i + 1;
		operators[i] = lookup_type_cache(column->type, TYPECACHE_LT_OPR)->lt_opr;
		collations[i] = column->collation;
		if (!OidIsValid(operators[i]))
			elog(ERROR, "column \"%s\" has no order", column->name);
	}
	TupleDescInitEntry(bulk->sort_desc, rel->ngroups + 2, NULL, INT8OID, -1, 0);
	attnums[i] = i + 1;
	operators[i] = Int8LessOperator;
	collations[i] = InvalidOid;
	TupleDescInitEntry(bulk->sort_desc, rel->ngroups + 3, NULL, BYTEAOID, -1, 0);
	bulk->sort = tuplesort_begin_heap(bulk->sort_desc, nkeys, attnums, operators, collations,
									  nulls_first, maintenance_work_mem, NULL, TUPLESORT_NONE);
	bulk->sort_slot = MakeSingleTupleTableSlot(bulk->sort_desc, &TTSOpsMinimalTuple);
	MemoryContextSwitchTo(old);
}

/* Write what the sort gives. */
static void
sort_write(DpBucketBulk *bulk)
{
	DpBucketRel *rel = bulk->rel;
	TupleTableSlot *slot = bulk->sort_slot;
	MemoryContext run_context;
	MemoryContext old = CurrentMemoryContext;
	DpBucketGroup group;
	int64 start = 0;
	Datum *buckets = NULL;
	int n = 0;
	int max = 0;
	int64 count = 0;

	if (bulk->sort == NULL)
		return;
	bulk->store->packed_many = true;
	(void) dp_bucket_store_snapshot(bulk->store, true);
	run_context =
		AllocSetContextCreate(bulk->context, "docpatterns bucket run", ALLOCSET_DEFAULT_SIZES);
	tuplesort_performsort(bulk->sort);
	for (;;)
	{
		bool more = tuplesort_gettupleslot(bulk->sort, true, false, slot, NULL);
		DpBucketGroup here;
		int64 here_start = 0;
		int i;

		CHECK_FOR_INTERRUPTS();
		if (more)
		{
			slot_getallattrs(slot);
			for (i = 0; i < rel->ngroups; i++)
			{
				here.values[i] = slot->tts_values[i];
				here.nulls[i] = slot->tts_isnull[i];
			}
			here_start = DatumGetInt64(slot->tts_values[rel->ngroups]);
		}
		if (n > 0 && (!more || here_start != start || !dp_bucket_group_same(rel, &group, &here)))
		{
			bool last = !more || !dp_bucket_group_same(rel, &group, &here);

			MemoryContextSwitchTo(run_context);
			run_write(bulk, &group, start, buckets, n, count, last);
			MemoryContextSwitchTo(old);
			MemoryContextReset(run_context);
			n = max = 0;
			count = 0;
		}
		if (!more)
			break;

		MemoryContextSwitchTo(run_context);
		if (n == 0)
		{
			dp_bucket_group_copy(rel, &here, &group);
			start = here_start;
		}
		if (n == max)
		{
			max = max == 0 ? 8 : max * 2;
			buckets =
				max == 8 ? palloc(sizeof(Datum) * max) : repalloc(buckets, sizeof(Datum) * max);
		}
		buckets[n] = datumCopy(slot->tts_values[rel->ngroups + 2], false, -1);
		{
			DpBucketReader *reader = dp_bucket_store_reader(bulk->store);

			dp_bucket_open(reader, buckets[n]);
			count += reader->count;
		}
		n++;
		MemoryContextSwitchTo(old);
	}
	tuplesort_end(bulk->sort);
	ExecDropSingleTupleTableSlot(bulk->sort_slot);
	bulk->sort = NULL;
	bulk->sort_slot = NULL;
	dp_bucket_packed_flush(bulk->store);
	bulk->store->packed_many = false;
	MemoryContextDelete(run_context);
}

/* Writes a statement's measurements of a group and span. */
static void
run_write(DpBucketBulk *bulk, const DpBucketGroup *group, int64 start, Datum *buckets, int n,
		  int64 count, bool last)
{
	int i;

	if (last && !bulk->whole && count < LEAST_OF_LAST_SPAN && count < bulk->rel->max_count)
	{
		for (i = 0; i < n; i++)
			bucket_wait(bulk, group, buckets[i]);
		return;
	}
	dp_bucket_add_new(bulk->store, group, start, buckets, n);
}

/* The rows of a bucket wait like single ones. */
static void
bucket_wait(DpBucketBulk *bulk, const DpBucketGroup *group, Datum bucket)
{
	DpBucketRel *rel = bulk->rel;
	DpBucketReader *reader = dp_bucket_store_reader(bulk->store);
	int64 *times;
	Datum **values = palloc(sizeof(Datum *) * Max(rel->nvalues, 1));
	bool **nulls = palloc(sizeof(bool *) * Max(rel->nvalues, 1));
	int i;
	int row;

	dp_bucket_open(reader, bucket);
	times = palloc(sizeof(int64) * reader->count);
	dp_bucket_times(reader, times);
	for (i = 0; i < rel->nvalues; i++)
	{
		values[i] = palloc(sizeof(Datum) * reader->count);
		nulls[i] = palloc(sizeof(bool) * reader->count);
		dp_bucket_datums(reader, i, rel->values[i]->type, rel->values[i]->typmod, values[i],
						 nulls[i]);
	}
	for (i = 0; i < rel->ngroups; i++)
	{
		bulk->row_values[rel->groups[i] - rel->columns] = group->values[i];
		bulk->row_nulls[rel->groups[i] - rel->columns] = group->nulls[i];
	}
	for (row = 0; row < reader->count; row++)
	{
		bulk->row_values[bulk->time_at] = Int64GetDatum(times[row]);
		bulk->row_nulls[bulk->time_at] = false;
		for (i = 0; i < rel->nvalues; i++)
		{
			bulk->row_values[bulk->value_at[i]] = values[i][row];
			bulk->row_nulls[bulk->value_at[i]] = nulls[i][row];
		}
		dp_bucket_recent_add(bulk->store, bulk->row_values, bulk->row_nulls);
	}
	dp_bucket_recent_flush(bulk->store);
}
