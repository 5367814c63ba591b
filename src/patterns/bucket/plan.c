/*
 * plan.c
 *		Planning scans of relations of measurements.
 *
 * There are scans of the whole relation, which workers can share, and scans by the
 * indexes on group and time, parameterized by joins if possible, forwards and
 * backwards in the order of group and time.
 */
#include "postgres.h"

#include <math.h>

#include "access/nbtree.h"
#include "access/sysattr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

#include "bson/catalog.h"
#include "patterns/bucket/upper.h"

/* The cost of a row from a bucket, and of a bucket, in units of cpu_tuple_cost */
#define ROW_COST 0.4
#define BUCKET_COST 10.0

static void rel_size(PlannerInfo *root, RelOptInfo *baserel, Oid relid);
static void paths(PlannerInfo *root, RelOptInfo *baserel, Oid relid);
static void parallel_path(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned);
static void index_paths(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned,
						List *keys, Relids outer);
static void parameterized_paths(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned);
static bool column_member(PlannerInfo *root, RelOptInfo *baserel, EquivalenceClass *ec,
						  EquivalenceMember *em, void *arg);
static void time_paths(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned,
					   Relids outer, double rows);
static void last_path(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned);
static double groups_estimate(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned);
static List *
column_order(PlannerInfo *root, RelOptInfo *baserel, DpBucketColumn *column, bool backward);
static List *order_of(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned, List *keys,
					  bool backward);
static bool group_fixed(DpBucketColumn *column, List *keys);
static bool index_useful(DpBucketRel *rel, List *keys);
static List *
keys_of(PlannerInfo *root, DpBucketRel *rel, RelOptInfo *baserel, List *rinfos, List **covered);
static void
scan_cost(DpBucketPlanned *planned, RelOptInfo *baserel, double rows, Cost *startup, Cost *total);
static void index_cost(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned, List *keys,
					   Cost *startup, Cost *total);
static ForeignScan *
make_plan(PlannerInfo *root, RelOptInfo *baserel, Oid relid, ForeignPath *best_path, List *tlist,
		  List *scan_clauses, Plan *outer_plan);
static List *needed_columns(DpBucketRel *rel, RelOptInfo *baserel, List *clauses);
static List *needed_fields(PlannerInfo *root, DpBucketRel *rel, RelOptInfo *baserel, List *needed);

/* The callbacks of planning. */
void
dp_bucket_plan_routine(FdwRoutine *routine)
{
	routine->GetForeignRelSize = rel_size;
	routine->GetForeignPaths = paths;
	routine->GetForeignPlan = make_plan;
	dp_bucket_upper_routine(routine);
}

/* Estimates the number of rows. */
static void
rel_size(PlannerInfo *root, RelOptInfo *baserel, Oid relid)
{
	DpBucketPlanned *planned = palloc0(sizeof(DpBucketPlanned));

	planned->rel = dp_bucket_rel(relid, false);
	baserel->fdw_private = planned;
	dp_bucket_sizes(planned->rel, &planned->sizes);
	planned->keys =
		keys_of(root, planned->rel, baserel, baserel->baserestrictinfo, &planned->covered);
	planned->selectivity = -1;
	baserel->pages = planned->sizes.packed_pages + planned->sizes.recent_pages;
	baserel->tuples = clamp_row_est(planned->sizes.packed_tuples * planned->sizes.rows_per_bucket +
									planned->sizes.recent_tuples);
	set_baserel_size_estimates(root, baserel);
}

/* Adds the paths. */
static void
paths(PlannerInfo *root, RelOptInfo *baserel, Oid relid)
{
	DpBucketPlanned *planned = baserel->fdw_private;
	Cost startup;
	Cost total;

	scan_cost(planned, baserel, baserel->rows, &startup, &total);
	add_path(baserel,
			 (Path *) dp_create_foreignscan_path(root, baserel, NULL, baserel->rows, startup, total,
												 NIL, baserel->lateral_relids, NULL,
												 list_make2_int(DP_SCAN_ALL, 0)));
	parallel_path(root, baserel, planned);
	if (!OidIsValid(planned->rel->packed_index) || !OidIsValid(planned->rel->recent_index))
		return;
	index_paths(root, baserel, planned, planned->keys, baserel->lateral_relids);
	parameterized_paths(root, baserel, planned);
}

