/*
 * cast.c
 *		SQL values become BSON values.
 *
 * The other direction is in cast_out.c.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/arrayaccess.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "bson/cast.h"
#include "bson/catalog.h"
#include "bson/jsonb.h"
#include "bson/number.h"
#include "bson/reader.h"
#include "bson/text.h"

void (*dp_append_treepath)(DpBuilder *b, const char *name, uint32 namelen,
						   struct varlena *path) = NULL;

static DpConversion conversion_of_type(Oid typid);
static void append_bpchar(DpBuilder *b, const char *name, uint32 namelen, Datum d);
static void append_array(DpConverter *c, DpBuilder *b, const char *name, uint32 namelen, Datum d);
static void append_dimension(DpConverter *c, DpBuilder *b, array_iter *iter, int dim, int ndims,
							 const int *dims, int *position);
static void append_row(DpConverter *c, DpBuilder *b, const char *name, uint32 namelen, Datum d);
static int64 timestamp_to_ms(Timestamp t);
static int64 date_to_ms(DateADT d);
static bool depth_fits(const DpValue *value, int room);

void
dp_converter_init(DpConverter *c, Oid typid, MemoryContext mcxt)
{
	Oid basetype;
	Oid element;

	memset(c, 0, sizeof(DpConverter));
	c->typid = typid;
	c->mcxt = mcxt;
	c->conversion = conversion_of_type(typid);
	if (c->conversion != DP_CONVERT_OUTPUT)
		return;

	basetype = getBaseType(typid);
	if (basetype != typid)
		c->conversion = conversion_of_type(basetype);
	if (c->conversion != DP_CONVERT_OUTPUT)
		return;

	element = get_element_type(basetype);
	if (OidIsValid(element))
	{
		c->conversion = DP_CONVERT_ARRAY;
		c->element = MemoryContextAlloc(mcxt, sizeof(DpConverter));
		dp_converter_init(c->element, element, mcxt);
		get_typlenbyvalalign(element, &c->elmlen, &c->elmbyval, &c->elmalign);
	}
	else if (type_is_rowtype(basetype))
		c->conversion = DP_CONVERT_ROW;
	else
	{
		Oid output;
		bool isvarlena;

		getTypeOutputInfo(basetype, &output, &isvarlena);
		fmgr_info_cxt(output, &c->output, mcxt);
	}
}

void
dp_converter_append(DpConverter *c, DpBuilder *b, const char *name, uint32 namelen, Datum d,
					bool isnull)
{
	struct varlena *v;
	uint8 *p;

	if (isnull)
	{
		dp_builder_append_null(b, name, namelen);
		return;
	}

	switch (c->conversion)
	{
		case DP_CONVERT_BOOL:
			dp_builder_append_bool(b, name, namelen, DatumGetBool(d));
			return;

		case DP_CONVERT_INT2:
			dp_builder_append_int32(b, name, namelen, DatumGetInt16(d));
			return;

		case DP_CONVERT_INT4:
			dp_builder_append_int32(b, name, namelen, DatumGetInt32(d));
			return;

		case DP_CONVERT_INT8:
			dp_builder_append_int64(b, name, namelen, DatumGetInt64(d));
			return;

		case DP_CONVERT_FLOAT4:
			dp_builder_append_double(b, name, namelen, (double) DatumGetFloat4(d));
			return;

		case DP_CONVERT_FLOAT8:
			dp_builder_append_double(b, name, namelen, DatumGetFloat8(d));
			return;

		case DP_CONVERT_NUMERIC:
			dp_builder_begin_element(b, DP_TYPE_DECIMAL128, name, namelen);
			p = dp_builder_reserve(b, DP_DECIMAL128_SIZE);
			dp_numeric_to_decimal128(DatumGetNumeric(d), p);
			return;

		case DP_CONVERT_TEXT:
			v = PG_DETOAST_DATUM_PACKED(d);
			dp_builder_append_string(b, name, namelen, VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v));
			break;

		case DP_CONVERT_BPCHAR:
			append_bpchar(b, name, namelen, d);
			return;

		case DP_CONVERT_NAME:
			dp_builder_append_string(b, name, namelen, NameStr(*DatumGetName(d)),
									 strlen(NameStr(*DatumGetName(d))));
			return;

		case DP_CONVERT_CSTRING:
			dp_builder_append_string(b, name, namelen, DatumGetCString(d),
									 strlen(DatumGetCString(d)));
			return;

		case DP_CONVERT_TIMESTAMP:
			dp_builder_append_date(b, name, namelen, timestamp_to_ms(DatumGetTimestamp(d)));
			return;

		case DP_CONVERT_DATE:
			dp_builder_append_date(b, name, namelen, date_to_ms(DatumGetDateADT(d)));
			return;

		case DP_CONVERT_UUID:
			dp_builder_append_binary(b, name, namelen, DP_BINARY_UUID, DatumGetUUIDP(d)->data,
									 UUID_LEN);
			return;

		case DP_CONVERT_BYTEA:
			v = PG_DETOAST_DATUM_PACKED(d);
			dp_builder_append_binary(b, name, namelen, DP_BINARY_GENERIC, VARDATA_ANY(v),
									 VARSIZE_ANY_EXHDR(v));
			break;

		case DP_CONVERT_OBJECTID:
			dp_builder_begin_element(b, DP_TYPE_OBJECTID, name, namelen);
			dp_builder_append_bytes(b, DatumGetPointer(d), DP_OBJECTID_SIZE);
			return;

		case DP_CONVERT_TREEPATH:
			v = PG_DETOAST_DATUM_PACKED(d);
			dp_append_treepath(b, name, namelen, v);
			break;

		case DP_CONVERT_BSON:
		{
			DpValue value;

			v = PG_DETOAST_DATUM_PACKED(d);
			value = dp_value_of_document(v);
			dp_builder_append_nested(b, name, namelen, &value);
			break;
		}

		case DP_CONVERT_BSON_VALUE:
		{
			DpValue value;

			v = PG_DETOAST_DATUM_PACKED(d);
			value = dp_value_of_varlena(v);
			dp_builder_append_nested(b, name, namelen, &value);
			break;
		}

		case DP_CONVERT_JSONB:
			v = PG_DETOAST_DATUM(d);
			dp_builder_append_jsonb(b, name, namelen, v);
			break;

		case DP_CONVERT_JSON:
		{
			struct varlena *parsed;
			DpValue value;

			v = PG_DETOAST_DATUM_PACKED(d);
			parsed = dp_text_to_value(VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v), NULL);
			value = dp_value_of_varlena(parsed);
			dp_builder_append_nested(b, name, namelen, &value);
			pfree(parsed);
			break;
		}

		case DP_CONVERT_ARRAY:
			append_array(c, b, name, namelen, d);
			return;

		case DP_CONVERT_ROW:
			append_row(c, b, name, namelen, d);
			return;

		case DP_CONVERT_OUTPUT:
		default:
		{
			char *s = OutputFunctionCall(&c->output, d);

			dp_builder_append_string(b, name, namelen, s, strlen(s));
			pfree(s);
			return;
		}
	}

	/* a detoasted copy */
	if ((Pointer) v != DatumGetPointer(d))
		pfree(v);
}

