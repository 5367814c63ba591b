/*
 * change.c
 *		Changes of single measurements that are packed.
 *
 * A statement that updates or deletes measurements sees them as they were when it
 * began.  Its changes are collected by bucket and position.  At the end each
 * bucket is packed again once, in the order of groups and spans (not of TIDs,
 * which change with versions), so that statements that change the same buckets do
 * not deadlock.
 *
 * If another transaction has changed a bucket, at READ COMMITTED its newest version
 * is used, and each measurement is searched there by all its values: if found, it
 * is the same measurement, and the statement's conditions still hold.  If not, it
 * was changed or deleted: T_R_SERIALIZATION_FAILURE is raised, as it is at once at
 * stricter isolation levels.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "patterns/bucket/change.h"
#include "patterns/bucket/pack.h"
#include "patterns/bucket/slot.h"

/* The change of one measurement */
typedef struct Change
{
	int position;
	Datum *values; /* NULL: delete */
	bool *nulls;
} Change;

/* A bucket that is to be changed */
typedef struct Entry
{
	ItemPointerData tid; /* hash key: the version that was read */
	bool again;          /* found by looking again: the newest version */
	bool done;
	uint32 group; /* hash of the group, start and number: its sort key */
	int64 start;
	int seq;
	Bitmapset *touched;
	int n;
	int max;
	Change *changes;
} Entry;

struct DpBucketChanges
{
	DpBucketStore *store;
	MemoryContext context;
	HTAB *entries;
	List *moved; /* Change: rows that leave their bucket */
};

static Entry *entry_get(DpBucketChanges *changes, const ItemPointerData *tid);
static void entry_add(DpBucketChanges *changes, Entry *entry, int position, const Datum *values,
					  const bool *nulls);
static void entry_apply(DpBucketChanges *changes, Entry *entry);
static List *bucket_rebuild(DpBucketChanges *changes, Entry *entry, const ItemPointerData *tid,
							const DpBucketGroup *group, int64 start, Datum data, List **moved);
static bool entry_relocate(DpBucketChanges *changes, Entry *entry, Datum before, Datum now);
static int find_row(DpBucketStore *store, Datum data, const Datum *values, const bool *nulls,
					const Bitmapset *except);
static bool
stays(DpBucketStore *store, const Change *change, const DpBucketGroup *group, int64 start);
static int compare_entry(const void *a, const void *b);
static int compare_change(const void *a, const void *b);

/*
 * An empty set, in the store's context.
 */
DpBucketChanges *
dp_bucket_changes_create(DpBucketStore *store)
{
	DpBucketChanges *changes = MemoryContextAllocZero(store->context, sizeof(DpBucketChanges));

	changes->store = store;
	return changes;
}

/*
 * Note a change.
 */
bool
dp_bucket_changes_add(DpBucketChanges *changes, const ItemPointerData *tid, int position,
					  const Datum *values, const bool *nulls)
{
	Entry *entry = entry_get(changes, tid);

	if (bms_is_member(position, entry->touched))
		return false;
	entry_add(changes, entry, position, values, nulls);
	return true;
}