/* Everything, read by several workers. */
static void
parallel_path(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned)
{
	int workers;
	double divisor;
	Cost startup;
	Cost total;
	double rows;
	ForeignPath *path;

	if (!baserel->consider_parallel || baserel->lateral_relids != NULL)
		return;
	/* a page of buckets is worth many of rows */
	workers =
		compute_parallel_worker(baserel,
								Min(baserel->pages * Max(planned->sizes.rows_per_bucket / 4, 1),
									1e9),
								-1, max_parallel_workers_per_gather);
	if (workers <= 0)
		return;
	divisor = workers + Max(1.0 - 0.3 * workers, 0);
	rows = clamp_row_est(baserel->rows / divisor);
	scan_cost(planned, baserel, rows, &startup, &total);
	total = startup + (total - startup) / divisor;
	path = dp_create_foreignscan_path(root, baserel, NULL, rows, startup, total, NIL, NULL, NULL,
									  list_make2_int(DP_SCAN_ALL, 0));
	path->path.parallel_aware = true;
	path->path.parallel_workers = workers;
	add_partial_path(baserel, (Path *) path);
}

/* By the indexes, with and without an order. */
static void
index_paths(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned, List *keys,
			Relids outer)
{
	bool useful = index_useful(planned->rel, keys);
	ParamPathInfo *param = get_baserel_parampathinfo(root, baserel, outer);
	double rows = param != NULL ? param->ppi_rows : baserel->rows;
	bool one_group = true;
	Cost startup;
	Cost total;
	int i;

	for (i = 0; i < planned->rel->ngroups; i++)
		one_group = one_group && group_fixed(planned->rel->groups[i], keys);
	index_cost(root, baserel, planned, keys, &startup, &total);
	if (useful)
		add_path(baserel,
				 (Path *) dp_create_foreignscan_path(root, baserel, NULL, rows, startup, total, NIL,
													 outer, NULL,
													 list_make2_int(DP_SCAN_INDEX, one_group)));
	if (planned->rel->time == NULL)
		return;
	for (i = 0; i < 2; i++)
	{
		List *pathkeys = order_of(root, baserel, planned, keys, i == 1);

		if (pathkeys != NIL)
			add_path(baserel,
					 (Path *) dp_create_foreignscan_path(root, baserel, NULL, rows, startup, total,
														 pathkeys, outer, NULL,
														 list_make2_int(i == 1 ? DP_SCAN_BACKWARD
																			   : DP_SCAN_ORDERED,
																		one_group)));
	}
	if (!one_group && outer == baserel->lateral_relids)
		time_paths(root, baserel, planned, outer, rows);
	if (!one_group && outer == NULL)
		last_path(root, baserel, planned);
}

/* All groups in the order of time, unless more has to be in memory than a hash table may have. */
static void
time_paths(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned, Relids outer,
		   double rows)
{
	const DpBucketSizes *s = &planned->sizes;
	double part = dp_bucket_selectivity(root, baserel, planned, planned->keys);
	double buckets = Min(s->packed_tuples, ceil(s->packed_tuples * part) + 1);
	double waiting = Min(s->recent_tuples, ceil(s->recent_tuples * part));
	double groups = 0;
	double decoded = buckets * s->rows_per_bucket;
	Cost startup;
	Cost total;
	int i;

	for (i = 0; i < 2; i++)
	{
		List *pathkeys = column_order(root, baserel, planned->rel->time, i == 1);

		if (pathkeys != NIL)
			pathkeys = truncate_useless_pathkeys(root, baserel, pathkeys);
		if (pathkeys == NIL)
			continue;
		if (groups == 0)
		{
			double open;

			/* a group has one bucket open at a time, and a row can open only one more */
			groups = open = Min(groups_estimate(root, baserel, planned), buckets);
			if (root->limit_tuples > 0 && dp_bucket_decides(baserel))
				open = Min(open, root->limit_tuples);
			if ((buckets + waiting) * DP_MERGE_ENTRY +
					open * (1024 + s->rows_per_bucket * (sizeof(int64) + baserel->reltarget->width +
														 list_length(baserel->reltarget->exprs))) >
				get_hash_memory_limit())
				return;
		}
		/* the indexes, whole; the header of each group's last bucket */
		startup = baserel->baserestrictcost.startup +
				  (s->packed_tuples + s->recent_tuples) * cpu_index_tuple_cost +
				  groups * (cpu_tuple_cost + BUCKET_COST / 2 * cpu_tuple_cost);
		/* then each bucket is fetched twice, and each row goes through the heap */
		total = startup +
				index_pages_fetched(2 * buckets, s->packed_pages, s->packed_tuples / 100, root) *
					random_page_cost +
				buckets * (2 + BUCKET_COST) * cpu_tuple_cost +
				decoded * (ROW_COST * cpu_tuple_cost + baserel->baserestrictcost.per_tuple +
						   2 * cpu_operator_cost * log(Max(groups, 2)) / log(2.0)) +
				waiting * (random_page_cost / 4 + cpu_tuple_cost);
		add_path(baserel,
				 (Path *) dp_create_foreignscan_path(root, baserel, NULL, rows, startup, total,
													 pathkeys, outer, NULL,
													 list_make2_int(i == 1 ? DP_SCAN_TIME_BACKWARD
																		   : DP_SCAN_TIME,
																	0)));
	}
}

