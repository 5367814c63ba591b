/*
 * rollup.h
 *		The roll-up pattern: totals of a source by spans of time or along a
 *		tree, each in a document of its own.
 *
 * The documents lie in a collection that belongs to the pattern.  By time there
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
 * Who writes to the source holds the lock of the tree (a group lock of the
 * declaration) in RowExclusiveLock mode before it reads who is above whom, and
 * who changes the tree in ExclusiveLock mode.
 *
 * rollup.c has the methods of the derivation, read.c computes groups
 * anew and checks them, tree.c knows the tree.
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

/* The group lock that stands for the tree */
#define DP_ROLLUP_TREE_LOCK 0

typedef struct DpRollupLevel
{
	char *name; /* as it was declared: "hour", "15 minutes" */
	DpSpan span;
	int64 width; /* in seconds, months being of 30 days */
	int below;   /* the level that it is computed from; -1: the source */
} DpRollupLevel;

/* A declaration; in its memory. */
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
	char *tree_pair;
	Oid tree; /* its table, InvalidOid if it is gone */

	uint64 evaluation; /* the last one's number */

	/* addresses that name statements */
	char plan_one;
	char plan_rows;
	char plan_lower;
	char plan_all;
	char plan_node;
	char plan_above;
	char plan_children;
	char plan_stored;
} DpRollup;

/* A group of a run. */
typedef struct DpRollupGroup
{
	DpAccumulation *totals; /* what came and went; NULL: nothing did */
	DpAccumulation *whole;  /* the whole group, as the evaluation of that number has found it */
	uint64 evaluation;
	bool placed; /* along a tree: above is known */
	int nabove;
	DpGroup **above; /* groups of the nodes above it */
} DpRollupGroup;

/* What a key of the target by time says. */
typedef struct DpRollupKey
{
	int level;
	TimestampTz start;
	TimestampTz next; /* where the following span begins */
	DpValue group;    /* an array */
} DpRollupKey;

/* rollup.c */

/* The declaration's roll-up. */
extern DpRollup *dp_rollup(DpDecl *decl);

/*
 * Whether a row counts; its time (if by time) and what it is grouped by, pointing into its
 * document.
 */
extern bool dp_rollup_row(DpRollup *r, const DpSourceRow *row, TimestampTz *t, DpValue *groups);

/* The part of a group that belongs to the pattern. */
extern DpRollupGroup *dp_rollup_group(DpGroup *group);

/* What a key says; raises DATA_CORRUPTED for one that no row of the target can have. */
extern void dp_rollup_key(DpRollup *r, const DpValue *key, DpRollupKey *out);

/* Appends the key of a level's document to the builder, as a document of its own. */
extern void
dp_rollup_key_build(DpRollup *r, DpBuilder *b, int level, TimestampTz start, const DpValue *groups);

/* The document of a group, without totals. */
extern struct varlena *dp_rollup_head(DpRollup *r, const DpValue *key);

/* read.c */

/*
 * The whole of a group, as it will be when the run has been written.  The
 * group is locked.  Everything is read with one snapshot, the latest: who moves
 * a row within the group changes nothing in it and does not lock it, and must be seen
 * in both places or in none.
 */
extern DpAccumulation *dp_rollup_evaluate(DpRollup *r, DpGroup *group);

/* An empty whole for a group, unless this evaluation has it already: then false. */
extern bool dp_rollup_whole_begin(DpRollup *r, DpGroup *group);

/* Takes all rows in whose field of the tree is that node, beside what is there. */
extern void dp_rollup_read_node(DpRollup *r, DpAccumulation *g, const DpValue *node);

/*
 * Gives each row of the source to a run: as take() with sign 1, or (anew) only its groups, to be
 * computed anew.
 */
extern void dp_rollup_read_all(DpRollup *r, DpDerive *run, bool latest, bool anew);

/* Calls visit for each document that the statement gives; see dp_source_each(). */
extern int64 dp_rollup_each(DpRollup *r, SPIPlanPtr plan, ParamListInfo params, bool latest,
							DpSourceVisit visit, void *arg);

/* DpPattern: brings a row in line. */
extern bool dp_rollup_settle(DpDecl *decl, const DpKey *key);

/* tree.c */

/* The groups of the nodes above a node, which join the run. */
extern void dp_rollup_place(DpRollup *r, DpDerive *run, DpGroup *group);

/* The whole of a group that another one is computed of, along a tree */
extern DpAccumulation *dp_rollup_node_whole(DpRollup *r, DpGroup *group);

/* What a statement on a tree means to the roll-ups along it: DpPattern. */
extern void dp_rollup_tree_changed(DpChanges *changes);

#endif /* DP_PATTERNS_ROLLUP_ROLLUP_H */
