/*
 * expression_accumulate.c
 *		Accumulators as expressions: $sum, $avg, $min, $max, $stdDevPop, $stdDevSamp, $median,
 *		$percentile.
 *
 * A single array argument is replaced by its elements; of several arguments an array counts as one
 * value.
 */
#include "postgres.h"

#include <math.h>

#include "bson/compare.h"
#include "bson/number.h"
#include "mql/expression_node.h"
#include "mql/percentile.h"

enum
{
	OP_SUM,
	OP_AVG,
	OP_MIN,
	OP_MAX,
	OP_POP,
	OP_SAMP,
	OP_MEDIAN,
	OP_PERCENTILE
};

/* Walks through the values of an accumulator. */
typedef struct Walk
{
	const DpNode *node;
	DpExprState *state;
	int next; /* argument */
	bool in_array;
	DpIter iter;
	DpValue single; /* the only argument, if it is no array */
} Walk;

/* Begins. */
static void
walk_begin(Walk *w, const DpNode *node, DpExprState *state)
{
	w->node = node;
	w->state = state;
	w->next = 0;
	w->in_array = false;
	if (node->nargs == 1)
	{
		/* evaluated once: operators inside each other would take twice as long at each level */
		dp_arg(node, 0, state, &w->single);
		if (w->single.type == DP_TYPE_ARRAY)
		{
			dp_iter_init_value(&w->iter, &w->single);
			w->in_array = true;
		}
	}
}

/* The next value, DP_TYPE_EOD for one that is missing.  Returns false at the end. */
static bool
walk_next(Walk *w, DpValue *v)
{
	if (w->in_array)
		return dp_iter_next_value(&w->iter, v);
	if (w->next >= w->node->nargs)
		return false;
	if (w->node->nargs == 1)
		*v = w->single;
	else
		dp_arg(w->node, w->next, w->state, v);
	w->next++;
	return true;
}

/*
 * The sum of decimals, and of what the other numbers add up to, which counts with all its digits.
 */
static bool
result_decimal_sum(DpValue *result, DpSum *decimals, const DpSum *others)
{
	uint8 decimal[DP_DECIMAL128_SIZE];
	uint8 digits[DP_EXACT_MAX_DIGITS];
	DpValue v;
	DpExact e;

	dp_result_sum(&v, others);
	dp_exact_from_value(&v, &e, digits);
	dp_exact_round_to_decimal128(&e, 0, decimal);
	dp_result_decimal(&v, decimal);
	dp_sum_add(decimals, &v);
	return dp_result_sum(result, decimals);
}

/*
 * $sum and $avg: what is not a number does not count.
 */
static bool
sum_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	Walk walk;
	DpValue v;
	DpSum sum;
	DpSum decimals;
	int64 n = 0;
	uint8 room[8];
	DpValue count = { room, 8, DP_TYPE_INT64 };

	dp_sum_init(&sum);
	dp_sum_init(&decimals);
	walk_begin(&walk, node, state);
	while (walk_next(&walk, &v))
	{
		if (dp_type_is_number(v.type))
		{
			dp_sum_add(v.type == DP_TYPE_DECIMAL128 ? &decimals : &sum, &v);
			n++;
		}
	}
	if (decimals.type == DP_TYPE_DECIMAL128)
		result_decimal_sum(result, &decimals, &sum);
	else
		dp_result_sum(result, &sum);
	if (node->op->which == OP_SUM)
		return true;
	if (n == 0)
		return dp_result_null(result);
	if (result->type == DP_TYPE_DECIMAL128)
	{
		uint8 divisor[DP_DECIMAL128_SIZE];
		uint8 quotient[DP_DECIMAL128_SIZE];

		dp_put_int64(room, n);
		dp_number_to_decimal(&count, divisor);
		dp_decimal_combine(DP_DECIMAL_DIVIDE, result->data, divisor, quotient);
		return dp_result_decimal(result, quotient);
	}
	return dp_result_double(result, dp_number_to_double(result) / (double) n);
}

/*
 * $min and $max: null does not count.
 */
