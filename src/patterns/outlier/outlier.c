/*
 * outlier.c
 *		The triggers of the outlier pattern.
 *
 * All call outlier_trigger(); those on INSERT have a condition that typical
 * documents do not meet.
 *
 * BEFORE INSERT OR UPDATE, for each row: corrects the flag and the count of
 * documents whose array stays in the document, so that these are not written
 * twice; with is_set removes duplicates.  Writes to no other row, because
 * INSERT .. ON CONFLICT may still become an UPDATE.
 *
 * AFTER INSERT, UPDATE or DELETE, for each row: moves elements between the
 * document and the store if necessary and then writes the document again.
 *
 * AFTER UPDATE OR TRUNCATE, for each statement: finishes changes of keys, and
 * empties the store.
 *
 * A row lock protects the row's chunks: writers of chunks hold it.  Writers of a
 * collection of extras lock the extras first.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "kit/adopt.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/statement.h"
#include "kit/trigger.h"
#include "kit/worker.h"
#include "patterns/outlier/outlier.h"

/* Flag of a move: elements were added after the kept ones */
#define MOVED_GROWN 0x01

static const char collected_links;

static HeapTuple outlier_before(DpOutlier *o, TriggerData *trigdata);
static HeapTuple outlier_enforce(DpOutlier *o, HeapTuple tuple, TupleDesc desc);
static void outlier_after(DpOutlier *o, TriggerData *trigdata);
static void drop_former(DpOutlier *o, const DpKey *key, struct varlena *inserted);
static void
outlier_changed(DpOutlier *o, struct varlena *before, struct varlena *after, const DpKey *key);
static void outlier_replaced(DpOutlier *o, TriggerData *trigdata, TupleDesc desc);
static struct varlena *link_of_row(DpOutlier *o, HeapTuple tuple, TupleDesc desc);
static int twins_in(DpOutlier *o, const DpKey *key);
static bool row_unchanged(DpOutlier *o, TriggerData *trigdata, TupleDesc desc);
static bool field_unchanged(const DpOutlier *o, struct varlena *before, struct varlena *after);
static bool array_grown(const DpOutlier *o, struct varlena *before, struct varlena *after);
static void *extras_leave(DpDecl *decl, const DpMove *move);
static void extras_arrive(DpDecl *decl, const DpMove *move, void *arg);
static void extras_correct(DpDecl *decl, const DpMove *move);
static void extras_drop_orphans(DpDecl *decl);
static void append_rest(DpOutlier *o, const DpKey *key, struct varlena *doc);
static bool array_begins_with(const DpValueList *longer, const DpValueList *shorter);
static int64 count_of(const DpOutlier *o, struct varlena *doc);

const DpSideMethods dp_outlier_side = { .leave = extras_leave,
										.arrive = extras_arrive,
										.correct = extras_correct,
										.drop_orphans = extras_drop_orphans };

/*
 * outlier_trigger(): the triggers of the pattern on its table.
 */
DP_FUNCTION(dp_outlier_trigger);
Datum
dp_outlier_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, "outlier",
									DP_BEFORE_ROW(DP_INSERT | DP_UPDATE) | DP_AFTER_ROW(DP_WRITE) |
										DP_AFTER_STATEMENT(DP_ANY));
	DpOutlier *o;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	o = dp_outlier(decl);
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(outlier_before(o, trigdata));
	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		outlier_after(o, trigdata);
	else
		dp_side_statement(decl, trigdata);
	return PointerGetDatum(NULL);
}

/*
 * outlier_irregular(doc, field, threshold, flag) -> bool: whether a new document needs the
 * trigger. Condition of the triggers on INSERT, so that typical documents do not queue them.
 */
