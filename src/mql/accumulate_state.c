/*
 * accumulate_state.c
 *		Packed groups: the state in a target document, and whole groups for transport
 *		(docs/formats.md describes both).
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "utils/memutils.h"

#include "bson/validate.h"
#include "mql/accumulate_node.h"

/* The first byte: a state beside visible fields, or a group with all its additions and removals */
#define VERSION_STATE 1
#define VERSION_GROUP 2

/* Subtype of the state's Binary: the user's own, as BSON calls it */
#define STATE_SUBTYPE 0x80

/* ---------------------------------------------------------------- slots */

void
dp_slot_init(DpAccumulation *g, const DpSlot *slot, DpSlotState *s)
{
	if (slot->kind == DP_SLOT_SUM)
		dp_exact_sum_init(&s->sum, g->context);
	else if (slot->kind == DP_SLOT_DEVIATION)
	{
		dp_big_init(&s->deviation.total, g->context);
		dp_big_init(&s->deviation.squares, g->context);
	}
}

/* Forgets numbers. */
static void
numbers_reset(DpNumbers *numbers)
{
	if (numbers->d != NULL)
		pfree(numbers->d);
	memset(numbers, 0, sizeof(DpNumbers));
}

void
dp_slot_reset(const DpSlot *slot, DpSlotState *s)
{
	s->n = 0;
	s->search = s->searching = false;
	switch (slot->kind)
	{
		case DP_SLOT_ROWS:
			break;
		case DP_SLOT_SUM:
			dp_exact_sum_reset(&s->sum);
			break;
		case DP_SLOT_DEVIATION:
			s->deviation.special = 0;
			dp_big_free(&s->deviation.total);
			dp_big_free(&s->deviation.squares);
			break;
		case DP_SLOT_LIST:
			dp_list_reset(&s->in);
			dp_list_reset(&s->out);
			break;
		case DP_SLOT_SERIES:
			dp_series_reset(&s->series);
			break;
		case DP_SLOT_MEDIAN:
			numbers_reset(&s->median.in);
			numbers_reset(&s->median.out);
			break;
	}
}

/* Adds numbers to others. */
static void
numbers_add(DpAccumulation *g, DpNumbers *numbers, const double *d, int64 n)
{
	if (n == 0)
		return;
	if (numbers->n + n > numbers->room)
	{
		int64 room = Max(numbers->n + n, numbers->room * 2);

		numbers->d = numbers->d == NULL ? MemoryContextAllocHuge(g->context, sizeof(double) * room)
										: repalloc_huge(numbers->d, sizeof(double) * room);
		numbers->room = room;
	}
	memcpy(numbers->d + numbers->n, d, sizeof(double) * n);
	numbers->n += n;
}

void
dp_slot_add(DpAccumulation *g, const DpSlot *slot, DpSlotState *s, const DpSlotState *other)
{
	switch (slot->kind)
	{
		case DP_SLOT_ROWS:
			s->n += other->n;
			break;
		case DP_SLOT_SUM:
			dp_exact_sum_add(&s->sum, &other->sum);
			break;
		case DP_SLOT_DEVIATION:
			s->n += other->n;
			s->deviation.special += other->deviation.special;
			dp_big_add(&s->deviation.total, &other->deviation.total, 1);
			dp_big_add(&s->deviation.squares, &other->deviation.squares, 1);
			break;
		case DP_SLOT_LIST:
			dp_list_merge(g, slot, &s->in, &other->in, slot->cap);
			dp_list_merge(g, slot, &s->out, &other->out, slot->cap);
			break;
		case DP_SLOT_MEDIAN:
			numbers_add(g, &s->median.in, other->median.in.d, other->median.in.n);
			numbers_add(g, &s->median.out, other->median.out.d, other->median.out.n);
			break;
		case DP_SLOT_SERIES:
			for (int64 i = 0; i < other->series.n; i++)
			{
				DpValue v = dp_series_value(&other->series, i);

				dp_series_add(g, slot, &s->series, &v, 0);
			}
			break;
	}
}

/* ---------------------------------------------------------------- the state in a document */

