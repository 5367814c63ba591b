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

/* An open table of shards */
typedef struct Shards
{
	Relation rel;
	Relation index;
	int nkeys; /* columns of the key, without the shard's number */
	AttrNumber amount;
	TupleTableSlot *row; /* the row that a scan found */
	ScanKeyData keys[INDEX_MAX_KEYS];
} Shards;

static void shards_open(Shards *s, Oid table, const Datum *key, LOCKMODE lock);
static void shards_close(Shards *s);
static IndexScanDesc shards_scan(Shards *s, Snapshot snapshot, int nkeys);
static DpValue shards_amount(Shards *s, TupleTableSlot *row);
static bool shards_try(Shards *s, const DpValue *amount);
static void shards_insert(Shards *s, const Datum *key, const DpValue *amount);
static void not_shards(Oid table) pg_attribute_noreturn();

void
dp_shards_add(Oid table, const Datum *key, const DpValue *amount, int tries, DpShardsHold hold,
			  void *arg)
{
	Shards s;
	SnapshotData dirty;
	int64 start = (int64) (pg_prng_uint64(&pg_global_prng_state) >> 1);
	bool done = false;
	int pass;

	shards_open(&s, table, key, RowExclusiveLock);
	InitDirtySnapshot(dirty);

	/* from a random number to the end, then from the first, so that writers spread */
	for (pass = 0; pass < 2 && !done && tries > 0; pass++)
	{
		IndexScanDesc scan;

		ScanKeyInit(&s.keys[s.nkeys], s.nkeys + 1,
					pass == 0 ? BTGreaterEqualStrategyNumber : BTLessStrategyNumber,
					pass == 0 ? F_INT8GE : F_INT8LT, Int64GetDatum(start));
		scan = shards_scan(&s, &dirty, s.nkeys + 1);
		while (!done && tries > 0 && index_getnext_slot(scan, ForwardScanDirection, s.row))
		{
			/* another transaction is writing or has inserted it */
			if (TransactionIdIsValid(dirty.xmin) || TransactionIdIsValid(dirty.xmax))
			{
				tries--;
				continue;
			}
			done = shards_try(&s, amount);
			tries--;
		}
		index_endscan(scan);
	}

	if (!done)
	{
		if (hold != NULL)
			hold(arg);
		shards_insert(&s, key, amount);
	}
	shards_close(&s);

	/* the same transaction may add again */
	CommandCounterIncrement();
}

int64
dp_shards_sum(Oid table, const Datum *key, Snapshot snapshot, DpAmount *sum)
{
	Shards s;
	IndexScanDesc scan;
	int64 n = 0;

	shards_open(&s, table, key, AccessShareLock);
	scan = shards_scan(&s, snapshot, s.nkeys);
	while (index_getnext_slot(scan, ForwardScanDirection, s.row))
	{
		DpValue amount = shards_amount(&s, s.row);

		dp_amount_add(sum, &amount);
		n++;
	}
	index_endscan(scan);
	shards_close(&s);
	return n;
}

int64
dp_shards_take(Oid table, const Datum *key, bool wait, DpAmount *sum)
{
	Shards s;
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	IndexScanDesc scan;
	TupleTableSlot *locked;
	CommandId cid = GetCurrentCommandId(true);
	int64 n = 0;

	shards_open(&s, table, key, RowExclusiveLock);
	locked = table_slot_create(s.rel, NULL);
	scan = shards_scan(&s, snapshot, s.nkeys);
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
			continue; /* locked or deleted */
		amount = shards_amount(&s, locked);
		dp_amount_add(sum, &amount);
		result = table_tuple_delete(s.rel, &locked->tts_tid, cid, snapshot, InvalidSnapshot, true,
									&failure, false);
		if (result != TM_Ok)
			elog(ERROR, "could not delete a locked shard: %d", result);
		n++;
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(locked);
	shards_close(&s);
	UnregisterSnapshot(snapshot);
	CommandCounterIncrement();
	return n;
}

void
dp_shards_put(Oid table, const Datum *key, const DpValue *amount)
{
	Shards s;

	shards_open(&s, table, key, RowExclusiveLock);
	shards_insert(&s, key, amount);
	shards_close(&s);
	CommandCounterIncrement();
}

/* Opens a table of shards for a key. Checks its columns: a user may create any table. */
static void
shards_open(Shards *s, Oid table, const Datum *key, LOCKMODE lock)
{
	TupleDesc desc;
	int i;

	s->rel = table_open(table, lock);
	desc = RelationGetDescr(s->rel);
	list_free(RelationGetIndexList(s->rel));
	if (s->rel->rd_rel->relkind != RELKIND_RELATION || !OidIsValid(s->rel->rd_pkindex))
		not_shards(table);
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
		not_shards(table);

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

/* Closes it; keeps the locks. */
static void
shards_close(Shards *s)
{
	ExecDropSingleTupleTableSlot(s->row);
	index_close(s->index, NoLock);
	table_close(s->rel, NoLock);
}

/* Starts a scan of the shards of the key. */
static IndexScanDesc
shards_scan(Shards *s, Snapshot snapshot, int nkeys)
{
	IndexScanDesc scan = dp_index_beginscan(s->rel, s->index, snapshot, nkeys);

	index_rescan(scan, s->keys, nkeys, NULL, 0);
	return scan;
}

/* Returns the amount of a shard. Raises DATA_CORRUPTED if it is not a number. */
static DpValue
shards_amount(Shards *s, TupleTableSlot *row)
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
			(errcode(ERRCODE_DATA_CORRUPTED), errmsg("a shard in table %s is not a number",
													 dp_relation_name(RelationGetRelid(s->rel)))));
}

/*
 * Adds to the shard in s->row, unless it is locked or has changed since it was read.
 */
static bool
shards_try(Shards *s, const DpValue *amount)
{
	TupleDesc desc = RelationGetDescr(s->rel);
	TupleTableSlot *row = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	ItemPointerData tid = s->row->tts_tid;
	DpValue old = shards_amount(s, s->row);
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

/* Inserts a shard with a new number. */
static void
shards_insert(Shards *s, const Datum *key, const DpValue *amount)
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
not_shards(Oid table)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_WRONG_OBJECT_TYPE),
		 errmsg("table %s is not a table of shards", dp_relation_name(table)),
		 errdetail(
			 "It must have the columns of a key, a number and an amount, all but the amount being its primary key.")));
}
