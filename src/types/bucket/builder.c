/*
 * builder.c
 *		Collects rows by column and packs them into a bucket.
 *
 * The rows are in arrays, one per column, that are reused for the next bucket; their strings live
 * in a context that is reset.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/reader.h"
#include "types/bucket/builder.h"

/* Documents are split into at most so many fields */
#define MAX_FIELDS 1000

#define FIRST_ROWS 64

const int64 dp_time_units[DP_TIME_UNITS] = {
	1, 1000, USECS_PER_SEC, USECS_PER_MINUTE, USECS_PER_HOUR, USECS_PER_DAY
};

/* A time and the row that it belongs to */
typedef struct RowTime
{
	int64 time;
	int row;
} RowTime;

static DpBuilderColumn *
add_column(DpBucketBuilder *b, int kind, int parent, const char *name, int namelen);
static void allocate_column(DpBucketBuilder *b, DpBuilderColumn *c);
static void begin_row(DpBucketBuilder *b, int64 time);
static void append_datum(DpBucketBuilder *b, int i, Datum d);
static void append_presence(DpBucketBuilder *b, int i, uint8 presence, Datum d);
static void append_loaded(DpBucketBuilder *b, DpBuilderColumn *c, const DpValues *v, int k);
static void pack_column(DpBucketBuilder *b, DpBuilderColumn *c, const int *order, StringInfo header,
						StringInfo data);
static int *order_rows(DpBucketBuilder *b);
static void append_document(DpBucketBuilder *b, int parent, const uint8 *doc, uint32 size);
static void append_value(DpBucketBuilder *b, DpBuilderColumn *c, const DpValue *v);
static void append_string(DpBucketBuilder *b, DpBuilderColumn *c, const void *data, Size len);
static void put_times(StringInfo header, StringInfo data, const int64 *times, int n);

DpBucketBuilder *
dp_bucket_builder_create(MemoryContext mcxt, int flags, int ncolumns,
						 const DpPackedColumnDef *columns)
{
	DpBucketBuilder *b = dp_builder_create(mcxt, flags);

	for (int i = 0; i < ncolumns; i++)
	{
		DpPackedKind kind = dp_bucket_kind(columns[i].typid);

		if (kind == DP_PACKED_DOCUMENT && columns[i].split)
			kind = DP_PACKED_SPLIT_DOCUMENT;
		if (kind == DP_PACKED_OTHER && columns[i].as_value)
			kind = DP_PACKED_VALUE;
		dp_builder_add(b, kind, columns[i].name,
					   columns[i].name != NULL ? strlen(columns[i].name) : 0);
		b->columns[i].typid = getBaseType(columns[i].typid);
	}
	return b;
}

DpBucketBuilder *
dp_builder_create(MemoryContext mcxt, int flags)
{
	MemoryContext cxt = AllocSetContextCreate(mcxt, "bucket builder", ALLOCSET_DEFAULT_SIZES);
	DpBucketBuilder *b = MemoryContextAllocZero(cxt, sizeof(DpBucketBuilder));

	b->mcxt = cxt;
	b->strings = AllocSetContextCreate(cxt, "bucket builder strings", ALLOCSET_DEFAULT_SIZES);
	b->flags = flags & (DP_BUCKET_TIMELESS | DP_BUCKET_NAMED);
	b->capacity = FIRST_ROWS;
	b->times = MemoryContextAlloc(cxt, sizeof(int64) * b->capacity);
	b->sorted = true;
	b->bound = 64;
	return b;
}

void
dp_builder_add(DpBucketBuilder *b, DpPackedKind kind, const char *name, int namelen)
{
	DpBuilderColumn *c;

	Assert(b->count == 0 && b->nfields == 0);
	if (b->ncolumns >= DP_BUCKET_MAX_COLUMNS - MAX_FIELDS)
		ereport(ERROR, (errcode(ERRCODE_TOO_MANY_COLUMNS),
						errmsg("a bucket cannot have more than %d columns",
							   DP_BUCKET_MAX_COLUMNS - MAX_FIELDS)));
	if (name == NULL && (b->flags & DP_BUCKET_NAMED) != 0)
		name = "";
	for (int i = 0; i < b->ncolumns && (b->flags & DP_BUCKET_NAMED) != 0; i++)
	{
		if (b->columns[i].namelen == namelen && memcmp(b->columns[i].name, name, namelen) == 0)
			ereport(ERROR, (errcode(ERRCODE_DUPLICATE_COLUMN),
							errmsg("two columns of a bucket cannot have the same name")));
	}
	c = add_column(b, kind, -1, name, namelen);
	c->typid = dp_bucket_kind_type(kind);
	b->ncolumns++;
	b->bound += 64 + namelen;
}

