/*
 * update_array.c
 *		The operators of updates for arrays: $push, $addToSet, $pop, $pull and
 *		$pullAll.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/compare.h"
#include "mql/update_tree.h"

/* One of the fields of $sort */
typedef struct PushSortKey
{
	DpPath *path;
	bool descending;
} PushSortKey;

/* The arguments of $push */
typedef struct PushSpec
{
	DpValue *values;
	int n;
	bool moves; /* there is one of the following */
	bool has_position;
	int64 position;
	bool has_slice;
	int64 slice;
	bool has_sort;
	bool descending; /* by the elements themselves, */
	int nkeys;       /* or by so many of their fields */
	PushSortKey *keys;
} PushSpec;

/* Values of an operand, in their order and, as positions in it, sorted */
typedef struct ValueSet
{
	DpValue *values;
	int n;
	int *sorted;
} ValueSet;

/* The elements that $pull and $pullAll remove: those in the set, or those that match the filter */
typedef struct PullSpec
{
	ValueSet *set;
	DpFilter *filter;
	bool documents; /* which is for documents */
} PullSpec;

/* An element of an array that is sorted */
typedef struct SortItem
{
	DpValue value;
	DpValue *keys;
	uint32 position;
} SortItem;

static void push_compile(DpUpdateNode *leaf, const DpLocation *location);
static void push_sort_compile(PushSpec *spec, const DpValue *sort, const DpLocation *location);
static void push_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void push_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value);
static void add_compile(DpUpdateNode *leaf, const DpLocation *location);
static void add_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void add_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value);
static void pop_compile(DpUpdateNode *leaf, const DpLocation *location);
static void pop_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void pull_compile(DpUpdateNode *leaf, const DpLocation *location);
static void pull_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void pull_all_compile(DpUpdateNode *leaf, const DpLocation *location);
static DpValue *array_values(const DpValue *array, Size more, int *n);
static int compare_sorted(const void *a, const void *b, void *arg);
static int set_find(const ValueSet *set, const DpValue *value);
static ValueSet *set_of_array(const DpValue *array);
static ValueSet *set_of_one(DpValue *value);
static int compare_items(const void *a, const void *b, void *arg);

const DpUpdateOperator dp_update_array_operators[] = {
	{ "$push", UPDATE_CREATES, push_compile, push_apply, push_create },
	{ "$addToSet", UPDATE_CREATES, add_compile, add_apply, add_create },
	{ "$pop", 0, pop_compile, pop_apply, NULL },
	{ "$pull", 0, pull_compile, pull_apply, NULL },
	{ "$pullAll", 0, pull_all_compile, pull_apply, NULL },
	{ NULL, 0, NULL, NULL, NULL }
};

/*
 * The values of an array, palloc'd with room for so many more.
 */
static DpValue *
array_values(const DpValue *array, Size more, int *n)
{
	uint32 count = dp_array_count(array->data, array->len);
	DpValue *values = palloc_extended(sizeof(DpValue) * (count + more + 1), MCXT_ALLOC_HUGE);
	DpIter iter;

	dp_iter_init_value(&iter, array);
	for (*n = 0; *n < count && dp_iter_next_value(&iter, &values[*n]);)
		(*n)++;
	return values;
}

/* The array of values as a new value. */
static void
make_array(const DpValue *values, int n, DpValue *array)
{
	DpBuilder b;

	dp_builder_init(&b, 64);
	dp_builder_begin_array(&b);
	for (int i = 0; i < n; i++)
		dp_builder_append_value(&b, NULL, 0, &values[i]);
	dp_builder_end(&b);
	*array = dp_builder_view(&b, DP_TYPE_ARRAY);
}

/* ---------------------------------------------------------------- $push */

/*
 * A value, or a document with $each and how to put it in.
 */
