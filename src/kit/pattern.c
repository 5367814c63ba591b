/*
 * pattern.c
 *		The verbs of all patterns: pattern_check, pattern_repair, pattern_alter,
 *		pattern_disable.
 *
 * A pattern has one SQL function for each verb, _<pattern>_<verb>.  These functions may run users'
 * code (triggers, expression indexes), so they are called here as the owner of the table in a
 * security-restricted operation: a superuser who checks a table does not lend privileges to its
 * owner.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "parser/parse_func.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "replication/logicalworker.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"
#include "utils/varlena.h"

#include "bson/catalog.h"
#include "kit/link.h"
#include "kit/note.h"
#include "kit/registry.h"
#include "kit/rows/later.h"
#include "kit/shard.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "kit/trigger.h"

static void require_seen(Oid rel);
static void require_sides(DpDecl *decl);
static char *text_argument(FunctionCallInfo fcinfo, int n);
static void put_text(const char *text, Datum *value, bool *isnull);

/* The declaration of that pattern and name on a table, or NULL. */
static DpDecl *
decl_of(Oid rel, const char *pattern, const char *name)
{
	ListCell *lc;

	foreach(lc, dp_decls(rel))
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->pattern, pattern) == 0 && strcmp(decl->name, name) == 0)
			return decl;
	}
	return NULL;
}

/*
 * _pattern_check_one(rel, pattern, name) -> rows of pattern_check
 *
 * Reads with the snapshot of the calling query.
 */
DP_FUNCTION(dp_pattern_check_one);
Datum
dp_pattern_check_one(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid rel = PG_GETARG_OID(0);
	char *pattern = text_argument(fcinfo, 1);
	char *name = text_argument(fcinfo, 2);
	uint64 rows;
	uint64 i;
	DpDecl *decl;
	Oid side;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	dp_require_owner(rel);
	decl = decl_of(rel, pattern, name);
	side = decl == NULL ? InvalidOid : dp_foreign_side(decl);
	if (OidIsValid(side))
	{
		Datum values[7] = { ObjectIdGetDatum(rel), PG_GETARG_DATUM(1), PG_GETARG_DATUM(2) };
		bool nulls[7] = { false, false, false, true };
		StringInfoData what;

		initStringInfo(&what);
		appendStringInfoString(&what, "owner of ");
		dp_sql_table(&what, side);
		values[4] = CStringGetTextDatum(what.data);
		values[5] = CStringGetTextDatum(GetUserNameFromId(dp_relation_owner(rel, false), false));
		values[6] = CStringGetTextDatum(GetUserNameFromId(dp_relation_owner(side, false), false));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		return (Datum) 0;
	}

	pgstat_report_activity(STATE_RUNNING, psprintf("pattern_check: %s \"%s\" of \"%s\"", pattern,
												   name, dp_relation_name(rel)));
	SPI_connect();
	rows = dp_pattern_call_hook(rel, pattern, "check", name, 0, NULL, NULL, true);
	for (i = 0; i < rows; i++)
	{
		Datum values[7];
		bool nulls[7] = { false };
		int j;

		values[0] = ObjectIdGetDatum(rel);
		values[1] = PG_GETARG_DATUM(1);
		values[2] = PG_GETARG_DATUM(2);
		for (j = 0; j < 4; j++)
			values[3 + j] =
				SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, j + 1, &nulls[3 + j]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	SPI_finish();
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	return (Datum) 0;
}

/*
 * Raises T_R_SERIALIZATION_FAILURE if one of the table's declarations is newer than the
 * transaction's snapshot: catalog queries would return the old one, or both.
 */
static void
require_seen(Oid rel)
{
	Relation triggers;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;

	if (!IsolationUsesXactSnapshot())
		return;
	triggers = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(rel));
	scan = systable_beginscan(triggers, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(tuple);
		TransactionId xmin = HeapTupleHeaderGetXmin(tuple->t_data);

		if (strncmp(NameStr(trigger->tgname), "zz_docpatterns", strlen("zz_docpatterns")) == 0 &&
			!TransactionIdIsCurrentTransactionId(xmin) &&
			XidInMVCCSnapshot(xmin, GetTransactionSnapshot()))
			ereport(
				ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errdetail(
					 "A pattern of table \"%s\" was declared or altered after this transaction took its snapshot.",
					 dp_relation_name(rel)),
				 errhint("Retry the transaction.")));
	}
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);
}

