/*
 * read.c
 *		The calls that read collections, and the statements of those that change them.  Programs
 *		make the same calls again and again, so the session keeps the last statements.
 *
 * A statement keeps one plan for all values only while that plan is a look-up of a few rows by an
 * index: it is good for other values too, and when the table grows.  Other statements are planned
 * for the values of each call, because the plan for a rare value is wrong for a common one.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/snapmgr.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "mql/collection_calls.h"
#include "mql/run.h"

#define PLANS 64
#define PARAMETERS 8
#define LOOKUP_COST 100.0 /* of the planner: 25 pages in random order */

/* A statement that is kept.  Types have other OIDs if the extension was created again. */
typedef struct KeptPlan
{
	char *sql; /* NULL: free */
	uint32 hash;
	Oid types[PARAMETERS];
	SPIPlanPtr any;  /* planned once, for any values */
	SPIPlanPtr each; /* planned for the values of each call */
	uint64 used;     /* when: the one that was not used for longest is replaced */
	int running;
} KeptPlan;

/* Receives a number */
typedef struct NumberReceiver
{
	DestReceiver methods;
	int64 number;
} NumberReceiver;

static KeptPlan plans[PLANS];
static uint64 uses = 0;

static void
run_call(const DpCall *call, const char *sql, int64 skip, int64 take, DestReceiver *dest);
static KeptPlan *plan_find(const char *sql, const Oid *types);
static KeptPlan *plan_room(void);
static SPIPlanPtr plan_make(const char *sql, const Oid *types, int options);
static SPIPlanPtr plan_choose(KeptPlan *kept);
static CachedPlan *plan_get(SPIPlanPtr plan, ParamListInfo params);
static uint64 run_arguments(FunctionCallInfo fcinfo, const Oid *types, int expected);
static ParamListInfo parameters(const Oid *types);
static bool is_lookup(Plan *top);
static DestReceiver *row_receiver(FunctionCallInfo fcinfo);
static void number_startup(DestReceiver *self, int operation, TupleDesc desc);
static bool number_receive(TupleTableSlot *slot, DestReceiver *self);
static void number_end(DestReceiver *self);

/*
 * collection_find(rel regclass, filter bson, projection bson, sort bson, skip bigint, take bigint)
 * -> setof bson
 */
DP_FUNCTION(dp_collection_find);
Datum
dp_collection_find(PG_FUNCTION_ARGS)
{
	int64 skip = PG_ARGISNULL(4) ? 0 : PG_GETARG_INT64(4);
	int64 take = PG_ARGISNULL(5) ? 0 : PG_GETARG_INT64(5);
	DpCall call;
	DpBuilder b;
	StringInfoData sql;

	if (skip < 0 || take < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("skip and take cannot be negative")));
	dp_call_begin(&call, fcinfo, 1);
	call.sort = PG_ARGISNULL(3) ? NULL : DP_GETARG_VARLENA(3);
	if (call.sort != NULL && DP_DOC_SIZE(call.sort) == DP_DOCUMENT_MIN_SIZE)
		call.sort = NULL;
	call.collation = PG_ARGISNULL(6) ? NULL : DP_GETARG_VARLENA(6);
	if (PG_ARGISNULL(2))
	{
		dp_builder_init(&b, DP_DOCUMENT_MIN_SIZE);
		dp_builder_begin_document(&b);
		dp_builder_end(&b);
		call.projection = dp_builder_finish_bson(&b);
	}
	else
		call.projection = DP_GETARG_VARLENA(2);
	dp_call_prepare(&call);

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	if (PG_ARGISNULL(2))
		appendStringInfoString(&sql, call.sql[DP_CALL_DOC]);
	else
	{
		if (call.collation == NULL)
			dp_sql_own_schema(&sql);
		appendStringInfo(&sql,
						 call.collation == NULL ? "bson_project(%s, $4, $1)"
												: "docpatterns._collated_project(%s, $4, $1, $8)",
						 call.sql[DP_CALL_DOC]);
	}
	appendStringInfo(&sql, " FROM %s WHERE %s", call.sql[DP_CALL_SOURCE],
					 call.sql[DP_CALL_CONDITIONS]);
	if (call.sql[DP_CALL_ORDERING] != NULL)
		appendStringInfo(&sql, " ORDER BY %s", call.sql[DP_CALL_ORDERING]);
	if (skip > 0)
		appendStringInfoString(&sql, " OFFSET $5");
	if (!PG_ARGISNULL(5))
		appendStringInfoString(&sql, " LIMIT $6");
	run_call(&call, sql.data, skip, take, row_receiver(fcinfo));
	return (Datum) 0;
}

