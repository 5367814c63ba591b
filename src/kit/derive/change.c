/*
 * change.c
 *		The changes that a statement made to a table from which data are derived.
 *
 * A statement's BEFORE trigger makes a note of the event, or adds it to the existing note.  An
 * AFTER trigger removes its event, and the last one returns everything collected.  The note is
 * found by table and statement: an AFTER trigger is called by its statement or, for a foreign key
 * action (whose triggers belong to the outer statement), by the outer one.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/tupconvert.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "bson/builder.h"
#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/derive/change.h"
#include "kit/derive/derive.h"
#include "kit/link.h"
#include "kit/note.h"
#include "kit/rows/lookup.h"
#include "kit/statement.h"
#include "kit/trigger.h"
#include "mql/pipeline/row.h"

/* Old and new rows of one event */
typedef struct Event
{
	Tuplestorestate *before;
	Tuplestorestate *after;
} Event;

#define EVENTS 4 /* INSERT, DELETE, UPDATE, TRUNCATE, as in TriggerEvent */
#define EVENT_OF(event) ((event) &TRIGGER_EVENT_OPMASK)

/* A statement that has not ended */
typedef struct Note
{
	DpState state; /* its context has the collected rows */
	Oid relid;
	Oid table; /* the table or its topmost ancestor */
	DpStatement statement;
	uint32 pending; /* bits of events whose AFTER trigger has not fired */
	bool truncated;
	Oid collector; /* the AFTER ROW trigger that collects; others do nothing */
	Event events[EVENTS];
} Note;

struct DpChanges
{
	Oid relid;
	Oid table;
	bool wholly;
	bool emptied;
	int outer;               /* while handled: the number of outer changes being handled */
	MemoryContext collected; /* to be deleted in the end, or NULL */
	Event events[EVENTS];
	int event; /* being read */
	bool reading;
	int before_pointer[EVENTS];
	int after_pointer[EVENTS];

	/* instead: all rows of a partition */
	Relation partition;
	bool attached;
	bool recompute;
	TableScanDesc scan;
	Snapshot snapshot;

	Relation rel; /* open for its columns */
	Relation top; /* likewise, if its columns differ */
	TupleConversionMap *map;
	TupleTableSlot *before;
	TupleTableSlot *after;
	TupleTableSlot *before_top;
	TupleTableSlot *after_top;
};

/* Changes that are passed to handlers */
typedef struct Handling
{
	DpState state;
	Oid table;
} Handling;

/* The declarations that use a source */
typedef struct SourceDeclsEntry
{
	Oid relid; /* hash key */
	uint64 generation;
	MemoryContext context;
	List *decls;
} SourceDeclsEntry;

static DpStates notes;     /* of Note */
static DpStates handlings; /* of Handling, the innermost last */
static HTAB *source_decls_table = NULL;

static Note *note_find(Oid relid, const DpStatement *statement, uint32 event);
static Note *note_begin(Oid relid);
static DpChanges *changes_of_trigger(const TriggerData *trigdata);
static void changes_handle(DpChanges *changes);
static void note_collect(Note *note, const TriggerData *trigdata);
static DpChanges *changes_make(Oid relid, Oid table);
static void changes_open(DpChanges *changes);
static bool changes_row(DpChanges *changes, Tuplestorestate *rows, int *pointer, bool first,
						TupleTableSlot *slot);
static Oid topmost(Oid relid);
static struct varlena *row_document(TupleTableSlot *row);
static List *source_decls_read(Oid relid);
static void source_decls_of(Oid source, List **decls);
static DpDecl *decl_of_link(Oid relid, const char *link_id);
static void changes_end(DpChanges *changes);

Datum
dp_changes_trigger(FunctionCallInfo fcinfo, const char *pattern)
{
	DpChanges *changes =
		changes_of_trigger(dp_trigger_require(fcinfo, pattern,
											  DP_BEFORE_STATEMENT(DP_ANY) | DP_AFTER_ROW(DP_WRITE) |
												  DP_AFTER_STATEMENT(DP_ANY),
											  1));

	if (changes != NULL)
		changes_handle(changes);
	return PointerGetDatum(NULL);
}

