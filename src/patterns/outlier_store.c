/*
 * outlier_store.c
 *		Where the extras of outliers lie.
 *
 * Two kinds of store have the same functions:
 *
 * Chunks: a table (key, chunk, n, sealed, elements) of the pattern's own.  The
 * chunks of a key, by number, are the extras in order; numbers have gaps and
 * may be negative, because extras also grow in front.  No chunk is empty or
 * has more than o->chunk elements, and no two neighbours would fit into one.
 * A chunk that is not sealed is the one at the end that still grows: elements
 * of sealed chunks are indexed by their hashes, those of the others are few
 * and are looked through, so that a push does not pay for the index.
 *
 * A collection: an ordinary table with a bson column, one document per
 * element, which carries the key in the field o->link.  Their order is that of
 * the table's primary key.
 *
 * While the rows of one statement change their keys, the chunks of a moved key
 * have numbers above MOVING (and a collection's link is wrapped), so that they
 * cannot be taken for those of another row whose own key is about to change.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "access/table.h"

#include "bson/catalog.h"
#include "bson/cast.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "patterns/outlier.h"
#include "patterns/run.h"
#include "patterns/sqlgen.h"

#define MOVING	(INT64CONST(1) << 62)

/* One row of the table of chunks */
typedef struct Chunk
{
	int64		number;
	int32		n;
	bool		sealed;
	DpValue		elements;		/* an array */
} Chunk;

/* Plans are known by the addresses of these */
static const char plan_tail, plan_head, plan_chunk, plan_before, plan_after, plan_insert,
			plan_update, plan_delete, plan_drop, plan_exists, plan_count, plan_read,
			plan_candidates, plan_holders, plan_move, plan_move_finish, plan_orphans,
			plan_take_first, plan_take_last, plan_link_insert, plan_link_used;

static void store_require(Outlier *o);
static SPIPlanPtr store_plan(Outlier *o, const void *id, StringInfo sql, int nextra, const Oid *extra);
static uint64 store_run(Outlier *o, SPIPlanPtr plan, const DpKey *key, int nextra,
						const Datum *extra, int flags, int expected);
static SPIPlanPtr chunk_select(Outlier *o, const void *id, const char *condition, const char *rest, bool with_number);
static bool chunk_fetch(Outlier *o, const DpKey *key, const void *id, int64 number, Chunk *chunk);
static void chunk_insert(Outlier *o, const DpKey *key, int64 number, const DpValue *values, int n, bool sealed);
static void chunk_update(Outlier *o, const DpKey *key, int64 number, struct varlena *elements, int n, bool sealed);
static void chunk_delete(Outlier *o, const DpKey *key, int64 number);
static void chunk_join(Outlier *o, const DpKey *key, int64 number);
static struct varlena *array_of(const DpValue *head, const DpValue *values, int n, const DpValue *tail);
static List *chunk_candidates(Outlier *o, const DpKey *key, const DpValue *value, bool latest);
static bool array_holds(const DpValue *array, const DpValue *value);

static void link_append(Outlier *o, const DpKey *key, const DpValue *values, int n);
static void link_take(Outlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken);
static void link_condition(Outlier *o, StringInfo sql, int parameter);
static SPIPlanPtr link_plan(Outlier *o, const void *id, StringInfo sql, Oid extra);
static uint64 link_run(Outlier *o, SPIPlanPtr plan, struct varlena *link, Datum extra, int nargs,
					   int flags, int expected);
static SPIPlanPtr link_read_plan(Outlier *o);
static DpValue link_element(Outlier *o, struct varlena *doc);
static bool link_matches(const DpValue *element, const DpValue *value);
static struct varlena *link_moving(struct varlena *link);

#define RUN_FLAGS(latest) (DP_RUN_AS_OWNER | ((latest) ? 0 : DP_RUN_SNAPSHOT))

/*
 * Whether the key has extras.
 */
bool
dp_outlier_exists(Outlier *o, const DpKey *key)
{
	SPIPlanPtr	plan;
	StringInfoData sql;

	store_require(o);
	plan = dp_plan(o->decl, &plan_exists);
	if (plan == NULL)
	{
		initStringInfo(&sql);
		appendStringInfoString(&sql, "SELECT 1 FROM ");
		dp_sql_table(&sql, o->side);
		appendStringInfoString(&sql, " WHERE ");
		if (o->link != NULL)
		{
			link_condition(o, &sql, 1);
			plan = link_plan(o, &plan_exists, &sql, InvalidOid);
		}
		else
		{
			dp_sql_side_key_match(&sql, o->decl, 1);
			plan = store_plan(o, &plan_exists, &sql, 0, NULL);
		}
	}
	if (o->link != NULL)
	{
		Datum		link = PointerGetDatum(dp_key_to_value(o->decl, key));

		return dp_run(o->decl, plan, &link, NULL, DP_RUN_AS_OWNER, 1, SPI_OK_SELECT) > 0;
	}
	return dp_run(o->decl, plan, (Datum *) key->values, NULL, DP_RUN_AS_OWNER, 1, SPI_OK_SELECT) > 0;
}

/*
 * The number of extras of the key.
 */
int64
dp_outlier_stored(Outlier *o, const DpKey *key, bool latest)
{
	SPIPlanPtr	plan;
	StringInfoData sql;
	bool		isnull;

	store_require(o);
	plan = dp_plan(o->decl, &plan_count);
	if (plan == NULL)
	{
		initStringInfo(&sql);
		if (o->link != NULL)
		{
			appendStringInfoString(&sql, "SELECT pg_catalog.count(*) FROM ");
			dp_sql_table(&sql, o->side);
			appendStringInfoString(&sql, " WHERE ");
			link_condition(o, &sql, 1);
			plan = link_plan(o, &plan_count, &sql, InvalidOid);
		}
		else
		{
			appendStringInfoString(&sql, "SELECT pg_catalog.sum(n) FROM ");
			dp_sql_table(&sql, o->side);
			appendStringInfoString(&sql, " WHERE ");
			dp_sql_side_key_match(&sql, o->decl, 1);
			plan = store_plan(o, &plan_count, &sql, 0, NULL);
		}
	}
	if (o->link != NULL)
		link_run(o, plan, dp_key_to_value(o->decl, key), (Datum) 0, 1, RUN_FLAGS(latest), SPI_OK_SELECT);
	else
		store_run(o, plan, key, 0, NULL, RUN_FLAGS(latest), SPI_OK_SELECT);
	{
		Datum		value = dp_result(0, 1, &isnull);

		return isnull ? 0 : DatumGetInt64(value);
	}
}