/* collection_count(rel regclass, filter bson) -> bigint */
DP_FUNCTION(dp_collection_count);
Datum
dp_collection_count(PG_FUNCTION_ARGS)
{
	NumberReceiver receiver = { { number_receive, number_startup, number_end, number_end } };
	DpCall call;

	dp_call_begin(&call, fcinfo, 1);
	call.collation = PG_ARGISNULL(2) ? NULL : DP_GETARG_VARLENA(2);
	dp_call_prepare(&call);
	run_call(&call,
			 psprintf("SELECT pg_catalog.count(*) FROM %s WHERE %s", call.sql[DP_CALL_SOURCE],
					  call.sql[DP_CALL_CONDITIONS]),
			 0, 0, &receiver.methods);
	PG_RETURN_INT64(receiver.number);
}

/* Whether an unquoted path has an empty part, which no field of a document can be reached by. */
static bool
has_empty_part(const text *path)
{
	const char *s = VARDATA_ANY(path);
	Size len = VARSIZE_ANY_EXHDR(path);

	if (len == 0 || memchr(s, '"', len) != NULL)
		return false;
	return s[0] == '.' || s[len - 1] == '.' || memmem(s, len, "..", 2) != NULL;
}

/* collection_distinct(rel regclass, field text, filter bson) -> setof bson_value */
DP_FUNCTION(dp_collection_distinct);
Datum
dp_collection_distinct(PG_FUNCTION_ARGS)
{
	DpCall call;
	StringInfoData sql;

	if (PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("field cannot be null")));
	dp_call_begin(&call, fcinfo, 2);
	call.field = PG_GETARG_TEXT_PP(1);
	if (VARSIZE_ANY_EXHDR(call.field) == 0)
		call.field = cstring_to_text("\"\"");
	call.collation = PG_ARGISNULL(3) ? NULL : DP_GETARG_VARLENA(3);
	dp_call_prepare(&call);
	if (has_empty_part(call.field))
	{
		(void) row_receiver(fcinfo);
		return (Datum) 0;
	}
	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT DISTINCT %sv FROM %s, ",
					 call.collation == NULL ? "" : "ON (docpatterns._collated_key(v, $8)) ",
					 call.sql[DP_CALL_SOURCE]);
	dp_sql_own_schema(&sql);
	appendStringInfo(&sql, "bson_values(%s, $7) AS v WHERE %s ORDER BY %sv", call.sql[DP_CALL_DOC],
					 call.sql[DP_CALL_CONDITIONS],
					 call.collation == NULL ? "" : "docpatterns._collated_key(v, $8), ");
	run_call(&call, sql.data, 0, 0, row_receiver(fcinfo));
	return (Datum) 0;
}

/* ---------------------------------------------------------------- statements */

/* Runs the statement of a call. */
static void
run_call(const DpCall *call, const char *sql, int64 skip, int64 take, DestReceiver *dest)
{
	Oid bson = dp_types()->bson;
	const Oid types[PARAMETERS] = {
		bson, dp_types()->bson_value_array, bson, bson, INT8OID, INT8OID, TEXTOID, bson
	};
	const Datum values[PARAMETERS] = {
		PointerGetDatum(call->filter), dp_call_operands(call),
		PointerGetDatum(call->sort),   PointerGetDatum(call->projection),
		Int64GetDatum(skip),           Int64GetDatum(take),
		PointerGetDatum(call->field),  PointerGetDatum(call->collation)
	};
	ParamListInfo params = parameters(types);
	KeptPlan *kept = plan_find(sql, types);
	CachedPlan *plan;

	for (int i = 0; i < PARAMETERS; i++)
	{
		params->params[i].value = values[i];
		params->params[i].isnull = values[i] == (Datum) 0 && types[i] != INT8OID;
	}
	/* planning can run functions that make other calls */
	kept->running++;
	PG_TRY();
	{
		plan = plan_get(plan_choose(kept), params);
	}
	PG_FINALLY();
	{
		kept->running--;
	}
	PG_END_TRY();
	dp_run_query(linitial_node(PlannedStmt, plan->stmt_list), sql, params, dest);
	ReleaseCachedPlan(plan, CurrentResourceOwner);
}

