/*
 * stage_window.c
 *		$setWindowFields and $fill: window functions.
 *
 * All outputs of a stage have one window, w, so that PostgreSQL sorts once.  Those with the same
 * frame are computed together.  Their values become variables of a $set.
 */
#include "postgres.h"

#include <math.h>

#include "utils/builtins.h"

#include "bson/compare.h"
#include "mql/expression_date.h"
#include "mql/pipeline/pipeline.h"
#include "mql/pipeline/window.h"
#include "mql/sort_key.h"

/* A frame, and the accumulators over it */
typedef struct Frame
{
	const char *sql;
	bool may_be_empty;
	DpBuilder totals;
} Frame;

typedef struct Windows
{
	DpQuery *q;
	DpValue sort;
	int nsort;
	const char *sort_field; /* of the first field of the sort */
	bool ascending;
	bool sort_given;
	const char *sort_value; /* SQL: numbers or dates, by which the window is sorted; or NULL */
	bool one_kind;          /* only numbers or only dates */
	List *frames;           /* Frame * */
	StringInfoData values;  /* SQL of a document */
	int nvalues;
	DpBuilder set;
} Windows;

/* One output */
typedef struct Output
{
	Windows *w;
	const char *op;
	DpValue arg;
	DpLocation location;
	DpValue window; /* DP_TYPE_EOD: none */
	DpLocation window_location;
	const char *frame;
	bool may_be_empty;
	const char *variable;
} Output;

typedef void (*AddOutput)(Output *o);

static void add_rank(Output *o);
static void add_shift(Output *o);
static void add_derivative(Output *o);
static void add_integral(Output *o);
static void add_moving_average(Output *o);
static void add_covariance(Output *o);
static void add_linear_fill(Output *o);
static void add_locf(Output *o);

/* What only windows have */
static const struct
{
	const char *name;
	AddOutput add;
	bool framed; /* may have a frame */
} functions[] = {
	{ "$rank", add_rank, false },
	{ "$denseRank", add_rank, false },
	{ "$documentNumber", add_rank, false },
	{ "$shift", add_shift, false },
	{ "$derivative", add_derivative, true },
	{ "$integral", add_integral, true },
	{ "$expMovingAvg", add_moving_average, false },
	{ "$covariancePop", add_covariance, true },
	{ "$covarianceSamp", add_covariance, true },
	{ "$linearFill", add_linear_fill, false },
	{ "$locf", add_locf, false },
};

#define WHOLE "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
#define SO_FAR "ROWS UNBOUNDED PRECEDING"

static void parse_sort(Windows *w, const DpValue *sort, const DpLocation *location);
static void add_output(Windows *w, const DpElement *field, const DpLocation *location);
static void parse_frame(Output *o);
static void add_accumulator(Output *o);

