/*
 * calls.c
 *		The functions of the polymorphic pattern that SQL calls.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/edit.h"
#include "bson/fetch.h"
#include "kit/key.h"
#include "kit/shard.h"
#include "kit/rows/by_statement.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "patterns/polymorphic/polymorphic.h"

/* Cached by _polymorphic_field() */
typedef struct FieldCache
{
	DpPathCache path;
	char *types; /* the argument from which fits[] was built */
	uint32 len;
	bool fits[256];
} FieldCache;

/* Argument for finding an item by its path */
typedef struct ItemSearch
{
	char *location;      /* NULL: the only one */
	StringInfoData text; /* of the found item */
	DpValue item;
	int found;
} ItemSearch;

static void put_error(const char *variant, const char *part, const char *path, const char *rule,
					  const char *expected, const char *found, void *arg);
static bool put_item(const DpValue *item, bool is_item, const DpPolyLocation *location, void *arg);
static FieldCache *field_cache(FunctionCallInfo fcinfo);
static bool within_range(const DpValue *value);
static void reach(DpBuilder *b, const DpPath *path, int step, const DpValue *value, int *n);
static bool meets_array(const DpPath *path, const DpValue *value);
static bool
search_item(const DpValue *item, bool is_item, const DpPolyLocation *location, void *arg);
static struct varlena *changed_item(DpDecl *decl, struct varlena *item, FunctionCallInfo fcinfo);
static void check_change(Oid function);

/* ---------------------------------------------------------------- looking at documents */

/*
 * polymorphic_errors(rel, doc, name) -> (variant, part, path, rule, expected, found)
 */
DP_FUNCTION(dp_polymorphic_errors);
Datum
dp_polymorphic_errors(PG_FUNCTION_ARGS)
{
	DpDecl *decl;
	DpValue doc;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	decl = dp_decl_find(PG_GETARG_OID(0), "polymorphic",
						PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2)));
	if (PG_ARGISNULL(1))
		return (Datum) 0;
	doc = dp_value_of_document(DP_GETARG_VARLENA(1));
	dp_poly_errors(dp_poly(decl), &doc, put_error, fcinfo->resultinfo);
	return (Datum) 0;
}

/* Puts a row into the result. */
static void
put_error(const char *variant, const char *part, const char *path, const char *rule,
		  const char *expected, const char *found, void *arg)
{
	ReturnSetInfo *result = arg;
	Datum values[6];
	bool nulls[6] = { false };

	nulls[0] = variant == NULL;
	if (variant != NULL)
		values[0] = CStringGetTextDatum(variant);
	values[1] = CStringGetTextDatum(part);
	values[2] = CStringGetTextDatum(path);
	values[3] = CStringGetTextDatum(rule);
	values[4] = CStringGetTextDatum(expected);
	values[5] = CStringGetTextDatum(found);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * _polymorphic_valid(rel, name, doc) -> boolean
 */
DP_FUNCTION(dp_polymorphic_valid);
Datum
dp_polymorphic_valid(PG_FUNCTION_ARGS)
{
	DpDecl *decl =
		dp_decl_find(PG_GETARG_OID(0), "polymorphic", text_to_cstring(PG_GETARG_TEXT_PP(1)));
	DpValue doc = dp_value_of_document(DP_GETARG_VARLENA(2));

	PG_RETURN_BOOL(dp_poly_valid(dp_poly(decl), &doc));
}

/*
 * _polymorphic_elements(doc, by) -> (item_path, doc): the items of a document; by is the path of
 * the field with their kind
 */
DP_FUNCTION(dp_polymorphic_elements);
Datum
dp_polymorphic_elements(PG_FUNCTION_ARGS)
{
	text *by = PG_GETARG_TEXT_PP(1);
	DpPath *path = dp_path_parse(VARDATA_ANY(by), VARSIZE_ANY_EXHDR(by));
	DpValue doc = dp_value_of_document(DP_GETARG_VARLENA(0));

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	path->nsteps--;
	(void) dp_poly_each(path->nsteps > 0 ? path : NULL, &doc, put_item, fcinfo->resultinfo);
	return (Datum) 0;
}

/* Puts a row into the result. */
static bool
put_item(const DpValue *item, bool is_item, const DpPolyLocation *location, void *arg)
{
	ReturnSetInfo *result = arg;
	Datum values[2];
	bool nulls[2] = { false };
	StringInfoData text;

	if (!is_item)
		return true;
	initStringInfo(&text);
	dp_poly_location_text(&text, location);
	values[0] = CStringGetTextDatum(text.data);
	values[1] = PointerGetDatum(dp_document_to_varlena(item->data, item->len));
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	pfree(text.data);
	return true;
}

/* ---------------------------------------------------------------- columns of views */

/*
 * _polymorphic_field(doc, path, types) -> bson_value: the field if it is of
 * one of the types, which are separated by commas, and fits the SQL type that
 * columns of these types have.
 */
DP_FUNCTION(dp_polymorphic_field);
Datum
dp_polymorphic_field(PG_FUNCTION_ARGS)
{
	FieldCache *cache = field_cache(fcinfo);
	DpValue value;

	if (!dp_fetch_path(PG_GETARG_DATUM(0), dp_path_cached(&cache->path, fcinfo, 1), true, &value) ||
		!cache->fits[value.type] || !within_range(&value))
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_value_to_varlena(&value));
}

