/*
 * projection.h
 *		Projections: which fields of a document are returned, and how.
 *
 * docs/projection.md describes the language.
 */
#ifndef DP_MQL_PROJECTION_H
#define DP_MQL_PROJECTION_H

#include "mql/expression.h"

typedef struct DpProjection DpProjection;

/*
 * Compiles a projection in the current memory context; the result points into
 * the bytes of spec and of filter, which must live as long.  filter is the
 * query that the positional operator refers to, or NULL.  flags are those of
 * dp_expr_compile().  Raises INVALID_PARAMETER_VALUE and FEATURE_NOT_SUPPORTED.
 */
extern DpProjection *dp_projection_compile(const DpValue *spec, const DpValue *filter, int flags);

/*
 * The projected document as a new bson in the current memory context, or NULL
 * if it has the same bytes as doc.
 */
extern struct varlena *dp_projection_apply(DpProjection *p, const DpValue *doc);

#endif							/* DP_MQL_PROJECTION_H */
