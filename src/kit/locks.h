/*
 * locks.h
 *		Advisory locks that more than one pattern takes.
 */
#ifndef DP_KIT_LOCKS_H
#define DP_KIT_LOCKS_H

#include "storage/lockdefs.h"

/*
 * Locks places of rows that do not exist until the transaction ends, in one order.  A place
 * stands for a declaration and a hash of the row's id.  A reference to a missing row takes
 * RowExclusiveLock, an insert of such rows ShareLock: the one that comes second sees what the
 * first one has done.  A refresh takes ShareUpdateExclusiveLock, which excludes other refreshes and
 * inserts.  Sorts places.
 */
extern void dp_lock_absent(uint64 *places, int n, LOCKMODE mode);

#endif /* DP_KIT_LOCKS_H */
