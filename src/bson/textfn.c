/*
 * textfn.c
 *		The SQL functions for the other forms of documents and values: the three
 *		kinds of text, bytes, and files of documents.
 */
#include "postgres.h"

#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "bson/io.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "bson/validate.h"

static Datum text_of_value(const DpValue *v, DpTextForm form, int indent);
static DpTextForm form_of_name(const text *name);

/*
 * bson_to_json(bson, form text) -> text.  Raises INVALID_PARAMETER_VALUE for a
 * form that does not exist.
 */
DP_FUNCTION(dp_bson_to_json);
Datum
dp_bson_to_json(PG_FUNCTION_ARGS)
{
	DpValue v = dp_value_of_document(DP_GETARG_VARLENA(0));

	return text_of_value(&v, form_of_name(PG_GETARG_TEXT_PP(1)), -1);
}

/*
 * bson_to_json(bson) -> json: the cast.  A json is stored as a text is.
 */
DP_FUNCTION(dp_cast_bson_to_json);
Datum
dp_cast_bson_to_json(PG_FUNCTION_ARGS)
{
	DpValue v = dp_value_of_document(DP_GETARG_VARLENA(0));

	return text_of_value(&v, DP_TEXT_JSON, -1);
}

/*
 * bson_to_json(bson_value, form text) -> text
 */
DP_FUNCTION(dp_bson_value_to_json);
Datum
dp_bson_value_to_json(PG_FUNCTION_ARGS)
{
	DpValue v = dp_value_of_varlena(DP_GETARG_VARLENA(0));

	return text_of_value(&v, form_of_name(PG_GETARG_TEXT_PP(1)), -1);
}

/*
 * bson_pretty(bson) -> text
 */
DP_FUNCTION(dp_bson_pretty);
Datum
dp_bson_pretty(PG_FUNCTION_ARGS)
{
	DpValue v = dp_value_of_document(DP_GETARG_VARLENA(0));

	return text_of_value(&v, DP_TEXT_RELAXED, 0);
}

/*
 * bson_pretty(bson_value) -> text
 */
DP_FUNCTION(dp_bson_value_pretty);
Datum
dp_bson_value_pretty(PG_FUNCTION_ARGS)
{
	DpValue v = dp_value_of_varlena(DP_GETARG_VARLENA(0));

	return text_of_value(&v, DP_TEXT_RELAXED, 0);
}

/*
 * bson_from_bytea(bytea) -> bson: the cast.
 */
DP_FUNCTION(dp_bson_from_bytea);
Datum
dp_bson_from_bytea(PG_FUNCTION_ARGS)
{
	bytea *bytes = PG_GETARG_BYTEA_PP(0);

	PG_RETURN_POINTER(dp_document_from_bytes(DP_DOC_DATA(bytes), DP_DOC_SIZE(bytes)));
}

/*
 * bson_value_from_bytea(bytea) -> bson_value: the cast.
 */
DP_FUNCTION(dp_bson_value_from_bytea);
Datum
dp_bson_value_from_bytea(PG_FUNCTION_ARGS)
{
	bytea *bytes = PG_GETARG_BYTEA_PP(0);

	PG_RETURN_POINTER(dp_value_from_bytes(DP_DOC_DATA(bytes), DP_DOC_SIZE(bytes)));
}

/*
 * bson_documents(bytea) -> setof bson: one document a call, checked.  Raises
 * INVALID_BINARY_REPRESENTATION with the offset in the bytes.
 */
DP_FUNCTION(dp_bson_documents);
Datum
dp_bson_documents(PG_FUNCTION_ARGS)
{
	typedef struct Rest
	{
		const uint8 *start;
		uint32 offset;
		uint32 size;
	} Rest;

	FuncCallContext *context;
	Rest *rest;
	const uint8 *doc;
	uint32 left;
	uint32 size;
	DpFault fault;

	if (SRF_IS_FIRSTCALL())
	{
		MemoryContext old;
		bytea *bytes;

		context = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(context->multi_call_memory_ctx);
		bytes = PG_GETARG_BYTEA_PP(0);
		rest = palloc(sizeof(Rest));
		rest->start = DP_DOC_DATA(bytes);
		rest->size = DP_DOC_SIZE(bytes);
		rest->offset = 0;
		context->user_fctx = rest;
		MemoryContextSwitchTo(old);
	}
	context = SRF_PERCALL_SETUP();
	rest = context->user_fctx;
	if (rest->offset == rest->size)
		SRF_RETURN_DONE(context);

	doc = rest->start + rest->offset;
	left = rest->size - rest->offset;
	size = left;
	if (left >= DP_DOCUMENT_MIN_SIZE && dp_get_int32(doc) >= DP_DOCUMENT_MIN_SIZE &&
		(uint32) dp_get_int32(doc) <= left)
		size = (uint32) dp_get_int32(doc);
	if (!dp_validate(doc, size, &fault))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("invalid BSON document"),
				 errdetail("At offset %u: %s.", rest->offset + fault.offset, fault.what)));
	dp_check_document_size(size);
	rest->offset += size;
	SRF_RETURN_NEXT(context, PointerGetDatum(dp_document_to_varlena(doc, size)));
}

/*
 * The text of a value as a new text.
 */
static Datum
text_of_value(const DpValue *v, DpTextForm form, int indent)
{
	StringInfoData out;

	dp_text_start(&out, v->len);
	/* the header of the text is in the same buffer */
	out.len = VARHDRSZ;
	dp_value_to_text(&out, v, form, indent);
	SET_VARSIZE(out.data, out.len);
	return PointerGetDatum(out.data);
}

/*
 * The form of that name.
 */
static DpTextForm
form_of_name(const text *name)
{
	const char *s = VARDATA_ANY(name);
	const int len = VARSIZE_ANY_EXHDR(name);

	if (len == 7 && memcmp(s, "relaxed", 7) == 0)
		return DP_TEXT_RELAXED;
	if (len == 9 && memcmp(s, "canonical", 9) == 0)
		return DP_TEXT_CANONICAL;
	if (len == 5 && memcmp(s, "shell", 5) == 0)
		return DP_TEXT_SHELL;
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("unknown text form \"%.*s\"", pg_mbcliplen(s, len, 40), s),
					errhint("The forms are \"relaxed\", \"canonical\" and \"shell\".")));
}