/*
 * Raises OBJECT_NOT_IN_PREREQUISITE_STATE if a repair would create a table again whose contents
 * cannot be recomputed, which would hide that they are lost.
 */
static void
require_sides(DpDecl *decl)
{
	const DpPattern *pattern = dp_pattern_find(decl->pattern);
	int i;

	for (i = 0; pattern->keeps_originals && i < DP_LINK_OPTIONS; i++)
	{
		char *link_id = dp_decl_text(decl, dp_link_options[i]);
		StringInfoData sql;
		DpActor self;
		bool empty;

		if (link_id == NULL || OidIsValid(dp_link_side(link_id, decl->target)))
			continue;
		initStringInfo(&sql);
		appendStringInfoString(&sql, "SELECT FROM ");
		dp_sql_table(&sql, decl->target);
		SPI_connect();
		dp_owner_begin(decl->owner, &self);
		if (SPI_execute(sql.data, true, 1) != SPI_OK_SELECT)
			elog(ERROR, "could not read relation %u", decl->target);
		dp_owner_end(&self);
		empty = SPI_processed == 0;
		SPI_finish();
		if (!empty)
			dp_side_is_missing(decl);
	}
}

/*
 * _pattern_call(verb, rel, pattern, name, options bson) -> text
 *
 * Calls _<pattern>_<verb>(rel, name [, options]) as the table's owner.  Any options of a repair
 * accept the loss of lost data.
 */
DP_FUNCTION(dp_pattern_call);
Datum
dp_pattern_call(PG_FUNCTION_ARGS)
{
	char *verb;
	bool repair;
	Oid rel;
	DpDecl *decl;
	char *result = NULL;
	Oid type = dp_types()->bson;
	Datum value;
	text *out = NULL;
	MemoryContext caller = CurrentMemoryContext;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the table and the name of the pattern must not be null")));
	verb = text_argument(fcinfo, 0);
	rel = PG_GETARG_OID(1);
	dp_require_owner(rel);
	if (strspn(verb, "abcdefghijklmnopqrstuvwxyz_") != strlen(verb))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("unknown operation \"%s\"", verb)));
	/* all others write, not always by statements, and take locks that a standby does not allow */
	if (strcmp(verb, "test") != 0)
		PreventCommandIfReadOnly(psprintf("%s of a pattern", verb));

	/*
	 * options are read, changed and written back by one transaction at a time, without blocking
	 * writers
	 */
	if (strcmp(verb, "alter") == 0)
		LockRelationOid(rel, ShareUpdateExclusiveLock);
	repair = strcmp(verb, "repair") == 0;
	if (repair || strcmp(verb, "alter") == 0 || strcmp(verb, "disable") == 0)
		require_seen(rel);
	dp_allow_triggers(rel);
	decl = decl_of(rel, text_argument(fcinfo, 2), text_argument(fcinfo, 3));
	if (decl != NULL)
		dp_require_own_sides(decl);
	if (repair)
		dp_note_repair(rel);
	if (decl != NULL && repair && PG_ARGISNULL(4))
		require_sides(decl);

	SPI_connect();
	value = PG_ARGISNULL(4) ? (Datum) 0 : PG_GETARG_DATUM(4);
	/* altering is the same for all patterns, except for functions that _pattern_alter() calls */
	if (dp_pattern_call_hook(rel, strcmp(verb, "alter") == 0 ? "pattern" : text_argument(fcinfo, 2),
							 verb, text_argument(fcinfo, 3), PG_ARGISNULL(4) || repair ? 0 : 1,
							 &type, &value, false) == 1)
	{
		result = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
		if (result != NULL)
		{
			MemoryContext old = MemoryContextSwitchTo(caller);

			out = cstring_to_text(result);
			MemoryContextSwitchTo(old);
		}
	}
	SPI_finish();
	decl = repair ? decl_of(rel, text_argument(fcinfo, 2), text_argument(fcinfo, 3)) : NULL;
	if (decl != NULL && decl->methods->side != NULL && !dp_is_distributed(rel))
	{
		LockRelationOid(rel, RowExclusiveLock);
		decl->methods->side->drop_orphans(decl);
	}
	if (out == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(out);
}

