/*
 * ancestors.c
 *		Lists of ancestors in arrays and in documents: their common part, and whether a node is
 *		in one.
 *
 * A list may begin with the root or end with it.  The functions need not know which: two lists of
 * one tree with a common ancestor have the root in common, and if they have the other end in common
 * as well, they are the same.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/typcache.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/path.h"

/* Two lists and how their elements compare */
typedef struct Lists
{
	int n[2];
	bool (*equal)(struct Lists *lists, int i, int j);
	/* of SQL values */
	Datum *elements[2];
	bool *nulls[2];
	TypeCacheEntry *type;
	Oid collation;
	/* of BSON values */
	DpValue *values[2];
} Lists;

static void read_arrays(FunctionCallInfo fcinfo, Lists *lists);
static bool read_values(FunctionCallInfo fcinfo, Lists *lists);
static int common(Lists *lists, int *first);
static bool elements_equal(Lists *lists, int i, int j);
static bool values_equal(Lists *lists, int i, int j);
static bool is_list(const DpValue *v);

/* ---------------------------------------------------------------- arrays */

/*
 * tree_common(anycompatiblearray, anycompatiblearray) -> anycompatiblearray: the common ancestors,
 * in order; empty without any.  Raises ARRAY_SUBSCRIPT_ERROR for an array of several dimensions.
 */
DP_FUNCTION(dp_tree_common);
Datum
dp_tree_common(PG_FUNCTION_ARGS)
{
	Lists lists;
	int first;
	int n;

	read_arrays(fcinfo, &lists);
	n = common(&lists, &first);
	PG_RETURN_ARRAYTYPE_P(construct_array(lists.elements[0] + first, n, lists.type->type_id,
										  lists.type->typlen, lists.type->typbyval,
										  lists.type->typalign));
}

/*
 * tree_lca(anycompatiblearray, anycompatiblearray) -> anycompatible: the lowest of them; NULL
 * without any
 */
DP_FUNCTION(dp_tree_lca);
Datum
dp_tree_lca(PG_FUNCTION_ARGS)
{
	Lists lists;
	int first;
	int n;

	read_arrays(fcinfo, &lists);
	n = common(&lists, &first);
	if (n == 0)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(lists.elements[0][first == 0 ? n - 1 : first]);
}

/*
 * tree_distance(anycompatiblearray, anycompatiblearray) -> int4: the edges
 * between the nodes at the lists' lower ends; NULL if they have nothing in common
 */
DP_FUNCTION(dp_tree_distance);
Datum
dp_tree_distance(PG_FUNCTION_ARGS)
{
	Lists lists;
	int first;
	int n;

	read_arrays(fcinfo, &lists);
	n = common(&lists, &first);
	if (n == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT32(lists.n[0] + lists.n[1] - 2 * n);
}

/* ---------------------------------------------------------------- BSON arrays */

/*
 * tree_common(bson_value, bson_value) -> bson_value; NULL if one is null, as in
 * all functions of BSON arrays.  Raises INVALID_PARAMETER_VALUE for what is no
 * array.
 */
DP_FUNCTION(dp_tree_common_value);
Datum
dp_tree_common_value(PG_FUNCTION_ARGS)
{
	Lists lists;
	DpBuilder b;
	int first;
	int n;

	if (!read_values(fcinfo, &lists))
		PG_RETURN_NULL();
	n = common(&lists, &first);
	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	for (int i = 0; i < n; i++)
		dp_builder_append_value(&b, NULL, 0, &lists.values[0][first + i]);
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_value(&b, DP_TYPE_ARRAY));
}

/*
 * tree_lca(bson_value, bson_value) -> bson_value
 */
DP_FUNCTION(dp_tree_lca_value);
Datum
dp_tree_lca_value(PG_FUNCTION_ARGS)
{
	Lists lists;
	int first;
	int n;

	if (!read_values(fcinfo, &lists))
		PG_RETURN_NULL();
	n = common(&lists, &first);
	if (n == 0)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_value_to_varlena(&lists.values[0][first == 0 ? n - 1 : first]));
}

