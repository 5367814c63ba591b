/*
 * locks.h
 *		Advisory locks that several patterns take.
 */
#ifndef DP_KIT_LOCKS_H
#define DP_KIT_LOCKS_H

#include "storage/lockdefs.h"

/*
 * Takes advisory locks that stand for missing rows, until the transaction ends.  Each place is a
 * hash of declaration and row id; the array is sorted, so that all take the locks in one order.  A
 * reference to a missing row takes RowExclusiveLock and an insert of such rows ShareLock, so the
 * second one sees what the first one did.  A refresh of references takes ShareUpdateExclusiveLock,
 * which excludes other refreshes and inserts.
 */
extern void dp_lock_absent(uint64 *places, int n, LOCKMODE mode);

#endif /* DP_KIT_LOCKS_H */
