/*
 * merge.c
 *		The single view: documents merged from several tables, each source in a
 *		field of its own.
 *
 * Each source is a declaration of the target and a derivation (derive.h); the
 * group's key is the value of the field on which documents are merged.  The
 * sources of a target share the locks of their groups, because any of them may
 * create the document of a key, with the fields of all.
 *
 * A document is deleted when the last source has no row for it, unless it has
 * fields from no source.  While a source has rows for it, the document cannot be
 * deleted and the field with the key not changed.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/rel.h"

#include "bson/cast.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/text.h"
#include "kit/adopt.h"
#include "kit/derive/member.h"
#include "kit/derive/member.h"
#include "kit/derive/batch.h"
#include "kit/derive/source.h"
#include "kit/options.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "kit/trigger.h"

#define PATTERN "polymorphic_merge"

/* A source, in the memory of its declaration. */
typedef struct Merge
{
	DpDerivation *derivation;
	DpSource *source;
	DpPath *on;           /* in the source's documents */
	DpPath *target_field; /* in the target's */
	char *field;          /* the field for the source's documents */
	DpPath *field_path;
	bool is_array;
	DpMember *member; /* their projection; NULL: all */
	Oid key_type;     /* of the source's field, as statements compare it; valid with the plan */
} Merge;

/* The documents of a group */
typedef struct MergeRows
{
	Merge *m;
	DpBuilder *array;      /* of an array */
	struct varlena *one;   /* or the first of all */
	MemoryContext context; /* of it */
	int n;
} MergeRows;

static void merge_open(DpDerivation *d);
static void merge_take(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign);
static bool merge_same(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after);
static struct varlena *merge_apply(DpDerivation *d, DpGroup *group, struct varlena *doc);
static struct varlena *merge_create(DpDerivation *d, DpGroup *group);
static struct varlena *
merge_protect(DpDerivation *d, struct varlena *before, struct varlena *after);
static bool merge_has_user_data(DpDerivation *d, struct varlena *before, struct varlena *after);
static void
merge_move_user_data(DpDerivation *d, const DpValue *key, struct varlena *doc, bool inserted);
static void merge_all_groups(DpDerivation *d, DpDeriveBatch *batch);

static HeapTuple merge_guard(FunctionCallInfo fcinfo);
static struct varlena *merge_read(Merge *m, const DpValue *key, bool latest, bool strict);
static bool take_row(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool take_group(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool row_link(const Merge *m, struct varlena *doc, DpValue *link);
static bool has_nothing(const Merge *m, struct varlena *doc);
static void refuse_write(DpDecl *decl, const char *what) pg_attribute_noreturn();
static DpDerivation *merge_argument(FunctionCallInfo fcinfo);

static const DpOption options[] = {
	{ "field", DP_OPTION_PATH, DP_REQUIRED | DP_KEPT | DP_GUARDED, DP_INTO(Merge, field_path) },
	{ "merge_on", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(Merge, on) },
	{ "target_field", DP_OPTION_PATH, DP_REQUIRED | DP_USED, DP_INTO(Merge, target_field) },
	{ "is_array", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE, DP_INTO(Merge, is_array) },
	{ "fields", DP_OPTION_DOCUMENT, DP_ALTERABLE },
	{ NULL }
};

static const DpDeriveMethods methods = { .main_on_source = false,
										 .open = merge_open,
										 .take = merge_take,
										 .same = merge_same,
										 .refuses = true,
										 .reads_columns = true,
										 .apply = merge_apply,
										 .create = merge_create,
										 .protect = merge_protect,
										 .has_user_data = merge_has_user_data,
										 .move_user_data = merge_move_user_data,
										 .all_groups = merge_all_groups };

DP_DEFINE_PATTERN(polymorphic_merge) = { .name = PATTERN,
										 .whole_table = true,
										 .creator = PATTERN,
										 .adopt_hint = "Insert rows into {source} that give them.",
										 .options = options,
										 .derive = &methods };

/*
 * polymorphic_merge_trigger(): the triggers of the pattern, on all tables.
 */
DP_FUNCTION(dp_polymorphic_merge_trigger);
Datum
dp_polymorphic_merge_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;

	if (CALLED_AS_TRIGGER(fcinfo) && trigdata->tg_trigger->tgnargs == 2 &&
		TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(merge_guard(fcinfo));
	return dp_derive_trigger(fcinfo, &dp_polymorphic_merge_pattern);
}

/*
 * BEFORE DELETE of a row of the target, and TRUNCATE.
 */
static HeapTuple
merge_guard(FunctionCallInfo fcinfo)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, PATTERN,
									DP_BEFORE_ROW(DP_DELETE) | DP_BEFORE_STATEMENT(DP_TRUNCATE));
	Merge *m;
	struct varlena *doc;
	DpValue value;

	if (decl == NULL)
		return trigdata->tg_trigtuple;
	if (!TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		refuse_write(decl, "truncated");
	if (dp_marked_derived(decl->target, NULL) || dp_marked(decl->target, NULL) != DP_MARK_NONE)
		return trigdata->tg_trigtuple;
	m = dp_derivation(decl)->state;
	doc = dp_tuple_document(decl, trigdata->tg_trigtuple, RelationGetDescr(trigdata->tg_relation));
	if (doc != NULL &&
		dp_field_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), m->field, strlen(m->field), &value))
		refuse_write(decl, "deleted");
	return trigdata->tg_trigtuple;
}

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE. */
static void
refuse_write(DpDecl *decl, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("merged documents of table \"%s\" cannot be %s", dp_relation_name(decl->target),
					what),
			 errdetail("The " PATTERN
					   " pattern \"%s\" keeps them as long as their source has rows for them.",
					   decl->name),
			 errhint("Write to the sources.")));
}

