/*
 * selectivity_filter.c
 *		Estimates for filters: from the nodes of a compiled filter and the statistics of their
 *		paths.
 *
 * Two conditions on the same path that form a range are estimated together.  Conditions inside
 * $elemMatch are estimated for one element of the array, and converted to documents by the lengths
 * of the arrays.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/selfuncs.h"

#include "index/stats/selectivity_path.h"
#include "mql/regex.h"

static double
node_probability(const DpEstimator *estimator, const DpScope *scope, const DpFilterNode *node);
static double
conjunction(const DpEstimator *estimator, const DpScope *scope, DpFilterNode **nodes, int nnodes);
static double
disjunction(const DpEstimator *estimator, const DpScope *scope, DpFilterNode **nodes, int n);
static double
estimate_condition(const DpEstimator *estimator, const DpScope *scope, const DpFilterNode *node);
static double estimate_range(const DpEstimator *estimator, const DpScope *scope,
							 const DpFilterNode *node, const DpFilterNode *partner);
static double estimate_equal(const DpEstimator *estimator, const DpScope *scope,
							 const DpKnown *known, const DpValue *value);
static double estimate_in(const DpEstimator *estimator, const DpScope *scope, const DpKnown *known,
						  const DpFilterNode *node);
static double estimate_regex(const DpScope *scope, const DpKnown *known, const DpFilterNode *node);
static double element_match(const DpEstimator *estimator, const DpScope *scope,
							const DpKnown *known, const DpFilterNode *node);
static double uninformed(const DpFilterNode *node);

double
dp_estimate_filter(DpEstimator *estimator, const DpFilter *filter)
{
	return dp_estimate_node(estimator, filter->root);
}

double
dp_estimate_node(DpEstimator *estimator, const DpFilterNode *node)
{
	DpScope scope = { DP_SCOPE_DOCUMENT, NULL, NULL, 0 };
	double result;

	result = node_probability(estimator, &scope, node) * (1.0 - estimator->null_frac);
	CLAMP_PROBABILITY(result);
	return result;
}

/*
 * The probability that a node holds.
 */
static double
node_probability(const DpEstimator *estimator, const DpScope *scope, const DpFilterNode *node)
{
	double result;
	DpFilterNode *one = (DpFilterNode *) node;

	check_stack_depth();
	switch (node->op)
	{
		case FILTER_TRUE:
			return 1.0;
		case FILTER_FALSE:
			return 0.0;
		case FILTER_AND:
			result = conjunction(estimator, scope, node->u.children.nodes, node->u.children.n);
			break;
		case FILTER_OR:
			result = disjunction(estimator, scope, node->u.children.nodes, node->u.children.n);
			break;
		case FILTER_NOR:
			result =
				1.0 - disjunction(estimator, scope, node->u.children.nodes, node->u.children.n);
			break;
		case FILTER_SCHEMA:
			return 0.5;
		case FILTER_EXPR:
			return DEFAULT_INEQ_SEL;
		default:
			result = conjunction(estimator, scope, &one, 1);
			break;
	}
	CLAMP_PROBABILITY(result);
	return result;
}

/* ---------------------------------------------------------------- trees */

/* Whether the node is one end of a range. */
static inline bool
is_range(const DpFilterNode *node)
{
	return (node->op == FILTER_LT || node->op == FILTER_LTE || node->op == FILTER_GT ||
			node->op == FILTER_GTE) &&
		   node->value.type != DP_TYPE_NULL && node->value.type != DP_TYPE_UNDEFINED &&
		   node->value.type != DP_TYPE_MINKEY && node->value.type != DP_TYPE_MAXKEY &&
		   !dp_type_is_container(node->value.type);
}

static inline bool
is_lower(const DpFilterNode *node)
{
	return node->op == FILTER_GT || node->op == FILTER_GTE;
}

static inline bool
same_path(const DpFilterNode *a, const DpFilterNode *b)
{
	return a->path == b->path ||
		   (a->path->namelen == b->path->namelen && a->path->alone == b->path->alone &&
			memcmp(a->path->name, b->path->name, a->path->namelen) == 0);
}

