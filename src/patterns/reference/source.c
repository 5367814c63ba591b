/*
 * source.c
 *		The extended reference pattern on the table to which documents refer:
 *		reading and locking its rows, and its triggers.
 *
 * AFTER INSERT, UPDATE or DELETE, for each row: collects the keys of new and
 * deleted rows and of rows with changed live fields or keys (a condition of the
 * trigger skips others).
 *
 * BEFORE UPDATE, for each row of a partitioned source whose key changes: the same,
 * because AFTER triggers see a row that moves to another partition as deleted and
 * inserted.
 *
 * AFTER INSERT, UPDATE, DELETE or TRUNCATE, for each statement: reads the present
 * rows with these keys and corrects the rows that refer to them, or queues the
 * keys in a deferred declaration.
 *
 * Everything is read as the owner, so that writers need no privileges on the
 * source; they only see the copied fields.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/text.h"
#include "kit/adopt.h"
#include "kit/derive/queue.h"
#include "kit/link.h"
#include "kit/locks.h"
#include "kit/note.h"
#include "kit/rows/table.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "kit/trigger.h"
#include "patterns/reference/reference.h"

/* The changed sources of a statement, for the declarations of one target */
typedef struct Changed
{
	DpReference *ref;
	DpRefPart *parts;
	int nparts;
} Changed;

static const char plan_read;

static SPIPlanPtr source_plan(DpReference *ref);
static struct varlena *source_document(DpReference *ref, const DpKey *key, DpRefLock lock,
									   DpWriter **kept, bool *deadlock);
static bool source_look(DpReference *ref, const DpKey *key, struct varlena **doc);
static struct varlena *row_extract(DpReference *ref, TriggerData *trigdata);
static void row_changed(DpReference *ref, TriggerData *trigdata);
static void take_changed(Changed *c);
static void pass_changed(Changed *c);
static DpValue row_id(DpReference *ref, Relation rel, HeapTuple tuple);
static void lock_appeared(const DpRefPart *parts, int nparts);
static DpRefIds *source_changed(DpReference *ref, DpRefIds *set);

/*
 * The source's table; false if there is none: the target was restored alone.
 */
bool
dp_ref_source(DpReference *ref)
{
	Oid relid;
	MemoryContext context = ref->decl->context;

	if (likely(ref->source != NULL))
		return true;
	relid = dp_link_side(ref->link_id, ref->decl->target);
	if (!OidIsValid(relid))
	{
		dp_link_require_owner(ref->link_id, false, ref->decl->target);
		return false;
	}
	ref->source_key = dp_lookup_primary(relid, context);
	ref->source = dp_decl_of_table(relid, "reference", ref->decl->name,
								   dp_decl_text(ref->decl, "source_doc_column"), context);
	return true;
}

/*
 * The extract of the source with that id, or NULL.
 */
struct varlena *
dp_ref_read(DpReference *ref, const DpValue *id, DpRefLock lock)
{
	return dp_ref_read_or_leave(ref, id, lock, NULL, NULL);
}

