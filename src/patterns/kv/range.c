/*
 * range.c
 *		Sorted sets of key-value spaces: reading ranks and ranges, removing ranges.
 *
 * All reads use the snapshot of the calling statement, without a lock.  Ranges are
 * removed under the exclusive lock, and their members counted by blocks.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "bson/compare.h"
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
static Range range_read(FunctionCallInfo fcinfo, bool reverse);
static int64 range_remove(DpKvCall *call, Range range);
static Datum scores_return(FunctionCallInfo fcinfo, bool reverse);
static bool ranks_read(FunctionCallInfo fcinfo, int64 n, int64 *start, int64 *stop);
static bool rank_scan(DpKvScan *scan, DpKvCall *call, int64 rank, Snapshot snapshot);
static void
rank_position(DpKvCall *call, int64 rank, Snapshot snapshot, Datum *score, Datum *member);
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
	range = range_read(fcinfo, false);
	if (dp_kv_key_read(&call, KV_SCORES))
		n = dp_kv_count_before(&call, range.until_score, range.until_member, call.snapshot) -
			dp_kv_count_before(&call, range.since_score, range.since_member, call.snapshot);
	dp_kv_end(&call);
	PG_RETURN_INT64(Max(n, 0));
}

/*
 * kv_zrangebyscore(space, key, min, max, skip, take), kv_zrevrangebyscore(space, key, max, min,
 * skip, take) -> rows (member, score)
 */
DP_FUNCTION(dp_kv_zrangebyscore);
Datum
dp_kv_zrangebyscore(PG_FUNCTION_ARGS)
{
	return scores_return(fcinfo, false);
}

DP_FUNCTION(dp_kv_zrevrangebyscore);
Datum
dp_kv_zrevrangebyscore(PG_FUNCTION_ARGS)
{
	return scores_return(fcinfo, true);
}

static Datum
scores_return(FunctionCallInfo fcinfo, bool reverse)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int64 skip = PG_ARGISNULL(4) ? 0 : PG_GETARG_INT64(4);
	int64 take = PG_ARGISNULL(5) ? PG_INT64_MAX : PG_GETARG_INT64(5);
	ScanDirection direction = reverse ? BackwardScanDirection : ForwardScanDirection;
	DpKvCall call;
	Range range;
	DpKvScan scan;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT);
	if (skip < 0 || take < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("skip and take must be zero or more")));
	range = range_read(fcinfo, reverse);
	if (dp_kv_key_read(&call, KV_SCORES))
	{
		dp_kv_scan(&scan, &call, KV_SCORES, true, call.snapshot);
		dp_kv_scan_bound(&scan, SCORES_BOUND, BTGreaterEqualStrategyNumber, range.since_score,
						 range.since_member);
		dp_kv_scan_bound(&scan, SCORES_BOUND, BTLessStrategyNumber, range.until_score,
						 range.until_member);
		while (take > 0 && dp_kv_scan_next(&scan, direction))
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
	DpKvCall call;
	int64 start;
	int64 stop;
	int64 n;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT);
	if (dp_kv_key_read(&call, KV_SCORES))
	{
		n = dp_kv_count_all(&call, call.snapshot);
		if (ranks_read(fcinfo, n, &start, &stop))
		{
			int64 rows = stop - start + 1;
			DpKvScan scan;
			bool more = rank_scan(&scan, &call, reverse ? n - 1 - start : start, call.snapshot);

			if (reverse && more)
			{
				Datum score = datumCopy(dp_kv_column(scan.r, KV_SCORES_SCORE), false, -1);
				Datum member = datumCopy(dp_kv_column(scan.r, KV_SCORES_MEMBER), false, -1);

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

/* Reads the third and fourth argument, of n ranks. Returns whether there are such ranks. */
static bool
ranks_read(FunctionCallInfo fcinfo, int64 n, int64 *start, int64 *stop)
{
	*start = PG_GETARG_INT64(2);
	*stop = PG_GETARG_INT64(3);
	if (*start < 0)
		*start = *start < -n ? 0 : *start + n;
	if (*stop < 0)
		*stop = *stop < -n ? -1 : *stop + n;
	*stop = Min(*stop, n - 1);
	return *start <= *stop;
}

/* Begins a scan with the member of a rank as its current row. Returns whether it exists. */
static bool
rank_scan(DpKvScan *scan, DpKvCall *call, int64 rank, Snapshot snapshot)
{
	Datum score;
	Datum member;
	int64 skip = rank - dp_kv_count_seek(call, rank, snapshot, &score, &member);
	bool more = true;

	/* skip to it from the bound of its block */
	dp_kv_scan(scan, call, KV_SCORES, true, snapshot);
	dp_kv_scan_bound(scan, SCORES_BOUND, BTGreaterEqualStrategyNumber, score, member);
	while (skip > 0 && (more = dp_kv_scan_count(scan)))
		skip--;
	return more && dp_kv_scan_next(scan, ForwardScanDirection);
}

/* Removing ranges */

/*
 * kv_zremrangebyscore(space, key, min, max) -> bigint: number of removed members
 */
DP_FUNCTION(dp_kv_zremrangebyscore);
Datum
dp_kv_zremrangebyscore(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Range range;
	int64 removed = 0;

	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT | ACL_DELETE);
	range = range_read(fcinfo, false);
	call.wants_exclusive = true;
	if (dp_kv_key_write(&call, KV_SCORES, false))
		removed = range_remove(&call, range);
	dp_kv_end(&call);
	PG_RETURN_INT64(removed);
}

/*
 * kv_zremrangebyrank(space, key, start, stop) -> bigint: number of removed members
 */
DP_FUNCTION(dp_kv_zremrangebyrank);
Datum
dp_kv_zremrangebyrank(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	int64 removed = 0;

	if (PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("start and stop must not be null")));
	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT | ACL_DELETE);
	call.wants_exclusive = true;
	if (dp_kv_key_write(&call, KV_SCORES, false))
	{
		Snapshot snapshot = IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : call.snapshot;
		int64 n = dp_kv_count_all(&call, snapshot);
		int64 start;
		int64 stop;

		if (ranks_read(fcinfo, n, &start, &stop))
		{
			Range range = { .until_score = highest(), .until_member = highest() };

			rank_position(&call, start, snapshot, &range.since_score, &range.since_member);
			if (stop < n - 1)
				rank_position(&call, stop + 1, snapshot, &range.until_score, &range.until_member);
			removed = range_remove(&call, range);
		}
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(removed);
}

/* Reads score and member of a rank, both copied. */
static void
rank_position(DpKvCall *call, int64 rank, Snapshot snapshot, Datum *score, Datum *member)
{
	DpKvScan scan;

	if (!rank_scan(&scan, call, rank, snapshot))
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("the blocks of a sorted set count more members than it has")));
	*score = PointerGetDatum(PG_DETOAST_DATUM_COPY(dp_kv_column(scan.r, KV_SCORES_SCORE)));
	*member = PointerGetDatum(PG_DETOAST_DATUM_COPY(dp_kv_column(scan.r, KV_SCORES_MEMBER)));
	dp_kv_scan_end(&scan);
}

