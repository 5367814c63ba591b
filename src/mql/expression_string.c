/*
 * expression_string.c
 *		Operators of strings.  Those whose names end in CP count characters, the
 *		others bytes; case is that of ASCII letters only.
 */
#include "postgres.h"

#include <math.h>

#include "common/shortest_dec.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"

#include "bson/number.h"
#include "bson/text.h"
#include "mql/expression_date.h"

enum
{
	OP_BYTES,
	OP_CP,
	OP_LOWER,
	OP_UPPER,
	OP_TRIM,
	OP_LTRIM,
	OP_RTRIM,
	OP_ONE,
	OP_ALL
};

/* ---------------------------------------------------------------- helpers */

/*
 * A string argument.  Returns false if it is null or missing; raises an error
 * for anything else.
 */
static bool
string_arg(const DpNode *node, int i, DpExprState *state, const char **s, uint32 *len)
{
	DpValue v;

	dp_arg(node, i, state, &v);
	if (dp_is_nullish(&v))
		return false;
	if (v.type != DP_TYPE_STRING)
		dp_node_type_error(node, "a string", &v);
	*s = DP_STRING_DATA(&v);
	*len = DP_STRING_LEN(&v);
	return true;
}

/*
 * The same for a string that may not be null.
 */
static void
string_required(const DpNode *node, int i, DpExprState *state, const char **s, uint32 *len)
{
	DpValue v;

	dp_arg(node, i, state, &v);
	if (v.type != DP_TYPE_STRING)
		dp_node_type_error(node, "a string", &v);
	*s = DP_STRING_DATA(&v);
	*len = DP_STRING_LEN(&v);
}

/* "Jul 20 18:40:00:1", the text of a timestamp: its month, day and time, and its counter */
static char *
timestamp_text(const DpValue *v)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	uint64 bits = (uint64) dp_get_int64(v->data);
	DpParts p;

	dp_parts_of((int64) (bits >> 32) * DP_MS_SECOND, &p);
	return psprintf("%.3s %2d %02d:%02d:%02d:%u", months + 3 * (p.month - 1), p.day, p.hour,
					p.minute, p.second, (uint32) bits);
}

/*
 * The same for operators that also take numbers, dates and timestamps, as their text, and null as
 * "".  Of a double that is six digits.
 */
static void
text_arg(const DpNode *node, int i, DpExprState *state, const char **s, uint32 *len)
{
	DpValue v;
	const char *text;

	dp_arg(node, i, state, &v);
	if (v.type == DP_TYPE_STRING || v.type == DP_TYPE_SYMBOL || v.type == DP_TYPE_CODE)
	{
		*s = DP_STRING_DATA(&v);
		*len = DP_STRING_LEN(&v);
		return;
	}
	if (dp_is_nullish(&v))
	{
		*s = "";
		*len = 0;
		return;
	}
	if (v.type == DP_TYPE_DOUBLE)
	{
		double d = dp_get_double(v.data);

		text = isnan(d) ? "nan" : isinf(d) ? (d < 0 ? "-inf" : "inf") : psprintf("%g", d);
	}
	else if (v.type == DP_TYPE_TIMESTAMP)
		text = timestamp_text(&v);
	else if (v.type == DP_TYPE_BOOL || v.type == DP_TYPE_OBJECTID ||
			 (text = dp_value_as_string(&v, len)) == NULL)
		dp_node_type_error(node, "a string, a number, a date or a timestamp", &v);
	*s = text;
	*len = strlen(text);
}

/* The number of bytes of the character at s. */
static inline uint32
char_len(const char *s, const char *end)
{
	uint32 n = pg_utf_mblen((const unsigned char *) s);

	return Min(n, (uint32) (end - s));
}

uint32
dp_count_chars(const char *s, uint32 len)
{
	uint32 n = 0;

	for (uint32 i = 0; i < len; i++)
		n += ((unsigned char) s[i] & 0xc0) != 0x80;
	return n;
}

