/*
 * trigger.c
 *		The document versioning pattern: its triggers, and adding a revision.
 *
 * BEFORE UPDATE, for each row: refuses a document with an old revision, leaves an
 * otherwise unchanged one as it was, and gives any other the next number.  INSERT
 * stores the document unchanged, so that EXCLUDED of an upsert is what the user
 * wrote; a document without a number is at revision 1, so a save without one is
 * based on the inserted document.
 *
 * AFTER INSERT, UPDATE or DELETE, for each row: records the revision, with the
 * difference to the former document.  Triggers may be called in another order than
 * the row was written (an earlier trigger may write it again), so the numbers are
 * read from documents.  A new document with an impossible number, or without one
 * if the key had revisions before, is written again.
 *
 * BEFORE INSERT, for each statement: records it, because it has not read the rows
 * that it updates instead.
 *
 * BEFORE TRUNCATE, for each table with rows: records all as deleted.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "executor/spi.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "bson/diff.h"
#include "bson/edit.h"
#include "kit/rows/later.h"
#include "kit/rows/write.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/statement.h"
#include "kit/trigger.h"
#include "patterns/versioning/versioning.h"

/* Whole documents are kept at every so many revisions: more for large ones */
#define LEAST_DISTANCE 4
#define BYTES_PER_REVISION 64

/* A document whose number is being put right */
typedef struct Correction
{
	Oid table;
	const DpKey *key;
	int64 revision;
	char operation;
	struct varlena *before;
	bool recorded;
	struct Correction *outer;
} Correction;

static Correction *correcting = NULL;

/* A statement that inserts into a table, and may update its rows as well */
typedef struct Inserting
{
	DpState state;
	Oid table;
	DpStatement statement;
} Inserting;

static DpStates inserting; /* of Inserting */

/* Beyond this number of keys an UPDATE no longer remembers what it found */
#define MANY_IRREGULAR 64

/*
 * A statement that updates documents.  Its BEFORE triggers look whether the revisions before are
 * recorded as those will be that the AFTER triggers add, so that these need not.
 */
typedef struct Updating
{
	DpState state; /* its context has the keys */
	Oid revisions;
	DpStatement statement;
	int nirregular;
	DpKey irregular[MANY_IRREGULAR]; /* keys for which it is not so */
} Updating;

static DpStates updating; /* of Updating */

static void note_insert(DpVersioning *v);
static bool has_read_nothing(DpVersioning *v);
static bool is_own_write(DpVersioning *v);
static void require_current(DpVersioning *v, const DpKey *key, int64 number, struct varlena *after);
static bool differs_elsewhere(List *paths, struct varlena *a, struct varlena *b);
static bool only_kept_differs(DpVersioning *v, struct varlena *a, struct varlena *b);
static bool leaves_out_kept(DpVersioning *v, const DpKey *key, int64 revision);
static bool is_part_of_write(DpVersioning *v, const DpKey *key, int64 revision);
static HeapTuple before_update(DpVersioning *v, TriggerData *trigdata);
static void after_insert(DpVersioning *v, TriggerData *fired, HeapTuple tuple, const DpKey *key);
static void after_update(DpVersioning *v, TriggerData *trigdata);
static int64
stored_number(DpVersioning *v, const DpKey *key, struct varlena *doc, bool *missing, bool *regular);
static bool is_regular(DpVersioning *v, const DpRevision *r);
static Updating *updating_find(DpVersioning *v);
static void note_update(DpVersioning *v, const DpKey *key, bool regular);
static bool was_regular(DpVersioning *v, const DpKey *key);
static bool is_superseded(HeapTuple tuple);
static Correction *correction_of(DpVersioning *v, const DpKey *key);
static void trim(DpVersioning *v, const DpKey *key, int64 revision);
static void
versioning_record(DpVersioning *v, const TriggerData *fired, const DpKey *key, int64 revision,
				  char operation, struct varlena *before, struct varlena *after);

