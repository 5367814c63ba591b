/*
 * anchor.c
 *		The columns and triggers of a declaration, tracked by the system catalogs.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/edit.h"
#include "bson/path.h"
#include "bson/reader.h"
#include "kit/anchor.h"
#include "kit/declaration.h"
#include "kit/link.h"
#include "kit/trigger.h"

#define ANCHOR "anchor"
#define FUNCTION "pattern_anchor_trigger"

/* The option for the document column of the other table of a link ID */
#define OTHER_COLUMN "source_doc_column"

static bool is_anchor_function(Oid function);
static List *names_of(struct varlena *document, const char *field);
static const char *text_option(struct varlena *options, const char *option);
static struct varlena *with_column(struct varlena *options, const char *option, const char *column);
static Datum names_array(List *names);
static char *names_text(List *names);

/* pattern_anchor_trigger(): does nothing; the trigger exists for its columns. */
DP_FUNCTION(dp_pattern_anchor_trigger);
Datum
dp_pattern_anchor_trigger(PG_FUNCTION_ARGS)
{
	(void) dp_trigger_require(fcinfo, "<pattern>_enable", DP_BEFORE_STATEMENT(DP_UPDATE), 3);
	return PointerGetDatum(NULL);
}

List *
dp_anchors(Oid relid)
{
	Relation rel = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	List *anchors = NIL;

	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, TriggerRelidNameIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
		bool isnull;
		const char *argument;
		struct varlena *more;
		bytea *arguments;
		DpAnchor *anchor;

		if (form->tgnargs != 3 || OidIsValid(form->tgparentid) || !is_anchor_function(form->tgfoid))
			continue;
		arguments = DatumGetByteaPP(heap_getattr(tuple, Anum_pg_trigger_tgargs,
												 RelationGetDescr(rel), &isnull));
		argument = VARDATA_ANY(arguments);
		if (strcmp(argument, ANCHOR) != 0)
			continue;
		anchor = palloc0(sizeof(DpAnchor));
		anchor->trigger = pstrdup(NameStr(form->tgname));
		argument += strlen(argument) + 1;
		anchor->label = pstrdup(argument);
		more = dp_declared_options(argument + strlen(argument) + 1);
		if (form->tgattr.dim1 > 0)
			anchor->column = get_attname(relid, form->tgattr.values[0], true);
		anchor->keys = names_of(more, "keys");
		anchor->triggers = names_of(more, "triggers");
		anchors = lappend(anchors, anchor);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return anchors;
}

bool
dp_trigger_is_anchor(const Trigger *trigger)
{
	return trigger->tgnargs == 3 && strcmp(trigger->tgargs[0], ANCHOR) == 0 &&
		   is_anchor_function(trigger->tgfoid);
}

char *
dp_anchor_column(Oid relid, const char *label)
{
	ListCell *lc;

	foreach(lc, dp_anchors(relid))
	{
		DpAnchor *anchor = lfirst(lc);

		if (strcmp(anchor->label, label) == 0)
			return anchor->column;
	}
	return NULL;
}

struct varlena *
dp_anchor_options(struct varlena *options, Oid relid, List **others)
{
	const char *name = text_option(options, "name");
	char *own = name != NULL ? dp_anchor_column(relid, name) : NULL;
	char *other = NULL;
	int i;

	if (own != NULL)
		options = with_column(options, "doc_column", own);
	if (text_option(options, OTHER_COLUMN) == NULL)
		return options;

	/* only users' tables have anchors */
	for (i = 0; i < DP_LINK_OPTIONS && other == NULL; i++)
	{
		const char *link_id = text_option(options, dp_link_options[i]);
		Oid side = link_id != NULL ? dp_link_find(link_id, false, relid) : InvalidOid;

		if (!OidIsValid(side))
			continue;
		other = dp_anchor_column(side, link_id);
		if (others != NULL)
			*others = list_append_unique_oid(*others, side);
	}
	return other != NULL ? with_column(options, OTHER_COLUMN, other) : options;
}

void
dp_anchor_require_key(Relation rel)
{
	List *anchors;
	Relation index;
	ListCell *lc;

	anchors = dp_anchors(RelationGetRelid(rel));
	if (anchors == NIL)
		return;
	/*
	 * last, because catalog access may process an invalidation after which REINDEX CONCURRENTLY has
	 * replaced the index
	 */
	list_free(RelationGetIndexList(rel));
	if (!OidIsValid(rel->rd_pkindex))
		return;
	index = RelationIdGetRelation(rel->rd_pkindex);
	foreach(lc, anchors)
	{
		DpAnchor *anchor = lfirst(lc);
		bool same = list_length(anchor->keys) == IndexRelationGetNumberOfKeyAttributes(index);
		int i;

		for (i = 0; same && i < list_length(anchor->keys); i++)
			same = get_attnum(RelationGetRelid(rel), list_nth(anchor->keys, i)) ==
				   index->rd_index->indkey.values[i];
		if (same || anchor->keys == NIL)
			continue;
		ereport(
			ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("primary key of table \"%s\" has changed since pattern \"%s\" was declared",
					dp_relation_name(RelationGetRelid(rel)), anchor->label),
			 errdetail("It was on (%s).", names_text(anchor->keys)),
			 errhint(
				 "Restore the primary key, or call pattern_disable() before creating another one.")));
	}
	RelationClose(index);
}

