/*
 * cast_out.c
 *		BSON values become SQL values, strictly.
 *
 * Nothing is guessed: a string is not a number, a boolean is neither, a number
 * with a fraction is not an integer.  Strings are read by the input function of
 * those types that are written as strings (enums, intervals, networks, ...).
 */
#include "postgres.h"

#include <math.h>

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "common/shortest_dec.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "bson/access.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/jsonb.h"
#include "bson/number.h"
#include "bson/reader.h"
#include "bson/record.h"
#include "bson/text.h"

static Datum cast_argument(FunctionCallInfo fcinfo, Oid typid);
static Datum convert(const DpValue *v, Oid typid, int32 typmod, bool *isnull);
static Datum convert_other(const DpValue *v, Oid typid, int32 typmod);
static Datum apply_typmod(Datum d, Oid typid, int32 typmod);
static int64 value_to_int64(const DpValue *v, Oid typid, int64 min, int64 max);
static double value_to_float8(const DpValue *v, Oid typid);
static Datum value_to_numeric(const DpValue *v);
static Timestamp value_to_timestamp(const DpValue *v, Oid typid);
static Datum value_to_date(const DpValue *v);
static Datum value_to_uuid(const DpValue *v);
static Datum value_to_bytea(const DpValue *v);
static Datum value_to_array(const DpValue *v, Oid element, int32 typmod);
static void collect_elements(const DpValue *v, Oid element, int32 typmod, int ndims, int level,
							 int *dims, ArrayBuildState *state);
static void wrong_kind(const DpValue *v, Oid typid) pg_attribute_noreturn();
static void out_of_range(const DpValue *v, Oid typid, const char *why) pg_attribute_noreturn();

Datum
dp_value_to_datum(const DpValue *v, Oid typid, int32 typmod, bool *isnull)
{
	Datum result;
	Oid basetype;

	*isnull = false;
	if (typid < FirstNormalObjectId)
		basetype = typid;
	else
		basetype = getBaseTypeAndTypmod(typid, &typmod);

	result = convert(v, basetype, typmod, isnull);
	if (basetype != typid)
		domain_check(result, *isnull, typid, NULL, NULL);
	return result;
}

/*
 * SQL functions of the casts from bson_value, which are all the same.
 */