/* True if the first condition's path equals the second's or is a prefix of it. */
static bool
path_begins(const DpFilterNode *a, const DpFilterNode *b)
{
	return a->path->namelen <= b->path->namelen &&
		   memcmp(a->path->name, b->path->name, a->path->namelen) == 0 &&
		   (a->path->namelen == b->path->namelen || b->path->name[a->path->namelen] == '.');
}

/* The nodes of a conjunction and those of the conjunctions below it. */
static void
flatten(DpFilterNode **nodes, int n, DpFilterNode ***all, int *nall, int *room)
{
	for (int i = 0; i < n; i++)
	{
		if (nodes[i]->op == FILTER_AND)
		{
			flatten(nodes[i]->u.children.nodes, nodes[i]->u.children.n, all, nall, room);
			continue;
		}
		if (*nall == *room)
		{
			*room *= 2;
			*all = repalloc(*all, *room * sizeof(DpFilterNode *));
		}
		(*all)[(*nall)++] = nodes[i];
	}
}

/* True if a condition holds only for existing values. */
static bool
needs_value(const DpFilterNode *node)
{
	if (node->op < FILTER_FIRST_CONDITION || node->op == FILTER_EXISTS)
		return false;
	if (node->op == FILTER_IN)
		return !node->u.in.has_null;
	return node->value.type != DP_TYPE_NULL && node->value.type != DP_TYPE_UNDEFINED &&
		   node->value.type != DP_TYPE_MINKEY && node->value.type != DP_TYPE_MAXKEY;
}

/*
 * The probability that all of the nodes hold.
 */
static double
conjunction(const DpEstimator *estimator, const DpScope *scope, DpFilterNode **nodes, int nnodes)
{
	int room = nnodes + 8;
	int n = 0;
	DpFilterNode **all = palloc(room * sizeof(DpFilterNode *));
	bool *done;
	double each[DP_COMBINE_MAX];
	int neach = 0;

	flatten(nodes, nnodes, &all, &n, &room);
	done = palloc0(n * sizeof(bool));
	for (int i = 0; i < n; i++)
	{
		const DpFilterNode *node = all[i];
		const DpFilterNode *partner = NULL;
		bool implied = false;

		CHECK_FOR_INTERRUPTS();
		if (done[i])
			continue;
		if (node->op < FILTER_FIRST_CONDITION)
		{
			dp_combine_add(each, &neach, node_probability(estimator, scope, node));
			continue;
		}
		/* others give information about these only */
		for (int j = 0; j < n && !implied && (node->op == FILTER_EXISTS || is_range(node)); j++)
		{
			const DpFilterNode *other = all[j];

			if (j == i || other->op < FILTER_FIRST_CONDITION)
				continue;
			if (node->op == FILTER_EXISTS)
				implied = needs_value(other) && path_begins(node, other);
			else if (j > i && partner == NULL && !done[j] && is_range(node) && is_range(other) &&
					 is_lower(node) != is_lower(other) && same_path(node, other) &&
					 dp_type_class[node->value.type] == dp_type_class[other->value.type])
			{
				partner = other;
				done[j] = true;
			}
		}
		if (implied)
			continue;
		if (estimator->stats == NULL)
			dp_combine_add(each, &neach,
						   partner != NULL ? DEFAULT_RANGE_INEQ_SEL : uninformed(node));
		else if (is_range(node))
			dp_combine_add(each, &neach, estimate_range(estimator, scope, node, partner));
		else
			dp_combine_add(each, &neach, estimate_condition(estimator, scope, node));
	}
	pfree(done);
	pfree(all);
	return dp_combine(each, neach);
}

/*
 * The probability that one of the nodes holds.
 */
static double
disjunction(const DpEstimator *estimator, const DpScope *scope, DpFilterNode **nodes, int n)
{
	double none = 1.0;
	double sum = 0;
	bool apart = true; /* no document can satisfy two of them */
	DpKnown known;

	for (int i = 0; i < n; i++)
	{
		double one = node_probability(estimator, scope, nodes[i]);

		none *= 1.0 - one;
		sum += one;
		apart = apart && (nodes[i]->op == FILTER_EQ || nodes[i]->op == FILTER_IN) &&
				same_path(nodes[i], nodes[0]);
	}
	if (apart && n > 1 && estimator->stats != NULL)
	{
		dp_scope_lookup(estimator, scope, nodes[0]->path->path, &known);
		if (known.path != NULL && !known.path->multiple)
			return Min(sum, 1.0);
	}
	return 1.0 - none;
}

