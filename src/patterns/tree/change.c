/*
 * change.c
 *		Corrects all forms of a tree after a statement.
 *
 * The inserted, deleted and changed rows are known (collect.c).  In order:
 *
 * 1.	A statement that moves nodes takes the lock of moves, one for each
 *	declaration, until the transaction ends: so concurrent transactions cannot
 *	form a cycle.
 * 2.	Children of removed ids are refused, deleted or moved to another parent.
 * 3.	Parents that are not among the rows of the statement are locked in the order
 *	of their ids, and read under the lock.  A move of a parent's subtree writes
 *	its row first and searches its children afterwards: so it finds a node
 *	inserted below it, or that finds the new position.
 * 4.	With all parents known, cycles are refused.
 * 5.	Incorrect rows of the statement are written (a BEFORE trigger has corrected
 *	most), then the rows below moved nodes, level by level, then parents whose
 *	children have changed.
 *
 * All reads use the latest state.  Nothing is cached of a tree: ancestors are in the
 * node, or found from parent to parent.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lockdefs.h"
#include "utils/memutils.h"

#include "bson/compare.h"
#include "bson/text.h"
#include "common/hashfn.h"
#include "kit/adopt.h"
#include "kit/locks.h"
#include "patterns/tree/nodes.h"

static bool map_add(DpTreeChange *c, DpTreeMap *map, DpValue *item);
static DpTreeNode *new_parent_of(DpTreeChange *c, const DpValue *id);
static void rows_inserted(DpTreeChange *c);
static bool anything_moves(DpTreeChange *c);
static void ids_deleted(DpTreeChange *c);
static void refuse_children(DpTreeChange *c, const DpValue *id);
static void adopt_children(DpTreeChange *c, const DpValue *id, DpTreeNode *new_parent);
static void delete_below(DpTreeChange *c, const DpValue *id);
static void listed_children(DpTreeChange *c);
static void hang(DpTreeChange *c, DpTreeNode *node, const DpValue *parent);
static void find_parents(DpTreeChange *c);
static void want(DpTreeChange *c, const DpValue *id);
static void lock_parents(DpTreeChange *c);
static void load_parent(DpTreeChange *c, DpTreeNode *node, struct varlena *doc);
static void set_parents(DpTreeChange *c);
static void refuse_cycles(DpTreeChange *c, DpTreeNode *node);
static void refuse_below(DpTreeChange *c, DpTreeNode *node);
static void missing_parent(DpTreeChange *c, const DpValue *id) pg_attribute_noreturn();

/* Corrects the tree after a statement. */
void
dp_tree_change(DpTree *tree, DpTreeStatement *statement)
{
	DpTreeChange change = { 0 };
	DpTreeChange *c = &change;
	MemoryContext old;
	List *level = NIL;
	ListCell *lc;
	int i;

	c->tree = tree;
	c->s = statement;
	c->context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns tree change",
									   ALLOCSET_DEFAULT_SIZES);
	c->scratch = AllocSetContextCreate(c->context, "docpatterns tree row", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(c->context);

	rows_inserted(c);
	c->moves = anything_moves(c);
	if (c->moves)
		dp_tree_lock_moves(tree);
	c->w = dp_tree_writer(tree);
	if (tree->truth == DP_TREE_CHILDREN)
		listed_children(c);
	ids_deleted(c);
	find_parents(c);
	lock_parents(c);
	set_parents(c);

	/* the rows of the statement, and those whose parents it took away or gave another id */
	foreach(lc, c->adopted)
		refuse_cycles(c, lfirst(lc));
	for (i = 0; i < statement->nsaved; i++)
		refuse_cycles(c, &c->rows[i]);
	c->adopting = true;
	foreach(lc, c->adopted)
	{
		DpTreeNode *node = lfirst(lc);

		if (dp_tree_write_node(c, node))
			level = lappend(level, node);
		else if (node->saved == NULL)
			refuse_below(c, node);
	}
	c->adopting = false;
	if (c->adopted != NIL)
		dp_writer_refresh(c->w);
	if (tree->chained || tree->children != NULL || tree->truth != DP_TREE_PARENT)
	{
		for (i = 0; i < statement->nsaved; i++)
		{
			DpTreeNode *node = &c->rows[i];

			CHECK_FOR_INTERRUPTS();
			if (!node->adopted && node->saved != NULL &&
				(node->saved->is_new || node->saved->moved || node->saved->renamed || node->dirty))
			{
				dp_writer_inserted(c->w, node->saved->is_new);
				dp_tree_write_node(c, node);
			}
		}
		dp_writer_inserted(c->w, false);
	}

	for (i = 0; i < statement->nsaved; i++)
	{
		DpTreeNode *node = &c->rows[i];

		if (!node->adopted && node->saved != NULL &&
			(node->walk || node->saved->moved || node->saved->renamed))
			level = lappend(level, node);
	}
	if (tree->chained || dp_tree_has_attached(tree))
		dp_tree_write_below(c, level);
	if (tree->children != NULL)
		dp_tree_write_children(c);

	dp_tree_follow_end(&c->follow);
	dp_writer_close(c->w);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(c->context);
}

