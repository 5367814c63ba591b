/*
 * selectivity_field.h
 *		Fields of documents for the planner: doc -> 'path' as an expression, and its statistics.
 *		For the files selectivity*.c only.
 */
#ifndef DP_INDEX_STATS_SELECTIVITY_FIELD_H
#define DP_INDEX_STATS_SELECTIVITY_FIELD_H

#include "utils/selfuncs.h"

#include "index/stats/selectivity_path.h"

typedef struct DpField
{
	DpEstimator *estimator;
	DpKnown known;
} DpField;

/*
 * Whether the expression is a field, at a constant path, of a document of
 * which there are statistics.
 */
extern bool dp_field_recognize(PlannerInfo *root, Node *expression, int varRelid, DpField *field);

/* Whether the expression is a field, or the text of one, at a constant path. */
extern bool dp_field_is_field(Node *expression);

/* Whether PostgreSQL has statistics of the expression, other than those of field_stats.c. */
extern bool dp_field_is_described(const VariableStatData *variable);

/* The share of all rows in which there is something at the path. */
extern double dp_field_present(const DpField *field);

#endif /* DP_INDEX_STATS_SELECTIVITY_FIELD_H */