/*
 * versioning_trigger(): the triggers of the pattern on its table.
 */
DP_FUNCTION(dp_versioning_trigger);
Datum
dp_versioning_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, "versioning",
									DP_BEFORE_ROW(DP_UPDATE) | DP_AFTER_ROW(DP_WRITE) |
										DP_BEFORE_STATEMENT(DP_INSERT | DP_TRUNCATE));
	DpVersioning *v;
	TupleDesc desc;
	DpKey key;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	v = dp_versioning(decl);
	if (!TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
	{
		if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
			note_insert(v);
		else if (trigdata->tg_relation->rd_rel->relkind == RELKIND_RELATION)
			dp_versioning_truncated(v, trigdata->tg_relation);
		return PointerGetDatum(NULL);
	}
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(before_update(v, trigdata));

	dp_versioning_require(v);
	desc = RelationGetDescr(trigdata->tg_relation);
	if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
		after_update(v, trigdata);
	else
	{
		dp_key_of_tuple(decl, trigdata->tg_trigtuple, desc, &key);
		if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
			after_insert(v, trigdata, trigdata->tg_trigtuple, &key);
		else
			dp_versioning_deleted(v, trigdata,
								  dp_tuple_document(v->decl, trigdata->tg_trigtuple, desc), &key);
	}
	return PointerGetDatum(NULL);
}

/*
 * Returns the number of a document that is about to be inserted, or was. *exists: the key has
 * revisions. Unless the newest is a deletion, that of the former document is still to be recorded.
 */
int64
dp_versioning_next(DpVersioning *v, const DpKey *key, bool *exists)
{
	DpRevisionStore store;
	SnapshotData latest;
	DpRevision r;
	int64 number = 1;

	InitDirtySnapshot(latest);
	dp_revisions_open(&store, v, &latest);
	*exists = dp_revisions_last(&store, key, &r);
	if (*exists)
	{
		dp_versioning_check_number(r.revision);
		dp_versioning_check_number(r.revision + 1);
		number = r.operation == DP_VERSION_DELETE ? r.revision + 1 : r.revision + 2;
	}
	dp_revisions_close(&store);
	return number;
}

/*
 * The number of a document that is there without one of its own: that of its
 * first revision.  *missing: it has not been recorded yet.  *regular: see Updating, set if the
 * number is not its own.
 */
static int64
stored_number(DpVersioning *v, const DpKey *key, struct varlena *doc, bool *missing, bool *regular)
{
	DpRevisionStore store;
	SnapshotData latest;
	DpRevision r;
	int64 number = 1;

	*missing = false;
	if (doc != NULL && dp_versioning_number(v, doc, &number))
		return number;
	InitDirtySnapshot(latest);
	dp_revisions_open(&store, v, &latest);
	*missing = true;
	if (dp_revisions_last(&store, key, &r))
	{
		number = r.revision + 1;
		if (r.operation != DP_VERSION_DELETE)
		{
			*missing = false;
			number = r.revision;
			*regular = number == 1 && is_regular(v, &r);

			/*
			 * A document inserted after this deletion may have been recorded first: then it has
			 * left a number for the deletion.
			 */
			if (r.operation == DP_VERSION_INSERT && number > 2 &&
				!dp_revisions_find(&store, key, number - 1, &r) &&
				dp_revisions_find(&store, key, number - 2, &r))
				number -= 2;
		}
	}
	dp_revisions_close(&store);
	return number;
}

/* Whether a revision leaves out what the next one will. */
static bool
is_regular(DpVersioning *v, const DpRevision *r)
{
	return dp_versioning_left_out(v) == NIL ||
		   (r->kept != NULL &&
			dp_same_bytes(DatumGetTextPP(PointerGetDatum(r->kept)), v->left_out_list));
}

