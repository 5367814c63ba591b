/*
 * window.h
 *		What the SQL functions for windows have in common with the compiler of pipelines.
 */
#ifndef DP_MQL_PIPELINE_WINDOW_H
#define DP_MQL_PIPELINE_WINDOW_H

#include "bson/reader.h"

/* Whether there is a series of preferred numbers of that name. */
extern bool dp_granularity_exists(const char *name);

/*
 * The number of a series that is next above (or below) a number; in memory of the current context.
 * Zero and infinity stay.
 */
extern void dp_granularity_round(const char *name, const DpValue *v, bool up, DpValue *result);

/* The number with the other sign; in memory of the current context. */
extern void dp_window_negate(const DpValue *number, DpValue *result);

/* The weight of a new number in an exponential moving average of n: 2 / (n + 1). */
extern void dp_window_average_weight(int64 n, uint8 weight[DP_DECIMAL128_SIZE]);

#endif /* DP_MQL_PIPELINE_WINDOW_H */
