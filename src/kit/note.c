/*
 * note.c
 *		Work deferred to another transaction: notes, and waits that report a deadlock.
 *
 * PostgreSQL's own deadlock check runs at once instead of after deadlock_timeout.  It sees all
 * kinds of waits and stops exactly one waiter of each deadlock.  It is repeated during the wait, at
 * growing intervals, because a transaction that cannot defer anything may close a cycle later, and
 * would fail after its deadlock_timeout.
 *
 * Notes are rows of docpatterns.notes.  They are read in their committed state, without a snapshot,
 * so that serializable transactions do not depend on them.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/pgstat_internal.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timeout.h"

#include "bson/compare.h"
#include "bson/reader.h"
#include "kit/derive/derive.h"
#include "kit/note.h"
#include "kit/registry.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "kit/statement.h"

/* Columns of docpatterns.notes */
enum
{
	NOTE_REL = 1,
	NOTE_PATTERN,
	NOTE_NAME,
	NOTE_VALUE,
	NOTE_HELD,
	NOTE_FAILED,
	NOTE_COLUMNS = NOTE_FAILED
};

typedef struct Note
{
	ItemPointerData tid;
	bool own; /* inserted by this transaction */
	Oid rel;
	char *pattern;
	char *name;
	struct varlena *value;
	Oid held;    /* the table in which the other transaction holds a row or group lock */
	bool failed; /* processing it raised an error */
	bool stays;  /* part of it could not be processed */
} Note;

/* Equal notes, which are processed together */
typedef struct Notes
{
	Note **v;
	int n;
	bool own;  /* one of them is */
	bool ours; /* we held a row or group lock before we processed them */
} Notes;

/*
 * The first repeated deadlock check of a wait, and the longest interval between two, unless
 * deadlock_timeout is shorter
 */
#define FIRST_SEARCH_MS 20
#define LONGEST_SEARCH_MS 500

/* How often a transaction looks for notes; later notes are left to others */
#define MOST_ROUNDS 10

static List *watched = NIL;  /* OIDs of tables, in TopTransactionContext */
static List *repaired = NIL; /* the argument of pattern_repair(), likewise */
static uint64 events = 0;    /* waits that ended, and notes that were inserted */
static Notes *processing = NULL;
static bool nowait = false; /* nothing may wait while notes of others are processed */
static TimeoutId search_again = MAX_TIMEOUTS; /* registered at first use */
static int search_after;                      /* milliseconds to the next check */
static int search_longest;

static bool wait_checked(void (*wait)(void *arg), void *arg, bool must);
static void search_alert(void);
static Relation notes_open(LOCKMODE mode);
static Oid notes_index(Relation rel);
static void note_write(Oid rel, const char *pattern, const char *name, struct varlena *value,
					   Oid held, bool failed);
static List *notes_read(void);
static void notes_add(List **notes, Relation rel, AttrNumber column, Oid value);
static int note_compare(const ListCell *a, const ListCell *b);
static int notes_process(void);
static void note_process(Notes *notes);
static bool note_try(Note *note);
static bool note_apply(Note *note);
static bool is_interrupt(const ErrorData *error);
static bool is_passing(const ErrorData *error);
static bool note_delete(const Note *note);
static void notes_before_commit(void);
static void notes_ended(void);

static DpStates states = { .ended = notes_ended, .before_commit = notes_before_commit };

/* ---------------------------------------------------------------- waiting */

typedef struct LockWanted
{
	const LOCKTAG *tag;
	LOCKMODE mode;
} LockWanted;

typedef struct HolderAwaited
{
	TransactionId xid;
	Relation rel;
	ItemPointer tid;
} HolderAwaited;

static void
wait_lock(void *arg)
{
	LockWanted *wanted = arg;

	(void) LockAcquire(wanted->tag, wanted->mode, false, false);
}

static void
wait_holder(void *arg)
{
	HolderAwaited *awaited = arg;

	XactLockTableWait(awaited->xid, awaited->rel, awaited->tid, XLTW_Update);
}

/*
 * Waits; returns false if that would deadlock, checked at once.  Only the lock manager runs in
 * between, and it cleans up before it raises the error: no subtransaction is needed to continue
 * after it.
 */