void
dp_builder_append_datum(DpBuilder *b, const char *name, uint32 namelen, Datum d, bool isnull,
						Oid typid)
{
	DpConverter c;

	if (isnull)
	{
		dp_builder_append_null(b, name, namelen);
		return;
	}
	dp_converter_init(&c, typid, CurrentMemoryContext);
	dp_converter_append(&c, b, name, namelen, d, false);
}

struct varlena *
dp_converter_value(DpConverter *c, Datum d)
{
	DpBuilder b;

	if (c->conversion == DP_CONVERT_BSON_VALUE)
		return PG_DETOAST_DATUM_PACKED(d);

	dp_builder_init_value(&b, 0);
	dp_converter_append(c, &b, "", 0, d, false);
	return dp_builder_finish_value(&b, dp_builder_strip_element(&b));
}

struct varlena *
dp_datum_to_value(Datum d, Oid typid)
{
	DpConverter c;

	dp_converter_init(&c, typid, CurrentMemoryContext);
	return dp_converter_value(&c, d);
}

void
dp_builder_append_nested(DpBuilder *b, const char *name, uint32 namelen, const DpValue *value)
{
	if ((dp_type_is_container(value->type) || value->type == DP_TYPE_CODEWSCOPE) &&
		!depth_fits(value, DP_MAX_DEPTH - b->depth))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("document nested too deeply"),
				 errdetail("The limit is %d levels.", DP_MAX_DEPTH)));
	dp_builder_append_value(b, name, namelen, value);
}

