/*
 * reference.h
 *		The extended reference pattern: declarations that its files share.
 *
 * Documents of a table (the target) refer by key to documents of another or the
 * same table (the source), and contain copies of some of their fields.  Each
 * reference in a document is a site:
 *
 *	customer: {_id: 123, name: "...", address: {...}}		a sub-document
 *	items: [{_id: 1, ...}, {_id: 2, ...}]					an array of them
 *	comments: [{text: "...", author: {id: 7, ...}}]			a path through arrays
 *	customer: 123											a bare id, which is expanded
 *
 * Live copies follow the source, frozen ones keep their first value.  The fields to
 * copy from a source are in a small document, its extract: its live and frozen
 * fields in the order of the declaration.
 *
 * fill.c changes documents and reads no table, reference.c has the triggers of the
 * target, collect.c the ids of a statement, lock.c its locks, source.c the triggers
 * of the source and functions that read it, pass.c corrects the rows that refer to
 * a source, calls.c has the functions for indexes, checks and verbs.
 */
#ifndef DP_PATTERNS_REFERENCE_REFERENCE_H
#define DP_PATTERNS_REFERENCE_REFERENCE_H

#include "bson/path.h"
#include "bson/reader.h"
#include "kit/derive/derive.h"
#include "kit/declaration.h"
#include "kit/key.h"
#include "kit/rows/write.h"

typedef enum DpRefDelete
{
	DP_REF_RESTRICT,
	DP_REF_CASCADE,
	DP_REF_UNSET,
	DP_REF_KEEP
} DpRefDelete;

typedef struct DpReference
{
	DpDecl *decl;     /* of the target */
	DpPath *field;    /* path of sites, names only; arrays on it are searched */
	DpPath *id_field; /* of one part */
	DpPath **live;
	int nlive;
	DpPath **frozen;
	int nfrozen;
	DpRefDelete on_delete;
	bool missing_error;
	bool deferred;
	char *link_id;
	DpDecl *source; /* key and document column of the source; NULL until it is looked for */
	DpLookup *source_key;
	DpLookup *by_id; /* target rows by the id of a site outside of arrays */
} DpReference;

/* What to do with a site */
typedef enum DpRefAction
{
	DP_REF_LEAVE,
	DP_REF_REPLACE, /* by replacement */
	DP_REF_REMOVE   /* the field, or the element of the innermost array */
} DpRefAction;

/*
 * A site that names a source: where the path ends, in a document that must
 * outlive this.
 */
typedef struct DpRefSite
{
	DpValue value; /* a document, or the bare id */
	DpValue id;
	bool bare;
	int depth; /* containers around value */
	const uint8
		*element;    /* the innermost array element around or at it (its value's bytes), or NULL */
	bool is_element; /* value is that element itself */
	DpRefAction action;
	bool element_goes; /* with DP_REF_REMOVE: the whole element */
	DpValue replacement;
} DpRefSite;

typedef struct DpRefSites
{
	DpRefSite *v;
	int n;
	int cap;
	bool met_array; /* the path has passed through or ended at an array */
} DpRefSites;

/* The pattern's view of a declaration. */
extern DpReference *dp_reference(DpDecl *decl);

/* fill.c */

/* Sites of a document that name a source, in their order; palloc'd. */
extern void dp_ref_sites(const DpPath *field, const DpPath *id_field, const uint8 *doc, uint32 size,
						 DpRefSites *sites);

/* The fields to copy from a source's document: a new bson */
extern struct varlena *dp_ref_extract(const DpReference *ref, const uint8 *doc, uint32 size);

/* How to fill a site */
typedef struct DpRefFill
{
	const DpValue *extract;     /* of the source, NULL if there is none: then copies stay */
	const DpValue *id;          /* the id to be written, or NULL for the one that is there */
	const DpRefSite *before;    /* the same reference in the old document; NULL: new */
	const DpRefSite *displaced; /* the value before another reference, or NULL */
	bool freeze;                /* fill frozen fields in that are absent */
} DpRefFill;

/* Sets in the site what to write; returns whether anything is. */
extern bool dp_ref_fill(const DpReference *ref, DpRefSite *site, const DpRefFill *fill);

/* The first live copy of a site that is not the source's, or NULL. */
extern const DpPath *
dp_ref_wrong(const DpReference *ref, const DpRefSite *site, const DpValue *extract);

/* The document with what the sites' actions say; a new bson. */
extern struct varlena *
dp_ref_rebuild(const DpReference *ref, const uint8 *doc, uint32 size, DpRefSites *sites);

/*
 * Finds for each site of a new document the one of the old document with the same source:
 * before[i] is the old site of new site i, or NULL. Each old site is used once, preferably at the
 * same position.
 */
extern const DpRefSite **dp_ref_match(const DpRefSites *after, const DpRefSites *before);

/*
 * source.c
 */

typedef enum DpRefLock
{
	DP_REF_READ,    /* the latest committed version, without a lock */
	DP_REF_LOCK,    /* wait for a concurrent change, and lock against others */
	DP_REF_LOCK_KEY /* keeps it from being deleted only */
} DpRefLock;

/* Returns the source's table; false if missing (the target was restored alone). */
extern bool dp_ref_source(DpReference *ref);

