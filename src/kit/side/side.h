/*
 * side.h
 *		Side tables: their rows follow the rows of the user's table.
 *
 * A side table has rows for a row of the user's table, found by its key.  Its columns key, or key1,
 * key2, ..., contain that key.
 *
 * A trigger function calls dp_side_trigger(), or the parts of it that it needs.  Rows of deleted
 * rows are deleted at once, unless a trigger has inserted a row with the same key again: then they
 * belong to it, because they may be its own.
 *
 * Those of rows whose keys change are moved at the end of the statement (moves.h): all leave,
 * because rows may exchange their keys; then all arrive; then each row of the user's table is
 * corrected.
 */
#ifndef DP_KIT_SIDE_SIDE_H
#define DP_KIT_SIDE_SIDE_H

#include "kit/side/moves.h"

/*
 * Returns the side table with this link ID.  columns lists those that it must have, "name type",
 * "name type identity", or "{side key}" for the columns of the key, separated by ", "; those before
 * "; " are its primary key.  Sets numbers, unless NULL, to their attribute numbers.
 *
 * Raises OBJECT_NOT_IN_PREREQUISITE_STATE if the table is missing or differs: its owner may alter
 * it, and any user may create any table with its triggers.  The declaration is reloaded when the
 * table is altered, so that a pattern may remember what this function returns.
 */
extern Oid
dp_side_find(DpDecl *decl, const char *link_id, const char *columns, AttrNumber *numbers);

/* Raises the error for a missing table. */
extern void dp_side_is_missing(DpDecl *decl) pg_attribute_noreturn();

/*
 * What a pattern does with its side table; a part of its DpPattern.  The first three functions are
 * called inside SPI_connect().
 */
typedef struct DpSideMethods
{
	/*
	 * Takes the rows of move->from out of the table.  Returns what arrive() needs, NULL if there
	 * are none.  If move->deleted, they are deleted: arrive() will not be called.
	 */
	void *(*leave)(DpDecl *decl, const DpMove *move);

	/* Stores them under move->to.  Rows that are there already are newer: a trigger wrote them. */
	void (*arrive)(DpDecl *decl, const DpMove *move, void *rows);

	/* Corrects the row with the key move->to; if move->deleted, it was inserted again.  Optional.
	 */
	void (*correct)(DpDecl *decl, const DpMove *move);

	/* Deletes rows whose row in the user's table does not exist. */
	void (*drop_orphans)(DpDecl *decl);
} DpSideMethods;

/*
 * BEFORE UPDATE and AFTER DELETE of rows, AFTER UPDATE that changes keys, and the end of statements
 * that may have moved rows, or TRUNCATE.  Does nothing on INSERT.
 */
extern void dp_side_trigger(DpDecl *decl, TriggerData *trigdata);

/* The part for AFTER triggers of a row.  Returns the move, if the side rows are not yet deleted. */
extern DpMove *dp_side_after(DpDecl *decl, TriggerData *trigdata);

/* The part for the end of statements. */
extern void dp_side_statement(DpDecl *decl, TriggerData *trigdata);

/*
 * Deletes the rows of a side table, called side, whose base row does not exist, and those that
 * satisfy a condition: SQL text before the other one, as "side.until < ... OR", or "".
 */
extern void dp_side_drop_orphans(DpDecl *decl, Oid side, const char *condition);

#endif /* DP_KIT_SIDE_SIDE_H */
