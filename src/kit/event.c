/*
 * event.c
 *		The event triggers: react to commands on tables with patterns, and to DROP EXTENSION.
 *
 * New partitions get the triggers that PostgreSQL does not clone, and a new owner of a table also
 * owns its side tables.  Dependencies are in depend.c.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_type.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "commands/tablecmds.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/value.h"
#include "parser/parse_func.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/anchor.h"
#include "kit/declaration.h"
#include "kit/depend.h"
#include "kit/derive/change.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "kit/tenant.h"

/* Temporary tables of this session with ON COMMIT DELETE ROWS, which no catalog shows */
static List *emptied = NIL;

static void trigger_created(CreateTrigStmt *stmt);
static void trigger_dropped(DropStmt *stmt);
static void shard_triggers(Oid relid);
static void inheritance_refused(List *parents);
static void remember_emptied(RangeVar *relation);
static void table_altered(AlterTableStmt *stmt);
static void schema_renamed(const char *schema);
static void column_renamed(RenameStmt *stmt);
static void columns_altered(Oid relid);
static void partition_joined(Oid relid, bool attached);
static void partition_left(Oid table, Oid partition, bool concurrent);
static bool has_own(Oid relid);
static bool has_patterns(Oid relid);
static bool needs_statements(Oid relid);
static void call_with(const char *function, Oid relid, Oid role);
static void call_with_all(const char *function, int n, Oid *types, Datum *values);
static void patterns_partition(Oid table, Oid partition, bool attached);
static void owner_follow(Oid relid);
static Oid former_owner(Oid relid);
static bool caller_owns(Oid relid);

/*
 * _pattern_created(): event trigger at the end of CREATE TRIGGER, DROP TRIGGER, CREATE TABLE,
 * CREATE TABLE AS, CREATE FOREIGN TABLE, ALTER TABLE, ALTER FOREIGN TABLE and
 * ALTER SCHEMA.
 */
DP_FUNCTION(dp_pattern_created);
Datum
dp_pattern_created(PG_FUNCTION_ARGS)
{
	EventTriggerData *data = (EventTriggerData *) fcinfo->context;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		return (Datum) 0;
	if (IsA(data->parsetree, CreateTrigStmt))
		trigger_created((CreateTrigStmt *) data->parsetree);
	else if (IsA(data->parsetree, DropStmt) &&
			 ((DropStmt *) data->parsetree)->removeType == OBJECT_TRIGGER)
		trigger_dropped((DropStmt *) data->parsetree);
	else if (IsA(data->parsetree, CreateStmt))
	{
		CreateStmt *stmt = (CreateStmt *) data->parsetree;

		if (stmt->partbound != NULL)
			partition_joined(RangeVarGetRelid(stmt->relation, NoLock, true), false);
		else
			inheritance_refused(stmt->inhRelations);
		if (stmt->oncommit == ONCOMMIT_DELETE_ROWS)
			remember_emptied(stmt->relation);
	}
	else if (IsA(data->parsetree, CreateForeignTableStmt))
	{
		CreateStmt *stmt = &((CreateForeignTableStmt *) data->parsetree)->base;

		if (stmt->partbound == NULL)
			inheritance_refused(stmt->inhRelations);
	}
	else if (IsA(data->parsetree, CreateTableAsStmt))
	{
		IntoClause *into = ((CreateTableAsStmt *) data->parsetree)->into;

		if (into->onCommit == ONCOMMIT_DELETE_ROWS)
			remember_emptied(into->rel);
	}
	else if (IsA(data->parsetree, AlterTableStmt))
		table_altered((AlterTableStmt *) data->parsetree);
	else if (IsA(data->parsetree, RenameStmt) &&
			 ((RenameStmt *) data->parsetree)->renameType == OBJECT_SCHEMA)
		schema_renamed(((RenameStmt *) data->parsetree)->newname);
	else if (IsA(data->parsetree, RenameStmt) &&
			 ((RenameStmt *) data->parsetree)->renameType == OBJECT_COLUMN)
		column_renamed((RenameStmt *) data->parsetree);
	return (Datum) 0;
}

/*
 * _extension_dropping(): event trigger at the start of DROP EXTENSION.  Without CASCADE, for this
 * extension, it raises DEPENDENT_OBJECTS_STILL_EXIST before PostgreSQL does, whose hint loses data.
 */
