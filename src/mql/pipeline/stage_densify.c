/*
 * stage_densify.c
 *		$densify: documents for the gaps between values.
 *
 * Window functions give each document the value before it; docpatterns._densify() makes the
 * documents of the gap between both.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "bson/compare.h"
#include "bson/edit.h"
#include "mql/collection_calls.h"
#include "mql/error.h"
#include "mql/expression_date.h"
#include "mql/pipeline/pipeline.h"
#include "mql/spec.h"

/* The most documents that a stage makes, as in MongoDB */
#define MAX_MADE 500000

typedef enum Bounds
{
	BOUNDS_FULL,
	BOUNDS_PARTITION,
	BOUNDS_EXPLICIT
} Bounds;

typedef struct Densify
{
	const char *field;
	DpPath *path;
	List *partition_fields; /* const char * */
	List *partition_paths;  /* DpPath * */
	DpValue step;
	int64 step_units; /* with a unit */
	int unit;         /* -1: numbers */
	Bounds bounds;
	DpValue low;
	DpValue high;
} Densify;

static Densify *densify_parse(const DpValue *spec, const DpLocation *location);
static void parse_range(Densify *d, const DpValue *range, const DpLocation *location);
static void parse_bounds(Densify *d, const DpValue *bounds, const DpLocation *location);

/* ---------------------------------------------------------------- specification */

static Densify *
densify_parse(const DpValue *spec, const DpLocation *location)
{
	Densify *d = palloc0(sizeof(Densify));
	struct
	{
		DpOption field, range, fields;
	} o;
	const DpValue *fields = &o.fields.value;
	DpIter iter;
	DpValue field;
	ListCell *lc;

	dp_stage_options(spec, location, "$densify", "field range ?partitionByFields", &o);
	d->field = dp_stage_string(&o.field.value, &o.field.location);
	dp_stage_check_field(d->field, &o.field.location);
	d->path = dp_path_of_field(d->field);
	parse_range(d, &o.range.value, &o.range.location);
	if (dp_option_given(&o.fields) && fields->type != DP_TYPE_ARRAY)
		dp_bad_spec_type(&o.fields.location, "an array of fields", fields);
	if (dp_option_given(&o.fields))
	{
		dp_iter_init_value(&iter, fields);
		while (dp_iter_next_value(&iter, &field))
		{
			char *name = pstrdup(dp_stage_string(&field, &o.fields.location));

			dp_stage_check_field(name, &o.fields.location);
			d->partition_fields = lappend(d->partition_fields, name);
			d->partition_paths = lappend(d->partition_paths, dp_path_of_field(name));
		}
	}
	foreach(lc, d->partition_fields)
	{
		const char *name = lfirst(lc);
		Size len = Min(strlen(name), strlen(d->field));

		if (strncmp(name, d->field, len) == 0 && (name[len] == '\0' || name[len] == '.') &&
			(d->field[len] == '\0' || d->field[len] == '.'))
			dp_bad_spec(location, "field \"%s\" must not be among partitionByFields", d->field);
	}
	if (d->bounds == BOUNDS_PARTITION && d->partition_fields == NIL)
		dp_bad_spec(location, "bounds \"partition\" need partitionByFields");
	return d;
}

static void
parse_range(Densify *d, const DpValue *range, const DpLocation *location)
{
	struct
	{
		DpOption step, bounds, unit;
	} o;

	dp_stage_options(range, location, "range", "step bounds ?unit", &o);
	d->step = o.step.value;
	if (!dp_type_is_number(d->step.type) || !(dp_number_to_double(&d->step) > 0) ||
		isinf(dp_number_to_double(&d->step)))
		dp_bad_spec(&o.step.location, "step must be a number greater than 0");
	d->unit = -1;
	if (dp_option_given(&o.unit))
	{
		const char *unit = dp_stage_string(&o.unit.value, &o.unit.location);

		d->unit = dp_date_unit(unit);
		if (d->unit < 0)
			dp_bad_spec(&o.unit.location, "there is no unit \"%.100s\"", unit);
		if (!dp_value_to_whole(&d->step, &d->step_units))
			dp_bad_spec(location, "step must be a whole number if there is a unit");
	}
	parse_bounds(d, &o.bounds.value, location);
}

