/*
 * document_layout.c
 *		bucket_to_bson(): a bucket as a document in one of four layouts, and bucket_document():
 *		by a template.
 *
 *		rows	{start_date, end_date, measurements: [{timestamp, <fields>}, ...],
 *				 transaction_count, sum_<field>}
 *		columns	{timestamp: [...], <field>: [...], ...}
 *		dense	{start_date, units, <field>: [...]}		an element for each slot,
 *														null for empty slots
 *		keyed	{start_date, units, <field>: {"0": .., "37": ..}}
 *
 * In the last two a single field is called "values", and several units are several levels.
 * document_read.c reads all of them.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "bson/catalog.h"
#include "mql/expression_date.h"
#include "types/bucket/document.h"

/* The cache of bucket_to_bson */
typedef struct LayoutCache
{
	DpBucketDocument *rows; /* for the layout rows */
} LayoutCache;

/* The cache of bucket_document: the template and its other arguments */
typedef struct DocumentCache
{
	DpBucketDocument *document;
	MemoryContext context;
	struct varlena *template; /* NULL: none; copies of the arguments that it was made for */
	struct varlena *group;
	struct varlena *names;
	bool exclusive;
	bool of_documents; /* the buckets have documents, whose fields are not known */
} DocumentCache;

static struct varlena *layout_rows(FunctionCallInfo fcinfo, Datum bucket);
static struct varlena *layout_columns(const DpBucketFields *fields, DpBucketRows *rows);
static struct varlena *layout_slots(const DpBucketFields *fields, DpBucketRows *rows,
									const int64 *times, bool keyed, const DpSlotUnits *units);
static void units_of_times(const int64 *times, int n, DpSlotUnits *units);
static void check_slots(const DpBucketReader *r, const int64 *times, const DpSlotUnits *units);
static DpValue **rows_as_columns(const DpBucketFields *fields, DpBucketRows *rows);
static int
append_level(DpBuilder *b, const char *name, const DpValue *values, const int64 *times, int from,
			 int to, bool keyed, const DpSlotUnits *units, int level, int64 base);

/*
 * bucket_to_bson(bucket, layout text, units text[]) -> bson.  Raises
 * INVALID_PARAMETER_VALUE for a layout or units that do not exist or do not
 * fit, CARDINALITY_VIOLATION for two values in one slot.
 */
DP_FUNCTION(dp_bucket_to_bson);
Datum
dp_bucket_to_bson(PG_FUNCTION_ARGS)
{
	char *layout;
	DpBucketReader r;
	DpBucketFields fields;
	DpBucketRows rows;
	DpSlotUnits units = { 0 };
	int64 *times = NULL;
	bool keyed;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	layout = PG_ARGISNULL(1) ? "rows" : text_to_cstring(PG_GETARG_TEXT_PP(1));
	keyed = strcmp(layout, "keyed") == 0;
	if (!PG_ARGISNULL(2))
	{
		dp_slot_units_parse(PG_GETARG_ARRAYTYPE_P(2), &units);
		if (!keyed && strcmp(layout, "dense") != 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("layout \"%.100s\" has no units", layout)));
	}
	if (strcmp(layout, "rows") == 0)
		PG_RETURN_POINTER(layout_rows(fcinfo, PG_GETARG_DATUM(0)));
	if (!keyed && strcmp(layout, "columns") != 0 && strcmp(layout, "dense") != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("unknown layout \"%.100s\"", layout),
						errhint("Layouts are rows, columns, dense and keyed.")));

	dp_bucket_reader_init(&r, CurrentMemoryContext);
	dp_bucket_open(&r, PG_GETARG_DATUM(0));
	dp_bucket_fields(&r, NULL, 0, &fields);
	dp_bucket_rows_init(&rows, &fields);
	if (!(r.flags & DP_BUCKET_TIMELESS))
		times = dp_bucket_times_ms(&r);
	rows.times = times;
	if (strcmp(layout, "columns") == 0)
		PG_RETURN_POINTER(layout_columns(&fields, &rows));

	if (times == NULL)
	{
		if (units.n > 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("cannot use units with a bucket without times")));
	}
	else if (units.n == 0)
		units_of_times(times, r.count, &units);
	check_slots(&r, times, &units);
	PG_RETURN_POINTER(layout_slots(&fields, &rows, times, keyed, &units));
}

