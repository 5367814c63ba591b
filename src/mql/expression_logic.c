/*
 * expression_logic.c
 *		Operators that compare, decide and bind variables: $eq and the like,
 *		$and, $or, $not, $cond, $ifNull, $switch, $let, $literal.
 */
#include "postgres.h"

#include "bson/compare.h"
#include "mql/expression_node.h"

enum
{
	OP_CMP,
	OP_EQ,
	OP_NE,
	OP_GT,
	OP_GTE,
	OP_LT,
	OP_LTE
};

/* Compares in the order of all values.  Missing values come first, equal to undefined. */
static bool
compare_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue a;
	DpValue b;
	int order;

	dp_arg(node, 0, state, &a);
	dp_arg(node, 1, state, &b);
	if (a.type == DP_TYPE_EOD || b.type == DP_TYPE_EOD)
		order = (a.type != DP_TYPE_EOD) - (b.type != DP_TYPE_EOD);
	else
		order = dp_value_compare(&a, &b);
	switch (node->op->which)
	{
		case OP_CMP:
			return dp_result_int32(result, (order > 0) - (order < 0));
		case OP_EQ:
			return dp_result_bool(result, order == 0);
		case OP_NE:
			return dp_result_bool(result, order != 0);
		case OP_GT:
			return dp_result_bool(result, order > 0);
		case OP_GTE:
			return dp_result_bool(result, order >= 0);
		case OP_LT:
			return dp_result_bool(result, order < 0);
		default:
			return dp_result_bool(result, order <= 0);
	}
}

/* The truth of an argument. */
static bool
arg_is_true(const DpNode *node, int i, DpExprState *state)
{
	DpValue v;

	dp_arg(node, i, state, &v);
	return dp_expr_is_true(&v);
}

/* $and: stops at the first false argument. */
static bool
and_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	for (int i = 0; i < node->nargs; i++)
		if (!arg_is_true(node, i, state))
			return dp_result_bool(result, false);
	return dp_result_bool(result, true);
}

/*
 * $or
 */
static bool
or_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	for (int i = 0; i < node->nargs; i++)
		if (arg_is_true(node, i, state))
			return dp_result_bool(result, true);
	return dp_result_bool(result, false);
}

/*
 * $not
 */
static bool
not_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	return dp_result_bool(result, !arg_is_true(node, 0, state));
}

/*
 * $cond: only the branch that is taken is evaluated.
 */
static bool
cond_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	return dp_arg(node, arg_is_true(node, 0, state) ? 1 : 2, state, result);
}

/*
 * $ifNull: the first that is not null, or the last.
 */
static bool
ifnull_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	for (int i = 0; i < node->nargs; i++)
	{
		dp_arg(node, i, state, result);
		if (!dp_is_nullish(result))
			return true;
	}
	return result->type != DP_TYPE_EOD;
}

/* $switch: pairs of condition and result, and last the default, or NULL. */
static bool
switch_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	for (int i = 0; i + 1 < node->nargs; i += 2)
		if (arg_is_true(node, i, state))
			return dp_arg(node, i + 1, state, result);
	if (node->args[node->nargs - 1] == NULL)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
					  "has no branch that applies, and no default");
	return dp_arg(node, node->nargs - 1, state, result);
}

/*
 * {branches: [{case: .., then: ..}, ..], default: ..}
 */
static DpNode *
switch_compile(DpCompiler *c, const DpOperator *op, const DpValue *spec)
{
	DpElement elements[DP_MOST_NAMED];
	DpValue *branches = &elements[0].value;
	DpElement branch[DP_MOST_NAMED];
	DpIter iter;
	DpValue value;
	DpNode *node;
	int n;

	dp_compile_arguments(c, op->name, "branches ?default", spec, elements);
	if (branches->type != DP_TYPE_ARRAY)
		dp_compile_error(c, "$switch needs an array of branches, not %s",
						 dp_type_name(branches->type));
	n = dp_array_count(branches->data, branches->len);
	if (n == 0)
		dp_compile_error(c, "$switch needs at least one branch");

	node = dp_node_make(c, op->eval, op, 2 * n + 1);
	dp_iter_init_value(&iter, branches);
	for (int i = 0; dp_iter_next_value(&iter, &value); i++)
	{
		dp_compile_arguments(c, "a branch of $switch", "case then", &value, branch);
		node->args[2 * i] = dp_compile_field(c, &branch[0]);
		node->args[2 * i + 1] = dp_compile_field(c, &branch[1]);
	}
	if (elements[1].name != NULL)
		node->args[2 * n] = dp_compile_field(c, &elements[1]);
	return node;
}