void
dp_bucket_builder_free(DpBucketBuilder *b)
{
	MemoryContextDelete(b->mcxt);
}

/*
 * The fields of split documents go: the next ones may have others.
 */
void
dp_bucket_builder_reset(DpBucketBuilder *b)
{
	b->count = 0;
	b->sorted = true;
	b->bound = 64;
	MemoryContextReset(b->strings);
	for (int i = b->ncolumns; i < b->ncolumns + b->nfields; i++)
	{
		DpBuilderColumn *c = &b->columns[i];

		pfree(c->ints);
		if (c->strings != NULL)
			pfree(c->strings);
		if (c->types != NULL)
			pfree(c->types);
		pfree(c->presence);
		pfree(c->name);
	}
	b->nfields = 0;
	for (int i = 0; i < b->ncolumns; i++)
	{
		DpBuilderColumn *c = &b->columns[i];

		c->nnulls = c->nmissing = c->nwhole = 0;
		c->nfields = 0;
		b->bound += 64 + c->namelen;
	}
}

/*
 * Creates a column after the others; the pointers to those before are no
 * longer good.  Its rows so far have no value.
 */
static DpBuilderColumn *
add_column(DpBucketBuilder *b, int kind, int parent, const char *name, int namelen)
{
	MemoryContext old = MemoryContextSwitchTo(b->mcxt);
	int n = b->ncolumns + b->nfields;
	DpBuilderColumn *c;

	if (n == b->maxcolumns)
	{
		b->maxcolumns = n == 0 ? 8 : 2 * n;
		if (n == 0)
			b->columns = palloc_array(DpBuilderColumn, b->maxcolumns);
		else
			b->columns = repalloc_array(b->columns, DpBuilderColumn, b->maxcolumns);
	}
	c = &b->columns[n];
	memset(c, 0, sizeof(DpBuilderColumn));
	c->kind = kind;
	c->parent = parent;
	if (name != NULL)
	{
		c->name = palloc(namelen + 1);
		memcpy(c->name, name, namelen);
		c->name[namelen] = '\0';
		c->namelen = namelen;
	}
	allocate_column(b, c);
	MemoryContextSwitchTo(old);
	return c;
}

/*
 * The arrays of a new column.
 */
static void
allocate_column(DpBucketBuilder *b, DpBuilderColumn *c)
{
	bool types = c->kind == DP_PACKED_VALUE || c->kind == DP_PACKED_NUMERIC ||
				 c->kind == DP_PACKED_SPLIT_DOCUMENT;

	c->ints = palloc_array(int64, b->capacity);
	c->presence = palloc_array(uint8, b->capacity);
	c->types = types ? palloc_array(uint8, b->capacity) : NULL;
	c->strings = types || c->kind >= DP_PACKED_TEXT ? palloc_array(DpString, b->capacity) : NULL;
}

int
dp_bucket_builder_count(const DpBucketBuilder *b)
{
	return b->count;
}

Size
dp_bucket_builder_bound(const DpBucketBuilder *b)
{
	return b->bound;
}

/*
 * Room for one more row, and its time.
 */
static void
begin_row(DpBucketBuilder *b, int64 time)
{
	if (unlikely(b->count == b->capacity))
	{
		Size n = Min(2 * (Size) b->capacity, DP_BUCKET_MAX_COUNT); /* more cannot be read back */

		if (b->count >= DP_BUCKET_MAX_COUNT)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("a bucket cannot hold more than %d measurements",
								   DP_BUCKET_MAX_COUNT)));
		b->times = repalloc_array(b->times, int64, n);
		for (int i = 0; i < b->ncolumns + b->nfields; i++)
		{
			DpBuilderColumn *c = &b->columns[i];

			c->ints = repalloc_array(c->ints, int64, n);
			c->presence = repalloc_array(c->presence, uint8, n);
			if (c->types != NULL)
				c->types = repalloc_array(c->types, uint8, n);
			if (c->strings != NULL)
				c->strings = repalloc_array(c->strings, DpString, n);
		}
		b->capacity = (int) n;
	}
	if ((b->flags & DP_BUCKET_TIMELESS) == 0)
	{
		if (unlikely(!IS_VALID_TIMESTAMP(time)))
			ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
							errmsg("the time of a measurement must be finite")));
		b->times[b->count] = time;
		if (b->count > 0 && time < b->times[b->count - 1])
			b->sorted = false;
		b->bound += 10;
	}
	for (int i = b->ncolumns; i < b->ncolumns + b->nfields; i++)
	{
		DpBuilderColumn *c = &b->columns[i];

		c->presence[b->count] = DP_PACKED_MISSING;
		c->nmissing++;
		b->bound += 1;
	}
}

