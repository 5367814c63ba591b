/*
 * reader.c
 *		Reading buckets: the header, the summaries, the times and numbers.
 *		load.c has the values of all kinds.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "bson/reader.h"
#include "types/bucket/format.h"

/* The first fetch of a bucket that is stored out of line: one chunk */
#define FIRST_SLICE TOAST_MAX_CHUNK_SIZE

/* As much of a bucket has the count in it */
#define COUNT_SLICE 16

/* Working memory of a reader, kept from one bucket to the next */
typedef struct DpBucketScratch
{
	int64 *values;
	int nvalues;
	uint8 *presence;
	int npresence;
} DpBucketScratch;

static void fetch_whole(DpBucketReader *r);
static void open_header(DpBucketReader *r);
static void parse_column(DpBucketReader *r, DpPackedColumn *c, int number);

void
dp_bucket_reader_init(DpBucketReader *r, MemoryContext mcxt)
{
	memset(r, 0, sizeof(DpBucketReader));
	r->mcxt = mcxt;
}

void
dp_bucket_reader_free(DpBucketReader *r)
{
	if (r->columns != NULL)
		pfree(r->columns);
	if (r->detoasted != NULL)
		pfree(r->detoasted);
	if (r->scratch != NULL)
	{
		if (r->scratch->values != NULL)
			pfree(r->scratch->values);
		if (r->scratch->presence != NULL)
			pfree(r->scratch->presence);
		pfree(r->scratch);
	}
	dp_bucket_reader_init(r, r->mcxt);
}

void
dp_bucket_open(DpBucketReader *r, Datum bucket)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(bucket);

	if (unlikely(r->detoasted != NULL))
	{
		pfree(r->detoasted);
		r->detoasted = NULL;
	}
	if (unlikely(VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v)))
	{
		MemoryContext old = MemoryContextSwitchTo(r->mcxt);

		r->total = (uint32) (toast_raw_datum_size(bucket) - VARHDRSZ);
		if (VARATT_IS_EXTERNAL_ONDISK(v) && r->total > FIRST_SLICE)
		{
			struct varatt_external pointer;

			VARATT_EXTERNAL_GET_POINTER(pointer, v);
			if (!VARATT_EXTERNAL_IS_COMPRESSED(pointer))
				r->detoasted = detoast_attr_slice(v, 0, FIRST_SLICE);
		}
		if (r->detoasted == NULL)
			r->detoasted = detoast_attr(v);
		MemoryContextSwitchTo(old);
		v = r->detoasted;
		r->stored = bucket;
		r->data = (const uint8 *) VARDATA_ANY(v);
		r->avail = VARSIZE_ANY_EXHDR(v);
		open_header(r);
		return;
	}
	r->data = (const uint8 *) VARDATA_ANY(v);
	r->avail = r->total = VARSIZE_ANY_EXHDR(v);
	open_header(r);
}

void
dp_bucket_open_bytes(DpBucketReader *r, const uint8 *bytes, Size size)
{
	r->data = bytes;
	r->avail = r->total = (uint32) size;
	open_header(r);
}

int
dp_bucket_count_said(Datum bucket)
{
	struct varlena *v = PG_DETOAST_DATUM_SLICE(bucket, 0, COUNT_SLICE);
	const uint8 *p = (const uint8 *) VARDATA_ANY(v);
	const uint8 *end = p + VARSIZE_ANY_EXHDR(v);
	uint64 number = 0;
	int i;

	/* the version, then two varints: the header's size and the count */
	p++;
	for (i = 0; i < 2; i++)
	{
		int shift = 0;

		number = 0;
		do
		{
			if (p >= end || shift > 28)
				return 0;
			number |= (uint64) (*p & 0x7F) << shift;
			shift += 7;
		} while ((*p++ & 0x80) != 0);
	}
	return number <= DP_BUCKET_MAX_COUNT ? (int) number : 0;
}

/*
 * Fetches all of a bucket of which only the first bytes were fetched.  Pointers into them are
 * updated.
 */
