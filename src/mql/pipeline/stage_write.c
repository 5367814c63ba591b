/*
 * stage_write.c
 *		$merge and $out, which write the result to a relation.
 *
 * $merge is one INSERT .. ON CONFLICT, or a MERGE where documents that are not there are discarded
 * or are an error.  $out deletes all documents and inserts the result.
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "utils/builtins.h"
#include "utils/varlena.h"

#include "mql/collection_calls.h"
#include "mql/expression.h"
#include "mql/pipeline/pipeline.h"
#include "mql/pipeline/row.h"
#include "mql/update_tree.h"

typedef enum Matched
{
	MATCHED_MERGE,
	MATCHED_REPLACE,
	MATCHED_KEEP,
	MATCHED_FAIL,
	MATCHED_PIPELINE
} Matched;

typedef enum Missing
{
	MISSING_INSERT,
	MISSING_DISCARD,
	MISSING_FAIL
} Missing;

/* A specification of $merge */
typedef struct Merge
{
	DpDocTarget target;
	List *on; /* fields (char *); NIL: the _id */
	Matched matched;
	DpValue stages; /* of MATCHED_PIPELINE */
	Missing missing;
	const char *let; /* SQL: the variables of the stages */
	bool repeated;   /* the result may have a key twice */
	const char *at;  /* SQL: where the stage is, for errors */
} Merge;

static Oid target_relation(DpQuery *q, const DpValue *into, bool merges, const DpLocation *location,
						   const char **name);
static void merge_on(Merge *merge, const DpValue *spec, const DpLocation *location);
static int choice(const DpValue *spec, const char *const *names, int n, const DpLocation *location);
static void merge_stages(Merge *merge, const DpValue *spec, const DpLocation *location);
static void merge_let(Merge *merge, const DpValue *spec, const DpLocation *location);
static bool ids_differ(DpQuery *q);
static bool changes_id(const DpValue *fields, bool projects);
static void input(DpQuery *q, Merge *merge, StringInfo before, StringInfo after);
static void merge_split(DpQuery *q, Merge *merge, const DpLocation *location);
static char *changed(DpQuery *q, Merge *merge, const char *new);
static char *each(DpQuery *q, Merge *merge, const char *old);
static char *conditions(DpQuery *q, Merge *merge);
static char *fields_filled(Merge *merge);
static void add_write(DpQuery *q, const char *before, const char *after);

/* ---------------------------------------------------------------- $merge */

