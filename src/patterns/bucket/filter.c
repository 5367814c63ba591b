/*
 * filter.c
 *		What is said of documents, for a relation whose other columns follow fields of these: the
 *		group and the time that a filter (doc @@ '{..}') asks for, an order by the time, and the
 *		fields that a query reads.
 *
 * The fields of the group and the time are never arrays, so a comparison of the filter is one of
 * the column.
 */
#include "postgres.h"

#include "common/int.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "index/field_index.h"
#include "index/field_order.h"
#include "index/text_condition.h"
#include "mql/collection_calls.h"
#include "mql/filter.h"
#include "mql/filter_compile.h"
#include "mql/pipeline/pipeline.h"
#include "mql/spec.h"
#include "patterns/bucket/scan.h"

/* Collects what follows from a filter */
typedef struct Implied
{
	DpBucketRel *rel;
	Index relid;
	List *clauses; /* comparisons of columns */
	int exact;     /* so many of them say all that the filter's comparison says */
} Implied;

/* A filter of the value of a group, which it calls "v" */
struct DpBucketGroupFilter
{
	int group;
	DpFilter *filter;
	DpBuilder document;
};

/* How a query uses documents */
typedef struct Uses
{
	Index relid;
	AttrNumber doc;
	int level; /* of the query, from the relation's on */
	bool whole;
	List *names; /* of fields */
} Uses;

static bool is_filter(DpBucketRel *rel, Index relid, Expr *clause, Const **filter);
static void
add_comparison(const DpPath *path, DpComparison how, const DpValue *values, int n, void *arg);
static void add_time(Implied *implied, DpComparison how, const DpValue *value);
static void add_group(Implied *implied, int group, DpComparison how, const DpValue *values, int n);
static Expr *column_var(Implied *implied, const DpBucketColumn *column);
static bool same_path(const DpPath *a, const DpPath *b);
static int count_comparisons(const DpValue *filter);
static bool add_conditions(DpBuilder *b, const DpValue *filter, const DpPath *path);
static bool find_uses(Node *node, Uses *uses);
static void add_name(Uses *uses, const char *name);

