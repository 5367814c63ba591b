/*
 * treepath_plan.c
 *		Planner support for paths: btree ranges for "below" and "above", and the estimated
 *		number of rows.
 *
 *		path <@ x		path >= x AND path <= treepath_last(x)
 *		path @> x		path = ANY (treepath_prefixes(x))
 *
 * Both are exact.  x may be any expression that is known when the scan begins.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_am.h"
#include "catalog/pg_statistic.h"
#include "commands/defrem.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "parser/parse_func.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "bson/catalog.h"
#include "types/tree/treepath.h"

/* Default: the share of rows below or above a path */
#define DEFAULT_BELOW 0.005
#define DEFAULT_ABOVE 0.001

/* The OID of a function of ours with one argument of the type. */
static Oid
own_function(const char *name, Oid type)
{
	List *qualified =
		list_make2(makeString(get_namespace_name(dp_types()->schema)), makeString(pstrdup(name)));

	return LookupFuncName(qualified, 1, &type, false);
}

/* A call of a function with one argument. */
static Expr *
call(const char *name, Oid type, Oid result, Node *arg)
{
	return (Expr *) makeFuncExpr(own_function(name, type), result, list_make1(copyObject(arg)),
								 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/* The conditions on an index for "indexed <@ bound" or "indexed @> bound", or NIL. */
static List *
index_conditions(Node *indexed, Node *bound, bool below, Oid opfamily)
{
	Oid type = exprType(indexed);
	Oid ge;
	Oid le;
	Oid eq;

	if (exprType(bound) != type)
		return NIL;
	ge = get_opfamily_member(opfamily, type, type, BTGreaterEqualStrategyNumber);
	le = get_opfamily_member(opfamily, type, type, BTLessEqualStrategyNumber);
	eq = get_opfamily_member(opfamily, type, type, BTEqualStrategyNumber);
	if (!OidIsValid(ge) || !OidIsValid(le) || !OidIsValid(eq))
		return NIL;
	if (below)
		return list_make2(make_opclause(ge, BOOLOID, false, (Expr *) indexed,
										(Expr *) copyObject(bound), InvalidOid, InvalidOid),
						  make_opclause(le, BOOLOID, false, (Expr *) copyObject(indexed),
										call("treepath_last", type, type, bound), InvalidOid,
										InvalidOid));
	else
	{
		Oid array = get_array_type(type);
		Node *prefixes = (Node *) call("treepath_prefixes", type, array, bound);
		ScalarArrayOpExpr *any = makeNode(ScalarArrayOpExpr);

		if (IsA(bound, Const))
			prefixes = eval_const_expressions(NULL, prefixes);
		any->opno = eq;
		any->opfuncid = get_opcode(eq);
		any->useOr = true;
		any->args = list_make2(indexed, prefixes);
		any->location = -1;
		return list_make1(any);
	}
}

/* Answers the planner's requests about a call whose arguments are paths. */
static Node *
support(Node *node, bool below)
{
	SupportRequestIndexCondition *request;
	List *args;
	Node *indexed;
	Node *bound;

	if (!IsA(node, SupportRequestIndexCondition))
		return NULL;
	request = (SupportRequestIndexCondition *) node;
	if (request->index->relam != BTREE_AM_OID)
		return NULL;
	if (is_opclause(request->node))
		args = ((OpExpr *) request->node)->args;
	else if (is_funcclause(request->node))
		args = ((FuncExpr *) request->node)->args;
	else
		return NULL;
	indexed = list_nth(args, request->indexarg);
	bound = list_nth(args, 1 - request->indexarg);
	if (!is_pseudo_constant_for_index(request->root, bound, request->index))
		return NULL;
	/* x @> path is path <@ x */
	if (request->indexarg == 1)
		below = !below;
	request->lossy = false;
	return (Node *) index_conditions(indexed, bound, below, request->opfamily);
}

/*
 * treepath_below_support(internal) -> internal, for <@
 */
DP_FUNCTION(dp_treepath_below_support);
Datum
dp_treepath_below_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(support((Node *) PG_GETARG_POINTER(0), true));
}

/*
 * treepath_above_support(internal) -> internal, for @>
 */
DP_FUNCTION(dp_treepath_above_support);
Datum
dp_treepath_above_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(support((Node *) PG_GETARG_POINTER(0), false));
}

