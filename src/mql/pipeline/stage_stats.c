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
	DpOption given[lengthof(names) + 1];
	int64 scale = 1;
	DpBuilder options;
	DpValue value;

	dp_stage_options(spec, location, "$collStats",
					 "?storageStats ?count ?queryExecStats ?latencyStats", given);
	for (int i = 0; i < lengthof(given); i++)
	{
		const DpLocation *inner = &given[i].location;

		if (given[i].value.type == DP_TYPE_NULL)
			given[i].value.type = DP_TYPE_EOD;
		if (!dp_option_given(&given[i]))
			continue;
		dp_stage_document(&given[i].value, inner);
		if (i == lengthof(names))
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("$collStats cannot show \"latencyStats\""),
							errdetail("At path \"%s\".", dp_location_text(inner)),
							errhint("Use the extension pg_stat_statements.")));
		if (i == 0)
			scale = read_scale(&given[i].value, inner);
		else if (given[i].value.len != DP_DOCUMENT_MIN_SIZE)
			dp_bad_spec(inner, "\"%s\" has no options", names[i]);
	}
	dp_builder_init(&options, spec->len);
	dp_builder_begin_document(&options);
	for (int i = 0; i < lengthof(names); i++)
		if (dp_option_given(&given[i]))
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
	int64 scale;
	DpOption given;

	dp_stage_options(spec, location, "\"storageStats\"", "?scale", &given);
	if (!dp_option_given(&given) || given.value.type == DP_TYPE_NULL)
		return 1;
	scale = Min(dp_stage_clamp(&given.value, &given.location), PG_INT32_MAX);
	if (scale < 1)
		dp_bad_spec(&given.location, "scale must be a number of at least 1");
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
