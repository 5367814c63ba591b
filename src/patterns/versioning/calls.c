/*
 * calls.c
 *		The functions of the document versioning pattern that read history.
 *
 * Users who may read the table see its history, and that of a document if they see
 * its row.  The history of a deleted document, which has no row, is shown if
 * row-level security does not apply.
 */
#include "postgres.h"

#include "kit/shard.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parse_func.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"
#include "utils/xid8.h"

#include "bson/catalog.h"
#include "bson/diff.h"
#include "kit/rows/by_statement.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/versioning/versioning.h"

/* The newest revisions are counted from the end before they are read if they are not more than this
 */
#define NEWEST_MAX 1000

/* A document's history, as a function that users call reads it */
typedef struct History
{
	DpVersioning *v;
	DpKey key;
	bool visible;
	int64 first;          /* revisions from here on */
	struct varlena *live; /* NULL: no row */
	DpRevisionStore store;
} History;

/* For versioning_diff() */
typedef struct DiffRows
{
	DpVersioning *v;
	ReturnSetInfo *set;
} DiffRows;

static DpVersioning *versioning_argument(FunctionCallInfo fcinfo, int rel, int name);
static void history_begin(History *h, FunctionCallInfo fcinfo, int name);
static void history_end(History *h);
static struct varlena *history_document(History *h, int64 revision, bool bare);
static bool
made_by(History *h, int64 change, TimestampTz *since, text **who, FullTransactionId *transaction);
static bool asks_for_newest(PlannerInfo *root, Oid function);
static bool joins_leave(PlannerInfo *root, Node *node, int varno);
static bool sees_all(Oid relid);
static void require_select(DpVersioning *v);
static bool
store_difference(const DpPath *path, const DpValue *before, const DpValue *after, void *arg);
static Oid as_of_function(DpDecl *decl, Oid generic);

/* The declaration that arguments name. */
static DpVersioning *
versioning_argument(FunctionCallInfo fcinfo, int rel, int name)
{
	if (PG_ARGISNULL(rel))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	LockRelationOid(PG_GETARG_OID(rel),
					AccessShareLock); /* so that the declaration stays as it is */
	return dp_versioning(dp_decl_find(PG_GETARG_OID(rel), "versioning",
									  PG_ARGISNULL(name)
										  ? NULL
										  : text_to_cstring(PG_GETARG_TEXT_PP(name))));
}

/*
 * Reads the row of the key in argument 1 as the user, which checks privileges, and opens the
 * history. Connects to SPI.
 */
static void
history_begin(History *h, FunctionCallInfo fcinfo, int name)
{
	DpDecl *decl;

	h->v = versioning_argument(fcinfo, 0, name);
	decl = h->v->decl;
	dp_key_of_argument(decl, fcinfo, 1, &h->key);
	SPI_connect();
	h->visible = dp_row_read(decl, &h->key, "", DP_RUN_SNAPSHOT, &h->live);
	h->first = PG_INT64_MIN;
	if (h->visible)
		h->first = dp_versioning_first_shown(h->v, &h->key, DP_RUN_SNAPSHOT);
	else
		h->visible = sees_all(decl->target);
	dp_revisions_open(&h->store, h->v, GetActiveSnapshot());
}

static void
history_end(History *h)
{
	dp_revisions_close(&h->store);
	SPI_finish();
}

/* Whether all rows of a table are shown to the user. */
static bool
sees_all(Oid relid)
{
	return check_enable_rls(relid, InvalidOid, true) != RLS_ENABLED;
}

int64
dp_versioning_first_shown(DpVersioning *v, const DpKey *key, int flags)
{
	DpDecl *decl = v->decl;
	SPIPlanPtr plan;
	Datum last;
	bool isnull;

	if (sees_all(decl->target))
		return PG_INT64_MIN;
	dp_versioning_require(v);
	plan = dp_statement(decl,
						"SELECT pg_catalog.max(revision) FROM {relation} WHERE {side key = $key}"
						" AND operation OPERATOR(pg_catalog.=) 'd'",
						v->revisions);
	(void) dp_run(decl, plan, (Datum *) key->values, NULL, flags | DP_RUN_AS_OWNER, 1,
				  SPI_OK_SELECT);
	last = dp_result(0, 1, &isnull);
	return isnull ? PG_INT64_MIN : DatumGetInt64(last) + 1;
}

