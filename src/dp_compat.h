/*
 * dp_compat.h
 *		Differences between PostgreSQL 15 to 18 and between libbson 1.x and 2.x. The only file
 *		that tests versions.
 */
#ifndef DP_COMPAT_H
#define DP_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "docpatterns needs PostgreSQL 15 or later"
#endif

/*
 * varatt.h was split off postgres.h in PostgreSQL 16.
 */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/*
 * PostgreSQL 16 brought soft errors: input functions report bad input through
 * an ErrorSaveContext instead of throwing.  Before 16 the context is ignored
 * and the error is thrown.
 */
#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#define dp_ereturn(context, dummy, ...) ereturn(context, dummy, __VA_ARGS__)
#define dp_soft_error_occurred(context) SOFT_ERROR_OCCURRED(context)
#else
#define dp_ereturn(context, dummy, ...)                                                            \
	do                                                                                             \
	{                                                                                              \
		(void) (context);                                                                          \
		ereport(ERROR, __VA_ARGS__);                                                               \
		return dummy;                                                                              \
	} while (0)
#define dp_soft_error_occurred(context) false
#endif

/*
 * PostgreSQL 18 replaced pg_attribute_noreturn(), written after a prototype, by
 * pg_noreturn, written before it.
 */
#if PG_VERSION_NUM >= 180000
#define pg_attribute_noreturn() __attribute__((noreturn))
#endif

/*
 * PostgreSQL 18 removed the last argument of ExecutorRun(): that the query runs once.
 */
#if PG_VERSION_NUM >= 180000
#define dp_executor_run(query, count, once) ExecutorRun(query, ForwardScanDirection, count)
#else
#define dp_executor_run(query, count, once) ExecutorRun(query, ForwardScanDirection, count, once)
#endif

/*
 * PostgreSQL 18 describes the direction of a path key by a type of comparison.
 */
#if PG_VERSION_NUM >= 180000
#define dp_pathkey_is_descending(key) ((key)->pk_cmptype == COMPARE_GT)
#else
#define dp_pathkey_is_descending(key) ((key)->pk_strategy == BTGreaterStrategyNumber)
#endif

/*
 * PostgreSQL 17 tells the planner which columns are never null, 18 does not trust attnotnull.
 */
#if PG_VERSION_NUM >= 170000
#define dp_is_never_null(rel, desc, attnum) bms_is_member(attnum, (rel)->notnullattnums)
#else
#define dp_is_never_null(rel, desc, attnum) (TupleDescAttr(desc, (attnum) -1)->attnotnull)
#endif

/*
 * Paths of foreign scans: PostgreSQL 17 lets them name the clauses of joins that
 * they evaluate, 18 counts disabled nodes.
 */
#if PG_VERSION_NUM >= 180000
#define dp_create_foreignscan_path(root, rel, target, rows, startup, total, pathkeys, outer,       \
								   outerpath, private)                                             \
	create_foreignscan_path(root, rel, target, rows, 0, startup, total, pathkeys, outer,           \
							outerpath, NIL, private)
#define dp_create_foreign_upper_path(root, rel, target, rows, startup, total, pathkeys, outerpath, \
									 private)                                                      \
	create_foreign_upper_path(root, rel, target, rows, 0, startup, total, pathkeys, outerpath,     \
							  NIL, private)
#elif PG_VERSION_NUM >= 170000
#define dp_create_foreignscan_path(root, rel, target, rows, startup, total, pathkeys, outer,       \
								   outerpath, private)                                             \
	create_foreignscan_path(root, rel, target, rows, startup, total, pathkeys, outer, outerpath,   \
							NIL, private)
#define dp_create_foreign_upper_path(root, rel, target, rows, startup, total, pathkeys, outerpath, \
									 private)                                                      \
	create_foreign_upper_path(root, rel, target, rows, startup, total, pathkeys, outerpath, NIL,   \
							  private)
#else
#define dp_create_foreignscan_path(root, rel, target, rows, startup, total, pathkeys, outer,       \
								   outerpath, private)                                             \
	create_foreignscan_path(root, rel, target, rows, startup, total, pathkeys, outer, outerpath,   \
							private)
#define dp_create_foreign_upper_path(root, rel, target, rows, startup, total, pathkeys, outerpath, \
									 private)                                                      \
	create_foreign_upper_path(root, rel, target, rows, startup, total, pathkeys, outerpath, private)
#endif

/*
 * PostgreSQL 16 no longer tells build_expression_pathkey() below which outer join it is.
 */
#if PG_VERSION_NUM >= 160000
#define dp_build_expression_pathkey(root, expr, operator, relids)                                  \
	build_expression_pathkey(root, expr, operator, relids, false)
#else
#define dp_build_expression_pathkey(root, expr, operator, relids)                                  \
	build_expression_pathkey(root, expr, NULL, operator, relids, false)
