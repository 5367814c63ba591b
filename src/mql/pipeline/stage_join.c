/*
 * stage_join.c
 *		Stages that bring several relations or pipelines together.
 *
 * $lookup by fields becomes, in this order of preference,
 *
 *		a LEFT JOIN on the key of the foreign collection, if the local document has one value;
 *
 *		a subquery for each document that finds foreign documents by an index, unless all of both
 *		relations is read;
 *
 *		a join of the values of all local and all foreign documents, which PostgreSQL hashes.
 *
 * $unwind of its result makes it an ordinary join.
 *
 * $graphLookup by the key of a collection is a recursive query, any other calls graph_lookup().
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "mql/collection_calls.h"
#include "mql/expression.h"
#include "mql/filter.h"
#include "mql/pipeline/pipeline.h"
#include "mql/pipeline/row.h"

/* Fields in one call of bson_build(): functions have at most 100 arguments */
#define BUILD_FIELDS 40

/* A document that SQL builds of fields */
typedef struct Build
{
	StringInfoData sql;
	int n;
	const char *own;
} Build;

/* A $lookup */
typedef struct Lookup
{
	Oid from;          /* or invalid: the pipeline begins with $documents */
	const char *local; /* NULL: no equality */
	const char *foreign;
	const DpValue *let;      /* or NULL */
	const DpValue *pipeline; /* or NULL: no stages */
	const char *as;
	struct
	{
		DpOption as, from, local, foreign, let, pipeline;
	} given;
	bool unwind;       /* each document found gives a row */
	DpDocLookup found; /* if there is an equality */
} Lookup;

static void parse_lookup(DpQuery *q, const DpValue *spec, const DpLocation *location, Lookup *l);
static const char *field_of(const DpOption *o);
static void look_up(Oid relid, const char *field, bool indexed, DpDocLookup *found);
static bool take_unwind(DpQuery *q, const char *as);
static bool reads_all(DpQuery *q, const Lookup *l);
static float4 row_count(Oid relid);
static void join_by_key(DpQuery *q, const Lookup *l);
static void join_by_subquery(DpQuery *q, Lookup *l);
static void join_by_values(DpQuery *q, Lookup *l);
static char *add_item(DpQuery *q, const char *function, const char *path);
static void find_equal(DpQuery *sub, const Lookup *l, const char *values);
static void find_compared(DpQuery *sub, const Lookup *l, const char *let);
static bool
compared_field(const DpValue *filter, const DpValue *let, const char **field, const char **name);
static char *
filter_in(const DpDocLookup *found, const char *field, const char *own, const char *values);
static void find(DpQuery *sub, const char *condition);
static void find_also(DpQuery *sub, const char *rare, const char *condition);
static char *add_let(DpQuery *q, const Lookup *l, const char *carry);
static void put_result(DpQuery *q, const Lookup *l, DpQuery *sub);
static char *array_of(DpQuery *sub);
static char *beside(DpQuery *q, const char *column);
static void set_field(DpQuery *q, const char *column, const char *field, const char *value);
static char *put(const char *own, const char *doc, const char *field, const char *value);
static void unite(DpQuery *q, DpQuery *other);
static char *start_values(DpQuery *q, const DpValue *start, const DpLocation *location);
static char *find_reached(DpQuery *q, Oid relid, const DpDocLookup *found,
						  const DpValue *restricted, const char *start, const char *connect_from);
static void build_start(Build *b, const char *own);
static void build_add(Build *b, const char *name, const char *value);
static const char *build_end(Build *b);
static bool is_constant(const DpValue *v);

/* ---------------------------------------------------------------- $lookup */

void
dp_stage_lookup(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	Lookup l = { 0 };
	DpQuery *sub;
	char *let;
	bool collated = q->pipeline->collation != NULL; /* indexes compare bytes */

	parse_lookup(q, spec, location, &l);
	l.unwind = take_unwind(q, l.as);
	if (l.local != NULL)
	{
		look_up(l.from, l.foreign, true, &l.found);
		/* what is split off is neither in the index nor in the column */
		if (l.found.is_split && !l.found.is_key)
		{
			l.found.expr = NULL;
			l.found.filters = false;
		}
		if (!collated && l.found.is_key && !l.found.is_split && l.pipeline == NULL)
			join_by_key(q, &l);
		else if (!collated && (l.found.expr != NULL || l.found.filters) && !reads_all(q, &l))
			join_by_subquery(q, &l);
		else
			join_by_values(q, &l);
		return;
	}
	if (l.unwind)
		dp_query_before_from(q);
	(void) dp_query_column(q);
	let = add_let(q, &l, NULL);
	sub = dp_query_make(q->pipeline, l.from, let);
	find_compared(sub, &l, let);
	dp_query_stages(sub, l.pipeline, &l.given.pipeline.location);
	put_result(q, &l, sub);
}

