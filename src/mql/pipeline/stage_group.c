/*
 * stage_group.c
 *		Stages that make groups of documents.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "mql/accumulate.h"
#include "mql/expression.h"
#include "mql/collection_split.h"
#include "mql/pipeline/pipeline.h"

/* So many sums are faster by themselves than in one call */
#define FEW_SUMS 4

static void check_id(const DpValue *id, const DpLocation *location);
static char *accumulate(DpQuery *q, const DpValue *totals, const char *order, const char *key);
static bool totals_vary(const DpValue *totals);
static bool next_total(DpIter *fields, DpElement *accumulator);
static bool are_plain(const DpValue *totals);
static bool merges_rows(const DpElement *e);
static char *plain_total(DpQuery *q, const DpValue *field, const char *order);

void
dp_stage_group(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	DpIter iter;
	DpElement e;
	DpBuilder fields;
	DpValue id = { NULL, 0, DP_TYPE_EOD };
	DpValue totals;
	DpLocation id_location;
	const char *order = NULL;
	char *key;

	dp_stage_document(spec, location);
	dp_builder_init(&fields, spec->len);
	dp_builder_begin_document(&fields);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		if (strcmp(e.name, "_id") == 0)
		{
			if (id.type != DP_TYPE_EOD)
				dp_bad_spec(location, "$group has the field \"_id\" twice");
			id = e.value;
			id_location = dp_location_field(location, &e);
			check_id(&id, &id_location);
			continue;
		}
		dp_builder_append_value(&fields, e.name, e.namelen, &e.value);
	}
	dp_builder_end(&fields);
	totals = dp_builder_view(&fields, DP_TYPE_DOCUMENT);
	if (id.type == DP_TYPE_EOD)
		dp_bad_spec(location, "$group must have an expression \"_id\" for its groups");

	dp_stage_check_totals(q, &totals, location);
	dp_stage_check_expression(q, &id, &id_location);
	if (q->pipeline->collation == NULL && dp_query_is_row(q) && dp_query_group_row(q, &id, &totals))
		return;
	dp_query_before_where(q);
	if (dp_totals_are_ordered(&totals) || q->pipeline->collation != NULL)
		order = dp_query_row_order(q);
	q->order = NULL;
	q->ordered = false;
	key = dp_query_eval(q, &id, &id_location);
	if (strstr(key, q->doc) != NULL)
	{
		/* a missing value is in the group of null */
		key = psprintf("coalesce(%s, 'null'::%s.bson_value)", key, q->pipeline->own);
		q->group = dp_query_key_of(q, key);
	}
	else
	{
		q->group = "";
		q->having = "pg_catalog.count(*) OPERATOR(pg_catalog.>) 0";
	}
	dp_query_group(q, key, &totals, order);
}

/* A document that includes fields, as those of $project, is a mistake. */
static void
check_id(const DpValue *id, const DpLocation *location)
{
	DpIter iter;
	DpElement e;

	if (id->type != DP_TYPE_DOCUMENT)
		return;
	dp_iter_init_value(&iter, id);
	while (dp_iter_next(&iter, &e) && e.name[0] != '$')
		if (dp_type_is_number(e.value.type) || e.value.type == DP_TYPE_BOOL)
			dp_bad_spec(location, "field \"%s\" of a group's key must be an expression, not %s",
						e.name, dp_type_name(e.value.type));
}