#define CAST_FUNCTION(name, typid)                                                                 \
	DP_FUNCTION(dp_cast_to_##name);                                                                \
	Datum dp_cast_to_##name(PG_FUNCTION_ARGS)                                                      \
	{                                                                                              \
		return cast_argument(fcinfo, typid);                                                       \
	}

/* The bson_value argument as a value of the type; null and undefined are SQL NULL. */
static Datum
cast_argument(FunctionCallInfo fcinfo, Oid typid)
{
	DpValue value = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	bool isnull = false;
	Datum result = convert(&value, typid, -1, &isnull);

	if (isnull)
		PG_RETURN_NULL();
	return result;
}

CAST_FUNCTION(bool, BOOLOID)
CAST_FUNCTION(int2, INT2OID)
CAST_FUNCTION(int4, INT4OID)
CAST_FUNCTION(int8, INT8OID)
CAST_FUNCTION(float4, FLOAT4OID)
CAST_FUNCTION(float8, FLOAT8OID)
CAST_FUNCTION(numeric, NUMERICOID)
CAST_FUNCTION(text, TEXTOID)
CAST_FUNCTION(name, NAMEOID)
CAST_FUNCTION(timestamptz, TIMESTAMPTZOID)
CAST_FUNCTION(timestamp, TIMESTAMPOID)
CAST_FUNCTION(date, DATEOID)
CAST_FUNCTION(uuid, UUIDOID)
CAST_FUNCTION(bytea, BYTEAOID)
CAST_FUNCTION(json, JSONOID)
CAST_FUNCTION(jsonb, JSONBOID)
CAST_FUNCTION(objectid, dp_types()->objectid)
CAST_FUNCTION(bson, dp_types()->bson)

/*
 * The value as a datum of a type that is no domain.
 */
static Datum
convert(const DpValue *v, Oid typid, int32 typmod, bool *isnull)
{
	Datum result;
	text *t;

	/* types with their own null keep it */
	if ((v->type == DP_TYPE_NULL || v->type == DP_TYPE_UNDEFINED) && typid != JSONBOID &&
		typid != JSONOID && (typid < FirstNormalObjectId || typid != dp_types()->bson_value))
	{
		*isnull = true;
		return (Datum) 0;
	}

	switch (typid)
	{
		case BOOLOID:
			if (v->type != DP_TYPE_BOOL)
				wrong_kind(v, typid);
			return BoolGetDatum(v->data[0] != 0);

		case INT2OID:
			return Int16GetDatum((int16) value_to_int64(v, typid, PG_INT16_MIN, PG_INT16_MAX));

		case INT4OID:
			return Int32GetDatum((int32) value_to_int64(v, typid, PG_INT32_MIN, PG_INT32_MAX));

		case INT8OID:
			return Int64GetDatum(value_to_int64(v, typid, PG_INT64_MIN, PG_INT64_MAX));

		case FLOAT4OID:
			return DirectFunctionCall1(dtof, Float8GetDatum(value_to_float8(v, typid)));

		case FLOAT8OID:
			return Float8GetDatum(value_to_float8(v, typid));

		case NUMERICOID:
			result = value_to_numeric(v);
			break;

		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
			t = dp_value_as_text(v);
			if (t == NULL)
			{
				*isnull = true;
				return (Datum) 0;
			}
			result = PointerGetDatum(t);
			if (typid == NAMEOID)
				return DirectFunctionCall1(text_name, result);
			break;

		case TIMESTAMPTZOID:
		case TIMESTAMPOID:
			result = TimestampGetDatum(value_to_timestamp(v, typid));
			break;

		case DATEOID:
			return value_to_date(v);

		case UUIDOID:
			return value_to_uuid(v);

		case BYTEAOID:
			return value_to_bytea(v);

		case JSONBOID:
			return JsonbPGetDatum(dp_value_to_jsonb(v));

		case JSONOID:
		{
			StringInfoData out;

			initStringInfo(&out);
			dp_value_to_text(&out, v, DP_TEXT_JSON, -1);
			return PointerGetDatum(cstring_to_text_with_len(out.data, out.len));
		}

		default:
			return convert_other(v, typid, typmod);
	}
	return apply_typmod(result, typid, typmod);
}

/*
 * The same for the types of the extension, arrays, rows, and the types that
 * are written as strings.
 */
static Datum
convert_other(const DpValue *v, Oid typid, int32 typmod)
{
	const DpTypes *types = dp_types();
	Oid element;

	if (typid == types->bson_value)
		return PointerGetDatum(dp_value_to_varlena(v));

	if (typid == types->bson)
	{
		if (v->type != DP_TYPE_DOCUMENT)
			wrong_kind(v, typid);
		return PointerGetDatum(dp_document_to_varlena(v->data, v->len));
	}

	if (typid == types->objectid)
	{
		uint8 *id;

		if (v->type != DP_TYPE_OBJECTID)
			wrong_kind(v, typid);
		id = palloc(DP_OBJECTID_SIZE);
		memcpy(id, v->data, DP_OBJECTID_SIZE);
		return PointerGetDatum(id);
	}

	element = get_element_type(typid);
	if (OidIsValid(element))
	{
		if (v->type != DP_TYPE_ARRAY)
			wrong_kind(v, typid);
		return value_to_array(v, element, typmod);
	}

	if (type_is_rowtype(typid))
	{
		if (v->type != DP_TYPE_DOCUMENT)
			wrong_kind(v, typid);
		return dp_value_to_row(v, typid, typmod);
	}

	if (v->type != DP_TYPE_STRING && v->type != DP_TYPE_SYMBOL)
		wrong_kind(v, typid);
	return dp_datum_of_text(PointerGetDatum(dp_value_as_text(v)), TEXTOID, typid, typmod);
}

Datum
dp_datum_of_text(Datum given, Oid type, Oid typid, int32 typmod)
{
	char *s = type == UNKNOWNOID ? DatumGetCString(given) : TextDatumGetCString(given);
	Oid input;
	Oid ioparam;

	getTypeInputInfo(typid, &input, &ioparam);
	return OidInputFunctionCall(input, s, ioparam, typmod);
}

/*
 * Apply a type's modifier as an assignment does: what is too long is an error,
 * a numeric is rounded to its scale.
 */
static Datum
apply_typmod(Datum d, Oid typid, int32 typmod)
{
	Oid function;

	if (typmod < 0)
		return d;
	if (find_typmod_coercion_function(typid, &function) != COERCION_PATH_FUNC)
		return d;
	return OidFunctionCall3(function, d, Int32GetDatum(typmod), BoolGetDatum(false));
}

/*
 * An integer between min and max.
 */
static int64
value_to_int64(const DpValue *v, Oid typid, int64 min, int64 max)
{
	int64 i = 0;

	switch (v->type)
	{
		case DP_TYPE_INT32:
			i = dp_get_int32(v->data);
			break;

		case DP_TYPE_INT64:
			i = dp_get_int64(v->data);
			break;

		case DP_TYPE_DOUBLE:
		{
			double d = dp_get_double(v->data);

			if (isnan(d) || d < -9223372036854775808.0 || d >= 9223372036854775808.0)
				out_of_range(v, typid, NULL);
			if (d != rint(d))
				out_of_range(v, typid, "The number has a fraction.");
			i = (int64) d;
			break;
		}

		case DP_TYPE_DECIMAL128:
		{
			Datum n = NumericGetDatum(dp_decimal128_to_numeric(v->data));
			Datum whole;

			if (numeric_is_nan(DatumGetNumeric(n)) || numeric_is_inf(DatumGetNumeric(n)))
				out_of_range(v, typid, NULL);
			whole = DirectFunctionCall2(numeric_trunc, n, Int32GetDatum(0));
			if (!DatumGetBool(DirectFunctionCall2(numeric_eq, n, whole)))
				out_of_range(v, typid, "The number has a fraction.");
			if (DatumGetBool(DirectFunctionCall2(numeric_lt, whole,
												 NumericGetDatum(int64_to_numeric(min)))) ||
				DatumGetBool(DirectFunctionCall2(numeric_gt, whole,
												 NumericGetDatum(int64_to_numeric(max)))))
				out_of_range(v, typid, NULL);
			i = DatumGetInt64(DirectFunctionCall1(numeric_int8, whole));
			break;
		}

		default:
			wrong_kind(v, typid);
	}
	if (i < min || i > max)
		out_of_range(v, typid, NULL);
	return i;
}

static double
value_to_float8(const DpValue *v, Oid typid)
{
	switch (v->type)
	{
		case DP_TYPE_INT32:
			return dp_get_int32(v->data);
		case DP_TYPE_INT64:
			return (double) dp_get_int64(v->data);
		case DP_TYPE_DOUBLE:
			return dp_get_double(v->data);
		case DP_TYPE_DECIMAL128:
		{
			char digits[DP_DECIMAL128_TEXT_SIZE];
			double d;

			(void) dp_decimal128_to_text(v->data, digits);
			errno = 0;
			d = strtod(digits, NULL);

			/* a subnormal result is no error, as in float8in */
			if (errno == ERANGE && (d == 0 || isinf(d)))
				out_of_range(v, typid, NULL);
			return d;
		}

		default:
			wrong_kind(v, typid);
	}
	return 0; /* not reached */
}

/*
 * A numeric: of a double the shortest digits that identify it, all of them.
 */
static Datum
value_to_numeric(const DpValue *v)
{
	switch (v->type)
	{
		case DP_TYPE_INT32:
			return NumericGetDatum(int64_to_numeric(dp_get_int32(v->data)));

		case DP_TYPE_INT64:
			return NumericGetDatum(int64_to_numeric(dp_get_int64(v->data)));

		case DP_TYPE_DOUBLE:
		{
			char digits[DOUBLE_SHORTEST_DECIMAL_LEN];

			double_to_shortest_decimal_buf(dp_get_double(v->data), digits);
			return DirectFunctionCall3(numeric_in, CStringGetDatum(digits),
									   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
		}

		case DP_TYPE_DECIMAL128:
			return NumericGetDatum(dp_decimal128_to_numeric(v->data));

		default:
			wrong_kind(v, NUMERICOID);
	}
	return (Datum) 0; /* not reached */
}

static Timestamp
value_to_timestamp(const DpValue *v, Oid typid)
{
	int64 ms;
	Timestamp t;

	if (v->type != DP_TYPE_DATE)
		wrong_kind(v, typid);
	ms = dp_get_int64(v->data);
	if (pg_sub_s64_overflow(ms, DP_EPOCH_SHIFT_MS, &ms) || pg_mul_s64_overflow(ms, 1000, &t) ||
		!IS_VALID_TIMESTAMP(t))
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
						errmsg("BSON date out of range for type %s", format_type_be(typid))));
	return t;
}