/* The default document, from the first time to the last. */
static struct varlena *
layout_rows(FunctionCallInfo fcinfo, Datum bucket)
{
	LayoutCache *cache = fcinfo->flinfo->fn_extra;
	DpBucketReader r;
	int64 until;

	if (cache == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		DpBucketDocumentDef def;

		memset(&def, 0, sizeof(def));
		def.end_exclusive = true;
		cache = palloc(sizeof(LayoutCache));
		cache->rows = dp_bucket_document_compile(&def);
		fcinfo->flinfo->fn_extra = cache;
		MemoryContextSwitchTo(old);
	}
	dp_bucket_reader_init(&r, CurrentMemoryContext);
	dp_bucket_open(&r, bucket);
	until = r.last;
	if (r.flags & DP_BUCKET_TIMELESS)
		return dp_bucket_document_build(cache->rows, bucket, NULL, NULL, NULL, NULL);
	return dp_bucket_document_build(cache->rows, bucket, NULL, NULL, &r.first, &until);
}

/* An array for the times and for each field; null where there is no value. */
static struct varlena *
layout_columns(const DpBucketFields *fields, DpBucketRows *rows)
{
	DpValue **columns = rows_as_columns(fields, rows);
	DpBuilder b;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	if (rows->times != NULL)
	{
		dp_builder_begin_array_field(&b, DP_BUCKET_NAME_TIME, strlen(DP_BUCKET_NAME_TIME));
		for (int i = 0; i < rows->count; i++)
			dp_builder_append_date(&b, NULL, 0, rows->times[i]);
		dp_builder_end(&b);
	}
	for (int k = 0; k < fields->n; k++)
	{
		const DpBucketField *field = &fields->fields[k];

		if (rows->times != NULL && field->namelen == strlen(DP_BUCKET_NAME_TIME) &&
			memcmp(field->name, DP_BUCKET_NAME_TIME, field->namelen) == 0)
			continue;
		dp_builder_begin_array_field(&b, field->name, field->namelen);
		for (int i = 0; i < rows->count; i++)
		{
			if (columns[k][i].type == DP_TYPE_EOD)
				dp_builder_append_null(&b, NULL, 0);
			else
				dp_builder_append_nested(&b, NULL, 0, &columns[k][i]);
		}
		dp_builder_end(&b);
		dp_check_document_size(b.len - b.head);
	}
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

/* The values of each field, of documents too. */
static DpValue **
rows_as_columns(const DpBucketFields *fields, DpBucketRows *rows)
{
	if (rows->values != NULL)
		return rows->values;
	rows->values = palloc(Max(fields->n, 1) * sizeof(DpValue *));
	for (int k = 0; k < fields->n; k++)
	{
		rows->values[k] = palloc_extended(rows->count * sizeof(DpValue), MCXT_ALLOC_HUGE);
		dp_bucket_column_values(fields->reader, fields->fields[k].column, rows->values[k]);
	}
	return rows->values;
}

/*
 * The units of the times: the largest below the one that all times share, down to the one in which
 * they differ.
 */
static void
units_of_times(const int64 *times, int n, DpSlotUnits *units)
{
	DpSlotUnit last = DP_UNIT_DAY;
	DpSlotUnits try;

	for (int i = 0; i < n; i++)
	{
		if (times[i] % DP_MS_MINUTE != 0)
		{
			last = DP_UNIT_SECOND;
			break;
		}
		if (times[i] % DP_MS_HOUR != 0)
			last = Max(last, DP_UNIT_MINUTE);
		else if (times[i] % DP_MS_DAY != 0)
			last = Max(last, DP_UNIT_HOUR);
	}
	try.n = 1;
	for (try.first = last; try.first > DP_UNIT_DAY; try.first--)
	{
		if (dp_slot_base(&try, times[0]) == dp_slot_base(&try, times[n - 1]))
			break;
	}
	units->first = try.first;
	units->n = last - try.first + 1;
}

/* Raises an error unless what the largest unit divides is one and the same for all times. */
static void
check_slots(const DpBucketReader *r, const int64 *times, const DpSlotUnits *units)
{
	static const char *const around[] = { "month", "day", "hour", "minute" };

	if (times != NULL && dp_slot_base(units, times[0]) != dp_slot_base(units, times[r->count - 1]))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("bucket spans more than one %s", around[units->first]),
						errdetail("The unit \"%s\" divides a single one into slots.",
								  dp_slot_unit_name(units->first)),
						errhint("Use larger units, or bucket_slice().")));
}

