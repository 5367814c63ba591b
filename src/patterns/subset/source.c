/*
 * source.c
 *		The subset pattern: reading a group of the source by the pattern's index.
 *
 * The index has the order keys and the primary key, so that the first rows of a
 * group are the first entries of a range, and entries alone show the position of a
 * row.  A partitioned source has an index on each partition; their entries are
 * merged.
 *
 * Everything is read with the latest snapshot, at every isolation level.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "bson/catalog.h"
#include "kit/rows/lookup.h"
#include "patterns/subset/subset.h"

/* A scan of a group in one leaf, in order */
typedef struct GroupScan
{
	const DpSubset *s;
	Relation heap;
	Relation index;
	IndexScanDesc scan;
	TupleTableSlot *slot; /* NULL until it is needed */
	Buffer vmbuf;
} GroupScan;

/* A member that was found in a partition */
typedef struct FoundMember
{
	DpSubsetPosition position;
	struct varlena *member;
} FoundMember;

static void leaf_find(DpSubset *s, Oid relid);
static bool index_serves(const DpSubset *s, Relation heap, Relation index, AttrNumber doc_attnum);
static bool is_column_and_bson(Node *first, Node *second, AttrNumber attnum, struct varlena *doc);
static void scan_begin(GroupScan *g, const DpSubset *s, const DpSubsetLeaf *leaf, Snapshot snapshot,
					   Datum link);
static bool scan_next(GroupScan *g, bool row);
static void scan_position(GroupScan *g, DpSubsetPosition *position);
static void scan_end(GroupScan *g);
static int found_compare(const void *a, const void *b, void *arg);

/* Returns the present description of the source. */
void
dp_subset_source(DpSubset *s)
{
	Oid source = s->derivation->source;
	uint64 now = dp_schema_generation();
	Relation rel;
	MemoryContext old;
	List *leaves;
	ListCell *lc;

	if (likely(s->generation == now))
		return;
	if (!OidIsValid(source))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the source of the subset pattern \"%s\" on table \"%s\" is missing",
						s->derivation->decl->name, dp_relation_name(s->derivation->target))));
	s->generation = 0;
	MemoryContextReset(s->source_context);
	old = MemoryContextSwitchTo(s->source_context);
	s->leaves = NIL;

	rel = table_open(source, AccessShareLock);
	{
		char *wanted = dp_decl_text(s->derivation->decl, "source_doc_column");
		AttrNumber found = InvalidAttrNumber;
		int n = 0;
		int i;

		for (i = 0; i < RelationGetNumberOfAttributes(rel); i++)
		{
			Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

			if (att->attisdropped || att->atttypid != dp_types()->bson)
				continue;
			found = att->attnum;
			n++;
			if (wanted != NULL && strcmp(NameStr(att->attname), wanted) == 0)
			{
				n = 1;
				break;
			}
		}
		if (n != 1)
			ereport(ERROR,
					(errcode(ERRCODE_AMBIGUOUS_COLUMN),
					 errmsg("table \"%s\" must have exactly one column of type bson",
							dp_relation_name(source)),
					 errdetail("It is the source of the subset pattern \"%s\" on table \"%s\".",
							   s->derivation->decl->name,
							   dp_relation_name(s->derivation->target))));
		s->doc_column = pstrdup(NameStr(TupleDescAttr(RelationGetDescr(rel), found - 1)->attname));
	}

	list_free(RelationGetIndexList(rel));
	if (!OidIsValid(rel->rd_pkindex))
		ereport(
			ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" has no primary key", dp_relation_name(source)),
			 errdetail("Subset pattern \"%s\" on table \"%s\" sorts its rows by the primary key.",
					   s->derivation->decl->name, dp_relation_name(s->derivation->target))));
	{
		Relation index = index_open(rel->rd_pkindex, AccessShareLock);
		int i;

		s->nkeys = IndexRelationGetNumberOfKeyAttributes(index);
		s->keys = palloc0(sizeof(DpSubsetKey) * s->nkeys);
		for (i = 0; i < s->nkeys; i++)
		{
			DpSubsetKey *key = &s->keys[i];
			Form_pg_attribute att =
				TupleDescAttr(RelationGetDescr(rel), index->rd_index->indkey.values[i] - 1);
			TypeCacheEntry *type = lookup_type_cache(att->atttypid, TYPECACHE_CMP_PROC_FINFO);

			key->name = pstrdup(NameStr(att->attname));
			key->attnum = att->attnum;
			key->byval = att->attbyval;
			key->len = att->attlen;
			key->collation = att->attcollation;
			if (!OidIsValid(type->cmp_proc_finfo.fn_oid))
				ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
								errmsg("type %s cannot be sorted", format_type_be(att->atttypid))));
			fmgr_info_copy(&key->cmp, &type->cmp_proc_finfo, s->source_context);
		}
		index_close(index, NoLock);
	}
	leaves = dp_table_leaves(rel, AccessShareLock);
	table_close(rel, NoLock);
	foreach(lc, leaves)
		leaf_find(s, lfirst_oid(lc));
	MemoryContextSwitchTo(old);

	/* opening them may have processed invalidations: then read them again next time */
	s->generation = now;
}

