/*
 * computed.h
 *		The computed pattern: what its parts share.
 */
#ifndef DP_PATTERNS_COMPUTED_H
#define DP_PATTERNS_COMPUTED_H

#include "mql/filter.h"
#include "patterns/accumulate.h"
#include "patterns/derive.h"
#include "patterns/queue.h"

/* How a declaration is carried out; in its memory. */
typedef struct Computed
{
	DpDerivation *derivation;
	DpPath	   *on_field;		/* in the source's documents */
	DpPath	   *id_path;		/* "_id" */
	DpFilter   *filter;			/* or NULL */
	DpAccumulators *acc;
	bool		need_key;		/* rows must come with their keys */
	bool		on_read;		/* nothing is kept: a view computes */

	/* the source */
	bool		has_document;	/* a column of type bson; else its rows are the documents */
	char	   *doc_column;
	char	   *link_column;	/* of a source without documents */
	Oid			link_type;
	int			nkeys;			/* columns of its primary key; 0: none */
	char	  **keys;
	Oid		   *key_types;

	/* where the key's columns are in the rows that were seen last */
	Oid			seen_type;
	AttrNumber	seen[INDEX_MAX_KEYS];
	StringInfo	key;			/* the last row's key as bytes */

	char	   *plan_ids;		/* addresses that name the statements: all rows, then a search for each field */
} Computed;

/*
 * computed.c
 */

/* Compiles the fields of a declaration's options in the current context.  Raises what is wrong with them, or with the filter. */
extern DpAccumulators *dp_computed_compile(struct varlena *options);

/* Whether a row belongs to a group, and to which */
extern bool dp_computed_row_counts(Computed *c, const DpSourceRow *row, DpValue *link);

/* computed_scan.c */

/* Fills in what is known of the source. */
extern void dp_computed_read_source(Computed *c);

/* The key of a row as bytes that are ordered as rows are, until the next call. */
extern const char *dp_computed_row_key(Computed *c, TupleTableSlot *slot, uint32 *len);

/*
 * Takes all rows of the group in, after a reset; with the latest snapshot or
 * the one that is active.  Returns whether there are any.
 */
extern bool dp_computed_scan(Computed *c, DpAccumulation *g, const DpValue *key, bool latest);

/* Searches for what a load did not know. */
extern void dp_computed_search(Computed *c, DpAccumulation *g, const DpValue *key);

/* Adds all groups of the source to a run, to be computed anew. */
extern void dp_computed_each_group(Computed *c, DpDerive *run);

/* Puts a group's key into the queue. */
extern void dp_computed_enqueue(Computed *c, const DpValue *key);

#endif							/* DP_PATTERNS_COMPUTED_H */
