/*
 * expression_calendar.c
 *		The calendar and time zones, operators for the parts of a date ($year, $dateToParts and
 *		so on) and $dateFromParts.
 *
 * Zones are those of PostgreSQL's own database.
 */
#include "postgres.h"

#include <ctype.h>

#include "mb/pg_wchar.h"

#include "mql/expression_date.h"

enum
{
	PART_YEAR,
	PART_MONTH,
	PART_DAY,
	PART_HOUR,
	PART_MINUTE,
	PART_SECOND,
	PART_MILLISECOND,
	PART_DAY_OF_YEAR,
	PART_DAY_OF_WEEK,
	PART_WEEK,
	PART_ISO_WEEK,
	PART_ISO_YEAR,
	PART_ISO_DAY
};

/* Days before each month of a year that is no leap year */
static const int days_before[12] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };

/* ---------------------------------------------------------------- calendar */

int64
dp_days_of(int64 year, int64 month, int64 day)
{
	int64 era;
	int64 of_era;
	int64 of_year;

	year += dp_floor_div(month - 1, 12);
	month = dp_floor_mod(month - 1, 12) + 1;
	/* years that begin in March end with the leap day */
	if (month <= 2)
		year--;
	era = dp_floor_div(year, 400);
	of_era = year - era * 400;
	of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468 + day - 1;
}

/* The date of a day in the calendar. */
static void
date_of_days(int64 days, int64 *year, int *month, int *day)
{
	int64 z = days + 719468;
	int64 era = dp_floor_div(z, 146097);
	int64 of_era = z - era * 146097;
	int64 y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64 of_year = of_era - (365 * y + y / 4 - y / 100);
	int64 m = (5 * of_year + 2) / 153;

	*day = (int) (of_year - (153 * m + 2) / 5 + 1);
	*month = (int) (m < 10 ? m + 3 : m - 9);
	*year = y + era * 400 + (*month <= 2 ? 1 : 0);
}

void
dp_parts_of(int64 local, DpParts *parts)
{
	int64 days = dp_floor_div(local, DP_MS_DAY);
	int64 ms = local - days * DP_MS_DAY;

	date_of_days(days, &parts->year, &parts->month, &parts->day);
	parts->hour = (int) (ms / DP_MS_HOUR);
	parts->minute = (int) (ms / DP_MS_MINUTE % 60);
	parts->second = (int) (ms / DP_MS_SECOND % 60);
	parts->millisecond = (int) (ms % 1000);
}

int64
dp_parts_to_local(const DpParts *p)
{
	return dp_days_of(p->year, p->month, p->day) * DP_MS_DAY + p->hour * DP_MS_HOUR +
		   p->minute * DP_MS_MINUTE + p->second * DP_MS_SECOND + p->millisecond;
}

