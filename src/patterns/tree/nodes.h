/*
 * nodes.h
 *		Shared by change.c and write.c: the nodes that a statement concerns.
 */
#ifndef DP_PATTERNS_TREE_NODES_H
#define DP_PATTERNS_TREE_NODES_H

#include "patterns/tree/change.h"

typedef struct DpTreeChange DpTreeChange;

/* A node that the statement is concerned with */
typedef struct DpTreeNode
{
	DpValue id;
	struct DpTreeNode *up; /* NULL: a root */
	int depth;             /* -1: not known */
	uint32 stamp;          /* of the search for cycles */
	DpTreeSaved *saved;    /* the row of the statement, or NULL */
	DpRowRef ref;
	bool has_ref;
	bool adopted; /* got another parent because its parent was removed: the truth must be written */
	bool walk;    /* its descendants must be written */
	bool reached; /* on the walk, or written already */
	bool dirty;   /* its children changed */
} DpTreeNode;

/* A hash table of things that begin with an id */
typedef struct DpTreeMap
{
	uint64 *hashes;
	DpValue **items;
	uint32 mask;
	uint32 n;
} DpTreeMap;

struct DpTreeChange
{
	DpTree *tree;
	DpTreeStatement *s;
	DpWriter *w;
	DpTreeFollow *follow;
	MemoryContext context; /* of all this */
	MemoryContext scratch; /* for one row */
	DpTreeNode *rows;      /* those of the statement's rows */
	DpTreeMap nodes;
	DpTreeMap removed; /* DpTreeRemoved of removed ids */
	List *adopted;     /* Nodes */
	List *wanted;      /* ids of parents to be locked: DpValue */
	uint32 stamp;
	DpValue *chain; /* room for dp_tree_chain_of() */
	int chain_size;
	bool moves;
	bool adopting; /* children are getting other parents: their lists have to wait */
};

/* change.c */

/* The thing of that id, or NULL. */
extern DpValue *dp_tree_map_find(const DpTreeMap *map, const DpValue *id);

/* Return the node of an id, NULL if it is not known; create one whose position is not known yet. */
extern DpTreeNode *dp_tree_node_find(DpTreeChange *c, const DpValue *id);
extern DpTreeNode *dp_tree_node_add(DpTreeChange *c, const DpValue *id);

/* The ids from the root to a node, or to its parent, in c->chain; how many. */
extern int dp_tree_chain_of(DpTreeChange *c, DpTreeNode *node, bool self);

/* Orders ids; for list_sort(). */
extern int dp_tree_compare_ids(const ListCell *a, const ListCell *b);

/* write.c */

/* Writes the row of a node as it should be; false if nothing is left to be written. */
extern bool dp_tree_write_node(DpTreeChange *c, DpTreeNode *node);

/* Writes the descendants of nodes, level by level. */
extern void dp_tree_write_below(DpTreeChange *c, List *level);

/* Writes the rows whose children changed. */
extern void dp_tree_write_children(DpTreeChange *c);

#endif /* DP_PATTERNS_TREE_NODES_H */