static void
push_compile(DpUpdateNode *leaf, const DpLocation *location)
{
	PushSpec *spec = palloc0(sizeof(PushSpec));
	DpIter iter;
	DpElement element;
	DpValue each;

	leaf->extra = spec;
	if (leaf->operand.type != DP_TYPE_DOCUMENT ||
		!dp_document_find(leaf->operand.data, leaf->operand.len, "$each", 5, &each))
	{
		spec->values = &leaf->operand;
		spec->n = 1;
		return;
	}

	dp_iter_init_value(&iter, &leaf->operand);
	while (dp_iter_next(&iter, &element))
	{
		DpLocation inner = dp_location_field(location, &element);

		if (strcmp(element.name, "$each") == 0)
		{
			if (element.value.type != DP_TYPE_ARRAY)
				dp_bad_spec_type(&inner, "an array", &element.value);
			spec->values = array_values(&element.value, 0, &spec->n);
		}
		else if (strcmp(element.name, "$position") == 0)
		{
			if (!dp_value_to_whole(&element.value, &spec->position))
				dp_bad_spec_type(&inner, "a whole number", &element.value);
			spec->has_position = spec->moves = true;
		}
		else if (strcmp(element.name, "$slice") == 0)
		{
			if (!dp_value_to_whole(&element.value, &spec->slice))
				dp_bad_spec_type(&inner, "a whole number", &element.value);
			spec->has_slice = spec->moves = true;
		}
		else if (strcmp(element.name, "$sort") == 0)
		{
			push_sort_compile(spec, &element.value, &inner);
			spec->has_sort = spec->moves = true;
		}
		else if (element.name[0] == '$')
			dp_unknown_operator(&inner, "modifier of $push", NULL);
		else
			dp_bad_spec(&inner, "the field \"%s\" stands beside $each", element.name);
	}
}

/*
 * 1, -1, or a document of paths with these.
 */
static void
push_sort_compile(PushSpec *spec, const DpValue *sort, const DpLocation *location)
{
	DpIter iter;
	DpElement element;
	int64 direction;

	/* the last $sort counts, as of any field that stands there twice */
	spec->nkeys = 0;
	if (sort->type != DP_TYPE_DOCUMENT)
	{
		if (!dp_value_to_whole(sort, &direction) || (direction != 1 && direction != -1))
			dp_bad_spec(location, "$sort is 1, -1 or a document of fields with these");
		spec->descending = direction < 0;
		return;
	}
	spec->keys = palloc(sizeof(PushSortKey) * Max(dp_array_count(sort->data, sort->len), 1));
	dp_iter_init_value(&iter, sort);
	while (dp_iter_next(&iter, &element))
	{
		DpLocation inner = dp_location_field(location, &element);
		PushSortKey *key = &spec->keys[spec->nkeys++];
		const char **names;
		uint32 *lens;
		int n = 1;
		const char *p = element.name;

		if (!dp_value_to_whole(&element.value, &direction) || (direction != 1 && direction != -1))
			dp_bad_spec(&inner, "the direction of $sort is 1 or -1");
		key->descending = direction < 0;
		for (int i = 0; i < element.namelen; i++)
			n += element.name[i] == '.';
		names = palloc(sizeof(char *) * n);
		lens = palloc(sizeof(uint32) * n);
		for (int i = 0; i < n; i++)
		{
			names[i] = p;
			lens[i] = strcspn(p, ".");
			p += lens[i] + 1;
			if (lens[i] == 0)
				dp_bad_spec(&inner, "a part of the path is empty");
		}
		key->path = dp_path_of_names(n, names, lens);
	}
	if (spec->nkeys == 0)
		dp_bad_spec(location, "$sort names no fields");
}

/*
 * Inserts, then sorts, then slices the n values of an array, which has room
 * for those of the operand.  *first is the first value that stays.  Returns how
 * many stay.
 */
