/*
 * column.c
 *		Packs one column: chooses the form of its values and writes its header. format.h has the
 *		layout.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"

#include "types/bucket/format.h"

/*
 * How a column, or the part of one that has one BSON type, was packed.
 */
typedef struct Packed
{
	DpForm form;
	int scale;
	bool has_range;
	bool has_sum;
	bool integers; /* which of the following are set */
	int64 min_i;
	int64 max_i;
	int64 sum_i;
	double min_d;
	double max_d;
	double sum_d;
	uint8 scales[3]; /* DECIMALS: of min, max, sum */
} Packed;

static void
pack_values(StringInfo out, int kind, int bson_type, const DpValues *v, bool whole, Packed *p);
static void pack_ints(StringInfo out, const int64 *ints, int n, bool whole, Packed *p);
static void pack_floats(StringInfo out, const double *d, int n, bool single, bool whole, Packed *p);
static void pack_numerics(StringInfo out, const DpValues *v, Packed *p);
static void pack_mixed(StringInfo out, const DpValues *v, Packed *p);
static void pack_split(StringInfo out, const DpColumnSource *source);
static void summarize_ints(const int64 *ints, int n, Packed *p);
static void summarize_floats(const double *d, int n, Packed *p);

bool
dp_type_is_int(uint8 bson_type)
{
	return bson_type == DP_TYPE_INT32 || bson_type == DP_TYPE_INT64 || bson_type == DP_TYPE_DATE ||
		   bson_type == DP_TYPE_BOOL;
}

/* The BSON type that all values have, or 0. */
static int
uniform_type(const DpValues *v)
{
	for (int i = 1; i < v->n; i++)
	{
		if (v->types[i] != v->types[0])
			return 0;
	}
	return v->n > 0 ? v->types[0] : 0;
}

/* Whether the header may have a sum of the values. */
static bool
kind_has_sum(int kind, int bson_type)
{
	switch (kind)
	{
		case DP_PACKED_BOOL:
		case DP_PACKED_INT2:
		case DP_PACKED_INT4:
		case DP_PACKED_INT8:
		case DP_PACKED_FLOAT4:
		case DP_PACKED_FLOAT8:
		case DP_PACKED_NUMERIC:
			return true;
		case DP_PACKED_VALUE:
			return bson_type == DP_TYPE_INT32 || bson_type == DP_TYPE_INT64 ||
				   bson_type == DP_TYPE_DOUBLE;
		default:
			return false;
	}
}

void
dp_column_encode(StringInfo header, StringInfo data, const DpColumnSource *source, int flags)
{
	int start = data->len;
	int nabsent = source->nnulls + source->nmissing;
	int bson_type = 0;
	int byte;
	Packed p;

	Assert(source->values.n == source->count - nabsent);
	memset(&p, 0, sizeof(p));
	if (nabsent > 0 && source->nnulls != source->count && source->nmissing != source->count)
	{
		int64 *presence = palloc_array(int64, source->count);

		for (int i = 0; i < source->count; i++)
			presence[i] = source->presence[i];
		dp_ints_encode_sized(data, presence, source->count, 0);
		pfree(presence);
	}
	if (source->kind == DP_PACKED_VALUE)
		bson_type = uniform_type(&source->values);
	if (source->kind == DP_PACKED_SPLIT_DOCUMENT)
	{
		p.form = DP_FORM_STRINGS;
		pack_split(data, source);
	}
	else if (source->values.n > 0)
		pack_values(data, source->kind, bson_type, &source->values, true, &p);
	if (!kind_has_sum(source->kind, bson_type))
		p.has_sum = false;

	byte = source->kind;
	if (nabsent > 0)
		byte |= DP_COLUMN_HAS_ABSENT;
	if (p.has_range)
		byte |= DP_COLUMN_HAS_RANGE;
	if (p.has_sum)
		byte |= DP_COLUMN_HAS_SUM;
	dp_put_byte(header, byte);
	if (nabsent > 0)
	{
		dp_put_varint(header, source->nnulls);
		dp_put_varint(header, source->nmissing);
	}
	if (source->kind == DP_PACKED_VALUE)
		dp_put_byte(header, bson_type);
	if (source->parent >= 0)
		dp_put_varint(header, source->parent);
	if (source->parent >= 0 || (flags & DP_BUCKET_NAMED) != 0)
	{
		dp_put_varint(header, source->namelen);
		appendBinaryStringInfo(header, source->name, source->namelen);
	}
	dp_put_byte(header, p.form << DP_FORM_SHIFT | p.scale);
	if (p.form == DP_FORM_DECIMALS)
		appendBinaryStringInfo(header, (const char *) p.scales, sizeof(p.scales));
	if (p.has_range)
	{
		if (p.integers)
		{
			dp_put_varint(header, dp_zigzag(p.min_i));
			dp_put_varint(header, (uint64) p.max_i - (uint64) p.min_i);
		}
		else
		{
			dp_put_double(dp_put_room(header, 8), p.min_d);
			dp_put_double(dp_put_room(header, 8), p.max_d);
		}
	}
	if (p.has_sum)
	{
		if (p.integers)
			dp_put_varint(header, (uint64) p.sum_i - (uint64) source->values.n * (uint64) p.min_i);
		else
			dp_put_double(dp_put_room(header, 8), p.sum_d);
	}
	if (!source->last)
		dp_put_varint(header, data->len - start);
}

