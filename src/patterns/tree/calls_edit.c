/*
 * calls_edit.c
 *		The calls for trees that move, copy and delete subtrees.
 *
 * They write the same as a user would, in one statement and as the caller: the form
 * that is the truth.  The triggers of the pattern do the rest and refuse invalid
 * results.
 */
#include "postgres.h"

#include "kit/shard.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/objectid.h"
#include "bson/text.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/tree/calls.h"
#include "patterns/tree/calls_edit.h"
#include "patterns/tree/change.h"

/* So often a node is looked for that others replace at the same time */
#define MAX_ATTEMPTS 10

static bool node_move(DpTree *tree, DpTreeItem *node, struct varlena *argument);
static void read_latest(void);
static void read_end(void);
static bool
write_doc(DpTree *tree, const DpValue *id, const char *expression, struct varlena *value);
static bool
write_children(DpTree *tree, const DpValue *from, const DpValue *to, const DpValue *child);
static uint64 execute(DpTree *tree, SPIPlanPtr plan, Datum *values, int expected);
static struct varlena *new_id(const DpValue *id, text *suffix);
static struct varlena *string_value(const char *s, int len);
static struct varlena *
tree_parent_value(DpTree *tree, const DpValue *parent, const DpValue *id, const char **path);

/*
 * tree_move(rel regclass, key anycompatible, parent "any", name text): with parent NULL the node
 * becomes a root
 */
DP_ROUTED_FUNCTION(dp_tree_move_call, DP_ROUTE_WHOLE, 0)
{
	DpTree *tree = dp_tree_begin(fcinfo, 3);
	struct varlena *argument = dp_tree_argument(fcinfo, 2);
	struct varlena *key = dp_tree_argument(fcinfo, 1);
	DpTreeItem *node = dp_tree_read_node(tree, key);
	int attempt;

	/*
	 * again if the row of the node, or of a parent, is another one by the time that it is written
	 */
	for (attempt = 1; !node_move(tree, node, argument); attempt++)
	{
		CHECK_FOR_INTERRUPTS();
		if (attempt == MAX_ATTEMPTS)
			ereport(
				ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not move node %s of table \"%s\"", dp_value_to_message(&node->id),
						dp_relation_name(tree->decl->target)),
				 errdetail(
					 "Other transactions insert and delete it or a parent repeatedly, or a trigger or a policy suppresses a write.")));
		read_latest();
		node = dp_tree_read_node(tree, key);
		read_end();
	}
	SPI_finish();
	PG_RETURN_VOID();
}

/*
 * Moves a node below another one, NULL: makes it a root. Returns false if a row to write was
 * missing.
 */
static bool
node_move(DpTree *tree, DpTreeItem *node, struct varlena *argument)
{
	DpValue parent;
	DpValue old;
	struct varlena *value;
	const char *path;
	bool had_parent;

	/* as the tree spells it: 5 and 5.0 are one node */
	if (argument != NULL)
	{
		read_latest();
		parent = dp_tree_read_node(tree, argument)->id;
		read_end();
	}
	value = tree_parent_value(tree, argument == NULL ? NULL : &parent, &node->id, &path);
	if (tree->truth != DP_TREE_CHILDREN)
		return write_doc(tree, &node->id, path, value);
	had_parent = dp_tree_parent(tree, node->doc, &old);
	return (argument != NULL && had_parent && dp_value_compare(&old, &parent) == 0) ||
		   write_children(tree, had_parent ? &old : NULL, argument != NULL ? &parent : NULL,
						  &node->id);
}

/* Makes reads use the latest state until read_end(), except at REPEATABLE READ and above. */
static void
read_latest(void)
{
	if (IsolationUsesXactSnapshot())
		return;
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
}

static void
read_end(void)
{
	if (!IsolationUsesXactSnapshot())
		PopActiveSnapshot();
}

/*
 * tree_copy(rel regclass, key anycompatible, parent "any", suffix text, name text) ->
 * (source bson_value, node bson_value)
 */
