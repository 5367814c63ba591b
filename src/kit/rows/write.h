/*
 * write.h
 *		Finds, locks and writes rows from C, without a statement for each.
 *
 * A writer stands for one statement of the extension on one table (or a partitioned one).  It does
 * everything that a statement does: BEFORE and AFTER ROW triggers, generated columns, constraints,
 * index entries, partitions, and, when it is closed, AFTER STATEMENT triggers with transition
 * tables. It writes with the privileges of the table's owner and is marked (run.h) for the
 * extension's own triggers.
 *
 *		w = dp_writer_open(relid, "doc", 0, NULL);
 *		if (dp_writer_find(w, lookup, values) &&
 *			dp_writer_lock(w, LockTupleNoKeyExclusive) != DP_LOCK_DELETED)
 *			dp_writer_update(w, change(dp_writer_document(w)));
 *		dp_writer_close(w);
 *
 * A writer has one current row, which the functions below find, lock, read and write.  The end of
 * the (sub)transaction frees its memory, so errors need no cleanup.  It may be opened while another
 * one is open, also on the same table, but must be closed before the trigger or function that
 * opened it returns.
 *
 * It reads the latest committed state and this transaction's changes, at every isolation level.  It
 * sees rows written by the current command after dp_writer_refresh().
 *
 * Errors, besides those of triggers and constraints: T_R_SERIALIZATION_FAILURE if a transaction
 * with one snapshot for all statements would overwrite a row version that this snapshot does not
 * show (not with DP_WRITE_LATEST); TRIGGERED_DATA_CHANGE_VIOLATION if a user's BEFORE trigger
 * suppresses the write; WRONG_OBJECT_TYPE if the relation is not a table.
 */
#ifndef DP_KIT_ROWS_WRITE_H
#define DP_KIT_ROWS_WRITE_H

#include "access/htup.h"
#include "executor/tuptable.h"
#include "nodes/lockoptions.h"
#include "utils/rel.h"

#include "bson/layout.h"
#include "kit/declaration.h"
#include "kit/key.h"
#include "kit/sql/run.h"

typedef struct DpWriter DpWriter;

/*
 * How rows are found: by the values of an index's first columns, with the operators of the index.
 * Made once and kept by the caller.  The index of each partition is chosen at first use, and again
 * after changes of the schema.
 */
typedef struct DpLookup DpLookup;

/* By the primary key.  Lives in the context. */
extern DpLookup *dp_lookup_primary(Oid relid, MemoryContext context);

/*
 * By the field at a path of the documents, as a bson_value: needs a btree index whose first column
 * is (column -> 'path'), written as one text.  In a collection, '_id' is the column for it.
 */
extern DpLookup *
dp_lookup_path(Oid relid, const char *column, const char *path, MemoryContext context);

/*
 * By a value that a function of the extension computes from the document: needs a btree index whose
 * first column is the bson_value function(column, 'argument', ...), with these text arguments.
 */
extern DpLookup *dp_lookup_call(Oid relid, const char *column, const char *function,
								List *arguments, MemoryContext context);

/* Options of a writer */
#define DP_WRITE_ORDINARY 0x02 /* not marked: an ordinary write for triggers */
#define DP_WRITE_LATEST                                                                            \
	0x01 /* may overwrite what the transaction's snapshot does not show: only for tables of the    \
			extension */

/*
 * Opens a table for writing; locks it as DML does.  column is the document column (NULL: the only
 * one of type bson, or none).  mark: the name under which writes are marked DP_MARK_INTERNAL for
 * triggers; NULL: DP_MARK_DERIVED, see dp_marked_derived().
 */
extern DpWriter *dp_writer_open(Oid relid, const char *column, int flags, const char *mark);

/*
 * Triggers for which skip() is true are not fired if all triggers of that kind are skippable: for
 * triggers that would do nothing for these writes.  Call it right after dp_writer_open().
 */
extern void dp_writer_skip(DpWriter *w, bool (*skip)(const Trigger *trigger));

/*
 * If leave is true, lock and write functions return DP_LOCK_DEADLOCK or DP_WRITE_DEADLOCK instead
 * of waiting when the wait would deadlock (note.h).
 */
extern void dp_writer_leave(DpWriter *w, bool leave);

/* Fires the remaining triggers and closes the table.  Returns the number of rows written. */
extern int64 dp_writer_close(DpWriter *w);

/*
 * Makes everything that this command has written visible, by writers or otherwise, and takes a new
 * snapshot for reading.
 */
extern void dp_writer_refresh(DpWriter *w);

/*
 * Keeps the snapshot registered until the writer is closed, so that DpRowRefs stay valid when a new
 * snapshot is taken.
 */
extern void dp_writer_keep(DpWriter *w);

/* dp_writer_refresh() for a writer whose DpRowRefs must stay valid. */
extern void dp_writer_refresh_keep_refs(DpWriter *w);

