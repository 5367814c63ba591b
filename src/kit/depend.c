/*
 * depend.c
 *		Dependencies between the two tables of a pattern.
 *
 * A side table depends on the user's table, and the pattern's main trigger depends on the table to
 * which it writes: DROP TABLE of either is rejected without CASCADE, and drops everything with
 * CASCADE.  pg_dump does not dump such dependencies, so they are recorded whenever a trigger of the
 * extension is created, by _enable or by a restore.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/declaration.h"
#include "kit/depend.h"
#include "kit/link.h"
#include "kit/registry.h"
#include "kit/shard.h"

static void depend_main(Oid relid);
static Oid depend_link(Form_pg_trigger form, Oid relid, const char *link_id, bool aid);
static void depend_others(Oid relid);
static void depend_triggers(Oid side, const char *link_id, Oid main);
static void depend_side(Oid relid);
static bool dropped_by_citus(Oid relid);
static int64 depend_others_on(Oid relid, bool removes);
static bool trigger_elsewhere(Oid trigger, Oid relid);
static void options_lock(const char *declared, const char *after);
static void link_lock(const char *link_id);
static bool is_queue(Oid relid);
static const char *first_argument(Relation rel, HeapTuple tuple);

void
dp_depend_relation(Oid relid)
{
	if (dropped_by_citus(relid))
		return;
	depend_main(relid);
	depend_side(relid);
	dp_depend_patterns(relid);
}

/* Citus drops shards, and tables that it keeps on other servers, each by itself. */
static bool
dropped_by_citus(Oid relid)
{
	return dp_called_by_citus() || dp_shard_id(relid) != 0;
}

void
dp_depend_patterns(Oid relid)
{
	if (dropped_by_citus(relid))
		return;
	for (const DpPattern *const *p = dp_patterns; *p != NULL; p++)
		if ((*p)->depend != NULL)
			(*p)->depend(relid);
}

void
dp_depend_lock_links(Oid relid, List *args)
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
	link_lock(strVal(lsecond(args)));
	main = dp_link_find(strVal(lsecond(args)), true, relid);
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
 * Locks the link IDs of a declaration, the last one first; those before "after" only, if it is not
 * NULL.
 */
static void
options_lock(const char *declared, const char *after)
{
	struct varlena *options = dp_declared_options(declared);
	bool passed = after == NULL;
	int i;

	for (i = DP_LINK_OPTIONS - 1; i >= 0 && options != NULL; i--)
	{
		DpValue link_id;

		if (!dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), dp_link_options[i],
							  strlen(dp_link_options[i]), &link_id) ||
			link_id.type != DP_TYPE_STRING)
			continue;
		if (passed)
			link_lock(DP_STRING_DATA(&link_id));
		else if (strcmp(DP_STRING_DATA(&link_id), after) == 0)
			passed = true;
	}
}