/*
 * How documents, or rows as documents, are found by values of a field: of rows by a column, indexed
 * or not.
 */
static void
look_up(Oid relid, const char *field, bool indexed, DpDocLookup *found)
{
	if (!dp_row_lookup(relid, field, indexed, found))
		dp_collection_lookup(relid, dp_path_of_field(field), found);
}

static const char *
field_of(const DpOption *o)
{
	const char *field = dp_stage_string(&o->value, &o->location);

	dp_stage_check_field(field, &o->location);
	return field;
}

/* The same, NULL if there is none: a join by no field is one without fields. */
static const char *
join_field(const DpOption *o)
{
	if (!dp_option_given(o) || o->value.type == DP_TYPE_NULL ||
		(o->value.type == DP_TYPE_STRING && DP_STRING_LEN(&o->value) == 0))
		return NULL;
	return field_of(o);
}

static void
parse_lookup(DpQuery *q, const DpValue *spec, const DpLocation *location, Lookup *l)
{
	const DpValue *let = &l->given.let.value;
	const DpValue *pipeline = &l->given.pipeline.value;

	dp_stage_options(spec, location, "$lookup", "as ?from ?localField ?foreignField ?let ?pipeline",
					 &l->given);
	l->as = field_of(&l->given.as);
	if (dp_option_given(&l->given.from))
		l->from = dp_stage_relation(q, &l->given.from.value, &l->given.from.location);
	l->local = join_field(&l->given.local);
	l->foreign = join_field(&l->given.foreign);
	if (dp_option_given(&l->given.let) && let->type != DP_TYPE_NULL)
	{
		dp_stage_document(let, &l->given.let.location);
		l->let = let;
	}
	if (dp_option_given(&l->given.pipeline))
	{
		if (pipeline->type != DP_TYPE_ARRAY)
			dp_bad_spec_type(&l->given.pipeline.location, "an array of stages", pipeline);
		l->pipeline = pipeline;
	}
	if ((l->local == NULL) != (l->foreign == NULL))
		dp_bad_spec(location, "$lookup must have both localField and foreignField, or neither");
	if (l->local == NULL && l->pipeline == NULL)
		dp_bad_spec(location, "$lookup must have localField and foreignField, or a pipeline");
	if (l->let != NULL && l->pipeline == NULL)
		dp_bad_spec(location, "$lookup with let must have a pipeline");
	if (!OidIsValid(l->from) && (l->local != NULL || !dp_pipeline_has_documents(l->pipeline)))
		dp_bad_spec(location, "$lookup must have the name of a relation in \"from\"");
	if (l->local != NULL && l->pipeline != NULL && l->pipeline->len == DP_DOCUMENT_MIN_SIZE)
		l->pipeline = NULL;
}

/* Takes the next stage, if it is $unwind of the result without options. */
static bool
take_unwind(DpQuery *q, const char *as)
{
	DpStageSpec *next = q->rest == NIL ? NULL : linitial(q->rest);
	DpValue path;

	if (next == NULL || strcmp(next->name, "$unwind") != 0)
		return false;
	path = next->spec;
	if (path.type == DP_TYPE_DOCUMENT && (dp_document_count(path.data, path.len) != 1 ||
										  !dp_document_find(path.data, path.len, "path", 4, &path)))
		return false;
	if (path.type != DP_TYPE_STRING || DP_STRING_LEN(&path) != strlen(as) + 1 ||
		DP_STRING_DATA(&path)[0] != '$' || strcmp(DP_STRING_DATA(&path) + 1, as) != 0)
		return false;
	q->rest = list_delete_first(q->rest);
	return true;
}

/*
 * Whether every document of a relation has a look-up, in a relation that is not much larger: then
 * reading both is faster than an index.
 */
static bool
reads_all(DpQuery *q, const Lookup *l)
{
	ListCell *lc;
	float4 rows;

	(void) dp_query_doc(q);
	if (!OidIsValid(q->relid) || q->pipeline->depth > 1 || q->with != NULL ||
		q->from.data[0] == '(' || q->where.len > 0 || q->group != NULL || q->limited || q->skip > 0)
		return false;
	foreach(lc, q->rest)
		if (strcmp(((DpStageSpec *) lfirst(lc))->name, "$limit") == 0)
			return false;
	rows = row_count(q->relid);
	return rows >= 1000 && row_count(l->from) <= rows * 2;
}

