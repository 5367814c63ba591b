/*
 * route.c
 *		Calls of the extension's functions for distributed tables.
 *
 * A function that reads or writes rows without a statement must run on the server that has them.  A
 * query with one shard is sent there as a whole, so a call becomes
 *
 *		SELECT f(docpatterns._shard_of(b), $2, ..) FROM books AS b WHERE _id = $1
 *
 * The aggregate _shard_of() returns the relation of its argument's type: the shard, also if it has
 * no such row.  The call belongs to the transaction of the caller: Citus commits a query that only
 * reads by itself, unless it could lock rows, so that of a volatile function has such a part.
 *
 * Citus takes as long to plan such a query as to run it, so the session keeps the plans of the last
 * calls by key.  PostgreSQL makes them again after changes of the schema, and of shards.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "common/int.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/path.h"
#include "kit/key.h"
#include "kit/shard.h"
#include "kit/sql/text.h"

/* A call as a query: its parameters, and its text before and after the name of the shard. */
typedef struct Call
{
	FunctionCallInfo fcinfo;
	bool rows; /* the result is a row, or a set */
	int n;
	Oid types[FUNC_MAX_ARGS + INDEX_MAX_KEYS];
	Datum values[FUNC_MAX_ARGS + INDEX_MAX_KEYS];
	char nulls[FUNC_MAX_ARGS + INDEX_MAX_KEYS];
	StringInfoData arguments; /* those after the first one */
} Call;

#define KEPT_PLANS 64

/* The plan of a query, for parameters of these types */
typedef struct KeptPlan
{
	SPIPlanPtr plan; /* NULL: free */
	uint32 hash;
	char *sql;
	int n;
	Oid *types;
	uint64 used; /* when: the one that was not used for longest is replaced */
	int running;
} KeptPlan;

static KeptPlan kept_plans[KEPT_PLANS];
static uint64 uses = 0;

static void call_argument(Call *call, int argno);
static int call_parameter(Call *call, Oid type, Datum value, bool isnull);
static Datum
call_run(Call *call, Oid relid, const char *condition, bool keep, MemoryContext caller);
static int run_kept(Call *call, const char *sql);
static pg_noinline KeptPlan *kept_plan(Call *call, const char *sql);
static Datum call_result(Call *call, MemoryContext caller);
static void refuse_whole(FunctionCallInfo fcinfo, Oid relid) pg_attribute_noreturn();

/* _shard_see(state, row): the transition function of _shard_of(). */
DP_FUNCTION(dp_shard_see);
Datum
dp_shard_see(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(true);
}

/* _shard_seen(state, row) -> the relation whose rows are of that type, or NULL. */
DP_FUNCTION(dp_shard_seen);
Datum
dp_shard_seen(PG_FUNCTION_ARGS)
{
	Oid relid = get_typ_typrelid(get_fn_expr_argtype(fcinfo->flinfo, 1));

	if (!OidIsValid(relid))
		PG_RETURN_NULL();
	PG_RETURN_OID(relid);
}

bool
dp_route(FunctionCallInfo fcinfo, DpRoute route, int key_argument, Datum *result)
{
	MemoryContext caller = CurrentMemoryContext;
	Oid relid = PG_NARGS() == 0 || PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
	Call call = { .fcinfo = fcinfo };
	List *parts = NIL;
	ListCell *lc;
	char *condition = "true";
	int64 sum = 0;
	Oid shard;
	bool writes;
	int i;

	if (!OidIsValid(relid) || !dp_is_distributed(relid))
		return false;
	/* also because a query in a shard cannot start another one */
	shard = dp_shard_here(relid);
	if (OidIsValid(shard))
	{
		fcinfo->args[0].value = ObjectIdGetDatum(shard);
		return false;
	}
	writes = func_volatile(fcinfo->flinfo->fn_oid) == PROVOLATILE_VOLATILE;
	if (writes && route != DP_ROUTE_KEY)
		dp_shard_lock_all(relid);
	if (route != DP_ROUTE_KEY)
		parts = dp_shard_parts(relid);
	if (route == DP_ROUTE_WHOLE && list_length(parts) > 1)
		refuse_whole(fcinfo, relid);

	call.rows =
		fcinfo->flinfo->fn_retset || get_call_result_type(fcinfo, NULL, NULL) == TYPEFUNC_COMPOSITE;
	initStringInfo(&call.arguments);
	SPI_connect();
	if (route == DP_ROUTE_KEY && dp_is_hashed(relid))
	{
		DpDecl *table = dp_decl_of_table(relid, NULL, NULL, NULL, CurrentMemoryContext);
		StringInfoData match;
		DpKey key;

		dp_key_of_argument(table, fcinfo, key_argument, &key);
		if (writes)
			dp_shard_lock_key(relid, table, &key);
		for (i = 0; i < key.n; i++)
			call_parameter(&call, table->keys[i].type, key.values[i], false);
		initStringInfo(&match);
		dp_sql_key_match(&match, table);
		condition = match.data;
	}
	else if (route == DP_ROUTE_KEY && writes)
		dp_shard_lock_all(relid);
	for (i = 1; i < PG_NARGS(); i++)
		call_argument(&call, i);

	if (fcinfo->flinfo->fn_retset)
		InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	*result = (Datum) 0;
	if (route == DP_ROUTE_KEY)
		*result = call_run(&call, relid, condition, true, caller);
	foreach(lc, parts)
	{
		*result = call_run(&call, relid, ((DpShardPart *) lfirst(lc))->condition, false, caller);
		if (route == DP_ROUTE_SUM &&
			pg_add_s64_overflow(sum, fcinfo->isnull ? 0 : DatumGetInt64(*result), &sum))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
	}
	SPI_finish();
	if (route == DP_ROUTE_SUM)
	{
		fcinfo->isnull = false;
		*result = Int64GetDatum(sum);
	}
	return true;
}