/*
 * The last measurement of each group, if that is all that the query needs: it reads nothing else,
 * is DISTINCT ON the group, ordered by group and descending time, and the scan alone evaluates its
 * conditions.  The node above removes no row any more.
 */
static void
last_path(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned)
{
	const DpBucketSizes *s = &planned->sizes;
	Query *query = root->parse;
	DpBucketRel *rel = planned->rel;
	List *pathkeys = NIL;
	List *last;
	double part;
	double groups;
	Cost startup;
	Cost total;
	ListCell *lc;
	int i;

	if (!query->hasDistinctOn || query->hasAggs || query->groupClause != NIL ||
		query->groupingSets != NIL || query->hasWindowFuncs || query->hasTargetSRFs ||
		query->havingQual != NULL || query->rowMarks != NIL ||
		baserel->reloptkind != RELOPT_BASEREL || !bms_equal(root->all_baserels, baserel->relids) ||
		!dp_bucket_decides(baserel) || contain_volatile_functions((Node *) query->targetList))
		return;
	foreach(lc, planned->keys)
	{
		if (!((DpBucketKey *) lfirst(lc))->exact)
			return;
	}
	for (i = 0; i < rel->ngroups; i++)
	{
		List *key;

		if (group_fixed(rel->groups[i], planned->keys))
			continue;
		key = column_order(root, baserel, rel->groups[i], false);
		if (key == NIL || list_member_ptr(pathkeys, linitial(key)))
			return;
		pathkeys = list_concat(pathkeys, key);
	}
	if (list_length(root->distinct_pathkeys) != list_length(pathkeys) ||
		!pathkeys_contained_in(root->distinct_pathkeys, pathkeys))
		return;
	last = column_order(root, baserel, rel->time, true);
	if (last == NIL)
		return;
	pathkeys = list_concat(pathkeys, last);
	if (!pathkeys_contained_in(root->sort_pathkeys, pathkeys))
		return;

	part = dp_bucket_selectivity(root, baserel, planned, planned->keys);
	groups = Min(groups_estimate(root, baserel, planned), baserel->rows);
	startup = baserel->baserestrictcost.startup;
	total = startup +
			(s->packed_tuples + s->recent_tuples) * part *
				(cpu_index_tuple_cost + rel->ngroups * cpu_operator_cost) +
			index_pages_fetched(groups, s->packed_pages, s->packed_tuples / 100, root) *
				random_page_cost +
			groups * (1 + BUCKET_COST + s->rows_per_bucket * ROW_COST) * cpu_tuple_cost;
	add_path(baserel, (Path *) dp_create_foreignscan_path(root, baserel, NULL, groups, startup,
														  total, pathkeys, NULL, NULL,
														  list_make2_int(DP_SCAN_LAST, 0)));
}

/* The number of groups. */
static double
groups_estimate(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned)
{
	DpBucketRel *rel = planned->rel;
	List *exprs = NIL;
	int i;

	for (i = 0; i < rel->ngroups; i++)
	{
		DpBucketColumn *column = rel->groups[i];

		exprs = lappend(exprs, makeVar(baserel->relid, column->attnum, column->type, column->typmod,
									   column->collation, 0));
	}
	return estimate_num_groups(root, exprs, Max(baserel->rows, 1), NULL, NULL);
}

