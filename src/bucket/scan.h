/*
 * scan.h
 *		What the plan tells the scan of a relation of measurements, and the
 *		state of such a scan.  For the files of the access path only.
 */
#ifndef DP_BUCKET_SCAN_H
#define DP_BUCKET_SCAN_H

#include "access/relscan.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

#include "bucket/fdw.h"

/* Rows of one or several buckets, decoded as far as they are needed. */
typedef struct DpBucketRows
{
	int			n;
	int			capacity;
	int64	   *times;			/* NULL unless decoded */
	Datum	  **values;			/* by the number of the value column; NULL unless decoded */
	bool	  **nulls;
	ItemPointerData tid;		/* of the bucket's row */
	BlockNumber ordinal;		/* of the bucket in the query's list of places, if rows need a ctid */
} DpBucketRows;

/* The state of a scan, in the context of the query */
typedef struct DpBucketScan
{
	DpBucketRel *rel;
	EState	   *estate;
	Relation	packed;
	Relation	recent;

	/* what the rows need */
	int			nneeded;		/* columns, of any role */
	DpBucketColumn **needed;
	bool		need_time;
	bool		need_ctid;

	/* the table that is being read: first the buckets, then what waits */
	bool		started;
	bool		in_recent;
	bool		done;
	TableScanDesc packed_scan;
	TableScanDesc recent_scan;
	TupleTableSlot *packed_slot;
	TupleTableSlot *recent_slot;

	/* the bucket that is being read */
	DpBucketReader reader;
	MemoryContext bucket_context;	/* of what was decoded of it */
	DpBucketRows rows;
	int			next;			/* the next row of rows */

	struct DpPlaces *places;

	/* for EXPLAIN */
	uint64		buckets_read;
	uint64		buckets_skipped;
	uint64		recent_read;
} DpBucketScan;

/* The places of rows that a scan gave ctids to, by query and relation */
extern struct DpPlaces *dp_places_of(EState *estate, Oid relid, bool create);
extern BlockNumber dp_place_add(struct DpPlaces *places, bool packed, const ItemPointerData *tid);

/* What plan.c hands to scan.c in the plan's fdw_private */
#define DP_SCAN_NEEDED	0		/* attnums of the columns that rows need */

extern void dp_bucket_plan_routine(FdwRoutine *routine);

#endif							/* DP_BUCKET_SCAN_H */
