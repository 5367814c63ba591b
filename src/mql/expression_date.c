/*
 * expression_date.c
 *		Operators that count with dates: $dateAdd, $dateSubtract, $dateDiff,
 *		$dateTrunc.
 *
 * Days and what is longer are counted by the clock of the time zone; hours and
 * what is shorter by the time that passes.
 */
#include "postgres.h"

#include "common/int.h"

#include "mql/expression_date.h"

typedef enum Unit
{
	UNIT_YEAR,
	UNIT_QUARTER,
	UNIT_MONTH,
	UNIT_WEEK,
	UNIT_DAY,
	UNIT_HOUR,
	UNIT_MINUTE,
	UNIT_SECOND,
	UNIT_MILLISECOND
} Unit;

static const char *const unit_names[] = { "year", "quarter", "month",  "week",       "day",
										  "hour", "minute",  "second", "millisecond" };

/* Milliseconds of those units that always have as many */
static const int64 unit_ms[] = {
	0, 0, 0, 7 * DP_MS_DAY, DP_MS_DAY, DP_MS_HOUR, DP_MS_MINUTE, DP_MS_SECOND, 1
};

enum
{
	OP_ADD,
	OP_SUBTRACT,
	OP_INCREMENT,
	OP_SECOND
};

int
dp_date_unit(const char *name)
{
	for (int u = 0; u < (int) lengthof(unit_names); u++)
		if (strcmp(unit_names[u], name) == 0)
			return u;
	return -1;
}

int64
dp_date_unit_ms(int unit)
{
	return unit_ms[unit];
}

/*
 * The unit that an argument names.  Returns false if it is null.
 */
static bool
unit_arg(const DpNode *node, int i, DpExprState *state, Unit *unit)
{
	DpValue v;
	int u;

	dp_arg(node, i, state, &v);
	if (dp_is_nullish(&v))
		return false;
	if (v.type != DP_TYPE_STRING)
		dp_node_type_error(node, "a string as its unit", &v);
	u = dp_date_unit(DP_STRING_DATA(&v));
	if (u < 0)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "does not know the unit \"%.100s\"",
					  DP_STRING_DATA(&v));
	*unit = (Unit) u;
	return true;
}

/*
 * The day that a week begins with, 1 Monday to 7 Sunday; Sunday if it is not
 * given.  Returns false if it is null.
 */
static bool
week_start_arg(const DpNode *node, int i, DpExprState *state, int *start)
{
	static const char *const days[] = { "monday", "tuesday",  "wednesday", "thursday",
										"friday", "saturday", "sunday" };
	DpValue v;

	*start = 7;
	if (node->args[i] == NULL)
		return true;
	dp_arg(node, i, state, &v);
	if (dp_is_nullish(&v))
		return false;
	if (v.type != DP_TYPE_STRING)
		dp_node_type_error(node, "a string as its startOfWeek", &v);
	for (int d = 0; d < 7; d++)
	{
		if (pg_strcasecmp(days[d], DP_STRING_DATA(&v)) == 0 ||
			(DP_STRING_LEN(&v) == 3 && pg_strncasecmp(days[d], DP_STRING_DATA(&v), 3) == 0))
		{
			*start = d + 1;
			return true;
		}
	}
	dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "does not know the day \"%.100s\"",
				  DP_STRING_DATA(&v));
	return false; /* not reached */
}

/* Raises the error of a result that no date can hold. */
static void
out_of_range(const DpNode *node)
{
	dp_node_error(node, ERRCODE_DATETIME_FIELD_OVERFLOW, "gives a date that is out of range");
}

