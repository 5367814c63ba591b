/*
 * query_keys.c
 *		From conditions, from a contained document and from paths that must exist to the keys to
 *		search.
 *
 * Conditions that an index cannot decide are omitted from a conjunction and make a disjunction
 * undecidable, so the tree never excludes a matching document.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/compare.h"
#include "index/query.h"
#include "mql/regex.h"

/* The maximum number of keys for one searched document or array */
#define ENOUGH_LEAVES 64

typedef struct KeyContext
{
	const DpKeyOptions *options;
	DpIndexQuery *query;
} KeyContext;

static DpQueryNode *keys_of(KeyContext *k, const DpCondition *condition);
static DpQueryNode *
keys_of_value(KeyContext *k, const DpPathChain *chain, const DpValue *value, int *leaves);
static DpQueryNode *
keys_of_inside(KeyContext *k, const DpPathChain *chain, const DpValue *value, int *leaves);
static DpQueryNode *keys_of_range(KeyContext *k, DpKeyBase base, const DpCondition *condition);
static DpQueryNode *keys_of_pair(KeyContext *k, const DpCondition *condition);
static DpQueryNode *
keys_of_contained(KeyContext *k, const DpPathChain *chain, const DpValue *value, int *leaves);

static DpQueryNode query_all = { DP_QUERY_ALL };
static DpQueryNode query_none = { DP_QUERY_NONE };

/* ---------------------------------------------------------------- paths */

static int
chain_steps(const DpPathChain *chain)
{
	return chain == NULL ? 0 : chain_steps(chain->outer) + chain->path->nsteps;
}

static void
chain_fill(const DpPathChain *chain, const char **names, uint32 *lens, int n)
{
	for (; chain != NULL; chain = chain->outer)
		for (int i = chain->path->nsteps; i-- > 0;)
		{
			names[--n] = chain->path->steps[i].name;
			lens[n] = chain->path->steps[i].namelen;
		}
}

const DpPath *
dp_chain_path(const DpPathChain *chain)
{
	int n = chain_steps(chain);
	const char **names;
	uint32 *lens;
	DpPath *path;

	if (n == chain->path->nsteps)
		return chain->path;
	names = palloc(n * sizeof(char *));
	lens = palloc(n * sizeof(uint32));
	chain_fill(chain, names, lens, n);
	path = dp_path_of_names(n, names, lens);
	pfree(names);
	pfree(lens);
	return path;
}

static DpPathState
chain_state(const DpPathChain *chain)
{
	DpPathState state = chain->outer == NULL ? DP_KEY_ROOT : chain_state(chain->outer);

	return dp_key_steps(state, chain->path, chain->path->nsteps);
}

static DpKeyBase
chain_base(KeyContext *k, const DpPathChain *chain)
{
	return dp_key_base(k->options, chain_state(chain));
}

static bool
is_covered(KeyContext *k, const DpPathChain *chain)
{
	return k->options->all_paths ||
		   (k->options->npaths > 0 && dp_key_options_has(k->options, dp_chain_path(chain)));
}

/* ---------------------------------------------------------------- trees of entries */

/* A new entry, to be filled in. */
static DpQueryNode *
add_entry(KeyContext *k, bool is_range, DpQueryEntry **entry)
{
	DpIndexQuery *query = k->query;
	DpQueryNode *node = palloc0(sizeof(DpQueryNode));

	if (query->nentries == query->room)
	{
		query->room = Max(8, query->room * 2);
		query->entries = query->entries == NULL
							 ? palloc(query->room * sizeof(DpQueryEntry *))
							 : repalloc(query->entries, query->room * sizeof(DpQueryEntry *));
	}
	*entry = palloc(sizeof(DpQueryEntry));
	(*entry)->is_range = is_range;
	(*entry)->query = query;
	node->op = DP_QUERY_ENTRY;
	node->entry = query->nentries;
	query->entries[query->nentries++] = *entry;
	return node;
}

static DpQueryNode *
add_exact(KeyContext *k, DpKeyBase base, const DpValue *value)
{
	DpQueryEntry *entry;
	DpQueryNode *node = add_entry(k, false, &entry);

	dp_key_exact(&entry->range.low, base, value);
	return node;
}