#endif

/*
 * PostgreSQL 18 split commands/explain.h.
 */
#if PG_VERSION_NUM >= 180000
#define DP_EXPLAIN_FORMAT_H "commands/explain_format.h"
#define DP_EXPLAIN_STATE_H "commands/explain_state.h"
#else
#define DP_EXPLAIN_FORMAT_H "commands/explain.h"
#define DP_EXPLAIN_STATE_H "commands/explain.h"
#endif

/*
 * PostgreSQL 18 counts index searches for EXPLAIN.
 */
#if PG_VERSION_NUM >= 180000
#define dp_index_beginscan(heap, index, snapshot, nkeys)                                           \
	index_beginscan(heap, index, snapshot, NULL, nkeys, 0)
#else
#define dp_index_beginscan(heap, index, snapshot, nkeys)                                           \
	index_beginscan(heap, index, snapshot, nkeys, 0)
#endif

/*
 * PostgreSQL 17 moved the statistics target from the column's row to the struct
 * that typanalyze functions get, 18 tells vacuum_delay_point() who calls.
 * These are for files that include commands/vacuum.h.
 */
#if PG_VERSION_NUM >= 170000
#define dp_raw_target(stats) ((stats)->attstattarget)
#else
#define dp_raw_target(stats) ((stats)->attr->attstattarget)
#endif
#define dp_analyze_target(stats)                                                                   \
	(dp_raw_target(stats) < 0 ? default_statistics_target : dp_raw_target(stats))
#if PG_VERSION_NUM >= 180000
#define dp_vacuum_delay_point() vacuum_delay_point(true)
#else
#define dp_vacuum_delay_point() vacuum_delay_point()
#endif

/*
 * Writing to a table without the executor: PostgreSQL 16 distinguishes indexes that only summarize,
 * 17 finds the sequence of an identity column by the relation.  Users include the headers of the
 * executor, table access and dependencies.
 */
#if PG_VERSION_NUM >= 160000
#define DpUpdateIndexes TU_UpdateIndexes
#define dp_update_needs_indexes(indexes) ((indexes) != TU_None)
#define dp_update_needs_all_indexes(indexes) ((indexes) == TU_All)
#define dp_insert_index_tuples(info, slot, estate)                                                 \
	ExecInsertIndexTuples(info, slot, estate, false, false, NULL, NIL, false)
#define dp_insert_index_tuples_unless(info, slot, estate, conflict, arbiters)                      \
	ExecInsertIndexTuples(info, slot, estate, false, true, conflict, arbiters, false)
#define dp_update_index_tuples(info, slot, estate, indexes)                                        \
	((indexes) != TU_None && (info)->ri_NumIndices > 0                                             \
		 ? ExecInsertIndexTuples(info, slot, estate, true, false, NULL, NIL,                       \
								 (indexes) == TU_Summarizing)                                      \
		 : NIL)
#else
#define DpUpdateIndexes bool
#define dp_update_needs_indexes(indexes) (indexes)
#define dp_update_needs_all_indexes(indexes) (indexes)
#define dp_insert_index_tuples(info, slot, estate)                                                 \
	ExecInsertIndexTuples(info, slot, estate, false, false, NULL, NIL)
#define dp_insert_index_tuples_unless(info, slot, estate, conflict, arbiters)                      \
	ExecInsertIndexTuples(info, slot, estate, false, true, conflict, arbiters)
#define dp_update_index_tuples(info, slot, estate, indexes)                                        \
	((indexes) && (info)->ri_NumIndices > 0                                                        \
		 ? ExecInsertIndexTuples(info, slot, estate, true, false, NULL, NIL)                       \
		 : NIL)
#endif

/*
 * Checks whether a row to be inserted would conflict with another one: PostgreSQL 18 needs the row.
 */
#if PG_VERSION_NUM >= 180000
#define dp_check_index_constraints(info, slot, estate, conflict, arbiters)                         \
	ExecCheckIndexConstraints(info, slot, estate, conflict, &(slot)->tts_tid, arbiters)
#else
#define dp_check_index_constraints(info, slot, estate, conflict, arbiters)                         \
	ExecCheckIndexConstraints(info, slot, estate, conflict, arbiters)
#endif

#if PG_VERSION_NUM >= 170000
#define dp_identity_sequence(rel, attnum) getIdentitySequence(rel, attnum, false)
#else
#define dp_identity_sequence(rel, attnum) getIdentitySequence(RelationGetRelid(rel), attnum, false)
#endif

/*
 * Firing triggers and checks without the executor: PostgreSQL 16 passes what triggers find,
 * separates permissions from the range table and names the relations of a recheck; 18 distinguishes
 * MERGE and renames the member with prepared checks.
 */
