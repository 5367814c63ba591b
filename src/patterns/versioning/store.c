/*
 * store.c
 *		The document versioning pattern: its tables, read by their primary keys and
 *		written without a statement.
 *
 * Users have no privileges on the tables; the caller has checked theirs.  Triggers
 * on the tables (a guard) do not fire.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "catalog/pg_am.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"

#include "kit/rows/later.h"
#include "patterns/versioning/versioning.h"

static bool read_row(DpRevisionStore *s, ScanDirection direction, DpRevision *r);

void
dp_revisions_open(DpRevisionStore *s, DpVersioning *v, Snapshot snapshot)
{
	dp_versioning_require(v);
	s->v = v;
	s->snapshot = snapshot;
	s->known = false;
	dp_table_open(&s->revisions, v->revisions, AccessShareLock);
	s->changes.rel = NULL;
}

void
dp_revisions_close(DpRevisionStore *s)
{
	dp_table_close(&s->revisions);
	if (s->changes.rel != NULL)
		dp_table_close(&s->changes);
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
	dp_table_seek(&s->revisions, s->snapshot, key->values, key->n);
	return read_row(s, BackwardScanDirection, r);
}

void
dp_revisions_begin(DpRevisionStore *s, const DpKey *key, int64 from, int64 upto)
{
	dp_table_seek(&s->revisions, s->snapshot, key->values, key->n);
	dp_table_bound(&s->revisions, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(from));
	dp_table_bound(&s->revisions, BTLessEqualStrategyNumber, F_INT8LE, Int64GetDatum(upto));
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
	TupleTableSlot *row;
	bool isnull;
	Datum d;

	if (!dp_table_next(&s->revisions, direction))
		return false;
	row = s->revisions.row;
	r->revision = DatumGetInt64(slot_getattr(row, columns[DP_VERSION_REVISION], &isnull));
	r->change = DatumGetInt64(slot_getattr(row, columns[DP_VERSION_CHANGE], &isnull));
	r->operation = DatumGetChar(slot_getattr(row, columns[DP_VERSION_OPERATION], &isnull));
	d = slot_getattr(row, columns[DP_VERSION_DELTA], &isnull);
	r->delta = isnull ? NULL : (struct varlena *) DatumGetPointer(d);
	d = slot_getattr(row, columns[DP_VERSION_PREVIOUS], &isnull);
	r->previous = isnull ? NULL : (struct varlena *) DatumGetPointer(d);
	r->checksum = DatumGetInt32(slot_getattr(row, columns[DP_VERSION_CHECKSUM], &isnull));
	r->has_checksum = !isnull;
	d = slot_getattr(row, columns[DP_VERSION_KEPT], &isnull);
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

bool
dp_revisions_since(DpRevisionStore *s, int64 change, TimestampTz *since, text **who,
				   FullTransactionId *transaction)
{
	const AttrNumber *columns = s->v->change_columns;
	Datum key = Int64GetDatum(change);
	TupleTableSlot *row;
	bool isnull;

	/*
	 * most rows of a key that is looked at are of different changes, but those of a table are not
	 */
	if (s->known && s->change == change && who == NULL)
	{
		*since = s->since;
		return s->stamped;
	}
	if (s->changes.rel == NULL)
		dp_table_open(&s->changes, s->v->changes, AccessShareLock);
	s->known = true;
	s->change = change;
	s->stamped = dp_table_find(&s->changes, s->snapshot, &key, 1);
	row = s->changes.row;
	if (s->stamped)
	{
		*since = s->since = DatumGetTimestampTz(slot_getattr(row, columns[1], &isnull));
		if (who != NULL)
		{
			Datum d = slot_getattr(row, columns[2], &isnull);

			*who = isnull ? NULL : DatumGetTextPCopy(d);
		}
		if (transaction != NULL)
			*transaction = DatumGetFullTransactionId(slot_getattr(row, columns[3], &isnull));
	}
	return s->stamped;
}

/*
 * Returns the last entry of the index by time, for any snapshot. Includes entries of transactions
 * that are committing.
 */
bool
dp_revisions_latest(DpVersioning *v, TimestampTz *since)
{
	AttrNumber column = v->change_columns[1];
	DpTable t;
	Relation rel;
	Oid by_time = InvalidOid;
	TupleTableSlot *row;
	SnapshotData latest;
	bool found = false;
	bool isnull;

	dp_table_open(&t, v->changes, AccessShareLock);
	rel = t.rel;
	row = table_slot_create(rel, NULL);
	for (int i = 0; i < t.indexes->n && !OidIsValid(by_time); i++)
	{
		const IndexInfo *info = t.indexes->index[i].info;

		if (info->ii_IndexAttrNumbers[0] == column && info->ii_Predicate == NIL &&
			info->ii_Am == BTREE_AM_OID && get_index_isvalid(t.indexes->index[i].oid))
			by_time = t.indexes->index[i].oid;
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

		/* dropped; the result is right nevertheless */
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
	dp_table_close(&t);
	return found;
}

/* Stores a value in a column of a row. */
static void
set(TupleTableSlot *row, AttrNumber column, Datum value)
{
	row->tts_values[column - 1] = value;
	row->tts_isnull[column - 1] = false;
}

void
dp_revisions_add(DpVersioning *v, const TriggerData *fired, const DpKey *key, int64 revision,
				 int64 change, char operation, struct varlena *delta, struct varlena *previous,
				 struct varlena *bare)
{
	DpNewRow row;
	int i;

	dp_new_row(&row, fired, v->revisions, dp_versioning_write, v);
	for (i = 0; i < key->n; i++)
		set(row.slot, v->key_columns[i], key->values[i]);
	set(row.slot, v->columns[DP_VERSION_REVISION], Int64GetDatum(revision));
	set(row.slot, v->columns[DP_VERSION_CHANGE], Int64GetDatum(change));
	set(row.slot, v->columns[DP_VERSION_OPERATION], CharGetDatum(operation));
	if (delta != NULL)
		set(row.slot, v->columns[DP_VERSION_DELTA], PointerGetDatum(delta));
	if (previous != NULL)
		set(row.slot, v->columns[DP_VERSION_PREVIOUS], PointerGetDatum(previous));
	if (bare != NULL)
	{
		set(row.slot, v->columns[DP_VERSION_CHECKSUM], Int32GetDatum(dp_versioning_checksum(bare)));
		if (dp_versioning_left_out(v) != NIL)
			set(row.slot, v->columns[DP_VERSION_KEPT], PointerGetDatum(v->left_out_list));
	}
	dp_new_row_add(&row);
}

void
dp_revisions_add_change(DpVersioning *v, int64 change, const DpKey *key, TimestampTz since,
						const char *who, FullTransactionId transaction)
{
	DpTable t;
	TupleTableSlot *row;
	int i;

	dp_table_open(&t, v->changes, RowExclusiveLock);
	row = dp_table_blank(&t);
	set(row, v->change_columns[0], Int64GetDatum(change));
	for (i = 0; i < v->change_nkeys; i++)
		set(row, v->change_key[i], key->values[i]);
	set(row, v->change_columns[1], TimestampTzGetDatum(since));
	if (who != NULL)
		set(row, v->change_columns[2], CStringGetTextDatum(who));
	set(row, v->change_columns[3], FullTransactionIdGetDatum(transaction));
	dp_table_insert(&t);
	dp_table_close(&t);
}
