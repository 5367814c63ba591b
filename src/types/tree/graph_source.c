/*
 * graph_source.c
 *		The rows of a walk through a graph.
 *
 * If an index can be used for connect_to, the nodes of a level are searched in batches: one
 * statement with an array of values.  A btree of (doc -> connect_to) contains arrays as values,
 * which such a statement does not find; rows with arrays are read first and hashed.  Without an
 * index the relation is read once and hashed by the values at connect_to; documents that do not fit
 * into memory go to a temporary file.  If not even the values fit, the relation is read once for
 * each level of the search.
 *
 * All statements run as the caller and use the snapshot of the calling statement.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "commands/tablespace.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/plannodes.h"
#include "tcop/dest.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/text.h"
#include "mql/collection_calls.h"
#include "types/tree/graph.h"

/* Nodes that one statement searches */
#define BATCH 4000

/* Nodes in the statement with which the planner decides about an index */
#define SAMPLE 10
#define SAMPLE_BYTES 1024 /* larger values are not written into the text of a query */

struct DpGraphRow
{
	bool seen;
	bool in_file;
	uint32 keysize; /* 0: no key */
	uint32 docsize;
	int fileno;
	int64 offset;
	char data[FLEXIBLE_ARRAY_MEMBER]; /* key and document, each aligned, unless in_file */
};

/* Gets the rows of a statement, one by one */
typedef struct Receiver
{
	DestReceiver pub;
	DpGraph *g;
	DpGraphVisit visit;
	void *arg;
} Receiver;

/* For the values at connect_to of a row that is hashed */
typedef struct Hashing
{
	DpGraph *g;
	struct varlena *key;
	struct varlena *doc;
	DpGraphRow *row; /* the copy, when there is one */
	bool overflow;
} Hashing;

static SPIPlanPtr prepare(const char *sql, Oid argtype, int options);
static bool uses_index(SPIPlanPtr plan);
static bool plan_has_index(Plan *plan);
static bool list_has_index(List *plans);
static bool load(DpGraph *g, SPIPlanPtr plan);
static void load_row(DpGraph *g, struct varlena *doc, Datum key, bool key_is_null,
					 DpGraphNode *node, bool *seen, void *arg);
static bool load_value(const DpValue *value, void *arg);
static DpGraphRow *keep_row(DpGraph *g, struct varlena *key, struct varlena *doc);
static void start_again(DpGraph *g, DpGraphNode **start, int nstart);
static void find_linked(DpGraph *g, DpGraphNode *node, DpGraphVisit visit, void *arg);
static void
run(DpGraph *g, SPIPlanPtr plan, Oid argtype, Datum arg, DpGraphVisit visit, void *visit_arg);
static void receiver_starts(DestReceiver *self, int operation, TupleDesc desc);
static void receiver_ends(DestReceiver *self);
static bool receive(TupleTableSlot *slot, DestReceiver *self);
static Datum values_of(DpGraphNode **nodes, int n);
static struct varlena *filter_of(DpGraph *g, DpGraphNode **nodes, int n);
static char *field_of(const DpPath *path);

