/*
 * pack.h
 *		Packing: waiting measurements become buckets or are added to existing ones.
 *
 * Packing is part of its transaction: in every snapshot a measurement is either
 * waiting or in a bucket.  It never waits: measurements that another transaction is
 * changing stay, and a bucket that is being changed is not extended: the span gets
 * another one, and a later packing merges them.  While a statement of this session
 * changes measurements (dp_bucket_changing()), all stay.
 */
#ifndef DP_PATTERNS_BUCKET_PACK_H
#define DP_PATTERNS_BUCKET_PACK_H

#include "patterns/bucket/store.h"

/*
 * Adds new measurements (buckets without a position yet) of one group and span to buckets of the
 * span, or to new ones. Skips locked buckets.
 */
extern void dp_bucket_add_new(DpBucketStore *store, const DpBucketGroup *group, int64 start,
							  const Datum *fresh, int nfresh);

/* Pages: returns the next number of a group. Takes the group's lock. */
extern int dp_bucket_next_page(DpBucketStore *store, const DpBucketGroup *group);

/*
 * Returns the builder's contents as buckets within the limits. even: equal numbers of rows, else
 * the maximal number in all but the last.
 */
extern List *dp_bucket_split(DpBucketStore *store, DpBucketBuilder *builder, bool even);

/*
 * Packs waiting measurements of a group (NULL: of all) with a time before
 * until, and whole spans only.  full: only as many as fill buckets.  Returns
 * their number.
 */
extern int64
dp_bucket_pack(DpBucketStore *store, const DpBucketGroup *group, int64 until, bool full);

/*
 * Records that n waiting measurements of a span were added, and packs a full bucket.  Returns true
 * if a new span begins: the caller packs the group's earlier ones.
 */
extern bool dp_bucket_note(DpBucketStore *store, const DpBucketGroup *group, int64 time, int n);

/*
 * Locks on groups and spans until the transaction ends: for pages, which are
 * numbered by one session at a time, and for slots.  Groups share a limited
 * number of locks, so that a transaction that writes to many does not fill the
 * table of locks.  With wait false, returns whether it could be had at once.
 */
#define DP_BUCKET_LOCKS 1024

extern uint32
dp_bucket_group_lock_number(DpBucketStore *store, const DpBucketGroup *group, int64 start);
extern bool dp_bucket_group_lock(DpBucketStore *store, uint32 number, bool wait);

#endif /* DP_PATTERNS_BUCKET_PACK_H */
