/*
 * trigger.c
 *		The triggers of the tree pattern on the table of the nodes.
 *
 * BEFORE INSERT or UPDATE, for each row: resets derived forms that users changed,
 * and computes those of a node whose parent exists, so that a leaf costs one row
 * version.  Reads without locks, so the result is checked again.
 *
 * AFTER INSERT, UPDATE or DELETE, for each row: collects changes.  The trigger is
 * not called by updates that change neither the id nor the truth.
 *
 * AFTER each statement: corrects the tree (change.c).
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "bson/compare.h"
#include "bson/edit.h"
#include "kit/sql/run.h"
#include "kit/trigger.h"
#include "patterns/tree/change.h"

/* Rows of a statement whose parents are looked for before giving up, when most are not there yet */
#define PROBES 32

/* Source of nodes for a BEFORE trigger */
typedef struct Probing
{
	DpTree *tree;
	Relation rel;
} Probing;

static HeapTuple tree_before(DpTree *tree, TriggerData *trigdata);
static struct varlena *
tree_set_position(DpTree *tree, Relation rel, struct varlena *doc, const DpValue *id, bool is_new);
static void tree_after_row(DpTree *tree, TriggerData *trigdata);
static struct varlena *probe_fetch(void *arg, const DpValue *id);
static bool probing_pays(DpTree *tree, bool found, bool ask);
static void check_truth(const DpTree *tree, struct varlena *doc);
static int times_listed(const DpValue *array, const DpValue *value);
static void note_listed(DpTree *tree, DpTreeStatement *s, struct varlena *doc,
						struct varlena *other, const DpValue *id, bool removed);
static bool same_id(const DpValue *a, const DpValue *b);

DP_FUNCTION(dp_tree_trigger);
Datum
dp_tree_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, "tree",
									DP_BEFORE_ROW(DP_INSERT | DP_UPDATE) | DP_AFTER_ROW(DP_WRITE) |
										DP_AFTER_STATEMENT(DP_ANY));
	DpTree *tree;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	tree = dp_tree(decl);
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(tree_before(tree, trigdata));
	if (dp_marked(decl->target, tree->mark) == DP_MARK_INTERNAL)
		return PointerGetDatum(NULL);
	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		tree_after_row(tree, trigdata);
	else
	{
		DpTreeStatement *statement = dp_tree_statement_take(tree);

		if (statement != NULL)
		{
			dp_tree_change(tree, statement);
			dp_tree_statement_free(statement);
		}
	}
	return PointerGetDatum(NULL);
}

/*
 * BEFORE INSERT OR UPDATE of a row.
 */
static HeapTuple
tree_before(DpTree *tree, TriggerData *trigdata)
{
	bool is_update = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event);
	HeapTuple tuple = dp_trigger_row(trigdata);
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *given;
	struct varlena *doc;
	struct varlena *old = NULL;
	DpValue id;

	given = dp_tuple_document(tree->decl, tuple, desc);
	if (given == NULL)
		return tuple;
	if (dp_marked(tree->decl->target, tree->mark) == DP_MARK_INTERNAL)
	{
		/* triggers of users may have changed other fields of what we write, but not these */
		struct varlena *wanted = dp_marked_document(tree->decl->target, tree->mark);
		DpValue parent;

		if (wanted == NULL)
			return tuple;
		doc = dp_tree_put_back(tree, wanted, given, true);
		if (dp_tree_parent(tree, wanted, &parent) && tree->truth == DP_TREE_PARENT)
			doc = dp_tree_set_parent(tree, doc, &parent);
		return doc == given ? tuple : dp_tuple_with_document(tree->decl, tuple, desc, doc);
	}

	if (is_update)
	{
		if (dp_trigger_same_document(trigdata, tree->decl))
			return tuple;
		old = dp_tuple_document(tree->decl, trigdata->tg_trigtuple, desc);
	}
	check_truth(tree, given);
	dp_tree_check_id(tree, given, &id);
	doc = dp_tree_written(tree, trigdata->tg_relation, old, given);
	if (old != NULL)
	{
		DpValue old_id;
		DpValue old_parent;
		DpValue parent;
		bool has_id = dp_tree_id(tree, old, &old_id);
		bool had;
		bool has;

		/* with children as truth, the parent field is derived like others */
		if (tree->truth == DP_TREE_CHILDREN)
			doc = dp_tree_put_back(tree, old, doc, false);
		had = dp_tree_parent(tree, old, &old_parent);
		has = dp_tree_parent(tree, doc, &parent);
		if (has_id && dp_value_identical(&id, &old_id) && had == has &&
			(!has || same_id(&parent, &old_parent)))
		{
			doc = dp_tree_put_back(tree, old, doc, true);
			return doc == given ? tuple : dp_tuple_with_document(tree->decl, tuple, desc, doc);
		}
		if (tree->children != NULL && tree->truth != DP_TREE_CHILDREN)
		{
			DpValue children;

			if (dp_path_find(DP_DOC_DATA(old), DP_DOC_SIZE(old), tree->children, &children))
				doc =
					dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->children, &children);
		}
	}
	else if (tree->truth == DP_TREE_CHILDREN)
		doc = dp_tree_set_parent(tree, doc, NULL); /* not listed as child yet */
	else if (tree->children != NULL)
	{
		struct varlena *without =
			dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->children);

		if (without != NULL)
			doc = without;
	}
	doc = tree_set_position(tree, trigdata->tg_relation, doc, &id, old == NULL);
	if (old != NULL)
		doc = dp_tree_guarded(tree, given, doc, NULL, 0);
	return doc == given ? tuple : dp_tuple_with_document(tree->decl, tuple, desc, doc);
}

