/*
 * selectivity_path.c
 *		Estimates from the statistics of one path: how many of its items equal a value, are in a
 *		range or satisfy a test, and how many documents have one.
 */
#include "postgres.h"

#include <math.h>

#include "utils/selfuncs.h"

#include "bson/number.h"
#include "index/stats/selectivity_path.h"

void
dp_share_add(DpShare *share, const DpShare *other)
{
	share->docs += other->docs;
	share->items += other->items;
	share->top = Max(share->top, other->top);
}

/* Adds the most common item at a position to the set. */
static inline void
share_add_common(DpShare *share, const DpPathStats *path, int i)
{
	share->docs += path->mcv_docs[i];
	share->items += path->mcv_items[i];
	share->top = Max(share->top, path->mcv_docs[i]);
}

double
dp_path_distinct(const DpEstimator *estimator, const DpPathStats *path)
{
	double n = path->n_distinct < 0 ? -path->n_distinct * estimator->documents : path->n_distinct;

	return Max(n, 1.0);
}

/* The share of documents that have a value of the same class. */
static double
class_share(const DpPathStats *path, uint8 type)
{
	double share = 0;

	for (int i = 0; i < DP_STATS_TYPES; i++)
		if (path->types[i] > 0 && dp_type_class[dp_stats_type_of_number(i)] == dp_type_class[type])
			share += path->types[i];
	return Min(share, 1.0);
}

/* ---------------------------------------------------------------- equality */

DpShare
dp_path_share_equal(const DpEstimator *estimator, const DpPathStats *path, const DpValue *value)
{
	DpShare share = { 0, 0, 0 };
	double least = 0.5 / Max(estimator->documents, 1.0);
	double different;
	double docs;
	uint32 hash;
	int low = 0;
	int high = path->ntail;

	for (int i = 0; i < path->nmcv; i++)
		if (dp_value_compare(&path->mcv[i], value) == 0)
		{
			share_add_common(&share, path, i);
			return share;
		}

	docs = class_share(path, value->type);
	if (docs <= 0)
	{
		share.docs = share.items = share.top = least;
		return share;
	}
	if (path->n_distinct == 0)
		docs = docs / Max(1.0 / DEFAULT_EQ_SEL, 1.0); /* items were not collected */
	else
	{
		hash = (uint32) dp_value_hash(value, 0);
		while (low < high)
		{
			int middle = (low + high) / 2;

			if (path->tail[middle] < hash)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < path->ntail && path->tail[low] == hash)
			docs = path->tail_docs[low];
		else
		{
			different = dp_path_distinct(estimator, path) - path->nmcv - path->ntail;
			docs = Min(docs, Max(path->rest_docs - path->tail_total, 0) / Max(different, 1.0));
			if (path->nmcv > 0)
				docs = Min(docs, path->mcv_docs[path->nmcv - 1]);
		}
	}
	share.docs = share.top = Max(docs, least);
	share.items = share.docs * (path->rest_docs > 0 ? path->rest_items / path->rest_docs : 1.0);
	return share;
}

/* ---------------------------------------------------------------- ranges */

/* Whether a value comes before the place. */
static bool
limit_is_above(const DpLimit *limit, const DpValue *value)
{
	int class = dp_type_class[value->type];
	int result;

	if (class != (int) limit->class)
		return class < (int) limit->class;
	if (limit->edge != 0)
		return limit->edge > 0;
	result = dp_value_compare(value, &limit->value);
	return limit->equal_below ? result <= 0 : result < 0;
}

/*
 * Up to eight bytes of a string from a position on, as a number.
 */
static double
bytes_as_number(const uint8 *bytes, uint32 len, uint32 from)
{
	double result = 0;
	double unit = 1;

	for (uint32 i = from; i < len && i < from + 8; i++)
	{
		unit /= 256.0;
		result += bytes[i] * unit;
	}
	return result;
}

/*
 * The bytes by which values of some classes are ordered; NULL for others.
 */
