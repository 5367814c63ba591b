/*
 * expression_convert.c
 *		Operators of types: $type, $isNumber, $convert, and $toInt and the like.
 */
#include "postgres.h"

#include <errno.h>
#include <math.h>

#include "bson/number.h"
#include "mql/expression_convert.h"
#include "mql/expression_date.h"

/* Arguments of $convert */
#define ARG_INPUT 0
#define ARG_TO 1
#define ARG_ON_ERROR 2
#define ARG_ON_NULL 3
#define ARG_FORMAT 4
#define ARG_BYTE_ORDER 5

/* 2^63 and 2^31, the first doubles beyond the integers */
#define TWO_63 9223372036854775808.0

/*
 * $type: the name of the type, "missing" for none.
 */
static bool
type_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;
	const char *name;

	dp_arg(node, 0, state, &v);
	name = dp_operand_type(&v);
	return dp_result_string(result, name, strlen(name));
}

/*
 * $isNumber
 */
static bool
isnumber_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;

	dp_arg(node, 0, state, &v);
	return dp_result_bool(result, dp_type_is_number(v.type));
}

/* ---------------------------------------------------------------- conversions */

/*
 * A number as an int64, its fraction cut off.
 */
static bool
number_to_int64(const DpValue *v, int64 *i, const char **why)
{
	DpValue whole;

	if (v->type == DP_TYPE_DOUBLE)
	{
		double d = dp_get_double(v->data);

		if (isnan(d) || isinf(d))
		{
			*why = "it is not finite";
			return false;
		}
		if (!(d >= -TWO_63 && d < TWO_63))
		{
			*why = "it is out of range";
			return false;
		}
		*i = (int64) d;
		return true;
	}
	if (v->type == DP_TYPE_DECIMAL128 && !dp_decimal_is_finite(v->data))
	{
		*why = "it is not finite";
		return false;
	}
	if (!dp_result_rounded(&whole, v, DP_ROUND_TRUNCATE, 0) || !dp_value_to_int64(&whole, i))
	{
		*why = "it is out of range";
		return false;
	}
	return true;
}

/*
 * The integer that a string spells: a sign and decimal digits.
 */
static bool
string_to_int64(const DpValue *v, int64 *i, const char **why)
{
	const char *s = DP_STRING_DATA(v);
	uint32 len = DP_STRING_LEN(v);
	char *end;

	*why = "the string is not a whole number";
	for (uint32 k = (len > 0 && (s[0] == '-' || s[0] == '+')) ? 1 : 0; k < len; k++)
		if (s[k] < '0' || s[k] > '9')
			return false;
	if (len == 0 || s[len - 1] < '0' || s[len - 1] > '9')
		return false;
	errno = 0;
	*i = strtoi64(s, &end, 10);
	if (errno == ERANGE)
	{
		*why = "it is out of range";
		return false;
	}
	return true;
}

/*
 * Whether the text is a decimal number, or one of the words for infinity and
 * NaN.
 */
static bool
is_number_text(const char *s, uint32 len)
{
	uint32 i = (len > 0 && (s[0] == '-' || s[0] == '+')) ? 1 : 0;
	uint32 digits = 0;

	if (pg_strncasecmp(s + i, "infinity", len - i) == 0 && (len - i == 8 || len - i == 3))
		return true;
	if (len - i == 3 && pg_strncasecmp(s + i, "nan", 3) == 0)
		return true;
	for (; i < len && s[i] >= '0' && s[i] <= '9'; i++)
		digits++;
	if (i < len && s[i] == '.')
		for (i++; i < len && s[i] >= '0' && s[i] <= '9'; i++)
			digits++;
	if (digits == 0)
		return false;
	if (i < len && (s[i] == 'e' || s[i] == 'E'))
	{
		uint32 from;

		i++;
		if (i < len && (s[i] == '-' || s[i] == '+'))
			i++;
		for (from = i; i < len && s[i] >= '0' && s[i] <= '9'; i++)
			;
		if (i == from)
			return false;
	}
	return i == len;
}

