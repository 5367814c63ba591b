/*
 * find.c
 *		Finds, fetches, locks and reads rows for a writer.
 *
 * Everything is read in its latest committed state: a writer takes a new snapshot when the old one
 * is known to be outdated.  Writes are in write.c.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/multixact.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/reader.h"
#include "kit/note.h"
#include "kit/rows/lookup.h"
#include "kit/rows/state.h"
#include "kit/sql/text.h"

/* A position in the queue for a version of a row */
typedef struct Queued
{
	LOCKTAG tag;
	LOCKMODE mode; /* NoLock: not queued */
} Queued;

static DpWriteSearch *scan_of(DpWriter *w, DpLookup *lookup, DpWriteLeaf *leaf);
static bool search_convert(DpWriteSearch *scan);
static void current_set(DpWriter *w, DpWriteLeaf *leaf);
static DpWriteLeaf *leaf_of(DpWriter *w, Oid relid);
static DpWriteLeaf *leaf_nth(DpWriter *w, int n);
static bool row_wait(Relation rel, ItemPointerData tid, LockTupleMode mode, Queued *queued);
static void queue_leave(Queued *queued);
static TransactionId
row_holder(HeapTupleHeader row, ItemPointer tid, LockTupleMode mode, bool *goes, bool *mine);
static DpLockResult writer_lock_wait(DpWriter *w, LockTupleMode mode, LockWaitPolicy wait);

bool
dp_writer_find(DpWriter *w, DpLookup *lookup, const Datum *values)
{
	dp_write_entries(w);
	w->lookup = lookup;
	w->values = values;
	w->next_leaf = 0;
	w->scan = NULL;
	return dp_writer_next(w);
}

bool
dp_writer_next(DpWriter *w)
{
	bool partitioned = w->rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;

	dp_write_clear(w);
	for (;;)
	{
		DpWriteLeaf *leaf;

		if (w->scan != NULL)
		{
			MemoryContext old =
				MemoryContextSwitchTo(w->context); /* a scan allocates in the current context */
			bool found;

			leaf = w->scan->leaf;
			found = index_getnext_slot(w->scan->desc, ForwardScanDirection, leaf->found);
			MemoryContextSwitchTo(old);
			if (found)
			{
				current_set(w, leaf);
				return true;
			}
			w->scan = NULL;
		}
		if (partitioned)
			leaf = leaf_nth(w, w->next_leaf++);
		else
			leaf = w->next_leaf++ == 0 ? w->root : NULL;
		if (leaf == NULL)
			return false;

		{
			Snapshot snapshot = dp_write_snapshot(w);
			DpWriteSearch *scan = scan_of(w, w->lookup, leaf);
			MemoryContext old = MemoryContextSwitchTo(w->context);
			int i;

			for (i = 0; i < scan->nkeys; i++)
				scan->keys[i].sk_argument = w->values[i];
			if (scan->column != NULL && !search_convert(scan))
			{
				MemoryContextSwitchTo(old);
				continue;
			}
			scan->desc->xs_snapshot = snapshot;
			index_rescan(scan->desc, scan->keys, scan->nkeys, NULL, 0);
			MemoryContextSwitchTo(old);
			w->scan = scan;
		}
	}
}

/* Makes the value a key of the table. Returns false for one that no row has. */
static bool
search_convert(DpWriteSearch *scan)
{
	DpValue value = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(scan->keys[0].sk_argument));
	MemoryContext old;
	bool found;

	MemoryContextReset(scan->converted);
	old = MemoryContextSwitchTo(scan->converted);
	found = dp_key_column_of_value(scan->column, &value, &scan->keys[0].sk_argument);
	MemoryContextSwitchTo(old);
	return found;
}

bool
dp_writer_shown(DpWriter *w, DpLookup *lookup, const Datum *values)
{
	DpWriter *reader;
	bool result;

	if (!IsolationUsesXactSnapshot())
		return true;
	CommandCounterIncrement();
	reader = dp_writer_open(RelationGetRelid(w->rel), w->column, 0, NULL);
	reader->snapshot = RegisterSnapshot(GetTransactionSnapshot());
	result = dp_writer_find(reader, lookup, values);
	(void) dp_writer_close(reader);
	return result;
}

