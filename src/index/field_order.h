/*
 * field_order.h
 *		Orders by fields that indexes have.
 */
#ifndef DP_INDEX_FIELD_ORDER_H
#define DP_INDEX_FIELD_ORDER_H

#include "nodes/pathnodes.h"

/* Adds paths that read a table by an index in the order of the query. */
extern void dp_add_ordered_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid);

/* The column of documents that a call concerns, see dp_doc_is_call(). */
extern Var *dp_call_column(Node *call);

#endif /* DP_INDEX_FIELD_ORDER_H */
