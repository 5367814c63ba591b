/*
 * arrange.c
 *		Brings a document with the outlier pattern into its right form.
 *
 * Has the options of a declaration, reads and writes rows, and
 * dp_outlier_correct(), which corrects a row from any state.  outlier.c decides
 * which rows to correct.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/limits.h"
#include "bson/reader.h"
#include "kit/adopt.h"
#include "kit/options.h"
#include "kit/rows/by_statement.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/outlier/outlier.h"

static void drop_stored(DpOutlier *o, const DpKey *key, DpValueList *values);

/* Returns the options of a declaration, read once. */
DpOutlier *
dp_outlier(DpDecl *decl)
{
	DpOutlier *o = decl->state;

	if (likely(o != NULL))
		return o;

	o = MemoryContextAllocZero(decl->context, sizeof(DpOutlier));
	o->decl = decl;
	o->keep = -1;
	dp_options_read(decl, o);
	if (o->keep < 0)
		o->keep = o->threshold;
	decl->state = o;
	return o;
}

/* Returns the field of a document if it is an array. */
bool
dp_outlier_array(const DpOutlier *o, struct varlena *doc, DpValue *array)
{
	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->field, array) &&
		   array->type == DP_TYPE_ARRAY;
}

bool
dp_outlier_flagged(const DpOutlier *o, struct varlena *doc)
{
	DpValue value;

	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->flag, &value) &&
		   value.type == DP_TYPE_BOOL && value.data[0] != 0;
}

/*
 * Returns whether the document has extras. Only flagged documents can, so that others cost
 * nothing. May be called outside SPI_connect().
 */
bool
dp_outlier_has_extras(DpOutlier *o, struct varlena *doc, const DpKey *key)
{
	bool result;

	if (!dp_outlier_flagged(o, doc))
		return false;
	SPI_connect();
	result = dp_outlier_exists(o, key);
	SPI_finish();
	return result;
}

/*
 * Locks the row as an update of other columns than the key does. Returns its document, a detoasted
 * copy in SPI's memory.
 */
struct varlena *
dp_outlier_lock(DpOutlier *o, const DpKey *key, bool as_owner, bool *is_null)
{
	struct varlena *doc;

	if (!dp_row_read(o->decl, key, " FOR NO KEY UPDATE", as_owner ? DP_RUN_AS_OWNER : DP_RUN_LOCK,
					 &doc))
		return NULL;
	if (is_null != NULL)
		*is_null = doc == NULL;
	return doc != NULL ? doc : dp_document_to_varlena(dp_empty_document, sizeof(dp_empty_document));
}

/* Writes a document in its right form, as the table's owner. */
void
dp_outlier_write(DpOutlier *o, const DpKey *key, struct varlena *before, struct varlena *doc)
{
	SPIPlanPtr plan;
	Datum values[INDEX_MAX_KEYS + 1];

	if (dp_same_bytes(before, doc))
		return;
	plan = dp_row_plan_write(o->decl, key, doc, DP_RUN_AS_OWNER, values);
	dp_run_writing(o->decl, plan, values, DP_RUN_AS_OWNER, doc);
}

/*
 * Returns the document with the kept elements, flag and count. With keep => 0 an outlier has no
 * field.
 */
