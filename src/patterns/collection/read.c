/*
 * read.c
 *		Runs the statements of calls that read collections.  Programs make the same calls again and
 *		again, so the session keeps the last statements.
 *
 * A statement keeps one plan for all values only while that plan is a look-up of a few rows by an
 * index: it is good for other values too, and when the table grows.  Other statements are planned
 * for the values of each call, because the plan for a rare value is wrong for a common one.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "dp.h"

#define PLANS 64
#define PARAMETERS 6
#define LOOKUP_COST 100.0 /* of the planner: 25 pages in random order */

/* A statement that is kept.  Types have other OIDs if the extension was created again. */
typedef struct ReadPlan
{
	char *sql; /* NULL: free */
	uint32 hash;
	Oid type;        /* bson */
	SPIPlanPtr any;  /* planned once, for any values */
	SPIPlanPtr each; /* planned for the values of each call */
	uint64 used;     /* when: the one that was not used for longest is replaced */
	int running;
} ReadPlan;

static ReadPlan plans[PLANS];
static uint64 uses = 0;

static ReadPlan *plan_find(const char *sql, uint32 hash, Oid type);
static ReadPlan *plan_room(void);
static bool plan_is_lookup(SPIPlanPtr plan);
static void plan_run(SPIPlanPtr plan, FunctionCallInfo fcinfo, const Oid *types);
static void not_select(void) pg_attribute_noreturn();

/*
 * _collection_read(statement text, filter bson, operands bson_value[], sort bson, projection bson,
 * skip bigint, take bigint) -> setof bson
 *
 * The statement's parameters are the other arguments.  Users can call this with any statement.
 */
DP_FUNCTION(dp_collection_read);
Datum
dp_collection_read(PG_FUNCTION_ARGS)
{
	char *sql = PG_ARGISNULL(0) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(0));
	uint32 hash = hash_bytes((const unsigned char *) sql, strlen(sql));
	Oid bson = get_fn_expr_argtype(fcinfo->flinfo, 1);
	Oid types[PARAMETERS] = { bson,   get_fn_expr_argtype(fcinfo->flinfo, 2), bson, bson, INT8OID,
							  INT8OID };
	ReadPlan *p;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	SPI_connect();
	p = plan_find(sql, hash, bson);
	if (p == NULL)
		p = plan_room();
	if (p == NULL)
		plan_run(SPI_prepare_cursor(sql, PARAMETERS, types, CURSOR_OPT_CUSTOM_PLAN), fcinfo, types);
	else
	{
		if (p->sql == NULL)
		{
			SPIPlanPtr any = SPI_prepare_cursor(sql, PARAMETERS, types, CURSOR_OPT_GENERIC_PLAN);

			p->sql = MemoryContextStrdup(TopMemoryContext, sql);
			p->hash = hash;
			p->type = bson;
			p->any = any;
			p->each = NULL;
			SPI_keepplan(any);
		}
		p->used = ++uses;
		p->running++;
		PG_TRY();
		{
			SPIPlanPtr plan = p->any;

			if (!plan_is_lookup(plan))
			{
				if (p->each == NULL)
				{
					p->each = SPI_prepare_cursor(sql, PARAMETERS, types, CURSOR_OPT_CUSTOM_PLAN);
					SPI_keepplan(p->each);
				}
				plan = p->each;
			}
			plan_run(plan, fcinfo, types);
		}
		PG_FINALLY();
		{
			p->running--;
		}
		PG_END_TRY();
	}
	SPI_finish();
	return (Datum) 0;
}

/* The plan of a statement, or NULL. */
static ReadPlan *
plan_find(const char *sql, uint32 hash, Oid type)
{
	for (int i = 0; i < PLANS; i++)
		if (plans[i].sql != NULL && plans[i].hash == hash && plans[i].type == type &&
			strcmp(plans[i].sql, sql) == 0)
			return &plans[i];
	return NULL;
}

/* Room for a plan; NULL if all plans are running. */
static ReadPlan *
plan_room(void)
{
	ReadPlan *room = NULL;

	for (int i = 0; i < PLANS; i++)
		if (plans[i].running == 0 && (room == NULL || plans[i].used < room->used))
			room = &plans[i];
	if (room != NULL && room->sql != NULL)
	{
		pfree(room->sql);
		room->sql = NULL;
		SPI_freeplan(room->any);
		if (room->each != NULL)
			SPI_freeplan(room->each);
	}
	return room;
}

/* True if the plan for any values is a look-up; makes it if necessary. */
static bool
plan_is_lookup(SPIPlanPtr plan)
{
	CachedPlan *made = SPI_plan_get_cached_plan(plan);
	Plan *top;
	Plan *scan;
	bool lookup;

	if (made == NULL)
		not_select(); /* no statement, or several */
	top = linitial_node(PlannedStmt, made->stmt_list)->planTree;
	scan = top;
	while (scan != NULL && (IsA(scan, Limit) || IsA(scan, Sort)))
		scan = outerPlan(scan);
	lookup = scan != NULL && top->total_cost < LOOKUP_COST &&
			 (IsA(scan, IndexScan) || IsA(scan, BitmapHeapScan));
	ReleaseCachedPlan(made, CurrentResourceOwner);
	return lookup;
}

/* Puts the rows into the function's result. */
static void
plan_run(SPIPlanPtr plan, FunctionCallInfo fcinfo, const Oid *types)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ParamListInfo params = makeParamList(PARAMETERS);
	SPIExecuteOptions options = { 0 };

	for (int i = 0; i < PARAMETERS; i++)
	{
		params->params[i].value = fcinfo->args[i + 1].value;
		params->params[i].isnull = fcinfo->args[i + 1].isnull;
		params->params[i].pflags = PARAM_FLAG_CONST;
		params->params[i].ptype = types[i];
	}
	options.params = params;
	options.read_only = true;
	options.dest = CreateDestReceiver(DestTuplestore);
	SetTuplestoreDestReceiverParams(options.dest, result->setResult,
									result->econtext->ecxt_per_query_memory, false, result->setDesc,
									"statement must return one column of type bson");
	if (SPI_execute_plan_extended(plan, &options) != SPI_OK_SELECT)
		not_select();
}

static void
not_select(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("statement must be a SELECT")));
}
