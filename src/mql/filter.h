/*
 * filter.h
 *		Filters: MongoDB's query language, compiled and run over documents in their stored form.
 *
 * docs/filter.md has the language.  A filter is compiled into nodes in one memory context.
 * Matching allocates nothing, except for regular expressions and $expr, whose memory is reused or
 * freed.
 */
#ifndef DP_MQL_FILTER_H
#define DP_MQL_FILTER_H

#include "bson/path.h"
#include "mql/error.h"

typedef struct DpFilter DpFilter;

/* The kind of filter to compile */
typedef enum DpFilterFlags
{
	DP_FILTER_DOCUMENT = 0, /* a document: {qty: {$gt: 5}} */

	/*
	 * One value: {$gt: 5}, or a value that it must equal, or a regular
	 * expression.  As if the value were a field of a document: the elements of
	 * an array are tried too.  For $pull.
	 */
	DP_FILTER_VALUE = 1,

	/* One element of an array, by the rules of $elemMatch, either form. */
	DP_FILTER_ELEMENT = 2,

	/*
	 * One value that the filter calls by a name: {x: {$gt: 5}} or {"x.qty": 5}.
	 * For array_filters; see dp_filter_identifier().
	 */
	DP_FILTER_NAMED = 3,

	DP_FILTER_MODE = 3,

	/* Refuse what depends on the clock: $$NOW and the like. */
	DP_FILTER_IMMUTABLE = 4,

	/* Expressions may have variables from outside: DP_EXPR_LET. */
	DP_FILTER_LET = 8
} DpFilterFlags;

/*
 * Compiles a filter into the current memory context.  The result points into the bytes of spec,
 * which must live as long.  spec is a DOCUMENT, or for DP_FILTER_VALUE any value.  location is the
 * position of the filter in the user's input, or NULL.  Raises FEATURE_NOT_SUPPORTED for an unknown
 * operator, INVALID_PARAMETER_VALUE for a bad argument and INVALID_REGULAR_EXPRESSION, with the
 * operator's path in errdetail.
 */
extern DpFilter *dp_filter_compile(const DpValue *spec, int flags, const DpLocation *location);

/* For dp_spec_cached(): arg is the address of the flags, or NULL for a document and IMMUTABLE. */
extern void *dp_filter_compile_spec(const DpValue *spec, void *arg);

/*
 * Whether the result of a filter, of which no more than that is known, may not always be the same
 * for a document: it has $$NOW, $rand or, with let, variables.
 */
extern bool dp_filter_is_variable(const DpValue *spec, bool let);

/* Whether it has $expr. */
extern bool dp_filter_has_expr(const DpFilter *filter);

/* Whether a document, in memory as a whole, matches; others than documents do not. */
extern bool dp_filter_match(DpFilter *filter, const DpValue *doc);

/* Does the same for a bson that was not detoasted, reading only what is needed. */
extern bool dp_filter_match_datum(DpFilter *filter, Datum doc);

/* Whether a value matches a filter that was compiled for values, elements or named values. */
extern bool dp_filter_match_value(DpFilter *filter, const DpValue *value);

/*
 * Does the same as dp_filter_match(), and sets *index to the position for the positional operator
 * $: the position in the array at array_path (dots between the parts) through which the last
 * condition on it was satisfied, or else that in any array; -1 if there was none.  Conditions below
 * $or do not count, unless they are all on one path.
 */
extern bool dp_filter_match_position(DpFilter *filter, const DpValue *doc, const char *array_path,
									 uint32 pathlen, int32 *index);

/* The name by which a filter of DP_FILTER_NAMED calls its value. */
extern const char *dp_filter_identifier(const DpFilter *filter, uint32 *len);

/*
 * Calls visit for each condition of the filter that a document must satisfy (not those below $or,
 * $nor and $not) and that requires a path to equal a value; an upsert begins with these.
 */
typedef void (*DpFilterVisit)(const char *path, uint32 pathlen, const DpValue *value, void *arg);

extern void dp_filter_each_equal(const DpFilter *filter, DpFilterVisit visit, void *arg);

/*
 * Calls visit for each condition of the filter that a document must satisfy and that compares the
 * values at a path with a value, or with n values of which one must be equal ($in, unless it has
 * regular expressions or null).
 */
typedef enum DpComparison
{
	DP_COMPARE_EQ,
	DP_COMPARE_LT,
	DP_COMPARE_LTE,
	DP_COMPARE_GT,
	DP_COMPARE_GTE,
	DP_COMPARE_IN
} DpComparison;

typedef void (*DpFilterComparisonVisit)(const DpPath *path, DpComparison how, const DpValue *values,
										int n, void *arg);

extern void
dp_filter_each_comparison(const DpFilter *filter, DpFilterComparisonVisit visit, void *arg);

#endif /* DP_MQL_FILTER_H */
