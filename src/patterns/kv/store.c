/*
 * store.c
 *		The tables of a key-value space: finding, reading and writing rows.
 *
 * Does what the executor would do for the few kinds of statements of commands.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/visibilitymap.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "kit/declaration.h"
#include "kit/rows/lookup.h"
#include "patterns/kv/kv.h"

static const char *const table_names[KV_TABLES] = { "keys", "hashes", "sets", "scores", "counts" };

/* one letter per column: text (t, x), bson_value, timestamptz, regclass, int2, int8 */
static const char *const table_columns[KV_TABLES] = { "txeri", "txv", "tv", "tvv", "isvvii" };

/* Functions of the operators that scans use, cached */
typedef struct KvOps
{
	Oid value; /* their type; InvalidOid: not found yet */
	FmgrInfo text_eq;
	FmgrInfo int2_eq;
	FmgrInfo int8_eq;
	FmgrInfo value_cmp;
} KvOps;

static KvOps ops;
static HTAB *spaces = NULL;

static DpKvSpace *space_find(text *name);
static void space_read(DpKvSpace *space);
static void space_table(DpKvSpace *space, DpKvTable table);
static void no_space(const char *name, const char *detail) pg_attribute_noreturn();
static void ops_find(Oid index);
static void check_rights(Oid relid, AclMode rights);
static bool was_written(TM_Result result);
static void fill(DpKvRel *r, const Datum *values, const bool *nulls);
static void kv_scan_text(DpKvScan *scan, int column, Datum value);

void
dp_kv_begin(DpKvCall *call, text *space, text *key, DpKvTable table, AclMode rights)
{
	memset(call, 0, sizeof(DpKvCall));
	call->context = CurrentMemoryContext;
	call->space = space_find(space);
	call->key = PointerGetDatum(key);
	call->writes = rights != ACL_SELECT;
	call->now = GetCurrentTimestamp();
	if (call->writes)
		PreventCommandIfReadOnly("a command that writes to a key-value space");
	check_rights(call->space->tables[table], rights);
	if (!call->writes)
		call->snapshot = GetActiveSnapshot();
}

void
dp_kv_rights(DpKvCall *call, DpKvTable table, AclMode rights)
{
	check_rights(call->space->tables[table], rights);
}

/* Reads the first two arguments, space and key. */
void
dp_kv_begin_args(DpKvCall *call, FunctionCallInfo fcinfo, DpKvTable table, AclMode rights)
{
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("space and key must not be null")));
	dp_kv_begin(call, PG_GETARG_TEXT_PP(0), PG_GETARG_TEXT_PP(1), table, rights);
}

/* Closes the tables; keeps locks. Makes writes visible. */
void
dp_kv_end(DpKvCall *call)
{
	int i;

	for (i = 0; i < KV_TABLES; i++)
	{
		DpKvRel *r = &call->rels[i];

		if (r->table.rel == NULL)
			continue;
		if (r->order_scan != NULL)
			index_endscan(r->order_scan);
		if (r->order != NULL)
			index_close(r->order, NoLock);
		dp_table_close(&r->table);
		r->table.rel = NULL;
	}
	if (call->writes)
	{
		if (call->snapshot != NULL)
			UnregisterSnapshot(call->snapshot);
		call->snapshot = NULL;
		CommandCounterIncrement();
	}
}

void
dp_kv_refresh(DpKvCall *call)
{
	CommandCounterIncrement();
	if (call->snapshot != NULL)
		UnregisterSnapshot(call->snapshot);
	call->snapshot = RegisterSnapshot(GetLatestSnapshot());
}

