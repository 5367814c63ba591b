/*
 * update_apply.c
 *		Applies an update to a document.
 *
 * The document is walked along the tree of paths, each container once from its beginning to its
 * end. Bytes between changes are copied in runs: done is the end of the processed old bytes, and a
 * change first copies everything before it.  The length of a container is corrected at its end,
 * only if something in it changed; the position of its length in the new document is known when it
 * begins, because all bytes from done to there will be copied.  If nothing changes, nothing is
 * copied.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/limits.h"
#include "mql/update_tree.h"

/* A child of a node and the element that it was found at */
typedef struct UpdateMatch
{
	DpUpdateNode *node;
	DpUpdateLocation location;
} UpdateMatch;

typedef struct UpdateMatches
{
	UpdateMatch *items;
	int n;
	int max;
	UpdateMatch fixed[8];
} UpdateMatches;

/* The documents that the ends of $rename lead through: the last one at each depth */
typedef struct RenameWalk
{
	const DpValue *doc;
	int n;
	DpFinder finders[DP_MAX_DEPTH];
} RenameWalk;

static void copy_until(DpUpdateState *s, const uint8 *upto);
static Size container_begin(const DpUpdateState *s, const uint8 *data);
static void container_end(DpUpdateState *s, const DpValue *container, Size start);
static void apply_node(DpUpdateState *s, DpUpdateNode *node, const DpUpdateLocation *location);
static void apply_fields(DpUpdateState *s, DpUpdateNode *node, const DpValue *container, int depth);
static void apply_document(DpUpdateState *s, DpUpdateNode **children, int n,
						   const DpValue *container, int depth);
static void
apply_array(DpUpdateState *s, DpUpdateNode **children, int n, const DpValue *container, int depth);
static void apply_elements(DpUpdateState *s, DpUpdateNode *node, const DpUpdateLocation *location);
static DpUpdateNode **resolve_positional(DpUpdateState *s, DpUpdateNode *node, int *n);
static void add_match(UpdateMatches *m, DpUpdateNode *node, const DpUpdateLocation *location);
static void match_document(UpdateMatches *m, bool *seen, DpUpdateNode **children, int n,
						   const DpValue *container, int depth);
static int match_order(const void *a, const void *b);
static bool creates(const DpUpdateState *s, const DpUpdateNode *node);
static const DpUpdateNode *strict_leaf(const DpUpdateState *s, const DpUpdateNode *node);
static void
create_node(DpUpdateState *s, DpUpdateNode *node, const char *name, uint32 namelen, int depth);
static void find_renamed(RenameWalk *w, DpUpdateNode *leaf);
static bool walk(RenameWalk *w, const DpUpdateNode *end, bool strict, DpValue *value);
static void blocked(const DpUpdateNode *leaf, const DpUpdateNode *at, const DpValue *found)
	pg_attribute_noreturn();
/*
 * Applies the operators of an update to a document.  Returns the new document, in the current
 * memory context, or NULL if there is none: nothing changes, or all changes were made in place, in
 * the bytes at own, and *changed is set.
 */
struct varlena *
dp_update_tree_apply(DpUpdate *update, const DpValue *doc, uint8 *own, bool insert, bool *changed)
{
	DpUpdateState s;
	DpUpdateLocation root;
	s.update = update;
	s.doc = *doc;
	s.done = doc->data;
	s.started = false;
	s.insert = insert;
	s.own = own;
	s.changed = false;
	s.splices = 0;

	if (update->renames != NIL)
	{
		RenameWalk w;
		ListCell *lc;

		w.doc = doc;
		w.n = 0;
		foreach(lc, update->renames)
			find_renamed(&w, lfirst(lc));
		while (w.n > 0)
			dp_finder_free(&w.finders[--w.n]);
	}

	memset(&root, 0, sizeof(root));
	root.value = *doc;
	apply_node(&s, update->root, &root);

	if (changed != NULL)
		*changed = s.changed || s.splices > 0;
	if (s.splices == 0)
		return NULL;
	copy_until(&s, doc->data + doc->len);
	return dp_builder_finish_bson(&s.out);
}