/*
 * Takes the lock of moves until the transaction ends. The statement's own rows are already locked:
 * two transactions that move nodes below each other's deadlock, and one of them fails (40P01).
 */
void
dp_tree_lock_moves(DpTree *tree)
{
	(void) dp_lock(DP_LOCK_MOVES, tree->decl->target,
				   hash_bytes((const unsigned char *) tree->mark, strlen(tree->mark)),
				   ExclusiveLock, DP_LOCK_WAIT);
}

/* The thing of that id, or NULL. */
DpValue *
dp_tree_map_find(const DpTreeMap *map, const DpValue *id)
{
	uint64 hash;
	uint32 i;

	if (map->n == 0)
		return NULL;
	hash = dp_value_hash(id, 0);
	for (i = hash & map->mask; map->items[i] != NULL; i = (i + 1) & map->mask)
	{
		if (map->hashes[i] == hash && dp_value_compare(map->items[i], id) == 0)
			return map->items[i];
	}
	return NULL;
}

/* Puts a thing in; false if there is one of its id already. */
static bool
map_add(DpTreeChange *c, DpTreeMap *map, DpValue *item)
{
	uint64 hash = dp_value_hash(item, 0);
	uint32 i;

	if (map->items == NULL || map->n * 2 > map->mask)
	{
		DpTreeMap old = *map;
		uint32 j;
		Size size = old.items == NULL ? 64 : ((Size) old.mask + 1) * 2;

		map->mask = size - 1;
		map->hashes = MemoryContextAllocHuge(c->context, size * sizeof(uint64));
		map->items = MemoryContextAllocExtended(c->context, size * sizeof(DpValue *),
												MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		for (j = 0; old.items != NULL && j <= old.mask; j++)
		{
			if (old.items[j] == NULL)
				continue;
			for (i = old.hashes[j] & map->mask; map->items[i] != NULL; i = (i + 1) & map->mask)
				;
			map->items[i] = old.items[j];
			map->hashes[i] = old.hashes[j];
		}
		if (old.items != NULL)
		{
			pfree(old.items);
			pfree(old.hashes);
		}
	}
	for (i = hash & map->mask; map->items[i] != NULL; i = (i + 1) & map->mask)
	{
		if (map->hashes[i] == hash && dp_value_compare(map->items[i], item) == 0)
			return false;
	}
	map->items[i] = item;
	map->hashes[i] = hash;
	map->n++;
	return true;
}

DpTreeNode *
dp_tree_node_find(DpTreeChange *c, const DpValue *id)
{
	return (DpTreeNode *) dp_tree_map_find(&c->nodes, id);
}

/* Creates a node whose position is not known yet. */
DpTreeNode *
dp_tree_node_add(DpTreeChange *c, const DpValue *id)
{
	DpTreeNode *node = MemoryContextAllocZero(c->context, sizeof(DpTreeNode));

	node->id = dp_tree_copy_value(c->context, id);
	node->depth = -1;
	(void) map_add(c, &c->nodes, &node->id);
	return node;
}

/* Creates nodes for the rows of the statement, and lists ids that they no longer have. */
static void
rows_inserted(DpTreeChange *c)
{
	DpTreeStatement *s = c->s;
	int i;

	c->rows = MemoryContextAllocExtended(c->context, sizeof(DpTreeNode) * (s->nsaved + 1),
										 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	for (i = 0; i < s->nsaved; i++)
	{
		DpTreeNode *node = &c->rows[i];

		node->id = s->saved[i].id;
		node->depth = -1;
		node->ref = s->saved[i].ref;
		node->has_ref = true;

		/* two rows of one id: the index on ids is missing, and the first counts */
		if (map_add(c, &c->nodes, &node->id))
			node->saved = &s->saved[i];

		/* the children of its former id may not be those of the new one */
		node->dirty = s->saved[i].renamed && c->tree->children != NULL;
	}
	for (i = 0; i < s->nremoved; i++)
	{
		DpTreeRemoved *removed = &s->removed[i];
		DpTreeNode *node = dp_tree_node_find(c, &removed->id);

		if (node == NULL)
			(void) map_add(c, &c->removed, &removed->id);
		else if (removed->saved < 0 || node->saved != &s->saved[removed->saved])
		{
			/* another row has the id now, and its children */
			node->saved->moved = true;
			node->dirty = c->tree->children != NULL;
		}
	}
}

/* Returns whether the statement moves existing nodes. */
static bool
anything_moves(DpTreeChange *c)
{
	int i;

	if (c->s->nlisted > 0)
		return true;
	if (c->tree->on_delete == DP_TREE_REPARENT && c->removed.n > 0)
		return true;
	for (i = 0; i < c->s->nsaved; i++)
	{
		if (c->s->saved[i].moved || c->s->saved[i].renamed)
			return true;
	}
	return false;
}

/*
 * Returns the new parent of the children of a removed id: the row that had it and has another one,
 * or the parent of the deleted node. NULL without one.
 */
static DpTreeNode *
new_parent_of(DpTreeChange *c, const DpValue *id)
{
	DpTreeRemoved *removed;
	DpTreeNode *node;
	int steps;

	for (steps = 0; steps <= c->s->nremoved; steps++)
	{
		removed = (DpTreeRemoved *) dp_tree_map_find(&c->removed, id);
		if (removed == NULL)
		{
			node = dp_tree_node_find(c, id);
			if (node == NULL)
			{
				want(c, id);
				node = dp_tree_node_add(c, id);
			}
			return node;
		}
		if (removed->saved >= 0)
			return dp_tree_node_find(c, &c->s->saved[removed->saved].id);
		if (!removed->has_parent)
			return NULL;
		id = &removed->parent;
	}
	return NULL;
}

/*
 * Ids that are no more: what happens to the children.
 */
static void
ids_deleted(DpTreeChange *c)
{
	int i;
	DpTree *tree = c->tree;

	for (i = 0; i < c->s->nremoved; i++)
	{
		DpTreeRemoved *removed = &c->s->removed[i];
		DpTreeNode *new_parent = NULL;

		CHECK_FOR_INTERRUPTS();
		if (removed->has_parent && tree->children != NULL &&
			dp_tree_map_find(&c->removed, &removed->parent) == NULL)
			want(c, &removed->parent);
		if (dp_tree_map_find(&c->removed, &removed->id) != &removed->id)
			continue;
		if (removed->saved >= 0)
		{
			new_parent = new_parent_of(c, &removed->id);
			adopt_children(c, &removed->id, new_parent);
		}
		else if (tree->on_delete == DP_TREE_RESTRICT)
			refuse_children(c, &removed->id);
		else if (tree->on_delete == DP_TREE_CASCADE)
			delete_below(c, &removed->id);
		else
		{
			new_parent = new_parent_of(c, &removed->id);
			adopt_children(c, &removed->id, new_parent);
		}
	}
}

/* Raises FOREIGN_KEY_VIOLATION if a node that was deleted has children. */
static void
refuse_children(DpTreeChange *c, const DpValue *id)
{
	if (dp_tree_find_children(c->tree, c->w, id))
		ereport(
			ERROR,
			(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
			 errmsg("node %s of table \"%s\" has children", dp_value_to_message(id),
					dp_relation_name(c->tree->decl->target)),
			 errdetail("The tree is declared with on_delete => 'restrict'."),
			 errhint("Delete the whole subtree in one statement, or move the children first.")));
	if (dp_tree_has_attached(c->tree))
		dp_tree_follow_deleted(c->tree, &c->follow, id, DP_TREE_RESTRICT, NULL, 0);
}

/* Moves the children of a removed id below another node, or makes them roots. */
static void
adopt_children(DpTreeChange *c, const DpValue *id, DpTreeNode *new_parent)
{
	bool found;

	for (found = dp_tree_find_children(c->tree, c->w, id); found; found = dp_writer_next(c->w))
	{
		struct varlena *doc = dp_writer_document(c->w);
		DpValue child;
		DpTreeNode *node;

		if (doc == NULL || !dp_tree_id(c->tree, doc, &child))
			continue;
		node = dp_tree_node_find(c, &child);
		if (node != NULL && node->saved != NULL)
			continue; /* its own row determines its parent */
		if (node == NULL)
			node = dp_tree_node_add(c, &child);
		dp_writer_ref(c->w, &node->ref);
		node->has_ref = true;
		node->adopted = true;
		node->up = new_parent;
		c->adopted = lappend(c->adopted, node);
		if (new_parent != NULL)
			new_parent->dirty = true;
	}
	if (dp_tree_has_attached(c->tree))
	{
		DpTreeNode *self = dp_tree_node_add(c, id);

		/* attached documents are written when the position of the new parent is known */
		self->up = new_parent;
		self->adopted = true;
		self->depth = -2;
	}
}

/* Deletes the nodes below a removed id. */
static void
delete_below(DpTreeChange *c, const DpValue *top)
{
	List *level = list_make1((DpValue *) top);

	while (level != NIL)
	{
		List *next = NIL;
		ListCell *lc;

		dp_writer_refresh(c->w);
		foreach(lc, level)
		{
			const DpValue *id = lfirst(lc);
			List *refs = NIL;
			ListCell *lc2;
			bool found;

			CHECK_FOR_INTERRUPTS();
			for (found = dp_tree_find_children(c->tree, c->w, id); found;
				 found = dp_writer_next(c->w))
			{
				struct varlena *doc = dp_writer_document(c->w);
				DpValue child;
				DpTreeNode *node;

				if (doc == NULL || !dp_tree_id(c->tree, doc, &child))
					continue;
				node = palloc0(sizeof(DpTreeNode));
				node->id = dp_tree_copy_value(c->context, &child);
				dp_writer_ref(c->w, &node->ref);
				refs = lappend(refs, node);
			}
			foreach(lc2, refs)
			{
				DpTreeNode *node = lfirst(lc2);
				bool there = dp_writer_fetch(c->w, &node->ref);

				while (there && dp_writer_delete(c->w) == DP_WRITE_CHANGED)
				{
					DpValue parent;

					/* changed concurrently: it may have another parent */
					dp_writer_refresh(c->w);
					there = dp_tree_find_id(c->tree, c->w, &node->id) &&
							dp_tree_parent(c->tree, dp_writer_document(c->w), &parent) &&
							dp_value_compare(&parent, id) == 0;
				}
				if (there)
					next = lappend(next, &node->id);
			}
			if (dp_tree_has_attached(c->tree))
				dp_tree_follow_deleted(c->tree, &c->follow, id, DP_TREE_CASCADE, NULL, 0);
		}
		level = next;
	}
}

/*
 * Truth children: processes ids added to arrays or removed from them. Their nodes have new
 * parents.
 */
static void
listed_children(DpTreeChange *c)
{
	int i;
	int j;

	for (i = 0; i < c->s->nlisted; i++)
	{
		DpTreeListed *listed = &c->s->listed[i];
		DpTreeNode *node = dp_tree_node_find(c, &listed->child);
		DpValue parent;
		bool has_parent = false;

		CHECK_FOR_INTERRUPTS();
		if (listed->removed)
		{
			bool again = false;

			for (j = 0; j < c->s->nlisted && !again; j++)
				again = !c->s->listed[j].removed &&
						dp_value_compare(&c->s->listed[j].child, &listed->child) == 0;
			if (again)
				continue; /* into another array */
		}
		else
		{
			for (j = 0; j < i; j++)
			{
				if (!c->s->listed[j].removed &&
					dp_value_compare(&c->s->listed[j].child, &listed->child) == 0)
					dp_tree_listed_twice(c->tree, &listed->child);
			}
		}
		if (node == NULL)
		{
			struct varlena *doc;

			if (!dp_tree_lock_id(c->tree, c->w, &listed->child, LockTupleNoKeyExclusive, NULL))
			{
				if (listed->removed)
					continue;
				ereport(ERROR, (errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
								errmsg("node %s of table \"%s\" does not exist",
									   dp_value_to_message(&listed->child),
									   dp_relation_name(c->tree->decl->target)),
								errdetail("Node %s lists it among its children.",
										  dp_value_to_message(&listed->parent))));
			}
			doc = dp_writer_document(c->w);
			has_parent = doc != NULL && dp_tree_parent(c->tree, doc, &parent);
			if (has_parent)
				parent = dp_tree_copy_value(c->context, &parent);
			node = dp_tree_node_add(c, &listed->child);
			dp_writer_ref(c->w, &node->ref);
			node->has_ref = true;
		}
		else if (node->saved != NULL)
		{
			has_parent = node->saved->has_parent;
			parent = node->saved->parent;
		}
		if (listed->removed)
		{
			if (!has_parent || dp_value_compare(&parent, &listed->parent) != 0)
				continue;
			hang(c, node, NULL);
			continue;
		}
		if (has_parent && dp_value_compare(&parent, &listed->parent) != 0 &&
			dp_tree_map_find(&c->removed, &parent) == NULL)
		{
			bool left = false;

			for (j = 0; j < c->s->nlisted && !left; j++)
				left = c->s->listed[j].removed &&
					   dp_value_compare(&c->s->listed[j].child, &listed->child) == 0 &&
					   dp_value_compare(&c->s->listed[j].parent, &parent) == 0;
			if (!left)
				ereport(
					ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 errmsg("node %s of table \"%s\" already has a parent",
							dp_value_to_message(&listed->child),
							dp_relation_name(c->tree->decl->target)),
					 errdetail("Nodes %s and %s list it among their children.",
							   dp_value_to_message(&parent), dp_value_to_message(&listed->parent)),
					 errhint(
						 "Remove it from one array and add it to the other in one statement.")));
		}
		hang(c, node, &listed->parent);
	}
}

void
dp_tree_listed_twice(const DpTree *tree, const DpValue *child)
{
	ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
					errmsg("node %s of table \"%s\" is listed twice among children",
						   dp_value_to_message(child), dp_relation_name(tree->decl->target))));
}