uint8
dp_builder_strip_element(DpBuilder *b)
{
	uint8 *bytes = b->buf + b->head;
	uint8 type = bytes[0];
	uint32 skip = strlen((const char *) bytes + 1) + 2;

	memmove(bytes, bytes + skip, b->len - b->head - skip);
	b->len -= skip;
	return type;
}

const char *
dp_converter_name(DpConverter *c, Datum d, uint32 *len)
{
	struct varlena *v;
	DpValue value;
	Oid output;
	bool isvarlena;
	char *s;

	switch (c->conversion)
	{
		case DP_CONVERT_TEXT:
			v = PG_DETOAST_DATUM_PACKED(d);
			*len = VARSIZE_ANY_EXHDR(v);
			return VARDATA_ANY(v);

		case DP_CONVERT_BPCHAR:
			v = PG_DETOAST_DATUM_PACKED(d);
			*len = bpchartruelen(VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v));
			return VARDATA_ANY(v);

		case DP_CONVERT_CSTRING:
			*len = strlen(DatumGetCString(d));
			return DatumGetCString(d);

		case DP_CONVERT_BOOL:
			*len = DatumGetBool(d) ? 4 : 5;
			return DatumGetBool(d) ? "true" : "false";

		case DP_CONVERT_BSON_VALUE:
			v = PG_DETOAST_DATUM_PACKED(d);
			value = dp_value_of_varlena(v);
			if (value.type == DP_TYPE_STRING || value.type == DP_TYPE_SYMBOL)
			{
				*len = DP_STRING_LEN(&value);
				return DP_STRING_DATA(&value);
			}
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("the name of a field must be a string"),
					 errdetail("Found a value of BSON type \"%s\".", dp_type_name(value.type))));
			break;

		case DP_CONVERT_BSON:
		case DP_CONVERT_JSONB:
		case DP_CONVERT_JSON:
		case DP_CONVERT_ARRAY:
		case DP_CONVERT_ROW:
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("the name of a field must be a string"),
							errdetail("Found a value of type %s.", format_type_be(c->typid))));
			break;

		default:
			break;
	}

	getTypeOutputInfo(c->typid, &output, &isvarlena);
	s = OidOutputFunctionCall(output, d);
	*len = strlen(s);
	return s;
}

