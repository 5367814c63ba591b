/*
 * changed_row.c
 *		A scan for rows that other transactions have changed.
 *
 * When a query locks a row that another transaction has changed, PostgreSQL runs the plan again for
 * the new version of the row: the first scan of the table gets it and tests its conditions, and
 * other scans of the table get none.  If scans read parts of a table, the row may be in a later
 *one. This scan comes first, takes the row and tests only the conditions of the query.  Otherwise
 *it has no rows.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/extensible.h"
#include "optimizer/restrictinfo.h"

#include "index/changed_row.h"

static Plan *make_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist,
					   List *clauses, List *plans);
static Node *make_state(CustomScan *scan);
static void begin(CustomScanState *node, EState *estate, int eflags);
static TupleTableSlot *run(CustomScanState *node);
static TupleTableSlot *no_row(ScanState *node);
static bool any_row(ScanState *node, TupleTableSlot *slot);
static void end(CustomScanState *node);
static void rescan(CustomScanState *node);

static const CustomPathMethods path_methods = { "Changed Row", make_plan };
static const CustomScanMethods scan_methods = { "Changed Row", make_state };
static const CustomExecMethods exec_methods = { .CustomName = "Changed Row",
												.BeginCustomScan = begin,
												.ExecCustomScan = run,
												.EndCustomScan = end,
												.ReScanCustomScan = rescan };

Path *
dp_changed_row_path(RelOptInfo *rel, List *pathkeys)
{
	CustomPath *path = makeNode(CustomPath);

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.rows = 1;
	path->path.pathkeys = pathkeys;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &path_methods;
	return &path->path;
}

static Plan *
make_plan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses,
		  List *plans)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = extract_actual_clauses(clauses, false);
	scan->scan.scanrelid = rel->relid;
	scan->flags = path->flags;
	scan->methods = &scan_methods;
	return &scan->scan.plan;
}

static Node *
make_state(CustomScan *scan)
{
	CustomScanState *state = makeNode(CustomScanState);

	state->methods = &exec_methods;
	return (Node *) state;
}

/* The changed row is in a slot of another kind than that of the scan. */
static void
begin(CustomScanState *node, EState *estate, int eflags)
{
	node->ss.ps.scanopsfixed = false;
	ExecAssignScanProjectionInfo(&node->ss);
	node->ss.ps.qual = ExecInitQual(node->ss.ps.plan->qual, &node->ss.ps);
}

static TupleTableSlot *
run(CustomScanState *node)
{
	return ExecScan(&node->ss, no_row, any_row);
}

static TupleTableSlot *
no_row(ScanState *node)
{
	return NULL;
}

static bool
any_row(ScanState *node, TupleTableSlot *slot)
{
	return true;
}

static void
end(CustomScanState *node)
{
}

static void
rescan(CustomScanState *node)
{
	ExecScanReScan(&node->ss);
}
