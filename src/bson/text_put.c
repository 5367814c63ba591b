/*
 * text_put.c
 *		Scalars from the values that spell them.
 *
 * {"$oid": ".."} and ObjectId("..") have been parsed as a document by now; what
 * is left to do is the same for both.
 */
#include "postgres.h"

#include <math.h>

#include "bson/reader.h"
#include "bson/text_parse.h"

static bool is_string(const DpValue *v);
static int subtype_of(const DpValue *v);

/* Whether there is a value and it is a string. */
static bool
is_string(const DpValue *v)
{
	return v != NULL && v->type == DP_TYPE_STRING;
}

/*
 * A whole number: int32, int64, or a double without a fraction.
 */
bool
dp_number_of_value(const DpValue *v, int64 *i)
{
	double d;

	if (v == NULL)
		return false;
	switch (v->type)
	{
		case DP_TYPE_INT32:
			*i = dp_get_int32(v->data);
			return true;
		case DP_TYPE_INT64:
			*i = dp_get_int64(v->data);
			return true;
		case DP_TYPE_DOUBLE:
			d = dp_get_double(v->data);
			/* also false for NaN */
			if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0) || d != floor(d))
				return false;
			*i = (int64) d;
			return true;
		default:
			return false;
	}
}

/* 24 hexadecimal digits, or what is an ObjectId already. */
int
dp_put_objectid(DpParser *p, uint32 start, const DpValue *v)
{
	uint8 out[DP_OBJECTID_SIZE];

	if (v != NULL && v->type == DP_TYPE_OBJECTID)
	{
		dp_parser_replace(p, start, v->data, v->len);
		return DP_TYPE_OBJECTID;
	}
	if (!is_string(v) || DP_STRING_LEN(v) != 2 * DP_OBJECTID_SIZE ||
		!dp_text_to_hex(DP_STRING_DATA(v), DP_STRING_LEN(v), out))
		return -1;
	dp_parser_replace(p, start, out, sizeof(out));
	return DP_TYPE_OBJECTID;
}

/* A string, symbol or code. */
int
dp_put_string(DpParser *p, uint32 start, uint8 type, const DpValue *v)
{
	if (!is_string(v))
		return -1;
	dp_parser_replace(p, start, v->data, v->len);
	return type;
}

/* A decimal from a string, a whole number, or what is one already. */
int
dp_put_decimal(DpParser *p, uint32 start, const DpValue *v)
{
	uint8 out[DP_DECIMAL128_SIZE];

	if (!is_string(v) || !dp_text_to_decimal(DP_STRING_DATA(v), DP_STRING_LEN(v), out))
		return -1;
	dp_parser_replace(p, start, out, sizeof(out));
	return DP_TYPE_DECIMAL128;
}

/*
 * Binary of the given subtype.  The old one has its length inside, too.  bytes
 * do not overlap what is replaced.
 */
int
dp_put_binary(DpParser *p, uint32 start, uint8 subtype, const uint8 *bytes, uint32 n)
{
	uint32 inner = subtype == DP_BINARY_OLD ? 4 : 0;
	uint8 *out;

	p->b.len = start;
	out = dp_builder_reserve(&p->b, (Size) n + inner + 5);
	dp_put_int32(out, (int32) (n + inner));
	out[4] = subtype;
	if (inner)
		dp_put_int32(out + 5, (int32) n);
	memcpy(out + 5 + inner, bytes, n);
	p->height = 0;
	return DP_TYPE_BINARY;
}

/*
 * A subtype: a number, or one or two hexadecimal digits.  -1 if it is neither.
 */
static int
subtype_of(const DpValue *v)
{
	char digits[2] = { '0', '0' };
	uint8 byte;
	int64 i;

	if (is_string(v))
	{
		uint32 len = DP_STRING_LEN(v);

		if (len < 1 || len > 2)
			return -1;
		memcpy(digits + 2 - len, DP_STRING_DATA(v), len);
		return dp_text_to_hex(digits, 2, &byte) ? byte : -1;
	}
	return dp_number_of_value(v, &i) && i >= 0 && i <= 255 ? (int) i : -1;
}

/* Binary from base64. */
int
dp_put_base64(DpParser *p, uint32 start, const DpValue *base64, const DpValue *subtype)
{
	uint8 *bytes;
	uint32 n;
	int type = -1;
	int which = subtype_of(subtype);

	if (!is_string(base64) || which < 0)
		return -1;
	bytes = palloc(DP_STRING_LEN(base64) + 1);
	if (dp_text_to_base64(DP_STRING_DATA(base64), DP_STRING_LEN(base64), bytes, &n))
		type = dp_put_binary(p, start, (uint8) which, bytes, n);
	pfree(bytes);
	return type;
}

/* Binary from hexadecimal digits. */
int
dp_put_hex(DpParser *p, uint32 start, const DpValue *hex, const DpValue *subtype)
{
	uint8 *bytes;
	int type = -1;
	int which = subtype_of(subtype);

	if (!is_string(hex) || which < 0)
		return -1;
	bytes = palloc(DP_STRING_LEN(hex) + 1);
	if (dp_text_to_hex(DP_STRING_DATA(hex), DP_STRING_LEN(hex), bytes))
		type = dp_put_binary(p, start, (uint8) which, bytes, DP_STRING_LEN(hex) / 2);
	pfree(bytes);
	return type;
}

