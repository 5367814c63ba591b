/*
 * sort_key.h
 *		Sort specifications: {"a": 1, "b.c": -1}.
 *
 * The key of a document is a run of bytes, and keys are compared as bytes
 * (memcmp, then the shorter first): docs/formats.md describes them.
 */
#ifndef DP_MQL_SORT_KEY_H
#define DP_MQL_SORT_KEY_H

#include "lib/stringinfo.h"

#include "bson/reader.h"

typedef struct DpSortSpec DpSortSpec;

/*
 * Compiles a sort specification in the current memory context; the result
 * points into the bytes of spec.  Raises INVALID_PARAMETER_VALUE for what is
 * not one, and FEATURE_NOT_SUPPORTED for $meta.
 */
extern DpSortSpec *dp_sort_spec_compile(const DpValue *spec);

/*
 * Appends the key of a document to out, which binary StringInfo functions may
 * use.  A value that is no document has no fields.  Raises
 * INVALID_PARAMETER_VALUE if two fields of the specification lead into
 * different arrays.
 */
extern void dp_sort_key_append(StringInfo out, const DpSortSpec *spec, const DpValue *doc);

/* The same for $sortArray, to which an array is one value that no path leads into. */
extern void dp_sort_key_append_whole(StringInfo out, const DpSortSpec *spec, const DpValue *doc);

/*
 * Appends bytes that sort as dp_value_compare() does, and that no other value's
 * bytes begin with; with descending they sort the other way round.
 */
extern void dp_sort_key_append_value(StringInfo out, const DpValue *v, bool descending);

#endif /* DP_MQL_SORT_KEY_H */
