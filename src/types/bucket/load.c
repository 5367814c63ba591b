/*
 * load.c
 *		The values of a bucket's columns: as numbers, as datums, as BSON values.
 *
 * Numbers, which is what most columns have, are decoded straight into the
 * caller's array.  Everything else is loaded without the rows that have no value
 * and then converted, an entry of a dictionary once.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/value.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/reader.h"
#include "types/bucket/builder.h"

static void load_integers(DpCursor c, const DpPackedColumn *p, int64 *values);
static void load_numbers(DpCursor c, const DpPackedColumn *p, int64 *values);
static void load_values(DpCursor c, const DpPackedColumn *p, DpValues *v);
static void load_typed(DpCursor c, int type, DpForm form, int scale, DpValues *v);
static void load_numerics(DpCursor c, const DpPackedColumn *p, DpValues *v);
static void load_mixed(DpCursor c, DpValues *v);
static void spread(int64 *values, const uint8 *presence, int count, int nvalues);
static void value_of(const DpValues *v, int i, DpValue *value);
static bool is_wanted(const DpBucketReader *r, const DpPackedColumn *field);
static void split_documents(DpBucketReader *r, int column, DpValue *values);
static Datum string_datum(uint8 kind, DpString s);
static void verify_text(DpString s);

/* ---------------------------------------------------------------- numbers */

/* Whether the values are loaded as integers or doubles by load_numbers(): 'i', 'd' or 0. */
static char
number_class(const DpPackedColumn *p)
{
	switch (p->kind)
	{
		case DP_PACKED_BOOL:
		case DP_PACKED_INT2:
		case DP_PACKED_INT4:
		case DP_PACKED_INT8:
		case DP_PACKED_DATE:
		case DP_PACKED_TIME:
		case DP_PACKED_TIMESTAMP:
		case DP_PACKED_TIMESTAMPTZ:
			return 'i';
		case DP_PACKED_FLOAT4:
		case DP_PACKED_FLOAT8:
			return 'd';
		case DP_PACKED_VALUE:
			return dp_type_is_int(p->bson_type) ? 'i' : p->bson_type == DP_TYPE_DOUBLE ? 'd' : 0;
		default:
			return 0;
	}
}

/*
 * Loads packed integers.  They must have the range and sum of the header, which damaged bytes
 * rarely have.
 */
static void
load_integers(DpCursor c, const DpPackedColumn *p, int64 *values)
{
	const DpBucketSummary *s = &p->summary;
	int n = s->nvalues;
	uint64 range = (uint64) s->max_i - (uint64) s->min_i;
	uint64 sum = 0;
	bool outside = false;

	dp_ints_decode(c, n, s->min_i, values);
	for (int i = 0; i < n; i++)
	{
		uint64 v = (uint64) values[i];

		outside |= v - (uint64) s->min_i > range;
		sum += v;
	}
	if (unlikely(outside || (s->has_sum && sum != (uint64) s->sum_i)))
		dp_bucket_corrupted("The values of a column are not those that its header tells of.");
}

/*
 * Integers, or the bits of doubles.
 */
static void
load_numbers(DpCursor c, const DpPackedColumn *p, int64 *values)
{
	const DpBucketSummary *s = &p->summary;

	if (s->nvalues == 0)
		dp_cursor_done(&c);
	else if (p->integers)
	{
		load_integers(c, p, values);
		if (number_class(p) == 'd')
			dp_floats_unscale(values, s->nvalues, p->scale, p->kind == DP_PACKED_FLOAT4);
	}
	else if (number_class(p) == 'd')
		dp_floats_decode(c, p->form, p->scale, s->nvalues, p->kind == DP_PACKED_FLOAT4,
						 (double *) values);
	else
		dp_bucket_corrupted("Integers are not packed in that way.");
}

/*
 * Moves the values to their rows; the others become 0.
 */
static void
spread(int64 *values, const uint8 *presence, int count, int nvalues)
{
	int k = nvalues;

	for (int i = count - 1; i >= 0; i--)
	{
		if (presence[i] == DP_PACKED_PRESENT)
			values[i] = values[--k];
		else
			values[i] = 0;
	}
}

