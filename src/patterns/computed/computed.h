/*
 * computed.h
 *		The computed pattern: declarations that its files share.
 */
#ifndef DP_PATTERNS_COMPUTED_COMPUTED_H
#define DP_PATTERNS_COMPUTED_COMPUTED_H

#include "kit/derive/derive.h"
#include "kit/derive/queue.h"
#include "kit/derive/source.h"
#include "mql/accumulate.h"
#include "mql/filter.h"

/* A compiled declaration; in its memory */
typedef struct DpComputed
{
	DpDerivation *derivation;
	DpPath *on_field; /* in the source's documents */
	DpPath *id_path;  /* "_id" */
	DpFilter *filter; /* or NULL */
	DpAccumulators *acc;
	bool need_key; /* rows need their keys */
	bool on_read;  /* nothing is stored: a view computes */
	int mode;      /* immediate, deferred, on_read */
	bool create_missing;
	DpPath *target; /* or NULL */
	char *target_field;

	DpSource *source; /* NULL: missing */
	Oid link_type;    /* of the values of on_field, once a group has been read */
	char *plan_ids;   /* addresses that name statements: all rows, then a search for each field */
} DpComputed;

/*
 * computed.c
 */

/*
 * Compiles the fields of a declaration's options in the current context. Raises errors in them, or
 * in the filter.
 */
extern DpAccumulators *dp_computed_compile(struct varlena *options);

/* Returns whether a row belongs to a group, and the group. */
extern bool dp_computed_row_counts(DpComputed *c, const DpSourceRow *row, DpValue *link);

/* scan.c */

/*
 * Adds all rows of the group after a reset, with the latest or the active snapshot. Returns
 * whether there are rows.
 */
extern bool dp_computed_scan(DpComputed *c, DpAccumulation *g, const DpValue *key, bool latest);

/* Searches for values that a load did not find. */
extern void dp_computed_search(DpComputed *c, DpAccumulation *g, const DpValue *key);

/* Adds all groups of the source to a batch, to be recomputed. */
extern void dp_computed_each_group(DpComputed *c, DpDeriveBatch *batch);

/* Adds a group's key to the queue. */
extern void dp_computed_enqueue(DpComputed *c, const DpValue *key);

#endif /* DP_PATTERNS_COMPUTED_COMPUTED_H */
