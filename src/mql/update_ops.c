/*
 * update_ops.c
 *		The operators of updates that work on one field: $set, $unset, $inc and
 *		so on.  update_array.c has those for arrays.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/int.h"
#include "utils/timestamp.h"

#include "bson/compare.h"
#include "bson/number.h"
#include "mql/expression_node.h"
#include "mql/update_tree.h"

/* One of the steps of $bit */
typedef struct BitStep
{
	char op; /* '&', '|' or '^' */
	int64 operand;
} BitStep;

typedef struct BitSpec
{
	bool wide; /* some operand is an int64 */
	int n;
	BitStep steps[FLEXIBLE_ARRAY_MEMBER];
} BitSpec;

/* The value of $currentDate */
typedef enum ClockForm
{
	CLOCK_DATE,
	CLOCK_TIMESTAMP
} ClockForm;

static void set_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void operand_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value);
static void unset_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void rename_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void rename_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value);
static void number_compile(DpUpdateNode *leaf, const DpLocation *location);
static void inc_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void mul_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void mul_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value);
static void min_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void max_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void clock_compile(DpUpdateNode *leaf, const DpLocation *location);
static void clock_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void clock_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value);
static void bit_compile(DpUpdateNode *leaf, const DpLocation *location);
static void bit_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location);
static void bit_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value);

const DpUpdateOperator dp_update_operators[] = {
	{ "$set", UPDATE_CREATES, NULL, set_apply, operand_create },
	{ "$setOnInsert", UPDATE_CREATES | UPDATE_ON_INSERT, NULL, set_apply, operand_create },
	{ "$unset", UPDATE_LENIENT | UPDATE_REMOVES, NULL, unset_apply, NULL },
	{ "$rename", UPDATE_MOVES, NULL, rename_apply, rename_create },
	{ "$inc", UPDATE_CREATES, number_compile, inc_apply, operand_create },
	{ "$mul", UPDATE_CREATES, number_compile, mul_apply, mul_create },
	{ "$min", UPDATE_CREATES, NULL, min_apply, operand_create },
	{ "$max", UPDATE_CREATES, NULL, max_apply, operand_create },
	{ "$currentDate", UPDATE_CREATES, clock_compile, clock_apply, clock_create },
	{ "$bit", UPDATE_CREATES, bit_compile, bit_apply, bit_create },
	{ NULL, 0, NULL, NULL, NULL }
};

/* ---------------------------------------------------------------- $set, $unset, $rename */

/* $set: the operand takes the old value's place. */
static void
set_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	dp_update_put(s, location, &leaf->operand);
}

/* Where nothing is, the operand is put. */
static void
operand_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value)
{
	*value = leaf->operand;
}

/* An element of an array becomes null, so that the others keep their positions. */
static void
unset_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	static const uint8 nothing[1] = { 0 };
	DpValue null = { nothing, 0, DP_TYPE_NULL };

	if (location->in_array)
		dp_update_put(s, location, &null);
	else
		dp_update_remove(s, location);
}

/* The value that was found at the other path takes the old one's place. */
static void
rename_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	if (leaf->is_moved)
		dp_update_put(s, location, &leaf->moved);
}

/* Or is put where nothing is. */
static void
rename_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value)
{
	*value = leaf->moved;
}

/* ---------------------------------------------------------------- $min, $max */

/* The smaller one in the order of all values; the old one if they are equal. */
static void
min_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	if (dp_value_compare(&leaf->operand, &location->value) < 0)
		dp_update_put(s, location, &leaf->operand);
}

/* The greater one, likewise. */
static void
max_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	if (dp_value_compare(&leaf->operand, &location->value) > 0)
		dp_update_put(s, location, &leaf->operand);
}

/* ---------------------------------------------------------------- $inc, $mul */

/* Raises INVALID_PARAMETER_VALUE unless the operand is a number. */
static void
number_compile(DpUpdateNode *leaf, const DpLocation *location)
{
	if (!dp_type_is_number(leaf->operand.type))
		dp_bad_spec_type(location, "a number", &leaf->operand);
}

/* A number that is an integer. */
static int64
integer_of(const DpValue *v)
{
	return v->type == DP_TYPE_INT32 ? dp_get_int32(v->data) : dp_get_int64(v->data);
}

/* A number that is an integer or a double, as a double. */
static double
double_of(const DpValue *v)
{
	return v->type == DP_TYPE_DOUBLE ? dp_get_double(v->data) : (double) integer_of(v);
}

/*
 * The sum or the product of two numbers.  The result is of the wider type of
 * the two, decimals winning over doubles and these over integers; an int32 that
 * overflows becomes an int64, and an int64 that does is an error.  bytes, of 16
 * bytes, is where the result is put.
 */