void
dp_state_find(const DpAccumulators *acc, const DpValue *target, DpValue *fields, DpValue *state)
{
	DpIter iter;
	DpElement e;

	for (int i = 0; i < acc->nfields; i++)
		fields[i].type = DP_TYPE_EOD;
	state->type = DP_TYPE_EOD;
	dp_iter_init_value(&iter, target);
	while (dp_iter_next(&iter, &e))
	{
		int i;

		if (acc->state != NULL && e.namelen == acc->statelen &&
			memcmp(e.name, acc->state, e.namelen) == 0)
		{
			if (state->type == DP_TYPE_EOD && e.value.type == DP_TYPE_DOCUMENT &&
				!dp_document_find(e.value.data, e.value.len, acc->name, acc->namelen, state))
				state->type = DP_TYPE_EOD;
			continue;
		}
		i = dp_names_find(&acc->names, e.name, e.namelen);
		if (i >= 0 && fields[i].type == DP_TYPE_EOD)
			fields[i] = e.value;
	}
}

/* A count that is not negative. */
static int64
unpack_count(DpPacked *p)
{
	uint64 n = dp_unpack_varint(p);

	if (n > PG_INT64_MAX / 2)
		dp_corrupted("a packed count is out of range");
	return (int64) n;
}

/* Whether a field's value is an int32 or int64; it. */
static bool
visible_integer(const DpValue *v, int64 *i)
{
	if (v->type == DP_TYPE_INT32)
		*i = dp_get_int32(v->data);
	else if (v->type == DP_TYPE_INT64)
		*i = dp_get_int64(v->data);
	else
		return false;
	return true;
}

/* Reads a sum; its integers may follow from the visible total.  Returns false if they cannot. */
static bool
read_sum(const DpSlot *slot, DpSlotState *s, DpPacked *p, const DpValue *visible)
{
	int64 i;

	if (p != NULL)
		dp_exact_sum_unpack(&s->sum, p);
	if (s->sum.n < 0 || s->sum.nint64 < 0 || s->sum.ndouble < 0 || s->sum.ndecimal < 0 ||
		s->sum.nnan < 0 || s->sum.ninfinity < 0 || s->sum.nminus < 0)
		dp_corrupted("a packed count is negative");
	if (visible == NULL)
		return true;
	if (s->sum.ndecimal > 0)
		return visible->type == DP_TYPE_DECIMAL128;
	if (s->sum.ndouble > 0)
		return visible->type == DP_TYPE_DOUBLE;
	if (visible_integer(visible, &i))
	{
		if (s->sum.low != 0 || s->sum.high != 0 ||
			(visible->type == DP_TYPE_INT32) !=
				(s->sum.nint64 == 0 && i >= PG_INT32_MIN && i <= PG_INT32_MAX))
			return false;
		dp_exact_sum_add_integer(&s->sum, i < 0 ? -1 : 0, (uint64) i);
		return true;
	}
	/* integers whose sum is too large for one */
	return visible->type == DP_TYPE_DOUBLE && !dp_exact_sum_integer(&s->sum, &i);
}

/* Reads the sums of a deviation. */
static void
read_deviation(DpSlotState *s, DpPacked *p, bool may_be_negative)
{
	if (pg_add_s64_overflow(s->n, dp_unpack_signed(p), &s->n) ||
		pg_add_s64_overflow(s->deviation.special, dp_unpack_signed(p), &s->deviation.special))
		dp_corrupted("a packed count is out of range");
	if (!may_be_negative && (s->n < 0 || s->deviation.special < 0 || s->deviation.special > s->n))
		dp_corrupted("a packed count is out of range");
	dp_big_unpack(&s->deviation.total, p);
	dp_big_unpack(&s->deviation.squares, p);
}

/*
 * Reads a list, whose values are visible; p contains the counts of distinct ones and the keys of
 * those not ordered by value.
 */
