/*
 * query.c
 *		The query of a pipeline, which its stages put together.
 *
 * SQL has a fixed order of clauses: conditions, groups, order, limit, result.  A stage whose clause
 * comes before one that is already there needs a subquery.  An expression that is needed twice is
 * computed in a subquery that the planner does not flatten (OFFSET 0).
 *
 * The planner copies a subquery at each level around it.  After MOST_LEVELS levels the next one is
 *a WITH query, so that time and memory grow with the number of stages and not with its square.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "mql/collection_calls.h"
#include "mql/pipeline/pipeline.h"
#include "mql/pipeline/row.h"

#define MOST_LEVELS 50

static void append_select(StringInfo sql, DpQuery *q, const char *extra, bool fence);
static void append_clauses(StringInfo sql, DpQuery *q, bool fence);
static void nest(DpQuery *q, const char *extra, bool fence);
static bool stage_keeps_id(const DpElement *stage);

DpQuery *
dp_query_make(DpPipeline *pipeline, Oid relid, const char *let)
{
	DpQuery *q = palloc0(sizeof(DpQuery));

	q->pipeline = pipeline;
	q->relid = relid;
	q->let = let;
	initStringInfo(&q->from);
	initStringInfo(&q->where);
	return q;
}

DpQuery *
dp_query_from(DpPipeline *pipeline, const char *from, const char *doc, const char *let)
{
	DpQuery *q = dp_query_make(pipeline, InvalidOid, let);

	appendStringInfoString(&q->from, from);
	q->doc = doc;
	return q;
}

char *
dp_query_alias(DpQuery *q, const char *prefix)
{
	return psprintf("%s%d", prefix, ++q->pipeline->aliases);
}

/* ---------------------------------------------------------------- text */

char *
dp_query_text(DpQuery *q)
{
	StringInfoData sql;

	initStringInfo(&sql);
	if (q->with != NULL)
		appendStringInfo(&sql, "WITH %s ", q->with);
	append_select(&sql, q, NULL, false);
	return sql.data;
}

static void
append_select(StringInfo sql, DpQuery *q, const char *extra, bool fence)
{
	const char *doc = dp_query_doc(q);

	appendStringInfo(sql, "SELECT %s AS doc", doc);
	if (extra != NULL)
		appendStringInfo(sql, ", %s", extra);
	append_clauses(sql, q, fence);
}

static void
append_clauses(StringInfo sql, DpQuery *q, bool fence)
{
	appendStringInfo(sql, " FROM %s", q->from.data);
	if (q->where.len > 0)
		appendStringInfo(sql, " WHERE %s", q->where.data);
	if (q->group != NULL && q->group[0] != '\0')
		appendStringInfo(sql, " GROUP BY %s", q->group);
	if (q->having != NULL)
		appendStringInfo(sql, " HAVING %s", q->having);
	if (q->window != NULL)
		appendStringInfo(sql, " WINDOW w AS (%s)", q->window);
	if (q->order != NULL)
		appendStringInfo(sql, " ORDER BY %s", q->order);
	if (q->limited)
		appendStringInfo(sql, " LIMIT " INT64_FORMAT, q->limit);
	if (q->skip > 0 || (fence && !q->limited))
		appendStringInfo(sql, " OFFSET " INT64_FORMAT, q->skip);
}

/* ---------------------------------------------------------------- nesting */

void
dp_query_nest(DpQuery *q)
{
	nest(q, NULL, false);
}

const char *
dp_query_nest_with(DpQuery *q, const char *extra)
{
	nest(q, extra, false);
	return pnstrdup(q->doc, strchr(q->doc, '.') - q->doc);
}

const char *
dp_query_fence(DpQuery *q, const char *extra)
{
	/* the planner does not flatten groups, windows, or what is limited */
	nest(q, extra, q->group == NULL && q->window == NULL && !q->limited && q->skip == 0);
	return pnstrdup(q->doc, strchr(q->doc, '.') - q->doc);
}

static void
nest(DpQuery *q, const char *extra, bool fence)
{
	StringInfoData select;
	const char *with = q->with;
	char *alias;

	initStringInfo(&select);
	append_select(&select, q, extra, fence);
	alias = dp_query_alias(q, "q");
	q->ordered = q->ordered || q->order != NULL || q->window != NULL;
	if (++q->levels % MOST_LEVELS > 0)
		dp_query_restart(q, psprintf("(%s) AS %s", select.data, alias), alias);
	else
	{
		with = psprintf("%s%s%s AS MATERIALIZED (%s)", with == NULL ? "" : with,
						with == NULL ? "" : ", ", alias, select.data);
		dp_query_restart(q, alias, alias);
	}
	q->with = with;
}

