/*
 * field_order.h
 *		Orders by fields that indexes have.
 */
#ifndef DP_INDEX_FIELD_ORDER_H
#define DP_INDEX_FIELD_ORDER_H

#include "nodes/pathnodes.h"

/* What follows from a filter: the clauses on the field hold, or it is an array, or NULL if deep. */
typedef struct DpLooseField
{
	Expr *field;
	List *clauses;
	bool deep;
	Expr * or ; /* of all this */
} DpLooseField;

/*
 * Adds paths that read a table by an index in the order of the query.  implied: what follows from
 * its filters (RestrictInfo); loose: and for which fields (DpLooseField).
 */
extern void
dp_add_ordered_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid, List *implied, List *loose);

/* The field is an array; is NULL, or is not.  The first has two clauses, which share an estimate.
 */
extern List *dp_array_clauses(Expr *field);
extern void dp_array_estimate(List *conditions, double share);
extern Expr *dp_null_test(Expr *field, NullTestType type);

/* The column of documents that a call concerns, see dp_doc_is_call(). */
extern Var *dp_call_column(Node *call);

#endif /* DP_INDEX_FIELD_ORDER_H */