/*
 * Put values at the end of the extras.
 */
void
dp_outlier_append(Outlier *o, const DpKey *key, const DpValue *values, int n)
{
	Chunk		tail;
	int64		number = 0;
	int			done = 0;

	if (n == 0)
		return;
	store_require(o);
	if (o->link != NULL)
	{
		link_append(o, key, values, n);
		return;
	}

	if (chunk_fetch(o, key, &plan_tail, 0, &tail))
	{
		number = tail.number + 1;
		done = Min(n, Max(o->chunk - tail.n, 0));
		if (done > 0)
			chunk_update(o, key, tail.number, array_of(&tail.elements, values, done, NULL),
						 tail.n + done, tail.n + done >= o->chunk);
		else if (!tail.sealed || IsolationUsesXactSnapshot())
			/* written even if it stays as it is, so that a transaction whose snapshot is older notices */
			chunk_update(o, key, tail.number, dp_value_to_varlena(&tail.elements), tail.n, true);
	}
	while (done < n)
	{
		int			m = Min(o->chunk, n - done);

		CHECK_FOR_INTERRUPTS();
		chunk_insert(o, key, number++, values + done, m, m == o->chunk);
		done += m;
	}
}

/*
 * Put values in front of the extras.  A collection keeps its own order.
 */
void
dp_outlier_prepend(Outlier *o, const DpKey *key, const DpValue *values, int n)
{
	Chunk		head;
	int64		number;
	int			room;

	if (n == 0)
		return;
	store_require(o);
	if (o->link != NULL)
	{
		link_append(o, key, values, n);
		return;
	}

	if (!chunk_fetch(o, key, &plan_head, 0, &head))
	{
		dp_outlier_append(o, key, values, n);
		return;
	}
	number = head.number - 1;
	room = Max(0, o->chunk - head.n);
	if (room > 0 || IsolationUsesXactSnapshot())
	{
		int			m = Min(n, room);

		chunk_update(o, key, head.number, array_of(NULL, values + n - m, m, &head.elements),
					 head.n + m, head.sealed);
		n -= m;
	}
	while (n > 0)
	{
		int			m = Min(o->chunk, n);

		CHECK_FOR_INTERRUPTS();
		chunk_insert(o, key, number--, values + n - m, m, true);
		n -= m;
	}
}

/*
 * Take up to n values away from the beginning or the end of the extras and add
 * them, in their order, to the list.
 */
void
dp_outlier_take(Outlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken)
{
	List	   *chunks = NIL;
	ListCell   *lc;

	store_require(o);
	if (o->link != NULL)
	{
		link_take(o, key, n, from_end, taken);
		return;
	}

	while (n > 0)
	{
		Chunk		chunk;
		DpValueList *values = palloc0(sizeof(DpValueList));

		CHECK_FOR_INTERRUPTS();
		if (!chunk_fetch(o, key, from_end ? &plan_tail : &plan_head, 0, &chunk))
			break;
		dp_values_add_array(values, &chunk.elements);
		if (values->n <= n)
		{
			chunk_delete(o, key, chunk.number);
			n -= values->n;
		}
		else
		{
			int			rest = values->n - n;
			const DpValue *stays = from_end ? values->v : values->v + n;

			chunk_update(o, key, chunk.number, array_of(NULL, stays, rest, NULL), rest, chunk.sealed);
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
		int			i;

		for (i = 0; i < values->n; i++)
			dp_values_add(taken, &values->v[i]);
	}
}

/*
 * Take all occurrences of the values away.  Returns how many there were.
 */
int64
dp_outlier_remove(Outlier *o, const DpKey *key, const DpValue *values, int n)
{
	int64		removed = 0;
	int			i;

	store_require(o);
	if (o->link != NULL)
	{
		DpValueList all = {0};
		int64		kept = 0;

		/* one reading of the key's documents, those that match go */
		dp_outlier_take(o, key, PG_INT64_MAX, false, &all);
		for (i = 0; i < all.n; i++)
		{
			bool		gone = false;
			int			j;

			for (j = 0; j < n && !gone; j++)
				gone = link_matches(&all.v[i], &values[j]);
			if (gone)
				removed++;
			else
				all.v[kept++] = all.v[i];
		}
		link_append(o, key, all.v, kept);
		return removed;
	}

	for (i = 0; i < n; i++)
	{
		ListCell   *lc;

		foreach(lc, chunk_candidates(o, key, &values[i], true))
		{
			int64		number = *(int64 *) lfirst(lc);
			Chunk		chunk;
			DpValueList list = {0};
			int			kept = 0;
			int			j;

			if (!chunk_fetch(o, key, &plan_chunk, number, &chunk))
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
			{
				chunk_update(o, key, number, array_of(NULL, list.v, kept, NULL), kept, chunk.sealed);
				chunk_join(o, key, number);
			}
			/* what stood on both sides of a chunk that is gone may fit together now */
			if (kept == 0 && chunk_fetch(o, key, &plan_before, number, &chunk))
				chunk_join(o, key, chunk.number);
		}
	}
	return removed;
}

/*
 * Whether the value is among the extras of the key.
 */
bool
dp_outlier_holds(Outlier *o, const DpKey *key, const DpValue *value, bool latest)
{
	store_require(o);
	if (o->link != NULL)
	{
		uint64		rows = link_run(o, link_read_plan(o), dp_key_to_value(o->decl, key), (Datum) 0, 1,
									RUN_FLAGS(latest), SPI_OK_SELECT);
		uint64		i;

		for (i = 0; i < rows; i++)
		{
			bool		isnull;
			DpValue		element = link_element(o, (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull)));

			if (link_matches(&element, value))
				return true;
		}
		return false;
	}

	return chunk_candidates(o, key, value, latest) != NIL;
}