/* ---------------------------------------------------------------- conditions */

static bool
test_item(const DpValue *item, const void *arg)
{
	return dp_filter_test((const DpFilterNode *) arg, item);
}

/*
 * A condition that is not one end of a range.
 */
static double
estimate_condition(const DpEstimator *estimator, const DpScope *scope, const DpFilterNode *node)
{
	DpKnown known;
	DpShare share;
	double documents = 0;

	dp_scope_lookup(estimator, scope, node->path->path, &known);
	switch (node->op)
	{
		case FILTER_EXISTS:
			return dp_scope_exists(estimator, scope, &known);
		case FILTER_EQ:
			return estimate_equal(estimator, scope, &known, &node->value);
		case FILTER_IN:
			return estimate_in(estimator, scope, &known, node);
		case FILTER_LT:
		case FILTER_LTE:
		case FILTER_GT:
		case FILTER_GTE:
			switch (node->value.type)
			{
				case DP_TYPE_NULL:
				case DP_TYPE_UNDEFINED:
					if (node->op == FILTER_LT || node->op == FILTER_GT)
						return 0.0;
					return dp_scope_null(estimator, scope, &known);
				case DP_TYPE_MINKEY:
				case DP_TYPE_MAXKEY:
					/* everything else is on one side, what is missing too */
					if (is_lower(node) != (node->value.type == DP_TYPE_MINKEY))
						return 0.0;
					return 1.0 - estimate_equal(estimator, scope, &known, &node->value);
				default:
					if (known.path == NULL)
						return dp_scope_unknown(estimator);
					documents = known.path->types[dp_stats_type_number(node->value.type)];
					return dp_scope_scale(scope, &known, documents * DEFAULT_INEQ_SEL);
			}
		default:
			break;
	}

	if (known.path == NULL)
		return dp_scope_unknown(estimator);
	switch (node->op)
	{
		case FILTER_TYPE:
			for (int i = 0; i < DP_STATS_TYPES; i++)
				if (dp_type_set_has(&node->u.types, dp_stats_type_of_number(i)))
					documents += known.path->types[i];
			return dp_scope_scale(scope, &known, Min(documents, known.path->reached));
		case FILTER_SIZE:
			return dp_scope_scale(scope, &known,
								  known.path->arrays * dp_path_length(known.path, node->u.size));
		case FILTER_ELEM_OBJECT:
		case FILTER_ELEM_VALUE:
			return element_match(estimator, scope, &known, node);
		case FILTER_REGEX:
			return estimate_regex(scope, &known, node);
		default:
			share = dp_path_share_test(known.path, test_item, node);
			return dp_scope_any(scope, &known, &share);
	}
}

/*
 * One end of a range, or both.
 */
static double
estimate_range(const DpEstimator *estimator, const DpScope *scope, const DpFilterNode *node,
			   const DpFilterNode *partner)
{
	DpClass class = dp_type_class[node->value.type];
	DpLimit lower = { -1, class };
	DpLimit upper = { 1, class };
	DpLimit begin = lower;
	DpLimit end = upper;
	DpKnown known;
	DpShare share;
	double result;

	dp_scope_lookup(estimator, scope, node->path->path, &known);
	if (known.path == NULL)
		return dp_scope_unknown(estimator);
	for (int i = 0; i < 2; i++)
	{
		const DpFilterNode *one = i == 0 ? node : partner;
		DpLimit *limit;

		if (one == NULL)
			continue;
		limit = is_lower(one) ? &lower : &upper;
		limit->edge = 0;
		limit->value = one->value;
		limit->equal_below = one->op == FILTER_GT || one->op == FILTER_LTE;
	}
	share = dp_path_share_range(known.path, &lower, &upper);
	if (scope->kind == DP_SCOPE_DOCUMENT && partner != NULL && known.path->multiple &&
		!known.positional)
	{
		/*
		 * Different items may satisfy the two ends: all documents with items, except those without
		 * any above the lower, or any below the upper end.
		 */
		DpShare above = dp_path_share_range(known.path, &lower, &end);
		DpShare below = dp_path_share_range(known.path, &begin, &upper);
		DpShare all = dp_path_share_range(known.path, &begin, &end);

		result = known.path->item_docs - dp_path_none(known.path, above.items) -
				 dp_path_none(known.path, below.items) + dp_path_none(known.path, all.items);
		return Max(result, dp_path_any(known.path, &share));
	}
	return dp_scope_any(scope, &known, &share);
}

