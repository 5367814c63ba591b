/*
 * store.h
 *		The two tables underlying a relation of measurements, for writers: rows are
 *		written by the access method of the table and its indexes, without a
 *		statement for each.
 *
 * A store is opened for one statement or call.  Rows are arrays of the relation's
 * columns in their order (DpBucketRel.columns), without dropped ones; groups are
 * arrays of the group columns.
 *
 * Written rows have the current command's number, so that later commands see them
 * and the running statement does not.  Reads for writing use
 * dp_bucket_store_snapshot(): the latest state, or at REPEATABLE READ and above the
 * transaction's snapshot, so that the transaction packs only what it sees.
 */
#ifndef DP_PATTERNS_BUCKET_STORE_H
#define DP_PATTERNS_BUCKET_STORE_H

#include "access/genam.h"
#include "access/heapam.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"
#include "utils/snapshot.h"

#include "kit/rows/table.h"
#include "patterns/bucket/fdw.h"
#include "types/bucket/bucket.h"

typedef struct DpBucketGroup
{
	Datum values[INDEX_MAX_KEYS];
	bool nulls[INDEX_MAX_KEYS];
} DpBucketGroup;

typedef struct DpBucketStore
{
	DpBucketRel *rel;
	EState *estate;
	bool own_estate;
	CommandId cid;         /* of written rows; InvalidCommandId: the current command's */
	MemoryContext context; /* lives as long as the store */
	MemoryContext scratch; /* for users of the store; reset often */

	/* waiting measurements; a row that was found is in recent.row, NULL until the first */
	DpTable recent;
	Relation recent_index;
	Oid arrived; /* pages: the sequence */

	/* buckets; opened when first used, rel is NULL until then */
	DpTable packed;
	Relation packed_index;
	bool packed_many; /* new buckets are written several at once */
	BulkInsertState packed_bulk;

	/* for packing; created when first used */
	DpBucketBuilder *builder;
	DpBucketReader reader;
	bool has_reader;
	Snapshot snapshot; /* registered */
	bool has_slots;
	DpSpan slots; /* of the granularity */
} DpBucketStore;

/*
 * Opens the tables for writing, in the context of estate; NULL: outside of a statement, with its
 * own EState.
 */
extern DpBucketStore *dp_bucket_store_open(DpBucketRel *rel, EState *estate);

/* Writes collected measurements and closes everything. */
extern void dp_bucket_store_close(DpBucketStore *store);

/*
 * Returns the snapshot for reading; renew: at READ COMMITTED, one that shows what is committed by
 * now.
 */
extern Snapshot dp_bucket_store_snapshot(DpBucketStore *store, bool renew);

/* Foreign keys of the underlying tables are checked between these, outside of a statement. */
extern void dp_bucket_store_begin(DpBucketStore *store);
extern void dp_bucket_store_end(DpBucketStore *store);

/* The group of a row; points to the row's values. */
extern void dp_bucket_group_of_row(const DpBucketRel *rel, const Datum *values, const bool *nulls,
								   DpBucketGroup *group);
extern void
dp_bucket_group_copy(const DpBucketRel *rel, const DpBucketGroup *from, DpBucketGroup *to);

/* Whether two groups are the same to the last bit; and a hash for that. */
extern bool
dp_bucket_group_same(const DpBucketRel *rel, const DpBucketGroup *a, const DpBucketGroup *b);
extern uint32 dp_bucket_group_hash(const DpBucketRel *rel, const DpBucketGroup *group);

/* Waiting measurements */
extern void dp_bucket_recent_insert(DpBucketStore *store, const Datum *values, const bool *nulls,
									ItemPointer tid);

/*
 * Inserts many: their values must stay valid until the flush, which writes them before anything may
 * search for them.
 */
extern void dp_bucket_recent_add(DpBucketStore *store, const Datum *values, const bool *nulls);
extern void dp_bucket_recent_flush(DpBucketStore *store);

extern TM_Result dp_bucket_recent_update(DpBucketStore *store, ItemPointer tid, const Datum *values,
										 const bool *nulls);

/* The row in store->recent.row; points into it. */
extern void dp_bucket_recent_row(DpBucketStore *store, Datum *values, bool *nulls);

/*
 * Waiting measurements of a group (NULL: of all) with since <= time < until in
 * the order of group and time; pages: all, in the order of arrival.  Each is
 * put into store->recent.row.
 */
extern IndexScanDesc dp_bucket_recent_scan(DpBucketStore *store, const DpBucketGroup *group,
										   int64 since, int64 until, Snapshot snapshot);
extern bool dp_bucket_recent_next(DpBucketStore *store, IndexScanDesc scan);

/* TIDs of waiting measurements as numbers, which are in the order of the table */
typedef struct DpTids
{
	uint64 *tid;
	Size n;
	Size max;
} DpTids;

extern void dp_bucket_recent_tids(DpBucketStore *store, const DpBucketGroup *group, int64 until,
								  Snapshot snapshot, DpTids *tids);

/* Reads a version of a waiting measurement, even a deleted one, into store->recent.row. */
extern bool dp_bucket_recent_fetch(DpBucketStore *store, ItemPointer tid);

/*
 * Reads buckets of a group and start (pages: of a group, in their order) into store->packed.row.
 * Does not include collected ones, which no snapshot of this command shows anyway.
 */
extern IndexScanDesc dp_bucket_packed_scan(DpBucketStore *store, const DpBucketGroup *group,
										   int64 start, Snapshot snapshot);
extern bool dp_bucket_packed_next(DpBucketStore *store, IndexScanDesc scan);

/* All buckets, in the order of group and start. */
extern IndexScanDesc dp_bucket_packed_scan_all(DpBucketStore *store, Snapshot snapshot);

/* The contents of a bucket's row in store->packed.row */
extern void dp_bucket_packed_row(DpBucketStore *store, DpBucketGroup *group, int64 *start, int *seq,
								 Datum *data);

/* Reads a version of a bucket's row, even a deleted one, into store->packed.row. */
extern bool dp_bucket_packed_fetch(DpBucketStore *store, ItemPointer tid);

extern void dp_bucket_packed_insert(DpBucketStore *store, const DpBucketGroup *group, int64 start,
									int seq, Datum data);

/* Replaces the data of the row in store->packed.row; its other columns stay. */
extern TM_Result dp_bucket_packed_update(DpBucketStore *store, ItemPointer tid, Datum data);

/* Writes the collected buckets. */
extern void dp_bucket_packed_flush(DpBucketStore *store);

/* An empty builder for the relation's buckets, and a reader. */
extern DpBucketBuilder *dp_bucket_store_builder(DpBucketStore *store);
extern DpBucketReader *dp_bucket_store_reader(DpBucketStore *store);

/* One row of a bucket, but for its group; in the current context. */
extern void dp_bucket_read_row(DpBucketStore *store, DpBucketReader *reader, int position,
							   Datum *values, bool *nulls);

/* Appends a row of the relation to a builder. */
extern void dp_bucket_append_row(DpBucketStore *store, DpBucketBuilder *builder,
								 const Datum *values, const bool *nulls);

/*
 * Runs a statement that writes to the underlying tables, as their owner and with the guards open.
 * $1, if it has one, has the time's type. Returns the number of rows. The caller has checked
 * privileges.
 */
extern uint64 dp_bucket_run_beneath(DpBucketRel *rel, const char *sql, Datum value);

#endif /* DP_PATTERNS_BUCKET_STORE_H */
