/*
 * stage_basic.c
 *		Stages that choose, change and order single documents.
 */
#include "postgres.h"

#include "common/int.h"
#include "miscadmin.h"

#include "mql/collection_calls.h"
#include "mql/filter.h"
#include "mql/pipeline/pipeline.h"
#include "mql/pipeline/row.h"
#include "mql/projection.h"
#include "mql/sort_key.h"
#include "mql/update_tree.h"

static void add_match(DpQuery *q, const DpValue *spec, bool immutable);
static void match_row(DpQuery *q, const DpValue *spec, bool immutable);
static DpStageSpec *divide(const DpQuery *q, const DpValue *spec, bool served);
static bool has_string(const DpValue *v);
static bool is_untouched(DpQuery *q);

/* ---------------------------------------------------------------- choosing */

void
dp_stage_match(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	DpStageSpec *served;
	DpStageSpec *others;

	dp_stage_check_filter(spec, q->let != NULL, location);
	served = divide(q, spec, true);
	others = divide(q, spec, false);
	if (others->spec.len == DP_DOCUMENT_MIN_SIZE || served->spec.len == DP_DOCUMENT_MIN_SIZE)
		add_match(q, spec, others->spec.len == DP_DOCUMENT_MIN_SIZE);
	else
	{
		others->location = *location->up;
		q->rest = lcons(others, q->rest);
		add_match(q, &served->spec, true);
	}
}

void
dp_stage_check_filter(const DpValue *spec, bool let, const DpLocation *location)
{
	dp_stage_document(spec, location);
	(void) dp_filter_compile(spec,
							 DP_FILTER_DOCUMENT | (let ? DP_FILTER_LET : 0) |
								 (dp_filter_is_variable(spec, let) ? 0 : DP_FILTER_IMMUTABLE),
							 location);
}

/* Adds a filter; immutable: as an operator, which indexes serve. */
static void
add_match(DpQuery *q, const DpValue *spec, bool immutable)
{
	if (spec->len == DP_DOCUMENT_MIN_SIZE)
		return;
	if (immutable && is_untouched(q))
	{
		dp_query_read(q, spec, NULL);
		return;
	}
	if (dp_query_is_row(q))
	{
		match_row(q, spec, immutable);
		return;
	}
	dp_query_before_where(q);
	if (immutable)
		dp_query_where(q, psprintf("%s OPERATOR(%s.@@) %s", q->doc, q->pipeline->own,
								   dp_sql_document(spec)));
	else
		dp_query_where(q, psprintf("docpatterns._match(%s, %s, %s)", q->doc, dp_sql_document(spec),
								   dp_query_let(q)));
}

/* Does so for a row, of which only what indexes do not serve needs a document. */
static void
match_row(DpQuery *q, const DpValue *spec, bool immutable)
{
	DpValue none = { dp_empty_document, DP_DOCUMENT_MIN_SIZE, DP_TYPE_DOCUMENT };

	if (!immutable)
		dp_query_where(q, psprintf("docpatterns._match(%s, %s, %s)",
								   dp_row_document(q->row, dp_pipeline_filter_fields(spec)),
								   dp_sql_document(spec), dp_query_let(q)));
	(void) dp_query_read_row(q, immutable ? spec : &none, NULL);
}

/*
 * A stage with the conditions of a filter that operators and indexes serve, or with the others:
 * those that are variable and, with a collation, those that have strings, since indexes compare
 * bytes.
 */
static DpStageSpec *
divide(const DpQuery *q, const DpValue *spec, bool served)
{
	DpStageSpec *s = palloc0(sizeof(DpStageSpec));
	DpBuilder b;
	DpIter iter;
	DpElement e;

	dp_builder_init(&b, spec->len + 32);
	dp_builder_begin_document(&b);
	dp_builder_begin_document_field(&b, "$match", 6);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		bool other = dp_filter_is_variable(&e.value, q->let != NULL) ||
					 (q->pipeline->collation != NULL && has_string(&e.value));

		if (other != served)
			dp_builder_append_value(&b, e.name, e.namelen, &e.value);
	}
	dp_stage_finish(s, &b);
	return s;
}

static bool
has_string(const DpValue *v)
{
	DpIter iter;
	DpElement e;

	check_stack_depth();
	if (!dp_type_is_container(v->type))
		return v->type == DP_TYPE_STRING || v->type == DP_TYPE_SYMBOL;
	dp_iter_init_value(&iter, v);
	while (dp_iter_next(&iter, &e))
		if (has_string(&e.value))
			return true;
	return false;
}

void
dp_stage_limit(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	int64 n = dp_stage_number(spec, 1, location);

	if (!q->limited || n < q->limit)
		q->limit = n;
	q->limited = true;
}

