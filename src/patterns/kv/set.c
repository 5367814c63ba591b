/*
 * set.c
 *		Sets of key-value spaces, and functions shared with the other structures.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "access/xact.h"
#include "common/pg_prng.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "bson/cast.h"
#include "bson/compare.h"
#include "patterns/kv/kv.h"

/* Members in order */
typedef struct Members
{
	struct varlena **values;
	int64 n;
	int64 room;
} Members;

static Members members_read(DpKvCall *call);
static Members members_combine(FunctionCallInfo fcinfo, char how);
static Datum members_return(FunctionCallInfo fcinfo, struct varlena **values, int64 n);
static int64 members_draw(DpKvCall *call, int64 take, struct varlena ***drawn);
static struct varlena **members_pop(FunctionCallInfo fcinfo, int64 *take);

/* Shared */

int64
dp_kv_count_rows(DpKvCall *call, DpKvTable table)
{
	DpKvScan scan;
	int64 n = 0;

	dp_kv_scan(&scan, call, table, false, call->snapshot);
	while (dp_kv_scan_count(&scan))
		n++;
	dp_kv_scan_end(&scan);
	return n;
}

Datum
dp_kv_list_rows(FunctionCallInfo fcinfo, DpKvTable table, int column)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpKvCall call;
	DpKvScan scan;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	dp_kv_begin_args(&call, fcinfo, table, ACL_SELECT);
	if (dp_kv_key_read(&call, table))
	{
		dp_kv_scan(&scan, &call, table, false, call.snapshot);
		while (dp_kv_scan_next(&scan, ForwardScanDirection))
		{
			Datum value = dp_kv_column(scan.r, column);
			bool isnull = false;

			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &isnull);
		}
		dp_kv_scan_end(&scan);
	}
	dp_kv_end(&call);
	return (Datum) 0;
}

/* Sets */

/*
 * kv_sadd(space, key, member, ...) -> bigint: number of new members
 */
