/*
 * cost.c
 *		The size of a relation of measurements, and the number of buckets that a
 *		scan visits.
 *
 * Sizes are those of the underlying tables, which autovacuum analyzes.  The number
 * of measurements in a bucket is found by reading some, and cached until the table
 * has grown or shrunk by a half.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/nbtree.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "patterns/bucket/scan.h"

/* Buckets to look at */
#define SAMPLE 32

typedef struct Sampled
{
	Oid packed;   /* hash key */
	double pages; /* of the table when it was sampled */
	double rows_per_bucket;
} Sampled;

static HTAB *sampled = NULL;

static double sample_rows(DpBucketRel *rel, Relation packed, double pages);
static double
key_selectivity(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned, DpBucketKey *key);
static double distinct_groups(DpBucketRel *rel, DpBucketColumn *column, double tuples);

/*
 * The sizes of the tables.
 */
void
dp_bucket_sizes(DpBucketRel *rel, DpBucketSizes *sizes)
{
	Relation packed = table_open(rel->packed, AccessShareLock);
	Relation recent = table_open(rel->recent, AccessShareLock);
	BlockNumber pages;
	double visible;

	sizes->packed_pages = sizes->recent_pages = 0;
	sizes->packed_tuples = sizes->recent_tuples = 0;
	if (RelationGetNumberOfBlocks(packed) > 0)
	{
		estimate_rel_size(packed, NULL, &pages, &sizes->packed_tuples, &visible);
		sizes->packed_pages = pages;
	}
	if (RelationGetNumberOfBlocks(recent) > 0)
	{
		estimate_rel_size(recent, NULL, &pages, &sizes->recent_tuples, &visible);
		sizes->recent_pages = pages;
	}
	sizes->rows_per_bucket = sample_rows(rel, packed, sizes->packed_pages);
	table_close(packed, NoLock);
	table_close(recent, NoLock);
}

/* Returns the number of measurements in a bucket. Skips damaged ones: the others can be read. */
static double
sample_rows(DpBucketRel *rel, Relation packed, double pages)
{
	Sampled *entry;
	bool found;
	TableScanDesc scan;
	TupleTableSlot *slot;
	MemoryContext context;
	MemoryContext old;
	double rows = 0;
	int n = 0;

	if (sampled == NULL)
	{
		HASHCTL ctl;

		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(Sampled);
		ctl.hcxt = CacheMemoryContext;
		sampled = hash_create("docpatterns bucket sizes", 16, &ctl,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	entry = hash_search(sampled, &rel->packed, HASH_FIND, NULL);
	if (entry != NULL && pages >= entry->pages * 0.5 && pages <= entry->pages * 1.5)
		return entry->rows_per_bucket;
	if (pages == 0 || !ActiveSnapshotSet())
		return Min(rel->max_count, 60);

	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns bucket sample",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	slot = table_slot_create(packed, NULL);
	scan = table_beginscan(packed, GetActiveSnapshot(), 0, NULL);
	while (n < SAMPLE && table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool isnull;
		Datum data = slot_getattr(slot, rel->packed_data, &isnull);

		if (isnull)
			continue;
		rows += dp_bucket_count_said(data);
		n++;
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	if (n == 0)
		return Min(rel->max_count, 60);

	entry = hash_search(sampled, &rel->packed, HASH_ENTER, &found);
	entry->pages = pages;
	entry->rows_per_bucket = Max(rows / n, 1);
	return entry->rows_per_bucket;
}

/*
 * Which part of the buckets keys on group and time leave.
 */
double
dp_bucket_selectivity(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned, List *keys)
{
	double result = 1.0;
	List *times = NIL;
	ListCell *lc;

	if (keys == planned->keys && planned->selectivity >= 0)
		return planned->selectivity;

	foreach(lc, keys)
	{
		DpBucketKey *key = lfirst(lc);

		if (key->column->role == DP_BUCKET_GROUP)
			result *= key_selectivity(root, baserel, planned, key);
		else if (key->column->role == DP_BUCKET_TIME)
			times = lappend(times, key->rinfo);
	}
	if (times != NIL)
		result *= clauselist_selectivity(root, times, baserel->relid, JOIN_INNER, NULL);
	CLAMP_PROBABILITY(result);
	if (keys == planned->keys)
		planned->selectivity = result;
	return result;
}

/* Does the same for one key on the group. */
static double
key_selectivity(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned, DpBucketKey *key)
{
	bool known = SearchSysCacheExists3(STATRELATTINH, ObjectIdGetDatum(planned->rel->relid),
									   Int16GetDatum(key->column->attnum), BoolGetDatum(false));

	/* autovacuum does not analyze a foreign table, but the underlying table */
	if (!known && key->strategy == BTEqualStrategyNumber && !key->is_array)
	{
		double n = distinct_groups(planned->rel, key->column, planned->sizes.packed_tuples);

		if (n > 0)
			return 1.0 / n;
	}
	return clause_selectivity(root, (Node *) key->rinfo, baserel->relid, JOIN_INNER, NULL);
}

/* Returns the number of values of a group column in the table of buckets; 0 if unknown. */
static double
distinct_groups(DpBucketRel *rel, DpBucketColumn *column, double tuples)
{
	HeapTuple tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rel->packed),
									  Int16GetDatum(column->packed), BoolGetDatum(false));
	double n;

	if (!HeapTupleIsValid(tuple))
		return 0;
	n = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	return n < 0 ? -n * tuples : n;
}
