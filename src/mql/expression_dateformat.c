/*
 * expression_dateformat.c
 *		Dates as text: $dateToString, $dateFromString and the conversion of
 *		strings to dates.
 */
#include "postgres.h"

#include <ctype.h>

#include "common/int.h"

#include "mql/expression_date.h"

static const char *const month_names[] = { "January",   "February", "March",    "April",
										   "May",       "June",     "July",     "August",
										   "September", "October",  "November", "December" };

/* The parts of a date read so far; -1: not given */
typedef struct Reading
{
	const char *s;
	const char *end;
	int64 year;
	int month;
	int day;
	int day_of_year;
	int64 iso_year;
	int iso_week;
	int iso_day;
	int hour;
	int minute;
	int second;
	int millisecond;
	DpZone zone;
	bool zone_fixed; /* the caller specified the zone, another one than UTC */
	bool zone_read;  /* the text contains it */
} Reading;

/* ---------------------------------------------------------------- writing */

/*
 * Appends a date in a format.  Returns false, with the offending character in
 * *bad, if the format is not one.
 */
static bool
format_date(StringInfo out, const char *format, uint32 len, int64 utc, const DpZone *zone,
			char *bad)
{
	int64 local = dp_zone_local(zone, utc);
	int64 minutes = (local - utc) / DP_MS_MINUTE;
	int64 days = dp_floor_div(local, DP_MS_DAY);
	DpParts p;
	int64 iso_year;
	int iso_week;
	int year_day;

	dp_parts_of(local, &p);
	dp_iso_week(days, &iso_year, &iso_week);
	year_day = (int) (days - dp_days_of(p.year, 1, 1)) + 1;
	for (uint32 i = 0; i < len; i++)
	{
		if (format[i] != '%')
		{
			appendStringInfoChar(out, format[i]);
			continue;
		}
		*bad = ++i < len ? format[i] : '%';
		if (i >= len)
			return false;
		switch (format[i])
		{
			case '%':
				appendStringInfoChar(out, '%');
				break;
			case 'Y':
				appendStringInfo(out, "%04d", (int) p.year);
				break;
			case 'm':
				appendStringInfo(out, "%02d", p.month);
				break;
			case 'd':
				appendStringInfo(out, "%02d", p.day);
				break;
			case 'H':
				appendStringInfo(out, "%02d", p.hour);
				break;
			case 'M':
				appendStringInfo(out, "%02d", p.minute);
				break;
			case 'S':
				appendStringInfo(out, "%02d", p.second);
				break;
			case 'L':
				appendStringInfo(out, "%03d", p.millisecond);
				break;
			case 'j':
				appendStringInfo(out, "%03d", year_day);
				break;
			case 'w':
				appendStringInfo(out, "%d", dp_iso_weekday(days) % 7 + 1);
				break;
			case 'u':
				appendStringInfo(out, "%d", dp_iso_weekday(days));
				break;
			case 'U':
				appendStringInfo(out, "%02d", (year_day - 1 - dp_iso_weekday(days) % 7 + 7) / 7);
				break;
			case 'V':
				appendStringInfo(out, "%02d", iso_week);
				break;
			case 'G':
				appendStringInfo(out, "%04d", (int) iso_year);
				break;
			case 'b':
				appendStringInfo(out, "%.3s", month_names[p.month - 1]);
				break;
			case 'B':
				appendStringInfoString(out, month_names[p.month - 1]);
				break;
			case 'z':
				appendStringInfo(out, "%c%02d%02d", minutes < 0 ? '-' : '+',
								 (int) (minutes < 0 ? -minutes : minutes) / 60,
								 (int) (minutes < 0 ? -minutes : minutes) % 60);
				break;
			case 'Z':
				appendStringInfo(out, "%d", (int) minutes);
				break;
			default:
				return false;
		}
	}
	return true;
}

/*
 * $dateToString: {date, format, timezone, onNull}
 */
