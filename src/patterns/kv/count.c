/*
 * count.c
 *		Counts the members of a sorted set before a position without reading all.
 *
 * The members of a set, in the order of (score, member), are divided into blocks;
 * a block reaches from its bound up to the next block's, and the first bound is
 * the lowest possible value.  The table counts has a row for each block, at level
 * 1, with the number of its members.  Blocks are grouped into nodes of level 2,
 * these into level 3, and so on.  A node's bound is that of its first child.  So
 * the position of a member is the sum of a few rows of each level and of the
 * members before it in its own block.
 *
 * The count of a node is the sum of one or more rows, its shards: an addition uses
 * an unlocked one and creates one if all are locked (with a random negative
 * number), so that writers never wait here.  A node's first shard has the number
 * 0, or 1 if there is a level above.  At REPEATABLE READ and above a transaction
 * creates its own shard, which its snapshot shows, unlike additions of others.
 *
 * Bounds change only while the set is locked exclusively.  A command that finds a
 * block too large divides it if it gets that lock without waiting.  If a block has
 * grown far too large because the lock was never free, the session's next command
 * waits for the lock before it does anything else, so nothing can wait for it.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "bson/compare.h"
#include "kit/declaration.h"
#include "patterns/kv/kv.h"

/*
 * docpatterns.kv_block_size and values derived from it; read when blocks are divided, so it may
 * change at any time
 */
static int block_size = 2048;

#define BLOCK_MAX block_size         /* members of a block */
#define BLOCK_PIECE (block_size / 2) /* of those that it is divided into */
#define BLOCK_URGENT (block_size * 2)
#define BLOCK_SMALL (block_size / 8)
#define GROUP_MAX Max(8, block_size / 16) /* children of a node */
#define GROUP_PIECE (GROUP_MAX / 2)
#define TOP_MAX Max(8, block_size / 2) /* nodes of the highest level */
#define SHARDS_MAX 16                  /* rows of a node before they are added up */

/* The number of a node's first shard */
#define SHARD_TOP 0
#define SHARD_BELOW 1

/* Columns of the indexes of counts and of scores where bounds begin */
#define COUNTS_BOUND 3
#define SCORES_BOUND 2

/* The node of a level to which a position belongs */
typedef struct CountNode
{
	TupleTableSlot *row; /* one of its shards */
	bool found;
	bool above;  /* there is a level above */
	Datum score; /* the bound, copied */
	Datum member;
	int rows;     /* shards that were read */
	int64 amount; /* of the shard that was added to */
	int hint;     /* its number, or -1 */
} CountNode;

/* A node with the sum of its shards */
typedef struct KvBlock
{
	bool found;
	Datum score;
	Datum member;
	int64 amount;
	int rows;
} KvBlock;

/* The sorted set that the session could not lock to divide its blocks */
static struct
{
	bool set;
	Oid schema;
	uint32 key;
} urgent;

/*
 * A bound that the session has found.  A scan of the index reads a page at once, and the entries
 * before a position up to such a bound are few.  The bound need not exist any more.
 *
 * A transaction that adds to a node often would read all versions that it has made of its row.  It
 * remembers the last one and a position up to which the node reaches.  Bounds are changed by others
 * only where the transaction has written nothing, and by itself with another row.
 */
typedef struct Hint
{
	struct varlena *score;
	struct varlena *member;
	FullTransactionId xid; /* that has written the row */
	ItemPointerData tid;
	struct varlena *upto_score; /* or NULL */
	struct varlena *upto_member;
} Hint;

/* Those of a level */
typedef struct Hints
{
	Oid relid;
	int64 zset;
	int level;
	int n;
	MemoryContext context; /* of values */
	Hint bounds[512];
} Hints;

static Hints *hints[16];

static Hints *hints_of(DpKvCall *call, int level);
static int hints_until(const Hints *h, Datum score, Datum member);
static int hints_add(Hints *h, int at, Datum score, Datum member);
static int position_compare(struct varlena *score, struct varlena *member, Datum other_score,
							Datum other_member);
static bool
hint_find(DpKvCall *call, CountNode *node, int level, Hint *hint, Datum score, Datum member);
static void
hint_written(DpKvCall *call, const CountNode *node, int level, Datum score, Datum member);
static void node_find(DpKvCall *call, CountNode *node, int level, Datum score, Datum member);
static void
node_add(DpKvCall *call, CountNode *node, int level, Datum score, Datum member, int64 delta);
static bool shard_add(DpKvCall *call, CountNode *node, int64 delta);
static void node_end(CountNode *node);
static void
insert_count(DpKvCall *call, int level, Datum score, Datum member, int64 shard, int64 amount);
static KvBlock node_read(DpKvCall *call, int level, StrategyNumber strategy, Datum score,
						 Datum member, Snapshot snapshot);
