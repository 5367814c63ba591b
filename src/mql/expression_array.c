/*
 * expression_array.c
 *		Operators that look into arrays and take parts of them, and those that
 *		run an expression for each element: $map, $filter, $reduce.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/compare.h"
#include "mql/expression_node.h"

enum
{
	OP_FIRST,
	OP_LAST
};

/*
 * An array argument.  Returns false if it is null or missing; raises an error
 * for anything else.
 */
static bool
array_arg(const DpNode *node, int i, DpExprState *state, DpValue *array)
{
	dp_arg(node, i, state, array);
	if (dp_is_nullish(array))
		return false;
	if (array->type != DP_TYPE_ARRAY)
		dp_node_type_error(node, "an array", array);
	return true;
}

/*
 * $arrayElemAt: [array, position], from the end if it is negative.  Missing
 * beyond the ends.
 */
static bool
elemat_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue array;
	DpValue position;
	bool found = array_arg(node, 0, state, &array);

	dp_arg(node, 1, state, &position);
	if (!found || dp_is_nullish(&position))
		return dp_result_null(result);
	return dp_array_element(array.data, array.len, dp_int_operand(node, &position, "position"),
							result);
}

/*
 * $first and $last
 */
static bool
first_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue array;

	if (!array_arg(node, 0, state, &array))
		return dp_result_null(result);
	return dp_array_element(array.data, array.len, node->op->which == OP_FIRST ? 0 : -1, result);
}

/*
 * Elements from a position on, as an array.
 */
static bool
array_part(const DpValue *array, int64 from, int64 n, DpValue *result)
{
	DpBuilder b;
	DpIter iter;
	DpValue v;

	dp_result_builder(&b, 0);
	dp_builder_begin_array(&b);
	dp_iter_init_value(&iter, array);
	for (int64 i = 0; i < from + n && dp_iter_next_value(&iter, &v); i++)
		if (i >= from)
			dp_builder_append_value(&b, NULL, 0, &v);
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/*
 * $firstN and $lastN: {input, n}
 */
static bool
firstn_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue array;
	DpValue v;
	int64 n;
	int64 size;

	dp_arg(node, 1, state, &v);
	n = dp_int_operand(node, &v, "n");
	if (n < 1)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs an n greater than 0");
	dp_arg(node, 0, state, &array);
	if (array.type != DP_TYPE_ARRAY)
		dp_node_type_error(node, "an array", &array);
	size = dp_array_count(array.data, array.len);
	return array_part(&array, node->op->which == OP_FIRST ? 0 : Max(size - n, 0), Min(n, size),
					  result);
}

/*
 * $slice: [array, n] or [array, position, n]
 */
static bool
slice_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue array;
	DpValue args[2];
	bool found = dp_arg(node, 0, state, &array) && !dp_is_nullish(&array);
	int64 size;
	int64 from;
	int64 n;

	for (int i = 1; i < node->nargs; i++)
	{
		dp_arg(node, i, state, &args[i - 1]);
		found = found && !dp_is_nullish(&args[i - 1]);
	}
	if (!found)
		return dp_result_null(result);
	if (array.type != DP_TYPE_ARRAY)
		dp_node_type_error(node, "an array", &array);
	size = dp_array_count(array.data, array.len);
	if (node->nargs == 2)
	{
		n = dp_int_operand(node, &args[0], "n");
		from = n < 0 ? Max(size + n, 0) : 0;
		n = Min(n < 0 ? -n : n, size);
	}
	else
	{
		from = dp_int_operand(node, &args[0], "position");
		n = dp_int_operand(node, &args[1], "n");
		if (n <= 0)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs an n greater than 0");
		from = from < 0 ? Max(size + from, 0) : Min(from, size);
		n = Min(n, size - from);
	}
	return array_part(&array, from, n, result);
}

/*
 * $concatArrays
 */
static bool
concatarrays_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpBuilder b;

	dp_result_builder(&b, 0);
	dp_builder_begin_array(&b);
	for (int i = 0; i < node->nargs; i++)
	{
		DpValue array;
		DpValue v;
		DpIter iter;

		if (!array_arg(node, i, state, &array))
			return dp_result_null(result);
		dp_iter_init_value(&iter, &array);
		while (dp_iter_next_value(&iter, &v))
			dp_builder_append_value(&b, NULL, 0, &v);
	}
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/*
 * $in: [value, array]
 */
static bool
in_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;
	DpValue array;

	dp_arg(node, 0, state, &v);
	dp_arg(node, 1, state, &array);
	if (array.type != DP_TYPE_ARRAY)
		dp_node_type_error(node, "an array as its second argument", &array);
	return dp_result_bool(result, v.type != DP_TYPE_EOD && dp_array_holds(&array, &v));
}

