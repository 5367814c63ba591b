/*
 * analyze.c
 *		ANALYZE of columns of documents: chooses documents of the sample, chooses paths, and
 *		fills the slot of pg_statistic.
 *
 * Its cost is bounded: of each document at most DOCUMENT_MAX_BYTES are read, of all together at
 * most a number of bytes that grows with the statistics target (beyond it, documents are skipped
 * evenly), and out-of-line data take at most maintenance_work_mem.
 */
#include "postgres.h"

#include <math.h>

#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "commands/vacuum.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/fetch.h"
#include "index/stats/analyze.h"

/* The maximum number of bytes read of one document. */
#define DOCUMENT_MAX_BYTES (256 * 1024)

/*
 * For each unit of the statistics target: bytes of documents, paths with values, all paths, bytes
 * of statistics
 */
#define BYTES_PER_TARGET (640 * 1024)
#define PATHS_PER_TARGET 2
#define ALL_PATHS_PER_TARGET 10
#define PACKED_PER_TARGET (6 * 1024)

/* Bounds of the same */
#define MIN_BYTES (8 * 1024 * 1024)
#define MAX_BYTES (1024 * 1024 * 1024)
#define MAX_PATHS 1000
#define MAX_ALL_PATHS 4000
#define MIN_PACKED (64 * 1024)
#define MAX_PACKED (4 * 1024 * 1024)

/* Paths that are remembered while documents are walked, for each path that may be kept */
#define TREE_FACTOR 5
#define TREE_MIN 4096

/* Items that are collected at a time */
#define ITEMS_AT_ONCE (1024 * 1024)

typedef struct Sample
{
	DpSampleDocument *documents;
	int n;
	int notnull;  /* in the sample that the server took */
	double total; /* documents of the table that are not null, by its estimate */
	int target;
} Sample;

static void compute_document_stats(VacAttrStatsP stats, AnalyzeAttrFetchFunc fetchfunc,
								   int samplerows, double totalrows);
static void choose_documents(Sample *sample, VacAttrStatsP stats, AnalyzeAttrFetchFunc fetchfunc,
							 int samplerows);
static void fetch_document(Datum stored, DpSampleDocument *document);
static double count_different(const Sample *sample, double totalrows);
static void collect_paths(VacAttrStatsP stats, const Sample *sample);
static void path_shares(const DpPathNode *node, const Sample *sample, DpPathStats *path);
static int collect_items(DpPathTree *tree, const Sample *sample, DpPathNode **nodes, int n);

/*
 * bson_typanalyze(internal) -> boolean: sets up ANALYZE of a column.
 */
DP_FUNCTION(dp_bson_typanalyze);
Datum
dp_bson_typanalyze(PG_FUNCTION_ARGS)
{
	VacAttrStats *stats = (VacAttrStats *) PG_GETARG_POINTER(0);
	int target = dp_analyze_target(stats);

	stats->compute_stats = compute_document_stats;
	/* as many rows as the server takes for its own types */
	stats->minrows = 300 * target;
	PG_RETURN_BOOL(true);
}

/*
 * Computes the statistics of a column from the sample.
 */
static void
compute_document_stats(VacAttrStatsP stats, AnalyzeAttrFetchFunc fetchfunc, int samplerows,
					   double totalrows)
{
	Sample sample = { 0 };

	if (samplerows <= 0)
		return;
	sample.target = dp_analyze_target(stats);
	choose_documents(&sample, stats, fetchfunc, samplerows);

	stats->stats_valid = true;
	stats->stanullfrac = (double) (samplerows - sample.notnull) / samplerows;
	if (sample.notnull == 0)
	{
		stats->stawidth = 0;
		stats->stadistinct = 0.0;
		return;
	}
	sample.total = Max(totalrows * sample.notnull / samplerows, sample.notnull);
	stats->stadistinct = count_different(&sample, Max(totalrows, samplerows));
	collect_paths(stats, &sample);
}

/*
 * Reads the documents of the sample, evenly fewer of them if all would be more
 * bytes than allowed.  Counts those that are not null and their width.
 */
