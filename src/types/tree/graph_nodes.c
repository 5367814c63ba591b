/*
 * graph_nodes.c
 *		The nodes that a walk through a graph knows: a hash table of values, and
 *		the memory that it may take.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/memutils.h"

#include "bson/collation.h"
#include "bson/compare.h"
#include "mql/sort_key.h"
#include "types/tree/graph.h"

#define ROOM_SIZE (32 * 1024)

static void compute_admitted(void *arg);
static void compute_node(void *arg);
static DpGraphNode *find_node(DpGraph *g, const DpValue *value, bool make);
static void grow(DpGraph *g);

void
dp_graph_account(DpGraph *g, Size size)
{
	g->used += size;
	if (g->used > g->limit)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("graph has more nodes than work_mem allows"),
				 errdetail("%u nodes were found, in %zu kB.", g->nnodes, g->used / 1024),
				 errhint("Increase work_mem, or limit the search with max_depth or restrict.")));
}

void *
dp_graph_alloc(DpGraph *g, Size size)
{
	char *result;

	size = MAXALIGN(size);
	dp_graph_account(g, size);
	if (size > ROOM_SIZE / 8)
		return MemoryContextAllocHuge(g->context, size);
	if (size > g->room_left)
	{
		g->room = MemoryContextAlloc(g->context, ROOM_SIZE);
		g->room_left = ROOM_SIZE;
	}
	result = g->room;
	g->room += size;
	g->room_left -= size;
	return result;
}

bool
dp_graph_connects(const DpValue *value)
{
	return value->type != DP_TYPE_NULL && value->type != DP_TYPE_UNDEFINED;
}

/* What is computed by the collation: the node of a value, or whether a document is admitted */
typedef struct Computed
{
	DpGraph *g;
	const DpValue *value;
	bool make;
	DpGraphNode *node;
	bool admitted;
} Computed;

DpGraphNode *
dp_graph_node(DpGraph *g, const DpValue *value, bool make)
{
	Computed c = { .g = g, .value = value, .make = make };

	dp_collated(g->collation, compute_node, &c);
	return c.node;
}

bool
dp_graph_admits(DpGraph *g, const DpValue *doc)
{
	Computed c = { .g = g, .value = doc, .admitted = true };

	if (g->restricted != NULL)
		dp_collated(g->collation, compute_admitted, &c);
	return c.admitted;
}

static void
compute_admitted(void *arg)
{
	Computed *c = arg;

	c->admitted = dp_filter_match(c->g->restricted, c->value);
}

static void
compute_node(void *arg)
{
	Computed *c = arg;

	c->node = find_node(c->g, c->value, c->make);
}

/* Equal values have the same. */
static uint32
hash_of(const DpValue *value)
{
	StringInfoData key;
	uint32 hash;

	if (dp_collation == NULL)
		return (uint32) dp_value_hash(value, 0);
	initStringInfo(&key);
	dp_sort_key_append_value(&key, value, false);
	hash = hash_bytes((unsigned char *) key.data, key.len);
	pfree(key.data);
	return hash;
}

static DpGraphNode *
find_node(DpGraph *g, const DpValue *value, bool make)
{
	uint32 hash = hash_of(value);
	uint32 i;
	DpGraphNode *node;

	if (make && g->nnodes >= g->slots / 4 * 3)
		grow(g);
	if (g->slots == 0)
		return NULL;
	for (i = hash & (g->slots - 1); g->table[i].node != NULL; i = (i + 1) & (g->slots - 1))
		if (g->table[i].hash == hash)
		{
			DpValue known = dp_value_of_varlena(DP_GRAPH_NODE_VALUE(g->table[i].node));

			if (dp_value_compare(&known, value) == 0)
				return g->table[i].node;
		}
	if (!make)
		return NULL;

	node = dp_graph_alloc(g, offsetof(DpGraphNode, value) + VARHDRSZ + 1 + value->len);
	node->from = NULL;
	node->links = NULL;
	node->depth = -1;
	SET_VARSIZE(node->value, VARHDRSZ + 1 + value->len);
	node->value[VARHDRSZ] = (char) value->type;
	memcpy(node->value + VARHDRSZ + 1, value->data, value->len);
	g->table[i].node = node;
	g->table[i].hash = hash;
	g->nnodes++;
	return node;
}

/* Makes the hash table twice as large. */
static void
grow(DpGraph *g)
{
	DpGraphSlot *old = g->table;
	uint32 old_slots = g->slots;
	uint32 slots = old_slots == 0 ? 256 : old_slots * 2;

	dp_graph_account(g, sizeof(DpGraphSlot) * (slots - old_slots));
	g->table = MemoryContextAllocExtended(g->context, sizeof(DpGraphSlot) * slots,
										  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	g->slots = slots;
	for (uint32 k = 0; k < old_slots; k++)
	{
		uint32 i = old[k].hash & (slots - 1);

		if (old[k].node == NULL)
			continue;
		while (g->table[i].node != NULL)
			i = (i + 1) & (slots - 1);
		g->table[i] = old[k];
	}
	if (old != NULL)
		pfree(old);
}

bool
dp_graph_met(DpGraph *g)
{
	bool found;

	if (g->seen == NULL)
	{
		HASHCTL control = { 0 };

		control.keysize = sizeof(g->rowid);
		control.entrysize = sizeof(g->rowid);
		control.hcxt = g->context;
		g->seen =
			hash_create("rows of a graph", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	(void) hash_search(g->seen, g->rowid, HASH_ENTER, &found);
	if (!found)
		dp_graph_account(g, sizeof(g->rowid) + 3 * sizeof(void *));
	return found;
}
