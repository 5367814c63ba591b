/*
 * operators_cross.c
 *		Comparison of a bson_value with a SQL value, in both directions, and the hashes for
 *		joins between them.
 *
 * The SQL value is compared as the BSON value that it represents: integers and floats as numbers,
 * numeric as a number of any length, text as a string, date, timestamp and timestamptz as a date (a
 * date is its midnight, a timestamp a time in UTC, and microseconds count although no date in BSON
 * has them), uuid as binary of subtype 4.  Values of other classes are less or greater, as always.
 */
#include "postgres.h"

#include <math.h>

#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

#include "bson/compare.h"
#include "bson/number.h"
#include "bson/sqltime.h"

/* A decoded numeric, cached between calls */
typedef struct NumericCache
{
	struct varlena *source;
	DpNumber number;
} NumericCache;

/* Where a value of one class stands to one of another; 0 if it is the same one. */
static inline int
class_compare(const DpValue *v, DpClass class)
{
	int c = dp_type_class[v->type];

	return (c > (int) class) - (c < (int) class);
}

/* Compares a value with an integer. */
static inline int
compare_int64(const DpValue *v, int64 i)
{
	DpNumber number;
	int result = class_compare(v, DP_CLASS_NUMBER);

	if (result != 0)
		return result;
	if (v->type == DP_TYPE_INT32)
		return dp_int64_compare(dp_get_int32(v->data), i);
	number.kind = DP_NUMBER_INTEGER;
	number.i = i;
	return dp_value_compare_number(v, &number);
}

/* Compares a value with a double. */
static inline int
compare_double(const DpValue *v, double d)
{
	DpNumber number;
	int result = class_compare(v, DP_CLASS_NUMBER);

	if (result != 0)
		return result;
	if (v->type == DP_TYPE_DOUBLE)
		return dp_double_compare(dp_get_double(v->data), d);
	dp_number_from_double(&number, d);
	return dp_value_compare_number(v, &number);
}

/*
 * Compares a value with a point in time: ms milliseconds since 1970 and, where
 * rest is set, a fraction of the next.  infinite is -1 or 1 for the infinities.
 */
static inline int
compare_time(const DpValue *v, int64 ms, bool rest, int infinite)
{
	int result = class_compare(v, DP_CLASS_DATE);

	if (result != 0)
		return result;
	if (infinite != 0)
		return -infinite;
	result = dp_int64_compare(dp_get_int64(v->data), ms);
	return result == 0 && rest ? -1 : result;
}

/* The value of an objectid or a uuid; buf has 21 bytes. */
static inline DpValue
value_of_objectid(Datum d)
{
	DpValue v = { (const uint8 *) DatumGetPointer(d), DP_OBJECTID_SIZE, DP_TYPE_OBJECTID };

	return v;
}

static inline DpValue
value_of_uuid(Datum d, uint8 *buf)
{
	DpValue v = { buf, 5 + UUID_LEN, DP_TYPE_BINARY };

	dp_put_int32(buf, UUID_LEN);
	buf[4] = DP_BINARY_UUID;
	memcpy(buf + 5, DatumGetUUIDP(d)->data, UUID_LEN);
	return v;
}

/*
 * The canonical form of a numeric.  It is cached in flinfo, because the same constant usually
 * occurs again.  The result is valid until the next call.
 */
static const DpNumber *
number_of_numeric(Datum d, FmgrInfo *flinfo)
{
	struct varlena *n = PG_DETOAST_DATUM_PACKED(d);
	NumericCache *cache = flinfo->fn_extra;
	MemoryContext old;
	DpExact exact;

	if (cache != NULL && cache->source != NULL && dp_same_bytes(cache->source, n))
	{
		if ((Pointer) n != DatumGetPointer(d))
			pfree(n);
		return &cache->number;
	}

	old = MemoryContextSwitchTo(flinfo->fn_mcxt);
	if (cache == NULL)
		flinfo->fn_extra = cache = palloc0(sizeof(NumericCache));
	else if (cache->source != NULL)
	{
		struct varlena *source = cache->source;

		cache->source = NULL;
		pfree(source);
		if (cache->number.kind == DP_NUMBER_DECIMAL)
			pfree((void *) cache->number.exact.digits);
	}
	dp_exact_from_numeric(DatumGetNumeric(PointerGetDatum(n)), &exact);
	dp_number_from_exact(&cache->number, &exact);
	if (cache->number.kind != DP_NUMBER_DECIMAL && exact.digits != NULL)
		pfree((void *) exact.digits);
	cache->source = PG_DETOAST_DATUM_COPY(PointerGetDatum(n));
	MemoryContextSwitchTo(old);
	if ((Pointer) n != DatumGetPointer(d))
		pfree(n);
	return &cache->number;
}

/*
 * For each type, a function that compares a value with a datum of the type.
 */
static int
compare_int2(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	return compare_int64(v, DatumGetInt16(d));
}

static int
compare_int4(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	return compare_int64(v, DatumGetInt32(d));
}

