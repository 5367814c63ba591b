/*
 * accumulate.c
 *		Groups: adds and removes rows and computes the fields.
 */
#include "postgres.h"

#include <math.h>

#include "utils/memutils.h"

#include "mql/accumulate_node.h"
#include "mql/expression_node.h"
#include "mql/percentile.h"

/* ---------------------------------------------------------------- groups */

DpAccumulation *
dp_accumulation_make(const DpAccumulators *acc)
{
	DpAccumulation *g = palloc0(sizeof(DpAccumulation) + acc->states_size);

	g->acc = acc;
	g->context = CurrentMemoryContext;
	g->delta = (DpSlotState *) (g + 1);
	for (int i = 0; i < acc->nslots; i++)
		dp_slot_init(g, &acc->slots[i], dp_state_of(g->acc, g->delta, i));
	return g;
}

/* Forgets the values of the fields. */
static void
results_forget(DpAccumulation *g)
{
	if (!g->is_shown)
		return;
	for (int i = 0; i < g->acc->nfields; i++)
	{
		if (g->built[i] != NULL)
			pfree(g->built[i]);
		g->built[i] = NULL;
	}
	g->is_shown = false;
}

/* Forgets what the group is as a whole. */
static void
whole_forget(DpAccumulation *g)
{
	results_forget(g);
	g->is_whole = false;
}

/* Room for the group as a whole, without anything in it. */
static void
whole_begin(DpAccumulation *g)
{
	const DpAccumulators *acc = g->acc;

	results_forget(g);
	if (g->whole == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(g->context);

		g->whole = palloc0(acc->states_size);
		for (int i = 0; i < acc->nslots; i++)
			dp_slot_init(g, &acc->slots[i], dp_state_of(g->acc, g->whole, i));
		g->results = palloc0(sizeof(DpValue) * acc->nfields);
		g->rooms = palloc0(DP_SUM_RESULT_SIZE * acc->nfields);
		g->built = palloc0(sizeof(struct varlena *) * acc->nfields);
		MemoryContextSwitchTo(old);
	}
	else
	{
		for (int i = 0; i < acc->nslots; i++)
			dp_slot_reset(&acc->slots[i], dp_state_of(g->acc, g->whole, i));
	}
}

void
dp_accumulation_reset(DpAccumulation *g)
{
	whole_forget(g);
	for (int i = 0; i < g->acc->nslots; i++)
	{
		dp_slot_reset(&g->acc->slots[i], dp_state_of(g->acc, g->delta, i));
		if (g->whole != NULL)
			dp_slot_reset(&g->acc->slots[i], dp_state_of(g->acc, g->whole, i));
	}
}

void
dp_accumulation_free(DpAccumulation *g)
{
	dp_accumulation_reset(g);
	if (g->whole != NULL)
	{
		pfree(g->whole);
		pfree(g->results);
		pfree(g->rooms);
		pfree(g->built);
	}
	if (g->packed.data != NULL)
		pfree(g->packed.data);
	pfree(g);
}

/* ---------------------------------------------------------------- rows */

/* The current row */
typedef struct Row
{
	const DpAccumulators *acc;
	DpExprState state;
	DpFinder finder; /* for many expressions */
	const char *key;
	uint32 keylen;
} Row;

/* Finds the values of the expressions that are fields of the document. */
static void
find_plain(const DpAccumulators *acc, const DpValue *doc)
{
	int left = acc->nplain;
	DpIter iter;
	DpElement e;

	for (int i = 0; i < acc->nplain; i++)
	{
		int expr = acc->plain[i].expr;

		acc->values[expr] = (DpValue){ (const uint8 *) "", 0, DP_TYPE_EOD };
		acc->known[expr] = true;
	}
	dp_iter_init_value(&iter, doc);
	while (left > 0 && dp_iter_next(&iter, &e))
		for (int i = 0; i < acc->nplain; i++)
		{
			const DpPlain *plain = &acc->plain[i];
			DpValue *v = &acc->values[plain->expr];

			if (plain->len == e.namelen && v->type == DP_TYPE_EOD &&
				memcmp(plain->name, e.name, e.namelen) == 0)
			{
				*v = e.value;
				left--;
				break;
			}
		}
}

