/*
 * analyze_walk.c
 *		Walks the documents of a sample: the tree of their paths, counts at each of them, and
 *		the items at some of them.
 *
 * Fields have the same order in most documents, so a node remembers which one followed it, and most
 * are found without hashing.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "index/stats/analyze.h"

/* Paths whose names are longer together are left out. */
#define PATH_MAX_BYTES 512

/* A node in the table; as a search key, a node with parent and name. */
typedef struct PathEntry
{
	DpPathNode *node;
	uint32 hash;
	char status;
} PathEntry;

static inline uint32
node_hash(const DpPathNode *node)
{
	return hash_combine(murmurhash32((uint32) ((uintptr_t) node->parent >> 4)),
						hash_bytes((const unsigned char *) node->name, node->namelen));
}

static inline bool
node_equal(const DpPathNode *a, const DpPathNode *b)
{
	return a->parent == b->parent && a->namelen == b->namelen &&
		   memcmp(a->name, b->name, a->namelen) == 0;
}

#define SH_PREFIX pathtable
#define SH_ELEMENT_TYPE PathEntry
#define SH_KEY_TYPE DpPathNode *
#define SH_KEY node
#define SH_HASH_KEY(tb, key) node_hash(key)
#define SH_EQUAL(tb, a, b) node_equal(a, b)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, a) (a)->hash
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

struct DpPathTree
{
	MemoryContext context;
	MemoryContext nodes;
	pathtable_hash *table;
	DpPathNode *root;
	uint32 max;
	uint32 counter;   /* nodes made so far */
	uint32 documents; /* documents walked so far */
	uint64 containers;
	bool forgotten;
	/* the nodes that the document has, parents first */
	DpPathNode **touched;
	int ntouched;
	int room;
	/* while items are collected */
	bool collecting;
	int32 number;
};

/* The fields of a document or the elements of an array, as far as they were fetched. */
typedef struct FieldWalk
{
	const uint8 *next;
	const uint8 *end;
	const uint8 *limit; /* end of the fetched bytes */
} FieldWalk;

static void walk_fields(DpPathTree *tree, DpPathNode *at, const DpValue *container,
						const uint8 *limit, bool direct);
static void
walk_value(DpPathTree *tree, DpPathNode *at, const DpValue *value, const uint8 *limit, bool direct);
static void walk_array(DpPathTree *tree, DpPathNode *at, const DpValue *array, const uint8 *limit);
static void
collect_item(DpPathTree *tree, DpPathNode *at, const DpValue *value, const uint8 *limit);
static void collect_length(DpPathTree *tree, DpPathNode *at, int32 length);
static void finish_document(DpPathTree *tree);
static int compare_nodes(const void *a, const void *b);
static void forget_rare(DpPathTree *tree);

/* ---------------------------------------------------------------- fields */

static void
fields_init(FieldWalk *walk, const DpValue *container, const uint8 *limit)
{
	walk->end = container->data + container->len - 1;
	walk->limit = limit;
	if (limit > walk->end)
	{
		DpIter iter;

		dp_iter_init_value(&iter, container);
	}
	else if (container->len < DP_DOCUMENT_MIN_SIZE ||
			 (limit - container->data >= 4 &&
			  (uint32) dp_get_int32(container->data) != container->len))
		dp_corrupted("the length of the document is wrong");
	walk->next = container->data + 4;
}

/* The length of a value that may not be fetched completely; -1 if unknown. */
static int64
cut_size(uint8 type, const uint8 *p, const uint8 *limit)
{
	uint32 size = dp_fixed_size[type];

	if (size < DP_SIZE_INVALID)
		return size;
	if (limit - p < 4)
		return -1;
	switch (type)
	{
		case DP_TYPE_DOCUMENT:
		case DP_TYPE_ARRAY:
			return (uint32) dp_get_int32(p);
		case DP_TYPE_STRING:
		case DP_TYPE_SYMBOL:
		case DP_TYPE_CODE:
			return (int64) (uint32) dp_get_int32(p) + 4;
		case DP_TYPE_BINARY:
			return (int64) (uint32) dp_get_int32(p) + 5;
		default:
			return -1;
	}
}

