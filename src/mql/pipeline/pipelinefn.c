/*
 * pipelinefn.c
 *		The calls that run pipelines or show their SQL.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

#include "bson/number.h"
#include "mql/pipeline/pipeline.h"

/* So many rows are fetched at once if the caller takes them one by one. */
#define BATCH 50

/* A query of which the caller takes rows one by one */
typedef struct Stream
{
	Portal portal;
	uint64 fetched; /* rows in the batch */
	uint64 next;
	Datum *docs; /* in batch_context */
	MemoryContext batch_context;
} Stream;

static char *pipeline_sql(FunctionCallInfo fcinfo);
static Datum stream_next(FunctionCallInfo fcinfo);
static void stream_fetch(Stream *stream);
static void stream_close(Datum arg);
static void run(FunctionCallInfo fcinfo, const char *sql);

/* The query of the arguments rel, pipeline and let. */
static char *
pipeline_sql(FunctionCallInfo fcinfo)
{
	DpValue stages;
	DpValue let;

	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("pipeline cannot be null")));
	stages = dp_value_of_varlena(DP_GETARG_VARLENA(1));
	if (!PG_ARGISNULL(2))
		let = dp_value_of_document(DP_GETARG_VARLENA(2));
	return dp_pipeline_sql(PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0), &stages,
						   PG_ARGISNULL(2) ? NULL : &let);
}

/*
 * collection_aggregate(rel regclass, pipeline bson_value, let bson) -> setof bson
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
	if (!(result->allowedModes & SFRM_ValuePerCall) ||
		(result->allowedModes & SFRM_Materialize_Preferred))
	{
		InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
		run(fcinfo, pipeline_sql(fcinfo));
		return (Datum) 0;
	}
	return stream_next(fcinfo);
}

/* Puts all rows into the function's result. */
static void
run(FunctionCallInfo fcinfo, const char *sql)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	SPIExecuteOptions options = { 0 };

	SPI_connect();
	options.read_only = true;
	options.dest = CreateDestReceiver(DestTuplestore);
	SetTuplestoreDestReceiverParams(options.dest, result->setResult,
									result->econtext->ecxt_per_query_memory, false, NULL, NULL);
	if (SPI_execute_extended(sql, &options) != SPI_OK_SELECT)
		elog(ERROR, "pipeline is not a SELECT");
	SPI_finish();
}

static Datum
stream_next(FunctionCallInfo fcinfo)
{
	FuncCallContext *call;
	Stream *stream;

	if (SRF_IS_FIRSTCALL())
	{
		ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
		SPIPlanPtr plan;

		call = SRF_FIRSTCALL_INIT();
		stream = MemoryContextAllocZero(call->multi_call_memory_ctx, sizeof(Stream));
		stream->batch_context =
			AllocSetContextCreate(call->multi_call_memory_ctx, "docpatterns batch of a pipeline",
								  ALLOCSET_DEFAULT_SIZES);
		call->user_fctx = stream;
		SPI_connect();
		plan = SPI_prepare(pipeline_sql(fcinfo), 0, NULL);
		if (plan == NULL)
			elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
		stream->portal = SPI_cursor_open(NULL, plan, NULL, NULL, true);
		RegisterExprContextCallback(result->econtext, stream_close, PointerGetDatum(stream));
		SPI_finish();
	}
	call = SRF_PERCALL_SETUP();
	stream = call->user_fctx;
	if (stream->next == stream->fetched)
		stream_fetch(stream);
	if (stream->fetched > 0)
		SRF_RETURN_NEXT(call, stream->docs[stream->next++]);
	if (stream->portal != NULL)
	{
		ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

		UnregisterExprContextCallback(result->econtext, stream_close, PointerGetDatum(stream));
		stream_close(PointerGetDatum(stream));
	}
	SRF_RETURN_DONE(call);
}

static void
stream_fetch(Stream *stream)
{
	MemoryContext old;

	MemoryContextReset(stream->batch_context);
	stream->next = stream->fetched = 0;
	SPI_connect();
	SPI_cursor_fetch(stream->portal, true, BATCH);
	old = MemoryContextSwitchTo(stream->batch_context);
	stream->docs = palloc(sizeof(Datum) * BATCH);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool isnull;
		Datum doc = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);

		stream->docs[i] = datumCopy(doc, false, -1);
	}
	stream->fetched = SPI_processed;
	MemoryContextSwitchTo(old);
	SPI_finish();
}

static void
stream_close(Datum arg)
{
	Stream *stream = (Stream *) DatumGetPointer(arg);

	if (stream->portal != NULL)
		SPI_cursor_close(stream->portal);
	stream->portal = NULL;
}

/*
 * collection_aggregate_sql(rel regclass, pipeline bson_value, let bson) -> text
 *
 * As PostgreSQL shows views: names that the search_path finds are not qualified.
 */
DP_FUNCTION(dp_collection_aggregate_sql);
Datum
dp_collection_aggregate_sql(PG_FUNCTION_ARGS)
{
	char *sql = pipeline_sql(fcinfo);
	RawStmt *raw = linitial_node(RawStmt, pg_parse_query(sql));
	Query *query = parse_analyze_fixedparams(raw, sql, NULL, 0, NULL);

	PG_RETURN_TEXT_P(cstring_to_text(pg_get_querydef(query, true)));
}

/* _int(bigint) -> bson_value: an int32 if it fits. */
DP_FUNCTION(dp_pipeline_int);
Datum
dp_pipeline_int(PG_FUNCTION_ARGS)
{
	int64 n = PG_GETARG_INT64(0);
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
	PG_RETURN_POINTER(dp_value_to_varlena(&v));
}
