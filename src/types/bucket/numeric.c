/*
 * numeric.c
 *		Numerics as an integer and a number of digits after the point.
 *
 * Reading them from their digits, ten thousand to each, is much faster than
 * from their text.  The layout is the one that PostgreSQL has on disk.
 */
#include "postgres.h"

#include "common/int.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "types/bucket/format.h"

/* Limits of numerics: digits before the point, and after it */
#define MAX_WHOLE_DIGITS 131072
#define MAX_FRACTION 16383

#define HEADER_KIND 0xC000
#define HEADER_SPECIAL 0xC000 /* NaN and the infinities */
#define HEADER_SHORT 0x8000
#define HEADER_NEGATIVE 0x4000

const int64 dp_power10_int64[DP_MAX_SCALE + 1] = { INT64CONST(1),
												   INT64CONST(10),
												   INT64CONST(100),
												   INT64CONST(1000),
												   INT64CONST(10000),
												   INT64CONST(100000),
												   INT64CONST(1000000),
												   INT64CONST(10000000),
												   INT64CONST(100000000),
												   INT64CONST(1000000000),
												   INT64CONST(10000000000),
												   INT64CONST(100000000000),
												   INT64CONST(1000000000000),
												   INT64CONST(10000000000000),
												   INT64CONST(100000000000000),
												   INT64CONST(1000000000000000),
												   INT64CONST(10000000000000000),
												   INT64CONST(100000000000000000),
												   INT64CONST(1000000000000000000) };

/*
 * The numeric (detoasted) as value / 10^scale, its display scale.  Returns false
 * if it is not finite or does not fit.
 */
bool
dp_numeric_to_decimal(Datum numeric, int64 *value, uint8 *scale)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(numeric);
	const char *p = VARDATA_ANY(v);
	int size = VARSIZE_ANY_EXHDR(v);
	uint16 head;
	int dscale;
	int weight;
	bool negative;
	int ndigits;
	int shift;
	int64 acc = 0;

	if (size < (int) sizeof(uint16))
		return false;
	memcpy(&head, p, sizeof(head));
	if ((head & HEADER_KIND) == HEADER_SPECIAL)
		return false;
	if ((head & HEADER_KIND) == HEADER_SHORT)
	{
		negative = (head & 0x2000) != 0;
		dscale = (head & 0x1F80) >> 7;
		weight = (head & 0x40) != 0 ? (int) (head & 0x3F) - 64 : (int) (head & 0x3F);
		p += sizeof(uint16);
		ndigits = (size - (int) sizeof(uint16)) / 2;
	}
	else
	{
		int16 w;

		if (size < (int) (2 * sizeof(uint16)))
			return false;
		negative = (head & HEADER_KIND) == HEADER_NEGATIVE;
		dscale = head & 0x3FFF;
		memcpy(&w, p + sizeof(uint16), sizeof(w));
		weight = w;
		p += 2 * sizeof(uint16);
		ndigits = (size - (int) (2 * sizeof(uint16))) / 2;
	}
	if (dscale > DP_MAX_SCALE)
		return false;

	for (int i = 0; i < ndigits; i++)
	{
		int16 digit;

		memcpy(&digit, p + i * sizeof(int16), sizeof(digit));
		if (pg_mul_s64_overflow(acc, 10000, &acc) || pg_add_s64_overflow(acc, digit, &acc))
			return false;
	}
	shift = 4 * (weight - ndigits + 1) + dscale;
	if (ndigits == 0)
		acc = 0;
	else if (shift > DP_MAX_SCALE || shift < -DP_MAX_SCALE)
		return false;
	else if (shift >= 0)
	{
		if (pg_mul_s64_overflow(acc, dp_power10_int64[shift], &acc))
			return false;
	}
	else
	{
		if (acc % dp_power10_int64[-shift] != 0)
			return false;
		acc /= dp_power10_int64[-shift];
	}
	*value = negative ? -acc : acc;
	*scale = (uint8) dscale;
	return true;
}

/* The numeric value / 10^scale with that display scale, palloc'd. */
Datum
dp_decimal_to_numeric(int64 value, int scale)
{
	if (scale == 0)
		return NumericGetDatum(int64_to_numeric(value));
	return NumericGetDatum(int64_div_fast_to_numeric(value, scale));
}

/*
 * The numeric whose text numeric_out wrote, palloc'd.  Anything else raises
 * DATA_CORRUPTED.
 */
Datum
dp_text_to_numeric(DpString s)
{
	const char *p = (const char *) s.data;
	const char *end = p + s.len;
	const char *point = NULL;
	char *text;
	Datum d;

	if (s.len > 0 && *p == '-')
		p++;
	if (!(end - p == 3 && memcmp(p, "NaN", 3) == 0) &&
		!(end - p == 8 && memcmp(p, "Infinity", 8) == 0))
	{
		const char *first = p;

		for (; p < end; p++)
		{
			if (*p == '.' && point == NULL && p > first)
				point = p;
			else if (*p < '0' || *p > '9')
				break;
		}
		if (p < end || p == first || (point != NULL ? point : end) - first > MAX_WHOLE_DIGITS ||
			(point != NULL && (end - point == 1 || end - point - 1 > MAX_FRACTION)))
			dp_bucket_corrupted("A number is not one.");
	}
	text = pnstrdup((const char *) s.data, s.len);
	d = DirectFunctionCall3(numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
							Int32GetDatum(-1));
	pfree(text);
	return d;
}
