/*
 * outlier.c
 *		The outlier pattern: its triggers, and how a document is arranged.
 *
 * On a table with the pattern there are triggers of one function (those on
 * INSERT have a condition that typical documents do not meet):
 *
 * BEFORE INSERT or UPDATE, for each row: corrects the flag and the count of
 * documents whose array stays as it is, so that these cost no second version
 * of the row.  It writes nowhere else and takes no element away: an INSERT ..
 * ON CONFLICT may still turn into something else.
 *
 * AFTER INSERT, UPDATE or DELETE, for each row: when elements have to move
 * between the document and the store, moves them and writes the document once
 * more.  For other documents it counts the array's elements and is done.
 *
 * AFTER UPDATE OR TRUNCATE, for each statement: finishes changes of keys, and
 * empties the store.
 *
 * The row's own lock is the lock of its extras: whoever changes them holds it.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "patterns/outlier.h"
#include "patterns/run.h"
#include "patterns/sqlgen.h"

static const char plan_lock, plan_write, plan_flagged, collected_moves, collected_links;

static HeapTuple outlier_before(Outlier *o, TriggerData *trigdata);
static void outlier_after(Outlier *o, TriggerData *trigdata);
static void outlier_changed(Outlier *o, struct varlena *before, struct varlena *after, const DpKey *key);
static void outlier_replaced(Outlier *o, struct varlena *doc, const DpKey *key);
static void outlier_statement(Outlier *o, TriggerData *trigdata);
static struct varlena *link_of_row(Outlier *o, HeapTuple tuple, TupleDesc desc);
static struct varlena *row_document(Outlier *o, HeapTuple tuple, TupleDesc desc);
static bool row_unchanged(Outlier *o, TriggerData *trigdata, TupleDesc desc);

static bool array_begins_with(const DpValueList *longer, const DpValueList *shorter);
static void drop_stored(Outlier *o, const DpKey *key, DpValueList *values);
static int64 count_of(const Outlier *o, struct varlena *doc);
static bool array_exceeds(const DpValue *array, int n);

/*
 * outlier_trigger(): the triggers of the pattern on its table.
 */
DP_FUNCTION(dp_outlier_trigger);
Datum
dp_outlier_trigger(PG_FUNCTION_ARGS)
{
	DpDecl	   *decl = dp_decl_of_trigger(fcinfo, "outlier");
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	Outlier    *o = dp_outlier(decl);

	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(outlier_before(o, trigdata));

	if (dp_decl_maintained(decl))
	{
		if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
			outlier_after(o, trigdata);
		else
			outlier_statement(o, trigdata);
	}
	return PointerGetDatum(NULL);
}

/*
 * outlier_irregular(doc, field, threshold, flag) -> bool
 *
 * Whether a new document concerns the pattern at all.  It is the condition of
 * the triggers on INSERT, so that a typical document does not even queue one.
 */
DP_FUNCTION(dp_outlier_irregular);
Datum
dp_outlier_irregular(PG_FUNCTION_ARGS)
{
	struct
	{
		DpPath	   *field;
		DpPath	   *flag;
	}		   *cache = fcinfo->flinfo->fn_extra;
	bool		constant;
	struct varlena *doc;
	DpPath	   *field;
	DpPath	   *flag;
	DpValue		value;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		PG_RETURN_BOOL(false);
	if (likely(cache != NULL))
	{
		field = cache->field;
		flag = cache->flag;
	}
	else
	{
		text	   *field_text = PG_GETARG_TEXT_PP(1);
		text	   *flag_text = PG_GETARG_TEXT_PP(3);
		MemoryContext old;

		/* in a trigger's condition they are constants and parsed once */
		constant = get_fn_expr_arg_stable(fcinfo->flinfo, 1) && get_fn_expr_arg_stable(fcinfo->flinfo, 3);
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
				   value.type == DP_TYPE_ARRAY &&
				   array_exceeds(&value, PG_GETARG_INT32(2)));
}

/*
 * outlier_link_trigger(): the triggers on a collection that holds extras.
 *
 * A write to the collection changes the logical arrays of the documents that
 * its links name.  Rows are collected, and at the end of the statement each
 * document is locked, in the order of the keys, and brought in order.
 */