static bool
wait_checked(void (*wait)(void *arg), void *arg, bool must)
{
	MemoryContext caller = CurrentMemoryContext;
	int timeout = DeadlockTimeout;
	bool logs = log_lock_waits;
	volatile bool deadlock = false;

	if (must)
	{
		wait(arg);
		events++;
		return true;
	}
	if (search_again == MAX_TIMEOUTS)
		search_again = RegisterTimeout(USER_TIMEOUT, search_alert);
	search_longest = Max(Min(timeout / 2, LONGEST_SEARCH_MS), 1);
	search_after = Min(FIRST_SEARCH_MS, search_longest);
	PG_TRY();
	{
		DeadlockTimeout = 0;
		log_lock_waits = false; /* it uses the same timeout */
		enable_timeout_after(search_again, search_after);
		wait(arg);
	}
	PG_CATCH();
	{
		disable_timeout(search_again, false);
		DeadlockTimeout = timeout;
		log_lock_waits = logs;
		if (geterrcode() != ERRCODE_T_R_DEADLOCK_DETECTED)
			PG_RE_THROW();
		MemoryContextSwitchTo(caller);
		FlushErrorState();
		dp_uncount_deadlock();
		deadlock = true;
	}
	PG_END_TRY();
	disable_timeout(search_again, false);
	DeadlockTimeout = timeout;
	log_lock_waits = logs;
	events += !deadlock;
	return !deadlock;
}

/* Checks for a deadlock, and again after twice the time. */
static void
search_alert(void)
{
	CheckDeadLockAlert();
	search_after = Min(search_after * 2, search_longest);
	enable_timeout_after(search_again, search_after);
}

bool
dp_note_lock(const LOCKTAG *tag, LOCKMODE mode)
{
	LockWanted wanted = { tag, mode };

	if (LockAcquire(tag, mode, false, true) != LOCKACQUIRE_NOT_AVAIL)
		return true;
	return !nowait && wait_checked(wait_lock, &wanted, false);
}

bool
dp_note_wait(TransactionId xid, Relation rel, ItemPointer tid, bool must)
{
	HolderAwaited awaited = { xid, rel, tid };

	return wait_checked(wait_holder, &awaited, must);
}

bool
dp_note_nowait(void)
{
	return nowait;
}

void
dp_note_row(HeapTupleHeader row)
{
	TransactionId xmax = HeapTupleHeaderGetRawXmax(row);
	MultiXactMember one = { xmax, MultiXactStatusForKeyShare };
	MultiXactMember *members = &one;
	int n = 1;
	int i;

	if (processing == NULL || processing->own || processing->ours)
		return;
	processing->ours = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(row));
	if (row->t_infomask & HEAP_XMAX_INVALID)
		return;
	if (row->t_infomask & HEAP_XMAX_IS_MULTI)
		n = GetMultiXactIdMembers(xmax, &members, false, HEAP_XMAX_IS_LOCKED_ONLY(row->t_infomask));
	for (i = 0; i < n; i++)
		processing->ours |= TransactionIdIsCurrentTransactionId(members[i].xid);
}

/* ---------------------------------------------------------------- notes */

/*
 * Remembers the table and, for a partition, its parent.  Called for each row: the first in the list
 * is the last one asked for.
 */
void
dp_note_watch(Oid relid)
{
	MemoryContext old;

	if (watched != NIL && linitial_oid(watched) == relid)
		return;
	dp_states_hear(&states);
	old = MemoryContextSwitchTo(TopTransactionContext);
	if (!list_member_oid(watched, relid) && get_rel_relispartition(relid))
	{
		List *above = get_partition_ancestors(relid);

		if (above != NIL)
			watched = list_append_unique_oid(watched, llast_oid(above));
	}
	watched = lcons_oid(relid, list_delete_oid(watched, relid));
	MemoryContextSwitchTo(old);
}

void
dp_note_repair(Oid relid)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

	repaired = list_append_unique_oid(repaired, relid);
	MemoryContextSwitchTo(old);
	dp_note_watch(relid);
}