static int
compare_int8(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	return compare_int64(v, DatumGetInt64(d));
}

static int
compare_float4(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	return compare_double(v, DatumGetFloat4(d));
}

static int
compare_float8(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	return compare_double(v, DatumGetFloat8(d));
}

static int
compare_numeric(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	int result = class_compare(v, DP_CLASS_NUMBER);

	return result != 0 ? result : dp_value_compare_number(v, number_of_numeric(d, flinfo));
}

static int
compare_text(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	text *t = DatumGetTextPP(d);
	int result = dp_value_compare_string(v, VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t));

	if ((Pointer) t != DatumGetPointer(d))
		pfree(t);
	return result;
}

static int
compare_boolean(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	int result = class_compare(v, DP_CLASS_BOOL);

	return result != 0 ? result : (v->data[0] != 0) - (int) DatumGetBool(d);
}

static int
compare_date(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	int infinite;
	int64 ms = dp_time_of_date(DatumGetDateADT(d), &infinite);

	return compare_time(v, ms, false, infinite);
}

static int
compare_timestamptz(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	int infinite;
	bool rest;
	int64 ms = dp_time_of_timestamptz(DatumGetTimestampTz(d), &rest, &infinite);

	return compare_time(v, ms, rest, infinite);
}

/* A timestamp in UTC is the same number. */
#define compare_timestamp compare_timestamptz

static int
compare_uuid(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	uint8 buf[5 + UUID_LEN];
	DpValue other = value_of_uuid(d, buf);

	return dp_value_compare(v, &other);
}

static int
compare_objectid(const DpValue *v, Datum d, FmgrInfo *flinfo)
{
	DpValue other = value_of_objectid(d);

	return dp_value_compare(v, &other);
}

/* For each type, the hash of the value that a datum represents. */
static uint64
hash_int64(int64 i, uint64 seed)
{
	DpNumber number;

	number.kind = DP_NUMBER_INTEGER;
	number.i = i;
	return dp_number_hash(&number, seed);
}

static uint64
hash_of_int2(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	return hash_int64(DatumGetInt16(d), seed);
}

static uint64
hash_of_int4(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	return hash_int64(DatumGetInt32(d), seed);
}

static uint64
hash_of_int8(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	return hash_int64(DatumGetInt64(d), seed);
}

static uint64
hash_double(double d, uint64 seed)
{
	DpNumber number;

	dp_number_from_double(&number, d);
	return dp_number_hash(&number, seed);
}

static uint64
hash_of_float4(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	return hash_double(DatumGetFloat4(d), seed);
}

static uint64
hash_of_float8(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	return hash_double(DatumGetFloat8(d), seed);
}

static uint64
hash_of_numeric(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	return dp_number_hash(number_of_numeric(d, flinfo), seed);
}

static uint64
hash_of_text(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	text *t = DatumGetTextPP(d);
	uint64 result = dp_string_hash(VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t), seed);

	if ((Pointer) t != DatumGetPointer(d))
		pfree(t);
	return result;
}

static uint64
hash_of_boolean(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	uint8 byte = DatumGetBool(d) ? 1 : 0;
	DpValue v = { &byte, 1, DP_TYPE_BOOL };

	return dp_value_hash(&v, seed);
}

/* No date in BSON equals an infinity or a fraction of a millisecond: any hash will do. */
static uint64
hash_time(int64 ms, uint64 seed)
{
	uint8 buf[8];
	DpValue v = { buf, 8, DP_TYPE_DATE };

	dp_put_int64(buf, ms);
	return dp_value_hash(&v, seed);
}

static uint64
hash_of_date(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	int infinite;

	return hash_time(dp_time_of_date(DatumGetDateADT(d), &infinite), seed);
}

static uint64
hash_of_timestamptz(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	int infinite;
	bool rest;

	return hash_time(dp_time_of_timestamptz(DatumGetTimestampTz(d), &rest, &infinite), seed);
}

#define hash_of_timestamp hash_of_timestamptz

static uint64
hash_of_uuid(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	uint8 buf[5 + UUID_LEN];
	DpValue v = value_of_uuid(d, buf);

	return dp_value_hash(&v, seed);
}

static uint64
hash_of_objectid(Datum d, uint64 seed, FmgrInfo *flinfo)
{
	DpValue v = value_of_objectid(d);

	return dp_value_hash(&v, seed);
}

typedef int (*CompareDatum)(const DpValue *v, Datum d, FmgrInfo *flinfo);

/* Compares the bson_value that is argument n with the other argument. */
static inline int
compare_arguments(FunctionCallInfo fcinfo, int n, CompareDatum compare)
{
	struct varlena *a = DP_GETARG_VARLENA(n);
	DpValue v = dp_value_of_varlena(a);
	int result = compare(&v, PG_GETARG_DATUM(1 - n), fcinfo->flinfo);

	PG_FREE_IF_COPY(a, n);
	return result;
}

