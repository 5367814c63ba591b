/*
 * links.c
 *		Extras of outliers in a collection: one document per element.
 *
 * The collection is an ordinary table with a bson column.  The field o->link of
 * its documents contains the key of the document to which they belong (their
 * link); an element of the array is such a document without the link.  Elements
 * are ordered by _id.
 *
 * While the rows of a statement change their keys, links to a changed key are
 * wrapped, to distinguish them from links to another row that still has this key.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "kit/anchor.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/outlier/outlier.h"

#define RUN_FLAGS(latest) (DP_RUN_AS_OWNER | ((latest) ? 0 : DP_RUN_SNAPSHOT))

/* (doc -> 'link') = $1, and its names */
#define LINKED "{path}{own =}{$1 bson_value}"
#define LINK(o) (o)->side_column, (o)->link

/* The documents of a link that equal $3 without the fields $2 */
#define EQUAL                                                                                      \
	" FROM {relation} WHERE " LINKED " AND {own}bson_unset({name}, VARIADIC {$2 text[]})"          \
	"{own =}{$3 bson}"

#define TAKE(direction)                                                                            \
	"WITH removed AS (DELETE FROM {relation} WHERE ctid OPERATOR(pg_catalog.=)"                    \
	" ANY (ARRAY(SELECT ctid FROM {relation} WHERE " LINKED " ORDER BY {path}" direction           \
	" LIMIT {$2 int8})) RETURNING {name}) SELECT {name} FROM removed ORDER BY {path}"

/* the link as dp_key_to_value() builds it */
#define ORPHANS(function)                                                                          \
	"DELETE FROM {relation} AS side WHERE {path} IS NOT NULL AND NOT EXISTS"                       \
	" (SELECT FROM {table} AS base WHERE {own}" function "({base.key}){own =}"                     \
	"(side.{name}{own ->}{text on_field}::pg_catalog.text))"

