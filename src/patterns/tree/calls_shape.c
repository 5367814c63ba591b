/*
 * calls_shape.c
 *		The calls for trees that convert a subtree: to one nested document and back,
 *		and to text.
 */
#include "postgres.h"

#include "kit/shard.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/edit.h"
#include "bson/text.h"
#include "patterns/tree/calls.h"
#include "patterns/tree/calls_edit.h"

/* The lines of a picture, by the numbers of items */
typedef struct Labels
{
	DpTree *tree;
	DpPath *path; /* NULL: the id */
	char **labels;
	int64 max;
} Labels;

static void nest(DpBuilder *b, DpTree *tree, DpTreeItem *item, const char *field);
static bool is_form(DpTree *tree, const DpElement *element, const char *field);
static void unnest(ReturnSetInfo *rsinfo, DpTree *tree, const DpValue *nested,
				   const DpValue *parent, const DpPath *field);
static char *field_argument(FunctionCallInfo fcinfo, int argno, DpTree *tree);
static char *label_of(Labels *labels, struct varlena *doc, const DpValue *id);
static void take_label(DpTreeItem *item, void *arg);
static void put_line(ReturnSetInfo *rsinfo, const char *line);

/*
 * tree_nest(rel regclass, key anycompatible, max_depth int, field text, name text) -> bson
 */
DP_ROUTED_FUNCTION(dp_tree_nest_call, DP_ROUTE_WHOLE, 0)
{
	MemoryContext home = CurrentMemoryContext;
	int max_depth = dp_tree_depth_argument(fcinfo, 2);
	DpTree *tree = dp_tree_begin(fcinfo, 4);
	char *field = field_argument(fcinfo, 3, tree);
	DpTreeItem *node = dp_tree_read_node(tree, dp_tree_argument(fcinfo, 1));
	DpTreeRead *read = dp_tree_read_below(tree, node, max_depth, true, NULL, NULL);
	DpBuilder b;

	MemoryContextSwitchTo(home);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	nest(&b, tree, read->top, field);
	dp_builder_end(&b);
	SPI_finish();
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/*
 * tree_unnest(rel regclass, nested bson, parent "any", field text, name text)
 * -> setof bson: depth first
 */
DP_ROUTED_FUNCTION(dp_tree_unnest_call, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpTree *tree;
	char *field;
	struct varlena *argument;
	DpValue nested;
	DpValue parent;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	tree = dp_tree_begin(fcinfo, 4);
	field = field_argument(fcinfo, 3, tree);
	argument = dp_tree_argument(fcinfo, 2);
	if (argument != NULL && tree->truth == DP_TREE_CHILDREN)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot attach nested documents to a parent if truth is \"children\""),
				 errhint("Insert them as a root, then move it with tree_move().")));
	if (argument != NULL)
		parent = dp_value_of_varlena(argument);
	if (!PG_ARGISNULL(1))
	{
		nested = dp_value_of_document(DP_GETARG_VARLENA(1));
		unnest(rsinfo, tree, &nested, argument != NULL ? &parent : NULL,
			   dp_path_of_name(field, strlen(field)));
	}
	SPI_finish();
	return (Datum) 0;
}

/*
 * tree_render(rel regclass, key anycompatible, max_depth int, label text, name text)
 * -> setof text
 */
