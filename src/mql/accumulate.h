/*
 * accumulate.h
 *		Totals of groups, for computed fields, roll-ups and the aggregate bson_accumulate.
 *
 * A document of fields, name -> {accumulator: expression}, is compiled once (DpAccumulators).  Rows
 * are added to and removed from a group (DpAccumulation), which computes the fields' values.  They
 * depend only on the remaining rows, not on order or history, and are the same to the last byte as
 * those of a group that is recomputed.
 *
 * In a pattern a group first contains only the changes of a batch:
 *
 *		g = dp_accumulation_make(acc);				in the current memory context
 *		dp_accumulation_row(g, &doc, key, len, 1);		for each new row of the group
 *		dp_accumulation_row(g, &doc, key, len, -1);	for each old one
 *		if (dp_accumulation_changes(g))
 *			... lock the target row; target: its current document
 *			switch (dp_accumulation_load(g, &target))
 *			{
 *				case DP_ACCUMULATION_WHOLE:
 *					break;
 *				case DP_ACCUMULATION_SEARCH:
 *					for each field s of dp_accumulation_searches(g):
 *						for each row of the group, in the order of the index that s names:
 *							if (!dp_accumulation_found(g, s, &doc, key, len)) break;
 *						dp_accumulation_found_all(g, s);	if the rows ended before
 *					break;			(or do as below, which is always right as well)
 *				case DP_ACCUMULATION_LOST:
 *					dp_accumulation_reset(g);
 *					... dp_accumulation_row(g, ..., 1) for all current rows of the group
 *			}
 *			new = dp_accumulation_write(g, &target);	a palloc'd bson, or NULL: no byte changes
 *
 * Both ways read rows under the lock with the latest snapshot.  A group that is computed from its
 * rows needs no load: reset, add the rows, write.
 *
 * A level of a roll-up is computed from the level below: dp_accumulation_add_stored() adds a whole
 * document of that level.  dp_accumulation_add() adds deltas of several sources, workers or series
 * entries; dp_accumulation_pack() and _unpack() convert them to bytes and back.
 *
 * What the next change needs to know beyond the visible fields (the exact sum of doubles, the
 * number of values of each numeric type, the sort keys of a $last) is stored in the target document
 * as one Binary: the element <name> of the document <state>, usually "_computed".  It is there only
 * if it is needed. docs/formats.md describes it.
 *
 * Accumulators and their values for a group without rows:
 *
 *		$sum $count							0
 *		$avg $stdDevPop $stdDevSamp $median	null (samp: null for one number as well)
 *		$min $max $first $last $top $bottom	null
 *		$minN $maxN $firstN $lastN $topN
 *		$bottomN $addToSet $push			[]
 *
 * docs/accumulate.md describes them for users.
 */
#ifndef DP_MQL_ACCUMULATE_H
#define DP_MQL_ACCUMULATE_H

#include "lib/stringinfo.h"

#include "bson/reader.h"
#include "mql/error.h"

typedef struct DpAccumulators DpAccumulators;
typedef struct DpAccumulation DpAccumulation;

/* ---------------------------------------------------------------- compiling */

typedef struct DpAccumulateOptions
{
	const DpValue
		*order_by;     /* sort specification of $first, $last, $push, ...; NULL: the row's key */
	const char *state; /* field that holds the states ("_computed"); NULL: bare values, no state */
	const char *name;  /* this declaration's element in it */
	bool keep_rows; /* dp_accumulation_rows() is needed after a load: in the state, if there is no
					   $count */
	bool uncapped;  /* $push and $addToSet may come without a cap */

	/*
	 * All accumulators of $group: rows count in the order in which they come, expressions are
	 * compiled with these flags.  An n may be computed from the group's key, a document or any
	 * other value (NULL: none).
	 */
	bool arrival;
	int flags;
	bool window; /* with arrival: rows leave in the same order */
	const DpValue *key;
	const DpLocation *location; /* of the fields in the user's input, or NULL */
	bool only_check;            /* for errors: the key and variables have no values */
} DpAccumulateOptions;

/*
 * Compiles a document of fields in the current memory context; copies what it needs.  Raises, with
 * the path in the detail, INVALID_PARAMETER_VALUE (for a name with a dot or a leading dollar, a
 * duplicate name or that of the state, wrong arguments) and FEATURE_NOT_SUPPORTED for an unknown
 * accumulator or an expression that is not immutable ($$NOW, $rand).
 */
extern DpAccumulators *
dp_accumulators_compile(const DpValue *fields, const DpAccumulateOptions *options);

/* True if rows need keys or, with arrival, their order: an accumulator depends on it. */
extern bool dp_accumulators_need_key(const DpAccumulators *acc);

/* True if an n is computed; then whether two of the same fields have the same values for it. */
extern bool dp_accumulators_vary(const DpAccumulators *acc);
extern bool dp_accumulators_same_n(const DpAccumulators *acc, const DpAccumulators *other);

/* The number of fields, and their names. */
extern int dp_accumulators_count(const DpAccumulators *acc);
extern const char *dp_accumulators_name(const DpAccumulators *acc, int field);

/*
 * The order in which a field must be searched when a removed row was essential to the state (the
 * greatest value of a $max, an element of a $topN).
 */
typedef enum DpAccumulateSearch
{
	DP_SEARCH_NONE,  /* never: $sum, $count, $avg, deviations */
	DP_SEARCH_VALUE, /* in the order of an expression's value */
	DP_SEARCH_ORDER, /* in the order of a sort specification */
	DP_SEARCH_KEY    /* in the order of the row's key */
} DpAccumulateSearch;