/* The snapshot is the statement's own, which does not show its writes. */
void
dp_writer_scan(DpWriter *w, Oid relid, const ItemPointerData *first, const ItemPointerData *last)
{
	MemoryContext old;
	ItemPointerData from = *first;
	ItemPointerData to = *last;

	dp_write_scan_end(w);
	w->range_leaf = leaf_of(w, relid);
	if (w->range_leaf->rel->rd_tableam->scan_set_tidrange == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" cannot be scanned in parts", dp_relation_name(relid))));
	old = MemoryContextSwitchTo(w->context);
	w->range_snapshot = RegisterSnapshot(IsolationUsesXactSnapshot() ? GetTransactionSnapshot()
																	 : GetLatestSnapshot());
	w->range = table_beginscan_tidrange(w->range_leaf->rel, w->range_snapshot, &from, &to);
	MemoryContextSwitchTo(old);
}

bool
dp_writer_scan_next(DpWriter *w)
{
	MemoryContext old;
	bool found;

	dp_write_clear(w);
	if (w->range == NULL)
		return false;
	old = MemoryContextSwitchTo(w->context);
	found = table_scan_getnextslot_tidrange(w->range, ForwardScanDirection, w->range_leaf->found);
	MemoryContextSwitchTo(old);
	if (found)
		current_set(w, w->range_leaf);
	else
		dp_write_scan_end(w);
	return found;
}

void
dp_write_scan_end(DpWriter *w)
{
	if (w->range == NULL)
		return;
	table_endscan(w->range);
	UnregisterSnapshot(w->range_snapshot);
	w->range = NULL;
}

void
dp_writer_ref(DpWriter *w, DpRowRef *ref)
{
	Assert(w->current != NULL);
	ref->relid = RelationGetRelid(w->current->rel);
	ref->tid = w->current->found->tts_tid;
	ref->epoch = w->epoch;
}

/*
 * If the snapshot is a new one, the TID may have been reused by another row, which then counts as
 * changed when it is locked.
 */
bool
dp_writer_fetch(DpWriter *w, const DpRowRef *ref)
{
	DpWriteLeaf *leaf = leaf_of(w, ref->relid);
	ItemPointerData tid = ref->tid;

	dp_write_clear(w);
	if (!table_tuple_fetch_row_version(leaf->rel, &tid, SnapshotAny, leaf->found))
		return false;
	current_set(w, leaf);
	w->tid_uncertain = ref->epoch != w->epoch || (w->outdated && w->kept == NULL);
	return true;
}

bool
dp_writer_fetch_own(DpWriter *w, const DpRowRef *ref)
{
	if (!dp_writer_fetch(w, ref))
		return false;
	w->tid_uncertain = false;
	return true;
}

DpLockResult
dp_writer_lock(DpWriter *w, LockTupleMode mode)
{
	return writer_lock_wait(w, mode, LockWaitBlock);
}

void
dp_write_noted(DpWriter *w)
{
	if (w->leave)
		dp_note_row(ExecFetchSlotHeapTuple(w->current->found, false, NULL)->t_data);
}

/* Locks the current row in its latest version. */
static DpLockResult
writer_lock_wait(DpWriter *w, LockTupleMode mode, LockWaitPolicy wait)
{
	DpWriteLeaf *leaf = w->current;
	const ItemPointerData seen = leaf->found->tts_tid;
	ItemPointerData tid = seen;
	DpLockResult result = w->tid_uncertain ? DP_LOCK_CHANGED : DP_LOCK_OK;
	bool leave = w->leave && wait == LockWaitBlock && leaf->rel->rd_rel->relam == HEAP_TABLE_AM_OID;
	Queued queued = { .mode = NoLock };
	TM_FailureData failure;
	TM_Result locked;

	/*
	 * KEY SHARE does not wait for an update that leaves the key alone, so the new version is locked
	 * too
	 */
	uint8 flags = mode == LockTupleKeyShare ? TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS : 0;

	dp_writer_may_write(w);
	dp_write_noted(w);
	if (w->doc != NULL)
	{
		MemoryContextReset(w->row_context);
		w->doc = NULL;
	}
	if (leave)
		wait = LockWaitSkip;
again:
	locked = table_tuple_lock(leaf->rel, &tid, dp_write_snapshot(w), leaf->found,
							  GetCurrentCommandId(false), mode, wait, flags, &failure);
	if (locked == TM_Updated && !ItemPointerIndicatesMovedPartitions(&failure.ctid) &&
		!ItemPointerEquals(&failure.ctid, &tid))
	{
		locked = table_tuple_lock(leaf->rel, &tid, dp_write_snapshot(w), leaf->found,
								  GetCurrentCommandId(false), mode, wait,
								  flags | TUPLE_LOCK_FLAG_FIND_LAST_VERSION, &failure);
		result = DP_LOCK_CHANGED;
		w->outdated = true;
	}
	if (locked != TM_WouldBlock)
		queue_leave(&queued);
	switch (locked)
	{
		case TM_Ok:
			w->locked = true;
			w->tid_uncertain = false;
			return result;
		case TM_WouldBlock:
			if (!leave)
			{
				dp_write_clear(w);
				return DP_LOCK_SKIPPED;
			}
			tid = seen;
			if (row_wait(leaf->rel, tid, mode, &queued))
				goto again;
			queue_leave(&queued);
			if (table_tuple_fetch_row_version(leaf->rel, &tid, SnapshotAny, leaf->found))
				return DP_LOCK_DEADLOCK;
			w->outdated = true;
			dp_write_clear(w);
			return DP_LOCK_DELETED;
		case TM_SelfModified:
			/* by this command, whose writes are not visible yet */
			CommandCounterIncrement();
			/* fall through */
		case TM_Invisible:
			/* or by an earlier one that the snapshot does not show either; or its TID was reused */
		case TM_Updated:
		case TM_Deleted:
			w->outdated = true;
			dp_write_clear(w);
			return DP_LOCK_DELETED;
		default:
			elog(ERROR, "table_tuple_lock returned %d", (int) locked);
	}
}

