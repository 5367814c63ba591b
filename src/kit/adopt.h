/*
 * adopt.h
 *		Values that documents contained before the declaration of a pattern that maintains their
 *		field.
 *
 * <pattern>_enable() scans once for values in the fields that the pattern will maintain, and stores
 * the paths of these fields as the option "held".  Until pattern_build() finishes, such a value is
 * not overwritten unless it also occurs in the new value or in the source: writes leave it as it
 * is, and a build or repair stops with an error.  Then the paths become the option "own", and
 * pattern_disable() keeps these fields in the documents.
 */
#ifndef DP_KIT_ADOPT_H
#define DP_KIT_ADOPT_H

#include "kit/declaration.h"

/* True if a field of the declaration is guarded now; false while its row is being adopted. */
extern bool dp_held(const DpDecl *decl, const DpPath *path);

/* True if any field is guarded now. */
extern bool dp_holding(const DpDecl *decl);

/* True if documents had the field before the declaration, adopted or not. */
extern bool dp_had_field(const DpDecl *decl, const DpPath *path);

/*
 * True if a value would be lost: it is not null, false, zero or empty, and occurs neither in is
 * (the new value, or NULL) nor in elsewhere (values stored elsewhere, DpValue *).  An element
 * of an array, or a field of a document, may occur in a larger one.
 */
extern bool dp_value_lost(const DpValue *was, const DpValue *is, List *elsewhere);

/*
 * Does the same for all guarded fields of the declaration; returns the first one that is lost, or
 * NULL.
 */
extern const DpPath *
dp_held_lost(const DpDecl *decl, struct varlena *was, struct varlena *is, List *elsewhere);

/* True if a value is a flag: a boolean, or the text true, false, yes or no. */
extern bool dp_value_is_mark(const DpValue *value);

/*
 * Raises OBJECT_NOT_IN_PREREQUISITE_STATE: the write would destroy a value from before the
 * declaration.
 */
extern void dp_held_refuse(const DpDecl *decl, const DpPath *path) pg_attribute_noreturn();

#endif /* DP_KIT_ADOPT_H */