/* Cached in fn_extra, with the types of this call */
static FieldCache *
field_cache(FunctionCallInfo fcinfo)
{
	FieldCache *cache = fcinfo->flinfo->fn_extra;
	text *types = PG_GETARG_TEXT_PP(2);
	uint32 len = VARSIZE_ANY_EXHDR(types);
	int type;

	if (cache == NULL)
		cache = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(FieldCache));
	if (cache->types != NULL && cache->len == len &&
		memcmp(cache->types, VARDATA_ANY(types), len) == 0)
		return cache;
	if (cache->types != NULL)
	{
		char *old = cache->types;

		cache->types = NULL;
		pfree(old);
	}
	cache->types = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, len + 1);
	memcpy(cache->types, VARDATA_ANY(types), len);
	cache->types[len] = '\0';
	cache->len = len;
	for (type = 0; type < 256; type++)
	{
		const char *name;
		const char *at;

		cache->fits[type] = false;
		if (type == DP_TYPE_EOD || dp_fixed_size[type] == DP_SIZE_INVALID)
			continue;
		name = dp_type_name(type);
		at = strstr(cache->types, name);
		cache->fits[type] = at != NULL && (at == cache->types || at[-1] == ',') &&
							(at[strlen(name)] == ',' || at[strlen(name)] == '\0');
	}
	return cache;
}

/* Strings with a NUL are no text, and dates may be beyond those of PostgreSQL. */
static bool
within_range(const DpValue *value)
{
	if (value->type == DP_TYPE_STRING)
		return memchr(DP_STRING_DATA(value), 0, DP_STRING_LEN(value)) == NULL;
	if (value->type == DP_TYPE_DATE)
	{
		int64 ms = dp_get_int64(value->data);

		return ms >= MIN_TIMESTAMP / 1000 + DP_EPOCH_SHIFT_MS &&
			   ms < END_TIMESTAMP / 1000 + DP_EPOCH_SHIFT_MS;
	}
	return true;
}

/*
 * _polymorphic_reach(doc, path) -> bson_value: the field, or where arrays are on the way, an
 * array of what their elements have there; NULL if there is nothing.
 */
DP_FUNCTION(dp_polymorphic_reach);
Datum
dp_polymorphic_reach(PG_FUNCTION_ARGS)
{
	DpValue doc = dp_value_of_document(DP_GETARG_VARLENA(0));
	DpPath *path = dp_path_arg(fcinfo, 1);
	DpBuilder b;
	DpValue value;
	int n = 0;

	if (!meets_array(path, &doc))
	{
		if (!dp_path_find(doc.data, doc.len, path, &value))
			PG_RETURN_NULL();
		PG_RETURN_POINTER(dp_value_to_varlena(&value));
	}
	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	reach(&b, path, 0, &doc, &n);
	dp_builder_end(&b);
	if (n == 0)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_builder_finish_value(&b, DP_TYPE_ARRAY));
}

