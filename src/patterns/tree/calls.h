/*
 * calls.h
 *		Shared by the calls for trees, calls*.c: nodes that were read, and subtrees.
 *
 * The calls read as the caller, with the snapshot of the calling statement, so that
 * privileges and policies apply.
 */
#ifndef DP_PATTERNS_TREE_CALLS_H
#define DP_PATTERNS_TREE_CALLS_H

#include "funcapi.h"

#include "patterns/tree/tree.h"
#include "types/tree/treepath.h"

/* A node that was read.  Everything is in the memory in which it was read. */
typedef struct DpTreeItem
{
	DpValue id;
	struct varlena *doc;       /* NULL: not kept */
	struct varlena *key;       /* the row's key, a bson_value; NULL: not kept */
	int depth;                 /* ids above it in its tree */
	int64 number;              /* in the order in which items were read */
	struct DpTreeItem *parent; /* in the subtree that was read */
	struct DpTreeItem *first;  /* its children, in the order of siblings */
	struct DpTreeItem *last;
	struct DpTreeItem *next;
	int nchildren;
} DpTreeItem;

/* A subtree, or a forest: its top item is not a node if the id has no bytes */
typedef struct DpTreeRead
{
	DpTree *tree;
	DpTreeItem *top;
	struct varlena *top_path; /* treepath of the node at the top, itself included */
	int64 nitems;             /* without the top */
} DpTreeRead;

/*
 * Called for each node below the top in the order of reading, level by level; the item's doc and
 * key are set during the call.
 */
typedef void (*DpTreeVisit)(DpTreeItem *item, void *arg);

/* The tree that the arguments rel and name mean; connects to SPI. */
extern DpTree *dp_tree_begin(FunctionCallInfo fcinfo, int name);

/* An argument of any type as a bson_value, NULL if it is null. */
extern struct varlena *dp_tree_argument(FunctionCallInfo fcinfo, int argno);

/*
 * Returns the maximal depth; -1 without a limit. Raises INVALID_PARAMETER_VALUE for a negative
 * number.
 */
extern int dp_tree_depth_argument(FunctionCallInfo fcinfo, int argno);

/* Reads the node with an id.  Raises NO_DATA_FOUND if there is none. */
extern DpTreeItem *dp_tree_read_node(DpTree *tree, struct varlena *id);

/*
 * The nodes above a node, nearest first: a List of DpTreeItem, with documents.  Raises
 * CHECK_VIOLATION for a cycle.
 */
extern List *dp_tree_read_above(DpTree *tree, DpTreeItem *node);

/* The treepath of a node, itself included. */
extern struct varlena *dp_tree_node_path(DpTree *tree, DpTreeItem *node);

/*
 * Reads the nodes below a node, or all trees if node is NULL, by the parents. keep_docs: the items
 * keep documents and keys.
 */
extern DpTreeRead *dp_tree_read_below(DpTree *tree, DpTreeItem *node, int max_depth, bool keep_docs,
									  DpTreeVisit visit, void *arg);

/* The next item in depth-first order, NULL after the last. */
extern DpTreeItem *dp_tree_item_after(DpTreeRead *read, DpTreeItem *item);

/* The treepath of an item of a subtree. */
extern struct varlena *dp_tree_item_path(DpTreeRead *read, DpTreeItem *item);

/* What reads nodes */
#define DP_TREE_SELECT "SELECT t.{doc}, {node} FROM {table} AS t WHERE "

#endif /* DP_PATTERNS_TREE_CALLS_H */