/* Returns a table, opened when first used. */
DpKvRel *
dp_kv_rel(DpKvCall *call, DpKvTable table)
{
	DpKvRel *r = &call->rels[table];
	LOCKMODE mode = call->writes ? RowExclusiveLock : AccessShareLock;

	if (r->table.rel == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(call->context);

		dp_table_open(&r->table, call->space->tables[table], mode);

		/* the lock may have processed invalidations */
		if (unlikely(dp_schema_generation() != call->space->generation))
		{
			space_table(call->space, table);
			if (call->space->tables[table] != RelationGetRelid(r->table.rel))
				no_space(call->space->name, table_names[table]);
		}
		(void) dp_table_key(&r->table);
		if (call->writes && IsolationUsesXactSnapshot())
			r->table.crosscheck = GetTransactionSnapshot();
		r->order = table == KV_SCORES ? index_open(call->space->order, mode) : NULL;
		r->order_scan = NULL;
		MemoryContextSwitchTo(old);
	}
	return r;
}

/* Scans */

void
dp_kv_scan(DpKvScan *scan, DpKvCall *call, DpKvTable table, bool order, Snapshot snapshot)
{
	scan->r = dp_kv_rel(call, table);
	scan->index = order ? scan->r->order : scan->r->table.key;
	scan->nkeys = 0;
	scan->nrows = 0;
	scan->vmbuffer = InvalidBuffer;
	scan->kept = order ? &scan->r->order_scan : &scan->r->table.scan;
	scan->desc = *scan->kept;
	if (scan->desc != NULL)
	{
		*scan->kept = NULL;
		scan->desc->xs_snapshot = snapshot;
	}
	else
	{
		MemoryContext old = MemoryContextSwitchTo(call->context);

		scan->desc =
			dp_index_beginscan(scan->r->table.rel, scan->index, snapshot, lengthof(scan->keys));
		MemoryContextSwitchTo(old);
	}
	if (table == KV_COUNTS)
		ScanKeyEntryInitializeWithInfo(&scan->keys[scan->nkeys++], 0, 1, BTEqualStrategyNumber,
									   InvalidOid, InvalidOid, &ops.int8_eq,
									   Int64GetDatum(call->zset));
	else
		kv_scan_text(scan, 1, call->key);
}

static void
kv_scan_text(DpKvScan *scan, int column, Datum value)
{
	ScanKeyEntryInitializeWithInfo(&scan->keys[scan->nkeys++], 0, column, BTEqualStrategyNumber,
								   InvalidOid, C_COLLATION_OID, &ops.text_eq, value);
}

void
dp_kv_scan_int2(DpKvScan *scan, int column, int16 value)
{
	ScanKeyEntryInitializeWithInfo(&scan->keys[scan->nkeys++], 0, column, BTEqualStrategyNumber,
								   InvalidOid, InvalidOid, &ops.int2_eq, Int16GetDatum(value));
}

/*
 * Rows compare like ROW(score, member) in SQL: a separate scan key points to the keys of both
 * columns.
 */
void
dp_kv_scan_bound(DpKvScan *scan, int column, StrategyNumber strategy, Datum score, Datum member)
{
	ScanKey row = scan->rows[scan->nrows++];
	ScanKey header = &scan->keys[scan->nkeys++];

	ScanKeyEntryInitializeWithInfo(&row[0], SK_ROW_MEMBER, column, strategy, InvalidOid, InvalidOid,
								   &ops.value_cmp, score);
	ScanKeyEntryInitializeWithInfo(&row[1], SK_ROW_MEMBER | SK_ROW_END, column + 1, strategy,
								   InvalidOid, InvalidOid, &ops.value_cmp, member);
	memset(header, 0, sizeof(ScanKeyData));
	header->sk_flags = SK_ROW_HEADER;
	header->sk_attno = column;
	header->sk_strategy = strategy;
	header->sk_argument = PointerGetDatum(row);
}

/* The scan begins when its first row is read. */
static inline void
scan_start(DpKvScan *scan)
{
	if (scan->nkeys > 0)
	{
		scan->desc->numberOfKeys = scan->nkeys;
		index_rescan(scan->desc, scan->keys, scan->nkeys, NULL, 0);
		scan->nkeys = 0;
	}
}

bool
dp_kv_scan_next(DpKvScan *scan, ScanDirection direction)
{
	CHECK_FOR_INTERRUPTS();
	scan_start(scan);
	return index_getnext_slot(scan->desc, direction, scan->r->table.row);
}

