/*
 * analyze.c
 *		ANALYZE of a relation of measurements.
 *
 * All measurements, packed or waiting, are sampled with the same probability.  Of most buckets only
 * the header is read, for its count.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/sampling.h"
#include "utils/snapmgr.h"

#include "patterns/bucket/scan.h"

typedef struct Sample
{
	DpBucketRel *rel;
	TupleDesc desc;
	HeapTuple *rows;
	int target;
	int n;
	double seen; /* measurements so far */
	double skip; /* how many to skip before the next one */
	ReservoirStateData state;
	Datum *values;
	bool *nulls;
	MemoryContext context; /* of an unpacked bucket */
} Sample;

static bool
analyze_relation(Relation relation, AcquireSampleRowsFunc *func, BlockNumber *totalpages);
static int acquire_rows(Relation relation, int elevel, HeapTuple *rows, int targrows,
						double *totalrows, double *totaldeadrows);
static void sample_packed(Sample *sample, Relation packed);
static void sample_bucket(Sample *sample, DpBucketReader *reader, TupleTableSlot *slot);
static void sample_recent(Sample *sample, Relation recent);
static bool sample_wants(Sample *sample, double remaining, double *at);
static void sample_take(Sample *sample);

/* The callback. */
void
dp_bucket_analyze_routine(FdwRoutine *routine)
{
	routine->AnalyzeForeignTable = analyze_relation;
}

/* Estimates the size of the relation and returns the function that samples it. */
static bool
analyze_relation(Relation relation, AcquireSampleRowsFunc *func, BlockNumber *totalpages)
{
	DpBucketRel *rel = dp_bucket_rel(RelationGetRelid(relation), false);
	Relation packed = table_open(rel->packed, AccessShareLock);
	Relation recent = table_open(rel->recent, AccessShareLock);

	*totalpages = RelationGetNumberOfBlocks(packed) + RelationGetNumberOfBlocks(recent);
	*func = acquire_rows;
	table_close(packed, NoLock);
	table_close(recent, NoLock);
	return true;
}

/* Takes the sample. */
static int
acquire_rows(Relation relation, int elevel, HeapTuple *rows, int targrows, double *totalrows,
			 double *totaldeadrows)
{
	DpBucketRel *rel = dp_bucket_rel(RelationGetRelid(relation), false);
	Relation packed = table_open(rel->packed, AccessShareLock);
	Relation recent = table_open(rel->recent, AccessShareLock);
	Sample sample = { 0 };

	sample.rel = rel;
	sample.desc = RelationGetDescr(relation);
	sample.rows = rows;
	sample.target = targrows;
	sample.values = palloc0(sizeof(Datum) * Max(rel->natts, 1));
	sample.nulls = palloc(sizeof(bool) * Max(rel->natts, 1));
	memset(sample.nulls, true, sizeof(bool) * rel->natts);
	sample.context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns bucket sample",
										   ALLOCSET_DEFAULT_SIZES);
	reservoir_init_selection_state(&sample.state, targrows);

	sample_packed(&sample, packed);
	sample_recent(&sample, recent);
	MemoryContextDelete(sample.context);
	table_close(packed, NoLock);
	table_close(recent, NoLock);

	*totalrows = sample.seen;
	*totaldeadrows = 0;
	ereport(elevel, (errmsg("\"%s\": %.0f measurements, %d of them in the sample",
							RelationGetRelationName(relation), sample.seen, sample.n)));
	return sample.n;
}

/* Pass over all buckets. */
static void
sample_packed(Sample *sample, Relation packed)
{
	TupleTableSlot *slot = table_slot_create(packed, NULL);
	TableScanDesc scan = table_beginscan(packed, GetActiveSnapshot(), 0, NULL);
	DpBucketReader reader;

	dp_bucket_reader_init(&reader, CurrentMemoryContext);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool isnull;
		Datum data = slot_getattr(slot, sample->rel->packed_data, &isnull);

		CHECK_FOR_INTERRUPTS();
		if (isnull)
			continue;
		dp_bucket_open(&reader, data);
		sample_bucket(sample, &reader, slot);
	}
	dp_bucket_reader_free(&reader);
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
}