DP_FUNCTION(dp_outlier_link_trigger);
Datum
dp_outlier_link_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	Oid			relid;
	Oid			base;
	const char *name;
	Outlier    *o;
	ListCell   *lc;

	if (!CALLED_AS_TRIGGER(fcinfo) || trigdata->tg_trigger->tgnargs != 3)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"outlier_link_trigger\" is called by triggers of the outlier pattern only")));
	relid = RelationGetRelid(trigdata->tg_relation);
	name = trigdata->tg_trigger->tgargs[2];
	if (dp_marked(relid, name) != DP_MARK_NONE)
		return PointerGetDatum(NULL);

	base = dp_pair_main(trigdata->tg_trigger->tgargs[1], RelationGetNamespace(trigdata->tg_relation));
	if (!OidIsValid(base))
		return PointerGetDatum(NULL);	/* the collection was restored alone */
	o = dp_outlier(dp_decl_find(base, "outlier", name));
	if (!dp_decl_maintained(o->decl))
		return PointerGetDatum(NULL);

	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
	{
		TupleDesc	desc = RelationGetDescr(trigdata->tg_relation);
		struct varlena *link = link_of_row(o, trigdata->tg_trigtuple, desc);
		struct varlena *other = NULL;

		if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
		{
			other = link_of_row(o, trigdata->tg_newtuple, desc);

			/*
			 * An element that stays where it is changes neither count nor flag.
			 * Its document need not be locked, and must not be: whoever
			 * deletes the document locks it before he deletes its elements.
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
		dp_outlier_settle_flagged(o, false);
	foreach(lc, dp_collected(relid, &collected_links))
	{
		DpValue		link = dp_value_of_varlena(lfirst(lc));
		DpKey		key;

		CHECK_FOR_INTERRUPTS();
		if (!dp_key_of_value(o->decl, &link, &key) || dp_outlier_lock(o, &key, true) == NULL)
		{
			/* documents that are gone, or going, need not name anybody */
			if (dp_outlier_link_used(o, lfirst(lc)))
				ereport(ERROR,
						(errcode(ERRCODE_FOREIGN_KEY_VIOLATION),
						 errmsg("a document of collection %s names a document that does not exist",
								dp_relation_name(relid)),
						 errdetail("Its field \"%s\" is the key of the outlier pattern \"%s\" on table %s.",
								   o->link, name, dp_relation_name(base))));
			continue;
		}
		dp_outlier_settle(o, &key, false);
	}
	SPI_finish();
	return PointerGetDatum(NULL);
}

/*
 * The pattern's view of a declaration, made once.
 */
Outlier *
dp_outlier(DpDecl *decl)
{
	Outlier    *o = decl->state;

	if (likely(o != NULL))
		return o;

	o = MemoryContextAllocZero(decl->context, sizeof(Outlier));
	o->decl = decl;
	o->field = dp_decl_path(decl, "field");
	o->flag = dp_decl_path(decl, "flag");
	o->count = dp_decl_path(decl, "count_field");
	o->threshold = dp_decl_int(decl, "threshold", 0);
	o->keep = dp_decl_int(decl, "keep", o->threshold);
	o->chunk = dp_decl_int(decl, "chunk", 1000);
	o->stay_last = strcmp(dp_decl_text(decl, "stay"), "last") == 0;
	o->is_set = dp_decl_bool(decl, "is_set", false);
	o->deferred = strcmp(dp_decl_text(decl, "mode"), "deferred") == 0;
	o->indexed = dp_decl_bool(decl, "index_elements", false);
	o->pair = dp_decl_text(decl, "pair");
	o->link = dp_decl_text(decl, "on_field");
	if (o->field == NULL || o->flag == NULL || o->pair == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the declaration of the outlier pattern \"%s\" is incomplete", decl->name)));
	decl->state = o;
	return o;
}

/*
 * The field of a document, if it is an array.
 */
bool
dp_outlier_array(const Outlier *o, struct varlena *doc, DpValue *array)
{
	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->field, array) &&
		array->type == DP_TYPE_ARRAY;
}

bool
dp_outlier_flagged(const Outlier *o, struct varlena *doc)
{
	DpValue		value;

	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->flag, &value) &&
		value.type == DP_TYPE_BOOL && value.data[0] != 0;
}