struct varlena *
dp_ref_read_or_leave(DpReference *ref, const DpValue *id, DpRefLock lock, DpWriter **kept,
					 bool *deadlock)
{
	MemoryContext caller = CurrentMemoryContext;
	struct varlena *doc = NULL;
	struct varlena *extract = NULL;
	DpKey key;

	if (!dp_ref_source(ref))
		return NULL;
	(void) source_plan(ref); /* finds the table again after it has changed */
	if (dp_key_of_value(ref->source, id, &key))
		doc = source_document(ref, &key, lock, kept, deadlock);
	MemoryContextSwitchTo(caller);
	if (doc != NULL)
	{
		extract = dp_ref_extract(ref, DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
		if (lock != DP_REF_READ)
			pfree(doc);
	}
	return extract;
}

/*
 * Returns the statement that reads a row of the source, after refreshing the cached facts of the
 * table.
 */
static SPIPlanPtr
source_plan(DpReference *ref)
{
	SPIPlanPtr plan = dp_plan(ref->decl, &plan_read);
	StringInfoData sql;
	Oid types[INDEX_MAX_KEYS];

	if (likely(plan != NULL))
		return plan;
	ref->source =
		dp_decl_of_table(ref->source->relid, "reference", ref->decl->name,
						 dp_decl_text(ref->decl, "source_doc_column"), ref->decl->context);
	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT %s FROM ", quote_identifier(ref->source->doc_column));
	dp_sql_table(&sql, ref->source->relid);
	appendStringInfoString(&sql, " WHERE ");
	dp_sql_key_match(&sql, ref->source);
	dp_sql_key_types(ref->source, types);
	return dp_plan_make(ref->decl, &plan_read, sql.data, ref->source->nkeys, types, 0);
}

/* The document of a row of the source; NULL if there is none (or it is null). */
static struct varlena *
source_document(DpReference *ref, const DpKey *key, DpRefLock lock, DpWriter **kept, bool *deadlock)
{
	struct varlena *doc = NULL;
	bool isnull;

	if (lock == DP_REF_READ)
	{
		if (source_look(ref, key, &doc))
			return doc;
		if (dp_run(ref->decl, source_plan(ref), (Datum *) key->values, NULL, DP_RUN_AS_OWNER, 1,
				   SPI_OK_SELECT) == 1)
			doc = (struct varlena *) DatumGetPointer(dp_result(0, 1, &isnull));
	}
	else
	{
		/*
		 * a row whose key has changed meanwhile is not the one that is meant: it is looked for
		 * again
		 */
		DpWriter *w = kept != NULL ? *kept : NULL;
		DpLockResult locked = DP_LOCK_DELETED;

		if (w == NULL)
			w = dp_writer_open(ref->source->relid, ref->source->doc_column, 0, ref->decl->name);

		dp_writer_leave(w, deadlock != NULL);
		dp_writer_refresh(w);
		while (locked == DP_LOCK_DELETED && dp_writer_find(w, ref->source_key, key->values))
		{
			DpKey now;

			CHECK_FOR_INTERRUPTS();
			locked = dp_writer_lock(w, lock == DP_REF_LOCK ? LockTupleShare : LockTupleKeyShare);
			if (locked == DP_LOCK_CHANGED)
			{
				dp_writer_key(w, &now);
				if (!dp_key_identical(ref->source, key, &now))
					locked = DP_LOCK_DELETED;
			}
			if (locked == DP_LOCK_DELETED)
				dp_writer_refresh(w);
		}
		if (locked == DP_LOCK_DEADLOCK)
			*deadlock = true;
		else if (locked != DP_LOCK_DELETED)
		{
			doc = dp_writer_document(w);
			if (doc != NULL)
				doc = dp_document_to_varlena(DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
		}
		if (kept != NULL)
			*kept = w;
		else
			dp_writer_close(w);
	}
	return doc;
}

/* Reads the document without a statement; false if a statement must find the row. */
static bool
source_look(DpReference *ref, const DpKey *key, struct varlena **doc)
{
	Oid relid = ref->source->relid;
	DpTable t;
	bool possible;
	bool isnull;

	if (get_rel_relkind(relid) != RELKIND_RELATION || dp_is_distributed(relid))
		return false;
	CommandCounterIncrement();
	dp_table_open(&t, relid, AccessShareLock);
	possible = OidIsValid(t.indexes->key->index) && t.indexes->key->nkeys == key->n;
	if (possible)
	{
		Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());

		if (dp_table_find(&t, snapshot, key->values, key->n))
		{
			Datum value = slot_getattr(t.row, ref->source->doc_attnum, &isnull);

			if (!isnull)
			{
				*doc = PG_DETOAST_DATUM_PACKED(value);
				*doc = dp_document_to_varlena(DP_DOC_DATA(*doc), DP_DOC_SIZE(*doc));
			}
		}
		ExecClearTuple(t.row);
		UnregisterSnapshot(snapshot);
	}
	dp_table_close(&t);
	return possible;
}

/*
 * reference_source_trigger(): the triggers of the pattern on the source.
 */
DP_FUNCTION(dp_reference_source_trigger);
Datum
dp_reference_source_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	List *decls = dp_trigger_enter_sides(fcinfo, "reference",
										 DP_BEFORE_ROW(DP_UPDATE) | DP_AFTER_ROW(DP_WRITE) |
											 DP_AFTER_STATEMENT(DP_ANY));
	Changed *changed = palloc0(sizeof(Changed) * list_length(decls));
	int n = 0;
	int i;
	ListCell *lc;

	foreach(lc, decls)
	{
		DpReference *ref = dp_reference(lfirst(lc));

		if (strcmp(ref->link_id, trigdata->tg_trigger->tgargs[1]) != 0 || !dp_ref_source(ref))
			continue;
		if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
			row_changed(ref, trigdata);
		else
			changed[n++].ref = ref;
	}
	/* what was collected belongs to a command, and the passes are others */
	for (i = 0; i < n; i++)
		take_changed(&changed[i]);
	for (i = 0; i < n; i++)
	{
		SPI_connect();
		if (TRIGGER_FIRED_BY_TRUNCATE(trigdata->tg_event) &&
			changed[i].ref->on_delete != DP_REF_KEEP)
			dp_ref_truncated(changed[i].ref);
		pass_changed(&changed[i]);
		SPI_finish();
	}
	return dp_trigger_pass(fcinfo);
}

