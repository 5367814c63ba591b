/*
 * update_compile.c
 *		From an update to a tree of paths.
 *
 * Each part of each path is a node; paths with a common prefix share nodes, and the operators are
 * the leaves.  Two operators conflict if their paths are the same or one leads through the other.
 * The children of a node are in the order in which missing fields are created: whole numbers first,
 * by value, then the other names by their bytes.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "mql/expression.h"
#include "mql/update_tree.h"

static const DpUpdateOperator *find_operator(const char *name);
static DpUpdateNode *new_root(void);
static void compile_replacement(DpUpdate *update, const DpValue *spec);
static void compile_operators(DpUpdate *update, const DpValue *spec);
static void compile_rename(DpUpdate *update, const DpUpdateOperator *op, const DpElement *field,
						   const DpLocation *location);
static bool names_elements(const char *path);
static DpUpdateNode *
add_path(DpUpdate *update, const char *path, uint32 len, const DpLocation *location);
static void check_name(const char *name, const DpLocation *location);
static DpUpdateNode *add_part(DpUpdate *update, DpUpdateNode *node, const char *path, uint32 start,
							  uint32 end, const DpLocation *location);
static DpUpdateArrayFilter *
find_array_filter(DpUpdate *update, const char *name, uint32 len, const DpLocation *location);
static void compile_array_filters(DpUpdate *update, const DpValue *spec);
static void check_array_filters_used(DpUpdate *update, const DpValue *spec);
static void insert_child(DpUpdateNode *node, DpUpdateNode *child, int at);
static DpUpdateNode *merge_nodes(const DpUpdateNode *a, const DpUpdateNode *b);
static void
conflict(const char *path, uint32 len, const DpLocation *location) pg_attribute_noreturn();

static const DpUpdateOperator *const tables[] = { dp_update_operators, dp_update_array_operators };

/* Two nodes with the same element, and their combination */
typedef struct UpdateMerge
{
	const DpUpdateNode *a;
	const DpUpdateNode *b;
	DpUpdateNode *result;
} UpdateMerge;

/*
 * Compiles an update: see update.h.
 */
DpUpdate *
dp_update_compile(const DpValue *spec, const DpValue *filter, const DpValue *array_filters,
				  bool immutable)
{
	DpUpdate *update = palloc0(sizeof(DpUpdate));
	DpLocation top = { NULL, "update", 6, 0 };
	DpIter iter;
	DpElement first;

	update->context = CurrentMemoryContext;
	update->immutable = immutable;
	if (filter != NULL)
		update->filter =
			dp_filter_compile(filter, DP_FILTER_DOCUMENT | (immutable ? DP_FILTER_IMMUTABLE : 0),
							  NULL);
	if (array_filters != NULL)
		compile_array_filters(update, array_filters);

	if (spec->type == DP_TYPE_ARRAY)
		update->pipeline = dp_update_pipeline_compile(spec, immutable ? DP_EXPR_IMMUTABLE : 0);
	else if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(&top, "a document or an array of stages", spec);
	else
	{
		dp_iter_init_value(&iter, spec);
		if (dp_iter_next(&iter, &first) && first.name[0] == '$')
			compile_operators(update, spec);
		else
			compile_replacement(update, spec);
	}
	if (array_filters != NULL)
		check_array_filters_used(update, array_filters);
	return update;
}

/*
 * A document that takes another one's place.
 */
static void
compile_replacement(DpUpdate *update, const DpValue *spec)
{
	DpValue *copy = palloc(sizeof(DpValue));
	DpIter iter;
	DpElement field;

	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &field))
		if (field.name[0] == '$')
		{
			DpLocation location = dp_location_field(NULL, &field);

			dp_bad_spec(&location,
						"a document that replaces another one cannot have the field \"%s\"",
						field.name);
		}
	*copy = *spec;
	update->replacement = copy;
}

/*
 * A document of operators.
 */