static const uint8 *
ordered_bytes(const DpValue *value, uint32 *len)
{
	switch (dp_type_class[value->type])
	{
		case DP_CLASS_STRING:
		case DP_CLASS_CODE:
			*len = DP_STRING_LEN(value);
			return (const uint8 *) DP_STRING_DATA(value);
		case DP_CLASS_OBJECTID:
			*len = value->len;
			return value->data;
		case DP_CLASS_BINARY:
			*len = value->len - 4;
			return value->data + 4;
		default:
			return NULL;
	}
}

/* The position of a value between two bounds of a histogram, from 0 to 1. */
static double
position_between(const DpValue *low, const DpValue *high, const DpValue *value)
{
	int class = dp_type_class[value->type];
	double a;
	double b;
	double x;
	double result;

	if (dp_type_class[low->type] != class || dp_type_class[high->type] != class)
		return 0.5;
	switch (class)
	{
		case DP_CLASS_NUMBER:
			a = dp_number_approximate(low);
			b = dp_number_approximate(high);
			x = dp_number_approximate(value);
			break;
		case DP_CLASS_DATE:
			a = dp_get_int64(low->data);
			b = dp_get_int64(high->data);
			x = dp_get_int64(value->data);
			break;
		case DP_CLASS_TIMESTAMP:
			a = (uint64) dp_get_int64(low->data);
			b = (uint64) dp_get_int64(high->data);
			x = (uint64) dp_get_int64(value->data);
			break;
		default:
		{
			uint32 alen;
			uint32 blen;
			uint32 xlen;
			const uint8 *abytes = ordered_bytes(low, &alen);
			const uint8 *bbytes = ordered_bytes(high, &blen);
			const uint8 *xbytes = ordered_bytes(value, &xlen);
			uint32 same = 0;

			if (abytes == NULL || bbytes == NULL || xbytes == NULL)
				return 0.5;
			while (same < alen && same < blen && abytes[same] == bbytes[same])
				same++;
			if (xlen < same || memcmp(xbytes, abytes, same) != 0)
				return 0.5;
			a = bytes_as_number(abytes, alen, same);
			b = bytes_as_number(bbytes, blen, same);
			x = bytes_as_number(xbytes, xlen, same);
			break;
		}
	}
	if (!(b > a))
		return 0.5;
	result = (x - a) / (b - a);
	if (isnan(result))
		return 0.5;
	return Min(Max(result, 0.0), 1.0);
}

/*
 * The share of the histogram that comes before a place.
 */
