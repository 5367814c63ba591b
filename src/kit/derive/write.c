/*
 * write.c
 *		Derived data: the end of a batch, which finds the groups' target rows, locks them in
 *		order and writes them.
 */
#include "postgres.h"

#include "access/genam.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/text.h"
#include "kit/derive/batch.h"
#include "kit/note.h"

/* A target row and a group to write to it, or a row to lock. */
typedef struct TargetRow
{
	DpRowRef ref;
	DpKey key;
	DpGroup *group;     /* NULL: the row is only locked */
	LockTupleMode lock; /* only without a group */
	uint32 seq;         /* search order, for a stable sort */
} TargetRow;

/* How a target's rows are ordered */
typedef struct KeyOrder
{
	int n;
	Oid type[INDEX_MAX_KEYS];
	bool byval[INDEX_MAX_KEYS];
	int16 len[INDEX_MAX_KEYS];
	Oid collation[INDEX_MAX_KEYS];
	FmgrInfo *cmp[INDEX_MAX_KEYS];
} KeyOrder;

/* A target that is being written. */
typedef struct Target
{
	DpDeriveBatch *batch;
	DpWriter *w;
	MemoryContext row; /* reset after each row */
	KeyOrder order;
	bool ordered; /* order is filled in */
	bool forced;
	DpKey sought;            /* the key searched for */
	DpReferencedRow *wanted; /* rows to lock because the statement's rows refer to them */
	int nwanted;
	DpDeriveBatch *made; /* groups of other derivations in created rows, or NULL */
} Target;

/* The found rows of a target, to be sorted */
typedef struct TargetRows
{
	TargetRow *v;
	int n;
	int cap;
} TargetRows;

/* Rows of a cycle that an error shows */
#define CYCLE_SHOWN 20

/* The innermost batch that is being written */
static DpDeriveBatch *writing = NULL;

static void cycle_raise(DpDeriveBatch *batch);
static int64 batch_write(DpDeriveBatch *batch, bool forced);
static int64 target_write(DpDeriveBatch *batch, DpGroup **groups, int n, DpReferencedRow *wanted,
						  int nwanted, bool forced);
static TargetRow *target_row_room(TargetRows *rows);
static void target_row_add(Target *t, TargetRows *rows, DpGroup *group, LockTupleMode lock);
static bool target_missing_add(Target *t, TargetRows *rows, DpGroup *group);
static void run_gather(DpDeriveBatch *batch);
static void mark_exclusive(DpDeriveBatch *batch, DpGroup **groups, int n);
static bool trigger_protects(const Trigger *trigger);
static void target_single(Target *t, DpGroup *group);
static void target_many(Target *t, DpGroup **groups, int n);
static void target_missing(Target *t, DpGroup **groups, int n);
static void target_make(Target *t, DpGroup *group);
static void others_lock(Target *t, DpGroup **groups, int n);
static List *others_of(const DpDerivation *d);
static int name_compare(const ListCell *a, const ListCell *b);
static void group_rows(Target *t, DpGroup *group, TargetRows *rows);
static bool waits_for_row(const Target *t, const DpGroup *group);
static bool group_find(Target *t, DpGroup *group);
static bool group_key(const DpGroup *group, DpKey *key);
static void row_apply(Target *t, DpGroup **groups, int n, const DpRowRef *ref);
static bool row_concerns(Target *t, DpGroup *group);
static void row_leave(DpGroup **groups, int n);
static bool row_locked(Target *t, DpGroup **groups, int n, const DpRowRef *ref);
static bool unique_row(const DpGroup *group);
static void order_init(Target *t);
static int target_row_compare(const void *a, const void *b, void *arg);
static int target_compare(const void *a, const void *b);

/*
 * Ends a batch.  Its targets may be sources again, so batches are nested.  If a group depends on
 * itself without reaching a fixed point, they nest until the stack is full, or a document is too
 * deep or too large; then the error shows these rows.
 */