/* The order of a column as path keys; NIL if it has none or the query knows none. */
static List *
column_order(PlannerInfo *root, RelOptInfo *baserel, DpBucketColumn *column, bool backward)
{
	TypeCacheEntry *type = lookup_type_cache(column->type, TYPECACHE_LT_OPR | TYPECACHE_GT_OPR);
	Expr *var = (Expr *) makeVar(baserel->relid, column->attnum, column->type, column->typmod,
								 column->collation, 0);
	List *result;
	ListCell *lc;

	if (!OidIsValid(type->lt_opr) || !OidIsValid(type->gt_opr))
		return NIL;
	result = dp_build_expression_pathkey(root, var, backward ? type->gt_opr : type->lt_opr,
										 baserel->relids);
	if (column->role != DP_BUCKET_TIME)
		return result;

	/* a time is never null, so nulls may be first or last */
	foreach(lc, root->query_pathkeys)
	{
		PathKey *asked = lfirst(lc);
		PathKey *own = result == NIL ? NULL : linitial(result);
		ListCell *member;

		if (own != NULL && asked->pk_eclass == own->pk_eclass &&
			dp_pathkey_is_descending(asked) == dp_pathkey_is_descending(own))
			return list_make1(asked);
		/* or it is the time in documents */
		foreach(member, asked->pk_eclass->ec_members)
		{
			DpBucketRel *rel = ((DpBucketPlanned *) baserel->fdw_private)->rel;
			bool descending;

			if (dp_bucket_is_time_order(rel, baserel->relid,
										((EquivalenceMember *) lfirst(member))->em_expr,
										&descending) &&
				(descending != dp_pathkey_is_descending(asked)) == backward)
				return list_make1(asked);
		}
	}
	return result;
}

bool
dp_bucket_decides(RelOptInfo *baserel)
{
	DpBucketPlanned *planned = baserel->fdw_private;
	ListCell *lc;
	ListCell *lc2;

	foreach(lc, baserel->baserestrictinfo)
	{
		bool found = list_member_ptr(planned->covered, lfirst(lc));

		foreach(lc2, planned->keys)
			found = found || ((DpBucketKey *) lfirst(lc2))->rinfo == lfirst(lc);
		if (!found)
			return false;
	}
	return true;
}

/* Argument of column_member() */
typedef struct ColumnMember
{
	DpBucketRel *rel;
	DpBucketColumn *column;
} ColumnMember;

/* By the indexes, with values of a join. */
static void
parameterized_paths(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned)
{
	DpBucketRel *rel = planned->rel;
	List *clauses = NIL; /* RestrictInfo */
	List *done = NIL;    /* of Relids */
	ListCell *lc;
	int i;

	foreach(lc, baserel->joininfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (join_clause_is_movable_to(rinfo, baserel) &&
			dp_bucket_key(root, rel, baserel->relid, rinfo->clause) != NULL)
			clauses = lappend(clauses, rinfo);
	}
	if (baserel->has_eclass_joins)
	{
		for (i = 0; i < rel->ncolumns; i++)
		{
			ColumnMember arg = { rel, &rel->columns[i] };

			if (rel->columns[i].role == DP_BUCKET_VALUE)
				continue;
			clauses =
				list_concat(clauses,
							generate_implied_equalities_for_column(root, baserel, column_member,
																   &arg,
																   baserel->lateral_referencers));
		}
	}

	foreach(lc, clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		Relids outer = bms_union(rinfo->clause_relids, baserel->lateral_relids);
		ParamPathInfo *param;
		List *keys;
		ListCell *lc2;
		bool known = false;

		outer = bms_del_member(outer, baserel->relid);
		foreach(lc2, done)
			known = known || bms_equal(lfirst(lc2), outer);
		if (known || bms_is_empty(outer))
			continue;
		done = lappend(done, outer);
		param = get_baserel_parampathinfo(root, baserel, outer);
		keys = list_concat(keys_of(root, rel, baserel, param->ppi_clauses, NULL), planned->keys);
		if (index_useful(rel, keys))
			index_paths(root, baserel, planned, keys, outer);
	}
}

/* Whether a member of an equivalence class is the column. */
static bool
column_member(PlannerInfo *root, RelOptInfo *baserel, EquivalenceClass *ec, EquivalenceMember *em,
			  void *arg)
{
	ColumnMember *wanted = arg;

	return em->em_expr != NULL &&
		   dp_bucket_column_of(wanted->rel, baserel->relid, (Node *) em->em_expr) == wanted->column;
}