/* What is known of the statement whose triggers fire, or NULL. */
static Updating *
updating_find(DpVersioning *v)
{
	DpStatement now = dp_statement_now();
	ListCell *lc;

	foreach(lc, updating.list)
	{
		Updating *u = lfirst(lc);

		if (u->revisions == v->revisions && u->statement.depth == now.depth &&
			u->statement.command == now.command)
			return u;
	}
	return NULL;
}

static void
note_update(DpVersioning *v, const DpKey *key, bool regular)
{
	Updating *u = updating_find(v);

	if (u == NULL)
	{
		DpStatement now = dp_statement_now();

		for (int i = list_length(updating.list) - 1; i >= 0; i--)
		{
			u = list_nth(updating.list, i);
			if (u->statement.depth > now.depth ||
				(u->statement.depth == now.depth && u->statement.command != now.command))
				dp_state_end(&updating, u); /* it has ended */
		}
		u = dp_state_begin(&updating, sizeof(Updating));
		u->revisions = v->revisions;
		u->statement = now;
		u->state.context = AllocSetContextCreate(TopTransactionContext, "docpatterns revisions",
												 ALLOCSET_SMALL_SIZES);
	}
	if (!regular)
	{
		if (u->nirregular < MANY_IRREGULAR)
		{
			MemoryContext old = MemoryContextSwitchTo(u->state.context);

			dp_key_copy(v->decl, key, &u->irregular[u->nirregular]);
			MemoryContextSwitchTo(old);
		}
		u->nirregular = Min(u->nirregular + 1, MANY_IRREGULAR + 1);
	}
}

/* Whether the BEFORE trigger found the revision of an updated document regular. */
static bool
was_regular(DpVersioning *v, const DpKey *key)
{
	const Updating *u = updating_find(v);

	if (u == NULL || u->nirregular > MANY_IRREGULAR)
		return false;
	for (int i = 0; i < u->nirregular; i++)
	{
		if (dp_key_identical(v->decl, &u->irregular[i], key))
			return false;
	}
	return true;
}

/* ---------------------------------------------------------------- before */

/*
 * Called before a statement that inserts: it has not read the rows that it updates instead (ON
 * CONFLICT, MERGE).
 */
static void
note_insert(DpVersioning *v)
{
	DpStatement now = dp_statement_now();
	Inserting *note;
	ListCell *lc;

	if (!v->optimistic)
		return;
	foreach(lc, inserting.list)
	{
		note = lfirst(lc);
		if (note->statement.depth > now.depth ||
			(note->statement.depth == now.depth && note->statement.command != now.command))
		{
			dp_state_end(&inserting, note); /* it has ended */
			break;
		}
	}
	note = dp_state_begin(&inserting, sizeof(Inserting));
	note->table = v->decl->target;
	note->statement = now;
}

/* Returns whether the statement that updates the row is an INSERT or MERGE. */
static bool
has_read_nothing(DpVersioning *v)
{
	DpStatement now = dp_statement_now();
	ListCell *lc;

	foreach(lc, inserting.list)
	{
		const Inserting *note = lfirst(lc);

		if (note->table == v->decl->target && note->statement.depth == now.depth &&
			note->statement.command == now.command)
			return true;
	}
	return false;
}

/* Returns whether a pattern writes fields that it keeps: it has read the present row. */
static bool
is_own_write(DpVersioning *v)
{
	return dp_marked_derived(v->decl->target, NULL) ||
		   dp_marked(v->decl->target, NULL) == DP_MARK_INTERNAL;
}

/*
 * Raises T_R_SERIALIZATION_FAILURE unless the new document of a key is based on the present one,
 * which has that number. A document without a number is as it was inserted: it becomes visible
 * with the number 1.
 */
