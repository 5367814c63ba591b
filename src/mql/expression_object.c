/*
 * expression_object.c
 *		Operators of objects: $mergeObjects, $getField, $setField, $unsetField,
 *		$objectToArray, $arrayToObject, $bsonSize.
 */
#include "postgres.h"

#include "bson/edit.h"
#include "bson/path.h"
#include "mql/expression_node.h"

/*
 * $mergeObjects: later fields win, at the place of the first.  A single array counts as its
 * elements.
 */
static bool
merge_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue few[4];
	DpValue *documents = few;
	int nargs = node->nargs;
	int n = 0;

	if (nargs == 1 && dp_arg(node, 0, state, &few[0]) && few[0].type == DP_TYPE_ARRAY)
		nargs = dp_array_values(&few[0], &documents);
	else
	{
		if (nargs > (int) lengthof(few))
			documents = palloc(sizeof(DpValue) * (Size) nargs);
		for (int i = nargs == 1 ? 1 : 0; i < nargs; i++)
			dp_arg(node, i, state, &documents[i]);
	}
	for (int i = 0; i < nargs; i++)
	{
		DpValue v = documents[i];

		if (dp_is_nullish(&v))
			continue;
		if (v.type != DP_TYPE_DOCUMENT)
			dp_node_type_error(node, "objects", &v);
		if (v.len > DP_DOCUMENT_MIN_SIZE)
			documents[n++] = v;
	}
	if (n == 0)
		*result = (DpValue){ dp_empty_document, DP_DOCUMENT_MIN_SIZE, DP_TYPE_DOCUMENT };
	else if (n == 1)
		*result = documents[0];
	else if (n == 2)
		*result = dp_value_of_varlena(dp_value_merge(&documents[0], &documents[1]));
	else
		*result = dp_value_of_varlena(dp_values_merge(documents, n));
	if (documents != few)
		pfree(documents);
	return true;
}

/*
 * The name of a field, from an expression that must give a string.
 */
static void
field_name(const DpNode *node, int i, DpExprState *state, const char **name, uint32 *len)
{
	DpValue v;

	dp_arg(node, i, state, &v);
	if (v.type != DP_TYPE_STRING)
		dp_node_type_error(node, "a string as the name of the field", &v);
	*name = DP_STRING_DATA(&v);
	*len = DP_STRING_LEN(&v);
	if (memchr(*name, 0, *len) != NULL)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
					  "needs a name without null characters");
}

/*
 * $getField: missing where the input is no object.
 */
static bool
getfield_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const char *name;
	uint32 len;
	DpValue input;

	field_name(node, 0, state, &name, &len);
	dp_arg(node, 1, state, &input);
	if (input.type == DP_TYPE_NULL || input.type == DP_TYPE_UNDEFINED)
		return dp_result_null(result);
	return input.type == DP_TYPE_DOCUMENT &&
		   dp_field_find(input.data, input.len, name, len, result);
}

/*
 * $setField and $unsetField of a literal name: the value replaces the first field of that name, or
 * is appended.
 */
static bool
setfield_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const char *name;
	uint32 len;
	DpValue input;
	DpValue value = { NULL, 0, DP_TYPE_EOD };
	DpIter iter;
	DpElement element;
	DpBuilder b;
	bool done = false;

	field_name(node, 0, state, &name, &len);
	dp_arg(node, 1, state, &input);
	if (dp_is_nullish(&input))
		return dp_result_null(result);
	if (input.type != DP_TYPE_DOCUMENT)
		dp_node_type_error(node, "an object as its input", &input);
	if (node->nargs > 2)
		dp_arg(node, 2, state, &value);

	dp_result_builder(&b, input.len + 64);
	dp_builder_begin_document(&b);
	dp_iter_init_value(&iter, &input);
	while (dp_iter_next(&iter, &element))
	{
		if (element.namelen == len && memcmp(element.name, name, len) == 0)
		{
			if (!done && value.type != DP_TYPE_EOD)
				dp_builder_append_value(&b, name, len, &value);
			done = true;
		}
		else
			dp_builder_append_value(&b, element.name, element.namelen, &element.value);
	}
	if (!done && value.type != DP_TYPE_EOD)
		dp_builder_append_value(&b, name, len, &value);
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_DOCUMENT);
}

/*
 * {field: .., input: ..}, or the name alone, of a field of $$CURRENT.
 */
static DpNode *
getfield_compile(DpCompiler *c, const DpOperator *op, const DpValue *spec)
{
	static const uint8 current[] = { 10, 0, 0, 0, '$', '$', 'C', 'U', 'R', 'R', 'E', 'N', 'T', 0 };
	DpValue variable = { current, sizeof(current), DP_TYPE_STRING };
	DpNode *node;

	if (dp_is_arguments(spec))
		return dp_compile_named(c, op, "field input", spec);
	node = dp_node_make(c, op->eval, op, 2);
	node->args[0] = dp_compile(c, spec);
	node->args[1] = dp_compile(c, &variable);
	return node;
}

/*
 * $objectToArray: [{k, v}, ..]
 */
static bool
objecttoarray_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;
	DpIter iter;
	DpElement element;
	DpBuilder b;

	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v))
		return dp_result_null(result);
	if (v.type != DP_TYPE_DOCUMENT)
		dp_node_type_error(node, "an object", &v);
	dp_result_builder(&b, v.len * 2);
	dp_builder_begin_array(&b);
	dp_iter_init_value(&iter, &v);
	while (dp_iter_next(&iter, &element))
	{
		dp_builder_begin_document_field(&b, NULL, 0);
		dp_builder_append_string(&b, "k", 1, element.name, element.namelen);
		dp_builder_append_value(&b, "v", 1, &element.value);
		dp_builder_end(&b);
	}
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_ARRAY);
}

