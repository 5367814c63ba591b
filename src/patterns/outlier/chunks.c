/*
 * chunks.c
 *		Extras of outliers in a table of chunks.
 *
 * The table (key, chunk, n, sealed, elements, tail) belongs to the pattern.  The
 * chunks of a key, ordered by number, are the extras in order; numbers have gaps
 * and may be negative, because extras also grow at the front.  A chunk has 1 to
 * o->chunk elements, and no two neighbours would fit into one.  Only the chunk at
 * the growing end is not sealed.  Sealed chunks have an index on the hashes of
 * their elements; others are few and are scanned, so that a push does not maintain
 * it.
 *
 * Pushes of a few elements go to the tail of the chunk at the growing end, a short
 * array in no index: the update is HOT and does not write the elements before it.
 * A full tail is added to them, as it is by every other write to the chunk.
 *
 * While the rows of a statement change their keys, chunks of a changed key have
 * MOVING added to their numbers, to distinguish them from chunks of another row that
 * still has this key.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "bson/cast.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/fetch.h"
#include "kit/rows/table.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/outlier/outlier.h"

#define MOVING 4611686018427387904
#define MOVING_LEAST 2305843009213693952 /* half of it, because numbers may be negative */

/* Elements and bytes of a tail: few, as each push writes all, and many, as it is added to 1,000 */
#define TAIL_ELEMENTS 32
#define TAIL_BYTES 1024

#define RUN_FLAGS(latest) (DP_RUN_AS_OWNER | ((latest) ? 0 : DP_RUN_SNAPSHOT))

/* One row of the table */
typedef struct Chunk
{
	int64 number;
	int32 n;
	bool sealed;
	DpValue elements; /* an array */
} Chunk;

/* The chunks of a key without those that are moving */
#define OF_KEY " FROM {relation} WHERE {side key = $key}"
#define NOT_MOVING " AND chunk OPERATOR(pg_catalog.<) " CppAsString2(MOVING_LEAST)
#define SELECT_CHUNK "SELECT chunk, n, sealed, elements, tail" OF_KEY

static const char select_all[] = SELECT_CHUNK NOT_MOVING " ORDER BY chunk";
static const char select_tail[] = SELECT_CHUNK NOT_MOVING " ORDER BY chunk DESC LIMIT 1";
static const char select_head[] = SELECT_CHUNK NOT_MOVING " ORDER BY chunk LIMIT 1";
static const char select_chunk[] = SELECT_CHUNK " AND chunk OPERATOR(pg_catalog.=) {$key+1 int8}";
static const char select_before[] =
	SELECT_CHUNK " AND chunk OPERATOR(pg_catalog.<) {$key+1 int8} ORDER BY chunk DESC LIMIT 1";
static const char select_after[] =
	SELECT_CHUNK " AND chunk OPERATOR(pg_catalog.>) {$key+1 int8} ORDER BY chunk LIMIT 1";