static void
compile_operators(DpUpdate *update, const DpValue *spec)
{
	DpIter operators;
	DpElement element;

	update->root = new_root();
	dp_iter_init_value(&operators, spec);
	while (dp_iter_next(&operators, &element))
	{
		DpLocation location = dp_location_field(NULL, &element);
		const DpUpdateOperator *op;
		DpIter fields;
		DpElement field;

		if (element.name[0] != '$')
			dp_bad_spec(&location, "the field \"%s\" stands beside operators", element.name);
		op = find_operator(element.name);
		if (op == NULL)
		{
			DpNearest nearest = { element.name, element.namelen };

			for (int i = 0; i < lengthof(tables); i++)
				for (op = tables[i]; op->name != NULL; op++)
					dp_nearest_try(&nearest, op->name);
			dp_unknown_operator(&location, "update operator", &nearest);
		}
		if (element.value.type != DP_TYPE_DOCUMENT)
			dp_bad_spec_type(&location, "a document of fields", &element.value);

		dp_iter_init_value(&fields, &element.value);
		while (dp_iter_next(&fields, &field))
		{
			DpLocation inner = dp_location_field(&location, &field);

			CHECK_FOR_INTERRUPTS();
			if (op->flags & UPDATE_MOVES)
				compile_rename(update, op, &field, &inner);
			else
			{
				DpUpdateNode *leaf = add_path(update, field.name, field.namelen, &inner);

				if (!(op->flags & (UPDATE_ON_INSERT | UPDATE_REMOVES)))
					check_name(field.name, &inner);
				leaf->op = op;
				leaf->operand = field.value;
				leaf->immutable = update->immutable;
				if (op->compile)
					op->compile(leaf, &inner);
			}
		}
	}
	for (int i = 0; i < update->root->nchildren; i++)
		if (strcmp(update->root->children[i]->step.name, "_id") == 0)
			update->touches_id = true;
}

/*
 * An update that sets fields, none at first, and one more of them.  The bytes
 * of the value must live as long as the update.
 */
DpUpdate *
dp_update_of_fields(void)
{
	DpUpdate *update = palloc0(sizeof(DpUpdate));

	update->context = CurrentMemoryContext;
	update->root = new_root();
	return update;
}

void
dp_update_add_field(DpUpdate *update, const char *path, uint32 len, const DpValue *value)
{
	DpLocation location = { NULL, "filter", 6, 0 };
	DpUpdateNode *leaf = add_path(update, path, len, &location);

	leaf->op = find_operator("$set");
	leaf->operand = *value;
}

/* The node of the document itself. */
static DpUpdateNode *
new_root(void)
{
	DpUpdateNode *root = palloc0(sizeof(DpUpdateNode));

	root->path = pstrdup("");
	root->kind = UPDATE_FIELDS;
	return root;
}

/*
 * The operator of that name, or NULL.
 */
static const DpUpdateOperator *
find_operator(const char *name)
{
	for (int i = 0; i < lengthof(tables); i++)
		for (const DpUpdateOperator *op = tables[i]; op->name != NULL; op++)
			if (strcmp(op->name, name) == 0)
				return op;
	return NULL;
}

/* Refuses to set a field whose name begins with a dollar; an insertion may have one. */
static void
check_name(const char *name, const DpLocation *location)
{
	if (name[0] == '$')
		dp_bad_spec(location, "the name of a field cannot begin with $");
}

/* $rename is two leaves: one removes the field, the other one sets its value at the new path. */
static void
compile_rename(DpUpdate *update, const DpUpdateOperator *op, const DpElement *field,
			   const DpLocation *location)
{
	DpUpdateNode *source;
	DpUpdateNode *target;
	const char *name;
	uint32 len;

	if (field->value.type != DP_TYPE_STRING)
		dp_bad_spec_type(location, "the new name, a string,", &field->value);
	name = DP_STRING_DATA(&field->value);
	len = DP_STRING_LEN(&field->value);
	if (memchr(name, 0, len) != NULL)
		dp_bad_spec(location, "the name of a field cannot contain a null character");
	if (names_elements(field->name) || names_elements(name))
		dp_bad_spec(location, "$rename cannot move elements of arrays");
	if (strcmp(name, "_id") == 0)
		dp_bad_spec(location, "$rename cannot move a field to _id");
	source = add_path(update, field->name, field->namelen, location);
	source->op = find_operator("$unset");
	target = add_path(update, name, len, location);
	check_name(name, location);
	target->op = op;
	target->source = source;
	update->renames = lappend(update->renames, target);
}

