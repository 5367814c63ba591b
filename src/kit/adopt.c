/*
 * adopt.c
 *		Values that documents contained before the declaration of a pattern: see adopt.h.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "common/string.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/value.h"
#include "parser/parse_func.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/ruleutils.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/text.h"
#include "kit/adopt.h"
#include "kit/derive/derive.h"
#include "kit/registry.h"
#include "kit/rows/by_statement.h"
#include "kit/shard.h"
#include "kit/sql/run.h"

/*
 * A search that continues where the last one ended, because two arrays usually have the same order.
 */
typedef struct Finder
{
	DpIter iter;
	const DpValue *array;
	bool wrapped;
} Finder;

/*
 * The declaration whose row is being adopted, without its guard; by name, because the DpDecl may be
 * reloaded.
 */
static Oid adopting_target = InvalidOid;
static const char *adopting_name;

static bool is_adopting(const DpDecl *decl);
static bool path_equal(const DpPath *a, const DpPath *b);
static bool path_is_mark(const DpDecl *decl, const DpPath *path);
static bool value_matters(const DpValue *value);
static bool value_within(const DpValue *was, const DpValue *is);
static bool element_within(const DpValue *element, Finder *finder);
static bool repair_row(DpDecl *decl, DpDerivation *d, const DpKey *key);
static void refuse_loss(DpDecl *decl, const DpKey *key, const DpPath *lost) pg_attribute_noreturn();
static const DpPath *
repair_lost(DpDecl *decl, DpDerivation *d, const DpKey *key, struct varlena *was, bool *written);
static void move_held(DpDecl *decl, const DpKey *key);

static struct varlena *read_document(DpDecl *decl, const DpKey *key, MemoryContext context);
static int rewrite_triggers(Relation triggers, Oid parent, Oid trigger, Datum args);

bool
dp_held(const DpDecl *decl, const DpPath *path)
{
	ListCell *lc;

	if (likely(!dp_holding(decl)) || path == NULL)
		return false;
	foreach(lc, decl->held)
	{
		if (path_equal(lfirst(lc), path))
			return true;
	}
	return false;
}

bool
dp_holding(const DpDecl *decl)
{
	return decl->held != NIL && !is_adopting(decl);
}

bool
dp_had_field(const DpDecl *decl, const DpPath *path)
{
	static const char *const options[] = { "held", "own" };
	DpValue paths;
	DpValue one;
	DpIter iter;
	int i;

	for (i = 0; i < lengthof(options); i++)
	{
		if (!dp_document_find(DP_DOC_DATA(decl->options), DP_DOC_SIZE(decl->options), options[i],
							  strlen(options[i]), &paths) ||
			paths.type != DP_TYPE_ARRAY)
			continue;
		dp_iter_init_value(&iter, &paths);
		while (dp_iter_next_value(&iter, &one))
		{
			if (one.type == DP_TYPE_STRING &&
				path_equal(dp_path_parse(DP_STRING_DATA(&one), DP_STRING_LEN(&one)), path))
				return true;
		}
	}
	return false;
}

static bool
is_adopting(const DpDecl *decl)
{
	return decl->target == adopting_target && strcmp(decl->name, adopting_name) == 0;
}

static bool
path_equal(const DpPath *a, const DpPath *b)
{
	int i;

	for (i = 0; i < a->nsteps && i < b->nsteps; i++)
	{
		if (a->steps[i].namelen != b->steps[i].namelen ||
			memcmp(a->steps[i].name, b->steps[i].name, a->steps[i].namelen) != 0)
			return false;
	}
	return a->nsteps == b->nsteps;
}

/* True if a value is worth keeping. */
static bool
value_matters(const DpValue *value)
{
	switch (value->type)
	{
		case DP_TYPE_NULL:
		case DP_TYPE_UNDEFINED:
			return false;
		case DP_TYPE_BOOL:
			return value->data[0] != 0;
		case DP_TYPE_STRING:
			return DP_STRING_LEN(value) > 0;
		case DP_TYPE_DOCUMENT:
		case DP_TYPE_ARRAY:
			return value->len > DP_DOCUMENT_MIN_SIZE;
		default:
			if (dp_type_is_number(value->type))
			{
				static const uint8 zero[4];
				DpValue none = { zero, 4, DP_TYPE_INT32 };

				return dp_value_compare(value, &none) != 0;
			}
			return true;
	}
}

