/*
 * upper.c
 *		Planning aggregates that are computed from the headers of buckets.
 *
 * A query qualifies if it reads one relation of measurements, restricts it only by
 * keys (on measured columns, too, which are then unpacked where the header does not
 * decide), groups by group columns and by multiples of the relation's spans, and its
 * aggregates are count, sum, avg, min, max, and variances of floating-point columns,
 * filtered by such keys or not.  HAVING and expressions over the aggregates are
 * evaluated above the scan.
 */
#include "postgres.h"

#include <math.h>

#include "access/nbtree.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

#include "bson/catalog.h"
#include "patterns/bucket/upper.h"

/* The costs of a header for each aggregate, and of a group, in units of cpu_operator_cost */
#define HEADER_COST 5.0
#define GROUP_COST 20.0

/* The cost of a value that is unpacked, in the same units */
#define UNPACKED_COST 0.1

/* Memory of a group, without its values */
#define GROUP_BYTES 256

/* The description of a query that qualifies: the upper relation's fdw_private */
typedef struct Upper
{
	DpBucketPlanned *planned;
	RelOptInfo *baserel;
	List *keys;       /* DpBucketKey */
	List *scan_tlist; /* groups, then aggregates */
	List *groups;     /* as in upper.h */
	List *aggregates;
	List *filters; /* lists of DpBucketKey, each for one or more aggregates */
	List *having;
} Upper;

static void upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
						RelOptInfo *output_rel, void *extra);
static bool upper_groups(PlannerInfo *root, Upper *upper, RelOptInfo *output_rel);
static List *group_of(Upper *upper, Expr *expr);
static List *span_constants(FuncExpr *function, int *time_argument);
static bool upper_aggregates(PlannerInfo *root, Upper *upper, RelOptInfo *output_rel);
static int filter_of(PlannerInfo *root, Upper *upper, Expr *filter);
static double unpacked_values(const Upper *upper);
static bool aggregate_of(PlannerInfo *root, Upper *upper, Aggref *aggref, List **result);
static int function_of(Aggref *aggref);
static void upper_add_path(PlannerInfo *root, Upper *upper, RelOptInfo *output_rel);
static bool bucket_keys_exact(PlannerInfo *root, RelOptInfo *baserel, List **keys);

/* The callback of planning. */
void
dp_bucket_upper_routine(FdwRoutine *routine)
{
	routine->GetForeignUpperPaths = upper_paths;
}

/* A path for grouping and aggregates, if the query qualifies. */
static void
upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
			RelOptInfo *output_rel, void *extra)
{
	Query *query = root->parse;
	Upper *upper;

	if (stage != UPPERREL_GROUP_AGG || output_rel->fdw_private != NULL ||
		input_rel->reloptkind != RELOPT_BASEREL || input_rel->fdw_private == NULL ||
		input_rel->lateral_relids != NULL || query->groupingSets != NIL || query->hasTargetSRFs ||
		((GroupPathExtraData *) extra)->patype != PARTITIONWISE_AGGREGATE_NONE)
		return;

	upper = palloc0(sizeof(Upper));
	upper->planned = input_rel->fdw_private;
	upper->baserel = input_rel;
	upper->having = (List *) ((GroupPathExtraData *) extra)->havingQual;
	if (!bucket_keys_exact(root, input_rel, &upper->keys) ||
		!upper_groups(root, upper, output_rel) || !upper_aggregates(root, upper, output_rel))
		return;
	output_rel->fdw_private = upper;
	upper_add_path(root, upper, output_rel);
}

/* Whether the scan alone evaluates all restrictions. */
static bool
bucket_keys_exact(PlannerInfo *root, RelOptInfo *baserel, List **keys)
{
	DpBucketPlanned *planned = baserel->fdw_private;
	ListCell *lc;

	*keys = planned->keys;
	if (!dp_bucket_decides(baserel))
		return false;
	foreach(lc, planned->keys)
	{
		DpBucketKey *key = lfirst(lc);

		if (!key->exact && (key->column->role != DP_BUCKET_VALUE || key->is_array))
			return false;
	}
	return true;
}