static int
push_arrange(const PushSpec *spec, DpValue *values, int n, int *first)
{
	int64 at = n;

	if (spec->has_position)
		at = spec->position < 0 ? Max(n + spec->position, 0) : Min(spec->position, n);
	memmove(values + at + spec->n, values + at, sizeof(DpValue) * (n - at));
	memcpy(values + at, spec->values, sizeof(DpValue) * spec->n);
	n += spec->n;

	if (spec->has_sort && n > 1)
	{
		SortItem *items = palloc_extended(sizeof(SortItem) * n, MCXT_ALLOC_HUGE);
		static const uint8 nothing[1] = { 0 };
		DpValue *keys = NULL;

		if (spec->nkeys > 0)
			keys = palloc_extended(sizeof(DpValue) * n * spec->nkeys, MCXT_ALLOC_HUGE);
		for (int i = 0; i < n; i++)
		{
			items[i].value = values[i];
			items[i].position = i;
			items[i].keys = keys + (Size) i * spec->nkeys;
			for (int k = 0; k < spec->nkeys; k++)
				if (values[i].type != DP_TYPE_DOCUMENT ||
					!dp_path_find(values[i].data, values[i].len, spec->keys[k].path,
								  &items[i].keys[k]))
				{
					items[i].keys[k].type = DP_TYPE_NULL;
					items[i].keys[k].data = nothing;
					items[i].keys[k].len = 0;
				}
		}
		qsort_arg(items, n, sizeof(SortItem), compare_items, (void *) spec);
		for (int i = 0; i < n; i++)
			values[i] = items[i].value;
		pfree(items);
		if (keys)
			pfree(keys);
	}

	*first = 0;
	if (spec->has_slice)
	{
		if (spec->slice >= 0)
			n = Min(n, spec->slice);
		else if (-spec->slice < n)
		{
			*first = n + spec->slice;
			n = -spec->slice;
		}
	}
	return n;
}

/* For qsort_arg: the order of $sort; equal elements keep their order. */
static int
compare_items(const void *a, const void *b, void *arg)
{
	const SortItem *x = a;
	const SortItem *y = b;
	const PushSpec *spec = arg;
	int c;

	if (spec->nkeys == 0)
	{
		c = dp_value_compare(&x->value, &y->value);
		if (c != 0)
			return spec->descending ? -c : c;
	}
	for (int k = 0; k < spec->nkeys; k++)
	{
		c = dp_value_compare(&x->keys[k], &y->keys[k]);
		if (c != 0)
			return spec->keys[k].descending ? -c : c;
	}
	return (x->position > y->position) - (x->position < y->position);
}

/* $push to what is there.  Raises DATATYPE_MISMATCH if that is no array. */
static void
push_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	const PushSpec *spec = leaf->extra;
	DpValue *values;
	int n;
	int first;

	if (location->value.type != DP_TYPE_ARRAY)
		dp_update_leaf_error(leaf, &location->value, "an array");
	if (!spec->moves)
	{
		dp_update_append(s, location, spec->values, spec->n);
		return;
	}
	values = array_values(&location->value, spec->n, &n);
	n = push_arrange(spec, values, n, &first);
	dp_update_put_array(s, location, values + first, n);
	pfree(values);
}

/* $push where nothing is: an array. */
static void
push_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value)
{
	const PushSpec *spec = leaf->extra;
	DpValue *values = palloc_extended(sizeof(DpValue) * (spec->n + 1), MCXT_ALLOC_HUGE);
	int first;
	int n = push_arrange(spec, values, 0, &first);

	make_array(values + first, n, value);
	pfree(values);
}

/* ---------------------------------------------------------------- sets of values */

/* For qsort_arg: positions of values, by the values. */
static int
compare_sorted(const void *a, const void *b, void *arg)
{
	const DpValue *values = arg;
	int x = *(const int *) a;
	int y = *(const int *) b;
	int c = dp_value_compare(&values[x], &values[y]);

	return c != 0 ? c : (x > y) - (x < y);
}

/*
 * The values of an array, each of them once, the first of those that are equal.
 */
