/*
 * calls.c
 *		The calls for trees that return nodes: ancestors, descendants and siblings
 *		of a node.
 *
 * All return rows of (node bson_value, depth int, path treepath, key bson_value,
 * doc bson).  depth is the number of ids above the node in its tree.
 */
#include "postgres.h"

#include "kit/shard.h"
#include "access/htup_details.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/tree/calls.h"

/* Rows that are fetched at a time */
#define BATCH 1000

/* Rows of a subtree that wait for their order */
typedef struct Waiting
{
	Tuplestorestate *store;
	TupleDesc desc; /* number, key, doc */
} Waiting;

static void put(ReturnSetInfo *rsinfo, const DpValue *id, int depth, struct varlena *path,
				struct varlena *key, struct varlena *doc);
static void put_item(ReturnSetInfo *rsinfo, DpTree *tree, DpTreeItem *item);
static void put_subtree(ReturnSetInfo *rsinfo, DpTree *tree, struct varlena *path, int max_depth);
static bool served_by_path(DpTree *tree, DpTreeItem *node, struct varlena **path);
static void put_walked(ReturnSetInfo *rsinfo, DpTree *tree, DpTreeItem *node, int max_depth);
static void wait_row(DpTreeItem *item, void *arg);
static void
put_children(ReturnSetInfo *rsinfo, DpTree *tree, DpTreeItem *parent, DpTreeItem *except);

/*
 * tree_ancestors(rel regclass, key anycompatible, name text): root first, without the
 * node itself
 */
DP_ROUTED_FUNCTION(dp_tree_ancestors_call, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpTree *tree;
	List *above;
	DpTreepathBuilder b;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	tree = dp_tree_begin(fcinfo, 2);
	above = dp_tree_read_above(tree, dp_tree_read_node(tree, dp_tree_argument(fcinfo, 1)));

	/* each path continues where the previous one ends */
	dp_treepath_begin(&b);
	for (int i = list_length(above) - 1; i >= 0; i--)
	{
		DpTreeItem *item = list_nth(above, i);
		struct varlena *path = dp_tree_treepath(tree, item->doc);

		CHECK_FOR_INTERRUPTS();
		dp_treepath_append_value(&b, &item->id);
		if (path == NULL)
			path = dp_treepath_of_ids(b.buf + VARHDRSZ, b.len - VARHDRSZ);
		put(rsinfo, &item->id,
			dp_treepath_count(DP_TREEPATH_DATA(path), DP_TREEPATH_SIZE(path)) - 1, path, item->key,
			item->doc);
		pfree(path);
	}
	SPI_finish();
	return (Datum) 0;
}

/*
 * tree_root(rel regclass, key anycompatible, name text): the root of the node's tree
 */
DP_ROUTED_FUNCTION(dp_tree_root_call, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpTree *tree;
	DpTreeItem *node;
	List *above;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	tree = dp_tree_begin(fcinfo, 2);
	node = dp_tree_read_node(tree, dp_tree_argument(fcinfo, 1));
	above = dp_tree_read_above(tree, node);
	put_item(rsinfo, tree, above == NIL ? node : llast(above));
	SPI_finish();
	return (Datum) 0;
}

/*
 * tree_lca(rel regclass, a "any", b "any", name text): the lowest common ancestor of two nodes,
 * possibly one of them; no row if they are in two trees
 */
DP_ROUTED_FUNCTION(dp_tree_lca_call, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpTree *tree;
	List *lines[2];
	DpTreeItem *found = NULL;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	tree = dp_tree_begin(fcinfo, 3);
	for (int i = 0; i < 2; i++)
	{
		DpTreeItem *node = dp_tree_read_node(tree, dp_tree_argument(fcinfo, 1 + i));

		lines[i] = lcons(node, dp_tree_read_above(tree, node));
	}
	for (int i = 0; i < list_length(lines[0]) && i < list_length(lines[1]); i++)
	{
		DpTreeItem *a = list_nth(lines[0], list_length(lines[0]) - 1 - i);
		DpTreeItem *b = list_nth(lines[1], list_length(lines[1]) - 1 - i);

		if (dp_value_compare(&a->id, &b->id) != 0)
			break;
		found = a;
	}
	if (found != NULL)
		put_item(rsinfo, tree, found);
	SPI_finish();
	return (Datum) 0;
}

