/*
 * attach.c
 *		Documents of other tables attached to nodes of a tree: their triggers, and
 *		how they follow when nodes move, change their ids or are deleted.
 *
 * The declaration is on the documents' table, with the trigger function of the
 * pattern tree_attach.  A trigger on the tree's table with the arguments 'side',
 * link_id, name links it to the tree; it only fires on TRUNCATE, all other changes of
 * the tree are processed by change.c, once the row of a node is locked.
 *
 * A document is attached to a node, its parent; its ancestors are those from root
 * to parent.  A write of a document locks the parent's row (FOR SHARE) and then
 * reads it, so that it waits for a concurrent move of the node, or the move finds
 * the document.
 */
#include "postgres.h"

#include "access/table.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/text.h"
#include "kit/link.h"
#include "kit/note.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/trigger.h"
#include "patterns/tree/change.h"

/* A table of attached documents that follow a statement on the tree */
struct DpTreeFollow
{
	DpTree *attached;
	DpWriter *w;
	struct DpTreeFollow *next;
};

/* Source of nodes for a BEFORE trigger */
typedef struct Probing
{
	DpTree *tree;
	Relation rel;
} Probing;

static HeapTuple attach_before(DpTree *attached, TriggerData *trigdata);
static void attach_after_row(DpTree *attached, TriggerData *trigdata);
static void attach_write(DpTree *attached, DpTreeStatement *s);
static void attach_truncate(DpTree *attached);
static DpTree *attached_of_link(const char *link_id, Oid relid);
static List *attached_to(DpTree *tree);
static void open_all(DpTree *tree, DpTreeFollow **follow);
static void follow_one(DpTreeFollow *f, const DpValue *on, const DpValue *chain, int n, bool other);
static struct varlena *probe_fetch(void *arg, const DpValue *id);
static int compare_saved(const void *a, const void *b);

DP_FUNCTION(dp_tree_attach_trigger);
Datum
dp_tree_attach_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	bool side = CALLED_AS_TRIGGER(fcinfo) && trigdata->tg_trigger->tgnargs == 3;
	DpDecl *decl =
		side ? dp_trigger_enter_side(fcinfo, "tree_attach", DP_AFTER_STATEMENT(DP_TRUNCATE))
			 : dp_trigger_enter(fcinfo, "tree_attach",
								DP_BEFORE_ROW(DP_INSERT | DP_UPDATE) |
									DP_AFTER_ROW(DP_INSERT | DP_UPDATE) |
									DP_AFTER_STATEMENT(DP_INSERT | DP_UPDATE));
	DpTree *attached;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	attached = dp_tree(decl);
	if (side)
	{
		attach_truncate(attached);
		return PointerGetDatum(NULL);
	}
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(attach_before(attached, trigdata));
	if (dp_marked(decl->target, attached->mark) == DP_MARK_INTERNAL)
		return PointerGetDatum(NULL);
	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		attach_after_row(attached, trigdata);
	else
	{
		DpTreeStatement *statement = dp_tree_statement_take(attached);

		if (statement != NULL)
		{
			attach_write(attached, statement);
			dp_tree_statement_free(statement);
		}
	}
	return PointerGetDatum(NULL);
}

/*
 * BEFORE INSERT OR UPDATE of a document: its forms, by the parent as it is now.
 */
