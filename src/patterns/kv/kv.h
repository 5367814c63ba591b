/*
 * kv.h
 *		Key-value structures: hashes, sets and sorted sets in ordinary tables.
 *
 * A space is a schema with five tables of exactly these columns:
 *
 *		keys	key, type ('hash', 'set', 'zset'), expires_at,
 *				kept_by (the table of a leaderboard),
 *				zset (a number, of sorted sets)						(key)
 *		hashes	key, field, value									(key, field)
 *		sets	key, member											(key, member)
 *		scores	key, member, score									(key, member);
 *				index (key, score, member)
 *		counts	zset, level, score, member, shard, amount			(all but amount)
 *
 * key and field are text with the collation "C"; values, members and scores are
 * bson_values.  A key exists while its type's table has a row of it and it has not
 * expired.  A row in keys alone is not a key: concurrent transactions that remove
 * the last members may leave it.
 *
 * Locks (lock.c).  Writing to a key locks it shared until the transaction ends;
 * removing it, changing its type or changing the blocks in counts locks it
 * exclusively.  Under the shared lock, rows of members are written in the order of
 * members, and writing counts never waits.  So a transaction of one command waits
 * for rows of members only after its key lock, and in one order.
 *
 * Rows are written without a statement: triggers on these tables (guards) do not
 * fire.  Writes read the latest state; at REPEATABLE READ and above, overwriting a
 * row that the snapshot does not show is a serialization failure.
 */
#ifndef DP_PATTERNS_KV_KV_H
#define DP_PATTERNS_KV_KV_H

#include "utils/acl.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

#include "bson/reader.h"
#include "kit/rows/table.h"

typedef enum DpKvTable
{
	KV_KEYS,
	KV_HASHES,
	KV_SETS,
	KV_SCORES,
	KV_COUNTS
} DpKvTable;

#define KV_TABLES 5

/* Columns. The first is the key, in counts the sorted set. */
#define KV_KEY 1
#define KV_KEYS_TYPE 2
#define KV_KEYS_EXPIRES 3
#define KV_KEYS_KEPT 4
#define KV_KEYS_ZSET 5
#define KV_HASHES_FIELD 2
#define KV_HASHES_VALUE 3
#define KV_SETS_MEMBER 2
#define KV_SCORES_MEMBER 2
#define KV_SCORES_SCORE 3
#define KV_COUNTS_LEVEL 2
#define KV_COUNTS_SCORE 3
#define KV_COUNTS_MEMBER 4
#define KV_COUNTS_SHARD 5
#define KV_COUNTS_AMOUNT 6

/* A space, cached by the backend until a relation changes. */
typedef struct DpKvSpace
{
	char name[NAMEDATALEN]; /* key of the cache */
	Oid schema;
	uint64 generation;
	Oid tables[KV_TABLES];
	Oid order; /* the index of scores on (key, score, member) */
} DpKvSpace;

/* An open table of a space */
typedef struct DpKvRel
{
	DpTable table;  /* rel is NULL until it is open; the scan is kept when it is not in use */
	Relation order; /* of scores; NULL if not open */
	IndexScanDesc order_scan;
} DpKvRel;

/* A command in progress */
typedef struct DpKvCall
{
	DpKvSpace *space;
	MemoryContext context; /* the caller's, for memory that lasts until the command ends */
	Datum key;             /* text; 0 for commands of several keys until one is set */
	bool writes;
	bool exclusive;       /* key is locked exclusively */
	bool wants_exclusive; /* command needs an exclusive lock */
	int64 zset;           /* of the key, if it is a sorted set; set when its row in keys is read */
	Oid keeper;           /* the table whose trigger writes, else InvalidOid */
	TimestampTz now;      /* the present time, for expiry */
	Snapshot snapshot;    /* reads: the statement's; writes: the latest, see dp_kv_refresh() */
	DpKvRel rels[KV_TABLES];
} DpKvCall;

/* store.c */

/*
 * Begins a command on a key of a space (key 0: none yet) with these privileges on one of its
 * tables. Errors: UNDEFINED_SCHEMA; WRONG_OBJECT_TYPE for a schema that is not a space;
 * INSUFFICIENT_PRIVILEGE; FEATURE_NOT_SUPPORTED under row-level security; NULL_VALUE_NOT_ALLOWED
 * from the second form.
 */
