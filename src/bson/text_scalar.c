/*
 * text_scalar.c
 *		Scalars from their strings, and dates to text.
 *
 * The functions that read return false for an invalid string and raise nothing; the caller reports
 * the error.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"

#include "bson/number.h"
#include "bson/text.h"
#include "bson/text_parse.h"

#define MS_PER_DAY INT64CONST(86400000)

static int hex_digit(char c);
static bool fixed_digits(const char **s, const char *end, int n, int *v);
static int64 days_of_date(int64 year, int month, int day);
static int days_of_month(int64 year, int month);

/*
 * Decimal digits with a sign, within int64.
 */
bool
dp_text_to_int64(const char *s, Size len, int64 *v)
{
	bool negative = len > 0 && *s == '-';
	uint64 u = 0;
	Size i = len > 0 && (*s == '-' || *s == '+') ? 1 : 0;

	if (i == len)
		return false;
	for (; i < len; i++)
	{
		if (!dp_is_digit(s[i]) || pg_mul_u64_overflow(u, 10, &u) ||
			pg_add_u64_overflow(u, s[i] - '0', &u))
			return false;
	}
	if (u > (uint64) PG_INT64_MAX + (negative ? 1 : 0))
		return false;
	*v = (int64) (negative ? -u : u);
	return true;
}

/*
 * A double: a number that is finite, Infinity, -Infinity, NaN, or
 * NaN(0x<16 digits>), which is how a NaN is written that is not the usual one.
 */
bool
dp_text_to_double(const char *s, Size len, double *v)
{
	char copy[64];
	char *buf = copy;
	char *end;
	bool good;

	if (len == 0)
		return false;
	if (len == 8 && memcmp(s, "Infinity", 8) == 0)
		*v = INFINITY;
	else if (len == 9 && (memcmp(s, "-Infinity", 9) == 0 || memcmp(s, "+Infinity", 9) == 0))
		*v = *s == '-' ? -INFINITY : INFINITY;
	else if (len == 3 && memcmp(s, "NaN", 3) == 0)
	{
		uint64 bits = UINT64CONST(0x7FF8000000000000);

		memcpy(v, &bits, sizeof(bits));
	}
	else if (len == 23 && memcmp(s, "NaN(0x", 6) == 0 && s[22] == ')')
	{
		uint8 bytes[8];
		uint64 bits = 0;

		if (!dp_text_to_hex(s + 6, 16, bytes))
			return false;
		for (int i = 0; i < 8; i++)
			bits = bits << 8 | bytes[i];
		memcpy(v, &bits, sizeof(bits));
		return isnan(*v);
	}
	else
	{
		for (Size i = 0; i < len; i++)
			if (!dp_is_digit(s[i]) && (s[i] == '\0' || strchr("+-.eE", s[i]) == NULL))
				return false;
		if (len >= sizeof(copy))
			buf = palloc(len + 1);
		memcpy(buf, s, len);
		buf[len] = '\0';
		*v = strtod(buf, &end);
		good = end == buf + len && !isinf(*v) &&
			   (*v != 0 || strspn(buf, "+-0.") >= strcspn(buf, "eE"));
		if (buf != copy)
			pfree(buf);
		return good;
	}
	return true;
}

/*
 * A decimal128, sixteen bytes as in a document.  Unusual encodings, which digits cannot represent,
 * are written as 0x and the 32 digits of the bytes, the highest first.
 */
bool
dp_text_to_decimal(const char *s, Size len, uint8 *v)
{
	if (len == 34 && s[0] == '0' && s[1] == 'x')
	{
		uint8 bytes[DP_DECIMAL128_SIZE];

		if (!dp_text_to_hex(s + 2, 32, bytes))
			return false;
		for (int i = 0; i < DP_DECIMAL128_SIZE; i++)
			v[i] = bytes[DP_DECIMAL128_SIZE - 1 - i];
		return true;
	}
	return len <= 10000 && dp_decimal128_from_text(s, (int) len, v);
}

/*
 * An even number of hexadecimal digits.
 */
bool
dp_text_to_hex(const char *s, Size len, uint8 *bytes)
{
	if (len % 2 != 0)
		return false;
	for (Size i = 0; i < len; i += 2)
	{
		int high = hex_digit(s[i]);
		int low = hex_digit(s[i + 1]);

		if (high < 0 || low < 0)
			return false;
		bytes[i / 2] = (uint8) (high << 4 | low);
	}
	return true;
}

/* The value of a hexadecimal digit, or -1. */
static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/*
 * Base64, also with the letters for URLs and without the padding at the end.
 * bytes may be s itself.
 */