/* The day in UTC, whatever the time of day. */
static Datum
value_to_date(const DpValue *v)
{
	return DirectFunctionCall1(timestamp_date, TimestampGetDatum(value_to_timestamp(v, DATEOID)));
}

/* Expiries are not earlier than the year 1, and not later than this, in seconds since 1970. */
#define EXPIRY_MIN INT64CONST(-62135596800)
#define EXPIRY_MAX INT64CONST(9000000000000)

bool
dp_value_expiry(const DpValue *v, TimestampTz *at)
{
	int64 ms;

	if (v->type == DP_TYPE_DATE)
		ms = dp_get_int64(v->data);
	else if (dp_type_is_number(v->type))
	{
		double seconds = dp_number_approximate(v);

		if (isnan(seconds) || seconds > (double) EXPIRY_MAX)
			return false;
		ms = seconds < (double) EXPIRY_MIN ? EXPIRY_MIN * 1000 : (int64) floor(seconds * 1000);
	}
	else
		return false;
	if (ms > EXPIRY_MAX * 1000)
		return false;
	*at = (Max(ms, EXPIRY_MIN * 1000) - DP_EPOCH_SHIFT_MS) * 1000;
	return true;
}

static Datum
value_to_uuid(const DpValue *v)
{
	pg_uuid_t *uuid;

	if (v->type != DP_TYPE_BINARY || v->data[4] != DP_BINARY_UUID || v->len != 5 + UUID_LEN)
		wrong_kind(v, UUIDOID);
	uuid = palloc(sizeof(pg_uuid_t));
	memcpy(uuid->data, v->data + 5, UUID_LEN);
	return UUIDPGetDatum(uuid);
}

