/*
 * relationship.c
 *		Two arrays of ids that are kept consistent.
 *
 * BEFORE INSERT or UPDATE, for each row: the field must be an array of ids.
 *
 * AFTER INSERT, UPDATE (with a condition: only if the array or the key has
 * changed) or DELETE, for each row: collects added and removed edges.
 *
 * AFTER INSERT, UPDATE, DELETE or TRUNCATE, for each statement: corrects the rows
 * to which these edges lead, in the order of their ids, each once.  Writing them
 * fires these triggers again with edges that are already consistent.
 *
 * Two transactions that begin on different sides may need each other's rows, which
 * both have locked.  The second one leaves a note of the edge to the first
 * (note.h): when it is processed, the row that its edge starts from decides.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/text.h"
#include "kit/link.h"
#include "kit/locks.h"
#include "kit/note.h"
#include "kit/options.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/statement.h"
#include "kit/trigger.h"
#include "patterns/relationship/relationship.h"

/* Collections of row triggers: ids are their addresses */
static const char noted_edges; /* [link_id, side, to, from, sign] */
static const char noted_rows;  /* [link_id, side, key]: new rows, to which older rows may refer */

/* Places of rows that are not there */
#define ABSENT_PLACES 256

static DpRelationship *relationship_of_link(Oid relid, const char *link_id);
static void check_row(DpRelationship *r, int side, TriggerData *trigdata);
static void note_row(DpRelationship *r, int side, TriggerData *trigdata);
static void note_edges(DpRelationship *r, int side, struct varlena *doc, const DpValue *key,
					   struct varlena *other, const DpValue *other_key, DpRelationshipSign sign);
static void statement_end(Oid relid);
static void apply_row(DpRelationship *r, DpWriter *w, DpRelationshipEdge *edges, int n, bool build);
static struct varlena *row_changed(DpRelationship *r, int side, struct varlena *doc,
								   const DpRelationshipEdge *edges, int n);
static void leave_edges(DpRelationship *r, const DpRelationshipEdge *edges, int n);
static void namers(DpRelationship *r, int side, const DpValue *key, DpRelationshipEdge **edges,
				   int *n, int *cap);
static void truncated(DpRelationship *r, int side);
static struct varlena *tuple_doc(const DpRelationshipSide *side, Relation rel, HeapTuple tuple);
static DpValue tuple_key(const DpRelationshipSide *side, Relation rel, HeapTuple tuple);
static int edge_compare(const void *a, const void *b);

/*
 * relationship_trigger(): the triggers of the pattern on both of its tables.
 */
DP_FUNCTION(dp_relationship_trigger);
Datum
dp_relationship_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	uint32 events =
		DP_BEFORE_ROW(DP_INSERT | DP_UPDATE) | DP_AFTER_ROW(DP_WRITE) | DP_AFTER_STATEMENT(DP_ANY);
	int side = CALLED_AS_TRIGGER(fcinfo) && trigdata->tg_trigger->tgnargs == 3 ? 1 : 0;
	DpDecl *decl;
	DpRelationship *r;

	if (side == 1 && TRIGGER_FIRED_FOR_ROW(trigdata->tg_event) &&
		dp_partition_restoring(trigdata->tg_relation))
		return dp_trigger_pass(fcinfo);
	decl = side == 1 ? dp_trigger_enter_side(fcinfo, "relationship", events)
					 : dp_trigger_enter(fcinfo, "relationship", events);
	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	r = dp_relationship(decl);
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
	{
		check_row(r, side, trigdata);
		return dp_trigger_pass(fcinfo);
	}
	if (!OidIsValid(r->sides[1].relid))
	{
		dp_link_require_owner(r->link_id, false, r->decl->target);
		return PointerGetDatum(NULL); /* the table was restored alone */
	}
	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		note_row(r, side, trigdata);
	else if (TRIGGER_FIRED_BY_TRUNCATE(trigdata->tg_event))
	{
		SPI_connect();
		truncated(r, side);
		SPI_finish();
	}
	else
		statement_end(r->sides[side].relid);
	return PointerGetDatum(NULL);
}