/*
 * Numbers, one for each row.
 */
static void
load_number_rows(DpBucketReader *r, int column, int64 *values, bool *isnull)
{
	const DpPackedColumn *p = dp_bucket_column(r, column);
	DpCursor c = dp_reader_column_data(r, column);

	if (likely(p->summary.nvalues == r->count))
	{
		load_numbers(c, p, values);
		if (isnull != NULL)
			memset(isnull, 0, r->count);
	}
	else
	{
		uint8 *presence = dp_reader_presences(r);

		dp_reader_presence(r, p, &c, presence);
		load_numbers(c, p, values);
		spread(values, presence, r->count, p->summary.nvalues);
		if (isnull != NULL)
		{
			for (int i = 0; i < r->count; i++)
				isnull[i] = presence[i] != DP_PACKED_PRESENT;
		}
	}
}

void
dp_bucket_int64s(DpBucketReader *r, int column, int64 *values, bool *isnull)
{
	if (number_class(dp_bucket_column(r, column)) != 'i' &&
		dp_bucket_column(r, column)->summary.nvalues > 0)
		elog(ERROR, "column %d of the bucket holds no integers", column);
	load_number_rows(r, column, values, isnull);
}

bool
dp_bucket_doubles(DpBucketReader *r, int column, double *values, bool *isnull)
{
	const DpPackedColumn *p = dp_bucket_column(r, column);
	char class = number_class(p);
	DpValues v;
	uint8 *presence;
	int k = 0;

	if (class != 0 || p->summary.nvalues == 0)
	{
		load_number_rows(r, column, (int64 *) values, isnull);
		if (class == 'i')
			dp_floats_unscale((int64 *) values, r->count, 0, false);
		return true;
	}
	if (p->kind != DP_PACKED_NUMERIC && (p->kind != DP_PACKED_VALUE || p->bson_type != 0))
		return false;

	presence = dp_reader_presences(r);
	dp_column_load(r, column, &v, presence);
	for (int i = 0; i < v.n; i++)
	{
		if (p->kind == DP_PACKED_NUMERIC
				? v.types[i] == DP_NO_DECIMAL
				: v.types[i] != DP_TYPE_INT32 && v.types[i] != DP_TYPE_INT64 &&
					  v.types[i] != DP_TYPE_DOUBLE)
			return false;
	}
	for (int i = 0; i < r->count; i++)
	{
		values[i] = 0;
		if (presence[i] == DP_PACKED_PRESENT)
		{
			if (p->kind == DP_PACKED_NUMERIC)
				values[i] = (double) v.ints[k] / dp_power10[v.types[k]];
			else if (v.types[k] == DP_TYPE_DOUBLE)
				memcpy(&values[i], &v.ints[k], sizeof(double));
			else
				values[i] = (double) v.ints[k];
			k++;
		}
		if (isnull != NULL)
			isnull[i] = presence[i] != DP_PACKED_PRESENT;
	}
	return true;
}

/* ---------------------------------------------------------------- all kinds */

void
dp_column_load(DpBucketReader *r, int column, DpValues *values, uint8 *presence)
{
	const DpPackedColumn *p = dp_bucket_column(r, column);
	DpCursor c = dp_reader_column_data(r, column);

	dp_reader_presence(r, p, &c, presence);
	values->n = p->summary.nvalues;
	values->ints = NULL;
	values->strings = NULL;
	values->types = NULL;
	load_values(c, p, values);
}

