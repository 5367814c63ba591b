/*
 * operators.c
 *		The functions of the btree and hash operator classes of bson and bson_value: comparison
 *		operators, hashing and sort support.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "lib/hyperloglog.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"

#include "bson/compare.h"

/* The number of values before abbreviation may be aborted */
#define ABBREVIATE_TRIAL 10000

/* State of abbreviation: how many different keys there seem to be */
typedef struct AbbreviateState
{
	int64 count; /* keys made */
	bool estimating;
	hyperLogLogState distinct;
} AbbreviateState;

typedef uint64 (*Abbreviate)(struct varlena *v);

static void sort_prepare(SortSupport ssup, int (*compare)(Datum, Datum, SortSupport),
						 Datum (*abbreviate)(Datum, SortSupport));
static bool sort_abort(int memtupcount, SortSupport ssup);
static Datum sort_abbreviate(Datum original, SortSupport ssup, Abbreviate abbreviate);

/* Whether a detoasted value is an int. */
static inline bool
is_int32(struct varlena *v)
{
	return VARSIZE_ANY_EXHDR(v) == 1 + sizeof(int32) && *VARDATA_ANY(v) == DP_TYPE_INT32;
}

/*
 * Compares two detoasted values. Most keys are ints, and a search in an index compares every key of
 * a page. What a hash has found mostly has the same bytes.
 */
static inline int
values_compare(struct varlena *a, struct varlena *b)
{
	Size size = VARSIZE_ANY_EXHDR(a);
	DpValue x;
	DpValue y;

	if (is_int32(a) && is_int32(b))
	{
		int32 i = dp_get_int32((const uint8 *) VARDATA_ANY(a) + 1);
		int32 j = dp_get_int32((const uint8 *) VARDATA_ANY(b) + 1);

		return (i > j) - (i < j);
	}
	if (size == VARSIZE_ANY_EXHDR(b) && memcmp(VARDATA_ANY(a), VARDATA_ANY(b), size) == 0)
		return 0;
	x = dp_value_of_varlena(a);
	y = dp_value_of_varlena(b);
	return dp_value_compare(&x, &y);
}

/* Compares two detoasted documents. */
static inline int
documents_compare(struct varlena *a, struct varlena *b)
{
	return dp_document_compare(DP_DOC_DATA(a), DP_DOC_SIZE(a), DP_DOC_DATA(b), DP_DOC_SIZE(b));
}

/* The hash of a detoasted value. */
static inline uint64
value_hash(struct varlena *a, uint64 seed)
{
	DpValue x = dp_value_of_varlena(a);

	return dp_value_hash(&x, seed);
}

/* The hash of a detoasted document. */
static inline uint64
document_hash(struct varlena *a, uint64 seed)
{
	return dp_document_hash(DP_DOC_DATA(a), DP_DOC_SIZE(a), seed);
}

/* The abbreviation of a detoasted value. */
static uint64
value_abbreviate(struct varlena *a)
{
	DpValue x = dp_value_of_varlena(a);

	return dp_value_abbreviate(&x);
}

/* The abbreviation of a detoasted document. */
static uint64
document_abbreviate(struct varlena *a)
{
	return dp_document_abbreviate(DP_DOC_DATA(a), DP_DOC_SIZE(a));
}

/* The order of the two arguments of a function. */
#define COMPARE_ARGUMENTS(result, compare)                                                         \
	do                                                                                             \
	{                                                                                              \
		struct varlena *a_ = DP_GETARG_VARLENA(0);                                                 \
		struct varlena *b_ = DP_GETARG_VARLENA(1);                                                 \
		(result) = compare(a_, b_);                                                                \
		PG_FREE_IF_COPY(a_, 0);                                                                    \
		PG_FREE_IF_COPY(b_, 1);                                                                    \
	} while (0)

