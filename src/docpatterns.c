/*
 * docpatterns.c
 *		The loadable module: its magic block, and the hooks that connect folders which must not
 *		include each other.
 */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/guc.h"

#include "dp.h"
#include "bson/cast.h"
#include "bson/limits.h"
#include "index/field_index.h"
#include "index/stats/field_stats.h"
#include "index/text_condition.h"
#include "kit/declaration.h"
#include "kit/registry.h"
#include "kit/seen.h"
#include "kit/shard.h"
#include "kit/split.h"
#include "kit/statement.h"
#include "kit/worker.h"
#include "mql/collection_split.h"
#include "types/tree/treepath.h"

PG_MODULE_MAGIC;

#define DP_PATTERN(name) extern const DpPattern dp_##name##_pattern;
#include "patterns/patterns.h"
#undef DP_PATTERN

#define DP_PATTERN(name) &dp_##name##_pattern,
static const DpPattern *const patterns[] = {
#include "patterns/patterns.h"
	NULL
};

PGDLLEXPORT void _PG_init(void);

/*
 * Defines the settings and fills hooks. Runs once per backend, when the library is loaded, or in
 * the postmaster (shared_preload_libraries), where nothing may look at the catalogs.
 */
void
_PG_init(void)
{
	dp_append_treepath = dp_builder_append_treepath;
	dp_split_hook = dp_split_of_relation;
	dp_seen_hook = dp_seen_of_table;
	dp_make_way_hook = dp_make_way;
	dp_remote_hook = dp_is_distributed;
	dp_patterns = patterns;
	dp_limits_init();
	dp_text_conditions_init();
	dp_field_indexes_init();
	dp_field_stats_init();
	dp_declaration_init();
	dp_statement_init();
	dp_worker_init();
	for (const DpPattern *const *p = dp_patterns; *p != NULL; p++)
		if ((*p)->init != NULL)
			(*p)->init();
	MarkGUCPrefixReserved("docpatterns");
}