int64
dp_derive_end(DpDeriveBatch *batch, bool forced)
{
	DpDeriveBatch *outer = writing;
	int64 written = 0;

	batch->outer = outer;
	writing = batch;
	PG_TRY();
	{
		written = batch_write(batch, forced);
	}
	PG_CATCH();
	{
		writing = outer;
		if (geterrcode() == ERRCODE_STATEMENT_TOO_COMPLEX ||
			geterrcode() == ERRCODE_PROGRAM_LIMIT_EXCEEDED)
			cycle_raise(batch);
		PG_RE_THROW();
	}
	PG_END_TRY();
	writing = outer;
	return written;
}

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE if a group of the batch is also one of an outer batch. */
static void
cycle_raise(DpDeriveBatch *batch)
{
	DpDeriveBatch *around;
	DpGroup *group;

	for (around = batch->outer; around != NULL; around = around->outer)
	{
		for (group = batch->groups; group != NULL; group = group->next)
		{
			DpGroup *same = dp_derive_find(around, group->derivation, &group->key);
			List *cycle = list_make1(group);
			StringInfoData rows;
			DpDeriveBatch *r;
			ListCell *lc;

			if (same == NULL)
				continue;
			MemoryContextSwitchTo(batch->context);
			FlushErrorState();
			for (r = batch->outer; r != around && list_length(cycle) < CYCLE_SHOWN; r = r->outer)
				cycle = lcons(r->groups, cycle);
			cycle = lcons(same, cycle);
			initStringInfo(&rows);
			foreach(lc, cycle)
			{
				DpGroup *g = lfirst(lc);

				if (rows.len > 0)
					appendStringInfoString(&rows, ", ");
				dp_value_to_text(&rows, &g->key, DP_TEXT_RELAXED, -1);
				appendStringInfo(&rows, " of table \"%s\"",
								 dp_relation_name(g->derivation->target));
			}
			ereport(
				ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg(
					 "documents that the %s pattern \"%s\" of table \"%s\" derives depend on each other in a cycle",
					 group->derivation->decl->pattern, group->derivation->decl->name,
					 dp_relation_name(group->derivation->target)),
				 errdetail("The cycle contains %s.", rows.data),
				 errhint(
					 "Exclude rows from what is derived from them, or change one of the declarations.")));
		}
	}
}

/* Writes all targets of a batch.  Returns the number of rows written. */
static int64
batch_write(DpDeriveBatch *batch, bool forced)
{
	DpGroup **groups;
	DpGroup *group;
	int n = 0;
	int locked = 0;
	DpReferencedRow *wanted = NULL;
	int nwanted = 0;
	int i;
	int w;
	int64 written = 0;
	MemoryContext old;

	check_stack_depth();
	if (batch->groups == NULL)
	{
		MemoryContextDelete(batch->context);
		return 0;
	}
	old = MemoryContextSwitchTo(batch->context);
	CommandCounterIncrement(); /* makes rows written by this command visible */
	SPI_connect();
	run_gather(batch);
	groups = MemoryContextAllocHuge(batch->context, sizeof(DpGroup *) * batch->ngroups);
	for (group = batch->groups; group != NULL; group = group->next)
	{
		DpDerivation *d = group->derivation;

		if (d->deferred && !forced)
			d->methods->enqueue(d, group);
		else if (group->recompute || d->methods->changes == NULL || d->methods->changes(d, group))
			groups[n++] = group;
	}

	/* group locks, in lock order */
	if (n > 1)
		qsort(groups, n, sizeof(DpGroup *), dp_derive_group_compare);
	for (i = 0; i < n; i++)
		locked += groups[i]->derivation->methods->group_lock != NULL ? 1 : 0;
	dp_derive_lock_many(locked);
	if (!batch->locked && !forced)
		mark_exclusive(batch, groups, n);
	for (i = 0; i < n; i++)
	{
		LOCKMODE mode = NoLock;

		if (groups[i]->derivation->methods->group_lock != NULL)
			mode = groups[i]->derivation->methods->group_lock(groups[i]->derivation, groups[i]);
		else if (groups[i]->from_note)
			mode = ShareRowExclusiveLock; /* other transactions may have inserted its row, or rows
											 of its source, without seeing those of each other */
		if (mode != NoLock)
			(void) dp_derive_lock_or_leave(groups[i], mode);
	}
	locked = n;
	n = 0;
	for (i = 0; i < locked; i++)
	{
		if (groups[i]->changed && !groups[i]->left)
		{
			groups[i]->to_write = true;
			groups[n++] = groups[i];
		}
	}

	/* target by target; rows to which the statement's rows refer are locked in the same order */
	if (n > 1)
		qsort(groups, n, sizeof(DpGroup *), target_compare);
	if (n > 0 && OidIsValid(batch->source))
		wanted = dp_derive_hooks()->referenced_rows(batch->source, &nwanted);
	for (i = 0, w = 0; i < n || (n > 0 && w < nwanted);)
	{
		int first = i;
		int first_wanted = w;
		Oid target = i < n ? groups[i]->derivation->target : InvalidOid;

		if (w < nwanted && (!OidIsValid(target) || wanted[w].table < target))
			target = wanted[w].table;
		while (i < n && groups[i]->derivation->target == target)
			i++;
		while (w < nwanted && wanted[w].table == target)
			w++;
		/* rows recomputed for the previous target may be in this one */
		if (written > 0)
			CommandCounterIncrement();
		written += target_write(batch, groups + first, i - first, wanted + first_wanted,
								w - first_wanted, forced);
	}
	SPI_finish();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(batch->context);
	return written;
}