/*
 * Returns the document with the forms of its new position. If that is not known yet, a new
 * document without derived forms, or an old one unchanged.
 */
static struct varlena *
tree_set_position(DpTree *tree, Relation rel, struct varlena *doc, const DpValue *id, bool is_new)
{
	DpValue parent;
	struct varlena *above;
	DpValue *chain;
	Probing probing = { tree, rel };
	int n;

	if (!dp_tree_parent(tree, doc, &parent))
		return dp_tree_arrange(tree, doc, NULL, 0, NULL);
	if (same_id(&parent, id))
		ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
						errmsg("a node of table \"%s\" cannot be its own parent",
							   dp_relation_name(tree->decl->target))));
	if (!tree->chained && tree->truth == DP_TREE_PARENT)
		return dp_tree_arrange(tree, doc, &parent, 1, NULL);
	if (!probing_pays(tree, false, true))
		return is_new ? dp_tree_strip(tree, doc) : doc;
	above = dp_tree_probe(tree, rel, &parent);
	chain = above != NULL ? dp_tree_chain(tree, above, true, probe_fetch, &probing, &n) : NULL;
	(void) probing_pays(tree, chain != NULL, false);
	if (chain == NULL)
		return is_new ? dp_tree_strip(tree, doc) : doc;
	dp_tree_check_path(tree, id, chain, n);
	return dp_tree_arrange(tree, doc, chain, n, NULL);
}

/* DpTreeFetch without locks. */
static struct varlena *
probe_fetch(void *arg, const DpValue *id)
{
	Probing *probing = arg;

	return dp_tree_probe(probing->tree, probing->rel, id);
}

/*
 * Searching parents of rows inserted in any order would mostly fail: after some failures in a
 * statement it is done at its end.
 */
static bool
probing_pays(DpTree *tree, bool found, bool ask)
{
	static TimestampTz statement = 0;
	static CommandId command = 0;
	static const DpTree *last = NULL;
	static int tried = 0;
	static int succeeded = 0;

	if (last != tree || statement != GetCurrentStatementStartTimestamp() ||
		command != GetCurrentCommandId(false))
	{
		last = tree;
		statement = GetCurrentStatementStartTimestamp();
		command = GetCurrentCommandId(false);
		tried = succeeded = 0;
	}
	if (ask)
		return tried < PROBES || succeeded * 2 > tried;
	tried++;
	if (found)
		succeeded++;
	return true;
}

/* AFTER INSERT, UPDATE or DELETE of a row: collects its changes of the tree. */
static void
tree_after_row(DpTree *tree, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *before = NULL;
	struct varlena *after = NULL;
	HeapTuple now = NULL;
	DpTreeStatement *s;
	DpValue old_id;
	DpValue new_id;
	DpValue old_parent;
	DpValue new_parent;
	bool had_id = false;
	bool has_id = false;
	bool had = false;
	bool has = false;

	if (!TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		before = dp_tuple_document(tree->decl, trigdata->tg_trigtuple, desc);
	if (!TRIGGER_FIRED_BY_DELETE(trigdata->tg_event))
	{
		now = dp_trigger_row(trigdata);
		after = dp_tuple_document(tree->decl, now, desc);
	}
	if (before != NULL)
	{
		had_id = dp_tree_id(tree, before, &old_id);
		had = dp_tree_parent(tree, before, &old_parent);
	}
	if (after != NULL)
	{
		has_id = dp_tree_id(tree, after, &new_id);
		has = dp_tree_parent(tree, after, &new_parent);
	}
	s = dp_tree_statement(tree);
	if (has_id)
	{
		DpTreeSaved *saved = dp_tree_saved(s);

		saved->id = dp_tree_copy_value(s->state.context, &new_id);
		saved->has_parent = has;
		if (has)
			saved->parent = dp_tree_copy_value(s->state.context, &new_parent);
		saved->ref.relid = RelationGetRelid(trigdata->tg_relation);
		saved->ref.tid = now->t_self;
		saved->is_new = !had_id;
		saved->renamed = had_id && !dp_value_identical(&old_id, &new_id);
		saved->moved = had_id && (had != has || (has && !same_id(&old_parent, &new_parent)));
	}
	if (had_id)
	{
		DpTreeRemoved *removed = dp_tree_removed(s);
		DpValue array;

		removed->id = dp_tree_copy_value(s->state.context, &old_id);
		removed->has_parent = had;
		if (had)
			removed->parent = dp_tree_copy_value(s->state.context, &old_parent);
		removed->saved = has_id ? s->nsaved - 1 : -1;
		if (!has_id && tree->truth == DP_TREE_CHILDREN &&
			dp_path_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), tree->children, &array) &&
			array.type == DP_TYPE_ARRAY)
			removed->children = dp_tree_copy_value(s->state.context, &array);
		if (had && tree->remembers &&
			(!has_id || !same_id(&old_id, &new_id) || !has || !same_id(&old_parent, &new_parent)))
			dp_tree_remember_removed(tree, &old_parent, &old_id);
	}
	if (tree->truth == DP_TREE_CHILDREN)
	{
		if (has_id)
			note_listed(tree, s, after, before, &new_id, false);
		if (had_id && has_id)
			note_listed(tree, s, before, after, &old_id, true);
	}
}