DP_FUNCTION(dp_outlier_irregular);
Datum
dp_outlier_irregular(PG_FUNCTION_ARGS)
{
	struct
	{
		DpPath *field;
		DpPath *flag;
	} *cache = fcinfo->flinfo->fn_extra;
	bool constant;
	struct varlena *doc;
	DpPath *field;
	DpPath *flag;
	DpValue value;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		PG_RETURN_BOOL(false);
	if (likely(cache != NULL))
	{
		field = cache->field;
		flag = cache->flag;
	}
	else
	{
		text *field_text = PG_GETARG_TEXT_PP(1);
		text *flag_text = PG_GETARG_TEXT_PP(3);
		MemoryContext old;

		/* constants in the condition of a trigger, so parsed once */
		constant =
			get_fn_expr_arg_stable(fcinfo->flinfo, 1) && get_fn_expr_arg_stable(fcinfo->flinfo, 3);
		old = MemoryContextSwitchTo(constant ? fcinfo->flinfo->fn_mcxt : CurrentMemoryContext);
		field = dp_path_parse(VARDATA_ANY(field_text), VARSIZE_ANY_EXHDR(field_text));
		flag = dp_path_parse(VARDATA_ANY(flag_text), VARSIZE_ANY_EXHDR(flag_text));
		if (constant)
		{
			cache = palloc(sizeof(*cache));
			cache->field = field;
			cache->flag = flag;
			fcinfo->flinfo->fn_extra = cache;
		}
		MemoryContextSwitchTo(old);
	}

	doc = PG_GETARG_VARLENA_PP(0);
	if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), flag, &value))
		PG_RETURN_BOOL(true);
	PG_RETURN_BOOL(dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), field, &value) &&
				   value.type == DP_TYPE_ARRAY && dp_outlier_exceeds(&value, PG_GETARG_INT32(2)));
}

/*
 * outlier_link_trigger(): the triggers on a collection of extras. A write to the collection
 * changes the logical arrays of the documents to which its links refer. Links are collected for
 * each row; at the end of the statement each document is locked, in the order of keys, and
 * corrected.
 */
DP_FUNCTION(dp_outlier_link_trigger);
Datum
dp_outlier_link_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter_side(fcinfo, "outlier",
										 DP_AFTER_ROW(DP_WRITE) | DP_AFTER_STATEMENT(DP_ANY));
	Oid relid;
	DpOutlier *o;
	ListCell *lc;

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	relid = RelationGetRelid(trigdata->tg_relation);
	if (dp_marked(relid, decl->name) != DP_MARK_NONE)
		return PointerGetDatum(NULL);
	o = dp_outlier(decl);
	if (o->link == NULL)
		ereport(
			ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg(
				 "the outlier pattern \"%s\" on table \"%s\" does not keep its extras in a collection",
				 decl->name, dp_relation_name(decl->target))));

	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
	{
		TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
		struct varlena *link = link_of_row(o, trigdata->tg_trigtuple, desc);
		struct varlena *other = NULL;

		if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
		{
			other = link_of_row(o, trigdata->tg_newtuple, desc);

			/*
			 * An element that keeps its link changes neither count nor flag. Its document must not
			 * be locked: deleting the document locks it before its elements.
			 */
			if (link != NULL && other != NULL && !o->is_set &&
				VARSIZE_ANY(link) == VARSIZE_ANY(other) &&
				memcmp(link, other, VARSIZE_ANY(link)) == 0)
				return PointerGetDatum(NULL);
		}
		if (link != NULL)
			dp_collect(relid, &collected_links, link);
		if (other != NULL)
			dp_collect(relid, &collected_links, other);
		return PointerGetDatum(NULL);
	}

	SPI_connect();
	if (TRIGGER_FIRED_BY_TRUNCATE(trigdata->tg_event))
		dp_outlier_correct_flagged(o, false);
	foreach(lc, dp_collected(relid, &collected_links))
	{
		DpValue link = dp_value_of_varlena(lfirst(lc));
		DpKey key;
		int twins;

		CHECK_FOR_INTERRUPTS();
		if (!dp_key_of_value(o->decl, &link, &key) || dp_outlier_lock(o, &key, true, NULL) == NULL)
		{
			/* without the document, an error if a link to it is left */
			if (dp_outlier_link_used(o, lfirst(lc)))
				ereport(
					ERROR,
					(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
					 errmsg(
						 "a document in collection \"%s\" refers to a document that does not exist",
						 dp_relation_name(relid)),
					 errdetail(
						 "Its field \"%s\" is the key of the outlier pattern \"%s\" on table \"%s\".",
						 o->link, decl->name, dp_relation_name(decl->target))));
			continue;
		}
		/* the collection's primary key does not cover elements in documents */
		twins = twins_in(o, &key);
		dp_outlier_correct(o, &key, false);
		if (!TRIGGER_FIRED_BY_DELETE(trigdata->tg_event) && twins_in(o, &key) > twins)
			ereport(ERROR,
					(errcode(ERRCODE_UNIQUE_VIOLATION),
					 errmsg("a document in table \"%s\" already has an element with this _id",
							dp_relation_name(decl->target)),
					 errdetail("Key %s has it in field \"%s\".", dp_key_to_text(o->decl, &key),
							   dp_decl_text(o->decl, "field"))));
	}
	SPI_finish();
	return PointerGetDatum(NULL);
}

