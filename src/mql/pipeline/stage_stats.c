/*
 * stage_stats.c
 *		$collStats and $indexStats, which describe the relation; sql/pipeline.sql computes them.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "utils/lsyscache.h"

#include "mql/pipeline/pipeline.h"

static int64 read_scale(const DpValue *spec, const DpLocation *location);
static void
describe(DpQuery *q, const char *function, const DpValue *options, const DpLocation *location);

/* Options that are null are not given. */
void
dp_stage_coll_stats(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	static const char *const names[] = { "storageStats", "count", "queryExecStats" };
	bool shown[lengthof(names)] = { 0 };
	int64 scale = 1;
	DpBuilder options;
	DpValue value;
	DpIter iter;
	DpElement e;

	dp_stage_document(spec, location);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(location, &e);
		int i = 0;

		while (i < lengthof(names) && strcmp(names[i], e.name) != 0)
			i++;
		if (i == lengthof(names) && strcmp(e.name, "latencyStats") != 0)
			dp_bad_spec(&inner, "$collStats has no option \"%s\"", e.name);
		if (e.value.type == DP_TYPE_NULL)
			continue;
		dp_stage_document(&e.value, &inner);
		if (i == lengthof(names))
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("$collStats cannot show \"latencyStats\""),
							errdetail("At path \"%s\".", dp_location_text(&inner)),
							errhint("Use the extension pg_stat_statements.")));
		shown[i] = true;
		if (i == 0)
			scale = read_scale(&e.value, &inner);
		else if (e.value.len != DP_DOCUMENT_MIN_SIZE)
			dp_bad_spec(&inner, "\"%s\" has no options", e.name);
	}
	dp_builder_init(&options, spec->len);
	dp_builder_begin_document(&options);
	for (int i = 0; i < lengthof(names); i++)
		if (shown[i])
		{
			if (OidIsValid(q->relid) && get_rel_relkind(q->relid) == RELKIND_VIEW)
				ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
								errmsg("\"%s\" is a view", get_rel_name(q->relid)),
								errdetail("At path \"%s\".", dp_location_text(location)),
								errhint("Views store nothing.")));
			dp_builder_append_int64(&options, names[i], strlen(names[i]), scale);
		}
	dp_builder_end(&options);
	value = dp_builder_view(&options, DP_TYPE_DOCUMENT);
	describe(q, "_coll_stats", &value, location);
}

/* What sizes are divided by. */
static int64
read_scale(const DpValue *spec, const DpLocation *location)
{
	int64 scale = 1;
	DpIter iter;
	DpElement e;

	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(location, &e);

		if (strcmp(e.name, "scale") != 0)
			dp_bad_spec(&inner, "\"storageStats\" has no option \"%s\"", e.name);
		if (e.value.type == DP_TYPE_NULL)
			continue;
		scale = Min(dp_stage_clamp(&e.value, &inner), PG_INT32_MAX);
		if (scale < 1)
			dp_bad_spec(&inner, "scale must be a number of at least 1");
	}
	return scale;
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
describe(DpQuery *q, const char *function, const DpValue *options, const DpLocation *location)
{
	if (!OidIsValid(q->relid))
		dp_bad_spec(location, "a relation is needed");
	if (q->pipeline->in_facet)
		dp_bad_spec(location, "statistics cannot be inside of $facet");
	appendStringInfo(&q->from, "docpatterns.%s(%s, %s) AS s (doc)", function,
					 dp_sql_regclass(q->relid), dp_sql_document(options));
	q->doc = "s.doc";
}
