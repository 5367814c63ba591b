/*
 * split.c
 *		Supplies collection calls with the split fields of a table, and changes whole documents
 *		with the user's privileges.
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/registry.h"
#include "kit/seen.h"
#include "kit/shard.h"
#include "kit/rows/by_statement.h"
#include "kit/sql/template.h"
#include "kit/split.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "kit/view.h"
#include "mql/collection_split.h"

/* The SQL functions of which a change consists; each keeps its compiled arguments */
typedef struct ChangeCalls
{
	FmgrInfo near;
	FmgrInfo far;
	FmgrInfo update;
} ChangeCalls;

extern Datum dp_bson_match(PG_FUNCTION_ARGS);
extern Datum dp_bson_update(PG_FUNCTION_ARGS);

static bool shaped_view(Relation view, DpView *v);
static DpSplit *split_of_view(Relation view, AttrNumber doc);
static List *split_fields(List *decls, AttrNumber doc);
static char *split_whole(const DpSplit *split);
static char *split_shown(const DpSplit *split);
static void view_open(Oid relid, DpView *v);
static char *split_change(const DpSplit *split);
static void split_row(StringInfo sql, DpDecl *decl);
static struct varlena *as_shown(const DpView *v, struct varlena *doc, const DpKey *key);
static ArrayType *documents(DpDecl *decl, const DpView *v, const DpKey *key, struct varlena *shown,
							bool changed, bool deletes, bool shows);
static ChangeCalls *change_calls(FunctionCallInfo fcinfo);
static bool lock_row(DpDecl *decl, const DpKey *key, bool deletes, struct varlena **doc);
static bool write_whole(List *decls, const DpKey *key, struct varlena *stored,
						struct varlena *old_whole, struct varlena *new_whole);
static bool delete_row(DpDecl *decl, const DpKey *key);

/*
 * For dp_split_hook: the split fields of the documents in a column of a table, or of a view that
 * shows them in another shape.
 */
DpSplit *
dp_split_of_relation(Relation rel, AttrNumber doc)
{
	DpSplit *split;
	List *fields;

	if (rel->rd_rel->relkind == RELKIND_VIEW)
		return split_of_view(rel, doc);
	fields = split_fields(dp_decls(RelationGetRelid(rel)), doc);
	if (fields == NIL)
		return NULL;
	split = palloc(sizeof(DpSplit));
	split->fields = fields;
	split->whole = split_whole;
	split->change = split_change;
	split->arg = linitial(dp_decls(RelationGetRelid(rel)));
	return split;
}

/* Without the declarations that do not concern the column. */
static List *
split_fields(List *decls, AttrNumber doc)
{
	List *fields = NIL;
	ListCell *lc;

	foreach(lc, decls)
	{
		DpDecl *d = lfirst(lc);
		const DpPattern *m = d->methods;

		if (m->split != NULL && d->doc_attnum == doc)
			fields = list_concat(fields, m->split(d));
	}
	return fields;
}

static DpSplit *
split_of_view(Relation view, AttrNumber doc)
{
	DpView v;
	DpDecl *seen;
	DpSplit *split;
	ListCell *lc;

	if (!shaped_view(view, &v) || v.doc_column + 1 != doc)
		return NULL;
	split = palloc(sizeof(DpSplit));
	split->fields = split_fields(v.decls, v.decl->doc_attnum);
	if (split->fields == NIL)
		return NULL;

	/* rows of the view are identified by its columns */
	seen = palloc(sizeof(DpDecl));
	*seen = *v.decl;
	seen->relid = RelationGetRelid(view);
	seen->keys = palloc(sizeof(DpKeyColumn) * seen->nkeys);
	memcpy(seen->keys, v.decl->keys, sizeof(DpKeyColumn) * seen->nkeys);
	for (int i = 0; i < seen->nkeys; i++)
		for (int j = 0; j < v.ncolumns; j++)
			if (v.base_attnum[j] == seen->keys[i].attnum)
				seen->keys[i].name =
					pstrdup(NameStr(TupleDescAttr(RelationGetDescr(view), j)->attname));
	foreach(lc, split->fields)
	{
		DpSplitField *field = lfirst(lc);

		if (field->search != NULL)
		{
			DpDecl *d = palloc(sizeof(DpDecl));

			*d = *(DpDecl *) field->arg;
			d->keys = seen->keys;
			field->arg = d;
		}
	}
	if (v.methods->split != NULL)
		v.methods->split(v.args, v.decls, split);
	split->whole = split_shown;
	split->change = split_change;
	split->arg = seen;
	return split;
}

