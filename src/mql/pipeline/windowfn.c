/*
 * windowfn.c
 *		Functions that the SQL of $bucket, $bucketAuto, $setWindowFields and $densify calls.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "windowapi.h"

#include "bson/build.h"
#include "bson/builder.h"
#include "bson/collation.h"
#include "bson/compare.h"
#include "bson/exactsum.h"
#include "mql/error.h"
#include "mql/expression_date.h"
#include "mql/pipeline/window.h"

/* ---------------------------------------------------------------- $bucket */

static Datum bucket(PG_FUNCTION_ARGS);

/*
 * _bucket(value bson_value, boundaries bson_value, other bson_value [, collation bson]) ->
 * bson_value: the lower boundary of the value's bucket, or other; raises an error if that is NULL.
 */
DP_FUNCTION(dp_pipeline_bucket);
Datum
dp_pipeline_bucket(PG_FUNCTION_ARGS)
{
	return PG_NARGS() > 3 ? dp_collated_call(fcinfo, bucket) : bucket(fcinfo);
}

static Datum
bucket(PG_FUNCTION_ARGS)
{
	DpValue lower = { NULL, 0, DP_TYPE_EOD };

	if (!PG_ARGISNULL(0) && !PG_ARGISNULL(1))
	{
		DpValue value = dp_value_of_varlena(DP_GETARG_VARLENA(0));
		DpValue boundaries = dp_value_of_varlena(DP_GETARG_VARLENA(1));
		DpValue boundary;
		DpIter iter;

		if (boundaries.type != DP_TYPE_ARRAY)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("boundaries must be an array, not %s", dp_type_name(boundaries.type))));
		dp_iter_init_value(&iter, &boundaries);
		while (dp_iter_next_value(&iter, &boundary))
		{
			if (dp_value_compare(&value, &boundary) >= 0)
				lower = boundary;
			else if (lower.type != DP_TYPE_EOD)
				PG_RETURN_POINTER(dp_value_to_varlena(&lower));
			else
				break;
		}
	}
	if (PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("$bucket has no bucket for a value outside of its boundaries"),
						errhint("Add a default.")));
	PG_RETURN_DATUM(PG_GETARG_DATUM(2));
}

/* ---------------------------------------------------------------- $bucketAuto */

/* Where _bucket_auto is in its partition */
typedef struct BucketAuto
{
	int64 number;        /* of buckets so far */
	int64 until;         /* the row after the current bucket */
	struct varlena *id;  /* its boundaries */
	struct varlena *max; /* with a granularity, its upper boundary; or NULL */
} BucketAuto;

static void null_argument(void) pg_attribute_noreturn();
static void check_position(const DpValue *x);
static Datum bucket_auto(FunctionCallInfo fcinfo, bool by_key);
static void begin_bucket(FunctionCallInfo fcinfo, BucketAuto *state, int64 row, bool by_key);
static bool same_key(WindowObject window, int64 a, int64 b);
static bool row_value(WindowObject window, int64 row, DpValue *v);
static struct varlena *argument_of_row(WindowObject window, int arg, int64 row, bool *out);
static void check_roundable(const DpValue *v);

/*
 * _bucket_auto(value bson_value, buckets int [, granularity text]) OVER (ORDER BY value) -> bson:
 * the boundaries of the row's bucket.
 */
DP_FUNCTION(dp_pipeline_bucket_auto);
Datum
dp_pipeline_bucket_auto(PG_FUNCTION_ARGS)
{
	return bucket_auto(fcinfo, false);
}

/* _bucket_auto(value bson_value, buckets int, key bytea) OVER (ORDER BY key) -> bson */
DP_FUNCTION(dp_pipeline_bucket_auto_by);
Datum
dp_pipeline_bucket_auto_by(PG_FUNCTION_ARGS)
{
	return bucket_auto(fcinfo, true);
}

static Datum
bucket_auto(FunctionCallInfo fcinfo, bool by_key)
{
	WindowObject window = PG_WINDOW_OBJECT();
	BucketAuto *state = WinGetPartitionLocalMemory(window, sizeof(BucketAuto));
	int64 row = WinGetCurrentPosition(window);

	if (row >= state->until)
		begin_bucket(fcinfo, state, row, by_key);
	WinSetMarkPosition(window, row);
	PG_RETURN_POINTER(state->id);
}

