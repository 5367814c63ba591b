/*
 * tree.c
 *		Declarations of trees, and reading a node's position from its document.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "kit/options.h"
#include "kit/sql/text.h"
#include "patterns/tree/tree.h"
#include "types/tree/treepath.h"

static struct varlena *
treepath_of(struct varlena *doc, const DpPath *ancestors, bool nearest_first, const DpPath *id);
static bool path_parent(struct varlena *doc, const DpPath *path, const char *separator, bool self,
						DpValue *parent);
static DpPath *path_argument(FunctionCallInfo fcinfo, int n);
static void sql_id(StringInfo sql, const DpTree *tree, const char *alias);
static void sql_parent(StringInfo sql, const DpTree *tree, const char *alias);
static void sql_treepath(StringInfo sql, const DpTree *tree, const char *alias);
static void sql_order(StringInfo sql, const DpTree *tree, const char *alias);
static void sql_field(StringInfo sql, const DpTree *tree, const char *alias, const char *path);
static void sql_literal(StringInfo sql, const char *text);

/*
 * The pattern's view of a declaration, kept with it.
 */
DpTree *
dp_tree(DpDecl *decl)
{
	DpTree *tree = decl->state;
	MemoryContext old;

	if (tree != NULL)
		return tree;
	old = MemoryContextSwitchTo(decl->context);
	tree = palloc0(sizeof(DpTree));
	tree->decl = decl;
	tree->separator = ".";
	tree->path_lead = true;
	dp_options_read(decl, tree);
	tree->link_id = dp_decl_text(decl, "link_id");
	tree->remembers = dp_decl_text(decl, "removed_link_id") != NULL;
	tree->chained = tree->ancestors != NULL || tree->path != NULL || tree->depth != NULL;
	tree->mark = psprintf("%s %s", decl->pattern, decl->name);

	/* a user may create a trigger with any argument */
	if ((tree->truth == DP_TREE_PARENT && tree->parent == NULL) ||
		(tree->truth == DP_TREE_ANCESTORS && tree->ancestors == NULL) ||
		(tree->truth == DP_TREE_PATH && (tree->path == NULL || tree->parent == NULL)) ||
		(tree->truth == DP_TREE_CHILDREN && (tree->children == NULL || tree->parent == NULL)) ||
		(tree->id == NULL && tree->link_id == NULL))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("declaration \"%s\" of the %s pattern does not name its truth",
							   decl->name, decl->pattern)));
	if (tree->id_is_key && (decl->nkeys != 1 || decl->keys[0].type != dp_types()->bson_value))
		tree->id_is_key = false;
	if (tree->id_is_key)
		tree->key_column = decl->keys[0].name;
	if (tree->truth == DP_TREE_ANCESTORS)
		tree->parent_field =
			psprintf("%s.%s", tree->ancestors_text, tree->nearest_first ? "0" : "-1");
	else
		tree->parent_field = tree->parent_text;
	decl->state = tree;
	MemoryContextSwitchTo(old);
	return tree;
}

DpTree *
dp_tree_find(Oid relid, const char *name)
{
	return dp_tree(dp_decl_find(relid, "tree", name));
}

/* ---------------------------------------------------------------- as a hierarchy */

static inline const DpTree *
tree_of(const DpHierarchy *h)
{
	return (const DpTree *) ((const char *) h - offsetof(DpTree, hierarchy));
}

static bool
hierarchy_id(const DpHierarchy *h, struct varlena *doc, DpValue *id)
{
	return dp_tree_id(tree_of(h), doc, id);
}

static bool
hierarchy_parent(const DpHierarchy *h, struct varlena *doc, DpValue *parent)
{
	return dp_tree_parent(tree_of(h), doc, parent);
}

static DpValue *
hierarchy_ancestors(const DpHierarchy *h, struct varlena *doc, int *n)
{
	return dp_tree_ancestors(tree_of(h), doc, n);
}

const DpHierarchy *
dp_tree_hierarchy(Oid relid)
{
	DpTree *tree = dp_tree_find(relid, NULL);

	tree->hierarchy = (DpHierarchy){ .decl = tree->decl,
									 .keeps_ancestors = tree->ancestors != NULL,
									 .id = hierarchy_id,
									 .parent = hierarchy_parent,
									 .ancestors = hierarchy_ancestors };
	return &tree->hierarchy;
}