static bool
read_list(DpAccumulation *g, const DpField *field, const DpSlot *slot, DpSlotState *s, DpPacked *p,
		  const DpValue *visible)
{
	bool single = field->show == DP_SHOW_FIRST;
	bool reversed = field->show == DP_SHOW_LIST_REVERSED;
	bool noted = slot->distinct || !slot->by_value;
	int64 n = noted && p != NULL ? unpack_count(p) : 0;
	DpCandidate *elements;
	DpValue *values = NULL;
	int64 nvalues;

	if (n > slot->n)
		dp_corrupted("a packed list is too long");
	if (single)
	{
		nvalues = noted ? n : visible->type == DP_TYPE_NULL ? 0 : 1;
		values = palloc(sizeof(DpValue));
		*values = *visible;
		if (noted && n == 0 && visible->type != DP_TYPE_NULL)
			return false;
	}
	else
	{
		DpIter iter;
		DpValue v;

		if (visible->type != DP_TYPE_ARRAY)
			return false;
		nvalues = dp_document_count(visible->data, visible->len);
		if (nvalues > slot->n)
			return false;
		values = palloc(sizeof(DpValue) * Max(nvalues, 1));
		dp_iter_init_value(&iter, visible);
		for (int64 i = 0; dp_iter_next_value(&iter, &v); i++)
			values[reversed ? nvalues - 1 - i : i] = v;
	}

	/* all of the packed list is read, whether it fits or not */
	elements = palloc0(sizeof(DpCandidate) * Max(Max(n, nvalues), 1));
	for (int64 i = 0; i < n; i++)
	{
		DpCandidate *e = &elements[i];

		e->key = "";
		e->count = 1;
		if (slot->distinct)
		{
			uint64 count = dp_unpack_varint(p);

			e->count = (int64) (count >> 1);
			e->mixed = (count & 1) != 0;
			if (e->count == 0)
				dp_corrupted("a packed count is out of range");
		}
		else
		{
			uint64 len = dp_unpack_varint(p);
			uint64 prefix = slot->order < 0 ? len : dp_unpack_varint(p);

			if (prefix > len)
				dp_corrupted("a packed key is too short");
			e->keylen = (uint32) len;
			e->prefix = (uint32) prefix;
			e->key = (const char *) dp_unpack_bytes(p, len);
		}
	}
	if (noted && n != nvalues)
		return false;
	for (int64 i = 0; i < nvalues; i++)
	{
		DpCandidate *e = &elements[i];

		if (!noted)
		{
			e->key = "";
			e->count = 1;
		}
		e->value = values[i];
		dp_list_add(g, slot, &s->in, e, PG_INT32_MAX);
	}
	pfree(elements);
	pfree(values);
	return true;
}