/* The number of rows that ANALYZE or VACUUM has counted. */
static float4
row_count(Oid relid)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	float4 rows;

	if (!HeapTupleIsValid(tuple))
		return 0;
	rows = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
	ReleaseSysCache(tuple);
	return rows;
}

/*
 * Makes the rows a subquery with another column v: a row for each value at a path.  n numbers the
 * documents if they have an order, or grouped is set.  Returns whether they have.
 */
static bool
add_values(DpQuery *q, const char *path, bool grouped)
{
	bool ordered = q->ordered || q->order != NULL;
	const char *number = "";

	dp_query_before_from(q);
	(void) dp_query_column(q);
	if (ordered || grouped)
	{
		dp_query_nest_with(q, "pg_catalog.row_number() OVER () AS n");
		number = psprintf("%s AS n, ", beside(q, "n"));
	}
	dp_query_nest_with(q, psprintf("%sdocpatterns._join_local(%s, %s%s) AS v", number, q->doc,
								   dp_stage_sql_path(path), dp_query_and_collation(q)));
	return ordered;
}

/*
 * A join on the key.  A document with several local values has a subquery instead, because it is
 * one row.
 */
static void
join_by_key(DpQuery *q, const Lookup *l)
{
	DpQuery *sub = dp_query_make(q->pipeline, l->from, NULL);
	const char *order;
	char *found = dp_query_alias(q, "f");

	dp_query_before_from(sub);
	if (l->unwind)
	{
		order = add_values(q, l->local, false) ? beside(q, "n") : NULL;
		dp_query_where(sub, dp_doc_lookup_is(&l->found, beside(q, "v")));
		appendStringInfo(&q->from, " CROSS JOIN LATERAL (%s) AS %s", dp_query_text(sub), found);
		set_field(q, q->doc, l->as, psprintf("%s.doc", found));
		q->order = order;
		return;
	}
	order = dp_query_row_order(q);
	dp_query_before_from(q);
	dp_query_where(sub, dp_doc_lookup_is(&l->found, add_item(q, "_join_value", l->local)));
	appendStringInfo(&q->from, " LEFT JOIN LATERAL (%s) AS %s ON true", dp_query_text(sub), found);
	sub = dp_query_make(q->pipeline, l->from, NULL);
	/* names the document once: EXPLAIN writes out the expressions of all stages wherever it is */
	find_equal(sub, l, add_item(q, "_join_several", l->local));
	set_field(q, q->doc, l->as,
			  psprintf("CASE WHEN %s.doc IS NOT NULL THEN %s.bson_array(%s.doc) ELSE %s END", found,
					   q->pipeline->own, found, array_of(sub)));
	q->order = order;
}

/* Adds what a function computes of the document and a path as a column, whose name is returned. */
static char *
add_item(DpQuery *q, const char *function, const char *path)
{
	const char *column = dp_query_column(q);
	char *alias = dp_query_alias(q, "l");

	appendStringInfo(&q->from, " CROSS JOIN LATERAL (SELECT docpatterns.%s(%s, %s) AS v) AS %s",
					 function, column, dp_stage_sql_path(path), alias);
	return psprintf("%s.v", alias);
}

static void
join_by_subquery(DpQuery *q, Lookup *l)
{
	DpQuery *sub;
	char *values;
	char *let;

	if (l->unwind)
		dp_query_before_from(q);
	(void) dp_query_column(q);
	let = add_let(q, l, NULL);
	values = add_item(q, "_join_values", l->local);
	sub = dp_query_make(q->pipeline, l->from, let);
	find_equal(sub, l, values);
	if (l->pipeline != NULL)
		dp_query_stages(sub, l->pipeline, &l->given.pipeline.location);
	put_result(q, l, sub);
}