/* The table, or NULL if the extension is being dropped or was installed without it. */
static Relation
notes_open(LOCKMODE mode)
{
	Oid schema = get_namespace_oid("docpatterns", true);
	Oid relid = OidIsValid(schema) ? get_relname_relid("notes", schema) : InvalidOid;
	Relation rel = OidIsValid(relid) ? try_table_open(relid, mode) : NULL;

	if (rel != NULL && RelationGetNumberOfAttributes(rel) != NOTE_COLUMNS)
	{
		table_close(rel, mode);
		rel = NULL;
	}
	return rel;
}

/* Its only index. */
static Oid
notes_index(Relation rel)
{
	List *indexes = RelationGetIndexList(rel);

	return list_length(indexes) == 1 ? linitial_oid(indexes) : InvalidOid;
}

void
dp_note(DpDecl *decl, const DpValue *value, Oid held)
{
	if (processing != NULL && processing->v[0]->rel == decl->target &&
		strcmp(processing->v[0]->pattern, decl->pattern) == 0 &&
		strcmp(processing->v[0]->name, decl->name) == 0)
	{
		DpValue mine = dp_value_of_varlena(processing->v[0]->value);
		bool known = false;
		int i;

		if (dp_value_compare(&mine, value) == 0)
		{
			for (i = 0; i < processing->n; i++)
			{
				if (nowait || processing->v[i]->held == held)
					known = processing->v[i]->stays = true;
			}
			if (known)
				return;
		}
	}
	note_write(decl->target, decl->pattern, decl->name, dp_value_to_varlena(value), held, false);
	events++;
	dp_note_watch(held);
}

