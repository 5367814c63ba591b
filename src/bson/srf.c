/*
 * srf.c
 *		Functions that return a row for each field of a document or each
 *		element of an array.
 *
 * All of them return one row a call, so that a LIMIT in the select list stops
 * them.  An argument stays until the last row, as unnest() of PostgreSQL assumes, too; a detoasted
 * one is in the context of all calls.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "bson/cast.h"
#include "bson/edit.h"
#include "bson/fetch.h"
#include "bson/path.h"
#include "bson/reader.h"

/* Where bson_unwind stands */
typedef struct Unwind
{
	struct varlena *document; /* what the elements are put into */
	DpPath *path;
	DpPath *index_path; /* or NULL */
	bool is_array;      /* else there is one row, the unchanged document */
	DpIter iter;
	int64 index;
} Unwind;

static Unwind *unwind_start(FunctionCallInfo fcinfo);
static struct varlena *unwind_row(const Unwind *unwind, const DpValue *value);

/*
 * bson_each(bson) -> setof (key text, value bson_value)
 */
DP_FUNCTION(dp_bson_each);
Datum
dp_bson_each(PG_FUNCTION_ARGS)
{
	FuncCallContext *set;
	DpElement element;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext old;
		DpIter *iter;

		set = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(set->multi_call_memory_ctx);
		if (get_call_result_type(fcinfo, NULL, &set->tuple_desc) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		set->tuple_desc = BlessTupleDesc(set->tuple_desc);
		iter = palloc(sizeof(DpIter));
		dp_iter_init_varlena(iter, DP_GETARG_VARLENA(0));
		set->user_fctx = iter;
		MemoryContextSwitchTo(old);
	}

	set = SRF_PERCALL_SETUP();
	if (dp_iter_next((DpIter *) set->user_fctx, &element))
	{
		Datum values[2];
		bool nulls[2] = { false, false };

		values[0] = PointerGetDatum(cstring_to_text_with_len(element.name, element.namelen));
		values[1] = PointerGetDatum(dp_value_to_varlena(&element.value));
		SRF_RETURN_NEXT(set, HeapTupleGetDatum(heap_form_tuple(set->tuple_desc, values, nulls)));
	}
	SRF_RETURN_DONE(set);
}

/*
 * bson_keys(bson) -> setof text
 */
DP_FUNCTION(dp_bson_keys);
Datum
dp_bson_keys(PG_FUNCTION_ARGS)
{
	FuncCallContext *set;
	DpElement element;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext old;
		DpIter *iter;

		set = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(set->multi_call_memory_ctx);
		iter = palloc(sizeof(DpIter));
		dp_iter_init_varlena(iter, DP_GETARG_VARLENA(0));
		set->user_fctx = iter;
		MemoryContextSwitchTo(old);
	}

	set = SRF_PERCALL_SETUP();
	if (dp_iter_next((DpIter *) set->user_fctx, &element))
		SRF_RETURN_NEXT(set,
						PointerGetDatum(cstring_to_text_with_len(element.name, element.namelen)));
	SRF_RETURN_DONE(set);
}

/*
 * bson_elements(bson_value) -> setof bson_value.  null has no elements; raises
 * INVALID_PARAMETER_VALUE for anything else that is no array.
 */
DP_FUNCTION(dp_bson_elements);
Datum
dp_bson_elements(PG_FUNCTION_ARGS)
{
	FuncCallContext *set;
	DpValue value;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext old;
		DpIter *iter;

		set = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(set->multi_call_memory_ctx);
		value = dp_value_of_varlena(DP_GETARG_VARLENA(0));
		iter = palloc0(sizeof(DpIter));
		if (value.type == DP_TYPE_ARRAY)
			dp_iter_init_value(iter, &value);
		else if (value.type != DP_TYPE_NULL && value.type != DP_TYPE_UNDEFINED)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("cannot get the elements of a value that is not an array"),
					 errdetail("Found a value of BSON type \"%s\".", dp_type_name(value.type))));
		set->user_fctx = iter;
		MemoryContextSwitchTo(old);
	}

	set = SRF_PERCALL_SETUP();
	if (dp_iter_next_value((DpIter *) set->user_fctx, &value))
		SRF_RETURN_NEXT(set, PointerGetDatum(dp_value_to_varlena(&value)));
	SRF_RETURN_DONE(set);
}

