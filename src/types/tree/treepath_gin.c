/*
 * treepath_gin.c
 *		The GIN operator class of treepath: which paths lead through a node.
 *
 *		path ? id, path ?| ids, path ?& ids
 *
 * Keys are the bytes of ids.  An id of more than KEY_MAX bytes is cut there
 * and followed by eight bytes of hash, and answers about such are rechecked.
 */
#include "postgres.h"

#include "access/gin.h"
#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "port/pg_bswap.h"

#include "bson/catalog.h"
#include "types/tree/treepath_fn.h"

#define KEY_MAX 128

/*
 * Strategies: four for each operator, by the type on the right: text, int8,
 * objectid, bson_value.  They are in the operator class.
 */
#define STRATEGY_ONE 1
#define STRATEGY_ANY 5
#define STRATEGY_ALL 9
#define STRATEGY_LAST 12

/* The key of an id: a bytea. */
static Datum
id_key(const uint8 *id, uint32 size)
{
	struct varlena *key;

	if (likely(size <= KEY_MAX))
		return PointerGetDatum(dp_treepath_of_ids(id, size));
	key = dp_treepath_of_ids(id, KEY_MAX + sizeof(uint64));
	{
		uint64 hash = pg_hton64(hash_bytes_extended(id, size, 0));

		memcpy(VARDATA(key) + KEY_MAX, &hash, sizeof(hash));
	}
	return PointerGetDatum(key);
}

/*
 * treepath_gin_extract_value(treepath, internal) -> internal
 */
DP_FUNCTION(dp_treepath_gin_extract_value);
Datum
dp_treepath_gin_extract_value(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	int32 *nkeys = (int32 *) PG_GETARG_POINTER(1);
	const uint8 *p = DP_TREEPATH_DATA(path);
	const uint8 *end = p + DP_TREEPATH_SIZE(path);
	Datum *keys = palloc(sizeof(Datum) * Max(dp_treepath_count(p, end - p), 1));

	*nkeys = 0;
	while (p < end)
	{
		uint32 size = dp_treepath_id_size(p, end);

		keys[(*nkeys)++] = id_key(p, size);
		p += size;
	}
	PG_RETURN_POINTER(keys);
}

/*
 * treepath_gin_extract_query(treepath, internal, int2, internal, internal,
 * internal, internal) -> internal
 */
DP_FUNCTION(dp_treepath_gin_extract_query);
Datum
dp_treepath_gin_extract_query(PG_FUNCTION_ARGS)
{
	int32 *nkeys = (int32 *) PG_GETARG_POINTER(1);
	StrategyNumber strategy = PG_GETARG_UINT16(2);
	Pointer **extra = (Pointer **) PG_GETARG_POINTER(4);
	int32 *mode = (int32 *) PG_GETARG_POINTER(6);
	List *ids;
	ListCell *lc;
	Datum *keys;
	bool *recheck;

	if (strategy < STRATEGY_ONE || strategy > STRATEGY_LAST)
		elog(ERROR, "unrecognized strategy number: %d", strategy);
	if (strategy < STRATEGY_ANY)
	{
		const Oid types[] = { TEXTOID, INT8OID, dp_types()->objectid, dp_types()->bson_value };
		DpTreepathBuilder b;

		dp_treepath_begin(&b);
		dp_treepath_append_datum(&b, PG_GETARG_DATUM(0), types[strategy - STRATEGY_ONE]);
		ids = list_make1(dp_treepath_finish(&b));
	}
	else
		ids = dp_treepath_array_elements(PG_GETARG_ARRAYTYPE_P(0));

	*nkeys = 0;
	if (ids == NIL && strategy >= STRATEGY_ALL)
		*mode = GIN_SEARCH_MODE_ALL; /* all of none */
	keys = palloc(sizeof(Datum) * Max(list_length(ids), 1));
	recheck = palloc0(sizeof(bool) * Max(list_length(ids), 1));
	*extra = palloc(sizeof(Pointer) * Max(list_length(ids), 1));
	foreach(lc, ids)
	{
		struct varlena *id = lfirst(lc);

		recheck[*nkeys] = DP_TREEPATH_SIZE(id) > KEY_MAX;
		(*extra)[*nkeys] = (Pointer) &recheck[*nkeys];
		keys[(*nkeys)++] = id_key(DP_TREEPATH_DATA(id), DP_TREEPATH_SIZE(id));
	}
	PG_RETURN_POINTER(keys);
}

/*
 * treepath_gin_consistent(internal, int2, treepath, int4, internal, internal,
 * internal) -> "char": the three-valued form
 */
DP_FUNCTION(dp_treepath_gin_consistent);
Datum
dp_treepath_gin_consistent(PG_FUNCTION_ARGS)
{
	GinTernaryValue *check = (GinTernaryValue *) PG_GETARG_POINTER(0);
	StrategyNumber strategy = PG_GETARG_UINT16(1);
	int32 nkeys = PG_GETARG_INT32(3);
	Pointer *extra = (Pointer *) PG_GETARG_POINTER(4);
	bool all = strategy >= STRATEGY_ALL;
	GinTernaryValue result = all ? GIN_TRUE : GIN_FALSE;

	for (int i = 0; i < nkeys; i++)
	{
		GinTernaryValue one = check[i];

		if (one == GIN_TRUE && *(bool *) extra[i])
			one = GIN_MAYBE;
		if (all)
		{
			if (one == GIN_FALSE)
				PG_RETURN_GIN_TERNARY_VALUE(GIN_FALSE);
			if (one == GIN_MAYBE)
				result = GIN_MAYBE;
		}
		else
		{
			if (one == GIN_TRUE)
				PG_RETURN_GIN_TERNARY_VALUE(GIN_TRUE);
			if (one == GIN_MAYBE)
				result = GIN_MAYBE;
		}
	}
	PG_RETURN_GIN_TERNARY_VALUE(result);
}