/* ---------------------------------------------------------------- writing */

/*
 * Copies the old bytes that are not dealt with yet, up to a location.
 */
static void
copy_until(DpUpdateState *s, const uint8 *upto)
{
	if (!s->started)
	{
		dp_builder_init(&s->out, (Size) s->doc.len + 64);
		dp_builder_limit(&s->out, dp_max_document_size);
		s->started = true;
	}
	Assert(upto >= s->done);
	dp_builder_append_bytes(&s->out, s->done, upto - s->done);
	s->done = upto;
}

/*
 * Where a container that begins in the old bytes, at or after done, will begin
 * in the new ones.
 */
static Size
container_begin(const DpUpdateState *s, const uint8 *data)
{
	return (s->started ? s->out.len : VARHDRSZ) + (data - s->done);
}

/*
 * Copies what remains of a container in which something changed, and puts its
 * length right.
 */
static void
container_end(DpUpdateState *s, const DpValue *container, Size start)
{
	copy_until(s, container->data + container->len);
	dp_put_int32(s->out.buf + start, (int32) (s->out.len - start));
}

/*
 * Puts a value in the place of another one, unless it is the same.
 */
void
dp_update_put(DpUpdateState *s, const DpUpdateLocation *location, const DpValue *value)
{
	const DpValue *old = &location->value;
	Size namelen = old->data - location->element - 1;

	if (dp_value_identical(old, value))
		return;
	dp_check_depth(location->depth, value);
	if (s->own != NULL && value->len == old->len)
	{
		s->own[location->element - s->doc.data] = value->type;
		memcpy(s->own + (old->data - s->doc.data), value->data, value->len);
		s->changed = true;
		return;
	}
	copy_until(s, location->element);
	*dp_builder_reserve(&s->out, 1) = value->type;
	dp_builder_append_bytes(&s->out, location->element + 1, namelen);
	dp_builder_append_bytes(&s->out, value->data, value->len);
	s->done = old->data + old->len;
	s->splices++;
}

/*
 * Takes a field of a document away.
 */
void
dp_update_remove(DpUpdateState *s, const DpUpdateLocation *location)
{
	copy_until(s, location->element);
	s->done = location->value.data + location->value.len;
	s->splices++;
}

/*
 * Puts an array of n values in the place of an array, unless it is the same.
 * The values may be those of the old array.
 */
void
dp_update_put_array(DpUpdateState *s, const DpUpdateLocation *location, const DpValue *values,
					uint32 n)
{
	DpIter iter;
	DpElement element;
	const uint8 *same;
	Size start;
	uint32 i = 0;

	/* the common beginning of the arrays is copied with its names */
	dp_iter_init_value(&iter, &location->value);
	for (same = iter.next; dp_iter_next(&iter, &element); same = iter.next)
	{
		if (i == n || !dp_value_identical(&element.value, &values[i]))
			break;
		i++;
	}
	if (i == n && same == iter.end)
		return;
	start = container_begin(s, location->value.data);
	copy_until(s, same);
	for (; i < n; i++)
	{
		char digits[12];
		uint32 len = dp_index_name(i, digits);

		dp_check_depth(location->depth + 1, &values[i]);
		dp_builder_append_value(&s->out, digits, len, &values[i]);
	}
	s->done = iter.end;
	s->splices++;
	container_end(s, &location->value, start);
}

/*
 * Puts values at the end of an array.
 */
void
dp_update_append(DpUpdateState *s, const DpUpdateLocation *location, const DpValue *values, int n)
{
	const DpValue *array = &location->value;
	Size start = container_begin(s, array->data);
	uint32 count;

	if (n == 0)
		return;
	count = dp_array_count(array->data, array->len);
	copy_until(s, array->data + array->len - 1);
	for (int i = 0; i < n; i++)
	{
		char digits[12];
		uint32 len = dp_index_name(count + i, digits);

		dp_check_depth(location->depth + 1, &values[i]);
		dp_builder_append_value(&s->out, digits, len, &values[i]);
	}
	s->splices++;
	container_end(s, array, start);
}