static void
fetch_whole(DpBucketReader *r)
{
	MemoryContext old = MemoryContextSwitchTo(r->mcxt);
	struct varlena *v = detoast_attr((struct varlena *) DatumGetPointer(r->stored));
	const uint8 *data = (const uint8 *) VARDATA_ANY(v);

	MemoryContextSwitchTo(old);
	if (VARSIZE_ANY_EXHDR(v) != r->total)
		dp_bucket_corrupted("It ends too early.");
	for (int i = 0; i < r->nparsed; i++)
	{
		DpPackedColumn *c = &r->columns[i];

		if (c->name != NULL)
			c->name = (const char *) data + ((const uint8 *) c->name - r->data);
	}
	if (r->next != NULL)
		r->next = data + (r->next - r->data);
	pfree(r->detoasted);
	r->detoasted = v;
	r->data = data;
	r->avail = r->total;
}

/*
 * Everything before the first column's header.
 */
static void
open_header(DpBucketReader *r)
{
	DpCursor c;
	uint8 start;
	uint32 size;
	uint32 n;

	r->nparsed = 0;
	r->next = NULL;
	c.p = r->data;
	c.end = r->data + r->avail;
	start = dp_cursor_byte(&c);
	if (unlikely(start >> 4 != DP_BUCKET_VERSION || (start & 0x0F & ~DP_FLAGS_ALL) != 0))
		dp_bucket_corrupted("Its version is not known.");
	r->flags = start & (DP_BUCKET_TIMELESS | DP_BUCKET_NAMED);
	size = dp_cursor_size(&c, r->total);
	if (unlikely(size > r->avail))
	{
		fetch_whole(r);
		c.p = r->data + 1;
		c.end = r->data + r->avail;
		(void) dp_cursor_varint(&c);
	}
	r->header = size;
	c.end = r->data + size;
	r->count = (int) dp_cursor_size(&c, DP_BUCKET_MAX_COUNT);
	if (unlikely(r->count == 0))
		dp_bucket_corrupted("It has no rows.");
	r->ncolumns = (int) dp_cursor_size(&c, DP_BUCKET_MAX_COLUMNS);
	r->nfields = 0;
	if ((start & DP_FLAG_FIELDS) != 0)
		r->nfields = (int) dp_cursor_size(&c, DP_BUCKET_MAX_COLUMNS - r->ncolumns);
	r->time_offset = size;
	if ((start & DP_BUCKET_TIMELESS) == 0)
	{
		uint64 unit;
		bool irregular;

		r->time_unit = dp_cursor_byte(&c);
		irregular = (r->time_unit & DP_TIME_IRREGULAR) != 0;
		r->time_unit &= ~DP_TIME_IRREGULAR;
		if (unlikely(r->time_unit >= DP_TIME_UNITS))
			dp_bucket_corrupted("The unit of its times is not known.");
		unit = dp_time_units[r->time_unit];
		r->first = (int64) ((uint64) dp_cursor_zigzag(&c) * unit);
		r->last = (int64) ((uint64) r->first + dp_cursor_varint(&c) * unit);
		if (unlikely(!IS_VALID_TIMESTAMP(r->first) || !IS_VALID_TIMESTAMP(r->last) ||
					 r->last < r->first))
			dp_bucket_corrupted("Its times are not times.");
		r->time_size = irregular ? dp_cursor_size(&c, r->total - size) : 0;
	}
	else
	{
		r->first = r->last = 0;
		r->time_size = 0;
	}
	r->next = c.p;
	r->next_data = size + r->time_size;

	/* every column has some bytes of header: so many cannot be wrong */
	n = r->ncolumns + r->nfields;
	if (unlikely(n > (uint32) (c.end - c.p)))
		dp_bucket_corrupted("It has not that many columns.");
	if (unlikely(n > (uint32) r->maxcolumns))
	{
		if (r->columns != NULL)
			pfree(r->columns);
		r->columns = NULL;
		r->maxcolumns = 0;
		r->columns = MemoryContextAlloc(r->mcxt, sizeof(DpPackedColumn) * n);
		r->maxcolumns = n;
	}
	if (unlikely(n == 0 && (r->next != r->data + r->header || r->next_data != r->total)))
		dp_bucket_corrupted("There are bytes that belong to nothing.");
}

