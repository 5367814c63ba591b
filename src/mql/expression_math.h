/*
 * expression_math.h
 *		Functions of decimals: what the files of the mathematical operators share.
 */
#ifndef DP_MQL_EXPRESSION_MATH_H
#define DP_MQL_EXPRESSION_MATH_H

#include "mql/expression_node.h"

#include "bson/number.h"

/* Digits after the point in between; the results have 34 digits */
#define DP_WORK_SCALE 90

/* The functions of one argument, in the order of the table in expression_math.c */
typedef enum DpTrig
{
	DP_TRIG_SIN,
	DP_TRIG_COS,
	DP_TRIG_TAN,
	DP_TRIG_ASIN,
	DP_TRIG_ACOS,
	DP_TRIG_ATAN,
	DP_TRIG_SINH,
	DP_TRIG_COSH,
	DP_TRIG_TANH,
	DP_TRIG_ASINH,
	DP_TRIG_ACOSH,
	DP_TRIG_ATANH,
	DP_TRIG_RADIANS,
	DP_TRIG_DEGREES
} DpTrig;

extern bool dp_decimal_trig(DpTrig which, const uint8 *d, uint8 out[DP_DECIMAL128_SIZE]);
extern bool dp_decimal_atan2(const uint8 *dy, const uint8 *dx, uint8 out[DP_DECIMAL128_SIZE]);

/*
 * The number digits * 10^shift as a numeric, an integer as one, both with WORK_SCALE digits after
 * the point.
 */
extern Datum dp_exact_to_numeric(const DpExact *e, int shift);
extern Datum dp_int_to_numeric(int64 i);

/* A numeric times a power of ten, rounded to a decimal. */
extern void dp_numeric_to_decimal_shifted(Datum n, int shift, uint8 out[DP_DECIMAL128_SIZE]);

/* e to the power of a numeric as a decimal; the natural logarithm of a positive finite decimal. */
extern void dp_decimal_exp(Datum x, uint8 out[DP_DECIMAL128_SIZE]);
extern Datum dp_decimal_ln(const uint8 *d);

#endif /* DP_MQL_EXPRESSION_MATH_H */
