/*
 * totals.c
 *		Adding up values of a column: what aggregates over buckets are made of.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "patterns/bucket/totals.h"

static void moments_add(DpFound *found, int64 n, double sum, double squares);
static void range_keep(MemoryContext context, const DpAsked *asked, Datum *kept, Datum value);
static Datum integer_numeric(DpExactSum value);

DpAdding
dp_adding_of(Oid type)
{
	switch (type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
			return DP_ADD_INTEGERS;
		case FLOAT4OID:
		case FLOAT8OID:
			return DP_ADD_DOUBLES;
		case NUMERICOID:
			return DP_ADD_NUMERICS;
		default:
			elog(ERROR, "values of type %u cannot be added up", type);
	}
}

void
dp_value_add(MemoryContext context, const DpAsked *asked, DpFound *found, Datum value)
{
	if (asked->squares)
	{
		moments_add(found, 1,
					asked->column->type == FLOAT4OID ? DatumGetFloat4(value)
													 : DatumGetFloat8(value),
					0);
		if (asked->range)
			dp_range_add(context, asked, found, value, value);
		return;
	}
	found->n++;
	switch (asked->adding)
	{
		case DP_ADD_NOT:
			break;
		case DP_ADD_INTEGERS:
			found->integers += asked->column->type == INT2OID   ? DatumGetInt16(value)
							   : asked->column->type == INT4OID ? DatumGetInt32(value)
																: DatumGetInt64(value);
			break;
		case DP_ADD_DOUBLES:
			dp_double_add(found, asked->column->type == FLOAT4OID ? DatumGetFloat4(value)
																  : DatumGetFloat8(value));
			break;
		case DP_ADD_NUMERICS:
			dp_numeric_plus(context, found, DatumGetNumeric(value));
			break;
	}
	if (asked->range)
		dp_range_add(context, asked, found, value, value);
}

void
dp_doubles_add(const DpAsked *asked, DpFound *found, const Datum *values, const bool *nulls,
			   const bool *marks, int from, int to)
{
	const double *list;
	double shift;
	double sum = 0;
	double near = 0;
	double squares = 0;
	bool finite = true;
	int n = 0;
	int i;

#ifdef USE_FLOAT8_BYVAL
	if (asked->column->type == FLOAT8OID && marks == NULL &&
		memchr(nulls + from, true, to - from) == NULL)
	{
		list = (const double *) (values + from);
		n = to - from;
	}
	else
#endif
	{
		double *chosen = palloc(sizeof(double) * (to - from + 1));

		for (i = from; i < to; i++)
		{
			chosen[n] = nulls[i]                           ? 0
						: asked->column->type == FLOAT4OID ? DatumGetFloat4(values[i])
														   : DatumGetFloat8(values[i]);
			n += !nulls[i] & (marks == NULL || marks[i]);
		}
		list = chosen;
	}
	if (n == 0)
		return;

	/* differences from the first value lose nothing where all are near each other, or equal */
	shift = list[0];
	if (asked->squares)
	{
		for (i = 0; i < n; i++)
		{
			double difference = list[i] - shift;

			sum += list[i];
			near += difference;
			squares += difference * difference;
		}
		squares = Max(squares - near * near / n, 0);
	}
	else
	{
		sum = found->doubles;
		for (i = 0; i < n; i++)
			sum += list[i];
	}
	if (unlikely(!isfinite(sum) || !isfinite(near) || !isfinite(squares)))
	{
		for (i = 0; i < n; i++)
			finite = finite && isfinite(list[i]);
		if (finite && (asked->squares || isfinite(found->doubles)))
			float_overflow_error();
		squares = get_float8_nan();
	}
	if (asked->squares)
		moments_add(found, n, sum, squares);
	else
	{
		found->n += n;
		found->doubles = sum;
	}
}

/* Add the number, the sum and the squared deviations of values to a variance. */
static void
moments_add(DpFound *found, int64 n, double sum, double squares)
{
	double total = found->doubles + sum;

	if (isinf(sum))
		squares = get_float8_nan();
	if (found->n > 0)
	{
		double difference = found->doubles / found->n - sum / n;

		squares += found->squares + (double) found->n * (double) n * difference * difference /
										(double) (found->n + n);
	}
	if (unlikely((isinf(total) || isinf(squares)) && !isinf(sum) && !isinf(found->doubles)))
		float_overflow_error();
	found->n += n;
	found->doubles = total;
	found->squares = squares;
}

