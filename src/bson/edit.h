/*
 * edit.h
 *		Changing documents: the bytes around the change are copied and nothing
 *		else is looked at.
 */
#ifndef DP_BSON_EDIT_H
#define DP_BSON_EDIT_H

#include "bson/path.h"

/* Most elements that setting a position beyond an array's end may pad with null */
#define DP_EDIT_MAX_PADDING 1500000

/*
 * A new bson in which the value stands where the path leads.  Sub-documents
 * that are missing are made; a position beyond the end of an array pads it
 * with null.  Raises INVALID_PARAMETER_VALUE where the path passes through a
 * value that is no document and no array, and PROGRAM_LIMIT_EXCEEDED.
 */
extern struct varlena *
dp_document_set(const uint8 *doc, uint32 size, const DpPath *path, const DpValue *value);

/* The same, which returns NULL if nothing is at the path and create is false. */
extern struct varlena *dp_document_set_if(const uint8 *doc, uint32 size, const DpPath *path,
										  const DpValue *value, bool create);

/*
 * The same where the document is the caller's own copy, palloc'd and with a
 * header of four bytes: it is changed and becomes the result, which may have
 * moved; NULL leaves it as it is.  The value stands elsewhere.
 */
extern struct varlena *
dp_document_set_own(struct varlena *doc, const DpPath *path, const DpValue *value, bool create);

/* The same inside a value that is a document or an array: a new bson_value. */
extern struct varlena *
dp_value_set_if(const DpValue *root, const DpPath *path, const DpValue *value, bool create);

/*
 * A new bson without what the path leads to, all fields of that name included.
 * An element of an array becomes null, as $unset does, so that the others keep
 * their positions.  Returns NULL if there is nothing at the path.
 */
extern struct varlena *dp_document_unset(const uint8 *doc, uint32 size, const DpPath *path);

/*
 * A new bson without what the paths (DpPath) lead to, also in documents that are
 * elements of arrays.  A document that is empty without it goes, too, but not
 * from an array.  Returns NULL if there is nothing of it.
 */
extern struct varlena *dp_document_without(const uint8 *doc, uint32 size, List *paths);

/*
 * The same for many paths, one after the other.  The document is the caller's,
 * and comes back where there is nothing at any path.
 */
extern struct varlena *dp_document_unset_all(struct varlena *doc, DpPath *const *paths, int n);

/* The same inside a value that is a document or an array: a new bson_value. */
extern struct varlena *dp_value_unset(const DpValue *root, const DpPath *path);

/*
 * A new bson with the values at the end of the array that the path leads to,
 * which is made if it is missing.  Raises DATATYPE_MISMATCH if something else
 * is there.
 */
extern struct varlena *dp_document_append(const uint8 *doc, uint32 size, const DpPath *path,
										  const DpValue *values, int nvalues);

/* The same where the document is the caller's own copy: see dp_document_set_own(). */
extern struct varlena *
dp_document_append_own(struct varlena *doc, const DpPath *path, const DpValue *values, int nvalues);

/* A new bson with the fields of both, those of b winning. */
extern struct varlena *
dp_document_merge(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize);

/* The same for values that are documents, the later ones winning: a new bson_value. */
extern struct varlena *dp_value_merge(const DpValue *a, const DpValue *b);
extern struct varlena *dp_values_merge(const DpValue *documents, int n);

/*
 * A new bson_value: an array of the elements of both, a value that is no array being one element.
 */
extern struct varlena *dp_array_concat(const DpValue *a, const DpValue *b);

/*
 * A new bson_value: the array without the element at a position (negative: from the end); NULL if
 * there is none.
 */
extern struct varlena *dp_array_remove(const DpValue *array, int64 position);

/* Raises PROGRAM_LIMIT_EXCEEDED if the value may not stand inside that many containers. */
extern void dp_check_depth(int parents, const DpValue *value);

/*
 * Whether what a document has stands in the way of a path, so that
 * dp_document_set() would refuse it: *step is the part of the path that meets
 * it, *type what it is.
 */
extern bool
dp_path_blocked(const uint8 *doc, uint32 size, const DpPath *path, int *step, uint8 *type);

#endif /* DP_BSON_EDIT_H */
