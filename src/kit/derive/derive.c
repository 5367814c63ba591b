/*
 * derive.c
 *		Derived data: the derivations, the groups of a batch, and group locks.
 *
 * trigger.c makes batches for statements, recompute.c for recomputation; write.c writes the
 * targets.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "utils/memutils.h"

#include "bson/compare.h"
#include "kit/derive/change.h"
#include "kit/derive/batch.h"
#include "kit/link.h"
#include "kit/locks.h"
#include "kit/note.h"

static int derivation_compare(const ListCell *a, const ListCell *b);
static void groups_grow(DpDeriveBatch *batch);
static LOCKMODE lock_mode(const DpGroup *group, LOCKMODE mode);
static int lock_rank(const DpDerivation *d);
static bool lock_group(DpDerivation *d, uint64 hash, LOCKMODE mode, bool leave);

static DpLockSet locks = { DP_LOCK_GROUP, DP_LOCK_ALL_GROUPS };

/* ---------------------------------------------------------------- derivations */

List *
dp_derivations_of_source(Oid relid)
{
	List *list = NIL;
	ListCell *lc;

	foreach(lc, dp_source_decls(relid))
	{
		DpSourceDecl *used = lfirst(lc);
		const DpDeriveMethods *m = used->decl->methods->derive;

		if (m != NULL && m->main_on_source == used->is_main)
		{
			DpDerivation *d = dp_derivation(used->decl);

			if (m->main_on_source && !OidIsValid(d->target) && d->link_id != NULL)
				dp_link_require_owner(d->link_id, false, d->source);
			if (OidIsValid(d->source) && OidIsValid(d->target))
				list = list_append_unique_ptr(list, d);
		}
	}
	if (list_length(list) > 1)
		list_sort(list, derivation_compare);
	return list;
}

/* Derivations with fields in a table that users may write to: a new list. */
List *
dp_derivations_of_target(Oid relid)
{
	List *list = NIL;
	ListCell *lc;

	foreach(lc, dp_decls(relid))
	{
		DpDecl *decl = lfirst(lc);
		const DpDeriveMethods *m = decl->methods->derive;

		if (m != NULL && !m->main_on_source)
			list = list_append_unique_ptr(list, dp_derivation(decl));
	}
	if (list_length(list) > 1)
		list_sort(list, derivation_compare);
	return list;
}

/*
 * The derivation of a declaration, cached in it.  For a partition's declaration, that of its table.
 * Raises UNDEFINED_OBJECT if the other table of the link ID does not exist.
 */
DpDerivation *
dp_derivation(DpDecl *decl)
{
	DpDerivation *d;
	MemoryContext old;
	StringInfoData path;

	if (decl->relid != decl->target)
		decl = dp_decl_find(decl->target, decl->pattern, decl->name);
	if (decl->state != NULL)
		return decl->state;

	old = MemoryContextSwitchTo(decl->context);
	d = palloc0(sizeof(DpDerivation));
	d->methods = decl->methods->derive;
	if (d->methods == NULL)
		elog(ERROR, "pattern \"%s\" does not derive data", decl->pattern);
	d->decl = decl;
	d->context = decl->context;
	d->link_id = dp_decl_text(decl, "link_id");
	if (d->methods->main_on_source)
		d->source = decl->target;
	else
		d->target = decl->target;
	if (d->link_id != NULL)
	{
		Oid side = dp_link_side(d->link_id, decl->target);

		if (d->methods->main_on_source)
			d->target = side;
		else
			d->source = side;
	}
	d->lock_id = hash_combine(hash_bytes_uint32(d->target),
							  hash_bytes((const unsigned char *) decl->name, strlen(decl->name)));
	dp_decl_depends(decl, d->source);
	dp_decl_depends(decl, d->target);
	d->methods->open(d);
	if (d->source_column == NULL && d->methods->main_on_source)
		d->source_column = decl->doc_column;
	initStringInfo(&path);
	if (d->link == NULL)
		appendStringInfoString(&path, "_id");
	else
		dp_path_to_text(&path, d->link);
	d->link_text = path.data;
	if (d->create_missing && !d->methods->main_on_source)
		d->lock_id = hash_combine(hash_bytes((const unsigned char *) path.data, path.len),
								  hash_bytes_uint32(d->target));
	if (OidIsValid(d->target))
	{
		if (d->link == NULL && !d->methods->main_on_source)
			d->lookup = dp_lookup_primary(d->target, d->context);
		else
			d->lookup =
				dp_lookup_path(d->target, d->methods->main_on_source ? NULL : decl->doc_column,
							   path.data, d->context);
	}
	decl->state = d;
	MemoryContextSwitchTo(old);
	return d;
}

