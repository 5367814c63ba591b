/*
 * queue.c
 *		Deferred work: a table of keys and what to do for each.
 *
 * A writer inserts entries row by row; statements dequeue many at once.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "commands/sequence.h"
#include "executor/spi.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/reader.h"
#include "kit/derive/queue.h"
#include "kit/rows/lookup.h"
#include "kit/rows/write.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/worker.h"

/* Facts about a queue's table, cached between statements */
typedef struct QueueTable
{
	char link_id[64];
	Oid main;
	uint64 generation;
	Oid table;
	Oid sequence;
	AttrNumber id;
	AttrNumber key;
	AttrNumber delta;
	AttrNumber queued_at;
	int natts;
} QueueTable;

#define TABLES_KNOWN 8

/*
 * Lists of deleted rows: how often they are trimmed, and by how many rows at most, except for those
 * of the key
 */
#define FORGET_EVERY 256
#define FORGET_MOST 1024

struct DpQueue
{
	DpDecl *decl;
	bool removed; /* a list of deleted rows: "removed_link_id" */
	QueueTable table;
	DpWriter *writer;       /* NULL until an entry is inserted */
	struct varlena *forget; /* the key whose old entries are to be deleted, or NULL */
};

DpQueuePass *dp_queue_passing = NULL;

static QueueTable tables_known[TABLES_KNOWN];
static int next_known = 0;

static void table_find(DpDecl *decl, const char *link_id, QueueTable *table);
static bool is_guard(const Trigger *trigger);
static List *
take(DpQueue *queue, const DpValue *key, int64 most, List *taken, MemoryContext context);
static DpQueued *entry_of(List *taken, struct varlena *key);
static int queued_compare(const ListCell *a, const ListCell *b);
static int entry_compare(const void *a, const void *b);
static void queue_forget(DpQueue *queue, const DpValue *key, int64 most);

DpQueue *
dp_queue_open(DpDecl *decl, const char *option)
{
	DpQueue *queue = palloc0(sizeof(DpQueue));
	char *link_id = dp_decl_text(decl, option);

	queue->decl = decl;
	queue->removed = strcmp(option, "removed_link_id") == 0;
	if (link_id == NULL || strlen(link_id) >= sizeof(queue->table.link_id))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the %s pattern \"%s\" has no queue", decl->pattern, decl->name)));
	table_find(decl, link_id, &queue->table);
	return queue;
}

/* Closes it; inserted entries then exist. */
void
dp_queue_close(DpQueue *queue)
{
	if (queue->writer != NULL)
		dp_writer_close(queue->writer);
	if (queue->forget != NULL)
	{
		DpValue key = dp_value_of_varlena(queue->forget);

		queue_forget(queue, &key, FORGET_MOST);
	}
	pfree(queue);
}

