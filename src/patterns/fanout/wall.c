/*
 * wall.c
 *		The fan-out pattern: entries of walls, their order, and changes of a wall
 *		by written posts and followed authors.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/builder.h"
#include "bson/compare.h"
#include "patterns/fanout/fanout.h"

static int entry_compare(const void *a, const void *b, void *arg);
static void entry_parse(DpFanout *f, const DpValue *doc, DpFanoutEntry *entry);
static int entry_find(const DpFanoutEntries *entries, const DpValue *key);
static void stand(DpFanout *f, const DpFanoutStand *s, DpFanoutEntries *add,
				  DpFanoutEntries *entries, List **merged);
static List *values_without(List *values, const DpValue *value);

/* ---------------------------------------------------------------- entries */

bool
dp_fanout_entry(DpFanout *f, struct varlena *doc, const DpKey *key, DpFanoutEntry *entry)
{
	DpValue author;
	DpValue value;
	DpBuilder b;

	if (!dp_fanout_name(f->author, doc, &author))
		return false;
	value = dp_value_of_varlena(dp_key_to_value(f->derivation->decl, key));
	dp_builder_init_value(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, "_id", 3, &value);
	dp_builder_append_value(&b, "author", 6, &author);
	if (f->sort != NULL)
	{
		StringInfoData order;
		DpValue whole = dp_value_of_document(doc);

		initStringInfo(&order);
		dp_sort_key_append(&order, f->sort, &whole);
		dp_builder_append_binary(&b, "order", 5, 0, order.data, order.len);
		pfree(order.data);
	}
	dp_builder_end(&b);
	value = dp_value_of_varlena(dp_builder_finish_value(&b, DP_TYPE_DOCUMENT));
	entry_parse(f, &value, entry);
	return true;
}

/* Finds the parts of an entry. */
static void
entry_parse(DpFanout *f, const DpValue *doc, DpFanoutEntry *entry)
{
	DpValue order;

	memset(entry, 0, sizeof(DpFanoutEntry));
	if (doc->type != DP_TYPE_DOCUMENT ||
		!dp_document_find(doc->data, doc->len, "_id", 3, &entry->key) ||
		!dp_document_find(doc->data, doc->len, "author", 6, &entry->author))
		dp_corrupted("invalid entry of a wall");
	if (f->sort != NULL)
	{
		if (!dp_document_find(doc->data, doc->len, "order", 5, &order) ||
			order.type != DP_TYPE_BINARY || order.len < 5)
			dp_corrupted("an entry of a wall has no order");
		entry->order = order.data + 5;
		entry->order_len = order.len - 5;
	}
	entry->doc = *doc;
}

void
dp_fanout_append(DpFanoutEntries *entries, const DpFanoutEntry *entry)
{
	if (entries->n == entries->size)
	{
		entries->size = Max(entries->size * 2, 16);
		if (entries->list == NULL)
			entries->list = palloc(sizeof(DpFanoutEntry) * entries->size);
		else
			entries->list = repalloc_huge(entries->list, sizeof(DpFanoutEntry) * entries->size);
	}
	entries->list[entries->n++] = *entry;
}

int
dp_fanout_compare(DpFanout *f, const DpFanoutEntry *a, const DpFanoutEntry *b)
{
	DpDecl *decl = f->derivation->decl;
	DpKey left;
	DpKey right;
	int i;

	if (f->sort != NULL)
	{
		int cmp = memcmp(a->order, b->order, Min(a->order_len, b->order_len));

		if (cmp == 0)
			cmp = (a->order_len > b->order_len) - (a->order_len < b->order_len);
		if (cmp != 0)
			return cmp;
	}
	if (f->key_is_value)
		return dp_value_compare(&b->key, &a->key);
	if (!dp_key_of_value(decl, &a->key, &left) || !dp_key_of_value(decl, &b->key, &right))
		dp_corrupted("an entry of a wall has no key of a post");
	for (i = 0; i < decl->nkeys; i++)
	{
		int cmp = DatumGetInt32(FunctionCall2Coll(&f->keys[i].cmp, f->keys[i].collation,
												  right.values[i], left.values[i]));

		if (cmp != 0)
			return cmp;
	}
	return 0;
}

static int
entry_compare(const void *a, const void *b, void *arg)
{
	return dp_fanout_compare(arg, a, b);
}

/* Sorts entries unless they are sorted. */
void
dp_fanout_sort(DpFanout *f, DpFanoutEntries *entries)
{
	if (entries->n > 1)
		qsort_arg(entries->list, entries->n, sizeof(DpFanoutEntry), entry_compare, f);
}

/* Returns the index of the entry of a post, or -1. */
static int
entry_find(const DpFanoutEntries *entries, const DpValue *key)
{
	int i;

	for (i = 0; i < entries->n; i++)
	{
		if (dp_value_compare(&entries->list[i].key, key) == 0)
			return i;
	}
	return -1;
}

/* ---------------------------------------------------------------- walls */

