/*
 * note.h
 *		Work that a transaction leaves to another one, because both would wait for
 *		each other.
 *
 * A statement holds the row that it was given before any trigger runs.  Where
 * two tables keep something in each other, no order of locks can prevent that
 * each of two statements wants the row that the other one holds.  So a
 * maintenance that would have to wait for a row asks the lock manager at once
 * whether this closes a circle.  If it does, it leaves a note instead and goes on:
 * what is to be brought in line, of which declaration.  The holder of the row waits
 * for us, so it finds the note when it looks for notes before it commits, and
 * brings the row in line then, with what we have committed.
 *
 * Who settles a note:
 *
 *	-	every transaction in which a trigger of a pattern was called looks for
 *		committed notes, and for its own ones, before it commits or is prepared;
 *	-	its own ones it settles too, unless waiting for the row still closes a
 *		circle: then the row's holder waits for this transaction to end;
 *	-	those of others it settles if it gets the row without waiting.  It
 *		waits for a row if it holds the lock of the row's group.  If that raises an error, it
 *		fails where it held the row, and else the note stays.
 *
 * Settling computes anew from what is committed then, so it may be done twice and in
 * any order; the note is deleted by the transaction that has settled it.  What
 * others read between the two commits is the row without the first one's
 * change.  Where the second one is rolled back, that lasts until the next
 * transaction that writes to a table with patterns.
 *
 * test/env/note_model.pl goes through all interleavings of this.
 */
#ifndef DP_PATTERNS_NOTE_H
#define DP_PATTERNS_NOTE_H

#include "access/htup_details.h"
#include "storage/lock.h"

#include "bson/layout.h"
#include "patterns/declaration.h"

/* This transaction looks for notes before it commits. */
extern void dp_note_watch(void);

/*
 * Leaves a note: the value, as the pattern's settle_note() understands it.
 * Inside of settle_note() with the value that is being settled, the note stays.
 */
extern void dp_note(DpDecl *decl, const DpValue *value);

/* Waits for a lock and takes it until the transaction ends; false: that would close a circle, it is not taken. */
extern bool dp_note_lock(const LOCKTAG *tag, LOCKMODE mode);

/*
 * Waits for a transaction that holds a row; false: that would close a circle.
 * With must, a circle raises T_R_DEADLOCK_DETECTED.
 */
extern bool dp_note_wait(TransactionId xid, Relation rel, ItemPointer tid, bool must);

/* Whether rows are only taken without waiting: a note of another transaction is being settled. */
extern bool dp_note_hurried(void);

/*
 * Before a row is locked or written: if a note of another transaction is being settled and we
 * hold the row already, the note was left to us, and its error is ours.
 */
extern void dp_note_row(HeapTupleHeader row);

#endif							/* DP_PATTERNS_NOTE_H */
