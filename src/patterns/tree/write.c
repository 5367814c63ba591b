/*
 * write.c
 *		Writes the rows of a tree that a statement made incorrect: its own, the
 *		descendants of moved nodes, and parents whose children changed.
 *
 * change.c determines them.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/compare.h"
#include "patterns/tree/nodes.h"

static bool has_chained_form(const DpTree *tree, struct varlena *doc);
static DpValue *children_edited(DpTreeChange *c, DpTreeNode *node, struct varlena *doc);
static bool children_append(DpTreeChange *c, DpTreeNode *node, DpBuilder *b, const DpValue *array,
							const DpValue *own);
static bool holds(const DpValue *array, const DpValue *value);

/*
 * Writes a node's row with its forms. Returns false if the row was deleted or moved concurrently.
 */
bool
dp_tree_write_node(DpTreeChange *c, DpTreeNode *node)
{
	MemoryContext old;
	DpValue *children = NULL;
	int n = dp_tree_chain_of(c, node, false);

	dp_tree_check_path(c->tree, &node->id, c->chain, n);
	MemoryContextReset(c->scratch);
	old = MemoryContextSwitchTo(c->scratch);
	for (;;)
	{
		struct varlena *doc;
		struct varlena *now;
		DpValue id;
		DpValue parent;
		bool has;

		/* repeated if the row has changed: it may have got a child */
		if (node->dirty && !c->adopting && c->tree->truth != DP_TREE_CHILDREN)
			children = dp_tree_children(c->tree, c->w, &node->id);
		if (!(node->has_ref && (node->saved != NULL ? dp_writer_fetch_own(c->w, &node->ref)
													: dp_writer_fetch(c->w, &node->ref))) &&
			!dp_tree_find_id(c->tree, c->w, &node->id))
			break;
		if (node->saved == NULL && dp_tree_has_attached(c->tree) &&
			dp_writer_lock(c->w, LockTupleNoKeyExclusive) != DP_LOCK_OK)
		{
			/* search attached documents after it was locked, written or not */
			node->has_ref = false;
			dp_writer_refresh(c->w);
			continue;
		}
		doc = dp_writer_document(c->w);
		if (doc == NULL || !dp_tree_id(c->tree, doc, &id) || dp_value_compare(&id, &node->id) != 0)
			break;
		now = doc;
		if (node->adopted)
		{
			/* deleted, and another row with its id inserted elsewhere */
			if (node->saved == NULL && !node->has_ref && c->tree->truth != DP_TREE_CHILDREN &&
				!(dp_tree_parent(c->tree, doc, &parent) &&
				  dp_tree_map_find(&c->removed, &parent) != NULL))
				break;
			if (c->tree->truth == DP_TREE_PARENT)
				now = dp_tree_set_parent(c->tree, doc, node->up != NULL ? &node->up->id : NULL);
		}
		else
		{
			/* a trigger of a user's may have moved it meanwhile, and that was taken care of then */
			has = dp_tree_parent(c->tree, doc, &parent);
			if (has != (node->up != NULL) || (has && dp_value_compare(&parent, &node->up->id) != 0))
				break;
		}
		if (node->saved != NULL && node->saved->is_new && has_chained_form(c->tree, doc))
			node->walk = true;
		now = dp_tree_guarded(c->tree, doc, dp_tree_arrange(c->tree, now, c->chain, n, children),
							  c->s->removed, c->s->nremoved);
		switch (dp_writer_update(c->w, now))
		{
			case DP_WRITE_DONE:
				node->dirty = node->dirty && children == NULL;
				MemoryContextSwitchTo(old);
				return true;
			case DP_WRITE_SAME:
				node->walk = false;
				node->dirty = node->dirty && children == NULL;
				MemoryContextSwitchTo(old);
				return true;
			case DP_WRITE_CHANGED:
				node->has_ref = false;
				dp_writer_refresh(c->w);
				break;
			case DP_WRITE_DEADLOCK:
				break; /* nothing is left to others */
		}
	}
	MemoryContextSwitchTo(old);
	return false;
}

/* Returns whether a document has a form that depends on its ancestors. */
static bool
has_chained_form(const DpTree *tree, struct varlena *doc)
{
	DpValue value;

	return (tree->ancestors != NULL &&
			dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->ancestors, &value)) ||
		   (tree->path != NULL &&
			dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->path, &value)) ||
		   (tree->depth != NULL &&
			dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->depth, &value));
}

/*
 * Writes the descendants of nodes whose rows are written: level by level, each read with a
 * snapshot newer than the locks on its parents.
 */
