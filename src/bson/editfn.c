/*
 * editfn.c
 *		Editing from SQL: bson_set, bson_unset, || and -.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/edit.h"

static DpValue value_of_argument(FunctionCallInfo fcinfo, int argno);

/*
 * The value of an argument of any type; an untyped literal is text.
 */
static DpValue
value_of_argument(FunctionCallInfo fcinfo, int argno)
{
	Oid			typid = get_fn_expr_argtype(fcinfo->flinfo, argno);
	DpBuilder	b;
	DpValue		value;

	if (PG_ARGISNULL(argno))
	{
		value.type = DP_TYPE_NULL;
		value.data = (const uint8 *) "";
		value.len = 0;
		return value;
	}
	if (typid == dp_types()->bson_value)
		return dp_value_of_varlena(DP_GETARG_VARLENA(argno));
	if (typid == dp_types()->bson)
		return dp_value_of_document(DP_GETARG_VARLENA(argno));

	dp_builder_init_value(&b, 0);
	if (typid == INT4OID)
	{
		value.type = DP_TYPE_INT32;
		dp_put_int32(dp_builder_reserve(&b, 4), PG_GETARG_INT32(argno));
	}
	else if (typid == TEXTOID || typid == UNKNOWNOID)
	{
		const char *s = typid == TEXTOID ? VARDATA_ANY(PG_GETARG_TEXT_PP(argno)) : PG_GETARG_CSTRING(argno);
		uint32		len = typid == TEXTOID ? VARSIZE_ANY_EXHDR(PG_GETARG_TEXT_PP(argno)) : strlen(s);
		uint8	   *p = dp_builder_reserve(&b, len + 5);

		value.type = DP_TYPE_STRING;
		dp_put_int32(p, len + 1);
		memcpy(p + 4, s, len);
		p[4 + len] = 0;
	}
	else
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot store a value of type %s", format_type_be(typid))));
	return dp_builder_view(&b, value.type);
}

/*
 * bson_set(bson, path text, value "any" [, create_missing bool]) -> bson: the
 * document with the value where the path leads; SQL NULL is stored as null.
 */
DP_FUNCTION(dp_bson_set);
Datum
dp_bson_set(PG_FUNCTION_ARGS)
{
	struct varlena *doc;
	struct varlena *result;
	const DpPath *path;
	DpValue		value;
	bool		create = true;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || (PG_NARGS() > 3 && PG_ARGISNULL(3)))
		PG_RETURN_NULL();
	if (PG_NARGS() > 3)
		create = PG_GETARG_BOOL(3);
	doc = DP_GETARG_VARLENA(0);
	path = dp_path_arg(fcinfo, 1);
	value = value_of_argument(fcinfo, 2);
	result = dp_document_set_if(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value, create);
	PG_RETURN_POINTER(result ? result : doc);
}

/*
 * bson_unset(bson, VARIADIC paths text[]) -> bson, bson - text[]: the document
 * without what the paths lead to.
 */
DP_FUNCTION(dp_bson_unset);
Datum
dp_bson_unset(PG_FUNCTION_ARGS)
{
	struct varlena *doc = DP_GETARG_VARLENA(0);
	Datum	   *paths;
	bool	   *nulls;
	int			npaths;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), TEXTOID, -1, false, TYPALIGN_INT,
					  &paths, &nulls, &npaths);
	for (int i = 0; i < npaths; i++)
	{
		struct varlena *result;
		text	   *path = (text *) DatumGetPointer(paths[i]);

		if (nulls[i])
			continue;
		result = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc),
								   dp_path_parse(VARDATA_ANY(path), VARSIZE_ANY_EXHDR(path)));
		if (result)
			doc = result;
	}
	PG_RETURN_POINTER(doc);
}

/*
 * bson - text: the same for one path.
 */
DP_FUNCTION(dp_bson_unset_one);
Datum
dp_bson_unset_one(PG_FUNCTION_ARGS)
{
	struct varlena *doc = DP_GETARG_VARLENA(0);
	struct varlena *result = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc),
											   dp_path_arg(fcinfo, 1));

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

	PG_RETURN_POINTER(dp_document_merge(DP_DOC_DATA(a), DP_DOC_SIZE(a),
										DP_DOC_DATA(b), DP_DOC_SIZE(b)));
}
