/*
 * queue.h
 *		Work that is put off: a table of keys, with what is to be done.
 *
 * The queue of a declaration is an ordinary table beside the target,
 * <target>_<name>_queue, made by the SQL function _derive_create_queue():
 *
 *		id			bigint, identity, primary key
 *		key			bson_value: the group
 *		delta		bson, or null: the group is to be computed anew
 *		queued_at	timestamptz, by the clock
 *
 * with an index on (key, id) and a guard.  Its pair is an option of the
 * declaration (by the name that is given below).
 *
 * Adding never waits for anybody.  Taking locks entries for the transaction,
 * leaves out those that others have taken, and deletes them; so work is done
 * once, by the transaction that commits, and not at all by one that does not.
 * Entries of one key may be taken by two transactions at a time: what they do
 * to the group must be right in any order (sums are; computing anew is, under
 * the group's lock with the latest snapshot taken after it).
 */
#ifndef DP_KIT_DERIVE_QUEUE_H
#define DP_KIT_DERIVE_QUEUE_H

#include "nodes/pg_list.h"

#include "bson/layout.h"
#include "kit/declaration.h"

typedef struct DpQueue DpQueue;

/*
 * Opens the queue of a declaration, whose option (usually "second_pair") names
 * the pair.  Raises OBJECT_NOT_IN_PREREQUISITE_STATE if the table is missing.
 */
extern DpQueue *dp_queue_open(DpDecl *decl, const char *option);
extern void dp_queue_close(DpQueue *queue);

/* Adds an entry; delta may be NULL. */
extern void dp_queue_add(DpQueue *queue, const DpValue *key, struct varlena *delta);

/* What was taken: all entries of one key that could be taken. */
typedef struct DpQueued
{
	struct varlena *key; /* a bson_value */
	bool anew;           /* an entry had no delta */
	List *deltas;        /* bsons, in the order in which they were added */
	int64 entries;
} DpQueued;

/*
 * Takes up to most entries, but all that can be taken of each key that is begun, in the
 * order of keys (compared as bson_values); key, if not NULL, is the only one
 * that is wanted.  Returns DpQueueds in the current context, NIL if there is nothing to take.
 */
extern List *dp_queue_take(DpQueue *queue, const DpValue *key, int64 most);

/* Whether there is an entry of that key with an equal delta. */
extern bool dp_queue_has(DpQueue *queue, const DpValue *key, struct varlena *delta);

/*
 * Deletes everything, without looking at what others have taken: for repair, build and disable,
 * which do all the work.
 */
extern void dp_queue_clear(DpQueue *queue);

#endif /* DP_KIT_DERIVE_QUEUE_H */