/* Whether a part of a path is $, $[] or $[identifier]. */
static bool
names_elements(const char *path)
{
	for (const char *part = path; part != NULL; part = strchr(part, '.'))
	{
		if (*part == '.')
			part++;
		if (part[0] == '$' && (part[1] == '\0' || part[1] == '.' || part[1] == '['))
			return true;
	}
	return false;
}

/*
 * The leaf for a path, made with all nodes on the way that are missing.
 */
static DpUpdateNode *
add_path(DpUpdate *update, const char *path, uint32 len, const DpLocation *location)
{
	DpUpdateNode *node = update->root;
	uint32 start = 0;
	int depth = 0;
	bool positional = false;

	for (;;)
	{
		const char *dot = memchr(path + start, '.', len - start);
		uint32 end = dot ? dot - path : len;

		if (end == start)
			dp_bad_spec(location, "a part of the path is empty");
		if (++depth > DP_MAX_DEPTH)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("a path of an update has too many parts"),
							errdetail("The limit is %d.", DP_MAX_DEPTH)));
		if (node->kind == UPDATE_LEAF)
			conflict(node->path, node->pathlen, location);
		node = add_part(update, node, path, start, end, location);
		if (node->positional)
		{
			if (positional)
				dp_bad_spec(location, "a path can have the positional $ only once");
			positional = update->positional = true;
			if (update->filter == NULL)
				dp_bad_spec(location, "the positional $ needs the filter that found the document");
		}
		if (dot == NULL)
			break;
		start = end + 1;
	}
	if (node->kind != UPDATE_EMPTY)
		conflict(node->path, node->pathlen, location);
	node->kind = UPDATE_LEAF;
	return node;
}

/*
 * The child of a node for the part of a path between start and end, made if it
 * is missing.
 */
static DpUpdateNode *
add_part(DpUpdate *update, DpUpdateNode *node, const char *path, uint32 start, uint32 end,
		 const DpLocation *location)
{
	const char *name = path + start;
	uint32 len = end - start;
	bool elements = len >= 2 && name[0] == '$' && name[1] == '[';
	DpUpdateNode *child;
	DpUpdateNode key;
	bool found;
	int at;

	if (elements && name[len - 1] != ']')
		dp_bad_spec(location, "\"%.*s\" is not closed", (int) len, name);
	if (name[0] == '$' && start == 0 && (elements || len == 1))
		dp_bad_spec(location, "a path cannot begin with \"%.*s\"", (int) len, name);

	key.step.name = name;
	key.step.namelen = len;
	key.step.is_index = dp_update_step_index(name, len, &key.step.index);
	at = dp_update_find_child(node, &key.step, &found);
	if (found)
		return node->children[at];

	/* a node is about fields or about all elements, never both */
	if (node->kind == UPDATE_EMPTY)
		node->kind = elements ? UPDATE_ELEMENTS : UPDATE_FIELDS;
	else if ((node->kind == UPDATE_ELEMENTS) != elements)
		conflict(node->path, node->pathlen, location);

	child = palloc0(sizeof(DpUpdateNode));
	child->path = pnstrdup(path, end);
	child->pathlen = end;
	child->parentlen = start > 0 ? start - 1 : 0;
	child->step.name = child->path + start;
	child->step.namelen = len;
	child->step.is_index = key.step.is_index;
	child->step.index = key.step.index;
	dp_path_step_block(&child->step);
	if (elements && len > 3)
		child->array_filter = find_array_filter(update, name + 2, len - 3, location);
	child->positional = len == 1 && name[0] == '$';
	if (child->positional)
		node->has_positional = true;
	insert_child(node, child, at);
	return child;
}