static bool
tostring_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpZone zone;
	DpValue date;
	DpValue v;
	const char *format;
	uint32 len;
	StringInfoData out;
	char bad;
	int64 utc;
	DpParts p;
	bool known = dp_zone_arg(node, 2, state, &zone);

	dp_arg(node, 1, state, &v);
	if (node->args[1] != NULL && dp_is_nullish(&v))
		known = false;
	else if (node->args[1] != NULL && v.type != DP_TYPE_STRING)
		dp_node_type_error(node, "a string as its format", &v);
	dp_arg(node, 0, state, &date);
	if (dp_is_nullish(&date) && node->args[3] != NULL)
		return dp_arg(node, 3, state, result);
	if (!known || dp_is_nullish(&date))
		return dp_result_null(result);
	if (node->args[1] != NULL)
	{
		format = DP_STRING_DATA(&v);
		len = DP_STRING_LEN(&v);
	}
	else
	{
		format = "%Y-%m-%dT%H:%M:%S.%LZ";
		len = strlen(format);
		if (zone.tz != NULL || zone.offset != 0)
			len--;
	}
	utc = dp_date_value(node, &date);
	dp_parts_of(dp_zone_local(&zone, utc), &p);
	if (p.year < 0 || p.year > 9999)
		dp_node_error(node, ERRCODE_DATETIME_FIELD_OVERFLOW, "needs a date of the years 0 to 9999");
	initStringInfo(&out);
	if (!format_date(&out, format, len, utc, &zone, &bad))
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "does not know the format \"%%%c\"",
					  bad);
	return dp_result_string(result, out.data, out.len);
}

/* ---------------------------------------------------------------- reading */

/*
 * Reads a number of least to most digits.
 */
static bool
read_digits(Reading *r, int least, int most, int *result)
{
	int n = 0;
	int value = 0;

	while (n < most && r->s < r->end && isdigit((unsigned char) *r->s))
	{
		value = value * 10 + (*r->s++ - '0');
		n++;
	}
	*result = value;
	return n >= least;
}

/* Skips a character if it is the next. */
static bool
read_char(Reading *r, char ch)
{
	if (r->s < r->end && *r->s == ch)
	{
		r->s++;
		return true;
	}
	return false;
}

/* Reads the name of a month, or its first three letters. */
static bool
read_month(Reading *r, bool whole, bool shortened)
{
	for (int m = 0; m < 12; m++)
	{
		size_t len = strlen(month_names[m]);

		if (whole && (size_t) (r->end - r->s) >= len &&
			pg_strncasecmp(r->s, month_names[m], len) == 0)
		{
			r->s += len;
			r->month = m + 1;
			return true;
		}
	}
	for (int m = 0; m < 12 && shortened; m++)
	{
		if (r->end - r->s >= 3 && pg_strncasecmp(r->s, month_names[m], 3) == 0)
		{
			r->s += 3;
			r->month = m + 1;
			return true;
		}
	}
	return false;
}

/* Reads the fraction of a second: milliseconds, and digits that do not count. */
static bool
read_fraction(Reading *r)
{
	int n = 0;

	r->millisecond = 0;
	for (; r->s < r->end && isdigit((unsigned char) *r->s); r->s++, n++)
		if (n < 3)
			r->millisecond = r->millisecond * 10 + (*r->s - '0');
	for (int i = n; i < 3; i++)
		r->millisecond *= 10;
	return n > 0;
}

/* Reads hh:mm[:ss[.fff]], or the same without separators. */
static bool
read_time(Reading *r)
{
	if (!read_digits(r, 1, 2, &r->hour))
		return false;
	r->minute = 0;
	if (read_char(r, ':'))
	{
		if (!read_digits(r, 2, 2, &r->minute))
			return false;
		if (read_char(r, ':'))
		{
			if (!read_digits(r, 2, 2, &r->second))
				return false;
			if ((read_char(r, '.') || read_char(r, ',')) && !read_fraction(r))
				return false;
		}
	}
	else if (r->s < r->end && isdigit((unsigned char) *r->s))
	{
		if (!read_digits(r, 2, 2, &r->minute))
			return false;
		if (r->s < r->end && isdigit((unsigned char) *r->s) && !read_digits(r, 2, 2, &r->second))
			return false;
		if (read_char(r, '.') && !read_fraction(r))
			return false;
	}
	return true;
}

