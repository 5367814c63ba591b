/*
 * filter.c
 *		Runs filters over documents.
 *
 * A path is followed through documents in one direction.  At an array, MongoDB's rule applies: each
 * element that is a document is tested with the rest of the path, and a whole number also leads to
 * the element at that position.  At the end of the path an array is tested element by element and
 * then itself. A path without a value gives one missing value, but an array on the way without
 * documents gives none.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/builder.h"
#include "bson/compare.h"
#include "bson/fetch.h"
#include "bson/names.h"
#include "mql/filter_node.h"

/* An additional result: the position for $. */
typedef struct FilterWatch
{
	const char *array_path; /* NULL: any array */
	uint32 pathlen;
	int32 index;
	int rank; /* of the condition that has set it */
} FilterWatch;

/* Where a path ended */
typedef enum FilterEnd
{
	END_MISSING,
	END_VALUE,
	END_ARRAY /* in an array, with steps left */
} FilterEnd;

/* What the available part of a document decides */
typedef enum FilterAnswer
{
	ANSWER_NO,
	ANSWER_YES,
	ANSWER_UNKNOWN
} FilterAnswer;

/* The elements of an array, one after the other. */
typedef struct ArrayWalk
{
	const uint8 *next;
	const uint8 *end;
} ArrayWalk;

/* Arrays of so many bytes are sorted if many values are searched. */
#define SORTED_BYTES 1024

static DpValue *array_sorted(const DpValue *array, int *n);
static bool tree_match(const DpFilterNode *node, const DpValue *doc, FilterWatch *watch);
static bool
group_match(const DpFilterNode *node, const DpValue *doc, FilterWatch *watch, DpFinder *finder);
static bool expr_match(const DpFilterNode *node, const DpValue *doc);
static bool condition_match(const DpFilterNode *node, FilterEnd end, const DpValue *value, int step,
							FilterWatch *watch);
static bool
array_match(const DpFilterNode *node, const DpValue *array, int step, FilterWatch *watch);
static bool elements_match(const DpFilterNode *node, const DpValue *array, FilterWatch *watch);
static FilterAnswer partial_match(const DpFilterNode *node, const DpValue *doc, uint32 avail);

static inline void
walk_init(ArrayWalk *walk, const DpValue *array)
{
	DpIter iter;

	dp_iter_init_value(&iter, array);
	walk->next = iter.next;
	walk->end = iter.end;
}

/*
 * The next element.  As dp_iter_next_value(), but names are short here.
 */
static inline bool
walk_next(ArrayWalk *walk, DpValue *value)
{
	const uint8 *p = walk->next;
	const uint8 *nul;

	if (p >= walk->end)
		return false;
	value->type = *p++;
	nul = p;
	if (likely(walk->end - p >= 8))
	{
		int i = 0;

		while (i < 7 && nul[i] != 0)
			i++;
		nul += i;
	}
	if (unlikely(*nul != 0 || nul >= walk->end))
	{
		nul = memchr(p, 0, walk->end - p);
		if (nul == NULL)
			dp_corrupted("the name of a field does not end");
	}
	value->data = nul + 1;
	value->len = dp_value_size(value->type, nul + 1, walk->end);
	walk->next = value->data + value->len;
	return true;
}

/*
 * Follows a path from a step on through documents.  *at begins as where the
 * path starts and becomes where it ended, *step the first step not taken.
 */
static inline FilterEnd
path_follow(const DpPath *path, DpValue *at, int *step)
{
	const uint8 *element;

	while (*step < path->nsteps)
	{
		if (at->type == DP_TYPE_ARRAY)
			return END_ARRAY;
		if (at->type != DP_TYPE_DOCUMENT || !dp_step_find(at, &path->steps[*step], &element, at))
			return END_MISSING;
		(*step)++;
	}
	return END_VALUE;
}

/*
 * Records the element of the array at the first steps of the condition's path through which it was
 * satisfied.  The outermost array comes last and counts.  Of several conditions MongoDB tests
 * $elemMatch first, then equality, then less and greater, and the last one counts.
 */
static void
watch_note(FilterWatch *watch, const DpFilterNode *node, int steps, int32 index)
{
	const DpFilterPath *path = node->path;
	int rank = node->op < FILTER_SIZE ? node->op : 0;

	if (watch->array_path != NULL)
	{
		uint32 len = 0;

		for (int i = 0; i < steps; i++)
			len += path->path->steps[i].namelen + (i > 0);
		if (len != watch->pathlen || memcmp(path->name, watch->array_path, len) != 0)
			return;
	}
	if (watch->index >= 0 && rank < watch->rank)
		return;
	watch->index = index;
	watch->rank = rank;
}

