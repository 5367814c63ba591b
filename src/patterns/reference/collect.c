/*
 * collect.c
 *		The extended reference pattern: ids collected by the row triggers of a
 *		statement until its own trigger processes them.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/compare.h"
#include "bson/reader.h"
#include "patterns/reference/collect.h"

/* Of DpRefCollecting.  A pass that was rolled back writes no more. */
static DpStates collecting = { .ended = dp_ref_pass_forget, .rolled_back = dp_ref_pass_forget };

static DpRefCollecting *collecting_find(DpReference *ref, bool of_source);
static void run_add_all(DpRefRun *run, const DpRefRun *more);

/*
 * Runs of ids.
 */
DpRefRun *
dp_ref_run_make(void)
{
	MemoryContext context = AllocSetContextCreate(TopTransactionContext, "docpatterns references",
												  ALLOCSET_SMALL_SIZES);
	DpRefRun *run = MemoryContextAllocZero(context, sizeof(DpRefRun));

	run->context = context;
	return run;
}

void
dp_ref_run_free(DpRefRun *run)
{
	MemoryContextDelete(run->context);
}

/* The position of the id in the hash table, or of its insertion */
static int
run_bucket(const DpRefRun *run, const DpValue *id, uint64 hash)
{
	int at = hash & (run->nbuckets - 1);

	while (run->buckets[at] != 0)
	{
		const DpRefId *entry = run->ids[run->buckets[at] - 1];

		if (entry->hash == hash && dp_value_compare(&entry->id, id) == 0)
			break;
		at = (at + 1) & (run->nbuckets - 1);
	}
	return at;
}

DpRefId *
dp_ref_run_find(DpRefRun *run, const DpValue *id)
{
	int at;

	if (run->n == 0)
		return NULL;
	at = run_bucket(run, id, dp_value_hash(id, 0));
	return run->buckets[at] == 0 ? NULL : run->ids[run->buckets[at] - 1];
}

/* Returns the entry of an id, created if missing. */
DpRefId *
dp_ref_run_add(DpRefRun *run, const DpValue *id)
{
	uint64 hash = dp_value_hash(id, 0);
	MemoryContext old = MemoryContextSwitchTo(run->context);
	DpRefId *entry;
	uint8 *copy;
	int at;
	int i;

	if (run->n * 2 >= run->nbuckets)
	{
		run->nbuckets = run->nbuckets == 0 ? 16 : run->nbuckets * 2;
		if (run->buckets != NULL)
			pfree(run->buckets);
		run->buckets = MemoryContextAllocHuge(run->context, sizeof(int) * run->nbuckets);
		memset(run->buckets, 0, sizeof(int) * run->nbuckets);
		for (i = 0; i < run->n; i++)
			run->buckets[run_bucket(run, &run->ids[i]->id, run->ids[i]->hash)] = i + 1;
	}
	at = run_bucket(run, id, hash);
	if (run->buckets[at] != 0)
	{
		MemoryContextSwitchTo(old);
		return run->ids[run->buckets[at] - 1];
	}

	if (run->n == run->cap)
	{
		run->cap = run->cap == 0 ? 8 : run->cap * 2;
		run->ids = run->ids == NULL ? palloc(sizeof(DpRefId *) * run->cap)
									: repalloc_huge(run->ids, sizeof(DpRefId *) * run->cap);
	}
	entry = palloc0(sizeof(DpRefId));
	copy = palloc(Max(id->len, 1));
	memcpy(copy, id->data, id->len);
	entry->id = *id;
	entry->id.data = copy;
	entry->hash = hash;
	run->ids[run->n++] = entry;
	run->buckets[at] = run->n;
	MemoryContextSwitchTo(old);
	return entry;
}

static int
id_compare(const void *a, const void *b)
{
	return dp_value_compare(&(*(DpRefId *const *) a)->id, &(*(DpRefId *const *) b)->id);
}

/* Put the ids in order; entries can still be found afterwards. */
void
dp_ref_run_sort(DpRefRun *run)
{
	int i;

	if (run->n < 2)
		return;
	qsort(run->ids, run->n, sizeof(DpRefId *), id_compare);
	memset(run->buckets, 0, sizeof(int) * run->nbuckets);
	for (i = 0; i < run->n; i++)
		run->buckets[run_bucket(run, &run->ids[i]->id, run->ids[i]->hash)] = i + 1;
}

/*
 * Returns the run of the declaration's triggers in this statement, or NULL. For a source, adds
 * runs of foreign key actions inside it.
 */
static DpRefCollecting *
collecting_find(DpReference *ref, bool of_source)
{
	DpStatement statement = dp_statement_now();
	DpRefCollecting *found = NULL;
	ListCell *lc;

	foreach(lc, collecting.list)
	{
		DpRefCollecting *c = lfirst(lc);

		if (!(of_source ? dp_statement_noted(&statement, &c->statement)
						: c->statement.depth == statement.depth) ||
			c->of_source != of_source || strcmp(c->link_id, ref->link_id) != 0 ||
			c->state.owner != GetCurrentSubTransactionId())
			continue;
		if (!of_source)
			return c;
		if (found == NULL)
		{
			found = c;
			continue;
		}
		run_add_all(found->run, c->run);
		collecting.list = foreach_delete_current(collecting.list, lc);
		dp_ref_run_free(c->run);
	}
	return found;
}

void
dp_ref_run_before(DpRefRun *run, DpRefId *id, struct varlena *extract)
{
	MemoryContext old = MemoryContextSwitchTo(run->context);

	if (extract != NULL && id->before == NULL)
		id->before = dp_document_to_varlena(DP_DOC_DATA(extract), DP_DOC_SIZE(extract));
	MemoryContextSwitchTo(old);
}

