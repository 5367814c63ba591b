/*
 * treepath_ops.c
 *		Order, equality, hashing and sort support of paths, and what is above,
 *		below and in them.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/lsyscache.h"
#include "utils/sortsupport.h"

#include "types/tree/treepath_fn.h"

/*
 * An argument; paths in indexes are seldom compressed and never elsewhere, so nothing is called for
 * most.
 */
static inline struct varlena *
argument(FunctionCallInfo fcinfo, int n)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(PG_GETARG_DATUM(n));

	return unlikely(VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v)) ? DP_GETARG_VARLENA(n) : v;
}

/* The order of the two arguments of a function */
static inline int
arguments_compare(FunctionCallInfo fcinfo)
{
	struct varlena *a = argument(fcinfo, 0);
	struct varlena *b = argument(fcinfo, 1);
	int result = dp_treepath_compare(DP_TREEPATH_DATA(a), DP_TREEPATH_SIZE(a), DP_TREEPATH_DATA(b),
									 DP_TREEPATH_SIZE(b));

	PG_FREE_IF_COPY(a, 0);
	PG_FREE_IF_COPY(b, 1);
	return result;
}

/* The function of an operator: symbol(a, b) is "a op b". */
#define COMPARISON(symbol, op)                                                                     \
	DP_FUNCTION(symbol);                                                                           \
	Datum symbol(PG_FUNCTION_ARGS)                                                                 \
	{                                                                                              \
		PG_RETURN_BOOL(arguments_compare(fcinfo) op 0);                                            \
	}

COMPARISON(dp_treepath_lt, <)
COMPARISON(dp_treepath_le, <=)
COMPARISON(dp_treepath_eq, ==)
COMPARISON(dp_treepath_ne, !=)
COMPARISON(dp_treepath_ge, >=)
COMPARISON(dp_treepath_gt, >)

/*
 * treepath_cmp(treepath, treepath) -> int4
 */
DP_FUNCTION(dp_treepath_cmp);
Datum
dp_treepath_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(arguments_compare(fcinfo));
}

/*
 * treepath_hash(treepath) -> int4: the lower half of the extended hash for
 * seed 0.  Both are on disk in partitioned tables and never change.
 */
DP_FUNCTION(dp_treepath_hash);
Datum
dp_treepath_hash(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	uint64 hash = hash_bytes_extended(DP_TREEPATH_DATA(a), DP_TREEPATH_SIZE(a), 0);

	PG_FREE_IF_COPY(a, 0);
	PG_RETURN_UINT32((uint32) hash);
}

/*
 * treepath_hash_extended(treepath, seed int8) -> int8
 */
DP_FUNCTION(dp_treepath_hash_extended);
Datum
dp_treepath_hash_extended(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	uint64 hash =
		hash_bytes_extended(DP_TREEPATH_DATA(a), DP_TREEPATH_SIZE(a), (uint64) PG_GETARG_INT64(1));

	PG_FREE_IF_COPY(a, 0);
	PG_RETURN_UINT64(hash);
}

/* Compares two paths while sorting. */
static int
sort_compare(Datum x, Datum y, SortSupport ssup)
{
	struct varlena *a = PG_DETOAST_DATUM_PACKED(x);
	struct varlena *b = PG_DETOAST_DATUM_PACKED(y);
	int result = dp_treepath_compare(DP_TREEPATH_DATA(a), DP_TREEPATH_SIZE(a), DP_TREEPATH_DATA(b),
									 DP_TREEPATH_SIZE(b));

	if (unlikely((Pointer) a != DatumGetPointer(x)))
		pfree(a);
	if (unlikely((Pointer) b != DatumGetPointer(y)))
		pfree(b);
	return result;
}

#if SIZEOF_DATUM == 8

/*
 * The first eight bytes of a path as a number: enough for three to eight ids
 * that are small integers.
 */
static Datum
sort_abbreviate(Datum original, SortSupport ssup)
{
	struct varlena *a = PG_DETOAST_DATUM_PACKED(original);
	uint64 bytes = 0;

	memcpy(&bytes, DP_TREEPATH_DATA(a), Min(DP_TREEPATH_SIZE(a), sizeof(bytes)));
	if (unlikely((Pointer) a != DatumGetPointer(original)))
		pfree(a);
	return UInt64GetDatum(pg_ntoh64(bytes));
}

