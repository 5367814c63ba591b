/*
 * schema_versioning.c
 *		The schema versioning pattern: declarations, and the trigger of the table.
 *
 * BEFORE INSERT or UPDATE, for each row with a new document: refuses a version
 * that is unknown or newer than the current one; converts an older document to the
 * current version (write => 'upgrade') or accepts it ('accept'); validates the
 * document if its version has a schema.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "bson/catalog.h"
#include "bson/fetch.h"
#include "kit/options.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/trigger.h"
#include "patterns/schema_versioning/schema_versioning.h"

/* The first rule of a schema that is broken */
typedef struct Broken
{
	char *path;
	char *rule;
	char *expected;
	char *found;
} Broken;

static HeapTuple version_before(DpSchemaVersioning *s, TriggerData *trigdata);
static void schemas_read(DpSchemaVersioning *s);
static int declared_functions(DpDecl *decl, Oid **functions);
static void
broken_note(const char *path, const char *rule, const char *expected, const char *found, void *arg);
static List *array_oids(Node *node);
static bool is_generated_from(Oid relid, Oid function);
static bool is_own_trigger(const Trigger *trigger);
static bool is_generated(Oid function, Oid owner);
static void bad_option(DpDecl *decl, const char *option) pg_attribute_noreturn();
static int schema_versioning_refers(const Trigger *trigger, int32 **versions, Oid **functions);

/*
 * schema_versioning_trigger(): the triggers of the pattern on its table.  The
 * one for TRUNCATE is never called: it is there to refer to functions.
 */
DP_FUNCTION(dp_schema_versioning_trigger);
Datum
dp_schema_versioning_trigger(PG_FUNCTION_ARGS)
{
	DpDecl *decl =
		dp_trigger_enter(fcinfo, DP_SCHEMA_VERSIONING,
						 DP_BEFORE_ROW(DP_INSERT | DP_UPDATE) | DP_AFTER_STATEMENT(DP_TRUNCATE));
	TriggerData *trigdata = (TriggerData *) fcinfo->context;

	if (decl == NULL || !TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		return dp_trigger_pass(fcinfo);
	return PointerGetDatum(version_before(dp_schema_versioning(decl), trigdata));
}

/*
 * BEFORE INSERT or UPDATE of a row.
 */
static HeapTuple
version_before(DpSchemaVersioning *s, TriggerData *trigdata)
{
	HeapTuple tuple = dp_trigger_row(trigdata);
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	bool isnull;
	Datum doc = heap_getattr(tuple, s->decl->doc_attnum, desc, &isnull);
	struct varlena *result;
	bool absent;
	int at;

	if (isnull || (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event) &&
				   dp_trigger_same_document(trigdata, s->decl)))
		return tuple;
	if (dp_schema_versioning_migrates(s->decl))
		return tuple;

	at = dp_versions_find(s->versions, dp_versions_of(s->versions, doc, &absent));
	if (at < 0)
		dp_versions_unknown(s->versions, doc,
							psprintf(" in table \"%s\"", dp_relation_name(s->decl->target)));
	if (at > s->at)
		ereport(
			ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 errmsg(
				 "a document in table \"%s\" has version %d, which is newer than the current version",
				 dp_relation_name(s->decl->target), s->versions->versions[at]),
			 errdetail("Field \"%s\"; the current version is %d.", s->versions->field_text,
					   s->current)));
	if (absent && s->versions->field->nsteps > 1)
		dp_versions_check_path(s->versions, (struct varlena *) PG_DETOAST_DATUM_PACKED(doc));
	if (at == s->at || !s->upgrade)
	{
		if (s->schemas[at] != NULL)
			dp_schema_versioning_check(s, (struct varlena *) PG_DETOAST_DATUM_PACKED(doc), at);
		return tuple;
	}
	result = dp_versions_move(s->versions, (struct varlena *) PG_DETOAST_DATUM_PACKED(doc), at,
							  s->at, absent);
	dp_schema_versioning_check(s, result, s->at);
	return dp_tuple_with_document(s->decl, tuple, desc, result);
}

/*
 * Returns the options of a declaration, read once. Raises INVALID_PARAMETER_VALUE: a user may
 * create a trigger with any argument.
 */
DpSchemaVersioning *
dp_schema_versioning(DpDecl *decl)
{
	DpSchemaVersioning *s = decl->state;
	Oid *functions;
	int nfunctions;
	DpValue spec;

	if (likely(s != NULL))
		return s;
	s = MemoryContextAllocZero(decl->context, sizeof(DpSchemaVersioning));
	s->decl = decl;
	dp_options_read(decl, s);

	nfunctions = declared_functions(decl, &functions);
	spec = dp_value_of_document(decl->options);
	s->versions = dp_versions_make(&spec, s->current, functions, nfunctions, decl->owner, false,
								   decl->context);
	s->at = dp_versions_find(s->versions, s->current);
	schemas_read(s);
	decl->state = s;
	return s;
}

