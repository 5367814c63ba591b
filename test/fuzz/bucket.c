/*
 * bucket.c
 *		Packs random measurements, reads them back, and reads damaged buckets.
 *
 *		bucket ITERATIONS SEED [FIRST]
 *
 * Each iteration makes rows of columns of random kinds and checks that
 *	1. the bucket has no more bytes than the builder foretold, is valid, and
 *	   every value, NULL and missing value comes back, in the order of the times;
 *	2. the summaries say what the values are;
 *	3. a slice of it has the rows that it should have;
 *	4. when bytes of it are damaged, everything that reads buckets either reads
 *	   something or raises an error of corrupt data.
 *
 * The sanitizers that it is built with end it at the first fault.
 *
 *		bucket speed
 *
 * prints how fast columns are packed and read (when built without sanitizers).
 */
#include "shim.h"

#include <math.h>
#include <time.h>

#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "bson/reader.h"
#include "types/bucket/builder.h"

#define MAX_ROWS 6000
#define MAX_COLUMNS 6

static uint64 seed;
static uint64 iteration;
static uint64 state;

/* A row of the source, before it is packed */
static int nrows;
static int ncolumns;
static int flags;
static int64 times[MAX_ROWS];
static int order[MAX_ROWS];
static DpPackedKind kinds[MAX_COLUMNS];
static Datum values[MAX_COLUMNS][MAX_ROWS];
static uint8 presence[MAX_COLUMNS][MAX_ROWS];

static struct
{
	uint64 rows;
	uint64 bytes;
	uint64 damaged;
	uint64 refused;
} counts;

static void fail(const char *what) pg_attribute_noreturn();

/* Says what went wrong, and ends the program. */
static void
fail(const char *what)
{
	printf("FAILED: %s\nseed %llu, iteration %llu\nlast error: %s (%s)\n", what,
		   (unsigned long long) seed, (unsigned long long) iteration, fuzz_message, fuzz_detail);
	exit(1);
}