/* The function of an operator: symbol(a, b) is "a op b". */
#define COMPARISON(symbol, compare, op)                                                            \
	DP_FUNCTION(symbol);                                                                           \
	Datum symbol(PG_FUNCTION_ARGS)                                                                 \
	{                                                                                              \
		int result;                                                                                \
		COMPARE_ARGUMENTS(result, compare);                                                        \
		PG_RETURN_BOOL(result op 0);                                                               \
	}

COMPARISON(dp_bson_value_lt, values_compare, <)
COMPARISON(dp_bson_value_le, values_compare, <=)
COMPARISON(dp_bson_value_eq, values_compare, ==)
COMPARISON(dp_bson_value_ne, values_compare, !=)
COMPARISON(dp_bson_value_ge, values_compare, >=)
COMPARISON(dp_bson_value_gt, values_compare, >)

COMPARISON(dp_bson_lt, documents_compare, <)
COMPARISON(dp_bson_le, documents_compare, <=)
COMPARISON(dp_bson_eq, documents_compare, ==)
COMPARISON(dp_bson_ne, documents_compare, !=)
COMPARISON(dp_bson_ge, documents_compare, >=)
COMPARISON(dp_bson_gt, documents_compare, >)

/*
 * bson_value_cmp(bson_value, bson_value) -> int4: less than, equal to or
 * greater than 0.
 */
DP_FUNCTION(dp_bson_value_cmp);
Datum
dp_bson_value_cmp(PG_FUNCTION_ARGS)
{
	int result;

	COMPARE_ARGUMENTS(result, values_compare);
	PG_RETURN_INT32(result);
}

/*
 * bson_cmp(bson, bson) -> int4
 */
DP_FUNCTION(dp_bson_cmp);
Datum
dp_bson_cmp(PG_FUNCTION_ARGS)
{
	int result;

	COMPARE_ARGUMENTS(result, documents_compare);
	PG_RETURN_INT32(result);
}

/*
 * bson_value_hash(bson_value) -> int4: the lower half of the extended hash for seed 0, as
 * PostgreSQL requires.
 */
DP_FUNCTION(dp_bson_value_hash);
Datum
dp_bson_value_hash(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	uint64 hash = value_hash(a, 0);

	PG_FREE_IF_COPY(a, 0);
	PG_RETURN_UINT32((uint32) hash);
}

/*
 * bson_value_hash_extended(bson_value, seed int8) -> int8
 */
DP_FUNCTION(dp_bson_value_hash_extended);
Datum
dp_bson_value_hash_extended(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	uint64 hash = value_hash(a, (uint64) PG_GETARG_INT64(1));

	PG_FREE_IF_COPY(a, 0);
	PG_RETURN_UINT64(hash);
}

/*
 * bson_hash(bson) -> int4
 */
DP_FUNCTION(dp_bson_hash);
Datum
dp_bson_hash(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	uint64 hash = document_hash(a, 0);

	PG_FREE_IF_COPY(a, 0);
	PG_RETURN_UINT32((uint32) hash);
}

/*
 * bson_hash_extended(bson, seed int8) -> int8
 */
DP_FUNCTION(dp_bson_hash_extended);
Datum
dp_bson_hash_extended(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	uint64 hash = document_hash(a, (uint64) PG_GETARG_INT64(1));

	PG_FREE_IF_COPY(a, 0);
	PG_RETURN_UINT64(hash);
}

/* Compares two values while sorting. */
static int
sort_compare_values(Datum x, Datum y, SortSupport ssup)
{
	struct varlena *a = PG_DETOAST_DATUM_PACKED(x);
	struct varlena *b = PG_DETOAST_DATUM_PACKED(y);
	int result = values_compare(a, b);

	if (unlikely((Pointer) a != DatumGetPointer(x)))
		pfree(a);
	if (unlikely((Pointer) b != DatumGetPointer(y)))
		pfree(b);
	return result;
}