/* The documents that are found are grouped by the local document. */
static void
join_by_values(DpQuery *q, Lookup *l)
{
	DpQuery *sub = dp_query_make(q->pipeline, l->from, NULL);
	const char *own = q->pipeline->own;
	bool rows = l->unwind && l->pipeline == NULL;
	bool ordered = add_values(q, l->local, !rows);
	char *path = dp_stage_sql_path(l->foreign);
	char *found;
	char *docs;

	(void) dp_query_column(sub);
	dp_query_nest_with(sub, "pg_catalog.row_number() OVER () AS n");
	dp_query_nest_with(sub, psprintf("%s AS n, docpatterns._join_foreign(%s, %s%s) AS v",
									 beside(sub, "n"), sub->doc, path, dp_query_and_collation(q)));
	appendStringInfo(&q->from,
					 " %s %s ON %s OPERATOR(%s.=) %s AND docpatterns._join_once(%s, %s, "
					 "%s, %s, %s%s)",
					 rows ? "JOIN" : "LEFT JOIN", sub->from.data,
					 dp_query_key_of(q, beside(sub, "v")),
					 q->pipeline->collation != NULL ? "pg_catalog" : own,
					 dp_query_key_of(q, beside(q, "v")), q->doc, dp_stage_sql_path(l->local),
					 sub->doc, path, beside(q, "v"), dp_query_and_collation(q));
	if (ordered || !rows)
		q->order = psprintf("%s, %s", beside(q, "n"), beside(sub, "n"));
	if (rows)
	{
		set_field(q, q->doc, l->as, sub->doc);
		return;
	}
	/* sorted before it is grouped: faster than an order in the aggregate */
	dp_query_nest_with(q, psprintf("%s AS n, %s AS found", beside(q, "n"), sub->doc));
	q->ordered = false;
	q->group = beside(q, "n");
	if (ordered)
		q->order = q->group;
	found = beside(q, "found");
	docs = psprintf("coalesce(%s.bson_agg(%s) FILTER (WHERE %s IS NOT NULL), '[]'::%s.bson_value)",
					own, found, found, own);
	dp_query_set_doc(q, psprintf("docpatterns._join_any(%s)", q->doc));
	if (l->pipeline == NULL)
		set_field(q, q->doc, l->as, docs);
	else
	{
		char *let;

		found = dp_query_alias(q, "f");
		dp_query_nest_with(q, psprintf("%s AS found", docs));
		let = add_let(q, l, "found");
		sub = dp_query_from(q->pipeline,
							psprintf("(SELECT e.value::%s.bson AS doc FROM %s.bson_elements(%s) "
									 "AS e (value)) AS %s",
									 own, own, beside(q, "found"), found),
							psprintf("%s.doc", found), let);
		dp_query_stages(sub, l->pipeline, &l->given.pipeline.location);
		put_result(q, l, sub);
	}
}

/* ---------------------------------------------------------------- finding */

/* Chooses the foreign documents that have one of the values, by an index. */
static void
find_equal(DpQuery *sub, const Lookup *l, const char *values)
{
	const char *own = sub->pipeline->own;
	const char *expr = l->found.expr;
	char *condition;

	if (expr == NULL)
	{
		find(sub, filter_in(&l->found, l->foreign, own, values));
		return;
	}
	condition = dp_doc_lookup_in(&l->found, values);
	find(sub, condition);
	if (l->found.is_key)
		return;
	if (l->found.arrays)
	{
		/* from the smallest array to what comes after all of them: no bytes */
		char *arrays = psprintf(
			"(%s OPERATOR(%s.>=) '[]'::%s.bson_value AND "
			"%s OPERATOR(%s.<) '{\"$binary\": {\"base64\": \"\", \"subType\": \"00\"}}'::%s.bson_value%s)",
			expr, own, own, expr, own, own, l->found.deep ? psprintf(" OR %s IS NULL", expr) : "");

		/* which is tried once */
		find_also(sub, psprintf("EXISTS (SELECT FROM %s WHERE %s)", l->found.source, arrays),
				  psprintf("%s AND (%s) IS NOT TRUE AND docpatterns._join_has(%s, %s, %s)", arrays,
						   condition, l->found.doc, dp_stage_sql_path(l->foreign), values));
		if (l->found.deep)
			return;
	}
	/* a missing value is null, and so is undefined */
	find_also(
		sub, psprintf("'null'::%s.bson_value OPERATOR(%s.=) ANY (%s)", own, own, values),
		l->found.type != dp_types()->bson_value
			? psprintf("%s IS NULL", expr)
			: psprintf("(%s IS NULL OR %s OPERATOR(%s.=) '{\"$undefined\": true}'::%s.bson_value)",
					   expr, expr, own, own));
}

/*
 * If the pipeline begins with {$match: {$expr: {$eq: ["$field", "$$name"]}}} and the field has an
 * index, lets it find the documents that the stage will choose from.
 */
static void
find_compared(DpQuery *sub, const Lookup *l, const char *let)
{
	DpDocLookup found;
	DpIter iter;
	DpValue first;
	DpValue filter;
	const char *field;
	const char *name;
	char *value;

	if (!OidIsValid(l->from) || l->let == NULL || sub->pipeline->collation != NULL)
		return;
	dp_iter_init_value(&iter, l->pipeline);
	if (!dp_iter_next_value(&iter, &first) || first.type != DP_TYPE_DOCUMENT ||
		!dp_document_find(first.data, first.len, "$match", 6, &filter) ||
		!compared_field(&filter, l->let, &field, &name))
		return;
	look_up(l->from, field, false, &found);
	if (found.is_split && !found.is_key)
		return;
	value = psprintf("(%s OPERATOR(%s.->) %s)", let, sub->pipeline->own,
					 dp_stage_sql_path(psprintf("%s", name)));
	if (found.expr == NULL || (found.arrays && found.deep))
	{
		if (found.filters && !found.deep)
			find(sub, filter_in(&found, field, sub->pipeline->own, psprintf("ARRAY[%s]", value)));
		return;
	}
	find(sub, dp_doc_lookup_is(&found, value));
	/* a missing variable equals a missing field, and null a column that is NULL */
	if (!found.is_key)
		find_also(sub,
				  psprintf("%s OPERATOR(%s.=) '%s'::%s.bson_value", value, sub->pipeline->own,
						   found.type == dp_types()->bson_value ? "{\"$undefined\": true}" : "null",
						   sub->pipeline->own),
				  psprintf("%s IS NULL", found.expr));
}