/*
 * tree_children(rel regclass, key anycompatible, name text): in the order of siblings;
 * the roots if key is NULL
 */
DP_ROUTED_FUNCTION(dp_tree_children_call, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpTree *tree;
	struct varlena *id;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	tree = dp_tree_begin(fcinfo, 2);
	id = dp_tree_argument(fcinfo, 1);
	put_children(rsinfo, tree, id == NULL ? NULL : dp_tree_read_node(tree, id), NULL);
	SPI_finish();
	return (Datum) 0;
}

/*
 * tree_siblings(rel regclass, key anycompatible, name text): the other children of the
 * parent, or the other roots
 */
DP_ROUTED_FUNCTION(dp_tree_siblings_call, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpTree *tree;
	DpTreeItem *node;
	DpTreeItem *parent = NULL;
	DpValue id;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	tree = dp_tree_begin(fcinfo, 2);
	node = dp_tree_read_node(tree, dp_tree_argument(fcinfo, 1));
	if (dp_tree_parent(tree, node->doc, &id))
		parent = dp_tree_read_node(tree, dp_value_to_varlena(&id));
	put_children(rsinfo, tree, parent, node);
	SPI_finish();
	return (Datum) 0;
}

/*
 * tree_descendants(rel regclass, key anycompatible, max_depth int, name text): depth
 * first, without the node itself; all nodes if key is NULL
 */
DP_ROUTED_FUNCTION(dp_tree_descendants_call, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpTree *tree;
	int max_depth;
	struct varlena *id;
	struct varlena *path;
	DpTreeItem *node;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	max_depth = dp_tree_depth_argument(fcinfo, 2);
	tree = dp_tree_begin(fcinfo, 3);
	id = dp_tree_argument(fcinfo, 1);
	node = id == NULL ? NULL : dp_tree_read_node(tree, id);
	/* few levels of a large tree are found faster by the parents */
	if ((max_depth < 0 || max_depth > 3) && tree->order_by == NULL &&
		served_by_path(tree, node, &path))
		put_subtree(rsinfo, tree, path, max_depth);
	else
		put_walked(rsinfo, tree, node, max_depth);
	SPI_finish();
	return (Datum) 0;
}

/*
 * tree_subtree_count(rel regclass, key anycompatible, name text) -> bigint: nodes of
 * the subtree, its root included; of all trees if key is NULL
 */
DP_ROUTED_FUNCTION(dp_tree_subtree_count_call, DP_ROUTE_WHOLE, 0)
{
	DpTree *tree = dp_tree_begin(fcinfo, 2);
	struct varlena *id = dp_tree_argument(fcinfo, 1);
	DpTreeItem *node = id == NULL ? NULL : dp_tree_read_node(tree, id);
	struct varlena *path;
	int64 count;

	if (served_by_path(tree, node, &path))
	{
		SPIPlanPtr plan = dp_statement(
			tree->decl,
			"SELECT pg_catalog.count(*) FROM {table} AS t WHERE {treepath}{own <@}{$1 treepath}");
		Datum arg = PointerGetDatum(path);
		bool isnull;

		dp_run(tree->decl, plan, &arg, NULL, DP_RUN_SNAPSHOT, 1, SPI_OK_SELECT);
		count = DatumGetInt64(dp_result(0, 1, &isnull));
	}
	else
		count = dp_tree_read_below(tree, node, -1, false, NULL, NULL)->nitems + (node != NULL);
	SPI_finish();
	PG_RETURN_INT64(count);
}

/* ---------------------------------------------------------------- rows */

/* Returns a row. */
static void
put(ReturnSetInfo *rsinfo, const DpValue *id, int depth, struct varlena *path, struct varlena *key,
	struct varlena *doc)
{
	Datum values[5];
	bool nulls[5] = { false };
	struct varlena *node = dp_value_to_varlena(id);

	values[0] = PointerGetDatum(node);
	values[1] = Int32GetDatum(depth);
	values[2] = PointerGetDatum(path);
	values[3] = PointerGetDatum(key);
	nulls[3] = key == NULL;
	values[4] = PointerGetDatum(doc);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	pfree(node);
}

