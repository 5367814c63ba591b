/*
 * reference.c
 *		The triggers of the extended reference pattern on the table whose documents
 *		contain the copies.
 *
 * BEFORE INSERT or UPDATE, for each row: fills copies from committed sources,
 * without a lock.  Unchanged references cost a comparison of bytes.
 *
 * AFTER INSERT or UPDATE, for each statement: locks the sources of new references
 * in the order of their keys, so that they stay unchanged until this transaction
 * ends, and corrects copies of those that have changed since they were read.
 * Raises an error here if a source must exist but does not.
 *
 * A reference that the row had before, even in another declaration, needs no lock:
 * a transaction that changes its source writes to the row.  So it waits for us, or
 * leaves us a note (kit/note.h), which is processed for all declarations.  If the
 * row had another copy, because it was left to another transaction, the reference
 * needs the lock.  In a deferred declaration only a refresh writes the row, and it
 * may have found the row correct: then the source is queued again if the new copy
 * differs from the row's.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/compare.h"
#include "kit/adopt.h"
#include "kit/derive/change.h"
#include "kit/derive/derive.h"
#include "kit/derive/queue.h"
#include "kit/locks.h"
#include "kit/note.h"
#include "kit/options.h"
#include "kit/sql/run.h"
#include "kit/trigger.h"
#include "patterns/reference/collect.h"
#include "patterns/reference/reference.h"

static HeapTuple reference_before(DpReference *ref, TriggerData *trigdata);
static void reference_after(DpReference *ref);
static void handle_collected(Oid target, bool all);
static struct varlena *
reference_fill(DpReference *ref, struct varlena *before, struct varlena *after);
static bool
named_beside(DpReference *ref, struct varlena *doc, const DpValue *id, struct varlena *extract);
static bool copied_before(const DpReference *ref, const DpRefSites *sites, const DpValue *id,
						  struct varlena *extract);
static bool covers(const DpReference *a, const DpReference *b);
static bool field_unchanged(const DpReference *ref, struct varlena *before, struct varlena *after);
static DpPath **paths_option(DpDecl *decl, const char *option, int *n);

/*
 * reference_trigger(): the triggers of the pattern on its table.
 */
DP_FUNCTION(dp_reference_trigger);
Datum
dp_reference_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, "reference",
									DP_BEFORE_ROW(DP_INSERT | DP_UPDATE) |
										DP_AFTER_STATEMENT(DP_INSERT | DP_UPDATE));

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		return PointerGetDatum(reference_before(dp_reference(decl), trigdata));
	/* sources that are locked together with data derived from the rows: see
	 * dp_ref_referenced_rows() */
	if (dp_ref_collecting_any() && dp_changes_pending(decl->target) &&
		dp_ref_locked_later(dp_reference(decl)))
		return PointerGetDatum(NULL);
	reference_after(dp_reference(decl));
	return PointerGetDatum(NULL);
}

/*
 * The pattern's view of a declaration.
 */
DpReference *
dp_reference(DpDecl *decl)
{
	DpReference *ref = decl->state;
	MemoryContext old;

	if (likely(ref != NULL))
		return ref;
	old = MemoryContextSwitchTo(decl->context);
	ref = palloc0(sizeof(DpReference));
	ref->decl = decl;
	dp_options_read(decl, ref);
	ref->live = paths_option(decl, "live", &ref->nlive);
	ref->frozen = paths_option(decl, "frozen", &ref->nfrozen);
	if (ref->field->nsteps < 1 || ref->id_field->nsteps != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("invalid declaration of reference pattern \"%s\" on table \"%s\"",
							   decl->name, dp_relation_name(decl->target))));
	MemoryContextSwitchTo(old);
	decl->state = ref;
	return ref;
}

/* An option that is an array of paths, in the current context. */
static DpPath **
paths_option(DpDecl *decl, const char *option, int *n)
{
	DpValue array;
	DpValue value;
	DpIter iter;
	DpPath **paths;

	*n = 0;
	if (!dp_option_value(decl->options, option, DP_TYPE_ARRAY, &array))
		return NULL;
	paths = palloc(sizeof(DpPath *) * (dp_document_count(array.data, array.len) + 1));
	dp_iter_init_value(&iter, &array);
	while (dp_iter_next_value(&iter, &value))
	{
		if (value.type != DP_TYPE_STRING)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("option \"%s\" of the %s pattern is not a list of paths", option,
								   decl->pattern)));
		paths[(*n)++] = dp_path_parse(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
	}
	return paths;
}

/*
 * BEFORE INSERT OR UPDATE of a row: the row with its copies filled in.
 */
