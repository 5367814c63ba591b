/*
 * lookup.c
 *		bson_lookup(): MongoDB's $lookup as a function.
 *
 * The statement is prepared once for each call site, for the existing index: the
 * column _id of a collection, a btree index on (doc -> 'path'), or else a filter,
 * which a GIN index supports.  The filter is always in the statement, because it
 * decides.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/build.h"
#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/path.h"
#include "kit/rows/lookup.h"
#include "kit/sql/text.h"
#include "mql/collection_calls.h"

/* The statement of a call site */
typedef struct LookupCache
{
	Oid relid;
	char *path;
	uint64 generation;  /* of the schema */
	SPIPlanPtr plan[2]; /* the second searches null, which also means missing */
	MemoryContext context;
	MemoryContextCallback callback;
} LookupCache;

static LookupCache *lookup_cache(FunctionCallInfo fcinfo, Oid relid, text *path, int which);
static void cache_free(void *arg);
static char *lookup_sql(Oid relid, const char *path, bool with_null);
static char *document_column(Relation rel);
static char *filter_path(const char *path);

/*
 * bson_lookup(rel, path, value) -> array of documents
 */
DP_FUNCTION(dp_bson_lookup);
Datum
dp_bson_lookup(PG_FUNCTION_ARGS)
{
	LookupCache *cache;
	struct varlena *given = NULL;
	struct varlena *result;
	DpValue value = { NULL, 0, DP_TYPE_NULL };
	DpValue element;
	DpIter iter;
	DpBuilder b;
	Datum args[2];
	Datum *values;
	int n = 0;
	int which = 0;
	uint64 row;
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext old;
	char *field;
	int i;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the table and the path must not be null")));
	if (!PG_ARGISNULL(2))
	{
		given = dp_datum_to_value(PG_GETARG_DATUM(2), dp_argument_type(fcinfo, 2));
		value = dp_value_of_varlena(given);
	}

	SPI_connect();

	/* values to search: the elements of an array, or the value */
	if (value.type == DP_TYPE_ARRAY)
	{
		values = palloc(sizeof(Datum) * (dp_array_count(value.data, value.len) + 1));
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &element))
			values[n++] = PointerGetDatum(dp_value_to_varlena(&element));
	}
	else
	{
		values = palloc(sizeof(Datum));
		values[n++] = PointerGetDatum(dp_value_to_varlena(&value));
	}
	for (i = 0; i < n; i++)
	{
		uint8 type = dp_value_of_varlena((struct varlena *) DatumGetPointer(values[i])).type;

		if (type == DP_TYPE_NULL || type == DP_TYPE_UNDEFINED)
			which = 1;
	}
	cache = lookup_cache(fcinfo, PG_GETARG_OID(0), PG_GETARG_TEXT_PP(1), which);
	field = filter_path(cache->path);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	if (n == 0)
	{
		/* an array without elements finds nothing */
		dp_builder_begin_document_field(&b, field, strlen(field));
		dp_builder_begin_array_field(&b, "$in", 3);
		dp_builder_end(&b);
		dp_builder_end(&b);
	}
	else
	{
		dp_builder_begin_array_field(&b, "$or", 3);
		for (i = 0; i < n; i++)
		{
			DpValue one = dp_value_of_varlena((struct varlena *) DatumGetPointer(values[i]));

			if (one.type == DP_TYPE_UNDEFINED)
				one.type = DP_TYPE_NULL; /* which filters do not compare with */
			dp_builder_begin_document_field(&b, NULL, 0);
			dp_builder_begin_document_field(&b, field, strlen(field));
			dp_builder_append_value(&b, "$eq", 3, &one);
			dp_builder_end(&b);
			dp_builder_end(&b);
		}
		dp_builder_end(&b);
	}
	dp_builder_end(&b);
	args[0] = PointerGetDatum(dp_builder_finish_bson(&b));
	args[1] = PointerGetDatum(construct_array(values, n, dp_types()->bson_value, -1, false,
											  TYPALIGN_INT));

	if (SPI_execute_plan(cache->plan[which], args, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "a look-up returned no rows");
	old = MemoryContextSwitchTo(caller);
	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	for (row = 0; row < SPI_processed; row++)
	{
		bool isnull;
		Datum doc = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, 1, &isnull);

		if (!isnull)
		{
			struct varlena *whole = PG_DETOAST_DATUM_PACKED(doc);

			element = dp_value_of_document(whole);
			dp_builder_append_value(&b, NULL, 0, &element);
			if (whole != (struct varlena *) DatumGetPointer(doc))
				pfree(whole);
		}
	}
	dp_builder_end(&b);
	result = dp_builder_finish_value(&b, DP_TYPE_ARRAY);
	MemoryContextSwitchTo(old);
	SPI_finish();
	PG_RETURN_POINTER(result);
}