/* Reads the table only if the page is not all-visible, as an index-only scan does. */
bool
dp_kv_scan_count(DpKvScan *scan)
{
	ItemPointer tid;

	scan_start(scan);
	while ((tid = index_getnext_tid(scan->desc, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (VM_ALL_VISIBLE(scan->r->table.rel, ItemPointerGetBlockNumber(tid), &scan->vmbuffer))
		{
			PredicateLockPage(scan->r->table.rel, ItemPointerGetBlockNumber(tid),
							  scan->desc->xs_snapshot);
			return true;
		}
		if (index_fetch_heap(scan->desc, scan->r->table.row))
			return true;
	}
	return false;
}

void
dp_kv_scan_end(DpKvScan *scan)
{
	if (BufferIsValid(scan->vmbuffer))
		ReleaseBuffer(scan->vmbuffer);
	if (*scan->kept != NULL)
	{
		index_endscan(scan->desc);
		return;
	}

	/* kept for the next scan, without its pins */
	scan->desc->numberOfKeys = 0;
	index_rescan(scan->desc, NULL, 0, NULL, 0);
	*scan->kept = scan->desc;
}

/* Columns are not null, except in keys: then returns 0. */
Datum
dp_kv_column(DpKvRel *r, int column)
{
	bool isnull;
	Datum value = slot_getattr(r->table.row, column, &isnull);

	if (!isnull)
		return value;
	if (TupleDescAttr(r->table.row->tts_tupleDescriptor, KV_KEYS_EXPIRES - 1)->atttypid ==
			TIMESTAMPTZOID &&
		column >= KV_KEYS_EXPIRES)
		return (Datum) 0;
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("a column of table \"%s\" is null",
						   dp_relation_name(RelationGetRelid(r->table.rel)))));
}

static bool
find(DpKvCall *call, DpKvTable table, Datum second, Snapshot snapshot)
{
	Datum key[2] = { call->key, second };

	return dp_table_find(&dp_kv_rel(call, table)->table, snapshot, key, table == KV_KEYS ? 1 : 2);
}

/* A transaction with a single snapshot must not depend on rows that it does not show. */
bool
dp_kv_find(DpKvCall *call, DpKvTable table, Datum second, Snapshot snapshot)
{
	bool found;

	if (call->writes && IsolationUsesXactSnapshot())
	{
		DpKvRel *r = dp_kv_rel(call, table);
		bool seen = find(call, table, second, GetTransactionSnapshot());
		ItemPointerData tid = r->table.row->tts_tid;

		found = find(call, table, second, snapshot);
		if (found != seen || (found && !ItemPointerEquals(&tid, &r->table.row->tts_tid)))
			dp_kv_lost();
		return found;
	}
	return find(call, table, second, snapshot);
}

/* Writing */

bool
dp_kv_insert_unless(DpKvCall *call, DpKvTable table, const Datum *values, const bool *nulls)
{
	DpKvRel *r = dp_kv_rel(call, table);

	fill(r, values, nulls);
	return dp_table_insert_unless(&r->table);
}

void
dp_kv_insert(DpKvCall *call, DpKvTable table, const Datum *values, const bool *nulls)
{
	DpKvRel *r = dp_kv_rel(call, table);

	fill(r, values, nulls);
	dp_table_insert(&r->table);
}

bool
dp_kv_update(DpKvCall *call, DpKvTable table, int column, Datum value, bool isnull, bool wait)
{
	DpKvRel *r = dp_kv_rel(call, table);
	TupleTableSlot *row = dp_table_copy(&r->table);

	row->tts_values[column - 1] = value;
	row->tts_isnull[column - 1] = isnull;
	return was_written(dp_table_update(&r->table, &r->table.row->tts_tid, column, wait));
}

bool
dp_kv_delete(DpKvCall *call, DpKvTable table, bool wait)
{
	DpTable *t = &dp_kv_rel(call, table)->table;

	return was_written(dp_table_delete(t, &t->row->tts_tid, wait));
}

void
dp_kv_lost(void)
{
	ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					errmsg("could not serialize access due to concurrent update")));
}

