/*
 * later.h
 *		Rows of side tables that AFTER ROW triggers add, written together.
 *
 * The first row of a statement queues an event of the side table's guard trigger, which PostgreSQL
 * fires after those of the statement's rows; it writes all.  They are also written when they have
 * become many, and before the extension reads the table or runs or prepares a write.  A user's
 * trigger on the table would run before that, so beside one rows are written at once.
 */
#ifndef DP_KIT_ROWS_LATER_H
#define DP_KIT_ROWS_LATER_H

#include "commands/trigger.h"

#include "kit/rows/table.h"

/* Writes rows of a side table with dp_table_insert_many().  Their t_self increases. */
typedef void (*DpLaterWrite)(void *arg, HeapTuple *rows, int n);

/* A new row of a side table */
typedef struct DpNewRow
{
	TupleTableSlot *slot;  /* to fill in: all null */
	struct DpLater *later; /* NULL: it is written at once, to the table */
	DpTable table;
} DpNewRow;

/*
 * Begins a row.  fired is the AFTER ROW trigger that adds it, or NULL; without write, rows are
 * inserted as they are.  arg must live until the transaction ends.
 */
extern void
dp_new_row(DpNewRow *row, const TriggerData *fired, Oid side, DpLaterWrite write, void *arg);
extern void dp_new_row_add(DpNewRow *row);

/* Whether dp_new_row() would return true. */
extern bool dp_writes_later(const TriggerData *fired, Oid side, DpLaterWrite write, void *arg);

/* The guard trigger's event: writes the rows that this statement added. */
extern void dp_later_end(Oid side);

/* Writes what was added to a side table, or to all (InvalidOid). */
extern void dp_later_flush(Oid side);

extern bool dp_later_any;

static inline void
dp_later_write(Oid side)
{
	if (unlikely(dp_later_any))
		dp_later_flush(side);
}

#endif /* DP_KIT_ROWS_LATER_H */