/* True if an array has an element that contains this one; starts where the last one was found. */
static bool
element_within(const DpValue *element, Finder *finder)
{
	const uint8 *from = finder->iter.next;
	DpValue candidate;

	finder->wrapped = false;
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (finder->wrapped && finder->iter.next >= from)
			return false;
		if (dp_iter_next_value(&finder->iter, &candidate))
		{
			if (value_within(element, &candidate))
				return true;
		}
		else if (finder->wrapped)
			return false;
		else
		{
			dp_iter_init_value(&finder->iter, finder->array);
			finder->wrapped = true;
		}
	}
}

/* True if a value equals another, or is part of it. */
static bool
value_within(const DpValue *was, const DpValue *is)
{
	DpIter iter;
	DpElement field;

	check_stack_depth();
	if (dp_value_compare(was, is) == 0)
		return true;
	if (is->type == DP_TYPE_DOCUMENT && !dp_type_is_container(was->type))
	{
		/* an id that was replaced by a copy of the row it names */
		dp_iter_init_value(&iter, is);
		while (dp_iter_next(&iter, &field))
		{
			if (dp_value_compare(was, &field.value) == 0)
				return true;
		}
		return false;
	}
	if (was->type != is->type || !dp_type_is_container(was->type))
		return false;
	dp_iter_init_value(&iter, was);
	if (was->type == DP_TYPE_ARRAY)
	{
		Finder finder = { .array = is };

		dp_iter_init_value(&finder.iter, is);
		while (dp_iter_next(&iter, &field))
		{
			if (!element_within(&field.value, &finder))
				return false;
		}
		return true;
	}
	while (dp_iter_next(&iter, &field))
	{
		DpValue other;

		CHECK_FOR_INTERRUPTS();
		if (value_matters(&field.value) &&
			!(dp_document_find(is->data, is->len, field.name, field.namelen, &other) &&
			  value_within(&field.value, &other)))
			return false;
	}
	return true;
}

bool
dp_value_lost(const DpValue *was, const DpValue *is, List *elsewhere)
{
	ListCell *lc;

	if (!value_matters(was) || (is != NULL && value_within(was, is)))
		return false;
	foreach(lc, elsewhere)
	{
		if (value_within(was, lfirst(lc)))
			return false;
	}
	if (was->type == DP_TYPE_ARRAY)
	{
		int n = list_length(elsewhere) + 1;
		Finder *finders = palloc0(sizeof(Finder) * n);
		DpValue element;
		DpIter iter;
		int nfinders = 0;

		/* its elements may be found in several documents */
		if (is != NULL && is->type == DP_TYPE_ARRAY)
			finders[nfinders++].array = is;
		foreach(lc, elsewhere)
		{
			if (((DpValue *) lfirst(lc))->type == DP_TYPE_ARRAY)
				finders[nfinders++].array = lfirst(lc);
		}
		for (n = 0; n < nfinders; n++)
			dp_iter_init_value(&finders[n].iter, finders[n].array);
		dp_iter_init_value(&iter, was);
		while (dp_iter_next_value(&iter, &element))
		{
			for (n = 0; n < nfinders && !element_within(&element, &finders[n]); n++)
				;
			if (n < nfinders)
				continue;
			foreach(lc, elsewhere)
			{
				if (value_within(&element, lfirst(lc)))
					break;
			}
			if (lc == NULL)
				return true;
		}
		return false;
	}
	return true;
}