/*
 * Whether a row was written. If not, it is locked, or was changed by another transaction or this
 * command.
 */
static bool
was_written(TM_Result result)
{
	switch (result)
	{
		case TM_Ok:
			return true;
		case TM_Updated:
		case TM_Deleted:
			if (IsolationUsesXactSnapshot())
				dp_kv_lost();
			return false;
		case TM_BeingModified:
		case TM_WouldBlock:
		case TM_SelfModified:
			return false;
		default:
			elog(ERROR, "could not write to a key-value space: %d", (int) result);
	}
}

/* Stores the new row in its slot. */
static void
fill(DpKvRel *r, const Datum *values, const bool *nulls)
{
	TupleTableSlot *row = dp_table_blank(&r->table);
	int natts = RelationGetDescr(r->table.rel)->natts;

	memcpy(row->tts_values, values, sizeof(Datum) * natts);
	if (nulls == NULL)
		memset(row->tts_isnull, 0, sizeof(bool) * natts);
	else
		memcpy(row->tts_isnull, nulls, sizeof(bool) * natts);
}

/* Spaces */

/* Returns the space with that name. */
static DpKvSpace *
space_find(text *name)
{
	char key[NAMEDATALEN] = { 0 };
	int len = VARSIZE_ANY_EXHDR(name);
	uint64 now = dp_schema_generation();
	DpKvSpace *space;
	Oid schema;
	bool found;

	if (len >= NAMEDATALEN)
		no_space(text_to_cstring(name), NULL);
	memcpy(key, VARDATA_ANY(name), len);
	if (!OidIsValid(get_namespace_oid(key, true)))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_SCHEMA),
						errmsg("key-value space \"%s\" does not exist", key),
						errhint("Create it with kv_create().")));
	schema = LookupExplicitNamespace(key, false);
	if (spaces == NULL)
	{
		HASHCTL ctl = { 0 };

		ctl.keysize = NAMEDATALEN;
		ctl.entrysize = sizeof(DpKvSpace);
		ctl.hcxt = CacheMemoryContext;
		spaces = hash_create("docpatterns key-value spaces", 16, &ctl,
							 HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
	}
	space = hash_search(spaces, key, HASH_ENTER, &found);
	if (!found)
		space->generation = 0;
	if (space->generation != now || space->schema != schema)
	{
		space->generation = 0;
		space->schema = schema;
		space_read(space);
		space->generation = now;
	}
	return space;
}

/* Checks the tables of a space: a user may create any table. */
static void
space_read(DpKvSpace *space)
{
	int i;

	for (i = 0; i < KV_TABLES; i++)
		space_table(space, i);
	ops_find(space->order);
}

