/*
 * seen.c
 *		Rows that calls for collections do not see, because a pattern will delete them
 *		(DpPattern.seen).  Plain SQL sees them.
 *
 * For the calls such a row is not there, so a new document must not meet it in a unique index: the
 * row is deleted first, as the table's owner, who would delete it a little later anyway.  The
 *values that the new document will have in the index are known if these are the key of a
 *collection, or expressions of the document alone.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/registry.h"
#include "kit/seen.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "mql/collection_calls.h"

/* So many unique indexes are looked at */
#define INDEXES 16

static Oid declared_relation(Relation rel);
static char *seen_condition(List *decls);
static List *statements(DpDecl *decl, Relation rel, const char *seen);
static char *same_entry(DpDecl *decl, Relation rel, Relation index);
static bool of_document(DpDecl *decl, Node *expr);
static Datum ids_of(Datum docs);

char *
dp_seen_of_table(Relation rel)
{
	Oid declared = declared_relation(rel);

	return OidIsValid(declared) ? seen_condition(dp_decls(declared)) : NULL;
}

bool
dp_sees(List *decls, struct varlena *stored)
{
	ListCell *lc;

	foreach(lc, decls)
	{
		DpDecl *decl = lfirst(lc);

		if (decl->methods->sees != NULL && !decl->methods->sees(decl, stored))
			return false;
	}
	return true;
}

/* The table, or the nearest table of which it is a partition, with such a declaration. */
static Oid
declared_relation(Relation rel)
{
	List *relations = list_make1_oid(RelationGetRelid(rel));
	ListCell *lc;

	if (rel->rd_rel->relispartition)
		relations = list_concat(relations, get_partition_ancestors(RelationGetRelid(rel)));
	foreach(lc, relations)
		if (seen_condition(dp_decls(lfirst_oid(lc))) != NULL)
			return lfirst_oid(lc);
	return InvalidOid;
}

static char *
seen_condition(List *decls)
{
	char *sql = NULL;
	ListCell *lc;

	foreach(lc, decls)
	{
		DpDecl *decl = lfirst(lc);
		char *seen = decl->methods->seen == NULL ? NULL : decl->methods->seen(decl);

		if (seen != NULL)
			sql = sql == NULL ? seen : psprintf("%s AND %s", sql, seen);
	}
	return sql;
}

void
dp_make_way(Oid relid, Datum docs)
{
	static const char ids[INDEXES];
	const Oid types[2] = { dp_types()->bson_array, dp_types()->bson_value_array };
	Datum values[2] = { docs, ids_of(docs) };
	Relation rel = table_open(relid, AccessShareLock);
	Oid declared = declared_relation(rel);
	DpDecl *decl = NULL;
	ListCell *lc;
	int n = 0;

	table_close(rel, NoLock);
	if (!OidIsValid(declared))
		return;
	foreach(lc, dp_decls(declared))
		if (((DpDecl *) lfirst(lc))->methods->seen != NULL)
			decl = lfirst(lc);
	SPI_connect();
	if (dp_plan(decl, &ids[0]) == NULL)
	{
		int nestlevel = NewGUCNestLevel();

		/* names in expressions are then qualified */
		(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
		rel = table_open(declared, AccessShareLock);
		foreach(lc, statements(decl, rel, seen_condition(dp_decls(declared))))
			(void) dp_plan_make(decl, &ids[n++], lfirst(lc), 2, (Oid *) types, 0);
		table_close(rel, NoLock);
		AtEOXact_GUC(false, nestlevel);
	}
	for (n = 0; n < INDEXES && dp_plan(decl, &ids[n]) != NULL; n++)
		dp_run(decl, dp_plan(decl, &ids[n]), values, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_DELETE);
	SPI_finish();
}

/* A DELETE for each unique index; $1: the new documents, $2: their keys. */
static List *
statements(DpDecl *decl, Relation rel, const char *seen)
{
	AttrNumber key = dp_collection_key(rel);
	const char *name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
												  RelationGetRelationName(rel));
	List *all = NIL;
	ListCell *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation index = index_open(lfirst_oid(lc), AccessShareLock);
		Form_pg_index form = index->rd_index;
		char *same = NULL;

		if (form->indisunique && form->indisvalid && list_length(all) < INDEXES)
		{
			if (key != 0 && form->indnkeyatts == 1 && form->indkey.values[0] == key)
				all = lappend(all, psprintf("DELETE FROM %s AS t WHERE %s AND NOT (%s)", name,
											dp_collection_key_in(rel, key, "$2"), seen));
			else if (!dp_is_distributed(RelationGetRelid(rel)))
				same = same_entry(decl, rel, index);
			if (same != NULL)
				all = lappend(all, psprintf("DELETE FROM %s AS t USING pg_catalog.unnest($1) AS s "
											"(%s) WHERE %s AND NOT (%s)",
											name, quote_identifier(decl->doc_column), same, seen));
		}
		index_close(index, AccessShareLock);
	}
	return all;
}

