/*
 * derive.h
 *		Derived data: fields of documents that follow from rows of another table.
 *
 * Words:
 *
 *		target		a table whose documents have derived fields
 *		source		the table from which they are derived; may be the same table
 *		group		the rows of a source with the same value of the link; the target row
 *					shows what was derived from them
 *		derivation	one declaration, as seen from the source
 *
 * A pattern provides a DpDeriveMethods in its DpPattern.  Its trigger function only calls
 * dp_derive_trigger(), which handles any statement, takes locks in one order and writes each target
 * row once for all derivations of all patterns.
 *
 * After a statement on a source:
 *
 *	1.	take() is called for each old row (sign -1) and new row (+1), and adds it to the
 *		state of its group or groups.
 *	2.	Groups of deferred derivations are passed to enqueue() and are done.
 *	3.	group_lock() may request a lock of the group itself, for all groups in order of
 *		(derivation, hash of the key), before any row is locked.
 *	4.	The target rows of all groups are looked up without a lock.  If concerns() returns
 *		false, a row is neither locked nor written.
 *	5.	With several groups, all are locked first.  A single group is locked only if its
 *		row is missing, and the row is searched again, so a concurrently inserted target
 *		row is not missed.  create() may later make the row.  If only patterns write to
 *		the target, a group is locked only if it has no row, in step 6, in the order that
 *		its row would have there.
 *	6.	The rows are locked in order of (target's OID, primary key), in their latest
 *		version at every isolation level.  An update locks the row too, so apply() is
 *		first tried without a lock (group->locked is false).  It is repeated under FOR NO
 *		KEY UPDATE if it sets group->need_lock, changes nothing, or the row changed.  A
 *		row deleted since it was looked up is handled as in 5, repeatedly, because a
 *		DELETE does not lock the group.
 *	7.	apply() of all derivations of the row returns the new document, which is written
 *		once, and not at all if its bytes are the same.
 *	8.	Fields of other derivations in a row that create() made are recomputed, as in any
 *		new row.  Derivations that create the same rows share their group locks.
 *
 * A row that is inserted into a target, or whose link changes, gets the fields of an empty group
 * (protect()), and its groups are recomputed after the statement under the group's lock.  A row
 * with new user data in a derived field (has_user_data()) is handled the same way.  The data stay
 * in the row until the statement ends, so that EXCLUDED contains them; move_user_data() then moves
 * them to the source or raises an error.
 *
 * apply() and create() must read everything with the latest snapshot (dp_run() without
 * DP_RUN_SNAPSHOT, after dp_derive_reading()), because the transaction's snapshot may be older than
 * the lock.
 */
#ifndef DP_KIT_DERIVE_DERIVE_H
#define DP_KIT_DERIVE_DERIVE_H

#include "executor/tuptable.h"
#include "nodes/lockoptions.h"
#include "storage/lockdefs.h"

#include "bson/path.h"
#include "bson/reader.h"
#include "kit/declaration.h"
#include "kit/key.h"
#include "kit/registry.h"

typedef struct DpDerivation DpDerivation;
typedef struct DpDeriveMethods DpDeriveMethods;

/* A batch: the groups of one statement (or refresh, or build), until they are written. */
typedef struct DpDeriveBatch DpDeriveBatch;

/* A row of a source: its columns and its document. */
typedef struct DpSourceRow
{
	TupleTableSlot *slot; /* columns as in the triggers' table; NULL: only doc is known */
	struct varlena *doc; /* detoasted, an empty document for a null; for a relation of measurements,
							its columns as a document */
} DpSourceRow;

struct DpDerivation
{
	const DpDeriveMethods *methods;
	DpDecl *decl; /* of the main trigger, on either table */
	Oid source;   /* tables, not partitions */
	Oid target;
	char *link_id;

