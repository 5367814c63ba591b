/*
 * tree.c
 *		The roll-up pattern along a tree: nodes above a node, the whole of a node,
 *		and changes of trees.
 *
 * A writer of the source locks the tree in RowExclusiveLock mode until the
 * transaction ends and reads the tree afterwards.  A writer of the tree takes
 * ExclusiveLock after writing, and recomputes all nodes that were or are above a
 * changed edge.
 *
 * At REPEATABLE READ and above, a transaction cannot add rows along edges that its
 * snapshot does not show.  Most moves change documents of totals, which it could
 * not overwrite; but not those of nodes without rows.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "kit/derive/batch.h"
#include "kit/registry.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/rollup/rollup.h"

/* Maximal depth of a tree; beyond it there is a cycle */
#define MAX_DEPTH 10000

/* The result of a statement */
typedef struct Reading
{
	const DpHierarchy *tree;
	MemoryContext context;
	List *values; /* copies, DpValue * */
	bool found;
	bool has_ancestors;
	bool latest; /* with the latest snapshot, not the query's */
	struct varlena *stored;
} Reading;

static List *chain_of(DpRollup *r, const DpValue *node, bool by_ancestors, bool latest);
static void require_seen(DpRollup *r, const DpValue *node, List *chain);
static bool visit_node(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool visit_child(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool visit_stored(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static void read_node(DpRollup *r, const DpValue *node, Reading *reading);
static List *read_children(DpRollup *r, const DpValue *node);
static struct varlena *read_stored(DpRollup *r, const DpValue *node);
static void node_add(DpRollup *r, DpDeriveBatch *batch, DpAccumulation *g, const DpValue *node);
static DpValue *value_copy(const DpValue *value, MemoryContext context);
static void tree_changed(DpRollup *r, DpChanges *changes);
static void anew_above(DpRollup *r, DpDeriveBatch *batch, const DpValue *node);

static const DpHierarchy *
rollup_tree(DpRollup *r)
{
	if (!OidIsValid(r->tree))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the tree of the roll-up \"%s\" of table \"%s\" is missing",
						r->derivation->decl->name, dp_relation_name(r->derivation->decl->target)),
				 errhint("Call pattern_disable() to end the roll-up.")));
	return dp_hierarchy_find(r->tree);
}

static DpValue *
value_copy(const DpValue *value, MemoryContext context)
{
	DpValue *copy = MemoryContextAlloc(context, sizeof(DpValue));
	uint8 *data = MemoryContextAlloc(context, Max(value->len, 1));

	memcpy(data, value->data, value->len);
	*copy = *value;
	copy->data = data;
	return copy;
}

/* ---------------------------------------------------------------- reading the tree */

/* Reads a node: whether it exists, and the nodes above it, or only its parent. */
static void
read_node(DpRollup *r, const DpValue *node, Reading *reading)
{
	SPIPlanPtr plan =
		dp_statement(reading->tree->decl,
					 "SELECT t.{doc} FROM {table} AS t WHERE {id}{own =}{$1 bson_value}");
	ParamListInfo params = dp_source_params(1);

	dp_source_param(params, 0, dp_types()->bson_value, node);
	(void) dp_rollup_each(r, plan, params, reading->latest, visit_node, reading);
}

static bool
visit_node(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Reading *reading = arg;
	DpValue parent;

	reading->found = true;
	if (reading->has_ancestors)
	{
		int n;
		DpValue *above = reading->tree->ancestors(reading->tree, row->doc, &n);

		if (above != NULL)
		{
			MemoryContext old = MemoryContextSwitchTo(reading->context);

			while (n-- > 0)
				reading->values = lappend(reading->values, value_copy(&above[n], reading->context));
			MemoryContextSwitchTo(old);
			return false;
		}
		reading->has_ancestors = false;
	}
	if (reading->tree->parent(reading->tree, row->doc, &parent))
	{
		MemoryContext old = MemoryContextSwitchTo(reading->context);

		reading->values = lappend(reading->values, value_copy(&parent, reading->context));
		MemoryContextSwitchTo(old);
	}
	return false;
}

/*
 * Returns the nodes above a node, the nearest first (DpValue *), in the current context, with the
 * query's or the latest snapshot. A node that is not in the tree has none. by_ancestors: from the
 * ancestors in the node's document, if present; else from parent to parent.
 */
