/*
 * start.c
 *		bucket_start(): the beginning of the span that contains a time.
 *
 * There are three kinds of width.  Months follow the calendar of the zone; days its clock; hours
 * and less the elapsed time, on the grid that the zone's clock shows on both sides of a change of
 * its offset.  Without changes (UTC, a fixed offset) the last two are one division.
 */
#include "postgres.h"

#include "common/int.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/timestamp.h"

#include "bson/cast.h"
#include "types/bucket/start.h"

/* Monday, 3 January 2000 */
#define MONDAY (2 * USECS_PER_DAY)

/* The cache of bucket_start(): the arguments that determine the span */
typedef struct StartCache
{
	DpSpan span;
	bool valid;
	bool has_origin;
	bool has_zone;
	Interval width;
	int64 origin;
	uint32 zonelen;
	char zone[TZ_STRLEN_MAX + 1];
} StartCache;

static int64 zone_offset(const DpZone *zone, TimestampTz t);
static TimestampTz boundary(const DpSpan *span, int64 k);
static void find_by_clock(DpSpan *span, TimestampTz t);
static void find_by_time(DpSpan *span, TimestampTz t);
static DpSpan *
span_argument(FunctionCallInfo fcinfo, const int64 *origin, const char *zone, uint32 zonelen);

static void
pg_attribute_noreturn() out_of_range(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("timestamp out of range")));
}

void
dp_span_init(DpSpan *span, const Interval *width, const TimestampTz *origin, const char *zone,
			 uint32 zonelen)
{
	int64 days;

	memset(span, 0, sizeof(DpSpan));
	if (zone != NULL && !dp_zone_parse(zone, zonelen, &span->zone))
		ereport(
			ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("time zone \"%.*s\" not recognized", (int) Min(zonelen, 100), zone),
			 errhint(
				 "Use the full name of a zone (\"Europe/Paris\"), \"UTC\", or an offset (\"+02:00\").")));

	if (width->month != 0 && (width->day != 0 || width->time != 0))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("bucket width must not mix months with days or hours")));
	if (width->month != 0)
	{
		span->kind = DP_SPAN_MONTHS;
		span->step = width->month;
	}
	else
	{
		span->kind = width->day != 0 || width->time >= USECS_PER_DAY ? DP_SPAN_DAYS : DP_SPAN_TIME;
		if (pg_mul_s64_overflow(width->day, USECS_PER_DAY, &days) ||
			pg_add_s64_overflow(days, width->time, &span->step))
			ereport(ERROR,
					(errcode(ERRCODE_INTERVAL_FIELD_OVERFLOW), errmsg("interval out of range")));
	}
	if (span->step <= 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("bucket width must be greater than zero")));

	if (origin == NULL)
		span->origin = span->kind == DP_SPAN_MONTHS ? 0 : MONDAY;
	else if (TIMESTAMP_NOT_FINITE(*origin))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("bucket origin must not be infinite")));
	else
		span->origin = *origin + zone_offset(&span->zone, *origin);
	span->is_fixed = span->zone.tz == NULL && span->kind != DP_SPAN_MONTHS;
}

TimestampTz
dp_span_start(DpSpan *span, TimestampTz t, TimestampTz *next)
{
	if (t < span->start || t >= span->next)
	{
		if (TIMESTAMP_NOT_FINITE(t))
			out_of_range();
		span->start = span->next = 0;
		if (span->is_fixed || span->kind == DP_SPAN_TIME)
			find_by_time(span, t);
		else
			find_by_clock(span, t);
	}
	if (next != NULL)
		*next = span->next;
	return span->start;
}