/*
 * BEFORE INSERT OR UPDATE of a row.
 */
static HeapTuple
outlier_before(DpOutlier *o, TriggerData *trigdata)
{
	bool is_update = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event);
	HeapTuple tuple = dp_trigger_row(trigdata);
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *given;
	struct varlena *doc;
	struct varlena *marked;
	struct varlena *old = NULL;
	DpKey key;
	DpValue array;
	uint32 n = 0;
	bool lost = false;

	switch (dp_marked(o->decl->target, o->decl->name))
	{
		case DP_MARK_NONE:
		case DP_MARK_DERIVED:
			if (is_update && row_unchanged(o, trigdata, desc))
				return tuple;
			break;
		case DP_MARK_INTERNAL:
			return outlier_enforce(o, tuple, desc);
		case DP_MARK_WHOLE:
		case DP_MARK_REPLACED:
			if (is_update)
				return tuple; /* arranged afterwards */
			break;            /* from another partition */
	}
	given = dp_tuple_document(o->decl, tuple, desc);
	if (given == NULL)
		return tuple;

	doc = given;
	marked = doc;
	if (is_update)
		old = dp_tuple_document(o->decl, trigdata->tg_trigtuple, desc);
	if (old != NULL && dp_outlier_flagged(o, old))
	{
		DpKey origin;

		dp_key_of_tuple(o->decl, trigdata->tg_trigtuple, desc, &key);
		dp_moves_origin(o->decl, &key, &origin);
		if (dp_outlier_has_extras(o, old, &origin))
		{
			DpMove *move = dp_moves_before(o->decl, trigdata);

			if (move != NULL && array_grown(o, old, doc))
				move->flags |= MOVED_GROWN;
			if (field_unchanged(o, old, doc))
				marked = dp_outlier_mark(o, doc, true, count_of(o, old));
			goto done; /* or elements move, afterwards */
		}
		/* keep the flag, which shows that extras are missing */
		lost = o->decl->held == NIL &&
			   !(dp_outlier_array(o, old, &array) && dp_outlier_exceeds(&array, o->keep));
	}
	if (!is_update)
	{
		dp_key_of_tuple(o->decl, tuple, desc, &key);
		/* or a trigger inserts an outlier again that is being deleted */
		if (dp_moves_arriving(o->decl, &key) ||
			(dp_trigger_depth() > 1 && !dp_moves_pending(o->decl, &key) &&
			 dp_outlier_has_extras(o, doc, &key)))
			return tuple;
	}

	if (dp_outlier_array(o, doc, &array))
	{
		n = o->count != NULL || o->is_set || dp_outlier_exceeds(&array, o->threshold)
				? dp_document_count(array.data, array.len)
				: 0;
		if (o->is_set && n > 1)
		{
			DpValueList list = { 0 };

			dp_values_add_array(&list, &array);
			if (dp_values_distinct(&list) > 0)
			{
				n = list.n;
				doc = dp_outlier_arrange(o, doc, &list, false, n);
			}
		}
	}
	marked = dp_outlier_mark(o, doc, lost || n > o->threshold,
							 lost ? count_of(o, old)
							 : dp_outlier_count_is_held(o, old != NULL ? old : doc) ? (int64) -1
																					: (int64) n);

done:
	return marked == given ? tuple : dp_tuple_with_document(o->decl, tuple, desc, marked);
}

/*
 * The pattern itself writes a document in its right form. Users' triggers may have changed other
 * fields.
 */
static HeapTuple
outlier_enforce(DpOutlier *o, HeapTuple tuple, TupleDesc desc)
{
	struct varlena *wanted = dp_marked_document(o->decl->target, o->decl->name);
	struct varlena *given = dp_tuple_document(o->decl, tuple, desc);
	struct varlena *doc = given;
	DpValue value;

	if (wanted == NULL || given == NULL || dp_same_bytes(given, wanted))
		return tuple;
	if (!field_unchanged(o, wanted, given))
	{
		if (dp_path_find(DP_DOC_DATA(wanted), DP_DOC_SIZE(wanted), o->field, &value))
			doc = dp_document_set(DP_DOC_DATA(given), DP_DOC_SIZE(given), o->field, &value);
		else
			doc = dp_document_unset(DP_DOC_DATA(given), DP_DOC_SIZE(given), o->field);
	}
	doc = dp_outlier_mark(o, doc, dp_outlier_flagged(o, wanted), count_of(o, wanted));
	return doc == given ? tuple : dp_tuple_with_document(o->decl, tuple, desc, doc);
}

