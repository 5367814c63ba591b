/*
 * expression_set.c
 *		Operators that treat arrays as sets: order and duplicates do not matter.
 *
 * Sets are sorted, so that the operators are not quadratic.  Results are in the order of values,
 * except that $setDifference keeps the order of its first argument.
 */
#include "postgres.h"

#include "bson/compare.h"
#include "mql/expression_node.h"

/* So many values of a union are made a set before there are more. */
#define MANY_VALUES 100000

enum
{
	OP_ALL,
	OP_ANY
};

/* Sorts values and leaves each once; how many are left. */
static int
make_set(DpValue *values, int n)
{
	int kept = 0;

	if (n > 0)
		dp_values_sort(values, n);
	for (int i = 0; i < n; i++)
		if (i == 0 || dp_value_compare(&values[i], &values[kept - 1]) != 0)
			values[kept++] = values[i];
	return kept;
}

/*
 * An array as a sorted set.  Returns false if it is null or missing.
 */
static bool
set_of(const DpNode *node, const DpValue *array, DpValue **values, int *n)
{
	if (dp_is_nullish(array))
		return false;
	if (array->type != DP_TYPE_ARRAY)
		dp_node_type_error(node, "arrays", array);
	*n = dp_array_values(array, values);
	*n = make_set(*values, *n);
	return true;
}

/* The same for an argument. */
static bool
set_arg(const DpNode *node, int i, DpExprState *state, DpValue **values, int *n)
{
	DpValue array;

	dp_arg(node, i, state, &array);
	return set_of(node, &array, values, n);
}

/* The same for operators that do not take null. */
static void
set_required(const DpNode *node, int i, DpExprState *state, DpValue **values, int *n)
{
	DpValue array;

	dp_arg(node, i, state, &array);
	if (!set_of(node, &array, values, n))
		dp_node_type_error(node, "arrays", &array);
}

/* Values as an array. */
static bool
set_result(const DpValue *values, int n, DpValue *result)
{
	DpBuilder b;

	dp_result_builder(&b, 0);
	dp_builder_begin_array(&b);
	for (int i = 0; i < n; i++)
		dp_builder_append_value(&b, NULL, 0, &values[i]);
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/*
 * $setUnion
 */
static bool
union_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue *all = NULL;
	int n = 0;
	int kept;
	int enough = MANY_VALUES;

	for (int i = 0; i < node->nargs; i++)
	{
		DpValue *values;
		int more;

		if (!set_arg(node, i, state, &values, &more))
			return dp_result_null(result);
		if (all == NULL)
			all = palloc(sizeof(DpValue) * Max(more, 1));
		else
			all = repalloc_huge(all, sizeof(DpValue) * Max(n + more, 1));
		memcpy(all + n, values, sizeof(DpValue) * more);
		pfree(values);
		n += more;
		if (n > enough)
		{
			n = make_set(all, n);
			enough = Max(enough, n * 2);
		}
	}
	/* equal values of different arguments: whichever stands first */
	kept = make_set(all, n);
	return set_result(all, kept, result);
}

/*
 * $setIntersection
 */
static bool
intersection_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue *common = NULL;
	int n = 0;

	for (int i = 0; i < node->nargs; i++)
	{
		DpValue *values;
		int size;
		int kept = 0;

		if (!set_arg(node, i, state, &values, &size))
			return dp_result_null(result);
		if (i == 0)
		{
			common = values;
			n = size;
			continue;
		}
		for (int k = 0; k < n; k++)
			if (dp_values_find(values, size, &common[k]) >= 0)
				common[kept++] = common[k];
		pfree(values);
		n = kept;
	}
	return set_result(common, n, result);
}

/*
 * $setDifference: what is in the first and not in the second, once.
 */
static bool
difference_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue *a;
	DpValue *b;
	DpValue *seen;
	DpValue array;
	DpValue other;
	bool *taken;
	int na;
	int nb;
	int nseen;
	int kept = 0;

	dp_arg(node, 0, state, &array);
	dp_arg(node, 1, state, &other);
	if (dp_is_nullish(&array) || dp_is_nullish(&other))
		return dp_result_null(result);
	(void) set_of(node, &array, &seen, &nseen);
	(void) set_of(node, &other, &b, &nb);
	na = dp_array_values(&array, &a);
	taken = palloc0(sizeof(bool) * Max(nseen, 1));
	for (int i = 0; i < na; i++)
	{
		int low = 0;
		int high = nseen - 1;

		while (low < high)
		{
			int mid = low + (high - low) / 2;

			if (dp_value_compare(&seen[mid], &a[i]) < 0)
				low = mid + 1;
			else
				high = mid;
		}
		if (!taken[low] && dp_values_find(b, nb, &a[i]) < 0)
			a[kept++] = a[i];
		taken[low] = true;
	}
	return set_result(a, kept, result);
}

/*
 * $setEquals
 */
static bool
equals_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue *first;
	int nfirst;
	bool equal = true;

	set_required(node, 0, state, &first, &nfirst);
	for (int i = 1; i < node->nargs; i++)
	{
		DpValue *values;
		int n;

		set_required(node, i, state, &values, &n);
		equal = equal && n == nfirst;
		for (int k = 0; k < n && equal; k++)
			equal = dp_value_compare(&values[k], &first[k]) == 0;
	}
	return dp_result_bool(result, equal);
}

/*
 * $setIsSubset: whether the second holds all of the first.
 */
static bool
subset_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue *a;
	DpValue *b;
	int na;
	int nb;
	bool subset = true;

	set_required(node, 0, state, &a, &na);
	set_required(node, 1, state, &b, &nb);
	for (int i = 0; i < na && subset; i++)
		subset = dp_values_find(b, nb, &a[i]) >= 0;
	return dp_result_bool(result, subset);
}

/*
 * $allElementsTrue and $anyElementTrue
 */
static bool
elements_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	bool all = node->op->which == OP_ALL;
	DpValue array;
	DpIter iter;
	DpValue v;

	dp_arg(node, 0, state, &array);
	if (array.type != DP_TYPE_ARRAY)
		dp_node_type_error(node, "an array", &array);
	dp_iter_init_value(&iter, &array);
	while (dp_iter_next_value(&iter, &v))
		if (dp_expr_is_true(&v) != all)
			return dp_result_bool(result, !all);
	return dp_result_bool(result, all);
}

const DpOperator dp_operators_set[] = {
	{ .name = "$allElementsTrue", .eval = elements_eval, .min = 1, .max = 1, .which = OP_ALL },
	{ .name = "$anyElementTrue", .eval = elements_eval, .min = 1, .max = 1, .which = OP_ANY },
	{ .name = "$setDifference", .eval = difference_eval, .min = 2, .max = 2 },
	{ .name = "$setEquals", .eval = equals_eval, .min = 2, .max = -1 },
	{ .name = "$setIntersection", .eval = intersection_eval, .min = 0, .max = -1 },
	{ .name = "$setIsSubset", .eval = subset_eval, .min = 2, .max = 2 },
	{ .name = "$setUnion", .eval = union_eval, .min = 0, .max = -1 },
	{ NULL }
};
