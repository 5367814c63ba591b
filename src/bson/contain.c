/*
 * contain.c
 *		Containment: @> and <@.
 *
 * A value contains another one if
 *		both are documents, and each field of the other one is also in this one,
 *		under the same name and with a value that contains the other's;
 *		both are arrays, and each element of the other one is contained in some
 *		element of this one, order and repetition not counting;
 *		otherwise, they are equal as the operator = says, so that numbers compare
 *		by value whatever their types.
 * An array also contains a scalar that is one of its elements, but only as the
 * operand itself, not further in.  Of fields with the same name the first one
 * counts.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/compare.h"
#include "bson/path.h"

static bool value_contains(const DpValue *a, const DpValue *b);
static bool document_contains(const DpValue *a, const DpValue *b);
static bool array_contains(const DpValue *a, const DpValue *b);
static bool array_contains_element(const DpValue *a, const DpValue *element);

/*
 * bson @> bson: whether the left document contains the right one.
 */
DP_FUNCTION(dp_bson_contains);
Datum
dp_bson_contains(PG_FUNCTION_ARGS)
{
	DpValue		a = dp_value_of_document(DP_GETARG_VARLENA(0));
	DpValue		b = dp_value_of_document(DP_GETARG_VARLENA(1));

	PG_RETURN_BOOL(document_contains(&a, &b));
}

/*
 * bson <@ bson
 */
DP_FUNCTION(dp_bson_contained);
Datum
dp_bson_contained(PG_FUNCTION_ARGS)
{
	DpValue		a = dp_value_of_document(DP_GETARG_VARLENA(0));
	DpValue		b = dp_value_of_document(DP_GETARG_VARLENA(1));

	PG_RETURN_BOOL(document_contains(&b, &a));
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
	DpValue		a = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	DpValue		b = dp_value_of_varlena(DP_GETARG_VARLENA(1));

	PG_RETURN_BOOL(operand_contains(&a, &b));
}

/*
 * bson_value <@ bson_value
 */
DP_FUNCTION(dp_bson_value_contained);
Datum
dp_bson_value_contained(PG_FUNCTION_ARGS)
{
	DpValue		a = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	DpValue		b = dp_value_of_varlena(DP_GETARG_VARLENA(1));

	PG_RETURN_BOOL(operand_contains(&b, &a));
}

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
	DpIter		iter;
	DpElement	element;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	dp_iter_init_value(&iter, b);
	while (dp_iter_next(&iter, &element))
	{
		DpValue		found;

		if (dp_field_find(a->data, a->len, element.name, element.namelen, &found) &&
			value_contains(&found, &element.value))
			continue;
		if (dp_field_find(b->data, b->len, element.name, element.namelen, &found) &&
			found.data == element.value.data)
			return false;
	}
	return true;
}

/*
 * Whether each element of b is contained in some element of a.
 */
static bool
array_contains(const DpValue *a, const DpValue *b)
{
	DpIter		iter;
	DpValue		element;

	check_stack_depth();
	dp_iter_init_value(&iter, b);
	while (dp_iter_next_value(&iter, &element))
		if (!array_contains_element(a, &element))
			return false;
	return true;
}

static bool
array_contains_element(const DpValue *a, const DpValue *element)
{
	DpIter		iter;
	DpValue		value;

	CHECK_FOR_INTERRUPTS();
	dp_iter_init_value(&iter, a);
	while (dp_iter_next_value(&iter, &value))
		if (value_contains(&value, element))
			return true;
	return false;
}