/*
 * Whether the document has extras.  Only flagged documents can, so that others
 * cost nothing.  May be called outside SPI_connect().
 */
bool
dp_outlier_has_extras(Outlier *o, struct varlena *doc, const DpKey *key)
{
	bool		result;

	if (!dp_outlier_flagged(o, doc))
		return false;
	SPI_connect();
	result = dp_outlier_exists(o, key);
	SPI_finish();
	return result;
}

/*
 * The document of the row, locked as an update that leaves the key alone would
 * lock it.  The result is a detoasted copy in SPI's memory.
 */
struct varlena *
dp_outlier_lock(Outlier *o, const DpKey *key, bool as_owner)
{
	SPIPlanPtr	plan = dp_plan(o->decl, &plan_lock);
	Datum		value;
	bool		isnull;

	if (plan == NULL)
	{
		StringInfoData sql;
		Oid			types[INDEX_MAX_KEYS];

		initStringInfo(&sql);
		appendStringInfo(&sql, "SELECT %s FROM ", quote_identifier(o->decl->doc_column));
		dp_sql_table(&sql, o->decl->target);
		appendStringInfoString(&sql, " WHERE ");
		dp_sql_key_match(&sql, o->decl, 1);
		appendStringInfoString(&sql, " FOR NO KEY UPDATE");
		dp_sql_key_types(o->decl, types);
		plan = dp_plan_make(o->decl, &plan_lock, sql.data, o->decl->nkeys, types);
	}
	if (dp_run(o->decl, plan, (Datum *) key->values, NULL, as_owner ? DP_RUN_AS_OWNER : DP_RUN_LOCK, 1, SPI_OK_SELECT) == 0)
		return NULL;
	value = dp_result(0, 1, &isnull);
	if (isnull)
	{
		/* a column that may be null: an empty document stands for it */
		static const uint8 empty[DP_DOCUMENT_MIN_SIZE] = {DP_DOCUMENT_MIN_SIZE, 0, 0, 0, 0};

		return dp_document_to_varlena(empty, sizeof(empty));
	}
	return (struct varlena *) DatumGetPointer(value);
}

/*
 * Write a document that is already in order, as the table's owner.
 */
void
dp_outlier_write(Outlier *o, const DpKey *key, struct varlena *before, struct varlena *doc)
{
	SPIPlanPtr	plan;
	Datum		values[INDEX_MAX_KEYS + 1];

	if (DP_DOC_SIZE(before) == DP_DOC_SIZE(doc) &&
		memcmp(DP_DOC_DATA(before), DP_DOC_DATA(doc), DP_DOC_SIZE(doc)) == 0)
		return;

	plan = dp_plan(o->decl, &plan_write);
	if (plan == NULL)
	{
		StringInfoData sql;
		Oid			types[INDEX_MAX_KEYS + 1];

		initStringInfo(&sql);
		appendStringInfoString(&sql, "UPDATE ");
		dp_sql_table(&sql, o->decl->target);
		appendStringInfo(&sql, " SET %s = $%d WHERE ", quote_identifier(o->decl->doc_column), o->decl->nkeys + 1);
		dp_sql_key_match(&sql, o->decl, 1);
		dp_sql_key_types(o->decl, types);
		types[o->decl->nkeys] = dp_types()->bson;
		plan = dp_plan_make(o->decl, &plan_write, sql.data, o->decl->nkeys + 1, types);
	}
	memcpy(values, key->values, sizeof(Datum) * o->decl->nkeys);
	values[o->decl->nkeys] = PointerGetDatum(doc);
	dp_run_marked(o->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_UPDATE,
				  o->decl->target, o->decl->name, DP_MARK_INTERNAL);
}

/*
 * The document with the kept elements, flag and count as they should be.  With
 * keep => 0 an outlier has no field at all.
 */
struct varlena *
dp_outlier_arrange(Outlier *o, struct varlena *doc, const DpValueList *kept, bool has_extras, int64 total)
{
	DpValue		array;

	if (has_extras && o->keep == 0)
	{
		struct varlena *without = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->field);

		if (without != NULL)
			doc = without;
	}
	else if (kept->n > 0 || dp_outlier_array(o, doc, &array))
	{
		DpBuilder	b;
		int			i;

		dp_builder_init_value(&b, 0);
		dp_builder_begin_array(&b);
		for (i = 0; i < kept->n; i++)
			dp_builder_append_value(&b, NULL, 0, &kept->v[i]);
		dp_builder_end(&b);
		array = dp_builder_view(&b, DP_TYPE_ARRAY);
		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->field, &array);
	}
	return dp_outlier_mark(o, doc, has_extras, total);
}