/* Whether an array is on the way, not at its end. */
static bool
meets_array(const DpPath *path, const DpValue *value)
{
	DpValue at = *value;
	int i;

	for (i = 0; i < path->nsteps; i++)
	{
		if (at.type == DP_TYPE_ARRAY)
			return !path->steps[i].is_index;
		if (at.type != DP_TYPE_DOCUMENT ||
			!dp_field_find(at.data, at.len, path->steps[i].name, path->steps[i].namelen, &at))
			return false;
	}
	return false;
}

/* Appends what the rest of a path reaches. */
static void
reach(DpBuilder *b, const DpPath *path, int step, const DpValue *value, int *n)
{
	DpValue next;

	check_stack_depth();
	if (step == path->nsteps)
	{
		dp_builder_append_value(b, NULL, 0, value);
		(*n)++;
		return;
	}
	if (value->type == DP_TYPE_ARRAY && !path->steps[step].is_index)
	{
		DpIter iter;

		dp_iter_init_value(&iter, value);
		while (dp_iter_next_value(&iter, &next))
		{
			if (next.type == DP_TYPE_DOCUMENT)
				reach(b, path, step, &next, n);
		}
	}
	else if (value->type == DP_TYPE_ARRAY)
	{
		if (dp_array_element(value->data, value->len, path->steps[step].index, &next))
			reach(b, path, step + 1, &next, n);
	}
	else if (value->type == DP_TYPE_DOCUMENT &&
			 dp_field_find(value->data, value->len, path->steps[step].name,
						   path->steps[step].namelen, &next))
		reach(b, path, step + 1, &next, n);
}

/*
 * _polymorphic_path_list(list) -> text[]: the paths of a list, as paths are
 * written.
 */
DP_FUNCTION(dp_polymorphic_path_list);
Datum
dp_polymorphic_path_list(PG_FUNCTION_ARGS)
{
	text *list = PG_GETARG_TEXT_PP(0);
	List *paths = dp_path_parse_list(VARDATA_ANY(list), VARSIZE_ANY_EXHDR(list));
	Datum *values = palloc(sizeof(Datum) * Max(list_length(paths), 1));
	ListCell *lc;
	int n = 0;

	foreach(lc, paths)
	{
		StringInfoData path;

		initStringInfo(&path);
		dp_path_to_text(&path, lfirst(lc));
		values[n++] = CStringGetTextDatum(path.data);
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(values, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/* ---------------------------------------------------------------- another variant */

/*
 * polymorphic_retype(rel, key, variant, change_update, change, item_path, name) -> boolean: changes
 * the variant of an item, with the current user's privileges
 */
DP_ROUTED_FUNCTION(dp_polymorphic_retype, DP_ROUTE_KEY, 1)
{
	DpDecl *decl;
	const DpPoly *p;
	const DpPolyVariant *v = NULL;
	char *variant;
	ItemSearch search = { 0 };
	DpKey key;
	struct varlena *doc;
	struct varlena *item;
	DpValue whole;
	int i;

	for (i = 0; i < 3; i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("the table, the key and the variant must not be null")));
	}
	if (!PG_ARGISNULL(3) && !PG_ARGISNULL(4))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("only one of change_update and change can be specified")));
	if (!PG_ARGISNULL(4))
		check_change(PG_GETARG_OID(4));
	PreventCommandIfReadOnly("polymorphic_retype()");
	decl = dp_decl_find(PG_GETARG_OID(0), "polymorphic",
						PG_ARGISNULL(6) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(6)));
	p = dp_poly(decl);
	variant = text_to_cstring(PG_GETARG_TEXT_PP(2));
	for (i = 0; i < p->nvariants; i++)
	{
		if (strcmp(p->variants[i].variant, variant) == 0)
			v = &p->variants[i];
	}
	if (v == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("table \"%s\" has no variant \"%s\"", dp_relation_name(decl->target),
							   variant),
						errhint("Declare it with polymorphic_variant().")));
	if (!PG_ARGISNULL(5))
		search.location = text_to_cstring(PG_GETARG_TEXT_PP(5));
	dp_key_of_argument(decl, fcinfo, 1, &key);

	SPI_connect();
	if (!dp_row_read(decl, &key, " FOR NO KEY UPDATE", DP_RUN_LOCK, &doc) || doc == NULL)
	{
		SPI_finish();
		PG_RETURN_BOOL(false);
	}

	whole = dp_value_of_document(doc);
	(void) dp_poly_each(p->parent, &whole, search_item, &search);
	if (search.found != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 search.location != NULL
					 ? errmsg("the document has no sub-document at \"%s\" that has a variant",
							  search.location)
					 : errmsg("the document has %d sub-documents that have a variant",
							  search.found),
				 search.location != NULL
					 ? 0
					 : errhint("Specify one with the argument \"item_path\".")));
	item = changed_item(decl, dp_document_to_varlena(search.item.data, search.item.len), fcinfo);
	item = dp_document_set(DP_DOC_DATA(item), DP_DOC_SIZE(item), p->field, &v->value);
	if (p->parent != NULL)
	{
		DpValue value = dp_value_of_document(item);

		doc = dp_document_set(whole.data, whole.len,
							  dp_path_parse(search.text.data, search.text.len), &value);
	}
	else
		doc = item;

	dp_row_write(decl, &key, doc);
	SPI_finish();
	PG_RETURN_BOOL(true);
}

