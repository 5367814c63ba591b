/*
 * kv.h
 *		Key-value structures: hashes, sets and sorted sets in ordinary tables.
 *
 * A space is a schema with five tables of these columns and no others:
 *
 *		keys	key, type ('hash', 'set', 'zset'), expires_at,
 *				kept_by (a table whose documents make the board),
 *				board (a number, for sorted sets)					(key)
 *		hashes	key, field, value									(key, field)
 *		sets	key, member											(key, member)
 *		scores	key, member, score									(key, member); index (key,
 *score, member) counts	board, level, score, member, slot, amount			(all but the last)
 *
 * key and field are text with the collation "C", values, members and scores
 * are bson_values.  A key exists while its type's table has a row of it and its
 * time has not come; a row in keys alone, which two who remove the last
 * members at the same time may leave behind, is no key.
 *
 * Locks.  Whoever writes to a key holds it shared until the transaction ends,
 * whoever makes it vanish or change its type, or changes the blocks that counts
 * holds, exclusively (lock.c).  Under the shared lock rows of members are
 * written in the order of members, and counts never wait.  Thus a transaction of one command
 * waits for rows of members only after its lock, in one order.
 *
 * Rows are written here without a statement: triggers on these tables do not
 * fire (guards would refuse).  Everything is read for writing in its latest state;
 * from REPEATABLE READ on a transaction that would write over what it does not
 * see gets a serialization failure.
 */
#ifndef DP_PATTERNS_KV_KV_H
#define DP_PATTERNS_KV_KV_H

#include "access/genam.h"
#include "access/skey.h"
#include "access/tableam.h"
#include "nodes/execnodes.h"
#include "utils/acl.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

#include "bson/reader.h"

typedef enum DpKvTable
{
	KV_KEYS,
	KV_HASHES,
	KV_SETS,
	KV_SCORES,
	KV_COUNTS
} DpKvTable;

#define KV_TABLES 5

/* Columns.  The key is the first of each, but for counts, where the board is. */
#define KV_KEY 1
#define KV_KEYS_TYPE 2
#define KV_KEYS_EXPIRES 3
#define KV_KEYS_KEPT 4
#define KV_KEYS_BOARD 5
#define KV_HASHES_FIELD 2
#define KV_HASHES_VALUE 3
#define KV_SETS_MEMBER 2
#define KV_SCORES_MEMBER 2
#define KV_SCORES_SCORE 3
#define KV_COUNTS_LEVEL 2
#define KV_COUNTS_SCORE 3
#define KV_COUNTS_MEMBER 4
#define KV_COUNTS_SLOT 5
#define KV_COUNTS_AMOUNT 6

/* What a space is; kept with the backend until some relation changes. */
typedef struct DpKvSpace
{
	char name[NAMEDATALEN]; /* key of the cache */
	Oid schema;
	uint64 generation;
	Oid tables[KV_TABLES];
	Oid primary[KV_TABLES];
	Oid order; /* the index of scores on (key, score, member) */
} DpKvSpace;

/* An open table of a space. */
typedef struct DpKvRel
{
	Relation rel;             /* NULL: not open */
	Relation index;           /* its primary key's */
	Relation order;           /* of scores; NULL: not open */
	TupleTableSlot *row;      /* what was found last */
	IndexScanDesc index_scan; /* kept for the next scan; NULL: none, or under way */
	IndexScanDesc order_scan;
	TupleTableSlot *written; /* NULL: nothing was written yet */
	EState *estate;          /* NULL: no entry in an index was made yet */
	ResultRelInfo *info;
	Bitmapset **columns;
	bool speculative; /* info knows how to look for conflicts */
} DpKvRel;

/* A command under way. */
typedef struct DpKvCall
{
	DpKvSpace *space;
	MemoryContext context; /* that of the caller: what stays until the end of the command */
	Datum key;             /* text; 0 for commands of several keys until one is set */
	bool writes;
	bool exclusive;       /* the key is locked exclusively */
	bool wants_exclusive; /* the command needs it */
	int64 board; /* of the key, if that is a sorted set: known when its row in keys has been read */
	Oid keeper;  /* the table whose trigger writes here, else InvalidOid */
	TimestampTz now;   /* by the clock, for expiry */
	Snapshot snapshot; /* reads: the statement's; writes: the latest, see dp_kv_refresh() */
	DpKvRel rels[KV_TABLES];
} DpKvCall;

