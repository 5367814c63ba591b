/*
 * scan.h
 *		The plan and state of a scan of a relation of measurements.  Only for the
 *		files of the access path.
 *
 *		key.c		clauses that the scan evaluates itself
 *		filter.c	what filters of documents say of the group and the time
 *		cost.c		sizes and estimates
 *		plan.c		paths and plans of scans
 *		scan.c		executing them
 *		rows.c		rows out of buckets
 *		merge.c		rows of all groups in the order of time
 *		origin.c		origins of rows
 *		explain.c	EXPLAIN
 *		analyze.c	ANALYZE
 *		upper.c		planning aggregates from headers (upper.h)
 *		summary.c	executing them, with totals.c
 */
#ifndef DP_PATTERNS_BUCKET_SCAN_H
#define DP_PATTERNS_BUCKET_SCAN_H

#include "access/genam.h"
#include "access/genam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "port/atomics.h"

#include "utils/memutils.h"

#include "patterns/bucket/fdw.h"

/* ---------------------------------------------------------------- keys */

/* Strategy of "is null"; the others are btree's */
#define DP_KEY_IS_NULL 6

/*
 * A clause "column operator value" that the scan uses. Keys on the group and the time are only
 * evaluated by the scan, if they are exact; those on measured columns let it skip buckets.
 */
typedef struct DpBucketKey
{
	DpBucketColumn *column;
	int strategy;
	bool is_array; /* column = ANY (value) */
	bool exact;
	Oid function;  /* of the operator */
	Oid righttype; /* of the value, or of its elements */
	Oid collation;

	/* planner */
	Expr *value;
	Expr *clause;
	RestrictInfo *rinfo;  /* the original clause; keeps the selectivity */
	RestrictInfo *filter; /* it follows from that filter of documents; or NULL */

	/* executor */
	ExprState *state;
	FmgrInfo finfo;
	Datum datum;
	bool isnull;
} DpBucketKey;

/*
 * The clause as a key on a column of the relation with that number in the
 * query, or NULL if it is none.
 */
extern DpBucketKey *dp_bucket_key(PlannerInfo *root, DpBucketRel *rel, Index relid, Expr *clause);

/* The column that an expression is, or NULL. */
extern DpBucketColumn *dp_bucket_column_of(DpBucketRel *rel, Index relid, Node *expr);

/* The column of the group that follows the field (doc -> 'path') that an expression is, or NULL. */
extern DpBucketColumn *dp_bucket_field_column(DpBucketRel *rel, Index relid, Node *expr);

/*
 * What a filter of documents says of the group and the time.  covered: the scan decides it without
 * the documents.
 */
extern List *dp_bucket_filter_keys(PlannerInfo *root, DpBucketRel *rel, RelOptInfo *baserel,
								   RestrictInfo *rinfo, bool *covered);

/*
 * What it says of what is below the fields of the group, so that buckets are skipped: a list for
 * plans, and compiled in the current context.
 */
typedef struct DpBucketGroupFilter DpBucketGroupFilter;
struct DpBucketScan;

extern List *dp_bucket_group_filters(DpBucketRel *rel, Index relid, Expr *clause);
extern List *dp_bucket_group_filters_compile(List *encoded);

/* Whether the bucket in packed_slot passes these. */
extern bool dp_bucket_group_passes(struct DpBucketScan *scan);

/* Whether an expression sorts documents by the time. */
extern bool dp_bucket_is_time_order(DpBucketRel *rel, Index relid, Expr *expr, bool *descending);

/* The fields (String) that a query reads of a column of documents; NIL: all. */
extern List *
dp_bucket_fields_read(PlannerInfo *root, DpBucketRel *rel, RelOptInfo *baserel, AttrNumber attnum);

/* Keys as fdw_private and fdw_exprs carry them. */
extern List *dp_bucket_keys_encode(List *keys, List **values);

/* And back, for execution below the node. */
extern void dp_bucket_keys_decode(DpBucketRel *rel, List *encoded, List *values, PlanState *parent,
								  DpBucketKey **keys, int *nkeys);

/* ---------------------------------------------------------------- estimates */

typedef struct DpBucketSizes
{
	double packed_pages;
	double packed_tuples;
	double recent_pages;
	double recent_tuples;
	double rows_per_bucket;
} DpBucketSizes;

extern void dp_bucket_sizes(DpBucketRel *rel, DpBucketSizes *sizes);

/* The planner's description of a relation in a query: baserel->fdw_private */
typedef struct DpBucketPlanned
{
	DpBucketRel *rel;
	DpBucketSizes sizes;
	List *keys;         /* of the restrictions (DpBucketKey) */
	List *covered;      /* restrictions that are filters which keys decide */
	double selectivity; /* of these keys; negative: not known yet */
} DpBucketPlanned;