/* Lets the next transaction wait for the row. */
static void
queue_leave(Queued *queued)
{
	if (queued->mode != NoLock)
		(void) LockRelease(&queued->tag, queued->mode, false);
	queued->mode = NoLock;
}

/*
 * Waits until no other transaction holds the version at the TID, or the latest one, in a
 * conflicting mode; returns false if that would deadlock.  If the holder deletes the row, nothing
 * can be deferred to it: then the deadlock is an error.
 *
 * Waiters for a version queue, as in PostgreSQL's own statements, so that one of them is woken and
 * not all; *queued is released after the row was locked or not.  A transaction that already has a
 * lock of the row does not queue, because others may wait for that lock with the version locked.
 * Nor does one keep its place at a version while it waits for the holder of a later one.
 */
static bool
row_wait(Relation rel, ItemPointerData tid, LockTupleMode mode, Queued *queued)
{
	if (dp_note_nowait())
		return false;
	for (;;)
	{
		HeapTupleData tuple;
		Buffer buffer;
		TransactionId holder;
		bool goes;
		bool mine;
		bool moved;

		CHECK_FOR_INTERRUPTS();
		tuple.t_self = tid;
		if (!heap_fetch(rel, SnapshotAny, &tuple, &buffer, false))
			return true;
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		holder = row_holder(tuple.t_data, &tid, mode, &goes, &mine);
		moved = !TransactionIdIsValid(holder) && !(tuple.t_data->t_infomask & HEAP_XMAX_INVALID) &&
				!HEAP_XMAX_IS_LOCKED_ONLY(tuple.t_data->t_infomask) &&
				!ItemPointerEquals(&tuple.t_data->t_ctid, &tid) &&
				!HeapTupleHeaderIndicatesMovedPartitions(tuple.t_data);
		tid = tuple.t_data->t_ctid;
		UnlockReleaseBuffer(buffer);
		if (TransactionIdIsValid(holder))
		{
			static const LOCKMODE modes[] = { AccessShareLock, RowShareLock, ExclusiveLock,
											  AccessExclusiveLock };
			LOCKTAG tag;
			bool waits;

			SET_LOCKTAG_TUPLE(tag, rel->rd_lockInfo.lockRelId.dbId,
							  rel->rd_lockInfo.lockRelId.relId,
							  ItemPointerGetBlockNumber(&tuple.t_self),
							  ItemPointerGetOffsetNumber(&tuple.t_self));
			waits = queued->mode != NoLock && memcmp(&queued->tag, &tag, sizeof(tag)) == 0;
			/* the holder may look for the row at an earlier version */
			if (!waits)
				queue_leave(queued);
			if (mine || goes || waits)
				return dp_note_wait(holder, rel, &tuple.t_self, goes);
			queued->tag = tag;
			if (!dp_note_lock(&queued->tag, modes[mode]))
				return false;
			queued->mode = modes[mode];
			tid = tuple.t_self; /* find the current holder */
			continue;
		}
		if (!moved)
		{
			/* others are about to lock it */
			pg_usleep(50L);
			return true;
		}
	}
}

/*
 * Returns another running transaction that holds a version of a row in a conflicting mode.  Sets
 * goes if it deletes the row, and mine if we hold it too.
 */