bool
dp_state_read(DpAccumulation *g, const DpValue *target, DpSlotState *slots)
{
	const DpAccumulators *acc = g->acc;
	DpValue *fields = palloc(sizeof(DpValue) * acc->nfields);
	DpValue state;
	DpPacked packed;
	DpPacked *p = NULL;
	bool whole = true;

	dp_state_find(acc, target, fields, &state);
	for (int i = 0; i < acc->nfields; i++)
	{
		if (fields[i].type == DP_TYPE_EOD)
			whole = false;
	}
	if (!whole)
		return false;
	if (state.type != DP_TYPE_EOD)
	{
		if (state.type != DP_TYPE_BINARY || state.data[4] != STATE_SUBTYPE)
			return false;
		packed.next = state.data + 5;
		packed.end = state.data + state.len;
		p = &packed;
		if (dp_unpack_byte(p) != VERSION_STATE)
			dp_corrupted("the state of a group has an unknown version");
		if ((uint32) dp_get_int32(dp_unpack_bytes(p, 4)) != acc->fingerprint)
			return false;
	}

	for (int i = 0; i < acc->nslots; i++)
	{
		const DpSlot *slot = &acc->slots[i];
		const DpValue *visible = slot->visible < 0 ? NULL : &fields[slot->visible];
		DpSlotState *s = dp_state_of(acc, slots, i);

		switch (slot->kind)
		{
			case DP_SLOT_ROWS:
				if (visible == NULL)
					s->n = p != NULL ? unpack_count(p) : 0;
				else if (!visible_integer(visible, &s->n) || s->n < 0)
					whole = false;
				break;
			case DP_SLOT_SUM:
				whole &= read_sum(slot, s, p, visible);
				break;
			case DP_SLOT_DEVIATION:
				if (p != NULL)
					read_deviation(s, p, false);
				break;
			case DP_SLOT_LIST:
				whole &= read_list(g, &acc->fields[slot->visible], slot, s, p, visible);
				break;
			case DP_SLOT_MEDIAN:
				s->n = p != NULL ? unpack_count(p) : 0;
				break;
			case DP_SLOT_SERIES:
				break; /* is in no document */
		}
	}
	if (p != NULL && p->next != p->end)
		dp_corrupted("the state of a group has bytes behind it");

	/* fields that are null where there are numbers, or the other way round, are not ours */
	for (int i = 0; i < acc->nfields && whole; i++)
	{
		DpSlotState *s = dp_state_of(acc, slots, acc->fields[i].slot);
		int64 n = s->n;

		switch (acc->fields[i].show)
		{
			case DP_SHOW_AVERAGE:
				n = s->sum.n;
				break;
			case DP_SHOW_DEVIATION_SAMP:
				n--;
				break;
			case DP_SHOW_DEVIATION_POP:
				break;
			case DP_SHOW_MEDIAN:
				if (fields[i].type == DP_TYPE_DOUBLE)
					s->median.value = dp_get_double(fields[i].data);
				break;
			default:
				continue;
		}
		if ((n > 0) != (fields[i].type == DP_TYPE_DOUBLE || fields[i].type == DP_TYPE_DECIMAL128))
			whole = false;
	}
	pfree(fields);
	return whole;
}

/* True if everything in the slot follows from its fields. */
static bool
state_is_empty(const DpSlot *slot, const DpSlotState *s, bool integers)
{
	switch (slot->kind)
	{
		case DP_SLOT_ROWS:
			return slot->visible >= 0 || s->n == 0;
		case DP_SLOT_SUM:
			return s->sum.nint64 == 0 && s->sum.ndouble == 0 && s->sum.ndecimal == 0 &&
				   (!slot->count || s->sum.n == 0) && !integers;
		case DP_SLOT_DEVIATION:
		case DP_SLOT_MEDIAN:
			return s->n == 0;
		case DP_SLOT_LIST:
			return (slot->by_value && !slot->distinct) || s->in.n == 0;
		case DP_SLOT_SERIES:
			break;
	}
	return true;
}

void
dp_state_write(DpAccumulation *g)
{
	const DpAccumulators *acc = g->acc;
	StringInfo out = &g->packed;
	bool empty = true;
	uint8 head[5];

	if (out->data == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(g->context);

		initStringInfo(out);
		MemoryContextSwitchTo(old);
	}
	resetStringInfo(out);
	if (acc->state == NULL)
		return;
	head[0] = VERSION_STATE;
	dp_put_int32(head + 1, (int32) acc->fingerprint);
	appendBinaryStringInfo(out, (char *) head, sizeof(head));

	for (int i = 0; i < acc->nslots; i++)
	{
		const DpSlot *slot = &acc->slots[i];
		const DpSlotState *s = dp_state_of(acc, g->whole, i);
		bool integers = false;
		int64 total;

		if (slot->kind == DP_SLOT_SUM)
			integers = (s->sum.low != 0 || s->sum.high != 0) &&
					   (slot->visible < 0 || !dp_exact_sum_integer(&s->sum, &total));
		empty &= state_is_empty(slot, s, integers);
		switch (slot->kind)
		{
			case DP_SLOT_ROWS:
				if (slot->visible < 0)
					dp_pack_varint(out, s->n);
				break;
			case DP_SLOT_SUM:
				dp_exact_sum_pack(out, &s->sum, slot->count, integers);
				break;
			case DP_SLOT_DEVIATION:
				dp_pack_signed(out, s->n);
				dp_pack_signed(out, s->deviation.special);
				dp_big_pack(out, &s->deviation.total);
				dp_big_pack(out, &s->deviation.squares);
				break;
			case DP_SLOT_LIST:
				if (slot->by_value && !slot->distinct)
					break;
				dp_pack_varint(out, s->in.n);
				for (int k = 0; k < s->in.n; k++)
				{
					const DpCandidate *e = s->in.elements[k];

					if (slot->distinct)
					{
						dp_pack_varint(out, 2 * (uint64) e->count + (e->mixed ? 1 : 0));
						continue;
					}
					dp_pack_varint(out, e->keylen);
					if (slot->order >= 0)
						dp_pack_varint(out, e->prefix);
					appendBinaryStringInfo(out, e->key, e->keylen);
				}
				break;
			case DP_SLOT_MEDIAN:
				dp_pack_varint(out, s->n);
				break;
			case DP_SLOT_SERIES:
				break;
		}
	}
	if (empty)
		resetStringInfo(out);
}

