/*
 * field_stats.h
 *		Statistics of fields for PostgreSQL's own estimates.
 */
#ifndef DP_INDEX_STATS_FIELD_STATS_H
#define DP_INDEX_STATS_FIELD_STATS_H

/* Sets the hooks of the planner that ask for them. */
extern void dp_field_stats_init(void);

#endif /* DP_INDEX_STATS_FIELD_STATS_H */