static void
require_current(DpVersioning *v, const DpKey *key, int64 number, struct varlena *after)
{
	int64 given = 1;
	bool has_number = dp_versioning_number(v, after, &given);
	const char *field = dp_decl_text(v->decl, "revision_field");

	if (!v->optimistic || given == number ||
		(!has_number && (has_read_nothing(v) || is_own_write(v))))
		return;
	ereport(
		ERROR,
		(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
		 errmsg("document was changed since it was read"),
		 has_number
			 ? errdetail("Document %s of table \"%s\" is at revision " INT64_FORMAT
						 "; the written document is based on revision " INT64_FORMAT ".",
						 dp_key_to_text(v->decl, key), dp_relation_name(v->decl->target), number,
						 given)
			 : errdetail("Document %s of table \"%s\" is at revision " INT64_FORMAT
						 "; the written document has no revision, like a new one.",
						 dp_key_to_text(v->decl, key), dp_relation_name(v->decl->target), number),
		 errhint(
			 "Read the document again, or copy \"%s\" from the stored document to write without this check.",
			 field)));
}

/* Whether the first field in which two documents differ is in both not one of the paths. */
static bool
differs_elsewhere(List *paths, struct varlena *a, struct varlena *b)
{
	DpIter left;
	DpIter right;
	DpElement x;
	DpElement y;
	ListCell *lc;

	dp_iter_init(&left, DP_DOC_DATA(a), DP_DOC_SIZE(a));
	dp_iter_init(&right, DP_DOC_DATA(b), DP_DOC_SIZE(b));
	do
	{
		if (!dp_iter_next(&left, &x) || !dp_iter_next(&right, &y))
			return false;
	} while (x.namelen == y.namelen && memcmp(x.name, y.name, x.namelen) == 0 &&
			 dp_value_identical(&x.value, &y.value));
	foreach(lc, paths)
	{
		const DpPathStep *step = &((DpPath *) lfirst(lc))->steps[0];

		if ((step->namelen == x.namelen && memcmp(step->name, x.name, x.namelen) == 0) ||
			(step->namelen == y.namelen && memcmp(step->name, y.name, y.namelen) == 0))
			return false;
	}
	return true;
}

/* Whether two documents are the same but for what patterns keep. */
static bool
only_kept_differs(DpVersioning *v, struct varlena *a, struct varlena *b)
{
	List *paths = dp_versioning_left_out(v);

	return paths != NIL && !differs_elsewhere(paths, a, b) &&
		   dp_same_bytes(dp_versioning_bare(paths, a), dp_versioning_bare(paths, b));
}

/*
 * Whether the row may change in what patterns keep while it stays at a revision:
 * not if that was recorded when they kept something else.  One that is not
 * recorded yet will be as it should.
 */
static bool
leaves_out_kept(DpVersioning *v, const DpKey *key, int64 revision)
{
	DpRevisionStore store;
	SnapshotData latest;
	DpRevision r;
	bool right;

	InitDirtySnapshot(latest);
	dp_revisions_open(&store, v, &latest);
	right = !dp_revisions_find(&store, key, revision, &r);
	if (!right && r.kept != NULL)
	{
		text *list = DatumGetTextPP(PointerGetDatum(r.kept));

		right = dp_same_bytes(list, v->left_out_list);
	}
	dp_revisions_close(&store);
	return right;
}

/*
 * Whether a pattern moves something out of a document while the statement is
 * under way that wrote it: that will be recorded as it is then.
 */
static bool
is_part_of_write(DpVersioning *v, const DpKey *key, int64 revision)
{
	DpRevisionStore store;
	SnapshotData latest;
	DpRevision r;
	bool recorded;

	if (dp_marked(v->decl->target, NULL) != DP_MARK_INTERNAL)
		return false;
	InitDirtySnapshot(latest);
	dp_revisions_open(&store, v, &latest);
	recorded = dp_revisions_find(&store, key, revision, &r);
	dp_revisions_close(&store);
	return !recorded;
}