/*
 * Equality with a value of any type.
 */
static double
estimate_equal(const DpEstimator *estimator, const DpScope *scope, const DpKnown *known,
			   const DpValue *value)
{
	DpShare share;

	if (value->type == DP_TYPE_NULL)
		return dp_scope_null(estimator, scope, known);
	if (known->path == NULL)
		return dp_scope_unknown(estimator);
	if (value->type == DP_TYPE_UNDEFINED)
		return dp_scope_scale(scope, known, known->path->types[DP_TYPE_UNDEFINED]);
	if (dp_type_is_container(value->type))
	{
		DpScope inner = { scope->kind, scope->base, known->key, known->keylen };
		int type = dp_stats_type_number(value->type);
		double result = dp_scope_scale(scope, known, known->path->types[type]);

		if (value->type == DP_TYPE_ARRAY)
			result *= dp_path_length(known->path, dp_document_count(value->data, value->len));
		if (known->path->documents > 0 && known->path->arrays > 0 &&
			value->type == DP_TYPE_DOCUMENT)
		{
			/* elements of an array are meant too */
			inner.kind = DP_SCOPE_CONTAINER;
			inner.base = known->path;
			return Min(result, dp_path_any_element(known->path,
												   dp_estimate_contains(estimator, &inner, value)));
		}
		return Min(result, dp_estimate_contains(estimator, &inner, value));
	}
	share = dp_path_share_equal(estimator, known->path, value);
	return dp_scope_any(scope, known, &share);
}

/*
 * $in: equality with any of the values, or one of the patterns.
 */
static double
estimate_in(const DpEstimator *estimator, const DpScope *scope, const DpKnown *known,
			const DpFilterNode *node)
{
	const DpFilterIn *in = &node->u.in;
	DpShare share = { 0, 0, 0 };
	double none = 1.0;
	double others = 0;

	if (in->has_null)
		others += dp_scope_null(estimator, scope, known);
	if (known->path == NULL)
	{
		others += dp_scope_unknown(estimator) * Min(in->nvalues + in->nregexes, 10);
		return Min(others, 1.0);
	}
	for (int i = 0; i < in->nvalues; i++)
	{
		const DpValue *value = &in->values[i];
		DpShare one;

		if (value->type == DP_TYPE_NULL && in->has_null)
			continue;
		if (dp_type_is_container(value->type) || value->type == DP_TYPE_NULL ||
			value->type == DP_TYPE_UNDEFINED)
		{
			others += estimate_equal(estimator, scope, known, value);
			continue;
		}
		one = dp_path_share_equal(estimator, known->path, value);
		none *= 1.0 - dp_scope_any(scope, known, &one);
		dp_share_add(&share, &one);
	}
	for (int i = 0; i < in->nregexes; i++)
	{
		DpFilterNode pattern = { FILTER_REGEX, node->path };

		pattern.u.regex.regex = in->regexes[i];
		pattern.value = in->regex_values[i];
		dp_regex_split(&in->regex_values[i], &pattern.u.regex.pattern, &pattern.u.regex.len,
					   &pattern.u.regex.options, &pattern.u.regex.optlen);
		others += estimate_regex(scope, known, &pattern);
	}
	/* different values of one field exclude each other, elements of one array do not */
	if (scope->kind == DP_SCOPE_DOCUMENT && known->path->multiple)
		others += 1.0 - none;
	else
		others += dp_scope_any(scope, known, &share);
	return Min(others, 1.0);
}

/*
 * $regex: the share of known items that match; for an anchored pattern, at most the items in the
 * range of its prefix.
 */