/*
 * The next field.  Returns false at the end, also at the end of the fetched bytes: then an
 * incomplete container may come last.
 */
static inline bool
fields_next(FieldWalk *walk, DpElement *element)
{
	int64 size;

	if (likely(walk->limit > walk->end))
	{
		DpIter iter = { walk->next, walk->end };

		if (!dp_iter_next(&iter, element))
			return false;
		walk->next = iter.next;
		return true;
	}

	if (walk->next >= walk->limit)
		return false;
	element->value.type = *walk->next;
	element->name = (const char *) walk->next + 1;
	element->value.data = memchr(element->name, 0, walk->limit - walk->next - 1);
	if (element->value.data == NULL)
		return false;
	element->namelen = (const char *) element->value.data - element->name;
	element->value.data++;
	size = cut_size(element->value.type, element->value.data, walk->limit);
	if (size < 0)
		return false;
	if (size > walk->end - element->value.data)
		dp_corrupted("a value reaches beyond the end of the document");
	element->value.len = size;
	walk->next = element->value.data + size;
	if (walk->next <= walk->limit)
	{
		(void) dp_value_size(element->value.type, element->value.data, walk->next);
		return true;
	}
	return dp_type_is_container(element->value.type);
}

/* ---------------------------------------------------------------- nodes */

DpPathTree *
dp_path_tree_create(int max)
{
	DpPathTree *tree = palloc0(sizeof(DpPathTree));

	tree->context = CurrentMemoryContext;
	tree->nodes =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns paths", ALLOCSET_DEFAULT_SIZES);
	tree->table = pathtable_create(tree->context, 256, NULL);
	tree->max = max;
	tree->room = 256;
	tree->touched = palloc(tree->room * sizeof(DpPathNode *));
	tree->root = MemoryContextAllocZero(tree->nodes, sizeof(DpPathNode));
	return tree;
}

/*
 * The node of a field; made when it is new, unless items are being collected
 * or its path is too long: then NULL.
 */
static DpPathNode *
node_child(DpPathTree *tree, DpPathNode *at, const DpElement *field)
{
	DpPathNode probe;
	DpPathNode *node;
	PathEntry *entry;
	bool found;
	char *name;

	probe.parent = at;
	probe.name = field->name;
	probe.namelen = field->namelen;
	if (tree->collecting)
	{
		entry = pathtable_lookup(tree->table, &probe);
		return entry != NULL ? entry->node : NULL;
	}
	if (at->pathlen + field->namelen + 1 > PATH_MAX_BYTES)
	{
		tree->forgotten = true;
		return NULL;
	}
	entry = pathtable_insert(tree->table, &probe, &found);
	if (found)
		return entry->node;

	node = MemoryContextAllocZero(tree->nodes, sizeof(DpPathNode) + field->namelen + 1);
	name = (char *) (node + 1);
	memcpy(name, field->name, field->namelen + 1);
	node->parent = at;
	node->name = name;
	node->namelen = field->namelen;
	node->pathlen = at->pathlen + field->namelen + 1;
	node->order = tree->counter++;
	entry->node = node;
	return node;
}

/*
 * The node gets its first value of this document.
 */
static void
node_touch(DpPathTree *tree, DpPathNode *node)
{
	node->seen = tree->documents;
	node->now_values = 0;
	node->now_documents = 0;
	node->now_others = 0;
	node->now_items = 0;
	node->now_types = 0;
	if (tree->ntouched == tree->room)
	{
		tree->room *= 2;
		tree->touched = repalloc_huge(tree->touched, tree->room * sizeof(DpPathNode *));
	}
	tree->touched[tree->ntouched++] = node;
}

/* ---------------------------------------------------------------- walking */

void
dp_path_tree_count(DpPathTree *tree, const DpSampleDocument *document)
{
	DpValue value = { document->data, document->size, DP_TYPE_DOCUMENT };

	if (tree->table->members > tree->max)
		forget_rare(tree);
	tree->collecting = false;
	tree->documents++;
	tree->ntouched = 0;
	tree->root->now_documents = 1;
	walk_fields(tree, tree->root, &value, document->data + document->avail, true);
	finish_document(tree);
}

