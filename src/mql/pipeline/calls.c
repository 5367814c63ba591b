/*
 * calls.c
 *		Functions that the SQL of pipelines calls where it needs variables from outside: the
 *		languages with a document of variables, which differs from row to row while a
 *		specification is compiled once; and $redact.
 *
 * A document or a specification that is NULL gives NULL; variables that are NULL are none.
 * Variables in the document are found by the names that no $let, $map and so on inside defines; one
 * that is not there is an error when it is read.  The collation among them is in force.  $$NOW is
 * allowed everywhere.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "bson/builder.h"
#include "bson/compare.h"
#include "mql/filter.h"
#include "mql/projection.h"
#include "mql/spec.h"
#include "mql/update_tree.h"

static Datum call_eval(PG_FUNCTION_ARGS);
static Datum call_match(PG_FUNCTION_ARGS);
static Datum call_project(PG_FUNCTION_ARGS);
static Datum call_update(PG_FUNCTION_ARGS);
static Datum call_let(PG_FUNCTION_ARGS);
static Datum call_redact(PG_FUNCTION_ARGS);

/*
 * The compiled argument 1, after the variables in argument argno have been set.  Returns NULL if
 * argument 0 or 1 is.
 */
static void *
call_begin(FunctionCallInfo fcinfo, bool is_value, DpSpecCompile compile, DpValue *let)
{
	DpSpecCache *cache = fcinfo->flinfo->fn_extra;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return NULL;
	if (cache == NULL)
		cache = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(DpSpecCache));
	if (!PG_ARGISNULL(2))
		*let = dp_value_of_document(DP_GETARG_VARLENA(2));
	dp_expr_set_let(PG_ARGISNULL(2) ? NULL : let);
	return is_value ? dp_spec_value_cached(cache, fcinfo, 1, compile, NULL)
					: dp_spec_cached(cache, fcinfo, 1, compile, NULL);
}

/* ---------------------------------------------------------------- the languages */

static void *
compile_eval(const DpValue *spec, void *arg)
{
	return dp_expr_compile(spec, DP_EXPR_LET, NULL);
}

/*
 * _eval(doc bson, expression bson_value, let bson) -> bson_value: NULL if it is missing.
 */
DP_FUNCTION(dp_pipeline_eval);
Datum
dp_pipeline_eval(PG_FUNCTION_ARGS)
{
	return dp_expr_call(fcinfo, 2, call_eval);
}

static Datum
call_eval(PG_FUNCTION_ARGS)
{
	DpValue let;
	DpExpr *e = call_begin(fcinfo, true, compile_eval, &let);
	DpExprState state;
	DpValue root;
	DpValue result;

	if (e == NULL)
		PG_RETURN_NULL();
	root = dp_value_of_document(DP_GETARG_VARLENA(0));
	dp_expr_state_init(&state, &root);
	if (!dp_expr_eval(e, &state, &result))
		PG_RETURN_NULL();
	dp_check_document_size(result.len);
	dp_check_value_depth(&result);
	PG_RETURN_POINTER(dp_value_to_varlena(&result));
}

static void *
compile_match(const DpValue *spec, void *arg)
{
	return dp_filter_compile(spec, DP_FILTER_DOCUMENT | DP_FILTER_LET, NULL);
}

/*
 * _match(doc bson, filter bson, let bson) -> boolean
 */
DP_FUNCTION(dp_pipeline_match);
Datum
dp_pipeline_match(PG_FUNCTION_ARGS)
{
	return dp_expr_call(fcinfo, 2, call_match);
}

static Datum
call_match(PG_FUNCTION_ARGS)
{
	DpValue let;
	DpFilter *filter = call_begin(fcinfo, false, compile_match, &let);

	if (filter == NULL)
		PG_RETURN_NULL();
	PG_RETURN_BOOL(dp_filter_match_datum(filter, PG_GETARG_DATUM(0)));
}

static void *
compile_project(const DpValue *spec, void *arg)
{
	return dp_projection_compile(spec, DP_EXPR_LET | DP_EXPR_STAGE);
}

/*
 * _project(doc bson, spec bson, let bson) -> bson: $project.
 */
DP_FUNCTION(dp_pipeline_project);
Datum
dp_pipeline_project(PG_FUNCTION_ARGS)
{
	return dp_expr_call(fcinfo, 2, call_project);
}

static Datum
call_project(PG_FUNCTION_ARGS)
{
	DpValue let;
	DpProjection *p = call_begin(fcinfo, false, compile_project, &let);
	struct varlena *result;
	DpValue doc;

	if (p == NULL)
		PG_RETURN_NULL();
	doc = dp_value_of_document(DP_GETARG_VARLENA(0));
	result = dp_projection_apply(p, &doc, NULL);
	if (result == NULL)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_POINTER(result);
}

