/*
 * pipelinefn.c
 *		The calls that run pipelines or show their SQL.
 */
#include "postgres.h"

#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

#include "bson/cast.h"
#include "mql/pipeline/pipeline.h"
#include "mql/run.h"

/* A running query; it receives one row at a time, or puts all into a tuplestore */
typedef struct Run
{
	DestReceiver receiver;
	QueryDesc *query;
	MemoryContext row; /* of the row */
	Datum doc;         /* the row, if received */
	bool received;
} Run;

static DpPipelineSql *pipeline_sql(FunctionCallInfo fcinfo);
static void run_all(FunctionCallInfo fcinfo, DpPipelineSql *sql);
static Datum run_next(FunctionCallInfo fcinfo);
static void run_writes(DpPipelineSql *sql);
static List *plan(const char *sql, DpPipelineSql *pipeline, int options);
static void check_replaced(List *queries, void *arg);
static void run_close(Datum arg);
static bool receive_row(TupleTableSlot *slot, DestReceiver *self);
static void receive_nothing(DestReceiver *self);
static void receive_start(DestReceiver *self, int operation, TupleDesc desc);
static bool reads_relation(Node *node, void *relid);

/* The arguments rel, pipeline, let and collation in SQL. */
static DpPipelineSql *
pipeline_sql(FunctionCallInfo fcinfo)
{
	DpValue stages;
	DpValue let;
	DpValue collation;

	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("pipeline cannot be null")));
	stages = dp_value_of_varlena(DP_GETARG_VARLENA(1));
	if (!PG_ARGISNULL(2))
		let = dp_value_of_document(DP_GETARG_VARLENA(2));
	if (!PG_ARGISNULL(3))
		collation = dp_value_of_document(DP_GETARG_VARLENA(3));
	return dp_pipeline_sql(PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0), &stages,
						   PG_ARGISNULL(2) ? NULL : &let, PG_ARGISNULL(3) ? NULL : &collation);
}

/*
 * collection_aggregate(rel regclass, pipeline bson_value, let bson, collation bson) -> setof bson
 *
 * In a SELECT list the rows are computed as they are taken, in FROM all before the first.
 */
DP_FUNCTION(dp_collection_aggregate);
Datum
dp_collection_aggregate(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	if (result == NULL || !IsA(result, ReturnSetInfo))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("set-valued function called in context that cannot accept a set")));
	if ((result->allowedModes & SFRM_ValuePerCall) &&
		!(result->allowedModes & SFRM_Materialize_Preferred))
		return run_next(fcinfo);
	run_all(fcinfo, pipeline_sql(fcinfo));
	return (Datum) 0;
}

/* Puts all rows into the function's result. */
static void
run_all(FunctionCallInfo fcinfo, DpPipelineSql *sql)
{
	DestReceiver *dest = dp_run_result(fcinfo);

	if (sql->writes)
	{
		run_writes(sql);
		return;
	}
	dp_run_query(linitial(plan(linitial(sql->statements), sql, CURSOR_OPT_PARALLEL_OK)),
				 linitial(sql->statements), NULL, dest);
	dest->rDestroy(dest);
}

/* Returns the next row. */
static Datum
run_next(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	FuncCallContext *call;
	Run *run;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext old;

		call = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(call->multi_call_memory_ctx);
		call->user_fctx = run = palloc0(sizeof(Run));
		run->receiver.mydest = DestNone;
		run->receiver.rStartup = receive_start;
		run->receiver.receiveSlot = receive_row;
		run->receiver.rShutdown = run->receiver.rDestroy = receive_nothing;
		run->row = AllocSetContextCreate(CurrentMemoryContext, "docpatterns row of a pipeline",
										 ALLOCSET_DEFAULT_SIZES);
		{
			DpPipelineSql *sql = pipeline_sql(fcinfo);

			if (sql->writes)
				run_writes(sql);
			else
			{
				run->query = dp_run_start(linitial(plan(linitial(sql->statements), sql, 0)),
										  linitial(sql->statements), NULL, &run->receiver);
				RegisterExprContextCallback(result->econtext, run_close, PointerGetDatum(run));
			}
		}
		MemoryContextSwitchTo(old);
	}
	call = SRF_PERCALL_SETUP();
	run = call->user_fctx;
	run->received = false;
	if (run->query != NULL)
	{
		PushActiveSnapshot(run->query->snapshot);
		dp_executor_run(run->query, 1, false);
		PopActiveSnapshot();
		if (run->received)
			SRF_RETURN_NEXT(call, run->doc);
		UnregisterExprContextCallback(result->econtext, run_close, PointerGetDatum(run));
		run_close(PointerGetDatum(run));
	}
	SRF_RETURN_DONE(call);
}

/* The caller has all rows, or wants no more. */
static void
run_close(Datum arg)
{
	Run *run = (Run *) DatumGetPointer(arg);
	QueryDesc *query = run->query;

	run->query = NULL;
	if (query == NULL)
		return;
	PushActiveSnapshot(query->snapshot);
	dp_run_end(query);
	PopActiveSnapshot();
}

