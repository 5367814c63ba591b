/*
 * trigger.c
 *		Derived data: the triggers on sources and targets.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/builder.h"
#include "bson/compare.h"
#include "bson/reader.h"
#include "kit/derive/change.h"
#include "kit/derive/batch.h"
#include "kit/link.h"
#include "kit/sql/run.h"
#include "kit/statement.h"
#include "kit/trigger.h"

/*
 * A group that was recomputed during a statement on its source whose rows had not been taken yet:
 * recomputed again at the end of that statement.
 */
typedef struct ReadGroup
{
	DpState state;
	Oid source;
	uint32 lock_id;
	uint64 hash;
} ReadGroup;

/* Keys of target rows that were inserted, or whose link changed */
static const char late_rows;

/* Groups whose target row was deleted, of declarations that create missing rows: [name, link] */
static const char deleted_groups;
static const char made_again;

/* Rows with new user data in a derived field */
static const char user_data_rows;

/* Of ReadGroup.  They live until no statement on the source is running. */
static DpStates read_groups = { .outlives = true };

static void target_deleted(DpDerivation *d, DpDecl *decl, HeapTuple before, TupleDesc desc,
						   struct varlena *doc);
static void target_truncated(Oid target);
static void deleted_make(Oid target, List *keys);
static HeapTuple target_before(DpDerivation *d, DpDecl *decl, TriggerData *trigdata);
static struct varlena *user_data_row(DpDecl *decl, struct varlena *key, bool inserted);
static bool link_changed(DpDerivation *d, DpDecl *decl, HeapTuple before, HeapTuple after,
						 TupleDesc desc, struct varlena *old_doc, struct varlena *new_doc);
static void changes_derive(DpChanges *changes);
static void change_take(DpDeriveBatch *batch, List *derivations, const DpChange *change);
static void derive_mark_read(DpDeriveBatch *batch, Oid source);

/*
 * The trigger function of all patterns that derive data.
 */
Datum
dp_derive_trigger(FunctionCallInfo fcinfo, const DpPattern *pattern)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	bool begins = fcinfo->flinfo->fn_extra == NULL;
	DpDecl *decl;
	List *keys;
	List *with_user_data;

	if (pattern->derive->main_on_source ||
		(CALLED_AS_TRIGGER(fcinfo) && trigdata->tg_trigger->tgnargs == 3))
		return dp_changes_trigger(fcinfo, pattern->name);

	decl = dp_trigger_enter(fcinfo, pattern->name,
							DP_BEFORE_ROW(DP_INSERT | DP_UPDATE) | DP_AFTER_ROW(DP_DELETE) |
								DP_AFTER_STATEMENT(DP_ANY));
	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
	{
		DpDerivation *d = dp_derivation(decl);
		TupleDesc desc = RelationGetDescr(trigdata->tg_relation);

		if (begins && !OidIsValid(d->source) && d->link_id != NULL)
			dp_link_require_owner(d->link_id, false, decl->target);
		if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
			return PointerGetDatum(target_before(d, decl, trigdata));
		target_deleted(d, decl, trigdata->tg_trigtuple, desc,
					   dp_tuple_document(decl, trigdata->tg_trigtuple, desc));
		return PointerGetDatum(NULL);
	}

	/* the first statement-level trigger of the target handles the rows for all derivations */
	with_user_data = dp_collected(decl->target, &user_data_rows);
	keys = dp_collected(decl->target, &late_rows);
	if (keys != NIL)
	{
		if (with_user_data != NIL)
			dp_derive_move_user_data(decl->target, with_user_data);
		dp_derive_late(decl->target, keys);
	}
	keys = dp_collected(decl->target, &deleted_groups);
	if (keys != NIL)
		deleted_make(decl->target, keys);
	if (TRIGGER_FIRED_BY_TRUNCATE(trigdata->tg_event))
		target_truncated(decl->target);
	return PointerGetDatum(NULL);
}

/* ---------------------------------------------------------------- sources */

const DpDeriveHooks *
dp_derive_hooks(void)
{
	const DpPattern *const *p = dp_patterns;

	while ((*p)->hooks == NULL)
		p++;
	return (*p)->hooks;
}

/*
 * A statement changed a source: updates all derivations.  Rows to which its rows refer are locked
 * in between.
 */
void
dp_derive_changes(DpChanges *changes)
{
	const DpDeriveHooks *hooks = dp_derive_hooks();
	Oid source = dp_changes_table(changes);

	hooks->before(source);
	changes_derive(changes);
	hooks->after(source);
}