static DpQueryNode *
add_array(KeyContext *k, DpKeyBase base, DpKeyArray array)
{
	DpQueryEntry *entry;
	DpQueryNode *node = add_entry(k, false, &entry);

	dp_key_array(&entry->range.low, base, array);
	return node;
}

static DpQueryNode *
add_missing(KeyContext *k, DpKeyBase base)
{
	DpQueryEntry *entry;
	DpQueryNode *node = add_entry(k, false, &entry);

	dp_key_missing(&entry->range.low, base);
	return node;
}

static DpQueryNode *
add_classes(KeyContext *k, DpKeyBase base, DpKeyClass first, DpKeyClass last)
{
	DpQueryEntry *entry;
	DpQueryNode *node = add_entry(k, true, &entry);

	dp_key_classes(&entry->range, base, first, last);
	return node;
}

static DpQueryNode *
add_prefix(KeyContext *k, DpKeyBase base, const char *s, uint32 len)
{
	DpQueryEntry *entry;
	DpQueryNode *node = add_entry(k, true, &entry);

	dp_key_prefix(&entry->range, base, DP_KEY_STRING, s, len);
	return node;
}

/*
 * Both, or one of both.  Either may be NULL for nothing yet.
 */
static DpQueryNode *
combine(DpQueryOp op, DpQueryNode *a, DpQueryNode *b)
{
	DpQueryOp weak = op == DP_QUERY_AND ? DP_QUERY_ALL : DP_QUERY_NONE;
	DpQueryOp strong = op == DP_QUERY_AND ? DP_QUERY_NONE : DP_QUERY_ALL;
	DpQueryNode *node;

	if (a == NULL)
		return b;
	if (b == NULL || b->op == weak || a->op == strong)
		return a;
	if (a->op == weak || b->op == strong)
		return b;
	if (a->op == op)
		node = a;
	else
	{
		node = palloc0(sizeof(DpQueryNode));
		node->op = op;
		node->room = 4;
		node->nodes = palloc(node->room * sizeof(DpQueryNode *));
		node->nodes[node->n++] = a;
	}
	if (node->n == node->room)
	{
		node->room *= 2;
		node->nodes = repalloc(node->nodes, node->room * sizeof(DpQueryNode *));
	}
	node->nodes[node->n++] = b;
	return node;
}

static DpQueryNode *
both(DpQueryNode *a, DpQueryNode *b)
{
	return combine(DP_QUERY_AND, a, b);
}

static DpQueryNode *
either(DpQueryNode *a, DpQueryNode *b)
{
	return combine(DP_QUERY_OR, a, b);
}

/* Numbers the entries of a tree again, in tree order. */
static void
renumber(DpQueryNode *node, DpQueryEntry **from, DpIndexQuery *query)
{
	if (node->op == DP_QUERY_ENTRY)
	{
		query->entries[query->nentries] = from[node->entry];
		node->entry = query->nentries++;
	}
	else
		for (int i = 0; i < node->n; i++)
			renumber(node->nodes[i], from, query);
}

/*
 * The query with this tree.  Entries that were made and are not in it are
 * dropped.
 */
static DpIndexQuery *
finish_query(KeyContext *k, DpQueryNode *root)
{
	DpIndexQuery *query = k->query;
	DpQueryEntry **made = query->entries;

	query->root = root;
	query->entries = palloc(Max(query->nentries, 1) * sizeof(DpQueryEntry *));
	query->nentries = 0;
	renumber(root, made, query);
	return query;
}

/* ---------------------------------------------------------------- conditions */

DpIndexQuery *
dp_query_of_conditions(const DpCondition *condition, const DpKeyOptions *options)
{
	KeyContext k = { options, palloc0(sizeof(DpIndexQuery)) };

	return finish_query(&k, keys_of(&k, condition));
}

/* Strings that begin with the literal of a pattern, or all, and patterns. */
static DpQueryNode *
keys_of_regex(KeyContext *k, DpKeyBase base, const char *literal, uint32 len)
{
	DpQueryNode *strings = literal != NULL ? add_prefix(k, base, literal, len)
										   : add_classes(k, base, DP_KEY_STRING, DP_KEY_STRING);

	return either(strings, add_classes(k, base, DP_KEY_REGEX, DP_KEY_REGEX));
}

