/*
 * shard.c
 *		Tables that Citus distributes.
 *
 * Citus's catalogs pg_dist_partition and pg_dist_shard are read by the names of their columns.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_namespace.h"
#include "funcapi.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "kit/declaration.h"
#include "kit/registry.h"
#include "kit/shard.h"

/* A row of pg_dist_shard. */
typedef struct Shard
{
	int64 id;
	Oid table;
	char *minimum; /* NULL for the only shard of a table */
	int32 group;   /* of co-located tables */
	bool known;    /* false while a move or split creates it */
} Shard;

static bool citus_loaded(void);
static HeapTuple catalog_row(const char *catalog, const char *column, RegProcedure equal,
							 Datum value, TupleDesc *columns);
static Datum catalog_value(HeapTuple row, TupleDesc columns, const char *column, bool *isnull);
static bool shard_read(Oid relid, Shard *shard);
static bool has_shard_triggers(Oid relid, const char *suffix);

/* Citus must be loaded by the server's start. */
static bool
citus_loaded(void)
{
	return GetConfigOption("citus.shard_count", true, false) != NULL &&
		   OidIsValid(get_relname_relid("pg_dist_partition", PG_CATALOG_NAMESPACE));
}

/* Copies the row of a catalog that has this value, or returns NULL. */
static HeapTuple
catalog_row(const char *catalog, const char *column, RegProcedure equal, Datum value,
			TupleDesc *columns)
{
	Oid relid = get_relname_relid(catalog, PG_CATALOG_NAMESPACE);
	Relation rel = table_open(relid, AccessShareLock);
	HeapTuple row;
	SysScanDesc scan;
	ScanKeyData key;
	AttrNumber attnum = get_attnum(relid, column);
	Oid index = InvalidOid;
	ListCell *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation candidate = index_open(lfirst_oid(lc), AccessShareLock);

		if (candidate->rd_index->indkey.values[0] == attnum)
			index = lfirst_oid(lc);
		index_close(candidate, AccessShareLock);
	}
	ScanKeyInit(&key, attnum, BTEqualStrategyNumber, equal, value);
	scan = systable_beginscan(rel, index, OidIsValid(index), NULL, 1, &key);
	row = systable_getnext(scan);
	if (HeapTupleIsValid(row))
	{
		row = heap_copytuple(row);
		*columns = CreateTupleDescCopy(RelationGetDescr(rel));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return row;
}

static Datum
catalog_value(HeapTuple row, TupleDesc columns, const char *column, bool *isnull)
{
	int i;

	for (i = 0; i < columns->natts; i++)
		if (!TupleDescAttr(columns, i)->attisdropped &&
			strcmp(NameStr(TupleDescAttr(columns, i)->attname), column) == 0)
			return heap_getattr(row, i + 1, columns, isnull);
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("a catalog of this version of Citus has no column \"%s\"", column)));
}

bool
dp_is_distributed(Oid relid)
{
	TupleDesc columns;

	return citus_loaded() && catalog_row("pg_dist_partition", "logicalrelid", F_OIDEQ,
										 ObjectIdGetDatum(relid), &columns) != NULL;
}

/* The shard that a relation is. */
static bool
shard_read(Oid relid, Shard *shard)
{
	char *name;
	char *digits;
	Oid schema;
	HeapTuple row;
	TupleDesc columns;
	Datum value;
	bool isnull;

	if (!citus_loaded() || (name = get_rel_name(relid)) == NULL)
		return false;
	digits = strrchr(name, '_');
	if (digits == NULL || digits[1] == '\0' ||
		strspn(digits + 1, "0123456789") != strlen(digits + 1) || strlen(digits + 1) > 18)
		return false;
	memset(shard, 0, sizeof(Shard));
	shard->id = strtoll(digits + 1, NULL, 10);
	schema = get_rel_namespace(relid);
	row = catalog_row("pg_dist_shard", "shardid", F_INT8EQ, Int64GetDatum(shard->id), &columns);
	if (row != NULL)
	{
		shard->table = DatumGetObjectId(catalog_value(row, columns, "logicalrelid", &isnull));
		value = catalog_value(row, columns, "shardminvalue", &isnull);
		shard->minimum = isnull ? NULL : TextDatumGetCString(value);
		shard->known = true;
	}
	else if (!has_shard_triggers(relid, digits))
		return false;
	else
	{
		*digits = '\0';
		shard->table = get_relname_relid(name, schema);
	}
	if (!OidIsValid(shard->table) || get_rel_namespace(shard->table) != schema)
		return false;
	row = catalog_row("pg_dist_partition", "logicalrelid", F_OIDEQ, ObjectIdGetDatum(shard->table),
					  &columns);
	if (row != NULL)
		shard->group = DatumGetInt32(catalog_value(row, columns, "colocationid", &isnull));
	return row != NULL;
}

