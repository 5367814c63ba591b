/*
 * joinfn.c
 *		What the SQL of $lookup calls: the values by which documents join, and their result.
 *
 * Each document joins by the set of its values at a path.  Of the local document these are the
 * values and, for an array at the end of the path, its elements.  Of a foreign document, an array
 * is a value as well, as in a filter {path: value}.  A missing value is null, and so is undefined.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/collation.h"
#include "bson/compare.h"
#include "bson/fetch.h"
#include "bson/path.h"

/* Distinct values, the least first; they point into a document */
typedef struct Values
{
	DpValue *values;
	int n;
	int max;
} Values;

/* What a call of a function that returns several values leaves to the next one */
typedef struct Series
{
	DpPathCache path;
	struct varlena **values;
	int n; /* 0: there is no next call */
	int next;
} Series;

static const DpValue null_value = { dp_empty_document, 0, DP_TYPE_NULL };

static Datum return_local(PG_FUNCTION_ARGS);
static Datum return_foreign(PG_FUNCTION_ARGS);
static Datum join_once(PG_FUNCTION_ARGS);
static Datum return_series(FunctionCallInfo fcinfo, bool foreign);
static void series_end(Datum arg);
static Datum array_of_values(const Values *v);

/* ---------------------------------------------------------------- values */

static bool
add_value(const DpValue *value, void *arg)
{
	Values *v = arg;

	if (v->n == v->max)
	{
		v->max = Max(8, v->max * 2);
		v->values = v->values == NULL ? palloc(v->max * sizeof(DpValue))
									  : repalloc(v->values, v->max * sizeof(DpValue));
	}
	v->values[v->n++] = value->type == DP_TYPE_UNDEFINED ? null_value : *value;
	return true;
}

/* Sorts the values and removes duplicates. */
static void
make_set(Values *v)
{
	int n = Min(v->n, 1);

	if (v->n < 2)
		return;
	dp_values_sort(v->values, v->n);
	for (int i = 1; i < v->n; i++)
		if (dp_value_compare(&v->values[i], &v->values[n - 1]) != 0)
			v->values[n++] = v->values[i];
	v->n = n;
}

/* Whether a field of a local document has one value, which it has in most. */
static bool
local_value(Datum doc, DpPath *path, DpValue *value)
{
	return path->nsteps == 1 && dp_fetch_path(doc, path, true, value) &&
		   value->type != DP_TYPE_ARRAY && value->type != DP_TYPE_UNDEFINED;
}

static void
local_values(struct varlena *doc, const DpPath *path, Values *v)
{
	memset(v, 0, sizeof(Values));
	dp_path_each(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, add_value, v);
	if (v->n == 0)
		add_value(&null_value, v);
	make_set(v);
}

/* Adds what a filter finds from step on; container is a document, or an array for a position. */
static void
add_foreign(const DpValue *container, const DpPath *path, int step, Values *v)
{
	const uint8 *at;
	DpValue value;
	DpValue element;
	DpIter iter;
	bool last = step + 1 == path->nsteps;

	check_stack_depth();
	if (!dp_step_find(container, &path->steps[step], &at, &value))
	{
		if (container->type == DP_TYPE_DOCUMENT)
			add_value(&null_value, v);
		return;
	}
	if (last)
		add_value(&value, v);
	if (value.type == DP_TYPE_DOCUMENT && !last)
		add_foreign(&value, path, step + 1, v);
	else if (value.type == DP_TYPE_ARRAY && !(last && container->type == DP_TYPE_ARRAY))
	{
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &element))
			if (last)
				add_value(&element, v);
			else if (element.type == DP_TYPE_DOCUMENT)
				add_foreign(&element, path, step + 1, v);
		if (!last && path->steps[step + 1].is_index && path->steps[step + 1].index >= 0)
			add_foreign(&value, path, step + 1, v);
	}
	else if (!last)
		add_value(&null_value, v);
}

static void
foreign_values(struct varlena *doc, const DpPath *path, Values *v)
{
	DpValue whole = dp_value_of_document(doc);

	memset(v, 0, sizeof(Values));
	add_foreign(&whole, path, 0, v);
	make_set(v);
}

/* ---------------------------------------------------------------- functions */

/*
 * _join_local(doc bson, path text [, collation bson]) -> setof bson_value: the values of a local
 * document.
 */
DP_FUNCTION(dp_join_local);
Datum
dp_join_local(PG_FUNCTION_ARGS)
{
	return PG_NARGS() > 2 ? dp_collated_call(fcinfo, return_local) : return_local(fcinfo);
}