/*
 * Values of some types.  Documents that are elements have no keys, but their
 * arrays do.
 */
static DpQueryNode *
keys_of_types(KeyContext *k, DpKeyBase base, const DpTypeSet *types)
{
	DpQueryNode *result = &query_none;
	uint32 classes = 0;

	for (int type = 0; type < 256; type++)
		if (dp_type_set_has(types, type) && dp_key_class[type] != 0)
			classes |= 1 << dp_key_class[type];
	if (classes & (1 << DP_KEY_DOCUMENT))
		classes |= 1 << DP_KEY_ARRAY;
	for (int first = DP_KEY_MINKEY; first <= DP_KEY_MAXKEY; first++)
	{
		int last = first;

		if (!(classes & (1 << first)))
			continue;
		while (last < DP_KEY_MAXKEY && (classes & (1 << (last + 1))))
			last++;
		result = either(result, add_classes(k, base, first, last));
		first = last;
	}
	return result;
}

static DpQueryNode *
keys_of(KeyContext *k, const DpCondition *condition)
{
	const DpFilterNode *node = condition->node;
	DpQueryNode *result = NULL;
	DpKeyBase base = 0;
	int leaves = 0;

	check_stack_depth();
	if (condition->chain.path != NULL)
		base = chain_base(k, &condition->chain);
	switch (condition->op)
	{
		case DP_COND_ALL:
			return &query_all;
		case DP_COND_NONE:
			return &query_none;

		case DP_COND_AND:
			for (int i = 0; i < condition->nchildren; i++)
				result = both(result, keys_of(k, condition->children[i]));
			return result;
		case DP_COND_OR:
			for (int i = 0; i < condition->nchildren; i++)
				result = either(result, keys_of(k, condition->children[i]));
			return result;
		case DP_COND_ELEMENT:
			return keys_of(k, condition->children[0]);
		case DP_COND_PAIR:
			return keys_of_pair(k, condition);

		case DP_COND_EQUAL:
			result = keys_of_value(k, &condition->chain, &node->value, &leaves);
			if (node->value.type == DP_TYPE_NULL && !condition->in_value)
				result = either(result, add_missing(k, base));
			return result;

		case DP_COND_IN:
			for (int i = 0; i < node->u.in.nvalues; i++)
			{
				leaves = 0;
				result = either(result, keys_of_value(k, &condition->chain, &node->u.in.values[i],
													  &leaves));
			}
			if (node->u.in.has_null && !condition->in_value)
				result = either(result, add_missing(k, base));
			for (int i = 0; i < node->u.in.nregexes; i++)
			{
				const char *pattern;
				const char *options;
				const char *literal = NULL;
				uint32 len;
				uint32 optlen;
				uint32 literallen = 0;

				dp_regex_split(&node->u.in.regex_values[i], &pattern, &len, &options, &optlen);
				dp_regex_literal_prefix(pattern, len, options, optlen, &literal, &literallen);
				result = either(result, keys_of_regex(k, base, literal, literallen));
			}
			return result;

		case DP_COND_RANGE:
			return keys_of_range(k, base, condition);

		case DP_COND_REGEX:
			return keys_of_regex(k, base, condition->literal, condition->literallen);

		case DP_COND_EMPTY_ARRAY:
			return add_array(k, base, DP_KEY_ARRAY_EMPTY);

		case DP_COND_TYPES:
			return keys_of_types(k, base, &condition->types);

		case DP_COND_EXISTS:
			return add_classes(k, base, DP_KEY_MINKEY, DP_KEY_MAXKEY);

		case DP_COND_MISSING:
			return add_missing(k, base);
	}
	elog(ERROR, "condition %d has no keys", condition->op);
	return NULL;
}

/*
 * The last value that an end of a range lets in, as far as keys tell it: of a date that is itself
 * left out, the millisecond beside it.  Other values may share their keys with neighbours.
 */
static const DpValue *
range_end(const DpFilterNode *node, DpValue *date, uint8 *bytes)
{
	int64 ms;

	if (node->value.type != DP_TYPE_DATE || node->op == FILTER_GTE || node->op == FILTER_LTE)
		return &node->value;
	ms = dp_get_int64(node->value.data);
	if (ms == (node->op == FILTER_GT ? PG_INT64_MAX : PG_INT64_MIN))
		return &node->value;
	dp_put_int64(bytes, node->op == FILTER_GT ? ms + 1 : ms - 1);
	*date = node->value;
	date->data = bytes;
	return date;
}

