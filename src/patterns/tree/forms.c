/*
 * forms.c
 *		Computes the forms in a node's document from the ids above it.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "bson/access.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/reader.h"
#include "kit/adopt.h"
#include "patterns/tree/change.h"
#include "patterns/tree/tree.h"
#include "types/tree/treepath.h"

/* A document that is being put right: the one that was given until something differs. */
typedef struct Draft
{
	struct varlena *doc;
	bool own; /* a copy that may be changed */
} Draft;

static void draft_set(Draft *draft, const DpPath *path, const DpValue *value);
static void draft_unset(Draft *draft, const DpPath *path);
static void draft_like(Draft *draft, struct varlena *from, const DpPath *path);
static void arrange_parent(const DpTree *tree, Draft *draft, const DpValue *chain, int n);
static void arrange_ancestors(const DpTree *tree, Draft *draft, const DpValue *chain, int n);
static void arrange_path(const DpTree *tree, Draft *draft, const DpValue *chain, int n);
static void append_id(const DpTree *tree, StringInfo path, const DpValue *id);

/*
 * The document with all forms as they follow from the ids above the node
 * (chain, root first).  children is the array of its children, or NULL if it
 * is not to be touched (but a document without one gets an empty one).
 * Returns doc itself if nothing differs, or a new one.
 */
struct varlena *
dp_tree_arrange(const DpTree *tree, struct varlena *doc, const DpValue *chain, int n,
				const DpValue *children)
{
	Draft draft = { doc, false };
	DpValue value;

	if (tree->parent != NULL && tree->id != NULL)
		arrange_parent(tree, &draft, chain, n);
	if (tree->ancestors != NULL)
		arrange_ancestors(tree, &draft, chain, n);
	if (tree->path != NULL)
		arrange_path(tree, &draft, chain, n);
	if (tree->depth != NULL)
	{
		uint8 bytes[4];

		dp_put_int32(bytes, n);
		value.type = DP_TYPE_INT32;
		value.data = bytes;
		value.len = 4;
		draft_set(&draft, tree->depth, &value);
	}
	if (tree->children != NULL)
	{
		if (children != NULL)
			draft_set(&draft, tree->children, children);
		else if (!dp_path_find(DP_DOC_DATA(draft.doc), DP_DOC_SIZE(draft.doc), tree->children,
							   &value))
		{
			value.type = DP_TYPE_ARRAY;
			value.data = dp_empty_document;
			value.len = sizeof(dp_empty_document);
			draft_set(&draft, tree->children, &value);
		}
	}
	return draft.doc;
}

/*
 * Returns the document with the derived forms of another one, byte for byte; forms that are absent
 * there are removed. This includes a truth of which users only write a part: the ids after the
 * first one of ancestors or path. children: these too (if derived).
 */
struct varlena *
dp_tree_put_back(const DpTree *tree, struct varlena *from, struct varlena *doc, bool children)
{
	Draft draft = { doc, false };

	if (tree->parent != NULL && tree->truth != DP_TREE_PARENT)
		draft_like(&draft, from, tree->parent);
	if (tree->ancestors != NULL)
		draft_like(&draft, from, tree->ancestors);
	if (tree->path != NULL)
		draft_like(&draft, from, tree->path);
	if (tree->depth != NULL)
		draft_like(&draft, from, tree->depth);
	if (tree->children != NULL && tree->truth != DP_TREE_CHILDREN && children)
		draft_like(&draft, from, tree->children);
	return draft.doc;
}

/*
 * Returns a new document without derived forms, which are added at the end of the statement. Keeps
 * the truth as written.
 */
struct varlena *
dp_tree_strip(const DpTree *tree, struct varlena *doc)
{
	Draft draft = { doc, false };

	if (tree->parent != NULL && tree->truth != DP_TREE_PARENT)
		draft_unset(&draft, tree->parent);
	if (tree->ancestors != NULL && tree->truth != DP_TREE_ANCESTORS)
		draft_unset(&draft, tree->ancestors);
	if (tree->path != NULL && tree->truth != DP_TREE_PATH)
		draft_unset(&draft, tree->path);
	if (tree->depth != NULL)
		draft_unset(&draft, tree->depth);
	if (tree->children != NULL && tree->truth != DP_TREE_CHILDREN)
		draft_unset(&draft, tree->children);
	return draft.doc;
}

/*
 * Returns the document with another parent (NULL: none) if users write the parent. Otherwise it is
 * derived.
 */
