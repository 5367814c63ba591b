/*
 * summary.c
 *		Executing aggregates that are computed from the headers of buckets.
 *
 * A bucket belongs to one group, to which its count, sum, least and greatest value
 * are added.  Only a bucket that a bound of the time or a condition on measured columns
 * divides, or whose header lacks an aggregate, is unpacked, and only the columns that
 * are needed: conditions mark rows, and aggregates add the marked values of a whole
 * column.  Waiting measurements are added one by one.
 *
 * Results have the types of PostgreSQL's aggregates: integer and numeric sums are
 * exact, those of floating point agree to rounding.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "patterns/bucket/totals.h"

typedef struct SumGroup
{
	struct SumGroup *next;  /* in the chain of its hash value */
	struct SumGroup *later; /* in the order in which groups were found */
	uint32 hash;
	int64 rows;
	Datum *keys;
	bool *nulls;
	DpFound *found;
} SumGroup;

/* A column or span to group by */
typedef struct By
{
	DpBucketColumn *column;
	bool is_span;
	DpSpan span;
	bool by_image; /* equal values have equal datums */
	FmgrInfo *hash;
	FmgrInfo *equal;
} By;

typedef struct Aggregate
{
	DpUpperFunction function;
	bool filtered;
	int asked; /* number of the column's DpAsked; none for count(*) without a filter */
} Aggregate;

/* Conditions on measured columns that aggregates share, and what they say of the open bucket */
typedef struct Filter
{
	int nkeys;
	DpBucketKey *keys;
	int n;       /* rows that match; -1: not known yet */
	bool *marks; /* by row; NULL: all match */
} Filter;

typedef struct DpBucketUpper
{
	int nby;
	By *by;
	int nasked;
	DpAsked *asked;
	int naggregates;
	Aggregate *aggregates;
	int nfilters;
	Filter *filters;
	Filter where; /* the scan's keys */

	Datum **values; /* unpacked columns of the open bucket by number, or NULL */
	bool **isnull;

	MemoryContext context; /* of the groups */
	SumGroup **chains;
	uint32 nchains; /* a power of two */
	uint32 ngroups;
	SumGroup *first;
	SumGroup *last;    /* of those in order */
	SumGroup *current; /* the group of the last bucket */
	Datum *keys;       /* of the current bucket */
	bool *nulls;
	bool filled;
	SumGroup *next; /* to be given out */
} DpBucketUpper;

static void upper_by(DpBucketScan *scan, DpBucketUpper *upper, List *groups);
static void upper_asked(DpBucketScan *scan, DpBucketUpper *upper, List *aggregates);
static void upper_fill(DpBucketScan *scan);
static void bucket_spread(DpBucketScan *scan);
static void bucket_keys(DpBucketScan *scan, int64 time, int64 *end);
static void waiting_keys(DpBucketScan *scan);
static SumGroup *group_lookup(DpBucketUpper *upper);
static bool group_is(DpBucketUpper *upper, const SumGroup *group);
static SumGroup *group_make(DpBucketUpper *upper, uint32 hash);
static void chains_grow(DpBucketUpper *upper);
static void upper_filters(DpBucketScan *scan, DpBucketUpper *upper, List *filters);
static void filter_evaluate(DpBucketScan *scan, Filter *filter);
static void filter_mark(DpBucketScan *scan, Filter *filter, const bool *among, int from, int to);
static bool key_holds(const DpBucketKey *key, Datum value);
static bool key_always(DpBucketScan *scan, const DpBucketKey *key);
static void key_mark(const DpBucketKey *key, const Datum *values, const bool *nulls, bool *marks,
					 int from, int to);
static bool waiting_matches(DpBucketScan *scan, const Filter *filter);
static void
column_unpack(DpBucketScan *scan, const DpBucketColumn *column, Datum **values, bool **nulls);
static bool bucket_add(DpBucketScan *scan, SumGroup *group, int from, int to);
static bool header_add(DpBucketScan *scan, const DpAsked *asked, DpFound *found);
static void rows_add(DpBucketScan *scan, const DpAsked *asked, DpFound *found, const bool *marks,
					 int from, int to);
