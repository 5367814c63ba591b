/*
 * pipeline.c
 *		Compiles a pipeline: its stages, one after the other, and what they have in common.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

#include "bson/compare.h"
#include "mql/collection_calls.h"
#include "mql/expression_node.h"
#include "mql/pipeline/pipeline.h"

/* Pipelines inside pipelines, and stages of each: MongoDB has the same limits. */
#define MAX_DEPTH 20
#define MAX_STAGES 1000

#define MAX_PARTS 200

static const DpStage stages[] = {
	{ "$addFields", dp_stage_change },
	{ "$bucket", dp_stage_bucket },
	{ "$bucketAuto", dp_stage_bucket_auto },
	{ "$collStats", dp_stage_coll_stats, true },
	{ "$count", dp_stage_count },
	{ "$densify", dp_stage_densify },
	{ "$documents", dp_stage_documents, true },
	{ "$facet", dp_stage_facet },
	{ "$fill", dp_stage_fill },
	{ "$graphLookup", dp_stage_graph_lookup },
	{ "$group", dp_stage_group },
	{ "$indexStats", dp_stage_index_stats, true },
	{ "$limit", dp_stage_limit },
	{ "$lookup", dp_stage_lookup },
	{ "$match", dp_stage_match },
	{ "$merge", dp_stage_merge },
	{ "$out", dp_stage_out },
	{ "$project", dp_stage_change },
	{ "$redact", dp_stage_redact },
	{ "$replaceRoot", dp_stage_change },
	{ "$replaceWith", dp_stage_change },
	{ "$sample", dp_stage_sample },
	{ "$set", dp_stage_change },
	{ "$setWindowFields", dp_stage_window },
	{ "$skip", dp_stage_skip },
	{ "$sort", dp_stage_sort },
	{ "$sortByCount", dp_stage_sort_by_count },
	{ "$unionWith", dp_stage_union },
	{ "$unset", dp_stage_change },
	{ "$unwind", dp_stage_unwind },
};

static char *sql_variables(const DpValue *collation, const DpValue *let);
static DpStageSpec *
read_stage(DpQuery *q, const DpValue *spec, const DpLocation *location, int index);
static void add_stage(DpQuery *q, const DpStageSpec *s);
static void
unknown_stage(const DpElement *stage, const DpLocation *location) pg_attribute_noreturn();

DpPipelineSql *
dp_pipeline_sql(Oid relid, const DpValue *pipeline, const DpValue *let, const DpValue *collation)
{
	DpPipeline shared = { 0 };
	DpPipelineSql *result = palloc0(sizeof(DpPipelineSql));
	DpQuery *q;
	char *text;
	ListCell *lc;

	shared.own = quote_identifier(get_namespace_name(dp_types()->schema));
	if (collation != NULL && dp_collation_get(collation) != NULL)
	{
		shared.compares = collation;
		shared.collation = dp_sql_document(collation);
		shared.let = sql_variables(collation, NULL);
	}
	q = dp_query_make(&shared, relid, let == NULL ? NULL : sql_variables(shared.compares, let));
	if (OidIsValid(relid))
		shared.reads = list_make1_oid(relid);
	dp_query_stages(q, pipeline, NULL);
	text = dp_query_text(q);
	if (shared.writes == NIL)
	{
		result->statements = list_make1(text);
		return result;
	}
	result->writes = true;
	result->creates = !OidIsValid(shared.target);
	if (shared.replaces)
		result->replaced = shared.target;
	foreach(lc, shared.writes)
	{
		DpWrite *write = lfirst(lc);

		result->statements =
			lappend(result->statements,
					psprintf("%s%s%s", write->before, write->after == NULL ? "" : text,
							 write->after == NULL ? "" : write->after));
	}
	return result;
}

/* SQL of variables, with a collation; both may be NULL. */
static char *
sql_variables(const DpValue *collation, const DpValue *let)
{
	DpBuilder b;
	DpIter iter;
	DpElement e;
	DpValue variables;

	dp_builder_init(&b, 256);
	dp_builder_begin_document(&b);
	if (collation != NULL)
		dp_builder_append_value(&b, DP_LET_COLLATION, strlen(DP_LET_COLLATION), collation);
	if (let != NULL)
	{
		dp_iter_init_value(&iter, let);
		while (dp_iter_next(&iter, &e))
		{
			dp_expr_check_variable(e.name, e.namelen, "let");
			dp_builder_append_value(&b, e.name, e.namelen, &e.value);
		}
	}
	dp_builder_end(&b);
	variables = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	return dp_sql_document(&variables);
}

