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
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "parser/parse_func.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "bson/catalog.h"
#include "kit/declaration.h"
#include "kit/key.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/sql/text.h"
#include "kit/tenant.h"

/* A row of pg_dist_shard. */
typedef struct Shard
{
	int64 id;
	Oid table;
	char *minimum; /* NULL for the only shard of a table */
	int32 group;   /* of co-located tables */
	bool is_copy;  /* of all rows, one on each server */
	bool known;    /* false while a move or split creates it */
} Shard;

/* pg_dist_partition.partmethod, and .repmodel */
#define DISTRIBUTED_BY_HASH 'h'
#define COPIED 't'

/* Attempts to find a value for each shard, per shard */
#define ATTEMPTS_PER_SHARD 1000

static bool citus_loaded(void);
static List *catalog_rows(const char *catalog, const char *column, RegProcedure equal, Datum value,
						  TupleDesc *columns);
static HeapTuple catalog_row(const char *catalog, const char *column, RegProcedure equal,
							 Datum value, TupleDesc *columns);
static Datum catalog_value(HeapTuple row, TupleDesc columns, const char *column, bool *isnull);
static bool shard_read(Oid relid, Shard *shard);
static bool has_shard_triggers(Oid relid, const char *suffix);
static char *
shard_condition(Oid relid, AttrNumber attnum, const char *low, const char *high, int attempts);

/* Citus must be loaded by the server's start. */
static bool
citus_loaded(void)
{
	static int preloaded = -1;

	if (preloaded < 0)
		preloaded = GetConfigOption("citus.shard_count", true, false) != NULL;
	return preloaded && OidIsValid(get_relname_relid("pg_dist_partition", PG_CATALOG_NAMESPACE));
}

bool
dp_called_by_citus(void)
{
	return strncmp(application_name, "citus_internal", strlen("citus_internal")) == 0 &&
		   citus_loaded();
}

/* Copies the rows of a catalog that have this value. */
static List *
catalog_rows(const char *catalog, const char *column, RegProcedure equal, Datum value,
			 TupleDesc *columns)
{
	Oid relid = get_relname_relid(catalog, PG_CATALOG_NAMESPACE);
	Relation rel = table_open(relid, AccessShareLock);
	List *rows = NIL;
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
	while (HeapTupleIsValid(row = systable_getnext(scan)))
		rows = lappend(rows, heap_copytuple(row));
	*columns = CreateTupleDescCopy(RelationGetDescr(rel));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return rows;
}

/* The same for the only row, or NULL. */
static HeapTuple
catalog_row(const char *catalog, const char *column, RegProcedure equal, Datum value,
			TupleDesc *columns)
{
	List *rows = catalog_rows(catalog, column, equal, value, columns);

	return rows == NIL ? NULL : linitial(rows);
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

/* The column by whose hash a table is distributed, or InvalidAttrNumber. */
static AttrNumber
hashed_column(Oid relid)
{
	TupleDesc columns;
	HeapTuple row = NULL;
	bool isnull;
	Node *key;

	if (citus_loaded())
		row = catalog_row("pg_dist_partition", "logicalrelid", F_OIDEQ, ObjectIdGetDatum(relid),
						  &columns);
	if (row == NULL ||
		DatumGetChar(catalog_value(row, columns, "partmethod", &isnull)) != DISTRIBUTED_BY_HASH)
		return InvalidAttrNumber;
	key = stringToNode(TextDatumGetCString(catalog_value(row, columns, "partkey", &isnull)));
	return castNode(Var, key)->varattno;
}

bool
dp_is_hashed(Oid relid)
{
	return hashed_column(relid) != InvalidAttrNumber;
}

/*
 * Some value of a type, as its input function takes it: another one for each number.  NULL for a
 * type of which this knows none.
 */
static char *
some_value(Oid type, int n)
{
	Oid base = getBaseType(type);

	switch (base)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case NUMERICOID:
		case FLOAT4OID:
		case FLOAT8OID:
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
		case BYTEAOID:
			return psprintf("%d", n);
		case UUIDOID:
			return psprintf("%032x", n);
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return psprintf("%04d-%02d-%02d", 2000 + n / 336 % 1000, n / 28 % 12 + 1, n % 28 + 1);
	}
	if (base == dp_types()->bson_value)
		return psprintf("%d", n);
	if (base == dp_types()->objectid)
		return psprintf("%024x", n);
	return NULL;
}

