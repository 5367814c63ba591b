/*
 * query_conditions.c
 *		From a compiled filter to the conditions that an index can serve.
 *
 *		$eq, $in, $all			keys, exactly
 *		$gt .. $lt				a range of keys; both ends at one path are one range
 *		/^abc/					the strings with this prefix
 *		$elemMatch				its conditions at the paths below; by a pair if there is one
 *		$and, $or				trees; a branch of $or without conditions makes $or useless
 *		$not, $nor, $ne			only $exists: false and $ne: null
 *		null					equality finds missing fields, which only named paths have
 *		$size: 0				the key of the empty array
 *		$exists, $type			all keys of a path, or of a path and a class of values
 *		$size, $mod, $bits...,
 *		other $regex			only the $type
 *		$expr, $jsonSchema		nothing
 *
 * Of conditions that must all hold, some are chosen: see choose().
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/compare.h"
#include "bson/number.h"
#include "index/query.h"
#include "mql/regex.h"

/*
 * The cost of reading an index entry, of a range and of a single key; a visit to a document costs
 * 1.
 */
#define RANGE_COST 0.1
#define KEY_COST 0.02

/* The scope of a condition */
typedef enum Scope
{
	SCOPE_DOCUMENT,
	SCOPE_ELEMENT, /* a document that is an element of an array */
	SCOPE_VALUE    /* an element itself */
} Scope;

typedef struct Serving
{
	const DpKeyOptions *options;
	bool all;
	DpConditionEstimate estimate;
	void *arg;
	bool by_statistics; /* the choice was another one than usual */
} Serving;

/* Something that must hold, or must not. */
typedef struct Conjunct
{
	const DpFilterNode *node;
	bool negated;
	bool used;
} Conjunct;

typedef struct Conjuncts
{
	Conjunct *items;
	int n;
	int room;
} Conjuncts;

typedef struct ConditionList
{
	DpCondition **items;
	int n;
	int room;
} ConditionList;

static DpCondition *
serve(Serving *s, const DpFilterNode *node, bool negated, const DpPathChain *outer, Scope scope);
static DpCondition *
serve_all_of(Serving *s, Conjuncts *conjuncts, const DpPathChain *outer, Scope scope);
static DpCondition *serve_any_of(Serving *s, const DpFilterNode *node, bool negated,
								 const DpPathChain *outer, Scope scope);
static DpCondition *
serve_condition(Serving *s, const DpFilterNode *node, const DpPathChain *outer, Scope scope);
static DpCondition *
serve_negated(Serving *s, const DpFilterNode *node, const DpPathChain *outer, Scope scope);
static DpCondition *
serve_comparison(Serving *s, const DpFilterNode *node, const DpPathChain *outer, Scope scope);
static DpCondition *
serve_element(Serving *s, const DpFilterNode *node, const DpPathChain *outer, Scope scope);
static DpCondition *serve_pair(Serving *s, Conjuncts *conjuncts, const DpPathChain *chain);
static DpCondition *first_of_pair(Serving *s, DpCondition *condition);
static DpCondition *conjunction(Serving *s, ConditionList *list);
static void choose(Serving *s, ConditionList *list);

/* ---------------------------------------------------------------- making conditions */

static DpCondition all_documents = { DP_COND_ALL };
static DpCondition no_documents = { DP_COND_NONE };

static DpCondition *
make_condition(DpConditionOp op)
{
	DpCondition *condition = palloc0(sizeof(DpCondition));

	condition->op = op;
	return condition;
}

/* A condition on the values at the path of a node. */
static DpCondition *
make_lookup(DpConditionOp op, const DpFilterNode *node, const DpPathChain *outer, Scope scope)
{
	DpCondition *condition = make_condition(op);

	condition->node = node;
	condition->name = node->path;
	condition->chain.outer = outer;
	condition->chain.path = node->path->path;
	condition->in_value = scope == SCOPE_VALUE;
	condition->in_element = scope != SCOPE_DOCUMENT;
	return condition;
}

