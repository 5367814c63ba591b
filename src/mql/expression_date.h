/*
 * expression_date.h
 *		The calendar and time zones of the date operators.
 *
 * Dates are milliseconds since 1970 in UTC.  "Local" milliseconds are those
 * that a clock in a time zone would show, counted as if it were in UTC.  The
 * calendar is the Gregorian one, before its introduction too.
 */
#ifndef DP_MQL_EXPRESSION_DATE_H
#define DP_MQL_EXPRESSION_DATE_H

#include "pgtime.h"

#include "mql/expression_node.h"

#define DP_MS_SECOND INT64CONST(1000)
#define DP_MS_MINUTE INT64CONST(60000)
#define DP_MS_HOUR INT64CONST(3600000)
#define DP_MS_DAY INT64CONST(86400000)

/* A zone of PostgreSQL's database, or a fixed offset from UTC. */
typedef struct DpZone
{
	pg_tz *tz;    /* NULL: only the offset */
	int64 offset; /* in milliseconds, east of Greenwich */
} DpZone;

/* The parts of a local time */
typedef struct DpParts
{
	int64 year;
	int month; /* 1 to 12 */
	int day;
	int hour;
	int minute;
	int second;
	int millisecond;
} DpParts;

/* The quotient rounded down, of a positive divisor, and what is left. */
static inline int64
dp_floor_div(int64 a, int64 b)
{
	return a / b - (a % b < 0 ? 1 : 0);
}

static inline int64
dp_floor_mod(int64 a, int64 b)
{
	return a % b + (a % b < 0 ? b : 0);
}

/* The number of a unit of time, from "year" down to "millisecond"; -1: there is none. */
extern int dp_date_unit(const char *name);

/* Its milliseconds; 0 if they vary. */
extern int64 dp_date_unit_ms(int unit);

/* A date some units later; false if it is out of range. */
extern bool dp_date_add(int64 date, int unit, int64 amount, const DpZone *zone, int64 *result);

/* The zone of a name ("Europe/Paris", "UTC") or an offset ("+02:00", "+0200", "-03"). */
extern bool dp_zone_parse(const char *s, uint32 len, DpZone *zone);

/* The zone that an argument names; UTC if it is not given.  False if it is null. */
extern bool dp_zone_arg(const DpNode *node, int i, DpExprState *state, DpZone *zone);

extern int64 dp_zone_local(const DpZone *zone, int64 utc);
extern int64 dp_zone_utc(const DpZone *zone, int64 local);

/* Days since 1970 of a date in the calendar; the month may be any number. */
extern int64 dp_days_of(int64 year, int64 month, int64 day);
extern void dp_parts_of(int64 local, DpParts *parts);
extern int64 dp_parts_to_local(const DpParts *parts);
extern int dp_days_in_month(int64 year, int month);

/* 1 Monday to 7 Sunday */
extern int dp_iso_weekday(int64 days);
extern void dp_iso_week(int64 days, int64 *year, int *week);

/* The days since 1970 of the Monday of week 1 of an ISO year */
extern int64 dp_iso_year_start(int64 year);

/* A date, timestamp or ObjectId as milliseconds; an error for anything else. */
extern int64 dp_date_value(const DpNode *node, const DpValue *v);

/*
 * Reads a date as $dateFromString and $toDate do.  zone is the zone of the text, which must not
 * contain another one then; NULL: the zone in the text, or UTC.  Returns false and sets the reason,
 * in lower case.
 */
extern bool
dp_date_from_text(const char *s, uint32 len, const DpZone *zone, int64 *ms, const char **why);

#endif /* DP_MQL_EXPRESSION_DATE_H */
