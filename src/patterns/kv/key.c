/*
 * key.c
 *		Keys of key-value spaces: types, time to live, removal.
 */
#include "postgres.h"

#include <math.h>

#include "access/xact.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "replication/logicalworker.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/varlena.h"

#include "bson/cast.h"
#include "bson/compare.h"
#include "kit/declaration.h"
#include "kit/trigger.h"
#include "patterns/kv/kv.h"

/* A row of keys */
typedef struct KeyRow
{
	bool found;
	DpKvTable table;
	TimestampTz expires; /* 0: never */
	Oid kept;            /* the table of a leaderboard */
	int64 zset;          /* of a sorted set */
} KeyRow;

static KeyRow key_row(DpKvCall *call, Snapshot snapshot);
static bool has_members(DpKvCall *call, DpKvTable table, Snapshot snapshot);
static void check_kept(DpKvCall *call, const KeyRow *row);
static void members_remove(DpKvCall *call, DpKvTable table);
static void wrong_type(DpKvCall *call, DpKvTable found, DpKvTable wanted) pg_attribute_noreturn();
static int64 new_zset(void);
static DpKvTable table_of_type(text *type);
static bool expired(DpKvCall *call, const KeyRow *row);
static int text_order(const void *a, const void *b);
static bool glob(const char *p, const char *pend, const char *s, const char *send);
static void kv_key_remove(DpKvCall *call, DpKvTable table);
static void members_move(DpKvCall *call, DpKvTable table, Datum key);

static const char *const type_names[] = { "none", "hash", "set", "zset" };

/* Reading keys */

bool
dp_kv_key_read(DpKvCall *call, DpKvTable table)
{
	KeyRow row = key_row(call, call->snapshot);

	if (!row.found || expired(call, &row))
		return false;
	if (row.table != table)
	{
		if (!has_members(call, row.table, call->snapshot))
			return false;
		wrong_type(call, row.table, table);
	}
	return true;
}

DpKvTable
dp_kv_key_type(DpKvCall *call, Snapshot snapshot)
{
	KeyRow row = key_row(call, snapshot);

	if (!row.found || expired(call, &row) || !has_members(call, row.table, snapshot))
		return KV_KEYS;
	return row.table;
}

/*
 * Locks shared, unless something must be removed first: an expired key, rows of another type, the
 * time to live of a key without members.
 */
bool
dp_kv_key_write(DpKvCall *call, DpKvTable table, bool create)
{
	bool exclusive = call->wants_exclusive || call->exclusive;

	for (;;)
	{
		bool taken = false;
		KeyRow row;

		CHECK_FOR_INTERRUPTS();
		(void) dp_kv_lock(call, exclusive, true, &taken);
		dp_kv_refresh(call);
		row = key_row(call, call->snapshot);
		if (!row.found)
		{
			Datum values[KV_KEYS_ZSET];
			bool nulls[KV_KEYS_ZSET] = { false, false, true, true, true };

			if (!create)
				return false;
			values[0] = call->key;
			values[1] = CStringGetTextDatum(type_names[table]);
			values[2] = (Datum) 0;
			values[3] = ObjectIdGetDatum(call->keeper);
			nulls[3] = !OidIsValid(call->keeper);
			nulls[4] = table != KV_SCORES;
			call->zset = new_zset();
			values[4] = Int64GetDatum(call->zset);
			if (!dp_kv_insert_unless(call, KV_KEYS, values, nulls))
				continue;
			if (table == KV_SCORES)
				dp_kv_count_create(call);
			dp_kv_refresh(call);
			return true;
		}
		check_kept(call, &row);
		if (!expired(call, &row))
		{
			if (row.table == table)
			{
				if (row.expires == 0 || OidIsValid(row.kept) ||
					has_members(call, table, call->snapshot))
					return true;
			}
			else if (has_members(call, row.table, call->snapshot))
				wrong_type(call, row.table, table);
		}

		/* it conflicts */
		if (!call->exclusive)
		{
			if (taken && !exclusive)
				dp_kv_unlock_shared(call);
			exclusive = true;
			continue;
		}
		kv_key_remove(call, row.table);
	}
}

