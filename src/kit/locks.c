/*
 * locks.c
 *		Advisory locks, which are held until the transaction ends.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "kit/locks.h"
#include "kit/note.h"
#include "kit/statement.h"

/* How many things of a set a transaction locks one by one */
#define MAX_LOCKS 256

static DpLockSet *sets = NULL; /* that were used */

static void locks_ended(void);

static DpStates states = { .ended = locks_ended };

static LockAcquireResult
lock_acquire(DpLockClass class, Oid of, uint32 number, LOCKMODE mode, DpLockWait wait)
{
	LOCKTAG tag = dp_lock_tag(class, of, number);
	LockAcquireResult result = LockAcquire(&tag, mode, false, wait != DP_LOCK_WAIT);

	if (result == LOCKACQUIRE_NOT_AVAIL && wait == DP_LOCK_NO_DEADLOCK && dp_note_lock(&tag, mode))
		result = LOCKACQUIRE_OK;
	return result;
}

LOCKTAG
dp_lock_tag(DpLockClass class, Oid of, uint32 number)
{
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, of, number, class);
	return tag;
}

bool
dp_lock(DpLockClass class, Oid of, uint32 number, LOCKMODE mode, DpLockWait wait)
{
	return lock_acquire(class, of, number, mode, wait) != LOCKACQUIRE_NOT_AVAIL;
}

void
dp_unlock(DpLockClass class, Oid of, uint32 number, LOCKMODE mode)
{
	LOCKTAG tag = dp_lock_tag(class, of, number);

	(void) LockRelease(&tag, mode, false);
}

bool
dp_lock_one(DpLockSet *set, Oid of, uint32 number, LOCKMODE mode, LOCKMODE all, DpLockWait wait,
			bool *taken)
{
	LockAcquireResult result;

	if (taken != NULL)
		*taken = false;
	if (!set->listed)
	{
		dp_states_hear(&states);
		set->next = sets;
		sets = set;
		set->listed = true;
	}
	if (set->n >= MAX_LOCKS)
		return dp_lock(set->all, of, 0, all, wait);
	if (!dp_lock(set->all, of, 0, all == ShareLock ? RowShareLock : RowExclusiveLock, wait))
		return false;
	result = lock_acquire(set->one, of, number, mode, wait);
	if (result == LOCKACQUIRE_OK)
	{
		set->n++;
		if (taken != NULL)
			*taken = true;
	}
	return result != LOCKACQUIRE_NOT_AVAIL;
}

void
dp_unlock_one(DpLockSet *set, Oid of, uint32 number, LOCKMODE mode)
{
	LOCKTAG tag = dp_lock_tag(set->one, of, number);

	if (!dp_lock_held(&tag, mode))
		return; /* the lock of all, which stays */
	(void) LockRelease(&tag, mode, false);
	if (set->n < MAX_LOCKS)
		set->n--;
}

bool
dp_lock_few(const DpLockSet *set, int n)
{
	return set->n + n <= MAX_LOCKS;
}

void
dp_lock_many(DpLockSet *set, int n)
{
	if (!dp_lock_few(set, n))
		set->n = MAX_LOCKS;
}

/* The locks end with the transaction. */
static void
locks_ended(void)
{
	DpLockSet *set;

	for (set = sets; set != NULL; set = set->next)
		set->n = 0;
}

static int
number_compare(const void *a, const void *b)
{
	uint64 left = *(const uint64 *) a;
	uint64 right = *(const uint64 *) b;

	return (left > right) - (left < right);
}

void
dp_lock_absent(uint64 *numbers, int n, LOCKMODE mode)
{
	int i;

	if (n > 1)
		qsort(numbers, n, sizeof(uint64), number_compare);
	for (i = 0; i < n; i++)
	{
		if (i == 0 || numbers[i] != numbers[i - 1])
			(void) dp_lock(DP_LOCK_MISSING_ROW, (Oid) (numbers[i] >> 32), (uint32) numbers[i], mode,
						   DP_LOCK_WAIT);
	}
}