/*
 * AFTER INSERT OR UPDATE OR DELETE of a row.
 */
static void
outlier_after(DpOutlier *o, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	DpMarkKind marked = dp_marked(o->decl->target, o->decl->name);
	struct varlena *before = NULL;
	struct varlena *after = NULL;
	HeapTuple tuple = NULL;
	DpMove *move;
	DpKey key;
	DpKey origin;
	DpValue array;
	bool had_extras = false;

	if (marked == DP_MARK_INTERNAL ||
		(marked == DP_MARK_NONE && TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event) &&
		 row_unchanged(o, trigdata, desc)))
		return;

	if (!TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		before = dp_tuple_document(o->decl, trigdata->tg_trigtuple, desc);
	if (!TRIGGER_FIRED_BY_DELETE(trigdata->tg_event))
	{
		tuple = dp_trigger_row(trigdata);
		after = dp_tuple_document(o->decl, tuple, desc);
	}

	if (before != NULL && dp_outlier_flagged(o, before))
	{
		dp_key_of_tuple(o->decl, trigdata->tg_trigtuple, desc, &key);
		dp_moves_origin(o->decl, &key, &origin);
		had_extras = dp_outlier_has_extras(o, before, &origin);
	}

	if (after == NULL)
	{
		if (had_extras && tuple == NULL)
			dp_side_after(o->decl, trigdata);
		else if (had_extras)
		{
			SPI_connect();
			dp_outlier_drop(o, &origin);
			SPI_finish();
		}
		return;
	}

	if (marked == DP_MARK_WHOLE && before != NULL)
		outlier_replaced(o, trigdata, desc);
	if (marked == DP_MARK_WHOLE || marked == DP_MARK_REPLACED)
	{
		/* there are no extras */
		dp_key_of_tuple(o->decl, tuple, desc, &key);
		if (dp_moves_stay(o->decl, &key) != NULL)
			return;
		if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
			drop_former(o, &key, after);
		SPI_connect();
		dp_outlier_correct(o, &key, false);
		SPI_finish();
		return;
	}

	if (had_extras)
	{
		DpKey to;

		dp_key_of_tuple(o->decl, tuple, desc, &to);
		if (!dp_key_identical(o->decl, &key, &to))
		{
			move = dp_moves_after(o->decl, trigdata, &key);
			move->flags = array_grown(o, before, after) ? MOVED_GROWN : 0;
			return;
		}
	}
	if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
	{
		dp_key_of_tuple(o->decl, tuple, desc, &key);
		if (dp_moves_arriving(o->decl, &key))
			return;
	}

	if (!had_extras)
	{
		/* a typical document */
		if (!dp_outlier_array(o, after, &array) || !dp_outlier_exceeds(&array, o->threshold))
			return;
		if (o->deferred)
		{
			dp_work_left(o->decl->target);
			return;
		}
	}
	dp_key_of_tuple(o->decl, tuple, desc, &key);
	move = dp_moves_stay(o->decl, &key);
	if (move == NULL && TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		drop_former(o, &key, after);
	if (move == NULL)
		outlier_changed(o, had_extras ? before : NULL, after, &key);
	else if (had_extras && array_grown(o, before, after))
		move->flags |= MOVED_GROWN;
}

/*
 * Deletes the extras of a former document with the key of an inserted one: an outer statement is
 * deleting it.  If the row was written since, they may be its own.
 */
static void
drop_former(DpOutlier *o, const DpKey *key, struct varlena *inserted)
{
	struct varlena *doc;

	if (dp_trigger_depth() < 2)
		return;
	SPI_connect();
	doc = dp_outlier_lock(o, key, true, NULL);
	if (doc != NULL && field_unchanged(o, inserted, doc))
		dp_outlier_drop(o, key);
	SPI_finish();
}

/*
 * Processes the array of an outlier that a write to the table changed, or of a document that
 * becomes an outlier (before is NULL).
 */
static void
outlier_changed(DpOutlier *o, struct varlena *before, struct varlena *after, const DpKey *key)
{
	struct varlena *doc;

	if (before != NULL && field_unchanged(o, before, after))
		return;

	SPI_connect();
	doc = dp_outlier_lock(o, key, true, NULL);
	if (doc == NULL)
	{
		SPI_finish(); /* deleted by a user's trigger */
		return;
	}

	if (before != NULL && field_unchanged(o, after, doc) && array_grown(o, before, after))
		append_rest(o, key, doc);
	else /* or a user's trigger has changed it: start from the present row */
		dp_outlier_correct(o, key, false);
	SPI_finish();
}

/* Until they arrive, extras are stored under the new key, marked as moving. */
static void *
extras_leave(DpDecl *decl, const DpMove *move)
{
	DpOutlier *o = dp_outlier(decl);

	if (move->deleted)
	{
		dp_outlier_drop(o, &move->from);
		return NULL;
	}
	dp_outlier_move(o, &move->from, &move->to);
	return o;
}

/* Removes the mark. A user's trigger may have added extras under the new key: they are newer. */
static void
extras_arrive(DpDecl *decl, const DpMove *move, void *arg)
{
	DpOutlier *o = arg;
	DpValueList newer = { 0 };

	if (o->link == NULL && dp_outlier_exists(o, &move->to))
	{
		dp_outlier_page(o, &move->to, 0, PG_INT64_MAX, &newer, true);
		dp_outlier_drop(o, &move->to);
	}
	dp_outlier_move_finish(o, &move->to);
	dp_outlier_append(o, &move->to, newer.v, newer.n);
}

/* The array of a row may have changed together with its key. */
static void
extras_correct(DpDecl *decl, const DpMove *move)
{
	DpOutlier *o = dp_outlier(decl);
	bool is_null;
	struct varlena *doc = dp_outlier_lock(o, &move->to, true, &is_null);

	if (doc == NULL || (move->deleted && !dp_outlier_flagged(o, doc)))
		dp_outlier_drop(o, &move->to); /* of the deleted document */
	else if (move->flags & MOVED_GROWN && !is_null)
		append_rest(o, &move->to, doc);
	dp_outlier_correct(o, &move->to, false);
}

static void
extras_drop_orphans(DpDecl *decl)
{
	SPI_connect();
	dp_outlier_drop_orphans(dp_outlier(decl));
	SPI_finish();
}

/* Moves elements added after the kept part of an outlier to the logical end. */
static void
append_rest(DpOutlier *o, const DpKey *key, struct varlena *doc)
{
	DpValueList all = { 0 };
	DpValueList added = { 0 };
	DpValue array;
	int64 stored;
	int i;

	if (dp_outlier_array(o, doc, &array))
		dp_values_add_array(&all, &array);
	if (o->is_set)
		dp_values_distinct(&all);
	for (i = o->keep; i < all.n; i++)
	{
		if (!o->is_set || !dp_outlier_holds(o, key, &all.v[i], true))
			dp_values_add(&added, &all.v[i]);
	}
	dp_outlier_append(o, key, added.v, added.n);
	all.n = Min(all.n, o->keep);
	stored = o->count != NULL ? dp_outlier_stored(o, key, true) : 1;
	dp_outlier_write(o, key, doc, dp_outlier_arrange(o, doc, &all, stored > 0, all.n + stored));
}

/*
 * Deletes the extras of the old document, of all patterns at once, after a whole document replaced
 * it. Arranging one array writes the row again, and the triggers of other patterns must not find
 * outdated extras then.
 */
static void
outlier_replaced(DpOutlier *o, TriggerData *trigdata, TupleDesc desc)
{
	ListCell *lc;

	SPI_connect();
	foreach(lc, dp_decls(RelationGetRelid(trigdata->tg_relation)))
	{
		DpDecl *decl = lfirst(lc);
		DpKey key;
		DpKey origin;

		if (strcmp(decl->pattern, o->decl->pattern) != 0 ||
			dp_marked(decl->target, decl->name) != DP_MARK_WHOLE)
			continue;
		dp_key_of_tuple(decl, trigdata->tg_trigtuple, desc, &key);
		dp_moves_origin(decl, &key, &origin);
		dp_outlier_drop(dp_outlier(decl), &origin);
		dp_mark_change(decl->target, decl->name, DP_MARK_REPLACED);
	}
	SPI_finish();
}

/* Returns the link of a row of the collection, or NULL. */
static struct varlena *
link_of_row(DpOutlier *o, HeapTuple tuple, TupleDesc desc)
{
	DpPath *path = dp_path_parse(o->link, strlen(o->link));
	int att;

	for (att = 0; att < desc->natts; att++)
	{
		Datum d;
		bool isnull;
		struct varlena *doc;
		DpValue value;

		if (TupleDescAttr(desc, att)->attisdropped ||
			TupleDescAttr(desc, att)->atttypid != dp_types()->bson)
			continue;
		d = heap_getattr(tuple, att + 1, desc, &isnull);
		if (isnull)
			return NULL;
		doc = PG_DETOAST_DATUM_PACKED(d);
		if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value))
			return dp_value_to_varlena(&value);
		return NULL;
	}
	return NULL;
}