#if PG_VERSION_NUM >= 180000
#define dp_before_update_triggers(estate, epq, info, tid, slot, failure)                           \
	ExecBRUpdateTriggers(estate, epq, info, tid, NULL, slot, NULL, failure, false)
#define dp_before_delete_triggers(estate, epq, info, tid)                                          \
	ExecBRDeleteTriggers(estate, epq, info, tid, NULL, NULL, NULL, NULL, false)
#define dp_check_exprs(info) ((info)->ri_CheckConstraintExprs)
#elif PG_VERSION_NUM >= 160000
#define dp_before_update_triggers(estate, epq, info, tid, slot, failure)                           \
	ExecBRUpdateTriggers(estate, epq, info, tid, NULL, slot, NULL, failure)
#define dp_before_delete_triggers(estate, epq, info, tid)                                          \
	ExecBRDeleteTriggers(estate, epq, info, tid, NULL, NULL, NULL, NULL)
#define dp_check_exprs(info) ((info)->ri_ConstraintExprs)
#else
#define dp_before_update_triggers(estate, epq, info, tid, slot, failure)                           \
	ExecBRUpdateTriggers(estate, epq, info, tid, NULL, slot, failure)
#define dp_before_delete_triggers(estate, epq, info, tid)                                          \
	ExecBRDeleteTriggers(estate, epq, info, tid, NULL, NULL)
#define dp_check_exprs(info) ((info)->ri_ConstraintExprs)
#endif

#if PG_VERSION_NUM >= 160000
#define dp_epq_init(epq, estate) EvalPlanQualInit(epq, estate, NULL, NIL, -1, NIL)
#else
#define dp_epq_init(epq, estate) EvalPlanQualInit(epq, estate, NULL, NIL, -1)
#endif

/*
 * The range table of a statement that writes to one relation; sets columns to the place of the
 * bitmap of written columns.  For files that include parser/parse_relation.h.
 */
#if PG_VERSION_NUM >= 160000
#define dp_init_range_table(estate, rte, columns)                                                  \
	do                                                                                             \
	{                                                                                              \
		List *perms_ = NIL;                                                                        \
		RTEPermissionInfo *perm_ = addRTEPermissionInfo(&perms_, rte);                             \
		(columns) = &perm_->updatedCols;                                                           \
		dp_exec_init_range_table(estate, list_make1(rte), perms_);                                 \
	} while (0)
#if PG_VERSION_NUM >= 180000
#define dp_exec_init_range_table(estate, rtes, perms)                                              \
	ExecInitRangeTable(estate, rtes, perms, bms_make_singleton(1))
#else
#define dp_exec_init_range_table(estate, rtes, perms) ExecInitRangeTable(estate, rtes, perms)
#endif
#else
#define dp_init_range_table(estate, rte, columns)                                                  \
	do                                                                                             \
	{                                                                                              \
		(columns) = &(rte)->updatedCols;                                                           \
		ExecInitRangeTable(estate, list_make1(rte));                                               \
	} while (0)
#endif

/*
 * PostgreSQL 16 checks privileges on all kinds of objects with one function.  For files that
 * include utils/acl.h and catalog/pg_proc.h.
 */
#if PG_VERSION_NUM >= 160000
#define dp_may_execute(function, role)                                                             \
	(object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE) == ACLCHECK_OK)
#else
#define dp_may_execute(function, role)                                                             \
	(pg_proc_aclcheck(function, role, ACL_EXECUTE) == ACLCHECK_OK)
#endif

/* PostgreSQL 18 has checks that are not enforced, and columns that are computed when read. */
#if PG_VERSION_NUM >= 180000
#define dp_check_enforced(check) ((check).ccenforced)
#define dp_has_virtual_columns(constr) ((constr)->has_generated_virtual)
#else
#define dp_check_enforced(check) true
#define dp_has_virtual_columns(constr) false
#endif

/*
 * An avoided deadlock must not count in the statistics; PostgreSQL 16 renamed the counter.  For
 * files that include utils/pgstat_internal.h.
 */
#if PG_VERSION_NUM >= 160000
#define dp_deadlocks deadlocks
#else
#define dp_deadlocks n_deadlocks
#endif
#define dp_uncount_deadlock()                                                                      \
	do                                                                                             \
	{                                                                                              \
		if (pgstat_track_counts)                                                                   \
			pgstat_prep_database_pending(MyDatabaseId)->dp_deadlocks--;                            \
	} while (0)

/* PostgreSQL 17 can also check for a stronger lock. */
#if PG_VERSION_NUM >= 170000
#define dp_lock_held(tag, mode) LockHeldByMe(tag, mode, false)
#else
#define dp_lock_held(tag, mode) LockHeldByMe(tag, mode)
#endif

#endif /* DP_COMPAT_H */
