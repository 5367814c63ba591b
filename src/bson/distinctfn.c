/*
 * distinctfn.c
 *		Sketches of distinct values from SQL.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/memutils.h"

#include "bson/build.h"
#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/compare.h"
#include "bson/distinct.h"
#include "bson/number.h"
#include "bson/state.h"

/* The hash of an SQL value that is not NULL, as that of the BSON value that it becomes. */
static uint64
datum_hash(DpConverter *c, Datum d)
{
	DpNumber number = { .kind = DP_NUMBER_INTEGER };
	struct varlena *v;
	DpValue value;
	uint64 hash;

	switch (c->conversion)
	{
		case DP_CONVERT_INT2:
			number.i = DatumGetInt16(d);
			return dp_number_hash(&number, 0);
		case DP_CONVERT_INT4:
			number.i = DatumGetInt32(d);
			return dp_number_hash(&number, 0);
		case DP_CONVERT_INT8:
			number.i = DatumGetInt64(d);
			return dp_number_hash(&number, 0);
		case DP_CONVERT_TEXT:
			v = PG_DETOAST_DATUM_PACKED(d);
			hash = dp_string_hash(VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v), 0);
			break;
		default:
			v = dp_converter_value(c, d);
			value = dp_value_of_varlena(v);
			hash = dp_value_hash(&value, 0);
			break;
	}
	if ((Pointer) v != DatumGetPointer(d))
		pfree(v);
	return hash;
}

/* The converter of an argument, kept in fn_extra. */
static DpConverter *
converter_get(FunctionCallInfo fcinfo, int argno)
{
	DpConverter *c = fcinfo->flinfo->fn_extra;

	if (c == NULL)
	{
		c = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(DpConverter));
		dp_converter_init(c, dp_argument_type(fcinfo, argno), fcinfo->flinfo->fn_mcxt);
		fcinfo->flinfo->fn_extra = c;
	}
	return c;
}

/* The packed sketch that a value holds.  Raises INVALID_PARAMETER_VALUE if it is no Binary. */
static const uint8 *
sketch_bytes(const DpValue *v, uint32 *len)
{
	if (v->type != DP_TYPE_BINARY || v->data[4] != DP_DISTINCT_SUBTYPE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument must be a sketch of distinct values"),
				 errdetail("Found a value of BSON type \"%s\".", dp_type_name(v->type)),
				 errhint("Create sketches with bson_distinct_agg() and bson_distinct_add().")));
	*len = v->len - 5;
	return v->data + 5;
}

/* Reads the sketch of an argument; of SQL NULL and of null it is empty. */
static void
sketch_of_argument(FunctionCallInfo fcinfo, int argno, DpDistinct *sketch)
{
	DpValue v;
	const uint8 *bytes;
	uint32 len;

	dp_distinct_init(sketch);
	if (PG_ARGISNULL(argno))
		return;
	v = dp_value_of_varlena(DP_GETARG_VARLENA(argno));
	if (v.type == DP_TYPE_NULL)
		return;
	bytes = sketch_bytes(&v, &len);
	dp_distinct_unpack(sketch, bytes, len);
}

/* A sketch as a bson_value. */
static Datum
sketch_to_datum(const DpDistinct *sketch)
{
	StringInfoData out;
	uint8 *p;

	initStringInfo(&out);
	appendStringInfoSpaces(&out, VARHDRSZ + 1 + 5);
	dp_distinct_pack(&out, sketch);
	p = (uint8 *) out.data + VARHDRSZ;
	p[0] = DP_TYPE_BINARY;
	dp_put_int32(p + 1, out.len - VARHDRSZ - 6);
	p[5] = DP_DISTINCT_SUBTYPE;
	SET_VARSIZE(out.data, out.len);
	return PointerGetDatum(out.data);
}

/* ---------------------------------------------------------------- aggregates */

static void
state_init(void *state, MemoryContext context)
{
	dp_distinct_init(state);
}

static void
state_pack(StringInfo out, void *state)
{
	dp_distinct_pack(out, state);
}

static const DpStateKind state_kind = { sizeof(DpDistinct), state_init, state_pack };

/*
 * bson_distinct_step(internal, anycompatible) -> internal: NULL does not count.
 */
