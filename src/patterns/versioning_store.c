/*
 * versioning_store.c
 *		The document versioning pattern: its tables, read by their primary keys
 *		and written without a statement.
 *
 * Nobody has rights on the tables; who calls has checked what the user may do.
 * Triggers on them do not fire (the guard would refuse).
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "parser/parse_relation.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"

#include "bson/catalog.h"
#include "patterns/versioning.h"

static void open_tables(DpRevisionStore *s, Versioning *v, Snapshot snapshot);
static void start_scan(DpRevisionStore *s, const DpKey *key, int nkeys);
static bool read_row(DpRevisionStore *s, ScanDirection direction, DpRevision *r);
static void open_changes(DpRevisionStore *s);
static void insert_row(Relation rel, TupleTableSlot *row);
static void no_primary_key(Relation rel) pg_attribute_noreturn();

void
dp_revisions_open(DpRevisionStore *s, Versioning *v, Snapshot snapshot)
{
	dp_versioning_require(v);
	dp_revisions_flush();
	open_tables(s, v, snapshot);
}

static void
open_tables(DpRevisionStore *s, Versioning *v, Snapshot snapshot)
{
	int			i;

	memset(s, 0, offsetof(DpRevisionStore, keys));
	s->known = false;
	s->v = v;
	s->snapshot = snapshot;
	s->revisions = table_open(v->revisions, AccessShareLock);
	list_free(RelationGetIndexList(s->revisions));
	if (!OidIsValid(s->revisions->rd_pkindex))
		no_primary_key(s->revisions);
	s->revisions_key = index_open(s->revisions->rd_pkindex, AccessShareLock);
	if (IndexRelationGetNumberOfKeyAttributes(s->revisions_key) != v->decl->nkeys + 1)
		no_primary_key(s->revisions);
	for (i = 0; i <= v->decl->nkeys; i++)
	{
		Oid			type = s->revisions_key->rd_opcintype[i];
		Oid			operator = get_opfamily_member(s->revisions_key->rd_opfamily[i], type, type, BTEqualStrategyNumber);

		ScanKeyInit(&s->keys[i], i + 1, BTEqualStrategyNumber, get_opcode(operator), (Datum) 0);
		s->keys[i].sk_collation = s->revisions_key->rd_indcollation[i];
	}
	s->row = table_slot_create(s->revisions, NULL);
}

void
dp_revisions_close(DpRevisionStore *s)
{
	dp_revisions_end(s);
	ExecDropSingleTupleTableSlot(s->row);
	index_close(s->revisions_key, NoLock);
	table_close(s->revisions, NoLock);
	if (s->changes != NULL)
	{
		ExecDropSingleTupleTableSlot(s->change_row);
		index_close(s->changes_key, NoLock);
		table_close(s->changes, NoLock);
	}
}

bool
dp_revisions_find(DpRevisionStore *s, const DpKey *key, int64 revision, DpRevision *r)
{
	bool		found;

	s->keys[key->n].sk_strategy = BTEqualStrategyNumber;
	fmgr_info(F_INT8EQ, &s->keys[key->n].sk_func);
	s->keys[key->n].sk_argument = Int64GetDatum(revision);
	start_scan(s, key, key->n + 1);
	found = read_row(s, ForwardScanDirection, r);
	index_endscan(s->scan);
	s->scan = NULL;
	return found;
}

bool
dp_revisions_last(DpRevisionStore *s, const DpKey *key, DpRevision *r)
{
	bool		found;

	start_scan(s, key, key->n);
	found = read_row(s, BackwardScanDirection, r);
	index_endscan(s->scan);
	s->scan = NULL;
	return found;
}

void
dp_revisions_begin(DpRevisionStore *s, const DpKey *key, int64 from)
{
	s->keys[key->n].sk_strategy = BTGreaterEqualStrategyNumber;
	fmgr_info(F_INT8GE, &s->keys[key->n].sk_func);
	s->keys[key->n].sk_argument = Int64GetDatum(from);
	start_scan(s, key, key->n + 1);
}

bool
dp_revisions_next(DpRevisionStore *s, DpRevision *r)
{
	return read_row(s, ForwardScanDirection, r);
}

void
dp_revisions_end(DpRevisionStore *s)
{
	if (s->scan != NULL)
		index_endscan(s->scan);
	s->scan = NULL;
}

/* A scan of the revisions of a key by the first columns of the index. */
static void
start_scan(DpRevisionStore *s, const DpKey *key, int nkeys)
{
	int			i;

	dp_revisions_end(s);
	for (i = 0; i < key->n; i++)
		s->keys[i].sk_argument = key->values[i];
	s->scan = dp_index_beginscan(s->revisions, s->revisions_key, s->snapshot, nkeys);
	index_rescan(s->scan, s->keys, nkeys, NULL, 0);
}

