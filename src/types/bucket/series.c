/*
 * series.c
 *		Spans of time one after the other: bucket_starts() alone,
 *		bucket_series() with what a bucket has in each of them and gaps filled.
 *		bucket_locf() and bucket_interpolate() fill the gaps of any query.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "windowapi.h"

#include "bson/build.h"
#include "bson/compare.h"
#include "mql/expression_node.h"
#include "types/bucket/accumulate.h"
#include "types/bucket/start.h"

/* No series has more spans. */
#define MAX_SPANS DP_BUCKET_MAX_COUNT

typedef enum Take
{
	TAKE_AVG,
	TAKE_SUM,
	TAKE_MIN,
	TAKE_MAX,
	TAKE_FIRST,
	TAKE_LAST,
	TAKE_COUNT
} Take;

typedef enum Fill
{
	FILL_NULL,
	FILL_PREVIOUS,
	FILL_LINEAR
} Fill;

static const char *const take_names[] = { "avg", "sum", "min", "max", "first", "last", "count" };
static const char *const fill_names[] = { "null", "previous", "linear" };

/* A span in which the bucket has something */
typedef struct Known
{
	TimestampTz start;
	DpValue value;
} Known;

/* Where a series stands */
typedef struct Series
{
	DpSpan span;
	TimestampTz next; /* the next span's beginning */
	TimestampTz until;
	Take take;
	Fill fill;
	Known *known;
	int nknown;
	int at; /* the first of them that does not begin before next */
} Series;

/* The state of bucket_interpolate in its partition */
typedef struct Interpolation
{
	bool has_before; /* the last value seen */
	int64 before_at;
	double before;
	int64 after_row;  /* the next one, searched once per gap; -1: none */
	int64 looked_for; /* the row at which it was searched */
	int64 after_at;
	double after;
	bool valid; /* the state was set up */
} Interpolation;

static void
span_of_arguments(FunctionCallInfo fcinfo, DpSpan *span, int width, int origin, int zone);
static void check_length(DpSpan *span, TimestampTz from, TimestampTz until);
static int
choice(FunctionCallInfo fcinfo, int argno, const char *const *names, int n, const char *what);
static void series_of_bucket(FunctionCallInfo fcinfo, Series *series);
static bool take_values(const DpValue *values, int n, Take take, DpValue *result);
static bool series_value(const Series *series, TimestampTz start, DpValue *result);

/*
 * bucket_starts(width interval, since timestamptz, until timestamptz, origin
 * timestamptz, time_zone text) -> setof timestamptz: the beginnings of the
 * spans from the one of since on, before until.
 */
DP_FUNCTION(dp_bucket_starts);
Datum
dp_bucket_starts(PG_FUNCTION_ARGS)
{
	FuncCallContext *set;
	Series *series;

	if (SRF_IS_FIRSTCALL())
	{
		set = SRF_FIRSTCALL_INIT();
		if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
			SRF_RETURN_DONE(set);
		series = MemoryContextAllocZero(set->multi_call_memory_ctx, sizeof(Series));
		span_of_arguments(fcinfo, &series->span, 0, 3, 4);
		series->until = PG_GETARG_TIMESTAMPTZ(2);
		check_length(&series->span, PG_GETARG_TIMESTAMPTZ(1), series->until);
		series->next = PG_GETARG_TIMESTAMPTZ(1) < series->until
						   ? dp_span_start(&series->span, PG_GETARG_TIMESTAMPTZ(1), NULL)
						   : series->until;
		set->user_fctx = series;
	}

	set = SRF_PERCALL_SETUP();
	series = set->user_fctx;
	if (series != NULL && series->next < series->until)
	{
		TimestampTz start = series->next;

		(void) dp_span_start(&series->span, start, &series->next);
		SRF_RETURN_NEXT(set, TimestampTzGetDatum(start));
	}
	SRF_RETURN_DONE(set);
}

