/*
 * bigsum.c
 *		Sums without rounding.
 */
#include "postgres.h"

#include <math.h>

#include "port/pg_bitutils.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include "bson/bigsum.h"

/* After so many additions of less than 2^32 to a word carries are resolved: it stays below 2^62 */
#define MAX_ADDS (UINT32_C(1) << 29)

/* Bits of a double's mantissa, and the exponent of its least bit */
#define DOUBLE_BITS 53
#define DOUBLE_LEAST (-1074)

/*
 * The places of packed bytes, in units of 8 bits from 2^0 on: squares of doubles
 * have bits from 2^-2148 to 2^2047, and sums of 2^63 of them 64 more.
 */
#define PLACE_LEAST (-272)
#define PLACE_GREATEST 272

/*
 * A sum as sign and magnitude: digits[i] counts 2^(32 * (first + i)), the least and the last are
 * not 0
 */
typedef struct Magnitude
{
	bool negative;
	int first;
	int n;
	uint32 *digits;
	uint32 room[16];
} Magnitude;

void
dp_big_init(DpBigSum *sum, MemoryContext context)
{
	sum->context = context;
	sum->words = NULL;
	sum->first = 0;
	sum->nwords = 0;
	sum->adds = 0;
}

void
dp_big_free(DpBigSum *sum)
{
	if (sum->words != NULL)
		pfree(sum->words);
	dp_big_init(sum, sum->context);
}

/* Makes room for the words from to upto. */
static void
big_enlarge(DpBigSum *sum, int from, int upto)
{
	int first = from - 1;
	int end = upto + 2;
	int64 *words;

	if (sum->nwords > 0)
	{
		first = sum->first <= from ? sum->first : first;
		end = sum->first + sum->nwords > upto ? sum->first + sum->nwords : end;
	}
	words = MemoryContextAllocZero(sum->context, sizeof(int64) * (end - first));
	if (sum->nwords > 0)
	{
		memcpy(words + (sum->first - first), sum->words, sizeof(int64) * sum->nwords);
		pfree(sum->words);
	}
	sum->words = words;
	sum->first = first;
	sum->nwords = end - first;
}

/* Resolves carries: all words but the last are at least 0 and less than 2^32. */
static void
big_carry(DpBigSum *sum)
{
	int64 carry = 0;
	int last = sum->nwords - 1;

	if (sum->nwords > 0 &&
		(sum->words[last] >= INT64CONST(0x80000000) || sum->words[last] < -INT64CONST(0x80000000)))
	{
		big_enlarge(sum, sum->first + sum->nwords, sum->first + sum->nwords);
		last = sum->nwords - 1;
	}
	for (int i = 0; i < last; i++)
	{
		int64 word = sum->words[i] + carry;

		sum->words[i] = word & INT64CONST(0xFFFFFFFF);
		carry = word >> 32;
	}
	if (last >= 0)
		sum->words[last] += carry;
	sum->adds = 0;
}

/* Adds m * 2^e. */
static inline void
big_add_scaled(DpBigSum *sum, uint64 m, int e, bool negative)
{
	int shift = e & 31;
	int place = (e - shift) / 32;
	int64 *w;
	int64 low = (int64) ((m << shift) & UINT64CONST(0xFFFFFFFF));
	int64 middle = (int64) ((m >> (32 - shift)) & UINT64CONST(0xFFFFFFFF));
	int64 high = shift > 0 ? (int64) (m >> (64 - shift)) : 0;

	if (unlikely(place < sum->first || place + 3 > sum->first + sum->nwords))
		big_enlarge(sum, place, place + 2);
	w = sum->words + (place - sum->first);
	if (negative)
	{
		w[0] -= low;
		w[1] -= middle;
		w[2] -= high;
	}
	else
	{
		w[0] += low;
		w[1] += middle;
		w[2] += high;
	}
	if (unlikely(++sum->adds >= MAX_ADDS))
		big_carry(sum);
}

/* Adds (a * b) * 2^e. */
static inline void
big_add_product(DpBigSum *sum, uint64 a, uint64 b, int e, bool negative)
{
	uint64 a0 = a & 0xFFFFFFFF;
	uint64 a1 = a >> 32;
	uint64 b0 = b & 0xFFFFFFFF;
	uint64 b1 = b >> 32;

	big_add_scaled(sum, a0 * b0, e, negative);
	if (a1 != 0)
		big_add_scaled(sum, a1 * b0, e + 32, negative);
	if (b1 != 0)
		big_add_scaled(sum, a0 * b1, e + 32, negative);
	if (a1 != 0 && b1 != 0)
		big_add_scaled(sum, a1 * b1, e + 64, negative);
}

/* The parts of a finite double: d = +-m * 2^e. */
static inline uint64
double_parts(double d, int *e, bool *negative)
{
	uint64 bits;
	uint64 m;

	memcpy(&bits, &d, sizeof(bits));
	*negative = (bits >> 63) != 0;
	*e = (int) ((bits >> 52) & 0x7FF);
	m = bits & ((UINT64CONST(1) << 52) - 1);
	if (*e == 0)
		*e = DOUBLE_LEAST;
	else
	{
		m |= UINT64CONST(1) << 52;
		*e += DOUBLE_LEAST - 1;
	}
	return m;
}

