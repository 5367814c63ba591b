/*
 * aggregate.c
 *		Aggregates that create buckets: bucket_agg(), bucket_page_agg() and bucket_merge().
 *
 * Rows go into a builder, buckets into a list, and the final function merges everything into one
 * bucket.  Parallel workers pass on a packed bucket.
 *
 * No aggregate has an inverse function: removing rows would save a moving window little compared
 * with packing each result.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "bson/build.h"
#include "bson/catalog.h"
#include "bson/state.h"
#include "types/bucket/bucket.h"

/* The state of an aggregate */
typedef struct BucketState
{
	MemoryContext context; /* where it lives */

	/* rows */
	DpBucketBuilder *builder; /* NULL: none */
	int ncolumns;
	Datum *values; /* room for a row */
	bool *nulls;
	bool is_array; /* called with VARIADIC array */
	bool is_row;   /* the only argument is a row, its columns are the bucket's */
	Oid rowtype;
	int32 rowtypmod;
	Oid elmtype; /* of the array */
	int16 elmlen;
	bool elmbyval;
	char elmalign;

	/* buckets */
	Datum *parts;
	int nparts;
	int maxparts;
} BucketState;

static void state_add(BucketState *state, FunctionCallInfo fcinfo, int first, int64 time);
static void builder_make(BucketState *state, FunctionCallInfo fcinfo, int first);
static void builder_make_row(BucketState *state, int flags, Datum row);
static void row_values(BucketState *state, Datum row);
static void array_values(BucketState *state, Datum array);
static void part_add(BucketState *state, Datum bucket);
static struct varlena *state_bucket(BucketState *state);

static void
state_init(void *state, MemoryContext context)
{
	((BucketState *) state)->context = context;
}

/* The bucket so far, or nothing. */
static void
state_pack(StringInfo out, void *state)
{
	struct varlena *bucket = state_bucket(state);

	if (bucket != NULL)
		appendBinaryStringInfo(out, VARDATA_ANY(bucket), VARSIZE_ANY_EXHDR(bucket));
}

static const DpStateKind state_kind = { sizeof(BucketState), state_init, state_pack };

/*
 * bucket_agg's step (state, timestamptz, VARIADIC "any") -> state: adds a measurement.  Raises
 * NULL_VALUE_NOT_ALLOWED for one without time.
 */
DP_FUNCTION(dp_bucket_agg_step);
Datum
dp_bucket_agg_step(PG_FUNCTION_ARGS)
{
	BucketState *state = dp_state_get(fcinfo, &state_kind);

	if (PG_ARGISNULL(1))
		ereport(
			ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("a measurement has no time"),
			 errhint(
				 "Use bucket_page_agg() for measurements without times, or exclude such rows with FILTER.")));
	state_add(state, fcinfo, 2, PG_GETARG_TIMESTAMPTZ(1));
	PG_RETURN_DATUM(dp_state_datum(state));
}

/*
 * bucket_page_agg's step (state, VARIADIC "any") -> state: adds what has no time.
 */
DP_FUNCTION(dp_bucket_page_agg_step);
Datum
dp_bucket_page_agg_step(PG_FUNCTION_ARGS)
{
	BucketState *state = dp_state_get(fcinfo, &state_kind);

	state_add(state, fcinfo, 1, 0);
	PG_RETURN_DATUM(dp_state_datum(state));
}

/*
 * bucket_merge's step (state, bucket) -> state: adds a bucket; NULL adds nothing.
 */
DP_FUNCTION(dp_bucket_merge_step);
Datum
dp_bucket_merge_step(PG_FUNCTION_ARGS)
{
	BucketState *state = dp_state_get(fcinfo, &state_kind);

	if (!PG_ARGISNULL(1))
		part_add(state, PG_GETARG_DATUM(1));
	PG_RETURN_DATUM(dp_state_datum(state));
}

/*
 * (bytea, bytea) -> bytea: adds what the second state has to the first.
 */