void
dp_graph_open(DpGraph *g, DpGraphNode **start, int nstart)
{
	DpDocLookup lookup;
	StringInfoData sql;
	const char *schema = quote_identifier(get_namespace_name(dp_types()->schema));

	dp_collection_lookup(g->relid, g->connect_to, &lookup);
	g->is_table = lookup.is_table;
	g->field = field_of(g->connect_to);

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT %s, %s, %s", lookup.doc,
					 lookup.key ? lookup.key : psprintf("NULL::%s.bson_value", schema),
					 lookup.is_table ? "t.tableoid, t.ctid"
									 : "NULL::pg_catalog.oid, NULL::pg_catalog.tid");
	appendStringInfo(&sql, " FROM %s WHERE ", lookup.source);

	/* indexes compare bytes */
	if (lookup.expr != NULL && g->collation == NULL)
	{
		g->plan = prepare(psprintf("%s%s", sql.data, dp_doc_lookup_in(&lookup, "$1")),
						  dp_types()->bson_value_array, CURSOR_OPT_GENERIC_PLAN);
		if (uses_index(g->plan))
		{
			g->access = DP_GRAPH_BY_VALUE;
			if (!lookup.arrays)
				return;
			/* from the smallest array to what comes after all of them: no bytes */
			g->has_arrays = true;
			if (load(
					g,
					prepare(
						psprintf(
							"%s%s OPERATOR(%s.>=) '[]'::%s.bson_value AND "
							"%s OPERATOR(%s.<) '{\"$binary\": {\"base64\": \"\", \"subType\": \"00\"}}'::%s.bson_value%s",
							sql.data, lookup.expr, schema, schema, lookup.expr, schema, schema,
							lookup.deep ? psprintf(" OR %s IS NULL", lookup.expr) : ""),
						InvalidOid, 0)))
				return;
			start_again(g, start, nstart);
			g->has_arrays = false;
		}
	}
	if (g->field != NULL && g->collation == NULL)
	{
		DpGraphNode *sample[SAMPLE];
		int n = 0;
		DpValue filter;
		StringInfoData text;

		for (int i = 0; i < nstart && n < SAMPLE; i++)
		{
			if (VARSIZE(DP_GRAPH_NODE_VALUE(start[i])) <= SAMPLE_BYTES)
				sample[n++] = start[i];
		}
		filter = dp_value_of_document(filter_of(g, sample, n));

		initStringInfo(&text);
		dp_value_to_text(&text, &filter, DP_TEXT_CANONICAL, -1);
		if (uses_index(prepare(psprintf("%s%s OPERATOR(%s.@@) %s::%s.bson", sql.data, lookup.doc,
										schema, quote_literal_cstr(text.data), schema),
							   InvalidOid, 0)))
		{
			/* planned for each batch: whether an index serves a filter is known only with it */
			g->plan = prepare(psprintf("%s%s OPERATOR(%s.@@) $1", sql.data, lookup.doc, schema),
							  dp_types()->bson, CURSOR_OPT_CUSTOM_PLAN);
			g->access = DP_GRAPH_BY_FILTER;
			return;
		}
	}
	g->plan = prepare(psprintf("%s%s IS NOT NULL", sql.data, lookup.doc), InvalidOid, 0);
	g->access = DP_GRAPH_HASHED;
	if (!load(g, g->plan))
	{
		start_again(g, start, nstart);
		g->access = DP_GRAPH_SCANNED;
	}
}

void
dp_graph_find(DpGraph *g, DpGraphNode **nodes, int n, DpGraphVisit visit, void *arg)
{
	if (g->access == DP_GRAPH_SCANNED)
	{
		run(g, g->plan, InvalidOid, (Datum) 0, visit, arg);
		return;
	}
	if (g->access == DP_GRAPH_HASHED || g->has_arrays)
		for (int i = 0; i < n; i++)
			find_linked(g, nodes[i], visit, arg);
	if (g->access == DP_GRAPH_HASHED)
		return;
	for (int i = 0; i < n; i += BATCH)
	{
		int batch = Min(n - i, BATCH);

		if (g->access == DP_GRAPH_BY_VALUE)
			run(g, g->plan, dp_types()->bson_value_array, values_of(nodes + i, batch), visit, arg);
		else
			run(g, g->plan, dp_types()->bson, PointerGetDatum(filter_of(g, nodes + i, batch)),
				visit, arg);
	}
}

/* ---------------------------------------------------------------- hashed rows */

/*
 * Reads rows into memory, linked to the nodes at connect_to.  Returns false if
 * the links alone would need too much of it.
 */
static bool
load(DpGraph *g, SPIPlanPtr plan)
{
	bool overflow = false;

	run(g, plan, InvalidOid, (Datum) 0, load_row, &overflow);
	return !overflow;
}

/* DpGraphVisit: keeps the row. */
static void
load_row(DpGraph *g, struct varlena *doc, Datum key, bool key_is_null, DpGraphNode *node,
		 bool *seen, void *arg)
{
	Hashing hashing = { .g = g, .doc = doc, .overflow = *(bool *) arg };
	DpValue whole = dp_value_of_document(doc);

	if (hashing.overflow || !dp_graph_admits(g, &whole))
		return;
	hashing.key = key_is_null ? NULL : PG_DETOAST_DATUM_PACKED(key);
	dp_path_each(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), g->connect_to, load_value, &hashing);
	*(bool *) arg = hashing.overflow;
}

/* DpPathVisit: links the row, which is kept with the first value, to the node of a value. */
static bool
load_value(const DpValue *value, void *arg)
{
	Hashing *hashing = arg;
	DpGraph *g = hashing->g;
	DpGraphNode *node;
	DpGraphLink *link;

	if (!dp_graph_connects(value))
		return true;
	/* the table of nodes may have to grow */
	if (g->used + value->len + sizeof(DpGraphSlot) * g->slots > g->limit / 4 * 3)
	{
		hashing->overflow = true;
		return false;
	}
	if (hashing->row == NULL)
		hashing->row = keep_row(g, hashing->key, hashing->doc);
	node = dp_graph_node(g, value, true);
	/* an array may have a value twice */
	if (node->links != NULL && node->links->row == hashing->row)
		return true;
	link = dp_graph_alloc(g, sizeof(DpGraphLink));
	link->row = hashing->row;
	link->next = node->links;
	node->links = link;
	return true;
}

