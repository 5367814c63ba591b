/*
 * exactsum.c
 *		Sums of BSON numbers of all types.
 *
 * Integers are added in 128 bits, doubles as a DpBigSum, decimals as integers of
 * 192 bits, one for each exponent: nothing is rounded before the end, and the
 * zeros after the point are right after any decimal has left.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include "bson/exactsum.h"

/* Exponents of decimals */
#define EXPONENT_LEAST (-6176)
#define EXPONENT_GREATEST 6111

/* Parts of a packed sum that are there */
#define PART_COUNT 0x01
#define PART_INT64 0x02
#define PART_DOUBLE 0x04
#define PART_SPECIAL 0x08
#define PART_INTEGERS 0x10
#define PART_DECIMALS 0x20
#define PART_ALL 0x3F

void
dp_exact_sum_init(DpExactSum *sum, MemoryContext context)
{
	memset(sum, 0, sizeof(DpExactSum));
	dp_big_init(&sum->doubles, context);
}

void
dp_exact_sum_reset(DpExactSum *sum)
{
	MemoryContext context = sum->doubles.context;

	dp_big_free(&sum->doubles);
	if (sum->decimals != NULL)
		pfree(sum->decimals);
	dp_exact_sum_init(sum, context);
}

/* ---------------------------------------------------------------- decimals */

/* The part of an exponent, made if it is not there. */
static DpDecimalSum *
decimal_part(DpExactSum *sum, int32 exponent)
{
	int low = 0;
	int high = sum->ndecimals;

	while (low < high)
	{
		int middle = (low + high) / 2;

		if (sum->decimals[middle].exponent == exponent)
			return &sum->decimals[middle];
		if (sum->decimals[middle].exponent < exponent)
			low = middle + 1;
		else
			high = middle;
	}
	if (sum->ndecimals == sum->adecimals)
	{
		int room = Max(2, sum->adecimals * 2);
		Size size = sizeof(DpDecimalSum) * room;

		sum->decimals = sum->decimals == NULL ? MemoryContextAlloc(sum->doubles.context, size)
											  : repalloc(sum->decimals, size);
		sum->adecimals = room;
	}
	memmove(sum->decimals + low + 1, sum->decimals + low,
			sizeof(DpDecimalSum) * (sum->ndecimals - low));
	memset(&sum->decimals[low], 0, sizeof(DpDecimalSum));
	sum->decimals[low].exponent = exponent;
	sum->ndecimals++;
	return &sum->decimals[low];
}

/* Adds count decimals of the sum words to those of the exponent. */
static void
decimal_add(DpExactSum *sum, int32 exponent, int64 count, const uint64 words[3])
{
	DpDecimalSum *part = decimal_part(sum, exponent);
	uint64 carry = 0;

	for (int i = 0; i < 3; i++)
	{
		uint64 word = part->words[i] + words[i];
		uint64 over = word < words[i];

		part->words[i] = word + carry;
		carry = over + (part->words[i] < carry);
	}
	part->count += count;
	if (part->count == 0 && (part->words[0] | part->words[1] | part->words[2]) == 0)
	{
		int i = part - sum->decimals;

		sum->ndecimals--;
		memmove(part, part + 1, sizeof(DpDecimalSum) * (sum->ndecimals - i));
	}
}

/* The integer negated. */
static void
words_negate(uint64 words[3])
{
	uint64 carry = 1;

	for (int i = 0; i < 3; i++)
	{
		words[i] = ~words[i] + carry;
		carry = carry && words[i] == 0;
	}
}