const DpPackedColumn *
dp_bucket_parse_column(DpBucketReader *r, int i)
{
	int n = r->ncolumns + r->nfields;

	if (i < 0 || i >= n)
		elog(ERROR, "bucket has no column %d", i);
	while (r->nparsed <= i)
	{
		parse_column(r, &r->columns[r->nparsed], r->nparsed);
		r->nparsed++;
	}
	if (unlikely(r->nparsed == n && (r->next != r->data + r->header || r->next_data != r->total)))
		dp_bucket_corrupted("There are bytes that belong to nothing.");
	return &r->columns[i];
}

/* Whether values of this kind and BSON type are packed as integers. */
static bool
kind_is_int(int kind, int bson_type)
{
	switch (kind)
	{
		case DP_PACKED_BOOL:
		case DP_PACKED_INT2:
		case DP_PACKED_INT4:
		case DP_PACKED_INT8:
		case DP_PACKED_DATE:
		case DP_PACKED_TIME:
		case DP_PACKED_TIMESTAMP:
		case DP_PACKED_TIMESTAMPTZ:
			return true;
		case DP_PACKED_VALUE:
			return dp_type_is_int(bson_type);
		default:
			return false;
	}
}

static bool
kind_is_float(int kind, int bson_type)
{
	return kind == DP_PACKED_FLOAT4 || kind == DP_PACKED_FLOAT8 ||
		   (kind == DP_PACKED_VALUE && bson_type == DP_TYPE_DOUBLE);
}

bool
dp_int_in_range(int kind, int bson_type, int64 i)
{
	switch (kind)
	{
		case DP_PACKED_BOOL:
			return i == 0 || i == 1;
		case DP_PACKED_INT2:
			return i >= PG_INT16_MIN && i <= PG_INT16_MAX;
		case DP_PACKED_INT4:
			return i >= PG_INT32_MIN && i <= PG_INT32_MAX;
		case DP_PACKED_DATE:
			return i == DATEVAL_NOBEGIN || i == DATEVAL_NOEND || IS_VALID_DATE(i);
		case DP_PACKED_TIME:
			return i >= 0 && i <= USECS_PER_DAY;
		case DP_PACKED_TIMESTAMP:
		case DP_PACKED_TIMESTAMPTZ:
			return i == DT_NOBEGIN || i == DT_NOEND || IS_VALID_TIMESTAMP(i);
		case DP_PACKED_VALUE:
			if (bson_type == DP_TYPE_INT32)
				return i >= PG_INT32_MIN && i <= PG_INT32_MAX;
			return bson_type != DP_TYPE_BOOL || i == 0 || i == 1;
		default:
			return true;
	}
}

/*
 * The header of the next column.
 */
