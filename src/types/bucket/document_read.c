/*
 * document_read.c
 *		bucket_from_bson(): buckets from documents in the layouts of document_layout.c and in
 *		similar ones of applications.
 *
 * In every layout, a measurement becomes a document of its fields.
 */
#include "postgres.h"

#include "common/int.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "bson/catalog.h"
#include "bson/path.h"
#include "mql/expression_date.h"
#include "types/bucket/document.h"

typedef enum Layout
{
	LAYOUT_ROWS,
	LAYOUT_COLUMNS,
	LAYOUT_DENSE,
	LAYOUT_KEYED
} Layout;

/* A value of a slot */
typedef struct Entry
{
	int64 ms; /* its time, or its position */
	int column;
	DpValue value;
} Entry;

/* A document that is read */
typedef struct Reading
{
	DpValue doc;
	const char *field; /* path of measurements or values; NULL: not given */
	const char *time_field;
	const char *start_field;
	DpSlotUnits units;
	int64 base; /* where slots are counted from */
	DpBucketBuilder *builder;
	bool has_times;

	/* slots */
	int ncolumns;
	int maxcolumns;
	DpElement *columns;
	Entry *entries;
	int nentries;
	int maxentries;
} Reading;

static Layout layout_of(const Reading *reading);
static void read_rows(Reading *reading);
static void read_columns(Reading *reading);
static void read_slots(Reading *reading, Layout layout);
static void read_level(Reading *reading, int column, const DpValue *container, Layout layout,
					   int level, int64 base);
static void find_columns(Reading *reading, uint8 type);
static void builder_make(Reading *reading, bool has_times);
static void append_document(Reading *reading, int64 ms, DpBuilder *b);

static const DpValue no_value = { NULL, 0, DP_TYPE_EOD };

/* The field of the document; false if it is missing. */
static bool
get_field(const Reading *reading, const char *name, DpValue *value)
{
	return dp_path_find(reading->doc.data, reading->doc.len, dp_path_parse(name, strlen(name)),
						value);
}

/* Microseconds since 2000 of milliseconds since 1970. */
static int64
to_us(int64 ms)
{
	int64 us;

	if (pg_sub_s64_overflow(ms, DP_EPOCH_SHIFT_MS, &us) || pg_mul_s64_overflow(us, 1000, &us) ||
		!IS_VALID_TIMESTAMP(us))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("timestamp out of range")));
	return us;
}

/* The milliseconds of a date.  Raises INVALID_PARAMETER_VALUE for anything else. */
static int64
date_of(const DpValue *v, const char *what)
{
	if (v->type != DP_TYPE_DATE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%.100s\" is not a date", what),
				 errdetail("Found a value of BSON type \"%s\".", dp_type_name(v->type))));
	return dp_get_int64(v->data);
}

/*
 * bucket_from_bson(doc bson, layout text, units text[], field text, time_field
 * text, start_field text) -> bucket: NULL if there are no measurements.  Raises
 * INVALID_PARAMETER_VALUE for a document that has not the layout.
 */
DP_FUNCTION(dp_bucket_from_bson);
Datum
dp_bucket_from_bson(PG_FUNCTION_ARGS)
{
	Reading reading;
	Layout layout;
	DpValue v;
	struct varlena *bucket;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	memset(&reading, 0, sizeof(reading));
	reading.doc = dp_value_of_document(DP_GETARG_VARLENA(0));
	if (!PG_ARGISNULL(2))
		dp_slot_units_parse(PG_GETARG_ARRAYTYPE_P(2), &reading.units);
	reading.field = PG_ARGISNULL(3) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(3));
	reading.time_field =
		PG_ARGISNULL(4) ? DP_BUCKET_NAME_TIME : text_to_cstring(PG_GETARG_TEXT_PP(4));
	reading.start_field = PG_ARGISNULL(5) ? "start_date" : text_to_cstring(PG_GETARG_TEXT_PP(5));

	if (PG_ARGISNULL(1))
		layout = layout_of(&reading);
	else
	{
		static const char *const names[] = { "rows", "columns", "dense", "keyed" };
		char *name = text_to_cstring(PG_GETARG_TEXT_PP(1));
		int i;

		for (i = 0; i < (int) lengthof(names) && strcmp(name, names[i]) != 0; i++)
			;
		if (i == (int) lengthof(names))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("unknown layout \"%.100s\"", name),
							errhint("Layouts are rows, columns, dense and keyed.")));
		layout = (Layout) i;
	}

	switch (layout)
	{
		case LAYOUT_ROWS:
			read_rows(&reading);
			break;
		case LAYOUT_COLUMNS:
			read_columns(&reading);
			break;
		default:
			if (reading.units.n == 0 && get_field(&reading, "units", &v) && v.type == DP_TYPE_ARRAY)
			{
				DpIter iter;
				DpValue unit;
				DpSlotUnit found;

				dp_iter_init_value(&iter, &v);
				while (dp_iter_next_value(&iter, &unit))
				{
					if (unit.type != DP_TYPE_STRING ||
						!dp_slot_unit_find(DP_STRING_DATA(&unit), DP_STRING_LEN(&unit), &found) ||
						(reading.units.n > 0 && found != reading.units.first + reading.units.n))
						ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
										errmsg("units of the document are empty"),
										errhint("Specify the argument \"units\".")));
					if (reading.units.n++ == 0)
						reading.units.first = found;
				}
			}
			read_slots(&reading, layout);
			break;
	}
	if (reading.builder == NULL || (bucket = dp_bucket_builder_finish(reading.builder)) == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(bucket);
}