/* Adds a decimal128, or takes it out. */
static void
decimal_add_value(DpExactSum *sum, const uint8 *d, int sign)
{
	uint64 high = (uint64) dp_get_int64(d + 8);
	uint64 words[3] = { (uint64) dp_get_int64(d), high & UINT64CONST(0x1FFFFFFFFFFFF), 0 };
	int exponent = (int) ((high >> 49) & 0x3FFF);

	/* a coefficient of 10^34 or more is invalid, and means 0 */
	const uint64 limit_high = UINT64CONST(0x1ED09BEAD87C0);
	const uint64 limit_low = UINT64CONST(0x378D8E6400000000);

	sum->ndecimal += sign;
	switch ((int) ((high >> 58) & 0x1F))
	{
		case 0x1F:
			sum->nnan += sign;
			return;
		case 0x1E:
			if ((high >> 63) != 0)
				sum->nminus += sign;
			else
				sum->ninfinity += sign;
			return;
		default:
			break;
	}
	if (((high >> 61) & 3) == 3)
	{
		exponent = (int) ((high >> 47) & 0x3FFF);
		words[0] = words[1] = 0;
	}
	else if (words[1] > limit_high || (words[1] == limit_high && words[0] >= limit_low))
		words[0] = words[1] = 0;
	if (((high >> 63) != 0) != (sign < 0))
		words_negate(words);
	decimal_add(sum, exponent + EXPONENT_LEAST, sign, words);
}

/* The decimals of one exponent as a numeric. */
static Datum
decimal_to_numeric(const DpDecimalSum *part)
{
	uint64 words[3] = { part->words[0], part->words[1], part->words[2] };
	bool negative = (words[2] >> 63) != 0;
	char text[96];
	char *p = text + 80;

	if (negative)
		words_negate(words);
	snprintf(p, 16, "e%d", part->exponent);
	do
	{
		uint64 rest = 0;

		/* by 10, in halves of 32 bits */
		for (int i = 2; i >= 0; i--)
		{
			uint64 upper = (rest << 32) | (words[i] >> 32);
			uint64 lower;

			rest = upper % 10;
			lower = (rest << 32) | (words[i] & 0xFFFFFFFF);
			rest = lower % 10;
			words[i] = ((upper / 10) << 32) | (lower / 10);
		}
		*--p = '0' + (char) rest;
	} while ((words[0] | words[1] | words[2]) != 0);
	if (negative)
		*--p = '-';
	return DirectFunctionCall3(numeric_in, CStringGetDatum(p), ObjectIdGetDatum(InvalidOid),
							   Int32GetDatum(-1));
}

/* ---------------------------------------------------------------- adding */

bool
dp_exact_sum_add_value(DpExactSum *sum, const DpValue *v, int sign)
{
	int64 i;
	double d;

	switch (v->type)
	{
		case DP_TYPE_INT32:
			i = sign < 0 ? -(int64) dp_get_int32(v->data) : dp_get_int32(v->data);
			dp_exact_sum_add_integer(sum, i < 0 ? -1 : 0, (uint64) i);
			break;
		case DP_TYPE_INT64:
			i = dp_get_int64(v->data);
			sum->nint64 += sign;
			if (sign > 0)
				dp_exact_sum_add_integer(sum, i < 0 ? -1 : 0, (uint64) i);
			else if (i != 0)
				dp_exact_sum_add_integer(sum, i < 0 ? 0 : -1, -(uint64) i);
			break;
		case DP_TYPE_DOUBLE:
			d = dp_get_double(v->data);
			sum->ndouble += sign;
			if (likely(isfinite(d)))
				dp_big_add_double(&sum->doubles, d, sign);
			else if (isnan(d))
				sum->nnan += sign;
			else if (d < 0)
				sum->nminus += sign;
			else
				sum->ninfinity += sign;
			break;
		case DP_TYPE_DECIMAL128:
			decimal_add_value(sum, v->data, sign);
			break;
		default:
			return false;
	}
	sum->n += sign;
	return true;
}

void
dp_exact_sum_add(DpExactSum *sum, const DpExactSum *other)
{
	sum->n += other->n;
	sum->nint64 += other->nint64;
	sum->ndouble += other->ndouble;
	sum->ndecimal += other->ndecimal;
	sum->nnan += other->nnan;
	sum->ninfinity += other->ninfinity;
	sum->nminus += other->nminus;
	dp_exact_sum_add_integer(sum, other->high, other->low);
	dp_big_add(&sum->doubles, &other->doubles, 1);
	for (int i = 0; i < other->ndecimals; i++)
		decimal_add(sum, other->decimals[i].exponent, other->decimals[i].count,
					other->decimals[i].words);
}

