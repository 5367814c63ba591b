/*
 * type.c
 *		Input and output of buckets, and their equality.
 *
 * The text form is an Extended JSON document:
 *
 *	{"bucket": 1,
 *	 "times": ["2018-12-11 12:00:00+00", ...],
 *	 "columns": [{"name": "temperature", "type": "float8", "values": [40.1, null, ...],
 *				  "missing": [2]}, ...]}
 *
 * Timeless buckets have "count": 60 instead of the times, positional ones have no names.  A missing
 * value is null; "missing" lists the rows of those that are not even NULL, and "nulls" those that
 * are NULL, in columns of BSON values, which have their own null.  Numbers are numbers; numerics,
 * dates, times, uuids, bytes (in hex) and texts are strings; BSON values and documents are written
 * unchanged.
 *
 * The binary form is the bytes on disk.  Buckets with the same bytes are equal: packing the same
 * rows always produces the same bytes.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "common/hashfn.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "bson/catalog.h"
#include "bson/limits.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "types/bucket/builder.h"

/* Names of kinds in the text form, by number */
static const char *const kind_names[] = { NULL,         "bool",   "int2",       "int4",
										  "int8",       "float4", "float8",     "numeric",
										  "date",       "time",   "timestamp",  "timestamptz",
										  "text",       "bytea",  "uuid",       "objectid",
										  "bson_value", "bson",   "bson_split", "other" };

/* A column of the text that is read */
typedef struct TextColumn
{
	DpPackedKind kind;
	bool seen_values;
	DpIter values;
	uint8 *absent;   /* of each row: NULL or MISSING where that is listed; or NULL */
	DpValue missing; /* the arrays of rows, or type 0 */
	DpValue nulls;
} TextColumn;

static void put_column(StringInfo out, DpBucketReader *r, int column);
static void put_time(StringInfo out, DpPackedKind kind, int64 t);
static void put_quoted(StringInfo out, const char *s);
static void
put_rows(StringInfo out, const char *name, const uint8 *presence, int count, uint8 which);
static void put_datum(StringInfo out, DpPackedKind kind, Datum d);
static struct varlena *bucket_from_document(struct varlena *doc);
static Datum read_datum(DpPackedKind kind, const DpValue *v);

/* ---------------------------------------------------------------- output */

/*
 * bucket_out(bucket) -> cstring.  Raises DATA_CORRUPTED.
 */
DP_FUNCTION(dp_bucket_out);
Datum
dp_bucket_out(PG_FUNCTION_ARGS)
{
	struct varlena *bucket = PG_GETARG_VARLENA_PP(0);
	DpBucketReader r;
	StringInfoData out;

	dp_bucket_reader_init(&r, CurrentMemoryContext);
	dp_bucket_open(&r, PointerGetDatum(bucket));
	initStringInfo(&out);
	appendStringInfo(&out, "{\"bucket\": %d, ", DP_BUCKET_VERSION);
	if ((r.flags & DP_BUCKET_TIMELESS) != 0)
		appendStringInfo(&out, "\"count\": %d", r.count);
	else
	{
		int64 *times = palloc_array(int64, r.count);

		dp_bucket_times(&r, times);
		appendStringInfoString(&out, "\"times\": [");
		for (int i = 0; i < r.count; i++)
		{
			if (i > 0)
				appendStringInfoString(&out, ", ");
			put_time(&out, DP_PACKED_TIMESTAMPTZ, times[i]);
		}
		appendStringInfoChar(&out, ']');
		pfree(times);
	}
	if ((r.flags & DP_BUCKET_NAMED) != 0)
		appendStringInfoString(&out, ", \"named\": true");
	appendStringInfoString(&out, ", \"columns\": [");
	for (int i = 0; i < r.ncolumns; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i > 0)
			appendStringInfoString(&out, ", ");
		put_column(&out, &r, i);
	}
	appendStringInfoString(&out, "]}");
	PG_RETURN_CSTRING(out.data);
}

/*
 * A string of bytes as JSON, quoted.
 */
