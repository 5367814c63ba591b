/*
 * selectivity.c
 *		Estimators for document expressions, and the selectivity functions of the operators @@,
 *		@@~, @>, ?, ?| and ?&.
 *
 * Statistics are found as for PostgreSQL's own operators: those of a column, of an index on the
 * expression, or of extended statistics on it.  They are used only if the user may read all rows
 * and the column (VariableStatData.acl_ok), because none of these operators is leakproof.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"

#include "bson/catalog.h"
#include "index/stats/selectivity_path.h"
#include "mql/spec.h"

static double exists_probability(const DpEstimator *estimator, const char *path, Size len);
static double estimate_match(PlannerInfo *root, Node *document, Node *filter, int varRelid);

DpEstimator *
dp_estimator_create(PlannerInfo *root, Node *document, int varRelid)
{
	DpEstimator *estimator = palloc0(sizeof(DpEstimator));
	VariableStatData variable;
	double rows = 0;

	estimator->documents = 1000;
	if (root == NULL || document == NULL)
		return estimator;
	examine_variable(root, document, varRelid, &variable);
	if (variable.rel != NULL)
		rows = variable.rel->tuples;
	if (HeapTupleIsValid(variable.statsTuple))
	{
		estimator->null_frac = ((Form_pg_statistic) GETSTRUCT(variable.statsTuple))->stanullfrac;
		if (variable.acl_ok)
			estimator->stats = dp_stats_of_tuple(variable.statsTuple);
	}
	rows *= 1.0 - estimator->null_frac;
	if (estimator->stats != NULL)
		estimator->documents = Max(rows, 1.0);
	ReleaseVariableStats(variable);
	return estimator;
}

bool
dp_estimator_is_informed(const DpEstimator *estimator)
{
	return estimator->stats != NULL;
}

/*
 * The value of an expression if it is known at plan time.  Returns false if it is not; sets *isnull
 * if it is NULL.
 */
static bool
known_value(PlannerInfo *root, Node *expression, Datum *value, Oid *type, bool *isnull)
{
	if (root != NULL)
		expression = estimate_expression_value(root, expression);
	while (IsA(expression, RelabelType))
		expression = (Node *) ((RelabelType *) expression)->arg;
	if (!IsA(expression, Const))
		return false;
	*value = ((Const *) expression)->constvalue;
	*type = ((Const *) expression)->consttype;
	*isnull = ((Const *) expression)->constisnull;
	return true;
}

/* ---------------------------------------------------------------- filters */

/*
 * document @@ filter, with the filter as an expression; a filter that is not known yet gets a
 * default.
 */
static double
estimate_match(PlannerInfo *root, Node *document, Node *filter, int varRelid)
{
	DpEstimator *estimator = dp_estimator_create(root, document, varRelid);
	MemoryContext planner;
	MemoryContext scratch;
	double selectivity;
	Datum value;
	Oid type;
	bool isnull;
	DpValue spec;

	if (!known_value(root, filter, &value, &type, &isnull))
		return DEFAULT_MATCHING_SEL * (1.0 - estimator->null_frac);
	if (isnull)
		return 0.0;
	scratch = AllocSetContextCreate(CurrentMemoryContext, "docpatterns filter to be estimated",
									DP_SPEC_CONTEXT_SIZES);
	planner = MemoryContextSwitchTo(scratch);
	spec = dp_value_of_document(PG_DETOAST_DATUM_PACKED(value));
	selectivity =
		dp_estimate_filter(estimator,
						   dp_filter_compile(&spec, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE,
											 NULL));
	MemoryContextSwitchTo(planner);
	MemoryContextDelete(scratch);
	return selectivity;
}

bool
dp_match_selectivity_request(SupportRequestSelectivity *request)
{
	if (request->is_join || list_length(request->args) != 2)
		return false;
	request->selectivity = estimate_match(request->root, linitial(request->args),
										  lsecond(request->args), request->varRelid);
	return true;
}

/*
 * bson_matchsel(internal, oid, internal, int4) -> float8, for @@ and @@~.
 */
DP_FUNCTION(dp_bson_matchsel);
Datum
dp_bson_matchsel(PG_FUNCTION_ARGS)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	List *args = (List *) PG_GETARG_POINTER(2);

	PG_RETURN_FLOAT8(estimate_match(root, linitial(args), lsecond(args), PG_GETARG_INT32(3)));
}