struct varlena *
dp_outlier_arrange(DpOutlier *o, struct varlena *doc, const DpValueList *kept, bool has_extras,
				   int64 total)
{
	DpValue array;

	if (has_extras && o->keep == 0)
	{
		struct varlena *without = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->field);

		if (without != NULL)
			doc = without;
	}
	else if (kept->n > 0 || dp_outlier_array(o, doc, &array))
	{
		DpBuilder b;
		int i;

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
 * Returns the document with the right flag and count, itself if they are right. A negative count
 * leaves the count unchanged.
 */
struct varlena *
dp_outlier_mark(DpOutlier *o, struct varlena *doc, bool flag, int64 count)
{
	static const uint8 yes = 1;
	DpValue value;
	bool has = dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->flag, &value);

	if (flag && !(has && value.type == DP_TYPE_BOOL && value.data[0] != 0))
	{
		if (has && dp_held(o->decl, o->flag) && dp_value_lost(&value, NULL, NIL) &&
			!dp_value_is_mark(&value))
			dp_held_refuse(o->decl, o->flag);
		value.type = DP_TYPE_BOOL;
		value.data = &yes;
		value.len = 1;
		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->flag, &value);
	}
	else if (!flag && has &&
			 (o->had_extras || !dp_held(o->decl, o->flag) || !dp_value_lost(&value, NULL, NIL) ||
			  dp_value_is_mark(&value)))
		doc = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->flag);

	if (o->count != NULL && count >= 0)
	{
		uint8 bytes[8];
		DpValue wanted;

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

/* Returns the rest of the document with these numbers of kept and stored elements. */
static struct varlena *
arrange_counted(DpOutlier *o, struct varlena *doc, DpValueList *kept, int64 stored, bool has_extras)
{
	struct varlena *arranged;

	o->had_extras = has_extras;
	PG_TRY();
	{
		arranged = dp_outlier_arrange(o, doc, kept, stored > 0,
									  !(has_extras && dp_outlier_flagged(o, doc)) &&
											  dp_outlier_count_is_held(o, doc)
										  ? -1
										  : kept->n + stored);
	}
	PG_FINALLY();
	{
		o->had_extras = false;
	}
	PG_END_TRY();
	return arranged;
}

/* Corrects one row from its stored state alone. */
bool
dp_outlier_correct(DpOutlier *o, const DpKey *key, bool spill_deferred)
{
	bool is_null;
	struct varlena *doc = dp_outlier_lock(o, key, true, &is_null);
	struct varlena *arranged;
	DpValueList kept = { 0 };
	DpValue array;
	bool has_extras;
	bool moved = false;
	bool fewer = false;
	int64 stored = 0;

	if (doc == NULL)
		return false;
	has_extras = dp_outlier_exists(o, key);
	if (is_null)
	{
		/* without a document there are no extras */
		if (has_extras)
			dp_outlier_drop(o, key);
		return has_extras;
	}
	if (dp_outlier_array(o, doc, &array))
		dp_values_add_array(&kept, &array);

	if (o->is_set)
	{
		int n = kept.n;

		if (has_extras)
			drop_stored(o, key, &kept);
		dp_values_distinct(&kept);
		fewer = kept.n < n;
	}
	if (has_extras)
		stored = dp_outlier_stored(o, key, true);
	if (stored > 0 || kept.n > o->threshold)
	{
		/* all elements return if no more than a typical document may have */
		int64 over = kept.n - (kept.n + stored > o->threshold ? o->keep : kept.n + stored);

		if (!has_extras && o->deferred && !spill_deferred)
		{
			arranged = fewer ? dp_outlier_arrange(o, doc, &kept, false, kept.n) : doc;
			arranged = dp_outlier_mark(o, arranged, true, kept.n);
			dp_outlier_write(o, key, doc, arranged);
			return arranged != doc;
		}
		if (over > 0)
		{
			/* further elements go to the near end of the extras */
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
			DpValueList refill = { 0 };
			int i;

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
	arranged = arrange_counted(o, doc, &kept, stored, has_extras);
	dp_outlier_write(o, key, doc, arranged);
	return moved || !dp_same_bytes(arranged, doc);
}

/* Corrects every flagged row. */
int64
dp_outlier_correct_flagged(DpOutlier *o, bool spill_deferred)
{
	SPIPlanPtr plan =
		dp_statement(o->decl,
					 "SELECT {key} FROM {table} WHERE {path flag}{own =}true ORDER BY {key}");
	SPITupleTable *table;
	int64 written = 0;
	uint64 rows;
	uint64 i;

	rows = dp_run(o->decl, plan, NULL, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT);
	table = SPI_tuptable;
	for (i = 0; i < rows; i++)
	{
		DpKey key;
		int j;

		CHECK_FOR_INTERRUPTS();
		key.n = o->decl->nkeys;
		for (j = 0; j < key.n; j++)
		{
			bool isnull;

			key.values[j] = SPI_getbinval(table->vals[i], table->tupdesc, j + 1, &isnull);
		}
		if (dp_outlier_correct(o, &key, spill_deferred))
			written++;
	}
	return written;
}

/* Returns the logical document: the whole array, without the flag. */
struct varlena *
dp_outlier_whole(DpOutlier *o, struct varlena *doc, const DpKey *key, bool latest)
{
	DpBuilder b;
	DpValue array;
	DpIter iter;
	DpValue value;
	bool has_array = dp_outlier_array(o, doc, &array);
	int limit = dp_max_document_size;
	struct varlena *bare = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), o->flag);
	struct varlena *volatile result = NULL;

	/* a whole document may be larger than a stored one */
	dp_max_document_size = MaxAllocSize - VARHDRSZ;
	PG_TRY();
	{
		struct varlena *unflagged = bare != NULL ? bare : doc;

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

void
dp_values_add(DpValueList *list, const DpValue *value)
{
	if (list->n == list->cap)
	{
		int cap = Max(16, list->cap * 2);
		DpValue *v = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(DpValue) * (Size) cap);

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
	DpIter iter;
	DpValue value;

	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &value))
		dp_values_add(list, &value);
}

/* Keeps the first of equal values. Returns how many were removed. */
int
dp_values_distinct(DpValueList *list)
{
	uint32 size = 16;
	int32 *slots;
	int kept = 0;
	int i;

	while (size < (uint32) list->n * 2)
		size *= 2;
	slots = palloc_extended(sizeof(int32) * (Size) size, MCXT_ALLOC_HUGE);
	memset(slots, -1, sizeof(int32) * (Size) size);
	for (i = 0; i < list->n; i++)
	{
		uint32 slot = dp_value_hash(&list->v[i], 0) & (size - 1);

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
 * Returns whether an array has more than n elements. An element takes at least three bytes, so
 * short arrays need not be walked.
 */
bool
dp_outlier_exceeds(const DpValue *array, int n)
{
	return array->len - DP_DOCUMENT_MIN_SIZE > (uint64) n * 3 &&
		   dp_document_count(array->data, array->len) > (uint32) n;
}

/* Removes values that are stored already. */
static void
drop_stored(DpOutlier *o, const DpKey *key, DpValueList *values)
{
	int kept = 0;
	int i;

	for (i = 0; i < values->n; i++)
	{
		if (!dp_outlier_holds(o, key, &values->v[i], true))
			values->v[kept++] = values->v[i];
	}
	values->n = kept;
}