/* Whether the text begins as a hexadecimal number. */
static bool
is_hexadecimal(const char *s, uint32 len)
{
	uint32 i = (len > 0 && (s[0] == '-' || s[0] == '+')) ? 1 : 0;

	return len - i > 2 && s[i] == '0' && (s[i + 1] == 'x' || s[i + 1] == 'X');
}

/*
 * The double that a string spells.
 */
static bool
string_to_double(const DpValue *v, double *d, const char **why)
{
	const char *s = DP_STRING_DATA(v);
	uint32 len = DP_STRING_LEN(v);
	char *end;

	*why = "the string is not a number";
	if (!is_hexadecimal(s, len) && !is_number_text(s, len))
		return false;
	errno = 0;
	*d = strtod(s, &end);
	if (end != s + len)
		return false;
	if (errno == ERANGE && (isinf(*d) || *d == 0))
	{
		*why = "it is out of range";
		return false;
	}
	return true;
}

/*
 * The decimal that a string spells, rounded to 34 digits.
 */
static bool
string_to_decimal(const DpValue *v, uint8 out[DP_DECIMAL128_SIZE], const char **why)
{
	const char *s = DP_STRING_DATA(v);
	uint32 len = DP_STRING_LEN(v);
	DpExact e = { 0 };
	uint8 *digits;
	bool point = false;
	int scale = 0;
	int64 exponent = 0;

	*why = "the string is not a number";
	if (!is_number_text(s, len))
		return false;
	if (dp_decimal128_from_text(s, len, out))
	{
		if (s[0] == '-')
			out[15] |= 0x80; /* also NaN */
		return true;
	}

	/* more digits than there are, or an exponent that is out of range */
	digits = palloc(len);
	e.negative = s[0] == '-';
	for (uint32 i = 0; i < len; i++)
	{
		if (s[i] == '.')
			point = true;
		else if (s[i] == 'e' || s[i] == 'E')
		{
			errno = 0;
			exponent = strtoi64(s + i + 1, NULL, 10);
			exponent = Max(Min(exponent, 100000), -100000);
			break;
		}
		else if (s[i] >= '0' && s[i] <= '9')
		{
			if (e.ndigits > 0 || s[i] != '0')
				digits[e.ndigits++] = s[i] - '0';
			scale += point;
		}
	}
	e.point = e.ndigits - scale + (int) exponent;
	while (e.ndigits > 0 && digits[e.ndigits - 1] == 0)
		e.ndigits--;
	e.digits = digits;
	if (e.ndigits == 0)
		e.negative = false;
	dp_exact_round_to_decimal128(&e, 0, out);
	if (!dp_decimal_is_finite(out) || (e.ndigits > 0 && dp_decimal_sign(out) == 0))
	{
		*why = "it is out of range";
		return false;
	}
	return true;
}

/* The bytes of an ObjectId in hexadecimal. */
static bool
string_to_objectid(const DpValue *v, DpValue *result, const char **why)
{
	const char *s = DP_STRING_DATA(v);
	uint8 *bytes;

	*why = "the string has not 24 hexadecimal digits";
	if (DP_STRING_LEN(v) != 2 * DP_OBJECTID_SIZE)
		return false;
	bytes = palloc0(DP_OBJECTID_SIZE);
	for (int i = 0; i < 2 * DP_OBJECTID_SIZE; i++)
	{
		char ch = pg_ascii_tolower((unsigned char) s[i]);

		if (!((ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'f')))
			return false;
		bytes[i / 2] = bytes[i / 2] << 4 | (ch <= '9' ? ch - '0' : ch - 'a' + 10);
	}
	result->type = DP_TYPE_OBJECTID;
	result->data = bytes;
	result->len = DP_OBJECTID_SIZE;
	return true;
}

/*
 * To a date: milliseconds, or a text.
 */