static void
run_writes(DpPipelineSql *sql)
{
	ListCell *lc;

	foreach(lc, sql->statements)
		dp_run_writes(plan(lfirst(lc), sql, 0), lfirst(lc), NULL, None_Receiver);
}

/* ---------------------------------------------------------------- queries */

static List *
plan(const char *sql, DpPipelineSql *pipeline, int options)
{
	return dp_run_plan(sql, NULL, options, check_replaced, pipeline);
}

/* Refuses to replace the documents that a statement reads. */
static void
check_replaced(List *queries, void *arg)
{
	DpPipelineSql *pipeline = arg;

	if (OidIsValid(pipeline->replaced) && reads_relation((Node *) queries, &pipeline->replaced))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("pipeline reads \"%s\", whose documents $out replaces",
							   get_rel_name(pipeline->replaced)),
						errhint("Use $merge, or $out to another collection.")));
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	Run *run = (Run *) self;
	MemoryContext old;
	bool isnull;
	Datum doc = slot_getattr(slot, 1, &isnull);

	MemoryContextReset(run->row);
	old = MemoryContextSwitchTo(run->row);
	run->doc = datumCopy(doc, false, -1);
	run->received = true;
	MemoryContextSwitchTo(old);
	return true;
}

static void
receive_start(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
receive_nothing(DestReceiver *self)
{
}

/* Whether a query, after views were replaced, reads the relation: as a part of another one, too. */
static bool
reads_relation(Node *node, void *relid)
{
	Query *query = (Query *) node;
	ListCell *lc;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, reads_relation, relid);
	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		if (rte->rtekind == RTE_RELATION &&
			foreach_current_index(lc) + 1 != query->resultRelation &&
			list_member_oid(find_all_inheritors(rte->relid, NoLock, NULL), *(Oid *) relid))
			return true;
	}
	return query_tree_walker(query, reads_relation, relid, 0);
}

/*
 * _pipeline_statements(rel regclass, pipeline bson_value, let bson, collation bson) -> text[]
 *
 * As PostgreSQL shows views: names that the search_path finds are not qualified.
 */
DP_FUNCTION(dp_pipeline_statements);
Datum
dp_pipeline_statements(PG_FUNCTION_ARGS)
{
	DpPipelineSql *sql = pipeline_sql(fcinfo);
	Datum *texts = palloc(sizeof(Datum) * list_length(sql->statements));
	ListCell *lc;

	foreach(lc, sql->statements)
	{
		char *text = lfirst(lc);
		RawStmt *raw = linitial_node(RawStmt, pg_parse_query(text));

		/* what does not exist yet cannot be analyzed */
		if (!sql->creates && !IsA(raw->stmt, LockStmt))
			text = pg_get_querydef(parse_analyze_fixedparams(raw, text, NULL, 0, NULL), true);
		texts[foreach_current_index(lc)] = CStringGetTextDatum(text);
	}
	PG_RETURN_ARRAYTYPE_P(construct_array(texts, list_length(sql->statements), TEXTOID, -1, false,
										  TYPALIGN_INT));
}

static Datum
int_value(int64 n)
{
	uint8 bytes[sizeof(int64)];
	DpValue v = { bytes, sizeof(int64), DP_TYPE_INT64 };

	if (n >= PG_INT32_MIN && n <= PG_INT32_MAX)
	{
		v.type = DP_TYPE_INT32;
		v.len = sizeof(int32);
		dp_put_int32(bytes, (int32) n);
	}
	else
		dp_put_int64(bytes, n);
	return PointerGetDatum(dp_value_to_varlena(&v));
}

/* _int(bigint) -> bson_value: an int32 if it fits. */
DP_FUNCTION(dp_pipeline_int);
Datum
dp_pipeline_int(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(int_value(PG_GETARG_INT64(0)));
}

/* _sum(bigint) -> bson_value: the same, 0 for NULL. */
DP_FUNCTION(dp_pipeline_sum);
Datum
dp_pipeline_sum(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(int_value(PG_ARGISNULL(0) ? 0 : PG_GETARG_INT64(0)));
}

/* _sum(numeric) -> bson_value: a sum of int64s, which becomes a double if it is none; 0 for NULL.
 */
DP_FUNCTION(dp_pipeline_sum_long);
Datum
dp_pipeline_sum_long(PG_FUNCTION_ARGS)
{
	Datum sum;
	Datum fits;

	if (PG_ARGISNULL(0))
		PG_RETURN_DATUM(int_value(0));
	sum = PG_GETARG_DATUM(0);
	fits = DirectFunctionCall2(numeric_ge, sum,
							   DirectFunctionCall1(int8_numeric, Int64GetDatum(PG_INT64_MIN)));
	if (DatumGetBool(fits))
		fits = DirectFunctionCall2(numeric_le, sum,
								   DirectFunctionCall1(int8_numeric, Int64GetDatum(PG_INT64_MAX)));
	if (DatumGetBool(fits))
		PG_RETURN_POINTER(dp_datum_to_value(DirectFunctionCall1(numeric_int8, sum), INT8OID));
	PG_RETURN_POINTER(dp_datum_to_value(DirectFunctionCall1(numeric_float8, sum), FLOAT8OID));
}
