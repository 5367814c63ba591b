/*
 * query.h
 *		The part of a filter that an index on documents can serve, and the keys to search.
 *
 * A filter becomes conditions (DpCondition): a tree of what the index can decide.  Every document
 * that matches the filter satisfies the conditions.  They can be written as a filter again, which
 * EXPLAIN shows, and they become a query (DpIndexQuery): entries to search in the index and a tree
 * over them.  The entries may find more documents than the conditions, never fewer.
 *
 * Memory: everything lives in the current context, and points into the filter, the document or the
 * paths that were passed.
 */
#ifndef DP_INDEX_QUERY_H
#define DP_INDEX_QUERY_H

#include "access/gin.h"

#include "bson/builder.h"
#include "index/key.h"
#include "mql/filter_node.h"

/* Strategies of the operator class bson_ops */
#define DP_STRATEGY_MATCH 1      /* doc @@~ filter */
#define DP_STRATEGY_CONTAINS 2   /* doc @> doc */
#define DP_STRATEGY_EXISTS 3     /* doc ? path */
#define DP_STRATEGY_EXISTS_ANY 4 /* doc ?| paths */
#define DP_STRATEGY_EXISTS_ALL 5 /* doc ?& paths */

/* ---------------------------------------------------------------- conditions */

typedef enum DpConditionOp
{
	DP_COND_ALL,  /* nothing is known: any document */
	DP_COND_NONE, /* no document */
	DP_COND_AND,
	DP_COND_OR,
	DP_COND_EQUAL,       /* node: FILTER_EQ */
	DP_COND_IN,          /* node: FILTER_IN */
	DP_COND_RANGE,       /* node, upper: one or both of the two ends */
	DP_COND_REGEX,       /* node: FILTER_REGEX with a literal in front */
	DP_COND_EMPTY_ARRAY, /* node: FILTER_SIZE, of 0 */
	DP_COND_TYPES,
	DP_COND_EXISTS,
	DP_COND_MISSING,
	DP_COND_ELEMENT, /* node: FILTER_ELEM_...; one child, about the elements */
	DP_COND_PAIR     /* children: on the first part and perhaps on the second */
} DpConditionOp;

/* A path that begins where another one ends: inside $elemMatch, and in documents. */
typedef struct DpPathChain
{
	const struct DpPathChain *outer;
	const DpPath *path;
} DpPathChain;

typedef struct DpCondition
{
	DpConditionOp op;
	DpPathChain chain; /* of those that look something up at a path */
	const DpFilterNode *node;
	const DpFilterNode *upper;
	const DpFilterPath *name; /* as the filter spells the path */
	DpTypeSet types;
	bool in_value;       /* $elemMatch of a value: one value must satisfy all */
	bool in_element;     /* below $elemMatch */
	const char *literal; /* REGEX */
	uint32 literallen;
	const DpKeyPair *pair;
	int nchildren;
	struct DpCondition **children;
} DpCondition;

/*
 * The conditions that an index with these options can serve.  Where several
 * must hold and some of them usually cost more than they narrow, those are left
 * out, unless all shall be there.
 */
extern DpCondition *
dp_conditions_of_filter(const DpFilterNode *root, const DpKeyOptions *options, bool all);

/*
 * Does the same with an estimate of the fraction of documents that satisfy a node of the filter.
 * by_statistics: without the estimate, fewer conditions would have been chosen.
 */
typedef double (*DpConditionEstimate)(const DpFilterNode *node, void *arg);

extern DpCondition *
dp_conditions_estimated(const DpFilterNode *root, const DpKeyOptions *options,
						DpConditionEstimate estimate, void *arg, bool *by_statistics);

/*
 * The conditions as a filter (a palloc'd bson), or NULL for DP_COND_ALL.  A chosen filter has a
 * comment that dp_filter_is_chosen() recognizes: all of it must be searched.
 */
extern struct varlena *dp_conditions_to_filter(const DpCondition *condition, bool chosen);
extern bool dp_filter_is_chosen(const DpFilterNode *root);

/* The whole path of a chain: itself if there is nothing outside of it. */
extern const DpPath *dp_chain_path(const DpPathChain *chain);

/* ---------------------------------------------------------------- queries */

typedef enum DpQueryOp
{
	DP_QUERY_ALL,
	DP_QUERY_NONE,
	DP_QUERY_AND,
	DP_QUERY_OR,
	DP_QUERY_ENTRY
} DpQueryOp;

typedef struct DpQueryNode
{
	DpQueryOp op;
	int entry; /* ENTRY: its number */
	int n;     /* AND, OR */
	int room;
	struct DpQueryNode **nodes;
} DpQueryNode;

/* A key to search, or a range of keys. */
typedef struct DpQueryEntry
{
	DpKeyRange range; /* of a single key only low */
	bool is_range;
	const struct DpIndexQuery *query;
} DpQueryEntry;

typedef struct DpIndexQuery
{
	DpQueryNode *root;
	DpQueryEntry **entries;
	int nentries;
	int room;
} DpIndexQuery;

/* The lookup for conditions, for doc @> b, and for one or more paths that must exist. */
extern DpIndexQuery *
dp_query_of_conditions(const DpCondition *condition, const DpKeyOptions *options);
extern DpIndexQuery *dp_query_of_contained(const DpValue *b, const DpKeyOptions *options);
extern DpIndexQuery *
dp_query_of_paths(DpPath *const *paths, int n, bool all, const DpKeyOptions *options);

/* The three-valued result of the tree for the known entries. */
extern GinTernaryValue dp_query_evaluate(const DpQueryNode *node, const GinTernaryValue *check);

#endif /* DP_INDEX_QUERY_H */
