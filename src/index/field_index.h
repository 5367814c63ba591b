/*
 * field_index.h
 *		Indexes on fields for filters and orders.
 */
#ifndef DP_INDEX_FIELD_INDEX_H
#define DP_INDEX_FIELD_INDEX_H

/* Sets the hook of the planner that adds paths for them. */
extern void dp_field_indexes_init(void);

#endif /* DP_INDEX_FIELD_INDEX_H */
