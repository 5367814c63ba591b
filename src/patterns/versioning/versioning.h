/*
 * versioning.h
 *		The document versioning pattern: declarations that its files share.
 *
 * Each change of a document is a row of the table of revisions:
 *
 *		key				the key's columns: key, or key1, key2, ...
 *		revision		bigint: 1, 2, 3, ...
 *		change			bigint: the transaction, in the table of changes
 *		operation		"char": i insert, u update, d delete
 *		delta			bytea: the difference from this revision's document to the
 *						previous one (bson/diff.h); empty: not known
 *		previous		bson: the previous document itself, instead of delta
 *		checksum		integer: CRC-32C of this revision's document; NULL: not known
 *		kept			text: paths omitted from this revision's document because
 *						patterns keep them; NULL: none
 *
 * with the primary key (key, revision).  An update with neither kept the
 * document.  The newest revision is the row of the table, so a change writes one
 * row and rewrites none, and a revision is computed from the nearest later one
 * with a whole document.
 *
 * Fields that patterns keep belong to no revision: differences and checksums omit
 * them, so the row may change there without a revision.  The document of a
 * revision lacks the paths in its column kept.
 *
 * The table of changes has a row for each transaction (and acting user):
 *
 *		change			bigint, identity, primary key
 *		since			timestamptz: when its writes became valid
 *		who				text
 *		transaction		xid8
 *
 * It is written when the transaction commits.  Until then its revisions
 * are not valid.
 *
 * versioning.c has the options and the numbers in documents, trigger.c the triggers,
 * later.c writes what a statement adds, tables.c records whole partitions, store.c has
 * the tables, stamp.c stamps changes at commit, read.c computes documents, calls.c has
 * the functions that read history and edit.c those that write it.
 */
#ifndef DP_PATTERNS_VERSIONING_VERSIONING_H
#define DP_PATTERNS_VERSIONING_VERSIONING_H

#include "commands/trigger.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

#include "bson/path.h"
#include "kit/declaration.h"
#include "kit/key.h"
#include "kit/rows/table.h"

/* Columns of the table of revisions that are not the key's, in the order of VersionStore.columns */
typedef enum DpVersionColumn
{
	DP_VERSION_REVISION,
	DP_VERSION_CHANGE,
	DP_VERSION_OPERATION,
	DP_VERSION_DELTA,
	DP_VERSION_PREVIOUS,
	DP_VERSION_CHECKSUM,
	DP_VERSION_KEPT
} DpVersionColumn;

#define DP_VERSION_COLUMNS 7

/* Every so many revisions at the most one has the whole document before it. */
#define DP_VERSION_DISTANCE 32

#define DP_VERSION_INSERT 'i'
#define DP_VERSION_UPDATE 'u'
#define DP_VERSION_DELETE 'd'

typedef struct DpVersioning
{
	DpDecl *decl;
	DpPath *field; /* of the revision */
	bool full;     /* whole documents instead of differences */
	bool optimistic;
	bool kept;  /* revisions have what other patterns keep */
	int64 keep; /* revisions that are kept of a document; 0: all */
	bool left_out_known;
	List *left_out;      /* paths (DpPath) that other patterns keep, see below */
	text *left_out_list; /* its text; NULL for none */
	char *link_id;
	char *second_link_id;
	Oid revisions; /* the tables, InvalidOid where they are missing */
	Oid changes;
	AttrNumber columns[DP_VERSION_COLUMNS];
	AttrNumber key_columns[INDEX_MAX_KEYS];
	AttrNumber change_columns[4]; /* change, since, who, transaction */
	int change_nkeys; /* of its document: if Citus distributes the table by key, else 0 */
	AttrNumber change_key[INDEX_MAX_KEYS];
} DpVersioning;

/* The pattern's view of a declaration.  Raises INVALID_PARAMETER_VALUE. */
extern DpVersioning *dp_versioning(DpDecl *decl);

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE unless the tables are there. */
extern void dp_versioning_require(DpVersioning *v);

/*
 * Returns the number in the field of a document; false if absent or null. Raises CHECK_VIOLATION
 * for a value that is not a positive whole number.
 */
