/*
 * analyze_items.c
 *		From the collected items of one path to its statistics.
 *
 * The items are sorted, equal ones form a group, and for each group the documents and occurrences
 * are counted.  Groups that are clearly more common than the others become the most common items;
 * the next ones are kept by hash if they occur in more than one document; and all but the most
 * common form the histogram.
 */
#include "postgres.h"

#include <math.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"

#include "index/stats/analyze.h"

/*
 * Most common items that are larger are left out; strings in histograms are cut to so many bytes.
 */
#define ITEM_MAX_BYTES 256
#define BOUND_MAX_BYTES 64

/* Items that are kept by their hash, for each one that is kept as a value */
#define TAIL_FACTOR 10

typedef struct ItemGroup
{
	int64 first; /* position of its first item */
	int32 documents;
	int32 occurrences;
	bool common; /* one of the most common items */
} ItemGroup;

static inline int
item_compare(const DpSampleItem *a, const DpSampleItem *b)
{
	int result;

	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	else
	{
		DpValue x = { a->data, a->len, a->type };
		DpValue y = { b->data, b->len, b->type };

		result = dp_value_compare(&x, &y);
	}
	if (result == 0)
		result = (a->document > b->document) - (a->document < b->document);
	return result;
}

#define ST_SORT sort_items
#define ST_ELEMENT_TYPE DpSampleItem
#define ST_COMPARE(a, b) item_compare(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

static void summarize_counts(const DpSamplePath *sample, DpPathStats *path);
static void summarize_lengths(DpSamplePath *sample, DpPathStats *path);
static int make_groups(const DpSamplePath *sample, ItemGroup *groups);
static int count_common(const ItemGroup *groups, int *order, int ngroups, int target,
						double documents, double total, double pairs);
static void keep_common(const DpSamplePath *sample, DpPathStats *path, ItemGroup *groups,
						const int *order, int ncommon, double documents, Size *bytes);
static void keep_tail(const DpSamplePath *sample, DpPathStats *path, const ItemGroup *groups,
					  const int *order, int ngroups, int most, double documents, Size *bytes);
static void keep_histogram(const DpSamplePath *sample, DpPathStats *path, const ItemGroup *groups,
						   int ngroups, int target, double documents, Size *bytes);

/* An item as a value. */
static inline DpValue
item_value(const DpSampleItem *item)
{
	DpValue value = { item->data, item->len, item->type };

	return value;
}

static int
compare_int32(const void *a, const void *b)
{
	int32 x = *(const int32 *) a;
	int32 y = *(const int32 *) b;

	return (x > y) - (x < y);
}

/* Groups with many documents first, then in their order. */
static int
compare_groups(const void *a, const void *b, void *arg)
{
	const ItemGroup *groups = arg;
	int x = *(const int *) a;
	int y = *(const int *) b;

	if (groups[x].documents != groups[y].documents)
		return groups[x].documents > groups[y].documents ? -1 : 1;
	return (x > y) - (x < y);
}

void
dp_sample_sort(const DpSamplePath *sample)
{
	for (int64 i = 0; i < sample->nitems; i++)
	{
		DpValue value = item_value(&sample->items[i]);

		sample->items[i].order = dp_value_abbreviate(&value);
	}
	sort_items(sample->items, sample->nitems);
}

bool
dp_sample_same(const DpSampleItem *a, const DpSampleItem *b)
{
	DpValue x = item_value(a);
	DpValue y = item_value(b);

	return a->order == b->order && dp_value_compare(&x, &y) == 0;
}

void
dp_sample_summarize(DpSamplePath *sample, DpPathStats *path, int target, Size maxbytes,
					double documents, double total)
{
	ItemGroup *groups;
	int *order;
	int ngroups;
	int ncommon;
	int once = 0;
	double pairs = 0; /* of document and different item */
	Size bytes = maxbytes;

	if (sample->nlengths > 0)
		summarize_lengths(sample, path);
	if (path->multiple)
		summarize_counts(sample, path);
	/* if the room did not do, these are the items of the first documents only */
	if (sample->full)
		documents = Max(sample->last + 1, 1);
	if (sample->nitems == 0)
		return;

	dp_sample_sort(sample);
	groups = MemoryContextAllocHuge(CurrentMemoryContext, sample->nitems * sizeof(ItemGroup));
	ngroups = make_groups(sample, groups);
	order = MemoryContextAllocHuge(CurrentMemoryContext, ngroups * sizeof(int));
	for (int i = 0; i < ngroups; i++)
	{
		pairs += groups[i].documents;
		once += groups[i].documents == 1;
		order[i] = i;
	}
	qsort_arg(order, ngroups, sizeof(int), compare_groups, groups);

	/*
	 * How many different ones there are in the whole table: all that were seen
	 * if all documents were; a multiple of the documents if none was seen
	 * twice; else the estimator of Haas and Stokes that the other columns of
	 * the database get too.
	 */
	if (documents >= total)
		path->n_distinct = ngroups;
	else if (once == ngroups)
		path->n_distinct = -pairs / documents;
	else
	{
		double all = pairs * total / documents;
		double seen = ngroups;
		double estimate = pairs * seen / ((pairs - once) + once * pairs / all);

		path->n_distinct = Min(Max(rint(estimate), seen), all);
	}
	/* what makes up more than a tenth of the documents is taken to grow with them */
	if (path->n_distinct > 0.1 * total)
		path->n_distinct = -path->n_distinct / total;

	ncommon = count_common(groups, order, ngroups, target, documents, total, pairs);
	keep_common(sample, path, groups, order, ncommon, documents, &bytes);
	keep_tail(sample, path, groups, order, ngroups, target * TAIL_FACTOR, documents, &bytes);
	keep_histogram(sample, path, groups, ngroups, target, documents, &bytes);
	pfree(order);
	pfree(groups);
}

