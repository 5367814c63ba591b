/*
 * worker.c
 *		Background workers that maintain databases.
 *
 * The launcher knows which databases are wanted, and starts a worker for each, as far as
 * docpatterns.maintain_workers allows.  A worker runs pattern_maintain()'s loop: for the tables to
 * which a commit has left work, at once, and for all tables once in docpatterns.maintain_interval.
 * If databases have to share workers, a worker ends when nothing is due, or when it has run for an
 * interval, and the launcher starts that of the database that has waited longest.
 *
 * Workers are no obstacle to DROP DATABASE and the like: before each transaction, and each second,
 * a worker takes the lock on its database that every session takes when it connects.  If it cannot
 * have it at once, the worker ends.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "dp.h"
#include "kit/maintain.h"
#include "kit/worker.h"

/* Databases that can be maintained, and tables of one that are remembered one by one */
#define MAX_DATABASES 64
#define MAX_LEFT 32

/* Milliseconds: how often the launcher looks for databases, and when it tries again to start one */
#define LOOK_AFTER 5000
#define RETRY_AFTER 5000

/* Milliseconds that a worker waits after it has done something, so that one run serves many */
#define GATHER 20

/* Milliseconds until a worker looks whether it is in the way, and for which it runs at a time */
#define TICK 1000

typedef enum WorkerState
{
	STOPPED,
	STARTING,
	RUNNING
} WorkerState;

typedef struct Database
{
	Oid id;      /* InvalidOid: a free entry */
	bool wanted; /* by docpatterns.maintain_databases */
	WorkerState state;
	Latch *latch;     /* the worker's while it is running */
	TimestampTz next; /* when all tables are maintained next */
	bool left_many;   /* work was left to more tables than these */
	int nleft;
	Oid left[MAX_LEFT];
} Database;

typedef struct Shared
{
	LWLock *lock;
	Latch *launcher;
	bool crowded; /* a database waits for a worker */
	Database databases[MAX_DATABASES];
} Shared;

/* What databases and roles set otherwise does not concern workers, as with autovacuum's */
static const char *const settings[][2] = {
	{ "search_path", "" },
	{ "statement_timeout", "0" },
	{ "lock_timeout", "0" },
	{ "idle_in_transaction_session_timeout", "0" },
	{ "default_transaction_isolation", "read committed" },
};

static char *maintain_databases = "";
static int maintain_workers = 4;
static int maintain_interval = 10;

static Shared *shared = NULL; /* NULL without shared_preload_libraries */
static shmem_request_hook_type next_request = NULL;
static shmem_startup_hook_type next_startup = NULL;

/* What the current transaction leaves */
static Oid left[MAX_LEFT];
static int nleft = 0;
static bool left_many = false;

/* The worker's */
static Database *mine = NULL;
static bool unwanted = false; /* another session locks the database */
static TimestampTz started;

PGDLLEXPORT void dp_worker_launch(Datum arg);
PGDLLEXPORT void dp_worker_main(Datum arg);

static void shared_request(void);
static void shared_startup(void);
static void left_end(XactEvent event, void *arg);
static void left_tell(void);
static void launcher_exit(int code, Datum arg);
static void intervals_read(void);
static void databases_find(void);
static bool is_named(Form_pg_database database, List *names);
static long workers_start(BackgroundWorkerHandle **handles);
static bool worker_start(int i, BackgroundWorkerHandle **handle);
static void worker_exit(int code, Datum arg);
static long worker_step(MemoryContext context, int *failures);
static void worker_run(MemoryContext context, Oid *tables, int ntables, bool *more);
static void worker_commit(void);
static void worker_begin(void);
static bool worker_stop(void);
static void database_lock(void);

void
dp_worker_init(void)
{
	BackgroundWorker launcher = { 0 };

	DefineCustomStringVariable("docpatterns.maintain_databases",
							   "Databases that background workers maintain.",
							   "A list of names, or * for all that allow connections.",
							   &maintain_databases, "", PGC_SIGHUP, GUC_LIST_INPUT, NULL, NULL,
							   NULL);
	DefineCustomIntVariable("docpatterns.maintain_workers",
							"The most databases that are maintained at the same time.", NULL,
							&maintain_workers, 4, 1, MAX_DATABASES, PGC_SIGHUP, 0, NULL, NULL,
							NULL);
	DefineCustomIntVariable("docpatterns.maintain_interval",
							"How often background workers look for what has become due.",
							"Work that a transaction leaves is done when it commits.",
							&maintain_interval, 10, 1, 86400, PGC_SIGHUP, GUC_UNIT_S, NULL, NULL,
							NULL);
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;
	next_request = shmem_request_hook;
	shmem_request_hook = shared_request;
	next_startup = shmem_startup_hook;
	shmem_startup_hook = shared_startup;
	RegisterXactCallback(left_end, NULL);

	strlcpy(launcher.bgw_name, "docpatterns launcher", BGW_MAXLEN);
	strlcpy(launcher.bgw_type, "docpatterns launcher", BGW_MAXLEN);
	launcher.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	/* not before a standby is promoted */
	launcher.bgw_start_time = BgWorkerStart_RecoveryFinished;
	launcher.bgw_restart_time = RETRY_AFTER / 1000;
	strlcpy(launcher.bgw_library_name, "docpatterns", sizeof(launcher.bgw_library_name));
	strlcpy(launcher.bgw_function_name, "dp_worker_launch", sizeof(launcher.bgw_function_name));
	RegisterBackgroundWorker(&launcher);
}