/* Returns a node that is already read. */
static void
put_item(ReturnSetInfo *rsinfo, DpTree *tree, DpTreeItem *item)
{
	struct varlena *path = dp_tree_node_path(tree, item);

	put(rsinfo, &item->id, dp_treepath_count(DP_TREEPATH_DATA(path), DP_TREEPATH_SIZE(path)) - 1,
		path, item->key, item->doc);
}

/* Returns the children of a node, or the roots if it is NULL, less one of them. */
static void
put_children(ReturnSetInfo *rsinfo, DpTree *tree, DpTreeItem *parent, DpTreeItem *except)
{
	DpTreeRead *read = dp_tree_read_below(tree, parent, 1, true, NULL, NULL);

	for (DpTreeItem *item = read->top->first; item != NULL; item = item->next)
		if (except == NULL || dp_value_compare(&item->id, &except->id) != 0)
			put(rsinfo, &item->id, item->depth, dp_tree_item_path(read, item), item->key,
				item->doc);
}

/*
 * ---------------------------------------------------------------- subtrees by the index on
 * treepaths
 */

/*
 * Returns whether the index on treepaths has all nodes below a node (NULL: all nodes), and the
 * path of these. It does not if documents are older than the pattern and were not built yet, or if
 * their paths are too long for an index.
 */
static bool
served_by_path(DpTree *tree, DpTreeItem *node, struct varlena **path)
{
	SPIPlanPtr plan;

	if (tree->ancestors == NULL)
		return false;
	if (node != NULL)
	{
		*path = dp_tree_treepath(tree, node->doc);
		if (*path == NULL)
			return false;
	}
	else
		*path = dp_treepath_of_ids(NULL, 0);
	plan = dp_statement(tree->decl, "SELECT 1 FROM {table} AS t"
									" WHERE {treepath} IS NULL AND {id} IS NOT NULL LIMIT 1");
	return dp_run(tree->decl, plan, NULL, NULL, DP_RUN_SNAPSHOT, 1, SPI_OK_SELECT) == 0;
}