/* The layouts dense and keyed. */
static struct varlena *
layout_slots(const DpBucketFields *fields, DpBucketRows *rows, const int64 *times, bool keyed,
			 const DpSlotUnits *units)
{
	DpValue **columns = rows_as_columns(fields, rows);
	int64 base = times == NULL ? 0 : dp_slot_base(units, times[0]);
	DpBuilder b;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	if (times != NULL)
	{
		dp_builder_append_date(&b, "start_date", 10, base);
		dp_builder_begin_array_field(&b, "units", 5);
		for (int i = 0; i < units->n; i++)
		{
			const char *name = dp_slot_unit_name(units->first + i);

			dp_builder_append_string(&b, NULL, 0, name, strlen(name));
		}
		dp_builder_end(&b);
	}
	for (int k = 0; k < fields->n; k++)
	{
		const DpBucketField *field = &fields->fields[k];
		const char *name = fields->n == 1 ? "values" : pnstrdup(field->name, field->namelen);

		/* the times represent it */
		if (times != NULL && fields->n > 1 && strcmp(name, DP_BUCKET_NAME_TIME) == 0)
			continue;
		if (times != NULL)
			append_level(&b, name, columns[k], times, 0, rows->count, keyed, units, 0, base);
		else
		{
			if (keyed)
				dp_builder_begin_document_field(&b, name, strlen(name));
			else
				dp_builder_begin_array_field(&b, name, strlen(name));
			for (int i = 0; i < rows->count; i++)
			{
				char key[16];

				if (columns[k][i].type != DP_TYPE_EOD)
					dp_builder_append_nested(&b, key, dp_index_name(i, key), &columns[k][i]);
				else if (!keyed)
					dp_builder_append_null(&b, NULL, 0);
			}
			dp_builder_end(&b);
		}
		dp_check_document_size(b.len - b.head);
	}
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

/*
 * Appends the slots of one level: the measurements [from, to), which are in the unit that begins at
 * base.
 */
static int
append_level(DpBuilder *b, const char *name, const DpValue *values, const int64 *times, int from,
			 int to, bool keyed, const DpSlotUnits *units, int level, int64 base)
{
	DpSlotUnit unit = units->first + level;
	int lowest = dp_slot_lowest(unit);
	int nslots = dp_slot_count(units, level, base);

	if (keyed)
		dp_builder_begin_document_field(b, name, strlen(name));
	else
		dp_builder_begin_array_field(b, name, strlen(name));
	for (int slot = lowest; slot < lowest + nslots; slot++)
	{
		int64 start = base + (slot - lowest) * dp_slot_width(unit);
		int64 until = start + dp_slot_width(unit);
		int next = from;
		const DpValue *found = NULL;
		char key[16];
		uint32 keylen;

		/* keyed: continue with the next slot that has a measurement */
		while (next < to && times[next] < until)
		{
			if (values[next].type != DP_TYPE_EOD)
			{
				if (found != NULL && level == units->n - 1)
					ereport(ERROR,
							(errcode(ERRCODE_CARDINALITY_VIOLATION),
							 errmsg("two measurements are in the same slot"),
							 errdetail("One %s has several measurements.", dp_slot_unit_name(unit)),
							 errhint("Use smaller units, or another layout.")));
				found = &values[next];
			}
			next++;
		}
		keylen = dp_index_name(slot, key);
		key[keylen] = '\0';
		if (level < units->n - 1)
		{
			if (found != NULL || !keyed)
				append_level(b, key, values, times, from, next, keyed, units, level + 1, start);
		}
		else if (found != NULL)
			dp_builder_append_nested(b, key, keylen, found);
		else if (!keyed)
			dp_builder_append_null(b, NULL, 0);
		from = next;
	}
	dp_builder_end(b);
	return from;
}

/* ---------------------------------------------------------------- templates */

/* Whether two documents have the same names of fields. */
static bool
same_fields(struct varlena *a, struct varlena *b)
{
	DpIter x;
	DpIter y;
	DpElement p;
	DpElement q;

	if (a == NULL || b == NULL)
		return a == b;
	dp_iter_init_varlena(&x, a);
	dp_iter_init_varlena(&y, b);
	while (dp_iter_next(&x, &p))
	{
		if (!dp_iter_next(&y, &q) || p.namelen != q.namelen ||
			memcmp(p.name, q.name, p.namelen) != 0)
			return false;
	}
	return !dp_iter_next(&y, &q);
}

/* A copy in the current context. */
static struct varlena *
copy_argument(struct varlena *argument)
{
	struct varlena *copy;

	if (argument == NULL)
		return NULL;
	copy = palloc(VARSIZE_ANY(argument));
	memcpy(copy, argument, VARSIZE_ANY(argument));
	return copy;
}

/* Compiles the template for groups with these fields, in the current context. */
static DpBucketDocument *
document_compile(struct varlena *template, struct varlena *group, ArrayType *names, bool exclusive,
				 bool of_documents)
{
	DpBucketDocumentDef def;
	DpValue spec;

	memset(&def, 0, sizeof(def));
	if (group != NULL)
	{
		uint32 n = dp_document_count(DP_DOC_DATA(group), DP_DOC_SIZE(group));
		const char **groups = palloc(Max(n, 1) * sizeof(char *));
		Oid *types = palloc(Max(n, 1) * sizeof(Oid));
		DpIter iter;
		DpElement element;

		dp_iter_init_varlena(&iter, group);
		while (dp_iter_next(&iter, &element))
		{
			groups[def.ngroups] = element.name;
			types[def.ngroups++] = dp_types()->bson_value;
		}
		def.groups = groups;
		def.group_types = types;
	}
	if (names != NULL)
	{
		Datum *values;
		bool *nulls;
		char **strings;

		deconstruct_array(names, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &def.nvalues);
		strings = palloc(Max(def.nvalues, 1) * sizeof(char *));
		for (int i = 0; i < def.nvalues; i++)
		{
			if (nulls[i])
				ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
								errmsg("the name of a column cannot be null")));
			strings[i] = TextDatumGetCString(values[i]);
		}
		def.values = (const char *const *) strings;
		def.values_known = !of_documents;
	}
	def.time = DP_BUCKET_NAME_TIME;
	def.end_exclusive = exclusive;
	if (template != NULL)
	{
		spec = dp_value_of_document(template);
		def.template = &spec;
	}
	return dp_bucket_document_compile(&def);
}