struct varlena *
dp_tree_set_parent(const DpTree *tree, struct varlena *doc, const DpValue *parent)
{
	Draft draft = { doc, false };
	DpValue value;

	if (parent != NULL)
		draft_set(&draft, tree->parent, parent);
	else if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->parent, &value))
	{
		value.type = DP_TYPE_NULL;
		value.data = (const uint8 *) "";
		value.len = 0;
		draft_set(&draft, tree->parent, &value);
	}
	return draft.doc;
}

/*
 * The parent field.  The id that was written is left as it is when it equals
 * the parent's (5 and 5.0); a root has none, or null.
 */
static void
arrange_parent(const DpTree *tree, Draft *draft, const DpValue *chain, int n)
{
	DpValue value;
	bool there =
		dp_path_find(DP_DOC_DATA(draft->doc), DP_DOC_SIZE(draft->doc), tree->parent, &value);

	if (n > 0)
	{
		if (!there || dp_value_compare(&value, &chain[n - 1]) != 0)
			draft_set(draft, tree->parent, &chain[n - 1]);
	}
	else if (there && value.type != DP_TYPE_NULL && value.type != DP_TYPE_UNDEFINED)
	{
		value.type = DP_TYPE_NULL;
		value.data = (const uint8 *) "";
		value.len = 0;
		draft_set(draft, tree->parent, &value);
	}
}

/* The array of ancestors. */
static void
arrange_ancestors(const DpTree *tree, Draft *draft, const DpValue *chain, int n)
{
	DpBuilder b;
	DpValue value;
	int i;

	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	for (i = 0; i < n; i++)
		dp_builder_append_value(&b, NULL, 0, &chain[tree->nearest_first ? n - 1 - i : i]);
	dp_builder_end(&b);
	value = dp_builder_view(&b, DP_TYPE_ARRAY);
	draft_set(draft, tree->ancestors, &value);
	dp_builder_free(&b);
}

/* Returns the path. Raises CHECK_VIOLATION for ids that cannot be part of one. */
static void
arrange_path(const DpTree *tree, Draft *draft, const DpValue *chain, int n)
{
	StringInfoData path;
	DpValue value;
	DpValue own;
	uint8 len[4];
	int i;

	initStringInfo(&path);
	appendBinaryStringInfo(&path, (const char *) len, 4);
	for (i = 0; i < n; i++)
	{
		if (i > 0 || tree->path_lead)
			appendStringInfoString(&path, tree->separator);
		append_id(tree, &path, &chain[i]);
	}
	if (dp_tree_id(tree, draft->doc, &own))
	{
		int mark;

		if (n > 0 || tree->path_lead)
			appendStringInfoString(&path, tree->separator);
		mark = path.len;
		append_id(tree, &path, &own);
		/* refuse an id that cannot be part of the paths below */
		if (!tree->path_self)
		{
			path.len = mark - (n > 0 || tree->path_lead ? strlen(tree->separator) : 0);
			path.data[path.len] = '\0';
		}
	}
	dp_put_int32((uint8 *) path.data, path.len - 4 + 1);
	value.type = DP_TYPE_STRING;
	value.data = (const uint8 *) path.data;
	value.len = path.len + 1;
	draft_set(draft, tree->path, &value);
	pfree(path.data);
}

/* An id in a path. */
static void
append_id(const DpTree *tree, StringInfo path, const DpValue *id)
{
	if (tree->truth == DP_TREE_PATH && id->type != DP_TYPE_STRING)
		ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
						errmsg("the ID of a node of table \"%s\" must be a string",
							   dp_relation_name(tree->decl->target)),
						errdetail("If truth is a path, its IDs must be strings.")));
	if (id->type == DP_TYPE_STRING)
	{
		uint32 len = DP_STRING_LEN(id);

		if (len == 0 || memchr(DP_STRING_DATA(id), 0, len) != NULL ||
			strstr(DP_STRING_DATA(id), tree->separator) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 errmsg("the ID of a node of table \"%s\" cannot be part of a path",
							dp_relation_name(tree->decl->target)),
					 errdetail("An ID must not be empty and must not contain the separator \"%s\".",
							   tree->separator)));
		appendBinaryStringInfo(path, DP_STRING_DATA(id), len);
	}
	else
	{
		text *t = dp_value_as_text(id);

		if (t != NULL)
		{
			char *s = text_to_cstring(t);

			if (strstr(s, tree->separator) != NULL)
				ereport(
					ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 errmsg("the ID of a node of table \"%s\" cannot be part of a path",
							dp_relation_name(tree->decl->target)),
					 errdetail("An ID must not be empty and must not contain the separator \"%s\".",
							   tree->separator)));
			appendStringInfoString(path, s);
		}
	}
}

