/*
 * accumulate.h
 *		Totals of groups: what computed fields, roll-ups and the aggregate
 *		bson_accumulate share.
 *
 * A document of fields, name -> {accumulator: expression}, is compiled once
 * (DpAccumulators).  A group (DpAccumulation) takes rows in and out and gives
 * the fields' values, which depend on nothing but the rows that are left: not
 * on the order in which they came, nor on what came and went in between, and
 * they are the same to the last byte as those of a group that is computed anew.
 *
 * In a pattern a group holds at first only what a batch changed:
 *
 *		g = dp_accumulation_make(acc);				in the current memory context
 *		dp_accumulation_row(g, &doc, key, len, 1);		for each new row of the group
 *		dp_accumulation_row(g, &doc, key, len, -1);	for each old one
 *		if (dp_accumulation_changes(g))
 *			... lock the target row; target: its document as it is now
 *			switch (dp_accumulation_load(g, &target))
 *			{
 *				case DP_ACCUMULATION_WHOLE:
 *					break;
 *				case DP_ACCUMULATION_SEARCH:
 *					for each field s of dp_accumulation_searches(g):
 *						for each row of the group, in the order of the index that s names:
 *							if (!dp_accumulation_found(g, s, &doc, key, len)) break;
 *						dp_accumulation_found_all(g, s);	where the rows ended before
 *					break;			(or do as below, which is always right as well)
 *				case DP_ACCUMULATION_LOST:
 *					dp_accumulation_reset(g);
 *					... dp_accumulation_row(g, ..., 1) for all rows that the group has now
 *			}
 *			new = dp_accumulation_write(g, &target);	a palloc'd bson, or NULL: no byte changes
 *
 * Rows are read under the lock with the latest snapshot, by both ways.  A group
 * that is computed from its rows needs no load: reset, take the rows in, write.
 *
 * A level of a roll-up is made of the level below: dp_accumulation_add_stored()
 * takes a whole document of that level in.  Deltas of several sources, workers
 * or entries of a queue are added with dp_accumulation_add() and travel as bytes
 * with dp_accumulation_pack() and _unpack().
 *
 * What the visible fields do not tell and the next change needs to know (the
 * exact sum of doubles, how many numbers there are of each type, the sort keys
 * of a $last) stands in the target document as one Binary: the element <name> of
 * the document <state>, usually "_computed".  It is there only if it is needed.
 * docs/formats.md describes it.
 *
 * Accumulators and what a group without rows has:
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

typedef struct DpAccumulators DpAccumulators;
typedef struct DpAccumulation DpAccumulation;

/* ---------------------------------------------------------------- compiling */

typedef struct DpAccumulateOptions
{
	const DpValue
		*order_by;     /* sort specification of $first, $last, $push, ...; NULL: the row's key */
	const char *state; /* field that holds the states ("_computed"); NULL: bare values, no state */
	const char *name;  /* this declaration's element in it */
	bool keep_rows; /* dp_accumulation_rows() is wanted after a load: in the state, if there is no
					   $count */
	bool uncapped;  /* $push and $addToSet may come without a cap */
} DpAccumulateOptions;

/*
 * Compiles a document of fields in the current memory context; keeps copies of
 * what it needs.  Raises, with the path in the detail, INVALID_PARAMETER_VALUE
 * for what is wrong (a name with a dot or a dollar in front, one that is given
 * twice or is the state's, arguments) and FEATURE_NOT_SUPPORTED for an unknown
 * accumulator or an expression that is not immutable ($$NOW, $rand).
 */
extern DpAccumulators *
dp_accumulators_compile(const DpValue *fields, const DpAccumulateOptions *options);

/* Whether rows must come with their keys: an accumulator goes by the order of rows. */
extern bool dp_accumulators_need_key(const DpAccumulators *acc);

/* The number of fields, and their names. */
extern int dp_accumulators_count(const DpAccumulators *acc);
extern const char *dp_accumulators_name(const DpAccumulators *acc, int field);