DP_FUNCTION(dp_extension_dropping);
Datum
dp_extension_dropping(PG_FUNCTION_ARGS)
{
	DropStmt *stmt;
	ListCell *lc;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		return (Datum) 0;
	stmt = (DropStmt *) ((EventTriggerData *) fcinfo->context)->parsetree;
	if (stmt->behavior == DROP_CASCADE)
		return (Datum) 0;
	foreach(lc, stmt->objects)
	{
		List *function =
			list_make2(makeString("docpatterns"), makeString("_extension_require_unused"));

		if (strcmp(strVal(lfirst(lc)), "docpatterns") == 0)
			OidFunctionCall0(LookupFuncName(function, 0, NULL, false));
	}
	return (Datum) 0;
}

/*
 * _pattern_dropping(): event trigger at the start of DROP TABLE.  Citus replaces a table by a copy
 * and drops it with CASCADE: raises FEATURE_NOT_SUPPORTED if that would end patterns.
 */
DP_FUNCTION(dp_pattern_dropping);
Datum
dp_pattern_dropping(PG_FUNCTION_ARGS)
{
	DropStmt *stmt;
	ListCell *lc;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		return (Datum) 0;
	stmt = (DropStmt *) ((EventTriggerData *) fcinfo->context)->parsetree;
	if (stmt->behavior != DROP_CASCADE)
		return (Datum) 0;
	foreach(lc, stmt->objects)
	{
		Oid relid = RangeVarGetRelid(makeRangeVarFromNameList(lfirst(lc)), NoLock, true);

		if (OidIsValid(relid) && dp_is_distributed(relid))
			call_with("_tenant_refuse_replacing", relid, InvalidOid);
	}
	return (Datum) 0;
}

/*
 * pattern_relink(rel) -> bigint: records what _pattern_created() records, for the triggers of one
 * table, or of all tables that the caller owns.  pg_upgrade copies triggers but not their
 * dependencies, and creates the event trigger after them.
 */
DP_FUNCTION(dp_pattern_relink);
Datum
dp_pattern_relink(PG_FUNCTION_ARGS)
{
	Oid only = PG_ARGISNULL(0) ? InvalidOid : PG_GETARG_OID(0);
	Relation triggers = table_open(TriggerRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(triggers, InvalidOid, false, NULL, 0, NULL);
	HeapTuple tuple;
	List *tables = NIL;
	ListCell *lc;
	int64 n = 0;

	if (OidIsValid(only))
		dp_require_owner(only);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);

		if ((!OidIsValid(only) || form->tgrelid == only) && dp_is_own_trigger(form))
			tables = list_append_unique_oid(tables, form->tgrelid);
	}
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);

	/* one order prevents deadlocks */
	list_sort(tables, list_oid_cmp);
	foreach(lc, tables)
	{
		Oid relid = lfirst_oid(lc);

		CHECK_FOR_INTERRUPTS();
		LockRelationOid(relid, ShareUpdateExclusiveLock);
		if (!caller_owns(relid))
		{
			UnlockRelationOid(relid, ShareUpdateExclusiveLock);
			continue;
		}
		dp_depend_relation(relid);
		CommandCounterIncrement();
		n++;
	}
	PG_RETURN_INT64(n);
}

/* A trigger of the extension: records that the tables of its pattern depend on each other. */
static void
trigger_created(CreateTrigStmt *stmt)
{
	Oid relid;

	if (strncmp(stmt->trigname, DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0)
		return;
	relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	if (!OidIsValid(relid))
		return;
	CommandCounterIncrement();
	dp_depend_lock_links(relid, stmt->args);
	dp_depend_relation(relid);
	dp_tenant_trigger_created(relid);
	shard_triggers(relid);
}

/* A trigger was dropped: one for TRUNCATE goes from shards, too. */
static void
trigger_dropped(DropStmt *stmt)
{
	ListCell *lc;

	foreach(lc, stmt->objects)
	{
		List *names = list_copy(lfirst(lc));
		Oid relid;

		if (strncmp(strVal(llast(names)), DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0)
			continue;
		relid =
			RangeVarGetRelid(makeRangeVarFromNameList(list_truncate(names, list_length(names) - 1)),
							 NoLock, true);
		if (!OidIsValid(relid) || !dp_is_distributed(relid))
			continue;
		CommandCounterIncrement();
		shard_triggers(relid);
	}
}

/*
 * Citus creates shards without identity columns.  With the other triggers of a table it creates
 * those for TRUNCATE, but not on shards that a table has already.
 */
static void
shard_triggers(Oid relid)
{
	if (dp_shard_id(relid) != 0)
		call_with("_shard_identity", relid, InvalidOid);
	else if (dp_is_distributed(relid))
		call_with("_shard_truncate_triggers", relid, InvalidOid);
}

/* True if a relation exists and the caller owns it. */
static bool
caller_owns(Oid relid)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid owner;

	if (!HeapTupleIsValid(tuple))
		return false;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return has_privs_of_role(GetUserId(), owner);
}

/* Informs patterns about a partition's rows, for its ancestors, nearest first. */
static void
patterns_partition(Oid table, Oid partition, bool attached)
{
	List *tables = lcons_oid(table, get_partition_ancestors(table));

	for (const DpPattern *const *p = dp_patterns; *p != NULL; p++)
	{
		ListCell *lc;

		if ((*p)->partition == NULL)
			continue;
		foreach(lc, tables)
			(*p)->partition(lfirst_oid(lc), partition, attached);
	}
}

/*
 * Raises FEATURE_NOT_SUPPORTED if a table would inherit from one with patterns, whose triggers do
 * not fire for its rows.
 */
static void
inheritance_refused(List *parents)
{
	ListCell *lc;

	foreach(lc, parents)
	{
		Oid relid = RangeVarGetRelid(lfirst(lc), NoLock, true);

		if (OidIsValid(relid) && has_patterns(relid))
			ereport(
				ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot inherit from table \"%s\"", dp_relation_name(relid)),
				 errdetail("It has patterns, which support partitions but no other inheritance.")));
	}
}