DP_ROUTED_FUNCTION(dp_tree_copy_call, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	text *suffix = PG_ARGISNULL(3) ? NULL : PG_GETARG_TEXT_PP(3);
	DpTree *tree;
	DpTreeItem *node;
	DpTreeRead *read;
	struct varlena *argument;
	DpValue parent;
	Datum *docs;
	DpValue *ids;
	int n = 0;
	Datum array;
	bool own_id;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	tree = dp_tree_begin(fcinfo, 4);
	node = dp_tree_read_node(tree, dp_tree_argument(fcinfo, 1));
	argument = dp_tree_argument(fcinfo, 2);
	if (argument != NULL)
		parent = dp_tree_read_node(tree, argument)->id;
	read = dp_tree_read_below(tree, node, -1, true, NULL, NULL);
	docs = palloc(sizeof(Datum) * (read->nitems + 1));
	ids = palloc(sizeof(DpValue) * (read->nitems + 1));
	own_id = tree->id->nsteps == 1 && strcmp(tree->id->steps[0].name, "_id") == 0;

	/* new ids first: parents have them before their children need them */
	node->number = read->nitems;
	for (DpTreeItem *item = node; item != NULL; item = dp_tree_item_after(read, item))
		ids[item->number] = dp_value_of_varlena(new_id(&item->id, suffix));
	for (DpTreeItem *item = node; item != NULL; item = dp_tree_item_after(read, item))
	{
		struct varlena *doc = dp_document_set(DP_DOC_DATA(item->doc), DP_DOC_SIZE(item->doc),
											  tree->id, &ids[item->number]);
		const DpValue *above = item != node       ? &ids[item->parent->number]
							   : argument != NULL ? &parent
												  : NULL;
		Datum row[2];
		bool nulls[2] = { false };

		doc = dp_tree_move_under(tree, doc, above);
		if (tree->truth == DP_TREE_CHILDREN)
		{
			DpBuilder b;
			DpValue children;

			dp_builder_init_value(&b, 0);
			dp_builder_begin_array(&b);
			for (DpTreeItem *child = item->first; child != NULL; child = child->next)
				dp_builder_append_value(&b, NULL, 0, &ids[child->number]);
			dp_builder_end(&b);
			children = dp_value_of_varlena(dp_builder_finish_value(&b, DP_TYPE_ARRAY));
			doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->children, &children);
		}
		/* a document's key in another field is generated again */
		if (!own_id)
		{
			struct varlena *without =
				dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), dp_path_parse("_id", 3));

			doc = without != NULL ? without : doc;
		}
		docs[n++] = PointerGetDatum(doc);
		row[0] = PointerGetDatum(dp_value_to_varlena(&item->id));
		row[1] = PointerGetDatum(dp_value_to_varlena(&ids[item->number]));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row, nulls);
	}

	array = PointerGetDatum(construct_array(docs, n, dp_types()->bson, -1, false, TYPALIGN_INT));
	execute(tree,
			dp_statement(tree->decl, "INSERT INTO {table} ({doc})"
									 " SELECT d FROM pg_catalog.unnest({$1 bson[]}) AS d"),
			&array, SPI_OK_INSERT);
	if (tree->truth == DP_TREE_CHILDREN && argument != NULL &&
		!write_children(tree, NULL, &parent, &ids[node->number]))
		ereport(
			ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not write node %s of table \"%s\"", dp_value_to_message(&parent),
					dp_relation_name(tree->decl->target)),
			 errdetail(
				 "It was deleted concurrently, or a trigger or a policy suppresses the write.")));
	SPI_finish();
	return (Datum) 0;
}

/*
 * tree_delete(rel regclass, key anycompatible, name text) -> bigint: nodes that were deleted
 */
