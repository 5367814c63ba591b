/*
 * selectivity_join.c
 *		Estimates for joins by equality of fields: a.doc -> 'x' = b.doc -> 'y', also with
 *		columns of bson_value or of SQL types on one side.
 *
 * Each side is described by its number of distinct values, its rows without a value, and its most
 * common values if they are known as BSON values.  Matches are estimated as for PostgreSQL's own
 * types: most common values are compared, all others are assumed to be evenly distributed.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "optimizer/pathnode.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "bson/catalog.h"
#include "index/stats/selectivity_field.h"

typedef struct JoinValue
{
	DpValue value;
	double share; /* of all rows */
} JoinValue;

typedef struct JoinSide
{
	bool is_field;
	double distinct;
	bool is_default; /* distinct is a guess */
	double missing;  /* rows without a value */
	double rows;     /* of the relation, after its own conditions */
	int n;
	JoinValue *common; /* in the order of the values */
} JoinSide;

/* Matches between the most common values of two sides */
typedef struct JoinMatch
{
	int n;          /* values that both have */
	double product; /* sum of the products of their shares */
	double left;    /* sums of the shares */
	double right;
} JoinMatch;

static int
compare_join_values(const void *a, const void *b)
{
	return dp_value_compare(&((const JoinValue *) a)->value, &((const JoinValue *) b)->value);
}

/* Collects the facts about one side. */
static void
describe_side(PlannerInfo *root, VariableStatData *variable, JoinSide *side)
{
	DpField field;
	AttStatsSlot slot;

	memset(side, 0, sizeof(*side));
	side->rows = variable->rel != NULL ? variable->rel->rows : 1000;
	if (!dp_field_is_described(variable) && !variable->isunique &&
		dp_field_recognize(root, variable->var, 0, &field))
	{
		const DpPathStats *path = field.known.path;
		double present = dp_field_present(&field);

		side->is_field = true;
		side->missing = 1.0 - present;
		side->distinct = path != NULL ? dp_path_distinct(field.estimator, path) : 1.0;
		if (path != NULL && path->nmcv > 0 && !field.known.positional)
		{
			/* the items that -> finds, of all items */
			double part = path->items > 0 ? Min(path->scalar / path->items, 1.0) : 0;

			side->common = palloc(path->nmcv * sizeof(JoinValue));
			side->n = path->nmcv;
			for (int i = 0; i < path->nmcv; i++)
			{
				side->common[i].value = path->mcv[i];
				side->common[i].share =
					path->mcv_items[i] * part * (1.0 - field.estimator->null_frac);
			}
		}
	}
	else
	{
		side->distinct = get_variable_numdistinct(variable, &side->is_default);
		if (!HeapTupleIsValid(variable->statsTuple))
			return;
		side->missing = ((Form_pg_statistic) GETSTRUCT(variable->statsTuple))->stanullfrac;
		if (!variable->acl_ok || variable->vartype != dp_types()->bson_value ||
			!get_attstatsslot(&slot, variable->statsTuple, STATISTIC_KIND_MCV, InvalidOid,
							  ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
			return;
		side->common = palloc(Max(slot.nvalues, 1) * sizeof(JoinValue));
		side->n = Min(slot.nvalues, slot.nnumbers);
		for (int i = 0; i < side->n; i++)
		{
			side->common[i].value = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(slot.values[i]));
			side->common[i].share = slot.numbers[i];
		}
	}
	qsort(side->common, side->n, sizeof(JoinValue), compare_join_values);
}

static void
match_common(const JoinSide *left, const JoinSide *right, JoinMatch *match)
{
	int i = 0;
	int j = 0;

	memset(match, 0, sizeof(*match));
	while (i < left->n && j < right->n)
	{
		int result = dp_value_compare(&left->common[i].value, &right->common[j].value);

		if (result == 0)
		{
			match->n++;
			match->product += left->common[i].share * right->common[j].share;
			match->left += left->common[i].share;
			match->right += right->common[j].share;
		}
		i += result <= 0;
		j += result >= 0;
	}
}

static double
sum_common(const JoinSide *side)
{
	double sum = 0;

	for (int i = 0; i < side->n; i++)
		sum += side->common[i].share;
	return sum;
}

/*
 * Pairs of matching rows, seen from one side: its rare values match the unmatched rest of the other
 * side.
 */
static double
match_from(const JoinMatch *match, double unmatched, double rare, const JoinSide *other,
		   double other_unmatched, double other_rare)
{
	double result = match->product;

	if (other->distinct > other->n)
		result += unmatched * other_rare / (other->distinct - other->n);
	if (other->distinct > match->n)
		result += rare * (other_rare + other_unmatched) / (other->distinct - match->n);
	return result;
}

static double
join_inner(const JoinSide *left, const JoinSide *right)
{
	JoinMatch match;
	double lunmatched;
	double runmatched;
	double lrare;
	double rrare;
	double a;
	double b;

	if (left->n == 0 || right->n == 0)
		return (1.0 - left->missing) * (1.0 - right->missing) /
			   Max(Max(left->distinct, right->distinct), 1.0);
	match_common(left, right, &match);
	lunmatched = Max(sum_common(left) - match.left, 0);
	runmatched = Max(sum_common(right) - match.right, 0);
	lrare = Max(1.0 - left->missing - match.left - lunmatched, 0);
	rrare = Max(1.0 - right->missing - match.right - runmatched, 0);
	a = match_from(&match, lunmatched, lrare, right, runmatched, rrare);
	b = match_from(&match, runmatched, rrare, left, lunmatched, lrare);
	/* the smaller estimate comes from the side that has more different values */
	return Min(a, b);
}

/*
 * Rows of the left side that have a match.
 */
static double
join_semi(const JoinSide *left, const JoinSide *right)
{
	double inner = Min(right->distinct, Max(right->rows, 1.0));
	bool guess = left->is_default || (right->is_default && inner >= right->distinct);
	JoinMatch match = { 0 };
	double rare;
	double part = 0.5;

	if (left->n > 0 && right->n > 0)
		match_common(left, right, &match);
	rare = Max(1.0 - left->missing - match.left, 0);
	if (!guess)
	{
		double mine = Max(left->distinct - match.n, 1.0);
		double theirs = Max(inner - match.n, 0);

		part = mine <= theirs ? 1.0 : theirs / mine;
	}
	return match.left + part * rare;
}

/*
 * Returns false if PostgreSQL's own estimator knows as much.
 */
static bool
join_equality(FunctionCallInfo fcinfo, double *result)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	List *args = (List *) PG_GETARG_POINTER(2);
	SpecialJoinInfo *sjinfo = (SpecialJoinInfo *) PG_GETARG_POINTER(4);
	VariableStatData left;
	VariableStatData right;
	bool reversed;
	JoinSide l;
	JoinSide r;

	if (list_length(args) != 2)
		return false;
	get_join_variables(root, args, sjinfo, &left, &right, &reversed);
	describe_side(root, &left, &l);
	describe_side(root, &right, &r);
	*result = join_inner(&l, &r);
	if (sjinfo->jointype == JOIN_SEMI || sjinfo->jointype == JOIN_ANTI)
	{
		const JoinSide *inner = reversed ? &l : &r;
		double semi = reversed ? join_semi(&r, &l) : join_semi(&l, &r);

		/* not more than there are pairs */
		*result = Min(semi, *result * Max(inner->rows, 1.0));
	}
	ReleaseVariableStats(left);
	ReleaseVariableStats(right);
	CLAMP_PROBABILITY(*result);
	return l.is_field || r.is_field;
}