void
dp_fanout_parse(DpFanout *f, struct varlena *wall, DpFanoutEntries *entries, List **merged)
{
	DpValue posts;
	DpValue authors;
	DpValue value;
	DpIter iter;

	memset(entries, 0, sizeof(DpFanoutEntries));
	*merged = NIL;
	if (!dp_document_find(DP_DOC_DATA(wall), DP_DOC_SIZE(wall), "posts", 5, &posts) ||
		posts.type != DP_TYPE_ARRAY ||
		!dp_document_find(DP_DOC_DATA(wall), DP_DOC_SIZE(wall), "merged", 6, &authors) ||
		authors.type != DP_TYPE_ARRAY)
		dp_corrupted("invalid document of a wall");
	entries->size = f->keep + 1;
	entries->list = palloc(sizeof(DpFanoutEntry) * entries->size);
	dp_iter_init_value(&iter, &posts);
	while (dp_iter_next_value(&iter, &value))
	{
		DpFanoutEntry entry;

		entry_parse(f, &value, &entry);
		dp_fanout_append(entries, &entry);
	}
	dp_iter_init_value(&iter, &authors);
	while (dp_iter_next_value(&iter, &value))
	{
		DpValue *copy = palloc(sizeof(DpValue));

		*copy = value;
		*merged = lappend(*merged, copy);
	}
}

static int
value_compare(const ListCell *a, const ListCell *b)
{
	return dp_value_compare(lfirst(a), lfirst(b));
}

struct varlena *
dp_fanout_build(DpFanout *f, const DpValue *reader, const DpFanoutEntries *entries, int n,
				List *merged)
{
	DpBuilder b;
	ListCell *lc;
	int i;

	dp_builder_init(&b, n * 48 + 64);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, "_id", 3, reader);
	dp_builder_begin_array_field(&b, "posts", 5);
	for (i = 0; i < n; i++)
		dp_builder_append_value(&b, NULL, 0, &entries->list[i].doc);
	dp_builder_end(&b);
	dp_builder_begin_array_field(&b, "merged", 6);
	if (list_length(merged) > 1)
		list_sort(merged, value_compare);
	foreach(lc, merged)
		dp_builder_append_value(&b, NULL, 0, lfirst(lc));
	dp_builder_end(&b);
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

bool
dp_fanout_has(List *values, const DpValue *value)
{
	ListCell *lc;

	foreach(lc, values)
	{
		if (dp_value_compare(lfirst(lc), value) == 0)
			return true;
	}
	return false;
}

static List *
values_without(List *values, const DpValue *value)
{
	ListCell *lc;

	foreach(lc, values)
	{
		if (dp_value_compare(lfirst(lc), value) == 0)
			values = foreach_delete_current(values, lc);
	}
	return values;
}

/* Removes the entries of an author, or adds the known ones. */
static void
stand(DpFanout *f, const DpFanoutStand *s, DpFanoutEntries *add, DpFanoutEntries *entries,
	  List **merged)
{
	int i;
	int n = 0;

	*merged = values_without(*merged, &s->author->author);
	if (s->standing == FANOUT_FANNED)
	{
		for (i = 0; i < s->author->top->n; i++)
			dp_fanout_append(add, &s->author->top->list[i]);
		return;
	}
	if (s->standing == FANOUT_MERGED)
		*merged = lappend(*merged, &s->author->author);
	for (i = 0; i < entries->n; i++)
	{
		if (dp_value_compare(&entries->list[i].author, &s->author->author) != 0)
			entries->list[n++] = entries->list[i];
	}
	entries->n = n;
}

/*
 * Returns the changed wall. Nothing is known beyond the last entry of a full wall: later entries
 * are omitted, and if too few are left, the wall must be recomputed.
 */
struct varlena *
dp_fanout_change(DpFanout *f, DpGroup *group, struct varlena *wall, List **merged)
{
	DpFanoutWall *w = group->state;
	DpFanoutEntries entries;
	DpFanoutEntries add = { 0 };
	DpFanoutEntry last = { 0 };
	bool full;
	ListCell *lc;
	int i;
	int n;
	struct varlena *result;

	dp_fanout_parse(f, wall, &entries, merged);
	full = entries.n >= f->keep;
	if (full)
		last = entries.list[entries.n - 1];

	foreach(lc, w->stands)
		stand(f, lfirst(lc), &add, &entries, merged);
	foreach(lc, w->posts)
	{
		DpFanoutPosts *posts = lfirst(lc);

		for (i = 0; i < posts->nkeys; i++)
		{
			int at = entry_find(&entries, &posts->keys[i]);

			if (at >= 0)
			{
				memmove(&entries.list[at], &entries.list[at + 1],
						sizeof(DpFanoutEntry) * (entries.n - at - 1));
				entries.n--;
			}
		}
	}
	foreach(lc, w->posts)
	{
		DpFanoutPosts *posts = lfirst(lc);

		for (i = 0; i < posts->now.n; i++)
			dp_fanout_append(&add, &posts->now.list[i]);
	}

	/* inserts in order; entries after the end of a full wall may not be the next ones */
	dp_fanout_sort(f, &add);
	for (i = 0; i < add.n; i++)
	{
		int low = 0;
		int high = entries.n;

		if (full && dp_fanout_compare(f, &add.list[i], &last) > 0)
			break;
		while (low < high)
		{
			int middle = (low + high) / 2;

			if (dp_fanout_compare(f, &entries.list[middle], &add.list[i]) < 0)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < entries.n && dp_value_compare(&entries.list[low].key, &add.list[i].key) == 0)
		{
			entries.list[low] = add.list[i]; /* already there */
			continue;
		}
		if (low >= f->keep)
			break;
		dp_fanout_append(&entries, &add.list[i]);
		memmove(&entries.list[low + 1], &entries.list[low],
				sizeof(DpFanoutEntry) * (entries.n - 1 - low));
		entries.list[low] = add.list[i];
		if (entries.n > f->keep)
			entries.n = f->keep;
	}
	if (full && entries.n < f->keep)
		return NULL;
	n = Min(entries.n, f->keep);
	result = dp_fanout_build(f, &group->key, &entries, n, *merged);
	if (dp_same_bytes(result, wall))
		return wall;
	return result;
}
