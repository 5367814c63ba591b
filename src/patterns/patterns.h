/*
 * patterns.h
 *		A line for each pattern: docpatterns.c registers its dp_<name>_pattern (kit/registry.h).
 *
 * Patterns are called in this order.  It matters in two places: changes reach roll-ups before
 * fan-outs and fan-outs before query tables, and a change feed reads the rows of a new partition
 * before a history writes revision numbers into them.
 */
DP_PATTERN(approximation)
DP_PATTERN(attribute)
DP_PATTERN(bucket)
DP_PATTERN(change_feed)
DP_PATTERN(computed)
DP_PATTERN(rollup)
DP_PATTERN(fanout)
DP_PATTERN(kv)
DP_PATTERN(outlier)
DP_PATTERN(payload)
DP_PATTERN(polymorphic_merge)
DP_PATTERN(polymorphic)
DP_PATTERN(polymorphic_variant)
DP_PATTERN(preallocated)
DP_PATTERN(query_table)
DP_PATTERN(reference)
DP_PATTERN(relationship)
DP_PATTERN(schema_versioning)
DP_PATTERN(single_collection)
DP_PATTERN(single_table)
DP_PATTERN(subset_fields)
DP_PATTERN(subset)
DP_PATTERN(tree)
DP_PATTERN(tree_attach)
DP_PATTERN(ttl)
DP_PATTERN(versioning)
DP_PATTERN(kv_leaderboard)
