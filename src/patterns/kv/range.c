/*
 * range.c
 *		Sorted sets of key-value spaces: reading ranks and ranges.
 *
 * All reads use the snapshot of the calling statement, without a lock.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/tuplestore.h"

#include "patterns/kv/kv.h"

/* Columns of the index of scores where bounds begin */
#define SCORES_BOUND 2

/* A range of scores as two positions, the second exclusive */
typedef struct Range
{
	Datum since_score;
	Datum since_member;
	Datum until_score;
	Datum until_member;
} Range;

static Datum highest(void);
static Range range_read(FunctionCallInfo fcinfo);
static bool member_score(DpKvCall *call, FunctionCallInfo fcinfo, Datum *member, Datum *score);
static Datum rank_return(FunctionCallInfo fcinfo, bool reverse);
static Datum range_return(FunctionCallInfo fcinfo, bool reverse);
static void put(ReturnSetInfo *rsinfo, DpKvRel *r);

/*
 * kv_zscore(space, key, member) -> numeric, NULL without the member
 */
DP_FUNCTION(dp_kv_zscore);
Datum
dp_kv_zscore(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum member;
	Datum score;
	bool found;

	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT);
	found = member_score(&call, fcinfo, &member, &score);
	dp_kv_end(&call);
	if (!found)
		PG_RETURN_NULL();
	return dp_kv_score_number(score);
}

/*
 * kv_zrank, kv_zrevrank(space, key, member) -> bigint: number of members before (or after) it,
 * NULL without it
 */
DP_FUNCTION(dp_kv_zrank);
Datum
dp_kv_zrank(PG_FUNCTION_ARGS)
{
	return rank_return(fcinfo, false);
}

DP_FUNCTION(dp_kv_zrevrank);
Datum
dp_kv_zrevrank(PG_FUNCTION_ARGS)
{
	return rank_return(fcinfo, true);
}

static Datum
rank_return(FunctionCallInfo fcinfo, bool reverse)
{
	DpKvCall call;
	Datum member;
	Datum score;
	bool found;
	int64 rank = 0;

	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT);
	found = member_score(&call, fcinfo, &member, &score);
	if (found)
	{
		rank = dp_kv_count_before(&call, score, member, call.snapshot);
		if (reverse)
			rank = dp_kv_count_all(&call, call.snapshot) - 1 - rank;
	}
	dp_kv_end(&call);
	if (!found)
		PG_RETURN_NULL();
	PG_RETURN_INT64(rank);
}

/*
 * kv_zcard(space, key) -> bigint
 */
DP_FUNCTION(dp_kv_zcard);
Datum
dp_kv_zcard(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	int64 n = 0;

	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT);
	if (dp_kv_key_read(&call, KV_SCORES))
		n = dp_kv_count_all(&call, call.snapshot);
	dp_kv_end(&call);
	PG_RETURN_INT64(n);
}

/*
 * kv_zcount(space, key, min, max) -> bigint: number of members with scores in the range
 */
DP_FUNCTION(dp_kv_zcount);
Datum
dp_kv_zcount(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Range range;
	int64 n = 0;

	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT);
	range = range_read(fcinfo);
	if (dp_kv_key_read(&call, KV_SCORES))
		n = dp_kv_count_before(&call, range.until_score, range.until_member, call.snapshot) -
			dp_kv_count_before(&call, range.since_score, range.since_member, call.snapshot);
	dp_kv_end(&call);
	PG_RETURN_INT64(Max(n, 0));
}

/*
 * kv_zrangebyscore(space, key, min, max, skip, take) -> rows (member, score)
 */
DP_FUNCTION(dp_kv_zrangebyscore);
Datum
dp_kv_zrangebyscore(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int64 skip = PG_ARGISNULL(4) ? 0 : PG_GETARG_INT64(4);
	int64 take = PG_ARGISNULL(5) ? PG_INT64_MAX : PG_GETARG_INT64(5);
	DpKvCall call;
	Range range;
	DpKvScan scan;

	InitMaterializedSRF(fcinfo, 0);
	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT);
	if (skip < 0 || take < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("skip and take must be zero or more")));
	range = range_read(fcinfo);
	if (take > 0 && dp_kv_key_read(&call, KV_SCORES))
	{
		dp_kv_scan(&scan, &call, KV_SCORES, true, call.snapshot);
		dp_kv_scan_bound(&scan, SCORES_BOUND, BTGreaterEqualStrategyNumber, range.since_score,
						 range.since_member);
		dp_kv_scan_bound(&scan, SCORES_BOUND, BTLessStrategyNumber, range.until_score,
						 range.until_member);
		while (take > 0 && dp_kv_scan_next(&scan, ForwardScanDirection))
		{
			if (skip > 0)
			{
				skip--;
				continue;
			}
			put(rsinfo, scan.r);
			take--;
		}
		dp_kv_scan_end(&scan);
	}
	dp_kv_end(&call);
	return (Datum) 0;
}