/* Adds an argument, by parameters.  A record becomes a row of them: only its server knows its type.
 */
static void
call_argument(Call *call, int argno)
{
	FunctionCallInfo fcinfo = call->fcinfo;
	Oid type = get_fn_expr_argtype(fcinfo->flinfo, argno);
	StringInfo sql = &call->arguments;

	appendStringInfoString(sql, ", ");
	if (argno == PG_NARGS() - 1 && get_fn_expr_variadic(fcinfo->flinfo))
		appendStringInfoString(sql, "VARIADIC ");
	if (type == RECORDOID && !PG_ARGISNULL(argno))
	{
		HeapTupleHeader header = PG_GETARG_HEAPTUPLEHEADER(argno);
		TupleDesc desc = lookup_rowtype_tupdesc_copy(HeapTupleHeaderGetTypeId(header),
													 HeapTupleHeaderGetTypMod(header));
		HeapTupleData tuple = { .t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header };
		int i;

		appendStringInfoString(sql, "ROW(");
		for (i = 0; i < desc->natts; i++)
		{
			bool isnull;
			Datum value = heap_getattr(&tuple, i + 1, desc, &isnull);

			appendStringInfo(sql, "%s$%d", i == 0 ? "" : ", ",
							 call_parameter(call, TupleDescAttr(desc, i)->atttypid, value, isnull));
		}
		appendStringInfoChar(sql, ')');
	}
	else
		appendStringInfo(sql, "$%d",
						 call_parameter(call, type, fcinfo->args[argno].value,
										PG_ARGISNULL(argno)));
}

/* Adds a parameter, and returns its number.  A literal of unknown type is text. */
static int
call_parameter(Call *call, Oid type, Datum value, bool isnull)
{
	int n = call->n++;

	if (type == UNKNOWNOID)
	{
		type = TEXTOID;
		value = isnull ? value : CStringGetTextDatum(DatumGetCString(value));
	}
	call->types[n] = type;
	call->values[n] = value;
	call->nulls[n] = isnull ? 'n' : ' ';
	return n + 1;
}

/*
 * Runs the call where the condition leads, and keeps its plan.  Returns its result, in the caller's
 * memory.
 */
static Datum
call_run(Call *call, Oid relid, const char *condition, bool keep, MemoryContext caller)
{
	FunctionCallInfo fcinfo = call->fcinfo;
	Oid function = fcinfo->flinfo->fn_oid;
	char *name = quote_qualified_identifier(get_namespace_name(get_func_namespace(function)),
											get_func_name(function));
	StringInfoData sql;
	Datum result = (Datum) 0;
	int code;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	if (call->rows)
		appendStringInfoString(&sql, "r.* FROM (SELECT docpatterns._shard_of(b) AS rel");
	else
		appendStringInfo(&sql, "%s(docpatterns._shard_of(b)%s)", name, call->arguments.data);
	appendStringInfoString(&sql, " FROM ");
	dp_sql_table(&sql, relid);
	appendStringInfo(&sql, " AS b WHERE %s", condition);
	if (func_volatile(function) == PROVOLATILE_VOLATILE)
	{
		appendStringInfoString(&sql, " AND NOT EXISTS (SELECT FROM ");
		dp_sql_table(&sql, relid);
		appendStringInfo(&sql, " AS b WHERE %s AND false FOR KEY SHARE)", condition);
	}
	if (call->rows)
		appendStringInfo(&sql, ") AS s CROSS JOIN LATERAL %s(s.rel%s) AS r", name,
						 call->arguments.data);
	code = keep ? run_kept(call, sql.data)
				: SPI_execute_with_args(sql.data, call->n, call->types, call->values, call->nulls,
										false, 0);
	if (code != SPI_OK_SELECT)
		elog(ERROR, "could not call function %u in a shard", function);
	if (fcinfo->flinfo->fn_retset)
	{
		ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
		uint64 row;

		for (row = 0; row < SPI_processed; row++)
			tuplestore_puttuple(rsinfo->setResult, SPI_tuptable->vals[row]);
	}
	else
		result = call_result(call, caller);
	SPI_freetuptable(SPI_tuptable);
	return result;
}

