/*
 * insert.c
 *		collection_insert(): documents in any of their forms become one INSERT.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "bson/catalog.h"
#include "bson/text.h"
#include "mql/collection_split.h"
#include "mql/run.h"
#include "patterns/collection/calls.h"

static void insert_remote(const DpCall *call, ParamListInfo params, DestReceiver *dest);
static ArrayBuildState *add_argument(ArrayBuildState *docs, Datum argument, Oid type);
static ArrayBuildState *add_document(ArrayBuildState *docs, const DpValue *value);
static void null_document(void) pg_attribute_noreturn();

/* collection_insert(rel regclass, VARIADIC docs "any") -> setof bson_value */
DP_FUNCTION(dp_collection_insert);
Datum
dp_collection_insert(PG_FUNCTION_ARGS)
{
	ParamListInfo params;
	ArrayBuildState *docs = initArrayResult(dp_types()->bson, CurrentMemoryContext, false);
	DpCall call = { 0 };
	Datum *arguments;
	Oid *types;
	bool *nulls;
	int n = extract_variadic_args(fcinfo, 1, true, &arguments, &types, &nulls);

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("relation cannot be null")));
	if (n < 0)
		null_document();
	for (int i = 0; i < n; i++)
	{
		if (nulls[i])
			null_document();
		docs = add_argument(docs, arguments[i], types[i]);
	}
	call.relid = PG_GETARG_OID(0);
	call.filter = dp_call_no_fields();
	dp_call_prepare(&call);

	params = dp_call_params(&call);
	dp_call_set(params, DP_PARAM_DOCS, makeArrayResult(docs, CurrentMemoryContext));
	if (OidIsValid(call.hiding))
		dp_make_way_hook(call.hiding, params->params[DP_PARAM_DOCS].value);
	if (call.is_remote)
		insert_remote(&call, params, dp_run_result(fcinfo));
	else
		dp_call_write(psprintf("%s RETURNING %s", call.sql[DP_CALL_INSERTION],
							   call.sql[DP_CALL_ID]),
					  params, dp_run_result(fcinfo));
	return (Datum) 0;
}

/* Rows come back from other servers in any order, so their _ids are chosen here. */
static void
insert_remote(const DpCall *call, ParamListInfo params, DestReceiver *dest)
{
	StringInfoData ids;
	DpFirstRow docs;

	if (call->sql[DP_CALL_NEW_IDS] != NULL)
	{
		dp_first_row_init(&docs);
		dp_call_read(call->sql[DP_CALL_NEW_IDS], params, &docs.methods);
		if (!docs.nulls[0])
			dp_call_set(params, DP_PARAM_DOCS, docs.values[0]);
	}
	dp_call_write(call->sql[DP_CALL_INSERTION], params, None_Receiver);
	initStringInfo(&ids);
	appendStringInfoString(&ids, "SELECT ");
	dp_sql_own_schema(&ids);
	appendStringInfoString(&ids, "bson_get(s.doc, '_id') FROM pg_catalog.unnest($15) WITH "
								 "ORDINALITY AS s (doc, n) ORDER BY s.n");
	dp_call_read(ids.data, params, dest);
}

/*
 * Adds the documents of an argument: bson, a bson_value with a document or an array of documents,
 * bson[], or text that spells a bson_value.
 */
static ArrayBuildState *
add_argument(ArrayBuildState *docs, Datum argument, Oid type)
{
	DpValue value;
	DpIter iter;
	DpValue element;

	if (type == dp_types()->bson_array)
	{
		Datum *elements;
		bool *nulls;
		int n;

		deconstruct_array(DatumGetArrayTypeP(argument), dp_types()->bson, -1, false, TYPALIGN_INT,
						  &elements, &nulls, &n);
		for (int i = 0; i < n; i++)
		{
			if (nulls[i])
				null_document();
			docs =
				accumArrayResult(docs, elements[i], false, dp_types()->bson, CurrentMemoryContext);
		}
		return docs;
	}
	if (type == dp_types()->bson)
		return accumArrayResult(docs, argument, false, type, CurrentMemoryContext);
	value = dp_value_of_varlena(dp_call_value(argument, type));
	if (value.type != DP_TYPE_ARRAY)
		return add_document(docs, &value);
	dp_iter_init_value(&iter, &value);
	while (dp_iter_next_value(&iter, &element))
		docs = add_document(docs, &element);
	return docs;
}

static ArrayBuildState *
add_document(ArrayBuildState *docs, const DpValue *value)
{
	if (value->type != DP_TYPE_DOCUMENT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot insert a value that is not a document"),
				 errdetail("Found a value of BSON type \"%s\".", dp_type_name(value->type))));
	return accumArrayResult(docs, PointerGetDatum(dp_document_to_varlena(value->data, value->len)),
							false, dp_types()->bson, CurrentMemoryContext);
}

static void
null_document(void)
{
	ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("documents cannot be null")));
}