/* Raises INSUFFICIENT_PRIVILEGE unless the user may read keys and documents. */
static void
require_select(DpVersioning *v)
{
	Oid relid = v->decl->target;
	Oid user = GetUserId();
	bool may = pg_class_aclcheck(relid, user, ACL_SELECT) == ACLCHECK_OK;

	if (!may)
	{
		may = pg_attribute_aclcheck(relid, get_attnum(relid, v->decl->doc_column), user,
									ACL_SELECT) == ACLCHECK_OK;
		for (int i = 0; i < v->decl->nkeys && may; i++)
			may = pg_attribute_aclcheck(relid, get_attnum(relid, v->decl->keys[i].name), user,
										ACL_SELECT) == ACLCHECK_OK;
	}
	if (!may)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(relid));
}

/*
 * Returns the document of a revision; NULL for a deletion and if it is not known. Raises
 * INVALID_PARAMETER_VALUE without such a revision. With bare, it is without fields that patterns
 * keep, and an unknown one is an error, too.
 */
static struct varlena *
history_document(History *h, int64 revision, bool bare)
{
	DpRevision r;
	struct varlena *doc;

	if (!h->visible || revision < h->first || !dp_revisions_find(&h->store, &h->key, revision, &r))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("document %s of table \"%s\" has no revision " INT64_FORMAT,
							   dp_key_to_text(h->v->decl, &h->key),
							   dp_relation_name(h->v->decl->target), revision)));
	if (r.operation == DP_VERSION_DELETE)
		return NULL;
	if (dp_revisions_document(&h->store, &h->key, revision, h->live, bare, &doc) ==
		DP_VERSION_FOUND)
		return doc;
	if (bare)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the document in revision " INT64_FORMAT
							   " of document %s of table \"%s\" is not known",
							   revision, dp_key_to_text(h->v->decl, &h->key),
							   dp_relation_name(h->v->decl->target)),
						errdetail("No stored revision leads to it.")));
	return NULL;
}

/*
 * Returns when a change became valid, its user and transaction. Returns false if the time is not
 * known: this transaction has not committed, or the change is not recorded; then *who may be NULL,
 * and *transaction (unless NULL) invalid.
 */
static bool
made_by(History *h, int64 change, TimestampTz *since, text **who, FullTransactionId *transaction)
{
	Oid user;

	*since = 0;
	*who = NULL;
	if (transaction != NULL)
		*transaction = InvalidFullTransactionId;
	if (dp_revisions_since(&h->store, change, since, who, transaction))
		return true;
	if (dp_versioning_pending(h->v, change, &user))
	{
		char *name = GetUserNameFromId(user, true);

		if (name != NULL)
			*who = cstring_to_text(name);
		if (transaction != NULL)
			*transaction = GetTopFullTransactionIdIfAny();
	}
	return false;
}

/*
 * versioning_at(rel, key, revision, name) -> bson
 */