void
dp_query_group(DpQuery *q, const char *id, const DpValue *totals, const char *order)
{
	StringInfoData doc;
	DpIter iter;
	DpElement e;
	const char *first = id;

	/* of values that are equal by the collation; Citus allows no key beside them */
	if (q->group[0] != '\0' &&
		(strcmp(q->group, id) != 0 || (dp_remote_hook != NULL && dp_remote_hook(q->relid))))
		first = psprintf("docpatterns._join_any(%s%s%s)", id, order == NULL ? "" : " ORDER BY ",
						 order == NULL ? "" : order);
	initStringInfo(&doc);
	appendStringInfo(&doc, "%s.bson_build('_id'::pg_catalog.text, %s", q->pipeline->own, first);
	if (are_plain(totals))
	{
		dp_iter_init_value(&iter, totals);
		while (dp_iter_next(&iter, &e))
			appendStringInfo(&doc, ", %s::pg_catalog.text, %s", quote_literal_cstr(e.name),
							 plain_total(q, &e.value, order));
		appendStringInfoChar(&doc, ')');
	}
	else
		appendStringInfo(&doc, ") OPERATOR(%s.||) %s", q->pipeline->own,
						 accumulate(q, totals, order, totals_vary(totals) ? id : NULL));
	dp_query_set_doc(q, doc.data);
}

/* One of the totals for which SQL has an aggregate. */
static char *
plain_total(DpQuery *q, const DpValue *field, const char *order)
{
	const char *own = q->pipeline->own;
	DpIter fields;
	DpElement e;
	const char *value;

	dp_iter_init_value(&fields, field);
	(void) dp_iter_next(&fields, &e);
	if (dp_total_is_count(&e))
		return "docpatterns._int(pg_catalog.count(*))";
	if (merges_rows(&e))
		return psprintf("%s.bson_merge_agg(%s%s%s)", own, q->doc, order == NULL ? "" : " ORDER BY ",
						order == NULL ? "" : order);
	value = dp_query_eval(q, &e.value, NULL);
	if (strcmp(e.name, "$avg") == 0)
		return psprintf("%s.avg(%s)", own, value);
	return psprintf("coalesce(%s.sum(%s), '0'::%s.bson_value)", own, value, own);
}

/* The accumulator of the next field of totals, which have been checked. */
static bool
next_total(DpIter *fields, DpElement *accumulator)
{
	DpIter iter;
	DpValue field;

	if (!dp_iter_next_value(fields, &field))
		return false;
	dp_iter_init_value(&iter, &field);
	return dp_iter_next(&iter, accumulator);
}

bool
dp_total_is_count(const DpElement *accumulator)
{
	return strcmp(accumulator->name, "$count") == 0 ||
		   (strcmp(accumulator->name, "$sum") == 0 && accumulator->value.type == DP_TYPE_INT32 &&
			dp_get_int32(accumulator->value.data) == 1);
}

/* Whether the documents themselves are merged. */
static bool
merges_rows(const DpElement *e)
{
	return strcmp(e->name, "$mergeObjects") == 0 && e->value.type == DP_TYPE_STRING &&
		   strcmp(DP_STRING_DATA(&e->value), "$$ROOT") == 0;
}

/* Whether SQL has aggregates for all totals, and sums are few: of many one call is faster. */
static bool
are_plain(const DpValue *totals)
{
	DpIter fields;
	DpElement e;
	int sums = 0;

	dp_iter_init_value(&fields, totals);
	while (next_total(&fields, &e))
	{
		if (dp_total_is_count(&e) || merges_rows(&e))
			continue;
		if ((strcmp(e.name, "$sum") != 0 && strcmp(e.name, "$avg") != 0) ||
			e.value.type != DP_TYPE_STRING || DP_STRING_DATA(&e.value)[0] != '$' ||
			++sums > FEW_SUMS)
			return false;
	}
	/* functions have at most 100 arguments */
	return dp_document_count(totals->data, totals->len) < 50;
}

void
dp_stage_check_totals(DpQuery *q, const DpValue *totals, const DpLocation *location)
{
	DpAccumulateOptions options = { .arrival = true,
									.flags = q->let == NULL ? 0 : DP_EXPR_LET,
									.location = location,
									.only_check = true };

	if (totals->len > DP_DOCUMENT_MIN_SIZE)
		(void) dp_accumulators_compile(totals, &options);
}

