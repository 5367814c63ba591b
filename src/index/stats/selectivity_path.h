/*
 * selectivity_path.h
 *		Estimates from the statistics of one path for conditions on its items. For the files
 *		selectivity*.c only.
 */
#ifndef DP_INDEX_STATS_SELECTIVITY_PATH_H
#define DP_INDEX_STATS_SELECTIVITY_PATH_H

#include "index/stats/selectivity.h"
#include "index/stats/stats.h"

struct DpEstimator
{
	double null_frac;     /* rows whose document is null */
	double documents;     /* of the table, those that are not null; at least 1 */
	const DpStats *stats; /* NULL: nothing is known */
};

/* Defaults without statistics */
#define DP_DEFAULT_CONDITION 0.010
#define DP_DEFAULT_EXISTS 0.5
#define DP_DEFAULT_REGEX 0.005

/*
 * A set of items at a path: pairs of document and different item per document,
 * items per document, and the share of documents that the most frequent of
 * them has by itself.
 */
typedef struct DpShare
{
	double docs;
	double items;
	double top;
} DpShare;

/* A place in the order of values: at a value, or before or after all values of a class. */
typedef struct DpLimit
{
	int edge; /* 0: at the value; -1, 1: before, after its class */
	DpClass class;
	DpValue value;
	bool equal_below; /* the value itself comes before the place */
} DpLimit;

/* True if an item belongs to the set */
typedef bool (*DpItemTest)(const DpValue *item, const void *arg);

extern void dp_share_add(DpShare *share, const DpShare *other);

/* The items that equal a value. */
extern DpShare
dp_path_share_equal(const DpEstimator *estimator, const DpPathStats *path, const DpValue *value);

/* The items between two places. */
extern DpShare
dp_path_share_range(const DpPathStats *path, const DpLimit *lower, const DpLimit *upper);

/* The items that satisfy a test, which is run on the known ones. */
extern DpShare dp_path_share_test(const DpPathStats *path, DpItemTest test, const void *arg);

/* The share of documents that have at least one item of the set. */
extern double dp_path_any(const DpPathStats *path, const DpShare *share);

/* The share of documents none of whose items are in the set: of those that have items only. */
extern double dp_path_none(const DpPathStats *path, double items);

/* Of the arrays at the path: the share of those that have more elements than n, and exactly n. */
extern double dp_path_longer(const DpPathStats *path, int64 n);
extern double dp_path_length(const DpPathStats *path, int64 n);

/*
 * The share of documents one of whose arrays has an element that something is true of with this
 * probability.
 */
extern double dp_path_any_element(const DpPathStats *path, double probability);

/* Different items in the table. */
extern double dp_path_distinct(const DpEstimator *estimator, const DpPathStats *path);

/* ---------------------------------------------------------------- selectivity_scope.c */

/* The scope of conditions */
typedef enum DpScopeKind
{
	DP_SCOPE_DOCUMENT,  /* the document of a row */
	DP_SCOPE_CONTAINER, /* one of the documents at a path, on average */
	DP_SCOPE_ELEMENT    /* one of the elements of the arrays at a path */
} DpScopeKind;

typedef struct DpScope
{
	DpScopeKind kind;
	const DpPathStats *base; /* the path; DOCUMENT: NULL */
	const char *key;         /* its key, in front of those of the paths below */
	uint32 keylen;
} DpScope;

#define DP_KEY_MAX 1024

/* The facts about a path in a scope. */
typedef struct DpKnown
{
	const DpPathStats *path; /* NULL: nothing */
	const DpPathStats *near; /* else its longest known prefix; NULL if none is known */
	double position;         /* share of documents that remain because of positions in arrays */
	bool positional;
	char key[DP_KEY_MAX];
	uint32 keylen;
} DpKnown;

/* Looks a path up.  names: parts that are whole numbers are positions as well as names. */
extern void dp_scope_lookup(const DpEstimator *estimator, const DpScope *scope, const DpPath *path,
							DpKnown *known);

/* The probability that an item of the set is found at a path of the scope. */
extern double dp_scope_any(const DpScope *scope, const DpKnown *known, const DpShare *share);

/*
 * The probability of something that so many documents of the table have at the path, in the scope.
 */
extern double dp_scope_scale(const DpScope *scope, const DpKnown *known, double documents);

/* The probability that there is a value at the path, and that {path: null} matches. */
extern double
dp_scope_exists(const DpEstimator *estimator, const DpScope *scope, const DpKnown *known);
extern double
dp_scope_null(const DpEstimator *estimator, const DpScope *scope, const DpKnown *known);

/* The probability of a path of which nothing is known. */
extern double dp_scope_unknown(const DpEstimator *estimator);

/*
 * The probability that a document contains another one (operator @>), and that -> finds a value at
 * a path that equals the given one.
 */
extern double
dp_estimate_contains(const DpEstimator *estimator, const DpScope *scope, const DpValue *document);
extern double
dp_estimate_direct_equal(const DpEstimator *estimator, const DpKnown *known, const DpValue *value);

/* The probability that all of n conditions hold; the array is put in order. */
extern double dp_combine(double *probabilities, int n);

/* Adds one to an array of probabilities to be combined, which has room for so many. */
#define DP_COMBINE_MAX 32

static inline void
dp_combine_add(double *probabilities, int *n, double probability)
{
	if (*n == DP_COMBINE_MAX)
	{
		probabilities[0] = dp_combine(probabilities, *n);
		*n = 1;
	}
	probabilities[(*n)++] = probability;
}

#endif /* DP_INDEX_STATS_SELECTIVITY_PATH_H */