/* A copy of the row in memory, or in the file if half of the memory is used. */
static DpGraphRow *
keep_row(DpGraph *g, struct varlena *key, struct varlena *doc)
{
	Size keysize = key ? VARSIZE_ANY(key) : 0;
	Size docsize = VARSIZE_ANY(doc);
	bool in_file = g->used + keysize + docsize > g->limit / 2;
	DpGraphRow *row =
		dp_graph_alloc(g, offsetof(DpGraphRow, data) + (in_file ? 0 : MAXALIGN(keysize) + docsize));

	row->seen = false;
	row->in_file = in_file;
	row->keysize = keysize;
	row->docsize = docsize;
	if (in_file)
	{
		off_t offset;

		if (g->file == NULL)
		{
			MemoryContext old = MemoryContextSwitchTo(g->context);

			PrepareTempTablespaces();
			g->file = BufFileCreateTemp(false);
			MemoryContextSwitchTo(old);
		}
		BufFileTell(g->file, &row->fileno, &offset);
		row->offset = offset;
		if (key != NULL)
			BufFileWrite(g->file, key, keysize);
		BufFileWrite(g->file, doc, docsize);
	}
	else
	{
		if (key != NULL)
			memcpy(row->data, key, keysize);
		memcpy(row->data + MAXALIGN(keysize), doc, docsize);
	}
	return row;
}

/*
 * Forgets everything but the nodes where the search begins, which are made
 * again.
 */
static void
start_again(DpGraph *g, DpGraphNode **start, int nstart)
{
	struct varlena **values = palloc(sizeof(struct varlena *) * Max(nstart, 1));

	for (int i = 0; i < nstart; i++)
	{
		DpValue value = dp_value_of_varlena(DP_GRAPH_NODE_VALUE(start[i]));

		values[i] = dp_value_to_varlena(&value);
	}
	if (g->file != NULL)
		BufFileClose(g->file);
	g->file = NULL;
	MemoryContextReset(g->context);
	g->table = NULL;
	g->slots = g->nnodes = 0;
	g->room_left = 0;
	g->used = 0;
	g->seen = NULL;
	for (int i = 0; i < nstart; i++)
	{
		DpValue value = dp_value_of_varlena(values[i]);

		start[i] = dp_graph_node(g, &value, true);
		start[i]->depth = 0;
	}
}

/* Visits the hashed rows that have the node at connect_to. */
static void
find_linked(DpGraph *g, DpGraphNode *node, DpGraphVisit visit, void *arg)
{
	for (DpGraphLink *link = node->links; link != NULL; link = link->next)
	{
		DpGraphRow *row = link->row;
		char *data = row->data;
		MemoryContext old = MemoryContextSwitchTo(g->row_context);

		CHECK_FOR_INTERRUPTS();
		if (row->in_file)
		{
			data = palloc(MAXALIGN(row->keysize) + row->docsize);
			if (BufFileSeek(g->file, row->fileno, row->offset, SEEK_SET) != 0 ||
				BufFileRead(g->file, data, row->keysize) != row->keysize ||
				BufFileRead(g->file, data + MAXALIGN(row->keysize), row->docsize) != row->docsize)
				ereport(ERROR, (errcode_for_file_access(),
								errmsg("could not read a document from a temporary file: %m")));
		}
		visit(g, (struct varlena *) (data + MAXALIGN(row->keysize)), PointerGetDatum(data),
			  row->keysize == 0, node, &row->seen, arg);
		MemoryContextSwitchTo(old);
		MemoryContextReset(g->row_context);
	}
}

/* ---------------------------------------------------------------- statements */