DP_ROUTED_FUNCTION(dp_versioning_at, DP_ROUTE_KEY, 1)
{
	MemoryContext caller = CurrentMemoryContext;
	History h;
	struct varlena *doc;

	if (PG_ARGISNULL(2))
		PG_RETURN_NULL();
	history_begin(&h, fcinfo, 3);
	doc = history_document(&h, PG_GETARG_INT64(2), false);
	if (doc != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(caller);

		doc = dp_document_to_varlena(DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
		MemoryContextSwitchTo(old);
	}
	history_end(&h);
	if (doc == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(doc);
}

/*
 * versioning_revisions(rel, key, name) -> setof (revision, since, until, operation, who,
 * transaction); and _versioning_newest(rel, key, name, newest), which may leave out all but the
 * newest ones
 */
DP_ROUTED_FUNCTION(dp_versioning_revisions, DP_ROUTE_KEY, 1)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	History h;
	DpRevision r;
	Datum values[6] = { 0 };
	bool nulls[6] = { false };
	bool any = false;
	int64 newest = PG_NARGS() > 3 && !PG_ARGISNULL(3) ? Max(PG_GETARG_INT64(3), 1) : 0;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	history_begin(&h, fcinfo, 2);
	dp_revisions_begin(&h.store, &h.key, h.first, PG_INT64_MAX);
	if (newest > 0 && newest <= NEWEST_MAX && h.visible)
	{
		int64 first = h.first;

		while (newest-- > 0 && dp_revisions_before(&h.store, &r))
			first = r.revision;
		dp_revisions_begin(&h.store, &h.key, first, PG_INT64_MAX);
	}
	while (h.visible && dp_revisions_next(&h.store, &r))
	{
		TimestampTz since;
		text *who;
		FullTransactionId transaction;
		bool stamped = made_by(&h, r.change, &since, &who, &transaction);

		CHECK_FOR_INTERRUPTS();
		if (any)
		{
			/* the one before is valid until this one is */
			values[2] = TimestampTzGetDatum(since);
			nulls[2] = !stamped;
			tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
		}
		any = true;
		values[0] = Int64GetDatum(r.revision);
		values[1] = TimestampTzGetDatum(since);
		nulls[1] = !stamped;
		values[3] = PointerGetDatum(cstring_to_text(r.operation == DP_VERSION_INSERT   ? "insert"
													: r.operation == DP_VERSION_DELETE ? "delete"
																					   : "update"));
		values[4] = PointerGetDatum(who);
		nulls[4] = who == NULL;
		values[5] = FullTransactionIdGetDatum(transaction);
		nulls[5] = !FullTransactionIdIsValid(transaction);
	}
	if (any)
	{
		nulls[2] = true;
		tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
	}
	history_end(&h);
	return (Datum) 0;
}

/*
 * Support function of versioning_revisions(): if the query is about the newest revisions, of the
 * keys that it finds, only these are read.
 */
DP_FUNCTION(dp_versioning_revisions_support);
Datum
dp_versioning_revisions_support(PG_FUNCTION_ARGS)
{
	static const Oid types[] = { REGCLASSOID, ANYOID, TEXTOID, INT8OID };
	SupportRequestSimplify *request = (SupportRequestSimplify *) PG_GETARG_POINTER(0);
	FuncExpr *call;
	FuncExpr *newest;
	Node *limit;
	Oid function;

	if (!IsA(request, SupportRequestSimplify) || request->root == NULL ||
		list_length(request->fcall->args) != 3)
		PG_RETURN_POINTER(NULL);
	call = request->fcall;
	if (!asks_for_newest(request->root, call->funcid))
		PG_RETURN_POINTER(NULL);
	limit = eval_const_expressions(NULL, copyObject(request->root->parse->limitCount));
	if (!IsA(limit, Const) && !(IsA(limit, Param) && ((Param *) limit)->paramkind == PARAM_EXTERN))
		PG_RETURN_POINTER(NULL);
	function =
		LookupFuncName(list_make2(makeString("docpatterns"), makeString("_versioning_newest")),
					   lengthof(types), types, true);
	if (!OidIsValid(function) || !dp_may_execute(function, GetUserId()))
		PG_RETURN_POINTER(NULL);
	newest = makeFuncExpr(function, call->funcresulttype, lappend(list_copy(call->args), limit),
						  InvalidOid, call->inputcollid, COERCE_EXPLICIT_CALL);
	newest->funcretset = true;
	newest->location = call->location;
	PG_RETURN_POINTER(newest);
}

/*
 * Whether a query has the form SELECT .. FROM .., function AS r WHERE .. ORDER BY r.revision DESC
 * LIMIT n, with conditions that r does not occur in: then none but the newest n of each call can be
 * in the result.
 */
static bool
asks_for_newest(PlannerInfo *root, Oid function)
{
	Query *query = root->parse;
	SortGroupClause *sort;
	TargetEntry *entry;
	Var *revision;
	ListCell *lc;
	int varno = 0;
	int n = 0;

	if (query->commandType != CMD_SELECT || query->limitCount == NULL ||
		query->limitOption != LIMIT_OPTION_COUNT || query->limitOffset != NULL ||
		query->sortClause == NIL || query->groupClause != NIL || query->groupingSets != NIL ||
		query->hasAggs || query->hasWindowFuncs || query->distinctClause != NIL ||
		query->hasTargetSRFs || query->setOperations != NULL || query->havingQual != NULL ||
		query->rowMarks != NIL)
		return false;
	foreach(lc, query->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);
		RangeTblFunction *f = rte->rtekind == RTE_FUNCTION ? linitial(rte->functions) : NULL;

		n++;
		if (f == NULL || !IsA(f->funcexpr, FuncExpr) ||
			((FuncExpr *) f->funcexpr)->funcid != function)
		{
			/* it might depend on r */
			if (rte->lateral)
				return false;
			continue;
		}
		if (varno != 0 || list_length(rte->functions) != 1)
			return false;
		varno = n;
	}
	sort = linitial(query->sortClause);
	entry = get_sortgroupclause_tle(sort, query->targetList);
	revision = (Var *) entry->expr;
	return varno != 0 && IsA(revision, Var) && revision->varno == varno &&
		   revision->varattno == 1 && revision->varlevelsup == 0 &&
		   sort->sortop == lookup_type_cache(INT8OID, TYPECACHE_GT_OPR)->gt_opr &&
		   joins_leave(root, (Node *) query->jointree, varno);
}

