/*
 * batch.h
 *		Shared by the parts of the derived data engine: derive.c, trigger.c, recompute.c and
 *		write.c.
 */
#ifndef DP_KIT_DERIVE_BATCH_H
#define DP_KIT_DERIVE_BATCH_H

#include "kit/derive/derive.h"
#include "kit/rows/write.h"

/* A batch: the groups of one statement (or refresh, or build), hashed by key. */
struct DpDeriveBatch
{
	MemoryContext context;
	DpGroup *groups; /* the last one first */
	uint32 ngroups;
	uint32 mask; /* of the table; its size is a power of 2 */
	DpGroup **table;
	DpGroup *few[16];            /* the table of most batches */
	bool locked;                 /* all its groups were locked before */
	List *only;                  /* dp_derive_repair_row(): the derivations to write */
	Oid source;                  /* the statement's table, or InvalidOid */
	struct DpDeriveBatch *outer; /* the batch whose writes caused this one */
	bool check; /* nothing is written: no locks, and everything is read with the query's snapshot */
};

/*
 * Locks many groups in lock order, or the whole derivation if there are too many for single locks.
 * With NoLock, each in the mode for a missing row.
 */
extern void dp_derive_lock_groups(DpGroup **groups, int n, LOCKMODE mode);

/*
 * Locks the groups in the mode for a missing row if they are few enough for single locks; else
 * locks none and returns false.
 */
extern bool dp_derive_lock_few(DpGroup **groups, int n);

/* True if so many groups are few enough. */
extern bool dp_derive_locks_few(int n);

/* True if its groups may be deferred to transactions that hold them, by a note (note.h). */
extern bool dp_derive_leaves(const DpDerivation *d);

/* Announces that as many groups will be locked one by one. */
extern void dp_derive_lock_many(int n);

/* qsort() comparator of DpGroup *: lock order. */
extern int dp_derive_group_compare(const void *a, const void *b);

/* The group's key in a target row: from its document, or its primary key.  False if it has none. */
extern bool dp_derive_key_of_row(DpDerivation *d, DpWriter *w, struct varlena *doc, DpValue *key);

/* Recomputes all rows of the derivations' targets. emptied: the source has no rows. */
extern int64 dp_derive_whole(List *derivations, bool emptied, bool forced);

/*
 * Recomputes the rows of a target with these keys (bson_values), for all derivations of the target.
 */
extern void dp_derive_late(Oid target, List *keys);

/*
 * Moves new user data in written rows of a target to the source: bson_values [name of the
 * derivation, key, whether inserted].
 */
extern void dp_derive_move_user_data(Oid target, List *with_user_data);

#endif /* DP_KIT_DERIVE_BATCH_H */
