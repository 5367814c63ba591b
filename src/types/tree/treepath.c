/*
 * treepath.c
 *		The type treepath in SQL: input and output, casts, and the functions that split and
 *		combine paths.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "libpq/pqformat.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/text.h"
#include "bson/validate.h"
#include "types/tree/treepath_fn.h"

/* The version of the binary form */
#define WIRE_VERSION 1

static struct varlena *path_of_value(const DpValue *v);
static struct varlena *path_of_array(ArrayType *array);
static struct varlena *path_to_value(struct varlena *path);

/*
 * treepath_in(cstring) -> treepath: an array in Extended JSON.  Raises
 * INVALID_TEXT_REPRESENTATION.
 */
DP_FUNCTION(dp_treepath_in);
Datum
dp_treepath_in(PG_FUNCTION_ARGS)
{
	char *s = PG_GETARG_CSTRING(0);
	struct varlena *value;
	DpValue v;

	if (s[strspn(s, " \t\r\n")] != '[')
		dp_ereturn(fcinfo->context, (Datum) 0,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input syntax for type %s", "treepath"),
					errdetail("A path is written as an array of ids: [\"a\", \"b\"]."),
					errhint("Use treepath_from_text() to read ids with separators.")));
	value = dp_cstring_to_value(s, strlen(s), fcinfo->context);
	if (value == NULL)
		return (Datum) 0;
	v = dp_value_of_varlena(value);
	PG_RETURN_POINTER(path_of_value(&v));
}

/*
 * treepath_out(treepath) -> cstring: an array in relaxed Extended JSON.
 */
DP_FUNCTION(dp_treepath_out);
Datum
dp_treepath_out(PG_FUNCTION_ARGS)
{
	DpValue v = dp_value_of_varlena(path_to_value(DP_GETARG_VARLENA(0)));
	StringInfoData out;

	initStringInfo(&out);
	dp_value_to_text(&out, &v, DP_TEXT_RELAXED, -1);
	PG_RETURN_CSTRING(out.data);
}

/*
 * treepath_recv(internal) -> treepath: a version and the bytes of the ids.
 * Raises INVALID_BINARY_REPRESENTATION.
 */
DP_FUNCTION(dp_treepath_recv);
Datum
dp_treepath_recv(PG_FUNCTION_ARGS)
{
	StringInfo buf = (StringInfo) PG_GETARG_POINTER(0);
	int version = pq_getmsgbyte(buf);
	uint32 size = buf->len - buf->cursor;
	const uint8 *ids;
	const char *fault;

	if (version != WIRE_VERSION)
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
						errmsg("unsupported version %d of the binary form of treepath", version)));
	ids = (const uint8 *) pq_getmsgbytes(buf, size);
	fault = dp_treepath_fault(ids, size);
	if (fault != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
						errmsg("invalid binary form of treepath"), errdetail("%s", fault)));
	PG_RETURN_POINTER(dp_treepath_of_ids(ids, size));
}

/*
 * treepath_send(treepath) -> bytea
 */
DP_FUNCTION(dp_treepath_send);
Datum
dp_treepath_send(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	StringInfoData buf;

	pq_begintypsend(&buf);
	pq_sendbyte(&buf, WIRE_VERSION);
	pq_sendbytes(&buf, (const char *) DP_TREEPATH_DATA(path), DP_TREEPATH_SIZE(path));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buf));
}

/* ---------------------------------------------------------------- ids from SQL */

void
dp_treepath_append_datum(DpTreepathBuilder *b, Datum id, Oid type)
{
	struct varlena *value;
	DpValue v;

	switch (type)
	{
		case INT2OID:
			dp_treepath_append_integer(b, DatumGetInt16(id));
			return;
		case INT4OID:
			dp_treepath_append_integer(b, DatumGetInt32(id));
			return;
		case INT8OID:
			dp_treepath_append_integer(b, DatumGetInt64(id));
			return;
		case TEXTOID:
		case VARCHAROID:
		{
			struct varlena *s = PG_DETOAST_DATUM_PACKED(id);

			dp_treepath_append_string(b, VARDATA_ANY(s), VARSIZE_ANY_EXHDR(s));
			return;
		}
		case UUIDOID:
			dp_treepath_append_uuid(b, DatumGetUUIDP(id)->data);
			return;
		default:
			break;
	}
	if (type == dp_types()->objectid)
	{
		dp_treepath_append_objectid(b, (const uint8 *) DatumGetPointer(id));
		return;
	}
	value = dp_datum_to_value(id, type);
	v = dp_value_of_varlena(value);
	dp_treepath_append_value(b, &v);
}