/* Begins with a row. */
static void
row_begin(Row *row, const DpAccumulators *acc, const DpValue *doc, const char *key, uint32 keylen)
{
	row->acc = acc;
	row->key = key;
	row->keylen = key != NULL ? keylen : 0;
	dp_expr_state_init(&row->state, doc);
	if (acc->nexprs > DP_NAMES_FEW && doc->type == DP_TYPE_DOCUMENT)
	{
		dp_finder_init(&row->finder, doc);
		row->state.shared = &row->finder;
	}
	memset(acc->known, 0, sizeof(bool) * acc->nexprs);
	memset(acc->keys_known, 0, sizeof(bool) * acc->norders);
	if (acc->nplain > 1 && doc->type == DP_TYPE_DOCUMENT)
		find_plain(acc, doc);
}

/* The value of one of the expressions, evaluated at most once for a row. */
static const DpValue *
row_value(Row *row, int expr)
{
	const DpAccumulators *acc = row->acc;
	DpValue *v = &acc->values[expr];

	if (!acc->known[expr])
	{
		if (!dp_expr_eval(acc->exprs[expr], &row->state, v))
		{
			v->type = DP_TYPE_EOD;
			v->data = (const uint8 *) "";
			v->len = 0;
		}
		acc->known[expr] = true;
	}
	return v;
}

/* Makes the candidate of a row for a list.  Returns false if the row does not count. */
static bool
row_candidate(Row *row, const DpSlot *slot, DpCandidate *c)
{
	DpAccumulators *acc = unconstify(DpAccumulators *, row->acc);
	const DpValue *v = row_value(row, slot->expr);

	if (v->type == DP_TYPE_EOD
			? slot->skip_null || slot->skip_missing
			: slot->skip_null && (v->type == DP_TYPE_NULL || v->type == DP_TYPE_UNDEFINED))
		return false;
	memset(c, 0, sizeof(DpCandidate));
	c->value = *v;
	if (v->type == DP_TYPE_EOD)
		c->value.type = DP_TYPE_NULL;
	c->count = 1;
	if (slot->by_value)
		return true;
	if (slot->order < 0)
	{
		c->key = row->key;
		c->keylen = row->keylen;
		c->prefix = row->keylen;
	}
	else
	{
		StringInfo order = &acc->keys[slot->order];

		if (!acc->keys_known[slot->order])
		{
			resetStringInfo(order);
			dp_sort_key_append(order, acc->orders[slot->order], &row->state.root);
			acc->keys_known[slot->order] = true;
		}
		c->key = order->data;
		c->keylen = c->prefix = order->len;
		if (row->keylen > 0)
		{
			resetStringInfo(&acc->key);
			appendBinaryStringInfo(&acc->key, order->data, order->len);
			appendBinaryStringInfo(&acc->key, row->key, row->keylen);
			c->key = acc->key.data;
			c->keylen = acc->key.len;
		}
	}
	if (c->key == NULL)
		c->key = "";
	return true;
}