bool
dp_exact_sum_is_zero(const DpExactSum *sum)
{
	return sum->n == 0 && sum->nint64 == 0 && sum->ndouble == 0 && sum->ndecimal == 0 &&
		   sum->nnan == 0 && sum->ninfinity == 0 && sum->nminus == 0 && sum->high == 0 &&
		   sum->low == 0 && sum->ndecimals == 0 && dp_big_is_zero(&sum->doubles);
}

/* Whether the integers fit 64 bits: the upper half is all sign. */
static inline bool
integers_fit(const DpExactSum *sum)
{
	return sum->high == ((int64) sum->low < 0 ? -1 : 0);
}

bool
dp_exact_sum_integer(const DpExactSum *sum, int64 *i)
{
	*i = (int64) sum->low;
	return sum->ndouble == 0 && sum->ndecimal == 0 && integers_fit(sum);
}

/* ---------------------------------------------------------------- results */

/* The special number that there are some of: NaN, an infinity, or 0. */
static double
special_total(const DpExactSum *sum)
{
	if (sum->nnan > 0 || (sum->ninfinity > 0 && sum->nminus > 0))
		return NAN;
	return sum->ninfinity > 0 ? INFINITY : sum->nminus > 0 ? -INFINITY : 0;
}

/* The sum of integers and doubles, rounded once. */
static double
double_total(const DpExactSum *sum)
{
	double special = special_total(sum);
	DpBigSum total;

	if (special != 0)
		return special;
	dp_big_init(&total, CurrentMemoryContext);
	dp_big_add(&total, &sum->doubles, 1);
	dp_big_add_int128(&total, sum->high, sum->low, 1);
	special = dp_big_to_double(&total);
	dp_big_free(&total);
	return special;
}

/* The sum of all as a numeric, and the digits after the point that decimals have. */
static Numeric
numeric_total(const DpExactSum *sum, int *scale)
{
	DpBigSum binary;
	Datum total;

	*scale = 0;
	dp_big_init(&binary, CurrentMemoryContext);
	dp_big_add(&binary, &sum->doubles, 1);
	dp_big_add_int128(&binary, sum->high, sum->low, 1);
	total = NumericGetDatum(dp_big_to_numeric(&binary));
	dp_big_free(&binary);
	for (int i = 0; i < sum->ndecimals; i++)
	{
		total = DirectFunctionCall2(numeric_add, total, decimal_to_numeric(&sum->decimals[i]));
		*scale = Max(*scale, -sum->decimals[i].exponent);
	}
	return DatumGetNumeric(total);
}

/* A double as a value; NaN always with the same bytes, on any processor. */
static void
result_of_double(double d, DpValue *result, uint8 *room)
{
	if (isnan(d))
		dp_put_int64(room, DP_DOUBLE_NAN);
	else
		dp_put_double(room, d);
	result->type = DP_TYPE_DOUBLE;
	result->data = room;
	result->len = 8;
}

/* A decimal that is NaN or an infinity as a value. */
static void
result_of_special(double d, DpValue *result, uint8 *room)
{
	const char *text = isnan(d) ? "NaN" : d < 0 ? "-Infinity" : "Infinity";

	(void) dp_decimal128_from_text(text, strlen(text), room);
	result->type = DP_TYPE_DECIMAL128;
	result->data = room;
	result->len = DP_DECIMAL128_SIZE;
}

void
dp_exact_sum_total(const DpExactSum *sum, DpValue *result, uint8 room[DP_SUM_RESULT_SIZE])
{
	result->data = room;
	if (sum->ndecimal > 0)
	{
		double special = special_total(sum);
		DpExact e;
		int scale;

		if (special != 0)
		{
			result_of_special(special, result, room);
			return;
		}
		dp_exact_from_numeric(numeric_total(sum, &scale), &e);
		dp_exact_round_to_decimal128(&e, scale, room);
		result->type = DP_TYPE_DECIMAL128;
		result->len = DP_DECIMAL128_SIZE;
	}
	else if (sum->ndouble > 0 || !integers_fit(sum))
		result_of_double(double_total(sum), result, room);
	else
	{
		int64 i = (int64) sum->low;

		if (sum->nint64 > 0 || i < PG_INT32_MIN || i > PG_INT32_MAX)
		{
			dp_put_int64(room, i);
			result->type = DP_TYPE_INT64;
			result->len = 8;
		}
		else
		{
			dp_put_int32(room, (int32) i);
			result->type = DP_TYPE_INT32;
			result->len = 4;
		}
	}
}