/* The byte at which a character begins, len if there are not so many. */
static uint32
char_offset(const char *s, uint32 len, int64 n)
{
	uint32 i = 0;

	for (; n > 0 && i < len; n--)
		i += char_len(s + i, s + len);
	return i;
}

/* Whether a byte is in the middle of a character. */
static inline bool
is_continuation(const char *s, uint32 len, uint32 i)
{
	return i < len && ((unsigned char) s[i] & 0xc0) == 0x80;
}

/*
 * Where a string is found in another, from a position on; -1 if nowhere.
 */
static int64
find_bytes(const char *s, uint32 len, const char *what, uint32 whatlen, uint32 from)
{
	const char *p;

	if (from > len || whatlen > len - from)
		return -1;
	if (whatlen == 0)
		return from;
	p = memmem(s + from, len - from, what, whatlen);
	return p ? p - s : -1;
}

/*
 * The text of a value that has one: strings, numbers, booleans, dates and
 * ObjectIds; NULL for others.
 */
char *
dp_value_as_string(const DpValue *v, uint32 *len)
{
	StringInfoData out;
	char text[DP_DECIMAL128_TEXT_SIZE];

	initStringInfo(&out);
	switch (v->type)
	{
		case DP_TYPE_STRING:
		case DP_TYPE_SYMBOL:
		case DP_TYPE_CODE:
			appendBinaryStringInfo(&out, DP_STRING_DATA(v), DP_STRING_LEN(v));
			break;
		case DP_TYPE_INT32:
			appendStringInfo(&out, "%d", dp_get_int32(v->data));
			break;
		case DP_TYPE_INT64:
			appendStringInfo(&out, INT64_FORMAT, dp_get_int64(v->data));
			break;
		case DP_TYPE_DOUBLE:
		{
			double d = dp_get_double(v->data);

			if (isnan(d))
				appendStringInfoString(&out, "NaN");
			else if (isinf(d))
				appendStringInfoString(&out, d < 0 ? "-Infinity" : "Infinity");
			else if (fabs(d) >= 1e15 && fabs(d) < 1e16)
				appendStringInfo(&out, "%.17g", d);
			else
			{
				char shortest[DOUBLE_SHORTEST_DECIMAL_LEN];

				double_to_shortest_decimal_buf(d, shortest);
				appendStringInfoString(&out, shortest);
			}
			break;
		}
		case DP_TYPE_DECIMAL128:
			dp_decimal128_to_text(v->data, text);
			appendStringInfoString(&out, text);
			break;
		case DP_TYPE_BOOL:
			appendStringInfoString(&out, v->data[0] ? "true" : "false");
			break;
		case DP_TYPE_DATE:
		{
			int64 ms = dp_get_int64(v->data);

			/* milliseconds are always written */
			dp_date_to_text(&out, ms);
			if (ms % 1000 == 0 && out.len > 0 && out.data[out.len - 1] == 'Z')
			{
				out.data[--out.len] = '\0';
				appendStringInfoString(&out, ".000Z");
			}
			break;
		}
		case DP_TYPE_OBJECTID:
			for (int i = 0; i < DP_OBJECTID_SIZE; i++)
				appendStringInfo(&out, "%02x", v->data[i]);
			break;
		default:
			return NULL;
	}
	*len = out.len;
	return out.data;
}

/* ---------------------------------------------------------------- operators */

/*
 * $concat: null if one of the strings is.
 */
static bool
concat_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	StringInfoData out;

	initStringInfo(&out);
	for (int i = 0; i < node->nargs; i++)
	{
		const char *s;
		uint32 len;

		if (!string_arg(node, i, state, &s, &len))
			return dp_result_null(result);
		CHECK_FOR_INTERRUPTS();
		dp_result_check_size((Size) out.len + len);
		appendBinaryStringInfo(&out, s, len);
	}
	return dp_result_string(result, out.data, out.len);
}

/*
 * $indexOfBytes and $indexOfCP: [string, what, start, end]
 */
