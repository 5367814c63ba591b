/*
 * event.c
 *		Dependencies between the two tables of a pattern.
 *
 * A table that a pattern keeps beside the user's table depends on it, and the
 * pattern's main trigger depends on the table that it writes to: DROP TABLE of
 * either is refused without CASCADE, and with CASCADE leaves nothing behind.
 * pg_dump does not carry such dependencies, so they are recorded whenever a
 * trigger of ours is created, be it by _enable or by a restore.
 *
 * Tables that become partitions get the triggers that PostgreSQL does not hand
 * down, and a new owner of a table also owns what patterns keep beside it.
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
#include "kit/derive/change.h"
#include "kit/registry.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"

/* Temporary tables of this session that each commit empties: no catalogue has them */
static List *emptied = NIL;

static void trigger_created(CreateTrigStmt *stmt);
static void inheritance_refused(List *parents);
static void remember_emptied(RangeVar *relation);
static void table_altered(AlterTableStmt *stmt);
static void schema_renamed(const char *schema);
static void column_renamed(RenameStmt *stmt);
static void board_follow(Oid trigger, const char *space);
static void columns_altered(Oid relid);
static void partition_joined(Oid relid, bool attached);
static void partition_left(Oid table, Oid partition, bool concurrent);
static bool has_own(Oid relid);
static bool has_patterns(Oid relid);
static bool needs_statements(Oid relid);
static void call_with(const char *function, Oid relid, Oid role);
static void call_with_all(const char *function, int n, Oid *types, Datum *values);
static void patterns_depend(Oid relid);
static void patterns_partition(Oid table, Oid partition, bool attached);
static void owner_follow(Oid relid);
static Oid former_owner(Oid relid);
static Oid view_find(Oid relid, const char *function);
static bool caller_owns(Oid relid);
static void relation_depend(Oid relid);
static void depend_main(Oid relid);
static Oid depend_pair(Form_pg_trigger form, Oid relid, const char *pair, bool aid);
static void depend_others(Oid relid);
static void depend_triggers(Oid side, const char *pair, Oid main);
static void depend_side(Oid relid);
static void depend(Oid class, Oid object, Oid on_class, Oid on, DependencyType type);
static void pairs_lock(Oid relid, List *args);
static void options_lock(const char *declared, const char *after);
static void pair_lock(const char *pair);
static bool has_guard(Oid relid, Oid main);
static bool is_queue(Oid relid);
static bool is_ours(Form_pg_trigger form);
static bool is_board(Form_pg_trigger form);
static const char *first_argument(Relation rel, HeapTuple tuple);

/*
 * _pattern_created(): event trigger at the end of CREATE TRIGGER, CREATE TABLE,
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
 * pattern_relink(rel) -> bigint: records what _pattern_created() records, for
 * the triggers of one table, or of all that the caller owns.  pg_upgrade
 * copies triggers but not what they made depend on each other, and creates the
 * event trigger after them.
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

		if ((!OidIsValid(only) || form->tgrelid == only) && is_ours(form))
			tables = list_append_unique_oid(tables, form->tgrelid);
	}
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);

	/* in one order, so that nobody waits in a circle */
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
		relation_depend(relid);
		CommandCounterIncrement();
		n++;
	}
	PG_RETURN_INT64(n);
}

/* A trigger of ours: the tables of its pattern depend on each other. */
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
	pairs_lock(relid, stmt->args);
	relation_depend(relid);
}

/* Whether a relation exists and is the caller's. */
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

/* What follows from the triggers of a relation. */
static void
relation_depend(Oid relid)
{
	depend_main(relid);
	depend_side(relid);
	patterns_depend(relid);
}

static void
patterns_depend(Oid relid)
{
	for (const DpPattern *const *p = dp_patterns; *p != NULL; p++)
		if ((*p)->depend != NULL)
			(*p)->depend(relid);
}