void
dp_bucket_append(DpBucketBuilder *b, int64 time, const Datum *values, const bool *isnull)
{
	int ncolumns = b->ncolumns;

	begin_row(b, time);
	for (int i = 0; i < ncolumns; i++)
	{
		DpBuilderColumn *c = &b->columns[i];

		b->bound += 12;
		if (isnull[i])
		{
			c->presence[b->count] = DP_PACKED_NULL;
			c->nnulls++;
		}
		else
		{
			c->presence[b->count] = DP_PACKED_PRESENT;
			append_datum(b, i, values[i]);
		}
	}
	b->count++;
}

void
dp_builder_append(DpBucketBuilder *b, int64 time, const Datum *values, const uint8 *presence)
{
	begin_row(b, time);
	for (int i = 0; i < b->ncolumns; i++)
		append_presence(b, i, presence[i], values[i]);
	b->count++;
}

/*
 * A value, or none, in column i of the row that is being appended.
 */
static void
append_presence(DpBucketBuilder *b, int i, uint8 presence, Datum d)
{
	DpBuilderColumn *c = &b->columns[i];

	b->bound += 12;
	c->presence[b->count] = presence;
	if (presence == DP_PACKED_PRESENT)
		append_datum(b, i, d);
	else if (presence == DP_PACKED_NULL)
		c->nnulls++;
	else
		c->nmissing++;
}

/*
 * A column of the bucket whose rows are appended
 */
typedef struct SourceColumn
{
	int number; /* -1: none */
	DpValues values;
	int next; /* of the values */
	uint8 *presence;
	DpValue *documents; /* split documents */
} SourceColumn;

void
dp_bucket_append_bucket(DpBucketBuilder *b, DpBucketReader *r, int from, int to)
{
	MemoryContext work =
		AllocSetContextCreate(CurrentMemoryContext, "bucket append", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(work);
	int ncolumns = b->ncolumns;
	SourceColumn *sources = palloc0_array(SourceColumn, ncolumns);
	int64 *times = NULL;

	if ((b->flags & DP_BUCKET_TIMELESS) != (r->flags & DP_BUCKET_TIMELESS) ||
		(b->flags & DP_BUCKET_NAMED) != (r->flags & DP_BUCKET_NAMED))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("cannot combine buckets of different kinds"),
				 errdetail("Either all or none of them must have times, and column names.")));
	if ((r->flags & DP_BUCKET_TIMELESS) == 0)
	{
		times = palloc_array(int64, r->count);
		dp_bucket_times(r, times);
	}
	for (int i = 0; i < ncolumns; i++)
	{
		DpBuilderColumn *c = &b->columns[i];
		SourceColumn *s = &sources[i];
		const DpPackedColumn *p;

		if ((b->flags & DP_BUCKET_NAMED) != 0)
			s->number = dp_bucket_find_column(r, -1, c->name, c->namelen);
		else
			s->number = i < r->ncolumns ? i : -1;
		if (s->number < 0)
			continue;
		p = dp_bucket_column(r, s->number);
		if (p->kind != c->kind)
			ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
							errmsg("cannot combine columns of different types in a bucket"),
							errdetail("Column %d holds values of type %s, not %s.", i + 1,
									  format_type_be(dp_bucket_kind_type(p->kind)),
									  format_type_be(dp_bucket_kind_type(c->kind)))));
		s->presence = palloc(r->count);
		dp_column_load(r, s->number, &s->values, s->presence);
		if (p->kind == DP_PACKED_SPLIT_DOCUMENT)
		{
			s->documents = palloc_array(DpValue, r->count);
			dp_bucket_values(r, s->number, s->documents);
		}
		for (int row = 0; row < from; row++)
			s->next += s->presence[row] == DP_PACKED_PRESENT;
	}
	for (int row = from; row < to; row++)
	{
		begin_row(b, times != NULL ? times[row] : 0);
		for (int i = 0; i < ncolumns; i++)
		{
			SourceColumn *s = &sources[i];
			uint8 presence = s->number < 0 ? DP_PACKED_MISSING : s->presence[row];

			if (presence != DP_PACKED_PRESENT)
			{
				append_presence(b, i, presence, (Datum) 0);
				continue;
			}
			b->bound += 12;
			b->columns[i].presence[b->count] = presence;
			if (s->documents != NULL)
				append_document(b, i, s->documents[row].data, s->documents[row].len);
			else
				append_loaded(b, &b->columns[i], &s->values, s->next++);
		}
		b->count++;
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(work);
}

