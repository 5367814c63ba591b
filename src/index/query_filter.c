/*
 * query_filter.c
 *		Conditions written as a filter, as EXPLAIN shows them and as the index
 *		gets them.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"

#include "index/query.h"

/* The comment in filters that were chosen by statistics */
#define CHOSEN "chosen by statistics"

static void append_conditions(DpBuilder *b, const DpCondition *condition);
static List *flatten(List *list, const DpCondition *condition);
static const char *field_name(const DpCondition *condition, uint32 *len);
static bool same_field(const DpCondition *a, const DpCondition *b);
static bool is_bare(const DpCondition *condition);
static void append_field(DpBuilder *b, const DpCondition *condition);
static void append_operators(DpBuilder *b, const DpCondition *condition);
static void append_comparison(DpBuilder *b, const DpFilterNode *node);
static void append_types(DpBuilder *b, const DpTypeSet *types);

struct varlena *
dp_conditions_to_filter(const DpCondition *condition, bool chosen)
{
	DpBuilder b;

	if (condition->op == DP_COND_ALL)
		return NULL;
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	append_conditions(&b, condition);
	if (chosen)
		dp_builder_append_string(&b, "$comment", 8, CHOSEN, strlen(CHOSEN));
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

/* A comment is a condition that is always true. */
bool
dp_filter_is_chosen(const DpFilterNode *root)
{
	if (root->op == FILTER_AND)
		for (int i = 0; i < root->u.children.n; i++)
			if (root->u.children.nodes[i]->op == FILTER_TRUE)
				return true;
	return false;
}

/*
 * Conditions that must all hold become fields of the open document.  Equalities at one path become
 * $all; a second field of the same name goes into $and.
 */
static void
append_conditions(DpBuilder *b, const DpCondition *condition)
{
	List *list = flatten(NIL, condition);
	List *rest = NIL;
	ListCell *lc;

	check_stack_depth();
	for (int i = 0; i < list_length(list); i++)
	{
		const DpCondition *first = list_nth(list, i);
		List *same = NIL;
		bool all_bare;
		uint32 len;
		const char *name;

		CHECK_FOR_INTERRUPTS();
		if (first == NULL)
			continue;
		/* about one value: operators side by side */
		if (first->in_value)
		{
			append_operators(b, first);
			continue;
		}
		all_bare = is_bare(first);
		for (int j = i + 1; j < list_length(list); j++)
		{
			DpCondition *other = list_nth(list, j);

			if (other == NULL || !same_field(first, other))
				continue;
			same = lappend(same, other);
			all_bare = all_bare && is_bare(other);
			lfirst(list_nth_cell(list, j)) = NULL;
		}
		if (same == NIL || !all_bare)
		{
			append_field(b, first);
			rest = list_concat(rest, same);
			continue;
		}
		name = field_name(first, &len);
		dp_builder_begin_document_field(b, name, len);
		dp_builder_begin_array_field(b, "$all", 4);
		dp_builder_append_value(b, NULL, 0, &first->node->value);
		foreach(lc, same)
			dp_builder_append_value(b, NULL, 0, &((DpCondition *) lfirst(lc))->node->value);
		dp_builder_end(b);
		dp_builder_end(b);
	}
	if (rest == NIL)
		return;
	dp_builder_begin_array_field(b, "$and", 4);
	foreach(lc, rest)
	{
		dp_builder_begin_document_field(b, NULL, 0);
		append_field(b, lfirst(lc));
		dp_builder_end(b);
	}
	dp_builder_end(b);
}

/* The conditions that are not conjunctions themselves. */
static List *
flatten(List *list, const DpCondition *condition)
{
	if (condition->op != DP_COND_AND && condition->op != DP_COND_PAIR)
		return lappend(list, (void *) condition);
	for (int i = 0; i < condition->nchildren; i++)
		list = flatten(list, condition->children[i]);
	return list;
}

/* The name of the field under which a condition stands. */
static const char *
field_name(const DpCondition *condition, uint32 *len)
{
	const char *name;

	switch (condition->op)
	{
		case DP_COND_OR:
			name = "$or";
			break;
		case DP_COND_ALL:
			name = "$alwaysTrue";
			break;
		case DP_COND_NONE:
			name = "$alwaysFalse";
			break;
		default:
			*len = condition->name->namelen;
			return condition->name->name;
	}
	*len = strlen(name);
	return name;
}

static bool
same_field(const DpCondition *a, const DpCondition *b)
{
	uint32 alen;
	uint32 blen;
	const char *aname = field_name(a, &alen);
	const char *bname = field_name(b, &blen);

	return alen == blen && memcmp(aname, bname, alen) == 0;
}

/* Whether it is an equality that needs no operator. */
static bool
is_bare(const DpCondition *condition)
{
	const DpValue *value;
	DpIter iter;
	DpElement first;

	if (condition->op != DP_COND_EQUAL || condition->node->op != FILTER_EQ || condition->in_value)
		return false;
	value = &condition->node->value;
	if (value->type == DP_TYPE_REGEX)
		return false;
	if (value->type != DP_TYPE_DOCUMENT)
		return true;
	dp_iter_init_value(&iter, value);
	return !dp_iter_next(&iter, &first) || first.name[0] != '$';
}

/*
 * A condition as one field of the open document.
 */
static void
append_field(DpBuilder *b, const DpCondition *condition)
{
	uint32 len;
	const char *name = field_name(condition, &len);

	switch (condition->op)
	{
		case DP_COND_ALL:
		case DP_COND_NONE:
			dp_builder_append_int32(b, name, len, 1);
			break;
		case DP_COND_OR:
			dp_builder_begin_array_field(b, name, len);
			for (int i = 0; i < condition->nchildren; i++)
			{
				dp_builder_begin_document_field(b, NULL, 0);
				append_conditions(b, condition->children[i]);
				dp_builder_end(b);
			}
			dp_builder_end(b);
			break;
		default:
			if (is_bare(condition))
			{
				dp_builder_append_value(b, name, len, &condition->node->value);
				break;
			}
			dp_builder_begin_document_field(b, name, len);
			append_operators(b, condition);
			dp_builder_end(b);
			break;
	}
}

/* The conditions on a path, as operators in the open document. */
static void
append_operators(DpBuilder *b, const DpCondition *condition)
{
	const DpFilterNode *node = condition->node;

	switch (condition->op)
	{
		case DP_COND_EQUAL:
			append_comparison(b, node);
			break;
		case DP_COND_RANGE:
			append_comparison(b, node);
			if (condition->upper != NULL)
				append_comparison(b, condition->upper);
			break;
		case DP_COND_IN:
			dp_builder_begin_array_field(b, "$in", 3);
			for (int i = 0; i < node->u.in.nvalues; i++)
				dp_builder_append_value(b, NULL, 0, &node->u.in.values[i]);
			for (int i = 0; i < node->u.in.nregexes; i++)
				dp_builder_append_value(b, NULL, 0, &node->u.in.regex_values[i]);
			dp_builder_end(b);
			break;
		case DP_COND_REGEX:
			dp_builder_append_string(b, "$regex", 6, node->u.regex.pattern, node->u.regex.len);
			if (node->u.regex.optlen > 0)
				dp_builder_append_string(b, "$options", 8, node->u.regex.options,
										 node->u.regex.optlen);
			break;
		case DP_COND_EMPTY_ARRAY:
			dp_builder_append_int32(b, "$size", 5, 0);
			break;
		case DP_COND_TYPES:
			append_types(b, &condition->types);
			break;
		case DP_COND_EXISTS:
			dp_builder_append_bool(b, "$exists", 7, true);
			break;
		case DP_COND_MISSING:
			dp_builder_append_bool(b, "$exists", 7, false);
			break;
		case DP_COND_ELEMENT:
			dp_builder_begin_document_field(b, "$elemMatch", 10);
			append_conditions(b, condition->children[0]);
			dp_builder_end(b);
			break;
		default:
			elog(ERROR, "condition %d has no operator", condition->op);
	}
}

static void
append_comparison(DpBuilder *b, const DpFilterNode *node)
{
	const char *name = NULL;

	switch (node->op)
	{
		case FILTER_EQ:
			name = "$eq";
			break;
		case FILTER_LT:
			name = "$lt";
			break;
		case FILTER_LTE:
			name = "$lte";
			break;
		case FILTER_GT:
			name = "$gt";
			break;
		case FILTER_GTE:
			name = "$gte";
			break;
		default:
			elog(ERROR, "operator %d is no comparison", node->op);
	}
	dp_builder_append_value(b, name, strlen(name), &node->value);
}

/*
 * $type, with "number" for the four types of numbers.
 */
static void
append_types(DpBuilder *b, const DpTypeSet *types)
{
	DpTypeSet set = *types;
	DpTypeSet numbers = { 0 };
	bool has_numbers = true;
	int n = 0;
	const char *name = NULL;

	dp_type_set_add_name(&numbers, "number", 6);
	for (int i = 0; i < lengthof(numbers.bits); i++)
		if ((set.bits[i] & numbers.bits[i]) != numbers.bits[i])
			has_numbers = false;
	if (has_numbers)
	{
		for (int i = 0; i < lengthof(numbers.bits); i++)
			set.bits[i] &= ~numbers.bits[i];
		name = "number";
		n++;
	}
	for (int type = 0; type < 256; type++)
		if (dp_type_set_has(&set, type))
		{
			name = dp_type_name(type);
			n++;
		}
	if (n == 1)
	{
		dp_builder_append_string(b, "$type", 5, name, strlen(name));
		return;
	}
	dp_builder_begin_array_field(b, "$type", 5);
	if (has_numbers)
		dp_builder_append_string(b, NULL, 0, "number", 6);
	for (int type = 0; type < 256; type++)
		if (dp_type_set_has(&set, type))
			dp_builder_append_string(b, NULL, 0, dp_type_name(type), strlen(dp_type_name(type)));
	dp_builder_end(b);
}