static TransactionId
row_holder(HeapTupleHeader row, ItemPointer tid, LockTupleMode mode, bool *goes, bool *mine)
{
	TransactionId xmax = HeapTupleHeaderGetRawXmax(row);
	uint16 mask = row->t_infomask;
	MultiXactMember one;
	MultiXactMember *members = &one;
	int n = 1;
	int i;

	*goes = *mine = false;
	if (mask & HEAP_XMAX_INVALID)
		return InvalidTransactionId;
	if (mask & HEAP_XMAX_IS_MULTI)
		n = GetMultiXactIdMembers(xmax, &members, false, HEAP_XMAX_IS_LOCKED_ONLY(mask));
	else
	{
		bool key = (row->t_infomask2 & HEAP_KEYS_UPDATED) != 0;

		one.xid = xmax;
		if (!HEAP_XMAX_IS_LOCKED_ONLY(mask))
			one.status = key ? MultiXactStatusUpdate : MultiXactStatusNoKeyUpdate;
		else if (HEAP_XMAX_IS_KEYSHR_LOCKED(mask))
			one.status = MultiXactStatusForKeyShare;
		else if (HEAP_XMAX_IS_SHR_LOCKED(mask))
			one.status = MultiXactStatusForShare;
		else
			one.status = key ? MultiXactStatusForUpdate : MultiXactStatusForNoKeyUpdate;
	}
	for (i = 0; i < n; i++)
		*mine |= TransactionIdIsCurrentTransactionId(members[i].xid);
	for (i = 0; i < n; i++)
	{
		/* KEY SHARE conflicts only with exclusive modes, SHARE is compatible with itself */
		static const LockTupleMode held[] = { LockTupleKeyShare,       LockTupleShare,
											  LockTupleNoKeyExclusive, LockTupleExclusive,
											  LockTupleNoKeyExclusive, LockTupleExclusive };

		if ((int) held[members[i].status] + (int) mode < (int) LockTupleExclusive ||
			TransactionIdIsCurrentTransactionId(members[i].xid) ||
			!TransactionIdIsInProgress(members[i].xid))
			continue;
		/*
		 * a new version shows that it stays; the update may hold a stronger key lock than it needs
		 */
		*goes =
			ISUPDATE_from_mxstatus(members[i].status) &&
			(ItemPointerEquals(&row->t_ctid, tid) || HeapTupleHeaderIndicatesMovedPartitions(row));
		return members[i].xid;
	}
	return InvalidTransactionId;
}

DpLockResult
dp_writer_lock_found(DpWriter *w, LockTupleMode mode, LockWaitPolicy wait)
{
	DpWriteSearch *scan = w->scan;
	DpLockResult result = writer_lock_wait(w, mode, wait);
	int i;

	if (result != DP_LOCK_CHANGED)
		return result;
	Assert(scan != NULL && scan->leaf == w->current);
	for (i = 0; i < scan->nkeys; i++)
	{
		ScanKey key = &scan->keys[i];
		AttrNumber attnum = scan->desc->indexRelation->rd_index->indkey.values[key->sk_attno - 1];
		bool isnull;
		Datum value;

		if (attnum == InvalidAttrNumber)
			elog(ERROR, "the row was found by an expression");
		value = slot_getattr(w->current->found, attnum, &isnull);
		if (isnull || !DatumGetBool(FunctionCall2Coll(&key->sk_func, key->sk_collation, value,
													  key->sk_argument)))
		{
			dp_write_clear(w);
			return DP_LOCK_DELETED;
		}
	}
	return result;
}

TupleTableSlot *
dp_writer_row(DpWriter *w)
{
	return w->current->found;
}

struct varlena *
dp_writer_document(DpWriter *w)
{
	DpWriteLeaf *leaf = w->current;

	if (w->doc == NULL)
	{
		bool isnull;
		Datum value = slot_getattr(leaf->found, leaf->doc, &isnull);

		if (!isnull)
		{
			MemoryContext old = MemoryContextSwitchTo(w->row_context);

			w->doc = PG_DETOAST_DATUM_PACKED(value);
			MemoryContextSwitchTo(old);
		}
	}
	return w->doc;
}

