/*
 * operators_plan.c
 *		Planner support for the comparison of a bson_value with a SQL constant.
 *
 * doc -> 'price' > 5 becomes doc -> 'price' > '5'::bson_value at plan time.  It means the same, and
 * the planner knows more about operators between two bson_values: that equality with a constant
 * fixes a column of an index, so that the next column's order can be used, and that price > 5
 * implies price > 0, so that a partial index can be used.
 *
 * Constants that no BSON value equals exactly (a numeric of too many digits, a time with
 * microseconds, an infinite time) are not changed.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/number.h"
#include "bson/reader.h"
#include "bson/sqltime.h"

/* Not a btree strategy; here it means <> */
#define NOT_EQUAL (BTMaxStrategyNumber + 1)

static struct varlena *exact_value(Datum d, Oid type);
static struct varlena *exact_number(Datum d);
static Node *comparison_simplify(Node *request, int strategy);

/* bson_value_lt_support(internal) -> internal, and so on: one for each operator. */
#define SUPPORT(symbol, strategy)                                                                  \
	DP_FUNCTION(symbol);                                                                           \
	Datum symbol(PG_FUNCTION_ARGS)                                                                 \
	{                                                                                              \
		PG_RETURN_POINTER(comparison_simplify((Node *) PG_GETARG_POINTER(0), strategy));           \
	}

SUPPORT(dp_bson_value_lt_support, BTLessStrategyNumber)
SUPPORT(dp_bson_value_le_support, BTLessEqualStrategyNumber)
SUPPORT(dp_bson_value_eq_support, BTEqualStrategyNumber)
SUPPORT(dp_bson_value_ge_support, BTGreaterEqualStrategyNumber)
SUPPORT(dp_bson_value_gt_support, BTGreaterStrategyNumber)
SUPPORT(dp_bson_value_ne_support, NOT_EQUAL)

/*
 * The comparison with the constant as a bson_value, or NULL if there is
 * nothing to be done.
 */
static Node *
comparison_simplify(Node *request, int strategy)
{
	FuncExpr *call;
	Oid bson_value = dp_types()->bson_value;
	TypeCacheEntry *type;
	Oid operator;
	List *args;
	int position;
	Const *constant;
	struct varlena *value;

	if (!IsA(request, SupportRequestSimplify))
		return NULL;
	call = ((SupportRequestSimplify *) request)->fcall;
	if (list_length(call->args) != 2)
		return NULL;

	position = exprType(linitial(call->args)) == bson_value ? 1 : 0;
	constant = list_nth(call->args, position);
	if (!IsA(constant, Const) || constant->constisnull ||
		exprType(list_nth(call->args, 1 - position)) != bson_value)
		return NULL;

	type = lookup_type_cache(bson_value, TYPECACHE_BTREE_OPFAMILY);
	operator= get_opfamily_member(type->btree_opf, bson_value, bson_value,
								  strategy == NOT_EQUAL ? BTEqualStrategyNumber : strategy);
	if (strategy == NOT_EQUAL && OidIsValid(operator))
		operator= get_negator(operator);
	if (!OidIsValid(operator))
		return NULL;

	value = exact_value(constant->constvalue, constant->consttype);
	if (value == NULL)
		return NULL;
	args = list_copy(call->args);
	lfirst(list_nth_cell(args, position)) =
		makeConst(bson_value, -1, InvalidOid, -1, PointerGetDatum(value), false, false);
	return (Node *) make_opclause(operator, BOOLOID, false, linitial(args), lsecond(args),
								  InvalidOid, InvalidOid);
}

/*
 * The bson_value that equals the SQL value exactly, or NULL if there is none or the type is
 * unknown.
 */