/* The layout that the document looks like. */
static Layout
layout_of(const Reading *reading)
{
	DpValue v;
	DpIter iter;
	DpValue first;

	if (reading->field != NULL
			? get_field(reading, reading->field, &v)
			: get_field(reading, "measurements", &v) || get_field(reading, "values", &v))
	{
		if (v.type == DP_TYPE_DOCUMENT)
			return LAYOUT_KEYED;
		if (v.type == DP_TYPE_ARRAY)
		{
			dp_iter_init_value(&iter, &v);
			if (!get_field(reading, "units", &first) && dp_iter_next_value(&iter, &first) &&
				first.type == DP_TYPE_DOCUMENT)
				return LAYOUT_ROWS;
			if (reading->field == NULL && get_field(reading, "measurements", &first))
				return LAYOUT_ROWS;
			if (get_field(reading, reading->time_field, &first) && first.type == DP_TYPE_ARRAY)
				return LAYOUT_COLUMNS;
			return LAYOUT_DENSE;
		}
	}
	if (get_field(reading, "units", &v) && v.type == DP_TYPE_ARRAY)
	{
		DpElement element;

		dp_iter_init_value(&iter, &reading->doc);
		while (dp_iter_next(&iter, &element))
		{
			if (element.value.type == DP_TYPE_DOCUMENT)
				return LAYOUT_KEYED;
		}
		return LAYOUT_DENSE;
	}
	return LAYOUT_COLUMNS;
}

/* Makes the builder, for measurements with times or without. */
static void
builder_make(Reading *reading, bool has_times)
{
	DpPackedColumnDef column = { dp_types()->bson, NULL, true, true };

	reading->has_times = has_times;
	reading->builder = dp_bucket_builder_create(CurrentMemoryContext,
												has_times ? 0 : DP_BUCKET_TIMELESS, 1, &column);
}

/* Appends the measurement whose fields the builder has, and empties that. */
static void
append_document(Reading *reading, int64 ms, DpBuilder *b)
{
	DpValue v;
	struct varlena *doc;
	Datum d;
	bool isnull = false;

	dp_builder_end(b);
	v = dp_builder_view(b, DP_TYPE_DOCUMENT);
	doc = dp_document_to_varlena(v.data, v.len);
	d = PointerGetDatum(doc);
	dp_bucket_append(reading->builder, reading->has_times ? to_us(ms) : 0, &d, &isnull);
	pfree(doc);
	dp_builder_reset(b);
	dp_builder_begin_document(b);
}