static void
parse_column(DpBucketReader *r, DpPackedColumn *p, int number)
{
	DpBucketSummary *s = &p->summary;
	DpCursor c;
	uint8 flags;
	uint8 form;

	c.p = r->next;
	c.end = r->data + r->header;
	flags = dp_cursor_byte(&c);
	p->kind = flags & DP_COLUMN_KIND;
	if (unlikely(p->kind > DP_PACKED_OTHER || p->kind == DP_PACKED_NOTHING))
		dp_bucket_corrupted("There is no such kind of column.");
	s->nnulls = s->nmissing = 0;
	if ((flags & DP_COLUMN_HAS_ABSENT) != 0)
	{
		s->nnulls = (int) dp_cursor_size(&c, r->count);
		s->nmissing = (int) dp_cursor_size(&c, r->count - s->nnulls);
	}
	s->nvalues = r->count - s->nnulls - s->nmissing;
	p->bson_type = p->kind == DP_PACKED_VALUE ? dp_cursor_byte(&c) : 0;
	p->parent = -1;
	if (number >= r->ncolumns)
	{
		uint32 parent = dp_cursor_size(&c, r->ncolumns);

		if (parent >= (uint32) r->ncolumns || r->columns[parent].kind != DP_PACKED_SPLIT_DOCUMENT ||
			p->kind != DP_PACKED_VALUE)
			dp_bucket_corrupted("A field belongs to no document.");
		p->parent = (int16) parent;
	}
	p->name = NULL;
	p->namelen = 0;
	if (p->parent >= 0 || (r->flags & DP_BUCKET_NAMED) != 0)
	{
		p->namelen = (int) dp_cursor_size(&c, c.end - c.p);
		p->name = (const char *) dp_cursor_bytes(&c, p->namelen);
	}
	form = dp_cursor_byte(&c);
	p->form = form >> DP_FORM_SHIFT;
	s->scale = form & DP_FORM_SCALE;
	if (unlikely(s->scale > DP_MAX_SCALE))
		dp_bucket_corrupted("The scale of a column is too large.");
	p->scale = s->scale;
	s->min_scale = s->max_scale = s->sum_scale = s->scale;
	if (p->form == DP_FORM_DECIMALS)
	{
		s->min_scale = dp_cursor_byte(&c);
		s->max_scale = dp_cursor_byte(&c);
		s->sum_scale = dp_cursor_byte(&c);
		if (unlikely(s->min_scale > s->scale || s->max_scale > s->scale ||
					 s->sum_scale != s->scale))
			dp_bucket_corrupted("The scale of a column is too large.");
	}
	/* only these hold integers */
	p->integers = (p->form == DP_FORM_INTS && s->nvalues > 0 &&
				   (kind_is_int(p->kind, p->bson_type) || kind_is_float(p->kind, p->bson_type) ||
					p->kind == DP_PACKED_NUMERIC)) ||
				  (p->form == DP_FORM_DECIMALS && p->kind == DP_PACKED_NUMERIC);
	s->has_range = (flags & DP_COLUMN_HAS_RANGE) != 0;
	s->has_sum = (flags & DP_COLUMN_HAS_SUM) != 0;
	if (unlikely((s->has_range || s->has_sum) && s->nvalues == 0))
		dp_bucket_corrupted("A column without values has a minimum.");
	s->min_i = s->max_i = s->sum_i = 0;
	if (p->integers)
	{
		double power = dp_power10[s->scale];

		if (unlikely(!s->has_range))
			dp_bucket_corrupted("A column has no minimum.");
		s->min_i = dp_cursor_zigzag(&c);
		s->max_i = (int64) ((uint64) s->min_i + dp_cursor_varint(&c));
		if (unlikely(s->max_i < s->min_i || (kind_is_int(p->kind, p->bson_type) &&
											 (!dp_int_in_range(p->kind, p->bson_type, s->min_i) ||
											  !dp_int_in_range(p->kind, p->bson_type, s->max_i)))))
			dp_bucket_corrupted("The range of a column is wrong.");
		s->min_d = (double) s->min_i / power;
		s->max_d = (double) s->max_i / power;
		s->sum_d = 0;
		if (s->has_sum)
		{
			s->sum_i = (int64) (dp_cursor_varint(&c) + (uint64) s->nvalues * (uint64) s->min_i);
			s->sum_d = (double) s->sum_i / power;
		}
		if (p->kind == DP_PACKED_FLOAT4)
		{
			s->min_d = (float) s->min_d;
			s->max_d = (float) s->max_d;
		}
	}
	else
	{
		s->scale = -1;
		s->min_d = s->max_d = s->sum_d = 0;
		if (unlikely((s->has_range || s->has_sum) && !kind_is_float(p->kind, p->bson_type)))
			dp_bucket_corrupted("A column cannot have a minimum.");
		if (s->has_range)
		{
			s->min_d = dp_get_double(dp_cursor_bytes(&c, 8));
			s->max_d = dp_get_double(dp_cursor_bytes(&c, 8));
		}
		if (s->has_sum)
			s->sum_d = dp_get_double(dp_cursor_bytes(&c, 8));
	}
	p->offset = r->next_data;
	p->size = r->total - r->next_data;
	/* the last one has the rest */
	if (number < r->ncolumns + r->nfields - 1)
		p->size = dp_cursor_size(&c, p->size);
	r->next = c.p;
	r->next_data += p->size;
}

int
dp_bucket_find_column(DpBucketReader *r, int parent, const char *name, int namelen)
{
	int from = parent < 0 ? 0 : r->ncolumns;
	int to = parent < 0 ? r->ncolumns : r->ncolumns + r->nfields;

	for (int i = from; i < to; i++)
	{
		const DpPackedColumn *c = dp_bucket_column(r, i);

		if (c->parent == parent && c->name != NULL && c->namelen == namelen &&
			memcmp(c->name, name, namelen) == 0)
			return i;
	}
	return -1;
}

/* ---------------------------------------------------------------- summaries */