DP_FUNCTION(dp_bucket_agg_combine);
Datum
dp_bucket_agg_combine(PG_FUNCTION_ARGS)
{
	BucketState *state = dp_state_get(fcinfo, &state_kind);
	DpPacked p;

	if (dp_state_packed(fcinfo, &p) && p.next < p.end)
		part_add(state, PG_GETARG_DATUM(1));
	PG_RETURN_DATUM(dp_state_datum(state));
}

/*
 * (bytea) -> bucket: NULL without rows.  The state is unchanged, because a window continues with
 * it.
 */
DP_FUNCTION(dp_bucket_agg_final);
Datum
dp_bucket_agg_final(PG_FUNCTION_ARGS)
{
	BucketState *state = dp_state_final(fcinfo, &state_kind);
	struct varlena *bucket = state == NULL ? NULL : state_bucket(state);

	if (bucket == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(bucket);
}

/* Adds the row that the arguments from first on are. */
static void
state_add(BucketState *state, FunctionCallInfo fcinfo, int first, int64 time)
{
	if (state->builder == NULL)
		builder_make(state, fcinfo, first);

	if (state->is_row || state->is_array)
	{
		if (PG_ARGISNULL(first))
			memset(state->nulls, true, state->ncolumns * sizeof(bool));
		else if (state->is_row)
			row_values(state, PG_GETARG_DATUM(first));
		else
			array_values(state, PG_GETARG_DATUM(first));
	}
	else
	{
		for (int i = 0; i < state->ncolumns; i++)
		{
			state->values[i] = fcinfo->args[first + i].value;
			state->nulls[i] = fcinfo->args[first + i].isnull;
		}
	}
	dp_bucket_append(state->builder, time, state->values, state->nulls);
}

/* A row of the bucket has so many columns. */
static void
make_room(BucketState *state, int ncolumns)
{
	state->ncolumns = ncolumns;
	state->values = MemoryContextAlloc(state->context, Max(ncolumns, 1) * sizeof(Datum));
	state->nulls = MemoryContextAlloc(state->context, Max(ncolumns, 1) * sizeof(bool));
}

/*
 * Makes the builder that fits the arguments.  Raises INVALID_PARAMETER_VALUE
 * where their types are not known, NULL_VALUE_NOT_ALLOWED where a NULL hides
 * how many columns there are.
 */
static void
builder_make(BucketState *state, FunctionCallInfo fcinfo, int first)
{
	int flags = first == 1 ? DP_BUCKET_TIMELESS : 0;
	int n = PG_NARGS() - first;
	DpPackedColumnDef *columns;
	Oid typid = dp_argument_type(fcinfo, first);
	Oid base = getBaseType(typid);

	state->is_array = get_fn_expr_variadic(fcinfo->flinfo);
	state->is_row =
		!state->is_array && n == 1 && (base == RECORDOID || get_typtype(base) == TYPTYPE_COMPOSITE);
	if ((state->is_array || (state->is_row && base == RECORDOID)) && PG_ARGISNULL(first))
		ereport(
			ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("first measurement must not be null if nothing else determines its columns")));
	if (state->is_row)
	{
		state->rowtype = base;
		state->rowtypmod = -1;
		builder_make_row(state, flags, PG_ARGISNULL(first) ? (Datum) 0 : PG_GETARG_DATUM(first));
		return;
	}

	if (state->is_array)
	{
		ArrayType *array = PG_GETARG_ARRAYTYPE_P(first);

		state->elmtype = ARR_ELEMTYPE(array);
		get_typlenbyvalalign(state->elmtype, &state->elmlen, &state->elmbyval, &state->elmalign);
		n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	}
	columns = palloc0(Max(n, 1) * sizeof(DpPackedColumnDef));
	for (int i = 0; i < n; i++)
	{
		columns[i].typid = state->is_array ? state->elmtype : dp_argument_type(fcinfo, first + i);
		columns[i].split = getBaseType(columns[i].typid) == dp_types()->bson;
		columns[i].as_value = true;
	}
	state->builder = dp_bucket_builder_create(state->context, flags, n, columns);
	make_room(state, n);
}

