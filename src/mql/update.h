/*
 * update.h
 *		Updates: MongoDB's update language, compiled and applied to documents in their stored
 *		form.
 *
 * docs/update.md has the language.  An update with operators is compiled into a tree of paths;
 * applying it walks the document once along that tree and copies the bytes between the changes.
 */
#ifndef DP_MQL_UPDATE_H
#define DP_MQL_UPDATE_H

#include "bson/reader.h"

typedef struct DpUpdate DpUpdate;

/*
 * Compiles an update into the current memory context.  update is a document of
 * operators, a whole document or an array of stages; filter is the query that
 * found the document (a DOCUMENT), array_filters an array, either may be NULL.
 * The result points into their bytes, which must live as long.  Raises
 * FEATURE_NOT_SUPPORTED for an operator that there is not, or if immutable for
 * one that depends on the clock or chance, and INVALID_PARAMETER_VALUE for what
 * is wrong, with the place in errdetail.
 */
extern DpUpdate *dp_update_compile(const DpValue *update, const DpValue *filter,
								   const DpValue *array_filters, bool immutable);

/*
 * The new document, in the current memory context, or NULL if nothing changes.
 * With own the document's bytes belong to the caller and may be changed in
 * place, in which case doc itself is returned.
 */
extern struct varlena *dp_update_apply(DpUpdate *update, struct varlena *doc, bool own);

/* The document that an upsert inserts, in the current memory context. */
extern struct varlena *dp_update_insert(DpUpdate *update);

/*
 * The part of a document that the paths of the operators name, in the current memory context: of
 * elements of an array the whole array.  The update must have operators.
 */
extern struct varlena *dp_update_part(const DpUpdate *update, struct varlena *doc);

/* Whether the update is a document that replaces the whole one. */
extern bool dp_update_replaces(const DpUpdate *update);

#endif /* DP_MQL_UPDATE_H */