void
dp_stage_merge(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	static const char *const matched[] = { "merge", "replace", "keepExisting", "fail" };
	static const char *const missing[] = { "insert", "discard", "fail" };
	const char *own = q->pipeline->own;
	Merge merge = { 0 };
	DpValue into = *spec;
	struct
	{
		DpOption into, on, let, matched, missing;
	} o;
	Oid relid;
	const char *name;
	StringInfoData before;
	StringInfoData after;

	merge.let = psprintf("'{}'::%s.bson", own);
	merge.at = psprintf("%s::pg_catalog.text", quote_literal_cstr(dp_location_text(location)));
	if (spec->type == DP_TYPE_DOCUMENT)
	{
		bool has_let;

		dp_stage_options(spec, location, "$merge", "into ?on ?let ?whenMatched ?whenNotMatched",
						 &o);
		into = o.into.value;
		if (dp_option_given(&o.on))
			merge_on(&merge, &o.on.value, &o.on.location);
		if (merge.on != NIL && q->pipeline->collation != NULL)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("\"on\" of $merge does not support a collation"),
							errdetail("At path \"%s\".", dp_location_text(&o.on.location)),
							errhint("Unique indexes compare bytes: merge by the _id.")));
		has_let = dp_option_given(&o.let) && o.let.value.type != DP_TYPE_NULL;
		if (has_let)
			merge_let(&merge, &o.let.value, &o.let.location);
		if (o.matched.value.type == DP_TYPE_ARRAY)
			merge_stages(&merge, &o.matched.value, &o.matched.location);
		else if (dp_option_given(&o.matched))
			merge.matched =
				choice(&o.matched.value, matched, lengthof(matched), &o.matched.location);
		if (dp_option_given(&o.missing) && o.missing.value.type != DP_TYPE_NULL)
			merge.missing =
				choice(&o.missing.value, missing, lengthof(missing), &o.missing.location);
		if (has_let && merge.matched != MATCHED_PIPELINE)
			dp_bad_spec(location, "variables are for stages of \"whenMatched\"");
		if ((merge.matched == MATCHED_FAIL || merge.matched == MATCHED_KEEP) &&
			merge.missing != MISSING_INSERT)
			dp_bad_spec(location, "\"whenMatched\" and \"whenNotMatched\" write nothing");
	}
	relid = target_relation(q, &into, true, location, &name);
	if (!OidIsValid(relid))
	{
		if (merge.missing != MISSING_INSERT)
			ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
							errmsg("relation \"%s\" does not exist", name),
							errdetail("At path \"%s\".", dp_location_text(location))));
		if (merge.on != NIL)
			dp_bad_spec(location, "a new collection has a unique index on \"_id\" only");
		add_write(q,
				  psprintf("SELECT %s.collection_create(%s::pg_catalog.text)", own,
						   quote_literal_cstr(name)),
				  NULL);
		merge.target.name = unconstify(char *, name);
		merge.target.doc = "doc";
		merge.target.key = "_id";
		merge.target.insert = psprintf("INSERT INTO %s AS t (doc) SELECT s.doc", name);
		merge.target.same = psprintf("t._id OPERATOR(%s.=) (s.doc OPERATOR(%s.->) "
									 "'_id'::pg_catalog.text)",
									 own, own);
	}
	else
	{
		dp_collection_target(relid, &merge.target);
		q->pipeline->target = relid;
	}
	if (merge.on == NIL && merge.target.key == NULL)
		merge.on = list_make1("_id");
	merge.repeated = merge.matched != MATCHED_FAIL && merge.matched != MATCHED_KEEP &&
					 (merge.on != NIL || !ids_differ(q));

	initStringInfo(&before);
	initStringInfo(&after);
	if (OidIsValid(merge.target.hiding))
	{
		appendStringInfo(&before,
						 "SELECT docpatterns._pattern_make_way('%u'::pg_catalog.regclass, "
						 "pg_catalog.array_agg(s.doc)) FROM ",
						 merge.target.hiding);
		input(q, &merge, &before, &after);
		add_write(q, before.data, after.data);
		initStringInfo(&before);
		initStringInfo(&after);
	}
	if (merge.target.change != NULL && merge.matched != MATCHED_KEEP &&
		merge.matched != MATCHED_FAIL)
	{
		merge_split(q, &merge, location);
		return;
	}
	if (merge.missing == MISSING_INSERT && !(merge.repeated && merge.matched == MATCHED_PIPELINE))
	{
		appendStringInfo(&before, "%s FROM ", merge.target.insert);
		input(q, &merge, &before, &after);
		if (merge.matched != MATCHED_FAIL)
		{
			ListCell *lc;

			appendStringInfoString(&after, " ON CONFLICT (");
			if (merge.on == NIL)
				appendStringInfoString(&after, merge.target.key);
			foreach(lc, merge.on)
				appendStringInfo(&after, "%s(%s OPERATOR(%s.->) %s)",
								 foreach_current_index(lc) > 0 ? ", " : "", merge.target.doc, own,
								 dp_stage_sql_path(lfirst(lc)));
			if (merge.matched == MATCHED_KEEP)
				appendStringInfoString(&after, ") DO NOTHING");
			else
				appendStringInfo(&after, ") DO UPDATE SET %s = %s", merge.target.doc,
								 changed(q, &merge, psprintf("excluded.%s", merge.target.doc)));
		}
		add_write(q, before.data, after.data);
		return;
	}
	appendStringInfo(&before, "MERGE INTO %s AS t USING ", merge.target.name);
	input(q, &merge, &before, &after);
	appendStringInfo(&after, " ON %s WHEN MATCHED THEN UPDATE SET %s = %s", conditions(q, &merge),
					 merge.target.doc, changed(q, &merge, "s.doc"));
	if (merge.missing == MISSING_FAIL)
		appendStringInfo(&after,
						 " WHEN NOT MATCHED THEN INSERT (%s) VALUES "
						 "(docpatterns._merge_fail(s.doc, %s))",
						 merge.target.doc, merge.at);
	else if (merge.missing == MISSING_INSERT)
		appendStringInfo(&after, " WHEN NOT MATCHED THEN INSERT (%s%s%s) VALUES (%s%s%s)",
						 merge.target.id == NULL ? "" : merge.target.key,
						 merge.target.id == NULL ? "" : ", ", merge.target.doc,
						 merge.target.id == NULL ? "" : merge.target.id,
						 merge.target.id == NULL ? "" : ", ",
						 each(q, &merge, psprintf("NULL::%s.bson", own)));
	add_write(q, before.data, after.data);
}