List *
dp_bucket_filter_keys(PlannerInfo *root, DpBucketRel *rel, RelOptInfo *baserel, RestrictInfo *rinfo,
					  bool *covered)
{
	Implied implied = { .rel = rel, .relid = baserel->relid };
	MemoryContext scratch;
	MemoryContext planner;
	DpValue spec;
	DpFilter *compiled;
	Const *filter;
	List *keys = NIL;
	ListCell *lc;

	*covered = false;
	if (rel->doc == NULL)
		return NIL;
	if (IsA(rinfo->clause, NullTest))
	{
		NullTest *test = (NullTest *) rinfo->clause;
		Var *var = (Var *) test->arg;

		/* the column is not null */
		*covered = test->nulltesttype == IS_NOT_NULL && IsA(var, Var) &&
				   var->varno == baserel->relid && var->varlevelsup == 0 &&
				   var->varattno == rel->doc->attnum;
		return NIL;
	}
	if (!is_filter(rel, baserel->relid, rinfo->clause, &filter))
		return NIL;
	scratch = AllocSetContextCreate(CurrentMemoryContext, "docpatterns filter of buckets",
									DP_SPEC_CONTEXT_SIZES);
	planner = MemoryContextSwitchTo(scratch);
	spec = dp_value_of_document(PG_DETOAST_DATUM_PACKED(filter->constvalue));
	compiled = dp_filter_compile(&spec, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
	MemoryContextSwitchTo(planner);
	dp_filter_each_comparison(compiled, add_comparison, &implied);
	*covered =
		implied.exact == list_length(implied.clauses) && implied.exact == count_comparisons(&spec);
	MemoryContextDelete(scratch);
	foreach(lc, implied.clauses)
	{
		DpBucketKey *key = dp_bucket_key(root, rel, baserel->relid, lfirst(lc));

		if (key == NULL)
			elog(ERROR, "a comparison of a column is not a key");
		key->rinfo = make_simple_restrictinfo(root, lfirst(lc));
		key->filter = rinfo;
		keys = lappend(keys, key);
	}
	return keys;
}

/* Whether a clause is a filter of the documents. */
static bool
is_filter(DpBucketRel *rel, Index relid, Expr *clause, Const **filter)
{
	Var *doc;

	if (!dp_doc_is_call((Node *) clause, "bson_match", dp_types()->bson, filter))
		return false;
	doc = dp_call_column((Node *) clause);
	return doc->varno == relid && doc->varlevelsup == 0 && doc->varattno == rel->doc->attnum;
}

/* For dp_filter_each_comparison(): adds what it says of a column. */
static void
add_comparison(const DpPath *path, DpComparison how, const DpValue *values, int n, void *arg)
{
	Implied *implied = arg;

	/* null is as good as nothing, and values of other types match these, too */
	for (int i = 0; i < n; i++)
		if (values[i].type == DP_TYPE_NULL || values[i].type == DP_TYPE_UNDEFINED ||
			values[i].type == DP_TYPE_MINKEY || values[i].type == DP_TYPE_MAXKEY ||
			values[i].type == DP_TYPE_ARRAY)
			return;
	if (same_path(path, implied->rel->time_path) && how != DP_COMPARE_IN)
		add_time(implied, how, &values[0]);
	for (int i = 0; i < implied->rel->ngroups; i++)
		if (same_path(path, implied->rel->group_paths[i]))
			add_group(implied, i, how, values, n);
}

/* A comparison with a date is one of the column: documents have milliseconds, and so has it. */
static void
add_time(Implied *implied, DpComparison how, const DpValue *value)
{
	static const int strategies[] = { BTEqualStrategyNumber, BTLessStrategyNumber,
									  BTLessEqualStrategyNumber, BTGreaterStrategyNumber,
									  BTGreaterEqualStrategyNumber };
	DpBucketColumn *column = implied->rel->time;
	int64 time;
	Oid operator;
	Oid family = lookup_type_cache(column->type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;

	if (value->type != DP_TYPE_DATE)
		return;
	time = dp_get_int64(value->data);
	if (pg_sub_s64_overflow(time, DP_EPOCH_SHIFT_MS, &time) ||
		pg_mul_s64_overflow(time, 1000, &time) || !IS_VALID_TIMESTAMP(time))
		return;
	operator= get_opfamily_member(family, column->type, column->type, strategies[how]);
	implied->clauses =
		lappend(implied->clauses,
				make_opclause(operator, BOOLOID, false, column_var(implied, column),
							  (Expr *) makeConst(column->type, -1, InvalidOid, sizeof(int64),
												 Int64GetDatum(time), false, FLOAT8PASSBYVAL),
							  InvalidOid, InvalidOid));
	implied->exact++;
}

/* Only equality says all: the others concern values of the same type. */
static void
add_group(Implied *implied, int group, DpComparison how, const DpValue *values, int n)
{
	static const char *const operators[] = { "=", "<", "<=", ">", ">=" };
	Expr *var = column_var(implied, implied->rel->groups[group]);

	if (how == DP_COMPARE_IN)
		implied->clauses = lappend(implied->clauses, dp_field_any(var, values, n));
	else
		implied->clauses =
			lappend(implied->clauses,
					dp_field_compare(var, operators[how], dp_value_to_varlena(&values[0])));
	if (how == DP_COMPARE_EQ)
		implied->exact++;
}

static Expr *
column_var(Implied *implied, const DpBucketColumn *column)
{
	return (Expr *) makeVar(implied->relid, column->attnum, column->type, column->typmod,
							column->collation, 0);
}

static bool
same_path(const DpPath *a, const DpPath *b)
{
	if (a->nsteps != b->nsteps)
		return false;
	for (int i = 0; i < a->nsteps; i++)
		if (a->steps[i].namelen != b->steps[i].namelen ||
			memcmp(a->steps[i].name, b->steps[i].name, a->steps[i].namelen) != 0)
			return false;
	return true;
}

/* How many comparisons a filter consists of; -1 if it has something else. */
static int
count_comparisons(const DpValue *filter)
{
	DpIter iter;
	DpElement e;
	int n = 0;

	check_stack_depth();
	dp_iter_init_value(&iter, filter);
	while (dp_iter_next(&iter, &e))
	{
		if (strcmp(e.name, "$and") == 0)
		{
			DpIter inner;
			DpValue part;
			int more;

			dp_iter_init_value(&inner, &e.value);
			while (dp_iter_next_value(&inner, &part))
			{
				more = count_comparisons(&part);
				if (more < 0)
					return -1;
				n += more;
			}
		}
		else if (e.name[0] == '$')
			return -1;
		else
			n +=
				dp_filter_is_operators(&e.value) ? dp_document_count(e.value.data, e.value.len) : 1;
	}
	return n;
}

/* ---------------------------------------------------------------- groups */

DpBucketColumn *
dp_bucket_field_column(DpBucketRel *rel, Index relid, Node *expr)
{
	Const *argument;
	Var *doc;
	char *field;
	DpPath *path;

	if (rel->doc == NULL || !dp_doc_is_call(expr, "bson_get", TEXTOID, &argument))
		return NULL;
	doc = dp_call_column(expr);
	if (doc->varno != relid || doc->varlevelsup != 0 || doc->varattno != rel->doc->attnum)
		return NULL;
	field = TextDatumGetCString(argument->constvalue);
	path = dp_path_parse(field, strlen(field));
	for (int i = 0; i < rel->ngroups; i++)
		if (same_path(path, rel->group_paths[i]))
			return rel->groups[i];
	return NULL;
}

List *
dp_bucket_group_filters(DpBucketRel *rel, Index relid, Expr *clause)
{
	List *result = NIL;
	Const *filter;
	DpValue spec;

	if (rel->doc == NULL || !is_filter(rel, relid, clause, &filter))
		return NIL;
	spec = dp_value_of_document(PG_DETOAST_DATUM_PACKED(filter->constvalue));
	for (int i = 0; i < rel->ngroups; i++)
	{
		DpBuilder b;

		dp_builder_init(&b, spec.len);
		dp_builder_begin_document(&b);
		dp_builder_begin_array_field(&b, "$and", 4);
		if (add_conditions(&b, &spec, rel->group_paths[i]))
		{
			dp_builder_end(&b);
			dp_builder_end(&b);
			result =
				lappend(result, list_make2(makeInteger(i),
										   makeConst(dp_types()->bson, -1, InvalidOid, -1,
													 PointerGetDatum(dp_builder_finish_bson(&b)),
													 false, false)));
		}
	}
	return result;
}

/*
 * Appends the conditions of a filter on what is below a path, with "v" instead of the path; false
 * if there are none.  Those that equal its value are keys.
 */
static bool
add_conditions(DpBuilder *b, const DpValue *filter, const DpPath *path)
{
	DpIter iter;
	DpElement e;
	bool found = false;

	check_stack_depth();
	dp_iter_init_value(&iter, filter);
	while (dp_iter_next(&iter, &e))
	{
		const char *rest = e.name;

		if (strcmp(e.name, "$and") == 0)
		{
			DpIter inner;
			DpValue part;

			dp_iter_init_value(&inner, &e.value);
			while (dp_iter_next_value(&inner, &part))
				found |= add_conditions(b, &part, path);
			continue;
		}
		for (int i = 0; i < path->nsteps && rest != NULL; i++)
		{
			uint32 len = path->steps[i].namelen;

			if (i > 0 && *rest++ != '.')
				rest = NULL;
			else if (strncmp(rest, path->steps[i].name, len) != 0 || strcspn(rest, ".") != len)
				rest = NULL;
			else
				rest += len;
		}
		if (rest != NULL && (*rest == '.' || dp_filter_is_operators(&e.value)))
		{
			char *name = psprintf("v%s", rest);

			dp_builder_begin_document_field(b, "", 0);
			dp_builder_append_value(b, name, strlen(name), &e.value);
			dp_builder_end(b);
			found = true;
		}
	}
	return found;
}

List *
dp_bucket_group_filters_compile(List *encoded)
{
	List *result = NIL;
	ListCell *lc;

	foreach(lc, encoded)
	{
		DpBucketGroupFilter *f = palloc(sizeof(DpBucketGroupFilter));
		Const *filter = lsecond_node(Const, lfirst(lc));
		DpValue *spec = palloc(sizeof(DpValue));

		*spec = dp_value_of_document(PG_DETOAST_DATUM_PACKED(filter->constvalue));
		f->group = intVal(linitial(lfirst(lc)));
		f->filter = dp_filter_compile(spec, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
		dp_builder_init(&f->document, 256);
		result = lappend(result, f);
	}
	return result;
}

bool
dp_bucket_group_passes(DpBucketScan *scan)
{
	ListCell *lc;

	foreach(lc, scan->group_filters)
	{
		DpBucketGroupFilter *f = lfirst(lc);
		AttrNumber attnum = scan->rel->groups[f->group]->packed;
		DpValue doc;

		dp_builder_reset(&f->document);
		dp_builder_begin_document(&f->document);
		if (!scan->packed_slot->tts_isnull[attnum - 1])
		{
			Datum datum = scan->packed_slot->tts_values[attnum - 1];
			struct varlena *stored = PG_DETOAST_DATUM_PACKED(datum);
			DpValue value = dp_value_of_varlena(stored);

			dp_builder_append_value(&f->document, "v", 1, &value);
			if (PointerGetDatum(stored) != datum)
				pfree(stored);
		}
		dp_builder_end(&f->document);
		doc = dp_builder_view(&f->document, DP_TYPE_DOCUMENT);
		if (!dp_filter_match(f->filter, &doc))
			return false;
	}
	return true;
}

/* ---------------------------------------------------------------- order */

bool
dp_bucket_is_time_order(DpBucketRel *rel, Index relid, Expr *expr, bool *descending)
{
	Const *spec;
	Var *doc;
	DpValue value;
	DpIter iter;
	DpElement field;
	int64 direction;

	if (rel->doc == NULL ||
		!dp_doc_is_call((Node *) expr, "bson_sort_key", dp_types()->bson, &spec))
		return false;
	doc = dp_call_column((Node *) expr);
	if (doc->varno != relid || doc->varlevelsup != 0 || doc->varattno != rel->doc->attnum)
		return false;
	value = dp_value_of_document(PG_DETOAST_DATUM_PACKED(spec->constvalue));
	dp_iter_init_value(&iter, &value);
	if (!dp_iter_next(&iter, &field) || iter.next < iter.end ||
		!dp_value_to_whole(&field.value, &direction) ||
		!same_path(dp_path_of_field(field.name), rel->time_path))
		return false;
	*descending = direction < 0;
	return true;
}

/* ---------------------------------------------------------------- fields */

List *
dp_bucket_fields_read(PlannerInfo *root, DpBucketRel *rel, RelOptInfo *baserel, AttrNumber attnum)
{
	Uses uses = { .relid = baserel->relid, .doc = attnum };

	if (root->parse->commandType != CMD_SELECT || root->rowMarks != NIL ||
		baserel->reloptkind != RELOPT_BASEREL || root->parse->setOperations != NULL)
		return NIL;
	(void) query_tree_walker(root->parse, find_uses, &uses, QTW_IGNORE_JOINALIASES);
	return uses.whole ? NIL : uses.names;
}

/* Collects the names of fields; true, and whole, if something else is made of documents. */
static bool
find_uses(Node *node, Uses *uses)
{
	static const char *const by_path[] = { "bson_get", "bson_get_text", "bson_typeof",
										   "bson_exists", "bson_values" };
	static const char *const by_document[] = { "bson_match", "bson_sort_key" };
	Const *argument;

	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		Var *var = (Var *) node;

		uses->whole |= var->varno == uses->relid && var->varlevelsup == uses->level &&
					   (var->varattno == uses->doc || var->varattno == 0);
		return uses->whole;
	}
	if (IsA(node, Query))
	{
		bool found;

		uses->level++;
		found = query_tree_walker((Query *) node, find_uses, uses, QTW_IGNORE_JOINALIASES);
		uses->level--;
		return found;
	}
	if (IsA(node, OpExpr) || IsA(node, FuncExpr))
	{
		for (int i = 0; i < lengthof(by_path); i++)
			if (dp_doc_is_call(node, by_path[i], TEXTOID, &argument))
			{
				char *name = TextDatumGetCString(argument->constvalue);
				DpPath *path = dp_path_parse(name, strlen(name));

				if (path->nsteps == 0)
					break;
				add_name(uses, path->steps[0].name);
				return false;
			}
		if (dp_doc_is_call(node, "bson_eval", dp_types()->bson_value, &argument))
		{
			DpValue expression = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(argument->constvalue));
			const char *path = expression.type == DP_TYPE_STRING ? DP_STRING_DATA(&expression) : "";

			if (path[0] == '$' && path[1] != '$')
			{
				add_name(uses, pnstrdup(path + 1, strcspn(path + 1, ".")));
				return false;
			}
		}
		for (int i = 0; i < lengthof(by_document); i++)
			if (dp_doc_is_call(node, by_document[i], dp_types()->bson, &argument))
			{
				DpValue spec = dp_value_of_document(PG_DETOAST_DATUM_PACKED(argument->constvalue));
				List *names = NIL;
				ListCell *lc;

				if (i == 0)
					names = dp_pipeline_filter_fields(&spec);
				else
				{
					DpIter iter;
					DpElement field;

					dp_iter_init_value(&iter, &spec);
					while (dp_iter_next(&iter, &field))
						names = lappend(names, pnstrdup(field.name, strcspn(field.name, ".")));
				}
				if (names == NIL)
					break;
				foreach(lc, names)
					add_name(uses, lfirst(lc));
				return false;
			}
	}
	return expression_tree_walker(node, find_uses, uses);
}

static void
add_name(Uses *uses, const char *name)
{
	ListCell *lc;

	foreach(lc, uses->names)
		if (strcmp(strVal(lfirst(lc)), name) == 0)
			return;
	uses->names = lappend(uses->names, makeString(pstrdup(name)));
}