static void
begin_bucket(FunctionCallInfo fcinfo, BucketAuto *state, int64 row, bool by_key)
{
	WindowObject window = PG_WINDOW_OBJECT();
	MemoryContext old;
	bool isnull;
	int32 buckets = DatumGetInt32(WinGetFuncArgCurrent(window, 1, &isnull));
	const char *granularity = NULL;
	int64 n = WinGetPartitionRowCount(window);
	int64 size = Max((int64) round((double) n / buckets), 1);
	int64 next;
	DpValue min = { NULL, 0, DP_TYPE_EOD };
	DpValue max = { NULL, 0, DP_TYPE_EOD };
	DpValue v = { NULL, 0, DP_TYPE_EOD };
	DpBuilder b;

	if (PG_NARGS() > 2 && !by_key)
		granularity = text_to_cstring(DatumGetTextPP(WinGetFuncArgCurrent(window, 2, &isnull)));
	next = ++state->number == buckets ? n : Min(row + size, n);
	(void) row_value(window, row, &min);
	(void) row_value(window, next - 1, &max);
	if (granularity != NULL)
	{
		DpValue limit;

		/* the order of types brings those that are no numbers to both ends */
		check_roundable(&min);
		check_roundable(&max);
		dp_granularity_round(granularity, &max, true, &limit);
		for (; row_value(window, next, &v); next++)
		{
			check_roundable(&v);
			if (dp_value_compare(&limit, &v) <= 0)
				break;
		}
		if (dp_number_to_double(&limit) == 0 && next < n)
			dp_granularity_round(granularity, &v, false, &limit);
		max = limit;
		if (state->max != NULL)
			min = dp_value_of_varlena(state->max);
		else
		{
			dp_granularity_round(granularity, &min, false, &v);
			min = v;
		}
	}
	else
	{
		while (row_value(window, next, &v) &&
			   (by_key ? same_key(window, next - 1, next) : dp_value_compare(&max, &v) == 0))
			next++;
		if (next < n)
			max = v;
	}
	old = MemoryContextSwitchTo(GetMemoryChunkContext(state));
	dp_builder_init(&b, 64);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, "min", 3, &min);
	dp_builder_append_value(&b, "max", 3, &max);
	dp_builder_end(&b);
	state->id = dp_builder_finish_bson(&b);
	if (granularity != NULL)
		state->max = dp_value_to_varlena(&max);
	state->until = next;
	MemoryContextSwitchTo(old);
}

static bool
same_key(WindowObject window, int64 a, int64 b)
{
	bool out;

	return dp_same_bytes(argument_of_row(window, 2, a, &out), argument_of_row(window, 2, b, &out));
}

/* The value of a row; returns false and leaves *v if there is no such row. */
static bool
row_value(WindowObject window, int64 row, DpValue *v)
{
	bool out;
	struct varlena *copy = argument_of_row(window, 0, row, &out);

	if (!out)
		*v = dp_value_of_varlena(copy);
	return !out;
}

/* A copy of an argument in a row of the partition; NULL if it is NULL or, then out, not there. */
static struct varlena *
argument_of_row(WindowObject window, int arg, int64 row, bool *out)
{
	bool isnull;
	Datum d;

	CHECK_FOR_INTERRUPTS();
	d = WinGetFuncArgInPartition(window, arg, (int) row, WINDOW_SEEK_HEAD, false, &isnull, out);
	return isnull ? NULL : (struct varlena *) PG_DETOAST_DATUM_COPY(d);
}

static void
check_roundable(const DpValue *v)
{
	if (!dp_type_is_number(v->type))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("$bucketAuto with a granularity needs numbers, not %s",
							   dp_type_name(v->type))));
	if (!(dp_number_to_double(v) >= 0))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("$bucketAuto with a granularity needs numbers of at least 0")));
}

/* ---------------------------------------------------------------- numbers */

/* A double, or a decimal as soon as a decimal comes in */
typedef struct Number
{
	bool decimal;
	bool whole; /* an integer: becomes a decimal without digits after the point */
	double d;
	uint8 bytes[DP_DECIMAL128_SIZE];
} Number;