static void
shared_request(void)
{
	if (next_request != NULL)
		next_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(Shared)));
	RequestNamedLWLockTranche("docpatterns", 1);
}

static void
shared_startup(void)
{
	bool found;

	if (next_startup != NULL)
		next_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("docpatterns", sizeof(Shared), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(Shared));
		shared->lock = &GetNamedLWLockTranche("docpatterns")->lock;
	}
	LWLockRelease(AddinShmemInitLock);
}

/* ---------------------------------------------------------------- work that a commit leaves */

void
dp_work_left(Oid relid)
{
	int i;

	if (shared == NULL)
		return;
	for (i = nleft - 1; i >= 0; i--)
	{
		if (left[i] == relid)
			return;
	}
	if (nleft < MAX_LEFT)
		left[nleft++] = relid;
	else
		left_many = true;
}

/* A prepared transaction's work is found when all tables are maintained. */
static void
left_end(XactEvent event, void *arg)
{
	if (nleft == 0)
		return;
	switch (event)
	{
		case XACT_EVENT_COMMIT:
			left_tell();
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			break;
		default:
			return;
	}
	nleft = 0;
	left_many = false;
}

/* Tells the database's worker, or the launcher, unless they know already. */
static void
left_tell(void)
{
	Latch *latch = NULL;
	int i;
	int j;
	int k;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (i = 0; i < MAX_DATABASES; i++)
	{
		Database *d = &shared->databases[i];

		if (d->id != MyDatabaseId || !d->wanted)
			continue;
		for (j = 0; j < nleft && !d->left_many; j++)
		{
			for (k = 0; k < d->nleft && d->left[k] != left[j]; k++)
				;
			if (k < d->nleft)
				continue;
			latch = d->state == RUNNING ? d->latch : shared->launcher;
			if (d->nleft < MAX_LEFT && !left_many)
				d->left[d->nleft++] = left[j];
			else
				d->left_many = true;
		}
		break;
	}
	LWLockRelease(shared->lock);
	if (latch != NULL)
		SetLatch(latch);
}

/* ---------------------------------------------------------------- launcher */

void
dp_worker_launch(Datum arg)
{
	BackgroundWorkerHandle *handles[MAX_DATABASES] = { NULL };
	TimestampTz looked = 0;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	before_shmem_exit(launcher_exit, (Datum) 0);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	shared->launcher = MyLatch;
	LWLockRelease(shared->lock);
	pgstat_report_activity(STATE_IDLE, NULL);

	for (;;)
	{
		long timeout;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			intervals_read();
			looked = 0;
		}
		if (TimestampDifferenceExceeds(looked, GetCurrentTimestamp(), LOOK_AFTER))
		{
			databases_find();
			looked = GetCurrentTimestamp();
		}
		timeout = workers_start(handles);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout,
						 PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

static void
launcher_exit(int code, Datum arg)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	shared->launcher = NULL;
	LWLockRelease(shared->lock);
}

/* A shorter interval begins now. */
static void
intervals_read(void)
{
	TimestampTz latest =
		TimestampTzPlusMilliseconds(GetCurrentTimestamp(), maintain_interval * INT64CONST(1000));
	int i;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (i = 0; i < MAX_DATABASES; i++)
		shared->databases[i].next = Min(shared->databases[i].next, latest);
	LWLockRelease(shared->lock);
}

