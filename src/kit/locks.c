/*
 * locks.c
 *		Advisory locks that more than one pattern takes.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lock.h"

#include "kit/locks.h"

/* Tells these locks from those of groups and of users */
#define LOCK_CLASS_ABSENT (('d' << 8) | 'a')

static int
place_compare(const void *a, const void *b)
{
	uint64 left = *(const uint64 *) a;
	uint64 right = *(const uint64 *) b;

	return (left > right) - (left < right);
}

void
dp_lock_absent(uint64 *places, int n, LOCKMODE mode)
{
	int i;

	if (n > 1)
		qsort(places, n, sizeof(uint64), place_compare);
	for (i = 0; i < n; i++)
	{
		LOCKTAG tag;

		if (i > 0 && places[i] == places[i - 1])
			continue;
		SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (places[i] >> 32), (uint32) places[i],
							 LOCK_CLASS_ABSENT);
		(void) LockAcquire(&tag, mode, false, false);
	}
}