/* An array of documents, each with its time. */
static void
read_rows(Reading *reading)
{
	const char *field = reading->field != NULL ? reading->field : "measurements";
	uint32 timelen = strlen(reading->time_field);
	DpValue array;
	DpValue row;
	DpIter iter;
	DpBuilder b;

	if (!get_field(reading, field, &array) || array.type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("document has no array \"%.100s\" of measurements", field)));
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_iter_init_value(&iter, &array);
	while (dp_iter_next_value(&iter, &row))
	{
		DpIter fields;
		DpElement element;
		bool has_time = false;
		int64 ms = 0;

		CHECK_FOR_INTERRUPTS();
		if (row.type != DP_TYPE_DOCUMENT)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("a measurement is not a document"),
					 errdetail("Found a value of BSON type \"%s\".", dp_type_name(row.type))));
		dp_iter_init_value(&fields, &row);
		while (dp_iter_next(&fields, &element))
		{
			if (!has_time && element.namelen == timelen &&
				memcmp(element.name, reading->time_field, timelen) == 0)
			{
				has_time = true;
				ms = date_of(&element.value, reading->time_field);
			}
			else
				dp_builder_append_value(&b, element.name, element.namelen, &element.value);
		}
		if (reading->builder == NULL)
			builder_make(reading, has_time);
		if (has_time != reading->has_times)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("some measurements have a time and others do not"),
							errdetail("The time is expected in the field \"%.100s\".",
									  reading->time_field)));
		append_document(reading, ms, &b);
	}
}

/* Notes the fields whose values are of the type: they are the columns. */
static void
find_columns(Reading *reading, uint8 type)
{
	DpIter iter;
	DpElement element;
	DpValue v;
	const char *field = reading->field != NULL ? reading->field : "values";

	reading->maxcolumns = dp_document_count(reading->doc.data, reading->doc.len);
	reading->columns = palloc(Max(reading->maxcolumns, 1) * sizeof(DpElement));
	if (get_field(reading, field, &v) && v.type == type)
	{
		reading->columns[0].name = DP_BUCKET_NAME_VALUE;
		reading->columns[0].namelen = strlen(DP_BUCKET_NAME_VALUE);
		reading->columns[0].value = v;
		reading->ncolumns = 1;
		return;
	}
	if (reading->field != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("document has no %s \"%.100s\" of values", dp_type_name(type), field)));
	dp_iter_init_value(&iter, &reading->doc);
	while (dp_iter_next(&iter, &element))
	{
		if (element.value.type == type && strcmp(element.name, reading->time_field) != 0 &&
			!(strcmp(element.name, "units") == 0 && type == DP_TYPE_ARRAY))
			reading->columns[reading->ncolumns++] = element;
	}
	if (reading->ncolumns == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("document has no %s of values", dp_type_name(type))));
}

/* An array for each field, and one for the times. */
static void
read_columns(Reading *reading)
{
	DpValue times = no_value;
	DpIter time_iter = { NULL, NULL };
	DpIter *iters;
	DpBuilder b;
	uint32 count = 0;

	(void) get_field(reading, reading->time_field, &times);
	if (times.type != DP_TYPE_EOD && times.type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%.100s\" is not an array of times", reading->time_field)));
	if (times.type == DP_TYPE_ARRAY)
	{
		count = dp_document_count(times.data, times.len);
		dp_iter_init_value(&time_iter, &times);
	}
	/* an array of times alone is measurements without values */
	if (reading->field != NULL || times.type != DP_TYPE_ARRAY ||
		dp_document_count(reading->doc.data, reading->doc.len) > 1)
		find_columns(reading, DP_TYPE_ARRAY);
	iters = palloc(Max(reading->ncolumns, 1) * sizeof(DpIter));
	for (int k = 0; k < reading->ncolumns; k++)
	{
		uint32 n = dp_document_count(reading->columns[k].value.data, reading->columns[k].value.len);

		if (k == 0 && times.type != DP_TYPE_ARRAY)
			count = n;
		if (n != count)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("arrays of the document have different lengths"),
							errdetail("\"%.100s\" has %u elements, but others have %u.",
									  reading->columns[k].name, n, count)));
		dp_iter_init_value(&iters[k], &reading->columns[k].value);
	}
	if (count == 0)
		return;

	builder_make(reading, times.type == DP_TYPE_ARRAY);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	for (uint32 i = 0; i < count; i++)
	{
		DpValue v;
		int64 ms = 0;

		CHECK_FOR_INTERRUPTS();
		if (times.type == DP_TYPE_ARRAY && dp_iter_next_value(&time_iter, &v))
			ms = date_of(&v, reading->time_field);
		for (int k = 0; k < reading->ncolumns; k++)
		{
			if (dp_iter_next_value(&iters[k], &v))
				dp_builder_append_value(&b, reading->columns[k].name, reading->columns[k].namelen,
										&v);
		}
		append_document(reading, ms, &b);
	}
}

/* Orders entries by time, and of one time by column. */
static int
entry_compare(const void *a, const void *b)
{
	const Entry *x = a;
	const Entry *y = b;

	if (x->ms != y->ms)
		return x->ms < y->ms ? -1 : 1;
	return x->column - y->column;
}