static double
histogram_below(const DpPathStats *path, const DpLimit *limit)
{
	int low = 0;
	int high = path->nhist;
	double part;

	while (low < high)
	{
		int middle = (low + high) / 2;

		if (limit_is_above(limit, &path->hist[middle]))
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0.0;
	if (low == path->nhist)
		return 1.0;
	part = limit->edge != 0
			   ? 0.5
			   : position_between(&path->hist[low - 1], &path->hist[low], &limit->value);
	return (low - 1 + part) / (path->nhist - 1);
}

DpShare
dp_path_share_range(const DpPathStats *path, const DpLimit *lower, const DpLimit *upper)
{
	DpShare share = { 0, 0, 0 };
	double part = DEFAULT_INEQ_SEL;

	for (int i = 0; i < path->nmcv; i++)
		if (!limit_is_above(lower, &path->mcv[i]) && limit_is_above(upper, &path->mcv[i]))
			share_add_common(&share, path, i);
	if (path->nhist > 1)
	{
		double from = histogram_below(path, lower);
		double to = histogram_below(path, upper);

		part = Max(to - from, 0);
		/* the distance of two positions in one bucket may be below its resolution */
		if (part <= 0 && from > 0 && from < 1)
			part = 0.05 / (path->nhist - 1);
	}
	else if (path->nmcv == 0 && path->rest_items <= 0)
	{
		/* items were not collected */
		share.docs = path->item_docs * part;
		share.items = path->items * part;
		return share;
	}
	share.docs += path->rest_docs * part;
	share.items += path->rest_items * part;
	return share;
}

/* ---------------------------------------------------------------- tests */

DpShare
dp_path_share_test(const DpPathStats *path, DpItemTest test, const void *arg)
{
	DpShare share = { 0, 0, 0 };
	double common = 0;
	double found = 0;
	int met = 0;
	double part;

	for (int i = 0; i < path->nmcv; i++)
	{
		common += path->mcv_items[i];
		if (test(&path->mcv[i], arg))
		{
			share_add_common(&share, path, i);
			found += path->mcv_items[i];
		}
	}
	for (int i = 0; i < path->nhist; i++)
		met += test(&path->hist[i], arg);

	/*
	 * the bounds of the histogram are a sample of the rest; a small one tells less than the most
	 * common items
	 */
	if (path->nhist >= 10)
		part = met > 0 ? (double) met / path->nhist : 0.3 / path->nhist;
	else if (common > 0)
		part = Max((found + DP_DEFAULT_REGEX * common) / common * 0.5, DP_DEFAULT_REGEX);
	else
		part = DP_DEFAULT_REGEX;
	part = Min(part, 1.0);
	if (path->nmcv == 0 && path->rest_items <= 0)
	{
		share.docs = path->item_docs * DP_DEFAULT_REGEX;
		share.items = path->items * DP_DEFAULT_REGEX;
		return share;
	}
	share.docs += path->rest_docs * part;
	share.items += path->rest_items * part;
	return share;
}

/* ---------------------------------------------------------------- documents */

/*
 * The share of the documents with items in which none is in a set that makes up
 * so many items per document: each item is taken to be in it by itself.
 */
double
dp_path_none(const DpPathStats *path, double items)
{
	double share = path->items > 0 ? Min(items / path->items, 1.0) : 0;
	double none = 0;

	if (!path->multiple)
		return path->item_docs * (1.0 - share);
	for (int i = 0; i < DP_STATS_QUANTILES; i++)
		none += pow(1.0 - share, path->counts[i]);
	return path->item_docs * none / DP_STATS_QUANTILES;
}

double
dp_path_any(const DpPathStats *path, const DpShare *share)
{
	double result;

	if (!path->multiple)
		return Min(share->docs, path->item_docs);
	result = path->item_docs - dp_path_none(path, share->items);
	result = Min(result, share->docs);
	return Max(result, Min(share->top, path->item_docs));
}

double
dp_path_any_element(const DpPathStats *path, double probability)
{
	double none = 0;

	probability = Min(Max(probability, 0.0), 1.0);
	for (int i = 0; i < DP_STATS_QUANTILES; i++)
		none += pow(1.0 - probability, path->lengths[i]);
	return path->arrays * (1.0 - none / DP_STATS_QUANTILES);
}

double
dp_path_longer(const DpPathStats *path, int64 n)
{
	int i = 0;
	double low;
	double high;

	while (i < DP_STATS_QUANTILES && path->lengths[i] <= n)
		i++;
	if (i == 0)
		return 1.0;
	if (i == DP_STATS_QUANTILES)
		return 0.0;
	low = path->lengths[i - 1];
	high = path->lengths[i];
	return 1.0 - (i - 1 + (n - low) / (high - low)) / (DP_STATS_QUANTILES - 1);
}

double
dp_path_length(const DpPathStats *path, int64 n)
{
	double known = 0;
	double range;

	for (int i = 0; i < path->nlengths; i++)
	{
		if (path->common_lengths[i] == n)
			return path->length_shares[i];
		known += path->length_shares[i];
	}
	if (n < path->lengths[0] || n > path->lengths[DP_STATS_QUANTILES - 1])
		return 0.0;
	range = path->lengths[DP_STATS_QUANTILES - 1] - path->lengths[0] + 1 - path->nlengths;
	return Max(1.0 - known, 0) / Max(range, 1.0);
}