/* The bytes of a binary value of any subtype; those of the old one without their second length. */
static Datum
value_to_bytea(const DpValue *v)
{
	uint32 skip = 5;
	bytea *result;

	if (v->type != DP_TYPE_BINARY)
		wrong_kind(v, BYTEAOID);
	if (v->data[4] == DP_BINARY_OLD && v->len >= 9)
		skip = 9;
	result = palloc(VARHDRSZ + v->len - skip);
	SET_VARSIZE(result, VARHDRSZ + v->len - skip);
	memcpy(VARDATA(result), v->data + skip, v->len - skip);
	return PointerGetDatum(result);
}

/*
 * An SQL array, whose modifier is that of its elements.  Arrays inside the array are further
 * dimensions, unless the elements are of a type that holds arrays itself.
 */
static Datum
value_to_array(const DpValue *v, Oid element, int32 typmod)
{
	const DpTypes *types = dp_types();
	ArrayBuildState *state;
	DpValue inner = *v;
	int ndims = 0;
	int dims[MAXDIM];
	int lbs[MAXDIM];

	for (;;)
	{
		DpIter iter;

		if (ndims == MAXDIM)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("number of array dimensions exceeds the maximum allowed (%d)",
								   MAXDIM)));
		dims[ndims] = -1;
		lbs[ndims] = 1;
		ndims++;
		if (element == types->bson_value || element == JSONBOID || element == JSONOID)
			break;
		dp_iter_init_value(&iter, &inner);
		if (!dp_iter_next_value(&iter, &inner) || inner.type != DP_TYPE_ARRAY)
			break;
	}

	state = initArrayResult(element, CurrentMemoryContext, true);
	collect_elements(v, element, typmod, ndims, 0, dims, state);
	for (int i = 0; i < ndims; i++)
	{
		if (dims[i] <= 0)
			return PointerGetDatum(construct_empty_array(element));
	}
	return makeMdArrayResult(state, ndims, dims, lbs, CurrentMemoryContext, true);
}

/*
 * The elements of an array at one level.  Raises INVALID_PARAMETER_VALUE
 * unless all arrays of a level have the same length.
 */
static void
collect_elements(const DpValue *v, Oid element, int32 typmod, int ndims, int level, int *dims,
				 ArrayBuildState *state)
{
	DpIter iter;
	DpValue child;
	int n = 0;

	dp_iter_init_value(&iter, v);
	while (dp_iter_next_value(&iter, &child))
	{
		CHECK_FOR_INTERRUPTS();
		n++;
		if (level + 1 < ndims)
		{
			if (child.type != DP_TYPE_ARRAY)
				wrong_kind(&child, get_array_type(element));
			collect_elements(&child, element, typmod, ndims, level + 1, dims, state);
		}
		else
		{
			bool isnull;
			Datum d = dp_value_to_datum(&child, element, typmod, &isnull);

			state = accumArrayResult(state, d, isnull, element, CurrentMemoryContext);
		}
	}
	if (dims[level] < 0)
		dims[level] = n;
	else if (dims[level] != n)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("cannot cast BSON array to type %s",
							   format_type_be(get_array_type(element))),
						errdetail("The arrays inside it have different lengths, %d and %d.",
								  dims[level], n)));
}

/*
 * The value is of a type that is never converted to the SQL type.
 */
static void
wrong_kind(const DpValue *v, Oid typid)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("cannot cast BSON %s to type %s", dp_type_name(v->type),
						   format_type_be(typid))));
}

/*
 * The value is a number that the SQL type cannot hold.
 */
static void
out_of_range(const DpValue *v, Oid typid, const char *why)
{
	ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					errmsg("BSON %s out of range for type %s", dp_type_name(v->type),
						   format_type_be(typid)),
					why ? errdetail_internal("%s", why) : 0,
					why ? errhint("Cast it to numeric and round that.") : 0));
}