bool
dp_span_divides(const DpSpan *fine, const DpSpan *coarse)
{
	int64 apart;

	if (fine->zone.tz != coarse->zone.tz || fine->zone.offset != coarse->zone.offset)
		return false;
	if (fine->kind == DP_SPAN_MONTHS)
		return coarse->kind == DP_SPAN_MONTHS && fine->origin == coarse->origin &&
			   coarse->step % fine->step == 0;
	if (coarse->kind == DP_SPAN_MONTHS)
	{
		/* months begin where days begin if both are counted from midnight */
		return fine->step <= USECS_PER_DAY && USECS_PER_DAY % fine->step == 0 &&
			   coarse->origin % fine->step == 0 && fine->origin % fine->step == 0 &&
			   (fine->kind == DP_SPAN_DAYS || fine->zone.tz == NULL);
	}
	/* a clock that changes is on the grid of hours on one side only */
	if (fine->kind != coarse->kind && fine->zone.tz != NULL)
		return false;
	return coarse->step % fine->step == 0 &&
		   !pg_sub_s64_overflow(coarse->origin, fine->origin, &apart) && apart % fine->step == 0;
}

/* The offset of the zone's clock from UTC, in microseconds. */
static int64
zone_offset(const DpZone *zone, TimestampTz t)
{
	int64 ms;

	if (zone->tz == NULL)
		return zone->offset * 1000;
	ms = dp_floor_div(t, 1000) + DP_EPOCH_SHIFT_MS;
	return (dp_zone_local(zone, ms) - ms) * 1000;
}

/* The moment at which the zone's clock first shows a time. */
static TimestampTz
clock_to_utc(const DpZone *zone, int64 local)
{
	int64 ms = dp_floor_div(local, 1000) + DP_EPOCH_SHIFT_MS;
	int64 utc = local - (ms - dp_zone_utc(zone, ms)) * 1000;

	if (!IS_VALID_TIMESTAMP(utc))
		out_of_range();
	return utc;
}

/* The greatest of the times origin + k * step that is not after t, by the clock. */
static int64
floor_to_step(const DpSpan *span, int64 t)
{
	int64 n;

	if (pg_sub_s64_overflow(t, span->origin, &n) ||
		pg_sub_s64_overflow(n, dp_floor_mod(n, span->step), &n) ||
		pg_add_s64_overflow(n, span->origin, &n))
		out_of_range();
	return n;
}

/* The beginning of the span number k after the origin, for days and months. */
static TimestampTz
boundary(const DpSpan *span, int64 k)
{
	int64 local;

	if (pg_mul_s64_overflow(k, span->step, &k))
		out_of_range();
	if (span->kind == DP_SPAN_MONTHS)
	{
		int64 days = dp_floor_div(span->origin, USECS_PER_DAY);
		int64 month;
		int64 year;
		DpParts p;

		/* a day that the month has not becomes its last */
		dp_parts_of((days + DP_EPOCH_SHIFT_DAYS) * DP_MS_DAY, &p);
		month = p.year * 12 + p.month - 1;
		if (k < -12 * INT64CONST(400000) || k > 12 * INT64CONST(400000))
			out_of_range();
		month += k;
		year = dp_floor_div(month, 12);
		month = dp_floor_mod(month, 12) + 1;
		days = dp_days_of(year, month, Min(p.day, dp_days_in_month(year, (int) month))) -
			   DP_EPOCH_SHIFT_DAYS;
		if (pg_mul_s64_overflow(days, USECS_PER_DAY, &local) ||
			pg_add_s64_overflow(local, dp_floor_mod(span->origin, USECS_PER_DAY), &local))
			out_of_range();
	}
	else if (pg_add_s64_overflow(k, span->origin, &local))
		out_of_range();
	if (!IS_VALID_TIMESTAMP(local))
		out_of_range();
	return clock_to_utc(&span->zone, local);
}

/* The same, or the end of time where there is no such moment. */
static TimestampTz
boundary_or_end(const DpSpan *span, int64 k, TimestampTz t)
{
	/* the span before this one begins before t: only the far end can be out of range */
	uint64 left = (uint64) END_TIMESTAMP - (uint64) t;

	if (span->kind == DP_SPAN_MONTHS)
	{
		if (left / (31 * USECS_PER_DAY) <= span->step)
			return DT_NOEND;
	}
	else if (left <= USECS_PER_DAY || left - USECS_PER_DAY <= span->step)
		return DT_NOEND;
	return boundary(span, k);
}

