/*
 * run.c
 *		Plans and runs statements: see run.h.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "jit/jit.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/snapmgr.h"

#include "dp.h"
#include "mql/run.h"

static void no_position(void *arg);

List *
dp_run_plan(const char *sql, ParamListInfo params, int options, DpRunCheck check, void *arg)
{
	ErrorContextCallback callback = { .callback = no_position, .previous = error_context_stack };
	int n = params == NULL ? 0 : params->numParams;
	Oid *types = palloc(n * sizeof(Oid));
	List *queries;
	ListCell *lc;

	for (int i = 0; i < n; i++)
		types[i] = params->params[i].ptype;
	error_context_stack = &callback;
	queries = pg_analyze_and_rewrite_fixedparams(linitial_node(RawStmt, pg_parse_query(sql)), sql,
												 types, n, NULL);
	if (check != NULL)
		check(queries, arg);
	queries = pg_plan_queries(queries, sql, options, params);
	error_context_stack = callback.previous;
	/* what takes time are our functions, which JIT compilation cannot make faster */
	foreach(lc, queries)
		lfirst_node(PlannedStmt, lc)->jitFlags = PGJIT_NONE;
	return queries;
}

static void
no_position(void *arg)
{
	errposition(0);
}

QueryDesc *
dp_run_start(PlannedStmt *plan, const char *sql, ParamListInfo params, DestReceiver *dest)
{
	QueryDesc *query =
		CreateQueryDesc(plan, sql, GetActiveSnapshot(), InvalidSnapshot, dest, params, NULL, 0);

	ExecutorStart(query, 0);
	return query;
}

void
dp_run_end(QueryDesc *query)
{
	ExecutorFinish(query);
	ExecutorEnd(query);
	FreeQueryDesc(query);
}

uint64
dp_run_query(PlannedStmt *plan, const char *sql, ParamListInfo params, DestReceiver *dest)
{
	QueryDesc *query = dp_run_start(plan, sql, params, dest);
	uint64 rows;

	dp_executor_run(query, 0, true);
	rows = query->estate->es_processed;
	dp_run_end(query);
	return rows;
}

uint64
dp_run_writes(List *plans, const char *sql, ParamListInfo params, DestReceiver *dest)
{
	uint64 rows = 0;
	ListCell *lc;

	foreach(lc, plans)
	{
		PlannedStmt *plan = lfirst_node(PlannedStmt, lc);

		CommandCounterIncrement();
		PushActiveSnapshot(GetTransactionSnapshot());
		if (plan->utilityStmt != NULL)
			ProcessUtility(plan, sql, false, PROCESS_UTILITY_QUERY, params, NULL, dest, NULL);
		else if (plan->canSetTag)
			rows = dp_run_query(plan, sql, params, dest);
		else
			dp_run_query(plan, sql, params, None_Receiver);
		PopActiveSnapshot();
	}
	CommandCounterIncrement();
	return rows;
}

DestReceiver *
dp_run_result(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	DestReceiver *dest = CreateDestReceiver(DestTuplestore);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	SetTuplestoreDestReceiverParams(dest, result->setResult,
									result->econtext->ecxt_per_query_memory, false, NULL, NULL);
	return dest;
}