/*
 * The relation that a stage writes to: a name, or {db: schema, coll: name}.  $merge takes an empty
 * schema for none.  Invalid if it does not exist; then *name is how SQL spells it.
 */
static Oid
target_relation(DpQuery *q, const DpValue *into, bool merges, const DpLocation *location,
				const char **name)
{
	List *names;
	RangeVar *relation;

	if (q->pipeline->depth > 1)
		dp_bad_spec(location, "a pipeline inside a stage cannot write");
	if (into->type == DP_TYPE_DOCUMENT)
	{
		struct
		{
			DpOption name, schema, series;
		} o;
		const char *schema = "";
		const char *collection;

		dp_stage_options(into, location, "a collection", "coll ?db ?timeseries", &o);
		collection = dp_stage_string(&o.name.value, &o.name.location);
		if (dp_option_given(&o.schema) && !(merges && o.schema.value.type == DP_TYPE_NULL))
		{
			schema = dp_stage_string(&o.schema.value, &o.schema.location);
			if (schema[0] == '\0' && !merges)
				dp_bad_spec(&o.schema.location, "the name of a schema must not be empty");
		}
		if (dp_option_given(&o.series) && o.series.value.type != DP_TYPE_NULL)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
							errmsg("time series collections are not supported"),
							errdetail("At path \"%s\".", dp_location_text(&o.series.location)),
							errhint("Write to a relation of the bucket pattern.")));
		names =
			textToQualifiedNameList(cstring_to_text(schema[0] == '\0'
														? collection
														: psprintf("%s.%s", schema, collection)));
	}
	else
		names = textToQualifiedNameList(cstring_to_text(dp_stage_string(into, location)));
	relation = makeRangeVarFromNameList(names);
	if (relation->relname[0] == '$')
		dp_bad_spec(location, "the name of a collection must not begin with a dollar sign");
	*name = quote_qualified_identifier(relation->schemaname, relation->relname);
	return RangeVarGetRelid(relation, NoLock, true);
}

static void
merge_on(Merge *merge, const DpValue *spec, const DpLocation *location)
{
	DpIter iter;
	DpValue field;

	if (spec->type != DP_TYPE_ARRAY)
		merge->on = list_make1(unconstify(char *, dp_stage_string(spec, location)));
	else
	{
		dp_iter_init_value(&iter, spec);
		while (dp_iter_next_value(&iter, &field))
			merge->on = lappend(merge->on, unconstify(char *, dp_stage_string(&field, location)));
		if (merge->on == NIL)
			dp_bad_spec(location, "$merge must have a field in \"on\"");
	}
	for (int i = 0; i < list_length(merge->on); i++)
	{
		dp_stage_check_field(list_nth(merge->on, i), location);
		for (int j = 0; j < i; j++)
			if (strcmp(list_nth(merge->on, i), list_nth(merge->on, j)) == 0)
				dp_bad_spec(location, "field \"%s\" is there twice",
							(char *) list_nth(merge->on, i));
	}
	if (list_length(merge->on) == 1 && strcmp(linitial(merge->on), "_id") == 0)
		merge->on = NIL;
}