/* Does the same to a measurement that was packed after it was read. */
void
dp_bucket_changes_again(DpBucketChanges *changes, ItemPointer tid, const Datum *values,
						const bool *nulls)
{
	DpBucketStore *store = changes->store;
	DpBucketRel *rel = store->rel;
	MemoryContext old;
	Datum *was;
	bool *was_null;
	DpBucketGroup group;
	int64 start;
	IndexScanDesc scan;
	bool found = false;

	if (IsolationUsesXactSnapshot())
		dp_bucket_lost();
	if (!dp_bucket_recent_fetch(store, tid))
		dp_bucket_lost();

	MemoryContextReset(store->scratch);
	old = MemoryContextSwitchTo(store->scratch);
	was = palloc(sizeof(Datum) * Max(rel->ncolumns, 1));
	was_null = palloc(sizeof(bool) * Max(rel->ncolumns, 1));
	dp_bucket_recent_row(store, was, was_null);
	dp_bucket_group_of_row(rel, was, was_null, &group);
	start = rel->time != NULL
				? dp_bucket_rel_start(rel, DatumGetInt64(was[rel->time - rel->columns]))
				: 0;

	scan = dp_bucket_packed_scan(store, &group, start, dp_bucket_store_snapshot(store, true));
	while (!found && dp_bucket_packed_next(store, scan))
	{
		DpBucketGroup there;
		Datum data;
		Entry *entry;
		int position;

		dp_bucket_packed_row(store, &there, NULL, NULL, &data);
		if (!dp_bucket_group_same(rel, &group, &there))
			continue;
		if (changes->entries != NULL)
			entry = hash_search(changes->entries, &store->packed.row->tts_tid, HASH_FIND, NULL);
		else
			entry = NULL;
		position = find_row(store, data, was, was_null, entry != NULL ? entry->touched : NULL);
		if (position >= 0)
		{
			if (entry == NULL)
			{
				entry = entry_get(changes, &store->packed.row->tts_tid);
				entry->again = true;
			}
			entry_add(changes, entry, position, values, nulls);
			found = true;
		}
	}
	index_endscan(scan);
	ExecClearTuple(store->packed.row);
	ExecClearTuple(store->recent.row);
	MemoryContextSwitchTo(old);
	if (!found)
		dp_bucket_lost();
}

/*
 * Make the changes.
 */
void
dp_bucket_changes_apply(DpBucketChanges *changes)
{
	DpBucketStore *store = changes->store;
	HASH_SEQ_STATUS seq;
	Entry *entry;
	Entry **sorted;
	ListCell *lc;
	int n = 0;
	int i;

	if (changes->entries == NULL)
		return;
	sorted = MemoryContextAllocHuge(changes->context,
									sizeof(Entry *) * hash_get_num_entries(changes->entries));
	hash_seq_init(&seq, changes->entries);
	while ((entry = hash_seq_search(&seq)) != NULL)
	{
		DpBucketGroup group;

		CHECK_FOR_INTERRUPTS();
		if (!dp_bucket_packed_fetch(store, &entry->tid))
			elog(ERROR, "a bucket has vanished");
		dp_bucket_packed_row(store, &group, &entry->start, &entry->seq, NULL);
		entry->group = dp_bucket_group_hash(store->rel, &group);
		sorted[n++] = entry;
	}
	qsort(sorted, n, sizeof(Entry *), compare_entry);
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!sorted[i]->done)
			entry_apply(changes, sorted[i]);
	}

	foreach(lc, changes->moved)
	{
		Change *change = lfirst(lc);

		if (store->rel->same_slot != DP_SLOT_NONE)
			dp_bucket_slot_free(store, change->values, change->nulls, NULL);
		dp_bucket_recent_insert(store, change->values, change->nulls, NULL);
	}
	MemoryContextDelete(changes->context);
	changes->context = NULL;
	changes->entries = NULL;
	changes->moved = NIL;
}

/* Raises an error: the measurement has changed. */
void
dp_bucket_lost(void)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
		 errmsg("could not serialize access due to concurrent update"),
		 errdetail(
			 "Another transaction has changed or deleted a measurement that this statement changes."),
		 errhint("Try the statement again.")));
}

/*
 * A measurement was changed by another part of the statement, or by a command
 * that the statement has called.
 */
void
dp_bucket_changed_twice(bool part)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
		 part
			 ? errmsg("cannot change a measurement twice in one statement")
			 : errmsg(
				   "measurement to be changed was already changed by an operation triggered by the current command"),
		 part
			 ? errhint("Change each measurement in only one part of the statement.")
			 : errhint(
				   "Consider using an AFTER trigger instead of a BEFORE trigger or a function to change other rows.")));
}