/*
 * Forget all extras of the key.
 */
void
dp_outlier_drop(Outlier *o, const DpKey *key)
{
	SPIPlanPtr	plan;
	StringInfoData sql;

	store_require(o);
	plan = dp_plan(o->decl, &plan_drop);
	if (plan == NULL)
	{
		initStringInfo(&sql);
		appendStringInfoString(&sql, "DELETE FROM ");
		dp_sql_table(&sql, o->side);
		appendStringInfoString(&sql, " WHERE ");
		if (o->link != NULL)
		{
			link_condition(o, &sql, 1);
			plan = link_plan(o, &plan_drop, &sql, InvalidOid);
		}
		else
		{
			dp_sql_side_key_match(&sql, o->decl, 1);
			appendStringInfo(&sql, " AND chunk OPERATOR(pg_catalog.<) " INT64_FORMAT, MOVING / 2);
			plan = store_plan(o, &plan_drop, &sql, 0, NULL);
		}
	}
	if (o->link != NULL)
		link_run(o, plan, dp_key_to_value(o->decl, key), (Datum) 0, 1, DP_RUN_AS_OWNER, SPI_OK_DELETE);
	else
		store_run(o, plan, key, 0, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE);
}

/*
 * Forget the extras whose document no longer exists (after TRUNCATE).
 */
void
dp_outlier_drop_orphans(Outlier *o)
{
	SPIPlanPtr	plan;
	StringInfoData sql;
	int			i;

	store_require(o);
	plan = dp_plan(o->decl, &plan_orphans);
	if (plan == NULL)
	{
		initStringInfo(&sql);
		appendStringInfoString(&sql, "DELETE FROM ");
		dp_sql_table(&sql, o->side);
		appendStringInfoString(&sql, " AS side WHERE ");
		if (o->link != NULL)
		{
			dp_sql_doc_path(&sql, o->side_column, o->link);
			appendStringInfoString(&sql, " IS NOT NULL AND ");
		}
		appendStringInfoString(&sql, "NOT EXISTS (SELECT FROM ");
		dp_sql_table(&sql, o->decl->target);
		appendStringInfoString(&sql, " AS base WHERE ");
		if (o->link != NULL)
		{
			/* the link as dp_key_to_value() makes it */
			if (o->decl->nkeys == 1)
			{
				dp_sql_own_schema(&sql);
				appendStringInfo(&sql, "to_bson(base.%s)", quote_identifier(o->decl->keys[0].name));
			}
			else
			{
				dp_sql_own_schema(&sql);
				appendStringInfoString(&sql, "bson_array(");
				for (i = 0; i < o->decl->nkeys; i++)
					appendStringInfo(&sql, "%sbase.%s", i > 0 ? ", " : "",
									 quote_identifier(o->decl->keys[i].name));
				appendStringInfoChar(&sql, ')');
			}
			dp_sql_own_operator(&sql, "=");
			appendStringInfoString(&sql, "(side.");
			appendStringInfoString(&sql, quote_identifier(o->side_column));
			dp_sql_own_operator(&sql, "->");
			appendStringInfo(&sql, "%s::pg_catalog.text)", quote_literal_cstr(o->link));
		}
		else
		{
			for (i = 0; i < o->decl->nkeys; i++)
			{
				appendStringInfo(&sql, "%sbase.%s", i > 0 ? " AND " : "",
								 quote_identifier(o->decl->keys[i].name));
				dp_sql_operator(&sql, o->decl->keys[i].eqop);
				appendStringInfoString(&sql, "side.");
				dp_sql_side_key_name(&sql, o->decl, i);
			}
		}
		appendStringInfoChar(&sql, ')');
		plan = dp_plan_make(o->decl, &plan_orphans, sql.data, 0, NULL);
	}
	dp_run_marked(o->decl, plan, NULL, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE,
				  o->side, o->decl->name, DP_MARK_INTERNAL);
}

/*
 * The row's key changes: its extras follow, marked as moving until the
 * statement has ended.
 */
void
dp_outlier_move(Outlier *o, const DpKey *from, const DpKey *to)
{
	SPIPlanPtr	plan;
	StringInfoData sql;

	store_require(o);
	plan = dp_plan(o->decl, &plan_move);
	if (o->link != NULL)
	{
		if (plan == NULL)
		{
			initStringInfo(&sql);
			appendStringInfoString(&sql, "UPDATE ");
			dp_sql_table(&sql, o->side);
			appendStringInfo(&sql, " SET %s = ", quote_identifier(o->side_column));
			dp_sql_own_schema(&sql);
			appendStringInfo(&sql, "bson_set(%s, %s, $2) WHERE ", quote_identifier(o->side_column),
							 quote_literal_cstr(o->link));
			link_condition(o, &sql, 1);
			plan = link_plan(o, &plan_move, &sql, dp_types()->bson_value);
		}
		link_run(o, plan, dp_key_to_value(o->decl, from),
				 PointerGetDatum(link_moving(dp_key_to_value(o->decl, to))), 2,
				 DP_RUN_AS_OWNER, SPI_OK_UPDATE);
	}
	else
	{
		int			i;
		Datum		values[2 * INDEX_MAX_KEYS];
		Oid			types[2 * INDEX_MAX_KEYS];

		if (plan == NULL)
		{
			initStringInfo(&sql);
			appendStringInfoString(&sql, "UPDATE ");
			dp_sql_table(&sql, o->side);
			appendStringInfo(&sql, " SET chunk = chunk OPERATOR(pg_catalog.+) " INT64_FORMAT, MOVING);
			for (i = 0; i < o->decl->nkeys; i++)
			{
				appendStringInfoString(&sql, ", ");
				dp_sql_side_key_name(&sql, o->decl, i);
				appendStringInfo(&sql, " = $%d", o->decl->nkeys + i + 1);
			}
			appendStringInfoString(&sql, " WHERE ");
			dp_sql_side_key_match(&sql, o->decl, 1);
			appendStringInfo(&sql, " AND chunk OPERATOR(pg_catalog.<) " INT64_FORMAT, MOVING / 2);
			dp_sql_key_types(o->decl, types);
			dp_sql_key_types(o->decl, types + o->decl->nkeys);
			plan = dp_plan_make(o->decl, &plan_move, sql.data, 2 * o->decl->nkeys, types);
		}
		for (i = 0; i < o->decl->nkeys; i++)
		{
			values[i] = from->values[i];
			values[o->decl->nkeys + i] = to->values[i];
		}
		dp_run_marked(o->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_UPDATE,
					  o->side, o->decl->name, DP_MARK_INTERNAL);
	}
}

