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
#include "mql/pipeline/pipeline.h"
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
} Merge;

static Oid
target_relation(DpQuery *q, const DpValue *into, const DpLocation *location, const char **name);
static void merge_on(Merge *merge, const DpValue *spec, const DpLocation *location);
static int choice(const DpValue *spec, const char *const *names, int n, const DpLocation *location);
static char *let_document(DpQuery *q, const DpValue *spec, const DpLocation *location);
static char *changed(DpQuery *q, Merge *merge, const char *new);
static char *conditions(DpQuery *q, Merge *merge);
static char *fields_present(DpQuery *q, Merge *merge);
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
	DpIter iter;
	DpElement e;
	Oid relid;
	const char *name;
	StringInfoData after;
	bool has_let = false;

	merge.let = psprintf("'{}'::%s.bson", own);
	if (spec->type == DP_TYPE_DOCUMENT)
	{
		into.type = DP_TYPE_EOD;
		dp_iter_init_value(&iter, spec);
		while (dp_iter_next(&iter, &e))
		{
			DpLocation inner = dp_location_field(location, &e);

			if (e.value.type == DP_TYPE_NULL && strcmp(e.name, "into") != 0)
				continue;
			if (strcmp(e.name, "into") == 0)
				into = e.value;
			else if (strcmp(e.name, "on") == 0)
				merge_on(&merge, &e.value, &inner);
			else if (strcmp(e.name, "let") == 0)
			{
				merge.let = let_document(q, &e.value, &inner);
				has_let = true;
			}
			else if (strcmp(e.name, "whenMatched") == 0 && e.value.type == DP_TYPE_ARRAY)
			{
				merge.matched = MATCHED_PIPELINE;
				merge.stages = e.value;
			}
			else if (strcmp(e.name, "whenMatched") == 0)
				merge.matched = choice(&e.value, matched, lengthof(matched), &inner);
			else if (strcmp(e.name, "whenNotMatched") == 0)
				merge.missing = choice(&e.value, missing, lengthof(missing), &inner);
			else
				dp_bad_spec(&inner, "$merge has no option \"%s\"", e.name);
		}
		if (into.type == DP_TYPE_EOD)
			dp_bad_spec(location, "$merge must have the name of a collection in \"into\"");
		if (has_let && merge.matched != MATCHED_PIPELINE)
			dp_bad_spec(location, "variables are for stages of \"whenMatched\"");
		if ((merge.matched == MATCHED_FAIL || merge.matched == MATCHED_KEEP) &&
			merge.missing != MISSING_INSERT)
			dp_bad_spec(location, "\"whenMatched\" and \"whenNotMatched\" write nothing");
	}
	relid = target_relation(q, &into, location, &name);
	if (!OidIsValid(relid) && merge.missing != MISSING_INSERT)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation \"%s\" does not exist", name)));
	if (!OidIsValid(relid))
	{
		/* no document can match */
		add_write(q,
				  psprintf("SELECT %s.collection_create(%s::pg_catalog.text)", own,
						   quote_literal_cstr(name)),
				  NULL);
		add_write(q, psprintf("INSERT INTO %s AS t (doc) SELECT s.doc FROM (", name), ") AS s");
		return;
	}
	dp_collection_target(relid, &merge.target);
	q->pipeline->target = relid;
	if (merge.on == NIL && merge.target.key == NULL)
		merge.on = list_make1("_id");

	initStringInfo(&after);
	appendStringInfo(&after, ") AS s%s%s", merge.on == NIL ? "" : " WHERE ",
					 merge.on == NIL ? "" : fields_present(q, &merge));
	if (merge.missing == MISSING_INSERT)
	{
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
		add_write(q, psprintf("%s FROM (", merge.target.insert), after.data);
		return;
	}
	appendStringInfo(&after, ") AS s ON %s WHEN MATCHED THEN ", conditions(q, &merge));
	appendStringInfo(&after, "UPDATE SET %s = %s", merge.target.doc, changed(q, &merge, "s.doc"));
	if (merge.missing == MISSING_FAIL)
		appendStringInfo(&after,
						 " WHEN NOT MATCHED THEN INSERT (%s) VALUES "
						 "(docpatterns._merge_fail(s.doc))",
						 merge.target.doc);
	add_write(q, psprintf("MERGE INTO %s AS t USING (SELECT s.doc FROM (", merge.target.name),
			  after.data);
}