static HeapTuple
attach_before(DpTree *attached, TriggerData *trigdata)
{
	bool is_update = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event);
	HeapTuple tuple = dp_trigger_row(trigdata);
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *given;
	struct varlena *written;
	struct varlena *doc;
	struct varlena *old = NULL;
	DpValue parent;
	bool has;

	given = dp_tuple_document(attached->decl, tuple, desc);
	if (given == NULL)
		return tuple;
	if (dp_marked(attached->decl->target, attached->mark) == DP_MARK_INTERNAL)
	{
		struct varlena *wanted = dp_marked_document(attached->decl->target, attached->mark);

		if (wanted == NULL)
			return tuple;
		doc = dp_tree_put_back(attached, wanted, given, false);
		has = dp_tree_parent(attached, wanted, &parent);
		doc = dp_tree_set_parent(attached, doc, has ? &parent : NULL);
		return doc == given ? tuple : dp_tuple_with_document(attached->decl, tuple, desc, doc);
	}
	if (is_update)
		old = dp_tuple_document(attached->decl, trigdata->tg_trigtuple, desc);
	written = dp_tree_written(attached, NULL, old, given);
	has = dp_tree_parent(attached, written, &parent);
	if (old != NULL)
	{
		DpValue before;
		bool had = dp_tree_parent(attached, old, &before);

		if (had == has && (!has || dp_value_identical(&before, &parent)))
		{
			doc = dp_tree_put_back(attached, old, written, false);
			return doc == given ? tuple : dp_tuple_with_document(attached->decl, tuple, desc, doc);
		}
	}

	if (!has || !attached->chained)
		doc = has ? written : dp_tree_strip(attached, written);
	else
	{
		DpTree *tree = dp_tree_of_attached(attached);
		Relation rel = table_open(tree->decl->target, AccessShareLock);
		Probing probing = { tree, rel };
		struct varlena *node = dp_tree_probe(tree, rel, &parent);
		DpValue *chain;
		int n;

		chain = node != NULL ? dp_tree_chain(tree, node, true, probe_fetch, &probing, &n) : NULL;
		doc = chain != NULL ? dp_tree_arrange(attached, written, chain, n, NULL)
							: dp_tree_strip(attached, written);
		table_close(rel, NoLock);
	}
	if (old != NULL)
		doc = dp_tree_guarded(attached, given, doc, NULL, 0);
	return doc == given ? tuple : dp_tuple_with_document(attached->decl, tuple, desc, doc);
}

/* DpTreeFetch without locks. */
static struct varlena *
probe_fetch(void *arg, const DpValue *id)
{
	Probing *probing = arg;

	return dp_tree_probe(probing->tree, probing->rel, id);
}

/* AFTER INSERT or UPDATE of a document whose parent is new. */
static void
attach_after_row(DpTree *attached, TriggerData *trigdata)
{
	HeapTuple tuple = dp_trigger_row(trigdata);
	struct varlena *doc =
		dp_tuple_document(attached->decl, tuple, RelationGetDescr(trigdata->tg_relation));
	DpValue parent;
	DpTreeStatement *s;
	DpTreeSaved *saved;

	if (doc == NULL || !dp_tree_parent(attached, doc, &parent))
		return;
	s = dp_tree_statement(attached);
	saved = dp_tree_saved(s);
	saved->parent = dp_tree_copy_value(s->state.context, &parent);
	saved->has_parent = true;
	saved->ref.relid = RelationGetRelid(trigdata->tg_relation);
	saved->ref.tid = tuple->t_self;
}

/*
 * After a statement: locks the nodes to which documents are attached, in the order of their ids,
 * and writes the documents' forms.
 */
