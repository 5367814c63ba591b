/*
 * catalog.c
 *		OIDs of the extension's own types, looked up once per backend.
 *
 * The extension may be in any schema, so the types are found through pg_extension.  The result is
 * cached until a type changes.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "bson/catalog.h"
#include "bson/text.h"

static DpTypes types;
static bool types_valid = false;
static bool callback_registered = false;

/* Called for changes of relations */
static RelcacheCallbackFunction relation_callbacks[8];
static int n_relation_callbacks = 0;

static Oid extension_schema(void);
static Oid type_in_schema(const char *name, Oid schema);
static void types_invalidate(Datum arg, int cacheid, uint32 hashvalue);
static void relation_changed(Datum arg, Oid relid);

const DpTypes *
dp_types(void)
{
	if (likely(types_valid))
		return &types;

	if (!callback_registered)
	{
		CacheRegisterSyscacheCallback(TYPEOID, types_invalidate, (Datum) 0);
		callback_registered = true;
	}

	types.schema = extension_schema();
	types.internal = get_namespace_oid("docpatterns", false);
	types.bson = type_in_schema("bson", types.schema);
	types.bson_value = type_in_schema("bson_value", types.schema);
	types.objectid = type_in_schema("objectid", types.schema);
	types.treepath = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("treepath"),
									 ObjectIdGetDatum(types.schema));
	types.bson_array = get_array_type(types.bson);
	types.bson_value_array = get_array_type(types.bson_value);
	types.objectid_array = get_array_type(types.objectid);
	types_valid = true;
	return &types;
}

void
dp_on_relation_change(RelcacheCallbackFunction function)
{
	if (n_relation_callbacks == lengthof(relation_callbacks))
		elog(ERROR, "too many callbacks for relations");
	if (n_relation_callbacks == 0)
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	relation_callbacks[n_relation_callbacks++] = function;
}

static void
relation_changed(Datum arg, Oid relid)
{
	int i;

	for (i = 0; i < n_relation_callbacks; i++)
		relation_callbacks[i](arg, relid);
}

bool
dp_is_internal(Oid function, const char *name)
{
	char *found =
		get_func_namespace(function) == dp_types()->internal ? get_func_name(function) : NULL;

	return found != NULL && strcmp(found, name) == 0;
}

/* The schema of the installed extension. */
static Oid
extension_schema(void)
{
	Relation rel = table_open(ExtensionRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple tuple;
	Oid schema = InvalidOid;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum("docpatterns"));
	scan = systable_beginscan(rel, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		schema = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);

	if (!OidIsValid(schema))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("extension \"docpatterns\" is not installed in this database")));
	return schema;
}

/* The type of that name in the schema. */
static Oid
type_in_schema(const char *name, Oid schema)
{
	Oid oid = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name),
							  ObjectIdGetDatum(schema));

	if (!OidIsValid(oid))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("type \"%s\" of extension \"docpatterns\" is missing", name)));
	return oid;
}

/* A type was made, changed or dropped, perhaps one of ours. */
static void
types_invalidate(Datum arg, int cacheid, uint32 hashvalue)
{
	types_valid = false;
}

void
dp_sql_own_operator(StringInfo sql, const char *name)
{
	appendStringInfo(sql, " OPERATOR(%s.%s) ",
					 quote_identifier(get_namespace_name(dp_types()->schema)), name);
}

void
dp_sql_own_schema(StringInfo sql)
{
	appendStringInfo(sql, "%s.", quote_identifier(get_namespace_name(dp_types()->schema)));
}

static char *
sql_literal(const DpValue *value, const char *type)
{
	StringInfoData text;
	StringInfoData sql;

	initStringInfo(&text);
	dp_value_to_text(&text, value, DP_TEXT_RELAXED, -1);
	initStringInfo(&sql);
	appendStringInfo(&sql, "%s::", quote_literal_cstr(text.data));
	dp_sql_own_schema(&sql);
	appendStringInfoString(&sql, type);
	pfree(text.data);
	return sql.data;
}

char *
dp_sql_value(const DpValue *value)
{
	return sql_literal(value, "bson_value");
}

char *
dp_sql_document(const DpValue *document)
{
	return sql_literal(document, "bson");
}

char *
dp_sql_regclass(Oid relid)
{
	const char *name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
												  get_rel_name(relid));

	return psprintf("%s::pg_catalog.regclass", quote_literal_cstr(name));
}