/*
 * A value that was loaded from another bucket.
 */
static void
append_loaded(DpBucketBuilder *b, DpBuilderColumn *c, const DpValues *v, int k)
{
	int row = b->count;

	if (c->strings != NULL)
		memset(&c->strings[row], 0, sizeof(DpString));
	if (v->ints != NULL)
		c->ints[row] = v->ints[k];
	if (v->types != NULL)
		c->types[row] = v->types[k];
	if (c->kind == DP_PACKED_NUMERIC)
		b->bound += 40;
	if (c->kind == DP_PACKED_VALUE)
	{
		b->bound += 12;
		if (dp_type_is_int(v->types[k]) || v->types[k] == DP_TYPE_DOUBLE)
			return;
	}
	else if (c->kind == DP_PACKED_NUMERIC && v->types[k] != DP_NO_DECIMAL)
		return;
	if (v->strings != NULL)
		append_string(b, c, v->strings[k].data, v->strings[k].len);
}

/*
 * A string in the row that is being appended.  Often it is the one of the row
 * before, of which no second copy is made.
 */
static void
append_string(DpBucketBuilder *b, DpBuilderColumn *c, const void *data, Size len)
{
	DpString *s = &c->strings[b->count];

	b->bound += len + 10;
	s->len = (uint32) len;
	if (b->count > 0 && c->presence[b->count - 1] == DP_PACKED_PRESENT && s[-1].len == len &&
		s[-1].data != NULL && memcmp(s[-1].data, data, len) == 0)
		s->data = s[-1].data;
	else
	{
		uint8 *p = MemoryContextAlloc(b->strings, Max(len, 1));

		memcpy(p, data, len);
		s->data = p;
	}
}

/*
 * A varlena in the row that is being appended.
 */
static void
append_varlena(DpBucketBuilder *b, DpBuilderColumn *c, Datum d)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(d);

	append_string(b, c, VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v));
	if ((Pointer) v != DatumGetPointer(d))
		pfree(v);
}

static void
append_numeric(DpBucketBuilder *b, DpBuilderColumn *c, Datum d)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(d);
	int row = b->count;

	/* all of them may become text because of one */
	b->bound += 40;
	c->strings[row].data = NULL;
	c->strings[row].len = 0;
	if (!dp_numeric_to_decimal(PointerGetDatum(v), &c->ints[row], &c->types[row]))
	{
		char *text = DatumGetCString(DirectFunctionCall1(numeric_out, d));

		append_string(b, c, text, strlen(text));
		c->types[row] = DP_NO_DECIMAL;
		pfree(text);
	}
	if ((Pointer) v != DatumGetPointer(d))
		pfree(v);
}

/*
 * A value that is not null in column i of the row that is being appended.
 */
