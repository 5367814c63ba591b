/*
 * note.h
 *		Work that a transaction leaves to another one, because both would wait for
 *		each other.
 *
 * A statement holds the row that it was given before any trigger runs.  Where
 * two tables keep something in each other, no order of locks can prevent that
 * each of two statements wants the row that the other one holds.  So a
 * maintenance that would have to wait for a row, or for the lock of a group, asks the lock
 * manager at once whether this closes a circle.  If it does, it leaves a note instead and
 * goes on: what is to be brought in line, of which declaration, and of which table something is
 *held. Something that waits for us holds it, by itself or by way of others, ends after us, and
 *looks for notes before it commits.
 *
 * Before it commits or is prepared, a transaction that has written anything reads the notes about
 *tables that it may hold rows of: a trigger of ours was called there, or a writer opened, or a
 *group locked (dp_note_watch()).  It settles
 *
 *	-	its own, waiting for what it needs, unless that still closes a circle: then the
 *		note stays, and what holds it waits for this transaction to end;
 *	-	those of others without waiting for anything; if it turns out that it holds something of
 *		it, a row or the group, in the same way as its own.
 *
 * It looks again until it has settled nothing and waited for nothing: notes may have been
 * left to it meanwhile.
 *
 * Settling computes anew from what is committed then, so it may be done twice and in
 * any order; the note is deleted by the transaction that has settled it.  For that it has locked
 *
 *	-	the rows to be written, also those that are right: or it knows that nothing can make them
 *wrong without a lock of what comes next;
 *	-	for what is copied from a row (references, relationships, documents on trees), that row: its
 *holder may have found the copy in order before; -	for a group, its lock.
 *
 * Where one of these is held by others, the note stays.  So at any moment what is not in line has a
 *note: in each snapshot, pattern_check() reports nothing that is not about a row of
 *docpatterns.notes.
 *
 * What others read between the two commits is the row without the first one's
 * change.  Where the second one is rolled back, or held the row by SELECT .. FOR UPDATE alone, or
 *became read-only, that lasts until the next transaction that writes to the table.  An error is one
 * of the transaction that holds something of the note, whose commit fails.  Others only mark the
 * note, and leave it alone from then on: pattern_repair() settles it.
 *
 * test/env/note_model.pl goes through all interleavings of this.
 */
#ifndef DP_KIT_NOTE_H
#define DP_KIT_NOTE_H

#include "access/htup_details.h"
#include "storage/lock.h"

#include "bson/layout.h"
#include "kit/declaration.h"

/*
 * This transaction may hold rows of the table (or partition): it looks for notes about it before it
 * commits.
 */
extern void dp_note_watch(Oid relid);

/* The same for all notes about declarations of the table, and those that could not be settled. */
extern void dp_note_repair(Oid relid);

/*
 * Leaves a note: the value, as the pattern's settle_note() understands it, and the table
 * of which the other transaction holds a row or a group.  Inside of settle_note() with
 * the value that is being settled, the note stays.
 */
extern void dp_note(DpDecl *decl, const DpValue *value, Oid held);

/*
 * Takes a lock until the transaction ends or it is released, waiting for it; false: that would
 * close a circle.
 */
extern bool dp_note_lock(const LOCKTAG *tag, LOCKMODE mode);

/*
 * Waits for a transaction that holds a row; false: that would close a circle.
 * With must, a circle raises T_R_DEADLOCK_DETECTED.
 */
extern bool dp_note_wait(TransactionId xid, Relation rel, ItemPointer tid, bool must);

/* Whether nothing is waited for: a note of another transaction is being settled. */
extern bool dp_note_hurried(void);

/*
 * Before a row is locked or written: if a note of another transaction is being settled and we
 * hold the row already, the note was left to us, and its error is ours.
 */
extern void dp_note_row(HeapTupleHeader row);

#endif /* DP_KIT_NOTE_H */
