/*
 * adopt.h
 *		Values that documents held before a pattern was declared that keeps
 *		their field.
 *
 * <pattern>_enable() looks once for values in the fields that the pattern will
 * keep, and notes the paths as the option "held".  Until pattern_build() has
 * brought the table in line, nothing writes over such a value unless it is
 * found again in what takes its place or in the source: writes leave it alone,
 * and a build or a repair stops.  Then the paths become the option "own", by which
 * pattern_disable() knows fields that it must not take out of the documents.
 */
#ifndef DP_KIT_ADOPT_H
#define DP_KIT_ADOPT_H

#include "kit/declaration.h"

/* Whether a field of the declaration is guarded now: false while the row is being adopted. */
extern bool dp_held(const DpDecl *decl, const DpPath *path);

/* Whether any field is. */
extern bool dp_holding(const DpDecl *decl);

/* Whether documents had the field before the declaration, adopted or not. */
extern bool dp_had_field(const DpDecl *decl, const DpPath *path);

/*
 * Whether a value is worth keeping and cannot be found again: null, false, zero and what is
 * empty are not; is (NULL: none) is what takes its place, and elsewhere
 * (DpValue *) are values that are kept in another place.  An element of an
 * array, or a field of a document, may be found in a larger one.
 */
extern bool dp_value_lost(const DpValue *was, const DpValue *is, List *elsewhere);

/* The same for all fields of the declaration that are guarded: the first that is lost, or NULL. */
extern const DpPath *
dp_held_lost(const DpDecl *decl, struct varlena *was, struct varlena *is, List *elsewhere);

/* Whether a value says yes or no, as flags do: true, "true", "yes". */
extern bool dp_value_is_mark(const DpValue *value);

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE: the write would destroy what a field held before. */
extern void dp_held_refuse(const DpDecl *decl, const DpPath *path) pg_attribute_noreturn();

#endif /* DP_KIT_ADOPT_H */
