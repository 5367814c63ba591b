/*
 * maintain.c
 *		Does deferred work of all patterns that is due: pattern_maintain().
 *
 * It never waits for a lock of another transaction for longer than LOCK_TIMEOUT: the work of a
 * batch is tried in a subtransaction, and again for fewer rows when a lock was not available.  A
 * queue then passes over the keys that are locked (queue.h).
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "kit/declaration.h"
#include "kit/derive/queue.h"
#include "kit/maintain.h"
#include "kit/registry.h"

/* For each lock that is not available at once */
#define LOCK_TIMEOUT "10ms"

/* How long a transaction may go on after its first part, in milliseconds */
#define BATCH_TIME 200

/* Work can leave work to other declarations: how often that is looked for */
#define DEPTH 4

/* A declaration that has something to do */
typedef struct Work
{
	Oid rel;
	char *pattern;
	char *name;
	bool failed; /* docpatterns.maintenance has a row of it */
	bool ended;  /* nothing more is due, or it is locked */
	int64 done;
	DpQueuePass pass;
} Work;

/* No time that timestamptz has is so long ago: the years since its first one are 6,700 and more */
#define FOREVER_DAYS (6700 * 365.0)

/* The fn_extra of _pattern_cutoff() */
typedef struct Cutoff
{
	TimestampTz now;
	TimestampTz cutoff;
} Cutoff;

/* What came of a part of a batch */
typedef enum Outcome
{
	DONE,
	LOCKED, /* another transaction holds a lock */
	FAILED
} Outcome;

static bool run_all(const DpMaintainRun *run, List *all, int64 *done);
static List *work_find(const DpMaintainRun *run);
static int64 work_batch(Work *work, int64 most);
static Outcome work_try(Work *work, int64 most, int64 *done);
static bool work_exists(const Work *work);
static void work_failed(Work *work, const ErrorData *error);
static void as_superuser(const char *sql, int nargs, Oid *types, Datum *values, const char *nulls);
static void commit_procedure(void);

int64
dp_maintain_run(const DpMaintainRun *run)
{
	int64 done = 0;
	int64 before;
	int depth = 0;

	do
	{
		before = done;
	} while (run_all(run, work_find(run), &done) && done > before && ++depth < DEPTH);
	return done;
}

/* Does it in rounds, as far as it was found; returns false if the run ended early. */
static bool
run_all(const DpMaintainRun *run, List *all, int64 *done)
{
	MemoryContext caller = CurrentMemoryContext;
	bool more = true;
	ListCell *lc;

	while (more)
	{
		more = false;
		foreach(lc, all)
		{
			Work *work = lfirst(lc);
			int64 n;

			if (work->ended)
				continue;
			if (*done >= run->most || GetCurrentTimestamp() >= run->until)
				return false;
			CHECK_FOR_INTERRUPTS();
			n = work_batch(work, Min(run->batch, run->most - *done));
			*done += n;
			work->done += n;
			more |= !work->ended;
			if (run->commit != NULL)
				run->commit();
			MemoryContextSwitchTo(caller);
			if (run->stop != NULL && run->stop())
				return false;
		}
	}
	return true;
}