/*
 * bucket_document(bucket, template bson, group_fields bson, names text[],
 * since timestamptz, until timestamptz, end_date text) -> bson
 */
DP_FUNCTION(dp_bucket_document_sql);
Datum
dp_bucket_document_sql(PG_FUNCTION_ARGS)
{
	DocumentCache *cache = fcinfo->flinfo->fn_extra;
	struct varlena *template = PG_ARGISNULL(1) ? NULL : DP_GETARG_VARLENA(1);
	struct varlena *group = PG_ARGISNULL(2) ? NULL : DP_GETARG_VARLENA(2);
	struct varlena *names = PG_ARGISNULL(3) ? NULL : (struct varlena *) PG_GETARG_ARRAYTYPE_P(3);
	bool exclusive = false;
	DpBucketReader r;
	int64 start;
	int64 until;
	Datum *groups = NULL;
	bool *nulls = NULL;
	bool timeless;
	bool of_documents;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	dp_bucket_reader_init(&r, CurrentMemoryContext);
	dp_bucket_open(&r, PG_GETARG_DATUM(0));
	timeless = (r.flags & DP_BUCKET_TIMELESS) != 0;
	of_documents = r.ncolumns == 1 && dp_bucket_column(&r, 0)->kind == DP_PACKED_SPLIT_DOCUMENT;
	if (!PG_ARGISNULL(6))
	{
		char *end = text_to_cstring(PG_GETARG_TEXT_PP(6));

		exclusive = strcmp(end, "exclusive") == 0;
		if (!exclusive && strcmp(end, "inclusive") != 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("invalid end_date: \"%.100s\"", end),
							errhint("Use \"inclusive\" or \"exclusive\".")));
	}
	if (cache == NULL)
		cache = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(DocumentCache));
	if (cache->document == NULL || !dp_same_bytes(cache->template, template) ||
		!same_fields(cache->group, group) || !dp_same_bytes(cache->names, names) ||
		cache->exclusive != exclusive || cache->of_documents != of_documents)
	{
		MemoryContext old = cache->context;

		cache->document = NULL;
		cache->context = NULL;
		if (old != NULL)
			MemoryContextDelete(old);
		cache->context = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt,
											   "docpatterns bucket document", ALLOCSET_SMALL_SIZES);
		old = MemoryContextSwitchTo(cache->context);
		cache->template = copy_argument(template);
		cache->group = copy_argument(group);
		cache->names = copy_argument(names);
		cache->exclusive = exclusive;
		cache->of_documents = of_documents;
		cache->document = document_compile(cache->template, cache->group,
										   (ArrayType *) cache->names, exclusive, of_documents);
		MemoryContextSwitchTo(old);
	}

	if (group != NULL)
	{
		uint32 n = dp_document_count(DP_DOC_DATA(group), DP_DOC_SIZE(group));
		DpIter iter;
		DpElement element;
		int i = 0;

		groups = palloc(Max(n, 1) * sizeof(Datum));
		nulls = palloc0(Max(n, 1) * sizeof(bool));
		dp_iter_init_varlena(&iter, group);
		while (dp_iter_next(&iter, &element))
			groups[i++] = PointerGetDatum(dp_value_to_varlena(&element.value));
	}
	start = PG_ARGISNULL(4) ? r.first : PG_GETARG_TIMESTAMPTZ(4);
	/* if only the measurements determine the end, it is the last of them */
	until = !PG_ARGISNULL(5) ? PG_GETARG_TIMESTAMPTZ(5) : exclusive ? r.last : r.last + 1;
	if (!timeless && (TIMESTAMP_NOT_FINITE(start) || TIMESTAMP_NOT_FINITE(until)))
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
						errmsg("bucket span must not be infinite")));
	PG_RETURN_POINTER(dp_bucket_document_build(cache->document, PG_GETARG_DATUM(0), groups, nulls,
											   timeless ? NULL : &start, timeless ? NULL : &until));
}
