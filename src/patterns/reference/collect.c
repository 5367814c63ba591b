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
static void ids_add_all(DpRefIds *set, const DpRefIds *more);

/*
 * Runs of ids.
 */
DpRefIds *
dp_ref_ids_make(void)
{
	MemoryContext context = AllocSetContextCreate(TopTransactionContext, "docpatterns references",
												  ALLOCSET_SMALL_SIZES);
	DpRefIds *set = MemoryContextAllocZero(context, sizeof(DpRefIds));

	set->context = context;
	return set;
}

void
dp_ref_ids_free(DpRefIds *set)
{
	MemoryContextDelete(set->context);
}

/* The position of the id in the hash table, or of its insertion */
static int
ids_bucket(const DpRefIds *set, const DpValue *id, uint64 hash)
{
	int at = hash & (set->nbuckets - 1);

	while (set->buckets[at] != 0)
	{
		const DpRefId *entry = set->ids[set->buckets[at] - 1];

		if (entry->hash == hash && dp_value_compare(&entry->id, id) == 0)
			break;
		at = (at + 1) & (set->nbuckets - 1);
	}
	return at;
}

DpRefId *
dp_ref_ids_find(DpRefIds *set, const DpValue *id)
{
	int at;

	if (set->n == 0)
		return NULL;
	at = ids_bucket(set, id, dp_value_hash(id, 0));
	return set->buckets[at] == 0 ? NULL : set->ids[set->buckets[at] - 1];
}

/* Returns the entry of an id, created if missing. */
DpRefId *
dp_ref_ids_add(DpRefIds *set, const DpValue *id)
{
	uint64 hash = dp_value_hash(id, 0);
	MemoryContext old = MemoryContextSwitchTo(set->context);
	DpRefId *entry;
	uint8 *copy;
	int at;
	int i;

	if (set->n * 2 >= set->nbuckets)
	{
		set->nbuckets = set->nbuckets == 0 ? 16 : set->nbuckets * 2;
		if (set->buckets != NULL)
			pfree(set->buckets);
		set->buckets = MemoryContextAllocHuge(set->context, sizeof(int) * set->nbuckets);
		memset(set->buckets, 0, sizeof(int) * set->nbuckets);
		for (i = 0; i < set->n; i++)
			set->buckets[ids_bucket(set, &set->ids[i]->id, set->ids[i]->hash)] = i + 1;
	}
	at = ids_bucket(set, id, hash);
	if (set->buckets[at] != 0)
	{
		MemoryContextSwitchTo(old);
		return set->ids[set->buckets[at] - 1];
	}

	if (set->n == set->cap)
	{
		set->cap = set->cap == 0 ? 8 : set->cap * 2;
		set->ids = set->ids == NULL ? palloc(sizeof(DpRefId *) * set->cap)
									: repalloc_huge(set->ids, sizeof(DpRefId *) * set->cap);
	}
	entry = palloc0(sizeof(DpRefId));
	copy = palloc(Max(id->len, 1));
	memcpy(copy, id->data, id->len);
	entry->id = *id;
	entry->id.data = copy;
	entry->hash = hash;
	set->ids[set->n++] = entry;
	set->buckets[at] = set->n;
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
dp_ref_ids_sort(DpRefIds *set)
{
	int i;

	if (set->n < 2)
		return;
	qsort(set->ids, set->n, sizeof(DpRefId *), id_compare);
	memset(set->buckets, 0, sizeof(int) * set->nbuckets);
	for (i = 0; i < set->n; i++)
		set->buckets[ids_bucket(set, &set->ids[i]->id, set->ids[i]->hash)] = i + 1;
}

/*
 * Returns the set of the declaration's triggers in this statement, or NULL. For a source, adds
 * sets of foreign key actions inside it.
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
			c->of_source != of_source || c->target != ref->decl->target ||
			strcmp(c->link_id, ref->link_id) != 0 || c->state.owner != GetCurrentSubTransactionId())
			continue;
		if (!of_source)
			return c;
		if (found == NULL)
		{
			found = c;
			continue;
		}
		ids_add_all(found->set, c->set);
		collecting.list = foreach_delete_current(collecting.list, lc);
		dp_ref_ids_free(c->set);
	}
	return found;
}

void
dp_ref_ids_before(DpRefIds *set, DpRefId *id, struct varlena *extract)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);

	if (extract != NULL && id->before == NULL)
		id->before = dp_document_to_varlena(DP_DOC_DATA(extract), DP_DOC_SIZE(extract));
	MemoryContextSwitchTo(old);
}

DpRefSite *
dp_ref_keep_filled(DpRefIds *set, const DpRefSite *site)
{
	MemoryContext old = MemoryContextSwitchTo(set->context);
	DpRefSite *copy = palloc(sizeof(DpRefSite));
	uint8 *data = palloc(site->value.len + site->replacement.len);

	*copy = *site;
	copy->value.data = memcpy(data, site->value.data, site->value.len);
	data += site->value.len;
	copy->replacement.data = memcpy(data, site->replacement.data, site->replacement.len);
	MemoryContextSwitchTo(old);
	return copy;
}

/* Adds the ids of a source's rows to another set. */
static void
ids_add_all(DpRefIds *set, const DpRefIds *more)
{
	int i;

	for (i = 0; i < more->n; i++)
	{
		const DpRefId *from = more->ids[i];
		DpRefId *to = dp_ref_ids_add(set, &from->id);

		dp_ref_ids_before(set, to, from->before);
		to->removed |= from->removed;
		to->appeared |= from->appeared;
		if (from->becomes != NULL && to->becomes == NULL)
		{
			to->becomes = MemoryContextAlloc(set->context, sizeof(DpValue));
			*to->becomes = dp_ref_ids_add(set, from->becomes)->id;
		}
	}
}

DpRefIds *
dp_ref_collecting(DpReference *ref, bool of_source)
{
	DpRefCollecting *c = collecting_find(ref, of_source);
	MemoryContext old;

	if (c != NULL)
		return c->set;
	c = dp_state_begin(&collecting, sizeof(DpRefCollecting));
	c->set = dp_ref_ids_make();
	c->state.context = c->set->context;
	old = MemoryContextSwitchTo(c->set->context);
	c->link_id = pstrdup(ref->link_id);
	c->name = pstrdup(ref->decl->name);
	MemoryContextSwitchTo(old);
	c->target = ref->decl->target;
	c->source = ref->source != NULL ? ref->source->relid : InvalidOid;
	c->of_source = of_source;
	c->statement = dp_statement_now();
	return c->set;
}

DpRefIds *
dp_ref_collected(DpReference *ref, bool of_source)
{
	DpRefCollecting *c = collecting.list != NIL ? collecting_find(ref, of_source) : NULL;
	DpRefIds *set;

	if (c == NULL)
		return NULL;
	set = c->set;
	collecting.list = list_delete_ptr(collecting.list, c);
	pfree(c);
	return set;
}

DpRefIds *
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
			return c->set;
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
		list_free(c->set->proposals);
		c->set->proposals = NIL;
	}
}

