/*
 * filter_test.c
 *		Conditions on single values: $eq, $in, $type and the others for one value, or for a
 *		missing one.
 */
#include "postgres.h"

#include "common/int.h"

#include "bson/collation.h"
#include "bson/compare.h"
#include "bson/number.h"
#include "mql/filter_node.h"

static bool test_compare(const DpFilterNode *node, const DpValue *value);
static bool test_other_class(const DpFilterNode *node, uint8 class);
static bool test_number(const DpFilterNode *node, const DpValue *value);
static inline bool test_result(DpFilterOp op, int result);
static bool value_is_nan(const DpValue *value);
static bool test_in(const DpFilterNode *node, const DpValue *value);
static bool test_regex(const DpFilterNode *node, const DpValue *value);
static bool test_mod(const DpFilterNode *node, const DpValue *value);
static bool
regex_is(const DpValue *value, const char *pattern, uint32 len, const char *options, uint32 optlen);
static bool filter_test_bits(const DpFilterNode *node, const DpValue *value);

bool
dp_filter_test(const DpFilterNode *node, const DpValue *value)
{
	switch (node->op)
	{
		case FILTER_EQ:
			/* most often a string against a string */
			if (value != NULL && value->type == DP_TYPE_STRING &&
				node->value.type == DP_TYPE_STRING && dp_collation == NULL)
				return value->len == node->value.len &&
					   memcmp(value->data, node->value.data, value->len) == 0;
			return test_compare(node, value);
		case FILTER_LT:
		case FILTER_LTE:
		case FILTER_GT:
		case FILTER_GTE:
			return test_compare(node, value);
		case FILTER_IN:
			return test_in(node, value);
		case FILTER_REGEX:
			return value != NULL && test_regex(node, value);
		case FILTER_EXISTS:
			return value != NULL;
		case FILTER_TYPE:
			return value != NULL && dp_type_set_has(&node->u.types, value->type);
		case FILTER_MOD:
			return value != NULL && test_mod(node, value);
		case FILTER_BITS_ALL_SET:
		case FILTER_BITS_ANY_SET:
		case FILTER_BITS_ALL_CLEAR:
		case FILTER_BITS_ANY_CLEAR:
			return value != NULL && filter_test_bits(node, value);
		case FILTER_SIZE:
			return value != NULL && value->type == DP_TYPE_ARRAY &&
				   dp_array_count(value->data, value->len) == node->u.size;
		case FILTER_ELEM_OBJECT:
		case FILTER_ELEM_VALUE:
		{
			DpIter iter;
			DpValue element;

			if (value == NULL || value->type != DP_TYPE_ARRAY)
				return false;
			dp_iter_init_value(&iter, value);
			while (dp_iter_next_value(&iter, &element))
				if (dp_filter_test_element(node, &element))
					return true;
			return false;
		}
		default:
			elog(ERROR, "operator %d is no condition", node->op);
	}
	return false;
}

/*
 * $eq, $lt, $lte, $gt and $gte: only values of the same class compare, except
 * with MinKey and MaxKey.  Missing and undefined are as null.
 */
static bool
test_compare(const DpFilterNode *node, const DpValue *value)
{
	uint8 class;

	if (value == NULL)
		return test_other_class(node, DP_CLASS_UNDEFINED);
	class = dp_type_class[value->type];
	if (class != dp_type_class[node->value.type])
		return test_other_class(node, class);
	if (class == DP_CLASS_NUMBER)
		return test_number(node, value);
	if (node->op == FILTER_EQ && class == DP_CLASS_DOCUMENT &&
		dp_value_identical(value, &node->value))
		return true;
	return test_result(node->op, dp_value_compare(value, &node->value));
}

/*
 * The same for a value of another class than the operand's.
 */
static bool
test_other_class(const DpFilterNode *node, uint8 class)
{
	switch (node->value.type)
	{
		case DP_TYPE_NULL:
			return class == DP_CLASS_UNDEFINED &&
				   (node->op == FILTER_EQ || node->op == FILTER_LTE || node->op == FILTER_GTE);
		case DP_TYPE_MINKEY:
			return node->op == FILTER_GT || node->op == FILTER_GTE;
		case DP_TYPE_MAXKEY:
			return node->op == FILTER_LT || node->op == FILTER_LTE;
		default:
			return false;
	}
}

/*
 * The same for two numbers.  NaN equals NaN and has no order.
 */
static bool
test_number(const DpFilterNode *node, const DpValue *value)
{
	const DpFilterNumber *number = &node->u.number;
	int result;

	switch (value->type)
	{
		case DP_TYPE_INT32:
			if (!number->is_integer)
				break;
			return test_result(node->op, dp_int64_compare(dp_get_int32(value->data), number->i));
		case DP_TYPE_INT64:
			if (!number->is_integer)
				break;
			return test_result(node->op, dp_int64_compare(dp_get_int64(value->data), number->i));
		case DP_TYPE_DOUBLE:
		{
			double d = dp_get_double(value->data);

			if (!number->is_double || isnan(d))
				break;
			return test_result(node->op, (d > number->d) - (d < number->d));
		}
	}
	result = dp_number_compare(value, &node->value);
	if (result != 0 && (value_is_nan(value) || value_is_nan(&node->value)))
		return false;
	return test_result(node->op, result);
}

