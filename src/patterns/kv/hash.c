/*
 * hash.c
 *		Hashes of key-value spaces: fields with values.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "bson/amount.h"
#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "patterns/kv/kv.h"

/* A field and its value, as they were given */
typedef struct Pair
{
	Datum field;
	Datum value;
	int position;
} Pair;

static int
pair_order(const void *a, const void *b)
{
	const Pair *left = a;
	const Pair *right = b;
	int cmp = dp_kv_text_compare(left->field, right->field);

	return cmp != 0 ? cmp : left->position - right->position;
}

/* Sets a field. Returns whether it is new. */
static bool
field_set(DpKvCall *call, Datum field, Datum value)
{
	for (;;)
	{
		Datum values[3];

		if (dp_kv_find(call, KV_HASHES, field, call->snapshot))
		{
			struct varlena *old =
				(struct varlena *) DatumGetPointer(dp_kv_column(dp_kv_rel(call, KV_HASHES),
																KV_HASHES_VALUE));

			/* an equal value is not written; toasted values are not fetched to compare */
			if (!VARATT_IS_EXTERNAL(old) && !VARATT_IS_COMPRESSED(old) &&
				dp_same_bytes(old, DatumGetPointer(value)))
				return false;
			if (dp_kv_update(call, KV_HASHES, KV_HASHES_VALUE, value, false, true))
				return false;
		}
		else
		{
			values[0] = call->key;
			values[1] = field;
			values[2] = value;
			if (dp_kv_insert_unless(call, KV_HASHES, values, NULL))
				return true;
		}
		dp_kv_refresh(call);
	}
}

/*
 * kv_hset(space, key, field, value, ...) -> bigint: number of new fields
 */
DP_FUNCTION(dp_kv_hset);
Datum
dp_kv_hset(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum *given;
	Oid *types;
	bool *nulls;
	Pair *pairs;
	int n;
	int i;
	int64 added = 0;

	dp_kv_begin_args(&call, fcinfo, KV_HASHES, ACL_INSERT | ACL_UPDATE);
	n = extract_variadic_args(fcinfo, 2, true, &given, &types, &nulls);
	if (n < 2 || n % 2 != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("fields and values must come in pairs")));
	n /= 2;
	pairs = palloc(sizeof(Pair) * n);
	for (i = 0; i < n; i++)
	{
		if (nulls[2 * i] || nulls[2 * i + 1])
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("fields and values must not be null"),
							errhint("Remove a field with kv_hdel().")));
		pairs[i].field = dp_kv_field(given[2 * i], types[2 * i]);
		pairs[i].value = PointerGetDatum(dp_datum_to_value(given[2 * i + 1], types[2 * i + 1]));
		pairs[i].position = i;
	}
	if (n > 1)
		qsort(pairs, n, sizeof(Pair), pair_order);

	(void) dp_kv_key_write(&call, KV_HASHES, true);
	for (i = 0; i < n; i++)
	{
		/* the last value of a repeated field counts */
		if (i + 1 < n && dp_kv_text_compare(pairs[i].field, pairs[i + 1].field) == 0)
			continue;
		if (field_set(&call, pairs[i].field, pairs[i].value))
			added++;
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(added);
}

/*
 * kv_hsetnx(space, key, field, value) -> boolean: whether the field is new, and so was set
 */
DP_FUNCTION(dp_kv_hsetnx);
Datum
dp_kv_hsetnx(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum values[3];
	bool set = false;

	if (PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("fields and values must not be null")));
	dp_kv_begin_args(&call, fcinfo, KV_HASHES, ACL_INSERT);
	values[0] = call.key;
	values[1] = PG_GETARG_DATUM(2);
	values[2] = PointerGetDatum(dp_datum_to_value(PG_GETARG_DATUM(3),
												  get_fn_expr_argtype(fcinfo->flinfo, 3)));
	(void) dp_kv_key_write(&call, KV_HASHES, true);

	/* searched first: inserting an existing row costs more */
	if (!dp_kv_find(&call, KV_HASHES, values[1], call.snapshot))
	{
		set = dp_kv_insert_unless(&call, KV_HASHES, values, NULL);
		if (!set && IsolationUsesXactSnapshot())
			dp_kv_lost();
	}
	dp_kv_end(&call);
	PG_RETURN_BOOL(set);
}

