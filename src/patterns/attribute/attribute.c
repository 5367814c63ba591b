/*
 * attribute.c
 *		The attribute pattern: its trigger, and the views <table>_wide.
 *
 * BEFORE INSERT or UPDATE, for each row: packs the declared fields.  An unchanged
 * document is not read, one without such fields is left unchanged.
 *
 * With the layout "wide", for tables from which the pattern is removed, it
 * converts members back to fields.
 *
 * The view shows the wide layout and accepts it in writes.  These keep the order
 * of the members, and members that cannot become fields.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/options.h"
#include "kit/rows/write.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "kit/view.h"
#include "kit/trigger.h"
#include "patterns/attribute/attribute.h"

#define PATTERN "attribute"

static struct varlena *read_options(DpDecl *decl);
static HeapTuple attribute_before(DpAttribute *a, TriggerData *trigdata);
static DpAttribute *attribute_of(DpDecl *decl);
static void attribute_check_unique(DpAttribute *a, struct varlena *doc, const DpKey *key);

/*
 * attribute_trigger(): the trigger of the pattern.
 */
DP_FUNCTION(dp_attribute_trigger);
Datum
dp_attribute_trigger(PG_FUNCTION_ARGS)
{
	DpDecl *decl = dp_trigger_enter(fcinfo, PATTERN, DP_BEFORE_ROW(DP_INSERT | DP_UPDATE));

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	return PointerGetDatum(attribute_before(attribute_of(decl), (TriggerData *) fcinfo->context));
}

/* The row to be written, packed. */
static HeapTuple
attribute_before(DpAttribute *a, TriggerData *trigdata)
{
	HeapTuple tuple = dp_trigger_row(trigdata);
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *doc;
	struct varlena *packed;

	if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event) && dp_trigger_same_document(trigdata, a->decl))
		return tuple;
	doc = dp_tuple_document(a->decl, tuple, desc);
	if (doc == NULL)
		return tuple;
	packed = dp_attribute_convert(a->form, doc);
	if (a->form->is_unique)
	{
		DpKey key;

		dp_key_of_tuple(a->decl, tuple, desc, &key);
		attribute_check_unique(a, packed != NULL ? packed : doc, &key);
	}
	return packed == NULL ? tuple : dp_tuple_with_document(a->decl, tuple, desc, packed);
}

/* Raises UNIQUE_VIOLATION if keys are unique and a document has one twice. */
static void
attribute_check_unique(DpAttribute *a, struct varlena *doc, const DpKey *key)
{
	char *text;

	if (!a->form->is_unique || !dp_attribute_twice(a->form, doc, &text))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("a document of table \"%s\" has an attribute twice",
					dp_relation_name(a->decl->target)),
			 errdetail("The document with the key %s has %s twice in \"%s\".",
					   dp_key_to_text(a->decl, key), text, dp_decl_text(a->decl, "into_field"))));
}

/* Compiles what a declaration says. */
static DpAttribute *
attribute_of(DpDecl *decl)
{
	DpAttribute *a = decl->state;
	struct varlena *options;
	MemoryContext old;
	DpValue value;

	if (likely(a != NULL))
		return a;
	options = read_options(decl);
	old = MemoryContextSwitchTo(decl->context);
	a = palloc0(sizeof(DpAttribute));
	a->decl = decl;
	options = dp_document_to_varlena(DP_DOC_DATA(options), DP_DOC_SIZE(options));
	value = dp_value_of_document(options);
	a->form = dp_attribute_compile(&value);
	MemoryContextSwitchTo(old);
	decl->state = a;
	return a;
}

/*
 * The options of a declaration, together with the names of fields that other
 * patterns keep in the same documents, as _attribute_full_options() says them.
 */