/*
 * bucket_series(bucket, width interval, field text, since timestamptz, until
 * timestamptz, fill text, take text, origin timestamptz, time_zone text) ->
 * setof (start timestamptz, value bson_value)
 */
DP_FUNCTION(dp_bucket_series);
Datum
dp_bucket_series(PG_FUNCTION_ARGS)
{
	FuncCallContext *set;
	Series *series;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext old;

		set = SRF_FIRSTCALL_INIT();
		if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
			SRF_RETURN_DONE(set);
		old = MemoryContextSwitchTo(set->multi_call_memory_ctx);
		if (get_call_result_type(fcinfo, NULL, &set->tuple_desc) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		set->tuple_desc = BlessTupleDesc(set->tuple_desc);
		series = palloc0(sizeof(Series));
		series_of_bucket(fcinfo, series);
		set->user_fctx = series;
		MemoryContextSwitchTo(old);
	}

	set = SRF_PERCALL_SETUP();
	series = set->user_fctx;
	if (series != NULL && series->next < series->until)
	{
		TimestampTz start = series->next;
		Datum values[2];
		bool nulls[2] = { false, false };
		DpValue value;

		(void) dp_span_start(&series->span, start, &series->next);
		while (series->at < series->nknown && series->known[series->at].start < start)
			series->at++;
		values[0] = TimestampTzGetDatum(start);
		nulls[1] = !series_value(series, start, &value);
		values[1] = nulls[1] ? (Datum) 0 : PointerGetDatum(dp_value_to_varlena(&value));
		SRF_RETURN_NEXT(set, HeapTupleGetDatum(heap_form_tuple(set->tuple_desc, values, nulls)));
	}
	SRF_RETURN_DONE(set);
}

/* The span that three arguments describe, of which origin and zone may be NULL. */
static void
span_of_arguments(FunctionCallInfo fcinfo, DpSpan *span, int width, int origin, int zone)
{
	text *name = PG_ARGISNULL(zone) ? NULL : PG_GETARG_TEXT_PP(zone);
	TimestampTz from = PG_ARGISNULL(origin) ? 0 : PG_GETARG_TIMESTAMPTZ(origin);

	dp_span_init(span, PG_GETARG_INTERVAL_P(width), PG_ARGISNULL(origin) ? NULL : &from,
				 name ? VARDATA_ANY(name) : NULL, name ? VARSIZE_ANY_EXHDR(name) : 0);
}

/* Raises PROGRAM_LIMIT_EXCEEDED if there are too many spans between the times. */
static void
check_length(DpSpan *span, TimestampTz from, TimestampTz until)
{
	uint64 step = span->kind == DP_SPAN_MONTHS ? span->step * 28 * USECS_PER_DAY : span->step;

	if (TIMESTAMP_NOT_FINITE(from) || TIMESTAMP_NOT_FINITE(until))
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
						errmsg("bounds of a series must not be infinite")));
	if (from < until && ((uint64) until - (uint64) from) / step >= MAX_SPANS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("series has more than %d spans", MAX_SPANS)));
}

/* Which of the names the argument is. */
static int
choice(FunctionCallInfo fcinfo, int argno, const char *const *names, int n, const char *what)
{
	char *name;

	if (PG_ARGISNULL(argno))
		return 0;
	name = text_to_cstring(PG_GETARG_TEXT_PP(argno));
	for (int i = 0; i < n; i++)
	{
		if (strcmp(names[i], name) == 0)
			return i;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid %s: \"%.100s\"", what, name),
			 strcmp(what, "fill") == 0 ? errhint("Use null, previous or linear.")
									   : errhint("Use avg, sum, min, max, first, last or count.")));
	return 0;
}