/* Brings the list of databases up to date. */
static void
databases_find(void)
{
	bool seen[MAX_DATABASES] = { false };
	char *value;
	List *names = NIL;
	Relation rel;
	TableScanDesc scan;
	HeapTuple tuple;
	int i;

	StartTransactionCommand();
	value = pstrdup(maintain_databases);
	if (!SplitIdentifierString(value, ',', &names))
	{
		ereport(LOG, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					  errmsg("invalid list syntax in parameter \"%s\"",
							 "docpatterns.maintain_databases")));
		names = NIL;
	}
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while (HeapTupleIsValid(tuple = heap_getnext(scan, ForwardScanDirection)))
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		int unused = -1;

		if (!form->datallowconn || !is_named(form, names))
			continue;
		LWLockAcquire(shared->lock, LW_EXCLUSIVE);
		for (i = 0; i < MAX_DATABASES && shared->databases[i].id != form->oid; i++)
		{
			if (unused < 0 && shared->databases[i].id == InvalidOid)
				unused = i;
		}
		if (i == MAX_DATABASES && unused >= 0)
		{
			i = unused;
			memset(&shared->databases[i], 0, sizeof(Database));
			shared->databases[i].id = form->oid;
		}
		if (i < MAX_DATABASES)
			seen[i] = shared->databases[i].wanted = true;
		LWLockRelease(shared->lock);
		if (i == MAX_DATABASES)
			ereport(LOG, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
						  errmsg("database \"%s\" is not maintained", NameStr(form->datname)),
						  errdetail("At most %d databases are.", MAX_DATABASES)));
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (i = 0; i < MAX_DATABASES; i++)
	{
		Database *d = &shared->databases[i];

		if (seen[i])
			continue;
		d->wanted = false;
		if (d->state == STOPPED)
			d->id = InvalidOid;
		else if (d->latch != NULL)
			SetLatch(d->latch);
	}
	LWLockRelease(shared->lock);
}

/* Templates have to be named. */
static bool
is_named(Form_pg_database database, List *names)
{
	ListCell *lc;

	foreach(lc, names)
	{
		if (strcmp(lfirst(lc), NameStr(database->datname)) == 0 ||
			(strcmp(lfirst(lc), "*") == 0 && !database->datistemplate))
			return true;
	}
	return false;
}

/*
 * Starts workers of databases with work, those that have waited longest first.  Returns for how
 * many milliseconds there is nothing to start.
 */
static long
workers_start(BackgroundWorkerHandle **handles)
{
	TimestampTz now = GetCurrentTimestamp();
	long timeout = LOOK_AFTER;
	int i;

	for (i = 0; i < MAX_DATABASES; i++)
	{
		pid_t pid;

		/* one that could not start, or was killed, did not say so */
		if (handles[i] == NULL || GetBackgroundWorkerPid(handles[i], &pid) != BGWH_STOPPED)
			continue;
		pfree(handles[i]);
		handles[i] = NULL;
		LWLockAcquire(shared->lock, LW_EXCLUSIVE);
		if (shared->databases[i].state == STARTING)
		{
			shared->databases[i].state = STOPPED;
			shared->databases[i].next = TimestampTzPlusMilliseconds(now, RETRY_AFTER);
			shared->databases[i].nleft = 0;
		}
		LWLockRelease(shared->lock);
	}

	for (;;)
	{
		int best = -1;
		int running = 0;

		LWLockAcquire(shared->lock, LW_EXCLUSIVE);
		for (i = 0; i < MAX_DATABASES; i++)
		{
			Database *d = &shared->databases[i];

			if (d->id == InvalidOid)
				continue;
			running += d->state != STOPPED;
			if (d->state != STOPPED || !d->wanted)
				continue;
			if (d->nleft == 0 && d->next > now)
				timeout = Min(timeout, TimestampDifferenceMilliseconds(now, d->next));
			else if (best < 0 || d->next < shared->databases[best].next)
				best = i;
		}
		shared->crowded = best >= 0 && running >= maintain_workers;
		if (best >= 0 && !shared->crowded)
			shared->databases[best].state = STARTING;
		LWLockRelease(shared->lock);
		if (best < 0)
			return timeout;
		if (running >= maintain_workers)
			return Min(timeout, TICK);
		if (!worker_start(best, &handles[best]))
		{
			LWLockAcquire(shared->lock, LW_EXCLUSIVE);
			shared->databases[best].state = STOPPED;
			LWLockRelease(shared->lock);
			ereport(LOG, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
						  errmsg("out of background worker slots"),
						  errhint("You might need to increase max_worker_processes.")));
			return RETRY_AFTER;
		}
	}
}

static bool
worker_start(int i, BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker = { 0 };

	strlcpy(worker.bgw_name, "docpatterns worker", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "docpatterns worker", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "docpatterns", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "dp_worker_main", sizeof(worker.bgw_function_name));
	worker.bgw_main_arg = Int32GetDatum(i);
	worker.bgw_notify_pid = MyProcPid;
	return RegisterDynamicBackgroundWorker(&worker, handle);
}

/* ---------------------------------------------------------------- worker */

