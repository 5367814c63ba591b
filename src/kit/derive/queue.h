/*
 * queue.h
 *		Deferred work: a table of keys and what to do for each.
 *
 * The queue of a declaration is an ordinary table beside the target, <target>_<name>_queue, created
 * by the SQL function _derive_create_queue():
 *
 *		id			bigint, identity, primary key
 *		key			bson_value: the group
 *		delta		bson, or null: recompute the group
 *		queued_at	timestamptz, by the clock
 *
 * with an index on (key, id) and a guard trigger.  Its link ID is an option of the declaration.
 *
 * Inserting never waits.  Dequeuing uses SKIP LOCKED and deletes, so each entry takes effect once,
 * in the transaction that commits.  Two transactions may dequeue entries of one key, so processing
 * must be independent of order: sums are, and so is recomputation under the group's lock with a
 * snapshot taken after it.
 */
#ifndef DP_KIT_DERIVE_QUEUE_H
#define DP_KIT_DERIVE_QUEUE_H

#include "nodes/pg_list.h"

#include "bson/layout.h"
#include "kit/declaration.h"

typedef struct DpQueue DpQueue;

/*
 * Opens the queue of a declaration, whose option (usually "second_link_id") names
 * the link ID.  Raises OBJECT_NOT_IN_PREREQUISITE_STATE if the table is missing.
 */
extern DpQueue *dp_queue_open(DpDecl *decl, const char *option);
extern void dp_queue_close(DpQueue *queue);

/* Adds an entry; delta may be NULL. */
extern void dp_queue_add(DpQueue *queue, const DpValue *key, struct varlena *delta);

/* Dequeued entries of one key: all that could be locked. */
typedef struct DpQueued
{
	struct varlena *key; /* a bson_value */
	bool recompute;      /* an entry had no delta */
	List *deltas;        /* bsons, in the order in which they were added */
	int64 entries;
} DpQueued;

/*
 * Dequeues up to most entries, but all entries of each key that can be locked, in key order
 * (compared as bson_values); only those of key unless it is NULL.  Returns DpQueueds in the current
 * context, NIL if there is nothing to dequeue.
 */
extern List *dp_queue_take(DpQueue *queue, const DpValue *key, int64 most);

/*
 * For maintenance, which does not wait for locks (maintain.h): while dp_queue_passing is set,
 * dp_queue_take() without a key starts after the key "after", counts the entries that it dequeues,
 * and remembers their last key.
 */
typedef struct DpQueuePass
{
	MemoryContext context; /* of the keys */
	struct varlena *after; /* bson_values, or NULL */
	struct varlena *last;
	int64 entries;
} DpQueuePass;

extern DpQueuePass *dp_queue_passing;

/* True if there is an entry of that key with an equal delta. */
extern bool dp_queue_has(DpQueue *queue, const DpValue *key, struct varlena *delta);

/* Deletes all entries, also locked ones: for repair, build and disable, which do all the work. */
extern void dp_queue_clear(DpQueue *queue);

#endif /* DP_KIT_DERIVE_QUEUE_H */
