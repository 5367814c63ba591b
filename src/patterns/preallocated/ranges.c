/*
 * ranges.c
 *		Cells as ranges and back: [1, 2, 3, 7] is [[1, 3], [7, 7]].
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"

#include "bson/builder.h"
#include "bson/number.h"
#include "bson/path.h"
#include "patterns/preallocated/shape.h"

/* The maximal number of cells in ranges */
#define MAX_CELLS 1000000

static bool whole(const DpValue *value, int64 *n);
static void append(DpBuilder *b, int64 n);
static void append_range(DpBuilder *b, int64 first, int64 last);
static void bad_range(const char *what) pg_attribute_noreturn();

/*
 * preallocated_ranges(doc, path) -> bson_value: the numbers of an array as ranges of consecutive
 * numbers. Cells with other values than whole numbers are taken, and omitted. NULL without the
 * array. Raises DATATYPE_MISMATCH for another value.
 */
DP_FUNCTION(dp_preallocated_ranges);
Datum
dp_preallocated_ranges(PG_FUNCTION_ARGS)
{
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	DpPath *path = dp_path_arg(fcinfo, 1);
	DpValue field;
	DpValue value;
	DpIter iter;
	DpBuilder b;
	bool open = false;
	int64 first = 0;
	int64 last = 0;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &field))
		PG_RETURN_NULL();
	if (field.type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("ranges must be an array, not a value of type %s",
							   dp_type_name(field.type))));
	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	dp_iter_init_value(&iter, &field);
	while (dp_iter_next_value(&iter, &value))
	{
		int64 n;

		if (!whole(&value, &n))
		{
			if (open)
				append_range(&b, first, last);
			open = false;
			continue;
		}
		if (open && n == last + 1)
		{
			last = n;
			continue;
		}
		if (open)
			append_range(&b, first, last);
		first = last = n;
		open = true;
	}
	if (open)
		append_range(&b, first, last);
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_value(&b, DP_TYPE_ARRAY));
}

/*
 * preallocated_cells(ranges) -> bson_value: all numbers of the ranges. A single number is a range.
 * Raises INVALID_PARAMETER_VALUE.
 */
DP_FUNCTION(dp_preallocated_cells_of);
Datum
dp_preallocated_cells_of(PG_FUNCTION_ARGS)
{
	DpValue ranges = dp_value_of_varlena(PG_GETARG_VARLENA_PP(0));
	DpValue range;
	DpIter iter;
	DpBuilder b;
	int64 total = 0;

	if (ranges.type != DP_TYPE_ARRAY)
		bad_range(psprintf("They are of type %s, not an array.", dp_type_name(ranges.type)));
	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	dp_iter_init_value(&iter, &ranges);
	while (dp_iter_next_value(&iter, &range))
	{
		DpValue bounds[2];
		int64 first;
		int64 last;
		int64 n;

		if (whole(&range, &first))
			last = first;
		else if (range.type != DP_TYPE_ARRAY || dp_array_count(range.data, range.len) != 2 ||
				 !dp_array_element(range.data, range.len, 0, &bounds[0]) ||
				 !whole(&bounds[0], &first) ||
				 !dp_array_element(range.data, range.len, 1, &bounds[1]) ||
				 !whole(&bounds[1], &last))
			bad_range("Each is an array of two whole numbers, or one such number.");
		if (last < first)
			bad_range(psprintf("The range from " INT64_FORMAT " to " INT64_FORMAT
							   " ends before it begins.",
							   first, last));
		total += last - first + 1;
		if (last - first >= MAX_CELLS || total > MAX_CELLS)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("ranges have too many cells"),
					 errdetail("At most %d are allowed.", MAX_CELLS)));
		CHECK_FOR_INTERRUPTS();
		for (n = first; n <= last; n++)
			append(&b, n);
	}
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_value(&b, DP_TYPE_ARRAY));
}

/* A number without a fraction that is not too large for that to be certain. */
static bool
whole(const DpValue *value, int64 *n)
{
	double d;

	if (!dp_type_is_number(value->type))
		return false;
	d = dp_number_approximate(value);
	if (!(fabs(d) <= 9007199254740991.0) || d != floor(d))
		return false;
	*n = (int64) d;
	return true;
}

/* A number, as an int32 if it fits. */
static void
append(DpBuilder *b, int64 n)
{
	if (n >= PG_INT32_MIN && n <= PG_INT32_MAX)
		dp_builder_append_int32(b, NULL, 0, (int32) n);
	else
		dp_builder_append_int64(b, NULL, 0, n);
}

/* A range, of both its ends. */
static void
append_range(DpBuilder *b, int64 first, int64 last)
{
	dp_builder_begin_array_field(b, NULL, 0);
	append(b, first);
	append(b, last);
	dp_builder_end(b);
}

/* Raises INVALID_PARAMETER_VALUE. */
static void
bad_range(const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid ranges"),
					errdetail("%s", what)));
}