static bool
indexof_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	bool chars = node->op->which == OP_CP;
	const char *s;
	const char *what;
	uint32 len;
	uint32 whatlen;
	int64 start = 0;
	int64 end;
	int64 found;

	if (!string_arg(node, 0, state, &s, &len))
		return dp_result_null(result);
	string_required(node, 1, state, &what, &whatlen);
	if (chars && len == 0 && whatlen == 0 && node->nargs == 2)
		return dp_result_int32(result, 0);
	end = chars ? dp_count_chars(s, len) : len;
	if (node->nargs > 2)
	{
		start = dp_int_arg(node, 2, state, "start");
		if (start < 0)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs a start that is not negative");
	}
	if (node->nargs > 3)
	{
		int64 given = dp_int_arg(node, 3, state, "end");

		if (given < 0)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs an end that is not negative");
		end = Min(end, given);
	}
	if (start > end)
		return dp_result_int32(result, -1);
	if (chars)
	{
		uint32 from = char_offset(s, len, start);
		uint32 to = char_offset(s, len, end);

		/* it has to begin before the end */
		found = find_bytes(s, len, what, whatlen, from);
		found = found < 0 || found >= to ? -1 : start + dp_count_chars(s + from, found - from);
	}
	else
		found = find_bytes(s, end, what, whatlen, start);
	return dp_result_int32(result, (int32) found);
}

/*
 * $strLenBytes and $strLenCP
 */
static bool
strlen_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const char *s;
	uint32 len;

	string_required(node, 0, state, &s, &len);
	return dp_result_int32(result, node->op->which == OP_CP ? dp_count_chars(s, len) : len);
}

/*
 * $toLower and $toUpper
 */
static bool
case_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	bool upper = node->op->which == OP_UPPER;
	const char *s;
	uint32 len;
	char *p;

	text_arg(node, 0, state, &s, &len);
	p = dp_result_string_room(result, len);
	for (uint32 i = 0; i < len; i++)
		p[i] =
			upper ? pg_ascii_toupper((unsigned char) s[i]) : pg_ascii_tolower((unsigned char) s[i]);
	return true;
}

/*
 * $strcasecmp
 */
static bool
strcasecmp_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const char *a;
	const char *b;
	uint32 alen;
	uint32 blen;

	text_arg(node, 0, state, &a, &alen);
	text_arg(node, 1, state, &b, &blen);
	for (uint32 i = 0; i < Min(alen, blen); i++)
	{
		unsigned char x = pg_ascii_toupper((unsigned char) a[i]);
		unsigned char y = pg_ascii_toupper((unsigned char) b[i]);

		if (x != y)
			return dp_result_int32(result, x < y ? -1 : 1);
	}
	return dp_result_int32(result, (alen > blen) - (alen < blen));
}

/*
 * $substrBytes, $substr: [string, start, length].  A negative length means up to the end, as does a
 * decimal that is no int64.  Doubles are truncated, decimals rounded.
 */
static bool
substrbytes_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const char *s;
	uint32 len;
	DpValue v;
	int64 bounds[2];

	text_arg(node, 0, state, &s, &len);
	for (int i = 0; i < 2; i++)
	{
		DpValue whole;

		dp_arg(node, i + 1, state, &v);
		if (!dp_type_is_number(v.type))
			dp_node_type_error(node, "numbers as start and length", &v);
		dp_result_rounded(&whole, &v,
						  v.type == DP_TYPE_DECIMAL128 ? DP_ROUND_HALF_EVEN : DP_ROUND_TRUNCATE, 0);
		if (dp_value_to_int64(&whole, &bounds[i]))
			continue;
		if (i == 0 || v.type != DP_TYPE_DECIMAL128)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs a start and a length that are whole numbers");
		bounds[i] = -1;
	}
	if (bounds[0] < 0)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs a start that is not negative");
	if (bounds[0] >= len)
		return dp_result_string(result, "", 0);
	if (bounds[1] < 0 || bounds[1] > len - bounds[0])
		bounds[1] = len - bounds[0];
	if (is_continuation(s, len, bounds[0]) || is_continuation(s, len, bounds[0] + bounds[1]))
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "would cut a character in two");
	return dp_result_string(result, s + bounds[0], bounds[1]);
}