/* Returns the selectivity of keys on group and time that select buckets. */
extern double
dp_bucket_selectivity(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned, List *keys);

/* ---------------------------------------------------------------- plans */

typedef enum DpScanMode
{
	DP_SCAN_ALL,      /* both tables from one end to the other */
	DP_SCAN_INDEX,    /* by the indexes, in no order */
	DP_SCAN_ORDERED,  /* by the indexes, ordered by (group, time) */
	DP_SCAN_BACKWARD, /* the same backwards */
	DP_SCAN_TIME,     /* by the indexes, all groups merged in the order of time */
	DP_SCAN_TIME_BACKWARD,
	DP_SCAN_LAST /* the last row of each group, ordered by group */
} DpScanMode;

/* Items of fdw_private of a plan */
enum
{
	DP_PLAN_MODE,   /* integer list: DpScanMode, whether all group columns are fixed by equality */
	DP_PLAN_NEEDED, /* integer list: attnums of the columns that rows need */
	DP_PLAN_KEYS,   /* as encoded by dp_bucket_keys_encode() */
	DP_PLAN_UPPER,  /* aggregates, or NIL */
	DP_PLAN_FIELDS, /* of the only column of documents that rows need (String); NIL: all */
	DP_PLAN_GROUP_FILTERS
};

extern void dp_bucket_plan_routine(FdwRoutine *routine);

/* Whether the scan decides all restrictions of the relation. */
extern bool dp_bucket_decides(RelOptInfo *baserel);

/* ---------------------------------------------------------------- scans */

/* Rows of one or several buckets, with the needed columns decoded */
typedef struct DpScanRows
{
	int n;
	int64 *times;   /* NULL unless decoded */
	Datum **values; /* by the number of the value column */
	bool **nulls;
	int *order; /* rows in the order of time, or NULL: as they are */
	BlockNumber
		*ordinals;  /* of each row's bucket in the list of origins, if that differs; else NULL */
	int *positions; /* of each row in its bucket */
	BlockNumber ordinal;
} DpScanRows;

/* Counters for EXPLAIN, shared by the workers of a parallel scan */
typedef struct DpBucketCounters
{
	pg_atomic_uint64 read;
	pg_atomic_uint64 skipped;
	pg_atomic_uint64 summed; /* answered from the header */
	pg_atomic_uint64 waiting;
} DpBucketCounters;

typedef struct DpBucketScan
{
	DpBucketRel *rel;
	ForeignScanState *node;
	EState *estate;
	DpScanMode mode;
	bool one_group; /* all group columns are fixed by equality */
	Relation packed;
	Relation recent;
	Relation packed_index;
	Relation recent_index;

	/* the needed columns */
	int nneeded; /* columns, of any role */
	DpBucketColumn **needed;
	bool need_time;
	bool need_ctid;
	List *fields;        /* of documents (String); NIL: all */
	List *group_filters; /* of DpBucketGroupFilter */

	/* keys, and their values */
	int nkeys;
	DpBucketKey *keys;
	MemoryContext key_context;
	bool impossible; /* no row can match */
	int64 since;     /* bounds of the time, both inclusive */
	int64 until;
	int64 start_since; /* and of the beginning of spans */
	int64 start_until;
	bool nothing_waits; /* the snapshot sees no waiting measurements */

	/*
	 * Backwards in one group: where only the last span was asked for, the next
	 * scan (of another group) looks at those from its beginning on before it
	 * looks at the others.
	 */
	int64 tail;          /* that beginning; PG_INT64_MIN: none */
	bool only_tail;      /* the scan of the index ends there */
	bool tail_done;      /* and has ended */
	int nspans;          /* so many spans were read */
	FmgrInfo *group_cmp; /* btree's comparison of group columns, in ordered scans */

	/* the tables */
	bool started;
	bool packed_done;
	bool recent_done;
	TableScanDesc packed_scan;
	TableScanDesc recent_scan;
	IndexScanDesc packed_iscan;
	IndexScanDesc recent_iscan;
	bool packed_pending; /* the index has given a row that was not fetched yet */
	bool recent_pending; /* recent_slot holds a row that was not given out yet */
	TupleTableSlot *packed_slot;
	TupleTableSlot *recent_slot;

	/* the bucket that is being read, or, in ordered scans, those of one span */
	DpBucketReader reader;
	MemoryContext rows_context; /* of decoded columns */
	MemoryContext span_context; /* of copies, if a span has several */
	Datum *group_values;        /* of the bucket */
	bool *group_nulls;
	int64 start;
	DpScanRows rows;
	int next; /* the next row */
	int end;  /* one after the last one; before the first one when backward */

	struct DpBucketOrigins *origins;
	struct DpBucketMerge *merge; /* of all groups by time */

	DpBucketCounters *counters; /* in shared memory for parallel scans */
	DpBucketCounters own;
	ParallelTableScanDesc packed_shared;
	ParallelTableScanDesc recent_shared;
	List *upper_plan; /* aggregates: what the plan says, and their state */
	struct DpBucketUpper *upper;
} DpBucketScan;