static void
parse_bounds(Densify *d, const DpValue *bounds, const DpLocation *location)
{
	DpIter iter;

	if (bounds->type == DP_TYPE_ARRAY && dp_array_count(bounds->data, bounds->len) == 2)
	{
		d->bounds = BOUNDS_EXPLICIT;
		dp_iter_init_value(&iter, bounds);
		(void) dp_iter_next_value(&iter, &d->low);
		(void) dp_iter_next_value(&iter, &d->high);
		if (d->unit < 0 ? !dp_type_is_number(d->low.type) || !dp_type_is_number(d->high.type)
						: d->low.type != DP_TYPE_DATE || d->high.type != DP_TYPE_DATE)
			dp_bad_spec(location, "bounds must be two %s", d->unit < 0 ? "numbers" : "dates");
		if (dp_value_compare(&d->low, &d->high) > 0)
			dp_bad_spec(location, "the lower bound must not be greater than the upper one");
	}
	else if (bounds->type != DP_TYPE_STRING)
		dp_bad_spec(location, "bounds must be \"full\", \"partition\" or an array of two values");
	else if (strcmp(dp_stage_string(bounds, location), "full") == 0)
		d->bounds = BOUNDS_FULL;
	else if (strcmp(dp_stage_string(bounds, location), "partition") == 0)
		d->bounds = BOUNDS_PARTITION;
	else
		dp_bad_spec(location, "bounds must be \"full\", \"partition\" or an array of two values");
}

/* ---------------------------------------------------------------- SQL */

void
dp_stage_densify(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	Densify *d = densify_parse(spec, location);
	StringInfoData columns;
	StringInfoData window;
	const char *alias;
	const char *rows;
	ListCell *lc;

	dp_query_before_where(q);
	q->order = NULL;
	initStringInfo(&columns);
	appendStringInfo(&columns, "docpatterns._densify_value(%s, %s) AS value",
					 dp_query_field(q, d->field, location), d->unit < 0 ? "false" : "true");
	alias = dp_query_nest_with(q, columns.data);

	initStringInfo(&window);
	foreach(lc, d->partition_fields)
		appendStringInfo(&window, "%s%s", window.len == 0 ? "PARTITION BY " : ", ",
						 dp_query_key_of(q, dp_query_field(q, lfirst(lc), location)));
	appendStringInfo(&window, "%sORDER BY %s.value NULLS FIRST", window.len > 0 ? " " : "", alias);
	q->window = window.data;
	resetStringInfo(&columns);
	appendStringInfo(&columns,
					 "pg_catalog.row_number() OVER () AS n, %s.value, "
					 "pg_catalog.lag(%s.value) OVER w AS before, "
					 "pg_catalog.lead(1) OVER w IS NULL AS is_last",
					 alias, alias);
	if (d->bounds == BOUNDS_PARTITION)
		appendStringInfo(&columns,
						 ", %s.min(%s.value) OVER (w ROWS UNBOUNDED PRECEDING) AS low, "
						 "NULL::%s.bson_value AS high",
						 q->pipeline->own, alias, q->pipeline->own);
	else if (d->bounds == BOUNDS_FULL)
		appendStringInfo(&columns,
						 ", %s.min(%s.value) OVER () AS low, %s.max(%s.value) OVER () AS high",
						 q->pipeline->own, alias, q->pipeline->own, alias);
	else
		appendStringInfo(&columns, ", %s AS low, %s AS high", dp_sql_value(&d->low),
						 dp_sql_value(&d->high));
	rows = dp_query_nest_with(q, columns.data);

	/* explicit bounds have documents even if there are no rows */
	if (d->bounds == BOUNDS_EXPLICIT && d->partition_fields == NIL)
	{
		char *from = q->from.data;

		initStringInfo(&q->from);
		appendStringInfo(&q->from, "(VALUES (0)) AS %s (n) LEFT JOIN %s ON true",
						 dp_query_alias(q, "one"), from);
	}
	alias = dp_query_alias(q, "d");
	appendStringInfo(&q->from,
					 " CROSS JOIN LATERAL docpatterns._densify(%s.doc, %s, %s.n, %s.value, "
					 "%s.before, %s.is_last, %s.low, %s.high) AS %s (doc)",
					 rows, dp_sql_document(spec), rows, rows, rows, rows, rows, rows, alias);
	q->doc = psprintf("%s.doc", alias);
	q->computed = false;
	q->ordered = true;
}

/* ---------------------------------------------------------------- functions */

