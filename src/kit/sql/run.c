/*
 * run.c
 *		Runs the statements of patterns: prepared once, as the right user, with the right
 *		snapshot, and marked for the extension's own triggers.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "kit/rows/later.h"
#include "kit/sql/run.h"
#include "kit/statement.h"

static DpMark *marks = NULL;
static Oid acting_user = InvalidOid;

static int execute(SPIPlanPtr plan, Datum *values, const char *nulls, int flags, long maxrows);
static int execute_as(Oid owner, SPIPlanPtr plan, Datum *values, const char *nulls, int flags,
					  long maxrows, bool reads);
static DpMark *mark_find(Oid relid, const char *name);
static void plan_free(void *arg);
static void plans_free(void *arg);

SPIPlanPtr
dp_plan(DpDecl *decl, const void *id)
{
	for (DpPlan *p = decl->plans; p != NULL; p = p->next)
	{
		if (p->id == id)
			return dp_plan_valid(p);
	}
	return NULL;
}

/*
 * An invalid plan is discarded, because its text may contain old names of tables.  A statement
 * further out may be running it, so it is freed when the transaction ends.
 */
SPIPlanPtr
dp_plan_valid(DpPlan *p)
{
	if (p->plan != NULL && !SPI_plan_is_valid(p->plan))
	{
		MemoryContext context =
			AllocSetContextCreate(TopMemoryContext, "docpatterns plan", ALLOCSET_SMALL_SIZES);
		MemoryContextCallback *callback =
			MemoryContextAlloc(context, sizeof(MemoryContextCallback));

		callback->func = plan_free;
		callback->arg = p->plan;
		MemoryContextRegisterResetCallback(context, callback);
		dp_bury(context);
		p->plan = NULL;
	}
	return p->plan;
}

SPIPlanPtr
dp_plan_make(DpDecl *decl, const void *id, const char *sql, int nargs, Oid *argtypes, int options)
{
	DpPlan *p = decl->plans;

	while (p != NULL && p->id != id)
		p = p->next;
	return dp_plan_prepare(decl, p != NULL ? p : dp_plan_add(decl, id), sql, nargs, argtypes,
						   options);
}

/* Room for a plan. */
DpPlan *
dp_plan_add(DpDecl *decl, const void *id)
{
	DpPlan *p = MemoryContextAllocZero(decl->context, sizeof(DpPlan));

	if (decl->plans == NULL)
	{
		MemoryContextCallback *callback =
			MemoryContextAlloc(decl->context, sizeof(MemoryContextCallback));

		callback->func = plans_free;
		callback->arg = decl;
		MemoryContextRegisterResetCallback(decl->context, callback);
	}
	p->id = id;
	p->next = decl->plans;
	decl->plans = p;
	return p;
}

SPIPlanPtr
dp_plan_prepare(DpDecl *decl, DpPlan *p, const char *sql, int nargs, Oid *argtypes, int options)
{
	MemoryContext old = CurrentMemoryContext;
	SPIPlanPtr plan;
	Oid user;
	int sec;

	/*
	 * Names are looked up as the owner, who may use the table's schema even if the user of a view
	 * may not.  Privileges on the named objects are checked when the plan runs.
	 */
	GetUserIdAndSecContext(&user, &sec);
	SetUserIdAndSecContext(decl->owner, sec | SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);
	plan = SPI_prepare_cursor(sql, nargs, argtypes, options);
	SetUserIdAndSecContext(user, sec);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s: %s", SPI_result_code_string(SPI_result), sql);
	SPI_keepplan(plan);
	MemoryContextSwitchTo(old); /* SPI leaves its own one current */
	p->plan = plan;
	return plan;
}

/*
 * Without DP_RUN_SNAPSHOT, the statement sees the latest committed state at every isolation level,
 * as referential integrity does: the caller holds the lock of the group that it reads.  A
 * transaction with one snapshot for all statements cannot overwrite what this snapshot does not
 * show (SERIALIZATION_FAILURE), as with any table, although the group lock alone would allow it.
 */
