/*
 * codec_int.c
 *		Streams of integers: times, integers, scaled decimals, and the lengths,
 *		positions and codes of everything else.
 *
 * The first byte is the codec, with its width in bits where it has one:
 *
 *		0 .. 64		LINEAR		values lie on a line: v[i] = start + i * step + bits
 *		65 .. 129	DELTA		v[i] = v[i - 1] + step + bits
 *		130 .. 193	SPARSE		most values are v[i - 1] + step: a bitmap of n - 1
 *								bits marks the others, whose differences d from
 *								that, in zigzag and less 1, follow in bits
 *		194 .. 225	RICE		d in zigzag, in Rice code: q ones, a zero, k bits,
 *								q << k | bits; 24 ones are followed by 64 bits
 *		226			RUNS		runs of the same value
 *		227			SLOPES		runs of the same difference
 *		228			MULTIPLES	v[i] = start + factor * integers
 *
 *	LINEAR		zigzag start - base; zigzag step unless n is 1; n * width bits
 *	DELTA, SPARSE, RICE
 *				zigzag v[0] - base; zigzag step; see above
 *	RUNS		varint number of runs; varint size and integers: values; integers:
 *				lengths of the runs less 1
 *	SLOPES		zigzag v[0] - base; as RUNS, of the n - 1 differences
 *	MULTIPLES	varint factor; zigzag start - base; integers (not MULTIPLES)
 *
 * Bits fill bytes from the least significant.  Arithmetic is modulo 2^64, so
 * every sequence of int64 can be encoded.  A stream of no values has no bytes,
 * not even the first.  Encoding computes the size that each codec would give
 * and takes the smallest; RICE, which is slower to read, only where it saves a
 * quarter.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "types/bucket/format.h"

#define CODEC_LINEAR 0
#define CODEC_DELTA 65
#define CODEC_SPARSE 130
#define CODEC_RICE 194
#define CODEC_RUNS 226
#define CODEC_SLOPES 227
#define CODEC_MULTIPLES 228

#define RICE_MAX_K 31
#define RICE_ESCAPE 24

/* What the encoder knows of the values */
typedef struct Facts
{
	int64 base;
	/* LINEAR through both ends, and level */
	int64 line_step;
	int64 line_start;
	int line_width;
	int64 min;
	int level_width;
	/* DELTA */
	int64 min_delta;
	int delta_width;
	/* SPARSE and RICE */
	int64 step;
	int nodd;
	int odd_width;
	int k;
	uint64 rice_bits;
	/* RUNS and SLOPES */
	int nruns;
	int nslopes;
	/* MULTIPLES */
	uint64 factor;
} Facts;

static void encode(StringInfo out, const int64 *v, int n, int64 base, int level);
static void decode(DpCursor c, int n, int64 base, int64 *v, int level);

static inline uint64
delta_of(const int64 *v, int i)
{
	return (uint64) v[i + 1] - (uint64) v[i];
}

/* The bits that hold all numbers from 0 to v. */
static inline int
bits_for(uint64 v)
{
	return v == 0 ? 0 : pg_leftmost_one_pos64(v) + 1;
}

static inline Size
bytes_for(uint64 bits)
{
	return (bits + 7) / 8;
}

static int
varint_size(uint64 v)
{
	return v == 0 ? 1 : (bits_for(v) + 6) / 7;
}

static int
zigzag_size(uint64 v)
{
	return varint_size(dp_zigzag((int64) v));
}

/* ---------------------------------------------------------------- bits */

/* Writes numbers of some bits into bytes that are 0. */
typedef struct BitWriter
{
	uint8 *p;
	uint64 word;
	int used;
} BitWriter;

static inline void
put_bits(BitWriter *w, uint64 v, int width)
{
	if (width == 0)
		return;
	w->word |= v << w->used;
	w->used += width;
	if (w->used >= 64)
	{
		dp_put_int64(w->p, (int64) w->word);
		w->p += 8;
		w->used -= 64;
		w->word = w->used == 0 ? 0 : v >> (width - w->used);
	}
}

