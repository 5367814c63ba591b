/*
 * later.c
 *		Rows of side tables that AFTER ROW triggers add, written together.
 *
 * Rows belong to the subtransaction that added them.  An inner one may have to write them before it
 * reads; as it may be rolled back, they are kept, with a record of how many it wrote.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "kit/declaration.h"
#include "kit/rows/later.h"
#include "kit/rows/lookup.h"
#include "kit/statement.h"

/* Rows are written when they have so many bytes */
#define MANY_BYTES (1024 * 1024)

/* Rows of a statement that are not written yet */
typedef struct DpLater
{
	DpState state; /* its context has the rows, and is reset when they are written */
	Oid side;
	int depth; /* of the statement's triggers */
	DpLaterWrite write;
	void *arg;
	TupleTableSlot *slot;
	bool queued; /* the event is in the queue */
	bool writing;
	HeapTuple *rows;
	int n;
	int cap;
	Size bytes;
} DpLater;

/* How many of its rows an inner subtransaction has written */
typedef struct Written
{
	DpState state;
	DpLater *later;
	int n;
} Written;

static void later_leftover(void);
static void later_forget(void);

static DpStates laters = { .outlives = true,
						   .before_commit = later_leftover,
						   .ended = later_forget,
						   .rolled_back = later_forget };
static DpStates written = { .outlives = true };

bool dp_later_any = false;

static DpLater *later_find(const TriggerData *fired, Oid side, DpLaterWrite write, void *arg);
static DpLater *later_begin(Oid side, DpLaterWrite write, void *arg);
static void rows_insert(DpLater *later, HeapTuple *rows, int n);
static bool later_queue(DpLater *later);
static bool seen_by_users(Oid relid);
static bool has_user_trigger(Oid relid);
static void later_rows(DpLater *later);
static int rows_written(const DpLater *later);
static void written_end(const DpLater *later);

bool
dp_writes_later(const TriggerData *fired, Oid side, DpLaterWrite write, void *arg)
{
	return later_find(fired, side, write, arg) != NULL;
}

void
dp_new_row(DpNewRow *row, const TriggerData *fired, Oid side, DpLaterWrite write, void *arg)
{
	row->later = later_find(fired, side, write, arg);
	if (row->later != NULL)
	{
		row->slot = row->later->slot;
		ExecClearTuple(row->slot);
		memset(row->slot->tts_isnull, true, row->slot->tts_tupleDescriptor->natts);
		return;
	}
	dp_table_open(&row->table, side, RowExclusiveLock);
	row->slot = dp_table_blank(&row->table);
}

/* The rows of the statement whose triggers fire; NULL: they cannot be written later. */
static DpLater *
later_find(const TriggerData *fired, Oid side, DpLaterWrite write, void *arg)
{
	int depth;
	ListCell *lc;

	if (fired == NULL || fired->tg_trigger->tgdeferrable ||
		seen_by_users(RelationGetRelid(fired->tg_relation)))
		return NULL;
	depth = dp_trigger_depth();
	foreach(lc, laters.list)
	{
		DpLater *later = lfirst(lc);

		if (later->side == side && later->depth == depth &&
			later->state.owner == GetCurrentSubTransactionId())
			return !later->writing && (later->queued || later_queue(later)) ? later : NULL;
	}
	return later_begin(side, write, arg);
}

static DpLater *
later_begin(Oid side, DpLaterWrite write, void *arg)
{
	Relation rel = table_open(side, RowExclusiveLock);
	DpLater *later = dp_state_begin(&laters, sizeof(DpLater));
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

	later->side = side;
	later->depth = dp_trigger_depth();
	later->write = write;
	later->arg = arg;
	later->slot =
		MakeSingleTupleTableSlot(CreateTupleDescCopy(RelationGetDescr(rel)), &TTSOpsVirtual);
	MemoryContextSwitchTo(old);
	table_close(rel, NoLock);
	return later_queue(later) ? later : NULL;
}

/*
 * Queues an AFTER STATEMENT event of the guard trigger, which is declared BEFORE; false if it would
 * not fire.
 */
static bool
later_queue(DpLater *later)
{
	Relation rel = table_open(later->side, NoLock);
	TriggerDesc *triggers = rel->trigdesc;
	Trigger trigger;
	TriggerDesc desc = { .triggers = &trigger,
						 .numtriggers = 1,
						 .trig_insert_after_statement = true };
	char fires = SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA
					 ? TRIGGER_FIRES_ON_REPLICA
					 : TRIGGER_FIRES_ON_ORIGIN;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers && !later->queued; i++)
	{
		trigger = triggers->triggers[i];
		if (TRIGGER_FOR_INSERT(trigger.tgtype) && TRIGGER_FOR_BEFORE(trigger.tgtype) &&
			!TRIGGER_FOR_ROW(trigger.tgtype) && trigger.tgqual == NULL &&
			(trigger.tgenabled == fires || trigger.tgenabled == TRIGGER_FIRES_ALWAYS) &&
			dp_is_internal(trigger.tgfoid, "pattern_guard_trigger"))
		{
			ResultRelInfo *info = makeNode(ResultRelInfo);

			trigger.tgtype = TRIGGER_TYPE_AFTER | TRIGGER_TYPE_INSERT;
			info->ri_RelationDesc = rel;
			info->ri_TrigDesc = &desc;
			ExecASInsertTriggers(NULL, info, NULL);
			pfree(info);
			later->queued = true;
		}
	}
	table_close(rel, NoLock);
	return later->queued;
}

