/*
 * access.h
 *		What the operator ->> shows of a value.
 */
#ifndef DP_BSON_ACCESS_H
#define DP_BSON_ACCESS_H

#include "bson/layout.h"

/*
 * The text of a value as ->> gives it, palloc'd, or NULL for null and
 * undefined: strings and symbols plain, numbers by their digits, dates in ISO
 * 8601 in UTC, UUIDs and ObjectIds as they are written, anything else as JSON.
 * Raises UNTRANSLATABLE_CHARACTER for a string that holds a NUL.
 */
extern text *dp_value_as_text(const DpValue *value);

#endif							/* DP_BSON_ACCESS_H */