/*
 * A number of the column's kind, given as integer or as double.
 */
static Datum
summary_datum(const DpPackedColumn *column, int64 i, double d, int scale)
{
	const DpBucketSummary *s = &column->summary;

	switch (column->kind)
	{
		case DP_PACKED_BOOL:
			return BoolGetDatum(i != 0);
		case DP_PACKED_INT2:
			return Int16GetDatum((int16) i);
		case DP_PACKED_INT4:
			return Int32GetDatum((int32) i);
		case DP_PACKED_DATE:
			return DateADTGetDatum((DateADT) i);
		case DP_PACKED_INT8:
		case DP_PACKED_TIME:
		case DP_PACKED_TIMESTAMP:
		case DP_PACKED_TIMESTAMPTZ:
			return Int64GetDatum(i);
		case DP_PACKED_FLOAT4:
			return Float4GetDatum((float4) d);
		case DP_PACKED_NUMERIC:
			if (scale < s->scale)
				i /= dp_power10_int64[s->scale - scale];
			return dp_decimal_to_numeric(i, scale);
		default:
			return Float8GetDatum(d);
	}
}

bool
dp_bucket_min(const DpPackedColumn *column, Datum *result)
{
	const DpBucketSummary *s = &column->summary;

	if (!s->has_range || column->kind == DP_PACKED_VALUE)
		return false;
	*result = summary_datum(column, s->min_i, s->min_d, s->min_scale);
	return true;
}

bool
dp_bucket_max(const DpPackedColumn *column, Datum *result)
{
	const DpBucketSummary *s = &column->summary;

	if (!s->has_range || column->kind == DP_PACKED_VALUE)
		return false;
	*result = summary_datum(column, s->max_i, s->max_d, s->max_scale);
	return true;
}

bool
dp_bucket_sum(const DpPackedColumn *column, Datum *result)
{
	const DpBucketSummary *s = &column->summary;

	if (!s->has_sum)
		return false;
	switch (column->kind)
	{
		case DP_PACKED_BOOL:
		case DP_PACKED_INT2:
		case DP_PACKED_INT4:
			*result = Int64GetDatum(s->sum_i);
			return true;
		case DP_PACKED_INT8:
			*result = NumericGetDatum(int64_to_numeric(s->sum_i));
			return true;
		case DP_PACKED_NUMERIC:
			*result = dp_decimal_to_numeric(s->sum_i, s->sum_scale);
			return true;
		case DP_PACKED_FLOAT4:
			*result = Float4GetDatum((float4) s->sum_d);
			return true;
		case DP_PACKED_FLOAT8:
			*result = Float8GetDatum(s->sum_d);
			return true;
		default:
			return false;
	}
}

/* ---------------------------------------------------------------- values */

void
dp_bucket_times(DpBucketReader *r, int64 *times)
{
	int n = r->count;
	uint64 first = (uint64) r->first;
	bool wrong = false;

	if ((r->flags & DP_BUCKET_TIMELESS) != 0)
		elog(ERROR, "bucket has no times");
	if (r->time_size == 0)
	{
		uint64 span = (uint64) r->last - first;
		uint64 step = n > 1 ? span / (n - 1) : 0;

		if (unlikely(step * (n - 1) != span))
			dp_bucket_corrupted("Its times are not regular.");
		for (int i = 0; i < n; i++)
			times[i] = (int64) (first + i * step);
		return;
	}
	else
	{
		uint64 unit = dp_time_units[r->time_unit];
		DpCursor c;

		if (r->avail < r->time_offset + r->time_size)
			fetch_whole(r);
		c.p = r->data + r->time_offset;
		c.end = c.p + r->time_size;
		dp_ints_decode(c, n, 0, times);
		for (int i = 0; i < n; i++)
			times[i] = (int64) (first + (uint64) times[i] * unit);
	}
	for (int i = 1; i < n; i++)
		wrong |= times[i] < times[i - 1];
	if (unlikely(wrong || times[0] != r->first || times[n - 1] != r->last))
		dp_bucket_corrupted("Its times are not in order.");
}