static void *
compile_update(const DpValue *spec, void *arg)
{
	if (spec->type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("stages must be an array, not %s", dp_type_name(spec->type))));
	return dp_update_pipeline_compile(spec, DP_EXPR_LET | DP_EXPR_STAGE);
}

/*
 * _update(doc bson, stages bson_value, let bson) -> bson: the stages $set, $addFields, $unset,
 * $project, $replaceRoot and $replaceWith.  Other than with bson_update() the _id may change.
 */
DP_FUNCTION(dp_pipeline_update);
Datum
dp_pipeline_update(PG_FUNCTION_ARGS)
{
	return dp_expr_call(fcinfo, 2, call_update);
}

static Datum
call_update(PG_FUNCTION_ARGS)
{
	DpValue let;
	DpUpdatePipeline *pipeline = call_begin(fcinfo, true, compile_update, &let);
	DpValue doc;
	DpValue result;

	if (pipeline == NULL)
		PG_RETURN_NULL();
	doc = dp_value_of_document(DP_GETARG_VARLENA(0));
	dp_update_pipeline_apply(pipeline, &doc, &result);
	if (result.data == doc.data && result.len == doc.len)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	dp_check_document_size(result.len);
	PG_RETURN_POINTER(dp_document_to_varlena(result.data, result.len));
}

/*
 * _merge_id(old bson, new bson, at text) -> bson: the new version of a document, with its _id.
 */
DP_FUNCTION(dp_pipeline_merge_id);
Datum
dp_pipeline_merge_id(PG_FUNCTION_ARGS)
{
	DpValue old = dp_value_of_document(DP_GETARG_VARLENA(0));
	DpValue new = dp_value_of_document(DP_GETARG_VARLENA(1));
	DpBuilder b;
	DpIter iter;
	DpElement e;
	DpValue id;
	DpValue other;

	if (!dp_document_find(old.data, old.len, "_id", 3, &id))
		PG_RETURN_DATUM(PG_GETARG_DATUM(1));
	if (dp_document_find(new.data, new.len, "_id", 3, &other))
	{
		if (dp_value_compare(&id, &other) != 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("$merge cannot change \"_id\""),
							errdetail("At path \"%s\".", text_to_cstring(PG_GETARG_TEXT_PP(2))),
							errhint("Remove it before: {$unset: \"_id\"}.")));
		PG_RETURN_DATUM(PG_GETARG_DATUM(1));
	}
	dp_builder_init(&b, new.len + id.len + 8);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, "_id", 3, &id);
	dp_iter_init_value(&iter, &new);
	while (dp_iter_next(&iter, &e))
		dp_builder_append_value(&b, e.name, e.namelen, &e.value);
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/* ---------------------------------------------------------------- variables */

/* Variables of a $let or a "let" */
typedef struct Variables
{
	int n;
	DpElement *names;
	DpExpr **exprs;
} Variables;

static void *
compile_let(const DpValue *spec, void *arg)
{
	Variables *v = palloc0(sizeof(Variables));
	uint32 n = dp_document_count(spec->data, spec->len);
	DpNames names = { 0 };
	DpElement e;
	DpIter iter;

	v->names = palloc(sizeof(DpElement) * (n + 1));
	v->exprs = palloc(sizeof(DpExpr *) * (n + 1));
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation location = dp_location_field(NULL, &e);
		bool twice;

		dp_expr_check_variable(e.name, e.namelen, dp_location_text(&location));
		(void) dp_names_add(&names, e.name, e.namelen, &twice);
		if (twice)
			dp_bad_spec(&location, "variable \"%s\" is given twice", e.name);
		v->names[v->n] = e;
		v->exprs[v->n++] = dp_expr_compile(&e.value, DP_EXPR_LET, dp_location_text(&location));
	}
	return v;
}

/*
 * _let(doc bson, variables bson, let bson) -> bson: the collation and variables of let, then the
 * values of new variables, name -> expression, which hide older ones.  A missing value is kept as
 * undefined.
 */
DP_FUNCTION(dp_pipeline_let);
Datum
dp_pipeline_let(PG_FUNCTION_ARGS)
{
	return dp_expr_call(fcinfo, 2, call_let);
}

