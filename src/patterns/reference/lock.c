/*
 * lock.c
 *		The extended reference pattern: locks on the sources of new references, all
 *		in one order, and on missing sources.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/memutils.h"

#include "bson/compare.h"
#include "kit/derive/derive.h"
#include "kit/locks.h"
#include "patterns/reference/collect.h"

static DpReferencedRow *wanted_sources(Oid target, Oid source, int *n);
static int wanted_compare(const void *a, const void *b);

/* So many locks of one declaration there are at most */
#define ABSENT_PLACES 256

/* The lock of a missing source: declaration and id */
uint64
dp_ref_absent_hash(const DpReference *ref, const DpValue *id)
{
	uint64 declaration = hash_bytes((const unsigned char *) ref->link_id, strlen(ref->link_id));

	return declaration << 32 | dp_derive_hash(id) % ABSENT_PLACES;
}

void
dp_ref_lock_absent_wanted(Oid target)
{
	uint64 *hashes = NULL;
	int n = 0;
	int cap = 0;
	ListCell *lc;

	foreach(lc, dp_ref_collecting_of(target))
	{
		DpRefCollecting *c = lfirst(lc);
		DpReference *ref;
		int i;

		ref = dp_reference(dp_decl_find(target, "reference", c->name));
		for (i = 0; i < c->set->n && !ref->missing_error; i++)
		{
			const DpRefId *id = c->set->ids[i];

			if (id->wanted <= 0 || !id->read || id->extract != NULL)
				continue;
			if (n == cap)
			{
				cap = cap == 0 ? 8 : cap * 2;
				hashes = hashes == NULL ? palloc(sizeof(uint64) * cap)
										: repalloc_huge(hashes, sizeof(uint64) * cap);
			}
			hashes[n++] = dp_ref_absent_hash(ref, &id->id);
		}
	}
	dp_lock_absent(hashes, n, RowExclusiveLock);
}

bool
dp_ref_locked_later(DpReference *ref)
{
	ListCell *lc;

	if (ref->source == NULL)
		return false;
	foreach(lc, dp_derivations_of_source(ref->decl->target))
	{
		DpDerivation *d = lfirst(lc);

		if (d->target == ref->source->relid && !d->deferred && dp_decl_maintained(d->decl))
			return true;
	}
	return false;
}

/*
 * The sources that new references of the statement name, in order: each once,
 * with its strongest lock.  source: those of one table; InvalidOid: all that
 * dp_ref_referenced_rows() is for.
 */
static DpReferencedRow *
wanted_sources(Oid target, Oid source, int *n)
{
	DpReferencedRow *wanted = NULL;
	int cap = 0;
	int kept = 0;
	int i;
	ListCell *lc;

	*n = 0;
	foreach(lc, dp_ref_collecting_of(target))
	{
		DpRefCollecting *c = lfirst(lc);
		DpReference *ref;

		if (OidIsValid(source) && c->source != source)
			continue;
		ref = dp_reference(dp_decl_find(target, "reference", c->name));
		if (!dp_ref_source(ref) || (!OidIsValid(source) && !dp_ref_locked_later(ref)))
			continue;
		for (i = 0; i < c->set->n; i++)
		{
			if (c->set->ids[i]->wanted <= 0)
				continue;
			if (*n == cap)
			{
				cap = cap == 0 ? 8 : cap * 2;
				wanted = wanted == NULL ? palloc(sizeof(DpReferencedRow) * cap)
										: repalloc_huge(wanted, sizeof(DpReferencedRow) * cap);
			}
			wanted[(*n)++] =
				(DpReferencedRow){ .table = ref->source->relid,
								   .decl = ref->source,
								   .lookup = ref->source_key,
								   .id = c->set->ids[i]->id,
								   .mode = ref->nlive > 0 ? LockTupleShare : LockTupleKeyShare,
								   .arg = ref };
		}
	}
	if (*n > 1)
		qsort(wanted, *n, sizeof(DpReferencedRow), wanted_compare);
	for (i = 0; i < *n; i++)
	{
		if (kept == 0 || wanted[kept - 1].table != wanted[i].table ||
			dp_value_compare(&wanted[kept - 1].id, &wanted[i].id) != 0)
			wanted[kept++] = wanted[i];
	}
	*n = kept;
	return wanted;
}

/* By source and id, the strongest lock first. */
static int
wanted_compare(const void *a, const void *b)
{
	const DpReferencedRow *left = a;
	const DpReferencedRow *right = b;
	int cmp;

	if (left->table != right->table)
		return left->table < right->table ? -1 : 1;
	cmp = dp_value_compare(&left->id, &right->id);
	if (cmp != 0)
		return cmp;
	return (left->mode != LockTupleShare) - (right->mode != LockTupleShare);
}

DpReferencedRow *
dp_ref_referenced_rows(Oid target, int *n)
{
	*n = 0;
	return dp_ref_collecting_any() ? wanted_sources(target, InvalidOid, n) : NULL;
}

void
dp_ref_lock_referenced(const DpReferencedRow *row)
{
	bool deadlock; /* is seen again when the source is read */

	(void) dp_ref_read_or_leave(row->arg, &row->id,
								row->mode == LockTupleShare ? DP_REF_LOCK : DP_REF_LOCK_KEY, NULL,
								&deadlock);
}

void
dp_ref_lock_together(DpReference *ref)
{
	int declarations = 0;
	ListCell *lc;

	if (ref->source == NULL)
		return;
	foreach(lc, dp_ref_collecting_of(ref->decl->target))
	{
		if (((DpRefCollecting *) lfirst(lc))->source == ref->source->relid)
			declarations++;
	}
	if (declarations > 1)
	{
		int n;
		DpReferencedRow *wanted = wanted_sources(ref->decl->target, ref->source->relid, &n);
		int i;

		SPI_connect();
		for (i = 0; i < n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			dp_ref_lock_referenced(&wanted[i]);
		}
		SPI_finish();
	}
}