extern bool dp_versioning_number(DpVersioning *v, struct varlena *doc, int64 *revision);

/*
 * The document with that number in the field, of the type that the number has there in "like"
 * (which may be NULL).
 */
extern struct varlena *dp_versioning_with_number(DpVersioning *v, struct varlena *doc,
												 int64 revision, struct varlena *like);

/* Raises CHECK_VIOLATION if a document has something in the way of the number. */
extern void dp_versioning_check_path(DpVersioning *v, struct varlena *doc);

/* Raises NUMERIC_VALUE_OUT_OF_RANGE if no number follows. */
extern void dp_versioning_check_number(int64 revision);

/* Returns the paths that new revisions omit: fields that other patterns of the table keep. */
extern List *dp_versioning_left_out(DpVersioning *v);

/* A document without these paths: itself where it has none of them. */
extern struct varlena *dp_versioning_bare(List *paths, struct varlena *doc);

/* CRC-32C of a document */
extern int32 dp_versioning_checksum(struct varlena *doc);

/* ---------------------------------------------------------------- store.c */

/* A row of the table of revisions */
typedef struct DpRevision
{
	int64 revision;
	int64 change;
	char operation;
	struct varlena *delta; /* as read, maybe toasted: NULL, or valid until the next row is read */
	struct varlena *previous;
	bool has_checksum;
	int32 checksum;
	text *kept; /* likewise */
} DpRevision;

/* The two tables, open, and a scan of one key's revisions */
typedef struct DpRevisionStore
{
	DpVersioning *v;
	Snapshot snapshot;

	/* the change that was looked up last */
	bool known;
	bool stamped;
	int64 change;
	TimestampTz since;

	DpTable revisions;
	DpTable changes; /* rel is NULL until it is needed */
} DpRevisionStore;

/* Opens the tables for reading; the snapshot is the caller's. */
extern void dp_revisions_open(DpRevisionStore *s, DpVersioning *v, Snapshot snapshot);
extern void dp_revisions_close(DpRevisionStore *s);

/* One revision; the newest one.  False if there is none. */
extern bool dp_revisions_find(DpRevisionStore *s, const DpKey *key, int64 revision, DpRevision *r);
extern bool dp_revisions_last(DpRevisionStore *s, const DpKey *key, DpRevision *r);

/*
 * Those from one number up to another, upwards or downwards.  PostgreSQL reads
 * all on a page that are between the two, so a small range costs less.
 */
extern void dp_revisions_begin(DpRevisionStore *s, const DpKey *key, int64 from, int64 upto);
extern bool dp_revisions_next(DpRevisionStore *s, DpRevision *r);
extern bool dp_revisions_before(DpRevisionStore *s, DpRevision *r);

/*
 * Returns when the revisions of a change became valid: false before the transaction has committed.
 * who and transaction may be NULL.
 */
extern bool dp_revisions_since(DpRevisionStore *s, int64 change, TimestampTz *since, text **who,
							   FullTransactionId *transaction);

/* The latest stamp; false if there is none. */
extern bool dp_revisions_latest(DpVersioning *v, TimestampTz *since);

/*
 * Adds a revision. delta and previous: see above, both may be NULL; bare is its document without
 * the omitted fields, NULL if not known.  fired is the AFTER ROW trigger that adds it, or NULL.
 */
extern void dp_revisions_add(DpVersioning *v, const TriggerData *fired, const DpKey *key,
							 int64 revision, int64 change, char operation, struct varlena *delta,
							 struct varlena *previous, struct varlena *bare);

/* The paths that are left out of a revision's document. */
extern List *dp_revision_kept(const DpRevision *r);

/* Adds a row to the table of changes. */
extern void
dp_revisions_add_change(DpVersioning *v, int64 change, const DpKey *key, TimestampTz since,
						const char *who, FullTransactionId transaction);

/* ---------------------------------------------------------------- stamp.c */

/* Called when the library is loaded, before other callbacks are registered. */
extern void dp_versioning_init(void);

/* The change that this transaction's revisions belong to; the key is that of the document. */
extern int64 dp_versioning_change(DpVersioning *v, const DpKey *key);