static void
flush_bits(BitWriter *w)
{
	while (w->used > 0)
	{
		*w->p++ = (uint8) w->word;
		w->word >>= 8;
		w->used -= 8;
	}
	w->used = 0;
	w->word = 0;
}

static BitWriter
begin_bits(StringInfo out, uint64 bits)
{
	BitWriter w;

	w.p = dp_put_room(out, bytes_for(bits));
	w.word = 0;
	w.used = 0;
	return w;
}

/* width bits that begin at bit number pos; up to 8 bytes more must be readable. */
static inline uint64
load_bits(const uint8 *p, uint64 pos, int width, uint64 mask)
{
	const uint8 *q = p + (pos >> 3);
	int shift = pos & 7;
	uint64 v = (uint64) dp_get_int64(q) >> shift;

	if (width > 57 && shift + width > 64)
		v |= (uint64) q[8] << (64 - shift);
	return v & mask;
}

/*
 * Unpacks n numbers of width bits from the nbytes bytes at p: those that can be
 * read eight bytes at a time from there, the last few from a copy.
 */
static void
unpack_bits(const uint8 *p, Size nbytes, int n, int width, int64 *v)
{
	uint64 mask = width == 64 ? ~UINT64CONST(0) : (UINT64CONST(1) << width) - 1;
	uint8 tail[32];
	int safe = 0;
	int i = 0;
	uint64 from;
	Size left;

	if (width == 0)
	{
		memset(v, 0, sizeof(int64) * n);
		return;
	}
	/* number i ends before bit (i + 1) * width and reads up to 9 bytes from where it begins */
	if (nbytes >= 9)
		safe = (int) Min((uint64) n, ((uint64) (nbytes - 9) * 8) / width + 1);
	if (width <= 57)
	{
		uint64 pos = 0;

		for (; i < safe; i++, pos += width)
			v[i] = (int64) (((uint64) dp_get_int64(p + (pos >> 3)) >> (pos & 7)) & mask);
	}
	else
	{
		for (; i < safe; i++)
			v[i] = (int64) load_bits(p, (uint64) i * width, width, mask);
	}
	if (i == n)
		return;
	from = ((uint64) i * width) >> 3;
	left = nbytes - from;
	Assert(left <= 17);
	memset(tail, 0, sizeof(tail));
	memcpy(tail, p + from, left);
	for (; i < n; i++)
		v[i] = (int64) load_bits(tail, (uint64) i * width - from * 8, width, mask);
}

/* ---------------------------------------------------------------- encoding */

/*
 * The greatest common divisor of a and b.
 */
static uint64
gcd(uint64 a, uint64 b)
{
	while (b != 0)
	{
		uint64 t = a % b;

		a = b;
		b = t;
	}
	return a;
}

/*
 * The differences that are not the step: how many, and how wide.
 */
static void
count_odd(Facts *f, const int64 *v, int n)
{
	uint64 max = 0;

	f->nodd = 0;
	for (int i = 0; i < n - 1; i++)
	{
		uint64 z = dp_zigzag((int64) (delta_of(v, i) - (uint64) f->step));

		if (z != 0)
		{
			f->nodd++;
			max = Max(max, z - 1);
		}
	}
	f->odd_width = bits_for(max);
}

/*
 * Collects facts in one pass over the values and their differences, and a second one over the
 * remainders after the steps that the first one suggests.
 */