/* True if a declaration is on a table that its pattern created. */
static bool
on_created_table(Oid rel, const char *name)
{
	ListCell *lc;

	foreach(lc, dp_decls(rel))
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->name, name) == 0 && dp_pattern_find(decl->pattern)->creates_table)
			return true;
	}
	return false;
}

/*
 * pattern_guard_trigger(): rejects writes to side tables, BEFORE any write, for each statement.
 * AFTER INSERT: see later.h.
 * Users may have foreign keys on a part of a table that a pattern created, which change and delete
 * its rows (only they set this security context).
 */
DP_FUNCTION(dp_pattern_guard_trigger);
Datum
dp_pattern_guard_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata =
		dp_trigger_require(fcinfo, "<pattern>_enable",
						   DP_BEFORE_STATEMENT(DP_ANY) | DP_AFTER_STATEMENT(DP_INSERT), 3);
	Oid relid = RelationGetRelid(trigdata->tg_relation);

	if (TRIGGER_FIRED_AFTER(trigdata->tg_event))
	{
		dp_later_end(relid);
		return PointerGetDatum(NULL);
	}
	if (dp_trigger_elsewhere(trigdata))
		return PointerGetDatum(NULL);
	if (dp_marked(relid, NULL) == DP_MARK_NONE && !dp_marked_derived(relid, NULL) &&
		!IsLogicalWorker() &&
		(dp_maintain ||
		 !has_privs_of_role(dp_acting_user(), trigdata->tg_relation->rd_rel->relowner)))
	{
		Oid main = dp_link_main(trigdata->tg_trigger->tgargs[1], relid);
		const char *name = trigdata->tg_trigger->tgargs[2];

		if (InNoForceRLSOperation() && OidIsValid(main) && on_created_table(main, name))
			return PointerGetDatum(NULL);
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot write to table \"%s\" directly because a pattern maintains it",
						dp_relation_name(relid)),
				 OidIsValid(main) ? errhint("Write to table \"%s\", which has the pattern \"%s\".",
											dp_relation_name(main), name)
								  : 0));
	}
	return PointerGetDatum(NULL);
}

/*
 * _pattern_require_owner(rel)
 */
DP_FUNCTION(dp_pattern_require_owner);
Datum
dp_pattern_require_owner(PG_FUNCTION_ARGS)
{
	dp_require_owner(PG_GETARG_OID(0));
	PG_RETURN_VOID();
}

/*
 * _pattern_object_name(a, b, label) -> text: a name for a generated object,
 * shortened as PostgreSQL shortens the names of indexes; NULL if a is NULL.
 * The label is never shortened: one that leaves no room for the rest is an
 * error (42622).
 */
DP_FUNCTION(dp_pattern_object_name);
Datum
dp_pattern_object_name(PG_FUNCTION_ARGS)
{
	char *second = PG_ARGISNULL(1) ? NULL : text_argument(fcinfo, 1);
	char *label = PG_ARGISNULL(2) ? NULL : text_argument(fcinfo, 2);

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (label && strlen(label) > NAMEDATALEN / 2)
		ereport(ERROR, errcode(ERRCODE_NAME_TOO_LONG),
				errmsg("label of a generated name is too long"),
				errdetail("It has %zu bytes; the limit is %d bytes.", strlen(label),
						  NAMEDATALEN / 2));
	PG_RETURN_TEXT_P(cstring_to_text(makeObjectName(text_argument(fcinfo, 0), second, label)));
}

