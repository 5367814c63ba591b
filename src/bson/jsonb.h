/*
 * jsonb.h
 *		BSON values become jsonb, and jsonb becomes BSON values.
 */
#ifndef DP_BSON_JSONB_H
#define DP_BSON_JSONB_H

#include "utils/jsonb.h"

#include "bson/builder.h"

/*
 * Appends an element with the jsonb, which is detoasted completely, to the builder.  Objects with a
 * meaning in Extended JSON become the values that they represent.  Raises
 * NUMERIC_VALUE_OUT_OF_RANGE for a number of more than 34 digits.
 */
extern void
dp_builder_append_jsonb(DpBuilder *b, const char *name, uint32 namelen, struct varlena *jsonb);

/*
 * A new jsonb with the value; what jsonb has no type for is written as
 * Extended JSON.  Raises UNTRANSLATABLE_CHARACTER for a null character.
 */
extern Jsonb *dp_value_to_jsonb(const DpValue *value);

#endif /* DP_BSON_JSONB_H */