/* Whether a year has a 29th of February. */
static bool
is_leap(int64 year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int
dp_days_in_month(int64 year, int month)
{
	if (month == 12)
		return 31;
	return days_before[month] - days_before[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

int
dp_iso_weekday(int64 days)
{
	return (int) dp_floor_mod(days + 3, 7) + 1;
}

int64
dp_iso_year_start(int64 year)
{
	int64 fourth = dp_days_of(year, 1, 4);

	return fourth - (dp_iso_weekday(fourth) - 1);
}

void
dp_iso_week(int64 days, int64 *year, int *week)
{
	int month;
	int day;

	/* the Thursday of the week determines the year */
	date_of_days(days - dp_iso_weekday(days) + 4, year, &month, &day);
	*week = (int) ((days - dp_iso_year_start(*year)) / 7) + 1;
}

/* The day of the year, from 1. */
static int
day_of_year(const DpParts *p)
{
	return days_before[p->month - 1] + p->day + (p->month > 2 && is_leap(p->year) ? 1 : 0);
}

/* ---------------------------------------------------------------- time zones */

/*
 * Reads an offset: a sign and hh, hhmm or hh:mm.
 */
static bool
offset_parse(const char *s, uint32 len, int64 *offset)
{
	int digits[4] = { 0, 0, 0, 0 };
	int n = 0;

	if (len < 3 || (s[0] != '+' && s[0] != '-'))
		return false;
	for (uint32 i = 1; i < len; i++)
	{
		if (s[i] == ':' && i == 3 && len == 6)
			continue;
		if (!isdigit((unsigned char) s[i]) || n == 4)
			return false;
		digits[n++] = s[i] - '0';
	}
	if (n != 2 && n != 4)
		return false;
	*offset = ((digits[0] * 10 + digits[1]) * 60 + digits[2] * 10 + digits[3]) * DP_MS_MINUTE;
	if (s[0] == '-')
		*offset = -*offset;
	return true;
}

bool
dp_zone_parse(const char *s, uint32 len, DpZone *zone)
{
	char name[TZ_STRLEN_MAX + 1];

	zone->tz = NULL;
	zone->offset = 0;
	if (len == 0 || len > TZ_STRLEN_MAX || memchr(s, 0, len) != NULL)
		return false;
	if (s[0] == '+' || s[0] == '-')
		return offset_parse(s, len, &zone->offset);
	memcpy(name, s, len);
	name[len] = '\0';
	if (pg_strcasecmp(name, "UTC") == 0 || pg_strcasecmp(name, "GMT") == 0)
		return true;
	/*
	 * PostgreSQL also takes POSIX rules, of which "AB5" is one; names of zones have digits only in
	 * these
	 */
	if (strpbrk(name, "0123456789") != NULL && pg_strncasecmp(name, "Etc/", 4) != 0 &&
		pg_strncasecmp(name, "GMT", 3) != 0 && pg_strcasecmp(name, "EST5EDT") != 0 &&
		pg_strcasecmp(name, "CST6CDT") != 0 && pg_strcasecmp(name, "MST7MDT") != 0 &&
		pg_strcasecmp(name, "PST8PDT") != 0)
		return false;
	/* which also takes names in another case */
	zone->tz = pg_tzset(name);
	return zone->tz != NULL && strcmp(pg_get_timezone_name(zone->tz), name) == 0;
}

bool
dp_zone_arg(const DpNode *node, int i, DpExprState *state, DpZone *zone)
{
	DpValue v;

	zone->tz = NULL;
	zone->offset = 0;
	if (node->args[i] == NULL)
		return true;
	dp_arg(node, i, state, &v);
	if (dp_is_nullish(&v))
		return false;
	if (v.type != DP_TYPE_STRING)
		dp_node_type_error(node, "a string as its timezone", &v);
	if (!dp_zone_parse(DP_STRING_DATA(&v), DP_STRING_LEN(&v), zone))
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
					  "does not know the time zone \"%.100s\"", DP_STRING_DATA(&v));
	return true;
}

/* The offset of a zone at a moment. */
static int64
zone_offset(const DpZone *zone, int64 utc)
{
	pg_time_t seconds = dp_floor_div(utc, 1000);
	struct pg_tm *tm;

	if (zone->tz == NULL)
		return zone->offset;
	tm = pg_localtime(&seconds, zone->tz);
	return tm ? tm->tm_gmtoff * DP_MS_SECOND : 0;
}

/* Raises an error for a date so far away that it cannot be counted with. */
static void
check_range(int64 ms)
{
	if (ms > PG_INT64_MAX - 2 * DP_MS_DAY || ms < PG_INT64_MIN + 2 * DP_MS_DAY)
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("date out of range")));
}

int64
dp_zone_local(const DpZone *zone, int64 utc)
{
	if (zone->tz == NULL && zone->offset == 0)
		return utc;
	check_range(utc);
	return utc + zone_offset(zone, utc);
}

/*
 * A local time that comes twice is the earlier moment; one that is skipped is
 * taken by the clock before the change.
 */
int64
dp_zone_utc(const DpZone *zone, int64 local)
{
	int64 before;
	int64 after;

	if (zone->tz == NULL && zone->offset == 0)
		return local;
	check_range(local);
	if (zone->tz == NULL)
		return local - zone->offset;
	before = zone_offset(zone, local - DP_MS_DAY);
	after = zone_offset(zone, local + DP_MS_DAY);
	if (before == after || zone_offset(zone, local - before) == before)
		return local - before;
	if (zone_offset(zone, local - after) == after)
		return local - after;
	return local - before;
}

/* ---------------------------------------------------------------- arguments */