DP_FUNCTION(dp_bson_distinct_step);
Datum
dp_bson_distinct_step(PG_FUNCTION_ARGS)
{
	DpDistinct *sketch = dp_state_get(fcinfo, &state_kind);

	if (!PG_ARGISNULL(1))
		dp_distinct_add(sketch, datum_hash(converter_get(fcinfo, 1), PG_GETARG_DATUM(1)));
	PG_RETURN_DATUM(dp_state_datum(sketch));
}

/*
 * bson_distinct_merge_step(bytea, bson_value) -> bytea: adds a sketch.
 */
DP_FUNCTION(dp_bson_distinct_merge_step);
Datum
dp_bson_distinct_merge_step(PG_FUNCTION_ARGS)
{
	DpDistinct *sketch = dp_state_get(fcinfo, &state_kind);
	DpDistinct other;

	sketch_of_argument(fcinfo, 1, &other);
	dp_distinct_merge(sketch, &other);
	PG_RETURN_DATUM(dp_state_datum(sketch));
}

/*
 * bson_distinct_combine(bytea, bytea) -> bytea: adds the second sketch to the first.
 */
DP_FUNCTION(dp_bson_distinct_combine);
Datum
dp_bson_distinct_combine(PG_FUNCTION_ARGS)
{
	DpDistinct *sketch = dp_state_get(fcinfo, &state_kind);
	DpDistinct other;
	DpPacked p;

	if (dp_state_packed(fcinfo, &p))
	{
		dp_distinct_unpack(&other, p.next, p.end - p.next);
		dp_distinct_merge(sketch, &other);
	}
	PG_RETURN_DATUM(dp_state_datum(sketch));
}

/*
 * bson_distinct_final(bytea) -> bson_value: the sketch, an empty one if there
 * were no rows.
 */
DP_FUNCTION(dp_bson_distinct_final);
Datum
dp_bson_distinct_final(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(sketch_to_datum(dp_state_get(fcinfo, &state_kind)));
}

/* ---------------------------------------------------------------- functions */

/*
 * bson_distinct_add(sketch bson_value, value anycompatible) -> bson_value: the sketch with
 * the value; a NULL or null sketch is an empty one, a NULL value adds nothing.
 */
DP_FUNCTION(dp_bson_distinct_add);
Datum
dp_bson_distinct_add(PG_FUNCTION_ARGS)
{
	DpDistinct sketch;
	uint64 hash;

	if (PG_ARGISNULL(1))
	{
		sketch_of_argument(fcinfo, 0, &sketch);
		PG_RETURN_DATUM(sketch_to_datum(&sketch));
	}
	hash = datum_hash(converter_get(fcinfo, 1), PG_GETARG_DATUM(1));
	if (!PG_ARGISNULL(0))
	{
		struct varlena *copy = PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(0));
		DpValue v = dp_value_of_varlena(copy);

		if (v.type != DP_TYPE_NULL)
		{
			uint32 len;
			const uint8 *bytes = sketch_bytes(&v, &len);
			bool changed;

			if (dp_distinct_add_packed(unconstify(uint8 *, bytes), len, hash, &changed))
				PG_RETURN_POINTER(copy);
		}
	}
	sketch_of_argument(fcinfo, 0, &sketch);
	dp_distinct_add(&sketch, hash);
	PG_RETURN_DATUM(sketch_to_datum(&sketch));
}

/*
 * bson_distinct_merge(bson_value, bson_value) -> bson_value: a sketch of the values
 * of both; NULL and null are empty sketches.
 */
DP_FUNCTION(dp_bson_distinct_merge);
Datum
dp_bson_distinct_merge(PG_FUNCTION_ARGS)
{
	DpDistinct sketch;
	DpDistinct other;

	sketch_of_argument(fcinfo, 0, &sketch);
	sketch_of_argument(fcinfo, 1, &other);
	dp_distinct_merge(&sketch, &other);
	PG_RETURN_DATUM(sketch_to_datum(&sketch));
}

/*
 * bson_distinct_count(sketch bson_value) -> bigint: how many distinct values were
 * added, about; 0 for null.
 */
DP_FUNCTION(dp_bson_distinct_count);
Datum
dp_bson_distinct_count(PG_FUNCTION_ARGS)
{
	DpDistinct sketch;

	sketch_of_argument(fcinfo, 0, &sketch);
	PG_RETURN_INT64(dp_distinct_count(&sketch));
}