/* The statement for these arguments; inside SPI_connect(). */
static LookupCache *
lookup_cache(FunctionCallInfo fcinfo, Oid relid, text *path, int which)
{
	LookupCache *cache = fcinfo->flinfo->fn_extra;
	Oid types[2];

	if (cache == NULL)
	{
		cache = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(LookupCache));
		cache->context = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "docpatterns look-up",
											   ALLOCSET_SMALL_SIZES);
		cache->callback.func = cache_free;
		cache->callback.arg = cache;
		MemoryContextRegisterResetCallback(fcinfo->flinfo->fn_mcxt, &cache->callback);
		fcinfo->flinfo->fn_extra = cache;
	}
	if (cache->path == NULL || cache->relid != relid ||
		cache->generation != dp_schema_generation() ||
		strlen(cache->path) != VARSIZE_ANY_EXHDR(path) ||
		memcmp(cache->path, VARDATA_ANY(path), VARSIZE_ANY_EXHDR(path)) != 0)
	{
		cache_free(cache);
		cache->path = NULL;
		MemoryContextReset(cache->context);
		cache->relid = relid;
		cache->path = MemoryContextStrdup(cache->context, text_to_cstring(path));
		cache->generation = dp_schema_generation();
	}
	if (cache->plan[which] == NULL)
	{
		types[0] = dp_types()->bson;
		types[1] = dp_types()->bson_value_array;
		cache->plan[which] = SPI_prepare(lookup_sql(relid, cache->path, which == 1), 2, types);
		if (cache->plan[which] == NULL || SPI_keepplan(cache->plan[which]) != 0)
			elog(ERROR, "could not prepare a look-up: %s", SPI_result_code_string(SPI_result));
	}
	return cache;
}

/* The call site or its statement is freed. */
static void
cache_free(void *arg)
{
	LookupCache *cache = arg;

	for (int i = 0; i < lengthof(cache->plan); i++)
	{
		if (cache->plan[i] != NULL)
			SPI_freeplan(cache->plan[i]);
		cache->plan[i] = NULL;
	}
}

/* Prepares the statement: $1 is a filter, $2 the values to search. */
static char *
lookup_sql(Oid relid, const char *path, bool with_null)
{
	StringInfoData sql;
	Relation rel = try_relation_open(relid, AccessShareLock);
	char *column;
	AttrNumber key = 0;
	char *by_id = NULL;
	bool by_path = false;

	if (rel == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", relid)));
	column = document_column(rel);
	if (strcmp(path, "_id") == 0)
		key = dp_collection_key(rel);
	if (key != 0)
		by_id = dp_collection_key_in(rel, key, "$2");
	else if (!with_null && (rel->rd_rel->relkind == RELKIND_RELATION ||
							rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE))
		by_path =
			dp_lookup_index(dp_lookup_path(relid, column, path, CurrentMemoryContext), rel) != NULL;
	relation_close(rel, NoLock);

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT t.%s FROM ", quote_identifier(column));
	dp_sql_table(&sql, relid);
	appendStringInfo(&sql, " AS t WHERE t.%s", quote_identifier(column));
	dp_sql_own_operator(&sql, "@@");
	appendStringInfoString(&sql, "$1 AND ");
	if (by_id != NULL)
		appendStringInfoString(&sql, by_id);
	else if (by_path)
	{
		StringInfoData field;

		/* an array equals one of its elements */
		initStringInfo(&field);
		appendStringInfo(&field, "(t.%s", quote_identifier(column));
		dp_sql_own_operator(&field, "->");
		appendStringInfo(&field, "%s::pg_catalog.text)", quote_literal_cstr(path));
		appendStringInfo(&sql, "(%s", field.data);
		dp_sql_own_operator(&sql, "=");
		appendStringInfo(&sql, "ANY ($2) OR (%s", field.data);
		dp_sql_own_operator(&sql, ">=");
		appendStringInfoString(&sql, "'[]'::");
		dp_sql_own_schema(&sql);
		appendStringInfo(&sql, "bson_value AND %s", field.data);
		dp_sql_own_operator(&sql, "<");
		appendStringInfoString(&sql, "'{\"$binary\": {\"base64\": \"\", \"subType\": \"00\"}}'::");
		dp_sql_own_schema(&sql);
		appendStringInfoString(&sql, "bson_value))");
	}
	else
		appendStringInfoString(&sql, "$2 IS NOT NULL");
	return sql.data;
}

/* The only column of type bson. */
static char *
document_column(Relation rel)
{
	TupleDesc desc = RelationGetDescr(rel);
	char *found = NULL;
	int i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || att->atttypid != dp_types()->bson)
			continue;
		if (found != NULL)
			ereport(ERROR, (errcode(ERRCODE_AMBIGUOUS_COLUMN),
							errmsg("table \"%s\" has more than one column of type bson",
								   dp_relation_name(RelationGetRelid(rel)))));
		found = pstrdup(NameStr(att->attname));
	}
	if (found == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
						errmsg("table \"%s\" has no column of type bson",
							   dp_relation_name(RelationGetRelid(rel)))));
	return found;
}

/* The path as a filter names it: names and positions with dots between them. */
static char *
filter_path(const char *path)
{
	DpPath *parsed = dp_path_parse(path, strlen(path));
	StringInfoData text;
	int i;

	initStringInfo(&text);
	for (i = 0; i < parsed->nsteps; i++)
	{
		if (memchr(parsed->steps[i].name, '.', parsed->steps[i].namelen) != NULL ||
			parsed->steps[i].name[0] == '$')
			ereport(
				ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg(
					 "cannot look up documents by a field whose name contains a dot or begins with a dollar sign")));
		appendStringInfo(&text, "%s%s", i > 0 ? "." : "", parsed->steps[i].name);
	}
	return text.data;
}
