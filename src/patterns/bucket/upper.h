/*
 * upper.h
 *		Aggregates that are computed from the headers of buckets: the plan and the
 *		state of the execution.
 */
#ifndef DP_PATTERNS_BUCKET_UPPER_H
#define DP_PATTERNS_BUCKET_UPPER_H

#include "patterns/bucket/scan.h"

/* The aggregates */
typedef enum DpUpperFunction
{
	DP_UPPER_COUNT_ALL, /* count(*) */
	DP_UPPER_COUNT,
	DP_UPPER_SUM,
	DP_UPPER_AVG,
	DP_UPPER_MIN,
	DP_UPPER_MAX,
	DP_UPPER_VAR_POP, /* and those that follow: of floating-point columns */
	DP_UPPER_VAR_SAMP,
	DP_UPPER_STDDEV_POP,
	DP_UPPER_STDDEV_SAMP
} DpUpperFunction;

/* A column or span to group by */
typedef enum DpUpperGroup
{
	DP_UPPER_COLUMN, /* a group column */
	DP_UPPER_SPAN    /* the beginning of a span that consists of whole ones of the relation */
} DpUpperGroup;

/*
 * fdw_private's DP_PLAN_UPPER: (groups, aggregates, filters).  A group is the list
 * (integer list: kind, attnum) or, for a span, that and the constants of width,
 * origin and time zone.  An aggregate is an integer list: function, attnum (0
 * for count(*)), collation, number of its filter from 1 on (0: none).  A filter
 * is encoded keys on measured columns, whose values follow those of the scan's
 * keys.  Rows have the groups and then the aggregates.
 */
extern void dp_bucket_upper_routine(FdwRoutine *routine);

/* The plan of aggregates, called by what plans scans. */
extern ForeignScan *
dp_bucket_upper_plan(PlannerInfo *root, RelOptInfo *rel, ForeignPath *best_path, List *tlist);

/* Executing: prepare, return the next row (an empty slot at the end), restart. */
extern struct DpBucketUpper *dp_bucket_upper_begin(DpBucketScan *scan, List *plan);
extern TupleTableSlot *dp_bucket_upper_next(DpBucketScan *scan, TupleTableSlot *slot);
extern void dp_bucket_upper_rescan(DpBucketScan *scan);

/* The span that constants describe; false if they describe none. */
extern bool dp_bucket_upper_span(DpSpan *span, List *constants, Oid type);

#endif /* DP_PATTERNS_BUCKET_UPPER_H */
