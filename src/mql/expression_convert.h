/*
 * expression_convert.h
 *		What $convert converts to, and conversions of binary data.
 */
#ifndef DP_MQL_EXPRESSION_CONVERT_H
#define DP_MQL_EXPRESSION_CONVERT_H

#include "mql/expression_node.h"

/* How a string spells binary data */
typedef enum DpBinaryFormat
{
	DP_FORMAT_NONE, /* not given */
	DP_FORMAT_AUTO, /* a UUID or base64, by the data */
	DP_FORMAT_BASE64,
	DP_FORMAT_BASE64URL,
	DP_FORMAT_HEX,
	DP_FORMAT_UTF8,
	DP_FORMAT_UUID
} DpBinaryFormat;

typedef struct DpConversion
{
	uint8 type;
	int subtype; /* of binary data */
	DpBinaryFormat format;
	bool big; /* numbers in binary data have their highest byte first */
} DpConversion;

/*
 * Conversions return false, and why in words, if they cannot be: NULL for types between which there
 * is none.
 */
extern bool
dp_convert_to_binary(const DpValue *v, const DpConversion *to, DpValue *result, const char **why);
extern bool
dp_binary_to_string(const DpValue *v, DpBinaryFormat format, DpValue *result, const char **why);
extern bool dp_binary_to_double(const DpValue *v, bool big, double *d, const char **why);

/* An integer of 1, 2, 4 or 8 bytes, at most so many. */
extern bool dp_binary_to_int64(const DpValue *v, uint32 most, bool big, int64 *i, const char **why);

#endif /* DP_MQL_EXPRESSION_CONVERT_H */
