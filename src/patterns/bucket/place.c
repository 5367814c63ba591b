/*
 * place.c
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

typedef struct Place
{
	bool packed;
	ItemPointerData tid; /* of a bucket; of a waiting measurement only the block counts */
} Place;

struct DpPlaces
{
	EState *estate;
	Oid relid;
	MemoryContextCallback callback;
	MemoryContext context;
	Place *places;
	BlockNumber n;
	BlockNumber capacity;
	HTAB *numbers; /* by relation and TID */
	struct DpPlaces *next;
};

typedef struct PlaceNumber
{
	uint64 place; /* hash key: packed, block and, of buckets, offset */
	BlockNumber number;
} PlaceNumber;

/* Those of the queries that are running in this backend */
static struct DpPlaces *all = NULL;

static void places_forget(void *arg);

/*
 * Returns the list of a query and relation; created if create, else NULL without one. It lives as
 * long as the query.
 */
struct DpPlaces *
dp_places_of(EState *estate, Oid relid, bool create)
{
	struct DpPlaces *p;
	HASHCTL ctl;

	for (p = all; p != NULL; p = p->next)
	{
		if (p->estate == estate && p->relid == relid)
			return p;
	}
	if (!create)
		return NULL;
	p = MemoryContextAllocZero(estate->es_query_cxt, sizeof(struct DpPlaces));
	p->estate = estate;
	p->relid = relid;
	p->context = estate->es_query_cxt;
	p->capacity = 256;
	p->places = MemoryContextAlloc(p->context, sizeof(Place) * p->capacity);
	ctl.keysize = sizeof(uint64);
	ctl.entrysize = sizeof(PlaceNumber);
	ctl.hcxt = p->context;
	p->numbers =
		hash_create("docpatterns places", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
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
dp_place_add(struct DpPlaces *places, bool packed, const ItemPointerData *tid)
{
	uint64 place = ((uint64) ItemPointerGetBlockNumber(tid) << 17) |
				   (packed ? ((uint64) ItemPointerGetOffsetNumber(tid) << 1) | 1 : 0);
	PlaceNumber *known;
	bool found;

	if (places->n > 0)
	{
		const Place *last = &places->places[places->n - 1];

		if (last->packed == packed &&
			ItemPointerGetBlockNumber(&last->tid) == ItemPointerGetBlockNumber(tid) &&
			(!packed || ItemPointerGetOffsetNumber(&last->tid) == ItemPointerGetOffsetNumber(tid)))
			return places->n - 1;
	}
	known = hash_search(places->numbers, &place, HASH_ENTER, &found);
	if (found)
		return known->number;
	known->number = places->n;
	if (places->n == places->capacity)
	{
		if (places->capacity >= MaxBlockNumber / 2)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("statement reads too many buckets")));
		places->capacity *= 2;
		places->places = repalloc_huge(places->places, sizeof(Place) * (Size) places->capacity);
	}
	places->places[places->n].packed = packed;
	places->places[places->n].tid = *tid;
	return places->n++;
}

/* Returns the origin for a ctid. */
void
dp_bucket_place(EState *estate, Oid relid, const ItemPointerData *ctid, DpBucketPlace *place)
{
	struct DpPlaces *places = dp_places_of(estate, relid, false);
	BlockNumber ordinal = ItemPointerGetBlockNumberNoCheck(ctid);
	const Place *found;

	if (places == NULL || ordinal >= places->n)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the ctid (%u,%u) was not read by this statement", ordinal,
							   ItemPointerGetOffsetNumberNoCheck(ctid))));
	found = &places->places[ordinal];
	place->packed = found->packed;
	if (found->packed)
	{
		place->tid = found->tid;
		place->position = ItemPointerGetOffsetNumberNoCheck(ctid) - 1;
	}
	else
	{
		ItemPointerSet(&place->tid, ItemPointerGetBlockNumberNoCheck(&found->tid),
					   ItemPointerGetOffsetNumberNoCheck(ctid));
		place->position = 0;
	}
}

/* The query has ended. */
static void
places_forget(void *arg)
{
	struct DpPlaces **p;

	for (p = &all; *p != NULL; p = &(*p)->next)
	{
		if (*p == arg)
		{
			*p = (*p)->next;
			return;
		}
	}
}
