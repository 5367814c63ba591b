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

#include "nodes/pg_list.h"

#include "dp.h"

/* True for a distributed table, which has no rows itself; false for its shards. */
extern bool dp_is_distributed(Oid relid);

/* True in a session by which Citus does on this server what another one needs. */
extern bool dp_called_by_citus(void);

/* The ID of a shard, or 0 for another relation; and the table of which it is one, or InvalidOid. */
extern int64 dp_shard_id(Oid relid);
extern Oid dp_shard_table(Oid relid);

/* True for the shard of a table of which each server has all rows. */
extern bool dp_shard_is_copy(Oid relid);

/*
 * The only shard of a distributed table, if it is on this server; InvalidOid for other tables, and
 * if a shard has another name because that of its table is long.
 */
extern Oid dp_shard_here(Oid relid);

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

/* True for a table that is distributed by the hash of a column. */
extern bool dp_is_hashed(Oid relid);

/*
 * Citus refuses triggers on distributed tables.  Allows them until the transaction ends; with them,
 * Citus changes one shard after another.  Does nothing for another table.
 */
extern void dp_allow_triggers(Oid relid);

/* A shard of a distributed table, and SQL: a condition on a row b that sends a query there. */
typedef struct DpShardPart
{
	int64 id;
	char *condition;
} DpShardPart;

/*
 * All shards of a distributed table.  Raises FEATURE_NOT_SUPPORTED if it is distributed by a column
 * of a type of which this knows no values.
 */
extern List *dp_shard_parts(Oid relid);

/*
 * Keep the shard of a key, or all shards, where they are until the transaction ends, for calls that
 * write.  Wait for moves and splits that block writes.
 */
struct DpDecl;
struct DpKey;
extern void dp_shard_lock_key(Oid relid, const struct DpDecl *table, const struct DpKey *key);
extern void dp_shard_lock_all(Oid relid);

/*
 * How a call whose first argument is a distributed table reaches the table's rows.  A table with
 * one shard gets every call there.
 */
typedef enum DpRoute
{
	DP_ROUTE_KEY,  /* in the shard of a row, whose key is an argument */
	DP_ROUTE_ROWS, /* in each shard; the result is all rows of the results */
	DP_ROUTE_SUM,  /* in each shard; the result is the sum of the results, which are bigint */
	DP_ROUTE_WHOLE /* not at all: it needs all rows at once */
} DpRoute;

/*
 * Returns false unless the first argument of the called function is a distributed table; else calls
 * the function in its shards, in the current transaction, and sets *result.  key_argument is the
 * number of the key's argument for DP_ROUTE_KEY.  Raises FEATURE_NOT_SUPPORTED where that is
 * impossible, and the errors of the function.
 */
extern bool dp_route(FunctionCallInfo fcinfo, DpRoute route, int key_argument, Datum *result);

/* Defines a function whose calls are routed: DP_ROUTED_FUNCTION(dp_f, DP_ROUTE_KEY, 1) { .. } */
#define DP_ROUTED_FUNCTION(name, route, key_argument)                                              \
	static Datum name##_here(PG_FUNCTION_ARGS);                                                    \
	DP_FUNCTION(name);                                                                             \
	Datum name(PG_FUNCTION_ARGS)                                                                   \
	{                                                                                              \
		Datum result;                                                                              \
                                                                                                   \
		return dp_route(fcinfo, route, key_argument, &result) ? result : name##_here(fcinfo);      \
	}                                                                                              \
	static Datum name##_here(PG_FUNCTION_ARGS)

#endif /* DP_KIT_SHARD_H */
