/*
 * change.h
 *		Declarations that the files of the tree pattern share.
 */
#ifndef DP_PATTERNS_TREE_CHANGE_H
#define DP_PATTERNS_TREE_CHANGE_H

#include "commands/trigger.h"
#include "utils/hsearch.h"

#include "kit/rows/write.h"
#include "kit/statement.h"
#include "patterns/tree/tree.h"

struct DpTreeRemoved;

/* forms.c */

extern struct varlena *dp_tree_arrange(const DpTree *tree, struct varlena *doc,
									   const DpValue *chain, int n, const DpValue *children);
extern struct varlena *
dp_tree_put_back(const DpTree *tree, struct varlena *from, struct varlena *doc, bool children);
extern struct varlena *dp_tree_strip(const DpTree *tree, struct varlena *doc);
extern struct varlena *
dp_tree_set_parent(const DpTree *tree, struct varlena *doc, const DpValue *parent);
extern void dp_tree_check_id(const DpTree *tree, struct varlena *doc, DpValue *id);
extern void dp_tree_check_path(const DpTree *tree, const DpValue *id, const DpValue *chain, int n);

/*
 * Returns the document to write while fields of the pattern have values from before the
 * declaration (adopt.h): an array of children keeps other ids than those (DpTreeRemoved, n of
 * them) that were removed from it. Raises OBJECT_NOT_IN_PREREQUISITE_STATE if another form would
 * be lost.
 */
extern struct varlena *dp_tree_guarded(const DpTree *tree, struct varlena *was, struct varlena *is,
									   struct DpTreeRemoved *removed, int n);

/* rows.c */

/*
 * The document of a node in its latest state, rows of the running command
 * included, without a lock; NULL if there is none.  A copy in the current
 * context.
 */
extern struct varlena *dp_tree_probe(DpTree *tree, Relation rel, const DpValue *id);

/* Returns a node's document by its id; NULL without one */
typedef struct varlena *(*DpTreeFetch)(void *arg, const DpValue *id);

/*
 * Returns the ids from the root to the node itself, given only its document: from its ancestors
 * (if trusted), or upwards by fetch(). palloc'd, *n of them. NULL if a parent is missing or there
 * is a cycle.
 */
extern DpValue *dp_tree_chain(const DpTree *tree, struct varlena *doc, bool trust,
							  DpTreeFetch fetch, void *arg, int *n);

/* Writers on the table of a declaration, and how they find rows. */
extern DpWriter *dp_tree_writer(DpTree *tree);
extern bool dp_tree_find_id(DpTree *tree, DpWriter *w, const DpValue *id);

/*
 * Does the same, and locks the row with the id, even if it was deleted and inserted again
 * concurrently.
 */
/*
 * left: set to true if the row is locked by a transaction that waits for us; NULL without
 * dp_writer_leave().
 */
extern bool
dp_tree_lock_id(DpTree *tree, DpWriter *w, const DpValue *id, LockTupleMode mode, bool *left);
extern bool dp_tree_find_children(DpTree *tree, DpWriter *w, const DpValue *id);

/* DpTreeFetch by a writer (a DpTreeReading). */
typedef struct DpTreeReading
{
	DpTree *tree;
	DpWriter *w;
} DpTreeReading;

extern struct varlena *dp_tree_fetch(void *arg, const DpValue *id);

/*
 * written.c: returns the document after applying what users wrote to derived forms; raises
 * OBJECT_NOT_IN_PREREQUISITE_STATE for a contradiction that is not an old copy.
 */
extern struct varlena *
dp_tree_written(DpTree *tree, Relation rel, struct varlena *old, struct varlena *doc);

/*
 * Records that a node is no longer below another one: an array of children that was read before
 * may still have it.
 */
extern void dp_tree_remember_removed(DpTree *tree, const DpValue *parent, const DpValue *child);

/*
 * The array of a node's children as their rows have it, in the order of siblings; in the current
 * context.
 */
