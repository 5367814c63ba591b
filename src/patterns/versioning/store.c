/*
 * store.c
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
#include "access/heapam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"

#include "bson/catalog.h"
#include "kit/rows/entries.h"
#include "patterns/versioning/versioning.h"

static bool read_row(DpRevisionStore *s, ScanDirection direction, DpRevision *r);
static ScanKeyData *make_scan_keys(DpVersioning *v, Relation revisions, Relation index);
static void open_changes(DpRevisionStore *s);
static bool indexes_known(Relation rel, const DpRevisionIndexes *indexes);
static DpRevisionIndexes *indexes_of(DpVersioning *v, Relation rel, DpRevisionIndexes **kept);
static bool is_of_deletions(DpVersioning *v, Relation rel, IndexInfo *info);
static void insert_row(DpVersioning *v, Relation rel, DpRevisionIndexes **kept, Datum *values,
					   bool *nulls, bool deletion);
static void insert_anyhow(Relation rel, Datum *values, bool *nulls);
static void no_primary_key(Relation rel) pg_attribute_noreturn();

void
dp_revisions_open(DpRevisionStore *s, DpVersioning *v, Snapshot snapshot)
{
	int i;

	dp_versioning_require(v);
	memset(s, 0, offsetof(DpRevisionStore, keys));
	s->known = false;
	s->v = v;
	s->snapshot = snapshot;
	s->revisions = table_open(v->revisions, AccessShareLock);
	if (!s->revisions->rd_indexvalid)
		list_free(RelationGetIndexList(s->revisions));
	if (!OidIsValid(s->revisions->rd_pkindex))
		no_primary_key(s->revisions);
	s->revisions_key = index_open(s->revisions->rd_pkindex, AccessShareLock);
	if (v->scan_keys == NULL)
		v->scan_keys = make_scan_keys(v, s->revisions, s->revisions_key);
	memcpy(s->keys, v->scan_keys, (v->decl->nkeys + 2) * sizeof(ScanKeyData));
	for (i = 0; i < v->decl->nkeys + 2; i++)
		s->keys[i].sk_func.fn_mcxt =
			CurrentMemoryContext; /* what functions remember goes with the scan */
	s->row = table_slot_create(s->revisions, NULL);
}

/* The keys of scans, without their arguments; kept with the declaration. */
static ScanKeyData *
make_scan_keys(DpVersioning *v, Relation revisions, Relation index)
{
	int nkeys = v->decl->nkeys;
	MemoryContext old;
	ScanKeyData *keys;

	if (IndexRelationGetNumberOfKeyAttributes(index) != nkeys + 1)
		no_primary_key(revisions);
	old = MemoryContextSwitchTo(v->decl->context);
	keys = palloc0((nkeys + 2) * sizeof(ScanKeyData));
	for (int i = 0; i < nkeys; i++)
	{
		Oid type = index->rd_opcintype[i];
		Oid operator= get_opfamily_member(index->rd_opfamily[i], type, type, BTEqualStrategyNumber);

		ScanKeyInit(&keys[i], i + 1, BTEqualStrategyNumber, get_opcode(operator), (Datum) 0);
		keys[i].sk_collation = index->rd_indcollation[i];
	}
	ScanKeyInit(&keys[nkeys], nkeys + 1, BTGreaterEqualStrategyNumber, F_INT8GE, (Datum) 0);
	ScanKeyInit(&keys[nkeys + 1], nkeys + 1, BTLessEqualStrategyNumber, F_INT8LE, (Datum) 0);
	MemoryContextSwitchTo(old);
	return keys;
}

void
dp_revisions_close(DpRevisionStore *s)
{
	if (s->scan != NULL)
		index_endscan(s->scan);
	if (s->change_scan != NULL)
		index_endscan(s->change_scan);
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
	dp_revisions_begin(s, key, revision, revision);
	return read_row(s, ForwardScanDirection, r);
}

bool
dp_revisions_last(DpRevisionStore *s, const DpKey *key, DpRevision *r)
{
	dp_revisions_begin(s, key, PG_INT64_MIN, PG_INT64_MAX);
	return read_row(s, BackwardScanDirection, r);
}

/*
 * The scan is begun once and then only told to look for something else.
 */