uint64
dp_run(DpDecl *decl, SPIPlanPtr plan, Datum *values, const char *nulls, int flags, long maxrows,
	   int expected)
{
	int rc;

	if (flags & DP_RUN_AS_OWNER)
		rc =
			execute_as(decl->owner, plan, values, nulls, flags, maxrows, expected == SPI_OK_SELECT);
	else
		rc = execute(plan, values, nulls, flags, maxrows);
	if (rc != expected)
		elog(ERROR, "SPI_execute_snapshot returned %s", SPI_result_code_string(rc));
	return SPI_processed;
}

void
dp_act_as(Oid owner, DpActing *saved)
{
	GetUserIdAndSecContext(&saved->user, &saved->sec);
	saved->acting = acting_user;
	saved->nestlevel = NewGUCNestLevel();
	if (!OidIsValid(acting_user))
		acting_user = saved->user;
	SetUserIdAndSecContext(owner, saved->sec | SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);
}

void
dp_act_end(const DpActing *saved)
{
	AtEOXact_GUC(false, saved->nestlevel);
	acting_user = saved->acting;
	SetUserIdAndSecContext(saved->user, saved->sec);
}

/* Executes a plan with the table owner's privileges. */
static int
execute_as(Oid owner, SPIPlanPtr plan, Datum *values, const char *nulls, int flags, long maxrows,
		   bool reads)
{
	DpActing saved;
	volatile int rc = 0;

	dp_act_as(owner, &saved);
	/* a read needs no deferred triggers: the owner's code must not affect the session later */
	if (reads)
		SetUserIdAndSecContext(owner,
							   saved.sec | SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);
	PG_TRY();
	{
		rc = execute(plan, values, nulls, flags, maxrows);
	}
	PG_FINALLY();
	{
		dp_act_end(&saved);
	}
	PG_END_TRY();
	return rc;
}

/* Executes a plan with the snapshots that dp_run() describes. */
static int
execute(SPIPlanPtr plan, Datum *values, const char *nulls, int flags, long maxrows)
{
	Snapshot snapshot = InvalidSnapshot;
	Snapshot crosscheck = InvalidSnapshot;
	bool read_only = (flags & (DP_RUN_SNAPSHOT | DP_RUN_TRANSACTION)) != 0;

	dp_later_write(InvalidOid);
	if (flags & DP_RUN_TRANSACTION)
	{
		CommandCounterIncrement();
		snapshot = GetTransactionSnapshot();
	}
	if (!read_only && IsolationUsesXactSnapshot() && !(flags & DP_RUN_LOCK))
	{
		CommandCounterIncrement();
		snapshot = GetLatestSnapshot();
		crosscheck = GetTransactionSnapshot();
	}
	return SPI_execute_snapshot(plan, values, nulls, snapshot, crosscheck, read_only, true,
								maxrows);
}