static bool
convert_to_date(const DpNode *node, const DpValue *v, DpValue *result, const char **why)
{
	int64 ms;

	switch (v->type)
	{
		case DP_TYPE_INT64:
		case DP_TYPE_DOUBLE:
		case DP_TYPE_DECIMAL128:
			if (!number_to_int64(v, &ms, why))
				return false;
			break;
		case DP_TYPE_DATE:
		case DP_TYPE_TIMESTAMP:
		case DP_TYPE_OBJECTID:
			ms = dp_date_value(node, v);
			break;
		case DP_TYPE_STRING:
			if (!dp_date_from_text(DP_STRING_DATA(v), DP_STRING_LEN(v), NULL, &ms, why))
				return false;
			break;
		default:
			return false;
	}
	return dp_result_date(result, ms);
}

/* To an int or a long. */
static bool
convert_to_integer(const DpValue *v, const DpConversion *to, DpValue *result, const char **why)
{
	uint8 type = to->type;
	int64 i;

	if (dp_type_is_number(v->type))
	{
		if (!number_to_int64(v, &i, why))
			return false;
	}
	else if (v->type == DP_TYPE_BOOL)
		i = v->data[0] != 0;
	else if (v->type == DP_TYPE_STRING)
	{
		if (!string_to_int64(v, &i, why))
			return false;
	}
	else if (v->type == DP_TYPE_DATE && type == DP_TYPE_INT64)
		i = dp_get_int64(v->data);
	else if (v->type == DP_TYPE_BINARY)
	{
		if (!dp_binary_to_int64(v, type == DP_TYPE_INT64 ? 8 : 4, to->big, &i, why))
			return false;
	}
	else
		return false;
	if (type == DP_TYPE_INT64)
		return dp_result_int64(result, i);
	*why = "it is out of range";
	return i >= PG_INT32_MIN && i <= PG_INT32_MAX && dp_result_int32(result, (int32) i);
}

/* To a double. */
static bool
convert_to_double(const DpValue *v, bool big, DpValue *result, const char **why)
{
	double d;

	if (dp_type_is_number(v->type))
	{
		d = dp_number_to_double(v);
		*why = "it is out of range";
		if (v->type == DP_TYPE_DECIMAL128 && isinf(d) && dp_decimal_is_finite(v->data))
			return false;
	}
	else if (v->type == DP_TYPE_BOOL)
		d = v->data[0] != 0;
	else if (v->type == DP_TYPE_DATE)
		d = (double) dp_get_int64(v->data);
	else if (v->type == DP_TYPE_STRING)
	{
		if (!string_to_double(v, &d, why))
			return false;
	}
	else if (v->type == DP_TYPE_BINARY)
	{
		if (!dp_binary_to_double(v, big, &d, why))
			return false;
	}
	else
		return false;
	return dp_result_double(result, d);
}

/* To a decimal. */
static bool
convert_to_decimal(const DpValue *v, DpValue *result, const char **why)
{
	uint8 decimal[DP_DECIMAL128_SIZE];
	uint8 room[8];
	DpValue i = { room, 8, DP_TYPE_INT64 };

	if (dp_type_is_number(v->type))
		dp_number_to_decimal(v, decimal);
	else if (v->type == DP_TYPE_BOOL || v->type == DP_TYPE_DATE)
	{
		dp_put_int64(room, v->type == DP_TYPE_BOOL ? v->data[0] != 0 : dp_get_int64(v->data));
		dp_number_to_decimal(&i, decimal);
	}
	else if (v->type == DP_TYPE_STRING)
	{
		if (!string_to_decimal(v, decimal, why))
			return false;
	}
	else
		return false;
	return dp_result_decimal(result, decimal);
}

/* To a string. */
static bool
convert_to_string(const DpValue *v, const DpConversion *to, DpValue *result, const char **why)
{
	char *s;
	uint32 len;

	switch (v->type)
	{
		case DP_TYPE_BINARY:
			return dp_binary_to_string(v, to->format, result, why);
		case DP_TYPE_SYMBOL:
		case DP_TYPE_CODE:
			return false;
		case DP_TYPE_DATE:
			*why = "it is not of the years 0 to 9999";
			if (dp_get_int64(v->data) < dp_days_of(0, 1, 1) * DP_MS_DAY ||
				dp_get_int64(v->data) >= dp_days_of(10000, 1, 1) * DP_MS_DAY)
				return false;
			break;
		default:
			break;
	}
	s = dp_value_as_string(v, &len);
	return s != NULL && dp_result_string(result, s, len);
}