/* Tells patterns of a partition's rows, for the table right above it and all above that. */
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
 * Two sessions may create triggers of one declaration at a time, as a restore
 * in parallel does: the second has to see the first one's.  Locks the pairs
 * that a new trigger names, and for the second pair of a declaration the first
 * too, in this order and no other pairs: so nobody waits in a circle.
 */
static void
pairs_lock(Oid relid, List *args)
{
	Oid main;
	Relation rel;
	TriggerDesc *triggers;
	int i;

	if (list_length(args) == 1)
	{
		options_lock(strVal(linitial(args)), NULL);
		return;
	}
	if (list_length(args) != 3 || (strcmp(strVal(linitial(args)), "side") != 0 &&
								   strcmp(strVal(linitial(args)), "part") != 0))
		return;
	pair_lock(strVal(lsecond(args)));
	main = dp_pair_find(strVal(lsecond(args)), true, relid);
	if (!OidIsValid(main))
		return;
	rel = table_open(main, AccessShareLock);
	triggers = dp_triggers(rel);
	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (trigger->tgnargs == 1 &&
			strncmp(trigger->tgname, DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) == 0)
			options_lock(trigger->tgargs[0], strVal(lsecond(args)));
	}
	table_close(rel, NoLock);
}

/*
 * Locks the pairs of a declaration, the last one first; those before "after" only, if it is not
 * NULL.
 */
static void
options_lock(const char *declared, const char *after)
{
	struct varlena *options = dp_declared_options(declared);
	bool passed = after == NULL;
	int i;

	for (i = DP_PAIR_OPTIONS - 1; i >= 0 && options != NULL; i--)
	{
		DpValue pair;

		if (!dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), dp_pair_options[i],
							  strlen(dp_pair_options[i]), &pair) ||
			pair.type != DP_TYPE_STRING)
			continue;
		if (passed)
			pair_lock(DP_STRING_DATA(&pair));
		else if (strcmp(DP_STRING_DATA(&pair), after) == 0)
			passed = true;
	}
}

/*
 * Raises FEATURE_NOT_SUPPORTED if a table shall inherit from one with patterns, which would not
 * hear of its rows.
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
				 errmsg("cannot inherit from table %s", dp_relation_name(relid)),
				 errdetail("It has patterns, which know partitions, but no other inheritance.")));
	}
}

/* A temporary table that each commit empties, without triggers. */
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

/* A table was altered: partitions come, owners change. */
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
		patterns_depend(relid);
	}
}

/*
 * A schema has another name: boards name their key-value space in their
 * declarations.  Those in question are recorded to depend on its keys.
 */
static void
schema_renamed(const char *schema)
{
	Oid renamed = get_namespace_oid(schema, false);
	Oid keys = get_relname_relid("keys", renamed);
	Oid extension = get_extension_oid("docpatterns", true);
	List *triggers = NIL;
	ListCell *lc;
	Relation rel;
	ScanKeyData scankeys[2];
	SysScanDesc scan;
	HeapTuple tuple;

	/* without the schema docpatterns there is no dp_types() */
	if ((OidIsValid(extension) &&
		 getExtensionOfObject(NamespaceRelationId, renamed) == extension) ||
		renamed == dp_types()->schema)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("schema of the extension \"docpatterns\" cannot be renamed"),
				 errdetail("Functions of the extension, and what patterns have made, name it.")));
	if (!OidIsValid(keys))
		return;
	rel = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&scankeys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&scankeys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(keys));
	scan = systable_beginscan(rel, DependReferenceIndexId, true, NULL, 2, scankeys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == TriggerRelationId && form->deptype == DEPENDENCY_NORMAL)
			triggers = lappend_oid(triggers, form->objid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	foreach(lc, triggers)
		board_follow(lfirst_oid(lc), schema);
}

/*
 * A column has another name, also in the tables that inherit it: declarations
 * that find rows by it go on doing so.
 */
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

/*
 * The declaration of a board is made anew with the new name, as the owner of
 * its table, who need not be the one who has renamed the space.
 */