static void
load_values(DpCursor c, const DpPackedColumn *p, DpValues *v)
{
	int n = v->n;

	if (n == 0)
	{
		if (p->kind != DP_PACKED_SPLIT_DOCUMENT)
			dp_cursor_done(&c);
		return;
	}
	if (p->kind == DP_PACKED_VALUE)
	{
		v->ints = palloc_array(int64, n);
		v->strings = palloc_array(DpString, n);
		v->types = palloc_array(uint8, n);
		memset(v->types, p->bson_type, n);
		if (number_class(p) != 0)
			load_numbers(c, p, v->ints);
		else if (p->bson_type != 0)
			load_typed(c, p->bson_type, p->form, 0, v);
		else if (p->form == DP_FORM_MIXED)
			load_mixed(c, v);
		else
			dp_bucket_corrupted("Values are not packed in that way.");
	}
	else if (p->kind == DP_PACKED_NUMERIC)
		load_numerics(c, p, v);
	else if (number_class(p) != 0)
	{
		v->ints = palloc_array(int64, n);
		load_numbers(c, p, v->ints);
	}
	else if (p->kind != DP_PACKED_SPLIT_DOCUMENT)
	{
		v->strings = palloc_array(DpString, n);
		dp_strings_decode(c, p->form, n, v->strings);
	}
}

/*
 * BSON values of one type.
 */
static void
load_typed(DpCursor c, int type, DpForm form, int scale, DpValues *v)
{
	if (dp_type_is_int(type))
	{
		if (form != DP_FORM_INTS || scale != 0)
			dp_bucket_corrupted("Integers are not packed in that way.");
		dp_ints_decode(c, v->n, 0, v->ints);
	}
	else if (type == DP_TYPE_DOUBLE)
	{
		if (form == DP_FORM_INTS)
		{
			dp_ints_decode(c, v->n, 0, v->ints);
			dp_floats_unscale(v->ints, v->n, scale, false);
		}
		else
			dp_floats_decode(c, form, scale, v->n, false, (double *) v->ints);
	}
	else
	{
		dp_strings_decode(c, form, v->n, v->strings);
		for (int i = 0; i < v->n; i++)
		{
			const DpString *s = &v->strings[i];

			if (type == DP_TYPE_STRING)
				continue;
			if (s->len > PG_INT32_MAX - 16 ||
				dp_value_size(type, s->data, s->data + s->len) != s->len)
				dp_bucket_corrupted("The length of a value is wrong.");
		}
	}
}

/* Loads BSON values of several types: those of each type are loaded and distributed by type. */
static void
load_mixed(DpCursor c, DpValues *v)
{
	int n = v->n;
	int64 *types = palloc_array(int64, n);
	int counts[256] = { 0 };
	DpValues part;

	dp_ints_decode_sized(&c, n, 0, types);
	for (int i = 0; i < n; i++)
	{
		if (types[i] < 0 || types[i] > 255 || dp_fixed_size[types[i]] == DP_SIZE_INVALID)
			dp_bucket_corrupted("There is no such type.");
		v->types[i] = (uint8) types[i];
		counts[types[i]]++;
	}
	pfree(types);
	part.ints = palloc_array(int64, n);
	part.strings = palloc_array(DpString, n);
	part.types = NULL;
	for (int type = 0; type < 256; type++)
	{
		uint32 size;
		uint8 form;
		int k = 0;

		if (counts[type] == 0)
			continue;
		size = dp_cursor_size(&c, c.end - c.p);
		form = dp_cursor_byte(&c);
		if ((form & DP_FORM_SCALE) > DP_MAX_SCALE)
			dp_bucket_corrupted("The scale of a column is too large.");
		part.n = counts[type];
		load_typed(dp_cursor_part(&c, size), type, form >> DP_FORM_SHIFT, form & DP_FORM_SCALE,
				   &part);
		for (int i = 0; i < n; i++)
		{
			if (v->types[i] != type)
				continue;
			v->ints[i] = part.ints[k];
			v->strings[i] = part.strings[k++];
		}
	}
	dp_cursor_done(&c);
	pfree(part.ints);
	pfree(part.strings);
}

