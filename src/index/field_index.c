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
#include "index/text_condition.h"
#include "mql/collection_calls.h"
#include "mql/filter.h"
#include "mql/spec.h"

/* What follows from a filter for the indexes of a table */
typedef struct Conditions
{
	RelOptInfo *rel;
	DpDocFacts *facts;
	AttrNumber doc;
	AttrNumber key;   /* of a collection, with the documents' _id; or 0 */
	List *clauses;    /* that are true */
	List *loose;      /* expressions that may be arrays .. */
	List *loose_ands; /* .. and for each, a list of clauses that hold if it is none */
	List *deep;       /* and whether it may be NULL (ints) */
} Conditions;

static set_rel_pathlist_hook_type previous_hook = NULL;

static void pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte);
static List *filter_clauses(RelOptInfo *rel, Oid relid);
static void
add_condition(const DpPath *path, DpComparison how, const DpValue *values, int n, void *arg);
static Expr *indexed_field(Conditions *c, const char *path);
static Expr *any_of(Expr *field, const DpValue *values, int n);
static Expr *loose_clause(Expr *field, List *clauses, bool deep);
static void add_filter_paths(PlannerInfo *root, RelOptInfo *rel, List *clauses);

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
		List *clauses = filter_clauses(rel, rte->relid);

		if (clauses != NIL)
			add_filter_paths(root, rel, clauses);
	}

	if (root->query_pathkeys != NIL && root->parse->commandType == CMD_SELECT &&
		bms_is_empty(rel->lateral_relids))
		dp_add_ordered_paths(root, rel, rte->relid);
}

/* ---------------------------------------------------------------- filters */

/* What follows from the filters on a table for its indexes. */
static List *
filter_clauses(RelOptInfo *rel, Oid relid)
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
		ListCell *lc2;
		ListCell *lc3;

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
		c.key = dp_collection_key(table);
		if (c.key != 0 &&
			TupleDescAttr(RelationGetDescr(table), c.key - 1)->atttypid != dp_types()->bson_value)
			c.key = 0;
		scratch = AllocSetContextCreate(CurrentMemoryContext, "docpatterns filter to be indexed",
										DP_SPEC_CONTEXT_SIZES);
		planner = MemoryContextSwitchTo(scratch);
		spec = dp_value_of_document(PG_DETOAST_DATUM_PACKED(filter->constvalue));
		compiled = dp_filter_compile(&spec, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
		MemoryContextSwitchTo(planner);
		dp_filter_each_comparison(compiled, add_condition, &c);
		MemoryContextDelete(scratch);
		forthree(lc1, c.loose, lc2, c.loose_ands, lc3, c.deep)
			c.clauses =
				lappend(c.clauses, loose_clause(lfirst(lc1), lfirst(lc2), lfirst_int(lc3) != 0));
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
	int i = 0;
	ListCell *lc;

	/* null is as good as nothing, and values of other types match these, too */
	for (i = 0; i < n; i++)
		if (values[i].type == DP_TYPE_NULL || values[i].type == DP_TYPE_UNDEFINED ||
			values[i].type == DP_TYPE_MINKEY || values[i].type == DP_TYPE_MAXKEY)
			return;
	if (c->key != 0 && path->nsteps == 1 && strcmp(path->steps[0].name, "_id") == 0)
		field = (Expr *) makeVar(c->rel->relid, c->key, dp_types()->bson_value, -1, InvalidOid, 0);
	else
	{
		const char *indexed = dp_doc_index(c->facts, path, &arrays);

		field = indexed == NULL ? NULL : indexed_field(c, indexed);
	}
	if (field == NULL)
		return;
	clause = how == DP_COMPARE_IN
				 ? any_of(field, values, n)
				 : dp_field_compare(field, operators[how], dp_value_to_varlena(&values[0]));
	if (!arrays)
	{
		c->clauses = lappend(c->clauses, clause);
		return;
	}
	/* a range has two sides and is searched once */
	i = 0;
	foreach(lc, c->loose)
	{
		if (equal(lfirst(lc), field))
		{
			lfirst(list_nth_cell(c->loose_ands, i)) = lappend(list_nth(c->loose_ands, i), clause);
			return;
		}
		i++;
	}
	c->loose = lappend(c->loose, field);
	c->loose_ands = lappend(c->loose_ands, list_make1(clause));
	c->deep = lappend_int(c->deep, path->nsteps > 1);
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

/* field = ANY (values) */
static Expr *
any_of(Expr *field, const DpValue *values, int n)
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

/* The clauses hold, or the field is an array, or NULL if deep. */
static Expr *
loose_clause(Expr *field, List *clauses, bool deep)
{
	static const char after[] = "{\"$binary\": {\"base64\": \"\", \"subType\": \"00\"}}";
	List * or
		= list_make2(make_ands_explicit(clauses),
					 make_andclause(list_make2(dp_field_compare(field, ">=",
																dp_text_to_value("[]", 2, NULL)),
											   dp_field_compare(field, "<",
																dp_text_to_value(after,
																				 strlen(after),
																				 NULL)))));

	if (deep)
	{
		NullTest *test = makeNode(NullTest);

		test->arg = copyObject(field);
		test->nulltesttype = IS_NULL;
		test->location = -1;
		or = lappend(or, test);
	}
	return make_orclause(or);
}

/* Lets PostgreSQL make its paths as if the clauses were there, too. */
static void
add_filter_paths(PlannerInfo *root, RelOptInfo *rel, List *clauses)
{
	List *present = get_actual_clauses(rel->baserestrictinfo);
	List *restrictions = rel->baserestrictinfo;
	List *of_indexes = NIL;
	List *added = NIL;
	ListCell *lc;
	ListCell *lc2;

	foreach(lc, clauses)
		if (!list_member(present, lfirst(lc)))
			added = lappend(added, make_simple_restrictinfo(root, lfirst(lc)));
	if (added == NIL)
		return;
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
