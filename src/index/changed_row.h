/*
 * changed_row.h
 *		A scan for rows that other transactions have changed.
 */
#ifndef DP_INDEX_CHANGED_ROW_H
#define DP_INDEX_CHANGED_ROW_H

#include "nodes/pathnodes.h"

/*
 * A path without rows, which has any order.  It must be the first of several scans of a table in a
 * query that locks rows.
 */
extern Path *dp_changed_row_path(RelOptInfo *rel, List *pathkeys);

#endif /* DP_INDEX_CHANGED_ROW_H */
