/*
 * calls.c
 *		Query tables: reading, and functions of the verbs.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "parser/parse_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "patterns/query_table/query_table.h"

static DpQueryTable *query_table_argument(FunctionCallInfo fcinfo);
static DpQueryTable *query_table_of(Oid table);
static Datum read_argument(const DpQueryColumn *column, Datum value, Oid type);
static const char *expiry_name(const DpQueryTable *q);
static bool query_table_repair_row(DpDecl *decl, const DpKey *key);

/* The query table that the first two arguments, a table and a name, mean. */
static DpQueryTable *
query_table_argument(FunctionCallInfo fcinfo)
{
	Oid rel = PG_GETARG_OID(0);

	return dp_query_table_present(dp_decl_find(rel, "query_table",
											   text_to_cstring(PG_GETARG_TEXT_PP(1))));
}

/*
 * _query_table_verify(rel, name): compiles the declaration.
 */
DP_FUNCTION(dp_query_table_verify);
Datum
dp_query_table_verify(PG_FUNCTION_ARGS)
{
	DpQueryTable *q = query_table_argument(fcinfo);
	int i;

	for (i = 0; q->limit > 0 && i < q->nprimary; i++)
	{
		if (q->columns[i].path == NULL)
			ereport(
				ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg(
					 "with limit_per_partition, column \"%s\" must be a field, not an expression",
					 q->columns[i].name)));
	}
	PG_RETURN_VOID();
}

/*
 * _query_table_types(bson) -> bson: names of types as they are found by the
 * caller's search_path become names that mean the same everywhere
 */
DP_FUNCTION(dp_query_table_types);
Datum
dp_query_table_types(PG_FUNCTION_ARGS)
{
	DpValue types = dp_value_of_document(PG_GETARG_VARLENA_PP(0));
	DpBuilder b;
	DpIter iter;
	DpElement element;

	dp_builder_init(&b, types.len);
	dp_builder_begin_document(&b);
	dp_iter_init_value(&iter, &types);
	while (dp_iter_next(&iter, &element))
	{
		Oid type;
		int32 typmod;
		char *name;

		if (element.value.type != DP_TYPE_STRING ||
			strlen(DP_STRING_DATA(&element.value)) != DP_STRING_LEN(&element.value))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("the type of column \"%s\" is not the name of a type", element.name)));
		(void) parseTypeString(DP_STRING_DATA(&element.value), &type, &typmod, 0);
		if (get_typtype(type) == TYPTYPE_PSEUDO)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("column \"%s\" cannot be of pseudo-type %s", element.name,
								   format_type_be(type))));
		name = format_type_extended(type, typmod,
									FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY);
		dp_builder_append_string(&b, element.name, element.namelen, name, strlen(name));
	}
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/*
 * _query_table_path(rel, name, column) -> the path of the field that a column
 * shows, NULL for an expression
 */
DP_FUNCTION(dp_query_table_path);
Datum
dp_query_table_path(PG_FUNCTION_ARGS)
{
	DpQueryTable *q = query_table_argument(fcinfo);
	char *column = text_to_cstring(PG_GETARG_TEXT_PP(2));
	int i;

	for (i = 0; i < q->ncolumns; i++)
	{
		if (strcmp(q->columns[i].name, column) == 0 && q->columns[i].path != NULL)
		{
			StringInfoData path;

			initStringInfo(&path);
			dp_path_to_text(&path, q->columns[i].path);
			PG_RETURN_TEXT_P(cstring_to_text_with_len(path.data, path.len));
		}
	}
	PG_RETURN_NULL();
}

/*
 * _query_table_columns(rel, name) -> names that the columns of the table have
 * now: those of the fields, then those of the source's key
 */
