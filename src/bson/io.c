/*
 * io.c
 *		Input and output functions of the types bson and bson_value, as text
 *		and in binary.
 */
#include "postgres.h"

#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "bson/io.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "bson/validate.h"

/*
 * bson_in(cstring) -> bson: the document that the text spells, see text.h.
 */
DP_FUNCTION(dp_bson_in);
Datum
dp_bson_in(PG_FUNCTION_ARGS)
{
	char *s = PG_GETARG_CSTRING(0);
	struct varlena *result = dp_cstring_to_bson(s, strlen(s), fcinfo->context);

	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(result);
}

/*
 * bson_out(bson) -> cstring: relaxed Extended JSON that bson_in reads back
 * byte for byte.  Raises DATA_CORRUPTED.
 */
DP_FUNCTION(dp_bson_out);
Datum
dp_bson_out(PG_FUNCTION_ARGS)
{
	struct varlena *doc = DP_GETARG_VARLENA(0);
	DpValue v = dp_value_of_document(doc);
	StringInfoData out;

	dp_text_start(&out, v.len);
	dp_value_to_text(&out, &v, DP_TEXT_RELAXED, -1);
	PG_RETURN_CSTRING(out.data);
}

/*
 * bson_value_in(cstring) -> bson_value
 */
DP_FUNCTION(dp_bson_value_in);
Datum
dp_bson_value_in(PG_FUNCTION_ARGS)
{
	char *s = PG_GETARG_CSTRING(0);
	struct varlena *result = dp_cstring_to_value(s, strlen(s), fcinfo->context);

	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(result);
}

/*
 * bson_value_out(bson_value) -> cstring
 */
DP_FUNCTION(dp_bson_value_out);
Datum
dp_bson_value_out(PG_FUNCTION_ARGS)
{
	struct varlena *value = DP_GETARG_VARLENA(0);
	DpValue v = dp_value_of_varlena(value);
	StringInfoData out;

	dp_text_start(&out, v.len);
	dp_value_to_text(&out, &v, DP_TEXT_RELAXED, -1);
	PG_RETURN_CSTRING(out.data);
}

/*
 * bson_recv(internal) -> bson: the bytes of a document, checked.
 */
DP_FUNCTION(dp_bson_recv);
Datum
dp_bson_recv(PG_FUNCTION_ARGS)
{
	StringInfo buf = (StringInfo) PG_GETARG_POINTER(0);
	int n = buf->len - buf->cursor;

	PG_RETURN_POINTER(dp_document_from_bytes((const uint8 *) pq_getmsgbytes(buf, n), n));
}

/*
 * bson_send(bson) -> bytea: the bytes of the document.
 */
DP_FUNCTION(dp_bson_send);
Datum
dp_bson_send(PG_FUNCTION_ARGS)
{
	PG_RETURN_BYTEA_P(PG_GETARG_BYTEA_P_COPY(0));
}

/*
 * bson_value_recv(internal) -> bson_value: one byte of type and the bytes of
 * the value, checked.
 */
DP_FUNCTION(dp_bson_value_recv);
Datum
dp_bson_value_recv(PG_FUNCTION_ARGS)
{
	StringInfo buf = (StringInfo) PG_GETARG_POINTER(0);
	int n = buf->len - buf->cursor;

	PG_RETURN_POINTER(dp_value_from_bytes((const uint8 *) pq_getmsgbytes(buf, n), n));
}

/*
 * bson_value_send(bson_value) -> bytea
 */
DP_FUNCTION(dp_bson_value_send);
Datum
dp_bson_value_send(PG_FUNCTION_ARGS)
{
	PG_RETURN_BYTEA_P(PG_GETARG_BYTEA_P_COPY(0));
}

/*
 * A bson with a copy of the bytes.  Raises INVALID_BINARY_REPRESENTATION with
 * the offset of the first fault, and PROGRAM_LIMIT_EXCEEDED.
 */
struct varlena *
dp_document_from_bytes(const uint8 *bytes, Size n)
{
	DpFault fault;

	dp_check_document_size(n);
	if (!dp_validate(bytes, n, &fault))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("invalid BSON document"),
				 errdetail("At offset %u: %s.", fault.offset, fault.what)));
	return dp_document_to_varlena(bytes, n);
}

/* Does the same for a bson_value, which begins with its type. */
struct varlena *
dp_value_from_bytes(const uint8 *bytes, Size n)
{
	DpFault fault;
	DpValue value;

	if (n < 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
						errmsg("invalid BSON value"), errdetail("The value is empty.")));
	dp_check_document_size(n - 1);
	if (!dp_validate_value(bytes[0], bytes + 1, n - 1, &fault))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION), errmsg("invalid BSON value"),
				 errdetail("At offset %u: %s.", fault.offset + 1, fault.what)));
	value.type = bytes[0];
	value.data = bytes + 1;
	value.len = n - 1;
	return dp_value_to_varlena(&value);
}

/* An empty string with the estimated room for the text of so many bytes of BSON. */
void
dp_text_start(StringInfo out, uint32 size)
{
	out->maxlen = (int) Min((Size) size + size / 2 + 128, MaxAllocSize);
	out->data = palloc(out->maxlen);
	out->len = 0;
	out->cursor = 0;
}