void
dp_writer_key(DpWriter *w, DpKey *key)
{
	Relation rel = w->current->rel;
	Relation index;
	int i;

	if (!rel->rd_indexvalid)
		list_free(RelationGetIndexList(rel));
	if (!OidIsValid(rel->rd_pkindex))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("table \"%s\" has no primary key",
							   dp_relation_name(RelationGetRelid(rel)))));
	index = RelationIdGetRelation(rel->rd_pkindex);
	key->n = IndexRelationGetNumberOfKeyAttributes(index);
	for (i = 0; i < key->n; i++)
	{
		bool isnull;

		key->values[i] =
			slot_getattr(w->current->found, index->rd_index->indkey.values[i], &isnull);
	}
	RelationClose(index);
}

/* The snapshot for reading. */
Snapshot
dp_write_snapshot(DpWriter *w)
{
	if (w->snapshot == NULL || (w->outdated && w->scan == NULL))
	{
		if (w->snapshot != NULL)
			UnregisterSnapshot(w->snapshot);
		w->snapshot = RegisterSnapshot(GetLatestSnapshot());
		w->estate->es_snapshot = w->snapshot;
		if (w->kept == NULL)
			w->epoch++;
		w->outdated = false;
	}
	return w->snapshot;
}

/* The scan for a lookup in a table, made at first use. */
static DpWriteSearch *
scan_of(DpWriter *w, DpLookup *lookup, DpWriteLeaf *leaf)
{
	MemoryContext old;
	DpLookupIndex *index;
	DpWriteSearch *scan;
	ListCell *lc;
	int i;

	foreach(lc, w->scans)
	{
		scan = lfirst(lc);
		if (scan->lookup == lookup && scan->leaf == leaf)
			return scan;
	}
	old = MemoryContextSwitchTo(w->context);
	index = dp_lookup_index(lookup, leaf->rel);
	if (index == NULL)
		dp_lookup_missing(lookup, leaf->rel);
	scan = palloc0(sizeof(DpWriteSearch));
	scan->lookup = lookup;
	scan->leaf = leaf;
	scan->nkeys = index->nkeys;
	scan->keys = palloc(sizeof(ScanKeyData) * index->nkeys);
	for (i = 0; i < index->nkeys; i++)
	{
		scan->keys[i] = index->keys[i];
		fmgr_info_copy(&scan->keys[i].sk_func, &index->keys[i].sk_func, w->context);
	}
	if (OidIsValid(index->column.type))
	{
		scan->column = memcpy(palloc(sizeof(DpKeyColumn)), &index->column, sizeof(DpKeyColumn));
		scan->converted =
			AllocSetContextCreate(w->context, "docpatterns searched key", ALLOCSET_SMALL_SIZES);
	}
	scan->index = index_open(index->index, AccessShareLock);
	scan->desc = dp_index_beginscan(leaf->rel, scan->index, w->snapshot, scan->nkeys);
	w->scans = lappend(w->scans, scan);
	MemoryContextSwitchTo(old);
	return scan;
}

/* Makes no row current. */
void
dp_write_clear(DpWriter *w)
{
	if (w->current != NULL)
	{
		ExecClearTuple(w->current->found);
		ExecClearTuple(w->current->written);
		w->current = NULL;
	}
	if (w->doc != NULL)
	{
		MemoryContextReset(w->row_context);
		w->doc = NULL;
	}
	w->locked = false;
	w->tid_uncertain = false;
}

/* Makes the row in the table's slot current. */
static void
current_set(DpWriter *w, DpWriteLeaf *leaf)
{
	w->current = leaf;
	if (w->row_context == NULL)
		w->row_context =
			AllocSetContextCreate(w->context, "docpatterns row", ALLOCSET_DEFAULT_SIZES);
}

/* The open table or partition with that OID. */
static DpWriteLeaf *
leaf_of(DpWriter *w, Oid relid)
{
	MemoryContext old;
	DpWriteLeaf *leaf;
	ListCell *lc;

	foreach(lc, w->leaves)
	{
		leaf = lfirst(lc);
		if (RelationGetRelid(leaf->rel) == relid)
			return leaf;
	}
	old = MemoryContextSwitchTo(w->context);
	leaf = dp_write_leaf(w, table_open(relid, RowExclusiveLock));
	MemoryContextSwitchTo(old);
	return leaf;
}

/* The n-th partition, NULL if there are no more. */
static DpWriteLeaf *
leaf_nth(DpWriter *w, int n)
{
	if (w->leaf_oids == NIL)
	{
		MemoryContext old = MemoryContextSwitchTo(w->context);

		w->leaf_oids = dp_table_leaves(w->rel, RowExclusiveLock);
		MemoryContextSwitchTo(old);
	}
	return n < list_length(w->leaf_oids) ? leaf_of(w, list_nth_oid(w->leaf_oids, n)) : NULL;
}