static HeapTuple
reference_before(DpReference *ref, TriggerData *trigdata)
{
	bool is_update = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event);
	HeapTuple tuple = dp_trigger_row(trigdata);
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *before = NULL;
	struct varlena *after;
	struct varlena *filled;

	if (dp_ref_pass_writes(ref->decl->target))
		return tuple;
	if (is_update)
		dp_ref_proposal_withdraw(ref, trigdata->tg_trigtuple, desc);
	if (is_update)
	{
		if (dp_trigger_same_document(trigdata, ref->decl))
			return tuple;
		before = dp_tuple_document(ref->decl, trigdata->tg_trigtuple, desc);
	}
	after = dp_tuple_document(ref->decl, tuple, desc);
	if (after == NULL || (before != NULL && field_unchanged(ref, before, after)))
		return tuple;

	filled = reference_fill(ref, before, after);
	if (!is_update)
		dp_ref_proposal_note(ref, tuple, desc);
	return filled == after ? tuple : dp_tuple_with_document(ref->decl, tuple, desc, filled);
}

/* Whether what the first part of the field's path leads to is the same in both. */
static bool
field_unchanged(const DpReference *ref, struct varlena *before, struct varlena *after)
{
	const DpPathStep *step = &ref->field->steps[0];
	DpValue a;
	DpValue b;
	bool in_before =
		dp_document_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), step->name, step->namelen, &a);
	bool in_after =
		dp_document_find(DP_DOC_DATA(after), DP_DOC_SIZE(after), step->name, step->namelen, &b);

	if (!in_before || !in_after)
		return !in_after; /* removed references need nothing */
	return dp_value_identical(&a, &b);
}

/*
 * The document with its copies filled in; itself if nothing differs.  before
 * is NULL for a new row.
 */
static struct varlena *
reference_fill(DpReference *ref, struct varlena *before, struct varlena *after)
{
	DpRefSites sites;
	DpRefSites old_sites;
	const DpRefSite **match;
	DpRefIds *set = NULL;
	bool connected = false;
	bool differs = false;
	MemoryContext context = CurrentMemoryContext;
	struct varlena *result = after;
	int i;

	if (before == NULL)
		dp_ref_proposals_forget(ref); /* the row that was proposed before this one was inserted, or
										 is none */
	dp_ref_sites(ref->field, ref->id_field, DP_DOC_DATA(after), DP_DOC_SIZE(after), &sites);
	if (sites.n == 0)
		return after;
	if (before != NULL)
		dp_ref_sites(ref->field, ref->id_field, DP_DOC_DATA(before), DP_DOC_SIZE(before),
					 &old_sites);
	else
		memset(&old_sites, 0, sizeof(old_sites));
	match = dp_ref_match(&sites, &old_sites);

	for (i = 0; i < sites.n; i++)
	{
		DpRefSite *site = &sites.v[i];
		DpRefFill fill = { NULL, NULL, match[i], NULL, true };
		struct varlena *extract = NULL;
		DpRefId *source = NULL; /* of a new row */
		DpValue value;
		bool is_new = true;
		bool is_beside = false;
		int j;

		if (match[i] != NULL && !match[i]->bare &&
			dp_value_identical(&site->value, &match[i]->value))
			continue;
		for (j = 0; j < old_sites.n && is_new; j++)
			is_new = old_sites.v[j].bare || dp_value_compare(&old_sites.v[j].id, &site->id) != 0;
		if (is_new && before != NULL)
			is_beside = named_beside(ref, before, &site->id, NULL);
		if (match[i] == NULL && i < old_sites.n)
			fill.displaced = &old_sites.v[i];

		if (!connected && dp_ref_source(ref))
		{
			SPI_connect();
			connected = true;
		}
		if (connected && is_new && !is_beside)
		{
			DpRefId *id;

			if (set == NULL)
				set = dp_ref_collecting(ref, false);
			id = dp_ref_ids_add(set, &site->id);
			id->wanted++;
			if (before == NULL)
			{
				MemoryContext old = MemoryContextSwitchTo(set->context);

				source = id;
				set->proposals = lappend(set->proposals, id);
				MemoryContextSwitchTo(old);
			}
			if (!id->read)
			{
				MemoryContext old = MemoryContextSwitchTo(set->context);

				id->extract = dp_ref_read(ref, &site->id, DP_REF_READ);
				id->read = true;
				MemoryContextSwitchTo(old);
			}
			extract = id->extract;
		}
		else if (connected)
		{
			MemoryContext old = MemoryContextSwitchTo(context);

			extract = dp_ref_read(ref, &site->id, DP_REF_READ);
			MemoryContextSwitchTo(old);
			if (extract != NULL &&
				!(is_beside ? named_beside(ref, before, &site->id, extract)
							: copied_before(ref, &old_sites, &site->id, extract)))
			{
				DpRefId *id;

				if (set == NULL)
					set = dp_ref_collecting(ref, false);
				id = dp_ref_ids_add(set, &site->id);
				if (ref->deferred)
					id->lags = true;
				else
				{
					/*
					 * the row was left to another transaction: it may be in line with what the
					 * source becomes
					 */
					id->wanted++;
					old = MemoryContextSwitchTo(set->context);
					if (!id->read)
						id->extract =
							dp_document_to_varlena(DP_DOC_DATA(extract), DP_DOC_SIZE(extract));
					id->read = true;
					MemoryContextSwitchTo(old);
				}
			}
			if (is_beside && ref->missing_error && extract == NULL)
			{
				/* the other declaration allows it */
				DpRefId *id;

				if (set == NULL)
					set = dp_ref_collecting(ref, false);
				id = dp_ref_ids_add(set, &site->id);
				id->wanted++;
				id->read = true;
			}
		}
		if (extract != NULL)
		{
			value = dp_value_of_document(extract);
			/* a copy from before the declaration stays */
			if (likely(!dp_holding(ref->decl)) || match[i] == NULL || match[i]->bare ||
				dp_ref_wrong(ref, match[i], &value) == NULL)
				fill.extract = &value;
		}
		if (source != NULL && source->filled != NULL && source->filled->bare == site->bare &&
			source->filled->depth == site->depth &&
			dp_value_identical(&source->filled->value, &site->value))
		{
			site->action = DP_REF_REPLACE;
			site->replacement = source->filled->replacement;
			differs = true;
		}
		else
		{
			MemoryContext old = MemoryContextSwitchTo(context);

			if (dp_ref_fill(ref, site, &fill))
			{
				differs = true;
				/* the second one is likely not to be the last */
				if (source != NULL && source->filled == NULL && source->wanted > 1)
					source->filled = dp_ref_keep_filled(set, site);
			}
			MemoryContextSwitchTo(old);
		}
	}
	if (connected)
		SPI_finish();
	if (differs)
		result = dp_ref_rebuild(ref, DP_DOC_DATA(after), DP_DOC_SIZE(after), &sites);
	return result;
}

