/*
 * slot.h
 *		Relations with a granularity: one measurement per group and slot of time.
 *
 * A writer of a measurement locks its span until the transaction ends, then reads
 * existing measurements, waiting or packed, with the latest snapshot, so that it
 * misses none.  Packing moves measurements without that lock: a snapshot shows each
 * either waiting or packed.
 */
#ifndef DP_PATTERNS_BUCKET_SLOT_H
#define DP_PATTERNS_BUCKET_SLOT_H

#include "patterns/bucket/store.h"

/*
 * Writes a measurement according to same_slot. Returns whether it was written or has changed
 * another (false: kept the existing one). Raises UNIQUE_VIOLATION for an occupied slot if the
 * relation refuses second measurements.
 */
extern bool dp_bucket_slot_insert(DpBucketStore *store, const Datum *values, const bool *nulls,
								  ItemPointer tid);

/*
 * Takes the lock; raises UNIQUE_VIOLATION if another measurement than one in the bucket except is
 * in the slot.
 */
extern void dp_bucket_slot_free(DpBucketStore *store, const Datum *values, const bool *nulls,
								const ItemPointerData *except);

/* Returns whether two rows belong to the same slot of the same group. */
extern bool dp_bucket_slot_same(DpBucketStore *store, const Datum *a, const bool *a_nulls,
								const Datum *b, const bool *b_nulls);

/* Raises UNIQUE_VIOLATION if two measurements of a bucket belong to one slot. */
extern void dp_bucket_slot_verify(DpBucketStore *store, Datum data);

#endif /* DP_PATTERNS_BUCKET_SLOT_H */
