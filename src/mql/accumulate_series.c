/*
 * accumulate_series.c
 *		Values of a group in the order in which their rows came.
 *
 * A series has all values ($push, $mergeObjects), the first or the last n, the best one ($min,
 *$max) or a set ($addToSet, $setUnion), as its slot says.  In a window the rows that came first
 *leave first.  Then the series for the best value has also those that are the best once better ones
 *have left: each is worse than those before it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/compare.h"
#include "mql/accumulate_node.h"

/* Documents are merged at the latest when they have so many bytes. */
#define MERGE_LIMIT 1024

/* The least number of values at which equal ones are looked for */
#define SET_ROOM 64

static bool
is_long(const DpSeriesItem *item)
{
	return item->len > sizeof(item->bytes);
}

static DpValue
item_value(const DpSeriesItem *item)
{
	DpValue v = { is_long(item) ? item->data : item->bytes, item->len, item->type };

	return v;
}

DpValue
dp_series_value(const DpSeries *q, int64 i)
{
	return item_value(&q->items[q->first + i]);
}

static void
item_set(DpAccumulation *g, DpSeries *q, DpSeriesItem *item, const DpValue *v, int64 row)
{
	item->row = row;
	item->type = v->type;
	item->len = v->len;
	if (is_long(item))
	{
		item->data = MemoryContextAllocHuge(g->context, v->len);
		q->bytes += v->len;
	}
	memcpy(is_long(item) ? item->data : item->bytes, v->data, v->len);
}

static void
item_free(DpSeries *q, DpSeriesItem *item)
{
	if (is_long(item))
	{
		pfree(item->data);
		q->bytes -= item->len;
	}
}

void
dp_series_reset(DpSeries *q)
{
	for (int64 i = 0; i < q->n; i++)
		item_free(q, &q->items[q->first + i]);
	if (q->items != NULL)
		pfree(q->items);
	memset(q, 0, sizeof(DpSeries));
}

static void
pop_last(DpSeries *q)
{
	item_free(q, &q->items[q->first + --q->n]);
}

static void
pop_first(DpSeries *q)
{
	item_free(q, &q->items[q->first++]);
	q->n--;
}

void
dp_series_take(DpSeries *q, int64 row)
{
	while (q->n > 0 && q->items[q->first].row == row)
		pop_first(q);
}

/* Orders items by their values, equal ones by their types and bytes. */
static int
item_order(const void *a, const void *b)
{
	DpValue x = item_value(a);
	DpValue y = item_value(b);
	int order = dp_value_compare(&x, &y);

	CHECK_FOR_INTERRUPTS();
	if (order == 0)
		order = (int) x.type - (int) y.type;
	if (order == 0)
		order = memcmp(x.data, y.data, Min(x.len, y.len));
	return order != 0 ? order : (x.len > y.len) - (x.len < y.len);
}

/* Sorts the values of a set and leaves out those that are equal to the one before. */
static void
make_set(DpSeries *q)
{
	int64 n = 0;

	if (q->n > 1)
		qsort(q->items + q->first, q->n, sizeof(DpSeriesItem), item_order);
	for (int64 i = 0; i < q->n; i++)
	{
		DpSeriesItem *item = &q->items[q->first + i];
		DpValue v = item_value(item);
		DpValue before;

		if (n > 0)
			before = dp_series_value(q, n - 1);
		if (n > 0 && dp_value_compare(&v, &before) == 0)
			item_free(q, item);
		else
			q->items[q->first + n++] = *item;
	}
	q->n = n;
}

/* Makes room for one more. */
static void
make_room(DpAccumulation *g, const DpSlot *slot, DpSeries *q)
{
	if (q->first + q->n < q->room)
		return;
	if (slot->distinct && q->n >= SET_ROOM)
		make_set(q);
	if (q->room > 0 && q->first + q->n <= q->room / 2)
		return;
	if (q->first > q->room / 2)
	{
		memmove(q->items, q->items + q->first, sizeof(DpSeriesItem) * q->n);
		q->first = 0;
		return;
	}
	q->room = q->room == 0 ? Min(slot->cap, 4) : q->room * 2;
	q->items = q->items == NULL ? MemoryContextAlloc(g->context, sizeof(DpSeriesItem) * q->room)
								: repalloc_huge(q->items, sizeof(DpSeriesItem) * q->room);
}

void
dp_series_add(DpAccumulation *g, const DpSlot *slot, DpSeries *q, const DpValue *v, int64 row)
{
	if (slot->by_value && !slot->distinct)
	{
		int sign = slot->descending ? -1 : 1;

		if (!g->acc->window && q->n > 0)
		{
			DpValue best = dp_series_value(q, 0);

			if (sign * dp_value_compare(v, &best) >= 0)
				return;
			pop_last(q);
		}
		while (q->n > 0)
		{
			DpValue last = dp_series_value(q, q->n - 1);

			if (sign * dp_value_compare(v, &last) > 0)
				break;
			pop_last(q);
		}
	}
	else if (slot->descending && q->n >= slot->n)
		pop_first(q);
	else if (q->n >= slot->cap)
		return;
	make_room(g, slot, q);
	item_set(g, q, &q->items[q->first + q->n], v, row);
	q->n++;

	if (slot->objects && !g->acc->window && q->bytes > Max(q->limit, MERGE_LIMIT))
	{
		struct varlena *merged = dp_series_merged(q);
		DpValue all = dp_value_of_varlena(merged);

		while (q->n > 0)
			pop_last(q);
		item_set(g, q, &q->items[q->first], &all, row);
		q->n = 1;
		q->limit = (Size) all.len * 2;
		pfree(merged);
	}
}

struct varlena *
dp_series_array(const DpSlot *slot, DpSeries *q)
{
	DpBuilder b;

	if (slot->distinct)
		make_set(q);
	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	for (int64 i = 0; i < Min(q->n, slot->n); i++)
	{
		DpValue v = dp_series_value(q, i);

		dp_builder_append_value(&b, NULL, 0, &v);
	}
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
}

struct varlena *
dp_series_merged(const DpSeries *q)
{
	DpNames names = { 0 };
	DpValue *values = NULL;
	uint32 room = 0;
	DpBuilder b;

	for (int64 i = 0; i < q->n; i++)
	{
		DpValue v = dp_series_value(q, i);
		DpElement e;
		DpIter iter;

		dp_iter_init_value(&iter, &v);
		while (dp_iter_next(&iter, &e))
		{
			bool found;
			uint32 at = dp_names_add(&names, e.name, e.namelen, &found);

			if (names.room > room)
			{
				room = names.room;
				values = values == NULL ? palloc(sizeof(DpValue) * room)
										: repalloc_huge(values, sizeof(DpValue) * (Size) room);
			}
			values[at] = e.value;
		}
	}
	dp_builder_init_value(&b, q->bytes);
	dp_builder_begin_document(&b);
	for (uint32 i = 0; i < names.n; i++)
		dp_builder_append_value(&b, names.names[i].name, names.names[i].len, &values[i]);
	dp_builder_end(&b);
	dp_names_free(&names);
	if (values != NULL)
		pfree(values);
	return dp_builder_finish_value(&b, DP_TYPE_DOCUMENT);
}