const DpPath *
dp_held_lost(const DpDecl *decl, struct varlena *was, struct varlena *is, List *elsewhere)
{
	ListCell *lc;

	foreach(lc, is_adopting(decl) ? NIL : decl->held)
	{
		const DpPath *path = lfirst(lc);
		DpValue old;
		DpValue new;

		if (dp_path_find(DP_DOC_DATA(was), DP_DOC_SIZE(was), path, &old) &&
			!(path_is_mark(decl, path) && dp_value_is_mark(&old)) &&
			dp_value_lost(&old,
						  is != NULL && dp_path_find(DP_DOC_DATA(is), DP_DOC_SIZE(is), path, &new)
							  ? &new
							  : NULL,
						  elsewhere))
			return path;
	}
	return NULL;
}

bool
dp_value_is_mark(const DpValue *value)
{
	static const char *const words[] = { "true", "false", "yes", "no" };
	int i;

	for (i = 0; value->type == DP_TYPE_STRING && i < lengthof(words); i++)
	{
		if (pg_strcasecmp(DP_STRING_DATA(value), words[i]) == 0)
			return true;
	}
	return value->type == DP_TYPE_BOOL;
}

/* True if a field of a declaration is a flag, whose values need not be kept. */
static bool
path_is_mark(const DpDecl *decl, const DpPath *path)
{
	DpValue flag;
	StringInfoData text;

	if (!dp_option_value(decl->options, "flag", DP_TYPE_STRING, &flag))
		return false;
	initStringInfo(&text);
	dp_path_to_text(&text, path);
	return strcmp(text.data, DP_STRING_DATA(&flag)) == 0;
}

void
dp_held_refuse(const DpDecl *decl, const DpPath *path)
{
	StringInfoData text;

	initStringInfo(&text);
	dp_path_to_text(&text, path);
	ereport(
		ERROR,
		(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		 errmsg("field \"%s\" in table \"%s\" has a value from before pattern \"%s\" was declared",
				text.data, dp_relation_name(decl->target), decl->name),
		 errhint("Call pattern_build() first.")));
}

/*
 * _pattern_holds(doc, path, is_flag) -> whether the field has a value that matters
 */
DP_FUNCTION(dp_pattern_holds);
Datum
dp_pattern_holds(PG_FUNCTION_ARGS)
{
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	DpPath *path = dp_path_arg_cached(fcinfo, 1);
	DpValue value;

	PG_RETURN_BOOL(dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value) &&
				   value_matters(&value) && !(PG_GETARG_BOOL(2) && dp_value_is_mark(&value)));
}

/* A declaration of the table, and the derivation that makes its rows consistent. */
static DpDecl *
decl_to_repair(Oid rel, const char *name, DpDerivation **d)
{
	DpDecl *decl = NULL;
	ListCell *lc;

	dp_require_owner(rel);
	LockRelationOid(rel, RowExclusiveLock); /* keeps the declaration unchanged */
	foreach(lc, dp_decls(rel))
	{
		if (strcmp(((DpDecl *) lfirst(lc))->name, name) == 0)
			decl = lfirst(lc);
	}
	if (decl == NULL || (decl->methods->repair_row == NULL && decl->methods->derive == NULL))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("table \"%s\" has no pattern \"%s\" that can be built",
							   dp_relation_name(rel), name)));
	*d = decl->methods->repair_row == NULL ? dp_derivation(decl) : NULL;
	return decl;
}

/* Makes one row consistent, as the owner, without guards. */
static bool
repair_row(DpDecl *decl, DpDerivation *d, const DpKey *key)
{
	Oid outer = adopting_target;
	const char *outer_name = adopting_name;
	bool written = false;

	adopting_target = decl->target;
	adopting_name = pstrdup(decl->name);
	PG_TRY();
	{
		if (d != NULL)
			written = OidIsValid(d->source) && dp_derive_repair_row(decl->target, d, key);
		else
		{
			SPI_connect();
			written = decl->methods->repair_row(decl, key);
			SPI_finish();
		}
	}
	PG_FINALLY();
	{
		adopting_target = outer;
		adopting_name = outer_name;
	}
	PG_END_TRY();
	return written;
}