/* Returns how many elements of a locked document have the _id of a previous one. */
static int
twins_in(DpOutlier *o, const DpKey *key)
{
	struct varlena *doc = dp_outlier_lock(o, key, true, NULL);
	DpValueList elements = { 0 };
	DpValueList ids = { 0 };
	DpValue value;

	if (doc != NULL && dp_outlier_array(o, doc, &value))
		dp_values_add_array(&elements, &value);
	for (int i = 0; i < elements.n; i++)
	{
		if (elements.v[i].type == DP_TYPE_DOCUMENT &&
			dp_document_find(elements.v[i].data, elements.v[i].len, "_id", 3, &value))
			dp_values_add(&ids, &value);
	}
	return dp_values_distinct(&ids);
}

/* Returns whether an update kept document and key. */
static bool
row_unchanged(DpOutlier *o, TriggerData *trigdata, TupleDesc desc)
{
	DpKey old_key;
	DpKey new_key;

	if (!dp_trigger_same_document(trigdata, o->decl))
		return false;
	dp_key_of_tuple(o->decl, trigdata->tg_trigtuple, desc, &old_key);
	dp_key_of_tuple(o->decl, trigdata->tg_newtuple, desc, &new_key);
	return dp_key_identical(o->decl, &old_key, &new_key);
}