DP_ROUTED_FUNCTION(dp_tree_render_call, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Labels labels = { 0 };
	int max_depth;
	struct varlena *id;
	DpTreeItem *node = NULL;
	DpTreeRead *read;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	max_depth = dp_tree_depth_argument(fcinfo, 2);
	if (!PG_ARGISNULL(3))
	{
		text *path = PG_GETARG_TEXT_PP(3);

		labels.path = dp_path_parse(VARDATA_ANY(path), VARSIZE_ANY_EXHDR(path));
	}
	labels.tree = dp_tree_begin(fcinfo, 4);
	id = dp_tree_argument(fcinfo, 1);
	if (id != NULL)
		node = dp_tree_read_node(labels.tree, id);
	/* the roots are a level, too */
	else if (max_depth >= 0 && max_depth < PG_INT32_MAX)
		max_depth++;
	read = dp_tree_read_below(labels.tree, node, max_depth, false, take_label, &labels);
	if (node != NULL)
		put_line(rsinfo, label_of(&labels, node->doc, &node->id));
	for (DpTreeItem *item = dp_tree_item_after(read, read->top); item != NULL;
		 item = dp_tree_item_after(read, item))
	{
		StringInfoData line;
		int depth = item->depth - read->top->depth - (node == NULL ? 1 : 0);
		bool *more = palloc(sizeof(bool) * (depth + 1));
		DpTreeItem *up = item;

		CHECK_FOR_INTERRUPTS();
		for (int i = depth; i > 0; i--, up = up->parent)
			more[i] = up->next != NULL;
		initStringInfo(&line);
		for (int i = 1; i < depth; i++)
			appendStringInfoString(&line, more[i] ? "\xE2\x94\x82   " : "    ");
		if (depth > 0)
			appendStringInfoString(&line, more[depth] ? "\xE2\x94\x9C\xE2\x94\x80\xE2\x94\x80 "
													  : "\xE2\x94\x94\xE2\x94\x80\xE2\x94\x80 ");
		appendStringInfoString(&line, labels.labels[item->number]);
		put_line(rsinfo, line.data);
		pfree(line.data);
		pfree(more);
	}
	SPI_finish();
	return (Datum) 0;
}

/* ---------------------------------------------------------------- nested documents */

/*
 * The name of the field with nested children: the argument, or that of the
 * array of children if it is kept, or "children".
 */
static char *
field_argument(FunctionCallInfo fcinfo, int argno, DpTree *tree)
{
	if (!PG_ARGISNULL(argno))
		return text_to_cstring(PG_GETARG_TEXT_PP(argno));
	if (tree->children != NULL && tree->children->nsteps == 1)
		return pstrdup(tree->children->steps[0].name);
	return pstrdup("children");
}

/*
 * Appends the fields of a node and its nested children to the open document. Raises
 * PROGRAM_LIMIT_EXCEEDED beyond the depth limit of documents.
 */
static void
nest(DpBuilder *b, DpTree *tree, DpTreeItem *item, const char *field)
{
	DpIter iter;
	DpElement element;

	check_stack_depth();
	/* a document and an array for each level */
	if (b->depth + (item->first != NULL ? 2 : 0) > DP_MAX_DEPTH)
		ereport(
			ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("the subtree is too deep for one document"),
			 errdetail(
				 "Documents may be nested %d levels deep, and each level of the tree takes two.",
				 DP_MAX_DEPTH),
			 errhint("Limit the depth with max_depth.")));
	dp_iter_init_varlena(&iter, item->doc);
	while (dp_iter_next(&iter, &element))
		if (!is_form(tree, &element, field))
			dp_builder_append_nested(b, element.name, element.namelen, &element.value);
	if (item->first == NULL)
		return;
	dp_builder_begin_array_field(b, field, strlen(field));
	for (DpTreeItem *child = item->first; child != NULL; child = child->next)
	{
		dp_builder_begin_document_field(b, NULL, 0);
		nest(b, tree, child, field);
		dp_builder_end(b);
	}
	dp_builder_end(b);
}

/* Whether a field says what the nesting says. */
static bool
is_form(DpTree *tree, const DpElement *element, const char *field)
{
	const DpPath *forms[] = { tree->parent, tree->ancestors, tree->path, tree->children,
							  tree->depth };

	if (strcmp(element->name, field) == 0)
		return true;
	for (int i = 0; i < lengthof(forms); i++)
		if (forms[i] != NULL && forms[i]->nsteps == 1 &&
			strcmp(forms[i]->steps[0].name, element->name) == 0)
			return true;
	return false;
}

/*
 * Returns the document without its nested children, below its parent, then the same for each
 * child.
 */