/*
 * Bring one row in order from its stored state alone.
 */
bool
dp_outlier_settle(Outlier *o, const DpKey *key, bool spill_deferred)
{
	struct varlena *doc = dp_outlier_lock(o, key, true);
	struct varlena *arranged;
	DpValueList kept = {0};
	DpValue		array;
	bool		has_extras;
	bool		moved = false;
	int64		stored = 0;

	if (doc == NULL)
		return false;
	if (dp_outlier_array(o, doc, &array))
		dp_values_add_array(&kept, &array);
	has_extras = dp_outlier_exists(o, key);

	if (o->is_set)
	{
		if (has_extras)
			drop_stored(o, key, &kept);
		dp_values_distinct(&kept);
	}
	if (has_extras || kept.n > o->threshold)
	{
		int			over = kept.n - o->keep;

		if (!has_extras && o->deferred && !spill_deferred)
		{
			arranged = dp_outlier_mark(o, doc, true, kept.n);
			dp_outlier_write(o, key, doc, arranged);
			return arranged != doc;
		}
		if (over > 0)
		{
			/* what does not fit goes to the near end of the extras */
			if (o->stay_last)
			{
				dp_outlier_append(o, key, kept.v, over);
				memmove(kept.v, kept.v + over, sizeof(DpValue) * o->keep);
			}
			else
				dp_outlier_prepend(o, key, kept.v + o->keep, over);
			kept.n = o->keep;
			moved = true;
		}
		else if (over < 0)
		{
			DpValueList refill = {0};
			int			i;

			dp_outlier_take(o, key, -over, o->stay_last, &refill);
			if (o->stay_last)
			{
				for (i = 0; i < kept.n; i++)
					dp_values_add(&refill, &kept.v[i]);
				kept = refill;
			}
			else
			{
				for (i = 0; i < refill.n; i++)
					dp_values_add(&kept, &refill.v[i]);
			}
			moved = true;
		}
		stored = dp_outlier_stored(o, key, true);
	}
	arranged = dp_outlier_arrange(o, doc, &kept, stored > 0, kept.n + stored);
	dp_outlier_write(o, key, doc, arranged);
	return moved || DP_DOC_SIZE(arranged) != DP_DOC_SIZE(doc) ||
		memcmp(DP_DOC_DATA(arranged), DP_DOC_DATA(doc), DP_DOC_SIZE(doc)) != 0;
}

/*
 * The same for every row that is flagged.
 */
int64
dp_outlier_settle_flagged(Outlier *o, bool spill_deferred)
{
	SPIPlanPtr	plan = dp_plan(o->decl, &plan_flagged);
	SPITupleTable *table;
	int64		written = 0;
	uint64		rows;
	uint64		i;

	if (plan == NULL)
	{
		StringInfoData sql;

		initStringInfo(&sql);
		appendStringInfoString(&sql, "SELECT ");
		dp_sql_key_list(&sql, o->decl);
		appendStringInfoString(&sql, " FROM ");
		dp_sql_table(&sql, o->decl->target);
		appendStringInfoString(&sql, " WHERE ");
		dp_sql_doc_path(&sql, o->decl->doc_column, dp_decl_text(o->decl, "flag"));
		dp_sql_own_operator(&sql, "=");
		appendStringInfoString(&sql, "true ORDER BY ");
		dp_sql_key_list(&sql, o->decl);
		plan = dp_plan_make(o->decl, &plan_flagged, sql.data, 0, NULL);
	}
	rows = dp_run(o->decl, plan, NULL, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT);
	table = SPI_tuptable;
	for (i = 0; i < rows; i++)
	{
		DpKey		key;
		int			j;

		CHECK_FOR_INTERRUPTS();
		key.n = o->decl->nkeys;
		for (j = 0; j < key.n; j++)
		{
			bool		isnull;

			key.values[j] = SPI_getbinval(table->vals[i], table->tupdesc, j + 1, &isnull);
		}
		if (dp_outlier_settle(o, &key, spill_deferred))
			written++;
	}
	return written;
}