static void
find_facts(Facts *f, const int64 *v, int n, int64 base)
{
	int64 max = v[0];
	int64 max_delta;
	int64 line_max;
	int votes = 0;
	uint64 last = 0;

	memset(f, 0, sizeof(Facts));
	f->base = base;
	f->min = v[0];
	f->min_delta = max_delta = (int64) delta_of(v, 0);
	for (int i = 0; i < n - 1; i++)
	{
		uint64 u = delta_of(v, i);
		int64 d = (int64) u;

		if (v[i + 1] < f->min)
			f->min = v[i + 1];
		if (v[i + 1] > max)
			max = v[i + 1];
		if (d < f->min_delta)
			f->min_delta = d;
		if (d > max_delta)
			max_delta = d;
		/* the majority's difference, if there is one */
		if (votes == 0)
			f->step = d;
		votes += f->step == d ? 1 : -1;
		if (d != 0)
			f->nruns++;
		if (i == 0 || u != last)
			f->nslopes++;
		last = u;
		if (f->factor != 1 && u != 0)
		{
			uint64 a = d < 0 ? 0 - u : u;

			if (a != f->factor)
				f->factor = gcd(a, f->factor);
		}
	}
	f->nruns++;
	f->level_width = bits_for((uint64) max - (uint64) f->min);
	f->delta_width = bits_for((uint64) max_delta - (uint64) f->min_delta);
	if ((uint64) max - (uint64) f->min > (uint64) PG_INT64_MAX)
		f->factor = 1;

	f->line_step = (int64) ((uint64) v[n - 1] - (uint64) v[0]) / (n - 1);
	f->line_start = line_max = v[0];
	for (int i = 0; i < n; i++)
	{
		int64 r = (int64) ((uint64) v[i] - (uint64) i * (uint64) f->line_step);

		if (r < f->line_start)
			f->line_start = r;
		if (r > line_max)
			line_max = r;
	}
	f->line_width = bits_for((uint64) line_max - (uint64) f->line_start);

	count_odd(f, v, n);
	if (f->nodd < (n - 1) / 2)
		return;
	/* no majority: Rice codes differences from 0, or from the mean if they all go one way */
	f->step = f->min_delta < 0 && max_delta > 0 ? 0 : f->line_step;
	count_odd(f, v, n);
}

/*
 * The bits that Rice codes need with the best k, which is set.
 */
static uint64
rice_bits(Facts *f, const int64 *v, int n)
{
	uint64 bits[RICE_MAX_K + 1] = { 0 };
	int from;
	uint64 best;
	uint64 mean = 0;

	for (int i = 0; i < n - 1; i++)
		mean += Min(dp_zigzag((int64) (delta_of(v, i) - (uint64) f->step)), UINT64CONST(1) << 36);
	mean /= n - 1;
	from = Max(0, bits_for(mean) - 3);
	from = Min(from, RICE_MAX_K - 3);
	for (int i = 0; i < n - 1; i++)
	{
		uint64 z = dp_zigzag((int64) (delta_of(v, i) - (uint64) f->step));

		for (int k = from; k < from + 4; k++)
			bits[k] += (z >> k) >= RICE_ESCAPE ? RICE_ESCAPE + 64 : (z >> k) + 1 + k;
	}
	f->k = from;
	best = bits[from];
	for (int k = from + 1; k < from + 4; k++)
	{
		if (bits[k] < best)
		{
			best = bits[k];
			f->k = k;
		}
	}
	return best;
}

static void
encode_linear(StringInfo out, const int64 *v, int n, int64 base, int64 start, int64 step, int width)
{
	BitWriter w;

	dp_put_byte(out, CODEC_LINEAR + width);
	dp_put_varint(out, dp_zigzag((int64) ((uint64) start - (uint64) base)));
	if (n > 1)
		dp_put_varint(out, dp_zigzag(step));
	w = begin_bits(out, (uint64) n * width);
	for (int i = 0; i < n; i++)
		put_bits(&w, (uint64) v[i] - (uint64) start - (uint64) i * (uint64) step, width);
	flush_bits(&w);
}

static void
encode_start(StringInfo out, int codec, const int64 *v, const Facts *f, int64 step)
{
	dp_put_byte(out, codec);
	dp_put_varint(out, dp_zigzag((int64) ((uint64) v[0] - (uint64) f->base)));
	dp_put_varint(out, dp_zigzag(step));
}

