/*
 * codec_float.c
 *		Floating-point columns.
 *
 * Sensor values have few decimals: 21.5 is 215 / 10.  If there is a scale at which every double is
 * an integer divided by a power of ten, bit for bit, the integers are packed (form INTS, see
 * codec_int.c).  A few exceptions (NaN, infinities, -0.0, a result of arithmetic) are stored beside
 * the integers (form EXCEPTIONS).  Otherwise each double is combined by exclusive or with the
 * previous one (form XOR), or stored unchanged (form PLAIN).
 *
 * XOR: the first double, 64 bits (32 for floats); then for each
 *		0			the same as the previous one
 *		10 bits		as many bits, at the same position, as the last time
 *		11 lz len bits	lz leading zeros and len + 1 significant bits, lz and len of
 *					6 bits each (5 for floats)
 */
#include "postgres.h"

#include <math.h>

#include "port/pg_bitutils.h"

#include "types/bucket/format.h"

/* Integers up to here are exact in a double, also when one half is added. */
#define MAX_SCALED 2251799813685248.0 /* 2^51 */

/* Adding and subtracting this rounds to an integer. */
#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52 */

const double dp_power10[DP_MAX_SCALE + 1] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,
											  1e7,  1e8,  1e9,  1e10, 1e11, 1e12, 1e13,
											  1e14, 1e15, 1e16, 1e17, 1e18 };

typedef struct XorWriter
{
	StringInfo out;
	uint8 byte;
	int used;
} XorWriter;

static inline uint64
bits_of(double d)
{
	uint64 u;

	memcpy(&u, &d, sizeof(u));
	return u;
}

static inline uint64
pattern_of(double d, bool single)
{
	float f;
	uint32 u;

	if (!single)
		return bits_of(d);
	f = (float) d;
	memcpy(&u, &f, sizeof(u));
	return u;
}

static inline double
double_of(uint64 pattern, bool single)
{
	uint32 u = (uint32) pattern;
	float f;
	double d;

	if (single)
	{
		memcpy(&f, &u, sizeof(f));
		return f;
	}
	memcpy(&d, &pattern, sizeof(d));
	return d;
}

/*
 * Whether the double is an integer divided by 10^scale; sets the integer.
 */
static inline bool
scaled(double v, int scale, bool single, int64 *result)
{
	double x = v * dp_power10[scale];
	double back;

	if (!(fabs(x) <= MAX_SCALED))
		return false;
	x = (x + ROUNDER) - ROUNDER;
	back = x / dp_power10[scale];
	if (single ? (float) back != (float) v : back != v)
		return false;
	if (x == 0 && signbit(v))
		return false;
	*result = (int64) x;
	return true;
}

/*
 * The scales that single values need are counted.  A scale that only a few need
 * and that would make the integers of the others long is left to exceptions.
 */
int
dp_floats_scale(const double *values, int n, bool single, int64 *ints, int *exceptions,
				int *nexceptions)
{
	int need[DP_MAX_SCALE + 1] = { 0 };
	int limit = n / 8;
	int never = 0;
	int scale = 0;
	int most = 0;
	int covered;

	for (int i = 0; i < n; i++)
	{
		int s = scale;

		if (likely(scaled(values[i], s, single, &ints[i])))
		{
			need[s]++;
			continue;
		}
		do
			s++;
		while (s <= DP_MAX_SCALE && !scaled(values[i], s, single, &ints[i]));
		if (s > DP_MAX_SCALE)
		{
			if (++never > limit || never > 8 + i / 4)
				return -1;
			continue;
		}
		need[s]++;
		most = Max(most, s);
		if (s <= scale + 3 || i < 8)
			scale = s;
	}
	covered = n - never;
	if (covered == 0)
		return -1;
	scale = most;
	for (int s = most, left = 0; s > 0; s--)
	{
		left += need[s];
		if (left + never > limit)
			break;
		/* about 10 bytes for an exception, 0.4 for a digit */
		if (left * 10 < (most - s + 1) * 2 * n / 5)
			scale = s - 1;
	}
	*nexceptions = 0;
	for (int i = 0; i < n; i++)
	{
		if (scaled(values[i], scale, single, &ints[i]))
			continue;
		if (*nexceptions >= limit)
			return -1;
		exceptions[(*nexceptions)++] = i;
		ints[i] = i > 0 ? ints[i - 1] : 0;
	}
	/* leading exceptions repeat the first value that is not one */
	if (*nexceptions > 0 && exceptions[0] == 0)
	{
		int k = 0;

		while (k < *nexceptions && exceptions[k] == k)
			k++;
		for (int i = 0; i < k; i++)
			ints[i] = ints[k];
	}
	return scale;
}