/* Writes a row of the table. */
static void
note_write(Oid rel, const char *pattern, const char *name, struct varlena *value, Oid held,
		   bool failed)
{
	Relation notes = notes_open(RowExclusiveLock);
	Oid index_oid;
	HeapTuple tuple;
	Datum values[NOTE_COLUMNS];
	bool nulls[NOTE_COLUMNS] = { false };

	if (notes == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation docpatterns.notes does not exist")));
	values[NOTE_REL - 1] = ObjectIdGetDatum(rel);
	values[NOTE_PATTERN - 1] = CStringGetTextDatum(pattern);
	values[NOTE_NAME - 1] = CStringGetTextDatum(name);
	values[NOTE_VALUE - 1] = PointerGetDatum(value);
	values[NOTE_HELD - 1] = ObjectIdGetDatum(held);
	values[NOTE_FAILED - 1] = BoolGetDatum(failed);
	tuple = heap_form_tuple(RelationGetDescr(notes), values, nulls);
	heap_insert(notes, tuple, GetCurrentCommandId(true), HEAP_INSERT_NO_LOGICAL, NULL);
	if (OidIsValid(index_oid = notes_index(notes)))
	{
		Relation index = index_open(index_oid, RowExclusiveLock);

		(void) index_insert(index, &values[NOTE_HELD - 1], &nulls[NOTE_HELD - 1], &tuple->t_self,
							notes, UNIQUE_CHECK_NO, false, BuildIndexInfo(index));
		index_close(index, NoLock);
	}
	heap_freetuple(tuple);
	table_close(notes, NoLock);
}

/* The committed notes about watched tables and our own, grouped: Notes in the current context. */
static List *
notes_read(void)
{
	List *notes = NIL;
	Relation rel = notes_open(AccessShareLock);
	ListCell *lc;

	if (rel == NULL)
		return NIL;
	if (RelationGetNumberOfBlocks(rel) > 0)
	{
		foreach(lc, watched)
			notes_add(&notes, rel, NOTE_HELD, lfirst_oid(lc));
		foreach(lc, repaired)
			notes_add(&notes, rel, NOTE_REL, lfirst_oid(lc));
		list_sort(notes, note_compare);
	}
	table_close(rel, NoLock);
	return notes;
}

/* Adds those with the value in that column. */
static void
notes_add(List **notes, Relation rel, AttrNumber column, Oid value)
{
	Oid index = column == NOTE_HELD ? notes_index(rel) : InvalidOid;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;

	ScanKeyInit(&key, column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(value));
	scan = systable_beginscan(rel, index, OidIsValid(index), SnapshotSelf, 1, &key);
	while ((tuple = systable_getnext(scan)) != NULL)
	{
		Note *note;
		Datum values[NOTE_COLUMNS];
		bool nulls[NOTE_COLUMNS];

		CHECK_FOR_INTERRUPTS();
		heap_deform_tuple(tuple, RelationGetDescr(rel), values, nulls);
		/* pattern_repair() may have found it by its other table already */
		if (column == NOTE_REL && list_member_oid(watched, DatumGetObjectId(values[NOTE_HELD - 1])))
			continue;
		note = palloc0(sizeof(Note));
		note->tid = tuple->t_self;
		note->own = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
		note->rel = DatumGetObjectId(values[NOTE_REL - 1]);
		note->pattern = TextDatumGetCString(values[NOTE_PATTERN - 1]);
		note->name = TextDatumGetCString(values[NOTE_NAME - 1]);
		note->value = PG_DETOAST_DATUM_COPY(values[NOTE_VALUE - 1]);
		note->held = DatumGetObjectId(values[NOTE_HELD - 1]);
		note->failed = DatumGetBool(values[NOTE_FAILED - 1]);
		*notes = lappend(*notes, note);
	}
	systable_endscan(scan);
}

/* Orders notes by what to process; equal notes compare equal. */
static int
note_compare(const ListCell *a, const ListCell *b)
{
	const Note *left = lfirst(a);
	const Note *right = lfirst(b);
	DpValue one;
	DpValue other;
	int cmp;

	if (left->rel != right->rel)
		return left->rel < right->rel ? -1 : 1;
	cmp = strcmp(left->pattern, right->pattern);
	if (cmp == 0)
		cmp = strcmp(left->name, right->name);
	if (cmp != 0)
		return cmp;
	one = dp_value_of_varlena(left->value);
	other = dp_value_of_varlena(right->value);
	return dp_value_compare(&one, &other);
}

/*
 * Processes notes before the transaction ends; returns how many.  While it waits for a row others
 * may leave notes to it, and its writes may insert notes, so it is called again until nothing
 * happens.
 */
static int
notes_process(void)
{
	List *all = notes_read();
	Note **same = palloc(sizeof(Note *) * Max(list_length(all), 1));
	int deleted = 0;
	int i;
	int k;

	for (i = 0; i < list_length(all); i += k)
	{
		Notes notes = { same };
		bool failed = true;

		for (k = 0; i + k < list_length(all) &&
					note_compare(list_nth_cell(all, i), list_nth_cell(all, i + k)) == 0;
			 k++)
		{
			Note *note = list_nth(all, i + k);

			notes.v[notes.n++] = note;
			notes.own |= note->own;
			failed &= note->failed && !list_member_oid(repaired, note->rel);
		}
		if (failed)
			continue;
		note_process(&notes);
		while (notes.n-- > 0)
		{
			if (!notes.v[notes.n]->stays && note_delete(notes.v[notes.n]))
				deleted++;
		}
	}
	if (all != NIL)
		AfterTriggerFireDeferred(); /* for constraints on written rows */
	return deleted;
}

/*
 * Processes equal notes.  Notes of other transactions first without waiting; if we hold one of the
 * locks involved, they are processed like our own, and an error is ours.
 */
static void
note_process(Notes *notes)
{
	Notes *outer = processing;
	bool processed = false;
	int lock_timeout = LockTimeout;
	int i;

	if (ConditionalLockRelationOid(notes->v[0]->rel, RowExclusiveLock))
	{
		processing = notes;
		PG_TRY();
		{
			if (!notes->own)
			{
				nowait = true;
				LockTimeout = 1; /* for waits other than row_wait() and dp_note_lock() */
				processed = note_try(notes->v[0]);
				nowait = false;
				LockTimeout = lock_timeout;
			}
			if (notes->own || (notes->ours && (!processed || notes->v[0]->stays)))
			{
				for (i = 0; i < notes->n; i++)
					notes->v[i]->stays = false;
				processed = note_apply(notes->v[0]);
			}
		}
		PG_FINALLY();
		{
			processing = outer;
			nowait = false;
			LockTimeout = lock_timeout;
		}
		PG_END_TRY();
	}
	for (i = 0; i < notes->n && !processed; i++)
		notes->v[i]->stays = true;
}

/*
 * Does the same for notes of other transactions.  An error is that of the transaction to which the
 * note was left; later transactions try once and then leave it to pattern_repair().
 */
static bool
note_try(Note *note)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	uint64 before = events;
	volatile bool processed = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		processed = note_apply(note);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData *error;
		int i;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		events = before; /* its notes were rolled back: a retry would do the same */
		if (is_interrupt(error))
			ReThrowError(error);
		if (!processing->ours && !is_passing(error))
		{
			ereport(LOG,
					(errcode(error->sqlerrcode),
					 errmsg("could not process a note of the %s pattern \"%s\" of table \"%s\": %s",
							note->pattern, note->name, dp_relation_name(note->rel), error->message),
					 errdetail("A transaction deferred this work to avoid a deadlock."),
					 errhint("Call pattern_repair() when this write can succeed.")));
			for (i = 0; i < processing->n; i++)
			{
				if (note_delete(processing->v[i]))
					note_write(note->rel, note->pattern, note->name, note->value,
							   processing->v[i]->held, true);
			}
		}
		FreeErrorData(error);
		processed = false;
	}
	PG_END_TRY();
	return processed;
}

