/*
 * build.h
 *		Shared by the aggregates that build documents.
 */
#ifndef DP_BSON_BUILD_H
#define DP_BSON_BUILD_H

#include "dp.h"

/* Where the state of the aggregate lives whose function was called. */
extern MemoryContext dp_aggregate_context(FunctionCallInfo fcinfo);

/*
 * The type of an argument that is declared "any" or anycompatible.  Raises INVALID_PARAMETER_VALUE
 * if it is not known.
 */
extern Oid dp_argument_type(FunctionCallInfo fcinfo, int argno);

#endif /* DP_BSON_BUILD_H */