DP_ROUTED_FUNCTION(dp_tree_delete_call, DP_ROUTE_WHOLE, 0)
{
	DpTree *tree = dp_tree_begin(fcinfo, 2);
	DpTreeItem *node;
	DpTreeRead *read;
	Datum *ids;
	Datum array;
	int n = 0;
	uint64 deleted;

	/* waits for concurrent moves, which may remove a node from the subtree */
	dp_tree_lock_moves(tree);
	read_latest();
	node = dp_tree_read_node(tree, dp_tree_argument(fcinfo, 1));
	read = dp_tree_read_below(tree, node, -1, false, NULL, NULL);
	read_end();
	ids = palloc(sizeof(Datum) * (read->nitems + 1));
	for (DpTreeItem *item = node; item != NULL; item = dp_tree_item_after(read, item))
		ids[n++] = PointerGetDatum(dp_value_to_varlena(&item->id));
	array =
		PointerGetDatum(construct_array(ids, n, dp_types()->bson_value, -1, false, TYPALIGN_INT));
	deleted =
		execute(tree,
				dp_statement(tree->decl,
							 "DELETE FROM {table} AS t WHERE {id}{own =}ANY ({$1 bson_value[]})"),
				&array, SPI_OK_DELETE);
	SPI_finish();
	PG_RETURN_INT64((int64) deleted);
}

/* ---------------------------------------------------------------- positions of nodes */

/*
 * Returns the truth of a node with an id below a parent (NULL: a root), and its path; NULL:
 * nothing to write. Triggers add the ids above the parent.
 */
static struct varlena *
tree_parent_value(DpTree *tree, const DpValue *parent, const DpValue *id, const char **path)
{
	StringInfoData text;
	DpBuilder b;

	switch (tree->truth)
	{
		case DP_TREE_ANCESTORS:
			*path = tree->ancestors_text;
			dp_builder_init_value(&b, 0);
			dp_builder_begin_array(&b);
			if (parent != NULL)
				dp_builder_append_value(&b, NULL, 0, parent);
			dp_builder_end(&b);
			return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
		case DP_TREE_PATH:
			*path = tree->path_text;
			initStringInfo(&text);
			if (parent != NULL && parent->type == DP_TYPE_STRING)
			{
				if (tree->path_lead)
					appendStringInfoString(&text, tree->separator);
				appendBinaryStringInfo(&text, DP_STRING_DATA(parent), DP_STRING_LEN(parent));
			}
			if (tree->path_self && id->type == DP_TYPE_STRING)
			{
				if (tree->path_lead || parent != NULL)
					appendStringInfoString(&text, tree->separator);
				appendBinaryStringInfo(&text, DP_STRING_DATA(id), DP_STRING_LEN(id));
			}
			return string_value(text.data, text.len);
		default:
			*path = tree->parent_text;
			return parent == NULL ? NULL : dp_value_to_varlena(parent);
	}
}

struct varlena *
dp_tree_move_under(DpTree *tree, struct varlena *doc, const DpValue *parent)
{
	DpValue id = { 0 };
	const char *text;
	DpPath *path;
	struct varlena *value;
	struct varlena *result;

	(void) dp_tree_id(tree, doc, &id);
	value = tree_parent_value(tree, parent, &id, &text);
	path = dp_path_parse(text, strlen(text));
	if (value != NULL)
	{
		DpValue v = dp_value_of_varlena(value);

		return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &v);
	}
	result = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path);
	return result != NULL ? result : doc;
}

/* A bson_value that is a string. */
static struct varlena *
string_value(const char *s, int len)
{
	DpBuilder b;
	uint8 type;

	dp_builder_init_value(&b, len + 16);
	dp_builder_append_string(&b, "", 0, s, len);
	type = dp_builder_strip_element(&b);
	return dp_builder_finish_value(&b, type);
}

/*
 * The id of a copy: a string with the suffix, or a new ObjectId.  Raises INVALID_PARAMETER_VALUE.
 */
