/*
 * single_collection.h
 *		The single collection pattern: declarations that its files share.
 *
 * Documents of several types are in one table and refer to each other by identity:
 *
 *	related		a document has an array of the ids of the documents to which it
 *				belongs; the field with the id is declared for each type, or is
 *				_id for all
 *	keyed		a document has a key of parts, "202356/345"; the first parts are
 *				the key of the document to which it belongs
 *
 * The identity of a keyed document is its key with a NUL instead of each separator:
 * so its descendants are one range of an index, from its identity to that followed
 * by a byte 1, and no other key is in the range.
 *
 * single_collection.c has the triggers, pass.c finds and changes rows, calls.c has
 * the functions that users call.
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

/* Fields that determine identities, also arguments of the functions of the indexes */
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

/* The identity and relations in a document; points into it, and into the current memory context */
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

/* Returns an error in a document, as the detail of an error with that code, or NULL. */
extern const char *
dp_single_problem(const DpSingle *s, struct varlena *doc, const DpSingleDoc *read, int *code);

/*
 * Returns the document with its own id in its relations: NULL if nothing changes. old_id may be
 * NULL.
 */
extern struct varlena *dp_single_add_self(const DpSingle *s, struct varlena *doc,
										  const DpSingleDoc *read, const DpValue *old_id);

/*
 * Returns a new array, a bson_value, with the elements of a value, or the value itself if it is
 * not an array. NULL elements of replacement are omitted.
 */
typedef bool (*DpSingleReplace)(const DpValue *element, DpValue *replacement, void *arg);
extern struct varlena *
dp_single_rebuild(const DpValue *value, const DpValue *first, DpSingleReplace replace, void *arg);

/* pass.c */

/* An identity that a statement has removed, and the new one if known */
typedef struct DpSingleRemoved
{
	DpValue identity;
	bool moved;
	DpValue becomes;
} DpSingleRemoved;

/*
 * Locks the document with that identity against deletion; raises FOREIGN_KEY_VIOLATION if it is
 * missing and a row refers to it.
 */
extern void dp_single_require(DpSingle *s, DpWriter *w, const DpValue *identity);

/*
 * Applies the delete rule to rows that refer to removed identities, and updates references to
 * changed ones. Returns the number of rows written.
 */
extern int64 dp_single_deleted(DpSingle *s, DpSingleRemoved *removed, int n);

/* Does the same for all references to missing documents, which were deleted without triggers. */
extern int64 dp_single_forget_missing(DpSingle *s);

/* Words of templates. */
extern bool dp_single_word(DpDecl *decl, const char *word, StringInfo sql);

/* The SQL of what single_collection_get() runs. */
extern char *dp_single_sql(DpSingle *s, bool with_type);

/* Values of a filter {"related": id [, "type": type]} or of a range of identities. */
extern struct varlena *
dp_single_filter(const DpSingle *s, const DpValue *ids, int n, const DpValue *type);
extern struct varlena *dp_single_bound(const DpValue *identity, uint8 byte);

/* Returns the identity in messages: an id, or a key with its separators. */
extern char *dp_single_identity_text(const DpSingle *s, const DpValue *identity);

#endif /* DP_PATTERNS_SINGLE_COLLECTION_SINGLE_COLLECTION_H */