/* The changes of a bucket */
static Entry *
entry_get(DpBucketChanges *changes, const ItemPointerData *tid)
{
	Entry *entry;
	bool found;

	if (changes->entries == NULL)
	{
		HASHCTL ctl;

		changes->context =
			AllocSetContextCreate(changes->store->context, "docpatterns bucket changes",
								  ALLOCSET_DEFAULT_SIZES);
		ctl.keysize = sizeof(ItemPointerData);
		ctl.entrysize = sizeof(Entry);
		ctl.hcxt = changes->context;
		changes->entries = hash_create("docpatterns bucket changes", 64, &ctl,
									   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	entry = hash_search(changes->entries, tid, HASH_ENTER, &found);
	if (!found)
		memset((char *) entry + offsetof(Entry, again), 0, sizeof(Entry) - offsetof(Entry, again));
	return entry;
}

/* One change more; the row is copied. */
static void
entry_add(DpBucketChanges *changes, Entry *entry, int position, const Datum *values,
		  const bool *nulls)
{
	DpBucketRel *rel = changes->store->rel;
	MemoryContext old = MemoryContextSwitchTo(changes->context);
	Change *change;
	int i;

	if (entry->n == entry->max)
	{
		entry->max = Max(4, entry->max * 2);
		entry->changes = entry->changes == NULL
							 ? palloc(sizeof(Change) * entry->max)
							 : repalloc(entry->changes, sizeof(Change) * entry->max);
	}
	change = &entry->changes[entry->n++];
	change->position = position;
	change->values = NULL;
	change->nulls = NULL;
	if (values != NULL)
	{
		change->values = palloc(sizeof(Datum) * Max(rel->ncolumns, 1));
		change->nulls = palloc(sizeof(bool) * Max(rel->ncolumns, 1));
		for (i = 0; i < rel->ncolumns; i++)
		{
			change->nulls[i] = nulls[i];
			change->values[i] =
				nulls[i] ? (Datum) 0
						 : datumCopy(values[i], rel->columns[i].typbyval, rel->columns[i].typlen);
		}
	}
	entry->touched = bms_add_member(entry->touched, position);
	MemoryContextSwitchTo(old);
}

/* Packs a bucket again with its changes. */
static void
entry_apply(DpBucketChanges *changes, Entry *entry)
{
	DpBucketStore *store = changes->store;
	MemoryContext context = AllocSetContextCreate(changes->context, "docpatterns bucket change",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	ItemPointerData tid = entry->tid;
	CommandId cid = store->cid;

	entry->done = true;
	if (store->rel->same_slot != DP_SLOT_NONE)
	{
		int i;

		for (i = 0; i < entry->n; i++)
		{
			if (entry->changes[i].values != NULL)
				dp_bucket_slot_free(store, entry->changes[i].values, entry->changes[i].nulls, &tid);
		}
	}
	if (!dp_bucket_packed_fetch(store, &tid))
		elog(ERROR, "a bucket has vanished");
	for (;;)
	{
		DpBucketGroup group;
		DpBucketGroup copy;
		int64 start;
		int seq;
		Datum data;
		Datum now;
		List *made;
		List *moved = NIL;
		TM_Result result;
		TM_FailureData *failure = &store->packed.failure;
		Entry *other;
		ListCell *lc;

		dp_bucket_packed_row(store, &group, &start, &seq, &data);
		made = bucket_rebuild(changes, entry, &tid, &group, start, data, &moved);
		dp_bucket_group_copy(store->rel, &group, &copy);
		if (made == NIL)
			result = dp_table_delete(&store->packed, &tid, true);
		else
			result = dp_bucket_packed_update(store, &tid, PointerGetDatum(linitial(made)));

		if (result == TM_Ok)
		{
			/* a page that has become two: the second is the last one of its group then */
			if (list_length(made) > 1 && store->rel->time == NULL)
				seq = dp_bucket_next_page(store, &copy) - 1;
			if (made != NIL)
				for_each_from(lc, made, 1)
					dp_bucket_packed_insert(store, &copy, start, ++seq,
											PointerGetDatum(lfirst(lc)));
			MemoryContextSwitchTo(changes->context);
			changes->moved = list_concat(changes->moved, moved);
			MemoryContextSwitchTo(old);
			store->cid = cid;
			break;
		}
		if (result == TM_SelfModified)
		{
			bool here = failure->cmax == store->cid;

			/*
			 * another part of this statement (WITH) has changed it: continue with the result,
			 * unless it changed the same measurement
			 */
			data = datumCopy(data, false, -1);
			if (here && !ItemPointerEquals(&failure->ctid, &tid) &&
				dp_bucket_packed_fetch(store, &failure->ctid))
			{
				tid = failure->ctid;
				dp_bucket_packed_row(store, NULL, NULL, NULL, &now);
				if (entry_relocate(changes, entry, data, now))
				{
					/* rows written by a command can only be changed by a later one */
					if (GetCurrentCommandId(true) == store->cid++)
						CommandCounterIncrement();
					(void) GetCurrentCommandId(true);
					continue;
				}
			}
			dp_bucket_changed_twice(here);
		}
		if (result != TM_Updated || IsolationUsesXactSnapshot())
			dp_bucket_lost();

		/* changed by another transaction: continue with the result */
		data = datumCopy(data, false, -1);
		result = table_tuple_lock(store->packed.rel, &tid,
								  store->estate->es_snapshot != NULL ? store->estate->es_snapshot
																	 : GetActiveSnapshot(),
								  store->packed.row, GetCurrentCommandId(true), LockTupleExclusive,
								  LockWaitBlock, TUPLE_LOCK_FLAG_FIND_LAST_VERSION, failure);
		if (result != TM_Ok)
			dp_bucket_lost();
		tid = store->packed.row->tts_tid;
		dp_bucket_packed_row(store, NULL, NULL, NULL, &now);
		if (!entry_relocate(changes, entry, data, now))
			dp_bucket_lost();

		/* changes that were found again may be meant for the same bucket */
		other = hash_search(changes->entries, &tid, HASH_FIND, NULL);
		if (other != NULL && other != entry)
		{
			int i;

			if (other->done)
				dp_bucket_lost();
			other->done = true;
			for (i = 0; i < other->n; i++)
			{
				if (bms_is_member(other->changes[i].position, entry->touched))
					dp_bucket_lost();
				entry_add(changes, entry, other->changes[i].position, other->changes[i].values,
						  other->changes[i].nulls);
			}
		}
	}
	ExecClearTuple(store->packed.row);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* The bucket with its changes, as buckets within the limits; NIL if nothing is left of it. */
static List *
bucket_rebuild(DpBucketChanges *changes, Entry *entry, const ItemPointerData *tid,
			   const DpBucketGroup *group, int64 start, Datum data, List **moved)
{
	DpBucketStore *store = changes->store;
	DpBucketBuilder *builder = dp_bucket_store_builder(store);
	DpBucketReader *reader = dp_bucket_store_reader(store);
	List *made;
	ListCell *lc;
	int from = 0;
	int i;

	qsort(entry->changes, entry->n, sizeof(Change), compare_change);
	dp_bucket_open(reader, data);
	for (i = 0; i < entry->n; i++)
	{
		Change *change = &entry->changes[i];

		if (change->position < from || change->position >= reader->count)
			elog(ERROR, "a change of a measurement is out of place");
		if (change->position > from)
			dp_bucket_append_bucket(builder, reader, from, change->position);
		if (change->values != NULL)
		{
			if (stays(store, change, group, start))
				dp_bucket_append_row(store, builder, change->values, change->nulls);
			else
			{
				MemoryContext old = MemoryContextSwitchTo(changes->context);

				*moved = lappend(*moved, change);
				MemoryContextSwitchTo(old);
			}
		}
		from = change->position + 1;
	}
	if (from < reader->count)
		dp_bucket_append_bucket(builder, reader, from, reader->count);
	made = dp_bucket_split(store, builder, true);
	if (store->rel->same_slot != DP_SLOT_NONE)
		foreach(lc, made)
			dp_bucket_slot_verify(store, PointerGetDatum(lfirst(lc)));
	return made;
}

/* Whether a changed row still belongs to the group and span. */
static bool
stays(DpBucketStore *store, const Change *change, const DpBucketGroup *group, int64 start)
{
	DpBucketRel *rel = store->rel;
	DpBucketGroup mine;

	dp_bucket_group_of_row(rel, change->values, change->nulls, &mine);
	return dp_bucket_group_same(rel, group, &mine) &&
		   (rel->time == NULL ||
			dp_bucket_rel_start(rel, DatumGetInt64(change->values[rel->time - rel->columns])) ==
				start);
}

/* Finds the measurements in a changed bucket by their values. Returns false if one is missing. */
static bool
entry_relocate(DpBucketChanges *changes, Entry *entry, Datum before, Datum now)
{
	DpBucketStore *store = changes->store;
	DpBucketRel *rel = store->rel;
	DpBucketReader reader;
	Bitmapset *touched = NULL;
	MemoryContext old = CurrentMemoryContext;
	Datum *was = palloc0(sizeof(Datum) * Max(rel->ncolumns, 1));
	bool *was_null = palloc0(sizeof(bool) * Max(rel->ncolumns, 1));
	int i;

	dp_bucket_reader_init(&reader, CurrentMemoryContext);
	dp_bucket_open(&reader, before);
	for (i = 0; i < entry->n; i++)
	{
		int position;

		dp_bucket_read_row(store, &reader, entry->changes[i].position, was, was_null);
		position = find_row(store, now, was, was_null, touched);
		if (position < 0)
			return false;
		entry->changes[i].position = position;
		MemoryContextSwitchTo(changes->context);
		touched = bms_add_member(touched, position);
		MemoryContextSwitchTo(old);
	}
	entry->touched = touched;
	dp_bucket_reader_free(&reader);
	return true;
}

/*
 * The position of a measurement in a bucket, found by its time and all its
 * values, but for those that are taken; -1 if it is not there.  The group is
 * not compared.
 */
static int
find_row(DpBucketStore *store, Datum data, const Datum *values, const bool *nulls,
		 const Bitmapset *except)
{
	DpBucketRel *rel = store->rel;
	DpBucketReader reader;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns bucket row",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	int from;
	int to;
	int result = -1;
	Datum *column;
	bool *column_nulls;
	bool *fits;
	int i;
	int row;

	dp_bucket_reader_init(&reader, context);
	dp_bucket_open(&reader, data);
	from = 0;
	to = reader.count;
	if (rel->time != NULL)
	{
		int64 time = DatumGetInt64(values[rel->time - rel->columns]);

		if (!dp_bucket_find_times(&reader, time, time + 1, &from, &to))
			to = from;
	}
	column = palloc(sizeof(Datum) * reader.count);
	column_nulls = palloc(sizeof(bool) * reader.count);
	fits = palloc(sizeof(bool) * reader.count);
	memset(fits, true, reader.count);
	for (i = 0; from < to && i < rel->nvalues; i++)
	{
		const DpBucketColumn *def = rel->values[i];
		int at = def - rel->columns;

		dp_bucket_datums(&reader, i, def->type, def->typmod, column, column_nulls);
		for (row = from; row < to; row++)
		{
			if (column_nulls[row] != nulls[at] ||
				(!nulls[at] &&
				 !datum_image_eq(column[row], values[at], def->typbyval, def->typlen)))
				fits[row] = false;
		}
	}
	for (row = from; row < to && result < 0; row++)
	{
		if (fits[row] && !bms_is_member(row, except))
			result = row;
	}
	dp_bucket_reader_free(&reader);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return result;
}

/* Buckets that were read before those that were found again, each by group, start and number. */
static int
compare_entry(const void *a, const void *b)
{
	const Entry *left = *(Entry *const *) a;
	const Entry *right = *(Entry *const *) b;

	if (left->again != right->again)
		return left->again ? 1 : -1;
	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	if (left->seq != right->seq)
		return left->seq < right->seq ? -1 : 1;
	return ItemPointerCompare((ItemPointer) &left->tid, (ItemPointer) &right->tid);
}

/* By position. */
static int
compare_change(const void *a, const void *b)
{
	const Change *left = a;
	const Change *right = b;

	return left->position < right->position ? -1 : left->position > right->position;
}