/* Reads the grouping; returns false if it is not supported. */
static bool
upper_groups(PlannerInfo *root, Upper *upper, RelOptInfo *output_rel)
{
	PathTarget *target = output_rel->reltarget;
	ListCell *lc;
	int i = 0;

	foreach(lc, target->exprs)
	{
		Index ref = get_pathtarget_sortgroupref(target, i++);
		Expr *expr = lfirst(lc);
		List *group;
		TargetEntry *entry;

		if (ref == 0 || get_sortgroupref_clause_noerr(ref, root->parse->groupClause) == NULL)
			continue;
		group = group_of(upper, expr);
		if (group == NIL)
			return false;
		entry = makeTargetEntry(expr, list_length(upper->scan_tlist) + 1, NULL, false);
		entry->ressortgroupref = ref;
		upper->scan_tlist = lappend(upper->scan_tlist, entry);
		upper->groups = lappend(upper->groups, group);
	}
	/* a group that the target has not cannot be given out */
	return list_length(upper->groups) == list_length(root->parse->groupClause) &&
		   list_length(upper->groups) < INDEX_MAX_KEYS;
}

/* An expression to group by, as the plan has it; NIL if it cannot be. */
static List *
group_of(Upper *upper, Expr *expr)
{
	DpBucketRel *rel = upper->planned->rel;
	List *constants;
	DpSpan span;
	Var *var;
	int argument;

	if (IsA(expr, Var))
	{
		DpBucketColumn *column;

		var = (Var *) expr;
		if (var->varno != upper->baserel->relid || var->varattno <= 0)
			return NIL;
		column = rel->by_attnum[var->varattno - 1];
		if (column == NULL || column->role != DP_BUCKET_GROUP ||
			!OidIsValid(lookup_type_cache(column->type, TYPECACHE_HASH_PROC)->hash_proc))
			return NIL;
		return list_make1(list_make2_int(DP_UPPER_COLUMN, column->attnum));
	}
	if (!IsA(expr, FuncExpr) || rel->time == NULL)
		return NIL;

	/* bucket_start(width, time, ...) */
	constants = span_constants((FuncExpr *) expr, &argument);
	if (constants == NIL)
		return NIL;
	var = list_nth(((FuncExpr *) expr)->args, argument);
	if (!IsA(var, Var) || var->varno != upper->baserel->relid || var->varattno != rel->time->attnum)
		return NIL;
	if (!dp_bucket_upper_span(&span, constants, rel->time->type) ||
		!dp_span_divides(&rel->calendar, &span))
		return NIL;
	return list_concat(list_make1(list_make2_int(DP_UPPER_SPAN, rel->time->attnum)), constants);
}

/* The constants of a call of bucket_start(): width, origin and time zone; NIL if it is none. */
static List *
span_constants(FuncExpr *function, int *time_argument)
{
	List *result = NIL;
	char *name = get_func_name(function->funcid);
	ListCell *lc;
	int i = 0;

	if (name == NULL || strcmp(name, "bucket_start") != 0 ||
		get_func_namespace(function->funcid) != dp_types()->schema ||
		list_length(function->args) < 3)
		return NIL;
	*time_argument = 1;
	foreach(lc, function->args)
	{
		if (i++ == *time_argument)
			continue;
		if (!IsA(lfirst(lc), Const))
			return NIL;
		result = lappend(result, lfirst(lc));
	}
	if (linitial_node(Const, result)->consttype != INTERVALOID)
		return NIL;
	return result;
}