static void
add_condition(ConditionList *list, DpCondition *condition)
{
	if (list->n == list->room)
	{
		list->room = Max(4, list->room * 2);
		list->items = list->items == NULL
						  ? palloc(list->room * sizeof(DpCondition *))
						  : repalloc(list->items, list->room * sizeof(DpCondition *));
	}
	list->items[list->n++] = condition;
}

static DpCondition *
make_parent(DpConditionOp op, ConditionList *list)
{
	DpCondition *condition;

	if (list->n == 1 && (op == DP_COND_AND || op == DP_COND_OR))
		return list->items[0];
	condition = make_condition(op);
	condition->children = list->items;
	condition->nchildren = list->n;
	return condition;
}

static DpCondition *
make_types(const DpFilterNode *node, const DpPathChain *outer, Scope scope, int n,
		   const uint8 *types)
{
	DpCondition *condition = make_lookup(DP_COND_TYPES, node, outer, scope);

	for (int i = 0; i < n; i++)
		dp_type_set_add(&condition->types, types[i]);
	return condition;
}

/* ---------------------------------------------------------------- what the index has */

/* True if the index has all values at a chain of paths. */
static bool
is_covered(Serving *s, const DpPathChain *chain)
{
	return s->options->all_paths ||
		   (s->options->npaths > 0 && dp_key_options_has(s->options, dp_chain_path(chain)));
}

/*
 * Whether it has keys where the path is missing.  In $elemMatch that would be
 * missing from one element.
 */
static bool
knows_missing(Serving *s, const DpPath *path, const DpPathChain *outer)
{
	return outer == NULL && dp_key_options_missing(s->options, path) != NULL;
}

/* True if a pair can search for the value. */
static bool
good_in_pair(const DpValue *value, bool first)
{
	return !dp_type_is_container(value->type) &&
		   !(first && (value->type == DP_TYPE_NULL || value->type == DP_TYPE_UNDEFINED));
}

/*
 * True if the index can decide equality with a value there; for a document, some of its fields
 * suffice.
 */