/* Finds a value for each shard by trying.  The hash is that of the type's default operator class.
 */
List *
dp_shard_parts(Oid relid)
{
	AttrNumber attnum = hashed_column(relid);
	List *parts = NIL;
	TupleDesc columns;
	List *rows;
	ListCell *lc;

	rows =
		catalog_rows("pg_dist_shard", "logicalrelid", F_OIDEQ, ObjectIdGetDatum(relid), &columns);
	foreach(lc, rows)
	{
		DpShardPart *part = palloc(sizeof(DpShardPart));
		bool isnull;

		part->id = DatumGetInt64(catalog_value(lfirst(lc), columns, "shardid", &isnull));
		part->condition =
			attnum == InvalidAttrNumber
				? "true"
				: shard_condition(relid, attnum,
								  TextDatumGetCString(catalog_value(lfirst(lc), columns,
																	"shardminvalue", &isnull)),
								  TextDatumGetCString(catalog_value(lfirst(lc), columns,
																	"shardmaxvalue", &isnull)),
								  ATTEMPTS_PER_SHARD * list_length(rows));
		parts = lappend(parts, part);
	}
	return parts;
}

/*
 * Citus moves and splits shards while their rows are only read, so a call that writes takes the
 * lock of its writes, until the transaction ends.
 */
static void
shard_lock(Oid relid, int64 id)
{
	Oid types[2] = { INT4OID, INT8ARRAYOID };
	Oid lock =
		LookupFuncName(list_make2(makeString("pg_catalog"), makeString("lock_shard_metadata")), 2,
					   types, false);
	Datum shard = Int64GetDatum(id);
	Oid user;
	int sec;

	GetUserIdAndSecContext(&user, &sec);
	/* the table's owner may */
	SetUserIdAndSecContext(dp_relation_owner(relid, false), sec | SECURITY_LOCAL_USERID_CHANGE);
	(void) OidFunctionCall2(lock, Int32GetDatum(ShareLock),
							PointerGetDatum(construct_array(&shard, 1, INT8OID, sizeof(int64),
															FLOAT8PASSBYVAL, TYPALIGN_DOUBLE)));
	SetUserIdAndSecContext(user, sec);
	AcceptInvalidationMessages();
}

/* The shard of rows with a key, or the only one. */
static int64
shard_of_key(Oid relid, const DpDecl *table, const DpKey *key)
{
	AttrNumber attnum = hashed_column(relid);
	int32 hash = 0;
	TupleDesc columns;
	ListCell *lc;
	int i;

	for (i = 0; attnum != InvalidAttrNumber && i < key->n; i++)
	{
		TypeCacheEntry *entry;
		Oid type;
		int32 typmod;
		Oid collation;

		if (table->keys[i].attnum != attnum)
			continue;
		get_atttypetypmodcoll(relid, attnum, &type, &typmod, &collation);
		entry = lookup_type_cache(type, TYPECACHE_HASH_PROC_FINFO);
		hash = DatumGetInt32(FunctionCall1Coll(&entry->hash_proc_finfo, collation, key->values[i]));
	}
	foreach(lc, catalog_rows("pg_dist_shard", "logicalrelid", F_OIDEQ, ObjectIdGetDatum(relid),
							 &columns))
	{
		bool isnull;
		Datum low = catalog_value(lfirst(lc), columns, "shardminvalue", &isnull);

		if (attnum == InvalidAttrNumber || isnull ||
			(pg_strtoint32(TextDatumGetCString(low)) <= hash &&
			 pg_strtoint32(TextDatumGetCString(catalog_value(lfirst(lc), columns, "shardmaxvalue",
															 &isnull))) >= hash))
			return DatumGetInt64(catalog_value(lfirst(lc), columns, "shardid", &isnull));
	}
	return 0;
}

void
dp_shard_lock_key(Oid relid, const DpDecl *table, const DpKey *key)
{
	int64 id = shard_of_key(relid, table, key);
	int64 locked;

	/* the shard may have been split */
	do
	{
		locked = id;
		shard_lock(relid, locked);
		id = shard_of_key(relid, table, key);
	} while (id != locked);
}