/* The span of these constants. */
bool
dp_bucket_upper_span(DpSpan *span, List *constants, Oid type)
{
	Const *width = linitial_node(Const, constants);
	Const *origin = lsecond_node(Const, constants);
	Const *zone = list_length(constants) > 2 ? lthird_node(Const, constants) : NULL;
	TimestampTz start;

	if (width->constisnull || (zone != NULL && zone->constisnull) ||
		(!origin->constisnull && origin->consttype != type))
		return false;
	if (!origin->constisnull)
		start = DatumGetTimestampTz(origin->constvalue);
	if (zone != NULL)
	{
		char *name = TextDatumGetCString(zone->constvalue);

		dp_span_init(span, DatumGetIntervalP(width->constvalue),
					 origin->constisnull ? NULL : &start, name, strlen(name));
	}
	else
		dp_span_init(span, DatumGetIntervalP(width->constvalue),
					 origin->constisnull ? NULL : &start, NULL, 0);
	return true;
}

/* The aggregates of target and HAVING; false if there is something else. */
static bool
upper_aggregates(PlannerInfo *root, Upper *upper, RelOptInfo *output_rel)
{
	List *exprs = pull_var_clause((Node *) output_rel->reltarget->exprs,
								  PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
									  PVC_INCLUDE_PLACEHOLDERS);
	ListCell *lc;

	exprs = list_concat(exprs, pull_var_clause((Node *) upper->having,
											   PVC_INCLUDE_AGGREGATES | PVC_INCLUDE_PLACEHOLDERS));
	foreach(lc, exprs)
	{
		Expr *expr = lfirst(lc);
		List *aggregate;

		if (tlist_member(expr, upper->scan_tlist) != NULL)
			continue;
		if (IsA(expr, Var))
		{
			/* the time inside of a call of bucket_start(), which is a group as a whole */
			if (((Var *) expr)->varno == upper->baserel->relid &&
				upper->planned->rel->time != NULL &&
				((Var *) expr)->varattno == upper->planned->rel->time->attnum)
				continue;
			return false;
		}
		if (!IsA(expr, Aggref) || !aggregate_of(root, upper, (Aggref *) expr, &aggregate))
			return false;
		upper->scan_tlist =
			lappend(upper->scan_tlist,
					makeTargetEntry(expr, list_length(upper->scan_tlist) + 1, NULL, false));
		upper->aggregates = lappend(upper->aggregates, aggregate);
	}
	return true;
}

/* An aggregate as the plan has it; false if it is not one of those. */
static bool
aggregate_of(PlannerInfo *root, Upper *upper, Aggref *aggref, List **result)
{
	DpBucketRel *rel = upper->planned->rel;
	int function = function_of(aggref);
	int filter;
	DpBucketColumn *column;
	Var *var;

	if (function < 0 || aggref->aggdistinct != NIL || aggref->aggorder != NIL ||
		aggref->aggsplit != AGGSPLIT_SIMPLE || aggref->aggkind != AGGKIND_NORMAL ||
		aggref->agglevelsup != 0)
		return false;
	filter = filter_of(root, upper, aggref->aggfilter);
	if (filter < 0)
		return false;
	if (function == DP_UPPER_COUNT_ALL)
	{
		*result = list_make4_int(function, 0, 0, filter);
		return true;
	}
	if (list_length(aggref->args) != 1)
		return false;
	var = (Var *) linitial_node(TargetEntry, aggref->args)->expr;
	if (!IsA(var, Var) || var->varno != upper->baserel->relid || var->varattno <= 0)
		return false;
	column = rel->by_attnum[var->varattno - 1];
	if (column == NULL)
		return false;
	switch (function)
	{
		case DP_UPPER_COUNT:
			break;
		case DP_UPPER_SUM:
		case DP_UPPER_AVG:
			if (column->role != DP_BUCKET_VALUE ||
				(column->type != INT2OID && column->type != INT4OID && column->type != INT8OID &&
				 column->type != FLOAT4OID && column->type != FLOAT8OID &&
				 column->type != NUMERICOID))
				return false;
#ifndef HAVE_INT128
			if (column->type == INT8OID)
				return false;
#endif
			break;
		case DP_UPPER_VAR_POP:
		case DP_UPPER_VAR_SAMP:
		case DP_UPPER_STDDEV_POP:
		case DP_UPPER_STDDEV_SAMP:
			if (column->role != DP_BUCKET_VALUE ||
				(column->type != FLOAT4OID && column->type != FLOAT8OID))
				return false;
			break;
		default:
			/* the aggregate's argument type is the column's own */
			if (column->role == DP_BUCKET_GROUP || exprType((Node *) aggref) != column->type ||
				!OidIsValid(lookup_type_cache(column->type, TYPECACHE_CMP_PROC)->cmp_proc))
				return false;
	}
	*result = list_make4_int(function, column->attnum, (int) aggref->inputcollid, filter);
	return true;
}