/* A number, or the milliseconds of a date. */
static Number
number_of(const DpValue *v)
{
	DpValue n = *v;
	Number result = { .decimal = v->type == DP_TYPE_DECIMAL128 };

	if (n.type == DP_TYPE_DATE)
		n.type = DP_TYPE_INT64;
	result.whole = n.type == DP_TYPE_INT32 || n.type == DP_TYPE_INT64;
	if (result.decimal)
		memcpy(result.bytes, n.data, sizeof(result.bytes));
	else
		result.d = dp_number_to_double(&n);
	return result;
}

static Number
number_of_double(double d)
{
	Number result = { .d = d };

	return result;
}

static void
make_decimal(Number *n)
{
	DpValue v;

	if (n->decimal)
		return;
	n->decimal = true;
	if (n->whole && fabs(n->d) < INT64CONST(1) << DBL_MANT_DIG)
		(void) dp_result_int64(&v, (int64) n->d);
	else
		(void) dp_result_double(&v, n->d);
	dp_number_to_decimal(&v, n->bytes);
}

static Number
combine(DpDecimalOp op, Number a, Number b)
{
	if (a.decimal || b.decimal)
	{
		make_decimal(&a);
		make_decimal(&b);
		dp_decimal_combine(op, a.bytes, b.bytes, a.bytes);
	}
	else
	{
		a.whole = a.whole && b.whole && op != DP_DECIMAL_DIVIDE;
		a.d = op == DP_DECIMAL_ADD        ? a.d + b.d
			  : op == DP_DECIMAL_SUBTRACT ? a.d - b.d
			  : op == DP_DECIMAL_MULTIPLY ? a.d * b.d
										  : a.d / b.d;
	}
	return a;
}

#define ADD(a, b) combine(DP_DECIMAL_ADD, a, b)
#define SUBTRACT(a, b) combine(DP_DECIMAL_SUBTRACT, a, b)
#define MULTIPLY(a, b) combine(DP_DECIMAL_MULTIPLY, a, b)
#define DIVIDE(a, b) combine(DP_DECIMAL_DIVIDE, a, b)

static Datum
number_datum(const Number *n)
{
	DpValue result;

	if (n->decimal)
		(void) dp_result_decimal(&result, n->bytes);
	else
		(void) dp_result_double(&result, n->d);
	return PointerGetDatum(dp_value_to_varlena(&result));
}

void
dp_window_negate(const DpValue *number, DpValue *result)
{
	int64 i;

	switch (number->type)
	{
		case DP_TYPE_INT32:
			(void) dp_result_integer(result, -(int64) dp_get_int32(number->data));
			break;
		case DP_TYPE_INT64:
			i = dp_get_int64(number->data);
			if (i == PG_INT64_MIN)
				(void) dp_result_double(result, -(double) i);
			else
				(void) dp_result_int64(result, -i);
			break;
		case DP_TYPE_DECIMAL128:
			(void) dp_result_decimal(result, number->data);
			((uint8 *) result->data)[DP_DECIMAL128_SIZE - 1] ^= 0x80;
			break;
		default:
			(void) dp_result_double(result, -dp_number_to_double(number));
	}
}

void
dp_window_average_weight(int64 n, uint8 weight[DP_DECIMAL128_SIZE])
{
	uint8 two[DP_DECIMAL128_SIZE];
	uint8 more[DP_DECIMAL128_SIZE];

	dp_double_to_decimal(2, two);
	dp_double_to_decimal((double) n + 1, more);
	dp_decimal_combine(DP_DECIMAL_DIVIDE, two, more, weight);
}

/* ---------------------------------------------------------------- partitions and ranges */

/* _partition(value bson_value) -> bson_value: null if it is missing. */
DP_FUNCTION(dp_pipeline_partition);
Datum
dp_pipeline_partition(PG_FUNCTION_ARGS)
{
	DpValue null = { (const uint8 *) "", 0, DP_TYPE_NULL };
	DpValue v;

	if (PG_ARGISNULL(0))
		PG_RETURN_POINTER(dp_value_to_varlena(&null));
	v = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	if (v.type == DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("partitionBy must not be an array")));
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

/* Only the SQL of pipelines calls these functions, and users who look for trouble. */
static void
null_argument(void)
{
	ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("argument cannot be null")));
}

/* Raises an error for what is no place on an axis. */
static void
check_position(const DpValue *x)
{
	if (!dp_type_is_number(x->type) && x->type != DP_TYPE_DATE)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("sortBy must be a number or a date, not %s", dp_operand_type(x))));
}