/* The first of the sorted numbers that is not less. */
static int64
numbers_find(const DpNumbers *numbers, double d)
{
	int64 low = 0;
	int64 high = numbers->n;

	while (low < high)
	{
		int64 middle = (low + high) / 2;

		if (numbers->d[middle] < d)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Notes a number of a median; those of a window are sorted. */
static void
numbers_add(DpAccumulation *g, DpNumbers *numbers, double d)
{
	int64 at = g->acc->window ? numbers_find(numbers, d) : numbers->n;

	if (numbers->n == numbers->room)
	{
		int64 room = Max(8, numbers->room * 2);

		numbers->d = numbers->d == NULL ? MemoryContextAlloc(g->context, sizeof(double) * room)
										: repalloc_huge(numbers->d, sizeof(double) * room);
		numbers->room = room;
	}
	memmove(numbers->d + at + 1, numbers->d + at, sizeof(double) * (numbers->n++ - at));
	numbers->d[at] = d;
}

/* Takes a number out of those of a window.  Returns false if it is not there. */
static bool
numbers_take(DpNumbers *numbers, double d)
{
	int64 at = numbers_find(numbers, d);

	if (at == numbers->n || numbers->d[at] != d)
		return false;
	memmove(numbers->d + at, numbers->d + at + 1, sizeof(double) * (--numbers->n - at));
	return true;
}

/* A number as a double; false for other values. */
static bool
value_as_double(const DpValue *v, double *d)
{
	if (!dp_type_is_number(v->type))
		return false;
	*d = dp_number_to_double(v);
	return true;
}

/* Takes a value into the sums of a deviation. */
static void
deviation_add(DpSlotState *s, const DpValue *v, int sign)
{
	double d;

	if (v->type == DP_TYPE_INT32 || v->type == DP_TYPE_INT64)
	{
		int64 i = v->type == DP_TYPE_INT32 ? dp_get_int32(v->data) : dp_get_int64(v->data);

		dp_big_add_int64(&s->deviation.total, i, sign);
		dp_big_add_int64_square(&s->deviation.squares, i, sign);
	}
	else if (!value_as_double(v, &d))
		return;
	else if (isfinite(d))
	{
		dp_big_add_double(&s->deviation.total, d, sign);
		dp_big_add_double_square(&s->deviation.squares, d, sign);
	}
	else
		s->deviation.special += sign;
	s->n += sign;
}

/* Raises an error about a value that an accumulator does not take. */
static void
wrong_value(const DpAccumulation *g, const DpSlot *slot, const DpValue *v)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("field \"%.*s\" must accumulate %s, not %s",
						   (int) Min(g->acc->fields[slot->visible].namelen, 200),
						   g->acc->fields[slot->visible].name,
						   slot->elements ? "arrays" : "documents", dp_type_name(v->type))));
}

/*
 * Takes the value of a row into a set or out of it, or its elements, or into the best ones. Returns
 * false if it is not there.
 */
static bool
list_row(DpAccumulation *g, Row *row, const DpSlot *slot, DpSlotState *s, int sign)
{
	DpCandidate c;
	DpValue array;
	DpIter iter;

	if (!row_candidate(row, slot, &c))
		return true;
	if (!slot->elements)
	{
		if (sign < 0 && g->acc->arrival)
			return dp_list_take(slot, &s->in, &c);
		dp_list_add(g, slot, sign > 0 ? &s->in : &s->out, &c, slot->cap);
		return true;
	}
	array = c.value;
	if (array.type != DP_TYPE_ARRAY)
		wrong_value(g, slot, &array);
	dp_iter_init_value(&iter, &array);
	while (dp_iter_next_value(&iter, &c.value))
		if (sign > 0)
			dp_list_add(g, slot, &s->in, &c, slot->cap);
		else if (!dp_list_take(slot, &s->in, &c))
			return false;
	return true;
}

/* Takes the value of a row into a series. */
static void
series_row(DpAccumulation *g, Row *row, const DpSlot *slot, DpSeries *q)
{
	const DpValue *v;
	DpValue null;

	/* the first ones are there */
	if (q->n >= slot->cap && !slot->by_value && !slot->descending)
		return;
	v = row_value(row, slot->expr);
	if (dp_is_nullish(v) && (slot->skip_null || (slot->skip_missing && v->type == DP_TYPE_EOD)))
		return;
	if (slot->elements)
	{
		DpIter iter;
		DpValue element;

		if (v->type != DP_TYPE_ARRAY)
			wrong_value(g, slot, v);
		dp_iter_init_value(&iter, v);
		while (dp_iter_next_value(&iter, &element))
			dp_series_add(g, slot, q, &element, g->nin);
		return;
	}
	if (slot->objects && v->type != DP_TYPE_DOCUMENT)
		wrong_value(g, slot, v);
	if (v->type == DP_TYPE_EOD)
	{
		(void) dp_result_null(&null);
		v = &null;
	}
	dp_series_add(g, slot, q, v, g->nin);
}