static void
unnest(ReturnSetInfo *rsinfo, DpTree *tree, const DpValue *nested, const DpValue *parent,
	   const DpPath *field)
{
	struct varlena *doc = dp_document_unset(nested->data, nested->len, field);
	DpValue children;
	DpValue id;
	Datum value;
	bool isnull = false;

	check_stack_depth();
	if (doc == NULL)
		doc = dp_document_to_varlena(nested->data, nested->len);
	if (!dp_tree_id(tree, doc, &id))
		ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
						errmsg("a nested document has no \"%s\"", tree->id_text)));
	id = dp_value_of_varlena(dp_value_to_varlena(&id));
	doc = dp_tree_move_under(tree, doc, parent);
	if (!dp_path_find(nested->data, nested->len, field, &children) || children.type == DP_TYPE_NULL)
		children.len = 0;
	else if (children.type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("field \"%s\" of a nested document must be an array",
							   field->steps[0].name)));
	if (tree->truth == DP_TREE_CHILDREN)
	{
		DpBuilder b;
		DpIter iter;
		DpValue child;
		DpValue ids;

		dp_builder_init_value(&b, 0);
		dp_builder_begin_array(&b);
		if (children.len > 0)
		{
			dp_iter_init_value(&iter, &children);
			while (dp_iter_next_value(&iter, &child))
			{
				DpValue child_id;

				if (child.type == DP_TYPE_DOCUMENT &&
					dp_path_find(child.data, child.len, tree->id, &child_id))
					dp_builder_append_value(&b, NULL, 0, &child_id);
			}
		}
		dp_builder_end(&b);
		ids = dp_value_of_varlena(dp_builder_finish_value(&b, DP_TYPE_ARRAY));
		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->children, &ids);
	}
	value = PointerGetDatum(doc);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &isnull);
	if (children.len > 0)
	{
		DpIter iter;
		DpValue child;

		dp_iter_init_value(&iter, &children);
		while (dp_iter_next_value(&iter, &child))
		{
			if (child.type != DP_TYPE_DOCUMENT)
				ereport(
					ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("nested documents contain a value of type \"%s\" instead of a document",
							dp_type_name(child.type))));
			unnest(rsinfo, tree, &child, &id, field);
		}
	}
}

/* ---------------------------------------------------------------- pictures */

/* Returns the label of a node in the text: one line. */
static char *
label_of(Labels *labels, struct varlena *doc, const DpValue *id)
{
	StringInfoData text;
	DpValue value = *id;

	initStringInfo(&text);
	if (labels->path != NULL &&
		!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), labels->path, &value))
		return text.data;
	if (value.type == DP_TYPE_STRING)
		appendBinaryStringInfo(&text, DP_STRING_DATA(&value), DP_STRING_LEN(&value));
	else if (value.type == DP_TYPE_OBJECTID)
		for (int i = 0; i < DP_OBJECTID_SIZE; i++)
			appendStringInfo(&text, "%02x", value.data[i]);
	else
		dp_value_to_text(&text, &value, DP_TEXT_RELAXED, -1);
	for (char *p = text.data; *p != '\0'; p++)
		if ((unsigned char) *p < ' ')
			*p = ' ';
	return text.data;
}

/* DpTreeVisit: keeps the label. */
static void
take_label(DpTreeItem *item, void *arg)
{
	Labels *labels = arg;

	if (item->number >= labels->max)
	{
		labels->max = Max(64, labels->max * 2);
		labels->labels = labels->labels == NULL
							 ? palloc(sizeof(char *) * labels->max)
							 : repalloc_huge(labels->labels, sizeof(char *) * labels->max);
	}
	labels->labels[item->number] = label_of(labels, item->doc, &item->id);
}

/* Returns a line. */
static void
put_line(ReturnSetInfo *rsinfo, const char *line)
{
	Datum value = CStringGetTextDatum(line);
	bool isnull = false;

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &isnull);
}