DP_FUNCTION(dp_query_table_columns);
Datum
dp_query_table_columns(PG_FUNCTION_ARGS)
{
	DpQueryTable *q = query_table_argument(fcinfo);
	int n = q->ncolumns + q->nkeys;
	Datum *names = palloc(sizeof(Datum) * n);
	int i;

	for (i = 0; i < n; i++)
	{
		const DpQueryColumn *column = i < q->ncolumns ? &q->columns[i] : &q->keys[i - q->ncolumns];

		names[i] = CStringGetTextDatum(get_attname(q->table, column->attnum, false));
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(names, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/*
 * _query_table_expected(rel, name, doc) -> the fields of the row that a
 * document leads to, as texts; NULL if it leads to none
 */
DP_FUNCTION(dp_query_table_expected);
Datum
dp_query_table_expected(PG_FUNCTION_ARGS)
{
	DpQueryTable *q = query_table_argument(fcinfo);
	Datum keys[INDEX_MAX_KEYS] = { 0 };
	Datum *texts = palloc(sizeof(Datum) * q->ncolumns);
	bool *nulls = palloc(sizeof(bool) * q->ncolumns);
	int lower = 1;
	DpQueryImage image;
	int i;

	if (!dp_query_image(q, PG_GETARG_VARLENA_PP(2), keys, &image))
		PG_RETURN_NULL();
	for (i = 0; i < q->ncolumns; i++)
	{
		const DpQueryColumn *column = &q->columns[i];
		Oid output;
		bool varlena;

		nulls[i] = image.nulls[column->attnum - 1];
		if (nulls[i])
			continue;
		getTypeOutputInfo(column->type, &output, &varlena);
		texts[i] =
			CStringGetTextDatum(OidOutputFunctionCall(output, image.values[column->attnum - 1]));
	}
	PG_RETURN_ARRAYTYPE_P(construct_md_array(texts, nulls, 1, &q->ncolumns, &lower, TEXTOID, -1,
											 false, TYPALIGN_INT));
}

/*
 * _query_table_hash(rel, name, doc) -> by what locks of partitions are ordered;
 * NULL for a document that leads to no row
 */
DP_FUNCTION(dp_query_table_hash);
Datum
dp_query_table_hash(PG_FUNCTION_ARGS)
{
	DpQueryTable *q = query_table_argument(fcinfo);
	Datum keys[INDEX_MAX_KEYS] = { 0 };
	DpQueryImage image;

	if (!dp_query_image(q, PG_GETARG_VARLENA_PP(2), keys, &image))
		PG_RETURN_NULL();
	PG_RETURN_INT64((int64) (dp_query_partition_hash(q, &image) ^ (UINT64CONST(1) << 63)));
}

/*
 * _query_table_sweep(rel, name) -> bigint: deletes rows that do not belong into the table. As the
 * caller, who owns it.
 */
DP_ROUTED_FUNCTION(dp_query_table_sweep, DP_ROUTE_SUM, 0)
{
	dp_require_owner(PG_GETARG_OID(0));
	PG_RETURN_INT64(dp_query_sweep(query_table_argument(fcinfo)));
}

/* ---------------------------------------------------------------- building */

/* One row of the source: its row in the table, or its partition. */
static bool
query_table_repair_row(DpDecl *decl, const DpKey *key)
{
	DpQueryTable *q = dp_query_table_present(decl);
	DpWriter *w = dp_query_writer(q);
	bool written;

	if (q->limit == 0)
		written = dp_query_repair_row(q, w, key->values);
	else
		written = dp_query_repair_partition(q, w, key->values) > 0;
	(void) dp_writer_close(w);
	return written;
}

static const DpOption options[] = {
	{ "name", DP_OPTION_TEXT, DP_REQUIRED },
	{ "partition", DP_OPTION_TEXTS, DP_REQUIRED, DP_INT_FROM(1), DP_INTO(DpQueryTable, partition) },
	{ "clustering", DP_OPTION_DOCUMENT, DP_REQUIRED, DP_INTO(DpQueryTable, clustering) },
	{ "fields", DP_OPTION_DOCUMENT, DP_REQUIRED, DP_INTO(DpQueryTable, fields) },
	{ "types", DP_OPTION_DOCUMENT, DP_REQUIRED, DP_INTO(DpQueryTable, types) },
	{ "is_unique", DP_OPTION_BOOL, DP_REQUIRED, DP_INTO(DpQueryTable, is_unique) },
	{ "limit_per_partition", DP_OPTION_INT, DP_ALTERABLE, DP_INT_FROM(1),
	  DP_INTO(DpQueryTable, limit) },
	{ "ttl_field", DP_OPTION_PATH, DP_INTO(DpQueryTable, ttl) },
	{ NULL }
};

DP_DEFINE_PATTERN(query_table) = { .name = "query_table",
								   .whole_table = true,
								   .creator = "query_table_create",
								   .options = options,
								   .repair_row = query_table_repair_row,
								   .changes = dp_query_table_changed };

/* ---------------------------------------------------------------- reading */

/*
 * query_table_read(rel, VARIADIC "any") -> documents
 *
 * Reads as the caller, with the snapshot of the calling query.
 */
DP_ROUTED_FUNCTION(dp_query_table_read, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpQueryTable *q;
	SPIPlanPtr plan;
	Datum args[INDEX_MAX_KEYS + 1];
	Datum *values;
	bool *nulls;
	Oid *types;
	int n = extract_variadic_args(fcinfo, 1, false, &values, &types, &nulls);
	uint64 row;
	int i;

	if (PG_ARGISNULL(0))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the query table must not be null")));
	q = query_table_of(PG_GETARG_OID(0));
	if (n < q->npartition || n > q->nprimary)
		ereport(
			ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("query table \"%s\" must be read by %d values, not %d",
					dp_relation_name(q->table), q->npartition, Max(n, 0)),
			 errhint("Specify the values of the partition; values of the clustering may follow.")));
	for (i = 0; i < n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the value of column \"%s\" must not be null", q->columns[i].name)));
		args[i] = read_argument(&q->columns[i], values[i], types[i]);
	}
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);

	SPI_connect();
	plan = dp_plan(q->decl, &q->plan_read[n]);
	if (plan == NULL)
	{
		StringInfoData sql;
		Oid argtypes[INDEX_MAX_KEYS + 1];
		bool descending = false;

		initStringInfo(&sql);
		for (i = 0; i < q->ncolumns; i++)
			appendStringInfo(&sql, "%st.%s", i == 0 ? "SELECT " : ", ",
							 quote_identifier(get_attname(q->table, q->columns[i].attnum, false)));
		appendStringInfoString(&sql, " FROM ");
		dp_sql_table(&sql, q->table);
		appendStringInfoString(&sql, " AS t");
		for (i = 0; i < n; i++)
		{
			appendStringInfo(&sql, "%st.%s", i == 0 ? " WHERE " : " AND ",
							 quote_identifier(get_attname(q->table, q->columns[i].attnum, false)));
			dp_sql_operator(&sql, lookup_type_cache(q->columns[i].type, TYPECACHE_EQ_OPR)->eq_opr);
			appendStringInfo(&sql, "$%d", i + 1);
			argtypes[i] = q->columns[i].type;
		}
		argtypes[n] = TIMESTAMPTZOID;
		if (q->ttl != NULL)
			appendStringInfo(&sql, " AND (t.%1$s IS NULL OR t.%1$s OPERATOR(pg_catalog.>) $%2$d)",
							 expiry_name(q), n + 1);
		appendStringInfoString(&sql, " ORDER BY ");
		for (i = q->npartition; i < q->nprimary; i++)
		{
			descending = q->columns[i].descending;
			appendStringInfo(&sql, "t.%s%s, ",
							 quote_identifier(get_attname(q->table, q->columns[i].attnum, false)),
							 descending ? " DESC" : "");
		}
		for (i = 0; i < q->nkeys; i++)
			appendStringInfo(&sql, "%st.%s%s", i > 0 ? ", " : "",
							 quote_identifier(get_attname(q->table, q->keys[i].attnum, false)),
							 descending ? " DESC" : "");
		plan = dp_plan_make(q->decl, &q->plan_read[n], sql.data, n + 1, argtypes, 0);
	}
	args[n] = TimestampTzGetDatum(GetCurrentTimestamp());
	(void) dp_run(q->decl, plan, args, NULL, DP_RUN_SNAPSHOT, 0, SPI_OK_SELECT);
	for (row = 0; row < SPI_processed; row++)
	{
		DpBuilder b;
		Datum result;
		bool none = false;

		CHECK_FOR_INTERRUPTS();
		dp_builder_init(&b, 0);
		dp_builder_begin_document(&b);
		for (i = 0; i < q->ncolumns; i++)
		{
			bool isnull;
			Datum value = dp_result(row, i + 1, &isnull);

			if (!isnull)
				dp_builder_append_datum(&b, q->columns[i].name, strlen(q->columns[i].name), value,
										false, q->columns[i].type);
		}
		dp_builder_end(&b);
		result = PointerGetDatum(dp_builder_finish_bson(&b));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &result, &none);
		pfree(DatumGetPointer(result));
	}
	SPI_finish();
	return (Datum) 0;
}