/* ---------------------------------------------------------------- declarations */

/* The pattern's view of a declaration. */
DpRelationship *
dp_relationship(DpDecl *decl)
{
	DpRelationship *r = decl->state;
	MemoryContext old;
	int i;

	if (likely(r != NULL))
		return r;
	old = MemoryContextSwitchTo(decl->context);
	r = palloc0(sizeof(DpRelationship));
	r->decl = decl;
	dp_options_read(decl, r);
	r->sides[0].relid = decl->target;
	r->sides[1].relid = r->symmetric ? decl->target : dp_link_side(r->link_id, decl->target);
	for (i = 0; i < 2; i++)
	{
		DpRelationshipSide *side = &r->sides[i];

		if (!OidIsValid(side->relid))
			continue;
		side->table =
			dp_decl_of_table(side->relid, "relationship", decl->name,
							 dp_decl_text(decl, i == 0 ? "doc_column" : "source_doc_column"),
							 decl->context);
		side->primary = dp_lookup_primary(side->relid, decl->context);
		dp_decl_depends(decl, side->relid);
	}
	MemoryContextSwitchTo(old);
	/* the other table may not be there yet, in the midst of a restore */
	if (OidIsValid(r->sides[1].relid))
		decl->state = r;
	return r;
}

/* Returns the declaration of a table with that link ID, or the one on the other side. */
static DpRelationship *
relationship_of_link(Oid relid, const char *link_id)
{
	int pass;

	for (pass = 0; pass < 2; pass++)
	{
		ListCell *lc;

		foreach(lc, OidIsValid(relid) ? dp_decls(relid) : NIL)
		{
			DpDecl *decl = lfirst(lc);

			if (strcmp(decl->pattern, "relationship") == 0)
			{
				DpRelationship *r = dp_relationship(decl);

				if (strcmp(r->link_id, link_id) == 0)
					return r;
			}
		}
		relid = dp_link_main(link_id, relid);
	}
	return NULL;
}

/* ---------------------------------------------------------------- rows */

/* A row's document, detoasted, or NULL. */
static struct varlena *
tuple_doc(const DpRelationshipSide *side, Relation rel, HeapTuple tuple)
{
	AttrNumber attnum = RelationGetRelid(rel) == side->relid
							? side->table->doc_attnum
							: get_attnum(RelationGetRelid(rel), side->table->doc_column);

	return dp_tuple_bson(tuple, RelationGetDescr(rel), attnum);
}

/* A row's key. */
static DpValue
tuple_key(const DpRelationshipSide *side, Relation rel, HeapTuple tuple)
{
	DpKey key;

	dp_key_of_row(side->table, rel, tuple, &key);
	return dp_value_of_varlena(dp_key_to_value(side->table, &key));
}

/* The array of a document; false if there is none. */
bool
dp_relationship_array(const DpRelationshipSide *side, struct varlena *doc, DpValue *array)
{
	return doc != NULL && dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), side->field, array) &&
		   array->type == DP_TYPE_ARRAY;
}