static HeapTuple
before_update(DpVersioning *v, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *before = dp_tuple_document(v->decl, trigdata->tg_trigtuple, desc);
	struct varlena *after = dp_tuple_document(v->decl, trigdata->tg_newtuple, desc);
	struct varlena *same;
	DpKey old_key;
	DpKey new_key;
	bool key_changes;
	bool missing;
	bool regular = false;
	bool has_old = false;
	int64 number;
	int64 given;

	dp_key_of_tuple(v->decl, trigdata->tg_trigtuple, desc, &old_key);
	if (correction_of(v, &old_key) != NULL)
		return trigdata->tg_newtuple;
	if (after == NULL)
		return trigdata->tg_newtuple; /* the table lets the column be null */
	dp_key_of_tuple(v->decl, trigdata->tg_newtuple, desc, &new_key);
	key_changes = !dp_key_identical(v->decl, &old_key, &new_key);
	if (before != NULL && !key_changes && dp_same_bytes(before, after))
		return trigdata->tg_newtuple;

	dp_versioning_require(v);
	number = stored_number(v, &old_key, before, &missing, &regular);
	if (before != NULL)
		require_current(v, &old_key, number, after);
	else
		(void) dp_versioning_number(v, after, &given); /* raises an error for an invalid number */

	if (key_changes)
		number = dp_versioning_next(v, &new_key, &missing);
	else
	{
		/* but for its number the same? */
		if (before != NULL)
		{
			DpValue old_number;
			DpValue new_number;

			has_old = dp_path_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), v->field, &old_number);
			if (has_old &&
				dp_path_find(DP_DOC_DATA(after), DP_DOC_SIZE(after), v->field, &new_number) &&
				dp_value_identical(&old_number, &new_number))
				same = after; /* in its number it does not differ */
			else if (has_old)
				same =
					dp_document_set(DP_DOC_DATA(after), DP_DOC_SIZE(after), v->field, &old_number);
			else
			{
				same = dp_document_unset(DP_DOC_DATA(after), DP_DOC_SIZE(after), v->field);
				if (same == NULL)
					same = after;
			}
			if (dp_same_bytes(before, same) ||
				(only_kept_differs(v, before, same) && leaves_out_kept(v, &old_key, number)) ||
				is_part_of_write(v, &old_key, number))
			{
				return dp_tuple_with_document(v->decl, trigdata->tg_newtuple, desc, same);
			}
			if (has_old && dp_versioning_left_out(v) != NIL)
				regular = leaves_out_kept(v, &old_key, number);
			if (!has_old || dp_versioning_left_out(v) != NIL)
				note_update(v, &old_key, regular);
		}
		dp_versioning_check_number(number);
		number++;
	}
	return dp_tuple_with_document(v->decl, trigdata->tg_newtuple, desc,
								  dp_versioning_with_number(v, after, number,
															before != NULL ? before : after));
}

/* ---------------------------------------------------------------- after */

/*
 * Records an inserted document. One that was written again before this trigger was called has been
 * recorded by that, unless it was inserted with a number.
 */
static void
after_insert(DpVersioning *v, TriggerData *fired, HeapTuple tuple, const DpKey *key)
{
	struct varlena *doc = dp_tuple_document(v->decl, tuple, RelationGetDescr(fired->tg_relation));
	int64 number;
	int64 given = 0;
	bool has_number;
	bool exists;

	if (doc == NULL)
		return;
	has_number = dp_versioning_number(v, doc, &given);
	if (!has_number)
		dp_versioning_check_path(v, doc);
	if (is_superseded(tuple))
	{
		DpRevisionStore store;
		SnapshotData latest;
		DpRevision r;
		bool recorded;

		InitDirtySnapshot(latest);
		dp_revisions_open(&store, v, &latest);
		exists = has_number && dp_revisions_find(&store, key, given, &r);
		recorded = has_number
					   ? !exists && dp_revisions_find(&store, key, given + 1, &r)
					   : dp_revisions_last(&store, key, &r) && r.operation != DP_VERSION_DELETE;
		dp_revisions_close(&store);
		if (exists || (recorded && !has_number))
			return;
		if (recorded)
		{
			versioning_record(v, fired, key, given, DP_VERSION_INSERT, NULL, doc);
			return;
		}
		/* patterns have written fields that they keep, or it was deleted */
		doc = dp_versioning_current(v, key);
		if (doc == NULL)
			return;
		has_number = dp_versioning_number(v, doc, &given);
	}
	else if ((!has_number || given == 1) &&
			 dp_writes_later(fired, v->revisions, dp_versioning_write, v))
	{
		/* whether the key had revisions is found out then */
		versioning_record(v, fired, key, 1, DP_VERSION_INSERT, NULL, doc);
		return;
	}
	number = dp_versioning_next(v, key, &exists);
	if (has_number ? given != number : number > 1)
		dp_versioning_correct(v, key, number, DP_VERSION_INSERT, NULL);
	else
		versioning_record(v, fired, key, number, DP_VERSION_INSERT, NULL, doc);
}