static void
calculate(const DpUpdateNode *leaf, bool multiply, const DpValue *a, const DpValue *b, uint8 *bytes,
		  DpValue *result)
{
	result->data = bytes;
	if (a->type == DP_TYPE_DECIMAL128 || b->type == DP_TYPE_DECIMAL128)
	{
		uint8 x[DP_DECIMAL128_SIZE];
		uint8 y[DP_DECIMAL128_SIZE];

		dp_number_to_decimal(a, x);
		dp_number_to_decimal(b, y);
		dp_decimal_combine(multiply ? DP_DECIMAL_MULTIPLY : DP_DECIMAL_ADD, x, y, bytes);
		result->type = DP_TYPE_DECIMAL128;
		result->len = DP_DECIMAL128_SIZE;
	}
	else if (a->type == DP_TYPE_DOUBLE || b->type == DP_TYPE_DOUBLE)
	{
		double x = double_of(a);
		double y = double_of(b);

		dp_put_double(bytes, multiply ? x * y : x + y);
		result->type = DP_TYPE_DOUBLE;
		result->len = 8;
	}
	else
	{
		int64 n;

		if (multiply ? pg_mul_s64_overflow(integer_of(a), integer_of(b), &n)
					 : pg_add_s64_overflow(integer_of(a), integer_of(b), &n))
			ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
							errmsg("cannot apply %s to \"%s\": the result is out of range",
								   leaf->op->name, leaf->path),
							errdetail("The result does not fit into an int64.")));
		if (a->type == DP_TYPE_INT32 && b->type == DP_TYPE_INT32 && n >= PG_INT32_MIN &&
			n <= PG_INT32_MAX)
		{
			dp_put_int32(bytes, (int32) n);
			result->type = DP_TYPE_INT32;
			result->len = 4;
		}
		else
		{
			dp_put_int64(bytes, n);
			result->type = DP_TYPE_INT64;
			result->len = 8;
		}
	}
}

/*
 * The sum or the product takes the old value's place, unless it equals it.  Raises
 * DATATYPE_MISMATCH if that is no number.
 */
static void
calculate_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location,
				bool multiply)
{
	uint8 bytes[DP_DECIMAL128_SIZE];
	DpValue result;

	if (!dp_type_is_number(location->value.type))
		dp_update_leaf_error(leaf, &location->value, "a number");
	calculate(leaf, multiply, &location->value, &leaf->operand, bytes, &result);
	if (result.type != location->value.type || dp_value_compare(&result, &location->value) != 0)
		dp_update_put(s, location, &result);
}

/* $inc */
static void
inc_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	calculate_apply(s, leaf, location, false);
}

/* $mul */
static void
mul_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	calculate_apply(s, leaf, location, true);
}

/* Nothing times a number is zero of the number's type. */
static void
mul_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value)
{
	uint8 *bytes = palloc0(DP_DECIMAL128_SIZE);

	value->type = leaf->operand.type;
	value->len = leaf->operand.len;
	value->data = bytes;
	if (value->type == DP_TYPE_DECIMAL128 && !dp_decimal128_from_text("0", 1, bytes))
		elog(ERROR, "no decimal zero");
}

/* ---------------------------------------------------------------- $currentDate */

/* true, {$type: "date"} or {$type: "timestamp"} */
static void
clock_compile(DpUpdateNode *leaf, const DpLocation *location)
{
	ClockForm *form = palloc(sizeof(ClockForm));
	DpIter iter;
	DpElement element;

	if (leaf->immutable)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("$currentDate is not allowed here, because the result must not "
							   "depend on the time"),
						errdetail("At path \"%s\".", dp_location_text(location))));
	*form = CLOCK_DATE;
	leaf->extra = form;
	if (leaf->operand.type == DP_TYPE_BOOL)
		return;
	if (leaf->operand.type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a boolean or a document with $type", &leaf->operand);
	dp_iter_init_value(&iter, &leaf->operand);
	if (!dp_iter_next(&iter, &element))
		dp_bad_spec(location, "$currentDate needs a $type");
	do
	{
		DpLocation inner = dp_location_field(location, &element);
		DpValue name = element.value;

		if (strcmp(element.name, "$type") != 0)
		{
			if (element.name[0] == '$')
				dp_unknown_operator(&inner, "modifier of $currentDate", NULL);
			dp_bad_spec(&inner, "$currentDate knows only $type");
		}
		if (name.type == DP_TYPE_STRING && strcmp(DP_STRING_DATA(&name), "date") == 0)
			*form = CLOCK_DATE;
		else if (name.type == DP_TYPE_STRING && strcmp(DP_STRING_DATA(&name), "timestamp") == 0)
			*form = CLOCK_TIMESTAMP;
		else
			dp_bad_spec(&inner, "the $type of $currentDate is \"date\" or \"timestamp\"");
	} while (dp_iter_next(&iter, &element));
}