/* BEFORE a row is written: raises CHECK_VIOLATION unless its field is an array of ids. */
static void
check_row(DpRelationship *r, int side, TriggerData *trigdata)
{
	DpRelationshipSide *s = &r->sides[side];
	HeapTuple tuple = dp_trigger_row(trigdata);
	struct varlena *doc;
	DpValue value;
	DpValue element;
	DpIter iter;
	const char *wrong = NULL;
	StringInfoData field;

	if (!OidIsValid(s->relid))
		return;
	doc = tuple_doc(s, trigdata->tg_relation, tuple);
	if (doc == NULL || !dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), s->field, &value) ||
		value.type == DP_TYPE_NULL || value.type == DP_TYPE_UNDEFINED)
		return;
	if (value.type != DP_TYPE_ARRAY)
		wrong = psprintf("a value of type %s", dp_type_name(value.type));
	else
	{
		dp_iter_init_value(&iter, &value);
		while (wrong == NULL && dp_iter_next_value(&iter, &element))
		{
			if (element.type == DP_TYPE_NULL || element.type == DP_TYPE_UNDEFINED ||
				element.type == DP_TYPE_ARRAY)
				wrong = psprintf("an array with a value of type %s", dp_type_name(element.type));
		}
	}
	if (wrong == NULL)
		return;
	initStringInfo(&field);
	dp_path_to_text(&field, s->field);
	ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
					errmsg("field \"%s\" in table \"%s\" must be an array of IDs", field.data,
						   dp_relation_name(s->relid)),
					errdetail("It is %s.", wrong)));
}

/* AFTER a row was written: collects changed edges. */
static void
note_row(DpRelationship *r, int side, TriggerData *trigdata)
{
	DpRelationshipSide *s = &r->sides[side];
	Relation rel = trigdata->tg_relation;
	bool has_old = !TRIGGER_FIRED_BY_INSERT(trigdata->tg_event);
	bool has_new = !TRIGGER_FIRED_BY_DELETE(trigdata->tg_event);
	HeapTuple new_tuple = dp_trigger_row(trigdata);
	struct varlena *before = has_old ? tuple_doc(s, rel, trigdata->tg_trigtuple) : NULL;
	struct varlena *after = has_new ? tuple_doc(s, rel, new_tuple) : NULL;
	DpValue old_key;
	DpValue new_key;
	bool moved = true;

	if (has_old)
		old_key = tuple_key(s, rel, trigdata->tg_trigtuple);
	if (has_new)
		new_key = tuple_key(s, rel, new_tuple);
	if (has_old && has_new)
		moved = dp_value_compare(&old_key, &new_key) != 0;
	if (has_old)
		note_edges(r, side, before, &old_key, moved ? NULL : after, &new_key,
				   has_new ? DP_EDGE_GOES : DP_EDGE_DELETED);
	if (has_new)
		note_edges(r, side, after, &new_key, moved ? NULL : before, &old_key, DP_EDGE_COMES);
	if (has_new && moved && !r->missing_error)
	{
		DpBuilder b;

		dp_builder_init_value(&b, 0);
		dp_builder_begin_array(&b);
		dp_builder_append_string(&b, NULL, 0, r->link_id, strlen(r->link_id));
		dp_builder_append_int32(&b, NULL, 0, side);
		dp_builder_append_value(&b, NULL, 0, &new_key);
		dp_builder_end(&b);
		dp_collect(s->relid, &noted_rows, dp_builder_finish_value(&b, DP_TYPE_ARRAY));
	}
}

/* Note the edges of a document that the other version of it does not have. */
static void
note_edges(DpRelationship *r, int side, struct varlena *doc, const DpValue *key,
		   struct varlena *other, const DpValue *other_key, DpRelationshipSign sign)
{
	DpRelationshipSide *s = &r->sides[side];
	DpValue array;
	DpValue others;
	DpValue id;
	DpIter iter;
	bool has_others;

	if (!dp_relationship_array(s, doc, &array))
		return;
	has_others = dp_relationship_array(s, other, &others);
	dp_iter_init_value(&iter, &array);
	while (dp_iter_next_value(&iter, &id))
	{
		DpBuilder b;

		if (has_others && dp_array_holds(&others, &id))
			continue;
		dp_builder_init_value(&b, 0);
		dp_builder_begin_array(&b);
		dp_builder_append_string(&b, NULL, 0, r->link_id, strlen(r->link_id));
		dp_builder_append_int32(&b, NULL, 0, side);
		dp_builder_append_value(&b, NULL, 0, &id);
		dp_builder_append_value(&b, NULL, 0, key);
		dp_builder_append_int32(&b, NULL, 0, sign);
		dp_builder_end(&b);
		dp_collect(s->relid, &noted_edges, dp_builder_finish_value(&b, DP_TYPE_ARRAY));
	}
}