/* Whether the positions of its children count for $: those of $or only if all have one path. */
static bool
is_watched(const DpFilterNode *node)
{
	if (node->op != FILTER_OR)
		return node->op == FILTER_AND;
	for (int i = 0; i < node->u.children.n; i++)
	{
		const DpFilterNode *child = node->u.children.nodes[i];

		if (child->op < FILTER_FIRST_CONDITION ||
			strcmp(child->path->name, node->u.children.nodes[0]->path->name) != 0)
			return false;
	}
	return true;
}

/*
 * Whether all, one or none of the children match; with a finder they find their fields by it.
 */
static bool
group_match(const DpFilterNode *node, const DpValue *doc, FilterWatch *watch, DpFinder *finder)
{
	bool all = node->op == FILTER_AND;
	DpValue *sorted = NULL; /* the elements of the array at the path, if many are searched */
	int nsorted = 0;
	int nlooked = 0;
	bool result = node->op != FILTER_OR;
	const DpFilterPath *path = NULL;
	FilterEnd end = END_MISSING;
	DpValue at;
	int step = 0;

	for (int i = 0; i < node->u.children.n; i++)
	{
		const DpFilterNode *child = node->u.children.nodes[i];
		FilterWatch *noted = watch != NULL && is_watched(node) ? watch : NULL;
		bool met;

		if (child->op < FILTER_FIRST_CONDITION)
			met = tree_match(child, doc, noted);
		else
		{
			/* conditions on one field follow each other */
			if (child->path != path)
			{
				path = child->path;
				at = *doc;
				step = 0;
				if (finder == NULL || path->path->nsteps == 0)
					end = path_follow(path->path, &at, &step);
				else if (dp_finder_find(finder, path->path->steps[0].name,
										path->path->steps[0].namelen, &at))
				{
					step = 1;
					end = path_follow(path->path, &at, &step);
				}
				else
					end = END_MISSING;
				nlooked = 0;
				if (sorted != NULL)
					pfree(sorted);
				sorted = NULL;
			}
			if (all && noted == NULL && end == END_VALUE && at.type == DP_TYPE_ARRAY &&
				child->op == FILTER_EQ && child->value.type != DP_TYPE_NULL &&
				++nlooked > DP_NAMES_FEW && at.len > SORTED_BYTES)
			{
				if (sorted == NULL)
					sorted = array_sorted(&at, &nsorted);
				if (dp_values_find(sorted, nsorted, &child->value) >= 0)
					continue;
			}
			met = condition_match(child, end, &at, step, noted);
		}
		if (met == all)
			continue;
		if (all && watch != NULL)
			watch->index = -1;
		result = !result;
		break;
	}
	if (sorted != NULL)
		pfree(sorted);
	return result;
}

/* The elements of an array, sorted. */
static DpValue *
array_sorted(const DpValue *array, int *n)
{
	int room = dp_array_count(array->data, array->len);
	DpValue *values = palloc_extended(sizeof(DpValue) * (Size) room, MCXT_ALLOC_HUGE);
	DpIter iter;

	dp_iter_init_value(&iter, array);
	for (*n = 0; *n < room && dp_iter_next_value(&iter, &values[*n]);)
		(*n)++;
	dp_values_sort(values, *n);
	return values;
}

/*
 * Whether a document matches.
 */
static bool
tree_match(const DpFilterNode *node, const DpValue *doc, FilterWatch *watch)
{
	DpValue at = *doc;
	int step = 0;
	FilterEnd end;

	switch (node->op)
	{
		case FILTER_TRUE:
			return true;

		case FILTER_FALSE:
			return false;

		case FILTER_AND:
		case FILTER_OR:
		case FILTER_NOR:
		{
			DpFinder finder;
			bool many = node->u.children.n > DP_NAMES_FEW && doc->type == DP_TYPE_DOCUMENT;
			bool met;

			check_stack_depth();
			CHECK_FOR_INTERRUPTS();
			if (many)
				dp_finder_init(&finder, doc);
			met = group_match(node, doc, watch, many ? &finder : NULL);
			if (many)
				dp_finder_free(&finder);
			return met;
		}

		case FILTER_SCHEMA:
			return dp_schema_match(node->u.schema, doc);

		case FILTER_EXPR:
			return expr_match(node, doc);

		default:
			end = path_follow(node->path->path, &at, &step);
			return condition_match(node, end, &at, step, watch);
	}
}

/*
 * Whether an expression over the document is true.
 */
static bool
expr_match(const DpFilterNode *node, const DpValue *doc)
{
	MemoryContext old = MemoryContextSwitchTo(node->u.expr.scratch);
	DpExprState state;
	DpValue value;
	bool result;

	dp_expr_state_init(&state, doc);
	result = dp_expr_eval(node->u.expr.compiled, &state, &value) && dp_expr_is_true(&value);
	MemoryContextSwitchTo(old);
	MemoryContextReset(node->u.expr.scratch);
	return result;
}