/*
 * The value in another type.
 */
static bool
convert_value(const DpNode *node, const DpValue *v, const DpConversion *to, DpValue *result,
			  const char **why)
{
	*why = NULL;
	if (to->format == DP_FORMAT_NONE &&
		((v->type == DP_TYPE_STRING && to->type == DP_TYPE_BINARY) ||
		 (v->type == DP_TYPE_BINARY && to->type == DP_TYPE_STRING)))
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
					  "needs a format between strings and binary data");
	switch (to->type)
	{
		case DP_TYPE_DOUBLE:
			return convert_to_double(v, to->big, result, why);
		case DP_TYPE_INT32:
		case DP_TYPE_INT64:
			return convert_to_integer(v, to, result, why);
		case DP_TYPE_BINARY:
			return dp_convert_to_binary(v, to, result, why);
		case DP_TYPE_DECIMAL128:
			return convert_to_decimal(v, result, why);
		case DP_TYPE_DATE:
			return convert_to_date(node, v, result, why);
		case DP_TYPE_BOOL:
			return dp_result_bool(result, dp_expr_is_true(v));
		case DP_TYPE_OBJECTID:
			if (v->type == DP_TYPE_STRING)
				return string_to_objectid(v, result, why);
			*result = *v;
			return v->type == DP_TYPE_OBJECTID;
		case DP_TYPE_STRING:
			return convert_to_string(v, to, result, why);
		default:
			return false;
	}
}

/* Raises the error of a conversion that failed. */
static void
convert_error(const DpNode *node, const DpValue *v, uint8 type, const char *why)
{
	if (why == NULL)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "cannot convert %s to %s",
					  dp_operand_type(v), dp_type_name(type));
	dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "cannot convert a %s to %s: %s",
				  dp_operand_type(v), dp_type_name(type), why);
}

/*
 * $toInt and so on; which is the type.
 */
static bool
to_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpConversion to = { node->op->which, DP_BINARY_UUID, DP_FORMAT_AUTO, false };
	DpValue v;
	const char *why;

	if (to.type == DP_TYPE_BINARY)
		to.format = DP_FORMAT_UUID;
	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v))
		return dp_result_null(result);
	if (!convert_value(node, &v, &to, result, &why))
		convert_error(node, &v, node->op->which, why);
	return true;
}

/*
 * The type that "to" of $convert names.
 */
static uint8
target_type(const DpNode *node, const DpValue *to)
{
	static const uint8 types[] = { DP_TYPE_DOUBLE,   DP_TYPE_STRING, DP_TYPE_BINARY,
								   DP_TYPE_OBJECTID, DP_TYPE_BOOL,   DP_TYPE_DATE,
								   DP_TYPE_INT32,    DP_TYPE_INT64,  DP_TYPE_DECIMAL128 };
	int64 code;

	if (to->type == DP_TYPE_STRING)
	{
		for (int i = 0; i < (int) lengthof(types); i++)
			if (strcmp(DP_STRING_DATA(to), dp_type_name(types[i])) == 0)
				return types[i];
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "cannot convert to \"%.100s\"",
					  DP_STRING_DATA(to));
	}
	if (!dp_value_to_int64(to, &code))
		dp_node_type_error(node, "the name or the number of a type", to);
	for (int i = 0; i < (int) lengthof(types); i++)
		if (code == types[i])
			return types[i];
	dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "cannot convert to the type " INT64_FORMAT,
				  code);
	return 0; /* not reached */
}

