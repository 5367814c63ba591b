/*
 * change.h
 *		Changes of single measurements that are packed: collected during a statement
 *		and written when it ends, packing each bucket again once.
 */
#ifndef DP_PATTERNS_BUCKET_CHANGE_H
#define DP_PATTERNS_BUCKET_CHANGE_H

#include "patterns/bucket/store.h"

typedef struct DpBucketChanges DpBucketChanges;

extern DpBucketChanges *dp_bucket_changes_create(DpBucketStore *store);

/*
 * Deletes (values NULL) or replaces the measurement at a position. Returns false, without changing
 * it, if this statement has already changed it.
 */
extern bool dp_bucket_changes_add(DpBucketChanges *changes, const ItemPointerData *tid,
								  int position, const Datum *values, const bool *nulls);

/*
 * Does the same to a measurement that was waiting when it was read, at tid, and has been packed
 * since. Raises T_R_SERIALIZATION_FAILURE if it cannot be found.
 */
extern void dp_bucket_changes_again(DpBucketChanges *changes, ItemPointer tid, const Datum *values,
									const bool *nulls);

/* Writes the changes. Rows moved to another span wait again. */
extern void dp_bucket_changes_apply(DpBucketChanges *changes);

/* Raises T_R_SERIALIZATION_FAILURE. */
extern void dp_bucket_lost(void) pg_attribute_noreturn();

/* Raises TRIGGERED_DATA_CHANGE_VIOLATION; part: of the same statement. */
extern void dp_bucket_changed_twice(bool part) pg_attribute_noreturn();

#endif /* DP_PATTERNS_BUCKET_CHANGE_H */