/* Whether a trigger of a user could look at the side table before the end of the statement. */
static bool
seen_by_users(Oid relid)
{
	static Oid last = InvalidOid;
	static uint64 generation;
	static bool result;
	uint64 now = dp_schema_generation();

	if (likely(last == relid && generation == now))
		return result;
	result = has_user_trigger(relid);
	for (Oid above = relid; !result && get_rel_relispartition(above);)
	{
		above = get_partition_parent(above, true);
		result = has_user_trigger(above);
	}
	last = relid;
	generation = now;
	return result;
}

static bool
has_user_trigger(Oid relid)
{
	Relation rel = table_open(relid, AccessShareLock);
	TriggerDesc *triggers = rel->trigdesc;
	bool found = false;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers && !found; i++)
	{
		const Trigger *t = &triggers->triggers[i];

		found = TRIGGER_FOR_AFTER(t->tgtype) && !t->tgisinternal &&
				t->tgenabled != TRIGGER_DISABLED &&
				strncmp(t->tgname, DP_TRIGGER_PREFIX, strlen(DP_TRIGGER_PREFIX)) != 0;
	}
	table_close(rel, AccessShareLock);
	return found;
}

void
dp_new_row_add(DpNewRow *row)
{
	DpLater *later = row->later;
	MemoryContext old;

	if (later == NULL)
	{
		dp_table_insert(&row->table);
		dp_table_close(&row->table);
		return;
	}
	if (later->state.context == NULL)
		later->state.context = AllocSetContextCreate(TopTransactionContext, "docpatterns rows",
													 ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(later->state.context);
	if (later->n == later->cap)
	{
		later->cap = later->cap == 0 ? 64 : later->cap * 2;
		later->rows = later->rows == NULL
						  ? palloc(sizeof(HeapTuple) * later->cap)
						  : repalloc_huge(later->rows, sizeof(HeapTuple) * later->cap);
	}
	later->rows[later->n] = heap_form_tuple(row->slot->tts_tupleDescriptor, row->slot->tts_values,
											row->slot->tts_isnull);
	later->bytes += later->rows[later->n]->t_len;
	ItemPointerSet(&later->rows[later->n]->t_self, later->n, FirstOffsetNumber);
	later->n++;
	MemoryContextSwitchTo(old);
	dp_later_any = true;
	if (later->bytes >= MANY_BYTES)
		later_rows(later);
}

void
dp_later_end(Oid side)
{
	int depth = dp_trigger_depth();
	int i;

	for (i = list_length(laters.list) - 1; i >= 0; i--)
	{
		DpLater *later = list_nth(laters.list, i);

		if (later->side != side || later->depth != depth ||
			later->state.owner != GetCurrentSubTransactionId())
			continue;
		later_rows(later);
		later->queued = false;
		if (later->n == 0)
		{
			ExecDropSingleTupleTableSlot(later->slot);
			dp_state_end(&laters, later);
		}
		break;
	}
	dp_later_any = laters.list != NIL;
}

void
dp_later_flush(Oid side)
{
	int i;

	/* writing may begin others and end them */
	for (i = 0; i < list_length(laters.list); i++)
	{
		DpLater *later = list_nth(laters.list, i);

		if (side == InvalidOid || later->side == side)
			later_rows(later);
	}
}

/* Writes the rows that are not written yet. */
static void
later_rows(DpLater *later)
{
	bool mine = later->state.owner == GetCurrentSubTransactionId();
	int from;
	int n = later->n;

	if (later->writing || n == 0)
		return;
	from = rows_written(later);
	if (from < n)
		rows_insert(later, later->rows + from, n - from);
	if (mine)
	{
		written_end(later);
		later->rows = NULL;
		later->n = later->cap = 0;
		later->bytes = 0;
		MemoryContextReset(later->state.context);
	}
	else if (from < n)
	{
		Written *w = dp_state_begin(&written, sizeof(Written));

		w->later = later;
		w->n = n;
	}
}

static void
rows_insert(DpLater *later, HeapTuple *rows, int n)
{
	later->writing = true;
	PG_TRY();
	{
		if (later->write != NULL)
			later->write(later->arg, rows, n);
		else
		{
			DpTable t;

			dp_table_open(&t, later->side, RowExclusiveLock);
			dp_table_insert_many(&t, rows, n);
			dp_table_close(&t);
		}
	}
	PG_FINALLY();
	{
		later->writing = false;
	}
	PG_END_TRY();
}

static int
rows_written(const DpLater *later)
{
	int n = 0;
	ListCell *lc;

	foreach(lc, written.list)
	{
		const Written *w = lfirst(lc);

		if (w->later == later)
			n = Max(n, w->n);
	}
	return n;
}

static void
written_end(const DpLater *later)
{
	ListCell *lc;

	foreach(lc, written.list)
	{
		Written *w = lfirst(lc);

		if (w->later == later)
		{
			written.list = foreach_delete_current(written.list, lc);
			pfree(w);
		}
	}
}

/* Nothing is left unless the owner of a side table has replaced its guard trigger. */
static void
later_leftover(void)
{
	dp_later_write(InvalidOid);
}

static void
later_forget(void)
{
	dp_later_any = laters.list != NIL;
}