/*
 * The quotient of a decimal sum: long division, to more digits than a decimal128 has, with a last
 * one that represents the rest.
 */
static void
divide_decimal(Numeric total, int64 count, int scale, uint8 *room)
{
	uint8 quotient[40];
	DpExact e;
	int n = 0;
	int taken = 0;
	uint64 rest = 0;

	dp_exact_from_numeric(total, &e);
	if (e.ndigits > 0)
	{
		/*
		 * the quotient's point stands as many digits behind the total's as are taken before its
		 * first digit
		 */
		while (n < (int) lengthof(quotient) - 1 && (taken < e.ndigits || rest != 0))
		{
			rest = rest * 10 + (taken < e.ndigits ? e.digits[taken] : 0);
			taken++;
			if (n == 0 && rest < (uint64) count)
				e.point--;
			else
				quotient[n++] = (uint8) (rest / count);
			rest %= count;
		}
		if (rest != 0 || taken < e.ndigits)
			quotient[n++] = 1;
		while (n > 0 && quotient[n - 1] == 0)
			n--;
		e.digits = quotient;
		e.ndigits = n;
	}
	dp_exact_round_to_decimal128(&e, scale, room);
}

void
dp_exact_sum_average(const DpExactSum *sum, DpValue *result, uint8 room[DP_SUM_RESULT_SIZE])
{
	double special = special_total(sum);
	int scale;

	if (sum->n <= 0)
	{
		result->type = DP_TYPE_NULL;
		result->data = room;
		result->len = 0;
	}
	else if (sum->ndecimal <= 0)
		result_of_double(double_total(sum) / (double) sum->n, result, room);
	else if (special != 0)
		result_of_special(special, result, room);
	else
	{
		Numeric total = numeric_total(sum, &scale);

		divide_decimal(total, sum->n, scale, room);
		result->type = DP_TYPE_DECIMAL128;
		result->data = room;
		result->len = DP_DECIMAL128_SIZE;
	}
}

/* ---------------------------------------------------------------- bytes */

/*
 * The integer as varint 2 * bytes + (negative ? 1 : 0) and the bytes of its magnitude, the least
 * first.
 */
static void
words_pack(StringInfo out, const uint64 *from, int nwords)
{
	uint64 words[3] = { 0, 0, 0 };
	uint8 bytes[24];
	bool negative = (from[nwords - 1] >> 63) != 0;
	int n = sizeof(bytes);

	for (int i = 0; i < 3; i++)
		words[i] = i < nwords ? from[i] : negative ? ~UINT64CONST(0) : 0;
	if (negative)
		words_negate(words);
	for (int i = 0; i < 3; i++)
		dp_put_int64(bytes + 8 * i, (int64) words[i]);
	while (n > 0 && bytes[n - 1] == 0)
		n--;
	dp_pack_varint(out, 2 * n + (negative ? 1 : 0));
	appendBinaryStringInfo(out, (char *) bytes, n);
}

/* Reads what words_pack() wrote: an integer of at most size bytes. */
static void
words_unpack(DpPacked *p, uint64 words[3], uint64 size)
{
	uint64 head = dp_unpack_varint(p);
	uint64 n = head >> 1;
	uint8 bytes[24] = { 0 };
	const uint8 *from = dp_unpack_bytes(p, n);

	if (n > size || head == 1 || (n > 0 && from[n - 1] == 0) ||
		(n == size && (from[n - 1] & 0x80) != 0))
		dp_corrupted("a packed sum is out of range");
	memcpy(bytes, from, n);
	for (int i = 0; i < 3; i++)
		words[i] = (uint64) dp_get_int64(bytes + 8 * i);
	if ((head & 1) != 0)
		words_negate(words);
}

