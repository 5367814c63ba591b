/*
 * note.c
 *		Work that a transaction leaves to another one: notes, and waiting that
 *		tells whether it closes a circle.
 *
 * The circle is looked for by PostgreSQL's own search for deadlocks, which is made at
 * once instead of after deadlock_timeout.  It sees all kinds of waits, and of
 * those that close a circle it stops exactly one.  It is made again while we wait:
 * a circle may be closed by a transaction that cannot leave anything, which would have
 * to fail after its deadlock_timeout.
 *
 * Notes are rows of docpatterns.notes.  They are read as they are committed, without a
 * snapshot, so that a serializable transaction does not depend on them.
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
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/builtins.h"
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
#include "patterns/derive.h"
#include "patterns/note.h"
#include "patterns/pattern.h"
#include "patterns/run.h"
#include "patterns/sqlgen.h"

/* Columns of docpatterns.notes */
enum
{
	NOTE_REL = 1,
	NOTE_PATTERN,
	NOTE_NAME,
	NOTE_VALUE,
	NOTE_COLUMNS = NOTE_VALUE
};

typedef struct Note
{
	ItemPointerData tid;
	bool		own;			/* left by this transaction */
	Oid			rel;
	char	   *pattern;
	char	   *name;
	struct varlena *value;
	bool		stays;			/* something of it could not be settled */
	bool		ours;			/* we held a row of it before we settled it */
} Note;

static bool watching = false;
static bool heard = false;
static uint64 events = 0;		/* waits that ended, and notes that were left */
static Note *settling = NULL;
static TimeoutId search_again = MAX_TIMEOUTS;	/* registered when it is first needed */
static bool hurried = false;	/* rows of the note that is being settled are not waited for */

static bool wait_told(void (*wait) (void *arg), void *arg, bool must);
static Relation notes_open(LOCKMODE mode);
static Oid	notes_index(Relation rel);
static List *notes_read(void);
static void notes_settle(void);
static void note_settle(Note *note);
static bool note_try(Note *note);
static bool note_apply(Note *note);
static bool is_interrupt(const ErrorData *error);
static void note_delete(const Note *note);
static void notes_xact(XactEvent event, void *arg);

/* ---------------------------------------------------------------- waiting */

typedef struct LockWanted
{
	const LOCKTAG *tag;
	LOCKMODE	mode;
} LockWanted;

typedef struct HolderAwaited
{
	TransactionId xid;
	Relation	rel;
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
 * Waits; false if that closes a circle, which is looked for at once.  Nothing but
 * the lock manager runs in between, and before it raises that error it has put
 * itself in order: no subtransaction is needed to go on after it.
 */
static bool
wait_told(void (*wait) (void *arg), void *arg, bool must)
{
	MemoryContext caller = CurrentMemoryContext;
	int			timeout = DeadlockTimeout;
	bool		logs = log_lock_waits;
	volatile bool circle = false;

	if (must)
	{
		wait(arg);
		events++;
		return true;
	}
	if (search_again == MAX_TIMEOUTS)
		search_again = RegisterTimeout(USER_TIMEOUT, CheckDeadLockAlert);
	PG_TRY();
	{
		int			again = Max(timeout / 10, 1);

		DeadlockTimeout = 0;
		log_lock_waits = false; /* it is bound to the same time */
		enable_timeout_every(search_again, TimestampTzPlusMilliseconds(GetCurrentTimestamp(), again), again);
		wait(arg);
	}
	PG_CATCH();
	{
		disable_timeout(search_again, false);
		DeadlockTimeout = timeout;
		log_lock_waits = logs;
		if ( geterrcode() != ERRCODE_T_R_DEADLOCK_DETECTED)
			PG_RE_THROW();
		MemoryContextSwitchTo(caller);
		FlushErrorState();
		dp_uncount_deadlock();
		circle = true;
	}
	PG_END_TRY();
	disable_timeout(search_again, false);
	DeadlockTimeout = timeout;
	log_lock_waits = logs;
	events += !circle;
	return !circle;
}

bool
dp_note_lock(const LOCKTAG *tag, LOCKMODE mode)
{
	LockWanted	wanted = {tag, mode};

	return wait_told(wait_lock, &wanted, false);
}

bool
dp_note_wait(TransactionId xid, Relation rel, ItemPointer tid, bool must)
{
	HolderAwaited awaited = {xid, rel, tid};

	return wait_told(wait_holder, &awaited, must);
}

bool
dp_note_hurried(void)
{
	return hurried;
}

void
dp_note_row(HeapTupleHeader row)
{
	TransactionId xmax = HeapTupleHeaderGetRawXmax(row);
	MultiXactMember one = {xmax, MultiXactStatusForKeyShare};
	MultiXactMember *members = &one;
	int			n = 1;
	int			i;

	if (settling == NULL || settling->own || settling->ours)
		return;
	settling->ours = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(row));
	if (row->t_infomask & HEAP_XMAX_INVALID)
		return;
	if (row->t_infomask & HEAP_XMAX_IS_MULTI)
		n = GetMultiXactIdMembers(xmax, &members, false, HEAP_XMAX_IS_LOCKED_ONLY(row->t_infomask));
	for (i = 0; i < n; i++)
		settling->ours |= TransactionIdIsCurrentTransactionId(members[i].xid);
}

