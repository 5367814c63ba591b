/*
 * schema_value.c
 *		Comparing values as schemas do: the order of an object's fields does not
 *		count, and whether a number is a multiple of another one.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

#include "bson/compare.h"
#include "bson/number.h"
#include "bson/path.h"
#include "mql/schema_node.h"

/* Arrays up to this length are compared pair by pair */
#define FEW_ELEMENTS 8

static bool documents_equal(const DpValue *a, const DpValue *b);
static Numeric number_to_numeric(const DpValue *value);
static bool value_equal_unordered(const DpValue *a, const DpValue *b);
static uint64 value_hash_unordered(const DpValue *value);

/* Whether two values are equal when the order of fields does not count. */
static bool
value_equal_unordered(const DpValue *a, const DpValue *b)
{
	DpIter x;
	DpIter y;
	DpValue u;
	DpValue v;

	if (dp_type_class[a->type] != dp_type_class[b->type])
		return false;
	if (dp_value_identical(a, b))
		return true;
	if (a->type == DP_TYPE_DOCUMENT)
		return documents_equal(a, b);
	/* schemas do not use a collation */
	if (dp_type_class[a->type] == DP_CLASS_STRING)
		return dp_value_compare_string(a, DP_STRING_DATA(b), DP_STRING_LEN(b)) == 0;
	if (a->type != DP_TYPE_ARRAY)
		return dp_value_compare(a, b) == 0;

	check_stack_depth();
	dp_iter_init_value(&x, a);
	dp_iter_init_value(&y, b);
	for (;;)
	{
		bool more = dp_iter_next_value(&x, &u);

		if (dp_iter_next_value(&y, &v) != more)
			return false;
		if (!more)
			return true;
		if (!value_equal_unordered(&u, &v))
			return false;
	}
}

/*
 * Two documents: as many fields, and each of one has its equal in the other.
 * Of fields with the same name the first one counts.
 */
static bool
documents_equal(const DpValue *a, const DpValue *b)
{
	DpIter iter;
	DpElement field;
	DpValue other;
	DpFinder finder;
	bool equal = true;

	check_stack_depth();
	if (dp_document_count(a->data, a->len) != dp_document_count(b->data, b->len))
		return false;
	dp_finder_init(&finder, b);
	dp_iter_init_value(&iter, a);
	while (equal && dp_iter_next(&iter, &field))
		equal = dp_finder_find(&finder, field.name, field.namelen, &other) &&
				value_equal_unordered(&field.value, &other);
	dp_finder_free(&finder);
	return equal;
}

/* A hash for that. */
static uint64
value_hash_unordered(const DpValue *value)
{
	DpIter iter;
	DpElement field;
	uint64 hash;

	if (!dp_type_is_container(value->type))
		return dp_value_hash(value, 0);
	check_stack_depth();
	hash = value->type;
	dp_iter_init_value(&iter, value);
	while (dp_iter_next(&iter, &field))
	{
		uint64 one = value_hash_unordered(&field.value);

		if (value->type == DP_TYPE_ARRAY)
			hash = hash_combine64(hash, one);
		else
			hash += hash_combine64(dp_string_hash(field.name, field.namelen, 0), one);
	}
	return hash;
}

static int
hashed_compare(const void *a, const void *b)
{
	uint64 x = ((const DpSchemaValue *) a)->hash;
	uint64 y = ((const DpSchemaValue *) b)->hash;

	return (x > y) - (x < y);
}

void
dp_schema_values(DpSchemaValues *set, const DpValue *array)
{
	DpIter iter;

	set->n = dp_array_count(array->data, array->len);
	set->values = palloc_extended(Max(set->n, 1) * sizeof(DpSchemaValue), MCXT_ALLOC_HUGE);
	dp_iter_init_value(&iter, array);
	for (uint32 i = 0; i < set->n && dp_iter_next_value(&iter, &set->values[i].value); i++)
		set->values[i].hash =
			set->n <= FEW_ELEMENTS ? 0 : value_hash_unordered(&set->values[i].value);
	if (set->n > FEW_ELEMENTS)
		qsort(set->values, set->n, sizeof(DpSchemaValue), hashed_compare);
}

bool
dp_schema_values_find(const DpSchemaValues *set, const DpValue *value)
{
	uint64 hash = set->n <= FEW_ELEMENTS ? 0 : value_hash_unordered(value);
	uint32 low = 0;
	uint32 high = set->n;

	/* the first of that hash */
	while (low < high)
	{
		uint32 middle = low + (high - low) / 2;

		if (set->values[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < set->n && set->values[low].hash == hash; low++)
	{
		const DpValue *one = &set->values[low].value;

		/* strings are equal if their bytes are */
		if (one->type == DP_TYPE_STRING && value->type == DP_TYPE_STRING
				? dp_value_identical(one, value)
				: value_equal_unordered(one, value))
			return true;
	}
	return false;
}

bool
dp_schema_values_unique(const DpSchemaValues *set)
{
	/* within a run of the same hash each with each */
	for (uint32 i = 0; i < set->n; i++)
		for (uint32 j = i + 1; j < set->n && set->values[j].hash == set->values[i].hash; j++)
			if (value_equal_unordered(&set->values[i].value, &set->values[j].value))
				return false;
	return true;
}

/* A finite number as a numeric, a double by its 15 digits, as people mean it. */
static Numeric
number_to_numeric(const DpValue *value)
{
	switch (value->type)
	{
		case DP_TYPE_INT32:
			return int64_to_numeric(dp_get_int32(value->data));
		case DP_TYPE_INT64:
			return int64_to_numeric(dp_get_int64(value->data));
		case DP_TYPE_DOUBLE:
			return DatumGetNumeric(DirectFunctionCall1(float8_numeric,
													   Float8GetDatum(dp_get_double(value->data))));
		default:
			return dp_decimal128_to_numeric(value->data);
	}
}

bool
dp_number_is_multiple(const DpValue *value, const DpValue *of)
{
	int64 a;
	int64 b;
	Numeric rest;
	double d = dp_number_approximate(value);

	if (dp_value_to_whole(value, &a) && dp_value_to_whole(of, &b))
		return b == 1 || a % b == 0;
	if (isnan(d) || isinf(d))
		return false;
	rest =
		DatumGetNumeric(DirectFunctionCall2(numeric_mod, NumericGetDatum(number_to_numeric(value)),
											NumericGetDatum(number_to_numeric(of))));
	return DatumGetBool(DirectFunctionCall2(numeric_eq, NumericGetDatum(rest),
											NumericGetDatum(int64_to_numeric(0))));
}
