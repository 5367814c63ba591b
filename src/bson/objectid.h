/*
 * objectid.h
 *		Making object ids.
 */
#ifndef DP_BSON_OBJECTID_H
#define DP_BSON_OBJECTID_H

#include "bson/layout.h"

/* Writes a new object id.  Raises INTERNAL_ERROR if the system has no random bytes. */
extern void dp_objectid_generate(uint8 result[DP_OBJECTID_SIZE]);

#endif /* DP_BSON_OBJECTID_H */