static struct varlena *
exact_value(Datum d, Oid type)
{
	uint8 bytes[5 + UUID_LEN];
	DpValue v = { bytes, 0, DP_TYPE_EOD };
	bool rest = false;
	int infinite = 0;

	switch (type)
	{
		case BOOLOID:
			v.type = DP_TYPE_BOOL;
			v.len = 1;
			bytes[0] = DatumGetBool(d) ? 1 : 0;
			break;

		case INT2OID:
		case INT4OID:
			v.type = DP_TYPE_INT32;
			v.len = 4;
			dp_put_int32(bytes, type == INT2OID ? DatumGetInt16(d) : DatumGetInt32(d));
			break;

		case INT8OID:
			v.type = DP_TYPE_INT64;
			v.len = 8;
			dp_put_int64(bytes, DatumGetInt64(d));
			break;

		case FLOAT4OID:
		case FLOAT8OID:
			v.type = DP_TYPE_DOUBLE;
			v.len = 8;
			dp_put_double(bytes, type == FLOAT4OID ? DatumGetFloat4(d) : DatumGetFloat8(d));
			break;

		case NUMERICOID:
			return exact_number(d);

		case TEXTOID:
		{
			text *t = DatumGetTextPP(d);
			uint32 len = VARSIZE_ANY_EXHDR(t);
			struct varlena *result = palloc(VARHDRSZ + 1 + 4 + len + 1);
			uint8 *p = (uint8 *) VARDATA(result);

			SET_VARSIZE(result, VARHDRSZ + 1 + 4 + len + 1);
			p[0] = DP_TYPE_STRING;
			dp_put_int32(p + 1, len + 1);
			memcpy(p + 5, VARDATA_ANY(t), len);
			p[5 + len] = 0;
			return result;
		}

		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			v.type = DP_TYPE_DATE;
			v.len = 8;
			dp_put_int64(bytes, type == DATEOID ? dp_time_of_date(DatumGetDateADT(d), &infinite)
												: dp_time_of_timestamptz(DatumGetTimestampTz(d),
																		 &rest, &infinite));
			if (rest || infinite != 0)
				return NULL;
			break;

		case UUIDOID:
			v.type = DP_TYPE_BINARY;
			v.len = 5 + UUID_LEN;
			dp_put_int32(bytes, UUID_LEN);
			bytes[4] = DP_BINARY_UUID;
			memcpy(bytes + 5, DatumGetUUIDP(d)->data, UUID_LEN);
			break;

		default:
			if (type != dp_types()->objectid)
				return NULL;
			v.type = DP_TYPE_OBJECTID;
			v.len = DP_OBJECTID_SIZE;
			memcpy(bytes, DatumGetPointer(d), DP_OBJECTID_SIZE);
			break;
	}
	return dp_value_to_varlena(&v);
}

/*
 * The bson_value that equals the numeric, of the type that is compared fastest.
 */
static struct varlena *
exact_number(Datum d)
{
	uint8 bytes[DP_DECIMAL128_SIZE];
	DpValue v = { bytes, 8, DP_TYPE_INT64 };
	DpExact exact;
	DpNumber number;
	char *text;

	dp_exact_from_numeric(DatumGetNumeric(d), &exact);
	dp_number_from_exact(&number, &exact);
	switch (number.kind)
	{
		case DP_NUMBER_INTEGER:
			dp_put_int64(bytes, number.i);
			if (number.i >= PG_INT32_MIN && number.i <= PG_INT32_MAX)
			{
				dp_put_int32(bytes, (int32) number.i);
				v.type = DP_TYPE_INT32;
				v.len = 4;
			}
			break;
		case DP_NUMBER_DOUBLE:
			dp_put_double(bytes, number.d);
			v.type = DP_TYPE_DOUBLE;
			break;
		case DP_NUMBER_DECIMAL:
			text = DatumGetCString(DirectFunctionCall1(numeric_out, d));
			if (!dp_decimal128_from_text(text, strlen(text), bytes))
				return NULL;
			v.type = DP_TYPE_DECIMAL128;
			v.len = DP_DECIMAL128_SIZE;
			break;
	}
	return dp_value_to_varlena(&v);
}
