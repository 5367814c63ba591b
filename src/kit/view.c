/*
 * view.c
 *		The views <table>_whole, which show documents as if no pattern had split them, and
 *		accept writes; and what they share with other views of documents in another shape
 *		(view.h).
 *
 * The view selects the table's columns and calls pattern_whole() for the document.  That function
 * reads the declarations, so the view need not change when patterns are declared or disabled.  Its
 * INSTEAD OF triggers write to the table as the user of the view, and mark the write as one of
 * whole documents for the patterns' triggers.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "utils/acl.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/registry.h"
#include "kit/rows/by_statement.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"
#include "kit/trigger.h"
#include "kit/view.h"

static void view_foreign(Relation view, const DpViewMethods *methods) pg_attribute_noreturn();
static void view_key(DpView *w, HeapTuple tuple, TupleDesc desc, DpKey *key);
static HeapTuple whole_insert(DpView *w, TriggerData *trigdata);
static HeapTuple inserted_row(DpView *w, TupleDesc desc, HeapTuple tuple, TupleDesc tupdesc);
static HeapTuple whole_update(DpView *w, TriggerData *trigdata);
static HeapTuple whole_delete(DpView *w, TriggerData *trigdata);
static bool is_split(char **args, List *decls, struct varlena *doc);
static struct varlena *
join_document(char **args, List *decls, struct varlena *doc, const DpKey *key, bool latest);
static struct varlena *
whole_store(char **args, List *decls, struct varlena *stored, struct varlena *old_whole,
			struct varlena *new_whole, DpMark *marks, int *nmarks);

/*
 * pattern_whole(doc bson, rel regclass, key anycompatible) -> bson
 *
 * The document with everything that patterns of the table have split off.  Reads the parts as the
 * table's owner, and only if the invoker can see the row's document.
 */
DP_FUNCTION(dp_pattern_whole);
Datum
dp_pattern_whole(PG_FUNCTION_ARGS)
{
	struct varlena *doc;
	List *decls;
	DpDecl *decl;
	DpKey key;
	SPIPlanPtr plan;
	bool visible;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	decls = dp_decls(PG_GETARG_OID(1));
	if (decls == NIL)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	doc = PG_GETARG_VARLENA_PP(0);
	if (!is_split(NULL, decls, doc))
		PG_RETURN_POINTER(doc);

	decl = linitial(decls);
	dp_key_of_argument(decl, fcinfo, 2, &key);
	SPI_connect();
	/* a user who may not read the column may not read the other parts */
	plan = dp_statement(decl, "SELECT {doc} IS NULL FROM {table} WHERE {key = $key}");
	visible = dp_run(decl, plan, key.values, NULL, DP_RUN_SNAPSHOT, 1, SPI_OK_SELECT) > 0;
	SPI_finish();
	PG_RETURN_POINTER(visible ? dp_whole_document(decls, doc, &key, false) : doc);
}

struct varlena *
dp_whole_document(List *decls, struct varlena *doc, const DpKey *key, bool latest)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext old;
	struct varlena *whole;

	if (!is_split(NULL, decls, doc))
		return doc;
	SPI_connect();
	whole = join_document(NULL, decls, doc, key, latest);
	old = MemoryContextSwitchTo(caller);
	whole = dp_document_to_varlena(DP_DOC_DATA(whole), DP_DOC_SIZE(whole));
	MemoryContextSwitchTo(old);
	SPI_finish();
	return whole;
}

const DpViewMethods dp_whole_view = {
	.label = "_whole", .is_changed = is_split, .show = join_document, .store = whole_store
};

/*
 * pattern_whole_trigger(): INSTEAD OF INSERT, UPDATE or DELETE on the view.
 */
DP_FUNCTION(dp_pattern_whole_trigger);
Datum
dp_pattern_whole_trigger(PG_FUNCTION_ARGS)
{
	(void) dp_trigger_require(fcinfo, "<pattern>_enable", DP_INSTEAD_OF(DP_WRITE), 0);
	return dp_view_trigger(fcinfo, &dp_whole_view);
}

Datum
dp_view_trigger(FunctionCallInfo fcinfo, const DpViewMethods *methods)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpView w;
	HeapTuple result;

	SPI_connect();
	/* keeps the declarations unchanged */
	if (!dp_view_read(trigdata->tg_relation, methods, trigdata->tg_trigger->tgargs,
					  RowExclusiveLock, &w))
		view_foreign(trigdata->tg_relation, methods);
	if (w.decls == NIL)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("cannot write to view \"%s\"",
							   RelationGetRelationName(trigdata->tg_relation)),
						errdetail("Table \"%s\" has no pattern.", dp_relation_name(w.base))));
	if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		result = whole_insert(&w, trigdata);
	else if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
		result = whole_update(&w, trigdata);
	else
		result = whole_delete(&w, trigdata);
	SPI_finish();
	return PointerGetDatum(result);
}