/* Truth children: the node is below a node of the statement, or is a root now. */
static void
hang(DpTreeChange *c, DpTreeNode *node, const DpValue *parent)
{
	if (node->saved != NULL)
	{
		node->saved->has_parent = parent != NULL;
		if (parent != NULL)
			node->saved->parent = *parent;
		node->saved->moved = true;
	}
	if (!node->adopted)
		c->adopted = lappend(c->adopted, node);
	node->adopted = true;
	node->up = parent != NULL ? dp_tree_node_find(c, parent) : NULL;
}

/*
 * The parents of the statement's rows that are not among them.
 */
static void
find_parents(DpTreeChange *c)
{
	int i;

	for (i = 0; i < c->s->nsaved; i++)
	{
		DpTreeSaved *saved = &c->s->saved[i];

		if (saved->has_parent && dp_tree_map_find(&c->removed, &saved->parent) == NULL &&
			dp_tree_node_find(c, &saved->parent) == NULL)
		{
			want(c, &saved->parent);
			(void) dp_tree_node_add(c, &saved->parent);
		}
	}
}

/* Adds a node to lock. */
static void
want(DpTreeChange *c, const DpValue *id)
{
	c->wanted = lappend(c->wanted, memcpy(palloc(sizeof(DpValue)), id, sizeof(DpValue)));
}