/* ---------------------------------------------------------------- methods of the derivation */

/* Reads what a declaration says. */
static void
merge_open(DpDerivation *d)
{
	DpDecl *decl = d->decl;
	Merge *m = palloc0(sizeof(Merge));
	DpValue value;

	m->derivation = d;
	dp_options_read(decl, m);
	m->field = pnstrdup(m->field_path->steps[0].name, m->field_path->steps[0].namelen);
	if (dp_option_value(decl->options, "fields", DP_TYPE_DOCUMENT, &value))
		m->member = dp_member_compile(&value);
	if (OidIsValid(d->source))
	{
		m->source = dp_source_open(d->source, dp_decl_text(decl, "source_doc_column"));
		d->source_column = m->source->doc_column;
	}
	d->link = m->target_field;
	d->create_missing = true;
	d->drop_empty = true;
	d->state = m;
}

/* The key that a row of the source belongs to, if any. */
static bool
row_link(const Merge *m, struct varlena *doc, DpValue *link)
{
	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), m->on, link) &&
		   link->type != DP_TYPE_NULL && link->type != DP_TYPE_UNDEFINED;
}

/* Marks the group of an added or removed row for recomputation. */
static void
merge_take(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign)
{
	Merge *m = d->state;
	DpValue link;
	DpGroup *group;

	if (!row_link(m, row->doc, &link))
		return;
	group = dp_derive_group(batch, d, &link);
	group->recompute = true;
	if (sign < 0 && dp_held(d->decl, m->field_path))
		dp_derive_deleted(group,
						  m->member != NULL ? dp_member_make(m->member, row->doc) : row->doc);
}

/* Whether two versions of a row are the same in the merged document. */
static bool
merge_same(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after)
{
	Merge *m = d->state;
	DpValue link;
	uint32 len;
	uint32 other_len;
	const char *key;
	char *copy;

	if (!row_link(m, before->doc, &link) && !row_link(m, after->doc, &link))
		return true;
	if (!dp_same_bytes(before->doc, after->doc))
		return false;
	if (!m->is_array)
		return true;
	/* elements are in the order of keys */
	key = dp_source_row_key(m->source, before->slot, &len);
	copy = palloc(len);
	memcpy(copy, key, len);
	key = dp_source_row_key(m->source, after->slot, &other_len);
	return len == other_len && memcmp(copy, key, len) == 0;
}