void
dp_tree_write_below(DpTreeChange *c, List *level)
{
	bool attached = dp_tree_has_attached(c->tree);
	ListCell *lc;

	foreach(lc, level)
		((DpTreeNode *) lfirst(lc))->reached = true;
	while (level != NIL)
	{
		List *next = NIL;

		dp_writer_refresh(c->w);
		foreach(lc, level)
		{
			DpTreeNode *node = lfirst(lc);
			bool found;

			CHECK_FOR_INTERRUPTS();
			if (attached)
			{
				int n = dp_tree_chain_of(c, node, true);

				dp_tree_follow(c->tree, &c->follow, c->chain, n, lc == list_head(level));
			}
			MemoryContextReset(c->scratch);
			for (found = dp_tree_find_children(c->tree, c->w, &node->id); found;
				 found = dp_writer_next(c->w))
			{
				struct varlena *doc = dp_writer_document(c->w);
				DpValue id;
				DpTreeNode *child;

				if (doc == NULL || !dp_tree_id(c->tree, doc, &id))
					continue;
				child = dp_tree_node_find(c, &id);
				if (child == NULL)
				{
					child = dp_tree_node_add(c, &id);
					child->up = node;
					child->depth = node->depth + 1;
				}
				else if (child->saved != NULL || child->reached || child->adopted)
					continue; /* its own row determines its parent */
				child->reached = true;
				dp_writer_ref(c->w, &child->ref);
				child->has_ref = true;
				next = lappend(next, child);
			}
		}
		list_free(level);
		level = NIL;
		foreach(lc, next)
		{
			CHECK_FOR_INTERRUPTS();
			if (dp_tree_write_node(c, lfirst(lc)))
				level = lappend(level, lfirst(lc));
		}
		list_free(next);
	}

	/* documents attached to removed ids */
	if (attached)
	{
		int i;

		for (i = 0; i < c->s->nremoved; i++)
		{
			DpTreeRemoved *removed = &c->s->removed[i];
			DpTreeNode *self;

			if (dp_tree_map_find(&c->removed, &removed->id) != &removed->id)
				continue;
			self = dp_tree_node_find(c, &removed->id);
			if (self != NULL && self->depth == -2)
			{
				int n = self->up != NULL ? dp_tree_chain_of(c, self->up, true) : 0;

				dp_tree_follow_deleted(c->tree, &c->follow, &removed->id, DP_TREE_REPARENT,
									   c->chain, n);
			}
		}
	}
}

/*
 * The arrays of children of parents that were not written yet.
 */
void
dp_tree_write_children(DpTreeChange *c)
{
	List *dirty = NIL;
	ListCell *lc;
	uint32 i;

	dp_writer_refresh(c->w);
	for (i = 0; c->nodes.items != NULL && i <= c->nodes.mask; i++)
	{
		DpTreeNode *node = (DpTreeNode *) c->nodes.items[i];

		if (node != NULL && node->dirty)
			dirty = lappend(dirty, node);
	}
	list_sort(dirty, dp_tree_compare_ids);
	foreach(lc, dirty)
	{
		DpTreeNode *node = lfirst(lc);
		MemoryContext old;
		DpValue *children = NULL;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(c->scratch);
		old = MemoryContextSwitchTo(c->scratch);
		for (;;)
		{
			struct varlena *doc;
			struct varlena *now;

			if (c->tree->truth != DP_TREE_CHILDREN)
				children = dp_tree_children(c->tree, c->w, &node->id);
			if (!dp_tree_find_id(c->tree, c->w, &node->id))
				break;
			doc = dp_writer_document(c->w);
			if (doc == NULL)
				break;
			now = doc;
			if (c->tree->truth == DP_TREE_CHILDREN)
				children = children_edited(c, node, doc);
			if (children != NULL)
			{
				DpTree only = *c->tree;

				only.parent = only.ancestors = only.path = only.depth = NULL;
				now = dp_tree_guarded(c->tree, doc, dp_tree_arrange(&only, doc, NULL, 0, children),
									  c->s->removed, c->s->nremoved);
			}
			if (now == doc || dp_writer_update(c->w, now) != DP_WRITE_CHANGED)
				break;
			dp_writer_refresh(c->w);
		}
		MemoryContextSwitchTo(old);
	}
}

/*
 * Truth children: returns a node's array without removed ids, with their replacements, and with
 * the children of a deleted node that it gets. NULL if nothing changes.
 */
static DpValue *
children_edited(DpTreeChange *c, DpTreeNode *node, struct varlena *doc)
{
	DpValue array;
	DpBuilder *b;
	DpValue *result;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), c->tree->children, &array) ||
		array.type != DP_TYPE_ARRAY)
		return NULL;
	b = palloc(sizeof(DpBuilder));
	dp_builder_init_value(b, array.len);
	dp_builder_begin_array(b);
	c->stamp++;
	if (!children_append(c, node, b, &array, &array))
		return NULL;
	dp_builder_end(b);
	result = palloc(sizeof(DpValue));
	*result = dp_builder_view(b, DP_TYPE_ARRAY);
	return result;
}

/*
 * Appends the present ids for those in an array, the node's own or that of a node deleted below
 * it. Returns whether any differs.
 */
static bool
children_append(DpTreeChange *c, DpTreeNode *node, DpBuilder *b, const DpValue *array,
				const DpValue *own)
{
	DpIter iter;
	DpValue value;
	bool changed = false;

	check_stack_depth();
	dp_iter_init(&iter, array->data, array->len);
	while (dp_iter_next_value(&iter, &value))
	{
		DpTreeRemoved *removed = (DpTreeRemoved *) dp_tree_map_find(&c->removed, &value);
		DpTreeNode *child;

		CHECK_FOR_INTERRUPTS();
		if (removed != NULL)
		{
			changed = true;
			if (removed->saved >= 0)
				dp_builder_append_value(b, NULL, 0, &c->s->saved[removed->saved].id);
			else if (removed->children.type == DP_TYPE_ARRAY && removed->stamp != c->stamp)
			{
				/* once, even if arrays are wrong */
				removed->stamp = c->stamp;
				(void) children_append(c, node, b, &removed->children, own);
			}
		}
		else if (array == own || ((child = dp_tree_node_find(c, &value)) != NULL &&
								  child->adopted && child->up == node && !holds(own, &value)))
			dp_builder_append_value(b, NULL, 0, &value);
	}
	return changed;
}

/* Whether an array holds a value. */
static bool
holds(const DpValue *array, const DpValue *value)
{
	DpIter iter;
	DpValue element;

	dp_iter_init(&iter, array->data, array->len);
	while (dp_iter_next_value(&iter, &element))
	{
		if (dp_value_compare(&element, value) == 0)
			return true;
	}
	return false;
}
