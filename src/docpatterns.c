/*
 * docpatterns.c
 *		The loadable module: its magic block, its settings, and the hooks that connect rooms
 *		which must not include each other.
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/guc.h"

#include "dp.h"
#include "bson/cast.h"
#include "bson/limits.h"
#include "kit/declaration.h"
#include "kit/registry.h"
#include "kit/split.h"
#include "kit/statement.h"
#include "mql/collection_split.h"
#include "patterns/approximation/approximation.h"
#include "patterns/kv/kv.h"
#include "patterns/versioning/versioning.h"
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

/* Defines the settings and fills hooks. Runs once per backend, when the library is loaded. */
void
_PG_init(void)
{
	dp_append_treepath = dp_builder_append_treepath;
	dp_split_hook = dp_split_of_relation;
	dp_patterns = patterns;
	dp_limits_init();
	dp_declaration_init();
	dp_statement_init();
	dp_versioning_init();

	DefineCustomIntVariable("docpatterns.approximation_seed",
							"Makes what approximation_add() draws in this session repeatable.",
							"With 0 nobody can foresee it.", &dp_approximation_seed, 0, 0, INT_MAX,
							PGC_USERSET, 0, NULL, dp_approximation_seed_assign, NULL);

	DefineCustomIntVariable("docpatterns.kv_block_size",
							"The most members of a sorted set that are counted together.",
							"Blocks that have more are divided when they are written to.",
							&dp_kv_block_size, 2048, DP_KV_BLOCK_SIZE_MIN, DP_KV_BLOCK_SIZE_MAX,
							PGC_USERSET, 0, NULL, NULL, NULL);

	MarkGUCPrefixReserved("docpatterns");
}
