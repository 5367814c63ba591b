/*
 * outlier.h
 *		The outlier pattern: what its parts share.
 *
 * A document's array (the field) is left alone while it has at most threshold
 * elements.  Beyond it, keep elements stay in the document and the others, the
 * extras, lie in a store: a table of chunks that belongs to the pattern, or an
 * ordinary collection with one document per element.  The logical array is
 *
 *		stay => 'first':	kept, then extras
 *		stay => 'last':		extras, then kept
 *
 * so the extras' end that touches the kept part (the near end) is their
 * beginning in the first case and their end in the second.
 *
 * outlier.c has the triggers, move.c follows changes of keys,
 * arrange.c says how a document should be, store.c and the two
 * stores know where extras lie, calls.c has the functions that users
 * call.
 */
#ifndef DP_PATTERNS_OUTLIER_OUTLIER_H
#define DP_PATTERNS_OUTLIER_OUTLIER_H

#include "bson/builder.h"
#include "bson/path.h"
#include "bson/reader.h"
#include "kit/declaration.h"
#include "kit/key.h"

/* The most elements that a chunk may have */
#define DP_OUTLIER_MAX_CHUNK 1000000

/*
 * Where a chunk ends before it has as many elements as it may: one of many large
 * elements would be too large to be stored, and slow to push to.  An element
 * that is larger has a chunk of its own.
 */
#define DP_OUTLIER_CHUNK_BYTES (1024 * 1024)

typedef struct DpOutlier
{
	DpDecl *decl;
	DpPath *field;
	DpPath *flag;
	DpPath *count; /* or NULL */
	int threshold;
	int keep;
	int chunk;
	bool stay_last;
	bool is_set;
	bool deferred;
	bool indexed;    /* elements that stay are indexed too */
	bool had_extras; /* the document that is settled: its flag is ours */
	char *pair;
	Oid side;          /* the store's table, InvalidOid until it is found */
	char *link;        /* path of the key in the collection's documents; NULL: chunks */
	char *side_column; /* the collection's bson column */
} DpOutlier;

/* A growing list of values, whose bytes belong to somebody else. */
typedef struct DpValueList
{
	DpValue *v;
	int n;
	int cap;
} DpValueList;

extern void dp_values_add(DpValueList *list, const DpValue *value);
extern void dp_values_add_array(DpValueList *list, const DpValue *array);
extern int dp_values_distinct(DpValueList *list);

/* The pattern's view of a declaration. */
extern DpOutlier *dp_outlier(DpDecl *decl);

/*
 * Whether a document without extras has another count than the pattern has given it: see adopt.h.
 */
extern bool dp_outlier_count_is_held(const DpOutlier *o, struct varlena *doc);

/* arrange.c */

/* The field of a document: true and the array if it is one. */
extern bool dp_outlier_array(const DpOutlier *o, struct varlena *doc, DpValue *array);

/* Whether an array has more than n elements. */
extern bool dp_outlier_exceeds(const DpValue *array, int n);

/* Whether the flag of a document is the value true. */
extern bool dp_outlier_flagged(const DpOutlier *o, struct varlena *doc);

/* Whether the document of that key has extras: a probe of the store if it is flagged. */
extern bool dp_outlier_has_extras(DpOutlier *o, struct varlena *doc, const DpKey *key);

/*
 * Reads and locks the row; NULL if there is none (or it is not visible).  As
 * the current user, or as the owner.  An empty document stands for a null one;
 * *is_null, if wanted, tells.
 */
extern struct varlena *
dp_outlier_lock(DpOutlier *o, const DpKey *key, bool as_owner, bool *is_null);

/* Writes a document that is already in order, unless it is the same as before. */
extern void
dp_outlier_write(DpOutlier *o, const DpKey *key, struct varlena *before, struct varlena *doc);

/* The document with another array, flag and count. */
extern struct varlena *dp_outlier_arrange(DpOutlier *o, struct varlena *doc,
										  const DpValueList *kept, bool has_extras, int64 total);

/*
 * The same with the array as it is; a negative count leaves the count alone.  The same document if
 * nothing differs.
 */
extern struct varlena *
dp_outlier_mark(DpOutlier *o, struct varlena *doc, bool has_extras, int64 count);

/*
 * Brings one row in order, whatever state it is in.  Returns whether anything
 * had to be written.  The caller is inside SPI_connect().
 */
extern bool dp_outlier_settle(DpOutlier *o, const DpKey *key, bool spill_deferred);

/* The same for all rows that are flagged; returns how many were written. */
extern int64 dp_outlier_settle_flagged(DpOutlier *o, bool spill_deferred);