/*
 * Packs values of one kind, and of one BSON type if the kind is VALUE (0: of
 * several).  whole: they are the whole column, so that its header knows their
 * minimum.
 */
static void
pack_values(StringInfo out, int kind, int bson_type, const DpValues *v, bool whole, Packed *p)
{
	memset(p, 0, sizeof(Packed));
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
			pack_ints(out, v->ints, v->n, whole, p);
			break;
		case DP_PACKED_FLOAT4:
		case DP_PACKED_FLOAT8:
			pack_floats(out, (const double *) v->ints, v->n, kind == DP_PACKED_FLOAT4, whole, p);
			break;
		case DP_PACKED_NUMERIC:
			pack_numerics(out, v, p);
			break;
		case DP_PACKED_VALUE:
			if (bson_type == 0)
				pack_mixed(out, v, p);
			else if (dp_type_is_int(bson_type))
				pack_ints(out, v->ints, v->n, whole, p);
			else if (bson_type == DP_TYPE_DOUBLE)
				pack_floats(out, (const double *) v->ints, v->n, false, whole, p);
			else
				p->form = dp_strings_encode(out, v->strings, v->n);
			break;
		default:
			p->form = dp_strings_encode(out, v->strings, v->n);
			break;
	}
}

static void
pack_ints(StringInfo out, const int64 *ints, int n, bool whole, Packed *p)
{
	p->form = DP_FORM_INTS;
	p->scale = 0;
	summarize_ints(ints, n, p);
	dp_ints_encode(out, ints, n, whole ? p->min_i : 0);
}

/*
 * As scaled integers, with or without exceptions, or as bits: whatever is
 * smallest, where it is not plain to see which one that is.
 */
static void
pack_floats(StringInfo out, const double *d, int n, bool single, bool whole, Packed *p)
{
	int start = out->len;
	int64 *ints = palloc_array(int64, n);
	int *exceptions = palloc_array(int, n / 8 + 1);
	int nexceptions;
	int scale = dp_floats_scale(d, n, single, ints, exceptions, &nexceptions);
	int size = 0;

	if (scale >= 0)
	{
		p->scale = scale;
		if (nexceptions == 0)
		{
			p->form = DP_FORM_INTS;
			summarize_ints(ints, n, p);
			dp_ints_encode(out, ints, n, whole ? p->min_i : 0);
		}
		else
		{
			p->form = DP_FORM_EXCEPTIONS;
			summarize_floats(d, n, p);
			dp_floats_encode_exceptions(out, d, n, single, ints, exceptions, nexceptions);
		}
		size = out->len - start;
	}
	if (scale < 0 || size > n * (single ? 2 : 4))
	{
		int middle = out->len;
		DpForm form = dp_floats_encode(out, d, n, single);

		if (scale < 0 || out->len - middle < size)
		{
			memmove(out->data + start, out->data + middle, out->len - middle);
			out->len -= size;
			memset(p, 0, sizeof(Packed));
			p->form = form;
			summarize_floats(d, n, p);
		}
		else
			out->len = middle;
	}
	pfree(ints);
	pfree(exceptions);
}

/*
 * The text of value / 10^scale, as numeric_out would write it.
 */
static char *
decimal_text(int64 value, int scale)
{
	return DatumGetCString(DirectFunctionCall1(numeric_out, dp_decimal_to_numeric(value, scale)));
}

/*
 * Numerics are integers at the largest of their scales.  If one does not fit,
 * they are all text.
 */
static void
pack_numerics(StringInfo out, const DpValues *v, Packed *p)
{
	int n = v->n;
	int scale = 0;
	bool same = true;
	bool fit = true;
	int64 *ints;

	for (int i = 0; i < n && fit; i++)
	{
		fit = v->types[i] != DP_NO_DECIMAL;
		same = same && v->types[i] == v->types[0];
		scale = Max(scale, v->types[i]);
	}
	if (fit && same)
	{
		pack_ints(out, v->ints, n, true, p);
		p->scale = scale;
		return;
	}
	ints = palloc_array(int64, n);
	for (int i = 0; i < n && fit; i++)
		fit = !pg_mul_s64_overflow(v->ints[i], dp_power10_int64[scale - v->types[i]], &ints[i]);
	if (fit)
	{
		int64 *scales = palloc_array(int64, n);

		for (int i = 0; i < n; i++)
			scales[i] = v->types[i];
		dp_ints_encode_sized(out, scales, n, 0);
		pack_ints(out, ints, n, true, p);
		p->form = DP_FORM_DECIMALS;
		p->scale = scale;
		p->scales[2] = scale;
		for (int i = n - 1; i >= 0; i--)
		{
			if (ints[i] == p->min_i)
				p->scales[0] = v->types[i];
			if (ints[i] == p->max_i)
				p->scales[1] = v->types[i];
		}
		pfree(scales);
	}
	else
	{
		DpString *strings = palloc_array(DpString, n);

		for (int i = 0; i < n; i++)
		{
			char *text;

			if (v->types[i] == DP_NO_DECIMAL)
			{
				strings[i] = v->strings[i];
				continue;
			}
			text = decimal_text(v->ints[i], v->types[i]);
			strings[i].data = (const uint8 *) text;
			strings[i].len = strlen(text);
		}
		p->form = dp_strings_encode(out, strings, n);
		pfree(strings);
	}
	pfree(ints);
}

