/*
 * link.c
 *		The two tables of a link ID.
 *
 * A pattern that writes two tables names the other one by a link ID, in the arguments of its
 * triggers, because OIDs and names do not survive a dump, a copy or a renaming.  Dependencies,
 * which are recorded with the triggers, lead from one table to the other; where there are none yet,
 * or they lead elsewhere, all triggers of the database are read.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_trigger.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/link.h"
#include "kit/registry.h"
#include "kit/shard.h"

static void different_owners(Oid relid, Oid other) pg_attribute_noreturn();
static bool has_link(const char *argument, bool main, const char *link_id);
static bool is_linked(Relation triggers, HeapTuple tuple, const char *link_id, bool main, Oid relid,
					  bool foreign);
static void add_depended_on(Relation depend, Oid class, Oid object, Oid relid, List **tables);
static SysScanDesc triggers_of(Relation triggers, Oid relid);
static Oid link_near(const char *link_id, bool main, Oid relid);

/* One option for each table that a pattern may create */
const char *const dp_link_options[DP_LINK_OPTIONS] = { "link_id", "second_link_id",
													   "removed_link_id" };

/*
 * Callers cache the result.  The table must have the same owner as relid, so that users cannot
 * replace it by their own.
 */
Oid
dp_link_find(const char *link_id, bool main, Oid relid)
{
	Oid near = link_near(link_id, main, relid);

	return OidIsValid(near) ? near : dp_link_scan(link_id, main, relid, false, NULL);
}

void
dp_link_require_owner(const char *link_id, bool main, Oid relid)
{
	Oid other = dp_link_scan(link_id, main, relid, true, NULL);

	if (OidIsValid(other))
		different_owners(relid, other);
}

static void
different_owners(Oid relid, Oid other)
{
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("tables \"%s\" and \"%s\" have different owners",
						   dp_relation_name(relid), dp_relation_name(other)),
					errdetail("A pattern maintains one table when the other is written."),
					errhint("Give them the same owner with ALTER TABLE .. OWNER TO.")));
}

Oid
dp_foreign_side(DpDecl *decl)
{
	int i;

	for (i = 0; i < DP_LINK_OPTIONS; i++)
	{
		char *link_id = dp_decl_text(decl, dp_link_options[i]);
		Oid side;

		if (link_id == NULL || OidIsValid(dp_link_find(link_id, false, decl->target)))
			continue;
		/* ignore the copy of a schema that belongs to another role */
		side = dp_link_scan(link_id, false, decl->target, true, NULL);
		if (OidIsValid(side) && get_rel_namespace(side) == get_rel_namespace(decl->target))
			return side;
	}
	return InvalidOid;
}

void
dp_require_own_sides(DpDecl *decl)
{
	Oid side = dp_foreign_side(decl);

	if (OidIsValid(side))
		different_owners(decl->target, side);
}

/* Whether an argument of a main trigger, or of a side trigger, has the link ID. */
static bool
has_link(const char *argument, bool main, const char *link_id)
{
	struct varlena *options;
	DpValue value;
	int i;

	if (!main)
		return strcmp(argument, "side") == 0 && strcmp(argument + strlen("side") + 1, link_id) == 0;
	/* most are of other declarations, and need not be read as documents */
	if (strstr(argument, link_id) == NULL || (options = dp_declared_options(argument)) == NULL)
		return false;
	for (i = 0; i < lengthof(dp_link_options); i++)
	{
		if (dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), dp_link_options[i],
							 strlen(dp_link_options[i]), &value) &&
			value.type == DP_TYPE_STRING && strcmp(DP_STRING_DATA(&value), link_id) == 0)
			return true;
	}
	return false;
}

/* Whether a trigger has the link ID and its table can be the other one of relid. */
static bool
is_linked(Relation triggers, HeapTuple tuple, const char *link_id, bool main, Oid relid,
		  bool foreign)
{
	Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
	Datum args;
	bool isnull;

	if (form->tgnargs != (main ? 1 : 3) || OidIsValid(form->tgparentid) ||
		strncmp(NameStr(form->tgname), DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0)
		return false;
	args = heap_getattr(tuple, Anum_pg_trigger_tgargs, RelationGetDescr(triggers), &isnull);
	args = PointerGetDatum(DatumGetByteaPP(args));
	return has_link(VARDATA_ANY(DatumGetPointer(args)), main, link_id) &&
		   (dp_relation_owner(form->tgrelid, true) != dp_relation_owner(relid, true)) == foreign &&
		   dp_own_function(form->tgfoid) && dp_shard_pair(relid, form->tgrelid);
}

Oid
dp_link_scan(const char *link_id, bool main, Oid relid, bool foreign, List **all)
{
	Relation rel = table_open(TriggerRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	Oid schema = get_rel_namespace(relid);
	HeapTuple tuple;
	Oid result = InvalidOid;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid found = ((Form_pg_trigger) GETSTRUCT(tuple))->tgrelid;

		if (!is_linked(rel, tuple, link_id, main, relid, foreign))
			continue;
		if (!OidIsValid(result) || get_rel_namespace(found) == schema)
			result = found;
		if (all != NULL)
			*all = list_append_unique_oid(*all, found);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/* Adds the other tables on which an object depends. */
static void
add_depended_on(Relation depend, Oid class, Oid object, Oid relid, List **tables)
{
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple tuple;

	ScanKeyInit(&keys[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(class));
	ScanKeyInit(&keys[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(object));
	scan = systable_beginscan(depend, DependDependerIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->refclassid == RelationRelationId && form->refobjid != relid)
			*tables = list_append_unique_oid(*tables, form->refobjid);
	}
	systable_endscan(scan);
}

/* Starts to read the triggers of a table. */
static SysScanDesc
triggers_of(Relation triggers, Oid relid)
{
	ScanKeyData key;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	return systable_beginscan(triggers, TriggerRelidNameIndexId, true, NULL, 1, &key);
}

/*
 * The table in the schema of relid that dp_link_scan() would find, if the dependencies of relid and
 * of its triggers lead to it, else InvalidOid.
 */
static Oid
link_near(const char *link_id, bool main, Oid relid)
{
	Relation depend = table_open(DependRelationId, AccessShareLock);
	Relation rel = table_open(TriggerRelationId, AccessShareLock);
	Oid schema = get_rel_namespace(relid);
	List *tables = NIL;
	SysScanDesc scan;
	HeapTuple tuple;
	Oid result = InvalidOid;
	ListCell *lc;

	add_depended_on(depend, RelationRelationId, relid, relid, &tables);
	scan = triggers_of(rel, relid);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		add_depended_on(depend, TriggerRelationId, ((Form_pg_trigger) GETSTRUCT(tuple))->oid, relid,
						&tables);
	systable_endscan(scan);
	foreach(lc, tables)
	{
		if (OidIsValid(result) || get_rel_namespace(lfirst_oid(lc)) != schema)
			continue;
		scan = triggers_of(rel, lfirst_oid(lc));
		while (!OidIsValid(result) && HeapTupleIsValid(tuple = systable_getnext(scan)))
		{
			if (is_linked(rel, tuple, link_id, main, relid, false))
				result = lfirst_oid(lc);
		}
		systable_endscan(scan);
	}
	list_free(tables);
	table_close(rel, AccessShareLock);
	table_close(depend, AccessShareLock);
	return result;
}