	/* Set by methods->open(): */
	char *source_column; /* the source's document column; NULL: the only one, or the row as a
							document */
	DpPath *link;        /* path of the group's key in target documents; NULL: the primary key */
	bool create_missing; /* create() makes target rows; other fields in them are computed with the
							new row */
	bool drop_empty;     /* a target row for which apply() returns NULL is deleted; else NULL is an
							error */
	bool deferred;       /* groups are enqueued */
	bool guarded;        /* users cannot write to the target: nothing to protect */
	void *state;         /* the pattern's own, in context */

	MemoryContext context; /* the declaration's; all this lives as long as decl */
	char *link_text;       /* the path of the link as text, "_id" for the primary key */
	uint32 lock_id; /* of its group locks: the same in all sessions, and for all derivations that
					   create the same rows */
	struct DpLookup *lookup; /* engine: finds target rows */
};

/*
 * A group of a batch.  It has several target rows if the link is not unique: apply() is then called
 * for each and must not consume the state.
 */
typedef struct DpGroup
{
	DpDerivation *derivation;
	DpDeriveBatch *batch;
	DpValue key; /* never null; a copy in the batch's memory */
	uint64 hash;
	void *state;          /* the pattern's, in the batch's memory; NULL in a new group */
	List *deleted_values; /* values with which documents showed deleted rows (DpValue), if values
				   are guarded (adopt.h) */
	bool changed;         /* take() found a change: set by dp_derive_group() */
	bool recompute; /* the state is incomplete: compute from the source. take() may set it too */
	bool emptied;   /* with recompute: has no rows, because the source was truncated */
	bool multiple;  /* several target rows have the key: apply() must not consume the state */
	bool locked;    /* the row is locked; else apply() must not consume the state either */
	bool need_lock; /* set by apply() to be called again with the lock */
	bool to_write;  /* engine: to be written by its batch */
	bool exclusive; /* engine: its batch may create the row for another derivation: locked
				   exclusively at once */
	LOCKMODE lock_mode; /* engine: the lock that dp_derive_lock_groups() took, or NoLock */
	bool others_held;   /* engine: the groups of other derivations in the created row are locked */
	bool found;         /* engine: a target row was found */
	bool retry;         /* engine: the row was moved or deleted: search again */
	bool from_note;     /* a note of the group is being processed */
	bool left;          /* engine: a note of the group was left to the lock holder */
	struct DpGroup *next; /* engine */
} DpGroup;

struct DpDeriveMethods
{
	/* The main trigger is on the source (roll-up, fan-out), not on the target. */
	bool main_on_source;

	/* Fills in its part of a new derivation; its memory is d->context, which is current. */
	void (*open)(DpDerivation *d);

	/*
	 * Adds (+1) or removes (-1) a row of the source: calls dp_derive_group() for each group of the
	 * row (none if the filter or link excludes it) and changes group->state.  The current context
	 * is reset after each row; dp_derive_memory() is for what must live longer.
	 */
	void (*take)(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign);

	/*
	 * Optional: true if two versions of a row contribute the same to the same groups, so that both
	 * are skipped.  Equal documents always are, unless reads_columns.
	 */
	bool (*same)(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after);
	bool reads_columns; /* take() reads columns other than the document */
	bool refuses;       /* apply() may raise errors about source data: never deferred to another
						   transaction (note.h) */

	/*
	 * Optional: called after all rows of the batch were taken (or its groups were added otherwise);
	 * adds groups that follow from the existing ones.  Called first in dp_derive_end(), may take
	 * locks, must ignore groups that it has seen before.
	 */
	void (*gather)(DpDerivation *d, DpDeriveBatch *batch);

	/* Optional: false if what take() collected changes nothing; the group is then skipped. */
	bool (*changes)(DpDerivation *d, DpGroup *group);

	/*
	 * Optional: the group lock that this batch needs before rows are locked, or NoLock.  May take
	 * locks itself, may read the source under them, and may clear group->changed to skip the group.
	 */
	LOCKMODE (*group_lock)(DpDerivation *d, DpGroup *group);

