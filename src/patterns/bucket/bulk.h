/*
 * bulk.h
 *		Many measurements in one statement: collected by group and span, packed in
 *		memory, and written in the order of group and time, without first waiting
 *		as rows of a table.
 *
 * If memory is full, rows are packed and the buckets sorted, in files if necessary;
 * those of one group and span are merged at the end.  If a statement has few
 * measurements, or few of a span and no later ones, it leaves them waiting like
 * single ones.
 */
#ifndef DP_PATTERNS_BUCKET_BULK_H
#define DP_PATTERNS_BUCKET_BULK_H

#include "patterns/bucket/store.h"

typedef struct DpBucketBulk DpBucketBulk;

/* Statements with fewer measurements pack nothing directly. */
#define DP_BUCKET_BULK_LEAST 1000

extern DpBucketBulk *dp_bucket_bulk_create(DpBucketStore *store);

/* A row of the relation; copied. */
extern void dp_bucket_bulk_add(DpBucketBulk *bulk, const Datum *values, const bool *nulls);

/* The rows of a bucket of the relation, whose span and size do not matter. */
extern void dp_bucket_bulk_add_bucket(DpBucketBulk *bulk, const DpBucketGroup *group, Datum bucket);

/* Writes everything. */
extern void dp_bucket_bulk_finish(DpBucketBulk *bulk);

#endif /* DP_PATTERNS_BUCKET_BULK_H */