/*
 * bson_value_eqjoinsel(internal, oid, internal, int2, internal) -> float8
 */
DP_FUNCTION(dp_bson_value_eqjoinsel);
Datum
dp_bson_value_eqjoinsel(PG_FUNCTION_ARGS)
{
	double result;

	if (join_equality(fcinfo, &result))
		PG_RETURN_FLOAT8(result);
	return DirectFunctionCall5Coll(eqjoinsel, PG_GET_COLLATION(), PG_GETARG_DATUM(0),
								   PG_GETARG_DATUM(1), PG_GETARG_DATUM(2), PG_GETARG_DATUM(3),
								   PG_GETARG_DATUM(4));
}

/*
 * bson_value_neqjoinsel(internal, oid, internal, int2, internal) -> float8
 */
DP_FUNCTION(dp_bson_value_neqjoinsel);
Datum
dp_bson_value_neqjoinsel(PG_FUNCTION_ARGS)
{
	SpecialJoinInfo *sjinfo = (SpecialJoinInfo *) PG_GETARG_POINTER(4);
	double result;

	if (sjinfo->jointype != JOIN_SEMI && sjinfo->jointype != JOIN_ANTI &&
		join_equality(fcinfo, &result))
		PG_RETURN_FLOAT8(1.0 - result);
	return DirectFunctionCall5Coll(neqjoinsel, PG_GET_COLLATION(), PG_GETARG_DATUM(0),
								   PG_GETARG_DATUM(1), PG_GETARG_DATUM(2), PG_GETARG_DATUM(3),
								   PG_GETARG_DATUM(4));
}
