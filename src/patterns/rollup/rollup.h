/*
 * rollup.h
 *		The roll-up pattern: totals of a source by spans of time or along a
 *		tree, each in a document of its own.
 *
 * The documents are in a collection that belongs to the pattern.  By time there
 * is one for each level, group and span in which the source has rows:
 *
 *		{_id: {width: 3600, group: ["City"], start: ...}, level: "hour",
 *		 start: ..., theater: "City", viewers: 10}
 *
 * A level's documents are computed from those of the level below.  Primary keys
 * sort by the width first, so that locks are taken, and documents are written,
 * from the finest level to the coarsest.
 *
 * Along a tree there is one for each node in whose subtree the source has rows:
 *
 *		{_id: "Laptops", category: "Laptops", total: 10}
 *
 * A writer of the source locks the tree (a group lock of the declaration) in
 * RowExclusiveLock mode before it reads nodes above, a writer of the tree in
 * ExclusiveLock mode.
 *
 * rollup.c has the methods of the derivation, read.c recomputes and
 * checks groups, tree.c reads the tree.
 */
#ifndef DP_PATTERNS_ROLLUP_ROLLUP_H
#define DP_PATTERNS_ROLLUP_ROLLUP_H

#include "bson/builder.h"
#include "kit/derive/change.h"
#include "kit/derive/derive.h"
#include "kit/derive/hierarchy.h"
#include "kit/derive/source.h"
#include "mql/accumulate.h"
#include "mql/filter.h"
#include "types/bucket/start.h"

/* The most levels, and the most fields to group by */
#define DP_ROLLUP_MAX_LEVELS 16
#define DP_ROLLUP_MAX_GROUPS 16

/* The group lock of the tree */
#define DP_ROLLUP_TREE_LOCK 0

typedef struct DpRollupLevel
{
	char *name; /* as declared: "hour", "15 minutes" */
	DpSpan span;
	int64 width; /* in seconds, a month counting as 30 days */
	int below;   /* the level from which it is computed; -1: the source */
} DpRollupLevel;

/* A compiled declaration; in its memory */
typedef struct DpRollup
{
	DpDerivation *derivation;
	DpSource *source;
	DpFilter *filter; /* or NULL */
	DpAccumulators *acc;
	bool need_key;
	int ngroups;
	DpPath *groups[DP_ROLLUP_MAX_GROUPS]; /* in the source's documents, and in the target's */

	/* by time */
	DpPath *time; /* NULL: along a tree */
	int nlevels;
	DpRollupLevel levels[DP_ROLLUP_MAX_LEVELS]; /* from the finest to the coarsest */

	/* along a tree */
	char *tree_link_id;
	Oid tree; /* its table, InvalidOid if missing */

	uint64 evaluation; /* the last one's number */

	/* addresses that name statements */
	char plan_one;
	char plan_rows;
	char plan_all;
	char plan_node;
} DpRollup;

/* A group of a batch */
typedef struct DpRollupGroup
{
	DpAccumulation *totals; /* totals of changed rows; NULL: none */
	DpAccumulation *whole;  /* the whole group, computed in the evaluation with that number */
	uint64 evaluation;
	bool found_above; /* along a tree: above is set */
	int nabove;
	DpGroup **above; /* groups of the nodes above */
} DpRollupGroup;

/* The parts of a key of the target by time */
typedef struct DpRollupKey
{
	int level;
	TimestampTz start;
	TimestampTz next; /* begin of the following span */
	DpValue group;    /* an array */
} DpRollupKey;

/* rollup.c */

/* Returns the declaration's roll-up. */
extern DpRollup *dp_rollup(DpDecl *decl);

/*
 * Returns whether a row counts; its time (if by time) and group values, which point into its
 * document.
 */
extern bool dp_rollup_row(DpRollup *r, const DpSourceRow *row, TimestampTz *t, DpValue *groups);

/* Returns the fields of a group's document that belong to the pattern. */
extern DpRollupGroup *dp_rollup_group(DpGroup *group);

/* Reads a key; raises DATA_CORRUPTED for an invalid one. */
extern void dp_rollup_key(DpRollup *r, const DpValue *key, DpRollupKey *out);

/* Appends the key of a level's document to the builder, as a document. */
extern void
dp_rollup_key_build(DpRollup *r, DpBuilder *b, int level, TimestampTz start, const DpValue *groups);

/* Returns the document of a group, without totals. */
extern struct varlena *dp_rollup_head(DpRollup *r, const DpValue *key);

/* read.c */

/*
 * Returns the whole of a group as it will be after the batch. The group is locked. Reads everything
 * with one snapshot, the latest: a transaction that moves a row within the group does not lock it,
 * and its change must be visible completely or not at all.
 */
extern DpAccumulation *dp_rollup_evaluate(DpRollup *r, DpGroup *group);

/* Returns an empty whole for a group; false if this evaluation already has it. */
extern bool dp_rollup_whole_begin(DpRollup *r, DpGroup *group);

/* Adds all rows of that node of the tree. */
extern void dp_rollup_read_node(DpRollup *r, DpAccumulation *g, const DpValue *node);

/*
 * Adds each row of the source to a batch: as take() with sign 1, or (recompute) only marks its
 * groups for recomputation.
 */
extern void dp_rollup_read_all(DpRollup *r, DpDeriveBatch *batch, bool latest, bool recompute);

/* Calls visit for each document of the statement's result; see dp_source_each(). */
extern int64 dp_rollup_each(DpRollup *r, SPIPlanPtr plan, ParamListInfo params, bool latest,
							DpSourceVisit visit, void *arg);

/* DpPattern: corrects a row. */
extern bool dp_rollup_repair_row(DpDecl *decl, const DpKey *key);

/* tree.c */

/* Returns the groups of the nodes above a node and adds them to the batch. */
extern void dp_rollup_find_above(DpRollup *r, DpDeriveBatch *batch, DpGroup *group);

/* Returns the whole of a group that another group needs, along a tree. */
extern DpAccumulation *dp_rollup_node_whole(DpRollup *r, DpGroup *group);

/* DpPattern: processes a statement on a tree for the roll-ups along it. */
extern void dp_rollup_tree_changed(DpChanges *changes);

#endif /* DP_PATTERNS_ROLLUP_ROLLUP_H */