void
dp_worker_main(Datum arg)
{
	MemoryContext context;
	static int failures = 0;
	Oid id;

	mine = &shared->databases[DatumGetInt32(arg)];
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	before_shmem_exit(worker_exit, (Datum) 0);
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	id = mine->id;
	mine->state = RUNNING;
	mine->latch = MyLatch;
	LWLockRelease(shared->lock);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(id, InvalidOid, 0);
	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
	pgstat_report_appname("docpatterns");
	started = GetCurrentTimestamp();
	context = AllocSetContextCreate(TopMemoryContext, "docpatterns worker", ALLOCSET_DEFAULT_SIZES);

	for (;;)
	{
		volatile long timeout = TICK;

		ResetLatch(MyLatch);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			intervals_read();
		}
		PG_TRY();
		{
			CHECK_FOR_INTERRUPTS();
			timeout = worker_step(context, &failures);
		}
		PG_CATCH();
		{
			/* cancelled, or the extension is not as it should be */
			HOLD_INTERRUPTS();
			EmitErrorReport();
			AbortCurrentTransaction();
			LWLockReleaseAll();
			MemoryContextSwitchTo(TopMemoryContext);
			FlushErrorState();
			RESUME_INTERRUPTS();
			failures = Min(failures + 1, 10);
			LWLockAcquire(shared->lock, LW_EXCLUSIVE);
			mine->next = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), TICK << failures);
			LWLockRelease(shared->lock);
		}
		PG_END_TRY();
		MemoryContextReset(context);
		if (timeout < 0)
			proc_exit(0);
		pgstat_report_activity(STATE_IDLE, NULL);
		(void) pgstat_report_stat(false);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout,
						 PG_WAIT_EXTENSION);
	}
}

/* Another worker may be started. */
static void
worker_exit(int code, Datum arg)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	mine->state = STOPPED;
	mine->latch = NULL;
	if (code != 0 || unwanted)
	{
		mine->next = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RETRY_AFTER);
		mine->nleft = 0;
		mine->left_many = false;
	}
	if (shared->launcher != NULL)
		SetLatch(shared->launcher);
	LWLockRelease(shared->lock);
}

/* Does what is due now.  Returns for how many milliseconds to wait, or -1 to end. */
static long
worker_step(MemoryContext context, int *failures)
{
	TimestampTz now = GetCurrentTimestamp();
	Oid tables[MAX_LEFT];
	int ntables;
	bool all;
	bool more = false;
	bool ends;
	TimestampTz next;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	ntables = mine->nleft;
	memcpy(tables, mine->left, sizeof(Oid) * ntables);
	all = mine->left_many || mine->next <= now;
	mine->nleft = 0;
	mine->left_many = false;
	if (all)
	{
		ntables = -1;
		mine->next = TimestampTzPlusMilliseconds(now, maintain_interval * INT64CONST(1000));
	}
	LWLockRelease(shared->lock);

	worker_run(context, tables, ntables, &more);
	*failures = 0;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (more)
		mine->next = now;
	next = mine->next;
	ends = unwanted || !mine->wanted;
	/* if others wait: when nothing is due, or after some time */
	if (shared->crowded)
		ends |= (mine->nleft == 0 && !mine->left_many && next > now) ||
				TimestampDifferenceExceeds(started, now, maintain_interval * 1000);
	LWLockRelease(shared->lock);
	if (ends)
		return -1;
	if (ntables != 0)
	{
		/* what is left meanwhile is done together */
		(void) WaitLatch(MyLatch, WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, GATHER, PG_WAIT_EXTENSION);
		CHECK_FOR_INTERRUPTS();
	}
	return Min(TICK, TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next));
}

/* Maintains tables, or all (-1).  Sets *more if there was no time for everything. */
static void
worker_run(MemoryContext context, Oid *tables, int ntables, bool *more)
{
	DpMaintainRun run = { .patient = true,
						  .most = PG_INT64_MAX,
						  .batch = 200,
						  .commit = worker_commit,
						  .stop = worker_stop };
	int i;

	worker_begin();
	run.until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), TICK);
	if (!unwanted && ntables != 0 && OidIsValid(get_extension_oid("docpatterns", true)))
	{
		for (i = 0; i < Max(ntables, 1) && !unwanted; i++)
		{
			MemoryContextSwitchTo(context);
			run.rel = ntables > 0 ? tables[i] : InvalidOid;
			(void) dp_maintain_run(&run);
		}
		*more = GetCurrentTimestamp() >= run.until;
	}
	CommitTransactionCommand();
}

static void
worker_commit(void)
{
	CommitTransactionCommand();
	worker_begin();
}

/* Begins a transaction, and a statement: some work is due by the time of that. */
static void
worker_begin(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	database_lock();
}

static bool
worker_stop(void)
{
	return unwanted;
}

/* Takes the lock of a session on its database until the transaction ends, if it is free. */
static void
database_lock(void)
{
	LOCKTAG tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	unwanted = LockAcquire(&tag, RowExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL;
}
