/*
 * sorted.c
 *		Sorted sets of key-value spaces: writing members with scores.
 *
 * A score is stored as an int64 or a double and compared exactly: 2^53 + 1 is more
 * than the double 2^53.  Members with the same score are sorted by themselves.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "bson/amount.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "patterns/kv/kv.h"

/* A member and its score */
typedef struct Scored
{
	struct varlena *member;
	struct varlena *score;
	int position;
} Scored;

static int flags_read(Datum *given, const Oid *types, const bool *nulls, int n, int *used);
static int scored_read(FunctionCallInfo fcinfo, int *flags, Scored **pairs);
static int scored_order(const void *a, const void *b);
static struct varlena *score_of_text(const char *s, Oid type, const char *hint);
static struct varlena *score_of_int(int64 i);
static struct varlena *score_of_double(double d);
static struct varlena *score_sum(const DpValue *a, const DpValue *b);
static Datum pop(FunctionCallInfo fcinfo, ScanDirection direction);
static Datum store(FunctionCallInfo fcinfo, bool all);
static void store_read(DpKvCall *call, Datum key, struct varlena *weight, int position,
					   Scored **list, int64 *n, int64 *room);
static struct varlena *weighted(const DpValue *score, const DpValue *weight);
static struct varlena *aggregated(const DpValue *a, const DpValue *b, char how);

/* Scores */

struct varlena *
dp_kv_score(Datum value, Oid type, bool *exclusive)
{
	DpValue v;

	if (exclusive != NULL)
		*exclusive = false;
	type = getBaseType(type);
	switch (type)
	{
		case INT2OID:
			return score_of_int(DatumGetInt16(value));
		case INT4OID:
			return score_of_int(DatumGetInt32(value));
		case INT8OID:
			return score_of_int(DatumGetInt64(value));
		case FLOAT4OID:
			return score_of_double(DatumGetFloat4(value));
		case FLOAT8OID:
			return score_of_double(DatumGetFloat8(value));
		case NUMERICOID:
			return score_of_text(DatumGetCString(DirectFunctionCall1(numeric_out, value)), type,
								 NULL);
		case TEXTOID:
		case VARCHAROID:
		{
			const char *s = TextDatumGetCString(value);

			if (exclusive != NULL && *s == '(')
			{
				*exclusive = true;
				s++;
			}
			return score_of_text(s, type,
								 exclusive == NULL ? "Write each score before its member." : NULL);
		}
		default:
			break;
	}
	if (type == dp_types()->bson_value)
	{
		v = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(value));
		switch (v.type)
		{
			case DP_TYPE_INT32:
				return score_of_int(dp_get_int32(v.data));
			case DP_TYPE_INT64:
				return score_of_int(dp_get_int64(v.data));
			case DP_TYPE_DOUBLE:
				return score_of_double(dp_get_double(v.data));
			case DP_TYPE_DECIMAL128:
				return score_of_text(DatumGetCString(DirectFunctionCall1(
										 numeric_out,
										 NumericGetDatum(dp_decimal128_to_numeric(v.data)))),
									 NUMERICOID, NULL);
			default:
				ereport(ERROR,
						(errcode(ERRCODE_DATATYPE_MISMATCH),
						 errmsg("a score must be a number, not of type %s", dp_type_name(v.type))));
		}
	}
	ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("a score must be a number, not of type %s", format_type_be(type))));
}

Datum
dp_kv_score_number(Datum score)
{
	DpValue v = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(score));
	bool isnull;

	return dp_value_to_datum(&v, NUMERICOID, -1, &isnull);
}