/* Remember the key of a row that names sources and is about to be inserted. */
void
dp_ref_proposal_note(DpReference *ref, HeapTuple tuple, TupleDesc desc)
{
	DpRefCollecting *c = collecting.list != NIL ? collecting_find(ref, false) : NULL;
	MemoryContext old;
	DpKey key;

	if (c == NULL || c->set->proposals == NIL)
		return;
	dp_key_of_tuple(ref->decl, tuple, desc, &key);
	old = MemoryContextSwitchTo(c->set->context);
	if (c->set->proposed != NULL)
		pfree(c->set->proposed);
	c->set->proposed = dp_key_to_value(ref->decl, &key);
	if (ref->decl->nkeys == 1)
	{
		/* returns a bson_value unchanged */
		DpValue value = dp_value_of_varlena(c->set->proposed);

		c->set->proposed = dp_value_to_varlena(&value);
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

	if (c == NULL || c->set->proposed == NULL)
		return;
	dp_key_of_tuple(ref->decl, tuple, desc, &key);
	proposed = dp_value_of_varlena(c->set->proposed);
	updated = dp_value_of_varlena(dp_key_to_value(ref->decl, &key));
	if (dp_value_compare(&proposed, &updated) == 0)
	{
		foreach(lc, c->set->proposals)
			((DpRefId *) lfirst(lc))->wanted--;
	}
	list_free(c->set->proposals);
	c->set->proposals = NIL;
	pfree(c->set->proposed);
	c->set->proposed = NULL;
}
