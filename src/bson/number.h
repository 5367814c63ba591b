/*
 * number.h
 *		The four kinds of numbers in BSON (int32, int64, double, decimal128):
 *		exact comparison between them, the canonical form that equality and
 *		hashing rest on, and decimal128 as text and as numeric.
 */
#ifndef DP_BSON_NUMBER_H
#define DP_BSON_NUMBER_H

#include "bson/layout.h"

#include "utils/numeric.h"

/* Room for the longest text of a decimal128 and its NUL */
#define DP_DECIMAL128_TEXT_SIZE		48

/*
 * Reads the text of a decimal128 (digits with sign, point and exponent,
 * Infinity, NaN; any case) of len bytes, which need not end in a NUL.  Returns
 * false if it is not a number, or needs more than 34 digits, or a larger
 * exponent than there is.
 */
extern bool dp_decimal128_from_text(const char *s, int len, uint8 out[DP_DECIMAL128_SIZE]);

/*
 * Writes the text of a decimal128, its exponent and trailing zeros kept, and
 * a NUL.  Returns the length of the text.
 */
extern int	dp_decimal128_to_text(const uint8 *d, char buf[DP_DECIMAL128_TEXT_SIZE]);

#endif							/* DP_BSON_NUMBER_H */