/*
 * Marks groups whose row this batch may have to create for another derivation.  They are locked
 * exclusively at once: two transactions that first locked them as missing would deadlock.
 */
static void
mark_exclusive(DpDeriveBatch *batch, DpGroup **groups, int n)
{
	List *makers = NIL;
	ListCell *lc;
	int i;

	for (i = 0; i < n; i++)
	{
		if (groups[i]->derivation->create_missing && !groups[i]->derivation->guarded)
			makers = list_append_unique_ptr(makers, groups[i]->derivation);
	}
	foreach(lc, makers)
	{
		DpDerivation *maker = lfirst(lc);

		for (i = 0; i < n; i++)
		{
			DpDerivation *d = groups[i]->derivation;

			if (d->target == maker->target && !d->create_missing && !d->guarded &&
				strcmp(d->link_text, maker->link_text) == 0 &&
				dp_derive_find(batch, maker, &groups[i]->key) != NULL)
				groups[i]->exclusive = true;
		}
	}
}

/* Orders derivations in lock order. */
static int
lock_compare(const ListCell *a, const ListCell *b)
{
	const DpDerivation *left = lfirst(a);
	const DpDerivation *right = lfirst(b);

	return (left->lock_id > right->lock_id) - (left->lock_id < right->lock_id);
}

/* Lets derivations add groups that follow from others, in lock order. */
static void
run_gather(DpDeriveBatch *batch)
{
	List *derivations = NIL;
	DpGroup *group;
	ListCell *lc;

	for (group = batch->groups; group != NULL; group = group->next)
	{
		if (group->derivation->methods->gather != NULL)
			derivations = list_append_unique_ptr(derivations, group->derivation);
	}
	if (list_length(derivations) > 1)
		list_sort(derivations, lock_compare);
	foreach(lc, derivations)
	{
		DpDerivation *d = lfirst(lc);

		d->methods->gather(d, batch);
	}
}

/* Writes the rows of one target, and locks the rows wanted there.  Either may be empty. */
static int64
target_write(DpDeriveBatch *batch, DpGroup **groups, int n, DpReferencedRow *wanted, int nwanted,
			 bool forced)
{
	DpDerivation *d;
	Target t = { 0 };
	int64 written;
	int i;

	if (n == 0)
	{
		for (i = 0; i < nwanted; i++)
			dp_derive_hooks()->lock(&wanted[i]);
		return 0;
	}
	d = groups[0]->derivation;
	t.batch = batch;
	t.forced = forced;
	t.wanted = wanted;
	t.nwanted = nwanted;
	t.row = AllocSetContextCreate(batch->context, "docpatterns target row", ALLOCSET_DEFAULT_SIZES);
	t.w =
		dp_writer_open(d->target, d->methods->main_on_source ? NULL : d->decl->doc_column, 0, NULL);
	dp_writer_skip(t.w, trigger_protects);
	dp_writer_leave(t.w, dp_derive_leaves(d));
	if (n == 1 && nwanted == 0)
		target_single(&t, groups[0]);
	else
		target_many(&t, groups, n);
	written = dp_writer_close(t.w);
	if (t.made != NULL)
		written += dp_derive_end(t.made, false);
	return written;
}

/*
 * True if a trigger only protects derived fields, which is unnecessary for the engine's writes: it
 * would lock each row beforehand.
 */