/* That a row t and the document of a row s are the same for the index; NULL if it has columns. */
static char *
same_entry(DpDecl *decl, Relation rel, Relation index)
{
	List *of_t = deparse_context_for("t", RelationGetRelid(rel));
	List *of_s = deparse_context_for("s", RelationGetRelid(rel));
	List *expressions = RelationGetIndexExpressions(index);
	List *predicate = RelationGetIndexPredicate(index);
	ListCell *next = list_head(expressions);
	StringInfoData sql;

	initStringInfo(&sql);
	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		Oid type = index->rd_opcintype[i];
		Oid equal = get_opfamily_member(index->rd_opfamily[i], type, type, BTEqualStrategyNumber);
		Node *expr;

		if (index->rd_index->indkey.values[i] != 0 || !OidIsValid(equal))
			return NULL;
		expr = lfirst(next);
		next = lnext(expressions, next);
		if (!of_document(decl, expr))
			return NULL;
		if (i > 0)
			appendStringInfoString(&sql, " AND ");
		generate_operator_clause(&sql, deparse_expression(expr, of_t, true, false), exprType(expr),
								 equal, deparse_expression(expr, of_s, true, false),
								 exprType(expr));
	}
	if (predicate != NIL)
	{
		Node *expr = (Node *) make_ands_explicit(predicate);

		if (!of_document(decl, expr))
			return NULL;
		appendStringInfo(&sql, " AND (%s) AND (%s)", deparse_expression(expr, of_t, true, false),
						 deparse_expression(expr, of_s, true, false));
	}
	return sql.data;
}

/* Whether the expression uses no other column than that of the documents. */
static bool
of_document(DpDecl *decl, Node *expr)
{
	Bitmapset *used = NULL;

	pull_varattnos(expr, 1, &used);
	return bms_is_subset(used,
						 bms_make_singleton(decl->doc_attnum - FirstLowInvalidHeapAttributeNumber));
}

/* The _ids of documents, as a bson_value[]; NULL for documents without one. */
static Datum
ids_of(Datum docs)
{
	Datum *elements;
	bool *nulls;
	int n;

	deconstruct_array(DatumGetArrayTypeP(docs), dp_types()->bson, -1, false, TYPALIGN_INT,
					  &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		struct varlena *doc = nulls[i] ? NULL : PG_DETOAST_DATUM_PACKED(elements[i]);
		DpValue id;

		nulls[i] =
			doc == NULL || !dp_document_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), "_id", 3, &id);
		if (!nulls[i])
			elements[i] = PointerGetDatum(dp_value_to_varlena(&id));
	}
	return PointerGetDatum(construct_md_array(elements, nulls, 1, &n, &(int){ 1 },
											  dp_types()->bson_value, -1, false, TYPALIGN_INT));
}

/*
 * _pattern_make_way(rel regclass, docs bson[]) -> void: deletes the rows that calls do not see and
 * that the documents would meet in a unique index
 */
DP_FUNCTION(dp_pattern_make_way);
Datum
dp_pattern_make_way(PG_FUNCTION_ARGS)
{
	if (pg_class_aclcheck(PG_GETARG_OID(0), GetUserId(), ACL_INSERT) != ACLCHECK_OK &&
		pg_attribute_aclcheck_all(PG_GETARG_OID(0), GetUserId(), ACL_INSERT, ACLMASK_ANY) !=
			ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(PG_GETARG_OID(0)));
	dp_make_way(PG_GETARG_OID(0), PG_GETARG_DATUM(1));
	PG_RETURN_VOID();
}
