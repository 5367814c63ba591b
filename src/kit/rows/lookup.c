/*
 * lookup.c
 *		Index lookups: chooses the index of a table.
 *
 * The choice is cached in the lookup until any relation changes, because there is no narrower
 * notification of new or dropped indexes of partitions.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "nodes/primnodes.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "bson/catalog.h"
#include "kit/rows/lookup.h"
#include "mql/collection_calls.h"

typedef enum LookupKind
{
	LOOKUP_PRIMARY,
	LOOKUP_PATH,
	LOOKUP_COLUMN,
	LOOKUP_CALL
} LookupKind;

struct DpLookup
{
	Oid relid;
	LookupKind kind;
	char *column;
	char *path;            /* or the name of the function */
	List *arguments;       /* texts, of a function call */
	uint64 generation;     /* when the indexes were found */
	MemoryContext context; /* of the indexes, a child of the lookup's */
	List *indexes;         /* of DpLookupIndex */
};

static uint64 schema_generation = 0; /* 0: callbacks are not registered */

static DpLookup *lookup_make(Oid relid, LookupKind kind, const char *column, const char *path,
							 MemoryContext context);
static DpLookupIndex *index_find(DpLookup *lookup, Relation rel);
static bool index_serves(DpLookup *lookup, Relation rel, Relation index);
static bool is_field(Node *node, AttrNumber attnum, const char *path);
static bool is_call(Node *node, AttrNumber attnum, const DpLookup *lookup);
static void index_keys(DpLookupIndex *found, Relation index, int nkeys);
static void relation_changed(Datum arg, Oid relid);

DpLookup *
dp_lookup_primary(Oid relid, MemoryContext context)
{
	return lookup_make(relid, LOOKUP_PRIMARY, NULL, NULL, context);
}

DpLookup *
dp_lookup_path(Oid relid, const char *column, const char *path, MemoryContext context)
{
	return lookup_make(relid, LOOKUP_PATH, column, path, context);
}

DpLookup *
dp_lookup_call(Oid relid, const char *column, const char *function, List *arguments,
			   MemoryContext context)
{
	DpLookup *lookup = lookup_make(relid, LOOKUP_CALL, column, function, context);
	MemoryContext old = MemoryContextSwitchTo(context);
	ListCell *lc;

	foreach(lc, arguments)
		lookup->arguments = lappend(lookup->arguments, pstrdup(lfirst(lc)));
	MemoryContextSwitchTo(old);
	return lookup;
}

DpLookupIndex *
dp_lookup_index(DpLookup *lookup, Relation rel)
{
	uint64 now = dp_schema_generation();
	DpLookupIndex *found;
	MemoryContext old;
	ListCell *lc;

	if (unlikely(lookup->generation != now))
	{
		MemoryContextReset(lookup->context);
		lookup->indexes = NIL;
		lookup->generation = now;
	}
	foreach(lc, lookup->indexes)
	{
		found = lfirst(lc);
		if (found->relid == RelationGetRelid(rel))
			return OidIsValid(found->index) ? found : NULL;
	}

	/* opening indexes may process other invalidations: then the next call searches again */
	old = MemoryContextSwitchTo(lookup->context);
	found = index_find(lookup, rel);
	lookup->indexes = lappend(lookup->indexes, found);
	MemoryContextSwitchTo(old);
	return OidIsValid(found->index) ? found : NULL;
}

DpLookupIndex *
dp_lookup_key(Relation rel)
{
	DpLookup lookup = { .kind = LOOKUP_PRIMARY };

	return index_find(&lookup, rel);
}