static void
encode_delta(StringInfo out, const int64 *v, int n, const Facts *f)
{
	BitWriter w;

	encode_start(out, CODEC_DELTA + f->delta_width, v, f, f->min_delta);
	w = begin_bits(out, (uint64) (n - 1) * f->delta_width);
	for (int i = 0; i < n - 1; i++)
		put_bits(&w, delta_of(v, i) - (uint64) f->min_delta, f->delta_width);
	flush_bits(&w);
}

static void
encode_sparse(StringInfo out, const int64 *v, int n, const Facts *f)
{
	BitWriter w;

	encode_start(out, CODEC_SPARSE + f->odd_width, v, f, f->step);
	w = begin_bits(out, n - 1);
	for (int i = 0; i < n - 1; i++)
		put_bits(&w, delta_of(v, i) != (uint64) f->step, 1);
	flush_bits(&w);
	w = begin_bits(out, (uint64) f->nodd * f->odd_width);
	for (int i = 0; i < n - 1; i++)
	{
		uint64 d = delta_of(v, i) - (uint64) f->step;

		if (d != 0)
			put_bits(&w, dp_zigzag((int64) d) - 1, f->odd_width);
	}
	flush_bits(&w);
}

static void
encode_rice(StringInfo out, const int64 *v, int n, const Facts *f)
{
	BitWriter w;

	encode_start(out, CODEC_RICE + f->k, v, f, f->step);
	w = begin_bits(out, f->rice_bits);
	for (int i = 0; i < n - 1; i++)
	{
		uint64 z = dp_zigzag((int64) (delta_of(v, i) - (uint64) f->step));
		uint64 q = z >> f->k;

		if (q >= RICE_ESCAPE)
		{
			put_bits(&w, (UINT64CONST(1) << RICE_ESCAPE) - 1, RICE_ESCAPE);
			put_bits(&w, z, 64);
		}
		else
		{
			put_bits(&w, (UINT64CONST(1) << q) - 1, (int) q + 1);
			put_bits(&w, z & ((UINT64CONST(1) << f->k) - 1), f->k);
		}
	}
	flush_bits(&w);
}

/*
 * Runs of the n values, or of their n - 1 differences.
 */
static void
encode_runs(StringInfo out, const int64 *v, int n, const Facts *f, bool slopes)
{
	int nruns = slopes ? f->nslopes : f->nruns;
	int total = slopes ? n - 1 : n;
	int64 *values = palloc_array(int64, nruns);
	int64 *lengths = palloc_array(int64, nruns);
	int run = -1;
	StringInfoData sub;

	for (int i = 0; i < total; i++)
	{
		int64 x = slopes ? (int64) delta_of(v, i) : v[i];

		if (i == 0 || x != values[run])
		{
			run++;
			values[run] = x;
			lengths[run] = 0;
		}
		else
			lengths[run]++;
	}
	Assert(run == nruns - 1);
	dp_put_byte(out, slopes ? CODEC_SLOPES : CODEC_RUNS);
	if (slopes)
		dp_put_varint(out, dp_zigzag((int64) ((uint64) v[0] - (uint64) f->base)));
	dp_put_varint(out, nruns);
	initStringInfo(&sub);
	encode(&sub, values, nruns, slopes ? 0 : f->base, 2);
	dp_put_varint(out, sub.len);
	appendBinaryStringInfo(out, sub.data, sub.len);
	pfree(sub.data);
	encode(out, lengths, nruns, 0, 2);
	pfree(values);
	pfree(lengths);
}

/*
 * Appends the multiples of the factor, unless that is not smaller than the size
 * that is known for the plain stream.
 */
static bool
encode_multiples(StringInfo out, const int64 *v, int n, const Facts *f, Size size)
{
	int start = out->len;
	int64 *k = palloc_array(int64, n);

	for (int i = 0; i < n; i++)
		k[i] = (v[i] - v[0]) / (int64) f->factor;
	dp_put_byte(out, CODEC_MULTIPLES);
	dp_put_varint(out, f->factor);
	dp_put_varint(out, dp_zigzag((int64) ((uint64) v[0] - (uint64) f->base)));
	encode(out, k, n, 0, 1);
	pfree(k);
	if ((Size) (out->len - start) < size)
		return true;
	out->len = start;
	return false;
}