static void times_add(DpBucketScan *scan, const DpAsked *asked, DpFound *found, const bool *marks,
					  int from, int to);
static void waiting_add(DpBucketScan *scan, SumGroup *group);

/* Prepare, in the current context. */
struct DpBucketUpper *
dp_bucket_upper_begin(DpBucketScan *scan, List *plan)
{
	DpBucketUpper *upper = palloc0(sizeof(DpBucketUpper));

	upper->context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns bucket groups",
										   ALLOCSET_DEFAULT_SIZES);
	upper_by(scan, upper, linitial(plan));
	upper_asked(scan, upper, lsecond(plan));
	upper_filters(scan, upper, lthird(plan));
	upper->values = palloc0(sizeof(Datum *) * Max(scan->rel->nvalues, 1));
	upper->isnull = palloc0(sizeof(bool *) * Max(scan->rel->nvalues, 1));
	return upper;
}

/* The next row: a group's. */
TupleTableSlot *
dp_bucket_upper_next(DpBucketScan *scan, TupleTableSlot *slot)
{
	DpBucketUpper *upper = scan->upper;
	SumGroup *group;
	int i;

	if (!upper->filled)
		upper_fill(scan);
	group = upper->next;
	if (group == NULL)
		return slot;
	upper->next = group->later;
	for (i = 0; i < upper->nby; i++)
	{
		slot->tts_values[i] = group->keys[i];
		slot->tts_isnull[i] = group->nulls[i];
	}
	for (i = 0; i < upper->naggregates; i++)
	{
		const Aggregate *aggregate = &upper->aggregates[i];
		int column = upper->nby + i;

		slot->tts_isnull[column] = false;
		if (aggregate->function == DP_UPPER_COUNT_ALL && !aggregate->filtered)
			slot->tts_values[column] = Int64GetDatum(group->rows);
		else
			slot->tts_values[column] =
				dp_found_result(aggregate->function, &upper->asked[aggregate->asked],
								&group->found[aggregate->asked], &slot->tts_isnull[column]);
	}
	return ExecStoreVirtualTuple(slot);
}

/* Restarts. */
void
dp_bucket_upper_rescan(DpBucketScan *scan)
{
	scan->upper->filled = false;
}

/* Reads the grouping of the plan. */
static void
upper_by(DpBucketScan *scan, DpBucketUpper *upper, List *groups)
{
	ListCell *lc;

	upper->by = palloc0(sizeof(By) * Max(list_length(groups), 1));
	upper->keys = palloc0(sizeof(Datum) * Max(list_length(groups), 1));
	upper->nulls = palloc0(sizeof(bool) * Max(list_length(groups), 1));
	foreach(lc, groups)
	{
		List *group = lfirst(lc);
		By *by = &upper->by[upper->nby++];

		by->column = scan->rel->by_attnum[lsecond_int(linitial(group)) - 1];
		by->is_span = linitial_int(linitial(group)) == DP_UPPER_SPAN;
		if (by->is_span)
		{
			List *constants = list_copy_tail(group, 1);

			if (!dp_bucket_upper_span(&by->span, constants, by->column->type))
				elog(ERROR, "a plan has no span");
			by->by_image = true;
			continue;
		}
		switch (by->column->type)
		{
			case BOOLOID:
			case INT2OID:
			case INT4OID:
			case INT8OID:
			case OIDOID:
			case DATEOID:
			case TIMESTAMPOID:
			case TIMESTAMPTZOID:
				by->by_image = by->column->typbyval;
		}
		if (!by->by_image)
		{
			TypeCacheEntry *type = lookup_type_cache(by->column->type, TYPECACHE_HASH_PROC_FINFO |
																		   TYPECACHE_EQ_OPR_FINFO);

			by->hash = &type->hash_proc_finfo;
			by->equal = &type->eq_opr_finfo;
		}
	}
}