void
dp_query_stages(DpQuery *q, const DpValue *pipeline, const DpLocation *location)
{
	DpValue spec;
	DpIter iter;
	List *specs = NIL;

	check_stack_depth();
	if (pipeline->type != DP_TYPE_ARRAY)
		dp_bad_spec_type(location, "an array of stages", pipeline);
	if (q->pipeline->depth++ > MAX_DEPTH)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("pipelines must not be nested more than %d deep", MAX_DEPTH)));
	dp_iter_init_value(&iter, pipeline);
	while (dp_iter_next_value(&iter, &spec))
	{
		if (list_length(specs) >= MAX_STAGES)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("pipeline must not have more than %d stages", MAX_STAGES)));
		specs = lappend(specs, read_stage(q, &spec, location, list_length(specs)));
	}
	q->stages = dp_pipeline_optimize(specs, &q->fields);
	q->rest = list_copy(q->stages);
	while (q->rest != NIL)
	{
		DpStageSpec *s = linitial(q->rest);

		CHECK_FOR_INTERRUPTS();
		q->rest = list_delete_first(q->rest);
		add_stage(q, s);
	}
	q->pipeline->depth--;
}

static DpStageSpec *
read_stage(DpQuery *q, const DpValue *spec, const DpLocation *location, int index)
{
	DpStageSpec *s = palloc(sizeof(DpStageSpec));
	DpIter fields;
	DpElement stage;
	DpElement other;

	s->location = dp_location_index(location, index);
	if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(&s->location, "a stage, a document", spec);
	dp_iter_init_value(&fields, spec);
	if (!dp_iter_next(&fields, &stage))
		dp_bad_spec(&s->location, "a stage has one field, its name");
	if (dp_iter_next(&fields, &other))
		dp_bad_spec(&s->location, "a stage has one field, its name, but there is \"%s\" too",
					other.name);
	s->stage = *spec;
	s->name = stage.name;
	s->spec = stage.value;
	s->flags = dp_stage_flags(q);
	for (int i = 0; i < lengthof(stages); i++)
		if (strcmp(stages[i].name, stage.name) == 0)
		{
			DpLocation inner = dp_location_field(&s->location, &stage);

			if (stages[i].first && (q->from.len > 0 || index > 0))
				dp_bad_spec(&inner, "%s must be the first stage", stage.name);
			return s;
		}
	unknown_stage(&stage, &s->location);
}

static void
add_stage(DpQuery *q, const DpStageSpec *s)
{
	DpElement stage = { s->name, strlen(s->name), s->spec };
	DpLocation location = dp_location_field(&s->location, &stage);

	if (q->pipeline->writes != NIL)
		dp_bad_spec(&location, "no stage may follow a stage that writes");
	for (int i = 0; i < lengthof(stages); i++)
		if (strcmp(stages[i].name, s->name) == 0)
			stages[i].add(q, stages[i].add == dp_stage_change ? &s->stage : &s->spec, &location);
}

static void
unknown_stage(const DpElement *stage, const DpLocation *location)
{
	DpLocation inner = dp_location_field(location, stage);
	DpNearest nearest = { stage->name, stage->namelen };

	for (int i = 0; i < lengthof(stages); i++)
		dp_nearest_try(&nearest, stages[i].name);
	dp_unknown_operator(&inner, "stage", &nearest);
}

/* ---------------------------------------------------------------- specifications */

int64
dp_stage_number(const DpValue *spec, int64 min, const DpLocation *location)
{
	int64 n;

	if (!dp_type_is_number(spec->type))
		dp_bad_spec_type(location, "a whole number", spec);
	if (!dp_value_to_whole(spec, &n) || n < min)
		dp_bad_spec(location, "expected a whole number of at least " INT64_FORMAT, min);
	return n;
}

int64
dp_stage_clamp(const DpValue *spec, const DpLocation *location)
{
	DpValue whole = *spec;
	int64 n;

	if (!dp_type_is_number(spec->type))
		dp_bad_spec_type(location, "a number", spec);
	if (spec->type == DP_TYPE_DECIMAL128)
		(void) dp_result_rounded(&whole, spec, DP_ROUND_HALF_EVEN, 0);
	if (!dp_value_truncate(&whole, &n))
	{
		double d = dp_number_to_double(&whole);

		n = d > 0 ? PG_INT64_MAX : d < 0 ? PG_INT64_MIN : 0;
	}
	return n;
}

void
dp_stage_document(const DpValue *spec, const DpLocation *location)
{
	if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a document", spec);
}

