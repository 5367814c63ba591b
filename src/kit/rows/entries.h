/*
 * entries.h
 *		Entries in indexes that are made together, for many rows at once.
 *
 * A row that is written gets an entry in each index of its table, somewhere in
 * it.  Where thousands of rows are written in no order that any index knows,
 * most of the time goes into finding these places.  A batch keeps what has to
 * go into btree indexes, sorts it for each index and puts it in from left to
 * right.  Rows that have been added are not found by btree indexes before
 * dp_entries_write() is called, so nobody may look for them until then.
 */
#ifndef DP_KIT_ROWS_ENTRIES_H
#define DP_KIT_ROWS_ENTRIES_H

#include "access/tableam.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"

#include "dp.h"

typedef struct DpEntries DpEntries;

/*
 * A batch for a table whose indexes are open.  same: no column but that one has
 * another value than in a former version of the row that this transaction has
 * made entries for.  Lives in the current context.
 */
extern DpEntries *dp_entries_begin(ResultRelInfo *info, AttrNumber same);

/* Whether a table allows it: constraints that are looked at by entries one by one do not. */
extern bool dp_entries_possible(ResultRelInfo *info);

/* The entries of a row that was written; indexes other than btrees get theirs at once. */
extern void dp_entries_add(DpEntries *entries, TupleTableSlot *slot, EState *estate);

/* Makes all entries and frees the batch.  Raises UNIQUE_VIOLATION as entries do. */
extern void dp_entries_write(DpEntries *entries);

/*
 * The entries of one row that was written without an executor, in all indexes
 * of its table.  changed: the only column that differs from the former version,
 * whose update returned indexes; InvalidAttrNumber for a new row.
 */
extern void
dp_entries_one(Relation rel, TupleTableSlot *slot, AttrNumber changed, DpUpdateIndexes indexes);

#endif /* DP_KIT_ROWS_ENTRIES_H */