static void
load_numerics(DpCursor c, const DpPackedColumn *p, DpValues *v)
{
	int n = v->n;

	v->types = palloc_array(uint8, n);
	v->ints = palloc_array(int64, n);
	if (p->form == DP_FORM_INTS)
	{
		memset(v->types, p->scale, n);
		load_integers(c, p, v->ints);
	}
	else if (p->form == DP_FORM_DECIMALS)
	{
		int64 *scales = palloc_array(int64, n);

		dp_ints_decode_sized(&c, n, 0, scales);
		load_integers(c, p, v->ints);
		for (int i = 0; i < n; i++)
		{
			int64 factor;

			if (unlikely((uint64) scales[i] > p->scale))
				dp_bucket_corrupted("The scale of a number is wrong.");
			factor = dp_power10_int64[p->scale - scales[i]];
			if (unlikely(v->ints[i] % factor != 0))
				dp_bucket_corrupted("The scale of a number is wrong.");
			v->ints[i] /= factor;
			v->types[i] = (uint8) scales[i];
		}
		pfree(scales);
	}
	else
	{
		memset(v->types, DP_NO_DECIMAL, n);
		v->strings = palloc_array(DpString, n);
		dp_strings_decode(c, p->form, n, v->strings);
	}
}

/* ---------------------------------------------------------------- datums */

/* Text comes from disk and is passed to functions that trust its encoding. */
static void
verify_text(DpString s)
{
	if (pg_encoding_verifymbstr(PG_UTF8, (const char *) s.data, (int) s.len) != (int) s.len)
		dp_bucket_corrupted("A text is not valid UTF-8.");
}

/* A string of a column of a string kind, as a datum of its own type. */
static Datum
string_datum(uint8 kind, DpString s)
{
	switch (kind)
	{
		case DP_PACKED_TEXT:
		case DP_PACKED_OTHER:
			verify_text(s);
			return PointerGetDatum(cstring_to_text_with_len((const char *) s.data, (int) s.len));
		case DP_PACKED_UUID:
		case DP_PACKED_OBJECTID:
		{
			uint32 size = kind == DP_PACKED_UUID ? UUID_LEN : DP_OBJECTID_SIZE;
			uint8 *p = palloc(size);

			if (s.len != size)
				dp_bucket_corrupted("The length of an id is wrong.");
			memcpy(p, s.data, size);
			return PointerGetDatum(p);
		}
		case DP_PACKED_DOCUMENT:
			if (s.len < DP_DOCUMENT_MIN_SIZE || dp_get_int32(s.data) != (int32) s.len ||
				s.data[s.len - 1] != 0)
				dp_bucket_corrupted("The length of a document is wrong.");
			return PointerGetDatum(dp_document_to_varlena(s.data, s.len));
		default:
			return PointerGetDatum(cstring_to_text_with_len((const char *) s.data, (int) s.len));
	}
}

/* From its text, a datum of any type. */
typedef struct TextInput
{
	FmgrInfo input;
	Oid ioparam;
	int32 typmod;
} TextInput;

static Datum
text_datum(TextInput *in, DpString s)
{
	char *text = palloc(s.len + 1);
	Datum d;

	verify_text(s);
	memcpy(text, s.data, s.len);
	text[s.len] = '\0';
	d = dp_portable_input(&in->input, text, in->ioparam, in->typmod);
	pfree(text);
	return d;
}

/*
 * Strings as datums, one for each value.  Those of a dictionary are made once.
 */
static void
string_datums(DpCursor c, const DpPackedColumn *p, TextInput *in, Datum *values)
{
	int n = p->summary.nvalues;

	if (p->form == DP_FORM_DICTIONARY)
	{
		DpString *entries;
		int nentries = dp_strings_dictionary(c, n, (int64 *) values, &entries);
		Datum *datums = palloc_array(Datum, nentries + 1);

		for (int i = 0; i < nentries; i++)
			datums[i] = in != NULL ? text_datum(in, entries[i]) : string_datum(p->kind, entries[i]);
		for (int i = 0; i < n; i++)
			values[i] = datums[((int64 *) values)[i]];
		pfree(datums);
		pfree(entries);
	}
	else
	{
		DpString *strings = palloc_array(DpString, n + 1);

		dp_strings_decode(c, p->form, n, strings);
		for (int i = 0; i < n; i++)
			values[i] = in != NULL ? text_datum(in, strings[i]) : string_datum(p->kind, strings[i]);
		pfree(strings);
	}
}

