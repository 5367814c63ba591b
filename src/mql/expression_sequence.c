/*
 * expression_sequence.c
 *		Operators that make arrays, or put them into another order: $range, $zip,
 *		$sortArray, $maxN, $minN.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/compare.h"
#include "mql/expression_node.h"
#include "mql/sort_key.h"

/* Most elements that $range gives */
#define MAX_RANGE 10000000

enum
{
	OP_MAX,
	OP_MIN
};

/* A value and the key that it is sorted by. */
typedef struct Keyed
{
	DpValue value;
	const char *key;
	int offset; /* of it among all keys */
	int len;
	int position;
} Keyed;

/*
 * $range: [start, end, step]
 */
static bool
range_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	int64 from = dp_int_arg(node, 0, state, "start");
	int64 to = dp_int_arg(node, 1, state, "end");
	int64 step = node->nargs > 2 ? dp_int_arg(node, 2, state, "step") : 1;
	DpBuilder b;

	if (step == 0)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs a step that is not 0");
	if ((to - from) / step >= MAX_RANGE)
		dp_node_error(node, ERRCODE_PROGRAM_LIMIT_EXCEEDED, "gives more than %d elements",
					  MAX_RANGE);
	dp_result_builder(&b, 0);
	dp_builder_begin_array(&b);
	for (; step > 0 ? from < to : from > to; from += step)
	{
		CHECK_FOR_INTERRUPTS();
		dp_builder_append_int32(&b, NULL, 0, (int32) from);
	}
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/*
 * $zip: the arrays, and last the defaults, or NULL.  which is true if the longest array determines
 * the length.
 */
static bool
zip_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	int n = node->nargs - 1;
	bool longest = node->slot != 0;
	DpIter *iters = palloc(sizeof(DpIter) * n);
	DpValue *defaults = NULL;
	DpBuilder b;
	uint32 rounds = 0;
	bool is_null = false;

	for (int i = 0; i < n; i++)
	{
		DpValue array;
		uint32 size;

		dp_arg(node, i, state, &array);
		if (dp_is_nullish(&array))
		{
			is_null = true;
			continue;
		}
		if (array.type != DP_TYPE_ARRAY)
			dp_node_type_error(node, "arrays as its inputs", &array);
		dp_iter_init_value(&iters[i], &array);
		size = dp_array_count(array.data, array.len);
		rounds = i == 0 ? size : longest ? Max(rounds, size) : Min(rounds, size);
	}
	if (is_null)
		return dp_result_null(result);
	if (node->args[n] != NULL)
	{
		DpValue array;

		dp_arg(node, n, state, &array);
		if (array.type != DP_TYPE_ARRAY)
			dp_node_type_error(node, "an array as its defaults", &array);
		if (dp_array_values(&array, &defaults) != n)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs as many defaults as inputs");
	}

	dp_result_builder(&b, 0);
	dp_builder_begin_array(&b);
	for (uint32 r = 0; r < rounds; r++)
	{
		dp_builder_begin_array_field(&b, NULL, 0);
		for (int i = 0; i < n; i++)
		{
			DpValue v;

			CHECK_FOR_INTERRUPTS();
			if (dp_iter_next_value(&iters[i], &v))
				dp_builder_append_value(&b, NULL, 0, &v);
			else if (defaults != NULL)
				dp_builder_append_value(&b, NULL, 0, &defaults[i]);
			else
				dp_builder_append_null(&b, NULL, 0);
		}
		dp_builder_end(&b);
	}
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/*
 * {inputs: [..], useLongestLength: bool, defaults: [..]}
 */
static DpNode *
zip_compile(DpCompiler *c, const DpOperator *op, const DpValue *spec)
{
	DpElement elements[DP_MOST_NAMED];
	DpValue *inputs = &elements[0].value;
	DpValue *longest = &elements[1].value;
	DpIter iter;
	DpValue v;
	DpNode *node;
	int n;

	dp_compile_arguments(c, op->name, "inputs ?useLongestLength ?defaults", spec, elements);
	if (inputs->type != DP_TYPE_ARRAY || (n = dp_array_count(inputs->data, inputs->len)) == 0)
		dp_compile_error(c, "$zip needs an array of at least one array as its argument \"inputs\"");
	if (elements[1].name != NULL && longest->type != DP_TYPE_BOOL)
		dp_compile_error(c, "\"useLongestLength\" of $zip needs true or false, not %s",
						 dp_type_name(longest->type));

	node = dp_node_make(c, op->eval, op, n + 1);
	dp_iter_init_value(&iter, inputs);
	for (int i = 0; dp_iter_next_value(&iter, &v); i++)
		node->args[i] = dp_compile_position(c, &v, i);
	node->slot = elements[1].name != NULL && longest->data[0] != 0;
	if (elements[2].name != NULL && !node->slot)
		dp_compile_error(c, "$zip takes \"defaults\" only with \"useLongestLength\"");
	if (elements[2].name != NULL)
		node->args[n] = dp_compile_field(c, &elements[2]);
	return node;
}