/*
 * The statement has ended: the extras that moved to the key have arrived.
 */
void
dp_outlier_move_finish(Outlier *o, const DpKey *to)
{
	SPIPlanPtr	plan;
	StringInfoData sql;

	store_require(o);
	plan = dp_plan(o->decl, &plan_move_finish);
	if (o->link != NULL)
	{
		struct varlena *link = dp_key_to_value(o->decl, to);

		if (plan == NULL)
		{
			initStringInfo(&sql);
			appendStringInfoString(&sql, "UPDATE ");
			dp_sql_table(&sql, o->side);
			appendStringInfo(&sql, " SET %s = ", quote_identifier(o->side_column));
			dp_sql_own_schema(&sql);
			appendStringInfo(&sql, "bson_set(%s, %s, $2) WHERE ", quote_identifier(o->side_column),
							 quote_literal_cstr(o->link));
			link_condition(o, &sql, 1);
			plan = link_plan(o, &plan_move_finish, &sql, dp_types()->bson_value);
		}
		link_run(o, plan, link_moving(link), PointerGetDatum(link), 2,
				 DP_RUN_AS_OWNER, SPI_OK_UPDATE);
	}
	else
	{
		if (plan == NULL)
		{
			initStringInfo(&sql);
			appendStringInfoString(&sql, "UPDATE ");
			dp_sql_table(&sql, o->side);
			appendStringInfo(&sql, " SET chunk = chunk OPERATOR(pg_catalog.-) " INT64_FORMAT " WHERE ", MOVING);
			dp_sql_side_key_match(&sql, o->decl, 1);
			appendStringInfo(&sql, " AND chunk OPERATOR(pg_catalog.>=) " INT64_FORMAT, MOVING / 2);
			plan = store_plan(o, &plan_move_finish, &sql, 0, NULL);
		}
		store_run(o, plan, to, 0, NULL, DP_RUN_AS_OWNER, SPI_OK_UPDATE);
	}
}

/*
 * A part of the extras.
 */
void
dp_outlier_page(Outlier *o, const DpKey *key, int64 skip, int64 take, DpValueList *page, bool latest)
{
	uint64		rows;
	uint64		i;
	bool		isnull;

	store_require(o);
	if (o->link != NULL)
		rows = link_run(o, link_read_plan(o), dp_key_to_value(o->decl, key), (Datum) 0, 1,
						RUN_FLAGS(latest), SPI_OK_SELECT);
	else
		rows = store_run(o, chunk_select(o, &plan_read, "", " ORDER BY chunk", false), key, 0, NULL,
						 RUN_FLAGS(latest), SPI_OK_SELECT);

	for (i = 0; i < rows && take > 0; i++)
	{
		DpIter		iter;
		DpValue		value;
		struct varlena *elements;

		CHECK_FOR_INTERRUPTS();
		if (o->link != NULL)
		{
			if (skip-- > 0)
				continue;
			value = link_element(o, (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull)));
			dp_values_add(page, &value);
			take--;
			continue;
		}

		{
			int32		n = DatumGetInt32(dp_result(i, 2, &isnull));

			if (skip >= n)
			{
				skip -= n;
				continue;
			}
		}
		elements = (struct varlena *) DatumGetPointer(dp_result(i, 4, &isnull));
		value = dp_value_of_varlena(elements);
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

/*
 * All extras, into the array that is open in the builder.
 */
void
dp_outlier_read(Outlier *o, const DpKey *key, DpBuilder *b, bool latest)
{
	uint64		rows;
	uint64		i;
	bool		isnull;

	store_require(o);
	if (o->link != NULL)
		rows = link_run(o, link_read_plan(o), dp_key_to_value(o->decl, key), (Datum) 0, 1,
						RUN_FLAGS(latest), SPI_OK_SELECT);
	else
		rows = store_run(o, chunk_select(o, &plan_read, "", " ORDER BY chunk", false), key, 0, NULL,
						 RUN_FLAGS(latest), SPI_OK_SELECT);

	for (i = 0; i < rows; i++)
	{
		Datum		stored = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc,
										   o->link != NULL ? 1 : 4, &isnull);
		struct varlena *v = PG_DETOAST_DATUM_PACKED(stored);
		DpValue		value;

		CHECK_FOR_INTERRUPTS();
		if ((Size) b->len + VARSIZE_ANY(v) + VARSIZE_ANY(v) / 2 > MaxAllocSize)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("the whole document is too large"),
					 errdetail("A document cannot have more than %zu bytes.", (Size) MaxAllocSize),
					 errhint("Read the array \"%s\" in pages with outlier_page().", dp_decl_text(o->decl, "field"))));
		if (o->link != NULL)
		{
			value = link_element(o, v);
			dp_builder_append_value(b, NULL, 0, &value);
		}
		else
		{
			DpIter		iter;
			DpValue		elements = dp_value_of_varlena(v);

			dp_iter_init_value(&iter, &elements);
			while (dp_iter_next_value(&iter, &value))
				dp_builder_append_value(b, NULL, 0, &value);
		}
		if ((Pointer) v != DatumGetPointer(stored))
			pfree(v);
	}
}

