/*
 * graph.c
 *		graph_lookup() and graph_shortest_path(): breadth-first walks through linked documents.
 *
 * Each node is searched once, when it is first reached, so cycles end and each node is found on a
 * shortest path.  Null and undefined connect nothing.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/nodeHash.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/collation.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "types/tree/graph.h"

/* Nodes of a level */
typedef struct NodeList
{
	DpGraphNode **nodes;
	int n;
	int max;
} NodeList;

/* A walk */
typedef struct Walk
{
	DpGraph *g;
	int64 max_depth; /* of documents */
	int64 depth;     /* of the nodes that are searched */
	NodeList level;
	NodeList next;
	/* graph_lookup */
	ReturnSetInfo *result;
	DpPath *depth_field;
	/* graph_shortest_path */
	DpGraphNode *target;
	bool reached;
	/* the row that is visited */
	DpGraphNode *via;
	int nvalues;
} Walk;

/* The documents between the nodes of the path that was found */
typedef struct Steps
{
	DpGraph *g;
	DpGraphNode **nodes;
	int n;
	struct varlena **docs; /* NULL: not found yet */
	struct varlena **keys;
	int at_target; /* documents of the last node */
	/* for visits */
	struct varlena *doc;
	Datum key;
	bool key_is_null;
	const DpValue *wanted;
	bool found;
} Steps;

static DpGraph *
begin(FunctionCallInfo fcinfo, int connect_from, int restrict_to, struct varlena *collation);
static void end(DpGraph *g);
static int64 depth_argument(FunctionCallInfo fcinfo, int argno);
static struct varlena *value_argument(FunctionCallInfo fcinfo, int argno);
static void add_start(Walk *walk, struct varlena *start);
static void reach(Walk *walk, const DpValue *value, DpGraphNode *from, int depth);
static void walk_on(Walk *walk, DpGraphVisit visit);
static DpPath *path_argument(FunctionCallInfo fcinfo, int argno);

static void visit_row(DpGraph *g, struct varlena *doc, Datum key, bool key_is_null,
					  DpGraphNode *node, bool *seen, void *arg);
static bool visit_to(const DpValue *value, void *arg);
static bool visit_from(const DpValue *value, void *arg);
static void put_row(Walk *walk, struct varlena *doc, Datum key, bool key_is_null);
static void visit_step(DpGraph *g, struct varlena *doc, Datum key, bool key_is_null,
					   DpGraphNode *node, bool *seen, void *arg);
static bool visit_step_to(const DpValue *value, void *arg);
static bool visit_step_from(const DpValue *value, void *arg);
static void take_step(Steps *steps, DpGraphNode *node);

/*
 * graph_lookup(rel regclass, start anycompatible, connect_from text, connect_to text,
 * max_depth int, restrict bson, depth_field text, collation bson) -> (node bson_value, depth int,
 * path bson_value[], key bson_value, doc bson)
 */
DP_FUNCTION(dp_graph_lookup);
Datum
dp_graph_lookup(PG_FUNCTION_ARGS)
{
	Walk walk = { 0 };
	struct varlena *start;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	walk.result = (ReturnSetInfo *) fcinfo->resultinfo;
	walk.max_depth = depth_argument(fcinfo, 4);
	if (!PG_ARGISNULL(6))
		walk.depth_field = path_argument(fcinfo, 6);
	walk.g = begin(fcinfo, 2, 5, PG_ARGISNULL(7) ? NULL : DP_GETARG_VARLENA(7));
	start = value_argument(fcinfo, 1);
	if (start != NULL)
		add_start(&walk, start);
	if (walk.level.n > 0)
		walk_on(&walk, visit_row);
	end(walk.g);
	return (Datum) 0;
}

/*
 * graph_shortest_path(rel regclass, start anycompatible, target "any", connect_from
 * text, connect_to text, max_depth int, restrict bson) -> (step int, node
 * bson_value, key bson_value, doc bson)
 */