static bool
trigger_protects(const Trigger *trigger)
{
	static Oid known[16]; /* functions of such triggers */
	static int nknown = 0;
	const DpPattern *pattern;
	int i;

	/*
	 * a source's triggers have three arguments, or belong to patterns with the main trigger there
	 */
	if (strncmp(trigger->tgname, DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0 ||
		trigger->tgnargs == 3)
		return false;
	for (i = 0; i < nknown; i++)
	{
		if (known[i] == trigger->tgfoid)
			return true;
	}
	pattern = dp_pattern_of_function(trigger->tgfoid);
	if (pattern == NULL || pattern->derive == NULL || pattern->derive->main_on_source)
		return false;
	if (nknown < lengthof(known))
		known[nknown++] = trigger->tgfoid;
	return true;
}

/* One group, as in most statements. */
static void
target_single(Target *t, DpGroup *group)
{
	DpRowRef ref;

	if (!unique_row(group))
	{
		target_many(t, &group, 1);
		return;
	}
	if (group_find(t, group))
	{
		group->found = true;
		if (row_concerns(t, group))
		{
			dp_writer_ref(t->w, &ref);
			row_apply(t, &group, 1, &ref);
		}
	}
	if (!group->found || group->retry)
		target_missing(t, &group, 1);
}

/*
 * Groups of one target.  They are locked, and their rows are found, sorted and written.  While its
 * lock is held, a group can lose its row but not get another one.
 *
 * If there are too many groups for single locks and each has one row, the rows are found first;
 * groups without a row are locked, perhaps by the lock for all, and searched again.  If only
 * patterns write to the target, a group is locked only if it has no row, in the order of the row's
 * key: a transaction that waits for a key, of a row or a group, holds only lesser keys.
 */
static void
target_many(Target *t, DpGroup **groups, int n)
{
	TargetRows rows;
	DpGroup **concerned = MemoryContextAllocHuge(t->batch->context, sizeof(DpGroup *) * n);
	DpGroup **lost = MemoryContextAllocHuge(t->batch->context, sizeof(DpGroup *) * n);
	int nlocks = 0;
	int nlost = 0;
	int nmissing = 0;
	int i;

	order_init(t);
	rows.n = 0;
	rows.cap = n + t->nwanted + 8;
	rows.v = MemoryContextAllocExtended(t->batch->context, sizeof(TargetRow) * rows.cap,
										MCXT_ALLOC_HUGE);
	for (i = 0; i < n && !t->batch->locked; i++)
	{
		if (groups[i]->derivation->methods->group_lock == NULL && !groups[i]->derivation->guarded &&
			waits_for_row(t, groups[i]))
			lost[nlocks++] = groups[i];
	}
	if (nlocks > 0 && !dp_derive_lock_few(lost, nlocks))
	{
		/* rows of a group may be missing beside those that are found */
		for (i = 0; i < nlocks; i++)
		{
			if (!unique_row(lost[i]))
				lost[nlost++] = lost[i];
		}
		if (nlost > 0)
			dp_derive_lock_groups(lost, nlost, NoLock);
		nlocks = nlost = 0;
	}
	for (i = 0; i < n; i++)
	{
		group_rows(t, groups[i], &rows);
		nmissing += !groups[i]->found && groups[i]->derivation->guarded;
	}
	for (i = 0; i < n; i++)
	{
		if (!groups[i]->found && waits_for_row(t, groups[i]) &&
			(groups[i]->derivation->guarded
				 ? !dp_derive_locks_few(nmissing)
				 : nlocks == 0 || groups[i]->derivation->methods->group_lock != NULL))
			lost[nlost++] = groups[i];
	}
	if (nlost > 0)
	{
		dp_derive_lock_groups(lost, nlost, NoLock);
		dp_writer_refresh_keep_refs(t->w);
		for (i = 0; i < nlost; i++)
			group_rows(t, lost[i], &rows);
	}
	others_lock(t, groups, n);
	for (i = 0; i < t->nwanted; i++)
	{
		DpReferencedRow *wanted = &t->wanted[i];
		DpKey key;

		CHECK_FOR_INTERRUPTS();
		if (dp_key_of_value(wanted->decl, &wanted->id, &key) &&
			dp_writer_find(t->w, wanted->lookup, key.values))
			target_row_add(t, &rows, NULL, wanted->mode);
	}
	nlost = 0;
	for (i = 0; i < n; i++)
	{
		if (!groups[i]->found && groups[i]->derivation->create_missing &&
			!target_missing_add(t, &rows, groups[i]))
			lost[nlost++] = groups[i];
	}
	qsort_arg(rows.v, rows.n, sizeof(TargetRow), target_row_compare, &t->order);
	dp_writer_keep(t->w);

	for (i = 0; i < rows.n;)
	{
		TargetRow *first = &rows.v[i];
		int here = 0;
		int k;

		CHECK_FOR_INTERRUPTS();
		if (!OidIsValid(first->ref.relid))
		{
			target_missing(t, &first->group, 1);
			i++;
			continue;
		}
		for (; i < rows.n && rows.v[i].ref.relid == first->ref.relid &&
			   ItemPointerEquals(&rows.v[i].ref.tid, &first->ref.tid);
			 i++)
		{
			if (rows.v[i].group != NULL)
				concerned[here++] = rows.v[i].group;
		}
		if (!dp_writer_fetch(t->w, &first->ref))
		{
			for (k = 0; k < here; k++)
				concerned[k]->retry = true;
		}
		else if (here > 0)
			row_apply(t, concerned, here, &first->ref);
		else
			(void) dp_writer_lock(t->w, first->lock);
		for (k = 0; k < here; k++)
		{
			/* another row with the same key has the same position in the order */
			if (concerned[k]->retry && unique_row(concerned[k]))
				target_missing(t, &concerned[k], 1);
		}
	}

	for (i = 0; i < n; i++)
	{
		if (groups[i]->retry)
			lost[nlost++] = groups[i];
	}
	if (nlost > 0)
		target_missing(t, lost, nlost);
}

/* Adds the group's rows that must be written. */
static void
group_rows(Target *t, DpGroup *group, TargetRows *rows)
{
	bool more;
	int mine = 0;

	CHECK_FOR_INTERRUPTS();
	if (group->left)
	{
		group->found = true;
		return;
	}
	for (more = group_find(t, group); more; more = !unique_row(group) && dp_writer_next(t->w))
	{
		group->found = true;
		mine++;
		if (row_concerns(t, group))
			target_row_add(t, rows, group, LockTupleNoKeyExclusive);
	}
	group->multiple = mine > 1;
}

/*
 * True if a group without a row must be locked.  A recomputation need not wait for a row: its
 * inserter computes it.
 */
static bool
waits_for_row(const Target *t, const DpGroup *group)
{
	return !t->forced || group->derivation->create_missing;
}

/* Allocates one more row. */
static TargetRow *
target_row_room(TargetRows *rows)
{
	if (rows->n == rows->cap)
	{
		rows->cap *= 2;
		rows->v = repalloc_huge(rows->v, sizeof(TargetRow) * rows->cap);
	}
	return &rows->v[rows->n];
}

/* Adds the writer's current row. */
static void
target_row_add(Target *t, TargetRows *rows, DpGroup *group, LockTupleMode lock)
{
	MemoryContext old = MemoryContextSwitchTo(t->batch->context);
	TargetRow *row;
	DpKey key;
	int i;

	row = target_row_room(rows);
	dp_writer_ref(t->w, &row->ref);
	dp_writer_key(t->w, &key);
	row->key.n = key.n;
	for (i = 0; i < key.n; i++)
		row->key.values[i] = datumCopy(key.values[i], t->order.byval[i], t->order.len[i]);
	row->group = group;
	row->lock = lock;
	row->seq = rows->n++;
	MemoryContextSwitchTo(old);
}

/*
 * Adds a missing row of a group in key order, without a table.  False if the group does not
 * determine the row's primary key.
 */
static bool
target_missing_add(Target *t, TargetRows *rows, DpGroup *group)
{
	MemoryContext old = MemoryContextSwitchTo(t->batch->context);
	TargetRow *row = target_row_room(rows);
	bool result =
		unique_row(group) && group_key(group, &row->key) && row->key.n == t->order.n &&
		(!group->derivation->methods->main_on_source || t->order.type[0] == dp_types()->bson_value);

	if (result)
	{
		memset(&row->ref, 0, sizeof(DpRowRef));
		row->group = group;
		row->lock = LockTupleNoKeyExclusive;
		row->seq = rows->n++;
	}
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * Groups whose row was not found, or was deleted or got another key before it could be locked.
 * Creates rows.  While the groups are locked, a transaction that inserts such a row has either
 * committed, and the row is found now, or will read the source after this one.  A DELETE needs no
 * such lock: a row may disappear again between search and lock.
 */
static void
target_missing(Target *t, DpGroup **groups, int n)
{
	DpGroup **locked = palloc(sizeof(DpGroup *) * n);
	int nlocked = 0;
	int i;
	int left = 0;

	for (i = 0; i < n; i++)
	{
		/* a deleted row may be in another partition, which is visible without a group lock */
		if (waits_for_row(t, groups[i]))
			locked[nlocked++] = groups[left++] = groups[i];
		else if (groups[i]->retry)
			groups[left++] = groups[i];
	}
	n = left;
	if (nlocked > 0)
		dp_derive_lock_groups(locked, nlocked, NoLock);
	pfree(locked);
	for (i = 0; i < n; i++)
	{
		DpGroup *group = groups[i];
		List *refs = NIL;
		bool more;
		ListCell *lc;

		if (group->left)
			continue;
		do
		{
			/*
			 * makes visible what was committed before the locks, and what was written for the group
			 */
			CHECK_FOR_INTERRUPTS();
			dp_writer_refresh(t->w);

			/* some of its rows may have been written above */
			if (group->retry && group->multiple)
				group->recompute = true;
			group->retry = false;
			list_free_deep(refs);
			refs = NIL;
			for (more = group_find(t, group); more;
				 more = !unique_row(group) && dp_writer_next(t->w))
			{
				DpRowRef *ref = palloc(sizeof(DpRowRef));

				dp_writer_ref(t->w, ref);
				refs = lappend(refs, ref);
			}
			group->multiple = list_length(refs) > 1;
			foreach(lc, refs)
			{
				if (dp_writer_fetch(t->w, lfirst(lc)))
					row_apply(t, &group, 1, lfirst(lc));
				else
					group->retry = true;
			}
		} while (group->retry);
		if (refs == NIL && group->derivation->create_missing)
			target_make(t, group);
		list_free_deep(refs);
	}
}

/*
 * Creates a row for a group, if it needs one.  Fields of other derivations are those of empty
 * groups until they are computed.
 */
static void
target_make(Target *t, DpGroup *group)
{
	DpDerivation *d = group->derivation;
	MemoryContext old = MemoryContextSwitchTo(t->row);
	struct varlena *doc;
	ListCell *lc;

	/* also if the row that was found was deleted since */
	group->found = false;
	group->locked = true;
	others_lock(t, &group, 1);
	doc = d->methods->create(d, group);
	if (doc == NULL)
	{
		MemoryContextSwitchTo(old);
		MemoryContextReset(t->row);
		return;
	}
	foreach(lc, others_of(d))
	{
		DpDerivation *other = lfirst(lc);
		DpGroup *same;

		if (other->methods->protect != NULL)
			doc = other->methods->protect(other, NULL, doc);
		if (strcmp(other->link_text, d->link_text) != 0)
			continue;
		same = dp_derive_find(t->batch, other, &group->key);
		if (same != NULL && same->to_write && other->create_missing)
		{
			/* it is handled later, or has no rows */
			same->recompute = true;
			continue;
		}
		if (t->made == NULL)
		{
			MemoryContextSwitchTo(t->batch->context);
			t->made = dp_derive_begin();
			t->made->locked = true;
			MemoryContextSwitchTo(t->row);
		}
		dp_derive_group(t->made, other, &group->key)->recompute = true;
	}
	MemoryContextSwitchTo(old);
	dp_writer_insert(t->w, doc);
	MemoryContextReset(t->row);
}

/*
 * Locks the groups of other derivations in rows that will be created, as an insert of a row does.
 */
static void
others_lock(Target *t, DpGroup **groups, int n)
{
	DpDeriveBatch *batch = NULL;
	DpGroup **locked;
	DpGroup *group;
	int nlocked = 0;
	int i;

	for (i = 0; i < n; i++)
	{
		ListCell *lc;

		if (groups[i]->found || groups[i]->others_held || !groups[i]->derivation->create_missing ||
			groups[i]->derivation->guarded)
			continue;
		groups[i]->others_held = true;
		foreach(lc, others_of(groups[i]->derivation))
		{
			DpDerivation *other = lfirst(lc);
			DpGroup *same;

			/* derivations that create the rows share their locks */
			if (other->create_missing || other->deferred ||
				strcmp(other->link_text, groups[i]->derivation->link_text) != 0)
				continue;
			same = dp_derive_find(t->batch, other, &groups[i]->key);
			if (same != NULL && same->exclusive && same->to_write &&
				(same->lock_mode == ShareRowExclusiveLock || other->methods->group_lock != NULL))
				continue;
			if (batch == NULL)
				batch = dp_derive_begin();
			dp_derive_group(batch, other, &groups[i]->key);
		}
	}
	if (batch == NULL)
		return;
	locked = MemoryContextAllocHuge(batch->context, sizeof(DpGroup *) * batch->ngroups);
	for (group = batch->groups; group != NULL; group = group->next)
		locked[nlocked++] = group;
	dp_derive_lock_groups(locked, nlocked, ShareLock);
	MemoryContextDelete(batch->context);
}

/* Other derivations with fields in the same documents, which not every document has. */
static List *
others_of(const DpDerivation *d)
{
	List *others = NIL;
	ListCell *lc;

	foreach(lc, d->guarded ? NIL : dp_derivations_of_target(d->target))
	{
		DpDerivation *other = lfirst(lc);

		/*
		 * a derivation that deletes documents without its fields has written all its fields into
		 * existing documents
		 */
		if (other != d && !other->guarded && !other->drop_empty && OidIsValid(other->source) &&
			dp_decl_maintained(other->decl))
			others = lappend(others, other);
	}
	if (list_length(others) > 1)
		list_sort(others, name_compare);
	return others;
}

/* Orders derivations by pattern and name, as triggers fire. */
static int
name_compare(const ListCell *a, const ListCell *b)
{
	const DpDerivation *left = lfirst(a);
	const DpDerivation *right = lfirst(b);
	int cmp = strcmp(left->decl->pattern, right->decl->pattern);

	return cmp != 0 ? cmp : strcmp(left->decl->name, right->decl->name);
}

/* Makes the group's (first) row current. */
static bool
group_find(Target *t, DpGroup *group)
{
	MemoryContext old = MemoryContextSwitchTo(t->row);
	bool found;

	MemoryContextReset(t->row);
	found = group_key(group, &t->sought) &&
			dp_writer_find(t->w, group->derivation->lookup, t->sought.values);
	MemoryContextSwitchTo(old);
	return found;
}

/* The key by which a group's row is found, in the current context; false if no row can have it. */
static bool
group_key(const DpGroup *group, DpKey *key)
{
	DpDerivation *d = group->derivation;

	if (d->link == NULL && !d->methods->main_on_source)
		return dp_key_of_value(d->decl, &group->key, key);
	key->n = 1;
	key->values[0] = PointerGetDatum(dp_value_to_varlena(&group->key));
	return true;
}

/* True if no other row can have the group's key. */
static bool
unique_row(const DpGroup *group)
{
	return group->derivation->link == NULL;
}

/* True if the pattern needs the found row to be written. */
static bool
row_concerns(Target *t, DpGroup *group)
{
	DpDerivation *d = group->derivation;
	struct varlena *doc;

	if (d->methods->concerns == NULL)
		return true;
	doc = dp_writer_document(t->w);
	return doc != NULL && d->methods->concerns(d, group, doc);
}

/* Updates the current row for all its groups. */
static void
row_apply(Target *t, DpGroup **groups, int n, const DpRowRef *ref)
{
	MemoryContext old = MemoryContextSwitchTo(t->row);
	bool locked = false;
	int i;

	for (;;)
	{
		struct varlena *doc = dp_writer_document(t->w);
		struct varlena *result = doc;
		bool need_lock = false;
		DpWriteResult written;

		if (doc == NULL)
			break; /* without a document there are no fields */
		for (i = 0; i < n && result != NULL; i++)
		{
			DpGroup *group = groups[i];

			if (group->retry)
				continue;
			group->locked = locked;
			group->need_lock = false;
			result = group->derivation->methods->apply(group->derivation, group, result);
			need_lock |= group->need_lock;
			if (result == NULL && !group->derivation->drop_empty)
				elog(ERROR, "a derivation returned no document");
		}

		/* only a locked row can be known to need no write */
		if (!locked && (need_lock || result == doc))
		{
			if (!row_locked(t, groups, n, ref))
				break;
			locked = true;
			continue;
		}
		if (result == doc)
			break;

		/* functions of triggers allocate in the context of their first call */
		MemoryContextSwitchTo(t->batch->context);
		written = result == NULL ? dp_writer_delete(t->w) : dp_writer_update(t->w, result);
		MemoryContextSwitchTo(t->row);
		if (written == DP_WRITE_DEADLOCK)
			row_leave(groups, n);
		if (written != DP_WRITE_CHANGED)
			break;

		/* another transaction changed it first */
		if (!dp_writer_fetch(t->w, ref))
		{
			for (i = 0; i < n; i++)
				groups[i]->retry = true;
			break;
		}
		if (!row_locked(t, groups, n, ref))
			break;
		locked = true;
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(t->row);
}

/*
 * Locks the current row.  Groups to which it no longer belongs must be searched again.  Returns
 * true if any are left.
 */
static bool
row_locked(Target *t, DpGroup **groups, int n, const DpRowRef *ref)
{
	DpLockResult result = dp_writer_lock(t->w, LockTupleNoKeyExclusive);
	bool left = false;
	int i;

	if (result == DP_LOCK_DEADLOCK)
	{
		row_leave(groups, n);
		return false;
	}
	for (i = 0; i < n; i++)
	{
		if (result == DP_LOCK_DELETED)
			groups[i]->retry = true;
		else if (result == DP_LOCK_CHANGED && !groups[i]->retry)
		{
			struct varlena *doc = dp_writer_document(t->w);
			DpValue key;

			if (!dp_derive_key_of_row(groups[i]->derivation, t->w, doc, &key) ||
				dp_value_compare(&key, &groups[i]->key) != 0)
				groups[i]->retry = true;
		}
		left |= !groups[i]->retry;
	}
	return left;
}

/* Leaves the current row to the transaction that holds it. */
static void
row_leave(DpGroup **groups, int n)
{
	int i;

	for (i = 0; i < n; i++)
	{
		if (!groups[i]->retry)
			dp_note(groups[i]->derivation->decl, &groups[i]->key, groups[i]->derivation->target);
	}
}

bool
dp_derive_key_of_row(DpDerivation *d, DpWriter *w, struct varlena *doc, DpValue *key)
{
	if (d->link == NULL && !d->methods->main_on_source)
	{
		DpKey row_key;

		dp_writer_key(w, &row_key);
		*key = dp_value_of_varlena(dp_key_to_value(d->decl, &row_key));
		return true;
	}
	if (doc == NULL)
		return false;
	if (d->link == NULL)
		return dp_field_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), "_id", 3, key);
	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), d->link, key) &&
		   key->type != DP_TYPE_NULL && key->type != DP_TYPE_UNDEFINED;
}

