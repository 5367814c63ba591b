/*
 * field_index.c
 *		Indexes on fields, such as ((doc -> 'a')), for filters that PostgreSQL does not find them
 *for.
 *
 * A filter, doc @@ '{a: 5}', is true for arrays with the value, too.  So the index is searched for
 * what follows from the filter, as collection_find() does (collection_facts.c):
 *
 *		doc -> 'a' = 5, or doc -> 'a' is any array		for a path of several parts also NULL
 *
 * and the filter is tested for the rows.  If checks exclude arrays, only the first is left.
 *
 * Orders are in field_order.c.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/text.h"
#include "index/field_index.h"
#include "index/field_order.h"
#include "index/stats/selectivity.h"
#include "index/text_condition.h"
#include "mql/collection_calls.h"
#include "mql/filter.h"
#include "mql/spec.h"

/* What follows from a filter for the indexes of a table */
typedef struct Conditions
{
	RelOptInfo *rel;
	Relation table;
	DpDocFacts *facts;
	AttrNumber doc;
	List *clauses; /* that are true */
	List *loose;   /* of DpLooseField */
} Conditions;

static set_rel_pathlist_hook_type previous_hook = NULL;

static void pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte);
static List *filter_clauses(RelOptInfo *rel, Oid relid, List **loose);
static void
add_condition(const DpPath *path, DpComparison how, const DpValue *values, int n, void *arg);
static Expr *key(Conditions *c);
static Expr *indexed_field(Conditions *c, const char *path);
static Expr *loose_clause(DpLooseField *loose);
static void estimate_arrays(PlannerInfo *root, RestrictInfo *rinfo, List *fields);
static void add_filter_paths(PlannerInfo *root, RelOptInfo *rel, List *added);

void
dp_field_indexes_init(void)
{
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = pathlist;
}

static void
pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	bool has_values = false;
	List *added = NIL;
	List *loose = NIL;
	ListCell *lc;

	if (previous_hook != NULL)
		previous_hook(root, rel, rti, rte);
	if (rte->rtekind != RTE_RELATION || rte->inh || rte->tablesample != NULL ||
		rte->relid < FirstNormalObjectId || IS_DUMMY_REL(rel))
		return;
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst(lc);

		if (index->relam != BTREE_AM_OID || index->opcintype[0] < FirstNormalObjectId)
			continue;
		has_values = true;
	}
	if (has_values)
	{
		List *present = get_actual_clauses(rel->baserestrictinfo);

		foreach(lc, filter_clauses(rel, rte->relid, &loose))
			if (!list_member(present, lfirst(lc)))
				added = lappend(added, make_simple_restrictinfo(root, lfirst(lc)));
		foreach(lc, added)
			estimate_arrays(root, lfirst(lc), loose);
		if (added != NIL)
			add_filter_paths(root, rel, added);
	}

	if (root->query_pathkeys != NIL && root->parse->commandType == CMD_SELECT &&
		bms_is_empty(rel->lateral_relids))
		dp_add_ordered_paths(root, rel, rte->relid, added, loose);
}

/* ---------------------------------------------------------------- filters */

/* What follows from the filters on a table for its indexes, and for which fields (DpLooseField). */
static List *
filter_clauses(RelOptInfo *rel, Oid relid, List **loose)
{
	List *result = NIL;
	Relation table = NULL;
	ListCell *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst(lc);
		Conditions c = { rel };
		Const *filter;
		Var *doc;
		DpValue spec;
		DpFilter *compiled;
		MemoryContext scratch;
		MemoryContext planner;
		ListCell *lc1;

		if (!dp_doc_is_call((Node *) rinfo->clause, "bson_match", dp_types()->bson, &filter) ||
			!restriction_is_securely_promotable(rinfo, rel))
			continue;
		doc = dp_call_column((Node *) rinfo->clause);
		if (doc->varno != rel->relid || doc->varlevelsup != 0)
			continue;
		if (table == NULL)
			table = table_open(relid, NoLock);
		c.doc = doc->varattno;
		c.facts = dp_doc_facts(table, c.doc);
		c.table = table;
		scratch = AllocSetContextCreate(CurrentMemoryContext, "docpatterns filter to be indexed",
										DP_SPEC_CONTEXT_SIZES);
		planner = MemoryContextSwitchTo(scratch);
		spec = dp_value_of_document(PG_DETOAST_DATUM_PACKED(filter->constvalue));
		compiled = dp_filter_compile(&spec, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
		MemoryContextSwitchTo(planner);
		dp_filter_each_comparison(compiled, add_condition, &c);
		MemoryContextDelete(scratch);
		foreach(lc1, c.loose)
		{
			DpLooseField *field = lfirst(lc1);

			field->or = loose_clause(field);
			c.clauses = lappend(c.clauses, field->or);
		}
		*loose = list_concat(*loose, c.loose);
		result = list_concat(result, c.clauses);
	}
	if (table != NULL)
		table_close(table, NoLock);
	return result;
}