/* Returns the order of rows from the indexes, as far as the query uses it; NIL if not at all. */
static List *
order_of(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned, List *keys,
		 bool backward)
{
	DpBucketRel *rel = planned->rel;
	List *result = NIL;
	int i;

	for (i = 0; i <= rel->ngroups; i++)
	{
		DpBucketColumn *column = i < rel->ngroups ? rel->groups[i] : rel->time;
		List *pathkey;

		if (i < rel->ngroups && group_fixed(column, keys))
			continue;
		pathkey = column_order(root, baserel, column, backward);
		if (pathkey == NIL)
			break;
		if (list_member_ptr(result, linitial(pathkey)))
			continue;
		result = list_concat(result, pathkey);
	}

	/* an order that the query does not use is omitted; so are equal group and time */
	return truncate_useless_pathkeys(root, baserel, result);
}

/* Whether a group column has one value only. */
static bool
group_fixed(DpBucketColumn *column, List *keys)
{
	ListCell *lc;

	foreach(lc, keys)
	{
		DpBucketKey *key = lfirst(lc);

		if (key->column == column && !key->is_array &&
			(key->strategy == BTEqualStrategyNumber || key->strategy == DP_KEY_IS_NULL))
			return true;
	}
	return false;
}

/* Returns whether keys restrict the index scans: one on the first column. */
static bool
index_useful(DpBucketRel *rel, List *keys)
{
	DpBucketColumn *first = rel->ngroups > 0 ? rel->groups[0] : rel->time;
	ListCell *lc;

	foreach(lc, keys)
	{
		if (((DpBucketKey *) lfirst(lc))->column == first)
			return true;
	}
	return false;
}

/* The keys among clauses, and those that follow from filters of documents if covered is given. */
static List *
keys_of(PlannerInfo *root, DpBucketRel *rel, RelOptInfo *baserel, List *rinfos, List **covered)
{
	List *result = NIL;
	ListCell *lc;

	foreach(lc, rinfos)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		DpBucketKey *key;

		if (rinfo->pseudoconstant || !restriction_is_securely_promotable(rinfo, baserel))
			continue;
		key = dp_bucket_key(root, rel, baserel->relid, rinfo->clause);
		if (key != NULL)
		{
			key->rinfo = rinfo;
			result = lappend(result, key);
		}
		else if (covered != NULL)
		{
			bool all;

			result = list_concat(result, dp_bucket_filter_keys(root, rel, baserel, rinfo, &all));
			if (all)
				*covered = lappend(*covered, rinfo);
		}
	}
	return result;
}

/* Cost of reading everything. */
static void
scan_cost(DpBucketPlanned *planned, RelOptInfo *baserel, double rows, Cost *startup, Cost *total)
{
	const DpBucketSizes *s = &planned->sizes;
	double decoded = s->packed_tuples * s->rows_per_bucket;

	/* keys on group and time choose buckets before they are decoded */
	if (planned->keys != NIL)
		decoded = Min(decoded, Max(rows, 1) + s->rows_per_bucket);
	*startup = baserel->baserestrictcost.startup;
	*total = *startup + seq_page_cost * (s->packed_pages + s->recent_pages) +
			 s->packed_tuples * cpu_tuple_cost +
			 decoded / Max(s->rows_per_bucket, 1) * BUCKET_COST * cpu_tuple_cost +
			 decoded * ROW_COST * cpu_tuple_cost +
			 (decoded + s->recent_tuples) * baserel->baserestrictcost.per_tuple +
			 s->recent_tuples * cpu_tuple_cost;
}