/* The two functions of an operator: bson_value_lt_int4 and int4_lt_bson_value. */
#define COMPARISON(type, name, op)                                                                 \
	DP_FUNCTION(dp_bson_value_##name##_##type);                                                    \
	Datum dp_bson_value_##name##_##type(PG_FUNCTION_ARGS)                                          \
	{                                                                                              \
		PG_RETURN_BOOL(compare_arguments(fcinfo, 0, compare_##type) op 0);                         \
	}                                                                                              \
	DP_FUNCTION(dp_##type##_##name##_bson_value);                                                  \
	Datum dp_##type##_##name##_bson_value(PG_FUNCTION_ARGS)                                        \
	{                                                                                              \
		PG_RETURN_BOOL(0 op compare_arguments(fcinfo, 1, compare_##type));                         \
	}

/* Everything about one type: operators, btree support, hash support. */
#define CROSS_TYPE(type)                                                                           \
	COMPARISON(type, lt, <)                                                                        \
	COMPARISON(type, le, <=)                                                                       \
	COMPARISON(type, eq, ==)                                                                       \
	COMPARISON(type, ne, !=)                                                                       \
	COMPARISON(type, ge, >=)                                                                       \
	COMPARISON(type, gt, >)                                                                        \
	DP_FUNCTION(dp_bson_value_cmp_##type);                                                         \
	Datum dp_bson_value_cmp_##type(PG_FUNCTION_ARGS)                                               \
	{                                                                                              \
		PG_RETURN_INT32(compare_arguments(fcinfo, 0, compare_##type));                             \
	}                                                                                              \
	DP_FUNCTION(dp_##type##_cmp_bson_value);                                                       \
	Datum dp_##type##_cmp_bson_value(PG_FUNCTION_ARGS)                                             \
	{                                                                                              \
		int result = compare_arguments(fcinfo, 1, compare_##type);                                 \
		PG_RETURN_INT32((result < 0) - (result > 0));                                              \
	}                                                                                              \
	DP_FUNCTION(dp_##type##_bson_hash);                                                            \
	Datum dp_##type##_bson_hash(PG_FUNCTION_ARGS)                                                  \
	{                                                                                              \
		PG_RETURN_UINT32((uint32) hash_of_##type(PG_GETARG_DATUM(0), 0, fcinfo->flinfo));          \
	}                                                                                              \
	DP_FUNCTION(dp_##type##_bson_hash_extended);                                                   \
	Datum dp_##type##_bson_hash_extended(PG_FUNCTION_ARGS)                                         \
	{                                                                                              \
		PG_RETURN_UINT64(hash_of_##type(PG_GETARG_DATUM(0), (uint64) PG_GETARG_INT64(1),           \
										fcinfo->flinfo));                                          \
	}

CROSS_TYPE(int2)
CROSS_TYPE(int4)
CROSS_TYPE(int8)
CROSS_TYPE(float4)
CROSS_TYPE(float8)
CROSS_TYPE(numeric)
CROSS_TYPE(text)
CROSS_TYPE(boolean)
CROSS_TYPE(date)
CROSS_TYPE(timestamp)
CROSS_TYPE(timestamptz)
CROSS_TYPE(uuid)
CROSS_TYPE(objectid)

/*
 * The order of two SQL values of one type as values in BSON, where it is not
 * the order that PostgreSQL gives them: NaN comes first.
 */
DP_FUNCTION(dp_float4_bson_cmp);
Datum
dp_float4_bson_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(dp_double_compare(PG_GETARG_FLOAT4(0), PG_GETARG_FLOAT4(1)));
}

DP_FUNCTION(dp_float8_bson_cmp);
Datum
dp_float8_bson_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(dp_double_compare(PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1)));
}

DP_FUNCTION(dp_numeric_bson_cmp);
Datum
dp_numeric_bson_cmp(PG_FUNCTION_ARGS)
{
	Numeric a = PG_GETARG_NUMERIC(0);
	Numeric b = PG_GETARG_NUMERIC(1);
	int result;

	if (numeric_is_nan(a) || numeric_is_nan(b))
		result = numeric_is_nan(b) - numeric_is_nan(a);
	else
		result =
			DatumGetInt32(DirectFunctionCall2(numeric_cmp, NumericGetDatum(a), NumericGetDatum(b)));
	PG_FREE_IF_COPY(a, 0);
	PG_FREE_IF_COPY(b, 1);
	PG_RETURN_INT32(result);
}

/*
 * Whether two texts are the same string: the same bytes, whatever the collation.
 */
DP_FUNCTION(dp_text_bson_eq);
Datum
dp_text_bson_eq(PG_FUNCTION_ARGS)
{
	text *a = PG_GETARG_TEXT_PP(0);
	text *b = PG_GETARG_TEXT_PP(1);
	bool result = dp_same_bytes(a, b);

	PG_FREE_IF_COPY(a, 0);
	PG_FREE_IF_COPY(b, 1);
	PG_RETURN_BOOL(result);
}