/* ---------------------------------------------------------------- statements */

/* Returns the present row of one side, in the current context; NULL if missing. */
struct varlena *
dp_relationship_row(DpRelationship *r, int side, const DpValue *id)
{
	DpRelationshipSide *s = &r->sides[side];
	SPIPlanPtr plan;
	MemoryContext context = CurrentMemoryContext;
	struct varlena *doc = NULL;
	DpKey key;

	if (!dp_key_of_value(s->table, id, &key))
		return NULL;
	plan = dp_statement(s->table, "SELECT {doc} FROM {table} WHERE {key = $key}");
	if (dp_run(r->decl, plan, key.values, NULL, DP_RUN_AS_OWNER, 1, SPI_OK_SELECT) == 1)
	{
		bool isnull;
		Datum value = dp_result(0, 1, &isnull);

		if (!isnull)
		{
			struct varlena *found = (struct varlena *) DatumGetPointer(value);

			MemoryContextSwitchTo(context);
			doc = dp_document_to_varlena(DP_DOC_DATA(found), DP_DOC_SIZE(found));
		}
	}
	SPI_freetuptable(SPI_tuptable);
	MemoryContextSwitchTo(context);
	return doc;
}

/* The members of a note. */
static DpRelationship *
note_read(Oid relid, DpRelationship *last, struct varlena *note, DpRelationshipEdge *edge)
{
	DpValue array = dp_value_of_varlena(note);
	DpValue link_id;
	DpValue value;
	DpIter iter;

	memset(edge, 0, sizeof(*edge));
	dp_iter_init_value(&iter, &array);
	if (!dp_iter_next_value(&iter, &link_id) || !dp_iter_next_value(&iter, &value) ||
		!dp_iter_next_value(&iter, &edge->to))
		elog(ERROR, "what was noted of a relationship is not as it was");
	edge->side = dp_get_int32(value.data);
	if (dp_iter_next_value(&iter, &edge->from) && dp_iter_next_value(&iter, &value))
		edge->sign = dp_get_int32(value.data);
	if (last != NULL && strcmp(last->link_id, DP_STRING_DATA(&link_id)) == 0)
		return last;
	return relationship_of_link(relid, DP_STRING_DATA(&link_id));
}

void
dp_relationship_edge(DpRelationshipEdge **edges, int *n, int *cap, const DpRelationshipEdge *edge)
{
	if (*n == *cap)
	{
		*cap = *cap == 0 ? 16 : *cap * 2;
		*edges = *edges == NULL ? palloc(sizeof(DpRelationshipEdge) * *cap)
								: repalloc_huge(*edges, sizeof(DpRelationshipEdge) * *cap);
	}
	(*edges)[(*n)++] = *edge;
}

/* By the row that is to be written, then by the one that names it. */
static int
edge_compare(const void *a, const void *b)
{
	const DpRelationshipEdge *left = a;
	const DpRelationshipEdge *right = b;
	int cmp;

	if (left->side != right->side)
		return left->side < right->side ? -1 : 1;
	cmp = dp_value_compare(&left->to, &right->to);
	return cmp != 0 ? cmp : dp_value_compare(&left->from, &right->from);
}

/*
 * AFTER a statement on a table: processes all its relationships, with the first of their triggers.
 */
