/*
 * recompute.c
 *		Derived data: recomputes groups from their sources, because target rows are new or
 *		changes are unknown.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "kit/adopt.h"
#include "kit/derive/batch.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"

/* How many rows are recomputed at a time */
#define WHOLE_BATCH 1000

static void rows_groups(DpDeriveBatch *batch, Oid target, List *derivations, List *keys, bool own);
static bool row_is_own(DpWriter *w);
static bool row_is_update(DpWriter *w);
static bool source_is_void(Oid source);
static int64 target_whole(List *derivations, bool emptied, bool forced);

/*
 * Adds the groups of target rows with these keys (bson_values) to the batch, to be recomputed. own:
 * only of rows that this transaction wrote.
 */
static void
rows_groups(DpDeriveBatch *batch, Oid target, List *derivations, List *keys, bool own)
{
	DpDerivation *first = linitial(derivations);
	DpLookup *primary =
		first->link == NULL ? first->lookup : dp_lookup_primary(target, batch->context);
	DpWriter *w =
		dp_writer_open(target, first->methods->main_on_source ? NULL : first->decl->doc_column, 0,
					   NULL);
	ListCell *lc;
	ListCell *lc2;

	dp_writer_refresh(w);
	foreach(lc, keys)
	{
		DpValue value = dp_value_of_varlena(lfirst(lc));
		DpKey key;
		struct varlena *doc;

		CHECK_FOR_INTERRUPTS();
		if (first->methods->main_on_source)
			key.values[0] = PointerGetDatum(lfirst(lc));
		else if (!dp_key_of_value(first->decl, &value, &key))
			continue;
		if (!dp_writer_find(w, primary, key.values) || (own && !row_is_own(w)))
			continue;
		doc = dp_writer_document(w);
		foreach(lc2, derivations)
		{
			DpDerivation *d = lfirst(lc2);
			DpValue link;

			if (dp_derive_key_of_row(d, w, doc, &link))
				dp_derive_group(batch, d, &link)->recompute = true;
		}
	}
	(void) dp_writer_close(w);
}

/* True if this transaction wrote the current row, which then stays until it ends. */
static bool
row_is_own(DpWriter *w)
{
	bool isnull;
	Datum xmin = slot_getsysattr(dp_writer_row(w), MinTransactionIdAttributeNumber, &isnull);

	return TransactionIdIsCurrentTransactionId(DatumGetTransactionId(xmin));
}

/* True for an updated version of a row. */
static bool
row_is_update(DpWriter *w)
{
	HeapTuple tuple = ExecFetchSlotHeapTuple(dp_writer_row(w), false, NULL);

	return (tuple->t_data->t_infomask & HEAP_UPDATED) != 0;
}

/*
 * New rows of a target, and rows with another link.  Concurrent writers of the source either see
 * them, or have locked the groups, and this function waits for them.  Rows skipped by ON CONFLICT
 * DO NOTHING are not included: another transaction may delete them, and two transactions that
 * searched them again with their groups locked would deadlock.
 */
void
dp_derive_late(Oid target, List *keys)
{
	List *derivations = NIL;
	DpDeriveBatch *batch;
	DpGroup **locked;
	DpGroup *group;
	MemoryContext old;
	ListCell *lc;
	int n = 0;

	foreach(lc, dp_derivations_of_target(target))
	{
		DpDerivation *d = lfirst(lc);

		if (!d->guarded && OidIsValid(d->source) && dp_decl_maintained(d->decl))
			derivations = lappend(derivations, d);
	}
	if (derivations == NIL)
		return;

	batch = dp_derive_begin();
	old = MemoryContextSwitchTo(batch->context);
	rows_groups(batch, target, derivations, keys, true);
	locked = MemoryContextAllocExtended(batch->context, sizeof(DpGroup *) * Max(batch->ngroups, 1),
										MCXT_ALLOC_HUGE);
	for (group = batch->groups; group != NULL; group = group->next)
	{
		if (!group->derivation->deferred)
			locked[n++] = group;
	}
	dp_derive_lock_groups(locked, n, ShareLock);
	batch->locked = true;

	/* while the groups are locked, an empty source stays empty for them */
	foreach(lc, derivations)
	{
		DpDerivation *d = lfirst(lc);

		if (!source_is_void(d->source))
			continue;
		for (group = batch->groups; group != NULL; group = group->next)
		{
			if (group->derivation == d)
				group->emptied = true;
		}
	}
	MemoryContextSwitchTo(old);
	(void) dp_derive_end(batch, false);
}

