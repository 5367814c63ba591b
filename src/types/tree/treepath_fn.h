/*
 * treepath_fn.h
 *		Ids of paths as SQL arguments. For the files treepath*.c only.
 */
#ifndef DP_TYPES_TREE_TREEPATH_FN_H
#define DP_TYPES_TREE_TREEPATH_FN_H

#include "nodes/pg_list.h"
#include "utils/array.h"

#include "types/tree/treepath.h"

/*
 * Appends an SQL value as an id.  Raises what dp_datum_to_value() and
 * dp_treepath_append_value() do.
 */
extern void dp_treepath_append_datum(DpTreepathBuilder *b, Datum id, Oid type);

/*
 * The elements of an array as ids: a List of varlenas, each with the bytes of
 * one id.  Raises NULL_VALUE_NOT_ALLOWED and ARRAY_SUBSCRIPT_ERROR.
 */
extern List *dp_treepath_array_elements(ArrayType *array);

#endif /* DP_TYPES_TREE_TREEPATH_FN_H */
