/*
 * reference.h
 *		The extended reference pattern: what its parts share.
 *
 * Documents of a table (the target) name documents of another table or of the
 * same (the source) by key, and carry copies of some of their fields.  A place
 * where a document names a source is a site:
 *
 *		customer: {_id: 123, name: "...", address: {...}}		a sub-document
 *		items: [{_id: 1, ...}, {_id: 2, ...}]					an array of them
 *		comments: [{text: "...", author: {id: 7, ...}}]			a path through arrays
 *		customer: 123											a bare id, which is expanded
 *
 * Live copies follow the source, frozen ones keep the value that they were
 * written with.  What is copied of a source is kept in one small document, its
 * extract: the live and the frozen fields that it has, in the order of the
 * declaration.
 *
 * fill.c changes documents and reads no table, reference.c has the
 * triggers of the target, collect.c what they collect for a
 * statement, lock.c the locks that it takes, source.c the triggers of
 * the source and what reads it, pass.c brings the rows that name a
 * source in line, calls.c has the functions for indexes, checks and verbs.
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
	DpPath *field;    /* where sites are; parts are names, arrays are passed through */
	DpPath *id_field; /* of one part */
	DpPath **live;
	int nlive;
	DpPath **frozen;
	int nfrozen;
	DpRefDelete on_delete;
	bool missing_error;
	bool deferred;
	char *pair;
	DpDecl *source; /* key and document column of the source; NULL until it is looked for */
	DpLookup *source_key;
	DpLookup *by_id; /* target rows by the id of a site outside of arrays */
} DpReference;

/* What is to become of a site */
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

/* What is copied of a source's document: a new bson. */
extern struct varlena *dp_ref_extract(const DpReference *ref, const uint8 *doc, uint32 size);

/* How a site is filled in */
typedef struct DpRefFill
{
	const DpValue *extract; /* of the source, NULL if there is none: then copies stay */
	const DpValue *id;      /* the id to be written, or NULL for the one that is there */
	const DpRefSite
		*before; /* the same reference in the old document, or NULL: the reference is new */
	const DpRefSite *displaced; /* what stood there before another reference, or NULL */
	bool freeze;                /* fill frozen fields in that are absent */
} DpRefFill;

/* Notes in the site what has to be written; returns whether anything has. */
extern bool dp_ref_fill(const DpReference *ref, DpRefSite *site, const DpRefFill *fill);

/* The first live copy of a site that is not the source's, or NULL. */
extern const DpPath *
dp_ref_wrong(const DpReference *ref, const DpRefSite *site, const DpValue *extract);

/* The document with what the sites' actions say; a new bson. */
extern struct varlena *
dp_ref_rebuild(const DpReference *ref, const uint8 *doc, uint32 size, DpRefSites *sites);

/*
 * Pairs the sites of a new document with those of the old one that name the
 * same source: before[i] is the old site of new site i, or NULL.  Each old
 * site is used once; one at the same place comes first.
 */
extern const DpRefSite **dp_ref_match(const DpRefSites *after, const DpRefSites *before);

/*
 * source.c
 */

typedef enum DpRefLock
{
	DP_REF_READ,    /* the latest committed version, without a lock */
	DP_REF_LOCK,    /* waits for whoever is changing it, and keeps it from being changed */
	DP_REF_LOCK_KEY /* keeps it from being deleted only */
} DpRefLock;

/* The source's table, found; false if it is gone (the target was restored alone). */
extern bool dp_ref_source(DpReference *ref);

/*
 * The extract of the source with that id, in the current context; NULL if
 * there is none.  Called inside SPI_connect().
 */
extern struct varlena *dp_ref_read(DpReference *ref, const DpValue *id, DpRefLock lock);

/*
 * As dp_ref_read() with a lock; *circle: the source is held by a transaction that waits for us, and
 * was not read.
 */
extern struct varlena *
dp_ref_read_or_leave(DpReference *ref, const DpValue *id, DpRefLock lock, bool *circle);

/*
 * Ids that a statement concerns, collected by row triggers until the
 * statement's own trigger takes them.
 */