static void
numeric_datums(DpCursor c, const DpPackedColumn *p, Datum *values)
{
	DpValues v;

	v.n = p->summary.nvalues;
	v.strings = NULL;
	load_numerics(c, p, &v);
	for (int i = 0; i < v.n; i++)
	{
		if (i > 0 && v.types[i] != DP_NO_DECIMAL && v.types[i] == v.types[i - 1] &&
			v.ints[i] == v.ints[i - 1])
			values[i] = values[i - 1];
		else if (v.types[i] != DP_NO_DECIMAL)
			values[i] = dp_decimal_to_numeric(v.ints[i], v.types[i]);
		else
			values[i] = dp_text_to_numeric(v.strings[i]);
	}
	pfree(v.types);
	pfree(v.ints);
	if (v.strings != NULL)
		pfree(v.strings);
}

/* Datums to their rows. */
static void
spread_datums(Datum *values, bool *isnull, const uint8 *presence, int count, int nvalues)
{
	int k = nvalues;

	for (int i = count - 1; i >= 0; i--)
	{
		isnull[i] = presence[i] != DP_PACKED_PRESENT;
		values[i] = isnull[i] ? (Datum) 0 : values[--k];
	}
}

/*
 * Numbers, straight into the array where a datum has as many bytes.
 */
static void
number_datums(DpBucketReader *r, int column, Oid typid, Datum *values, bool *isnull)
{
	int64 *v = sizeof(Datum) == sizeof(int64) ? (int64 *) values : dp_reader_values(r);

	load_number_rows(r, column, v, isnull);
	switch (typid)
	{
		case BOOLOID:
			for (int i = 0; i < r->count; i++)
				values[i] = BoolGetDatum(v[i] != 0);
			break;
		case INT2OID:
			for (int i = 0; i < r->count; i++)
				values[i] = Int16GetDatum((int16) v[i]);
			break;
		case INT4OID:
		case DATEOID:
			for (int i = 0; i < r->count; i++)
				values[i] = Int32GetDatum((int32) v[i]);
			break;
		case FLOAT4OID:
			for (int i = 0; i < r->count; i++)
			{
				double d;

				memcpy(&d, &v[i], sizeof(d));
				values[i] = Float4GetDatum((float4) d);
			}
			break;
		case FLOAT8OID:
			if (sizeof(Datum) == sizeof(int64))
				break;
			for (int i = 0; i < r->count; i++)
			{
				double d;

				memcpy(&d, &v[i], sizeof(d));
				values[i] = Float8GetDatum(d);
			}
			break;
		default:
			if (sizeof(Datum) == sizeof(int64))
				break;
			for (int i = 0; i < r->count; i++)
				values[i] = Int64GetDatum(v[i]);
			break;
	}
}

/* Whether numbers of the kind can be read as the type. */
static bool
number_fits(uint8 kind, Oid typid)
{
	switch (kind)
	{
		case DP_PACKED_INT2:
			return typid == INT4OID || typid == INT8OID;
		case DP_PACKED_INT4:
			return typid == INT8OID;
		case DP_PACKED_FLOAT4:
			return typid == FLOAT8OID;
		default:
			return false;
	}
}

