/*
 * expressionfn.c
 *		Expressions from SQL: bson_eval.
 */
#include "postgres.h"

#include "bson/builder.h"
#include "mql/expression.h"
#include "mql/spec.h"

/* Compiles for dp_spec_value_cached(). */
static void *
eval_compile(const DpValue *spec, void *arg)
{
	return dp_expr_compile(spec, *(bool *) arg ? DP_EXPR_IMMUTABLE : 0, NULL);
}

/* Both functions; an expression that is immutable depends on neither the clock nor chance. */
static Datum
eval_call(FunctionCallInfo fcinfo, bool immutable)
{
	DpValue root = dp_value_of_document(DP_GETARG_VARLENA(0));
	DpExprState state;
	DpExpr *e;
	DpValue result;

	if (fcinfo->flinfo->fn_extra == NULL)
		fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(DpSpecCache));
	e = dp_spec_value_cached(fcinfo->flinfo->fn_extra, fcinfo, 1, eval_compile, &immutable);
	dp_expr_state_init(&state, &root);
	if (!dp_expr_eval(e, &state, &result))
		PG_RETURN_NULL();
	dp_check_document_size(result.len);
	dp_check_value_depth(&result);
	PG_RETURN_POINTER(dp_value_to_varlena(&result));
}

/*
 * bson_eval(doc bson, expression bson_value) -> bson_value: the value of the
 * expression for the document, NULL if it is missing.
 */
DP_FUNCTION(dp_bson_eval);
Datum
dp_bson_eval(PG_FUNCTION_ARGS)
{
	return eval_call(fcinfo, false);
}

/* bson_eval_immutable, with the same arguments */
DP_FUNCTION(dp_bson_eval_immutable);
Datum
dp_bson_eval_immutable(PG_FUNCTION_ARGS)
{
	return eval_call(fcinfo, true);
}