/*
 * Whether a document of the collection has this link.
 */
bool
dp_outlier_link_used(Outlier *o, struct varlena *link)
{
	SPIPlanPtr	plan;

	store_require(o);
	plan = dp_plan(o->decl, &plan_link_used);
	if (plan == NULL)
	{
		StringInfoData sql;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "SELECT 1 FROM ");
		dp_sql_table(&sql, o->side);
		appendStringInfoString(&sql, " WHERE ");
		link_condition(o, &sql, 1);
		appendStringInfoString(&sql, " LIMIT 1");
		plan = link_plan(o, &plan_link_used, &sql, InvalidOid);
	}
	return link_run(o, plan, link, (Datum) 0, 1, DP_RUN_AS_OWNER, SPI_OK_SELECT) > 0;
}

/*
 * Keys of documents that have the value among their extras.
 */
List *
dp_outlier_holders(Outlier *o, const DpValue *value)
{
	SPIPlanPtr	plan;
	StringInfoData sql;
	List	   *keys = NIL;
	uint64		rows;
	uint64		i;
	bool		isnull;
	Datum		args[2];

	store_require(o);
	plan = dp_plan(o->decl, &plan_holders);
	if (plan == NULL)
	{
		initStringInfo(&sql);
		if (o->link != NULL)
		{
			Oid			type = dp_types()->bson;

			appendStringInfo(&sql, "SELECT %s FROM ", quote_identifier(o->side_column));
			dp_sql_table(&sql, o->side);
			appendStringInfo(&sql, " WHERE %s", quote_identifier(o->side_column));
			dp_sql_own_operator(&sql, "@>");
			appendStringInfoString(&sql, "$1");
			plan = dp_plan_make(o->decl, &plan_holders, sql.data, 1, &type);
		}
		else
		{
			Oid			types[2] = {INT8ARRAYOID, dp_types()->bson_value};

			/* both halves are served by a partial index of their own */
			appendStringInfoString(&sql, "SELECT elements, ");
			dp_sql_side_key_list(&sql, o->decl);
			appendStringInfoString(&sql, " FROM ");
			dp_sql_table(&sql, o->side);
			appendStringInfoString(&sql, " WHERE sealed AND ");
			dp_sql_own_schema(&sql);
			appendStringInfoString(&sql, "bson_element_hashes(elements) OPERATOR(pg_catalog.@>) $1 UNION ALL SELECT elements, ");
			dp_sql_side_key_list(&sql, o->decl);
			appendStringInfoString(&sql, " FROM ");
			dp_sql_table(&sql, o->side);
			appendStringInfoString(&sql, " WHERE NOT sealed AND ");
			dp_sql_own_schema(&sql);
			appendStringInfoString(&sql, "bson_array_holds(elements, $2)");
			plan = dp_plan_make(o->decl, &plan_holders, sql.data, 2, types);
		}
	}

	if (o->link != NULL)
	{
		if (value->type != DP_TYPE_DOCUMENT)
			return NIL;
		args[0] = PointerGetDatum(dp_document_to_varlena(value->data, value->len));
	}
	else
	{
		Datum		hash = Int64GetDatum((int64) dp_value_hash(value, 0));

		args[0] = PointerGetDatum(construct_array(&hash, 1, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
		args[1] = PointerGetDatum(dp_value_to_varlena(value));
	}
	rows = dp_run(o->decl, plan, args, NULL, DP_RUN_AS_OWNER | DP_RUN_SNAPSHOT, 0, SPI_OK_SELECT);
	for (i = 0; i < rows; i++)
	{
		struct varlena *v = (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull));
		DpKey	   *key = palloc0(sizeof(DpKey));
		ListCell   *lc;
		bool		known = false;

		CHECK_FOR_INTERRUPTS();
		if (o->link != NULL)
		{
			DpPath	   *path = dp_path_parse(o->link, strlen(o->link));
			DpValue		element = link_element(o, v);
			DpValue		link;

			if (!link_matches(&element, value) ||
				!dp_path_find(DP_DOC_DATA(v), DP_DOC_SIZE(v), path, &link) ||
				!dp_key_of_value(o->decl, &link, key))
				continue;
		}
		else
		{
			DpValue		elements = dp_value_of_varlena(v);
			int			j;

			if (!array_holds(&elements, value))
				continue;
			key->n = o->decl->nkeys;
			for (j = 0; j < key->n; j++)
				key->values[j] = dp_result(i, j + 2, &isnull);
		}
		foreach(lc, keys)
			known = known || dp_key_identical(o->decl, lfirst(lc), key);
		if (!known)
			keys = lappend(keys, key);
	}
	return keys;
}

/* Raises UNDEFINED_TABLE if the store is missing. */
static void
store_require(Outlier *o)
{
	if (OidIsValid(o->side))
		return;
	o->side = dp_pair_side(o->pair, get_rel_namespace(o->decl->target));
	if (!OidIsValid(o->side))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the extras of the outlier pattern \"%s\" on table %s are missing",
						o->decl->name, dp_relation_name(o->decl->target)),
				 errhint("If the table was restored alone, restore its extras, or call pattern_repair() to start with none.")));
	if (o->link != NULL)
	{
		Relation	rel = table_open(o->side, AccessShareLock);
		int			i;

		for (i = 0; i < RelationGetNumberOfAttributes(rel); i++)
		{
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

			if (!att->attisdropped && att->atttypid == dp_types()->bson)
				o->side_column = MemoryContextStrdup(o->decl->context, NameStr(att->attname));
		}
		table_close(rel, NoLock);
		if (o->side_column == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("table %s has no column of type bson", dp_relation_name(o->side))));
	}
}

