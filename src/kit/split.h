/*
 * split.h
 *		What the calls for collections are told of split documents.
 */
#ifndef DP_KIT_SPLIT_H
#define DP_KIT_SPLIT_H

#include "mql/collection_split.h"

/* For dp_split_hook. */
extern DpSplit *dp_split_of_relation(Relation rel, AttrNumber doc);

#endif /* DP_KIT_SPLIT_H */
