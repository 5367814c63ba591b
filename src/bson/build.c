/*
 * build.c
 *		Builds documents and arrays from SQL values: bson_build() and similar functions, and the
 *		aggregates that collect rows.
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/supportnodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "bson/build.h"
#include "bson/cast.h"
#include "bson/reader.h"
#include "bson/state.h"
#include "bson/validate.h"

/* The cache of a VARIADIC "any" function between its calls */
typedef struct BuildCache
{
	bool variadic; /* called with VARIADIC array */
	int nargs;
	DpConverter
		converters[FLEXIBLE_ARRAY_MEMBER]; /* of the arguments, or of the array's elements */
} BuildCache;

/* State of bson_agg */
typedef struct ArrayState
{
	DpBuilder builder; /* of an array that is still open */
	DpConverter converter;
	bool converts; /* there is a converter */
} ArrayState;

static BuildCache *build_cache(FunctionCallInfo fcinfo, int first);
static int build_arguments(FunctionCallInfo fcinfo, BuildCache *cache, int first, Datum **values,
						   bool **nulls);

#define CONVERTER(cache, i) (&(cache)->converters[(cache)->variadic ? 0 : (i)])

/*
 * bson_build(VARIADIC "any") -> bson: names and values in turn, in that order.
 * Raises INVALID_PARAMETER_VALUE for an odd number of arguments and
 * NULL_VALUE_NOT_ALLOWED for a name that is NULL.
 */
DP_FUNCTION(dp_bson_build);
Datum
dp_bson_build(PG_FUNCTION_ARGS)
{
	BuildCache *cache = build_cache(fcinfo, 0);
	Datum *values;
	bool *nulls;
	int n = build_arguments(fcinfo, cache, 0, &values, &nulls);
	DpBuilder b;

	if (n < 0)
		PG_RETURN_NULL();
	if (n % 2 != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the number of arguments must be even"),
						errhint("The arguments of %s must alternate between names and values.",
								"bson_build()")));

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	for (int i = 0; i < n; i += 2)
	{
		const char *name;
		uint32 namelen;

		if (nulls[i])
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("the name of a field cannot be null"),
							errdetail("Argument %d is null.", i + 1)));
		name = dp_converter_name(CONVERTER(cache, i), values[i], &namelen);
		dp_converter_append(CONVERTER(cache, i + 1), &b, name, namelen, values[i + 1],
							nulls[i + 1]);
	}
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/*
 * bson_build() -> bson: the empty document.
 */
DP_FUNCTION(dp_bson_build_empty);
Datum
dp_bson_build_empty(PG_FUNCTION_ARGS)
{
	DpBuilder b;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/*
 * bson_array(VARIADIC "any") -> bson_value
 */
DP_FUNCTION(dp_bson_array);
Datum
dp_bson_array(PG_FUNCTION_ARGS)
{
	BuildCache *cache = build_cache(fcinfo, 0);
	Datum *values;
	bool *nulls;
	int n = build_arguments(fcinfo, cache, 0, &values, &nulls);
	DpBuilder b;

	if (n < 0)
		PG_RETURN_NULL();
	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	for (int i = 0; i < n; i++)
		dp_converter_append(CONVERTER(cache, i), &b, NULL, 0, values[i], nulls[i]);
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_value(&b, DP_TYPE_ARRAY));
}

/*
 * bson_array() -> bson_value: the empty array.
 */
DP_FUNCTION(dp_bson_array_empty);
Datum
dp_bson_array_empty(PG_FUNCTION_ARGS)
{
	DpBuilder b;

	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_value(&b, DP_TYPE_ARRAY));
}

/*
 * to_bson(anycompatible) -> bson_value.  SQL NULL becomes SQL NULL.
 */
DP_FUNCTION(dp_to_bson);
Datum
dp_to_bson(PG_FUNCTION_ARGS)
{
	DpConverter *converter = fcinfo->flinfo->fn_extra;

	if (converter == NULL)
	{
		converter = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(DpConverter));
		dp_converter_init(converter, dp_argument_type(fcinfo, 0), fcinfo->flinfo->fn_mcxt);
		fcinfo->flinfo->fn_extra = converter;
	}
	PG_RETURN_POINTER(dp_converter_value(converter, PG_GETARG_DATUM(0)));
}

/*
 * row_to_bson(record) -> bson: the columns by name.
 */
