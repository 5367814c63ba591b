/*
 * support.c
 *		Planner support for bson_match(), and so for doc @@ filter: the index condition, the
 *		selectivity, and filters that are parameters.
 *
 * The operator @@ is in no operator class.  For an index of the class bson_ops the planner gets the
 * condition doc @@~ part instead, where part is a filter with those conditions that the index
 * serves and that are selective enough; @@ itself stays as a filter on the found rows.  So EXPLAIN
 * shows both, the estimate of index rows is that of part, and an index that can serve nothing is
 * not considered.  If the filter is unknown at plan time, the condition is doc @@~ filter and the
 * choice is made at execution.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "bson/catalog.h"
#include "bson/path.h"
#include "index/query.h"
#include "index/stats/selectivity.h"

static Node *with_stable_filter(SupportRequestSimplify *request);
static bool reads_relation(const Query *query);
static List *index_condition(SupportRequestIndexCondition *request);
static Const *served_part(SupportRequestIndexCondition *request, Node *document, Const *filter);
static double estimate_node(const DpFilterNode *node, void *arg);

/*
 * bson_match_support(internal) -> internal
 */
DP_FUNCTION(dp_bson_match_support);
Datum
dp_bson_match_support(PG_FUNCTION_ARGS)
{
	Node *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSimplify))
		PG_RETURN_POINTER(with_stable_filter((SupportRequestSimplify *) request));
	if (IsA(request, SupportRequestIndexCondition))
		PG_RETURN_POINTER(index_condition((SupportRequestIndexCondition *) request));
	if (IsA(request, SupportRequestSelectivity) &&
		dp_match_selectivity_request((SupportRequestSelectivity *) request))
		PG_RETURN_POINTER(request);
	PG_RETURN_POINTER(NULL);
}

/*
 * doc @@ $1 with its parameter marked as one that stays the same while the expression lives, so
 * that a large filter is not compared for each row; or NULL.  An expression in a query that reads
 * a relation lives for one execution.  Without a relation PL/pgSQL evaluates it again with other
 * values of its variables.
 */
static Node *
with_stable_filter(SupportRequestSimplify *request)
{
	FuncExpr *call = request->fcall;
	Node *marked;
	Oid bson;
	Oid operator;

	if (request->root == NULL || list_length(call->args) != 2 ||
		!reads_relation(request->root->parse))
		return NULL;
	marked = dp_arg_mark_stable(lsecond(call->args));
	if (marked == NULL)
		return NULL;
	bson = exprType(marked);
	operator= OpernameGetOprid(list_make2(makeString(get_namespace_name(dp_types()->schema)),
										  makeString("@@")),
							   bson, bson);
	if (!OidIsValid(operator) || get_opcode(operator) != call->funcid)
		return NULL;
	return (Node *) make_opclause(operator, BOOLOID, false, linitial(call->args), (Expr *) marked,
								  InvalidOid, call->inputcollid);
}

/* Whether a query had anything in FROM before the planner put an empty row there. */
static bool
reads_relation(const Query *query)
{
	ListCell *cell;

	foreach(cell, query->rtable)
		if (((RangeTblEntry *) lfirst(cell))->rtekind != RTE_RESULT)
			return true;
	return false;
}

/*
 * The condition on an index column that follows from bson_match(column, filter),
 * as a list, or NIL.
 */
static List *
index_condition(SupportRequestIndexCondition *request)
{
	List *args;
	Node *document;
	Node *filter;
	Oid operator;

	if (IsA(request->node, OpExpr))
		args = ((OpExpr *) request->node)->args;
	else if (IsA(request->node, FuncExpr))
		args = ((FuncExpr *) request->node)->args;
	else
		return NIL;
	if (request->indexarg != 0 || list_length(args) != 2 || request->index->relam != GIN_AM_OID)
		return NIL;
	document = linitial(args);
	filter = lsecond(args);

	/* an index evaluates it once anyway */
	if (IsA(filter, RelabelType) &&
		exprType(filter) == exprType((Node *) ((RelabelType *) filter)->arg))
		filter = (Node *) ((RelabelType *) filter)->arg;

	/* the operator class is ours if its operator is this function */
	operator= get_opfamily_member(request->opfamily, exprType(filter), exprType(filter),
								  DP_STRATEGY_MATCH);
	if (!OidIsValid(operator) || get_opcode(operator) != request->funcid)
		return NIL;

	if (IsA(filter, Const))
	{
		filter = (Node *) served_part(request, document, (Const *) filter);
		if (filter == NULL)
			return NIL;
	}
	else if (contain_volatile_functions(filter) ||
			 bms_is_member(request->index->rel->relid, pull_varnos(request->root, filter)))
		return NIL;

	request->lossy = true;
	return list_make1(make_opclause(operator, BOOLOID, false, (Expr *) document, (Expr *) filter,
									InvalidOid, request->indexcollation));
}

/* The part of a filter that the index serves, or NULL if none. */
static Const *
served_part(SupportRequestIndexCondition *request, Node *document, Const *filter)
{
	struct IndexOptInfo *index = request->index;
	bytea *stored = index->opclassoptions != NULL ? index->opclassoptions[request->indexcol] : NULL;
	DpEstimator *estimator;
	DpKeyOptions *options;
	DpCondition *condition;
	DpFilter *compiled;
	DpValue spec;
	bool by_statistics = false;

	if (filter->constisnull)
		return NULL;
	spec = dp_value_of_document(PG_DETOAST_DATUM_PACKED(filter->constvalue));
	compiled = dp_filter_compile(&spec, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
	options = dp_key_options_read(stored);
	estimator = dp_estimator_create(request->root, document, index->rel->relid);
	condition = dp_estimator_is_informed(estimator)
					? dp_conditions_estimated(compiled->root, options, estimate_node, estimator,
											  &by_statistics)
					: dp_conditions_of_filter(compiled->root, options, false);
	if (condition->op == DP_COND_ALL)
		return NULL;
	return makeConst(filter->consttype, -1, InvalidOid, -1,
					 PointerGetDatum(dp_conditions_to_filter(condition, by_statistics)), false,
					 false);
}

static double
estimate_node(const DpFilterNode *node, void *arg)
{
	return dp_estimate_node(arg, node);
}