void
dp_owner_begin(Oid owner, DpActor *saved)
{
	GetUserIdAndSecContext(&saved->user, &saved->sec);
	SetUserIdAndSecContext(owner,
						   saved->sec | SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);
	saved->nestlevel = NewGUCNestLevel();
	/* definitions of indexes and the like are compared with what the patterns create */
	(void) set_config_option("quote_all_identifiers", "off", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("standard_conforming_strings", "on", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

void
dp_owner_end(const DpActor *saved)
{
	AtEOXact_GUC(false, saved->nestlevel);
	SetUserIdAndSecContext(saved->user, saved->sec);
}

/* A column (from 1) of a row (from 0) of the current result. */
Datum
dp_result(uint64 row, int column, bool *isnull)
{
	TupleDesc desc = SPI_tuptable->tupdesc;
	Datum value = SPI_getbinval(SPI_tuptable->vals[row], desc, column, isnull);

	if (!*isnull && TupleDescAttr(desc, column - 1)->attlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
	return value;
}

void
dp_mark_push(DpMark *mark, Oid relid, const char *name, DpMarkKind kind)
{
	mark->relid = relid;
	mark->name = name;
	mark->kind = kind;
	mark->doc = NULL;
	mark->depth = dp_trigger_depth();
	mark->outer = marks;
	marks = mark;
}

/* Also pops marks that were pushed inside and not popped. */
void
dp_mark_pop(DpMark *mark)
{
	marks = mark->outer;
}

/* The mark of the extension's statement whose triggers are being called, or DP_MARK_NONE. */
DpMarkKind
dp_marked(Oid relid, const char *name)
{
	const DpMark *mark = mark_find(relid, name);

	return mark != NULL ? mark->kind : DP_MARK_NONE;
}

/* Does the same for event triggers, which do not count as triggers. */
bool
dp_marked_command(Oid relid)
{
	int depth = marks != NULL ? dp_trigger_depth() : 0;
	DpMark *mark;

	for (mark = marks; mark != NULL; mark = mark->outer)
	{
		if (mark->relid == relid && mark->depth == depth && mark->name == NULL)
			return true;
	}
	return false;
}

/* Changes the mark, which must exist. */
void
dp_mark_change(Oid relid, const char *name, DpMarkKind kind)
{
	mark_find(relid, name)->kind = kind;
}

struct varlena *
dp_marked_document(Oid relid, const char *name)
{
	const DpMark *mark = mark_find(relid, name);

	return mark != NULL ? mark->doc : NULL;
}

bool
dp_marked_derived(Oid relid, struct varlena **doc)
{
	int depth = marks != NULL ? dp_trigger_depth() : 0;
	DpMark *mark;

	for (mark = marks; mark != NULL; mark = mark->outer)
	{
		if (mark->relid == relid && mark->depth == depth - 1 && mark->kind == DP_MARK_DERIVED)
		{
			if (doc != NULL)
				*doc = mark->doc;
			return true;
		}
	}
	return false;
}

/* The mark of the statement whose triggers are being called, or NULL. */
static DpMark *
mark_find(Oid relid, const char *name)
{
	int depth = marks != NULL ? dp_trigger_depth() : 0;
	DpMark *mark;

	for (mark = marks; mark != NULL; mark = mark->outer)
	{
		if (mark->relid == relid && mark->depth == depth - 1 && mark->kind != DP_MARK_DERIVED &&
			(mark->name == NULL || name == NULL || strcmp(mark->name, name) == 0))
			return mark;
	}
	return NULL;
}

uint64
dp_run_marked(DpDecl *decl, SPIPlanPtr plan, Datum *values, const char *nulls, int flags,
			  int expected, Oid relid, const char *name, DpMarkKind kind)
{
	DpMark mark;
	volatile uint64 rows = 0;

	dp_mark_push(&mark, relid, name, kind);
	PG_TRY();
	{
		rows = dp_run(decl, plan, values, nulls, flags, 0, expected);
	}
	PG_FINALLY();
	{
		dp_mark_pop(&mark);
	}
	PG_END_TRY();
	return rows;
}

void
dp_run_writing(DpDecl *decl, SPIPlanPtr plan, Datum *values, int flags, struct varlena *doc)
{
	DpMark mark;
	volatile uint64 rows = 0;

	dp_mark_push(&mark, decl->target, decl->name, DP_MARK_INTERNAL);
	mark.doc = doc;
	PG_TRY();
	{
		rows = dp_run(decl, plan, values, NULL, flags, 0, SPI_OK_UPDATE);
	}
	PG_FINALLY();
	{
		dp_mark_pop(&mark);
	}
	PG_END_TRY();
	if (rows == 0)
		dp_write_refused(decl, decl->target);
}

void
dp_write_refused(DpDecl *decl, Oid relid)
{
	ereport(ERROR,
			(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
			 errmsg("BEFORE trigger on \"%s\" suppressed a write required by the %s pattern \"%s\"",
					dp_relation_name(relid), decl->pattern, decl->name),
			 errdetail("Without the write, the pattern's data would be inconsistent.")));
}

Oid
dp_acting_user(void)
{
	return OidIsValid(acting_user) ? acting_user : GetUserId();
}

/* Frees a plan whose context is deleted. */
static void
plan_free(void *arg)
{
	SPI_freeplan(arg);
}

/* Frees the plans of a declaration whose context is deleted. */
static void
plans_free(void *arg)
{
	DpPlan *p;

	for (p = ((DpDecl *) arg)->plans; p != NULL; p = p->next)
	{
		if (p->plan != NULL)
			SPI_freeplan(p->plan);
	}
}