void
dp_anchor_require_columns(Relation rel, bool cascade)
{
	Oid relid = RelationGetRelid(rel);
	List *anchors = dp_anchors(relid);
	TriggerDesc *triggers = dp_triggers(rel);
	const char *name = NULL;
	ListCell *lc;
	int i;

	foreach(lc, anchors)
	{
		DpAnchor *anchor = lfirst(lc);
		ListCell *k;

		foreach(k, anchor->keys)
		{
			if (get_attnum(relid, lfirst(k)) == InvalidAttrNumber)
				name = anchor->label;
		}
	}
	/* CASCADE drops the anchor of a document column too */
	for (i = 0; cascade && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		char *function = get_func_name(trigger->tgfoid);
		struct varlena *options = NULL;
		const char *label = NULL;
		bool found = false;

		if (get_func_namespace(trigger->tgfoid) != dp_types()->internal ||
			strcmp(function, "pattern_guard_trigger") == 0)
			continue;
		if (trigger->tgnargs == 1)
			options = dp_declared_options(trigger->tgargs[0]);
		if (options != NULL)
			label = text_option(options, "name");
		else if (trigger->tgnargs == 3 && strcmp(trigger->tgargs[0], "side") == 0)
			label = trigger->tgargs[1];
		foreach(lc, anchors)
			found |= label != NULL && strcmp(((DpAnchor *) lfirst(lc))->label, label) == 0;
		if (label != NULL && !found)
			name = options != NULL ? label : trigger->tgargs[2];
	}
	if (name != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot drop a column of table \"%s\" because pattern \"%s\" depends on it",
						dp_relation_name(relid), name),
				 errhint("Call pattern_disable() first.")));
}

/*
 * _pattern_require_key(rel)
 */
DP_FUNCTION(dp_pattern_require_key);
Datum
dp_pattern_require_key(PG_FUNCTION_ARGS)
{
	Relation rel = try_table_open(PG_GETARG_OID(0), AccessShareLock);

	if (rel == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
						errmsg("relation with OID %u does not exist", PG_GETARG_OID(0))));
	dp_anchor_require_key(rel);
	table_close(rel, NoLock);
	PG_RETURN_VOID();
}

/*
 * _pattern_anchors(rel) -> (trigger_name, label, doc_column, keys, triggers)
 */
DP_FUNCTION(dp_pattern_anchors);
Datum
dp_pattern_anchors(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell *lc;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	foreach(lc, dp_anchors(PG_GETARG_OID(0)))
	{
		DpAnchor *anchor = lfirst(lc);
		Datum values[5];
		bool nulls[5] = { false };

		values[0] = CStringGetTextDatum(anchor->trigger);
		values[1] = CStringGetTextDatum(anchor->label);
		nulls[2] = anchor->column == NULL;
		values[2] = anchor->column != NULL ? CStringGetTextDatum(anchor->column) : (Datum) 0;
		values[3] = names_array(anchor->keys);
		values[4] = names_array(anchor->triggers);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* True for the trigger function of anchors. */
static bool
is_anchor_function(Oid function)
{
	return dp_is_internal(function, FUNCTION);
}

/* The strings of an array in a document, which may be NULL. */
static List *
names_of(struct varlena *document, const char *field)
{
	List *names = NIL;
	DpValue value;
	DpIter iter = { NULL, NULL };

	if (document == NULL ||
		!dp_document_find(DP_DOC_DATA(document), DP_DOC_SIZE(document), field, strlen(field),
						  &value) ||
		value.type != DP_TYPE_ARRAY)
		return NIL;
	dp_iter_init_value(&iter, &value);
	while (dp_iter_next_value(&iter, &value))
	{
		if (value.type == DP_TYPE_STRING)
			names = lappend(names, pnstrdup(DP_STRING_DATA(&value), DP_STRING_LEN(&value)));
	}
	return names;
}

/* The value of a text option, or NULL. */
static const char *
text_option(struct varlena *options, const char *option)
{
	DpValue value;

	return dp_option_value(options, option, DP_TYPE_STRING, &value) ? DP_STRING_DATA(&value) : NULL;
}

/* The options with an existing one changed. */
static struct varlena *
with_column(struct varlena *options, const char *option, const char *column)
{
	const char *old = text_option(options, option);
	DpValue value;

	if (old == NULL || strcmp(old, column) == 0)
		return options;
	value = dp_value_of_varlena(dp_datum_to_value(CStringGetTextDatum(column), TEXTOID));
	return dp_document_set(DP_DOC_DATA(options), DP_DOC_SIZE(options),
						   dp_path_parse(option, strlen(option)), &value);
}

/* Names as an array of texts. */
static Datum
names_array(List *names)
{
	Datum *elements = palloc(sizeof(Datum) * (list_length(names) + 1));
	ListCell *lc;

	foreach(lc, names)
		elements[foreach_current_index(lc)] = CStringGetTextDatum(lfirst(lc));
	return PointerGetDatum(construct_array(elements, list_length(names), TEXTOID, -1, false,
										   TYPALIGN_INT));
}

/* Names separated by commas. */
static char *
names_text(List *names)
{
	StringInfoData buf;
	ListCell *lc;

	initStringInfo(&buf);
	foreach(lc, names)
		appendStringInfo(&buf, "%s%s", buf.len > 0 ? ", " : "", quote_identifier(lfirst(lc)));
	return buf.data;
}