static List *
chain_of(DpRollup *r, const DpValue *node, bool by_ancestors, bool latest)
{
	Reading reading = { .tree = rollup_tree(r), .context = CurrentMemoryContext, .latest = latest };
	int depth = 0;

	reading.has_ancestors = by_ancestors && reading.tree->keeps_ancestors;
	SPI_connect();
	for (;;)
	{
		int known = list_length(reading.values);

		read_node(r, known == 0 ? node : llast(reading.values), &reading);
		if (reading.has_ancestors || list_length(reading.values) == known)
			break;
		if (++depth > MAX_DEPTH)
			ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
							errmsg("tree \"%s\" has a cycle", dp_relation_name(r->tree)),
							errhint("Find it with pattern_check().")));
	}
	SPI_finish();
	return reading.values;
}

/*
 * Raises T_R_SERIALIZATION_FAILURE if the nodes above a node differ in the transaction's snapshot
 * and now.
 */
static void
require_seen(DpRollup *r, const DpValue *node, List *chain)
{
	List *seen;
	ListCell *now;
	ListCell *then;
	bool same;

	if (!IsolationUsesXactSnapshot())
		return;
	PushActiveSnapshot(GetTransactionSnapshot());
	seen = chain_of(r, node, true, false);
	PopActiveSnapshot();
	same = list_length(seen) == list_length(chain);
	forboth(now, chain, then, seen)
		same = same && dp_value_compare(lfirst(now), lfirst(then)) == 0;
	if (!same)
		ereport(
			ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent update"),
			 errdetail("A node of tree \"%s\" was moved after the transaction took its snapshot.",
					   dp_relation_name(r->tree)),
			 errhint("Retry the transaction.")));
}

/* Returns the children of a node (DpValue *), in the current context; inside SPI_connect(). */
static List *
read_children(DpRollup *r, const DpValue *node)
{
	Reading reading = { .tree = rollup_tree(r), .context = CurrentMemoryContext };
	SPIPlanPtr plan =
		dp_statement(reading.tree->decl,
					 "SELECT t.{doc} FROM {table} AS t WHERE {parent}{own =}{$1 bson_value}");
	ParamListInfo params = dp_source_params(1);

	dp_source_param(params, 0, dp_types()->bson_value, node);
	(void) dp_rollup_each(r, plan, params, false, visit_child, &reading);
	return reading.values;
}

static bool
visit_child(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Reading *reading = arg;
	DpValue id;

	if (reading->tree->id(reading->tree, row->doc, &id))
	{
		MemoryContext old = MemoryContextSwitchTo(reading->context);

		reading->values = lappend(reading->values, value_copy(&id, reading->context));
		MemoryContextSwitchTo(old);
	}
	return true;
}

/* Returns the document of totals of a node, or NULL; inside SPI_connect(). */
static struct varlena *
read_stored(DpRollup *r, const DpValue *node)
{
	Reading reading = { .context = CurrentMemoryContext };
	SPIPlanPtr plan =
		dp_statement(r->derivation->decl,
					 "SELECT t.doc FROM {relation} AS t WHERE t._id{own =}{$1 bson_value}",
					 r->derivation->target);
	ParamListInfo params = dp_source_params(1);

	dp_source_param(params, 0, dp_types()->bson_value, node);
	(void) dp_rollup_each(r, plan, params, false, visit_stored, &reading);
	return reading.stored;
}

static bool
visit_stored(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Reading *reading = arg;
	MemoryContext old = MemoryContextSwitchTo(reading->context);

	reading->stored = dp_document_to_varlena(DP_DOC_DATA(row->doc), DP_DOC_SIZE(row->doc));
	MemoryContextSwitchTo(old);
	return false;
}

/* ---------------------------------------------------------------- rows of the source */

void
dp_rollup_find_above(DpRollup *r, DpDeriveBatch *batch, DpGroup *group)
{
	DpRollupGroup *state = dp_rollup_group(group);
	List *chain;
	ListCell *lc;

	if (state->found_above)
		return;
	if (!batch->check)
		dp_derive_lock_group(r->derivation, DP_ROLLUP_TREE_LOCK, RowExclusiveLock);
	chain = chain_of(r, &group->key, true, !batch->check);
	if (!batch->check)
		require_seen(r, &group->key, chain);
	state->above =
		MemoryContextAlloc(dp_derive_memory(batch), sizeof(DpGroup *) * Max(list_length(chain), 1));
	foreach(lc, chain)
		state->above[state->nabove++] = dp_derive_group(batch, r->derivation, lfirst(lc));
	state->found_above = true;
}

/* ---------------------------------------------------------------- the whole of a node */

/*
 * Adds the whole of a node: the stored one; or, if the batch changes it, which may not have been
 * written yet, its own rows and its children.
 */