static Datum
call_let(PG_FUNCTION_ARGS)
{
	DpValue let = { dp_empty_document, DP_DOCUMENT_MIN_SIZE, DP_TYPE_DOCUMENT };
	Variables *v = call_begin(fcinfo, false, compile_let, &let);
	DpExprState state;
	DpBuilder b;
	DpElement e;
	DpIter iter;
	DpValue root;

	if (v == NULL)
		PG_RETURN_NULL();
	root = dp_value_of_document(DP_GETARG_VARLENA(0));
	dp_expr_state_init(&state, &root);
	dp_builder_init(&b, let.len + 64);
	dp_builder_begin_document(&b);
	dp_iter_init_value(&iter, &let);
	while (dp_iter_next(&iter, &e))
	{
		bool hidden = false;

		for (int i = 0; i < v->n && !hidden; i++)
			hidden = v->names[i].namelen == e.namelen &&
					 memcmp(v->names[i].name, e.name, e.namelen) == 0;
		if (!hidden)
			dp_builder_append_value(&b, e.name, e.namelen, &e.value);
	}
	for (int i = 0; i < v->n; i++)
	{
		DpValue value;

		if (dp_expr_eval(v->exprs[i], &state, &value))
		{
			dp_check_value_depth(&value);
			dp_builder_append_value(&b, v->names[i].name, v->names[i].namelen, &value);
		}
		else
			dp_builder_begin_element(&b, DP_TYPE_UNDEFINED, v->names[i].name, v->names[i].namelen);
	}
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/* ---------------------------------------------------------------- $redact */

typedef struct Redact
{
	DpExpr *expr;
	MemoryContext scratch; /* emptied after each evaluation */
	DpExprState state;
} Redact;

static void *
compile_redact(const DpValue *spec, void *arg)
{
	Redact *r = palloc(sizeof(Redact));

	r->expr = dp_expr_compile(spec, DP_EXPR_LET | DP_EXPR_REDACT, "$redact");
	r->scratch =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns $redact", ALLOCSET_SMALL_SIZES);
	return r;
}

static void redact_fields(Redact *r, DpBuilder *b, const DpValue *container);

/* What $redact does with a document: 'k', 'p' or 'd'. */
static char
redact_decide(Redact *r, const DpValue *doc)
{
	MemoryContext old = MemoryContextSwitchTo(r->scratch);
	char decision = 0;
	DpValue v;

	r->state.current = *doc;
	if (dp_expr_eval(r->expr, &r->state, &v) && v.type == DP_TYPE_STRING &&
		(strcmp(DP_STRING_DATA(&v), "keep") == 0 || strcmp(DP_STRING_DATA(&v), "prune") == 0 ||
		 strcmp(DP_STRING_DATA(&v), "descend") == 0))
		decision = DP_STRING_DATA(&v)[0];
	MemoryContextSwitchTo(old);
	MemoryContextReset(r->scratch);
	if (decision == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("$redact must evaluate to $$DESCEND, $$PRUNE or $$KEEP")));
	return decision;
}

/* Appends what is left of a value; a document that is pruned is left out. */
static void
redact_value(Redact *r, DpBuilder *b, const char *name, uint32 namelen, const DpValue *value)
{
	char decision = 'k';

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (value->type == DP_TYPE_ARRAY)
		decision = 'd';
	else if (value->type == DP_TYPE_DOCUMENT)
		decision = redact_decide(r, value);
	if (decision == 'p')
		return;
	if (decision == 'k')
	{
		dp_builder_append_value(b, name, namelen, value);
		return;
	}
	if (value->type == DP_TYPE_ARRAY)
		dp_builder_begin_array_field(b, name, namelen);
	else
		dp_builder_begin_document_field(b, name, namelen);
	redact_fields(r, b, value);
	dp_builder_end(b);
}

/* Appends what is left of the fields of a document, or of an array's elements. */
static void
redact_fields(Redact *r, DpBuilder *b, const DpValue *container)
{
	bool is_array = container->type == DP_TYPE_ARRAY;
	DpIter iter;
	DpElement e;

	dp_iter_init_value(&iter, container);
	while (dp_iter_next(&iter, &e))
		redact_value(r, b, is_array ? NULL : e.name, is_array ? 0 : e.namelen, &e.value);
}

/*
 * _redact(doc bson, expression bson_value, let bson) -> bson: NULL if the document is pruned.
 */
DP_FUNCTION(dp_pipeline_redact);
Datum
dp_pipeline_redact(PG_FUNCTION_ARGS)
{
	return dp_expr_call(fcinfo, 2, call_redact);
}

static Datum
call_redact(PG_FUNCTION_ARGS)
{
	DpValue let;
	Redact *r = call_begin(fcinfo, true, compile_redact, &let);
	DpValue root;
	DpBuilder b;

	if (r == NULL)
		PG_RETURN_NULL();
	root = dp_value_of_document(DP_GETARG_VARLENA(0));
	dp_expr_state_init(&r->state, &root);
	switch (redact_decide(r, &root))
	{
		case 'p':
			PG_RETURN_NULL();
		case 'k':
			PG_RETURN_DATUM(PG_GETARG_DATUM(0));
		default:
			dp_builder_init(&b, root.len);
			dp_builder_begin_document(&b);
			redact_fields(r, &b, &root);
			dp_builder_end(&b);
			PG_RETURN_POINTER(dp_builder_finish_bson(&b));
	}
}