struct varlena *
dp_tree_guarded(const DpTree *tree, struct varlena *was, struct varlena *is, DpTreeRemoved *removed,
				int n)
{
	const DpPath *lost;
	DpValue old;
	DpValue new;
	List *ids = NIL;

	if (likely(!dp_holding(tree->decl)) || was == is)
		return is;
	while (n > 0)
		ids = lappend(ids, &removed[--n].id);
	if (tree->truth != DP_TREE_CHILDREN && dp_held(tree->decl, tree->children) &&
		dp_path_find(DP_DOC_DATA(was), DP_DOC_SIZE(was), tree->children, &old) &&
		dp_value_lost(&old,
					  dp_path_find(DP_DOC_DATA(is), DP_DOC_SIZE(is), tree->children, &new) ? &new
																						   : NULL,
					  ids))
		is = dp_document_set(DP_DOC_DATA(is), DP_DOC_SIZE(is), tree->children, &old);
	lost = dp_held_lost(tree->decl, was, is, ids);
	if (lost != NULL)
		dp_held_refuse(tree->decl, lost);
	return is;
}

/*
 * Raises errors for invalid nodes: NOT_NULL_VIOLATION without an id, CHECK_VIOLATION for an id
 * that is not a scalar, PROGRAM_LIMIT_EXCEEDED for one that is too deep for the index.
 */
void
dp_tree_check_id(const DpTree *tree, struct varlena *doc, DpValue *id)
{
	if (!dp_tree_id(tree, doc, id))
		ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
						errmsg("a node of table \"%s\" has no \"%s\"",
							   dp_relation_name(tree->decl->target), tree->id_text)));
	switch (id->type)
	{
		case DP_TYPE_DOCUMENT:
		case DP_TYPE_ARRAY:
		case DP_TYPE_REGEX:
		case DP_TYPE_DBPOINTER:
		case DP_TYPE_CODE:
		case DP_TYPE_CODEWSCOPE:
		case DP_TYPE_MINKEY:
		case DP_TYPE_MAXKEY:
			ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
							errmsg("the ID of a node of table \"%s\" cannot have type %s",
								   dp_relation_name(tree->decl->target), dp_type_name(id->type))));
		default:
			break;
	}
}

/* Raises PROGRAM_LIMIT_EXCEEDED if the index on ancestors cannot hold the path of the node. */
void
dp_tree_check_path(const DpTree *tree, const DpValue *id, const DpValue *chain, int n)
{
	DpTreepathBuilder b;
	Size size = 0;
	int i;

	if (tree->ancestors == NULL || tree->id == NULL)
		return;
	/* an id takes at most twice its bytes and 13 */
	for (i = 0; i < n; i++)
		size += chain[i].len * 2 + 13;
	if (size + id->len * 2 + 13 <= DP_TREE_MAX_PATH)
		return;
	dp_treepath_begin(&b);
	for (i = 0; i <= n; i++)
	{
		dp_treepath_append_value(&b, i < n ? &chain[i] : id);
		if (b.len > DP_TREE_MAX_PATH)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("ancestors of a node of table \"%s\" are too long for an index",
								   dp_relation_name(tree->decl->target)),
							errdetail("The ids from the root to the node take more than %d bytes.",
									  DP_TREE_MAX_PATH),
							errhint("A tree without an option for ancestors has no such limit.")));
	}
	pfree(b.buf);
}

/* Sets a value unless the field has it already, byte for byte. */
static void
draft_set(Draft *draft, const DpPath *path, const DpValue *value)
{
	DpValue old;

	if (dp_path_find(DP_DOC_DATA(draft->doc), DP_DOC_SIZE(draft->doc), path, &old) &&
		dp_value_identical(&old, value))
		return;
	if (draft->own)
		draft->doc = dp_document_set_own(draft->doc, path, value, true);
	else
		draft->doc = dp_document_set(DP_DOC_DATA(draft->doc), DP_DOC_SIZE(draft->doc), path, value);
	draft->own = true;
}

/* Removes the value at a path. */
static void
draft_unset(Draft *draft, const DpPath *path)
{
	struct varlena *without =
		dp_document_unset(DP_DOC_DATA(draft->doc), DP_DOC_SIZE(draft->doc), path);

	if (without != NULL)
	{
		draft->doc = without;
		draft->own = true;
	}
}

/* Sets or removes a field as in another document. */
static void
draft_like(Draft *draft, struct varlena *from, const DpPath *path)
{
	DpValue value;

	if (dp_path_find(DP_DOC_DATA(from), DP_DOC_SIZE(from), path, &value))
		draft_set(draft, path, &value);
	else
		draft_unset(draft, path);
}
