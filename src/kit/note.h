/*
 * note.h
 *		Work that maintenance defers to another transaction, because waiting would deadlock.
 *
 * A statement has locked its row before any trigger runs.  If two tables maintain data in each
 * other, no lock order prevents that two statements each need the row that the other one holds.  So
 * before maintenance waits for a row or group lock, it checks whether the wait would deadlock.  If
 * so, it inserts a note and continues.  A note names the declaration, the value to recompute, and
 * the table in which the other transaction holds a row.  That transaction waits for this one,
 * perhaps through others, so it commits later and reads the note before.
 *
 * Before it commits or is prepared, a transaction that has written anything reads the notes about
 * tables in which it may hold rows: one of our triggers was called there, a writer was opened or a
 * group was locked (dp_note_watch()).  It processes
 *
 * - its own notes, waiting for locks unless that would deadlock.  Then the note stays, and the lock
 *   holder waits for this transaction to end;
 * - notes of other transactions without waiting, but like its own if it holds one of the locks
 *   involved.
 *
 * It repeats this until it has processed nothing and waited for nothing, because new notes may
 * arrive meanwhile.
 *
 * Processing a note recomputes from committed data, so it may happen twice and in any order.  The
 * transaction that processed a note deletes it.  It must hold locks on
 *
 * - the rows to be written, even correct ones, unless nothing can make them wrong without one of
 *   the following locks;
 * - for values copied from a row (references, relationships, documents on trees), that row, because
 *   its holder may have found the copy correct before;
 * - for a group, the group lock, against all that inserted its rows or rows of its source.
 *
 * If another transaction holds one of these, the note stays.  So every inconsistency has a note at
 * all times: in each snapshot, pattern_check() reports only what docpatterns.notes lists.
 *
 * Until the second commit, others read the row without the first transaction's change.  If the
 * second transaction aborts, locked the row only by SELECT .. FOR UPDATE, or became read-only, this
 * lasts until the next transaction that writes to the table.  An error while processing fails the
 * commit of a transaction that holds one of the locks.  Other transactions only mark the note as
 * failed; pattern_repair() then processes it.
 *
 * test/env/note_model.pl explores all interleavings.
 */
#ifndef DP_KIT_NOTE_H
#define DP_KIT_NOTE_H

#include "access/htup_details.h"
#include "storage/lock.h"

#include "bson/layout.h"
#include "kit/declaration.h"

/*
 * Before its commit, this transaction processes notes about the table or partition: it may hold
 * rows of it.
 */
extern void dp_note_watch(Oid relid);

/* Does the same for all notes about declarations of the table, including failed ones. */
extern void dp_note_repair(Oid relid);

/*
 * Inserts a note.  value is an argument for the pattern's process_note(); the other transaction
 * holds a row or group lock in the table held.  Called by process_note() with the value that it
 * processes, keeps that note.
 */
extern void dp_note(DpDecl *decl, const DpValue *value, Oid held);

/* Takes a lock, waiting for it; returns false if that would deadlock. */
extern bool dp_note_lock(const LOCKTAG *tag, LOCKMODE mode);

/*
 * Waits for a transaction that holds a row; returns false if that would deadlock.  With must,
 * raises T_R_DEADLOCK_DETECTED instead.
 */
extern bool dp_note_wait(TransactionId xid, Relation rel, ItemPointer tid, bool must);

/* True while a note of another transaction is processed, when nothing may wait. */
extern bool dp_note_nowait(void);

/*
 * Called before a row is locked or written.  If a note of another transaction is being processed
 * and this transaction already holds the row, it handles the note like its own: an error fails its
 * commit.
 */
extern void dp_note_row(HeapTupleHeader row);

#endif /* DP_KIT_NOTE_H */