/*
 * Whether a value can be an id: null and undefined mean that there is none.
 */
static inline bool
is_there(const DpValue *value)
{
	return value->type != DP_TYPE_NULL && value->type != DP_TYPE_UNDEFINED;
}

bool
dp_tree_id(const DpTree *tree, struct varlena *doc, DpValue *id)
{
	return tree->id != NULL && dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->id, id) &&
		   is_there(id);
}

bool
dp_tree_parent(const DpTree *tree, struct varlena *doc, DpValue *parent)
{
	DpValue array;

	switch (tree->truth)
	{
		case DP_TREE_PARENT:
		case DP_TREE_CHILDREN:
			return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->parent, parent) &&
				   is_there(parent);
		case DP_TREE_ANCESTORS:
			if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->ancestors, &array) ||
				array.type != DP_TYPE_ARRAY)
				return false;
			return dp_array_element(array.data, array.len, tree->nearest_first ? 0 : -1, parent) &&
				   is_there(parent);
		case DP_TREE_PATH:
			return path_parent(doc, tree->path, tree->separator, tree->path_self, parent);
	}
	return false;
}

DpValue *
dp_tree_ancestors(const DpTree *tree, struct varlena *doc, int *n)
{
	DpValue array;
	DpValue *ids;
	DpIter iter;
	uint32 count;
	uint32 i = 0;

	*n = 0;
	if (tree->ancestors == NULL ||
		!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->ancestors, &array) ||
		array.type != DP_TYPE_ARRAY)
		return NULL;
	count = dp_array_count(array.data, array.len);
	ids = palloc(sizeof(DpValue) * (count + 1));
	dp_iter_init(&iter, array.data, array.len);
	while (i < count && dp_iter_next_value(&iter, &ids[tree->nearest_first ? count - 1 - i : i]))
		i++;
	*n = count;
	return ids;
}

struct varlena *
dp_tree_treepath(const DpTree *tree, struct varlena *doc)
{
	if (tree->ancestors == NULL || tree->id == NULL)
		return NULL;
	return treepath_of(doc, tree->ancestors, tree->nearest_first, tree->id);
}

/* Returns whether a value can be part of a treepath: others raise errors there. */
static bool
is_path_id(const DpValue *value)
{
	switch (value->type)
	{
		case DP_TYPE_DOCUMENT:
		case DP_TYPE_ARRAY:
		case DP_TYPE_REGEX:
		case DP_TYPE_DBPOINTER:
		case DP_TYPE_CODE:
		case DP_TYPE_CODEWSCOPE:
		case DP_TYPE_NULL:
		case DP_TYPE_UNDEFINED:
		case DP_TYPE_MAXKEY:
			return false;
		default:
			return true;
	}
}

/*
 * The treepath of a document, NULL if it has none.  Nothing that a document
 * may hold is an error, because an index calls this for any document: one
 * whose path would be too long has none, and triggers refuse such nodes.
 */
static struct varlena *
treepath_of(struct varlena *doc, const DpPath *ancestors, bool nearest_first, const DpPath *id)
{
	DpValue array;
	DpValue own;
	DpValue *ids;
	DpTreepathBuilder b;
	DpIter iter;
	uint32 count;
	uint32 i = 0;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), ancestors, &array) ||
		array.type != DP_TYPE_ARRAY ||
		!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), id, &own) || !is_path_id(&own))
		return NULL;
	count = dp_array_count(array.data, array.len);
	if (count > DP_TREE_MAX_PATH)
		return NULL;
	ids = palloc(sizeof(DpValue) * (count + 1));
	dp_iter_init(&iter, array.data, array.len);
	while (i < count && dp_iter_next_value(&iter, &ids[nearest_first ? count - 1 - i : i]))
		i++;
	ids[count] = own;
	dp_treepath_begin(&b);
	for (i = 0; i <= count; i++)
	{
		if (!is_path_id(&ids[i]))
			return NULL;
		dp_treepath_append_value(&b, &ids[i]);
		if (b.len > DP_TREE_MAX_PATH)
			return NULL;
	}
	pfree(ids);
	return dp_treepath_finish(&b);
}