static void
put_string(StringInfo out, const char *s, int len)
{
	DpBuilder b;
	DpIter iter;
	DpElement e;

	dp_builder_init(&b, len + 16);
	dp_builder_begin_document(&b);
	dp_builder_append_string(&b, "", 0, s, len);
	dp_builder_end(&b);
	dp_iter_init(&iter, b.buf + b.head, b.len - b.head);
	(void) dp_iter_next(&iter, &e);
	dp_value_to_text(out, &e.value, DP_TEXT_RELAXED, -1);
	dp_builder_free(&b);
}

static void
put_column(StringInfo out, DpBucketReader *r, int column)
{
	const DpPackedColumn *p = dp_bucket_column(r, column);
	DpPackedKind kind = p->kind;
	bool values =
		kind == DP_PACKED_VALUE || kind == DP_PACKED_DOCUMENT || kind == DP_PACKED_SPLIT_DOCUMENT;
	MemoryContext work =
		AllocSetContextCreate(CurrentMemoryContext, "bucket text", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;
	uint8 *presence;
	Datum *datums = NULL;
	bool *isnull;
	DpValue *bson = NULL;

	appendStringInfoChar(out, '{');
	if ((r->flags & DP_BUCKET_NAMED) != 0)
	{
		appendStringInfoString(out, "\"name\": ");
		put_string(out, p->name, p->namelen);
		appendStringInfoString(out, ", ");
	}
	appendStringInfo(out, "\"type\": \"%s\", \"values\": [", kind_names[kind]);
	old = MemoryContextSwitchTo(work);
	presence = palloc(r->count);
	dp_bucket_presence(r, column, presence);
	if (values)
	{
		bson = palloc_array(DpValue, r->count);
		dp_bucket_values(r, column, bson);
	}
	else
	{
		datums = palloc_array(Datum, r->count);
		isnull = palloc_array(bool, r->count);
		dp_bucket_datums(r, column, dp_bucket_kind_type(kind), -1, datums, isnull);
	}
	for (int i = 0; i < r->count; i++)
	{
		if (i > 0)
			appendStringInfoString(out, ", ");
		if (presence[i] != DP_PACKED_PRESENT)
			appendStringInfoString(out, "null");
		else if (values)
			dp_value_to_text(out, &bson[i], DP_TEXT_RELAXED, -1);
		else
			put_datum(out, kind, datums[i]);
	}
	appendStringInfoChar(out, ']');
	put_rows(out, "missing", presence, r->count, DP_PACKED_MISSING);
	if (kind == DP_PACKED_VALUE)
		put_rows(out, "nulls", presence, r->count, DP_PACKED_NULL);
	appendStringInfoChar(out, '}');
	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);
}

/*
 * The numbers of the rows whose presence is which, if there are any.
 */
static void
put_rows(StringInfo out, const char *name, const uint8 *presence, int count, uint8 which)
{
	bool any = false;

	for (int i = 0; i < count; i++)
	{
		if (presence[i] != which)
			continue;
		if (!any)
			appendStringInfo(out, ", \"%s\": [%d", name, i);
		else
			appendStringInfo(out, ", %d", i);
		any = true;
	}
	if (any)
		appendStringInfoChar(out, ']');
}

static void
put_quoted(StringInfo out, const char *s)
{
	appendStringInfoChar(out, '"');
	appendStringInfoString(out, s);
	appendStringInfoChar(out, '"');
}

/*
 * A time, date or timestamp in ISO 8601, timestamptz in UTC: the same whatever
 * the settings of the session are.
 */