/* A leaf of the source and its index. */
static void
leaf_find(DpSubset *s, Oid relid)
{
	Relation heap = table_open(relid, AccessShareLock);
	DpSubsetLeaf *leaf = palloc0(sizeof(DpSubsetLeaf));
	List *indexes = RelationGetIndexList(heap);
	ListCell *lc;

	leaf->relid = relid;
	leaf->doc_attnum = get_attnum(relid, s->doc_column);
	foreach(lc, indexes)
	{
		Relation index = index_open(lfirst_oid(lc), AccessShareLock);

		if (!OidIsValid(leaf->index) && index_serves(s, heap, index, leaf->doc_attnum))
		{
			leaf->index = RelationGetRelid(index);
			s->equal =
				get_opcode(get_opfamily_member(index->rd_opfamily[0], index->rd_opcintype[0],
											   index->rd_opcintype[0], BTEqualStrategyNumber));
		}
		index_close(index, NoLock);
	}
	list_free(indexes);
	table_close(heap, NoLock);
	s->leaves = lappend(s->leaves, leaf);
}

/*
 * Whether an index is ((document -> link), sort key, primary key ...) of the rows that the filter
 * lets through.
 */
static bool
index_serves(const DpSubset *s, Relation heap, Relation index, AttrNumber doc_attnum)
{
	List *exprs;
	List *predicate;
	OpExpr *op;
	FuncExpr *func;
	Const *path;
	char *name;
	int i;

	if (index->rd_rel->relam != BTREE_AM_OID || !index->rd_index->indisvalid ||
		!index->rd_index->indisready ||
		IndexRelationGetNumberOfKeyAttributes(index) < s->nkeys + 2 ||
		index->rd_index->indkey.values[0] != 0 || index->rd_index->indkey.values[1] != 0 ||
		index->rd_opcintype[0] != dp_types()->bson_value || index->rd_opcintype[1] != BYTEAOID)
		return false;
	for (i = 0; i < s->nkeys + 2; i++)
	{
		AttrNumber attnum = index->rd_index->indkey.values[i];

		if (index->rd_indoption[i] != 0)
			return false;
		if (i >= 2 && (attnum == 0 ||
					   strcmp(NameStr(TupleDescAttr(RelationGetDescr(heap), attnum - 1)->attname),
							  s->keys[i - 2].name) != 0))
			return false;
	}

	exprs = RelationGetIndexExpressions(index);
	op = linitial(exprs);
	func = lsecond(exprs);
	if (!IsA(op, OpExpr) || list_length(op->args) != 2 || !IsA(func, FuncExpr) ||
		list_length(func->args) != 2)
		return false;
	path = lsecond(op->args);
	name = get_opname(op->opno);
	if (name == NULL || strcmp(name, "->") != 0 || !IsA(linitial(op->args), Var) ||
		((Var *) linitial(op->args))->varattno != doc_attnum || !IsA(path, Const) ||
		path->constisnull || path->consttype != TEXTOID ||
		strcmp(TextDatumGetCString(path->constvalue), s->on_field) != 0)
		return false;
	name = get_func_name(func->funcid);
	if (name == NULL || strcmp(name, "bson_sort_key") != 0 ||
		get_func_namespace(func->funcid) != dp_types()->schema ||
		!is_column_and_bson(linitial(func->args), lsecond(func->args), doc_attnum, s->order_by))
		return false;

	predicate = RelationGetIndexPredicate(index);
	if (s->filter == NULL || predicate == NIL)
		return s->filter == NULL && predicate == NIL;
	op = linitial(predicate);
	if (list_length(predicate) != 1 || !IsA(op, OpExpr) || list_length(op->args) != 2)
		return false;
	name = get_opname(op->opno);
	return name != NULL && strcmp(name, "@@") == 0 &&
		   is_column_and_bson(linitial(op->args), lsecond(op->args), doc_attnum, s->filter_spec);
}