/*
 * query_table_purge(rel, take) -> bigint: removes expired rows, at most take of them
 */
DP_FUNCTION(dp_query_table_purge);
Datum
dp_query_table_purge(PG_FUNCTION_ARGS)
{
	DpQueryTable *q;
	SPIPlanPtr plan;
	Datum values[2] = { TimestampTzGetDatum(GetCurrentTimestamp()), PG_GETARG_DATUM(1) };
	const char *nulls = PG_ARGISNULL(1) ? " n" : "  ";
	uint64 purged;

	if (PG_ARGISNULL(0))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the query table must not be null")));
	if (!PG_ARGISNULL(1) && PG_GETARG_INT64(1) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("take must not be negative")));
	q = query_table_of(PG_GETARG_OID(0));
	dp_require_owner(q->table);
	if (q->ttl == NULL)
		PG_RETURN_INT64(0);

	SPI_connect();
	plan = dp_plan(q->decl, &q->plan_purge);
	if (plan == NULL)
	{
		Oid argtypes[2] = { TIMESTAMPTZOID, INT8OID };
		StringInfoData sql;

		/* locked rows are skipped: their writer may extend the expiry */
		initStringInfo(&sql);
		appendStringInfoString(&sql, "DELETE FROM ONLY ");
		dp_sql_table(&sql, q->table);
		appendStringInfoString(&sql, " AS t WHERE t.ctid OPERATOR(pg_catalog.=) ANY"
									 " (ARRAY(SELECT e.ctid FROM ONLY ");
		dp_sql_table(&sql, q->table);
		appendStringInfo(&sql,
						 " AS e WHERE e.%1$s OPERATOR(pg_catalog.<=) $1 ORDER BY e.%1$s LIMIT $2"
						 " FOR UPDATE SKIP LOCKED)) AND t.%1$s OPERATOR(pg_catalog.<=) $1",
						 expiry_name(q));
		plan = dp_plan_make(q->decl, &q->plan_purge, sql.data, 2, argtypes, 0);
	}
	purged = dp_run_marked(q->decl, plan, values, nulls, DP_RUN_AS_OWNER, SPI_OK_DELETE, q->table,
						   NULL, DP_MARK_INTERNAL);
	SPI_finish();
	PG_RETURN_INT64((int64) purged);
}