static void
attach_write(DpTree *attached, DpTreeStatement *s)
{
	DpTree *tree = dp_tree_of_attached(attached);
	DpWriter *nodes = dp_tree_writer(tree);
	DpWriter *w = dp_tree_writer(attached);
	DpTreeReading reading = { tree, nodes };
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns attached", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	DpValue *chain = NULL;
	int n = 0;
	bool left = false; /* the node is locked by a transaction that waits for us */
	int i;

	qsort(s->saved, s->nsaved, sizeof(DpTreeSaved), compare_saved);
	for (i = 0; i < s->nsaved; i++)
	{
		DpTreeSaved *saved = &s->saved[i];
		struct varlena *doc;
		DpValue parent;

		CHECK_FOR_INTERRUPTS();
		if (i == 0 || dp_value_compare(&saved->parent, &s->saved[i - 1].parent) != 0)
		{
			struct varlena *copy;

			MemoryContextReset(context);
			dp_writer_leave(nodes, true);
			left = false;
			if (!dp_tree_lock_id(tree, nodes, &saved->parent, LockTupleShare, &left))
				ereport(ERROR, (errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
								errmsg("node %s does not exist in table \"%s\"",
									   dp_value_to_message(&saved->parent),
									   dp_relation_name(tree->decl->target)),
								errdetail("Documents of table \"%s\" are attached to its nodes.",
										  dp_relation_name(attached->decl->target))));
			if (left)
				dp_note(attached->decl, &saved->parent, tree->decl->target);
			if (!attached->chained || left)
				continue;
			doc = dp_writer_document(nodes);
			copy = palloc(VARSIZE_ANY(doc));
			memcpy(copy, doc, VARSIZE_ANY(doc));
			dp_writer_refresh(nodes);
			chain = dp_tree_chain(tree, copy, true, dp_tree_fetch, &reading, &n);
			if (chain == NULL)
				ereport(
					ERROR,
					(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
					 errmsg("node %s of table \"%s\" is not connected to a root",
							dp_value_to_message(&saved->parent),
							dp_relation_name(tree->decl->target)),
					 errhint(
						 "For a tree that is older than its declaration, run CALL pattern_build().")));
		}
		if (!attached->chained || left)
			continue;

		/* a trigger of a user's may have changed it meanwhile, and that was taken care of then */
		if (!dp_writer_fetch_own(w, &saved->ref) || (doc = dp_writer_document(w)) == NULL ||
			!dp_tree_parent(attached, doc, &parent) ||
			dp_value_compare(&parent, &saved->parent) != 0)
			continue;
		(void) dp_writer_update(w, dp_tree_guarded(attached, doc,
												   dp_tree_arrange(attached, doc, chain, n, NULL),
												   NULL, 0));
	}
	dp_writer_close(w);
	dp_writer_close(nodes);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* TRUNCATE of the tree: as if all nodes with attached documents were deleted. */
static void
attach_truncate(DpTree *attached)
{
	DpTree *tree;
	DpTreeFollow *follow = NULL;
	SPIPlanPtr plan;
	uint64 rows;
	uint64 i;
	SPITupleTable *table;

	tree = dp_tree_of_attached(attached);
	SPI_connect();
	plan = dp_statement(attached->decl, "SELECT DISTINCT {parent} FROM {table} AS t");
	rows = dp_run(attached->decl, plan, NULL, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT);
	table = SPI_tuptable;
	for (i = 0; i < rows; i++)
	{
		bool isnull;
		Datum d = SPI_getbinval(table->vals[i], table->tupdesc, 1, &isnull);
		DpValue id;

		if (isnull)
			continue;
		id = dp_value_of_varlena(PG_DETOAST_DATUM_PACKED(d));
		if (id.type != DP_TYPE_NULL && id.type != DP_TYPE_UNDEFINED)
			dp_tree_follow_deleted(tree, &follow, &id, tree->on_delete, NULL, 0);
	}
	dp_tree_follow_end(&follow);
	SPI_finish();
}

/* Returns the tree of attached documents. Raises UNDEFINED_OBJECT if it does not exist. */
DpTree *
dp_tree_of_attached(DpTree *attached)
{
	Oid relid = dp_link_side(attached->link_id, attached->decl->target);

	if (!OidIsValid(relid))
		dp_link_require_owner(attached->link_id, false, attached->decl->target);
	if (!OidIsValid(relid))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
						errmsg("the tree of the attached documents in table \"%s\" does not exist",
							   dp_relation_name(attached->decl->target)),
						errhint("Disable the pattern with pattern_disable().")));
	return dp_tree_find(relid, dp_decl_text(attached->decl, "tree_name"));
}

/* The declaration that a trigger on the tree's table names, or NULL. */
static DpTree *
attached_of_link(const char *link_id, Oid relid)
{
	Oid main = dp_link_main(link_id, relid);
	ListCell *lc;

	if (!OidIsValid(main))
	{
		dp_link_require_owner(link_id, true, relid);
		return NULL;
	}
	foreach(lc, dp_decls(main))
	{
		DpDecl *decl = lfirst(lc);

		if (strcmp(decl->pattern, "tree_attach") == 0)
		{
			DpTree *attached = dp_tree(decl);

			if (attached->link_id != NULL && strcmp(attached->link_id, link_id) == 0)
				return attached;
		}
	}
	return NULL;
}

