/*
 * stage_bucket.c
 *		$bucket and $bucketAuto: groups of ranges of a value.
 *
 * $bucket groups by the lower boundary, which docpatterns._bucket() finds.  $bucketAuto groups by
 * the boundaries that the window function docpatterns._bucket_auto() gives to sorted values.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "bson/compare.h"
#include "mql/pipeline/pipeline.h"
#include "mql/pipeline/window.h"

/* What both stages have */
typedef struct Options
{
	DpOption group_by;
	DpOption buckets; /* or boundaries */
	DpOption other;   /* default, or granularity */
	DpOption output;
} Options;

static void parse_options(DpQuery *q, const DpValue *spec, const DpLocation *location,
						  const char *stage, const char *names, Options *options);
static void check_output(const DpValue *output, const DpLocation *location);
static DpValue totals_of(const DpValue *output, bool always_count);
static const char *row_number(const char *order);
static const char *key_name(const char *alias, const char *column);

void
dp_stage_bucket(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	Options options;
	DpBuilder b;
	DpValue boundaries;
	DpLocation inner;
	DpValue first = { NULL, 0, DP_TYPE_EOD };
	DpValue last = { NULL, 0, DP_TYPE_EOD };
	DpValue totals;
	DpIter iter;
	DpElement e;
	const char *order = NULL;
	const char *key;

	parse_options(q, spec, location, "$bucket", "groupBy boundaries ?default ?output", &options);
	if (options.buckets.value.type != DP_TYPE_ARRAY)
		dp_bad_spec_type(&options.buckets.location, "an array", &options.buckets.value);
	if (dp_array_count(options.buckets.value.data, options.buckets.value.len) < 2)
		dp_bad_spec(&options.buckets.location, "$bucket must have at least two boundaries");
	dp_builder_init(&b, options.buckets.value.len);
	dp_builder_begin_array(&b);
	dp_iter_init_value(&iter, &options.buckets.value);
	for (uint32 i = 0; dp_iter_next(&iter, &e); i++)
	{
		DpValue boundary;

		inner = dp_location_index(&options.buckets.location, i);
		boundary = dp_stage_constant(q, &e.value, &inner);
		if (i == 0)
			first = boundary;
		else
		{
			if (dp_type_class[boundary.type] != dp_type_class[first.type])
				dp_bad_spec(&inner, "boundaries must have the same type, not %s and %s",
							dp_type_name(first.type), dp_type_name(boundary.type));
			if (dp_stage_compare(q, &last, &boundary) >= 0)
				dp_bad_spec(&inner, "boundaries must be in ascending order");
		}
		dp_builder_append_value(&b, NULL, 0, &boundary);
		last = boundary;
	}
	dp_builder_end(&b);
	boundaries = dp_builder_view(&b, DP_TYPE_ARRAY);
	if (dp_option_given(&options.other))
	{
		options.other.value = dp_stage_constant(q, &options.other.value, &options.other.location);
		if (dp_stage_compare(q, &options.other.value, &first) >= 0 &&
			dp_stage_compare(q, &options.other.value, &last) < 0)
			dp_bad_spec(&options.other.location,
						"the default of $bucket must not be between its boundaries");
	}
	totals = totals_of(&options.output.value, false);

	dp_query_before_where(q);
	if (dp_totals_are_ordered(&totals))
		order = dp_query_row_order(q);
	q->order = NULL;
	key = dp_query_nest_with(q, psprintf("%sdocpatterns._bucket(%s, %s, %s%s) AS bucket",
										 order == NULL ? "" : row_number(order),
										 dp_query_eval(q, &options.group_by.value,
													   &options.group_by.location),
										 dp_sql_value(&boundaries),
										 !dp_option_given(&options.other)
											 ? "NULL"
											 : dp_sql_value(&options.other.value),
										 dp_query_and_collation(q)));
	if (order != NULL)
		order = key_name(key, "n");
	q->group = key_name(key, "bucket");
	q->ordered = false;
	dp_query_group(q, q->group, &totals, order);
	q->order = dp_query_key_of(q, q->group);
}