/* A text of digits becomes an int64 if it fits, any other the nearest double. */
static struct varlena *
score_of_text(const char *s, Oid type, const char *hint)
{
	const char *p = s + (*s == '-' || *s == '+');
	size_t digits = strspn(p, "0123456789");
	const char *rest = p + digits;
	char *end;
	double d;

	if (digits > 0 && *rest == '.' && type == NUMERICOID)
		rest += 1 + strspn(rest + 1, "0");
	if (digits > 0 && *rest == '\0')
	{
		int64 i = 0;
		bool negative = *s == '-';
		bool overflow = false;
		size_t n;

		for (n = 0; n < digits && !overflow; n++)
			overflow = pg_mul_s64_overflow(i, 10, &i) || pg_sub_s64_overflow(i, p[n] - '0', &i);
		if (!overflow && !negative)
			overflow = i == PG_INT64_MIN;
		if (!overflow)
			return score_of_int(negative ? i : -i);
	}

	/* the message of float8in would repeat all digits, of which a decimal may have thousands */
	errno = 0;
	d = strtod(s, &end);
	if (end == s || *end != '\0')
		ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
						errmsg("a score must be a number, not \"%s\"", s),
						hint != NULL ? errhint("%s", hint) : 0));
	if (errno == ERANGE && (d == 0 || isinf(d)))
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						errmsg("score is out of range for a double")));
	return score_of_double(DatumGetFloat8(DirectFunctionCall1(float8in, CStringGetDatum(s))));
}

static struct varlena *
score_of_int(int64 i)
{
	DpAmount amount;

	dp_amount_set_int(&amount, i, true);
	return dp_value_to_varlena(&amount.value);
}

/* Raises INVALID_PARAMETER_VALUE for NaN, which cannot be sorted. */
static struct varlena *
score_of_double(double d)
{
	DpAmount amount;

	if (isnan(d))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a score must not be NaN")));
	dp_amount_set_double(&amount, d);
	return dp_value_to_varlena(&amount.value);
}

/* Returns the sum of two scores. Raises NUMERIC_VALUE_OUT_OF_RANGE if it does not fit or is NaN. */
static struct varlena *
score_sum(const DpValue *a, const DpValue *b)
{
	DpAmount sum;

	dp_amount_set(&sum, a);
	dp_amount_add(&sum, b);
	if (sum.value.type == DP_TYPE_DOUBLE && isnan(dp_get_double(sum.value.data)))
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						errmsg("resulting score is not a number (NaN)")));
	return dp_value_to_varlena(&sum.value);
}

/* One member */

bool
dp_kv_zset_add(DpKvCall *call, struct varlena *member, const DpValue *score, int flags,
			   struct varlena **result, bool *changed)
{
	*result = NULL;
	*changed = false;
	for (;;)
	{
		Datum values[3];

		if (dp_kv_find(call, KV_SCORES, PointerGetDatum(member), call->snapshot))
		{
			struct varlena *stored =
				PG_DETOAST_DATUM_COPY(dp_kv_column(dp_kv_rel(call, KV_SCORES), KV_SCORES_SCORE));
			DpValue old = dp_value_of_varlena(stored);
			struct varlena *written;
			DpValue v;
			int cmp;

			if (flags & KV_ADD_NX)
				return false;
			written = (flags & KV_ADD_INCR) ? score_sum(&old, score) : dp_value_to_varlena(score);
			v = dp_value_of_varlena(written);
			cmp = dp_number_compare(&v, &old);
			if (((flags & KV_ADD_GT) && cmp <= 0) || ((flags & KV_ADD_LT) && cmp >= 0))
				return false;
			if (cmp == 0)
			{
				*result = stored;
				return false;
			}
			if (dp_kv_update(call, KV_SCORES, KV_SCORES_SCORE, PointerGetDatum(written), false,
							 true))
			{
				*result = written;
				*changed = true;
				dp_kv_count_move(call, PointerGetDatum(stored), PointerGetDatum(written),
								 PointerGetDatum(member), 1);
				return false;
			}
		}
		else
		{
			if (flags & KV_ADD_XX)
				return false;
			values[KV_KEY - 1] = call->key;
			values[KV_SCORES_MEMBER - 1] = PointerGetDatum(member);
			values[KV_SCORES_SCORE - 1] = PointerGetDatum(dp_value_to_varlena(score));
			if (dp_kv_insert_unless(call, KV_SCORES, values, NULL))
			{
				*result = (struct varlena *) DatumGetPointer(values[KV_SCORES_SCORE - 1]);
				*changed = true;
				dp_kv_count_move(call, (Datum) 0, values[KV_SCORES_SCORE - 1],
								 PointerGetDatum(member), 1);
				return true;
			}
		}
		dp_kv_refresh(call);
	}
}