/* The next row of the scan. */
static bool
read_row(DpRevisionStore *s, ScanDirection direction, DpRevision *r)
{
	const AttrNumber *columns = s->v->columns;
	bool		isnull;
	Datum		d;

	if (!index_getnext_slot(s->scan, direction, s->row))
		return false;
	r->revision = DatumGetInt64(slot_getattr(s->row, columns[DP_VERSION_REVISION], &isnull));
	r->change = DatumGetInt64(slot_getattr(s->row, columns[DP_VERSION_CHANGE], &isnull));
	r->operation = DatumGetChar(slot_getattr(s->row, columns[DP_VERSION_OPERATION], &isnull));
	d = slot_getattr(s->row, columns[DP_VERSION_DELTA], &isnull);
	r->delta = isnull ? NULL : (struct varlena *) DatumGetPointer(d);
	d = slot_getattr(s->row, columns[DP_VERSION_PREVIOUS], &isnull);
	r->previous = isnull ? NULL : (struct varlena *) DatumGetPointer(d);
	return true;
}

static void
open_changes(DpRevisionStore *s)
{
	if (s->changes != NULL)
		return;
	s->changes = table_open(s->v->changes, AccessShareLock);
	list_free(RelationGetIndexList(s->changes));
	if (!OidIsValid(s->changes->rd_pkindex))
		no_primary_key(s->changes);
	s->changes_key = index_open(s->changes->rd_pkindex, AccessShareLock);
	s->change_row = table_slot_create(s->changes, NULL);
}

bool
dp_revisions_since(DpRevisionStore *s, int64 change, TimestampTz *since, text **who, FullTransactionId *transaction)
{
	const AttrNumber *columns = s->v->change_columns;
	IndexScanDesc scan;
	ScanKeyData key;
	bool		isnull;

	/* most rows of a key that is looked at are of different changes, but those of a table are not */
	if (s->known && s->change == change && who == NULL)
	{
		*since = s->since;
		return s->stamped;
	}
	open_changes(s);
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(change));
	scan = dp_index_beginscan(s->changes, s->changes_key, s->snapshot, 1);
	index_rescan(scan, &key, 1, NULL, 0);
	s->known = true;
	s->change = change;
	s->stamped = index_getnext_slot(scan, ForwardScanDirection, s->change_row);
	if (s->stamped)
	{
		*since = s->since = DatumGetTimestampTz(slot_getattr(s->change_row, columns[1], &isnull));
		if (who != NULL)
		{
			Datum		d = slot_getattr(s->change_row, columns[2], &isnull);

			*who = isnull ? NULL : DatumGetTextPCopy(d);
		}
		if (transaction != NULL)
			*transaction = DatumGetFullTransactionId(slot_getattr(s->change_row, columns[3], &isnull));
	}
	index_endscan(scan);
	return s->stamped;
}

/*
 * The last entry of the index by time, whatever the caller's snapshot shows.
 * Those of transactions that are committing now count, too.
 */