bool
dp_date_add(int64 date, int unit, int64 amount, const DpZone *zone, int64 *result)
{
	int64 ms;
	DpParts p;
	int64 month;

	if (unit >= UNIT_HOUR)
		return !pg_mul_s64_overflow(amount, unit_ms[unit], &ms) &&
			   !pg_add_s64_overflow(date, ms, result);
	if (amount > INT64CONST(100000000000) || amount < -INT64CONST(100000000000))
		return false;
	if (unit >= UNIT_WEEK)
	{
		if (pg_mul_s64_overflow(amount, unit_ms[unit], &ms) ||
			pg_add_s64_overflow(dp_zone_local(zone, date), ms, &ms))
			return false;
		*result = dp_zone_utc(zone, ms);
		return true;
	}

	/* a day that the month has not becomes its last */
	dp_parts_of(dp_zone_local(zone, date), &p);
	month = p.year * 12 + (p.month - 1) +
			amount * (unit == UNIT_YEAR      ? 12
					  : unit == UNIT_QUARTER ? 3
											 : 1);
	p.year = dp_floor_div(month, 12);
	p.month = (int) dp_floor_mod(month, 12) + 1;
	if (p.year < -290000000 || p.year > 290000000)
		return false;
	p.day = Min(p.day, dp_days_in_month(p.year, p.month));
	*result = dp_zone_utc(zone, dp_parts_to_local(&p));
	return true;
}

/*
 * $dateAdd and $dateSubtract: {startDate, unit, amount, timezone}
 */
static bool
dateadd_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue date;
	DpValue v;
	Unit unit;
	DpZone zone;
	int64 amount;
	bool known = unit_arg(node, 1, state, &unit);

	known = dp_zone_arg(node, 3, state, &zone) && known;
	dp_arg(node, 0, state, &date);
	dp_arg(node, 2, state, &v);
	if (!known || dp_is_nullish(&date) || dp_is_nullish(&v))
		return dp_result_null(result);
	if (!dp_value_to_int64(&v, &amount))
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
					  "needs a whole number as its amount, not %s",
					  dp_type_is_number(v.type) ? "another number" : dp_operand_type(&v));
	if (node->op->which == OP_SUBTRACT && pg_mul_s64_overflow(amount, -1, &amount))
		out_of_range(node);
	if (!dp_date_add(dp_date_value(node, &date), unit, amount, &zone, &amount))
		out_of_range(node);
	return dp_result_date(result, amount);
}

/*
 * $dateDiff: {startDate, endDate, unit, timezone, startOfWeek}: how many times
 * a new unit began between the dates.
 */
static bool
datediff_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v[2];
	int64 utc[2];
	int64 local[2];
	DpParts p[2];
	Unit unit;
	DpZone zone;
	int start;
	int64 difference;
	bool known = unit_arg(node, 2, state, &unit);

	known = dp_zone_arg(node, 3, state, &zone) && known;
	dp_arg(node, 0, state, &v[0]);
	dp_arg(node, 1, state, &v[1]);
	if (!known || dp_is_nullish(&v[0]) || dp_is_nullish(&v[1]))
		return dp_result_null(result);
	for (int i = 0; i < 2; i++)
	{
		utc[i] = dp_date_value(node, &v[i]);
		local[i] = dp_zone_local(&zone, utc[i]);
		dp_parts_of(local[i], &p[i]);
	}
	switch (unit)
	{
		case UNIT_YEAR:
			return dp_result_int64(result, p[1].year - p[0].year);
		case UNIT_QUARTER:
			return dp_result_int64(result, (p[1].year - p[0].year) * 4 + (p[1].month - 1) / 3 -
											   (p[0].month - 1) / 3);
		case UNIT_MONTH:
			return dp_result_int64(result, (p[1].year - p[0].year) * 12 + p[1].month - p[0].month);
		case UNIT_WEEK:
			if (!week_start_arg(node, 4, state, &start))
				return dp_result_null(result);
			/* day -3 was a Monday */
			return dp_result_int64(result,
								   dp_floor_div(dp_floor_div(local[1], DP_MS_DAY) + 4 - start, 7) -
									   dp_floor_div(dp_floor_div(local[0], DP_MS_DAY) + 4 - start,
													7));
		case UNIT_DAY:
			return dp_result_int64(result, dp_floor_div(local[1], DP_MS_DAY) -
											   dp_floor_div(local[0], DP_MS_DAY));
		case UNIT_MILLISECOND:
			if (pg_sub_s64_overflow(utc[1], utc[0], &difference))
				out_of_range(node);
			return dp_result_int64(result, difference);
		default:
			/* by the clock, ignoring changes of the zone's offset in between */
			difference =
				dp_floor_div(local[1], unit_ms[unit]) - dp_floor_div(local[0], unit_ms[unit]);
			difference -= ((local[1] - utc[1]) - (local[0] - utc[0])) / unit_ms[unit];
			return dp_result_int64(result, difference);
	}
}

