/*
 * origin.c
 *		The origins of the rows that a scan returned.
 *
 * A row of a bucket has no ctid, and six bytes are too few for the bucket's ctid and
 * the row's position in it.  So the query keeps a list of the buckets, and of the
 * pages of waiting measurements, that it has seen: the block number of a row's ctid
 * is a number in that list, the offset is the position (from 1), or the offset in
 * the page.  A bucket or page keeps its number in all scans of the query, so that a
 * measurement has one ctid throughout the query.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "patterns/bucket/scan.h"

typedef struct Origin
{
	bool packed;
	ItemPointerData tid; /* of a bucket; of a waiting measurement only the block counts */
} Origin;

struct DpBucketOrigins
{
	EState *estate;
	Oid relid;
	MemoryContextCallback callback;
	MemoryContext context;
	Origin *origins;
	BlockNumber n;
	BlockNumber capacity;
	HTAB *numbers; /* by relation and TID */
	struct DpBucketOrigins *next;
};

typedef struct OriginNumber
{
	uint64 origin; /* hash key: packed, block and, of buckets, offset */
	BlockNumber number;
} OriginNumber;

/* Those of the queries that are running in this backend */
static struct DpBucketOrigins *all = NULL;

static void places_forget(void *arg);

/*
 * Returns the list of a query and relation; created if create, else NULL without one. It lives as
 * long as the query.
 */
struct DpBucketOrigins *
dp_bucket_origins_of(EState *estate, Oid relid, bool create)
{
	struct DpBucketOrigins *p;
	HASHCTL ctl;

	for (p = all; p != NULL; p = p->next)
	{
		if (p->estate == estate && p->relid == relid)
			return p;
	}
	if (!create)
		return NULL;
	p = MemoryContextAllocZero(estate->es_query_cxt, sizeof(struct DpBucketOrigins));
	p->estate = estate;
	p->relid = relid;
	p->context = estate->es_query_cxt;
	p->capacity = 256;
	p->origins = MemoryContextAlloc(p->context, sizeof(Origin) * p->capacity);
	ctl.keysize = sizeof(uint64);
	ctl.entrysize = sizeof(OriginNumber);
	ctl.hcxt = p->context;
	p->numbers =
		hash_create("docpatterns origins", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	p->callback.func = places_forget;
	p->callback.arg = p;
	MemoryContextRegisterResetCallback(p->context, &p->callback);
	p->next = all;
	all = p;
	return p;
}

/*
 * Number of a bucket, or of the page of a waiting measurement.
 */
BlockNumber
dp_bucket_origin_add(struct DpBucketOrigins *origins, bool packed, const ItemPointerData *tid)
{
	uint64 origin = ((uint64) ItemPointerGetBlockNumber(tid) << 17) |
					(packed ? ((uint64) ItemPointerGetOffsetNumber(tid) << 1) | 1 : 0);
	OriginNumber *known;
	bool found;

	if (origins->n > 0)
	{
		const Origin *last = &origins->origins[origins->n - 1];

		if (last->packed == packed &&
			ItemPointerGetBlockNumber(&last->tid) == ItemPointerGetBlockNumber(tid) &&
			(!packed || ItemPointerGetOffsetNumber(&last->tid) == ItemPointerGetOffsetNumber(tid)))
			return origins->n - 1;
	}
	known = hash_search(origins->numbers, &origin, HASH_ENTER, &found);
	if (found)
		return known->number;
	known->number = origins->n;
	if (origins->n == origins->capacity)
	{
		if (origins->capacity >= MaxBlockNumber / 2)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("statement reads too many buckets")));
		origins->capacity *= 2;
		origins->origins =
			repalloc_huge(origins->origins, sizeof(Origin) * (Size) origins->capacity);
	}
	origins->origins[origins->n].packed = packed;
	origins->origins[origins->n].tid = *tid;
	return origins->n++;
}

/* Returns the origin for a ctid. */
void
dp_bucket_origin(EState *estate, Oid relid, const ItemPointerData *ctid, DpBucketOrigin *origin)
{
	struct DpBucketOrigins *origins = dp_bucket_origins_of(estate, relid, false);
	BlockNumber ordinal = ItemPointerGetBlockNumberNoCheck(ctid);
	const Origin *found;

	if (origins == NULL || ordinal >= origins->n)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the ctid (%u,%u) was not read by this statement", ordinal,
							   ItemPointerGetOffsetNumberNoCheck(ctid))));
	found = &origins->origins[ordinal];
	origin->packed = found->packed;
	if (found->packed)
	{
		origin->tid = found->tid;
		origin->position = ItemPointerGetOffsetNumberNoCheck(ctid) - 1;
	}
	else
	{
		ItemPointerSet(&origin->tid, ItemPointerGetBlockNumberNoCheck(&found->tid),
					   ItemPointerGetOffsetNumberNoCheck(ctid));
		origin->position = 0;
	}
}

/* The query has ended. */
static void
places_forget(void *arg)
{
	struct DpBucketOrigins **p;

	for (p = &all; *p != NULL; p = &(*p)->next)
	{
		if (*p == arg)
		{
			*p = (*p)->next;
			return;
		}
	}
}
