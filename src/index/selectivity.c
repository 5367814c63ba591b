/*
 * selectivity.c
 *		Estimators for document expressions, and the functions by which
 *		PostgreSQL's planner asks them.
 */
#include "postgres.h"

#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"

#include "index/selectivity.h"

struct DpEstimator
{
	double		null_frac;		/* rows whose document is null */
};

static double estimate(DpEstimator *estimator, const FilterNode *node);

DpEstimator *
dp_estimator_create(PlannerInfo *root, Node *document, int varRelid)
{
	DpEstimator *estimator = palloc0(sizeof(DpEstimator));

	return estimator;
}

bool
dp_estimator_is_informed(const DpEstimator *estimator)
{
	return false;
}

double
dp_estimate_filter(DpEstimator *estimator, const DpFilter *filter)
{
	return dp_estimate_node(estimator, filter->root);
}

double
dp_estimate_node(DpEstimator *estimator, const FilterNode *node)
{
	double		result = estimate(estimator, node) * (1.0 - estimator->null_frac);

	CLAMP_PROBABILITY(result);
	return result;
}

/*
 * The share of the documents that are not null.
 */
static double
estimate(DpEstimator *estimator, const FilterNode *node)
{
	double		result;

	switch (node->op)
	{
		case FILTER_TRUE:
			return 1.0;
		case FILTER_FALSE:
			return 0.0;
		case FILTER_AND:
			result = 1.0;
			for (int i = 0; i < node->u.children.n; i++)
				result *= estimate(estimator, node->u.children.nodes[i]);
			return result;
		case FILTER_OR:
		case FILTER_NOR:
			result = 1.0;
			for (int i = 0; i < node->u.children.n; i++)
				result *= 1.0 - estimate(estimator, node->u.children.nodes[i]);
			return node->op == FILTER_OR ? 1.0 - result : result;
		case FILTER_EQ:
			return DEFAULT_EQ_SEL;
		case FILTER_IN:
			result = DEFAULT_EQ_SEL * (node->u.in.nvalues + node->u.in.nregexes);
			return Min(result, 0.5);
		case FILTER_LT:
		case FILTER_LTE:
		case FILTER_GT:
		case FILTER_GTE:
			return DEFAULT_INEQ_SEL;
		default:
			return DEFAULT_MATCHING_SEL;
	}
}

double
dp_estimate_match(PlannerInfo *root, Node *document, Node *filter, int varRelid)
{
	DpEstimator *estimator = dp_estimator_create(root, document, varRelid);
	struct varlena *source;
	DpValue		spec;

	if (root != NULL)
		filter = estimate_expression_value(root, filter);
	if (!IsA(filter, Const))
		return DEFAULT_MATCHING_SEL * (1.0 - estimator->null_frac);
	if (((Const *) filter)->constisnull)
		return 0.0;
	source = PG_DETOAST_DATUM_PACKED(((Const *) filter)->constvalue);
	spec = dp_value_of_document(source);
	return dp_estimate_filter(estimator, dp_filter_compile(&spec, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL));
}

bool
dp_match_selectivity_request(SupportRequestSelectivity *request)
{
	if (request->is_join || list_length(request->args) != 2)
		return false;
	request->selectivity = dp_estimate_match(request->root, linitial(request->args),
											 lsecond(request->args), request->varRelid);
	return true;
}