/* Returns the rows below a path, in the order of the index. */
static void
put_subtree(ReturnSetInfo *rsinfo, DpTree *tree, struct varlena *path, int max_depth)
{
	SPIPlanPtr plan = dp_statement(tree->decl, DP_TREE_SELECT
								   "{treepath}{own <@}{$1 treepath} ORDER BY {treepath}");
	Datum arg = PointerGetDatum(path);
	int top = dp_treepath_count(DP_TREEPATH_DATA(path), DP_TREEPATH_SIZE(path)) - 1;
	MemoryContext home = CurrentMemoryContext;
	MemoryContext rows;
	Portal portal;

	rows = AllocSetContextCreate(home, "nodes of a tree", ALLOCSET_DEFAULT_SIZES);
	portal = SPI_cursor_open(NULL, plan, &arg, NULL, true);
	for (;;)
	{
		SPI_cursor_fetch(portal, true, BATCH);
		if (SPI_processed == 0)
			break;
		for (uint64 row = 0; row < SPI_processed; row++)
		{
			bool isnull;
			struct varlena *doc;
			struct varlena *key;
			struct varlena *below;
			DpValue id;
			int depth;

			CHECK_FOR_INTERRUPTS();
			MemoryContextSwitchTo(rows);
			doc = (struct varlena *) DatumGetPointer(dp_result(row, 1, &isnull));
			key = (struct varlena *) DatumGetPointer(dp_result(row, 2, &isnull));
			below = dp_tree_treepath(tree, doc);
			if (below == NULL || !dp_tree_id(tree, doc, &id))
				continue;
			depth = dp_treepath_count(DP_TREEPATH_DATA(below), DP_TREEPATH_SIZE(below)) - 1;
			if (depth > top && (max_depth < 0 || depth - top <= max_depth))
				put(rsinfo, &id, depth, below, isnull ? NULL : key, doc);
			MemoryContextReset(rows);
		}
		MemoryContextSwitchTo(home);
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_cursor_close(portal);
	MemoryContextDelete(rows);
}

/* ---------------------------------------------------------------- subtrees by the parents */

/* Returns the rows below a node, found level by level: sorted after all are found. */
static void
put_walked(ReturnSetInfo *rsinfo, DpTree *tree, DpTreeItem *node, int max_depth)
{
	Oid operator= Int8LessOperator;
	Oid collation = InvalidOid;
	bool nulls_first = false;
	AttrNumber attribute = 1;
	Waiting waiting;
	DpTreeRead *read;
	int64 *ranks;
	DpTreeItem **items;
	int64 rank = 0;
	Tuplesortstate *sort;
	TupleTableSlot *slot;
	TupleTableSlot *out;
	Datum values[3];
	bool nulls[3];
	MemoryContext home = CurrentMemoryContext;
	MemoryContext rows = AllocSetContextCreate(home, "nodes of a tree", ALLOCSET_DEFAULT_SIZES);

	waiting.desc = CreateTemplateTupleDesc(3);
	TupleDescInitEntry(waiting.desc, 1, "rank", INT8OID, -1, 0);
	TupleDescInitEntry(waiting.desc, 2, "key", dp_types()->bson_value, -1, 0);
	TupleDescInitEntry(waiting.desc, 3, "doc", dp_types()->bson, -1, 0);
	waiting.store = tuplestore_begin_heap(false, false, work_mem);
	read = dp_tree_read_below(tree, node, max_depth, false, wait_row, &waiting);

	ranks = MemoryContextAllocHuge(home, sizeof(int64) * Max(read->nitems, 1));
	items = MemoryContextAllocHuge(home, sizeof(DpTreeItem *) * Max(read->nitems, 1));
	for (DpTreeItem *item = dp_tree_item_after(read, read->top); item != NULL;
		 item = dp_tree_item_after(read, item))
	{
		items[rank] = item;
		ranks[item->number] = rank++;
	}

	sort = tuplesort_begin_heap(waiting.desc, 1, &attribute, &operator, & collation, &nulls_first,
								work_mem, NULL, TUPLESORT_NONE);
	slot = MakeSingleTupleTableSlot(waiting.desc, &TTSOpsMinimalTuple);
	out = MakeSingleTupleTableSlot(waiting.desc, &TTSOpsVirtual);
	while (tuplestore_gettupleslot(waiting.store, true, false, slot))
	{
		slot_getallattrs(slot);
		ExecClearTuple(out);
		out->tts_values[0] = Int64GetDatum(ranks[DatumGetInt64(slot->tts_values[0])]);
		memcpy(out->tts_values + 1, slot->tts_values + 1, sizeof(Datum) * 2);
		memset(out->tts_isnull, 0, sizeof(bool) * 3);
		out->tts_isnull[1] = slot->tts_isnull[1];
		ExecStoreVirtualTuple(out);
		tuplesort_puttupleslot(sort, out);
	}
	tuplesort_performsort(sort);
	while (tuplesort_gettupleslot(sort, true, false, slot, NULL))
	{
		DpTreeItem *item;

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		memcpy(values, slot->tts_values, sizeof(values));
		memcpy(nulls, slot->tts_isnull, sizeof(nulls));
		item = items[DatumGetInt64(values[0])];
		MemoryContextSwitchTo(rows);
		put(rsinfo, &item->id, item->depth, dp_tree_item_path(read, item),
			nulls[1] ? NULL : (struct varlena *) DatumGetPointer(values[1]),
			(struct varlena *) DatumGetPointer(values[2]));
		MemoryContextSwitchTo(home);
		MemoryContextReset(rows);
	}
	ExecDropSingleTupleTableSlot(out);
	ExecDropSingleTupleTableSlot(slot);
	tuplesort_end(sort);
	tuplestore_end(waiting.store);
	MemoryContextDelete(rows);
}

/* DpTreeVisit: keeps the row until all are there. */
static void
wait_row(DpTreeItem *item, void *arg)
{
	Waiting *waiting = arg;
	Datum values[3];
	bool nulls[3] = { false };

	values[0] = Int64GetDatum(item->number);
	values[1] = PointerGetDatum(item->key);
	nulls[1] = item->key == NULL;
	values[2] = PointerGetDatum(item->doc);
	tuplestore_putvalues(waiting->store, waiting->desc, values, nulls);
}