/*
 * $substrCP: [string, start, length]
 */
static bool
substrcp_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const char *s;
	uint32 len;
	int32 start;
	int32 length;
	uint32 from;

	text_arg(node, 0, state, &s, &len);
	start = dp_int_arg(node, 1, state, "start");
	length = dp_int_arg(node, 2, state, "length");
	if (start < 0 || length < 0)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
					  "needs a start and a length that are not negative");
	from = char_offset(s, len, start);
	return dp_result_string(result, s + from, char_offset(s + from, len - from, length));
}

/*
 * $split: [string, delimiter]
 */
static bool
split_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const char *s;
	const char *by;
	uint32 len;
	uint32 bylen;
	uint32 from = 0;
	DpValue v[2];
	DpBuilder b;

	for (int i = 0; i < 2; i++)
		dp_arg(node, i, state, &v[i]);
	if (dp_is_nullish(&v[0]) || dp_is_nullish(&v[1]))
		return dp_result_null(result);
	for (int i = 0; i < 2; i++)
		if (v[i].type != DP_TYPE_STRING)
			dp_node_type_error(node, "a string", &v[i]);
	s = DP_STRING_DATA(&v[0]);
	len = DP_STRING_LEN(&v[0]);
	by = DP_STRING_DATA(&v[1]);
	bylen = DP_STRING_LEN(&v[1]);
	if (bylen == 0)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs a delimiter that is not empty");
	dp_result_builder(&b, len + 64);
	dp_builder_begin_array(&b);
	for (;;)
	{
		int64 at = find_bytes(s, len, by, bylen, from);

		CHECK_FOR_INTERRUPTS();
		dp_builder_append_string(&b, NULL, 0, s + from, (at < 0 ? len : at) - from);
		if (at < 0)
			break;
		from = at + bylen;
	}
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/* Whether one of the characters is the one at s. */
static bool
char_is_among(const char *s, uint32 n, const char *chars, uint32 len)
{
	CHECK_FOR_INTERRUPTS();
	for (uint32 i = 0; i < len;)
	{
		uint32 k = char_len(chars + i, chars + len);

		if (k == n && memcmp(chars + i, s, n) == 0)
			return true;
		i += k;
	}
	return false;
}

/*
 * $trim, $ltrim and $rtrim: {input, chars}
 */
static bool
trim_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	/* NUL, the blanks of ASCII and those of Unicode that count */
	static const char blanks[] =
		"\0 \t\n\v\f\r\xc2\xa0\xe1\x9a\x80"
		"\xe2\x80\x80\xe2\x80\x81\xe2\x80\x82\xe2\x80\x83\xe2\x80\x84\xe2\x80\x85"
		"\xe2\x80\x86\xe2\x80\x87\xe2\x80\x88\xe2\x80\x89\xe2\x80\x8a";
	int which = node->op->which;
	const char *chars = blanks;
	uint32 nchars = sizeof(blanks) - 1;
	const char *s;
	uint32 len;

	if (!string_arg(node, 0, state, &s, &len))
		return dp_result_null(result);
	if (node->args[1] != NULL && !string_arg(node, 1, state, &chars, &nchars))
		return dp_result_null(result);
	if (which != OP_RTRIM)
		while (len > 0)
		{
			uint32 n = char_len(s, s + len);

			if (!char_is_among(s, n, chars, nchars))
				break;
			s += n;
			len -= n;
		}
	if (which != OP_LTRIM)
		while (len > 0)
		{
			uint32 n = 1;

			while (n < len && is_continuation(s, len, len - n))
				n++;
			if (!char_is_among(s + len - n, n, chars, nchars))
				break;
			len -= n;
		}
	return dp_result_string(result, s, len);
}

