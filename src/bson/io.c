/*
 * io.c
 *		Input and output functions of the types bson and bson_value, as text
 *		and in binary.
 */
#include "postgres.h"

#include "libpq/pqformat.h"
#include "utils/builtins.h"

#include "bson/builder.h"
#include "bson/reader.h"
#include "bson/validate.h"

static struct varlena *value_from_bytes(const uint8 *bytes, Size n);
static struct varlena *document_from_bytes(const uint8 *bytes, Size n);

DP_FUNCTION(dp_bson_in);
Datum
dp_bson_in(PG_FUNCTION_ARGS)
{
	bytea	   *b = DatumGetByteaPP(DirectFunctionCall1(byteain, PG_GETARG_DATUM(0)));

	PG_RETURN_POINTER(document_from_bytes(DP_DOC_DATA(b), DP_DOC_SIZE(b)));
}

DP_FUNCTION(dp_bson_out);
Datum
dp_bson_out(PG_FUNCTION_ARGS)
{
	return DirectFunctionCall1(byteaout, PG_GETARG_DATUM(0));
}

DP_FUNCTION(dp_bson_value_in);
Datum
dp_bson_value_in(PG_FUNCTION_ARGS)
{
	bytea	   *b = DatumGetByteaPP(DirectFunctionCall1(byteain, PG_GETARG_DATUM(0)));

	PG_RETURN_POINTER(value_from_bytes(DP_DOC_DATA(b), DP_DOC_SIZE(b)));
}

DP_FUNCTION(dp_bson_value_out);
Datum
dp_bson_value_out(PG_FUNCTION_ARGS)
{
	return DirectFunctionCall1(byteaout, PG_GETARG_DATUM(0));
}

/*
 * bson_recv(internal) -> bson: the bytes of a document, checked.
 */
DP_FUNCTION(dp_bson_recv);
Datum
dp_bson_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buf = (StringInfo) PG_GETARG_POINTER(0);
	int			n = buf->len - buf->cursor;

	PG_RETURN_POINTER(document_from_bytes((const uint8 *) pq_getmsgbytes(buf, n), n));
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
	StringInfo	buf = (StringInfo) PG_GETARG_POINTER(0);
	int			n = buf->len - buf->cursor;

	PG_RETURN_POINTER(value_from_bytes((const uint8 *) pq_getmsgbytes(buf, n), n));
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
static struct varlena *
document_from_bytes(const uint8 *bytes, Size n)
{
	DpFault		fault;

	dp_check_document_size(n);
	if (!dp_validate(bytes, n, &fault))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid BSON document"),
				 errdetail("At offset %u, %s.", fault.offset, fault.what)));
	return dp_document_to_varlena(bytes, n);
}

/*
 * The same for a bson_value, whose type stands in front.
 */
static struct varlena *
value_from_bytes(const uint8 *bytes, Size n)
{
	DpFault		fault;
	DpValue		value;

	if (n < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid BSON value"),
				 errdetail("There are no bytes.")));
	dp_check_document_size(n);
	if (!dp_validate_value(bytes[0], bytes + 1, n - 1, &fault))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid BSON value"),
				 errdetail("At offset %u, %s.", fault.offset + 1, fault.what)));
	value.type = bytes[0];
	value.data = bytes + 1;
	value.len = n - 1;
	return dp_value_to_varlena(&value);
}