static void
board_follow(Oid trigger, const char *space)
{
	Relation rel = table_open(TriggerRelationId, AccessShareLock);
	Oid table = InvalidOid;
	char *name = NULL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	StringInfoData sql;
	DpActing saved;

	ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(trigger));
	scan = systable_beginscan(rel, TriggerOidIndexId, true, NULL, 1, &key);
	if (HeapTupleIsValid(tuple = systable_getnext(scan)) &&
		is_board((Form_pg_trigger) GETSTRUCT(tuple)))
	{
		struct varlena *options = dp_declared_options(first_argument(rel, tuple));
		DpValue value;

		if (options != NULL &&
			dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), "name", 4, &value) &&
			value.type == DP_TYPE_STRING)
		{
			table = ((Form_pg_trigger) GETSTRUCT(tuple))->tgrelid;
			name = pstrdup(DP_STRING_DATA(&value));
		}
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	if (!OidIsValid(table))
		return;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	appendStringInfoString(&sql, "docpatterns._kv_leaderboard_follow($1, $2, $3)");
	rel = table_open(table, AccessShareLock);
	dp_act_as(rel->rd_rel->relowner, &saved);
	table_close(rel, NoLock);
	PG_TRY();
	{
		Oid types[3] = { REGCLASSOID, TEXTOID, TEXTOID };
		Datum values[3] = { ObjectIdGetDatum(table), CStringGetTextDatum(name),
							CStringGetTextDatum(space) };

		SPI_connect();
		if (SPI_execute_with_args(sql.data, 3, types, values, NULL, false, 0) != SPI_OK_SELECT)
			elog(ERROR, "_kv_leaderboard_follow failed");
		SPI_finish();
	}
	PG_FINALLY();
	{
		dp_act_end(&saved);
	}
	PG_END_TRY();
}

/*
 * The columns of a relation of measurements are those of its buckets.
 */
static void
columns_altered(Oid relid)
{
	Relation rel;
	bool buckets = false;
	TriggerDesc *triggers;
	int i;

	if (!OidIsValid(relid) || dp_marked_command(relid))
		return;
	rel = RelationIdGetRelation(relid);
	triggers = dp_triggers(rel);
	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (dp_is_internal(trigger->tgfoid, "bucket_trigger"))
			buckets = true;
	}
	RelationClose(rel);
	if (buckets)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the columns of %s are those of its buckets", dp_relation_name(relid)),
				 errhint("bucket_add_column() adds one.")));
}

/*
 * A table has become a partition.  It got the row triggers of its parent, but
 * nobody gives it those for statements: _pattern_join_partition() does.  If it
 * had rows, they have come to the tables above it.
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
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("table %s has a pattern that follows its statements",
							   dp_relation_name(relid)),
						errdetail("As a partition it would be written to without its triggers."),
						errhint("Disable the pattern, and declare it on the table above.")));
	if (!ours)
		return;
	call_with("_pattern_join_partition", relid, InvalidOid);
	if (attached)
		patterns_partition(linitial_oid(ancestors), relid, true);
	if (attached && dp_feeds(llast_oid(ancestors)) != NIL)
		dp_changed_partition(llast_oid(ancestors), relid, true, false);
	if (attached)
		call_with("_pattern_notice_partition", relid, InvalidOid);
}

/*
 * A table is no partition any more, and its rows are not in the table above.
 * concurrent: others could read that without them before.
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
	if (dp_feeds(table) != NIL)
		dp_changed_partition(table, partition, false, concurrent);
}

/* Whether a table has triggers of ours. */
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

/* Whether a table takes part in a declaration. */
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

		/* not by their names, which users can change */
		if (trigger->tgnargs > 0 && OidIsValid(extension) &&
			getExtensionOfObject(ProcedureRelationId, trigger->tgfoid) == extension)
			result = true;
	}
	table_close(rel, NoLock);
	return result;
}

/*
 * Whether a table itself is the source of a declaration, or carries one that
 * has work to do at the end of statements.
 */
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

