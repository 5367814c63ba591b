/*
 * percentile.h
 *		Percentiles of numbers, for $median and $percentile as accumulators and as expressions.
 */
#ifndef DP_MQL_PERCENTILE_H
#define DP_MQL_PERCENTILE_H

#include "bson/builder.h"

/* What is said about a wrong method */
#define DP_PERCENTILE_METHODS "\"method\" must be \"approximate\", \"discrete\" or \"continuous\""

/* Reads a method.  Returns false if it is none. */
extern bool dp_percentile_method(const DpValue *method, bool *continuous);

/* Reads an array of numbers from 0 to 1, palloc'd; their number, 0 if it is not one. */
extern int dp_percentile_points(const DpValue *array, double **points);

extern void dp_percentile_sort(double *numbers, int64 n);

/* A percentile of sorted numbers, of which there is at least one. */
extern double dp_percentile(const double *sorted, int64 n, double point, bool continuous);

/* Appends the array of percentiles, of nulls if there are no numbers. */
extern void dp_percentiles_append(DpBuilder *b, const double *sorted, int64 n, const double *points,
								  int npoints, bool continuous);

#endif
