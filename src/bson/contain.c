/*
 * contain.c
 *		Containment: @> and <@.
 *
 * A value contains another one if
 *		both are documents, and each field of the other one is also in this one,
 *		under the same name and with a value that contains the other's;
 *		both are arrays, and each element of the other one is contained in some
 *		element of this one, ignoring order and duplicates;
 *		otherwise, they are equal by the operator =, so that numbers compare
 *		by value whatever their types.
 * An array also contains a scalar that is one of its elements, but only at the top level.  Of
 * fields with the same name only the first one counts.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/compare.h"
#include "bson/fetch.h"
#include "bson/names.h"
#include "bson/path.h"

/* Elements of arrays that are longer than so many bytes are not compared one by one. */
#define MANY_BYTES 1024

/* So many documents are searched among the elements one by one before these are sorted by a field.
 */
#define FEW_SEARCHES 4

/* The documents of an array that have a field, in the order of its value */
typedef struct FieldOrder
{
	const char *name; /* NULL: not made yet */
	uint32 namelen;
	int nsearched; /* documents that were searched one by one since then */
	int few;       /* so many, and twice as many with every field */
	int n;
	struct
	{
		DpValue key;
		DpValue document;
	} * items;
} FieldOrder;

static bool stored_contains(Datum document, const DpValue *b);
static bool value_contains(const DpValue *a, const DpValue *b);
static bool document_contains(const DpValue *a, const DpValue *b);
static bool array_contains(const DpValue *a, const DpValue *b);
static bool array_contains_element(const DpValue *a, const DpValue *element);
static bool array_contains_sorted(const DpValue *a, const DpValue *b);
static bool by_field_contains(FieldOrder *order, const DpValue *a, const DpValue *element);
static void order_make(FieldOrder *order, const DpValue *a, const DpElement *field);
static int order_compare(const void *a, const void *b);
static bool field_counts(DpFinder *fields, const DpElement *element);

/*
 * bson @> bson: whether the left document contains the right one.
 */
DP_FUNCTION(dp_bson_contains);
Datum
dp_bson_contains(PG_FUNCTION_ARGS)
{
	DpValue b = dp_value_of_document(DP_GETARG_VARLENA(1));

	PG_RETURN_BOOL(stored_contains(PG_GETARG_DATUM(0), &b));
}

/*
 * bson <@ bson
 */
DP_FUNCTION(dp_bson_contained);
Datum
dp_bson_contained(PG_FUNCTION_ARGS)
{
	DpValue a = dp_value_of_document(DP_GETARG_VARLENA(0));

	PG_RETURN_BOOL(stored_contains(PG_GETARG_DATUM(1), &a));
}

/*
 * True if a stored document contains b.  If all fields of b are found near its front, or one of
 * them has another value there, only that part is read.
 */
static bool
stored_contains(Datum document, const DpValue *b)
{
	DpValue a;
	uint32 avail;
	DpIter iter;
	DpElement element;

	dp_fetch_document(document, false, &a, &avail);
	if (avail < a.len)
	{
		DpFinder fields;

		dp_finder_init(&fields, b);
		dp_iter_init_value(&iter, b);
		for (;;)
		{
			DpValue found;
			DpFind there;

			CHECK_FOR_INTERRUPTS();
			if (!dp_iter_next(&iter, &element))
				return true;
			there = dp_field_find_partial(&a, avail, element.name, element.namelen, &found);
			if (there == DP_FIND_FOUND && value_contains(&found, &element.value))
				continue;
			if (there != DP_FIND_SHORT && field_counts(&fields, &element))
				return false;
			if (there == DP_FIND_SHORT)
				break;
		}
		dp_fetch_document(document, true, &a, &avail);
	}
	return document_contains(&a, b);
}

/*
 * Whether no earlier field of its document hides this one.
 */
static bool
field_counts(DpFinder *fields, const DpElement *element)
{
	DpValue first;

	return dp_finder_find(fields, element->name, element->namelen, &first) &&
		   first.data == element->value.data;
}

/*
 * Whether an operand contains the other one.
 */
static bool
operand_contains(const DpValue *a, const DpValue *b)
{
	if (a->type == DP_TYPE_ARRAY && !dp_type_is_container(b->type))
		return array_contains_element(a, b);
	return value_contains(a, b);
}

/*
 * bson_value @> bson_value
 */
DP_FUNCTION(dp_bson_value_contains);
Datum
dp_bson_value_contains(PG_FUNCTION_ARGS)
{
	DpValue a = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	DpValue b = dp_value_of_varlena(DP_GETARG_VARLENA(1));

	PG_RETURN_BOOL(operand_contains(&a, &b));
}

/*
 * bson_value <@ bson_value
 */
DP_FUNCTION(dp_bson_value_contained);
Datum
dp_bson_value_contained(PG_FUNCTION_ARGS)
{
	DpValue a = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	DpValue b = dp_value_of_varlena(DP_GETARG_VARLENA(1));

	PG_RETURN_BOOL(operand_contains(&b, &a));
}