static void
statement_end(Oid relid)
{
	List *rows = dp_collected(relid, &noted_rows);
	List *noted = dp_collected(relid, &noted_edges);
	DpRelationship *r = NULL;
	DpRelationshipEdge *edges = NULL;
	DpRelationshipEdge edge;
	int n = 0;
	int cap = 0;
	ListCell *lc;

	if (rows == NIL && noted == NIL)
		return;
	SPI_connect();
	if (rows != NIL)
	{
		uint64 *hashes = palloc(sizeof(uint64) * list_length(rows));
		int nhashes = 0;

		/* waits for references to missing rows and blocks further ones */
		foreach(lc, rows)
		{
			r = note_read(relid, r, lfirst(lc), &edge);
			if (r != NULL)
				hashes[nhashes++] =
					(uint64) hash_bytes((unsigned char *) r->link_id, strlen(r->link_id)) << 32 |
					dp_value_hash(&edge.to, 0) % ABSENT_PLACES;
		}
		dp_lock_absent(hashes, nhashes, ShareLock);
		foreach(lc, rows)
		{
			DpRelationship *mine = note_read(relid, r, lfirst(lc), &edge);

			if (mine != NULL && mine != r && n > 0)
			{
				dp_relationship_apply(r, edges, n, false);
				n = 0;
			}
			r = mine;
			if (r != NULL)
				namers(r, edge.side, &edge.to, &edges, &n, &cap);
		}
		if (n > 0)
			dp_relationship_apply(r, edges, n, false);
		n = 0;
	}
	r = NULL;
	foreach(lc, noted)
	{
		DpRelationship *mine = note_read(relid, r, lfirst(lc), &edge);

		if (r != NULL && mine != r && n > 0)
		{
			dp_relationship_apply(r, edges, n, false);
			n = 0;
		}
		r = mine;
		if (r != NULL)
			dp_relationship_edge(&edges, &n, &cap, &edge);
	}
	if (n > 0)
		dp_relationship_apply(r, edges, n, false);
	SPI_finish();
}

/* Corrects the rows to which edges lead. Sorts the edges. build: skips missing rows. */
void
dp_relationship_apply(DpRelationship *r, DpRelationshipEdge *edges, int n, bool build)
{
	int from = 0;
	int kept = 0;
	int i;
	MemoryContext context;

	check_stack_depth();
	if (n > 1)
		qsort(edges, n, sizeof(DpRelationshipEdge), edge_compare);

	/* an edge both added and removed: its present state counts */
	for (i = 0; i < n; i++)
	{
		if (kept > 0 && edge_compare(&edges[kept - 1], &edges[i]) == 0)
		{
			if (edges[kept - 1].sign != edges[i].sign)
			{
				DpValue array;
				struct varlena *doc = dp_relationship_row(r, edges[i].side, &edges[i].from);

				edges[kept - 1].sign =
					dp_relationship_array(&r->sides[edges[i].side], doc, &array) &&
							dp_array_holds(&array, &edges[i].to)
						? DP_EDGE_COMES
						: DP_EDGE_GOES;
			}
			continue;
		}
		edges[kept++] = edges[i];
	}
	n = kept;

	context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns relationship",
									ALLOCSET_DEFAULT_SIZES);
	while (from < n)
	{
		int side = edges[from].side;
		DpRelationshipSide *other = &r->sides[1 - side];
		DpWriter *w = dp_writer_open(other->relid, other->table->doc_column, 0, NULL);
		MemoryContext old;

		dp_writer_leave(w, true);
		dp_writer_refresh(w);
		while (from < n && edges[from].side == side)
		{
			int next = from + 1;

			CHECK_FOR_INTERRUPTS();
			while (next < n && edges[next].side == side &&
				   dp_value_compare(&edges[next].to, &edges[from].to) == 0)
				next++;
			old = MemoryContextSwitchTo(context);
			apply_row(r, w, edges + from, next - from, build);
			MemoryContextSwitchTo(old);
			MemoryContextReset(context);
			from = next;
		}
		dp_writer_close(w);
	}
	MemoryContextDelete(context);
}