/*
 * Lets the pattern import user data of a document into its source or side table:
 * _<pattern>_move_held(rel, name, key), if it exists.
 */
static void
move_held(DpDecl *decl, const DpKey *key)
{
	Oid outer = adopting_target;
	const char *outer_name = adopting_name;
	char *function = psprintf("_%s_move_held", decl->pattern);
	Oid types[3] = { REGCLASSOID, TEXTOID, dp_types()->bson_value };
	StringInfoData sql;
	Datum args[3];

	if (!OidIsValid(dp_pattern_hook(decl->pattern, "move_held", 3, types)))
		return;
	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT docpatterns.%s($1, $2, $3)", quote_identifier(function));
	args[0] = ObjectIdGetDatum(decl->target);
	args[1] = CStringGetTextDatum(decl->name);
	args[2] = PointerGetDatum(dp_key_to_value(decl, key));
	adopting_target = decl->target;
	adopting_name = pstrdup(decl->name);
	PG_TRY();
	{
		SPI_connect();
		SPI_execute_with_args(sql.data, 3, types, args, NULL, false, 0);
		SPI_finish();
	}
	PG_FINALLY();
	{
		adopting_target = outer;
		adopting_name = outer_name;
	}
	PG_END_TRY();
}

/*
 * _pattern_repair_row(rel, name, key, adopt) -> whether the row was written
 *
 * Runs as the table's owner in a security-restricted operation, including the conversion of the
 * key, whose type may be a domain with the owner's check.
 */
DP_ROUTED_FUNCTION(dp_pattern_repair_row, DP_ROUTE_KEY, 2)
{
	DpDerivation *d;
	DpDecl *decl = decl_to_repair(PG_GETARG_OID(0), text_to_cstring(PG_GETARG_TEXT_PP(1)), &d);
	DpKey key;
	DpActor self;
	bool written;
	struct varlena *was = NULL;

	dp_owner_begin(decl->owner, &self);
	dp_key_of_argument(decl, fcinfo, 2, &key);
	if (decl->held != NIL && PG_GETARG_BOOL(3))
		was = read_document(decl, &key, CurrentMemoryContext);
	if (was != NULL && dp_held_lost(decl, was, NULL, NIL) != NULL)
	{
		/* each document alone lost nothing, but another one may have replaced its value since */
		const DpPath *lost = repair_lost(decl, d, &key, was, &written);

		if (lost != NULL)
			refuse_loss(decl, &key, lost);
	}
	else
		written = repair_row(decl, d, &key);
	dp_owner_end(&self);
	PG_RETURN_BOOL(written);
}

