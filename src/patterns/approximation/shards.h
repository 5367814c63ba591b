/*
 * shards.h
 *		Exact counters whose writers do not wait for each other.
 *
 * A counter is the sum of several rows, its slots, in a table of the columns
 *
 *		the key's columns, slot bigint, amount bson_value; PRIMARY KEY (the key's, slot)
 *
 * Who adds takes any slot that nobody holds, and makes one where all are held:
 * it never waits.  The sum of the rows is exact in any snapshot.  Slots carry
 * random numbers, so that two who make one at the same time do not meet in the
 * index.
 *
 * The rows are written directly, without a statement: triggers on the table do
 * not fire (its guard would refuse), and the caller has checked the rights.
 * Reads for writing see the latest state at every isolation level, which is
 * right because additions commute.
 *
 * A slot that exists keeps nothing but itself from being removed.  That its
 * key exists has to be ensured by the pattern: before a slot is made it holds
 * what would remove the key (see dp_slots_add), and who removes a key then
 * takes away its slots, which waits for those who have them.
 */
#ifndef DP_PATTERNS_APPROXIMATION_SHARDS_H
#define DP_PATTERNS_APPROXIMATION_SHARDS_H

#include "utils/snapshot.h"

#include "bson/amount.h"

/*
 * Called before a slot is made: the key has to exist until the transaction ends, or an error is
 * raised.
 */
typedef void (*DpSlotsHold)(void *arg);

/*
 * Adds to the counter of a key.  At most tries slots are tried before one is
 * made; hold may be NULL.  key has a value for each column of the key, of that
 * column's type.  Raises WRONG_OBJECT_TYPE if the table is none of slots and
 * NUMERIC_VALUE_OUT_OF_RANGE as dp_amount_add().
 */
extern void dp_slots_add(Oid table, const Datum *key, const DpValue *amount, int tries,
						 DpSlotsHold hold, void *arg);

/* Adds the slots of a key that the snapshot shows to the sum; returns how many there are. */
extern int64 dp_slots_sum(Oid table, const Datum *key, Snapshot snapshot, DpAmount *sum);

/*
 * Removes slots and adds what they hold to the sum: with wait all of them,
 * else those that nobody holds.  Returns how many.
 */
extern int64 dp_slots_take(Oid table, const Datum *key, bool wait, DpAmount *sum);

/* Makes a slot. */
extern void dp_slots_put(Oid table, const Datum *key, const DpValue *amount);

#endif /* DP_PATTERNS_APPROXIMATION_SHARDS_H */
