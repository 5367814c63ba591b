/*
 * number.c
 *		The four kinds of numbers in BSON: decimal128 as text.
 */
#include "postgres.h"

#include <bson/bson.h>

#include "bson/number.h"

/* The bytes of a decimal128 as libbson holds them. */
static inline bson_decimal128_t
decimal128_load(const uint8 *d)
{
	bson_decimal128_t dec;

	dec.low = (uint64) dp_get_int64(d);
	dec.high = (uint64) dp_get_int64(d + 8);
	return dec;
}

/*
 * Whether the exponent has more than nine digits; libbson does not notice that
 * such an exponent does not fit its integer.
 */
static bool
exponent_is_absurd(const char *text)
{
	const char *p = strpbrk(text, "eE");

	if (p == NULL)
		return false;
	p++;
	if (*p == '+' || *p == '-')
		p++;
	p += strspn(p, "0");
	return strspn(p, "0123456789") > 9;
}

bool
dp_decimal128_from_text(const char *s, int len, uint8 out[DP_DECIMAL128_SIZE])
{
	char		fixed[64];
	char	   *text = fixed;
	bson_decimal128_t dec;
	bool		ok;

	if (len <= 0 || memchr(s, 0, len) != NULL)
		return false;
	if (len >= (int) sizeof(fixed))
		text = palloc(len + 1);
	memcpy(text, s, len);
	text[len] = '\0';
	ok = !exponent_is_absurd(text) &&
		bson_decimal128_from_string_w_len(text, len, &dec);
	if (text != fixed)
		pfree(text);
	if (!ok)
		return false;
	dp_put_int64(out, (int64) dec.low);
	dp_put_int64(out + 8, (int64) dec.high);
	return true;
}

int
dp_decimal128_to_text(const uint8 *d, char buf[DP_DECIMAL128_TEXT_SIZE])
{
	bson_decimal128_t dec = decimal128_load(d);

	StaticAssertStmt(DP_DECIMAL128_TEXT_SIZE >= BSON_DECIMAL128_STRING,
					 "a decimal128 may not fit");
	bson_decimal128_to_string(&dec, buf);
	return strlen(buf);
}
