/*
 * moves.h
 *		Rows whose keys change, until the end of the statement that changes them.
 *
 * Side tables store their rows under the row's key.  When keys change, side rows get the new keys
 * at the end of the statement, all at once, because rows may exchange their keys.
 *
 * A cross-partition update is executed as DELETE and INSERT.  The BEFORE UPDATE trigger records the
 * new key so that the DELETE is not treated as a deletion.  Records without a following change are
 * discarded.
 *
 * A user's trigger may change or delete such a row again in a nested statement.  Its side rows
 * still have the first key, so the second change is deferred to the outer statement and merged with
 * the first.
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
	bool announced; /* recorded by BEFORE UPDATE only */
	bool by_key;    /* by a foreign key action */
	bool waits;     /* deferred to the outer statement; its own has ended */
	bool deleted;   /* the row was then deleted */
	int flags;      /* the pattern's own; merged with those of merged moves */
	int depth;      /* trigger depth */
	DpKey from;
	DpKey to;
} DpMove;

/* BEFORE UPDATE of a row: records its new key, if it changes; else returns NULL. */
extern DpMove *dp_moves_before(DpDecl *decl, TriggerData *trigdata);

/*
 * AFTER DELETE of a row, or UPDATE that changes its key.  Returns the move if the row continues
 * under another key, or is deleted and had moved; NULL if it is deleted under its stored key.  Sets
 * *from to its old key.
 */
extern DpMove *dp_moves_after(DpDecl *decl, TriggerData *trigdata, DpKey *from);

/*
 * Returns the key under which a row's side rows are stored now; it differs only if an outer
 * statement changed the key.
 */
extern void dp_moves_origin(DpDecl *decl, const DpKey *key, DpKey *origin);

/*
 * The same for a function that a trigger calls: the trigger's statement may have changed the key,
 * too.  The other one returns whether rows under this key, or any if NULL, may belong to another
 * row, or those of its row are stored elsewhere.
 */
extern void dp_moves_stored(DpDecl *decl, const DpKey *key, DpKey *stored);
extern bool dp_moves_pending(DpDecl *decl, const DpKey *key);

/*
 * AFTER INSERT or UPDATE of a row with this key.  If rows stored under it may belong to another
 * row, or this row's are stored elsewhere, records a change from the key to itself and returns it;
 * else NULL.
 */
extern DpMove *dp_moves_stay(DpDecl *decl, const DpKey *key);

/* BEFORE or AFTER INSERT of a row into a partition: true if it comes from another one. */
extern bool dp_moves_arriving(DpDecl *decl, const DpKey *key);

/*
 * AFTER the statement: removes and returns its key changes that took place, a list of DpMove; NIL
 * if there are none.  The side rows of deleted rows must be deleted.  The list is in the current
 * context, its moves live as long as the transaction.
 */
extern List *dp_moves_take(DpDecl *decl);

#endif /* DP_KIT_SIDE_MOVES_H */
