/*
 * tenant.h
 *		Tables to which Citus copies rows while it distributes them.
 */
#ifndef DP_KIT_TENANT_H
#define DP_KIT_TENANT_H

#include "dp.h"

/*
 * A trigger was created on a relation: notes, for this transaction, that it is a shard that Citus is
 * still making.
 */
extern void dp_tenant_trigger_created(Oid relid);

/*
 * Raises FEATURE_NOT_SUPPORTED for such a shard: the rows come from a table whose patterns have
 * changed them already.
 */
extern void dp_tenant_require_made(Oid relid);

/* True for a shard that Citus's catalogs do not have yet (in shard.c). */
extern bool dp_shard_is_new(Oid relid);

#endif /* DP_KIT_TENANT_H */