/* Calls one of our SQL functions with a table, and with a role if there is one. */
static void
call_with(const char *function, Oid relid, Oid role)
{
	Oid types[2] = { REGCLASSOID, OIDOID };
	Datum values[2] = { ObjectIdGetDatum(relid), ObjectIdGetDatum(role) };

	call_with_all(function, OidIsValid(role) ? 2 : 1, types, values);
}

/* The same with more arguments. */
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
 * A table has another owner: the tables that patterns keep beside it follow,
 * because they are written to with its owner's rights.  The former owner could
 * have put code of their own there, or into the views and functions that
 * patterns have made: tables are searched for it first, the rest is made again
 * from the declarations.
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

	/* ALTER TABLE is heard for indexes and views too */
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
				 "cannot change the owner of table %s in a transaction that is not READ COMMITTED",
				 dp_relation_name(relid)),
			 errdetail(
				 "Its patterns look for code of the former owner. An older snapshot can miss it.")));

	/* those that were recorded to depend on it, not any that claim to belong to it */
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
		if (!has_guard(lfirst_oid(lc), relid))
			continue;
		/*
		 * where the table was handed over in a way that no trigger heard of, what belongs to it
		 * tells its former owner
		 */
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

/* The owner that a relation had when the statement began. */
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

/* The view of a table, as one of our functions finds it; InvalidOid if there is none. */
static Oid
view_find(Oid relid, const char *function)
{
	StringInfoData sql;
	Oid type = REGCLASSOID;
	Datum value = ObjectIdGetDatum(relid);
	Datum view;
	bool isnull;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	appendStringInfo(&sql, "docpatterns.%s($1)", function);
	SPI_connect();
	if (SPI_execute_with_args(sql.data, 1, &type, &value, NULL, true, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "could not look for the view of relation %u", relid);
	view = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	SPI_finish();
	return isnull ? InvalidOid : DatumGetObjectId(view);
}

/*
 * The relation may have main triggers: find what their declarations name.
 */
static void
depend_main(Oid relid)
{
	Relation rel = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	ListCell *lc;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
		struct varlena *options;
		Oid sides[DP_PAIR_OPTIONS] = { InvalidOid };
		int i;
		int j;

		if (form->tgnargs != 1 || OidIsValid(form->tgparentid) || !is_ours(form))
			continue;
		options = dp_declared_options(first_argument(rel, tuple));
		for (i = 0; i < lengthof(dp_pair_options) && options != NULL; i++)
		{
			DpValue pair;

			if (dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), dp_pair_options[i],
								 strlen(dp_pair_options[i]), &pair) &&
				pair.type == DP_TYPE_STRING)
				sides[i] = depend_pair(form, relid, DP_STRING_DATA(&pair),
									   strcmp(dp_pair_options[i], "gone_pair") == 0);
		}

		/*
		 * What was put off, or summed up, is of no use without its source and
		 * its tree.  (It says so of the table, not of the trigger: pg_dump
		 * would find that the trigger and the queue need each other.)
		 */
		for (i = 0; i < DP_PAIR_OPTIONS; i++)
			for (j = 0; j < DP_PAIR_OPTIONS; j++)
				if (OidIsValid(sides[i]) && OidIsValid(sides[j]) &&
					has_guard(sides[i], InvalidOid) && !has_guard(sides[j], InvalidOid))
					depend(RelationRelationId, sides[i], RelationRelationId, sides[j],
						   is_queue(sides[i]) ? DEPENDENCY_AUTO : DEPENDENCY_NORMAL);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);

	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		depend_others(relid);
	else
		foreach(lc, find_all_inheritors(relid, NoLock, NULL))
			depend_others(lfirst_oid(lc));
}

/*
 * A main trigger's table and the other side of a pair depend on each other.
 * What lies beneath a relation of measurements is a part of it: it goes with
 * it, and cannot be dropped without it.  An aid (a list of what has gone)
 * goes with the table.  Returns the other side, if it exists.
 */