static double
estimate_regex(const DpScope *scope, const DpKnown *known, const DpFilterNode *node)
{
	DpShare share = dp_path_share_test(known->path, test_item, node);
	const char *literal;
	uint32 n;

	if (dp_regex_literal_prefix(node->u.regex.pattern, node->u.regex.len, node->u.regex.options,
								node->u.regex.optlen, &literal, &n))
	{
		DpLimit lower = { 0, DP_CLASS_STRING };
		DpLimit upper = { 0, DP_CLASS_STRING };
		uint8 *from = palloc(n + 5);
		uint8 *to = palloc(n + 6);
		DpShare between;

		dp_put_int32(from, n + 1);
		memcpy(from + 4, literal, n);
		from[4 + n] = 0;
		dp_put_int32(to, n + 2);
		memcpy(to + 4, literal, n);
		to[4 + n] = 0xFF; /* behind every character */
		to[5 + n] = 0;
		lower.value.type = upper.value.type = DP_TYPE_STRING;
		lower.value.data = from;
		lower.value.len = n + 5;
		upper.value.data = to;
		upper.value.len = n + 6;
		between = dp_path_share_range(known->path, &lower, &upper);
		if (known->path->nhist > 1)
		{
			/* text is not spread evenly between two bounds: a fifth for each character */
			double least = Min(pow(0.2, n), 0.3 / known->path->nhist);

			between.docs = Max(between.docs, known->path->rest_docs * least);
			between.items = Max(between.items, known->path->rest_items * least);
		}
		/* the pattern is only this prefix, or shorter than the histogram can resolve */
		if (n + 1 == node->u.regex.len || between.docs < share.docs)
			share = between;
	}
	return dp_scope_any(scope, known, &share);
}

/* ---------------------------------------------------------------- elements */

/* $elemMatch: an element of the array satisfies all conditions. */
static double
element_match(const DpEstimator *estimator, const DpScope *scope, const DpKnown *known,
			  const DpFilterNode *node)
{
	const DpPathStats *path = known->path;
	DpScope inner = { DP_SCOPE_ELEMENT, path, known->key, known->keylen };
	double each;
	double result;

	if (path->arrays <= 0)
		return dp_scope_unknown(estimator);
	if (node->op == FILTER_ELEM_OBJECT)
		inner.kind = DP_SCOPE_CONTAINER;
	each = conjunction(estimator, &inner, node->u.children.nodes, node->u.children.n);
	if (inner.kind == DP_SCOPE_CONTAINER)
		each *= path->elements > 0 ? Min(path->documents / path->elements, 1.0) : 0;
	CLAMP_PROBABILITY(each);
	if (scope->kind != DP_SCOPE_DOCUMENT)
	{
		double n = scope->base->documents > 0 ? path->elements / scope->base->documents : 0;

		return 1.0 - pow(1.0 - each, n);
	}
	result = dp_path_any_element(path, each);

	/*
	 * at most the documents that satisfy it in any elements, and as many if there is one condition
	 */
	if (node->op == FILTER_ELEM_OBJECT)
	{
		DpScope outer = { DP_SCOPE_DOCUMENT, path, known->key, known->keylen };
		int room = node->u.children.n + 8;
		int n = 0;
		DpFilterNode **all = palloc(room * sizeof(DpFilterNode *));

		flatten(node->u.children.nodes, node->u.children.n, &all, &n, &room);
		for (int i = 0; i < n; i++)
			if (all[i]->op >= FILTER_FIRST_CONDITION && needs_value(all[i]) &&
				all[i]->op != FILTER_ELEM_OBJECT && all[i]->op != FILTER_ELEM_VALUE)
			{
				double one = conjunction(estimator, &outer, &all[i], 1);

				result = n == 1 ? one : Min(result, one);
			}
		pfree(all);
	}
	return Min(result * known->position, path->arrays);
}

/* ---------------------------------------------------------------- no statistics */

/*
 * A condition on a column that was never analyzed.
 */
static double
uninformed(const DpFilterNode *node)
{
	switch (node->op)
	{
		case FILTER_EQ:
			return DEFAULT_EQ_SEL;
		case FILTER_IN:
			return Min(DEFAULT_EQ_SEL * (node->u.in.nvalues + node->u.in.nregexes), 0.5);
		case FILTER_LT:
		case FILTER_LTE:
		case FILTER_GT:
		case FILTER_GTE:
			return DEFAULT_INEQ_SEL;
		case FILTER_EXISTS:
		case FILTER_TYPE:
			return DP_DEFAULT_EXISTS;
		default:
			return DP_DEFAULT_CONDITION;
	}
}