/* Finds what the bucket has in each span. */
static void
series_of_bucket(FunctionCallInfo fcinfo, Series *series)
{
	DpBucketReader r;
	DpBucketSource source;
	int64 *times;
	DpValue *values;
	TimestampTz from;

	span_of_arguments(fcinfo, &series->span, 1, 7, 8);
	series->fill = (Fill) choice(fcinfo, 5, fill_names, lengthof(fill_names), "fill");
	series->take = (Take) choice(fcinfo, 6, take_names, lengthof(take_names), "take");

	dp_bucket_reader_init(&r, CurrentMemoryContext);
	dp_bucket_open(&r, PointerGetDatum(PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(0))));
	if (r.flags & DP_BUCKET_TIMELESS)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("bucket has no times")));
	from = PG_ARGISNULL(3) ? r.first : PG_GETARG_TIMESTAMPTZ(3);
	series->until = PG_ARGISNULL(4) ? r.last + 1 : PG_GETARG_TIMESTAMPTZ(4);
	check_length(&series->span, from, series->until);
	series->next = from < series->until ? dp_span_start(&series->span, from, NULL) : series->until;

	if (!dp_bucket_source(&r, PG_ARGISNULL(2) ? NULL : PG_GETARG_TEXT_PP(2), &source))
		return;
	times = palloc_extended(r.count * sizeof(int64), MCXT_ALLOC_HUGE);
	dp_bucket_times(&r, times);
	values = dp_bucket_values_of(&r, &source);
	series->known = palloc_extended(r.count * sizeof(Known), MCXT_ALLOC_HUGE);
	for (int i = 0; i < r.count;)
	{
		Known *known = &series->known[series->nknown];
		TimestampTz next;
		int j = i;

		CHECK_FOR_INTERRUPTS();
		known->start = dp_span_start(&series->span, times[i], &next);
		while (j < r.count && times[j] < next)
			j++;
		if (take_values(values + i, j - i, series->take, &known->value))
		{
			if (series->fill == FILL_LINEAR && !dp_type_is_number(known->value.type))
				ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
								errmsg("cannot interpolate between values that are not numbers"),
								errdetail("Found a value of BSON type \"%s\".",
										  dp_type_name(known->value.type))));
			series->nknown++;
		}
		i = j;
	}
	pfree(times);
}

/* One value for the values of a span; false if none. */
static bool
take_values(const DpValue *values, int n, Take take, DpValue *result)
{
	const DpValue *best = NULL;
	DpSum sum;
	int count = 0;

	dp_sum_init(&sum);
	for (int i = 0; i < n; i++)
	{
		const DpValue *v = &values[i];

		if (!dp_bucket_is_value(v))
			continue;
		if (take == TAKE_AVG || take == TAKE_SUM)
		{
			if (!dp_type_is_number(v->type))
				continue;
			dp_sum_add(&sum, v);
		}
		count++;
		if (best == NULL || take == TAKE_LAST ||
			(take == TAKE_MIN && dp_value_compare(v, best) < 0) ||
			(take == TAKE_MAX && dp_value_compare(v, best) > 0))
			best = v;
	}
	if (count == 0)
		return false;
	switch (take)
	{
		case TAKE_COUNT:
			return dp_result_int32(result, count);
		case TAKE_SUM:
			return dp_result_sum(result, &sum);
		case TAKE_AVG:
			dp_result_sum(result, &sum);
			if (result->type == DP_TYPE_DECIMAL128)
			{
				uint8 room[8];
				DpValue n128 = { room, 8, DP_TYPE_INT64 };
				uint8 divisor[DP_DECIMAL128_SIZE];
				uint8 quotient[DP_DECIMAL128_SIZE];

				dp_put_int64(room, count);
				dp_number_to_decimal(&n128, divisor);
				dp_decimal_combine(DP_DECIMAL_DIVIDE, result->data, divisor, quotient);
				return dp_result_decimal(result, quotient);
			}
			return dp_result_double(result, dp_number_to_double(result) / count);
		default:
			*result = *best;
			return true;
	}
}