bool
dp_accumulation_row(DpAccumulation *g, const DpValue *doc, const char *key, uint32 keylen, int sign)
{
	const DpAccumulators *acc = g->acc;
	bool known = true;
	Row row;
	double d;

	if (g->is_whole)
		whole_forget(g);
	row_begin(&row, acc, doc, key, keylen);
	for (int i = 0; i < acc->nslots; i++)
	{
		const DpSlot *slot = &acc->slots[i];
		DpSlotState *s = dp_state_of(g->acc, g->delta, i);

		switch (slot->kind)
		{
			case DP_SLOT_ROWS:
				s->n += sign;
				break;
			case DP_SLOT_SUM:
				(void) dp_exact_sum_add_value(&s->sum, row_value(&row, slot->expr), sign);
				break;
			case DP_SLOT_DEVIATION:
				deviation_add(s, row_value(&row, slot->expr), sign);
				break;
			case DP_SLOT_MEDIAN:
				if (!value_as_double(row_value(&row, slot->expr), &d) || isnan(d))
					break;
				if (sign < 0 && acc->arrival)
					known = numbers_take(&s->median.in, d) && known;
				else
					numbers_add(g, sign > 0 ? &s->median.in : &s->median.out, d);
				break;
			case DP_SLOT_LIST:
				known = list_row(g, &row, slot, s, sign) && known;
				break;
			case DP_SLOT_SERIES:
				if (sign > 0)
					series_row(g, &row, slot, &s->series);
				else
					dp_series_take(&s->series, g->nout);
				break;
		}
	}
	if (sign > 0)
		g->nin++;
	else
		g->nout++;
	if (row.state.shared != NULL)
		dp_finder_free(&row.finder);
	return known;
}