/* Checks one of them, and its indexes. */
static void
space_table(DpKvSpace *space, DpKvTable table)
{
	static const int16 order_columns[3] = { KV_KEY, KV_SCORES_SCORE, KV_SCORES_MEMBER };
	Oid relid = get_relname_relid(table_names[table], space->schema);
	const char *letters = table_columns[table];
	int natts = strlen(letters);
	Relation rel;
	List *indexes;
	ListCell *lc;
	Oid primary;
	int i;

	if (!OidIsValid(relid))
		no_space(space->name, table_names[table]);
	rel = table_open(relid, AccessShareLock);
	if (rel->rd_rel->relkind != RELKIND_RELATION || RelationGetDescr(rel)->natts != natts ||
		rel->rd_rel->relhassubclass)
		no_space(space->name, table_names[table]);
	for (i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);
		Oid type = letters[i] == 't' || letters[i] == 'x' ? TEXTOID
				   : letters[i] == 'v'                    ? dp_types()->bson_value
				   : letters[i] == 'e'                    ? TIMESTAMPTZOID
				   : letters[i] == 'r'                    ? REGCLASSOID
				   : letters[i] == 's'                    ? INT2OID
														  : INT8OID;

		if (att->attisdropped || att->atttypid != type || att->attgenerated ||
			(type == TEXTOID && att->attcollation != C_COLLATION_OID))
			no_space(space->name, table_names[table]);
	}

	for (i = 0; table == KV_KEYS; i++)
	{
		if (rel->trigdesc == NULL || i >= rel->trigdesc->numtriggers)
			no_space(space->name, table_names[table]);
		if (strncmp(rel->trigdesc->triggers[i].tgname, DP_TRIGGER_PREFIX "90_kv",
					strlen(DP_TRIGGER_PREFIX "90_kv")) == 0)
			break;
	}

	space->tables[table] = relid;
	indexes = RelationGetIndexList(rel);
	primary = rel->rd_pkindex;
	if (table == KV_SCORES)
		space->order = InvalidOid;
	foreach(lc, indexes)
	{
		Relation index = index_open(lfirst_oid(lc), AccessShareLock);
		bool is_primary = lfirst_oid(lc) == primary;
		int nkeys = table == KV_KEYS ? 1 : table == KV_COUNTS ? 5 : 2;
		bool fits = index->rd_index->indisvalid && index->rd_index->indisready;

		if (is_primary)
		{
			fits = fits && index->rd_index->indimmediate &&
				   IndexRelationGetNumberOfKeyAttributes(index) == nkeys;
			for (i = 0; i < nkeys && fits; i++)
				fits = index->rd_index->indkey.values[i] == i + 1;
			if (!fits)
				no_space(space->name, table_names[table]);
		}
		else if (table == KV_SCORES && RelationGetIndexPredicate(index) == NIL &&
				 IndexRelationGetNumberOfKeyAttributes(index) == lengthof(order_columns))
		{
			for (i = 0; i < lengthof(order_columns) && fits; i++)
				fits = index->rd_index->indkey.values[i] == order_columns[i] &&
					   (index->rd_indoption[i] & INDOPTION_DESC) == 0 &&
					   (i > 0 || index->rd_indcollation[i] == C_COLLATION_OID);
			if (fits)
				space->order = lfirst_oid(lc);
		}
		index_close(index, NoLock);
	}
	list_free(indexes);
	if (!OidIsValid(primary) || (table == KV_SCORES && !OidIsValid(space->order)))
		no_space(space->name, table_names[table]);
	table_close(rel, NoLock);
}

/* Raises WRONG_OBJECT_TYPE. */
static void
no_space(const char *name, const char *table)
{
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("schema \"%s\" is not a key-value space", name),
			 table == NULL ? 0 : errdetail("Its table \"%s\" is missing or was altered.", table),
			 errhint("Create it with kv_create().")));
}

/* Looks up the functions of bson_value's operators from an index on such columns. */
static void
ops_find(Oid index)
{
	Relation rel;
	Oid value = dp_types()->bson_value;

	if (ops.value == value)
		return;
	rel = index_open(index, AccessShareLock);
	fmgr_info_cxt(F_TEXTEQ, &ops.text_eq, TopMemoryContext);
	fmgr_info_cxt(F_INT2EQ, &ops.int2_eq, TopMemoryContext);
	fmgr_info_cxt(F_INT8EQ, &ops.int8_eq, TopMemoryContext);
	fmgr_info_cxt(get_opfamily_proc(rel->rd_opfamily[1], value, value, BTORDER_PROC),
				  &ops.value_cmp, TopMemoryContext);
	ops.value = value;
	index_close(rel, NoLock);
}

/* Raises INSUFFICIENT_PRIVILEGE, or FEATURE_NOT_SUPPORTED if row-level security applies. */
static void
check_rights(Oid relid, AclMode rights)
{
	AclResult result = pg_class_aclmask(relid, GetUserId(), rights, ACLMASK_ALL) == rights
						   ? ACLCHECK_OK
						   : ACLCHECK_NO_PRIV;

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_TABLE, get_rel_name(relid));
	if (check_enable_rls(relid, InvalidOid, false) == RLS_ENABLED)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("key-value commands do not work on tables with row-level security"),
						errdetail("Table \"%s\" has policies that apply to the current user.",
								  dp_relation_name(relid))));
}