/* The declarations with something to do (Work), the most urgent first. */
static List *
work_find(const DpMaintainRun *run)
{
	MemoryContext caller = CurrentMemoryContext;
	Oid types[3] = { REGCLASSOID, TEXTOID, BOOLOID };
	Datum values[3] = { ObjectIdGetDatum(run->rel), (Datum) 0, BoolGetDatum(run->patient) };
	char nulls[3] = { OidIsValid(run->rel) ? ' ' : 'n', run->name != NULL ? ' ' : 'n', ' ' };
	List *all = NIL;
	uint64 i;

	/* it was dropped since */
	if (OidIsValid(run->rel) && !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(run->rel)))
		return NIL;
	if (run->name != NULL)
		values[1] = CStringGetTextDatum(run->name);
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	if (SPI_execute_with_args("SELECT w.rel::pg_catalog.oid, w.pattern, w.name, w.failed"
							  " FROM docpatterns._pattern_work($1, $2, $3) AS w",
							  3, types, values, nulls, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not find what is due");
	for (i = 0; i < SPI_processed; i++)
	{
		HeapTuple row = SPI_tuptable->vals[i];
		TupleDesc desc = SPI_tuptable->tupdesc;
		MemoryContext old = MemoryContextSwitchTo(caller);
		Work *work = palloc0(sizeof(Work));
		bool isnull;

		work->rel = DatumGetObjectId(SPI_getbinval(row, desc, 1, &isnull));
		work->pattern = TextDatumGetCString(SPI_getbinval(row, desc, 2, &isnull));
		work->name = TextDatumGetCString(SPI_getbinval(row, desc, 3, &isnull));
		work->failed = DatumGetBool(SPI_getbinval(row, desc, 4, &isnull));
		work->pass.context = caller;
		all = lappend(all, work);
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	PopActiveSnapshot();
	return all;
}

/*
 * Does about so many rows of a declaration's work, in parts: each one smaller than the one before
 * if it met a lock, and larger if not.
 */
static int64
work_batch(Work *work, int64 most)
{
	TimestampTz began = GetCurrentTimestamp();
	int64 part = most;
	int64 done = 0;

	pgstat_report_activity(STATE_RUNNING,
						   psprintf("pattern_maintain: %s \"%s\" of \"%s\", " INT64_FORMAT " done",
									work->pattern, work->name, dp_relation_name(work->rel),
									work->done));
	/* whoever has the table locked may be about to change or drop the declaration */
	if (!ConditionalLockRelationOid(work->rel, RowExclusiveLock))
	{
		work->ended = true;
		return 0;
	}
	while (done < most && !TimestampDifferenceExceeds(began, GetCurrentTimestamp(), BATCH_TIME))
	{
		int64 n = 0;

		CHECK_FOR_INTERRUPTS();
		switch (work_try(work, part, &n))
		{
			case DONE:
				done += n;
				work->ended = n < part;
				part = Min(part * 2, most - done);
				if (!work->ended)
					continue;
				break;
			case LOCKED:
				if (part > 1)
				{
					part = (part + 7) / 8;
					continue;
				}
				work->ended = work->pass.last == NULL;
				work->pass.after = work->pass.last;
				if (!work->ended)
					continue;
				break;
			case FAILED:
				work->ended = true;
				return done;
		}
		break;
	}
	if (work->failed)
	{
		Oid types[3] = { REGCLASSOID, TEXTOID, TEXTOID };
		Datum values[3] = { ObjectIdGetDatum(work->rel), CStringGetTextDatum(work->pattern),
							CStringGetTextDatum(work->name) };

		as_superuser("DELETE FROM docpatterns.maintenance"
					 " WHERE rel = $1 AND pattern = $2 AND name = $3",
					 3, types, values, NULL);
		work->failed = false;
	}
	return done;
}

/* Does a part of it in a subtransaction. */
static Outcome
work_try(Work *work, int64 most, int64 *done)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile Outcome outcome = DONE;

	PushActiveSnapshot(GetTransactionSnapshot());
	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		Oid type = INT4OID;
		Datum value = Int32GetDatum((int32) most);

		work->pass.last = NULL;
		work->pass.entries = 0;
		if (work_exists(work))
		{
			int nestlevel = NewGUCNestLevel();
			bool isnull;

			(void) set_config_option("lock_timeout", LOCK_TIMEOUT, PGC_USERSET, PGC_S_SESSION,
									 GUC_ACTION_SAVE, true, 0, false);
			SPI_connect();
			dp_queue_passing = &work->pass;
			if (dp_pattern_call_hook(work->rel, work->pattern, "maintain", work->name, 1, &type,
									 &value, false) == 1)
				*done = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
													&isnull));
			dp_queue_passing = NULL;
			if (work->pass.entries > 0)
				*done = work->pass.entries;
			SPI_finish();
			AtEOXact_GUC(false, nestlevel);
		}
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(caller);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData *error;

		dp_queue_passing = NULL;
		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(caller);
		CurrentResourceOwner = owner;
		if (error->sqlerrcode == ERRCODE_QUERY_CANCELED ||
			ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION)
			ReThrowError(error);
		outcome = LOCKED;
		if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE &&
			ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_TRANSACTION_ROLLBACK)
		{
			outcome = FAILED;
			work_failed(work, error);
		}
		else
			elog(DEBUG1, "maintenance of \"%s\" met a lock: %s", work->name, error->message);
		FreeErrorData(error);
	}
	PG_END_TRY();
	PopActiveSnapshot();
	return outcome;
}

/* Whether the declaration still exists. */
static bool
work_exists(const Work *work)
{
	ListCell *lc;

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(work->rel)))
		return false;
	foreach(lc, dp_decls(work->rel))
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->pattern, work->pattern) == 0 && strcmp(decl->name, work->name) == 0)
			return true;
	}
	return false;
}

/* Reports an error and remembers it, so that the next try comes later each time. */
static void
work_failed(Work *work, const ErrorData *error)
{
	Oid types[4] = { REGCLASSOID, TEXTOID, TEXTOID, TEXTOID };
	Datum values[4] = { ObjectIdGetDatum(work->rel), CStringGetTextDatum(work->pattern),
						CStringGetTextDatum(work->name), CStringGetTextDatum(error->message) };

	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("could not maintain the %s pattern \"%s\" of table \"%s\": %s", work->pattern,
					work->name, dp_relation_name(work->rel), error->message),
			 error->detail != NULL ? errdetail_internal("%s", error->detail) : 0));
	as_superuser("DELETE FROM docpatterns.maintenance AS m"
				 " WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = m.rel)",
				 0, NULL, NULL, NULL);
	as_superuser(
		"INSERT INTO docpatterns.maintenance AS m (rel, pattern, name, error)"
		" VALUES ($1, $2, $3, $4) ON CONFLICT (rel, name, pattern) DO UPDATE"
		" SET error = excluded.error, failures = m.failures + 1, failed_at = excluded.failed_at,"
		" retry_at = excluded.failed_at + least(2 ^ least(m.failures, 12), 3600) * interval '1 s'",
		4, types, values, NULL);
	work->failed = true;
}