/* Collects the source of a row. */
static void
row_changed(DpReference *ref, TriggerData *trigdata)
{
	DpRefIds *set = dp_ref_collecting(ref, true);
	DpValue id = row_id(ref, trigdata->tg_relation, trigdata->tg_trigtuple);
	DpValue now;

	if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		dp_ref_ids_add(set, &id)->appeared = true;
	else if (TRIGGER_FIRED_BY_DELETE(trigdata->tg_event))
		dp_ref_ids_add(set, &id)->removed = true;
	else
	{
		now = row_id(ref, trigdata->tg_relation, trigdata->tg_newtuple);
		if (dp_value_identical(&id, &now))
			(void) dp_ref_ids_add(set, &id);
		else
		{
			DpRefId *entry = dp_ref_ids_add(set, &id);
			DpRefId *other;

			entry->removed = true;
			entry->becomes = MemoryContextAlloc(set->context, sizeof(DpValue));
			other = dp_ref_ids_add(set, &now);
			other->appeared = true;
			*entry->becomes = other->id;
		}
	}
	if (unlikely(dp_holding(ref->decl)) && !TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		dp_ref_ids_before(set, dp_ref_ids_add(set, &id), row_extract(ref, trigdata));
}

/* Takes all declarations of the target together, with the first of their triggers. */
static void
take_changed(Changed *c)
{
	Oid target = c->ref->decl->target;
	DpRefIds *set;
	char *name;

	c->parts = palloc(sizeof(DpRefPart) * list_length(dp_decls(target)));
	while ((set = dp_ref_collected_beside(c->ref, &name)) != NULL)
	{
		DpReference *other = dp_reference(dp_decl_find(target, "reference", name));

		if (!dp_ref_source(other))
		{
			dp_ref_ids_free(set);
			continue;
		}
		dp_ref_ids_sort(set);
		c->parts[c->nparts].ref = other;
		c->parts[c->nparts++].set = set;
	}
}

/* Brings the copies of the target in line. */
static void
pass_changed(Changed *c)
{
	DpRefPart *parts = c->parts;
	int n = c->nparts;
	int nparts = 0;
	int i;

	lock_appeared(parts, n);
	for (i = 0; i < n; i++)
	{
		DpReference *other = parts[i].ref;
		DpRefIds *pass = source_changed(other, parts[i].set);

		dp_ref_ids_free(parts[i].set);
		if (pass != NULL)
		{
			parts[nparts].ref = other;
			parts[nparts++].set = pass;
		}
	}
	if (nparts > 0)
		dp_ref_pass_parts(parts, nparts);
	while (nparts > 0)
		dp_ref_ids_free(parts[--nparts].set);
}

/*
 * Waits for transactions that have referred to new sources while these were missing, and for
 * refreshes that read their former state; blocks others.
 */
static void
lock_appeared(const DpRefPart *parts, int nparts)
{
	uint64 *hashes = NULL;
	int n = 0;
	int all = 0;
	int i;
	int k;

	for (k = 0; k < nparts; k++)
		all += parts[k].set->n;
	for (k = 0; k < nparts; k++)
	{
		for (i = 0; i < parts[k].set->n; i++)
		{
			if (!parts[k].set->ids[i]->appeared ||
				(parts[k].ref->missing_error && !parts[k].ref->deferred))
				continue;
			if (hashes == NULL)
				hashes = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint64) * all);
			hashes[n++] = dp_ref_absent_hash(parts[k].ref, &parts[k].set->ids[i]->id);
		}
	}
	dp_lock_absent(hashes, n, ShareLock);
}