/*
 * _window_key(value bson_value, kind text) -> bson_value: the value, which must be "a number", "a
 * date" or "a number or a date".
 */
DP_FUNCTION(dp_pipeline_window_key);
Datum
dp_pipeline_window_key(PG_FUNCTION_ARGS)
{
	const char *kind;
	Size len;
	DpValue v = { NULL, 0, DP_TYPE_EOD };

	if (PG_ARGISNULL(1))
		null_argument();
	kind = VARDATA_ANY(PG_GETARG_TEXT_PP(1));
	len = VARSIZE_ANY_EXHDR(PG_GETARG_TEXT_PP(1));
	if (!PG_ARGISNULL(0))
		v = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	if (!(dp_type_is_number(v.type) && len != strlen("a date")) &&
		!(v.type == DP_TYPE_DATE && len != strlen("a number")))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("sortBy of this window must be %.*s, not %s", (int) len, kind,
							   dp_operand_type(&v))));
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

static void
shift_date(const DpValue *date, const DpValue *distance, bool subtract, DpValue *result);

/*
 * bson_value_in_range(value, base, distance bson_value, subtract bool, less bool) -> bool: btree
 * support for RANGE.  The distance from a date is a document: {unit, amount}.
 */
DP_FUNCTION(dp_bson_value_in_range);
Datum
dp_bson_value_in_range(PG_FUNCTION_ARGS)
{
	MemoryContext scratch = fcinfo->flinfo->fn_extra;
	MemoryContext old;
	DpValue v = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	DpValue base = dp_value_of_varlena(DP_GETARG_VARLENA(1));
	DpValue distance = dp_value_of_varlena(DP_GETARG_VARLENA(2));
	bool subtract = PG_GETARG_BOOL(3);
	DpValue end;
	int c;

	/* it is called in a memory context of the query */
	if (scratch == NULL)
		scratch = fcinfo->flinfo->fn_extra =
			AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "docpatterns in_range",
								  ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(scratch);
	if (dp_type_is_number(base.type) && dp_type_is_number(distance.type))
	{
		DpValue zero;
		DpSum sum;

		(void) dp_result_int32(&zero, 0);
		if (dp_value_compare(&distance, &zero) < 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PRECEDING_OR_FOLLOWING_SIZE),
							errmsg("invalid preceding or following size in window function")));
		if (subtract)
			dp_window_negate(&distance, &distance);
		dp_sum_init(&sum);
		dp_sum_add(&sum, &base);
		dp_sum_add(&sum, &distance);
		(void) dp_result_sum(&end, &sum);
	}
	else
		shift_date(&base, &distance, subtract, &end);
	c = dp_value_compare(&v, &end);
	MemoryContextSwitchTo(old);
	MemoryContextReset(scratch);
	PG_RETURN_BOOL(PG_GETARG_BOOL(4) ? c <= 0 : c >= 0);
}

static void
shift_date(const DpValue *date, const DpValue *distance, bool subtract, DpValue *result)
{
	DpZone utc = { NULL, 0 };
	DpValue unit;
	DpValue amount;
	int64 n;
	int u = -1;

	if (distance->type == DP_TYPE_DOCUMENT &&
		dp_document_find(distance->data, distance->len, "unit", 4, &unit) &&
		unit.type == DP_TYPE_STRING)
		u = dp_date_unit(DP_STRING_DATA(&unit));
	if (date->type != DP_TYPE_DATE || u < 0 ||
		!dp_document_find(distance->data, distance->len, "amount", 6, &amount) ||
		!dp_value_to_whole(&amount, &n))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("range needs a number and a number, or a date and a unit with an amount")));
	if (n < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PRECEDING_OR_FOLLOWING_SIZE),
						errmsg("invalid preceding or following size in window function")));
	if (!dp_date_add(dp_get_int64(date->data), u, subtract ? -n : n, &utc, &n))
		n = subtract ? PG_INT64_MIN : PG_INT64_MAX;
	(void) dp_result_date(result, n);
}

/* ---------------------------------------------------------------- $integral */

/* Points of the frame from the first on, and the area under them */
typedef struct Integral
{
	struct varlena **x;
	struct varlena **y;
	int64 first;
	int64 n;
	int64 room;
	DpExactSum sum;
} Integral;