static Datum
return_local(PG_FUNCTION_ARGS)
{
	return return_series(fcinfo, false);
}

/* _join_foreign(doc bson, path text [, collation bson]): those of a foreign document. */
DP_FUNCTION(dp_join_foreign);
Datum
dp_join_foreign(PG_FUNCTION_ARGS)
{
	return PG_NARGS() > 2 ? dp_collated_call(fcinfo, return_foreign) : return_foreign(fcinfo);
}

static Datum
return_foreign(PG_FUNCTION_ARGS)
{
	return return_series(fcinfo, true);
}

/* Most documents have one value, for which nothing is kept until the next call. */
static Datum
return_series(FunctionCallInfo fcinfo, bool foreign)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Series *series = fcinfo->flinfo->fn_extra;
	MemoryContext old;
	Values v;

	if (series == NULL)
		series = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(Series));
	if (series->n == 0)
	{
		DpPath *path = dp_path_cached(&series->path, fcinfo, 1);
		DpValue one;

		if (!foreign && local_value(PG_GETARG_DATUM(0), path, &one))
			PG_RETURN_POINTER(dp_value_to_varlena(&one));
		(foreign ? foreign_values : local_values)(DP_GETARG_VARLENA(0), path, &v);
		if (v.n == 1)
			PG_RETURN_POINTER(dp_value_to_varlena(&v.values[0]));
		if (v.n == 0)
		{
			result->isDone = ExprEndResult;
			PG_RETURN_NULL();
		}
		old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		series->values = palloc(v.n * sizeof(struct varlena *));
		for (int i = 0; i < v.n; i++)
			series->values[i] = dp_value_to_varlena(&v.values[i]);
		series->n = v.n;
		series->next = 0;
		MemoryContextSwitchTo(old);
		RegisterExprContextCallback(result->econtext, series_end, PointerGetDatum(series));
	}
	if (series->next < series->n)
	{
		struct varlena *value = series->values[series->next++];
		DpValue copy = dp_value_of_varlena(value);

		result->isDone = ExprMultipleResult;
		PG_RETURN_POINTER(dp_value_to_varlena(&copy));
	}
	UnregisterExprContextCallback(result->econtext, series_end, PointerGetDatum(series));
	series_end(PointerGetDatum(series));
	result->isDone = ExprEndResult;
	PG_RETURN_NULL();
}

/* Forgets the values, also if the caller does not want the rest. */
static void
series_end(Datum arg)
{
	Series *series = (Series *) DatumGetPointer(arg);

	for (int i = 0; i < series->n; i++)
		pfree(series->values[i]);
	pfree(series->values);
	series->n = 0;
}

/* _join_values(doc bson, path text) -> bson_value[]: the values of a local document. */
DP_FUNCTION(dp_join_values);
Datum
dp_join_values(PG_FUNCTION_ARGS)
{
	Values v;

	local_values(DP_GETARG_VARLENA(0), dp_path_arg(fcinfo, 1), &v);
	return array_of_values(&v);
}

/* _join_several(doc bson, path text) -> bson_value[]: the same if there are several, or NULL. */
DP_FUNCTION(dp_join_several);
Datum
dp_join_several(PG_FUNCTION_ARGS)
{
	Values v;

	local_values(DP_GETARG_VARLENA(0), dp_path_arg(fcinfo, 1), &v);
	if (v.n < 2)
		PG_RETURN_NULL();
	return array_of_values(&v);
}

static Datum
array_of_values(const Values *v)
{
	Datum *values = palloc(v->n * sizeof(Datum));

	for (int i = 0; i < v->n; i++)
		values[i] = PointerGetDatum(dp_value_to_varlena(&v->values[i]));
	return PointerGetDatum(construct_array(values, v->n, dp_types()->bson_value, -1, false,
										   TYPALIGN_INT));
}

/* _join_value(doc bson, path text) -> bson_value: the same if there is one; otherwise NULL. */
DP_FUNCTION(dp_join_value);
Datum
dp_join_value(PG_FUNCTION_ARGS)
{
	DpPath *path = dp_path_arg(fcinfo, 1);
	DpValue one;
	Values v;

	if (local_value(PG_GETARG_DATUM(0), path, &one))
		PG_RETURN_POINTER(dp_value_to_varlena(&one));
	local_values(DP_GETARG_VARLENA(0), path, &v);
	if (v.n > 1)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_value_to_varlena(&v.values[0]));
}

/*
 * _join_filter(field text, vals bson_value[]) -> bson: the filter {field: {$in: vals}}, or one
 * condition for each value if there are regular expressions, which are values here.
 */