uint64
dp_pattern_call_hook(Oid rel, const char *pattern, const char *verb, const char *name, int nextra,
					 Oid *types, Datum *values, bool read_only)
{
	StringInfoData sql;
	char *function = psprintf("_%s_%s", pattern, verb);
	Oid argtypes[3] = { REGCLASSOID, TEXTOID };
	Datum args[3];
	DpActor self;
	int rc;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT * FROM ");
	appendStringInfo(&sql, "docpatterns.%s($1, $2%s)", quote_identifier(function),
					 nextra > 0 ? ", $3" : "");
	args[0] = ObjectIdGetDatum(rel);
	args[1] = CStringGetTextDatum(name);
	if (nextra > 0)
	{
		argtypes[2] = types[0];
		args[2] = values[0];
	}

	if (!OidIsValid(dp_pattern_hook(pattern, verb, 2 + nextra, argtypes)))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
						errmsg("the %s pattern has no function \"%s\"", pattern, function)));
	dp_owner_begin(dp_relation_owner(rel, false), &self);
	rc = SPI_execute_with_args(sql.data, 2 + nextra, argtypes, args, NULL, read_only, 0);
	dp_owner_end(&self);
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute_with_args returned %s", SPI_result_code_string(rc));
	return SPI_processed;
}

/*
 * _pattern_pending_keys(rel, pattern, name) -> (key record)
 *
 * Keys of the rows that pattern_build may have to change, read as the table's owner.
 */
DP_FUNCTION(dp_pattern_pending_keys);
Datum
dp_pattern_pending_keys(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid rel = PG_GETARG_OID(0);
	char *query;
	DpDecl *decl;
	Portal portal;
	DpActor self;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (rsinfo->expectedDesc->natts != 1 ||
		TupleDescAttr(rsinfo->expectedDesc, 0)->atttypid != RECORDOID)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("result must have one column of type record")));
	dp_require_owner(rel);
	decl = decl_of(rel, text_argument(fcinfo, 1), text_argument(fcinfo, 2));
	if (decl != NULL)
		dp_require_own_sides(decl);

	SPI_connect();
	if (dp_pattern_call_hook(rel, text_argument(fcinfo, 1), "pending", text_argument(fcinfo, 2), 0,
							 NULL, NULL, true) != 1)
		elog(ERROR, "a pattern's function returned no row");
	query = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);

	dp_owner_begin(dp_relation_owner(rel, false), &self);
	portal =
		SPI_cursor_open_with_args(NULL, query, 0, NULL, NULL, NULL, true, CURSOR_OPT_NO_SCROLL);
	for (;;)
	{
		uint64 i;

		CHECK_FOR_INTERRUPTS();
		SPI_cursor_fetch(portal, true, 1000);
		if (SPI_processed == 0)
			break;
		for (i = 0; i < SPI_processed; i++)
			tuplestore_puttuple(rsinfo->setResult, SPI_tuptable->vals[i]);
		SPI_freetuptable(SPI_tuptable);
	}
	SPI_cursor_close(portal);
	dp_owner_end(&self);
	SPI_finish();
	return (Datum) 0;
}

/*
 * _pattern_facts(pattern) -> (creates_table, views, adopts, adopt_hint, waiting, whole_table)
 */