/* The position of a string among those that are allowed. */
static int
choice(const DpValue *spec, const char *const *names, int n, const DpLocation *location)
{
	const char *s = dp_stage_string(spec, location);
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < n; i++)
	{
		if (strcmp(s, names[i]) == 0)
			return i;
		appendStringInfo(&list, "%s\"%s\"", i > 0 ? ", " : "", names[i]);
	}
	dp_bad_spec(location, "expected one of %s instead of \"%s\"", list.data, s);
}

static void
merge_stages(Merge *merge, const DpValue *spec, const DpLocation *location)
{
	DpIter iter;
	DpValue stage;
	int n = 0;

	merge->matched = MATCHED_PIPELINE;
	merge->stages = *spec;
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next_value(&iter, &stage))
	{
		DpLocation inner = dp_location_index(location, n++);

		dp_update_stage_check(&stage, DP_EXPR_LET | DP_EXPR_STAGE, &inner);
	}
}

/* Variables for the stages of whenMatched, which see the new document. */
static void
merge_let(Merge *merge, const DpValue *spec, const DpLocation *location)
{
	DpIter iter;
	DpElement e;

	dp_stage_document(spec, location);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		DpLocation inner = dp_location_field(location, &e);

		dp_expr_check_variable(e.name, e.namelen, dp_location_text(&inner));
		if (strcmp(e.name, "new") == 0 &&
			(e.value.type != DP_TYPE_STRING || strcmp(DP_STRING_DATA(&e.value), "$$ROOT") != 0))
			dp_bad_spec(&inner, "variable \"new\" is the new document, \"$$ROOT\"");
		(void) dp_expr_compile(&e.value, DP_EXPR_LET, dp_location_text(&inner));
	}
	merge->let = dp_sql_document(spec);
}

/* Whether no two documents of the result have the same _id. */
static bool
ids_differ(DpQuery *q)
{
	static const char *const keep[] = { "$match", "$sort", "$limit", "$skip", "$sample", "$merge" };
	static const char *const change[] = { "$project", "$set", "$addFields", "$unset" };
	static const char *const group[] = { "$group", "$bucket", "$bucketAuto", "$sortByCount" };
	DpDocLookup found = { 0 };
	bool differ;
	ListCell *lc;

	if (OidIsValid(q->relid) && !dp_row_lookup(q->relid, "_id", false, &found))
		dp_collection_lookup(q->relid, dp_path_of_field("_id"), &found);
	differ = found.is_key;
	foreach(lc, q->stages)
	{
		DpStageSpec *s = lfirst(lc);
		bool kept = false;

		for (int i = 0; i < lengthof(keep); i++)
			kept = kept || strcmp(s->name, keep[i]) == 0;
		for (int i = 0; i < lengthof(change); i++)
			kept = kept || (strcmp(s->name, change[i]) == 0 && !changes_id(&s->spec, i == 0));
		differ = differ && kept;
		for (int i = 0; i < lengthof(group); i++)
			differ = differ || strcmp(s->name, group[i]) == 0;
	}
	return differ;
}

/* Whether fields of a stage give the _id another value; without one it gets a new value. */
static bool
changes_id(const DpValue *fields, bool projects)
{
	DpIter iter;
	DpElement e;

	if (!dp_type_is_container(fields->type))
		return fields->type == DP_TYPE_STRING && strncmp(DP_STRING_DATA(fields), "_id.", 4) == 0;
	dp_iter_init_value(&iter, fields);
	while (dp_iter_next(&iter, &e))
		if (strncmp(e.name, "_id.", 4) == 0 ||
			(strcmp(e.name, "_id") == 0 &&
			 !(projects && (dp_type_is_number(e.value.type) || e.value.type == DP_TYPE_BOOL))) ||
			(fields->type == DP_TYPE_ARRAY && changes_id(&e.value, false)))
			return true;
	return false;
}

/*
 * The result as a FROM item s, before and after its query: a document for each key.  Documents with
 * the same key become what applying them in their order makes of them; stages of whenMatched need
 * all of them, in docs.
 */