/* Returns whether this transaction will stamp a change, and its user. */
extern bool dp_versioning_pending(DpVersioning *v, int64 change, Oid *who);

/*
 * Called after a change of a document whose newest revision was of that change: the stamp must be
 * later than its stamp. Costs nothing unless the clock was set back.
 */
extern bool dp_versioning_clock_behind(DpVersioning *v, const DpKey *key);
extern void dp_versioning_later_than(DpVersioning *v, const DpKey *key, TimestampTz since);

/* ---------------------------------------------------------------- read.c */

typedef enum DpVersionFound
{
	DP_VERSION_FOUND,
	DP_VERSION_ABSENT, /* there was no document then */
	DP_VERSION_UNKNOWN /* there was one, but nothing leads to it any more */
} DpVersionFound;

/*
 * Returns the document of a revision, which exists and is not a deletion. live is the document of
 * the table's row, NULL without one. *doc is in the current context (or live itself for the newest
 * revision, with the kept fields unless bare is set). Raises DATA_CORRUPTED if differences do not
 * fit.
 */
extern DpVersionFound dp_revisions_document(DpRevisionStore *s, const DpKey *key, int64 revision,
											struct varlena *live, bool bare, struct varlena **doc);

/*
 * The revision that was valid at a time: false if there was none.  *until is
 * set if has_until.  newest_number is the number of the newest revision, 0 if
 * it is not known.
 */
extern bool dp_revisions_at(DpRevisionStore *s, const DpKey *key, int64 newest_number,
							TimestampTz at, DpRevision *r, TimestampTz *since, bool *has_since,
							TimestampTz *until, bool *has_until, bool *newest);

/* ---------------------------------------------------------------- edit.c */

/*
 * Returns whether a writer may delete revisions now: false while a function rewrites some, which
 * may wait for the writer. If true, none begins until the transaction ends.
 */
extern bool dp_versioning_trim_begin(DpVersioning *v);
extern void dp_versioning_trim_end(DpVersioning *v);

/* ---------------------------------------------------------------- calls.c */

/*
 * Returns the first revision that is shown to a user who sees the document's row, inside
 * SPI_connect(). Earlier ones are of a deleted document with the same key, shown if row-level
 * security does not apply. flags are those of dp_run().
 */
extern int64 dp_versioning_first_shown(DpVersioning *v, const DpKey *key, int flags);

/* ---------------------------------------------------------------- trigger.c */

/*
 * Returns the number of a document that is about to be inserted, or was. *exists: the key has
 * revisions. Unless the newest is a deletion, that of the former document is still to be recorded.
 */
extern int64 dp_versioning_next(DpVersioning *v, const DpKey *key, bool *exists);

/* The document of that key as it is now; NULL if there is none. */
extern struct varlena *dp_versioning_current(DpVersioning *v, const DpKey *key);

/*
 * Records the first revision of a document that is there already.  Where the key
 * has no history it begins with the number that the document has, or 1.  Returns the number.
 */
extern int64 dp_versioning_adopt(DpVersioning *v, const DpKey *key, struct varlena *doc);

/* Records a deleted document. fired is the AFTER ROW trigger, or NULL. */
extern void dp_versioning_deleted(DpVersioning *v, const TriggerData *fired, struct varlena *doc,
								  const DpKey *key);

/*
 * Writes the document of a row with another number, and records it as that revision, with the
 * document before, NULL with nothing that leads back.
 */
extern void dp_versioning_correct(DpVersioning *v, const DpKey *key, int64 revision, char operation,
								  struct varlena *before);

/* ---------------------------------------------------------------- later.c */

/* Writes the revisions that a statement adds (kit/rows/later.h). */
extern void dp_versioning_write(void *arg, HeapTuple *rows, int n);

/* ---------------------------------------------------------------- tables.c */

/* Records all documents of a table or a partition as deleted. */
extern void dp_versioning_truncated(DpVersioning *v, Relation rel);

/* Records all rows of a partition that was attached or detached. */
extern void dp_versioning_partition(Oid table, Oid partition, bool attached);

#endif /* DP_PATTERNS_VERSIONING_VERSIONING_H */