void
dp_stage_window(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	Windows w = { .q = q };
	struct
	{
		DpOption output, sort, partition;
	} o;
	DpIter iter;
	DpElement e;
	StringInfoData window;
	DpValue stages;
	ListCell *lc;

	dp_stage_options(spec, location, "$setWindowFields", "output ?sortBy ?partitionBy", &o);
	dp_stage_document(&o.output.value, &o.output.location);
	if (dp_option_given(&o.sort))
		parse_sort(&w, &o.sort.value, &o.sort.location);

	dp_query_before_where(q);
	if (q->order != NULL)
		dp_query_nest(q);
	initStringInfo(&w.values);
	dp_builder_init(&w.set, 256);
	dp_builder_begin_array(&w.set);
	dp_builder_begin_document_field(&w.set, NULL, 0);
	dp_builder_begin_document_field(&w.set, "$set", 4);
	dp_iter_init_value(&iter, &o.output.value);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(&o.output.location, &e);

		add_output(&w, &e, &inner);
	}
	if (o.output.value.len == DP_DOCUMENT_MIN_SIZE)
		return;

	initStringInfo(&window);
	if (dp_option_given(&o.partition) && o.partition.value.type != DP_TYPE_NULL)
		appendStringInfo(&window, "PARTITION BY %s",
						 dp_query_key_of(q, psprintf("docpatterns._partition(%s)",
													 dp_query_eval(q, &o.partition.value,
																   &o.partition.location))));
	if (w.nsort > 0)
	{
		appendStringInfo(&window, "%sORDER BY ", window.len > 0 ? " " : "");
		if (w.sort_value != NULL)
			appendStringInfo(&window, "%s%s", w.sort_value, w.ascending ? "" : " DESC");
		else
			appendStringInfoString(&window, dp_query_sort_key(q, &w.sort));
	}

	foreach(lc, w.frames)
	{
		Frame *f = lfirst(lc);
		DpValue totals;
		char *fields;

		dp_builder_end(&f->totals);
		totals = dp_builder_view(&f->totals, DP_TYPE_DOCUMENT);
		dp_stage_check_totals(q, &totals, &o.output.location);
		fields = psprintf("%s, %s", dp_sql_document(&totals), dp_query_let(q));
		if (w.values.len > 0)
			appendStringInfo(&w.values, " OPERATOR(%s.||) ", q->pipeline->own);
		appendStringInfo(&w.values, "%sdocpatterns._accumulate(%s, %s) OVER (w %s)",
						 f->may_be_empty ? "coalesce(" : "", q->doc, fields, f->sql);
		if (f->may_be_empty)
			appendStringInfo(&w.values, ", docpatterns._accumulate_none(%s))", fields);
	}
	dp_builder_end(&w.set);
	dp_builder_end(&w.set);
	dp_builder_end(&w.set);
	stages = dp_builder_view(&w.set, DP_TYPE_ARRAY);
	q->window = window.data;
	dp_query_set_doc(q, psprintf("docpatterns._update(%s, %s, %s)", q->doc, dp_sql_value(&stages),
								 w.values.data));
}

/* A sort of no fields is none; but it counts as given. */
static void
parse_sort(Windows *w, const DpValue *sort, const DpLocation *location)
{
	DpIter iter;
	DpElement e;

	if (sort->type == DP_TYPE_NULL)
		return;
	dp_stage_document(sort, location);
	w->sort = *sort;
	w->sort_given = true;
	dp_iter_init_value(&iter, sort);
	while (dp_iter_next(&iter, &e))
		if (w->nsort++ == 0)
		{
			int64 direction;

			w->sort_field = e.name;
			w->ascending = dp_value_to_whole(&e.value, &direction) && direction > 0;
		}
	if (w->nsort > 0)
		(void) dp_sort_spec_compile(sort);
}

/* Adds the window function of a field. */
static void
add_output(Windows *w, const DpElement *field, const DpLocation *location)
{
	Output o = { .w = w, .window.type = DP_TYPE_EOD, .frame = WHOLE };
	DpIter iter;
	DpElement e;

	dp_stage_check_field(field->name, location);
	dp_stage_document(&field->value, location);
	dp_iter_init_value(&iter, &field->value);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(location, &e);

		if (strcmp(e.name, "window") == 0)
		{
			dp_stage_document(&e.value, &inner);
			o.window = e.value;
			o.window_location = inner;
		}
		else if (o.op != NULL || e.name[0] != '$')
			dp_bad_spec(&inner, "an output has one function and a window");
		else
		{
			o.op = e.name;
			o.arg = e.value;
			o.location = inner;
		}
	}
	if (o.op == NULL)
		dp_bad_spec(location, "an output must have a function");
	if (o.window.type != DP_TYPE_EOD)
		parse_frame(&o);

	/* a name that variables can have, or a number */
	if (field->name[0] >= 'a' && field->name[0] <= 'z' && strncmp(field->name, "value", 5) != 0 &&
		strspn(field->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
			field->namelen)
		o.variable = field->name;
	else
		o.variable = dp_query_alias(w->q, "value");
	{
		char *reference = psprintf("$$%s", o.variable);

		dp_builder_append_string(&w->set, field->name, field->namelen, reference,
								 strlen(reference));
	}
	for (int i = 0; i < lengthof(functions); i++)
		if (strcmp(functions[i].name, o.op) == 0)
		{
			if (o.window.type != DP_TYPE_EOD && !functions[i].framed)
				dp_bad_spec(&o.window_location, "%s must not have a window", o.op);
			functions[i].add(&o);
			return;
		}
	add_accumulator(&o);
}