/* True if a condition is satisfied at the end of its path. */
static bool
condition_match(const DpFilterNode *node, FilterEnd end, const DpValue *value, int step,
				FilterWatch *watch)
{
	switch (end)
	{
		case END_MISSING:
			return dp_filter_test(node, NULL);
		case END_ARRAY:
			return array_match(node, value, step, watch);
		case END_VALUE:
			break;
	}
	if (value->type == DP_TYPE_ARRAY)
		return elements_match(node, value, watch);
	return dp_filter_test(node, value);
}

/* True if an array at the end of the path, or an element of it, satisfies the condition. */
static bool
elements_match(const DpFilterNode *node, const DpValue *array, FilterWatch *watch)
{
	ArrayWalk walk;
	DpValue value;
	int32 index = 0;

	if (node->op == FILTER_ELEM_OBJECT || node->op == FILTER_ELEM_VALUE)
	{
		CHECK_FOR_INTERRUPTS();
		walk_init(&walk, array);
		for (; walk_next(&walk, &value); index++)
			if (dp_filter_test_element(node, &value))
				goto met;
		return false;
	}
	if (node->op == FILTER_SIZE || node->path->alone)
		return dp_filter_test(node, array);

	CHECK_FOR_INTERRUPTS();
	walk_init(&walk, array);
	for (; walk_next(&walk, &value); index++)
		if (dp_filter_test(node, &value))
			goto met;
	return dp_filter_test(node, array);

met:
	if (watch != NULL)
		watch_note(watch, node, node->path->path->nsteps, index);
	return true;
}

/*
 * True if a value in an array on the way satisfies the condition, from the given step of the path
 * on.
 */
static bool
array_match(const DpFilterNode *node, const DpValue *array, int step, FilterWatch *watch)
{
	const DpPath *path = node->path->path;
	const DpPathStep *s = &path->steps[step];
	int32 wanted = s->is_index && s->index >= 0 ? s->index : -1;
	ArrayWalk walk;
	DpValue value;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	walk_init(&walk, array);
	for (int32 index = 0; walk_next(&walk, &value); index++)
	{
		DpValue at = value;
		int next = step;
		FilterEnd end;

		if (value.type == DP_TYPE_DOCUMENT)
		{
			end = path_follow(path, &at, &next);
			if (condition_match(node, end, &at, next, watch))
				goto met;
		}
		if (likely(index != wanted))
			continue;
		if (step + 1 == path->nsteps)
		{
			/* the element itself: its own elements are not tried, and $ does not mean it */
			if (dp_filter_test(node, &value))
				return true;
			continue;
		}
		at = value;
		next = step + 1;
		if (value.type == DP_TYPE_DOCUMENT)
		{
			end = path_follow(path, &at, &next);
			if (condition_match(node, end, &at, next, watch))
				goto met;
		}
		else if (value.type == DP_TYPE_ARRAY && array_match(node, &value, step + 1, watch))
			goto met;
		continue;

	met:
		if (watch != NULL)
			watch_note(watch, node, step, index);
		return true;
	}
	return false;
}

/* Whether the elements of an array have their positions for names, as they should. */
static bool
names_are_positions(const DpValue *array)
{
	DpIter iter;
	DpElement element;
	char name[11];

	dp_iter_init_value(&iter, array);
	for (uint32 index = 0; dp_iter_next(&iter, &element); index++)
		if (element.namelen != dp_index_name(index, name) ||
			memcmp(element.name, name, element.namelen) != 0)
			return false;
	return true;
}

/* True if a value satisfies all conditions of an $elemMatch. */
static bool
children_match(const DpFilterNode *node, const DpValue *value)
{
	for (int i = 0; i < node->u.children.n; i++)
		if (!tree_match(node->u.children.nodes[i], value, NULL))
			return false;
	return true;
}

/* True if an element satisfies the conditions of an $elemMatch. */
bool
dp_filter_test_element(const DpFilterNode *node, const DpValue *element)
{
	DpValue value = *element;
	DpBuilder b;
	DpIter iter;
	bool result;

	CHECK_FOR_INTERRUPTS();
	if (node->op != FILTER_ELEM_OBJECT || value.type == DP_TYPE_DOCUMENT)
		return children_match(node, &value);
	if (value.type != DP_TYPE_ARRAY)
		return false;

	/* an array is a document of its elements here, named by their positions */
	if (likely(names_are_positions(&value)))
	{
		value.type = DP_TYPE_DOCUMENT;
		return children_match(node, &value);
	}
	dp_builder_init_value(&b, value.len);
	dp_builder_begin_array(&b);
	dp_iter_init_value(&iter, element);
	while (dp_iter_next_value(&iter, &value))
		dp_builder_append_value(&b, NULL, 0, &value);
	dp_builder_end(&b);
	value = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	result = children_match(node, &value);
	dp_builder_free(&b);
	return result;
}