/* The document of that key as it is now; NULL if there is none. */
struct varlena *
dp_versioning_current(DpVersioning *v, const DpKey *key)
{
	DpWriter *w = dp_writer_open(v->decl->target, v->decl->doc_column, 0, v->decl->name);
	struct varlena *doc = NULL;

	dp_writer_refresh(w);
	if (dp_writer_find(w, dp_lookup_primary(v->decl->target, CurrentMemoryContext), key->values))
		doc = dp_writer_document(w);
	if (doc != NULL)
		doc = dp_document_to_varlena(DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
	dp_writer_close(w);
	return doc;
}

/* A document has changed, or its row. */
static void
after_update(DpVersioning *v, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *before = dp_tuple_document(v->decl, trigdata->tg_trigtuple, desc);
	struct varlena *after = dp_tuple_document(v->decl, trigdata->tg_newtuple, desc);
	DpKey old_key;
	DpKey new_key;
	Correction *c;
	int64 number;
	int64 old_number = 0;
	bool had_number;
	bool missing;
	bool regular;

	dp_key_of_tuple(v->decl, trigdata->tg_trigtuple, desc, &old_key);
	dp_key_of_tuple(v->decl, trigdata->tg_newtuple, desc, &new_key);
	c = correction_of(v, &old_key);
	if (c != NULL)
	{
		/* its state after all other triggers */
		if (after != NULL)
			versioning_record(v, trigdata, &new_key, c->revision, c->operation, c->before, after);
		c->recorded = true;
		return;
	}
	if (!dp_key_identical(v->decl, &old_key, &new_key))
	{
		dp_versioning_deleted(v, trigdata, before, &old_key);
		after_insert(v, trigdata, trigdata->tg_newtuple, &new_key);
		return;
	}
	if (before == NULL || after == NULL)
	{
		if (before != NULL)
			dp_versioning_deleted(v, trigdata, before, &old_key);
		else if (after != NULL)
			after_insert(v, trigdata, trigdata->tg_newtuple, &new_key);
		return;
	}
	if (dp_same_bytes(before, after))
		return;
	had_number = dp_versioning_number(v, before, &old_number);
	if (had_number == dp_versioning_number(v, after, &number) &&
		(!had_number || number == old_number) &&
		(only_kept_differs(v, before, after) ||
		 is_part_of_write(v, &old_key, stored_number(v, &old_key, before, &missing, &regular))))
		return;

	if (had_number)
		number = old_number;
	else if (dp_versioning_number(v, after, &number) && number == 2 && was_regular(v, &old_key))
		number = 1;
	else
	{
		/* the first revision, which may not have been recorded */
		DpRevisionStore store;
		SnapshotData latest;
		DpRevision r;

		if (dp_versioning_number(v, after, &number) && number > 1)
			number--;
		else
			number = stored_number(v, &old_key, before, &missing, &regular);
		InitDirtySnapshot(latest);
		dp_revisions_open(&store, v, &latest);
		missing = !dp_revisions_find(&store, &old_key, number, &r);
		dp_revisions_close(&store);
		if (missing)
			versioning_record(v, trigdata, &old_key, number, DP_VERSION_INSERT, NULL, before);
	}
	dp_versioning_check_number(number);
	if (is_superseded(trigdata->tg_newtuple))
	{
		/*
		 * by a pattern, see is_part_of_write(), or by another change, which has a number of its own
		 */
		struct varlena *doc = dp_versioning_current(v, &old_key);
		int64 current;

		if (doc != NULL && dp_versioning_number(v, doc, &current) && current == number + 1)
			after = doc;
	}
	if (!dp_versioning_number(v, after, &old_number) || old_number != number + 1)
		dp_versioning_correct(v, &old_key, number + 1, DP_VERSION_UPDATE, before);
	else
		versioning_record(v, trigdata, &old_key, number + 1, DP_VERSION_UPDATE, before, after);
}

/* Records a deleted document. */
void
dp_versioning_deleted(DpVersioning *v, const TriggerData *fired, struct varlena *doc,
					  const DpKey *key)
{
	bool missing;
	bool regular;
	int64 number;

	if (doc == NULL)
		return;
	number = stored_number(v, key, doc, &missing, &regular);
	dp_versioning_check_number(number);
	if (missing)
		versioning_record(v, fired, key, number, DP_VERSION_INSERT, NULL, doc);
	versioning_record(v, fired, key, number + 1, DP_VERSION_DELETE, doc, NULL);
}

/* Whether this transaction has written the row again, or deleted it. */
static bool
is_superseded(HeapTuple tuple)
{
	return (tuple->t_data->t_infomask & HEAP_XMAX_INVALID) == 0 &&
		   !HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_data->t_infomask) &&
		   TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(tuple->t_data));
}

