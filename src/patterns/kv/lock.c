/*
 * lock.c
 *		Locks on the keys of key-value spaces.
 *
 * They are in the lock manager and not in rows, so that writing a hot key (a
 * leaderboard) costs no row version and no multixact.  A key is
 * locked in ShareLock to write members, in ExclusiveLock to remove it or to change its type or
 * blocks.  A transaction that locks many keys locks their space instead (kit/locks.h).
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"

#include "kit/locks.h"
#include "patterns/kv/kv.h"

static DpLockSet locks = { DP_LOCK_KEY, DP_LOCK_ALL_KEYS };

/* Keys of one hash share a lock. */
static uint32
key_hash(DpKvCall *call)
{
	text *key = (text *) DatumGetPointer(call->key);

	return hash_bytes((const unsigned char *) VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key));
}

bool
dp_kv_lock(DpKvCall *call, bool exclusive, bool wait, bool *taken)
{
	LOCKMODE mode = exclusive ? ExclusiveLock : ShareLock;

	if (!dp_lock_one(&locks, call->space->schema, key_hash(call), mode, mode,
					 wait ? DP_LOCK_WAIT : DP_LOCK_NO_WAIT, taken))
		return false;
	if (exclusive)
		call->exclusive = true;
	return true;
}

void
dp_kv_unlock_shared(DpKvCall *call)
{
	dp_unlock_one(&locks, call->space->schema, key_hash(call), ShareLock);
}

void
dp_kv_lock_many(int n)
{
	dp_lock_many(&locks, n);
}

bool
dp_kv_lock_free(void)
{
	return locks.n == 0 && !TransactionIdIsValid(GetTopTransactionIdIfAny());
}