/* The merged document with what the source has now. */
static struct varlena *
merge_apply(DpDerivation *d, DpGroup *group, struct varlena *doc)
{
	Merge *m = d->state;
	struct varlena *now = NULL;
	DpValue was;
	DpValue value;
	bool had;

	if (!group->locked && !group->emptied)
	{
		group->need_lock = true;
		return doc;
	}
	if (!group->emptied)
	{
		dp_derive_reading(group);
		now = merge_read(m, &group->key, true, true);
	}
	had = dp_field_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), m->field, strlen(m->field), &was);
	if (now != NULL)
		value = dp_value_of_varlena(now);
	if (had && dp_held(d->decl, m->field_path) &&
		dp_value_lost(&was, now != NULL ? &value : NULL, group->deleted_values))
		return doc;
	if (now == NULL)
	{
		if (!had)
			return doc;
		doc = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), m->field_path);
		return has_nothing(m, doc) ? NULL : doc;
	}
	if (had && dp_value_identical(&was, &value))
		return doc;
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), m->field_path, &value);
}

/* Whether a document has nothing but its key. */
static bool
has_nothing(const Merge *m, struct varlena *doc)
{
	const DpPathStep *first = &m->target_field->steps[0];
	DpIter iter;
	DpElement field;

	dp_iter_init_varlena(&iter, doc);
	while (dp_iter_next(&iter, &field))
	{
		if (field.namelen == 3 && memcmp(field.name, "_id", 3) == 0)
			continue;
		if (field.namelen != first->namelen || memcmp(field.name, first->name, first->namelen) != 0)
			return false;
		if (m->target_field->nsteps > 1 && field.value.type == DP_TYPE_DOCUMENT &&
			dp_document_count(field.value.data, field.value.len) > 1)
			return false;
	}
	return true;
}

/* A document for a key that has none, with the fields of all sources. */
static struct varlena *
merge_create(DpDerivation *d, DpGroup *group)
{
	Merge *m = d->state;
	struct varlena *doc = dp_document_to_varlena((const uint8 *) "\5\0\0\0\0", 5);
	bool any = false;
	ListCell *lc;

	/* not a valid _id */
	if (m->target_field->nsteps == 1 && strcmp(m->target_field->steps[0].name, "_id") == 0 &&
		(group->key.type == DP_TYPE_ARRAY || group->key.type == DP_TYPE_REGEX))
		return NULL;
	dp_derive_reading(group);
	doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), m->target_field, &group->key);
	foreach(lc, dp_derivations_of_target(d->target))
	{
		DpDerivation *other = lfirst(lc);
		Merge *o = other->state;
		struct varlena *now;
		DpValue value;

		if (other->methods != d->methods || !OidIsValid(other->source))
			continue;
		now = merge_read(o, &group->key, true, true);
		if (now == NULL)
			continue;
		any = true;
		value = dp_value_of_varlena(now);
		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->field_path, &value);
	}
	return any ? doc : NULL;
}

/* The new document with the source's field of the old one; a new one has none. */
static struct varlena *
merge_protect(DpDerivation *d, struct varlena *before, struct varlena *after)
{
	Merge *m = d->state;
	DpValue was;
	DpValue is;
	bool had = before != NULL && dp_field_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), m->field,
											   strlen(m->field), &was);
	bool has =
		dp_field_find(DP_DOC_DATA(after), DP_DOC_SIZE(after), m->field, strlen(m->field), &is);

	if (had)
	{
		DpValue old_key;
		DpValue new_key;
		bool old_has =
			dp_path_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), m->target_field, &old_key);
		bool new_has =
			dp_path_find(DP_DOC_DATA(after), DP_DOC_SIZE(after), m->target_field, &new_key);

		if (old_has && (!new_has || dp_value_compare(&old_key, &new_key) != 0))
			refuse_write(d->decl, "given another key");
	}
	if (had == has && (!had || dp_value_identical(&was, &is)))
		return after;
	if (!had)
		return dp_document_unset(DP_DOC_DATA(after), DP_DOC_SIZE(after), m->field_path);
	return dp_document_set(DP_DOC_DATA(after), DP_DOC_SIZE(after), m->field_path, &was);
}