static void add_area(Integral *g, int64 i, int64 j, int64 unit, int sign);

/*
 * _integral's step(state, x bson_value, y bson_value, unit bigint): unit is in milliseconds, 1 for
 * numbers.
 */
DP_FUNCTION(dp_pipeline_integral_step);
Datum
dp_pipeline_integral_step(PG_FUNCTION_ARGS)
{
	MemoryContext context = dp_aggregate_context(fcinfo);
	MemoryContext old = MemoryContextSwitchTo(context);
	Integral *g = PG_ARGISNULL(0) ? NULL : (Integral *) PG_GETARG_POINTER(0);
	DpValue x;
	DpValue y = { NULL, 0, DP_TYPE_EOD };
	int64 last;

	if (g == NULL)
	{
		g = palloc0(sizeof(Integral));
		dp_exact_sum_init(&g->sum, context);
	}
	if (PG_ARGISNULL(1) || PG_ARGISNULL(3))
		null_argument();
	x = dp_value_of_varlena(DP_GETARG_VARLENA(1));
	check_position(&x);
	if (!PG_ARGISNULL(2))
		y = dp_value_of_varlena(DP_GETARG_VARLENA(2));
	if (!dp_type_is_number(y.type))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("$integral needs numbers, not %s", dp_operand_type(&y))));
	if (g->first + g->n == g->room)
	{
		if (g->first > g->n)
		{
			/* half of the room is free */
			memmove(g->x, g->x + g->first, sizeof(*g->x) * g->n);
			memmove(g->y, g->y + g->first, sizeof(*g->y) * g->n);
			g->first = 0;
		}
		if (g->first + g->n == g->room)
		{
			g->room = Max(64, g->room * 2);
			g->x = g->x == NULL ? palloc(sizeof(*g->x) * g->room)
								: repalloc_huge(g->x, sizeof(*g->x) * g->room);
			g->y = g->y == NULL ? palloc(sizeof(*g->y) * g->room)
								: repalloc_huge(g->y, sizeof(*g->y) * g->room);
		}
	}
	last = g->first + g->n++;
	g->x[last] = (struct varlena *) PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(1));
	g->y[last] = (struct varlena *) PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(2));
	add_area(g, g->n == 1 ? last : last - 1, last, PG_GETARG_INT64(3), 1);
	MemoryContextSwitchTo(old);
	PG_RETURN_POINTER(g);
}

/* The first point leaves. */
DP_FUNCTION(dp_pipeline_integral_remove);
Datum
dp_pipeline_integral_remove(PG_FUNCTION_ARGS)
{
	Integral *g = (Integral *) PG_GETARG_POINTER(0);

	if (g->n > 1)
		add_area(g, g->first, g->first + 1, PG_GETARG_INT64(3), -1);
	pfree(g->x[g->first]);
	pfree(g->y[g->first]);
	g->first++;
	g->n--;
	PG_RETURN_POINTER(g);
}

/* The area between two points. */
static void
add_area(Integral *g, int64 i, int64 j, int64 unit, int sign)
{
	DpValue xi = dp_value_of_varlena(g->x[i]);
	DpValue xj = dp_value_of_varlena(g->x[j]);
	DpValue yi = dp_value_of_varlena(g->y[i]);
	DpValue yj = dp_value_of_varlena(g->y[j]);
	Number width = SUBTRACT(number_of(&xj), number_of(&xi));
	Number area =
		DIVIDE(MULTIPLY(width, ADD(number_of(&yi), number_of(&yj))), number_of_double(2.0 * unit));
	DpValue v = { area.bytes, sizeof(area.bytes), DP_TYPE_DECIMAL128 };
	uint8 d[sizeof(double)];

	if (!area.decimal)
	{
		dp_put_double(d, area.d);
		v = (DpValue){ d, sizeof(d), DP_TYPE_DOUBLE };
	}
	(void) dp_exact_sum_add_value(&g->sum, &v, sign);
}