static bool
min_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	int sign = node->op->which == OP_MIN ? -1 : 1;
	Walk walk;
	DpValue v;
	bool found = false;

	dp_result_null(result);
	walk_begin(&walk, node, state);
	while (walk_next(&walk, &v))
	{
		if (dp_is_nullish(&v))
			continue;
		if (!found || sign * dp_value_compare(&v, result) > 0)
			*result = v;
		found = true;
	}
	return true;
}

/*
 * $stdDevPop and $stdDevSamp: Welford's algorithm, in doubles.
 */
static bool
stddev_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	Walk walk;
	DpValue v;
	double mean = 0;
	double squares = 0;
	int64 n = 0;
	int64 least = node->op->which == OP_SAMP ? 2 : 1;

	walk_begin(&walk, node, state);
	while (walk_next(&walk, &v))
	{
		double x;
		double delta;

		if (!dp_type_is_number(v.type))
			continue;
		x = dp_number_to_double(&v);
		n++;
		delta = x - mean;
		mean += delta / (double) n;
		squares += delta * (x - mean);
	}
	if (n < least)
		return dp_result_null(result);
	return dp_result_double(result, sqrt(squares / (double) (n - least + 1)));
}

/* The method has to be a constant; slot is whether it is continuous. */
static void
percentile_prepare(DpCompiler *c, DpNode *node)
{
	DpValue method;
	bool continuous;

	if (!dp_node_is_literal(node->args[1], &method) || !dp_percentile_method(&method, &continuous))
		dp_compile_error(c, DP_PERCENTILE_METHODS);
	node->slot = continuous;
}

/*
 * $median and $percentile: of a number, or of those in an array; NaN does not count.
 */
static bool
percentile_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	bool continuous = node->slot != 0;
	double *points = NULL;
	int npoints = 0;
	DpValue input;
	DpValue p;
	DpValue *values = &input;
	int nvalues = 1;
	double *numbers;
	int n = 0;
	DpBuilder b;

	if (node->op->which == OP_PERCENTILE)
	{
		(void) dp_arg(node, 2, state, &p);
		npoints = dp_percentile_points(&p, &points);
		if (npoints == 0)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs an array of numbers from 0 to 1 as p");
	}
	if (dp_arg(node, 0, state, &input) && input.type == DP_TYPE_ARRAY)
		nvalues = dp_array_values(&input, &values);
	numbers = palloc(sizeof(double) * nvalues);
	for (int i = 0; i < nvalues; i++)
		if (dp_type_is_number(values[i].type) &&
			!isnan(numbers[n] = dp_number_to_double(&values[i])))
			n++;
	dp_percentile_sort(numbers, n);
	if (node->op->which == OP_MEDIAN)
		return n == 0 ? dp_result_null(result)
					  : dp_result_double(result, dp_percentile(numbers, n, 0.5, continuous));
	dp_result_builder(&b, 0);
	dp_percentiles_append(&b, numbers, n, points, npoints, continuous);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

const DpOperator dp_operators_accumulate[] = {
	{ .name = "$avg", .eval = sum_eval, .min = 0, .max = -1, .which = OP_AVG },
	{ .name = "$max", .eval = min_eval, .min = 0, .max = -1, .which = OP_MAX },
	{ .name = "$median",
	  .eval = percentile_eval,
	  .names = "input method",
	  .prepare = percentile_prepare,
	  .which = OP_MEDIAN },
	{ .name = "$min", .eval = min_eval, .min = 0, .max = -1, .which = OP_MIN },
	{ .name = "$percentile",
	  .eval = percentile_eval,
	  .names = "input method p",
	  .prepare = percentile_prepare,
	  .which = OP_PERCENTILE },
	{ .name = "$stdDevPop", .eval = stddev_eval, .min = 0, .max = -1, .which = OP_POP },
	{ .name = "$stdDevSamp", .eval = stddev_eval, .min = 0, .max = -1, .which = OP_SAMP },
	{ .name = "$sum", .eval = sum_eval, .min = 0, .max = -1, .which = OP_SUM },
	{ NULL }
};
