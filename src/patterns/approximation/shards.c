/*
 * shards.c
 *		Exact counters whose writers do not wait for each other.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/xact.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/reader.h"
#include "kit/declaration.h"
#include "kit/rows/table.h"
#include "patterns/approximation/shards.h"

/* An open table of shards */
typedef struct Shards
{
	DpTable table;
	int nkeys; /* columns of the key, without the shard's number */
	AttrNumber amount;
} Shards;

static void shards_open(Shards *s, Oid table, LOCKMODE lock);
static DpValue shards_amount(Shards *s);
static bool shards_try(Shards *s, const DpValue *amount);
static void shards_insert(Shards *s, const Datum *key, const DpValue *amount);

void
dp_shards_add(Oid table, const Datum *key, const DpValue *amount, int tries, DpShardsHold hold,
			  void *arg)
{
	Shards s;
	SnapshotData dirty;
	int64 start = (int64) (pg_prng_uint64(&pg_global_prng_state) >> 1);
	bool done = false;
	int pass;

	shards_open(&s, table, RowExclusiveLock);
	InitDirtySnapshot(dirty);

	/* from a random number to the end, then from the first, so that writers spread */
	for (pass = 0; pass < 2 && !done && tries > 0; pass++)
	{
		dp_table_seek(&s.table, &dirty, key, s.nkeys);
		dp_table_bound(&s.table, pass == 0 ? BTGreaterEqualStrategyNumber : BTLessStrategyNumber,
					   pass == 0 ? F_INT8GE : F_INT8LT, Int64GetDatum(start));
		for (; !done && tries > 0 && dp_table_next(&s.table, ForwardScanDirection); tries--)
		{
			/* else another transaction is writing or has inserted it */
			if (!TransactionIdIsValid(dirty.xmin) && !TransactionIdIsValid(dirty.xmax))
				done = shards_try(&s, amount);
		}
	}

	if (!done)
	{
		if (hold != NULL)
			hold(arg);
		shards_insert(&s, key, amount);
	}
	dp_table_close(&s.table);

	/* the same transaction may add again */
	CommandCounterIncrement();
}

int64
dp_shards_sum(Oid table, const Datum *key, Snapshot snapshot, DpAmount *sum)
{
	Shards s;
	int64 n = 0;

	shards_open(&s, table, AccessShareLock);
	dp_table_seek(&s.table, snapshot, key, s.nkeys);
	while (dp_table_next(&s.table, ForwardScanDirection))
	{
		DpValue amount = shards_amount(&s);

		dp_amount_add(sum, &amount);
		n++;
	}
	dp_table_close(&s.table);
	return n;
}

int64
dp_shards_take(Oid table, const Datum *key, bool wait, DpAmount *sum)
{
	Shards s;
	Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
	int64 n = 0;

	shards_open(&s, table, RowExclusiveLock);
	dp_table_seek(&s.table, snapshot, key, s.nkeys);
	while (dp_table_next(&s.table, ForwardScanDirection))
	{
		TM_Result result;
		DpValue amount;

		if (!dp_table_lock(&s.table, wait ? LockWaitBlock : LockWaitSkip))
			continue;
		amount = shards_amount(&s);
		dp_amount_add(sum, &amount);
		result = dp_table_delete(&s.table, &s.table.row->tts_tid, true);
		if (result != TM_Ok)
			elog(ERROR, "could not delete a locked shard: %d", result);
		n++;
	}
	dp_table_close(&s.table);
	UnregisterSnapshot(snapshot);
	CommandCounterIncrement();
	return n;
}

void
dp_shards_put(Oid table, const Datum *key, const DpValue *amount)
{
	Shards s;

	shards_open(&s, table, RowExclusiveLock);
	shards_insert(&s, key, amount);
	dp_table_close(&s.table);
	CommandCounterIncrement();
}

static void
shards_open(Shards *s, Oid table, LOCKMODE lock)
{
	dp_table_open(&s->table, table, lock);
	s->nkeys = IndexRelationGetNumberOfKeyAttributes(dp_table_key(&s->table)) - 1;
	s->amount = get_attnum(table, "amount");
}

/* Returns the amount of the found shard. Raises DATA_CORRUPTED if it is not a number. */
static DpValue
shards_amount(Shards *s)
{
	bool isnull;
	Datum datum = slot_getattr(s->table.row, s->amount, &isnull);
	DpValue amount;

	if (!isnull)
	{
		amount = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(datum));
		if (dp_type_is_number(amount.type))
			return amount;
	}
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("a shard in table \"%s\" is not a number",
						   dp_relation_name(RelationGetRelid(s->table.rel)))));
}

/*
 * Adds to the found shard, unless it is locked or has changed since it was read.
 */
static bool
shards_try(Shards *s, const DpValue *amount)
{
	DpValue old = shards_amount(s);
	DpAmount sum;

	dp_amount_set(&sum, &old);
	dp_amount_add(&sum, amount);
	dp_table_copy(&s->table)->tts_values[s->amount - 1] =
		PointerGetDatum(dp_value_to_varlena(&sum.value));
	return dp_table_update(&s->table, &s->table.row->tts_tid, s->amount, false) == TM_Ok;
}

/* Inserts a shard with a new number. */
static void
shards_insert(Shards *s, const Datum *key, const DpValue *amount)
{
	const int2vector *columns = &dp_table_key(&s->table)->rd_index->indkey;
	TupleTableSlot *row = dp_table_blank(&s->table);
	int i;

	for (i = 0; i <= s->nkeys; i++)
	{
		AttrNumber column = columns->values[i];

		row->tts_values[column - 1] =
			i < s->nkeys ? key[i]
						 : Int64GetDatum((int64) (pg_prng_uint64(&pg_global_prng_state) >> 1));
		row->tts_isnull[column - 1] = false;
	}
	row->tts_values[s->amount - 1] = PointerGetDatum(dp_value_to_varlena(amount));
	row->tts_isnull[s->amount - 1] = false;
	dp_table_insert(&s->table);
}
