/*
 * aggregate.c
 *		The aggregates sum, avg, min and max over bson_value.
 *
 * sum and avg behave like MongoDB's $sum and $avg: they ignore values that are not numbers, and the
 * widest type determines the type of the result.  Nothing is rounded before the end (exactsum.h).
 */
#include "postgres.h"

#include "bson/compare.h"
#include "bson/exactsum.h"
#include "bson/state.h"

static void
sum_init(void *state, MemoryContext context)
{
	dp_exact_sum_init(state, context);
}

static void
sum_pack(StringInfo out, void *state)
{
	dp_exact_sum_pack(out, state, true, true);
}

static const DpStateKind sum_kind = { sizeof(DpExactSum), sum_init, sum_pack };

/*
 * bson_value_sum_step(bytea, bson_value) -> bytea: adds one value.
 */
DP_FUNCTION(dp_bson_value_sum_step);
Datum
dp_bson_value_sum_step(PG_FUNCTION_ARGS)
{
	DpExactSum *sum = dp_state_get(fcinfo, &sum_kind);

	if (!PG_ARGISNULL(1))
	{
		struct varlena *a = DP_GETARG_VARLENA(1);
		DpValue v = dp_value_of_varlena(a);

		(void) dp_exact_sum_add_value(sum, &v, 1);
		PG_FREE_IF_COPY(a, 1);
	}
	PG_RETURN_DATUM(dp_state_datum(sum));
}

/*
 * bson_value_sum_combine(bytea, bytea) -> bytea: adds the second sum to the first.
 */
DP_FUNCTION(dp_bson_value_sum_combine);
Datum
dp_bson_value_sum_combine(PG_FUNCTION_ARGS)
{
	DpExactSum *sum = dp_state_get(fcinfo, &sum_kind);
	DpPacked p;

	if (dp_state_packed(fcinfo, &p))
		dp_exact_sum_unpack(sum, &p);
	PG_RETURN_DATUM(dp_state_datum(sum));
}

/*
 * bson_value_sum_final(bytea) -> bson_value: NULL if there was no number.
 */
DP_FUNCTION(dp_bson_value_sum_final);
Datum
dp_bson_value_sum_final(PG_FUNCTION_ARGS)
{
	DpExactSum *sum = dp_state_final(fcinfo, &sum_kind);
	uint8 room[DP_SUM_RESULT_SIZE];
	DpValue v;

	if (sum == NULL || sum->n == 0)
		PG_RETURN_NULL();
	dp_exact_sum_total(sum, &v, room);
	PG_RETURN_POINTER(dp_value_to_varlena(&v));
}

/*
 * bson_value_avg_final(bytea) -> bson_value: a decimal128 if there was one
 * among the numbers, else a double; NULL if there was no number.
 */
DP_FUNCTION(dp_bson_value_avg_final);
Datum
dp_bson_value_avg_final(PG_FUNCTION_ARGS)
{
	DpExactSum *sum = dp_state_final(fcinfo, &sum_kind);
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