void
dp_kv_key_emptied(DpKvCall *call, DpKvTable table)
{
	dp_kv_refresh(call);
	if (OidIsValid(call->keeper) || has_members(call, table, call->snapshot))
		return;
	if (!call->exclusive)
	{
		/* other writers check it too, and a remaining row is harmless */
		if (IsolationUsesXactSnapshot() || !dp_kv_lock(call, true, false, NULL))
			return;
		dp_kv_refresh(call);
		if (has_members(call, table, call->snapshot))
			return;
	}
	kv_key_remove(call, table);
}

/*
 * Removes a key that is locked exclusively, with all its rows. The row of a sorted set in keys may
 * stay.
 */
static void
kv_key_remove(DpKvCall *call, DpKvTable table)
{
	members_remove(call, table);
	if (table == KV_SCORES)
		members_remove(call, KV_COUNTS);
	if (dp_kv_find(call, KV_KEYS, (Datum) 0, call->snapshot))
		(void) dp_kv_delete(call, KV_KEYS, true);
	dp_kv_refresh(call);

	/* others have removed members that the transaction still sees */
	if (IsolationUsesXactSnapshot() && has_members(call, table, GetTransactionSnapshot()))
		dp_kv_lost();
}

void
dp_kv_key_take(DpKvCall *call)
{
	(void) dp_kv_lock(call, true, true, NULL);
	dp_kv_refresh(call);
}

void
dp_kv_key_clear(DpKvCall *call)
{
	KeyRow row = key_row(call, call->snapshot);

	if (row.found)
	{
		check_kept(call, &row);
		kv_key_remove(call, row.table);
	}
}

void
dp_kv_zset_clear(DpKvCall *call)
{
	members_remove(call, KV_SCORES);
	members_remove(call, KV_COUNTS);
	dp_kv_refresh(call);
	dp_kv_count_create(call);
	dp_kv_refresh(call);
}

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE for a leaderboard. */
static void
check_kept(DpKvCall *call, const KeyRow *row)
{
	text *key = (text *) DatumGetPointer(call->key);

	if (!OidIsValid(row->kept) || row->kept == call->keeper)
		return;
	ereport(
		ERROR,
		(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		 errmsg(
			 "cannot write to key \"%.*s\" of space \"%s\" directly because a pattern maintains it",
			 pg_mbcliplen(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), 100), VARDATA_ANY(key),
			 call->space->name),
		 errhint("Write to table \"%s\".", dp_relation_name(row->kept))));
}

/* Deletes all rows of a key in a table. */
static void
members_remove(DpKvCall *call, DpKvTable table)
{
	DpKvScan scan;

	dp_kv_scan(&scan, call, table, false, call->snapshot);
	while (dp_kv_scan_next(&scan, ForwardScanDirection))
	{
		if (!dp_kv_delete(call, table, true))
			dp_kv_lost(); /* written by another transaction without a lock */
	}
	dp_kv_scan_end(&scan);
}

/* Reads the row of a key in keys. */
static KeyRow
key_row(DpKvCall *call, Snapshot snapshot)
{
	KeyRow row = { 0 };

	row.found = dp_kv_find(call, KV_KEYS, (Datum) 0, snapshot);
	if (row.found)
	{
		DpKvRel *r = dp_kv_rel(call, KV_KEYS);

		row.table = table_of_type(DatumGetTextPP(dp_kv_column(r, KV_KEYS_TYPE)));
		row.expires = DatumGetTimestampTz(dp_kv_column(r, KV_KEYS_EXPIRES));
		row.kept = DatumGetObjectId(dp_kv_column(r, KV_KEYS_KEPT));

		row.zset = DatumGetInt64(dp_kv_column(r, KV_KEYS_ZSET));
		call->zset = row.zset;

		/* the table was dropped */
		if (OidIsValid(row.kept) && get_rel_name(row.kept) == NULL)
			row.kept = InvalidOid;
	}
	return row;
}

static bool
expired(DpKvCall *call, const KeyRow *row)
{
	return row->expires != 0 && row->expires <= call->now;
}