/* A temporary table with ON COMMIT DELETE ROWS, without triggers. */
static void
remember_emptied(RangeVar *relation)
{
	Oid relid = RangeVarGetRelid(relation, NoLock, true);
	MemoryContext old;
	ListCell *lc;

	if (!OidIsValid(relid))
		return;
	foreach(lc, emptied)
	{
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(lc))))
			emptied = foreach_delete_current(emptied, lc);
	}
	old = MemoryContextSwitchTo(TopMemoryContext);
	emptied = list_append_unique_oid(emptied, relid);
	MemoryContextSwitchTo(old);
}

/*
 * _pattern_emptied_on_commit(rel) -> whether it is such a table
 */
DP_FUNCTION(dp_pattern_emptied_on_commit);
Datum
dp_pattern_emptied_on_commit(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(list_member_oid(emptied, PG_GETARG_OID(0)));
}

/* A table was altered: handles new partitions and owners. */
static void
table_altered(AlterTableStmt *stmt)
{
	Oid relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	bool dropped = false;
	bool cascade = false;
	ListCell *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);

		dropped |= cmd->subtype == AT_DropColumn;
		cascade |= cmd->behavior == DROP_CASCADE;
		if (cmd->subtype == AT_AttachPartition)
			partition_joined(RangeVarGetRelid(((PartitionCmd *) cmd->def)->name, NoLock, true),
							 true);
		else if (cmd->subtype == AT_DetachPartition || cmd->subtype == AT_DetachPartitionFinalize)
			partition_left(RangeVarGetRelid(stmt->relation, NoLock, true),
						   RangeVarGetRelid(((PartitionCmd *) cmd->def)->name, NoLock, true),
						   cmd->subtype == AT_DetachPartitionFinalize ||
							   ((PartitionCmd *) cmd->def)->concurrent);
		else if (cmd->subtype == AT_AddInherit)
			inheritance_refused(list_make1(cmd->def));
		else if ((cmd->subtype == AT_SetLogged || cmd->subtype == AT_SetUnLogged) &&
				 OidIsValid(relid) && has_patterns(relid))
			call_with("_pattern_follow_persistence", relid, InvalidOid);
		else if (cmd->subtype == AT_ChangeOwner)
			owner_follow(RangeVarGetRelid(stmt->relation, NoLock, true));
		else if (cmd->subtype == AT_AddColumn || cmd->subtype == AT_DropColumn ||
				 cmd->subtype == AT_AlterColumnType)
			columns_altered(RangeVarGetRelid(stmt->relation, NoLock, true));
	}
	if (OidIsValid(relid) && (get_rel_relkind(relid) == RELKIND_RELATION ||
							  get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE))
	{
		Relation rel;

		CommandCounterIncrement();
		rel = table_open(relid, AccessShareLock);
		if (dropped)
			dp_anchor_require_columns(rel, cascade);
		dp_anchor_require_key(rel);
		table_close(rel, NoLock);
		dp_depend_patterns(relid);
	}
}