/* Reads the plan. */
static void
upper_asked(DpBucketScan *scan, DpBucketUpper *upper, List *aggregates)
{
	ListCell *lc;

	upper->asked = palloc0(sizeof(DpAsked) * Max(list_length(aggregates), 1));
	upper->aggregates = palloc0(sizeof(Aggregate) * Max(list_length(aggregates), 1));
	foreach(lc, aggregates)
	{
		Aggregate *aggregate = &upper->aggregates[upper->naggregates++];
		int attnum = lsecond_int(lfirst(lc));
		Oid collation = (Oid) lthird_int(lfirst(lc));
		bool range;
		DpAsked *asked;

		aggregate->function = linitial_int(lfirst(lc));
		aggregate->filtered = lfourth_int(lfirst(lc)) > 0;
		if (aggregate->function == DP_UPPER_COUNT_ALL && lfourth_int(lfirst(lc)) == 0)
			continue;
		range = aggregate->function == DP_UPPER_MIN || aggregate->function == DP_UPPER_MAX;
		for (aggregate->asked = 0; aggregate->asked < upper->nasked; aggregate->asked++)
		{
			asked = &upper->asked[aggregate->asked];
			if ((asked->column != NULL ? asked->column->attnum : 0) == attnum &&
				asked->filter == lfourth_int(lfirst(lc)) &&
				(!range || !asked->range || asked->collation == collation))
				break;
		}
		asked = &upper->asked[aggregate->asked];
		if (aggregate->asked == upper->nasked)
		{
			asked->filter = lfourth_int(lfirst(lc));
			upper->nasked++;
			if (attnum > 0)
			{
				asked->column = scan->rel->by_attnum[attnum - 1];
				asked->kind = dp_bucket_kind(asked->column->type);
			}
		}
		if (aggregate->function >= DP_UPPER_VAR_POP)
			asked->squares = true;
		if (aggregate->function == DP_UPPER_SUM || aggregate->function == DP_UPPER_AVG ||
			asked->squares)
			asked->adding = dp_adding_of(asked->column->type);
		if (range)
		{
			asked->range = true;
			asked->collation = collation;
			asked->compare =
				&lookup_type_cache(asked->column->type, TYPECACHE_CMP_PROC_FINFO)->cmp_proc_finfo;
		}
	}
}

/* Reads the filters of the plan; the conditions of the query are one more. */
static void
upper_filters(DpBucketScan *scan, DpBucketUpper *upper, List *filters)
{
	ForeignScan *plan = (ForeignScan *) scan->node->ss.ps.plan;
	int done = scan->nkeys;
	ListCell *lc;
	int i;

	upper->filters = palloc0(sizeof(Filter) * Max(list_length(filters), 1));
	foreach(lc, filters)
	{
		Filter *filter = &upper->filters[upper->nfilters++];

		dp_bucket_keys_decode(scan->rel, lfirst(lc), list_copy_tail(plan->fdw_exprs, done),
							  &scan->node->ss.ps, &filter->keys, &filter->nkeys);
		done += filter->nkeys;
	}
	for (i = 0; i < scan->nkeys; i++)
	{
		if (scan->keys[i].column->role == DP_BUCKET_VALUE)
		{
			upper->where.nkeys = scan->nkeys;
			upper->where.keys = scan->keys;
		}
	}
}

