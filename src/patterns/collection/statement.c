/*
 * statement.c
 *		The statements of calls for collections.  Programs make the same calls again and again, so
 *		the session keeps the last statements.
 *
 * A statement keeps one plan for all values only while that plan is an INSERT, or a look-up of a
 * few rows by an index: it is good for other values too, and when the table grows.  Other
 * statements are planned for the values of each call, because the plan for a rare value is wrong
 * for a common one.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/plancache.h"

#include "bson/catalog.h"
#include "mql/run.h"
#include "patterns/collection/calls.h"

#define PLANS 64
#define LOOKUP_COST 100.0 /* of the planner: 25 pages in random order */

/* A statement that is kept */
typedef struct KeptPlan
{
	char *sql; /* NULL: free */
	uint32 hash;
	Oid bson;        /* the type has another OID if the extension was created again */
	SPIPlanPtr any;  /* planned once, for any values */
	SPIPlanPtr each; /* planned for the values of each call */
	uint64 used;     /* when: the one that was not used for longest is replaced */
	int running;
} KeptPlan;

static KeptPlan plans[PLANS];
static uint64 uses = 0;

static KeptPlan *plan_find(const char *sql, ParamListInfo params);
static KeptPlan *plan_room(void);
static SPIPlanPtr plan_make(const char *sql, ParamListInfo params, int options);
static CachedPlan *plan_guarded(KeptPlan *kept, ParamListInfo params);
static CachedPlan *plan_choose(KeptPlan *kept, ParamListInfo params);
static CachedPlanSource *plan_source(SPIPlanPtr plan);
static bool is_general(const PlannedStmt *statement);
static void row_startup(DestReceiver *self, int operation, TupleDesc desc);
static bool row_receive(TupleTableSlot *slot, DestReceiver *self);
static void row_end(DestReceiver *self);

/* ---------------------------------------------------------------- parameters */

ParamListInfo
dp_call_params(const DpCall *call)
{
	const DpTypes *t = dp_types();
	const Oid types[DP_CALL_PARAMS] = {
		[DP_PARAM_FILTER] = t->bson,       [DP_PARAM_OPERANDS] = t->bson_value_array,
		[DP_PARAM_SORT] = t->bson,         [DP_PARAM_PROJECTION] = t->bson,
		[DP_PARAM_SKIP] = INT8OID,         [DP_PARAM_TAKE] = INT8OID,
		[DP_PARAM_FIELD] = TEXTOID,        [DP_PARAM_COLLATION] = t->bson,
		[DP_PARAM_TABLE] = OIDOID,         [DP_PARAM_TID] = TIDOID,
		[DP_PARAM_UPDATE] = t->bson_value, [DP_PARAM_FILTERS] = t->bson_value,
		[DP_PARAM_TICKET] = INT8OID,       [DP_PARAM_FINDS] = BOOLOID,
		[DP_PARAM_DOCS] = t->bson_array,
	};
	const void *const documents[DP_CALL_PARAMS] = {
		[DP_PARAM_FILTER] = call->filter,         [DP_PARAM_SORT] = call->sort,
		[DP_PARAM_PROJECTION] = call->projection, [DP_PARAM_FIELD] = call->field,
		[DP_PARAM_COLLATION] = call->collation,   [DP_PARAM_UPDATE] = call->update,
		[DP_PARAM_FILTERS] = call->array_filters,
	};
	ParamListInfo params = makeParamList(DP_CALL_PARAMS);

	for (int i = 0; i < DP_CALL_PARAMS; i++)
	{
		params->params[i].value = PointerGetDatum(documents[i]);
		params->params[i].isnull = documents[i] == NULL;
		params->params[i].pflags = PARAM_FLAG_CONST;
		params->params[i].ptype = types[i];
	}
	dp_call_set(params, DP_PARAM_OPERANDS, dp_call_operands(call));
	return params;
}

void
dp_call_set(ParamListInfo params, DpCallParam n, Datum value)
{
	params->params[n].value = value;
	params->params[n].isnull = false;
}

/* ---------------------------------------------------------------- statements */

void
dp_call_read(const char *sql, ParamListInfo params, DestReceiver *dest)
{
	CachedPlan *plan = plan_guarded(plan_find(sql, params), params);

	(void) dp_run_query(linitial_node(PlannedStmt, plan->stmt_list), sql, params, dest);
	ReleaseCachedPlan(plan, CurrentResourceOwner);
}

uint64
dp_call_write(const char *sql, ParamListInfo params, DestReceiver *dest)
{
	CachedPlan *plan = plan_guarded(plan_find(sql, params), params);
	uint64 rows = dp_run_writes(plan->stmt_list, sql, params, dest);

	ReleaseCachedPlan(plan, CurrentResourceOwner);
	return rows;
}