/* ---------------------------------------------------------------- frames */

/* A bound of a frame */
typedef struct Bound
{
	bool unbounded;
	DpValue number; /* "current" is 0 */
} Bound;

static void parse_bound(const DpValue *v, const DpLocation *location, Bound *bound);
static void check_bound(Output *o, const Bound *bound, bool documents, const char *unit);
static char *bound_sql(const Bound *bound, bool documents, const char *unit, bool lower);
static int bound_sign(const Bound *bound, bool lower);
static void sort_by_value(Output *o, const char *unit);
static const char *sort_value(Output *o, const char *kind);

static void
parse_frame(Output *o)
{
	struct
	{
		DpOption documents, range, unit;
	} given;
	const DpOption *bounds;
	bool documents;
	const char *unit = NULL;
	Bound lower;
	Bound upper;
	DpIter iter;
	DpValue v;

	dp_stage_options(&o->window, &o->window_location, "a window", "?documents ?range ?unit",
					 &given);
	documents = dp_option_given(&given.documents);
	if (documents && dp_option_given(&given.range))
		dp_bad_spec(&o->window_location, "a window must not have both documents and range");
	if (dp_option_given(&given.unit))
	{
		unit = dp_stage_string(&given.unit.value, &given.unit.location);
		if (dp_date_unit(unit) < 0)
			dp_bad_spec(&given.unit.location, "there is no unit \"%.100s\"", unit);
		if (!dp_option_given(&given.range))
			dp_bad_spec(&o->window_location, "a window must not have a unit without a range");
	}
	bounds = documents ? &given.documents : &given.range;
	if (!dp_option_given(bounds))
		return;
	if (bounds->value.type != DP_TYPE_ARRAY ||
		dp_array_count(bounds->value.data, bounds->value.len) != 2)
		dp_bad_spec(&bounds->location, "a window must have an array of two bounds");
	dp_iter_init_value(&iter, &bounds->value);
	(void) dp_iter_next_value(&iter, &v);
	parse_bound(&v, &o->window_location, &lower);
	(void) dp_iter_next_value(&iter, &v);
	parse_bound(&v, &o->window_location, &upper);
	check_bound(o, &lower, documents, unit);
	check_bound(o, &upper, documents, unit);
	if (!lower.unbounded && !upper.unbounded && dp_value_compare(&lower.number, &upper.number) > 0)
		dp_bad_spec(&o->window_location,
					"the lower bound of a window must not be greater than the upper one");
	if (!documents)
		sort_by_value(o, unit);
	else if (!o->w->sort_given && !(lower.unbounded && upper.unbounded))
		dp_bad_spec(&o->window_location, "a window with bounds needs sortBy");
	o->frame = psprintf("%s BETWEEN %s AND %s", documents ? "ROWS" : "RANGE",
						bound_sql(&lower, documents, unit, true),
						bound_sql(&upper, documents, unit, false));
	o->may_be_empty = bound_sign(&lower, true) > 0 || bound_sign(&upper, false) < 0;
}

static void
parse_bound(const DpValue *v, const DpLocation *location, Bound *bound)
{
	static const uint8 zero[4];

	bound->unbounded = false;
	if (v->type == DP_TYPE_STRING && strcmp((const char *) v->data + 4, "unbounded") == 0)
		bound->unbounded = true;
	else if (v->type == DP_TYPE_STRING && strcmp((const char *) v->data + 4, "current") == 0)
		bound->number = (DpValue){ zero, sizeof(zero), DP_TYPE_INT32 };
	else if (dp_type_is_number(v->type) && !isnan(dp_number_to_double(v)))
		bound->number = *v;
	else
		dp_bad_spec(location, "a bound of a window must be a number, \"unbounded\" or \"current\"");
}