/*
 * The parent that a path names: its last id, or the one before if the path
 * ends with the node itself.  A new string; false for a root.
 */
static bool
path_parent(struct varlena *doc, const DpPath *path, const char *separator, bool self,
			DpValue *parent)
{
	DpValue value;
	const char *s;
	const char *end;
	const char *last;
	uint32 seplen = strlen(separator);
	int skip = self ? 1 : 0;
	uint8 *data;
	uint32 len;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value) ||
		value.type != DP_TYPE_STRING)
		return false;
	s = DP_STRING_DATA(&value);
	end = s + DP_STRING_LEN(&value);
	for (;;)
	{
		/* the last id is what follows the last separator */
		for (last = end; last > s; last--)
		{
			if (last - s >= seplen && memcmp(last - seplen, separator, seplen) == 0)
				break;
		}
		if (skip-- == 0)
			break;
		if (last == s)
			return false;
		end = last - seplen;
	}
	len = end - last;
	if (len == 0)
		return false;
	data = palloc(len + 5);
	dp_put_int32(data, len + 1);
	memcpy(data + 4, last, len);
	data[len + 4] = 0;
	parent->type = DP_TYPE_STRING;
	parent->data = data;
	parent->len = len + 5;
	return true;
}

/*
 * tree_treepath(doc, ancestors, nearest_first, id) -> treepath
 *
 * What the index on ancestors holds.
 */
DP_FUNCTION(dp_tree_treepath_sql);
Datum
dp_tree_treepath_sql(PG_FUNCTION_ARGS)
{
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	struct varlena *path =
		treepath_of(doc, path_argument(fcinfo, 1), PG_GETARG_BOOL(2), path_argument(fcinfo, 3));

	if (path == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(path);
}

/* Cached in fn_extra: paths of constant arguments */
typedef struct PathArguments
{
	DpPath *paths[4];
} PathArguments;

/*
 * A path that a function was given.  In an index they are constants, and
 * parsed once.
 */
static DpPath *
path_argument(FunctionCallInfo fcinfo, int n)
{
	PathArguments *cache = fcinfo->flinfo->fn_extra;
	text *source = PG_GETARG_TEXT_PP(n);
	MemoryContext old;

	if (!get_fn_expr_arg_stable(fcinfo->flinfo, n))
		return dp_path_parse(VARDATA_ANY(source), VARSIZE_ANY_EXHDR(source));
	if (cache == NULL)
	{
		cache = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(PathArguments));
		fcinfo->flinfo->fn_extra = cache;
	}
	if (cache->paths[n] == NULL)
	{
		old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		cache->paths[n] = dp_path_parse(VARDATA_ANY(source), VARSIZE_ANY_EXHDR(source));
		MemoryContextSwitchTo(old);
	}
	return cache->paths[n];
}

bool
dp_tree_word(DpDecl *decl, const char *word, StringInfo sql)
{
	const DpTree *tree = dp_tree(decl);

	if (strcmp(word, "id") == 0)
		sql_id(sql, tree, "t");
	else if (strcmp(word, "parent") == 0)
		sql_parent(sql, tree, "t");
	else if (strcmp(word, "treepath") == 0)
		sql_treepath(sql, tree, "t");
	else if (strcmp(word, "order") == 0)
		sql_order(sql, tree, "t");
	else if (strcmp(word, "node") == 0)
	{
		dp_sql_own_schema(sql);
		appendStringInfoString(sql, decl->nkeys == 1 ? "to_bson(" : "bson_array(");
		for (int i = 0; i < decl->nkeys; i++)
			appendStringInfo(sql, "%st.%s", i > 0 ? ", " : "",
							 quote_identifier(decl->keys[i].name));
		appendStringInfoChar(sql, ')');
	}
	else
		return false;
	return true;
}

/*
 * Pieces of SQL, of a row that is known as alias (NULL: none).
 */