void
dp_bucket_datums(DpBucketReader *r, int column, Oid typid, int32 typmod, Datum *values,
				 bool *isnull)
{
	const DpPackedColumn *p = dp_bucket_column(r, column);
	Oid own;
	Oid base;
	DpCursor c;
	uint8 *presence;
	TextInput in;

	if (p->summary.nvalues == 0)
	{
		memset(isnull, true, r->count);
		memset(values, 0, sizeof(Datum) * r->count);
		return;
	}
	own = dp_bucket_kind_type(p->kind);
	base = typid == own ? typid : getBaseType(typid);
	if (base == VARCHAROID)
		base = TEXTOID;
	if (p->kind != DP_PACKED_VALUE && number_class(p) != 0 &&
		(base == own || number_fits(p->kind, base)))
	{
		number_datums(r, column, base, values, isnull);
		return;
	}
	if (p->kind == DP_PACKED_VALUE || p->kind == DP_PACKED_SPLIT_DOCUMENT)
	{
		DpValue *v = palloc_array(DpValue, r->count);

		dp_bucket_values(r, column, v);
		for (int i = 0; i < r->count; i++)
		{
			isnull[i] = v[i].type == 0;
			values[i] = (Datum) 0;
			if (isnull[i])
				continue;
			if (base == dp_types()->bson_value)
				values[i] = PointerGetDatum(dp_value_to_varlena(&v[i]));
			else if (base == own)
				values[i] = PointerGetDatum(dp_document_to_varlena(v[i].data, v[i].len));
			else
				values[i] = dp_value_to_datum(&v[i], typid, typmod, &isnull[i]);
		}
		pfree(v);
		return;
	}

	presence = dp_reader_presences(r);
	c = dp_reader_column_data(r, column);
	dp_reader_presence(r, p, &c, presence);
	if (base == own && p->kind == DP_PACKED_NUMERIC)
		numeric_datums(c, p, values);
	else if (base == own)
		string_datums(c, p, NULL, values);
	else if (p->kind == DP_PACKED_TEXT || p->kind == DP_PACKED_OTHER)
	{
		Oid input;

		getTypeInputInfo(typid, &input, &in.ioparam);
		fmgr_info(input, &in.input);
		in.typmod = typmod;
		string_datums(c, p, &in, values);
	}
	else
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("column %d of the bucket cannot be read as type %s", column + 1,
							   format_type_be(typid)),
						errdetail("It holds values of type %s.", format_type_be(own))));
	spread_datums(values, isnull, presence, r->count, p->summary.nvalues);
}

/* ---------------------------------------------------------------- BSON values */

/* Value i of the loaded values of a VALUE column; bytes are palloc'd if needed. */
static void
value_of(const DpValues *v, int i, DpValue *value)
{
	uint8 *p;

	value->type = v->types[i];
	switch (value->type)
	{
		case DP_TYPE_INT32:
			p = palloc(4);
			dp_put_int32(p, (int32) v->ints[i]);
			value->len = 4;
			break;
		case DP_TYPE_INT64:
		case DP_TYPE_DATE:
		case DP_TYPE_DOUBLE:
			p = palloc(8);
			dp_put_int64(p, v->ints[i]);
			value->len = 8;
			break;
		case DP_TYPE_BOOL:
			p = palloc(1);
			*p = (uint8) v->ints[i];
			value->len = 1;
			break;
		case DP_TYPE_STRING:
			value->len = v->strings[i].len + 5;
			p = palloc(value->len);
			dp_put_int32(p, (int32) v->strings[i].len + 1);
			memcpy(p + 4, v->strings[i].data, v->strings[i].len);
			p[value->len - 1] = 0;
			break;
		default:
			value->data = v->strings[i].data;
			value->len = v->strings[i].len;
			return;
	}
	value->data = p;
}

void
dp_bucket_values(DpBucketReader *r, int column, DpValue *values)
{
	const DpPackedColumn *p = dp_bucket_column(r, column);

	if (p->kind == DP_PACKED_SPLIT_DOCUMENT)
		split_documents(r, column, values);
	else if (p->kind == DP_PACKED_VALUE)
	{
		uint8 *presence = palloc(r->count);
		DpValues v;
		int k = 0;

		dp_column_load(r, column, &v, presence);
		for (int i = 0; i < r->count; i++)
		{
			values[i].type = 0;
			values[i].data = (const uint8 *) "";
			values[i].len = 0;
			if (presence[i] == DP_PACKED_PRESENT)
				value_of(&v, k++, &values[i]);
		}
	}
	else
	{
		Datum *datums = palloc_array(Datum, r->count);
		bool *isnull = palloc_array(bool, r->count);
		Oid own = dp_bucket_kind_type(p->kind);
		DpConverter converter;

		dp_bucket_datums(r, column, own, -1, datums, isnull);
		dp_converter_init(&converter, own, CurrentMemoryContext);
		for (int i = 0; i < r->count; i++)
		{
			values[i].type = 0;
			values[i].data = (const uint8 *) "";
			values[i].len = 0;
			if (!isnull[i])
				values[i] = dp_value_of_varlena(dp_converter_value(&converter, datums[i]));
		}
		pfree(datums);
		pfree(isnull);
	}
}