/* Samples measurements of a bucket. */
static void
sample_bucket(Sample *sample, DpBucketReader *reader, TupleTableSlot *slot)
{
	DpBucketRel *rel = sample->rel;
	int count = reader->count;
	Datum **values = NULL;
	bool **nulls = NULL;
	int64 *times = NULL;
	double first = sample->seen;
	double at;
	int i;

	while (sample_wants(sample, first + count - sample->seen, &at))
	{
		int row = (int) (at - first);

		if (values == NULL)
		{
			MemoryContext old;

			MemoryContextReset(sample->context);
			old = MemoryContextSwitchTo(sample->context);
			values = palloc0(sizeof(Datum *) * Max(rel->nvalues, 1));
			nulls = palloc0(sizeof(bool *) * Max(rel->nvalues, 1));
			for (i = 0; i < rel->nvalues && i < reader->ncolumns; i++)
			{
				values[i] = palloc(sizeof(Datum) * count);
				nulls[i] = palloc(sizeof(bool) * count);
				dp_bucket_datums(reader, i, rel->values[i]->type, rel->values[i]->typmod, values[i],
								 nulls[i]);
			}
			if (rel->time != NULL)
			{
				times = palloc(sizeof(int64) * count);
				dp_bucket_times(reader, times);
			}
			MemoryContextSwitchTo(old);
		}
		for (i = 0; i < rel->ncolumns; i++)
		{
			const DpBucketColumn *column = &rel->columns[i];
			int att = column->attnum - 1;

			switch (column->role)
			{
				case DP_BUCKET_GROUP:
					sample->values[att] = slot_getattr(slot, column->packed, &sample->nulls[att]);
					break;
				case DP_BUCKET_TIME:
					sample->values[att] = Int64GetDatum(times[row]);
					sample->nulls[att] = false;
					break;
				case DP_BUCKET_VALUE:
					sample->nulls[att] =
						values[column->number] == NULL || nulls[column->number][row];
					if (!sample->nulls[att])
						sample->values[att] = values[column->number][row];
					break;
			}
		}
		sample_take(sample);
	}
}

/* Pass over what waits. */
static void
sample_recent(Sample *sample, Relation recent)
{
	TupleTableSlot *slot = table_slot_create(recent, NULL);
	TableScanDesc scan = table_beginscan(recent, GetActiveSnapshot(), 0, NULL);
	DpBucketRel *rel = sample->rel;
	double at;
	int i;

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		if (!sample_wants(sample, 1, &at))
			continue;
		for (i = 0; i < rel->ncolumns; i++)
			sample->values[rel->columns[i].attnum - 1] =
				slot_getattr(slot, rel->columns[i].recent,
							 &sample->nulls[rel->columns[i].attnum - 1]);
		sample_take(sample);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * Whether one of the next measurements is to be taken, and which.  If not, all
 * of them are passed over.
 */
static bool
sample_wants(Sample *sample, double remaining, double *at)
{
	if (remaining < 1)
		return false;
	if (sample->n == sample->target)
	{
		if (sample->skip < 0)
			sample->skip = reservoir_get_next_S(&sample->state, sample->seen, sample->target);
		if (sample->skip >= remaining)
		{
			sample->skip -= remaining;
			sample->seen += remaining;
			return false;
		}
		sample->seen += sample->skip;
	}
	*at = sample->seen;
	sample->seen += 1;
	return true;
}

/* Adds the current measurement to the sample, or replaces another one if it is full. */
static void
sample_take(Sample *sample)
{
	HeapTuple tuple = heap_form_tuple(sample->desc, sample->values, sample->nulls);
	int i = sample->n;

	if (sample->n < sample->target)
		sample->n++;
	else
	{
		i = (int) (sample->target * sampler_random_fract(&sample->state.randstate));
		heap_freetuple(sample->rows[i]);
	}
	sample->rows[i] = tuple;
	sample->skip = -1;
}
