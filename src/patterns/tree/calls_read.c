/*
 * calls_read.c
 *		How the calls for trees read nodes: one by its id, its ancestors, and its
 *		descendants, level by level.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/text.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/tree/calls.h"

/* Parents whose children are read by one statement, and rows that are fetched at a time */
#define BATCH 1000

/* Items of a level */
typedef struct Level
{
	DpTreeItem **items;
	int n;
	int max;
} Level;

static DpTreeItem *read_row(DpTree *tree, uint64 row, bool copy);
static void read_children(DpTreeRead *read, Level *parents, int from, int n, Level *next,
						  bool keep_docs, DpTreeVisit visit, void *arg);
static int compare_items(const void *a, const void *b);
static void cycle(DpTree *tree) pg_attribute_noreturn();

DpTree *
dp_tree_begin(FunctionCallInfo fcinfo, int name)
{
	DpTree *tree;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	tree = dp_tree_find(PG_GETARG_OID(0),
						PG_ARGISNULL(name) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(name)));
	SPI_connect();
	return tree;
}

struct varlena *
dp_tree_argument(FunctionCallInfo fcinfo, int argno)
{
	Oid type = get_fn_expr_argtype(fcinfo->flinfo, argno);
	struct varlena *value;

	if (PG_ARGISNULL(argno))
		return NULL;
	value = dp_datum_to_value(PG_GETARG_DATUM(argno), type);
	return dp_value_of_varlena(value).type == DP_TYPE_NULL ? NULL : value;
}

int
dp_tree_depth_argument(FunctionCallInfo fcinfo, int argno)
{
	if (PG_ARGISNULL(argno))
		return -1;
	if (PG_GETARG_INT32(argno) < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("max_depth must not be negative")));
	return PG_GETARG_INT32(argno);
}

/* ---------------------------------------------------------------- nodes and their ancestors */

/*
 * The item of a row of the current result; with copy its document and key are in the current
 * context.
 */
static DpTreeItem *
read_row(DpTree *tree, uint64 row, bool copy)
{
	DpTreeItem *item = palloc0(sizeof(DpTreeItem));
	bool isnull;
	Datum doc = dp_result(row, 1, &isnull);
	Datum key;

	if (isnull)
		return NULL;
	item->doc = (struct varlena *) DatumGetPointer(doc);
	key = dp_result(row, 2, &isnull);
	item->key = isnull ? NULL : (struct varlena *) DatumGetPointer(key);
	if (copy)
	{
		DpValue k;

		item->doc = dp_document_to_varlena(DP_DOC_DATA(item->doc), DP_DOC_SIZE(item->doc));
		if (item->key != NULL)
		{
			k = dp_value_of_varlena(item->key);
			item->key = dp_value_to_varlena(&k);
		}
	}
	return dp_tree_id(tree, item->doc, &item->id) ? item : NULL;
}

DpTreeItem *
dp_tree_read_node(DpTree *tree, struct varlena *id)
{
	DpTreeItem *item = NULL;

	if (id != NULL)
	{
		SPIPlanPtr plan = dp_statement(tree->decl, DP_TREE_SELECT "{id}{own =}{$1 bson_value}");
		Datum arg = PointerGetDatum(id);

		if (dp_run(tree->decl, plan, &arg, NULL, DP_RUN_SNAPSHOT, 1, SPI_OK_SELECT) > 0)
			item = read_row(tree, 0, true);
		SPI_freetuptable(SPI_tuptable);
	}
	if (item == NULL)
	{
		StringInfoData text;

		initStringInfo(&text);
		if (id != NULL)
		{
			DpValue value = dp_value_of_varlena(id);

			dp_value_to_text(&text, &value, DP_TEXT_RELAXED, -1);
			if (text.len > 100)
			{
				text.len = pg_mbcliplen(text.data, text.len, 100);
				text.data[text.len] = '\0';
			}
		}
		ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
						errmsg("table \"%s\" has no node %s", dp_relation_name(tree->decl->target),
							   id == NULL ? "NULL" : text.data)));
	}
	return item;
}

