/*
 * whole_calls.c
 *		What the calls for collections need of documents that patterns have
 *		split: which fields are concerned, and whole documents that are changed
 *		with the rights of the user.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "mql/collection_split.h"
#include "patterns/pattern.h"
#include "patterns/row.h"
#include "patterns/run.h"
#include "patterns/sqlgen.h"
#include "patterns/view.h"
#include "patterns/whole_calls.h"

/* How the functions of SQL are called that a change is made of; each keeps what it has compiled */
typedef struct ChangeCalls
{
	FmgrInfo	near;
	FmgrInfo	far;
	FmgrInfo	update;
} ChangeCalls;

static const char plan_lock, plan_see, plan_hold, plan_write, plan_delete;

extern Datum dp_bson_match(PG_FUNCTION_ARGS);
extern Datum dp_bson_update(PG_FUNCTION_ARGS);

static char *split_whole(const DpSplit *split);
static char *split_change(const DpSplit *split);
static void split_row(StringInfo sql, DpDecl *decl);
static ChangeCalls *change_calls(FunctionCallInfo fcinfo);
static bool lock_row(DpDecl *decl, const DpKey *key, bool deletes, struct varlena **doc);
static bool write_whole(List *decls, const DpKey *key, struct varlena *stored,
						struct varlena *old_whole, struct varlena *new_whole);
static bool delete_row(DpDecl *decl, const DpKey *key);

/*
 * For dp_split_hook: what patterns have split off the documents of a column.
 */
DpSplit *
dp_split_of_relation(Relation rel, AttrNumber doc)
{
	DpSplit    *split;
	DpDecl	   *decl = NULL;
	List	   *fields = NIL;
	ListCell   *lc;

	foreach(lc, dp_decls(RelationGetRelid(rel)))
	{
		DpDecl	   *d = lfirst(lc);
		const DpPatternMethods *m = dp_pattern_methods(d->pattern);

		if (m != NULL && m->split != NULL && d->doc_attnum == doc)
		{
			fields = list_concat(fields, m->split(d));
			decl = d;
		}
	}
	if (fields == NIL)
		return NULL;
	split = palloc(sizeof(DpSplit));
	split->fields = fields;
	split->whole = split_whole;
	split->change = split_change;
	split->arg = decl;
	return split;
}

static char *
split_whole(const DpSplit *split)
{
	DpDecl	   *decl = split->arg;
	StringInfoData sql;

	initStringInfo(&sql);
	dp_sql_own_schema(&sql);
	appendStringInfo(&sql, "pattern_whole(t.%s, ", quote_identifier(decl->doc_column));
	split_row(&sql, decl);
	appendStringInfoChar(&sql, ')');
	return sql.data;
}

static char *
split_change(const DpSplit *split)
{
	StringInfoData sql;

	initStringInfo(&sql);
	dp_sql_own_schema(&sql);
	appendStringInfoString(&sql, "_pattern_change(");
	split_row(&sql, split->arg);
	return sql.data;
}

/* The relation and the key of a row, as arguments. */
static void
split_row(StringInfo sql, DpDecl *decl)
{
	appendStringInfo(sql, "'%u'::pg_catalog.regclass, %s", decl->relid, decl->nkeys > 1 ? "ROW(" : "");
	for (int i = 0; i < decl->nkeys; i++)
		appendStringInfo(sql, "%st.%s", i > 0 ? ", " : "", quote_identifier(decl->keys[i].name));
	if (decl->nkeys > 1)
		appendStringInfoChar(sql, ')');
}

/*
 * _pattern_change(rel regclass, key "any", near bson, far bson, filter bson,
 * update bson_value, array_filters bson_value) -> boolean
 *
 * Updates the whole document of a row that a statement has found, or deletes the
 * row if update is NULL.  The row is locked first, and must then have a stored
 * document that near matches and a whole one that far matches, if they are
 * given; NULL if not, else whether it was changed.  filter is the one that
 * positional operators refer to.
 */