static bool
has_members(DpKvCall *call, DpKvTable table, Snapshot snapshot)
{
	DpKvScan scan;
	bool found;

	dp_kv_scan(&scan, call, table, false, snapshot);
	found = dp_kv_scan_next(&scan, ForwardScanDirection);
	dp_kv_scan_end(&scan);
	return found;
}

/* Returns the table of a type. Raises DATA_CORRUPTED for an unknown type. */
static DpKvTable
table_of_type(text *type)
{
	int i;

	for (i = KV_HASHES; i <= KV_SCORES; i++)
	{
		if (VARSIZE_ANY_EXHDR(type) == strlen(type_names[i]) &&
			memcmp(VARDATA_ANY(type), type_names[i], VARSIZE_ANY_EXHDR(type)) == 0)
			return i;
	}
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("a key of a key-value space has an unknown type")));
}

/* Raises WRONG_OBJECT_TYPE. */
static void
wrong_type(DpKvCall *call, DpKvTable found, DpKvTable wanted)
{
	text *key = (text *) DatumGetPointer(call->key);

	ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
					errmsg("WRONGTYPE operation against a key holding the wrong kind of value"),
					errdetail("Key \"%.*s\" of space \"%s\" is of type %s, not %s.",
							  pg_mbcliplen(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), 100),
							  VARDATA_ANY(key), call->space->name, type_names[found],
							  type_names[wanted])));
}

/* Arguments */

/* Returns the distinct elements of a text[] in order. Raises NULL_VALUE_NOT_ALLOWED. */
int
dp_kv_texts(FunctionCallInfo fcinfo, int argno, Datum **values)
{
	bool *nulls;
	int n;
	int i;
	int kept = 0;

	if (PG_ARGISNULL(argno))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("keys and fields must not be null")));
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(argno), TEXTOID, -1, false, TYPALIGN_INT, values,
					  &nulls, &n);
	for (i = 0; i < n; i++)
	{
		if (nulls[i])
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("keys and fields must not be null")));
	}
	qsort(*values, n, sizeof(Datum), text_order);
	for (i = 0; i < n; i++)
	{
		if (i == 0 || text_order(&(*values)[kept - 1], &(*values)[i]) != 0)
			(*values)[kept++] = (*values)[i];
	}
	return kept;
}

/* Compares texts by their bytes, as the collation "C" does. */
static int
text_order(const void *a, const void *b)
{
	return dp_kv_text_compare(*(const Datum *) a, *(const Datum *) b);
}

/* Reads a field: any value that has a text form. */
Datum
dp_kv_field(Datum value, Oid type)
{
	Oid output;
	bool varlena;

	if (type == TEXTOID || type == VARCHAROID)
		return value;
	getTypeOutputInfo(type, &output, &varlena);
	return CStringGetTextDatum(OidOutputFunctionCall(output, value));
}

int
dp_kv_text_compare(Datum a, Datum b)
{
	text *left = DatumGetTextPP(a);
	text *right = DatumGetTextPP(b);

	return varstr_cmp(VARDATA_ANY(left), VARSIZE_ANY_EXHDR(left), VARDATA_ANY(right),
					  VARSIZE_ANY_EXHDR(right), C_COLLATION_OID);
}

/* Compares members. */
static int
member_order(const void *a, const void *b)
{
	DpValue left = dp_value_of_varlena((struct varlena *) DatumGetPointer(*(const Datum *) a));
	DpValue right = dp_value_of_varlena((struct varlena *) DatumGetPointer(*(const Datum *) b));

	return dp_value_compare(&left, &right);
}

/* Returns the distinct members from the arguments from first on, sorted. */
int
dp_kv_values(FunctionCallInfo fcinfo, int first, Datum **values)
{
	Datum *given;
	Oid *types;
	bool *nulls;
	int n = extract_variadic_args(fcinfo, first, true, &given, &types, &nulls);
	int kept = 0;
	int i;

	if (n < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("members must not be null")));
	*values = palloc(sizeof(Datum) * Max(n, 1));
	for (i = 0; i < n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("members must not be null")));
		(*values)[i] = PointerGetDatum(dp_kv_member(given[i], types[i]));
	}
	qsort(*values, n, sizeof(Datum), member_order);
	for (i = 0; i < n; i++)
	{
		if (i == 0 || member_order(&(*values)[kept - 1], &(*values)[i]) != 0)
			(*values)[kept++] = (*values)[i];
	}
	return kept;
}