bool
dp_kv_zset_remove(DpKvCall *call, Datum member)
{
	while (dp_kv_find(call, KV_SCORES, member, call->snapshot))
	{
		struct varlena *stored =
			PG_DETOAST_DATUM_COPY(dp_kv_column(dp_kv_rel(call, KV_SCORES), KV_SCORES_SCORE));

		if (dp_kv_delete(call, KV_SCORES, true))
		{
			dp_kv_count_move(call, PointerGetDatum(stored), (Datum) 0, member, 1);
			return true;
		}
		dp_kv_refresh(call);
	}
	return false;
}

/* Commands */

/*
 * kv_zadd(space, key, [nx|xx|gt|lt|ch|incr ...] score, member, ...) -> bigint: number of new
 * members (ch: or with a changed score); with incr the new score, NULL if a condition prevented
 * the write
 */
DP_FUNCTION(dp_kv_zadd);
Datum
dp_kv_zadd(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Scored *pairs;
	int flags;
	int n;
	int i;
	int64 count = 0;
	struct varlena *result = NULL;

	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_INSERT | ACL_UPDATE);
	n = scored_read(fcinfo, &flags, &pairs);
	dp_kv_count_prepare(&call);
	if (dp_kv_key_write(&call, KV_SCORES, (flags & KV_ADD_XX) == 0))
	{
		dp_kv_count_divide(&call);
		for (i = 0; i < n; i++)
		{
			DpValue score = dp_value_of_varlena(pairs[i].score);
			bool changed;

			if (dp_kv_zset_add(&call, pairs[i].member, &score, flags, &result, &changed) ||
				(changed && (flags & KV_ADD_CH)))
				count++;
		}
	}
	dp_kv_end(&call);
	if ((flags & KV_ADD_INCR) && result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_INT64(count);
}

/*
 * kv_zincrby(space, key, [nx|xx|gt|lt ...] by, member) -> numeric: the new score, NULL if a
 * condition prevented the write
 */
DP_FUNCTION(dp_kv_zincrby);
Datum
dp_kv_zincrby(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Scored *pairs;
	DpValue score;
	int flags;
	bool changed;
	struct varlena *result = NULL;

	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT | ACL_INSERT | ACL_UPDATE);
	if (scored_read(fcinfo, &flags, &pairs) != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("only one member can be incremented at a time")));
	score = dp_value_of_varlena(pairs[0].score);
	dp_kv_count_prepare(&call);
	if (dp_kv_key_write(&call, KV_SCORES, (flags & KV_ADD_XX) == 0))
	{
		dp_kv_count_divide(&call);
		(void) dp_kv_zset_add(&call, pairs[0].member, &score, flags | KV_ADD_INCR, &result,
							  &changed);
	}
	dp_kv_end(&call);
	if (result == NULL)
		PG_RETURN_NULL();
	return dp_kv_score_number(PointerGetDatum(result));
}

/*
 * kv_zrem(space, key, member, ...) -> bigint: number of removed members
 */
DP_FUNCTION(dp_kv_zrem);
Datum
dp_kv_zrem(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum *members;
	int n;
	int i;
	int64 removed = 0;

	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_DELETE);
	n = dp_kv_values(fcinfo, 2, &members);
	if (dp_kv_key_write(&call, KV_SCORES, false))
	{
		for (i = 0; i < n; i++)
		{
			if (dp_kv_zset_remove(&call, members[i]))
				removed++;
		}
		if (removed > 0)
			dp_kv_key_emptied(&call, KV_SCORES);
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(removed);
}

/*
 * kv_zpopmin(space, key, take), kv_zpopmax(space, key, take) -> rows (member, score), removed.
 * Locks the key exclusively.
 */