DP_FUNCTION(dp_pattern_change);
Datum
dp_pattern_change(PG_FUNCTION_ARGS)
{
	ChangeCalls *calls = change_calls(fcinfo);
	bool		deletes = PG_ARGISNULL(5);
	MemoryContext caller = CurrentMemoryContext;
	List	   *decls;
	DpDecl	   *decl;
	DpKey		key;
	struct varlena *stored;
	struct varlena *whole;
	bool		matches;
	bool		changed = true;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	decls = dp_decls(PG_GETARG_OID(0));
	if (decls == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s has no pattern", dp_relation_name(PG_GETARG_OID(0)))));
	decl = linitial(decls);
	dp_key_of_argument(decl, fcinfo, 1, &key);
	SPI_connect();
	matches = lock_row(decl, &key, deletes, &stored) && stored != NULL &&
		(PG_ARGISNULL(2) ||
		 DatumGetBool(FunctionCall2(&calls->near, PointerGetDatum(stored), PG_GETARG_DATUM(2))));
	if (matches)
	{
		whole = dp_whole_view.show(decls, stored, &key, true);
		matches = PG_ARGISNULL(3) ||
			DatumGetBool(FunctionCall2(&calls->far, PointerGetDatum(whole), PG_GETARG_DATUM(3)));
	}
	if (matches && deletes)
		matches = delete_row(decl, &key);
	else if (matches)
	{
		LOCAL_FCINFO(call, 5);
		struct varlena *updated;

		InitFunctionCallInfoData(*call, &calls->update, 5, InvalidOid, NULL, NULL);
		call->args[0].value = PointerGetDatum(whole);
		call->args[0].isnull = false;
		call->args[1] = fcinfo->args[5];
		call->args[2] = fcinfo->args[4];
		call->args[3] = fcinfo->args[6];
		call->args[4].value = BoolGetDatum(false);
		call->args[4].isnull = false;
		updated = (struct varlena *) DatumGetPointer(FunctionCallInvoke(call));
		changed = (DP_DOC_SIZE(updated) != DP_DOC_SIZE(whole) ||
				   memcmp(DP_DOC_DATA(updated), DP_DOC_DATA(whole), DP_DOC_SIZE(whole)) != 0) &&
			write_whole(decls, &key, stored, whole, updated);
	}
	SPI_finish();
	MemoryContextSwitchTo(caller);
	if (!matches)
		PG_RETURN_NULL();
	PG_RETURN_BOOL(changed);
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
 * Locks the row and reads its document; false if the user sees none.  Those who
 * may delete a row but not update it cannot lock it, so for them the owner does.
 */
static bool
lock_row(DpDecl *decl, const DpKey *key, bool deletes, struct varlena **doc)
{
	if (!deletes)
		return dp_row_read(decl, &plan_lock, key, " FOR NO KEY UPDATE", 0, doc);
	if (pg_class_aclcheck(decl->target, GetUserId(), ACL_DELETE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(decl->target));
	return dp_row_read(decl, &plan_see, key, "", 0, doc) &&
		dp_row_read(decl, &plan_hold, key, " FOR UPDATE", DP_RUN_AS_OWNER, doc);
}

/*
 * Writes a whole document in place of another one, with the rights of the user;
 * false if a trigger of the user's suppresses it.
 */
static bool
write_whole(List *decls, const DpKey *key, struct varlena *stored, struct varlena *old_whole,
			struct varlena *new_whole)
{
	DpDecl	   *decl = linitial(decls);
	DpMark	   *marks = palloc(sizeof(DpMark) * list_length(decls));
	int			nmarks = 0;
	struct varlena *doc = dp_whole_view.store(decls, stored, old_whole, new_whole, marks, &nmarks);
	Datum		values[INDEX_MAX_KEYS + 1];
	SPIPlanPtr	plan = dp_row_plan_write(decl, &plan_write, key, doc, values);
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

/* Deletes the row, with the rights of the user; false if a policy or a trigger keeps it. */
static bool
delete_row(DpDecl *decl, const DpKey *key)
{
	SPIPlanPtr	plan = dp_plan(decl, &plan_delete);

	if (plan == NULL)
	{
		StringInfoData sql;
		Oid			types[INDEX_MAX_KEYS];

		initStringInfo(&sql);
		appendStringInfoString(&sql, "DELETE FROM ");
		dp_sql_table(&sql, decl->target);
		appendStringInfoString(&sql, " WHERE ");
		dp_sql_key_match(&sql, decl, 1);
		dp_sql_key_types(decl, types);
		plan = dp_plan_make(decl, &plan_delete, sql.data, decl->nkeys, types);
	}
	return dp_run(decl, plan, (Datum *) key->values, NULL, 0, 0, SPI_OK_DELETE) > 0;
}
