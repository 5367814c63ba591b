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
 * outlier.c has the triggers, outlier_store.c the stores, outlier_calls.c the
 * functions that users call.
 */
#ifndef DP_PATTERNS_OUTLIER_H
#define DP_PATTERNS_OUTLIER_H

#include "bson/builder.h"
#include "bson/path.h"
#include "bson/reader.h"
#include "patterns/declaration.h"
#include "patterns/rowkey.h"

typedef struct Outlier
{
	DpDecl	   *decl;
	DpPath	   *field;
	DpPath	   *flag;
	DpPath	   *count;			/* or NULL */
	int			threshold;
	int			keep;
	int			chunk;
	bool		stay_last;
	bool		is_set;
	bool		deferred;
	bool		indexed;		/* elements that stay are indexed too */
	char	   *pair;
	Oid			side;			/* the store's table, InvalidOid until it is found */
	char	   *link;			/* path of the key in the collection's documents; NULL: chunks */
	char	   *side_column;	/* the collection's bson column */
} Outlier;

/* A growing list of values, whose bytes belong to somebody else. */
typedef struct DpValueList
{
	DpValue    *v;
	int			n;
	int			cap;
} DpValueList;

extern void dp_values_add(DpValueList *list, const DpValue *value);
extern void dp_values_add_array(DpValueList *list, const DpValue *array);
extern int	dp_values_distinct(DpValueList *list);

/* The pattern's view of a declaration. */
extern Outlier *dp_outlier(DpDecl *decl);

/* outlier.c */

/* The field of a document: true and the array if it is one. */
extern bool dp_outlier_array(const Outlier *o, struct varlena *doc, DpValue *array);

/* Whether the flag of a document is the value true. */
extern bool dp_outlier_flagged(const Outlier *o, struct varlena *doc);

/* Whether the document of that key has extras: a probe of the store if it is flagged. */
extern bool dp_outlier_has_extras(Outlier *o, struct varlena *doc, const DpKey *key);

/*
 * Reads and locks the row; NULL if there is none (or it is not visible).  As
 * the current user, or as the owner.
 */
extern struct varlena *dp_outlier_lock(Outlier *o, const DpKey *key, bool as_owner);

/* Writes a document that is already in order, unless it is the same as before. */
extern void dp_outlier_write(Outlier *o, const DpKey *key, struct varlena *before, struct varlena *doc);

/* The document with another array, flag and count. */
extern struct varlena *dp_outlier_arrange(Outlier *o, struct varlena *doc,
										  const DpValueList *kept, bool has_extras, int64 total);

/* The same with the array as it is; a negative count leaves the count alone.  The same document if nothing differs. */
extern struct varlena *dp_outlier_mark(Outlier *o, struct varlena *doc, bool has_extras, int64 count);

/*
 * Brings one row in order, whatever state it is in.  Returns whether anything
 * had to be written.  The caller is inside SPI_connect().
 */
extern bool dp_outlier_settle(Outlier *o, const DpKey *key, bool spill_deferred);

/* The same for all rows that are flagged; returns how many were written. */
extern int64 dp_outlier_settle_flagged(Outlier *o, bool spill_deferred);

/* The whole document.  Reads the store with the caller's snapshot or the latest state. */
extern struct varlena *dp_outlier_whole(Outlier *o, struct varlena *doc, const DpKey *key, bool latest);

/* outlier_store.c; all run inside SPI_connect(), as the table's owner */

extern bool dp_outlier_exists(Outlier *o, const DpKey *key);
extern int64 dp_outlier_stored(Outlier *o, const DpKey *key, bool latest);
extern void dp_outlier_append(Outlier *o, const DpKey *key, const DpValue *values, int n);
extern void dp_outlier_prepend(Outlier *o, const DpKey *key, const DpValue *values, int n);
extern void dp_outlier_take(Outlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken);
extern int64 dp_outlier_remove(Outlier *o, const DpKey *key, const DpValue *values, int n);
extern bool dp_outlier_holds(Outlier *o, const DpKey *key, const DpValue *value, bool latest);
extern void dp_outlier_drop(Outlier *o, const DpKey *key);
extern void dp_outlier_drop_orphans(Outlier *o);
extern void dp_outlier_move(Outlier *o, const DpKey *from, const DpKey *to);
extern void dp_outlier_move_finish(Outlier *o, const DpKey *to);

/* Appends elements skip .. skip + take - 1 of the extras to the list; copies that live in the current context. */
extern void dp_outlier_page(Outlier *o, const DpKey *key, int64 skip, int64 take, DpValueList *page, bool latest);

/* Appends all extras to the array that is open in the builder. */
extern void dp_outlier_read(Outlier *o, const DpKey *key, DpBuilder *b, bool latest);

/* Whether a document of the collection has this link. */
extern bool dp_outlier_link_used(Outlier *o, struct varlena *link);

/* Keys of documents that have the value among their extras: a list of DpKey, without duplicates. */
extern List *dp_outlier_holders(Outlier *o, const DpValue *value);

#endif							/* DP_PATTERNS_OUTLIER_H */