/*
 * What a field has to be searched by when a row is taken out that the state
 * cannot do without (the greatest value of a $max, an element of a $topN).
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

/* A group of no rows.  Its memory is in the context that is current now. */
extern DpAccumulation *dp_accumulation_make(const DpAccumulators *acc);
extern void dp_accumulation_free(DpAccumulation *g);

/* Back to no rows. */
extern void dp_accumulation_reset(DpAccumulation *g);

/*
 * Takes a row in (sign 1) or out (sign -1), in any order.  key: bytes that no
 * other row of the source has and that compare (memcmp, then the shorter first)
 * as the rows are ordered, as dp_sort_key_append_value() of the key's values
 * gives them; NULL if dp_accumulators_need_key() says so.  Allocates next to
 * nothing in the current context, which should be reset from time to time.
 * Raises the errors of the expressions.
 */
extern void dp_accumulation_row(DpAccumulation *g, const DpValue *doc, const char *key,
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
	DP_ACCUMULATION_LOST    /* the document does not carry the state: compute the group anew */
} DpAccumulationResult;

/*
 * Puts the state that a target document carries under what the group took in
 * and out, which stays what it is: the same group may be loaded again with another
 * document.  A state of other fields, of none, or values of wrong types are
 * LOST; bytes that are no state raise DATA_CORRUPTED.  After SEARCH the
 * group's other fields are known.
 */
extern DpAccumulationResult dp_accumulation_load(DpAccumulation *g, const DpValue *target);

/* The next field to be searched for after field (-1: the first); -1: no more. */
extern int dp_accumulation_searches(const DpAccumulation *g, int after);

/*
 * A row of the group, in the order of the field's search.  Returns false if no
 * more rows are needed.  Before the first one the field forgets what it had.
 */
extern bool dp_accumulation_found(DpAccumulation *g, int field, const DpValue *doc, const char *key,
								  uint32 keylen);

/* There are no more rows (or dp_accumulation_found() said that it needs none). */
extern void dp_accumulation_found_all(DpAccumulation *g, int field);

/* The number of rows; after a load only with keep_rows or a $count. */
extern int64 dp_accumulation_rows(const DpAccumulation *g);

/*
 * Adds another group of the same DpAccumulators, what they took in and out; a load of g is
 * forgotten, other may be loaded.
 */
extern void dp_accumulation_add(DpAccumulation *g, const DpAccumulation *other);

/*
 * Adds all rows that a stored document of these fields stands for, as a level
 * of a roll-up does with the documents of the level below.  Returns false if the
 * document does not carry its state: its rows must be looked at.
 */
extern bool dp_accumulation_add_stored(DpAccumulation *g, const DpValue *stored);

/* Appends the whole group as bytes: what it took in and out; a load does not count. */
extern void dp_accumulation_pack(StringInfo out, const DpAccumulation *g);

/*
 * Adds a group that was packed.  Raises DATA_CORRUPTED for bytes that are none, or of other fields.
 */
extern void dp_accumulation_unpack(DpAccumulation *g, const uint8 *bytes, uint32 len);

/* ---------------------------------------------------------------- documents */

/*
 * The target document with the group's fields and state: fields that are there
 * stay where they are, others come at the end.  NULL if that changes no byte.
 * Of a group of no rows: the document that a new target row begins with.
 */
extern struct varlena *dp_accumulation_write(DpAccumulation *g, const DpValue *target);

/* The fields alone, as a new document. */
extern struct varlena *dp_accumulation_fields(DpAccumulation *g);

/*
 * The document changed with the fields and state of kept in place of its own
 * (a user's update of a target).  NULL if they are the same bytes.
 */
extern struct varlena *
dp_accumulators_keep(const DpAccumulators *acc, const DpValue *kept, const DpValue *changed);

/*
 * The name of a field that a document has (null is nothing) and that is not what empty, the
 * document with the fields of no rows, has; or NULL.
 */
extern const char *
dp_accumulators_claim(const DpAccumulators *acc, const DpValue *empty, const DpValue *doc);

/* The document without the state and, if fields is set, without the fields; NULL if it has none. */
extern struct varlena *
dp_accumulators_strip(const DpAccumulators *acc, const DpValue *doc, bool fields);

#endif /* DP_MQL_ACCUMULATE_H */
