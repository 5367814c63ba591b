/*
 * editfn.c
 *		Editing from SQL: bson_set, bson_unset, bson_array_append, || and -.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "bson/cast.h"
#include "bson/edit.h"

/* The cache between the calls of a function that takes any value */
typedef struct EditCache
{
	DpPathCache path;
	DpConverter converter; /* of the last value's type, InvalidOid at first */
} EditCache;

static EditCache *edit_cache(FunctionCallInfo fcinfo);
static inline bool is_own_copy(FunctionCallInfo fcinfo, const struct varlena *doc);
static DpValue
argument_value(FunctionCallInfo fcinfo, EditCache *cache, Datum d, bool isnull, Oid typid);
static const uint8 nothing[1] = { 0 };

/*
 * The cache of this call site, made when missing.
 */
static EditCache *
edit_cache(FunctionCallInfo fcinfo)
{
	if (unlikely(fcinfo->flinfo->fn_extra == NULL))
		fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(EditCache));
	return fcinfo->flinfo->fn_extra;
}

/*
 * Whether the document that argument 0 became is a copy of our own: what was
 * compressed, or fetched from outside its row, is.
 */
static inline bool
is_own_copy(FunctionCallInfo fcinfo, const struct varlena *doc)
{
	return (Pointer) doc != DatumGetPointer(PG_GETARG_DATUM(0));
}

/*
 * The BSON value of an SQL value; SQL NULL is null.
 */
static DpValue
argument_value(FunctionCallInfo fcinfo, EditCache *cache, Datum d, bool isnull, Oid typid)
{
	if (isnull)
	{
		DpValue null = { nothing, 0, DP_TYPE_NULL };

		return null;
	}
	if (unlikely(cache->converter.typid != typid))
		dp_converter_init(&cache->converter, typid, fcinfo->flinfo->fn_mcxt);
	return dp_value_of_varlena(dp_converter_value(&cache->converter, d));
}

/*
 * bson_set(bson, path text, value anycompatible [, create_missing bool]) -> bson: the
 * document with the value where the path leads; SQL NULL is stored as null.
 */
DP_FUNCTION(dp_bson_set);
Datum
dp_bson_set(PG_FUNCTION_ARGS)
{
	EditCache *cache;
	struct varlena *doc;
	struct varlena *result;
	const DpPath *path;
	DpValue value;
	bool create = true;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || (PG_NARGS() > 3 && PG_ARGISNULL(3)))
		PG_RETURN_NULL();
	if (PG_NARGS() > 3)
		create = PG_GETARG_BOOL(3);
	cache = edit_cache(fcinfo);
	doc = DP_GETARG_VARLENA(0);
	value = argument_value(fcinfo, cache, PG_GETARG_DATUM(2), PG_ARGISNULL(2),
						   get_fn_expr_argtype(fcinfo->flinfo, 2));
	path = dp_path_cached(&cache->path, fcinfo, 1);

	if (is_own_copy(fcinfo, doc))
		result = dp_document_set_own(doc, path, &value, create);
	else
		result = dp_document_set_if(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value, create);
	PG_RETURN_POINTER(result ? result : doc);
}

/*
 * bson_array_append(bson, path text, VARIADIC "any") -> bson: the document with the values appended
 * to the array at the path.
 */
DP_FUNCTION(dp_bson_array_append);
Datum
dp_bson_array_append(PG_FUNCTION_ARGS)
{
	EditCache *cache;
	struct varlena *doc;
	const DpPath *path;
	DpValue *values;
	Datum *args;
	Oid *types;
	bool *nulls;
	int n;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	cache = edit_cache(fcinfo);
	doc = DP_GETARG_VARLENA(0);
	path = dp_path_cached(&cache->path, fcinfo, 1);
	n = extract_variadic_args(fcinfo, 2, true, &args, &types, &nulls);
	if (n < 0)
		PG_RETURN_NULL();
	values = palloc(sizeof(DpValue) * Max(n, 1));
	for (int i = 0; i < n; i++)
		values[i] = argument_value(fcinfo, cache, args[i], nulls[i], types[i]);
	if (is_own_copy(fcinfo, doc))
		PG_RETURN_POINTER(dp_document_append_own(doc, path, values, n));
	PG_RETURN_POINTER(dp_document_append(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, values, n));
}