/* Whether the scan merges buckets with a heap. */
#define DP_SCAN_MERGES(mode) ((mode) >= DP_SCAN_TIME)

/* Whether it is by group. */
#define DP_SCAN_BY_GROUP(mode)                                                                     \
	((mode) == DP_SCAN_ORDERED || (mode) == DP_SCAN_BACKWARD || (mode) == DP_SCAN_LAST)

/* Memory of a bucket or waiting measurement in such a scan */
#define DP_MERGE_ENTRY 16

extern void dp_bucket_scan_routine(FdwRoutine *routine);
extern void dp_bucket_explain_routine(FdwRoutine *routine);
extern void dp_bucket_analyze_routine(FdwRoutine *routine);

/* Counts a bucket or measurement. Only counts shared by workers are atomic. */
static inline void
dp_bucket_scan_count(DpBucketScan *scan, pg_atomic_uint64 *counter)
{
	if (likely(scan->counters == &scan->own))
		pg_atomic_write_u64(counter, pg_atomic_read_u64(counter) + 1);
	else
		pg_atomic_fetch_add_u64(counter, 1);
}

/*
 * Go to the next bucket that may have rows that match, and open it with
 * scan->reader; the group is in group_values.  false if there is none.
 */
extern bool dp_bucket_scan_next(DpBucketScan *scan);

/*
 * Go to the next waiting measurement that matches the keys; it is in recent_slot.  false if there
 * is none.
 */
extern bool dp_bucket_scan_recent(DpBucketScan *scan);

/* The rows of the open bucket that match the keys on time: [*from, *to); false if there is none. */
extern bool dp_bucket_scan_range(DpBucketScan *scan, int *from, int *to);

/* Whether the header of the open bucket says that no row can match. */
extern bool dp_bucket_scan_hopeless(DpBucketScan *scan);

/*
 * Decodes the needed columns of the open bucket into rows, from offset on; times only if
 * requested.
 */
extern void dp_scan_rows_decode(DpBucketScan *scan, DpBucketReader *reader, int offset, bool times);

/* Room for n rows in scan->rows, in the current context. */
extern void dp_scan_rows_make(DpBucketScan *scan, int n, bool times);

/* Look at the spans before the tail as well. */
extern void dp_bucket_scan_widen(DpBucketScan *scan);

/* Load the rows of the next span, in order; false if there is none. */
extern bool dp_scan_rows_span(DpBucketScan *scan);

/*
 * Returns the next entry of an index. The current context is short-lived, but index scans keep
 * what they allocate.
 */
static inline ItemPointer
dp_bucket_scan_tid(DpBucketScan *scan, IndexScanDesc iscan, ScanDirection direction)
{
	MemoryContext old = MemoryContextSwitchTo(scan->estate->es_query_cxt);
	ItemPointer result = index_getnext_tid(iscan, direction);

	MemoryContextSwitchTo(old);
	return result;
}

static inline bool
dp_bucket_scan_slot(DpBucketScan *scan, IndexScanDesc iscan, ScanDirection direction,
					TupleTableSlot *slot)
{
	MemoryContext old = MemoryContextSwitchTo(scan->estate->es_query_cxt);
	bool result = index_getnext_slot(iscan, direction, slot);

	MemoryContextSwitchTo(old);
	return result;
}

/* Put the next row of scan->rows, or the waiting measurement, into the slot. */
extern void dp_bucket_emit_packed(DpBucketScan *scan, TupleTableSlot *slot);
extern void dp_bucket_emit_recent(DpBucketScan *scan, TupleTableSlot *slot);

/* All groups by time: prepare, return the next row, restart, end. */
extern struct DpBucketMerge *dp_bucket_merge_begin(DpBucketScan *scan);
extern TupleTableSlot *dp_bucket_merge_next(DpBucketScan *scan, TupleTableSlot *slot);
extern void dp_bucket_merge_rescan(DpBucketScan *scan);
extern void dp_bucket_merge_end(DpBucketScan *scan);

/* The origins of rows that a scan gave ctids to, by query and relation */
extern struct DpBucketOrigins *dp_bucket_origins_of(EState *estate, Oid relid, bool create);
extern BlockNumber
dp_bucket_origin_add(struct DpBucketOrigins *origins, bool packed, const ItemPointerData *tid);

#endif /* DP_PATTERNS_BUCKET_SCAN_H */