/* Takes the statement's rows into a batch, and writes it. */
static void
changes_derive(DpChanges *changes)
{
	Oid source = dp_changes_table(changes);
	List *all = dp_derivations_of_source(source);
	List *derivations = NIL;
	List *wholly = NIL;
	DpDeriveBatch *batch;
	DpChange change;
	MemoryContext row;
	MemoryContext old;
	ListCell *lc;

	foreach(lc, all)
	{
		if (dp_decl_maintained(((DpDerivation *) lfirst(lc))->decl))
			derivations = lappend(derivations, lfirst(lc));
	}
	if (derivations == NIL)
		return;

	if (dp_changes_wholly(changes))
	{
		wholly = derivations;
		(void) dp_derive_whole(wholly, dp_changes_emptied(changes), false);
		return;
	}

	batch = dp_derive_begin();
	batch->source = source;
	row = AllocSetContextCreate(batch->context, "docpatterns row", ALLOCSET_DEFAULT_SIZES);
	while (dp_changes_next(changes, &change))
	{
		old = MemoryContextSwitchTo(row);
		change_take(batch, derivations, &change);
		MemoryContextSwitchTo(old);
		MemoryContextReset(row);
	}
	if (read_groups.list != NIL)
		derive_mark_read(batch, source);
	if (dp_changes_recompute(changes))
	{
		for (DpGroup *group = batch->groups; group != NULL; group = group->next)
			group->recompute = true;
	}
	(void) dp_derive_end(batch, false);
}

/* Takes one change into the groups of a batch. */
static void
change_take(DpDeriveBatch *batch, List *derivations, const DpChange *change)
{
	DpSourceRow before = { change->before, NULL };
	DpSourceRow after = { change->after, NULL };
	const char *column = NULL;
	bool equal = false;
	bool first = true;
	ListCell *lc;

	foreach(lc, derivations)
	{
		DpDerivation *d = lfirst(lc);

		if (first || (column != d->source_column && (column == NULL || d->source_column == NULL ||
													 strcmp(column, d->source_column) != 0)))
		{
			column = d->source_column;
			before.doc = before.slot != NULL ? dp_source_document(before.slot, column) : NULL;
			after.doc = after.slot != NULL ? dp_source_document(after.slot, column) : NULL;
			equal = before.doc != NULL && after.doc != NULL && dp_same_bytes(before.doc, after.doc);
			first = false;
		}
		if (before.slot != NULL && after.slot != NULL)
		{
			if (equal && !d->methods->reads_columns)
				continue;
			if (d->methods->same != NULL && d->methods->same(d, &before, &after))
				continue;
		}
		if (before.slot != NULL)
			d->methods->take(d, batch, &before, -1);
		if (after.slot != NULL)
			d->methods->take(d, batch, &after, 1);
	}
}

/* ---------------------------------------------------------------- reading inside of statements */

/* Called before the source is read for a group whose row is locked. */
void
dp_derive_reading(DpGroup *group)
{
	DpDerivation *d = group->derivation;
	ReadGroup *r;
	ListCell *lc;

	CommandCounterIncrement();
	if (!dp_changes_pending(d->source))
		return;
	foreach(lc, read_groups.list)
	{
		r = lfirst(lc);
		if (r->source == d->source && r->lock_id == d->lock_id && r->hash == group->hash)
			return;
	}
	r = dp_state_begin(&read_groups, sizeof(ReadGroup));
	r->source = d->source;
	r->lock_id = d->lock_id;
	r->hash = group->hash;
}

/*
 * Groups of the batch that were read meanwhile include some of its rows already, so they are
 * recomputed.  The records stay while a statement on the source is running, because there may be
 * other outer statements.
 */
static void
derive_mark_read(DpDeriveBatch *batch, Oid source)
{
	bool pending = dp_changes_pending(source);
	ListCell *lc;

	foreach(lc, read_groups.list)
	{
		ReadGroup *r = lfirst(lc);
		DpGroup *group;

		if (r->source != source)
			continue;
		for (group = batch->groups; group != NULL; group = group->next)
		{
			if (group->hash == r->hash && group->derivation->lock_id == r->lock_id)
				group->recompute = true;
		}
		if (!pending)
		{
			read_groups.list = foreach_delete_current(read_groups.list, lc);
			pfree(r);
		}
	}
}

/* ---------------------------------------------------------------- targets */

/*
 * A target row was deleted, or got another link.  If its group has rows in the source, and the
 * declaration creates missing rows, it is created again.
 */
static void
target_deleted(DpDerivation *d, DpDecl *decl, HeapTuple before, TupleDesc desc, struct varlena *doc)
{
	DpBuilder b;
	DpKey key;
	DpValue link;

	if (!d->create_missing || d->guarded || dp_marked_derived(decl->target, NULL))
		return;
	if (d->link == NULL)
	{
		dp_key_of_tuple(decl, before, desc, &key);
		link = dp_value_of_varlena(dp_key_to_value(decl, &key));
	}
	else if (doc == NULL || !dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), d->link, &link))
		return;
	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	dp_builder_append_string(&b, NULL, 0, decl->name, strlen(decl->name));
	dp_builder_append_value(&b, NULL, 0, &link);
	dp_builder_end(&b);
	dp_collect(decl->target, &deleted_groups, dp_builder_finish_value(&b, DP_TYPE_ARRAY));
}

/*
 * A target was truncated: the first of the triggers of the table and its partitions creates missing
 * rows again.
 */