void
dp_revisions_begin(DpRevisionStore *s, const DpKey *key, int64 from, int64 upto)
{
	int i;

	for (i = 0; i < key->n; i++)
		s->keys[i].sk_argument = key->values[i];
	s->keys[i].sk_argument = Int64GetDatum(from);
	s->keys[i + 1].sk_argument = Int64GetDatum(upto);
	if (s->scan == NULL)
		s->scan = dp_index_beginscan(s->revisions, s->revisions_key, s->snapshot, key->n + 2);
	index_rescan(s->scan, s->keys, key->n + 2, NULL, 0);
}

bool
dp_revisions_next(DpRevisionStore *s, DpRevision *r)
{
	return read_row(s, ForwardScanDirection, r);
}

bool
dp_revisions_before(DpRevisionStore *s, DpRevision *r)
{
	return read_row(s, BackwardScanDirection, r);
}

/* The next row of the scan. */
static bool
read_row(DpRevisionStore *s, ScanDirection direction, DpRevision *r)
{
	const AttrNumber *columns = s->v->columns;
	bool isnull;
	Datum d;

	if (!index_getnext_slot(s->scan, direction, s->row))
		return false;
	r->revision = DatumGetInt64(slot_getattr(s->row, columns[DP_VERSION_REVISION], &isnull));
	r->change = DatumGetInt64(slot_getattr(s->row, columns[DP_VERSION_CHANGE], &isnull));
	r->operation = DatumGetChar(slot_getattr(s->row, columns[DP_VERSION_OPERATION], &isnull));
	d = slot_getattr(s->row, columns[DP_VERSION_DELTA], &isnull);
	r->delta = isnull ? NULL : (struct varlena *) DatumGetPointer(d);
	d = slot_getattr(s->row, columns[DP_VERSION_PREVIOUS], &isnull);
	r->previous = isnull ? NULL : (struct varlena *) DatumGetPointer(d);
	r->checksum = DatumGetInt32(slot_getattr(s->row, columns[DP_VERSION_CHECKSUM], &isnull));
	r->has_checksum = !isnull;
	d = slot_getattr(s->row, columns[DP_VERSION_KEPT], &isnull);
	r->kept = isnull ? NULL : (text *) DatumGetPointer(d);
	return true;
}

List *
dp_revision_kept(const DpRevision *r)
{
	text *list;

	if (r->kept == NULL)
		return NIL;
	list = DatumGetTextPP(PointerGetDatum(r->kept));
	return dp_path_parse_list(VARDATA_ANY(list), VARSIZE_ANY_EXHDR(list));
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
dp_revisions_since(DpRevisionStore *s, int64 change, TimestampTz *since, text **who,
				   FullTransactionId *transaction)
{
	const AttrNumber *columns = s->v->change_columns;
	ScanKeyData key;
	bool isnull;

	/*
	 * most rows of a key that is looked at are of different changes, but those of a table are not
	 */
	if (s->known && s->change == change && who == NULL)
	{
		*since = s->since;
		return s->stamped;
	}
	open_changes(s);
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(change));
	if (s->change_scan == NULL)
		s->change_scan = dp_index_beginscan(s->changes, s->changes_key, s->snapshot, 1);
	index_rescan(s->change_scan, &key, 1, NULL, 0);
	s->known = true;
	s->change = change;
	s->stamped = index_getnext_slot(s->change_scan, ForwardScanDirection, s->change_row);
	if (s->stamped)
	{
		*since = s->since = DatumGetTimestampTz(slot_getattr(s->change_row, columns[1], &isnull));
		if (who != NULL)
		{
			Datum d = slot_getattr(s->change_row, columns[2], &isnull);

			*who = isnull ? NULL : DatumGetTextPCopy(d);
		}
		if (transaction != NULL)
			*transaction =
				DatumGetFullTransactionId(slot_getattr(s->change_row, columns[3], &isnull));
	}
	return s->stamped;
}

/*
 * The last entry of the index by time, whatever the caller's snapshot shows.
 * Those of transactions that are committing now count, too.
 */