/* Cost of reading by the indexes what the keys leave. */
static void
index_cost(PlannerInfo *root, RelOptInfo *baserel, DpBucketPlanned *planned, List *keys,
		   Cost *startup, Cost *total)
{
	const DpBucketSizes *s = &planned->sizes;
	double part = dp_bucket_selectivity(root, baserel, planned, keys);
	double buckets = Min(s->packed_tuples, ceil(s->packed_tuples * part) + 1);
	double waiting = Min(s->recent_tuples, ceil(s->recent_tuples * part));
	double pages = Min(buckets, s->packed_pages + buckets * 0.05);
	double decoded = buckets * s->rows_per_bucket;

	/* two descents; the buckets of a group are mostly adjacent */
	*startup = baserel->baserestrictcost.startup + 2 * cpu_operator_cost * 25 +
			   (log(Max(s->packed_tuples, 2)) + log(Max(s->recent_tuples, 2))) * cpu_operator_cost;
	*total = *startup + Min(pages, 1) * random_page_cost +
			 Max(pages - 1, 0) * (seq_page_cost + random_page_cost) / 2 +
			 buckets * (cpu_index_tuple_cost + cpu_tuple_cost + BUCKET_COST * cpu_tuple_cost) +
			 decoded * (ROW_COST * cpu_tuple_cost + baserel->baserestrictcost.per_tuple) +
			 waiting * (random_page_cost / 4 + cpu_index_tuple_cost + cpu_tuple_cost);
}

/* The plan of a path. */
static ForeignScan *
make_plan(PlannerInfo *root, RelOptInfo *baserel, Oid relid, ForeignPath *best_path, List *tlist,
		  List *scan_clauses, Plan *outer_plan)
{
	DpBucketPlanned *planned = baserel->fdw_private;
	List *keys = NIL;
	List *local = NIL;
	List *exact = NIL;
	List *values = NIL;
	List *encoded;
	List *group_filters = NIL;
	List *needed;
	ListCell *lc;
	ListCell *lc2;

	if (IS_UPPER_REL(baserel))
		return dp_bucket_upper_plan(root, baserel, best_path, tlist);
	foreach(lc, scan_clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		DpBucketKey *key = NULL;

		if (rinfo->pseudoconstant)
			continue;
		foreach(lc2, planned->keys)
		{
			if (((DpBucketKey *) lfirst(lc2))->rinfo == rinfo)
				key = lfirst(lc2);
			else if (((DpBucketKey *) lfirst(lc2))->filter == rinfo)
				keys = lappend(keys, lfirst(lc2));
		}
		if (key == NULL && restriction_is_securely_promotable(rinfo, baserel))
			key = dp_bucket_key(root, planned->rel, baserel->relid, rinfo->clause);
		if (key != NULL)
			keys = lappend(keys, key);
		if ((key != NULL && key->exact) || list_member_ptr(planned->covered, rinfo))
			exact = lappend(exact, rinfo->clause);
		else
			local = lappend(local, rinfo->clause);
		if (key == NULL && !list_member_ptr(planned->covered, rinfo) &&
			restriction_is_securely_promotable(rinfo, baserel))
			group_filters =
				list_concat(group_filters,
							dp_bucket_group_filters(planned->rel, baserel->relid, rinfo->clause));
	}
	encoded = dp_bucket_keys_encode(keys, &values);
	needed = needed_columns(planned->rel, baserel, local);
	return make_foreignscan(tlist, local, baserel->relid, values,
							lappend(list_make5(best_path->fdw_private, needed, encoded, NIL,
											   needed_fields(root, planned->rel, baserel, needed)),
									group_filters),
							NIL, exact, outer_plan);
}

/* Attnums of the columns that rows need. */
static List *
needed_columns(DpBucketRel *rel, RelOptInfo *baserel, List *clauses)
{
	Bitmapset *used = NULL;
	List *result = NIL;
	bool whole;
	int i;

	pull_varattnos((Node *) baserel->reltarget->exprs, baserel->relid, &used);
	pull_varattnos((Node *) clauses, baserel->relid, &used);
	whole = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
	for (i = 0; i < rel->ncolumns; i++)
	{
		if (whole ||
			bms_is_member(rel->columns[i].attnum - FirstLowInvalidHeapAttributeNumber, used))
			result = lappend_int(result, rel->columns[i].attnum);
	}
	return result;
}

/* Fields of the documents that rows need, if they are in one column; NIL: all. */
static List *
needed_fields(PlannerInfo *root, DpBucketRel *rel, RelOptInfo *baserel, List *needed)
{
	AttrNumber doc = 0;
	ListCell *lc;

	foreach(lc, needed)
	{
		DpBucketColumn *column = rel->by_attnum[lfirst_int(lc) - 1];

		if (column->role != DP_BUCKET_VALUE || column->type != dp_types()->bson)
			continue;
		if (doc != 0)
			return NIL;
		doc = column->attnum;
	}
	return doc == 0 ? NIL : dp_bucket_fields_read(root, rel, baserel, doc);
}