static void
put_pattern(StringInfo out, uint64 pattern, bool single)
{
	if (single)
		dp_put_int32(dp_put_room(out, 4), (int32) pattern);
	else
		dp_put_int64(dp_put_room(out, 8), (int64) pattern);
}

void
dp_floats_encode_exceptions(StringInfo out, const double *values, int n, bool single,
							const int64 *ints, const int *exceptions, int nexceptions)
{
	int64 *positions = palloc_array(int64, nexceptions);

	for (int i = 0; i < nexceptions; i++)
		positions[i] = exceptions[i];
	dp_put_varint(out, nexceptions);
	dp_ints_encode_sized(out, positions, nexceptions, 0);
	for (int i = 0; i < nexceptions; i++)
		put_pattern(out, pattern_of(values[exceptions[i]], single), single);
	dp_ints_encode(out, ints, n, 0);
	pfree(positions);
}

static void
xor_put(XorWriter *w, uint64 v, int width)
{
	while (width > 0)
	{
		int take = Min(8 - w->used, width);

		w->byte |= (uint8) ((v & ((1 << take) - 1)) << w->used);
		v >>= take;
		w->used += take;
		width -= take;
		if (w->used == 8)
		{
			dp_put_byte(w->out, w->byte);
			w->byte = 0;
			w->used = 0;
		}
	}
}

/*
 * Appends the doubles in the form XOR, or PLAIN if that is not longer.
 */
DpForm
dp_floats_encode(StringInfo out, const double *values, int n, bool single)
{
	int width = single ? 32 : 64;
	int wide = single ? 5 : 6;
	int start = out->len;
	int lead = 0;
	int len = 0;
	uint64 last = 0;
	XorWriter w = { out, 0, 0 };

	for (int i = 0; i < n; i++)
	{
		uint64 pattern = pattern_of(values[i], single);
		uint64 x = pattern ^ last;
		int high;
		int low;

		last = pattern;
		if (i == 0)
		{
			xor_put(&w, pattern, width);
			continue;
		}
		if (x == 0)
		{
			xor_put(&w, 0, 1);
			continue;
		}
		high = width - 1 - pg_leftmost_one_pos64(x);
		low = pg_rightmost_one_pos64(x);
		xor_put(&w, 1, 1);
		if (len > 0 && high >= lead && width - low <= lead + len &&
			(width - low - high) + 2 * wide >= len)
			xor_put(&w, 0, 1);
		else
		{
			xor_put(&w, 1, 1);
			lead = high;
			len = width - low - high;
			xor_put(&w, lead, wide);
			xor_put(&w, len - 1, wide);
		}
		xor_put(&w, x >> (width - lead - len), len);
	}
	if (w.used > 0)
		dp_put_byte(out, w.byte);
	if (out->len - start < n * (width / 8))
		return DP_FORM_XOR;

	out->len = start;
	for (int i = 0; i < n; i++)
		put_pattern(out, pattern_of(values[i], single), single);
	return DP_FORM_PLAIN;
}

void
dp_floats_unscale(int64 *values, int n, int scale, bool single)
{
	double *d = (double *) values;
	double power = dp_power10[scale];

	if (single)
	{
		for (int i = 0; i < n; i++)
			d[i] = (float) ((double) values[i] / power);
	}
	else if (scale == 0)
	{
		for (int i = 0; i < n; i++)
			d[i] = (double) values[i];
	}
	else
	{
		for (int i = 0; i < n; i++)
			d[i] = (double) values[i] / power;
	}
}

