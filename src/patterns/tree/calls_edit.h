/*
 * calls_edit.h
 *		The position of a node as written into its document.  Only for calls*.c.
 */
#ifndef DP_PATTERNS_TREE_CALLS_EDIT_H
#define DP_PATTERNS_TREE_CALLS_EDIT_H

#include "patterns/tree/tree.h"

/* The document with that. */
extern struct varlena *dp_tree_move_under(DpTree *tree, struct varlena *doc, const DpValue *parent);

#endif /* DP_PATTERNS_TREE_CALLS_EDIT_H */
