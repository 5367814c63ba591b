/*
 * split.h
 *		Supplies collection calls with the split fields of a table.
 */
#ifndef DP_KIT_SPLIT_H
#define DP_KIT_SPLIT_H

#include "mql/collection_split.h"

/* For dp_split_hook. */
extern DpSplit *dp_split_of_relation(Relation rel, AttrNumber doc);

#endif /* DP_KIT_SPLIT_H */