DP_FUNCTION(dp_kv_zpopmin);
Datum
dp_kv_zpopmin(PG_FUNCTION_ARGS)
{
	return pop(fcinfo, ForwardScanDirection);
}

DP_FUNCTION(dp_kv_zpopmax);
Datum
dp_kv_zpopmax(PG_FUNCTION_ARGS)
{
	return pop(fcinfo, BackwardScanDirection);
}

static Datum
pop(FunctionCallInfo fcinfo, ScanDirection direction)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpKvCall call;
	int64 take;

	if (PG_ARGISNULL(2) || PG_GETARG_INT64(2) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("take must be zero or more")));
	take = PG_GETARG_INT64(2);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT | ACL_DELETE);
	call.wants_exclusive = true;
	if (dp_kv_key_write(&call, KV_SCORES, false))
	{
		Scored *popped = palloc(sizeof(Scored));
		int64 room = 1;
		int64 n = 0;
		int64 i;
		DpKvScan scan;

		/* the lowest that the transaction sees; members removed since then are detected below */
		dp_kv_scan(&scan, &call, KV_SCORES, true,
				   IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : call.snapshot);
		while (n < take && dp_kv_scan_next(&scan, direction))
		{
			if (n == room)
			{
				room *= 2;
				popped = repalloc_huge(popped, sizeof(Scored) * room);
			}
			popped[n].member = PG_DETOAST_DATUM_COPY(dp_kv_column(scan.r, KV_SCORES_MEMBER));
			popped[n++].score = PG_DETOAST_DATUM_COPY(dp_kv_column(scan.r, KV_SCORES_SCORE));
		}
		dp_kv_scan_end(&scan);
		for (i = 0; i < n; i++)
		{
			Datum values[2] = { PointerGetDatum(popped[i].member),
								dp_kv_score_number(PointerGetDatum(popped[i].score)) };
			bool nulls[2] = { false, false };

			if (!dp_kv_zset_remove(&call, values[0]))
				dp_kv_lost();
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		}
		if (n > 0)
			dp_kv_key_emptied(&call, KV_SCORES);
	}
	dp_kv_end(&call);
	return (Datum) 0;
}

/*
 * kv_zunionstore, kv_zinterstore(space, destination, keys, weights, aggregate) -> bigint: number
 * of members of the new sorted set. Members of sets have the score 1.
 */
DP_FUNCTION(dp_kv_zunionstore);
Datum
dp_kv_zunionstore(PG_FUNCTION_ARGS)
{
	return store(fcinfo, false);
}

DP_FUNCTION(dp_kv_zinterstore);
Datum
dp_kv_zinterstore(PG_FUNCTION_ARGS)
{
	return store(fcinfo, true);
}