static void
node_add(DpRollup *r, DpDeriveBatch *batch, DpAccumulation *g, const DpValue *node)
{
	DpGroup *group = dp_derive_find(batch, r->derivation, node);
	struct varlena *stored;
	DpValue doc;

	if (group != NULL && group->changed)
	{
		dp_accumulation_add(g, dp_rollup_node_whole(r, group));
		return;
	}
	stored = read_stored(r, node);
	if (stored == NULL)
		return;
	doc = dp_value_of_document(stored);
	if (!dp_accumulation_add_stored(g, &doc))
	{
		List *children = read_children(r, node);
		ListCell *lc;

		dp_rollup_read_node(r, g, node);
		foreach(lc, children)
			node_add(r, batch, g, lfirst(lc));
	}
}

DpAccumulation *
dp_rollup_node_whole(DpRollup *r, DpGroup *group)
{
	DpRollupGroup *state = dp_rollup_group(group);
	List *children;
	ListCell *lc;

	check_stack_depth();
	if (!dp_rollup_whole_begin(r, group))
		return state->whole;
	dp_rollup_read_node(r, state->whole, &group->key);
	children = read_children(r, &group->key);
	foreach(lc, children)
		node_add(r, group->batch, state->whole, lfirst(lc));
	return state->whole;
}

/* ---------------------------------------------------------------- trees that change */

void
dp_rollup_tree_changed(DpChanges *changes)
{
	ListCell *lc;

	foreach(lc, dp_source_decls(dp_changes_table(changes)))
	{
		DpSourceDecl *used = lfirst(lc);
		DpRollup *r;

		if (used->is_main || strcmp(used->decl->pattern, "rollup") != 0)
			continue;
		r = dp_rollup(used->decl);
		if (r->tree_link_id != NULL && strcmp(r->tree_link_id, used->link_id) == 0 &&
			OidIsValid(r->derivation->target) && OidIsValid(r->tree) &&
			dp_decl_maintained(used->decl))
			tree_changed(r, changes);
	}
}

/* Marks a node and the nodes above it for recomputation. */
static void
anew_above(DpRollup *r, DpDeriveBatch *batch, const DpValue *node)
{
	ListCell *lc;

	dp_derive_group(batch, r->derivation, node)->recompute = true;
	foreach(lc, chain_of(r, node, false, true))
		dp_derive_group(batch, r->derivation, lfirst(lc))->recompute = true;
}

/* Processes a statement on the tree for one roll-up. */
static void
tree_changed(DpRollup *r, DpChanges *changes)
{
	const DpHierarchy *tree = rollup_tree(r);
	DpDeriveBatch *batch = NULL;
	DpChange change;
	MemoryContext row =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns tree row", ALLOCSET_DEFAULT_SIZES);

	dp_changes_rewind(changes);
	while (dp_changes_next(changes, &change))
	{
		MemoryContext old = MemoryContextSwitchTo(row);
		TupleTableSlot *slots[2] = { change.before, change.after };
		struct varlena *docs[2] = { NULL, NULL };
		DpValue id[2];
		DpValue parent[2];
		bool has_id[2] = { false, false };
		bool has_parent[2] = { false, false };
		int i;

		for (i = 0; i < 2; i++)
		{
			if (slots[i] == NULL)
				continue;
			docs[i] = dp_source_document(slots[i], tree->decl->doc_column);
			has_id[i] = tree->id(tree, docs[i], &id[i]);
			has_parent[i] = tree->parent(tree, docs[i], &parent[i]);
		}
		if (!(has_id[0] && has_id[1] && has_parent[0] == has_parent[1] &&
			  dp_value_compare(&id[0], &id[1]) == 0 &&
			  (!has_parent[0] || dp_value_compare(&parent[0], &parent[1]) == 0)))
		{
			for (i = 0; i < 2; i++)
			{
				if (!has_id[i])
					continue;
				if (batch == NULL)
				{
					MemoryContextSwitchTo(old);
					dp_derive_lock_group(r->derivation, DP_ROLLUP_TREE_LOCK, ExclusiveLock);
					batch = dp_derive_begin();
					MemoryContextSwitchTo(row);
				}
				dp_derive_group(batch, r->derivation, &id[i])->recompute = true;
				if (has_parent[i])
					anew_above(r, batch, &parent[i]);
			}
		}
		MemoryContextSwitchTo(old);
		MemoryContextReset(row);
	}
	MemoryContextDelete(row);
	if (dp_changes_wholly(changes))
	{
		dp_derive_lock_group(r->derivation, DP_ROLLUP_TREE_LOCK, ExclusiveLock);
		(void) dp_derive_whole(list_make1(r->derivation), false, true);
	}
	if (batch != NULL)
		(void) dp_derive_end(batch, false);
}