/* A schema was renamed. */
static void
schema_renamed(const char *schema)
{
	Oid renamed = get_namespace_oid(schema, false);
	Oid extension = get_extension_oid("docpatterns", true);

	/* without the schema docpatterns there is no dp_types() */
	if ((OidIsValid(extension) &&
		 getExtensionOfObject(NamespaceRelationId, renamed) == extension) ||
		renamed == dp_types()->schema)
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot rename the schema of extension \"docpatterns\""),
			 errdetail("Functions of the extension and objects of patterns contain its name.")));
	for (const DpPattern *const *p = dp_patterns; *p != NULL; p++)
		if ((*p)->schema_renamed != NULL)
			(*p)->schema_renamed(renamed);
}

/* A column was renamed, also in inheriting tables: updates declarations that find rows by it. */
static void
column_renamed(RenameStmt *stmt)
{
	Oid relid =
		stmt->relation != NULL ? RangeVarGetRelid(stmt->relation, NoLock, true) : InvalidOid;
	ListCell *lc;

	if (!OidIsValid(relid))
		return;
	CommandCounterIncrement();
	foreach(lc, find_all_inheritors(relid, NoLock, NULL))
	{
		Oid types[3] = { REGCLASSOID, TEXTOID, TEXTOID };
		Datum values[3] = { ObjectIdGetDatum(lfirst_oid(lc)), CStringGetTextDatum(stmt->subname),
							CStringGetTextDatum(stmt->newname) };

		if (dp_anchors(lfirst_oid(lc)) != NIL)
			call_with_all("_pattern_anchor_renamed", 3, types, values);
	}
}

/* Columns were added, dropped or retyped: patterns of the table may raise an error. */
static void
columns_altered(Oid relid)
{
	Relation rel;
	TriggerDesc *triggers;
	int i;

	if (!OidIsValid(relid) || dp_marked_command(relid))
		return;
	rel = RelationIdGetRelation(relid);
	triggers = dp_triggers(rel);
	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		const DpPattern *pattern =
			trigger->tgnargs == 1 ? dp_pattern_of_function(trigger->tgfoid) : NULL;

		if (pattern != NULL && pattern->columns_altered != NULL)
			pattern->columns_altered(relid);
	}
	RelationClose(rel);
}

/*
 * A table has become a partition.  PostgreSQL cloned the row-level triggers of its parent;
 * _pattern_join_partition() creates the statement-level ones.  Its rows are new in its ancestors.
 */
static void
partition_joined(Oid relid, bool attached)
{
	bool ours = false;
	List *ancestors;
	ListCell *lc;

	if (!OidIsValid(relid))
		return;
	CommandCounterIncrement();
	ancestors = get_partition_ancestors(relid);
	foreach(lc, ancestors)
		ours = ours || has_own(lfirst_oid(lc));
	if (attached && needs_statements(relid))
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg(
				 "cannot attach table \"%s\" because a pattern uses its statement-level triggers",
				 dp_relation_name(relid)),
			 errdetail(
				 "Statement-level triggers on a partition do not fire for statements on its parent."),
			 errhint("Disable the pattern, and declare it on the partitioned table.")));
	if (!ours)
		return;
	call_with("_pattern_join_partition", relid, InvalidOid);
	if (attached)
		patterns_partition(linitial_oid(ancestors), relid, true);
	if (attached && dp_source_decls(llast_oid(ancestors)) != NIL)
		dp_changed_partition(llast_oid(ancestors), relid, true, false);
	if (attached)
		call_with("_pattern_notice_partition", relid, InvalidOid);
}

/*
 * A table is no longer a partition, and its rows are no longer in its ancestors.  concurrent:
 * others could read those without them before.
 */
static void
partition_left(Oid table, Oid partition, bool concurrent)
{
	if (!OidIsValid(table) || !OidIsValid(partition))
		return;
	CommandCounterIncrement();
	if (!has_own(table) && !has_own(partition))
		return;
	call_with("_pattern_leave_partition", partition, InvalidOid);
	patterns_partition(table, partition, false);
	if (dp_source_decls(table) != NIL)
		dp_changed_partition(table, partition, false, concurrent);
}

/* True if a table has triggers of the extension. */
static bool
has_own(Oid relid)
{
	Relation rel = table_open(relid, AccessShareLock);
	bool result = false;
	int i;

	for (i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		if (strncmp(rel->trigdesc->triggers[i].tgname, DP_TRIGGER_PREFIX,
					strlen(DP_TRIGGER_PREFIX)) == 0)
			result = true;
	}
	table_close(rel, NoLock);
	return result;
}

/* True if a table takes part in a declaration. */
static bool
has_patterns(Oid relid)
{
	Relation rel = table_open(relid, AccessShareLock);
	Oid extension = get_extension_oid("docpatterns", true);
	bool result = false;
	int i;

	for (i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];

		/* not by name, which users can change */
		if (trigger->tgnargs > 0 && OidIsValid(extension) &&
			getExtensionOfObject(ProcedureRelationId, trigger->tgfoid) == extension)
			result = true;
	}
	table_close(rel, NoLock);
	return result;
}