/*
 * The groups of equal items, in their order.  Returns their number.
 */
static int
make_groups(const DpSamplePath *sample, ItemGroup *groups)
{
	int n = 0;

	for (int64 i = 0; i < sample->nitems; i++)
	{
		const DpSampleItem *item = &sample->items[i];
		const DpSampleItem *before = item - 1;

		if (i == 0 || !dp_sample_same(before, item))
		{
			groups[n].first = i;
			groups[n].documents = 1;
			groups[n].occurrences = 1;
			groups[n].common = false;
			n++;
		}
		else
		{
			groups[n - 1].occurrences++;
			groups[n - 1].documents += item->document != before->document;
		}
	}
	return n;
}

/*
 * How many groups, from the one with the most documents on, are worth keeping
 * as most common: all if they are few and none was seen only once, or those
 * whose frequency stands out from the average of the ones that are not kept by
 * more than chance.
 */
static int
count_common(const ItemGroup *groups, int *order, int ngroups, int target, double documents,
			 double total, double pairs)
{
	int n = Min(ngroups, target);
	double kept = 0;

	while (n > 0 && groups[order[n - 1]].documents < 2)
		n--;
	if (documents >= total || n == ngroups)
		return n;
	for (int i = 0; i < n; i++)
		kept += groups[order[i]].documents;
	for (; n > 0; n--)
	{
		double count = groups[order[n - 1]].documents;
		double others = ngroups - n;
		double share; /* of documents that have one of the others, on average */
		double deviation;

		share = others > 0 ? (pairs - kept) / others / documents : 0;
		share = Min(share, 1.0);
		deviation =
			sqrt(documents * share * (1.0 - share) * (total - documents) / Max(total - 1.0, 1.0));
		if (count > share * documents + 2 * deviation + 0.5)
			break;
		kept -= count;
	}
	return n;
}

/*
 * The most common items.
 */
static void
keep_common(const DpSamplePath *sample, DpPathStats *path, ItemGroup *groups, const int *order,
			int ncommon, double documents, Size *bytes)
{
	DpValue *values = palloc(Max(ncommon, 1) * sizeof(DpValue));
	float4 *docs = palloc(Max(ncommon, 1) * sizeof(float4));
	float4 *items = palloc(Max(ncommon, 1) * sizeof(float4));
	int n = 0;

	for (int i = 0; i < ncommon; i++)
	{
		ItemGroup *group = &groups[order[i]];
		const DpSampleItem *item = &sample->items[group->first];
		Size need = item->len + 16;

		if (item->len > ITEM_MAX_BYTES || need > *bytes / 2)
			continue;
		*bytes -= need;
		group->common = true;
		values[n] = item_value(item);
		docs[n] = group->documents / documents;
		items[n] = group->occurrences / documents;
		n++;
	}
	path->nmcv = n;
	path->mcv = values;
	path->mcv_docs = docs;
	path->mcv_items = path->multiple ? items : docs;
}

typedef struct TailEntry
{
	uint32 hash;
	float4 docs;
} TailEntry;

static int
compare_tail(const void *a, const void *b)
{
	uint32 x = ((const TailEntry *) a)->hash;
	uint32 y = ((const TailEntry *) b)->hash;

	return (x > y) - (x < y);
}

/*
 * The items that follow the most common ones, if more than one document has
 * them, by hash.
 */
static void
keep_tail(const DpSamplePath *sample, DpPathStats *path, const ItemGroup *groups, const int *order,
		  int ngroups, int most, double documents, Size *bytes)
{
	int room = Min(most, (int) Min(*bytes / 2 / sizeof(TailEntry), PG_INT32_MAX));
	TailEntry *entries = palloc(Max(room, 1) * sizeof(TailEntry));
	uint32 *hashes;
	float4 *docs;
	int n = 0;

	for (int i = 0; i < ngroups && n < room; i++)
	{
		const ItemGroup *group = &groups[order[i]];
		DpValue value = item_value(&sample->items[group->first]);

		if (group->documents < 2)
			break;
		if (group->common)
			continue;
		entries[n].hash = (uint32) dp_value_hash(&value, 0);
		entries[n].docs = group->documents / documents;
		n++;
	}
	qsort(entries, n, sizeof(TailEntry), compare_tail);
	hashes = palloc(Max(n, 1) * sizeof(uint32));
	docs = palloc(Max(n, 1) * sizeof(float4));
	for (int i = 0; i < n; i++)
	{
		hashes[i] = entries[i].hash;
		docs[i] = entries[i].docs;
	}
	pfree(entries);
	path->ntail = n;
	path->tail = hashes;
	path->tail_docs = docs;
	*bytes -= n * 8;
}

