/*
 * computed.h
 *		The computed pattern: what its parts share.
 */
#ifndef DP_PATTERNS_COMPUTED_COMPUTED_H
#define DP_PATTERNS_COMPUTED_COMPUTED_H

#include "kit/derive/derive.h"
#include "kit/derive/queue.h"
#include "kit/derive/source.h"
#include "mql/accumulate.h"
#include "mql/filter.h"

/* How a declaration is carried out; in its memory. */
typedef struct DpComputed
{
	DpDerivation *derivation;
	DpPath *on_field; /* in the source's documents */
	DpPath *id_path;  /* "_id" */
	DpFilter *filter; /* or NULL */
	DpAccumulators *acc;
	bool need_key; /* rows must come with their keys */
	bool on_read;  /* nothing is kept: a view computes */
	int mode;      /* immediate, deferred, on_read */
	bool create_missing;
	DpPath *target; /* or NULL */
	char *target_field;

	DpSource *source; /* NULL: it is missing */
	Oid link_type;    /* of what on_field leads to, once a group has been read */
	char *plan_ids; /* addresses that name the statements: all rows, then a search for each field */
} DpComputed;

/*
 * computed.c
 */

/*
 * Compiles the fields of a declaration's options in the current context.  Raises what is wrong with
 * them, or with the filter.
 */
extern DpAccumulators *dp_computed_compile(struct varlena *options);

/* Whether a row belongs to a group, and to which */
extern bool dp_computed_row_counts(DpComputed *c, const DpSourceRow *row, DpValue *link);

/* scan.c */

/*
 * Takes all rows of the group in, after a reset; with the latest snapshot or
 * the one that is active.  Returns whether there are any.
 */
extern bool dp_computed_scan(DpComputed *c, DpAccumulation *g, const DpValue *key, bool latest);

/* Searches for what a load did not know. */
extern void dp_computed_search(DpComputed *c, DpAccumulation *g, const DpValue *key);

/* Adds all groups of the source to a run, to be computed anew. */
extern void dp_computed_each_group(DpComputed *c, DpDerive *run);

/* Puts a group's key into the queue. */
extern void dp_computed_enqueue(DpComputed *c, const DpValue *key);

#endif /* DP_PATTERNS_COMPUTED_COMPUTED_H */