bool
dp_accumulation_changes(const DpAccumulation *g)
{
	const DpAccumulators *acc = g->acc;

	for (int i = 0; i < acc->nslots; i++)
	{
		const DpSlot *slot = &acc->slots[i];
		const DpSlotState *s = dp_state_of(g->acc, g->delta, i);
		bool same = true;

		switch (slot->kind)
		{
			case DP_SLOT_ROWS:
				same = s->n == 0;
				break;
			case DP_SLOT_SUM:
				same = dp_exact_sum_is_zero(&s->sum);
				break;
			case DP_SLOT_DEVIATION:
				same = s->n == 0 && s->deviation.special == 0 &&
					   dp_big_is_zero(&s->deviation.total) && dp_big_is_zero(&s->deviation.squares);
				break;
			case DP_SLOT_MEDIAN:
				same = s->median.in.n == 0 && s->median.out.n == 0;
				break;
			case DP_SLOT_SERIES:
				same = s->series.n == 0;
				break;
			case DP_SLOT_LIST:
				same = dp_list_cancels(slot, &s->in, &s->out);
				break;
		}
		if (!same)
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- the whole */

/*
 * The median of all numbers, which are available.  Returns false if more were removed than added.
 */
static bool
median_of_numbers(DpSlotState *whole, DpSlotState *delta)
{
	DpNumbers *in = &delta->median.in;
	DpNumbers *out = &delta->median.out;
	int64 rank = (in->n - out->n - 1) / 2;
	int64 k = 0;

	whole->n = in->n - out->n;
	if (whole->n < 0)
		return false;
	dp_percentile_sort(in->d, in->n);
	dp_percentile_sort(out->d, out->n);
	for (int64 i = 0; i < in->n; i++)
	{
		if (k < out->n && out->d[k] == in->d[i])
			k++;
		else if (i - k == rank)
			whole->median.value = in->d[i];
	}
	return k == out->n;
}

/* Applies the added and removed rows to g->whole.  Returns false if a search is necessary. */
static bool
whole_finish(DpAccumulation *g)
{
	const DpAccumulators *acc = g->acc;
	bool known = true;

	for (int i = 0; i < acc->nslots; i++)
	{
		const DpSlot *slot = &acc->slots[i];
		DpSlotState *s = dp_state_of(g->acc, g->whole, i);
		DpSlotState *delta = dp_state_of(g->acc, g->delta, i);

		s->search = false;
		switch (slot->kind)
		{
			case DP_SLOT_ROWS:
			case DP_SLOT_SUM:
			case DP_SLOT_DEVIATION:
				dp_slot_add(g, slot, s, delta);
				break;
			case DP_SLOT_MEDIAN:
				if (s->n == 0)
					s->search = !median_of_numbers(s, delta);
				else if (delta->median.in.n > 0 || delta->median.out.n > 0)
				{
					s->n += delta->median.in.n - delta->median.out.n;
					s->search = s->n != 0;
				}
				break;
			case DP_SLOT_LIST:
				s->search = !dp_list_apply(g, slot, &s->in, &delta->in, &delta->out);
				break;
			case DP_SLOT_SERIES:
				break; /* has no whole */
		}
		s->searching = false;
		known &= !s->search;
	}
	g->is_whole = true;
	return known;
}

/* False if the counts of the whole are impossible: more rows were removed than it had. */
static bool
whole_is_possible(const DpAccumulation *g)
{
	for (int i = 0; i < g->acc->nslots; i++)
	{
		const DpSlotState *s = dp_state_of(g->acc, g->whole, i);

		const DpSlot *slot = &g->acc->slots[i];

		if (s->n < 0 || (slot->kind == DP_SLOT_DEVIATION && s->deviation.special < 0))
			return false;
		if (slot->kind == DP_SLOT_SUM && (s->sum.nint64 < 0 || s->sum.ndouble < 0 ||
										  s->sum.ndecimal < 0 || (slot->count && s->sum.n < 0)))
			return false;
	}
	return true;
}

DpAccumulationResult
dp_accumulation_load(DpAccumulation *g, const DpValue *target)
{
	bool known;

	whole_begin(g);
	g->is_whole = false;
	if (!dp_state_read(g, target, g->whole))
		return DP_ACCUMULATION_LOST;
	known = whole_finish(g);
	if (!whole_is_possible(g))
	{
		g->is_whole = false;
		return DP_ACCUMULATION_LOST;
	}
	return known ? DP_ACCUMULATION_WHOLE : DP_ACCUMULATION_SEARCH;
}

/* The whole of a group that was not loaded: what was taken in. */
static void
whole_ensure(DpAccumulation *g)
{
	if (g->is_whole)
		return;
	whole_begin(g);
	if (!whole_finish(g) || !whole_is_possible(g))
		dp_corrupted("rows were taken out of a group that were not in it");
}

int
dp_accumulation_searches(const DpAccumulation *g, int after)
{
	const DpAccumulators *acc = g->acc;

	if (!g->is_whole)
		return -1;
	for (int i = after + 1; i < acc->nfields; i++)
	{
		/* a median that two fields share is searched once */
		if (dp_state_of(g->acc, g->whole, acc->fields[i].slot)->search)
			return i;
	}
	return -1;
}

bool
dp_accumulation_found(DpAccumulation *g, int field, const DpValue *doc, const char *key,
					  uint32 keylen)
{
	int i = g->acc->fields[field].slot;
	const DpSlot *slot = &g->acc->slots[i];
	DpSlotState *s = dp_state_of(g->acc, g->whole, i);
	DpCandidate c;
	Row row;
	double d;

	if (!s->searching)
	{
		if (slot->kind == DP_SLOT_MEDIAN)
			s->median.seen = 0;
		else
			dp_list_reset(&s->in);
		s->searching = true;
	}
	row_begin(&row, g->acc, doc, key, keylen);
	if (slot->kind == DP_SLOT_MEDIAN)
	{
		if (!value_as_double(row_value(&row, slot->expr), &d) || isnan(d))
			return true;
		s->median.value = d;
		return s->median.seen++ < (s->n - 1) / 2;
	}
	if (!row_candidate(&row, slot, &c))
		return true;
	if (!dp_list_wants(slot, &s->in, &c))
		return false;
	dp_list_add(g, slot, &s->in, &c, slot->n);
	return true;
}

void
dp_accumulation_found_all(DpAccumulation *g, int field)
{
	int i = g->acc->fields[field].slot;
	const DpSlot *slot = &g->acc->slots[i];
	DpSlotState *s = dp_state_of(g->acc, g->whole, i);

	if (slot->kind == DP_SLOT_LIST)
	{
		if (!s->searching)
			dp_list_reset(&s->in);
		dp_list_truncate(slot, &s->in);
	}
	else if (!s->searching)
		s->n = 0; /* cannot be, as numbers were counted */
	s->search = s->searching = false;
}

int64
dp_accumulation_rows(const DpAccumulation *g)
{
	for (int i = 0; i < g->acc->nslots; i++)
	{
		if (g->acc->slots[i].kind == DP_SLOT_ROWS)
			return g->is_whole ? dp_state_of(g->acc, g->whole, i)->n
							   : dp_state_of(g->acc, g->delta, i)->n;
	}
	return 0;
}

void
dp_accumulation_add(DpAccumulation *g, const DpAccumulation *other)
{
	whole_forget(g);
	for (int i = 0; i < g->acc->nslots; i++)
		dp_slot_add(g, &g->acc->slots[i], dp_state_of(g->acc, g->delta, i),
					dp_state_of(g->acc, other->delta, i));
}

bool
dp_accumulation_add_stored(DpAccumulation *g, const DpValue *stored)
{
	const DpAccumulators *acc = g->acc;

	whole_begin(g);
	g->is_whole = false;
	if (!dp_state_read(g, stored, g->whole))
		return false;
	for (int i = 0; i < acc->nslots; i++)
	{
		const DpSlot *slot = &acc->slots[i];
		DpSlotState *s = dp_state_of(g->acc, g->whole, i);

		/* a median does not follow from medians */
		if (slot->kind == DP_SLOT_MEDIAN && s->n > 0)
			return false;
		if (slot->kind == DP_SLOT_LIST && dp_list_size(slot, &s->in) >= slot->n)
			s->in.trimmed = true;
	}
	for (int i = 0; i < acc->nslots; i++)
		dp_slot_add(g, &acc->slots[i], dp_state_of(g->acc, g->delta, i),
					dp_state_of(g->acc, g->whole, i));
	return true;
}

/* ---------------------------------------------------------------- results */

/* A double as the value of a field. */
static void
show_double(DpValue *v, uint8 *room, double d)
{
	if (isnan(d))
		dp_put_int64(room, DP_DOUBLE_NAN);
	else
		dp_put_double(room, d);
	v->type = DP_TYPE_DOUBLE;
	v->data = room;
	v->len = 8;
}

/* An integer as the value of a field. */
static void
show_integer(DpValue *v, uint8 *room, int64 i)
{
	v->data = room;
	if (i <= PG_INT32_MAX)
	{
		dp_put_int32(room, (int32) i);
		v->type = DP_TYPE_INT32;
		v->len = 4;
	}
	else
	{
		dp_put_int64(room, i);
		v->type = DP_TYPE_INT64;
		v->len = 8;
	}
}

/* The array of a list's first n values. */
static struct varlena *
show_list(const DpSlot *slot, const DpList *list, bool reversed)
{
	DpBuilder b;
	int64 n = 0;
	int end;

	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	for (end = 0; end < list->n && n < slot->n; end++)
		n += slot->distinct ? 1 : list->elements[end]->count;
	n -= slot->n; /* so often the last one is there beyond n */
	for (int i = 0; i < end; i++)
	{
		int at = reversed ? end - 1 - i : i;
		const DpCandidate *e = list->elements[at];
		int64 times = (slot->distinct ? 1 : e->count) - (at == end - 1 ? Max(n, 0) : 0);

		while (times-- > 0)
			dp_builder_append_value(&b, NULL, 0, &e->value);
	}
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
}

/* The array of a field's percentiles of sorted numbers. */
static struct varlena *
show_percentiles(const DpField *field, const DpNumbers *numbers)
{
	DpBuilder b;

	dp_builder_init_value(&b, 0);
	dp_percentiles_append(&b, numbers->d, numbers->n, field->percentiles, field->npercentiles,
						  field->continuous);
	return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
}

/*
 * The value of a field from the state of its slot.  Its bytes are in room, in the state, or in the
 * array that is returned, in the current context.
 */
static struct varlena *
show_field(const DpAccumulators *acc, const DpField *field, DpSlotState *s, DpValue *v, uint8 *room)
{
	const DpSlot *slot = &acc->slots[field->slot];
	int less = field->show == DP_SHOW_DEVIATION_SAMP ? 1 : 0;
	struct varlena *built = NULL;

	(void) dp_result_null(v);
	switch (field->show)
	{
		case DP_SHOW_ROWS:
			show_integer(v, room, s->n);
			break;
		case DP_SHOW_TOTAL:
			dp_exact_sum_total(&s->sum, v, room);
			break;
		case DP_SHOW_AVERAGE:
			dp_exact_sum_average(&s->sum, v, room);
			break;
		case DP_SHOW_DEVIATION_POP:
		case DP_SHOW_DEVIATION_SAMP:
			/* in a window that moves, infinity and NaN make it null until they leave */
			if (s->n > less && !(acc->window && s->deviation.special > 0))
				show_double(v, room,
							s->deviation.special > 0
								? NAN
								: dp_big_deviation(s->n, &s->deviation.total, &s->deviation.squares,
												   less));
			break;
		case DP_SHOW_FIRST:
			if (slot->kind == DP_SLOT_SERIES && s->series.n > 0)
				*v = dp_series_value(&s->series, 0);
			else if (slot->kind == DP_SLOT_LIST && s->in.n > 0)
				*v = s->in.elements[0]->value;
			break;
		case DP_SHOW_LIST:
		case DP_SHOW_LIST_REVERSED:
			built = slot->kind == DP_SLOT_SERIES
						? dp_series_array(slot, &s->series)
						: show_list(slot, &s->in, field->show == DP_SHOW_LIST_REVERSED);
			break;
		case DP_SHOW_MERGED:
			built = dp_series_merged(&s->series);
			break;
		case DP_SHOW_MEDIAN:
			if (field->npercentiles == 0 && s->n > 0)
				show_double(v, room, s->median.value);
			else if (field->npercentiles > 0 && s->median.in.n > 0)
				show_double(v, room,
							dp_percentile(s->median.in.d, s->median.in.n, field->percentiles[0],
										  field->continuous));
			break;
		case DP_SHOW_PERCENTILES:
			built = show_percentiles(field, &s->median.in);
			break;
	}
	if (built != NULL)
		*v = dp_value_of_varlena(built);
	return built;
}

void
dp_accumulation_show(DpAccumulation *g)
{
	const DpAccumulators *acc = g->acc;
	MemoryContext old;

	whole_ensure(g);
	if (g->is_shown)
		return;
	old = MemoryContextSwitchTo(g->context);
	for (int i = 0; i < acc->nfields; i++)
	{
		const DpField *field = &acc->fields[i];

		Assert(!dp_state_of(g->acc, g->whole, field->slot)->search);
		g->built[i] = show_field(acc, field, dp_state_of(g->acc, g->whole, field->slot),
								 &g->results[i], g->rooms[i]);
	}
	MemoryContextSwitchTo(old);
	g->is_shown = true;
}

void
dp_accumulation_show_arrived(DpAccumulation *g, DpBuilder *b)
{
	const DpAccumulators *acc = g->acc;

	for (int i = 0; i < acc->nslots; i++)
	{
		DpSlotState *s = dp_state_of(g->acc, g->delta, i);

		if (acc->slots[i].kind == DP_SLOT_MEDIAN)
		{
			DpNumbers *numbers = &s->median.in;

			if (!acc->window)
				dp_percentile_sort(numbers->d, numbers->n);
		}
	}
	for (int i = 0; i < acc->nfields; i++)
	{
		const DpField *field = &acc->fields[i];
		uint8 room[DP_SUM_RESULT_SIZE];
		DpValue v;
		struct varlena *built =
			show_field(acc, field, dp_state_of(g->acc, g->delta, field->slot), &v, room);

		dp_builder_append_value(b, field->name, field->namelen, &v);
		if (built != NULL)
			pfree(built);
	}
}