void
dp_double_add(DpFound *found, double value)
{
	double sum = found->doubles + value;

	if (unlikely(isinf(sum)) && !isinf(found->doubles) && !isinf(value))
		float_overflow_error();
	found->doubles = sum;
}

void
dp_numeric_plus(MemoryContext context, DpFound *found, Numeric value)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	Numeric sum;

	if (found->numerics == NULL)
		sum = DatumGetNumericCopy(NumericGetDatum(value));
	else
	{
		sum = DatumGetNumeric(DirectFunctionCall2(numeric_add, NumericGetDatum(found->numerics),
												  NumericGetDatum(value)));
		pfree(found->numerics);
	}
	found->numerics = sum;
	MemoryContextSwitchTo(old);
}

void
dp_range_add(MemoryContext context, const DpAsked *asked, DpFound *found, Datum min, Datum max)
{
	if (!found->has_range)
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		found->min = datumCopy(min, asked->column->typbyval, asked->column->typlen);
		found->max = datumCopy(max, asked->column->typbyval, asked->column->typlen);
		found->has_range = true;
		MemoryContextSwitchTo(old);
		return;
	}
	if (DatumGetInt32(FunctionCall2Coll(asked->compare, asked->collation, min, found->min)) < 0)
		range_keep(context, asked, &found->min, min);
	if (DatumGetInt32(FunctionCall2Coll(asked->compare, asked->collation, max, found->max)) > 0)
		range_keep(context, asked, &found->max, max);
}

/* Keep another value for the least or the greatest. */
static void
range_keep(MemoryContext context, const DpAsked *asked, Datum *kept, Datum value)
{
	MemoryContext old = MemoryContextSwitchTo(context);

	if (!asked->column->typbyval)
		pfree(DatumGetPointer(*kept));
	*kept = datumCopy(value, asked->column->typbyval, asked->column->typlen);
	MemoryContextSwitchTo(old);
}

Datum
dp_found_result(DpUpperFunction function, const DpAsked *asked, const DpFound *found, bool *isnull)
{
	*isnull = false;
	if (function == DP_UPPER_COUNT || function == DP_UPPER_COUNT_ALL)
		return Int64GetDatum(found->n);
	*isnull = found->n == 0;
	if (*isnull)
		return (Datum) 0;
	if (function == DP_UPPER_MIN)
		return found->min;
	if (function == DP_UPPER_MAX)
		return found->max;
	if (function == DP_UPPER_SUM)
	{
		switch (asked->column->type)
		{
			case INT2OID:
			case INT4OID:
				return Int64GetDatum((int64) found->integers);
			case INT8OID:
				return integer_numeric(found->integers);
			case FLOAT4OID:
				if (unlikely(isinf((float4) found->doubles)) && !isinf(found->doubles))
					float_overflow_error();
				return Float4GetDatum((float4) found->doubles);
			case FLOAT8OID:
				return Float8GetDatum(found->doubles);
			default:
				return NumericGetDatum(found->numerics);
		}
	}
	if (function >= DP_UPPER_VAR_POP)
	{
		bool sample = function == DP_UPPER_VAR_SAMP || function == DP_UPPER_STDDEV_SAMP;
		double variance;

		*isnull = sample && found->n == 1;
		if (*isnull)
			return (Datum) 0;
		variance = found->squares / (double) (found->n - sample);
		return Float8GetDatum(function >= DP_UPPER_STDDEV_POP ? sqrt(variance) : variance);
	}
	if (asked->adding == DP_ADD_DOUBLES)
		return Float8GetDatum(found->doubles / found->n);
	return DirectFunctionCall2(numeric_div,
							   asked->adding == DP_ADD_INTEGERS ? integer_numeric(found->integers)
																: NumericGetDatum(found->numerics),
							   NumericGetDatum(int64_to_numeric(found->n)));
}

/* An integer as a numeric. */
static Datum
integer_numeric(DpExactSum value)
{
	char digits[48];
	char *p = digits + sizeof(digits) - 1;
	bool negative = value < 0;

	if (value >= PG_INT64_MIN && value <= PG_INT64_MAX)
		return NumericGetDatum(int64_to_numeric((int64) value));
	*p = '\0';
	while (value != 0)
	{
		int digit = (int) (value % 10);

		*--p = '0' + (negative ? -digit : digit);
		value /= 10;
	}
	if (negative)
		*--p = '-';
	return DirectFunctionCall3(numeric_in, CStringGetDatum(p), ObjectIdGetDatum(InvalidOid),
							   Int32GetDatum(-1));
}