static void node_remove(DpKvCall *call, int level, const KvBlock *node);
static int top_level(DpKvCall *call, Snapshot snapshot);
static bool
children_exceed(DpKvCall *call, int level, const KvBlock *from, const KvBlock *until, int most);
static void divide(DpKvCall *call, int level, Datum score, Datum member, bool create);
static void divide_above(DpKvCall *call, int level, Datum score, Datum member);
static void mark_below(DpKvCall *call, int level);
static void shrink(DpKvCall *call, Datum score, Datum member);
static void bound_remove(DpKvCall *call, Datum score, Datum member);
static bool upgrade(DpKvCall *call);

void
dp_kv_init(void)
{
	DefineCustomIntVariable("docpatterns.kv_block_size",
							"The most members of a sorted set that are counted together.",
							"Blocks that have more are divided when they are written to.",
							&block_size, 2048, 16, 65536, PGC_USERSET, 0, NULL, NULL, NULL);
}

/* MinKey as a bson_value */
Datum
dp_kv_lowest(void)
{
	static union
	{
		char bytes[VARHDRSZ + 1];
		int32 align;
	} lowest;

	SET_VARSIZE(lowest.bytes, VARHDRSZ + 1);
	lowest.bytes[VARHDRSZ] = (char) DP_TYPE_MINKEY;
	return PointerGetDatum(lowest.bytes);
}

static inline bool
same_bytes(Datum a, Datum b)
{
	return dp_same_bytes(DatumGetPointer(a), DatumGetPointer(b));
}

/* Returns whether the row belongs to that node. */
static inline bool
is_of(DpKvRel *r, Datum score, Datum member)
{
	return same_bytes(score, dp_kv_column(r, KV_COUNTS_SCORE)) &&
		   same_bytes(member, dp_kv_column(r, KV_COUNTS_MEMBER));
}

static inline bool
is_lowest(Datum value)
{
	return VARSIZE_ANY_EXHDR(value) == 1 && *(uint8 *) VARDATA_ANY(value) == DP_TYPE_MINKEY;
}

static inline uint32
key_hash(DpKvCall *call)
{
	return hash_bytes((unsigned char *) VARDATA_ANY(call->key), VARSIZE_ANY_EXHDR(call->key));
}

/* Adding */

void
dp_kv_count_create(DpKvCall *call)
{
	insert_count(call, 1, dp_kv_lowest(), dp_kv_lowest(), SHARD_TOP, 0);
}

/* Adds on each level up to the one where both positions belong to one node. */
void
dp_kv_count_move(DpKvCall *call, Datum from_score, Datum to_score, Datum member, int64 n)
{
	DpKvRel *r = dp_kv_rel(call, KV_COUNTS);
	TupleTableSlot *row = r->table.row;
	bool large = false;
	bool small = false;
	bool urgently = false;
	int level;

	for (level = 1;; level++)
	{
		CountNode from = { .found = false };
		CountNode to = { .found = false };
		bool last;

		CHECK_FOR_INTERRUPTS();
		if (from_score != 0)
			node_find(call, &from, level, from_score, member);
		if (to_score != 0 && (from_score == 0 || from.found))
			node_find(call, &to, level, to_score, member);
		last = !from.above && !to.above;
		if (from.found && to.found && same_bytes(from.score, to.score) &&
			same_bytes(from.member, to.member))
			last = true;
		else
		{
			if (from.found)
				node_add(call, &from, level, from_score, member, -n);
			if (to.found)
				node_add(call, &to, level, to_score, member, n);
			if (level == 1)
			{
				large = to.found && (to.amount > BLOCK_MAX || to.rows > SHARDS_MAX);
				urgently = to.found && to.amount > BLOCK_URGENT;
				small = from.found && from.amount <= BLOCK_SMALL &&
						(n > 1 || from.amount % Max(1, BLOCK_SMALL / 4) == 0);
			}
			else
				large = large || (to.found && to.rows > SHARDS_MAX);
		}
		node_end(&from);
		node_end(&to);
		r->table.row = row;
		if (last)
			break;
	}

	/* blocks are divided when all writes are visible */
	dp_kv_refresh(call);
	if (IsolationUsesXactSnapshot())
		return;
	if (large)
	{
		if (upgrade(call))
			divide(call, 1, to_score, member, false);
		else if (urgently)
		{
			urgent.set = true;
			urgent.schema = call->space->schema;
			urgent.key = key_hash(call);
		}
	}
	if (small && upgrade(call))
		shrink(call, from_score, member);
}

/*
 * Finds the node of a level. Bounds do not change under the set's lock, so the command's snapshot
 * shows them. (A dirty snapshot could miss all shards of a node if they are written during the
 * scan.)
 */