void
dp_lookup_missing(DpLookup *lookup, Relation rel)
{
	char *name = dp_relation_name(RelationGetRelid(rel));

	switch (lookup->kind)
	{
		case LOOKUP_PRIMARY:
			ereport(
				ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has no primary key", name),
				 errdetail("Patterns find rows by primary key, which must not be deferrable.")));
			break;
		case LOOKUP_PATH:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("table \"%s\" has no index on the field \"%s\" of its documents", name,
							lookup->path),
					 errhint("CREATE INDEX ON %s ((%s -> %s));", name,
							 quote_identifier(lookup->column), quote_literal_cstr(lookup->path))));
			break;
		case LOOKUP_COLUMN:
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("table \"%s\" has no index on column \"%s\"", name, lookup->column)));
			break;
		case LOOKUP_CALL:
			ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
							errmsg("table \"%s\" has no index on %s() of its documents", name,
								   lookup->path),
							errhint("Create it again with pattern_repair().")));
	}
	pg_unreachable();
}

uint64
dp_schema_generation(void)
{
	if (unlikely(schema_generation == 0))
	{
		dp_on_relation_change(relation_changed);
		schema_generation = 1;
	}
	return schema_generation;
}

List *
dp_table_leaves(Relation rel, LOCKMODE lockmode)
{
	List *leaves = NIL;
	ListCell *lc;

	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return list_make1_oid(RelationGetRelid(rel));
	foreach(lc, find_all_inheritors(RelationGetRelid(rel), lockmode, NULL))
	{
		char kind = get_rel_relkind(lfirst_oid(lc));

		if (kind == RELKIND_RELATION)
			leaves = lappend_oid(leaves, lfirst_oid(lc));
		else if (kind != RELKIND_PARTITIONED_TABLE)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("partition \"%s\" is not a table", dp_relation_name(lfirst_oid(lc)))));
	}
	return leaves;
}