/*
 * True for a view, made by a pattern, that shows stored documents in another shape.  The invoker's
 * privileges apply, as to the reads here.
 */
static bool
shaped_view(Relation view, DpView *v)
{
	TriggerDesc *triggers = dp_triggers(view);

	if (!RelationHasSecurityInvoker(view))
		return false;
	for (int i = 0; i < triggers->numtriggers; i++)
	{
		Trigger *trigger = &triggers->triggers[i];
		FmgrInfo function;

		if (!TRIGGER_FOR_INSTEAD(trigger->tgtype) ||
			get_func_namespace(trigger->tgfoid) != dp_types()->internal)
			continue;
		fmgr_info(trigger->tgfoid, &function);
		for (const DpPattern *const *p = dp_patterns; *p != NULL; p++)
		{
			const DpViewMethods *shape = (*p)->view;

			if (shape != NULL && function.fn_addr == shape->trigger &&
				trigger->tgnargs == shape->nargs)
				return dp_view_read(view, shape, trigger->tgargs, AccessShareLock, v) &&
					   v->decls != NIL;
		}
	}
	return false;
}

static char *
split_whole(const DpSplit *split)
{
	DpDecl *decl = split->arg;
	StringInfoData sql;

	initStringInfo(&sql);
	dp_sql_own_schema(&sql);
	appendStringInfo(&sql, "pattern_whole(t.%s, ", quote_identifier(decl->doc_column));
	split_row(&sql, decl);
	appendStringInfoChar(&sql, ')');
	return sql.data;
}

static char *
split_shown(const DpSplit *split)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "docpatterns._pattern_shown(");
	split_row(&sql, split->arg);
	appendStringInfoChar(&sql, ')');
	return sql.data;
}

static char *
split_change(const DpSplit *split)
{
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "docpatterns._pattern_change(");
	split_row(&sql, split->arg);
	return sql.data;
}

/* Appends the relation and the key of a row, as arguments. */
static void
split_row(StringInfo sql, DpDecl *decl)
{
	/* Citus evaluates it where the row is: in a shard */
	if (dp_is_distributed(decl->relid))
		appendStringInfoString(sql, "t.tableoid::pg_catalog.regclass, ");
	else
		appendStringInfo(sql, "'%u'::pg_catalog.regclass, ", decl->relid);
	if (decl->nkeys > 1)
		appendStringInfoString(sql, "ROW(");
	for (int i = 0; i < decl->nkeys; i++)
		appendStringInfo(sql, "%st.%s", i > 0 ? ", " : "", quote_identifier(decl->keys[i].name));
	if (decl->nkeys > 1)
		appendStringInfoChar(sql, ')');
}

/*
 * _pattern_shown(view regclass, key "any") -> bson
 *
 * What a view shows for a row's whole document; NULL if there is none.
 */