/* Read all and form the groups. */
static void
upper_fill(DpBucketScan *scan)
{
	DpBucketUpper *upper = scan->upper;
	MemoryContext old;
	int i;

	MemoryContextReset(upper->context);
	upper->nchains = 256;
	upper->chains = MemoryContextAllocZero(upper->context, sizeof(SumGroup *) * upper->nchains);
	upper->ngroups = 0;
	upper->first = upper->last = upper->current = NULL;
	if (upper->nby == 0)
		upper->current = group_make(upper, 0); /* a row also of nothing */

	for (i = 0; i < upper->nfilters; i++)
		filter_evaluate(scan, &upper->filters[i]);

	/* for values from headers and unpacked buckets */
	old = MemoryContextSwitchTo(scan->rows_context);
	while (dp_bucket_scan_next(scan))
	{
		MemoryContextReset(scan->rows_context);
		memset(upper->values, 0, sizeof(Datum *) * scan->rel->nvalues);
		bucket_spread(scan);
	}
	MemoryContextSwitchTo(old);
	while (dp_bucket_scan_recent(scan))
	{
		if (!waiting_matches(scan, &upper->where))
			continue;
		waiting_keys(scan);
		waiting_add(scan, group_lookup(upper));
	}
	upper->filled = true;
	upper->next = upper->first;
}

/*
 * Adds the open bucket to its group. The plan expects a bucket to be in one of the query's spans.
 * If the relation has got greater spans since, it is added in parts.
 */
static void
bucket_spread(DpBucketScan *scan)
{
	DpBucketUpper *upper = scan->upper;
	int64 since = scan->since;
	int64 until = scan->until;
	bool counted = false;
	int64 end;

	for (;;)
	{
		int from;
		int to;

		bucket_keys(scan, Max(scan->reader.first, scan->since), &end);
		if (end <= until)
			scan->until = end - 1;
		if (dp_bucket_scan_range(scan, &from, &to))
		{
			bool unpacked;

			filter_mark(scan, &upper->where, NULL, from, to);
			unpacked = upper->where.marks != NULL;
			if (upper->where.n > 0)
				unpacked = bucket_add(scan, group_lookup(upper), from, to) || unpacked;

			if (!counted)
				dp_bucket_scan_count(scan,
									 unpacked ? &scan->counters->read : &scan->counters->summed);
			counted = true;
		}
		if (end > until || end > scan->reader.last)
			break;
		scan->since = end;
		scan->until = until;
	}
	scan->since = since;
	scan->until = until;
}

/*
 * The group of the open bucket's measurements from a time on; it is the same for all before *end.
 */
static void
bucket_keys(DpBucketScan *scan, int64 time, int64 *end)
{
	DpBucketUpper *upper = scan->upper;
	int i;

	*end = PG_INT64_MAX;
	for (i = 0; i < upper->nby; i++)
	{
		By *by = &upper->by[i];

		if (by->is_span)
		{
			int64 until;

			upper->keys[i] = TimestampTzGetDatum(dp_span_start(&by->span, time, &until));
			*end = Min(*end, until);
		}
		else
		{
			upper->keys[i] = scan->group_values[by->column->number];
			upper->nulls[i] = scan->group_nulls[by->column->number];
		}
	}
}

/* The group of a waiting measurement. */
static void
waiting_keys(DpBucketScan *scan)
{
	DpBucketUpper *upper = scan->upper;
	int i;

	for (i = 0; i < upper->nby; i++)
	{
		By *by = &upper->by[i];

		upper->keys[i] = slot_getattr(scan->recent_slot, by->column->recent, &upper->nulls[i]);
		if (by->is_span)
			upper->keys[i] =
				TimestampTzGetDatum(dp_span_start(&by->span, DatumGetTimestampTz(upper->keys[i]),
												  NULL));
	}
}

/* Returns the group with the current keys, created if it is new. */
static SumGroup *
group_lookup(DpBucketUpper *upper)
{
	uint32 hash = 0;
	SumGroup *group;
	int i;

	/* buckets of a group are often adjacent */
	if (upper->current != NULL && group_is(upper, upper->current))
		return upper->current;
	for (i = 0; i < upper->nby; i++)
	{
		const By *by = &upper->by[i];
		uint32 h = 0;

		if (!upper->nulls[i])
			h = by->by_image ? murmurhash32((uint32) upper->keys[i] ^
											(uint32) ((uint64) upper->keys[i] >> 32) * 0x9e3779b9)
							 : DatumGetUInt32(FunctionCall1Coll(by->hash, by->column->collation,
																upper->keys[i]));
		hash = hash_combine(hash, h);
	}
	for (group = upper->chains[hash & (upper->nchains - 1)]; group != NULL; group = group->next)
	{
		if (group->hash == hash && group_is(upper, group))
			break;
	}
	if (group == NULL)
		group = group_make(upper, hash);
	upper->current = group;
	return group;
}

