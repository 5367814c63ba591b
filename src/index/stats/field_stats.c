/*
 * field_stats.c
 *		Statistics of fields for PostgreSQL's own estimates: how many groups GROUP BY
 *		doc -> 'status' and DISTINCT have, and how many rows doc -> 'status' IS NULL.
 *
 * PostgreSQL looks for statistics of an expression in indexes on it.  So a hook gives each table
 * whose fields a query groups by an index on these expressions that exists in the planner only,
 * serves no scan, and whose statistics, by another hook, are those of the fields.  They have no
 * values, and the extension's own estimators ignore them.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/pg_statistic.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "optimizer/tlist.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"

#include "bson/catalog.h"
#include "index/stats/field_stats.h"
#include "index/stats/selectivity_field.h"

static get_relation_info_hook_type previous_relation_info = NULL;
static get_index_stats_hook_type previous_index_stats = NULL;

static void relation_info(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel);
static bool find_tests(Node *node, List **expressions);
static bool is_wanted(PlannerInfo *root, Node *node, RelOptInfo *rel);
static Node *field_within(Node *node);
static bool add_child(Node *node, List **children);
static bool
index_stats(PlannerInfo *root, Oid index, AttrNumber column, VariableStatData *variable);
static void free_tuple(HeapTuple tuple);

void
dp_field_stats_init(void)
{
	previous_relation_info = get_relation_info_hook;
	get_relation_info_hook = relation_info;
	previous_index_stats = get_index_stats_hook;
	get_index_stats_hook = index_stats;
}

bool
dp_field_is_described(const VariableStatData *variable)
{
	return HeapTupleIsValid(variable->statsTuple) && variable->freefunc != free_tuple;
}

/* Adds the index on the expressions of a table that a query groups by or tests for NULL. */
static void
relation_info(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	Query *query = root->parse;
	List *expressions = NIL;
	List *wanted = NIL;
	List *columns = NIL;
	IndexOptInfo *index;
	ListCell *lc;

	if (previous_relation_info != NULL)
		previous_relation_info(root, relid, inhparent, rel);
	if (relid < FirstNormalObjectId || query->jointree == NULL)
		return;
	expressions = list_concat(get_sortgrouplist_exprs(query->groupClause, query->targetList),
							  get_sortgrouplist_exprs(query->distinctClause, query->targetList));
	find_tests((Node *) query->jointree, &expressions);
	foreach(lc, expressions)
		if (is_wanted(root, lfirst(lc), rel))
			wanted = list_append_unique(wanted, lfirst(lc));
	if (wanted == NIL)
		return;

	foreach(lc, wanted)
		columns =
			lappend(columns, makeTargetEntry(lfirst(lc), list_length(columns) + 1, NULL, false));
	index = makeNode(IndexOptInfo);
	index->rel = rel;
	index->ncolumns = list_length(wanted);
	index->nkeycolumns = 1;
	index->indexkeys = palloc0(sizeof(int) * index->ncolumns);
	index->indexcollations = palloc0(sizeof(Oid));
	index->opfamily = palloc0(sizeof(Oid));
	index->opcintype = palloc0(sizeof(Oid));
	index->canreturn = palloc0(sizeof(bool) * index->ncolumns);
	index->indexprs = wanted;
	index->indextlist = columns;
	index->hypothetical = true;
	/* the planner skips partial indexes with conditions that do not hold */
	index->indpred = list_make1(makeBoolConst(false, false));
	rel->indexlist = lappend(rel->indexlist, index);
}

static bool
find_tests(Node *node, List **expressions)
{
	if (node == NULL)
		return false;
	if (IsA(node, NullTest))
		*expressions = lappend(*expressions, ((NullTest *) node)->arg);
	return expression_tree_walker(node, find_tests, expressions);
}

/* Whether the expression is made of a field of the table and has no other statistics. */
static bool
is_wanted(PlannerInfo *root, Node *node, RelOptInfo *rel)
{
	ListCell *lc;

	if (IsA(node, Var) || contain_volatile_functions(node) || field_within(node) == NULL ||
		!bms_equal(pull_varnos(root, node), rel->relids))
		return false;
	foreach(lc, rel->indexlist)
		if (list_member(((IndexOptInfo *) lfirst(lc))->indexprs, node))
			return false;
	foreach(lc, rel->statlist)
		if (list_member(((StatisticExtInfo *) lfirst(lc))->exprs, node))
			return false;
	return true;
}

/*
 * The field that is the only part of the expression with columns, such as that in
 * coalesce(doc -> 'status', 'null'): the expression has at most as many values.  NULL if there is
 * none.
 */
static Node *
field_within(Node *node)
{
	while (!dp_field_is_field(node))
	{
		List *children = NIL;

		expression_tree_walker(node, add_child, &children);
		if (list_length(children) != 1)
			return NULL;
		node = linitial(children);
	}
	return node;
}

static bool
add_child(Node *node, List **children)
{
	if (node != NULL && IsA(node, List))
		return expression_tree_walker(node, add_child, children);
	if (node != NULL && contain_var_clause(node))
		*children = lappend(*children, node);
	return false;
}

/* The number of values of a field, and the share of rows without it. */
static bool
index_stats(PlannerInfo *root, Oid index, AttrNumber column, VariableStatData *variable)
{
	Datum values[Natts_pg_statistic] = { 0 };
	bool nulls[Natts_pg_statistic] = { 0 };
	const DpPathStats *path;
	Relation statistics;
	DpField field;
	double distinct;
	Node *expression;

	if (OidIsValid(index) || dp_field_is_described(variable))
		return previous_index_stats != NULL && previous_index_stats(root, index, column, variable);
	expression = field_within(variable->var);
	if (expression == NULL || !dp_field_recognize(root, expression, 0, &field))
		return true;
	path = field.known.path;
	if (path != NULL && path->n_distinct == 0 && path->items > 0)
		return true; /* not counted */
	distinct = path == NULL ? 1.0 : dp_path_distinct(field.estimator, path);
	/* documents and arrays are not among the items */
	if (path != NULL)
		distinct += (path->direct_types[DP_TYPE_DOCUMENT] + path->direct_types[DP_TYPE_ARRAY]) *
					field.estimator->documents;

	statistics = table_open(StatisticRelationId, AccessShareLock);
	values[Anum_pg_statistic_stadistinct - 1] = Float4GetDatum(distinct);
	values[Anum_pg_statistic_stanullfrac - 1] =
		Float4GetDatum(expression == variable->var ? 1.0 - dp_field_present(&field) : 0.0);
	for (int i = 0; i < STATISTIC_NUM_SLOTS; i++)
		nulls[Anum_pg_statistic_stanumbers1 - 1 + i] = nulls[Anum_pg_statistic_stavalues1 - 1 + i] =
			true;
	variable->statsTuple = heap_form_tuple(RelationGetDescr(statistics), values, nulls);
	variable->freefunc = free_tuple;
	variable->acl_ok = true; /* or the field would not be known */
	table_close(statistics, AccessShareLock);
	return true;
}

static void
free_tuple(HeapTuple tuple)
{
	heap_freetuple(tuple);
}