typedef struct DpRefId
{
	DpValue id;
	uint64 hash;
	bool read;               /* target: extract is what was read */
	bool gone;               /* source: the row was deleted or has another key */
	bool appeared;           /* source: there is a new row */
	DpValue *becomes;        /* source: the key that the row has now */
	struct varlena *extract; /* NULL: there is no such source */
	struct varlena *before;  /* source: the extract before the change, where copies from before the
								declaration are held (adopt.h) */
	int wanted;              /* target: by so many references */
	bool lags;               /* target: a copy was made without a lock, and has to be refreshed */
	bool left;               /* a pass has left a note */
} DpRefId;

typedef struct DpRefRun
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
} DpRefRun;

extern DpRefRun *dp_ref_run_make(void);
extern DpRefId *dp_ref_run_find(DpRefRun *run, const DpValue *id);
extern DpRefId *dp_ref_run_add(DpRefRun *run, const DpValue *id);

/* Remembers the first extract of an id; NULL: none. */
extern void dp_ref_run_before(DpRefRun *run, DpRefId *id, struct varlena *extract);
extern void dp_ref_run_sort(DpRefRun *run);
extern void dp_ref_run_free(DpRefRun *run);

/*
 * The run of the statement whose triggers are being called, made when it is missing; and taking it
 * (NULL if there is none).
 */
extern DpRefRun *dp_ref_collecting(DpReference *ref, bool of_source);
extern DpRefRun *dp_ref_collected(DpReference *ref, bool of_source);

/*
 * Takes a run of any declaration of the target that has the same source, and
 * gives its name; NULL if no (other) one is there.
 */
extern DpRefRun *dp_ref_collected_beside(DpReference *ref, char **name);

/*
 * Sources that are not there cannot be locked: a place is locked instead of
 * them, by who refers to one (RowExclusiveLock) and who inserts one (ShareLock).
 * Who refreshes copies locks the places of what he reads, present or not, against other
 * refreshes and those who insert (ShareUpdateExclusiveLock): what was read first
 * is not written last.  Who changes a source does not wait; it is queued again.
 */
extern uint64 dp_ref_absent_place(const DpReference *ref, const DpValue *id);

/*
 * A statement on a table that feeds derivations: before they are written,
 * references to other tables are handled (sources are locked before what is
 * derived); afterwards the others.
 */
extern void dp_ref_before_derived(Oid target);
extern void dp_ref_after_derived(Oid target);

/*
 * lock.c: the sources that the statement's new references name in tables that it derives to, and
 * which have to be locked together with what is written there; and the lock of one of them.
 */
extern DpWish *dp_ref_wishes(Oid target, int *n);
extern void dp_ref_wish_lock(const DpWish *wish);

/*
 * pass.c
 *
 * All rows of the target that name one of the ids are brought in line, in the
 * order of their keys: what exists is copied, an id that has become another
 * one is changed, and to one that is gone the delete rule is applied.  Ids
 * without an extract that are not gone are left alone.  Returns the number of
 * rows that were written.  Called inside SPI_connect().
 */
extern int64 dp_ref_pass(DpReference *ref, DpRefRun *run);

/*
 * The same for several declarations of one target at once: each row is written once, and all in one
 * order.
 */
typedef struct DpRefPart
{
	DpReference *ref;
	DpRefRun *run;
} DpRefPart;

extern int64 dp_ref_pass_parts(const DpRefPart *parts, int nparts);

/* Whether what is being written to the table comes from a pass. */
extern bool dp_ref_pass_writes(Oid target);
extern void dp_ref_pass_forget(void);

/* The same for all ids that the target names and the source does not have: it was truncated. */
extern void dp_ref_truncated(DpReference *ref);

/* Whether a row of the target names the id. */
extern bool dp_ref_named(DpReference *ref, const DpValue *id);

/* Raises FOREIGN_KEY_VIOLATION: there is no such source. */
extern void dp_ref_missing(DpReference *ref, const DpValue *id) pg_attribute_noreturn();

#endif /* DP_PATTERNS_REFERENCE_REFERENCE_H */