/*
 * Appends the smallest encoding.  At level 1 there are no multiples, at level 2
 * no runs either.
 */
static void
encode(StringInfo out, const int64 *v, int n, int64 base, int level)
{
	Facts f;
	Size size[6];
	int best;
	Size first;

	if (n == 0)
		return;
	if (n == 1)
	{
		encode_linear(out, v, 1, base, v[0], 0, 0);
		return;
	}
	find_facts(&f, v, n, base);
	first = 1 + zigzag_size((uint64) v[0] - (uint64) base);
	size[0] =
		2 + zigzag_size((uint64) f.min - (uint64) base) + bytes_for((uint64) n * f.level_width);
	size[1] = 1 + zigzag_size((uint64) f.line_start - (uint64) base) + zigzag_size(f.line_step) +
			  bytes_for((uint64) n * f.line_width);
	size[2] = first + zigzag_size(f.min_delta) + bytes_for((uint64) (n - 1) * f.delta_width);
	size[3] = f.odd_width >= CODEC_RICE - CODEC_SPARSE
				  ? SIZE_MAX
				  : first + zigzag_size(f.step) + bytes_for(n - 1) +
						bytes_for((uint64) f.nodd * f.odd_width);
	best = 0;
	for (int i = 1; i < 4; i++)
	{
		if (size[i] < size[best])
			best = i;
	}
	if (size[best] > first + 1 + bytes_for(n - 1))
	{
		f.rice_bits = rice_bits(&f, v, n);
		size[4] = first + zigzag_size(f.step) + bytes_for(f.rice_bits);
		if (size[4] + size[4] / 3 < size[best])
			best = 4;
	}
	if (level < 2 && Min(f.nruns, f.nslopes) < n / 4 && size[best] > 8)
	{
		bool slopes = f.nslopes < f.nruns;
		int start = out->len;

		encode_runs(out, v, n, &f, slopes);
		size[5] = out->len - start;
		if (size[5] < size[best])
			best = 5;
		else
			out->len = start;
	}
	if (level < 1 && f.factor > 1 && size[best] > 8)
	{
		int start = out->len;

		if (best != 5)
		{
			if (encode_multiples(out, v, n, &f, size[best]))
				return;
		}
		else if (encode_multiples(out, v, n, &f, size[best]))
		{
			/* in place of the runs that were appended before */
			memmove(out->data + start - size[5], out->data + start, out->len - start);
			out->len -= size[5];
			return;
		}
	}
	switch (best)
	{
		case 0:
			encode_linear(out, v, n, base, f.min, 0, f.level_width);
			break;
		case 1:
			encode_linear(out, v, n, base, f.line_start, f.line_step, f.line_width);
			break;
		case 2:
			encode_delta(out, v, n, &f);
			break;
		case 3:
			encode_sparse(out, v, n, &f);
			break;
		case 4:
			encode_rice(out, v, n, &f);
			break;
		default:
			break;
	}
}

void
dp_ints_encode(StringInfo out, const int64 *values, int n, int64 base)
{
	encode(out, values, n, base, 0);
}

void
dp_ints_encode_sized(StringInfo out, const int64 *values, int n, int64 base)
{
	StringInfoData sub;

	initStringInfo(&sub);
	encode(&sub, values, n, base, 0);
	dp_put_varint(out, sub.len);
	appendBinaryStringInfo(out, sub.data, sub.len);
	pfree(sub.data);
}

/* ---------------------------------------------------------------- decoding */

static void
decode_linear(DpCursor c, int width, int n, int64 base, int64 *v)
{
	uint64 start = (uint64) dp_cursor_zigzag(&c) + (uint64) base;
	uint64 step = n > 1 ? (uint64) dp_cursor_zigzag(&c) : 0;
	Size nbytes = bytes_for((uint64) n * width);
	const uint8 *bits = dp_cursor_bytes(&c, nbytes);

	dp_cursor_done(&c);
	if (width == 0 && step == 0)
	{
		for (int i = 0; i < n; i++)
			v[i] = (int64) start;
		return;
	}
	unpack_bits(bits, nbytes, n, width, v);
	if (step == 0)
	{
		for (int i = 0; i < n; i++)
			v[i] = (int64) ((uint64) v[i] + start);
	}
	else
	{
		for (int i = 0; i < n; i++)
			v[i] = (int64) ((uint64) v[i] + start + (uint64) i * step);
	}
}

