/*
 * write.h
 *		Rows found, locked and written from C, without a statement for each.
 *
 * A writer stands for one statement of the extension on one table (or a
 * partitioned one).  What it writes is what a statement would have written:
 * BEFORE and AFTER ROW triggers, generated columns, constraints, entries in
 * indexes, partitions, and, when it is closed, AFTER STATEMENT triggers with
 * their transition tables.  It writes with the rights of the table's owner,
 * whoever acts, and is marked (run.h), so that our own triggers know it.
 *
 *		w = dp_writer_open(relid, "doc", 0, NULL);
 *		if (dp_writer_find(w, lookup, values) &&
 *			dp_writer_lock(w, LockTupleNoKeyExclusive) != DP_LOCK_GONE)
 *			dp_writer_update(w, change(dp_writer_document(w)));
 *		dp_writer_close(w);
 *
 * A writer has one current row, which the functions below find, lock, read and
 * write.  Its memory is freed by the end of the (sub)transaction at the latest,
 * so nothing has to be done about it when an error is raised.  It may be
 * opened while another one is open, also on the same table, but is closed
 * before the trigger or function that opened it returns.
 *
 * Reading: everything is seen in its latest committed state, and as this
 * transaction has left it, at every isolation level.  Rows that the command
 * which is running has written itself are seen after dp_writer_refresh().
 *
 * Errors, beside those of the triggers and constraints: T_R_SERIALIZATION_FAILURE
 * where a transaction with one snapshot for all its statements writes over
 * what this snapshot does not show (not with DP_WRITE_LATEST);
 * TRIGGERED_DATA_CHANGE_VIOLATION where a user's BEFORE trigger suppresses the
 * write; WRONG_OBJECT_TYPE for what is no table.
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
 * How rows are found: by the values of an index's first columns, with the
 * operators of the index.  Made once and kept by whoever looks; which index of
 * which partition serves it is found when it is first used, and again after
 * changes of the schema.
 */
typedef struct DpLookup DpLookup;

/* By the primary key.  Lives in the context. */
extern DpLookup *dp_lookup_primary(Oid relid, MemoryContext context);

/*
 * By the field of the documents that a path leads to, as a bson_value: needs a
 * btree index whose first column is (column -> 'path'), written as one text.
 * Where the table is a collection, '_id' is the column that goes with it.
 */
extern DpLookup *
dp_lookup_path(Oid relid, const char *column, const char *path, MemoryContext context);

/*
 * By a value that a function of the extension makes of the document: needs a
 * btree index whose first column is function(column, 'argument', ...), with so
 * many texts, that is a bson_value.
 */
extern DpLookup *dp_lookup_call(Oid relid, const char *column, const char *function,
								List *arguments, MemoryContext context);

/* Options of a writer */
#define DP_WRITE_ORDINARY 0x02 /* not marked: for triggers it is a write as any other */
#define DP_WRITE_LATEST                                                                            \
	0x01 /* writes over what the transaction's snapshot does not show: for tables that are ours    \
			alone */

/*
 * Opens a table for writing; locks it as DML does.  column is the one with the
 * documents (NULL: the table has none, or the only one of type bson).  mark:
 * the name under which what is written is marked DP_MARK_INTERNAL for the
 * triggers; NULL: DP_MARK_DERIVED, see dp_marked_derived().
 */
extern DpWriter *dp_writer_open(Oid relid, const char *column, int flags, const char *mark);

/*
 * Triggers for which skip() is true are not called where no others of their
 * kind are there: for those that would find nothing to do in what is written.  Right
 * after dp_writer_open().
 */
extern void dp_writer_skip(DpWriter *w, bool (*skip)(const Trigger *trigger));

/*
 * Whether rows from here on are left to a transaction that holds them and waits for this one
 * (note.h): locking and writing tell so instead of waiting.
 */
extern void dp_writer_leave(DpWriter *w, bool leave);

/*
 * Fires what is left to fire and closes the table.  Returns the number of rows that were written.
 */
extern int64 dp_writer_close(DpWriter *w);

/*
 * Makes visible what this command has written so far, through writers or
 * otherwise, and reads with a new snapshot from here on.
 */
extern void dp_writer_refresh(DpWriter *w);

/*
 * References to rows that have been found, or will be, stay good when the
 * snapshot is renewed: what was seen is kept until the writer is closed.
 */
extern void dp_writer_keep(DpWriter *w);

/* dp_writer_refresh() where rows that were found before are still going to be written. */
extern void dp_writer_look_again(DpWriter *w);

/*
 * Whether the rows that are updated from here on are new ones of this
 * statement: then their former entries in indexes cannot be removed yet, and
 * indexes are not asked to try, which would cost more than the entries.
 */
extern void dp_writer_fresh(DpWriter *w, bool fresh);