/* Whether documents must have a field that equals a variable; which. */
static bool
compared_field(const DpValue *filter, const DpValue *let, const char **field, const char **name)
{
	DpIter iter;
	DpElement e;
	DpValue sides[2];
	DpValue value;
	int n = 0;

	if (filter->type != DP_TYPE_DOCUMENT)
		return false;
	check_stack_depth();
	dp_iter_init_value(&iter, filter);
	while (dp_iter_next(&iter, &e))
	{
		DpIter inner;

		if (strcmp(e.name, "$expr") == 0 && compared_field(&e.value, let, field, name))
			return true;
		if (e.value.type != DP_TYPE_ARRAY)
			continue;
		dp_iter_init_value(&inner, &e.value);
		if (strcmp(e.name, "$and") == 0)
			while (dp_iter_next_value(&inner, &value))
				if (compared_field(&value, let, field, name))
					return true;
		if (strcmp(e.name, "$eq") != 0)
			continue;
		for (n = 0; n < 2 && dp_iter_next_value(&inner, &sides[n]); n++)
			if (sides[n].type != DP_TYPE_STRING || DP_STRING_DATA(&sides[n])[0] != '$')
				break;
		if (n < 2)
			continue;
		for (int i = 0; i < 2; i++)
		{
			const char *path = DP_STRING_DATA(&sides[i]) + 1;
			const char *variable = DP_STRING_DATA(&sides[1 - i]) + 1;

			if (path[0] != '$' && path[0] != '\0' && path[0] != '.' && strstr(path, "..") == NULL &&
				path[strlen(path) - 1] != '.' && variable[0] == '$' &&
				dp_document_find(let->data, let->len, variable + 1, strlen(variable + 1), &value))
			{
				*field = path;
				*name = variable + 1;
				return true;
			}
		}
	}
	return false;
}

/* A condition by a filter: the field has one of the values. */
static char *
filter_in(const DpDocLookup *found, const char *field, const char *own, const char *values)
{
	return psprintf("%s OPERATOR(%s.@@) docpatterns._join_filter(%s::pg_catalog.text, %s)",
					found->doc, own, quote_literal_cstr(field), values);
}

/* Chooses the documents that meet the condition. */
static void
find(DpQuery *sub, const char *condition)
{
	dp_query_before_from(sub);
	dp_query_where(sub, condition);
}

/* If rare, which does not depend on them, also those that meet the condition and were not found. */
static void
find_also(DpQuery *sub, const char *rare, const char *condition)
{
	DpQuery *other = dp_query_make(sub->pipeline, sub->relid, NULL);

	find(other, rare);
	dp_query_where(other, condition);
	unite(sub, other);
}

/* ---------------------------------------------------------------- variables and results */

/*
 * Adds a column with the variables of a pipeline, those around it too; carry is a column that is
 * still needed.  Returns SQL for the variables, NULL if there are none.
 */
static char *
add_let(DpQuery *q, const Lookup *l, const char *carry)
{
	DpIter iter;
	DpElement e;
	char *let;

	if (l->let == NULL || l->let->len == DP_DOCUMENT_MIN_SIZE)
		return q->let == NULL ? NULL : pstrdup(q->let);
	dp_iter_init_value(&iter, l->let);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(&l->given.let.location, &e);

		dp_expr_check_variable(e.name, e.namelen, dp_location_text(&inner));
		dp_stage_check_expression(q, &e.value, &inner);
	}
	/* a document that is left out must not fail */
	if (q->limited || q->skip > 0)
		dp_query_nest(q);
	let = psprintf("docpatterns._let(%s, %s, %s) AS let", q->doc, dp_sql_document(l->let),
				   dp_query_let(q));
	if (carry != NULL)
		let = psprintf("%s AS %s, %s", beside(q, carry), carry, let);
	(void) dp_query_fence(q, let);
	return beside(q, "let");
}