/* ---------------------------------------------------------------- sorting */

static int
keyed_compare(const void *a, const void *b)
{
	const Keyed *x = a;
	const Keyed *y = b;
	int result = memcmp(x->key, y->key, Min(x->len, y->len));

	if (result == 0)
		result = (x->len > y->len) - (x->len < y->len);
	return result != 0 ? result : x->position - y->position;
}

/*
 * $sortArray: {input, sortBy}, where sortBy is 1, -1 or a sort specification
 * for documents.
 */
static bool
sortarray_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const DpSortSpec *spec = node->extra;
	DpValue array;
	DpValue *values;
	DpBuilder b;
	int n;

	dp_arg(node, 0, state, &array);
	if (dp_is_nullish(&array))
		return dp_result_null(result);
	if (array.type != DP_TYPE_ARRAY)
		dp_node_type_error(node, "an array", &array);
	n = dp_array_values(&array, &values);
	if (spec == NULL)
		dp_values_sort(values, n);
	else
	{
		Keyed *keyed = palloc_extended(sizeof(Keyed) * (Size) Max(n, 1), MCXT_ALLOC_HUGE);
		StringInfoData keys;

		initStringInfo(&keys);
		for (int i = 0; i < n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			keyed[i].value = values[i];
			keyed[i].offset = keys.len;
			dp_sort_key_append_whole(&keys, spec, &values[i]);
			keyed[i].len = keys.len - keyed[i].offset;
			keyed[i].position = i;
		}
		for (int i = 0; i < n; i++)
			keyed[i].key = keys.data + keyed[i].offset;
		qsort(keyed, n, sizeof(Keyed), keyed_compare);
		for (int i = 0; i < n; i++)
			values[i] = keyed[i].value;
		pfree(keyed);
		pfree(keys.data);
	}
	dp_result_builder(&b, array.len);
	dp_builder_begin_array(&b);
	if (spec == NULL && node->slot < 0)
		for (int i = n; i-- > 0;)
			dp_builder_append_value(&b, NULL, 0, &values[i]);
	else
		for (int i = 0; i < n; i++)
			dp_builder_append_value(&b, NULL, 0, &values[i]);
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/*
 * The specification is kept in extra, or if it is a number the direction in
 * slot.
 */
static DpNode *
sortarray_compile(DpCompiler *c, const DpOperator *op, const DpValue *spec)
{
	DpNode *node = dp_node_make(c, op->eval, op, 1);
	DpElement elements[DP_MOST_NAMED];
	const DpValue *by = &elements[1].value;
	int64 direction;

	dp_compile_arguments(c, op->name, "input sortBy", spec, elements);
	node->args[0] = dp_compile_field(c, &elements[0]);
	if (by->type == DP_TYPE_DOCUMENT)
		node->extra = dp_sort_spec_compile(by);
	else if (dp_value_to_int64(by, &direction) && (direction == 1 || direction == -1))
		node->slot = (int) direction;
	else
		dp_compile_error(c, "\"sortBy\" of $sortArray needs 1, -1 or a document");
	return node;
}

/*
 * $maxN and $minN: {input, n}; null does not count.
 */
static bool
maxn_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	bool max = node->op->which == OP_MAX;
	int32 wanted = dp_int_arg(node, 1, state, "n");
	DpValue array;
	DpValue *values;
	DpBuilder b;
	int n;
	int kept = 0;

	if (wanted < 1)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs an n greater than 0");
	dp_arg(node, 0, state, &array);
	if (array.type != DP_TYPE_ARRAY)
		dp_node_type_error(node, "an array", &array);
	n = dp_array_values(&array, &values);
	for (int i = 0; i < n; i++)
		if (!dp_is_nullish(&values[i]))
			values[kept++] = values[i];
	dp_values_sort(values, kept);
	dp_result_builder(&b, 0);
	dp_builder_begin_array(&b);
	for (int i = 0; i < Min(wanted, kept); i++)
		dp_builder_append_value(&b, NULL, 0, &values[max ? kept - 1 - i : i]);
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

const DpOperator dp_operators_sequence[] = {
	{ .name = "$maxN", .eval = maxn_eval, .names = "input n", .which = OP_MAX },
	{ .name = "$minN", .eval = maxn_eval, .names = "input n", .which = OP_MIN },
	{ .name = "$range", .eval = range_eval, .min = 2, .max = 3 },
	{ .name = "$sortArray", .eval = sortarray_eval, .compile = sortarray_compile },
	{ .name = "$zip", .eval = zip_eval, .compile = zip_compile },
	{ NULL }
};