/*
 * A range under a base.  Documents and arrays have no order there.
 */
static DpQueryNode *
add_range(KeyContext *k, DpKeyBase base, const DpCondition *condition)
{
	const DpFilterNode *low = condition->node;
	const DpFilterNode *high = condition->upper;
	DpValue dates[2];
	uint8 bytes[2][sizeof(int64)];
	DpQueryEntry *entry;
	DpQueryNode *node;

	if (low->op == FILTER_LT || low->op == FILTER_LTE)
	{
		high = low;
		low = NULL;
	}
	switch (condition->node->value.type)
	{
		case DP_TYPE_DOCUMENT:
			return add_classes(k, base, DP_KEY_DOCUMENT, DP_KEY_ARRAY);
		case DP_TYPE_ARRAY:
			return add_classes(k, base, DP_KEY_ARRAY, DP_KEY_ARRAY);
		default:
			break;
	}
	node = add_entry(k, true, &entry);
	dp_key_between(&entry->range, base, low != NULL ? range_end(low, &dates[0], bytes[0]) : NULL,
				   high != NULL ? range_end(high, &dates[1], bytes[1]) : NULL);
	return node;
}

/*
 * A range at a path.  If there is an array of several elements on the way, different values may
 * satisfy the two ends, unless the condition is on one value, or on an element of that array.
 */
static DpQueryNode *
keys_of_range(KeyContext *k, DpKeyBase base, const DpCondition *condition)
{
	DpQueryNode *result = add_range(k, base, condition);
	const DpPath *path = condition->chain.path;
	DpPathState state = DP_KEY_ROOT;

	if (condition->upper == NULL || condition->in_value ||
		dp_type_is_container(condition->node->value.type))
		return result;
	if (condition->chain.outer != NULL)
		state = chain_state(condition->chain.outer);
	for (int i = 0; i < path->nsteps; i++)
	{
		DpPathState next = dp_key_step(state, path->steps[i].name, path->steps[i].namelen);

		/* a whole number changes nothing */
		if (i == 0 || next != state)
			result =
				either(result, add_array(k, dp_key_base(k->options, next), DP_KEY_ARRAY_SEVERAL));
		state = next;
	}
	return result;
}

/* A value at a path. */
static DpQueryNode *
keys_of_value(KeyContext *k, const DpPathChain *chain, const DpValue *value, int *leaves)
{
	DpQueryNode *result = NULL;
	DpKeyBase base;

	if (dp_type_is_container(value->type))
	{
		result = keys_of_inside(k, chain, value, leaves);
		if (result != NULL && value->type == DP_TYPE_DOCUMENT)
			return result;
	}
	if (!is_covered(k, chain))
		return result == NULL ? &query_all : result;
	(*leaves)++;
	base = chain_base(k, chain);
	switch (value->type)
	{
		case DP_TYPE_DOCUMENT:
			/* an empty one, or one of which nothing else is in the index */
			return either(add_exact(k, base, value),
						  add_classes(k, base, DP_KEY_ARRAY, DP_KEY_ARRAY));
		case DP_TYPE_ARRAY:
		{
			uint32 n = dp_array_count(value->data, value->len);

			return both(result, add_array(k, base,
										  n == 0   ? DP_KEY_ARRAY_EMPTY
										  : n == 1 ? DP_KEY_ARRAY_ONE
												   : DP_KEY_ARRAY_SEVERAL));
		}
		default:
			return add_exact(k, base, value);
	}
}

/*
 * The contents of a document or an array that equals this one; NULL if the index has none of them.
 */