DP_FUNCTION(dp_kv_sadd);
Datum
dp_kv_sadd(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum *members;
	int n;
	int i;
	int64 added = 0;

	dp_kv_begin_args(&call, fcinfo, KV_SETS, ACL_INSERT);
	n = dp_kv_values(fcinfo, 2, &members);
	if (n > 0)
		(void) dp_kv_key_write(&call, KV_SETS, true);
	for (i = 0; i < n; i++)
	{
		Datum values[2];

		/* searched first: inserting an existing row costs more */
		if (dp_kv_find(&call, KV_SETS, members[i], call.snapshot))
			continue;
		values[0] = call.key;
		values[1] = members[i];
		if (dp_kv_insert_unless(&call, KV_SETS, values, NULL))
			added++;
		else if (IsolationUsesXactSnapshot())
			dp_kv_lost();
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(added);
}

/*
 * kv_srem(space, key, member, ...) -> bigint: number of removed members
 */
DP_FUNCTION(dp_kv_srem);
Datum
dp_kv_srem(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum *members;
	int n;
	int i;
	int64 removed = 0;

	dp_kv_begin_args(&call, fcinfo, KV_SETS, ACL_DELETE);
	n = dp_kv_values(fcinfo, 2, &members);
	if (dp_kv_key_write(&call, KV_SETS, false))
	{
		for (i = 0; i < n; i++)
		{
			while (dp_kv_find(&call, KV_SETS, members[i], call.snapshot))
			{
				if (dp_kv_delete(&call, KV_SETS, true))
				{
					removed++;
					break;
				}
				dp_kv_refresh(&call);
			}
		}
		if (removed > 0)
			dp_kv_key_emptied(&call, KV_SETS);
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(removed);
}

/*
 * kv_sismember(space, key, member) -> boolean
 */
DP_FUNCTION(dp_kv_sismember);
Datum
dp_kv_sismember(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum *members;
	bool result;

	dp_kv_begin_args(&call, fcinfo, KV_SETS, ACL_SELECT);
	if (dp_kv_values(fcinfo, 2, &members) != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("exactly one member must be specified")));
	result =
		dp_kv_key_read(&call, KV_SETS) && dp_kv_find(&call, KV_SETS, members[0], call.snapshot);
	dp_kv_end(&call);
	PG_RETURN_BOOL(result);
}

/*
 * kv_scard(space, key) -> bigint; kv_smembers(space, key) -> setof bson_value
 */
DP_FUNCTION(dp_kv_scard);
Datum
dp_kv_scard(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	int64 n = 0;

	dp_kv_begin_args(&call, fcinfo, KV_SETS, ACL_SELECT);
	if (dp_kv_key_read(&call, KV_SETS))
		n = dp_kv_count_rows(&call, KV_SETS);
	dp_kv_end(&call);
	PG_RETURN_INT64(n);
}

DP_FUNCTION(dp_kv_smembers);
Datum
dp_kv_smembers(PG_FUNCTION_ARGS)
{
	return dp_kv_list_rows(fcinfo, KV_SETS, KV_SETS_MEMBER);
}

/*
 * kv_sinter, kv_sunion, kv_sdiff(space, VARIADIC keys) -> setof bson_value
 */
DP_FUNCTION(dp_kv_sinter);
Datum
dp_kv_sinter(PG_FUNCTION_ARGS)
{
	Members result = members_combine(fcinfo, 'i');

	return members_return(fcinfo, result.values, result.n);
}

DP_FUNCTION(dp_kv_sunion);
Datum
dp_kv_sunion(PG_FUNCTION_ARGS)
{
	Members result = members_combine(fcinfo, 'u');

	return members_return(fcinfo, result.values, result.n);
}

DP_FUNCTION(dp_kv_sdiff);
Datum
dp_kv_sdiff(PG_FUNCTION_ARGS)
{
	Members result = members_combine(fcinfo, 'd');

	return members_return(fcinfo, result.values, result.n);
}

/*
 * kv_srandmember(space, key) -> bson_value, NULL for an empty set
 * kv_srandmember(space, key, take) -> setof bson_value: take distinct members;
 * -take members drawn independently
 */
DP_FUNCTION(dp_kv_srandmember);
Datum
dp_kv_srandmember(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	struct varlena **drawn = NULL;
	int64 n = 0;

	dp_kv_begin_args(&call, fcinfo, KV_SETS, ACL_SELECT);
	if (dp_kv_key_read(&call, KV_SETS))
		n = members_draw(&call, 1, &drawn);
	dp_kv_end(&call);
	if (n == 0)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(drawn[0]);
}

DP_FUNCTION(dp_kv_srandmember_take);
Datum
dp_kv_srandmember_take(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	struct varlena **drawn = NULL;
	int64 n = 0;

	dp_kv_begin_args(&call, fcinfo, KV_SETS, ACL_SELECT);
	if (dp_kv_key_read(&call, KV_SETS))
		n = members_draw(&call, PG_GETARG_INT64(2), &drawn);
	dp_kv_end(&call);
	return members_return(fcinfo, drawn, n);
}

/*
 * kv_spop(space, key) -> bson_value; kv_spop(space, key, take) -> setof bson_value: removes random
 * members. Locks the key exclusively.
 */
DP_FUNCTION(dp_kv_spop);
Datum
dp_kv_spop(PG_FUNCTION_ARGS)
{
	int64 n = 1;
	struct varlena **popped = members_pop(fcinfo, &n);

	if (n == 0)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(popped[0]);
}

DP_FUNCTION(dp_kv_spop_take);
Datum
dp_kv_spop_take(PG_FUNCTION_ARGS)
{
	int64 n;
	struct varlena **popped;

	if (PG_ARGISNULL(2) || PG_GETARG_INT64(2) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("take must be zero or more")));
	n = PG_GETARG_INT64(2);
	popped = members_pop(fcinfo, &n);
	return members_return(fcinfo, popped, n);
}

/* Draws members and removes them; *take becomes their number. */
static struct varlena **
members_pop(FunctionCallInfo fcinfo, int64 *take)
{
	DpKvCall call;
	struct varlena **drawn = NULL;
	int64 n = 0;
	int64 i;

	dp_kv_begin_args(&call, fcinfo, KV_SETS, ACL_SELECT | ACL_DELETE);
	call.wants_exclusive = true;
	if (dp_kv_key_write(&call, KV_SETS, false))
	{
		n = members_draw(&call, *take, &drawn);
		for (i = 0; i < n; i++)
		{
			if (!dp_kv_find(&call, KV_SETS, PointerGetDatum(drawn[i]), call.snapshot) ||
				!dp_kv_delete(&call, KV_SETS, true))
				dp_kv_lost();
		}
		if (n > 0)
			dp_kv_key_emptied(&call, KV_SETS);
	}
	dp_kv_end(&call);
	*take = n;
	return drawn;
}

