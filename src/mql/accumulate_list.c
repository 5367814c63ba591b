/*
 * accumulate_list.c
 *		The first n rows or values of a group in some order.
 *
 * Elements are ordered by more than the sort key, so that only identical elements are equal: the
 * order of rows does not determine which ones are kept.  Identical elements are one, with a count.
 *
 * A list of added or removed elements may be trimmed: then nothing is known of elements worse than
 * its last one.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/compare.h"
#include "mql/accumulate_node.h"

/* Compares bytes, then the shorter first. */
static inline int
bytes_compare(const void *a, uint32 alen, const void *b, uint32 blen)
{
	int order = memcmp(a, b, Min(alen, blen));

	return order != 0 ? order : (alen > blen) - (alen < blen);
}

/* Compares equal values by type and bytes. */
static int
image_compare(const DpValue *a, const DpValue *b)
{
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	return bytes_compare(a->data, a->len, b->data, b->len);
}

/* The place of a before (negative) or after b. */
static inline int
candidate_compare(const DpSlot *slot, const DpCandidate *a, const DpCandidate *b)
{
	int order;

	if (slot->by_value)
		order = dp_value_compare(&a->value, &b->value);
	else
		order = bytes_compare(a->key, a->keylen, b->key, b->keylen);
	if (order == 0 && !slot->distinct)
		order = image_compare(&a->value, &b->value);
	return slot->descending ? -order : order;
}

/* The same by what an index knows. */
static int
prefix_compare(const DpSlot *slot, const DpCandidate *a, const DpCandidate *b)
{
	int order;

	if (slot->by_value)
		order = dp_value_compare(&a->value, &b->value);
	else
		order = bytes_compare(a->key, a->prefix, b->key, b->prefix);
	return slot->descending ? -order : order;
}

/* A copy with its bytes in the same chunk. */
static DpCandidate *
candidate_copy(MemoryContext context, const DpCandidate *c)
{
	DpCandidate *copy = MemoryContextAlloc(context, sizeof(DpCandidate) + c->keylen + c->value.len);
	char *bytes = (char *) (copy + 1);

	*copy = *c;
	memcpy(bytes, c->value.data, c->value.len);
	copy->value.data = (uint8 *) bytes;
	if (c->keylen > 0)
		memcpy(bytes + c->value.len, c->key, c->keylen);
	copy->key = bytes + c->value.len;
	return copy;
}

void
dp_list_reset(DpList *list)
{
	for (int i = 0; i < list->n; i++)
		pfree(list->elements[i]);
	if (list->elements != NULL)
		pfree(list->elements);
	memset(list, 0, sizeof(DpList));
}