static DpQueryNode *
keys_of_inside(KeyContext *k, const DpPathChain *chain, const DpValue *value, int *leaves)
{
	DpQueryNode *result = NULL;
	DpIter iter;
	DpElement element;

	check_stack_depth();
	dp_iter_init_value(&iter, value);
	while (*leaves < ENOUGH_LEAVES && dp_iter_next(&iter, &element))
	{
		DpQueryNode *node;

		if (value->type == DP_TYPE_ARRAY)
		{
			if (element.value.type == DP_TYPE_DOCUMENT)
				node = keys_of_inside(k, chain, &element.value, leaves);
			else
				node = keys_of_value(k, chain, &element.value, leaves);
		}
		else
		{
			DpPathChain inner = { chain, dp_path_of_name(element.name, element.namelen) };

			node = keys_of_value(k, &inner, &element.value, leaves);
		}
		if (node != NULL && node->op != DP_QUERY_ALL)
			result = both(result, node);
	}
	return result;
}

/* ---------------------------------------------------------------- pairs */

/*
 * The second part of a pair under a value of the first.
 */
static DpQueryNode *
keys_of_second(KeyContext *k, DpKeyBase base, const DpCondition *second)
{
	DpQueryNode *result = NULL;
	const DpFilterNode *node;

	if (second == NULL)
		return add_classes(k, base, DP_KEY_MISSING, DP_KEY_MAXKEY);
	node = second->node;
	switch (second->op)
	{
		case DP_COND_EQUAL:
			result = add_exact(k, base, &node->value);
			if (node->value.type == DP_TYPE_NULL)
				result = either(result, add_missing(k, base));
			return result;
		case DP_COND_IN:
			for (int i = 0; i < node->u.in.nvalues; i++)
				result = either(result, add_exact(k, base, &node->u.in.values[i]));
			if (node->u.in.has_null)
				result = either(result, add_missing(k, base));
			return result;
		case DP_COND_RANGE:
			result = add_range(k, base, second);
			/* several values, each of which may satisfy one end */
			if (second->upper != NULL)
				result = either(result, add_array(k, base, DP_KEY_ARRAY_SEVERAL));
			return result;
		case DP_COND_REGEX:
			return keys_of_regex(k, base, second->literal, second->literallen);
		default:
			elog(ERROR, "condition %d in a pair", second->op);
	}
	return NULL;
}

static DpQueryNode *
keys_of_pair(KeyContext *k, const DpCondition *condition)
{
	const DpCondition *first = condition->children[0];
	const DpCondition *second = condition->nchildren > 1 ? condition->children[1] : NULL;
	const DpFilterNode *node = first->node;
	DpQueryNode *result = NULL;

	if (first->op == DP_COND_EQUAL)
		result =
			keys_of_second(k, dp_key_pair_base(k->options, condition->pair, &node->value), second);
	else
		for (int i = 0; i < node->u.in.nvalues; i++)
			result = either(result, keys_of_second(k,
												   dp_key_pair_base(k->options, condition->pair,
																	&node->u.in.values[i]),
												   second));
	/* elements with too many values for keys */
	return either(result, add_missing(k, dp_key_base(k->options, condition->pair->state)));
}

/* ---------------------------------------------------------------- containment and existence */

DpIndexQuery *
dp_query_of_contained(const DpValue *b, const DpKeyOptions *options)
{
	KeyContext k = { options, palloc0(sizeof(DpIndexQuery)) };
	int leaves = 0;

	return finish_query(&k, keys_of_contained(&k, NULL, b, &leaves));
}

/*
 * The keys of a pair that an element with these fields must have, or NULL.
 */
static DpQueryNode *
pairs_of_contained(KeyContext *k, const DpPathChain *chain, const DpValue *element)
{
	const DpPath *path;
	DpQueryNode *result = NULL;

	if (k->options->npairs == 0 || chain == NULL || element->type != DP_TYPE_DOCUMENT)
		return NULL;
	path = dp_chain_path(chain);
	for (int i = 0; i < k->options->npairs; i++)
	{
		const DpKeyPair *pair = &k->options->pairs[i];
		DpValue first;
		DpValue second;
		DpKeyBase base;
		DpQueryNode *node;
		bool same = pair->path->nsteps == path->nsteps;

		for (int j = 0; same && j < path->nsteps; j++)
			same =
				path->steps[j].namelen == pair->path->steps[j].namelen &&
				memcmp(path->steps[j].name, pair->path->steps[j].name, path->steps[j].namelen) == 0;
		if (!same || !dp_path_find(element->data, element->len, pair->first, &first) ||
			dp_type_is_container(first.type) || first.type == DP_TYPE_NULL ||
			first.type == DP_TYPE_UNDEFINED)
			continue;
		base = dp_key_pair_base(k->options, pair, &first);
		if (dp_path_find(element->data, element->len, pair->second, &second) &&
			!dp_type_is_container(second.type))
			node = add_exact(k, base, &second);
		else
			node = add_classes(k, base, DP_KEY_MISSING, DP_KEY_MAXKEY);
		result = both(result, either(node, add_missing(k, dp_key_base(k->options, pair->state))));
	}
	return result;
}