/* Reads a zone: Z, an offset or a name, up to the end. */
static bool
read_zone(Reading *r)
{
	const char *from = r->s;

	while (r->s < r->end && (isalnum((unsigned char) *r->s) || strchr("/_+-:", *r->s) != NULL))
		r->s++;
	r->zone_read = true;
	if (r->s - from == 1 && (*from == 'Z' || *from == 'z'))
	{
		r->zone.tz = NULL;
		r->zone.offset = 0;
		return true;
	}
	return dp_zone_parse(from, r->s - from, &r->zone);
}

/* Begins to read. */
static void
reading_init(Reading *r, const char *s, uint32 len, const DpZone *zone)
{
	r->s = s;
	r->end = s + len;
	r->year = r->iso_year = -1;
	r->month = r->day = r->day_of_year = r->iso_week = r->iso_day = -1;
	r->hour = r->minute = r->second = r->millisecond = -1;
	r->zone_fixed = zone != NULL && (zone->tz != NULL || zone->offset != 0);
	r->zone_read = false;
	if (zone != NULL)
		r->zone = *zone;
	else
	{
		r->zone.tz = NULL;
		r->zone.offset = 0;
	}
}

/*
 * The moment that was read.  Returns false if it is no date.
 */
static bool
reading_finish(Reading *r, int64 *ms, const char **why)
{
	int64 days;
	int64 local;

	*why = "the string names a time zone, and another one is given beside it";
	if (r->zone_fixed && r->zone_read)
		return false;
	*why = "a part of the date is out of range";
	r->hour = Max(r->hour, 0);
	r->minute = Max(r->minute, 0);
	r->second = Max(r->second, 0);
	r->millisecond = Max(r->millisecond, 0);
	/* 24:00 is the end of the day, and 60 a leap second */
	if (r->hour > 24 || r->minute > 59 || r->second > 60 ||
		(r->hour == 24 && (r->minute > 0 || r->second > 0 || r->millisecond > 0)))
		return false;
	if (r->iso_year >= 0)
	{
		int week = r->iso_week < 0 ? 1 : r->iso_week;
		int day = r->iso_day < 0 ? 1 : r->iso_day;

		if (week < 1 || week > 53 || day < 1 || day > 7)
			return false;
		days = dp_iso_year_start(r->iso_year) + (week - 1) * 7 + day - 1;
	}
	else if (r->day_of_year >= 0)
	{
		if (r->day_of_year < 1 || r->day_of_year > 366)
			return false;
		days = dp_days_of(r->year, 1, 1) + r->day_of_year - 1;
	}
	else
	{
		int month = r->month < 0 ? 1 : r->month;
		int day = r->day < 0 ? 1 : r->day;

		if (month < 1 || month > 12 || day < 1 || day > dp_days_in_month(r->year, month))
			return false;
		days = dp_days_of(r->year, month, day);
	}
	local = days * DP_MS_DAY + r->hour * DP_MS_HOUR + r->minute * DP_MS_MINUTE +
			r->second * DP_MS_SECOND + r->millisecond;
	*ms = dp_zone_utc(&r->zone, local);
	return true;
}

/*
 * Reads the date itself in one of the usual ways.
 */