/* Records, collects, or returns the changes; NULL: nothing to handle, not yet or no longer. */
static DpChanges *
changes_of_trigger(const TriggerData *trigdata)
{
	Oid relid = RelationGetRelid(trigdata->tg_relation);
	int event = EVENT_OF(trigdata->tg_event);
	DpStatement statement = dp_statement_now();
	Note *note;
	DpChanges *changes;

	if (dp_trigger_elsewhere(trigdata))
		return NULL;
	dp_note_watch(relid);
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
	{
		note = note_find(relid, &statement, 0);
		if (note == NULL || note->statement.depth != statement.depth ||
			note->statement.command != statement.command)
			note = note_begin(relid);
		note->pending |= 1 << event;
		return NULL;
	}
	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
	{
		note = note_find(relid, &statement, 1 << event);
		if (note != NULL &&
			(!OidIsValid(note->collector) || note->collector == trigdata->tg_trigger->tgoid))
			note_collect(note, trigdata);
		return NULL;
	}

	note = note_find(relid, &statement, 1 << event);
	if (note == NULL)
		return NULL;
	note->pending &= ~(1 << event);
	if (event == EVENT_OF(TRIGGER_EVENT_TRUNCATE))
		note->truncated = true;
	else if (trigdata->tg_oldtable != NULL || trigdata->tg_newtable != NULL)
	{
		note->events[event].before = trigdata->tg_oldtable;
		note->events[event].after = trigdata->tg_newtable;
	}
	if (note->pending != 0)
		return NULL;

	changes = changes_make(relid, note->table);
	changes->wholly = note->truncated;
	changes->emptied = note->truncated && relid == note->table;
	changes->collected = note->state.context;
	memcpy(changes->events, note->events, sizeof(changes->events));
	note->state.context = NULL;
	dp_state_end(&notes, note);
	return changes;
}

Oid
dp_changes_table(const DpChanges *changes)
{
	return changes->table;
}

bool
dp_changes_wholly(const DpChanges *changes)
{
	return changes->wholly;
}

bool
dp_changes_emptied(const DpChanges *changes)
{
	return changes->emptied;
}

bool
dp_changes_next(DpChanges *changes, DpChange *change)
{
	if (changes->rel == NULL)
		changes_open(changes);
	change->before = change->after = NULL;

	if (changes->partition != NULL)
	{
		TupleTableSlot *slot = changes->before;

		if (changes->scan == NULL)
		{
			changes->snapshot = RegisterSnapshot(GetLatestSnapshot());
			changes->scan = table_beginscan(changes->partition, changes->snapshot, 0, NULL);
		}
		CHECK_FOR_INTERRUPTS();
		if (!table_scan_getnextslot(changes->scan, ForwardScanDirection, slot))
			return false;
		if (changes->map != NULL)
			slot = execute_attr_map_slot(changes->map->attrMap, slot, changes->before_top);
		*(changes->attached ? &change->after : &change->before) = slot;
		return true;
	}

	while (changes->event < EVENTS)
	{
		Event *event = &changes->events[changes->event];
		bool first = !changes->reading;

		changes->reading = true;
		CHECK_FOR_INTERRUPTS();
		if (changes_row(changes, event->before, &changes->before_pointer[changes->event], first,
						changes->before))
			change->before = changes->before;
		if (changes_row(changes, event->after, &changes->after_pointer[changes->event], first,
						changes->after))
			change->after = changes->after;
		if (change->before != NULL || change->after != NULL)
		{
			if (changes->map != NULL && change->before != NULL)
				change->before = execute_attr_map_slot(changes->map->attrMap, change->before,
													   changes->before_top);
			if (changes->map != NULL && change->after != NULL)
				change->after =
					execute_attr_map_slot(changes->map->attrMap, change->after, changes->after_top);
			return true;
		}
		changes->event++;
		changes->reading = false;
	}
	return false;
}

void
dp_changes_rewind(DpChanges *changes)
{
	changes->event = 0;
	changes->reading = false;
	if (changes->scan != NULL)
		table_rescan(changes->scan, NULL);
}