/* Binary of subtype 4 from the usual form of a UUID. */
int
dp_put_uuid(DpParser *p, uint32 start, const DpValue *v)
{
	uint8 bytes[16];

	if (!is_string(v) || !dp_text_to_uuid(DP_STRING_DATA(v), DP_STRING_LEN(v), bytes))
		return -1;
	return dp_put_binary(p, start, DP_BINARY_UUID, bytes, sizeof(bytes));
}

/* Code; with a scope, if that is not NULL, it is another type. */
int
dp_put_code(DpParser *p, uint32 start, const DpValue *code, const DpValue *scope)
{
	const int height = p->height;
	uint32 n;
	uint8 *out;

	if (!is_string(code))
		return -1;
	if (scope == NULL)
		return dp_put_string(p, start, DP_TYPE_CODE, code);
	if (scope->type != DP_TYPE_DOCUMENT)
		return -1;
	n = 4 + code->len + scope->len;
	out = palloc(n);
	dp_put_int32(out, (int32) n);
	memcpy(out + 4, code->data, code->len);
	memcpy(out + 4 + code->len, scope->data, scope->len);
	dp_parser_replace(p, start, out, n);
	pfree(out);
	p->height = height - 1;
	return DP_TYPE_CODEWSCOPE;
}

/* Seconds and a counter, both unsigned. */
int
dp_put_timestamp(DpParser *p, uint32 start, const DpValue *t, const DpValue *i)
{
	int64 seconds;
	int64 counter;
	uint8 out[8];

	if (!dp_number_of_value(t, &seconds) || !dp_number_of_value(i, &counter) || seconds < 0 ||
		seconds > PG_UINT32_MAX || counter < 0 || counter > PG_UINT32_MAX)
		return -1;
	dp_put_int32(out, (int32) (uint32) counter);
	dp_put_int32(out + 4, (int32) (uint32) seconds);
	dp_parser_replace(p, start, out, sizeof(out));
	return DP_TYPE_TIMESTAMP;
}

/*
 * A regular expression.  With sort, its options are checked and sorted, for input by users;
 * otherwise they are unchanged.
 */
int
dp_put_regex(DpParser *p, uint32 start, const DpValue *pattern, const DpValue *options, bool sort)
{
	uint32 n;
	uint32 noptions = options ? DP_STRING_LEN(options) : 0;
	uint8 *out;
	int type = -1;

	if (!is_string(pattern) || (options != NULL && !is_string(options)))
		return -1;
	n = DP_STRING_LEN(pattern);
	out = palloc(n + noptions + 2);
	memcpy(out, DP_STRING_DATA(pattern), n);
	out[n] = 0;
	if (noptions > 0)
		memcpy(out + n + 1, DP_STRING_DATA(options), noptions);
	out[n + 1 + noptions] = 0;
	if (sort)
	{
		char *first = (char *) out + n + 1;

		for (uint32 i = 1; i < noptions && noptions < 10; i++)
			for (uint32 j = i; j > 0 && first[j - 1] > first[j]; j--)
			{
				char c = first[j];

				first[j] = first[j - 1];
				first[j - 1] = c;
			}
	}
	if (memchr(out, 0, n) == NULL && memchr(out + n + 1, 0, noptions) == NULL &&
		(!sort || dp_regex_options_sorted((char *) out + n + 1, noptions)))
	{
		dp_parser_replace(p, start, out, n + noptions + 2);
		type = DP_TYPE_REGEX;
	}
	pfree(out);
	return type;
}

/* A pointer of the old kind: a collection and an ObjectId. */
int
dp_put_dbpointer(DpParser *p, uint32 start, const DpValue *ref, const DpValue *id)
{
	uint8 *out;
	uint32 n;

	if (!is_string(ref) || id == NULL || id->type != DP_TYPE_OBJECTID)
		return -1;
	n = ref->len + DP_OBJECTID_SIZE;
	out = palloc(n);
	memcpy(out, ref->data, ref->len);
	memcpy(out + ref->len, id->data, DP_OBJECTID_SIZE);
	dp_parser_replace(p, start, out, n);
	pfree(out);
	return DP_TYPE_DBPOINTER;
}

/* A date from ISO 8601, from milliseconds, or what is one already. */
int
dp_put_date(DpParser *p, uint32 start, const DpValue *v)
{
	int64 ms;
	uint8 out[8];

	if (v == NULL)
		return -1;
	if (v->type == DP_TYPE_DATE)
		ms = dp_get_int64(v->data);
	else if (v->type == DP_TYPE_STRING)
	{
		if (!dp_text_to_date(DP_STRING_DATA(v), DP_STRING_LEN(v), &ms))
			return -1;
	}
	else if (!dp_number_of_value(v, &ms))
		return -1;
	dp_put_int64(out, ms);
	dp_parser_replace(p, start, out, sizeof(out));
	return DP_TYPE_DATE;
}
