/*
 * rows.c
 *		Finds nodes: without a lock before a row is written, and by writers
 *		afterwards.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "kit/adopt.h"
#include "patterns/tree/change.h"

/* The most nodes above a node that are looked for when no ancestors are kept */
#define MAX_WALK 1000000

static Oid find_id_index(DpTree *tree, Relation rel);
static bool is_field_of(const Node *expr, AttrNumber doc, const char *path);
static bool skip_trigger(const Trigger *trigger);

struct varlena *
dp_tree_probe(DpTree *tree, Relation rel, const DpValue *id)
{
	Relation index;
	Snapshot snapshot;
	IndexScanDesc scan;
	ScanKeyData key;
	TupleTableSlot *slot;
	struct varlena *value;
	struct varlena *doc = NULL;

	if (!OidIsValid(tree->id_index))
		tree->id_index = find_id_index(tree, rel);
	index = index_open(tree->id_index, AccessShareLock);

	/* includes rows of the running command */
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	snapshot->curcid = GetCurrentCommandId(false) + 1;

	value = dp_value_to_varlena(id);
	ScanKeyEntryInitialize(&key, 0, 1, BTEqualStrategyNumber, index->rd_opcintype[0],
						   index->rd_indcollation[0],
						   get_opcode(get_opfamily_member(index->rd_opfamily[0],
														  index->rd_opcintype[0],
														  index->rd_opcintype[0],
														  BTEqualStrategyNumber)),
						   PointerGetDatum(value));
	slot = table_slot_create(rel, NULL);
	scan = dp_index_beginscan(rel, index, snapshot, 1);
	index_rescan(scan, &key, 1, NULL, 0);
	while (index_getnext_slot(scan, ForwardScanDirection, slot))
	{
		bool isnull;
		Datum d = slot_getattr(slot, tree->decl->doc_attnum, &isnull);

		if (!isnull)
		{
			struct varlena *stored = PG_DETOAST_DATUM_PACKED(d);

			doc = palloc(VARSIZE_ANY(stored));
			memcpy(doc, stored, VARSIZE_ANY(stored));
			break;
		}
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
	index_close(index, AccessShareLock);
	pfree(value);
	return doc;
}

/* The unique index on ids.  Raises OBJECT_NOT_IN_PREREQUISITE_STATE if it was dropped. */
static Oid
find_id_index(DpTree *tree, Relation rel)
{
	List *indexes = RelationGetIndexList(rel);
	Oid found = InvalidOid;
	ListCell *lc;

	if (tree->id_is_key)
		found = rel->rd_pkindex;
	else
		foreach(lc, indexes)
		{
			Relation index = index_open(lfirst_oid(lc), AccessShareLock);

			if (index->rd_rel->relam == BTREE_AM_OID && index->rd_index->indisvalid &&
				index->rd_index->indisunique && index->rd_index->indnatts == 1 &&
				index->rd_index->indkey.values[0] == 0 && RelationGetIndexPredicate(index) == NIL &&
				is_field_of(linitial(RelationGetIndexExpressions(index)), tree->decl->doc_attnum,
							tree->id_text))
				found = lfirst_oid(lc);
			index_close(index, AccessShareLock);
		}
	list_free(indexes);
	if (!OidIsValid(found))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("table \"%s\" has no unique index on \"%s\"",
							   dp_relation_name(RelationGetRelid(rel)), tree->id_text),
						errdetail("The tree pattern \"%s\" finds nodes by it.", tree->decl->name),
						errhint("Create missing indexes with pattern_repair().")));
	return found;
}

/* Whether an expression is (doc -> 'path'). */
static bool
is_field_of(const Node *expr, AttrNumber doc, const char *path)
{
	const OpExpr *op = (const OpExpr *) expr;
	const Var *var;
	const Const *constant;

	if (!IsA(expr, OpExpr) || list_length(op->args) != 2 ||
		op->opresulttype != dp_types()->bson_value)
		return false;
	var = linitial(op->args);
	constant = lsecond(op->args);
	return IsA(var, Var) && var->varattno == doc && IsA(constant, Const) &&
		   !constant->constisnull && strcmp(get_opname(op->opno), "->") == 0 &&
		   strcmp(TextDatumGetCString(constant->constvalue), path) == 0;
}

DpValue *
dp_tree_chain(const DpTree *tree, struct varlena *doc, bool trust, DpTreeFetch fetch, void *arg,
			  int *n)
{
	DpValue own;
	DpValue *chain;
	int size = 16;
	int i;

	if (!dp_tree_id(tree, doc, &own))
		return NULL;
	chain = trust && !dp_held(tree->decl, tree->ancestors) ? dp_tree_ancestors(tree, doc, n) : NULL;
	if (chain != NULL)
	{
		DpValue parent;

		/* a document that was there before the pattern may hold anything */
		if (dp_tree_parent(tree, doc, &parent)
				? *n > 0 && dp_value_compare(&parent, &chain[*n - 1]) == 0
				: *n == 0)
		{
			chain[(*n)++] = own; /* there is room for one more */
			return chain;
		}
		pfree(chain);
	}

	/* nearest first, and then turned round */
	chain = palloc(sizeof(DpValue) * size);
	*n = 0;
	for (;;)
	{
		DpValue parent;

		CHECK_FOR_INTERRUPTS();
		if (*n == size)
		{
			size *= 2;
			chain = repalloc_huge(chain, sizeof(DpValue) * size);
		}
		chain[(*n)++] = own;
		if (!dp_tree_parent(tree, doc, &parent))
			break;
		if (*n > MAX_WALK)
			return NULL;
		if (*n % 64 == 0)
		{
			/* a cycle returns to a node that was seen */
			for (i = 0; i < *n; i++)
			{
				if (dp_value_compare(&chain[i], &parent) == 0)
					return NULL;
			}
		}
		doc = fetch(arg, &parent);
		if (doc == NULL || !dp_tree_id(tree, doc, &own))
			return NULL;
	}
	for (i = 0; i < *n / 2; i++)
	{
		DpValue swap = chain[i];

		chain[i] = chain[*n - 1 - i];
		chain[*n - 1 - i] = swap;
	}
	return chain;
}

