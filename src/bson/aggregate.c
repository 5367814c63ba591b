/*
 * aggregate.c
 *		The aggregates sum, avg, min and max over bson_value.
 *
 * sum and avg behave like MongoDB's $sum and $avg: they ignore values that are not numbers, and the
 * widest type determines the type of the result.  Nothing is rounded before the end (exactsum.h).
 */
#include "postgres.h"

#include "bson/build.h"
#include "bson/compare.h"
#include "bson/exactsum.h"

/* The sum of the aggregate, or a new one in its memory. */
static DpExactSum *
sum_get(FunctionCallInfo fcinfo)
{
	MemoryContext context = dp_aggregate_context(fcinfo);
	DpExactSum *sum;

	if (!PG_ARGISNULL(0))
		return (DpExactSum *) PG_GETARG_POINTER(0);
	sum = MemoryContextAlloc(context, sizeof(DpExactSum));
	dp_exact_sum_init(sum, context);
	return sum;
}

/*
 * bson_value_sum_step(internal, bson_value) -> internal: adds one value.
 */
DP_FUNCTION(dp_bson_value_sum_step);
Datum
dp_bson_value_sum_step(PG_FUNCTION_ARGS)
{
	DpExactSum *sum = sum_get(fcinfo);

	if (!PG_ARGISNULL(1))
	{
		struct varlena *a = DP_GETARG_VARLENA(1);
		DpValue v = dp_value_of_varlena(a);

		(void) dp_exact_sum_add_value(sum, &v, 1);
		PG_FREE_IF_COPY(a, 1);
	}
	PG_RETURN_POINTER(sum);
}

/*
 * bson_value_sum_combine(internal, internal) -> internal: adds the second sum
 * to the first.
 */
DP_FUNCTION(dp_bson_value_sum_combine);
Datum
dp_bson_value_sum_combine(PG_FUNCTION_ARGS)
{
	DpExactSum *sum = sum_get(fcinfo);

	if (!PG_ARGISNULL(1))
		dp_exact_sum_add(sum, (DpExactSum *) PG_GETARG_POINTER(1));
	PG_RETURN_POINTER(sum);
}

/*
 * bson_value_sum_serialize(internal) -> bytea, for another process of the same
 * server.
 */
DP_FUNCTION(dp_bson_value_sum_serialize);
Datum
dp_bson_value_sum_serialize(PG_FUNCTION_ARGS)
{
	StringInfoData out;

	(void) dp_aggregate_context(fcinfo);
	initStringInfo(&out);
	appendStringInfoSpaces(&out, VARHDRSZ);
	dp_exact_sum_pack(&out, (DpExactSum *) PG_GETARG_POINTER(0), true, true);
	SET_VARSIZE(out.data, out.len);
	PG_RETURN_BYTEA_P((bytea *) out.data);
}

/*
 * bson_value_sum_deserialize(bytea, internal) -> internal
 */
DP_FUNCTION(dp_bson_value_sum_deserialize);
Datum
dp_bson_value_sum_deserialize(PG_FUNCTION_ARGS)
{
	bytea *bytes = PG_GETARG_BYTEA_PP(0);
	DpPacked p = { (const uint8 *) VARDATA_ANY(bytes),
				   (const uint8 *) VARDATA_ANY(bytes) + VARSIZE_ANY_EXHDR(bytes) };
	DpExactSum *sum = palloc(sizeof(DpExactSum));

	(void) dp_aggregate_context(fcinfo);
	dp_exact_sum_init(sum, CurrentMemoryContext);
	dp_exact_sum_unpack(sum, &p);
	PG_RETURN_POINTER(sum);
}

/*
 * bson_value_sum_final(internal) -> bson_value: NULL if there was no number.
 */
DP_FUNCTION(dp_bson_value_sum_final);
Datum
dp_bson_value_sum_final(PG_FUNCTION_ARGS)
{
	DpExactSum *sum = PG_ARGISNULL(0) ? NULL : (DpExactSum *) PG_GETARG_POINTER(0);
	uint8 room[DP_SUM_RESULT_SIZE];
	DpValue v;

	if (sum == NULL || sum->n == 0)
		PG_RETURN_NULL();
	dp_exact_sum_total(sum, &v, room);
	PG_RETURN_POINTER(dp_value_to_varlena(&v));
}

/*
 * bson_value_avg_final(internal) -> bson_value: a decimal128 if there was one
 * among the numbers, else a double; NULL if there was no number.
 */
DP_FUNCTION(dp_bson_value_avg_final);
Datum
dp_bson_value_avg_final(PG_FUNCTION_ARGS)
{
	DpExactSum *sum = PG_ARGISNULL(0) ? NULL : (DpExactSum *) PG_GETARG_POINTER(0);
	uint8 room[DP_SUM_RESULT_SIZE];
	DpValue v;

	if (sum == NULL || sum->n == 0)
		PG_RETURN_NULL();
	dp_exact_sum_average(sum, &v, room);
	PG_RETURN_POINTER(dp_value_to_varlena(&v));
}

/*
 * bson_value_smaller(bson_value, bson_value) -> bson_value: the lesser one,
 * the first if they are equal.
 */
DP_FUNCTION(dp_bson_value_smaller);
Datum
dp_bson_value_smaller(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	struct varlena *b = DP_GETARG_VARLENA(1);
	DpValue x = dp_value_of_varlena(a);
	DpValue y = dp_value_of_varlena(b);

	PG_RETURN_POINTER(dp_value_compare(&x, &y) <= 0 ? a : b);
}

/*
 * bson_value_larger(bson_value, bson_value) -> bson_value: the greater one,
 * the first if they are equal.
 */
DP_FUNCTION(dp_bson_value_larger);
Datum
dp_bson_value_larger(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	struct varlena *b = DP_GETARG_VARLENA(1);
	DpValue x = dp_value_of_varlena(a);
	DpValue y = dp_value_of_varlena(b);

	PG_RETURN_POINTER(dp_value_compare(&x, &y) >= 0 ? a : b);
}