/*
 * True if this session was told to stop.  Code of the table's owner may raise the same SQLSTATE,
 * and must not make the transactions of others fail.
 */
static bool
is_interrupt(const ErrorData *error)
{
	return ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION &&
		   error->funcname != NULL && strcmp(error->funcname, "ProcessInterrupts") == 0;
}

/* True if another transaction may succeed. */
static bool
is_passing(const ErrorData *error)
{
	return error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		   ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_TRANSACTION_ROLLBACK ||
		   ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_INSUFFICIENT_RESOURCES;
}

/* Returns false if the note must be processed by another transaction. */
static bool
note_apply(Note *note)
{
	DpValue value = dp_value_of_varlena(note->value);
	DpDecl *decl = NULL;
	DpActor self;
	ListCell *lc;

	foreach(lc,
			SearchSysCacheExists1(RELOID, ObjectIdGetDatum(note->rel)) ? dp_decls(note->rel) : NIL)
	{
		DpDecl *candidate = lfirst(lc);

		if (strcmp(candidate->pattern, note->pattern) == 0 &&
			strcmp(candidate->name, note->name) == 0)
			decl = candidate;
	}
	if (decl == NULL)
		return true; /* the declaration no longer exists */
	if (!dp_decl_maintained(decl))
		return false;
	PushActiveSnapshot(GetTransactionSnapshot());
	CommandCounterIncrement();
	dp_owner_begin(decl->owner, &self);
	SPI_connect();
	if (decl->methods->derive != NULL)
	{
		DpDerivation *d = dp_derivation(decl);

		processing->ours |= dp_derive_holds_group(d, dp_derive_hash(&value));
		dp_derive_recompute_group(d, &value);
	}
	else if (decl->methods->process_note != NULL)
		decl->methods->process_note(decl, &value);
	SPI_finish();
	dp_owner_end(&self);
	PopActiveSnapshot();
	return true;
}

/* Returns false if another transaction is deleting it, which has then processed it too. */
static bool
note_delete(const Note *note)
{
	Relation rel = notes_open(RowExclusiveLock);
	ItemPointerData tid = note->tid;
	TM_FailureData failure;
	TM_Result result;

	if (rel == NULL)
		return false;
	CommandCounterIncrement();
	result =
		heap_delete(rel, &tid, GetCurrentCommandId(true), InvalidSnapshot, false, &failure, false);
	table_close(rel, NoLock);
	return result == TM_Ok;
}

static void
notes_before_commit(void)
{
	MemoryContext context;
	MemoryContext old;
	uint64 before;
	int rounds = 0;

	/* a transaction that has written nothing holds nothing */
	if (watched == NIL || XactReadOnly ||
		(repaired == NIL && !TransactionIdIsValid(GetTopTransactionIdIfAny())))
		return;
	context =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns notes", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	/*
	 * a long value must be read under a snapshot, which also keeps the TIDs of the notes from being
	 * reused
	 */
	PushActiveSnapshot(GetTransactionSnapshot());
	do
	{
		before = events;
		MemoryContextReset(context);
	} while ((notes_process() > 0 || events != before) && ++rounds < MOST_ROUNDS);
	PopActiveSnapshot();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

static void
notes_ended(void)
{
	watched = repaired = NIL;
	processing = NULL;
	nowait = false;
}