static ValueSet *
set_of_array(const DpValue *array)
{
	ValueSet *set = palloc(sizeof(ValueSet));
	bool *twice;
	int n;
	int kept = 0;

	set->values = array_values(array, 0, &set->n);
	n = set->n;
	set->sorted = palloc_extended(sizeof(int) * (n + 1), MCXT_ALLOC_HUGE);
	for (int i = 0; i < n; i++)
		set->sorted[i] = i;
	qsort_arg(set->sorted, n, sizeof(int), compare_sorted, set->values);
	twice = palloc0(n + 1);
	for (int i = 1; i < n; i++)
		twice[set->sorted[i]] =
			dp_value_compare(&set->values[set->sorted[i - 1]], &set->values[set->sorted[i]]) == 0;
	for (int i = 0; i < n; i++)
		if (!twice[i])
			set->values[kept++] = set->values[i];
	pfree(twice);
	if (kept < n)
	{
		set->n = kept;
		for (int i = 0; i < kept; i++)
			set->sorted[i] = i;
		qsort_arg(set->sorted, kept, sizeof(int), compare_sorted, set->values);
	}
	return set;
}

/* A set of one value, which must live as long. */
static ValueSet *
set_of_one(DpValue *value)
{
	ValueSet *set = palloc(sizeof(ValueSet));

	set->values = value;
	set->n = 1;
	set->sorted = palloc0(sizeof(int));
	return set;
}

/* The location of an equal value in the set, or -1. */
static int
set_find(const ValueSet *set, const DpValue *value)
{
	int low = 0;
	int high = set->n;

	while (low < high)
	{
		int middle = (low + high) / 2;
		int c = dp_value_compare(value, &set->values[set->sorted[middle]]);

		if (c == 0)
			return set->sorted[middle];
		if (c < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

/* ---------------------------------------------------------------- $addToSet */

/* A value, or {$each: [..]} */
static void
add_compile(DpUpdateNode *leaf, const DpLocation *location)
{
	DpIter iter;
	DpElement element;
	DpElement more;

	if (leaf->operand.type == DP_TYPE_DOCUMENT)
	{
		dp_iter_init_value(&iter, &leaf->operand);
		if (dp_iter_next(&iter, &element) && strcmp(element.name, "$each") == 0)
		{
			DpLocation inner = dp_location_field(location, &element);

			if (element.value.type != DP_TYPE_ARRAY)
				dp_bad_spec_type(&inner, "an array", &element.value);
			if (dp_iter_next(&iter, &more))
			{
				inner = dp_location_field(location, &more);
				if (more.name[0] == '$')
					dp_unknown_operator(&inner, "modifier of $addToSet", NULL);
				dp_bad_spec(&inner, "the field \"%s\" stands beside $each", more.name);
			}
			leaf->extra = set_of_array(&element.value);
			return;
		}
	}
	leaf->extra = set_of_one(&leaf->operand);
}

/* Appends those values that are not there.  Raises DATATYPE_MISMATCH if there is no array. */
static void
add_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	const ValueSet *set = leaf->extra;
	bool few[16] = { false };
	bool *present = set->n <= lengthof(few) ? few : palloc0(set->n);
	DpValue *missing;
	int left = set->n;
	int n = 0;
	DpIter iter;
	DpValue value;

	if (location->value.type != DP_TYPE_ARRAY)
		dp_update_leaf_error(leaf, &location->value, "an array");
	dp_iter_init_value(&iter, &location->value);
	while (left > 0 && dp_iter_next_value(&iter, &value))
	{
		int i = set_find(set, &value);

		if (i >= 0 && !present[i])
		{
			present[i] = true;
			left--;
		}
	}
	if (left == 0)
		return;
	missing = palloc_extended(sizeof(DpValue) * left, MCXT_ALLOC_HUGE);
	for (int i = 0; i < set->n; i++)
		if (!present[i])
			missing[n++] = set->values[i];
	dp_update_append(s, location, missing, n);
	pfree(missing);
}

/* Where nothing is, an array of the values. */
static void
add_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value)
{
	const ValueSet *set = leaf->extra;

	make_array(set->values, set->n, value);
}

/* ---------------------------------------------------------------- $pop */

/* 1: the last element; -1: the first one */
static void
pop_compile(DpUpdateNode *leaf, const DpLocation *location)
{
	int64 end;
	bool *first = palloc(sizeof(bool));

	if (!dp_value_to_whole(&leaf->operand, &end) || (end != 1 && end != -1))
		dp_bad_spec(location, "$pop is 1 for the last element or -1 for the first one");
	*first = end < 0;
	leaf->extra = first;
}

/* Takes that element away.  Raises DATATYPE_MISMATCH if there is no array. */
static void
pop_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	DpIter iter;
	DpElement element;
	const uint8 *last = NULL;

	if (location->value.type != DP_TYPE_ARRAY)
		dp_update_leaf_error(leaf, &location->value, "an array");
	if (*(bool *) leaf->extra)
	{
		int n;
		DpValue *values = array_values(&location->value, 0, &n);

		if (n > 0)
			dp_update_put_array(s, location, values + 1, n - 1);
		pfree(values);
		return;
	}
	dp_iter_init_value(&iter, &location->value);
	for (const uint8 *start = iter.next; dp_iter_next(&iter, &element); start = iter.next)
		last = start;
	if (last != NULL)
		dp_update_truncate(s, location, last);
}