/* Whether two arguments are the document's column and that document as a constant. */
static bool
is_column_and_bson(Node *first, Node *second, AttrNumber attnum, struct varlena *doc)
{
	struct varlena *constant;

	if (!IsA(first, Var) || ((Var *) first)->varattno != attnum || !IsA(second, Const) ||
		((Const *) second)->constisnull || ((Const *) second)->consttype != dp_types()->bson)
		return false;
	constant = PG_DETOAST_DATUM_PACKED(((Const *) second)->constvalue);
	return dp_same_bytes(constant, doc);
}

bool
dp_subset_is_indexed(DpSubset *s)
{
	ListCell *lc;

	dp_subset_source(s);
	foreach(lc, s->leaves)
	{
		if (!OidIsValid(((DpSubsetLeaf *) lfirst(lc))->index))
			return false;
	}
	return true;
}

int
dp_subset_compare(const DpSubset *s, const DpSubsetPosition *a, const DpSubsetPosition *b)
{
	int cmp = memcmp(a->key, b->key, Min(a->len, b->len));
	int i;

	if (cmp != 0)
		return cmp;
	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	for (i = 0; i < s->nkeys; i++)
	{
		cmp = DatumGetInt32(FunctionCall2Coll(&s->keys[i].cmp, s->keys[i].collation, a->row[i],
											  b->row[i]));
		if (cmp != 0)
			return cmp;
	}
	return 0;
}

bool
dp_subset_reaches(DpSubset *s, const DpValue *link, const DpSubsetPosition *position)
{
	struct varlena *value;
	Snapshot snapshot;
	int before = 0;
	ListCell *lc;

	dp_subset_source(s);
	value = dp_value_to_varlena(link);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	foreach(lc, s->leaves)
	{
		GroupScan g;

		scan_begin(&g, s, lfirst(lc), snapshot, PointerGetDatum(value));
		while (before < s->keep && scan_next(&g, false))
		{
			DpSubsetPosition at;

			scan_position(&g, &at);
			if (dp_subset_compare(s, &at, position) >= 0)
				break;
			before++;
		}
		scan_end(&g);
		if (before >= s->keep)
			break;
	}
	UnregisterSnapshot(snapshot);
	pfree(value);
	return before < s->keep;
}

void
dp_subset_members(DpSubset *s, const DpValue *link, DpBuilder *b)
{
	struct varlena *value;
	Snapshot snapshot;
	FoundMember *found = NULL;
	int n = 0;
	bool merge;
	int i;
	MemoryContext row;
	MemoryContext old;
	ListCell *lc;

	dp_subset_source(s);
	value = dp_value_to_varlena(link);
	merge = list_length(s->leaves) > 1;
	if (merge)
		found = palloc(sizeof(FoundMember) * (Size) s->keep * list_length(s->leaves));
	row = AllocSetContextCreate(CurrentMemoryContext, "docpatterns member", ALLOCSET_DEFAULT_SIZES);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	foreach(lc, s->leaves)
	{
		DpSubsetLeaf *leaf = lfirst(lc);
		GroupScan g;
		int here = 0;

		scan_begin(&g, s, leaf, snapshot, PointerGetDatum(value));
		while (here < s->keep && scan_next(&g, true))
		{
			bool isnull;
			Datum doc = slot_getattr(g.slot, leaf->doc_attnum, &isnull);
			struct varlena *member;

			CHECK_FOR_INTERRUPTS();
			old = merge ? CurrentMemoryContext : MemoryContextSwitchTo(row);
			member = dp_member_make(s->member, PG_DETOAST_DATUM_PACKED(doc));
			if (merge)
			{
				FoundMember *f = &found[n++];
				char *key;

				scan_position(&g, &f->position);
				key = palloc(Max(f->position.len, 1));
				memcpy(key, f->position.key, f->position.len);
				f->position.key = key;
				for (i = 0; i < s->nkeys; i++)
					f->position.row[i] =
						datumCopy(f->position.row[i], s->keys[i].byval, s->keys[i].len);
				f->member = dp_document_to_varlena(DP_DOC_DATA(member), DP_DOC_SIZE(member));
			}
			else
			{
				DpValue element = dp_value_of_document(member);

				MemoryContextSwitchTo(old);
				dp_builder_append_value(b, NULL, 0, &element);
				MemoryContextReset(row);
			}
			here++;
		}
		scan_end(&g);
	}
	UnregisterSnapshot(snapshot);
	if (merge)
	{
		qsort_arg(found, n, sizeof(FoundMember), found_compare, s);
		for (i = 0; i < Min(n, s->keep); i++)
		{
			DpValue element = dp_value_of_document(found[i].member);

			dp_builder_append_value(b, NULL, 0, &element);
		}
	}
	MemoryContextDelete(row);
}