/*
 * Set while updating rows that this statement inserted: their old index entries cannot be
 * deleted yet, so indexes need not try.
 */
extern void dp_writer_inserted(DpWriter *w, bool inserted);

extern Relation dp_writer_relation(DpWriter *w);

/*
 * Makes the first row with these values current, in its committed or our own version; returns false
 * if there is none.  dp_writer_next() continues; between the two the row may be locked and written.
 * The values must not be null and must stay valid meanwhile.
 */
extern bool dp_writer_find(DpWriter *w, DpLookup *lookup, const Datum *values);
extern bool dp_writer_next(DpWriter *w);

/*
 * True if the transaction's snapshot or its own writes show a row with these values; always true
 * below REPEATABLE READ.
 */
extern bool dp_writer_shown(DpWriter *w, DpLookup *lookup, const Datum *values);

/*
 * Scans the table, or a partition of it, in physical order between two TIDs.  The next row becomes
 * current, and may be locked and written; rows written during the scan are not returned.  The scan
 * ends after the last row, or with dp_writer_close().  Raises FEATURE_NOT_SUPPORTED for tables
 * without TIDs.
 */
extern void
dp_writer_scan(DpWriter *w, Oid relid, const ItemPointerData *first, const ItemPointerData *last);
extern bool dp_writer_scan_next(DpWriter *w);

/* References to found rows can be kept, sorted and fetched. */
typedef struct DpRowRef
{
	Oid relid; /* the table or the partition */
	ItemPointerData tid;
	uint32 epoch;
} DpRowRef;

extern void dp_writer_ref(DpWriter *w, DpRowRef *ref);

/* Makes the referenced row current, as it was when it was found; false if it no longer exists. */
extern bool dp_writer_fetch(DpWriter *w, const DpRowRef *ref);

/* Does the same for a row that this transaction wrote: only relid and tid need to be set. */
extern bool dp_writer_fetch_own(DpWriter *w, const DpRowRef *ref);

/*
 * Locks the current row.  Waits for transactions that write it and follows it to its latest
 * version, which becomes current.
 */
typedef enum DpLockResult
{
	DP_LOCK_OK,      /* locked and unchanged */
	DP_LOCK_CHANGED, /* locked, but changed since it was read: look at it again */
	DP_LOCK_DELETED, /* deleted, or moved to another partition: search it again */
	DP_LOCK_SKIPPED, /* locked by another transaction (only with LockWaitSkip) */
	DP_LOCK_DEADLOCK /* waiting would deadlock (only after dp_writer_leave()); it is still current
					  */
} DpLockResult;

extern DpLockResult dp_writer_lock(DpWriter *w, LockTupleMode mode);

/*
 * Does the same for the row that dp_writer_find() found last, by columns and not by expressions: if
 * it no longer has these values, the result is DP_LOCK_DELETED.
 */
extern DpLockResult dp_writer_lock_found(DpWriter *w, LockTupleMode mode, LockWaitPolicy wait);

/*
 * The current row.  All three point into it and are valid until another row becomes current or it
 * is written.  dp_writer_document() is detoasted, NULL for a null.  The key is the primary key of
 * the table or partition.
 */
extern TupleTableSlot *dp_writer_row(DpWriter *w);
extern struct varlena *dp_writer_document(DpWriter *w);
extern void dp_writer_key(DpWriter *w, DpKey *key);

/*
 * Writes the current row, which is then no longer current.  A document with the same bytes is not
 * written.
 *
 * The row need not be locked, which saves the lock.  If it then has changed since it was read, the
 * functions wait for the writing transaction, write nothing and return DP_WRITE_CHANGED: find the
 * row and compute the document again.
 */
typedef enum DpWriteResult
{
	DP_WRITE_DONE,
	DP_WRITE_SAME, /* nothing differs */
	DP_WRITE_CHANGED,
	DP_WRITE_DEADLOCK /* waiting would deadlock, as DP_LOCK_DEADLOCK */
} DpWriteResult;

extern DpWriteResult dp_writer_update(DpWriter *w, struct varlena *doc);
extern DpWriteResult dp_writer_delete(DpWriter *w);

/* Does the same with all columns, in the order of the table (of the partition, for update). */
extern DpWriteResult dp_writer_update_row(DpWriter *w, const Datum *values, const bool *nulls);

/*
 * Inserts a row: a document, with defaults for the other columns, or all columns in the order of
 * the table.
 */
extern void dp_writer_insert(DpWriter *w, struct varlena *doc);
extern void dp_writer_insert_row(DpWriter *w, const Datum *values, const bool *nulls);

/* Inserts many rows with all columns; cheaper per row if there are no row-level triggers. */
extern void dp_writer_insert_rows(DpWriter *w, Datum *const *values, bool *const *nulls, int n);

#endif /* DP_KIT_ROWS_WRITE_H */