/*
 * Ends an array before the element that begins at the given location.
 */
void
dp_update_truncate(DpUpdateState *s, const DpUpdateLocation *location, const uint8 *element)
{
	const DpValue *array = &location->value;
	Size start = container_begin(s, array->data);

	copy_until(s, element);
	s->done = array->data + array->len - 1;
	s->splices++;
	container_end(s, array, start);
}

/* ---------------------------------------------------------------- walking */

/* Applies a node to the element at its path. */
static void
apply_node(DpUpdateState *s, DpUpdateNode *node, const DpUpdateLocation *location)
{
	const DpUpdateNode *leaf;

	check_stack_depth();
	switch (node->kind)
	{
		case UPDATE_LEAF:
			if (s->insert || !(node->op->flags & UPDATE_ON_INSERT))
				node->op->apply(s, node, location);
			break;
		case UPDATE_ELEMENTS:
			apply_elements(s, node, location);
			break;
		case UPDATE_FIELDS:
			if (dp_type_is_container(location->value.type))
				apply_fields(s, node, &location->value, location->depth + 1);
			else if ((leaf = strict_leaf(s, node)) != NULL)
				blocked(leaf, node, &location->value);
			break;
		case UPDATE_EMPTY:
			break;
	}
}

/*
 * Applies the children of a node to the fields of a document or the elements
 * of an array.  depth counts the containers around them.
 */
static void
apply_fields(DpUpdateState *s, DpUpdateNode *node, const DpValue *container, int depth)
{
	DpUpdateNode **children = node->children;
	int n = node->nchildren;
	uint32 splices = s->splices;
	Size start = container_begin(s, container->data);

	if (node->has_positional)
		children = resolve_positional(s, node, &n);
	if (container->type == DP_TYPE_DOCUMENT)
		apply_document(s, children, n, container, depth);
	else
		apply_array(s, children, n, container, depth);
	if (s->splices != splices)
		container_end(s, container, start);
}

/*
 * Fields that are there are changed in the order in which they stand; those
 * that are missing are made, in the order of the children.
 */
static void
apply_document(DpUpdateState *s, DpUpdateNode **children, int n, const DpValue *container,
			   int depth)
{
	UpdateMatches m;
	bool few[lengthof(m.fixed)] = { false };
	bool *seen = n <= lengthof(few) ? few : palloc0(sizeof(bool) * n);

	m.items = m.fixed;
	m.n = 0;
	m.max = lengthof(m.fixed);
	match_document(&m, seen, children, n, container, depth);
	for (int i = 0; i < m.n; i++)
		apply_node(s, m.items[i].node, &m.items[i].location);

	for (int i = 0; i < n; i++)
		if (!seen[i] && creates(s, children[i]))
		{
			copy_until(s, container->data + container->len - 1);
			create_node(s, children[i], children[i]->step.name, children[i]->step.namelen, depth);
			s->splices++;
		}
	if (seen != few)
		pfree(seen);
	if (m.items != m.fixed)
		pfree(m.items);
}

/*
 * The positions of a node's children in a document, in its order.  Of two fields with the same name
 * the first is used; but removing a field removes all of that name, or the name would remain.
 */