/* Returns the field of any type; false without the field. */
static bool
field_of(const DpOutlier *o, struct varlena *doc, DpValue *value)
{
	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->field, value);
}

/* Returns whether the field has the same bytes in both documents. */
static bool
field_unchanged(const DpOutlier *o, struct varlena *before, struct varlena *after)
{
	DpValue was;
	DpValue is;
	bool had = field_of(o, before, &was);
	bool has = field_of(o, after, &is);

	return had == has && (!has || dp_value_identical(&was, &is));
}

/*
 * Returns whether the array still begins with the kept part of the outlier. Only with stay =>
 * 'first'.
 */
static bool
array_grown(const DpOutlier *o, struct varlena *before, struct varlena *after)
{
	DpValueList was = { 0 };
	DpValueList is = { 0 };
	DpValue array;

	if (o->stay_last)
		return false;
	if (dp_outlier_array(o, before, &array))
		dp_values_add_array(&was, &array);
	if (dp_outlier_array(o, after, &array))
		dp_values_add_array(&is, &array);
	return was.n == o->keep && array_begins_with(&is, &was);
}

/* Returns whether one list is the beginning of the other, byte for byte. */
static bool
array_begins_with(const DpValueList *longer, const DpValueList *shorter)
{
	int i;

	if (longer->n < shorter->n)
		return false;
	for (i = 0; i < shorter->n; i++)
	{
		if (!dp_value_identical(&longer->v[i], &shorter->v[i]))
			return false;
	}
	return true;
}

/* Returns whether a document without extras has another count than the pattern sets. */
bool
dp_outlier_count_is_held(const DpOutlier *o, struct varlena *doc)
{
	DpValue value;
	DpValue array;

	return dp_held(o->decl, o->count) &&
		   dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->count, &value) &&
		   dp_value_lost(&value, NULL, NIL) &&
		   count_of(o, doc) !=
			   (dp_outlier_array(o, doc, &array) ? dp_document_count(array.data, array.len) : 0);
}

/* Returns the count in a document, or -1. */
static int64
count_of(const DpOutlier *o, struct varlena *doc)
{
	DpValue value;

	if (o->count == NULL || !dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->count, &value))
		return -1;
	if (value.type == DP_TYPE_INT32)
		return dp_get_int32(value.data);
	if (value.type == DP_TYPE_INT64)
		return dp_get_int64(value.data);
	return -1;
}