bool
dp_revisions_latest(DpVersioning *v, TimestampTz *since)
{
	Relation rel = table_open(v->changes, AccessShareLock);
	AttrNumber column = v->change_columns[1];
	DpRevisionIndexes *indexes = indexes_of(v, rel, &v->change_indexes);
	Oid by_time = InvalidOid;
	TupleTableSlot *row = table_slot_create(rel, NULL);
	SnapshotData latest;
	bool found = false;
	bool isnull;

	for (int i = 0; i < indexes->n && !OidIsValid(by_time); i++)
	{
		const IndexInfo *info = indexes->index[i].info;

		if (info->ii_IndexAttrNumbers[0] == column && info->ii_Predicate == NIL &&
			info->ii_Am == BTREE_AM_OID)
			by_time = indexes->index[i].oid;
	}
	InitDirtySnapshot(latest);
	if (OidIsValid(by_time))
	{
		Relation index = index_open(by_time, AccessShareLock);
		IndexScanDesc scan = dp_index_beginscan(rel, index, &latest, 0);

		index_rescan(scan, NULL, 0, NULL, 0);
		if (index_getnext_slot(scan,
							   (index->rd_indoption[0] & INDOPTION_DESC) ? ForwardScanDirection
																		 : BackwardScanDirection,
							   row))
		{
			*since = DatumGetTimestampTz(slot_getattr(row, column, &isnull));
			found = true;
		}
		index_endscan(scan);
		index_close(index, NoLock);
	}
	else
	{
		Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
		TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);

		/* somebody has dropped it; the answer is right nevertheless */
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
	table_close(rel, NoLock);
	return found;
}

void
dp_revisions_add(DpVersioning *v, const DpKey *key, int64 revision, int64 change, char operation,
				 struct varlena *delta, struct varlena *previous, struct varlena *bare)
{
	Relation rel = table_open(v->revisions, RowExclusiveLock);
	int natts = RelationGetDescr(rel)->natts;
	Datum values[MaxHeapAttributeNumber];
	bool nulls[MaxHeapAttributeNumber];
	int i;