/* Writes to the extension's own table, whose columns and operators are PostgreSQL's. */
static void
as_superuser(const char *sql, int nargs, Oid *types, Datum *values, const char *nulls)
{
	Oid user;
	int sec;
	int nestlevel = NewGUCNestLevel();

	GetUserIdAndSecContext(&user, &sec);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   sec | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	if (SPI_execute_with_args(sql, nargs, types, values, nulls, false, 0) < 0)
		elog(ERROR, "could not write what maintenance has found");
	SPI_finish();
	PopActiveSnapshot();
	SetUserIdAndSecContext(user, sec);
	AtEOXact_GUC(false, nestlevel);
}

/*
 * _pattern_due_one(rel, pattern, name) -> rows of pattern_due
 */
DP_FUNCTION(dp_pattern_due_one);
Datum
dp_pattern_due_one(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid rel = PG_GETARG_OID(0);
	char *pattern = text_to_cstring(PG_GETARG_TEXT_PP(1));
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(2));
	int nestlevel;
	uint64 rows;
	uint64 i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	dp_require_owner(rel);
	nestlevel = NewGUCNestLevel();
	(void) set_config_option("lock_timeout", LOCK_TIMEOUT, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	SPI_connect();
	rows = dp_pattern_call_hook(rel, pattern, "due", name, 0, NULL, NULL, true);
	for (i = 0; i < rows; i++)
	{
		Datum values[6] = { ObjectIdGetDatum(rel), PG_GETARG_DATUM(1), PG_GETARG_DATUM(2) };
		bool nulls[6] = { false };
		int j;

		for (j = 0; j < 3; j++)
			values[3 + j] =
				SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, j + 1, &nulls[3 + j]);
		/* else nothing of this kind */
		if (!nulls[5])
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	SPI_finish();
	AtEOXact_GUC(false, nestlevel);
	return (Datum) 0;
}

/*
 * pattern_maintain(rel, name, max_time interval, max_rows bigint, batch int)
 */
DP_FUNCTION(dp_pattern_maintain);
Datum
dp_pattern_maintain(PG_FUNCTION_ARGS)
{
	CallContext *call = (CallContext *) fcinfo->context;
	bool atomic = call == NULL || !IsA(call, CallContext) || call->atomic;
	DpMaintainRun run = { .most = PG_INT64_MAX, .until = DT_NOEND };

	PreventCommandIfReadOnly("pattern_maintain()");
	if (!PG_ARGISNULL(0))
	{
		run.rel = PG_GETARG_OID(0);
		dp_require_owner(run.rel);
	}
	run.patient = PG_ARGISNULL(0);
	if (!PG_ARGISNULL(2))
		run.until =
			DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
													TimestampTzGetDatum(GetCurrentTimestamp()),
													PG_GETARG_DATUM(2)));
	if (!PG_ARGISNULL(3))
		run.most = PG_GETARG_INT64(3);
	run.batch = PG_ARGISNULL(4) ? 200 : PG_GETARG_INT32(4);
	if (run.most < 0 || run.batch < 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("max_rows must not be negative, and batch must be positive")));
	SPI_connect_ext(atomic ? 0 : SPI_OPT_NONATOMIC);
	if (!PG_ARGISNULL(1))
		run.name = text_to_cstring(PG_GETARG_TEXT_PP(1));
	run.commit = atomic ? NULL : commit_procedure;
	(void) dp_maintain_run(&run);
	SPI_finish();
	PG_RETURN_VOID();
}

static void
commit_procedure(void)
{
	SPI_commit();
}

/* ---------------------------------------------------------------- times */

/*
 * _pattern_cutoff(after interval) -> timestamptz: that much before the start of the statement, the
 * same in all time zones: days have 24 hours.
 */
DP_FUNCTION(dp_pattern_cutoff);
Datum
dp_pattern_cutoff(PG_FUNCTION_ARGS)
{
	Cutoff *kept = fcinfo->flinfo->fn_extra;
	TimestampTz now = GetCurrentStatementStartTimestamp();

	/* the argument is a constant */
	if (kept == NULL || kept->now != now)
	{
		if (kept == NULL)
			fcinfo->flinfo->fn_extra = kept =
				MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(Cutoff));
		kept->cutoff = dp_cutoff(PG_GETARG_INTERVAL_P(0));
		kept->now = now;
	}
	PG_RETURN_TIMESTAMPTZ(kept->cutoff);
}

TimestampTz
dp_cutoff(const Interval *after)
{
	/* a timestamp without time zone, which is the time in UTC, has no days of other lengths */
	if (after->month * 30.0 + after->day + (double) after->time / USECS_PER_DAY > FOREVER_DAYS)
		return DT_NOBEGIN;
	return DatumGetTimestamp(DirectFunctionCall2(
		timestamp_mi_interval, TimestampGetDatum(GetCurrentStatementStartTimestamp()),
		IntervalPGetDatum(unconstify(Interval *, after))));
}
