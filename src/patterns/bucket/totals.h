/*
 * totals.h
 *		Totals of a column in a group of measurements: count, sum, least and greatest value,
 *		and variance.
 */
#ifndef DP_PATTERNS_BUCKET_TOTALS_H
#define DP_PATTERNS_BUCKET_TOTALS_H

#include "utils/numeric.h"

#include "patterns/bucket/upper.h"

#ifdef HAVE_INT128
typedef int128 DpExactSum;
#else
typedef int64 DpExactSum;
#endif

/* Kinds of sums of a column */
typedef enum DpAdding
{
	DP_ADD_NOT,
	DP_ADD_INTEGERS,
	DP_ADD_DOUBLES,
	DP_ADD_NUMERICS
} DpAdding;

/* The aggregates of a column */
typedef struct DpAsked
{
	DpBucketColumn *column; /* NULL: rows are counted */
	int filter;             /* of the aggregates, from 1 on; 0: none */
	bool squares;           /* a variance is asked for */
	DpPackedKind kind;      /* that buckets of this time store its values as */
	DpAdding adding;        /* kind of sum, if needed */
	bool range;             /* min or max is asked for */
	Oid collation;          /* of that */
	FmgrInfo *compare;
} DpAsked;

/* Their values in a group */
typedef struct DpFound
{
	int64 n; /* values that are not null */
	DpExactSum integers;
	double doubles;
	double squares;   /* of the deviations from the mean */
	Numeric numerics; /* NULL: no value yet */
	bool has_range;
	Datum min;
	Datum max;
} DpFound;

/* Returns the kind of sum of a type. */
extern DpAdding dp_adding_of(Oid type);

/* Add a value that is not null. The context keeps what values need, here and below. */
extern void dp_value_add(MemoryContext context, const DpAsked *asked, DpFound *found, Datum value);

/* Add the values of a floating-point column from one row up to another that are marked (NULL: all).
 */
extern void dp_doubles_add(const DpAsked *asked, DpFound *found, const Datum *values,
						   const bool *nulls, const bool *marks, int from, int to);

/* Add to a sum of doubles; raises NUMERIC_VALUE_OUT_OF_RANGE as PostgreSQL's addition does. */
extern void dp_double_add(DpFound *found, double value);

/* Add to a sum of numerics. */
extern void dp_numeric_plus(MemoryContext context, DpFound *found, Numeric value);

/* Widen the range. */
extern void
dp_range_add(MemoryContext context, const DpAsked *asked, DpFound *found, Datum min, Datum max);

/*
 * The result of an aggregate, in the current context or found's; NULL as PostgreSQL's aggregate
 * says.
 */
extern Datum
dp_found_result(DpUpperFunction function, const DpAsked *asked, const DpFound *found, bool *isnull);

#endif /* DP_PATTERNS_BUCKET_TOTALS_H */