/* _integral's result: null without points. */
DP_FUNCTION(dp_pipeline_integral_final);
Datum
dp_pipeline_integral_final(PG_FUNCTION_ARGS)
{
	Integral *g = PG_ARGISNULL(0) ? NULL : (Integral *) PG_GETARG_POINTER(0);
	uint8 room[DP_SUM_RESULT_SIZE];
	DpValue result;

	if (g == NULL || g->n == 0)
		PG_RETURN_NULL();
	dp_exact_sum_total(&g->sum, &result, room);
	PG_RETURN_POINTER(dp_value_to_varlena(&result));
}

/* ---------------------------------------------------------------- $expMovingAvg */

typedef struct MovingAverage
{
	uint8 value[DP_DECIMAL128_SIZE];
	bool decimal; /* one of the numbers was */
	bool any;
} MovingAverage;

/* _exp_moving_avg's step(state, value bson_value, weight bson_value) */
DP_FUNCTION(dp_pipeline_average_step);
Datum
dp_pipeline_average_step(PG_FUNCTION_ARGS)
{
	MemoryContext context = dp_aggregate_context(fcinfo);
	MovingAverage *a = PG_ARGISNULL(0) ? MemoryContextAllocZero(context, sizeof(MovingAverage))
									   : (MovingAverage *) PG_GETARG_POINTER(0);
	DpValue v;
	DpValue weight;
	uint8 number[DP_DECIMAL128_SIZE];

	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(a);
	v = dp_value_of_varlena(DP_GETARG_VARLENA(1));
	if (!dp_type_is_number(v.type))
		PG_RETURN_POINTER(a);
	a->decimal = a->decimal || v.type == DP_TYPE_DECIMAL128;
	dp_number_to_decimal(&v, number);
	if (a->any)
	{
		uint8 rest[DP_DECIMAL128_SIZE];

		/* value * weight + average * (1 - weight) */
		if (PG_ARGISNULL(2))
			null_argument();
		weight = dp_value_of_varlena(DP_GETARG_VARLENA(2));
		if (weight.type != DP_TYPE_DECIMAL128)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("weight must be a decimal")));
		dp_decimal_combine(DP_DECIMAL_MULTIPLY, number, weight.data, number);
		dp_double_to_decimal(1, rest);
		dp_decimal_combine(DP_DECIMAL_SUBTRACT, rest, weight.data, rest);
		dp_decimal_combine(DP_DECIMAL_MULTIPLY, a->value, rest, rest);
		dp_decimal_combine(DP_DECIMAL_ADD, number, rest, a->value);
	}
	else
		memcpy(a->value, number, sizeof(number));
	a->any = true;
	PG_RETURN_POINTER(a);
}

DP_FUNCTION(dp_pipeline_average_final);
Datum
dp_pipeline_average_final(PG_FUNCTION_ARGS)
{
	MovingAverage *a = PG_ARGISNULL(0) ? NULL : (MovingAverage *) PG_GETARG_POINTER(0);
	DpValue result;

	if (a == NULL || !a->any)
		PG_RETURN_NULL();
	result = (DpValue){ a->value, sizeof(a->value), DP_TYPE_DECIMAL128 };
	if (!a->decimal)
		(void) dp_result_double(&result, dp_number_to_double(&result));
	PG_RETURN_POINTER(dp_value_to_varlena(&result));
}

/* ---------------------------------------------------------------- covariances */

/* Welford's algorithm, out of which a pair can be taken again */
typedef struct Covariance
{
	int64 n; /* pairs of finite numbers */
	int64 ndecimal;
	int64 nnan;   /* pairs with NaN */
	int64 nplus;  /* other pairs with infinity */
	int64 nminus; /* other pairs with -infinity */
	Number x;     /* sums */
	Number y;
	Number products; /* of deviations */
} Covariance;

static bool pair_of(FunctionCallInfo fcinfo, Number *x, Number *y);
static bool count_special(Covariance *c, const Number *x, const Number *y, int sign);
static double special_double(const Number *n);

/* _covariance's step(state, pair bson_value), and its inverse: others than pairs do not count. */
DP_FUNCTION(dp_pipeline_covariance_step);
Datum
dp_pipeline_covariance_step(PG_FUNCTION_ARGS)
{
	MemoryContext context = dp_aggregate_context(fcinfo);
	Covariance *c = PG_ARGISNULL(0) ? MemoryContextAllocZero(context, sizeof(Covariance))
									: (Covariance *) PG_GETARG_POINTER(0);
	Number x;
	Number y;

	if (pair_of(fcinfo, &x, &y) && !count_special(c, &x, &y, 1))
	{
		Number sum = ADD(c->y, y);

		if (c->n > 0)
			c->products =
				ADD(c->products, MULTIPLY(SUBTRACT(x, DIVIDE(c->x, number_of_double(c->n))),
										  SUBTRACT(y, DIVIDE(sum, number_of_double(c->n + 1)))));
		c->n++;
		c->x = ADD(c->x, x);
		c->y = sum;
	}
	PG_RETURN_POINTER(c);
}

