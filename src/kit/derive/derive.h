/*
 * derive.h
 *		Derived data: fields of documents that follow from rows of another table.
 *
 * Words:
 *
 *		target		a table whose documents carry derived fields
 *		source		the table that they are derived from; may be the same table
 *		group		the rows of a source that belong together, known by the value
 *					of the link; its target row shows what was derived of them
 *		derivation	one declaration, as seen from the source
 *
 * What a pattern gives is a DpDeriveMethods in its DpPattern.  What it gets: triggers that do
 * everything (dp_derive_trigger() is all that its trigger function calls), for
 * any statement, with the locks in one order and each target row written once
 * for all derivations that concern it, of whatever pattern.
 *
 * How a statement on a source is handled, after the statement:
 *
 *	1.	take() is called for each row that went away (sign -1) and each that came
 *		(+1), and adds it to the state of its group or groups.
 *	2.	Groups of deferred derivations are given to enqueue() and are done.
 *	3.	group_lock() may ask for a lock of the group itself, for all groups in
 *		order of (derivation, hash of the key), before any row is locked.
 *	4.	The target rows of all groups are found, without a lock.  concerns() may
 *		say that a row needs no change: then it is neither locked nor written.
 *	5.	Where there are several groups, they are locked before, and a single one
 *		is when it has no row, and looked for again: so a target row that is
 *		inserted at the same time misses nothing.  create() may later make the row.
 *		Where only patterns write to the target, a group is locked if it has no row,
 *		and in 6, in the place that its row would have there.
 *	6.	The rows are locked in order of (target's OID, primary key), in their
 *		latest version at every isolation level.  Writing the row is a lock, too:
 *		apply() is first tried on a row that is not locked (group->locked is
 *		false), and again on the row that is locked (FOR NO KEY UPDATE) if it says
 *		that it must be (group->need_lock), if it changes nothing, or if the row was
 *		changed in the meantime.  A row that has gone since it was found: as in 5,
 *		again and again, because who deletes a row does not hold the group's lock.
 *	7.	apply() of all derivations that concern the row gives the new document,
 *		which is written once, and not at all if its bytes are the same.
 *	8.	What other derivations keep in a row that create() has made is computed
 *		anew, as in any new row.  Those that make the same rows have the same locks.
 *
 * A row that is inserted into a target, or whose link changes, gets the
 * fields of an empty group (protect()), and after the statement its groups are
 * computed again under the group's lock.  So is a row in which a user has written
 * something new to a derived field (strange()): it is left there until then, so that
 * EXCLUDED has it, and take_over() first puts it where it belongs, or refuses it.
 * In apply() and create() everything
 * must be read with the latest snapshot (dp_run() without DP_RUN_SNAPSHOT,
 * after dp_derive_reading()), because the transaction's may be older
 * than the lock.
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

/* A run: the groups of one statement (or refresh, or build), until they are written. */
typedef struct DpDerive DpDerive;

/* A row of a source: its columns, and its document. */
typedef struct DpSourceRow
{
	TupleTableSlot *slot; /* columns as those of the table that the triggers name; NULL if only the
							 document is known */
	struct varlena *doc; /* detoasted, an empty document for a null; for a relation of measurements,
							its columns as a document */
} DpSourceRow;

struct DpDerivation
{
	const DpDeriveMethods *methods;
	DpDecl *decl; /* of the main trigger, wherever that is */
	Oid source;   /* tables, not partitions */
	Oid target;
	char *pair;

	/* Set by methods->open(): */
	char *source_column; /* the source's document column; NULL: the only one, or the row as a
							document */
	DpPath
		*link; /* where the target's documents have the group's key; NULL: the primary key is it */
	bool create_missing; /* create() makes target rows; what others keep in them is computed with
							the new row */
	bool drop_empty;     /* a target row for which apply() returns NULL is deleted; else NULL is an
							error */
	bool deferred;       /* groups are enqueued */
	bool
		guarded; /* users cannot write to the target (it has guards): no protection, no late rows */
	void *state; /* the pattern's own, in context */

	MemoryContext context; /* the declaration's: all this lives as long as decl */
	char *place;           /* the path of the link as text, "_id" for the primary key */
	uint32 lock_id; /* of the locks of its groups: the same in all sessions, and for all who make
					   the same rows */
	struct DpLookup *lookup; /* engine: finds target rows */
};

/*
 * A group of a run.  Its target row may be several where the link is no unique
 * field: apply() is then called for each and must not use up the state.
 */
