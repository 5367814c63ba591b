/*
 * stats.c
 *		Statistics of columns, packed by ANALYZE and unpacked once per backend.
 *
 * Unpacked statistics are cached by relation, column and stainherit, while the tuple of
 * pg_statistic is the same version of the same row.  Outdated ones are freed at the end of the
 * transaction, so users need not release them.  The rows of extended statistics have no relation
 * and are not cached.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "port/pg_bitutils.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "index/stats/stats.h"

/* Columns whose statistics are kept beyond a transaction, and their bytes */
#define STATS_KEEP_COLUMNS 64
#define STATS_KEEP_BYTES (32 * 1024 * 1024)

typedef struct StatsEntry
{
	struct StatsEntry *next;
	MemoryContext context;
	Oid relation;
	int16 column;
	bool inherited;
	TransactionId xmin; /* the version of the row */
	ItemPointerData tid;
	uint32 hash; /* of the row's key in the syscache */
	bool stale;
	DpStats *stats; /* NULL: none */
} StatsEntry;

/* Positions of paths by the hash of their key; -1 is empty. */
struct DpStatsIndex
{
	uint32 mask;
	int32 slots[FLEXIBLE_ARRAY_MEMBER];
};

static StatsEntry *entries = NULL;
static bool callbacks_registered = false;

static int find_slot(HeapTuple tuple);
static DpStats *stats_unpack(HeapTuple tuple);
static void path_make_key(DpPathStats *path);
static void stats_make_index(DpStats *stats);
static void stats_invalidate(Datum arg, int cacheid, uint32 hashvalue);
static void stats_end_transaction(XactEvent event, void *arg);

const DpStats *
dp_stats_of_tuple(HeapTuple tuple)
{
	Form_pg_statistic form = (Form_pg_statistic) GETSTRUCT(tuple);
	StatsEntry *entry;
	MemoryContext context;
	MemoryContext old;

	if (find_slot(tuple) < 0)
		return NULL;
	/* of an expression in extended statistics: nothing in it identifies the expression */
	if (!OidIsValid(form->starelid))
		return stats_unpack(tuple);

	for (entry = entries; entry != NULL; entry = entry->next)
		if (entry->relation == form->starelid && entry->column == form->staattnum &&
			entry->inherited == form->stainherit && !entry->stale)
		{
			if (entry->xmin == HeapTupleHeaderGetRawXmin(tuple->t_data) &&
				ItemPointerEquals(&entry->tid, &tuple->t_self))
				return entry->stats;
			entry->stale = true;
		}

	if (!callbacks_registered)
	{
		CacheRegisterSyscacheCallback(STATRELATTINH, stats_invalidate, (Datum) 0);
		RegisterXactCallback(stats_end_transaction, NULL);
		callbacks_registered = true;
	}

	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns statistics",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	entry = palloc0(sizeof(StatsEntry));
	entry->context = context;
	entry->relation = form->starelid;
	entry->column = form->staattnum;
	entry->inherited = form->stainherit;
	entry->xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
	entry->tid = tuple->t_self;
	entry->hash =
		GetSysCacheHashValue3(STATRELATTINH, ObjectIdGetDatum(form->starelid),
							  Int16GetDatum(form->staattnum), BoolGetDatum(form->stainherit));
	entry->stats = stats_unpack(tuple);
	MemoryContextSwitchTo(old);

	/* nothing can fail from here on, so the cache owns it */
	MemoryContextSetParent(context, CacheMemoryContext);
	entry->next = entries;
	entries = entry;
	return entry->stats;
}

/* The slot with our statistics, counted from 0; -1 if none. */
static int
find_slot(HeapTuple tuple)
{
	Form_pg_statistic form = (Form_pg_statistic) GETSTRUCT(tuple);

	for (int i = 0; i < STATISTIC_NUM_SLOTS; i++)
		if ((&form->stakind1)[i] == DP_STATISTIC_KIND)
			return i;
	return -1;
}

/*
 * The statistics of the slot, in the current memory context.  NULL if they are
 * of another version, or are not what ANALYZE would have written.
 */