/* Whether no condition of a tree of inner joins names the relation. */
static bool
joins_leave(PlannerInfo *root, Node *node, int varno)
{
	ListCell *lc;
	Node *quals;

	if (IsA(node, RangeTblRef))
		return true;
	if (IsA(node, FromExpr))
	{
		foreach(lc, ((FromExpr *) node)->fromlist)
			if (!joins_leave(root, lfirst(lc), varno))
				return false;
		quals = ((FromExpr *) node)->quals;
	}
	else
	{
		JoinExpr *join = castNode(JoinExpr, node);

		if (join->jointype != JOIN_INNER || !joins_leave(root, join->larg, varno) ||
			!joins_leave(root, join->rarg, varno))
			return false;
		quals = join->quals;
	}
	return !bms_is_member(varno, pull_varnos(root, quals));
}

/*
 * _versioning_as_of(rel, key, live, at, name) -> setof (revision, since, until, doc): one row, or
 * none
 */
DP_FUNCTION(dp_versioning_as_of_one);
Datum
dp_versioning_as_of_one(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	DpVersioning *v = versioning_argument(fcinfo, 0, 4);
	struct varlena *live = PG_ARGISNULL(2) ? NULL : DP_GETARG_VARLENA(2);
	struct varlena *doc = NULL;
	DpKey key;
	DpRevisionStore store;
	DpRevision r;
	TimestampTz since = 0;
	TimestampTz until = 0;
	bool has_since;
	bool has_until;
	bool newest;
	int64 number = 0;
	int64 first = PG_INT64_MIN;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(1) || PG_ARGISNULL(3))
		return (Datum) 0;
	dp_key_of_argument(v->decl, fcinfo, 1, &key);
	require_select(v);
	if (!sees_all(v->decl->target))
	{
		/* the caller may have read the row, or made the call up */
		History h;

		history_begin(&h, fcinfo, 4);
		first = h.first;
		history_end(&h);
		if (!h.visible)
			return (Datum) 0;
	}

	dp_revisions_open(&store, v, GetActiveSnapshot());
	if (live != NULL)
		(void) dp_versioning_number(v, live, &number);
	if (dp_revisions_at(&store, &key, number, PG_GETARG_TIMESTAMPTZ(3), &r, &since, &has_since,
						&until, &has_until, &newest) &&
		r.operation != DP_VERSION_DELETE && r.revision >= first)
	{
		Datum values[4] = { 0 };
		bool nulls[4] = { false, !has_since, !has_until, false };

		if (newest && live != NULL)
			doc = live;
		else if (dp_revisions_document(&store, &key, r.revision, live, false, &doc) !=
				 DP_VERSION_FOUND)
			nulls[3] = true;
		values[0] = Int64GetDatum(r.revision);
		values[1] = TimestampTzGetDatum(since);
		values[2] = TimestampTzGetDatum(until);
		values[3] = PointerGetDatum(doc);
		tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
	}
	dp_revisions_close(&store);
	return (Datum) 0;
}

