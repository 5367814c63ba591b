/*
 * state.h
 *		What a writer is made of: for write.c and find.c only.
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
	int batching;       /* whether entries can be kept together: 0 not known, 1 yes, -1 no */
	DpEntries *entries; /* those that are not made yet */
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
	IndexScanDesc desc;
} DpWriteSearch;

struct DpWriter
{
	MemoryContext context;
	MemoryContext row_context; /* what is made of the current row */
	EState *estate;
	Relation rel;
	char *column;
	int flags;
	const char *mark_name;
	DpMarkKind mark_kind;
	DpSkipTrigger skip;
	DpWriteLeaf *
		root; /* the table itself: for triggers for statements, and rows if it is not partitioned */
	List *leaf_oids; /* of a partitioned table, NIL until they are wanted */
	List *leaves;    /* of DpWriteLeaf, those that are open */
	Snapshot snapshot;
	Snapshot kept;  /* a former one that keeps the places of rows from being given away; or NULL */
	uint32 epoch;   /* of the snapshot, or of the kept one and all later ones */
	bool fresh;     /* see dp_writer_fresh() */
	int fresh_rows; /* such rows since something was looked for */
	bool leave;     /* see dp_writer_leave() */
	bool stale;     /* the snapshot does not show what is known to be there */
	EPQState epq;
	bool epq_ready;
	int64 rows;

	/* the statement's own triggers */
	bool query; /* AfterTriggerBeginQuery() was called */
	bool began[CMD_DELETE + 1];
	TransitionCaptureState *capture[CMD_DELETE + 1];
	Bitmapset **columns; /* that the statement writes, as triggers are told */

	/* the search */
	List *scans;
	DpLookup *lookup;
	const Datum *values;
	int next_leaf;
	DpWriteSearch *scan;

	/* going through a table, with a snapshot of its own */
	DpWriteLeaf *range_leaf;
	TableScanDesc range;
	Snapshot range_snapshot;

	/* the current row, in current->found */
	DpWriteLeaf *current;
	bool locked;
	bool doubtful; /* it may have become another row */
	struct varlena *doc;

	/* new rows: defaults, and many of them */
	ExprState **defaults;
	TupleTableSlot **many;
};

/* write.c: a table or partition, opened for writing; the current context is the writer's. */
extern DpWriteLeaf *dp_write_leaf(DpWriter *w, Relation rel);

/* write.c: entries in indexes that were kept are made, before anything is looked for. */
extern void dp_write_entries(DpWriter *w);

/* find.c: the snapshot that is read with, and forgetting the current row. */
extern Snapshot dp_write_snapshot(DpWriter *w);
extern void dp_write_clear(DpWriter *w);

/* find.c: the current row is going to be locked or written: see dp_note_row() */
extern void dp_write_noted(DpWriter *w);

/* find.c: going through a table ends */
extern void dp_write_scan_end(DpWriter *w);

/*
 * What the executor asks of statements: error READ_ONLY_SQL_TRANSACTION where
 * the transaction, or a standby, may only read.
 */
static inline void
dp_writer_may_write(DpWriter *w)
{
	if (w->rel->rd_rel->relpersistence != RELPERSISTENCE_TEMP)
		PreventCommandIfReadOnly("a write of a pattern");
}

#endif /* DP_KIT_ROWS_STATE_H */