/* The latest document of a row, in that context; NULL if the row was deleted. */
static struct varlena *
read_document(DpDecl *decl, const DpKey *key, MemoryContext context)
{
	struct varlena *doc;
	struct varlena *result = NULL;

	SPI_connect();
	if (dp_row_read(decl, key, "", 0, &doc) && doc != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(context);

		result = dp_document_to_varlena(DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	return result;
}

/* Two documents have values of which only one can be kept. */
static void
refuse_loss(DpDecl *decl, const DpKey *key, const DpPath *lost)
{
	DpValue value = dp_value_of_varlena(dp_key_to_value(decl, key));
	StringInfoData field;
	StringInfoData shown;

	initStringInfo(&field);
	dp_path_to_text(&field, lost);
	initStringInfo(&shown);
	dp_value_to_text(&shown, &value, DP_TEXT_RELAXED, -1);
	if (shown.len > 100)
		shown.data[pg_mbcliplen(shown.data, shown.len, 100)] = '\0';
	ereport(
		ERROR,
		(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		 errmsg(
			 "field \"%s\" in table \"%s\" has a value that conflicts with that of another document",
			 field.data, dp_relation_name(decl->target)),
		 errdetail("The key of the document is %s.", shown.data),
		 errhint(
			 "Change one of the documents, or discard the value with pattern_build(.., discard => true).")));
}

/*
 * Makes a row consistent that had the document was, and returns the first field whose value then
 * exists nowhere, or NULL.
 */
static const DpPath *
repair_lost(DpDecl *decl, DpDerivation *d, const DpKey *key, struct varlena *was, bool *written)
{
	struct varlena *is;
	const DpPath *lost;

	move_held(decl, key);
	*written = repair_row(decl, d, key);
	CommandCounterIncrement();
	is = read_document(decl, key, CurrentMemoryContext);
	lost = dp_held_lost(decl, was, is, NIL);
	if (lost != NULL && is != NULL && decl->methods->is_split != NULL &&
		decl->methods->is_split(decl, is))
	{
		MemoryContext old = CurrentMemoryContext;
		struct varlena *whole;

		SPI_connect();
		whole = decl->methods->whole(decl, is, key, true);
		MemoryContextSwitchTo(old);
		is = dp_document_to_varlena(DP_DOC_DATA(whole), DP_DOC_SIZE(whole));
		SPI_finish();
		lost = dp_held_lost(decl, was, is, NIL);
	}
	if (lost != NULL && d != NULL && d->methods->elsewhere != NULL && OidIsValid(d->source))
	{
		DpValue id = dp_value_of_varlena(dp_key_to_value(decl, key));
		DpValue rest = dp_value_of_varlena(d->methods->elsewhere(d, &id));

		lost = dp_held_lost(decl, was, is, list_make1(&rest));
	}
	return lost;
}

/*
 * _pattern_lost(rel, name, keys) -> for each row, the first field whose value would be lost if the
 * rows were made consistent, or NULL
 *
 * Makes them consistent and rolls that back.
 */
DP_FUNCTION(dp_pattern_lost);
Datum
dp_pattern_lost(PG_FUNCTION_ARGS)
{
	DpDerivation *d;
	DpDecl *decl = decl_to_repair(PG_GETARG_OID(0), text_to_cstring(PG_GETARG_TEXT_PP(1)), &d);
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	DpActor self;
	Datum *records;
	bool *kept;
	int n;
	DpKey *keys;
	struct varlena **was;
	const DpPath **lost;
	ErrorData *volatile error = NULL;
	bool written;
	int dims[1];
	int lower[1] = { 1 };

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), RECORDOID, -1, false, TYPALIGN_DOUBLE, &records,
					  NULL, &n);
	keys = palloc(sizeof(DpKey) * Max(n, 1));
	was = palloc(sizeof(struct varlena *) * Max(n, 1));
	lost = palloc0(sizeof(DpPath *) * Max(n, 1));
	dp_owner_begin(decl->owner, &self);

	/* read all before any is written: making one consistent may write another one */
	for (int i = 0; i < n; i++)
	{
		dp_key_of_datum(decl, records[i], RECORDOID, &keys[i]);
		was[i] = read_document(decl, &keys[i], caller);
		if (was[i] != NULL && dp_held_lost(decl, was[i], NULL, NIL) == NULL)
			was[i] = NULL;
	}
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(caller);
	PG_TRY();
	{
		for (int i = 0; i < n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (was[i] != NULL)
				lost[i] = repair_lost(decl, d, &keys[i], was[i], &written);
		}
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(caller);
	CurrentResourceOwner = owner;
	if (error != NULL)
		ReThrowError(error);
	dp_owner_end(&self);

	kept = palloc(sizeof(bool) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		StringInfoData text;

		kept[i] = lost[i] == NULL;
		if (kept[i])
			continue;
		initStringInfo(&text);
		dp_path_to_text(&text, lost[i]);
		records[i] = PointerGetDatum(cstring_to_text(text.data));
	}
	dims[0] = n;
	PG_RETURN_ARRAYTYPE_P(construct_md_array(records, kept, 1, dims, lower, TEXTOID, -1, false,
											 TYPALIGN_INT));
}

/* Changes the arguments of a trigger and its clones on partitions. */
static int
rewrite_triggers(Relation triggers, Oid parent, Oid trigger, Datum args)
{
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	List *clones = NIL;
	ListCell *lc;
	int n = 0;

	/* no index finds the clones of a trigger, but few triggers have any */
	ScanKeyInit(&key, OidIsValid(trigger) ? Anum_pg_trigger_oid : Anum_pg_trigger_tgparentid,
				BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(OidIsValid(trigger) ? trigger : parent));
	scan = systable_beginscan(triggers, OidIsValid(trigger) ? TriggerOidIndexId : InvalidOid,
							  OidIsValid(trigger), NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
		Datum values[Natts_pg_trigger] = { 0 };
		bool nulls[Natts_pg_trigger] = { 0 };
		bool replace[Natts_pg_trigger] = { 0 };
		HeapTuple changed;

		values[Anum_pg_trigger_tgargs - 1] = args;
		replace[Anum_pg_trigger_tgargs - 1] = true;
		changed = heap_modify_tuple(tuple, RelationGetDescr(triggers), values, nulls, replace);
		CatalogTupleUpdate(triggers, &tuple->t_self, changed);
		CacheInvalidateRelcacheByRelid(form->tgrelid);
		if (get_rel_relkind(form->tgrelid) == RELKIND_PARTITIONED_TABLE)
			clones = lappend_oid(clones, form->oid);
		n++;
	}
	systable_endscan(scan);
	foreach(lc, clones)
		n += rewrite_triggers(triggers, lfirst_oid(lc), InvalidOid, args);
	return n;
}

/* Creates the main trigger of a distributed table again, as Citus then does on all servers. */
static void
replace_trigger(DpDecl *decl, const char *options)
{
	char *definition = TextDatumGetCString(DirectFunctionCall1(pg_get_triggerdef,
															   ObjectIdGetDatum(decl->trigger)));
	char *arguments = psprintf("(%s)", quote_literal_cstr(decl->declared));
	const char *create = "CREATE TRIGGER";

	if (strncmp(definition, create, strlen(create)) != 0 || !pg_str_endswith(definition, arguments))
		elog(ERROR, "unexpected definition of trigger %u", decl->trigger);
	definition[strlen(definition) - strlen(arguments)] = '\0';
	dp_allow_triggers(decl->relid);
	SPI_connect();
	if (SPI_execute(psprintf("CREATE OR REPLACE TRIGGER%s(%s)", definition + strlen(create),
							 quote_literal_cstr(options)),
					false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not replace trigger %u", decl->trigger);
	SPI_finish();
}

/*
 * _pattern_set_options(rel, trigger, options): changes a declaration in place.
 *
 * Does not lock out writers, so it is for options whose change may take effect later.
 */
DP_FUNCTION(dp_pattern_set_options);
Datum
dp_pattern_set_options(PG_FUNCTION_ARGS)
{
	Oid rel = PG_GETARG_OID(0);
	Oid trigger = PG_GETARG_OID(1);
	char *options = text_to_cstring(PG_GETARG_TEXT_PP(2));
	int len = strlen(options) + 1;
	bytea *args = palloc(VARHDRSZ + len);
	Relation triggers;
	DpDecl *decl = NULL;
	ListCell *lc;

	dp_require_owner(rel);
	LockRelationOid(rel, ShareUpdateExclusiveLock);
	foreach(lc, dp_decls(rel))
	{
		if (((DpDecl *) lfirst(lc))->trigger == trigger)
			decl = lfirst(lc);
	}
	if (decl == NULL)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("table \"%s\" has no such declaration", dp_relation_name(rel))));
	if (dp_is_distributed(rel))
	{
		replace_trigger(decl, options);
		PG_RETURN_VOID();
	}
	SET_VARSIZE(args, VARHDRSZ + len);
	memcpy(VARDATA(args), options, len);
	triggers = table_open(TriggerRelationId, RowExclusiveLock);
	(void) rewrite_triggers(triggers, InvalidOid, trigger, PointerGetDatum(args));
	table_close(triggers, RowExclusiveLock);
	CommandCounterIncrement();
	PG_RETURN_VOID();
}
