/*
 * argument.c
 *		Arguments of the calls for collections.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"

#include "bson/catalog.h"
#include "bson/text.h"
#include "patterns/collection/calls.h"

extern Datum dp_jsonb_to_bson(PG_FUNCTION_ARGS);

struct varlena *
dp_call_document(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : DP_GETARG_VARLENA(n);
}

struct varlena *
dp_call_no_fields(void)
{
	return dp_document_to_varlena(dp_empty_document, DP_DOCUMENT_MIN_SIZE);
}

struct varlena *
dp_call_value(Datum argument, Oid type)
{
	struct varlena *given;
	DpValue value;

	if (type == JSONBOID && JB_ROOT_IS_OBJECT(DatumGetJsonbP(argument)))
	{
		argument = DirectFunctionCall1(dp_jsonb_to_bson, argument);
		type = dp_types()->bson;
	}
	else if (type == JSONBOID || type == JSONOID)
	{
		argument =
			CStringGetTextDatum(OidOutputFunctionCall(type == JSONBOID ? F_JSONB_OUT : F_JSON_OUT,
													  argument));
		type = TEXTOID;
	}
	if (type != TEXTOID && type != dp_types()->bson && type != dp_types()->bson_value)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("an argument cannot be of type %s", format_type_be(type)),
						errhint("Use bson, bson_value, jsonb, or text in Extended JSON.")));
	given = PG_DETOAST_DATUM_PACKED(argument);
	if (type == dp_types()->bson_value)
		return given;
	if (type == TEXTOID)
		return dp_text_to_value(VARDATA_ANY(given), VARSIZE_ANY_EXHDR(given), NULL);
	value = dp_value_of_document(given);
	return dp_value_to_varlena(&value);
}

/*
 * _collection_value(value anycompatible) -> bson_value: an argument of the types that
 * dp_call_value() takes
 */
DP_FUNCTION(dp_collection_value);
Datum
dp_collection_value(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(dp_call_value(PG_GETARG_DATUM(0), get_fn_expr_argtype(fcinfo->flinfo, 0)));
}