static void
check_bound(Output *o, const Bound *bound, bool documents, const char *unit)
{
	int64 n;

	if ((documents || unit != NULL) && !bound->unbounded && !dp_value_to_whole(&bound->number, &n))
		dp_bad_spec(&o->window_location, "a bound of %s must be a whole number",
					documents ? "documents" : "a range with a unit");
}

/* -1, 0 or 1; of an unbounded one the side where it is. */
static int
bound_sign(const Bound *bound, bool lower)
{
	static const uint8 bytes[4];
	DpValue zero = { bytes, sizeof(bytes), DP_TYPE_INT32 };

	if (bound->unbounded)
		return lower ? -1 : 1;
	return dp_value_compare(&bound->number, &zero);
}

static char *
bound_sql(const Bound *bound, bool documents, const char *unit, bool lower)
{
	int sign = bound_sign(bound, lower);
	const char *side = sign < 0 ? "PRECEDING" : "FOLLOWING";
	DpValue distance;
	int64 n = 0;

	if (bound->unbounded)
		return psprintf("UNBOUNDED %s", side);
	if (sign == 0)
		return "CURRENT ROW";
	if (documents || unit != NULL)
	{
		(void) dp_value_to_whole(&bound->number, &n);
		n = n == PG_INT64_MIN ? PG_INT64_MAX : llabs(n);
	}
	if (documents)
		return psprintf(INT64_FORMAT " %s", n, side);
	if (unit != NULL)
	{
		DpBuilder b;

		dp_builder_init(&b, 64);
		dp_builder_begin_document(&b);
		dp_builder_append_string(&b, "unit", 4, unit, strlen(unit));
		if (n <= PG_INT32_MAX)
			dp_builder_append_int32(&b, "amount", 6, (int32) n);
		else
			dp_builder_append_int64(&b, "amount", 6, n);
		dp_builder_end(&b);
		distance = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	}
	else if (sign < 0)
		dp_window_negate(&bound->number, &distance);
	else
		distance = bound->number;
	return psprintf("%s %s", dp_sql_value(&distance), side);
}

/* A range needs numbers or, with a unit, dates. */
static void
sort_by_value(Output *o, const char *unit)
{
	if (o->w->nsort != 1 || !o->w->ascending)
		dp_bad_spec(&o->location, "a range needs sortBy with one ascending field");
	(void) sort_value(o, unit == NULL ? "a number" : "a date");
}

/*
 * SQL of the value of the only field of sortBy, which sorts the window.  It must be of a kind;
 * NULL: a number or a date.
 */
static const char *
sort_value(Output *o, const char *kind)
{
	Windows *w = o->w;

	if (!w->one_kind)
		w->sort_value = psprintf("docpatterns._window_key(%s, '%s')",
								 dp_query_field(w->q, w->sort_field, &o->location),
								 kind == NULL ? "a number or a date" : kind);
	w->one_kind = w->one_kind || kind != NULL;
	return w->sort_value;
}

/* ---------------------------------------------------------------- functions */

static void add_value(Output *o, const char *sql);
static char *known_value(Output *o, const DpValue *expression);
static void parse_rate(Output *o, const char **x, char **y, int64 *unit);

static void
add_value(Output *o, const char *sql)
{
	StringInfo values = &o->w->values;
	const char *own = o->w->q->pipeline->own;

	/* functions have at most 100 arguments */
	if (o->w->nvalues++ % 40 > 0)
	{
		values->data[--values->len] = '\0';
		appendStringInfoString(values, ", ");
	}
	else
		appendStringInfo(values, "%s%s.bson_build(",
						 values->len > 0 ? psprintf(" OPERATOR(%s.||) ", own) : "", own);
	appendStringInfo(values, "%s::pg_catalog.text, %s)", quote_literal_cstr(o->variable), sql);
}

/* SQL of an expression, NULL if it is missing or null. */
static char *
known_value(Output *o, const DpValue *expression)
{
	DpBuilder b;
	DpValue if_null;

	dp_builder_init(&b, expression->len + 64);
	dp_builder_begin_document(&b);
	dp_builder_begin_array_field(&b, "$ifNull", 7);
	dp_builder_append_value(&b, NULL, 0, expression);
	dp_builder_append_string(&b, NULL, 0, "$$REMOVE", 8);
	dp_builder_end(&b);
	dp_builder_end(&b);
	if_null = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	return dp_query_eval(o->w->q, &if_null, &o->location);
}

