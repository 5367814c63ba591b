/*
 * field_index.h
 *		Indexes on fields for filters and orders.
 */
#ifndef DP_INDEX_FIELD_INDEX_H
#define DP_INDEX_FIELD_INDEX_H

#include "nodes/primnodes.h"

#include "bson/reader.h"

/* Sets the hook of the planner that adds paths for them. */
extern void dp_field_indexes_init(void);

/* field = ANY (values) */
extern Expr *dp_field_any(Expr *field, const DpValue *values, int n);

#endif /* DP_INDEX_FIELD_INDEX_H */