/*
 * INSERT: writes the document unchanged; patterns split it.  Columns without a value get their
 * defaults.
 */
static HeapTuple
whole_insert(DpView *w, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	Relation base = table_open(w->base, AccessShareLock);
	StringInfoData returning;
	bool returns;
	uint64 rows;
	Datum *values = palloc(sizeof(Datum) * (w->ncolumns + 1));
	Oid *types = palloc(sizeof(Oid) * (w->ncolumns + 1));
	StringInfoData columns;
	int n = 0;
	bool only_doc = true;
	SPIPlanPtr plan;
	int i;

	/* RETURNING needs privileges that writing does not */
	returns = pg_class_aclcheck(w->base, GetUserId(), ACL_SELECT) == ACLCHECK_OK &&
			  check_enable_rls(w->base, InvalidOid, true) != RLS_ENABLED;
	initStringInfo(&columns);
	initStringInfo(&returning);
	for (i = 0; i < w->ncolumns; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(base), w->base_attnum[i] - 1);
		bool isnull;
		Datum value = heap_getattr(trigdata->tg_trigtuple, i + 1, desc, &isnull);

		appendStringInfo(&returning, "%s%s", i > 0 ? ", " : " RETURNING ",
						 quote_identifier(NameStr(att->attname)));
		if (isnull || att->attgenerated)
			continue;
		only_doc = only_doc && i == w->doc_column;
		appendStringInfo(&columns, "%s%s", n > 0 ? ", " : "",
						 quote_identifier(NameStr(att->attname)));
		values[n] = value;
		types[n++] = att->atttypid;
	}
	table_close(base, NoLock);

	if (!returns)
		returning.data[0] = '\0';
	if (only_doc && n == 1)
		plan = dp_statement(w->decl, "INSERT INTO {relation} ({doc}) VALUES ({$1 bson}){sql}",
							w->base, returning.data);
	else
	{
		StringInfoData sql;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "INSERT INTO ");
		dp_sql_table(&sql, w->base);
		if (n == 0)
			appendStringInfoString(&sql, " DEFAULT VALUES");
		else
		{
			appendStringInfo(&sql, " (%s) VALUES (", columns.data);
			dp_sql_parameters(&sql, 1, n);
			appendStringInfoChar(&sql, ')');
		}
		appendStringInfoString(&sql, returning.data);
		plan = SPI_prepare(sql.data, n, types);
	}
	rows = dp_run(w->decl, plan, values, NULL, 0, 0,
				  returns ? SPI_OK_INSERT_RETURNING : SPI_OK_INSERT);
	if (!returns)
		return trigdata->tg_trigtuple;
	if (rows == 0)
		return NULL; /* a trigger of the table suppressed it */
	return inserted_row(w, desc, SPI_tuptable->vals[0], SPI_tuptable->tupdesc);
}

/*
 * The view's row for an inserted row, with the defaults of its columns.  The document is read again
 * if it was split.
 */
static HeapTuple
inserted_row(DpView *w, TupleDesc desc, HeapTuple tuple, TupleDesc tupdesc)
{
	Datum *values = palloc(sizeof(Datum) * w->ncolumns);
	bool *nulls = palloc(sizeof(bool) * w->ncolumns);
	int i;

	heap_deform_tuple(tuple, tupdesc, values, nulls);
	if (!nulls[w->doc_column])
	{
		struct varlena *doc = PG_DETOAST_DATUM_PACKED(values[w->doc_column]);
		DpKey key;

		if (w->methods->is_changed(w->args, w->decls, doc))
		{
			view_key(w, tuple, tupdesc, &key);
			if (dp_row_read(w->decl, &key, "", 0, &doc) && doc != NULL)
				values[w->doc_column] =
					PointerGetDatum(w->methods->show(w->args, w->decls, doc, &key, true));
		}
	}
	for (i = 0; i < w->ncolumns; i++)
	{
		if (!nulls[i] && TupleDescAttr(desc, i)->attlen == -1)
			values[i] = PointerGetDatum(PG_DETOAST_DATUM_PACKED(values[i]));
	}
	return SPI_copytuple(heap_form_tuple(desc, values, nulls));
}

/*
 * The document to store for a new whole document.  Unchanged parts stay where they are; marks tell
 * the other patterns that the document is whole.
 */
static struct varlena *
whole_store(char **args, List *decls, struct varlena *stored, struct varlena *old_whole,
			struct varlena *new_whole, DpMark *marks, int *nmarks)
{
	struct varlena *result = new_whole;
	ListCell *lc;

