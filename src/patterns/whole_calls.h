/*
 * whole_calls.h
 *		What the calls for collections are told of split documents.
 */
#ifndef DP_PATTERNS_WHOLE_CALLS_H
#define DP_PATTERNS_WHOLE_CALLS_H

#include "mql/collection_split.h"

/* For dp_split_hook. */
extern DpSplit *dp_split_of_relation(Relation rel, AttrNumber doc);

#endif							/* DP_PATTERNS_WHOLE_CALLS_H */
