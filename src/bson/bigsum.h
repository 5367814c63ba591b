/*
 * bigsum.h
 *		Sums of doubles and integers, and of their squares, without rounding.
 *
 * A sum is an integer of any length times a power of two, in words of 64 bits with 32 bits of value
 * each, so that adding does not carry: an addition changes three words.  Removing a value restores
 * the previous sum, and a result is rounded once, from the exact sum.
 */
#ifndef DP_BSON_BIGSUM_H
#define DP_BSON_BIGSUM_H

#include "bson/number.h"
#include "bson/varint.h"

typedef struct DpBigSum
{
	MemoryContext context; /* of the words */
	int64 *words;          /* words[i] counts 2^(32 * (first + i)) */
	int first;
	int nwords;
	uint32 adds; /* since carries were last resolved */
} DpBigSum;

/* An empty sum; its memory will be in the context. */
extern void dp_big_init(DpBigSum *sum, MemoryContext context);
extern void dp_big_free(DpBigSum *sum);

/*
 * Add (sign 1) or subtract (sign -1) a finite double, an integer, their squares, or high * 2^64 +
 * low.
 */
extern void dp_big_add_double(DpBigSum *sum, double d, int sign);
extern void dp_big_add_int64(DpBigSum *sum, int64 i, int sign);
extern void dp_big_add_int128(DpBigSum *sum, int64 high, uint64 low, int sign);
extern void dp_big_add_double_square(DpBigSum *sum, double d, int sign);
extern void dp_big_add_int64_square(DpBigSum *sum, int64 i, int sign);
extern void dp_big_add(DpBigSum *sum, const DpBigSum *other, int sign);

extern bool dp_big_is_zero(const DpBigSum *sum);

/* The double nearest to the sum, half to even; infinity if it is too large; 0 is positive. */
extern double dp_big_to_double(const DpBigSum *sum);

/* The sum as a numeric, exactly (palloc'd). */
extern Numeric dp_big_to_numeric(const DpBigSum *sum);

/*
 * The square root of (squares - sum^2 / n) / (n - less): the deviation of n
 * numbers whose sum and sum of squares these are.  Only the last steps round.
 */
extern double dp_big_deviation(int64 n, const DpBigSum *sum, const DpBigSum *squares, int less);

/* Packs the sum: equal sums have equal bytes.  Unpacking adds the packed sum. */
extern void dp_big_pack(StringInfo out, const DpBigSum *sum);
extern void dp_big_unpack(DpBigSum *sum, DpPacked *p);

#endif /* DP_BSON_BIGSUM_H */