void
dp_path_tree_collect(DpPathTree *tree, const DpSampleDocument *document, int32 number)
{
	DpValue value = { document->data, document->size, DP_TYPE_DOCUMENT };

	tree->collecting = true;
	tree->number = number;
	walk_fields(tree, tree->root, &value, document->data + document->avail, true);
}

/*
 * The fields of a document at a node.  direct: no array was entered on the way.
 */
static void
walk_fields(DpPathTree *tree, DpPathNode *at, const DpValue *container, const uint8 *limit,
			bool direct)
{
	uint64 number = ++tree->containers;
	DpPathNode *previous = NULL;
	FieldWalk walk;
	DpElement field;

	check_stack_depth();
	fields_init(&walk, container, limit);
	while (fields_next(&walk, &field))
	{
		DpPathNode *node = previous != NULL ? previous->next : NULL;

		if (node == NULL || node->namelen != field.namelen ||
			memcmp(node->name, field.name, field.namelen) != 0)
		{
			node = node_child(tree, at, &field);
			if (node == NULL)
				continue;
			if (previous != NULL)
				previous->next = node;
		}
		previous = node;

		/* of fields with the same name the first one counts */
		if (node->container == number)
			continue;
		node->container = number;
		walk_value(tree, node, &field.value, limit, direct);
	}
}

/*
 * A value at a node.
 */
static void
walk_value(DpPathTree *tree, DpPathNode *at, const DpValue *value, const uint8 *limit, bool direct)
{
	int type = dp_stats_type_number(value->type);

	if (tree->collecting)
	{
		if (value->type == DP_TYPE_DOCUMENT)
			walk_fields(tree, at, value, limit, direct);
		else if (value->type == DP_TYPE_ARRAY)
			walk_array(tree, at, value, limit);
		else if (at->sample != NULL)
			collect_item(tree, at, value, limit);
		return;
	}

	if (at->seen != tree->documents)
		node_touch(tree, at);
	at->now_values++;
	at->now_types |= 1U << type;
	if (direct)
	{
		at->direct++;
		at->direct_types[type]++;
		at->bytes += value->len;
		at->largest = Max(at->largest, value->len);
	}
	switch (value->type)
	{
		case DP_TYPE_DOCUMENT:
			at->now_documents++;
			walk_fields(tree, at, value, limit, direct);
			break;
		case DP_TYPE_ARRAY:
			walk_array(tree, at, value, limit);
			break;
		case DP_TYPE_NULL:
		case DP_TYPE_UNDEFINED:
			at->now_others++;
			break;
		default:
			at->now_others++;
			at->now_items++;
			if (direct)
				at->scalar++;
			break;
	}
}

/*
 * The elements of an array at a node.
 */
static void
walk_array(DpPathTree *tree, DpPathNode *at, const DpValue *array, const uint8 *limit)
{
	FieldWalk walk;
	DpElement element;
	int32 length = 0;

	fields_init(&walk, array, limit);
	while (fields_next(&walk, &element))
	{
		length++;
		if (!tree->collecting)
			at->now_types |= 1U << dp_stats_type_number(element.value.type);
		switch (element.value.type)
		{
			case DP_TYPE_DOCUMENT:
				if (!tree->collecting)
					at->now_documents++;
				walk_fields(tree, at, &element.value, limit, false);
				break;
			case DP_TYPE_ARRAY:
			case DP_TYPE_NULL:
			case DP_TYPE_UNDEFINED:
				break;
			default:
				if (!tree->collecting)
					at->now_items++;
				else if (at->sample != NULL)
					collect_item(tree, at, &element.value, limit);
				break;
		}
	}
	if (!tree->collecting)
	{
		at->narrays++;
		at->elements += length;
	}
	else if (at->sample != NULL)
		collect_length(tree, at, length);
}

/*
 * Collects an item if it is complete and there is room for it.  The items of a document are dropped
 * again if there is not enough room for all.
 */