extern DpValue *dp_tree_children(DpTree *tree, DpWriter *w, const DpValue *id);

/* collect.c: what a statement has done, row by row */

/* An inserted or changed row */
typedef struct DpTreeSaved
{
	DpValue id; /* nodes; unset for attached documents */
	DpValue parent;
	DpRowRef ref;
	bool has_parent;
	bool is_new;
	bool moved;   /* it had another parent before */
	bool renamed; /* it had another id before */
} DpTreeSaved;

/* An id removed by a deletion or a change */
typedef struct DpTreeRemoved
{
	DpValue id;
	DpValue parent;
	bool has_parent;
	int saved;        /* the row that has another id now, or -1 */
	DpValue children; /* truth children: the array of a deleted node, or DP_TYPE_EOD */
	uint32 stamp;     /* of the array that they were put into last */
} DpTreeRemoved;

/* Truth children: an id added to an array, or removed from it */
typedef struct DpTreeListed
{
	DpValue parent;
	DpValue child;
	bool removed;
} DpTreeListed;

typedef struct DpTreeStatement
{
	DpState state; /* its context has all of it */
	Oid target;
	const char *mark;
	int depth; /* of the statement's triggers */
	DpTreeSaved *saved;
	int nsaved;
	int asaved;
	DpTreeRemoved *removed;
	int nremoved;
	int aremoved;
	DpTreeListed *listed;
	int nlisted;
	int alisted;
} DpTreeStatement;

/* The statement whose row triggers are being called. */
extern DpTreeStatement *dp_tree_statement(DpTree *tree);

/*
 * Returns it at the end of the statement, or NULL without records; free with
 * dp_tree_statement_free().
 */
extern DpTreeStatement *dp_tree_statement_take(DpTree *tree);
extern void dp_tree_statement_free(DpTreeStatement *statement);

/* Note something; values are copied. */
extern DpTreeSaved *dp_tree_saved(DpTreeStatement *statement);
extern DpTreeRemoved *dp_tree_removed(DpTreeStatement *statement);
extern DpTreeListed *dp_tree_listed(DpTreeStatement *statement);
extern DpValue dp_tree_copy_value(MemoryContext context, const DpValue *value);

/* change.c */

/* Corrects the tree after a statement. */
extern void dp_tree_change(DpTree *tree, DpTreeStatement *statement);

/* Raises CHECK_VIOLATION: a node is listed twice among children. */
extern void dp_tree_listed_twice(const DpTree *tree, const DpValue *child) pg_attribute_noreturn();

/* Waits for concurrent moves of nodes of the tree, and blocks further ones. */
extern void dp_tree_lock_moves(DpTree *tree);

/* attach.c: documents of other tables attached to nodes */

typedef struct DpTreeFollow DpTreeFollow;

/* Returns the tree of attached documents. Raises UNDEFINED_OBJECT if it does not exist. */
extern DpTree *dp_tree_of_attached(DpTree *attached);

/* Whether there are any. */
extern bool dp_tree_has_attached(DpTree *tree);

/*
 * Corrects the documents attached to a node (chain: root to node) after its row was locked.
 * refresh: with a new snapshot.
 */
extern void
dp_tree_follow(DpTree *tree, DpTreeFollow **follow, const DpValue *chain, int n, bool refresh);

/*
 * Called for a removed node: attached documents are refused, deleted, moved to another node, or
 * (after a change of its id) follow.
 */
extern void dp_tree_follow_deleted(DpTree *tree, DpTreeFollow **follow, const DpValue *id,
								   DpTreeDelete rule, const DpValue *chain, int n);
extern void dp_tree_follow_end(DpTreeFollow **follow);

/* DpPattern: process_note of attached documents; the value is the node's id. */
extern void dp_tree_attach_process_note(DpDecl *decl, const DpValue *id);

#endif /* DP_PATTERNS_TREE_CHANGE_H */
