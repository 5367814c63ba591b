/*
 * shard.h
 *		Tables that Citus distributes.
 *
 * Citus keeps the rows of a distributed table, also of a reference table, in shards: ordinary
 * tables called <table>_<shard ID>, with the same triggers.  The distributed table itself is empty,
 * on every server; only statements reach its rows.  Shards of co-located tables with the same range
 * of hash values belong together, and are on one server.
 */
#ifndef DP_KIT_SHARD_H
#define DP_KIT_SHARD_H

#include "dp.h"

/* True for a distributed table, which has no rows itself; false for its shards. */
extern bool dp_is_distributed(Oid relid);

/* The ID of a shard, or 0 for another relation. */
extern int64 dp_shard_id(Oid relid);

/*
 * True if a pattern of one relation can have the other one as its second table: both are shards
 * that belong together, or neither is a shard.
 */
extern bool dp_shard_pair(Oid relid, Oid other);

/*
 * Raises FEATURE_NOT_SUPPORTED for a distributed table, whose rows are elsewhere: for code that
 * opens tables itself.
 */
extern void dp_refuse_distributed(Oid relid);

#endif /* DP_KIT_SHARD_H */
