/*
 * written.c
 *		Handles what users write to derived forms of a tree.
 *
 * trigger.c and attach.c reset an old copy of them, which is consistent: all its
 * forms lead to the parent in its truth, as when it was read.  Any other value is
 * new.  If the truth has no parent, it gets the one of the form; else the write is
 * refused.
 */
#include "postgres.h"

#include "access/table.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/rel.h"

#include "bson/access.h"
#include "bson/builder.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/text.h"
#include "kit/derive/queue.h"
#include "patterns/tree/change.h"

static struct varlena *set_truth(const DpTree *tree, struct varlena *doc, const DpValue *parent);
static bool
form_changed(const DpPath *path, struct varlena *old, struct varlena *doc, DpValue *value);
static bool
node_exists(DpTree *tree, Relation rel, struct varlena *doc, DpTreeTruth form, const DpValue *id);
static bool same_id(const DpValue *a, const DpValue *b);
static bool has_all(const DpValue *array, const DpValue *others);
static void check_children(DpTree *tree, struct varlena *old, const DpValue *array);
static void check_ancestors(DpTree *tree, Relation rel, struct varlena *old, const DpValue *array);
static const char *truth_text(const DpTree *tree);
static void
refuse(const DpTree *tree, const char *form, const char *detail) pg_attribute_noreturn();

/*
 * Returns the document to continue with: doc itself, or one whose truth has a parent. rel is the
 * table of the nodes, NULL for documents attached to them; old is NULL for an inserted row. Raises
 * OBJECT_NOT_IN_PREREQUISITE_STATE.
 */
struct varlena *
dp_tree_written(DpTree *tree, Relation rel, struct varlena *old, struct varlena *doc)
{
	const DpPath *paths[] = { tree->parent, tree->ancestors, tree->path };
	const char *names[] = { tree->parent_text, tree->ancestors_text, tree->path_text };
	DpValue parent;
	DpValue old_parent;
	bool has;
	bool had = old != NULL && dp_tree_parent(tree, old, &old_parent);
	DpTreeTruth form;

	/* with children as truth, a node is listed after it was inserted */
	if (tree->truth == DP_TREE_CHILDREN)
		return doc;
	has = dp_tree_parent(tree, doc, &parent);
	for (form = DP_TREE_PARENT; form <= DP_TREE_PATH; form++)
	{
		DpTree view = *tree;
		DpValue value;
		DpValue implied;
		bool fits;

		if (form == tree->truth || paths[form] == NULL ||
			!form_changed(paths[form], old, doc, &value))
			continue;
		fits = form == DP_TREE_PARENT
				   ? !dp_type_is_container(value.type)
				   : value.type == (form == DP_TREE_PATH ? DP_TYPE_STRING : DP_TYPE_ARRAY);
		if (!fits)
			refuse(tree, names[form],
				   psprintf("A value of type %s is not valid.", dp_type_name(value.type)));
		view.truth = form;
		if (!dp_tree_parent(&view, doc, &implied))
			continue; /* a root, or no position */
		if (!has)
		{
			doc = set_truth(tree, doc, &implied);
			has = dp_tree_parent(tree, doc, &parent);
			continue;
		}
		if (!same_id(&implied, &parent))
		{
			/*
			 * the truth was written, and the form is an old copy, or that of another node from
			 * which the new one was copied
			 */
			if (old != NULL ? !had || !same_id(&old_parent, &parent)
							: node_exists(tree, rel, doc, form, &implied))
				continue;
			refuse(tree, names[form],
				   psprintf("It leads to %s, and \"%s\" to %s.", dp_value_to_message(&implied),
							truth_text(tree), dp_value_to_message(&parent)));
		}
		if (form == DP_TREE_ANCESTORS && old != NULL)
			check_ancestors(tree, rel, old, &value);
	}
	/* a node may be inserted before its children, with their ids */
	if (tree->children != NULL && old != NULL)
	{
		DpValue value;

		if (form_changed(tree->children, old, doc, &value))
		{
			if (value.type != DP_TYPE_ARRAY)
				refuse(tree, tree->children_text,
					   psprintf("A value of type %s is not valid.", dp_type_name(value.type)));
			check_children(tree, old, &value);
		}
	}
	return doc;
}

/* Returns the document with the parent in its truth. */
static struct varlena *
set_truth(const DpTree *tree, struct varlena *doc, const DpValue *parent)
{
	DpBuilder b;
	DpValue value = *parent;
	DpValue id;
	StringInfoData path;

	switch (tree->truth)
	{
		case DP_TREE_ANCESTORS:
			dp_builder_init_value(&b, 0);
			dp_builder_begin_array(&b);
			dp_builder_append_value(&b, NULL, 0, parent);
			dp_builder_end(&b);
			value = dp_builder_view(&b, DP_TYPE_ARRAY);
			return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->ancestors, &value);
		case DP_TREE_PATH:
			if (parent->type != DP_TYPE_STRING)
				return doc;
			initStringInfo(&path);
			appendBinaryStringInfo(&path, "\0\0\0", 4);
			appendStringInfo(&path, "%s%s", tree->path_lead ? tree->separator : "",
							 DP_STRING_DATA(parent));
			if (tree->path_self && dp_tree_id(tree, doc, &id) && id.type == DP_TYPE_STRING)
				appendStringInfo(&path, "%s%s", tree->separator, DP_STRING_DATA(&id));
			dp_put_int32((uint8 *) path.data, path.len - 4 + 1);
			value.data = (const uint8 *) path.data;
			value.len = path.len + 1;
			return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->path, &value);
		default:
			return dp_tree_set_parent(tree, doc, parent);
	}
}