int64
dp_subset_count(DpSubset *s, const DpValue *link)
{
	struct varlena *value;
	Snapshot snapshot;
	int64 n = 0;
	ListCell *lc;

	dp_subset_source(s);
	value = dp_value_to_varlena(link);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	foreach(lc, s->leaves)
	{
		GroupScan g;

		scan_begin(&g, s, lfirst(lc), snapshot, PointerGetDatum(value));
		while (scan_next(&g, false))
		{
			CHECK_FOR_INTERRUPTS();
			n++;
		}
		scan_end(&g);
	}
	UnregisterSnapshot(snapshot);
	pfree(value);
	return n;
}

/*
 * Begins to read the rows of a group in a leaf.  Raises OBJECT_NOT_IN_PREREQUISITE_STATE without
 * the index.
 */
static void
scan_begin(GroupScan *g, const DpSubset *s, const DpSubsetLeaf *leaf, Snapshot snapshot, Datum link)
{
	ScanKeyData key;

	if (!OidIsValid(leaf->index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has no index for the subset pattern \"%s\" on table \"%s\"",
						dp_relation_name(leaf->relid), s->derivation->decl->name,
						dp_relation_name(s->derivation->target)),
				 errhint("Create it again with pattern_repair().")));
	g->s = s;
	g->heap = table_open(leaf->relid, AccessShareLock);
	g->index = index_open(leaf->index, AccessShareLock);
	ScanKeyEntryInitialize(&key, 0, 1, BTEqualStrategyNumber, InvalidOid,
						   g->index->rd_indcollation[0], s->equal, link);
	g->scan = dp_index_beginscan(g->heap, g->index, snapshot, 1);
	g->scan->xs_want_itup = true;
	index_rescan(g->scan, &key, 1, NULL, 0);
	g->slot = NULL;
	g->vmbuf = InvalidBuffer;
}

/*
 * Reads the next visible row; returns false at the end. Fetches the row only if needed, or if its
 * page is not all-visible.
 */
static bool
scan_next(GroupScan *g, bool row)
{
	ItemPointer tid;

	while ((tid = index_getnext_tid(g->scan, ForwardScanDirection)) != NULL)
	{
		if (!row && VM_ALL_VISIBLE(g->heap, ItemPointerGetBlockNumber(tid), &g->vmbuf))
			return true;
		if (g->slot == NULL)
			g->slot = table_slot_create(g->heap, NULL);
		if (index_fetch_heap(g->scan, g->slot))
			return true;
	}
	return false;
}

/* Returns the position of the row; valid until the next one. */
static void
scan_position(GroupScan *g, DpSubsetPosition *position)
{
	bool isnull;
	struct varlena *key =
		PG_DETOAST_DATUM_PACKED(index_getattr(g->scan->xs_itup, 2, g->scan->xs_itupdesc, &isnull));
	int i;

	position->key = VARDATA_ANY(key);
	position->len = VARSIZE_ANY_EXHDR(key);
	for (i = 0; i < g->s->nkeys; i++)
		position->row[i] = index_getattr(g->scan->xs_itup, i + 3, g->scan->xs_itupdesc, &isnull);
}

static void
scan_end(GroupScan *g)
{
	if (g->slot != NULL)
		ExecDropSingleTupleTableSlot(g->slot);
	if (BufferIsValid(g->vmbuf))
		ReleaseBuffer(g->vmbuf);
	index_endscan(g->scan);
	index_close(g->index, NoLock);
	table_close(g->heap, NoLock);
}

/* Orders members that were found in partitions. */
static int
found_compare(const void *a, const void *b, void *arg)
{
	return dp_subset_compare(arg, &((const FoundMember *) a)->position,
							 &((const FoundMember *) b)->position);
}