/* Refuses MinKey and MaxKey as members: they are bounds of ranges. */
struct varlena *
dp_kv_member(Datum value, Oid type)
{
	struct varlena *member = dp_datum_to_value(value, type);
	uint8 kind = *(const uint8 *) VARDATA_ANY(member);

	if (kind == DP_TYPE_MINKEY || kind == DP_TYPE_MAXKEY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s cannot be a member", kind == DP_TYPE_MINKEY ? "MinKey" : "MaxKey")));
	return member;
}

/* Commands */

/*
 * kv_del(space, VARIADIC keys) -> bigint: number of removed keys
 */
DP_FUNCTION(dp_kv_del);
Datum
dp_kv_del(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum *keys;
	int n;
	int i;
	int64 removed = 0;

	if (PG_ARGISNULL(0))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("space and key must not be null")));
	n = dp_kv_texts(fcinfo, 1, &keys);
	dp_kv_begin(&call, PG_GETARG_TEXT_PP(0), NULL, KV_KEYS, ACL_DELETE);
	dp_kv_lock_many(n);
	for (i = 0; i < n; i++)
	{
		KeyRow row;

		call.key = keys[i];
		call.exclusive = false;
		(void) dp_kv_lock(&call, true, true, NULL);
		dp_kv_refresh(&call);
		row = key_row(&call, call.snapshot);
		if (!row.found)
			continue;
		check_kept(&call, &row);
		if (!expired(&call, &row) && has_members(&call, row.table, call.snapshot))
			removed++;
		kv_key_remove(&call, row.table);
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(removed);
}

/*
 * _kv_purge_key(space, key) -> boolean: removes a key that has expired or has no members, unless
 * it is locked
 */
DP_FUNCTION(dp_kv_purge_key);
Datum
dp_kv_purge_key(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	KeyRow row;
	bool removed = false;

	dp_kv_begin_args(&call, fcinfo, KV_KEYS, ACL_DELETE);
	if (dp_kv_lock(&call, true, false, NULL))
	{
		dp_kv_refresh(&call);
		row = key_row(&call, call.snapshot);
		if (row.found && !OidIsValid(row.kept) &&
			(expired(&call, &row) || !has_members(&call, row.table, call.snapshot)))
		{
			kv_key_remove(&call, row.table);
			removed = true;
		}
	}
	dp_kv_end(&call);
	PG_RETURN_BOOL(removed);
}

/*
 * kv_rename(space, key, new_key): renames a key, with its time to live; a key of the new name is
 * removed
 */
DP_FUNCTION(dp_kv_rename);
Datum
dp_kv_rename(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum keys[2];
	int order;
	int i;
	KeyRow row;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("space and keys must not be null")));
	keys[0] = PointerGetDatum(PG_GETARG_TEXT_PP(1));
	keys[1] = PointerGetDatum(PG_GETARG_TEXT_PP(2));
	dp_kv_begin(&call, PG_GETARG_TEXT_PP(0), NULL, KV_KEYS, ACL_INSERT | ACL_DELETE);
	order = dp_kv_text_compare(keys[0], keys[1]);
	dp_kv_lock_many(2);
	for (i = 0; i < 2; i++)
	{
		call.key = keys[order <= 0 ? i : 1 - i];
		call.exclusive = false;
		(void) dp_kv_lock(&call, true, true, NULL);
	}
	dp_kv_refresh(&call);
	call.key = keys[0];
	row = key_row(&call, call.snapshot);
	if (row.found)
		check_kept(&call, &row);
	if (!row.found || expired(&call, &row) || !has_members(&call, row.table, call.snapshot))
	{
		text *key = (text *) DatumGetPointer(call.key);

		ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
						errmsg("key \"%.*s\" of space \"%s\" does not exist",
							   pg_mbcliplen(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), 100),
							   VARDATA_ANY(key), call.space->name)));
	}
	if (order != 0)
	{
		Datum values[KV_KEYS_ZSET];
		bool nulls[KV_KEYS_ZSET] = { false, false, row.expires == 0, true, row.zset == 0 };

		call.key = keys[1];
		dp_kv_key_clear(&call);
		call.key = keys[0];
		members_move(&call, row.table, keys[1]);

		/* the blocks of a sorted set belong to its number, which stays */
		if (!dp_kv_find(&call, KV_KEYS, (Datum) 0, call.snapshot) ||
			!dp_kv_delete(&call, KV_KEYS, true))
			dp_kv_lost();
		values[KV_KEY - 1] = keys[1];
		values[KV_KEYS_TYPE - 1] = CStringGetTextDatum(type_names[row.table]);
		values[KV_KEYS_EXPIRES - 1] = TimestampTzGetDatum(row.expires);
		values[KV_KEYS_KEPT - 1] = (Datum) 0;
		values[KV_KEYS_ZSET - 1] = Int64GetDatum(row.zset);
		dp_kv_insert(&call, KV_KEYS, values, nulls);
	}
	dp_kv_end(&call);
	PG_RETURN_VOID();
}