/* Returns whether a document contains the field of a source that has no rows for it. */
static bool
merge_has_user_data(DpDerivation *d, struct varlena *before, struct varlena *after)
{
	Merge *m = d->state;
	DpValue value;

	return dp_field_find(DP_DOC_DATA(after), DP_DOC_SIZE(after), m->field, strlen(m->field),
						 &value) &&
		   value.type != DP_TYPE_NULL &&
		   !(before != NULL && dp_field_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), m->field,
											 strlen(m->field), &value));
}

/* It is refused unless the source has something now. */
static void
merge_move_user_data(DpDerivation *d, const DpValue *key, struct varlena *doc, bool inserted)
{
	Merge *m = d->state;
	struct varlena *now = NULL;

	if (!merge_has_user_data(d, NULL, doc))
		return;
	SPI_connect();
	CommandCounterIncrement();
	if (key != NULL)
		now = merge_read(m, key, true, false);
	SPI_finish();
	if (now == NULL)
		ereport(
			ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg(
				 "field \"%s\" of table \"%s\" shows rows of table \"%s\", which has none for the document",
				 m->field, dp_relation_name(d->target), dp_relation_name(d->source)),
			 errhint("Insert into table \"%s\".", dp_relation_name(d->source))));
}

/* ---------------------------------------------------------------- reading a source */

/*
 * Returns the source's value for a key: a bson_value in the current context, or NULL. strict:
 * several rows where one is allowed are UNIQUE_VIOLATION. Inside SPI_connect().
 */
static struct varlena *
merge_read(Merge *m, const DpValue *key, bool latest, bool strict)
{
	static const char plan_id;
	DpDecl *decl = m->derivation->decl;
	SPIPlanPtr plan = dp_plan(decl, &plan_id);
	ParamListInfo params = dp_source_params(1);
	MergeRows rows = { m };
	DpBuilder array;

	if (plan == NULL)
	{
		StringInfoData sql;
		int i;

		initStringInfo(&sql);
		dp_source_sql_select(&sql, m->source, false);
		appendStringInfoString(&sql, " WHERE ");
		m->key_type = dp_source_sql_require_field(&sql, m->source, m->on);
		dp_sql_type_operator(&sql, m->key_type, BTEqualStrategyNumber);
		appendStringInfoString(&sql, "$1 ORDER BY ");
		for (i = 0; i < m->source->nkeys; i++)
			appendStringInfo(&sql, "%ss.%s", i > 0 ? ", " : "",
							 quote_identifier(m->source->keys[i]));
		plan = dp_plan_make(decl, &plan_id, sql.data, 1, &m->key_type, 0);
	}
	dp_source_param(params, 0, m->key_type, key);
	rows.context = CurrentMemoryContext;
	if (m->is_array)
	{
		rows.array = &array;
		dp_builder_init_value(&array, 0);
		dp_builder_begin_array(&array);
	}
	(void) dp_source_each(m->source, decl, plan, params, latest, false, take_row, &rows);
	if (rows.n > 1 && strict && !m->is_array)
	{
		StringInfoData shown;

		initStringInfo(&shown);
		dp_value_to_text(&shown, key, DP_TEXT_RELAXED, -1);
		if (shown.len > 100)
			shown.data[pg_mbcliplen(shown.data, shown.len, 100)] = '\0';
		ereport(
			ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("table \"%s\" has more than one document for one key of table \"%s\"",
					dp_relation_name(m->source->relid), dp_relation_name(decl->target)),
			 errdetail("The key is %s.", shown.data),
			 errhint("To collect them in an array, name the source in the argument \"arrays\".")));
	}
	if (rows.n == 0)
		return NULL;
	if (m->is_array)
	{
		dp_builder_end(&array);
		return dp_builder_finish_value(&array, DP_TYPE_ARRAY);
	}
	return rows.one;
}

