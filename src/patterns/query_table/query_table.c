/*
 * query_table.c
 *		Query tables: declarations, and the image of a document.
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "bson/access.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "kit/options.h"
#include "patterns/query_table/query_table.h"

/* The column and table of an error in a value */
typedef struct ValueError
{
	const DpQueryTable *q;
	const DpQueryColumn *column;
} ValueError;

static void table_open_columns(DpQueryTable *q);
static void
column_define(DpQueryTable *q, DpQueryColumn *column, const DpValue *fields, const DpValue *types);
static void column_type(DpQueryColumn *column, Oid type, int32 typmod);
static void column_compare(DpQueryColumn *column);
static bool column_value(DpQueryTable *q, DpQueryColumn *column, struct varlena *doc, Datum *value,
						 bool *isnull);
static void value_error(void *arg);

/* ---------------------------------------------------------------- declarations */

/* Returns the declaration, read once. */
DpQueryTable *
dp_query_table(DpDecl *decl)
{
	DpQueryTable *q;
	MemoryContext old;
	char *link_id;
	DpIter iter;
	DpElement element;
	int n;
	int i;

	if (decl->relid != decl->target)
		decl = dp_decl_find(decl->target, decl->pattern, decl->name);
	if (decl->state != NULL)
		return decl->state;

	old = MemoryContextSwitchTo(decl->context);
	q = palloc0(sizeof(DpQueryTable));
	q->decl = decl;
	q->source = decl->target;
	q->bson_value = dp_types()->bson_value;
	link_id = dp_decl_text(decl, "link_id");
	q->table = link_id != NULL ? dp_link_side(link_id, q->source) : InvalidOid;
	dp_options_read(decl, q);
	q->npartition = dp_document_count(q->partition.data, q->partition.len);
	q->nprimary = q->npartition + dp_document_count(q->clustering.data, q->clustering.len);
	n = q->nprimary + dp_document_count(q->fields.data, q->fields.len);
	q->columns = palloc0(sizeof(DpQueryColumn) * (n + 1));
	n = 0;
	dp_iter_init_value(&iter, &q->partition);
	while (dp_iter_next(&iter, &element) && element.value.type == DP_TYPE_STRING)
		q->columns[n++].name = pstrdup(DP_STRING_DATA(&element.value));

	/* a user may create a trigger with any argument */
	if (n == 0 || n != q->npartition || q->nprimary + decl->nkeys > INDEX_MAX_KEYS)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("invalid declaration of query table \"%s\"", decl->name)));
	dp_iter_init_value(&iter, &q->clustering);
	while (dp_iter_next(&iter, &element))
	{
		q->columns[n].descending =
			element.value.type == DP_TYPE_INT32 && dp_get_int32(element.value.data) < 0;
		q->columns[n++].name = pnstrdup(element.name, element.namelen);
	}
	dp_iter_init_value(&iter, &q->fields);
	while (dp_iter_next(&iter, &element))
	{
		for (i = 0; i < n; i++)
		{
			if (strcmp(q->columns[i].name, element.name) == 0)
				break;
		}
		if (i == n)
			q->columns[n++].name = pnstrdup(element.name, element.namelen);
	}
	for (i = 0; i < n; i++)
		column_define(q, &q->columns[i], &q->fields, &q->types);
	if (q->ttl != NULL)
	{
		q->columns[n].name = "expires_at";
		q->columns[n].path = q->ttl;
		q->columns[n].expiry = true;
		column_type(&q->columns[n++], TIMESTAMPTZOID, -1);
	}
	q->ncolumns = n;
	for (i = 0; i < q->nprimary; i++)
		column_compare(&q->columns[i]);

	q->nkeys = decl->nkeys;
	q->keys = palloc0(sizeof(DpQueryColumn) * q->nkeys);
	for (i = 0; i < q->nkeys; i++)
	{
		q->keys[i].name = psprintf(q->nkeys == 1 ? "source_key" : "source_key%d", i + 1);
		column_type(&q->keys[i], decl->keys[i].type, decl->keys[i].typmod);
		q->keys[i].collation = decl->keys[i].collation;
		column_compare(&q->keys[i]);
	}

	q->group = palloc0(sizeof(DpDerivation));
	q->group->decl = decl;
	q->group->lock_id =
		hash_combine(hash_bytes_uint32(q->table),
					 hash_bytes((const unsigned char *) decl->name, strlen(decl->name)));
	q->source_lookup = dp_lookup_primary(q->source, decl->context);
	if (OidIsValid(q->table))
	{
		table_open_columns(q);
		q->lookup = dp_lookup_primary(q->table, decl->context);
		dp_decl_depends(decl, q->table);
	}
	MemoryContextSwitchTo(old);
	decl->state = q;
	return q;
}

DpQueryTable *
dp_query_table_present(DpDecl *decl)
{
	DpQueryTable *q = dp_query_table(decl);

	if (!OidIsValid(q->table))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the query table \"%s\" of table \"%s\" is missing", decl->name,
							   dp_relation_name(q->source)),
						errdetail("The table or its guard was dropped.")));
	return q;
}