/* The plan of a statement. */
static KeptPlan *
plan_find(const char *sql, const Oid *types)
{
	uint32 hash = hash_bytes((const unsigned char *) sql, strlen(sql));
	KeptPlan *room = &plans[0];
	SPIPlanPtr any;

	for (int i = 0; i < PLANS; i++)
		if (plans[i].sql != NULL && plans[i].hash == hash && strcmp(plans[i].sql, sql) == 0 &&
			memcmp(plans[i].types, types, sizeof(plans[i].types)) == 0)
		{
			plans[i].used = ++uses;
			return &plans[i];
		}
	any = plan_make(sql, types, CURSOR_OPT_GENERIC_PLAN);
	room = plan_room();
	room->any = any;
	room->each = NULL;
	room->sql = MemoryContextStrdup(TopMemoryContext, sql);
	room->hash = hash;
	memcpy(room->types, types, sizeof(room->types));
	room->used = ++uses;
	return room;
}

/* Room for a plan.  A statement that is running keeps its plan. */
static KeptPlan *
plan_room(void)
{
	KeptPlan *room = NULL;

	for (int i = 0; i < PLANS; i++)
		if (plans[i].running == 0 && (room == NULL || plans[i].used < room->used))
			room = &plans[i];
	if (room == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_STATEMENT_TOO_COMPLEX), errmsg("too many calls inside calls")));
	if (room->sql != NULL)
	{
		pfree(room->sql);
		room->sql = NULL;
		SPI_freeplan(room->any);
		if (room->each != NULL)
			SPI_freeplan(room->each);
	}
	return room;
}

static SPIPlanPtr
plan_make(const char *sql, const Oid *types, int options)
{
	SPIPlanPtr plan;

	SPI_connect();
	plan = SPI_prepare_cursor(sql, PARAMETERS, (Oid *) types, options);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare_cursor: %s", SPI_result_code_string(SPI_result));
	if (list_length(SPI_plan_get_plan_sources(plan)) != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("statement must be a SELECT, UPDATE or DELETE")));
	SPI_keepplan(plan);
	SPI_finish();
	return plan;
}

/* The plan for any values if it is a look-up, else the one for the values of each call. */
static SPIPlanPtr
plan_choose(KeptPlan *kept)
{
	CachedPlan *plan = plan_get(kept->any, NULL);
	bool lookup = is_lookup(linitial_node(PlannedStmt, plan->stmt_list)->planTree);

	ReleaseCachedPlan(plan, CurrentResourceOwner);
	if (!lookup && kept->each == NULL)
		kept->each =
			plan_make(kept->sql, kept->types, CURSOR_OPT_CUSTOM_PLAN | CURSOR_OPT_PARALLEL_OK);
	return lookup ? kept->any : kept->each;
}

static CachedPlan *
plan_get(SPIPlanPtr plan, ParamListInfo params)
{
	return GetCachedPlan(linitial(SPI_plan_get_plan_sources(plan)), params, CurrentResourceOwner,
						 NULL);
}

static bool
is_lookup(Plan *top)
{
	Plan *scan = top;

	while (scan != NULL && (IsA(scan, Limit) || IsA(scan, Sort) || IsA(scan, Agg) ||
							IsA(scan, LockRows) || IsA(scan, ModifyTable)))
		scan = outerPlan(scan);
	return scan != NULL && top->total_cost < LOOKUP_COST &&
		   (IsA(scan, IndexScan) || IsA(scan, BitmapHeapScan) || IsA(scan, TidScan));
}

/* ---------------------------------------------------------------- statements that change rows */

/*
 * _collection_locate(statement text, filter bson, operands bson_value[], sort bson) -> (row_table
 * oid, row_place tid, row_condition text): runs a statement that finds and locks a row
 */
