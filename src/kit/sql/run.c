/*
 * run.c
 *		Running the statements of patterns: prepared once, as the right user,
 *		with the right snapshot, and marked so that our own triggers know them.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

#include "kit/sql/run.h"
#include "kit/statement.h"

static DpMark *marks = NULL;
static Oid acting_user = InvalidOid;

static SPIPlanPtr
plan_make(DpDecl *decl, const void *id, const char *sql, int nargs, Oid *argtypes, int options);
static int execute(SPIPlanPtr plan, Datum *values, const char *nulls, int flags, long maxrows);
static int execute_as(Oid owner, SPIPlanPtr plan, Datum *values, const char *nulls, int flags,
					  long maxrows, bool reads);
static DpMark *mark_find(Oid relid, const char *name);
static void plans_free(void *arg);

/*
 * The plan, if it exists and is still valid.  A plan that is not is thrown
 * away, because its text may name tables by names that they no longer have.
 */
SPIPlanPtr
dp_plan(DpDecl *decl, const void *id)
{
	DpPlan *p;

	for (p = decl->plans; p != NULL; p = p->next)
	{
		if (p->id != id)
			continue;
		if (p->plan != NULL && !SPI_plan_is_valid(p->plan))
		{
			SPI_freeplan(p->plan);
			p->plan = NULL;
		}
		return p->plan;
	}
	return NULL;
}

/*
 * Prepare a statement and keep it with the declaration.
 */
SPIPlanPtr
dp_plan_make(DpDecl *decl, const void *id, const char *sql, int nargs, Oid *argtypes)
{
	return plan_make(decl, id, sql, nargs, argtypes, 0);
}

/*
 * The same for one that is planned once and not for each set of values.
 */
SPIPlanPtr
dp_plan_make_generic(DpDecl *decl, const void *id, const char *sql, int nargs, Oid *argtypes)
{
	return plan_make(decl, id, sql, nargs, argtypes, CURSOR_OPT_GENERIC_PLAN);
}

/* Both, with options of cursors. */
static SPIPlanPtr
plan_make(DpDecl *decl, const void *id, const char *sql, int nargs, Oid *argtypes, int options)
{
	SPIPlanPtr plan;
	DpPlan *p;
	Oid user;
	int sec;

	/*
	 * Names are looked up as the owner, who may use the schema of his table
	 * when somebody writes through a view who may not.  The rights to what is
	 * named are checked when the plan runs.
	 */
	GetUserIdAndSecContext(&user, &sec);
	SetUserIdAndSecContext(decl->owner, sec | SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);
	plan = SPI_prepare_cursor(sql, nargs, argtypes, options);
	SetUserIdAndSecContext(user, sec);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s: %s", SPI_result_code_string(SPI_result), sql);
	SPI_keepplan(plan);

	for (p = decl->plans; p != NULL; p = p->next)
	{
		if (p->id == id)
		{
			p->plan = plan;
			return plan;
		}
	}

	if (decl->plans == NULL)
	{
		MemoryContextCallback *callback =
			MemoryContextAlloc(decl->context, sizeof(MemoryContextCallback));

		callback->func = plans_free;
		callback->arg = decl;
		MemoryContextRegisterResetCallback(decl->context, callback);
	}
	p = MemoryContextAlloc(decl->context, sizeof(DpPlan));
	p->id = id;
	p->plan = plan;
	p->next = decl->plans;
	decl->plans = p;
	return plan;
}

/*
 * Run a plan.
 *
 * Unless the calling statement's snapshot is asked for, the statement sees the
 * latest committed state at every isolation level, as referential integrity
 * does: the caller holds the lock of the group that it reads.  A transaction
 * that has one snapshot for all its statements cannot write over what this
 * snapshot does not show (SERIALIZATION_FAILURE), which is what it may expect
 * of any table, although the lock of the group alone would let it.
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

/*
 * Take on the rights of a table's owner.
 */
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

/*
 * Have one's own again.
 */
void
dp_act_end(const DpActing *saved)
{
	AtEOXact_GUC(false, saved->nestlevel);
	acting_user = saved->acting;
	SetUserIdAndSecContext(saved->user, saved->sec);
}

/* Execute a plan with the rights of a table's owner. */
static int
execute_as(Oid owner, SPIPlanPtr plan, Datum *values, const char *nulls, int flags, long maxrows,
		   bool reads)
{
	DpActing saved;
	volatile int rc = 0;

	dp_act_as(owner, &saved);
	/*
	 * what only reads needs no trigger that is deferred: its owner's code gets no hold on the
	 * session
	 */
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

/* Execute a plan with the snapshots that dp_run() describes. */
static int
execute(SPIPlanPtr plan, Datum *values, const char *nulls, int flags, long maxrows)
{
	Snapshot snapshot = InvalidSnapshot;
	Snapshot crosscheck = InvalidSnapshot;
	bool read_only = (flags & (DP_RUN_SNAPSHOT | DP_RUN_TRANSACTION)) != 0;

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

/*
 * Become the owner, for something that runs his code.
 */
void
dp_owner_begin(Oid owner, DpActor *saved)
{
	GetUserIdAndSecContext(&saved->user, &saved->sec);
	SetUserIdAndSecContext(owner,
						   saved->sec | SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);
	saved->nestlevel = NewGUCNestLevel();
	/* what is shown of indexes and the like is compared with what the patterns make */
	(void) set_config_option("quote_all_identifiers", "off", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("standard_conforming_strings", "on", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Become oneself again, with one's own settings.
 */
void
dp_owner_end(const DpActor *saved)
{
	AtEOXact_GUC(false, saved->nestlevel);
	SetUserIdAndSecContext(saved->user, saved->sec);
}

/*
 * A column (from 1) of a row (from 0) of the current result.
 */
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

/* Also forgets marks that were pushed inside and not popped. */
void
dp_mark_pop(DpMark *mark)
{
	marks = mark->outer;
}

/*
 * What is being done to the relation by the statement of our own whose
 * triggers are being called, if it is one.
 */
DpMarkKind
dp_marked(Oid relid, const char *name)
{
	const DpMark *mark = mark_find(relid, name);

	return mark != NULL ? mark->kind : DP_MARK_NONE;
}

/*
 * The same for event triggers, which are not counted as triggers.
 */
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

/* Go on with another mark, which must be there. */
void
dp_mark_change(Oid relid, const char *name, DpMarkKind kind)
{
	mark_find(relid, name)->kind = kind;
}

/*
 * The document that it writes, or NULL.
 */
struct varlena *
dp_marked_document(Oid relid, const char *name)
{
	const DpMark *mark = mark_find(relid, name);

	return mark != NULL ? mark->doc : NULL;
}

/*
 * Whether it writes derived fields, and the document.
 */
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

/*
 * Raises TRIGGERED_DATA_CHANGE_VIOLATION: a write that a pattern has to make,
 * after others that belong to it, did not take place.
 */
void
dp_write_refused(DpDecl *decl, Oid relid)
{
	ereport(ERROR,
			(errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
			 errmsg("a trigger on table %s keeps the %s pattern \"%s\" from writing to it",
					dp_relation_name(relid), decl->pattern, decl->name),
			 errdetail("A BEFORE trigger that returns null would leave half of a change undone.")));
}

Oid
dp_acting_user(void)
{
	return OidIsValid(acting_user) ? acting_user : GetUserId();
}

/* Free the plans of a declaration whose context goes away. */
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
