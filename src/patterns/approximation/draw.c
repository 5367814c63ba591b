/*
 * draw.c
 *		The approximation pattern: how much an event writes, and the bounds of an
 *		estimate.
 *
 * An event that counts x is written with probability x / d and then adds d, so
 * that it adds x on average.  The forms differ in d:
 *
 *	step		a multiple of n: as many whole steps as are in x, and one more
 *				with the probability of the rest
 *	error e		d = x + 2 e^2 v, v being the value.  The variance of one event
 *				is x (d - x) = 2 e^2 v x, and their sum up to a count of N is
 *				at most e^2 N^2: the standard error is at most e N.
 *	threshold	d = the threshold
 *
 * For integers, d - x is rounded down, which makes the error smaller.
 */
#include "postgres.h"

#include <limits.h>
#include <math.h>

#include "common/int.h"
#include "common/pg_prng.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"

#include "patterns/approximation/approximation.h"

/* of the normal distribution: 95 of 100 cases are within this many standard errors */
#define DP_CASES_95 1.959964

/* docpatterns.approximation_seed: 0 for a random one */
static int seed_setting = 0;

static pg_prng_state generator;
static bool seeded = false;

static void generator_seed(void);
static double draw_double(void);
static bool draw_ratio(int64 x, int64 d);
static bool draw_step(const DpApproximation *a, const DpValue *amount, DpAmount *added);
static bool draw_integer(const DpValue *amount, int64 rest, bool instead, DpAmount *added);
static double standard_error(const DpApproximation *a, double count);

/* Resets the generator after the setting has changed. */
static void
seed_assign(int seed, void *extra)
{
	seeded = false;
}

void
dp_approximation_init(void)
{
	DefineCustomIntVariable("docpatterns.approximation_seed",
							"Makes what approximation_add() draws in this session repeatable.",
							"With 0 it is unpredictable.", &seed_setting, 0, 0, INT_MAX,
							PGC_USERSET, 0, NULL, seed_assign, NULL);
}

bool
dp_approximation_needs_value(const DpApproximation *a)
{
	return a->form == DP_APPROXIMATION_ERROR ||
		   (a->form == DP_APPROXIMATION_THRESHOLD && a->relative);
}

bool
dp_approximation_draw(const DpApproximation *a, const DpValue *amount, double value,
					  DpAmount *added)
{
	double x = dp_amount_double(amount);
	double rest; /* d without x, or d if it replaces x */
	bool instead = false;
	double d;

	if (!isfinite(x))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the amount must be a finite number")));
	if (x == 0)
		return false;
	if (unlikely(!seeded))
		generator_seed();
	if (a->form == DP_APPROXIMATION_STEP)
		return draw_step(a, amount, added);

	if (!isfinite(value))
		value = 0;
	if (a->form == DP_APPROXIMATION_ERROR)
		rest = a->variance * fabs(value);
	else
	{
		rest = a->relative ? a->threshold * fabs(value) : a->threshold;
		instead = true;
		if (rest <= fabs(x))
		{
			dp_amount_set(added, amount);
			return true;
		}
	}
	if (amount->type == DP_TYPE_DOUBLE)
	{
		d = instead ? rest : fabs(x) + rest;
		if (draw_double() * d >= fabs(x))
			return false;
		dp_amount_set_double(added, copysign(d, x));
		return true;
	}
	rest = Min(floor(rest), 1e15);
	if (dp_amount_is_int(amount))
		return draw_integer(amount, (int64) rest, instead, added);

	d = instead ? Max(rest, fabs(x)) : fabs(x) + rest;
	if (draw_double() * d >= fabs(x))
		return false;
	if (instead && rest <= fabs(x))
		dp_amount_set(added, amount);
	else if (instead)
		dp_amount_set_decimal(added, int64_to_numeric((int64) copysign(rest, x)));
	else
		dp_amount_set_decimal(added,
							  numeric_add_opt_error(dp_amount_numeric(amount),
													int64_to_numeric((int64) copysign(rest, x)),
													NULL));
	return true;
}