void
dp_query_restart(DpQuery *q, const char *from, const char *alias)
{
	q->with = NULL;
	resetStringInfo(&q->from);
	appendStringInfoString(&q->from, from);
	resetStringInfo(&q->where);
	q->doc = psprintf("%s.doc", alias);
	q->computed = false;
	q->changes = NIL;
	q->group = q->having = q->window = q->order = NULL;
	q->limited = false;
	q->limit = q->skip = 0;
}

/* Chooses the relation as the source, unless another one was chosen. */
static void
start(DpQuery *q)
{
	if (q->from.len > 0)
		return;
	if (!OidIsValid(q->relid))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("pipeline without a relation must begin with $documents")));
	dp_query_read(q, NULL, NULL);
}

void
dp_query_read(DpQuery *q, const DpValue *filter, const DpValue *sort)
{
	DpDocSource source;

	q->row = dp_row_open(q->relid);
	if (q->row != NULL)
	{
		appendStringInfoString(&q->from, q->row->source);
		q->doc = q->row_doc = dp_row_document(q->row, q->fields);
		q->computed = true;
		(void) dp_query_read_row(q, filter, sort);
		return;
	}
	dp_collection_source(q->relid, filter, sort, q->fields, &source);
	appendStringInfoString(&q->from, source.from);
	if (source.conditions != NULL)
		appendStringInfoString(&q->where, source.conditions);
	q->doc = source.doc;
	q->computed = source.computed;
	q->order = source.order;
}

bool
dp_query_is_row(DpQuery *q)
{
	start(q);
	return q->row != NULL && q->doc == q->row_doc && q->changes == NIL && q->group == NULL &&
		   q->window == NULL && !q->limited && q->skip == 0;
}

bool
dp_query_read_row(DpQuery *q, const DpValue *filter, const DpValue *sort)
{
	char *conditions = NULL;

	if (!dp_query_is_row(q))
		return false;
	if (filter != NULL)
		conditions = dp_row_conditions(q->row, filter);
	if (conditions != NULL)
		dp_query_where(q, conditions);
	if (sort != NULL)
		q->order = dp_row_order(q->row, sort);
	/* what they use need not be in the document */
	if (filter != NULL || sort != NULL)
		q->doc = q->row_doc = dp_row_document(q->row, dp_pipeline_fields(q->rest));
	return true;
}

bool
dp_query_project_row(DpQuery *q, const DpValue *stage)
{
	DpValue projection;
	List *fields;

	start(q);
	if (q->row == NULL || q->row->doc != NULL || q->doc != q->row_doc || q->changes != NIL ||
		!dp_document_find(stage->data, stage->len, "$project", 8, &projection) ||
		!dp_pipeline_inclusion(&projection, &fields))
		return false;
	q->row = dp_row_with(q->row, fields);
	q->doc = q->row_doc = dp_row_document(q->row, NIL);
	return true;
}

void
dp_query_before_where(DpQuery *q)
{
	start(q);
	if (q->group != NULL || q->limited || q->skip > 0)
		dp_query_nest(q);
	(void) dp_query_column(q);
}

void
dp_query_before_from(DpQuery *q)
{
	start(q);
	if (q->group != NULL || q->window != NULL || q->order != NULL || q->limited || q->skip > 0)
		dp_query_nest(q);
}

const char *
dp_query_column(DpQuery *q)
{
	start(q);
	if (q->computed || q->changes != NIL)
		(void) dp_query_fence(q, NULL);
	return q->doc;
}

/* ---------------------------------------------------------------- documents */

const char *
dp_query_doc(DpQuery *q)
{
	DpBuilder b;
	DpValue stages;
	DpElement stage;
	DpIter iter;
	bool keeps_id = true;
	ListCell *lc;

	start(q);
	if (q->changes == NIL)
		return q->doc;
	dp_builder_init(&b, 256);
	dp_builder_begin_array(&b);
	foreach(lc, q->changes)
	{
		dp_iter_init_value(&iter, lfirst(lc));
		(void) dp_iter_next(&iter, &stage);
		keeps_id = keeps_id && stage_keeps_id(&stage);
		dp_builder_append_value(&b, NULL, 0, lfirst(lc));
	}
	dp_builder_end(&b);
	stages = dp_builder_view(&b, DP_TYPE_ARRAY);
	if (list_length(q->changes) == 1 && strcmp(stage.name, "$project") == 0)
		q->doc = dp_query_call(q, "project", q->doc, dp_sql_document(&stage.value));
	else if (keeps_id)
		q->doc = dp_query_call(q, "update", q->doc, dp_sql_value(&stages));
	else
		q->doc = psprintf("docpatterns._update(%s, %s, %s)", q->doc, dp_sql_value(&stages),
						  dp_query_let(q));
	q->changes = NIL;
	q->computed = true;
	return q->doc;
}