/*
 * versioning_as_of(rel, at, name) -> setof (key, revision, since, until, doc). For a constant
 * table the planner inserts the table's own function instead, see below.
 */
DP_ROUTED_FUNCTION(dp_versioning_as_of, DP_ROUTE_ROWS, 0)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	DpVersioning *v = versioning_argument(fcinfo, 0, 2);
	StringInfoData sql;
	Oid types[2] = { REGCLASSOID, TEXTOID };
	Oid type = TIMESTAMPTZOID;
	Datum args[2];
	char *query;
	Portal portal;
	Datum at = PG_GETARG_DATUM(1);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(1))
		return (Datum) 0;
	SPI_connect();
	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	appendStringInfoString(&sql, "docpatterns._versioning_as_of_query($1, $2, '$1')");
	args[0] = ObjectIdGetDatum(v->decl->target);
	args[1] = CStringGetTextDatum(v->decl->name);
	if (SPI_execute_with_args(sql.data, 2, types, args, NULL, true, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "there is no query of a history");
	query = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	portal =
		SPI_cursor_open_with_args(NULL, query, 1, &type, &at, NULL, true, CURSOR_OPT_NO_SCROLL);
	for (;;)
	{
		SPI_cursor_fetch(portal, true, 1000);
		if (SPI_processed == 0)
			break;
		for (uint64 i = 0; i < SPI_processed; i++)
			tuplestore_puttuple(set->setResult, SPI_tuptable->vals[i]);
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_cursor_close(portal);
	SPI_finish();
	return (Datum) 0;
}

/*
 * Support function of versioning_as_of(): inserts the function that versioning_enable() created
 * for the table, an inlinable SQL function, so that conditions on keys reach the primary key.
 */
DP_FUNCTION(dp_versioning_as_of_support);
Datum
dp_versioning_as_of_support(PG_FUNCTION_ARGS)
{
	Node *request = (Node *) PG_GETARG_POINTER(0);
	FuncExpr *call;
	FuncExpr *own;
	Const *rel;
	Const *name;
	DpDecl *decl = NULL;
	Oid function;
	ListCell *lc;

	if (!IsA(request, SupportRequestSimplify))
		PG_RETURN_POINTER(NULL);
	call = ((SupportRequestSimplify *) request)->fcall;
	if (list_length(call->args) != 3)
		PG_RETURN_POINTER(NULL);
	rel = linitial(call->args);
	name = lthird(call->args);
	if (!IsA(rel, Const) || rel->constisnull || !IsA(name, Const))
		PG_RETURN_POINTER(NULL);
	LockRelationOid(DatumGetObjectId(rel->constvalue),
					AccessShareLock); /* keeps the tables that it reads */
	if (!SearchSysCacheExists1(RELOID, rel->constvalue) ||
		dp_is_distributed(DatumGetObjectId(rel->constvalue)))
		PG_RETURN_POINTER(NULL);

	/* the function itself raises errors */
	foreach(lc, dp_decls(DatumGetObjectId(rel->constvalue)))
	{
		DpDecl *d = lfirst(lc);

		if (strcmp(d->pattern, "versioning") != 0 ||
			(!name->constisnull && strcmp(d->name, TextDatumGetCString(name->constvalue)) != 0))
			continue;
		if (decl != NULL)
			PG_RETURN_POINTER(NULL);
		decl = d;
	}
	if (decl == NULL)
		PG_RETURN_POINTER(NULL);
	function = as_of_function(decl, call->funcid);
	if (!OidIsValid(function) || !dp_may_execute(function, GetUserId()))
		PG_RETURN_POINTER(NULL);
	own = makeFuncExpr(function, call->funcresulttype, list_make1(lsecond(call->args)), InvalidOid,
					   InvalidOid, COERCE_EXPLICIT_CALL);
	own->funcretset = true;
	own->location = call->location;
	PG_RETURN_POINTER(own);
}

/*
 * Returns the function created for a declaration: owned by the table's owner, depending on the
 * column of documents, with the columns of the generic one. InvalidOid without one.
 */
static Oid
as_of_function(DpDecl *decl, Oid generic)
{
	Relation depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData keys[3];
	SysScanDesc scan;
	HeapTuple tuple;
	Oid result = InvalidOid;
	HeapTuple own = SearchSysCache1(PROCOID, ObjectIdGetDatum(generic));
	TupleDesc wanted = HeapTupleIsValid(own) ? build_function_result_tupdesc_t(own) : NULL;

	if (HeapTupleIsValid(own))
		ReleaseSysCache(own);
	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(decl->target));
	ScanKeyInit(&keys[2], Anum_pg_depend_refobjsubid, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(get_attnum(decl->target, decl->doc_column)));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 3, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);
		HeapTuple proc;

		if (form->classid != ProcedureRelationId)
			continue;
		proc = SearchSysCache1(PROCOID, ObjectIdGetDatum(form->objid));
		if (HeapTupleIsValid(proc))
		{
			Form_pg_proc p = (Form_pg_proc) GETSTRUCT(proc);

			if (p->proowner == decl->owner && p->prolang == SQLlanguageId && p->proretset &&
				p->provolatile == PROVOLATILE_STABLE && !p->prosecdef && p->pronargs == 1 &&
				p->proargtypes.values[0] == TIMESTAMPTZOID && p->prorettype == RECORDOID)
			{
				TupleDesc has = build_function_result_tupdesc_t(proc);

				if (has != NULL && wanted != NULL && equalTupleDescs(has, wanted))
					result = form->objid;
			}
			ReleaseSysCache(proc);
		}
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return result;
}

