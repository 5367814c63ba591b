/*
 * stage_stats.c
 *		$collStats and $indexStats, which describe the relation; sql/pipeline.sql computes them.
 */
#include "postgres.h"

#include "mql/pipeline/pipeline.h"

static void
describe(DpQuery *q, const char *function, const DpValue *spec, const DpLocation *location);

void
dp_stage_coll_stats(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	static const char *const names[] = { "storageStats", "count", "queryExecStats" };
	DpIter iter;
	DpElement e;

	dp_stage_document(spec, location);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(location, &e);
		bool known = false;

		for (int i = 0; i < lengthof(names); i++)
			known = known || strcmp(names[i], e.name) == 0;
		if (strcmp(e.name, "latencyStats") == 0)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("$collStats cannot show \"latencyStats\""),
							errdetail("At path \"%s\".", dp_location_text(&inner)),
							errhint("Use the extension pg_stat_statements.")));
		if (!known)
			dp_bad_spec(&inner, "$collStats has no option \"%s\"", e.name);
		dp_stage_document(&e.value, &inner);
	}
	describe(q, "_coll_stats", spec, location);
}

void
dp_stage_index_stats(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	dp_stage_document(spec, location);
	if (spec->len != DP_DOCUMENT_MIN_SIZE)
		dp_bad_spec(location, "$indexStats has no options");
	describe(q, "_index_stats", spec, location);
}

static void
describe(DpQuery *q, const char *function, const DpValue *spec, const DpLocation *location)
{
	if (!OidIsValid(q->relid))
		dp_bad_spec(location, "a relation is needed");
	appendStringInfo(&q->from, "docpatterns.%s(%u::pg_catalog.regclass, %s) AS s (doc)", function,
					 q->relid, dp_sql_document(spec));
	q->doc = "s.doc";
}