	memset(nulls, true, natts);
#define SET(attnum, datum)                                                                         \
	do                                                                                             \
	{                                                                                              \
		values[(attnum) -1] = (datum);                                                             \
		nulls[(attnum) -1] = false;                                                                \
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
	if (bare != NULL)
	{
		SET(v->columns[DP_VERSION_CHECKSUM], Int32GetDatum(dp_versioning_checksum(bare)));
		if (dp_versioning_left_out(v) != NIL)
			SET(v->columns[DP_VERSION_KEPT], PointerGetDatum(v->left_out_list));
	}
	insert_row(v, rel, &v->revision_indexes, values, nulls, operation == DP_VERSION_DELETE);
	table_close(rel, NoLock);
}

void
dp_revisions_add_change(DpVersioning *v, int64 change, TimestampTz since, const char *who,
						FullTransactionId transaction)
{
	Relation rel = table_open(v->changes, RowExclusiveLock);
	Datum values[MaxHeapAttributeNumber];
	bool nulls[MaxHeapAttributeNumber];

	memset(nulls, true, RelationGetDescr(rel)->natts);
	SET(v->change_columns[0], Int64GetDatum(change));
	SET(v->change_columns[1], TimestampTzGetDatum(since));
	if (who != NULL)
		SET(v->change_columns[2], CStringGetTextDatum(who));
	SET(v->change_columns[3], FullTransactionIdGetDatum(transaction));
	insert_row(v, rel, &v->change_indexes, values, nulls, false);
	table_close(rel, NoLock);
}

/*
 * Whether the indexes that are known are those of the table: somebody may have made one just before
 * it was locked.
 */
static bool
indexes_known(Relation rel, const DpRevisionIndexes *indexes)
{
	List *oids = RelationGetIndexList(rel);
	bool known = list_length(oids) == indexes->n;

	for (int i = 0; i < indexes->n && known; i++)
		known = list_nth_oid(oids, i) == indexes->index[i].oid;
	list_free(oids);
	return known;
}

/*
 * The indexes of a table, which are looked at once: one in a hundred rows would
 * be found otherwise.  Kept with the declaration, which is read anew when the
 * table changes.
 */
static DpRevisionIndexes *
indexes_of(DpVersioning *v, Relation rel, DpRevisionIndexes **kept)
{
	DpRevisionIndexes *indexes;
	List *oids;
	ListCell *lc;
	MemoryContext old;

	if (likely(*kept != NULL && indexes_known(rel, *kept)))
		return *kept;
	oids = RelationGetIndexList(rel);
	old = MemoryContextSwitchTo(v->decl->context);
	indexes =
		palloc0(offsetof(DpRevisionIndexes, index) + list_length(oids) * sizeof(indexes->index[0]));
	indexes->simple = rel->trigdesc == NULL || !rel->trigdesc->trig_insert_after_row;
	foreach(lc, oids)
	{
		Relation index = index_open(lfirst_oid(lc), RowExclusiveLock);
		IndexInfo *info = BuildIndexInfo(index);
		DpRevisionIndex *x = &indexes->index[indexes->n++];

		x->oid = lfirst_oid(lc);
		x->info = info;
		x->deletions = is_of_deletions(v, rel, info);
		if (index->rd_rel->relam != BTREE_AM_OID || info->ii_Expressions != NIL ||
			info->ii_ExclusionOps != NULL || !index->rd_index->indimmediate ||
			(info->ii_Predicate != NIL && !x->deletions) || !info->ii_ReadyForInserts)
			indexes->simple = false;
		index_close(index, NoLock);
	}
	MemoryContextSwitchTo(old);
	list_free(oids);
	*kept = indexes;
	return indexes;
}

/* Whether an index has the deletions only: WHERE operation = 'd', as we make it. */
static bool
is_of_deletions(DpVersioning *v, Relation rel, IndexInfo *info)
{
	OpExpr *op;
	Var *var;
	Const *c;

	if (RelationGetRelid(rel) != v->revisions || list_length(info->ii_Predicate) != 1)
		return false;
	op = linitial(info->ii_Predicate);
	if (!IsA(op, OpExpr) || get_opcode(op->opno) != F_CHAREQ || list_length(op->args) != 2)
		return false;
	var = linitial(op->args);
	c = lsecond(op->args);
	return IsA(var, Var) && var->varattno == v->columns[DP_VERSION_OPERATION] && IsA(c, Const) &&
		   !c->constisnull && DatumGetChar(c->constvalue) == DP_VERSION_DELETE;
}

/*
 * A new row, with its entries in the indexes.
 */
static void
insert_row(DpVersioning *v, Relation rel, DpRevisionIndexes **kept, Datum *values, bool *nulls,
		   bool deletion)
{
	DpRevisionIndexes *indexes = indexes_of(v, rel, kept);
	HeapTuple tuple;

	if (unlikely(!indexes->simple))
	{
		insert_anyhow(rel, values, nulls);
		return;
	}
	tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
	heap_insert(rel, tuple, GetCurrentCommandId(true), 0, NULL);
	for (int i = 0; i < indexes->n; i++)
	{
		DpRevisionIndex *x = &indexes->index[i];
		Relation index;
		Datum keys[INDEX_MAX_KEYS];
		bool isnull[INDEX_MAX_KEYS];

		if (x->deletions && !deletion)
			continue;
		index = index_open(x->oid, RowExclusiveLock);
		for (int k = 0; k < x->info->ii_NumIndexAttrs; k++)
		{
			AttrNumber att = x->info->ii_IndexAttrNumbers[k];

			keys[k] = values[att - 1];
			isnull[k] = nulls[att - 1];
		}
		index_insert(index, keys, isnull, &tuple->t_self, rel,
					 index->rd_index->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false,
					 x->info);
		index_close(index, NoLock);
	}
	heap_freetuple(tuple);
}

/* The same for a table to which somebody has done more than that. */
static void
insert_anyhow(Relation rel, Datum *values, bool *nulls)
{
	TupleTableSlot *row = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsVirtual);

	ExecClearTuple(row);
	memcpy(row->tts_values, values, RelationGetDescr(rel)->natts * sizeof(Datum));
	memcpy(row->tts_isnull, nulls, RelationGetDescr(rel)->natts * sizeof(bool));
	row->tts_tableOid = RelationGetRelid(rel);
	ExecStoreVirtualTuple(row);

	/* at commit there is none, and expressions of an index may want one */
	PushActiveSnapshot(GetTransactionSnapshot());
	table_tuple_insert(rel, row, GetCurrentCommandId(true), 0, NULL);
	dp_entries_one(rel, row, InvalidAttrNumber, (DpUpdateIndexes) 0);
	PopActiveSnapshot();
	ExecDropSingleTupleTableSlot(row);
}

static void
no_primary_key(Relation rel)
{
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("table %s does not have the primary key of its history",
						   dp_relation_name(RelationGetRelid(rel)))));
}