/* The value of a span; false if it has none and is not filled. */
static bool
series_value(const Series *series, TimestampTz start, DpValue *result)
{
	const Known *after = series->at < series->nknown ? &series->known[series->at] : NULL;
	const Known *before = series->at > 0 ? &series->known[series->at - 1] : NULL;

	if (after != NULL && after->start == start)
	{
		*result = after->value;
		return true;
	}
	if (series->take == TAKE_COUNT && series->fill == FILL_NULL)
		return dp_result_int32(result, 0);
	if (series->fill == FILL_NULL || before == NULL)
		return false;
	if (series->fill == FILL_PREVIOUS)
	{
		*result = before->value;
		return true;
	}
	if (after == NULL)
		return false;
	{
		double a = dp_number_to_double(&before->value);
		double b = dp_number_to_double(&after->value);
		double part = (double) (start - before->start) / (double) (after->start - before->start);

		return dp_result_double(result, a + (b - a) * part);
	}
}

/* ---------------------------------------------------------------- filling gaps of any query */

/*
 * bucket_locf's step: the newer of two values that are not NULL.
 */
DP_FUNCTION(dp_bucket_locf_step);
Datum
dp_bucket_locf_step(PG_FUNCTION_ARGS)
{
	(void) dp_aggregate_context(fcinfo);
	PG_RETURN_DATUM(PG_GETARG_DATUM(1));
}

/* Looks for the next value behind the current row, once a gap. */
static void
find_after(WindowObject window, Interpolation *state, int64 row)
{
	if (state->after_row > row || (state->after_row == -1 && state->looked_for >= 0))
		return;
	state->looked_for = row;
	state->after_row = -1;
	for (int64 i = row + 1;; i++)
	{
		bool isnull;
		bool isout;
		Datum value;
		Datum at;

		CHECK_FOR_INTERRUPTS();
		value =
			WinGetFuncArgInPartition(window, 1, (int) i, WINDOW_SEEK_HEAD, false, &isnull, &isout);
		if (isout)
			return;
		if (isnull)
			continue;
		state->after = DatumGetFloat8(value);
		at = WinGetFuncArgInPartition(window, 0, (int) i, WINDOW_SEEK_HEAD, false, &isnull, &isout);
		if (isnull)
			continue;
		state->after_at = DatumGetTimestampTz(at);
		state->after_row = i;
		return;
	}
}

/*
 * bucket_interpolate(ts timestamptz, value float8) OVER (ORDER BY ts) -> float8: the value or, if
 * it is NULL, the linear interpolation between the values before and after; NULL if one of these is
 * missing.
 */
DP_FUNCTION(dp_bucket_interpolate);
Datum
dp_bucket_interpolate(PG_FUNCTION_ARGS)
{
	WindowObject window = PG_WINDOW_OBJECT();
	Interpolation *state;
	int64 row;
	int64 at;
	Datum value;
	bool isnull;
	bool no_time;

	state = WinGetPartitionLocalMemory(window, sizeof(Interpolation));
	row = WinGetCurrentPosition(window);
	if (!state->valid)
	{
		state->valid = true;
		state->after_row = 0;
		state->looked_for = -1;
	}
	at = DatumGetTimestampTz(WinGetFuncArgCurrent(window, 0, &no_time));
	value = WinGetFuncArgCurrent(window, 1, &isnull);
	if (!isnull)
	{
		if (!no_time)
		{
			state->has_before = true;
			state->before_at = at;
			state->before = DatumGetFloat8(value);
		}
		PG_RETURN_DATUM(value);
	}
	if (no_time || !state->has_before)
		PG_RETURN_NULL();
	find_after(window, state, row);
	if (state->after_row < 0)
		PG_RETURN_NULL();
	if (state->after_at == state->before_at)
		PG_RETURN_FLOAT8(state->before);
	PG_RETURN_FLOAT8(state->before + (state->after - state->before) *
										 ((double) (at - state->before_at) /
										  (double) (state->after_at - state->before_at)));
}