/* The relation may have main triggers: finds the tables in their declarations. */
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
		Oid sides[DP_LINK_OPTIONS] = { InvalidOid };
		int i;
		int j;

		if (form->tgnargs != 1 || OidIsValid(form->tgparentid) || !dp_is_own_trigger(form))
			continue;
		options = dp_declared_options(first_argument(rel, tuple));
		for (i = 0; i < lengthof(dp_link_options) && options != NULL; i++)
		{
			DpValue link_id;

			if (dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), dp_link_options[i],
								 strlen(dp_link_options[i]), &link_id) &&
				link_id.type == DP_TYPE_STRING)
				sides[i] = depend_link(form, relid, DP_STRING_DATA(&link_id),
									   strcmp(dp_link_options[i], "removed_link_id") == 0);
		}

		/*
		 * A queue or a list is useless without its source and its tree.  (The dependency is on the
		 * table, not on the trigger: pg_dump would find a cycle of trigger and queue.)
		 */
		for (i = 0; i < DP_LINK_OPTIONS; i++)
			for (j = 0; j < DP_LINK_OPTIONS; j++)
				if (OidIsValid(sides[i]) && OidIsValid(sides[j]) &&
					dp_depend_has_guard(sides[i], InvalidOid) &&
					!dp_depend_has_guard(sides[j], InvalidOid))
					dp_depend(RelationRelationId, sides[i], RelationRelationId, sides[j],
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
 * Makes a main trigger's table and the other table of a link ID depend on each other.  The storage
 * of a table that the pattern created is a part of it: it is dropped with it, and not without it.
 * An aid (a list of deleted rows) is dropped with the table.  Returns the other table, if it
 * exists.
 */
static Oid
depend_link(Form_pg_trigger form, Oid relid, const char *link_id, bool aid)
{
	Oid trigger = form->oid;
	const DpPattern *pattern = dp_pattern_of_function(form->tgfoid);
	bool beneath = pattern != NULL && pattern->creates_table;
	Oid side;

	side = dp_link_find(link_id, false, relid);
	if (!OidIsValid(side))
		return InvalidOid;
	/* Citus is in between replacing them, and drops the former ones with CASCADE */
	if (dp_is_distributed(relid) != dp_is_distributed(side))
		return InvalidOid;
	if (!beneath)
		dp_depend(TriggerRelationId, trigger, RelationRelationId, side, DEPENDENCY_NORMAL);
	if (dp_depend_has_guard(side, InvalidOid))
		dp_depend(RelationRelationId, side, RelationRelationId, relid,
				  beneath ? DEPENDENCY_INTERNAL
				  : aid   ? DEPENDENCY_AUTO
						  : DEPENDENCY_NORMAL);
	if (get_rel_relkind(side) != RELKIND_PARTITIONED_TABLE)
		depend_triggers(side, link_id, relid);
	else
	{
		ListCell *lc;

		foreach(lc, find_all_inheritors(side, NoLock, NULL))
			depend_triggers(lfirst_oid(lc), link_id, relid);
	}
	return side;
}

/*
 * The other triggers of a declaration depend on the main one, and are dropped with it.  So is its
 * anchor, but not without CASCADE.  Citus does not distribute tables with such dependencies.
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
	bool distributed = dp_is_distributed(relid);

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (!distributed && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);

		if (dp_is_own_trigger(form) &&
			(form->tgnargs == 1 ||
			 (form->tgnargs >= 2 && form->tgnargs <= 3 && !OidIsValid(form->tgparentid))))
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
				dp_depend(TriggerRelationId, other->oid, TriggerRelationId, form->oid,
						  anchor ? DEPENDENCY_NORMAL : DEPENDENCY_AUTO);
		}
	}
	table_close(rel, AccessShareLock);
}

/* The triggers of a side table, or of one of its partitions, depend on the main table. */
static void
depend_triggers(Oid side, const char *link_id, Oid main)
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

		if (form->tgnargs != 3 || OidIsValid(form->tgparentid) || !dp_is_own_trigger(form))
			continue;
		first = first_argument(rel, tuple);
		if ((strcmp(first, "side") == 0 || strcmp(first, "part") == 0 ||
			 strcmp(first, "anchor") == 0) &&
			strcmp(first + strlen(first) + 1, link_id) == 0)
			dp_depend(TriggerRelationId, form->oid, RelationRelationId, main, DEPENDENCY_NORMAL);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/*
 * The relation may be a side table: finds the tables of its declarations.  For one of its
 * partitions, of which there may be many, only its own triggers are recorded.
 */
static void
depend_side(Oid relid)
{
	Relation rel = table_open(TriggerRelationId, AccessShareLock);
	List *links = NIL;
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
		String *link;
		Oid main;

		if (form->tgnargs != 3 || OidIsValid(form->tgparentid) || !dp_is_own_trigger(form))
			continue;
		first = first_argument(rel, tuple);
		if (strcmp(first, "side") != 0 && strcmp(first, "part") != 0)
			continue;
		link = makeString(pstrdup(first + strlen("side") + 1));
		if (list_member(links, link))
			continue;
		links = lappend(links, link);
		main = dp_link_find(strVal(link), true, relid);
		if (!OidIsValid(main) || dp_is_distributed(main) != dp_is_distributed(relid))
			continue;
		if (strcmp(first, "part") == 0)
			depend_triggers(relid, strVal(link), main);
		else
			depend_main(main);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

void
dp_depend(Oid class, Oid object, Oid on_class, Oid on, DependencyType type)
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
 * Other tables of patterns, their triggers, and functions of patterns that depend on a table.
 * Returns their number; removes the dependencies if told to.
 */
static int64
depend_others_on(Oid relid, bool removes)
{
	Relation rel = table_open(DependRelationId, RowExclusiveLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple tuple;
	int64 n = 0;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		bool ours = false;

		if (form->objsubid != 0 || form->refobjsubid != 0)
			continue;
		if (form->classid == TriggerRelationId)
			ours = trigger_elsewhere(form->objid, relid);
		else if (form->classid == ProcedureRelationId)
			/* PostgreSQL's own dependencies of functions are not automatic */
			ours = form->deptype == DEPENDENCY_AUTO;
		else if (form->classid == RelationRelationId)
			ours = get_rel_relkind(form->objid) == RELKIND_RELATION &&
				   !get_rel_relispartition(form->objid) &&
				   dp_depend_has_guard(form->objid, InvalidOid);
		if (!ours)
			continue;
		if (removes)
			CatalogTupleDelete(rel, &tuple->t_self);
		n++;
	}
	systable_endscan(scan);
	table_close(rel, RowExclusiveLock);
	if (n > 0 && removes)
		CommandCounterIncrement();
	return n;
}

/* True if a trigger is one of the extension, on another table. */
static bool
trigger_elsewhere(Oid trigger, Oid relid)
{
	Relation rel = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	bool result;

	ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(trigger));
	scan = systable_beginscan(rel, TriggerOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	result = HeapTupleIsValid(tuple) && dp_is_own_trigger((Form_pg_trigger) GETSTRUCT(tuple)) &&
			 ((Form_pg_trigger) GETSTRUCT(tuple))->tgrelid != relid;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/* _pattern_linked(rel) -> whether other tables of patterns depend on a table */
DP_FUNCTION(dp_pattern_linked);
Datum
dp_pattern_linked(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(depend_others_on(PG_GETARG_OID(0), false) > 0);
}

/* _pattern_unlink(rel): removes such dependencies, until pattern_relink(rel). */
DP_FUNCTION(dp_pattern_unlink);
Datum
dp_pattern_unlink(PG_FUNCTION_ARGS)
{
	dp_require_owner(PG_GETARG_OID(0));
	(void) depend_others_on(PG_GETARG_OID(0), true);
	PG_RETURN_VOID();
}

/*
 * A parallel restore may create the triggers of both tables at the same time: one waits for the
 * other and then sees its trigger.
 */
static void
link_lock(const char *link_id)
{
	LockDatabaseObject(TriggerRelationId,
					   hash_bytes((const unsigned char *) link_id, strlen(link_id)), 0,
					   ExclusiveLock);
}

bool
dp_depend_has_guard(Oid relid, Oid main)
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
				OidIsValid(main) ? dp_link_find(trigger->tgargs[1], true, relid) : InvalidOid;

			result = !OidIsValid(found) || found == main;
		}
	}
	table_close(rel, AccessShareLock);
	return result;
}

/* True if a table with a guard is the queue of a declaration. */
static bool
is_queue(Oid relid)
{
	return get_attnum(relid, "queued_at") != InvalidAttrNumber &&
		   get_attnum(relid, "delta") != InvalidAttrNumber &&
		   get_attnum(relid, "key") != InvalidAttrNumber &&
		   get_attnum(relid, "id") != InvalidAttrNumber;
}

bool
dp_is_own_trigger(Form_pg_trigger form)
{
	return strncmp(NameStr(form->tgname), DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) == 0 &&
		   get_func_namespace(form->tgfoid) == dp_types()->internal;
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