/* Keeps the item with a path, or counts all. */
static bool
search_item(const DpValue *item, bool is_item, const DpPolyLocation *location, void *arg)
{
	ItemSearch *search = arg;
	StringInfoData text;

	if (!is_item)
		return true;
	initStringInfo(&text);
	dp_poly_location_text(&text, location);
	if (search->location != NULL && strcmp(search->location, text.data) != 0)
		return true;
	search->found++;
	search->item = *item;
	search->text = text;
	return true;
}

/* Returns the result of the caller's update or function for an item; inside SPI_connect(). */
static struct varlena *
changed_item(DpDecl *decl, struct varlena *item, FunctionCallInfo fcinfo)
{
	StringInfoData sql;
	Oid types[2] = { dp_types()->bson, dp_types()->bson };
	Datum values[2];
	bool isnull;
	int n = 1;

	if (PG_ARGISNULL(3) && PG_ARGISNULL(4))
		return item;
	initStringInfo(&sql);
	values[0] = PointerGetDatum(item);
	if (!PG_ARGISNULL(3))
	{
		values[1] = PG_GETARG_DATUM(3);
		n = 2;
		appendStringInfoString(&sql, "SELECT ");
		dp_sql_own_schema(&sql);
		appendStringInfoString(&sql, "bson_update($1, $2)");
	}
	else
	{
		Oid function = PG_GETARG_OID(4);

		appendStringInfo(&sql, "SELECT %s.%s($1)",
						 quote_identifier(get_namespace_name(get_func_namespace(function))),
						 quote_identifier(get_func_name(function)));
	}
	if (SPI_execute_with_args(sql.data, n, types, values, NULL, false, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "could not change a document");
	values[0] = dp_result(0, 1, &isnull);
	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the change returned null")));
	return (struct varlena *) DatumGetPointer(values[0]);
}

/* Raises DATATYPE_MISMATCH unless a function takes one bson and returns bson. */
static void
check_change(Oid function)
{
	Oid *types;
	int n;
	Oid result;

	if (get_func_name(function) == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
						errmsg("function with OID %u does not exist", function)));
	result = get_func_signature(function, &types, &n);
	if (result != dp_types()->bson || n != 1 || types[0] != dp_types()->bson ||
		get_func_retset(function))
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("function %s must take one bson and return bson",
							   get_func_name(function))));
}
