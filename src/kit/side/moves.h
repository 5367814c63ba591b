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
 *
 * A trigger of the user's may change the key of such a row once more, or delete
 * it, by a statement that ends before the one around it.  What lies aside is
 * still under the row's first key then, so the second move waits for the
 * statement around it, and both are joined.
 */
#ifndef DP_KIT_SIDE_MOVES_H
#define DP_KIT_SIDE_MOVES_H

#include "commands/trigger.h"

#include "kit/declaration.h"
#include "kit/key.h"
#include "kit/statement.h"

typedef struct DpMove
{
	DpState state;
	Oid target;     /* table, */
	char *pattern;  /* pattern */
	char *name;     /* and name of the declaration */
	bool announced; /* not more than that yet */
	bool by_key;    /* by the action of a foreign key */
	bool waits;     /* its own statement has ended, the one around it has not */
	bool gone;      /* the row was deleted then */
	int flags;      /* of the pattern's own; those of joined moves are joined */
	int depth;      /* of the triggers that have seen it, one inside the other */
	DpKey from;
	DpKey to;
} DpMove;

/* BEFORE UPDATE of a row: announces its new key, if it has one; else returns NULL. */
extern DpMove *dp_moves_before(DpDecl *decl, TriggerData *trigdata);

/*
 * AFTER DELETE of a row, or UPDATE that changes its key.  Returns the move if
 * the row goes on under another key, or is gone and had moved; NULL if it is
 * gone from where it was.  *from is its old key.
 */
extern DpMove *dp_moves_after(DpDecl *decl, TriggerData *trigdata, DpKey *from);

/*
 * The key under which lies what the row has that a statement around this one gave the key; mostly
 * the same.
 */
extern void dp_moves_origin(DpDecl *decl, const DpKey *key, DpKey *origin);

/*
 * AFTER INSERT or UPDATE of a row with this key: if what lies under it may be
 * another row's yet, or the row's own lies elsewhere, it becomes one more that
 * moves, from the key to itself, and is returned; else NULL.
 */
extern DpMove *dp_moves_stay(DpDecl *decl, const DpKey *key);

/* BEFORE or AFTER INSERT of a row into a partition: whether it comes from another one. */
extern bool dp_moves_arriving(DpDecl *decl, const DpKey *key);

/*
 * AFTER the statement: takes out its moves that took place, a list of DpMove; NIL if there are
 * none. Where rows are gone, what lies aside is to be dropped.  The list is in the current context,
 * what is in it lives as long as the transaction.
 */
extern List *dp_moves_take(DpDecl *decl);

#endif /* DP_KIT_SIDE_MOVES_H */
