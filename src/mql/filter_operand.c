/*
 * filter_operand.c
 *		The operators that put a condition on a field, and what they take.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/compare.h"
#include "bson/number.h"
#include "mql/filter_compile.h"

/* The input of an operator's parser */
typedef struct FilterOperand
{
	const DpFilterPath *path;
	DpFilterOp op;
	const DpElement *field; /* the operator and its argument */
	const DpValue *spec;    /* the document in which it stands */
	const DpLocation *location;
} FilterOperand;

typedef void (*OperandParser)(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);

static void parse_compare(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_ne(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_in(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_nin(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_not(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_exists(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_type(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_mod(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_regex(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_options(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_all(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_elem_match(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_size(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_bits(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);
static void parse_nothing(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o);

static const struct
{
	const char *name;
	OperandParser parse;
	DpFilterOp op;
} operators[] = { { "$eq", parse_compare, FILTER_EQ },
				  { "$gt", parse_compare, FILTER_GT },
				  { "$gte", parse_compare, FILTER_GTE },
				  { "$lt", parse_compare, FILTER_LT },
				  { "$lte", parse_compare, FILTER_LTE },
				  { "$ne", parse_ne, FILTER_EQ },
				  { "$in", parse_in, FILTER_IN },
				  { "$nin", parse_nin, FILTER_IN },
				  { "$not", parse_not, FILTER_NOR },
				  { "$exists", parse_exists, FILTER_EXISTS },
				  { "$type", parse_type, FILTER_TYPE },
				  { "$mod", parse_mod, FILTER_MOD },
				  { "$regex", parse_regex, FILTER_REGEX },
				  { "$options", parse_options, FILTER_REGEX },
				  { "$all", parse_all, FILTER_AND },
				  { "$elemMatch", parse_elem_match, FILTER_ELEM_OBJECT },
				  { "$size", parse_size, FILTER_SIZE },
				  { "$bitsAllSet", parse_bits, FILTER_BITS_ALL_SET },
				  { "$bitsAnySet", parse_bits, FILTER_BITS_ANY_SET },
				  { "$bitsAllClear", parse_bits, FILTER_BITS_ALL_CLEAR },
				  { "$bitsAnyClear", parse_bits, FILTER_BITS_ANY_CLEAR },
				  { "$comment", parse_nothing, FILTER_TRUE } };

bool
dp_filter_is_reference_name(const char *name)
{
	return strcmp(name, "$ref") == 0 || strcmp(name, "$id") == 0 || strcmp(name, "$db") == 0;
}

bool
dp_filter_is_operators(const DpValue *value)
{
	DpIter iter;
	DpElement first;

	if (value->type != DP_TYPE_DOCUMENT)
		return false;
	dp_iter_init_value(&iter, value);
	return dp_iter_next(&iter, &first) && first.name[0] == '$' &&
		   !dp_filter_is_reference_name(first.name);
}

/*
 * A condition that the path equals a value.
 */
static void
add_equal(DpFilterNodes *nodes, const DpFilterPath *path, DpFilterOp op, const DpValue *value,
		  const DpLocation *location)
{
	DpFilterNode *node;

	if (value->type == DP_TYPE_UNDEFINED)
		dp_bad_spec(location, "nothing can be compared with undefined");
	node = dp_filter_add_node(nodes, op, path);
	node->value = *value;
	if (dp_type_is_number(value->type))
	{
		DpFilterNumber *number = &node->u.number;
		DpNumber n;
		uint8 buf[DP_EXACT_MAX_DIGITS];

		dp_number_from_value(&n, value, buf);
		number->is_integer = n.kind == DP_NUMBER_INTEGER;
		number->i = n.i;
		number->is_double =
			(n.kind == DP_NUMBER_DOUBLE && !isnan(n.d)) ||
			(number->is_integer && n.i >= -(INT64CONST(1) << 53) && n.i <= INT64CONST(1) << 53);
		number->d = number->is_integer ? (double) n.i : n.d;
	}
}

/*
 * A condition that a pattern is found at the path.
 */
static void
add_regex(DpFilterNodes *nodes, const DpFilterPath *path, const char *pattern, uint32 len,
		  const char *options, uint32 optlen, const DpLocation *location)
{
	DpFilterNode *node = dp_filter_add_node(nodes, FILTER_REGEX, path);
	DpLocationContext context;

	dp_location_push(&context, location);
	node->u.regex.regex = dp_regex_compile(pattern, len, options, optlen);
	dp_location_pop(&context);
	node->u.regex.pattern = pattern;
	node->u.regex.len = len;
	node->u.regex.options = options;
	node->u.regex.optlen = optlen;
}

static void
add_regex_value(DpFilterNodes *nodes, const DpFilterPath *path, const DpValue *value,
				const DpLocation *location)
{
	const char *pattern;
	const char *options;
	uint32 len;
	uint32 optlen;

	dp_regex_split(value, &pattern, &len, &options, &optlen);
	add_regex(nodes, path, pattern, len, options, optlen, location);
}

/* Adds that none of the given nodes, or not all of them, hold. */
static void
add_negation(DpFilterNodes *nodes, DpFilterNodes *negated)
{
	DpFilterNodes one = { 0 };

	dp_filter_add(&one, dp_filter_make_tree(FILTER_AND, negated));
	dp_filter_add(nodes, dp_filter_make_tree(FILTER_NOR, &one));
}

void
dp_filter_parse_predicate(DpFilterCompiler *c, DpFilterNodes *nodes, const DpFilterPath *path,
						  const DpValue *spec, const DpLocation *location)
{
	DpIter iter;
	DpElement field;

	check_stack_depth();
	if (spec->type == DP_TYPE_REGEX)
	{
		add_regex_value(nodes, path, spec, location);
		return;
	}
	if (!dp_filter_is_operators(spec))
	{
		add_equal(nodes, path, FILTER_EQ, spec, location);
		return;
	}
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &field))
	{
		DpLocation here = dp_location_field(location, &field);
		FilterOperand o = { path, FILTER_TRUE, &field, spec, &here };
		int i;

		for (i = 0; i < lengthof(operators); i++)
			if (strcmp(field.name, operators[i].name) == 0)
				break;
		if (i == lengthof(operators))
		{
			DpNearest nearest = { field.name, field.namelen };

			for (i = 0; i < lengthof(operators); i++)
				dp_nearest_try(&nearest, operators[i].name);
			dp_unknown_operator(&here, "filter operator", &nearest);
		}
		o.op = operators[i].op;
		operators[i].parse(c, nodes, &o);
	}
}

/* ---------------------------------------------------------------- operators */

/*
 * $eq, $lt, $lte, $gt, $gte
 */
static void
parse_compare(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	if (o->field->value.type == DP_TYPE_REGEX && o->op != FILTER_EQ)
		dp_bad_spec(o->location, "\"%s\" cannot take a regular expression", o->field->name);
	add_equal(nodes, o->path, o->op, &o->field->value, o->location);
}

static void
parse_ne(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpFilterNodes negated = { 0 };

	if (o->field->value.type == DP_TYPE_REGEX)
		dp_bad_spec(o->location, "\"%s\" cannot take a regular expression", o->field->name);
	add_equal(&negated, o->path, FILTER_EQ, &o->field->value, o->location);
	add_negation(nodes, &negated);
}

static void
parse_in(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpFilterNode *node;
	DpFilterIn *in;
	DpIter iter;
	DpValue value;
	uint32 index = 0;
	int n = 0;

	if (o->field->value.type != DP_TYPE_ARRAY)
		dp_bad_spec_type(o->location, "an array", &o->field->value);
	node = dp_filter_add_node(nodes, FILTER_IN, o->path);
	in = &node->u.in;
	n = dp_document_count(o->field->value.data, o->field->value.len);
	in->values = palloc(Max(n, 1) * sizeof(DpValue));
	in->regexes = palloc(Max(n, 1) * sizeof(DpRegex *));
	in->regex_values = palloc(Max(n, 1) * sizeof(DpValue));
	dp_iter_init_value(&iter, &o->field->value);
	while (dp_iter_next_value(&iter, &value))
	{
		DpLocation here = dp_location_index(o->location, index++);

		if (dp_filter_is_operators(&value))
			dp_bad_spec(&here, "operators cannot stand inside \"%s\"", o->field->name);
		if (value.type == DP_TYPE_UNDEFINED)
			dp_bad_spec(&here, "nothing can be compared with undefined");
		if (value.type == DP_TYPE_REGEX)
		{
			DpLocationContext context;

			dp_location_push(&context, &here);
			in->regexes[in->nregexes] = dp_regex_compile_value(&value);
			dp_location_pop(&context);
			in->regex_values[in->nregexes++] = value;
			continue;
		}
		if (value.type == DP_TYPE_NULL)
			in->has_null = true;
		in->values[in->nvalues++] = value;
	}
	dp_values_sort(in->values, in->nvalues);
}

static void
parse_nin(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpFilterNodes negated = { 0 };

	parse_in(c, &negated, o);
	add_negation(nodes, &negated);
}

static void
parse_not(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpFilterNodes negated = { 0 };
	const DpValue *value = &o->field->value;

	if (value->type == DP_TYPE_REGEX)
		add_regex_value(&negated, o->path, value, o->location);
	else if (dp_filter_is_operators(value))
		dp_filter_parse_predicate(c, &negated, o->path, value, o->location);
	else
		dp_bad_spec(o->location, "\"$not\" needs operators or a regular expression");
	add_negation(nodes, &negated);
}

static void
parse_exists(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpFilterNodes negated = { 0 };

	if (dp_value_is_true(&o->field->value))
		dp_filter_add_node(nodes, FILTER_EXISTS, o->path);
	else
	{
		dp_filter_add_node(&negated, FILTER_EXISTS, o->path);
		add_negation(nodes, &negated);
	}
}

/* Adds the type that a value names to the set. */
static void
add_type(DpTypeSet *types, const DpValue *value, const DpLocation *location)
{
	int64 code;

	if (value->type == DP_TYPE_STRING)
	{
		if (!dp_type_set_add_name(types, DP_STRING_DATA(value), DP_STRING_LEN(value)))
			dp_bad_spec(location, "unknown type \"%.*s\"", (int) DP_STRING_LEN(value),
						DP_STRING_DATA(value));
	}
	else if (dp_value_to_whole(value, &code))
	{
		if (!dp_type_set_add_code(types, code))
			dp_bad_spec(location, "unknown type %lld", (long long) code);
	}
	else
		dp_bad_spec(location, "a type is a name or a number");
}

static void
parse_type(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpFilterNode *node = dp_filter_add_node(nodes, FILTER_TYPE, o->path);
	DpIter iter;
	DpValue value;
	uint32 index = 0;

	if (o->field->value.type != DP_TYPE_ARRAY)
	{
		add_type(&node->u.types, &o->field->value, o->location);
		return;
	}
	dp_iter_init_value(&iter, &o->field->value);
	while (dp_iter_next_value(&iter, &value))
	{
		DpLocation here = dp_location_index(o->location, index++);

		add_type(&node->u.types, &value, &here);
	}
	if (index == 0)
		dp_bad_spec(o->location, "\"$type\" needs at least one type");
}

static void
parse_mod(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpFilterNode *node = dp_filter_add_node(nodes, FILTER_MOD, o->path);
	DpIter iter;
	DpValue divisor;
	DpValue remainder;

	if (o->field->value.type != DP_TYPE_ARRAY ||
		dp_document_count(o->field->value.data, o->field->value.len) != 2)
		dp_bad_spec(o->location, "\"$mod\" needs an array of divisor and remainder");
	dp_iter_init_value(&iter, &o->field->value);
	dp_iter_next_value(&iter, &divisor);
	dp_iter_next_value(&iter, &remainder);
	if (!dp_value_truncate(&divisor, &node->u.mod.divisor))
		dp_bad_spec(o->location, "the divisor of \"$mod\" must be a number in the range of a long");
	if (!dp_value_truncate(&remainder, &node->u.mod.remainder))
		dp_bad_spec(o->location,
					"the remainder of \"$mod\" must be a number in the range of a long");
	if (node->u.mod.divisor == 0)
		dp_bad_spec(o->location, "the divisor of \"$mod\" is 0");
}

/* $regex, with its $options. */
static void
parse_regex(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	const DpValue *value = &o->field->value;
	const char *pattern;
	const char *flags = "";
	uint32 len;
	uint32 flagslen = 0;
	DpValue options;

	if (value->type == DP_TYPE_REGEX)
		dp_regex_split(value, &pattern, &len, &flags, &flagslen);
	else if (value->type == DP_TYPE_STRING)
	{
		pattern = DP_STRING_DATA(value);
		len = DP_STRING_LEN(value);
	}
	else
		dp_bad_spec_type(o->location, "a string or a regular expression", value);
	if (dp_document_find(o->spec->data, o->spec->len, "$options", 8, &options))
	{
		if (options.type != DP_TYPE_STRING)
			dp_bad_spec(o->location, "\"$options\" needs a string, not %s",
						dp_type_name(options.type));
		if (flagslen > 0)
			dp_bad_spec(o->location, "options are set in \"$regex\" and in \"$options\"");
		flags = DP_STRING_DATA(&options);
		flagslen = DP_STRING_LEN(&options);
	}
	add_regex(nodes, o->path, pattern, len, flags, flagslen, o->location);
}

/* $options: $regex has read it. */
static void
parse_options(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpValue regex;

	if (!dp_document_find(o->spec->data, o->spec->len, "$regex", 6, &regex))
		dp_bad_spec(o->location, "\"$options\" needs a \"$regex\" beside it");
}

/* The argument of $elemMatch, if the value is a document that begins with it. */
static bool
is_elem_match(const DpValue *value, DpElement *field)
{
	DpIter iter;

	if (value->type != DP_TYPE_DOCUMENT)
		return false;
	dp_iter_init_value(&iter, value);
	return dp_iter_next(&iter, field) && strcmp(field->name, "$elemMatch") == 0;
}

/* $all: some element satisfies each of the values, patterns or $elemMatch. */
static void
parse_all(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpIter iter;
	DpValue value;
	DpElement elem;
	uint32 index = 0;
	bool elems = false;

	if (o->field->value.type != DP_TYPE_ARRAY)
		dp_bad_spec_type(o->location, "an array", &o->field->value);
	dp_iter_init_value(&iter, &o->field->value);
	while (dp_iter_next_value(&iter, &value))
	{
		DpLocation here = dp_location_index(o->location, index);
		bool is_elem = is_elem_match(&value, &elem);

		if (index++ == 0)
			elems = is_elem;
		if (is_elem != elems)
			dp_bad_spec(&here, "\"$all\" takes either values or \"$elemMatch\", not both");
		if (is_elem)
		{
			DpLocation inner = dp_location_field(&here, &elem);

			if (dp_document_count(value.data, value.len) != 1)
				dp_bad_spec(&here, "\"$elemMatch\" in \"$all\" stands alone");
			dp_filter_add(nodes, dp_filter_parse_element(c, o->path, &elem.value, &inner));
		}
		else if (dp_filter_is_operators(&value))
			dp_bad_spec(&here, "operators other than \"$elemMatch\" cannot stand inside \"$all\"");
		else if (value.type == DP_TYPE_REGEX)
			add_regex_value(nodes, o->path, &value, &here);
		else
			add_equal(nodes, o->path, FILTER_EQ, &value, &here);
	}
	if (index == 0)
		dp_filter_add_node(nodes, FILTER_FALSE, NULL);
}

static void
parse_elem_match(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	dp_filter_add(nodes, dp_filter_parse_element(c, o->path, &o->field->value, o->location));
}

static void
parse_size(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpFilterNode *node = dp_filter_add_node(nodes, FILTER_SIZE, o->path);

	if (!dp_value_to_whole(&o->field->value, &node->u.size) || node->u.size < 0 ||
		node->u.size > PG_INT32_MAX)
		dp_bad_spec(o->location, "\"$size\" needs a whole number that is not negative");
}

/* Adds a position to those of a bit operator. */
static void
add_position(DpFilterBits *bits, uint32 position)
{
	bits->positions[bits->npositions++] = position;
	if (position < 64)
		bits->mask |= UINT64CONST(1) << position;
	else
		bits->beyond = true;
}

/*
 * The bit operators: a mask as a number or as binary data, or positions.
 */
static void
parse_bits(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
	DpFilterNode *node = dp_filter_add_node(nodes, o->op, o->path);
	DpFilterBits *bits = &node->u.bits;
	const DpValue *value = &o->field->value;
	int64 number;

	if (value->type == DP_TYPE_ARRAY)
	{
		DpIter iter;
		DpValue position;
		uint32 index = 0;

		bits->positions =
			palloc(Max(1, dp_document_count(value->data, value->len)) * sizeof(uint32));
		dp_iter_init_value(&iter, value);
		while (dp_iter_next_value(&iter, &position))
		{
			DpLocation here = dp_location_index(o->location, index++);

			if (!dp_value_to_whole(&position, &number) || number < 0 || number > PG_INT32_MAX)
				dp_bad_spec(&here,
							"a position of a bit must be a whole number from 0 to 2147483647");
			add_position(bits, (uint32) number);
		}
	}
	else if (value->type == DP_TYPE_BINARY)
	{
		uint32 nbits = (value->len - 5) * 8;

		bits->positions = palloc(Max(1, nbits) * sizeof(uint32));
		for (uint32 i = 0; i < nbits; i++)
			if (value->data[5 + i / 8] >> (i % 8) & 1)
				add_position(bits, i);
	}
	else if (dp_value_to_whole(value, &number) && number >= 0)
	{
		bits->positions = palloc(64 * sizeof(uint32));
		for (uint32 i = 0; i < 63; i++)
			if (number >> i & 1)
				add_position(bits, i);
	}
	else
		dp_bad_spec(
			o->location,
			"\"%s\" needs a whole number that is not negative, binary data or an array of positions",
			o->field->name);
}

static void
parse_nothing(DpFilterCompiler *c, DpFilterNodes *nodes, const FilterOperand *o)
{
}