/* Finds the span of days or months. */
static void
find_by_clock(DpSpan *span, TimestampTz t)
{
	int64 local = t + zone_offset(&span->zone, t);
	int64 k;
	TimestampTz start;
	TimestampTz next;

	if (span->kind == DP_SPAN_MONTHS)
	{
		DpParts p;
		DpParts from;

		dp_parts_of(dp_floor_div(local, 1000) + DP_EPOCH_SHIFT_MS, &p);
		dp_parts_of(dp_floor_div(span->origin, 1000) + DP_EPOCH_SHIFT_MS, &from);
		k = dp_floor_div((p.year - from.year) * 12 + p.month - from.month, span->step);
	}
	else
	{
		if (pg_sub_s64_overflow(local, span->origin, &k))
			out_of_range();
		k = dp_floor_div(k, span->step);
	}

	/*
	 * the day of the month, or a change of the clock, may put the boundary to the other side of t
	 */
	start = boundary(span, k);
	if (start > t)
	{
		next = start;
		start = boundary(span, k - 1);
	}
	else
	{
		next = boundary_or_end(span, k + 1, t);
		if (next <= t)
		{
			start = next;
			next = boundary_or_end(span, k + 2, t);
		}
	}
	span->start = start;
	span->next = next;
}

/* The moment, after one and not after another, from which on the zone has another offset. */
static TimestampTz
offset_changed(const DpZone *zone, TimestampTz low, TimestampTz high)
{
	int64 offset = zone_offset(zone, low);

	while (high - low > 1)
	{
		TimestampTz middle = low + (high - low) / 2;

		if (zone_offset(zone, middle) == offset)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/*
 * Finds the span of hours or less.  A change of the clock begins a new span if
 * a boundary is skipped by it; what the clock shows twice has its boundaries
 * twice.
 */
static void
find_by_time(DpSpan *span, TimestampTz t)
{
	const DpZone *zone = &span->zone;
	int64 offset = zone_offset(zone, t);
	TimestampTz start = floor_to_step(span, t + offset) - offset;
	TimestampTz next;
	int64 other;

	if (!IS_VALID_TIMESTAMP(start))
		out_of_range();
	if (!span->is_fixed && (other = zone_offset(zone, start)) != offset)
	{
		TimestampTz change = offset_changed(zone, start, t);
		int64 before = floor_to_step(span, change + other - 1);

		if (offset > other && floor_to_step(span, change + offset - 1) >= change + other)
			start = change;
		else
			start = before - other;
	}

	if (pg_add_s64_overflow(floor_to_step(span, t + offset) - offset, span->step, &next) ||
		!IS_VALID_TIMESTAMP(next))
		next = DT_NOEND;
	else if (!span->is_fixed && (other = zone_offset(zone, next)) != offset)
	{
		TimestampTz change = offset_changed(zone, t, next);
		int64 after = floor_to_step(span, change + other - 1);

		if (other > offset && after >= change + offset)
			next = change;
		else
			next = after + span->step - other;
	}
	span->start = start;
	span->next = next;
}

/* ---------------------------------------------------------------- SQL functions */

/*
 * bucket_start(width interval, ts timestamptz, origin timestamptz, time_zone
 * text) -> timestamptz.  NULL for a width or a time that is NULL; an infinite
 * time comes back itself.
 */
DP_FUNCTION(dp_bucket_start);
Datum
dp_bucket_start(PG_FUNCTION_ARGS)
{
	TimestampTz t;
	TimestampTz origin = 0;
	text *zone = NULL;
	DpSpan *span;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	t = PG_GETARG_TIMESTAMPTZ(1);
	if (!PG_ARGISNULL(2))
		origin = PG_GETARG_TIMESTAMPTZ(2);
	if (!PG_ARGISNULL(3))
		zone = PG_GETARG_TEXT_PP(3);
	span = span_argument(fcinfo, PG_ARGISNULL(2) ? NULL : &origin, zone ? VARDATA_ANY(zone) : NULL,
						 zone ? VARSIZE_ANY_EXHDR(zone) : 0);
	if (TIMESTAMP_NOT_FINITE(t))
		PG_RETURN_TIMESTAMPTZ(t);
	PG_RETURN_TIMESTAMPTZ(dp_span_start(span, t, NULL));
}

/*
 * bucket_start(width interval, ts timestamp, origin timestamp) -> timestamp:
 * the same for times that know no zone.
 */
DP_FUNCTION(dp_bucket_start_timestamp);
Datum
dp_bucket_start_timestamp(PG_FUNCTION_ARGS)
{
	Timestamp t;
	Timestamp origin = 0;
	DpSpan *span;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	t = PG_GETARG_TIMESTAMP(1);
	if (!PG_ARGISNULL(2))
		origin = PG_GETARG_TIMESTAMP(2);
	span = span_argument(fcinfo, PG_ARGISNULL(2) ? NULL : &origin, NULL, 0);
	if (TIMESTAMP_NOT_FINITE(t))
		PG_RETURN_TIMESTAMP(t);
	PG_RETURN_TIMESTAMP(dp_span_start(span, t, NULL));
}

/*
 * bucket_start(width interval, ts date, origin date) -> date: the width is
 * whole days or months, or INVALID_PARAMETER_VALUE.
 */
DP_FUNCTION(dp_bucket_start_date);
Datum
dp_bucket_start_date(PG_FUNCTION_ARGS)
{
	DateADT d;
	int64 origin = 0;
	TimestampTz start;
	DpSpan *span;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	d = PG_GETARG_DATEADT(1);
	if (!PG_ARGISNULL(2))
	{
		origin = PG_GETARG_DATEADT(2);
		if (DATE_NOT_FINITE((DateADT) origin))
			origin = DATE_IS_NOBEGIN((DateADT) origin) ? DT_NOBEGIN : DT_NOEND;
		else if (origin >= TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE)
			out_of_range();
		else
			origin *= USECS_PER_DAY;
	}
	span = span_argument(fcinfo, PG_ARGISNULL(2) ? NULL : &origin, NULL, 0);
	if (span->kind != DP_SPAN_MONTHS && span->step % USECS_PER_DAY != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("bucket width for dates must be whole days or months")));
	if (DATE_NOT_FINITE(d))
		PG_RETURN_DATEADT(d);
	if (d >= TIMESTAMP_END_JULIAN - POSTGRES_EPOCH_JDATE)
		out_of_range();
	start = dp_span_start(span, (int64) d * USECS_PER_DAY, NULL);
	PG_RETURN_DATEADT((DateADT) dp_floor_div(start, USECS_PER_DAY));
}

/*
 * The span that the arguments describe, of which the first is the width; made
 * again only where they change.
 */
static DpSpan *
span_argument(FunctionCallInfo fcinfo, const int64 *origin, const char *zone, uint32 zonelen)
{
	StartCache *cache = fcinfo->flinfo->fn_extra;
	const Interval *width = PG_GETARG_INTERVAL_P(0);

	if (likely(cache != NULL && cache->valid &&
			   memcmp(&cache->width, width, sizeof(Interval)) == 0 &&
			   cache->has_origin == (origin != NULL) &&
			   (origin == NULL || cache->origin == *origin) && cache->has_zone == (zone != NULL) &&
			   cache->zonelen == zonelen &&
			   (zonelen == 0 || memcmp(cache->zone, zone, zonelen) == 0)))
		return &cache->span;

	if (cache == NULL)
		cache = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(StartCache));
	cache->valid = false;
	dp_span_init(&cache->span, width, origin, zone, zonelen);
	cache->width = *width;
	cache->has_origin = origin != NULL;
	cache->origin = origin != NULL ? *origin : 0;
	cache->has_zone = zone != NULL;
	cache->zonelen = zonelen;
	if (zonelen > 0)
		memcpy(cache->zone, zone, zonelen);
	cache->valid = true;
	return &cache->span;
}