/* The number of a FILTER clause among the filters; 0: there is none, -1: it is not of keys. */
static int
filter_of(PlannerInfo *root, Upper *upper, Expr *filter)
{
	List *keys = NIL;
	List *clauses = make_ands_implicit(filter);
	ListCell *lc;

	if (filter == NULL)
		return 0;
	foreach(lc, clauses)
	{
		DpBucketKey *key =
			dp_bucket_key(root, upper->planned->rel, upper->baserel->relid, lfirst(lc));

		if (key == NULL || key->column->role != DP_BUCKET_VALUE || key->is_array)
			return -1;
		keys = lappend(keys, key);
	}
	if (keys == NIL)
		return -1;
	foreach(lc, upper->filters)
	{
		List *known = lfirst(lc);
		ListCell *a;
		ListCell *b;
		bool same = list_length(known) == list_length(keys);

		forboth(a, known, b, keys)
			same = same &&
				   equal(((DpBucketKey *) lfirst(a))->clause, ((DpBucketKey *) lfirst(b))->clause);
		if (same)
			return foreach_current_index(lc) + 1;
	}
	upper->filters = lappend(upper->filters, keys);
	return list_length(upper->filters);
}

/* How many values of a row are unpacked whatever the header says. */
static double
unpacked_values(const Upper *upper)
{
	double result = 0;
	bool keyed = false;
	ListCell *lc;

	foreach(lc, upper->keys)
	{
		if (((DpBucketKey *) lfirst(lc))->column->role == DP_BUCKET_VALUE)
		{
			keyed = true;
			result++;
		}
	}
	foreach(lc, upper->filters)
		result += list_length(lfirst(lc));
	foreach(lc, upper->aggregates)
	{
		if (keyed || linitial_int(lfirst(lc)) >= DP_UPPER_VAR_POP || lfourth_int(lfirst(lc)) > 0)
			result++;
	}
	return result;
}

/* Which of the aggregates of pg_catalog it is; -1 if it is another. */
static int
function_of(Aggref *aggref)
{
	char *name = get_func_name(aggref->aggfnoid);

	if (name == NULL || get_func_namespace(aggref->aggfnoid) != PG_CATALOG_NAMESPACE)
		return -1;
	if (strcmp(name, "count") == 0)
		return aggref->aggstar ? DP_UPPER_COUNT_ALL : DP_UPPER_COUNT;
	if (strcmp(name, "sum") == 0)
		return DP_UPPER_SUM;
	if (strcmp(name, "avg") == 0)
		return DP_UPPER_AVG;
	if (strcmp(name, "min") == 0)
		return DP_UPPER_MIN;
	if (strcmp(name, "max") == 0)
		return DP_UPPER_MAX;
	if (strcmp(name, "var_pop") == 0)
		return DP_UPPER_VAR_POP;
	if (strcmp(name, "var_samp") == 0 || strcmp(name, "variance") == 0)
		return DP_UPPER_VAR_SAMP;
	if (strcmp(name, "stddev_pop") == 0)
		return DP_UPPER_STDDEV_POP;
	if (strcmp(name, "stddev_samp") == 0 || strcmp(name, "stddev") == 0)
		return DP_UPPER_STDDEV_SAMP;
	return -1;
}