/* Finds the columns by their names or, if they were renamed, by their order. */
static void
table_open_columns(DpQueryTable *q)
{
	Relation rel = table_open(q->table, AccessShareLock);
	TupleDesc desc = RelationGetDescr(rel);
	AttrNumber *order = palloc(sizeof(AttrNumber) * desc->natts);
	bool named = true;
	int all = q->ncolumns + q->nkeys;
	int present = 0;
	int i;

	q->natts = desc->natts;
	for (i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			order[present++] = i + 1;
	}
	for (i = 0; i < all; i++)
	{
		DpQueryColumn *column = i < q->ncolumns ? &q->columns[i] : &q->keys[i - q->ncolumns];

		column->attnum = get_attnum(q->table, column->name);
		named = named && column->attnum > 0;
	}
	for (i = 0; i < all; i++)
	{
		DpQueryColumn *column = i < q->ncolumns ? &q->columns[i] : &q->keys[i - q->ncolumns];
		Form_pg_attribute att;

		if (!named)
			column->attnum = i < present ? order[i] : InvalidAttrNumber;
		att = column->attnum > 0 ? TupleDescAttr(desc, column->attnum - 1) : NULL;
		if (att == NULL || att->atttypid != column->type || att->atttypmod != column->typmod)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("column \"%s\" of query table \"%s\" differs from its declaration",
							column->name, dp_relation_name(q->table)),
					 errhint("Drop the query table with pattern_disable() and create it again.")));
	}
	table_close(rel, NoLock);
}

/* Reads the expression and the type of a column. */
static void
column_define(DpQueryTable *q, DpQueryColumn *column, const DpValue *fields, const DpValue *types)
{
	DpValue value;
	uint32 len = strlen(column->name);

	if (dp_document_find(types->data, types->len, column->name, len, &value))
	{
		Oid type;
		int32 typmod;

		if (value.type != DP_TYPE_STRING)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("the type of column \"%s\" is not a text", column->name)));
		(void) parseTypeString(DP_STRING_DATA(&value), &type, &typmod, 0);
		column_type(column, type, typmod);
	}
	else
		column_type(column, dp_types()->bson_value, -1);

	if (!dp_document_find(fields->data, fields->len, column->name, len, &value) ||
		(value.type == DP_TYPE_BOOL && value.data[0] != 0) ||
		(value.type == DP_TYPE_INT32 && dp_get_int32(value.data) == 1))
		column->path = dp_path_parse(column->name, len);
	else if (value.type == DP_TYPE_STRING && DP_STRING_LEN(&value) > 1 &&
			 DP_STRING_DATA(&value)[0] == '$' && DP_STRING_DATA(&value)[1] != '$' &&
			 strpbrk(DP_STRING_DATA(&value), "\"") == NULL)
		column->path = dp_path_parse(DP_STRING_DATA(&value) + 1, DP_STRING_LEN(&value) - 1);
	else if (value.type == DP_TYPE_STRING || value.type == DP_TYPE_DOCUMENT)
		column->expr =
			dp_expr_compile(&value, DP_EXPR_IMMUTABLE, psprintf("fields.%s", column->name));
	else
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("field \"%s\" must be 1 or an expression", column->name),
						errhint("Specify fields like {\"name\": 1, \"id\": \"$_id\"}.")));
}

static void
column_type(DpQueryColumn *column, Oid type, int32 typmod)
{
	column->type = type;
	column->typmod = typmod;
	get_typlenbyval(type, &column->len, &column->byval);
	if (!OidIsValid(column->collation))
		column->collation = get_typcollation(type);
}

/* Places are compared as the primary key does. */
static void
column_compare(DpQueryColumn *column)
{
	TypeCacheEntry *entry = lookup_type_cache(column->type, TYPECACHE_CMP_PROC);

	if (!OidIsValid(entry->cmp_proc))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("values of type %s, of column \"%s\", cannot be sorted",
							   format_type_be(column->type), column->name)));
	fmgr_info_cxt(entry->cmp_proc, &column->cmp, CurrentMemoryContext);
}

/* ---------------------------------------------------------------- images */

/*
 * The row of the table that a document leads to.
 */
bool
dp_query_image(DpQueryTable *q, struct varlena *doc, const Datum *key, DpQueryImage *image)
{
	int i;

	image->values = palloc0(sizeof(Datum) * q->natts);
	image->nulls = palloc(sizeof(bool) * q->natts);
	memset(image->nulls, true, sizeof(bool) * q->natts);
	for (i = 0; i < q->ncolumns; i++)
	{
		DpQueryColumn *column = &q->columns[i];
		Datum *value = &image->values[column->attnum - 1];
		bool *isnull = &image->nulls[column->attnum - 1];

		if (!column_value(q, column, doc, value, isnull) && i < q->nprimary)
			return false;
	}
	for (i = 0; i < q->nkeys; i++)
	{
		image->values[q->keys[i].attnum - 1] = key[i];
		image->nulls[q->keys[i].attnum - 1] = false;
	}
	dp_query_abbreviate(q, image);
	return true;
}

/*
 * Most comparisons are decided by a few bytes of the first value.
 */
