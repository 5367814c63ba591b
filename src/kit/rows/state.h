/*
 * state.h
 *		The parts of a writer, for write.c and find.c only.
 */
#ifndef DP_KIT_ROWS_STATE_H
#define DP_KIT_ROWS_STATE_H

#include "access/genam.h"
#include "access/skey.h"
#include "access/tableam.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/snapshot.h"

#include "kit/rows/entries.h"
#include "kit/rows/lookup.h"
#include "kit/rows/write.h"

/* A table or partition that is written to */
typedef struct DpWriteLeaf
{
	Relation rel;
	DpTableFacts *facts;
	ResultRelInfo *info;
	AttrNumber doc;
	TupleTableSlot *found;
	TupleTableSlot *written;
	bool indexes_open;
	int batching;       /* 1 if entries can be batched, -1 if not, 0 if unknown */
	DpEntries *entries; /* those not made yet */
} DpWriteLeaf;

/* A scan, kept for the next search of the same kind */
typedef struct DpWriteSearch
{
	DpLookup *lookup;
	DpWriteLeaf *leaf;
	uint64 generation;
	Relation index;
	int nkeys;
	ScanKeyData *keys;
	const DpKeyColumn *column; /* values are converted to it, unless NULL .. */
	MemoryContext converted;   /* .. in this context */
	IndexScanDesc desc;
} DpWriteSearch;

struct DpWriter
{
	MemoryContext context;
	MemoryContext row_context; /* data made from the current row */
	EState *estate;
	Relation rel;
	char *column;
	int flags;
	const char *mark_name;
	DpMarkKind mark_kind;
	DpSkipTrigger skip;
	DpWriteLeaf *root; /* for statement-level triggers, and rows if not partitioned */
	List *leaf_oids;   /* of a partitioned table, NIL until needed */
	List *leaves;      /* of DpWriteLeaf, the open ones */
	Snapshot snapshot;
	Snapshot kept; /* an earlier one that keeps TIDs from being reused; or NULL */
	uint32 epoch;  /* of the snapshot, or of the kept one and all later ones */
	bool inserted; /* see dp_writer_inserted() */
	int new_rows;  /* such rows since the last search */
	bool leave;    /* see dp_writer_leave() */
	bool outdated; /* the snapshot lacks rows that are known to exist */
	EPQState epq;
	bool epq_ready;
	int64 rows;

	/* the statement's own triggers */
	bool query; /* AfterTriggerBeginQuery() was called */
	bool began[CMD_DELETE + 1];
	TransitionCaptureState *capture[CMD_DELETE + 1];
	Bitmapset **columns; /* written by the statement, as triggers see them */

	/* the search */
	List *scans;
	DpLookup *lookup;
	const Datum *values;
	int next_leaf;
	DpWriteSearch *scan;

	/* a table scan, with its own snapshot */
	DpWriteLeaf *range_leaf;
	TableScanDesc range;
	Snapshot range_snapshot;

	/* the current row, in current->found */
	DpWriteLeaf *current;
	bool locked;
	bool tid_uncertain; /* its TID may have been reused by another row */
	struct varlena *doc;

	/* new rows: defaults, and slots for many rows */
	ExprState **defaults;
	TupleTableSlot **many;
};

/* write.c: a table or partition, opened for writing; the current context is the writer's. */
extern DpWriteLeaf *dp_write_leaf(DpWriter *w, Relation rel);

/* write.c: makes batched index entries, before any search. */
extern void dp_write_entries(DpWriter *w);

/* find.c: the snapshot for reading; dp_write_clear() forgets the current row. */
extern Snapshot dp_write_snapshot(DpWriter *w);
extern void dp_write_clear(DpWriter *w);

/* find.c: called before the current row is locked or written: see dp_note_row() */
extern void dp_write_noted(DpWriter *w);

/* find.c: ends a table scan */
extern void dp_write_scan_end(DpWriter *w);

/*
 * Raises READ_ONLY_SQL_TRANSACTION in a read-only transaction or on a standby, as the executor
 * does.
 */
static inline void
dp_writer_may_write(DpWriter *w)
{
	if (w->rel->rd_rel->relpersistence != RELPERSISTENCE_TEMP)
		PreventCommandIfReadOnly("a write of a pattern");
}

#endif /* DP_KIT_ROWS_STATE_H */