/*
 * The logical document: the whole array, without the flag.
 */
struct varlena *
dp_outlier_whole(Outlier *o, struct varlena *doc, const DpKey *key, bool latest)
{
	DpBuilder	b;
	DpValue		array;
	DpIter		iter;
	DpValue		value;
	bool		has_array = dp_outlier_array(o, doc, &array);
	int			limit = dp_max_document_size;
	struct varlena *bare = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->flag);
	struct varlena *volatile result = NULL;

	dp_builder_init_value(&b, has_array ? 2 * (Size) array.len : 0);
	dp_builder_begin_array(&b);
	if (o->stay_last)
		dp_outlier_read(o, key, &b, latest);
	if (has_array)
	{
		dp_iter_init_value(&iter, &array);
		while (dp_iter_next_value(&iter, &value))
			dp_builder_append_value(&b, NULL, 0, &value);
	}
	if (!o->stay_last)
		dp_outlier_read(o, key, &b, latest);
	dp_builder_end(&b);
	array = dp_builder_view(&b, DP_TYPE_ARRAY);

	/* a whole document may be larger than one that is stored */
	dp_max_document_size = MaxAllocSize - VARHDRSZ;
	PG_TRY();
	{
		struct varlena *unflagged = bare != NULL ? bare : doc;

		result = dp_document_set(DP_DOC_DATA(unflagged), DP_DOC_SIZE(unflagged), o->field, &array);
	}
	PG_FINALLY();
	{
		dp_max_document_size = limit;
	}
	PG_END_TRY();
	dp_builder_free(&b);
	return result;
}

/*
 * Whether an array has more than n elements.  An element takes three bytes at
 * least, so that short arrays need not be walked.
 */
static bool
array_exceeds(const DpValue *array, int n)
{
	return array->len - DP_DOCUMENT_MIN_SIZE > (uint64) n * 3 &&
		dp_document_count(array->data, array->len) > (uint32) n;
}

void
dp_values_add(DpValueList *list, const DpValue *value)
{
	if (list->n == list->cap)
	{
		int			cap = Max(16, list->cap * 2);
		DpValue    *v = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(DpValue) * (Size) cap);

		if (list->n > 0)
			memcpy(v, list->v, sizeof(DpValue) * (Size) list->n);
		list->v = v;
		list->cap = cap;
	}
	list->v[list->n++] = *value;
}

void
dp_values_add_array(DpValueList *list, const DpValue *array)
{
	DpIter		iter;
	DpValue		value;

	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &value))
		dp_values_add(list, &value);
}

/*
 * Leave the first of equal values only.  Returns how many went.
 */
int
dp_values_distinct(DpValueList *list)
{
	uint32		size = 16;
	int32	   *slots;
	int			kept = 0;
	int			i;

	while (size < (uint32) list->n * 2)
		size *= 2;
	slots = palloc_extended(sizeof(int32) * (Size) size, MCXT_ALLOC_HUGE);
	memset(slots, -1, sizeof(int32) * (Size) size);
	for (i = 0; i < list->n; i++)
	{
		uint32		slot = dp_value_hash(&list->v[i], 0) & (size - 1);

		while (slots[slot] >= 0 && dp_value_compare(&list->v[slots[slot]], &list->v[i]) != 0)
			slot = (slot + 1) & (size - 1);
		if (slots[slot] < 0)
		{
			slots[slot] = kept;
			list->v[kept++] = list->v[i];
		}
	}
	pfree(slots);
	i = list->n - kept;
	list->n = kept;
	return i;
}

/*
 * BEFORE INSERT OR UPDATE of a row.
 */
