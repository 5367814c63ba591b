/*
 * table.h
 *		Rows of the tables that patterns keep: found by the primary key, locked
 *		and written without a statement.
 *
 * Writes check constraints, but fire no triggers unless dp_table_fire() asks for
 * it. The caller has checked the user's rights and that the transaction may
 * write. A DpTable serves one call; its memory is in the context that was current
 * when it was opened.
 */
#ifndef DP_KIT_ROWS_TABLE_H
#define DP_KIT_ROWS_TABLE_H

#include "access/genam.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"

#include "kit/rows/lookup.h"

typedef struct DpTable
{
	Relation rel;
	MemoryContext context;
	DpTableIndexes *indexes;

	/* reading */
	Relation key;        /* index of the primary key; NULL if not open */
	TupleTableSlot *row; /* the row found last */
	Snapshot snapshot;   /* of the search */
	IndexScanDesc scan;  /* kept for the next search */
	bool begun;
	int nequal; /* columns that must be equal */
	int nkeys;
	ScanKeyData *keys;

	/* writing */
	Snapshot crosscheck;     /* must show the old row; usually none */
	TupleTableSlot *written; /* virtual */
	TupleTableSlot **many;   /* new rows that are written together, virtual */
	TupleDesc many_desc;
	int nmany;
	MemoryContext many_context; /* reset when they are written */
	bool checked;            /* has a replica identity */
	Relation *opened;        /* those of indexes, NULL where not needed yet */
	ResultRelInfo *info;
	EState *estate;         /* NULL unless an executor is needed */
	bool lent;              /* by the caller */
	bool executor;          /* info has the indexes */
	Bitmapset **columns;    /* unless lent */
	bool pushed;            /* a snapshot for it */
	bool fires;             /* has AFTER ROW triggers to fire */
	const CommandId *cid;   /* of writes; NULL or InvalidCommandId for the current command's */
	TM_FailureData failure; /* of the last update or delete */
} DpTable;

/* Raises WRONG_OBJECT_TYPE unless it is an ordinary table. Closing keeps the lock. */
extern void dp_table_open(DpTable *t, Oid relid, LOCKMODE lock);
extern void dp_table_close(DpTable *t);

/* From now on AFTER ROW triggers fire, in the query of this executor. */
extern void dp_table_fire(DpTable *t, EState *estate);

/* Returns the index of the primary key. Raises OBJECT_NOT_IN_PREREQUISITE_STATE without it. */
extern Relation dp_table_key(DpTable *t);

/*
 * Starts a search by the first n columns of the primary key and by up to two
 * bounds of the next column, which the function compares. dp_table_next()
 * stores the next row in t->row.
 */
extern void dp_table_seek(DpTable *t, Snapshot snapshot, const Datum *key, int n);
extern void dp_table_bound(DpTable *t, StrategyNumber strategy, RegProcedure function, Datum value);
extern bool dp_table_next(DpTable *t, ScanDirection direction);

/* Stores the first row of a search, and ends it. */
extern bool dp_table_find(DpTable *t, Snapshot snapshot, const Datum *key, int n);

/* Whether there is a row whose first key column is between two values. */
extern bool dp_table_any(DpTable *t, Snapshot snapshot, Datum low, Datum high);

/*
 * Locks the latest version of t->row for a change and stores it there. Returns
 * false if the row was deleted or, with LockWaitSkip, is locked.
 */
extern bool dp_table_lock(DpTable *t, LockWaitPolicy policy);

/*
 * Before a write the caller fills t->written, which these return with nulls or
 * with the columns of t->row. dp_table_update() replaces the row at tid by it;
 * only the column "changed" may differ (InvalidAttrNumber: any column).
 */
extern TupleTableSlot *dp_table_blank(DpTable *t);
extern TupleTableSlot *dp_table_copy(DpTable *t);
extern void dp_table_insert(DpTable *t);

/*
 * New rows that were formed: inserts them, sorts them by the primary key (those with the same key
 * in order of t_self), compares the first columns of the key of two of them.
 */
extern void dp_table_insert_many(DpTable *t, HeapTuple *rows, int n);
extern void dp_table_sort(DpTable *t, HeapTuple *rows, int n);
extern int dp_table_compare(DpTable *t, HeapTuple a, HeapTuple b, int ncolumns);

/*
 * Inserts as ON CONFLICT DO NOTHING does: returns false if a row with the same primary key exists,
 * and waits for transactions that insert one.
 */
extern bool dp_table_insert_unless(DpTable *t);
extern TM_Result dp_table_update(DpTable *t, ItemPointer tid, AttrNumber changed, bool wait);
extern TM_Result dp_table_delete(DpTable *t, ItemPointer tid, bool wait);

/*
 * Many new rows: dp_table_next_blank() returns a slot with nulls for each. Its values must stay
 * valid until dp_table_flush(), as those in t->many_context do, which writes the rows. It is called
 * when there are many; the caller calls it at the end.
 */
extern TupleTableSlot *dp_table_next_blank(DpTable *t, struct BulkInsertStateData *bulk);
extern void dp_table_flush(DpTable *t, struct BulkInsertStateData *bulk);

#endif /* DP_KIT_ROWS_TABLE_H */