DP_FUNCTION(dp_pipeline_covariance_remove);
Datum
dp_pipeline_covariance_remove(PG_FUNCTION_ARGS)
{
	Covariance *c = (Covariance *) PG_GETARG_POINTER(0);
	Number x;
	Number y;

	/* an overflow would stay: begin again */
	if (!isfinite(special_double(&c->x)) || !isfinite(special_double(&c->y)) ||
		!isfinite(special_double(&c->products)))
		PG_RETURN_NULL();
	if (pair_of(fcinfo, &x, &y) && !count_special(c, &x, &y, -1))
	{
		Number sum = c->y;

		c->x = SUBTRACT(c->x, x);
		c->y = SUBTRACT(c->y, y);
		if (--c->n > 0)
			c->products = SUBTRACT(c->products,
								   MULTIPLY(SUBTRACT(x, DIVIDE(c->x, number_of_double(c->n))),
											SUBTRACT(y, DIVIDE(sum, number_of_double(c->n + 1)))));
		else
			c->x = c->y = c->products = number_of_double(0);
	}
	PG_RETURN_POINTER(c);
}

/* Counts a pair that is not finite. */
static bool
count_special(Covariance *c, const Number *x, const Number *y, int sign)
{
	double special = special_double(x) + special_double(y);

	c->ndecimal += sign * (x->decimal || y->decimal);
	if (isfinite(special_double(x)) && isfinite(special_double(y)))
		return false;
	if (isnan(special))
		c->nnan += sign;
	else if (special > 0)
		c->nplus += sign;
	else
		c->nminus += sign;
	return true;
}

/* The number itself, or any finite one for a finite decimal. */
static double
special_double(const Number *n)
{
	if (!n->decimal)
		return n->d;
	if (dp_decimal_is_finite(n->bytes))
		return 0;
	return dp_decimal_is_nan(n->bytes) ? NAN : dp_decimal_sign(n->bytes) * INFINITY;
}

/* An array of two numbers. */
static bool
pair_of(FunctionCallInfo fcinfo, Number *x, Number *y)
{
	DpValue pair;
	DpValue vx = { NULL, 0, DP_TYPE_EOD };
	DpValue vy = { NULL, 0, DP_TYPE_EOD };
	DpIter iter;

	if (PG_ARGISNULL(1))
		return false;
	pair = dp_value_of_varlena(DP_GETARG_VARLENA(1));
	if (pair.type != DP_TYPE_ARRAY || dp_array_count(pair.data, pair.len) != 2)
		return false;
	dp_iter_init_value(&iter, &pair);
	(void) dp_iter_next_value(&iter, &vx);
	(void) dp_iter_next_value(&iter, &vy);
	if (!dp_type_is_number(vx.type) || !dp_type_is_number(vy.type))
		return false;
	*x = number_of(&vx);
	*y = number_of(&vy);
	return true;
}

static Datum
covariance_final(FunctionCallInfo fcinfo, int fewer)
{
	Covariance *c = PG_ARGISNULL(0) ? NULL : (Covariance *) PG_GETARG_POINTER(0);
	Number result = { 0 };

	if (c == NULL || c->n <= fewer)
		PG_RETURN_NULL();
	if (c->n == 1)
		return number_datum(&result);
	if (c->nnan > 0 || (c->nplus > 0 && c->nminus > 0))
		result.d = NAN;
	else if (c->nplus > 0 || c->nminus > 0)
		result.d = c->nplus > 0 ? INFINITY : -INFINITY;
	else
		result = DIVIDE(c->products, number_of_double(c->n - fewer));
	if (c->ndecimal > 0)
		make_decimal(&result);
	return number_datum(&result);
}

DP_FUNCTION(dp_pipeline_covariance_pop);
Datum
dp_pipeline_covariance_pop(PG_FUNCTION_ARGS)
{
	return covariance_final(fcinfo, 0);
}