List *
dp_tree_read_above(DpTree *tree, DpTreeItem *node)
{
	List *above = NIL;
	int n;
	DpValue *ancestors = dp_tree_ancestors(tree, node->doc, &n);
	DpTreeItem *item = node;
	DpTreeItem *mark = node;
	uint64 step = 0;
	uint64 next_mark = 8;
	DpValue parent;

	/* the document has all ancestors: one statement */
	if (ancestors != NULL)
	{
		SPIPlanPtr plan;
		Datum *ids = palloc(sizeof(Datum) * Max(n, 1));
		Datum arg;
		uint64 rows;
		DpTreeItem **found = palloc0(sizeof(DpTreeItem *) * Max(n, 1));

		if (n == 0)
			return NIL;
		plan = dp_statement(tree->decl, DP_TREE_SELECT "{id}{own =}ANY ({$1 bson_value[]})");
		for (int i = 0; i < n; i++)
			ids[i] = PointerGetDatum(dp_value_to_varlena(&ancestors[i]));
		arg = PointerGetDatum(construct_array(ids, n, dp_types()->bson_value, -1, false,
											  TYPALIGN_INT));
		rows = dp_run(tree->decl, plan, &arg, NULL, DP_RUN_SNAPSHOT, 0, SPI_OK_SELECT);
		for (uint64 row = 0; row < rows; row++)
		{
			item = read_row(tree, row, true);
			for (int i = 0; item != NULL && i < n; i++)
				if (found[i] == NULL && dp_value_compare(&item->id, &ancestors[i]) == 0)
				{
					found[i] = item;
					item->depth = i;
					break;
				}
		}
		SPI_freetuptable(SPI_tuptable);
		for (int i = n - 1; i >= 0; i--)
			if (found[i] != NULL)
				above = lappend(above, found[i]);
		return above;
	}

	while (dp_tree_parent(tree, item->doc, &parent))
	{
		item = dp_tree_read_node(tree, dp_value_to_varlena(&parent));
		above = lappend(above, item);
		if (dp_value_compare(&item->id, &mark->id) == 0)
			cycle(tree);
		if (++step == next_mark)
		{
			mark = item;
			next_mark *= 2;
		}
	}
	n = list_length(above);
	for (int i = 0; i < n; i++)
		((DpTreeItem *) list_nth(above, i))->depth = n - 1 - i;
	return above;
}

struct varlena *
dp_tree_node_path(DpTree *tree, DpTreeItem *node)
{
	struct varlena *path = dp_tree_treepath(tree, node->doc);
	DpTreepathBuilder b;
	List *above;

	if (path != NULL)
		return path;
	above = dp_tree_read_above(tree, node);
	dp_treepath_begin(&b);
	for (int i = list_length(above) - 1; i >= 0; i--)
		dp_treepath_append_value(&b, &((DpTreeItem *) list_nth(above, i))->id);
	dp_treepath_append_value(&b, &node->id);
	return dp_treepath_finish(&b);
}

/* Raises CHECK_VIOLATION: a node is above itself. */
static void
cycle(DpTree *tree)
{
	ereport(ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 errmsg("nodes of table \"%s\" form a cycle", dp_relation_name(tree->decl->target)),
			 errhint("Find it with pattern_check().")));
}

/* ---------------------------------------------------------------- below */

DpTreeRead *
dp_tree_read_below(DpTree *tree, DpTreeItem *node, int max_depth, bool keep_docs, DpTreeVisit visit,
				   void *arg)
{
	DpTreeRead *read = palloc0(sizeof(DpTreeRead));
	Level level = { 0 };
	Level next = { 0 };

	read->tree = tree;
	if (node != NULL)
	{
		read->top = node;
		read->top_path = dp_tree_node_path(tree, node);
		node->depth =
			dp_treepath_count(DP_TREEPATH_DATA(read->top_path), DP_TREEPATH_SIZE(read->top_path)) -
			1;
	}
	else
	{
		read->top = palloc0(sizeof(DpTreeItem));
		read->top->depth = -1;
	}
	level.items = &read->top;
	level.n = 1;
	for (int depth = 0; level.n > 0 && (max_depth < 0 || depth < max_depth); depth++)
	{
		next.items = NULL;
		next.n = next.max = 0;
		for (int i = 0; i < level.n; i += BATCH)
			read_children(read, &level, i, Min(level.n - i, BATCH), &next, keep_docs, visit, arg);
		level = next;
	}
	return read;
}