int64
dp_versioning_adopt(DpVersioning *v, const DpKey *key, struct varlena *doc)
{
	int64 given = 0;
	bool exists;
	bool has_number = dp_versioning_number(v, doc, &given);
	int64 number = dp_versioning_next(v, key, &exists);

	if (exists && (has_number ? given != number : number > 1))
	{
		dp_versioning_correct(v, key, number, DP_VERSION_INSERT, NULL);
		return number;
	}
	if (has_number)
		number = given;
	versioning_record(v, NULL, key, number, DP_VERSION_INSERT, NULL, doc);
	return number;
}

/*
 * Adds a revision. before is the document of the previous number, after its own one, NULL without
 * a document.
 */
static void
versioning_record(DpVersioning *v, const TriggerData *fired, const DpKey *key, int64 revision,
				  char operation, struct varlena *before, struct varlena *after)
{
	List *paths = dp_versioning_left_out(v);
	struct varlena *delta = NULL;
	struct varlena *previous = NULL;
	bool same = true;

	if (after != NULL)
		after = dp_versioning_bare(paths, after);
	if (before != NULL && paths != NIL)
	{
		/* if fewer fields are kept now, the difference must include the others */
		same = (operation == DP_VERSION_UPDATE && fired != NULL && was_regular(v, key)) ||
			   leaves_out_kept(v, key, revision - 1);
		if (same)
			before = dp_versioning_bare(paths, before);
	}
	if (before != NULL && after != NULL && !v->full && same)
	{
		int distance = LEAST_DISTANCE;

		while (distance < DP_VERSION_DISTANCE &&
			   DP_DOC_SIZE(before) >= 2 * distance * BYTES_PER_REVISION)
			distance *= 2;
		if (revision % distance != 0)
		{
			delta = dp_diff_make(DP_DOC_DATA(after), DP_DOC_SIZE(after), DP_DOC_DATA(before),
								 DP_DOC_SIZE(before));
			if (delta != NULL &&
				VARSIZE_ANY_EXHDR(delta) > DP_DOC_SIZE(before) - DP_DOC_SIZE(before) / 4)
				delta = NULL;
		}
	}
	if (before != NULL && delta == NULL)
		previous = before;
	if (unlikely(dp_versioning_clock_behind(v, key)) && revision > 1)
	{
		DpRevisionStore store;
		SnapshotData latest;
		DpRevision r;
		TimestampTz since;

		InitDirtySnapshot(latest);
		dp_revisions_open(&store, v, &latest);
		if (dp_revisions_find(&store, key, revision - 1, &r) &&
			dp_revisions_since(&store, r.change, &since, NULL, NULL))
			dp_versioning_later_than(v, key, since);
		dp_revisions_close(&store);
	}
	if (v->keep > 0 && revision > v->keep)
		fired = NULL;
	dp_revisions_add(v, fired, key, revision, dp_versioning_change(v, key), operation, delta,
					 previous, after);
	if (delta != NULL)
		pfree(delta);
	if (v->keep > 0 && revision > v->keep)
		trim(v, key, revision);
}

