/*
 * ttl.c
 *		The TTL pattern: documents that expire some time after a date that they hold.
 *
 * Expired documents are found by an index on _ttl_date() of the field.  The view <table>_current
 * and the calls for collections leave them out by _ttl_current(), and pattern_maintain() deletes
 * them (sql/patterns/ttl.sql).
 */
#include "postgres.h"

#include "nodes/supportnodes.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "bson/fetch.h"
#include "bson/sqltime.h"
#include "kit/maintain.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/trigger.h"

typedef struct DpTtl
{
	DpPath *field;
	char *field_text;
	Interval after;
} DpTtl;

static char *ttl_seen(DpDecl *decl);
static bool ttl_sees(DpDecl *decl, struct varlena *stored);
static DpTtl *ttl_state(DpDecl *decl);
static bool expiry(const DpValue *value, TimestampTz *date);
static bool date_of(const DpValue *value, int64 *ms);

static const DpOption options[] = { { "field", DP_OPTION_PATH, DP_REQUIRED | DP_USED,
									  DP_INTO(DpTtl, field), DP_TEXT_INTO(DpTtl, field_text) },
									{ "after", DP_OPTION_INTERVAL, DP_REQUIRED | DP_ALTERABLE },
									{ NULL } };

DP_DEFINE_PATTERN(ttl) = {
	.name = "ttl", .views = "current", .options = options, .seen = ttl_seen, .sees = ttl_sees
};

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

/* The condition of the view, too: _ttl_parts(). */
static char *
ttl_seen(DpDecl *decl)
{
	DpTtl *ttl = ttl_state(decl);

	return psprintf("docpatterns._ttl_current(t.%s, %s, docpatterns._pattern_cutoff(%s))",
					quote_identifier(decl->doc_column), quote_literal_cstr(ttl->field_text),
					quote_literal_cstr(dp_decl_text(decl, "after")));
}

static bool
ttl_sees(DpDecl *decl, struct varlena *stored)
{
	DpTtl *ttl = ttl_state(decl);
	DpValue value;
	TimestampTz date;

	return !dp_fetch_path(PointerGetDatum(stored), ttl->field, true, &value) ||
		   !expiry(&value, &date) || date > dp_cutoff(&ttl->after);
}

static DpTtl *
ttl_state(DpDecl *decl)
{
	if (decl->state == NULL)
	{
		DpTtl *ttl = MemoryContextAllocZero(decl->context, sizeof(DpTtl));

		dp_options_read(decl, ttl);
		ttl->after =
			*DatumGetIntervalP(DirectFunctionCall3(interval_in,
												   CStringGetDatum(dp_decl_text(decl, "after")),
												   ObjectIdGetDatum(InvalidOid),
												   Int32GetDatum(-1)));
		decl->state = ttl;
	}
	return decl->state;
}

/*
 * _ttl_current(doc bson, field text, cutoff timestamptz) -> boolean: whether no date at the path is
 * at the cutoff or earlier
 */
DP_FUNCTION(dp_ttl_current);
Datum
dp_ttl_current(PG_FUNCTION_ARGS)
{
	DpValue value;
	TimestampTz date;

	PG_RETURN_BOOL(PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) ||
				   !dp_fetch_path(PG_GETARG_DATUM(0), dp_path_arg(fcinfo, 1), true, &value) ||
				   !expiry(&value, &date) || date > PG_GETARG_TIMESTAMPTZ(2));
}

/*
 * _ttl_support(internal) -> internal: the selectivity of _ttl_current().  Maintenance deletes what
 * has expired, so nearly all rows are current.
 */
DP_FUNCTION(dp_ttl_support);
Datum
dp_ttl_support(PG_FUNCTION_ARGS)
{
	Node *request = (Node *) PG_GETARG_POINTER(0);

	if (!IsA(request, SupportRequestSelectivity))
		PG_RETURN_POINTER(NULL);
	((SupportRequestSelectivity *) request)->selectivity = 0.99;
	PG_RETURN_POINTER(request);
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
	TimestampTz date;

	if (!expiry(&value, &date))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(date);
}

/* The same for a value; false for NULL. */
static bool
expiry(const DpValue *value, TimestampTz *date)
{
	DpValue element;
	DpIter iter;
	const int64 epoch = DP_EPOCH_DAYS * DP_MS_PER_DAY;
	int64 ms = 0;
	int64 earliest = PG_INT64_MAX;
	bool found = date_of(value, &earliest);

	if (value->type == DP_TYPE_ARRAY)
	{
		dp_iter_init_value(&iter, value);
		while (dp_iter_next_value(&iter, &element))
		{
			if (date_of(&element, &ms))
			{
				found = true;
				earliest = Min(earliest, ms);
			}
		}
	}
	if (earliest >= END_TIMESTAMP / 1000 + epoch)
		*date = DT_NOEND;
	else if (earliest < MIN_TIMESTAMP / 1000 + epoch)
		*date = DT_NOBEGIN;
	else
		*date = (earliest - epoch) * 1000;
	return found;
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
