/*
 * text.c
 *		Pieces of SQL text for the statements of patterns.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "bson/catalog.h"
#include "kit/sql/text.h"

void
dp_sql_table(StringInfo sql, Oid relid)
{
	char *name = get_rel_name(relid);

	if (name == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", relid)));
	appendStringInfoString(sql,
						   quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
													  name));
}

void
dp_sql_operator(StringInfo sql, Oid operator)
{
	HeapTuple tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator));
	Form_pg_operator form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", operator);
	form = (Form_pg_operator) GETSTRUCT(tuple);
	appendStringInfo(sql, " OPERATOR(%s.%s) ",
					 quote_identifier(get_namespace_name(form->oprnamespace)),
					 NameStr(form->oprname));
	ReleaseSysCache(tuple);
}

/*
 * The operator of a type's default btree order for a strategy.  An operator written by its name
 * alone would be looked up in the search_path of each writer.
 */
void
dp_sql_type_operator(StringInfo sql, Oid type, StrategyNumber strategy)
{
	TypeCacheEntry *entry = lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY | TYPECACHE_EQ_OPR);
	Oid operator= InvalidOid;

	if (strategy == BTEqualStrategyNumber)
		operator= entry->eq_opr;
	else if (OidIsValid(entry->btree_opf))
		operator= get_opfamily_member(entry->btree_opf, entry->btree_opintype,
									  entry->btree_opintype, strategy);
	if (!OidIsValid(operator))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
						errmsg("values of type %s cannot be compared", format_type_be(type))));
	dp_sql_operator(sql, operator);
}

void
dp_sql_key_list(StringInfo sql, DpDecl *decl)
{
	int i;

	for (i = 0; i < decl->nkeys; i++)
		appendStringInfo(sql, "%s%s", i > 0 ? ", " : "", quote_identifier(decl->keys[i].name));
}

void
dp_sql_key_match(StringInfo sql, DpDecl *decl)
{
	int i;

	for (i = 0; i < decl->nkeys; i++)
	{
		appendStringInfo(sql, "%s%s", i > 0 ? " AND " : "", quote_identifier(decl->keys[i].name));
		dp_sql_operator(sql, decl->keys[i].eqop);
		appendStringInfo(sql, "$%d", i + 1);
	}
}

void
dp_sql_side_key_name(StringInfo sql, DpDecl *decl, int i)
{
	if (decl->nkeys == 1)
		appendStringInfoString(sql, "key");
	else
		appendStringInfo(sql, "key%d", i + 1);
}

void
dp_sql_parameters(StringInfo sql, int first, int n)
{
	int i;

	for (i = 0; i < n; i++)
		appendStringInfo(sql, "%s$%d", i > 0 ? ", " : "", first + i);
}

void
dp_sql_doc_path(StringInfo sql, const char *column, const char *path)
{
	appendStringInfo(sql, "(%s", quote_identifier(column));
	dp_sql_own_operator(sql, "->");
	appendStringInfo(sql, "%s::pg_catalog.text)", quote_literal_cstr(path));
}

void
dp_sql_key_types(DpDecl *decl, Oid *argtypes)
{
	int i;

	for (i = 0; i < decl->nkeys; i++)
		argtypes[i] = decl->keys[i].type;
}

Oid
dp_sql_type(const char *name)
{
	bool is_array = strchr(name, '[') != NULL;
	Datum plain = CStringGetDatum(pnstrdup(name, strcspn(name, "[")));
	Oid type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, plain,
							   ObjectIdGetDatum(PG_CATALOG_NAMESPACE));

	if (!OidIsValid(type))
		type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, plain,
							   ObjectIdGetDatum(dp_types()->schema));
	return is_array ? get_array_type(type) : type;
}
