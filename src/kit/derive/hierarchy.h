/*
 * hierarchy.h
 *		Tables whose rows are nodes of a tree, for patterns that derive data along it.
 */
#ifndef DP_KIT_DERIVE_HIERARCHY_H
#define DP_KIT_DERIVE_HIERARCHY_H

#include "bson/reader.h"
#include "kit/declaration.h"

typedef struct DpHierarchy
{
	DpDecl *decl;         /* its templates have the words id and parent, of a row called t */
	bool keeps_ancestors; /* nodes store the ids of their ancestors */

	/* A node's id and its parent's id; false if it has none. */
	bool (*id)(const struct DpHierarchy *h, struct varlena *doc, DpValue *id);
	bool (*parent)(const struct DpHierarchy *h, struct varlena *doc, DpValue *parent);

	/*
	 * The ids of a node's ancestors, root first: palloc'd, *n of them; NULL if they are not stored.
	 */
	DpValue *(*ancestors)(const struct DpHierarchy *h, struct varlena *doc, int *n);
} DpHierarchy;

#endif /* DP_KIT_DERIVE_HIERARCHY_H */
