/*
 * edit.h
 *		Changes documents: copies the bytes around the change without parsing them.
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
 * Does the same if the document is the caller's own copy, palloc'd and with a header of four bytes:
 * it is changed and becomes the result, which may have moved; NULL leaves it unchanged.  The value
 * must not be in it.
 */
extern struct varlena *
dp_document_set_own(struct varlena *doc, const DpPath *path, const DpValue *value, bool create);

/* The same inside a value that is a document or an array: a new bson_value. */
extern struct varlena *
dp_value_set_if(const DpValue *root, const DpPath *path, const DpValue *value, bool create);

/*
 * A new bson without the value at the path, including all fields of that name.  An element of an
 * array becomes null, as $unset does, so that the others keep their positions.  Returns NULL if
 * there is no value at the path.
 */
extern struct varlena *dp_document_unset(const uint8 *doc, uint32 size, const DpPath *path);

/*
 * A new bson without the values at the paths (DpPath), also in documents that are elements of
 * arrays. A document that becomes empty is removed, too, but not from an array.  Returns NULL if
 * there are no such values.
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
 * A new bson with the values appended to the array at the path, which is created if it is missing.
 * Raises DATATYPE_MISMATCH if another value is there.
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
 * there is no such element.
 */
extern struct varlena *dp_array_remove(const DpValue *array, int64 position);

/* Raises PROGRAM_LIMIT_EXCEEDED if the value may not stand inside that many containers. */
extern void dp_check_depth(int parents, const DpValue *value);

/*
 * True if an existing value blocks a path, so that dp_document_set() would raise an error: *step is
 * the blocked part of the path, *type the value's type.
 */
extern bool
dp_path_blocked(const uint8 *doc, uint32 size, const DpPath *path, int *step, uint8 *type);

#endif /* DP_BSON_EDIT_H */
