/*
 * kind.c
 *		SQL types and the kinds of columns that their values are stored in.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/lsyscache.h"

#include "bson/catalog.h"
#include "types/bucket/format.h"

DpPackedKind
dp_bucket_kind(Oid typid)
{
	const DpTypes *types;

	typid = getBaseType(typid);
	switch (typid)
	{
		case BOOLOID:
			return DP_PACKED_BOOL;
		case INT2OID:
			return DP_PACKED_INT2;
		case INT4OID:
			return DP_PACKED_INT4;
		case INT8OID:
			return DP_PACKED_INT8;
		case FLOAT4OID:
			return DP_PACKED_FLOAT4;
		case FLOAT8OID:
			return DP_PACKED_FLOAT8;
		case NUMERICOID:
			return DP_PACKED_NUMERIC;
		case DATEOID:
			return DP_PACKED_DATE;
		case TIMEOID:
			return DP_PACKED_TIME;
		case TIMESTAMPOID:
			return DP_PACKED_TIMESTAMP;
		case TIMESTAMPTZOID:
			return DP_PACKED_TIMESTAMPTZ;
		case TEXTOID:
		case VARCHAROID:
			return DP_PACKED_TEXT;
		case BYTEAOID:
			return DP_PACKED_BYTEA;
		case UUIDOID:
			return DP_PACKED_UUID;
		default:
			break;
	}
	types = dp_types();
	if (typid == types->objectid)
		return DP_PACKED_OBJECTID;
	if (typid == types->bson_value)
		return DP_PACKED_VALUE;
	if (typid == types->bson)
		return DP_PACKED_DOCUMENT;
	return DP_PACKED_OTHER;
}

Oid
dp_bucket_kind_type(DpPackedKind kind)
{
	switch (kind)
	{
		case DP_PACKED_BOOL:
			return BOOLOID;
		case DP_PACKED_INT2:
			return INT2OID;
		case DP_PACKED_INT4:
			return INT4OID;
		case DP_PACKED_INT8:
			return INT8OID;
		case DP_PACKED_FLOAT4:
			return FLOAT4OID;
		case DP_PACKED_FLOAT8:
			return FLOAT8OID;
		case DP_PACKED_NUMERIC:
			return NUMERICOID;
		case DP_PACKED_DATE:
			return DATEOID;
		case DP_PACKED_TIME:
			return TIMEOID;
		case DP_PACKED_TIMESTAMP:
			return TIMESTAMPOID;
		case DP_PACKED_TIMESTAMPTZ:
			return TIMESTAMPTZOID;
		case DP_PACKED_TEXT:
		case DP_PACKED_OTHER:
			return TEXTOID;
		case DP_PACKED_BYTEA:
			return BYTEAOID;
		case DP_PACKED_UUID:
			return UUIDOID;
		case DP_PACKED_OBJECTID:
			return dp_types()->objectid;
		case DP_PACKED_DOCUMENT:
		case DP_PACKED_SPLIT_DOCUMENT:
			return dp_types()->bson;
		default:
			return dp_types()->bson_value;
	}
}