static void
put_time(StringInfo out, DpPackedKind kind, int64 t)
{
	char buf[MAXDATELEN + 1];
	struct pg_tm tm;
	fsec_t fsec;

	memset(&tm, 0, sizeof(tm));
	switch (kind)
	{
		case DP_PACKED_DATE:
			if (DATE_NOT_FINITE(t))
				EncodeSpecialDate((DateADT) t, buf);
			else
			{
				j2date((int) t + POSTGRES_EPOCH_JDATE, &tm.tm_year, &tm.tm_mon, &tm.tm_mday);
				EncodeDateOnly(&tm, USE_ISO_DATES, buf);
			}
			break;
		case DP_PACKED_TIME:
			if (t < 0 || t > USECS_PER_DAY)
				dp_bucket_corrupted("A number is out of range.");
			time2tm(t, &tm, &fsec);
			EncodeTimeOnly(&tm, fsec, false, 0, USE_ISO_DATES, buf);
			break;
		default:
			if (TIMESTAMP_NOT_FINITE(t))
				EncodeSpecialTimestamp(t, buf);
			else if (!IS_VALID_TIMESTAMP(t) || timestamp2tm(t, NULL, &tm, &fsec, NULL, NULL) != 0)
				dp_bucket_corrupted("A number is out of range.");
			else
			{
				tm.tm_isdst = 0;
				EncodeDateTime(&tm, fsec, kind == DP_PACKED_TIMESTAMPTZ, 0, NULL, USE_ISO_DATES,
							   buf);
			}
			break;
	}
	put_quoted(out, buf);
}

/*
 * A datum of a kind that is not BSON.
 */
static void
put_datum(StringInfo out, DpPackedKind kind, Datum d)
{
	struct varlena *v;

	switch (kind)
	{
		case DP_PACKED_BOOL:
			appendStringInfoString(out, DatumGetBool(d) ? "true" : "false");
			break;
		case DP_PACKED_INT2:
			appendStringInfo(out, "%d", DatumGetInt16(d));
			break;
		case DP_PACKED_INT4:
			appendStringInfo(out, "%d", DatumGetInt32(d));
			break;
		case DP_PACKED_INT8:
			appendStringInfo(out, INT64_FORMAT, DatumGetInt64(d));
			break;
		case DP_PACKED_FLOAT4:
		case DP_PACKED_FLOAT8:
		{
			uint8 bytes[8];
			DpValue value = { bytes, 8, DP_TYPE_DOUBLE };

			dp_put_double(bytes, kind == DP_PACKED_FLOAT4 ? DatumGetFloat4(d) : DatumGetFloat8(d));
			dp_value_to_text(out, &value, DP_TEXT_RELAXED, -1);
			break;
		}
		case DP_PACKED_NUMERIC:
			put_quoted(out, DatumGetCString(DirectFunctionCall1(numeric_out, d)));
			break;
		case DP_PACKED_DATE:
			put_time(out, kind, DatumGetDateADT(d));
			break;
		case DP_PACKED_TIME:
		case DP_PACKED_TIMESTAMP:
		case DP_PACKED_TIMESTAMPTZ:
			put_time(out, kind, DatumGetInt64(d));
			break;
		case DP_PACKED_UUID:
			put_quoted(out, DatumGetCString(DirectFunctionCall1(uuid_out, d)));
			break;
		case DP_PACKED_OBJECTID:
		{
			DpValue value = { (const uint8 *) DatumGetPointer(d), DP_OBJECTID_SIZE,
							  DP_TYPE_OBJECTID };

			dp_value_to_text(out, &value, DP_TEXT_RELAXED, -1);
			break;
		}
		case DP_PACKED_BYTEA:
			v = (struct varlena *) DatumGetPointer(d);
			appendStringInfoChar(out, '"');
			enlargeStringInfo(out, 2 * (int) VARSIZE_ANY_EXHDR(v) + 1);
			out->len +=
				(int) hex_encode(VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v), out->data + out->len);
			appendStringInfoChar(out, '"');
			break;
		default:
			v = (struct varlena *) DatumGetPointer(d);
			put_string(out, VARDATA_ANY(v), (int) VARSIZE_ANY_EXHDR(v));
			break;
	}
}

/* ---------------------------------------------------------------- input */

static void bad_text(const char *what) pg_attribute_noreturn();

/* Raises INVALID_TEXT_REPRESENTATION; what is a sentence. */
static void
bad_text(const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid text of a bucket"), errdetail_internal("%s", what)));
}