/* Makes a lookup, in the context. */
static DpLookup *
lookup_make(Oid relid, LookupKind kind, const char *column, const char *path, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	DpLookup *lookup = palloc0(sizeof(DpLookup));

	lookup->relid = relid;
	lookup->kind = kind;
	lookup->column = column != NULL ? pstrdup(column) : NULL;
	lookup->path = path != NULL ? pstrdup(path) : NULL;
	lookup->context = AllocSetContextCreate(context, "docpatterns lookup", ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(old);
	return lookup;
}

/* The best index: unique before others, then the shortest. */
static DpLookupIndex *
index_find(DpLookup *lookup, Relation rel)
{
	DpLookupIndex *found = palloc0(sizeof(DpLookupIndex));
	List *indexes = RelationGetIndexList(rel);
	bool best_unique = false;
	int best_columns = 0;
	ListCell *lc;

	found->relid = RelationGetRelid(rel);
	if (lookup->kind == LOOKUP_PRIMARY)
	{
		list_free(indexes);
		indexes = OidIsValid(rel->rd_pkindex) ? list_make1_oid(rel->rd_pkindex) : NIL;
	}
	foreach(lc, indexes)
	{
		Relation index = index_open(lfirst_oid(lc), AccessShareLock);
		bool unique = index->rd_index->indisunique;
		int columns = IndexRelationGetNumberOfAttributes(index);

		if (index_serves(lookup, rel, index) &&
			(!OidIsValid(found->index) || (unique && !best_unique) ||
			 (unique == best_unique && columns < best_columns)))
		{
			found->index = RelationGetRelid(index);
			index_keys(found, index,
					   lookup->kind == LOOKUP_PRIMARY ? IndexRelationGetNumberOfKeyAttributes(index)
													  : 1);
			if (lookup->kind == LOOKUP_PATH && index->rd_opcintype[0] != dp_types()->bson_value)
			{
				AttrNumber attnum = index->rd_index->indkey.values[0];

				found->column.type = TupleDescAttr(RelationGetDescr(rel), attnum - 1)->atttypid;
				found->column.typmod = -1;
			}
			best_unique = unique;
			best_columns = columns;
		}
		index_close(index, NoLock);
	}
	list_free(indexes);
	return found;
}

/* True if the index can be used. */
static bool
index_serves(DpLookup *lookup, Relation rel, Relation index)
{
	AttrNumber attnum = index->rd_index->indkey.values[0];
	AttrNumber column;

	if (index->rd_rel->relam != BTREE_AM_OID || !index->rd_index->indisvalid ||
		!index->rd_index->indisready)
		return false;
	if (lookup->kind == LOOKUP_PRIMARY)
		return index->rd_index->indimmediate;
	if (RelationGetIndexPredicate(index) != NIL)
		return false;
	if (lookup->kind == LOOKUP_COLUMN)
	{
		column = get_attnum(RelationGetRelid(rel), lookup->column);
		return column > 0 && attnum == column;
	}

	if (strcmp(lookup->path, "_id") == 0 && attnum > 0)
		return attnum == dp_collection_key(rel);

	/* an extension's table is searched only by its key, whatever indexes it has */
	if (lookup->column == NULL)
		return false;
	column = get_attnum(RelationGetRelid(rel), lookup->column);
	if (lookup->kind == LOOKUP_CALL)
		return attnum == 0 && column > 0 && index->rd_opcintype[0] == dp_types()->bson_value &&
			   is_call(linitial(RelationGetIndexExpressions(index)), column, lookup);
	return attnum == 0 && column > 0 && index->rd_opcintype[0] == dp_types()->bson_value &&
		   is_field(linitial(RelationGetIndexExpressions(index)), column, lookup->path);
}

/* True if an expression is (column -> 'path'). */
static bool
is_field(Node *node, AttrNumber attnum, const char *path)
{
	OpExpr *op = (OpExpr *) node;
	Var *var;
	Const *con;
	char *name;

	if (!IsA(node, OpExpr) || list_length(op->args) != 2)
		return false;
	var = linitial(op->args);
	con = lsecond(op->args);
	if (!IsA(var, Var) || var->varattno != attnum || !IsA(con, Const) || con->constisnull ||
		con->consttype != TEXTOID || op->opresulttype != dp_types()->bson_value ||
		strcmp(TextDatumGetCString(con->constvalue), path) != 0)
		return false;
	name = get_opname(op->opno);
	return name != NULL && strcmp(name, "->") == 0;
}

/* True if an expression is function(column, 'argument', ...). */
static bool
is_call(Node *node, AttrNumber attnum, const DpLookup *lookup)
{
	FuncExpr *call = (FuncExpr *) node;
	Var *var;
	char *name;
	int i;

	if (!IsA(node, FuncExpr) || list_length(call->args) != list_length(lookup->arguments) + 1)
		return false;
	var = linitial(call->args);
	if (!IsA(var, Var) || var->varattno != attnum)
		return false;
	for (i = 0; i < list_length(lookup->arguments); i++)
	{
		Const *con = list_nth(call->args, i + 1);

		if (!IsA(con, Const) || con->constisnull || con->consttype != TEXTOID ||
			strcmp(TextDatumGetCString(con->constvalue), list_nth(lookup->arguments, i)) != 0)
			return false;
	}
	name = get_func_name(call->funcid);
	return name != NULL && strcmp(name, lookup->path) == 0 &&
		   get_func_namespace(call->funcid) == dp_types()->schema;
}

/* Fills in the scan keys of an index; the current context is that of the indexes. */
static void
index_keys(DpLookupIndex *found, Relation index, int nkeys)
{
	int i;

	found->nkeys = nkeys;
	for (i = 0; i < nkeys; i++)
	{
		Oid operator= get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i],
										  index->rd_opcintype[i], BTEqualStrategyNumber);

		if (!OidIsValid(operator))
			elog(ERROR, "index %u has no equality for its column %d", RelationGetRelid(index),
				 i + 1);
		ScanKeyEntryInitialize(&found->keys[i], 0, i + 1, BTEqualStrategyNumber, InvalidOid,
							   index->rd_indcollation[i], get_opcode(operator), (Datum) 0);
	}
}

/* Called when any relation has changed. */
static void
relation_changed(Datum arg, Oid relid)
{
	schema_generation++;
}
