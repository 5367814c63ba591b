/*
 * sqltime.h
 *		SQL's date and timestamptz as what BSON counts: milliseconds since 1970.
 */
#ifndef DP_BSON_SQLTIME_H
#define DP_BSON_SQLTIME_H

#include "dp.h"

#include "utils/date.h"
#include "utils/timestamp.h"

/* Days from 1970, where BSON begins to count, to 2000, where PostgreSQL does */
#define DP_EPOCH_DAYS (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)
#define DP_MS_PER_DAY INT64CONST(86400000)

/*
 * The milliseconds of a timestamptz, rounded down.  Sets *rest if that lost something; *infinite to
 * -1 or 1 for the infinities, else 0.
 */
static inline int64
dp_time_of_timestamptz(TimestampTz t, bool *rest, int *infinite)
{
	int64 ms = t / 1000;
	int64 us = t % 1000;

	*infinite = TIMESTAMP_IS_NOBEGIN(t) ? -1 : TIMESTAMP_IS_NOEND(t) ? 1 : 0;
	*rest = us != 0;
	return ms - (us < 0 ? 1 : 0) + DP_EPOCH_DAYS * DP_MS_PER_DAY;
}

/* The milliseconds of the date's midnight in UTC; *infinite as above. */
static inline int64
dp_time_of_date(DateADT d, int *infinite)
{
	*infinite = DATE_IS_NOBEGIN(d) ? -1 : DATE_IS_NOEND(d) ? 1 : 0;
	return ((int64) d + DP_EPOCH_DAYS) * DP_MS_PER_DAY;
}

#endif /* DP_BSON_SQLTIME_H */