static Oid
depend_pair(Form_pg_trigger form, Oid relid, const char *pair, bool aid)
{
	Oid trigger = form->oid;
	bool beneath = false;
	Oid side;

	if (get_rel_relkind(relid) == RELKIND_FOREIGN_TABLE)
	{
		char *function = get_func_name(form->tgfoid);

		/* other patterns that have their declarations there keep tables of their own beside it */
		beneath = function != NULL && strncmp(function, "bucket_", strlen("bucket_")) == 0;
	}

	side = dp_pair_find(pair, false, relid);
	if (!OidIsValid(side))
		return InvalidOid;
	if (!beneath)
		depend(TriggerRelationId, trigger, RelationRelationId, side, DEPENDENCY_NORMAL);
	if (has_guard(side, InvalidOid))
		depend(RelationRelationId, side, RelationRelationId, relid,
			   beneath ? DEPENDENCY_INTERNAL
			   : aid   ? DEPENDENCY_AUTO
					   : DEPENDENCY_NORMAL);
	if (get_rel_relkind(side) != RELKIND_PARTITIONED_TABLE)
		depend_triggers(side, pair, relid);
	else
	{
		ListCell *lc;

		foreach(lc, find_all_inheritors(side, NoLock, NULL))
			depend_triggers(lfirst_oid(lc), pair, relid);
	}
	if (beneath)
	{
		Oid view = view_find(relid, "_bucket_view");

		if (OidIsValid(view))
			depend(RelationRelationId, view, RelationRelationId, relid, DEPENDENCY_AUTO);
	}
	return side;
}

/*
 * The other triggers of a declaration are of no use without the main one, and
 * go with it.  Its anchor does, too, but not in silence.
 */
static void
depend_others(Oid relid)
{
	Relation rel = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	List *triggers = NIL;
	ListCell *lc;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);

		if (is_ours(form) && (form->tgnargs == 1 || (form->tgnargs >= 2 && form->tgnargs <= 3 &&
													 !OidIsValid(form->tgparentid))))
			triggers = lappend(triggers, heap_copytuple(tuple));
	}
	systable_endscan(scan);

	foreach(lc, triggers)
	{
		Form_pg_trigger other = (Form_pg_trigger) GETSTRUCT((HeapTuple) lfirst(lc));
		const char *of = first_argument(rel, lfirst(lc));
		const char *name = of + strlen(of) + 1;
		ListCell *lc2;

		bool anchor = other->tgnargs == 3 && strcmp(of, "anchor") == 0;

		if (!anchor && (other->tgnargs != 2 || strcmp(of, "of") != 0))
			continue;
		foreach(lc2, triggers)
		{
			Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT((HeapTuple) lfirst(lc2));
			const char *declared = first_argument(rel, lfirst(lc2));
			struct varlena *options;
			DpValue value;

			if (form->tgnargs != 1 || (!anchor && form->tgfoid != other->tgfoid))
				continue;
			options = dp_declared_options(declared);
			if (options != NULL &&
				dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), "name", 4, &value) &&
				value.type == DP_TYPE_STRING && strcmp(DP_STRING_DATA(&value), name) == 0)
				depend(TriggerRelationId, other->oid, TriggerRelationId, form->oid,
					   anchor ? DEPENDENCY_NORMAL : DEPENDENCY_AUTO);
		}
	}
	table_close(rel, AccessShareLock);
}

/*
 * The triggers of the side of a pair, or of one of its partitions, are of no
 * use without the main table.
 */
static void
depend_triggers(Oid side, const char *pair, Oid main)
{
	Relation rel = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(side));
	scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
		const char *first;

		if (form->tgnargs != 3 || OidIsValid(form->tgparentid) || !is_ours(form))
			continue;
		first = first_argument(rel, tuple);
		if ((strcmp(first, "side") == 0 || strcmp(first, "part") == 0 ||
			 strcmp(first, "anchor") == 0) &&
			strcmp(first + strlen(first) + 1, pair) == 0)
			depend(TriggerRelationId, form->oid, RelationRelationId, main, DEPENDENCY_NORMAL);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/*
 * The relation may be the side of declarations: find their tables.
 */