static bool chunks_exist(DpOutlier *o, const DpKey *key);
static int64 chunks_count(DpOutlier *o, const DpKey *key, bool latest);
static void chunks_append(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
static void chunks_prepend(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
static void chunks_take(DpOutlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken);
static int64 chunks_remove(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
static bool chunks_hold(DpOutlier *o, const DpKey *key, const DpValue *value, bool latest);
static void chunks_drop(DpOutlier *o, const DpKey *key);
static void chunks_drop_orphans(DpOutlier *o);
static void chunks_move(DpOutlier *o, const DpKey *from, const DpKey *to);
static void chunks_move_finish(DpOutlier *o, const DpKey *to);
static void
chunks_page(DpOutlier *o, const DpKey *key, int64 skip, int64 take, DpValueList *page, bool latest);
static void chunks_read(DpOutlier *o, const DpKey *key, DpBuilder *b, bool latest);
static bool chunks_in_order(DpOutlier *o, const DpKey *key);
static Oid chunks_find(DpOutlier *o);
static DpValue elements_of(Datum value);
static DpValue elements_at(uint64 row, int column);
static bool tail_append(DpOutlier *o, const DpKey *key, const DpValue *values, int n);
static bool row_append(DpOutlier *o, DpTable *t, const DpValue *values, int n);
static List *chunks_holders(DpOutlier *o, const DpValue *value);
static uint64
chunks_select(DpOutlier *o, const char *template, const DpKey *key, int64 number, int flags);
static uint64 chunks_run(DpOutlier *o, SPIPlanPtr plan, const DpKey *key, int nextra,
						 const Datum *extra, int flags, int expected);
static bool
chunk_fetch(DpOutlier *o, const DpKey *key, const char *template, int64 number, Chunk *chunk);
static void chunk_insert(DpOutlier *o, const DpKey *key, int64 number, const DpValue *values, int n,
						 bool sealed);
static void chunk_update(DpOutlier *o, const DpKey *key, int64 number, struct varlena *elements,
						 int n, bool sealed);
static void chunk_delete(DpOutlier *o, const DpKey *key, int64 number);
static int chunk_room(DpOutlier *o, const Chunk *chunk, const DpValue *values, int n, int step);
static int64 array_overhead(int n);
static bool chunks_fit(DpOutlier *o, const Chunk *a, const Chunk *b);
static void chunk_join(DpOutlier *o, const DpKey *key, int64 number);
static struct varlena *
array_of(const DpValue *head, const DpValue *values, int n, const DpValue *tail);
static List *chunk_candidates(DpOutlier *o, const DpKey *key, const DpValue *value, bool latest);

const DpOutlierStore dp_outlier_chunks = { .exists = chunks_exist,
										   .count = chunks_count,
										   .append = chunks_append,
										   .prepend = chunks_prepend,
										   .take = chunks_take,
										   .remove = chunks_remove,
										   .holds = chunks_hold,
										   .drop = chunks_drop,
										   .drop_orphans = chunks_drop_orphans,
										   .move = chunks_move,
										   .move_finish = chunks_move_finish,
										   .page = chunks_page,
										   .read = chunks_read,
										   .in_order = chunks_in_order,
										   .find = chunks_find,
										   .holders = chunks_holders };

/* Starts to read the chunks of a key as they are now. */
static void
chunks_begin(DpTable *t, DpOutlier *o, const DpKey *key, LOCKMODE lock)
{
	dp_table_open(t, o->side, lock);
	dp_table_seek(t, RegisterSnapshot(GetLatestSnapshot()), key->values, key->n);
	dp_table_bound(t, BTLessStrategyNumber, F_INT8LT, Int64GetDatum(MOVING_LEAST));
}

static void
chunks_end(DpTable *t)
{
	dp_table_close(t);
	UnregisterSnapshot(t->snapshot);
}

static bool
chunks_exist(DpOutlier *o, const DpKey *key)
{
	DpTable t;
	bool exist;

	chunks_begin(&t, o, key, AccessShareLock);
	exist = dp_table_next(&t, ForwardScanDirection);
	chunks_end(&t);
	return exist;
}

static int64
chunks_count(DpOutlier *o, const DpKey *key, bool latest)
{
	SPIPlanPtr plan = dp_statement(o->decl, "SELECT pg_catalog.sum(n)" OF_KEY NOT_MOVING, o->side);
	Datum count;
	bool isnull;

	chunks_run(o, plan, key, 0, NULL, RUN_FLAGS(latest), SPI_OK_SELECT);
	count = dp_result(0, 1, &isnull);
	return isnull ? 0 : DatumGetInt64(count);
}

/* Appends values to the extras. */
static void
chunks_append(DpOutlier *o, const DpKey *key, const DpValue *values, int n)
{
	Chunk tail;
	int64 number = 0;
	int done = 0;

	if (tail_append(o, key, values, n))
		return;
	if (chunk_fetch(o, key, select_tail, 0, &tail))
	{
		number = tail.number + 1;
		done = chunk_room(o, &tail, values, n, 1);
		if (done > 0)
			chunk_update(o, key, tail.number, array_of(&tail.elements, values, done, NULL),
						 tail.n + done, tail.n + done >= o->chunk || done < n);
		else if (!tail.sealed || IsolationUsesXactSnapshot())
			/*
			 * written even if unchanged, so that a concurrent transaction with an older snapshot
			 * fails
			 */
			chunk_update(o, key, tail.number, dp_value_to_varlena(&tail.elements), tail.n, true);
	}
	while (done < n)
	{
		int m = chunk_room(o, NULL, values + done, n - done, 1);

		CHECK_FOR_INTERRUPTS();
		chunk_insert(o, key, number++, values + done, m, m == o->chunk || done + m < n);
		done += m;
	}
}

/*
 * Appends values to the tail of the last chunk.  Returns false if they do not fit, or the chunk
 * could become full.
 */
static bool
tail_append(DpOutlier *o, const DpKey *key, const DpValue *values, int n)
{
	DpTable t;
	bool done;

	/* a transaction with an older snapshot must fail: chunks_append() */
	if (n > TAIL_ELEMENTS || IsolationUsesXactSnapshot())
		return false;
	chunks_begin(&t, o, key, RowExclusiveLock);
	done = dp_table_next(&t, BackwardScanDirection) && row_append(o, &t, values, n);
	chunks_end(&t);
	if (done)
		CommandCounterIncrement();
	return done;
}

/* Does that to a row of the table. */
static bool
row_append(DpOutlier *o, DpTable *t, const DpValue *values, int n)
{
	DpValue tail = { dp_empty_document, sizeof(dp_empty_document), DP_TYPE_ARRAY };
	int64 bytes;
	int count;
	bool isnull;
	Datum d;
	TupleTableSlot *row;

	if (DatumGetBool(slot_getattr(t->row, o->columns[DP_CHUNK_SEALED], &isnull)))
		return false;
	count = DatumGetInt32(slot_getattr(t->row, o->columns[DP_CHUNK_N], &isnull)) + n;
	d = slot_getattr(t->row, o->columns[DP_CHUNK_TAIL], &isnull);
	if (!isnull)
		tail = elements_of(PointerGetDatum(PG_DETOAST_DATUM_PACKED(d)));
	bytes = tail.len;
	for (int i = 0; i < n; i++)
		bytes += values[i].len + array_overhead(1);
	d = slot_getattr(t->row, o->columns[DP_CHUNK_ELEMENTS], &isnull);
	if (count >= o->chunk || bytes > TAIL_BYTES ||
		dp_document_count(tail.data, tail.len) + n > TAIL_ELEMENTS ||
		dp_datum_size(d) + 2 * TAIL_BYTES > DP_OUTLIER_CHUNK_BYTES)
		return false;

	row = dp_table_copy(t);
	row->tts_values[o->columns[DP_CHUNK_N] - 1] = Int32GetDatum(count);
	row->tts_values[o->columns[DP_CHUNK_TAIL] - 1] =
		PointerGetDatum(array_of(&tail, values, n, NULL));
	row->tts_isnull[o->columns[DP_CHUNK_TAIL] - 1] = false;
	return dp_table_update(t, &t->row->tts_tid, InvalidAttrNumber, true) == TM_Ok;
}

/* Prepends values to the extras. */
static void
chunks_prepend(DpOutlier *o, const DpKey *key, const DpValue *values, int n)
{
	Chunk head;
	int64 number;
	int room;

	if (!chunk_fetch(o, key, select_head, 0, &head))
	{
		chunks_append(o, key, values, n);
		return;
	}
	number = head.number - 1;
	room = chunk_room(o, &head, values + n - 1, n, -1);
	if (room > 0 || IsolationUsesXactSnapshot())
	{
		chunk_update(o, key, head.number, array_of(NULL, values + n - room, room, &head.elements),
					 head.n + room, head.sealed);
		n -= room;
	}
	while (n > 0)
	{
		int m = chunk_room(o, NULL, values + n - 1, n, -1);

		CHECK_FOR_INTERRUPTS();
		chunk_insert(o, key, number--, values + n - m, m, true);
		n -= m;
	}
}

/*
 * Removes up to n values from the beginning or the end of the extras and adds them, in their
 * order, to the list.
 */
static void
chunks_take(DpOutlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken)
{
	List *chunks = NIL;
	ListCell *lc;

	while (n > 0)
	{
		Chunk chunk;
		DpValueList *values = palloc0(sizeof(DpValueList));

		CHECK_FOR_INTERRUPTS();
		if (!chunk_fetch(o, key, from_end ? select_tail : select_head, 0, &chunk))
			break;
		dp_values_add_array(values, &chunk.elements);
		if (values->n <= n)
		{
			chunk_delete(o, key, chunk.number);
			n -= values->n;
		}
		else
		{
			int rest = values->n - n;
			const DpValue *stays = from_end ? values->v : values->v + n;

			chunk_update(o, key, chunk.number, array_of(NULL, stays, rest, NULL), rest,
						 chunk.sealed);
			chunk_join(o, key, chunk.number);
			if (from_end)
				memmove(values->v, values->v + rest, sizeof(DpValue) * n);
			values->n = n;
			n = 0;
		}
		if (from_end)
			chunks = lcons(values, chunks);
		else
			chunks = lappend(chunks, values);
	}

	foreach(lc, chunks)
	{
		DpValueList *values = lfirst(lc);
		int i;

		for (i = 0; i < values->n; i++)
			dp_values_add(taken, &values->v[i]);
	}
}

/* Removes all occurrences of the values. Returns their number. */
static int64
chunks_remove(DpOutlier *o, const DpKey *key, const DpValue *values, int n)
{
	int64 removed = 0;
	int i;

	for (i = 0; i < n; i++)
	{
		List *candidates = chunk_candidates(o, key, &values[i], true);
		ListCell *lc;

		foreach(lc, candidates)
		{
			int64 number = *(int64 *) lfirst(lc);
			Chunk chunk;
			DpValueList list = { 0 };
			int kept = 0;
			int j;

			if (!chunk_fetch(o, key, select_chunk, number, &chunk))
				continue;
			dp_values_add_array(&list, &chunk.elements);
			for (j = 0; j < list.n; j++)
			{
				if (dp_value_compare(&list.v[j], &values[i]) != 0)
					list.v[kept++] = list.v[j];
			}
			if (kept == list.n)
				continue;
			removed += list.n - kept;
			if (kept == 0)
				chunk_delete(o, key, number);
			else
				chunk_update(o, key, number, array_of(NULL, list.v, kept, NULL), kept,
							 chunk.sealed);
		}

		/* afterwards, because joining changes the numbers of elements */
		foreach(lc, candidates)
		{
			int64 number = *(int64 *) lfirst(lc);
			Chunk chunk;

			if (chunk_fetch(o, key, select_chunk, number, &chunk))
				chunk_join(o, key, number);
			else if (chunk_fetch(o, key, select_before, number, &chunk))
				/* neighbours of a deleted chunk may now fit into one */
				chunk_join(o, key, chunk.number);
		}
	}
	return removed;
}

/* Returns whether the extras of the key contain the value. */
static bool
chunks_hold(DpOutlier *o, const DpKey *key, const DpValue *value, bool latest)
{
	return chunk_candidates(o, key, value, latest) != NIL;
}

/* Deletes all extras of the key. */
static void
chunks_drop(DpOutlier *o, const DpKey *key)
{
	SPIPlanPtr plan = dp_statement(o->decl, "DELETE" OF_KEY NOT_MOVING, o->side);

	chunks_run(o, plan, key, 0, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE);
}

/* Deletes extras whose document no longer exists. */
static void
chunks_drop_orphans(DpOutlier *o)
{
	dp_side_drop_orphans(o->decl, o->side, "");
}

/* Moves the extras of a row to its new key, marked as moving until the statement ends. */
static void
chunks_move(DpOutlier *o, const DpKey *from, const DpKey *to)
{
	SPIPlanPtr plan = dp_statement(
		o->decl,
		"UPDATE {relation} SET chunk = chunk OPERATOR(pg_catalog.+) " CppAsString2(
			MOVING) ", ({side key}) = ROW({$new key}) WHERE {side key = $key}" NOT_MOVING,
		o->side);
	Datum values[2 * INDEX_MAX_KEYS];
	int i;

	for (i = 0; i < o->decl->nkeys; i++)
	{
		values[i] = from->values[i];
		values[o->decl->nkeys + i] = to->values[i];
	}
	dp_run_marked(o->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_UPDATE, o->side,
				  o->decl->name, DP_MARK_INTERNAL);
}

/* Removes the mark at the end of the statement. */
static void
chunks_move_finish(DpOutlier *o, const DpKey *to)
{
	SPIPlanPtr plan = dp_statement(
		o->decl,
		"UPDATE {relation} SET chunk = chunk OPERATOR(pg_catalog.-) " CppAsString2(
			MOVING) " WHERE {side key = $key} AND chunk OPERATOR(pg_catalog.>=) " CppAsString2(MOVING_LEAST),
		o->side);

	chunks_run(o, plan, to, 0, NULL, DP_RUN_AS_OWNER, SPI_OK_UPDATE);
}

/* Adds a part of the extras to the list. */
static void
chunks_page(DpOutlier *o, const DpKey *key, int64 skip, int64 take, DpValueList *page, bool latest)
{
	uint64 rows;
	uint64 i;
	bool isnull;

	rows = chunks_select(o, select_all, key, 0, RUN_FLAGS(latest));
	for (i = 0; i < rows && take > 0; i++)
	{
		int32 n = DatumGetInt32(dp_result(i, 2, &isnull));
		DpIter iter;
		DpValue value;

		CHECK_FOR_INTERRUPTS();
		if (skip > 0 && skip >= n)
		{
			skip -= n;
			continue;
		}
		value = elements_at(i, 4);
		dp_iter_init_value(&iter, &value);
		while (take > 0 && dp_iter_next_value(&iter, &value))
		{
			if (skip > 0)
				skip--;
			else
			{
				dp_values_add(page, &value);
				take--;
			}
		}
	}
}

/* Appends all extras to the array that is open in the builder. */
static void
chunks_read(DpOutlier *o, const DpKey *key, DpBuilder *b, bool latest)
{
	uint64 rows;
	uint64 i;
	bool isnull;

	rows = chunks_select(o, select_all, key, 0, RUN_FLAGS(latest));
	for (i = 0; i < 2 * rows; i++)
	{
		Datum stored =
			SPI_getbinval(SPI_tuptable->vals[i / 2], SPI_tuptable->tupdesc, 4 + i % 2, &isnull);
		struct varlena *v;
		DpValue elements;
		DpIter iter;
		DpValue value;

		CHECK_FOR_INTERRUPTS();
		if (isnull)
			continue; /* no tail */
		v = PG_DETOAST_DATUM_PACKED(stored);
		elements = elements_of(PointerGetDatum(v));
		dp_outlier_check_whole(o, b, elements.len);
		dp_iter_init_value(&iter, &elements);
		while (dp_iter_next_value(&iter, &value))
			dp_builder_append_value(b, NULL, 0, &value);
		if ((Pointer) v != DatumGetPointer(stored))
			pfree(v);
	}
}

/*
 * Returns whether no chunk of the key is empty or too full, no neighbours fit into one, and n is
 * the number of elements of each.
 */
static bool
chunks_in_order(DpOutlier *o, const DpKey *key)
{
	Chunk before = { 0 };
	uint64 rows = chunks_select(o, select_all, key, 0, DP_RUN_AS_OWNER);
	uint64 i;

	for (i = 0; i < rows; i++)
	{
		bool isnull;
		Chunk chunk;

		CHECK_FOR_INTERRUPTS();
		chunk.n = DatumGetInt32(dp_result(i, 2, &isnull));
		chunk.elements = elements_at(i, 4);
		if (chunk.n < 1 || chunk.n > o->chunk || (i > 0 && chunks_fit(o, &before, &chunk)) ||
			dp_document_count(chunk.elements.data, chunk.elements.len) != (uint32) chunk.n)
			return false;
		before = chunk;
	}
	return true;
}

static Oid
chunks_find(DpOutlier *o)
{
	AttrNumber numbers[INDEX_MAX_KEYS + 1 + DP_CHUNK_COLUMNS];
	Oid side = dp_side_find(
		o->decl, o->link_id,
		"{side key}, chunk int8; n int4, sealed bool, elements bson_value, tail bson_value",
		numbers);

	memcpy(o->columns, numbers + o->decl->nkeys + 1, sizeof(o->columns));
	return side;
}

/* Returns keys of documents whose extras contain the value. */
static List *
chunks_holders(DpOutlier *o, const DpValue *value)
{
	SPIPlanPtr plan = dp_statement(
		o->decl,
		/* each half uses its own partial index */
		"SELECT elements, tail, {side key} FROM {relation} WHERE sealed"
		" AND docpatterns.bson_element_hashes(elements) OPERATOR(pg_catalog.@>) {$1 int8[]}"
		" UNION ALL SELECT elements, tail, {side key} FROM {relation} WHERE NOT sealed"
		" AND (docpatterns.bson_array_holds(elements, {$2 bson_value})"
		" OR docpatterns.bson_array_holds(tail, {$2 bson_value}))",
		o->side, o->side);
	List *keys = NIL;
	Datum args[2];
	Datum hash = Int64GetDatum((int64) dp_value_hash(value, 0));
	uint64 rows;
	uint64 i;
	bool isnull;

	args[0] =
		PointerGetDatum(construct_array(&hash, 1, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	args[1] = PointerGetDatum(dp_value_to_varlena(value));
	rows = dp_run(o->decl, plan, args, NULL, DP_RUN_AS_OWNER | DP_RUN_SNAPSHOT, 0, SPI_OK_SELECT);
	for (i = 0; i < rows; i++)
	{
		DpValue elements = elements_at(i, 1);
		DpKey *key;
		int j;

		CHECK_FOR_INTERRUPTS();
		if (!dp_array_holds(&elements, value))
			continue;
		key = palloc0(sizeof(DpKey));
		key->n = o->decl->nkeys;
		for (j = 0; j < key->n; j++)
			key->values[j] = dp_result(i, j + 3, &isnull);
		keys = dp_outlier_add_key(o, keys, key);
	}
	return keys;
}

/* Runs a statement whose parameters are the key's columns and then others. */
static uint64
chunks_run(DpOutlier *o, SPIPlanPtr plan, const DpKey *key, int nextra, const Datum *extra,
		   int flags, int expected)
{
	Datum values[INDEX_MAX_KEYS + 8];

	memcpy(values, key->values, sizeof(Datum) * o->decl->nkeys);
	if (nextra > 0)
		memcpy(values + o->decl->nkeys, extra, sizeof(Datum) * nextra);
	if (expected == SPI_OK_SELECT)
		return dp_run(o->decl, plan, values, NULL, flags, 0, expected);
	return dp_run_marked(o->decl, plan, values, NULL, flags, expected, o->side, o->decl->name,
						 DP_MARK_INTERNAL);
}

/* Reads chunks of a key; the number is for templates that have it. */
static uint64
chunks_select(DpOutlier *o, const char *template, const DpKey *key, int64 number, int flags)
{
	SPIPlanPtr plan = dp_statement(o->decl, template, o->side);
	Datum extra = Int64GetDatum(number);

	return chunks_run(o, plan, key, 1, &extra, flags, SPI_OK_SELECT);
}

/* Reads one chunk of the key by one of five templates, with a copy of its elements. */
static bool
chunk_fetch(DpOutlier *o, const DpKey *key, const char *template, int64 number, Chunk *chunk)
{
	bool isnull;

	if (chunks_select(o, template, key, number, DP_RUN_AS_OWNER) == 0)
		return false;
	chunk->number = DatumGetInt64(dp_result(0, 1, &isnull));
	chunk->n = DatumGetInt32(dp_result(0, 2, &isnull));
	chunk->sealed = DatumGetBool(dp_result(0, 3, &isnull));
	chunk->elements = elements_at(0, 4);
	return true;
}

/* Inserts a chunk. */
static void
chunk_insert(DpOutlier *o, const DpKey *key, int64 number, const DpValue *values, int n,
			 bool sealed)
{
	SPIPlanPtr plan = dp_statement(
		o->decl,
		"INSERT INTO {relation} ({side key}, chunk, n, sealed, elements)"
		" VALUES ({$key}, {$key+1 int8}, {$key+2 int4}, {$key+3 bool}, {$key+4 bson_value})",
		o->side);
	Datum extra[4];

	extra[0] = Int64GetDatum(number);
	extra[1] = Int32GetDatum(n);
	extra[2] = BoolGetDatum(sealed);
	extra[3] = PointerGetDatum(array_of(NULL, values, n, NULL));
	chunks_run(o, plan, key, 4, extra, DP_RUN_AS_OWNER, SPI_OK_INSERT);
	pfree(DatumGetPointer(extra[3]));
}

/* Replaces the elements of a chunk. */
static void
chunk_update(DpOutlier *o, const DpKey *key, int64 number, struct varlena *elements, int n,
			 bool sealed)
{
	SPIPlanPtr plan =
		dp_statement(o->decl,
					 "UPDATE {relation} SET n = {$key+2 int4}, sealed = {$key+3 bool},"
					 " elements = {$key+4 bson_value}, tail = NULL"
					 " WHERE {side key = $key} AND chunk OPERATOR(pg_catalog.=) {$key+1 int8}",
					 o->side);
	Datum extra[4];

	extra[0] = Int64GetDatum(number);
	extra[1] = Int32GetDatum(n);
	extra[2] = BoolGetDatum(sealed);
	extra[3] = PointerGetDatum(elements);
	chunks_run(o, plan, key, 4, extra, DP_RUN_AS_OWNER, SPI_OK_UPDATE);
}

/* Deletes a chunk. */
static void
chunk_delete(DpOutlier *o, const DpKey *key, int64 number)
{
	SPIPlanPtr plan =
		dp_statement(o->decl, "DELETE" OF_KEY " AND chunk OPERATOR(pg_catalog.=) {$key+1 int8}",
					 o->side);
	Datum extra = Int64GetDatum(number);

	chunks_run(o, plan, key, 1, &extra, DP_RUN_AS_OWNER, SPI_OK_DELETE);
}

/*
 * Returns how many of n values, forwards or (step -1) backwards, fit into a chunk, or into a new
 * one, which takes at least one.
 */
static int
chunk_room(DpOutlier *o, const Chunk *chunk, const DpValue *values, int n, int step)
{
	int count = chunk != NULL ? chunk->n : 0;
	int64 payload = chunk != NULL ? (int64) chunk->elements.len - array_overhead(chunk->n) : 0;
	int room = 0;

	while (room < n && count < o->chunk)
	{
		const DpValue *value = values + (int64) room * step;

		/* a chunk of this large element alone */
		if (count > 0 && payload + array_overhead(count) + value->len + array_overhead(1) >
							 DP_OUTLIER_CHUNK_BYTES)
			break;
		payload += value->len;
		count++;
		room++;
	}
	return room;
}

/*
 * Returns the bytes of an array of n elements without their values: types, positions, length and
 * end.
 */
static int64
array_overhead(int n)
{
	int64 bytes = DP_DOCUMENT_MIN_SIZE + (int64) n * 3;
	int64 power;

	for (power = 10; power < n; power *= 10)
		bytes += n - power;
	return bytes;
}

/* Returns whether two neighbours fit into one chunk. */
static bool
chunks_fit(DpOutlier *o, const Chunk *a, const Chunk *b)
{
	return a->n + b->n <= o->chunk &&
		   (int64) a->elements.len + b->elements.len <= DP_OUTLIER_CHUNK_BYTES;
}

/* Joins a chunk that became smaller with a neighbour if both fit into one. */
static void
chunk_join(DpOutlier *o, const DpKey *key, int64 number)
{
	Chunk chunk;
	Chunk other;

	if (!chunk_fetch(o, key, select_chunk, number, &chunk))
		return;
	if (chunk_fetch(o, key, select_before, number, &other) && chunks_fit(o, &other, &chunk))
	{
		DpValueList list = { 0 };

		dp_values_add_array(&list, &chunk.elements);
		chunk_delete(o, key, number);
		chunk_update(o, key, other.number, array_of(&other.elements, list.v, list.n, NULL),
					 other.n + chunk.n, other.sealed);
		if (!chunk_fetch(o, key, select_chunk, other.number, &chunk))
			return;
		number = other.number;
	}
	if (chunk_fetch(o, key, select_after, number, &other) && other.number < MOVING_LEAST &&
		chunks_fit(o, &chunk, &other))
	{
		DpValueList list = { 0 };

		dp_values_add_array(&list, &other.elements);
		chunk_delete(o, key, other.number);
		chunk_update(o, key, number, array_of(&chunk.elements, list.v, list.n, NULL),
					 other.n + chunk.n, other.sealed);
	}
}

/* Returns a new array, a bson_value: elements of one array, some values, elements of another. */
static struct varlena *
array_of(const DpValue *head, const DpValue *values, int n, const DpValue *tail)
{
	DpBuilder b;
	DpIter iter;
	DpValue value;
	int i;

	dp_builder_init_value(&b, (head ? head->len : 0) + (tail ? tail->len : 0) + n * 16);
	dp_builder_begin_array(&b);
	if (head != NULL)
	{
		dp_iter_init_value(&iter, head);
		while (dp_iter_next_value(&iter, &value))
			dp_builder_append_value(&b, NULL, 0, &value);
	}
	for (i = 0; i < n; i++)
		dp_builder_append_value(&b, NULL, 0, &values[i]);
	if (tail != NULL)
	{
		dp_iter_init_value(&iter, tail);
		while (dp_iter_next_value(&iter, &value))
			dp_builder_append_value(&b, NULL, 0, &value);
	}
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
}

/* Returns the numbers of the key's chunks that contain the value, a list of int64 pointers. */
static List *
chunk_candidates(DpOutlier *o, const DpKey *key, const DpValue *value, bool latest)
{
	SPIPlanPtr plan = dp_statement(
		o->decl,
		/* OFFSET 0 makes the planner search by hash; by key it would read every chunk */
		"SELECT chunk, elements, tail"
		" FROM (SELECT chunk, elements, tail, {side key} FROM {relation}"
		" WHERE sealed"
		" AND docpatterns.bson_element_hashes(elements) OPERATOR(pg_catalog.@>) {$key+1 int8[]}"
		" OFFSET 0) AS hits WHERE {side key = $key}" NOT_MOVING
		" UNION ALL SELECT chunk, elements, tail FROM {relation} WHERE NOT sealed"
		" AND {side key = $key}" NOT_MOVING,
		o->side, o->side);
	Datum extra[1];
	Datum hash = Int64GetDatum((int64) dp_value_hash(value, 0));
	List *result = NIL;
	uint64 rows;
	uint64 i;
	bool isnull;

	extra[0] =
		PointerGetDatum(construct_array(&hash, 1, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	rows = chunks_run(o, plan, key, 1, extra, RUN_FLAGS(latest), SPI_OK_SELECT);
	for (i = 0; i < rows; i++)
	{
		DpValue elements = elements_at(i, 2);

		if (dp_array_holds(&elements, value))
		{
			int64 *number = palloc(sizeof(int64));

			*number = DatumGetInt64(dp_result(i, 1, &isnull));
			result = lappend(result, number);
		}
	}
	return result;
}

/* Returns the elements of a chunk in a result: those of its array, and of its tail behind it. */
static DpValue
elements_at(uint64 row, int column)
{
	bool isnull;
	DpValue elements = elements_of(dp_result(row, column, &isnull));
	Datum stored = dp_result(row, column + 1, &isnull);
	DpValue tail;

	if (isnull)
		return elements;
	tail = elements_of(stored);
	return dp_value_of_varlena(array_of(&elements, NULL, 0, &tail));
}

/*
 * _outlier_elements(elements bson_value, tail bson_value) -> bson_value: the elements of a chunk
 */
DP_FUNCTION(dp_outlier_elements);
Datum
dp_outlier_elements(PG_FUNCTION_ARGS)
{
	DpValue elements;
	DpValue tail;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	elements = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	tail = dp_value_of_varlena(DP_GETARG_VARLENA(1));
	if (elements.type != DP_TYPE_ARRAY || tail.type != DP_TYPE_ARRAY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("elements must be arrays")));
	PG_RETURN_POINTER(array_of(&elements, NULL, 0, &tail));
}

/* Returns the elements of a chunk. Raises DATA_CORRUPTED if they are not an array. */
static DpValue
elements_of(Datum value)
{
	DpValue elements = dp_value_of_varlena((struct varlena *) DatumGetPointer(value));

	if (elements.type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("elements of a chunk of extras are not an array")));
	return elements;
}
