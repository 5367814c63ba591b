/*
 * shards.c
 *		Exact counters whose writers do not wait for each other.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/declaration.h"
#include "kit/rows/entries.h"
#include "patterns/approximation/shards.h"

/* An open table of slots */
typedef struct Slots
{
	Relation rel;
	Relation index;
	int nkeys; /* columns of the key, without the slot's number */
	AttrNumber amount;
	TupleTableSlot *row; /* what scans find */
	ScanKeyData keys[INDEX_MAX_KEYS];
} Slots;

static void slots_open(Slots *s, Oid table, const Datum *key, LOCKMODE lock);
static void slots_close(Slots *s);
static IndexScanDesc slots_scan(Slots *s, Snapshot snapshot, int nkeys);
static DpValue slots_amount(Slots *s, TupleTableSlot *row);
static bool slots_try(Slots *s, const DpValue *amount);
static void slots_insert(Slots *s, const Datum *key, const DpValue *amount);
static void not_slots(Oid table) pg_attribute_noreturn();

void
dp_slots_add(Oid table, const Datum *key, const DpValue *amount, int tries, DpSlotsHold hold,
			 void *arg)
{
	Slots s;
	SnapshotData dirty;
	int64 start = (int64) (pg_prng_uint64(&pg_global_prng_state) >> 1);
	bool done = false;
	int pass;

	slots_open(&s, table, key, RowExclusiveLock);
	InitDirtySnapshot(dirty);

	/* from a random one to the end, then from the first one, so that writers spread */
	for (pass = 0; pass < 2 && !done && tries > 0; pass++)
	{
		IndexScanDesc scan;

		ScanKeyInit(&s.keys[s.nkeys], s.nkeys + 1,
					pass == 0 ? BTGreaterEqualStrategyNumber : BTLessStrategyNumber,
					pass == 0 ? F_INT8GE : F_INT8LT, Int64GetDatum(start));
		scan = slots_scan(&s, &dirty, s.nkeys + 1);
		while (!done && tries > 0 && index_getnext_slot(scan, ForwardScanDirection, s.row))
		{
			/* somebody writes to it, or has just made it */
			if (TransactionIdIsValid(dirty.xmin) || TransactionIdIsValid(dirty.xmax))
			{
				tries--;
				continue;
			}
			done = slots_try(&s, amount);
			tries--;
		}
		index_endscan(scan);
	}

	if (!done)
	{
		if (hold != NULL)
			hold(arg);
		slots_insert(&s, key, amount);
	}
	slots_close(&s);

	/* the same transaction may add again */
	CommandCounterIncrement();
}

int64
dp_slots_sum(Oid table, const Datum *key, Snapshot snapshot, DpAmount *sum)
{
	Slots s;
	IndexScanDesc scan;
	int64 n = 0;

	slots_open(&s, table, key, AccessShareLock);
	scan = slots_scan(&s, snapshot, s.nkeys);
	while (index_getnext_slot(scan, ForwardScanDirection, s.row))
	{
		DpValue amount = slots_amount(&s, s.row);

		dp_amount_add(sum, &amount);
		n++;
	}
	index_endscan(scan);
	slots_close(&s);
	return n;
}

int64
dp_slots_take(Oid table, const Datum *key, bool wait, DpAmount *sum)
{
	Slots s;
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	IndexScanDesc scan;
	TupleTableSlot *locked;
	CommandId cid = GetCurrentCommandId(true);
	int64 n = 0;

	slots_open(&s, table, key, RowExclusiveLock);
	locked = table_slot_create(s.rel, NULL);
	scan = slots_scan(&s, snapshot, s.nkeys);
	while (index_getnext_slot(scan, ForwardScanDirection, s.row))
	{
		TM_FailureData failure;
		TM_Result result;
		DpValue amount;

		CHECK_FOR_INTERRUPTS();
		result = table_tuple_lock(s.rel, &s.row->tts_tid, snapshot, locked, cid, LockTupleExclusive,
								  wait ? LockWaitBlock : LockWaitSkip,
								  TUPLE_LOCK_FLAG_FIND_LAST_VERSION, &failure);
		if (result != TM_Ok)
			continue; /* somebody has it, or it is gone */
		amount = slots_amount(&s, locked);
		dp_amount_add(sum, &amount);
		result = table_tuple_delete(s.rel, &locked->tts_tid, cid, snapshot, InvalidSnapshot, true,
									&failure, false);
		if (result != TM_Ok)
			elog(ERROR, "could not remove a slot that is locked: %d", result);
		n++;
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(locked);
	slots_close(&s);
	UnregisterSnapshot(snapshot);
	CommandCounterIncrement();
	return n;
}

void
dp_slots_put(Oid table, const Datum *key, const DpValue *amount)
{
	Slots s;

	slots_open(&s, table, key, RowExclusiveLock);
	slots_insert(&s, key, amount);
	slots_close(&s);
	CommandCounterIncrement();
}

/*
 * Open a table of slots for a key.  Anybody may call a table what he likes, so
 * its columns are looked at.
 */
static void
slots_open(Slots *s, Oid table, const Datum *key, LOCKMODE lock)
{
	TupleDesc desc;
	int i;

	s->rel = table_open(table, lock);
	desc = RelationGetDescr(s->rel);
	list_free(RelationGetIndexList(s->rel));
	if (s->rel->rd_rel->relkind != RELKIND_RELATION || !OidIsValid(s->rel->rd_pkindex))
		not_slots(table);
	s->index = index_open(s->rel->rd_pkindex, lock);
	s->nkeys = IndexRelationGetNumberOfKeyAttributes(s->index) - 1;
	s->amount = InvalidAttrNumber;
	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && strcmp(NameStr(att->attname), "amount") == 0)
			s->amount = i + 1;
	}
	if (s->nkeys < 1 || s->amount == InvalidAttrNumber ||
		TupleDescAttr(desc, s->amount - 1)->atttypid != dp_types()->bson_value ||
		TupleDescAttr(desc, s->index->rd_index->indkey.values[s->nkeys] - 1)->atttypid != INT8OID)
		not_slots(table);

	for (i = 0; i < s->nkeys; i++)
	{
		Oid type = s->index->rd_opcintype[i];
		Oid operator=
			get_opfamily_member(s->index->rd_opfamily[i], type, type, BTEqualStrategyNumber);

		ScanKeyInit(&s->keys[i], i + 1, BTEqualStrategyNumber, get_opcode(operator), key[i]);
		s->keys[i].sk_collation = s->index->rd_indcollation[i];
	}
	s->row = table_slot_create(s->rel, NULL);
}