/* Returns whether a group has the current keys. */
static bool
group_is(DpBucketUpper *upper, const SumGroup *group)
{
	int i;

	for (i = 0; i < upper->nby; i++)
	{
		const By *by = &upper->by[i];

		if (group->nulls[i] != upper->nulls[i])
			return false;
		if (!group->nulls[i] && group->keys[i] != upper->keys[i] &&
			(by->by_image || !DatumGetBool(FunctionCall2Coll(by->equal, by->column->collation,
															 group->keys[i], upper->keys[i]))))
			return false;
	}
	return true;
}

/* Creates a group with the current keys. */
static SumGroup *
group_make(DpBucketUpper *upper, uint32 hash)
{
	MemoryContext old = MemoryContextSwitchTo(upper->context);
	SumGroup *group = palloc0(sizeof(SumGroup));
	int i;

	if (upper->ngroups >= upper->nchains)
		chains_grow(upper);
	group->hash = hash;
	group->next = upper->chains[hash & (upper->nchains - 1)];
	upper->chains[hash & (upper->nchains - 1)] = group;
	upper->ngroups++;
	if (upper->last == NULL)
		upper->first = group;
	else
		upper->last->later = group;
	upper->last = group;

	group->found = palloc0(sizeof(DpFound) * Max(upper->nasked, 1));
	group->keys = palloc(sizeof(Datum) * Max(upper->nby, 1));
	group->nulls = palloc(sizeof(bool) * Max(upper->nby, 1));
	for (i = 0; i < upper->nby; i++)
	{
		group->nulls[i] = upper->nulls[i];
		group->keys[i] = upper->nulls[i] ? (Datum) 0
										 : datumCopy(upper->keys[i], upper->by[i].column->typbyval,
													 upper->by[i].column->typlen);
	}
	MemoryContextSwitchTo(old);
	return group;
}