/* Whether a field is to be assembled. */
static bool
is_wanted(const DpBucketReader *r, const DpPackedColumn *field)
{
	ListCell *lc;

	foreach(lc, r->fields)
	{
		const char *name = strVal(lfirst(lc));

		if (strlen(name) == field->namelen && memcmp(name, field->name, field->namelen) == 0)
			return true;
	}
	return r->fields == NIL;
}

/*
 * Puts split documents together again, from their fields or from what was kept
 * whole of them.
 */
static void
split_documents(DpBucketReader *r, int column, DpValue *values)
{
	const DpPackedColumn *p = dp_bucket_column(r, column);
	int count = r->count;
	uint8 *presence = palloc(count);
	DpCursor c = dp_reader_column_data(r, column);
	DpBuilder *documents = palloc_array(DpBuilder, count);
	DpValue *fields = palloc_array(DpValue, count);
	uint8 *field_presence = palloc(count);
	int nwhole;
	int64 *rows;
	DpString *whole;

	dp_reader_presence(r, p, &c, presence);
	nwhole = dp_cursor_size(&c, p->summary.nvalues);
	rows = palloc_array(int64, nwhole + 1);
	whole = palloc_array(DpString, nwhole + 1);
	dp_ints_decode_sized(&c, nwhole, 0, rows);
	dp_strings_get(&c, nwhole, whole);
	dp_cursor_done(&c);

	for (int i = 0; i < count; i++)
	{
		if (presence[i] != DP_PACKED_PRESENT)
			continue;
		dp_builder_init(&documents[i], 0);
		dp_builder_begin_document(&documents[i]);
	}
	for (int f = r->ncolumns; f < r->ncolumns + r->nfields; f++)
	{
		const DpPackedColumn *field = dp_bucket_column(r, f);

		if (field->parent != column || !is_wanted(r, field))
			continue;
		if (memchr(field->name, 0, field->namelen) != NULL)
			dp_bucket_corrupted("The name of a field is wrong.");
		dp_bucket_values(r, f, fields);
		/* the reader may have fetched the bucket since */
		field = dp_bucket_column(r, f);
		dp_bucket_presence(r, f, field_presence);
		for (int i = 0; i < count; i++)
		{
			if (field_presence[i] == DP_PACKED_MISSING)
				continue;
			if (presence[i] != DP_PACKED_PRESENT)
				dp_bucket_corrupted("A field belongs to no document.");
			if (field_presence[i] == DP_PACKED_NULL)
				dp_builder_append_null(&documents[i], field->name, field->namelen);
			else
				dp_builder_append_value(&documents[i], field->name, field->namelen, &fields[i]);
		}
	}
	for (int i = 0; i < count; i++)
	{
		values[i].type = 0;
		values[i].data = (const uint8 *) "";
		values[i].len = 0;
		if (presence[i] != DP_PACKED_PRESENT)
			continue;
		dp_builder_end(&documents[i]);
		values[i] = dp_builder_view(&documents[i], DP_TYPE_DOCUMENT);
	}
	for (int i = 0; i < nwhole; i++)
	{
		if (rows[i] < 0 || rows[i] >= count || presence[rows[i]] != DP_PACKED_PRESENT ||
			whole[i].len < DP_DOCUMENT_MIN_SIZE ||
			dp_get_int32(whole[i].data) != (int32) whole[i].len ||
			whole[i].data[whole[i].len - 1] != 0)
			dp_bucket_corrupted("A document that is kept whole is wrong.");
		values[rows[i]].data = whole[i].data;
		values[rows[i]].len = whole[i].len;
	}
	pfree(presence);
	pfree(fields);
	pfree(field_presence);
	pfree(rows);
}