static bool
value_covered(Serving *s, const DpPathChain *chain, const DpValue *value)
{
	DpIter iter;
	DpElement element;

	if (is_covered(s, chain))
		return true;
	if (!dp_type_is_container(value->type) || s->options->npaths == 0)
		return false;
	check_stack_depth();
	dp_iter_init_value(&iter, value);
	while (dp_iter_next(&iter, &element))
	{
		DpPathChain inner = { chain, NULL };

		if (value->type == DP_TYPE_ARRAY)
		{
			if (dp_type_is_container(element.value.type) && value_covered(s, chain, &element.value))
				return true;
			continue;
		}
		inner.path = dp_path_of_name(element.name, element.namelen);
		if (value_covered(s, &inner, &element.value))
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- trees */

DpCondition *
dp_conditions_of_filter(const DpFilterNode *root, const DpKeyOptions *options, bool all)
{
	Serving s = { options, all };

	return serve(&s, root, false, NULL, SCOPE_DOCUMENT);
}

DpCondition *
dp_conditions_estimated(const DpFilterNode *root, const DpKeyOptions *options,
						DpConditionEstimate estimate, void *arg, bool *by_statistics)
{
	Serving s = { options, false, estimate, arg };
	DpCondition *result = serve(&s, root, false, NULL, SCOPE_DOCUMENT);

	*by_statistics = s.by_statistics;
	return result;
}

static void
add_conjunct(Conjuncts *list, const DpFilterNode *node, bool negated)
{
	if (list->n == list->room)
	{
		list->room = Max(8, list->room * 2);
		list->items = list->items == NULL ? palloc(list->room * sizeof(Conjunct))
										  : repalloc(list->items, list->room * sizeof(Conjunct));
	}
	list->items[list->n].node = node;
	list->items[list->n].negated = negated;
	list->items[list->n].used = false;
	list->n++;
}

/*
 * Adds what must hold for a node to hold, or not to hold.
 */
static void
collect_conjuncts(Conjuncts *list, const DpFilterNode *node, bool negated)
{
	bool inner;

	if (node->op == FILTER_AND && !negated)
		inner = false;
	else if ((node->op == FILTER_NOR && !negated) || (node->op == FILTER_OR && negated))
		inner = true;
	else
	{
		add_conjunct(list, node, negated);
		return;
	}
	check_stack_depth();
	for (int i = 0; i < node->u.children.n; i++)
		collect_conjuncts(list, node->u.children.nodes[i], inner);
}

/* The conditions that follow from a node, or from its negation. */
static DpCondition *
serve(Serving *s, const DpFilterNode *node, bool negated, const DpPathChain *outer, Scope scope)
{
	Conjuncts conjuncts = { 0 };

	check_stack_depth();
	switch (node->op)
	{
		case FILTER_TRUE:
			return negated ? &no_documents : &all_documents;
		case FILTER_FALSE:
			return negated ? &all_documents : &no_documents;
		case FILTER_AND:
		case FILTER_OR:
		case FILTER_NOR:
			/* not all of them, one of them, not none of them */
			if (negated ? node->op != FILTER_OR : node->op == FILTER_OR)
				return serve_any_of(s, node, node->op == FILTER_AND, outer, scope);
			collect_conjuncts(&conjuncts, node, negated);
			return serve_all_of(s, &conjuncts, outer, scope);
		case FILTER_SCHEMA:
		case FILTER_EXPR:
			return &all_documents;
		default:
			return negated ? serve_negated(s, node, outer, scope)
						   : serve_condition(s, node, outer, scope);
	}
}

/* One of the children of the node must hold, or not hold. */
static DpCondition *
serve_any_of(Serving *s, const DpFilterNode *node, bool negated, const DpPathChain *outer,
			 Scope scope)
{
	ConditionList list = { 0 };

	/* $elemMatch of a value cannot express this */
	if (scope == SCOPE_VALUE)
		return &all_documents;
	for (int i = 0; i < node->u.children.n; i++)
	{
		DpCondition *child = serve(s, node->u.children.nodes[i], negated, outer, scope);

		if (child->op == DP_COND_ALL)
			return &all_documents;
		if (child->op == DP_COND_OR)
			for (int j = 0; j < child->nchildren; j++)
				add_condition(&list, child->children[j]);
		else if (child->op != DP_COND_NONE)
			add_condition(&list, child);
	}
	return list.n == 0 ? &no_documents : make_parent(DP_COND_OR, &list);
}

static bool
same_step(const DpPathStep *a, const DpPathStep *b)
{
	return a->namelen == b->namelen && memcmp(a->name, b->name, a->namelen) == 0;
}

/* Whether two paths have the same parts. */
static bool
same_path(const DpPath *a, const DpPath *b)
{
	if (a == b)
		return true;
	if (a->nsteps != b->nsteps)
		return false;
	for (int i = 0; i < a->nsteps; i++)
		if (!same_step(&a->steps[i], &b->steps[i]))
			return false;
	return true;
}

/*
 * Adds the other end of a range at the same path, if there is one among the
 * conjuncts from the given one on, which was used.
 */
static void
complete_range(DpCondition *range, Conjuncts *conjuncts, int from)
{
	const DpFilterNode *node = range->node;
	bool is_lower = node->op == FILTER_GT || node->op == FILTER_GTE;

	for (int i = from; i < conjuncts->n; i++)
	{
		Conjunct *other = &conjuncts->items[i];
		DpFilterOp op = other->node->op;

		if (other->used || other->negated ||
			!(is_lower ? op == FILTER_LT || op == FILTER_LTE
					   : op == FILTER_GT || op == FILTER_GTE) ||
			dp_type_class[other->node->value.type] != dp_type_class[node->value.type] ||
			!same_path(other->node->path->path, node->path->path))
			continue;
		other->used = true;
		range->upper = is_lower ? other->node : node;
		range->node = is_lower ? node : other->node;
		return;
	}
}

/*
 * All of the conjuncts must hold.
 */
static DpCondition *
serve_all_of(Serving *s, Conjuncts *conjuncts, const DpPathChain *outer, Scope scope)
{
	ConditionList list = { 0 };

	if (scope == SCOPE_ELEMENT && s->options->npairs > 0)
	{
		DpCondition *pair = serve_pair(s, conjuncts, outer);

		if (pair != NULL)
			add_condition(&list, pair);
	}
	for (int i = 0; i < conjuncts->n; i++)
	{
		Conjunct *conjunct = &conjuncts->items[i];
		DpCondition *condition;

		CHECK_FOR_INTERRUPTS();
		if (conjunct->used)
			continue;
		condition = serve(s, conjunct->node, conjunct->negated, outer, scope);
		if (condition->op == DP_COND_NONE)
			return condition;
		if (condition->op == DP_COND_RANGE)
			complete_range(condition, conjuncts, i + 1);
		if (condition->op == DP_COND_AND)
			for (int j = 0; j < condition->nchildren; j++)
				add_condition(&list, condition->children[j]);
		else if (condition->op != DP_COND_ALL)
			add_condition(&list, condition);
	}
	return conjunction(s, &list);
}

static DpCondition *
conjunction(Serving *s, ConditionList *list)
{
	if (list->n > 1 && !s->all)
		choose(s, list);
	return list->n == 0 ? &all_documents : make_parent(DP_COND_AND, list);
}

/* ---------------------------------------------------------------- conditions */

/*
 * The condition, if the index has what is at its path, or else the same by the
 * first part of a pair, or nothing.
 */
static DpCondition *
if_covered(Serving *s, DpCondition *condition)
{
	if (is_covered(s, &condition->chain))
		return condition;
	return first_of_pair(s, condition);
}

static DpCondition *
serve_condition(Serving *s, const DpFilterNode *node, const DpPathChain *outer, Scope scope)
{
	static const uint8 numbers[] = { DP_TYPE_INT32, DP_TYPE_INT64, DP_TYPE_DOUBLE,
									 DP_TYPE_DECIMAL128 };
	static const uint8 bits[] = { DP_TYPE_INT32, DP_TYPE_INT64, DP_TYPE_DOUBLE, DP_TYPE_DECIMAL128,
								  DP_TYPE_BINARY };
	static const uint8 strings[] = { DP_TYPE_STRING, DP_TYPE_SYMBOL, DP_TYPE_REGEX };
	static const uint8 array[] = { DP_TYPE_ARRAY };
	DpPathChain chain = { outer, node->path->path };
	DpCondition *condition;

	switch (node->op)
	{
		case FILTER_EQ:
		case FILTER_LT:
		case FILTER_LTE:
		case FILTER_GT:
		case FILTER_GTE:
			return serve_comparison(s, node, outer, scope);

		case FILTER_IN:
			if (node->u.in.nvalues == 0 && node->u.in.nregexes == 0)
				return &no_documents;
			condition = make_lookup(DP_COND_IN, node, outer, scope);
			if (node->u.in.has_null && scope != SCOPE_VALUE &&
				!knows_missing(s, node->path->path, outer))
				return &all_documents;
			if (is_covered(s, &chain))
				return condition;
			for (int i = 0; i < node->u.in.nvalues; i++)
				if (!value_covered(s, &chain, &node->u.in.values[i]))
					return first_of_pair(s, condition);
			return node->u.in.nregexes == 0 ? condition : &all_documents;

		case FILTER_REGEX:
			condition = make_lookup(DP_COND_REGEX, node, outer, scope);
			if (!dp_regex_literal_prefix(node->u.regex.pattern, node->u.regex.len,
										 node->u.regex.options, node->u.regex.optlen,
										 &condition->literal, &condition->literallen))
				condition = make_types(node, outer, scope, lengthof(strings), strings);
			return if_covered(s, condition);

		case FILTER_EXISTS:
			if (scope == SCOPE_VALUE)
				return &all_documents;
			return if_covered(s, make_lookup(DP_COND_EXISTS, node, outer, scope));

		case FILTER_TYPE:
			condition = make_lookup(DP_COND_TYPES, node, outer, scope);
			condition->types = node->u.types;
			return if_covered(s, condition);

		case FILTER_MOD:
			return if_covered(s, make_types(node, outer, scope, lengthof(numbers), numbers));

		case FILTER_BITS_ALL_SET:
		case FILTER_BITS_ANY_SET:
		case FILTER_BITS_ALL_CLEAR:
		case FILTER_BITS_ANY_CLEAR:
			return if_covered(s, make_types(node, outer, scope, lengthof(bits), bits));

		case FILTER_SIZE:
			if (node->u.size == 0)
				return if_covered(s, make_lookup(DP_COND_EMPTY_ARRAY, node, outer, scope));
			return if_covered(s, make_types(node, outer, scope, lengthof(array), array));

		case FILTER_ELEM_OBJECT:
		case FILTER_ELEM_VALUE:
			return serve_element(s, node, outer, scope);

		default:
			return &all_documents;
	}
}

/*
 * What follows if a condition does not hold: that a path is missing, or that it exists and is not
 * null.  An array on the way without documents has no missing fields, so the latter holds for paths
 * of one part.
 */
static DpCondition *
serve_negated(Serving *s, const DpFilterNode *node, const DpPathChain *outer, Scope scope)
{
	if (scope != SCOPE_DOCUMENT)
		return &all_documents;
	if (node->op == FILTER_EXISTS && knows_missing(s, node->path->path, outer))
		return make_lookup(DP_COND_MISSING, node, outer, scope);
	if (node->op == FILTER_EQ && node->value.type == DP_TYPE_NULL && node->path->path->nsteps == 1)
	{
		DpCondition *condition = make_lookup(DP_COND_EXISTS, node, outer, scope);

		if (is_covered(s, &condition->chain))
			return condition;
	}
	return &all_documents;
}

static DpCondition *
serve_comparison(Serving *s, const DpFilterNode *node, const DpPathChain *outer, Scope scope)
{
	bool orequal = node->op == FILTER_EQ || node->op == FILTER_LTE || node->op == FILTER_GTE;
	DpCondition *condition = make_lookup(DP_COND_EQUAL, node, outer, scope);

	switch (dp_type_class[node->value.type])
	{
		case DP_CLASS_NULL:
			if (!orequal)
				return &no_documents;
			if (scope != SCOPE_VALUE && !knows_missing(s, node->path->path, outer))
				return &all_documents;
			return if_covered(s, condition);

		case DP_CLASS_MINKEY:
			if (node->op == FILTER_GT || node->op == FILTER_GTE)
				return &all_documents;
			return orequal ? if_covered(s, condition) : &no_documents;

		case DP_CLASS_MAXKEY:
			if (node->op == FILTER_LT || node->op == FILTER_LTE)
				return &all_documents;
			return orequal ? if_covered(s, condition) : &no_documents;

		case DP_CLASS_NUMBER:
			if (node->op != FILTER_EQ && isnan(dp_number_approximate(&node->value)))
				return orequal ? if_covered(s, condition) : &no_documents;
			break;
	}
	if (node->op != FILTER_EQ)
		condition->op = DP_COND_RANGE;
	else if (value_covered(s, &condition->chain, &node->value))
		return condition;
	return if_covered(s, condition);
}

/*
 * $elemMatch.
 */
static DpCondition *
serve_element(Serving *s, const DpFilterNode *node, const DpPathChain *outer, Scope scope)
{
	static const uint8 array[] = { DP_TYPE_ARRAY };
	DpCondition *condition = make_lookup(DP_COND_ELEMENT, node, outer, scope);
	Conjuncts conjuncts = { 0 };
	DpCondition *child;

	for (int i = 0; i < node->u.children.n; i++)
		collect_conjuncts(&conjuncts, node->u.children.nodes[i], false);
	child = serve_all_of(s, &conjuncts, &condition->chain,
						 node->op == FILTER_ELEM_OBJECT ? SCOPE_ELEMENT : SCOPE_VALUE);
	if (child->op == DP_COND_NONE)
		return child;
	if (child->op == DP_COND_ALL)
	{
		condition = make_types(node, outer, scope, lengthof(array), array);
		return is_covered(s, &condition->chain) ? condition : &all_documents;
	}
	condition->children = palloc(sizeof(DpCondition *));
	condition->children[0] = child;
	condition->nchildren = 1;
	return condition;
}

/* ---------------------------------------------------------------- pairs */

/*
 * Whether a comparison with a value is about the values of its class on one
 * side of it.  With null it is about missing fields too, with MinKey and MaxKey
 * about all fields or none, with NaN about NaN.
 */
static bool
is_plain_limit(const DpValue *value)
{
	switch (dp_type_class[value->type])
	{
		case DP_CLASS_NULL:
		case DP_CLASS_MINKEY:
		case DP_CLASS_MAXKEY:
			return false;
		case DP_CLASS_NUMBER:
			return !isnan(dp_number_approximate(value));
		default:
			return true;
	}
}

/*
 * The first unused conjunct at the path that is good for a part of a pair.
 * Takes both ends of a range.
 */
static DpCondition *
take_part(Conjuncts *conjuncts, const DpPath *path, const DpPathChain *outer, bool first)
{
	CHECK_FOR_INTERRUPTS();
	for (int pass = 0; pass < (first ? 1 : 2); pass++)
		for (int i = 0; i < conjuncts->n; i++)
		{
			Conjunct *conjunct = &conjuncts->items[i];
			const DpFilterNode *node = conjunct->node;
			DpCondition *condition;

			if (conjunct->used || conjunct->negated || node->op < FILTER_FIRST_CONDITION ||
				!same_path(node->path->path, path))
				continue;
			condition = make_lookup(DP_COND_EQUAL, node, outer, SCOPE_ELEMENT);
			switch (node->op)
			{
				case FILTER_EQ:
					if (pass > 0 || !good_in_pair(&node->value, first))
						continue;
					break;
				case FILTER_IN:
					if (pass > 0 || node->u.in.nregexes > 0 || node->u.in.nvalues == 0)
						continue;
					condition->op = DP_COND_IN;
					for (int j = 0; condition != NULL && j < node->u.in.nvalues; j++)
						if (!good_in_pair(&node->u.in.values[j], first))
							condition = NULL;
					if (condition == NULL)
						continue;
					break;
				case FILTER_LT:
				case FILTER_LTE:
				case FILTER_GT:
				case FILTER_GTE:
					if (pass == 0 || !good_in_pair(&node->value, first) ||
						!is_plain_limit(&node->value))
						continue;
					condition->op = DP_COND_RANGE;
					conjunct->used = true;
					complete_range(condition, conjuncts, i + 1);
					break;
				case FILTER_REGEX:
					if (pass == 0 ||
						!dp_regex_literal_prefix(node->u.regex.pattern, node->u.regex.len,
												 node->u.regex.options, node->u.regex.optlen,
												 &condition->literal, &condition->literallen))
						continue;
					condition->op = DP_COND_REGEX;
					break;
				default:
					continue;
			}
			conjunct->used = true;
			return condition;
		}
	return NULL;
}

/*
 * A pair that serves two of the conjuncts on the elements of the array at a
 * path, which are then used, or NULL.
 */
static DpCondition *
serve_pair(Serving *s, Conjuncts *conjuncts, const DpPathChain *chain)
{
	const DpPath *path = dp_chain_path(chain);

	for (int i = 0; i < s->options->npairs; i++)
	{
		const DpKeyPair *pair = &s->options->pairs[i];
		DpCondition *parts[2];
		DpCondition *condition;

		if (!same_path(pair->path, path))
			continue;
		parts[0] = take_part(conjuncts, pair->first, chain, true);
		if (parts[0] == NULL)
			continue;
		parts[1] = take_part(conjuncts, pair->second, chain, false);
		if (parts[1] == NULL)
		{
			/* the first part alone is served as any condition */
			for (int j = 0; j < conjuncts->n; j++)
				if (conjuncts->items[j].node == parts[0]->node)
					conjuncts->items[j].used = false;
			continue;
		}
		condition = make_condition(DP_COND_PAIR);
		condition->pair = pair;
		condition->in_element = true;
		condition->children = palloc(sizeof(parts));
		memcpy(condition->children, parts, sizeof(parts));
		condition->nchildren = 2;
		return condition;
	}
	return NULL;
}

/*
 * The condition served by the first part of a pair, or nothing.
 */
static DpCondition *
first_of_pair(Serving *s, DpCondition *condition)
{
	const DpFilterNode *node = condition->node;
	const DpPath *path;

	if (s->options->npairs == 0 || condition->in_value)
		return &all_documents;
	if (condition->op == DP_COND_EQUAL && node->op == FILTER_EQ)
	{
		if (!good_in_pair(&node->value, true))
			return &all_documents;
	}
	else if (condition->op == DP_COND_IN && node->u.in.nregexes == 0)
	{
		for (int i = 0; i < node->u.in.nvalues; i++)
			if (!good_in_pair(&node->u.in.values[i], true))
				return &all_documents;
	}
	else
		return &all_documents;

	path = dp_chain_path(&condition->chain);
	for (int i = 0; i < s->options->npairs; i++)
	{
		const DpKeyPair *pair = &s->options->pairs[i];
		DpCondition *result;
		bool same = path->nsteps == pair->path->nsteps + pair->first->nsteps;

		for (int j = 0; same && j < path->nsteps; j++)
		{
			const DpPathStep *step = j < pair->path->nsteps
										 ? &pair->path->steps[j]
										 : &pair->first->steps[j - pair->path->nsteps];

			same = same_step(&path->steps[j], step);
		}
		if (!same)
			continue;
		result = make_condition(DP_COND_PAIR);
		result->pair = pair;
		result->in_element = condition->in_element;
		result->children = palloc(sizeof(DpCondition *));
		result->children[0] = condition;
		result->nchildren = 1;
		return result;
	}
	return &all_documents;
}

/* ---------------------------------------------------------------- the choice */

/* How much a condition is worth when nothing is known about the data. */
typedef enum Worth
{
	WORTH_KEYS,  /* equality */
	WORTH_RANGE, /* between two ends, or a prefix */
	WORTH_HALF,  /* a range with one end */
	WORTH_LITTLE /* that there is something, and of which type */
} Worth;

static Worth
usual_worth(const DpCondition *condition)
{
	Worth worth;

	switch (condition->op)
	{
		case DP_COND_NONE:
		case DP_COND_EQUAL:
		case DP_COND_IN:
		case DP_COND_EMPTY_ARRAY:
		case DP_COND_PAIR:
			return WORTH_KEYS;
		case DP_COND_REGEX:
			return WORTH_RANGE;
		case DP_COND_RANGE:
			if (dp_type_is_container(condition->node->value.type))
				return WORTH_LITTLE;
			return condition->upper != NULL ? WORTH_RANGE : WORTH_HALF;
		case DP_COND_MISSING:
			return WORTH_HALF;
		case DP_COND_AND:
			worth = WORTH_LITTLE;
			for (int i = 0; i < condition->nchildren; i++)
				worth = Min(worth, usual_worth(condition->children[i]));
			return worth;
		case DP_COND_OR:
			worth = WORTH_KEYS;
			for (int i = 0; i < condition->nchildren; i++)
				worth = Max(worth, usual_worth(condition->children[i]));
			return worth;
		case DP_COND_ELEMENT:
			return usual_worth(condition->children[0]);
		default:
			return WORTH_LITTLE;
	}
}

/*
 * The fraction of documents that the statistics expect, or else what is usual.
 */
static double
expected_fraction(Serving *s, const DpCondition *condition)
{
	static const double usual[] = { 0.005, 0.01, 0.33, 0.9 };
	double fraction = -1;

	/* inside $elemMatch the paths of nodes are not those of the document */
	if (condition->in_element && condition->op != DP_COND_ELEMENT)
		return usual[usual_worth(condition)];
	switch (condition->op)
	{
		case DP_COND_RANGE:
			if (condition->upper != NULL)
			{
				DpFilterNode *ends[2] = { (DpFilterNode *) condition->node,
										  (DpFilterNode *) condition->upper };
				DpFilterNode both = { FILTER_AND };

				both.u.children.nodes = ends;
				both.u.children.n = 2;
				fraction = s->estimate(&both, s->arg);
				break;
			}
			/* FALLTHROUGH */
		case DP_COND_EQUAL:
		case DP_COND_IN:
		case DP_COND_REGEX:
		case DP_COND_EMPTY_ARRAY:
		case DP_COND_ELEMENT:
			fraction = s->estimate(condition->node, s->arg);
			break;
		case DP_COND_PAIR:
			return expected_fraction(s, condition->children[0]);
		case DP_COND_AND:
			fraction = 1;
			for (int i = 0; i < condition->nchildren; i++)
				fraction *= expected_fraction(s, condition->children[i]);
			break;
		case DP_COND_OR:
			fraction = 0;
			for (int i = 0; i < condition->nchildren; i++)
				fraction += expected_fraction(s, condition->children[i]);
			break;
		default:
			break;
	}
	return fraction < 0 ? usual[usual_worth(condition)] : Min(fraction, 1);
}

/*
 * Chooses conditions by heuristics: no half ranges beside better ones, no unselective ones beside
 * others.  Returns the number of chosen ones.
 */
static int
pick_usual(const ConditionList *list, bool *kept)
{
	Worth limit = WORTH_LITTLE;
	int n = 0;

	for (int i = 0; i < list->n; i++)
		limit = Min(limit, usual_worth(list->items[i]));
	limit = Max(limit, WORTH_RANGE);
	for (int i = 0; i < list->n; i++)
		n += kept[i] = usual_worth(list->items[i]) <= limit;
	return n;
}

/* True if a condition searches only single keys. */
static bool
is_of_keys(const DpCondition *condition)
{
	switch (condition->op)
	{
		case DP_COND_EQUAL:
		case DP_COND_EMPTY_ARRAY:
		case DP_COND_MISSING:
		case DP_COND_NONE:
			return true;
		case DP_COND_IN:
			return condition->node->u.in.nregexes == 0;
		case DP_COND_AND:
		case DP_COND_OR:
		case DP_COND_ELEMENT:
			for (int i = 0; i < condition->nchildren; i++)
				if (!is_of_keys(condition->children[i]))
					return false;
			return true;
		case DP_COND_PAIR:
			return condition->nchildren == 2 && is_of_keys(condition->children[1]);
		default:
			return false;
	}
}

/*
 * Chooses the conditions that cost less than they save.  GIN collects all matches of a range before
 * it looks at anything else, while it can skip through single keys; both are cheaper than visits to
 * documents.
 */
static int
pick_estimated(Serving *s, const ConditionList *list, bool *kept)
{
	double *fractions = palloc(list->n * sizeof(double));
	double left = 1;
	int n;

	for (int i = 0; i < list->n; i++)
		fractions[i] = expected_fraction(s, list->items[i]);
	memset(kept, 0, list->n * sizeof(bool));
	for (n = 0; n < list->n; n++)
	{
		int best = -1;
		double cost;

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < list->n; i++)
			if (!kept[i] && (best < 0 || fractions[i] < fractions[best]))
				best = i;
		cost = is_of_keys(list->items[best]) ? KEY_COST : RANGE_COST;
		if (n > 0 && fractions[best] * cost > left * (1 - fractions[best]))
			break;
		kept[best] = true;
		left *= fractions[best];
	}
	pfree(fractions);
	return n;
}

/*
 * Leaves the conditions that are worth it.  Notes if that needed statistics,
 * because without them fewer would have been left of these.
 */
static void
choose(Serving *s, ConditionList *list)
{
	bool *kept = palloc(list->n * sizeof(bool));
	int n = 0;

	if (s->estimate != NULL)
		pick_estimated(s, list, kept);
	else
		pick_usual(list, kept);
	for (int i = 0; i < list->n; i++)
		if (kept[i])
			list->items[n++] = list->items[i];
	list->n = n;
	if (s->estimate != NULL && pick_usual(list, kept) < n)
		s->by_statistics = true;
	pfree(kept);
}