List *
dp_treepath_array_elements(ArrayType *array)
{
	Oid type = ARR_ELEMTYPE(array);
	int16 typlen;
	bool typbyval;
	char typalign;
	Datum *elements;
	bool *nulls;
	int n;
	List *ids = NIL;

	if (ARR_NDIM(array) > 1)
		ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
						errmsg("an array of ids must have one dimension")));
	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	deconstruct_array(array, type, typlen, typbyval, typalign, &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		DpTreepathBuilder b;

		if (nulls[i])
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("the id of a node cannot be null")));
		dp_treepath_begin(&b);
		dp_treepath_append_datum(&b, elements[i], type);
		ids = lappend(ids, dp_treepath_finish(&b));
	}
	return ids;
}

/*
 * The path whose ids are the elements of an array of the type's own order.
 */
static struct varlena *
path_of_array(ArrayType *array)
{
	DpTreepathBuilder b;
	ListCell *lc;

	dp_treepath_begin(&b);
	foreach(lc, dp_treepath_array_elements(array))
	{
		struct varlena *id = lfirst(lc);

		dp_treepath_append_ids(&b, DP_TREEPATH_DATA(id), DP_TREEPATH_SIZE(id));
		pfree(id);
	}
	return dp_treepath_finish(&b);
}

/*
 * treepath(anyarray) -> treepath: the cast from text[], int8[] and so on.
 */
DP_FUNCTION(dp_treepath_from_array);
Datum
dp_treepath_from_array(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(path_of_array(PG_GETARG_ARRAYTYPE_P(0)));
}

/* The path of a BSON array.  Raises INVALID_PARAMETER_VALUE. */
static struct varlena *
path_of_value(const DpValue *v)
{
	DpTreepathBuilder b;
	DpIter iter;
	DpValue id;

	if (v->type != DP_TYPE_ARRAY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot make a path from a value of type \"%s\"", dp_type_name(v->type)),
				 errdetail("A path is an array of ids, root first.")));
	dp_treepath_begin(&b);
	dp_iter_init_value(&iter, v);
	while (dp_iter_next_value(&iter, &id))
		dp_treepath_append_value(&b, &id);
	return dp_treepath_finish(&b);
}

/*
 * treepath(bson_value) -> treepath: null and undefined are NULL, as in the
 * other casts from bson_value.  Raises INVALID_PARAMETER_VALUE for what is no
 * array of ids.
 */
DP_FUNCTION(dp_treepath_from_value);
Datum
dp_treepath_from_value(PG_FUNCTION_ARGS)
{
	DpValue v = dp_value_of_varlena(DP_GETARG_VARLENA(0));

	if (v.type == DP_TYPE_NULL || v.type == DP_TYPE_UNDEFINED)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(path_of_value(&v));
}

/*
 * treepath_from_text(text, separator text) -> treepath: ids are the strings
 * between separators; one separator in front is left out.  Raises
 * INVALID_PARAMETER_VALUE for an empty separator and for empty ids.
 */
DP_FUNCTION(dp_treepath_from_text);
Datum
dp_treepath_from_text(PG_FUNCTION_ARGS)
{
	text *s = PG_GETARG_TEXT_PP(0);
	text *separator = PG_GETARG_TEXT_PP(1);
	const char *p = VARDATA_ANY(s);
	const char *end = p + VARSIZE_ANY_EXHDR(s);
	const char *sep = VARDATA_ANY(separator);
	uint32 seplen = VARSIZE_ANY_EXHDR(separator);
	DpTreepathBuilder b;

	if (seplen == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the separator of a path cannot be empty")));
	dp_treepath_begin(&b);
	if (end - p >= seplen && memcmp(p, sep, seplen) == 0)
		p += seplen;
	while (p < end)
	{
		const char *q = p;

		while (end - q >= seplen && memcmp(q, sep, seplen) != 0)
			q++;
		if (end - q < seplen)
			q = end;
		if (q == p || q + seplen == end)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("a path of text has an empty id")));
		dp_treepath_append_string(&b, p, q - p);
		p = q < end ? q + seplen : end;
	}
	PG_RETURN_POINTER(dp_treepath_finish(&b));
}

/* ---------------------------------------------------------------- ids to SQL */