/* Making abbreviations costs next to nothing, so they are never given up. */
static bool
sort_abort(int memtupcount, SortSupport ssup)
{
	return false;
}

#endif

/*
 * treepath_sortsupport(internal)
 */
DP_FUNCTION(dp_treepath_sortsupport);
Datum
dp_treepath_sortsupport(PG_FUNCTION_ARGS)
{
	SortSupport ssup = (SortSupport) PG_GETARG_POINTER(0);

	ssup->comparator = sort_compare;
#if SIZEOF_DATUM == 8
	if (ssup->abbreviate)
	{
		ssup->comparator = ssup_datum_unsigned_cmp;
		ssup->abbrev_converter = sort_abbreviate;
		ssup->abbrev_abort = sort_abort;
		ssup->abbrev_full_comparator = sort_compare;
	}
#endif
	PG_RETURN_VOID();
}

/* ---------------------------------------------------------------- above, below, in */

/* a @> b: whether b equals a or is below it */
DP_FUNCTION(dp_treepath_is_above);
Datum
dp_treepath_is_above(PG_FUNCTION_ARGS)
{
	struct varlena *a = argument(fcinfo, 0);
	struct varlena *b = argument(fcinfo, 1);

	PG_RETURN_BOOL(dp_treepath_covers(DP_TREEPATH_DATA(a), DP_TREEPATH_SIZE(a), DP_TREEPATH_DATA(b),
									  DP_TREEPATH_SIZE(b)));
}

/* a <@ b: whether a equals b or is below it */
DP_FUNCTION(dp_treepath_is_below);
Datum
dp_treepath_is_below(PG_FUNCTION_ARGS)
{
	struct varlena *a = argument(fcinfo, 0);
	struct varlena *b = argument(fcinfo, 1);

	PG_RETURN_BOOL(dp_treepath_covers(DP_TREEPATH_DATA(b), DP_TREEPATH_SIZE(b), DP_TREEPATH_DATA(a),
									  DP_TREEPATH_SIZE(a)));
}

/* Whether one of the ids of the path has these bytes. */
static bool
path_has(struct varlena *path, struct varlena *id)
{
	const uint8 *p = DP_TREEPATH_DATA(path);
	const uint8 *end = p + DP_TREEPATH_SIZE(path);
	uint32 idsize = DP_TREEPATH_SIZE(id);

	CHECK_FOR_INTERRUPTS();
	while (p < end)
	{
		uint32 size = dp_treepath_id_size(p, end);

		if (size == idsize && memcmp(p, DP_TREEPATH_DATA(id), size) == 0)
			return true;
		p += size;
	}
	return false;
}

/*
 * treepath ? id, for text, int8, objectid and bson_value: whether the node is
 * on the path
 */
DP_FUNCTION(dp_treepath_contains);
Datum
dp_treepath_contains(PG_FUNCTION_ARGS)
{
	DpTreepathBuilder b;
	struct varlena *id;
	bool result;
	Oid type = get_fn_expr_argtype(fcinfo->flinfo, 1);

	/* estimates call it without an expression */
	if (!OidIsValid(type))
	{
		Oid *types;
		int n;

		(void) get_func_signature(fcinfo->flinfo->fn_oid, &types, &n);
		type = types[1];
	}
	dp_treepath_begin(&b);
	dp_treepath_append_datum(&b, PG_GETARG_DATUM(1), type);
	id = dp_treepath_finish(&b);
	result = path_has(DP_GETARG_VARLENA(0), id);
	pfree(id);
	PG_RETURN_BOOL(result);
}

/*
 * treepath ?| ids: whether one of the nodes is on the path
 */
DP_FUNCTION(dp_treepath_contains_any);
Datum
dp_treepath_contains_any(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	ListCell *lc;

	foreach(lc, dp_treepath_array_elements(PG_GETARG_ARRAYTYPE_P(1)))
		if (path_has(path, lfirst(lc)))
			PG_RETURN_BOOL(true);
	PG_RETURN_BOOL(false);
}

/*
 * treepath ?& ids: whether all of the nodes are on the path
 */
DP_FUNCTION(dp_treepath_contains_all);
Datum
dp_treepath_contains_all(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	ListCell *lc;

	foreach(lc, dp_treepath_array_elements(PG_GETARG_ARRAYTYPE_P(1)))
		if (!path_has(path, lfirst(lc)))
			PG_RETURN_BOOL(false);
	PG_RETURN_BOOL(true);
}