/* ---------------------------------------------------------------- containment */

/*
 * bson_containsel(internal, oid, internal, int4) -> float8, for @> and <@: a
 * column that contains a constant.  For a column that is contained in a
 * constant there is a default.
 */
DP_FUNCTION(dp_bson_containsel);
Datum
dp_bson_containsel(PG_FUNCTION_ARGS)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	List *args = (List *) PG_GETARG_POINTER(2);
	int varRelid = PG_GETARG_INT32(3);
	char *name = get_opname(PG_GETARG_OID(1));
	bool turned = name != NULL && strcmp(name, "<@") == 0;
	Node *container = turned ? lsecond(args) : linitial(args);
	Node *contained = turned ? linitial(args) : lsecond(args);
	DpScope scope = { DP_SCOPE_DOCUMENT, NULL, NULL, 0 };
	DpEstimator *estimator;
	Datum value;
	Oid type;
	bool isnull;
	DpValue document;
	double result = DEFAULT_MATCHING_SEL;

	if (known_value(root, contained, &value, &type, &isnull))
	{
		if (isnull)
			PG_RETURN_FLOAT8(0.0);
		estimator = dp_estimator_create(root, container, varRelid);
		if (estimator->stats != NULL && type == dp_types()->bson)
		{
			document = dp_value_of_document(PG_DETOAST_DATUM_PACKED(value));
			result = dp_estimate_contains(estimator, &scope, &document);
		}
		result *= 1.0 - estimator->null_frac;
	}
	CLAMP_PROBABILITY(result);
	PG_RETURN_FLOAT8(result);
}

/* ---------------------------------------------------------------- existence */

/*
 * bson_existssel(internal, oid, internal, int4) -> float8, for ?, ?| and ?&.
 */
DP_FUNCTION(dp_bson_existssel);
Datum
dp_bson_existssel(PG_FUNCTION_ARGS)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	Oid operator= PG_GETARG_OID(1);
	List *args = (List *) PG_GETARG_POINTER(2);
	DpEstimator *estimator;
	Datum value;
	Oid type;
	bool isnull;
	double result = DEFAULT_MATCHING_SEL;

	if (!known_value(root, lsecond(args), &value, &type, &isnull))
		PG_RETURN_FLOAT8(DEFAULT_MATCHING_SEL);
	if (isnull)
		PG_RETURN_FLOAT8(0.0);
	estimator = dp_estimator_create(root, linitial(args), PG_GETARG_INT32(3));
	if (estimator->stats == NULL)
		PG_RETURN_FLOAT8(DEFAULT_MATCHING_SEL * (1.0 - estimator->null_frac));
	if (type == TEXTOID)
	{
		text *path = DatumGetTextPP(value);

		result = exists_probability(estimator, VARDATA_ANY(path), VARSIZE_ANY_EXHDR(path));
	}
	else if (type == TEXTARRAYOID)
	{
		char *name = get_opname(operator);
		bool all = name != NULL && strcmp(name, "?&") == 0;
		Datum *paths;
		bool *nulls;
		int n;
		double least = 1.0;
		double none = 1.0;

		deconstruct_array(DatumGetArrayTypeP(value), TEXTOID, -1, false, TYPALIGN_INT, &paths,
						  &nulls, &n);
		for (int i = 0; i < n; i++)
		{
			double one;

			if (nulls[i])
				continue;
			one = exists_probability(estimator, VARDATA_ANY(DatumGetPointer(paths[i])),
									 VARSIZE_ANY_EXHDR(DatumGetPointer(paths[i])));
			least *= one;
			none *= 1.0 - one;
		}
		result = all ? least : 1.0 - none;
	}
	result *= 1.0 - estimator->null_frac;
	CLAMP_PROBABILITY(result);
	PG_RETURN_FLOAT8(result);
}

/* The probability that the operator -> finds something. */
static double
exists_probability(const DpEstimator *estimator, const char *path, Size len)
{
	DpScope scope = { DP_SCOPE_DOCUMENT, NULL, NULL, 0 };
	DpKnown known;

	dp_scope_lookup(estimator, &scope, dp_path_parse(path, len), &known);
	if (known.path == NULL)
		return dp_scope_unknown(estimator);
	return known.positional ? known.path->reached * known.position : known.path->direct;
}