void
dp_queue_add(DpQueue *queue, const DpValue *key, struct varlena *delta)
{
	const QueueTable *table = &queue->table;
	Datum *values = palloc0(sizeof(Datum) * table->natts);
	bool *nulls = palloc(sizeof(bool) * table->natts);
	int64 id = nextval_internal(table->sequence, false);

	if (queue->writer == NULL)
	{
		queue->writer = dp_writer_open(table->table, "delta", DP_WRITE_LATEST, queue->decl->name);
		dp_writer_skip(queue->writer, is_guard);
	}
	memset(nulls, true, sizeof(bool) * table->natts);
	values[table->id - 1] = Int64GetDatum(id);
	nulls[table->id - 1] = false;
	values[table->key - 1] = PointerGetDatum(dp_value_to_varlena(key));
	nulls[table->key - 1] = false;
	if (delta != NULL)
	{
		values[table->delta - 1] = PointerGetDatum(delta);
		nulls[table->delta - 1] = false;
	}
	values[table->queued_at - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
	nulls[table->queued_at - 1] = false;
	dp_writer_insert_row(queue->writer, values, nulls);
	if (!queue->removed)
		dp_work_left(queue->decl->target);
	if (id % FORGET_EVERY == 0 && queue->removed)
		queue->forget = (struct varlena *) DatumGetPointer(values[table->key - 1]);
	pfree(values);
	pfree(nulls);
}

/*
 * The limit may fall within the entries of a key; then the other entries of this key are dequeued
 * too.
 */
List *
dp_queue_take(DpQueue *queue, const DpValue *key, int64 most)
{
	MemoryContext context = CurrentMemoryContext;
	List *taken;

	SPI_connect();
	taken = take(queue, key, most, NIL, context);
	if (key == NULL && taken != NIL)
	{
		struct varlena *last_key = ((DpQueued *) llast(taken))->key;
		DpValue last = dp_value_of_varlena(last_key);

		taken = take(queue, &last, PG_INT64_MAX, taken, context);
		if (dp_queue_passing != NULL)
		{
			ListCell *lc;

			foreach(lc, taken)
				dp_queue_passing->entries += ((DpQueued *) lfirst(lc))->entries;
			dp_queue_passing->last =
				MemoryContextAlloc(dp_queue_passing->context, VARSIZE_ANY(last_key));
			memcpy(dp_queue_passing->last, last_key, VARSIZE_ANY(last_key));
		}
	}
	SPI_finish();
	return taken;
}

void
dp_queue_clear(DpQueue *queue)
{
	SPIPlanPtr plan;

	SPI_connect();
	plan = dp_statement(queue->decl, "DELETE FROM {relation} AS q", queue->table.table);
	(void) dp_run_marked(queue->decl, plan, NULL, NULL, DP_RUN_AS_OWNER | DP_RUN_LOCK,
						 SPI_OK_DELETE, queue->table.table, queue->decl->name, DP_MARK_INTERNAL);
	SPI_finish();
}

bool
dp_queue_has(DpQueue *queue, const DpValue *key, struct varlena *delta)
{
	SPIPlanPtr plan;
	Datum values[2] = { PointerGetDatum(dp_value_to_varlena(key)), PointerGetDatum(delta) };
	bool found;

	SPI_connect();
	plan = dp_statement(queue->decl,
						"SELECT FROM {relation} AS q WHERE q.key{own =}{$1 bson_value}"
						" AND q.delta{own =}{$2 bson} LIMIT 1",
						queue->table.table);
	found = dp_run(queue->decl, plan, values, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT) > 0;
	SPI_finish();
	return found;
}

/*
 * Deletes at most as many entries older than 30 days, and all but the last 10,000 of a key, which
 * may be NULL.  A list of deleted rows ("removed_link_id") does this itself after each 256th
 * insert. Does nothing while another transaction does it, or above READ COMMITTED.
 */
static void
queue_forget(DpQueue *queue, const DpValue *key, int64 most)
{
	SPIPlanPtr plan;
	Datum values[2] = { Int64GetDatum(most) };

	/* a concurrent delete would be an error there, and no transaction may wait for this */
	if (IsolationUsesXactSnapshot() ||
		!ConditionalLockRelationOid(queue->table.table, ShareUpdateExclusiveLock))
		return;
	SPI_connect();
	plan = dp_statement(
		queue->decl,
		"DELETE FROM {relation} AS q USING"
		" (SELECT t.id FROM {relation} AS t ORDER BY t.id LIMIT {$1 int8}) AS first"
		" WHERE q.id OPERATOR(pg_catalog.=) first.id AND q.queued_at OPERATOR(pg_catalog.<)"
		" (pg_catalog.now() OPERATOR(pg_catalog.-) interval '30 days')",
		queue->table.table, queue->table.table);
	(void) dp_run_marked(queue->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE,
						 queue->table.table, queue->decl->name, DP_MARK_INTERNAL);
	if (key != NULL)
	{
		values[0] = Int64GetDatum(10000);
		values[1] = PointerGetDatum(dp_value_to_varlena(key));
		plan = dp_statement(
			queue->decl,
			"DELETE FROM {relation} AS q WHERE q.key{own =}{$2 bson_value}"
			" AND q.id OPERATOR(pg_catalog.<=) (SELECT t.id FROM {relation} AS t"
			" WHERE t.key{own =}$2 ORDER BY t.key DESC, t.id DESC LIMIT 1 OFFSET {$1 int8})",
			queue->table.table, queue->table.table);
		(void) dp_run_marked(queue->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE,
							 queue->table.table, queue->decl->name, DP_MARK_INTERNAL);
	}
	SPI_finish();
}

/* A dequeued entry */
typedef struct Entry
{
	int64 id;
	struct varlena *key;
	struct varlena *delta;
} Entry;

#define TAKE(where)                                                                                \
	"DELETE FROM {relation} AS q USING (SELECT t.id FROM {relation} AS t" where                    \
	" ORDER BY t.key, t.id LIMIT {$1 int8} FOR UPDATE SKIP LOCKED) AS found"                       \
	" WHERE q.id OPERATOR(pg_catalog.=) found.id RETURNING q.id, q.key, q.delta"

/*
 * Dequeues entries and adds them to the list, which stays sorted by key.  Called inside
 * SPI_connect(); results go to the context.
 *
 * The statement uses the transaction's snapshot: it could not delete rows that this does not show.
 */
static List *
take(DpQueue *queue, const DpValue *key, int64 most, List *taken, MemoryContext context)
{
	static const char *const take_all = TAKE("");
	static const char *const take_key = TAKE(" WHERE t.key{own =}{$2 bson_value}");
	static const char *const take_after = TAKE(" WHERE t.key{own >}{$2 bson_value}");
	const char *template = key != NULL ? take_key : take_all;
	SPIPlanPtr plan;
	Datum values[2];
	Entry *entries;
	MemoryContext old;
	uint64 n;
	uint64 i;

	values[0] = Int64GetDatum(most);
	if (key != NULL)
		values[1] = PointerGetDatum(dp_value_to_varlena(key));
	else if (dp_queue_passing != NULL && dp_queue_passing->after != NULL)
	{
		values[1] = PointerGetDatum(dp_queue_passing->after);
		template = take_after;
	}
	plan = dp_statement(queue->decl, template, queue->table.table, queue->table.table);
	n = dp_run_marked(queue->decl, plan, values, NULL, DP_RUN_AS_OWNER | DP_RUN_LOCK,
					  SPI_OK_DELETE_RETURNING, queue->table.table, queue->decl->name,
					  DP_MARK_INTERNAL);

	entries = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Entry) * Max(n, 1));
	for (i = 0; i < n; i++)
	{
		bool isnull;

		entries[i].id = DatumGetInt64(dp_result(i, 1, &isnull));
		entries[i].key = (struct varlena *) DatumGetPointer(dp_result(i, 2, &isnull));
		entries[i].delta = (struct varlena *) DatumGetPointer(dp_result(i, 3, &isnull));
		if (isnull)
			entries[i].delta = NULL;
	}
	qsort(entries, n, sizeof(Entry), entry_compare);

	old = MemoryContextSwitchTo(context);
	for (i = 0; i < n; i++)
	{
		DpQueued *last = entry_of(taken, entries[i].key);

		if (last == NULL)
		{
			last = palloc0(sizeof(DpQueued));
			last->key = palloc(VARSIZE_ANY(entries[i].key));
			memcpy(last->key, entries[i].key, VARSIZE_ANY(entries[i].key));
			taken = lappend(taken, last);
		}
		last->entries++;
		if (entries[i].delta == NULL)
			last->recompute = true;
		else
		{
			struct varlena *delta = palloc(VARSIZE_ANY(entries[i].delta));

			memcpy(delta, entries[i].delta, VARSIZE_ANY(entries[i].delta));
			last->deltas = lappend(last->deltas, delta);
		}
	}
	list_sort(taken, queued_compare);
	MemoryContextSwitchTo(old);
	pfree(entries);
	return taken;
}