/* Returns the set with the present state of its ids for a pass; NULL if nothing is to be done. */
static DpRefIds *
source_changed(DpReference *ref, DpRefIds *set)
{
	DpRefIds *pass = dp_ref_ids_make();
	DpQueue *queue = NULL;
	int i;

	for (i = 0; i < set->n; i++)
	{
		DpRefId *id = set->ids[i];
		MemoryContext old = MemoryContextSwitchTo(pass->context);
		struct varlena *extract = dp_ref_read(ref, &id->id, DP_REF_READ);
		struct varlena *moved = extract == NULL && id->becomes != NULL
									? dp_ref_read(ref, id->becomes, DP_REF_READ)
									: NULL;
		DpRefId *entry = NULL;

		MemoryContextSwitchTo(old);
		CHECK_FOR_INTERRUPTS();
		if (id->becomes != NULL && extract != NULL)
		{
			/* two rows have exchanged their keys: references follow the row */
			old = MemoryContextSwitchTo(pass->context);
			moved = dp_ref_read(ref, id->becomes, DP_REF_READ);
			MemoryContextSwitchTo(old);
		}
		if (moved != NULL)
		{
			entry = dp_ref_ids_add(pass, &id->id);
			entry->extract = moved;
			entry->becomes = MemoryContextAlloc(pass->context, sizeof(DpValue));
			*entry->becomes = *id->becomes;
			entry->becomes->data =
				memcpy(MemoryContextAlloc(pass->context, Max(id->becomes->len, 1)),
					   id->becomes->data, id->becomes->len);
		}
		else if (extract == NULL)
		{
			if (id->removed && ref->on_delete != DP_REF_KEEP)
				dp_ref_ids_add(pass, &id->id)->removed = true;
		}
		else if (ref->deferred && !id->appeared)
		{
			if (queue == NULL)
				queue = dp_queue_open(ref->decl, "second_link_id");
			dp_queue_add(queue, &id->id, NULL);
		}
		else
		{
			entry = dp_ref_ids_add(pass, &id->id);
			entry->extract = extract;
			entry->appeared = id->appeared;
		}
	}
	if (queue != NULL)
		dp_queue_close(queue);
	for (i = 0; i < set->n; i++)
	{
		DpRefId *entry =
			set->ids[i]->before != NULL ? dp_ref_ids_find(pass, &set->ids[i]->id) : NULL;

		if (entry != NULL)
			dp_ref_ids_before(pass, entry, set->ids[i]->before);
	}
	if (pass->n > 0)
		return pass;
	dp_ref_ids_free(pass);
	return NULL;
}

/*
 * Returns the fields that copies had of a row of the source before it was changed; NULL without a
 * document.
 */
static struct varlena *
row_extract(DpReference *ref, TriggerData *trigdata)
{
	AttrNumber attnum =
		get_attnum(RelationGetRelid(trigdata->tg_relation), ref->source->doc_column);
	struct varlena *doc =
		dp_tuple_bson(trigdata->tg_trigtuple, RelationGetDescr(trigdata->tg_relation), attnum);

	return doc == NULL ? NULL : dp_ref_extract(ref, DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
}

/* The id of a row of the source, or of a partition of it. */
static DpValue
row_id(DpReference *ref, Relation rel, HeapTuple tuple)
{
	DpKey key;

	dp_key_of_row(ref->source, rel, tuple, &key);
	return dp_value_of_varlena(dp_key_to_value(ref->source, &key));
}

void
dp_ref_missing(DpReference *ref, const DpValue *id)
{
	StringInfoData field;

	initStringInfo(&field);
	dp_path_to_text(&field, ref->field);
	ereport(ERROR,
			(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
			 errmsg("a document in table \"%s\" refers to a document that does not exist",
					dp_relation_name(ref->decl->target)),
			 errdetail("Its field \"%s\" contains %s, which is not a key of table \"%s\".",
					   field.data, dp_value_to_message(id),
					   ref->source != NULL ? dp_relation_name(ref->source->relid) : "(dropped)")));
}