/* Moves all rows of a key, locked exclusively, to another one that has none. */
static void
members_move(DpKvCall *call, DpKvTable table, Datum key)
{
	DpKvRel *r = dp_kv_rel(call, table);
	int natts = RelationGetDescr(r->table.rel)->natts;
	DpKvScan scan;

	/* the members that the transaction sees, if there are no others */
	dp_kv_scan(&scan, call, table, false,
			   IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : call->snapshot);
	while (dp_kv_scan_next(&scan, ForwardScanDirection))
	{
		Datum values[KV_SCORES_SCORE] = { key };
		int i;

		for (i = 2; i <= natts; i++)
			values[i - 1] = dp_kv_column(r, i);
		dp_kv_insert(call, table, values, NULL);
		if (!dp_kv_delete(call, table, true))
			dp_kv_lost();
	}
	dp_kv_scan_end(&scan);
	dp_kv_refresh(call);
	if (has_members(call, table, call->snapshot))
		dp_kv_lost();
}

/* Sets or clears the expiry of a key. Returns whether the key exists (clear: and had an expiry). */
static bool
set_expiry(DpKvCall *call, TimestampTz at, bool clear)
{
	for (;;)
	{
		KeyRow row;
		DpKvTable table;

		CHECK_FOR_INTERRUPTS();
		(void) dp_kv_lock(call, false, true, NULL);
		dp_kv_refresh(call);
		table = dp_kv_key_type(call, call->snapshot);
		if (table == KV_KEYS)
			return false;
		row = key_row(call, call->snapshot);
		check_kept(call, &row);
		if (clear && row.expires == 0)
			return false;
		if (dp_kv_update(call, KV_KEYS, KV_KEYS_EXPIRES, TimestampTzGetDatum(at), clear, true))
			return true;
	}
}

/*
 * kv_expire(space, key, seconds) -> boolean: whether the key exists. Removes it if the time is not
 * in the future.
 */
DP_FUNCTION(dp_kv_expire);
Datum
dp_kv_expire(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	double seconds;
	double at;
	bool result;

	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("seconds must not be null")));
	seconds = PG_GETARG_FLOAT8(2);
	dp_kv_begin_args(&call, fcinfo, KV_KEYS, ACL_UPDATE);
	at = (double) call.now + seconds * USECS_PER_SEC;
	if (isnan(seconds) || at >= (double) END_TIMESTAMP || at < (double) MIN_TIMESTAMP)
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
						errmsg("the time to live is out of range")));

	/* whole microseconds, but not the value that means no expiry */
	result = set_expiry(&call, (TimestampTz) at == 0 ? 1 : (TimestampTz) at, false);
	dp_kv_end(&call);
	PG_RETURN_BOOL(result);
}

/*
 * kv_persist(space, key) -> boolean: whether the key had an expiry
 */
DP_FUNCTION(dp_kv_persist);
Datum
dp_kv_persist(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	bool result;

	dp_kv_begin_args(&call, fcinfo, KV_KEYS, ACL_UPDATE);
	result = set_expiry(&call, 0, true);
	dp_kv_end(&call);
	PG_RETURN_BOOL(result);
}