/*
 * Returns the link IDs (texts) of tables with attached documents, cached with the tree's
 * declaration.
 */
static List *
attached_to(DpTree *tree)
{
	Relation rel;
	TriggerDesc *triggers;
	int i;

	if (tree->attached_known)
		return tree->attached;
	rel = table_open(tree->decl->target, AccessShareLock);
	triggers = dp_triggers(rel);
	for (i = 0; i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		MemoryContext old;

		if (trigger->tgnargs != 3 || strcmp(trigger->tgargs[0], "side") != 0 ||
			!dp_is_internal(trigger->tgfoid, "tree_attach_trigger"))
			continue;
		old = MemoryContextSwitchTo(tree->decl->context);
		tree->attached = lappend(tree->attached, pstrdup(trigger->tgargs[1]));
		MemoryContextSwitchTo(old);
	}
	table_close(rel, NoLock);
	tree->attached_known = true;
	return tree->attached;
}

bool
dp_tree_has_attached(DpTree *tree)
{
	return attached_to(tree) != NIL;
}

/* Opens the tables with attached documents. */
static void
open_all(DpTree *tree, DpTreeFollow **follow)
{
	ListCell *lc;

	if (*follow != NULL)
		return;
	foreach(lc, attached_to(tree))
	{
		DpTree *attached = attached_of_link(lfirst(lc), tree->decl->target);
		DpTreeFollow *f;
		const char *name;

		if (attached == NULL)
			continue;
		name = dp_decl_text(attached->decl, "tree_name");
		if (name == NULL || strcmp(name, tree->decl->name) != 0)
			continue; /* attached to another tree of the same table */
		f = palloc(sizeof(DpTreeFollow));
		f->attached = attached;
		f->w = dp_tree_writer(attached);
		f->next = *follow;
		*follow = f;
	}
}

void
dp_tree_follow(DpTree *tree, DpTreeFollow **follow, const DpValue *chain, int n, bool refresh)
{
	DpTreeFollow *f;

	open_all(tree, follow);
	for (f = *follow; f != NULL; f = f->next)
	{
		if (refresh)
			dp_writer_refresh(f->w);
		if (f->attached->chained)
			follow_one(f, &chain[n - 1], chain, n, false);
	}
}

/*
 * Processes the documents attached to a node; other: they are attached to the last one of the
 * chain now.
 */