extern void dp_kv_begin(DpKvCall *call, text *space, text *key, DpKvTable table, AclMode rights);
extern void
dp_kv_begin_args(DpKvCall *call, FunctionCallInfo fcinfo, DpKvTable table, AclMode rights);
extern void dp_kv_end(DpKvCall *call);

/* Requires the same privileges on another table. */
extern void dp_kv_rights(DpKvCall *call, DpKvTable table, AclMode rights);

/* Makes later reads show what this command has written and others have committed. */
extern void dp_kv_refresh(DpKvCall *call);

extern DpKvRel *dp_kv_rel(DpKvCall *call, DpKvTable table);

/* A scan of an index: by equality of its first columns and by bounds of (score, member) */
typedef struct DpKvScan
{
	DpKvRel *r;
	Relation index;
	IndexScanDesc desc;
	IndexScanDesc *kept; /* the pool for reuse after the scan */
	int nkeys;
	ScanKeyData keys[4];
	ScanKeyData rows[2][2];
	int nrows;
	Buffer vmbuffer;
} DpKvScan;

extern void
dp_kv_scan(DpKvScan *scan, DpKvCall *call, DpKvTable table, bool order, Snapshot snapshot);
extern void dp_kv_scan_int2(DpKvScan *scan, int column, int16 value);

/*
 * Bounds of a scan: (score, member) before, up to, from or after these, which must stay in memory;
 * column is the index's column of the score.
 */
extern void
dp_kv_scan_bound(DpKvScan *scan, int column, StrategyNumber strategy, Datum score, Datum member);

/* Reads the next row into r->table.row; the other only returns whether there is one, which is
 * cheaper. */
extern bool dp_kv_scan_next(DpKvScan *scan, ScanDirection direction);
extern bool dp_kv_scan_count(DpKvScan *scan);
extern void dp_kv_scan_end(DpKvScan *scan);

/* Returns a column of r->table.row, never null but for KV_KEYS_EXPIRES. */
extern Datum dp_kv_column(DpKvRel *r, int column);

/*
 * Reads the row of that key and, except in keys, second column. Writing commands raise as
 * dp_kv_update() does.
 */
extern bool dp_kv_find(DpKvCall *call, DpKvTable table, Datum second, Snapshot snapshot);

/* Inserts a row unless its primary key exists; waits for a concurrent insert. */
extern bool
dp_kv_insert_unless(DpKvCall *call, DpKvTable table, const Datum *values, const bool *nulls);

/* Inserts a row that cannot exist yet. */
extern void dp_kv_insert(DpKvCall *call, DpKvTable table, const Datum *values, const bool *nulls);

/*
 * Changes a column of r->table.row, or deletes it. Returns false if it has changed since it was
 * read (or, without wait, is locked): repeat after dp_kv_refresh(). Raises
 * T_R_SERIALIZATION_FAILURE if the transaction's snapshot does not show the row.
 */
extern bool
dp_kv_update(DpKvCall *call, DpKvTable table, int column, Datum value, bool isnull, bool wait);
extern bool dp_kv_delete(DpKvCall *call, DpKvTable table, bool wait);

/* Raises T_R_SERIALIZATION_FAILURE. */
extern void dp_kv_lost(void) pg_attribute_noreturn();

/* lock.c */

/*
 * Locks call->key. Returns false if wait is false and it would wait. Sets *taken (may be NULL) if
 * the lock was not held before.
 */
extern bool dp_kv_lock(DpKvCall *call, bool exclusive, bool wait, bool *taken);

/* Releases the shared lock that was just taken. */
extern void dp_kv_unlock_shared(DpKvCall *call);

/* Announces that so many keys will be locked exclusively. */
extern void dp_kv_lock_many(int n);

/*
 * Returns whether this transaction has neither written nor locked anything, so that it may wait
 * for any lock.
 */
extern bool dp_kv_lock_free(void);

/* key.c */

/*
 * For commands that read a key: returns whether it exists. Raises WRONG_OBJECT_TYPE if its type is
 * not that of table.
 */
extern bool dp_kv_key_read(DpKvCall *call, DpKvTable table);

/* Returns the table of a key's type, KV_KEYS if the key does not exist. */
extern DpKvTable dp_kv_key_type(DpKvCall *call, Snapshot snapshot);

