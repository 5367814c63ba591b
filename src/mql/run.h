/*
 * run.h
 *		Statements that the extension makes of a user's call.
 *
 * They run without SPI: users do not know them, and SPI would show them with errors.
 */
#ifndef DP_MQL_RUN_H
#define DP_MQL_RUN_H

#include "executor/execdesc.h"
#include "fmgr.h"
#include "nodes/plannodes.h"
#include "tcop/dest.h"

/* Looks at the queries of a statement after views have been replaced. */
typedef void (*DpRunCheck)(List *queries, void *arg);

/*
 * The plans (PlannedStmt *) of a statement, whose parameters and check may be NULL; options are
 * those of cursors.  Errors have no position, which would be one in another statement.
 */
extern List *
dp_run_plan(const char *sql, ParamListInfo params, int options, DpRunCheck check, void *arg);

/* Starts a plan with the active snapshot. */
extern QueryDesc *
dp_run_start(PlannedStmt *plan, const char *sql, ParamListInfo params, DestReceiver *dest);

/* Ends what was started. */
extern void dp_run_end(QueryDesc *query);

/* Runs a plan with the active snapshot from start to end; returns the number of rows. */
extern uint64
dp_run_query(PlannedStmt *plan, const char *sql, ParamListInfo params, DestReceiver *dest);

/* Runs plans that write, each with a new snapshot; returns the rows of the statement itself. */
extern uint64 dp_run_writes(List *plans, const char *sql, ParamListInfo params, DestReceiver *dest);

/* Puts rows into the result of a function that returns a set. */
extern DestReceiver *dp_run_result(FunctionCallInfo fcinfo);

#endif /* DP_MQL_RUN_H */