static void
match_document(UpdateMatches *m, bool *seen, DpUpdateNode **children, int n,
			   const DpValue *container, int depth)
{
	DpUpdateLocation location;

	location.depth = depth;
	location.in_array = false;
	if (n <= lengthof(m->fixed))
	{
		for (int i = 0; i < n; i++)
		{
			if (!dp_step_find(container, &children[i]->step, &location.element, &location.value))
				continue;
			seen[i] = true;
			add_match(m, children[i], &location);
			if (children[i]->kind == UPDATE_LEAF && (children[i]->op->flags & UPDATE_REMOVES))
			{
				DpIter iter = { location.value.data + location.value.len,
								container->data + container->len - 1 };
				DpElement element;

				for (location.element = iter.next; dp_iter_next(&iter, &element);
					 location.element = iter.next)
					if (element.namelen == children[i]->step.namelen &&
						memcmp(element.name, children[i]->step.name, element.namelen) == 0)
					{
						location.value = element.value;
						add_match(m, children[i], &location);
					}
			}
		}
		if (m->n > 1)
			qsort(m->items, m->n, sizeof(UpdateMatch), match_order);
	}
	else
	{
		DpUpdateNode node;
		DpIter iter;
		DpElement element;

		node.children = children;
		node.nchildren = n;
		dp_iter_init_value(&iter, container);
		for (location.element = iter.next; dp_iter_next(&iter, &element);
			 location.element = iter.next)
		{
			DpPathStep step;
			bool found;
			int i;

			step.name = element.name;
			step.namelen = element.namelen;
			step.is_index = dp_update_step_index(element.name, element.namelen, &step.index);
			i = dp_update_find_child(&node, &step, &found);
			if (!found)
				continue;
			if (seen[i] &&
				!(children[i]->kind == UPDATE_LEAF && (children[i]->op->flags & UPDATE_REMOVES)))
				continue;
			seen[i] = true;
			location.value = element.value;
			add_match(m, children[i], &location);
		}
	}
}

/* One more match, in a list that grows. */
static void
add_match(UpdateMatches *m, DpUpdateNode *node, const DpUpdateLocation *location)
{
	if (m->n == m->max)
	{
		UpdateMatch *items = palloc(sizeof(UpdateMatch) * m->max * 2);

		memcpy(items, m->items, sizeof(UpdateMatch) * m->n);
		if (m->items != m->fixed)
			pfree(m->items);
		m->items = items;
		m->max *= 2;
	}
	m->items[m->n].node = node;
	m->items[m->n++].location = *location;
}

/* For qsort: the order in which elements stand. */
static int
match_order(const void *a, const void *b)
{
	const uint8 *x = ((const UpdateMatch *) a)->location.element;
	const uint8 *y = ((const UpdateMatch *) b)->location.element;

	return (x > y) - (x < y);
}

/*
 * The same for an array.  The children are positions, in ascending order;
 * positions beyond its end are made, with nulls between.
 */
static void
apply_array(DpUpdateState *s, DpUpdateNode **children, int n, const DpValue *container, int depth)
{
	DpIter iter;
	DpElement element;
	DpUpdateLocation location;
	uint32 count = 0;
	bool counted = false;
	int i = 0;

	location.depth = depth;
	location.in_array = true;
	if (n == 1 && children[0]->step.is_index)
	{
		if (dp_step_find(container, &children[0]->step, &location.element, &location.value))
		{
			apply_node(s, children[0], &location);
			i = 1;
		}
	}
	else
	{
		dp_iter_init_value(&iter, container);
		for (location.element = iter.next;
			 i < n && children[i]->step.is_index && dp_iter_next(&iter, &element);
			 location.element = iter.next, count++)
			if (count == children[i]->step.index)
			{
				location.value = element.value;
				apply_node(s, children[i++], &location);
			}
		counted = i < n && children[i]->step.is_index;
	}

	for (; i < n; i++)
	{
		char digits[12];
		uint32 len;
		uint32 index = children[i]->step.index;

		if (!children[i]->step.is_index)
		{
			const DpUpdateNode *leaf = strict_leaf(s, children[i]);

			if (leaf != NULL)
				blocked(leaf, children[i], container);
			continue;
		}
		if (!creates(s, children[i]))
			continue;
		if (!counted)
			count = dp_array_count(container->data, container->len);
		counted = true;
		if (index - count > DP_EDIT_MAX_PADDING)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("position %u of \"%s\" is too far beyond the end of the array",
								   index, children[i]->path),
							errdetail("The array has %u elements; at most %d nulls can be added.",
									  count, DP_EDIT_MAX_PADDING)));
		copy_until(s, container->data + container->len - 1);
		for (; count < index; count++)
		{
			len = dp_index_name(count, digits);
			dp_builder_append_null(&s->out, digits, len);
		}
		len = dp_index_name(count++, digits);
		create_node(s, children[i], digits, len, depth);
		s->splices++;
	}
}