/* Frees the reader's memory; the tuplestores belong to the statement. */
static void
changes_end(DpChanges *changes)
{
	if (changes->scan != NULL)
	{
		table_endscan(changes->scan);
		UnregisterSnapshot(changes->snapshot);
	}
	if (changes->before != NULL)
		ExecDropSingleTupleTableSlot(changes->before);
	if (changes->after != NULL)
		ExecDropSingleTupleTableSlot(changes->after);
	if (changes->before_top != NULL)
		ExecDropSingleTupleTableSlot(changes->before_top);
	if (changes->after_top != NULL)
		ExecDropSingleTupleTableSlot(changes->after_top);
	if (changes->map != NULL)
		free_conversion_map(changes->map);
	if (changes->top != NULL)
		table_close(changes->top, NoLock);
	if (changes->rel != NULL)
		table_close(changes->rel, NoLock);
	if (changes->collected != NULL)
		MemoryContextDelete(changes->collected);
	pfree(changes);
}

bool
dp_changes_pending(Oid table)
{
	ListCell *lc;

	foreach(lc, notes.list)
	{
		const Note *note = lfirst(lc);

		if (note->table == table && note->pending != 0)
			return true;
	}
	return false;
}

bool
dp_changes_inside(const DpChanges *changes)
{
	int i;

	for (i = 0; i < changes->outer; i++)
	{
		if (((Handling *) list_nth(handlings.list, i))->table == changes->table)
			return true;
	}
	return dp_changes_pending(changes->table);
}

struct varlena *
dp_source_document(TupleTableSlot *row, const char *column)
{
	static const uint8 empty[] = { 5, 0, 0, 0, 0 };
	TupleDesc desc = row->tts_tupleDescriptor;
	Oid bson = dp_types()->bson;
	AttrNumber found = InvalidAttrNumber;
	Oid relid = get_typ_typrelid(desc->tdtypeid);
	bool isnull;
	Datum value;
	int i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->atttypid != bson || att->attisdropped)
			continue;
		if (found == InvalidAttrNumber ||
			(column != NULL && strcmp(NameStr(att->attname), column) == 0))
			found = att->attnum;
	}
	if (found == InvalidAttrNumber ||
		(column == NULL && get_rel_relkind(relid) == RELKIND_FOREIGN_TABLE &&
		 !dp_has_documents(relid)))
		return row_document(row);
	value = slot_getattr(row, found, &isnull);
	if (isnull)
	{
		struct varlena *doc = palloc(VARHDRSZ + sizeof(empty));

		SET_VARSIZE(doc, VARHDRSZ + sizeof(empty));
		memcpy(VARDATA(doc), empty, sizeof(empty));
		return doc;
	}
	return PG_DETOAST_DATUM_PACKED(value);
}