void
dp_stage_bucket_auto(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	Options options;
	DpValue totals;
	int64 buckets;
	const char *granularity = NULL;
	const char *key;
	const char *value;
	const char *more = "";
	const char *order = NULL;
	bool ordered;

	parse_options(q, spec, location, "$bucketAuto", "groupBy buckets ?granularity ?output",
				  &options);
	buckets = dp_stage_number(&options.buckets.value, 1, &options.buckets.location);
	if (buckets > PG_INT32_MAX)
		dp_bad_spec(&options.buckets.location, "$bucketAuto must not have more than %d buckets",
					PG_INT32_MAX);
	if (dp_option_given(&options.other))
	{
		granularity = dp_stage_string(&options.other.value, &options.other.location);
		if (!dp_granularity_exists(granularity))
			dp_bad_spec(&options.other.location, "$bucketAuto has no granularity \"%.100s\"",
						granularity);
	}
	totals = totals_of(&options.output.value, true);

	dp_query_before_where(q);
	ordered = dp_totals_are_ordered(&totals);
	if (ordered)
		order = dp_query_row_order(q);
	q->order = NULL;
	/* a missing value is null; without a fence, documents would be sorted instead of their values
	 */
	key = dp_query_fence(q, psprintf("%scoalesce(%s, 'null'::%s.bson_value) AS value",
									 ordered ? row_number(order) : "",
									 dp_query_eval(q, &options.group_by.value,
												   &options.group_by.location),
									 q->pipeline->own));
	value = key_name(key, "value");
	if (granularity != NULL)
		more = psprintf(", %s::pg_catalog.text", quote_literal_cstr(granularity));
	else if (q->pipeline->collation != NULL)
	{
		value = dp_query_key_of(q, value);
		more = psprintf(", %s", value);
	}
	order = psprintf("%s%s", value, ordered ? psprintf(", %s", key_name(key, "n")) : "");
	if (ordered)
		q->window = psprintf("ORDER BY %s", order);
	key = dp_query_nest_with(q, psprintf("%sdocpatterns._bucket_auto(%s.value, " INT64_FORMAT
										 "%s) OVER %s AS bucket",
										 ordered ? "pg_catalog.row_number() OVER w AS n, " : "",
										 key, buckets, more,
										 ordered ? "w" : psprintf("(ORDER BY %s)", order)));
	q->group = key_name(key, "bucket");
	q->ordered = false;
	dp_query_group(q, q->group, &totals, ordered ? key_name(key, "n") : NULL);
	q->order = q->group;
	if (q->pipeline->collation != NULL)
		q->order = dp_query_key_of(q, psprintf("%s::%s.bson_value", q->group, q->pipeline->own));
}

/* A column that keeps an order; NULL: that in which the rows come. */
static const char *
row_number(const char *order)
{
	return psprintf("pg_catalog.row_number() OVER (%s%s) AS n, ", order == NULL ? "" : "ORDER BY ",
					order == NULL ? "" : order);
}

static const char *
key_name(const char *alias, const char *column)
{
	return psprintf("%s.%s", alias, column);
}

static void
parse_options(DpQuery *q, const DpValue *spec, const DpLocation *location, const char *stage,
			  const char *names, Options *options)
{
	const DpValue *key = &options->group_by.value;

	dp_stage_options(spec, location, stage, names, options);
	if (key->type == DP_TYPE_STRING ? dp_stage_string(key, &options->group_by.location)[0] != '$'
									: key->type != DP_TYPE_DOCUMENT)
		dp_bad_spec(&options->group_by.location, "groupBy of %s must be an expression", stage);
	if (dp_option_given(&options->output))
	{
		check_output(&options->output.value, &options->output.location);
		dp_stage_check_totals(q, &options->output.value, &options->output.location);
	}
}

static void
check_output(const DpValue *output, const DpLocation *location)
{
	DpIter iter;
	DpElement e;

	dp_stage_document(output, location);
	dp_iter_init_value(&iter, output);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(location, &e);

		if (strcmp(e.name, "_id") == 0)
			dp_bad_spec(&inner, "output must not have the field \"_id\"");
	}
}

/* The output, the last one of fields with one name; its default is the number of documents. */
static DpValue
totals_of(const DpValue *output, bool always_count)
{
	DpBuilder b;
	DpIter iter;
	DpElement e;

	dp_builder_init(&b, 64);
	dp_builder_begin_document(&b);
	if (output->type == DP_TYPE_EOD || (always_count && output->len == DP_DOCUMENT_MIN_SIZE))
	{
		dp_builder_begin_document_field(&b, "count", 5);
		dp_builder_append_int32(&b, "$sum", 4, 1);
		dp_builder_end(&b);
	}
	else
	{
		dp_iter_init_value(&iter, output);
		while (dp_iter_next(&iter, &e))
		{
			DpIter rest = iter;
			DpElement later;
			bool again = false;

			while (!again && dp_iter_next(&rest, &later))
				again = later.namelen == e.namelen && memcmp(later.name, e.name, e.namelen) == 0;
			if (!again)
				dp_builder_append_value(&b, e.name, e.namelen, &e.value);
		}
	}
	dp_builder_end(&b);
	return dp_builder_view(&b, DP_TYPE_DOCUMENT);
}