/*
 * _versioning_sees_all(rel) -> bool: whether the user sees deleted documents
 */
DP_FUNCTION(dp_versioning_sees_all);
Datum
dp_versioning_sees_all(PG_FUNCTION_ARGS)
{
	Oid relid = PG_GETARG_OID(0);
	DpDecl *decl = dp_decl_find(relid, "versioning", text_to_cstring(PG_GETARG_TEXT_PP(1)));

	require_select(dp_versioning(decl));
	PG_RETURN_BOOL(sees_all(relid));
}

/*
 * versioning_diff(rel, key, a, b, name) -> setof (path, old, new)
 */
DP_ROUTED_FUNCTION(dp_versioning_diff, DP_ROUTE_KEY, 1)
{
	static const uint8 nothing[DP_DOCUMENT_MIN_SIZE] = { DP_DOCUMENT_MIN_SIZE, 0, 0, 0, 0 };
	History h;
	DiffRows rows;
	struct varlena *a;
	struct varlena *b;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(2) || PG_ARGISNULL(3))
		return (Datum) 0;
	history_begin(&h, fcinfo, 4);
	a = history_document(&h, PG_GETARG_INT64(2), true);
	b = history_document(&h, PG_GETARG_INT64(3), true);
	rows.v = h.v;
	rows.set = (ReturnSetInfo *) fcinfo->resultinfo;
	dp_diff_each(a ? DP_DOC_DATA(a) : nothing, a ? DP_DOC_SIZE(a) : sizeof(nothing),
				 b ? DP_DOC_DATA(b) : nothing, b ? DP_DOC_SIZE(b) : sizeof(nothing),
				 store_difference, &rows);
	history_end(&h);
	return (Datum) 0;
}