/*
 * $indexOfArray: [array, value, start, end]
 */
static bool
indexofarray_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue array;
	DpValue wanted;
	DpValue v;
	int64 bounds[2] = { 0, PG_INT32_MAX };
	DpIter iter;

	if (!array_arg(node, 0, state, &array))
		return dp_result_null(result);
	dp_arg(node, 1, state, &wanted);
	for (int i = 2; i < node->nargs; i++)
	{
		dp_arg(node, i, state, &v);
		bounds[i - 2] = dp_int_operand(node, &v, i == 2 ? "start" : "end");
		if (bounds[i - 2] < 0)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs a start and an end that are not negative");
	}
	dp_iter_init_value(&iter, &array);
	for (int32 i = 0; i < bounds[1] && dp_iter_next_value(&iter, &v); i++)
		if (i >= bounds[0] && wanted.type != DP_TYPE_EOD && dp_value_compare(&v, &wanted) == 0)
			return dp_result_int32(result, i);
	return dp_result_int32(result, -1);
}

/*
 * $isArray
 */
static bool
isarray_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;

	dp_arg(node, 0, state, &v);
	return dp_result_bool(result, v.type == DP_TYPE_ARRAY);
}

/*
 * $size
 */
static bool
size_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;

	dp_arg(node, 0, state, &v);
	if (v.type != DP_TYPE_ARRAY)
		dp_node_type_error(node, "an array", &v);
	return dp_result_int32(result, dp_array_count(v.data, v.len));
}

/*
 * $reverseArray
 */
static bool
reverse_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue array;
	DpValue *values;
	DpBuilder b;
	int n;

	if (!array_arg(node, 0, state, &array))
		return dp_result_null(result);
	n = dp_array_values(&array, &values);
	dp_result_builder(&b, array.len);
	dp_builder_begin_array(&b);
	while (n-- > 0)
		dp_builder_append_value(&b, NULL, 0, &values[n]);
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/*
 * ---------------------------------------------------------------- an expression for each element
 */

/*
 * The name of the variable that a field gives, or the usual one.
 */
static void
open_variable(DpCompiler *c, DpScope *scope, const DpElement *as, const char *usual)
{
	if (as->name == NULL)
	{
		dp_scope_open(c, scope, usual, strlen(usual));
		return;
	}
	if (as->value.type != DP_TYPE_STRING)
		dp_compile_error(c, "\"as\" needs a string, not %s", dp_type_name(as->value.type));
	dp_scope_open(c, scope, DP_STRING_DATA(&as->value), DP_STRING_LEN(&as->value));
}

/*
 * $map and $filter: the input, the expression with the variable in sight and,
 * for $filter, the limit.
 */
static DpNode *
foreach_compile(DpCompiler *c, const DpOperator *op, const DpValue *spec)
{
	DpElement elements[DP_MOST_NAMED];
	const DpScope *saved = c->scope;
	DpScope *scope = palloc(sizeof(DpScope));
	DpNode *node = dp_node_make(c, op->eval, op, 3);

	if (dp_compile_arguments(c, op->name, op->names, spec, elements) == 4 &&
		elements[3].name != NULL)
		node->args[2] = dp_compile_field(c, &elements[3]);
	node->args[0] = dp_compile_field(c, &elements[0]);
	open_variable(c, scope, &elements[1], "this");
	node->slot = scope->slot;
	node->args[1] = dp_compile_field(c, &elements[2]);
	dp_scopes_close(c, saved);
	return node;
}

/*
 * $map: what is missing becomes null.
 */
static bool
map_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue array;
	DpBuilder b;
	DpIter iter;
	DpLoop loop;

	if (!array_arg(node, 0, state, &array))
		return dp_result_null(result);
	dp_result_builder(&b, array.len);
	dp_builder_begin_array(&b);
	dp_iter_init_value(&iter, &array);
	dp_loop_begin(&loop);
	while (dp_iter_next_value(&iter, &state->variables[node->slot]))
	{
		DpValue v;

		dp_loop_round(&loop);
		if (dp_arg(node, 1, state, &v))
			dp_builder_append_value(&b, NULL, 0, &v);
		else
			dp_builder_append_null(&b, NULL, 0);
	}
	dp_loop_end(&loop);
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/*
 * $filter
 */