/* Steps are integers for any amount, so that the field stays a multiple. */
static bool
draw_step(const DpApproximation *a, const DpValue *amount, DpAmount *added)
{
	int64 steps;
	int64 total;
	bool negative;

	if (dp_amount_is_int(amount))
	{
		int64 x = dp_amount_int(amount);

		steps = x / a->step;
		if (x % a->step != 0 && draw_ratio(x < 0 ? -(x % a->step) : x % a->step, a->step))
			steps += x < 0 ? -1 : 1;
	}
	else
	{
		double x = dp_amount_double(amount) / a->step;
		double whole = floor(fabs(x));

		negative = x < 0;
		if (whole > 9e15)
			ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
							errmsg("the amount is out of range")));
		steps = (int64) whole + (draw_double() < fabs(x) - whole ? 1 : 0);
		if (negative)
			steps = -steps;
	}
	if (steps == 0)
		return false;
	if (pg_mul_s64_overflow(steps, a->step, &total))
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						errmsg("the amount is out of range")));
	dp_amount_set_int(added, total, amount->type == DP_TYPE_INT64);
	return true;
}

/* The other forms with integers: rest is added to x or replaces it. */
static bool
draw_integer(const DpValue *amount, int64 rest, bool instead, DpAmount *added)
{
	int64 x = dp_amount_int(amount);
	int64 size;
	int64 d;

	/* the smallest integer has no absolute value */
	if (x == PG_INT64_MIN)
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						errmsg("the amount is out of range")));
	size = x < 0 ? -x : x;
	if (pg_add_s64_overflow(size, rest, &d))
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
						errmsg("the amount is out of range")));
	if (instead)
		d = Max(rest, size);
	if (d > size && !draw_ratio(size, d))
		return false;
	dp_amount_set_int(added, x < 0 ? -d : d, amount->type == DP_TYPE_INT64);
	return true;
}

/* Returns true in x of d cases, exactly. */
static bool
draw_ratio(int64 x, int64 d)
{
	return pg_prng_uint64_range(&generator, 0, (uint64) d - 1) < (uint64) x;
}

/* Returns a random number, uniform in [0, 1). */
static double
draw_double(void)
{
	return pg_prng_double(&generator);
}

/* Seeds the generator from the setting, or randomly. */
static void
generator_seed(void)
{
	if (seed_setting != 0)
		pg_prng_seed(&generator, (uint64) seed_setting);
	else if (!pg_prng_strong_seed(&generator))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not get random bytes")));
	seeded = true;
}

/*
 * Returns the standard error of the estimate if the true count is this and was counted one by one.
 * Larger amounts, and a field that did not begin at 0, make it smaller.
 */
static double
standard_error(const DpApproximation *a, double count)
{
	double c = a->variance;
	double m;

	if (a->form == DP_APPROXIMATION_STEP)
		return sqrt(count * (double) (a->step - 1));

	/* of the n-th event the variance is floor(c n): their sum */
	m = floor(c * count);
	if (m < 1)
		return 0;
	return sqrt(Max(m * count - m * (m + 1) / 2 / c, 0));
}

/* Sets the counts for which the estimate is at the end of their 95 % range. */
void
dp_approximation_bounds(const DpApproximation *a, double estimate, double *low, double *high)
{
	double v = fabs(estimate);
	double from;
	double to;
	double lower;
	double upper;
	int i;

	*low = *high = estimate;
	if (a->form == DP_APPROXIMATION_SHARDS || !isfinite(v))
		return;
	if (a->form == DP_APPROXIMATION_THRESHOLD)
	{
		double t = a->relative ? a->threshold * v : a->threshold;

		*low = estimate - t;
		*high = estimate + t;
		return;
	}

	/* small values of the error form are exact, and all values with a step of 1 */
	if ((a->form == DP_APPROXIMATION_ERROR || a->step == 1) && standard_error(a, v) == 0)
		return;

	/* count + 1.96 errors of it = estimate; grows with the count */
	from = 0;
	to = v;
	for (i = 0; i < 100; i++)
	{
		double middle = (from + to) / 2;

		if (middle + DP_CASES_95 * standard_error(a, middle) < v)
			from = middle;
		else
			to = middle;
	}
	lower = from;

	/* count - 1.96 errors of it = estimate: falls at first, then grows */
	to = v + 1;
	for (i = 0; i < 1000 && to - DP_CASES_95 * standard_error(a, to) < v; i++)
		to = v + (to - v) * 2;
	from = v;
	for (i = 0; i < 100; i++)
	{
		double middle = (from + to) / 2;

		if (middle - DP_CASES_95 * standard_error(a, middle) < v)
			from = middle;
		else
			to = middle;
	}
	upper = to;
	*low = estimate < 0 ? -ceil(upper) : floor(lower);
	*high = estimate < 0 ? -floor(lower) : ceil(upper);
}
