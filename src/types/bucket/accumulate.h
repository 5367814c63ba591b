/*
 * accumulate.h
 *		Sums, averages and so on of a bucket's fields, from the header where it
 *		has them.
 */
#ifndef DP_TYPES_BUCKET_ACCUMULATE_H
#define DP_TYPES_BUCKET_ACCUMULATE_H

#include "types/bucket/fields.h"

typedef enum DpBucketAccumulator
{
	DP_BUCKET_SUM,
	DP_BUCKET_AVG,
	DP_BUCKET_MIN,
	DP_BUCKET_MAX,
	DP_BUCKET_FIRST,
	DP_BUCKET_LAST,
	DP_BUCKET_STDDEV_POP,
	DP_BUCKET_STDDEV_SAMP
} DpBucketAccumulator;

/*
 * The accumulator over the values of the source.  Returns false where there is
 * nothing to accumulate.  The result is in the current context.  The numbers
 * are of the types that $sum and $avg give: int32, int64, double or decimal128.
 */
extern bool dp_bucket_accumulate(DpBucketReader *r, const DpBucketSource *source,
								 DpBucketAccumulator what, DpValue *result);

/* The values of a source, palloc'd. */
extern DpValue *dp_bucket_values_of(DpBucketReader *r, const DpBucketSource *source);

/* Whether a measurement has a value: it is there and not null. */
static inline bool
dp_bucket_is_value(const DpValue *v)
{
	return v->type != DP_TYPE_EOD && v->type != DP_TYPE_NULL && v->type != DP_TYPE_UNDEFINED;
}

#endif /* DP_TYPES_BUCKET_ACCUMULATE_H */