static DpStats *
stats_unpack(HeapTuple tuple)
{
	AttStatsSlot slot;
	DpStats *stats;
	bool empty; /* documents without any path */

	(void) SysCacheGetAttr(STATRELATTINH, tuple, Anum_pg_statistic_stavalues1 + find_slot(tuple),
						   &empty);
	if (!get_attstatsslot(&slot, tuple, DP_STATISTIC_KIND, InvalidOid,
						  (empty ? 0 : ATTSTATSSLOT_VALUES) | ATTSTATSSLOT_NUMBERS))
		return NULL;
	if ((!empty && slot.valuetype != BYTEAOID) || slot.nnumbers < DP_STATS_NUMBERS ||
		slot.numbers[DP_STATS_VERSION] != DP_STATISTIC_VERSION ||
		!(slot.numbers[DP_STATS_DOCUMENTS] >= 1))
		return NULL;

	stats = palloc0(sizeof(DpStats));
	stats->documents = slot.numbers[DP_STATS_DOCUMENTS];
	stats->complete = slot.numbers[DP_STATS_COMPLETE] != 0;
	stats->lowest = slot.numbers[DP_STATS_LOWEST];
	stats->npaths = slot.nvalues;
	stats->paths = palloc(sizeof(DpPathStats) * Max(slot.nvalues, 1));
	for (int i = 0; i < slot.nvalues; i++)
	{
		struct varlena *bytes = (struct varlena *) DatumGetPointer(slot.values[i]);

		if (!dp_stats_unpack((const uint8 *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes),
							 &stats->paths[i]))
			return NULL;
		path_make_key(&stats->paths[i]);
	}
	stats_make_index(stats);
	return stats;
}

/* The key of a path, from how it is written. */
static void
path_make_key(DpPathStats *path)
{
	DpPath *parsed = dp_path_parse(path->text, path->textlen);
	char *key;
	uint32 len = 0;

	for (int i = 0; i < parsed->nsteps; i++)
		len += parsed->steps[i].namelen + 1;
	path->key = key = palloc(len);
	path->keylen = len;
	for (int i = 0; i < parsed->nsteps; i++)
	{
		memcpy(key, parsed->steps[i].name, parsed->steps[i].namelen + 1);
		key += parsed->steps[i].namelen + 1;
	}
	pfree(parsed);
}

static void
stats_make_index(DpStats *stats)
{
	uint32 size = pg_nextpower2_32(Max(stats->npaths * 2, 4));
	struct DpStatsIndex *index =
		palloc(offsetof(struct DpStatsIndex, slots) + size * sizeof(int32));

	index->mask = size - 1;
	memset(index->slots, -1, size * sizeof(int32));
	for (int i = 0; i < stats->npaths; i++)
	{
		uint32 at = hash_bytes((const unsigned char *) stats->paths[i].key, stats->paths[i].keylen);

		while (index->slots[at & index->mask] >= 0)
			at++;
		index->slots[at & index->mask] = i;
	}
	stats->index = index;
}

const DpPathStats *
dp_stats_find(const DpStats *stats, const char *key, uint32 keylen)
{
	const struct DpStatsIndex *index = stats->index;
	uint32 at = hash_bytes((const unsigned char *) key, keylen);

	for (; index->slots[at & index->mask] >= 0; at++)
	{
		const DpPathStats *path = &stats->paths[index->slots[at & index->mask]];

		if (path->keylen == keylen && memcmp(path->key, key, keylen) == 0)
			return path;
	}
	return NULL;
}

/* A row of pg_statistic changed, or (0) any may have. */
static void
stats_invalidate(Datum arg, int cacheid, uint32 hashvalue)
{
	for (StatsEntry *entry = entries; entry != NULL; entry = entry->next)
		if (hashvalue == 0 || entry->hash == hashvalue)
			entry->stale = true;
}

/*
 * Frees what is stale, and the oldest beyond what is kept.
 */
static void
stats_end_transaction(XactEvent event, void *arg)
{
	StatsEntry **link = &entries;
	Size bytes = 0;
	int n = 0;

	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE &&
		event != XACT_EVENT_PARALLEL_COMMIT && event != XACT_EVENT_PARALLEL_ABORT)
		return;
	while (*link != NULL)
	{
		StatsEntry *entry = *link;

		if (!entry->stale)
		{
			n++;
			bytes += MemoryContextMemAllocated(entry->context, true);
		}
		if (entry->stale || n > STATS_KEEP_COLUMNS || (bytes > STATS_KEEP_BYTES && n > 1))
		{
			*link = entry->next;
			MemoryContextDelete(entry->context);
		}
		else
			link = &entry->next;
	}
}