static KeptPlan *
plan_find(const char *sql, ParamListInfo params)
{
	uint32 hash = hash_bytes((const unsigned char *) sql, strlen(sql));
	KeptPlan *room;
	SPIPlanPtr any;

	/* nothing tells when a rule is dropped that leaves no relation in the statement */
	for (int i = 0; i < PLANS; i++)
		if (plans[i].sql != NULL && plans[i].hash == hash && strcmp(plans[i].sql, sql) == 0 &&
			plans[i].bson == dp_types()->bson && plan_source(plans[i].any)->relationOids != NIL)
		{
			plans[i].used = ++uses;
			return &plans[i];
		}
	any = plan_make(sql, params, CURSOR_OPT_GENERIC_PLAN);
	room = plan_room();
	room->any = any;
	room->each = NULL;
	room->sql = MemoryContextStrdup(TopMemoryContext, sql);
	room->hash = hash;
	room->bson = dp_types()->bson;
	room->used = ++uses;
	return room;
}

/* Room for a plan.  A statement that is being planned keeps its own. */
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
plan_make(const char *sql, ParamListInfo params, int options)
{
	Oid types[DP_CALL_PARAMS];
	SPIPlanPtr plan;

	for (int i = 0; i < DP_CALL_PARAMS; i++)
		types[i] = params->params[i].ptype;
	SPI_connect();
	plan = SPI_prepare_cursor(sql, DP_CALL_PARAMS, types, options);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare_cursor: %s", SPI_result_code_string(SPI_result));
	SPI_keepplan(plan);
	SPI_finish();
	return plan;
}

/* Planning can run functions that make other calls. */
static CachedPlan *
plan_guarded(KeptPlan *kept, ParamListInfo params)
{
	CachedPlan *plan;

	kept->running++;
	PG_TRY();
	{
		plan = plan_choose(kept, params);
	}
	PG_FINALLY();
	{
		kept->running--;
	}
	PG_END_TRY();
	return plan;
}

/* The plan for any values if it is general, else one for these values. */
static CachedPlan *
plan_choose(KeptPlan *kept, ParamListInfo params)
{
	CachedPlan *plan = GetCachedPlan(plan_source(kept->any), NULL, CurrentResourceOwner, NULL);

	if (plan->stmt_list == NIL || is_general(linitial_node(PlannedStmt, plan->stmt_list)))
		return plan;
	ReleaseCachedPlan(plan, CurrentResourceOwner);
	if (kept->each == NULL)
		kept->each = plan_make(kept->sql, params, CURSOR_OPT_CUSTOM_PLAN | CURSOR_OPT_PARALLEL_OK);
	return GetCachedPlan(plan_source(kept->each), params, CurrentResourceOwner, NULL);
}

static CachedPlanSource *
plan_source(SPIPlanPtr plan)
{
	return linitial(SPI_plan_get_plan_sources(plan));
}

/* Whether a plan is good for any values: a look-up, or an INSERT of documents. */
static bool
is_general(const PlannedStmt *statement)
{
	Plan *scan = statement->planTree;

	/* Citus plans an INSERT .. SELECT with parameters only for their values */
	if (statement->commandType == CMD_INSERT)
		return IsA(scan, ModifyTable);
	while (scan != NULL && (IsA(scan, Limit) || IsA(scan, Sort) || IsA(scan, Agg) ||
							IsA(scan, LockRows) || IsA(scan, ModifyTable)))
		scan = outerPlan(scan);
	return scan != NULL && statement->planTree->total_cost < LOOKUP_COST &&
		   (IsA(scan, IndexScan) || IsA(scan, BitmapHeapScan) || IsA(scan, TidScan));
}

/* ---------------------------------------------------------------- the first row */

void
dp_first_row_init(DpFirstRow *row)
{
	row->methods = (DestReceiver){ row_receive, row_startup, row_end, row_end, DestNone };
	row->context = CurrentMemoryContext;
	row->received = false;
	for (int i = 0; i < lengthof(row->nulls); i++)
		row->nulls[i] = true;
}

static void
row_startup(DestReceiver *self, int operation, TupleDesc desc)
{
}

static bool
row_receive(TupleTableSlot *slot, DestReceiver *self)
{
	DpFirstRow *row = (DpFirstRow *) self;
	TupleDesc desc = slot->tts_tupleDescriptor;
	MemoryContext old;

	if (row->received)
		return true;
	row->received = true;
	old = MemoryContextSwitchTo(row->context);
	for (int i = 0; i < Min(desc->natts, lengthof(row->values)); i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		Datum value = slot_getattr(slot, i + 1, &row->nulls[i]);

		if (!row->nulls[i])
			row->values[i] = att->attlen == -1 ? PointerGetDatum(PG_DETOAST_DATUM_COPY(value))
											   : datumCopy(value, att->attbyval, att->attlen);
	}
	MemoryContextSwitchTo(old);
	return true;
}

static void
row_end(DestReceiver *self)
{
}