/*
 * bucket_in(cstring) -> bucket.  Raises INVALID_TEXT_REPRESENTATION.
 */
DP_FUNCTION(dp_bucket_in);
Datum
dp_bucket_in(PG_FUNCTION_ARGS)
{
	char *s = PG_GETARG_CSTRING(0);
	int limit = dp_max_document_size;
	struct varlena *doc;

	/* the limit is for documents of users; whatever a bucket holds must be readable again */
	dp_max_document_size = MaxAllocSize;
	PG_TRY();
	{
		doc = dp_cstring_to_bson(s, strlen(s), fcinfo->context);
	}
	PG_FINALLY();
	{
		dp_max_document_size = limit;
	}
	PG_END_TRY();
	if (doc == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(bucket_from_document(doc));
}

static bool
name_is(const DpElement *e, const char *name)
{
	return strcmp(e->name, name) == 0;
}

/* The NUL-terminated string of a value that has to be one. */
static char *
string_of(const DpValue *v, const char *what)
{
	if (v->type != DP_TYPE_STRING)
		bad_text(what);
	return pnstrdup(DP_STRING_DATA(v), DP_STRING_LEN(v));
}

static void
need_array(const DpValue *v, const char *what)
{
	if (v->type != DP_TYPE_ARRAY)
		bad_text(what);
}

/* One of the columns: what is known without the number of rows. */
static void
read_column(DpBucketBuilder *b, TextColumn *c, const DpValue *v)
{
	DpIter iter;
	DpElement e;
	const char *name = NULL;
	uint32 namelen = 0;

	if (v->type != DP_TYPE_DOCUMENT)
		bad_text("A column is not a document.");
	memset(c, 0, sizeof(TextColumn));
	dp_iter_init_value(&iter, v);
	while (dp_iter_next(&iter, &e))
	{
		if (name_is(&e, "name"))
		{
			if (e.value.type != DP_TYPE_STRING)
				bad_text("The name of a column is not a string.");
			name = DP_STRING_DATA(&e.value);
			namelen = DP_STRING_LEN(&e.value);
		}
		else if (name_is(&e, "type"))
		{
			char *type = string_of(&e.value, "The type of a column is not a string.");

			for (int k = 1; k < lengthof(kind_names); k++)
			{
				if (strcmp(type, kind_names[k]) == 0)
					c->kind = k;
			}
			if (c->kind == DP_PACKED_NOTHING)
				bad_text("The type of a column is not known.");
		}
		else if (name_is(&e, "values"))
		{
			need_array(&e.value, "The values of a column are not an array.");
			dp_iter_init_value(&c->values, &e.value);
			c->seen_values = true;
		}
		else if (name_is(&e, "missing") || name_is(&e, "nulls"))
		{
			need_array(&e.value, "Rows are not listed in an array.");
			*(name_is(&e, "nulls") ? &c->nulls : &c->missing) = e.value;
		}
		else
			bad_text("A column has a field that is not known.");
	}
	if (!c->seen_values || c->kind == DP_PACKED_NOTHING)
		bad_text("A column has no type or no values.");
	if ((b->flags & DP_BUCKET_NAMED) != 0 && name == NULL)
		bad_text("A column has no name.");
	if ((b->flags & DP_BUCKET_NAMED) == 0 && name != NULL)
		bad_text("A column has a name.");
	dp_builder_add(b, c->kind, name, namelen);
}

/* Notes the rows that a list names. */
static void
read_rows(TextColumn *c, const DpValue *list, int count, uint8 presence)
{
	DpIter iter;
	DpValue v;

	if (list->type == 0)
		return;
	if (c->absent == NULL)
		c->absent = palloc0(count);
	dp_iter_init_value(&iter, list);
	while (dp_iter_next_value(&iter, &v))
	{
		if (v.type != DP_TYPE_INT32 || dp_get_int32(v.data) < 0 || dp_get_int32(v.data) >= count)
			bad_text("There is no row of a number that is listed.");
		c->absent[dp_get_int32(v.data)] = presence;
	}
}

static struct varlena *
bucket_from_document(struct varlena *doc)
{
	DpIter iter;
	DpElement e;
	DpValue times = { NULL, 0, 0 };
	DpValue columns = { NULL, 0, 0 };
	DpValue v;
	DpIter each_time = { NULL, NULL };
	int count = -1;
	int version = 0;
	int flags = 0;
	int ncolumns = 0;
	DpBucketBuilder *b;
	TextColumn *c;
	Datum *values;
	uint8 *presence;
	struct varlena *result;

	dp_iter_init_varlena(&iter, doc);
	while (dp_iter_next(&iter, &e))
	{
		if (name_is(&e, "bucket") && e.value.type == DP_TYPE_INT32)
			version = dp_get_int32(e.value.data);
		else if (name_is(&e, "count") && e.value.type == DP_TYPE_INT32)
			count = dp_get_int32(e.value.data);
		else if (name_is(&e, "named") && e.value.type == DP_TYPE_BOOL)
			flags |= *e.value.data ? DP_BUCKET_NAMED : 0;
		else if (name_is(&e, "times") && e.value.type == DP_TYPE_ARRAY)
			times = e.value;
		else if (name_is(&e, "columns") && e.value.type == DP_TYPE_ARRAY)
			columns = e.value;
		else
			bad_text("It has a field that is not known, or of a wrong type.");
	}
	if (version != DP_BUCKET_VERSION)
		bad_text("\"bucket\" does not give a version that is known.");
	if (columns.type == 0 || (times.type == 0) == (count < 0))
		bad_text("It needs \"columns\", and either \"times\" or \"count\".");
	if (times.type == 0)
		flags |= DP_BUCKET_TIMELESS;
	else
	{
		count = (int) dp_document_count(times.data, times.len);
		dp_iter_init_value(&each_time, &times);
	}
	if (count == 0)
		bad_text("A bucket has at least one row.");
	if (count > DP_BUCKET_MAX_COUNT)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a bucket cannot hold more than %d measurements", DP_BUCKET_MAX_COUNT)));

	b = dp_builder_create(CurrentMemoryContext, flags);
	c = palloc_array(TextColumn, dp_document_count(columns.data, columns.len) + 1);
	dp_iter_init_value(&iter, &columns);
	while (dp_iter_next_value(&iter, &v))
		read_column(b, &c[ncolumns++], &v);
	values = palloc0_array(Datum, ncolumns + 1);
	presence = palloc0(ncolumns + 1);
	for (int i = 0; i < ncolumns; i++)
	{
		read_rows(&c[i], &c[i].missing, count, DP_PACKED_MISSING);
		read_rows(&c[i], &c[i].nulls, count, DP_PACKED_NULL);
	}
	for (int row = 0; row < count; row++)
	{
		int64 t = 0;

		if (times.type != 0)
		{
			if (!dp_iter_next_value(&each_time, &v))
				bad_text("There are not as many times as rows.");
			t = DatumGetInt64(read_datum(DP_PACKED_TIMESTAMPTZ, &v));
		}
		for (int i = 0; i < ncolumns; i++)
		{
			if (!dp_iter_next_value(&c[i].values, &v))
				bad_text("A column has not as many values as the bucket has rows.");
			presence[i] = c[i].absent != NULL ? c[i].absent[row] : DP_PACKED_PRESENT;
			if (presence[i] == DP_PACKED_PRESENT && v.type == DP_TYPE_NULL &&
				c[i].kind != DP_PACKED_VALUE)
				presence[i] = DP_PACKED_NULL;
			if (presence[i] == DP_PACKED_PRESENT)
				values[i] = read_datum(c[i].kind, &v);
			else if (v.type != DP_TYPE_NULL)
				bad_text("A value that is listed as missing is not null.");
		}
		dp_builder_append(b, t, values, presence);
	}
	for (int i = 0; i < ncolumns; i++)
	{
		if (dp_iter_next_value(&c[i].values, &v))
			bad_text("A column has not as many values as the bucket has rows.");
	}
	result = dp_bucket_builder_finish(b);
	dp_bucket_builder_free(b);
	return result;
}

/* An integer between min and max. */
static int64
int_of(const DpValue *v, int64 min, int64 max)
{
	int64 i = 0;

	if (v->type == DP_TYPE_INT32)
		i = dp_get_int32(v->data);
	else if (v->type == DP_TYPE_INT64)
		i = dp_get_int64(v->data);
	else
		bad_text("A value is not an integer.");
	if (i < min || i > max)
		bad_text("An integer is out of range.");
	return i;
}

static double
double_of_value(const DpValue *v)
{
	if (v->type == DP_TYPE_INT32)
		return dp_get_int32(v->data);
	if (v->type == DP_TYPE_INT64)
		return (double) dp_get_int64(v->data);
	if (v->type != DP_TYPE_DOUBLE)
		bad_text("A value is not a number.");
	return dp_get_double(v->data);
}

/* The datum of a kind for a value in the text. */
static Datum
read_datum(DpPackedKind kind, const DpValue *v)
{
	char *s;

	switch (kind)
	{
		case DP_PACKED_BOOL:
			if (v->type != DP_TYPE_BOOL)
				bad_text("A value is neither true nor false.");
			return BoolGetDatum(*v->data != 0);
		case DP_PACKED_INT2:
			return Int16GetDatum((int16) int_of(v, PG_INT16_MIN, PG_INT16_MAX));
		case DP_PACKED_INT4:
			return Int32GetDatum((int32) int_of(v, PG_INT32_MIN, PG_INT32_MAX));
		case DP_PACKED_INT8:
			return Int64GetDatum(int_of(v, PG_INT64_MIN, PG_INT64_MAX));
		case DP_PACKED_FLOAT4:
			return Float4GetDatum((float4) double_of_value(v));
		case DP_PACKED_FLOAT8:
			return Float8GetDatum(double_of_value(v));
		case DP_PACKED_OBJECTID:
			if (v->type != DP_TYPE_OBJECTID)
				bad_text("A value is not an id.");
			return PointerGetDatum(v->data);
		case DP_PACKED_VALUE:
			return PointerGetDatum(dp_value_to_varlena(v));
		case DP_PACKED_DOCUMENT:
		case DP_PACKED_SPLIT_DOCUMENT:
			if (v->type != DP_TYPE_DOCUMENT)
				bad_text("A value is not a document.");
			return PointerGetDatum(dp_document_to_varlena(v->data, v->len));
		case DP_PACKED_TEXT:
		case DP_PACKED_OTHER:
			if (v->type != DP_TYPE_STRING || memchr(DP_STRING_DATA(v), 0, DP_STRING_LEN(v)) != NULL)
				bad_text("A value is not a text.");
			return PointerGetDatum(cstring_to_text_with_len(DP_STRING_DATA(v), DP_STRING_LEN(v)));
		default:
			break;
	}
	s = string_of(v, "A value is not a string.");
	switch (kind)
	{
		case DP_PACKED_NUMERIC:
			return DirectFunctionCall3(numeric_in, CStringGetDatum(s), ObjectIdGetDatum(InvalidOid),
									   Int32GetDatum(-1));
		case DP_PACKED_DATE:
			return DirectFunctionCall1(date_in, CStringGetDatum(s));
		case DP_PACKED_TIME:
			return DirectFunctionCall3(time_in, CStringGetDatum(s), ObjectIdGetDatum(InvalidOid),
									   Int32GetDatum(-1));
		case DP_PACKED_TIMESTAMP:
			return DirectFunctionCall3(timestamp_in, CStringGetDatum(s),
									   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
		case DP_PACKED_TIMESTAMPTZ:
			return DirectFunctionCall3(timestamptz_in, CStringGetDatum(s),
									   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
		case DP_PACKED_UUID:
			return DirectFunctionCall1(uuid_in, CStringGetDatum(s));
		default:
		{
			Size len = strlen(s);
			struct varlena *bytes = palloc(VARHDRSZ + len / 2 + 1);

			Assert(kind == DP_PACKED_BYTEA);
			SET_VARSIZE(bytes, VARHDRSZ + hex_decode(s, len, VARDATA(bytes)));
			return PointerGetDatum(bytes);
		}
	}
}

/* ---------------------------------------------------------------- binary */

/*
 * bucket_recv(internal) -> bucket.  Raises INVALID_BINARY_REPRESENTATION.
 */
DP_FUNCTION(dp_bucket_recv);
Datum
dp_bucket_recv(PG_FUNCTION_ARGS)
{
	StringInfo buf = (StringInfo) PG_GETARG_POINTER(0);
	int size = buf->len - buf->cursor;
	const char *bytes = pq_getmsgbytes(buf, size);
	char *fault = dp_bucket_fault((const uint8 *) bytes, size);

	if (fault != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
						errmsg("invalid bytes of a bucket"), errdetail_internal("%s", fault)));
	PG_RETURN_POINTER(cstring_to_text_with_len(bytes, size));
}

/*
 * bucket_send(bucket) -> bytea
 */
DP_FUNCTION(dp_bucket_send);
Datum
dp_bucket_send(PG_FUNCTION_ARGS)
{
	struct varlena *bucket = PG_GETARG_VARLENA_PP(0);
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendbytes(&buf, VARDATA_ANY(bucket), VARSIZE_ANY_EXHDR(bucket));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/*
 * bucket_fault(bytea) -> text: what is wrong with the bytes of a bucket, or NULL.
 */
DP_FUNCTION(dp_bucket_fault_of);
Datum
dp_bucket_fault_of(PG_FUNCTION_ARGS)
{
	struct varlena *bytes = PG_GETARG_VARLENA_PP(0);
	char *fault = dp_bucket_fault((const uint8 *) VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));

	if (fault == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(fault));
}

/* ---------------------------------------------------------------- equality */

/*
 * Whether two buckets have the same bytes.  Sizes are compared before anything
 * is fetched.
 */
static bool
same_bytes(Datum a, Datum b)
{
	struct varlena *x;
	struct varlena *y;
	bool same;

	if (toast_raw_datum_size(a) != toast_raw_datum_size(b))
		return false;
	x = PG_DETOAST_DATUM_PACKED(a);
	y = PG_DETOAST_DATUM_PACKED(b);
	same = memcmp(VARDATA_ANY(x), VARDATA_ANY(y), VARSIZE_ANY_EXHDR(x)) == 0;
	if ((Pointer) x != DatumGetPointer(a))
		pfree(x);
	if ((Pointer) y != DatumGetPointer(b))
		pfree(y);
	return same;
}

/*
 * bucket_eq(bucket, bucket) -> boolean
 */
DP_FUNCTION(dp_bucket_eq);
Datum
dp_bucket_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(same_bytes(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)));
}

/*
 * bucket_ne(bucket, bucket) -> boolean
 */
DP_FUNCTION(dp_bucket_ne);
Datum
dp_bucket_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!same_bytes(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)));
}

/*
 * bucket_hash(bucket) -> integer
 */
DP_FUNCTION(dp_bucket_hash);
Datum
dp_bucket_hash(PG_FUNCTION_ARGS)
{
	struct varlena *bucket = PG_GETARG_VARLENA_PP(0);

	return hash_any((const unsigned char *) VARDATA_ANY(bucket), VARSIZE_ANY_EXHDR(bucket));
}

/*
 * bucket_hash_extended(bucket, bigint) -> bigint
 */
DP_FUNCTION(dp_bucket_hash_extended);
Datum
dp_bucket_hash_extended(PG_FUNCTION_ARGS)
{
	struct varlena *bucket = PG_GETARG_VARLENA_PP(0);

	return hash_any_extended((const unsigned char *) VARDATA_ANY(bucket), VARSIZE_ANY_EXHDR(bucket),
							 PG_GETARG_INT64(1));
}