/*
 * tree_distance(bson_value, bson_value) -> int4
 */
DP_FUNCTION(dp_tree_distance_value);
Datum
dp_tree_distance_value(PG_FUNCTION_ARGS)
{
	Lists lists;
	int first;
	int n;

	if (!read_values(fcinfo, &lists))
		PG_RETURN_NULL();
	n = common(&lists, &first);
	if (n == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT32(lists.n[0] + lists.n[1] - 2 * n);
}

/*
 * tree_depth(bson_value) -> int4: the number of ancestors
 */
DP_FUNCTION(dp_tree_depth_value);
Datum
dp_tree_depth_value(PG_FUNCTION_ARGS)
{
	DpValue v = dp_value_of_varlena(DP_GETARG_VARLENA(0));

	if (!is_list(&v))
		PG_RETURN_NULL();
	PG_RETURN_INT32(dp_array_count(v.data, v.len));
}

/*
 * tree_is_below(bson_value, anycompatiblenonarray) -> bool: whether the node is an
 * element of the array, or is the value itself, as in filters
 */
DP_FUNCTION(dp_tree_is_below_value);
Datum
dp_tree_is_below_value(PG_FUNCTION_ARGS)
{
	DpValue list = dp_value_of_varlena(DP_GETARG_VARLENA(0));
	DpValue node = dp_value_of_varlena(dp_datum_to_value(PG_GETARG_DATUM(1),
														 get_fn_expr_argtype(fcinfo->flinfo, 1)));
	DpIter iter;
	DpValue element;

	if (dp_type_class[node.type] == DP_CLASS_NULL || node.type == DP_TYPE_UNDEFINED)
		PG_RETURN_NULL();
	if (dp_value_compare(&list, &node) == 0)
		PG_RETURN_BOOL(true);
	if (list.type != DP_TYPE_ARRAY)
		PG_RETURN_BOOL(false);
	dp_iter_init_value(&iter, &list);
	while (dp_iter_next_value(&iter, &element))
		if (dp_value_compare(&element, &node) == 0)
			PG_RETURN_BOOL(true);
	PG_RETURN_BOOL(false);
}

/*
 * _tree_below_filter(path text, node anycompatiblenonarray) -> bson: the filter {path:
 * {$eq: node}}.  NULL if the node is null, which is below nothing.  Raises
 * INVALID_PARAMETER_VALUE for a path that filters cannot spell.
 */
DP_FUNCTION(dp_tree_below_filter);
Datum
dp_tree_below_filter(PG_FUNCTION_ARGS)
{
	text *spelled = PG_GETARG_TEXT_PP(0);
	DpPath *path = dp_path_parse(VARDATA_ANY(spelled), VARSIZE_ANY_EXHDR(spelled));
	DpValue node = dp_value_of_varlena(dp_datum_to_value(PG_GETARG_DATUM(1),
														 get_fn_expr_argtype(fcinfo->flinfo, 1)));
	StringInfoData name;
	DpBuilder b;

	if (dp_type_class[node.type] == DP_CLASS_NULL || node.type == DP_TYPE_UNDEFINED)
		PG_RETURN_NULL();
	initStringInfo(&name);
	for (int i = 0; i < path->nsteps; i++)
	{
		const DpPathStep *step = &path->steps[i];

		if (step->namelen == 0 || step->name[0] == '$' ||
			memchr(step->name, '.', step->namelen) != NULL)
			ereport(
				ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filters cannot search for a node in field \"%s\"", step->name),
				 errdetail(
					 "A filter cannot contain a name that is empty, begins with \"$\" or contains a dot."),
				 errhint("Use tree_is_below(doc -> path, node), without an index.")));
		if (i > 0)
			appendStringInfoChar(&name, '.');
		appendBinaryStringInfo(&name, step->name, step->namelen);
	}
	dp_builder_init(&b, name.len + node.len + 32);
	dp_builder_begin_document(&b);
	dp_builder_begin_document_field(&b, name.data, name.len);
	dp_builder_append_value(&b, "$eq", 3, &node);
	dp_builder_end(&b);
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/* ---------------------------------------------------------------- helpers */