static void
append_datum(DpBucketBuilder *b, int i, Datum d)
{
	DpBuilderColumn *c = &b->columns[i];
	int row = b->count;
	double f;

	switch (c->kind)
	{
		case DP_PACKED_BOOL:
			c->ints[row] = DatumGetBool(d);
			break;
		case DP_PACKED_INT2:
			c->ints[row] = DatumGetInt16(d);
			break;
		case DP_PACKED_INT4:
			c->ints[row] = DatumGetInt32(d);
			break;
		case DP_PACKED_INT8:
			c->ints[row] = DatumGetInt64(d);
			break;
		case DP_PACKED_FLOAT4:
			f = DatumGetFloat4(d);
			memcpy(&c->ints[row], &f, sizeof(f));
			break;
		case DP_PACKED_FLOAT8:
			f = DatumGetFloat8(d);
			memcpy(&c->ints[row], &f, sizeof(f));
			break;
		case DP_PACKED_NUMERIC:
			append_numeric(b, c, d);
			break;
		case DP_PACKED_DATE:
			c->ints[row] = DatumGetDateADT(d);
			break;
		case DP_PACKED_TIME:
			c->ints[row] = DatumGetTimeADT(d);
			break;
		case DP_PACKED_TIMESTAMP:
		case DP_PACKED_TIMESTAMPTZ:
			c->ints[row] = DatumGetTimestamp(d);
			break;
		case DP_PACKED_UUID:
			append_string(b, c, DatumGetPointer(d), UUID_LEN);
			break;
		case DP_PACKED_OBJECTID:
			append_string(b, c, DatumGetPointer(d), DP_OBJECTID_SIZE);
			break;
		case DP_PACKED_TEXT:
		case DP_PACKED_BYTEA:
		case DP_PACKED_DOCUMENT:
			append_varlena(b, c, d);
			break;
		case DP_PACKED_VALUE:
		{
			struct varlena *v;
			DpValue value;

			if (c->converter == NULL && c->typid != dp_types()->bson_value)
			{
				c->converter = MemoryContextAlloc(b->mcxt, sizeof(DpConverter));
				dp_converter_init(c->converter, c->typid, b->mcxt);
			}
			v = c->converter != NULL ? dp_converter_value(c->converter, d)
									 : PG_DETOAST_DATUM_PACKED(d);
			value = dp_value_of_varlena(v);
			append_value(b, c, &value);
			if ((Pointer) v != DatumGetPointer(d))
				pfree(v);
			break;
		}
		case DP_PACKED_SPLIT_DOCUMENT:
		{
			struct varlena *v = PG_DETOAST_DATUM_PACKED(d);

			append_document(b, i, DP_DOC_DATA(v), DP_DOC_SIZE(v));
			if ((Pointer) v != DatumGetPointer(d))
				pfree(v);
			break;
		}
		default:
		{
			char *text;

			if (c->output == NULL)
			{
				Oid output;

				getTypeOutputInfo(c->typid, &output, &c->isvarlena);
				c->output = MemoryContextAlloc(b->mcxt, sizeof(FmgrInfo));
				fmgr_info_cxt(output, c->output, b->mcxt);
			}
			text = dp_portable_output(c->output, d);
			append_string(b, c, text, strlen(text));
			pfree(text);
			break;
		}
	}
}

/*
 * A BSON value in the row that is being appended.
 */
static void
append_value(DpBucketBuilder *b, DpBuilderColumn *c, const DpValue *v)
{
	int row = b->count;

	/* the type, and what a part of its own costs */
	b->bound += 12;
	c->types[row] = v->type;
	c->strings[row].data = NULL;
	c->strings[row].len = 0;
	c->ints[row] = 0;
	switch (v->type)
	{
		case DP_TYPE_INT32:
			c->ints[row] = dp_get_int32(v->data);
			break;
		case DP_TYPE_INT64:
		case DP_TYPE_DATE:
			c->ints[row] = dp_get_int64(v->data);
			break;
		case DP_TYPE_BOOL:
			c->ints[row] = *v->data;
			break;
		case DP_TYPE_DOUBLE:
		{
			double d = dp_get_double(v->data);

			memcpy(&c->ints[row], &d, sizeof(d));
			break;
		}
		case DP_TYPE_STRING:
			append_string(b, c, DP_STRING_DATA(v), DP_STRING_LEN(v));
			break;
		default:
			append_string(b, c, v->data, v->len);
			break;
	}
}

/* The field of that name of the column parent, searched from the expected one on; -1 if none. */
static int
find_field(DpBucketBuilder *b, int parent, int expected, const DpElement *e)
{
	int end = b->ncolumns + b->nfields;

	for (int pass = 0; pass < 2; pass++)
	{
		int to = pass == 0 ? end : Min(expected, end);

		for (int i = pass == 0 ? expected : b->ncolumns; i < to; i++)
		{
			DpBuilderColumn *c = &b->columns[i];

			if (c->parent == parent && c->namelen == (int) e->namelen &&
				memcmp(c->name, e->name, e->namelen) == 0)
				return i;
		}
	}
	return -1;
}

/*
 * A document whose fields become columns.  It is kept whole, too, if they alone
 * would not give it back: they come in another order, one of them twice, or
 * there are too many.
 */