static bool
filter_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue array;
	DpValue v;
	DpBuilder b;
	DpIter iter;
	DpLoop loop;
	int32 limit = PG_INT32_MAX;

	if (!array_arg(node, 0, state, &array))
		return dp_result_null(result);
	dp_arg(node, 2, state, &v);
	if (!dp_is_nullish(&v))
	{
		limit = dp_int_operand(node, &v, "limit");
		if (limit < 1)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs a limit greater than 0");
	}
	dp_result_builder(&b, 0);
	dp_builder_begin_array(&b);
	dp_iter_init_value(&iter, &array);
	dp_loop_begin(&loop);
	while (limit > 0)
	{
		DpValue element;

		if (!dp_iter_next_value(&iter, &element))
			break;
		dp_loop_round(&loop);
		state->variables[node->slot] = element;
		dp_arg(node, 1, state, &v);
		if (dp_expr_is_true(&v))
		{
			dp_builder_append_value(&b, NULL, 0, &element);
			limit--;
		}
	}
	dp_loop_end(&loop);
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/*
 * $reduce: {input, initialValue, in} with $$this and $$value.
 */
static DpNode *
reduce_compile(DpCompiler *c, const DpOperator *op, const DpValue *spec)
{
	DpElement elements[DP_MOST_NAMED];
	const DpScope *saved = c->scope;
	DpScope *scopes = palloc(sizeof(DpScope) * 2);
	DpNode *node = dp_node_make(c, op->eval, op, 3);

	dp_compile_arguments(c, op->name, "input initialValue in", spec, elements);
	node->args[0] = dp_compile_field(c, &elements[0]);
	node->args[1] = dp_compile_field(c, &elements[1]);
	dp_scope_open(c, &scopes[0], "this", 4);
	dp_scope_open(c, &scopes[1], "value", 5);
	node->slot = scopes[0].slot;
	node->args[2] = dp_compile_field(c, &elements[2]);
	dp_scopes_close(c, saved);
	return node;
}

/*
 * The value of a round is kept in one of two buffers, which take turns, because
 * the next round still reads it.
 */
static bool
reduce_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue array;
	DpIter iter;
	DpLoop loop;
	StringInfoData kept[2];
	int turn = 0;
	DpValue value;

	if (!array_arg(node, 0, state, &array))
		return dp_result_null(result);
	initStringInfo(&kept[0]);
	initStringInfo(&kept[1]);
	dp_arg(node, 1, state, &value);
	dp_iter_init_value(&iter, &array);
	dp_loop_begin(&loop);
	for (;;)
	{
		DpValue element;

		if (!dp_iter_next_value(&iter, &element))
			break;
		dp_loop_round(&loop);
		state->variables[node->slot] = element;
		state->variables[node->slot + 1] = value;
		dp_arg(node, 2, state, &value);
		if (value.type != DP_TYPE_EOD)
		{
			resetStringInfo(&kept[turn]);
			appendBinaryStringInfo(&kept[turn], (const char *) value.data, value.len);
			value.data = (const uint8 *) kept[turn].data;
			turn = 1 - turn;
		}
	}
	dp_loop_end(&loop);
	*result = value;
	return value.type != DP_TYPE_EOD;
}

const DpOperator dp_operators_array[] = {
	{ .name = "$arrayElemAt", .eval = elemat_eval, .min = 2, .max = 2 },
	{ .name = "$concatArrays", .eval = concatarrays_eval, .min = 0, .max = -1 },
	{ .name = "$filter",
	  .eval = filter_eval,
	  .compile = foreach_compile,
	  .names = "input ?as cond ?limit" },
	{ .name = "$first", .eval = first_eval, .min = 1, .max = 1, .which = OP_FIRST },
	{ .name = "$firstN", .eval = firstn_eval, .names = "input n", .which = OP_FIRST },
	{ .name = "$in", .eval = in_eval, .min = 2, .max = 2 },
	{ .name = "$indexOfArray", .eval = indexofarray_eval, .min = 2, .max = 4 },
	{ .name = "$isArray", .eval = isarray_eval, .min = 1, .max = 1 },
	{ .name = "$last", .eval = first_eval, .min = 1, .max = 1, .which = OP_LAST },
	{ .name = "$lastN", .eval = firstn_eval, .names = "input n", .which = OP_LAST },
	{ .name = "$map", .eval = map_eval, .compile = foreach_compile, .names = "input ?as in" },
	{ .name = "$reduce", .eval = reduce_eval, .compile = reduce_compile },
	{ .name = "$reverseArray", .eval = reverse_eval, .min = 1, .max = 1 },
	{ .name = "$size", .eval = size_eval, .min = 1, .max = 1 },
	{ .name = "$slice", .eval = slice_eval, .min = 2, .max = 3 },
	{ NULL }
};