/* Close it; the locks are kept. */
static void
slots_close(Slots *s)
{
	ExecDropSingleTupleTableSlot(s->row);
	index_close(s->index, NoLock);
	table_close(s->rel, NoLock);
}

/* Start to read the slots of the key. */
static IndexScanDesc
slots_scan(Slots *s, Snapshot snapshot, int nkeys)
{
	IndexScanDesc scan = dp_index_beginscan(s->rel, s->index, snapshot, nkeys);

	index_rescan(scan, s->keys, nkeys, NULL, 0);
	return scan;
}

/* What a slot holds.  Raises DATA_CORRUPTED if that is no number. */
static DpValue
slots_amount(Slots *s, TupleTableSlot *row)
{
	bool isnull;
	Datum datum = slot_getattr(row, s->amount, &isnull);
	DpValue amount;

	if (!isnull)
	{
		amount = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(datum));
		if (dp_type_is_number(amount.type))
			return amount;
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED), errmsg("a slot of table %s holds no number",
													 dp_relation_name(RelationGetRelid(s->rel)))));
}

/*
 * Add to the slot in s->row, unless somebody has it or has changed it since it
 * was read.
 */
static bool
slots_try(Slots *s, const DpValue *amount)
{
	TupleDesc desc = RelationGetDescr(s->rel);
	TupleTableSlot *row = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	ItemPointerData tid = s->row->tts_tid;
	DpValue old = slots_amount(s, s->row);
	DpAmount sum;
	TM_FailureData failure;
	LockTupleMode mode;
	DpUpdateIndexes indexes;
	TM_Result result;

	dp_amount_set(&sum, &old);
	dp_amount_add(&sum, amount);
	ExecCopySlot(row, s->row);
	row->tts_values[s->amount - 1] = PointerGetDatum(dp_value_to_varlena(&sum.value));
	row->tts_tableOid = RelationGetRelid(s->rel);
	result = table_tuple_update(s->rel, &tid, row, GetCurrentCommandId(true), GetActiveSnapshot(),
								InvalidSnapshot, false, &failure, &mode, &indexes);
	if (result == TM_Ok && dp_update_needs_indexes(indexes))
		dp_entries_one(s->rel, row, s->amount, indexes);
	ExecDropSingleTupleTableSlot(row);
	return result == TM_Ok;
}

/* Make a slot of a new number. */
static void
slots_insert(Slots *s, const Datum *key, const DpValue *amount)
{
	TupleDesc desc = RelationGetDescr(s->rel);
	TupleTableSlot *row = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	int i;

	ExecClearTuple(row);
	memset(row->tts_isnull, true, desc->natts);
	for (i = 0; i <= s->nkeys; i++)
	{
		AttrNumber att = s->index->rd_index->indkey.values[i];

		row->tts_values[att - 1] =
			i < s->nkeys ? key[i]
						 : Int64GetDatum((int64) (pg_prng_uint64(&pg_global_prng_state) >> 1));
		row->tts_isnull[att - 1] = false;
	}
	row->tts_values[s->amount - 1] = PointerGetDatum(dp_value_to_varlena(amount));
	row->tts_isnull[s->amount - 1] = false;
	row->tts_tableOid = RelationGetRelid(s->rel);
	ExecStoreVirtualTuple(row);
	table_tuple_insert(s->rel, row, GetCurrentCommandId(true), 0, NULL);
	dp_entries_one(s->rel, row, InvalidAttrNumber, (DpUpdateIndexes) 0);
	ExecDropSingleTupleTableSlot(row);
}

/* Raises WRONG_OBJECT_TYPE. */
static void
not_slots(Oid table)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_WRONG_OBJECT_TYPE),
		 errmsg("table %s is not one of slots", dp_relation_name(table)),
		 errdetail(
			 "It has the columns of a key, a number and an amount, and all but the last are its primary key.")));
}