/* The estimate of core's estimator for a comparison. */
static double
comparison_estimate(PlannerInfo *root, PGFunction estimator, Oid operator, Node * variable,
					Datum bound, Oid type, int varRelid)
{
	Const *constant = makeConst(type, -1, InvalidOid, -1, bound, false, false);

	return DatumGetFloat8(DirectFunctionCall4(estimator, PointerGetDatum(root),
											  ObjectIdGetDatum(operator),
											  PointerGetDatum(list_make2(variable, constant)),
											  Int32GetDatum(varRelid)));
}

/* The share of rows with a path below one that is known. */
static double
below_estimate(PlannerInfo *root, VariableStatData *variable, Node *node, Const *bound,
			   int varRelid)
{
	Oid type = bound->consttype;
	Oid opclass = GetDefaultOpClass(type, BTREE_AM_OID);
	Oid family = get_opclass_family(opclass);
	struct varlena *path = PG_DETOAST_DATUM_PACKED(bound->constvalue);
	DpTreepathBuilder last;
	double ge;
	double le;
	double least;

	dp_treepath_begin(&last);
	dp_treepath_append_ids(&last, DP_TREEPATH_DATA(path), DP_TREEPATH_SIZE(path));
	dp_treepath_append_maxkey(&last);
	ge = comparison_estimate(root, scalargesel,
							 get_opfamily_member(family, type, type, BTGreaterEqualStrategyNumber),
							 node, bound->constvalue, type, varRelid);
	le = comparison_estimate(root, scalarlesel,
							 get_opfamily_member(family, type, type, BTLessEqualStrategyNumber),
							 node, PointerGetDatum(dp_treepath_finish(&last)), type, varRelid);
	if (ge == DEFAULT_INEQ_SEL && le == DEFAULT_INEQ_SEL)
		return DEFAULT_BELOW;

	/* nulls are in neither: 1 - ge and 1 - le both count them */
	if (HeapTupleIsValid(variable->statsTuple))
		ge += ((Form_pg_statistic) GETSTRUCT(variable->statsTuple))->stanullfrac;

	/* a histogram bin is the finest resolution: assume a part of one */
	least =
		variable->rel != NULL && variable->rel->tuples > 0 ? 1.0 / variable->rel->tuples : 1e-10;
	return Max(ge + le - 1.0, Min(least * 10, DEFAULT_BELOW));
}

/*
 * The share of rows whose path is above one that is known: each of its prefixes once, if paths are
 * unique.
 */
static double
above_estimate(VariableStatData *variable, Const *bound)
{
	struct varlena *path = PG_DETOAST_DATUM_PACKED(bound->constvalue);
	bool is_default;
	double distinct = get_variable_numdistinct(variable, &is_default);
	int n = dp_treepath_count(DP_TREEPATH_DATA(path), DP_TREEPATH_SIZE(path));

	if (is_default || distinct < 1)
		return DEFAULT_ABOVE;
	return n / distinct;
}

/* The estimator of both operators. */
static Datum
estimate(FunctionCallInfo fcinfo, bool below)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	List *args = (List *) PG_GETARG_POINTER(2);
	int varRelid = PG_GETARG_INT32(3);
	VariableStatData variable;
	Node *other;
	bool varonleft;
	double share;

	if (!get_restriction_variable(root, args, varRelid, &variable, &other, &varonleft))
		PG_RETURN_FLOAT8(below ? DEFAULT_BELOW : DEFAULT_ABOVE);
	if (!varonleft)
		below = !below;
	share = below ? DEFAULT_BELOW : DEFAULT_ABOVE;
	if (IsA(other, Const))
	{
		if (((Const *) other)->constisnull)
			share = 0;
		else if (below)
			share = below_estimate(root, &variable, varonleft ? linitial(args) : lsecond(args),
								   (Const *) other, varRelid);
		else
			share = above_estimate(&variable, (Const *) other);
	}
	ReleaseVariableStats(variable);
	CLAMP_PROBABILITY(share);
	PG_RETURN_FLOAT8(share);
}

/*
 * treepath_belowsel(internal, oid, internal, int4) -> float8: RESTRICT of <@
 */
DP_FUNCTION(dp_treepath_belowsel);
Datum
dp_treepath_belowsel(PG_FUNCTION_ARGS)
{
	return estimate(fcinfo, true);
}

/*
 * treepath_abovesel(internal, oid, internal, int4) -> float8: RESTRICT of @>
 */
DP_FUNCTION(dp_treepath_abovesel);
Datum
dp_treepath_abovesel(PG_FUNCTION_ARGS)
{
	return estimate(fcinfo, false);
}