static bool links_exist(DpOutlier *o, const DpKey *key);
static int64 links_count(DpOutlier *o, const DpKey *key, bool latest);
static void links_append(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
static void links_take(DpOutlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken);
static int64 links_remove(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
static bool links_hold(DpOutlier *o, const DpKey *key, const DpValue *value, bool latest);
static void links_drop(DpOutlier *o, const DpKey *key);
static void links_drop_orphans(DpOutlier *o);
static void links_move(DpOutlier *o, const DpKey *from, const DpKey *to);
static void links_move_finish(DpOutlier *o, const DpKey *to);
static void
links_page(DpOutlier *o, const DpKey *key, int64 skip, int64 take, DpValueList *page, bool latest);
static void links_read(DpOutlier *o, const DpKey *key, DpBuilder *b, bool latest);
static bool links_in_order(DpOutlier *o, const DpKey *key);
static Oid links_find(DpOutlier *o);
static List *links_holders(DpOutlier *o, const DpValue *value);
static uint64 links_matching(DpOutlier *o, const char *template, const DpKey *key,
							 const DpValue *value, int flags, int expected);
static void links_relink(DpOutlier *o, struct varlena *from, struct varlena *to);
static uint64 links_select(DpOutlier *o, const DpKey *key, bool latest);
static uint64 links_run(DpOutlier *o, SPIPlanPtr plan, struct varlena *link, Datum extra, int flags,
						int expected);
static DpValue link_element(DpOutlier *o, struct varlena *doc);
static struct varlena *link_moving(struct varlena *link);

const DpOutlierStore dp_outlier_links = {
	.exists = links_exist,
	.count = links_count,
	.append = links_append,
	.prepend = links_append, /* the collection determines the order */
	.take = links_take,
	.remove = links_remove,
	.holds = links_hold,
	.drop = links_drop,
	.drop_orphans = links_drop_orphans,
	.move = links_move,
	.move_finish = links_move_finish,
	.page = links_page,
	.read = links_read,
	.in_order = links_in_order,
	.find = links_find,
	.holders = links_holders
};

static bool
links_exist(DpOutlier *o, const DpKey *key)
{
	return dp_outlier_links_hold(o, dp_key_to_value(o->decl, key));
}

/* Returns whether a document of the collection has this link. */
bool
dp_outlier_links_hold(DpOutlier *o, struct varlena *link)
{
	SPIPlanPtr plan = dp_statement(o->decl, "SELECT 1 FROM {relation} WHERE " LINKED " LIMIT 1",
								   o->side, LINK(o));

	return links_run(o, plan, link, (Datum) 0, DP_RUN_AS_OWNER, SPI_OK_SELECT) > 0;
}

static int64
links_count(DpOutlier *o, const DpKey *key, bool latest)
{
	SPIPlanPtr plan =
		dp_statement(o->decl, "SELECT pg_catalog.count(*) FROM {relation} WHERE " LINKED, o->side,
					 LINK(o));
	bool isnull;

	links_run(o, plan, dp_key_to_value(o->decl, key), (Datum) 0, RUN_FLAGS(latest), SPI_OK_SELECT);
	return DatumGetInt64(dp_result(0, 1, &isnull));
}

/* Inserts a document with the key as link for each value. */
static void
links_append(DpOutlier *o, const DpKey *key, const DpValue *values, int n)
{
	SPIPlanPtr plan = dp_statement(o->decl, "INSERT INTO {relation} ({name}) VALUES ({$1 bson})",
								   o->side, o->side_column);
	DpPath *path = dp_path_parse(o->link, strlen(o->link));
	DpValue link = dp_value_of_varlena(dp_key_to_value(o->decl, key));
	int i;

	for (i = 0; i < n; i++)
	{
		Datum doc;
		DpValue own;

		CHECK_FOR_INTERRUPTS();
		if (values[i].type != DP_TYPE_DOCUMENT)
			ereport(
				ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("an element of \"%s\" is not a document", dp_decl_text(o->decl, "field")),
				 errdetail(
					 "Key %s has an element of type %s, and extras are stored in collection \"%s\".",
					 dp_key_to_text(o->decl, key), dp_type_name(values[i].type),
					 dp_relation_name(o->side))));
		if (dp_path_find(values[i].data, values[i].len, path, &own) &&
			dp_value_compare(&own, &link) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 errmsg("elements of \"%s\" must not have a field \"%s\"",
							dp_decl_text(o->decl, "field"), o->link),
					 errdetail("In collection \"%s\" this field contains the document's key, %s.",
							   dp_relation_name(o->side), dp_key_to_text(o->decl, key))));
		doc = PointerGetDatum(dp_document_set(values[i].data, values[i].len, path, &link));
		if (dp_run_marked(o->decl, plan, &doc, NULL, DP_RUN_AS_OWNER, SPI_OK_INSERT, o->side,
						  o->decl->name, DP_MARK_INTERNAL) != 1)
			dp_write_refused(o->decl, o->side);
		pfree(DatumGetPointer(doc));
	}
}

/* Deletes documents of the collection and adds them, without the link, to the list. */
static void
links_take(DpOutlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken)
{
	SPIPlanPtr plan =
		dp_statement(o->decl, from_end ? TAKE(" DESC") : TAKE(""), o->side, o->side, LINK(o),
					 o->side_column, "_id", o->side_column, o->side_column, o->side_column, "_id");
	uint64 rows;
	uint64 i;
	bool isnull;

	{
		Datum values[2];

		values[0] = PointerGetDatum(dp_key_to_value(o->decl, key));
		values[1] = Int64GetDatum(n);
		rows = dp_run_marked(o->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_SELECT, o->side,
							 o->decl->name, DP_MARK_INTERNAL);
	}
	for (i = 0; i < rows; i++)
	{
		DpValue element =
			link_element(o, (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull)));

		dp_values_add(taken, &element);
	}
}

/* Deletes all elements that equal one of the values. Returns their number. */
static int64
links_remove(DpOutlier *o, const DpKey *key, const DpValue *values, int n)
{
	int64 removed = 0;
	int i;

	for (i = 0; i < n; i++)
		removed +=
			links_matching(o, "DELETE" EQUAL, key, &values[i], DP_RUN_AS_OWNER, SPI_OK_DELETE);
	return removed;
}

static bool
links_hold(DpOutlier *o, const DpKey *key, const DpValue *value, bool latest)
{
	return links_matching(o, "SELECT 1" EQUAL, key, value, RUN_FLAGS(latest), SPI_OK_SELECT) > 0;
}