/* Whether a stage leaves _id alone, as bson_update() demands. */
static bool
stage_keeps_id(const DpElement *stage)
{
	DpIter iter;
	DpElement field;

	if (strcmp(stage->name, "$set") != 0 && strcmp(stage->name, "$addFields") != 0)
		return false;
	dp_iter_init_value(&iter, &stage->value);
	while (dp_iter_next(&iter, &field))
		if (strncmp(field.name, "_id", 3) == 0 && (field.name[3] == '\0' || field.name[3] == '.'))
			return false;
	return true;
}

void
dp_query_set_doc(DpQuery *q, const char *doc)
{
	q->doc = doc;
	q->computed = true;
}

void
dp_query_where(DpQuery *q, const char *condition)
{
	appendStringInfo(&q->where, "%s%s", q->where.len > 0 ? " AND " : "", condition);
}

/* ---------------------------------------------------------------- expressions */

const char *
dp_query_let(DpQuery *q)
{
	const char *let = q->let != NULL ? q->let : q->pipeline->let;

	return let == NULL ? "NULL" : let;
}

const char *
dp_query_and_collation(DpQuery *q)
{
	return q->pipeline->collation == NULL ? "" : psprintf(", %s", q->pipeline->collation);
}

const char *
dp_query_key_of(DpQuery *q, const char *value)
{
	if (q->pipeline->collation == NULL)
		return value;
	return psprintf("docpatterns._collated_key(%s, %s)", value, q->pipeline->collation);
}

char *
dp_query_sort_key(DpQuery *q, const DpValue *order)
{
	if (q->pipeline->collation != NULL)
		return psprintf("docpatterns._collated_sort_key(%s, %s, %s)", q->doc,
						dp_sql_document(order), q->pipeline->collation);
	return psprintf("%s.bson_sort_key(%s, %s)", q->pipeline->own, q->doc, dp_sql_document(order));
}

char *
dp_query_call(DpQuery *q, const char *function, const char *doc, const char *spec)
{
	if (q->let != NULL || q->pipeline->let != NULL)
		return psprintf("docpatterns._%s(%s, %s, %s)", function, doc, spec, dp_query_let(q));
	return psprintf("%s.bson_%s(%s, %s)", q->pipeline->own, function, doc, spec);
}

char *
dp_query_eval(DpQuery *q, const DpValue *expression, const DpLocation *location)
{
	if (expression->type == DP_TYPE_STRING)
	{
		const char *s = (const char *) expression->data + 4;

		/* of several steps one may lead through an array */
		if (s[0] == '$' && s[1] != '$' && strchr(s, '.') == NULL && s[1] != '\0')
			return psprintf("(%s OPERATOR(%s.->) %s)", q->doc, q->pipeline->own,
							dp_stage_sql_path(s + 1));
		if (s[0] != '$')
			return dp_sql_value(expression);
	}
	else if (!dp_type_is_container(expression->type))
		return dp_sql_value(expression);
	dp_stage_check_expression(q, expression, location);
	return dp_query_call(q, "eval", q->doc, dp_sql_value(expression));
}

char *
dp_query_field(DpQuery *q, const char *field, const DpLocation *location)
{
	char *path = psprintf("$%s", field);
	DpBuilder b;
	DpIter iter;
	DpValue array;
	DpValue expression = { NULL, 0, DP_TYPE_EOD };

	dp_builder_init(&b, 64);
	dp_builder_begin_array(&b);
	dp_builder_append_string(&b, NULL, 0, path, strlen(path));
	dp_builder_end(&b);
	array = dp_builder_view(&b, DP_TYPE_ARRAY);
	dp_iter_init_value(&iter, &array);
	(void) dp_iter_next_value(&iter, &expression);
	return dp_query_eval(q, &expression, location);
}

const char *
dp_query_row_order(DpQuery *q)
{
	const char *order;

	start(q);
	if (q->order != NULL && !q->limited && q->skip == 0 && !q->computed && q->changes == NIL)
	{
		order = q->order;
		q->order = NULL;
		return order;
	}
	if (q->order == NULL && !q->ordered)
		return NULL;
	if (q->order != NULL)
		dp_query_nest(q);
	return psprintf("%s.n", dp_query_nest_with(q, "pg_catalog.row_number() OVER () AS n"));
}