void
dp_stage_options(const DpValue *spec, const DpLocation *location, const char *what,
				 const char *names, void *options)
{
	DpOption *option = options;
	DpElement elements[DP_MOST_NAMED];
	char *mistake;

	dp_stage_document(spec, location);
	mistake = dp_read_named(spec, what, "option", names, elements);
	if (mistake != NULL)
		dp_bad_spec(location, "%s", mistake);
	for (int i = 0; names != NULL; i++)
	{
		option[i].value = elements[i].value;
		option[i].location = dp_location_field(location, &elements[i]);
		if (elements[i].name == NULL)
			option[i].value.type = DP_TYPE_EOD;
		names = strchr(names, ' ');
		names = names == NULL ? NULL : names + 1;
	}
}

const char *
dp_stage_string(const DpValue *spec, const DpLocation *location)
{
	const char *s = (const char *) spec->data + 4;

	if (spec->type != DP_TYPE_STRING)
		dp_bad_spec_type(location, "a string", spec);
	if (strlen(s) != spec->len - 5)
		dp_bad_spec(location, "the string must not contain a zero byte");
	return s;
}

const char *
dp_stage_path(const DpValue *spec, const DpLocation *location)
{
	const char *s = dp_stage_string(spec, location);

	if (s[0] != '$' || s[1] == '$')
		dp_bad_spec(location, "a path of a field begins with one dollar sign");
	dp_stage_check_field(s + 1, location);
	return s + 1;
}

/* A name of a field, with dots between its parts. */
void
dp_stage_check_field(const char *name, const DpLocation *location)
{
	Size len = strlen(name);
	int parts = 1;

	if (len == 0 || name[0] == '.' || name[len - 1] == '.' || strstr(name, "..") != NULL)
		dp_bad_spec(location, "a path must not have empty parts");
	for (const char *part = name; part != NULL; parts++)
	{
		Size n = strcspn(part, ".");

		/* the fields of a DBRef are allowed */
		if (part[0] == '$' && (part == name || !((n == 3 && strncmp(part, "$id", n) == 0) ||
												 (n == 4 && strncmp(part, "$ref", n) == 0) ||
												 (n == 3 && strncmp(part, "$db", n) == 0))))
			dp_bad_spec(location, "a part of a path must not begin with a dollar sign");
		if (parts > MAX_PARTS)
			dp_bad_spec(location, "a path must not have more than %d parts", MAX_PARTS);
		part = part[n] == '.' ? part + n + 1 : NULL;
	}
}

char *
dp_stage_sql_path(const char *field)
{
	StringInfoData path;

	initStringInfo(&path);
	dp_path_to_text(&path, dp_path_of_field(field));
	return psprintf("%s::pg_catalog.text", quote_literal_cstr(path.data));
}

void
dp_stage_check_expression(DpQuery *q, const DpValue *expression, const DpLocation *location)
{
	(void) dp_expr_compile(expression, dp_stage_flags(q), dp_location_text(location));
}

int
dp_stage_flags(DpQuery *q)
{
	return DP_EXPR_STAGE | (q->let == NULL ? 0 : DP_EXPR_LET);
}

/* What dp_stage_constant() and dp_stage_compare() compute by the collation */
typedef struct Computed
{
	const DpValue *a; /* an expression, if there is no b */
	const DpValue *b;
	const DpLocation *location;
	DpValue value;
	int order;
} Computed;

static void
compute(void *arg)
{
	Computed *c = arg;
	DpValue root = { dp_empty_document, DP_DOCUMENT_MIN_SIZE, DP_TYPE_DOCUMENT };
	DpExprState state;

	if (c->b != NULL)
	{
		c->order = dp_value_compare(c->a, c->b);
		return;
	}
	dp_expr_state_init(&state, &root);
	if (!dp_expr_eval(dp_expr_compile(c->a, DP_EXPR_IMMUTABLE, dp_location_text(c->location)),
					  &state, &c->value))
		dp_bad_spec(c->location, "expected a constant");
}

DpValue
dp_stage_constant(DpQuery *q, const DpValue *expression, const DpLocation *location)
{
	Computed c = { .a = expression, .location = location };

	dp_collated(q->pipeline->compares, compute, &c);
	return c.value;
}

int
dp_stage_compare(DpQuery *q, const DpValue *a, const DpValue *b)
{
	Computed c = { .a = a, .b = b };

	dp_collated(q->pipeline->compares, compute, &c);
	return c.order;
}

Oid
dp_stage_relation(DpQuery *q, const DpValue *name, const DpLocation *location)
{
	const char *s = dp_stage_string(name, location);
	List *names = textToQualifiedNameList(cstring_to_text(s));
	Oid relid = RangeVarGetRelid(makeRangeVarFromNameList(names), NoLock, false);

	q->pipeline->reads = list_append_unique_oid(q->pipeline->reads, relid);
	return relid;
}
