/*
 * read.c
 *		The calls that read collections.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "mql/projection.h"
#include "mql/run.h"
#include "patterns/collection/calls.h"

/*
 * collection_find(rel regclass, filter bson, projection bson, sort bson, skip bigint, take bigint)
 * -> setof bson
 */
DP_FUNCTION(dp_collection_find);
Datum
dp_collection_find(PG_FUNCTION_ARGS)
{
	int64 skip = PG_ARGISNULL(4) ? 0 : PG_GETARG_INT64(4);
	int64 take = PG_ARGISNULL(5) ? 0 : PG_GETARG_INT64(5);
	DpCall call;
	ParamListInfo params;
	StringInfoData sql;

	if (skip < 0 || take < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("skip and take cannot be negative")));
	dp_call_begin(&call, fcinfo, 1);
	call.sort = dp_call_document(fcinfo, 3);
	call.collation = dp_call_document(fcinfo, 6);
	call.projection = PG_ARGISNULL(2) ? dp_call_no_fields() : dp_call_document(fcinfo, 2);
	dp_call_prepare(&call);

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	if (PG_ARGISNULL(2))
		appendStringInfoString(&sql, call.sql[DP_CALL_DOC]);
	else
	{
		DpValue projection = dp_value_of_document(call.projection);

		/* for its errors, if no document is found */
		(void) dp_projection_compile(&projection, 0);
		if (call.collation == NULL)
			dp_sql_own_schema(&sql);
		appendStringInfo(&sql,
						 call.collation == NULL ? "bson_project(%s, $4, $1)"
												: "docpatterns._collated_project(%s, $4, $1, $8)",
						 call.sql[DP_CALL_DOC]);
	}
	appendStringInfo(&sql, " FROM %s WHERE %s", call.sql[DP_CALL_SOURCE],
					 call.sql[DP_CALL_CONDITIONS]);
	if (call.sql[DP_CALL_ORDERING] != NULL)
		appendStringInfo(&sql, " ORDER BY %s", call.sql[DP_CALL_ORDERING]);
	if (skip > 0)
		appendStringInfoString(&sql, " OFFSET $5");
	if (!PG_ARGISNULL(5))
		appendStringInfoString(&sql, " LIMIT $6");
	params = dp_call_params(&call);
	dp_call_set(params, DP_PARAM_SKIP, Int64GetDatum(skip));
	dp_call_set(params, DP_PARAM_TAKE, Int64GetDatum(take));
	dp_call_read(sql.data, params, dp_run_result(fcinfo));
	return (Datum) 0;
}

/* collection_count(rel regclass, filter bson) -> bigint */
DP_FUNCTION(dp_collection_count);
Datum
dp_collection_count(PG_FUNCTION_ARGS)
{
	DpFirstRow row;
	DpCall call;

	dp_call_begin(&call, fcinfo, 1);
	call.collation = dp_call_document(fcinfo, 2);
	dp_call_prepare(&call);
	dp_first_row_init(&row);
	dp_call_read(psprintf("SELECT pg_catalog.count(*) FROM %s WHERE %s", call.sql[DP_CALL_SOURCE],
						  call.sql[DP_CALL_CONDITIONS]),
				 dp_call_params(&call), &row.methods);
	PG_RETURN_DATUM(row.values[0]);
}

/* Whether an unquoted path has an empty part, which no field of a document can be reached by. */
static bool
has_empty_part(const text *path)
{
	const char *s = VARDATA_ANY(path);
	Size len = VARSIZE_ANY_EXHDR(path);

	if (len == 0 || memchr(s, '"', len) != NULL)
		return false;
	return s[0] == '.' || s[len - 1] == '.' || memmem(s, len, "..", 2) != NULL;
}

/* collection_distinct(rel regclass, field text, filter bson) -> setof bson_value */
DP_FUNCTION(dp_collection_distinct);
Datum
dp_collection_distinct(PG_FUNCTION_ARGS)
{
	DpCall call;
	StringInfoData sql;

	if (PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("field cannot be null")));
	dp_call_begin(&call, fcinfo, 2);
	call.field = PG_GETARG_TEXT_PP(1);
	if (VARSIZE_ANY_EXHDR(call.field) == 0)
		call.field = cstring_to_text("\"\"");
	call.collation = dp_call_document(fcinfo, 3);
	dp_call_prepare(&call);
	if (has_empty_part(call.field))
	{
		(void) dp_run_result(fcinfo);
		return (Datum) 0;
	}
	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT DISTINCT %sv FROM %s, ",
					 call.collation == NULL ? "" : "ON (docpatterns._collated_key(v, $8)) ",
					 call.sql[DP_CALL_SOURCE]);
	dp_sql_own_schema(&sql);
	appendStringInfo(&sql, "bson_values(%s, $7) AS v WHERE %s ORDER BY %sv", call.sql[DP_CALL_DOC],
					 call.sql[DP_CALL_CONDITIONS],
					 call.collation == NULL ? "" : "docpatterns._collated_key(v, $8), ");
	dp_call_read(sql.data, dp_call_params(&call), dp_run_result(fcinfo));
	return (Datum) 0;
}