/* Compares two documents while sorting. */
static int
sort_compare_documents(Datum x, Datum y, SortSupport ssup)
{
	struct varlena *a = PG_DETOAST_DATUM_PACKED(x);
	struct varlena *b = PG_DETOAST_DATUM_PACKED(y);
	int result = documents_compare(a, b);

	if (unlikely((Pointer) a != DatumGetPointer(x)))
		pfree(a);
	if (unlikely((Pointer) b != DatumGetPointer(y)))
		pfree(b);
	return result;
}

/* Abbreviates a value while sorting. */
static Datum
sort_abbreviate_value(Datum original, SortSupport ssup)
{
	return sort_abbreviate(original, ssup, value_abbreviate);
}

/* Abbreviates a document while sorting. */
static Datum
sort_abbreviate_document(Datum original, SortSupport ssup)
{
	return sort_abbreviate(original, ssup, document_abbreviate);
}

/*
 * bson_value_sortsupport(internal)
 */
DP_FUNCTION(dp_bson_value_sortsupport);
Datum
dp_bson_value_sortsupport(PG_FUNCTION_ARGS)
{
	sort_prepare((SortSupport) PG_GETARG_POINTER(0), sort_compare_values, sort_abbreviate_value);
	PG_RETURN_VOID();
}

/*
 * bson_sortsupport(internal)
 */
DP_FUNCTION(dp_bson_sortsupport);
Datum
dp_bson_sortsupport(PG_FUNCTION_ARGS)
{
	sort_prepare((SortSupport) PG_GETARG_POINTER(0), sort_compare_documents,
				 sort_abbreviate_document);
	PG_RETURN_VOID();
}

/*
 * Fills in what a sort needs.  Abbreviated keys are compared as unsigned
 * integers; where they are equal the whole values decide.
 */
static void
sort_prepare(SortSupport ssup, int (*compare)(Datum, Datum, SortSupport),
			 Datum (*abbreviate)(Datum, SortSupport))
{
	ssup->comparator = compare;
	if (ssup->abbreviate)
	{
		MemoryContext old = MemoryContextSwitchTo(ssup->ssup_cxt);
		AbbreviateState *state = palloc(sizeof(AbbreviateState));

		state->count = 0;
		state->estimating = true;
		initHyperLogLog(&state->distinct, 10);
		ssup->ssup_extra = state;
		ssup->comparator = ssup_datum_unsigned_cmp;
		ssup->abbrev_converter = abbreviate;
		ssup->abbrev_abort = sort_abort;
		ssup->abbrev_full_comparator = compare;
		MemoryContextSwitchTo(old);
	}
}

/*
 * Makes one abbreviated key, and counts it.
 */
static Datum
sort_abbreviate(Datum original, SortSupport ssup, Abbreviate abbreviate)
{
	AbbreviateState *state = ssup->ssup_extra;
	struct varlena *v = PG_DETOAST_DATUM_PACKED(original);
	uint64 key = abbreviate(v);

	if (unlikely((Pointer) v != DatumGetPointer(original)))
		pfree(v);
	state->count++;
	if (state->estimating)
		addHyperLogLog(&state->distinct,
					   DatumGetUInt32(hash_uint32((uint32) key ^ (uint32) (key >> 32))));
#if SIZEOF_DATUM == 8
	return (Datum) key;
#else
	return (Datum) (key >> 32);
#endif
}

/*
 * Whether to give up abbreviating: when nearly all keys are the same they only
 * cost time.
 */
static bool
sort_abort(int memtupcount, SortSupport ssup)
{
	AbbreviateState *state = ssup->ssup_extra;
	double distinct;

	if (memtupcount < ABBREVIATE_TRIAL || state->count < ABBREVIATE_TRIAL || !state->estimating)
		return false;
	distinct = estimateHyperLogLog(&state->distinct);
	if (distinct > 10 * ABBREVIATE_TRIAL)
		state->estimating = false; /* enough of them, whatever follows */
	return distinct < state->count / 2000.0 + 0.5;
}