typedef struct DpGroup
{
	DpDerivation *derivation;
	DpDerive *run;
	DpValue key; /* never null; a copy in the run's memory */
	uint64 hash;
	void *state;  /* the pattern's, in the run's memory; NULL in a new group */
	List *gone;   /* what documents showed of rows that went (DpValue), where values are held
					 (adopt.h) */
	bool changed; /* take() has found anything: set by dp_derive_group() */
	bool
		recompute; /* the state tells nothing: compute from the source.  May be set by take() too */
	bool emptied;  /* with recompute: known to have no rows (the source was truncated) */
	bool several;  /* more than one target row has the key: apply() must not use up the state */
	bool locked;   /* the row is locked; else apply() must not use up the state either */
	bool need_lock;   /* set by apply() where it cannot do without: it is called again */
	bool due;         /* engine: is written by its run */
	bool alone;       /* engine: its run may make the row for another derivation: locked against all
						 others at once */
	LOCKMODE held;    /* engine: the lock that dp_derive_lock_groups() has taken, or NoLock */
	bool others_held; /* engine: the groups of others that keep something in the row that is made
						 are locked */
	bool found;       /* engine: a target row was found */
	bool again;       /* engine: the row has moved or gone: look again */
	bool noted;       /* a note of the group is being settled */
	bool left;        /* engine: a note of the group was left to its holder */
	struct DpGroup *next; /* engine */
} DpGroup;

struct DpDeriveMethods
{
	/* The main trigger is on the source (roll-up, fan-out) and not on the target. */
	bool main_on_source;

	/*
	 * Fills in what open() has to of a new derivation; its memory is d->context, which is current.
	 */
	void (*open)(DpDerivation *d);

	/*
	 * A row of the source came (+1) or went (-1): calls dp_derive_group() for
	 * each group that it belongs to (none: filter, no link) and changes
	 * group->state.  The current context is reset after each row; what is to
	 * stay goes to dp_derive_memory().
	 */
	void (*take)(DpDerivation *d, DpDerive *run, const DpSourceRow *row, int sign);

	/*
	 * Optional: whether two versions of a row belong to the same groups and
	 * give them the same, so that both are left out.  Equal documents are
	 * known to (unless reads_columns).
	 */
	bool (*same)(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after);
	bool reads_columns; /* take() looks at columns beside the document */
	bool refuses;       /* apply() may refuse what a source has: never left to another transaction
						   (note.h) */

	/*
	 * Optional: all rows of the run have been taken in (or its groups made otherwise): adds
	 * groups that follow from those that are there.  Called first of all in dp_derive_end(),
	 * may take locks, must leave alone what it has seen before.
	 */
	void (*gather)(DpDerivation *d, DpDerive *run);

	/*
	 * Optional: whether what take() found out changes anything at all; if not, the
	 * group is left alone.
	 */
	bool (*changes)(DpDerivation *d, DpGroup *group);

	/*
	 * Optional: the lock of the group that this run needs before rows are locked;
	 * NoLock for none.  May take locks itself, may look at the source while it holds them,
	 * and may say that the group can be left alone after all (group->changed).
	 */
	LOCKMODE (*group_lock)(DpDerivation *d, DpGroup *group);

	/*
	 * Optional: whether the target row needs to be locked and written, looking at its latest
	 * committed version.
	 */
	bool (*concerns)(DpDerivation *d, DpGroup *group, struct varlena *doc);

	/*
	 * The document with the group's fields brought up to date: doc itself if
	 * nothing differs, or a new one in the current context.  NULL: delete the
	 * row (only with drop_empty).  What must be read from the source is read
	 * with the row locked only: without group->locked, set group->need_lock and
	 * return doc.  Inside SPI_connect(); statements are run with dp_run(..
	 * DP_RUN_AS_OWNER).
	 */
	struct varlena *(*apply)(DpDerivation *d, DpGroup *group, struct varlena *doc);

	/*
	 * For create_missing: a new document for a group that has no row, or NULL for none.  The group
	 * is locked.
	 */
	struct varlena *(*create)(DpDerivation *d, DpGroup *group);

	/*
	 * BEFORE ROW on a target that users may write to.  The new document with
	 * the derived fields of the old one (byte for byte, absent ones absent);
	 * with old NULL, with those of an empty group.  after itself if nothing differs.
	 */
	struct varlena *(*protect)(DpDerivation *d, struct varlena *before, struct varlena *after);

	/*
	 * Optional, BEFORE ROW on such a target: whether the derived fields of a row have
	 * something new, which is neither in the old one (NULL: it is inserted) nor what an
	 * empty group has.  What cannot be an old copy, or may be none.
	 */
	bool (*strange)(DpDerivation *d, struct varlena *before, struct varlena *after);

	/*
	 * With strange(): after the statement, before groups are locked.  Puts what is new in the
	 * document of a row of this transaction into the source, as the current user, or raises
	 * OBJECT_NOT_IN_PREREQUISITE_STATE; what is an old copy is left to apply().  key is NULL
	 * where the document has no link: it must be refused then.
	 */
	void (*take_over)(DpDerivation *d, const DpValue *key, struct varlena *doc, bool inserted);

	/*
	 * Optional: all that the source has for a group, as documents show it: a bson_value, an array.
	 */
	struct varlena *(*elsewhere)(DpDerivation *d, const DpValue *key);

	/* For deferred: puts the group into the queue; never waits. */
	void (*enqueue)(DpDerivation *d, DpGroup *group);

	/*
	 * For create_missing: adds all groups that the source has now
	 * (dp_derive_group()).  Called when more has changed than is told row by row.
	 */
	void (*all_groups)(DpDerivation *d, DpDerive *run);
};

