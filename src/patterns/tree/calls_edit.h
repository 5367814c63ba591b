/*
 * calls_edit.h
 *		Where a node hangs, as it is written into its document.  For the files
 *		tree_calls*.c only.
 */
#ifndef DP_PATTERNS_TREE_CALLS_EDIT_H
#define DP_PATTERNS_TREE_CALLS_EDIT_H

#include "patterns/tree/tree.h"

/*
 * What the truth of a node with an id says if it hangs below a parent (NULL: a
 * root), and at which path; NULL: nothing is there.  The ids above the parent
 * are left to the triggers.
 */
extern struct varlena *
dp_tree_place_value(DpTree *tree, const DpValue *parent, const DpValue *id, const char **path);

/* The document with that. */
extern struct varlena *dp_tree_place(DpTree *tree, struct varlena *doc, const DpValue *parent);

#endif /* DP_PATTERNS_TREE_CALLS_EDIT_H */
