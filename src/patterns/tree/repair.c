/*
 * repair.c
 *		Corrects single nodes: for tables with rows older than the declaration, and
 *		for repairs; and finds errors in them.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "bson/compare.h"
#include "bson/text.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "patterns/tree/change.h"

static bool repair_node(DpDecl *decl, const DpKey *key);
static bool repair_attached(DpDecl *decl, const DpKey *key);
static bool repair_listed(DpTree *tree, DpWriter *w, struct varlena *doc, const DpValue *id);
static struct varlena *lock_row(DpTree *tree, DpWriter *w, const DpKey *key);

static const DpOption tree_options[] = {
	{ "node_id", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpTree, id), DP_TEXT_INTO(DpTree, id_text) },
	{ "parent", DP_OPTION_PATH, DP_INTO(DpTree, parent), DP_TEXT_INTO(DpTree, parent_text) },
	{ "ancestors", DP_OPTION_PATH, DP_ALTERABLE, DP_INTO(DpTree, ancestors),
	  DP_TEXT_INTO(DpTree, ancestors_text) },
	{ "ancestors_order", DP_OPTION_WORD, DP_ALTERABLE, DP_WORDS("root_first", "nearest_first"),
	  .with = "ancestors", .dflt = "root_first", DP_INTO(DpTree, nearest_first) },
	{ "path", DP_OPTION_PATH, DP_ALTERABLE, DP_INTO(DpTree, path),
	  DP_TEXT_INTO(DpTree, path_text) },
	{ "separator", DP_OPTION_TEXT, DP_ALTERABLE, DP_INT_FROM(1), .with = "path", .dflt = ".",
	  DP_INTO(DpTree, separator) },
	{ "path_self", DP_OPTION_BOOL, DP_ALTERABLE, .with = "path", DP_INTO(DpTree, path_self) },
	{ "path_lead", DP_OPTION_BOOL, DP_ALTERABLE, .with = "path", DP_INTO(DpTree, path_lead) },
	{ "children", DP_OPTION_PATH, DP_ALTERABLE, DP_INTO(DpTree, children),
	  DP_TEXT_INTO(DpTree, children_text) },
	{ "depth", DP_OPTION_PATH, DP_ALTERABLE, DP_INTO(DpTree, depth),
	  DP_TEXT_INTO(DpTree, depth_text) },
	{ "truth", DP_OPTION_WORD, DP_REQUIRED, DP_WORDS("parent", "ancestors", "path", "children"),
	  DP_INTO(DpTree, truth) },
	{ "on_delete", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE,
	  DP_WORDS("restrict", "cascade", "reparent"), DP_INTO(DpTree, on_delete) },
	{ "order_by", DP_OPTION_PATH, DP_ALTERABLE, DP_INTO(DpTree, order_by),
	  DP_TEXT_INTO(DpTree, order_text) },
	{ "search_index", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE },
	{ "id_is_key", DP_OPTION_BOOL, DP_INTO(DpTree, id_is_key) },
	{ NULL }
};

static const DpOption attached_options[] = {
	{ "parent", DP_OPTION_PATH, DP_REQUIRED | DP_USED, DP_INTO(DpTree, parent),
	  DP_TEXT_INTO(DpTree, parent_text) },
	{ "ancestors", DP_OPTION_PATH, DP_ALTERABLE | DP_KEPT | DP_GUARDED | DP_DERIVED,
	  DP_INTO(DpTree, ancestors), DP_TEXT_INTO(DpTree, ancestors_text) },
	{ "ancestors_order", DP_OPTION_WORD, DP_ALTERABLE, DP_WORDS("root_first", "nearest_first"),
	  .with = "ancestors", .dflt = "root_first", DP_INTO(DpTree, nearest_first) },
	{ "path", DP_OPTION_PATH, DP_ALTERABLE | DP_KEPT | DP_GUARDED | DP_DERIVED,
	  DP_INTO(DpTree, path), DP_TEXT_INTO(DpTree, path_text) },
	{ "separator", DP_OPTION_TEXT, DP_ALTERABLE, DP_INT_FROM(1), .with = "path", .dflt = ".",
	  DP_INTO(DpTree, separator) },
	{ "path_lead", DP_OPTION_BOOL, DP_ALTERABLE, .with = "path", DP_INTO(DpTree, path_lead) },
	{ "depth", DP_OPTION_PATH, DP_ALTERABLE | DP_KEPT | DP_GUARDED | DP_DERIVED,
	  DP_INTO(DpTree, depth), DP_TEXT_INTO(DpTree, depth_text) },
	{ "search_index", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE },
	{ "tree_name", DP_OPTION_TEXT },
	{ NULL }
};

DP_DEFINE_PATTERN(tree) = {
	.name = "tree",
	.whole_table = true,
	.adopts = "takes missing parents from what it finds",
	.adopt_hint =
		"If another form than the parent is the one written by hand, end the pattern and declare it with that one as the argument truth, as in truth => 'ancestors'.",
	.options = tree_options,
	.word = dp_tree_word,
	.repair_row = repair_node,
	.hierarchy = dp_tree_hierarchy
};
DP_DEFINE_PATTERN(tree_attach) = {
	.name = "tree_attach",
	.whole_table = true,
	.creator = "tree_attach",
	.adopts = "takes missing parents from what it finds",
	.adopt_hint =
		"If another form than the parent is the one written by hand, end the pattern and declare it without the others.",
	.options = attached_options,
	.word = dp_tree_word,
	.repair_row = repair_attached,
	.process_note = dp_tree_attach_process_note
};

/*
 * Corrects a node: its ancestors are found by the truth, not by its document. Raises
 * FOREIGN_KEY_VIOLATION if they do not lead to a root.
 */
