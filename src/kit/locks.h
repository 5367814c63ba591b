/*
 * locks.h
 *		Advisory locks, which are held until the transaction ends.
 *
 * A lock's tag has the class of what is locked, the OID of its relation or schema (or a hash that
 * stands for a declaration), and a number, often a hash.
 */
#ifndef DP_KIT_LOCKS_H
#define DP_KIT_LOCKS_H

#include "storage/lock.h"

/* The last field of the tag; 1 and 2 are those of pg_advisory_lock() */
typedef enum DpLockClass
{
	DP_LOCK_BUCKETS = 3, /* buckets with one hash of group and time */
	DP_LOCK_MISSING_ROW, /* rows with one hash of the key that do not exist */
	DP_LOCK_GROUP,       /* derived data: groups with one hash */
	DP_LOCK_ALL_GROUPS,
	DP_LOCK_KEY, /* keys of a space with one hash */
	DP_LOCK_ALL_KEYS,
	DP_LOCK_NUMBERING,    /* drawing numbers from a sequence */
	DP_LOCK_FIRST_NUMBER, /* numbers from this one on may not be committed yet */
	DP_LOCK_HISTORY,      /* rewriting revisions */
	DP_LOCK_MOVES         /* moving nodes of a tree */
} DpLockClass;

/* What to do about another transaction that holds a conflicting lock */
typedef enum DpLockWait
{
	DP_LOCK_WAIT,
	DP_LOCK_NO_WAIT,
	DP_LOCK_NO_DEADLOCK /* wait, unless that would deadlock: see note.h */
} DpLockWait;

extern LOCKTAG dp_lock_tag(DpLockClass class, Oid of, uint32 number);

/* Returns false if the lock was not acquired. */
extern bool dp_lock(DpLockClass class, Oid of, uint32 number, LOCKMODE mode, DpLockWait wait);

extern void dp_unlock(DpLockClass class, Oid of, uint32 number, LOCKMODE mode);

/*
 * Locks of objects of which a transaction may need very many.  Locking one also takes the lock of
 * all in a weaker mode.  A transaction that has locked MAX_LOCKS of them then takes only the lock
 * of all.
 */
typedef struct DpLockSet
{
	DpLockClass one;
	DpLockClass all;
	int n; /* held; those of rolled back subtransactions are still counted */
	bool listed;
	struct DpLockSet *next;
} DpLockSet;

/*
 * Locks one in this mode, or all of them in the mode all: ShareLock or
 * ExclusiveLock.  Returns false if that was not acquired.  *taken (may be NULL) is set if the
 * lock of this one was not held before.
 */
extern bool dp_lock_one(DpLockSet *set, Oid of, uint32 number, LOCKMODE mode, LOCKMODE all,
						DpLockWait wait, bool *taken);

/* Releases the lock of this one, which dp_lock_one() has taken. */
extern void dp_unlock_one(DpLockSet *set, Oid of, uint32 number, LOCKMODE mode);

/* True if so many more may be locked one by one. */
extern bool dp_lock_few(const DpLockSet *set, int n);

/*
 * Announces that so many will be locked next.  If they are too many, none is locked individually:
 * otherwise two transactions that do the same would deadlock.
 */
extern void dp_lock_many(DpLockSet *set, int n);

/*
 * Locks rows that do not exist, in one order.  Each number is a declaration and a hash of the
 * row's id.  A reference to a missing row takes RowExclusiveLock, an insert of such rows
 * ShareLock, so the second transaction sees what the first one did.  A refresh takes
 * ShareUpdateExclusiveLock, which excludes other refreshes and inserts.  Sorts the numbers.
 */
extern void dp_lock_absent(uint64 *numbers, int n, LOCKMODE mode);

#endif /* DP_KIT_LOCKS_H */