DP_FUNCTION(dp_graph_shortest_path);
Datum
dp_graph_shortest_path(PG_FUNCTION_ARGS)
{
	Walk walk = { 0 };
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	struct varlena *start;
	struct varlena *target;
	Steps steps = { 0 };

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	walk.max_depth = depth_argument(fcinfo, 5);
	/* nodes are one level deeper than the documents that link to them */
	if (walk.max_depth < PG_INT32_MAX)
		walk.max_depth--;
	walk.g = begin(fcinfo, 3, 6, NULL);
	start = value_argument(fcinfo, 1);
	target = value_argument(fcinfo, 2);
	if (start == NULL || target == NULL)
	{
		end(walk.g);
		return (Datum) 0;
	}
	add_start(&walk, start);
	for (int i = 0; i < walk.level.n && walk.target == NULL; i++)
	{
		DpValue known = dp_value_of_varlena(DP_GRAPH_NODE_VALUE(walk.level.nodes[i]));
		DpValue wanted = dp_value_of_varlena(target);

		if (dp_value_compare(&known, &wanted) == 0)
		{
			walk.target = walk.level.nodes[i];
			walk.reached = true;
		}
	}
	if (walk.level.n > 0)
	{
		DpValue wanted = dp_value_of_varlena(target);

		dp_graph_open(walk.g, walk.level.nodes, walk.level.n);
		walk.target = dp_graph_node(walk.g, &wanted, dp_graph_connects(&wanted));
		if (!walk.reached && walk.target != NULL)
			walk_on(&walk, visit_row);
	}
	if (walk.reached)
	{
		steps.g = walk.g;
		steps.n = walk.target->depth + 1;
		steps.nodes = palloc(sizeof(DpGraphNode *) * steps.n);
		steps.docs = palloc0(sizeof(struct varlena *) * steps.n);
		steps.keys = palloc0(sizeof(struct varlena *) * steps.n);
		for (DpGraphNode *node = walk.target; node != NULL; node = node->from)
			steps.nodes[node->depth] = node;
		dp_graph_find(walk.g, steps.nodes, steps.n, visit_step, &steps);
	}
	for (int i = 0; i < steps.n; i++)
	{
		Datum values[4];
		bool nulls[4] = { false };

		/* the documents of the target lead on, unless there is one only */
		if (i == steps.n - 1 && steps.at_target != 1)
			steps.docs[i] = steps.keys[i] = NULL;
		values[0] = Int32GetDatum(i);
		values[1] = PointerGetDatum(DP_GRAPH_NODE_VALUE(steps.nodes[i]));
		values[2] = PointerGetDatum(steps.keys[i]);
		nulls[2] = steps.keys[i] == NULL;
		values[3] = PointerGetDatum(steps.docs[i]);
		nulls[3] = steps.docs[i] == NULL;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	end(walk.g);
	return (Datum) 0;
}

/* ---------------------------------------------------------------- arguments */

/* A filter that is compiled by the collation */
typedef struct Restriction
{
	DpValue spec;
	DpFilter *filter;
} Restriction;

static void
compile_restriction(void *arg)
{
	Restriction *r = arg;

	r->filter = dp_filter_compile(&r->spec, DP_FILTER_DOCUMENT, NULL);
}

/*
 * Begins a walk: reads the arguments rel, connect_from and connect_to, which
 * follow each other, and restrict, and connects to SPI.
 */
static DpGraph *
begin(FunctionCallInfo fcinfo, int connect_from, int restrict_to, struct varlena *collation)
{
	DpGraph *g = palloc0(sizeof(DpGraph));
	DpValue by;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the relation must not be null")));
	g->relid = PG_GETARG_OID(0);
	g->connect_from = path_argument(fcinfo, connect_from);
	g->connect_to = path_argument(fcinfo, connect_from + 1);
	if (collation != NULL)
	{
		by = dp_value_of_document(collation);
		if (dp_collation_get(&by) != NULL)
			g->collation = memcpy(palloc(sizeof(DpValue)), &by, sizeof(DpValue));
	}
	if (!PG_ARGISNULL(restrict_to))
	{
		Restriction r = { .spec = dp_value_of_document(DP_GETARG_VARLENA(restrict_to)) };

		dp_collated(g->collation, compile_restriction, &r);
		g->restricted = r.filter;
	}
	g->limit = get_hash_memory_limit();
	g->context =
		AllocSetContextCreate(CurrentMemoryContext, "nodes of a graph", ALLOCSET_DEFAULT_SIZES);
	g->row_context =
		AllocSetContextCreate(CurrentMemoryContext, "row of a graph", ALLOCSET_DEFAULT_SIZES);
	SPI_connect();
	return g;
}

static void
end(DpGraph *g)
{
	if (g->file != NULL)
		BufFileClose(g->file);
	SPI_finish();
	MemoryContextDelete(g->row_context);
	MemoryContextDelete(g->context);
}

static DpPath *
path_argument(FunctionCallInfo fcinfo, int argno)
{
	text *path;

	if (PG_ARGISNULL(argno))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("connect_from and connect_to must not be null")));
	path = PG_GETARG_TEXT_PP(argno);
	return dp_path_parse(VARDATA_ANY(path), VARSIZE_ANY_EXHDR(path));
}