bool
dp_filter_match(DpFilter *filter, const DpValue *doc)
{
	return doc->type == DP_TYPE_DOCUMENT && tree_match(filter->root, doc, NULL);
}

bool
dp_filter_match_value(DpFilter *filter, const DpValue *value)
{
	if (filter->mode == DP_FILTER_DOCUMENT)
		return dp_filter_match(filter, value);
	if (filter->mode == DP_FILTER_ELEMENT)
		return dp_filter_test_element(filter->root, value);
	return tree_match(filter->root, value, NULL);
}

bool
dp_filter_match_position(DpFilter *filter, const DpValue *doc, const char *array_path,
						 uint32 pathlen, int32 *index)
{
	FilterWatch watch = { array_path, pathlen, -1 };
	bool matched;

	matched = doc->type == DP_TYPE_DOCUMENT && tree_match(filter->root, doc, &watch);
	if (matched && watch.index < 0)
	{
		watch.array_path = NULL;
		(void) tree_match(filter->root, doc, &watch);
	}
	*index = watch.index;
	return matched;
}

const char *
dp_filter_identifier(const DpFilter *filter, uint32 *len)
{
	*len = filter->idlen;
	return filter->identifier;
}

/* ---------------------------------------------------------------- stored documents */

/* See fetch.c: after a slice that did not do, so many documents are read as a whole. */
#define SLICE_MISSES 15
#define SLICE_ALWAYS (64 * 1024)

bool
dp_filter_match_datum(DpFilter *filter, Datum datum)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(datum);
	DpValue doc;
	bool matched;

	doc.type = DP_TYPE_DOCUMENT;
	if (likely(!VARATT_IS_EXTERNAL(stored) && !VARATT_IS_COMPRESSED(stored)))
	{
		doc.data = DP_DOC_DATA(stored);
		doc.len = DP_DOC_SIZE(stored);
		dp_fetch_ahead(doc.data, doc.len);
		return tree_match(filter->root, &doc, NULL);
	}

	doc.len = dp_datum_size(datum);
	if (filter->misses == 0 || doc.len > SLICE_ALWAYS)
	{
		struct varlena *part = dp_fetch_first(stored);

		if (part != NULL)
		{
			FilterAnswer answer;

			doc.data = (const uint8 *) VARDATA_ANY(part);
			answer = partial_match(filter->root, &doc, VARSIZE_ANY_EXHDR(part));
			if (part != stored)
				pfree(part);
			if (answer != ANSWER_UNKNOWN)
				return answer == ANSWER_YES;
			filter->misses = SLICE_MISSES;
		}
	}
	else
		filter->misses--;

	stored = pg_detoast_datum_packed(stored);
	doc.data = DP_DOC_DATA(stored);
	matched = tree_match(filter->root, &doc, NULL);
	pfree(stored);
	return matched;
}

/* What the first avail bytes of a document decide. */
static FilterAnswer
partial_match(const DpFilterNode *node, const DpValue *doc, uint32 avail)
{
	FilterAnswer result;
	FilterAnswer decisive;
	DpValue at;
	int step = 1;
	FilterEnd end;

	switch (node->op)
	{
		case FILTER_TRUE:
			return ANSWER_YES;
		case FILTER_FALSE:
			return ANSWER_NO;
		case FILTER_SCHEMA:
		case FILTER_EXPR:
			return ANSWER_UNKNOWN;

		case FILTER_AND:
		case FILTER_OR:
		case FILTER_NOR:
			check_stack_depth();
			decisive = node->op == FILTER_AND ? ANSWER_NO : ANSWER_YES;
			result = node->op == FILTER_AND ? ANSWER_YES : ANSWER_NO;
			for (int i = 0; i < node->u.children.n; i++)
			{
				FilterAnswer answer = partial_match(node->u.children.nodes[i], doc, avail);

				if (answer == ANSWER_UNKNOWN)
					result = ANSWER_UNKNOWN;
				else if (answer == decisive)
				{
					result = answer;
					break;
				}
			}
			if (node->op == FILTER_NOR && result != ANSWER_UNKNOWN)
				result = result == ANSWER_YES ? ANSWER_NO : ANSWER_YES;
			return result;

		default:
			switch (dp_path_find_partial(doc, avail, node->path->first, true, &at))
			{
				case DP_FIND_SHORT:
					return ANSWER_UNKNOWN;
				case DP_FIND_ABSENT:
					end = END_MISSING;
					break;
				default:
					end = path_follow(node->path->path, &at, &step);
					break;
			}
			return condition_match(node, end, &at, step, NULL) ? ANSWER_YES : ANSWER_NO;
	}
}
