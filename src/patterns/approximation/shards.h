/*
 * shards.h
 *		Exact counters whose writers do not wait for each other.
 *
 * A counter is the sum of several rows, its shards, in a table with the columns
 *
 *		the key's columns, shard bigint, amount bson_value; PRIMARY KEY (the key's, shard)
 *
 * An addition takes any unlocked shard and creates one if all are locked: it never
 * waits.  The sum of the rows is exact in any snapshot.  Shards have random
 * numbers, so that concurrent inserts do not conflict in the index.
 *
 * Rows are written without a statement: triggers on the table (its guard) do not
 * fire, and the caller has checked privileges.  Writes read the latest state at
 * every isolation level, which is right because additions commute.
 *
 * The pattern must make sure that the key exists: it blocks deletion of the key
 * before a shard is created (see dp_shards_add), and deletion of a key deletes its
 * shards, waiting for transactions that have locked them.
 */
#ifndef DP_PATTERNS_APPROXIMATION_SHARDS_H
#define DP_PATTERNS_APPROXIMATION_SHARDS_H

#include "utils/snapshot.h"

#include "bson/amount.h"

/*
 * Called before a shard is created: the key must exist until the transaction ends, else raises an
 * error.
 */
typedef void (*DpShardsHold)(void *arg);

/*
 * Adds to the counter of a key. Tries at most tries shards before it creates one; hold may be
 * NULL. key has a value for each column of the key, of that column's type. Raises what
 * dp_amount_add() raises.
 */
extern void dp_shards_add(Oid table, const Datum *key, const DpValue *amount, int tries,
						  DpShardsHold hold, void *arg);

/* Adds the shards of a key that the snapshot shows to the sum. Returns their number. */
extern int64 dp_shards_sum(Oid table, const Datum *key, Snapshot snapshot, DpAmount *sum);

/*
 * Deletes shards and adds their amounts to the sum: with wait all of them, else those that are not
 * locked. Returns their number.
 */
extern int64 dp_shards_take(Oid table, const Datum *key, bool wait, DpAmount *sum);

/* Inserts a shard. */
extern void dp_shards_put(Oid table, const Datum *key, const DpValue *amount);

#endif /* DP_PATTERNS_APPROXIMATION_SHARDS_H */