DP_FUNCTION(dp_pattern_shown);
Datum
dp_pattern_shown(PG_FUNCTION_ARGS)
{
	MemoryContext caller = CurrentMemoryContext;
	struct varlena *doc = NULL;
	DpView v;
	DpKey key;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	view_open(PG_GETARG_OID(0), &v);
	dp_key_of_argument(v.decl, fcinfo, 1, &key);
	SPI_connect();
	if (dp_row_read(v.decl, &key, "", DP_RUN_SNAPSHOT, &doc) && doc != NULL)
	{
		doc = dp_whole_view.show(NULL, v.decls, doc, &key, false);
		doc = v.methods->show(v.args, v.decls, doc, &key, false);
		MemoryContextSwitchTo(caller);
		doc = dp_document_to_varlena(DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
	}
	SPI_finish();
	if (doc == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(doc);
}

/*
 * Opens the view; raises OBJECT_NOT_IN_PREREQUISITE_STATE if it is not one that shows documents in
 * another shape, UNDEFINED_TABLE if it does not exist.
 */
static void
view_open(Oid relid, DpView *v)
{
	Relation view = try_relation_open(relid, AccessShareLock);

	if (view == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", relid)));
	if (view->rd_rel->relkind != RELKIND_VIEW || !shaped_view(view, v))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("table \"%s\" has no pattern", dp_relation_name(relid))));
	relation_close(view, NoLock);
}

/*
 * _pattern_change(rel regclass, key "any", near bson, far bson, filter bson, update bson_value,
 * array_filters bson_value, shows boolean) -> bson[]
 *
 * Updates the whole document of a row that a statement found, or deletes the row if update is NULL.
 * The row is locked first; its stored document must then match near and its whole document far, if
 * given.  Returns NULL if they do not; else an array of one element, or of two if it was changed:
 * if shows, the documents before and after, the latter NULL for a deleted row, otherwise NULLs.
 * filter is the one for positional operators.  If rel is a view, all of them refer to what it
 * shows.
 */
DP_ROUTED_FUNCTION(dp_pattern_change, DP_ROUTE_KEY, 1)
{
	ChangeCalls *calls = change_calls(fcinfo);
	bool deletes = PG_ARGISNULL(5);
	MemoryContext caller = CurrentMemoryContext;
	DpView v = { .methods = NULL };
	DpDecl *decl;
	DpKey key;
	struct varlena *stored;
	struct varlena *whole;
	struct varlena *shown = NULL;
	ArrayType *result = NULL;
	bool matches;
	bool changed = true;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	v.decls = dp_decls(PG_GETARG_OID(0));
	if (v.decls == NIL)
		view_open(PG_GETARG_OID(0), &v);
	decl = linitial(v.decls);
	dp_key_of_argument(decl, fcinfo, 1, &key);
	SPI_connect();
	matches = lock_row(decl, &key, deletes, &stored) && stored != NULL &&
			  (v.methods != NULL || dp_sees(v.decls, stored)) &&
			  (PG_ARGISNULL(2) ||
			   DatumGetBool(FunctionCall2(&calls->near, PointerGetDatum(as_shown(&v, stored, &key)),
										  PG_GETARG_DATUM(2))));
	if (matches)
	{
		whole = dp_whole_view.show(NULL, v.decls, stored, &key, true);
		shown = as_shown(&v, whole, &key);
		matches = PG_ARGISNULL(3) || DatumGetBool(FunctionCall2(&calls->far, PointerGetDatum(shown),
																PG_GETARG_DATUM(3)));
	}
	if (matches && deletes)
		matches = delete_row(decl, &key);
	else if (matches)
	{
		LOCAL_FCINFO(call, 5);
		struct varlena *updated;

		InitFunctionCallInfoData(*call, &calls->update, 5, InvalidOid, NULL, NULL);
		call->args[0].value = PointerGetDatum(shown);
		call->args[0].isnull = false;
		call->args[1] = fcinfo->args[5];
		call->args[2] = fcinfo->args[4];
		call->args[3] = fcinfo->args[6];
		call->args[4].value = BoolGetDatum(false);
		call->args[4].isnull = false;
		updated = (struct varlena *) DatumGetPointer(FunctionCallInvoke(call));
		changed = !dp_same_bytes(updated, shown);
		if (changed && v.methods != NULL)
			updated = v.methods->store(v.args, v.decls, whole, shown, updated, NULL, NULL);
		changed = changed && write_whole(v.decls, &key, stored, whole, updated);
	}
	MemoryContextSwitchTo(caller);
	if (matches)
		result = documents(decl, &v, &key, shown, changed, deletes, PG_GETARG_BOOL(7));
	SPI_finish();
	if (!matches)
		PG_RETURN_NULL();
	PG_RETURN_ARRAYTYPE_P(result);
}

/* What _pattern_change() returns of a document that was shown before. */
static ArrayType *
documents(DpDecl *decl, const DpView *v, const DpKey *key, struct varlena *shown, bool changed,
		  bool deletes, bool shows)
{
	Datum docs[2] = { PointerGetDatum(shown), (Datum) 0 };
	bool nulls[2] = { !shows, !shows || deletes };
	int n = changed ? 2 : 1;
	int lower = 1;

	if (n == 2 && !nulls[1])
	{
		struct varlena *stored;

		nulls[1] = !dp_row_read(decl, key, "", 0, &stored) || stored == NULL;
		if (!nulls[1])
			docs[1] =
				PointerGetDatum(as_shown(v, dp_whole_view.show(NULL, v->decls, stored, key, true),
										 key));
	}
	return construct_md_array(docs, nulls, 1, &n, &lower, dp_types()->bson, -1, false,
							  TYPALIGN_INT);
}

/* A document as the view shows it, if there is a view. */
static struct varlena *
as_shown(const DpView *v, struct varlena *doc, const DpKey *key)
{
	return v->methods == NULL ? doc : v->methods->show(v->args, v->decls, doc, key, true);
}

/* The functions, in fn_extra. */
static ChangeCalls *
change_calls(FunctionCallInfo fcinfo)
{
	ChangeCalls *calls = fcinfo->flinfo->fn_extra;

	if (calls != NULL)
		return calls;
	calls = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(ChangeCalls));
	calls->near.fn_addr = calls->far.fn_addr = dp_bson_match;
	calls->near.fn_nargs = calls->far.fn_nargs = 2;
	calls->update.fn_addr = dp_bson_update;
	calls->update.fn_nargs = 5;
	calls->near.fn_mcxt = calls->far.fn_mcxt = calls->update.fn_mcxt = fcinfo->flinfo->fn_mcxt;
	fcinfo->flinfo->fn_extra = calls;
	return calls;
}