extern Relation dp_writer_relation(DpWriter *w);

/*
 * Finding.  Makes the first row with these values current, in the version that
 * is committed (or our own); false if there is none.  The values, none of them
 * null, have to stay where they are as long as dp_writer_next() is called:
 * it goes on; between the two the row may be locked and written.
 */
extern bool dp_writer_find(DpWriter *w, DpLookup *lookup, const Datum *values);
extern bool dp_writer_next(DpWriter *w);

/*
 * Whether the transaction's snapshot, and what it has written itself, shows a
 * row with these values; before REPEATABLE READ there is no such snapshot, and
 * it is always true.
 */
extern bool dp_writer_shown(DpWriter *w, DpLookup *lookup, const Datum *values);

/*
 * Going through a table, or a partition of the writer's table, in the order in
 * which rows lie: those between two places.  The next row becomes current, and
 * may be locked and written before it goes on; what is written meanwhile is not
 * met again.  It ends by itself with the last row, or with dp_writer_close().
 * Raises FEATURE_NOT_SUPPORTED for tables without such places.
 */
extern void
dp_writer_scan(DpWriter *w, Oid relid, const ItemPointerData *first, const ItemPointerData *last);
extern bool dp_writer_scan_next(DpWriter *w);

/* Rows that have been found can be kept, put in order and come back to. */
typedef struct DpRowRef
{
	Oid relid; /* the table or the partition */
	ItemPointerData tid;
	uint32 epoch;
} DpRowRef;

extern void dp_writer_ref(DpWriter *w, DpRowRef *ref);

/*
 * Makes the row of a reference current, as it was when it was found; false if nothing is left of
 * it.
 */
extern bool dp_writer_fetch(DpWriter *w, const DpRowRef *ref);

/*
 * The same for a row that this transaction has written itself: only relid and tid need to be set.
 */
extern bool dp_writer_fetch_own(DpWriter *w, const DpRowRef *ref);

/*
 * Locking the current row.  Waits for those who are writing it and follows it
 * to its latest version, which becomes current.
 */
typedef enum DpLockResult
{
	DP_LOCK_OK,      /* locked; it is as it was read */
	DP_LOCK_CHANGED, /* locked; it has changed since: look at it again */
	DP_LOCK_GONE,    /* deleted, or moved to another partition: look it up again */
	DP_LOCK_SKIPPED, /* another transaction has it (only with LockWaitSkip) */
	DP_LOCK_CIRCLE /* its holder waits for us (only after dp_writer_leave()); it is still current */
} DpLockResult;

extern DpLockResult dp_writer_lock(DpWriter *w, LockTupleMode mode);

/*
 * The same for the row that dp_writer_find() has found last, by columns and not
 * by expressions: if it does not have these values any more it is gone.
 */
extern DpLockResult dp_writer_lock_found(DpWriter *w, LockTupleMode mode, LockWaitPolicy wait);

/*
 * The current row.  All point into it: they are valid until another one
 * becomes current or it is written.  dp_writer_document() is detoasted, NULL for a null.
 * The key is that of the partition's or table's primary key.
 */
extern TupleTableSlot *dp_writer_row(DpWriter *w);
extern struct varlena *dp_writer_document(DpWriter *w);
extern void dp_writer_key(DpWriter *w, DpKey *key);

/*
 * Writing the current row, which is not current any more afterwards.  A
 * document that is the same to the byte is not written.
 *
 * A row that was not locked may be written too, which saves the lock: returns
 * DP_WRITE_CHANGED if it is no longer as it was read, and has done nothing.  It
 * has then waited for who changed it: find the row and make the document anew.
 */
typedef enum DpWriteResult
{
	DP_WRITE_DONE,
	DP_WRITE_SAME, /* nothing differs */
	DP_WRITE_CHANGED,
	DP_WRITE_CIRCLE /* as DP_LOCK_CIRCLE */
} DpWriteResult;

extern DpWriteResult dp_writer_update(DpWriter *w, struct varlena *doc);
extern DpWriteResult dp_writer_delete(DpWriter *w);

/* The same with all columns, in the order of the table (of the partition, for update). */
extern DpWriteResult dp_writer_update_row(DpWriter *w, const Datum *values, const bool *nulls);

/*
 * A new row: a document, the other columns having their defaults, or all
 * columns in the order of the table.
 */
extern void dp_writer_insert(DpWriter *w, struct varlena *doc);
extern void dp_writer_insert_row(DpWriter *w, const Datum *values, const bool *nulls);

/*
 * Many new rows, all columns of each: less is done for each where no triggers for rows are there.
 */
extern void dp_writer_insert_rows(DpWriter *w, Datum *const *values, bool *const *nulls, int n);

#endif /* DP_KIT_ROWS_WRITE_H */
