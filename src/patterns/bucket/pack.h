/*
 * pack.h
 *		Packing: waiting measurements become buckets, or go into those that are
 *		there.
 *
 * Packing is a part of the transaction that does it: the measurements are
 * deleted from those that wait and stand in a bucket from the same moment on,
 * for every snapshot.  It waits for nobody: measurements that somebody is
 * changing stay where they are, and a bucket that somebody is changing is not
 * added to: the span gets one more, and a later packing puts them together.
 * While a statement of this session changes measurements (dp_bucket_changing()),
 * they all stay where they are.
 */
#ifndef DP_PATTERNS_BUCKET_PACK_H
#define DP_PATTERNS_BUCKET_PACK_H

#include "patterns/bucket/store.h"

/*
 * Puts new measurements (buckets without a place yet) of one group and span
 * where they belong: into buckets of the span, or into new ones.  Raises
 * nothing for buckets that are locked, it leaves them alone.
 */
extern void dp_bucket_settle(DpBucketStore *store, const DpBucketGroup *group, int64 start,
							 const Datum *fresh, int nfresh);

/*
 * Pages: the number of a group's next one.  Takes the group's lock.
 */
extern int dp_bucket_next_page(DpBucketStore *store, const DpBucketGroup *group);

/*
 * What is in the builder, as buckets within the limits.  even: as many rows in
 * each, else as many as there may be in all but the last.
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
 * Notes that a measurement was added to those that wait, and packs what is due
 * now: the group's earlier spans when a new one begins, and what fills a bucket.
 */
extern void dp_bucket_note(DpBucketStore *store, const DpBucketGroup *group, int64 time);

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