static void
target_truncated(Oid target)
{
	bool again = dp_collected(target, &made_again) != NIL;
	DpValue none = { NULL, 0, DP_TYPE_NULL };
	List *making = NIL;
	ListCell *lc;

	dp_collect(target, &made_again, dp_value_to_varlena(&none));
	if (again)
		return;
	foreach(lc, dp_derivations_of_target(target))
	{
		DpDerivation *d = lfirst(lc);

		if (d->create_missing && dp_decl_maintained(d->decl))
			making = lappend(making, d);
	}
	(void) dp_derive_whole(making, false, false);
}

/* Creates the target rows of such groups, like those of groups without a row. */
static void
deleted_make(Oid target, List *keys)
{
	DpDeriveBatch *batch = dp_derive_begin();
	MemoryContext old = MemoryContextSwitchTo(dp_derive_memory(batch));
	ListCell *lc;

	foreach(lc, keys)
	{
		DpValue value = dp_value_of_varlena(lfirst(lc));
		DpIter iter = { NULL, NULL };
		DpValue name;
		DpValue link;
		ListCell *lc2;

		dp_iter_init_value(&iter, &value);
		if (!dp_iter_next_value(&iter, &name) || !dp_iter_next_value(&iter, &link))
			continue;
		foreach(lc2, dp_derivations_of_target(target))
		{
			DpDerivation *d = lfirst(lc2);

			if (d->create_missing && OidIsValid(d->source) &&
				strcmp(d->decl->name, DP_STRING_DATA(&name)) == 0)
				dp_derive_group(batch, d, &link)->recompute = true;
		}
	}
	MemoryContextSwitchTo(old);
	(void) dp_derive_end(batch, false);
}

/*
 * BEFORE INSERT or UPDATE of a target row: keeps derived fields, and gives a new row those of an
 * empty group until the statement ends.  Returns the resulting row.
 */
static HeapTuple
target_before(DpDerivation *d, DpDecl *decl, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	bool update = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event);
	HeapTuple tuple = dp_trigger_row(trigdata);
	struct varlena *written;
	struct varlena *before = NULL;
	struct varlena *after;
	struct varlena *result;
	bool with_user_data;
	bool moved;

	after = dp_tuple_document(decl, tuple, desc);
	if (after == NULL)
	{
		if (update && d->link != NULL)
			target_deleted(d, decl, trigdata->tg_trigtuple, desc,
						   dp_tuple_document(decl, trigdata->tg_trigtuple, desc));
		return tuple;
	}

	if (dp_marked_derived(decl->target, &written))
	{
		/* the writer's document is right; users' triggers may have changed it since */
		if (written == NULL || d->methods->protect == NULL)
			result = after;
		else
			result = d->methods->protect(d, written, after);
	}
	else
	{
		/* without an old document, the new one counts as inserted */
		if (update)
			before = dp_tuple_document(decl, trigdata->tg_trigtuple, desc);
		with_user_data = d->methods->has_user_data != NULL && OidIsValid(d->source) &&
						 d->methods->has_user_data(d, before, after);
		result = d->methods->protect != NULL && !with_user_data
					 ? d->methods->protect(d, before, after)
					 : after;
		moved = before == NULL ||
				link_changed(d, decl, trigdata->tg_trigtuple, tuple, desc, before, result);
		if (moved || with_user_data)
		{
			DpKey key;
			struct varlena *value;

			dp_key_of_tuple(decl, tuple, desc, &key);
			value = dp_key_to_value(decl, &key);
			dp_collect(decl->target, &late_rows, value);
			if (update && moved)
				target_deleted(d, decl, trigdata->tg_trigtuple, desc, before);
			if (with_user_data)
				dp_collect(decl->target, &user_data_rows,
						   user_data_row(decl, value, before == NULL));
		}
	}
	return result == after ? tuple : dp_tuple_with_document(decl, tuple, desc, result);
}

/* The collected value for a row with new user data: [name, key, inserted]. */
static struct varlena *
user_data_row(DpDecl *decl, struct varlena *key, bool inserted)
{
	DpBuilder b;
	DpValue value = dp_value_of_varlena(key);

	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	dp_builder_append_string(&b, NULL, 0, decl->name, strlen(decl->name));
	dp_builder_append_value(&b, NULL, 0, &value);
	dp_builder_append_bool(&b, NULL, 0, inserted);
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
}

/* True if an update moves the row to another group. */
static bool
link_changed(DpDerivation *d, DpDecl *decl, HeapTuple before, HeapTuple after, TupleDesc desc,
			 struct varlena *old_doc, struct varlena *new_doc)
{
	DpKey old_key;
	DpKey new_key;
	DpValue old_link;
	DpValue new_link;
	bool had;
	bool has;

	if (d->link == NULL)
	{
		dp_key_of_tuple(decl, before, desc, &old_key);
		dp_key_of_tuple(decl, after, desc, &new_key);
		return !dp_key_identical(decl, &old_key, &new_key);
	}
	had = dp_path_find(DP_DOC_DATA(old_doc), DP_DOC_SIZE(old_doc), d->link, &old_link);
	has = dp_path_find(DP_DOC_DATA(new_doc), DP_DOC_SIZE(new_doc), d->link, &new_link);
	return had != has || (had && dp_value_compare(&old_link, &new_link) != 0);
}
