/*
 * entries.h
 *		Index entries that are made together, for many rows at once.
 *
 * When thousands of rows are written in an order that no index has, most of the time goes into
 * descending btrees.  A batch collects the entries of btree indexes, sorts them for each index and
 * inserts them from left to right.  Btree indexes do not find added rows before dp_entries_write()
 * is called, so nothing may search for them until then.
 */
#ifndef DP_KIT_ROWS_ENTRIES_H
#define DP_KIT_ROWS_ENTRIES_H

#include "access/tableam.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"

#include "dp.h"

typedef struct DpEntries DpEntries;

/*
 * A batch for a table whose indexes are open, in the current context.  same: the only column whose
 * value may differ from an earlier version for which this transaction made index entries.
 */
extern DpEntries *dp_entries_begin(ResultRelInfo *info, AttrNumber same);

/* False if the table has constraints that must be checked entry by entry. */
extern bool dp_entries_possible(ResultRelInfo *info);

/* Adds the entries of a written row; indexes other than btrees get theirs at once. */
extern void dp_entries_add(DpEntries *entries, TupleTableSlot *slot, EState *estate);

/* Makes all entries and frees the batch.  Raises UNIQUE_VIOLATION. */
extern void dp_entries_write(DpEntries *entries);

#endif /* DP_KIT_ROWS_ENTRIES_H */
