/*
 * entries.c
 *		Index entries that are made together, in the order of each index.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/itup.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"

#include "kit/rows/entries.h"

/* Collected entries of one index */
typedef struct Pile
{
	Relation index;
	IndexInfo *info;
	Tuplesortstate *sort; /* NULL: entries are made at once */
	IndexUniqueCheck check;
} Pile;

struct DpEntries
{
	Relation rel;
	MemoryContext context; /* of this */
	MemoryContext scratch; /* for one entry */
	int npiles;
	Pile piles[FLEXIBLE_ARRAY_MEMBER];
};

static bool keys_stay(Relation rel, Relation index, const IndexInfo *info, AttrNumber changed);

/* Deferred uniqueness and exclusion constraints need the result for each row. */
bool
dp_entries_possible(ResultRelInfo *info)
{
	int i;

	for (i = 0; i < info->ri_NumIndices; i++)
	{
		IndexInfo *index = info->ri_IndexRelationInfo[i];

		if (index->ii_ExclusionOps != NULL ||
			(index->ii_Unique && !info->ri_IndexRelationDescs[i]->rd_index->indimmediate))
			return false;
	}
	return true;
}

DpEntries *
dp_entries_begin(ResultRelInfo *info, AttrNumber same)
{
	DpEntries *entries = palloc0(offsetof(DpEntries, piles) + sizeof(Pile) * info->ri_NumIndices);
	int nsorts = 0;
	int memory;
	int i;

	entries->rel = info->ri_RelationDesc;
	entries->context = CurrentMemoryContext;
	entries->scratch = AllocSetContextCreate(CurrentMemoryContext, "docpatterns index entry",
											 ALLOCSET_DEFAULT_SIZES);
	for (i = 0; i < info->ri_NumIndices; i++)
	{
		Pile *pile = &entries->piles[entries->npiles];

		if (!info->ri_IndexRelationInfo[i]->ii_ReadyForInserts)
			continue;
		pile->index = info->ri_IndexRelationDescs[i];
		pile->info = info->ri_IndexRelationInfo[i];

		/* an entry with the same keys was checked when it was made, and excludes others */
		pile->check = !pile->index->rd_index->indisunique ||
							  keys_stay(entries->rel, pile->index, pile->info, same)
						  ? UNIQUE_CHECK_NO
						  : UNIQUE_CHECK_YES;
		if (pile->index->rd_rel->relam == BTREE_AM_OID)
			nsorts++;
		entries->npiles++;
	}
	memory = Max(64, work_mem / Max(nsorts, 1));
	for (i = 0; i < entries->npiles; i++)
	{
		Pile *pile = &entries->piles[i];

		if (pile->index->rd_rel->relam == BTREE_AM_OID)
			pile->sort = tuplesort_begin_index_btree(entries->rel, pile->index, false, false,
													 memory, NULL, TUPLESORT_NONE);
	}
	return entries;
}

/* True if an index has only ordinary columns, without the changed one and generated ones. */
static bool
keys_stay(Relation rel, Relation index, const IndexInfo *info, AttrNumber changed)
{
	int i;

	if (info->ii_Expressions != NIL || info->ii_Predicate != NIL)
		return false;
	for (i = 0; i < info->ii_NumIndexAttrs; i++)
	{
		AttrNumber attnum = index->rd_index->indkey.values[i];

		if (attnum <= 0 || attnum == changed ||
			TupleDescAttr(RelationGetDescr(rel), attnum - 1)->attgenerated)
			return false;
	}
	return true;
}

void
dp_entries_add(DpEntries *entries, TupleTableSlot *slot, EState *estate)
{
	ExprContext *econtext = GetPerTupleExprContext(estate);
	MemoryContext old;
	int i;

	econtext->ecxt_scantuple = slot;
	for (i = 0; i < entries->npiles; i++)
	{
		Pile *pile = &entries->piles[i];
		Datum values[INDEX_MAX_KEYS];
		bool nulls[INDEX_MAX_KEYS];

		if (pile->info->ii_Predicate != NIL)
		{
			if (pile->info->ii_PredicateState == NULL)
				pile->info->ii_PredicateState = ExecPrepareQual(pile->info->ii_Predicate, estate);
			if (!ExecQual(pile->info->ii_PredicateState, econtext))
				continue;
		}
		FormIndexDatum(pile->info, slot, estate, values, nulls);
		if (pile->sort != NULL)
			tuplesort_putindextuplevalues(pile->sort, pile->index, &slot->tts_tid, values, nulls);
		else
		{
			old = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
			(void) index_insert(pile->index, values, nulls, &slot->tts_tid, entries->rel,
								pile->check, false, pile->info);
			MemoryContextSwitchTo(old);
		}
	}
}

/* Index by index, from left to right. */
void
dp_entries_write(DpEntries *entries)
{
	int i;

	for (i = 0; i < entries->npiles; i++)
	{
		Pile *pile = &entries->piles[i];
		IndexTuple entry;

		if (pile->sort == NULL)
			continue;
		tuplesort_performsort(pile->sort);
		while ((entry = tuplesort_getindextuple(pile->sort, true)) != NULL)
		{
			Datum values[INDEX_MAX_KEYS];
			bool nulls[INDEX_MAX_KEYS];
			MemoryContext old;

			CHECK_FOR_INTERRUPTS();
			index_deform_tuple(entry, RelationGetDescr(pile->index), values, nulls);
			old = MemoryContextSwitchTo(entries->scratch);
			(void) index_insert(pile->index, values, nulls, &entry->t_tid, entries->rel,
								pile->check, false, pile->info);
			MemoryContextSwitchTo(old);
			MemoryContextReset(entries->scratch);
		}
		tuplesort_end(pile->sort);
	}
	MemoryContextDelete(entries->scratch);
	pfree(entries);
}