static void
follow_one(DpTreeFollow *f, const DpValue *on, const DpValue *chain, int n, bool other)
{
	MemoryContext context =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns attached", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	bool found;
	bool left = false; /* a note */
	List *refs = NIL;
	ListCell *lc;

	for (found = dp_tree_find_children(f->attached, f->w, on); found; found = dp_writer_next(f->w))
	{
		DpRowRef *ref = palloc(sizeof(DpRowRef));

		dp_writer_ref(f->w, ref);
		refs = lappend(refs, ref);
	}
	foreach(lc, refs)
	{
		struct varlena *doc;
		struct varlena *was;
		DpLockResult locked;
		DpValue parent;

		CHECK_FOR_INTERRUPTS();
		if (!dp_writer_fetch(f->w, lfirst(lc)))
			continue;
		/* if a document only follows, leave it to the holder of its lock */
		dp_writer_leave(f->w, !other);
		locked = dp_writer_lock(f->w, LockTupleNoKeyExclusive);
		if (locked == DP_LOCK_DEADLOCK && !left)
			dp_note(f->attached->decl, on, f->attached->decl->target);
		left |= locked == DP_LOCK_DEADLOCK;
		if (locked == DP_LOCK_DEADLOCK || locked == DP_LOCK_DELETED)
			continue;
		was = doc = dp_writer_document(f->w);
		if (doc == NULL || !dp_tree_parent(f->attached, doc, &parent) ||
			dp_value_compare(&parent, on) != 0)
			continue; /* attached to another node now */
		if (other)
			doc = dp_tree_set_parent(f->attached, doc, n > 0 ? &chain[n - 1] : NULL);
		if (n > 0)
			doc = dp_tree_arrange(f->attached, doc, chain, n, NULL);
		else
			doc = dp_tree_strip(f->attached, doc);
		(void) dp_writer_update(f->w, dp_tree_guarded(f->attached, was, doc, NULL, 0));
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/*
 * Processes the documents attached to a node because of a note. While another transaction has
 * locked the node the note stays: its changes are not known.
 */
void
dp_tree_attach_process_note(DpDecl *decl, const DpValue *id)
{
	DpTree *attached = dp_tree(decl);
	DpTree *tree = dp_tree_of_attached(attached);
	DpWriter *nodes = dp_tree_writer(tree);
	DpTreeReading reading = { tree, nodes };
	DpTreeFollow follow = { attached, dp_tree_writer(attached), NULL };
	struct varlena *node;
	DpValue *chain;
	bool left = false;
	int n;

	dp_writer_refresh(nodes);
	dp_writer_refresh(follow.w);
	dp_writer_leave(nodes, true);
	(void) dp_tree_lock_id(tree, nodes, id, LockTupleShare, &left);
	if (left)
		dp_note(decl, id, tree->decl->target);
	dp_writer_refresh(nodes);
	node = dp_tree_fetch(&reading, id);
	chain = node != NULL ? dp_tree_chain(tree, node, true, dp_tree_fetch, &reading, &n) : NULL;
	if (chain != NULL && attached->chained)
		follow_one(&follow, id, chain, n, false);
	else if (chain == NULL && dp_tree_find_children(attached, follow.w, id))
		ereport(ERROR, (errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
						errmsg("node %s does not exist in table \"%s\"", dp_value_to_message(id),
							   dp_relation_name(tree->decl->target)),
						errdetail("Documents of table \"%s\" are attached to its nodes.",
								  dp_relation_name(decl->target))));
	dp_writer_close(follow.w);
	dp_writer_close(nodes);
}

void
dp_tree_follow_deleted(DpTree *tree, DpTreeFollow **follow, const DpValue *id, DpTreeDelete rule,
					   const DpValue *chain, int n)
{
	DpTreeFollow *f;

	open_all(tree, follow);
	for (f = *follow; f != NULL; f = f->next)
	{
		bool found;

		dp_writer_refresh(f->w);
		switch (rule)
		{
			case DP_TREE_RESTRICT:
				if (dp_tree_find_children(f->attached, f->w, id))
					ereport(
						ERROR,
						(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
						 errmsg("documents in table \"%s\" are attached to node %s of table \"%s\"",
								dp_relation_name(f->attached->decl->target),
								dp_value_to_message(id), dp_relation_name(tree->decl->target)),
						 errdetail("The tree is declared with on_delete => 'restrict'.")));
				break;
			case DP_TREE_CASCADE:
				for (found = dp_tree_find_children(f->attached, f->w, id); found;)
				{
					struct varlena *doc;
					DpValue parent;

					if (dp_writer_lock(f->w, LockTupleExclusive) != DP_LOCK_DELETED &&
						(doc = dp_writer_document(f->w)) != NULL &&
						dp_tree_parent(f->attached, doc, &parent) &&
						dp_value_compare(&parent, id) == 0)
						(void) dp_writer_delete(f->w);
					found = dp_writer_next(f->w);
				}
				break;
			case DP_TREE_REPARENT:
				follow_one(f, id, chain, n, true);
				break;
		}
	}
}

void
dp_tree_follow_end(DpTreeFollow **follow)
{
	while (*follow != NULL)
	{
		DpTreeFollow *f = *follow;

		*follow = f->next;
		dp_writer_close(f->w);
		pfree(f);
	}
}

/* Sorts by the nodes to which they are attached. */
static int
compare_saved(const void *a, const void *b)
{
	return dp_value_compare(&((const DpTreeSaved *) a)->parent, &((const DpTreeSaved *) b)->parent);
}