/* Orders derivations by target, then in lock order. */
static int
derivation_compare(const ListCell *a, const ListCell *b)
{
	const DpDerivation *left = lfirst(a);
	const DpDerivation *right = lfirst(b);

	if (left->target != right->target)
		return left->target < right->target ? -1 : 1;
	if (left->lock_id != right->lock_id)
		return left->lock_id < right->lock_id ? -1 : 1;
	return strcmp(left->decl->name, right->decl->name);
}

/* ---------------------------------------------------------------- batches and groups */

/* Begins a batch.  Its memory is a child of the current context. */
DpDeriveBatch *
dp_derive_begin(void)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns batch", ALLOCSET_DEFAULT_SIZES);
	DpDeriveBatch *batch = MemoryContextAllocZero(context, sizeof(DpDeriveBatch));

	batch->context = context;
	batch->mask = lengthof(batch->few) - 1;
	batch->table = batch->few;
	return batch;
}

MemoryContext
dp_derive_memory(DpDeriveBatch *batch)
{
	return batch->context;
}

uint64
dp_derive_hash(const DpValue *key)
{
	return dp_value_hash(key, 0);
}

void
dp_derive_deleted(DpGroup *group, struct varlena *shown)
{
	MemoryContext old = MemoryContextSwitchTo(group->batch->context);
	DpValue *value = palloc(sizeof(DpValue));

	*value = dp_value_of_document(dp_document_to_varlena(DP_DOC_DATA(shown), DP_DOC_SIZE(shown)));
	group->deleted_values = lappend(group->deleted_values, value);
	MemoryContextSwitchTo(old);
}

/* The group of a key, which is copied if it is new. */
DpGroup *
dp_derive_group(DpDeriveBatch *batch, DpDerivation *d, const DpValue *key)
{
	uint64 hash = dp_derive_hash(key);
	uint32 i = ((uint32) hash ^ d->lock_id) & batch->mask;
	DpGroup *group;
	uint8 *data;

	while ((group = batch->table[i]) != NULL)
	{
		if (group->hash == hash && group->derivation == d &&
			dp_value_compare(&group->key, key) == 0)
		{
			group->changed = true;
			return group;
		}
		i = (i + 1) & batch->mask;
	}

	group = MemoryContextAllocZero(batch->context, sizeof(DpGroup));
	data = MemoryContextAlloc(batch->context, Max(key->len, 1));
	memcpy(data, key->data, key->len);
	group->derivation = d;
	group->batch = batch;
	group->key = *key;
	group->key.data = data;
	group->hash = hash;
	group->changed = true;
	group->next = batch->groups;
	batch->groups = group;
	batch->table[i] = group;
	batch->ngroups++;
	if (batch->ngroups * 2 > batch->mask)
		groups_grow(batch);
	return group;
}

DpGroup *
dp_derive_find(DpDeriveBatch *batch, DpDerivation *d, const DpValue *key)
{
	uint64 hash = dp_derive_hash(key);
	uint32 i = ((uint32) hash ^ d->lock_id) & batch->mask;
	DpGroup *group;

	while ((group = batch->table[i]) != NULL && !(group->hash == hash && group->derivation == d &&
												  dp_value_compare(&group->key, key) == 0))
		i = (i + 1) & batch->mask;
	return group;
}

/* Makes the hash table four times as large. */
static void
groups_grow(DpDeriveBatch *batch)
{
	uint32 size = (batch->mask + 1) * 4;
	DpGroup *group;

	if (batch->table != batch->few)
		pfree(batch->table);
	batch->mask = size - 1;
	batch->table = MemoryContextAllocExtended(batch->context, size * sizeof(DpGroup *),
											  MCXT_ALLOC_ZERO | MCXT_ALLOC_HUGE);
	for (group = batch->groups; group != NULL; group = group->next)
	{
		uint32 i = ((uint32) group->hash ^ group->derivation->lock_id) & batch->mask;

		while (batch->table[i] != NULL)
			i = (i + 1) & batch->mask;
		batch->table[i] = group;
	}
}

/*
 * Groups locked before rows are searched come before groups locked if no row was found; among
 * these, derivations that create rows before others with fields in them.
 */