/*
 * The document in the row has another number than its revision: it is written
 * with the right one.  The trigger that this calls records it.
 */
void
dp_versioning_correct(DpVersioning *v, const DpKey *key, int64 revision, char operation,
					  struct varlena *before)
{
	Correction c = { v->decl->target, key, revision, operation, before, false, correcting };
	DpWriter *w;

	correcting = &c;
	PG_TRY();
	{
		w = dp_writer_open(v->decl->target, v->decl->doc_column, 0, v->decl->name);
		dp_writer_refresh(w);
		if (dp_writer_find(w, dp_lookup_primary(v->decl->target, CurrentMemoryContext),
						   key->values) &&
			dp_writer_lock(w, LockTupleNoKeyExclusive) != DP_LOCK_DELETED)
		{
			struct varlena *doc = dp_writer_document(w);

			(void) dp_writer_update(w, dp_versioning_with_number(v, doc, revision, doc));
		}
		dp_writer_close(w);
	}
	PG_FINALLY();
	{
		correcting = c.outer;
	}
	PG_END_TRY();
	if (!c.recorded)
		dp_write_refused(v->decl, v->decl->target);
}

/* The correction that is under way for a row, if there is one. */
static Correction *
correction_of(DpVersioning *v, const DpKey *key)
{
	Correction *c;

	for (c = correcting; c != NULL; c = c->outer)
	{
		if (c->table == v->decl->target && !c->recorded && dp_key_identical(v->decl, c->key, key))
			return c;
	}
	return NULL;
}

/*
 * Deletes the oldest revisions if only some are kept, except while a function rewrites them; then
 * the next write deletes them.
 */
static void
trim(DpVersioning *v, const DpKey *key, int64 revision)
{
	Datum values[INDEX_MAX_KEYS + 1];
	SPIPlanPtr plan;
	int n = v->decl->nkeys;

	if (!dp_versioning_trim_begin(v))
		return;
	memcpy(values, key->values, n * sizeof(Datum));
	values[n] = Int64GetDatum(revision - v->keep);
	SPI_connect();
	plan = dp_statement(v->decl,
						"DELETE FROM {relation} WHERE {side key = $key}"
						" AND revision OPERATOR(pg_catalog.<=) {$key+1 int8}",
						v->revisions);
	if (dp_run_marked(v->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE, v->revisions,
					  v->decl->name, DP_MARK_INTERNAL) > 0)
	{
		values[n] = Int64GetDatum(revision - v->keep + 1);
		plan = dp_statement(v->decl,
							"UPDATE {relation} SET delta = '', previous = NULL"
							" WHERE {side key = $key}"
							" AND revision OPERATOR(pg_catalog.=) {$key+1 int8}"
							" AND operation OPERATOR(pg_catalog.<>) 'i'",
							v->revisions);
		(void) dp_run_marked(v->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_UPDATE,
							 v->revisions, v->decl->name, DP_MARK_INTERNAL);
	}
	SPI_finish();
	dp_versioning_trim_end(v);
}