/*
 * The trigger function of a pattern: "return dp_derive_trigger(fcinfo,
 * &dp_x_pattern)".  It is called by triggers
 *
 *		on the source	BEFORE and AFTER, for each statement, with transition tables
 *		on the target	BEFORE INSERT OR UPDATE, for each row
 *						AFTER INSERT OR UPDATE, for each statement
 *						and for create_missing AFTER DELETE, for each row,
 *						AFTER DELETE OR TRUNCATE, for each statement
 *
 * and knows its side by the arguments: 'side', pair, name; or the options, or
 * 'of', name.  A target that is guarded has the guard's triggers instead.
 */
extern Datum dp_derive_trigger(FunctionCallInfo fcinfo, const DpPattern *pattern);

/* Handles all that a table's changes mean to its derivations: see change.h. */
struct DpChanges;
extern void dp_derive_changes(struct DpChanges *changes);

/*
 * Derivations that a table (or a partition of it) feeds, and those that are
 * kept in it: DpDerivations, in the order of their locks.  Cached.
 */
extern List *dp_derivations_of_source(Oid relid);
extern List *dp_derivations_of_target(Oid relid);

/* The derivation of a declaration. */
extern DpDerivation *dp_derivation(DpDecl *decl);

/*
 * Runs of their own, for what is not a statement on the source: refreshing,
 * building, a tree or list of followers that changed.  dp_derive_end() does
 * steps 2 to 7 for all groups, as the targets' owner, and frees all; returns the number of
 * rows written.  With forced, deferred derivations are written too, and
 * groups without a row are not looked for again.
 */
extern DpDerive *dp_derive_begin(void);
extern int64 dp_derive_end(DpDerive *run, bool forced);

/* The run's memory: until dp_derive_end(). */
extern MemoryContext dp_derive_memory(DpDerive *run);

/* The group of that key, made if the run does not have it. */
extern DpGroup *dp_derive_group(DpDerive *run, DpDerivation *d, const DpValue *key);

/* Notes that a row which a document of the group showed so has gone. */
extern void dp_derive_gone(DpGroup *group, struct varlena *shown);

/* The same, or NULL if the run has none. */
extern DpGroup *dp_derive_find(DpDerive *run, DpDerivation *d, const DpValue *key);

/*
 * Brings one target row in line with one derivation (or all of its target's,
 * with d NULL): locks it and computes anew.  For pattern_build and repair.
 * Returns whether it had to be written; false also if there is no such row.
 */
extern bool dp_derive_settle(Oid target, DpDerivation *d, const DpKey *key);

/* Computes a group's rows again, because of a note (note.h). */
extern void dp_derive_settle_group(DpDerivation *d, const DpValue *key);

/*
 * Locks a group until the transaction ends.  Modes that fit together:
 * RowExclusiveLock for those who have looked for the target row in vain,
 * ShareLock for those who insert it or change its link, ExclusiveLock for
 * create_missing; patterns may use others among themselves.  Beyond 256 in a
 * transaction one lock for the whole derivation takes their place.
 */
extern void dp_derive_lock_group(DpDerivation *d, uint64 hash, LOCKMODE mode);

/*
 * The same; false: its holder waits for us, and is left a note of the group (note.h), which is
 * no longer due in this run.
 */
extern bool dp_derive_lock_or_leave(DpGroup *group, LOCKMODE mode);

/* Gives it back, by the statement that has taken it and relies on nothing that it protected. */
extern void dp_derive_unlock_group(DpDerivation *d, uint64 hash, LOCKMODE mode);

/* Whether this transaction has a lock of the group. */
extern bool dp_derive_holds_group(DpDerivation *d, uint64 hash);

/* The hash of a group's key. */
extern uint64 dp_derive_hash(const DpValue *key);

/*
 * To be called by apply() and create() before they read the source: makes the
 * statement's own rows visible, and notes, where a statement on the source is
 * still under way around this one, that its group must be computed anew at its
 * end, because what is read now already has some of its rows.
 */
extern void dp_derive_reading(DpGroup *group);

/*
 * A row that has to be locked together with what is written to its table, because rows of the
 * statement refer to it.
 */
typedef struct DpWish
{
	Oid table;
	DpDecl *decl;            /* knows the key of the table */
	struct DpLookup *lookup; /* finds rows by it */
	DpValue id;
	LockTupleMode mode;
	void *arg; /* the companion's */
} DpWish;

/* A pattern whose work belongs to the same statements as derived data: DpPattern.companion. */
typedef struct DpCompanion
{
	/* Called before and after what the statement derives is written. */
	void (*before)(Oid source);
	void (*after)(Oid source);

	/*
	 * The rows that references of the statement name in tables that it derives to: by table and
	 * id, each once, in the current context; *n of them.
	 */
	DpWish *(*wishes)(Oid source, int *n);

	/* Locks the row of a wish; may leave that, to be seen when it is read. */
	void (*lock)(const DpWish *wish);
} DpCompanion;

/* The companion that there is; its functions do nothing where it has no work. */
extern const DpCompanion *dp_companion(void);

#endif /* DP_KIT_DERIVE_DERIVE_H */