int
dp_tree_compare_ids(const ListCell *a, const ListCell *b)
{
	return dp_value_compare(lfirst(a), lfirst(b));
}

/* Locks the parents, in the order of their ids, and reads their positions. */
static void
lock_parents(DpTreeChange *c)
{
	LockTupleMode mode = c->tree->children != NULL ? LockTupleNoKeyExclusive : LockTupleShare;
	const DpValue *last = NULL;
	ListCell *lc;

	list_sort(c->wanted, dp_tree_compare_ids);
	foreach(lc, c->wanted)
	{
		const DpValue *id = lfirst(lc);
		DpTreeNode *node;
		struct varlena *doc;
		struct varlena *copy;
		DpValue now;

		CHECK_FOR_INTERRUPTS();
		if (last != NULL && dp_value_compare(last, id) == 0)
			continue;
		last = id;
		node = dp_tree_node_find(c, id);
		if (node != NULL && (node->saved != NULL || node->adopted))
		{
			node->dirty = c->tree->children != NULL;
			continue;
		}
		if (!dp_tree_lock_id(c->tree, c->w, id, mode, NULL))
		{
			if (node != NULL)
				missing_parent(c, id);
			continue; /* a former parent that was removed */
		}
		doc = dp_writer_document(c->w);
		if (node == NULL)
			node = dp_tree_node_add(c, id);
		dp_writer_ref(c->w, &node->ref);
		node->has_ref = true;
		copy = MemoryContextAlloc(c->context, VARSIZE_ANY(doc));
		memcpy(copy, doc, VARSIZE_ANY(doc));
		if (dp_tree_id(c->tree, copy, &now))
			node->id = now; /* as the node itself writes it */
		load_parent(c, node, copy);
		node->dirty = c->tree->children != NULL;
	}
	if (c->wanted != NIL)
		dp_writer_refresh(c->w);
}