/*
 * Applies $[] and $[identifier] to the elements of an array.
 */
static void
apply_elements(DpUpdateState *s, DpUpdateNode *node, const DpUpdateLocation *location)
{
	const DpValue *array = &location->value;
	uint32 splices = s->splices;
	Size start = container_begin(s, array->data);
	DpUpdateLocation inner;
	DpIter iter;
	DpElement element;

	if (array->type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("cannot follow the path \"%s\"", node->children[0]->path),
						errdetail("\"%s\" has the type %s and is not an array.", node->path,
								  dp_type_name(array->type))));
	inner.depth = location->depth + 1;
	inner.in_array = true;
	dp_iter_init_value(&iter, array);
	for (inner.element = iter.next; dp_iter_next(&iter, &element); inner.element = iter.next)
	{
		DpUpdateNode *all = NULL;

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < node->nchildren; i++)
		{
			DpUpdateNode *child = node->children[i];

			CHECK_FOR_INTERRUPTS();
			if (child->array_filter != NULL &&
				!dp_filter_match_value(child->array_filter->filter, &element.value))
				continue;
			all = all == NULL ? child : dp_update_merge(s->update, all, child);
		}
		if (all == NULL)
			continue;
		inner.value = element.value;
		apply_node(s, all, &inner);
	}
	if (s->splices != splices)
		container_end(s, array, start);
}

/*
 * The children of a node, with $ replaced by the position of the element through which the filter
 * matched.
 */
static DpUpdateNode **
resolve_positional(DpUpdateState *s, DpUpdateNode *node, int *n)
{
	DpUpdateNode **children = palloc(sizeof(DpUpdateNode *) * node->nchildren);
	DpUpdateNode *dollar = NULL;
	DpUpdateNode *resolved;
	int32 index = -1;
	int count = 0;
	int at;

	for (int i = 0; i < node->nchildren; i++)
		if (node->children[i]->positional)
			dollar = node->children[i];
		else
			children[count++] = node->children[i];

	if (s->insert ||
		!dp_filter_match_position(s->update->filter, &s->doc, dollar->path, dollar->parentlen,
								  &index) ||
		index < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("positional $ of \"%s\" does not match an element", dollar->path),
						errdetail("The filter did not match an element of that array.")));

	resolved = dp_update_position(dollar, index);
	for (at = 0; at < count; at++)
	{
		int c = dp_update_order(&resolved->step, &children[at]->step);

		if (c == 0)
		{
			children[at] = dp_update_merge(s->update, children[at], dollar);
			*n = count;
			return children;
		}
		if (c < 0)
			break;
	}
	memmove(children + at + 1, children + at, sizeof(DpUpdateNode *) * (count - at));
	children[at] = resolved;
	*n = count + 1;
	return children;
}

/* ---------------------------------------------------------------- what is missing */

/* True if a value is created when the path of a node does not exist. */
static bool
creates(const DpUpdateState *s, const DpUpdateNode *node)
{
	if (node->kind == UPDATE_LEAF)
	{
		int flags = node->op->flags;

		if (flags & UPDATE_MOVES)
			return node->is_moved;
		return (flags & UPDATE_CREATES) && (s->insert || !(flags & UPDATE_ON_INSERT));
	}
	if (node->kind == UPDATE_ELEMENTS)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("cannot follow the path \"%s\"", node->children[0]->path),
						errdetail("\"%s\" is missing and not an array.", node->path)));
	for (int i = 0; i < node->nchildren; i++)
		if (creates(s, node->children[i]))
			return true;
	return false;
}