/* Values by slot. */
static void
read_slots(Reading *reading, Layout layout)
{
	DpValue start = no_value;
	DpBuilder b;

	find_columns(reading, layout == LAYOUT_KEYED ? DP_TYPE_DOCUMENT : DP_TYPE_ARRAY);
	if (reading->units.n > 0)
	{
		if (!get_field(reading, reading->start_field, &start))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("document has no field \"%.100s\" with the start of its slots",
								   reading->start_field)));
		reading->base = dp_slot_base(&reading->units, date_of(&start, reading->start_field));
	}
	else if (get_field(reading, reading->start_field, &start))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("could not determine the units of the document's slots"),
						errhint("Specify the argument \"units\".")));

	for (int k = 0; k < reading->ncolumns; k++)
		read_level(reading, k, &reading->columns[k].value, layout, 0, reading->base);
	if (reading->nentries == 0)
		return;
	qsort(reading->entries, reading->nentries, sizeof(Entry), entry_compare);

	builder_make(reading, reading->units.n > 0);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	for (int i = 0; i < reading->nentries; i++)
	{
		const Entry *e = &reading->entries[i];
		const DpElement *column = &reading->columns[e->column];

		CHECK_FOR_INTERRUPTS();
		if (i > 0 && e->ms == e[-1].ms && e->column == e[-1].column)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("document has a duplicate slot"),
							errdetail("It is in \"%.100s\".", column->name)));
		dp_builder_append_value(&b, column->name, column->namelen, &e->value);
		if (i + 1 == reading->nentries || e[1].ms != e->ms)
			append_document(reading, e->ms, &b);
	}
}

/* The number that a key or a position represents; -1 if none. */
static int64
slot_number(const DpElement *element)
{
	int64 n = 0;

	if (element->namelen == 0 || element->namelen > 9)
		return -1;
	for (uint32 i = 0; i < element->namelen; i++)
	{
		if (element->name[i] < '0' || element->name[i] > '9')
			return -1;
		n = n * 10 + (element->name[i] - '0');
	}
	return n;
}

/* Notes the values of one level, whose slots are counted from base. */
static void
read_level(Reading *reading, int column, const DpValue *container, Layout layout, int level,
		   int64 base)
{
	DpIter iter;
	DpElement element;
	int64 position = 0;
	bool last = level >= reading->units.n - 1;
	DpSlotUnit unit = reading->units.first + level;
	int lowest = reading->units.n > 0 ? dp_slot_lowest(unit) : 0;
	int nslots = reading->units.n > 0 ? dp_slot_count(&reading->units, level, base) : 0;

	dp_iter_init_value(&iter, container);
	while (dp_iter_next(&iter, &element))
	{
		int64 slot = layout == LAYOUT_KEYED ? slot_number(&element) - lowest : position++;
		int64 start = slot;

		if (slot < 0 || (reading->units.n > 0 && slot >= nslots))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("\"%.*s\" is not a slot", (int) Min(element.namelen, 100),
							element.name),
					 reading->units.n > 0
						 ? errdetail("The unit \"%s\" has the slots %d to %d.",
									 dp_slot_unit_name(unit), layout == LAYOUT_KEYED ? lowest : 0,
									 (layout == LAYOUT_KEYED ? lowest : 0) + nslots - 1)
						 : 0));
		if (reading->units.n > 0)
			start = base + slot * dp_slot_width(unit);
		if (!last)
		{
			if (element.value.type != container->type)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("values of the document do not have %d levels", reading->units.n),
						 errdetail("Found a value of BSON type \"%s\" below the unit \"%s\".",
								   dp_type_name(element.value.type), dp_slot_unit_name(unit))));
			read_level(reading, column, &element.value, layout, level + 1, start);
			continue;
		}
		/* an empty slot */
		if (layout == LAYOUT_DENSE && element.value.type == DP_TYPE_NULL)
			continue;
		if (reading->nentries == reading->maxentries)
		{
			reading->maxentries = Max(2 * reading->maxentries, 64);
			reading->entries =
				reading->entries == NULL
					? palloc(reading->maxentries * sizeof(Entry))
					: repalloc_huge(reading->entries, reading->maxentries * sizeof(Entry));
		}
		reading->entries[reading->nentries].ms = start;
		reading->entries[reading->nentries].column = column;
		reading->entries[reading->nentries++].value = element.value;
	}
}