/*
 * Finds the position of a node outside of the statement: by its ancestors up to the first known
 * node, or upwards from node to node.
 */
static void
load_parent(DpTreeChange *c, DpTreeNode *node, struct varlena *doc)
{
	DpTreeReading reading = { c->tree, c->w };
	DpValue *chain;
	DpValue parent;
	int n;

	chain = dp_held(c->tree->decl, c->tree->ancestors) ? NULL : dp_tree_ancestors(c->tree, doc, &n);
	if (chain != NULL && (dp_tree_parent(c->tree, doc, &parent)
							  ? n > 0 && dp_value_compare(&parent, &chain[n - 1]) == 0
							  : n == 0))
	{
		while (n-- > 0)
		{
			node->up = dp_tree_node_find(c, &chain[n]);
			if (node->up != NULL)
				return;
			node->up = dp_tree_node_add(c, &chain[n]);
			node = node->up;
		}
		return;
	}

	/*
	 * nothing but its parent is known: a forest without ancestors needs no more, where nothing
	 * moves
	 */
	if (!c->tree->chained && !c->moves && !dp_tree_has_attached(c->tree))
		return;
	while (dp_tree_parent(c->tree, doc, &parent))
	{
		CHECK_FOR_INTERRUPTS();
		node->up = dp_tree_node_find(c, &parent);
		if (node->up != NULL)
			return;
		doc = dp_tree_fetch(&reading, &parent);
		if (doc == NULL)
		{
			if (dp_tree_map_find(&c->removed, &parent) != NULL)
			{
				node->up = new_parent_of(c, &parent);
				return;
			}
			missing_parent(c, &parent);
		}
		node->up = dp_tree_node_add(c, &parent);
		node = node->up;
		(void) dp_tree_id(c->tree, doc, &node->id);
	}
}