	foreach(lc, decls)
	{
		DpDecl *d = lfirst(lc);
		const DpPattern *m = d->methods;
		struct varlena *kept;

		if (m->keep == NULL)
			continue;
		kept = stored != NULL && old_whole != NULL && result != NULL
				   ? m->keep(d, stored, old_whole, result)
				   : NULL;
		if (kept != NULL)
			result = kept;
		else
			marks[(*nmarks)++].name = d->name;
	}
	return result;
}

/*
 * UPDATE: replaces the whole document.
 *
 * The row is locked first.  If it, or a part of it, has changed since the view was read, the
 * statement must be repeated, because that change would be lost.
 */
static HeapTuple
whole_update(DpView *w, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	DpDecl *decl = w->decl;
	struct varlena *old_whole = dp_tuple_bson(trigdata->tg_trigtuple, desc, w->doc_column + 1);
	struct varlena *new_whole = dp_tuple_bson(trigdata->tg_newtuple, desc, w->doc_column + 1);
	struct varlena *current;
	struct varlena *new_doc;
	DpKey key;
	SPIPlanPtr plan;
	Datum *values = palloc(sizeof(Datum) * (w->ncolumns + INDEX_MAX_KEYS));
	char *nulls = palloc(w->ncolumns + INDEX_MAX_KEYS + 1);
	Oid *types = palloc(sizeof(Oid) * (w->ncolumns + INDEX_MAX_KEYS));
	StringInfoData set;
	Relation base;
	DpMark *marks = palloc(sizeof(DpMark) * Max(1, list_length(w->decls)));
	int nmarks = 0;
	int n = decl->nkeys;
	bool only_doc = true;
	bool isnull;
	volatile uint64 rows = 0;
	int i;

	view_key(w, trigdata->tg_trigtuple, desc, &key);
	plan = dp_statement(decl, "SELECT {doc} FROM {table} WHERE {key = $key} FOR NO KEY UPDATE");
	if (dp_run(decl, plan, key.values, NULL, 0, 1, SPI_OK_SELECT) == 0)
		return NULL;
	{
		Datum value = dp_result(0, 1, &isnull);

		current = isnull ? NULL : (struct varlena *) DatumGetPointer(value);
	}

	if (current != NULL && old_whole != NULL &&
		!dp_same_bytes(w->methods->show(w->args, w->decls, current, &key, true), old_whole))
		ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
						errmsg("could not write the whole document due to a concurrent change"),
						errdetail("Key %s of table \"%s\".", dp_key_to_text(decl, &key),
								  dp_relation_name(w->base)),
						errhint("The statement might succeed if retried.")));

	new_doc = w->methods->store(w->args, w->decls, current, old_whole, new_whole, marks, &nmarks);

	/* the key's columns are the first parameters */
	memcpy(values, key.values, sizeof(Datum) * n);
	memset(nulls, ' ', n);
	dp_sql_key_types(decl, types);
	initStringInfo(&set);
	base = table_open(w->base, AccessShareLock);
	for (i = 0; i < w->ncolumns; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(base), w->base_attnum[i] - 1);
		bool old_null;
		Datum old = heap_getattr(trigdata->tg_trigtuple, i + 1, desc, &old_null);
		Datum new = heap_getattr(trigdata->tg_newtuple, i + 1, desc, &isnull);

		if (att->attgenerated)
			continue;
		if (i == w->doc_column)
			new = PointerGetDatum(new_doc);
		else if (old_null == isnull &&
				 (isnull || datum_image_eq(old, new, att->attbyval, att->attlen)))
			continue;
		else
			only_doc = false;
		appendStringInfo(&set, "%s%s = $%d", set.len > 0 ? ", " : "",
						 quote_identifier(NameStr(att->attname)), n + 1);
		values[n] = new;
		nulls[n] = isnull ? 'n' : ' ';
		types[n++] = att->atttypid;
	}
	table_close(base, NoLock);

	if (only_doc)
		plan = dp_row_plan_write(decl, &key, new_doc, 0, values);
	else
	{
		StringInfoData sql;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "UPDATE ");
		dp_sql_table(&sql, w->base);
		appendStringInfo(&sql, " SET %s WHERE ", set.data);
		dp_sql_key_match(&sql, decl);
		plan = SPI_prepare(sql.data, n, types);
	}

	for (i = 0; i < nmarks; i++)
		dp_mark_push(&marks[i], decl->target, marks[i].name, DP_MARK_WHOLE);
	PG_TRY();
	{
		rows = dp_run(decl, plan, values, nulls, 0, 0, SPI_OK_UPDATE);
	}
	PG_FINALLY();
	{
		if (nmarks > 0)
			dp_mark_pop(&marks[0]);
	}
	PG_END_TRY();
	return rows > 0 ? trigdata->tg_newtuple : NULL;
}