/*
 * kv_zrange, kv_zrevrange(space, key, start, stop) -> rows (member, score) of these ranks;
 * negative ranks count from the end
 */
DP_FUNCTION(dp_kv_zrange);
Datum
dp_kv_zrange(PG_FUNCTION_ARGS)
{
	return range_return(fcinfo, false);
}

DP_FUNCTION(dp_kv_zrevrange);
Datum
dp_kv_zrevrange(PG_FUNCTION_ARGS)
{
	return range_return(fcinfo, true);
}

static Datum
range_return(FunctionCallInfo fcinfo, bool reverse)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int64 start = PG_GETARG_INT64(2);
	int64 stop = PG_GETARG_INT64(3);
	DpKvCall call;
	int64 n;

	InitMaterializedSRF(fcinfo, 0);
	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT);
	if (dp_kv_key_read(&call, KV_SCORES))
	{
		n = dp_kv_count_all(&call, call.snapshot);
		if (start < 0)
			start = start < -n ? 0 : start + n;
		if (stop < 0)
			stop = stop < -n ? -1 : stop + n;
		stop = Min(stop, n - 1);
		if (start <= stop)
		{
			int64 first = reverse ? n - 1 - start : start;
			int64 rows = stop - start + 1;
			Datum score;
			Datum member;
			int64 skip = first - dp_kv_count_seek(&call, first, call.snapshot, &score, &member);
			bool more = true;
			DpKvScan scan;

			/* skip to the first one, from the bound of its block */
			dp_kv_scan(&scan, &call, KV_SCORES, true, call.snapshot);
			dp_kv_scan_bound(&scan, SCORES_BOUND, BTGreaterEqualStrategyNumber, score, member);
			while (skip > 0 && (more = dp_kv_scan_count(&scan)))
				skip--;
			more = more && dp_kv_scan_next(&scan, ForwardScanDirection);
			if (reverse && more)
			{
				score = datumCopy(dp_kv_column(scan.r, KV_SCORES_SCORE), false, -1);
				member = datumCopy(dp_kv_column(scan.r, KV_SCORES_MEMBER), false, -1);
				dp_kv_scan_end(&scan);
				dp_kv_scan(&scan, &call, KV_SCORES, true, call.snapshot);
				dp_kv_scan_bound(&scan, SCORES_BOUND, BTLessEqualStrategyNumber, score, member);
				more = dp_kv_scan_next(&scan, BackwardScanDirection);
			}
			while (more && rows-- > 0)
			{
				put(rsinfo, scan.r);
				more = rows > 0 && dp_kv_scan_next(&scan, reverse ? BackwardScanDirection
																  : ForwardScanDirection);
			}
			dp_kv_scan_end(&scan);
		}
	}
	dp_kv_end(&call);
	return (Datum) 0;
}

/* Returns a row of scores as a row of the result. */
static void
put(ReturnSetInfo *rsinfo, DpKvRel *r)
{
	Datum values[2] = { dp_kv_column(r, KV_SCORES_MEMBER),
						dp_kv_score_number(dp_kv_column(r, KV_SCORES_SCORE)) };
	bool nulls[2] = { false, false };

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* Reads the member and its score, both copied. Returns whether it exists. */
static bool
member_score(DpKvCall *call, FunctionCallInfo fcinfo, Datum *member, Datum *score)
{
	Datum *members;
	DpKvRel *r;

	if (dp_kv_values(fcinfo, 2, &members) != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("exactly one member must be specified")));
	if (!dp_kv_key_read(call, KV_SCORES) ||
		!dp_kv_find(call, KV_SCORES, members[0], call->snapshot))
		return false;
	r = dp_kv_rel(call, KV_SCORES);
	*member = members[0];
	*score = PointerGetDatum(PG_DETOAST_DATUM_COPY(dp_kv_column(r, KV_SCORES_SCORE)));
	return true;
}

/* Reads the third and fourth argument: scores, or texts; "(" excludes the score. */
static Range
range_read(FunctionCallInfo fcinfo)
{
	Datum *given;
	Oid *types;
	bool *nulls;
	bool exclusive;
	Range range;

	(void) extract_variadic_args(fcinfo, 2, true, &given, &types, &nulls);
	if (nulls[0] || nulls[1])
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("min and max must not be null")));
	range.since_score = PointerGetDatum(dp_kv_score(given[0], types[0], &exclusive));
	range.since_member = exclusive ? highest() : dp_kv_lowest();
	range.until_score = PointerGetDatum(dp_kv_score(given[1], types[1], &exclusive));
	range.until_member = exclusive ? dp_kv_lowest() : highest();
	return range;
}

/* MaxKey as a bson_value */
static Datum
highest(void)
{
	static union
	{
		char bytes[VARHDRSZ + 1];
		int32 align;
	} value;

	SET_VARSIZE(value.bytes, VARHDRSZ + 1);
	value.bytes[VARHDRSZ] = DP_TYPE_MAXKEY;
	return PointerGetDatum(value.bytes);
}