static void
decode_delta(DpCursor c, int width, int n, int64 base, int64 *v)
{
	uint64 sum = (uint64) dp_cursor_zigzag(&c) + (uint64) base;
	uint64 step = (uint64) dp_cursor_zigzag(&c);
	Size nbytes = bytes_for((uint64) (n - 1) * width);
	const uint8 *bits = dp_cursor_bytes(&c, nbytes);

	dp_cursor_done(&c);
	v[0] = (int64) sum;
	unpack_bits(bits, nbytes, n - 1, width, v + 1);
	for (int i = 1; i < n; i++)
	{
		sum += step + (uint64) v[i];
		v[i] = (int64) sum;
	}
}

/*
 * The differences that are not the step are unpacked first, to the end of the array, and are used
 * before they are overwritten.  So no branch depends on the bitmap, which would be unpredictable.
 */
static void
decode_sparse(DpCursor c, int width, int n, int64 base, int64 *v)
{
	uint64 sum = (uint64) dp_cursor_zigzag(&c) + (uint64) base;
	uint64 step = (uint64) dp_cursor_zigzag(&c);
	const uint8 *map = dp_cursor_bytes(&c, bytes_for(n - 1));
	Size nbytes;
	int nodd;
	int odd;

	nodd = (int) pg_popcount((const char *) map, (int) bytes_for(n - 1));
	if (unlikely(nodd > n - 1 || (((n - 1) & 7) != 0 && map[(n - 1) / 8] >> ((n - 1) & 7) != 0)))
		dp_bucket_corrupted("A bitmap is too long.");
	nbytes = bytes_for((uint64) nodd * width);
	odd = n - nodd;
	unpack_bits(dp_cursor_bytes(&c, nbytes), nbytes, nodd, width, v + odd);
	dp_cursor_done(&c);

	v[0] = (int64) sum;
	for (int i = 1; i < n; i += 8)
	{
		uint32 byte = map[(i - 1) / 8];
		int end = Min(i + 8, n);

		for (int j = i; j < end; j++, byte >>= 1)
		{
			/* behind the last one the array ends; what is read instead is not used */
			uint64 mark = 0 - (uint64) (byte & 1);
			uint64 z = (uint64) v[odd - (odd == n)] + 1;

			sum += step + ((uint64) dp_unzigzag(z) & mark);
			odd += byte & 1;
			v[j] = (int64) sum;
		}
	}
}

/*
 * Rice codes are read from a word that is filled up before each of them.
 */
static void
decode_rice(DpCursor c, int k, int n, int64 base, int64 *v)
{
	uint64 sum = (uint64) dp_cursor_zigzag(&c) + (uint64) base;
	uint64 step = (uint64) dp_cursor_zigzag(&c);
	uint64 mask = (UINT64CONST(1) << k) - 1;
	uint64 word = 0;
	int have = 0;
	const uint8 *p = c.p;

	v[0] = (int64) sum;
	for (int i = 1; i < n; i++)
	{
		uint64 z;
		int q;

		/* at least 56 bits, or all that there are: 24 + 1 + 31 */
		if (likely(c.end - p >= 8))
		{
			word |= (uint64) dp_get_int64(p) << have;
			p += (63 - have) >> 3;
			have |= 56;
		}
		else
		{
			while (have <= 56 && p < c.end)
			{
				word |= (uint64) *p++ << have;
				have += 8;
			}
		}
		q = pg_rightmost_one_pos64(~word | (UINT64CONST(1) << RICE_ESCAPE));
		if (likely(q < RICE_ESCAPE))
		{
			int used = q + 1 + k;

			z = (uint64) q << k | ((word >> (q + 1)) & mask);
			if (unlikely(used > have))
				dp_bucket_corrupted("It ends too early.");
			word >>= used;
			have -= used;
		}
		else
		{
			word >>= RICE_ESCAPE;
			have -= RICE_ESCAPE;
			z = 0;
			for (int j = 0; j < 64; j += 8)
			{
				if (have < 8)
				{
					if (unlikely(p >= c.end))
						dp_bucket_corrupted("It ends too early.");
					word |= (uint64) *p++ << have;
					have += 8;
				}
				z |= (word & 0xFF) << j;
				word >>= 8;
				have -= 8;
			}
		}
		sum += step + (uint64) dp_unzigzag(z);
		v[i] = (int64) sum;
	}
	/* returns bytes that were read ahead; less than a byte may be left */
	if (p - have / 8 != c.end)
		dp_bucket_corrupted("There are bytes that belong to nothing.");
}