/* _densify_value(value bson_value, is_date boolean) -> bson_value: NULL for null. */
DP_FUNCTION(dp_pipeline_densify_value);
Datum
dp_pipeline_densify_value(PG_FUNCTION_ARGS)
{
	bool is_date = PG_GETARG_BOOL(1);
	DpValue v = dp_value_of_varlena(DP_GETARG_VARLENA(0));

	if (v.type == DP_TYPE_NULL || v.type == DP_TYPE_UNDEFINED)
		PG_RETURN_NULL();
	if (is_date ? v.type != DP_TYPE_DATE : !dp_type_is_number(v.type))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("field of $densify must be a %s, not %s",
							   is_date ? "date" : "number", dp_type_name(v.type))));
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

typedef struct DensifyState
{
	DpSpecCache spec;
	int64 made; /* documents of this run of the stage */
} DensifyState;

/* The documents of a gap */
typedef struct Gap
{
	const Densify *d;
	ReturnSetInfo *result;
	const DpValue *template; /* has the fields of the partition; NULL: none */
	DpValue base;
	int64 *made;
	MemoryContext scratch;
} Gap;

static void *densify_compile(const DpValue *spec, void *arg);
static bool value_at(const Gap *gap, int64 k, DpValue *v);
static int64 first_at(const Gap *gap, const DpValue *v, bool behind);
static void too_many(void) pg_attribute_noreturn();
static void make(Gap *gap, int64 from, int64 until);
static bool bson_value_arg(FunctionCallInfo fcinfo, int i, DpValue *v);

/*
 * _densify(doc bson, spec bson, n bigint, value, before bson_value, is_last boolean, low, high
 * bson_value) -> setof bson: documents of the values between before and value, the document, and
 * behind the last one those up to high.  n is 1 for the first row of the stage; doc is NULL if
 * there are no rows.
 */
DP_FUNCTION(dp_pipeline_densify);
Datum
dp_pipeline_densify(PG_FUNCTION_ARGS)
{
	DensifyState *state = fcinfo->flinfo->fn_extra;
	bool has_doc = !PG_ARGISNULL(0);
	bool is_last = PG_ARGISNULL(5) || PG_GETARG_BOOL(5);
	DpValue doc;
	DpValue value;
	DpValue before;
	DpValue high;
	bool has_value;
	bool has_before;
	int64 k = 0;
	Gap gap = { 0 };

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(1))
		return (Datum) 0;
	if (state == NULL)
		state = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(DensifyState));
	gap.d = dp_spec_cached(&state->spec, fcinfo, 1, densify_compile, NULL);
	if (PG_ARGISNULL(2) || PG_GETARG_INT64(2) == 1)
		state->made = 0;
	gap.made = &state->made;
	gap.result = (ReturnSetInfo *) fcinfo->resultinfo;
	gap.scratch =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns $densify", ALLOCSET_DEFAULT_SIZES);
	if (has_doc)
	{
		doc = dp_value_of_document(DP_GETARG_VARLENA(0));
		gap.template = &doc;
	}
	has_value = bson_value_arg(fcinfo, 3, &value);
	has_before = bson_value_arg(fcinfo, 4, &before);
	if (gap.d->bounds == BOUNDS_EXPLICIT)
		gap.base = gap.d->low;
	else
		(void) bson_value_arg(fcinfo, 6, &gap.base);

	if (has_value)
	{
		int64 until = first_at(&gap, &value, false);

		if (has_before)
			k = first_at(&gap, &before, true);
		if (gap.d->bounds == BOUNDS_EXPLICIT)
			until = Min(until, first_at(&gap, &gap.d->high, false));
		make(&gap, k, until);
	}
	if (has_doc)
	{
		Datum d = PG_GETARG_DATUM(0);
		bool isnull = false;

		tuplestore_putvalues(gap.result->setResult, gap.result->setDesc, &d, &isnull);
	}
	if (is_last && gap.d->bounds != BOUNDS_PARTITION &&
		(has_value || (gap.d->bounds == BOUNDS_EXPLICIT && gap.d->partition_fields == NIL)))
	{
		bool explicit = gap.d->bounds == BOUNDS_EXPLICIT;

		k = has_value ? first_at(&gap, &value, true) : 0;
		if (explicit)
			high = gap.d->high;
		else
			(void) bson_value_arg(fcinfo, 7, &high);
		make(&gap, k, first_at(&gap, &high, !explicit));
	}
	MemoryContextDelete(gap.scratch);
	return (Datum) 0;
}