/* ---------------------------------------------------------------- notes */

void
dp_note_watch(void)
{
	if (watching)
		return;
	if (!heard)
	{
		RegisterXactCallback(notes_xact, NULL);
		heard = true;
	}
	watching = true;
}

/* The table, or NULL: the extension is just being dropped, or was installed without it. */
static Relation
notes_open(LOCKMODE mode)
{
	Oid			schema = get_namespace_oid("docpatterns", true);
	Oid			relid = OidIsValid(schema) ? get_relname_relid("notes", schema) : InvalidOid;
	Relation	rel = OidIsValid(relid) ? try_table_open(relid, mode) : NULL;

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
	List	   *indexes = RelationGetIndexList(rel);

	return list_length(indexes) == 1 ? linitial_oid(indexes) : InvalidOid;
}

void
dp_note(DpDecl *decl, const DpValue *value)
{
	Relation	rel;
	Oid			index_oid;
	HeapTuple	tuple;
	Datum		values[NOTE_COLUMNS];
	bool		nulls[NOTE_COLUMNS] = {false};

	if (settling != NULL && settling->rel == decl->target && strcmp(settling->pattern, decl->pattern) == 0 &&
		strcmp(settling->name, decl->name) == 0)
	{
		DpValue		mine = dp_value_of_varlena(settling->value);

		if (dp_value_compare(&mine, value) == 0)
		{
			settling->stays = true;
			return;
		}
	}
	rel = notes_open(RowExclusiveLock);
	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation docpatterns.notes does not exist")));
	values[NOTE_REL - 1] = ObjectIdGetDatum(decl->target);
	values[NOTE_PATTERN - 1] = CStringGetTextDatum(decl->pattern);
	values[NOTE_NAME - 1] = CStringGetTextDatum(decl->name);
	values[NOTE_VALUE - 1] = PointerGetDatum(dp_value_to_varlena(value));
	tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
	heap_insert(rel, tuple, GetCurrentCommandId(true), HEAP_INSERT_NO_LOGICAL, NULL);
	if (OidIsValid(index_oid = notes_index(rel)))
	{
		Relation	index = index_open(index_oid, RowExclusiveLock);

		(void) index_insert(index, &values[NOTE_REL - 1], &nulls[NOTE_REL - 1], &tuple->t_self, rel,
							UNIQUE_CHECK_NO, false, BuildIndexInfo(index));
		index_close(index, NoLock);
	}
	heap_freetuple(tuple);
	table_close(rel, NoLock);
	events++;
	dp_note_watch();
}

/* All notes that are committed, and our own: Notes in the current context. */
static List *
notes_read(void)
{
	List	   *notes = NIL;
	Relation	rel = notes_open(AccessShareLock);
	Oid			index;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (rel == NULL)
		return NIL;
	if (RelationGetNumberOfBlocks(rel) > 0)
	{
		/* a long value lies in the TOAST table, which is read under a snapshot only */
		PushActiveSnapshot(GetTransactionSnapshot());
		index = notes_index(rel);
		scan = systable_beginscan(rel, index, OidIsValid(index), SnapshotSelf, 0, NULL);
		while ((tuple = systable_getnext(scan)) != NULL)
		{
			Note	   *note = palloc0(sizeof(Note));
			Datum		values[NOTE_COLUMNS];
			bool		nulls[NOTE_COLUMNS];

			CHECK_FOR_INTERRUPTS();
			heap_deform_tuple(tuple, RelationGetDescr(rel), values, nulls);
			note->tid = tuple->t_self;
			note->own = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
			note->rel = DatumGetObjectId(values[NOTE_REL - 1]);
			note->pattern = TextDatumGetCString(values[NOTE_PATTERN - 1]);
			note->name = TextDatumGetCString(values[NOTE_NAME - 1]);
			note->value = PG_DETOAST_DATUM_COPY(values[NOTE_VALUE - 1]);
			notes = lappend(notes, note);
		}
		systable_endscan(scan);
		PopActiveSnapshot();
	}
	table_close(rel, NoLock);
	return notes;
}