/* Adds a document of the source; reads at most two if only one is allowed. */
static bool
take_row(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	MergeRows *rows = arg;
	struct varlena *doc =
		rows->m->member != NULL ? dp_member_make(rows->m->member, row->doc) : row->doc;
	DpValue value = dp_value_of_document(doc);
	MemoryContext old;

	rows->n++;
	old = MemoryContextSwitchTo(rows->context);
	if (rows->array != NULL)
		dp_builder_append_nested(rows->array, NULL, 0, &value);
	else if (rows->n == 1)
		rows->one = dp_value_to_varlena(&value);
	MemoryContextSwitchTo(old);
	return rows->array != NULL || rows->n < 2;
}

/* Groups that a source has: what take_group() adds to */
typedef struct AllGroups
{
	DpDerivation *d;
	DpDeriveBatch *batch;
} AllGroups;

/* All groups of the source are added to the batch. */
static void
merge_all_groups(DpDerivation *d, DpDeriveBatch *batch)
{
	static const char plan_id;
	Merge *m = d->state;
	SPIPlanPtr plan;
	AllGroups all = { d, batch };

	if (m->source == NULL)
		return;
	SPI_connect();
	plan = dp_plan(d->decl, &plan_id);
	if (plan == NULL)
	{
		StringInfoData sql;

		initStringInfo(&sql);
		dp_source_sql_select(&sql, m->source, false);
		plan = dp_plan_make(d->decl, &plan_id, sql.data, 0, NULL, 0);
	}
	(void) dp_source_each(m->source, d->decl, plan, NULL, true, false, take_group, &all);
	SPI_finish();
}

static bool
take_group(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	AllGroups *all = arg;
	DpValue link;

	if (row_link(all->d->state, row->doc, &link))
		dp_derive_group(all->batch, all->d, &link)->recompute = true;
	return true;
}

/* ---------------------------------------------------------------- calls */

/* The derivation that the first two arguments, a table and a name, mean. */
static DpDerivation *
merge_argument(FunctionCallInfo fcinfo)
{
	Oid rel = PG_GETARG_OID(0);
	DpDerivation *d;

	dp_require_owner(rel);
	d = dp_derivation(dp_decl_find(rel, PATTERN, text_to_cstring(PG_GETARG_TEXT_PP(1))));
	if (!OidIsValid(d->source))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the " PATTERN " pattern \"%s\" of table \"%s\" has no source",
							   d->decl->name, dp_relation_name(rel)),
						errdetail("The source table or its triggers were dropped.")));
	return d;
}

/*
 * _polymorphic_merge_recompute(rel, name, emptied) -> bigint: computes the source's field in all
 * documents, or removes it from all; returns how many were written
 */
DP_ROUTED_FUNCTION(dp_polymorphic_merge_recompute, DP_ROUTE_WHOLE, 0)
{
	DpDerivation *d = merge_argument(fcinfo);

	PG_RETURN_INT64(dp_derive_whole(list_make1(d), PG_GETARG_BOOL(2), true));
}

/*
 * _polymorphic_merge_expected(rel, name, key) -> bson_value: what the source
 * has for a key, with the snapshot of the query.
 */
DP_FUNCTION(dp_polymorphic_merge_expected);
Datum
dp_polymorphic_merge_expected(PG_FUNCTION_ARGS)
{
	DpDerivation *d = merge_argument(fcinfo);
	DpValue key = dp_value_of_varlena(DP_GETARG_VARLENA(2));
	MemoryContext caller = CurrentMemoryContext;
	struct varlena *value;

	if (key.type == DP_TYPE_NULL || key.type == DP_TYPE_UNDEFINED)
		PG_RETURN_NULL();
	SPI_connect();
	value = merge_read(d->state, &key, false, false);
	if (value != NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(caller);
		DpValue v = dp_value_of_varlena(value);

		value = dp_value_to_varlena(&v);
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	if (value == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(value);
}

/*
 * _polymorphic_merge_verify(rel, name): compiles a declaration.
 */
DP_FUNCTION(dp_polymorphic_merge_verify);
Datum
dp_polymorphic_merge_verify(PG_FUNCTION_ARGS)
{
	(void) merge_argument(fcinfo);
	PG_RETURN_VOID();
}