static void *
densify_compile(const DpValue *spec, void *arg)
{
	return densify_parse(spec, NULL);
}

static bool
bson_value_arg(FunctionCallInfo fcinfo, int i, DpValue *v)
{
	if (PG_ARGISNULL(i))
		return false;
	*v = dp_value_of_varlena(DP_GETARG_VARLENA(i));
	return true;
}

/* The base and k steps; false if that is out of range. */
static bool
value_at(const Gap *gap, int64 k, DpValue *v)
{
	const DpValue *step = &gap->d->step;
	DpZone utc = { NULL, 0 };
	DpValue distance;
	DpSum sum;
	int64 n;

	if (gap->d->unit >= 0)
	{
		if (pg_mul_s64_overflow(k, gap->d->step_units, &n) ||
			!dp_date_add(dp_get_int64(gap->base.data), gap->d->unit, n, &utc, &n))
			return false;
		return dp_result_date(v, n);
	}
	if (step->type == DP_TYPE_INT32 || step->type == DP_TYPE_INT64)
	{
		(void) dp_value_to_whole(step, &n);
		if (pg_mul_s64_overflow(k, n, &n))
			return false;
		if (step->type == DP_TYPE_INT64)
			(void) dp_result_int64(&distance, n);
		else
			(void) dp_result_integer(&distance, n);
	}
	else if (step->type == DP_TYPE_DOUBLE)
		(void) dp_result_double(&distance, k * dp_number_to_double(step));
	else
	{
		uint8 times[DP_DECIMAL128_SIZE];

		(void) dp_result_int64(&distance, k);
		dp_number_to_decimal(&distance, times);
		dp_decimal_combine(DP_DECIMAL_MULTIPLY, times, step->data, times);
		(void) dp_result_decimal(&distance, times);
	}
	dp_sum_init(&sum);
	dp_sum_add(&sum, &gap->base);
	dp_sum_add(&sum, &distance);
	return dp_result_sum(v, &sum);
}

static void
too_many(void)
{
	ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					errmsg("$densify must not make more than %d documents", MAX_MADE)));
}

/* The first k, from 0, whose value is not less than (or behind) a value; found by halving. */
static int64
first_at(const Gap *gap, const DpValue *v, bool behind)
{
	MemoryContext old = MemoryContextSwitchTo(gap->scratch);
	int64 low = -1; /* is before it */
	int64 high = 1;
	DpValue candidate;

#define IS_BEFORE(k)                                                                               \
	(value_at(gap, k, &candidate) && dp_value_compare(&candidate, v) < (behind ? 1 : 0))

	while (IS_BEFORE(high))
	{
		low = high;
		if (high > PG_INT64_MAX / 2)
			too_many();
		high *= 2;
	}
	while (high - low > 1)
	{
		int64 middle = low + (high - low) / 2;

		if (IS_BEFORE(middle))
			low = middle;
		else
			high = middle;
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(gap->scratch);
	return high;
}

/* Makes documents. */
static void
make(Gap *gap, int64 from, int64 until)
{
	struct varlena *frame = NULL;
	DpValue empty = { dp_empty_document, DP_DOCUMENT_MIN_SIZE, DP_TYPE_DOCUMENT };
	DpValue doc = empty;
	ListCell *lc;

	if (from >= until)
		return;
	if (until - from > MAX_MADE - *gap->made)
		too_many();
	*gap->made += until - from;
	foreach(lc, gap->d->partition_paths)
	{
		DpValue part;

		if (gap->template == NULL ||
			!dp_path_find(gap->template->data, gap->template->len, lfirst(lc), &part))
			continue;
		frame = dp_document_set(doc.data, doc.len, lfirst(lc), &part);
		doc = dp_value_of_document(frame);
	}
	for (int64 k = from; k < until; k++)
	{
		MemoryContext old = MemoryContextSwitchTo(gap->scratch);
		bool isnull = false;
		DpValue v;
		Datum made;

		CHECK_FOR_INTERRUPTS();
		if (!value_at(gap, k, &v))
			ereport(ERROR, (errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
							errmsg("value of $densify is out of range")));
		made = PointerGetDatum(dp_document_set(doc.data, doc.len, gap->d->path, &v));
		tuplestore_putvalues(gap->result->setResult, gap->result->setDesc, &made, &isnull);
		MemoryContextSwitchTo(old);
		MemoryContextReset(gap->scratch);
	}
}