/*
 * Moves new user data of written rows to the source.  A row that ON CONFLICT DO UPDATE changed is
 * in the list twice, last as an inserted one.
 */
void
dp_derive_move_user_data(Oid target, List *with_user_data)
{
	DpValue last_name = { 0 };
	DpValue last_key = { 0 };
	ListCell *lc;

	foreach(lc, with_user_data)
	{
		DpValue array = dp_value_of_varlena(lfirst(lc));
		DpIter iter;
		DpValue name;
		DpValue value;
		DpValue inserted;
		DpDerivation *d = NULL;
		DpKey key;
		DpWriter *w;
		struct varlena *doc = NULL;
		DpValue link;
		bool has = false;
		ListCell *lc2;

		CHECK_FOR_INTERRUPTS();
		dp_iter_init_value(&iter, &array);
		if (!dp_iter_next_value(&iter, &name) || !dp_iter_next_value(&iter, &value) ||
			!dp_iter_next_value(&iter, &inserted))
			elog(ERROR, "a row was not collected as it should be");
		if (last_name.data != NULL && dp_value_identical(&name, &last_name) &&
			dp_value_identical(&value, &last_key))
			continue;
		last_name = name;
		last_key = value;
		foreach(lc2, dp_derivations_of_target(target))
		{
			DpDerivation *other = lfirst(lc2);

			if (strlen(other->decl->name) == DP_STRING_LEN(&name) &&
				memcmp(other->decl->name, DP_STRING_DATA(&name), DP_STRING_LEN(&name)) == 0)
				d = other;
		}
		if (d == NULL || !OidIsValid(d->source) || !dp_decl_maintained(d->decl) ||
			!dp_key_of_value(d->decl, &value, &key))
			continue;
		w = dp_writer_open(target, d->decl->doc_column, 0, NULL);
		dp_writer_refresh(w);
		if (dp_writer_find(w, dp_lookup_primary(target, CurrentMemoryContext), key.values) &&
			row_is_own(w))
			doc = dp_writer_document(w);
		/*
		 * a value that ON CONFLICT DO UPDATE left in a guarded field is from before the declaration
		 */
		if (doc != NULL && inserted.data[0] != 0 && dp_holding(d->decl) && row_is_update(w))
			doc = NULL;
		if (doc != NULL)
		{
			doc = dp_document_to_varlena(DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
			has = dp_derive_key_of_row(d, w, doc, &link);
			if (has)
				link = dp_value_of_varlena(dp_value_to_varlena(&link));
		}
		(void) dp_writer_close(w);
		if (doc != NULL)
			d->methods->move_user_data(d, has ? &link : NULL, doc, inserted.data[0] != 0);
	}
}

/* True if an ordinary table has no pages, as before it is loaded. */
static bool
source_is_void(Oid source)
{
	Relation rel;
	bool result;

	if (get_rel_relkind(source) != RELKIND_RELATION)
		return false;
	rel = RelationIdGetRelation(source);
	result = RelationGetNumberOfBlocks(rel) == 0;
	RelationClose(rel);
	return result;
}

/*
 * Recomputes all rows of the derivations' targets, in key order.  Returns the number of rows
 * written.
 */
int64
dp_derive_whole(List *derivations, bool emptied, bool forced)
{
	List *done = NIL;
	int64 written = 0;
	ListCell *lc;

	foreach(lc, derivations)
	{
		DpDerivation *d = lfirst(lc);
		List *together = NIL;
		ListCell *lc2;

		if (list_member_oid(done, d->target))
			continue;
		done = lappend_oid(done, d->target);
		foreach(lc2, derivations)
		{
			if (((DpDerivation *) lfirst(lc2))->target == d->target)
				together = lappend(together, lfirst(lc2));
		}
		written += target_whole(together, emptied, forced);
	}
	return written;
}

/* The same for derivations of one target. */
static int64
target_whole(List *derivations, bool emptied, bool forced)
{
	DpDerivation *d = linitial(derivations);
	MemoryContext batch_context =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns batch", ALLOCSET_DEFAULT_SIZES);
	StringInfoData sql;
	Portal portal;
	DpActor self;
	int64 written = 0;
	ListCell *lc;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	if (d->methods->main_on_source)
		appendStringInfoString(&sql, "_id");
	else
	{
		dp_sql_own_schema(&sql);
		appendStringInfoString(&sql, d->decl->nkeys == 1 ? "to_bson(" : "bson_array(");
		dp_sql_key_list(&sql, d->decl);
		appendStringInfoChar(&sql, ')');
	}
	appendStringInfoString(&sql, " FROM ");
	dp_sql_table(&sql, d->target);
	appendStringInfoString(&sql, " ORDER BY ");
	if (d->methods->main_on_source)
		appendStringInfoString(&sql, "_id");
	else
		dp_sql_key_list(&sql, d->decl);

	SPI_connect();
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	dp_owner_begin(d->decl->owner, &self);
	portal =
		SPI_cursor_open_with_args(NULL, sql.data, 0, NULL, NULL, NULL, true, CURSOR_OPT_NO_SCROLL);
	dp_owner_end(&self);
	PopActiveSnapshot();
	for (;;)
	{
		List *keys = NIL;
		DpDeriveBatch *batch;
		DpGroup *group;
		MemoryContext old;
		uint64 i;

		dp_owner_begin(d->decl->owner, &self);
		SPI_cursor_fetch(portal, true, WHOLE_BATCH);
		dp_owner_end(&self);
		if (SPI_processed == 0)
			break;
		old = MemoryContextSwitchTo(batch_context);
		for (i = 0; i < SPI_processed; i++)
		{
			bool isnull;

			keys = lappend(keys,
						   PG_DETOAST_DATUM_COPY(SPI_getbinval(SPI_tuptable->vals[i],
															   SPI_tuptable->tupdesc, 1, &isnull)));
		}
		SPI_freetuptable(SPI_tuptable);
		batch = dp_derive_begin();
		rows_groups(batch, d->target, derivations, keys, false);
		for (group = batch->groups; group != NULL; group = group->next)
			group->emptied = emptied;
		written += dp_derive_end(batch, forced);
		MemoryContextSwitchTo(old);
		MemoryContextReset(batch_context);
	}
	SPI_cursor_close(portal);
	SPI_finish();

	/* groups without a target row */
	if (!emptied)
	{
		DpDeriveBatch *batch = dp_derive_begin();

		foreach(lc, derivations)
		{
			DpDerivation *other = lfirst(lc);

			if (other->create_missing && other->methods->all_groups != NULL)
				other->methods->all_groups(other, batch);
		}
		written += dp_derive_end(batch, forced);
	}
	MemoryContextDelete(batch_context);
	return written;
}

void
dp_derive_recompute_group(DpDerivation *d, const DpValue *key)
{
	DpDeriveBatch *batch;
	DpGroup *group;

	if (!OidIsValid(d->source))
		return;
	batch = dp_derive_begin();
	group = dp_derive_group(batch, d, key);
	group->recompute = true;
	group->from_note = true;
	(void) dp_derive_end(batch, true);
}

bool
dp_derive_repair_row(Oid target, DpDerivation *d, const DpKey *key)
{
	List *derivations = d != NULL ? list_make1(d) : dp_derivations_of_target(target);
	DpDeriveBatch *batch;
	List *keys;

	if (derivations == NIL)
		return false;
	batch = dp_derive_begin();
	keys = list_make1(dp_key_to_value(((DpDerivation *) linitial(derivations))->decl, key));
	rows_groups(batch, target, derivations, keys, false);
	return dp_derive_end(batch, true) > 0;
}
