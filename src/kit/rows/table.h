/*
 * table.h
 *		Rows of the tables that patterns keep: found by the primary key, locked
 *		and written without a statement.
 *
 * No triggers fire, and nothing checks rights or whether the transaction may
 * write: the caller has.  Constraints are checked.  A DpTable belongs to one
 * call, in memory of the context that is current when it is opened.
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
	Relation key;        /* the index of the primary key; NULL: not open */
	TupleTableSlot *row; /* the row found last */
	Snapshot snapshot;   /* of the search */
	IndexScanDesc scan;  /* kept for the next search */
	bool begun;
	int nequal; /* columns that the search compares with the key */
	int nkeys;

	/* writing */
	Snapshot crosscheck;     /* has to show what is updated or deleted; usually none */
	TupleTableSlot *written; /* virtual */
	bool checked;            /* for a replica identity */
	Relation *opened;        /* indexes, in the order of those above */
	ExprContext *econtext;   /* for predicates */
	ResultRelInfo *info;
	EState *estate; /* of an executor, where one is needed */
	Bitmapset **columns;

	ScanKeyData keys[INDEX_MAX_KEYS + 2];
} DpTable;

/* Raises WRONG_OBJECT_TYPE for what is not an ordinary table.  Closing keeps the lock. */
extern void dp_table_open(DpTable *t, Oid relid, LOCKMODE lock);
extern void dp_table_close(DpTable *t);

/* The index of the primary key.  Raises OBJECT_NOT_IN_PREREQUISITE_STATE if there is none. */
extern Relation dp_table_key(DpTable *t);

/*
 * Searches for rows by the first n columns of the primary key, and by up to two
 * bounds of the next one, which the function compares.  dp_table_next() puts
 * the next one into t->row.
 */
extern void dp_table_seek(DpTable *t, Snapshot snapshot, const Datum *key, int n);
extern void
dp_table_bound(DpTable *t, StrategyNumber strategy, RegProcedure function, Datum value);
extern bool dp_table_next(DpTable *t, ScanDirection direction);

/* The first row of a search. */
extern bool dp_table_find(DpTable *t, Snapshot snapshot, const Datum *key, int n);

/*
 * Locks the latest version of the row in t->row for a change and puts it there.
 * False: it is gone, or with LockWaitSkip another transaction has it.
 */
extern bool dp_table_lock(DpTable *t, LockWaitPolicy policy);

/*
 * t->written is filled first: empty but for nulls, or with the columns of
 * t->row.  dp_table_update() writes it in place of the row in t->row, from
 * which only column changed differs (InvalidAttrNumber: any).
 */
extern TupleTableSlot *dp_table_blank(DpTable *t);
extern TupleTableSlot *dp_table_copy(DpTable *t);
extern void dp_table_insert(DpTable *t);
extern TM_Result dp_table_update(DpTable *t, AttrNumber changed, bool wait);
extern TM_Result dp_table_delete(DpTable *t, bool wait);

#endif /* DP_KIT_ROWS_TABLE_H */