/* The same for a row, whose columns give the bucket's their names; row is 0 if it is NULL. */
static void
builder_make_row(BucketState *state, int flags, Datum row)
{
	TupleDesc desc;
	DpPackedColumnDef *columns;
	int n = 0;

	if (row != (Datum) 0)
	{
		HeapTupleHeader header = DatumGetHeapTupleHeader(row);

		state->rowtype = HeapTupleHeaderGetTypeId(header);
		state->rowtypmod = HeapTupleHeaderGetTypMod(header);
	}
	desc = lookup_rowtype_tupdesc(state->rowtype, state->rowtypmod);
	columns = palloc0(Max(desc->natts, 1) * sizeof(DpPackedColumnDef));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		columns[n].typid = att->atttypid;
		columns[n].name = NameStr(att->attname);
		columns[n].split = getBaseType(att->atttypid) == dp_types()->bson;
		columns[n].as_value = true;
		n++;
	}
	state->builder = dp_bucket_builder_create(state->context, flags | DP_BUCKET_NAMED, n, columns);
	ReleaseTupleDesc(desc);
	make_room(state, n);
}

/*
 * Splits a row into columns.  Raises DATATYPE_MISMATCH if its type differs from that of the first
 * row.
 */
static void
row_values(BucketState *state, Datum row)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(row);
	HeapTupleData tuple;
	TupleDesc desc;
	int n = 0;

	if (HeapTupleHeaderGetTypeId(header) != state->rowtype ||
		HeapTupleHeaderGetTypMod(header) != state->rowtypmod)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("the measurements of a bucket must be rows of the same type")));
	desc = lookup_rowtype_tupdesc(state->rowtype, state->rowtypmod);
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = header;
	for (int i = 0; i < desc->natts && n < state->ncolumns; i++)
	{
		if (TupleDescAttr(desc, i)->attisdropped)
			continue;
		state->values[n] = heap_getattr(&tuple, i + 1, desc, &state->nulls[n]);
		n++;
	}
	ReleaseTupleDesc(desc);
}

/*
 * Splits an array into columns.  Raises ARRAY_SUBSCRIPT_ERROR if its length differs from that of
 * the first array.
 */
static void
array_values(BucketState *state, Datum datum)
{
	ArrayType *array = DatumGetArrayTypeP(datum);
	Datum *values;
	bool *nulls;
	int n;

	deconstruct_array(array, state->elmtype, state->elmlen, state->elmbyval, state->elmalign,
					  &values, &nulls, &n);
	if (n != state->ncolumns)
		ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
						errmsg("the measurements of a bucket must have the same number of values"),
						errdetail("The first one has %d, another one %d.", state->ncolumns, n)));
	memcpy(state->values, values, n * sizeof(Datum));
	memcpy(state->nulls, nulls, n * sizeof(bool));
}

/* Adds a bucket; it is copied. */
static void
part_add(BucketState *state, Datum bucket)
{
	MemoryContext old = MemoryContextSwitchTo(state->context);

	if (state->nparts == state->maxparts)
	{
		state->maxparts = Max(2 * state->maxparts, 8);
		if (state->parts == NULL)
			state->parts = palloc(state->maxparts * sizeof(Datum));
		else
			state->parts = repalloc_huge(state->parts, state->maxparts * sizeof(Datum));
	}
	state->parts[state->nparts++] = PointerGetDatum(PG_DETOAST_DATUM_COPY(bucket));
	MemoryContextSwitchTo(old);
}

/* Everything that the state has as one bucket, in the current context; NULL if it has nothing. */
static struct varlena *
state_bucket(BucketState *state)
{
	struct varlena *rows = NULL;
	Datum *all;

	if (state->builder != NULL)
		rows = dp_bucket_builder_finish(state->builder);
	if (state->nparts == 0)
		return rows;

	all = MemoryContextAllocHuge(CurrentMemoryContext, (state->nparts + 1) * sizeof(Datum));
	memcpy(all, state->parts, state->nparts * sizeof(Datum));
	if (rows != NULL)
		all[state->nparts] = PointerGetDatum(rows);
	rows = dp_bucket_merge(all, state->nparts + (rows != NULL ? 1 : 0));
	pfree(all);
	return rows;
}