static struct varlena *
read_options(DpDecl *decl)
{
	StringInfoData sql;
	Oid types[3] = { REGCLASSOID, TEXTOID, dp_types()->bson };
	Datum values[3];
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext old;
	struct varlena *result;
	bool isnull;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	appendStringInfoString(&sql, "docpatterns._attribute_full_options($1, $2, $3)");
	values[0] = ObjectIdGetDatum(decl->target);
	values[1] = CStringGetTextDatum(decl->name);
	values[2] = PointerGetDatum(decl->options);
	SPI_connect();
	if (SPI_execute_with_args(sql.data, 3, types, values, NULL, true, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "_attribute_full_options() failed");
	result = (struct varlena *) DatumGetPointer(SPI_getbinval(SPI_tuptable->vals[0],
															  SPI_tuptable->tupdesc, 1, &isnull));
	if (isnull)
		elog(ERROR, "_attribute_full_options() returned null");
	result = PG_DETOAST_DATUM_PACKED(PointerGetDatum(result));
	old = MemoryContextSwitchTo(caller);
	result = dp_document_to_varlena(DP_DOC_DATA(result), DP_DOC_SIZE(result));
	MemoryContextSwitchTo(old);
	SPI_finish();
	return result;
}

/*
 * pattern_build: packs one row.
 */
static bool
attribute_repair_row(DpDecl *decl, const DpKey *key)
{
	DpAttribute *a = attribute_of(decl);
	DpWriter *w;
	bool written = false;

	if (a->lookup == NULL)
		a->lookup = dp_lookup_primary(decl->target, decl->context);
	w = dp_writer_open(decl->target, decl->doc_column, 0, decl->name);
	while (dp_writer_find(w, a->lookup, key->values))
	{
		struct varlena *doc;
		struct varlena *packed;

		CHECK_FOR_INTERRUPTS();
		if (dp_writer_lock(w, LockTupleNoKeyExclusive) == DP_LOCK_DELETED)
			continue;
		doc = dp_writer_document(w);
		packed = doc == NULL ? NULL : dp_attribute_convert(a->form, doc);
		if (packed != NULL)
		{
			attribute_check_unique(a, packed, key);
			written = dp_writer_update(w, packed) == DP_WRITE_DONE;
		}
		break;
	}
	dp_writer_close(w);
	return written;
}

/* dp_attribute_compile() checks their combinations */
static const DpOption options[] = {
	{ "into_field", DP_OPTION_PATH, DP_REQUIRED | DP_ALTERABLE | DP_KEPT | DP_GUARDED },
	{ "pattern", DP_OPTION_TEXT, DP_ONE_OF | DP_ALTERABLE },
	{ "prefix", DP_OPTION_TEXT, DP_ONE_OF | DP_ALTERABLE },
	{ "paths", DP_OPTION_PATHS, DP_ONE_OF | DP_ALTERABLE | DP_KEPT },
	{ "name_field", DP_OPTION_TEXT, DP_ALTERABLE },
	{ "value_field", DP_OPTION_TEXT, DP_REQUIRED | DP_ALTERABLE },
	{ "qualifiers", DP_OPTION_DOCUMENT, DP_ALTERABLE },
	{ "qualifier_field", DP_OPTION_TEXT, DP_ALTERABLE },
	{ "rename", DP_OPTION_DOCUMENT, DP_ALTERABLE },
	{ "is_unique", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE },
	{ "shape", DP_OPTION_WORD, DP_ALTERABLE, DP_WORDS("packed", "wide") },
	{ NULL }
};

/* Views <table>_wide ------------------------------------------------------ */

/*
 * The document with the fields of all declarations, the last one's first: it saw what the others
 * had left.
 */
static struct varlena *
wide_show(char **args, List *decls, struct varlena *stored, const DpKey *key, bool latest)
{
	struct varlena *result = stored;
	int i;

	for (i = list_length(decls) - 1; i >= 0; i--)
	{
		DpDecl *decl = list_nth(decls, i);
		struct varlena *wide;

		if (strcmp(decl->pattern, PATTERN) != 0)
			continue;
		wide = dp_attribute_unpack(attribute_of(decl)->form, result);
		if (wide != NULL)
			result = wide;
	}
	return result;
}

/*
 * Returns the packed form of a new wide document, with the members in their stored order. If the
 * array of members that cannot become fields was changed, uses the new one.
 */
static struct varlena *
wide_store(char **args, List *decls, struct varlena *stored, struct varlena *old_shown,
		   struct varlena *new_shown, DpMark *marks, int *nmarks)
{
	struct varlena *result = new_shown;
	ListCell *lc;

	if (stored == NULL || old_shown == NULL || new_shown == NULL)
		return new_shown; /* the table's trigger packs it */
	foreach(lc, decls)
	{
		DpDecl *decl = lfirst(lc);
		DpAttributeForm *form;
		DpValue array;
		DpValue before;
		DpValue after;
		bool had;
		bool has;
		struct varlena *packed;

		if (strcmp(decl->pattern, PATTERN) != 0)
			continue;
		form = attribute_of(decl)->form;
		if (form->wide)
			continue;
		had = dp_path_find(DP_DOC_DATA(old_shown), DP_DOC_SIZE(old_shown), form->into, &before);
		has = dp_path_find(DP_DOC_DATA(new_shown), DP_DOC_SIZE(new_shown), form->into, &after);
		if (had != has || (has && !dp_value_identical(&before, &after)) ||
			!dp_attribute_array(form, stored, &array))
			packed = dp_attribute_pack(form, result, NULL);
		else
			packed = dp_attribute_pack(form, result, &array);
		if (packed != NULL)
			result = packed;
	}
	return result;
}

/*
 * Whether the pattern shows the document otherwise than it is stored: what INSERT returns needs no
 * second look.
 */
static bool
wide_is_changed(char **args, List *decls, struct varlena *stored)
{
	ListCell *lc;

	foreach(lc, decls)
	{
		DpDecl *decl = lfirst(lc);
		DpValue array;

		if (strcmp(decl->pattern, PATTERN) == 0 &&
			dp_attribute_array(attribute_of(decl)->form, stored, &array))
			return true;
	}
	return false;
}

DP_FUNCTION(dp_attribute_wide_trigger);

static const DpViewMethods wide_view = { .label = "_wide",
										 .is_changed = wide_is_changed,
										 .show = wide_show,
										 .store = wide_store,
										 .trigger = dp_attribute_wide_trigger };

DP_DEFINE_PATTERN(attribute) = { .name = PATTERN,
								 .views = "wide",
								 .options = options,
								 .repair_row = attribute_repair_row,
								 .view = &wide_view };

/*
 * attribute_wide_trigger(): INSTEAD OF INSERT, UPDATE or DELETE on the view.
 */
Datum
dp_attribute_wide_trigger(PG_FUNCTION_ARGS)
{
	(void) dp_trigger_require(fcinfo, PATTERN, DP_INSTEAD_OF(DP_WRITE), 0);
	return dp_view_trigger(fcinfo, &wide_view);
}

/*
 * attribute_wide(doc bson, rel regclass) -> bson: the document as the view shows it.
 */
DP_FUNCTION(dp_attribute_wide);
Datum
dp_attribute_wide(PG_FUNCTION_ARGS)
{
	List *decls = dp_decls(PG_GETARG_OID(1));

	if (decls == NIL)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_POINTER(wide_show(NULL, decls, PG_GETARG_VARLENA_PP(0), NULL, false));
}