void
dp_big_add_double(DpBigSum *sum, double d, int sign)
{
	int e;
	bool negative;
	uint64 m = double_parts(d, &e, &negative);

	if (m != 0)
		big_add_scaled(sum, m, e, negative != (sign < 0));
}

void
dp_big_add_double_square(DpBigSum *sum, double d, int sign)
{
	int e;
	bool negative;
	uint64 m = double_parts(d, &e, &negative);

	if (m != 0)
		big_add_product(sum, m, m, 2 * e, sign < 0);
}

/* The absolute value of an integer. */
static inline uint64
magnitude_of_int64(int64 i)
{
	return i < 0 ? -(uint64) i : (uint64) i;
}

void
dp_big_add_int64(DpBigSum *sum, int64 i, int sign)
{
	if (i != 0)
		big_add_scaled(sum, magnitude_of_int64(i), 0, (i < 0) != (sign < 0));
}

void
dp_big_add_int64_square(DpBigSum *sum, int64 i, int sign)
{
	uint64 m = magnitude_of_int64(i);

	if (m != 0)
		big_add_product(sum, m, m, 0, sign < 0);
}

void
dp_big_add_int128(DpBigSum *sum, int64 high, uint64 low, int sign)
{
	if (low != 0)
		big_add_scaled(sum, low, 0, sign < 0);
	if (high != 0)
		big_add_scaled(sum, magnitude_of_int64(high), 64, (high < 0) != (sign < 0));
}

void
dp_big_add(DpBigSum *sum, const DpBigSum *other, int sign)
{
	for (int i = 0; i < other->nwords; i++)
	{
		if (other->words[i] != 0)
			big_add_scaled(sum, magnitude_of_int64(other->words[i]), 32 * (other->first + i),
						   (other->words[i] < 0) != (sign < 0));
	}
}

bool
dp_big_is_zero(const DpBigSum *sum)
{
	int64 carry = 0;

	for (int i = 0; i < sum->nwords; i++)
	{
		int64 word = sum->words[i] + carry;

		if ((word & INT64CONST(0xFFFFFFFF)) != 0)
			return false;
		carry = word >> 32;
	}
	return carry == 0;
}

/* Takes carries through; returns the last one. */
static int64
digits_resolve(const DpBigSum *sum, bool negate, uint32 *digits)
{
	int64 carry = 0;

	for (int i = 0; i < sum->nwords; i++)
	{
		int64 word = (negate ? -sum->words[i] : sum->words[i]) + carry;

		digits[i] = (uint32) (word & INT64CONST(0xFFFFFFFF));
		carry = word >> 32;
	}
	return carry;
}

/* The sum as sign and magnitude. */
static void
magnitude_of(const DpBigSum *sum, Magnitude *m)
{
	int n = sum->nwords;
	int64 carry;

	m->negative = false;
	m->digits = n + 2 <= (int) lengthof(m->room) ? m->room : palloc(sizeof(uint32) * (n + 2));
	carry = digits_resolve(sum, false, m->digits);
	if (carry < 0)
	{
		m->negative = true;
		carry = digits_resolve(sum, true, m->digits);
	}
	m->digits[n] = (uint32) carry;
	m->digits[n + 1] = (uint32) (carry >> 32);
	m->n = n + 2;
	m->first = sum->first;
	while (m->n > 0 && m->digits[m->n - 1] == 0)
		m->n--;
	while (m->n > 0 && m->digits[0] == 0)
	{
		/* the digits may be in room: do not move the pointer */
		memmove(m->digits, m->digits + 1, sizeof(uint32) * (m->n - 1));
		m->n--;
		m->first++;
	}
}

/* Frees its palloc'd memory. */
static void
magnitude_free(Magnitude *m)
{
	if (m->digits != m->room)
		pfree(m->digits);
}

/*
 * The upper 64 bits of a magnitude that is not 0, the last one set if anything
 * follows, and the exponent of the last.
 */
static uint64
magnitude_top(const Magnitude *m, int *e)
{
	int last = m->n - 1;
	int zeros = 31 - pg_leftmost_one_pos32(m->digits[last]);
	uint64 top = (uint64) m->digits[last] << 32;
	uint32 third = last > 1 ? m->digits[last - 2] : 0;
	bool more = last > 2; /* the least digit is not 0 */

	if (last > 0)
		top |= m->digits[last - 1];
	top = (top << zeros) | (zeros > 0 ? (uint64) third >> (32 - zeros) : 0);
	if ((uint32) (third << zeros) != 0)
		more = true;
	*e = 32 * (m->first + last - 1) - zeros;
	return top | (more ? 1 : 0);
}

/* Rounds the upper 64 bits to those that a double has if its exponent may be e, half to even. */
static double
top_round(uint64 top, int *e, int least)
{
	int drop = Max(64 - DOUBLE_BITS, least - *e);
	uint64 kept;
	uint64 rest;
	uint64 half;

	if (drop > 64)
		return 0;
	kept = drop == 64 ? 0 : top >> drop;
	rest = drop == 64 ? top : top & ((UINT64CONST(1) << drop) - 1);
	half = UINT64CONST(1) << (drop - 1);
	if (rest > half || (rest == half && (kept & 1) != 0))
		kept++;
	*e += drop;
	return (double) kept;
}