/*
 * Draws members with equal probability, with repetitions if take is negative. Reads the whole set.
 */
static int64
members_draw(DpKvCall *call, int64 take, struct varlena ***drawn)
{
	Members all;
	int64 n;
	int64 i;

	*drawn = NULL;
	if (take == 0)
		return 0;
	all = members_read(call);
	if (take < 0)
	{
		if (take < -(int64) (MaxAllocSize / sizeof(void *)))
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("too many members are asked for")));
		n = all.n == 0 ? 0 : -take;
		*drawn = palloc(sizeof(void *) * Max(n, 1));
		for (i = 0; i < n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			(*drawn)[i] = all.values[pg_prng_uint64_range(&pg_global_prng_state, 0, all.n - 1)];
		}
		return n;
	}
	n = Min(take, all.n);
	for (i = 0; i < n; i++)
	{
		int64 other = i + (int64) pg_prng_uint64_range(&pg_global_prng_state, 0, all.n - 1 - i);
		struct varlena *value = all.values[other];

		all.values[other] = all.values[i];
		all.values[i] = value;
	}
	*drawn = all.values;
	return n;
}

/* All members of call->key, in order. */
static Members
members_read(DpKvCall *call)
{
	Members result = { NULL, 0, 64 };
	DpKvScan scan;

	result.values = palloc(sizeof(void *) * result.room);
	dp_kv_scan(&scan, call, KV_SETS, false, call->snapshot);
	while (dp_kv_scan_next(&scan, ForwardScanDirection))
	{
		if (result.n == result.room)
		{
			result.room *= 2;
			result.values = repalloc_huge(result.values, sizeof(void *) * result.room);
		}
		result.values[result.n++] = PG_DETOAST_DATUM_COPY(dp_kv_column(scan.r, KV_SETS_MEMBER));
	}
	dp_kv_scan_end(&scan);
	return result;
}

/* Returns the intersection, union or difference of sets by merging them in order. */
static Members
members_combine(FunctionCallInfo fcinfo, char how)
{
	Members result = { NULL, 0, 0 };
	DpKvCall call;
	Datum *keys;
	bool *nulls;
	int n;
	int i;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, -1, false, TYPALIGN_INT, &keys, &nulls,
					  &n);
	dp_kv_begin(&call, PG_GETARG_TEXT_PP(0), NULL, KV_SETS, ACL_SELECT);
	for (i = 0; i < n; i++)
	{
		Members next = { NULL, 0, 0 };
		Members merged;
		int64 a = 0;
		int64 b = 0;

		if (nulls[i])
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("keys and fields must not be null")));
		call.key = keys[i];
		if (dp_kv_key_read(&call, KV_SETS))
			next = members_read(&call);
		if (i == 0)
		{
			result = next;
			continue;
		}
		merged.values =
			palloc_extended(sizeof(void *) * Max(result.n + next.n, 1), MCXT_ALLOC_HUGE);
		merged.n = 0;
		merged.room = 0;
		while (a < result.n || b < next.n)
		{
			int cmp = a == result.n ? 1 : b == next.n ? -1 : 0;

			CHECK_FOR_INTERRUPTS();
			if (cmp == 0)
			{
				DpValue left = dp_value_of_varlena(result.values[a]);
				DpValue right = dp_value_of_varlena(next.values[b]);

				cmp = dp_value_compare(&left, &right);
			}
			if (how == 'u' || (how == 'i' && cmp == 0) || (how == 'd' && cmp < 0))
				merged.values[merged.n++] = cmp <= 0 ? result.values[a] : next.values[b];
			if (cmp <= 0)
				a++;
			if (cmp >= 0)
				b++;
		}
		result = merged;
	}
	dp_kv_end(&call);
	return result;
}

/* Returns members as rows. */
static Datum
members_return(FunctionCallInfo fcinfo, struct varlena **values, int64 n)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int64 i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (i = 0; i < n; i++)
	{
		Datum value = PointerGetDatum(values[i]);
		bool isnull = false;

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &isnull);
	}
	return (Datum) 0;
}