/* ---------------------------------------------------------------- groups on their way */

/* Appends a list with its values. */
static void
pack_list(StringInfo out, const DpList *list)
{
	dp_pack_varint(out, 2 * (uint64) list->n + (list->trimmed ? 1 : 0));
	for (int i = 0; i < list->n; i++)
	{
		const DpCandidate *e = list->elements[i];

		dp_pack_varint(out, 2 * (uint64) e->count + (e->mixed ? 1 : 0));
		dp_pack_varint(out, e->keylen);
		dp_pack_varint(out, e->prefix);
		appendBinaryStringInfo(out, e->key, e->keylen);
		appendStringInfoChar(out, (char) e->value.type);
		dp_pack_varint(out, e->value.len);
		appendBinaryStringInfo(out, (const char *) e->value.data, e->value.len);
	}
}

/* Adds a packed list. */
static void
unpack_list(DpAccumulation *g, const DpSlot *slot, DpList *list, DpPacked *p)
{
	uint64 head = dp_unpack_varint(p);

	for (uint64 i = 0; i < head >> 1; i++)
	{
		DpCandidate e = { 0 };
		uint64 count = dp_unpack_varint(p);
		uint64 len;
		uint64 prefix;
		DpFault fault;

		e.count = (int64) (count >> 1);
		e.mixed = (count & 1) != 0;
		len = dp_unpack_varint(p);
		prefix = dp_unpack_varint(p);
		e.key = (const char *) dp_unpack_bytes(p, len);
		e.keylen = (uint32) len;
		e.prefix = (uint32) prefix;
		e.value.type = dp_unpack_byte(p);
		len = dp_unpack_varint(p);
		e.value.data = dp_unpack_bytes(p, len);
		e.value.len = (uint32) len;
		if (e.count == 0 || e.count > PG_INT64_MAX / 4 || prefix > e.keylen ||
			(slot->by_value && e.keylen > 0) ||
			!dp_validate_value(e.value.type, e.value.data, e.value.len, &fault))
			dp_corrupted("an element of a packed list is wrong");
		dp_list_add(g, slot, list, &e, slot->cap);
	}
	if ((head & 1) != 0)
	{
		if (list->n == 0)
			dp_corrupted("an empty list was trimmed");
		list->trimmed = true;
	}
}

/* Appends numbers. */
static void
pack_numbers(StringInfo out, const DpNumbers *numbers)
{
	uint8 bytes[8];

	dp_pack_varint(out, numbers->n);
	for (int64 i = 0; i < numbers->n; i++)
	{
		dp_put_double(bytes, numbers->d[i]);
		appendBinaryStringInfo(out, (char *) bytes, sizeof(bytes));
	}
}

/* Adds packed numbers. */
static void
unpack_numbers(DpAccumulation *g, DpNumbers *numbers, DpPacked *p)
{
	uint64 n = dp_unpack_varint(p);

	if (n > (uint64) (p->end - p->next) / 8)
		dp_corrupted("packed data ends too early");
	while (n-- > 0)
	{
		double d = dp_get_double(dp_unpack_bytes(p, 8));

		if (isnan(d))
			dp_corrupted("a packed number is none");
		numbers_add(g, numbers, &d, 1);
	}
}