void
dp_exact_sum_pack(StringInfo out, const DpExactSum *sum, bool count, bool integers)
{
	uint8 parts = 0;

	if (count && sum->n != 0)
		parts |= PART_COUNT;
	if (sum->nint64 != 0)
		parts |= PART_INT64;
	if (sum->ndouble != 0 || !dp_big_is_zero(&sum->doubles))
		parts |= PART_DOUBLE;
	if (sum->nnan != 0 || sum->ninfinity != 0 || sum->nminus != 0)
		parts |= PART_SPECIAL;
	if (integers && (sum->low != 0 || sum->high != 0))
		parts |= PART_INTEGERS;
	if (sum->ndecimal != 0 || sum->ndecimals != 0)
		parts |= PART_DECIMALS;

	appendStringInfoChar(out, (char) parts);
	if (parts & PART_COUNT)
		dp_pack_signed(out, sum->n);
	if (parts & PART_INT64)
		dp_pack_signed(out, sum->nint64);
	if (parts & PART_DOUBLE)
	{
		dp_pack_signed(out, sum->ndouble);
		dp_big_pack(out, &sum->doubles);
	}
	if (parts & PART_SPECIAL)
	{
		dp_pack_signed(out, sum->nnan);
		dp_pack_signed(out, sum->ninfinity);
		dp_pack_signed(out, sum->nminus);
	}
	if (parts & PART_INTEGERS)
	{
		uint64 words[2] = { sum->low, (uint64) sum->high };

		words_pack(out, words, 2);
	}
	if (parts & PART_DECIMALS)
	{
		dp_pack_signed(out, sum->ndecimal);
		dp_pack_varint(out, sum->ndecimals);
		for (int i = 0; i < sum->ndecimals; i++)
		{
			dp_pack_signed(out, sum->decimals[i].exponent);
			dp_pack_signed(out, sum->decimals[i].count);
			words_pack(out, sum->decimals[i].words, 3);
		}
	}
}

/* Adds a packed count to one of those of a sum. */
static void
count_unpack(DpPacked *p, int64 *count)
{
	if (pg_add_s64_overflow(*count, dp_unpack_signed(p), count))
		dp_corrupted("a packed count is out of range");
}

void
dp_exact_sum_unpack(DpExactSum *sum, DpPacked *p)
{
	uint8 parts = dp_unpack_byte(p);
	uint64 words[3];

	if ((parts & ~PART_ALL) != 0)
		dp_corrupted("a packed sum has unknown parts");
	if (parts & PART_COUNT)
		count_unpack(p, &sum->n);
	if (parts & PART_INT64)
		count_unpack(p, &sum->nint64);
	if (parts & PART_DOUBLE)
	{
		count_unpack(p, &sum->ndouble);
		dp_big_unpack(&sum->doubles, p);
	}
	if (parts & PART_SPECIAL)
	{
		count_unpack(p, &sum->nnan);
		count_unpack(p, &sum->ninfinity);
		count_unpack(p, &sum->nminus);
	}
	if (parts & PART_INTEGERS)
	{
		words_unpack(p, words, 16);
		dp_exact_sum_add_integer(sum, (int64) words[1], words[0]);
	}
	if (parts & PART_DECIMALS)
	{
		uint64 n;

		count_unpack(p, &sum->ndecimal);
		n = dp_unpack_varint(p);
		if (n > EXPONENT_GREATEST - EXPONENT_LEAST + 1)
			dp_corrupted("a packed sum is out of range");
		while (n-- > 0)
		{
			int64 exponent = dp_unpack_signed(p);
			int64 count = dp_unpack_signed(p);

			words_unpack(p, words, 24);
			if (exponent < EXPONENT_LEAST || exponent > EXPONENT_GREATEST ||
				count > PG_INT64_MAX / 4 || count < PG_INT64_MIN / 4)
				dp_corrupted("a packed sum is out of range");
			decimal_add(sum, (int32) exponent, count, words);
		}
	}
}