/* ---------------------------------------------------------------- $pull, $pullAll */

/*
 * The elements to remove: those that are equal to a value; those that match operators or a regular
 * expression; or, with a document without operators, the documents that match it as a query.
 */
static void
pull_compile(DpUpdateNode *leaf, const DpLocation *location)
{
	static const char *const of_documents[] = { "$and",  "$or",         "$nor",
												"$expr", "$jsonSchema", "$comment" };
	PullSpec *spec = palloc0(sizeof(PullSpec));
	const DpValue *operand = &leaf->operand;
	DpIter iter;
	DpElement first;

	leaf->extra = spec;
	if (operand->type == DP_TYPE_DOCUMENT)
	{
		dp_iter_init_value(&iter, operand);
		if (!dp_iter_next(&iter, &first) || first.name[0] != '$')
			spec->documents = true;
		else
			for (int i = 0; i < lengthof(of_documents); i++)
				if (strcmp(first.name, of_documents[i]) == 0)
					spec->documents = true;
		spec->filter = dp_filter_compile(operand,
										 (spec->documents ? DP_FILTER_DOCUMENT : DP_FILTER_VALUE) |
											 (leaf->immutable ? DP_FILTER_IMMUTABLE : 0),
										 location);
	}
	else if (operand->type == DP_TYPE_REGEX)
		spec->filter = dp_filter_compile(operand, DP_FILTER_VALUE, location);
	else
		spec->set = set_of_one(&leaf->operand);
}

/* The values of an array. */
static void
pull_all_compile(DpUpdateNode *leaf, const DpLocation *location)
{
	PullSpec *spec = palloc0(sizeof(PullSpec));

	if (leaf->operand.type != DP_TYPE_ARRAY)
		dp_bad_spec_type(location, "an array", &leaf->operand);
	spec->set = set_of_array(&leaf->operand);
	leaf->extra = spec;
}

/* True if an element is removed. */
static bool
pulls(const PullSpec *spec, const DpValue *value)
{
	if (spec->set != NULL)
		return set_find(spec->set, value) >= 0;
	if (spec->documents)
		return dp_filter_match(spec->filter, value);
	return dp_filter_match_value(spec->filter, value);
}

/* $pull and $pullAll.  Raises DATATYPE_MISMATCH if there is no array. */
static void
pull_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	const PullSpec *spec = leaf->extra;
	DpValue *values;
	int n;
	int kept = 0;

	if (location->value.type != DP_TYPE_ARRAY)
		dp_update_leaf_error(leaf, &location->value, "an array");
	values = array_values(&location->value, 0, &n);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!pulls(spec, &values[i]))
			values[kept++] = values[i];
	}
	if (kept < n)
		dp_update_put_array(s, location, values, kept);
	pfree(values);
}
