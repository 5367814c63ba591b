/*
 * calls_edit.h
 *		Where a node hangs, as it is written into its document.  For the files
 *		tree_calls*.c only.
 */
#ifndef DP_PATTERNS_TREE_CALLS_EDIT_H
#define DP_PATTERNS_TREE_CALLS_EDIT_H

#include "patterns/tree/tree.h"

/* The document with that. */
extern struct varlena *dp_tree_place(DpTree *tree, struct varlena *doc, const DpValue *parent);

#endif /* DP_PATTERNS_TREE_CALLS_EDIT_H */
