/*
 * fdw.h
 *		A relation of measurements: its declaration, and the underlying tables.
 *
 * bucket_create('readings', ...) creates a foreign table of this extension's
 * wrapper and two ordinary tables of the same owner:
 *
 *		readings			group, time and measured columns, in any order
 *		readings_packed		the group columns, seq int, start, data bucket
 *		readings_recent		all columns of readings, in the same order and of
 *							the same types: waiting measurements
 *
 * with time:	packed has a btree on (group columns, start), recent one on
 *				(group columns, time).  start is the span's beginning, of the
 *				same type as the time; seq numbers the buckets of one span and is
 *				not in the index.
 * pages (no time): packed has no start and a btree on (group columns, seq);
 *				recent has one more column at its end, arrived bigint, whose
 *				default is the next value of a sequence, and a btree on (group
 *				columns, arrived).
 *
 * A relation of documents (timeseries) has a column bson_value for each path of
 * the group, the time and the document.  The document is what is written; the
 * other columns follow it, so conditions on fields find buckets (filter.c).
 *
 * Columns are matched by position among those that are not dropped, never by
 * name, so that any of them may be renamed.  The tables are found by the link IDs in
 * their triggers, and only if they have the relation's owner.
 */
#ifndef DP_PATTERNS_BUCKET_FDW_H
#define DP_PATTERNS_BUCKET_FDW_H

#include "dp.h"

#include "access/tupdesc.h"
#include "datatype/timestamp.h"
#include "foreign/fdwapi.h"
#include "nodes/execnodes.h"
#include "storage/itemptr.h"
#include "utils/snapshot.h"

#include "bson/path.h"
#include "kit/declaration.h"
#include "types/bucket/bucket.h"
#include "types/bucket/start.h"

typedef enum DpBucketRole
{
	DP_BUCKET_GROUP, /* a group column: number is its position in the group */
	DP_BUCKET_TIME,  /* the time; number is 0 */
	DP_BUCKET_VALUE  /* measured: number is the column's in the bucket, from 0 */
} DpBucketRole;

/* A column of the relation */
typedef struct DpBucketColumn
{
	AttrNumber attnum; /* in the relation */
	AttrNumber recent; /* in the table of waiting measurements */
	AttrNumber packed; /* in the table of buckets; 0 unless a group column */
	DpBucketRole role;
	int number;
	char *name; /* in the relation */
	Oid type;
	int32 typmod;
	Oid collation;
	int16 typlen;
	bool typbyval;
	char typalign;
	Oid eqop; /* group columns and the time: equality of the index's operator family, or InvalidOid
			   */
} DpBucketColumn;

typedef enum DpBucketSameSlot
{
	DP_SLOT_NONE, /* no granularity: any number of measurements at one time */
	DP_SLOT_REFUSE,
	DP_SLOT_REPLACE,
	DP_SLOT_ADD,
	DP_SLOT_KEEP
} DpBucketSameSlot;

/* The description of a relation, valid at least until the transaction ends */
typedef struct DpBucketRel
{
	Oid relid;
	Oid packed;
	Oid recent;
	Oid packed_index; /* InvalidOid if it was dropped */
	Oid recent_index;
	Oid owner;
	DpDecl *decl; /* for other options */

	bool declaration_known;     /* the three that follow are set */
	Oid declaration;            /* the main trigger */
	TransactionId declared_raw; /* xmin of the trigger's row */
	TransactionId declared_by;  /* the transaction that wrote the declaration as it is;
								   InvalidTransactionId: long ago */
	TransactionId seen_xmin;    /* of the last snapshot that was found to see it */
	TransactionId seen_xmax;
	uint32 seen_xcnt;
	int32 seen_subxcnt;

	int ncolumns; /* in the order of the relation */
	DpBucketColumn *columns;
	int ngroups;
	DpBucketColumn **groups; /* in the order of the group */
	DpBucketColumn *time;    /* NULL: pages */
	int nvalues;
	DpBucketColumn **values; /* by number */

	/* a relation of documents, whose other columns follow fields; NULL for others */
	DpBucketColumn *doc;
	DpPath **group_paths; /* in the order of the group */
	DpPath *time_path;

	DpBucketColumn **by_attnum; /* by attnum - 1; NULL: dropped */
	int natts;                  /* of the relation, dropped ones included */

	AttrNumber packed_seq;
	AttrNumber packed_start; /* 0: pages */
	AttrNumber packed_data;
	AttrNumber recent_arrived; /* 0 unless pages */

	/* spans; of no meaning for pages */
	Interval span;
	DpSpan calendar; /* computes spans; caches the last one */
	int64 span_us; /* > 0: every span is as long as that, one of them beginning at span_origin; else
					  calendar rules */
	int64 span_origin;
	char *time_zone;

	int max_count; /* limits of a bucket */
	int64 max_bytes;
	Interval granularity; /* all zero: none */
	int64 granularity_us; /* > 0 unless months are in it */
	DpBucketSameSlot same_slot;
} DpBucketRel;

/*
 * Returns the relation's description. Raises WRONG_OBJECT_TYPE (with missing_ok returns NULL) for
 * another relation and OBJECT_NOT_IN_PREREQUISITE_STATE if its tables are missing or have other
 * columns.
 */
extern DpBucketRel *dp_bucket_rel(Oid relid, bool missing_ok);

/*
 * Returns the beginning of the span of a time, and of the next one. Times are microseconds, as in
 * timestamps. Raises DATETIME_VALUE_OUT_OF_RANGE for infinite times and at the end of the
 * calendar.
 */
extern int64 dp_bucket_rel_start(DpBucketRel *rel, int64 time);
extern int64 dp_bucket_rel_end(DpBucketRel *rel, int64 start);

/*
 * Returns the description that the snapshot shows, which has the spans of visible buckets. Raises
 * T_R_SERIALIZATION_FAILURE if it was declared again after the snapshot. NULL: as dp_bucket_rel().
 */
extern DpBucketRel *dp_bucket_rel_for(Oid relid, Snapshot snapshot);

/*
 * Returns whether a snapshot shows this declaration. Otherwise its buckets may be of another
 * declaration, with other spans and limits.
 */
extern bool dp_bucket_rel_seen(DpBucketRel *rel, Snapshot snapshot);

/* A name for messages: "readings" */
extern char *dp_bucket_rel_name(const DpBucketRel *rel);

/*
 * The origin of a row. The scan gives each row a ctid if the query needs it; it is valid within
 * the query. For rows of buckets, position is that in the bucket when it was read (measurements
 * are in order of time, equal times in order of insertion).
 */
typedef struct DpBucketOrigin
{
	bool packed;
	ItemPointerData tid; /* of the bucket's row, or of the waiting measurement */
	int position;        /* 0 for waiting measurements */
} DpBucketOrigin;

/* Returns the origin for a ctid from a scan of the query. */
extern void
dp_bucket_origin(EState *estate, Oid relid, const ItemPointerData *ctid, DpBucketOrigin *origin);

/* The callbacks of the access path; modify.c has those that write. */
extern void dp_bucket_scan_routine(FdwRoutine *routine);
extern void dp_bucket_modify_routine(FdwRoutine *routine);

/*
 * Whether an UPDATE or DELETE of this session is between its first row and its
 * last.  It notes measurements by their origin, so nothing may move them.
 */
extern bool dp_bucket_changing(Oid relid);

#endif /* DP_PATTERNS_BUCKET_FDW_H */