/*
 * Runs a statement on the documents of a key that equal the value as elements. Returns the number
 * of rows.
 */
static uint64
links_matching(DpOutlier *o, const char *template, const DpKey *key, const DpValue *value,
			   int flags, int expected)
{
	SPIPlanPtr plan = dp_statement(o->decl, template, o->side, LINK(o), o->side_column);
	DpValue bson_id;
	Datum without[2];
	Datum values[3];
	int n = 0;

	if (value->type != DP_TYPE_DOCUMENT)
		return 0;
	/* elements are compared without the link, and without _id if the value has none */
	without[n++] = CStringGetTextDatum(o->link);
	if (!dp_document_find(value->data, value->len, "_id", 3, &bson_id))
		without[n++] = CStringGetTextDatum("_id");
	values[0] = PointerGetDatum(dp_key_to_value(o->decl, key));
	values[1] = PointerGetDatum(construct_array(without, n, TEXTOID, -1, false, TYPALIGN_INT));
	values[2] = PointerGetDatum(dp_document_to_varlena(value->data, value->len));
	if (expected == SPI_OK_SELECT)
		return dp_run(o->decl, plan, values, NULL, flags, 1, expected);
	return dp_run_marked(o->decl, plan, values, NULL, flags, expected, o->side, o->decl->name,
						 DP_MARK_INTERNAL);
}

static void
links_drop(DpOutlier *o, const DpKey *key)
{
	SPIPlanPtr plan =
		dp_statement(o->decl, "DELETE FROM {relation} WHERE " LINKED, o->side, LINK(o));

	links_run(o, plan, dp_key_to_value(o->decl, key), (Datum) 0, DP_RUN_AS_OWNER, SPI_OK_DELETE);
}

/* Deletes documents whose link is not a key of the table. */
static void
links_drop_orphans(DpOutlier *o)
{
	SPIPlanPtr plan =
		dp_statement(o->decl, o->decl->nkeys == 1 ? ORPHANS("to_bson") : ORPHANS("bson_array"),
					 o->side, LINK(o), o->side_column);

	dp_run_marked(o->decl, plan, NULL, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE, o->side, o->decl->name,
				  DP_MARK_INTERNAL);
}

/* Gives the extras the moving form of the new key, which no document has. */
static void
links_move(DpOutlier *o, const DpKey *from, const DpKey *to)
{
	links_relink(o, dp_key_to_value(o->decl, from), link_moving(dp_key_to_value(o->decl, to)));
}

/* Gives the extras the new key itself, at the end of the statement. */
static void
links_move_finish(DpOutlier *o, const DpKey *to)
{
	struct varlena *link = dp_key_to_value(o->decl, to);

	links_relink(o, link_moving(link), link);
}

/* Adds at most take elements from position skip on to the list. */
static void
links_page(DpOutlier *o, const DpKey *key, int64 skip, int64 take, DpValueList *page, bool latest)
{
	uint64 rows = links_select(o, key, latest);
	uint64 i;
	bool isnull;

	for (i = skip; i < rows && take > 0; i++, take--)
	{
		DpValue value =
			link_element(o, (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull)));

		CHECK_FOR_INTERRUPTS();
		dp_values_add(page, &value);
	}
}

/* Appends all elements to the array that is open in the builder. */
static void
links_read(DpOutlier *o, const DpKey *key, DpBuilder *b, bool latest)
{
	uint64 rows = links_select(o, key, latest);
	uint64 i;
	bool isnull;

	for (i = 0; i < rows; i++)
	{
		DpValue value =
			link_element(o, (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull)));

		CHECK_FOR_INTERRUPTS();
		dp_outlier_check_whole(o, b, value.len);
		dp_builder_append_value(b, NULL, 0, &value);
	}
}

/* Does nothing: the collection determines the order. */
static bool
links_in_order(DpOutlier *o, const DpKey *key)
{
	return true;
}

