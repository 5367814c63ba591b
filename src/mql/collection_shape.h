/*
 * collection_shape.h
 *		The results of calls for collections, kept for later calls of the same shape.
 */
#ifndef DP_MQL_COLLECTION_SHAPE_H
#define DP_MQL_COLLECTION_SHAPE_H

#include "lib/stringinfo.h"

#include "bson/reader.h"
#include "mql/collection_calls.h"

#define DP_SHAPE_VALUES 16

/* A call without the values in its filter: all else that its results depend on, as bytes */
typedef struct DpShape
{
	StringInfoData key;
	uint32 hash;
	int nvalues;
	DpValue values[DP_SHAPE_VALUES]; /* point into the filter */
} DpShape;

/* Computes the shape of a call, and its results if they are known. */
extern bool dp_shape_find(DpShape *shape, DpCall *call);

/* Keeps the results of a call for its shape, if they depend on nothing else. */
extern void dp_shape_keep(const DpShape *shape, const DpCall *call);

#endif /* DP_MQL_COLLECTION_SHAPE_H */