/* Splits an element of $arrayToObject: [name, value] or {k, v}. */
static void
read_pair(const DpNode *node, const DpValue *pair, uint8 type, DpValue *name, DpValue *value)
{
	DpIter iter;
	DpElement element;
	int n = 0;

	if (pair->type != type)
		dp_node_error(
			node, ERRCODE_INVALID_PARAMETER_VALUE,
			"needs an array of arrays [name, value], or of objects {k, v}, not of %s and %s",
			dp_type_name(type), dp_type_name(pair->type));
	name->type = value->type = DP_TYPE_EOD;
	dp_iter_init_value(&iter, pair);
	for (; dp_iter_next(&iter, &element); n++)
	{
		if (type == DP_TYPE_ARRAY ? n == 0 : strcmp(element.name, "k") == 0)
			*name = element.value;
		else if (type == DP_TYPE_ARRAY ? n == 1 : strcmp(element.name, "v") == 0)
			*value = element.value;
	}
	if (n != 2 || name->type == DP_TYPE_EOD || value->type == DP_TYPE_EOD)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
					  type == DP_TYPE_ARRAY ? "needs arrays of two elements, a name and a value"
											: "needs objects with the two fields \"k\" and \"v\"");
	if (name->type != DP_TYPE_STRING)
		dp_node_type_error(node, "strings as names", name);
	if (memchr(DP_STRING_DATA(name), 0, DP_STRING_LEN(name)) != NULL)
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs names without null characters");
}

/* A field that $arrayToObject makes. */
typedef struct Pair
{
	DpValue name;
	DpValue value;
	int position;
	bool drop;
} Pair;

/* By name, then position. */
static int
pair_compare(const void *a, const void *b)
{
	const Pair *x = *(const Pair *const *) a;
	const Pair *y = *(const Pair *const *) b;
	int order = memcmp(DP_STRING_DATA(&x->name), DP_STRING_DATA(&y->name),
					   Min(DP_STRING_LEN(&x->name), DP_STRING_LEN(&y->name)));

	if (order == 0)
		order = (DP_STRING_LEN(&x->name) > DP_STRING_LEN(&y->name)) -
				(DP_STRING_LEN(&x->name) < DP_STRING_LEN(&y->name));
	return order != 0 ? order : x->position - y->position;
}

/*
 * $arrayToObject: of a name that comes twice the last value counts, at the
 * place of the first.
 */
static bool
arraytoobject_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue array;
	DpValue *elements;
	Pair *pairs;
	Pair **sorted;
	DpBuilder b;
	int n;

	dp_arg(node, 0, state, &array);
	if (dp_is_nullish(&array))
		return dp_result_null(result);
	if (array.type != DP_TYPE_ARRAY)
		dp_node_type_error(node, "an array", &array);
	n = dp_array_values(&array, &elements);
	if (n > 0 && !dp_type_is_container(elements[0].type))
		dp_node_type_error(node, "an array of arrays [name, value], or of objects {k, v}",
						   &elements[0]);
	pairs = palloc(sizeof(Pair) * Max(n, 1));
	sorted = palloc(sizeof(Pair *) * Max(n, 1));
	for (int i = 0; i < n; i++)
	{
		read_pair(node, &elements[i], elements[0].type, &pairs[i].name, &pairs[i].value);
		pairs[i].position = i;
		pairs[i].drop = false;
		sorted[i] = &pairs[i];
	}
	qsort(sorted, n, sizeof(Pair *), pair_compare);
	for (int i = 0, first = 0; i < n; i++)
	{
		if (i > first && DP_STRING_LEN(&sorted[i]->name) == DP_STRING_LEN(&sorted[first]->name) &&
			memcmp(DP_STRING_DATA(&sorted[i]->name), DP_STRING_DATA(&sorted[first]->name),
				   DP_STRING_LEN(&sorted[i]->name)) == 0)
		{
			sorted[first]->value = sorted[i]->value;
			sorted[i]->drop = true;
		}
		else
			first = i;
	}
	dp_result_builder(&b, array.len);
	dp_builder_begin_document(&b);
	for (int i = 0; i < n; i++)
		if (!pairs[i].drop)
			dp_builder_append_value(&b, DP_STRING_DATA(&pairs[i].name),
									DP_STRING_LEN(&pairs[i].name), &pairs[i].value);
	dp_builder_end(&b);
	return dp_result_built(result, &b, DP_TYPE_DOCUMENT);
}

/*
 * $bsonSize: the bytes of an object.
 */
static bool
bsonsize_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;

	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v))
		return dp_result_null(result);
	if (v.type != DP_TYPE_DOCUMENT)
		dp_node_type_error(node, "an object", &v);
	return dp_result_int32(result, v.len);
}

const DpOperator dp_operators_object[] = {
	{ .name = "$arrayToObject", .eval = arraytoobject_eval, .min = 1, .max = 1 },
	{ .name = "$bsonSize", .eval = bsonsize_eval, .min = 1, .max = 1 },
	{ .name = "$getField", .eval = getfield_eval, .compile = getfield_compile },
	{ .name = "$mergeObjects", .eval = merge_eval, .min = 0, .max = -1 },
	{ .name = "$objectToArray", .eval = objecttoarray_eval, .min = 1, .max = 1 },
	{ .name = "$setField", .eval = setfield_eval, .names = "field input value" },
	{ .name = "$unsetField", .eval = setfield_eval, .names = "field input" },
	{ NULL }
};