DP_FUNCTION(dp_collection_locate);
Datum
dp_collection_locate(PG_FUNCTION_ARGS)
{
	const DpTypes *t = dp_types();
	const Oid types[PARAMETERS] = {
		t->bson, t->bson_value_array, t->bson, t->bson, INT8OID, INT8OID, TEXTOID, t->bson
	};
	static const Oid columns[] = { OIDOID, TIDOID, TEXTOID };
	Datum values[lengthof(columns)] = { 0 };
	bool nulls[lengthof(columns)] = { true, true, true };
	TupleDesc desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	SPI_connect();
	if (run_arguments(fcinfo, types, SPI_OK_SELECT) > 0)
		for (int i = 0; i < lengthof(columns); i++)
		{
			if (SPI_tuptable->tupdesc->natts <= i ||
				TupleDescAttr(SPI_tuptable->tupdesc, i)->atttypid != columns[i])
				ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
								errmsg("statement must return a table, a place and a condition")));
			values[i] =
				SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, i + 1, &nulls[i]);
			if (!nulls[i])
				values[i] = SPI_datumTransfer(values[i], columns[i] == OIDOID,
											  columns[i] == TIDOID ? sizeof(ItemPointerData) : -1);
		}
	SPI_finish();
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * _collection_write(statement text, filter bson, operands bson_value[], row_table oid, row_place
 * tid, update bson_value, array_filters bson_value, ticket bigint, collation bson) -> bigint: runs
 * a statement that updates or deletes rows, and returns how many
 */
DP_FUNCTION(dp_collection_write);
Datum
dp_collection_write(PG_FUNCTION_ARGS)
{
	const DpTypes *t = dp_types();
	const Oid types[PARAMETERS] = { t->bson,       t->bson_value_array, OIDOID,  TIDOID,
									t->bson_value, t->bson_value,       INT8OID, t->bson };
	uint64 rows;

	SPI_connect();
	rows = run_arguments(fcinfo, types, 0);
	SPI_finish();
	PG_RETURN_INT64(rows);
}

/*
 * Runs the statement that is the first argument; the others are its parameters.  Users can call
 * this with any statement.  expected: 0 for an update or deletion.
 */
static uint64
run_arguments(FunctionCallInfo fcinfo, const Oid *types, int expected)
{
	char *sql = PG_ARGISNULL(0) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(0));
	SPIExecuteOptions options = { .params = parameters(types) };
	KeptPlan *kept = plan_find(sql, types);
	int result;

	for (int i = 0; i < PARAMETERS; i++)
	{
		options.params->params[i].isnull = i + 1 >= PG_NARGS() || PG_ARGISNULL(i + 1);
		if (!options.params->params[i].isnull)
			options.params->params[i].value = PG_GETARG_DATUM(i + 1);
	}
	kept->running++;
	PG_TRY();
	{
		result = SPI_execute_plan_extended(plan_choose(kept), &options);
	}
	PG_FINALLY();
	{
		kept->running--;
	}
	PG_END_TRY();
	if (expected != 0 ? result != expected : result != SPI_OK_UPDATE && result != SPI_OK_DELETE)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("statement must be a SELECT, UPDATE or DELETE")));
	return SPI_processed;
}

/* Parameters of these types, without values. */
static ParamListInfo
parameters(const Oid *types)
{
	ParamListInfo params = makeParamList(PARAMETERS);

	for (int i = 0; i < PARAMETERS; i++)
	{
		params->params[i].value = (Datum) 0;
		params->params[i].isnull = true;
		params->params[i].pflags = PARAM_FLAG_CONST;
		params->params[i].ptype = types[i];
	}
	return params;
}

/* ---------------------------------------------------------------- results */

/* Puts rows into the function's result. */
static DestReceiver *
row_receiver(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	DestReceiver *dest = CreateDestReceiver(DestTuplestore);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	SetTuplestoreDestReceiverParams(dest, result->setResult,
									result->econtext->ecxt_per_query_memory, false, NULL, NULL);
	return dest;
}

static void
number_startup(DestReceiver *self, int operation, TupleDesc desc)
{
}

static bool
number_receive(TupleTableSlot *slot, DestReceiver *self)
{
	bool isnull;

	((NumberReceiver *) self)->number = DatumGetInt64(slot_getattr(slot, 1, &isnull));
	return true;
}

static void
number_end(DestReceiver *self)
{
}