/*
 * $dateTrunc: {date, unit, binSize, timezone, startOfWeek}.  Bins are counted
 * from the beginning of 2000; of weeks, from the first of that year.
 */
static bool
datetrunc_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue date;
	DpValue v;
	Unit unit;
	DpZone zone;
	int start = 7;
	int64 bin = 1;
	int64 utc;
	int64 local;
	int64 origin = dp_days_of(2000, 1, 1);
	DpParts p;
	int64 n;
	bool known = unit_arg(node, 1, state, &unit);

	if (node->args[2] != NULL)
	{
		dp_arg(node, 2, state, &v);
		if (dp_is_nullish(&v))
			known = false;
		else if (!dp_value_to_int64(&v, &bin) || bin < 1 || bin > INT64CONST(100000000000))
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs a whole number greater than 0 as its binSize");
	}
	known = dp_zone_arg(node, 3, state, &zone) && known;
	if (known && unit == UNIT_WEEK)
		known = week_start_arg(node, 4, state, &start);
	dp_arg(node, 0, state, &date);
	if (!known || dp_is_nullish(&date))
		return dp_result_null(result);
	utc = dp_date_value(node, &date);
	local = dp_zone_local(&zone, utc);

	switch (unit)
	{
		case UNIT_YEAR:
		case UNIT_QUARTER:
		case UNIT_MONTH:
			dp_parts_of(local, &p);
			bin *= unit == UNIT_YEAR ? 12 : unit == UNIT_QUARTER ? 3 : 1;
			n = (p.year - 2000) * 12 + p.month - 1;
			n = dp_floor_div(n, bin) * bin;
			n = dp_days_of(2000 + dp_floor_div(n, 12), dp_floor_mod(n, 12) + 1, 1);
			break;
		case UNIT_WEEK:
			origin += (start - dp_iso_weekday(origin) + 7) % 7;
			bin *= 7;
			/* FALLTHROUGH */
		case UNIT_DAY:
			n = dp_floor_div(local, DP_MS_DAY) - origin;
			n = origin + dp_floor_div(n, bin) * bin;
			break;
		default:
			/* by the time that passes since the origin */
			origin = dp_zone_utc(&zone, origin * DP_MS_DAY);
			if (pg_mul_s64_overflow(bin, unit_ms[unit], &bin) ||
				pg_sub_s64_overflow(utc, origin, &n) ||
				pg_mul_s64_overflow(dp_floor_div(n, bin), bin, &n) ||
				pg_add_s64_overflow(origin, n, &n))
				out_of_range(node);
			return dp_result_date(result, n);
	}
	if (pg_mul_s64_overflow(n, DP_MS_DAY, &local))
		out_of_range(node);
	return dp_result_date(result, dp_zone_utc(&zone, local));
}

/*
 * $tsSecond and $tsIncrement: the halves of a timestamp
 */
static bool
timestamp_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;
	uint64 bits;

	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v))
		return dp_result_null(result);
	if (v.type != DP_TYPE_TIMESTAMP)
		dp_node_type_error(node, "a timestamp", &v);
	bits = (uint64) dp_get_int64(v.data);
	return dp_result_int64(result, node->op->which == OP_SECOND ? bits >> 32 : (uint32) bits);
}

const DpOperator dp_operators_date[] = {
	{ .name = "$dateAdd",
	  .eval = dateadd_eval,
	  .names = "startDate unit amount ?timezone",
	  .which = OP_ADD },
	{ .name = "$dateDiff",
	  .eval = datediff_eval,
	  .names = "startDate endDate unit ?timezone ?startOfWeek" },
	{ .name = "$dateSubtract",
	  .eval = dateadd_eval,
	  .names = "startDate unit amount ?timezone",
	  .which = OP_SUBTRACT },
	{ .name = "$dateTrunc",
	  .eval = datetrunc_eval,
	  .names = "date unit ?binSize ?timezone ?startOfWeek" },
	{ .name = "$tsIncrement", .eval = timestamp_eval, .min = 1, .max = 1, .which = OP_INCREMENT },
	{ .name = "$tsSecond", .eval = timestamp_eval, .min = 1, .max = 1, .which = OP_SECOND },
	{ NULL }
};