static Datum
store(FunctionCallInfo fcinfo, bool all)
{
	DpKvCall call;
	Datum *keys;
	bool *nulls;
	int nkeys;
	Datum *weights = NULL;
	bool *weight_nulls;
	int nweights = 0;
	char *how;
	Scored *list;
	Datum destination;
	int64 n = 0;
	int64 room = 64;
	int64 kept = 0;
	int64 i;

	if (PG_ARGISNULL(2) || PG_ARGISNULL(4))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("keys and aggregate must not be null")));
	dp_kv_begin_args(&call, fcinfo, KV_SCORES, ACL_SELECT | ACL_INSERT | ACL_UPDATE | ACL_DELETE);
	destination = call.key;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), TEXTOID, -1, false, TYPALIGN_INT, &keys, &nulls,
					  &nkeys);
	if (!PG_ARGISNULL(3))
	{
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(3), NUMERICOID, -1, false, TYPALIGN_INT, &weights,
						  &weight_nulls, &nweights);
		if (nweights != nkeys)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("there must be as many weights as keys")));
	}
	how = text_to_cstring(PG_GETARG_TEXT_PP(4));
	if (pg_strcasecmp(how, "sum") != 0 && pg_strcasecmp(how, "min") != 0 &&
		pg_strcasecmp(how, "max") != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("aggregate must be sum, min or max")));
	if (nkeys < 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("at least one key must be specified")));

	dp_kv_key_take(&call);
	list = palloc(sizeof(Scored) * room);
	for (i = 0; i < nkeys; i++)
	{
		struct varlena *weight = NULL;

		if (nulls[i] || (weights != NULL && weight_nulls[i]))
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("keys and weights must not be null")));
		if (weights != NULL)
			weight = dp_kv_score(weights[i], NUMERICOID, NULL);
		store_read(&call, keys[i], weight, (int) i, &list, &n, &room);
	}
	call.key = destination;
	qsort(list, n, sizeof(Scored), scored_order);
	for (i = 0; i < n;)
	{
		Scored one = list[i];
		DpValue score = dp_value_of_varlena(one.score);
		DpValue member = dp_value_of_varlena(one.member);
		int sources = 1;

		CHECK_FOR_INTERRUPTS();
		for (i++; i < n; i++, sources++)
		{
			DpValue other = dp_value_of_varlena(list[i].member);

			if (dp_value_compare(&member, &other) != 0)
				break;
			other = dp_value_of_varlena(list[i].score);
			one.score = aggregated(&score, &other, how[1] | 0x20);
			score = dp_value_of_varlena(one.score);
		}
		if (!all || sources == nkeys)
			list[kept++] = one;
	}

	dp_kv_key_clear(&call);
	if (kept > 0)
	{
		(void) dp_kv_key_write(&call, KV_SCORES, true);
		for (i = 0; i < kept; i++)
		{
			Datum values[3];

			values[KV_KEY - 1] = call.key;
			values[KV_SCORES_MEMBER - 1] = PointerGetDatum(list[i].member);
			values[KV_SCORES_SCORE - 1] = PointerGetDatum(list[i].score);
			dp_kv_insert(&call, KV_SCORES, values, NULL);
		}
		(void) dp_kv_count_rebuild(&call);
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(kept);
}

/* Adds the members of a key to the list. */
static void
store_read(DpKvCall *call, Datum key, struct varlena *weight, int position, Scored **list, int64 *n,
		   int64 *room)
{
	/* reads keys that are not written with the transaction's snapshot */
	Snapshot snapshot = IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : call->snapshot;
	DpKvTable table;
	DpKvScan scan;
	DpValue factor;

	if (weight != NULL)
		factor = dp_value_of_varlena(weight);
	call->key = key;
	table = dp_kv_key_type(call, snapshot);
	if (table == KV_KEYS)
		return;
	if (table == KV_HASHES)
	{
		(void) dp_kv_key_read(call, KV_SCORES); /* raises the error */
		dp_kv_lost();                           /* no longer a hash */
	}
	if (table == KV_SETS)
		dp_kv_rights(call, KV_SETS, ACL_SELECT);
	dp_kv_scan(&scan, call, table, false, snapshot);
	while (dp_kv_scan_next(&scan, ForwardScanDirection))
	{
		Scored *one;

		if (*n == *room)
		{
			*room *= 2;
			*list = repalloc_huge(*list, sizeof(Scored) * *room);
		}
		one = &(*list)[(*n)++];
		one->position = position;
		one->member =
			PG_DETOAST_DATUM_COPY(dp_kv_column(scan.r,
											   KV_SCORES_MEMBER)); /* sets has this column too */
		one->score = table == KV_SETS
						 ? score_of_int(1)
						 : PG_DETOAST_DATUM_COPY(dp_kv_column(scan.r, KV_SCORES_SCORE));
		if (weight != NULL)
		{
			DpValue score = dp_value_of_varlena(one->score);

			one->score = weighted(&score, &factor);
		}
	}
	dp_kv_scan_end(&scan);
}