void
dp_shard_lock_all(Oid relid)
{
	List *locked = NIL;
	bool again = true;

	while (again)
	{
		TupleDesc columns;
		ListCell *lc;

		again = false;
		foreach(lc, catalog_rows("pg_dist_shard", "logicalrelid", F_OIDEQ, ObjectIdGetDatum(relid),
								 &columns))
		{
			bool isnull;
			int64 *id = palloc(sizeof(int64));
			ListCell *done;
			bool found = false;

			*id = DatumGetInt64(catalog_value(lfirst(lc), columns, "shardid", &isnull));
			foreach(done, locked)
				found |= *(int64 *) lfirst(done) == *id;
			if (found)
				continue;
			shard_lock(relid, *id);
			locked = lappend(locked, id);
			again = true;
		}
	}
}

/* _shard_lock_all(rel) */
DP_FUNCTION(dp_pattern_shard_lock_all);
Datum
dp_pattern_shard_lock_all(PG_FUNCTION_ARGS)
{
	if (dp_is_distributed(PG_GETARG_OID(0)))
		dp_shard_lock_all(PG_GETARG_OID(0));
	PG_RETURN_VOID();
}

/* The condition for a range of hash values. */
static char *
shard_condition(Oid relid, AttrNumber attnum, const char *low, const char *high, int attempts)
{
	int32 least = pg_strtoint32(low);
	int32 greatest = pg_strtoint32(high);
	char *column = get_attname(relid, attnum, false);
	Oid type;
	int32 typmod;
	Oid collation;
	Oid input;
	Oid param;
	TypeCacheEntry *entry;
	StringInfoData sql;
	int n;

	get_atttypetypmodcoll(relid, attnum, &type, &typmod, &collation);
	getTypeInputInfo(type, &input, &param);
	entry = lookup_type_cache(type, TYPECACHE_HASH_PROC_FINFO | TYPECACHE_EQ_OPR);
	for (n = 0; n < attempts; n++)
	{
		char *value = some_value(type, n);
		int32 hash;

		if (value == NULL)
			break;
		hash = DatumGetInt32(FunctionCall1Coll(&entry->hash_proc_finfo, collation,
											   OidInputFunctionCall(input, value, param, typmod)));
		if (hash < least || hash > greatest)
			continue;
		initStringInfo(&sql);
		appendStringInfo(&sql, "b.%s", quote_identifier(column));
		dp_sql_operator(&sql, entry->eq_opr);
		appendStringInfo(&sql, "%s::%s", quote_literal_cstr(value),
						 format_type_extended(type, typmod,
											  FORMAT_TYPE_FORCE_QUALIFY |
												  FORMAT_TYPE_TYPEMOD_GIVEN));
		return sql.data;
	}
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("cannot reach the shards of table \"%s\"", dp_relation_name(relid)),
					errdetail("It is distributed by column \"%s\" of type %s.", column,
							  format_type_be(type))));
}