static void
sql_id(StringInfo sql, const DpTree *tree, const char *alias)
{
	if (tree->id_is_key)
	{
		if (alias != NULL)
			appendStringInfo(sql, "%s.", alias);
		appendStringInfoString(sql, quote_identifier(tree->key_column));
	}
	else
		sql_field(sql, tree, alias, tree->id_text);
}

static void
sql_parent(StringInfo sql, const DpTree *tree, const char *alias)
{
	sql_field(sql, tree, alias, tree->parent_field);
}

static void
sql_treepath(StringInfo sql, const DpTree *tree, const char *alias)
{
	appendStringInfoString(sql, "docpatterns.tree_treepath(");
	if (alias != NULL)
		appendStringInfo(sql, "%s.", alias);
	appendStringInfo(sql, "%s, ", quote_identifier(tree->decl->doc_column));
	sql_literal(sql, tree->ancestors_text);
	appendStringInfo(sql, ", %s, ", tree->nearest_first ? "true" : "false");
	sql_literal(sql, tree->id_text);
	appendStringInfoChar(sql, ')');
}

static void
sql_order(StringInfo sql, const DpTree *tree, const char *alias)
{
	if (tree->order_text != NULL)
	{
		sql_field(sql, tree, alias, tree->order_text);
		appendStringInfoString(sql, ", ");
	}
	sql_id(sql, tree, alias);
}

/* (alias.doc -> 'path') */
static void
sql_field(StringInfo sql, const DpTree *tree, const char *alias, const char *path)
{
	appendStringInfoChar(sql, '(');
	if (alias != NULL)
		appendStringInfo(sql, "%s.", alias);
	appendStringInfoString(sql, quote_identifier(tree->decl->doc_column));
	dp_sql_own_operator(sql, "->");
	sql_literal(sql, path);
	appendStringInfoChar(sql, ')');
}

/* A text as a constant of type text */
static void
sql_literal(StringInfo sql, const char *text)
{
	appendStringInfo(sql, "%s::pg_catalog.text", quote_literal_cstr(text));
}

/* A declaration of another pattern is not a tree. */
DpTree *
dp_tree_named(FunctionCallInfo fcinfo)
{
	char *pattern = text_to_cstring(PG_GETARG_TEXT_PP(1));

	if (strcmp(pattern, "tree") != 0 && strcmp(pattern, "tree_attach") != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("pattern \"%s\" has no tree", pattern)));
	return dp_tree(dp_decl_find(PG_GETARG_OID(0), pattern, text_to_cstring(PG_GETARG_TEXT_PP(2))));
}

/*
 * _tree_expressions(rel, pattern, name, alias) -> {id, parent, treepath, order}
 *
 * The expressions of the indexes as SQL text, for statements that are
 * generated in SQL; null for those that the declaration does not have.
 */
DP_FUNCTION(dp_tree_expressions);
Datum
dp_tree_expressions(PG_FUNCTION_ARGS)
{
	DpTree *tree;
	const char *alias = PG_ARGISNULL(3) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(3));
	StringInfoData sql;
	Datum values[5];
	bool nulls[5] = { false };
	ArrayType *array;
	int dims[1] = { 4 };
	int lbs[1] = { 1 };

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	tree = dp_tree_named(fcinfo);
	initStringInfo(&sql);
	if (tree->id != NULL)
		sql_id(&sql, tree, alias);
	values[0] = PointerGetDatum(cstring_to_text(sql.data));
	nulls[0] = tree->id == NULL;
	resetStringInfo(&sql);
	sql_parent(&sql, tree, alias);
	values[1] = PointerGetDatum(cstring_to_text(sql.data));
	resetStringInfo(&sql);
	nulls[2] = tree->ancestors == NULL || tree->id == NULL;
	if (!nulls[2])
		sql_treepath(&sql, tree, alias);
	values[2] = PointerGetDatum(cstring_to_text(sql.data));
	resetStringInfo(&sql);
	nulls[3] = tree->id == NULL;
	if (!nulls[3])
		sql_order(&sql, tree, alias);
	values[3] = PointerGetDatum(cstring_to_text(sql.data));
	array = construct_md_array(values, nulls, 1, dims, lbs, TEXTOID, -1, false, TYPALIGN_INT);
	PG_RETURN_ARRAYTYPE_P(array);
}