static bool
repair_node(DpDecl *decl, const DpKey *key)
{
	DpTree *tree = dp_tree(decl);
	DpWriter *w;
	DpTreeReading reading;
	struct varlena *doc;
	DpValue *chain;
	DpValue *children = NULL;
	DpValue id;
	int n;
	bool written = false;

	dp_tree_lock_moves(tree);
	w = dp_tree_writer(tree);
	reading.tree = tree;
	reading.w = w;
	for (;;)
	{
		doc = lock_row(tree, w, key);
		if (doc == NULL)
			break;
		dp_tree_check_id(tree, doc, &id);
		dp_writer_refresh(w);
		if (tree->truth == DP_TREE_CHILDREN && repair_listed(tree, w, doc, &id))
			written = true;
		chain = dp_tree_chain(tree, doc, false, dp_tree_fetch, &reading, &n);
		if (chain == NULL)
			ereport(ERROR, (errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
							errmsg("ancestors of node %s of table \"%s\" do not lead to a root",
								   dp_value_to_message(&id), dp_relation_name(decl->target)),
							errdetail("A parent does not exist, or nodes form a cycle."),
							errhint("Find the node with pattern_check().")));
		n--; /* the node itself */
		if (tree->children != NULL && tree->truth != DP_TREE_CHILDREN)
			children = dp_tree_children(tree, w, &id);
		dp_tree_check_path(tree, &id, chain, n);
		doc = lock_row(tree, w, key);
		if (doc == NULL)
			break;
		switch (dp_writer_update(w, dp_tree_arrange(tree, doc, chain, n, children)))
		{
			case DP_WRITE_DONE:
				written = true;
				break;
			case DP_WRITE_SAME:
				break;
			case DP_WRITE_CHANGED:
				continue;
			case DP_WRITE_DEADLOCK:
				break; /* nothing is left to others */
		}
		break;
	}
	dp_writer_close(w);
	return written;
}

/* Truth children: sets the parent field of listed nodes. Returns whether any was written. */
static bool
repair_listed(DpTree *tree, DpWriter *w, struct varlena *doc, const DpValue *id)
{
	DpValue array;
	DpValue child;
	DpIter iter;
	bool written = false;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->children, &array) ||
		array.type != DP_TYPE_ARRAY)
		return false;
	dp_iter_init(&iter, array.data, array.len);
	while (dp_iter_next_value(&iter, &child))
	{
		DpValue parent;

		if (!dp_tree_lock_id(tree, w, &child, LockTupleNoKeyExclusive, NULL))
			continue;
		doc = dp_writer_document(w);
		if (doc == NULL ||
			(dp_tree_parent(tree, doc, &parent) && dp_value_compare(&parent, id) == 0))
			continue;
		if (dp_writer_update(w, dp_tree_set_parent(tree, doc, id)) == DP_WRITE_DONE)
			written = true;
	}
	if (written)
		dp_writer_refresh(w);
	return written;
}

/* Corrects a document attached to a node. */
static bool
repair_attached(DpDecl *decl, const DpKey *key)
{
	DpTree *attached = dp_tree(decl);
	DpTree *tree = dp_tree_of_attached(attached);
	DpWriter *nodes;
	DpWriter *w;
	DpTreeReading reading;
	struct varlena *doc;
	DpValue parent;
	bool written = false;

	dp_tree_lock_moves(tree);
	nodes = dp_tree_writer(tree);
	w = dp_tree_writer(attached);
	reading.tree = tree;
	reading.w = nodes;
	doc = lock_row(attached, w, key);
	if (doc != NULL && !dp_tree_parent(attached, doc, &parent))
		written = dp_writer_update(w, dp_tree_strip(attached, doc)) == DP_WRITE_DONE;
	else if (doc != NULL)
	{
		struct varlena *node = dp_tree_fetch(&reading, &parent);
		int n;
		DpValue *chain =
			node != NULL ? dp_tree_chain(tree, node, false, dp_tree_fetch, &reading, &n) : NULL;

		if (chain == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
					 errmsg("node %s does not exist in table \"%s\"", dp_value_to_message(&parent),
							dp_relation_name(tree->decl->target)),
					 errdetail("A document in table \"%s\" is attached to it.",
							   dp_relation_name(decl->target))));
		written =
			dp_writer_update(w, dp_tree_arrange(attached, doc, chain, n, NULL)) == DP_WRITE_DONE;
	}
	dp_writer_close(w);
	dp_writer_close(nodes);
	return written;
}