/* Puts the documents of a subquery into the field of each document, or each of them into a row. */
static void
put_result(DpQuery *q, const Lookup *l, DpQuery *sub)
{
	char *alias;
	char *found;

	if (!l->unwind)
	{
		set_field(q, q->doc, l->as, array_of(sub));
		return;
	}
	alias = dp_query_alias(q, "f");
	dp_query_before_from(q);
	found = dp_query_text(sub);
	/* a join keeps the order of rows if its other side depends on them and is not flattened */
	if (q->ordered)
		found = psprintf("SELECT %s.doc FROM (%s) AS %s WHERE %s IS NOT NULL OFFSET 0", alias,
						 found, alias, q->doc);
	appendStringInfo(&q->from, " CROSS JOIN LATERAL (%s) AS %s", found, alias);
	set_field(q, q->doc, l->as, psprintf("%s.doc", alias));
}

/* The documents of a query as an array, in their order. */
static char *
array_of(DpQuery *sub)
{
	const char *own = sub->pipeline->own;
	const char *doc = dp_query_doc(sub);

	if (sub->order != NULL || sub->limited || sub->skip > 0 || sub->group != NULL ||
		sub->window != NULL)
	{
		dp_query_nest(sub);
		doc = sub->doc;
	}
	dp_query_set_doc(sub,
					 psprintf("coalesce(%s.bson_agg(%s), '[]'::%s.bson_value)", own, doc, own));
	return psprintf("(%s)", dp_query_text(sub));
}

/* A column beside that of the document. */
static char *
beside(DpQuery *q, const char *column)
{
	return psprintf("%.*s.%s", (int) (strchr(q->doc, '.') - q->doc), q->doc, column);
}

/* Sets a field of a column; what is on the way to it and no document becomes one. */
static void
set_field(DpQuery *q, const char *column, const char *field, const char *value)
{
	dp_query_set_doc(q, put(q->pipeline->own, column, field, value));
}

/* A document with a field that is set to a value. */
static char *
put(const char *own, const char *doc, const char *field, const char *value)
{
	const char *dot = strchr(field, '.');
	char *first = dp_stage_sql_path(dot == NULL ? field : pnstrdup(field, dot - field));

	if (dot != NULL)
		value = put(own, psprintf("docpatterns._join_below(%s, %s)", doc, first), dot + 1, value);
	return psprintf("%s.bson_set(%s, %s, %s)", own, doc, first, value);
}

/* Appends the documents of another query.  Several in a row are one UNION ALL: nested ones are
 * slow. */
static void
unite(DpQuery *q, DpQuery *other)
{
	char *alias = dp_query_alias(q, "q");
	const char *members = q->members;

	if (members == NULL || strcmp(dp_query_text(q), q->united) != 0)
		members = psprintf("(%s)", dp_query_text(q));
	members = psprintf("%s UNION ALL (%s)", members, dp_query_text(other));
	dp_query_restart(q, psprintf("(%s) AS %s", members, alias), alias);
	q->members = members;
	q->united = dp_query_text(q);
}

/* ---------------------------------------------------------------- $graphLookup */

void
dp_stage_graph_lookup(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	const char *own = q->pipeline->own;
	struct
	{
		DpOption from, start, connect_from, connect_to, as, max_depth, depth_field, restricted;
	} o;
	const char *as;
	const char *connect_from;
	const char *connect_to;
	const char *depth_field = NULL;
	const char *column;
	const DpValue *restricted = NULL;
	char *depth = NULL;
	char *alias;
	Oid relid;
	DpDocLookup found;

	dp_stage_options(spec, location, "$graphLookup",
					 "from startWith connectFromField connectToField as ?maxDepth ?depthField "
					 "?restrictSearchWithMatch",
					 &o);
	relid = dp_stage_relation(q, &o.from.value, &o.from.location);
	connect_from = field_of(&o.connect_from);
	connect_to = field_of(&o.connect_to);
	as = field_of(&o.as);
	if (dp_option_given(&o.depth_field))
		depth_field = field_of(&o.depth_field);
	if (dp_option_given(&o.max_depth))
		depth = psprintf(INT64_FORMAT,
						 Min(dp_stage_number(&o.max_depth.value, 0, &o.max_depth.location),
							 (int64) PG_INT32_MAX));
	if (dp_option_given(&o.restricted))
	{
		restricted = &o.restricted.value;
		dp_stage_document(restricted, &o.restricted.location);
		(void) dp_filter_compile(restricted, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE,
								 &o.restricted.location);
	}
	dp_collection_lookup(relid, dp_path_of_field(connect_to), &found);
	if (found.is_split)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("$graphLookup cannot read the split documents of table \"%s\"",
							   get_rel_name(relid)),
						errdetail("At path \"%s\".", dp_location_text(location)),
						errhint("Name the view of its whole documents.")));

	column = dp_query_column(q);
	if (found.is_key && depth == NULL && depth_field == NULL && q->pipeline->collation == NULL)
	{
		set_field(q, column, as,
				  find_reached(q, relid, &found, restricted,
							   start_values(q, &o.start.value, &o.start.location), connect_from));
		return;
	}
	alias = dp_query_alias(q, "g");
	set_field(q, column, as,
			  psprintf("(SELECT coalesce(%s.bson_agg(%s.doc), '[]'::%s.bson_value) FROM "
					   "%s.graph_lookup(%s, %s, %s, %s, %s, %s, %s%s) AS %s)",
					   own, alias, own, own, dp_sql_regclass(relid),
					   dp_query_eval(q, &o.start.value, &o.start.location),
					   dp_stage_sql_path(connect_from), dp_stage_sql_path(connect_to),
					   depth == NULL ? "NULL::pg_catalog.int4" : depth,
					   restricted == NULL ? psprintf("NULL::%s.bson", own)
										  : dp_sql_document(restricted),
					   depth_field == NULL ? "NULL::pg_catalog.text"
										   : dp_stage_sql_path(depth_field),
					   dp_query_and_collation(q), alias));
}