static bool
read_date(Reading *r)
{
	const char *from = r->s;
	int n = 0;
	int year;

	while (from + n < r->end && isdigit((unsigned char) from[n]))
		n++;
	if (n == 4 || n == 8)
	{
		/* 2018-12-11, 2018/12/11, 20181211 */
		char separator = n == 8 ? 0 : from + 4 < r->end ? from[4] : 0;

		(void) read_digits(r, 4, 4, &year);
		r->year = year;
		if (n == 8)
			return read_digits(r, 2, 2, &r->month) && read_digits(r, 2, 2, &r->day);
		if (separator != '-' && separator != '/')
			return false;
		r->s++;
		if (!read_digits(r, 1, 2, &r->month))
			return false;
		/* a month alone */
		if (!read_char(r, separator))
			return separator == '-' && r->s == r->end;
		return read_digits(r, 1, 2, &r->day);
	}
	if (n == 1 || n == 2)
	{
		/* 12/11/2018, as in America, or 11 December 2018 */
		int first;

		(void) read_digits(r, 1, 2, &first);
		if (read_char(r, '/'))
		{
			r->month = first;
			if (!read_digits(r, 1, 2, &r->day) || !read_char(r, '/') ||
				!read_digits(r, 4, 4, &year))
				return false;
			r->year = year;
			return true;
		}
		r->day = first;
		while (read_char(r, ' ') || read_char(r, '-'))
			;
		if (!read_month(r, true, true))
			return false;
		while (read_char(r, ' ') || read_char(r, '-') || read_char(r, ','))
			;
		if (!read_digits(r, 4, 4, &year))
			return false;
		r->year = year;
		return true;
	}
	/* December 11, 2018 */
	if (!read_month(r, true, true))
		return false;
	while (read_char(r, ' ') || read_char(r, '.'))
		;
	if (!read_digits(r, 1, 2, &r->day))
		return false;
	while (read_char(r, ' ') || read_char(r, ','))
		;
	if (!read_digits(r, 4, 4, &year))
		return false;
	r->year = year;
	return true;
}

/* How many bytes a blank has that may surround a date: ASCII's, NUL and the no-break space. */
static int
blank_len(const char *s, const char *end)
{
	if (s < end && (*s == '\0' || isspace((unsigned char) *s)))
		return 1;
	return end - s >= 2 && memcmp(s, "\xc2\xa0", 2) == 0 ? 2 : 0;
}

bool
dp_date_from_text(const char *s, uint32 len, const DpZone *zone, int64 *ms, const char **why)
{
	Reading r;
	int n;

	*why = "the string is not a date";
	reading_init(&r, s, len, zone);
	while ((n = blank_len(r.s, r.end)) > 0)
		r.s += n;
	while (r.end > r.s && (blank_len(r.end - 1, r.end) == 1 ||
						   (r.end - r.s > 1 && blank_len(r.end - 2, r.end) == 2)))
		r.end -= blank_len(r.end - 1, r.end) == 1 ? 1 : 2;
	if (!read_date(&r))
		return false;
	if (r.s < r.end)
	{
		bool has_time = false;

		if (read_char(&r, 'T') || read_char(&r, 't'))
			has_time = true;
		else
			while (read_char(&r, ' ') || read_char(&r, '\t'))
				has_time = r.s < r.end && isdigit((unsigned char) *r.s);
		if (has_time && !read_time(&r))
			return false;
		while (read_char(&r, ' '))
			;
		if (r.s < r.end && !read_zone(&r))
			return false;
		if (r.s < r.end)
			return false;
	}
	return reading_finish(&r, ms, why);
}