static void
add_rank(Output *o)
{
	const char *function = strcmp(o->op, "$rank") == 0        ? "rank"
						   : strcmp(o->op, "$denseRank") == 0 ? "dense_rank"
															  : "row_number";

	if (o->arg.type != DP_TYPE_DOCUMENT || o->arg.len != DP_DOCUMENT_MIN_SIZE)
		dp_bad_spec(&o->location, "%s must have an empty document", o->op);
	if (o->w->nsort != 1)
		dp_bad_spec(&o->location, "%s needs sortBy with one field", o->op);
	add_value(o, psprintf("docpatterns._int(pg_catalog.%s() OVER w)", function));
}

static void
add_shift(Output *o)
{
	static const uint8 none[1];
	DpValue other = { none, 0, DP_TYPE_NULL };
	int64 by;
	struct
	{
		DpOption output, by, other;
	} given;

	dp_stage_options(&o->arg, &o->location, "$shift", "output by ?default", &given);
	by = dp_stage_number(&given.by.value, -PG_INT32_MAX, &given.by.location);
	if (by > PG_INT32_MAX)
		dp_bad_spec(&given.by.location, "by must not be greater than %d", PG_INT32_MAX);
	if (dp_option_given(&given.other))
		other = dp_stage_constant(o->w->q, &given.other.value, &given.other.location);
	if (o->w->nsort == 0)
		dp_bad_spec(&o->location, "$shift needs sortBy");
	add_value(o, psprintf("pg_catalog.%s(%s, " INT64_FORMAT ", %s) OVER w", by > 0 ? "lead" : "lag",
						  dp_query_eval(o->w->q, &given.output.value, &o->location),
						  (int64) llabs(by), dp_sql_value(&other)));
}

/* Input and unit: SQL of the sort's value, the input and the unit in milliseconds, or 1. */
static void
parse_rate(Output *o, const char **x, char **y, int64 *unit)
{
	struct
	{
		DpOption input, unit;
	} given;

	dp_stage_options(&o->arg, &o->location, o->op, "input ?unit", &given);
	*unit = 1;
	if (dp_option_given(&given.unit))
	{
		const char *name = dp_stage_string(&given.unit.value, &given.unit.location);

		if (dp_date_unit(name) < 0 || (*unit = dp_date_unit_ms(dp_date_unit(name))) == 0)
			dp_bad_spec(&given.unit.location,
						"unit must be week, day, hour, minute, second or millisecond");
	}
	if (o->w->nsort != 1 || !o->w->ascending)
		dp_bad_spec(&o->location, "%s needs sortBy with one ascending field", o->op);
	*x = sort_value(o, dp_option_given(&given.unit) ? "a date" : "a number");
	*y = dp_query_eval(o->w->q, &given.input.value, &o->location);
}

static void
add_derivative(Output *o)
{
	const char *x;
	char *y;
	int64 unit;
	char *over = psprintf("OVER (w %s)", o->frame);

	if (o->window.type == DP_TYPE_EOD)
		dp_bad_spec(&o->location, "$derivative needs a window");
	parse_rate(o, &x, &y, &unit);
	add_value(o, psprintf("docpatterns._derivative(pg_catalog.first_value(%s) %s, "
						  "pg_catalog.first_value(%s) %s, pg_catalog.last_value(%s) %s, "
						  "pg_catalog.last_value(%s) %s, " INT64_FORMAT ")",
						  x, over, y, over, x, over, y, over, unit));
}

static void
add_integral(Output *o)
{
	const char *x;
	char *y;
	int64 unit;

	parse_rate(o, &x, &y, &unit);
	add_value(o, psprintf("docpatterns._integral(%s, %s, " INT64_FORMAT ") OVER (w %s)", x, y, unit,
						  o->frame));
}

