/*
 * schemafn.c
 *		The SQL functions of schemas.
 */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "mql/schema.h"
#include "mql/spec.h"

static void
put_error(const char *path, const char *rule, const char *expected, const char *found, void *arg);

/* bson_validate(doc, schema): whether the document satisfies the schema. */
DP_FUNCTION(dp_bson_validate);
Datum
dp_bson_validate(PG_FUNCTION_ARGS)
{
	DpSchema *schema = dp_spec_arg(fcinfo, 1, dp_schema_compile_spec, NULL);
	DpValue doc = dp_value_of_document(DP_GETARG_VARLENA(0));

	PG_RETURN_BOOL(dp_schema_match(schema, &doc));
}

/*
 * bson_schema_errors(doc, schema) -> setof (path, rule, expected, found): a row
 * for each rule that the document breaks.
 */
DP_FUNCTION(dp_bson_schema_errors);
Datum
dp_bson_schema_errors(PG_FUNCTION_ARGS)
{
	DpSchema *schema;
	DpValue doc;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	schema = dp_spec_arg(fcinfo, 1, dp_schema_compile_spec, NULL);
	doc = dp_value_of_document(DP_GETARG_VARLENA(0));
	dp_schema_errors(schema, &doc, put_error, fcinfo->resultinfo);
	return (Datum) 0;
}

/*
 * Puts a row into the result.
 */
static void
put_error(const char *path, const char *rule, const char *expected, const char *found, void *arg)
{
	ReturnSetInfo *result = arg;
	Datum values[4];
	bool nulls[4] = { false, false, false, false };

	values[0] = CStringGetTextDatum(path);
	values[1] = CStringGetTextDatum(rule);
	values[2] = CStringGetTextDatum(expected);
	values[3] = CStringGetTextDatum(found);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	for (int i = 0; i < lengthof(values); i++)
		pfree(DatumGetPointer(values[i]));
}
