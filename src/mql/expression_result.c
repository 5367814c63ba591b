/*
 * expression_result.c
 *		Results of expressions: values, in the current memory context, and the memory of loops.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/limits.h"
#include "mql/expression_node.h"

/* Values on the way may always have so many bytes, and four times the size of a document */
#define MAX_VALUE_SIZE (64 * 1024 * 1024)

/* The memory that the first iterations of a loop may leave allocated */
#define LOOP_BYTES (1024 * 1024)

bool
dp_result_null(DpValue *result)
{
	result->type = DP_TYPE_NULL;
	result->data = (const uint8 *) "";
	result->len = 0;
	return true;
}

bool
dp_result_bool(DpValue *result, bool b)
{
	result->type = DP_TYPE_BOOL;
	result->data = (const uint8 *) (b ? "\1" : "\0");
	result->len = 1;
	return true;
}

/* Room for the bytes of a result. */
static uint8 *
result_room(DpValue *result, uint8 type, uint32 len)
{
	uint8 *p = palloc(len);

	result->type = type;
	result->data = p;
	result->len = len;
	return p;
}

bool
dp_result_int32(DpValue *result, int32 i)
{
	dp_put_int32(result_room(result, DP_TYPE_INT32, 4), i);
	return true;
}

bool
dp_result_int64(DpValue *result, int64 i)
{
	dp_put_int64(result_room(result, DP_TYPE_INT64, 8), i);
	return true;
}

bool
dp_result_integer(DpValue *result, int64 i)
{
	if (i >= PG_INT32_MIN && i <= PG_INT32_MAX)
		return dp_result_int32(result, (int32) i);
	return dp_result_int64(result, i);
}

bool
dp_result_double(DpValue *result, double d)
{
	dp_put_double(result_room(result, DP_TYPE_DOUBLE, 8), d);
	return true;
}

bool
dp_result_date(DpValue *result, int64 ms)
{
	dp_put_int64(result_room(result, DP_TYPE_DATE, 8), ms);
	return true;
}

bool
dp_result_decimal(DpValue *result, const uint8 *d)
{
	memcpy(result_room(result, DP_TYPE_DECIMAL128, DP_DECIMAL128_SIZE), d, DP_DECIMAL128_SIZE);
	return true;
}

static inline Size
max_size(void)
{
	return Max((Size) MAX_VALUE_SIZE, (Size) dp_max_document_size * 4);
}

/*
 * Raises PROGRAM_LIMIT_EXCEEDED for a value on the way that is far larger than
 * any that may come out: a loop that doubles a value stops here and not when
 * memory is used up.
 */
void
dp_result_check_size(Size len)
{
	if (unlikely(len > max_size()))
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("a value in an expression is too large"),
						errdetail("The value has %zu bytes.", len)));
}

void
dp_result_builder(DpBuilder *b, Size expected)
{
	dp_builder_init_value(b, expected);
	dp_builder_limit(b, max_size());
}

char *
dp_result_string_room(DpValue *result, uint32 len)
{
	uint8 *p;

	dp_result_check_size(len);
	p = result_room(result, DP_TYPE_STRING, len + 5);

	dp_put_int32(p, (int32) (len + 1));
	p[4 + len] = 0;
	return (char *) p + 4;
}

bool
dp_result_string(DpValue *result, const char *s, uint32 len)
{
	memcpy(dp_result_string_room(result, len), s, len);
	return true;
}

bool
dp_result_built(DpValue *result, const DpBuilder *b, uint8 type)
{
	*result = dp_builder_view(b, type);
	dp_result_check_size(result->len);
	return true;
}

int
dp_array_values(const DpValue *array, DpValue **values)
{
	int n = dp_array_count(array->data, array->len);
	DpIter iter;
	int i = 0;

	*values = palloc(sizeof(DpValue) * Max(n, 1));
	dp_iter_init_value(&iter, array);
	while (i < n && dp_iter_next_value(&iter, &(*values)[i]))
		i++;
	return i;
}

/* ---------------------------------------------------------------- loops */

void
dp_loop_begin(DpLoop *loop)
{
	loop->rounds = NULL;
	loop->outside = CurrentMemoryContext;
	loop->before = MemoryContextMemAllocated(CurrentMemoryContext, false);
	loop->n = 0;
}

void
dp_loop_round(DpLoop *loop)
{
	CHECK_FOR_INTERRUPTS();
	if (loop->rounds == NULL && ++loop->n < 32 &&
		MemoryContextMemAllocated(loop->outside, false) - loop->before < LOOP_BYTES)
		return;
	if (loop->rounds == NULL)
		loop->rounds = AllocSetContextCreate(loop->outside, "docpatterns expression loop",
											 ALLOCSET_DEFAULT_SIZES);
	else
		MemoryContextReset(loop->rounds);
	MemoryContextSwitchTo(loop->rounds);
}

void
dp_loop_end(DpLoop *loop)
{
	MemoryContextSwitchTo(loop->outside);
	if (loop->rounds != NULL)
		MemoryContextDelete(loop->rounds);
}