/*
 * The two arrays of a call.  Their elements point into them.
 */
static void
read_arrays(FunctionCallInfo fcinfo, Lists *lists)
{
	memset(lists, 0, sizeof(Lists));
	lists->type = fcinfo->flinfo->fn_extra;
	for (int i = 0; i < 2; i++)
	{
		ArrayType *array = PG_GETARG_ARRAYTYPE_P(i);

		if (ARR_NDIM(array) > 1)
			ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
							errmsg("an array of ids must have one dimension")));
		if (lists->type == NULL || lists->type->type_id != ARR_ELEMTYPE(array))
			fcinfo->flinfo->fn_extra = lists->type =
				lookup_type_cache(ARR_ELEMTYPE(array), TYPECACHE_EQ_OPR_FINFO);
		deconstruct_array(array, lists->type->type_id, lists->type->typlen, lists->type->typbyval,
						  lists->type->typalign, &lists->elements[i], &lists->nulls[i],
						  &lists->n[i]);
	}
	if (!OidIsValid(lists->type->eq_opr_finfo.fn_oid))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
						errmsg("could not identify an equality operator for type %s",
							   format_type_be(lists->type->type_id))));
	lists->collation = PG_GET_COLLATION();
	lists->equal = elements_equal;
}

static bool
elements_equal(Lists *lists, int i, int j)
{
	if (lists->nulls[0][i] || lists->nulls[1][j])
		return false;
	return DatumGetBool(FunctionCall2Coll(&lists->type->eq_opr_finfo, lists->collation,
										  lists->elements[0][i], lists->elements[1][j]));
}

/*
 * The two BSON arrays of a call; false if one of them is null.
 */
static bool
read_values(FunctionCallInfo fcinfo, Lists *lists)
{
	memset(lists, 0, sizeof(Lists));
	for (int i = 0; i < 2; i++)
	{
		DpValue v = dp_value_of_varlena(DP_GETARG_VARLENA(i));
		DpIter iter;

		if (!is_list(&v))
			return false;
		lists->values[i] = palloc(sizeof(DpValue) * Max(dp_array_count(v.data, v.len), 1));
		dp_iter_init_value(&iter, &v);
		while (dp_iter_next_value(&iter, &lists->values[i][lists->n[i]]))
			lists->n[i]++;
	}
	lists->equal = values_equal;
	return true;
}

static bool
values_equal(Lists *lists, int i, int j)
{
	return dp_value_compare(&lists->values[0][i], &lists->values[1][j]) == 0;
}

/* Whether the value is an array; false for null.  Raises INVALID_PARAMETER_VALUE for others. */
static bool
is_list(const DpValue *v)
{
	if (v->type == DP_TYPE_NULL || v->type == DP_TYPE_UNDEFINED)
		return false;
	if (v->type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a value of type \"%s\" is not a list of ancestors",
							   dp_type_name(v->type))));
	return true;
}

/*
 * The number of ancestors that the lists have in common and where they begin
 * in the first one: at 0 if the lists begin with the root.
 */
static int
common(Lists *lists, int *first)
{
	int n = 0;
	int least = Min(lists->n[0], lists->n[1]);

	while (n < least && lists->equal(lists, n, n))
		n++;
	*first = 0;
	if (n > 0)
		return n;
	while (n < least && lists->equal(lists, lists->n[0] - 1 - n, lists->n[1] - 1 - n))
		n++;
	*first = lists->n[0] - n;
	return n;
}