/* The conversion of a type if its OID determines it, or OUTPUT. */
static DpConversion
conversion_of_type(Oid typid)
{
	const DpTypes *types;

	switch (typid)
	{
		case BOOLOID:
			return DP_CONVERT_BOOL;
		case INT2OID:
			return DP_CONVERT_INT2;
		case INT4OID:
			return DP_CONVERT_INT4;
		case INT8OID:
			return DP_CONVERT_INT8;
		case FLOAT4OID:
			return DP_CONVERT_FLOAT4;
		case FLOAT8OID:
			return DP_CONVERT_FLOAT8;
		case NUMERICOID:
			return DP_CONVERT_NUMERIC;
		case TEXTOID:
		case VARCHAROID:
			return DP_CONVERT_TEXT;
		case BPCHAROID:
			return DP_CONVERT_BPCHAR;
		case NAMEOID:
			return DP_CONVERT_NAME;
		case UNKNOWNOID:
		case CSTRINGOID:
			return DP_CONVERT_CSTRING;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return DP_CONVERT_TIMESTAMP;
		case DATEOID:
			return DP_CONVERT_DATE;
		case UUIDOID:
			return DP_CONVERT_UUID;
		case BYTEAOID:
			return DP_CONVERT_BYTEA;
		case JSONBOID:
			return DP_CONVERT_JSONB;
		case JSONOID:
			return DP_CONVERT_JSON;
		case RECORDOID:
			return DP_CONVERT_ROW;
		default:
			break;
	}

	if (typid < FirstNormalObjectId)
		return DP_CONVERT_OUTPUT;
	types = dp_types();
	if (typid == types->bson)
		return DP_CONVERT_BSON;
	if (typid == types->bson_value)
		return DP_CONVERT_BSON_VALUE;
	if (typid == types->objectid)
		return DP_CONVERT_OBJECTID;
	if (typid == types->treepath)
		return DP_CONVERT_TREEPATH;
	return DP_CONVERT_OUTPUT;
}

/*
 * A char(n), without the blanks that pad it, as a cast to text gives it.
 */
static void
append_bpchar(DpBuilder *b, const char *name, uint32 namelen, Datum d)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(d);

	dp_builder_append_string(b, name, namelen, VARDATA_ANY(v),
							 bpchartruelen(VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v)));
	if ((Pointer) v != DatumGetPointer(d))
		pfree(v);
}

/*
 * An SQL array; one of several dimensions becomes arrays of arrays.
 */
static void
append_array(DpConverter *c, DpBuilder *b, const char *name, uint32 namelen, Datum d)
{
	AnyArrayType *array = DatumGetAnyArrayP(d);
	int ndims = AARR_NDIM(array);

	dp_builder_begin_array_field(b, name, namelen);
	if (ndims > 0)
	{
		array_iter iter;
		int position = 0;

		array_iter_setup(&iter, array);
		append_dimension(c, b, &iter, 0, ndims, AARR_DIMS(array), &position);
	}
	dp_builder_end(b);

	if (!VARATT_IS_EXPANDED_HEADER(array) && (Pointer) array != DatumGetPointer(d))
		pfree(array);
}

/*
 * The elements along one dimension, inside a container that is open.
 */
static void
append_dimension(DpConverter *c, DpBuilder *b, array_iter *iter, int dim, int ndims,
				 const int *dims, int *position)
{
	for (int i = 0; i < dims[dim]; i++)
	{
		if (dim + 1 < ndims)
		{
			dp_builder_begin_array_field(b, NULL, 0);
			append_dimension(c, b, iter, dim + 1, ndims, dims, position);
			dp_builder_end(b);
		}
		else
		{
			bool isnull;
			Datum d =
				array_iter_next(iter, &isnull, (*position)++, c->elmlen, c->elmbyval, c->elmalign);

			CHECK_FOR_INTERRUPTS();
			dp_converter_append(c->element, b, NULL, 0, d, isnull);
		}
	}
}

/*
 * A row: its columns by name.
 */
static void
append_row(DpConverter *c, DpBuilder *b, const char *name, uint32 namelen, Datum d)
{
	HeapTupleHeader row = DatumGetHeapTupleHeader(d);
	HeapTupleData tuple;
	TupleDesc desc;

	check_stack_depth();
	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row), HeapTupleHeaderGetTypMod(row));
	tuple.t_len = HeapTupleHeaderGetDatumLength(row);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = row;

	if (c->ncolumns < desc->natts)
	{
		if (c->columns)
			pfree(c->columns);
		c->columns = MemoryContextAllocZero(c->mcxt, sizeof(DpConverter) * desc->natts);
		c->ncolumns = desc->natts;
	}

	dp_builder_begin_document_field(b, name, namelen);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		const char *column = NameStr(att->attname);
		Datum value;
		bool isnull;

		if (att->attisdropped)
			continue;
		if (c->columns[i].typid != att->atttypid)
			dp_converter_init(&c->columns[i], att->atttypid, c->mcxt);
		value = heap_getattr(&tuple, i + 1, desc, &isnull);
		dp_converter_append(&c->columns[i], b, column, strlen(column), value, isnull);
	}
	dp_builder_end(b);

	ReleaseTupleDesc(desc);
	if ((Pointer) row != DatumGetPointer(d))
		pfree(row);
}