/* Adds the ids of a source's rows to another run. */
static void
run_add_all(DpRefRun *run, const DpRefRun *more)
{
	int i;

	for (i = 0; i < more->n; i++)
	{
		const DpRefId *from = more->ids[i];
		DpRefId *to = dp_ref_run_add(run, &from->id);

		dp_ref_run_before(run, to, from->before);
		to->removed |= from->removed;
		to->appeared |= from->appeared;
		if (from->becomes != NULL && to->becomes == NULL)
		{
			to->becomes = MemoryContextAlloc(run->context, sizeof(DpValue));
			*to->becomes = dp_ref_run_add(run, from->becomes)->id;
		}
	}
}

DpRefRun *
dp_ref_collecting(DpReference *ref, bool of_source)
{
	DpRefCollecting *c = collecting_find(ref, of_source);
	MemoryContext old;

	if (c != NULL)
		return c->run;
	c = dp_state_begin(&collecting, sizeof(DpRefCollecting));
	c->run = dp_ref_run_make();
	c->state.context = c->run->context;
	old = MemoryContextSwitchTo(c->run->context);
	c->link_id = pstrdup(ref->link_id);
	c->name = pstrdup(ref->decl->name);
	MemoryContextSwitchTo(old);
	c->target = ref->decl->target;
	c->source = ref->source != NULL ? ref->source->relid : InvalidOid;
	c->of_source = of_source;
	c->statement = dp_statement_now();
	return c->run;
}

DpRefRun *
dp_ref_collected(DpReference *ref, bool of_source)
{
	DpRefCollecting *c = collecting.list != NIL ? collecting_find(ref, of_source) : NULL;
	DpRefRun *run;

	if (c == NULL)
		return NULL;
	run = c->run;
	collecting.list = list_delete_ptr(collecting.list, c);
	pfree(c);
	return run;
}

DpRefRun *
dp_ref_collected_beside(DpReference *ref, char **name)
{
	DpStatement statement;
	ListCell *lc;

	if (collecting.list == NIL)
		return NULL;
	statement = dp_statement_now();
	foreach(lc, collecting.list)
	{
		DpRefCollecting *c = lfirst(lc);

		if (dp_statement_noted(&statement, &c->statement) && c->of_source &&
			c->target == ref->decl->target && c->source == ref->source->relid &&
			c->state.owner == GetCurrentSubTransactionId())
		{
			*name = c->name;
			collecting.list = foreach_delete_current(collecting.list, lc);
			return c->run;
		}
	}
	return NULL;
}

bool
dp_ref_collecting_any(void)
{
	return collecting.list != NIL;
}

List *
dp_ref_collecting_of(Oid target)
{
	List *result = NIL;
	int depth = collecting.list != NIL ? dp_trigger_depth() : 0;
	ListCell *lc;

	foreach(lc, collecting.list)
	{
		DpRefCollecting *c = lfirst(lc);

		if (!c->of_source && c->target == target && c->statement.depth == depth &&
			c->state.owner == GetCurrentSubTransactionId())
			result = lappend(result, c);
	}
	return result;
}

/* ---------------------------------------------------------------- rows that are proposed */

void
dp_ref_proposals_forget(DpReference *ref)
{
	DpRefCollecting *c = collecting.list != NIL ? collecting_find(ref, false) : NULL;

	if (c != NULL)
	{
		list_free(c->run->proposals);
		c->run->proposals = NIL;
	}
}

/* Remember the key of a row that names sources and is about to be inserted. */
void
dp_ref_proposal_note(DpReference *ref, HeapTuple tuple, TupleDesc desc)
{
	DpRefCollecting *c = collecting.list != NIL ? collecting_find(ref, false) : NULL;
	MemoryContext old;
	DpKey key;

	if (c == NULL || c->run->proposals == NIL)
		return;
	dp_key_of_tuple(ref->decl, tuple, desc, &key);
	old = MemoryContextSwitchTo(c->run->context);
	if (c->run->proposed != NULL)
		pfree(c->run->proposed);
	c->run->proposed = dp_key_to_value(ref->decl, &key);
	if (ref->decl->nkeys == 1)
	{
		/* returns a bson_value unchanged */
		DpValue value = dp_value_of_varlena(c->run->proposed);

		c->run->proposed = dp_value_to_varlena(&value);
	}
	MemoryContextSwitchTo(old);
}

/*
 * A row is updated.  If it is the one that was proposed for insertion just
 * now, there was a conflict: the references of the proposal are none.
 */
void
dp_ref_proposal_withdraw(DpReference *ref, HeapTuple tuple, TupleDesc desc)
{
	DpRefCollecting *c = collecting.list != NIL ? collecting_find(ref, false) : NULL;
	DpKey key;
	DpValue proposed;
	DpValue updated;
	ListCell *lc;

	if (c == NULL || c->run->proposed == NULL)
		return;
	dp_key_of_tuple(ref->decl, tuple, desc, &key);
	proposed = dp_value_of_varlena(c->run->proposed);
	updated = dp_value_of_varlena(dp_key_to_value(ref->decl, &key));
	if (dp_value_compare(&proposed, &updated) == 0)
	{
		foreach(lc, c->run->proposals)
			((DpRefId *) lfirst(lc))->wanted--;
	}
	list_free(c->run->proposals);
	c->run->proposals = NIL;
	pfree(c->run->proposed);
	c->run->proposed = NULL;
}