/* Appends a series. */
static void
pack_series(StringInfo out, const DpSeries *q)
{
	dp_pack_varint(out, q->n);
	for (int64 i = 0; i < q->n; i++)
	{
		DpValue v = dp_series_value(q, i);

		appendStringInfoCharMacro(out, (char) v.type);
		dp_pack_varint(out, v.len);
		appendBinaryStringInfo(out, (const char *) v.data, v.len);
	}
}

/* Adds a packed series. */
static void
unpack_series(DpAccumulation *g, const DpSlot *slot, DpSeries *q, DpPacked *p)
{
	for (uint64 n = dp_unpack_varint(p); n > 0; n--)
	{
		DpFault fault;
		DpValue v;

		v.type = dp_unpack_byte(p);
		v.len = (uint32) dp_unpack_varint(p);
		v.data = dp_unpack_bytes(p, v.len);
		if (!dp_validate_value(v.type, v.data, v.len, &fault))
			dp_corrupted("an element of a packed series is wrong");
		dp_series_add(g, slot, q, &v, 0);
	}
}

void
dp_accumulation_pack(StringInfo out, const DpAccumulation *g)
{
	const DpAccumulators *acc = g->acc;
	uint8 head[5];

	head[0] = VERSION_GROUP;
	dp_put_int32(head + 1, (int32) acc->fingerprint);
	appendBinaryStringInfo(out, (char *) head, sizeof(head));
	for (int i = 0; i < acc->nslots; i++)
	{
		const DpSlotState *s = dp_state_of(acc, g->delta, i);

		switch (acc->slots[i].kind)
		{
			case DP_SLOT_ROWS:
				dp_pack_signed(out, s->n);
				break;
			case DP_SLOT_SUM:
				dp_exact_sum_pack(out, &s->sum, true, true);
				break;
			case DP_SLOT_DEVIATION:
				dp_pack_signed(out, s->n);
				dp_pack_signed(out, s->deviation.special);
				dp_big_pack(out, &s->deviation.total);
				dp_big_pack(out, &s->deviation.squares);
				break;
			case DP_SLOT_LIST:
				pack_list(out, &s->in);
				pack_list(out, &s->out);
				break;
			case DP_SLOT_MEDIAN:
				pack_numbers(out, &s->median.in);
				pack_numbers(out, &s->median.out);
				break;
			case DP_SLOT_SERIES:
				pack_series(out, &s->series);
				break;
		}
	}
}

void
dp_accumulation_unpack(DpAccumulation *g, const uint8 *bytes, uint32 len)
{
	const DpAccumulators *acc = g->acc;
	DpPacked packed = { bytes, bytes + len };
	DpPacked *p = &packed;

	g->is_whole = false;
	if (dp_unpack_byte(p) != VERSION_GROUP)
		dp_corrupted("a packed group has an unknown version");
	if ((uint32) dp_get_int32(dp_unpack_bytes(p, 4)) != acc->fingerprint)
		dp_corrupted("a packed group has other fields");
	for (int i = 0; i < acc->nslots; i++)
	{
		DpSlotState *s = dp_state_of(acc, g->delta, i);

		switch (acc->slots[i].kind)
		{
			case DP_SLOT_ROWS:
				if (pg_add_s64_overflow(s->n, dp_unpack_signed(p), &s->n))
					dp_corrupted("a packed count is out of range");
				break;
			case DP_SLOT_SUM:
				dp_exact_sum_unpack(&s->sum, p);
				break;
			case DP_SLOT_DEVIATION:
				read_deviation(s, p, true);
				break;
			case DP_SLOT_LIST:
				unpack_list(g, &acc->slots[i], &s->in, p);
				unpack_list(g, &acc->slots[i], &s->out, p);
				break;
			case DP_SLOT_MEDIAN:
				unpack_numbers(g, &s->median.in, p);
				unpack_numbers(g, &s->median.out, p);
				break;
			case DP_SLOT_SERIES:
				unpack_series(g, &acc->slots[i], &s->series, p);
				break;
		}
	}
	if (p->next != p->end)
		dp_corrupted("a packed group has bytes behind it");
}