/* Prepare a statement whose parameters are the key's columns and then others. */
static SPIPlanPtr
store_plan(Outlier *o, const void *id, StringInfo sql, int nextra, const Oid *extra)
{
	Oid			types[INDEX_MAX_KEYS + 8];

	dp_sql_key_types(o->decl, types);
	if (nextra > 0)
		memcpy(types + o->decl->nkeys, extra, sizeof(Oid) * nextra);
	return dp_plan_make(o->decl, id, sql->data, o->decl->nkeys + nextra, types);
}

/* Run one. */
static uint64
store_run(Outlier *o, SPIPlanPtr plan, const DpKey *key, int nextra, const Datum *extra,
		  int flags, int expected)
{
	Datum		values[INDEX_MAX_KEYS + 8];

	memcpy(values, key->values, sizeof(Datum) * o->decl->nkeys);
	if (nextra > 0)
		memcpy(values + o->decl->nkeys, extra, sizeof(Datum) * nextra);
	if (expected == SPI_OK_SELECT)
		return dp_run(o->decl, plan, values, NULL, flags, 0, expected);
	return dp_run_marked(o->decl, plan, values, NULL, flags, expected,
						 o->side, o->decl->name, DP_MARK_INTERNAL);
}

/* A statement that reads chunks of a key; with_number adds a parameter that condition uses. */
static SPIPlanPtr
chunk_select(Outlier *o, const void *id, const char *condition, const char *rest, bool with_number)
{
	SPIPlanPtr	plan = dp_plan(o->decl, id);
	StringInfoData sql;
	Oid			type = INT8OID;

	if (plan != NULL)
		return plan;
	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT chunk, n, sealed, elements FROM ");
	dp_sql_table(&sql, o->side);
	appendStringInfoString(&sql, " WHERE ");
	dp_sql_side_key_match(&sql, o->decl, 1);
	if (with_number)
		appendStringInfo(&sql, " AND chunk OPERATOR(pg_catalog.%s) $%d", condition, o->decl->nkeys + 1);
	else
		appendStringInfo(&sql, " AND chunk OPERATOR(pg_catalog.<) " INT64_FORMAT, MOVING / 2);
	appendStringInfoString(&sql, rest);
	return store_plan(o, id, &sql, with_number ? 1 : 0, &type);
}

/* One chunk of the key, by one of five plans.  The elements are copied. */
static bool
chunk_fetch(Outlier *o, const DpKey *key, const void *id, int64 number, Chunk *chunk)
{
	SPIPlanPtr	plan;
	Datum		extra = Int64GetDatum(number);
	bool		isnull;
	bool		with_number = true;

	if (id == &plan_tail || id == &plan_head)
	{
		plan = chunk_select(o, id, "", id == &plan_tail ? " ORDER BY chunk DESC LIMIT 1" :
							" ORDER BY chunk LIMIT 1", false);
		with_number = false;
	}
	else if (id == &plan_chunk)
		plan = chunk_select(o, id, "=", "", true);
	else if (id == &plan_before)
		plan = chunk_select(o, id, "<", " ORDER BY chunk DESC LIMIT 1", true);
	else
		plan = chunk_select(o, id, ">", " ORDER BY chunk LIMIT 1", true);

	if (store_run(o, plan, key, with_number ? 1 : 0, &extra, DP_RUN_AS_OWNER, SPI_OK_SELECT) == 0)
		return false;
	chunk->number = DatumGetInt64(dp_result(0, 1, &isnull));
	chunk->n = DatumGetInt32(dp_result(0, 2, &isnull));
	chunk->sealed = DatumGetBool(dp_result(0, 3, &isnull));
	chunk->elements = dp_value_of_varlena((struct varlena *) DatumGetPointer(dp_result(0, 4, &isnull)));
	return true;
}

/* A new chunk. */
static void
chunk_insert(Outlier *o, const DpKey *key, int64 number, const DpValue *values, int n, bool sealed)
{
	SPIPlanPtr	plan = dp_plan(o->decl, &plan_insert);
	Datum		extra[4];

	if (plan == NULL)
	{
		StringInfoData sql;
		Oid			types[4] = {INT8OID, INT4OID, BOOLOID, dp_types()->bson_value};

		initStringInfo(&sql);
		appendStringInfoString(&sql, "INSERT INTO ");
		dp_sql_table(&sql, o->side);
		appendStringInfoString(&sql, " (");
		dp_sql_side_key_list(&sql, o->decl);
		appendStringInfoString(&sql, ", chunk, n, sealed, elements) VALUES (");
		dp_sql_parameters(&sql, 1, o->decl->nkeys + 4);
		appendStringInfoChar(&sql, ')');
		plan = store_plan(o, &plan_insert, &sql, 4, types);
	}
	extra[0] = Int64GetDatum(number);
	extra[1] = Int32GetDatum(n);
	extra[2] = BoolGetDatum(sealed);
	extra[3] = PointerGetDatum(array_of(NULL, values, n, NULL));
	store_run(o, plan, key, 4, extra, DP_RUN_AS_OWNER, SPI_OK_INSERT);
	pfree(DatumGetPointer(extra[3]));
}

/* Other elements for a chunk. */
static void
chunk_update(Outlier *o, const DpKey *key, int64 number, struct varlena *elements, int n, bool sealed)
{
	SPIPlanPtr	plan = dp_plan(o->decl, &plan_update);
	Datum		extra[4];

	if (plan == NULL)
	{
		StringInfoData sql;
		Oid			types[4] = {INT8OID, INT4OID, BOOLOID, dp_types()->bson_value};
		int			k = o->decl->nkeys;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "UPDATE ");
		dp_sql_table(&sql, o->side);
		appendStringInfo(&sql, " SET n = $%d, sealed = $%d, elements = $%d WHERE ", k + 2, k + 3, k + 4);
		dp_sql_side_key_match(&sql, o->decl, 1);
		appendStringInfo(&sql, " AND chunk OPERATOR(pg_catalog.=) $%d", k + 1);
		plan = store_plan(o, &plan_update, &sql, 4, types);
	}
	extra[0] = Int64GetDatum(number);
	extra[1] = Int32GetDatum(n);
	extra[2] = BoolGetDatum(sealed);
	extra[3] = PointerGetDatum(elements);
	store_run(o, plan, key, 4, extra, DP_RUN_AS_OWNER, SPI_OK_UPDATE);
}

