/*
 * decimal.c
 *		decimal128 as text and as numeric.
 *
 * The text is libbson's, whose two functions for it allocate nothing.
 */
#include "postgres.h"

#include <bson/bson.h>
#include <math.h>

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

#include "bson/number.h"

/* The least exponent of a decimal128, and of its greatest digit */
#define MIN_EXPONENT (-6176)
#define MAX_EXPONENT 6111
#define MAX_DIGITS 34

static bool exponent_is_absurd(const char *text);
static bool text_is_zero(const char *text);

bool
dp_decimal128_from_text(const char *s, int len, uint8 out[DP_DECIMAL128_SIZE])
{
	char fixed[64];
	char *text = fixed;
	bson_decimal128_t dec;
	bool ok;

	if (len <= 0 || memchr(s, 0, len) != NULL)
		return false;
	if (len >= (int) sizeof(fixed))
		text = palloc(len + 1);
	memcpy(text, s, len);
	text[len] = '\0';
	ok = !exponent_is_absurd(text) && bson_decimal128_from_string_w_len(text, len, &dec);
	if (text != fixed)
		pfree(text);
	if (!ok)
		return false;
	dp_put_int64(out, (int64) dec.low);
	dp_put_int64(out + 8, (int64) dec.high);
	return true;
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

int
dp_decimal128_to_text(const uint8 *d, char buf[DP_DECIMAL128_TEXT_SIZE])
{
	bson_decimal128_t dec;

	StaticAssertStmt(DP_DECIMAL128_TEXT_SIZE >= BSON_DECIMAL128_STRING, "a decimal128 may not fit");
	dec.low = (uint64) dp_get_int64(d);
	dec.high = (uint64) dp_get_int64(d + 8);
	bson_decimal128_to_string(&dec, buf);
	return strlen(buf);
}

Numeric
dp_decimal128_to_numeric(const uint8 *d)
{
	char text[DP_DECIMAL128_TEXT_SIZE];

	dp_decimal128_to_text(d, text);
	return DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(text),
											   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
}

/*
 * The scale of a zero is limited by decimal128: 0.000 with more zeros than it can represent loses
 * some.
 */
void
dp_numeric_to_decimal128(Numeric n, uint8 out[DP_DECIMAL128_SIZE])
{
	char *text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(n)));

	if (!dp_decimal128_from_text(text, strlen(text), out))
	{
		char *digits = numeric_normalize(n);

		if (text_is_zero(digits))
			digits = pstrdup("0");
		if (!dp_decimal128_from_text(digits, strlen(digits), out))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("numeric value does not fit a decimal128"),
					 errdetail("A decimal128 has 34 digits and exponents from -6176 to 6111.")));
		pfree(digits);
	}
	pfree(text);
}

/* True if the text of a numeric represents 0. */
static bool
text_is_zero(const char *text)
{
	return text[strspn(text, "-.0")] == '\0';
}

void
dp_numeric_round_to_decimal128(Numeric n, uint8 out[DP_DECIMAL128_SIZE])
{
	char *text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(n)));
	bool exact = dp_decimal128_from_text(text, strlen(text), out);
	DpExact e;

	pfree(text);
	if (!exact)
	{
		dp_exact_from_numeric(n, &e);
		dp_exact_round_to_decimal128(&e, 0, out);
	}
}

/*
 * The digits that remain are those down to the least exponent, 34 at most.
 */
void
dp_exact_round_to_decimal128(const DpExact *e, int scale, uint8 out[DP_DECIMAL128_SIZE])
{
	int exponent = Max(e->point - MAX_DIGITS, MIN_EXPONENT);
	int keep = e->point - exponent;
	int ndigits = e->ndigits;
	char text[MAX_DIGITS + 32];
	char *p = text;
	uint8 digits[MAX_DIGITS + 1]; /* the first takes the carry */

	if (e->rank != 0)
	{
		const char *special = e->rank == DP_RANK_NAN ? "NaN"
							  : e->rank < 0          ? "-Infinity"
													 : "Infinity";

		(void) dp_decimal128_from_text(special, strlen(special), out);
		return;
	}
	if (ndigits == 0)
	{
		exponent = Min(Max(-scale, MIN_EXPONENT), MAX_EXPONENT);
		keep = 0;
	}
	else if (keep < 0)
		keep = ndigits = 0; /* less than half of the least that there is */
	memset(digits, 0, sizeof(digits));
	memcpy(digits + 1, e->digits, Min(keep, ndigits));
	if (ndigits > keep)
	{
		uint8 next = e->digits[keep];
		bool odd = (digits[keep] & 1) != 0;

		if (next > 5 || (next == 5 && (odd || ndigits > keep + 1)))
		{
			int i = keep;

			while (digits[i] == 9)
				digits[i--] = 0;
			digits[i]++;
		}
	}
	else
	{
		/* nothing to round: at most the requested zeros */
		while (keep > ndigits && exponent < -scale)
		{
			keep--;
			exponent++;
		}
	}

	if (e->negative)
		*p++ = '-';
	for (int i = 0; i <= keep; i++)
		*p++ = '0' + digits[i];
	p += sprintf(p, "e%d", exponent);
	if (!dp_decimal128_from_text(text, p - text, out))
	{
		const char *infinity = e->negative ? "-Infinity" : "Infinity";

		(void) dp_decimal128_from_text(infinity, strlen(infinity), out);
	}
}

Numeric
dp_double_to_numeric(double d)
{
	uint8 buf[DP_EXACT_MAX_DIGITS];
	char text[DP_EXACT_MAX_DIGITS + 32];
	char *p = text;
	DpExact e;

	dp_exact_from_double(d, &e, buf);
	if (e.rank != 0)
		strcpy(text, e.rank == DP_RANK_NAN ? "NaN" : e.rank < 0 ? "-Infinity" : "Infinity");
	else
	{
		if (e.negative)
			*p++ = '-';
		*p++ = '0';
		for (int i = 0; i < e.ndigits; i++)
			*p++ = '0' + e.digits[i];
		sprintf(p, "e%d", e.point - e.ndigits);
	}
	return DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(text),
											   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
}