/* The depth limit: max_depth, or the greatest depth that can be counted. */
static int64
depth_argument(FunctionCallInfo fcinfo, int argno)
{
	if (PG_ARGISNULL(argno))
		return PG_INT32_MAX;
	if (PG_GETARG_INT32(argno) < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("max_depth must not be negative")));
	return PG_GETARG_INT32(argno);
}

/* An argument of any type as a bson_value.  NULL for NULL. */
static struct varlena *
value_argument(FunctionCallInfo fcinfo, int argno)
{
	Oid type = get_fn_expr_argtype(fcinfo->flinfo, argno);

	if (PG_ARGISNULL(argno))
		return NULL;
	return dp_datum_to_value(PG_GETARG_DATUM(argno), type);
}

/* ---------------------------------------------------------------- the walk */

/* The nodes where the walk begins: the value, or the elements of an array. */
static void
add_start(Walk *walk, struct varlena *start)
{
	DpValue value = dp_value_of_varlena(start);
	DpIter iter;
	DpValue element;

	if (value.type == DP_TYPE_ARRAY)
	{
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &element))
			reach(walk, &element, NULL, 0);
	}
	else
		reach(walk, &value, NULL, 0);
	walk->level = walk->next;
	memset(&walk->next, 0, sizeof(NodeList));
}

/* Notes that a node was reached, unless it was reached before. */
static void
reach(Walk *walk, const DpValue *value, DpGraphNode *from, int depth)
{
	NodeList *next = &walk->next;
	DpGraphNode *node;

	if (!dp_graph_connects(value))
		return;
	node = dp_graph_node(walk->g, value, true);
	if (node->depth >= 0)
		return;
	node->depth = depth;
	node->from = from;
	walk->reached |= node == walk->target;
	if (next->n == next->max)
	{
		int max = Max(64, next->max * 2);

		dp_graph_account(walk->g, sizeof(DpGraphNode *) * (max - next->max));
		next->nodes = next->nodes == NULL ? MemoryContextAlloc(GetMemoryChunkContext(walk->g),
															   sizeof(DpGraphNode *) * max)
										  : repalloc_huge(next->nodes, sizeof(DpGraphNode *) * max);
		next->max = max;
	}
	next->nodes[next->n++] = node;
}

/* Looks nodes up, level by level. */
static void
walk_on(Walk *walk, DpGraphVisit visit)
{
	if (walk->g->plan == NULL)
		dp_graph_open(walk->g, walk->level.nodes, walk->level.n);
	while (walk->level.n > 0 && walk->depth <= walk->max_depth && !walk->reached)
	{
		NodeList done = walk->level;

		dp_graph_find(walk->g, walk->level.nodes, walk->level.n, visit, walk);
		walk->level = walk->next;
		done.n = 0;
		walk->next = done;
		walk->depth++;
	}
}

/*
 * DpGraphVisit: returns the row, if it has a node of this level and was not visited before, and
 * reaches the nodes to which it links.
 */
static void
visit_row(DpGraph *g, struct varlena *doc, Datum key, bool key_is_null, DpGraphNode *node,
		  bool *seen, void *arg)
{
	Walk *walk = arg;
	DpValue whole = dp_value_of_document(doc);

	if (walk->reached)
		return;
	walk->via = node;
	if (node != NULL)
	{
		if (*seen)
			return;
		*seen = true;
	}
	else
	{
		if (!dp_graph_admits(g, &whole))
			return;
		walk->nvalues = 0;
		dp_path_each(whole.data, whole.len, g->connect_to, visit_to, walk);
		/* a row with one value is found through that value only */
		if (walk->via == NULL || (walk->nvalues > 1 && dp_graph_met(g)))
			return;
	}
	if (walk->result != NULL)
		put_row(walk, doc, key, key_is_null);
	/* graph_lookup does not need the last nodes */
	if (walk->result == NULL || walk->depth < walk->max_depth)
		dp_path_each(whole.data, whole.len, g->connect_from, visit_from, walk);
}

