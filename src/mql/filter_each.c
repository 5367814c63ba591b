/*
 * filter_each.c
 *		The conditions of a filter on single paths, for choosing an index.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "mql/filter_node.h"

static void each_comparison(const DpFilterNode *node, DpFilterComparisonVisit visit, void *arg);

void
dp_filter_each_comparison(const DpFilter *filter, DpFilterComparisonVisit visit, void *arg)
{
	each_comparison(filter->root, visit, arg);
}

/*
 * Visits the comparisons below a conjunction, or the one that the node is.
 */
static void
each_comparison(const DpFilterNode *node, DpFilterComparisonVisit visit, void *arg)
{
	switch (node->op)
	{
		case FILTER_AND:
			check_stack_depth();
			for (int i = 0; i < node->u.children.n; i++)
				each_comparison(node->u.children.nodes[i], visit, arg);
			break;
		case FILTER_EQ:
			visit(node->path->path, DP_COMPARE_EQ, &node->value, 1, arg);
			break;
		case FILTER_LT:
			visit(node->path->path, DP_COMPARE_LT, &node->value, 1, arg);
			break;
		case FILTER_LTE:
			visit(node->path->path, DP_COMPARE_LTE, &node->value, 1, arg);
			break;
		case FILTER_GT:
			visit(node->path->path, DP_COMPARE_GT, &node->value, 1, arg);
			break;
		case FILTER_GTE:
			visit(node->path->path, DP_COMPARE_GTE, &node->value, 1, arg);
			break;
		case FILTER_IN:
			if (node->u.in.nregexes == 0 && !node->u.in.has_null)
				visit(node->path->path, DP_COMPARE_IN, node->u.in.values, node->u.in.nvalues, arg);
			break;
		default:
			break;
	}
}