static bool
value_is_nan(const DpValue *value)
{
	return (value->type == DP_TYPE_DOUBLE || value->type == DP_TYPE_DECIMAL128) &&
		   isnan(dp_number_approximate(value));
}

static inline bool
test_result(DpFilterOp op, int result)
{
	switch (op)
	{
		case FILTER_LT:
			return result < 0;
		case FILTER_LTE:
			return result <= 0;
		case FILTER_GT:
			return result > 0;
		case FILTER_GTE:
			return result >= 0;
		default:
			return result == 0;
	}
}

/*
 * $in: equal to one of the values, or found by one of the patterns.
 */
static bool
test_in(const DpFilterNode *node, const DpValue *value)
{
	const DpFilterIn *in = &node->u.in;
	int low = 0;
	int high = in->nvalues;

	if (value == NULL)
		return in->has_null;
	if (value->type == DP_TYPE_UNDEFINED && in->has_null)
		return true;
	while (low < high)
	{
		int middle = (low + high) / 2;
		int result = dp_value_compare(value, &in->values[middle]);

		if (result == 0)
			return true;
		if (result < 0)
			high = middle;
		else
			low = middle + 1;
	}
	for (int i = 0; i < in->nregexes; i++)
	{
		if (value->type == DP_TYPE_STRING || value->type == DP_TYPE_SYMBOL)
		{
			if (dp_regex_match(in->regexes[i], DP_STRING_DATA(value), DP_STRING_LEN(value)))
				return true;
		}
		else if (value->type == DP_TYPE_REGEX && dp_value_compare(value, &in->regex_values[i]) == 0)
			return true;
	}
	return false;
}

/*
 * $regex: a string in which the pattern is found, or the pattern itself.
 */
static bool
test_regex(const DpFilterNode *node, const DpValue *value)
{
	if (value->type == DP_TYPE_STRING || value->type == DP_TYPE_SYMBOL)
		return dp_regex_match(node->u.regex.regex, DP_STRING_DATA(value), DP_STRING_LEN(value));
	return value->type == DP_TYPE_REGEX && regex_is(value, node->u.regex.pattern, node->u.regex.len,
													node->u.regex.options, node->u.regex.optlen);
}

/* Whether a regular expression has this pattern and these options. */
static bool
regex_is(const DpValue *value, const char *pattern, uint32 len, const char *options, uint32 optlen)
{
	const char *p;
	const char *o;
	uint32 plen;
	uint32 olen;

	dp_regex_split(value, &p, &plen, &o, &olen);
	return plen == len && olen == optlen && memcmp(p, pattern, len) == 0 &&
		   memcmp(o, options, optlen) == 0;
}

/*
 * $mod, of numbers whose whole part is an int64.
 */
static bool
test_mod(const DpFilterNode *node, const DpValue *value)
{
	int64 dividend;

	if (!dp_value_truncate(value, &dividend))
		return false;
	/* the smallest integer divided by -1 overflows */
	if (node->u.mod.divisor == -1)
		return node->u.mod.remainder == 0;
	return dividend % node->u.mod.divisor == node->u.mod.remainder;
}

/*
 * The bit operators, on whole numbers (two's complement, the sign going on for
 * ever) and on binary data (the first byte has the lowest bits; behind the last
 * all are clear).
 */
static bool
filter_test_bits(const DpFilterNode *node, const DpValue *value)
{
	const DpFilterBits *bits = &node->u.bits;
	bool set = node->op == FILTER_BITS_ALL_SET || node->op == FILTER_BITS_ANY_SET;
	bool any = node->op == FILTER_BITS_ANY_SET || node->op == FILTER_BITS_ANY_CLEAR;
	const uint8 *bytes = NULL;
	uint32 nbytes = 0;
	int64 number = 0;

	if (value->type == DP_TYPE_BINARY)
	{
		bytes = value->data + 5;
		nbytes = value->len - 5;
	}
	else
	{
		if (!dp_value_to_whole(value, &number))
			return false;
		if (!bits->beyond)
		{
			uint64 there = set ? (uint64) number : ~(uint64) number;

			return any ? (there & bits->mask) != 0 : (there & bits->mask) == bits->mask;
		}
	}
	for (int i = 0; i < bits->npositions; i++)
	{
		uint32 position = bits->positions[i];
		bool bit;

		if (bytes != NULL)
			bit = position / 8 < nbytes && (bytes[position / 8] >> (position % 8) & 1);
		else
			bit = (number >> Min(position, 63)) & 1;
		if (any && bit == set)
			return true;
		if (!any && bit != set)
			return false;
	}
	return !any;
}
