/*
 * single_collection.h
 *		The single collection pattern: what its parts share.
 *
 * Documents of several types live in one table and point at each other.  What
 * is pointed at is known by its identity:
 *
 *		related		a document has an array of the ids of those that it belongs to; the
 *					field with the id is named for each type that others belong to, or is
 *					_id for all
 *		keyed		a document has a key of parts, "202356/345"; the first parts are
 *					the key of the one that it belongs to
 *
 * The identity of a keyed document is its key with a NUL in place of each
 * separator: so what belongs to a document is one range of an index, from its
 * identity to that with a byte 1 behind it, and no other key lies in it.
 *
 * single_collection.c has the triggers, pass.c looks for and
 * changes rows, calls.c has what users call.
 */
#ifndef DP_PATTERNS_SINGLE_COLLECTION_SINGLE_COLLECTION_H
#define DP_PATTERNS_SINGLE_COLLECTION_SINGLE_COLLECTION_H

#include "bson/path.h"
#include "bson/reader.h"
#include "kit/declaration.h"
#include "kit/rows/write.h"

typedef enum DpSingleDelete
{
	DP_SINGLE_RESTRICT,
	DP_SINGLE_CASCADE,
	DP_SINGLE_UNSET,
	DP_SINGLE_KEEP
} DpSingleDelete;

/* Which field has the id of the documents of a type */
typedef struct DpSingleId
{
	const char *type;
	uint32 typelen;
	DpPath *path;
} DpSingleId;

/* How documents are told apart: what the functions of the indexes get as arguments, too */
typedef struct DpSingleIds
{
	DpPath *type_field; /* NULL: documents have none */
	int n;
	DpSingleId *ids;
} DpSingleIds;

typedef struct DpSingle
{
	DpDecl *decl;
	DpSingleIds ids;
	DpPath *related_field; /* NULL: documents are keyed */
	DpPath *key_field;     /* NULL: documents are related */
	char *separator;
	uint32 separatorlen;
	int nself;
	DpValue *self_related; /* types (strings) whose documents point to themselves */
	int ntypes;            /* -1: any */
	DpValue *types;
	bool missing_error;
	DpSingleDelete on_delete;
	DpLookup *by_identity;
} DpSingle;

/* What a document says; points into it, and into the current memory context. */
typedef struct DpSingleDoc
{
	bool has_type;
	DpValue type;
	bool has_identity;
	DpValue identity;
	int nparents; /* without itself */
	DpValue *parents;
	bool names_itself;
} DpSingleDoc;

extern DpSingle *dp_single(DpDecl *decl);

/* Reads a document; malformed parts count as absent. */
extern void dp_single_read(const DpSingle *s, struct varlena *doc, DpSingleDoc *out);

/* The id of a related document; false if it has none. */
extern bool dp_single_id(const DpSingleIds *ids, const uint8 *doc, uint32 size, DpValue *id);

/*
 * The type and id field of each entry of a document of paths, {"book": "bookId"}, in the current
 * context.
 */
extern void dp_single_ids_parse(DpSingleIds *ids, const uint8 *doc, uint32 size);

/* The identity of a key; false unless it is a string without a NUL.  In the current context. */
extern bool dp_single_key(const DpValue *key, const char *separator, uint32 len, DpValue *identity);

/* What is wrong with a document, as the detail of an error of that code; NULL if nothing is. */
extern const char *
dp_single_problem(const DpSingle *s, struct varlena *doc, const DpSingleDoc *read, int *code);

/*
 * The document with its own id among those that it is related to: NULL if nothing has to be done.
 * old_id may be NULL.
 */
extern struct varlena *dp_single_add_self(const DpSingle *s, struct varlena *doc,
										  const DpSingleDoc *read, const DpValue *old_id);

/*
 * A new array with the elements of a value, which is one itself if it is no array: a bson_value.
 * NULL elements of replacement leave out.
 */
typedef bool (*DpSingleReplace)(const DpValue *element, DpValue *replacement, void *arg);
extern struct varlena *
dp_single_rebuild(const DpValue *value, const DpValue *first, DpSingleReplace replace, void *arg);

/* pass.c */

/* What a statement has taken away: an identity, and what it has become, if that is known. */
typedef struct DpSingleGone
{
	DpValue identity;
	bool moved;
	DpValue becomes;
} DpSingleGone;

/*
 * Locks the document with that identity so that it stays; raises FOREIGN_KEY_VIOLATION if there is
 * none and somebody names it.
 */
extern void dp_single_require(DpSingle *s, DpWriter *w, const DpValue *identity);

/*
 * Applies the delete rule to those who name what is gone, and lets the others follow.  Returns how
 * many were written.
 */
extern int64 dp_single_gone(DpSingle *s, DpSingleGone *gone, int n);

/*
 * The same for all that is named and is not there: rows have gone in a way that nobody could see.
 */
extern int64 dp_single_forget_missing(DpSingle *s);

/* The SQL of what single_collection_get() runs. */
extern char *dp_single_sql(DpSingle *s, bool with_type);

/* Values of a filter {"related": id [, "type": type]} or of a range of identities. */
extern struct varlena *
dp_single_filter(const DpSingle *s, const DpValue *ids, int n, const DpValue *type);
extern struct varlena *dp_single_bound(const DpValue *identity, uint8 byte);

/* The identity as users know it, for messages: an id, or a key with its separators. */
extern char *dp_single_identity_text(const DpSingle *s, const DpValue *identity);

#endif /* DP_PATTERNS_SINGLE_COLLECTION_SINGLE_COLLECTION_H */