/* For dp_filter_each_comparison(). */
static void
add_condition(const DpPath *path, DpComparison how, const DpValue *values, int n, void *arg)
{
	static const char *const operators[] = { "=", "<", "<=", ">", ">=" };
	Conditions *c = arg;
	bool arrays = false;
	Expr *field;
	Expr *clause;
	DpLooseField *loose;
	ListCell *lc;

	/* null is as good as nothing, and values of other types match these, too */
	for (int i = 0; i < n; i++)
		if (values[i].type == DP_TYPE_NULL || values[i].type == DP_TYPE_UNDEFINED ||
			values[i].type == DP_TYPE_MINKEY || values[i].type == DP_TYPE_MAXKEY)
			return;
	field = path->nsteps == 1 && strcmp(path->steps[0].name, "_id") == 0 ? key(c) : NULL;
	if (field == NULL)
	{
		const char *indexed = dp_doc_index(c->facts, path, &arrays);

		field = indexed == NULL ? NULL : indexed_field(c, indexed);
	}
	if (field == NULL)
		return;
	clause = how == DP_COMPARE_IN
				 ? dp_field_any(field, values, n)
				 : dp_field_compare(field, operators[how], dp_value_to_varlena(&values[0]));
	if (!arrays)
	{
		c->clauses = lappend(c->clauses, clause);
		return;
	}
	/* a range has two sides and is searched once */
	foreach(lc, c->loose)
	{
		loose = lfirst(lc);
		if (equal(loose->field, field))
		{
			loose->clauses = lappend(loose->clauses, clause);
			return;
		}
	}
	loose = palloc(sizeof(DpLooseField));
	loose->field = field;
	loose->clauses = list_make1(clause);
	loose->deep = path->nsteps > 1;
	c->loose = lappend(c->loose, loose);
}

/* The column of a collection with the documents' _id; or NULL. */
static Expr *
key(Conditions *c)
{
	AttrNumber attnum = dp_collection_key(c->table);
	Oid type = dp_types()->bson_value;

	return attnum == 0 || TupleDescAttr(RelationGetDescr(c->table), attnum - 1)->atttypid != type
			   ? NULL
			   : (Expr *) makeVar(c->rel->relid, attnum, type, -1, InvalidOid, 0);
}

/* The expression with that path in an index that the planner knows; or NULL. */
static Expr *
indexed_field(Conditions *c, const char *path)
{
	ListCell *lc;
	ListCell *lc2;

	foreach(lc, c->rel->indexlist)
	{
		IndexOptInfo *index = lfirst(lc);

		if (index->relam != BTREE_AM_OID)
			continue;
		foreach(lc2, index->indexprs)
		{
			Node *expr = lfirst(lc2);
			Const *spelled;

			if (dp_doc_is_call(expr, "bson_get", TEXTOID, &spelled) &&
				strcmp(TextDatumGetCString(spelled->constvalue), path) == 0 &&
				dp_call_column(expr)->varattno == c->doc)
				return (Expr *) expr;
		}
	}
	return NULL;
}

Expr *
dp_field_any(Expr *field, const DpValue *values, int n)
{
	const DpTypes *types = dp_types();
	Datum *elements = palloc(n * sizeof(Datum));
	ScalarArrayOpExpr *any = makeNode(ScalarArrayOpExpr);

	for (int i = 0; i < n; i++)
		elements[i] = PointerGetDatum(dp_value_to_varlena(&values[i]));
	any->opno = dp_value_operator("=");
	any->opfuncid = get_opcode(any->opno);
	any->useOr = true;
	any->args = list_make2(copyObject(field),
						   makeConst(types->bson_value_array, -1, InvalidOid, -1,
									 PointerGetDatum(construct_array(elements, n, types->bson_value,
																	 -1, false, TYPALIGN_INT)),
									 false, false));
	any->location = -1;
	return (Expr *) any;
}

static Expr *
loose_clause(DpLooseField *loose)
{
	List * or = list_make2(make_ands_explicit(loose->clauses),
						   make_andclause(dp_array_clauses(loose->field)));

	if (loose->deep)
		or = lappend(or, dp_null_test(loose->field, IS_NULL));
	return make_orclause(or);
}

/* The estimate of the arrays in a condition that was made by loose_clause() */
static void
estimate_arrays(PlannerInfo *root, RestrictInfo *rinfo, List *fields)
{
	double shares[3];
	ListCell *lc;

	foreach(lc, fields)
	{
		DpLooseField *loose = lfirst(lc);

		if (rinfo->clause == loose->or &&dp_estimate_arrays(root, (Node *) loose->field, shares))
			dp_array_estimate(((BoolExpr *) lsecond(((BoolExpr *) rinfo->orclause)->args))->args,
							  shares[1]);
	}
}

/* Lets PostgreSQL make its paths as if the clauses were there, too. */
static void
add_filter_paths(PlannerInfo *root, RelOptInfo *rel, List *added)
{
	List *restrictions = rel->baserestrictinfo;
	List *of_indexes = NIL;
	ListCell *lc;
	ListCell *lc2;

	rel->baserestrictinfo = list_concat_copy(restrictions, added);
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst(lc);

		of_indexes = lappend(of_indexes, index->indrestrictinfo);
		index->indrestrictinfo = list_concat_copy(index->indrestrictinfo, added);
	}
	create_index_paths(root, rel);
	forboth(lc, rel->indexlist, lc2, of_indexes)
		((IndexOptInfo *) lfirst(lc))->indrestrictinfo = lfirst(lc2);
	rel->baserestrictinfo = restrictions;
}