/* Where c is or would be. */
static int
list_find(const DpSlot *slot, const DpList *list, const DpCandidate *c, bool *found)
{
	int low = 0;
	int high = list->n;

	*found = false;
	/* rows often come in order */
	if (high > 0 && candidate_compare(slot, c, list->elements[high - 1]) > 0)
		return high;
	while (low < high)
	{
		int middle = (low + high) / 2;
		int order = candidate_compare(slot, c, list->elements[middle]);

		if (order == 0)
		{
			*found = true;
			return middle;
		}
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Takes an element away. */
static void
list_remove(DpList *list, int i)
{
	pfree(list->elements[i]);
	list->n--;
	memmove(list->elements + i, list->elements + i + 1, sizeof(DpCandidate *) * (list->n - i));
}

void
dp_list_add(DpAccumulation *g, const DpSlot *slot, DpList *list, const DpCandidate *c, int cap)
{
	bool found;
	int i = list_find(slot, list, c, &found);

	if (found)
	{
		DpCandidate *e = list->elements[i];
		int order = slot->distinct ? image_compare(&c->value, &e->value) : 0;

		e->count += c->count;
		e->mixed |= c->mixed || order != 0;
		if (order < 0)
		{
			/* of values that are equal the one with the least bytes is shown */
			DpCandidate shown = *c;

			shown.count = e->count;
			shown.mixed = e->mixed;
			list->elements[i] = candidate_copy(g->context, &shown);
			pfree(e);
		}
		return;
	}
	if (list->n >= cap)
	{
		list->trimmed = true;
		if (i >= list->n)
			return;
		list_remove(list, list->n - 1);
	}
	if (list->n == list->room)
	{
		int room = Max(4, list->room * 2);
		Size size = sizeof(DpCandidate *) * room;

		list->elements = list->elements == NULL ? MemoryContextAlloc(g->context, size)
												: repalloc_huge(list->elements, size);
		list->room = room;
	}
	memmove(list->elements + i + 1, list->elements + i, sizeof(DpCandidate *) * (list->n - i));
	list->elements[i] = candidate_copy(g->context, c);
	list->n++;
}

void
dp_list_merge(DpAccumulation *g, const DpSlot *slot, DpList *list, const DpList *other, int cap)
{
	for (int i = 0; i < other->n; i++)
		dp_list_add(g, slot, list, other->elements[i], cap);
	list->trimmed |= other->trimmed;
}

bool
dp_list_take(const DpSlot *slot, DpList *list, const DpCandidate *c)
{
	bool found;
	int i = list_find(slot, list, c, &found);

	if (found && --list->elements[i]->count == 0)
		list_remove(list, i);
	return found;
}

int64
dp_list_size(const DpSlot *slot, const DpList *list)
{
	int64 n = 0;

	if (slot->distinct)
		return list->n;
	for (int i = 0; i < list->n && n < slot->n; i++)
		n += list->elements[i]->count;
	return n;
}

bool
dp_list_cancels(const DpSlot *slot, const DpList *in, const DpList *out)
{
	if (in->n != out->n || in->trimmed || out->trimmed)
		return false;
	for (int i = 0; i < in->n; i++)
	{
		const DpCandidate *a = in->elements[i];
		const DpCandidate *b = out->elements[i];

		if (a->count != b->count || a->mixed || b->mixed || candidate_compare(slot, a, b) != 0 ||
			image_compare(&a->value, &b->value) != 0)
			return false;
	}
	return true;
}

/*
 * Nothing is known of elements worse than the horizon, which is the last element of a full list or
 * of trimmed additions; of trimmed removals even the last one is uncertain.
 */
bool
dp_list_apply(DpAccumulation *g, const DpSlot *slot, DpList *list, const DpList *in,
			  const DpList *out)
{
	DpCandidate *horizon = NULL;
	bool known = true;
	int64 n = 0;
	int i;

	if (dp_list_size(slot, list) >= slot->n)
		horizon = list->elements[list->n - 1];
	if (in->trimmed &&
		(horizon == NULL || candidate_compare(slot, in->elements[in->n - 1], horizon) < 0))
		horizon = in->elements[in->n - 1];
	if (horizon != NULL)
		horizon = candidate_copy(g->context, horizon);

	for (i = 0; i < in->n; i++)
		dp_list_add(g, slot, list, in->elements[i], PG_INT32_MAX);
	for (i = 0; i < out->n && known; i++)
	{
		const DpCandidate *c = out->elements[i];
		bool found;
		int at = list_find(slot, list, c, &found);

		if (found)
		{
			DpCandidate *e = list->elements[at];

			e->count -= c->count;
			if (e->count > 0 && slot->distinct &&
				(e->mixed || c->mixed || image_compare(&c->value, &e->value) != 0))
				known = false; /* check which bytes were removed */
			if (e->count < 0 && (horizon == NULL || candidate_compare(slot, e, horizon) < 0))
				known = false;
			if (e->count <= 0)
				list_remove(list, at);
		}
		else if (horizon == NULL || candidate_compare(slot, c, horizon) < 0)
			known = false; /* it should be there */
	}

	for (i = 0; i < list->n && n < slot->n && known; i++)
	{
		const DpCandidate *e = list->elements[i];

		if (horizon != NULL && candidate_compare(slot, e, horizon) > 0)
			known = false;
		if (out->trimmed && candidate_compare(slot, e, out->elements[out->n - 1]) >= 0)
			known = false;
		n += slot->distinct ? 1 : e->count;
	}
	if (n < slot->n && (horizon != NULL || out->trimmed))
		known = false;
	if (horizon != NULL)
		pfree(horizon);
	if (known)
		dp_list_truncate(slot, list);
	return known;
}

void
dp_list_truncate(const DpSlot *slot, DpList *list)
{
	int64 n = 0;
	int i;

	for (i = 0; i < list->n && n < slot->n; i++)
	{
		DpCandidate *e = list->elements[i];

		if (slot->distinct)
			n++;
		else
		{
			e->count = Min(e->count, slot->n - n);
			n += e->count;
		}
	}
	while (list->n > i)
		list_remove(list, list->n - 1);
	list->trimmed = false;
}

bool
dp_list_wants(const DpSlot *slot, const DpList *list, const DpCandidate *c)
{
	int64 n = 0;
	int i;

	for (i = 0; i < list->n && n < slot->n; i++)
		n += slot->distinct ? 1 : list->elements[i]->count;
	return n < slot->n || prefix_compare(slot, c, list->elements[i - 1]) <= 0;
}