/* Reads the children of some items of a level. */
static void
read_children(DpTreeRead *read, Level *parents, int from, int n, Level *next, bool keep_docs,
			  DpTreeVisit visit, void *arg)
{
	DpTree *tree = read->tree;
	bool roots = read->top->id.data == NULL && parents->items[0] == read->top;
	SPIPlanPtr plan = dp_statement(
		tree->decl,
		roots ? DP_TREE_SELECT
			"({parent} IS NULL OR {parent}{own =}'null'::{own}bson_value) ORDER BY {order}"
			  : DP_TREE_SELECT "{parent}{own =}ANY ({$1 bson_value[]}) ORDER BY {order}");
	MemoryContext home = CurrentMemoryContext;
	MemoryContext rows = AllocSetContextCreate(home, "children of a tree", ALLOCSET_DEFAULT_SIZES);
	DpTreeItem **sorted = palloc(sizeof(DpTreeItem *) * n);
	Datum *ids = palloc(sizeof(Datum) * n);
	Datum value = (Datum) 0;
	Portal portal;

	memcpy(sorted, parents->items + from, sizeof(DpTreeItem *) * n);
	if (!roots)
	{
		qsort(sorted, n, sizeof(DpTreeItem *), compare_items);
		for (int i = 0; i < n; i++)
			ids[i] = PointerGetDatum(dp_value_to_varlena(&sorted[i]->id));
		value = PointerGetDatum(construct_array(ids, n, dp_types()->bson_value, -1, false,
												TYPALIGN_INT));
	}

	portal = SPI_cursor_open(NULL, plan, &value, NULL, true);
	for (;;)
	{
		SPI_cursor_fetch(portal, true, BATCH);
		if (SPI_processed == 0)
			break;
		for (uint64 row = 0; row < SPI_processed; row++)
		{
			DpTreeItem *item;
			DpTreeItem *parent = read->top;
			DpValue above;

			CHECK_FOR_INTERRUPTS();
			MemoryContextSwitchTo(keep_docs ? home : rows);
			item = read_row(tree, row, keep_docs);
			if (item == NULL || (!roots && !dp_tree_parent(tree, item->doc, &above)))
				continue;
			if (!roots)
			{
				DpTreeItem wanted = { .id = above };
				DpTreeItem *w = &wanted;
				DpTreeItem **found = bsearch(&w, sorted, n, sizeof(DpTreeItem *), compare_items);

				if (found == NULL)
					continue;
				parent = *found;
			}
			if (!roots && read->top->id.data != NULL &&
				dp_value_compare(&item->id, &read->top->id) == 0)
				cycle(tree);
			MemoryContextSwitchTo(home);
			if (!keep_docs)
			{
				DpTreeItem *kept = palloc(sizeof(DpTreeItem));
				uint8 *bytes = palloc(Max(item->id.len, 1));

				*kept = *item;
				memcpy(bytes, item->id.data, item->id.len);
				kept->id.data = bytes;
				item = kept;
			}
			item->depth = parent->depth + 1;
			item->parent = parent;
			item->number = read->nitems++;
			if (parent->last == NULL)
				parent->first = item;
			else
				parent->last->next = item;
			parent->last = item;
			parent->nchildren++;
			if (next->n == next->max)
			{
				next->max = Max(64, next->max * 2);
				next->items = next->items == NULL
								  ? palloc(sizeof(DpTreeItem *) * next->max)
								  : repalloc_huge(next->items, sizeof(DpTreeItem *) * next->max);
			}
			next->items[next->n++] = item;
			if (visit != NULL)
				visit(item, arg);
			if (!keep_docs)
			{
				item->doc = item->key = NULL;
				MemoryContextReset(rows);
			}
		}
		MemoryContextSwitchTo(home);
		SPI_freetuptable(SPI_tuptable);
	}
	MemoryContextSwitchTo(home);
	SPI_cursor_close(portal);
	MemoryContextDelete(rows);
	pfree(ids);
	pfree(sorted);
}

/* For qsort() and bsearch(): by ids. */
static int
compare_items(const void *a, const void *b)
{
	return dp_value_compare(&(*(DpTreeItem *const *) a)->id, &(*(DpTreeItem *const *) b)->id);
}

DpTreeItem *
dp_tree_item_after(DpTreeRead *read, DpTreeItem *item)
{
	if (item->first != NULL)
		return item->first;
	while (item != read->top && item->next == NULL)
		item = item->parent;
	return item == read->top ? NULL : item->next;
}

struct varlena *
dp_tree_item_path(DpTreeRead *read, DpTreeItem *item)
{
	DpTreepathBuilder b;
	int n = item->depth - read->top->depth;
	const DpValue **ids = palloc(sizeof(DpValue *) * Max(n, 1));

	dp_treepath_begin(&b);
	if (read->top_path != NULL)
		dp_treepath_append_ids(&b, DP_TREEPATH_DATA(read->top_path),
							   DP_TREEPATH_SIZE(read->top_path));
	for (int i = n - 1; i >= 0; i--, item = item->parent)
		ids[i] = &item->id;
	for (int i = 0; i < n; i++)
		dp_treepath_append_value(&b, ids[i]);
	pfree(ids);
	return dp_treepath_finish(&b);
}