/*
 * Returns whether one of the sites refers to the source and has the live fields of the extract. A
 * refresh that finds other fields waits for the writer of the row.
 */
static bool
copied_before(const DpReference *ref, const DpRefSites *sites, const DpValue *id,
			  struct varlena *extract)
{
	DpValue value = dp_value_of_document(extract);
	int i;

	for (i = 0; i < sites->n; i++)
	{
		if (dp_value_compare(&sites->v[i].id, id) == 0 &&
			dp_ref_wrong(ref, &sites->v[i], &value) == NULL)
			return true;
	}
	return false;
}

/*
 * Returns whether a stored document refers to the source in another declaration of the table (with
 * the live fields of the extract, unless that is NULL), so that a change of the source corrects
 * the row.
 */
static bool
named_beside(DpReference *ref, struct varlena *doc, const DpValue *id, struct varlena *extract)
{
	ListCell *lc;

	if (!dp_ref_source(ref))
		return false;
	foreach(lc, dp_decls(ref->decl->relid))
	{
		DpDecl *decl = lfirst(lc);
		DpReference *other;
		DpRefSites sites;
		int i;

		if (decl == ref->decl || strcmp(decl->pattern, "reference") != 0)
			continue;
		other = dp_reference(decl);
		if (!dp_ref_source(other) || !covers(other, ref))
			continue;
		dp_ref_sites(other->field, other->id_field, DP_DOC_DATA(doc), DP_DOC_SIZE(doc), &sites);
		for (i = 0; i < sites.n; i++)
		{
			DpValue value;

			if (sites.v[i].bare || dp_value_compare(&sites.v[i].id, id) != 0)
				continue;
			if (extract != NULL)
				value = dp_value_of_document(extract);
			if (extract == NULL || dp_ref_wrong(ref, &sites.v[i], &value) == NULL)
				return true;
		}
	}
	return false;
}

/*
 * Returns whether any change of a source that concerns declaration b writes the rows that refer to
 * it in a.
 */