/* The ids of a path as the elements of the array that was begun, which then ends. */
static void
append_ids(DpBuilder *b, struct varlena *path)
{
	const uint8 *p = DP_TREEPATH_DATA(path);
	const uint8 *end = p + DP_TREEPATH_SIZE(path);

	while (p < end)
	{
		uint32 size = dp_treepath_id_size(p, end);

		dp_treepath_id_append(b, NULL, 0, p, size);
		p += size;
	}
	dp_builder_end(b);
}

void
dp_builder_append_treepath(DpBuilder *b, const char *name, uint32 namelen, struct varlena *path)
{
	dp_builder_begin_array_field(b, name, namelen);
	append_ids(b, path);
}

/* The path as a BSON array. */
static struct varlena *
path_to_value(struct varlena *path)
{
	DpBuilder b;

	dp_builder_init_value(&b, (Size) DP_TREEPATH_SIZE(path) * 2 + 16);
	dp_builder_begin_array(&b);
	append_ids(&b, path);
	return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
}

/*
 * bson_value(treepath) -> bson_value: an array
 */
DP_FUNCTION(dp_treepath_to_value);
Datum
dp_treepath_to_value(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(path_to_value(DP_GETARG_VARLENA(0)));
}

/* The id as a datum of the SQL type; raises what dp_value_to_datum() does. */
static Datum
id_to_datum(const uint8 *id, uint32 size, Oid type)
{
	int64 i;
	bool isnull;
	DpValue v;
	Datum result;

	if (type == INT8OID && dp_treepath_id_integer(id, size, &i))
		return Int64GetDatum(i);
	if (type == TEXTOID)
	{
		char *s;
		uint32 len;

		if (dp_treepath_id_string(id, size, &s, &len))
			return PointerGetDatum(cstring_to_text_with_len(s, len));
	}
	v = dp_value_of_varlena(dp_treepath_id_to_value(id, size));
	result = dp_value_to_datum(&v, type, -1, &isnull);
	if (isnull)
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the path has an id that is null")));
	return result;
}

/* The ids of a path as an array of the type. */
static ArrayType *
path_to_array(struct varlena *path, Oid type)
{
	const uint8 *p = DP_TREEPATH_DATA(path);
	const uint8 *end = p + DP_TREEPATH_SIZE(path);
	int n = dp_treepath_count(p, end - p);
	Datum *ids = palloc(sizeof(Datum) * Max(n, 1));
	int16 typlen;
	bool typbyval;
	char typalign;

	for (int i = 0; i < n; i++)
	{
		uint32 size = dp_treepath_id_size(p, end);

		ids[i] = id_to_datum(p, size, type);
		p += size;
	}
	get_typlenbyvalalign(type, &typlen, &typbyval, &typalign);
	return construct_array(ids, n, type, typlen, typbyval, typalign);
}

/*
 * The casts to text[], int8[], objectid[] and bson_value[], which differ in
 * the type that the function returns.
 */
DP_FUNCTION(dp_treepath_to_array);
Datum
dp_treepath_to_array(PG_FUNCTION_ARGS)
{
	Oid array;
	Oid type;

	(void) get_call_result_type(fcinfo, &array, NULL);
	type = get_element_type(array);
	if (!OidIsValid(type))
		elog(ERROR, "treepath cannot be cast to type %u", array);
	PG_RETURN_ARRAYTYPE_P(path_to_array(DP_GETARG_VARLENA(0), type));
}

/*
 * treepath_to_text(treepath, separator text) -> text: the ids as text, with
 * the separator between them.  Raises INVALID_PARAMETER_VALUE for an id that
 * has the separator in it.
 */
DP_FUNCTION(dp_treepath_to_text);
Datum
dp_treepath_to_text(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	char *separator = text_to_cstring(PG_GETARG_TEXT_PP(1));
	const uint8 *p = DP_TREEPATH_DATA(path);
	const uint8 *end = p + DP_TREEPATH_SIZE(path);
	StringInfoData out;

	initStringInfo(&out);
	while (p < end)
	{
		uint32 size = dp_treepath_id_size(p, end);
		char *s = TextDatumGetCString(id_to_datum(p, size, TEXTOID));

		if (*separator == '\0' || *s == '\0' || strstr(s, separator) != NULL)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("cannot write the path with the separator \"%s\"", separator),
							errdetail("An id in it is empty or contains the separator.")));
		if (out.len > 0)
			appendStringInfoString(&out, separator);
		appendStringInfoString(&out, s);
		pfree(s);
		p += size;
	}
	PG_RETURN_TEXT_P(cstring_to_text_with_len(out.data, out.len));
}