/* A row of the result; the number of the revision is none. */
static bool
store_difference(const DpPath *path, const DpValue *before, const DpValue *after, void *arg)
{
	DiffRows *rows = arg;
	StringInfoData text;
	Datum values[3] = { 0 };
	bool nulls[3] = { false, before == NULL, after == NULL };
	bool is_number = path->nsteps == rows->v->field->nsteps;

	for (int i = 0; i < path->nsteps && is_number; i++)
		is_number =
			path->steps[i].namelen == rows->v->field->steps[i].namelen &&
			memcmp(path->steps[i].name, rows->v->field->steps[i].name, path->steps[i].namelen) == 0;
	if (is_number)
		return true;
	initStringInfo(&text);
	dp_path_to_text(&text, path);
	values[0] = PointerGetDatum(cstring_to_text_with_len(text.data, text.len));
	if (before)
		values[1] = PointerGetDatum(dp_value_to_varlena(before));
	if (after)
		values[2] = PointerGetDatum(dp_value_to_varlena(after));
	tuplestore_putvalues(rows->set->setResult, rows->set->setDesc, values, nulls);
	pfree(text.data);
	return true;
}

/*
 * versioning_field_history(rel, key, path, name) -> setof (revision, since, who, value): a row for
 * each revision that changed the value; unknown documents are skipped
 */
DP_ROUTED_FUNCTION(dp_versioning_field_history, DP_ROUTE_KEY, 1)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	History h;
	DpRevision r;
	text *pathtext;
	DpPath *path;
	struct varlena *before = NULL;
	bool any = false;
	MemoryContext context;
	MemoryContext old;
	List *numbers = NIL;
	ListCell *lc;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(2))
		return (Datum) 0;
	pathtext = PG_GETARG_TEXT_PP(2);
	path = dp_path_parse(VARDATA_ANY(pathtext), VARSIZE_ANY_EXHDR(pathtext));
	history_begin(&h, fcinfo, 3);
	dp_revisions_begin(&h.store, &h.key, h.first, PG_INT64_MAX);
	while (h.visible && dp_revisions_next(&h.store, &r))
	{
		int64 *copy = palloc(3 * sizeof(int64));

		CHECK_FOR_INTERRUPTS();
		copy[0] = r.revision;
		copy[1] = r.change;
		copy[2] = r.operation;
		numbers = lappend(numbers, copy);
	}
	context = AllocSetContextCreate(CurrentMemoryContext, "revision", ALLOCSET_DEFAULT_SIZES);
	foreach(lc, numbers)
	{
		int64 *n = lfirst(lc);
		struct varlena *doc;
		struct varlena *value = NULL;
		DpValue found;
		bool same;
		bool known = true;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(context);
		old = MemoryContextSwitchTo(context);
		if (n[2] != DP_VERSION_DELETE)
			known = dp_revisions_document(&h.store, &h.key, n[0], h.live, true, &doc) ==
					DP_VERSION_FOUND;
		if (n[2] != DP_VERSION_DELETE && known &&
			dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &found))
			value = dp_value_to_varlena(&found);
		MemoryContextSwitchTo(old);
		same = any && (value == NULL) == (before == NULL) &&
			   (value == NULL || (VARSIZE_ANY(value) == VARSIZE_ANY(before) &&
								  memcmp(value, before, VARSIZE_ANY(value)) == 0));
		if (known && !same && (any || value != NULL))
		{
			Datum values[4] = { 0 };
			bool nulls[4] = { false };
			TimestampTz since;
			text *who;

			nulls[1] = !made_by(&h, n[1], &since, &who, NULL);
			values[0] = Int64GetDatum(n[0]);
			if (!nulls[1])
				values[1] = TimestampTzGetDatum(since);
			values[2] = PointerGetDatum(who);
			nulls[2] = who == NULL;
			values[3] = PointerGetDatum(value);
			nulls[3] = value == NULL;
			tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
			if (before != NULL)
				pfree(before);
			before = value == NULL
						 ? NULL
						 : (struct varlena *) PG_DETOAST_DATUM_COPY(PointerGetDatum(value));
			any = true;
		}
	}
	history_end(&h);
	return (Datum) 0;
}