/* Whether a value contains another one of any type. */
static bool
value_contains(const DpValue *a, const DpValue *b)
{
	if (a->type != b->type && (dp_type_is_container(a->type) || dp_type_is_container(b->type)))
		return false;
	if (a->type == DP_TYPE_DOCUMENT)
		return document_contains(a, b);
	if (a->type == DP_TYPE_ARRAY)
		return array_contains(a, b);
	return dp_value_compare(a, b) == 0;
}

/*
 * Whether each field of b that is not hidden by an earlier one is in a.
 */
static bool
document_contains(const DpValue *a, const DpValue *b)
{
	DpFinder there;
	DpFinder own;
	DpIter iter;
	DpElement element;
	bool result = true;

	check_stack_depth();
	dp_finder_init(&there, a);
	dp_finder_init(&own, b);
	dp_iter_init_value(&iter, b);
	while (result && dp_iter_next(&iter, &element))
	{
		DpValue found;

		result = (dp_finder_find(&there, element.name, element.namelen, &found) &&
				  value_contains(&found, &element.value)) ||
				 !field_counts(&own, &element);
	}
	dp_finder_free(&there);
	dp_finder_free(&own);
	return result;
}

/*
 * Whether each element of b is contained in some element of a.
 */
static bool
array_contains(const DpValue *a, const DpValue *b)
{
	DpIter iter;
	DpValue element;

	check_stack_depth();
	if (a->len > MANY_BYTES && b->len > MANY_BYTES)
		return array_contains_sorted(a, b);
	dp_iter_init_value(&iter, b);
	while (dp_iter_next_value(&iter, &element))
		if (!array_contains_element(a, &element))
			return false;
	return true;
}

/*
 * The same for two long arrays: the elements of a are sorted, and one that is equal contains.  A
 * document may be contained in one that is not equal.
 */
static bool
array_contains_sorted(const DpValue *a, const DpValue *b)
{
	DpValue *values =
		palloc_extended(sizeof(DpValue) * (Size) dp_array_count(a->data, a->len), MCXT_ALLOC_HUGE);
	DpIter iter;
	DpValue value;
	FieldOrder order = { .few = FEW_SEARCHES };
	int n = 0;
	bool result = true;

	dp_iter_init_value(&iter, a);
	while (dp_iter_next_value(&iter, &value))
		values[n++] = value;
	dp_values_sort(values, n);
	dp_iter_init_value(&iter, b);
	while (result && dp_iter_next_value(&iter, &value))
		result = dp_values_find(values, n, &value) >= 0 ||
				 (dp_type_is_container(value.type) && by_field_contains(&order, a, &value));
	pfree(values);
	if (order.items != NULL)
		pfree(order.items);
	return result;
}

/*
 * Whether some element of the array contains the document or array.  An element that contains a
 * document has a field that is equal to the document's first one, if this is not a container.
 */
static bool
by_field_contains(FieldOrder *order, const DpValue *a, const DpValue *element)
{
	DpIter iter;
	DpElement field;
	int low = 0;
	int high;

	dp_iter_init_value(&iter, element);
	if (element->type != DP_TYPE_DOCUMENT || !dp_iter_next(&iter, &field) ||
		dp_type_is_container(field.value.type))
		return array_contains_element(a, element);
	if (order->name == NULL || order->namelen != field.namelen ||
		memcmp(order->name, field.name, field.namelen) != 0)
	{
		if (order->nsearched++ < order->few)
			return array_contains_element(a, element);
		order_make(order, a, &field);
	}

	CHECK_FOR_INTERRUPTS();
	for (high = order->n; low < high;)
	{
		int middle = low + (high - low) / 2;

		if (dp_value_compare(&order->items[middle].key, &field.value) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < order->n && dp_value_compare(&order->items[low].key, &field.value) == 0; low++)
		if (document_contains(&order->items[low].document, element))
			return true;
	return false;
}

/* Sorts the documents of an array by a field. */
static void
order_make(FieldOrder *order, const DpValue *a, const DpElement *field)
{
	DpIter iter;
	DpValue value;

	if (order->items == NULL)
		order->items =
			palloc_extended(sizeof(*order->items) * Max((Size) dp_array_count(a->data, a->len), 1),
							MCXT_ALLOC_HUGE);
	order->name = field->name;
	order->namelen = field->namelen;
	order->nsearched = 0;
	order->few = Min(order->few * 2, 1 << 20);
	order->n = 0;
	dp_iter_init_value(&iter, a);
	while (dp_iter_next_value(&iter, &value))
	{
		if (value.type != DP_TYPE_DOCUMENT ||
			!dp_field_find(value.data, value.len, field->name, field->namelen,
						   &order->items[order->n].key) ||
			dp_type_is_container(order->items[order->n].key.type))
			continue;
		order->items[order->n++].document = value;
	}
	qsort(order->items, order->n, sizeof(*order->items), order_compare);
}

/* By the value of the field, the first member of both. */
static int
order_compare(const void *a, const void *b)
{
	return dp_value_compare(a, b);
}

/* Whether some element of the array contains the value. */
static bool
array_contains_element(const DpValue *a, const DpValue *element)
{
	DpIter iter;
	DpValue value;

	CHECK_FOR_INTERRUPTS();
	dp_iter_init_value(&iter, a);
	while (dp_iter_next_value(&iter, &value))
		if (value_contains(&value, element))
			return true;
	return false;
}