/* Runs a query by a plan that is kept.  The call may lead to other calls. */
static int
run_kept(Call *call, const char *sql)
{
	KeptPlan *kept = kept_plan(call, sql);
	int code;

	if (kept == NULL)
		return SPI_execute_with_args(sql, call->n, call->types, call->values, call->nulls, false,
									 0);
	kept->running++;
	PG_TRY();
	{
		code = SPI_execute_plan(kept->plan, call->values, call->nulls, false, 0);
	}
	PG_FINALLY();
	{
		kept->running--;
	}
	PG_END_TRY();
	return code;
}

/* Returns NULL if there are too many calls inside calls. */
static pg_noinline KeptPlan *
kept_plan(Call *call, const char *sql)
{
	uint32 hash = hash_bytes((const unsigned char *) sql, strlen(sql));
	Size size = call->n * sizeof(Oid);
	KeptPlan *room = NULL;
	SPIPlanPtr plan;
	int i;

	for (i = 0; i < KEPT_PLANS; i++)
	{
		KeptPlan *kept = &kept_plans[i];

		if (kept->plan != NULL && kept->hash == hash && kept->n == call->n &&
			strcmp(kept->sql, sql) == 0 && memcmp(kept->types, call->types, size) == 0)
		{
			kept->used = ++uses;
			return kept;
		}
	}
	for (i = 0; i < KEPT_PLANS; i++)
		if (kept_plans[i].running == 0 && (room == NULL || kept_plans[i].used < room->used))
			room = &kept_plans[i];
	if (room == NULL)
		return NULL;
	plan = SPI_prepare(sql, call->n, call->types);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare: %s", SPI_result_code_string(SPI_result));
	if (room->plan != NULL)
	{
		SPI_freeplan(room->plan);
		room->plan = NULL;
		pfree(room->sql);
		pfree(room->types);
	}
	room->sql = MemoryContextStrdup(TopMemoryContext, sql);
	room->types = MemoryContextAlloc(TopMemoryContext, Max(size, 1));
	memcpy(room->types, call->types, size);
	room->n = call->n;
	room->hash = hash;
	room->used = ++uses;
	SPI_keepplan(plan);
	room->plan = plan;
	return room;
}

/* The result of a function that returns one value, or one row, in the caller's memory. */
static Datum
call_result(Call *call, MemoryContext caller)
{
	FunctionCallInfo fcinfo = call->fcinfo;
	MemoryContext old;
	Datum result = (Datum) 0;
	TupleDesc desc;
	int16 length;
	bool by_value;

	fcinfo->isnull = SPI_processed != 1;
	if (fcinfo->isnull)
		return result;
	if (call->rows)
	{
		old = MemoryContextSwitchTo(caller);
		if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		result = heap_copy_tuple_as_datum(SPI_tuptable->vals[0], BlessTupleDesc(desc));
		MemoryContextSwitchTo(old);
		return result;
	}
	result = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &fcinfo->isnull);
	if (fcinfo->isnull)
		return (Datum) 0;
	get_typlenbyval(SPI_gettypeid(SPI_tuptable->tupdesc, 1), &length, &by_value);
	old = MemoryContextSwitchTo(caller);
	result = datumCopy(result, by_value, length);
	MemoryContextSwitchTo(old);
	return result;
}

static void
refuse_whole(FunctionCallInfo fcinfo, Oid relid)
{
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("cannot call function \"%s\" for table \"%s\" because its rows are "
						   "distributed",
						   get_func_name(fcinfo->flinfo->fn_oid), dp_relation_name(relid)),
					errdetail("It reads rows of several shards at once."),
					errhint("Distribute the schema of the table instead of its rows, with "
							"citus_schema_distribute().")));
}

/* A value that every value at a path must equal */
typedef struct Wanted
{
	DpValue value;
	bool equal;
} Wanted;

static bool
wanted_visit(const DpValue *value, void *arg)
{
	Wanted *wanted = arg;

	wanted->equal = dp_value_compare(value, &wanted->value) == 0;
	return wanted->equal;
}

/*
 * _shard_by(column, doc, path) -> bool: the condition of a constraint by which documents are in the
 * shard of what they refer to.
 */
DP_FUNCTION(dp_shard_by);
Datum
dp_shard_by(PG_FUNCTION_ARGS)
{
	struct varlena *doc;
	text *path;
	Wanted wanted = { .equal = true };

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_BOOL(true);
	doc = PG_DETOAST_DATUM_PACKED(PG_GETARG_DATUM(1));
	path = PG_GETARG_TEXT_PP(2);
	wanted.value = dp_value_of_varlena(dp_datum_to_value(PG_GETARG_DATUM(0),
														 get_fn_expr_argtype(fcinfo->flinfo, 0)));
	dp_path_each(DP_DOC_DATA(doc), DP_DOC_SIZE(doc),
				 dp_path_parse(VARDATA_ANY(path), VARSIZE_ANY_EXHDR(path)), wanted_visit, &wanted);
	PG_RETURN_BOOL(wanted.equal);
}