/*
 * Whether a part of a path is a position in an array: digits, without zeros in
 * front, and not too large for one.
 */
bool
dp_update_step_index(const char *name, uint32 len, int32 *index)
{
	int64 n = 0;

	*index = 0;
	if (len > 10 || (len > 1 && name[0] == '0'))
		return false;
	for (uint32 i = 0; i < len; i++)
	{
		if (name[i] < '0' || name[i] > '9')
			return false;
		n = n * 10 + (name[i] - '0');
	}
	if (n > PG_INT32_MAX)
		return false;
	*index = (int32) n;
	return true;
}

/*
 * The order of the children of a node, by their steps.
 */
int
dp_update_order(const DpPathStep *a, const DpPathStep *b)
{
	int c;

	if (a->is_index && b->is_index)
		return (a->index > b->index) - (a->index < b->index);
	if (a->is_index != b->is_index)
		return a->is_index ? -1 : 1;
	c = memcmp(a->name, b->name, Min(a->namelen, b->namelen));
	if (c != 0)
		return c;
	return (a->namelen > b->namelen) - (a->namelen < b->namelen);
}

/*
 * Where among the children of a node the one for a step is (*found), or where
 * it belongs.
 */
int
dp_update_find_child(const DpUpdateNode *node, const DpPathStep *step, bool *found)
{
	int low = 0;
	int high = node->nchildren;

	while (low < high)
	{
		int middle = (low + high) / 2;
		int c = dp_update_order(step, &node->children[middle]->step);

		if (c == 0)
		{
			*found = true;
			return middle;
		}
		if (c < 0)
			high = middle;
		else
			low = middle + 1;
	}
	*found = false;
	return low;
}

/*
 * Puts a child among the others, before the one at the given location.
 */
static void
insert_child(DpUpdateNode *node, DpUpdateNode *child, int at)
{
	if (node->nchildren == node->maxchildren)
	{
		node->maxchildren = Max(4, node->maxchildren * 2);
		node->children = node->children
							 ? repalloc(node->children, sizeof(DpUpdateNode *) * node->maxchildren)
							 : palloc(sizeof(DpUpdateNode *) * node->maxchildren);
	}
	memmove(node->children + at + 1, node->children + at,
			sizeof(DpUpdateNode *) * (node->nchildren - at));
	node->children[at] = child;
	node->nchildren++;
}

/* ---------------------------------------------------------------- array filters */

/*
 * Compiles array_filters: an array of filters that each call the element by a
 * name.
 */
static void
compile_array_filters(DpUpdate *update, const DpValue *spec)
{
	DpLocation top = { NULL, "array_filters", 13, 0 };
	DpIter iter;
	DpValue value;
	uint32 n = 0;

	if (spec->type != DP_TYPE_ARRAY)
		dp_bad_spec_type(&top, "an array of filters", spec);
	update->array_filters =
		palloc0(sizeof(DpUpdateArrayFilter) * Max(dp_array_count(spec->data, spec->len), 1));
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next_value(&iter, &value))
	{
		DpLocation location = dp_location_index(&top, n);
		DpUpdateArrayFilter *f = &update->array_filters[n];
		bool twice;

		if (value.type != DP_TYPE_DOCUMENT)
			dp_bad_spec_type(&location, "a filter", &value);
		f->filter =
			dp_filter_compile(&value,
							  DP_FILTER_NAMED | (update->immutable ? DP_FILTER_IMMUTABLE : 0),
							  &location);
		f->name = dp_filter_identifier(f->filter, &f->namelen);
		(void) dp_names_add(&update->array_names, f->name, f->namelen, &twice);
		if (twice)
			dp_bad_spec(&location, "two array filters are for the identifier \"%.*s\"",
						(int) f->namelen, f->name);
		update->narray_filters = ++n;
	}
}

/*
 * The array filter for an identifier; there must be one.
 */
static DpUpdateArrayFilter *
find_array_filter(DpUpdate *update, const char *name, uint32 len, const DpLocation *location)
{
	int i = dp_names_find(&update->array_names, name, len);

	if (i < 0)
		dp_bad_spec(location, "there is no array filter for the identifier \"%.*s\"", (int) len,
					name);
	update->array_filters[i].used = true;
	return &update->array_filters[i];
}