/*
 * BSON values of several types: the types, and the values of each type.
 */
static void
pack_mixed(StringInfo out, const DpValues *v, Packed *p)
{
	int n = v->n;
	int64 *types = palloc_array(int64, n);
	int counts[256] = { 0 };
	DpValues part;
	StringInfoData sub;

	for (int i = 0; i < n; i++)
	{
		types[i] = v->types[i];
		counts[v->types[i]]++;
	}
	dp_ints_encode_sized(out, types, n, 0);
	part.ints = types; /* no longer needed */
	part.strings = palloc_array(DpString, n);
	part.types = NULL;
	initStringInfo(&sub);
	for (int type = 0; type < 256; type++)
	{
		Packed packed;

		if (counts[type] == 0)
			continue;
		part.n = 0;
		for (int i = 0; i < n; i++)
		{
			if (v->types[i] != type)
				continue;
			part.ints[part.n] = v->ints[i];
			part.strings[part.n++] = v->strings[i];
		}
		resetStringInfo(&sub);
		pack_values(&sub, DP_PACKED_VALUE, type, &part, false, &packed);
		dp_put_varint(out, sub.len);
		dp_put_byte(out, packed.form << DP_FORM_SHIFT | packed.scale);
		appendBinaryStringInfo(out, sub.data, sub.len);
	}
	pfree(sub.data);
	pfree(types);
	pfree(part.strings);
	memset(p, 0, sizeof(Packed));
	p->form = DP_FORM_MIXED;
}

/*
 * Keeps whole only those split documents that their fields cannot reproduce: with fields in another
 * order, or duplicate fields.
 */
static void
pack_split(StringInfo out, const DpColumnSource *source)
{
	dp_put_varint(out, source->nwhole);
	dp_ints_encode_sized(out, source->whole_rows, source->nwhole, 0);
	dp_strings_put(out, source->values.strings, source->nwhole);
}

static void
summarize_ints(const int64 *ints, int n, Packed *p)
{
	int64 min = ints[0];
	int64 max = ints[0];
	int64 sum = 0;
	bool overflow = false;

	for (int i = 0; i < n; i++)
	{
		min = Min(min, ints[i]);
		max = Max(max, ints[i]);
	}
	/* without overflow in between: the sum of any part of them is in range */
	if (min > PG_INT64_MIN / DP_BUCKET_MAX_COUNT && max < PG_INT64_MAX / DP_BUCKET_MAX_COUNT)
	{
		for (int i = 0; i < n; i++)
			sum += ints[i];
	}
	else
	{
		int64 low = 0; /* of the lower and the upper 32 bits */
		int64 high = 0;

		for (int i = 0; i < n; i++)
		{
			low += ints[i] & INT64CONST(0xFFFFFFFF);
			high += ints[i] >> 32;
		}
		high += low >> 32;
		low &= INT64CONST(0xFFFFFFFF);
		overflow = high < PG_INT32_MIN || high > PG_INT32_MAX;
		if (!overflow)
			sum = (int64) ((uint64) high << 32) + low;
	}
	p->integers = true;
	p->has_range = true;
	p->has_sum = !overflow;
	p->min_i = min;
	p->max_i = max;
	p->sum_i = sum;
}

/* Whether a is less than b in PostgreSQL's order: NaN is the greatest. */
static inline bool
double_less(double a, double b)
{
	if (isnan(a))
		return false;
	return isnan(b) || a < b;
}

static void
summarize_floats(const double *d, int n, Packed *p)
{
	double min = d[0];
	double max = d[0];
	double sum = 0;
	bool infinite = false;

	for (int i = 0; i < n; i++)
	{
		if (double_less(d[i], min))
			min = d[i];
		if (double_less(max, d[i]))
			max = d[i];
		sum += d[i];
		infinite = infinite || isinf(d[i]);
	}
	p->integers = false;
	p->has_range = true;
	/* finite numbers whose sum is not have none */
	p->has_sum = infinite || !isinf(sum);
	p->min_d = min;
	p->max_d = max;
	p->sum_d = isnan(sum) ? get_float8_nan() : sum;
}