List *
dp_source_decls(Oid relid)
{
	uint64 now = dp_schema_generation();
	SourceDeclsEntry *entry;
	MemoryContext context;
	MemoryContext old;
	List *decls;
	bool found;

	if (source_decls_table == NULL)
	{
		HASHCTL ctl;

		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(SourceDeclsEntry);
		ctl.hcxt = CacheMemoryContext;
		source_decls_table = hash_create("docpatterns source declarations", 32, &ctl,
										 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	entry = hash_search(source_decls_table, &relid, HASH_FIND, NULL);
	if (entry != NULL && entry->generation == now)
		return entry->decls;

	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns source declarations",
									ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	decls = source_decls_read(relid);
	MemoryContextSwitchTo(old);
	entry = hash_search(source_decls_table, &relid, HASH_ENTER, &found);
	if (found)
		dp_bury(entry->context);
	MemoryContextSetParent(context, CacheMemoryContext);
	entry->context = context;
	entry->decls = decls;
	entry->generation = now;
	return decls;
}

void
dp_changed_wholly(Oid relid, bool emptied)
{
	Oid table = topmost(relid);
	DpChanges *changes = changes_make(relid, table);

	changes->wholly = true;
	changes->emptied = emptied && relid == table;
	changes_handle(changes);
}

void
dp_changed_partition(Oid table, Oid partition, bool attached, bool recompute)
{
	DpChanges *changes;

	if (get_rel_relkind(partition) == RELKIND_PARTITIONED_TABLE)
	{
		ListCell *lc;

		foreach(lc, find_inheritance_children(partition, AccessShareLock))
			dp_changed_partition(table, lfirst_oid(lc), attached, recompute);
		return;
	}
	changes = changes_make(partition, topmost(table));
	changes->attached = attached;
	changes->recompute = recompute;
	changes->partition = table_open(partition, AccessShareLock);
	if (changes->partition->rd_rel->relkind != RELKIND_RELATION)
	{
		/* its rows are in another table */
		table_close(changes->partition, NoLock);
		changes->partition = NULL;
		changes->wholly = true;
	}
	changes_handle(changes);
}

bool
dp_changes_recompute(const DpChanges *changes)
{
	return changes->recompute;
}

static void
changes_handle(DpChanges *changes)
{
	Relation partition = changes->partition;
	Handling *handling;

	CommandCounterIncrement();
	changes->outer = list_length(handlings.list);
	handling = dp_state_begin(&handlings, sizeof(Handling));
	handling->table = changes->table;
	dp_derive_changes(changes);
	for (const DpPattern *const *p = dp_patterns; *p != NULL; p++)
	{
		if ((*p)->changes == NULL)
			continue;
		dp_changes_rewind(changes);
		(*p)->changes(changes);
	}
	dp_state_end(&handlings, handling);
	changes_end(changes);
	if (partition != NULL)
		table_close(partition, NoLock);
}

/*
 * The note for an event: the innermost one of the table that expects it (0: any) and was made by
 * the statement, or inside it.
 */
static Note *
note_find(Oid relid, const DpStatement *statement, uint32 event)
{
	int i;

	for (i = list_length(notes.list) - 1; i >= 0; i--)
	{
		Note *note = list_nth(notes.list, i);

		if (note->relid == relid && dp_statement_noted(statement, &note->statement) &&
			(event == 0 || (note->pending & event) != 0))
			return note;
	}
	return NULL;
}

/* A new note. */
static Note *
note_begin(Oid relid)
{
	Note *note = dp_state_begin(&notes, sizeof(Note));

	note->relid = relid;
	note->table = topmost(relid);
	note->statement = dp_statement_now();
	return note;
}

/*
 * Collects a row of a table without transition tables.  Collected rows live until the transaction
 * ends, and are deleted when they have been handled.
 */
static void
note_collect(Note *note, const TriggerData *trigdata)
{
	int event = EVENT_OF(trigdata->tg_event);
	Event *rows = &note->events[event];
	bool update = event == EVENT_OF(TRIGGER_EVENT_UPDATE);
	ResourceOwner owner = CurrentResourceOwner;
	MemoryContext old;

	note->collector = trigdata->tg_trigger->tgoid;
	if (note->state.context == NULL)
		note->state.context = AllocSetContextCreate(TopTransactionContext, "docpatterns changes",
													ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(note->state.context);
	CurrentResourceOwner = CurTransactionResourceOwner;
	if (event != EVENT_OF(TRIGGER_EVENT_INSERT))
	{
		if (rows->before == NULL)
			rows->before = tuplestore_begin_heap(false, false, work_mem);
		tuplestore_puttupleslot(rows->before, trigdata->tg_trigslot);
	}
	if (event == EVENT_OF(TRIGGER_EVENT_INSERT) || update)
	{
		if (rows->after == NULL)
			rows->after = tuplestore_begin_heap(false, false, work_mem);
		tuplestore_puttupleslot(rows->after, update ? trigdata->tg_newslot : trigdata->tg_trigslot);
	}
	CurrentResourceOwner = owner;
	MemoryContextSwitchTo(old);
}

/* New changes of a relation. */
static DpChanges *
changes_make(Oid relid, Oid table)
{
	DpChanges *changes = palloc0(sizeof(DpChanges));

	changes->relid = relid;
	changes->table = table;
	return changes;
}

/* Opens what is needed to read rows. */
static void
changes_open(DpChanges *changes)
{
	TupleDesc desc;

	changes->rel = table_open(changes->relid, AccessShareLock);
	desc = RelationGetDescr(changes->rel);
	if (changes->partition != NULL)
		changes->before = table_slot_create(changes->partition, NULL);
	else
	{
		changes->before = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
		changes->after = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	}
	if (changes->table == changes->relid)
		return;
	changes->top = table_open(changes->table, AccessShareLock);
	changes->map = convert_tuples_by_name(desc, RelationGetDescr(changes->top));
	if (changes->map == NULL)
		return;
	changes->before_top = MakeSingleTupleTableSlot(RelationGetDescr(changes->top), &TTSOpsVirtual);
	changes->after_top = MakeSingleTupleTableSlot(RelationGetDescr(changes->top), &TTSOpsVirtual);
}

/* The next row of a tuplestore, with our own read pointer: others may read it between two calls. */
static bool
changes_row(DpChanges *changes, Tuplestorestate *rows, int *pointer, bool first,
			TupleTableSlot *slot)
{
	if (rows == NULL)
		return false;
	if (*pointer == 0)
		*pointer = tuplestore_alloc_read_pointer(rows, EXEC_FLAG_REWIND);
	tuplestore_select_read_pointer(rows, *pointer);
	if (first)
		tuplestore_rescan(rows);
	return tuplestore_gettupleslot(rows, true, false, slot);
}

/* The topmost ancestor of a partition, also while it is being detached. */
static Oid
topmost(Oid relid)
{
	while (get_rel_relispartition(relid))
		relid = get_partition_parent(relid, true);
	return relid;
}

/* A row as a document: columns by name, SQL nulls as null. */
static struct varlena *
row_document(TupleTableSlot *row)
{
	TupleDesc desc = row->tts_tupleDescriptor;
	DpBuilder b;
	int i;

	slot_getallattrs(row);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const char *name = NameStr(att->attname);

		if (att->attisdropped)
			continue;
		if (row->tts_isnull[i])
			dp_builder_append_null(&b, name, strlen(name));
		else
			dp_builder_append_datum(&b, name, strlen(name), row->tts_values[i], false,
									att->atttypid);
	}
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

/* The declarations that use a table or its ancestors, in the current context. */
static List *
source_decls_read(Oid relid)
{
	List *decls = NIL;

	source_decls_of(relid, &decls);
	while (get_rel_relispartition(relid))
		source_decls_of(relid = get_partition_parent(relid, true), &decls);
	return decls;
}

/* Those of one table, except a partition whose triggers come from its parent. */
static void
source_decls_of(Oid source, List **decls)
{
	Relation rel = table_open(source, AccessShareLock);
	List *link_ids = NIL;
	ListCell *lc;
	TriggerDesc *triggers;
	int i;

	triggers = dp_triggers(rel);
	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		DpSourceDecl *used;
		DpDecl *decl;
		Oid main;
		bool known = false;

		/* a BEFORE trigger with these arguments may be a guard */
		if (trigger->tgnargs != 3 || strcmp(trigger->tgargs[0], "side") != 0 ||
			trigger->tgisclone || TRIGGER_FOR_BEFORE(trigger->tgtype) ||
			strncmp(trigger->tgname, DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0)
			continue;
		foreach(lc, link_ids)
			known = known || strcmp(lfirst(lc), trigger->tgargs[1]) == 0;
		if (known)
			continue;
		link_ids = lappend(link_ids, trigger->tgargs[1]);
		main = dp_link_main(trigger->tgargs[1], source);
		if (!OidIsValid(main))
			dp_link_require_owner(trigger->tgargs[1], true, source);
		decl = OidIsValid(main) ? decl_of_link(main, trigger->tgargs[1]) : NULL;
		if (decl == NULL)
			continue;
		used = palloc0(sizeof(DpSourceDecl));
		used->decl = decl;
		used->link_id = pstrdup(trigger->tgargs[1]);
		used->source = source;
		*decls = lappend(*decls, used);
	}
	table_close(rel, NoLock);

	foreach(lc, dp_decls(source))
	{
		DpDecl *decl = lfirst(lc);
		DpSourceDecl *used;

		/* that of an ancestor is found there */
		if (decl->target != source)
			continue;
		used = palloc0(sizeof(DpSourceDecl));
		used->decl = decl;
		used->is_main = true;
		used->source = source;
		*decls = lappend(*decls, used);
	}
}

/* The declaration of a table with the link ID, or NULL. */
static DpDecl *
decl_of_link(Oid relid, const char *link_id)
{
	ListCell *lc;
	int i;

	foreach(lc, dp_decls(relid))
	{
		DpDecl *decl = lfirst(lc);

		for (i = 0; i < DP_LINK_OPTIONS; i++)
		{
			char *text = dp_decl_text(decl, dp_link_options[i]);

			if (text != NULL && strcmp(text, link_id) == 0)
				return decl;
		}
	}
	return NULL;
}