static void
node_find(DpKvCall *call, CountNode *node, int level, Datum score, Datum member)
{
	DpKvRel *r = dp_kv_rel(call, KV_COUNTS);
	Hints *h = hints_of(call, level);
	int at = hints_until(h, score, member);
	DpKvScan scan;

	if (IsolationUsesXactSnapshot())
	{
		KvBlock now =
			node_read(call, level, BTLessEqualStrategyNumber, score, member, call->snapshot);
		KvBlock seen = node_read(call, level, BTLessEqualStrategyNumber, score, member,
								 GetTransactionSnapshot());

		if (now.found != seen.found || (now.found && (!same_bytes(now.score, seen.score) ||
													  !same_bytes(now.member, seen.member))))
			dp_kv_lost();
	}
	node->row = table_slot_create(r->table.rel, NULL);
	r->table.row = node->row;
	node->found = at > 0 && hint_find(call, node, level, &h->bounds[at - 1], score, member);
	while (!node->found)
	{
		dp_kv_scan(&scan, call, KV_COUNTS, false, call->snapshot);
		dp_kv_scan_int2(&scan, KV_COUNTS_LEVEL, level);
		if (at > 0)
			dp_kv_scan_bound(&scan, COUNTS_BOUND, BTGreaterEqualStrategyNumber,
							 PointerGetDatum(h->bounds[at - 1].score),
							 PointerGetDatum(h->bounds[at - 1].member));
		dp_kv_scan_bound(&scan, COUNTS_BOUND, BTLessEqualStrategyNumber, score, member);
		node->found = dp_kv_scan_next(&scan, BackwardScanDirection);
		dp_kv_scan_end(&scan);
		if (!node->found && at == 0)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED), errmsg("a sorted set has no blocks"),
					 errhint("Count its members with pattern_repair(%s).",
							 quote_literal_cstr(dp_relation_name(call->space->tables[KV_KEYS])))));
		if (!node->found)
		{
			/* blocks were merged */
			h->relid = InvalidOid;
			h = hints_of(call, level);
			at = 0;
		}
	}
	node->score = datumCopy(dp_kv_column(r, KV_COUNTS_SCORE), false, -1);
	node->member = datumCopy(dp_kv_column(r, KV_COUNTS_MEMBER), false, -1);
	node->above = DatumGetInt64(dp_kv_column(r, KV_COUNTS_SHARD)) == SHARD_BELOW;
	node->hint = hints_add(h, at, node->score, node->member);
}

/* Those of a level of the call's set; none if they were of another one. */
static Hints *
hints_of(DpKvCall *call, int level)
{
	Oid relid = call->space->tables[KV_COUNTS];
	Hints **slot = &hints[murmurhash32((uint32) call->zset + relid * 31 + level) % lengthof(hints)];
	Hints *h = *slot;

	if (h == NULL)
	{
		h = MemoryContextAllocZero(TopMemoryContext, sizeof(Hints));
		h->context = AllocSetContextCreate(TopMemoryContext, "docpatterns bounds of blocks",
										   ALLOCSET_SMALL_SIZES);
		*slot = h;
	}
	if (h->relid != relid || h->zset != call->zset || h->level != level)
	{
		if (h->n > 0)
			MemoryContextReset(h->context);
		h->relid = relid;
		h->zset = call->zset;
		h->level = level;
		h->n = 0;
	}
	return h;
}

static int
position_compare(struct varlena *score, struct varlena *member, Datum other_score,
				 Datum other_member)
{
	DpValue v = dp_value_of_varlena(score);
	DpValue other = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(other_score));
	int cmp = dp_value_compare(&v, &other);

	if (cmp != 0)
		return cmp;
	v = dp_value_of_varlena(member);
	other = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(other_member));
	return dp_value_compare(&v, &other);
}