DP_FUNCTION(dp_row_to_bson);
Datum
dp_row_to_bson(PG_FUNCTION_ARGS)
{
	DpConverter *converter = fcinfo->flinfo->fn_extra;
	DpBuilder b;

	if (converter == NULL)
	{
		converter = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(DpConverter));
		dp_converter_init(converter, RECORDOID, fcinfo->flinfo->fn_mcxt);
		fcinfo->flinfo->fn_extra = converter;
	}

	dp_builder_init(&b, 0);
	dp_converter_append(converter, &b, "", 0, PG_GETARG_DATUM(0), false);
	(void) dp_builder_strip_element(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/* The array so far, closed, at the end of a buffer. */
static void
array_close(StringInfo out, const ArrayState *state)
{
	const DpBuilder *b = &state->builder;
	int start = out->len;

	dp_check_document_size(b->len - b->head + 1);
	appendBinaryStringInfo(out, (const char *) b->buf + b->head, b->len - b->head);
	appendStringInfoChar(out, 0);
	dp_put_int32((uint8 *) out->data + start, out->len - start);
}

static void
array_init(void *state, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	DpBuilder *b = &((ArrayState *) state)->builder;

	dp_builder_init_value(b, 0);
	dp_builder_begin_array(b);
	MemoryContextSwitchTo(old);
}

static void
array_pack(StringInfo out, void *state)
{
	array_close(out, state);
}

static const DpStateKind array_kind = { sizeof(ArrayState), array_init, array_pack };

/*
 * Transition function of bson_agg: appends to an array that grows in the aggregate's memory.
 */
DP_FUNCTION(dp_bson_agg_transfn);
Datum
dp_bson_agg_transfn(PG_FUNCTION_ARGS)
{
	ArrayState *state = dp_state_get(fcinfo, &array_kind);

	if (!state->converts)
	{
		dp_converter_init(&state->converter, dp_argument_type(fcinfo, 1), dp_state_context(state));
		state->converts = true;
	}
	dp_converter_append(&state->converter, &state->builder, NULL, 0,
						PG_ARGISNULL(1) ? (Datum) 0 : PG_GETARG_DATUM(1), PG_ARGISNULL(1));
	dp_check_document_size(state->builder.len - state->builder.head);
	PG_RETURN_DATUM(dp_state_datum(state));
}

/*
 * Combine function of bson_agg: appends the second array to the first.
 */
DP_FUNCTION(dp_bson_agg_combinefn);
Datum
dp_bson_agg_combinefn(PG_FUNCTION_ARGS)
{
	ArrayState *state;
	DpPacked p;
	DpFault fault;
	DpIter iter;
	DpValue v;

	if (!dp_state_packed(fcinfo, &p))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	if (!dp_validate_value(DP_TYPE_ARRAY, p.next, p.end - p.next, &fault))
		dp_corrupted("a packed array is damaged");
	state = dp_state_get(fcinfo, &array_kind);
	v = (DpValue){ p.next, p.end - p.next, DP_TYPE_ARRAY };
	dp_iter_init_value(&iter, &v);
	while (dp_iter_next_value(&iter, &v))
		dp_builder_append_value(&state->builder, NULL, 0, &v);
	dp_check_document_size(state->builder.len - state->builder.head);
	PG_RETURN_DATUM(dp_state_datum(state));
}

/*
 * Final function of bson_agg: a closed copy of the array.  The state stays open because a window
 * continues with it.
 */
DP_FUNCTION(dp_bson_agg_finalfn);
Datum
dp_bson_agg_finalfn(PG_FUNCTION_ARGS)
{
	ArrayState *state = dp_state_final(fcinfo, &array_kind);
	StringInfoData out;

	if (state == NULL)
		PG_RETURN_NULL();
	initStringInfo(&out);
	enlargeStringInfo(&out, state->builder.len);
	appendStringInfoSpaces(&out, VARHDRSZ);
	appendStringInfoChar(&out, DP_TYPE_ARRAY);
	array_close(&out, state);
	SET_VARSIZE(out.data, out.len);
	PG_RETURN_POINTER(out.data);
}

/*
 * untyped_support(internal) -> internal: a call of a function with VARIADIC text[] becomes one of
 * its twin with VARIADIC "any", which needs no array.  sql/untyped.sql makes these functions.
 */
DP_FUNCTION(dp_untyped_support);
Datum
dp_untyped_support(PG_FUNCTION_ARGS)
{
	Node *request = (Node *) PG_GETARG_POINTER(0);
	FuncExpr *call;
	ArrayExpr *list;
	FuncExpr *result;
	Oid *types;
	int n;
	Oid twin;

	if (!IsA(request, SupportRequestSimplify))
		PG_RETURN_POINTER(NULL);
	call = ((SupportRequestSimplify *) request)->fcall;
	list = llast(call->args);
	if (!IsA(list, ArrayExpr) || list->multidims)
		PG_RETURN_POINTER(NULL);

	(void) get_func_signature(call->funcid, &types, &n);
	types[n - 1] = ANYOID;
	twin = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
						   CStringGetDatum(get_func_name(call->funcid)),
						   PointerGetDatum(buildoidvector(types, n)),
						   ObjectIdGetDatum(get_func_namespace(call->funcid)));
	if (!OidIsValid(twin) ||
		list_length(call->args) - 1 + list_length(list->elements) > FUNC_MAX_ARGS)
		PG_RETURN_POINTER(NULL);
	result = makeFuncExpr(twin, call->funcresulttype,
						  list_concat(list_copy_head(call->args, n - 1), list->elements),
						  call->funccollid, call->inputcollid, call->funcformat);
	result->funcretset = call->funcretset;
	PG_RETURN_POINTER(result);
}