bool
dp_text_to_base64(const char *s, Size len, uint8 *bytes, uint32 *n)
{
	uint32 bits = 0;
	int have = 0;
	Size out = 0;
	Size digits = len;

	while (digits > 0 && len - digits < 2 && s[digits - 1] == '=')
		digits--;
	if (digits % 4 == 1 || (digits != len && len % 4 != 0))
		return false;
	for (Size i = 0; i < digits; i++)
	{
		char c = s[i];
		int v;

		if (c >= 'A' && c <= 'Z')
			v = c - 'A';
		else if (c >= 'a' && c <= 'z')
			v = c - 'a' + 26;
		else if (c >= '0' && c <= '9')
			v = c - '0' + 52;
		else if (c == '+' || c == '-')
			v = 62;
		else if (c == '/' || c == '_')
			v = 63;
		else
			return false;
		bits = bits << 6 | v;
		have += 6;
		if (have >= 8)
		{
			have -= 8;
			bytes[out++] = (uint8) (bits >> have);
		}
	}
	*n = (uint32) out;
	return true;
}

/*
 * A UUID: 32 hexadecimal digits, with hyphens in the usual places or none.
 */
bool
dp_text_to_uuid(const char *s, Size len, uint8 *bytes)
{
	char digits[32];

	if (len == 32)
		return dp_text_to_hex(s, 32, bytes);
	if (len != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-')
		return false;
	memcpy(digits, s, 8);
	memcpy(digits + 8, s + 9, 4);
	memcpy(digits + 12, s + 14, 4);
	memcpy(digits + 16, s + 19, 4);
	memcpy(digits + 20, s + 24, 12);
	return dp_text_to_hex(digits, 32, bytes);
}

/*
 * Whether these are options of a regular expression that exist, in order.
 */
bool
dp_regex_options_sorted(const char *options, Size len)
{
	for (Size i = 0; i < len; i++)
	{
		if (options[i] == '\0' || strchr("ilmsux", options[i]) == NULL)
			return false;
		if (i > 0 && options[i - 1] >= options[i])
			return false;
	}
	return true;
}

/*
 * Milliseconds since 1970 of an ISO 8601 date and time: a year of four digits,
 * or a sign and four to nine; month, day, time and what follows may be
 * missing; without a zone it is UTC.  Digits beyond milliseconds are ignored.
 */
bool
dp_text_to_date(const char *s, Size len, int64 *ms)
{
	const char *end = s + len;
	int64 year = 0;
	int month = 1;
	int day = 1;
	int hour = 0;
	int minute = 0;
	int second = 0;
	int milli = 0;
	int zone = 0;
	bool negative = false;
	bool dash;
	int n;
	int64 days;
	int64 result;

	if (s < end && (*s == '+' || *s == '-'))
	{
		negative = *s++ == '-';
		for (n = 0; s < end && dp_is_digit(*s) && n < 9; n++)
			year = year * 10 + (*s++ - '0');
		if (n < 4)
			return false;
		if (negative)
			year = -year;
	}
	else
	{
		if (!fixed_digits(&s, end, 4, &n))
			return false;
		year = n;
	}

	dash = s < end && *s == '-';
	if (dash)
		s++;
	if (s < end && dp_is_digit(*s))
	{
		if (!fixed_digits(&s, end, 2, &month))
			return false;
		if (dash && s < end && *s == '-')
			s++;
		else if (dash && s < end)
			return false;
		if (s < end && dp_is_digit(*s))
		{
			if (!fixed_digits(&s, end, 2, &day))
				return false;
		}
		else if (!dash || s[-1] == '-')
			return false;
	}
	else if (dash || s < end)
		return false;

	if (s < end && (*s == 'T' || *s == 't' || *s == ' '))
	{
		s++;
		if (!fixed_digits(&s, end, 2, &hour))
			return false;
		if (s < end && (*s == ':' || dp_is_digit(*s)))
		{
			if (*s == ':')
				s++;
			if (!fixed_digits(&s, end, 2, &minute))
				return false;
			if (s < end && (*s == ':' || dp_is_digit(*s)))
			{
				if (*s == ':')
					s++;
				if (!fixed_digits(&s, end, 2, &second))
					return false;
				if (s < end && (*s == '.' || *s == ','))
				{
					int scale = 100;

					s++;
					if (s >= end || !dp_is_digit(*s))
						return false;
					for (; s < end && dp_is_digit(*s); s++)
					{
						milli += (*s - '0') * scale;
						scale /= 10;
					}
				}
			}
		}
		if (s < end && *s == ' ')
			s++;
		if (s < end && (*s == 'Z' || *s == 'z'))
			s++;
		else if (s < end && (*s == '+' || *s == '-'))
		{
			int sign = *s++ == '-' ? -1 : 1;
			int zone_minutes = 0;

			if (!fixed_digits(&s, end, 2, &zone))
				return false;
			if (s < end && *s == ':')
				s++;
			if (s < end && !fixed_digits(&s, end, 2, &zone_minutes))
				return false;
			if (zone > 23 || zone_minutes > 59)
				return false;
			zone = sign * (zone * 60 + zone_minutes);
		}
	}
	if (s != end)
		return false;
	if (month < 1 || month > 12 || day < 1 || day > days_of_month(year, month) || minute > 59 ||
		second > 59 || hour > 24 || (hour == 24 && (minute != 0 || second != 0 || milli != 0)))
		return false;

	/*
	 * Beyond the range of int64 the days alone may be out of range although days and time together
	 * are not, so count from the next midnight there.
	 */
	days = days_of_date(year, month, day);
	n = ((hour * 60 + minute - zone) * 60 + second) * 1000 + milli;
	if (days < 0)
	{
		days++;
		n -= (int) MS_PER_DAY;
	}
	if (pg_mul_s64_overflow(days, MS_PER_DAY, &result) || pg_add_s64_overflow(result, n, &result))
		return false;
	*ms = result;
	return true;
}

/*
 * Reads exactly n digits.
 */
static bool
fixed_digits(const char **s, const char *end, int n, int *v)
{
	*v = 0;
	if (end - *s < n)
		return false;
	for (; n > 0; n--)
	{
		if (!dp_is_digit(**s))
			return false;
		*v = *v * 10 + (*(*s)++ - '0');
	}
	return true;
}

/*
 * Days since 1970-01-01 of a day in the Gregorian calendar, which is continued
 * to before its beginning.  Years are counted from March, in eras of 400.
 */
static int64
days_of_date(int64 year, int month, int day)
{
	int64 era;
	int of_era;
	int of_year;

	if (month <= 2)
		year--;
	era = (year >= 0 ? year : year - 399) / 400;
	of_era = (int) (year - era * 400);
	of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* The number of days in a month. */
static int
days_of_month(int64 year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	if (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
		return 29;
	return days[month - 1];
}

/*
 * Append milliseconds since 1970 as ISO 8601 in UTC.  Milliseconds are left
 * out when they are 0; a year outside 0000 to 9999 has a sign and at least six
 * digits.
 */
void
dp_date_to_text(StringInfo out, int64 ms)
{
	int64 days = ms / MS_PER_DAY;
	int rest = (int) (ms % MS_PER_DAY);
	int64 era;
	int day_of_era;
	int year_of_era;
	int day_of_year;
	int shifted_month;
	int64 year;
	int month;
	int day;

	if (rest < 0)
	{
		rest += (int) MS_PER_DAY;
		days--;
	}
	days += 719468;
	era = (days >= 0 ? days : days - 146096) / 146097;
	day_of_era = (int) (days - era * 146097);
	year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	shifted_month = (5 * day_of_year + 2) / 153;
	day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
	month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
	year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);

	enlargeStringInfo(out, 40);
	if (year >= 0 && year <= 9999)
	{
		/* the usual case, written without going through a format */
		char *p = out->data + out->len;
		const int parts[] = { month, day, rest / 3600000, rest / 60000 % 60, rest / 1000 % 60 };
		static const char before[] = "--T::";

		*p++ = '0' + year / 1000;
		*p++ = '0' + year / 100 % 10;
		*p++ = '0' + year / 10 % 10;
		*p++ = '0' + year % 10;
		for (int i = 0; i < 5; i++)
		{
			*p++ = before[i];
			*p++ = '0' + parts[i] / 10;
			*p++ = '0' + parts[i] % 10;
		}
		if (rest % 1000 != 0)
		{
			*p++ = '.';
			*p++ = '0' + rest % 1000 / 100;
			*p++ = '0' + rest % 100 / 10;
			*p++ = '0' + rest % 10;
		}
		*p++ = 'Z';
		*p = '\0';
		out->len = p - out->data;
		return;
	}
	appendStringInfo(out, "%c%06lld-%02d-%02dT%02d:%02d:%02d", year < 0 ? '-' : '+',
					 (long long) (year < 0 ? -year : year), month, day, rest / 3600000,
					 rest / 60000 % 60, rest / 1000 % 60);
	if (rest % 1000 != 0)
		appendStringInfo(out, ".%03d", rest % 1000);
	appendStringInfoChar(out, 'Z');
}
