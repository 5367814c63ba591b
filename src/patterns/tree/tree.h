/*
 * tree.h
 *		The tree pattern: declarations, and how the nodes of a tree are read.
 *
 * A tree is a table whose documents are nodes.  A node has an id, a field that is
 * unique in the table, and a parent.  One form in the document, written by users,
 * determines the parent: the truth.  The other declared forms are derived from it
 * and stored in the documents:
 *
 *	parent		the id of the parent; absent or null: a root
 *	ancestors	an array of the ids above it, beginning with the root's or the
 *				parent's; empty in a root
 *	path		the same as text, joined by a separator
 *	children	an array of the ids of its children, in the order of siblings
 *	depth		the number of ids above it
 *
 * If the truth is ancestors, the nearest one is the parent and the others are
 * derived from it; if it is the path, all ids are strings.  With children or path
 * as truth, a parent field is derived too, and has an index.
 *
 * The declaration creates indexes for these queries:
 *
 *	a node by its id				unique btree on the id (or the primary key)
 *	children of a node				btree on the parent
 *	a subtree, depth first			with ancestors: btree on the treepath of
 *									the ancestors and the id; without: level
 *									by level by the index on the parent
 *	ancestors of a node				with ancestors: its own document; without:
 *									upwards by the id
 *
 * The expressions of these indexes are words of dp_tree_word(); statements use them to match the
 * indexes.
 *
 * tree.c reads declarations and documents, forms.c computes forms, trigger.c has
 * the triggers, change.c processes statements, rows.c finds and writes rows,
 * attach.c has the documents of other tables attached to nodes.
 */
#ifndef DP_PATTERNS_TREE_TREE_H
#define DP_PATTERNS_TREE_TREE_H

#include "bson/builder.h"
#include "bson/path.h"
#include "bson/reader.h"
#include "kit/declaration.h"
#include "kit/derive/hierarchy.h"
#include "kit/key.h"

/* The bytes that a treepath may have to be indexed */
#define DP_TREE_MAX_PATH 2600

typedef enum DpTreeTruth
{
	DP_TREE_PARENT,
	DP_TREE_ANCESTORS,
	DP_TREE_PATH,
	DP_TREE_CHILDREN
} DpTreeTruth;

/* What to do with the children of a deleted node */
typedef enum DpTreeDelete
{
	DP_TREE_RESTRICT, /* the deletion is refused */
	DP_TREE_CASCADE,  /* they are deleted, too */
	DP_TREE_REPARENT  /* they become children of the deleted node's parent */
} DpTreeDelete;

/*
 * A declaration: of the pattern "tree", or "tree_attach", whose documents are attached to nodes of
 * another table and are not nodes (id is NULL, there are no children). Paths are NULL for
 * undeclared forms.
 */
typedef struct DpTree
{
	DpDecl *decl;
	DpPath *id;
	DpPath *parent;
	DpPath *ancestors;
	DpPath *path;
	DpPath *children;
	DpPath *depth;
	DpPath *order_by; /* of siblings; NULL: by their ids */
	char *id_text;    /* their texts */
	char *parent_text;
	char *ancestors_text;
	char *path_text;
	char *children_text;
	char *depth_text;
	char *order_text;
	bool nearest_first; /* order of the array of ancestors */
	char *separator;
	bool path_self; /* the path ends with the node itself */
	bool path_lead; /* the path begins with a separator */
	DpTreeTruth truth;
	DpTreeDelete on_delete;
	bool
		id_is_key; /* the table's primary key is the id: a column _id that follows the document's */
	char *key_column;   /* its name, if so */
	bool chained;       /* a form is kept that changes in a whole subtree */
	char *parent_field; /* the path that the index on parents is on */
	char *mark;         /* mark of our own writes */
	Oid id_index;       /* rows.c: InvalidOid until it is looked for */
	struct DpLookup *by_id;
	struct DpLookup *by_parent;
	struct DpLookup *by_key;
	List *attached; /* attach.c */
	bool attached_known;
	char *link_id;         /* tree_attach: leads to the tree */
	bool remembers;        /* there is a list of former children: a queue, by their parents */
	DpHierarchy hierarchy; /* for patterns that derive along it */
} DpTree;

/*
 * The pattern's view of a declaration of "tree" or "tree_attach"; lives as long as the declaration.
 */
extern DpTree *dp_tree(DpDecl *decl);

/*
 * The tree of a table: the one of that name, or the only one if name is NULL.  Raises errors as
 * dp_decl_find().
 */
extern DpTree *dp_tree_find(Oid relid, const char *name);

/* The only tree of a table as a hierarchy. */
extern const DpHierarchy *dp_tree_hierarchy(Oid relid);

/* The declaration that the first three arguments of a function name: table, pattern and name. */
extern DpTree *dp_tree_named(FunctionCallInfo fcinfo);

/*
 * A node's document.  Values point into the document.
 */

/* Returns its id; false without one (then it is not a node). */
extern bool dp_tree_id(const DpTree *tree, struct varlena *doc, DpValue *id);

/*
 * Returns the id of its parent; false for a root. With truth path it is palloc'd. Read from the
 * truth; if that is children, from the parent field.
 */
extern bool dp_tree_parent(const DpTree *tree, struct varlena *doc, DpValue *parent);

/*
 * The ids above it, root first, if ancestors are kept: palloc'd, *n of them,
 * pointing into the document.  NULL if they are not kept, or if the document
 * has none (it was there before the pattern was declared, and not built yet).
 */
extern DpValue *dp_tree_ancestors(const DpTree *tree, struct varlena *doc, int *n);

/* The treepath of ancestors and id, as the index has it; NULL where dp_tree_ancestors() is NULL. */
extern struct varlena *dp_tree_treepath(const DpTree *tree, struct varlena *doc);

/*
 * Words of templates, for a row that is known as t: the expressions of the
 * indexes.  id and parent are of type bson_value, compared with the
 * extension's operator =; a root's parent is NULL or a BSON null.  treepath is
 * of type treepath and NULL in documents that were not built; only if
 * tree->ancestors.  order is what siblings are sorted by (a list with the id
 * behind it), node the row's key as a bson_value.
 */
extern bool dp_tree_word(DpDecl *decl, const char *word, StringInfo sql);

#endif /* DP_PATTERNS_TREE_TREE_H */