/* An item as a bound: long strings are cut, at the end of a character. */
static DpValue
bound_value(const DpSampleItem *item)
{
	DpValue value = item_value(item);
	uint8 *bytes;
	int len;

	if (value.len <= BOUND_MAX_BYTES + 5 ||
		(value.type != DP_TYPE_STRING && value.type != DP_TYPE_SYMBOL &&
		 value.type != DP_TYPE_CODE))
		return value;
	len = pg_encoding_mbcliplen(PG_UTF8, DP_STRING_DATA(&value), DP_STRING_LEN(&value),
								BOUND_MAX_BYTES);
	bytes = palloc(len + 5);
	dp_put_int32(bytes, len + 1);
	memcpy(bytes + 4, DP_STRING_DATA(&value), len);
	bytes[len + 4] = 0;
	value.data = bytes;
	value.len = len + 5;
	return value;
}

/*
 * The histogram of all items that are not among the most common: bounds with equally many pairs of
 * document and distinct item between them.
 */
static void
keep_histogram(const DpSamplePath *sample, DpPathStats *path, const ItemGroup *groups, int ngroups,
			   int target, double documents, Size *bytes)
{
	double docs = 0;
	double items = 0;
	double before = 0;
	int rest = 0;
	int nbounds;
	int n = 0;
	DpValue *bounds;

	for (int i = 0; i < ngroups; i++)
		if (!groups[i].common)
		{
			rest++;
			docs += groups[i].documents;
			items += groups[i].occurrences;
		}
	path->rest_docs = docs / documents;
	path->rest_items = items / documents;
	nbounds = Min(rest, target + 1);
	if (nbounds < 2)
		return;

	bounds = palloc(nbounds * sizeof(DpValue));
	for (int i = 0; i < ngroups; i++)
	{
		const DpSampleItem *item = &sample->items[groups[i].first];

		if (groups[i].common)
			continue;
		before += groups[i].documents;
		while (n < nbounds && floor(n * (docs - 1) / (nbounds - 1)) < before)
		{
			DpValue bound = bound_value(item);

			if (bound.len > ITEM_MAX_BYTES || bound.len + 16 > *bytes)
				return;
			*bytes -= bound.len + 16;
			bounds[n++] = bound;
		}
	}
	path->nhist = n;
	path->hist = bounds;
}

/* The minimum, deciles and maximum of sorted values. */
static void
take_quantiles(const int32 *sorted, int64 n, float4 *quantiles)
{
	for (int i = 0; i < DP_STATS_QUANTILES; i++)
		quantiles[i] = sorted[i * (n - 1) / (DP_STATS_QUANTILES - 1)];
}

/*
 * How many items the documents have that have any.  The items are still in the
 * order of the documents.
 */
static void
summarize_counts(const DpSamplePath *sample, DpPathStats *path)
{
	int32 *counts =
		MemoryContextAllocHuge(CurrentMemoryContext, Max(sample->nitems, 1) * sizeof(int32));
	int64 n = 0;

	for (int64 i = 0; i < sample->nitems; i++)
	{
		if (i == 0 || sample->items[i].document != sample->items[i - 1].document)
			counts[n++] = 0;
		counts[n - 1]++;
	}
	if (n > 0)
	{
		qsort(counts, n, sizeof(int32), compare_int32);
		take_quantiles(counts, n, path->counts);
	}
	pfree(counts);
}

/*
 * The lengths of the arrays: quantiles, and the most common ones.
 */
static void
summarize_lengths(DpSamplePath *sample, DpPathStats *path)
{
	int64 start = 0;

	qsort(sample->lengths, sample->nlengths, sizeof(int32), compare_int32);
	take_quantiles(sample->lengths, sample->nlengths, path->lengths);
	for (int64 i = 1; i <= sample->nlengths; i++)
	{
		float4 share;
		int at;

		if (i < sample->nlengths && sample->lengths[i] == sample->lengths[start])
			continue;
		share = (double) (i - start) / sample->nlengths;
		/* into its place among those so far, the least common falling out */
		for (at = path->nlengths; at > 0 && path->length_shares[at - 1] < share; at--)
			if (at < DP_STATS_LENGTHS)
			{
				path->common_lengths[at] = path->common_lengths[at - 1];
				path->length_shares[at] = path->length_shares[at - 1];
			}
		if (at < DP_STATS_LENGTHS)
		{
			path->common_lengths[at] = sample->lengths[start];
			path->length_shares[at] = share;
			path->nlengths = Min(path->nlengths + 1, DP_STATS_LENGTHS);
		}
		start = i;
	}
}