DP_FUNCTION(dp_pattern_facts);
Datum
dp_pattern_facts(PG_FUNCTION_ARGS)
{
	const DpPattern *pattern = dp_pattern_find(text_argument(fcinfo, 0));
	TupleDesc desc;
	Datum values[6] = { 0 };
	bool nulls[6] = { false };

	if (pattern == NULL)
		PG_RETURN_NULL();
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "the result is a row");
	values[0] = BoolGetDatum(pattern->creates_table);
	put_text(pattern->views, &values[1], &nulls[1]);
	put_text(pattern->adopts, &values[2], &nulls[2]);
	put_text(pattern->adopt_hint, &values[3], &nulls[3]);
	put_text(pattern->waiting, &values[4], &nulls[4]);
	values[5] = BoolGetDatum(pattern->whole_table);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

static void
put_text(const char *text, Datum *value, bool *isnull)
{
	*isnull = text == NULL;
	if (text != NULL)
		*value = CStringGetTextDatum(text);
}

/*
 * _pattern_made(mark text) -> true
 */
DP_FUNCTION(dp_pattern_made);
Datum
dp_pattern_made(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(true);
}

/* An argument of type text as a C string. */
static char *
text_argument(FunctionCallInfo fcinfo, int n)
{
	return text_to_cstring(PG_GETARG_TEXT_PP(n));
}

/*
 * _pattern_side(link_id, rel) -> regclass
 */
DP_FUNCTION(dp_pattern_side);
Datum
dp_pattern_side(PG_FUNCTION_ARGS)
{
	Oid side = dp_link_side(text_argument(fcinfo, 0), PG_GETARG_OID(1));

	if (!OidIsValid(side))
		PG_RETURN_NULL();
	PG_RETURN_OID(side);
}

/* _pattern_forget(side, rel): removes the dependency of the side table. */
DP_FUNCTION(dp_pattern_forget);
Datum
dp_pattern_forget(PG_FUNCTION_ARGS)
{
	dp_require_owner(PG_GETARG_OID(0));
	dp_require_owner(PG_GETARG_OID(1));
	(void) deleteDependencyRecordsForSpecific(RelationRelationId, PG_GETARG_OID(0),
											  DEPENDENCY_NORMAL, RelationRelationId,
											  PG_GETARG_OID(1));
	PG_RETURN_VOID();
}

/*
 * _pattern_distance(a, b) -> the number of edits between two names
 */
DP_FUNCTION(dp_pattern_distance);
Datum
dp_pattern_distance(PG_FUNCTION_ARGS)
{
	text *a = PG_GETARG_TEXT_PP(0);
	text *b = PG_GETARG_TEXT_PP(1);

	if (VARSIZE_ANY_EXHDR(a) > 255 || VARSIZE_ANY_EXHDR(b) > 255)
		PG_RETURN_NULL();
	PG_RETURN_INT32(varstr_levenshtein(VARDATA_ANY(a), VARSIZE_ANY_EXHDR(a), VARDATA_ANY(b),
									   VARSIZE_ANY_EXHDR(b), 1, 1, 1, false));
}

/*
 * _pattern_latest(query) -> text: the only value that a query returns, with the latest snapshot at
 * every isolation level.  For verbs that run as the table's owner and have locked the table.
 */
DP_FUNCTION(dp_pattern_latest);
Datum
dp_pattern_latest(PG_FUNCTION_ARGS)
{
	char *query = text_to_cstring(PG_GETARG_TEXT_PP(0));
	MemoryContext caller = CurrentMemoryContext;
	SPIPlanPtr plan;
	char *value = NULL;
	text *result = NULL;

	SPI_connect();
	plan = SPI_prepare(query, 0, NULL);
	if (plan == NULL)
		elog(ERROR, "SPI_prepare returned %s", SPI_result_code_string(SPI_result));
	if (SPI_execute_snapshot(plan, NULL, NULL, GetLatestSnapshot(), InvalidSnapshot, true, false,
							 1) != SPI_OK_SELECT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("statement must be a query")));
	if (SPI_processed == 1)
		value = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (value != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(caller);

		result = cstring_to_text(value);
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(result);
}