/* A random number (splitmix64). */
static uint64
draw(void)
{
	uint64 z = (state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static uint64
below(uint64 n)
{
	return draw() % n;
}

/* ---------------------------------------------------------------- the source */

/*
 * Integers in one of many ways that integers go on, each between low and high.
 */
static void
draw_ints(int64 *v, int n, int64 low, int64 high)
{
	int way = below(9);
	uint64 span = (uint64) high - (uint64) low;
	int64 x = low + (int64) (span / 2);
	int64 step = 1 + below(100);
	int64 factor = 1 + below(1000);

	if (span != PG_UINT64_MAX && way != 8)
		x = low + (int64) below(span + 1);
	for (int i = 0; i < n; i++)
	{
		switch (way)
		{
			case 0: /* the same */
				break;
			case 1: /* a line, with or without noise */
				x += step;
				break;
			case 2:
				x += step + below(5);
				break;
			case 3: /* a walk that mostly stands still */
				if (below(10) < 3)
					x += below(2) ? 1 : -1;
				break;
			case 4: /* with leaps */
				x += (int64) below(7) - 3;
				if (below(50) == 0)
					x = (int64) ((uint64) x + (draw() >> below(64)));
				break;
			case 5: /* steps */
				if (below(20) == 0)
					x = low + (int64) (draw() >> (1 + below(63)));
				break;
			case 6: /* multiples */
				x += ((int64) below(5) - 2) * factor;
				break;
			case 7: /* two slopes */
				x += i < n / 2 ? 3 : -2;
				break;
			default: /* anything, the extremes among it */
				x = below(9) == 0           ? (below(2) ? low : high)
					: span == PG_UINT64_MAX ? (int64) draw()
											: low + (int64) below(span + 1);
				break;
		}
		if (x < low || x > high)
			x = below(2) ? low : high;
		v[i] = x;
	}
}

static double
draw_double(int way, int scale)
{
	uint64 u;
	double d;

	if (below(40) == 0)
	{
		static const double special[] = { 0.0,       -0.0,   INFINITY,
										  -INFINITY, 5e-324, 1.7976931348623157e308,
										  0.1,       1e22 };

		if (below(4) == 0)
			return NAN;
		return special[below(lengthof(special))];
	}
	switch (way)
	{
		case 0:
			return (double) ((int64) below(2000) - 1000) / dp_power10[scale];
		case 1:
			return (double) below(1000000) / 3;
		case 2:
			return sin((double) below(1000) / 100);
		default:
			u = draw();
			memcpy(&d, &u, sizeof(d));
			return d;
	}
}

/* A numeric as it is on disk, of a few digits. */
static Datum
draw_numeric(bool special, int scale)
{
	int ndigits = below(4);
	uint16 *p = palloc(VARHDRSZ + 2 * (1 + ndigits + 2));
	uint16 *digits = (uint16 *) VARDATA(p) + 1;
	int fraction = (scale + 3) / 4;

	if (special)
	{
		SET_VARSIZE(p, VARHDRSZ + 2);
		digits[-1] = 0xC000;
		return PointerGetDatum(p);
	}
	/* short form: no digits beyond the scale */
	for (int i = 0; i < ndigits; i++)
		digits[i] = below(10000);
	if (ndigits > 0 && digits[0] == 0)
		digits[0] = 1;
	if (fraction > 0 && ndigits > 0 && scale % 4 != 0)
	{
		static const int cut[] = { 1, 1000, 100, 10 };

		digits[ndigits - 1] -= digits[ndigits - 1] % cut[scale % 4];
	}
	while (ndigits > 0 && digits[ndigits - 1] == 0)
		ndigits--;
	digits[-1] = 0x8000 | (below(2) && ndigits > 0 ? 0x2000 : 0) | scale << 7 |
				 ((ndigits - 1 - fraction) & 0x7F);
	if (ndigits == 0)
		digits[-1] = 0x8000 | scale << 7;
	SET_VARSIZE(p, VARHDRSZ + 2 * (1 + ndigits));
	return PointerGetDatum(p);
}

/* Text, bytes or ids: repeated or not. */
static Datum
draw_string(DpPackedKind kind, int way)
{
	uint32 len = kind == DP_PACKED_UUID       ? 16
				 : kind == DP_PACKED_OBJECTID ? 12
				 : way == 0                   ? below(4)
											  : below(40);
	uint64 keep = state;
	uint64 which = way == 0 ? below(5) : draw();
	struct varlena *v = palloc(VARHDRSZ + len);
	uint8 *p;

	if (way == 0)
	{
		/* the same bytes for the same number */
		state = which * 77;
		len = kind == DP_PACKED_UUID ? 16 : kind == DP_PACKED_OBJECTID ? 12 : which;
		v = palloc(VARHDRSZ + len);
	}
	p = (uint8 *) VARDATA(v);
	SET_VARSIZE(v, VARHDRSZ + len);
	for (uint32 i = 0; i < len; i++)
		p[i] = kind == DP_PACKED_TEXT || kind == DP_PACKED_OTHER ? 'a' + below(26) : (uint8) draw();
	if (way == 0)
		state = keep + draw() % 1000;
	if (kind == DP_PACKED_UUID || kind == DP_PACKED_OBJECTID)
		return PointerGetDatum(p);
	return PointerGetDatum(v);
}

static Datum
draw_document(int way)
{
	DpBuilder b;
	static const char *const names[] = { "temperature", "moisture", "status", "x", "" };
	int n = below(5);

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	for (int i = 0; i < n; i++)
	{
		const char *name = names[way == 0 ? i : below(lengthof(names))];

		switch (below(6))
		{
			case 0:
				dp_builder_append_null(&b, name, strlen(name));
				break;
			case 1:
				dp_builder_append_double(&b, name, strlen(name), draw_double(0, 1));
				break;
			case 2:
				dp_builder_append_string(&b, name, strlen(name), "text", below(5));
				break;
			default:
				dp_builder_append_int32(&b, name, strlen(name), (int32) below(100));
				break;
		}
	}
	dp_builder_end(&b);
	return PointerGetDatum(dp_builder_finish_bson(&b));
}

static Datum
draw_value(int way)
{
	uint8 bytes[64];
	DpValue v = { bytes, 0, DP_TYPE_NULL };
	struct varlena *doc;

	switch (way < 6 ? way : (int) below(8))
	{
		case 0:
			v.type = DP_TYPE_INT32;
			v.len = 4;
			dp_put_int32(bytes, (int32) below(1000));
			break;
		case 1:
			v.type = DP_TYPE_INT64;
			v.len = 8;
			dp_put_int64(bytes, (int64) draw());
			break;
		case 2:
			v.type = DP_TYPE_DOUBLE;
			v.len = 8;
			dp_put_double(bytes, draw_double(0, 2));
			break;
		case 3:
			v.type = DP_TYPE_STRING;
			v.len = 5 + below(10);
			memset(bytes, 'x', sizeof(bytes));
			dp_put_int32(bytes, v.len - 4);
			bytes[v.len - 1] = 0;
			break;
		case 4:
			v.type = DP_TYPE_BOOL;
			v.len = 1;
			bytes[0] = below(2);
			break;
		case 5:
			doc = (struct varlena *) DatumGetPointer(draw_document(0));
			v = dp_value_of_document(doc);
			break;
		case 6:
			v.type = DP_TYPE_MINKEY;
			break;
		default:
			break;
	}
	return PointerGetDatum(dp_value_to_varlena(&v));
}

/*
 * All values of a column.
 */
static void
draw_column(int c)
{
	static int64 ints[MAX_ROWS];
	DpPackedKind kind = kinds[c];
	int way = below(8);
	int scale = below(7);
	int absent = below(3) == 0 ? 1 + below(4) : 0;
	int64 low = PG_INT64_MIN;
	int64 high = PG_INT64_MAX;

	switch (kind)
	{
		case DP_PACKED_BOOL:
			low = 0, high = 1;
			break;
		case DP_PACKED_INT2:
			low = PG_INT16_MIN, high = PG_INT16_MAX;
			break;
		case DP_PACKED_INT4:
			low = PG_INT32_MIN, high = PG_INT32_MAX;
			break;
		case DP_PACKED_DATE:
			low = DATETIME_MIN_JULIAN - POSTGRES_EPOCH_JDATE, high = 1000000;
			break;
		case DP_PACKED_TIME:
			low = 0, high = USECS_PER_DAY;
			break;
		case DP_PACKED_TIMESTAMP:
		case DP_PACKED_TIMESTAMPTZ:
			low = MIN_TIMESTAMP, high = END_TIMESTAMP - 1;
			break;
		default:
			break;
	}
	draw_ints(ints, nrows, low, high);
	for (int i = 0; i < nrows; i++)
	{
		Datum d = (Datum) 0;
		double f;

		switch (kind)
		{
			case DP_PACKED_BOOL:
				d = BoolGetDatum(ints[i] != 0);
				break;
			case DP_PACKED_INT2:
				d = Int16GetDatum((int16) ints[i]);
				break;
			case DP_PACKED_INT4:
			case DP_PACKED_DATE:
				d = Int32GetDatum((int32) ints[i]);
				break;
			case DP_PACKED_FLOAT4:
				f = draw_double(way % 4, scale);
				d = Float4GetDatum((float4) f);
				break;
			case DP_PACKED_FLOAT8:
				d = Float8GetDatum(draw_double(way % 4, scale));
				break;
			case DP_PACKED_NUMERIC:
				d = draw_numeric(way == 0 && below(20) == 0, way < 4 ? scale : (int) below(7));
				break;
			case DP_PACKED_TEXT:
			case DP_PACKED_BYTEA:
			case DP_PACKED_UUID:
			case DP_PACKED_OBJECTID:
				d = draw_string(kind, way % 2);
				break;
			case DP_PACKED_VALUE:
				d = draw_value(way);
				break;
			case DP_PACKED_DOCUMENT:
			case DP_PACKED_SPLIT_DOCUMENT:
				d = draw_document(way % 2);
				break;
			default:
				d = Int64GetDatum(ints[i]);
				break;
		}
		values[c][i] = d;
		presence[c][i] = DP_PACKED_PRESENT;
		if (absent == 4 || (absent > 0 && below(5) == 0))
			presence[c][i] = absent == 1   ? DP_PACKED_NULL
							 : absent == 2 ? DP_PACKED_MISSING
										   : 1 + below(2);
	}
}

static int
compare_order(const void *a, const void *b)
{
	int x = *(const int *) a;
	int y = *(const int *) b;

	if (times[x] != times[y])
		return times[x] < times[y] ? -1 : 1;
	return x - y;
}

static void
draw_source(void)
{
	static const int64 grids[] = {
		1, 1000, USECS_PER_SEC, 10 * USECS_PER_SEC, USECS_PER_MINUTE, USECS_PER_HOUR, USECS_PER_DAY
	};
	int64 grid = grids[below(lengthof(grids))];
	int64 t = (int64) below(1000000) * grid - (below(3) == 0 ? 500000 * grid : 0);
	int way = below(5);
	bool shuffled = below(4) == 0;

	nrows = below(8) == 0    ? 1 + below(4)
			: below(20) == 0 ? 1 + below(MAX_ROWS - 1)
							 : 1 + below(200);
	ncolumns = below(MAX_COLUMNS + 1);
	flags = (below(6) == 0 ? DP_BUCKET_TIMELESS : 0) | (below(2) ? DP_BUCKET_NAMED : 0);
	for (int i = 0; i < nrows; i++)
	{
		times[i] = t;
		order[i] = i;
		switch (way)
		{
			case 0:
				t += grid;
				break;
			case 1:
				t += grid * below(3);
				break;
			case 2:
				t += grid + below(USECS_PER_SEC);
				break;
			case 3:
				t += below(10) == 0 ? 100 * grid : grid;
				break;
			default:
				t = MIN_TIMESTAMP + (int64) below((uint64) END_TIMESTAMP - (uint64) MIN_TIMESTAMP);
				break;
		}
		if (!IS_VALID_TIMESTAMP(t))
			t = 0;
	}
	for (int i = nrows - 1; i > 0 && shuffled; i--)
	{
		int k = below(i + 1);
		int64 x = times[i];

		times[i] = times[k];
		times[k] = x;
	}
	if ((flags & DP_BUCKET_TIMELESS) == 0)
		qsort(order, nrows, sizeof(int), compare_order);
	for (int c = 0; c < ncolumns; c++)
	{
		do
			kinds[c] = 1 + below(DP_PACKED_OTHER);
		while (kinds[c] == DP_PACKED_OTHER);
		draw_column(c);
	}
}

/* ---------------------------------------------------------------- checks */

static Size
varlena_of(Datum d, const uint8 **bytes)
{
	*bytes = (const uint8 *) VARDATA_ANY(DatumGetPointer(d));
	return VARSIZE_ANY_EXHDR(DatumGetPointer(d));
}

/* Whether value k that was loaded is the datum. */
static bool
same_value(DpPackedKind kind, const DpValues *v, int k, Datum d)
{
	const uint8 *bytes;
	Size size;
	int64 value;
	uint8 scale;
	double f;

	switch (kind)
	{
		case DP_PACKED_BOOL:
			return v->ints[k] == (DatumGetBool(d) ? 1 : 0);
		case DP_PACKED_INT2:
			return v->ints[k] == DatumGetInt16(d);
		case DP_PACKED_INT4:
		case DP_PACKED_DATE:
			return v->ints[k] == DatumGetInt32(d);
		case DP_PACKED_FLOAT4:
			f = DatumGetFloat4(d);
			return memcmp(&v->ints[k], &f, sizeof(f)) == 0 ||
				   (isnan(f) && isnan(((double *) v->ints)[k]));
		case DP_PACKED_FLOAT8:
			f = DatumGetFloat8(d);
			return memcmp(&v->ints[k], &f, sizeof(f)) == 0;
		case DP_PACKED_NUMERIC:
			if (!dp_numeric_to_decimal(d, &value, &scale))
				return v->types[k] == DP_NO_DECIMAL && v->strings[k].len == 3;
			if (v->types[k] == DP_NO_DECIMAL)
			{
				char *text = psprintf("%s" INT64_FORMAT ".%d", value < 0 ? "-" : "",
									  value < 0 ? -value : value, scale);

				return strlen(text) == v->strings[k].len &&
					   memcmp(text, v->strings[k].data, strlen(text)) == 0;
			}
			return v->ints[k] == value && v->types[k] == scale;
		case DP_PACKED_UUID:
		case DP_PACKED_OBJECTID:
			size = kind == DP_PACKED_UUID ? 16 : 12;
			return v->strings[k].len == size &&
				   memcmp(v->strings[k].data, DatumGetPointer(d), size) == 0;
		case DP_PACKED_TEXT:
		case DP_PACKED_BYTEA:
		case DP_PACKED_DOCUMENT:
			size = varlena_of(d, &bytes);
			return v->strings[k].len == size && memcmp(v->strings[k].data, bytes, size) == 0;
		default:
			return v->ints[k] == DatumGetInt64(d);
	}
}

/*
 * Rows [from, to) of the source are those of the bucket.
 */
static void
check_rows(struct varlena *bucket, int from, int to)
{
	DpBucketReader r;
	int n = to - from;

	dp_bucket_reader_init(&r, NULL);
	dp_bucket_open(&r, PointerGetDatum(bucket));
	if (r.count != n || r.ncolumns != ncolumns)
		fail("a bucket has another number of rows or columns");
	if ((flags & DP_BUCKET_TIMELESS) == 0)
	{
		int64 *t = palloc(sizeof(int64) * n);

		dp_bucket_times(&r, t);
		for (int i = 0; i < n; i++)
		{
			if (t[i] != times[order[from + i]])
				fail("a time is not what it was");
		}
	}
	for (int c = 0; c < ncolumns; c++)
	{
		uint8 *p = palloc(n);
		DpValues v;
		DpValue *bson = NULL;
		int k = 0;

		dp_column_load(&r, c, &v, p);
		if (kinds[c] == DP_PACKED_VALUE || kinds[c] == DP_PACKED_SPLIT_DOCUMENT)
		{
			bson = palloc(sizeof(DpValue) * n);
			dp_bucket_values(&r, c, bson);
		}
		for (int i = 0; i < n; i++)
		{
			int row = order[from + i];

			if (p[i] != presence[c][row])
				fail("a value is not there, or there was none");
			if (p[i] != DP_PACKED_PRESENT)
				continue;
			if (bson != NULL)
			{
				struct varlena *was = (struct varlena *) DatumGetPointer(values[c][row]);
				DpValue value = kinds[c] == DP_PACKED_VALUE ? dp_value_of_varlena(was)
															: dp_value_of_document(was);

				if (!dp_value_identical(&bson[i], &value))
					fail("a BSON value is not what it was");
			}
			else if (!same_value(kinds[c], &v, k, values[c][row]))
				fail("a value is not what it was");
			k++;
		}
	}
	dp_bucket_reader_free(&r);
}

/*
 * Everything that reads a bucket reads this one, which may be damaged.
 */
static void
read_everything(const uint8 *bytes, Size size)
{
	DpBucketReader r;
	int from;
	int to;

	dp_bucket_reader_init(&r, NULL);
	dp_bucket_open_bytes(&r, bytes, size);
	/* a bucket may say that it has a million rows: not each time */
	if (r.count > 20000 && below(50) != 0)
		return;
	if ((r.flags & DP_BUCKET_TIMELESS) == 0)
	{
		int64 *t = palloc(sizeof(int64) * r.count);

		(void) dp_bucket_find_times(&r, r.first + 1, r.last, &from, &to);
		if (from < 0 || to > r.count || from > to)
			fail("rows are not rows of the bucket");
		dp_bucket_times(&r, t);
	}
	for (int c = 0; c < r.ncolumns + r.nfields; c++)
	{
		const DpPackedColumn *p = dp_bucket_column(&r, c);
		DpPackedKind kind = p->kind;
		int64 *v = palloc(sizeof(int64) * r.count);
		bool *isnull = palloc(r.count);
		Datum *d = palloc(sizeof(Datum) * r.count);
		Datum x;

		(void) dp_bucket_min(p, &x);
		(void) dp_bucket_max(p, &x);
		(void) dp_bucket_sum(p, &x);
		if (kind == DP_PACKED_SPLIT_DOCUMENT || kind == DP_PACKED_VALUE)
			dp_bucket_values(&r, c, palloc(sizeof(DpValue) * r.count));
		else
			dp_bucket_datums(&r, c, dp_bucket_kind_type(kind), -1, d, isnull);
		(void) dp_bucket_doubles(&r, c, (double *) v, isnull);
		if (kind <= DP_PACKED_INT8)
			dp_bucket_int64s(&r, c, v, isnull);
	}
	dp_bucket_validate(bytes, size);
}

static void
damage(uint8 *bytes, Size *size)
{
	int n = 1 + below(4);

	while (n-- > 0 && *size > 0)
	{
		Size at = below(3) == 0 ? below(Min(*size, 40)) : below(*size);

		switch (below(6))
		{
			case 0:
				bytes[at] = (uint8) draw();
				break;
			case 1:
				bytes[at] ^= 1 << below(8);
				break;
			case 2:
				bytes[at] = below(2) ? 0xFF : 0;
				break;
			case 3:
				bytes[at] += below(2) ? 1 : -1;
				break;
			case 4:
				*size = at;
				break;
			default:
				memmove(bytes + at, bytes + at + 1, *size - at - 1);
				(*size)--;
				break;
		}
	}
}

static void
iterate(void)
{
	DpBucketBuilder *volatile b;
	struct varlena *volatile bucket;
	const uint8 *bytes;
	Size size;
	int from;
	int to;

	draw_source();
	if (FUZZ_TRY() != 0)
		fail("an error was raised for good data");
	b = dp_builder_create(NULL, flags);
	for (int c = 0; c < ncolumns; c++)
	{
		char name[8];

		snprintf(name, sizeof(name), "c%d", c);
		dp_builder_add(b, kinds[c], name, strlen(name));
	}
	for (int i = 0; i < nrows; i++)
	{
		Datum row[MAX_COLUMNS];
		uint8 there[MAX_COLUMNS];

		for (int c = 0; c < ncolumns; c++)
		{
			row[c] = values[c][i];
			there[c] = presence[c][i];
		}
		dp_builder_append(b, times[i], row, there);
	}
	bucket = dp_bucket_builder_finish(b);
	size = varlena_of(PointerGetDatum(bucket), &bytes);
	if (size > dp_bucket_builder_bound(b))
		fail("a bucket is larger than its bound");
	counts.rows += nrows;
	counts.bytes += size;
	check_rows(bucket, 0, nrows);
	dp_bucket_validate(bytes, size);

	if ((flags & DP_BUCKET_TIMELESS) == 0)
	{
		int64 since = times[order[below(nrows)]] + below(2);
		int64 until = times[order[below(nrows)]] + below(2);
		struct varlena *slice = dp_bucket_slice(PointerGetDatum(bucket), &since, &until);

		for (from = 0; from < nrows && times[order[from]] < since; from++)
			;
		for (to = from; to < nrows && times[order[to]] < until; to++)
			;
		if (from == to ? slice != NULL : slice == NULL)
			fail("a slice is empty, or is not");
		if (slice != NULL)
			check_rows(slice, from, to);
	}

	for (int i = 0; i < 8; i++)
	{
		Size n = size;
		uint8 *copy = palloc(size);
		uint8 *volatile exact;

		memcpy(copy, bytes, size);
		damage(copy, &n);
		/* a piece of its own, so that what is read beyond it is seen */
		exact = malloc(n);
		if (n > 0)
			memcpy(exact, copy, n);
		counts.damaged++;
		if (FUZZ_TRY() == 0)
			read_everything(exact, n);
		else
		{
			counts.refused++;
			if (fuzz_sqlstate != ERRCODE_DATA_CORRUPTED &&
				fuzz_sqlstate != ERRCODE_PROGRAM_LIMIT_EXCEEDED)
				fail("a damaged bucket raised an unexpected error");
		}
		free(exact);
	}
}

/* ---------------------------------------------------------------- speed */

/* Seconds of processor time. */
static double
clock_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/*
 * Packs and reads the series of the benchmark.
 */
static void
speed_of(int n, bool noisy, bool jitter)
{
	DpBucketBuilder *b = dp_builder_create(NULL, 0);
	DpBucketReader r;
	int walk = 215;
	int moisture = 550;
	int rounds = 20000000 / n / 10;
	struct varlena *bucket;
	int64 *v = palloc(sizeof(int64) * n);
	bool *isnull = palloc(n);
	double start;
	double pack;
	double each[4];
	int64 sum = 0;

	dp_builder_add(b, DP_PACKED_FLOAT8, NULL, 0);
	dp_builder_add(b, DP_PACKED_INT4, NULL, 0);
	start = clock_seconds();
	for (int round = 0; round < rounds / 10; round++)
	{
		dp_bucket_builder_reset(b);
		for (int i = 0; i < n; i++)
		{
			Datum row[2];
			bool nulls[2] = { false, false };

			if (below(10) >= 7)
				walk += below(2) ? 1 : -1;
			if (below(10) >= 7)
				moisture += below(2) ? 1 : -1;
			row[0] = Float8GetDatum((walk + (noisy ? (int) below(7) - 3 : 0)) / 10.0);
			row[1] = Int32GetDatum(moisture + (noisy ? (int) below(3) - 1 : 0));
			dp_bucket_append(b,
							 INT64CONST(760000000000000) / USECS_PER_MINUTE * USECS_PER_MINUTE +
								 i * USECS_PER_MINUTE + (jitter ? below(USECS_PER_SEC) : 0),
							 row, nulls);
		}
		bucket = dp_bucket_builder_finish(b);
	}
	pack = (clock_seconds() - start) / (rounds / 10) / n;
	dp_bucket_reader_init(&r, NULL);
	for (int what = 0; what < 4; what++)
	{
		start = clock_seconds();
		for (int round = 0; round < rounds; round++)
		{
			dp_bucket_open(&r, PointerGetDatum(bucket));
			switch (what)
			{
				case 0:
					sum += dp_bucket_column(&r, 0)->summary.sum_i +
						   dp_bucket_column(&r, 1)->summary.sum_i;
					break;
				case 1:
					dp_bucket_times(&r, v);
					break;
				case 2:
					dp_bucket_doubles(&r, 0, (double *) v, isnull);
					break;
				default:
					dp_bucket_int64s(&r, 1, v, isnull);
					break;
			}
			sum += v[n - 1];
		}
		each[what] = (clock_seconds() - start) / rounds;
	}
	printf("%5d points%s%s: %6.3f bytes a point, packing %5.0f ns a row, header %4.0f ns a bucket, "
		   "times %5.2f, doubles %5.2f, integers %5.2f ns a value (%d)\n",
		   n, noisy ? ", noisy" : "", jitter ? ", jitter" : "", (double) VARSIZE_ANY(bucket) / n,
		   pack * 1e9, each[0] * 1e9, each[1] * 1e9 / n, each[2] * 1e9 / n, each[3] * 1e9 / n,
		   (int) (sum & 1));
	fuzz_reset_memory();
}

int
main(int argc, char **argv)
{
	uint64 n;
	uint64 first = 0;

	if (argc == 2 && strcmp(argv[1], "speed") == 0)
	{
		for (int i = 0; i < 8; i++)
			speed_of(i & 4 ? 1000 : 60, (i & 1) != 0, (i & 2) != 0);
		return 0;
	}
	if (argc < 3)
	{
		fprintf(stderr, "usage: %s ITERATIONS SEED [FIRST] | speed\n", argv[0]);
		return 2;
	}
	n = strtoull(argv[1], NULL, 10);
	seed = strtoull(argv[2], NULL, 10);
	if (argc > 3)
		first = strtoull(argv[3], NULL, 10);
	for (iteration = first; iteration < first + n; iteration++)
	{
		state =
			seed * UINT64CONST(0x9E3779B97F4A7C15) + iteration * UINT64CONST(0xD1B54A32D192ED03);
		iterate();
		fuzz_reset_memory();
	}
	printf(
		"buckets: %llu rounds, seed %llu: %llu rows in %llu bytes; of %llu damaged buckets %llu were refused; no fault\n",
		(unsigned long long) n, (unsigned long long) seed, (unsigned long long) counts.rows,
		(unsigned long long) counts.bytes, (unsigned long long) counts.damaged,
		(unsigned long long) counts.refused);
	return 0;
}