int64
dp_date_value(const DpNode *node, const DpValue *v)
{
	switch (v->type)
	{
		case DP_TYPE_DATE:
			return dp_get_int64(v->data);
		case DP_TYPE_TIMESTAMP:
			return (int64) ((uint64) dp_get_int64(v->data) >> 32) * DP_MS_SECOND;
		case DP_TYPE_OBJECTID:
			/* the seconds of an ObjectId are signed, those of a timestamp are not */
			return (int32) ((uint32) v->data[0] << 24 | (uint32) v->data[1] << 16 |
							(uint32) v->data[2] << 8 | (uint32) v->data[3]) *
				   DP_MS_SECOND;
		default:
			dp_node_type_error(node, "a date, a timestamp or an ObjectId", v);
	}
	return 0; /* not reached */
}

/* ---------------------------------------------------------------- operators */

/*
 * $year and so on: which part it is.
 */
static bool
part_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpZone zone;
	DpValue v;
	DpParts p;
	int64 local;
	int64 days;
	int64 year;
	int week;
	int sunday;
	bool known = dp_zone_arg(node, 1, state, &zone);

	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v) || !known)
		return dp_result_null(result);
	local = dp_zone_local(&zone, dp_date_value(node, &v));
	days = dp_floor_div(local, DP_MS_DAY);
	dp_parts_of(local, &p);
	switch (node->op->which)
	{
		case PART_YEAR:
			return dp_result_integer(result, p.year);
		case PART_MONTH:
			return dp_result_int32(result, p.month);
		case PART_DAY:
			return dp_result_int32(result, p.day);
		case PART_HOUR:
			return dp_result_int32(result, p.hour);
		case PART_MINUTE:
			return dp_result_int32(result, p.minute);
		case PART_SECOND:
			return dp_result_int32(result, p.second);
		case PART_MILLISECOND:
			return dp_result_int32(result, p.millisecond);
		case PART_DAY_OF_YEAR:
			return dp_result_int32(result, day_of_year(&p));
		case PART_DAY_OF_WEEK:
			return dp_result_int32(result, dp_iso_weekday(days) % 7 + 1);
		case PART_WEEK:
			/* weeks begin on Sunday; what is before the first is week 0 */
			sunday = dp_iso_weekday(days) % 7;
			return dp_result_int32(result, (day_of_year(&p) - 1 - sunday + 7) / 7);
		case PART_ISO_WEEK:
			dp_iso_week(days, &year, &week);
			return dp_result_int32(result, week);
		case PART_ISO_YEAR:
			dp_iso_week(days, &year, &week);
			return dp_result_int64(result, year);
		default:
			return dp_result_int32(result, dp_iso_weekday(days));
	}
}

/*
 * $dateToParts: {date, timezone, iso8601}
 */
static bool
toparts_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpZone zone;
	DpValue v;
	DpParts p;
	DpBuilder b;
	int64 local;
	bool iso = false;
	bool known = dp_zone_arg(node, 1, state, &zone);

	if (node->args[2] != NULL)
	{
		dp_arg(node, 2, state, &v);
		if (dp_is_nullish(&v))
			return dp_result_null(result);
		if (v.type != DP_TYPE_BOOL)
			dp_node_type_error(node, "true or false as iso8601", &v);
		iso = v.data[0] != 0;
	}
	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v) || !known)
		return dp_result_null(result);
	local = dp_zone_local(&zone, dp_date_value(node, &v));
	dp_parts_of(local, &p);

	dp_result_builder(&b, 128);
	dp_builder_begin_document(&b);
	if (iso)
	{
		int64 days = dp_floor_div(local, DP_MS_DAY);
		int64 year;
		int week;

		dp_iso_week(days, &year, &week);
		dp_builder_append_int32(&b, "isoWeekYear", 11, (int32) year);
		dp_builder_append_int32(&b, "isoWeek", 7, week);
		dp_builder_append_int32(&b, "isoDayOfWeek", 12, dp_iso_weekday(days));
	}
	else
	{
		dp_builder_append_int32(&b, "year", 4, (int32) p.year);
		dp_builder_append_int32(&b, "month", 5, p.month);
		dp_builder_append_int32(&b, "day", 3, p.day);
	}
	dp_builder_append_int32(&b, "hour", 4, p.hour);
	dp_builder_append_int32(&b, "minute", 6, p.minute);
	dp_builder_append_int32(&b, "second", 6, p.second);
	dp_builder_append_int32(&b, "millisecond", 11, p.millisecond);
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_DOCUMENT);
}