/* ---------------------------------------------------------------- functions */

/*
 * treepath_depth(treepath) -> int4: 0 for a root, -1 for the empty path
 */
DP_FUNCTION(dp_treepath_depth);
Datum
dp_treepath_depth(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);

	PG_RETURN_INT32(dp_treepath_count(DP_TREEPATH_DATA(path), DP_TREEPATH_SIZE(path)) - 1);
}

/*
 * treepath_parent(treepath) -> treepath: NULL for a root and the empty path
 */
DP_FUNCTION(dp_treepath_parent);
Datum
dp_treepath_parent(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	const uint8 *ids = DP_TREEPATH_DATA(path);
	uint32 size = DP_TREEPATH_SIZE(path);
	const uint8 *last;

	if (size == 0)
		PG_RETURN_NULL();
	last = dp_treepath_last(ids, size);
	if (last == ids)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_treepath_of_ids(ids, last - ids));
}

/*
 * treepath_root(treepath) -> treepath: NULL for the empty path
 */
DP_FUNCTION(dp_treepath_root);
Datum
dp_treepath_root(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	const uint8 *ids = DP_TREEPATH_DATA(path);
	uint32 size = DP_TREEPATH_SIZE(path);

	if (size == 0)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_treepath_of_ids(ids, dp_treepath_id_size(ids, ids + size)));
}

/*
 * treepath_id(treepath) -> bson_value: the node itself; NULL for the empty path
 */
DP_FUNCTION(dp_treepath_id);
Datum
dp_treepath_id(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	const uint8 *ids = DP_TREEPATH_DATA(path);
	uint32 size = DP_TREEPATH_SIZE(path);
	const uint8 *last;

	if (size == 0)
		PG_RETURN_NULL();
	last = dp_treepath_last(ids, size);
	PG_RETURN_POINTER(dp_treepath_id_to_value(last, ids + size - last));
}

/*
 * treepath_subpath(treepath, first int4, ids int4) -> treepath: that many ids
 * from position first on, counted from 0, or from the end if negative; to the
 * end if ids is NULL.  Positions beyond the ends are cut off.  Raises
 * INVALID_PARAMETER_VALUE for a negative number of ids.
 */
DP_FUNCTION(dp_treepath_subpath);
Datum
dp_treepath_subpath(PG_FUNCTION_ARGS)
{
	struct varlena *path;
	const uint8 *p;
	const uint8 *end;
	const uint8 *from = NULL;
	int64 first;
	int64 past;
	int n;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	path = DP_GETARG_VARLENA(0);
	p = DP_TREEPATH_DATA(path);
	end = p + DP_TREEPATH_SIZE(path);
	n = dp_treepath_count(p, end - p);
	first = PG_GETARG_INT32(1);
	if (first < 0)
		first += n;
	past = n;
	if (!PG_ARGISNULL(2))
	{
		if (PG_GETARG_INT32(2) < 0)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("the number of ids cannot be negative")));
		past = Min(first + PG_GETARG_INT32(2), n);
	}
	first = Max(first, 0);
	if (first >= past)
		PG_RETURN_POINTER(dp_treepath_of_ids(NULL, 0));
	for (int64 i = 0; i < past; i++)
	{
		if (i == first)
			from = p;
		p += dp_treepath_id_size(p, end);
	}
	PG_RETURN_POINTER(dp_treepath_of_ids(from, p - from));
}

/*
 * treepath_lca(treepath, treepath) -> treepath: the lowest common ancestor or self; NULL without a
 * common root
 */
DP_FUNCTION(dp_treepath_lca);
Datum
dp_treepath_lca(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	struct varlena *b = DP_GETARG_VARLENA(1);
	int count;
	uint32 size = dp_treepath_common(DP_TREEPATH_DATA(a), DP_TREEPATH_SIZE(a), DP_TREEPATH_DATA(b),
									 DP_TREEPATH_SIZE(b), &count);

	if (count == 0)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_treepath_of_ids(DP_TREEPATH_DATA(a), size));
}

/*
 * treepath_distance(treepath, treepath) -> int4: the edges between the nodes;
 * NULL if they have no root in common
 */