/*
 * kv_hincrby(space, key, field, by) -> bigint: the new value; integers only
 */
DP_FUNCTION(dp_kv_hincrby);
Datum
dp_kv_hincrby(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum field;
	DpAmount by;
	int64 result;

	if (PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("fields and values must not be null")));
	field = PG_GETARG_DATUM(2);
	dp_kv_begin_args(&call, fcinfo, KV_HASHES, ACL_SELECT | ACL_INSERT | ACL_UPDATE);
	dp_amount_set_int(&by, PG_GETARG_INT64(3), false);
	(void) dp_kv_key_write(&call, KV_HASHES, true);
	for (;;)
	{
		Datum values[3];

		if (dp_kv_find(&call, KV_HASHES, field, call.snapshot))
		{
			DpValue old =
				dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(dp_kv_column(dp_kv_rel(&call,
																				   KV_HASHES),
																		 KV_HASHES_VALUE)));
			DpAmount sum;

			if (!dp_amount_is_int(&old))
				ereport(ERROR,
						(errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("hash value is not an integer"),
						 errdetail("It is of type %s.", dp_type_name(old.type))));
			dp_amount_set(&sum, &old);
			dp_amount_add(&sum, &by.value);
			result = dp_amount_int(&sum.value);
			if (dp_kv_update(&call, KV_HASHES, KV_HASHES_VALUE,
							 PointerGetDatum(dp_value_to_varlena(&sum.value)), false, true))
				break;
		}
		else
		{
			values[0] = call.key;
			values[1] = field;
			values[2] = PointerGetDatum(dp_value_to_varlena(&by.value));
			result = dp_amount_int(&by.value);
			if (dp_kv_insert_unless(&call, KV_HASHES, values, NULL))
				break;
		}
		dp_kv_refresh(&call);
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(result);
}

/*
 * kv_hdel(space, key, VARIADIC fields) -> bigint: number of removed fields
 */