/* Called with all parents known: sets the parents of the rows of the statement. */
static void
set_parents(DpTreeChange *c)
{
	int i;

	for (i = 0; i < c->s->nsaved; i++)
	{
		DpTreeSaved *saved = &c->s->saved[i];
		DpTreeNode *node = &c->rows[i];

		if (node->saved == NULL || !saved->has_parent)
			continue;
		if (dp_tree_map_find(&c->removed, &saved->parent) != NULL)
		{
			DpTreeRemoved *removed =
				(DpTreeRemoved *) dp_tree_map_find(&c->removed, &saved->parent);

			if (removed->saved < 0 && c->tree->on_delete != DP_TREE_REPARENT)
				missing_parent(c, &saved->parent);
			node->up = new_parent_of(c, &saved->parent);
			if (!node->adopted)
				c->adopted = lappend(c->adopted, node);
			node->adopted = true;
			saved->moved = true;
		}
		else
			node->up = dp_tree_node_find(c, &saved->parent);
		if (node->up != NULL && c->tree->children != NULL)
			node->up->dirty = true;
	}
}

/* Raises CHECK_VIOLATION if the ancestors of a node form a cycle. Sets the depth of all of them. */
static void
refuse_cycles(DpTreeChange *c, DpTreeNode *node)
{
	DpTreeNode *n;
	DpTreeNode *known;
	int count = 0;

	if (node->depth >= 0)
		return;
	c->stamp++;
	for (n = node; n != NULL && n->depth < 0; n = n->up)
	{
		if (n->stamp == c->stamp)
			ereport(ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 errmsg("cannot move node %s of table \"%s\" below itself",
							dp_value_to_message(&n->id), dp_relation_name(c->tree->decl->target)),
					 errdetail("A tree has no cycles.")));
		n->stamp = c->stamp;
		count++;
	}
	known = n;
	count += known != NULL ? known->depth : -1;
	for (n = node; n != known; n = n->up)
		n->depth = count--;
}

