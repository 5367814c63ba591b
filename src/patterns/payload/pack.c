/*
 * pack.c
 *		Packed payloads: a BSON value, compressed, as a Binary.
 *
 *		offset	size	what
 *		0		1		version, 1
 *		1		1		method: 0 plain, 1 pglz
 *		2		1		type of the value
 *		3		4		number of its bytes in a document, little endian
 *		7		..		the bytes
 *
 * A value that does not become smaller is stored plain.  The layout is on disk in
 * users' tables and can never change; another one needs another version.
 */
#include "postgres.h"

#include "common/pg_lzcompress.h"
#include "utils/memutils.h"

#include "bson/edit.h"
#include "bson/reader.h"
#include "bson/validate.h"
#include "patterns/payload/payload.h"

/* Length and subtype of a Binary */
#define BINARY_HEADER 5

bool
dp_payload_is_packed(const DpValue *value)
{
	return value->type == DP_TYPE_BINARY && value->len >= BINARY_HEADER &&
		   value->data[4] == DP_PAYLOAD_SUBTYPE;
}

struct varlena *
dp_payload_pack(const DpValue *value)
{
	DpBuilder b;
	uint8 *bytes = palloc(BINARY_HEADER + DP_PAYLOAD_HEADER + PGLZ_MAX_OUTPUT(value->len));
	uint8 *p = bytes + BINARY_HEADER;
	int32 size = -1;
	DpValue packed;

	if (value->len <= PG_INT32_MAX)
		size = pglz_compress((const char *) value->data, (int32) value->len,
							 (char *) p + DP_PAYLOAD_HEADER, PGLZ_strategy_default);
	p[0] = DP_PAYLOAD_VERSION;
	p[1] = size >= 0 ? DP_PAYLOAD_PGLZ : DP_PAYLOAD_PLAIN;
	p[2] = value->type;
	dp_put_int32(p + 3, (int32) value->len);
	if (size < 0)
	{
		memcpy(p + DP_PAYLOAD_HEADER, value->data, value->len);
		size = value->len;
	}
	dp_put_int32(bytes, DP_PAYLOAD_HEADER + size);
	bytes[4] = DP_PAYLOAD_SUBTYPE;
	packed.type = DP_TYPE_BINARY;
	packed.data = bytes;
	packed.len = BINARY_HEADER + DP_PAYLOAD_HEADER + size;
	dp_builder_init_value(&b, packed.len);
	dp_builder_append_bytes(&b, packed.data, packed.len);
	pfree(bytes);
	return dp_builder_finish_value(&b, DP_TYPE_BINARY);
}

struct varlena *
dp_payload_unpack(const DpValue *value, int sqlstate)
{
	const uint8 *p;
	const char *wrong = NULL;
	uint32 size = 0;
	uint32 len = 0;
	uint8 type = 0;
	uint8 *bytes;
	DpBuilder b;
	DpFault fault;

	if (!dp_payload_is_packed(value) || value->len < BINARY_HEADER + DP_PAYLOAD_HEADER)
		wrong = "it is too short";
	else
	{
		p = value->data + BINARY_HEADER;
		size = value->len - BINARY_HEADER - DP_PAYLOAD_HEADER;
		type = p[2];
		len = (uint32) dp_get_int32(p + 3);
		if (p[0] != DP_PAYLOAD_VERSION)
			wrong = "it has another version";
		else if (p[1] > DP_PAYLOAD_PGLZ || (p[1] == DP_PAYLOAD_PLAIN && len != size))
			wrong = "its header is damaged";
		else if (len > MaxAllocSize / 2 || len / 100 > size)
			wrong = "its length is wrong"; /* pglz expands three bytes to at most 273 */
	}
	if (wrong == NULL)
	{
		dp_builder_init_value(&b, len);
		bytes = dp_builder_reserve(&b, len);
		if (p[1] == DP_PAYLOAD_PLAIN)
			memcpy(bytes, p + DP_PAYLOAD_HEADER, len);
		else if (pglz_decompress((const char *) p + DP_PAYLOAD_HEADER, (int32) size, (char *) bytes,
								 (int32) len, true) != (int32) len)
			wrong = "it cannot be decompressed";
		if (wrong == NULL && !dp_validate_value(type, bytes, len, &fault))
			wrong = "its value is not valid";
	}
	if (wrong != NULL)
		ereport(ERROR,
				(errcode(sqlstate),
				 errmsg("a Binary of subtype %d is not a packed payload", DP_PAYLOAD_SUBTYPE),
				 errdetail("As a payload, %s.", wrong)));
	return dp_builder_finish_value(&b, type);
}

/*
 * payload_pack(value bson_value) -> bson_value
 */
DP_FUNCTION(dp_payload_pack_value);
Datum
dp_payload_pack_value(PG_FUNCTION_ARGS)
{
	DpValue value = dp_value_of_varlena(PG_GETARG_VARLENA_PP(0));

	if (dp_payload_is_packed(&value))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_POINTER(dp_payload_pack(&value));
}

/*
 * payload_unpack(value bson_value) -> bson_value: itself, if it is not packed.
 */
DP_FUNCTION(dp_payload_unpack_value);
Datum
dp_payload_unpack_value(PG_FUNCTION_ARGS)
{
	DpValue value = dp_value_of_varlena(PG_GETARG_VARLENA_PP(0));

	if (!dp_payload_is_packed(&value))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_POINTER(dp_payload_unpack(&value, ERRCODE_DATA_CORRUPTED));
}

/*
 * _payload_is_packed(value bson_value) -> bool
 */
DP_FUNCTION(dp_payload_is_packed_value);
Datum
dp_payload_is_packed_value(PG_FUNCTION_ARGS)
{
	DpValue value = dp_value_of_varlena(PG_GETARG_VARLENA_PP(0));

	PG_RETURN_BOOL(dp_payload_is_packed(&value));
}