DP_FUNCTION(dp_pipeline_covariance_samp);
Datum
dp_pipeline_covariance_samp(PG_FUNCTION_ARGS)
{
	return covariance_final(fcinfo, 1);
}

/* ---------------------------------------------------------------- $linearFill */

/* The known values around the current row */
typedef struct LinearFill
{
	struct varlena *before_x; /* or NULL */
	struct varlena *before_y;
	struct varlena *after_x; /* or NULL */
	struct varlena *after_y;
	int64 after; /* its row, or that after the last one */
} LinearFill;

static void find_known(WindowObject window, LinearFill *fill, int64 row);

/*
 * _linear_fill(x bson_value, y bson_value) OVER (ORDER BY x) -> bson_value: y or, if it is NULL,
 * the linear interpolation between the values before and after.
 */
DP_FUNCTION(dp_pipeline_linear_fill);
Datum
dp_pipeline_linear_fill(PG_FUNCTION_ARGS)
{
	WindowObject window = PG_WINDOW_OBJECT();
	LinearFill *fill = WinGetPartitionLocalMemory(window, sizeof(LinearFill));
	int64 row = WinGetCurrentPosition(window);
	bool out;
	struct varlena *x;
	struct varlena *y;
	DpValue v[5];
	Number n[5];
	Number result;

	WinSetMarkPosition(window, row);
	x = argument_of_row(window, 0, row, &out);
	if (x == NULL)
		null_argument();
	v[0] = dp_value_of_varlena(x);
	check_position(&v[0]);
	y = argument_of_row(window, 1, row, &out);
	if (y != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(fill));

		v[0] = dp_value_of_varlena(y);
		if (!dp_type_is_number(v[0].type))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("$linearFill needs numbers, not %s", dp_operand_type(&v[0]))));
		if (fill->before_x != NULL)
		{
			pfree(fill->before_x);
			pfree(fill->before_y);
		}
		fill->before_x = (struct varlena *) PG_DETOAST_DATUM_COPY(PointerGetDatum(x));
		fill->before_y = (struct varlena *) PG_DETOAST_DATUM_COPY(PointerGetDatum(y));
		MemoryContextSwitchTo(old);
		PG_RETURN_POINTER(y);
	}
	if (fill->before_x == NULL)
		PG_RETURN_NULL();
	if (fill->after <= row)
		find_known(window, fill, row);
	if (fill->after_x == NULL)
		PG_RETURN_NULL();
	v[0] = dp_value_of_varlena(fill->before_x);
	v[1] = dp_value_of_varlena(fill->before_y);
	v[2] = dp_value_of_varlena(fill->after_x);
	v[3] = dp_value_of_varlena(fill->after_y);
	v[4] = dp_value_of_varlena(x);
	check_position(&v[2]);
	if (dp_value_compare(&v[0], &v[2]) == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("$linearFill needs different values of sortBy")));
	for (int i = 0; i < 5; i++)
		n[i] = number_of(&v[i]);
	result = DIVIDE(ADD(MULTIPLY(n[1], SUBTRACT(n[2], n[4])), MULTIPLY(n[3], SUBTRACT(n[4], n[0]))),
					SUBTRACT(n[2], n[0]));
	return number_datum(&result);
}

/* Looks for the next known value behind a row. */
static void
find_known(WindowObject window, LinearFill *fill, int64 row)
{
	struct varlena *y;
	bool out = false;

	if (fill->after_x != NULL)
	{
		pfree(fill->after_x);
		pfree(fill->after_y);
	}
	fill->after_x = NULL;
	fill->after = row;
	do
	{
		y = argument_of_row(window, 1, ++fill->after, &out);
	} while (y == NULL && !out);
	if (y == NULL)
		fill->after = PG_INT64_MAX;
	else
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(fill));
		DpValue v = dp_value_of_varlena(y);

		if (!dp_type_is_number(v.type))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("$linearFill needs numbers, not %s", dp_operand_type(&v))));
		fill->after_y = (struct varlena *) PG_DETOAST_DATUM_COPY(PointerGetDatum(y));
		fill->after_x = argument_of_row(window, 0, fill->after, &out);
		MemoryContextSwitchTo(old);
	}
}