bool
dp_totals_are_ordered(const DpValue *totals)
{
	static const char *const names[] = { "$first", "$last",         "$firstN",      "$lastN",
										 "$push",  "$mergeObjects", "$concatArrays" };
	DpIter fields;
	DpElement e;

	dp_iter_init_value(&fields, totals);
	while (next_total(&fields, &e))
		for (int i = 0; i < lengthof(names); i++)
			if (strcmp(names[i], e.name) == 0)
				return true;
	return false;
}

char *
dp_query_accumulate(DpQuery *q, const DpValue *totals, const char *order)
{
	return accumulate(q, totals, order, NULL);
}

/* The same with the group's key, if it is needed. */
static char *
accumulate(DpQuery *q, const DpValue *totals, const char *order, const char *key)
{
	bool any = key == NULL && !dp_totals_are_ordered(totals);

	return psprintf("docpatterns._accumulate%s(%s, %s, %s%s%s%s%s)", any ? "_any" : "", q->doc,
					dp_sql_document(totals), dp_query_let(q), key == NULL ? "" : ", ",
					key == NULL ? "" : key, order == NULL ? "" : " ORDER BY ",
					order == NULL ? "" : order);
}

/* Whether an n, or the p of a $percentile, is an expression. */
static bool
totals_vary(const DpValue *totals)
{
	DpIter fields;
	DpElement e;
	DpValue v;

	dp_iter_init_value(&fields, totals);
	while (next_total(&fields, &e))
	{
		if (e.value.type != DP_TYPE_DOCUMENT)
			continue;
		if (e.name[e.namelen - 1] == 'N' &&
			dp_document_find(e.value.data, e.value.len, "n", 1, &v) && !dp_type_is_number(v.type))
			return true;
		if (strcmp(e.name, "$percentile") == 0 &&
			dp_document_find(e.value.data, e.value.len, "p", 1, &v) && v.type != DP_TYPE_ARRAY)
			return true;
	}
	return false;
}

void
dp_stage_count(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	const char *name = dp_stage_string(spec, location);

	if (name[0] == '\0' || name[0] == '$' || strchr(name, '.') != NULL)
		dp_bad_spec(location, "$count must have the name of a field, without dots or dollar signs");
	if (strcmp(name, "_id") == 0)
		dp_bad_spec(location, "$count must have the name of another field than \"_id\"");
	if (!dp_query_is_row(q))
		dp_query_before_where(q);
	q->order = NULL;
	q->group = "";
	q->having = "pg_catalog.count(*) OPERATOR(pg_catalog.>) 0";
	dp_query_set_doc(q, psprintf("%s.bson_build(%s::pg_catalog.text, "
								 "docpatterns._int(pg_catalog.count(*)))",
								 q->pipeline->own, quote_literal_cstr(name)));
}

/* {$group: {_id: spec, count: {$sum: 1}}}, {$sort: {count: -1}} */
void
dp_stage_sort_by_count(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	DpBuilder group;
	DpBuilder sort;
	DpValue value;
	const char *s = (const char *) spec->data + 4;

	if (spec->type == DP_TYPE_STRING ? s[0] != '$' : spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec(location, "$sortByCount must have an expression");
	dp_builder_init(&group, 64 + spec->len);
	dp_builder_begin_document(&group);
	dp_builder_append_value(&group, "_id", 3, spec);
	dp_builder_begin_document_field(&group, "count", 5);
	dp_builder_append_int32(&group, "$sum", 4, 1);
	dp_builder_end(&group);
	dp_builder_end(&group);
	value = dp_builder_view(&group, DP_TYPE_DOCUMENT);
	dp_stage_group(q, &value, location);

	dp_builder_init(&sort, 32);
	dp_builder_begin_document(&sort);
	dp_builder_append_int32(&sort, "count", 5, -1);
	dp_builder_end(&sort);
	value = dp_builder_view(&sort, DP_TYPE_DOCUMENT);
	dp_stage_sort(q, &value, location);
}