static HeapTuple
outlier_before(Outlier *o, TriggerData *trigdata)
{
	bool		is_update = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event);
	HeapTuple	tuple = is_update ? trigdata->tg_newtuple : trigdata->tg_trigtuple;
	TupleDesc	desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *given;
	struct varlena *doc;
	struct varlena *marked;
	struct varlena *old = NULL;
	DpValue		array;
	uint32		n = 0;

	if (!dp_decl_maintained(o->decl) ||
		dp_marked(o->decl->target, o->decl->name) != DP_MARK_NONE ||
		(is_update && row_unchanged(o, trigdata, desc)))
		return tuple;
	given = row_document(o, tuple, desc);
	if (given == NULL)
		return tuple;

	doc = given;
	marked = doc;
	if (is_update)
		old = row_document(o, trigdata->tg_trigtuple, desc);
	if (old != NULL && dp_outlier_flagged(o, old))
	{
		DpKey		key;
		DpValue		was;
		bool		had;

		dp_key_of_tuple(o->decl, trigdata->tg_trigtuple, desc, &key);
		if (dp_outlier_has_extras(o, old, &key))
		{
			bool		has = dp_outlier_array(o, doc, &array);

			had = dp_outlier_array(o, old, &was);
			if (had == has && (!has || dp_value_identical(&was, &array)))
				marked = dp_outlier_mark(o, doc, true, count_of(o, old));
			goto done;			/* or elements move: that is done afterwards */
		}
	}

	if (dp_outlier_array(o, doc, &array))
	{
		n = o->count != NULL || o->is_set || array_exceeds(&array, o->threshold) ?
			dp_document_count(array.data, array.len) : 0;
		if (o->is_set && n > 1)
		{
			DpValueList list = {0};

			dp_values_add_array(&list, &array);
			if (dp_values_distinct(&list) > 0)
			{
				n = list.n;
				doc = dp_outlier_arrange(o, doc, &list, false, n);
			}
		}
	}
	marked = dp_outlier_mark(o, doc, n > o->threshold, n);

done:
	if (marked != given)
	{
		Datum		value = PointerGetDatum(marked);
		bool		isnull = false;
		int			attnum = o->decl->doc_attnum;

		tuple = heap_modify_tuple_by_cols(tuple, desc, 1, &attnum, &value, &isnull);
	}
	return tuple;
}

/*
 * AFTER INSERT OR UPDATE OR DELETE of a row.
 */
static void
outlier_after(Outlier *o, TriggerData *trigdata)
{
	TupleDesc	desc = RelationGetDescr(trigdata->tg_relation);
	DpMarkKind	marked = dp_marked(o->decl->target, o->decl->name);
	struct varlena *before = NULL;
	struct varlena *after = NULL;
	HeapTuple	tuple = NULL;
	DpKey		key;
	DpValue		array;
	bool		had_extras = false;

	if (marked == DP_MARK_INTERNAL ||
		(marked == DP_MARK_NONE && TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event) &&
		 row_unchanged(o, trigdata, desc)))
		return;

	if (!TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		before = row_document(o, trigdata->tg_trigtuple, desc);
	if (!TRIGGER_FIRED_BY_DELETE(trigdata->tg_event))
	{
		tuple = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event) ? trigdata->tg_newtuple : trigdata->tg_trigtuple;
		after = row_document(o, tuple, desc);
	}

	if (before != NULL && dp_outlier_flagged(o, before))
	{
		dp_key_of_tuple(o->decl, trigdata->tg_trigtuple, desc, &key);
		had_extras = dp_outlier_has_extras(o, before, &key);
	}

	if (tuple == NULL)
	{
		if (had_extras)
		{
			SPI_connect();
			dp_outlier_drop(o, &key);
			SPI_finish();
		}
		return;
	}

	if (had_extras)
	{
		DpKey		to;

		dp_key_of_tuple(o->decl, tuple, desc, &to);
		if (!dp_key_identical(o->decl, &key, &to))
		{
			/* the extras follow now, and arrive when the statement has ended */
			SPI_connect();
			dp_outlier_move(o, &key, &to);
			SPI_finish();
			if (marked != DP_MARK_WHOLE)
			{
				dp_collect(o->decl->target, &collected_moves, dp_key_to_value(o->decl, &to));
				return;
			}
			SPI_connect();
			dp_outlier_move_finish(o, &to);
			SPI_finish();
		}
	}

	if (marked == DP_MARK_WHOLE)
	{
		dp_key_of_tuple(o->decl, tuple, desc, &key);
		outlier_replaced(o, after, &key);
		return;
	}
	if (!had_extras)
	{
		/* the typical document ends here */
		if (after == NULL || !dp_outlier_array(o, after, &array) ||
			!array_exceeds(&array, o->threshold) ||
			o->deferred)
			return;
	}
	dp_key_of_tuple(o->decl, tuple, desc, &key);
	outlier_changed(o, had_extras ? before : NULL, after, &key);
}