/* DELETE: deletes the row; patterns delete their parts. */
static HeapTuple
whole_delete(DpView *w, TriggerData *trigdata)
{
	SPIPlanPtr plan = dp_statement(w->decl, "DELETE FROM {table} WHERE {key = $key}");
	DpKey key;

	view_key(w, trigdata->tg_trigtuple, RelationGetDescr(trigdata->tg_relation), &key);
	if (dp_run(w->decl, plan, key.values, NULL, 0, 0, SPI_OK_DELETE) == 0)
		return NULL;
	return trigdata->tg_trigtuple;
}

bool
dp_view_read(Relation view, const DpViewMethods *methods, char **args, LOCKMODE lockmode, DpView *w)
{
	Query *query;
	RangeTblRef *ref = NULL;
	RangeTblEntry *rte = NULL;
	ListCell *lc;
	int i;

	/* a user could create the trigger on any view */
	query = view->rd_rel->relkind == RELKIND_VIEW ? get_view_query(view) : NULL;
	if (query != NULL && query->setOperations == NULL &&
		list_length(query->jointree->fromlist) == 1 &&
		IsA(linitial(query->jointree->fromlist), RangeTblRef))
	{
		ref = linitial(query->jointree->fromlist);
		rte = rt_fetch(ref->rtindex, query->rtable);
	}
	if (rte == NULL || rte->rtekind != RTE_RELATION ||
		(rte->relkind != RELKIND_RELATION && rte->relkind != RELKIND_PARTITIONED_TABLE))
		return false;

	w->methods = methods;
	w->args = args;
	w->base = rte->relid;
	LockRelationOid(w->base, lockmode);
	w->decls = dp_decls(w->base);
	if (w->decls == NIL)
		return true;
	w->decl = linitial(w->decls);
	w->ncolumns = 0;
	w->doc_column = -1;
	w->base_attnum = palloc0(sizeof(AttrNumber) * list_length(query->targetList));
	foreach(lc, query->targetList)
	{
		TargetEntry *tle = lfirst(lc);

		if (tle->resjunk)
			continue;
		if (IsA(tle->expr, Var) && ((Var *) tle->expr)->varattno > 0)
			w->base_attnum[w->ncolumns] = ((Var *) tle->expr)->varattno;
		else if (w->doc_column < 0 && exprType((Node *) tle->expr) == dp_types()->bson)
		{
			w->base_attnum[w->ncolumns] = w->decl->doc_attnum;
			w->doc_column = w->ncolumns;
		}
		else
			return false;
		w->ncolumns++;
	}
	if (w->doc_column < 0)
		return false;

	/* rows are found by the key, so all key columns are needed */
	for (i = 0; i < w->decl->nkeys; i++)
	{
		bool found = false;
		int j;

		for (j = 0; j < w->ncolumns; j++)
			found = found || w->base_attnum[j] == w->decl->keys[i].attnum;
		if (!found)
			return false;
	}
	return true;
}

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE. */
static void
view_foreign(Relation view, const DpViewMethods *methods)
{
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("cannot write to view \"%s\"", dp_relation_name(RelationGetRelid(view))),
					errdetail("Its definition is not that of a %s view.", methods->label)));
}

/* The key of a row of the view. */
static void
view_key(DpView *w, HeapTuple tuple, TupleDesc desc, DpKey *key)
{
	int i;
	int j;

	key->n = w->decl->nkeys;
	for (i = 0; i < key->n; i++)
	{
		for (j = 0; j < w->ncolumns; j++)
		{
			bool isnull;

			if (w->base_attnum[j] == w->decl->keys[i].attnum)
				key->values[i] = heap_getattr(tuple, j + 1, desc, &isnull);
		}
	}
}

/* True if any pattern has split the document. */
static bool
is_split(char **args, List *decls, struct varlena *doc)
{
	ListCell *lc;

	foreach(lc, decls)
	{
		DpDecl *decl = lfirst(lc);
		const DpPattern *m = decl->methods;

		if (m->is_split != NULL && m->is_split(decl, doc))
			return true;
	}
	return false;
}

/* The document with everything that was split off. */
static struct varlena *
join_document(char **args, List *decls, struct varlena *doc, const DpKey *key, bool latest)
{
	struct varlena *whole = doc;
	ListCell *lc;

	foreach(lc, decls)
	{
		DpDecl *decl = lfirst(lc);
		const DpPattern *m = decl->methods;

		if (m->is_split != NULL && m->is_split(decl, doc))
			whole = m->whole(decl, whole, key, latest);
	}
	return whole;
}
