/*
 * collationfn.c
 *		The SQL functions that compare by a collation: their last argument, or a part of the
 *		variables of a pipeline.
 */
#include "postgres.h"

#include "bson/collation.h"
#include "mql/expression.h"
#include "mql/sort_key.h"

extern Datum dp_bson_match(PG_FUNCTION_ARGS);
extern Datum dp_bson_sort_key(PG_FUNCTION_ARGS);
extern Datum dp_bson_project(PG_FUNCTION_ARGS);
extern Datum dp_bson_update(PG_FUNCTION_ARGS);

static Datum value_key(PG_FUNCTION_ARGS);

/* _collated_match(doc bson, filter bson, collation bson) -> boolean */
DP_FUNCTION(dp_collated_match);
Datum
dp_collated_match(PG_FUNCTION_ARGS)
{
	return dp_collated_call(fcinfo, dp_bson_match);
}

/* _collated_sort_key(doc bson, spec bson, collation bson) -> bytea */
DP_FUNCTION(dp_collated_sort_key);
Datum
dp_collated_sort_key(PG_FUNCTION_ARGS)
{
	return dp_collated_call(fcinfo, dp_bson_sort_key);
}

/* _collated_key(value bson_value, collation bson) -> bytea: equal for values that are equal */
DP_FUNCTION(dp_collated_key);
Datum
dp_collated_key(PG_FUNCTION_ARGS)
{
	return dp_collated_call(fcinfo, value_key);
}

/* _collated_project(doc bson, projection bson, filter bson, collation bson) -> bson */
DP_FUNCTION(dp_collated_project);
Datum
dp_collated_project(PG_FUNCTION_ARGS)
{
	return dp_collated_call(fcinfo, dp_bson_project);
}

/*
 * _collated_update(doc bson, update bson_value, filter bson, array_filters bson_value, upsert
 * boolean, collation bson) -> bson
 */
DP_FUNCTION(dp_collated_update);
Datum
dp_collated_update(PG_FUNCTION_ARGS)
{
	return dp_collated_call(fcinfo, dp_bson_update);
}

static Datum
value_key(PG_FUNCTION_ARGS)
{
	DpValue value = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	StringInfoData key;

	initStringInfo(&key);
	appendStringInfoSpaces(&key, VARHDRSZ);
	dp_sort_key_append_value(&key, &value, false);
	SET_VARSIZE(key.data, key.len);
	PG_RETURN_POINTER(key.data);
}

/* ---------------------------------------------------------------- variables */

bool
dp_let_collation(struct varlena *let, DpValue *collation)
{
	DpIter iter;
	DpElement first;

	/* most have none */
	if (DP_DOC_SIZE(let) <= DP_DOCUMENT_MIN_SIZE || DP_DOC_DATA(let)[5] != '$')
		return false;
	dp_iter_init(&iter, DP_DOC_DATA(let), DP_DOC_SIZE(let));
	if (!dp_iter_next(&iter, &first) || first.value.type != DP_TYPE_DOCUMENT ||
		strcmp(first.name, DP_LET_COLLATION) != 0)
		return false;
	*collation = first.value;
	return true;
}

Datum
dp_expr_call(FunctionCallInfo fcinfo, int argno, PGFunction function)
{
	DpValue collation;

	if (!PG_ARGISNULL(argno) && dp_let_collation(DP_GETARG_VARLENA(argno), &collation))
		return dp_collated_by(&collation, fcinfo, function);
	return function(fcinfo);
}