/*
 * bson_unset(bson, VARIADIC paths text[]) -> bson, bson - text[]: the document without the values
 * at the paths.
 */
DP_FUNCTION(dp_bson_unset);
Datum
dp_bson_unset(PG_FUNCTION_ARGS)
{
	struct varlena *doc = DP_GETARG_VARLENA(0);
	Datum *texts;
	bool *nulls;
	DpPath **paths;
	int npaths = 0;
	int n;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, -1, false, TYPALIGN_INT, &texts, &nulls,
					  &n);
	paths = palloc(sizeof(DpPath *) * Max(n, 1));
	for (int i = 0; i < n; i++)
		if (!nulls[i])
			paths[npaths++] = dp_path_parse(VARDATA_ANY(DatumGetPointer(texts[i])),
											VARSIZE_ANY_EXHDR(DatumGetPointer(texts[i])));
	PG_RETURN_POINTER(dp_document_unset_all(doc, paths, npaths));
}

/*
 * bson - text: the same for one path.
 */
DP_FUNCTION(dp_bson_unset_one);
Datum
dp_bson_unset_one(PG_FUNCTION_ARGS)
{
	struct varlena *doc = DP_GETARG_VARLENA(0);
	struct varlena *result =
		dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), dp_path_arg(fcinfo, 1));

	PG_RETURN_POINTER(result ? result : doc);
}

/*
 * bson || bson: the fields of both, the right one's values winning.
 */
DP_FUNCTION(dp_bson_concat);
Datum
dp_bson_concat(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	struct varlena *b = DP_GETARG_VARLENA(1);

	PG_RETURN_POINTER(dp_document_merge(DP_DOC_DATA(a), DP_DOC_SIZE(a), DP_DOC_DATA(b),
										DP_DOC_SIZE(b)));
}

/*
 * bson_value || bson_value: two documents become one, with the right one's
 * values winning; anything else becomes an array, of which a value that is no
 * array is one element.
 */
DP_FUNCTION(dp_bson_value_concat);
Datum
dp_bson_value_concat(PG_FUNCTION_ARGS)
{
	DpValue a = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	DpValue b = dp_value_of_varlena(DP_GETARG_VARLENA(1));

	if (a.type == DP_TYPE_DOCUMENT && b.type == DP_TYPE_DOCUMENT)
		PG_RETURN_POINTER(dp_value_merge(&a, &b));
	PG_RETURN_POINTER(dp_array_concat(&a, &b));
}

/*
 * bson_value - text: a document or an array without the value at the path.  Raises
 * INVALID_PARAMETER_VALUE for any other value.
 */
DP_FUNCTION(dp_bson_value_unset);
Datum
dp_bson_value_unset(PG_FUNCTION_ARGS)
{
	struct varlena *v = DP_GETARG_VARLENA(0);
	DpValue value = dp_value_of_varlena(v);
	struct varlena *result = dp_value_unset(&value, dp_path_arg(fcinfo, 1));

	PG_RETURN_POINTER(result ? result : v);
}

/*
 * bson_value - int: an array without the element at a position, negative ones
 * from the end.  Raises DATATYPE_MISMATCH for anything else.
 */
DP_FUNCTION(dp_bson_value_remove);
Datum
dp_bson_value_remove(PG_FUNCTION_ARGS)
{
	struct varlena *v = DP_GETARG_VARLENA(0);
	DpValue value = dp_value_of_varlena(v);
	struct varlena *result;

	if (value.type != DP_TYPE_ARRAY)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("cannot remove an element by position from a value that is not an array"),
				 errdetail("The value has the type %s.", dp_type_name(value.type))));
	result = dp_array_remove(&value, PG_GETARG_INT32(1));
	PG_RETURN_POINTER(result ? result : v);
}