/* The values where a search starts, of the document: those of a set-returning function. */
static char *
start_values(DpQuery *q, const DpValue *start, const DpLocation *location)
{
	if (start->type == DP_TYPE_STRING && DP_STRING_DATA(start)[0] == '$' &&
		DP_STRING_DATA(start)[1] != '$' && strchr(DP_STRING_DATA(start), '.') == NULL)
		return psprintf("docpatterns._join_local(%s, %s)", q->doc,
						dp_stage_sql_path(DP_STRING_DATA(start) + 1));
	return psprintf("docpatterns._join_local(%s.bson_build('v'::pg_catalog.text, %s), 'v')",
					q->pipeline->own, dp_query_eval(q, start, location));
}

/*
 * The documents whose keys are among the values, then those whose keys they have at the path, and
 * so on: a recursive query, in which each document is found once, because it has its key.
 */
static char *
find_reached(DpQuery *q, Oid relid, const DpDocLookup *found, const DpValue *restricted,
			 const char *start, const char *connect_from)
{
	const char *own = q->pipeline->own;
	DpQuery *sub = dp_query_make(q->pipeline, relid, NULL);
	char *reached = dp_query_alias(q, "g");
	char *value = dp_query_alias(q, "l");
	char *next = dp_query_alias(q, "f");
	char *step;

	if (restricted != NULL)
		dp_query_read(sub, restricted, NULL);
	dp_query_before_from(sub);
	dp_query_where(sub, dp_doc_lookup_is(found, psprintf("%s.v", value)));
	step = psprintf("AS %s CROSS JOIN LATERAL (%s) AS %s", value, dp_query_text(sub), next);
	return psprintf("(WITH RECURSIVE %s AS (SELECT %s.doc FROM (SELECT %s AS v) %s UNION "
					"SELECT %s.doc FROM (SELECT docpatterns._join_local(%s.doc, %s) AS v FROM %s) "
					"%s) SELECT coalesce(%s.bson_agg(%s.doc), '[]'::%s.bson_value) FROM %s)",
					reached, next, start, step, next, reached, dp_stage_sql_path(connect_from),
					reached, step, own, reached, own, reached);
}

/* ---------------------------------------------------------------- $unionWith and $documents */

void
dp_stage_union(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	DpQuery *other;
	struct
	{
		DpOption relation, pipeline;
	} o = { .pipeline.value.type = DP_TYPE_EOD };
	Oid relid = InvalidOid;

	if (spec->type == DP_TYPE_STRING)
		relid = dp_stage_relation(q, spec, location);
	else
	{
		dp_stage_options(spec, location, "$unionWith", "?coll ?pipeline", &o);
		if (dp_option_given(&o.relation))
			relid = dp_stage_relation(q, &o.relation.value, &o.relation.location);
		else if (!dp_pipeline_has_documents(&o.pipeline.value))
			dp_bad_spec(location, "$unionWith must have the name of a relation in \"coll\"");
	}
	other = dp_query_make(q->pipeline, relid, q->let);
	if (dp_option_given(&o.pipeline))
		dp_query_stages(other, &o.pipeline.value, &o.pipeline.location);
	unite(q, other);
}