double
dp_big_to_double(const DpBigSum *sum)
{
	Magnitude m;
	double d = 0;

	magnitude_of(sum, &m);
	if (m.n > 0)
	{
		int e;
		uint64 top = magnitude_top(&m, &e);

		d = top_round(top, &e, DOUBLE_LEAST);
		d = ldexp(d, e);
		if (m.negative)
			d = -d;
		if (d == 0)
			d = 0;
	}
	magnitude_free(&m);
	return d;
}

Numeric
dp_big_to_numeric(const DpBigSum *sum)
{
	Magnitude m;
	Datum total = NumericGetDatum(int64_to_numeric(0));

	magnitude_of(sum, &m);
	for (int i = 0; i < m.n; i++)
	{
		int e = 32 * (m.first + i);
		int beyond = Max(0, e - 900); /* a double does not go that far */
		Datum part;

		if (m.digits[i] == 0)
			continue;
		/* bits below a double's least do not come up: sums of squares are no numerics */
		part = NumericGetDatum(dp_double_to_numeric(ldexp((double) m.digits[i], e - beyond)));
		if (beyond > 0)
			part = DirectFunctionCall2(numeric_mul, part,
									   NumericGetDatum(dp_double_to_numeric(ldexp(1, beyond))));
		total = DirectFunctionCall2(numeric_add, total, part);
	}
	if (m.negative)
		total = DirectFunctionCall1(numeric_uminus, total);
	magnitude_free(&m);
	return DatumGetNumeric(total);
}

double
dp_big_deviation(int64 n, const DpBigSum *sum, const DpBigSum *squares, int less)
{
	Magnitude s;
	Magnitude q;
	Magnitude m;
	DpBigSum total;
	double d = 0;
	int e;

	/* (n * squares - sum^2) / (n * (n - less)) */
	magnitude_of(sum, &s);
	magnitude_of(squares, &q);
	dp_big_init(&total, CurrentMemoryContext);
	for (int i = 0; i < q.n; i++)
		big_add_product(&total, (uint64) n, q.digits[i], 32 * (q.first + i), q.negative);
	for (int i = 0; i < s.n; i++)
		for (int k = 0; k < s.n; k++)
			big_add_scaled(&total, (uint64) s.digits[i] * s.digits[k], 32 * (2 * s.first + i + k),
						   true);
	magnitude_of(&total, &m);
	if (m.n > 0 && !m.negative)
	{
		d = top_round(magnitude_top(&m, &e), &e, PG_INT32_MIN / 2);
		if ((e & 1) != 0)
		{
			d *= 2;
			e--;
		}
		d = ldexp(sqrt(d / ((double) n * (double) (n - less))), e / 2);
	}
	magnitude_free(&s);
	magnitude_free(&q);
	magnitude_free(&m);
	dp_big_free(&total);
	return d;
}

/*
 * varint 2 * bytes + (negative ? 1 : 0), and unless that is 0: the place of the
 * least byte (bits / 8, signed), the bytes, the least first; neither the first
 * nor the last is 0.
 */
void
dp_big_pack(StringInfo out, const DpBigSum *sum)
{
	Magnitude m;

	magnitude_of(sum, &m);
	if (m.n == 0)
		dp_pack_varint(out, 0);
	else
	{
		int n = m.n * 4;
		int skip = 0;
		uint8 *bytes = palloc(n);

		for (int i = 0; i < m.n; i++)
			dp_put_int32(bytes + 4 * i, (int32) m.digits[i]);
		while (bytes[n - 1] == 0)
			n--;
		while (bytes[skip] == 0)
			skip++;
		dp_pack_varint(out, 2 * (uint64) (n - skip) + (m.negative ? 1 : 0));
		dp_pack_signed(out, 4 * m.first + skip);
		appendBinaryStringInfo(out, (char *) bytes + skip, n - skip);
		pfree(bytes);
	}
	magnitude_free(&m);
}

void
dp_big_unpack(DpBigSum *sum, DpPacked *p)
{
	uint64 head = dp_unpack_varint(p);
	uint64 n = head >> 1;
	int64 place;
	const uint8 *bytes;

	if (head == 0)
		return;
	place = dp_unpack_signed(p);
	bytes = dp_unpack_bytes(p, n);
	if (n == 0 || n > PLACE_GREATEST - PLACE_LEAST || place < PLACE_LEAST ||
		place + (int64) n > PLACE_GREATEST || bytes[0] == 0 || bytes[n - 1] == 0)
		dp_corrupted("a packed sum is out of range");
	for (uint64 i = 0; i < n; i += 4)
	{
		uint32 digit = 0;

		for (uint64 k = 0; k < 4 && i + k < n; k++)
			digit |= (uint32) bytes[i + k] << (8 * k);
		if (digit != 0)
			big_add_scaled(sum, digit, 8 * (int) (place + (int64) i), (head & 1) != 0);
	}
}