static void
input(DpQuery *q, Merge *merge, StringInfo before, StringInfo after)
{
	const char *own = q->pipeline->own;
	const char *key = psprintf("s.doc OPERATOR(%s.->) '_id'::pg_catalog.text", own);
	const char *docs = "pg_catalog.array_agg(s.doc ORDER BY s.n)";
	ListCell *lc;

	if (merge->on != NIL)
	{
		StringInfoData values;

		initStringInfo(&values);
		foreach(lc, merge->on)
			appendStringInfo(&values, "%ss.doc OPERATOR(%s.->) %s",
							 foreach_current_index(lc) > 0 ? ", " : "", own,
							 dp_stage_sql_path(lfirst(lc)));
		key = list_length(merge->on) == 1 ? values.data
										  : psprintf("%s.bson_array(%s)", own, values.data);
	}
	if (merge->repeated)
		appendStringInfo(before,
						 "(SELECT %s AS doc FROM (SELECT s.doc, %s AS k, "
						 "pg_catalog.row_number() OVER () AS n FROM ",
						 merge->matched == MATCHED_MERGE
							 ? psprintf("%s.bson_merge_agg(s.doc ORDER BY s.n)", own)
						 : merge->matched == MATCHED_REPLACE
							 ? "(pg_catalog.array_agg(s.doc ORDER BY s.n DESC))[1]"
							 : psprintf("%s AS docs, (%s)[1]", docs, docs),
						 key);
	if (merge->on != NIL)
		appendStringInfo(before, "(SELECT %s AS doc FROM ", fields_filled(merge));
	appendStringInfoChar(before, '(');
	appendStringInfoString(after, ") AS s");
	if (merge->on != NIL)
		appendStringInfoString(after, ") AS s");
	if (merge->repeated)
		appendStringInfoString(after,
							   ") AS s GROUP BY s.k, CASE WHEN s.k IS NULL THEN s.n END) AS s");
}

/* Changes whole documents, of which rows have a part: each row in its own call. */
static void
merge_split(DpQuery *q, Merge *merge, const DpLocation *location)
{
	const char *own = q->pipeline->own;
	const char *new = "s.doc";
	const char *same = conditions(q, merge);
	StringInfoData before;
	StringInfoData after;

	if (merge->matched == MATCHED_PIPELINE)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("$merge cannot change split documents by stages"),
						errdetail("At path \"%s\".", dp_location_text(location)),
						errhint("Use whenMatched: \"merge\" or \"replace\".")));
	if (merge->on != NIL)
		new = psprintf("%s.bson_unset(%s, '_id'::pg_catalog.text)", own, new);
	initStringInfo(&before);
	initStringInfo(&after);
	appendStringInfoString(&before, "WITH s AS MATERIALIZED (SELECT s.doc FROM ");
	input(q, merge, &before, &after);
	/* {$replaceWith: {$mergeObjects: [.., {$literal: new}]}} */
	appendStringInfo(&after,
					 "), u AS MATERIALIZED (SELECT %s, NULL, NULL, NULL, %s.bson_array("
					 "%s.bson_build('$replaceWith'::pg_catalog.text, %s.bson_build("
					 "'$mergeObjects'::pg_catalog.text, %s.bson_array(%s, %s.bson_build("
					 "'$literal'::pg_catalog.text, %s))))), NULL, false) FROM %s AS t, s "
					 "WHERE %s) ",
					 merge->target.change, own, own, own, own,
					 merge->matched == MATCHED_MERGE ? "'$$ROOT'::pg_catalog.text"
													 : psprintf("'{_id: \"$_id\"}'::%s.bson", own),
					 own, new, merge->target.name, same);
	if (merge->missing == MISSING_DISCARD)
		appendStringInfoString(&after, "SELECT pg_catalog.count(*) FROM u");
	else
		appendStringInfo(&after,
						 "%s FROM s WHERE NOT EXISTS (SELECT FROM %s AS t WHERE %s) AND "
						 "(SELECT pg_catalog.count(*) FROM u) IS NOT NULL",
						 merge->missing == MISSING_INSERT
							 ? merge->target.insert
							 : psprintf("SELECT docpatterns._merge_fail(s.doc, %s)", merge->at),
						 merge->target.name, same);
	add_write(q, before.data, after.data);
}

