/*
 * change.h
 *		Changes of single measurements that are packed: collected during a
 *		statement and made when it ends, each bucket being packed anew once.
 */
#ifndef DP_PATTERNS_BUCKET_CHANGE_H
#define DP_PATTERNS_BUCKET_CHANGE_H

#include "patterns/bucket/store.h"

typedef struct DpBucketChanges DpBucketChanges;

extern DpBucketChanges *dp_bucket_changes_create(DpBucketStore *store);

/*
 * The measurement at a place is to be deleted (values NULL) or replaced.
 * Returns false if this statement has changed it already: then it is left so.
 */
extern bool dp_bucket_changes_add(DpBucketChanges *changes, const ItemPointerData *tid,
								  int position, const Datum *values, const bool *nulls);

/*
 * A measurement that waited when it was read, tid being its place then, does
 * so no longer: the same is done to it where it is now.  Raises
 * T_R_SERIALIZATION_FAILURE if it cannot be found again.
 */
extern void dp_bucket_changes_again(DpBucketChanges *changes, ItemPointer tid, const Datum *values,
									const bool *nulls);

/* Makes the changes.  Rows that leave their span wait again. */
extern void dp_bucket_changes_apply(DpBucketChanges *changes);

/* Raises T_R_SERIALIZATION_FAILURE. */
extern void dp_bucket_lost(void) pg_attribute_noreturn();

/* Raises TRIGGERED_DATA_CHANGE_VIOLATION; part: of the same statement. */
extern void dp_bucket_changed_twice(bool part) pg_attribute_noreturn();

#endif /* DP_PATTERNS_BUCKET_CHANGE_H */