/*
 * Before the transaction ends: settles what there is to be settled.  While it waits for
 * a row others may leave notes to it, and what it writes may leave notes of its
 * own: so it looks again until nothing has happened.
 */
static void
notes_settle(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns notes", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	uint64		before;

	do
	{
		List	   *notes;
		ListCell   *lc;

		before = events;
		MemoryContextReset(context);
		notes = notes_read();
		foreach(lc, notes)
			note_settle(lfirst(lc));
		if (notes != NIL)
			AfterTriggerFireDeferred();	/* constraints of what was written */
	} while (events != before);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* Settles a note, and deletes it unless something of it is left to others. */
static void
note_settle(Note *note)
{
	Note	   *outer = settling;

	if (!ConditionalLockRelationOid(note->rel, RowExclusiveLock))
		return;
	PG_TRY();
	{
		settling = note;
		if (!(note->own ? note_apply(note) : note_try(note)))
			note->stays = true;
	}
	PG_FINALLY();
	{
		settling = outer;
		hurried = false;
	}
	PG_END_TRY();
	if (!note->stays)
		note_delete(note);
}

/*
 * The same for a note of another transaction.  If it cannot be settled, that is an error of the one
 * that it was left to; for all that come after it the note stays, and
 * pattern_check() reports what is wrong.
 */
static bool
note_try(Note *note)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool settled = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		settled = note_apply(note);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		if (note->ours || is_interrupt(error))
			ReThrowError(error);
		ereport(LOG,
				(errcode(error->sqlerrcode),
				 errmsg("could not bring the %s pattern \"%s\" of table %s in line: %s",
						note->pattern, note->name, dp_relation_name(note->rel), error->message),
				 errdetail("A transaction left it to another one.")));
		FreeErrorData(error);
		settled = false;
	}
	PG_END_TRY();
	return settled;
}

/*
 * Whether this session was told to stop.  Code of the table's owner may raise the same
 * SQLSTATE, and must not make the transactions of others fail.
 */
static bool
is_interrupt(const ErrorData *error)
{
	return ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION &&
		error->funcname != NULL && strcmp(error->funcname, "ProcessInterrupts") == 0;
}

/* Returns false if the note is not for us to settle. */
static bool
note_apply(Note *note)
{
	DpValue		value = dp_value_of_varlena(note->value);
	const DpPatternMethods *m = dp_pattern_methods(note->pattern);
	DpDecl	   *decl = NULL;
	DpActor		self;
	ListCell   *lc;

	foreach(lc, SearchSysCacheExists1(RELOID, ObjectIdGetDatum(note->rel)) ? dp_decls(note->rel) : NIL)
	{
		DpDecl	   *candidate = lfirst(lc);

		if (strcmp(candidate->pattern, note->pattern) == 0 && strcmp(candidate->name, note->name) == 0)
			decl = candidate;
	}
	if (decl == NULL)
		return true;			/* nothing is kept any more */
	if (!dp_decl_maintained(decl))
		return false;
	PushActiveSnapshot(GetTransactionSnapshot());
	CommandCounterIncrement();
	dp_owner_begin(decl->owner, &self);
	SPI_connect();
	if (dp_derive_methods(note->pattern) != NULL)
	{
		DpDerivation *d = dp_derivation(decl);

		hurried = !note->own && !dp_derive_holds_group(d, dp_derive_hash(&value));
		dp_derive_settle_group(d, &value);
	}
	else if (m != NULL && m->settle_note != NULL)
	{
		hurried = !note->own;
		m->settle_note(decl, &value);
	}
	SPI_finish();
	dp_owner_end(&self);
	PopActiveSnapshot();
	return true;
}

/* Another transaction that is deleting it has settled it, too. */
static void
note_delete(const Note *note)
{
	Relation	rel = notes_open(RowExclusiveLock);
	ItemPointerData tid = note->tid;
	TM_FailureData failure;

	if (rel == NULL)
		return;
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());	/* as for reading: what lies in the TOAST table goes, too */
	(void) heap_delete(rel, &tid, GetCurrentCommandId(true), InvalidSnapshot, false, &failure, false);
	PopActiveSnapshot();
	table_close(rel, NoLock);
}

static void
notes_xact(XactEvent event, void *arg)
{
	if (!watching)
		return;
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE)
	{
		if (!XactReadOnly)
			notes_settle();
	}
	else if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		watching = false;
		settling = NULL;
		hurried = false;
	}
}