void
dp_stage_skip(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	int64 n = dp_stage_number(spec, 0, location);

	if (pg_add_s64_overflow(q->skip, n, &q->skip))
		q->skip = PG_INT64_MAX;
	if (q->limited)
		q->limit = Max(q->limit - n, 0);
}

void
dp_stage_sample(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	DpOption size;

	dp_stage_options(spec, location, "$sample", "size", &size);
	dp_query_before_where(q);
	q->order = "pg_catalog.random()";
	q->limited = true;
	q->limit = dp_stage_clamp(&size.value, &size.location);
	if (q->limit < 1)
		dp_bad_spec(&size.location, "size of $sample must be a number of at least 1");
}

/* ---------------------------------------------------------------- order */

void
dp_stage_sort(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	dp_stage_document(spec, location);
	if (spec->len == DP_DOCUMENT_MIN_SIZE)
		dp_bad_spec(location, "$sort must have a field");
	(void) dp_sort_spec_compile(spec);
	if (is_untouched(q) && q->pipeline->collation == NULL)
	{
		dp_query_read(q, NULL, spec);
		return;
	}
	if (q->pipeline->collation == NULL && dp_query_read_row(q, NULL, spec))
		return;
	dp_query_before_where(q);
	q->order = dp_query_sort_key(q, spec);
}

/* Whether no stage has come yet that concerns the documents of the relation. */
static bool
is_untouched(DpQuery *q)
{
	return q->from.len == 0 && OidIsValid(q->relid) && q->changes == NIL && !q->limited &&
		   q->skip == 0;
}

/* ---------------------------------------------------------------- documents */

/* $set, $addFields, $unset, $project, $replaceRoot and $replaceWith; spec is the whole stage. */
void
dp_stage_change(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	DpValue *copy = palloc(sizeof(DpValue));
	DpIter iter;
	DpElement e;

	dp_update_stage_check(spec, dp_stage_flags(q), location->up);
	if (dp_query_project_row(q, spec))
		return;
	dp_iter_init_value(&iter, spec);
	if (dp_iter_next(&iter, &e) && strcmp(e.name, "$project") == 0 &&
		e.value.len == DP_DOCUMENT_MIN_SIZE)
		dp_bad_spec(location, "$project must have a field");
	/* otherwise PostgreSQL computes it for rows that are left out */
	if (q->skip > 0 || (q->limited && q->order != NULL))
		dp_query_nest(q);
	*copy = *spec;
	q->changes = lappend(q->changes, copy);
}

void
dp_stage_redact(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	(void) dp_expr_compile(spec, dp_stage_flags(q) | DP_EXPR_REDACT, dp_location_text(location));
	dp_query_before_where(q);
	dp_query_set_doc(q, psprintf("docpatterns._redact(%s, %s, %s)", q->doc, dp_sql_value(spec),
								 dp_query_let(q)));
	dp_query_before_where(q);
	dp_query_where(q, psprintf("%s IS NOT NULL", q->doc));
}

void
dp_stage_unwind(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	const char *path;
	const char *index = NULL;
	bool preserve = false;
	StringInfoData call;

	if (spec->type == DP_TYPE_DOCUMENT)
	{
		struct
		{
			DpOption path, index, preserve;
		} o;

		dp_stage_options(spec, location, "$unwind",
						 "path ?includeArrayIndex ?preserveNullAndEmptyArrays", &o);
		path = dp_stage_path(&o.path.value, &o.path.location);
		if (dp_option_given(&o.index))
		{
			index = dp_stage_string(&o.index.value, &o.index.location);
			dp_stage_check_field(index, &o.index.location);
		}
		if (dp_option_given(&o.preserve) && o.preserve.value.type != DP_TYPE_BOOL)
			dp_bad_spec_type(&o.preserve.location, "true or false", &o.preserve.value);
		preserve = dp_option_given(&o.preserve) && o.preserve.value.data[0] != 0;
	}
	else
		path = dp_stage_path(spec, location);

	/* in the result of a subquery: rows are computed as they are taken */
	dp_query_before_from(q);
	initStringInfo(&call);
	appendStringInfo(&call, "%s.bson_unwind(%s, %s", q->pipeline->own, dp_query_doc(q),
					 dp_stage_sql_path(path));
	if (preserve)
		appendStringInfoString(&call, ", preserve_empty => true");
	if (index != NULL)
		appendStringInfo(&call, ", index_field => %s", dp_stage_sql_path(index));
	appendStringInfoChar(&call, ')');
	dp_query_set_doc(q, call.data);
	dp_query_nest(q);
}