void
dp_query_abbreviate(const DpQueryTable *q, DpQueryImage *image)
{
	const DpQueryColumn *column = &q->columns[0];

	image->abbreviated = 0;
	if (column->type == q->bson_value)
	{
		DpValue value =
			dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(image->values[column->attnum - 1]));

		image->abbreviated = dp_value_abbreviate(&value);
	}
}

/* Returns the value of one column; false if it cannot be part of a key: missing or null. */
static bool
column_value(DpQueryTable *q, DpQueryColumn *column, struct varlena *doc, Datum *value,
			 bool *isnull)
{
	DpValue found;

	if (column->path != NULL)
	{
		if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), column->path, &found))
			return false;
	}
	else
	{
		DpExprState state;
		DpValue root = dp_value_of_document(doc);

		dp_expr_state_init(&state, &root);
		if (!dp_expr_eval(column->expr, &state, &found))
			return false;
		dp_check_value_depth(&found);
	}
	if (column->expiry)
	{
		TimestampTz at = 0;

		*isnull = !dp_value_expiry(&found, &at);
		*value = TimestampTzGetDatum(at);
	}
	else if (column->type == q->bson_value)
	{
		*value = PointerGetDatum(dp_value_to_varlena(&found));
		*isnull = false;
	}
	else
	{
		ErrorContextCallback callback;
		ValueError error = { q, column };

		*isnull = false;
		callback.callback = value_error;
		callback.arg = &error;
		callback.previous = error_context_stack;
		error_context_stack = &callback;

		/* a string may spell a UUID, which JSON does not have; column_sql() does the same */
		if (column->type == UUIDOID && found.type == DP_TYPE_STRING)
			*value =
				dp_datum_of_text(PointerGetDatum(dp_value_as_text(&found)), TEXTOID, UUIDOID, -1);
		else
			*value = dp_value_to_datum(&found, column->type, column->typmod, isnull);
		error_context_stack = callback.previous;
	}
	return !*isnull && found.type != DP_TYPE_NULL && found.type != DP_TYPE_UNDEFINED;
}

static void
value_error(void *arg)
{
	const ValueError *error = arg;

	errcontext("column \"%s\" of query table \"%s\"", error->column->name,
			   dp_relation_name(error->q->table));
}

bool
dp_query_expired(const DpQueryTable *q, const DpQueryImage *image)
{
	AttrNumber attnum;

	if (q->ttl == NULL)
		return false;
	attnum = q->columns[q->ncolumns - 1].attnum;
	return !image->nulls[attnum - 1] &&
		   DatumGetTimestampTz(image->values[attnum - 1]) <= GetCurrentTimestamp();
}

void
dp_query_key(const DpQueryTable *q, const DpQueryImage *image, Datum *key)
{
	int n = 0;
	int i;

	for (i = 0; i < q->nprimary; i++)
		key[n++] = image->values[q->columns[i].attnum - 1];
	for (i = 0; !q->is_unique && i < q->nkeys; i++)
		key[n++] = image->values[q->keys[i].attnum - 1];
}

int
dp_query_compare(const void *a, const void *b, void *arg)
{
	const DpQueryTable *q = arg;
	const DpQueryImage *left = a;
	const DpQueryImage *right = b;
	int i;

	if (left->abbreviated != right->abbreviated)
		return left->abbreviated < right->abbreviated ? -1 : 1;
	for (i = 0; i < q->nprimary + q->nkeys; i++)
	{
		DpQueryColumn *column = i < q->nprimary ? &q->columns[i] : &q->keys[i - q->nprimary];
		int cmp = DatumGetInt32(FunctionCall2Coll(&column->cmp, column->collation,
												  left->values[column->attnum - 1],
												  right->values[column->attnum - 1]));

		if (cmp != 0)
			return cmp;
	}
	return 0;
}

uint64
dp_query_partition_hash(const DpQueryTable *q, const DpQueryImage *image)
{
	uint64 hash = 0;
	int i;

	for (i = 0; i < q->npartition; i++)
	{
		const DpQueryColumn *column = &q->columns[i];
		TypeCacheEntry *entry = lookup_type_cache(column->type, TYPECACHE_HASH_EXTENDED_PROC_FINFO);
		uint64 one;

		if (!OidIsValid(entry->hash_extended_proc))
			one = 0;
		else
			one = DatumGetUInt64(FunctionCall2Coll(&entry->hash_extended_proc_finfo,
												   column->collation,
												   image->values[column->attnum - 1],
												   UInt64GetDatum(0)));
		hash = hash_combine64(hash, one);
	}
	return hash;
}

void
dp_query_source_key(const DpQueryTable *q, TupleTableSlot *slot, Datum *key)
{
	int i;

	for (i = 0; i < q->nkeys; i++)
	{
		bool isnull;

		key[i] = slot_getattr(slot, q->decl->keys[i].attnum, &isnull);
		if (isnull)
			ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
							errmsg("null value in column \"%s\" of the primary key of table \"%s\"",
								   q->decl->keys[i].name, dp_relation_name(q->source))));
		if (q->keys[i].len == -1)
			key[i] = PointerGetDatum(PG_DETOAST_DATUM_PACKED(key[i]));
	}
}