DP_FUNCTION(dp_join_filter);
Datum
dp_join_filter(PG_FUNCTION_ARGS)
{
	char *field = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ArrayIterator iter = array_create_iterator(PG_GETARG_ARRAYTYPE_P(1), 0, NULL);
	DpBuilder b;
	Values v = { 0 };
	bool regex = false;
	Datum d;
	bool isnull;

	while (array_iterate(iter, &d, &isnull))
	{
		DpValue value;

		if (isnull)
			continue;
		value = dp_value_of_varlena((struct varlena *) DatumGetPointer(d));
		regex = regex || value.type == DP_TYPE_REGEX;
		add_value(&value, &v);
	}
	dp_builder_init(&b, 256);
	dp_builder_begin_document(&b);
	if (regex)
		dp_builder_begin_array_field(&b, "$or", 3);
	else
	{
		dp_builder_begin_document_field(&b, field, strlen(field));
		dp_builder_begin_array_field(&b, "$in", 3);
	}
	for (int i = 0; i < v.n; i++)
		if (regex)
		{
			dp_builder_begin_document_field(&b, NULL, 0);
			dp_builder_begin_document_field(&b, field, strlen(field));
			dp_builder_append_value(&b, "$eq", 3, &v.values[i]);
			dp_builder_end(&b);
			dp_builder_end(&b);
		}
		else
			dp_builder_append_value(&b, NULL, 0, &v.values[i]);
	dp_builder_end(&b);
	if (!regex)
		dp_builder_end(&b);
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/*
 * _join_has(doc bson, path text, vals bson_value[]) -> boolean: whether a foreign document has
 * one of the values.
 */
DP_FUNCTION(dp_join_has);
Datum
dp_join_has(PG_FUNCTION_ARGS)
{
	ArrayIterator iter = array_create_iterator(PG_GETARG_ARRAYTYPE_P(2), 0, NULL);
	Values v;
	Datum wanted;
	bool isnull;

	foreign_values(DP_GETARG_VARLENA(0), dp_path_arg(fcinfo, 1), &v);
	while (array_iterate(iter, &wanted, &isnull))
	{
		DpValue value;

		if (isnull)
			continue;
		value = dp_value_of_varlena((struct varlena *) DatumGetPointer(wanted));
		if (dp_values_find(v.values, v.n, &value) >= 0)
			PG_RETURN_BOOL(true);
	}
	PG_RETURN_BOOL(false);
}

/*
 * _join_once(local bson, local_path text, foreign bson, foreign_path text, value bson_value
 * [, collation bson]) -> boolean: whether the value is the first that the documents share, so that
 * they join once.
 */
DP_FUNCTION(dp_join_once);
Datum
dp_join_once(PG_FUNCTION_ARGS)
{
	return PG_NARGS() > 5 ? dp_collated_call(fcinfo, join_once) : join_once(fcinfo);
}

static Datum
join_once(PG_FUNCTION_ARGS)
{
	DpPathCache *paths = fcinfo->flinfo->fn_extra;
	DpValue value = dp_value_of_varlena(DP_GETARG_VARLENA(4));
	Values v;
	Values other;

	if (paths == NULL)
		paths = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, 2 * sizeof(DpPathCache));
	local_values(DP_GETARG_VARLENA(0), dp_path_cached(&paths[0], fcinfo, 1), &v);
	if (v.n == 1)
		PG_RETURN_BOOL(true);
	foreign_values(DP_GETARG_VARLENA(2), dp_path_cached(&paths[1], fcinfo, 3), &other);
	for (int i = 0; i < v.n; i++)
		if (dp_values_find(other.values, other.n, &v.values[i]) >= 0)
			PG_RETURN_BOOL(dp_value_compare(&v.values[i], &value) == 0);
	PG_RETURN_BOOL(false);
}

/* _join_first(bson, bson) -> bson: the first one. */
DP_FUNCTION(dp_join_first);
Datum
dp_join_first(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

/* _join_below(doc bson, path text) -> bson: the document at the path; an empty one for all else. */
DP_FUNCTION(dp_join_below);
Datum
dp_join_below(PG_FUNCTION_ARGS)
{
	struct varlena *doc = DP_GETARG_VARLENA(0);
	DpValue value;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), dp_path_arg(fcinfo, 1), &value) ||
		value.type != DP_TYPE_DOCUMENT)
		PG_RETURN_POINTER(dp_document_to_varlena(dp_empty_document, DP_DOCUMENT_MIN_SIZE));
	PG_RETURN_POINTER(dp_document_to_varlena(value.data, value.len));
}