/*
 * Milliseconds since 1970.  Microseconds are cut off towards the past, so that
 * the order of two times never turns around.
 */
static int64
timestamp_to_ms(Timestamp t)
{
	int64 ms;

	if (TIMESTAMP_NOT_FINITE(t))
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
						errmsg("BSON has no infinite date")));
	ms = t / 1000;
	if (t % 1000 < 0)
		ms--;
	return ms + DP_EPOCH_SHIFT_MS;
}

/* The same for the first millisecond of a day in UTC. */
static int64
date_to_ms(DateADT d)
{
	if (DATE_NOT_FINITE(d))
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
						errmsg("BSON has no infinite date")));
	return ((int64) d + DP_EPOCH_SHIFT_DAYS) * SECS_PER_DAY * 1000;
}

/*
 * Whether the containers in the value, itself counted, are at most room deep.
 * Short values need not be looked into: a level costs at least seven bytes.
 */
static bool
depth_fits(const DpValue *value, int room)
{
	DpIter iter;
	DpValue scope = *value;
	DpValue child;

	if (room < 1)
		return false;
	if ((value->len - DP_DOCUMENT_MIN_SIZE) / 7 + 1 <= (uint32) room)
		return true;
	check_stack_depth();

	if (value->type == DP_TYPE_CODEWSCOPE)
	{
		uint32 skip;

		if (value->len < 4 + 5 + DP_DOCUMENT_MIN_SIZE)
			dp_corrupted("code with scope has a wrong length");
		skip = 4 + dp_value_size(DP_TYPE_STRING, value->data + 4, value->data + value->len);
		scope.data += skip;
		scope.len -= skip;
	}

	dp_iter_init(&iter, scope.data, scope.len);
	while (dp_iter_next_value(&iter, &child))
	{
		if ((dp_type_is_container(child.type) || child.type == DP_TYPE_CODEWSCOPE) &&
			!depth_fits(&child, room - 1))
			return false;
	}
	return true;
}

/*
 * SQL functions of the casts to bson_value, which are all the same.
 */
#define CAST_FUNCTION(name, typid)                                                                 \
	DP_FUNCTION(dp_cast_from_##name);                                                              \
	Datum dp_cast_from_##name(PG_FUNCTION_ARGS)                                                    \
	{                                                                                              \
		PG_RETURN_POINTER(dp_datum_to_value(PG_GETARG_DATUM(0), typid));                           \
	}

CAST_FUNCTION(bool, BOOLOID)
CAST_FUNCTION(int2, INT2OID)
CAST_FUNCTION(int4, INT4OID)
CAST_FUNCTION(int8, INT8OID)
CAST_FUNCTION(float4, FLOAT4OID)
CAST_FUNCTION(float8, FLOAT8OID)
CAST_FUNCTION(numeric, NUMERICOID)
CAST_FUNCTION(text, TEXTOID)
CAST_FUNCTION(bpchar, BPCHAROID)
CAST_FUNCTION(name, NAMEOID)
CAST_FUNCTION(timestamptz, TIMESTAMPTZOID)
CAST_FUNCTION(timestamp, TIMESTAMPOID)
CAST_FUNCTION(date, DATEOID)
CAST_FUNCTION(uuid, UUIDOID)
CAST_FUNCTION(objectid, dp_types()->objectid)
CAST_FUNCTION(bytea, BYTEAOID)
CAST_FUNCTION(json, JSONOID)
CAST_FUNCTION(jsonb, JSONBOID)
CAST_FUNCTION(bson, dp_types()->bson)
