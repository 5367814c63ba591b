/*
 * ttl.c
 *		The TTL pattern: documents that expire some time after a date that they hold.
 *
 * Expired documents are found by an index on _ttl_date() of the field.  The view <table>_current
 * leaves them out, and pattern_maintain() deletes them (sql/patterns/ttl.sql).
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "bson/layout.h"
#include "bson/reader.h"
#include "bson/sqltime.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/trigger.h"

static bool date_of(const DpValue *value, int64 *ms);

static const DpOption options[] = { { "field", DP_OPTION_PATH, DP_REQUIRED | DP_USED },
									{ "after", DP_OPTION_INTERVAL, DP_REQUIRED | DP_ALTERABLE },
									{ NULL } };

DP_DEFINE_PATTERN(ttl) = { .name = "ttl", .views = "current", .options = options };

/*
 * ttl_trigger(): carries the declaration and has nothing to do.
 */
DP_FUNCTION(dp_ttl_trigger);
Datum
dp_ttl_trigger(PG_FUNCTION_ARGS)
{
	(void) dp_trigger_require(fcinfo, "ttl", DP_BEFORE_STATEMENT(DP_TRUNCATE), 1);
	return PointerGetDatum(NULL);
}

/*
 * _ttl_date(value bson_value) -> timestamptz: a date, or the earliest date in an array; NULL for
 * other values.  Dates that timestamptz does not have are infinite.
 */
DP_FUNCTION(dp_ttl_date);
Datum
dp_ttl_date(PG_FUNCTION_ARGS)
{
	DpValue value = dp_value_of_varlena(PG_GETARG_VARLENA_PP(0));
	DpValue element;
	DpIter iter;
	const int64 epoch = DP_EPOCH_DAYS * DP_MS_PER_DAY;
	int64 ms = 0;
	int64 earliest = PG_INT64_MAX;
	bool found = date_of(&value, &earliest);

	if (value.type == DP_TYPE_ARRAY)
	{
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &element))
		{
			if (date_of(&element, &ms))
			{
				found = true;
				earliest = Min(earliest, ms);
			}
		}
	}
	if (!found)
		PG_RETURN_NULL();
	if (earliest >= END_TIMESTAMP / 1000 + epoch)
		PG_RETURN_TIMESTAMPTZ(DT_NOEND);
	if (earliest < MIN_TIMESTAMP / 1000 + epoch)
		PG_RETURN_TIMESTAMPTZ(DT_NOBEGIN);
	PG_RETURN_TIMESTAMPTZ((earliest - epoch) * 1000);
}

/* Sets *ms to the milliseconds since 1970; false if the value is not a date. */
static bool
date_of(const DpValue *value, int64 *ms)
{
	if (value->type != DP_TYPE_DATE)
		return false;
	*ms = dp_get_int64(value->data);
	return true;
}