/* The cheaper one of a scan of everything and one by the index. */
static void
upper_add_path(PlannerInfo *root, Upper *upper, RelOptInfo *output_rel)
{
	DpBucketPlanned *planned = upper->planned;
	const DpBucketSizes *s = &planned->sizes;
	double part = dp_bucket_selectivity(root, upper->baserel, planned, upper->keys);
	double buckets = Min(s->packed_tuples, ceil(s->packed_tuples * part) + 1);
	double waiting = Min(s->recent_tuples, ceil(s->recent_tuples * part));
	double unpacked = unpacked_values(upper) * UNPACKED_COST * cpu_operator_cost;
	double header = HEADER_COST * cpu_operator_cost * (1 + list_length(upper->aggregates)) +
					s->rows_per_bucket * unpacked;
	double row = 2 * cpu_operator_cost * (1 + list_length(upper->aggregates)) + unpacked;
	List *exprs = NIL;
	double groups = 1;
	double pages;
	DpScanMode mode = DP_SCAN_ALL;
	Cost run;
	Cost index_run;
	QualCost having = { 0, 0 };
	ListCell *lc;
	bool indexable =
		OidIsValid(planned->rel->packed_index) && OidIsValid(planned->rel->recent_index);

	foreach(lc, upper->scan_tlist)
	{
		if (foreach_current_index(lc) < list_length(upper->groups))
			exprs = lappend(exprs, ((TargetEntry *) lfirst(lc))->expr);
	}
	if (exprs != NIL)
		groups = Min(estimate_num_groups(root, exprs, upper->baserel->rows, NULL, NULL),
					 clamp_row_est(buckets + waiting)); /* a bucket belongs to one group */

	/* all groups are in memory at once */
	if (groups * (GROUP_BYTES + 64 * list_length(upper->aggregates)) > get_hash_memory_limit())
		return;
	if (upper->having != NIL)
		cost_qual_eval(&having, upper->having, root);

	run = seq_page_cost * (s->packed_pages + s->recent_pages) + s->packed_tuples * cpu_tuple_cost +
		  s->recent_tuples * cpu_tuple_cost + buckets * header + waiting * row;
	pages = Min(buckets, s->packed_pages + buckets * 0.05);
	index_run = Min(pages, 1) * random_page_cost +
				Max(pages - 1, 0) * (seq_page_cost + random_page_cost) / 2 +
				buckets * (cpu_index_tuple_cost + cpu_tuple_cost + header) +
				waiting * (random_page_cost / 4 + cpu_index_tuple_cost + row);
	foreach(lc, upper->keys)
	{
		if (((DpBucketKey *) lfirst(lc))->column ==
				(planned->rel->ngroups > 0 ? planned->rel->groups[0] : planned->rel->time) &&
			indexable && index_run < run)
			mode = DP_SCAN_INDEX;
	}
	if (mode == DP_SCAN_INDEX)
		run = index_run;
	run += groups * GROUP_COST * cpu_operator_cost + groups * having.per_tuple + having.startup;
	add_path(output_rel,
			 (Path *) dp_create_foreign_upper_path(root, output_rel, output_rel->reltarget, groups,
												   run, run + groups * cpu_tuple_cost, NIL, NULL,
												   list_make2_int(mode, 0)));
}

/* The plan of the path. */
ForeignScan *
dp_bucket_upper_plan(PlannerInfo *root, RelOptInfo *rel, ForeignPath *best_path, List *tlist)
{
	Upper *upper = rel->fdw_private;
	List *values = NIL;
	List *encoded = dp_bucket_keys_encode(upper->keys, &values);
	List *filters = NIL;
	List *needed = NIL;
	ListCell *lc;

	foreach(lc, upper->filters)
		filters = lappend(filters, dp_bucket_keys_encode(lfirst(lc), &values));

	/* measured columns that may have to be unpacked */
	foreach(lc, upper->aggregates)
	{
		int attnum = lsecond_int((List *) lfirst(lc));

		if (attnum > 0)
			needed = list_append_unique_int(needed, attnum);
	}
	return make_foreignscan(tlist, upper->having, 0, values,
							lappend(list_make5(best_path->fdw_private, needed, encoded,
											   list_make3(upper->groups, upper->aggregates,
														  filters),
											   NIL),
									NIL),
							upper->scan_tlist, NIL, NULL);
}