/*
 * Bits are taken from the cursor's bytes; bit is the next one's number.
 */
static inline uint64
xor_get(const DpCursor *c, uint64 *bit, int width)
{
	const uint8 *p = c->p + (*bit >> 3);
	int shift = *bit & 7;
	uint64 v;

	if (unlikely(*bit + width > (uint64) (c->end - c->p) * 8))
		dp_bucket_corrupted("It ends too early.");
	if (likely(c->end - p >= 9))
	{
		v = (uint64) dp_get_int64(p) >> shift;
		if (shift + width > 64)
			v |= (uint64) p[8] << (64 - shift);
	}
	else
	{
		v = 0;
		for (int i = 0; i < c->end - p; i++)
		{
			int at = 8 * i - shift;

			if (at >= 64)
				break;
			v |= at < 0 ? (uint64) p[i] >> -at : (uint64) p[i] << at;
		}
	}
	*bit += width;
	return width == 64 ? v : v & ((UINT64CONST(1) << width) - 1);
}

static void
decode_xor(DpCursor c, int n, bool single, double *values)
{
	int width = single ? 32 : 64;
	int wide = single ? 5 : 6;
	uint64 bit = 0;
	int lead = 0;
	int len = 0;
	uint64 last = 0;

	for (int i = 0; i < n; i++)
	{
		if (i == 0)
			last = xor_get(&c, &bit, width);
		else if (xor_get(&c, &bit, 1) != 0)
		{
			if (xor_get(&c, &bit, 1) != 0)
			{
				lead = (int) xor_get(&c, &bit, wide);
				len = (int) xor_get(&c, &bit, wide) + 1;
				if (lead + len > width)
					dp_bucket_corrupted("A number has too many bits.");
			}
			else if (len == 0)
				dp_bucket_corrupted("A number has no bits.");
			last ^= xor_get(&c, &bit, len) << (width - lead - len);
		}
		values[i] = double_of(last, single);
	}
	if ((bit + 7) / 8 != (uint64) (c.end - c.p))
		dp_bucket_corrupted("There are bytes that belong to nothing.");
}

static void
decode_plain(DpCursor *c, int n, bool single, double *values)
{
	const uint8 *p = dp_cursor_bytes(c, (Size) n * (single ? 4 : 8));

	for (int i = 0; i < n; i++)
	{
		if (single)
			values[i] = double_of((uint32) dp_get_int32(p + 4 * (Size) i), true);
		else
			values[i] = dp_get_double(p + 8 * (Size) i);
	}
}

static void
decode_exceptions(DpCursor c, int scale, int n, bool single, double *values)
{
	int nexceptions = dp_cursor_size(&c, n);
	int64 *positions = palloc_array(int64, nexceptions + 1);
	double *odd = palloc_array(double, nexceptions + 1);

	dp_ints_decode_sized(&c, nexceptions, 0, positions);
	decode_plain(&c, nexceptions, single, odd);
	dp_ints_decode(c, n, 0, (int64 *) values);
	dp_floats_unscale((int64 *) values, n, scale, single);
	for (int i = 0; i < nexceptions; i++)
	{
		if (positions[i] < 0 || positions[i] >= n)
			dp_bucket_corrupted("The position of a number is wrong.");
		values[positions[i]] = odd[i];
	}
	pfree(positions);
	pfree(odd);
}

/*
 * Decodes all forms of doubles but INTS, whose base only the header knows.
 */
void
dp_floats_decode(DpCursor c, DpForm form, int scale, int n, bool single, double *values)
{
	switch (form)
	{
		case DP_FORM_EXCEPTIONS:
			decode_exceptions(c, scale, n, single, values);
			break;
		case DP_FORM_XOR:
			decode_xor(c, n, single, values);
			break;
		case DP_FORM_PLAIN:
			decode_plain(&c, n, single, values);
			dp_cursor_done(&c);
			break;
		default:
			dp_bucket_corrupted("Numbers are not packed in that way.");
	}
}