/*
 * An operator at or below a node for which it is an error that its path cannot
 * lead on, or NULL.
 */
static const DpUpdateNode *
strict_leaf(const DpUpdateState *s, const DpUpdateNode *node)
{
	if (node->kind == UPDATE_LEAF)
	{
		int flags = node->op->flags;

		if ((flags & UPDATE_LENIENT) || ((flags & UPDATE_ON_INSERT) && !s->insert) ||
			((flags & UPDATE_MOVES) && !node->is_moved))
			return NULL;
		return node;
	}
	for (int i = 0; i < node->nchildren; i++)
	{
		const DpUpdateNode *leaf = strict_leaf(s, node->children[i]);

		if (leaf != NULL)
			return leaf;
	}
	return NULL;
}

/* Appends the value that a node creates.  depth counts the containers around it. */
static void
create_node(DpUpdateState *s, DpUpdateNode *node, const char *name, uint32 namelen, int depth)
{
	DpUpdateNode **children = node->children;
	int n = node->nchildren;

	if (node->kind == UPDATE_LEAF)
	{
		DpValue value;

		node->op->create(s, node, &value);
		dp_check_depth(depth, &value);
		dp_builder_append_value(&s->out, name, namelen, &value);
		return;
	}
	if (depth >= DP_MAX_DEPTH)
		dp_check_depth(DP_MAX_DEPTH, &s->doc);
	if (node->has_positional)
		children = resolve_positional(s, node, &n);
	dp_builder_begin_document_field(&s->out, name, namelen);
	for (int i = 0; i < n; i++)
		if (creates(s, children[i]))
			create_node(s, children[i], children[i]->step.name, children[i]->step.namelen,
						depth + 1);
	dp_builder_end(&s->out);
}

/*
 * Reports that the path of an operator cannot lead on from a value.
 */
static void
blocked(const DpUpdateNode *leaf, const DpUpdateNode *at, const DpValue *found)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("%s cannot follow the path \"%s\"", leaf->op->name, leaf->path),
					errdetail("\"%.*s\" has the type %s.",
							  (int) (found->type == DP_TYPE_ARRAY ? at->parentlen : at->pathlen),
							  at->path, dp_type_name(found->type))));
}

/* ---------------------------------------------------------------- $rename */

/*
 * Finds the value that a $rename moves, before anything changes.
 */
static void
find_renamed(RenameWalk *w, DpUpdateNode *leaf)
{
	DpValue ignored;

	leaf->is_moved = walk(w, leaf->source, true, &leaf->moved);
	if (leaf->is_moved)
		walk(w, leaf, false, &ignored);
}

/*
 * Follows the path of an end of a $rename, which must not lead through arrays.  With strict, other
 * values on the way are errors too.  Returns false if the path does not exist.
 */
static bool
walk(RenameWalk *w, const DpUpdateNode *end, bool strict, DpValue *value)
{
	const char *name = end->path;
	const char *limit = end->path + end->pathlen;
	DpValue at = *w->doc;

	for (int depth = 0;; depth++)
	{
		const char *dot = memchr(name, '.', limit - name);
		DpFinder *finder = &w->finders[depth];

		if (at.type == DP_TYPE_ARRAY || (strict && at.type != DP_TYPE_DOCUMENT))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("$rename cannot follow the path \"%s\"", end->path),
							errdetail("\"%.*s\" has the type %s.", (int) (name - 1 - end->path),
									  end->path, dp_type_name(at.type))));
		if (at.type != DP_TYPE_DOCUMENT)
			return false;
		if (depth >= w->n || finder->doc != at.data)
		{
			if (depth < w->n)
				dp_finder_free(finder);
			else
				w->n++;
			dp_finder_init(finder, &at);
		}
		if (!dp_finder_find(finder, name, (dot ? dot : limit) - name, &at))
			return false;
		if (dot == NULL)
			break;
		name = dot + 1;
	}
	*value = at;
	return true;
}