/* ---------------------------------------------------------------- order */

/* Prepares comparing keys of the target. */
static void
order_init(Target *t)
{
	Relation rel = dp_writer_relation(t->w);
	Relation index;
	int i;

	if (t->ordered)
		return;
	t->ordered = true;
	list_free(RelationGetIndexList(rel));
	if (!OidIsValid(rel->rd_pkindex))
		return;
	index = index_open(rel->rd_pkindex, AccessShareLock);
	t->order.n = IndexRelationGetNumberOfKeyAttributes(index);
	for (i = 0; i < t->order.n; i++)
	{
		Form_pg_attribute att =
			TupleDescAttr(RelationGetDescr(rel), index->rd_index->indkey.values[i] - 1);
		TypeCacheEntry *type = lookup_type_cache(att->atttypid, TYPECACHE_CMP_PROC_FINFO);

		t->order.type[i] = att->atttypid;
		t->order.byval[i] = att->attbyval;
		t->order.len[i] = att->attlen;
		t->order.collation[i] = att->attcollation;
		t->order.cmp[i] = &type->cmp_proc_finfo;
	}
	index_close(index, NoLock);
}

/* Orders target rows by key; arg is a KeyOrder. */
static int
target_row_compare(const void *a, const void *b, void *arg)
{
	const TargetRow *left = a;
	const TargetRow *right = b;
	const KeyOrder *order = arg;
	int i;

	for (i = 0; i < order->n; i++)
	{
		int cmp = 0;

		if (OidIsValid(order->cmp[i]->fn_oid))
			cmp = DatumGetInt32(FunctionCall2Coll(order->cmp[i], order->collation[i],
												  left->key.values[i], right->key.values[i]));
		if (cmp != 0)
			return cmp;
	}
	if (left->ref.relid != right->ref.relid)
		return left->ref.relid < right->ref.relid ? -1 : 1;
	i = ItemPointerCompare((ItemPointer) &left->ref.tid, (ItemPointer) &right->ref.tid);
	if (i != 0)
		return i;
	return left->seq < right->seq ? -1 : 1;
}

/* Orders groups by target. */
static int
target_compare(const void *a, const void *b)
{
	const DpGroup *left = *(DpGroup *const *) a;
	const DpGroup *right = *(DpGroup *const *) b;

	if (left->derivation->target != right->derivation->target)
		return left->derivation->target < right->derivation->target ? -1 : 1;
	return dp_derive_group_compare(a, b);
}
