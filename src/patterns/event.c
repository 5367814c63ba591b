/*
 * event.c
 *		Dependencies between the two tables of a pattern.
 *
 * A table that a pattern keeps beside the user's table depends on it, and the
 * pattern's main trigger depends on the table that it writes to: DROP TABLE of
 * either is refused without CASCADE, and with CASCADE leaves nothing behind.
 * pg_dump does not carry such dependencies, so they are recorded whenever a
 * trigger of ours is created, be it by _enable or by a restore.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_trigger.h"
#include "commands/event_trigger.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "bson/reader.h"
#include "patterns/declaration.h"

static void depend_main(Oid relid);
static void depend_side(Oid relid);
static void depend(Oid class, Oid object, Oid on);
static bool has_guard(Oid relid);

/*
 * _pattern_created(): event trigger at the end of CREATE TRIGGER.
 */
DP_FUNCTION(dp_pattern_created);
Datum
dp_pattern_created(PG_FUNCTION_ARGS)
{
	EventTriggerData *data = (EventTriggerData *) fcinfo->context;
	CreateTrigStmt *stmt;
	Oid			relid;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo) || !IsA(data->parsetree, CreateTrigStmt))
		return (Datum) 0;
	stmt = (CreateTrigStmt *) data->parsetree;
	if (strncmp(stmt->trigname, DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0)
		return (Datum) 0;
	relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	if (!OidIsValid(relid))
		return (Datum) 0;
	CommandCounterIncrement();
	depend_main(relid);
	depend_side(relid);
	return (Datum) 0;
}

/*
 * The relation may have main triggers: find what their declarations name.
 */
static void
depend_main(Oid relid)
{
	Relation	rel = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
		Datum		args;
		bool		isnull;
		const char *declared;
		struct varlena *options;
		DpValue		pair;
		Oid			side;

		if (form->tgnargs != 1 || OidIsValid(form->tgparentid) ||
			strncmp(NameStr(form->tgname), DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0)
			continue;
		args = heap_getattr(tuple, Anum_pg_trigger_tgargs, RelationGetDescr(rel), &isnull);
		declared = VARDATA_ANY(DatumGetByteaPP(args));
		options = dp_declared_options(declared);
		if (options == NULL ||
			!dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), "pair", 4, &pair) ||
			pair.type != DP_TYPE_STRING)
			continue;
		side = dp_pair_side(DP_STRING_DATA(&pair), relid);
		if (!OidIsValid(side))
			continue;
		depend(TriggerRelationId, form->oid, side);
		if (has_guard(side))
			depend(RelationRelationId, side, relid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/*
 * The relation may be the side of declarations: then their tables are as above,
 * and the side's own triggers are of no use without the table.
 */
static void
depend_side(Oid relid)
{
	Relation	rel = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
		Datum		args;
		bool		isnull;
		const char *first;
		Oid			main;

		if (form->tgnargs != 3 || OidIsValid(form->tgparentid) ||
			strncmp(NameStr(form->tgname), DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0)
			continue;
		args = heap_getattr(tuple, Anum_pg_trigger_tgargs, RelationGetDescr(rel), &isnull);
		first = VARDATA_ANY(DatumGetByteaPP(args));
		if (strcmp(first, "side") != 0)
			continue;
		main = dp_pair_main(first + strlen("side") + 1, relid);
		if (!OidIsValid(main))
			continue;
		depend_main(main);
		depend(TriggerRelationId, form->oid, main);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/*
 * Record that an object depends on a table, unless that is known.
 */
static void
depend(Oid class, Oid object, Oid on)
{
	Relation	rel;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		known = false;
	ObjectAddress depender;
	ObjectAddress referenced;

	rel = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(class));
	ScanKeyInit(&keys[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(object));
	scan = systable_beginscan(rel, DependDependerIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->refclassid == RelationRelationId && form->refobjid == on && form->refobjsubid == 0)
			known = true;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	if (known)
		return;
	ObjectAddressSet(depender, class, object);
	ObjectAddressSet(referenced, RelationRelationId, on);
	recordDependencyOn(&depender, &referenced, DEPENDENCY_NORMAL);
}

/* Whether the table belongs to a pattern: its writes are guarded. */
static bool
has_guard(Oid relid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	bool		result = false;
	int			i;

	for (i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const Trigger *trigger = &rel->trigdesc->triggers[i];
		char	   *function = get_func_name(trigger->tgfoid);

		if (function != NULL && trigger->tgnargs == 3 && strcmp(function, "pattern_guard_trigger") == 0)
			result = true;
	}
	table_close(rel, AccessShareLock);
	return result;
}