/* Returns how many of them are not after a position. */
static int
hints_until(const Hints *h, Datum score, Datum member)
{
	int low = 0;
	int high = h->n;

	while (low < high)
	{
		int middle = low + (high - low) / 2;
		const Hint *hint = &h->bounds[middle];

		if (position_compare(hint->score, hint->member, score, member) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the number of a bound that is to be after so many others, or -1 if there is no room. */
static int
hints_add(Hints *h, int at, Datum score, Datum member)
{
	MemoryContext old;
	Hint *hint;

	if (at > 0 && dp_same_bytes(h->bounds[at - 1].score, DatumGetPointer(score)) &&
		dp_same_bytes(h->bounds[at - 1].member, DatumGetPointer(member)))
		return at - 1;
	if (h->n == lengthof(h->bounds))
		return -1;
	hint = &h->bounds[at];
	memmove(hint + 1, hint, (h->n - at) * sizeof(Hint));
	memset(hint, 0, sizeof(Hint));
	old = MemoryContextSwitchTo(h->context);
	hint->score = PG_DETOAST_DATUM_COPY(score);
	hint->member = PG_DETOAST_DATUM_COPY(member);
	MemoryContextSwitchTo(old);
	h->n++;
	return at;
}

/* Finds the row of a node that the transaction has written last, if it knows that it is right. */
static bool
hint_find(DpKvCall *call, CountNode *node, int level, Hint *hint, Datum score, Datum member)
{
	DpKvRel *r = dp_kv_rel(call, KV_COUNTS);
	bool isnull;

	if (hint->upto_score == NULL || IsolationUsesXactSnapshot() ||
		!FullTransactionIdEquals(hint->xid, GetTopFullTransactionIdIfAny()) ||
		position_compare(hint->upto_score, hint->upto_member, score, member) < 0)
		return false;

	/* the write may have been rolled back, and the table truncated */
	return ItemPointerGetBlockNumber(&hint->tid) < RelationGetNumberOfBlocks(r->table.rel) &&
		   table_tuple_fetch_row_version(r->table.rel, &hint->tid, call->snapshot, node->row) &&
		   TransactionIdIsCurrentTransactionId(DatumGetTransactionId(
			   slot_getsysattr(node->row, MinTransactionIdAttributeNumber, &isnull))) &&
		   DatumGetInt64(dp_kv_column(r, KV_KEY)) == call->zset &&
		   DatumGetInt16(dp_kv_column(r, KV_COUNTS_LEVEL)) == level &&
		   DatumGetInt64(dp_kv_column(r, KV_COUNTS_SHARD)) >= 0 &&
		   is_of(r, PointerGetDatum(hint->score), PointerGetDatum(hint->member));
}

/* Forgets the row of a node that will be divided. */
static void
hint_forget(DpKvCall *call, int level, const KvBlock *node)
{
	Hints *h = hints_of(call, level);
	int at = hints_until(h, node->score, node->member);

	if (at > 0)
		h->bounds[at - 1].xid = InvalidFullTransactionId;
}

/* Remembers the row of a node that was just written for a position. */
static void
hint_written(DpKvCall *call, const CountNode *node, int level, Datum score, Datum member)
{
	DpKvRel *r = dp_kv_rel(call, KV_COUNTS);
	Hints *h = hints_of(call, level);
	FullTransactionId xid = GetTopFullTransactionIdIfAny();
	Hint *hint;

	if (node->hint < 0 || node->hint >= h->n || DatumGetInt64(dp_kv_column(r, KV_COUNTS_SHARD)) < 0)
		return;
	hint = &h->bounds[node->hint];
	if (!dp_same_bytes(hint->score, DatumGetPointer(node->score)) ||
		!dp_same_bytes(hint->member, DatumGetPointer(node->member)))
		return;
	if (hint->upto_score == NULL || !FullTransactionIdEquals(hint->xid, xid) ||
		!ItemPointerEquals(&hint->tid, &node->row->tts_tid) ||
		position_compare(hint->upto_score, hint->upto_member, score, member) < 0)
	{
		MemoryContext old = MemoryContextSwitchTo(h->context);
		struct varlena *upto_score = PG_DETOAST_DATUM_COPY(score);
		struct varlena *upto_member = PG_DETOAST_DATUM_COPY(member);

		MemoryContextSwitchTo(old);
		if (hint->upto_score != NULL)
		{
			pfree(hint->upto_score);
			pfree(hint->upto_member);
		}
		hint->upto_score = upto_score;
		hint->upto_member = upto_member;
	}
	hint->xid = xid;
	hint->tid = r->table.written->tts_tid;
}

/* Adds to the shard that was found for a position, to another unlocked one, or to a new one. */
static void
node_add(DpKvCall *call, CountNode *node, int level, Datum score, Datum member, int64 delta)
{
	DpKvRel *r = dp_kv_rel(call, KV_COUNTS);
	bool done = false;
	SnapshotData dirty;
	DpKvScan scan;

	r->table.row = node->row;
	if (!IsolationUsesXactSnapshot())
	{
		if (shard_add(call, node, delta))
		{
			hint_written(call, node, level, score, member);
			return;
		}
		InitDirtySnapshot(dirty);
		dp_kv_scan(&scan, call, KV_COUNTS, false, &dirty);
		dp_kv_scan_int2(&scan, KV_COUNTS_LEVEL, level);
		dp_kv_scan_bound(&scan, COUNTS_BOUND, BTGreaterEqualStrategyNumber, node->score,
						 node->member);
		dp_kv_scan_bound(&scan, COUNTS_BOUND, BTLessEqualStrategyNumber, node->score, node->member);
		while (!done && dp_kv_scan_next(&scan, ForwardScanDirection))
		{
			node->rows++;

			/* another transaction is writing it or has just inserted it */
			if (!TransactionIdIsValid(dirty.xmin) && !TransactionIdIsValid(dirty.xmax))
				done = shard_add(call, node, delta);
		}
		dp_kv_scan_end(&scan);
		if (done)
			return;
	}
	node->amount = delta;
	insert_count(call, level, node->score, node->member,
				 -1 - (int64) (pg_prng_uint64(&pg_global_prng_state) >> 1), delta);
}

/* Adds to the shard in node->row unless it is locked or has changed since it was read. */
static bool
shard_add(DpKvCall *call, CountNode *node, int64 delta)
{
	node->amount =
		DatumGetInt64(dp_kv_column(dp_kv_rel(call, KV_COUNTS), KV_COUNTS_AMOUNT)) + delta;
	return dp_kv_update(call, KV_COUNTS, KV_COUNTS_AMOUNT, Int64GetDatum(node->amount), false,
						false);
}

static void
node_end(CountNode *node)
{
	if (node->row == NULL)
		return;
	ExecDropSingleTupleTableSlot(node->row);
	if (node->found)
	{
		pfree(DatumGetPointer(node->score));
		pfree(DatumGetPointer(node->member));
	}
}

/* Inserts a row of counts. */
static void
insert_count(DpKvCall *call, int level, Datum score, Datum member, int64 shard, int64 amount)
{
	Datum values[KV_COUNTS_AMOUNT];

	values[KV_KEY - 1] = Int64GetDatum(call->zset);
	values[KV_COUNTS_LEVEL - 1] = Int16GetDatum(level);
	values[KV_COUNTS_SCORE - 1] = score;
	values[KV_COUNTS_MEMBER - 1] = member;
	values[KV_COUNTS_SHARD - 1] = Int64GetDatum(shard);
	values[KV_COUNTS_AMOUNT - 1] = Int64GetDatum(amount);
	dp_kv_insert(call, KV_COUNTS, values, NULL);
}

/* Reading */

int64
dp_kv_count_before(DpKvCall *call, Datum score, Datum member, Snapshot snapshot)
{
	int level = top_level(call, snapshot);
	Datum bound_score = dp_kv_lowest();
	Datum bound_member = dp_kv_lowest();
	int64 before = 0;
	DpKvScan scan;

	for (; level > 0; level--)
	{
		Datum from_score = bound_score;
		Datum from_member = bound_member;
		int64 pending = 0;

		dp_kv_scan(&scan, call, KV_COUNTS, false, snapshot);
		dp_kv_scan_int2(&scan, KV_COUNTS_LEVEL, level);
		dp_kv_scan_bound(&scan, COUNTS_BOUND, BTGreaterEqualStrategyNumber, from_score,
						 from_member);
		dp_kv_scan_bound(&scan, COUNTS_BOUND, BTLessEqualStrategyNumber, score, member);
		while (dp_kv_scan_next(&scan, ForwardScanDirection))
		{
			if (!is_of(scan.r, bound_score, bound_member))
			{
				before += pending;
				pending = 0;
				bound_score = datumCopy(dp_kv_column(scan.r, KV_COUNTS_SCORE), false, -1);
				bound_member = datumCopy(dp_kv_column(scan.r, KV_COUNTS_MEMBER), false, -1);
			}
			pending += DatumGetInt64(dp_kv_column(scan.r, KV_COUNTS_AMOUNT));
		}
		dp_kv_scan_end(&scan);
	}

	dp_kv_scan(&scan, call, KV_SCORES, true, snapshot);
	dp_kv_scan_bound(&scan, SCORES_BOUND, BTGreaterEqualStrategyNumber, bound_score, bound_member);
	dp_kv_scan_bound(&scan, SCORES_BOUND, BTLessStrategyNumber, score, member);
	while (dp_kv_scan_count(&scan))
		before++;
	dp_kv_scan_end(&scan);
	return before;
}

int64
dp_kv_count_all(DpKvCall *call, Snapshot snapshot)
{
	int level = top_level(call, snapshot);
	int64 all = 0;
	DpKvScan scan;

	dp_kv_scan(&scan, call, KV_COUNTS, false, snapshot);
	dp_kv_scan_int2(&scan, KV_COUNTS_LEVEL, level);
	while (dp_kv_scan_next(&scan, ForwardScanDirection))
		all += DatumGetInt64(dp_kv_column(scan.r, KV_COUNTS_AMOUNT));
	dp_kv_scan_end(&scan);
	return all;
}

int64
dp_kv_count_seek(DpKvCall *call, int64 rank, Snapshot snapshot, Datum *score, Datum *member)
{
	int level = top_level(call, snapshot);
	int64 before = 0;

	*score = dp_kv_lowest();
	*member = dp_kv_lowest();
	for (; level > 0; level--)
	{
		Datum from_score = *score;
		Datum from_member = *member;
		int64 pending = 0;
		DpKvScan scan;

		dp_kv_scan(&scan, call, KV_COUNTS, false, snapshot);
		dp_kv_scan_int2(&scan, KV_COUNTS_LEVEL, level);
		dp_kv_scan_bound(&scan, COUNTS_BOUND, BTGreaterEqualStrategyNumber, from_score,
						 from_member);
		while (dp_kv_scan_next(&scan, ForwardScanDirection))
		{
			if (!is_of(scan.r, *score, *member))
			{
				if (before + pending > rank)
					break;
				before += pending;
				pending = 0;
				*score = datumCopy(dp_kv_column(scan.r, KV_COUNTS_SCORE), false, -1);
				*member = datumCopy(dp_kv_column(scan.r, KV_COUNTS_MEMBER), false, -1);
			}
			pending += DatumGetInt64(dp_kv_column(scan.r, KV_COUNTS_AMOUNT));
		}
		dp_kv_scan_end(&scan);
	}
	return before;
}

bool
dp_kv_count_next(DpKvCall *call, Datum *score, Datum *member, Snapshot snapshot)
{
	KvBlock next = node_read(call, 1, BTGreaterStrategyNumber, *score, *member, snapshot);

	*score = next.score;
	*member = next.member;
	return next.found;
}

/* Returns the highest level of a set, 0 without blocks. */
static int
top_level(DpKvCall *call, Snapshot snapshot)
{
	DpKvScan scan;
	int level = 0;

	dp_kv_scan(&scan, call, KV_COUNTS, false, snapshot);
	if (dp_kv_scan_next(&scan, BackwardScanDirection))
		level = DatumGetInt16(dp_kv_column(scan.r, KV_COUNTS_LEVEL));
	dp_kv_scan_end(&scan);
	return level;
}

/* Finds a node: the last one up to (or before) a position, or the first one after it. */
static KvBlock
node_read(DpKvCall *call, int level, StrategyNumber strategy, Datum score, Datum member,
		  Snapshot snapshot)
{
	ScanDirection direction =
		strategy == BTLessEqualStrategyNumber || strategy == BTLessStrategyNumber
			? BackwardScanDirection
			: ForwardScanDirection;
	KvBlock node = { .found = false };
	DpKvScan scan;

	dp_kv_scan(&scan, call, KV_COUNTS, false, snapshot);
	dp_kv_scan_int2(&scan, KV_COUNTS_LEVEL, level);
	dp_kv_scan_bound(&scan, COUNTS_BOUND, strategy, score, member);
	while (dp_kv_scan_next(&scan, direction))
	{
		if (!node.found)
		{
			node.found = true;
			node.score = datumCopy(dp_kv_column(scan.r, KV_COUNTS_SCORE), false, -1);
			node.member = datumCopy(dp_kv_column(scan.r, KV_COUNTS_MEMBER), false, -1);
		}
		else if (!is_of(scan.r, node.score, node.member))
			break;
		node.amount += DatumGetInt64(dp_kv_column(scan.r, KV_COUNTS_AMOUNT));
		node.rows++;
	}
	dp_kv_scan_end(&scan);
	return node;
}

/*
 * Whether more nodes of a level than that are between two bounds.  Counting reads all of them, with
 * the versions that the transaction has made of each, so it is done now and then: a level may get a
 * few nodes more.
 */
static bool
children_exceed(DpKvCall *call, int level, const KvBlock *from, const KvBlock *until, int most)
{
	Datum score = (Datum) 0;
	Datum member = (Datum) 0;
	int n = 0;
	DpKvScan scan;

	if (pg_prng_uint64_range(&pg_global_prng_state, 1, Max(1, most / 16)) > 1)
		return false;
	dp_kv_scan(&scan, call, KV_COUNTS, false, call->snapshot);
	dp_kv_scan_int2(&scan, KV_COUNTS_LEVEL, level);
	dp_kv_scan_bound(&scan, COUNTS_BOUND, BTGreaterEqualStrategyNumber, from->score, from->member);
	if (until->found)
		dp_kv_scan_bound(&scan, COUNTS_BOUND, BTLessStrategyNumber, until->score, until->member);
	while (dp_kv_scan_next(&scan, ForwardScanDirection))
	{
		if (n > 0 && is_of(scan.r, score, member))
			continue;
		score = datumCopy(dp_kv_column(scan.r, KV_COUNTS_SCORE), false, -1);
		member = datumCopy(dp_kv_column(scan.r, KV_COUNTS_MEMBER), false, -1);
		n++;
	}
	dp_kv_scan_end(&scan);
	return n > most;
}

/* Changing bounds: the set is locked exclusively */

/* Takes the exclusive lock if that does not wait, and refreshes the snapshot. */
static bool
upgrade(DpKvCall *call)
{
	if (!call->exclusive)
	{
		if (!dp_kv_lock(call, true, false, NULL))
			return false;
		dp_kv_refresh(call);
	}
	return true;
}

void
dp_kv_count_prepare(DpKvCall *call)
{
	if (urgent.set && urgent.schema == call->space->schema && urgent.key == key_hash(call) &&
		dp_kv_lock_free() && !IsolationUsesXactSnapshot())
		call->wants_exclusive = true;
}

void
dp_kv_count_divide(DpKvCall *call)
{
	Datum score = dp_kv_lowest();
	Datum member = dp_kv_lowest();

	if (!urgent.set || !call->exclusive || urgent.schema != call->space->schema ||
		urgent.key != key_hash(call))
		return;
	urgent.set = false;
	for (;;)
	{
		KvBlock node = node_read(call, 1, BTLessEqualStrategyNumber, score, member, call->snapshot);

		if (node.amount > BLOCK_MAX || node.rows > SHARDS_MAX)
			divide(call, 1, score, member, false);
		node = node_read(call, 1, BTGreaterStrategyNumber, score, member, call->snapshot);
		if (!node.found)
			break;
		score = node.score;
		member = node.member;
	}
}

/* A boundary inside the divided node */
typedef struct Piece
{
	Datum score;
	Datum member;
	int64 amount;
	int children;
} Piece;

/* The contents of a node in pieces; the first piece is the rest. */
typedef struct Pieces
{
	Piece *pieces;
	int n;
	int room;
	int most; /* children of one */
} Pieces;

static void
pieces_take(Pieces *p, Datum score, Datum member, int64 amount)
{
	if (p->n == 0 || p->pieces[p->n - 1].children >= p->most)
	{
		if (p->n == p->room)
		{
			p->room = Max(16, p->room * 2);
			p->pieces = p->pieces == NULL ? palloc(sizeof(Piece) * p->room)
										  : repalloc(p->pieces, sizeof(Piece) * p->room);
		}
		p->pieces[p->n].score = datumCopy(score, false, -1);
		p->pieces[p->n].member = datumCopy(member, false, -1);
		p->pieces[p->n].amount = 0;
		p->pieces[p->n++].children = 0;
	}
	p->pieces[p->n - 1].amount += amount;
	p->pieces[p->n - 1].children++;
}

/*
 * Divides the node of a level to which a position belongs if it is too large, and adds its shards
 * up. create: the level does not exist yet.
 */
static void
divide(DpKvCall *call, int level, Datum score, Datum member, bool create)
{
	KvBlock node = { .found = true, .score = dp_kv_lowest(), .member = dp_kv_lowest() };
	KvBlock next = { .found = false };
	Pieces p = { .most = level == 1 ? BLOCK_PIECE : GROUP_PIECE };
	int children = 0;
	int64 rest;
	int64 shard;
	DpKvScan scan;
	int i;

	if (!create)
	{
		node = node_read(call, level, BTLessEqualStrategyNumber, score, member, call->snapshot);
		if (!node.found)
			return;
		next = node_read(call, level, BTGreaterStrategyNumber, node.score, node.member,
						 call->snapshot);
	}

	if (level == 1)
	{
		dp_kv_scan(&scan, call, KV_SCORES, true, call->snapshot);
		dp_kv_scan_bound(&scan, SCORES_BOUND, BTGreaterEqualStrategyNumber, node.score,
						 node.member);
		if (next.found)
			dp_kv_scan_bound(&scan, SCORES_BOUND, BTLessStrategyNumber, next.score, next.member);
		while (dp_kv_scan_next(&scan, ForwardScanDirection))
		{
			pieces_take(&p, dp_kv_column(scan.r, KV_SCORES_SCORE),
						dp_kv_column(scan.r, KV_SCORES_MEMBER), 1);
			children++;
		}
		dp_kv_scan_end(&scan);
	}
	else
	{
		KvBlock child = node_read(call, level - 1, BTGreaterEqualStrategyNumber, node.score,
								  node.member, call->snapshot);

		while (child.found && (!next.found || !same_bytes(child.score, next.score) ||
							   !same_bytes(child.member, next.member)))
		{
			CHECK_FOR_INTERRUPTS();
			pieces_take(&p, child.score, child.member, child.amount);
			if (create)
				node.amount += child.amount;
			children++;
			child = node_read(call, level - 1, BTGreaterStrategyNumber, child.score, child.member,
							  call->snapshot);
		}
	}
	if (children <= (level == 1 ? BLOCK_MAX : GROUP_MAX) && !create)
		p.n = Min(p.n, 1);

	/* a small last piece is merged with the previous one */
	if (p.n > 1 && p.pieces[p.n - 1].children < p.most / 2)
	{
		p.n--;
		p.pieces[p.n - 1].amount += p.pieces[p.n].amount;
	}
	if (p.n <= 1 && node.rows <= 1 && !create)
		return;

	/* the sum of the shards is kept: the first piece is the sum minus the others */
	rest = node.amount;
	shard = !create && top_level(call, call->snapshot) > level ? SHARD_BELOW : SHARD_TOP;
	if (!create)
	{
		node_remove(call, level, &node);
		hint_forget(call, level, &node);
	}
	for (i = 1; i < p.n; i++)
	{
		insert_count(call, level, p.pieces[i].score, p.pieces[i].member, shard, p.pieces[i].amount);
		rest -= p.pieces[i].amount;
	}
	insert_count(call, level, node.score, node.member, shard, rest);
	dp_kv_refresh(call);
	if (create)
		mark_below(call, level - 1);
	if (p.n > 1)
		divide_above(call, level, node.score, node.member);
}

/* Marks the first shards of a level that is no longer the highest one. */
static void
mark_below(DpKvCall *call, int level)
{
	DpKvScan scan;

	dp_kv_scan(&scan, call, KV_COUNTS, false, call->snapshot);
	dp_kv_scan_int2(&scan, KV_COUNTS_LEVEL, level);
	while (dp_kv_scan_next(&scan, ForwardScanDirection))
	{
		if (DatumGetInt64(dp_kv_column(scan.r, KV_COUNTS_SHARD)) == SHARD_TOP &&
			!dp_kv_update(call, KV_COUNTS, KV_COUNTS_SHARD, Int64GetDatum(SHARD_BELOW), false,
						  true))
			dp_kv_lost();
	}
	dp_kv_scan_end(&scan);
	dp_kv_refresh(call);
}

/* Divides nodes above a level that got more nodes, if they are too large. */
static void
divide_above(DpKvCall *call, int level, Datum score, Datum member)
{
	KvBlock parent =
		node_read(call, level + 1, BTLessEqualStrategyNumber, score, member, call->snapshot);
	KvBlock next = { .found = false };

	if (!parent.found)
	{
		KvBlock first = { .found = true, .score = dp_kv_lowest(), .member = dp_kv_lowest() };

		if (children_exceed(call, level, &first, &next, TOP_MAX))
			divide(call, level + 1, first.score, first.member, true);
		return;
	}
	next = node_read(call, level + 1, BTGreaterStrategyNumber, parent.score, parent.member,
					 call->snapshot);
	if (parent.rows > SHARDS_MAX || children_exceed(call, level, &parent, &next, GROUP_MAX))
		divide(call, level + 1, score, member, false);
}

/* Merges a block that became small with a neighbour. */
static void
shrink(DpKvCall *call, Datum score, Datum member)
{
	KvBlock node = node_read(call, 1, BTLessEqualStrategyNumber, score, member, call->snapshot);
	KvBlock other;

	if (!node.found || node.amount > BLOCK_SMALL)
		return;
	other = node_read(call, 1, BTGreaterStrategyNumber, node.score, node.member, call->snapshot);
	if (other.found && node.amount + other.amount <= BLOCK_MAX / 2)
	{
		bound_remove(call, other.score, other.member);
		return;
	}
	if (is_lowest(node.score))
		return;
	other = node_read(call, 1, BTLessStrategyNumber, node.score, node.member, call->snapshot);
	if (other.found && node.amount + other.amount <= BLOCK_MAX / 2)
		bound_remove(call, node.score, node.member);
}

/* Moves the contents after a bound to the previous node, on each level that has the bound. */
static void
bound_remove(DpKvCall *call, Datum score, Datum member)
{
	int level;

	for (level = 1;; level++)
	{
		KvBlock node =
			node_read(call, level, BTLessEqualStrategyNumber, score, member, call->snapshot);
		KvBlock left;

		if (!node.found || !same_bytes(node.score, score) || !same_bytes(node.member, member))
			break;
		left = node_read(call, level, BTLessStrategyNumber, score, member, call->snapshot);
		if (!left.found)
			break;
		node_remove(call, level, &node);
		node_remove(call, level, &left);
		insert_count(call, level, left.score, left.member,
					 top_level(call, call->snapshot) > level ? SHARD_BELOW : SHARD_TOP,
					 left.amount + node.amount);
		dp_kv_refresh(call);
		if (level > 1)
			divide_above(call, level - 1, left.score, left.member);
	}
}

/* Deletes all shards of a node. */
static void
node_remove(DpKvCall *call, int level, const KvBlock *node)
{
	DpKvScan scan;

	dp_kv_scan(&scan, call, KV_COUNTS, false, call->snapshot);
	dp_kv_scan_int2(&scan, KV_COUNTS_LEVEL, level);
	dp_kv_scan_bound(&scan, COUNTS_BOUND, BTGreaterEqualStrategyNumber, node->score, node->member);
	dp_kv_scan_bound(&scan, COUNTS_BOUND, BTLessEqualStrategyNumber, node->score, node->member);
	while (dp_kv_scan_next(&scan, ForwardScanDirection))
	{
		if (!dp_kv_delete(call, KV_COUNTS, true))
			dp_kv_lost();
	}
	dp_kv_scan_end(&scan);
}

int64
dp_kv_count_rebuild(DpKvCall *call)
{
	DpKvScan scan;
	int64 n = 0;

	dp_kv_refresh(call);
	dp_kv_scan(&scan, call, KV_COUNTS, false, call->snapshot);
	while (dp_kv_scan_next(&scan, ForwardScanDirection))
	{
		if (!dp_kv_delete(call, KV_COUNTS, true))
			dp_kv_lost();
	}
	dp_kv_scan_end(&scan);
	dp_kv_scan(&scan, call, KV_SCORES, true, call->snapshot);
	while (dp_kv_scan_count(&scan))
		n++;
	dp_kv_scan_end(&scan);
	insert_count(call, 1, dp_kv_lowest(), dp_kv_lowest(), SHARD_TOP, n);
	dp_kv_refresh(call);
	divide(call, 1, dp_kv_lowest(), dp_kv_lowest(), false);
	return n;
}