	/*
	 * Optional: true if the target row must be locked and written, judging by its latest committed
	 * version.
	 */
	bool (*concerns)(DpDerivation *d, DpGroup *group, struct varlena *doc);

	/*
	 * Returns the document with the group's fields updated: doc itself if nothing differs, or a new
	 * one in the current context.  NULL: delete the row (only with drop_empty).  Reads from the
	 * source only if the row is locked: without group->locked, set group->need_lock and return doc.
	 * Called inside SPI_connect(); statements run by dp_run(.. DP_RUN_AS_OWNER).
	 */
	struct varlena *(*apply)(DpDerivation *d, DpGroup *group, struct varlena *doc);

	/*
	 * For create_missing: returns a new document for a group without a row, or NULL for none.  The
	 * group is locked.
	 */
	struct varlena *(*create)(DpDerivation *d, DpGroup *group);

	/*
	 * BEFORE ROW on a target that users may write to.  Returns the new document with the derived
	 * fields of the old one (byte for byte, absent ones absent) or, without an old one, those of an
	 * empty group.  after itself if nothing differs.
	 */
	struct varlena *(*protect)(DpDerivation *d, struct varlena *before, struct varlena *after);

	/*
	 * Optional, BEFORE ROW on such a target: true if the derived fields of a row have new user
	 * data, which are neither in the old document (NULL for an insert) nor in an empty group.
	 * Returns true if in doubt.
	 */
	bool (*has_user_data)(DpDerivation *d, struct varlena *before, struct varlena *after);

	/*
	 * With has_user_data(): called after the statement, before groups are locked.  Moves new user
	 * data in a document that this transaction wrote to the source, as the current user, or raises
	 * OBJECT_NOT_IN_PREREQUISITE_STATE; leaves old copies to apply().  key is NULL if the document
	 * has no link: new data are then always an error.
	 */
	void (*move_user_data)(DpDerivation *d, const DpValue *key, struct varlena *doc, bool inserted);

	/* Optional: all source data of a group in the form of documents: a bson_value, an array. */
	struct varlena *(*elsewhere)(DpDerivation *d, const DpValue *key);

	/* For deferred: inserts the group into the queue; never waits. */
	void (*enqueue)(DpDerivation *d, DpGroup *group);

	/*
	 * For create_missing: adds all groups that the source has now (dp_derive_group()).  Called if
	 * not all changes were reported row by row.
	 */
	void (*all_groups)(DpDerivation *d, DpDeriveBatch *batch);
};

/*
 * The trigger function of a pattern is "return dp_derive_trigger(fcinfo, &dp_x_pattern)".  It is
 * called by triggers
 *
 *		on the source	BEFORE and AFTER, for each statement, with transition tables
 *		on the target	BEFORE INSERT OR UPDATE, for each row
 *						AFTER INSERT OR UPDATE, for each statement
 *						and for create_missing AFTER DELETE, for each row,
 *						AFTER DELETE OR TRUNCATE, for each statement
 *
 * and knows its table by the arguments: 'side', link_id, name; or the options; or 'of', name.  A
 * guarded target has guard triggers instead.
 */
extern Datum dp_derive_trigger(FunctionCallInfo fcinfo, const DpPattern *pattern);

/* Handles all effects of a table's changes on its derivations: see change.h. */
struct DpChanges;
extern void dp_derive_changes(struct DpChanges *changes);

/*
 * Derivations with this source (or an ancestor of it), and those with this target: DpDerivations,
 * in lock order.  Cached.
 */
extern List *dp_derivations_of_source(Oid relid);
extern List *dp_derivations_of_target(Oid relid);

/* The derivation of a declaration. */
extern DpDerivation *dp_derivation(DpDecl *decl);

/*
 * Batches that do not belong to a statement on the source: a refresh, a build, a changed tree or
 * list of followers.  dp_derive_end() does steps 2 to 7 for all groups, as the targets' owner, and
 * frees everything; returns the number of rows written.  With forced, deferred derivations are
 * written too, and groups without a row are not searched again.
 */