/* Whether a form is there, and other than in the old document. */
static bool
form_changed(const DpPath *path, struct varlena *old, struct varlena *doc, DpValue *value)
{
	DpValue was;

	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, value) &&
		   value->type != DP_TYPE_NULL && value->type != DP_TYPE_UNDEFINED &&
		   !(old != NULL && dp_path_find(DP_DOC_DATA(old), DP_DOC_SIZE(old), path, &was) &&
			 dp_value_identical(value, &was));
}

/*
 * Whether there is a node that a form names.  (Ids in a path are text: where they are no strings it
 * is not looked for.)
 */
static bool
node_exists(DpTree *tree, Relation rel, struct varlena *doc, DpTreeTruth form, const DpValue *id)
{
	DpTree *nodes = rel != NULL ? tree : dp_tree_of_attached(tree);
	Relation table = rel != NULL ? rel : table_open(nodes->decl->target, AccessShareLock);
	DpValue own;
	bool result =
		form == DP_TREE_PATH && (!dp_tree_parent(tree, doc, &own) || own.type != DP_TYPE_STRING);

	if (!result)
		result = dp_tree_probe(nodes, table, id) != NULL;
	if (rel == NULL)
		table_close(table, NoLock);
	return result;
}

/* Returns whether two ids are those of the same node; one may have been read from a path. */
static bool
same_id(const DpValue *a, const DpValue *b)
{
	text *left;
	text *right;

	if (dp_value_compare(a, b) == 0)
		return true;
	if ((a->type == DP_TYPE_STRING) == (b->type == DP_TYPE_STRING))
		return false;
	left = dp_value_as_text(a);
	right = dp_value_as_text(b);
	return left != NULL && right != NULL &&
		   strcmp(text_to_cstring(left), text_to_cstring(right)) == 0;
}

/* An entry of the list of former children */
static struct varlena *
removed_entry(const DpValue *child)
{
	DpBuilder b;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, "child", 5, child);
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

void
dp_tree_remember_removed(DpTree *tree, const DpValue *parent, const DpValue *child)
{
	DpQueue *queue = dp_queue_open(tree->decl, "removed_link_id");

	dp_queue_add(queue, parent, removed_entry(child));
	dp_queue_close(queue);
}

/* An array of children: refuses those that never were. */
static void
check_children(DpTree *tree, struct varlena *old, const DpValue *array)
{
	DpValue was;
	DpValue value;
	DpValue id;
	DpIter iter;
	DpQueue *queue = NULL;
	bool had = dp_path_find(DP_DOC_DATA(old), DP_DOC_SIZE(old), tree->children, &was) &&
			   was.type == DP_TYPE_ARRAY;

	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &value))
	{
		bool known = had && dp_array_holds(&was, &value);

		CHECK_FOR_INTERRUPTS();
		if (!known && tree->remembers && dp_tree_id(tree, old, &id))
		{
			if (queue == NULL)
				queue = dp_queue_open(tree->decl, "removed_link_id");
			known = dp_queue_has(queue, &id, removed_entry(&value));
		}
		if (!known)
			refuse(tree, tree->children_text,
				   psprintf("Node %s is not below it.", dp_value_to_message(&value)));
	}
	if (queue != NULL)
		dp_queue_close(queue);
}

/*
 * An array of ancestors to which some were added, and nothing else: no old copy if one of them is
 * no node.
 */
static void
check_ancestors(DpTree *tree, Relation rel, struct varlena *old, const DpValue *array)
{
	DpValue was;
	DpValue value;
	DpIter iter;
	bool had = dp_path_find(DP_DOC_DATA(old), DP_DOC_SIZE(old), tree->ancestors, &was) &&
			   was.type == DP_TYPE_ARRAY;

	if (had && !has_all(array, &was))
		return;
	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &value))
	{
		CHECK_FOR_INTERRUPTS();
		if (!(had && dp_array_holds(&was, &value)) &&
			!node_exists(tree, rel, old, DP_TREE_ANCESTORS, &value))
			refuse(tree, tree->ancestors_text,
				   psprintf("Node %s does not exist.", dp_value_to_message(&value)));
	}
}

/* Whether an array has all elements of another one. */
static bool
has_all(const DpValue *array, const DpValue *others)
{
	DpIter iter;
	DpValue element;

	dp_iter_init_value(&iter, others);
	while (dp_iter_next_value(&iter, &element))
	{
		CHECK_FOR_INTERRUPTS();
		if (!dp_array_holds(array, &element))
			return false;
	}
	return true;
}

static const char *
truth_text(const DpTree *tree)
{
	return tree->truth == DP_TREE_PARENT      ? tree->parent_text
		   : tree->truth == DP_TREE_ANCESTORS ? tree->ancestors_text
											  : tree->path_text;
}

static void
refuse(const DpTree *tree, const char *form, const char *detail)
{
	const char *table = dp_relation_name(tree->decl->target);

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("field \"%s\" of table \"%s\" is derived from \"%s\"", form, table,
					truth_text(tree)),
			 errdetail_internal("%s", detail),
			 tree->children_text != NULL && strcmp(form, tree->children_text) == 0
				 ? errhint("Write \"%s\" of the child in table \"%s\".", truth_text(tree), table)
				 : errhint("Write \"%s\" of table \"%s\".", truth_text(tree), table)));
}