/*
 * bson_unwind(doc bson, path text, preserve_empty bool, index_field text) ->
 * setof bson: a document for each element of the array at the path, in which
 * the element stands instead of the array.
 */
DP_FUNCTION(dp_bson_unwind);
Datum
dp_bson_unwind(PG_FUNCTION_ARGS)
{
	FuncCallContext *set;
	Unwind *unwind;
	DpValue value;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext old;

		set = SRF_FIRSTCALL_INIT();
		if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
			SRF_RETURN_DONE(set);
		old = MemoryContextSwitchTo(set->multi_call_memory_ctx);
		set->user_fctx = unwind_start(fcinfo);
		MemoryContextSwitchTo(old);
	}

	set = SRF_PERCALL_SETUP();
	unwind = set->user_fctx;
	if (unwind == NULL)
		SRF_RETURN_DONE(set);

	if (!unwind->is_array)
	{
		if (set->call_cntr > 0)
			SRF_RETURN_DONE(set);
		SRF_RETURN_NEXT(set, PointerGetDatum(unwind_row(unwind, NULL)));
	}
	if (dp_iter_next_value(&unwind->iter, &value))
	{
		Datum row = PointerGetDatum(unwind_row(unwind, &value));

		unwind->index++;
		SRF_RETURN_NEXT(set, row);
	}
	SRF_RETURN_DONE(set);
}

/*
 * Reads the value at the path and prepares the rows; NULL if there are none.  Runs in the context
 * in which rows are made.
 */
static Unwind *
unwind_start(FunctionCallInfo fcinfo)
{
	struct varlena *doc = DP_GETARG_VARLENA(0);
	text *path = PG_GETARG_TEXT_PP(1);
	bool preserve = !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);
	Unwind *unwind = palloc0(sizeof(Unwind));
	DpValue null = { NULL, 0, DP_TYPE_NULL };
	DpValue value;

	dp_fetch_ahead(DP_DOC_DATA(doc), DP_DOC_SIZE(doc));
	unwind->document = doc;
	unwind->path = dp_path_parse(VARDATA_ANY(path), VARSIZE_ANY_EXHDR(path));
	if (!PG_ARGISNULL(3))
	{
		text *index_field = PG_GETARG_TEXT_PP(3);

		unwind->index_path =
			dp_path_parse(VARDATA_ANY(index_field), VARSIZE_ANY_EXHDR(index_field));
	}

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), unwind->path, &value) ||
		value.type == DP_TYPE_NULL || value.type == DP_TYPE_UNDEFINED)
		return preserve ? unwind : NULL;

	if (value.type != DP_TYPE_ARRAY)
		return unwind;

	if (value.len == DP_DOCUMENT_MIN_SIZE)
	{
		/* an empty array: the field is removed */
		unwind->document = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), unwind->path);
		return preserve ? unwind : NULL;
	}

	/* the document without the array, which need not be passed over again for each row */
	unwind->is_array = true;
	dp_iter_init_value(&unwind->iter, &value);
	unwind->document = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), unwind->path, &null);
	return unwind;
}

/*
 * One row: the document with the value at the path (unless NULL) and, if requested, the position.
 */
static struct varlena *
unwind_row(const Unwind *unwind, const DpValue *value)
{
	struct varlena *row = unwind->document;

	if (value != NULL)
		row = dp_document_set(DP_DOC_DATA(row), DP_DOC_SIZE(row), unwind->path, value);
	if (unwind->index_path != NULL)
	{
		uint8 bytes[8];
		DpValue index = { bytes, 0, DP_TYPE_NULL };

		if (value != NULL)
		{
			dp_put_int64(bytes, unwind->index);
			index.type = DP_TYPE_INT64;
			index.len = 8;
		}
		row = dp_document_set(DP_DOC_DATA(row), DP_DOC_SIZE(row), unwind->index_path, &index);
	}
	return row;
}
