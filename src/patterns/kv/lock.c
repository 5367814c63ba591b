/*
 * lock.c
 *		Locks of the keys of key-value spaces.
 *
 * They are kept in the table of locks and not in rows, so that a hot key (a
 * board that all write to) costs no row version and no multixact.  A key is
 * locked in two steps, its space in an intention mode and then itself:
 *
 *		shared			space RowShare, key Share			all who write members
 *		exclusive		space RowExclusive, key Exclusive	who removes it, changes its type or its
 *blocks
 *
 * Beyond MAX_KEY_LOCKS of a transaction the space is locked in the stronger mode
 * (Share or Exclusive) instead of further keys.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"

#include "kit/statement.h"
#include "patterns/kv/kv.h"

#define LOCK_CLASS_KEY 0x4b56
#define LOCK_CLASS_SPACE 0x4b57
#define MAX_KEY_LOCKS 256

static int key_locks = 0;

static void locks_ended(void);
static LOCKTAG key_tag(DpKvCall *call);

static DpStates locks = { .ended = locks_ended };

bool
dp_kv_lock(DpKvCall *call, bool exclusive, bool wait, bool *taken)
{
	bool many = key_locks >= MAX_KEY_LOCKS;
	LockAcquireResult result;
	LOCKTAG tag;

	dp_states_hear(&locks);
	if (taken != NULL)
		*taken = false;
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, call->space->schema, 0, LOCK_CLASS_SPACE);
	result = LockAcquire(&tag,
						 exclusive ? (many ? ExclusiveLock : RowExclusiveLock)
								   : (many ? ShareLock : RowShareLock),
						 false, !wait);
	if (result == LOCKACQUIRE_NOT_AVAIL)
		return false;
	if (!many)
	{
		tag = key_tag(call);
		result = LockAcquire(&tag, exclusive ? ExclusiveLock : ShareLock, false, !wait);
		if (result == LOCKACQUIRE_NOT_AVAIL)
			return false;
		if (result != LOCKACQUIRE_ALREADY_HELD)
		{
			key_locks++;
			if (taken != NULL)
				*taken = true;
		}
	}
	if (exclusive)
		call->exclusive = true;
	return true;
}

void
dp_kv_unlock_shared(DpKvCall *call)
{
	LOCKTAG tag = key_tag(call);

	(void) LockRelease(&tag, ShareLock, false);
	key_locks--;
}

/*
 * If that is too many for single locks none of them is taken first, because
 * others who do the same would wait for each other.
 */
void
dp_kv_lock_many(DpKvCall *call, int n)
{
	if (key_locks + n > MAX_KEY_LOCKS)
		key_locks = MAX_KEY_LOCKS;
}

bool
dp_kv_lock_free(void)
{
	return key_locks == 0 && !TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/* What stands for the key in the table of locks: keys of one hash share it. */
static LOCKTAG
key_tag(DpKvCall *call)
{
	text *key = (text *) DatumGetPointer(call->key);
	LOCKTAG tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, call->space->schema,
						 hash_bytes((const unsigned char *) VARDATA_ANY(key),
									VARSIZE_ANY_EXHDR(key)),
						 LOCK_CLASS_KEY);
	return tag;
}

/*
 * With the transaction its locks are gone.  (Those of a subtransaction may be gone before; then
 * they are counted too many.)
 */
static void
locks_ended(void)
{
	key_locks = 0;
}