/* Does the same for one row: all edges lead to it. */
static void
apply_row(DpRelationship *r, DpWriter *w, DpRelationshipEdge *edges, int n, bool build)
{
	int side = 1 - edges[0].side;
	DpRelationshipSide *s = &r->sides[side];
	DpKey key;
	bool valid = dp_key_of_value(s->table, &edges[0].to, &key);
	bool placed = false;
	int i;

	for (;;)
	{
		struct varlena *changed;
		DpLockResult locked;

		if (!valid || !dp_writer_find(w, s->primary, key.values))
		{
			bool comes = false;

			for (i = 0; i < n; i++)
				comes |= edges[i].sign == DP_EDGE_COMES;
			if (build || (r->missing_error && !comes))
				return;
			if (r->missing_error)
				ereport(
					ERROR,
					(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
					 errmsg("a document in table \"%s\" refers to a document that does not exist",
							dp_relation_name(r->sides[1 - side].relid)),
					 errdetail("%s is not a key of table \"%s\".",
							   dp_value_to_message(&edges[0].to), dp_relation_name(s->relid))));
			if (placed || !valid)
				return;

			/*
			 * A transaction that does not see our write may insert it: our row refers to it, or no
			 * longer does.
			 */
			{
				uint64 hash = (uint64) hash_bytes((unsigned char *) r->link_id, strlen(r->link_id))
								  << 32 |
							  dp_value_hash(&edges[0].to, 0) % ABSENT_PLACES;

				dp_lock_absent(&hash, 1, RowExclusiveLock);
			}
			placed = true;
			dp_writer_refresh(w);
			continue;
		}

		/*
		 * a consistent row is not locked: a concurrent change of these edges there must read our
		 * rows
		 */
		if (row_changed(r, side, dp_writer_document(w), edges, n) == NULL)
			return;
		locked = dp_writer_lock_found(w, LockTupleNoKeyExclusive, LockWaitBlock);
		if (locked == DP_LOCK_DEADLOCK)
		{
			leave_edges(r, edges, n);
			return;
		}
		if (locked == DP_LOCK_DELETED)
		{
			dp_writer_refresh(w);
			continue;
		}
		changed = row_changed(r, side, dp_writer_document(w), edges, n);
		if (changed == NULL || dp_writer_update(w, changed) != DP_WRITE_CHANGED)
			return;
		dp_writer_refresh(w);
	}
}

/* The row that the edges lead to is left to the transaction that holds it. */
static void
leave_edges(DpRelationship *r, const DpRelationshipEdge *edges, int n)
{
	int i;

	for (i = 0; i < n; i++)
	{
		DpBuilder b;
		DpValue note;

		dp_builder_init_value(&b, 0);
		dp_builder_begin_array(&b);
		dp_builder_append_int32(&b, NULL, 0, edges[i].side);
		dp_builder_append_value(&b, NULL, 0, &edges[i].from);
		dp_builder_append_value(&b, NULL, 0, &edges[i].to);
		dp_builder_end(&b);
		note = dp_value_of_varlena(dp_builder_finish_value(&b, DP_TYPE_ARRAY));
		dp_note(r->decl, &note, r->sides[1 - edges[i].side].relid);
	}
}

/* Locks the present row with that key. Returns DP_LOCK_DELETED if there is none. */
static DpLockResult
row_lock(DpRelationshipSide *s, const DpValue *id, LockTupleMode mode)
{
	DpWriter *w = dp_writer_open(s->relid, s->table->doc_column, 0, NULL);
	DpLockResult locked = DP_LOCK_DELETED;
	DpKey key;

	dp_writer_leave(w, true);
	do
		dp_writer_refresh(w);
	while (dp_key_of_value(s->table, id, &key) && dp_writer_find(w, s->primary, key.values) &&
		   (locked = dp_writer_lock_found(w, mode, LockWaitBlock)) == DP_LOCK_DELETED);
	dp_writer_close(w);
	return locked;
}

/*
 * Processes such a note: the present row at the edge's start decides. Both rows are locked, even
 * consistent ones: the writer of one may have found the other consistent before. If the other row
 * was deleted, its deletion did not see the edge.
 */