/* The time of the transaction, as now() gives it: the same for all rows of a statement. */
static void
clock_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value)
{
	uint8 *bytes = palloc(8);
	TimestampTz now = GetCurrentTransactionStartTimestamp();
	int64 us = now + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;

	if (*(ClockForm *) leaf->extra == CLOCK_DATE)
	{
		dp_put_int64(bytes, us / 1000);
		value->type = DP_TYPE_DATE;
	}
	else
	{
		/* the increment is the low half, the seconds are the high one */
		dp_put_int64(bytes, (int64) ((uint64) (us / USECS_PER_SEC) << 32 | 1));
		value->type = DP_TYPE_TIMESTAMP;
	}
	value->data = bytes;
	value->len = 8;
}

/* It takes the old value's place. */
static void
clock_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	DpValue value;

	clock_create(s, leaf, &value);
	dp_update_put(s, location, &value);
}

/* ---------------------------------------------------------------- $bit */

/* Whether a value has the bits of an integer. */
static bool
is_integer(const DpValue *v)
{
	return v->type == DP_TYPE_INT32 || v->type == DP_TYPE_INT64;
}

/* {and: 5}, {or: 5}, {xor: 5}, or several of them, one after the other */
static void
bit_compile(DpUpdateNode *leaf, const DpLocation *location)
{
	static const struct
	{
		const char *name;
		char op;
	} names[] = { { "and", '&' }, { "or", '|' }, { "xor", '^' } };
	BitSpec *spec;
	DpIter iter;
	DpElement element;

	if (leaf->operand.type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a document with and, or or xor", &leaf->operand);
	spec = palloc0(offsetof(BitSpec, steps) +
				   sizeof(BitStep) * Max(dp_array_count(leaf->operand.data, leaf->operand.len), 1));
	dp_iter_init_value(&iter, &leaf->operand);
	while (dp_iter_next(&iter, &element))
	{
		DpLocation inner = dp_location_field(location, &element);
		BitStep *step = &spec->steps[spec->n++];

		for (int i = 0; i < lengthof(names); i++)
			if (strcmp(element.name, names[i].name) == 0)
				step->op = names[i].op;
		if (step->op == '\0' && element.name[0] == '$')
			dp_unknown_operator(&inner, "operation of $bit", NULL);
		if (step->op == '\0')
			dp_bad_spec(&inner, "$bit knows and, or and xor, not \"%s\"", element.name);
		if (!is_integer(&element.value))
			dp_bad_spec_type(&inner, "an int or a long", &element.value);
		step->operand = integer_of(&element.value);
		if (element.value.type == DP_TYPE_INT64)
			spec->wide = true;
	}
	if (spec->n == 0)
		dp_bad_spec(location, "$bit needs and, or or xor");
	leaf->extra = spec;
}

/* The result for an old value of that many bits; bytes has room for 8. */
static void
bit_calculate(const BitSpec *spec, int64 n, bool wide, uint8 *bytes, DpValue *value)
{
	for (int i = 0; i < spec->n; i++)
		switch (spec->steps[i].op)
		{
			case '&':
				n &= spec->steps[i].operand;
				break;
			case '|':
				n |= spec->steps[i].operand;
				break;
			default:
				n ^= spec->steps[i].operand;
		}
	value->data = bytes;
	if (wide || spec->wide)
	{
		dp_put_int64(bytes, n);
		value->type = DP_TYPE_INT64;
		value->len = 8;
	}
	else
	{
		dp_put_int32(bytes, (int32) n);
		value->type = DP_TYPE_INT32;
		value->len = 4;
	}
}

/* The result takes the old value's place.  Raises DATATYPE_MISMATCH if that is no integer. */
static void
bit_apply(DpUpdateState *s, DpUpdateNode *leaf, const DpUpdateLocation *location)
{
	uint8 bytes[8];
	DpValue value;

	if (!is_integer(&location->value))
		dp_update_leaf_error(leaf, &location->value, "int or long");
	bit_calculate(leaf->extra, integer_of(&location->value), location->value.type == DP_TYPE_INT64,
				  bytes, &value);
	dp_update_put(s, location, &value);
}

/* Nothing counts as zero. */
static void
bit_create(DpUpdateState *s, DpUpdateNode *leaf, DpValue *value)
{
	bit_calculate(leaf->extra, 0, false, palloc(8), value);
}