static void
add_moving_average(Output *o)
{
	uint8 alpha[DP_DECIMAL128_SIZE];
	DpValue value = { alpha, sizeof(alpha), DP_TYPE_DECIMAL128 };
	struct
	{
		DpOption input, n, alpha;
	} given;

	dp_stage_options(&o->arg, &o->location, "$expMovingAvg", "input ?N ?alpha", &given);
	if (dp_option_given(&given.n) == dp_option_given(&given.alpha))
		dp_bad_spec(&o->location, "$expMovingAvg must have either N or alpha");
	if (dp_option_given(&given.n))
		dp_window_average_weight(dp_stage_number(&given.n.value, 1, &given.n.location), alpha);
	else
	{
		if (!dp_type_is_number(given.alpha.value.type) ||
			!(dp_number_to_double(&given.alpha.value) > 0) ||
			!(dp_number_to_double(&given.alpha.value) < 1))
			dp_bad_spec(&given.alpha.location, "alpha must be a number between 0 and 1");
		dp_number_to_decimal(&given.alpha.value, alpha);
	}
	if (o->w->nsort == 0)
		dp_bad_spec(&o->location, "$expMovingAvg needs sortBy");
	add_value(o, psprintf("docpatterns._exp_moving_avg(%s, %s) OVER (w " SO_FAR ")",
						  dp_query_eval(o->w->q, &given.input.value, &o->location),
						  dp_sql_value(&value)));
}

static void
add_covariance(Output *o)
{
	add_value(o, psprintf("docpatterns._covariance_%s(%s) OVER (w %s)",
						  strcmp(o->op, "$covariancePop") == 0 ? "pop" : "samp",
						  dp_query_eval(o->w->q, &o->arg, &o->location), o->frame));
}

static void
add_linear_fill(Output *o)
{
	if (o->w->nsort != 1)
		dp_bad_spec(&o->location, "$linearFill needs sortBy with one field");
	add_value(o, psprintf("docpatterns._linear_fill(%s, %s) OVER w", sort_value(o, NULL),
						  known_value(o, &o->arg)));
}

static void
add_locf(Output *o)
{
	add_value(o, psprintf("%s.bucket_locf(%s) OVER (w " SO_FAR ")", o->w->q->pipeline->own,
						  known_value(o, &o->arg)));
}

/* ---------------------------------------------------------------- accumulators */

static void
add_accumulator(Output *o)
{
	Frame *f = NULL;
	ListCell *lc;

	foreach(lc, o->w->frames)
		if (strcmp(((Frame *) lfirst(lc))->sql, o->frame) == 0)
			f = lfirst(lc);
	if (f == NULL)
	{
		f = palloc0(sizeof(Frame));
		f->sql = o->frame;
		f->may_be_empty = o->may_be_empty;
		dp_builder_init(&f->totals, 256);
		dp_builder_begin_document(&f->totals);
		o->w->frames = lappend(o->w->frames, f);
	}
	dp_builder_begin_document_field(&f->totals, o->variable, strlen(o->variable));
	if (o->arg.type == DP_TYPE_ARRAY)
	{
		/* not arguments, but an array */
		dp_builder_begin_document_field(&f->totals, o->op, strlen(o->op));
		dp_builder_begin_array_field(&f->totals, "$concatArrays", 13);
		dp_builder_append_value(&f->totals, NULL, 0, &o->arg);
		dp_builder_end(&f->totals);
		dp_builder_end(&f->totals);
	}
	else
		dp_builder_append_value(&f->totals, o->op, strlen(o->op), &o->arg);
	dp_builder_end(&f->totals);
}

/* ---------------------------------------------------------------- $fill */

static void
append_partition_fields(DpBuilder *b, const DpValue *fields, const DpLocation *location);