/*
 * For commands that write a key: locks it, removes it if it has expired, and creates it if create
 * is true. Returns whether it exists.
 */
extern bool dp_kv_key_write(DpKvCall *call, DpKvTable table, bool create);

/* Removes only the members of a sorted set that is locked exclusively. */
extern void dp_kv_zset_clear(DpKvCall *call);

/* Called after members were removed: removes a key without members, unless it is locked. */
extern void dp_kv_key_emptied(DpKvCall *call, DpKvTable table);

/* Locks the key exclusively and removes it, of any type. */
extern void dp_kv_key_take(DpKvCall *call);
extern void dp_kv_key_clear(DpKvCall *call);

/* Arguments of type text[] or "any" */
extern int dp_kv_texts(FunctionCallInfo fcinfo, int argno, Datum **values);
extern int dp_kv_values(FunctionCallInfo fcinfo, int first, Datum **values);

/* Compare texts by their bytes; read an SQL value as a text that can be a field. */
extern int dp_kv_text_compare(Datum a, Datum b);
extern Datum dp_kv_field(Datum value, Oid type);

/* Reads an SQL value as a bson_value that can be a member. */
extern struct varlena *dp_kv_member(Datum value, Oid type);

/* set.c */

/* Return the number of rows of a key; a column of them as a set. */
extern int64 dp_kv_count_rows(DpKvCall *call, DpKvTable table);
extern Datum dp_kv_list_rows(FunctionCallInfo fcinfo, DpKvTable table, int column);

/* count.c */

/* Defines the setting docpatterns.kv_block_size: the maximal number of members in a block. */
extern void dp_kv_init(void);

/* The lowest (score, member). */
extern Datum dp_kv_lowest(void);

/* Creates the first block of a new sorted set. */
extern void dp_kv_count_create(DpKvCall *call);

/*
 * Counts a member that was added (+1), removed (-1) or moved; either position may be 0. Never
 * waits. The command's writes are visible afterwards. n > 1: so many of one block were removed,
 * the first one is given.
 */
extern void
dp_kv_count_move(DpKvCall *call, Datum from_score, Datum to_score, Datum member, int64 n);

/*
 * Called before a sorted set is locked for writing, and after: divides its blocks if they are far
 * too large.
 */
extern void dp_kv_count_prepare(DpKvCall *call);
extern void dp_kv_count_divide(DpKvCall *call);

/*
 * Return the number of members before (score, member), the number of all members, and the nth
 * member's block: its lower bound and the members before it.
 */
extern int64 dp_kv_count_before(DpKvCall *call, Datum score, Datum member, Snapshot snapshot);
extern int64 dp_kv_count_all(DpKvCall *call, Snapshot snapshot);
extern int64
dp_kv_count_seek(DpKvCall *call, int64 rank, Snapshot snapshot, Datum *score, Datum *member);

/* Advances a position to where the next block begins. Returns false if it is in the last one. */
extern bool dp_kv_count_next(DpKvCall *call, Datum *score, Datum *member, Snapshot snapshot);

/* Creates the blocks of a sorted set, locked exclusively, again from its members. */
extern int64 dp_kv_count_rebuild(DpKvCall *call);

/* sorted.c */

typedef enum DpKvAddFlags
{
	KV_ADD_NX = 1,
	KV_ADD_XX = 2,
	KV_ADD_GT = 4,
	KV_ADD_LT = 8,
	KV_ADD_CH = 16,
	KV_ADD_INCR = 32
} DpKvAddFlags;

/*
 * Sets (or increments) the score of a member. *result is its score then, NULL if a condition
 * prevented the write. Returns whether the member is new; *changed is whether it was written. The
 * sorted set exists and is locked.
 */
extern bool dp_kv_zset_add(DpKvCall *call, struct varlena *member, const DpValue *score, int flags,
						   struct varlena **result, bool *changed);

/* Removes a member. Returns whether it existed. */
extern bool dp_kv_zset_remove(DpKvCall *call, Datum member);

/*
 * Reads a score from an SQL value; with exclusive not NULL, a text may begin with "(", as bounds
 * do.
 */
extern struct varlena *dp_kv_score(Datum value, Oid type, bool *exclusive);

/* A stored score as the numeric that functions return. */
extern Datum dp_kv_score_number(Datum score);

#endif /* DP_PATTERNS_KV_KV_H */