/* The time in a text with a format; false: why is the reason. */
static bool
date_from_format(const char *s, uint32 len, const char *format, uint32 formatlen,
				 const DpZone *zone, int64 *ms, const char **why)
{
	Reading r;

	*why = "the string does not have the format";
	reading_init(&r, s, len, zone);
	for (uint32 i = 0; i < formatlen; i++)
	{
		bool ok = true;
		int n = 0;

		if (format[i] != '%' || ++i == formatlen)
		{
			if (!read_char(&r, format[Min(i, formatlen - 1)]))
				return false;
			continue;
		}
		switch (format[i])
		{
			case '%':
				ok = read_char(&r, '%');
				break;
			case 'Y':
				ok = read_digits(&r, 4, 4, &n);
				r.year = n;
				break;
			case 'm':
				ok = read_digits(&r, 1, 2, &r.month);
				break;
			case 'd':
				ok = read_digits(&r, 1, 2, &r.day);
				break;
			case 'H':
				ok = read_digits(&r, 1, 2, &r.hour);
				break;
			case 'M':
				ok = read_digits(&r, 1, 2, &r.minute);
				break;
			case 'S':
				ok = read_digits(&r, 1, 2, &r.second);
				break;
			case 'L':
				ok = read_digits(&r, 1, 3, &r.millisecond);
				break;
			case 'j':
				ok = read_digits(&r, 1, 3, &r.day_of_year);
				break;
			case 'G':
				ok = read_digits(&r, 4, 4, &n);
				r.iso_year = n;
				break;
			case 'V':
				ok = read_digits(&r, 1, 2, &r.iso_week);
				break;
			case 'u':
				ok = read_digits(&r, 1, 1, &r.iso_day);
				break;
			case 'b':
				ok = read_month(&r, false, true);
				break;
			case 'B':
				ok = read_month(&r, true, false);
				break;
			case 'z':
				ok = read_zone(&r);
				break;
			case 'Z':
			{
				bool west = r.s < r.end && *r.s == '-';

				(void) (read_char(&r, '+') || read_char(&r, '-'));
				ok = read_digits(&r, 1, 4, &n);
				r.zone_read = true;
				r.zone.tz = NULL;
				r.zone.offset = (west ? -n : n) * DP_MS_MINUTE;
				break;
			}
			default:
				*why = "the format has a letter that is not known";
				return false;
		}
		if (!ok)
			return false;
	}
	if (r.s < r.end)
		return false;
	*why = "the format has no year";
	if (r.year < 0 && r.iso_year < 0)
		return false;
	return reading_finish(&r, ms, why);
}

/*
 * $dateFromString: {dateString, format, timezone, onError, onNull}
 */
static bool
fromstring_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpZone zone;
	DpValue s;
	DpValue format;
	const char *why;
	int64 ms;
	bool ok;
	bool known = dp_zone_arg(node, 2, state, &zone);

	dp_arg(node, 1, state, &format);
	if (node->args[1] != NULL && dp_is_nullish(&format))
		known = false;
	else if (node->args[1] != NULL && format.type != DP_TYPE_STRING)
		dp_node_type_error(node, "a string as its format", &format);
	dp_arg(node, 0, state, &s);
	if (dp_is_nullish(&s) && node->args[4] != NULL)
		return dp_arg(node, 4, state, result);
	if (!known || dp_is_nullish(&s))
		return dp_result_null(result);
	if (s.type != DP_TYPE_STRING)
	{
		if (node->args[3] != NULL)
			return dp_arg(node, 3, state, result);
		dp_node_type_error(node, "a string", &s);
	}
	if (node->args[1] != NULL)
		ok = date_from_format(DP_STRING_DATA(&s), DP_STRING_LEN(&s), DP_STRING_DATA(&format),
							  DP_STRING_LEN(&format), node->args[2] ? &zone : NULL, &ms, &why);
	else
		ok = dp_date_from_text(DP_STRING_DATA(&s), DP_STRING_LEN(&s), node->args[2] ? &zone : NULL,
							   &ms, &why);
	if (ok)
		return dp_result_date(result, ms);
	if (node->args[3] != NULL)
		return dp_arg(node, 3, state, result);
	dp_node_error(node, ERRCODE_INVALID_DATETIME_FORMAT, "cannot read the date: %s", why);
	return false; /* not reached */
}

const DpOperator dp_operators_dateformat[] = {
	{ .name = "$dateFromString",
	  .eval = fromstring_eval,
	  .names = "dateString ?format ?timezone ?onError ?onNull" },
	{ .name = "$dateToString", .eval = tostring_eval, .names = "date ?format ?timezone ?onNull" },
	{ NULL }
};