extern DpDeriveBatch *dp_derive_begin(void);
extern int64 dp_derive_end(DpDeriveBatch *batch, bool forced);

/* The batch's memory: until dp_derive_end(). */
extern MemoryContext dp_derive_memory(DpDeriveBatch *batch);

/* The group of that key, added if the batch does not have it. */
extern DpGroup *dp_derive_group(DpDeriveBatch *batch, DpDerivation *d, const DpValue *key);

/* Records the value with which documents of the group showed a deleted source row. */
extern void dp_derive_deleted(DpGroup *group, struct varlena *shown);

/* The group of that key, or NULL if the batch does not have it. */
extern DpGroup *dp_derive_find(DpDeriveBatch *batch, DpDerivation *d, const DpValue *key);

/*
 * Makes one target row consistent with one derivation (or all of its target's if d is NULL): locks
 * and recomputes it.  For pattern_build and pattern_repair.  Returns true if it was written; false
 * also if there is no such row.
 */
extern bool dp_derive_repair_row(Oid target, DpDerivation *d, const DpKey *key);

/* Recomputes a group's rows, because of a note (note.h). */
extern void dp_derive_recompute_group(DpDerivation *d, const DpValue *key);

/*
 * Locks a group until the transaction ends.  RowExclusiveLock: the target row was not found.
 * ShareLock: it is inserted, or its link changes.  ExclusiveLock: create_missing.
 * ShareRowExclusiveLock: the batch may create it for another derivation.  Patterns may use other
 * modes among themselves. After 256 locks in a transaction, one lock for the whole derivation
 * replaces further ones.
 */
extern void dp_derive_lock_group(DpDerivation *d, uint64 hash, LOCKMODE mode);

/*
 * Does the same.  Returns false if waiting would deadlock; a note of the group is inserted
 * (note.h), and this batch skips the group.
 */
extern bool dp_derive_lock_or_leave(DpGroup *group, LOCKMODE mode);

/*
 * Releases the lock early; only for the statement that took it and that relies on nothing it
 * protected.
 */
extern void dp_derive_unlock_group(DpDerivation *d, uint64 hash, LOCKMODE mode);

/* True if this transaction holds a lock of the group. */
extern bool dp_derive_holds_group(DpDerivation *d, uint64 hash);

/* The hash of a group's key. */
extern uint64 dp_derive_hash(const DpValue *key);

/*
 * Called by apply() and create() before they read the source.  Makes the statement's own rows
 * visible.  If an outer statement on the source is pending, its group must be recomputed at its
 * end, because some of its rows are read now; this records that.
 */
extern void dp_derive_reading(DpGroup *group);

/*
 * A row that must be locked in the same order as target rows, because rows of the statement refer
 * to it.
 */
typedef struct DpReferencedRow
{
	Oid table;
	DpDecl *decl;            /* has the table's key */
	struct DpLookup *lookup; /* finds rows by it */
	DpValue id;
	LockTupleMode mode;
	void *arg; /* the pattern's */
} DpReferencedRow;

/* Functions of a pattern that runs in the same statements as derived data: DpPattern.hooks. */
typedef struct DpDeriveHooks
{
	/* Called before and after derived data are written. */
	void (*before)(Oid source);
	void (*after)(Oid source);

	/*
	 * The rows in target tables that references of the statement name: by table and id, each once,
	 * in the current context; sets *n to their number.
	 */
	DpReferencedRow *(*referenced_rows)(Oid source, int *n);

	/* Locks such a row; may leave it unlocked, which shows when it is read. */
	void (*lock)(const DpReferencedRow *row);
} DpDeriveHooks;

/* The registered hooks; they do nothing if there is no work. */
extern const DpDeriveHooks *dp_derive_hooks(void);

#endif /* DP_KIT_DERIVE_DERIVE_H */