static int
lock_rank(const DpDerivation *d)
{
	return d->methods->group_lock != NULL ? 0 : d->create_missing && !d->guarded ? 1 : 2;
}

int
dp_derive_group_compare(const void *a, const void *b)
{
	const DpGroup *left = *(DpGroup *const *) a;
	const DpGroup *right = *(DpGroup *const *) b;
	int left_rank = lock_rank(left->derivation);
	int right_rank = lock_rank(right->derivation);

	if (left_rank != right_rank)
		return left_rank < right_rank ? -1 : 1;
	if (left->derivation->lock_id != right->derivation->lock_id)
		return left->derivation->lock_id < right->derivation->lock_id ? -1 : 1;
	if ((uint32) left->hash != (uint32) right->hash)
		return (uint32) left->hash < (uint32) right->hash ? -1 : 1;
	return 0;
}

/* ---------------------------------------------------------------- locks of groups */

void
dp_derive_lock_group(DpDerivation *d, uint64 hash, LOCKMODE mode)
{
	(void) lock_group(d, hash, mode, false);
}

bool
dp_derive_lock_or_leave(DpGroup *group, LOCKMODE mode)
{
	DpDerivation *d = group->derivation;

	if (lock_group(d, group->hash, mode, dp_derive_leaves(d)))
		return true;
	dp_note(d->decl, &group->key, d->target);
	group->left = true;
	return false;
}

/* Implements both; returns false only with leave. */
static bool
lock_group(DpDerivation *d, uint64 hash, LOCKMODE mode, bool leave)
{
	dp_note_watch(d->target);
	return dp_lock_one(&locks, d->lock_id, (uint32) hash, mode, ExclusiveLock,
					   leave ? DP_LOCK_NO_DEADLOCK : DP_LOCK_WAIT, NULL);
}

bool
dp_derive_leaves(const DpDerivation *d)
{
	return !d->guarded && !d->methods->main_on_source && !d->methods->refuses;
}

bool
dp_derive_holds_group(DpDerivation *d, uint64 hash)
{
	LOCKTAG tag = dp_lock_tag(DP_LOCK_ALL_GROUPS, d->lock_id, 0);
	LOCKMODE mode;

	if (dp_lock_held(&tag, ExclusiveLock))
		return true;
	tag = dp_lock_tag(DP_LOCK_GROUP, d->lock_id, (uint32) hash);
	for (mode = RowExclusiveLock; mode <= ExclusiveLock; mode++)
	{
		if (dp_lock_held(&tag, mode))
			return true;
	}
	return false;
}

void
dp_derive_unlock_group(DpDerivation *d, uint64 hash, LOCKMODE mode)
{
	dp_unlock_one(&locks, d->lock_id, (uint32) hash, mode);
}

void
dp_derive_lock_many(int n)
{
	dp_lock_many(&locks, n);
}

/* Locks groups and sorts the array in lock order. */
void
dp_derive_lock_groups(DpGroup **groups, int n, LOCKMODE mode)
{
	const DpDerivation *wide = NULL;
	int fresh = 0;
	int i;

	if (n > 1)
		qsort(groups, n, sizeof(DpGroup *), dp_derive_group_compare);
	for (i = 0; i < n; i++)
		fresh += groups[i]->lock_mode != lock_mode(groups[i], mode);
	dp_lock_many(&locks, fresh);
	for (i = 0; i < n; i++)
	{
		DpDerivation *d = groups[i]->derivation;
		LOCKMODE wanted = lock_mode(groups[i], mode);

		if (groups[i]->lock_mode == wanted)
			continue;
		if ((d != wide || dp_lock_few(&locks, 1)) && !dp_derive_lock_or_leave(groups[i], wanted))
			continue;
		if (!dp_lock_few(&locks, 1))
			wide = d;
		groups[i]->lock_mode = wanted;
	}
}

/* The lock mode of a group: the given one, or for NoLock that of a missing row. */
static LOCKMODE
lock_mode(const DpGroup *group, LOCKMODE mode)
{
	if (mode != NoLock)
		return mode;
	return group->derivation->create_missing ? ExclusiveLock
		   : group->exclusive                ? ShareRowExclusiveLock
											 : RowExclusiveLock;
}

bool
dp_derive_locks_few(int n)
{
	return dp_lock_few(&locks, n);
}

bool
dp_derive_lock_few(DpGroup **groups, int n)
{
	if (!dp_derive_locks_few(n))
		return false;
	dp_derive_lock_groups(groups, n, NoLock);
	return true;
}