/*
 * Runs of n values, of which the stream has the values and the lengths.
 */
static void
decode_runs(DpCursor c, int n, int64 base, int64 *v)
{
	uint32 nruns = dp_cursor_size(&c, n);
	DpCursor values = dp_cursor_part(&c, dp_cursor_size(&c, c.end - c.p));
	int64 *runs = palloc_array(int64, 2 * (Size) nruns + 1);
	int64 *lengths = runs + nruns;
	int at = 0;

	decode(values, nruns, base, runs, 2);
	decode(c, nruns, 0, lengths, 2);
	for (uint32 i = 0; i < nruns; i++)
	{
		int64 x = runs[i];
		int end;

		if (unlikely(lengths[i] < 0 || lengths[i] >= n - at))
			dp_bucket_corrupted("A run is too long.");
		end = at + (int) lengths[i];
		for (; at <= end; at++)
			v[at] = x;
	}
	if (at != n)
		dp_bucket_corrupted("The runs are too short.");
	pfree(runs);
}

static void
decode(DpCursor c, int n, int64 base, int64 *v, int level)
{
	int codec;

	if (n == 0)
	{
		dp_cursor_done(&c);
		return;
	}
	codec = dp_cursor_byte(&c);
	if (codec < CODEC_DELTA)
		decode_linear(c, codec - CODEC_LINEAR, n, base, v);
	else if (codec < CODEC_SPARSE)
		decode_delta(c, codec - CODEC_DELTA, n, base, v);
	else if (codec < CODEC_RICE)
		decode_sparse(c, codec - CODEC_SPARSE, n, base, v);
	else if (codec < CODEC_RUNS)
		decode_rice(c, codec - CODEC_RICE, n, base, v);
	else if (codec == CODEC_RUNS && level < 2)
		decode_runs(c, n, base, v);
	else if (codec == CODEC_SLOPES && level < 2)
	{
		uint64 sum = (uint64) dp_cursor_zigzag(&c) + (uint64) base;

		v[0] = (int64) sum;
		decode_runs(c, n - 1, 0, v + 1);
		for (int i = 1; i < n; i++)
		{
			sum += (uint64) v[i];
			v[i] = (int64) sum;
		}
	}
	else if (codec == CODEC_MULTIPLES && level < 1)
	{
		uint64 factor = dp_cursor_varint(&c);
		uint64 start = (uint64) dp_cursor_zigzag(&c) + (uint64) base;

		decode(c, n, 0, v, 1);
		for (int i = 0; i < n; i++)
			v[i] = (int64) ((uint64) v[i] * factor + start);
	}
	else
		dp_bucket_corrupted("There is no such packing of integers.");
}

void
dp_ints_decode(DpCursor c, int n, int64 base, int64 *values)
{
	decode(c, n, base, values, 0);
}

void
dp_ints_decode_sized(DpCursor *c, int n, int64 base, int64 *values)
{
	decode(dp_cursor_part(c, dp_cursor_size(c, c->end - c->p)), n, base, values, 0);
}