/*
 * kv_ttl(space, key) -> bigint: seconds; -1 without an expiry, -2 without the key
 */
DP_FUNCTION(dp_kv_ttl);
Datum
dp_kv_ttl(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	int64 result = -2;

	dp_kv_begin_args(&call, fcinfo, KV_KEYS, ACL_SELECT);
	if (dp_kv_key_type(&call, call.snapshot) != KV_KEYS)
	{
		KeyRow row = key_row(&call, call.snapshot);

		result =
			row.expires == 0 ? -1 : (row.expires - call.now + USECS_PER_SEC / 2) / USECS_PER_SEC;
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(result);
}

/*
 * kv_exists(space, VARIADIC keys) -> bigint: number of existing keys; a repeated key counts
 * repeatedly
 */
DP_FUNCTION(dp_kv_exists);
Datum
dp_kv_exists(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	Datum *keys;
	bool *nulls;
	int n;
	int i;
	int64 found = 0;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, -1, false, TYPALIGN_INT, &keys, &nulls,
					  &n);
	dp_kv_begin(&call, PG_GETARG_TEXT_PP(0), NULL, KV_KEYS, ACL_SELECT);
	for (i = 0; i < n; i++)
	{
		call.key = keys[i];
		if (!nulls[i] && dp_kv_key_type(&call, call.snapshot) != KV_KEYS)
			found++;
	}
	dp_kv_end(&call);
	PG_RETURN_INT64(found);
}

/*
 * kv_type_of(space, key) -> text: hash, set, zset or none.
 */
DP_FUNCTION(dp_kv_type_of);
Datum
dp_kv_type_of(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	DpKvTable table;

	dp_kv_begin_args(&call, fcinfo, KV_KEYS, ACL_SELECT);
	table = dp_kv_key_type(&call, call.snapshot);
	dp_kv_end(&call);
	PG_RETURN_TEXT_P(cstring_to_text(type_names[table]));
}

/*
 * _kv_matches(key, pattern) -> boolean: the patterns of KEYS: * ? [abc] [^a-z] and a backslash
 * before a literal character
 */
DP_FUNCTION(dp_kv_matches);
Datum
dp_kv_matches(PG_FUNCTION_ARGS)
{
	text *key = PG_GETARG_TEXT_PP(0);
	text *pattern = PG_GETARG_TEXT_PP(1);
	const char *s = VARDATA_ANY(key);
	const char *p = VARDATA_ANY(pattern);

	PG_RETURN_BOOL(glob(p, p + VARSIZE_ANY_EXHDR(pattern), s, s + VARSIZE_ANY_EXHDR(key)));
}

/* Returns an unused number for a sorted set. */
static int64
new_zset(void)
{
	return 1 + (int64) (pg_prng_uint64(&pg_global_prng_state) >> 2);
}

/* Matches a text with a pattern by characters of UTF-8. Only the last star needs backtracking. */
static bool
glob(const char *p, const char *pend, const char *s, const char *send)
{
	const char *star = NULL;
	const char *retry = NULL;

	while (s < send)
	{
		int len = Min(pg_utf_mblen((const unsigned char *) s), send - s);
		const char *next = p;
		bool match = false;

		CHECK_FOR_INTERRUPTS();
		if (p < pend && *p == '*')
		{
			star = ++p;
			retry = s;
			continue;
		}
		if (p < pend && *p == '?')
		{
			match = true;
			next = p + 1;
		}
		else if (p < pend && *p == '[')
		{
			bool negative = p + 1 < pend && p[1] == '^';

			next = p + 1 + negative;
			while (next < pend && *next != ']')
			{
				const char *low;
				int lowlen;

				if (*next == '\\' && next + 1 < pend)
					next++;
				low = next;
				lowlen = Min(pg_utf_mblen((const unsigned char *) low), pend - low);
				next += lowlen;
				if (next + 1 < pend && *next == '-' && next[1] != ']')
				{
					const char *high = next + 1;
					int highlen = Min(pg_utf_mblen((const unsigned char *) high), pend - high);
					int above = memcmp(s, low, Min(len, lowlen));
					int below = memcmp(s, high, Min(len, highlen));

					/* in UTF-8 bytes sort like characters */
					if ((above > 0 || (above == 0 && len >= lowlen)) &&
						(below < 0 || (below == 0 && len <= highlen)))
						match = true;
					next = high + highlen;
				}
				else if (len == lowlen && memcmp(s, low, len) == 0)
					match = true;
			}
			if (next < pend)
				next++;
			match = match != negative;
		}
		else if (p < pend)
		{
			if (*p == '\\' && p + 1 < pend)
				p++;
			if (pend - p >= len && memcmp(p, s, len) == 0)
			{
				match = true;
				next = p + len;
			}
		}
		if (match)
		{
			p = next;
			s += len;
		}
		else if (star != NULL)
		{
			retry += Min(pg_utf_mblen((const unsigned char *) retry), send - retry);
			p = star;
			s = retry;
		}
		else
			return false;
	}
	while (p < pend && *p == '*')
		p++;
	return p == pend;
}