bool
dp_bucket_find_times(DpBucketReader *r, int64 since, int64 until, int *from, int *to)
{
	const int64 *times;
	int n = r->count;
	int bounds[2];

	if (since <= r->first && until > r->last)
	{
		*from = 0;
		*to = n;
		return true;
	}
	if (since > r->last || until <= r->first || since >= until)
	{
		*from = *to = 0;
		return false;
	}
	if (r->time_size == 0 && n > 1)
	{
		/* a regular grid need not be written out */
		uint64 step = ((uint64) r->last - (uint64) r->first) / (n - 1);

		if (step > 0)
		{
			*from = since <= r->first
						? 0
						: (int) (((uint64) since - (uint64) r->first + step - 1) / step);
			*to = until > r->last ? n
								  : (int) (((uint64) until - (uint64) r->first + step - 1) / step);
			*to = Min(*to, n);
			return *from < *to;
		}
	}
	times = dp_reader_times(r);
	for (int k = 0; k < 2; k++)
	{
		int64 bound = k == 0 ? since : until;
		int low = 0;
		int high = n;

		while (low < high)
		{
			int middle = (low + high) / 2;

			if (times[middle] < bound)
				low = middle + 1;
			else
				high = middle;
		}
		bounds[k] = low;
	}
	*from = bounds[0];
	*to = bounds[1];
	return *from < *to;
}

/* ---------------------------------------------------------------- working memory */

static DpBucketScratch *
scratch_of(DpBucketReader *r)
{
	if (r->scratch == NULL)
		r->scratch = MemoryContextAllocZero(r->mcxt, sizeof(DpBucketScratch));
	return r->scratch;
}

int64 *
dp_reader_values(DpBucketReader *r)
{
	DpBucketScratch *s = scratch_of(r);

	if (s->nvalues < r->count)
	{
		if (s->values != NULL)
			pfree(s->values);
		s->values = NULL;
		s->nvalues = 0;
		s->values = MemoryContextAlloc(r->mcxt, sizeof(int64) * r->count);
		s->nvalues = r->count;
	}
	return s->values;
}

uint8 *
dp_reader_presences(DpBucketReader *r)
{
	DpBucketScratch *s = scratch_of(r);

	if (s->npresence < r->count)
	{
		if (s->presence != NULL)
			pfree(s->presence);
		s->presence = NULL;
		s->npresence = 0;
		s->presence = MemoryContextAlloc(r->mcxt, r->count);
		s->npresence = r->count;
	}
	return s->presence;
}

const int64 *
dp_reader_times(DpBucketReader *r)
{
	int64 *times = dp_reader_values(r);

	dp_bucket_times(r, times);
	return times;
}

DpCursor
dp_reader_column_data(DpBucketReader *r, int column)
{
	const DpPackedColumn *p = dp_bucket_column(r, column);
	DpCursor c;

	if (unlikely(r->avail < p->offset + p->size))
		fetch_whole(r);
	c.p = r->data + p->offset;
	c.end = c.p + p->size;
	return c;
}

void
dp_reader_presence(DpBucketReader *r, const DpPackedColumn *column, DpCursor *c, uint8 *presence)
{
	const DpBucketSummary *s = &column->summary;
	int counts[3] = { 0 };
	int64 *codes;

	if (s->nnulls == r->count || s->nmissing == r->count || s->nvalues == r->count)
	{
		memset(presence,
			   s->nvalues > 0  ? DP_PACKED_PRESENT
			   : s->nnulls > 0 ? DP_PACKED_NULL
							   : DP_PACKED_MISSING,
			   r->count);
		return;
	}
	codes = palloc_array(int64, r->count);
	dp_ints_decode_sized(c, r->count, 0, codes);
	for (int i = 0; i < r->count; i++)
	{
		if (unlikely((uint64) codes[i] > DP_PACKED_MISSING))
			dp_bucket_corrupted("A row is neither present nor missing.");
		counts[codes[i]]++;
		presence[i] = (uint8) codes[i];
	}
	pfree(codes);
	if (counts[DP_PACKED_NULL] != s->nnulls || counts[DP_PACKED_MISSING] != s->nmissing)
		dp_bucket_corrupted("The number of missing values is wrong.");
}

void
dp_bucket_presence(DpBucketReader *r, int column, uint8 *presence)
{
	DpCursor c = dp_reader_column_data(r, column);

	dp_reader_presence(r, dp_bucket_column(r, column), &c, presence);
}