/* The last dequeued key if it is this one, else NULL. */
static DpQueued *
entry_of(List *taken, struct varlena *key)
{
	DpValue left;
	DpValue right;

	if (taken == NIL)
		return NULL;
	left = dp_value_of_varlena(((DpQueued *) llast(taken))->key);
	right = dp_value_of_varlena(key);
	return dp_value_compare(&left, &right) == 0 ? llast(taken) : NULL;
}

/* Orders keys. */
static int
queued_compare(const ListCell *a, const ListCell *b)
{
	DpValue left = dp_value_of_varlena(((DpQueued *) lfirst(a))->key);
	DpValue right = dp_value_of_varlena(((DpQueued *) lfirst(b))->key);

	return dp_value_compare(&left, &right);
}

/* Orders entries by key and number. */
static int
entry_compare(const void *a, const void *b)
{
	const Entry *left = a;
	const Entry *right = b;
	DpValue left_key = dp_value_of_varlena(left->key);
	DpValue right_key = dp_value_of_varlena(right->key);
	int cmp = dp_value_compare(&left_key, &right_key);

	if (cmp != 0)
		return cmp;
	return left->id < right->id ? -1 : left->id > right->id;
}

/*
 * The queue's table.  Finding it searches all triggers, so it is cached until the schema changes.
 */
static void
table_find(DpDecl *decl, const char *link_id, QueueTable *table)
{
	uint64 now = dp_schema_generation();
	int i;
	QueueTable *known;
	AttrNumber columns[4];
	Relation rel;

	for (i = 0; i < TABLES_KNOWN; i++)
	{
		known = &tables_known[i];
		if (known->generation == now && known->main == decl->target &&
			strcmp(known->link_id, link_id) == 0)
		{
			*table = *known;
			return;
		}
	}
	memset(table, 0, sizeof(QueueTable));
	strcpy(table->link_id, link_id);
	table->main = decl->target;
	table->table =
		dp_side_find(decl, link_id,
					 "id int8 identity; key bson_value, delta bson, queued_at timestamptz",
					 columns);
	table->id = columns[0];
	table->key = columns[1];
	table->delta = columns[2];
	table->queued_at = columns[3];
	rel = table_open(table->table, AccessShareLock);
	table->natts = RelationGetNumberOfAttributes(rel);
	table->sequence = dp_identity_sequence(rel, table->id);
	table_close(rel, NoLock);
	table->generation = now;
	tables_known[next_known] = *table;
	next_known = (next_known + 1) % TABLES_KNOWN;
}

/* True for the queue's guard trigger, which need not fire here. */
static bool
is_guard(const Trigger *trigger)
{
	return dp_is_internal(trigger->tgfoid, "pattern_guard_trigger");
}

/*
 * _pattern_forget_removed(rel, name)
 */
DP_FUNCTION(dp_pattern_forget_removed);
Datum
dp_pattern_forget_removed(PG_FUNCTION_ARGS)
{
	Oid rel = PG_GETARG_OID(0);
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(1));
	ListCell *lc;

	dp_require_owner(rel);
	foreach(lc, dp_decls(rel))
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->name, name) == 0 && dp_decl_text(decl, "removed_link_id") != NULL)
		{
			DpQueue *queue = dp_queue_open(decl, "removed_link_id");

			queue_forget(queue, NULL, PG_INT64_MAX);
			dp_queue_close(queue);
		}
	}
	PG_RETURN_VOID();
}