/*
 * store.c
 * -------------------------------------------------------------------------------------------------------------
 */

/*
 * Begins a command on a key of a space (key 0: on none yet), with these rights
 * on one of its tables.  Errors: UNDEFINED_SCHEMA; WRONG_OBJECT_TYPE for a
 * schema that is no space; INSUFFICIENT_PRIVILEGE; FEATURE_NOT_SUPPORTED under
 * row-level security; NULL_VALUE_NOT_ALLOWED from the second form.
 */
extern void dp_kv_begin(DpKvCall *call, text *space, text *key, DpKvTable table, AclMode rights);
extern void
dp_kv_begin_args(DpKvCall *call, FunctionCallInfo fcinfo, DpKvTable table, AclMode rights);
extern void dp_kv_end(DpKvCall *call);

/* The same rights of another table. */
extern void dp_kv_rights(DpKvCall *call, DpKvTable table, AclMode rights);

/* Reads from here on show what this command has written, and what others have committed. */
extern void dp_kv_refresh(DpKvCall *call);

extern DpKvRel *dp_kv_rel(DpKvCall *call, DpKvTable table);

/* A scan of an index: by equality of its first columns and by bounds of (score, member). */
typedef struct DpKvScan
{
	DpKvRel *r;
	Relation index;
	IndexScanDesc desc;
	IndexScanDesc *kept; /* where it is put when it ends */
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
 * (score, member) is before, up to, from or after these, which have to stay where they are; column
 * is the index's of the score.
 */
extern void
dp_kv_scan_bound(DpKvScan *scan, int column, StrategyNumber strategy, Datum score, Datum member);

/* The next row, in r->row; or only whether there is one, which is cheaper. */
extern bool dp_kv_scan_next(DpKvScan *scan, ScanDirection direction);
extern bool dp_kv_scan_count(DpKvScan *scan);
extern void dp_kv_scan_end(DpKvScan *scan);

/* A column of r->row, which is never null but for KV_KEYS_EXPIRES. */
extern Datum dp_kv_column(DpKvRel *r, int column);

/*
 * The row of that key and, but for keys, second column.  Commands that write raise as
 * dp_kv_update() does.
 */
extern bool dp_kv_find(DpKvCall *call, DpKvTable table, Datum second, Snapshot snapshot);

/* A new row, unless there is one with its primary key; waits for those who are making one. */
extern bool
dp_kv_insert_unless(DpKvCall *call, DpKvTable table, const Datum *values, const bool *nulls);

/* A new row of which it is known that there is none. */
extern void dp_kv_insert(DpKvCall *call, DpKvTable table, const Datum *values, const bool *nulls);

/*
 * Changes a column of r->row, or deletes it.  False: it is no longer as it was
 * read (or, without wait, somebody has it).  Look again, after dp_kv_refresh().
 * Raises T_R_SERIALIZATION_FAILURE where the transaction does not see it.
 */
extern bool
dp_kv_update(DpKvCall *call, DpKvTable table, int column, Datum value, bool isnull, bool wait);
extern bool dp_kv_delete(DpKvCall *call, DpKvTable table, bool wait);

/* Raises T_R_SERIALIZATION_FAILURE. */
extern void dp_kv_lost(void) pg_attribute_noreturn();

/*
 * lock.c
 * --------------------------------------------------------------------------------------------------------------
 */

/*
 * Locks call->key; false if that would mean to wait and wait is false.  *taken (may be NULL): it
 * was not held.
 */
extern bool dp_kv_lock(DpKvCall *call, bool exclusive, bool wait, bool *taken);

/* Gives the shared lock back that was just taken. */
extern void dp_kv_unlock_shared(DpKvCall *call);

/* So many keys are going to be locked exclusively one after the other. */
extern void dp_kv_lock_many(int n);

/*
 * Whether this transaction has neither written nor locked anything: it can wait for whatever it
 * likes.
 */
extern bool dp_kv_lock_free(void);

/*
 * key.c
 * ---------------------------------------------------------------------------------------------------------------
 */

/*
 * For commands that read a key: whether it is there.  Raises WRONG_OBJECT_TYPE
 * if it is of another type.  table says which.
 */
extern bool dp_kv_key_read(DpKvCall *call, DpKvTable table);

/* What a key is: its type's table, or KV_KEYS for none. */
extern DpKvTable dp_kv_key_type(DpKvCall *call, Snapshot snapshot);

/*
 * For those that write: locks it, and makes it if create is true.  What has
 * expired is gone first.  Returns whether it is there.
 */
extern bool dp_kv_key_write(DpKvCall *call, DpKvTable table, bool create);

/* Removes the members of a board that is locked exclusively, and nothing else. */
extern void dp_kv_board_clear(DpKvCall *call);

/* Members were removed: if none are left the key goes, where nobody else is writing to it. */
extern void dp_kv_key_emptied(DpKvCall *call, DpKvTable table);

/* Locks the key exclusively, whatever it is; removes what is there of it. */
extern void dp_kv_key_take(DpKvCall *call);
extern void dp_kv_key_clear(DpKvCall *call);

/* Arguments that come as text[] or as "any" */
extern int dp_kv_texts(FunctionCallInfo fcinfo, int argno, Datum **values);
extern int dp_kv_values(FunctionCallInfo fcinfo, int first, Datum **values);

/* Texts by their bytes; a SQL value as a text that can be a field. */
extern int dp_kv_text_compare(Datum a, Datum b);
extern Datum dp_kv_field(Datum value, Oid type);

/* A SQL value as a bson_value that can be a member. */
extern struct varlena *dp_kv_member(Datum value, Oid type);

/*
 * set.c
 * ---------------------------------------------------------------------------------------------------------------
 */

/* The number of rows of a key; a column of them as the result of a function that returns a set. */
extern int64 dp_kv_count_rows(DpKvCall *call, DpKvTable table);
extern Datum dp_kv_list_rows(FunctionCallInfo fcinfo, DpKvTable table, int column);

/*
 * count.c
 * -------------------------------------------------------------------------------------------------------------
 */

/* Defines the setting docpatterns.kv_block_size: the most members of a block. */
extern void dp_kv_init(void);

/* The lowest (score, member). */
extern Datum dp_kv_lowest(void);

/* The first block of a new board. */
extern void dp_kv_count_create(DpKvCall *call);

/*
 * A member came to (+1), went from (-1) or moved; either position may be 0.
 * Never waits.  The command's writes are visible afterwards.
 */
extern void dp_kv_count_move(DpKvCall *call, Datum from_score, Datum to_score, Datum member);

/* Before a board is locked for writing and after: divides its blocks if that has become urgent. */
extern void dp_kv_count_prepare(DpKvCall *call);
extern void dp_kv_count_settle(DpKvCall *call);

/*
 * Members before (score, member), all of them, and the nth one's block: fills in its lower bound
 * and the members before it.
 */
extern int64 dp_kv_count_before(DpKvCall *call, Datum score, Datum member, Snapshot snapshot);
extern int64 dp_kv_count_all(DpKvCall *call, Snapshot snapshot);
extern int64
dp_kv_count_seek(DpKvCall *call, int64 rank, Snapshot snapshot, Datum *score, Datum *member);

/* Makes the blocks of a board that is locked exclusively anew, from its members. */
extern int64 dp_kv_count_rebuild(DpKvCall *call);

/*
 * sorted.c
 * ------------------------------------------------------------------------------------------------------------
 */

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
 * Gives a member a score (or adds to it).  *result is the score it has then,
 * NULL if a condition kept it from being written.  Returns whether it is new;
 * *changed whether it was written.  The board exists and is locked.
 */
extern bool dp_kv_board_add(DpKvCall *call, struct varlena *member, const DpValue *score, int flags,
							struct varlena **result, bool *changed);

/* Removes a member; whether it was there. */
extern bool dp_kv_board_remove(DpKvCall *call, Datum member);

/* A score out of a SQL value; *exclusive (may be NULL): a text may begin with "(", as bounds do. */
extern struct varlena *dp_kv_score(Datum value, Oid type, bool *exclusive);

#endif /* DP_PATTERNS_KV_KV_H */