/*
 * The relation that a stage writes to: a name, or {db: schema, coll: name}.  Invalid if it does not
 * exist; then *name is how SQL spells it.
 */
static Oid
target_relation(DpQuery *q, const DpValue *into, const DpLocation *location, const char **name)
{
	List *names;
	RangeVar *relation;

	if (q->pipeline->depth > 1)
		dp_bad_spec(location, "a pipeline inside a stage cannot write");
	if (into->type == DP_TYPE_DOCUMENT)
	{
		DpIter iter;
		DpElement e;
		const char *schema = NULL;
		const char *collection = NULL;

		dp_iter_init_value(&iter, into);
		while (dp_iter_next(&iter, &e))
		{
			DpLocation inner = dp_location_field(location, &e);

			if (strcmp(e.name, "db") == 0)
				schema = dp_stage_string(&e.value, &inner);
			else if (strcmp(e.name, "coll") == 0)
				collection = dp_stage_string(&e.value, &inner);
			else
				dp_bad_spec(&inner, "a collection has no option \"%s\"", e.name);
		}
		if (collection == NULL)
			dp_bad_spec(location, "a collection must have a name in \"coll\"");
		names = textToQualifiedNameList(cstring_to_text(schema == NULL ? collection
																	   : psprintf("%s.%s", schema,
																				  collection)));
	}
	else
		names = textToQualifiedNameList(cstring_to_text(dp_stage_string(into, location)));
	relation = makeRangeVarFromNameList(names);
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

/* Variables for the stages of whenMatched, which see the new document. */
static char *
let_document(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	dp_stage_document(spec, location);
	return dp_sql_document(spec);
}

/* The new version of an existing document t, given the new document. */
static char *
changed(DpQuery *q, Merge *merge, const char *new)
{
	const char *own = q->pipeline->own;
	char *old = psprintf("t.%s", merge->target.doc);

	/* other fields identify documents, which keep their _id */
	if (merge->on != NIL && merge->matched != MATCHED_PIPELINE)
		new = psprintf("%s.bson_unset(%s, '_id'::pg_catalog.text)", own, new);
	if (merge->matched == MATCHED_REPLACE)
		return psprintf("%s", new);
	if (merge->matched == MATCHED_MERGE)
		return psprintf("%s OPERATOR(%s.||) %s", old, own, new);
	return psprintf("docpatterns._update(%s, %s, docpatterns._let(%s, %s, %s%s.bson_build("
					"'new'::pg_catalog.text, %s)))",
					old, dp_sql_value(&merge->stages), new, merge->let,
					q->let == NULL ? "" : psprintf("%s OPERATOR(%s.||) ", q->let, own), own, new);
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

/* That a row s has the fields that identify it: others than the _id are not made up. */
static char *
fields_present(DpQuery *q, Merge *merge)
{
	StringInfoData sql;
	ListCell *lc;

	initStringInfo(&sql);
	foreach(lc, merge->on)
	{
		char *path = dp_stage_sql_path(lfirst(lc));

		appendStringInfo(&sql, "%sdocpatterns._merge_field(s.doc OPERATOR(%s.->) %s, %s)",
						 sql.len > 0 ? " AND " : "", q->pipeline->own, path, path);
	}
	return sql.data;
}

/* ---------------------------------------------------------------- $out */

void
dp_stage_out(DpQuery *q, const DpValue *spec, const DpLocation *location)
{
	DpDocTarget target;
	const char *name;
	Oid relid = target_relation(q, spec, location, &name);

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