static void
choose_documents(Sample *sample, VacAttrStatsP stats, AnalyzeAttrFetchFunc fetchfunc,
				 int samplerows)
{
	double bytes = 0;   /* to be read */
	double outside = 0; /* those that are compressed or out of line */
	double width = 0;
	double share = 1.0;
	double due = 0;
	double allowed = (double) sample->target * BYTES_PER_TARGET;

	for (int i = 0; i < samplerows; i++)
	{
		bool isnull;
		Datum stored = fetchfunc(stats, i, &isnull);
		struct varlena *v;
		uint32 size;

		dp_vacuum_delay_point();
		if (isnull)
			continue;
		v = (struct varlena *) DatumGetPointer(stored);
		size = Min(dp_datum_size(stored), DOCUMENT_MAX_BYTES);
		sample->notnull++;
		width += VARSIZE_ANY(v);
		bytes += size;
		if (VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v))
			outside += size;
	}
	if (sample->notnull == 0)
		return;
	stats->stawidth = width / sample->notnull;

	allowed = Max(Min(allowed, MAX_BYTES), MIN_BYTES);
	if (bytes > allowed)
		share = allowed / bytes;
	allowed = Max(maintenance_work_mem * 1024.0, MIN_BYTES);
	if (outside * share > allowed)
		share = allowed / outside;
	share = Min(share, (double) SAMPLE_MAX_DOCUMENTS / sample->notnull);

	sample->documents =
		palloc_extended(sample->notnull * sizeof(DpSampleDocument), MCXT_ALLOC_HUGE);
	for (int i = 0; i < samplerows; i++)
	{
		bool isnull;
		Datum stored = fetchfunc(stats, i, &isnull);

		if (isnull)
			continue;
		due += share;
		if (due < 1.0 && !(i == samplerows - 1 && sample->n == 0))
			continue;
		due -= 1.0;
		dp_vacuum_delay_point();
		fetch_document(stored, &sample->documents[sample->n++]);
	}
}

/* Fetches a stored document, up to the limit. */
static void
fetch_document(Datum stored, DpSampleDocument *document)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(stored);

	document->size = dp_datum_size(stored);
	if (VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v))
	{
		if (document->size > DOCUMENT_MAX_BYTES)
			v = detoast_attr_slice(v, 0, DOCUMENT_MAX_BYTES);
		else
			v = detoast_attr(v);
	}
	document->data = (const uint8 *) VARDATA_ANY(v);
	document->avail = Min(VARSIZE_ANY_EXHDR(v), Min(document->size, DOCUMENT_MAX_BYTES));
}

static int
compare_uint64(const void *a, const void *b)
{
	uint64 x = *(const uint64 *) a;
	uint64 y = *(const uint64 *) b;

	return (x > y) - (x < y);
}

/*
 * The number of distinct documents of the table, in the form of stadistinct.  Documents are
 * distinct if their bytes differ.
 */
static double
count_different(const Sample *sample, double totalrows)
{
	uint64 *hashes = palloc_extended(sample->n * sizeof(uint64), MCXT_ALLOC_HUGE);
	double different = 0;
	double once = 0;
	double n = sample->n;
	double estimate;

	for (int i = 0; i < sample->n; i++)
		hashes[i] = hash_bytes_extended(sample->documents[i].data, sample->documents[i].avail,
										sample->documents[i].size);
	qsort(hashes, sample->n, sizeof(uint64), compare_uint64);
	for (int i = 0; i < sample->n; i++)
	{
		bool first = i == 0 || hashes[i] != hashes[i - 1];
		bool last = i == sample->n - 1 || hashes[i] != hashes[i + 1];

		different += first;
		once += first && last;
	}
	pfree(hashes);

	if (once == different)
		return -sample->total / totalrows;
	if (n >= sample->total)
		estimate = different;
	else
		estimate = n * different / ((n - once) + once * n / sample->total);
	estimate = floor(Max(Min(estimate, sample->total), different) + 0.5);
	return estimate > 0.1 * totalrows ? -estimate / totalrows : estimate;
}

/*
 * The statistics of the paths, and the slot that they go into.
 */