/*
 * The ids above a node, root first, in c->chain; with self its own is the last.  Returns their
 * number.
 */
int
dp_tree_chain_of(DpTreeChange *c, DpTreeNode *node, bool self)
{
	int n;
	int i;

	refuse_cycles(c, node);
	n = node->depth + (self ? 1 : 0);
	if (n + 1 > c->chain_size)
	{
		c->chain_size = (n + 1) * 2;
		c->chain = MemoryContextAllocHuge(c->context, sizeof(DpValue) * c->chain_size);
	}
	if (!self)
		node = node->up;
	for (i = n - 1; i >= 0; i--, node = node->up)
		c->chain[i] = node->id;
	return n;
}

/*
 * Raises T_R_SERIALIZATION_FAILURE if rows of the statement are below a child of a removed id that
 * was deleted or moved concurrently.
 */
static void
refuse_below(DpTreeChange *c, DpTreeNode *node)
{
	int i;

	for (i = 0; i < c->s->nsaved; i++)
	{
		if (c->rows[i].up == node)
			ereport(
				ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errdetail(
					 "Node %s of table \"%s\", the new parent of a node, was deleted or replaced.",
					 dp_value_to_message(&node->id), dp_relation_name(c->tree->decl->target))));
	}
}

/* Raises FOREIGN_KEY_VIOLATION. */
static void
missing_parent(DpTreeChange *c, const DpValue *id)
{
	ereport(ERROR, (errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
					errmsg("parent %s does not exist in table \"%s\"", dp_value_to_message(id),
						   dp_relation_name(c->tree->decl->target)),
					errdetail("A parent must be a node of the same table.")));
}