static bool
covers(const DpReference *a, const DpReference *b)
{
	int i;
	int j;
	int k;

	if (a->source->relid != b->source->relid || a->deferred || a->on_delete == DP_REF_KEEP)
		return false;
	for (i = 0; i < b->nlive; i++)
	{
		for (j = 0; j < a->nlive; j++)
		{
			const DpPath *x = a->live[j];
			const DpPath *y = b->live[i];

			for (k = 0; k < x->nsteps && x->nsteps == y->nsteps; k++)
			{
				if (x->steps[k].namelen != y->steps[k].namelen ||
					memcmp(x->steps[k].name, y->steps[k].name, x->steps[k].namelen) != 0)
					break;
			}
			if (x->nsteps == y->nsteps && k == x->nsteps)
				break;
		}
		if (j == a->nlive)
			return false;
	}
	return true;
}

/*
 * AFTER INSERT OR UPDATE: locks the sources of new references, and mends what
 * has changed since they were read.
 */
static void
reference_after(DpReference *ref)
{
	DpRefIds *set;
	DpRefIds *changed = NULL;
	DpQueue *queue = NULL;
	DpWriter *w = NULL;
	int i;

	if (!dp_ref_collecting_any())
		return;
	dp_ref_lock_absent_wanted(ref->decl->target);
	dp_ref_lock_together(ref);
	set = dp_ref_collected(ref, false);
	if (set == NULL)
		return;
	dp_ref_ids_sort(set);
	SPI_connect();
	for (i = 0; i < set->n; i++)
	{
		DpRefId *id = set->ids[i];
		struct varlena *now;
		DpRefId *entry;
		bool deadlock;

		CHECK_FOR_INTERRUPTS();
		if (id->lags)
		{
			if (queue == NULL)
				queue = dp_queue_open(ref->decl, "second_link_id");
			dp_queue_add(queue, &id->id, NULL);
		}
		if (id->wanted <= 0)
			continue;
		deadlock = false;
		now = dp_ref_read_or_leave(ref, &id->id, ref->nlive > 0 ? DP_REF_LOCK : DP_REF_LOCK_KEY, &w,
								   &deadlock);
		if (deadlock)
		{
			/* it exists, and the transaction that changes it corrects our rows */
			dp_note(ref->decl, &id->id, ref->source->relid);
			continue;
		}
		if (now == NULL && id->extract != NULL && !ref->missing_error)
		{
			/*
			 * it was deleted concurrently, and may be inserted again by a transaction that does
			 * not see our rows
			 */
			uint64 hash = dp_ref_absent_hash(ref, &id->id);

			dp_lock_absent(&hash, 1, RowExclusiveLock);
			now = dp_ref_read(ref, &id->id, ref->nlive > 0 ? DP_REF_LOCK : DP_REF_LOCK_KEY);
		}
		if (now == NULL)
		{
			/* a row that was not stored (ON CONFLICT) has no references */
			if (ref->missing_error && dp_ref_named(ref, &id->id))
				dp_ref_missing(ref, &id->id);
			continue;
		}
		if (id->extract != NULL && VARSIZE_ANY(now) == VARSIZE_ANY(id->extract) &&
			memcmp(VARDATA_ANY(now), VARDATA_ANY(id->extract), VARSIZE_ANY_EXHDR(now)) == 0 &&
			VARSIZE_ANY_EXHDR(now) == VARSIZE_ANY_EXHDR(id->extract))
			continue;
		if (changed == NULL)
			changed = dp_ref_ids_make();
		entry = dp_ref_ids_add(changed, &id->id);
		entry->extract = now;
		entry->appeared = id->extract == NULL;
	}
	if (queue != NULL)
		dp_queue_close(queue);
	if (w != NULL)
		dp_writer_close(w);
	if (changed != NULL)
	{
		dp_ref_pass(ref, changed);
		dp_ref_ids_free(changed);
	}
	SPI_finish();
	dp_ref_ids_free(set);
}

/*
 * Processes all ids that a statement collected for the table, or only those that do not wait for
 * dp_ref_referenced_rows().
 */
static void
handle_collected(Oid target, bool all)
{
	List *names = NIL;
	ListCell *lc;

	foreach(lc, dp_ref_collecting_of(target))
		names = lappend(names, ((DpRefCollecting *) lfirst(lc))->name);
	foreach(lc, names)
	{
		DpReference *ref = dp_reference(dp_decl_find(target, "reference", lfirst(lc)));

		if (all || !dp_ref_locked_later(ref))
			reference_after(ref);
	}
}

void
dp_ref_before_derived(Oid target)
{
	if (dp_ref_collecting_any())
	{
		dp_ref_lock_absent_wanted(target);
		handle_collected(target, false);
	}
}

void
dp_ref_after_derived(Oid target)
{
	if (dp_ref_collecting_any())
		handle_collected(target, true);
}