void
dp_relationship_process_note(DpDecl *decl, const DpValue *note)
{
	DpRelationship *r = dp_relationship(decl);
	DpRelationshipEdge edge = { 0 };
	DpValue side;
	DpValue array;
	DpIter iter;

	dp_iter_init_value(&iter, note);
	if (!dp_iter_next_value(&iter, &side) || side.type != DP_TYPE_INT32 ||
		!dp_iter_next_value(&iter, &edge.from) || !dp_iter_next_value(&iter, &edge.to))
		elog(ERROR, "a note of a relationship is not as it was written");
	edge.side = dp_get_int32(side.data) != 0;
	if (!OidIsValid(r->sides[0].relid) || !OidIsValid(r->sides[1].relid))
		return;
	for (int i = 0; i < 2; i++)
	{
		DpRelationshipSide *s = &r->sides[i == 0 ? edge.side : 1 - edge.side];

		if (row_lock(s, i == 0 ? &edge.from : &edge.to,
					 i == 0 ? LockTupleShare : LockTupleNoKeyExclusive) == DP_LOCK_DEADLOCK)
		{
			dp_note(decl, note, s->relid);
			return;
		}
	}
	if (r->missing_error && dp_relationship_row(r, 1 - edge.side, &edge.to) == NULL)
	{
		DpValue missing = edge.to;

		edge.to = edge.from;
		edge.from = missing;
		edge.side = 1 - edge.side;
		edge.sign = DP_EDGE_DELETED;
	}
	else if (dp_relationship_array(&r->sides[edge.side],
								   dp_relationship_row(r, edge.side, &edge.from), &array) &&
			 dp_array_holds(&array, &edge.to))
		edge.sign = DP_EDGE_COMES;
	else
		edge.sign = DP_EDGE_GOES;
	dp_relationship_apply(r, &edge, 1, false);
}

/*
 * The document of a row with the edges that lead to it, in the current context;
 * NULL if it agrees.  Raises what says why it cannot.
 */
static struct varlena *
row_changed(DpRelationship *r, int side, struct varlena *doc, const DpRelationshipEdge *edges,
			int n)
{
	DpRelationshipSide *s = &r->sides[side];
	DpValue array;
	DpValue element;
	DpIter iter;
	DpBuilder b;
	bool present;
	bool differs = false;
	struct varlena *value;
	DpValue result;
	int i;

	if (doc == NULL)
		return NULL;
	present = dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), s->field, &array) &&
			  array.type != DP_TYPE_NULL && array.type != DP_TYPE_UNDEFINED;
	if (present && array.type != DP_TYPE_ARRAY)
	{
		StringInfoData field;

		initStringInfo(&field);
		dp_path_to_text(&field, s->field);
		ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
						errmsg("field \"%s\" in table \"%s\" must be an array of IDs", field.data,
							   dp_relation_name(s->relid)),
						errdetail("It is a value of type %s in the document with the key %s.",
								  dp_type_name(array.type), dp_value_to_message(&edges[0].to))));
	}
	dp_builder_init_value(&b, present ? array.len + 32 : 64);
	dp_builder_begin_array(&b);
	if (present)
	{
		dp_iter_init_value(&iter, &array);
		while (dp_iter_next_value(&iter, &element))
		{
			for (i = 0; i < n; i++)
			{
				if (edges[i].sign != DP_EDGE_COMES &&
					dp_value_compare(&edges[i].from, &element) == 0)
					break;
			}
			if (i == n)
				dp_builder_append_value(&b, NULL, 0, &element);
			else if (edges[i].sign == DP_EDGE_DELETED && r->restrict_delete)
				ereport(
					ERROR,
					(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
					 errmsg(
						 "cannot delete a document in table \"%s\": documents in table \"%s\" refer to it",
						 dp_relation_name(r->sides[1 - side].relid), dp_relation_name(s->relid)),
					 errdetail("Its key is %s.", dp_value_to_message(&edges[i].from))));
			else
				differs = true;
		}
	}
	for (i = 0; i < n; i++)
	{
		if (edges[i].sign == DP_EDGE_COMES && !(present && dp_array_holds(&array, &edges[i].from)))
		{
			dp_builder_append_value(&b, NULL, 0, &edges[i].from);
			differs = true;
		}
	}
	if (!differs)
	{
		dp_builder_free(&b);
		return NULL;
	}
	dp_builder_end(&b);
	value = dp_builder_finish_value(&b, DP_TYPE_ARRAY);
	result = dp_value_of_varlena(value);
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), s->field, &result);
}