bool
dp_pipeline_has_documents(const DpValue *pipeline)
{
	DpIter iter;
	DpElement e;
	DpValue first;

	if (pipeline->type != DP_TYPE_ARRAY)
		return false;
	dp_iter_init_value(&iter, pipeline);
	if (!dp_iter_next_value(&iter, &first) || first.type != DP_TYPE_DOCUMENT)
		return false;
	dp_iter_init_value(&iter, &first);
	return dp_iter_next(&iter, &e) && strcmp(e.name, "$documents") == 0;
}

void
dp_stage_documents(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	const char *own = q->pipeline->own;
	char *alias = dp_query_alias(q, "d");
	StringInfoData sql;
	DpIter iter;
	DpValue doc;
	uint32 i = 0;

	if (OidIsValid(q->relid))
		dp_bad_spec(location, "$documents must be in a pipeline without a relation");
	initStringInfo(&sql);
	q->doc = psprintf("'{}'::%s.bson", own);
	if (spec->type == DP_TYPE_ARRAY && spec->len > DP_DOCUMENT_MIN_SIZE)
	{
		dp_iter_init_value(&iter, spec);
		while (dp_iter_next_value(&iter, &doc))
		{
			DpLocation inner = dp_location_index(location, i++);

			if (doc.type != DP_TYPE_DOCUMENT)
				dp_bad_spec_type(&inner, "a document", &doc);
			appendStringInfo(&sql, "%s(%s)", sql.len > 0 ? ", " : "(VALUES ",
							 is_constant(&doc)
								 ? dp_sql_document(&doc)
								 : psprintf("%s::%s.bson", dp_query_eval(q, &doc, &inner), own));
		}
		appendStringInfo(&sql, ") AS %s (doc)", alias);
	}
	else
		appendStringInfo(&sql,
						 "(SELECT e.value::%s.bson AS doc FROM %s.bson_elements(%s) AS e (value)) "
						 "AS %s",
						 own, own, dp_query_eval(q, spec, location), alias);
	dp_query_restart(q, sql.data, alias);
}

/* Whether an expression is a value as it stands. */
static bool
is_constant(const DpValue *v)
{
	DpIter iter;
	DpElement e;

	check_stack_depth();
	if (v->type == DP_TYPE_STRING)
		return DP_STRING_DATA(v)[0] != '$';
	if (!dp_type_is_container(v->type))
		return true;
	dp_iter_init_value(&iter, v);
	while (dp_iter_next(&iter, &e))
		if (e.name[0] == '$' || !is_constant(&e.value))
			return false;
	return true;
}

/* ---------------------------------------------------------------- $facet */

void
dp_stage_facet(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	bool ordered = q->ordered || q->order != NULL;
	char *input = dp_query_alias(q, "input");
	char *alias = dp_query_alias(q, "q");
	char *text;
	DpIter iter;
	DpElement e;
	Build b;

	if (q->pipeline->in_facet)
		dp_bad_spec(location, "$facet cannot be inside of $facet");
	dp_stage_document(spec, location);
	if (spec->len == DP_DOCUMENT_MIN_SIZE)
		dp_bad_spec(location, "$facet must have a field with a pipeline");
	text = dp_query_text(q);
	q->pipeline->in_facet = true;
	build_start(&b, q->pipeline->own);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(location, &e);
		DpQuery *sub = dp_query_from(q->pipeline, input, psprintf("%s.doc", input), q->let);

		if (e.namelen == 0 || e.name[0] == '$' || strchr(e.name, '.') != NULL)
			dp_bad_spec(&inner,
						"the name of a field must not be empty or have dots or dollar signs");
		sub->ordered = ordered;
		dp_query_stages(sub, &e.value, &inner);
		build_add(&b, e.name, array_of(sub));
	}
	dp_query_restart(q,
					 psprintf("(WITH %s AS (%s) SELECT %s AS doc) AS %s", input, text,
							  build_end(&b), alias),
					 alias);
	q->ordered = false;
	q->pipeline->in_facet = false;
}

/* ---------------------------------------------------------------- documents of fields */

static void
build_start(Build *b, const char *own)
{
	initStringInfo(&b->sql);
	b->n = 0;
	b->own = own;
}

static void
build_add(Build *b, const char *name, const char *value)
{
	if (b->n % BUILD_FIELDS != 0)
		appendStringInfoString(&b->sql, ", ");
	else if (b->n > 0)
		appendStringInfo(&b->sql, ") OPERATOR(%s.||) %s.bson_build(", b->own, b->own);
	else
		appendStringInfo(&b->sql, "%s.bson_build(", b->own);
	b->n++;
	appendStringInfo(&b->sql, "%s::pg_catalog.text, %s", quote_literal_cstr(name), value);
}

static const char *
build_end(Build *b)
{
	appendStringInfoChar(&b->sql, ')');
	return b->sql.data;
}
