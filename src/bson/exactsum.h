/*
 * exactsum.h
 *		Sums of BSON numbers of all types, without rounding, from which numbers
 *		can be taken out again.
 *
 * The results are those of MongoDB's $sum and $avg: the widest type among the
 * numbers decides the type, an int32 or int64 that does not fit widens.  They
 * depend on the numbers that are in the sum and on nothing else.
 */
#ifndef DP_BSON_EXACTSUM_H
#define DP_BSON_EXACTSUM_H

#include "bson/bigsum.h"

/* The sum of the decimals that have one exponent: a two's complement integer of 192 bits */
typedef struct DpDecimalSum
{
	int32 exponent;
	int64 count;
	uint64 words[3]; /* the least first */
} DpDecimalSum;

/* All counts and sums are differences, and may be negative on the way. */
typedef struct DpExactSum
{
	int64 n; /* numbers */
	int64 nint64;
	int64 ndouble;
	int64 ndecimal;
	int64 nnan; /* NaNs and infinities, doubles and decimals */
	int64 ninfinity;
	int64 nminus;
	int64 high; /* the integers: high * 2^64 + low */
	uint64 low;
	DpBigSum doubles;
	DpDecimalSum *decimals; /* by exponent; none without a count */
	int ndecimals;
	int adecimals;
} DpExactSum;

/* Room for the bytes of a result */
#define DP_SUM_RESULT_SIZE DP_DECIMAL128_SIZE

extern void dp_exact_sum_init(DpExactSum *sum, MemoryContext context);
extern void dp_exact_sum_reset(DpExactSum *sum);

/* Adds (sign 1) or takes out (sign -1) a number; any other value is passed over and gives false. */
extern bool dp_exact_sum_add_value(DpExactSum *sum, const DpValue *v, int sign);
extern void dp_exact_sum_add(DpExactSum *sum, const DpExactSum *other);

/* True if the sum equals its initial state. */
extern bool dp_exact_sum_is_zero(const DpExactSum *sum);

/* Whether all numbers are int32 or int64 and their sum is an int64; *i is it. */
extern bool dp_exact_sum_integer(const DpExactSum *sum, int64 *i);

/* $sum and $avg; the average of no numbers is null.  The value's bytes are in room. */
extern void
dp_exact_sum_total(const DpExactSum *sum, DpValue *result, uint8 room[DP_SUM_RESULT_SIZE]);
extern void
dp_exact_sum_average(const DpExactSum *sum, DpValue *result, uint8 room[DP_SUM_RESULT_SIZE]);

/*
 * Packs the sum, equal sums as equal bytes; without the count of all numbers, or without the
 * integers, if the caller has them.  Unpacking adds the packed sum, and raises DATA_CORRUPTED.
 */
extern void dp_exact_sum_pack(StringInfo out, const DpExactSum *sum, bool count, bool integers);
extern void dp_exact_sum_unpack(DpExactSum *sum, DpPacked *p);

/* Adds an integer to the sum that is not counted. */
static inline void
dp_exact_sum_add_integer(DpExactSum *sum, int64 high, uint64 low)
{
	sum->low += low;
	sum->high = (int64) ((uint64) sum->high + (uint64) high + (sum->low < low ? 1 : 0));
}

#endif /* DP_BSON_EXACTSUM_H */