/* Finds the collection's document column. */
static Oid
links_find(DpOutlier *o)
{
	Oid side = dp_side_find(o->decl, o->link_id, "", NULL);
	Relation rel = table_open(side, AccessShareLock);
	char *column = dp_anchor_column(side, dp_decl_text(o->decl, "link_id"));
	int i;

	for (i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		if (!att->attisdropped && att->atttypid == dp_types()->bson &&
			(column == NULL || strcmp(column, NameStr(att->attname)) == 0))
			o->side_column = MemoryContextStrdup(o->decl->context, NameStr(att->attname));
	}
	table_close(rel, NoLock);
	if (o->side_column == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
						errmsg("table \"%s\" has no column of type bson", dp_relation_name(side))));
	return side;
}

/* Returns keys of documents whose extras contain the value. */
static List *
links_holders(DpOutlier *o, const DpValue *value)
{
	SPIPlanPtr plan =
		dp_statement(o->decl, "SELECT {name} FROM {relation} WHERE {name}{own @>}{$1 bson}",
					 o->side_column, o->side, o->side_column);
	DpPath *path = dp_path_parse(o->link, strlen(o->link));
	List *keys = NIL;
	Datum doc;
	uint64 rows;
	uint64 i;
	bool isnull;

	if (value->type != DP_TYPE_DOCUMENT)
		return NIL;
	doc = PointerGetDatum(dp_document_to_varlena(value->data, value->len));
	rows = dp_run(o->decl, plan, &doc, NULL, DP_RUN_AS_OWNER | DP_RUN_SNAPSHOT, 0, SPI_OK_SELECT);
	for (i = 0; i < rows; i++)
	{
		struct varlena *v = (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull));
		DpValue element = link_element(o, v);
		DpKey *key = palloc0(sizeof(DpKey));
		DpValue link;

		CHECK_FOR_INTERRUPTS();
		if (dp_outlier_matches(o, &element, value) &&
			dp_path_find(DP_DOC_DATA(v), DP_DOC_SIZE(v), path, &link) &&
			dp_key_of_value(o->decl, &link, key))
			keys = dp_outlier_add_key(o, keys, key);
	}
	return keys;
}

/* Replaces the link of documents. */
static void
links_relink(DpOutlier *o, struct varlena *from, struct varlena *to)
{
	SPIPlanPtr plan = dp_statement(
		o->decl,
		"UPDATE {relation} SET {name} = {own}bson_set({name}, {text on_field}, {$2 bson_value}) WHERE " LINKED,
		o->side, o->side_column, o->side_column, LINK(o));

	links_run(o, plan, from, PointerGetDatum(to), DP_RUN_AS_OWNER, SPI_OK_UPDATE);
}

/* Reads all documents of a key, in order. */
static uint64
links_select(DpOutlier *o, const DpKey *key, bool latest)
{
	SPIPlanPtr plan =
		dp_statement(o->decl, "SELECT {name} FROM {relation} WHERE " LINKED " ORDER BY {path}",
					 o->side_column, o->side, LINK(o), o->side_column, "_id");

	return links_run(o, plan, dp_key_to_value(o->decl, key), (Datum) 0, RUN_FLAGS(latest),
					 SPI_OK_SELECT);
}

/* Runs a statement with a link as first and extra as second parameter. */
static uint64
links_run(DpOutlier *o, SPIPlanPtr plan, struct varlena *link, Datum extra, int flags, int expected)
{
	Datum values[2];

	values[0] = PointerGetDatum(link);
	values[1] = extra;
	if (expected == SPI_OK_SELECT)
		return dp_run(o->decl, plan, values, NULL, flags, 0, expected);
	return dp_run_marked(o->decl, plan, values, NULL, flags, expected, o->side, o->decl->name,
						 DP_MARK_INTERNAL);
}

/* Returns a document of the collection as an element: without the link. */
static DpValue
link_element(DpOutlier *o, struct varlena *doc)
{
	DpPath *path = dp_path_parse(o->link, strlen(o->link));
	struct varlena *bare = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path);

	return dp_value_of_document(bare != NULL ? bare : doc);
}

/* Returns the link of a document that moves to another key: {"$moving": link}. */
static struct varlena *
link_moving(struct varlena *link)
{
	DpBuilder b;
	DpValue value = dp_value_of_varlena(link);

	dp_builder_init_value(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, "$moving", 7, &value);
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_DOCUMENT);
}