/* The whole document.  Reads the store with the caller's snapshot or the latest state. */
extern struct varlena *
dp_outlier_whole(DpOutlier *o, struct varlena *doc, const DpKey *key, bool latest);

/* outlier.c: the extras have followed their row to this key, bring it in order. */
extern void dp_outlier_moved(DpOutlier *o, const DpKey *key, bool grown);

/* move.c */

/* Flag of a move: elements were added behind those that stay */
#define DP_OUTLIER_GROWN 0x01

extern void dp_outlier_move_end(DpOutlier *o);

/*
 * A kind of store: chunks.c and links.c.  All functions run
 * inside SPI_connect() and as the table's owner.
 */
typedef struct DpOutlierStore
{
	/* whether the key has extras, and how many */
	bool (*exists)(DpOutlier *o, const DpKey *key);
	int64 (*count)(DpOutlier *o, const DpKey *key, bool latest);

	/* put values at the end, or in front */
	void (*append)(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
	void (*prepend)(DpOutlier *o, const DpKey *key, const DpValue *values, int n);

	/* take up to n values away from an end and add them, in their order, to the list */
	void (*take)(DpOutlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken);

	/* take all occurrences of the values away; how many there were */
	int64 (*remove)(DpOutlier *o, const DpKey *key, const DpValue *values, int n);

	bool (*holds)(DpOutlier *o, const DpKey *key, const DpValue *value, bool latest);

	/* forget the extras of the key, or of all keys that no longer exist */
	void (*drop)(DpOutlier *o, const DpKey *key);
	void (*drop_orphans)(DpOutlier *o);

	/* the key changes; at the end of the statement the move is finished */
	void (*move)(DpOutlier *o, const DpKey *from, const DpKey *to);
	void (*move_finish)(DpOutlier *o, const DpKey *to);

	/* add elements skip .. skip + take - 1 to the list, in SPI's memory */
	void (*page)(DpOutlier *o, const DpKey *key, int64 skip, int64 take, DpValueList *page,
				 bool latest);

	/* append all to the array that is open in the builder */
	void (*read)(DpOutlier *o, const DpKey *key, DpBuilder *b, bool latest);

	/* whether the extras of the key lie there in good order */
	bool (*in_order)(DpOutlier *o, const DpKey *key);

	/*
	 * raises an error unless the table's columns are such a store's; its triggers could have been
	 * made by hand
	 */
	void (*verify)(DpOutlier *o);

	/* keys of documents that have the value among their extras: distinct DpKeys */
	List *(*holders)(DpOutlier *o, const DpValue *value);
} DpOutlierStore;

extern const DpOutlierStore dp_outlier_chunks;
extern const DpOutlierStore dp_outlier_links;

/* store.c: the same operations, on the store that the declaration has */

extern bool dp_outlier_exists(DpOutlier *o, const DpKey *key);
extern int64 dp_outlier_stored(DpOutlier *o, const DpKey *key, bool latest);
extern void dp_outlier_append(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
extern void dp_outlier_prepend(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
extern void
dp_outlier_take(DpOutlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken);
extern int64 dp_outlier_remove(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
extern bool dp_outlier_holds(DpOutlier *o, const DpKey *key, const DpValue *value, bool latest);
extern void dp_outlier_drop(DpOutlier *o, const DpKey *key);
extern void dp_outlier_drop_orphans(DpOutlier *o);
extern void dp_outlier_move(DpOutlier *o, const DpKey *from, const DpKey *to);
extern void dp_outlier_move_finish(DpOutlier *o, const DpKey *to);
extern void dp_outlier_page(DpOutlier *o, const DpKey *key, int64 skip, int64 take,
							DpValueList *page, bool latest);
extern void dp_outlier_read(DpOutlier *o, const DpKey *key, DpBuilder *b, bool latest);
extern bool dp_outlier_in_order(DpOutlier *o, const DpKey *key);
extern List *dp_outlier_holders(DpOutlier *o, const DpValue *value);

/* Whether an element equals the value */
extern bool dp_outlier_matches(DpOutlier *o, const DpValue *element, const DpValue *value);

/*
 * For the stores: raises PROGRAM_LIMIT_EXCEEDED unless so many more bytes fit; returns the list of
 * keys with one more.
 */
extern void dp_outlier_check_whole(DpOutlier *o, const DpBuilder *b, uint32 more);
extern List *dp_outlier_add_key(DpOutlier *o, List *keys, DpKey *key);

/*
 * Whether a document of the collection that is the store has this link; the second is links.c's own
 */
extern bool dp_outlier_link_used(DpOutlier *o, struct varlena *link);
extern bool dp_outlier_links_hold(DpOutlier *o, struct varlena *link);

#endif /* DP_PATTERNS_OUTLIER_OUTLIER_H */