/*
 * Truth children: collects the ids in the array of only one version of a document. Raises
 * CHECK_VIOLATION if an id of both is duplicate now; other duplicates are found later.
 */
static void
note_listed(DpTree *tree, DpTreeStatement *s, struct varlena *doc, struct varlena *other,
			const DpValue *id, bool removed)
{
	DpValue array;
	DpValue others;
	DpValue value;
	DpIter iter;
	bool compare;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->children, &array) ||
		array.type != DP_TYPE_ARRAY)
		return;
	compare = other != NULL &&
			  dp_path_find(DP_DOC_DATA(other), DP_DOC_SIZE(other), tree->children, &others) &&
			  others.type == DP_TYPE_ARRAY;
	if (compare && dp_value_identical(&array, &others))
		return;
	dp_iter_init(&iter, array.data, array.len);
	while (dp_iter_next_value(&iter, &value))
	{
		DpTreeListed *listed;

		if (compare && times_listed(&others, &value) > 0)
		{
			if (!removed && times_listed(&array, &value) > 1)
				dp_tree_listed_twice(tree, &value);
			continue;
		}
		listed = dp_tree_listed(s);
		listed->parent = dp_tree_copy_value(s->state.context, id);
		listed->child = dp_tree_copy_value(s->state.context, &value);
		listed->removed = removed;
	}
}

/* Returns how often an array contains a value. */
static int
times_listed(const DpValue *array, const DpValue *value)
{
	DpIter iter;
	DpValue element;
	int n = 0;

	dp_iter_init(&iter, array->data, array->len);
	while (dp_iter_next_value(&iter, &element))
		n += dp_value_compare(&element, value) == 0;
	return n;
}

/* Raises CHECK_VIOLATION for the form that users write if its type is wrong. */
static void
check_truth(const DpTree *tree, struct varlena *doc)
{
	const DpPath *path = tree->truth == DP_TREE_PARENT      ? tree->parent
						 : tree->truth == DP_TREE_ANCESTORS ? tree->ancestors
						 : tree->truth == DP_TREE_PATH      ? tree->path
															: tree->children;
	DpValue value;
	bool fits;
	DpIter iter;
	DpValue element;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value) ||
		value.type == DP_TYPE_NULL || value.type == DP_TYPE_UNDEFINED)
		return;
	switch (tree->truth)
	{
		case DP_TREE_PARENT:
			fits = !dp_type_is_container(value.type);
			break;
		case DP_TREE_PATH:
			fits = value.type == DP_TYPE_STRING;
			if (fits && tree->path_self)
			{
				/* a path ends with the node that it leads to */
				DpValue id;
				uint32 len = DP_STRING_LEN(&value);

				fits = len == 0 || (dp_tree_id(tree, doc, &id) && id.type == DP_TYPE_STRING &&
									DP_STRING_LEN(&id) <= len &&
									memcmp(DP_STRING_DATA(&value) + len - DP_STRING_LEN(&id),
										   DP_STRING_DATA(&id), DP_STRING_LEN(&id)) == 0);
			}
			break;
		default:
			fits = value.type == DP_TYPE_ARRAY;
			if (fits)
			{
				dp_iter_init(&iter, value.data, value.len);
				while (fits && dp_iter_next_value(&iter, &element))
					fits = !dp_type_is_container(element.type) && element.type != DP_TYPE_NULL;
			}
			break;
	}
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("invalid position of a node of table \"%s\"",
						dp_relation_name(tree->decl->target)),
				 tree->truth == DP_TREE_PARENT
					 ? errdetail("\"%s\" must be the ID of a node.", tree->parent_text)
				 : tree->truth == DP_TREE_PATH
					 ? (tree->path_self
							? errdetail("\"%s\" must be a string that ends with the node's ID.",
										tree->path_text)
							: errdetail("\"%s\" must be a string.", tree->path_text))
					 : errdetail("\"%s\" must be an array of IDs.", tree->truth == DP_TREE_ANCESTORS
																		? tree->ancestors_text
																		: tree->children_text)));
}

/* Whether two ids name the same node. */
static bool
same_id(const DpValue *a, const DpValue *b)
{
	return dp_value_compare(a, b) == 0;
}
