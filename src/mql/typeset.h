/*
 * typeset.h
 *		Sets of types of values, as $type and bsonType name them.
 */
#ifndef DP_MQL_TYPESET_H
#define DP_MQL_TYPESET_H

#include "mql/error.h"

typedef struct DpTypeSet
{
	uint64 bits[4];
} DpTypeSet;

static inline bool
dp_type_set_has(const DpTypeSet *set, uint8 type)
{
	return (set->bits[type >> 6] >> (type & 63)) & 1;
}

static inline void
dp_type_set_add(DpTypeSet *set, uint8 type)
{
	set->bits[type >> 6] |= UINT64CONST(1) << (type & 63);
}

/* Adds the type or types of a name ("string", "number", ...); false if there is no such name. */
extern bool dp_type_set_add_name(DpTypeSet *set, const char *name, uint32 len);

/* The same for the names of JSON Schema ("integer" is not among them). */
extern bool dp_type_set_add_json_name(DpTypeSet *set, const char *name, uint32 len);

/* Adds the type of a number (2 is a string, -1 MinKey); false if there is no such type. */
extern bool dp_type_set_add_code(DpTypeSet *set, int64 code);

#endif /* DP_MQL_TYPESET_H */