DP_FUNCTION(dp_kv_hdel);
Datum
dp_kv_hdel(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum *fields;
	int n;
	int i;
	int64 removed = 0;

	dp_kv_begin_args(&call, fcinfo, KV_HASHES, ACL_DELETE);
	n = dp_kv_texts(fcinfo, 2, &fields);
	if (dp_kv_key_write(&call, KV_HASHES, false))
	{
		for (i = 0; i < n; i++)
		{
			while (dp_kv_find(&call, KV_HASHES, fields[i], call.snapshot))
			{
				if (dp_kv_delete(&call, KV_HASHES, true))
				{
					removed++;
					break;
				}
				dp_kv_refresh(&call);
			}
		}
		if (removed > 0)
			dp_kv_key_emptied(&call, KV_HASHES);
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(removed);
}

/*
 * kv_hget(space, key, field) -> bson_value, NULL without the field
 */
DP_FUNCTION(dp_kv_hget);
Datum
dp_kv_hget(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	struct varlena *result = NULL;

	dp_kv_begin_args(&call, fcinfo, KV_HASHES, ACL_SELECT);
	if (dp_kv_key_read(&call, KV_HASHES) &&
		dp_kv_find(&call, KV_HASHES, PG_GETARG_DATUM(2), call.snapshot))
		result = PG_DETOAST_DATUM_COPY(dp_kv_column(dp_kv_rel(&call, KV_HASHES), KV_HASHES_VALUE));
	dp_kv_end(&call);
	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(result);
}

/*
 * kv_hexists(space, key, field) -> boolean
 */
DP_FUNCTION(dp_kv_hexists);
Datum
dp_kv_hexists(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	bool result;

	dp_kv_begin_args(&call, fcinfo, KV_HASHES, ACL_SELECT);
	result = dp_kv_key_read(&call, KV_HASHES) &&
			 dp_kv_find(&call, KV_HASHES, PG_GETARG_DATUM(2), call.snapshot);
	dp_kv_end(&call);
	PG_RETURN_BOOL(result);
}

/*
 * kv_hmget(space, key, VARIADIC fields) -> bson_value[]: NULL for each missing field
 */
DP_FUNCTION(dp_kv_hmget);
Datum
dp_kv_hmget(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum *fields;
	bool *nulls;
	Datum *values;
	int n;
	int i;
	bool there;
	int lower = 1;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), TEXTOID, -1, false, TYPALIGN_INT, &fields, &nulls,
					  &n);
	dp_kv_begin_args(&call, fcinfo, KV_HASHES, ACL_SELECT);
	there = dp_kv_key_read(&call, KV_HASHES);
	values = palloc0(sizeof(Datum) * Max(n, 1));
	for (i = 0; i < n; i++)
	{
		bool found = there && !nulls[i] && dp_kv_find(&call, KV_HASHES, fields[i], call.snapshot);

		nulls[i] = !found;
		if (found)
			values[i] =
				PointerGetDatum(PG_DETOAST_DATUM_COPY(dp_kv_column(dp_kv_rel(&call, KV_HASHES),
																   KV_HASHES_VALUE)));
	}
	dp_kv_end(&call);
	if (n == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(dp_types()->bson_value));
	PG_RETURN_ARRAYTYPE_P(construct_md_array(values, nulls, 1, &n, &lower, dp_types()->bson_value,
											 -1, false, TYPALIGN_INT));
}

/*
 * kv_hgetall(space, key) -> bson: all fields in order; {} without fields
 */
DP_FUNCTION(dp_kv_hgetall);
Datum
dp_kv_hgetall(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	DpKvScan scan;
	DpBuilder b;

	dp_kv_begin_args(&call, fcinfo, KV_HASHES, ACL_SELECT);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	if (dp_kv_key_read(&call, KV_HASHES))
	{
		dp_kv_scan(&scan, &call, KV_HASHES, false, call.snapshot);
		while (dp_kv_scan_next(&scan, ForwardScanDirection))
		{
			text *field = DatumGetTextPP(dp_kv_column(scan.r, KV_HASHES_FIELD));
			struct varlena *stored = PG_DETOAST_DATUM_PACKED(dp_kv_column(scan.r, KV_HASHES_VALUE));
			DpValue value = dp_value_of_varlena(stored);

			dp_builder_append_nested(&b, VARDATA_ANY(field), VARSIZE_ANY_EXHDR(field), &value);
			dp_check_document_size(b.len - b.head);
		}
		dp_kv_scan_end(&scan);
	}
	dp_builder_end(&b);
	dp_kv_end(&call);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/*
 * kv_hlen(space, key) -> bigint; kv_hkeys(space, key) -> setof text;
 * kv_hvals(space, key) -> setof bson_value
 */
DP_FUNCTION(dp_kv_hlen);
Datum
dp_kv_hlen(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	int64 n = 0;

	dp_kv_begin_args(&call, fcinfo, KV_HASHES, ACL_SELECT);
	if (dp_kv_key_read(&call, KV_HASHES))
		n = dp_kv_count_rows(&call, KV_HASHES);
	dp_kv_end(&call);
	PG_RETURN_INT64(n);
}

DP_FUNCTION(dp_kv_hkeys);
Datum
dp_kv_hkeys(PG_FUNCTION_ARGS)
{
	return dp_kv_list_rows(fcinfo, KV_HASHES, KV_HASHES_FIELD);
}

DP_FUNCTION(dp_kv_hvals);
Datum
dp_kv_hvals(PG_FUNCTION_ARGS)
{
	return dp_kv_list_rows(fcinfo, KV_HASHES, KV_HASHES_VALUE);
}