/*
 * The array of an outlier was changed by a write to the table, or a document
 * becomes an outlier (before is NULL).
 */
static void
outlier_changed(Outlier *o, struct varlena *before, struct varlena *after, const DpKey *key)
{
	struct varlena *doc;
	DpValueList was = {0};
	DpValueList is = {0};
	DpValue		array;
	DpValue		now;
	bool		has = after != NULL && dp_outlier_array(o, after, &array);
	bool		has_now;

	if (before != NULL)
	{
		DpValue		old;
		bool		had = dp_outlier_array(o, before, &old);

		if (had == has && (!has || dp_value_identical(&old, &array)))
			return;
		if (had)
			dp_values_add_array(&was, &old);
	}

	SPI_connect();
	doc = dp_outlier_lock(o, key, true);
	if (doc == NULL)
	{
		SPI_finish();			/* somebody's trigger has deleted it */
		return;
	}

	has_now = dp_outlier_array(o, doc, &now);
	if (has_now != has || (has && !dp_value_identical(&now, &array)))
	{
		/* somebody's trigger has changed it since: start from what is there */
		dp_outlier_settle(o, key, false);
		SPI_finish();
		return;
	}

	if (has)
		dp_values_add_array(&is, &array);
	if (before != NULL && !o->stay_last && was.n == o->keep && array_begins_with(&is, &was))
	{
		/* what was added behind an unchanged beginning goes to the logical end */
		DpValueList added = {0};
		int			i;
		int64		stored;

		for (i = was.n; i < is.n; i++)
			dp_values_add(&added, &is.v[i]);
		if (o->is_set)
		{
			DpValueList all = {0};

			/* equal to a kept one, to each other, or to a stored one: not added */
			for (i = 0; i < is.n; i++)
				dp_values_add(&all, &is.v[i]);
			dp_values_distinct(&all);
			added.n = 0;
			for (i = was.n; i < all.n; i++)
			{
				if (!dp_outlier_holds(o, key, &all.v[i], true))
					dp_values_add(&added, &all.v[i]);
			}
		}
		dp_outlier_append(o, key, added.v, added.n);
		is.n = was.n;
		stored = o->count != NULL ? dp_outlier_stored(o, key, true) : 1;
		dp_outlier_write(o, key, doc, dp_outlier_arrange(o, doc, &is, stored > 0, is.n + stored));
	}
	else
		dp_outlier_settle(o, key, false);
	SPI_finish();
}

/*
 * A whole document was written: its array is all there is.
 */
static void
outlier_replaced(Outlier *o, struct varlena *doc, const DpKey *key)
{
	SPI_connect();
	dp_outlier_drop(o, key);
	dp_outlier_settle(o, key, false);
	SPI_finish();
}

/*
 * AFTER UPDATE OR TRUNCATE, once per statement.
 */
static void
outlier_statement(Outlier *o, TriggerData *trigdata)
{
	ListCell   *lc;
	List	   *moved;

	if (TRIGGER_FIRED_BY_TRUNCATE(trigdata->tg_event))
	{
		SPI_connect();
		dp_outlier_drop_orphans(o);
		SPI_finish();
		return;
	}
	moved = dp_collected(o->decl->target, &collected_moves);
	if (moved == NIL)
		return;
	SPI_connect();
	foreach(lc, moved)
	{
		DpValue		value = dp_value_of_varlena(lfirst(lc));
		DpKey		key;

		if (dp_key_of_value(o->decl, &value, &key))
			dp_outlier_move_finish(o, &key);
	}
	foreach(lc, moved)
	{
		DpValue		value = dp_value_of_varlena(lfirst(lc));
		DpKey		key;

		/* the array may have changed together with the key */
		if (dp_key_of_value(o->decl, &value, &key))
			dp_outlier_settle(o, &key, false);
	}
	SPI_finish();
}