static void
collect_paths(VacAttrStatsP stats, const Sample *sample)
{
	int most = Min(sample->target * PATHS_PER_TARGET, MAX_PATHS);
	int all = Min(sample->target * ALL_PATHS_PER_TARGET, MAX_ALL_PATHS);
	DpPathTree *tree = dp_path_tree_create(Max(all * TREE_FACTOR, TREE_MIN));
	DpPathNode **nodes;
	bool complete;
	int n;
	float4 *numbers;
	Datum *values;
	Size left = Min(Max(sample->target * PACKED_PER_TARGET, MIN_PACKED), MAX_PACKED);
	MemoryContext scratch;
	MemoryContext old;

	for (int i = 0; i < sample->n; i++)
	{
		dp_vacuum_delay_point();
		dp_path_tree_count(tree, &sample->documents[i]);
	}
	n = dp_path_tree_nodes(tree, &nodes, &complete);
	complete = complete && n <= all;
	n = Min(n, all);
	most = Min(n, most);

	old = MemoryContextSwitchTo(stats->anl_context);
	numbers = palloc(DP_STATS_NUMBERS * sizeof(float4));
	values = palloc(Max(n, 1) * sizeof(Datum));
	MemoryContextSwitchTo(old);

	scratch =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns items", ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < n;)
	{
		int upto = n;

		/* as many paths at a time as there is room for their items */
		MemoryContextSwitchTo(scratch);
		if (i < most)
			upto = i + collect_items(tree, sample, nodes + i, most - i);
		for (; i < upto; i++)
		{
			DpPathStats path = { 0 };
			struct varlena *packed;

			dp_vacuum_delay_point();
			path_shares(nodes[i], sample, &path);
			if (nodes[i]->sample != NULL)
			{
				dp_sample_summarize(nodes[i]->sample, &path, sample->target, left / 8, sample->n,
									sample->total);
				nodes[i]->sample = NULL;
			}
			MemoryContextSwitchTo(stats->anl_context);
			packed = dp_stats_pack(&path);
			MemoryContextSwitchTo(scratch);
			values[i] = PointerGetDatum(packed);
			left -= Min(left, VARSIZE(packed));
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(scratch);
	}
	MemoryContextDelete(scratch);

	numbers[DP_STATS_VERSION] = DP_STATISTIC_VERSION;
	numbers[DP_STATS_DOCUMENTS] = sample->n;
	numbers[DP_STATS_COMPLETE] = complete ? 1 : 0;
	numbers[DP_STATS_LOWEST] = n > 0 ? (double) nodes[n - 1]->reached / sample->n : 0;
	stats->stakind[0] = DP_STATISTIC_KIND;
	stats->staop[0] = InvalidOid;
	stats->stacoll[0] = InvalidOid;
	stats->stanumbers[0] = numbers;
	stats->numnumbers[0] = DP_STATS_NUMBERS;
	stats->stavalues[0] = values;
	stats->numvalues[0] = n;
	stats->statypid[0] = BYTEAOID;
	stats->statyplen[0] = -1;
	stats->statypbyval[0] = false;
	stats->statypalign[0] = TYPALIGN_INT;
}

/* The counts at a path, as shares of the documents. */
static void
path_shares(const DpPathNode *node, const Sample *sample, DpPathStats *path)
{
	double n = sample->n;
	double barren = 0; /* documents in which no branch leads here or to nothing */

	for (const DpPathNode *up = node->parent; up->parent != NULL; up = up->parent)
		barren += up->barren;
	dp_path_node_names(node, path);
	path->reached = node->reached / n;
	path->direct = node->direct / n;
	path->scalar = node->scalar / n;
	path->nullish = Max(node->nullish + n - node->reached - barren, 0) / n;
	path->barren = (node->barren + barren) / n;
	path->arrays = node->arrays / n;
	path->item_docs = node->item_docs / n;
	for (int i = 0; i < DP_STATS_TYPES; i++)
	{
		path->types[i] = node->types[i] / n;
		path->direct_types[i] = node->direct_types[i] / n;
	}
	path->values = node->values / n;
	path->documents = node->documents / n;
	path->elements = node->elements / n;
	path->items = node->items / n;
	path->multiple = node->multiple;
}

/*
 * Collects the items of as many of the n nodes as there is room for, at least
 * one, in the current memory context.  Returns how many.
 */
static int
collect_items(DpPathTree *tree, const Sample *sample, DpPathNode **nodes, int n)
{
	int64 room = ITEMS_AT_ONCE;
	int taken;

	for (taken = 0; taken < n; taken++)
	{
		DpPathNode *node = nodes[taken];
		int64 items = Min(node->items, ITEMS_AT_ONCE);
		int64 arrays = Min(node->narrays, ITEMS_AT_ONCE);
		DpSamplePath *path;

		if (taken > 0 && items + arrays > room)
			break;
		room -= items + arrays;
		path = palloc0(sizeof(DpSamplePath));
		path->room = items;
		path->items = palloc_extended(Max(items, 1) * sizeof(DpSampleItem), MCXT_ALLOC_HUGE);
		path->lengths_room = arrays;
		path->lengths = palloc_extended(Max(arrays, 1) * sizeof(int32), MCXT_ALLOC_HUGE);
		node->sample = path;
	}
	for (int i = 0; i < sample->n; i++)
	{
		dp_vacuum_delay_point();
		dp_path_tree_collect(tree, &sample->documents[i], i);
	}
	return taken;
}
