/*
 * selectivity.h
 *		Estimates the share of a table's rows that satisfy a condition on their documents.
 *
 * An estimator is made for one document expression of a query (most often a column) and can be used
 * repeatedly.  It uses the statistics that ANALYZE collected about the expression (stats.h) if the
 * planning user may see them, and otherwise default values.  All estimates are shares of all rows
 * between 0 and 1, including rows whose document is null (which match nothing).
 */
#ifndef DP_INDEX_STATS_SELECTIVITY_H
#define DP_INDEX_STATS_SELECTIVITY_H

#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"

#include "mql/filter_node.h"

typedef struct DpEstimator DpEstimator;

/*
 * An estimator for the document that an expression of type bson returns.  varRelid is as for
 * restriction estimators: 0, or the only relation whose columns count as variable
 * (index->rel->relid in SupportRequestIndexCondition).  root may be NULL: then nothing is known.
 * The result is palloc'd, for use while one query is planned.
 */
extern DpEstimator *dp_estimator_create(PlannerInfo *root, Node *document, int varRelid);

/* Whether there are statistics behind the estimates. */
extern bool dp_estimator_is_informed(const DpEstimator *estimator);

/*
 * A filter that was compiled for documents: all of it, or one of its nodes (a condition or a tree
 * of them).
 */
extern double dp_estimate_filter(DpEstimator *estimator, const DpFilter *filter);
extern double dp_estimate_node(DpEstimator *estimator, const DpFilterNode *node);

/*
 * For the planner support function of bson_match(doc, filter): fills in the selectivity of a call.
 * Returns false if it cannot (a join clause).
 */
extern bool dp_match_selectivity_request(SupportRequestSelectivity *request);

/*
 * The shares of all rows in which a field comes before all arrays, is an array, and comes after
 * them, by the statistics of an index on it.  Returns false if there are none.
 */
extern bool dp_estimate_arrays(PlannerInfo *root, Node *field, double shares[3]);

#endif /* DP_INDEX_STATS_SELECTIVITY_H */
