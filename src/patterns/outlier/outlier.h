/*
 * outlier.h
 *		The outlier pattern: declarations that its files share.
 *
 * A document's array (the field) is unchanged while it has at most threshold
 * elements.  Beyond it, keep elements stay in the document; the others, the
 * extras, are in a store: a table of chunks that belongs to the pattern, or an
 * ordinary collection with one document per element.  The logical array is
 *
 *	stay => 'first':	kept, then extras
 *	stay => 'last':		extras, then kept
 *
 * The near end of the extras, next to the kept part, is their beginning in the
 * first case and their end in the second.
 *
 * outlier.c has the triggers, arrange.c the right form of a document, calls.c the
 * functions that users call.  store.c calls the kind of store that a declaration
 * has, chunks.c or links.c.
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
 * Size at which a chunk ends even if it may have more elements: a larger chunk could not be
 * stored, or would be slow to push to. A larger element has a chunk of its own.
 */
#define DP_OUTLIER_CHUNK_BYTES (1024 * 1024)

/* Columns of the table of chunks behind its key, in the order of DpOutlier.columns */
typedef enum DpChunkColumn
{
	DP_CHUNK_N,
	DP_CHUNK_SEALED,
	DP_CHUNK_ELEMENTS,
	DP_CHUNK_TAIL
} DpChunkColumn;

#define DP_CHUNK_COLUMNS 4

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
	bool indexed;    /* kept elements are indexed too */
	bool had_extras; /* the document is being corrected: the flag is set by us */
	char *link_id;
	Oid side; /* the store's table, InvalidOid until found */
	AttrNumber columns[DP_CHUNK_COLUMNS];
	char *link;        /* path of the key in the collection's documents; NULL: chunks */
	char *side_column; /* the collection's bson column */
} DpOutlier;

/* A growing list of values; it does not own their bytes. */
typedef struct DpValueList
{
	DpValue *v;
	int n;
	int cap;
} DpValueList;

extern void dp_values_add(DpValueList *list, const DpValue *value);
extern void dp_values_add_array(DpValueList *list, const DpValue *array);
extern int dp_values_distinct(DpValueList *list);

/* Returns the options of a declaration. */
extern DpOutlier *dp_outlier(DpDecl *decl);

/*
 * Returns whether a document without extras has another count than the pattern sets: see adopt.h.
 */
extern bool dp_outlier_count_is_held(const DpOutlier *o, struct varlena *doc);

/* arrange.c */

/* Returns whether the field of a document is an array, and the array. */
extern bool dp_outlier_array(const DpOutlier *o, struct varlena *doc, DpValue *array);

/* Returns whether an array has more than n elements. */
extern bool dp_outlier_exceeds(const DpValue *array, int n);

/* Returns whether the flag of a document is true. */
extern bool dp_outlier_flagged(const DpOutlier *o, struct varlena *doc);

/* Returns whether the document of that key has extras: searches the store if it is flagged. */
extern bool dp_outlier_has_extras(DpOutlier *o, struct varlena *doc, const DpKey *key);

/*
 * Reads and locks the row; NULL if it does not exist or is not visible. As the current user, or as
 * the owner. Returns an empty document for a null one and sets *is_null unless that is NULL.
 */
extern struct varlena *
dp_outlier_lock(DpOutlier *o, const DpKey *key, bool as_owner, bool *is_null);

/* Writes a document in its right form unless it is unchanged. */
extern void
dp_outlier_write(DpOutlier *o, const DpKey *key, struct varlena *before, struct varlena *doc);

/* Returns the document with another array, flag and count. */
extern struct varlena *dp_outlier_arrange(DpOutlier *o, struct varlena *doc,
										  const DpValueList *kept, bool has_extras, int64 total);

/*
 * Does the same with an unchanged array; a negative count leaves the count. Returns the same
 * document if nothing differs.
 */
extern struct varlena *
dp_outlier_mark(DpOutlier *o, struct varlena *doc, bool has_extras, int64 count);

/*
 * Corrects one row from any state. Returns whether it was written. The caller is inside
 * SPI_connect().
 */
extern bool dp_outlier_correct(DpOutlier *o, const DpKey *key, bool spill_deferred);

/* Corrects all flagged rows. Returns how many were written. */
extern int64 dp_outlier_correct_flagged(DpOutlier *o, bool spill_deferred);

/* Returns the whole document. Reads the store with the caller's snapshot or the latest state. */
extern struct varlena *
dp_outlier_whole(DpOutlier *o, struct varlena *doc, const DpKey *key, bool latest);

/* outlier.c: the extras follow their documents. */
extern const struct DpSideMethods dp_outlier_side;

/*
 * A kind of store: chunks.c or links.c. All functions run inside SPI_connect() and as the table's
 * owner.
 */
typedef struct DpOutlierStore
{
	/* whether the key has extras, and their number */
	bool (*exists)(DpOutlier *o, const DpKey *key);
	int64 (*count)(DpOutlier *o, const DpKey *key, bool latest);

	/* append or prepend values */
	void (*append)(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
	void (*prepend)(DpOutlier *o, const DpKey *key, const DpValue *values, int n);

	/* remove up to n values from an end and add them, in their order, to the list */
	void (*take)(DpOutlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken);

	/* remove all occurrences of the values; returns their number */
	int64 (*remove)(DpOutlier *o, const DpKey *key, const DpValue *values, int n);

	bool (*holds)(DpOutlier *o, const DpKey *key, const DpValue *value, bool latest);

	/* delete the extras of the key, or of all keys that no longer exist */
	void (*drop)(DpOutlier *o, const DpKey *key);
	void (*drop_orphans)(DpOutlier *o);

	/* change the key; finish at the end of the statement */
	void (*move)(DpOutlier *o, const DpKey *from, const DpKey *to);
	void (*move_finish)(DpOutlier *o, const DpKey *to);

	/* add elements skip .. skip + take - 1 to the list, in SPI's memory */
	void (*page)(DpOutlier *o, const DpKey *key, int64 skip, int64 take, DpValueList *page,
				 bool latest);

	/* append all to the array that is open in the builder */
	void (*read)(DpOutlier *o, const DpKey *key, DpBuilder *b, bool latest);

	/* whether the extras of the key are stored in their right form */
	bool (*in_order)(DpOutlier *o, const DpKey *key);

	/* the store's table; errors as dp_side_find(), UNDEFINED_COLUMN for a collection without one */
	Oid (*find)(DpOutlier *o);

	/* keys of documents whose extras contain the value: distinct DpKeys */
	List *(*holders)(DpOutlier *o, const DpValue *value);
} DpOutlierStore;

extern const DpOutlierStore dp_outlier_chunks;
extern const DpOutlierStore dp_outlier_links;

/* store.c: the same operations on the store of the declaration */

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

/* Returns whether an element equals the value. */
extern bool dp_outlier_matches(DpOutlier *o, const DpValue *element, const DpValue *value);

/*
 * For stores: the first raises PROGRAM_LIMIT_EXCEEDED unless so many more bytes fit; the second
 * returns the list with one more key.
 */
extern void dp_outlier_check_whole(DpOutlier *o, const DpBuilder *b, uint32 more);
extern List *dp_outlier_add_key(DpOutlier *o, List *keys, DpKey *key);

/*
 * Returns whether a document of the collection of extras has this link; the second is that of
 * links.c.
 */
extern bool dp_outlier_link_used(DpOutlier *o, struct varlena *link);
extern bool dp_outlier_links_hold(DpOutlier *o, struct varlena *link);

#endif /* DP_PATTERNS_OUTLIER_OUTLIER_H */
