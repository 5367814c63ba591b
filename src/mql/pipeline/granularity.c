/*
 * granularity.c
 *		Series of preferred numbers, to which $bucketAuto rounds its boundaries.
 *
 * A series is repeated in every power of ten.  Those of IEC 60063 with 48 and more values follow a
 * formula.
 */
#include "postgres.h"

#include <math.h>

#include "bson/compare.h"
#include "bson/number.h"
#include "mql/expression_node.h"
#include "mql/pipeline/window.h"

#define MAX_SERIES 192

typedef struct Series
{
	const char *name;
	int n;
	const int16 *values; /* NULL: the formula */
} Series;

static const int16 r5[] = { 10, 16, 25, 40, 63 };
static const int16 r10[] = { 100, 125, 160, 200, 250, 315, 400, 500, 630, 800 };
static const int16 r20[] = { 100, 112, 125, 140, 160, 180, 200, 224, 250, 280,
							 315, 355, 400, 450, 500, 560, 630, 710, 800, 900 };
static const int16 r40[] = { 100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212,
							 224, 236, 250, 265, 280, 300, 315, 335, 355, 375, 400, 425, 450, 475,
							 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950 };
static const int16 r80[] = { 103, 109, 115, 122, 128, 136, 145, 155, 165, 175, 185, 195, 206, 218,
							 230, 243, 258, 272, 290, 307, 325, 345, 365, 387, 412, 437, 462, 487,
							 515, 545, 575, 615, 650, 690, 730, 775, 825, 875, 925, 975 };
static const int16 s125[] = { 10, 20, 50 };
static const int16 e6[] = { 10, 15, 22, 33, 47, 68 };
static const int16 e12[] = { 10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82 };
static const int16 e24[] = { 10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30,
							 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91 };

static const Series series[] = {
	{ "R5", lengthof(r5), r5 },    { "R10", lengthof(r10), r10 }, { "R20", lengthof(r20), r20 },
	{ "R40", lengthof(r40), r40 }, { "R80", lengthof(r80), r80 }, { "1-2-5", lengthof(s125), s125 },
	{ "E6", lengthof(e6), e6 },    { "E12", lengthof(e12), e12 }, { "E24", lengthof(e24), e24 },
	{ "E48", 48, NULL },           { "E96", 96, NULL },           { "E192", 192, NULL },
	{ "POWERSOF2", 0, NULL },
};

static const Series *find_series(const char *name);
static int series_value(const Series *s, int i);
static void power_of_two(const DpValue *v, bool up, DpValue *result);
static void candidate(const Series *s, int i, int exponent, bool decimal, DpValue *result);

bool
dp_granularity_exists(const char *name)
{
	return find_series(name) != NULL;
}

static const Series *
find_series(const char *name)
{
	for (int i = 0; i < lengthof(series); i++)
		if (strcmp(series[i].name, name) == 0)
			return &series[i];
	return NULL;
}

void
dp_granularity_round(const char *name, const DpValue *v, bool up, DpValue *result)
{
	const Series *s = find_series(name);
	double d = dp_number_to_double(v);
	DpValue below = *v;

	if (d == 0 || isinf(d))
	{
		*result = *v;
		return;
	}
	if (s->n == 0)
	{
		power_of_two(v, up, result);
		return;
	}

	/* from the decade below, whatever the series begins with */
	for (int exponent = (int) floor(log10(d)) - 4;; exponent++)
		for (int i = 0; i < s->n; i++)
		{
			int c;

			candidate(s, i, exponent, v->type == DP_TYPE_DECIMAL128, result);
			c = dp_value_compare(result, v);
			if (up && c > 0)
				return;
			if (!up && c >= 0)
			{
				*result = below;
				return;
			}
			below = *result;
		}
}

static int
series_value(const Series *s, int i)
{
	/* the standard has 9.20, where the formula gives 9.19 */
	if (s->values == NULL)
		return s->n == 192 && i == 185 ? 920 : (int) rint(100 * pow(10, (double) i / s->n));
	return s->values[i];
}

/* A number of the series, as a double or a decimal. */
static void
candidate(const Series *s, int i, int exponent, bool decimal, DpValue *result)
{
	if (decimal)
	{
		uint8 d[DP_DECIMAL128_SIZE];
		char text[32];
		int len = snprintf(text, sizeof(text), "%dE%d", series_value(s, i), exponent);

		if (!dp_decimal128_from_text(text, len, d))
			ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
							errmsg("boundary is out of the range of decimal128")));
		(void) dp_result_decimal(result, d);
	}
	else
	{
		double multiplier = 1;

		for (int k = 0; k < abs(exponent); k++)
			multiplier = exponent < 0 ? multiplier / 10 : multiplier * 10;
		(void) dp_result_double(result, series_value(s, i) * multiplier);
	}
}

/* An integer if the number is one and the power is. */
static void
power_of_two(const DpValue *v, bool up, DpValue *result)
{
	double d = dp_number_to_double(v);
	int exponent = up ? (int) floor(log2(d)) + 1 : (int) ceil(log2(d)) - 1;
	double power = ldexp(1, exponent);

	if (v->type == DP_TYPE_DECIMAL128)
	{
		uint8 decimal[DP_DECIMAL128_SIZE];

		dp_numeric_round_to_decimal128(dp_double_to_numeric(power), decimal);
		(void) dp_result_decimal(result, decimal);
	}
	else if (exponent >= 0 && exponent < 63)
		(void) dp_result_integer(result, (int64) 1 << exponent);
	else
		(void) dp_result_double(result, power);
}