/* The chain of a declaration for one statement. */
DpVersions *
dp_schema_versioning_brief(const DpSchemaVersioning *s)
{
	Oid *functions;
	int nfunctions = declared_functions(s->decl, &functions);
	DpValue spec = dp_value_of_document(s->decl->options);

	return dp_versions_make(&spec, s->current, functions, nfunctions, s->decl->owner, true,
							CurrentMemoryContext);
}

/* The schemas of versions. */
static void
schemas_read(DpSchemaVersioning *s)
{
	MemoryContext old = MemoryContextSwitchTo(s->decl->context);
	DpValue list;
	DpValue value;
	DpIter iter;

	s->schemas = palloc0(sizeof(DpSchema *) * s->versions->n);
	if (dp_document_find(DP_DOC_DATA(s->decl->options), DP_DOC_SIZE(s->decl->options), "schemas", 7,
						 &list) &&
		list.type != DP_TYPE_NULL)
	{
		if (list.type != DP_TYPE_ARRAY)
			bad_option(s->decl, "schemas");
		dp_iter_init_value(&iter, &list);
		while (dp_iter_next_value(&iter, &value))
		{
			DpValue version;
			DpValue schema;
			int at;

			if (value.type != DP_TYPE_DOCUMENT ||
				!dp_document_find(value.data, value.len, "version", 7, &version) ||
				version.type != DP_TYPE_INT32 ||
				!dp_document_find(value.data, value.len, "schema", 6, &schema) ||
				schema.type != DP_TYPE_DOCUMENT)
				bad_option(s->decl, "schemas");
			at = dp_versions_find(s->versions, dp_get_int32(version.data));
			if (at >= 0)
				s->schemas[at] = dp_schema_compile(&schema, NULL);
		}
	}
	MemoryContextSwitchTo(old);
}

/* The functions of the steps, which the condition of the main trigger refers to. */
static int
declared_functions(DpDecl *decl, Oid **functions)
{
	Relation rel;
	TriggerDesc *triggers;
	int32 *versions;
	int n = 0;
	int i;

	*functions = NULL;
	if (!OidIsValid(decl->relid))
		return 0;
	rel = table_open(decl->relid, AccessShareLock);
	triggers = dp_triggers(rel);
	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (trigger->tgnargs == 1 && strcmp(trigger->tgargs[0], decl->declared) == 0)
			n = schema_versioning_refers(trigger, &versions, functions);
	}
	table_close(rel, NoLock);
	return n;
}

/* Returns the arguments of the call in a trigger's condition. */
static int
schema_versioning_refers(const Trigger *trigger, int32 **versions, Oid **functions)
{
	Node *qual = trigger->tgqual != NULL ? stringToNode(trigger->tgqual) : NULL;
	List *list;
	List *numbers;
	ListCell *lc;
	int n = 0;

	*versions = NULL;
	*functions = NULL;
	if (qual == NULL || !IsA(qual, FuncExpr) || list_length(((FuncExpr *) qual)->args) != 2)
		return 0;
	numbers = array_oids(linitial(((FuncExpr *) qual)->args));
	list = array_oids(lsecond(((FuncExpr *) qual)->args));
	if (list == NIL)
		return 0;
	*functions = palloc(sizeof(Oid) * list_length(list));
	foreach(lc, list)
		(*functions)[n++] = lfirst_oid(lc);
	if (list_length(numbers) == n)
	{
		*versions = palloc(sizeof(int32) * n);
		n = 0;
		foreach(lc, numbers)
			(*versions)[n++] = (int32) lfirst_oid(lc);
	}
	return n;
}

/* The elements of an expression that is an array of constants of four bytes. */
static List *
array_oids(Node *node)
{
	List *result = NIL;
	ListCell *lc;

	if (IsA(node, ArrayExpr))
	{
		foreach(lc, ((ArrayExpr *) node)->elements)
		{
			Const *c = lfirst(lc);

			if (!IsA(c, Const) || c->constisnull || c->constlen != sizeof(Oid))
				return NIL;
			result = lappend_oid(result, DatumGetObjectId(c->constvalue));
		}
	}
	else if (IsA(node, Const) && !((Const *) node)->constisnull &&
			 (((Const *) node)->consttype == INT4ARRAYOID ||
			  ((Const *) node)->consttype == REGPROCEDUREARRAYOID))
	{
		ArrayType *array = DatumGetArrayTypeP(((Const *) node)->constvalue);
		Datum *values;
		bool *nulls;
		int n;
		int i;

		deconstruct_array(array, ARR_ELEMTYPE(array), sizeof(Oid), true, TYPALIGN_INT, &values,
						  &nulls, &n);
		for (i = 0; i < n; i++)
		{
			if (nulls[i])
				return NIL;
			result = lappend_oid(result, DatumGetObjectId(values[i]));
		}
	}
	return result;
}