/*
 * $let: the variables' values, and last the expression that uses them.
 */
static bool
let_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	int n = node->nargs - 1;

	for (int i = 0; i < n; i++)
	{
		DpValue v;

		dp_arg(node, i, state, &v);
		state->variables[node->slot + i] = v;
	}
	return dp_arg(node, n, state, result);
}

/*
 * {vars: {name: expression, ..}, in: expression}
 */
static DpNode *
let_compile(DpCompiler *c, const DpOperator *op, const DpValue *spec)
{
	const DpScope *saved = c->scope;
	DpElement elements[DP_MOST_NAMED];
	DpValue *vars = &elements[0].value;
	DpIter iter;
	DpElement element;
	DpNode *node;
	DpScope *scopes;
	int n;

	dp_compile_arguments(c, op->name, "vars in", spec, elements);
	if (vars->type != DP_TYPE_DOCUMENT)
		dp_compile_error(c, "$let needs a document as its argument \"vars\"");
	n = dp_array_count(vars->data, vars->len);
	node = dp_node_make(c, op->eval, op, n + 1);
	scopes = palloc(sizeof(DpScope) * Max(n, 1));

	/* the variables do not see each other */
	dp_iter_init_value(&iter, vars);
	for (int i = 0; dp_iter_next(&iter, &element); i++)
		node->args[i] = dp_compile_field(c, &element);
	node->slot = c->nvariables;
	dp_iter_init_value(&iter, vars);
	for (int i = 0; dp_iter_next(&iter, &element); i++)
		dp_scope_open(c, &scopes[i], element.name, element.namelen);
	node->args[n] = dp_compile_field(c, &elements[1]);
	dp_scopes_close(c, saved);
	return node;
}

/* $literal: its argument is not evaluated. */
static DpNode *
literal_compile(DpCompiler *c, const DpOperator *op, const DpValue *spec)
{
	return dp_node_literal(c, spec);
}

const DpOperator dp_operators_logic[] = {
	{ .name = "$and", .eval = and_eval, .min = 0, .max = -1 },
	{ .name = "$cmp", .eval = compare_eval, .min = 2, .max = 2, .which = OP_CMP },
	{ .name = "$cond", .eval = cond_eval, .min = 3, .max = 3, .names = "if then else" },
	{ .name = "$const", .compile = literal_compile },
	{ .name = "$eq", .eval = compare_eval, .min = 2, .max = 2, .which = OP_EQ },
	{ .name = "$gt", .eval = compare_eval, .min = 2, .max = 2, .which = OP_GT },
	{ .name = "$gte", .eval = compare_eval, .min = 2, .max = 2, .which = OP_GTE },
	{ .name = "$ifNull", .eval = ifnull_eval, .min = 2, .max = -1 },
	{ .name = "$let", .eval = let_eval, .compile = let_compile },
	{ .name = "$literal", .compile = literal_compile },
	{ .name = "$lt", .eval = compare_eval, .min = 2, .max = 2, .which = OP_LT },
	{ .name = "$lte", .eval = compare_eval, .min = 2, .max = 2, .which = OP_LTE },
	{ .name = "$ne", .eval = compare_eval, .min = 2, .max = 2, .which = OP_NE },
	{ .name = "$not", .eval = not_eval, .min = 1, .max = 1 },
	{ .name = "$or", .eval = or_eval, .min = 0, .max = -1 },
	{ .name = "$switch", .eval = switch_eval, .compile = switch_compile },
	{ NULL }
};
