/*
 * error.c
 *		Errors of the query languages, and the readings of values that their
 *		operators share.
 */
#include "postgres.h"

#include "common/int.h"

#include "bson/number.h"
#include "mql/error.h"

static void place_append(StringInfo out, const DpPlace *place);
static void place_callback(void *arg);
static bool exact_truncate(const DpExact *exact, int64 *result);

/*
 * The parts from the outermost to the innermost.
 */
static void
place_append(StringInfo out, const DpPlace *place)
{
	if (place->up != NULL)
	{
		place_append(out, place->up);
		if (out->len > 0)
			appendStringInfoChar(out, '.');
	}
	if (place->name != NULL)
		appendBinaryStringInfo(out, place->name, place->namelen);
	else
		appendStringInfo(out, "%u", place->index);
}

char *
dp_place_text(const DpPlace *place)
{
	StringInfoData out;
	char *text;

	initStringInfo(&out);
	if (place != NULL)
		place_append(&out, place);
	text = pstrdup(out.data);
	pfree(out.data);
	return text;
}

static void
place_callback(void *arg)
{
	const DpPlaceContext *context = arg;

	if (context->place != NULL)
		errdetail("At path \"%s\".", dp_place_text(context->place));
}

void
dp_place_push(DpPlaceContext *context, const DpPlace *place)
{
	context->place = place;
	context->callback.callback = place_callback;
	context->callback.arg = context;
	context->callback.previous = error_context_stack;
	error_context_stack = &context->callback;
}

void
dp_place_pop(DpPlaceContext *context)
{
	error_context_stack = context->callback.previous;
}

void
dp_unknown_operator(const DpPlace *place, const char *what, const DpNearest *nearest)
{
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("unknown %s \"%.*s\"", what, (int) place->namelen, place->name),
					errdetail("At path \"%s\".", dp_place_text(place)),
					nearest != NULL ? dp_nearest_hint(nearest) : 0));
}

void
dp_bad_spec(const DpPlace *place, const char *fmt, ...)
{
	StringInfoData message;

	initStringInfo(&message);
	for (;;)
	{
		va_list args;
		int needed;

		va_start(args, fmt);
		needed = appendStringInfoVA(&message, fmt, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&message, needed);
	}
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg_internal("%s", message.data),
					place ? errdetail("At path \"%s\".", dp_place_text(place)) : 0));
}

void
dp_bad_spec_type(const DpPlace *place, const char *expected, const DpValue *found)
{
	if (place != NULL && place->name != NULL)
		dp_bad_spec(place, "\"%.*s\" needs %s, not %s", (int) place->namelen, place->name, expected,
					dp_type_name(found->type));
	dp_bad_spec(place, "expected %s, not %s", expected, dp_type_name(found->type));
}

bool
dp_value_to_whole(const DpValue *value, int64 *result)
{
	DpNumber number;
	uint8 buf[DP_EXACT_MAX_DIGITS];

	if (value->type == DP_TYPE_INT32)
	{
		*result = dp_get_int32(value->data);
		return true;
	}
	if (!dp_type_is_number(value->type))
		return false;
	dp_number_from_value(&number, value, buf);
	if (number.kind != DP_NUMBER_INTEGER)
		return false;
	*result = number.i;
	return true;
}

/*
 * The digits before the point, if they fit.
 */
static bool
exact_truncate(const DpExact *exact, int64 *result)
{
	int64 n = 0;

	if (exact->rank != 0 || exact->point > 19)
		return false;
	for (int i = 0; i < exact->point; i++)
	{
		int digit = i < exact->ndigits ? exact->digits[i] : 0;

		/* counted down, where there is room for one more */
		if (pg_mul_s64_overflow(n, 10, &n) || pg_sub_s64_overflow(n, digit, &n))
			return false;
	}
	if (!exact->negative && n == PG_INT64_MIN)
		return false;
	*result = exact->negative ? n : -n;
	return true;
}

bool
dp_value_truncate(const DpValue *value, int64 *result)
{
	switch (value->type)
	{
		case DP_TYPE_INT32:
			*result = dp_get_int32(value->data);
			return true;
		case DP_TYPE_INT64:
			*result = dp_get_int64(value->data);
			return true;
		case DP_TYPE_DOUBLE:
		{
			double d = trunc(dp_get_double(value->data));

			/* NaN is refused too */
			if (!(d >= (double) PG_INT64_MIN && d < -(double) PG_INT64_MIN))
				return false;
			*result = (int64) d;
			return true;
		}
		case DP_TYPE_DECIMAL128:
		{
			DpExact exact;
			uint8 buf[DP_EXACT_MAX_DIGITS];

			dp_exact_from_value(value, &exact, buf);
			return exact_truncate(&exact, result);
		}
		default:
			return false;
	}
}

bool
dp_value_is_true(const DpValue *value)
{
	int64 whole;

	switch (value->type)
	{
		case DP_TYPE_BOOL:
			return value->data[0] != 0;
		case DP_TYPE_NULL:
		case DP_TYPE_UNDEFINED:
			return false;
		case DP_TYPE_INT32:
			return dp_get_int32(value->data) != 0;
		case DP_TYPE_INT64:
			return dp_get_int64(value->data) != 0;
		case DP_TYPE_DOUBLE:
			return dp_get_double(value->data) != 0;
		case DP_TYPE_DECIMAL128:
			return !(dp_value_to_whole(value, &whole) && whole == 0);
		default:
			return true;
	}
}