/*
 * Refuses an array filter that no path names: it is more likely a mistake than
 * meant.
 */
static void
check_array_filters_used(DpUpdate *update, const DpValue *spec)
{
	DpLocation top = { NULL, "array_filters", 13, 0 };

	for (int i = 0; i < update->narray_filters; i++)
	{
		DpLocation location = dp_location_index(&top, i);
		DpUpdateArrayFilter *f = &update->array_filters[i];

		if (!f->used)
			dp_bad_spec(&location, "no path of the update has the identifier \"%.*s\"",
						(int) f->namelen, f->name);
	}
}

/* ---------------------------------------------------------------- while an update is applied */

/*
 * A copy of a node of the positional $, in the current memory context, as a
 * node for that position.
 */
DpUpdateNode *
dp_update_position(const DpUpdateNode *node, uint32 index)
{
	DpUpdateNode *copy = palloc(sizeof(DpUpdateNode));
	char *name = palloc(12);

	*copy = *node;
	copy->positional = false;
	copy->step.namelen = dp_index_name(index, name);
	copy->step.name = name;
	copy->step.index = index;
	copy->step.is_index = true;
	dp_path_step_block(&copy->step);
	return copy;
}

/*
 * Combines two nodes with the same element; cached.  Raises INVALID_PARAMETER_VALUE if they
 * conflict.
 */
DpUpdateNode *
dp_update_merge(DpUpdate *update, DpUpdateNode *a, DpUpdateNode *b)
{
	MemoryContext old;
	UpdateMerge *merge;
	ListCell *lc;

	foreach(lc, update->merges)
	{
		merge = lfirst(lc);
		if (merge->a == a && merge->b == b)
			return merge->result;
	}
	old = MemoryContextSwitchTo(update->context);
	merge = palloc(sizeof(UpdateMerge));
	merge->a = a;
	merge->b = b;
	merge->result = merge_nodes(a, b);
	update->merges = lappend(update->merges, merge);
	MemoryContextSwitchTo(old);
	return merge->result;
}

/*
 * A node with the children of both.
 */
static DpUpdateNode *
merge_nodes(const DpUpdateNode *a, const DpUpdateNode *b)
{
	DpUpdateNode *result = palloc(sizeof(DpUpdateNode));

	check_stack_depth();
	if (a->kind == UPDATE_LEAF || a->kind != b->kind)
		conflict(b->path, b->pathlen, NULL);
	*result = *a;
	result->children = NULL;
	result->nchildren = result->maxchildren = 0;
	result->has_positional = a->has_positional || b->has_positional;
	for (int i = 0; i < a->nchildren; i++)
		insert_child(result, a->children[i], i);
	for (int i = 0; i < b->nchildren; i++)
	{
		DpUpdateNode *child = b->children[i];
		bool found;
		int at = dp_update_find_child(result, &child->step, &found);

		if (found)
			result->children[at] = merge_nodes(result->children[at], child);
		else
			insert_child(result, child, at);
	}
	return result;
}

/*
 * Reports that an update has two operators for the same field.
 */
static void
conflict(const char *path, uint32 len, const DpLocation *location)
{
	if (location != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("operators of the update conflict at \"%.*s\"", (int) len, path),
				 errdetail("\"%s\" changes it too, or a field that contains it or is inside it.",
						   dp_location_text(location))));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("operators of the update conflict at \"%.*s\"", (int) len, path),
			 errdetail("Another path of the update leads to the same element of the array.")));
}

/*
 * Reports that an operator cannot be applied to the value that it found.
 */
void
dp_update_leaf_error(const DpUpdateNode *leaf, const DpValue *found, const char *wanted)
{
	ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("cannot apply %s to \"%s\"", leaf->op->name, leaf->path),
					errdetail("The field has the type %s, which is not %s.",
							  dp_type_name(found->type), wanted)));
}