bool
dp_revisions_latest(Oid changes, TimestampTz *since)
{
	Relation	rel = table_open(changes, AccessShareLock);
	AttrNumber	column = get_attnum(changes, "since");
	Oid			by_time = InvalidOid;
	List	   *indexes = RelationGetIndexList(rel);
	ListCell   *lc;
	TupleTableSlot *row;
	SnapshotData latest;
	bool		found = false;
	bool		isnull;

	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (index->rd_rel->relam == BTREE_AM_OID && index->rd_index->indisvalid &&
			index->rd_index->indkey.values[0] == column && RelationGetIndexPredicate(index) == NIL &&
			(index->rd_indoption[0] & INDOPTION_DESC) == 0)
			by_time = lfirst_oid(lc);
		index_close(index, NoLock);
	}
	row = table_slot_create(rel, NULL);
	InitDirtySnapshot(latest);
	if (OidIsValid(by_time))
	{
		Relation	index = index_open(by_time, NoLock);
		IndexScanDesc scan = dp_index_beginscan(rel, index, &latest, 0);

		index_rescan(scan, NULL, 0, NULL, 0);
		if (index_getnext_slot(scan, BackwardScanDirection, row))
		{
			*since = DatumGetTimestampTz(slot_getattr(row, column, &isnull));
			found = true;
		}
		index_endscan(scan);
		index_close(index, NoLock);
	}
	else
	{
		TableScanDesc scan;
		Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());

		/* somebody has dropped it; the answer is right nevertheless */
		scan = table_beginscan(rel, snapshot, 0, NULL);
		while (table_scan_getnextslot(scan, ForwardScanDirection, row))
		{
			TimestampTz t = DatumGetTimestampTz(slot_getattr(row, column, &isnull));

			if (!found || t > *since)
				*since = t;
			found = true;
		}
		table_endscan(scan);
		UnregisterSnapshot(snapshot);
	}
	ExecDropSingleTupleTableSlot(row);
	list_free(indexes);
	table_close(rel, NoLock);
	return found;
}

void
dp_revisions_add(Versioning *v, const DpKey *key, int64 revision, int64 change, char operation,
				struct varlena *delta, struct varlena *previous)
{
	Relation	rel = table_open(v->revisions, RowExclusiveLock);
	TupleDesc	desc = RelationGetDescr(rel);
	TupleTableSlot *virtual = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	int			i;

	ExecClearTuple(virtual);
	memset(virtual->tts_isnull, true, desc->natts);
#define SET(attnum, datum) \
	do { \
		virtual->tts_values[(attnum) - 1] = (datum); \
		virtual->tts_isnull[(attnum) - 1] = false; \
	} while (0)
	for (i = 0; i < key->n; i++)
		SET(v->key_columns[i], key->values[i]);
	SET(v->columns[DP_VERSION_REVISION], Int64GetDatum(revision));
	SET(v->columns[DP_VERSION_CHANGE], Int64GetDatum(change));
	SET(v->columns[DP_VERSION_OPERATION], CharGetDatum(operation));
	if (delta != NULL)
		SET(v->columns[DP_VERSION_DELTA], PointerGetDatum(delta));
	if (previous != NULL)
		SET(v->columns[DP_VERSION_PREVIOUS], PointerGetDatum(previous));
	virtual->tts_tableOid = RelationGetRelid(rel);
	ExecStoreVirtualTuple(virtual);
	insert_row(rel, virtual);
	ExecDropSingleTupleTableSlot(virtual);
	table_close(rel, NoLock);
}

void
dp_revisions_flush(void)
{
}

void
dp_revisions_add_change(Oid changes, const AttrNumber *columns, int64 change, TimestampTz since,
					   const char *who, FullTransactionId transaction)
{
	Relation	rel = table_open(changes, RowExclusiveLock);
	TupleDesc	desc = RelationGetDescr(rel);
	TupleTableSlot *virtual = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);

	ExecClearTuple(virtual);
	memset(virtual->tts_isnull, true, desc->natts);
	SET(columns[0], Int64GetDatum(change));
	SET(columns[1], TimestampTzGetDatum(since));
	SET(columns[2], CStringGetTextDatum(who));
	SET(columns[3], FullTransactionIdGetDatum(transaction));
	virtual->tts_tableOid = changes;
	ExecStoreVirtualTuple(virtual);
	insert_row(rel, virtual);
	ExecDropSingleTupleTableSlot(virtual);
	table_close(rel, NoLock);
}

/* A new row, with its entries in the indexes. */
static void
insert_row(Relation rel, TupleTableSlot *row)
{
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *info = makeNode(ResultRelInfo);
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	Bitmapset **columns;

	rte->rtekind = RTE_RELATION;
	rte->relid = RelationGetRelid(rel);
	rte->relkind = rel->rd_rel->relkind;
	rte->rellockmode = RowExclusiveLock;
	dp_init_range_table(estate, rte, columns);
	(void) columns;
	InitResultRelInfo(info, rel, 1, NULL, 0);
	ExecOpenIndices(info, false);
	table_tuple_insert(rel, row, GetCurrentCommandId(true), 0, NULL);
	dp_insert_index_tuples(info, row, estate);
	ExecCloseIndices(info);
	FreeExecutorState(estate);
}

static void
no_primary_key(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table %s does not have the primary key that history is found by",
					dp_relation_name(RelationGetRelid(rel)))));
}
