/*
 * explain.c
 *		EXPLAIN of scans of relations of measurements.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "bson/catalog.h"
#include "patterns/bucket/upper.h"
#include DP_EXPLAIN_FORMAT_H
#include DP_EXPLAIN_STATE_H

static void explain_scan(ForeignScanState *node, ExplainState *es);
static const char *mode_name(DpBucketScan *scan);
static void explain_keys(DpBucketScan *scan, bool buckets, const char *label, ExplainState *es);
static void explain_group_filters(DpBucketScan *scan, ExplainState *es);
static char *key_text(DpBucketScan *scan, int i, ExplainState *es);
static void explain_groups(DpBucketScan *scan, ExplainState *es);

/* The callback. */
void
dp_bucket_explain_routine(FdwRoutine *routine)
{
	routine->ExplainForeignScan = explain_scan;
}

/* Shows how buckets are found, and with ANALYZE what was read. */
static void
explain_scan(ForeignScanState *node, ExplainState *es)
{
	DpBucketScan *scan = node->fdw_state;

	if (scan->upper_plan != NIL)
		ExplainPropertyText("Relation", dp_bucket_rel_name(scan->rel), es);
	ExplainPropertyText("Buckets", mode_name(scan), es);
	if (scan->upper_plan != NIL && es->verbose)
		explain_groups(scan, es);
	explain_keys(scan, true, "Bucket Cond", es);
	explain_keys(scan, false, "Header Cond", es);
	explain_group_filters(scan, es);
	if (!es->analyze)
		return;
	if (scan->upper_plan != NIL)
		ExplainPropertyInteger("Buckets Answered From Header", NULL,
							   pg_atomic_read_u64(&scan->counters->summed), es);
	ExplainPropertyInteger("Buckets Read", NULL, pg_atomic_read_u64(&scan->counters->read), es);
	ExplainPropertyInteger("Buckets Skipped", NULL, pg_atomic_read_u64(&scan->counters->skipped),
						   es);
	ExplainPropertyInteger("Waiting Measurements", NULL,
						   pg_atomic_read_u64(&scan->counters->waiting), es);
}

/* Shows how buckets are found. */
static const char *
mode_name(DpBucketScan *scan)
{
	switch (scan->mode)
	{
		case DP_SCAN_ALL:
			return "all";
		case DP_SCAN_INDEX:
			return "by index";
		case DP_SCAN_ORDERED:
			return "by index, in order of time";
		case DP_SCAN_BACKWARD:
			return "by index, from the end";
		case DP_SCAN_TIME:
			return "all groups, in order of time";
		case DP_SCAN_TIME_BACKWARD:
			return "all groups, in order of time, from the end";
		case DP_SCAN_LAST:
			return "by index, the last measurement of each group";
	}
	return "";
}

/* Returns the span by which rows are grouped. */
static void
explain_groups(DpBucketScan *scan, ExplainState *es)
{
	ListCell *lc;
	List *names = NIL;

	foreach(lc, linitial(scan->upper_plan))
	{
		List *group = linitial(lfirst(lc));
		DpBucketColumn *column = scan->rel->by_attnum[lsecond_int(group) - 1];

		names = lappend(names, linitial_int(group) == DP_UPPER_SPAN
								   ? psprintf("spans of %s", column->name)
								   : column->name);
	}
	if (names != NIL)
		ExplainPropertyList("Groups", names, es);
}

/* The keys that the scan evaluates alone, or those that headers are asked with. */
static void
explain_keys(DpBucketScan *scan, bool buckets, const char *label, ExplainState *es)
{
	StringInfoData text;
	int i;

	initStringInfo(&text);
	for (i = 0; i < scan->nkeys; i++)
	{
		DpBucketKey *key = &scan->keys[i];

		if ((key->column->role != DP_BUCKET_VALUE) != buckets)
			continue;
		appendStringInfo(&text, "%s(%s)", text.len > 0 ? " AND " : "", key_text(scan, i, es));
	}
	if (text.len > 0)
		ExplainPropertyText(label, text.data, es);
}

/* The filters that groups are tested with, which call the value of the group "v". */
static void
explain_group_filters(DpBucketScan *scan, ExplainState *es)
{
	ForeignScan *plan = (ForeignScan *) scan->node->ss.ps.plan;
	List *texts = NIL;
	Oid output;
	bool isvarlena;
	ListCell *lc;

	getTypeOutputInfo(dp_types()->bson, &output, &isvarlena);
	foreach(lc, list_nth(plan->fdw_private, DP_PLAN_GROUP_FILTERS))
	{
		List *filter = lfirst(lc);
		DpBucketColumn *column = scan->rel->groups[intVal(linitial(filter))];

		texts = lappend(texts,
						psprintf("v of %s: %s", quote_identifier(column->name),
								 OidOutputFunctionCall(output,
													   lsecond_node(Const, filter)->constvalue)));
	}
	if (texts != NIL)
		ExplainPropertyList("Group Filter", texts, es);
}

/* A key as SQL. */
static char *
key_text(DpBucketScan *scan, int i, ExplainState *es)
{
	static const char *const operators[] = { "", "<", "<=", "=", ">=", ">" };
	DpBucketKey *key = &scan->keys[i];
	ForeignScan *plan = (ForeignScan *) scan->node->ss.ps.plan;
	const char *name = quote_identifier(key->column->name);
	char *value;

	if (key->strategy == DP_KEY_IS_NULL)
		return psprintf("%s IS NULL", name);
	value = deparse_expression(list_nth(plan->fdw_exprs, i),
							   set_deparse_context_plan(es->deparse_cxt, (Plan *) plan, NIL),
							   es->verbose, false);
	if (key->is_array)
		return psprintf("%s = ANY (%s)", name, value);
	return psprintf("%s %s %s", name, operators[key->strategy], value);
}