static void
depend_side(Oid relid)
{
	Relation rel = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
		const char *first;
		Oid main;

		if (form->tgnargs != 3 || OidIsValid(form->tgparentid) || !is_ours(form))
			continue;
		first = first_argument(rel, tuple);
		if (strcmp(first, "side") != 0 && strcmp(first, "part") != 0)
			continue;
		main = dp_pair_find(first + strlen("side") + 1, true, relid);
		if (OidIsValid(main))
			depend_main(main);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/*
 * Record that an object depends on another, unless that is known.
 */
static void
depend(Oid class, Oid object, Oid on_class, Oid on, DependencyType type)
{
	Relation rel;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple tuple;
	bool known = false;
	ObjectAddress depender;
	ObjectAddress referenced;

	rel = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(class));
	ScanKeyInit(&keys[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(object));
	scan = systable_beginscan(rel, DependDependerIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->refclassid == on_class && form->refobjid == on && form->refobjsubid == 0)
			known = true;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	if (known)
		return;
	ObjectAddressSet(depender, class, object);
	ObjectAddressSet(referenced, on_class, on);
	recordDependencyOn(&depender, &referenced, type);
	CommandCounterIncrement();
}

/*
 * A restore may create the triggers of both tables at the same time: each then
 * waits for the other, so that the second one sees the first.
 */
static void
pair_lock(const char *pair)
{
	LockDatabaseObject(TriggerRelationId, hash_bytes((const unsigned char *) pair, strlen(pair)), 0,
					   ExclusiveLock);
}

/*
 * Whether the table belongs to a pattern: its writes are guarded.  Not if it is
 * known that it belongs to another table than main, unless that is InvalidOid.
 */
static bool
has_guard(Oid relid, Oid main)
{
	Relation rel = table_open(relid, AccessShareLock);
	bool result = false;
	TriggerDesc *triggers;
	int i;

	triggers = dp_triggers(rel);
	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (trigger->tgnargs == 3 && dp_is_internal(trigger->tgfoid, "pattern_guard_trigger"))
		{
			Oid found =
				OidIsValid(main) ? dp_pair_find(trigger->tgargs[1], true, relid) : InvalidOid;

			result = !OidIsValid(found) || found == main;
		}
	}
	table_close(rel, AccessShareLock);
	return result;
}

/* Whether a table with a guard is the queue of a declaration. */
static bool
is_queue(Oid relid)
{
	return get_attnum(relid, "queued_at") != InvalidAttrNumber &&
		   get_attnum(relid, "delta") != InvalidAttrNumber &&
		   get_attnum(relid, "key") != InvalidAttrNumber &&
		   get_attnum(relid, "id") != InvalidAttrNumber;
}

/* Whether a trigger has a name of ours and a function of this extension. */
static bool
is_ours(Form_pg_trigger form)
{
	return strncmp(NameStr(form->tgname), DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) == 0 &&
		   get_func_namespace(form->tgfoid) == dp_types()->internal;
}

/* Whether it is the main trigger of a board in a key-value space. */
static bool
is_board(Form_pg_trigger form)
{
	return is_ours(form) && form->tgnargs == 1 &&
		   dp_is_internal(form->tgfoid, "kv_leaderboard_trigger");
}

/* A trigger's first argument; the others follow, each with its terminator. */
static const char *
first_argument(Relation rel, HeapTuple tuple)
{
	bool isnull;
	Datum args = heap_getattr(tuple, Anum_pg_trigger_tgargs, RelationGetDescr(rel), &isnull);

	if (isnull)
		return "";
	args = PointerGetDatum(DatumGetByteaPP(args));
	return VARDATA_ANY(DatumGetPointer(args));
}