/* A chunk less. */
static void
chunk_delete(Outlier *o, const DpKey *key, int64 number)
{
	SPIPlanPtr	plan = dp_plan(o->decl, &plan_delete);
	Datum		extra = Int64GetDatum(number);

	if (plan == NULL)
	{
		StringInfoData sql;
		Oid			type = INT8OID;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "DELETE FROM ");
		dp_sql_table(&sql, o->side);
		appendStringInfoString(&sql, " WHERE ");
		dp_sql_side_key_match(&sql, o->decl, 1);
		appendStringInfo(&sql, " AND chunk OPERATOR(pg_catalog.=) $%d", o->decl->nkeys + 1);
		plan = store_plan(o, &plan_delete, &sql, 1, &type);
	}
	store_run(o, plan, key, 1, &extra, DP_RUN_AS_OWNER, SPI_OK_DELETE);
}

/* A chunk has become smaller: join it with a neighbour if both fit into one. */
static void
chunk_join(Outlier *o, const DpKey *key, int64 number)
{
	Chunk		chunk;
	Chunk		other;

	if (!chunk_fetch(o, key, &plan_chunk, number, &chunk))
		return;
	if (chunk_fetch(o, key, &plan_before, number, &other) && other.n + chunk.n <= o->chunk)
	{
		DpValueList list = {0};

		dp_values_add_array(&list, &chunk.elements);
		chunk_delete(o, key, number);
		chunk_update(o, key, other.number, array_of(&other.elements, list.v, list.n, NULL),
					 other.n + chunk.n, other.sealed);
		if (!chunk_fetch(o, key, &plan_chunk, other.number, &chunk))
			return;
		number = other.number;
	}
	if (chunk_fetch(o, key, &plan_after, number, &other) && other.number < MOVING / 2 &&
		other.n + chunk.n <= o->chunk)
	{
		DpValueList list = {0};

		dp_values_add_array(&list, &other.elements);
		chunk_delete(o, key, other.number);
		chunk_update(o, key, number, array_of(&chunk.elements, list.v, list.n, NULL),
					 other.n + chunk.n, other.sealed);
	}
}

/*
 * A new array: the elements of one array, some values, the elements of another.
 * Returns a bson_value.
 */
static struct varlena *
array_of(const DpValue *head, const DpValue *values, int n, const DpValue *tail)
{
	DpBuilder	b;
	DpIter		iter;
	DpValue		value;
	int			i;

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

/*
 * Numbers of the key's chunks that hold the value: a list of int64 pointers.
 */
static List *
chunk_candidates(Outlier *o, const DpKey *key, const DpValue *value, bool latest)
{
	SPIPlanPtr	plan = dp_plan(o->decl, &plan_candidates);
	Datum		extra[1];
	Datum		hash = Int64GetDatum((int64) dp_value_hash(value, 0));
	List	   *result = NIL;
	uint64		rows;
	uint64		i;
	bool		isnull;

	if (plan == NULL)
	{
		StringInfoData sql;
		Oid			types[1] = {INT8ARRAYOID};

		initStringInfo(&sql);
		/* OFFSET 0 makes the planner search by hash: by key it would look into every chunk */
		appendStringInfoString(&sql, "SELECT chunk, elements FROM (SELECT chunk, elements, ");
		dp_sql_side_key_list(&sql, o->decl);
		appendStringInfoString(&sql, " FROM ");
		dp_sql_table(&sql, o->side);
		appendStringInfoString(&sql, " WHERE sealed AND ");
		dp_sql_own_schema(&sql);
		appendStringInfo(&sql, "bson_element_hashes(elements) OPERATOR(pg_catalog.@>) $%d OFFSET 0) AS hits WHERE ",
						 o->decl->nkeys + 1);
		dp_sql_side_key_match(&sql, o->decl, 1);
		appendStringInfo(&sql, " AND chunk OPERATOR(pg_catalog.<) " INT64_FORMAT
						 " UNION ALL SELECT chunk, elements FROM ", MOVING / 2);
		dp_sql_table(&sql, o->side);
		appendStringInfoString(&sql, " WHERE NOT sealed AND ");
		dp_sql_side_key_match(&sql, o->decl, 1);
		appendStringInfo(&sql, " AND chunk OPERATOR(pg_catalog.<) " INT64_FORMAT, MOVING / 2);
		plan = store_plan(o, &plan_candidates, &sql, 1, types);
	}
	extra[0] = PointerGetDatum(construct_array(&hash, 1, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	rows = store_run(o, plan, key, 1, extra, RUN_FLAGS(latest), SPI_OK_SELECT);
	for (i = 0; i < rows; i++)
	{
		DpValue		elements = dp_value_of_varlena((struct varlena *) DatumGetPointer(dp_result(i, 2, &isnull)));

		if (array_holds(&elements, value))
		{
			int64	   *number = palloc(sizeof(int64));

			*number = DatumGetInt64(dp_result(i, 1, &isnull));
			result = lappend(result, number);
		}
	}
	return result;
}

/* Whether an element of the array equals the value. */
static bool
array_holds(const DpValue *array, const DpValue *value)
{
	DpIter		iter;
	DpValue		element;

	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &element))
	{
		if (dp_value_compare(&element, value) == 0)
			return true;
	}
	return false;
}

/* One document of the collection for each value, with the key in its link. */
static void
link_append(Outlier *o, const DpKey *key, const DpValue *values, int n)
{
	SPIPlanPtr	plan = dp_plan(o->decl, &plan_link_insert);
	DpPath	   *path = dp_path_parse(o->link, strlen(o->link));
	DpValue		link = dp_value_of_varlena(dp_key_to_value(o->decl, key));
	int			i;

	if (plan == NULL)
	{
		StringInfoData sql;
		Oid			type = dp_types()->bson;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "INSERT INTO ");
		dp_sql_table(&sql, o->side);
		appendStringInfo(&sql, " (%s) VALUES ($1)", quote_identifier(o->side_column));
		plan = dp_plan_make(o->decl, &plan_link_insert, sql.data, 1, &type);
	}
	for (i = 0; i < n; i++)
	{
		Datum		doc;

		CHECK_FOR_INTERRUPTS();
		if (values[i].type != DP_TYPE_DOCUMENT)
			ereport(ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 errmsg("an element of \"%s\" is not a document", dp_decl_text(o->decl, "field")),
					 errdetail("Key %s has an element of type %s, and extras lie in the collection %s.",
							   dp_key_to_text(o->decl, key), dp_type_name(values[i].type),
							   dp_relation_name(o->side))));
		doc = PointerGetDatum(dp_document_set(values[i].data, values[i].len, path, &link));
		dp_run_marked(o->decl, plan, &doc, NULL, DP_RUN_AS_OWNER, SPI_OK_INSERT,
					  o->side, o->decl->name, DP_MARK_INTERNAL);
		pfree(DatumGetPointer(doc));
	}
}

