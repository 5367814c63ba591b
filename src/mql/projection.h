/*
 * projection.h
 *		Projections: which fields of a document are returned, and how.
 *
 * docs/projection.md describes the language.
 */
#ifndef DP_MQL_PROJECTION_H
#define DP_MQL_PROJECTION_H

#include "mql/expression.h"
#include "mql/filter.h"

typedef struct DpProjection DpProjection;

/*
 * Compiles a projection in the current memory context; the result points into
 * the bytes of spec, which must live as long.  flags are those of
 * dp_expr_compile().  Raises INVALID_PARAMETER_VALUE and FEATURE_NOT_SUPPORTED.
 */
extern DpProjection *dp_projection_compile(const DpValue *spec, int flags);

/* Whether it shows the fields that it names, and not the others. */
extern bool dp_projection_includes(const DpProjection *p);

/*
 * The projected document as a new bson in the current memory context, or NULL
 * if it has the same bytes as doc.  filter is the query that the positional
 * operator refers to, or NULL: INVALID_PARAMETER_VALUE if it is needed.
 */
extern struct varlena *dp_projection_apply(DpProjection *p, const DpValue *doc, DpFilter *filter);

#endif /* DP_MQL_PROJECTION_H */