/*
 * Generated functions of the table's owner depend on the table.
 */
void
dp_schema_versioning_depend(Oid relid)
{
	Relation rel = table_open(relid, AccessShareLock);
	TriggerDesc *triggers;
	int i;

	triggers = dp_triggers(rel);
	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		int32 *versions;
		Oid *functions;
		int n;
		int j;

		if (trigger->tgnargs != 2 || trigger->tgqual == NULL || !is_own_trigger(trigger))
			continue;
		n = schema_versioning_refers(trigger, &versions, &functions);
		for (j = 0; j < n && versions != NULL; j++)
		{
			ObjectAddress function;
			ObjectAddress table;

			/* a function of another owner would be dropped with this table */
			if (!is_generated(functions[j], rel->rd_rel->relowner))
				continue;
			ObjectAddressSet(function, ProcedureRelationId, functions[j]);
			ObjectAddressSet(table, RelationRelationId, relid);
			(void) deleteDependencyRecordsForSpecific(ProcedureRelationId, functions[j],
													  DEPENDENCY_AUTO, RelationRelationId, relid);
			if (!is_generated_from(relid, functions[j]))
				recordDependencyOn(&function, &table, DEPENDENCY_AUTO);
			CommandCounterIncrement();
		}
	}
	table_close(rel, NoLock);
}

/*
 * Whether a generated column of the table is computed by a function.  If the
 * function depended on the table, pg_dump could put neither before the other.
 */
static bool
is_generated_from(Oid relid, Oid function)
{
	Relation rel = table_open(DependRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple tuple;
	bool result = false;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(ProcedureRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(function));
	scan = systable_beginscan(rel, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == AttrDefaultRelationId &&
			GetAttrDefaultColumnAddress(form->objid).objectId == relid)
			result = true;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/* Whether a trigger calls the function of this pattern. */
static bool
is_own_trigger(const Trigger *trigger)
{
	return dp_is_internal(trigger->tgfoid, DP_SCHEMA_VERSIONING "_trigger");
}

/* Returns whether a function of that owner was created by this pattern: it consists of one call. */
static bool
is_generated(Oid function, Oid owner)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool result = false;

	if (HeapTupleIsValid(tuple))
	{
		bool isnull;
		Datum body = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosqlbody, &isnull);

		if (!isnull && ((Form_pg_proc) GETSTRUCT(tuple))->proowner == owner)
		{
			Node *node = stringToNode(TextDatumGetCString(body));

			if (IsA(node, Query) && list_length(((Query *) node)->targetList) == 1)
				node = (Node *) ((TargetEntry *) linitial(((Query *) node)->targetList))->expr;
			if (IsA(node, FuncExpr))
			{
				char *called = get_func_name(((FuncExpr *) node)->funcid);

				result = called != NULL &&
						 strncmp(called, "_schema_versioning_as",
								 strlen("_schema_versioning_as")) == 0 &&
						 get_func_namespace(((FuncExpr *) node)->funcid) == dp_types()->internal;
			}
		}
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * _schema_versioning_lock(rel, views): locks in the order of writes through a view, to avoid
 * deadlocks
 */
DP_FUNCTION(dp_schema_versioning_lock);
Datum
dp_schema_versioning_lock(PG_FUNCTION_ARGS)
{
	Oid relid = PG_GETARG_OID(0);
	Datum *views;
	bool *nulls;
	int n;
	int i;

	dp_require_owner(relid);
	PreventCommandIfReadOnly("schema_versioning_step()");
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), REGCLASSOID, sizeof(Oid), true, TYPALIGN_INT,
					  &views, &nulls, &n);
	for (i = 0; i < n; i++)
	{
		dp_require_owner(DatumGetObjectId(views[i]));
		LockRelationOid(DatumGetObjectId(views[i]), AccessExclusiveLock);
	}
	LockRelationOid(relid, ShareRowExclusiveLock);
	PG_RETURN_VOID();
}

/*
 * _schema_versioning_renew(rel, function): invalidates what depends on the function, because
 * sessions keep index expressions with inlined bodies of SQL functions and are not notified of
 * changes
 */