/*
 * $replaceOne and $replaceAll: {input, find, replacement}.  An empty string is
 * found before each character and at the end.
 */
static bool
replace_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	bool all = node->op->which == OP_ALL;
	const char *parts[3];
	uint32 lens[3];
	bool is_null = false;
	StringInfoData out;
	uint32 from = 0;
	const char *s;
	uint32 len;

	for (int i = 0; i < 3; i++)
		is_null = !string_arg(node, i, state, &parts[i], &lens[i]) || is_null;
	if (is_null)
		return dp_result_null(result);
	s = parts[0];
	len = lens[0];
	initStringInfo(&out);
	for (;;)
	{
		int64 at = find_bytes(s, len, parts[1], lens[1], from);

		if (at < 0)
			break;
		CHECK_FOR_INTERRUPTS();
		dp_result_check_size((Size) out.len + (at - from) + lens[2]);
		appendBinaryStringInfo(&out, s + from, at - from);
		appendBinaryStringInfo(&out, parts[2], lens[2]);
		from = at + lens[1];
		if (!all)
			break;
		if (lens[1] == 0)
		{
			uint32 n;

			if (from >= len)
				break;
			n = char_len(s + from, s + len);
			appendBinaryStringInfo(&out, s + from, n);
			from += n;
		}
	}
	appendBinaryStringInfo(&out, s + from, len - from);
	return dp_result_string(result, out.data, out.len);
}

/*
 * $binarySize: the bytes of a string or of binary data.
 */
static bool
binarysize_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;

	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v))
		return dp_result_null(result);
	if (v.type != DP_TYPE_STRING && v.type != DP_TYPE_BINARY)
		dp_node_type_error(node, "a string or binary data", &v);
	/* both have five bytes besides their contents */
	return dp_result_int32(result, v.len - 5);
}

const DpOperator dp_operators_string[] = {
	{ .name = "$binarySize", .eval = binarysize_eval, .min = 1, .max = 1 },
	{ .name = "$concat", .eval = concat_eval, .min = 0, .max = -1 },
	{ .name = "$indexOfBytes", .eval = indexof_eval, .min = 2, .max = 4, .which = OP_BYTES },
	{ .name = "$indexOfCP", .eval = indexof_eval, .min = 2, .max = 4, .which = OP_CP },
	{ .name = "$ltrim", .eval = trim_eval, .names = "input ?chars", .which = OP_LTRIM },
	{ .name = "$replaceAll",
	  .eval = replace_eval,
	  .names = "input find replacement",
	  .which = OP_ALL },
	{ .name = "$replaceOne",
	  .eval = replace_eval,
	  .names = "input find replacement",
	  .which = OP_ONE },
	{ .name = "$rtrim", .eval = trim_eval, .names = "input ?chars", .which = OP_RTRIM },
	{ .name = "$split", .eval = split_eval, .min = 2, .max = 2 },
	{ .name = "$strLenBytes", .eval = strlen_eval, .min = 1, .max = 1, .which = OP_BYTES },
	{ .name = "$strLenCP", .eval = strlen_eval, .min = 1, .max = 1, .which = OP_CP },
	{ .name = "$strcasecmp", .eval = strcasecmp_eval, .min = 2, .max = 2 },
	{ .name = "$substr", .eval = substrbytes_eval, .min = 3, .max = 3 },
	{ .name = "$substrBytes", .eval = substrbytes_eval, .min = 3, .max = 3 },
	{ .name = "$substrCP", .eval = substrcp_eval, .min = 3, .max = 3 },
	{ .name = "$toLower", .eval = case_eval, .min = 1, .max = 1, .which = OP_LOWER },
	{ .name = "$toUpper", .eval = case_eval, .min = 1, .max = 1, .which = OP_UPPER },
	{ .name = "$trim", .eval = trim_eval, .names = "input ?chars", .which = OP_TRIM },
	{ NULL }
};