/* A prepared statement with one parameter of the type, or none. */
static SPIPlanPtr
prepare(const char *sql, Oid argtype, int options)
{
	SPIPlanPtr plan = SPI_prepare_cursor(sql, OidIsValid(argtype) ? 1 : 0, &argtype, options);

	if (plan == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", sql, SPI_result_code_string(SPI_result));
	return plan;
}

/*
 * Runs a statement and visits its rows, one by one as they come.
 */
static void
run(DpGraph *g, SPIPlanPtr plan, Oid argtype, Datum arg, DpGraphVisit visit, void *visit_arg)
{
	Receiver receiver = { .g = g, .visit = visit, .arg = visit_arg };
	SPIExecuteOptions options = { .read_only = true, .dest = &receiver.pub };
	int result;

	receiver.pub.receiveSlot = receive;
	receiver.pub.rStartup = receiver_starts;
	receiver.pub.rShutdown = receiver_ends;
	receiver.pub.rDestroy = receiver_ends;
	receiver.pub.mydest = DestNone;
	if (OidIsValid(argtype))
	{
		options.params = makeParamList(1);
		options.params->params[0].value = arg;
		options.params->params[0].isnull = false;
		options.params->params[0].pflags = PARAM_FLAG_CONST;
		options.params->params[0].ptype = argtype;
	}
	result = SPI_execute_plan_extended(plan, &options);
	if (result < 0)
		elog(ERROR, "could not read the relation of a graph: %s", SPI_result_code_string(result));
}

static void
receiver_starts(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
receiver_ends(DestReceiver *self)
{
}

/* Visits a row. */
static bool
receive(TupleTableSlot *slot, DestReceiver *self)
{
	Receiver *receiver = (Receiver *) self;
	DpGraph *g = receiver->g;
	MemoryContext old = MemoryContextSwitchTo(g->row_context);

	CHECK_FOR_INTERRUPTS();
	slot_getallattrs(slot);
	if (!slot->tts_isnull[0])
	{
		struct varlena *doc = PG_DETOAST_DATUM_PACKED(slot->tts_values[0]);

		if (g->is_table)
		{
			Oid relid = DatumGetObjectId(slot->tts_values[2]);

			memset(g->rowid, 0, sizeof(g->rowid));
			memcpy(g->rowid, &relid, sizeof(relid));
			memcpy(g->rowid + sizeof(relid), DatumGetPointer(slot->tts_values[3]),
				   sizeof(ItemPointerData));
		}
		else
			for (int i = 0; i < 2; i++)
			{
				uint64 hash = hash_bytes_extended(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), i);

				memcpy(g->rowid + i * sizeof(hash), &hash, sizeof(hash));
			}
		receiver->visit(g, doc, slot->tts_values[1], slot->tts_isnull[1], NULL, NULL,
						receiver->arg);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(g->row_context);
	return true;
}

/*
 * Whether the plan of a statement uses an index: it is planned as it will be
 * run.
 */
static bool
uses_index(SPIPlanPtr plan)
{
	CachedPlan *cached = SPI_plan_get_cached_plan(plan);
	bool result = false;
	ListCell *lc;

	if (cached == NULL)
		return false;
	foreach(lc, cached->stmt_list)
		result |= plan_has_index(lfirst_node(PlannedStmt, lc)->planTree);
	ReleaseCachedPlan(cached, NULL);
	return result;
}

static bool
plan_has_index(Plan *plan)
{
	if (plan == NULL)
		return false;
	check_stack_depth();
	switch (nodeTag(plan))
	{
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapIndexScan:
			return true;
		case T_Append:
			return list_has_index(((Append *) plan)->appendplans);
		case T_MergeAppend:
			return list_has_index(((MergeAppend *) plan)->mergeplans);
		case T_BitmapAnd:
			return list_has_index(((BitmapAnd *) plan)->bitmapplans);
		case T_BitmapOr:
			return list_has_index(((BitmapOr *) plan)->bitmapplans);
		case T_SubqueryScan:
			return plan_has_index(((SubqueryScan *) plan)->subplan);
		default:
			return plan_has_index(plan->lefttree) || plan_has_index(plan->righttree);
	}
}

static bool
list_has_index(List *plans)
{
	ListCell *lc;

	foreach(lc, plans)
		if (plan_has_index(lfirst(lc)))
			return true;
	return false;
}

/* ---------------------------------------------------------------- arguments of statements */

/* The values of nodes as an array of bson_value. */
static Datum
values_of(DpGraphNode **nodes, int n)
{
	Datum *values = palloc(sizeof(Datum) * n);

	for (int i = 0; i < n; i++)
		values[i] = PointerGetDatum(DP_GRAPH_NODE_VALUE(nodes[i]));
	return PointerGetDatum(construct_array(values, n, dp_types()->bson_value, -1, false,
										   TYPALIGN_INT));
}

/* The filter {connect_to: {$in: [nodes]}}. */
static struct varlena *
filter_of(DpGraph *g, DpGraphNode **nodes, int n)
{
	DpBuilder b;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_begin_document_field(&b, g->field, strlen(g->field));
	dp_builder_begin_array_field(&b, "$in", 3);
	for (int i = 0; i < n; i++)
	{
		DpValue value = dp_value_of_varlena(DP_GRAPH_NODE_VALUE(nodes[i]));

		dp_builder_append_value(&b, NULL, 0, &value);
	}
	dp_builder_end(&b);
	dp_builder_end(&b);
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

/* The path as filters spell it; NULL if they cannot. */
static char *
field_of(const DpPath *path)
{
	StringInfoData name;

	initStringInfo(&name);
	for (int i = 0; i < path->nsteps; i++)
	{
		const DpPathStep *step = &path->steps[i];

		if (step->namelen == 0 || step->name[0] == '$' ||
			memchr(step->name, '.', step->namelen) != NULL)
			return NULL;
		if (i > 0)
			appendStringInfoChar(&name, '.');
		appendBinaryStringInfo(&name, step->name, step->namelen);
	}
	return name.data;
}
