/*
 * windowfn.c
 *		Functions that the SQL of $bucket, $bucketAuto, $setWindowFields and $densify calls.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "windowapi.h"

#include "bson/builder.h"
#include "bson/compare.h"
#include "mql/expression_node.h"
#include "mql/pipeline/window.h"

/* ---------------------------------------------------------------- $bucket */

/* _no_bucket(value bson_value) -> bson_value: raises the error of a value without a bucket. */
DP_FUNCTION(dp_pipeline_no_bucket);
Datum
dp_pipeline_no_bucket(PG_FUNCTION_ARGS)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("$bucket has no bucket for a value outside of its boundaries"),
					errhint("Add a default.")));
	PG_RETURN_NULL();
}

/* ---------------------------------------------------------------- $bucketAuto */

/* Where _bucket_auto is in its partition */
typedef struct BucketAuto
{
	int64 number;        /* of buckets so far */
	int64 until;         /* the row after the current bucket */
	struct varlena *id;  /* its boundaries */
	struct varlena *max; /* with a granularity, its upper boundary; or NULL */
} BucketAuto;

static void begin_bucket(FunctionCallInfo fcinfo, BucketAuto *state, int64 row);
static bool row_value(WindowObject window, int64 row, DpValue *v);
static void check_roundable(const DpValue *v);

/*
 * _bucket_auto(value bson_value, buckets int, granularity text) OVER (ORDER BY value) -> bson: the
 * boundaries of the row's bucket.
 */
DP_FUNCTION(dp_pipeline_bucket_auto);
Datum
dp_pipeline_bucket_auto(PG_FUNCTION_ARGS)
{
	WindowObject window = PG_WINDOW_OBJECT();
	BucketAuto *state = WinGetPartitionLocalMemory(window, sizeof(BucketAuto));
	int64 row = WinGetCurrentPosition(window);

	if (row >= state->until)
		begin_bucket(fcinfo, state, row);
	WinSetMarkPosition(window, row);
	PG_RETURN_POINTER(state->id);
}

static void
begin_bucket(FunctionCallInfo fcinfo, BucketAuto *state, int64 row)
{
	WindowObject window = PG_WINDOW_OBJECT();
	MemoryContext old;
	bool isnull;
	int32 buckets = DatumGetInt32(WinGetFuncArgCurrent(window, 1, &isnull));
	const char *granularity = NULL;
	int64 n = WinGetPartitionRowCount(window);
	int64 size = Max((int64) round((double) n / buckets), 1);
	int64 next;
	DpValue min = { NULL, 0, DP_TYPE_EOD };
	DpValue max = { NULL, 0, DP_TYPE_EOD };
	DpValue v = { NULL, 0, DP_TYPE_EOD };
	DpBuilder b;

	if (PG_NARGS() > 2)
		granularity = text_to_cstring(DatumGetTextPP(WinGetFuncArgCurrent(window, 2, &isnull)));
	next = ++state->number == buckets ? n : Min(row + size, n);
	(void) row_value(window, row, &min);
	(void) row_value(window, next - 1, &max);
	if (granularity != NULL)
	{
		DpValue limit;

		/* the order of types brings those that are no numbers to both ends */
		check_roundable(&min);
		check_roundable(&max);
		dp_granularity_round(granularity, &max, true, &limit);
		for (; row_value(window, next, &v); next++)
		{
			check_roundable(&v);
			if (dp_value_compare(&limit, &v) <= 0)
				break;
		}
		if (dp_number_to_double(&limit) == 0 && next < n)
			dp_granularity_round(granularity, &v, false, &limit);
		max = limit;
		if (state->max != NULL)
			min = dp_value_of_varlena(state->max);
		else
		{
			dp_granularity_round(granularity, &min, false, &v);
			min = v;
		}
	}
	else
	{
		while (row_value(window, next, &v) && dp_value_compare(&max, &v) == 0)
			next++;
		if (next < n)
			max = v;
	}
	old = MemoryContextSwitchTo(GetMemoryChunkContext(state));
	dp_builder_init(&b, 64);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, "min", 3, &min);
	dp_builder_append_value(&b, "max", 3, &max);
	dp_builder_end(&b);
	state->id = dp_builder_finish_bson(&b);
	if (granularity != NULL)
		state->max = dp_value_to_varlena(&max);
	state->until = next;
	MemoryContextSwitchTo(old);
}

/* A copy of the value of a row; returns false and leaves *v if there is no such row. */
static bool
row_value(WindowObject window, int64 row, DpValue *v)
{
	bool isnull;
	bool out;
	Datum d;

	CHECK_FOR_INTERRUPTS();
	d = WinGetFuncArgInPartition(window, 0, row, WINDOW_SEEK_HEAD, false, &isnull, &out);
	if (out)
		return false;
	*v = dp_value_of_varlena(PG_DETOAST_DATUM_COPY(d));
	return true;
}

static void
check_roundable(const DpValue *v)
{
	if (!dp_type_is_number(v->type))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("$bucketAuto with a granularity needs numbers, not %s",
							   dp_type_name(v->type))));
	if (!(dp_number_to_double(v) >= 0))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("$bucketAuto with a granularity needs numbers of at least 0")));
}