/* True if a table is the source of a declaration, or has one with work at the end of statements. */
static bool
needs_statements(Oid relid)
{
	Relation rel = table_open(relid, AccessShareLock);
	bool result = false;
	int i;

	for (i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];

		if (TRIGGER_FOR_ROW(trigger->tgtype) || TRIGGER_FOR_BEFORE(trigger->tgtype) ||
			strncmp(trigger->tgname, DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0)
			continue;
		if ((trigger->tgnargs == 3 && strcmp(trigger->tgargs[0], "side") == 0) ||
			(trigger->tgnargs == 2 && strcmp(trigger->tgargs[0], "of") == 0 &&
			 (trigger->tgtype &
			  (TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE)) != 0))
			result = true;
	}
	table_close(rel, NoLock);
	return result;
}

/* Calls a SQL function of the extension with a table and, if valid, a role. */
static void
call_with(const char *function, Oid relid, Oid role)
{
	Oid types[2] = { REGCLASSOID, OIDOID };
	Datum values[2] = { ObjectIdGetDatum(relid), ObjectIdGetDatum(role) };

	call_with_all(function, OidIsValid(role) ? 2 : 1, types, values);
}

/* Does the same with more arguments. */
static void
call_with_all(const char *function, int n, Oid *types, Datum *values)
{
	StringInfoData sql;
	int i;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	appendStringInfo(&sql, "docpatterns.%s(", function);
	for (i = 1; i <= n; i++)
		appendStringInfo(&sql, "%s$%d", i > 1 ? ", " : "", i);
	appendStringInfoChar(&sql, ')');
	SPI_connect();
	if (SPI_execute_with_args(sql.data, n, types, values, NULL, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "%s failed", function);
	SPI_finish();
}

/*
 * A table has another owner: changes the owner of its side tables, because they are written with
 * its owner's privileges.  The former owner could have put code there, or into views and functions
 * of patterns: side tables are searched for it first, the other objects are created again from the
 * declarations.
 */
static void
owner_follow(Oid relid)
{
	List *sides = NIL;
	ListCell *lc;
	Relation rel;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple tuple;
	Oid owner;
	Oid former;
	bool declared;

	/* ALTER TABLE also applies to indexes and views */
	if (!OidIsValid(relid) || (get_rel_relkind(relid) != RELKIND_RELATION &&
							   get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE &&
							   get_rel_relkind(relid) != RELKIND_FOREIGN_TABLE))
		return;
	CommandCounterIncrement();
	rel = table_open(relid, AccessShareLock);
	owner = rel->rd_rel->relowner;
	table_close(rel, NoLock);
	declared = has_patterns(relid);
	if (declared && IsolationUsesXactSnapshot())
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg(
				 "cannot change the owner of table \"%s\" in a transaction that is not READ COMMITTED",
				 dp_relation_name(relid)),
			 errdetail(
				 "Its patterns search for code of the former owner, which an older snapshot can miss.")));

	/* tables with a recorded dependency, not any that claim to belong to it */
	rel = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == RelationRelationId && form->deptype != DEPENDENCY_EXTENSION &&
			form->objsubid == 0 && form->refobjsubid == 0 &&
			get_rel_relkind(form->objid) == RELKIND_RELATION)
			sides = lappend_oid(sides, form->objid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);

	former = former_owner(relid);
	foreach(lc, sides)
	{
		if (!dp_depend_has_guard(lfirst_oid(lc), relid))
			continue;
		/* if no trigger fired for the change of owner, a side table shows the former owner */
		if (former == owner)
			former = former_owner(lfirst_oid(lc));
		LockRelationOid(lfirst_oid(lc), AccessExclusiveLock);
		call_with("_pattern_hand_over", lfirst_oid(lc), owner);
		ATExecChangeOwner(lfirst_oid(lc), owner, false, AccessExclusiveLock);
	}
	CommandCounterIncrement();
	if (declared && OidIsValid(former))
		call_with("_pattern_follow_owner", relid, former);
}

/* The owner of a relation when the statement began. */
static Oid
former_owner(Oid relid)
{
	Relation rel = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	Oid owner = InvalidOid;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, ClassOidIndexId, true, GetActiveSnapshot(), 1, &key);
	if (HeapTupleIsValid(tuple = systable_getnext(scan)))
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return owner;
}