static void
append_document(DpBucketBuilder *b, int parent, const uint8 *doc, uint32 size)
{
	int row = b->count;
	int last = -1;
	bool whole = false;
	DpIter iter;
	DpElement e;

	dp_iter_init(&iter, doc, size);
	while (dp_iter_next(&iter, &e))
	{
		int i = find_field(b, parent, last < 0 ? b->ncolumns : last + 1, &e);
		DpBuilderColumn *c;

		if (i < 0)
		{
			if (b->nfields == MAX_FIELDS)
			{
				whole = true;
				continue;
			}
			c = add_column(b, DP_PACKED_VALUE, parent, e.name, e.namelen);
			i = b->ncolumns + b->nfields++;
			memset(c->presence, DP_PACKED_MISSING, row + 1);
			c->nmissing = row + 1;
			b->bound += 64 + e.namelen + row + 1;
		}
		c = &b->columns[i];
		if (i <= last)
			whole = true;
		last = Max(last, i);
		if (c->presence[row] != DP_PACKED_MISSING)
		{
			whole = true;
			continue;
		}
		c->nmissing--;
		if (e.value.type == DP_TYPE_NULL)
		{
			c->presence[row] = DP_PACKED_NULL;
			c->nnulls++;
		}
		else
		{
			append_value(b, c, &e.value);
			c->presence[row] = DP_PACKED_PRESENT;
		}
	}
	b->columns[parent].types[row] = whole;
	b->columns[parent].strings[row].data = NULL;
	b->columns[parent].strings[row].len = 0;
	if (whole)
	{
		append_string(b, &b->columns[parent], doc, size);
		b->columns[parent].nwhole++;
	}
}

/* ---------------------------------------------------------------- packing */

static int
compare_row_times(const void *a, const void *b)
{
	const RowTime *x = a;
	const RowTime *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->row - y->row;
}

/* The rows in the order of their times; equal times keep their order of arrival. */
static int *
order_rows(DpBucketBuilder *b)
{
	RowTime *rows = palloc_array(RowTime, b->count);
	int *order = palloc_array(int, b->count);

	for (int i = 0; i < b->count; i++)
	{
		rows[i].time = b->times[i];
		rows[i].row = i;
	}
	qsort(rows, b->count, sizeof(RowTime), compare_row_times);
	for (int i = 0; i < b->count; i++)
		order[i] = rows[i].row;
	return order;
}

/*
 * Appends the part of the header that is about times, and the packed times.
 */
static void
put_times(StringInfo header, StringInfo data, const int64 *times, int n)
{
	int unit = DP_TIME_UNITS - 1;
	uint64 first = (uint64) times[0];
	/* the range of all timestamps exceeds an int64 */
	uint64 span = (uint64) times[n - 1] - first;
	uint64 step = n > 1 ? span / (n - 1) : 0;
	bool regular = true;
	int start = data->len;

	for (int i = 0; i < n; i++)
	{
		while (times[i] % dp_time_units[unit] != 0)
			unit--;
		regular = regular && (uint64) times[i] == first + i * step;
	}
	dp_put_byte(header, regular ? unit : unit | DP_TIME_IRREGULAR);
	dp_put_varint(header, dp_zigzag(times[0] / dp_time_units[unit]));
	dp_put_varint(header, span / dp_time_units[unit]);
	if (!regular)
	{
		int64 *t = palloc_array(int64, n);

		for (int i = 0; i < n; i++)
			t[i] = (int64) (((uint64) times[i] - first) / dp_time_units[unit]);
		dp_ints_encode(data, t, n, 0);
		pfree(t);
		dp_put_varint(header, data->len - start);
	}
}

/*
 * Packs a column: its values without the rows that have none, in the order of
 * time.
 */