/* Take documents of the collection away and add them, without the link, to the list. */
static void
link_take(Outlier *o, const DpKey *key, int64 n, bool from_end, DpValueList *taken)
{
	const void *id = from_end ? &plan_take_last : &plan_take_first;
	SPIPlanPtr	plan = dp_plan(o->decl, id);
	uint64		rows;
	uint64		i;
	bool		isnull;

	if (plan == NULL)
	{
		StringInfoData sql;
		const char *column = quote_identifier(o->side_column);

		initStringInfo(&sql);
		appendStringInfoString(&sql, "WITH gone AS (DELETE FROM ");
		dp_sql_table(&sql, o->side);
		appendStringInfoString(&sql, " WHERE ctid OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT ctid FROM ");
		dp_sql_table(&sql, o->side);
		appendStringInfoString(&sql, " WHERE ");
		link_condition(o, &sql, 1);
		appendStringInfoString(&sql, " ORDER BY ");
		dp_sql_doc_path(&sql, o->side_column, "_id");
		appendStringInfo(&sql, "%s LIMIT $2)) RETURNING %s) SELECT %s FROM gone ORDER BY ",
						 from_end ? " DESC" : "", column, column);
		dp_sql_doc_path(&sql, o->side_column, "_id");
		plan = link_plan(o, id, &sql, INT8OID);
	}
	{
		Datum		values[2];

		values[0] = PointerGetDatum(dp_key_to_value(o->decl, key));
		values[1] = Int64GetDatum(n);
		rows = dp_run_marked(o->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_SELECT,
							 o->side, o->decl->name, DP_MARK_INTERNAL);
	}
	for (i = 0; i < rows; i++)
	{
		DpValue		element = link_element(o, (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull)));

		dp_values_add(taken, &element);
	}
}

/* (doc -> 'link') = $parameter */
static void
link_condition(Outlier *o, StringInfo sql, int parameter)
{
	dp_sql_doc_path(sql, o->side_column, o->link);
	dp_sql_own_operator(sql, "=");
	appendStringInfo(sql, "$%d", parameter);
}

/* Prepare a statement whose first parameter is a link. */
static SPIPlanPtr
link_plan(Outlier *o, const void *id, StringInfo sql, Oid extra)
{
	Oid			types[2] = {dp_types()->bson_value, extra};

	return dp_plan_make(o->decl, id, sql->data, OidIsValid(extra) ? 2 : 1, types);
}

/* Run one. */
static uint64
link_run(Outlier *o, SPIPlanPtr plan, struct varlena *link, Datum extra, int nargs, int flags, int expected)
{
	Datum		values[2];

	values[0] = PointerGetDatum(link);
	values[1] = extra;
	if (expected == SPI_OK_SELECT)
		return dp_run(o->decl, plan, values, NULL, flags, 0, expected);
	return dp_run_marked(o->decl, plan, values, NULL, flags, expected,
						 o->side, o->decl->name, DP_MARK_INTERNAL);
}

/* All documents of a key, in order. */
static SPIPlanPtr
link_read_plan(Outlier *o)
{
	SPIPlanPtr	plan = dp_plan(o->decl, &plan_read);
	StringInfoData sql;

	if (plan != NULL)
		return plan;
	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT %s FROM ", quote_identifier(o->side_column));
	dp_sql_table(&sql, o->side);
	appendStringInfoString(&sql, " WHERE ");
	link_condition(o, &sql, 1);
	appendStringInfoString(&sql, " ORDER BY ");
	dp_sql_doc_path(&sql, o->side_column, "_id");
	return link_plan(o, &plan_read, &sql, InvalidOid);
}

/* What a document of the collection is as an element: itself without the link. */
static DpValue
link_element(Outlier *o, struct varlena *doc)
{
	DpPath	   *path = dp_path_parse(o->link, strlen(o->link));
	struct varlena *bare = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path);

	return dp_value_of_document(bare != NULL ? bare : doc);
}

/* Whether an element equals the value, whose _id counts only if it has one. */
static bool
link_matches(const DpValue *element, const DpValue *value)
{
	DpValue		id;

	if (value->type == DP_TYPE_DOCUMENT &&
		!dp_document_find(value->data, value->len, "_id", 3, &id) &&
		dp_document_find(element->data, element->len, "_id", 3, &id))
	{
		struct varlena *without = dp_document_unset(element->data, element->len,
													dp_path_of_name("_id", 3));
		DpValue		bare = dp_value_of_document(without);

		return dp_value_compare(&bare, value) == 0;
	}
	return dp_value_compare(element, value) == 0;
}

/* The link of a document that is moving to another key: {"$moving": link}. */
static struct varlena *
link_moving(struct varlena *link)
{
	DpBuilder	b;
	DpValue		value = dp_value_of_varlena(link);

	dp_builder_init_value(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, "$moving", 7, &value);
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_DOCUMENT);
}