/*
 * The keys of documents that contain this value at a path.  chain is NULL for the document itself.
 */
static DpQueryNode *
keys_of_contained(KeyContext *k, const DpPathChain *chain, const DpValue *value, int *leaves)
{
	DpQueryNode *result = NULL;
	DpKeyBase base;
	DpIter iter;
	DpElement element;

	check_stack_depth();
	if (dp_type_is_container(value->type))
	{
		if (value->type == DP_TYPE_DOCUMENT)
			result = pairs_of_contained(k, chain, value);
		dp_iter_init_value(&iter, value);
		while (*leaves < ENOUGH_LEAVES && dp_iter_next(&iter, &element))
		{
			DpQueryNode *node = NULL;

			if (value->type == DP_TYPE_DOCUMENT)
			{
				DpPathChain inner = { chain, dp_path_of_name(element.name, element.namelen) };
				DpValue found;

				/* the first field of a name counts */
				dp_field_find(value->data, value->len, element.name, element.namelen, &found);
				if (found.data == element.value.data)
					node = keys_of_contained(k, &inner, &element.value, leaves);
			}
			else
				node = keys_of_contained(k, chain, &element.value, leaves);
			if (node != NULL && node->op != DP_QUERY_ALL)
				result = both(result, node);
		}
		if (result != NULL)
			return result;
		/* that there is one is all that is known */
		if (chain == NULL || !is_covered(k, chain))
			return &query_all;
		base = chain_base(k, chain);
		(*leaves)++;
		return add_classes(k, base,
						   value->type == DP_TYPE_DOCUMENT ? DP_KEY_DOCUMENT : DP_KEY_ARRAY,
						   DP_KEY_ARRAY);
	}
	if (chain == NULL || !is_covered(k, chain))
		return &query_all;
	(*leaves)++;
	return add_exact(k, chain_base(k, chain), value);
}

DpIndexQuery *
dp_query_of_paths(DpPath *const *paths, int n, bool all, const DpKeyOptions *options)
{
	KeyContext k = { options, palloc0(sizeof(DpIndexQuery)) };
	DpQueryNode *result = all ? &query_all : &query_none;

	for (int i = 0; i < n; i++)
	{
		DpPathChain chain = { NULL, paths[i] };
		DpQueryNode *node = &query_all;

		if (paths[i]->nsteps > 0 && is_covered(&k, &chain))
			node = add_classes(&k, chain_base(&k, &chain), DP_KEY_MINKEY, DP_KEY_MAXKEY);
		result = all ? both(result, node) : either(result, node);
	}
	return finish_query(&k, result);
}

/* ---------------------------------------------------------------- answers */

GinTernaryValue
dp_query_evaluate(const DpQueryNode *node, const GinTernaryValue *check)
{
	GinTernaryValue result;

	switch (node->op)
	{
		case DP_QUERY_ALL:
			return GIN_TRUE;
		case DP_QUERY_NONE:
			return GIN_FALSE;
		case DP_QUERY_ENTRY:
			return check[node->entry];
		case DP_QUERY_AND:
			result = GIN_TRUE;
			for (int i = 0; i < node->n; i++)
			{
				GinTernaryValue child = dp_query_evaluate(node->nodes[i], check);

				if (child == GIN_FALSE)
					return GIN_FALSE;
				if (child == GIN_MAYBE)
					result = GIN_MAYBE;
			}
			return result;
		case DP_QUERY_OR:
			result = GIN_FALSE;
			for (int i = 0; i < node->n; i++)
			{
				GinTernaryValue child = dp_query_evaluate(node->nodes[i], check);

				if (child == GIN_TRUE)
					return GIN_TRUE;
				if (child == GIN_MAYBE)
					result = GIN_MAYBE;
			}
			return result;
	}
	return GIN_MAYBE;
}