/*
 * Removes a range of a sorted set that is locked exclusively, block by block, and the key with its
 * last member. Returns the number of members. The transaction's snapshot decides which ones: those
 * that have changed since raise T_R_SERIALIZATION_FAILURE.
 */
static int64
range_remove(DpKvCall *call, Range range)
{
	DpValue until_score = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(range.until_score));
	DpValue until_member = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(range.until_member));
	int64 removed = 0;
	bool more = true;

	while (more)
	{
		Datum end_score = range.since_score;
		Datum end_member = range.since_member;
		Datum score = (Datum) 0;
		Datum member = (Datum) 0;
		int64 n = 0;
		DpKvScan scan;

		more = dp_kv_count_next(call, &end_score, &end_member, call->snapshot);
		if (more)
		{
			DpValue value = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(end_score));
			int cmp = dp_value_compare(&value, &until_score);

			if (cmp == 0)
			{
				value = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(end_member));
				cmp = dp_value_compare(&value, &until_member);
			}
			more = cmp < 0;
		}
		if (!more)
		{
			end_score = range.until_score;
			end_member = range.until_member;
		}

		dp_kv_scan(&scan, call, KV_SCORES, true,
				   IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : call->snapshot);
		dp_kv_scan_bound(&scan, SCORES_BOUND, BTGreaterEqualStrategyNumber, range.since_score,
						 range.since_member);
		dp_kv_scan_bound(&scan, SCORES_BOUND, BTLessStrategyNumber, end_score, end_member);
		while (dp_kv_scan_next(&scan, ForwardScanDirection))
		{
			if (n++ == 0)
			{
				score =
					PointerGetDatum(PG_DETOAST_DATUM_COPY(dp_kv_column(scan.r, KV_SCORES_SCORE)));
				member =
					PointerGetDatum(PG_DETOAST_DATUM_COPY(dp_kv_column(scan.r, KV_SCORES_MEMBER)));
			}
			if (!dp_kv_delete(call, KV_SCORES, true))
				dp_kv_lost();
		}
		dp_kv_scan_end(&scan);
		if (n > 0)
			dp_kv_count_move(call, score, (Datum) 0, member, n);
		removed += n;
		range.since_score = end_score;
		range.since_member = end_member;
	}
	if (removed > 0)
		dp_kv_key_emptied(call, KV_SCORES);
	return removed;
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

/*
 * Reads the third and fourth argument, min and max (reverse: max and min): scores, or texts; "("
 * excludes the score.
 */
static Range
range_read(FunctionCallInfo fcinfo, bool reverse)
{
	int min = reverse ? 1 : 0;
	int max = 1 - min;
	Datum *given;
	Oid *types;
	bool *nulls;
	bool exclusive;
	Range range;

	(void) extract_variadic_args(fcinfo, 2, true, &given, &types, &nulls);
	if (nulls[0] || nulls[1])
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("min and max must not be null")));
	range.since_score = PointerGetDatum(dp_kv_score(given[min], types[min], &exclusive));
	range.since_member = exclusive ? highest() : dp_kv_lowest();
	range.until_score = PointerGetDatum(dp_kv_score(given[max], types[max], &exclusive));
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