/*
 * How the field is searched for, and whether from the greatest to the least.
 * *not_null: rows whose value is NULL or the null of BSON may be left out (by
 * value only).
 */
extern DpAccumulateSearch
dp_accumulators_search(const DpAccumulators *acc, int field, bool *descending, bool *not_null);

/*
 * The SQL expression that an index needs after the link for the field to be
 * searched, of the column doc_column: "doc" -> 'revenue' or a call of an
 * immutable function, everything qualified and quoted, without parentheses
 * around it; NULL for DP_SEARCH_NONE and DP_SEARCH_KEY.  Its type is bson_value
 * for DP_SEARCH_VALUE and bytea for DP_SEARCH_ORDER (descending parts are in the
 * bytes).  Rows that are equal in it may come in any order.  palloc'd.
 */
extern char *
dp_accumulators_search_sql(const DpAccumulators *acc, int field, const char *doc_column);

/* ---------------------------------------------------------------- groups */

/* A group without rows.  Its memory is in the current context. */
extern DpAccumulation *dp_accumulation_make(const DpAccumulators *acc);
extern void dp_accumulation_free(DpAccumulation *g);

/* Back to no rows. */
extern void dp_accumulation_reset(DpAccumulation *g);

/*
 * Adds (sign 1) or removes (sign -1) a row, in any order.  key: bytes that are unique in the source
 * and that compare (memcmp, then the shorter first) in the order of rows, as
 * dp_sort_key_append_value() makes them from the key's values; NULL if dp_accumulators_need_key()
 * returns false, and with arrival.  Allocates little in the current context, which should be reset
 * from time to time.  Raises the errors of the expressions.  Returns false if a row of a window is
 * removed whose values were not in it: the group is useless then.
 */
extern bool dp_accumulation_row(DpAccumulation *g, const DpValue *doc, const char *key,
								uint32 keylen, int sign);

/*
 * Whether anything was taken in or out that does not cancel: false: nothing has to be locked or
 * written.
 */
extern bool dp_accumulation_changes(const DpAccumulation *g);

typedef enum DpAccumulationResult
{
	DP_ACCUMULATION_WHOLE,  /* the fields are known */
	DP_ACCUMULATION_SEARCH, /* some have to be searched for among the rows */
	DP_ACCUMULATION_LOST    /* the document does not have the state: recompute the group */
} DpAccumulationResult;

/*
 * Combines the state in a target document with the group's added and removed rows, which stay
 * unchanged: the same group may be loaded again with another document.  A missing state, a state of
 * other fields, or values of wrong types are LOST; invalid bytes raise DATA_CORRUPTED.  After
 * SEARCH the group's other fields are known.
 */
extern DpAccumulationResult dp_accumulation_load(DpAccumulation *g, const DpValue *target);

/* The next field to search after field (-1: the first); -1: no more. */
extern int dp_accumulation_searches(const DpAccumulation *g, int after);

/*
 * Passes a row of the group, in the order of the field's search.  Returns false if no more rows are
 * needed.  The first one clears the field's old data.
 */
extern bool dp_accumulation_found(DpAccumulation *g, int field, const DpValue *doc, const char *key,
								  uint32 keylen);

/* Ends the search: there are no more rows (or none are needed). */
extern void dp_accumulation_found_all(DpAccumulation *g, int field);

/* The number of rows; after a load only with keep_rows or a $count. */
extern int64 dp_accumulation_rows(const DpAccumulation *g);

/*
 * Adds another group of the same DpAccumulators, what they took in and out; a load of g is
 * forgotten, other may be loaded.
 */
extern void dp_accumulation_add(DpAccumulation *g, const DpAccumulation *other);

/*
 * Adds all rows that a stored document of these fields represents, as a level of a roll-up does
 * with the documents of the level below.  Returns false if the document does not have its state:
 * its rows must be read.
 */
extern bool dp_accumulation_add_stored(DpAccumulation *g, const DpValue *stored);

/* Appends the whole group as bytes: the added and removed rows; a load does not count. */
extern void dp_accumulation_pack(StringInfo out, const DpAccumulation *g);

/* Adds a packed group.  Raises DATA_CORRUPTED for invalid bytes, or bytes of other fields. */
extern void dp_accumulation_unpack(DpAccumulation *g, const uint8 *bytes, uint32 len);

/* ---------------------------------------------------------------- documents */

/*
 * The target document with the group's fields and state: existing fields keep their positions,
 * others are appended.  NULL if that changes no byte.  For a group without rows: the document of a
 * new target row.
 */
extern struct varlena *dp_accumulation_write(DpAccumulation *g, const DpValue *target);

/* The fields alone, as a new document. */
extern struct varlena *dp_accumulation_fields(DpAccumulation *g);

/*
 * The document changed with the fields and state of kept instead of its own (a user's update of a
 * target).  NULL if they have the same bytes.
 */
extern struct varlena *
dp_accumulators_keep(const DpAccumulators *acc, const DpValue *kept, const DpValue *changed);

/*
 * The name of a field in a document (nulls do not count) whose value differs from that of empty,
 * the document with the fields of no rows; or NULL.
 */
extern const char *
dp_accumulators_claim(const DpAccumulators *acc, const DpValue *empty, const DpValue *doc);

/* The document without the state and, if fields is set, without the fields; NULL if it has none. */
extern struct varlena *
dp_accumulators_strip(const DpAccumulators *acc, const DpValue *doc, bool fields);

#endif /* DP_MQL_ACCUMULATE_H */