static struct varlena *
new_id(const DpValue *id, text *suffix)
{
	uint8 bytes[DP_OBJECTID_SIZE];
	DpValue value = { bytes, sizeof(bytes), DP_TYPE_OBJECTID };
	StringInfoData text;

	if (suffix == NULL)
	{
		dp_objectid_generate(bytes);
		return dp_value_to_varlena(&value);
	}
	if (id->type != DP_TYPE_STRING)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("an id of type \"%s\" cannot have a suffix", dp_type_name(id->type)),
						errhint("Omit the suffix to give copies new ObjectIds.")));
	initStringInfo(&text);
	appendBinaryStringInfo(&text, DP_STRING_DATA(id), DP_STRING_LEN(id));
	appendBinaryStringInfo(&text, VARDATA_ANY(suffix), VARSIZE_ANY_EXHDR(suffix));
	return string_value(text.data, text.len);
}

/* ---------------------------------------------------------------- statements */

/* Sets a field of a node, or removes it if the value is NULL. Returns false without the row. */
static bool
write_doc(DpTree *tree, const DpValue *id, const char *path, struct varlena *value)
{
	Datum values[2] = { PointerGetDatum(dp_value_to_varlena(id)), PointerGetDatum(value) };
	SPIPlanPtr plan = dp_statement(
		tree->decl,
		value == NULL
			? "UPDATE {table} AS t SET {doc} = {own}bson_unset(t.{doc},"
			  " {text}::pg_catalog.text) WHERE {id}{own =}{$1 bson_value}"
			: "UPDATE {table} AS t SET {doc} = {own}bson_set(t.{doc},"
			  " {text}::pg_catalog.text, {$2 bson_value}) WHERE {id}{own =}{$1 bson_value}",
		path);

	return execute(tree, plan, values, SPI_OK_UPDATE) > 0;
}

/*
 * Moves a child from the array of one node to that of another, in one statement; either may be
 * NULL. Returns false if one was missing.
 */
static bool
write_children(DpTree *tree, const DpValue *from, const DpValue *to, const DpValue *child)
{
	StringInfoData field;
	const DpValue *parents[2] = { from, to };
	const char *operators[2] = { "$pull", "$addToSet" };
	Datum values[4];
	SPIPlanPtr plan;
	int n = 0;

	/* updates spell paths with dots and nothing else */
	initStringInfo(&field);
	for (int i = 0; i < tree->children->nsteps; i++)
		appendStringInfo(&field, "%s%s", i > 0 ? "." : "", tree->children->steps[i].name);
	for (int i = 0; i < 2; i++)
	{
		DpBuilder b;

		if (parents[i] == NULL)
			continue;
		dp_builder_init_value(&b, 0);
		dp_builder_begin_document(&b);
		dp_builder_begin_document_field(&b, operators[i], strlen(operators[i]));
		dp_builder_append_value(&b, field.data, field.len, child);
		dp_builder_end(&b);
		dp_builder_end(&b);
		values[n++] = PointerGetDatum(dp_value_to_varlena(parents[i]));
		values[n++] = PointerGetDatum(dp_builder_finish_value(&b, DP_TYPE_DOCUMENT));
	}
	if (n == 0)
		return true;
	plan = dp_statement(
		tree->decl,
		n == 4 ? "UPDATE {table} AS t SET {doc} = {own}bson_update(t.{doc}, CASE WHEN"
				 " {id}{own =}{$1 bson_value} THEN {$2 bson_value} ELSE {$4 bson_value} END)"
				 " WHERE {id}{own =}ANY (ARRAY[$1, {$3 bson_value}])"
			   : "UPDATE {table} AS t SET {doc} = {own}bson_update(t.{doc}, {$2 bson_value})"
				 " WHERE {id}{own =}{$1 bson_value}");
	return execute(tree, plan, values, SPI_OK_UPDATE) == n / 2;
}

/* Runs a statement that writes, as the caller; returns the number of rows. */
static uint64
execute(DpTree *tree, SPIPlanPtr plan, Datum *values, int expected)
{
	return dp_run(tree->decl, plan, values, NULL, DP_RUN_LOCK, 0, expected);
}
