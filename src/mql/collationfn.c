/*
 * collationfn.c
 *		The SQL functions that compare by a collation: filters, sort keys, projections and updates,
 *		while the collation, their last argument, is in force.
 */
#include "postgres.h"

#include "bson/collation.h"
#include "mql/sort_key.h"
#include "mql/spec.h"

extern Datum dp_bson_match(PG_FUNCTION_ARGS);
extern Datum dp_bson_sort_key(PG_FUNCTION_ARGS);
extern Datum dp_bson_project(PG_FUNCTION_ARGS);
extern Datum dp_bson_update(PG_FUNCTION_ARGS);

typedef struct Collated
{
	DpSpecCache collation;
	FmgrInfo function;       /* what it compiles, it compiles by .. */
	const DpCollation *used; /* .. this collation */
} Collated;

static Datum collated(FunctionCallInfo fcinfo, PGFunction function);
static pg_noinline Collated *collated_state(FunctionCallInfo fcinfo, PGFunction function);
static Datum value_key(PG_FUNCTION_ARGS);

/* _collated_match(doc bson, filter bson, collation bson) -> boolean */
DP_FUNCTION(dp_collated_match);
Datum
dp_collated_match(PG_FUNCTION_ARGS)
{
	return collated(fcinfo, dp_bson_match);
}

/* _collated_sort_key(doc bson, spec bson, collation bson) -> bytea */
DP_FUNCTION(dp_collated_sort_key);
Datum
dp_collated_sort_key(PG_FUNCTION_ARGS)
{
	return collated(fcinfo, dp_bson_sort_key);
}

/* _collated_key(value bson_value, collation bson) -> bytea: equal for values that are equal */
DP_FUNCTION(dp_collated_key);
Datum
dp_collated_key(PG_FUNCTION_ARGS)
{
	return collated(fcinfo, value_key);
}

/* _collated_project(doc bson, projection bson, filter bson, collation bson) -> bson */
DP_FUNCTION(dp_collated_project);
Datum
dp_collated_project(PG_FUNCTION_ARGS)
{
	return collated(fcinfo, dp_bson_project);
}

/*
 * _collated_update(doc bson, update bson_value, filter bson, array_filters bson_value, upsert
 * boolean, collation bson) -> bson
 */
DP_FUNCTION(dp_collated_update);
Datum
dp_collated_update(PG_FUNCTION_ARGS)
{
	return collated(fcinfo, dp_bson_update);
}

/* Calls the function with all arguments but the last one, which must not be null. */
static Datum
collated(FunctionCallInfo fcinfo, PGFunction function)
{
	FmgrInfo *flinfo = fcinfo->flinfo;
	Collated *volatile c;
	const DpCollation *outer = dp_collation;
	Datum result = (Datum) 0;

	if (PG_ARGISNULL(fcinfo->nargs - 1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("collation cannot be null")));
	c = collated_state(fcinfo, function);
	dp_collation = c->used;
	fcinfo->flinfo = &c->function;
	fcinfo->nargs--;
	PG_TRY();
	{
		result = function(fcinfo);
	}
	PG_FINALLY();
	{
		dp_collation = outer;
		fcinfo->flinfo = flinfo;
		fcinfo->nargs++;
	}
	PG_END_TRY();
	return result;
}

/* The state in fn_extra, with the collation of this call. */
static Collated *
collated_state(FunctionCallInfo fcinfo, PGFunction function)
{
	FmgrInfo *flinfo = fcinfo->flinfo;
	Collated *c = flinfo->fn_extra;
	const DpCollation *collation;

	if (c == NULL)
	{
		c = flinfo->fn_extra = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(Collated));
		c->function = *flinfo;
		c->function.fn_addr = function;
		c->function.fn_extra = NULL;
	}
	collation =
		dp_spec_cached(&c->collation, fcinfo, fcinfo->nargs - 1, dp_collation_compile, NULL);
	if (collation != c->used)
		c->function.fn_extra = NULL;
	c->used = collation;
	return c;
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