/* _pattern_shards(rel) -> (shard, condition) */
DP_FUNCTION(dp_pattern_shards);
Datum
dp_pattern_shards(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell *lc;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (!dp_is_distributed(PG_GETARG_OID(0)))
		return (Datum) 0;
	foreach(lc, dp_shard_parts(PG_GETARG_OID(0)))
	{
		DpShardPart *part = lfirst(lc);
		Datum values[2] = { Int64GetDatum(part->id), CStringGetTextDatum(part->condition) };
		bool nulls[2] = { false, false };

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
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
	{
		shard->group = DatumGetInt32(catalog_value(row, columns, "colocationid", &isnull));
		shard->is_copy = DatumGetChar(catalog_value(row, columns, "repmodel", &isnull)) == COPIED;
	}
	return row != NULL;
}

bool
dp_shard_is_new(Oid relid)
{
	char *digits = get_rel_name(relid);
	TupleDesc columns;

	digits = digits == NULL ? NULL : strrchr(digits, '_');
	return digits != NULL && has_shard_triggers(relid, digits) &&
		   catalog_row("pg_dist_shard", "shardid", F_INT8EQ,
					   Int64GetDatum(strtoll(digits + 1, NULL, 10)), &columns) == NULL;
}

/* A table with a name like that of a shard has triggers whose names do not end so. */
static bool
has_shard_triggers(Oid relid, const char *suffix)
{
	Relation rel = try_relation_open(relid, AccessShareLock);
	TriggerDesc *triggers;
	bool found = false;
	int i;

	if (rel == NULL)
		return false; /* dropped: the rest of a move or split */
	triggers = dp_triggers(rel);
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

Oid
dp_shard_table(Oid relid)
{
	Shard shard;

	return shard_read(relid, &shard) ? shard.table : InvalidOid;
}

Oid
dp_shard_here(Oid relid)
{
	TupleDesc columns;
	TupleDesc columns_here;
	List *shards;
	HeapTuple here;
	ListCell *lc;
	int64 id;
	bool isnull;

	if (!dp_is_distributed(relid) || dp_is_hashed(relid))
		return InvalidOid;
	shards =
		catalog_rows("pg_dist_shard", "logicalrelid", F_OIDEQ, ObjectIdGetDatum(relid), &columns);
	if (list_length(shards) != 1)
		return InvalidOid;
	id = DatumGetInt64(catalog_value(linitial(shards), columns, "shardid", &isnull));
	/* the server that had a moved shard may not have dropped it yet */
	foreach(lc, catalog_rows("pg_dist_placement", "shardid", F_INT8EQ, Int64GetDatum(id), &columns))
	{
		Datum group = catalog_value(lfirst(lc), columns, "groupid", &isnull);

		here = catalog_row("pg_dist_local_group", "groupid", F_INT4EQ, group, &columns_here);
		if (here != NULL)
			return get_relname_relid(psprintf("%s_" INT64_FORMAT, get_rel_name(relid), id),
									 get_rel_namespace(relid));
	}
	return InvalidOid;
}

bool
dp_shard_is_copy(Oid relid)
{
	Shard shard;

	return shard_read(relid, &shard) && shard.is_copy;
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
	if (a.is_copy || b.is_copy)
		return true;
	if (a.minimum == NULL || b.minimum == NULL)
		return a.group == b.group && a.minimum == b.minimum;
	return a.group == b.group && strcmp(a.minimum, b.minimum) == 0;
}

/*
 * _pattern_distribution(rel) -> (method, column_name, colocation, of_table): how Citus distributes
 * a table, or of which table a shard is.
 */
DP_FUNCTION(dp_pattern_distribution);
Datum
dp_pattern_distribution(PG_FUNCTION_ARGS)
{
	Oid relid = PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
	TupleDesc result;
	TupleDesc columns;
	Datum values[4] = { 0 };
	bool nulls[4] = { true, true, true, true };
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
		AttrNumber attnum = hashed_column(relid);
		char model = DatumGetChar(catalog_value(row, columns, "repmodel", &isnull));

		values[2] = catalog_value(row, columns, "colocationid", &nulls[2]);
		nulls[0] = false;
		values[0] = CStringGetTextDatum(attnum != InvalidAttrNumber     ? "hash"
										: model == COPIED               ? "copied"
										: DatumGetInt32(values[2]) != 0 ? "single"
																		: "local");
		if (attnum != InvalidAttrNumber)
		{
			nulls[1] = false;
			values[1] = CStringGetTextDatum(get_attname(relid, attnum, false));
		}
	}
	else if (shard_read(relid, &shard))
	{
		nulls[0] = nulls[2] = nulls[3] = false;
		values[0] = CStringGetTextDatum("shard");
		values[2] = Int32GetDatum(shard.group);
		values[3] = ObjectIdGetDatum(shard.table);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(result), values, nulls)));
}

void
dp_allow_triggers(Oid relid)
{
	if (!dp_is_distributed(relid))
		return;
	set_config_option("citus.enable_unsafe_triggers", "on", PGC_USERSET, PGC_S_SESSION,
					  GUC_ACTION_LOCAL, true, 0, false);
	set_config_option("citus.multi_shard_modify_mode", "sequential", PGC_USERSET, PGC_S_SESSION,
					  GUC_ACTION_LOCAL, true, 0, false);
}

/* _pattern_allow_triggers(rel) */
DP_FUNCTION(dp_pattern_allow_triggers);
Datum
dp_pattern_allow_triggers(PG_FUNCTION_ARGS)
{
	dp_allow_triggers(PG_GETARG_OID(0));
	PG_RETURN_VOID();
}

void
dp_refuse_distributed(Oid relid)
{
	if (dp_is_distributed(relid))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("cannot do this for table \"%s\" because it is distributed",
							   dp_relation_name(relid)),
						errdetail("Its rows are in shards, most of them on other servers.")));
}