DpWriter *
dp_tree_writer(DpTree *tree)
{
	DpWriter *w = dp_writer_open(tree->decl->target, tree->decl->doc_column, 0, tree->mark);

	dp_writer_skip(w, skip_trigger);
	dp_writer_refresh(w);
	if (tree->by_parent == NULL)
	{
		if (tree->id != NULL)
			tree->by_id = dp_lookup_path(tree->decl->target, tree->decl->doc_column, tree->id_text,
										 tree->decl->context);
		tree->by_parent = dp_lookup_path(tree->decl->target, tree->decl->doc_column,
										 tree->parent_field, tree->decl->context);
	}
	return w;
}

/* Triggers that have nothing to do when we write: a node keeps its _id, and its forms are right. */
static bool
skip_trigger(const Trigger *trigger)
{
	return strncmp(trigger->tgname, DP_TRIGGER_PREFIX "45_tree",
				   strlen(DP_TRIGGER_PREFIX "45_tree")) == 0 ||
		   strcmp(trigger->tgname, DP_TRIGGER_PREFIX "00_collection") == 0;
}

bool
dp_tree_find_id(DpTree *tree, DpWriter *w, const DpValue *id)
{
	struct varlena *value = dp_value_to_varlena(id);
	Datum d = PointerGetDatum(value);
	bool found = dp_writer_find(w, tree->by_id, &d);

	pfree(value);
	return found;
}

bool
dp_tree_lock_id(DpTree *tree, DpWriter *w, const DpValue *id, LockTupleMode mode, bool *left)
{
	/* while waiting, it may be deleted and inserted again, or get another id */
	while (dp_tree_find_id(tree, w, id))
	{
		DpLockResult result = dp_writer_lock(w, mode);
		struct varlena *doc;
		DpValue now;

		if (result == DP_LOCK_DEADLOCK)
		{
			*left = true;
			return true;
		}
		if (result == DP_LOCK_OK ||
			(result == DP_LOCK_CHANGED && (doc = dp_writer_document(w)) != NULL &&
			 dp_tree_id(tree, doc, &now) && dp_value_compare(&now, id) == 0))
			return true;
		CHECK_FOR_INTERRUPTS();
		dp_writer_refresh(w);
	}
	return false;
}

bool
dp_tree_find_children(DpTree *tree, DpWriter *w, const DpValue *id)
{
	/* not freed: the scan needs it */
	Datum *d = palloc(sizeof(Datum));

	*d = PointerGetDatum(dp_value_to_varlena(id));
	return dp_writer_find(w, tree->by_parent, d);
}

struct varlena *
dp_tree_fetch(void *arg, const DpValue *id)
{
	DpTreeReading *reading = arg;
	struct varlena *doc;
	struct varlena *copy;

	if (!dp_tree_find_id(reading->tree, reading->w, id))
		return NULL;
	doc = dp_writer_document(reading->w);
	if (doc == NULL)
		return NULL;
	copy = palloc(VARSIZE_ANY(doc));
	memcpy(copy, doc, VARSIZE_ANY(doc));
	return copy;
}

/* A child, as it is sorted among its siblings */
typedef struct Sibling
{
	DpValue order;
	DpValue id;
} Sibling;

static int
compare_siblings(const void *a, const void *b)
{
	const Sibling *x = a;
	const Sibling *y = b;
	int cmp = dp_value_compare(&x->order, &y->order);

	return cmp != 0 ? cmp : dp_value_compare(&x->id, &y->id);
}

DpValue *
dp_tree_children(DpTree *tree, DpWriter *w, const DpValue *id)
{
	int size = 16;
	int n = 0;
	Sibling *siblings = palloc(sizeof(Sibling) * size);
	DpBuilder *b = palloc(sizeof(DpBuilder));
	DpValue *result = palloc(sizeof(DpValue));
	bool found;
	int i;

	for (found = dp_tree_find_children(tree, w, id); found; found = dp_writer_next(w))
	{
		struct varlena *doc = dp_writer_document(w);
		DpValue value;

		if (doc == NULL || !dp_tree_id(tree, doc, &value))
			continue;
		if (n == size)
		{
			size *= 2;
			siblings = repalloc_huge(siblings, sizeof(Sibling) * size);
		}
		siblings[n].id = dp_tree_copy_value(CurrentMemoryContext, &value);
		if (tree->order_by != NULL &&
			dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), tree->order_by, &value))
			siblings[n].order = dp_tree_copy_value(CurrentMemoryContext, &value);
		else
		{
			siblings[n].order.type = DP_TYPE_NULL;
			siblings[n].order.data = (const uint8 *) "";
			siblings[n].order.len = 0;
		}
		n++;
	}
	qsort(siblings, n, sizeof(Sibling), compare_siblings);
	dp_builder_init_value(b, 0);
	dp_builder_begin_array(b);
	for (i = 0; i < n; i++)
		dp_builder_append_value(b, NULL, 0, &siblings[i].id);
	dp_builder_end(b);
	*result = dp_builder_view(b, DP_TYPE_ARRAY);
	return result;
}