/* $setWindowFields for what a method fills, and $set with $ifNull for what a value does. */
void
dp_stage_fill(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	struct
	{
		DpOption output, sort, partition, fields;
	} o;
	DpBuilder window;
	DpBuilder set;
	bool windows = false;
	bool values = false;
	DpIter iter;
	DpElement e;
	DpValue value;

	dp_stage_options(spec, location, "$fill", "output ?sortBy ?partitionBy ?partitionByFields", &o);
	dp_stage_document(&o.output.value, &o.output.location);
	if (o.output.value.len == DP_DOCUMENT_MIN_SIZE)
		dp_bad_spec(&o.output.location, "output of $fill must have a field");
	if (dp_option_given(&o.partition) && dp_option_given(&o.fields))
		dp_bad_spec(location, "$fill must not have both partitionBy and partitionByFields");
	dp_builder_init(&window, spec->len + 128);
	dp_builder_begin_document(&window);
	dp_builder_init(&set, spec->len + 128);
	dp_builder_begin_document(&set);
	dp_builder_begin_document_field(&set, "$set", 4);
	if (dp_option_given(&o.sort))
		dp_builder_append_value(&window, "sortBy", 6, &o.sort.value);
	if (dp_option_given(&o.fields))
		append_partition_fields(&window, &o.fields.value, &o.fields.location);
	if (dp_option_given(&o.partition))
	{
		if (o.partition.value.type != DP_TYPE_STRING && o.partition.value.type != DP_TYPE_DOCUMENT)
			dp_bad_spec_type(&o.partition.location, "an expression", &o.partition.value);
		dp_builder_append_value(&window, "partitionBy", 11, &o.partition.value);
	}
	dp_builder_begin_document_field(&window, "output", 6);
	dp_iter_init_value(&iter, &o.output.value);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(&o.output.location, &e);
		DpIter options;
		DpElement option;
		char *path = psprintf("$%s", e.name);

		dp_stage_check_field(e.name, &inner);
		dp_stage_document(&e.value, &inner);
		dp_iter_init_value(&options, &e.value);
		if (dp_document_count(e.value.data, e.value.len) != 1 || !dp_iter_next(&options, &option) ||
			(strcmp(option.name, "value") != 0 && strcmp(option.name, "method") != 0))
			dp_bad_spec(&inner, "a field of $fill must have either a value or a method");
		if (strcmp(option.name, "value") == 0)
		{
			dp_builder_begin_document_field(&set, e.name, e.namelen);
			dp_builder_begin_array_field(&set, "$ifNull", 7);
			dp_builder_append_string(&set, NULL, 0, path, strlen(path));
			dp_builder_append_value(&set, NULL, 0, &option.value);
			dp_builder_end(&set);
			dp_builder_end(&set);
			values = true;
		}
		else
		{
			const char *method = dp_stage_string(&option.value, &inner);
			const char *op = strcmp(method, "linear") == 0 ? "$linearFill"
							 : strcmp(method, "locf") == 0 ? "$locf"
														   : NULL;

			if (op == NULL)
				dp_bad_spec(&inner, "$fill has the methods linear and locf, not \"%.100s\"",
							method);
			dp_builder_begin_document_field(&window, e.name, e.namelen);
			dp_builder_append_string(&window, op, strlen(op), path, strlen(path));
			dp_builder_end(&window);
			windows = true;
		}
	}
	dp_builder_end(&window);
	dp_builder_end(&window);
	dp_builder_end(&set);
	dp_builder_end(&set);
	if (windows)
	{
		value = dp_builder_view(&window, DP_TYPE_DOCUMENT);
		dp_stage_window(q, &value, location);
	}
	if (values)
	{
		value = dp_builder_view(&set, DP_TYPE_DOCUMENT);
		dp_stage_change(q, &value, location);
	}
}

/* {"0": "$a", ..} of an array of names */
static void
append_partition_fields(DpBuilder *b, const DpValue *fields, const DpLocation *location)
{
	DpIter iter;
	DpValue field;

	if (fields->type != DP_TYPE_ARRAY)
		dp_bad_spec_type(location, "an array of fields", fields);
	dp_builder_begin_document_field(b, "partitionBy", 11);
	dp_iter_init_value(&iter, fields);
	for (int i = 0; dp_iter_next_value(&iter, &field); i++)
	{
		char *key = psprintf("%d", i);
		const char *name = dp_stage_string(&field, location);
		char *path = psprintf("$%s", name);

		dp_stage_check_field(name, location);
		dp_builder_append_string(b, key, strlen(key), path, strlen(path));
	}
	dp_builder_end(b);
}