/* The document of the row, locked and current; a copy.  NULL if there is none. */
static struct varlena *
lock_row(DpTree *tree, DpWriter *w, const DpKey *key)
{
	struct varlena *doc;
	struct varlena *copy;

	if (tree->by_key == NULL)
		tree->by_key = dp_lookup_primary(tree->decl->target, tree->decl->context);
	if (!dp_writer_find(w, tree->by_key, key->values) ||
		dp_writer_lock(w, LockTupleNoKeyExclusive) == DP_LOCK_DELETED)
		return NULL;
	doc = dp_writer_document(w);
	if (doc == NULL)
		return NULL;
	copy = palloc(VARSIZE_ANY(doc));
	memcpy(copy, doc, VARSIZE_ANY(doc));
	return copy;
}

/*
 * _tree_node(rel, pattern, name, doc) -> (id, parent): read from a document, by the truth
 */
DP_FUNCTION(dp_tree_node);
Datum
dp_tree_node(PG_FUNCTION_ARGS)
{
	DpTree *tree = dp_tree_named(fcinfo);
	struct varlena *doc = PG_GETARG_VARLENA_PP(3);
	TupleDesc desc;
	Datum values[2] = { 0 };
	bool nulls[2] = { true, true };
	DpValue value;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (dp_tree_id(tree, doc, &value))
	{
		values[0] = PointerGetDatum(dp_value_to_varlena(&value));
		nulls[0] = false;
	}
	if (dp_tree_parent(tree, doc, &value))
	{
		values[1] = PointerGetDatum(dp_value_to_varlena(&value));
		nulls[1] = false;
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * _tree_faults(rel, pattern, name, doc, chain, children) -> (what, expected, found): forms of a
 * document that do not follow from the ids above it (an array, root first; NULL: not attached) and
 * those of its children
 */
DP_FUNCTION(dp_tree_faults);
Datum
dp_tree_faults(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpTree *tree;
	struct varlena *doc;
	struct varlena *right;
	DpValue children = { 0 };
	const DpPath *paths[5];
	const char *texts[5];
	int i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		return (Datum) 0;
	tree = dp_tree_named(fcinfo);
	doc = PG_GETARG_VARLENA_PP(3);
	if (!PG_ARGISNULL(5))
		children = dp_value_of_varlena(PG_GETARG_VARLENA_PP(5));
	if (PG_ARGISNULL(4))
		right = dp_tree_strip(tree, doc);
	else
	{
		DpValue array = dp_value_of_varlena(PG_GETARG_VARLENA_PP(4));
		uint32 n = dp_array_count(array.data, array.len);
		DpValue *chain = palloc(sizeof(DpValue) * (n + 1));
		DpIter iter;
		uint32 k = 0;

		dp_iter_init(&iter, array.data, array.len);
		while (k < n && dp_iter_next_value(&iter, &chain[k]))
			k++;
		right = dp_tree_arrange(tree, doc, chain, k, PG_ARGISNULL(5) ? NULL : &children);
	}
	if (right == doc)
		return (Datum) 0;

	paths[0] = tree->parent;
	texts[0] = tree->parent_text;
	paths[1] = tree->ancestors;
	texts[1] = tree->ancestors_text;
	paths[2] = tree->path;
	texts[2] = tree->path_text;
	paths[3] = tree->children;
	texts[3] = tree->children_text;
	paths[4] = tree->depth;
	texts[4] = tree->depth_text;
	for (i = 0; i < 5; i++)
	{
		DpValue was;
		DpValue is;
		bool had;
		bool has;
		Datum values[3];
		bool nulls[3] = { false };

		if (paths[i] == NULL)
			continue;
		had = dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), paths[i], &was);
		has = dp_path_find(DP_DOC_DATA(right), DP_DOC_SIZE(right), paths[i], &is);
		if (had == has && (!had || dp_value_identical(&was, &is)))
			continue;
		values[0] = CStringGetTextDatum(texts[i]);
		values[1] = CStringGetTextDatum(has ? dp_value_to_message(&is) : "absent");
		values[2] = CStringGetTextDatum(had ? dp_value_to_message(&was) : "absent");
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