/*
 * The arguments of $dateFromParts, in the order of its row in the table; values
 * beyond the usual ranges count on into the next larger unit.
 */
static bool
fromparts_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	static const char *const names[] = { "year",   "isoWeekYear",  "month", "isoWeek",
										 "day",    "isoDayOfWeek", "hour",  "minute",
										 "second", "millisecond" };
	int64 parts[10] = { 1970, 1970, 1, 1, 1, 1, 0, 0, 0, 0 };
	bool iso = node->args[1] != NULL;
	DpZone zone;
	int64 days;
	bool known = dp_zone_arg(node, 10, state, &zone);

	for (int i = 0; i < 10; i++)
	{
		DpValue v;
		int64 least = i < 2 ? 1 : -32768;
		int64 most = i < 2 ? 9999 : 32767;

		if (node->args[i] == NULL)
			continue;
		dp_arg(node, i, state, &v);
		if (dp_is_nullish(&v))
		{
			known = false;
			continue;
		}
		if (!dp_value_to_int64(&v, &parts[i]))
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs a whole number as its %s, not %s", names[i],
						  dp_type_is_number(v.type) ? "another number" : dp_operand_type(&v));
		if (i >= 8 ? parts[i] < -INT64CONST(1000000000000000) ||
						 parts[i] > INT64CONST(1000000000000000)
				   : parts[i] < least || parts[i] > most)
			dp_node_error(node, ERRCODE_DATETIME_FIELD_OVERFLOW, "has a %s that is out of range",
						  names[i]);
	}
	if (!known)
		return dp_result_null(result);
	days = iso ? dp_iso_year_start(parts[1]) + (parts[3] - 1) * 7 + parts[5] - 1
			   : dp_days_of(parts[0], parts[2], 1) + parts[4] - 1;
	return dp_result_date(result, dp_zone_utc(&zone, days * DP_MS_DAY + parts[6] * DP_MS_HOUR +
														 parts[7] * DP_MS_MINUTE +
														 parts[8] * DP_MS_SECOND + parts[9]));
}

/*
 * The two ways of counting must not be mixed, and one of them must be there.
 */
static void
fromparts_prepare(DpCompiler *c, DpNode *node)
{
	if ((node->args[0] == NULL) == (node->args[1] == NULL))
		dp_compile_error(c, "$dateFromParts needs either \"year\" or \"isoWeekYear\"");
	if (node->args[0] != NULL ? node->args[3] != NULL || node->args[5] != NULL
							  : node->args[2] != NULL || node->args[4] != NULL)
		dp_compile_error(c,
						 "$dateFromParts cannot mix parts of the calendar with parts of ISO weeks");
}

#define PART(n, w)                                                                                 \
	{                                                                                              \
		.name = n, .eval = part_eval, .min = 1, .max = 1, .names = "date ?timezone", .which = w    \
	}

const DpOperator dp_operators_calendar[] = {
	{ .name = "$dateFromParts",
	  .eval = fromparts_eval,
	  .prepare = fromparts_prepare,
	  .names =
		  "?year ?isoWeekYear ?month ?isoWeek ?day ?isoDayOfWeek ?hour ?minute ?second ?millisecond ?timezone" },
	{ .name = "$dateToParts", .eval = toparts_eval, .names = "date ?timezone ?iso8601" },
	PART("$dayOfMonth", PART_DAY),
	PART("$dayOfWeek", PART_DAY_OF_WEEK),
	PART("$dayOfYear", PART_DAY_OF_YEAR),
	PART("$hour", PART_HOUR),
	PART("$isoDayOfWeek", PART_ISO_DAY),
	PART("$isoWeek", PART_ISO_WEEK),
	PART("$isoWeekYear", PART_ISO_YEAR),
	PART("$millisecond", PART_MILLISECOND),
	PART("$minute", PART_MINUTE),
	PART("$month", PART_MONTH),
	PART("$second", PART_SECOND),
	PART("$week", PART_WEEK),
	PART("$year", PART_YEAR),
	{ NULL }
};