/* A table with a name like that of a shard has triggers whose names do not end so. */
static bool
has_shard_triggers(Oid relid, const char *suffix)
{
	Relation rel = relation_open(relid, AccessShareLock);
	TriggerDesc *triggers = dp_triggers(rel);
	bool found = false;
	int i;

	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		int start = (int) strlen(trigger->tgname) - (int) strlen(suffix);

		found |= start > 0 && strcmp(trigger->tgname + start, suffix) == 0 &&
				 dp_own_function(trigger->tgfoid);
	}
	relation_close(rel, AccessShareLock);
	return found;
}

int64
dp_shard_id(Oid relid)
{
	Shard shard;

	return shard_read(relid, &shard) ? shard.id : 0;
}

bool
dp_shard_pair(Oid relid, Oid other)
{
	Shard a;
	Shard b;
	bool is_a = shard_read(relid, &a);
	bool is_b = shard_read(other, &b);

	if (!is_a || !is_b)
		return is_a == is_b;
	if (!a.known || !b.known)
		return false;
	if (a.minimum == NULL || b.minimum == NULL)
		/* a reference table has its only shard on every server */
		return true;
	return a.group == b.group && strcmp(a.minimum, b.minimum) == 0;
}

/* _pattern_distribution(rel) -> (method, column_name): how Citus distributes a table. */
DP_FUNCTION(dp_pattern_distribution);
Datum
dp_pattern_distribution(PG_FUNCTION_ARGS)
{
	Oid relid = PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
	TupleDesc result;
	TupleDesc columns;
	Datum values[2] = { 0 };
	bool nulls[2] = { true, true };
	HeapTuple row = NULL;
	Shard shard;
	bool isnull;

	if (get_call_result_type(fcinfo, NULL, &result) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (citus_loaded())
		row = catalog_row("pg_dist_partition", "logicalrelid", F_OIDEQ, ObjectIdGetDatum(relid),
						  &columns);
	if (row != NULL)
	{
		char method = DatumGetChar(catalog_value(row, columns, "partmethod", &isnull));
		char model = DatumGetChar(catalog_value(row, columns, "repmodel", &isnull));
		int32 group = DatumGetInt32(catalog_value(row, columns, "colocationid", &isnull));

		nulls[0] = false;
		values[0] = CStringGetTextDatum(method != 'n'  ? "hash"
										: model == 't' ? "copied"
										: group != 0   ? "single"
													   : "local");
		if (method != 'n')
		{
			Node *key =
				stringToNode(TextDatumGetCString(catalog_value(row, columns, "partkey", &isnull)));

			nulls[1] = false;
			values[1] =
				CStringGetTextDatum(get_attname(relid, castNode(Var, key)->varattno, false));
		}
	}
	else if (shard_read(relid, &shard))
	{
		nulls[0] = false;
		values[0] = CStringGetTextDatum("shard");
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(result), values, nulls)));
}

void
dp_refuse_distributed(Oid relid)
{
	if (dp_is_distributed(relid))
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot do this for table \"%s\" because it is distributed",
					dp_relation_name(relid)),
			 errhint("Call the function for each shard: SELECT f(t.tableoid::regclass, ..) FROM "
					 "\"%s\" AS t WHERE ..",
					 dp_relation_name(relid))));
}
