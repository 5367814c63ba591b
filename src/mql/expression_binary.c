/*
 * expression_binary.c
 *		Conversions of binary data to and from strings and numbers.
 */
#include "postgres.h"

#include "bson/limits.h"
#include "bson/text.h"
#include "bson/text_parse.h"
#include "bson/validate.h"
#include "mql/expression_convert.h"

#define UUID_LEN 16
#define UUID_TEXT_LEN 36

/* The bytes of binary data, and their number */
#define BINARY_DATA(v) ((v)->data + 5)
#define BINARY_LEN(v) ((v)->len - 5)

/* Room for n bytes in a result of binary data. */
static uint8 *
binary_room(DpValue *result, int subtype, uint32 n)
{
	uint8 *p = palloc(5 + (Size) n);

	dp_put_int32(p, (int32) n);
	p[4] = (uint8) subtype;
	result->type = DP_TYPE_BINARY;
	result->data = p;
	result->len = 5 + n;
	return p + 5;
}

/* Copies n bytes, in reverse order if the number has its highest byte first. */
static void
copy_ordered(uint8 *out, const uint8 *in, uint32 n, bool big)
{
	for (uint32 i = 0; i < n; i++)
		out[i] = in[big ? n - 1 - i : i];
}

/* A string that spells binary data. */
static bool
binary_of_string(const DpValue *v, const DpConversion *to, DpValue *result, const char **why)
{
	const char *s = DP_STRING_DATA(v);
	uint32 len = DP_STRING_LEN(v);
	uint8 *bytes;
	uint32 n = len;
	bool ok = false;

	*why = "the format uuid and the subtype 4 need each other";
	if ((to->format == DP_FORMAT_UUID) != (to->subtype == DP_BINARY_UUID))
		return false;
	*why = "the string does not have the format";
	bytes = binary_room(result, to->subtype, len);
	switch (to->format)
	{
		case DP_FORMAT_BASE64:
			ok = len % 4 == 0 && memchr(s, '-', len) == NULL && memchr(s, '_', len) == NULL &&
				 dp_text_to_base64(s, len, bytes, &n);
			break;
		case DP_FORMAT_BASE64URL:
			ok = memchr(s, '+', len) == NULL && memchr(s, '/', len) == NULL &&
				 dp_text_to_base64(s, len, bytes, &n);
			break;
		case DP_FORMAT_HEX:
			ok = dp_text_to_hex(s, len, bytes);
			n = len / 2;
			break;
		case DP_FORMAT_UTF8:
			memcpy(bytes, s, len);
			ok = true;
			break;
		case DP_FORMAT_UUID:
			ok = len == UUID_TEXT_LEN && dp_text_to_uuid(s, len, bytes);
			n = UUID_LEN;
			break;
		case DP_FORMAT_NONE:
		case DP_FORMAT_AUTO:
			break;
	}
	dp_put_int32((uint8 *) result->data, (int32) n);
	result->len = 5 + n;
	return ok;
}

bool
dp_convert_to_binary(const DpValue *v, const DpConversion *to, DpValue *result, const char **why)
{
	switch (v->type)
	{
		case DP_TYPE_STRING:
			return binary_of_string(v, to, result, why);
		case DP_TYPE_INT32:
		case DP_TYPE_INT64:
		case DP_TYPE_DOUBLE:
			copy_ordered(binary_room(result, to->subtype, v->len), v->data, v->len, to->big);
			return true;
		case DP_TYPE_BINARY:
			*why = "it has another subtype";
			*result = *v;
			return v->data[4] == to->subtype;
		default:
			return false;
	}
}

bool
dp_binary_to_string(const DpValue *v, DpBinaryFormat format, DpValue *result, const char **why)
{
	const uint8 *bytes = BINARY_DATA(v);
	uint32 n = BINARY_LEN(v);
	bool is_uuid = v->data[4] == DP_BINARY_UUID && n == UUID_LEN;
	char *out;
	char *end;

	if (format == DP_FORMAT_AUTO)
		format = is_uuid ? DP_FORMAT_UUID : DP_FORMAT_BASE64;
	*why = "it is too large";
	if (n > (uint32) dp_max_document_size ||
		(format == DP_FORMAT_HEX && n >= dp_max_document_size / 2))
		return false;
	*why = NULL;
	switch (format)
	{
		case DP_FORMAT_UTF8:
			*why = "it is not valid UTF-8";
			return dp_utf8_valid(bytes, n) == n &&
				   dp_result_string(result, (const char *) bytes, n);
		case DP_FORMAT_UUID:
			*why = "it is no UUID";
			if (!is_uuid)
				return false;
			/* FALLTHROUGH */
		case DP_FORMAT_HEX:
			out = end = palloc(2 * (Size) n + 5);
			for (uint32 i = 0; i < n; i++)
			{
				if (format == DP_FORMAT_UUID && (i == 4 || i == 6 || i == 8 || i == 10))
					*end++ = '-';
				end += sprintf(end, format == DP_FORMAT_UUID ? "%02x" : "%02X", bytes[i]);
			}
			break;
		default:
			out = palloc(DP_BASE64_SIZE(n));
			end = dp_base64_write(out, bytes, n, format == DP_FORMAT_BASE64URL);
			break;
	}
	return dp_result_string(result, out, end - out);
}

bool
dp_binary_to_int64(const DpValue *v, uint32 most, bool big, int64 *i, const char **why)
{
	uint32 n = BINARY_LEN(v);
	uint8 bytes[8];

	*why = "it has not as many bytes as a number";
	if ((n != 1 && n != 2 && n != 4 && n != 8) || n > most)
		return false;
	copy_ordered(bytes, BINARY_DATA(v), n, big);
	*i = (int8) bytes[n - 1];
	for (int k = (int) n - 2; k >= 0; k--)
		*i = (int64) ((uint64) *i << 8 | bytes[k]);
	return true;
}

bool
dp_binary_to_double(const DpValue *v, bool big, double *d, const char **why)
{
	uint32 n = BINARY_LEN(v);
	uint8 bytes[8];
	float f;

	*why = "it has neither four nor eight bytes";
	if (n != 4 && n != 8)
		return false;
	copy_ordered(bytes, BINARY_DATA(v), n, big);
	if (n == 8)
		*d = dp_get_double(bytes);
	else
	{
		int32 bits = dp_get_int32(bytes);

		memcpy(&f, &bits, sizeof(f));
		*d = f;
	}
	return true;
}