/* The new version of an existing document t, given the new document. */
static char *
changed(DpQuery *q, Merge *merge, const char *new)
{
	const char *own = q->pipeline->own;
	const char *let = dp_query_let(q);
	char *old = psprintf("t.%s", merge->target.doc);

	if (merge->matched == MATCHED_PIPELINE && merge->repeated)
		return each(q, merge, old);
	if (merge->matched == MATCHED_PIPELINE)
		return psprintf("docpatterns._merge_id(%s, docpatterns._update(%s, %s, docpatterns._let("
						"%s, %s, %s%s.bson_build('new'::pg_catalog.text, %s))), %s)",
						old, old, dp_sql_value(&merge->stages), new, merge->let,
						strcmp(let, "NULL") == 0 ? "" : psprintf("%s OPERATOR(%s.||) ", let, own),
						own, new, merge->at);
	/* other fields identify documents, which keep their _id */
	if (merge->on != NIL)
		new = psprintf("%s.bson_unset(%s, '_id'::pg_catalog.text)", own, new);
	return merge->matched == MATCHED_REPLACE ? psprintf("%s", new)
											 : psprintf("%s OPERATOR(%s.||) %s", old, own, new);
}

/* What the stages make of a document and, one after the other, all documents with its key. */
static char *
each(DpQuery *q, Merge *merge, const char *old)
{
	const char *let = dp_query_let(q);

	return psprintf("docpatterns._merge_each(%s, s.docs, %s, %s, %s, %s)", old,
					dp_sql_value(&merge->stages), merge->let,
					strcmp(let, "NULL") == 0 ? psprintf("'{}'::%s.bson", q->pipeline->own) : let,
					merge->at);
}

/* That a row s is the same document as t. */
static char *
conditions(DpQuery *q, Merge *merge)
{
	StringInfoData sql;
	ListCell *lc;

	if (merge->on == NIL)
		return merge->target.same;
	initStringInfo(&sql);
	foreach(lc, merge->on)
	{
		char *path = dp_stage_sql_path(lfirst(lc));

		appendStringInfo(&sql,
						 "%s(t.%s OPERATOR(%s.->) %s) OPERATOR(%s.=) (s.doc OPERATOR(%s.->) %s)",
						 sql.len > 0 ? " AND " : "", merge->target.doc, q->pipeline->own, path,
						 q->pipeline->own, q->pipeline->own, path);
	}
	return sql.data;
}

/* The document s with all fields that identify it; without an _id it is another one. */
static char *
fields_filled(Merge *merge)
{
	char *doc = "s.doc";
	ListCell *lc;

	foreach(lc, merge->on)
		if (strcmp(lfirst(lc), "_id") != 0)
			doc = psprintf("docpatterns._merge_field(%s, %s, %s)", doc,
						   dp_stage_sql_path(lfirst(lc)), merge->at);
	return doc;
}

/* ---------------------------------------------------------------- $out */

void
dp_stage_out(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	DpDocTarget target;
	const char *name;
	Oid relid = target_relation(q, spec, false, location, &name);

	if (!OidIsValid(relid))
	{
		add_write(q,
				  psprintf("SELECT %s.collection_create(%s::pg_catalog.text)", q->pipeline->own,
						   quote_literal_cstr(name)),
				  NULL);
		add_write(q, psprintf("INSERT INTO %s AS t (doc) SELECT s.doc FROM (", name), ") AS s");
		return;
	}
	dp_collection_target(relid, &target);
	q->pipeline->target = relid;
	q->pipeline->replaces = true;
	add_write(q, psprintf("LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE", target.name), NULL);
	add_write(q, psprintf("DELETE FROM %s AS t", target.name), NULL);
	add_write(q, psprintf("%s FROM (", target.insert), ") AS s");
}

static void
add_write(DpQuery *q, const char *before, const char *after)
{
	DpWrite *write = palloc(sizeof(DpWrite));

	write->before = before;
	write->after = after;
	q->pipeline->writes = lappend(q->pipeline->writes, write);
}
