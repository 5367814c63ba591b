/*
 * start.h
 *		Where the spans of time begin that measurements are grouped by.
 *
 * A span is a width (months and years, days and weeks, or hours and less),
 * counted from an origin by the clock of a time zone.  Days follow the clock
 * on the wall, so that a day has 23 or 25 hours where the clock is changed; an
 * hour that comes twice is two spans of an hour.  The spans of a width follow
 * each other without gap or overlap, whatever the zone does.
 */
#ifndef DP_TYPES_BUCKET_START_H
#define DP_TYPES_BUCKET_START_H

#include "datatype/timestamp.h"

#include "mql/expression_date.h"

typedef enum DpSpanKind
{
	DP_SPAN_TIME,  /* hours and less: by the time that passes, on the zone's grid */
	DP_SPAN_DAYS,  /* days and weeks, with or without hours: by the clock */
	DP_SPAN_MONTHS /* months and years: by the calendar */
} DpSpanKind;

/* Plain data: copy it as you like. */
typedef struct DpSpan
{
	DpSpanKind kind;
	int64 step;   /* microseconds, or months */
	int64 origin; /* where counting begins, by the zone's clock, in microseconds since 2000 */
	DpZone zone;
	bool is_fixed; /* plain arithmetic: the zone's offset never changes, and it is no calendar */
	TimestampTz start; /* the span that was found last: [start, next); none if start = next */
	TimestampTz next;
} DpSpan;

/*
 * Prepares a span.  origin may be NULL: midnight of Monday, 3 January 2000, or
 * 1 January 2000 for months, by the zone's clock.  zone may be NULL: UTC.
 * Raises INVALID_PARAMETER_VALUE for a width that is not positive, that mixes
 * months with days or hours, for an infinite origin and an unknown zone.
 */
extern void dp_span_init(DpSpan *span, const Interval *width, const TimestampTz *origin,
						 const char *zone, uint32 zonelen);

/*
 * The beginning of the span that contains the time and, if next is not NULL, of the one after it.
 * Raises DATETIME_VALUE_OUT_OF_RANGE if that is not a valid timestamp, and for an infinite time.
 */
extern TimestampTz dp_span_start(DpSpan *span, TimestampTz t, TimestampTz *next);

/*
 * True if every boundary of the coarse span is one of the fine span, so that fine spans never cross
 * a coarse boundary.  May return false although it is true.
 */
extern bool dp_span_divides(const DpSpan *fine, const DpSpan *coarse);

#endif /* DP_TYPES_BUCKET_START_H */