/* Multiplies a score. Integers stay integers; NaN becomes 0, as in Redis. */
static struct varlena *
weighted(const DpValue *score, const DpValue *weight)
{
	int64 product;
	double d;

	if (dp_amount_is_int(score) && dp_amount_is_int(weight))
	{
		if (pg_mul_s64_overflow(dp_amount_int(score), dp_amount_int(weight), &product))
			ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
							errmsg("weighted score is out of range")));
		return score_of_int(product);
	}
	d = dp_amount_double(score) * dp_amount_double(weight);
	return score_of_double(isnan(d) ? 0 : d);
}

/* Combines two scores of a member: s(u)m, m(i)n, m(a)x. */
static struct varlena *
aggregated(const DpValue *a, const DpValue *b, char how)
{
	int cmp = dp_number_compare(a, b);
	DpAmount sum;

	if (how != 'u')
		return dp_value_to_varlena((how == 'i') == (cmp <= 0) ? a : b);
	dp_amount_set(&sum, a);
	dp_amount_add(&sum, b);
	if (sum.value.type == DP_TYPE_DOUBLE && isnan(dp_get_double(sum.value.data)))
		return score_of_double(0);
	return dp_value_to_varlena(&sum.value);
}

/*
 * Arguments: options, then pairs of score and member; sorted by member, repeated ones in the given
 * order.
 */
static int
scored_read(FunctionCallInfo fcinfo, int *flags, Scored **pairs)
{
	Datum *given;
	Oid *types;
	bool *nulls;
	int n = extract_variadic_args(fcinfo, 2, true, &given, &types, &nulls);
	int used = 0;
	int i;

	*flags = n > 0 ? flags_read(given, types, nulls, n, &used) : 0;
	n -= used;
	if (n < 2 || n % 2 != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("scores and members must come in pairs"),
						errhint("The options nx, xx, gt, lt, ch and incr come before them.")));
	n /= 2;
	if ((*flags & KV_ADD_INCR) && n > 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("only one member can be incremented at a time")));
	*pairs = palloc(sizeof(Scored) * n);
	for (i = 0; i < n; i++)
	{
		int at = used + 2 * i;

		if (nulls[at] || nulls[at + 1])
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("scores and members must not be null")));
		(*pairs)[i].score = dp_kv_score(given[at], types[at], NULL);
		(*pairs)[i].member = dp_kv_member(given[at + 1], types[at + 1]);
		(*pairs)[i].position = i;
	}
	if (n > 1)
		qsort(*pairs, n, sizeof(Scored), scored_order);
	return n;
}

static int
scored_order(const void *a, const void *b)
{
	const Scored *left = a;
	const Scored *right = b;
	DpValue l = dp_value_of_varlena(left->member);
	DpValue r = dp_value_of_varlena(right->member);
	int cmp = dp_value_compare(&l, &r);

	return cmp != 0 ? cmp : left->position - right->position;
}

/* Reads the words before the first score. */
static int
flags_read(Datum *given, const Oid *types, const bool *nulls, int n, int *used)
{
	static const struct
	{
		const char *word;
		int flag;
	} words[] = { { "nx", KV_ADD_NX }, { "xx", KV_ADD_XX }, { "gt", KV_ADD_GT },
				  { "lt", KV_ADD_LT }, { "ch", KV_ADD_CH }, { "incr", KV_ADD_INCR } };
	int flags = 0;

	for (*used = 0; *used < n && types[*used] == TEXTOID && !nulls[*used]; (*used)++)
	{
		char *word = TextDatumGetCString(given[*used]);
		int i;

		for (i = 0; i < lengthof(words); i++)
		{
			if (pg_strcasecmp(word, words[i].word) == 0)
				break;
		}
		if (i == lengthof(words))
			break;
		flags |= words[i].flag;
	}
	if ((flags & KV_ADD_NX) && (flags & (KV_ADD_XX | KV_ADD_GT | KV_ADD_LT)))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("option \"nx\" cannot be combined with \"xx\", \"gt\" or \"lt\"")));
	if ((flags & KV_ADD_GT) && (flags & KV_ADD_LT))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("option \"gt\" cannot be combined with \"lt\"")));
	return flags;
}