/*
 * _kv_repair_key(space, key) -> boolean: corrects keys and counts from the members of a key.
 * Returns whether it wrote.
 */
DP_FUNCTION(dp_kv_repair_key);
Datum
dp_kv_repair_key(PG_FUNCTION_ARGS)
{
	DpKvCall call;
	DpKvTable table = KV_KEYS;
	KeyRow row;
	int i;

	dp_kv_begin_args(&call, fcinfo, KV_KEYS, ACL_UPDATE);
	dp_require_owner(call.space->tables[KV_KEYS]);
	dp_kv_key_take(&call);
	for (i = KV_HASHES; i <= KV_SCORES; i++)
	{
		if (!has_members(&call, i, call.snapshot))
			continue;
		if (table != KV_KEYS)
			ereport(ERROR,
					(errcode(ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION),
					 errmsg("a key has members of more than one type"),
					 errdetail("Key \"%s\" of space \"%s\" is of types %s and %s.",
							   text_to_cstring(DatumGetTextPP(call.key)), call.space->name,
							   type_names[table], type_names[i]),
					 errhint("Delete the rows of one of them with docpatterns.maintain off.")));
		table = i;
	}
	row = key_row(&call, call.snapshot);
	if (row.found && (table == KV_KEYS ? !OidIsValid(row.kept) : row.table != table))
	{
		if (!dp_kv_delete(&call, KV_KEYS, true))
			dp_kv_lost();
		dp_kv_refresh(&call);
		row.found = false;
	}
	if (!row.found && table != KV_KEYS)
	{
		Datum values[KV_KEYS_ZSET] = { call.key, CStringGetTextDatum(type_names[table]), (Datum) 0,
									   (Datum) 0, (Datum) 0 };
		bool nulls[KV_KEYS_ZSET] = { false, false, true, true, table != KV_SCORES };

		if (row.zset != 0)
			members_remove(&call, KV_COUNTS);
		call.zset = new_zset();
		values[KV_KEYS_ZSET - 1] = Int64GetDatum(call.zset);
		dp_kv_insert(&call, KV_KEYS, values, nulls);
	}
	if (table == KV_SCORES || (row.found && row.table == KV_SCORES))
		(void) dp_kv_count_rebuild(&call);
	else if (row.zset != 0)
		members_remove(&call, KV_COUNTS);
	dp_kv_end(&call);
	PG_RETURN_BOOL(true);
}

/* kv_trigger(): refuses writes to the tables of a space. On keys it carries the declaration. */
DP_FUNCTION(dp_kv_trigger);
Datum
dp_kv_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = dp_trigger_require(fcinfo, "kv", DP_BEFORE_STATEMENT(DP_ANY), 1);

	if (!IsLogicalWorker() &&
		(dp_maintain || !has_privs_of_role(GetUserId(), trigdata->tg_relation->rd_rel->relowner)))
		ereport(
			ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" belongs to a key-value space and cannot be written to directly",
					dp_relation_name(RelationGetRelid(trigdata->tg_relation))),
			 errhint("Use the commands: kv_hset, kv_sadd, kv_zadd, kv_del and so on.")));
	return PointerGetDatum(NULL);
}