static void
pack_column(DpBucketBuilder *b, DpBuilderColumn *c, const int *order, StringInfo header,
			StringInfo data)
{
	DpColumnSource source;
	int nabsent = c->nnulls + c->nmissing;
	int n = 0;

	memset(&source, 0, sizeof(source));
	source.kind = c->kind;
	source.parent = c->parent;
	source.last = c == &b->columns[b->ncolumns + b->nfields - 1];
	source.name = c->name;
	source.namelen = c->namelen;
	source.count = b->count;
	source.nnulls = c->nnulls;
	source.nmissing = c->nmissing;
	source.presence = c->presence;
	source.values.n = b->count - nabsent;
	if (order != NULL)
	{
		uint8 *presence = palloc(b->count);

		for (int i = 0; i < b->count; i++)
			presence[i] = c->presence[order[i]];
		source.presence = presence;
	}
	if (c->kind == DP_PACKED_SPLIT_DOCUMENT)
	{
		int64 *rows = palloc_array(int64, c->nwhole + 1);

		source.values.strings = palloc_array(DpString, c->nwhole + 1);
		for (int i = 0; i < b->count && n < c->nwhole; i++)
		{
			int row = order != NULL ? order[i] : i;

			if (c->presence[row] == DP_PACKED_PRESENT && c->types[row] != 0)
			{
				rows[n] = i;
				source.values.strings[n++] = c->strings[row];
			}
		}
		source.nwhole = n;
		source.whole_rows = rows;
	}
	else if (order == NULL && nabsent == 0)
	{
		source.values.ints = c->ints;
		source.values.types = c->types;
		source.values.strings = c->strings;
	}
	else
	{
		DpValues *v = &source.values;

		v->ints = palloc_array(int64, v->n + 1);
		if (c->types != NULL)
			v->types = palloc_array(uint8, v->n + 1);
		if (c->strings != NULL)
			v->strings = palloc_array(DpString, v->n + 1);
		for (int i = 0; i < b->count; i++)
		{
			int row = order != NULL ? order[i] : i;

			if (c->presence[row] != DP_PACKED_PRESENT)
				continue;
			v->ints[n] = c->ints[row];
			if (c->types != NULL)
				v->types[n] = c->types[row];
			if (c->strings != NULL)
				v->strings[n] = c->strings[row];
			n++;
		}
	}
	dp_column_encode(header, data, &source, b->flags);
}

struct varlena *
dp_bucket_builder_finish(DpBucketBuilder *b)
{
	MemoryContext work;
	MemoryContext old;
	StringInfoData header;
	StringInfoData data;
	const int *order = NULL;
	int flags = b->flags | (b->nfields > 0 ? DP_FLAG_FIELDS : 0);
	uint32 size;
	uint8 start[8];
	int nstart = 0;
	struct varlena *result;
	char *p;

	if (b->count == 0)
		return NULL;
	if (b->work == NULL)
		b->work = AllocSetContextCreate(b->mcxt, "bucket packing", ALLOCSET_DEFAULT_SIZES);
	work = b->work;
	old = MemoryContextSwitchTo(work);
	initStringInfo(&header);
	initStringInfo(&data);
	dp_put_varint(&header, b->count);
	dp_put_varint(&header, b->ncolumns);
	if (b->nfields > 0)
		dp_put_varint(&header, b->nfields);
	if ((b->flags & DP_BUCKET_TIMELESS) == 0)
	{
		int64 *times = b->times;

		if (!b->sorted)
		{
			order = order_rows(b);
			times = palloc_array(int64, b->count);
			for (int i = 0; i < b->count; i++)
				times[i] = b->times[order[i]];
		}
		put_times(&header, &data, times, b->count);
	}
	for (int i = 0; i < b->ncolumns + b->nfields; i++)
		pack_column(b, &b->columns[i], order, &header, &data);

	/* the size of the header counts itself */
	start[nstart++] = DP_BUCKET_VERSION << 4 | flags;
	size = 2 + header.len;
	if (size >= 0x80)
		size = size + 1 < 0x4000 ? size + 1 : size + 2 < 0x200000 ? size + 2 : size + 3;
	for (uint32 v = size;; v >>= 7)
	{
		start[nstart++] = v >= 0x80 ? (v & 0x7F) | 0x80 : v;
		if (v < 0x80)
			break;
	}
	Assert(size == (uint32) (nstart + header.len));

	MemoryContextSwitchTo(old);
	size += data.len;
	if (size + VARHDRSZ > MaxAllocSize)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("bucket is too large")));
	result = palloc(size + VARHDRSZ);
	if (size + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
		SET_VARSIZE_SHORT(result, size + VARHDRSZ_SHORT);
	else
		SET_VARSIZE(result, size + VARHDRSZ);
	p = VARDATA_ANY(result);
	memcpy(p, start, nstart);
	memcpy(p + nstart, header.data, header.len);
	memcpy(p + nstart + header.len, data.data, data.len);
	MemoryContextReset(work);
	return result;
}