/* DpPathVisit: searches a node of this level among the values at connect_to. */
static bool
visit_to(const DpValue *value, void *arg)
{
	Walk *walk = arg;

	walk->nvalues++;
	if (walk->via == NULL && dp_graph_connects(value))
	{
		DpGraphNode *node = dp_graph_node(walk->g, value, false);

		if (node != NULL && node->depth == walk->depth)
			walk->via = node;
	}
	return true;
}

/* DpPathVisit: reaches a value at connect_from. */
static bool
visit_from(const DpValue *value, void *arg)
{
	Walk *walk = arg;

	reach(walk, value, walk->via, walk->depth + 1);
	return true;
}

/* Returns a row of graph_lookup(). */
static void
put_row(Walk *walk, struct varlena *doc, Datum key, bool key_is_null)
{
	Datum values[5];
	bool nulls[5] = { false };
	int n = walk->depth + 1;
	Datum *path = palloc(sizeof(Datum) * n);

	for (DpGraphNode *node = walk->via; node != NULL; node = node->from)
		path[node->depth] = PointerGetDatum(DP_GRAPH_NODE_VALUE(node));
	if (walk->depth_field != NULL)
	{
		uint8 bytes[8];
		DpValue depth = { bytes, sizeof(bytes), DP_TYPE_INT64 };

		dp_put_int64(bytes, walk->depth);
		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), walk->depth_field, &depth);
	}
	values[0] = path[n - 1];
	values[1] = Int32GetDatum((int32) walk->depth);
	values[2] =
		PointerGetDatum(construct_array(path, n, dp_types()->bson_value, -1, false, TYPALIGN_INT));
	values[3] = key;
	nulls[3] = key_is_null;
	values[4] = PointerGetDatum(doc);
	tuplestore_putvalues(walk->result->setResult, walk->result->setDesc, values, nulls);
}

/* ---------------------------------------------------------------- the documents of a path */

/*
 * DpGraphVisit: takes the row if it leads from a node of the path to the next,
 * or hangs on the last.
 */
static void
visit_step(DpGraph *g, struct varlena *doc, Datum key, bool key_is_null, DpGraphNode *node,
		   bool *seen, void *arg)
{
	Steps *steps = arg;
	DpValue whole = dp_value_of_document(doc);

	if (node == NULL && !dp_graph_admits(g, &whole))
		return;
	steps->doc = doc;
	steps->key = key;
	steps->key_is_null = key_is_null;
	if (node != NULL)
		take_step(steps, node);
	else
		dp_path_each(whole.data, whole.len, g->connect_to, visit_step_to, steps);
}

/* DpPathVisit: for values at connect_to. */
static bool
visit_step_to(const DpValue *value, void *arg)
{
	Steps *steps = arg;
	DpGraphNode *node = dp_graph_connects(value) ? dp_graph_node(steps->g, value, false) : NULL;

	if (node != NULL && node->depth >= 0 && node->depth < steps->n &&
		steps->nodes[node->depth] == node)
		take_step(steps, node);
	return true;
}

/* DpPathVisit: for values at connect_from. */
static bool
visit_step_from(const DpValue *value, void *arg)
{
	Steps *steps = arg;

	steps->found |= dp_value_compare(value, steps->wanted) == 0;
	return !steps->found;
}

/* Takes the row for a node of the path if it links to the next, and there is none yet. */
static void
take_step(Steps *steps, DpGraphNode *node)
{
	int i = node->depth;
	MemoryContext old;

	if (i < steps->n - 1)
	{
		DpValue next = dp_value_of_varlena(DP_GRAPH_NODE_VALUE(steps->nodes[i + 1]));

		steps->wanted = &next;
		steps->found = false;
		if (steps->docs[i] == NULL)
			dp_path_each(DP_DOC_DATA(steps->doc), DP_DOC_SIZE(steps->doc), steps->g->connect_from,
						 visit_step_from, steps);
		if (!steps->found)
			return;
	}
	else if (steps->at_target++ > 0)
		return;
	old = MemoryContextSwitchTo(steps->g->context);
	steps->docs[i] = dp_document_to_varlena(DP_DOC_DATA(steps->doc), DP_DOC_SIZE(steps->doc));
	if (!steps->key_is_null)
	{
		DpValue key = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(steps->key));

		steps->keys[i] = dp_value_to_varlena(&key);
	}
	MemoryContextSwitchTo(old);
}