/* ---------------------------------------------------------------- results of statements */

/* Copies the result of a statement: edges from the other side to a row, or from missing rows. */
static void
edges_of_result(uint64 rows, int side, DpRelationshipSign sign, const DpValue *to,
				DpRelationshipEdge **edges, int *n, int *cap, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	uint64 i;

	for (i = 0; i < rows; i++)
	{
		DpRelationshipEdge edge;
		bool isnull;
		DpValue value;

		edge.side = side;
		edge.sign = sign;
		value = dp_value_of_varlena((struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull)));
		edge.from = dp_value_of_varlena(dp_value_to_varlena(&value));
		if (to != NULL)
			edge.to = *to;
		else
		{
			value =
				dp_value_of_varlena((struct varlena *) DatumGetPointer(dp_result(i, 2, &isnull)));
			edge.to = dp_value_of_varlena(dp_value_to_varlena(&value));
		}
		dp_relationship_edge(edges, n, cap, &edge);
	}
	SPI_freetuptable(SPI_tuptable);
	MemoryContextSwitchTo(old);
}

/* Returns the edges to a new row of that side from rows that referred to it before it existed. */
static void
namers(DpRelationship *r, int side, const DpValue *key, DpRelationshipEdge **edges, int *n,
	   int *cap)
{
	DpRelationshipSide *other = &r->sides[1 - side];
	SPIPlanPtr plan = dp_statement(
		other->table,
		"SELECT {own}to_bson({t.key}) FROM {table} AS t WHERE t.{doc}{own @@}{$1 bson}");
	MemoryContext context = CurrentMemoryContext;
	DpBuilder b;
	StringInfoData path;
	Datum filter;
	int i;

	initStringInfo(&path);
	for (i = 0; i < other->field->nsteps; i++)
		appendStringInfo(&path, "%s%s", i > 0 ? "." : "", other->field->steps[i].name);
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_begin_document_field(&b, path.data, path.len);
	dp_builder_append_value(&b, "$eq", 3, key);
	dp_builder_end(&b);
	dp_builder_end(&b);
	filter = PointerGetDatum(dp_builder_finish_bson(&b));
	edges_of_result(dp_run(r->decl, plan, &filter, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT),
					1 - side, DP_EDGE_COMES, key, edges, n, cap, context);
}

/* A table was truncated, or a partition of it: what names its rows lets go. */
static void
truncated(DpRelationship *r, int side)
{
	DpRelationshipSide *s = &r->sides[side];
	DpRelationshipSide *other = &r->sides[1 - side];
	SPIPlanPtr plan =
		dp_statement(other->table,
					 "SELECT DISTINCT v.id, {own}to_bson({t.key}) FROM {table} AS t"
					 " CROSS JOIN LATERAL docpatterns._relationship_ids(t.{doc}, {text}) AS v (id)"
					 " WHERE NOT EXISTS (SELECT FROM {relation} AS o"
					 " WHERE {own}to_bson(o.{name}){own =}v.id)",
					 dp_decl_text(r->decl, side == 0 ? "other_field" : "field"), s->relid,
					 s->table->keys[0].name);
	MemoryContext context = CurrentMemoryContext;
	DpRelationshipEdge *edges = NULL;
	int n = 0;
	int cap = 0;

	edges_of_result(dp_run(r->decl, plan, NULL, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT), side,
					DP_EDGE_DELETED, NULL, &edges, &n, &cap, context);
	if (n > 0)
		dp_relationship_apply(r, edges, n, false);
}
