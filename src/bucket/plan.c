/*
 * plan.c
 *		Planning scans of relations of measurements.
 */
#include "postgres.h"

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/plancat.h"
#include "utils/rel.h"
#include "access/table.h"

#include "bucket/scan.h"

static void rel_size(PlannerInfo *root, RelOptInfo *baserel, Oid relid);
static void paths(PlannerInfo *root, RelOptInfo *baserel, Oid relid);
static ForeignScan *make_plan(PlannerInfo *root, RelOptInfo *baserel, Oid relid, ForeignPath *best_path,
							  List *tlist, List *scan_clauses, Plan *outer_plan);
static List *needed_columns(DpBucketRel *rel, RelOptInfo *baserel, List *clauses);

/* The callbacks of planning. */
void
dp_bucket_plan_routine(FdwRoutine *routine)
{
	routine->GetForeignRelSize = rel_size;
	routine->GetForeignPaths = paths;
	routine->GetForeignPlan = make_plan;
}

/* How many rows there are. */
static void
rel_size(PlannerInfo *root, RelOptInfo *baserel, Oid relid)
{
	DpBucketRel *rel = dp_bucket_rel(relid, false);

	baserel->fdw_private = rel;
	set_baserel_size_estimates(root, baserel);
}

/* How to read them. */
static void
paths(PlannerInfo *root, RelOptInfo *baserel, Oid relid)
{
	add_path(baserel, (Path *) dp_create_foreignscan_path(root, baserel, NULL, baserel->rows, 10, 10 + baserel->rows * cpu_tuple_cost,
														  NIL, baserel->lateral_relids, NULL, NIL));
}

/* The plan of a path. */
static ForeignScan *
make_plan(PlannerInfo *root, RelOptInfo *baserel, Oid relid, ForeignPath *best_path,
		  List *tlist, List *scan_clauses, Plan *outer_plan)
{
	List	   *clauses = extract_actual_clauses(scan_clauses, false);

	return make_foreignscan(tlist, clauses, baserel->relid, NIL,
							list_make1(needed_columns(baserel->fdw_private, baserel, clauses)),
							NIL, NIL, outer_plan);
}

/* Attnums of the columns that the query uses. */
static List *
needed_columns(DpBucketRel *rel, RelOptInfo *baserel, List *clauses)
{
	Bitmapset  *used = NULL;
	List	   *result = NIL;
	bool		whole;
	int			i;

	pull_varattnos((Node *) baserel->reltarget->exprs, baserel->relid, &used);
	pull_varattnos((Node *) clauses, baserel->relid, &used);
	whole = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
	for (i = 0; i < rel->ncolumns; i++)
	{
		if (whole || bms_is_member(rel->columns[i].attnum - FirstLowInvalidHeapAttributeNumber, used))
			result = lappend_int(result, rel->columns[i].attnum);
	}
	return result;
}