/*
 * The extract of the source with that id, in the current context; NULL if
 * there is none.  Called inside SPI_connect().
 */
extern struct varlena *dp_ref_read(DpReference *ref, const DpValue *id, DpRefLock lock);

/*
 * As dp_ref_read() with a lock; sets *deadlock if the source is locked by a transaction that waits
 * for us, and was not read.  kept, unless NULL, is the writer of several calls, NULL at first,
 * which the caller closes.
 */
extern struct varlena *dp_ref_read_or_leave(DpReference *ref, const DpValue *id, DpRefLock lock,
											DpWriter **kept, bool *deadlock);

/* Ids collected by row triggers until the statement's own trigger processes them. */
typedef struct DpRefId
{
	DpValue id;
	uint64 hash;
	bool read;               /* target: extract is the one that was read */
	bool removed;            /* source: the row was deleted or has another key */
	bool appeared;           /* source: there is a new row */
	DpValue *becomes;        /* source: the key that the row has now */
	struct varlena *extract; /* NULL: there is no source with this id */
	struct varlena *before;  /* source: the extract before the change, where copies from before the
								declaration are held (adopt.h) */
	int wanted;              /* target: by so many references */
	DpRefSite *filled;       /* target: a site of a new row as it was filled, or NULL */
	bool lags;               /* target: a copy was made without a lock, and must be refreshed */
	bool left;               /* a pass has left a note */
} DpRefId;

typedef struct DpRefIds
{
	MemoryContext context;
	DpRefId **ids;
	int n;
	int cap;
	int *buckets; /* hash table of positions + 1 */
	int nbuckets;

	/* target: the row that was proposed last, which ON CONFLICT may turn into an update */
	struct varlena *proposed; /* its key, or NULL */
	List *proposals;          /* of DpRefId: the references that it would add */
} DpRefIds;

extern DpRefIds *dp_ref_ids_make(void);
extern DpRefId *dp_ref_ids_find(DpRefIds *set, const DpValue *id);
extern DpRefId *dp_ref_ids_add(DpRefIds *set, const DpValue *id);

/* A copy of a site and its replacement, without the rest of its document. */
extern DpRefSite *dp_ref_keep_filled(DpRefIds *set, const DpRefSite *site);

/* Remembers the first extract of an id; NULL: none. */
extern void dp_ref_ids_before(DpRefIds *set, DpRefId *id, struct varlena *extract);
extern void dp_ref_ids_sort(DpRefIds *set);
extern void dp_ref_ids_free(DpRefIds *set);

/*
 * The first returns the set of the statement in progress, created if missing; the second takes it
 * (NULL without one).
 */
extern DpRefIds *dp_ref_collecting(DpReference *ref, bool of_source);
extern DpRefIds *dp_ref_collected(DpReference *ref, bool of_source);

/*
 * Takes a set of any declaration of the target with the same source, and sets its name; NULL
 * without another one.
 */
extern DpRefIds *dp_ref_collected_beside(DpReference *ref, char **name);

/*
 * Locks ids, because missing sources cannot be locked: a reference takes RowExclusiveLock, an
 * insert of a source ShareLock. A refresh of copies takes ShareUpdateExclusiveLock on the ids that
 * it reads, present or not, against other refreshes and inserts: an older state must not be
 * written last. A change of a source does not wait; it is queued again.
 */
extern uint64 dp_ref_absent_hash(const DpReference *ref, const DpValue *id);

/*
 * Called for a statement on a table that is the source of derivations: references to other tables
 * are processed before derived data are written (sources are locked first), others afterwards.
 */
extern void dp_ref_before_derived(Oid target);
extern void dp_ref_after_derived(Oid target);

/*
 * lock.c: the sources of the statement's new references in tables to which it derives data, which
 * must be locked together with these; and the lock of one of them.
 */
extern DpReferencedRow *dp_ref_referenced_rows(Oid target, int *n);
extern void dp_ref_lock_referenced(const DpReferencedRow *row);

/*
 * pass.c
 *
 * Corrects all rows of the target that refer to one of the ids, in the order of
 * their keys: copies existing sources, replaces changed ids, and applies the delete
 * rule to deleted ones.  Ids without an extract that were not deleted are skipped.
 * Returns the number of rows written.  Called inside SPI_connect().
 */
extern int64 dp_ref_pass(DpReference *ref, DpRefIds *set);

/*
 * Does the same for several declarations of one target: each row is written once, and all in one
 * order.
 */
typedef struct DpRefPart
{
	DpReference *ref;
	DpRefIds *set;
} DpRefPart;

extern int64 dp_ref_pass_parts(const DpRefPart *parts, int nparts);

/* Returns whether a pass is writing the table. */
extern bool dp_ref_pass_writes(Oid target);
extern void dp_ref_pass_forget(void);

/*
 * Does the same for all ids in the target that the source does not have, after TRUNCATE of the
 * source.
 */
extern void dp_ref_truncated(DpReference *ref);

/* Whether a row of the target names the id. */
extern bool dp_ref_named(DpReference *ref, const DpValue *id);

/* Raises FOREIGN_KEY_VIOLATION for a missing source. */
extern void dp_ref_missing(DpReference *ref, const DpValue *id) pg_attribute_noreturn();

#endif /* DP_PATTERNS_REFERENCE_REFERENCE_H */
