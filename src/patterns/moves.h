/*
 * moves.h
 *		Rows whose keys change, until the end of the statement that changes them.
 *
 * What a pattern keeps of a row in a table of its own lies there under the
 * row's key.  When keys change it moves along, but only at the end of the
 * statement, all at once: keys may change places.
 *
 * A row that goes to another partition is deleted and inserted.  So its new
 * key is announced when it is seen before the update; the deletion that follows
 * is then known to be none.  What was announced and did not happen is void.
 */
#ifndef DP_PATTERNS_MOVES_H
#define DP_PATTERNS_MOVES_H

#include "commands/trigger.h"

#include "patterns/declaration.h"
#include "patterns/rowkey.h"

typedef struct DpMove
{
	Oid			target;			/* table, */
	char	   *pattern;		/* pattern */
	char	   *name;			/* and name of the declaration */
	bool		announced;		/* not more than that yet */
	int			depth;			/* of the triggers that have seen it, one inside the other */
	int			nestlevel;		/* of the transaction that has seen it */
	DpKey		from;
	DpKey		to;
} DpMove;

/* BEFORE UPDATE of a row: announces the new key of one in a partition. */
extern void dp_moves_before(DpDecl *decl, TriggerData *trigdata);

/*
 * AFTER DELETE of a row, or UPDATE that changes its key.  Returns whether the
 * row goes on under another key; else it is gone.  *from is its old key.
 */
extern bool dp_moves_after(DpDecl *decl, TriggerData *trigdata, DpKey *from);

/*
 * AFTER the statement: takes out its moves that took place, a list of DpMove; NIL if there are none.
 * The list is in the current context, what is in it lives as long as the transaction.
 */
extern List *dp_moves_take(DpDecl *decl);

#endif							/* DP_PATTERNS_MOVES_H */