/* The link that a row of the collection has, or NULL. */
static struct varlena *
link_of_row(Outlier *o, HeapTuple tuple, TupleDesc desc)
{
	DpPath	   *path = dp_path_parse(o->link, strlen(o->link));
	int			att;

	for (att = 0; att < desc->natts; att++)
	{
		Datum		d;
		bool		isnull;
		struct varlena *doc;
		DpValue		value;

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

/* The document of a row, or NULL.  Not a copy unless it was toasted. */
static struct varlena *
row_document(Outlier *o, HeapTuple tuple, TupleDesc desc)
{
	bool		isnull;
	Datum		value = heap_getattr(tuple, o->decl->doc_attnum, desc, &isnull);

	return isnull ? NULL : PG_DETOAST_DATUM_PACKED(value);
}

/*
 * Whether an update left document and key as they were, by their bytes as they
 * are stored, so that a document that lies out of line is not even read.
 */
static bool
row_unchanged(Outlier *o, TriggerData *trigdata, TupleDesc desc)
{
	DpKey		old_key;
	DpKey		new_key;
	bool		old_null;
	bool		new_null;
	Datum		old = heap_getattr(trigdata->tg_trigtuple, o->decl->doc_attnum, desc, &old_null);
	Datum		new = heap_getattr(trigdata->tg_newtuple, o->decl->doc_attnum, desc, &new_null);

	if (old_null || new_null)
		return old_null && new_null;
	if (VARSIZE_ANY(DatumGetPointer(old)) != VARSIZE_ANY(DatumGetPointer(new)) ||
		memcmp(DatumGetPointer(old), DatumGetPointer(new), VARSIZE_ANY(DatumGetPointer(old))) != 0)
		return false;
	dp_key_of_tuple(o->decl, trigdata->tg_trigtuple, desc, &old_key);
	dp_key_of_tuple(o->decl, trigdata->tg_newtuple, desc, &new_key);
	return dp_key_identical(o->decl, &old_key, &new_key);
}

/*
 * The document with flag and count as they should be: the same one if they
 * are.  A negative count leaves the count alone.
 */
struct varlena *
dp_outlier_mark(Outlier *o, struct varlena *doc, bool flag, int64 count)
{
	static const uint8 yes = 1;
	DpValue		value;
	bool		has = dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->flag, &value);

	if (flag && !(has && value.type == DP_TYPE_BOOL && value.data[0] != 0))
	{
		value.type = DP_TYPE_BOOL;
		value.data = &yes;
		value.len = 1;
		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->flag, &value);
	}
	else if (!flag && has)
		doc = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->flag);

	if (o->count != NULL && count >= 0)
	{
		uint8		bytes[8];
		DpValue		wanted;

		if (count <= PG_INT32_MAX)
		{
			wanted.type = DP_TYPE_INT32;
			wanted.len = 4;
			dp_put_int32(bytes, (int32) count);
		}
		else
		{
			wanted.type = DP_TYPE_INT64;
			wanted.len = 8;
			dp_put_int64(bytes, count);
		}
		wanted.data = bytes;
		if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->count, &value) ||
			!dp_value_identical(&value, &wanted))
			doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->count, &wanted);
	}
	return doc;
}

/* Whether the first values of one list are the other, byte for byte. */
static bool
array_begins_with(const DpValueList *longer, const DpValueList *shorter)
{
	int			i;

	if (longer->n < shorter->n)
		return false;
	for (i = 0; i < shorter->n; i++)
	{
		if (!dp_value_identical(&longer->v[i], &shorter->v[i]))
			return false;
	}
	return true;
}

/* Leave out the values that are stored already. */
static void
drop_stored(Outlier *o, const DpKey *key, DpValueList *values)
{
	int			kept = 0;
	int			i;

	for (i = 0; i < values->n; i++)
	{
		if (!dp_outlier_holds(o, key, &values->v[i], true))
			values->v[kept++] = values->v[i];
	}
	values->n = kept;
}

/* The count that a document shows, or -1. */
static int64
count_of(const Outlier *o, struct varlena *doc)
{
	DpValue		value;

	if (o->count == NULL ||
		!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->count, &value))
		return -1;
	if (value.type == DP_TYPE_INT32)
		return dp_get_int32(value.data);
	if (value.type == DP_TYPE_INT64)
		return dp_get_int64(value.data);
	return -1;
}