/* The position of the word that an argument is; -1 if it is null or not given. */
static int
word_arg(const DpNode *node, int i, DpExprState *state, const char *what, const char *const *words,
		 int nwords)
{
	DpValue v;

	dp_arg(node, i, state, &v);
	if (dp_is_nullish(&v))
		return -1;
	if (v.type != DP_TYPE_STRING)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs a string as its %s, not %s",
					  what, dp_operand_type(&v));
	for (int w = 0; w < nwords; w++)
		if (strcmp(words[w], DP_STRING_DATA(&v)) == 0)
			return w;
	dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "does not know the %s \"%.100s\"", what,
				  DP_STRING_DATA(&v));
	return -1; /* not reached */
}

/* What $convert converts to: a type, or {type, subtype}. */
static void
conversion_read(const DpNode *node, DpExprState *state, const DpValue *to, DpConversion *conversion)
{
	static const char *const formats[] = { "auto", "base64", "base64url", "hex", "utf8", "uuid" };
	static const char *const orders[] = { "little", "big" };
	DpValue type = *to;
	DpValue subtype;
	int64 n = 0;

	if (to->type == DP_TYPE_DOCUMENT)
	{
		if (!dp_field_find(to->data, to->len, "type", 4, &type))
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs a type in its \"to\"");
		if (dp_field_find(to->data, to->len, "subtype", 7, &subtype) &&
			(!dp_value_to_int64(&subtype, &n) || n < 0 || n > 255 || (n > 9 && n < 128)))
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs a subtype from 0 to 9, or from 128 to 255");
	}
	conversion->type = target_type(node, &type);
	conversion->subtype = (int) n;
	conversion->format =
		DP_FORMAT_AUTO + word_arg(node, ARG_FORMAT, state, "format", formats, lengthof(formats));
	conversion->big =
		word_arg(node, ARG_BYTE_ORDER, state, "byteOrder", orders, lengthof(orders)) == 1;
}

/*
 * $convert: {input, to, onError, onNull, format, byteOrder}
 */
static bool
convert_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue input;
	DpValue to;
	DpConversion conversion;
	const char *why;

	dp_arg(node, ARG_TO, state, &to);
	dp_arg(node, ARG_INPUT, state, &input);
	if (dp_is_nullish(&input))
	{
		if (node->args[ARG_ON_NULL] != NULL)
			return dp_arg(node, ARG_ON_NULL, state, result);
		return dp_result_null(result);
	}
	if (dp_is_nullish(&to))
		return dp_result_null(result);
	conversion_read(node, state, &to, &conversion);
	if (convert_value(node, &input, &conversion, result, &why))
		return true;
	if (node->args[ARG_ON_ERROR] == NULL)
		convert_error(node, &input, conversion.type, why);
	return dp_arg(node, ARG_ON_ERROR, state, result);
}

const DpOperator dp_operators_convert[] = {
	{ .name = "$convert",
	  .eval = convert_eval,
	  .names = "input to ?onError ?onNull ?format ?byteOrder" },
	{ .name = "$isNumber", .eval = isnumber_eval, .min = 1, .max = 1 },
	{ .name = "$toBool", .eval = to_eval, .min = 1, .max = 1, .which = DP_TYPE_BOOL },
	{ .name = "$toDate", .eval = to_eval, .min = 1, .max = 1, .which = DP_TYPE_DATE },
	{ .name = "$toDecimal", .eval = to_eval, .min = 1, .max = 1, .which = DP_TYPE_DECIMAL128 },
	{ .name = "$toDouble", .eval = to_eval, .min = 1, .max = 1, .which = DP_TYPE_DOUBLE },
	{ .name = "$toInt", .eval = to_eval, .min = 1, .max = 1, .which = DP_TYPE_INT32 },
	{ .name = "$toLong", .eval = to_eval, .min = 1, .max = 1, .which = DP_TYPE_INT64 },
	{ .name = "$toObjectId", .eval = to_eval, .min = 1, .max = 1, .which = DP_TYPE_OBJECTID },
	{ .name = "$toString", .eval = to_eval, .min = 1, .max = 1, .which = DP_TYPE_STRING },
	{ .name = "$toUUID", .eval = to_eval, .min = 1, .max = 1, .which = DP_TYPE_BINARY },
	{ .name = "$type", .eval = type_eval, .min = 1, .max = 1 },
	{ NULL }
};