DP_FUNCTION(dp_treepath_distance);
Datum
dp_treepath_distance(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	struct varlena *b = DP_GETARG_VARLENA(1);
	int count;
	uint32 size = dp_treepath_common(DP_TREEPATH_DATA(a), DP_TREEPATH_SIZE(a), DP_TREEPATH_DATA(b),
									 DP_TREEPATH_SIZE(b), &count);

	if (count == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT32(dp_treepath_count(DP_TREEPATH_DATA(a) + size, DP_TREEPATH_SIZE(a) - size) +
					dp_treepath_count(DP_TREEPATH_DATA(b) + size, DP_TREEPATH_SIZE(b) - size));
}

/*
 * The beginnings of a path that are paths, root first, as an array of its
 * type: all of them, the path itself included, or without it.
 */
static ArrayType *
prefixes(struct varlena *path, bool itself, Oid type)
{
	const uint8 *ids = DP_TREEPATH_DATA(path);
	const uint8 *end = ids + DP_TREEPATH_SIZE(path);
	int n = dp_treepath_count(ids, end - ids);
	Datum *paths = palloc(sizeof(Datum) * (n + 1));
	const uint8 *p = ids;
	int used = 0;

	for (int i = 0; i < n; i++)
	{
		p += dp_treepath_id_size(p, end);
		if (p < end || itself)
			paths[used++] = PointerGetDatum(dp_treepath_of_ids(ids, p - ids));
	}
	return construct_array(paths, used, type, -1, false, TYPALIGN_INT);
}

/*
 * treepath_ancestors(treepath) -> treepath[]: root first, without itself
 */
DP_FUNCTION(dp_treepath_ancestors);
Datum
dp_treepath_ancestors(PG_FUNCTION_ARGS)
{
	Oid array;

	(void) get_call_result_type(fcinfo, &array, NULL);
	PG_RETURN_ARRAYTYPE_P(prefixes(DP_GETARG_VARLENA(0), false, get_element_type(array)));
}

/*
 * treepath_prefixes(treepath) -> treepath[]: the empty path, the ancestors and the path itself; the
 * search values for "@> path"
 */
DP_FUNCTION(dp_treepath_prefixes);
Datum
dp_treepath_prefixes(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	Oid array;
	Oid type;
	ArrayType *all;
	Datum *paths;
	bool *nulls;
	int n;

	(void) get_call_result_type(fcinfo, &array, NULL);
	type = get_element_type(array);
	all = prefixes(path, true, type);
	deconstruct_array(all, type, -1, false, TYPALIGN_INT, &paths, &nulls, &n);
	paths = n > 0 ? repalloc(paths, sizeof(Datum) * (n + 1)) : palloc(sizeof(Datum));
	memmove(paths + 1, paths, sizeof(Datum) * n);
	paths[0] = PointerGetDatum(dp_treepath_of_ids(NULL, 0));
	PG_RETURN_ARRAYTYPE_P(construct_array(paths, n + 1, type, -1, false, TYPALIGN_INT));
}

/*
 * treepath_last(treepath) -> treepath: the greatest path that equals this one or is below it, which
 * ends in MaxKey
 */
DP_FUNCTION(dp_treepath_last_below);
Datum
dp_treepath_last_below(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	DpTreepathBuilder b;

	dp_treepath_begin(&b);
	dp_treepath_append_ids(&b, DP_TREEPATH_DATA(path), DP_TREEPATH_SIZE(path));
	dp_treepath_append_maxkey(&b);
	PG_RETURN_POINTER(dp_treepath_finish(&b));
}

/*
 * treepath || treepath
 */
DP_FUNCTION(dp_treepath_concat);
Datum
dp_treepath_concat(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	struct varlena *b = DP_GETARG_VARLENA(1);
	DpTreepathBuilder builder;

	dp_treepath_begin(&builder);
	dp_treepath_append_ids(&builder, DP_TREEPATH_DATA(a), DP_TREEPATH_SIZE(a));
	dp_treepath_append_ids(&builder, DP_TREEPATH_DATA(b), DP_TREEPATH_SIZE(b));
	PG_RETURN_POINTER(dp_treepath_finish(&builder));
}

/*
 * treepath || id of any type
 */
DP_FUNCTION(dp_treepath_append);
Datum
dp_treepath_append(PG_FUNCTION_ARGS)
{
	struct varlena *path = DP_GETARG_VARLENA(0);
	DpTreepathBuilder b;

	dp_treepath_begin(&b);
	dp_treepath_append_ids(&b, DP_TREEPATH_DATA(path), DP_TREEPATH_SIZE(path));
	dp_treepath_append_datum(&b, PG_GETARG_DATUM(1), get_fn_expr_argtype(fcinfo->flinfo, 1));
	PG_RETURN_POINTER(dp_treepath_finish(&b));
}
