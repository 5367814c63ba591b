/*
 * run.h
 *		What the parts of the engine of derived data share: derive.c,
 *		trigger.c, recompute.c and write.c.
 */
#ifndef DP_KIT_DERIVE_RUN_H
#define DP_KIT_DERIVE_RUN_H

#include "kit/derive/derive.h"
#include "kit/rows/write.h"

/* A run: groups, also found by their keys. */
struct DpDerive
{
	MemoryContext context;
	DpGroup *groups; /* the last one first */
	uint32 ngroups;
	uint32 mask; /* of the table; its size is a power of 2 */
	DpGroup **table;
	DpGroup *few[16];       /* the table of most runs */
	bool locked;            /* all its groups have been locked before */
	List *only;             /* settle: the derivations that are meant */
	Oid source;             /* the statement's table, or InvalidOid */
	struct DpDerive *outer; /* the run that writes what this one follows from */
	bool check; /* nothing is going to be written: no locks, and all is read with the query's
				   snapshot */
};

/*
 * Locks many groups (of DpGroups) in their order, or wholly where they are too
 * many for single locks.  NoLock: each as those do who have found no row.
 */
extern void dp_derive_lock_groups(DpGroup **groups, int n, LOCKMODE mode);

/*
 * The same, each as those do who have found no row, if they are few enough for
 * single locks; else locks none and returns false.
 */
extern bool dp_derive_lock_few(DpGroup **groups, int n);

/* Whether so many groups are few enough. */
extern bool dp_derive_locks_few(int n);

/*
 * Whether its groups may be left to transactions that hold them: then a note (note.h) settles them.
 */
extern bool dp_derive_leaves(const DpDerivation *d);

/* To be said before as many groups are locked one by one. */
extern void dp_derive_lock_many(int n);

/* Orders groups as their locks are taken; for qsort() of DpGroup *. */
extern int dp_derive_group_compare(const void *a, const void *b);

/* The group's key in a target row: of its document, or its primary key.  False if it has none. */
extern bool dp_derive_key_of_row(DpDerivation *d, DpWriter *w, struct varlena *doc, DpValue *key);

/*
 * Computes all rows of the derivations' targets anew (emptied: knowing that the source has no
 * rows).
 */
extern int64 dp_derive_whole(List *derivations, bool emptied, bool forced);

/*
 * Computes the rows of a target with these keys (bson_values) anew, for all derivations of the
 * target.
 */
extern void dp_derive_late(Oid target, List *keys);

/*
 * Takes over what is new in rows of a target that were written: bson_values [name of the
 * derivation, key, whether inserted].
 */
extern void dp_derive_take_over(Oid target, List *strange);

#endif /* DP_KIT_DERIVE_RUN_H */