DP_FUNCTION(dp_schema_versioning_renew);
Datum
dp_schema_versioning_renew(PG_FUNCTION_ARGS)
{
	Oid function = PG_GETARG_OID(1);
	Relation rel;
	SysScanDesc scan;
	ScanKeyData keys[2];
	HeapTuple tuple;

	dp_require_owner(PG_GETARG_OID(0));
	rel = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(ProcedureRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(function));
	scan = systable_beginscan(rel, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == RelationRelationId)
			CacheInvalidateRelcacheByRelid(form->objid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}

/*
 * _schema_versioning_uses(versions, functions) -> whether versions is null: the
 * condition of triggers, which refer to functions in this way.
 */
DP_FUNCTION(dp_schema_versioning_uses);
Datum
dp_schema_versioning_uses(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(PG_ARGISNULL(0));
}

/*
 * _schema_versioning_refers(rel, name, main) -> (version, function): what the
 * main trigger of a declaration refers to, without versions, or the other one.
 */
DP_FUNCTION(dp_schema_versioning_functions);
Datum
dp_schema_versioning_functions(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(1));
	bool main = PG_GETARG_BOOL(2);
	Oid table = dp_shard_table(PG_GETARG_OID(0));
	DpDecl *decl =
		dp_decl_find(OidIsValid(table) ? table : PG_GETARG_OID(0), DP_SCHEMA_VERSIONING, name);
	Relation rel = table_open(decl->relid, AccessShareLock);
	int i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];
		int32 *versions;
		Oid *functions;
		int n;
		int j;

		if (main ? trigger->tgnargs != 1 || strcmp(trigger->tgargs[0], decl->declared) != 0
				 : trigger->tgnargs != 2 || strcmp(trigger->tgargs[0], "of") != 0 ||
					   strcmp(trigger->tgargs[1], name) != 0)
			continue;
		n = schema_versioning_refers(trigger, &versions, &functions);
		for (j = 0; j < n; j++)
		{
			Datum values[2];
			bool nulls[2] = { versions == NULL, false };

			values[0] = versions == NULL ? (Datum) 0 : Int32GetDatum(versions[j]);
			values[1] = ObjectIdGetDatum(functions[j]);
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		}
	}
	table_close(rel, NoLock);
	return (Datum) 0;
}

/*
 * _schema_versioning_valid(rel, options, functions): raises errors in the options of a new
 * declaration
 */
DP_FUNCTION(dp_schema_versioning_valid);
Datum
dp_schema_versioning_valid(PG_FUNCTION_ARGS)
{
	DpDecl decl = { 0 };
	DpVersions *versions;
	DpSchemaVersioning s = { 0 };
	DpValue spec;
	Datum *functions;
	bool *nulls;
	Oid *oids;
	int n;
	int i;

	dp_require_owner(PG_GETARG_OID(0));
	decl.target = PG_GETARG_OID(0);
	decl.pattern = pstrdup(DP_SCHEMA_VERSIONING);
	decl.name = pstrdup("new");
	decl.options = PG_GETARG_VARLENA_PP(1);
	decl.context = CurrentMemoryContext;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), REGPROCEDUREOID, sizeof(Oid), true, TYPALIGN_INT,
					  &functions, &nulls, &n);
	oids = palloc(sizeof(Oid) * Max(n, 1));
	for (i = 0; i < n; i++)
		oids[i] = DatumGetObjectId(functions[i]);
	dp_options_read(&decl, &s);
	spec = dp_value_of_document(decl.options);
	versions =
		dp_versions_make(&spec, s.current, oids, n, GetUserId(), false, CurrentMemoryContext);
	s.decl = &decl;
	s.versions = versions;
	schemas_read(&s);
	PG_RETURN_VOID();
}

/*
 * The schema of a version.
 */
void
dp_schema_versioning_check(const DpSchemaVersioning *s, struct varlena *doc, int at)
{
	DpValue value = dp_value_of_document(doc);
	Broken broken = { 0 };

	if (s->schemas[at] == NULL || dp_schema_match(s->schemas[at], &value))
		return;
	dp_schema_errors(s->schemas[at], &value, broken_note, &broken);
	ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
					errmsg("a document in table \"%s\" does not satisfy the schema of version %d",
						   dp_relation_name(s->decl->target), s->versions->versions[at]),
					broken.rule == NULL
						? 0
						: errdetail("Path \"%s\", rule %s: expected %s, found %s.", broken.path,
									broken.rule, broken.expected, broken.found)));
}

/* Keeps the first rule that is reported. */
static void
broken_note(const char *path, const char *rule, const char *expected, const char *found, void *arg)
{
	Broken *broken = arg;

	if (broken->rule != NULL)
		return;
	broken->path = pstrdup(path);
	broken->rule = pstrdup(rule);
	broken->expected = pstrdup(expected);
	broken->found = pstrdup(found);
}

/* Raises INVALID_PARAMETER_VALUE. */
static void
bad_option(DpDecl *decl, const char *option)
{
	ereport(
		ERROR,
		(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
		 errmsg(
			 "option \"%s\" of the schema versioning pattern \"%s\" on table \"%s\" is not valid",
			 option, decl->name, dp_relation_name(decl->target))));
}