static void
collect_item(DpPathTree *tree, DpPathNode *at, const DpValue *value, const uint8 *limit)
{
	DpSamplePath *sample = at->sample;
	DpSampleItem *item;

	if (sample->full || value->type == DP_TYPE_NULL || value->type == DP_TYPE_UNDEFINED)
		return;
	if (sample->nitems == sample->room)
	{
		sample->full = true;
		sample->last = tree->number - 1;
		while (sample->nitems > 0 && sample->items[sample->nitems - 1].document == tree->number)
			sample->nitems--;
		return;
	}
	item = &sample->items[sample->nitems++];
	item->data = value->data;
	item->len = value->len;
	item->type = value->type;
	item->document = tree->number;
}

static void
collect_length(DpPathTree *tree, DpPathNode *at, int32 length)
{
	DpSamplePath *sample = at->sample;

	if (sample->nlengths < sample->lengths_room)
		sample->lengths[sample->nlengths++] = length;
}

/*
 * Adds what the document has at each path to the totals.
 */
static void
finish_document(DpPathTree *tree)
{
	for (int i = 0; i < tree->ntouched; i++)
	{
		DpPathNode *node = tree->touched[i];
		const DpPathNode *parent = node->parent;
		bool has_array = (node->now_types & (1U << DP_TYPE_ARRAY)) != 0;

		node->now_missing =
			parent != tree->root && (parent->now_missing || parent->now_others > 0 ||
									 node->now_values < parent->now_documents);
		node->reached++;
		if (node->now_missing ||
			(node->now_types & (1U << DP_TYPE_NULL | 1U << DP_TYPE_UNDEFINED)) != 0)
			node->nullish++;
		else if (node->now_documents == 0 && node->now_others == 0)
			node->barren++;
		if (has_array)
			node->arrays++;
		if (node->now_items > 0)
			node->item_docs++;
		if (node->now_items > 1)
			node->multiple = true;
		node->values += node->now_values;
		node->documents += node->now_documents;
		node->items += node->now_items;
		for (uint32 types = node->now_types; types != 0; types &= types - 1)
			node->types[pg_rightmost_one_pos32(types)]++;
	}
}

/*
 * Forgets the paths that the fewest documents have, the newest first, until half of the room is
 * free. Paths below a forgotten path are forgotten too: they have at most as many documents, and
 * are newer.
 */
static void
forget_rare(DpPathTree *tree)
{
	DpPathNode **nodes;
	bool complete;
	int n = dp_path_tree_nodes(tree, &nodes, &complete);
	int kept = tree->max / 2;
	bool found;

	pathtable_reset(tree->table);
	for (int i = 0; i < n; i++)
	{
		nodes[i]->next = NULL;
		if (i < kept)
			(void) pathtable_insert(tree->table, nodes[i], &found);
	}
	for (int i = kept; i < n; i++)
		pfree(nodes[i]);
	pfree(nodes);
	tree->forgotten = true;
}

/* ---------------------------------------------------------------- results */

static int
compare_nodes(const void *a, const void *b)
{
	const DpPathNode *x = *(DpPathNode *const *) a;
	const DpPathNode *y = *(DpPathNode *const *) b;

	if (x->reached != y->reached)
		return x->reached > y->reached ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

int
dp_path_tree_nodes(DpPathTree *tree, DpPathNode ***nodes, bool *complete)
{
	pathtable_iterator iter;
	PathEntry *entry;
	int n = 0;

	*nodes = palloc(Max(tree->table->members, 1) * sizeof(DpPathNode *));
	pathtable_start_iterate(tree->table, &iter);
	while ((entry = pathtable_iterate(tree->table, &iter)) != NULL)
		(*nodes)[n++] = entry->node;
	qsort(*nodes, n, sizeof(DpPathNode *), compare_nodes);
	*complete = !tree->forgotten;
	return n;
}

void
dp_path_node_names(const DpPathNode *node, DpPathStats *path)
{
	const char *names[PATH_MAX_BYTES];
	uint32 lens[PATH_MAX_BYTES];
	int first = PATH_MAX_BYTES;
	DpPath *parsed;
	StringInfoData text;

	for (; node->parent != NULL; node = node->parent)
	{
		names[--first] = node->name;
		lens[first] = node->namelen;
	}
	parsed = dp_path_of_names(PATH_MAX_BYTES - first, names + first, lens + first);
	initStringInfo(&text);
	dp_path_to_text(&text, parsed);
	pfree(parsed);
	path->text = text.data;
	path->textlen = text.len;
}