/* The name that the column of the expiry has now, quoted. */
static const char *
expiry_name(const DpQueryTable *q)
{
	return quote_identifier(get_attname(q->table, q->columns[q->ncolumns - 1].attnum, false));
}

/* The declaration that a query table belongs to, by its guard. */
static DpQueryTable *
query_table_of(Oid table)
{
	Relation rel = try_relation_open(table, AccessShareLock);
	DpDecl *found = NULL;
	TriggerDesc *triggers;
	int i;

	if (rel == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", table)));
	triggers = dp_triggers(rel);
	for (i = 0; i < triggers->numtriggers && found == NULL; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		Oid source;
		ListCell *lc;

		if (trigger->tgnargs != 3 || strcmp(trigger->tgargs[0], "side") != 0 ||
			strncmp(trigger->tgname, DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0)
			continue;
		source = dp_link_main(trigger->tgargs[1], table);
		foreach(lc, OidIsValid(source) ? dp_decls(source) : NIL)
		{
			DpDecl *decl = lfirst(lc);
			char *link_id =
				strcmp(decl->pattern, "query_table") == 0 ? dp_decl_text(decl, "link_id") : NULL;

			if (link_id != NULL && strcmp(link_id, trigger->tgargs[1]) == 0)
				found = decl;
		}
	}
	table_close(rel, NoLock);
	if (found == NULL)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("\"%s\" is not a query table", dp_relation_name(table)),
						errhint("Create it with query_table_create().")));
	return dp_query_table_present(found);
}

/*
 * A value that a column is compared with; text is read by the column's type.
 */
static Datum
read_argument(const DpQueryColumn *column, Datum value, Oid type)
{
	struct varlena *given;
	DpValue v;
	Datum result;
	bool isnull;

	if (type == column->type)
		return value;
	if (column->type == dp_types()->bson_value)
		return PointerGetDatum(dp_datum_to_value(value, type));
	if (type == TEXTOID || type == VARCHAROID || type == UNKNOWNOID)
		return dp_datum_of_text(value, type, column->type, column->typmod);
	given = dp_datum_to_value(value, type);
	v = dp_value_of_varlena(given);
	result = dp_value_to_datum(&v, column->type, column->typmod, &isnull);
	if (isnull)
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the value of column \"%s\" must not be null", column->name)));
	return result;
}