/* The converters of the arguments, made at the first call. */
static BuildCache *
build_cache(FunctionCallInfo fcinfo, int first)
{
	BuildCache *cache = fcinfo->flinfo->fn_extra;
	MemoryContext mcxt = fcinfo->flinfo->fn_mcxt;
	bool variadic;
	int n;

	if (cache != NULL)
		return cache;

	variadic = get_fn_expr_variadic(fcinfo->flinfo);
	n = variadic ? 1 : PG_NARGS() - first;
	cache =
		MemoryContextAllocZero(mcxt, offsetof(BuildCache, converters) + n * sizeof(DpConverter));
	cache->variadic = variadic;
	cache->nargs = n;
	if (variadic)
	{
		Oid element = get_base_element_type(dp_argument_type(fcinfo, first));

		if (!OidIsValid(element))
			ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
							errmsg("VARIADIC argument must be an array")));
		dp_converter_init(&cache->converters[0], element, mcxt);
	}
	else
	{
		for (int i = 0; i < n; i++)
			dp_converter_init(&cache->converters[i], dp_argument_type(fcinfo, first + i), mcxt);
	}
	fcinfo->flinfo->fn_extra = cache;
	return cache;
}

/*
 * The values of the arguments, also of those that come in a VARIADIC array.
 * Returns their number, or -1 for an array that is NULL.
 */
static int
build_arguments(FunctionCallInfo fcinfo, BuildCache *cache, int first, Datum **values, bool **nulls)
{
	if (cache->variadic)
	{
		ArrayType *array;
		int16 len;
		bool byval;
		char align;
		int n;

		if (PG_ARGISNULL(first))
			return -1;
		array = PG_GETARG_ARRAYTYPE_P(first);
		get_typlenbyvalalign(ARR_ELEMTYPE(array), &len, &byval, &align);
		deconstruct_array(array, ARR_ELEMTYPE(array), len, byval, align, values, nulls, &n);
		return n;
	}

	*values = palloc(Max(cache->nargs, 1) * (sizeof(Datum) + sizeof(bool)));
	*nulls = (bool *) (*values + cache->nargs);
	for (int i = 0; i < cache->nargs; i++)
	{
		(*values)[i] = fcinfo->args[first + i].value;
		(*nulls)[i] = fcinfo->args[first + i].isnull;
	}
	return cache->nargs;
}

Oid
dp_argument_type(FunctionCallInfo fcinfo, int argno)
{
	Oid typid = get_fn_expr_argtype(fcinfo->flinfo, argno);

	if (!OidIsValid(typid))
	{
		/* Citus calls functions of aggregates without their expression */
		Oid *types;
		int n;

		(void) get_func_signature(fcinfo->flinfo->fn_oid, &types, &n);
		if (argno < n && types[argno] != ANYOID && !IsPolymorphicType(types[argno]))
			typid = types[argno];
	}
	if (!OidIsValid(typid))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("could not determine the type of argument %d", argno + 1)));
	return typid;
}

MemoryContext
dp_aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR, (errcode(ERRCODE_GROUPING_ERROR),
						errmsg("an aggregate's function was called outside an aggregate")));
	return context;
}