/* Twice as many chains. */
static void
chains_grow(DpBucketUpper *upper)
{
	SumGroup *group;

	upper->nchains *= 2;
	pfree(upper->chains);
	upper->chains =
		MemoryContextAllocExtended(upper->context, sizeof(SumGroup *) * (Size) upper->nchains,
								   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (group = upper->first; group != NULL; group = group->later)
	{
		SumGroup **chain = &upper->chains[group->hash & (upper->nchains - 1)];

		group->next = *chain;
		*chain = group;
	}
}

/* Add measurements of the open bucket to a group; whether they had to be unpacked. */
static bool
bucket_add(DpBucketScan *scan, SumGroup *group, int from, int to)
{
	DpBucketUpper *upper = scan->upper;
	bool unpacked = false;
	int i;

	group->rows += upper->where.n;
	for (i = 0; i < upper->nfilters; i++)
		upper->filters[i].n = -1;
	for (i = 0; i < upper->nasked; i++)
	{
		const DpAsked *asked = &upper->asked[i];
		DpFound *found = &group->found[i];
		Filter *filter = asked->filter > 0 ? &upper->filters[asked->filter - 1] : &upper->where;
		bool whole;

		if (filter->n < 0)
			filter_mark(scan, filter, upper->where.marks, from, to);
		if (filter->marks != NULL)
			unpacked = true;
		if (filter->n == 0)
			continue;
		whole = from == 0 && to == scan->reader.count && filter->marks == NULL;
		if (asked->column == NULL)
		{
			found->n += filter->n;
			continue;
		}
		switch (asked->column->role)
		{
			case DP_BUCKET_GROUP:
				if (!scan->group_nulls[asked->column->number])
					found->n += filter->n;
				break;
			case DP_BUCKET_TIME:
				found->n += filter->n;
				if (!asked->range)
					break;
				if (whole)
					dp_range_add(upper->context, asked, found,
								 TimestampTzGetDatum(scan->reader.first),
								 TimestampTzGetDatum(scan->reader.last));
				else
				{
					times_add(scan, asked, found, filter->marks, from, to);
					unpacked = true;
				}
				break;
			case DP_BUCKET_VALUE:
				/* a column that was added later is not in older buckets */
				if (asked->column->number >= scan->reader.ncolumns)
					break;
				if (!whole || !header_add(scan, asked, found))
				{
					rows_add(scan, asked, found, filter->marks, from, to);
					unpacked = true;
				}
				break;
		}
	}
	return unpacked;
}

/*
 * Add what the header of the open bucket says of a column; false, and nothing was added, if it does
 * not say all.
 */
static bool
header_add(DpBucketScan *scan, const DpAsked *asked, DpFound *found)
{
	DpBucketUpper *upper = scan->upper;
	const DpPackedColumn *packed = dp_bucket_column(&scan->reader, asked->column->number);
	const DpBucketSummary *summary = &packed->summary;
	Datum sum = (Datum) 0;
	Datum min = (Datum) 0;
	Datum max = (Datum) 0;

	if (summary->nvalues == 0)
		return true;
	if (packed->kind != asked->kind || asked->squares)
		return false;
	if (asked->adding != DP_ADD_NOT && !summary->has_sum)
		return false;
	if (asked->adding == DP_ADD_INTEGERS && summary->scale != 0)
		return false;
	if (asked->adding == DP_ADD_NUMERICS && !dp_bucket_sum(packed, &sum))
		return false;
	if (asked->range &&
		(!summary->has_range || dp_bucket_kind_type(packed->kind) != asked->column->type ||
		 !dp_bucket_min(packed, &min) || !dp_bucket_max(packed, &max)))
		return false;

	found->n += summary->nvalues;
	switch (asked->adding)
	{
		case DP_ADD_NOT:
			break;
		case DP_ADD_INTEGERS:
			found->integers += summary->sum_i;
			break;
		case DP_ADD_DOUBLES:
			dp_double_add(found, summary->sum_d);
			break;
		case DP_ADD_NUMERICS:
			dp_numeric_plus(upper->context, found, DatumGetNumeric(sum));
			break;
	}
	if (asked->range)
		dp_range_add(upper->context, asked, found, min, max);
	return true;
}

/* Evaluates the values of a filter's keys. */
static void
filter_evaluate(DpBucketScan *scan, Filter *filter)
{
	MemoryContext old = MemoryContextSwitchTo(scan->upper->context);
	int i;

	for (i = 0; i < filter->nkeys; i++)
		filter->keys[i].datum =
			ExecEvalExpr(filter->keys[i].state, scan->node->ss.ps.ps_ExprContext,
						 &filter->keys[i].isnull);
	MemoryContextSwitchTo(old);
}

/* Marks the rows [from, to) of the open bucket that match, of those that are marked already. */
static void
filter_mark(DpBucketScan *scan, Filter *filter, const bool *among, int from, int to)
{
	int count = scan->reader.count;
	int i;

	filter->marks = NULL;
	filter->n = to - from;
	if (among != NULL)
	{
		filter->marks = palloc(sizeof(bool) * count);
		memcpy(filter->marks, among, sizeof(bool) * count);
	}
	for (i = 0; i < filter->nkeys; i++)
	{
		const DpBucketKey *key = &filter->keys[i];
		Datum *values;
		bool *nulls;

		if (key->column->role != DP_BUCKET_VALUE)
			continue;
		if (key->isnull)
		{
			filter->n = 0; /* no operator of a btree is true for null */
			return;
		}
		if (key_always(scan, key))
			continue;
		if (filter->marks == NULL)
		{
			filter->marks = palloc(sizeof(bool) * count);
			memset(filter->marks, true, sizeof(bool) * count);
		}
		column_unpack(scan, key->column, &values, &nulls);
		key_mark(key, values, nulls, filter->marks, from, to);
	}
	if (filter->marks == NULL)
		return;
	filter->n = 0;
	for (i = from; i < to; i++)
		filter->n += filter->marks[i];
	if (filter->n == to - from)
		filter->marks = NULL;
}

/* Whether a value satisfies a key. */
static bool
key_holds(const DpBucketKey *key, Datum value)
{
	return DatumGetBool(FunctionCall2Coll((FmgrInfo *) &key->finfo, key->collation, value,
										  key->datum));
}

/* Whether the header says that all values of the open bucket satisfy a key. */
static bool
key_always(DpBucketScan *scan, const DpBucketKey *key)
{
	const DpPackedColumn *packed;
	Datum min;
	Datum max;

	if (key->column->number >= scan->reader.ncolumns)
		return false;
	packed = dp_bucket_column(&scan->reader, key->column->number);
	return packed->summary.nvalues == scan->reader.count && packed->summary.has_range &&
		   dp_bucket_kind_type(packed->kind) == key->column->type && dp_bucket_min(packed, &min) &&
		   dp_bucket_max(packed, &max) && key_holds(key, min) && key_holds(key, max);
}

/* Unmarks the rows that do not satisfy a key. */
static void
key_mark(const DpBucketKey *key, const Datum *values, const bool *nulls, bool *marks, int from,
		 int to)
{
	int i;

#define MARK(condition)                                                                            \
	for (i = from; i < to; i++)                                                                    \
	marks[i] = marks[i] & !nulls[i] & (condition)
#define MARK_BY(get, lt, le, eq, ge, gt)                                                           \
	switch (key->strategy)                                                                         \
	{                                                                                              \
		case BTLessStrategyNumber:                                                                 \
			MARK(lt(get(values[i]), bound));                                                       \
			return;                                                                                \
		case BTLessEqualStrategyNumber:                                                            \
			MARK(le(get(values[i]), bound));                                                       \
			return;                                                                                \
		case BTEqualStrategyNumber:                                                                \
			MARK(eq(get(values[i]), bound));                                                       \
			return;                                                                                \
		case BTGreaterEqualStrategyNumber:                                                         \
			MARK(ge(get(values[i]), bound));                                                       \
			return;                                                                                \
		default:                                                                                   \
			MARK(gt(get(values[i]), bound));                                                       \
			return;                                                                                \
	}
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define EQ(a, b) ((a) == (b))
#define GE(a, b) ((a) >= (b))
#define GT(a, b) ((a) > (b))

	switch (key->righttype == key->column->type ? key->righttype : InvalidOid)
	{
		case INT4OID:
		{
			int32 bound = DatumGetInt32(key->datum);

			MARK_BY(DatumGetInt32, LT, LE, EQ, GE, GT);
		}
		case INT8OID:
		{
			int64 bound = DatumGetInt64(key->datum);

			MARK_BY(DatumGetInt64, LT, LE, EQ, GE, GT);
		}
		case FLOAT8OID:
		{
			float8 bound = DatumGetFloat8(key->datum);

			if (!isnan(bound))
			{
				/* NaN is the greatest */
				MARK_BY(DatumGetFloat8, LT, LE, EQ, !LT, !LE);
			}
		}
	}
	for (i = from; i < to; i++)
	{
		if (marks[i])
			marks[i] = !nulls[i] && key_holds(key, values[i]);
	}
#undef MARK
#undef MARK_BY
#undef LT
#undef LE
#undef EQ
#undef GE
#undef GT
}

/* Whether the waiting measurement matches. */
static bool
waiting_matches(DpBucketScan *scan, const Filter *filter)
{
	int i;

	for (i = 0; i < filter->nkeys; i++)
	{
		const DpBucketKey *key = &filter->keys[i];
		bool isnull;
		Datum value;

		if (key->column->role != DP_BUCKET_VALUE)
			continue;
		value = slot_getattr(scan->recent_slot, key->column->recent, &isnull);
		if (isnull || key->isnull || !key_holds(key, value))
			return false;
	}
	return true;
}

/* The values of a column of the open bucket, unpacked once. */
static void
column_unpack(DpBucketScan *scan, const DpBucketColumn *column, Datum **values, bool **nulls)
{
	DpBucketUpper *upper = scan->upper;
	int number = column->number;
	int count = scan->reader.count;

	if (upper->values[number] == NULL)
	{
		upper->values[number] = palloc(sizeof(Datum) * count);
		upper->isnull[number] = palloc(sizeof(bool) * count);
		/* a column that was added later is not in older buckets */
		if (number < scan->reader.ncolumns)
			dp_bucket_datums(&scan->reader, number, column->type, column->typmod,
							 upper->values[number], upper->isnull[number]);
		else
		{
			memset(upper->values[number], 0, sizeof(Datum) * count);
			memset(upper->isnull[number], true, sizeof(bool) * count);
		}
	}
	*values = upper->values[number];
	*nulls = upper->isnull[number];
}

/* Add rows of the open bucket. */
static void
rows_add(DpBucketScan *scan, const DpAsked *asked, DpFound *found, const bool *marks, int from,
		 int to)
{
	DpBucketUpper *upper = scan->upper;
	int number = asked->column->number;
	int count = scan->reader.count;
	bool *nulls;
	int i;

	if (asked->adding == DP_ADD_INTEGERS && !asked->range && marks == NULL &&
		upper->values[number] == NULL &&
		dp_bucket_column(&scan->reader, number)->kind == asked->kind)
	{
		int64 *values = palloc(sizeof(int64) * count);

		nulls = palloc(sizeof(bool) * count);
		dp_bucket_int64s(&scan->reader, number, values, nulls);
		for (i = from; i < to; i++)
		{
			if (!nulls[i])
			{
				found->integers += values[i];
				found->n++;
			}
		}
	}
	else
	{
		Datum *values;

		column_unpack(scan, asked->column, &values, &nulls);
		if (asked->adding == DP_ADD_DOUBLES && !asked->range)
		{
			dp_doubles_add(asked, found, values, nulls, marks, from, to);
			return;
		}
		for (i = from; i < to; i++)
		{
			if (!nulls[i] && (marks == NULL || marks[i]))
				dp_value_add(upper->context, asked, found, values[i]);
		}
	}
}

/* The least and the greatest time of rows of the open bucket. */
static void
times_add(DpBucketScan *scan, const DpAsked *asked, DpFound *found, const bool *marks, int from,
		  int to)
{
	int64 *times = palloc(sizeof(int64) * scan->reader.count);

	dp_bucket_times(&scan->reader, times);
	while (marks != NULL && !marks[from])
		from++;
	while (marks != NULL && !marks[to - 1])
		to--;
	dp_range_add(scan->upper->context, asked, found, TimestampTzGetDatum(times[from]),
				 TimestampTzGetDatum(times[to - 1]));
}

/* Add a waiting measurement to a group. */
static void
waiting_add(DpBucketScan *scan, SumGroup *group)
{
	DpBucketUpper *upper = scan->upper;
	int i;

	group->rows++;
	for (i = 0; i < upper->nasked; i++)
	{
		const DpAsked *asked = &upper->asked[i];
		bool isnull;
		Datum value;

		if (asked->filter > 0 && !waiting_matches(scan, &upper->filters[asked->filter - 1]))
			continue;
		if (asked->column == NULL)
		{
			group->found[i].n++;
			continue;
		}
		value = slot_getattr(scan->recent_slot, asked->column->recent, &isnull);
		if (!isnull)
			dp_value_add(upper->context, asked, &group->found[i], value);
	}
}