/*
 * Locks the row and reads its document; false if the user sees none.  A user who may delete a row
 * but not update it cannot lock it, so the owner does.
 */
static bool
lock_row(DpDecl *decl, const DpKey *key, bool deletes, struct varlena **doc)
{
	if (!deletes)
		return dp_row_read(decl, key, " FOR NO KEY UPDATE", 0, doc);
	if (pg_class_aclcheck(decl->target, GetUserId(), ACL_DELETE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(decl->target));
	return dp_row_read(decl, key, "", 0, doc) &&
		   dp_row_read(decl, key, " FOR UPDATE", DP_RUN_AS_OWNER, doc);
}

/*
 * Replaces a whole document, with the user's privileges; false if a user's trigger suppresses it.
 */
static bool
write_whole(List *decls, const DpKey *key, struct varlena *stored, struct varlena *old_whole,
			struct varlena *new_whole)
{
	DpDecl *decl = linitial(decls);
	DpMark *marks = palloc(sizeof(DpMark) * list_length(decls));
	int nmarks = 0;
	struct varlena *doc =
		dp_whole_view.store(NULL, decls, stored, old_whole, new_whole, marks, &nmarks);
	Datum values[INDEX_MAX_KEYS + 1];
	SPIPlanPtr plan = dp_row_plan_write(decl, key, doc, 0, values);
	volatile uint64 rows = 0;

	for (int i = 0; i < nmarks; i++)
		dp_mark_push(&marks[i], decl->target, marks[i].name, DP_MARK_WHOLE);
	PG_TRY();
	{
		rows = dp_run(decl, plan, values, NULL, 0, 0, SPI_OK_UPDATE);
	}
	PG_FINALLY();
	{
		if (nmarks > 0)
			dp_mark_pop(&marks[0]);
	}
	PG_END_TRY();
	return rows > 0;
}

/* Deletes the row, with the user's privileges; false if a policy or a trigger prevents it. */
static bool
delete_row(DpDecl *decl, const DpKey *key)
{
	SPIPlanPtr plan = dp_statement(decl, "DELETE FROM {table} WHERE {key = $key}");

	return dp_run(decl, plan, (Datum *) key->values, NULL, 0, 0, SPI_OK_DELETE) > 0;
}
