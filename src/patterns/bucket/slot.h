/*
 * slot.h
 *		Relations with a granularity: one measurement per group and slot of time.
 *
 * Whoever writes a measurement to a span takes the span's lock until his
 * transaction ends, and then looks at what is there, waiting or packed, with
 * the latest snapshot; so he never overlooks one.  Packing moves measurements
 * without that lock: a snapshot sees each of them in exactly one of the places.
 */
#ifndef DP_PATTERNS_BUCKET_SLOT_H
#define DP_PATTERNS_BUCKET_SLOT_H

#include "patterns/bucket/store.h"

/*
 * Writes a measurement as same_slot says.  Returns whether it was written or
 * has changed another (false: kept what was there).  Raises UNIQUE_VIOLATION
 * for a slot that is taken, if the relation refuses second ones.
 */
extern bool dp_bucket_slot_insert(DpBucketStore *store, const Datum *values, const bool *nulls,
								  ItemPointer tid);

/*
 * Raises UNIQUE_VIOLATION if the measurement's slot is taken by another than
 * one in the bucket except; takes the lock.
 */
extern void dp_bucket_slot_free(DpBucketStore *store, const Datum *values, const bool *nulls,
								const ItemPointerData *except);

/* Whether two rows lie in the same slot of the same group. */
extern bool dp_bucket_slot_same(DpBucketStore *store, const Datum *a, const bool *a_nulls,
								const Datum *b, const bool *b_nulls);

/* Raises UNIQUE_VIOLATION if two measurements of a bucket lie in one slot. */
extern void dp_bucket_slot_verify(DpBucketStore *store, Datum data);

#endif /* DP_PATTERNS_BUCKET_SLOT_H */
