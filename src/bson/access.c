/*
 * access.c
 *		Reading fields: the operators -> ->> #> #>> ? ?| ?& and their functions.
 *
 * Arguments that hold documents are never detoasted whole here: fetch.h reads
 * as much of them as the path needs.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/shortest_dec.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

#include "bson/access.h"
#include "bson/fetch.h"
#include "bson/names.h"
#include "bson/number.h"
#include "bson/text.h"

static Datum return_value(FunctionCallInfo fcinfo, bool found, const DpValue *value);
static Datum return_text(FunctionCallInfo fcinfo, bool found, const DpValue *value);
static bool get_number(FunctionCallInfo fcinfo, DpValue *value);
static void append_uuid(StringInfo out, const uint8 *bytes);
static int write_double(double d, char *buf);
static text *text_of_length(const char *s, Size len);
static text *text_of_int(int32 n);
static bool exists_any(FunctionCallInfo fcinfo, bool all);

/* ---------------------------------------------------------------- -> and ->> */

/*
 * bson_get(bson, path text) -> bson_value, bson -> text: the value at the path; NULL if there is
 * none.
 */
DP_FUNCTION(dp_bson_get);
Datum
dp_bson_get(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found = dp_fetch_path(PG_GETARG_DATUM(0), dp_path_arg(fcinfo, 1), true, &value);

	return return_value(fcinfo, found, &value);
}

/*
 * bson_get_text(bson, path text) -> text, bson ->> text: the same as text;
 * NULL also for null.  Raises UNTRANSLATABLE_CHARACTER for a string with a NUL.
 */
DP_FUNCTION(dp_bson_get_text);
Datum
dp_bson_get_text(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found = dp_fetch_path(PG_GETARG_DATUM(0), dp_path_arg(fcinfo, 1), true, &value);

	return return_text(fcinfo, found, &value);
}

/*
 * bson #> text[] -> bson_value: the array's elements are literal names, so they may contain dots.
 */
DP_FUNCTION(dp_bson_get_array);
Datum
dp_bson_get_array(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found = dp_fetch_path(PG_GETARG_DATUM(0), dp_path_array_arg(fcinfo, 1), true, &value);

	return return_value(fcinfo, found, &value);
}

/*
 * bson #>> text[] -> text
 */
DP_FUNCTION(dp_bson_get_array_text);
Datum
dp_bson_get_array_text(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found = dp_fetch_path(PG_GETARG_DATUM(0), dp_path_array_arg(fcinfo, 1), true, &value);

	return return_text(fcinfo, found, &value);
}

/*
 * bson_value -> text, bson_value ->> text, bson_value #> text[], bson_value #>> text[]:
 * the same for a value that is a document or an array; NULL for any other.
 */
DP_FUNCTION(dp_bson_value_get);
Datum
dp_bson_value_get(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found = dp_fetch_value_path(PG_GETARG_DATUM(0), dp_path_arg(fcinfo, 1), true, &value);

	return return_value(fcinfo, found, &value);
}

DP_FUNCTION(dp_bson_value_get_text);
Datum
dp_bson_value_get_text(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found = dp_fetch_value_path(PG_GETARG_DATUM(0), dp_path_arg(fcinfo, 1), true, &value);

	return return_text(fcinfo, found, &value);
}

DP_FUNCTION(dp_bson_value_get_array);
Datum
dp_bson_value_get_array(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found =
		dp_fetch_value_path(PG_GETARG_DATUM(0), dp_path_array_arg(fcinfo, 1), true, &value);

	return return_value(fcinfo, found, &value);
}

DP_FUNCTION(dp_bson_value_get_array_text);
Datum
dp_bson_value_get_array_text(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found =
		dp_fetch_value_path(PG_GETARG_DATUM(0), dp_path_array_arg(fcinfo, 1), true, &value);

	return return_text(fcinfo, found, &value);
}

/*
 * bson_value -> int, bson_value ->> int: the element of an array at a position,
 * negative positions from the end; NULL if it is no array or has none there.
 */
DP_FUNCTION(dp_bson_value_element);
Datum
dp_bson_value_element(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found = dp_fetch_element(PG_GETARG_DATUM(0), PG_GETARG_INT32(1), true, &value);

	return return_value(fcinfo, found, &value);
}

DP_FUNCTION(dp_bson_value_element_text);
Datum
dp_bson_value_element_text(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found = dp_fetch_element(PG_GETARG_DATUM(0), PG_GETARG_INT32(1), true, &value);

	return return_text(fcinfo, found, &value);
}

/*
 * bson -> int, bson ->> int: the field of a document whose name is the number.
 */
DP_FUNCTION(dp_bson_get_number);
Datum
dp_bson_get_number(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found = get_number(fcinfo, &value);

	return return_value(fcinfo, found, &value);
}

DP_FUNCTION(dp_bson_get_number_text);
Datum
dp_bson_get_number_text(PG_FUNCTION_ARGS)
{
	DpValue value;
	bool found = get_number(fcinfo, &value);

	return return_text(fcinfo, found, &value);
}

/* The field of the document argument whose name is the number argument. */
static bool
get_number(FunctionCallInfo fcinfo, DpValue *value)
{
	char digits[12];
	DpPath *path = dp_path_of_name(digits, pg_ltoa(PG_GETARG_INT32(1), digits));
	bool found = dp_fetch_path(PG_GETARG_DATUM(0), path, true, value);

	pfree(path);
	return found;
}

/*
 * The value as a bson_value, or SQL NULL if it was not found.
 */
static Datum
return_value(FunctionCallInfo fcinfo, bool found, const DpValue *value)
{
	if (!found)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_value_to_varlena(value));
}

/*
 * The value as text, or SQL NULL if it was not found or is null.
 */
static Datum
return_text(FunctionCallInfo fcinfo, bool found, const DpValue *value)
{
	text *result;

	if (!found || (result = dp_value_as_text(value)) == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(result);
}

/*
 * A text with a copy of the bytes.
 */
static text *
text_of_length(const char *s, Size len)
{
	text *result = (text *) palloc(len + VARHDRSZ);

	SET_VARSIZE(result, len + VARHDRSZ);
	memcpy(VARDATA(result), s, len);
	return result;
}

/*
 * A text with the digits of a number, written where they stay.
 */
static text *
text_of_int(int32 n)
{
	text *result = (text *) palloc(VARHDRSZ + 12); /* a sign, ten digits, a NUL */
	int len = pg_ltoa(n, VARDATA(result));

	SET_VARSIZE(result, VARHDRSZ + len);
	return result;
}

/*
 * The text of a value.
 */
text *
dp_value_as_text(const DpValue *value)
{
	char buf[DP_DECIMAL128_TEXT_SIZE];
	StringInfoData out;

	switch (value->type)
	{
		case DP_TYPE_NULL:
		case DP_TYPE_UNDEFINED:
			return NULL;
		case DP_TYPE_STRING:
		case DP_TYPE_SYMBOL:
			if (unlikely(memchr(DP_STRING_DATA(value), 0, DP_STRING_LEN(value)) != NULL))
				ereport(ERROR, (errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
								errmsg("cannot convert a string with a null character to text"),
								errhint("Read it as a bson_value with the operator -> instead.")));
			return text_of_length(DP_STRING_DATA(value), DP_STRING_LEN(value));
		case DP_TYPE_INT32:
			return text_of_int(dp_get_int32(value->data));
		case DP_TYPE_INT64:
			return text_of_length(buf, pg_lltoa(dp_get_int64(value->data), buf));
		case DP_TYPE_DOUBLE:
			return text_of_length(buf, write_double(dp_get_double(value->data), buf));
		case DP_TYPE_DECIMAL128:
			return text_of_length(buf, dp_decimal128_to_text(value->data, buf));
		case DP_TYPE_BOOL:
			return value->data[0] ? text_of_length("true", 4) : text_of_length("false", 5);
		case DP_TYPE_OBJECTID:
			return text_of_length(buf,
								  hex_encode((const char *) value->data, DP_OBJECTID_SIZE, buf));
		default:
			break;
	}

	/* other values go through a buffer that becomes the text */
	initStringInfo(&out);
	appendStringInfoSpaces(&out, VARHDRSZ);
	if (value->type == DP_TYPE_DATE)
		dp_date_to_text(&out, dp_get_int64(value->data));
	else if (value->type == DP_TYPE_BINARY && value->len == 5 + UUID_LEN &&
			 value->data[4] == DP_BINARY_UUID)
		append_uuid(&out, value->data + 5);
	else
		dp_value_to_text(&out, value, DP_TEXT_RELAXED, -1);
	SET_VARSIZE(out.data, out.len);
	return (text *) out.data;
}

/*
 * Writes the shortest digits that read back the same, and returns their number.  Most doubles in
 * documents are amounts with at most two decimals: if an integer divided by 100 equals the double,
 * its digits are the result, since no two decimals of up to 15 digits have the same double.
 */
static int
write_double(double d, char *buf)
{
	if (d > -1e12 && d < 1e12 && d != 0)
	{
		int64 hundredths = (int64) (d * 100 + (d < 0 ? -0.5 : 0.5));

		if ((double) hundredths / 100 == d)
		{
			uint64 n = hundredths < 0 ? -hundredths : hundredths;
			int decimals = n % 100;
			char *p = buf;

			if (d < 0)
				*p++ = '-';
			p += pg_ulltoa_n(n / 100, p);
			if (decimals != 0)
			{
				*p++ = '.';
				*p++ = '0' + decimals / 10;
				if (decimals % 10 != 0)
					*p++ = '0' + decimals % 10;
			}
			return p - buf;
		}
	}
	return double_to_shortest_decimal_buf(d, buf);
}

/* Appends the text of a UUID. */
static void
append_uuid(StringInfo out, const uint8 *bytes)
{
	char digits[2 * UUID_LEN];

	(void) hex_encode((const char *) bytes, UUID_LEN, digits);
	appendStringInfo(out, "%.8s-%.4s-%.4s-%.4s-%.12s", digits, digits + 8, digits + 12, digits + 16,
					 digits + 20);
}

/* ---------------------------------------------------------------- existence */

/* bson_exists(bson, path text) -> bool, bson ? text: whether the path exists, also with null. */
DP_FUNCTION(dp_bson_exists);
Datum
dp_bson_exists(PG_FUNCTION_ARGS)
{
	DpValue value;

	PG_RETURN_BOOL(dp_fetch_path(PG_GETARG_DATUM(0), dp_path_arg(fcinfo, 1), false, &value));
}

/*
 * bson_value ? text
 */
DP_FUNCTION(dp_bson_value_exists);
Datum
dp_bson_value_exists(PG_FUNCTION_ARGS)
{
	DpValue value;

	PG_RETURN_BOOL(dp_fetch_value_path(PG_GETARG_DATUM(0), dp_path_arg(fcinfo, 1), false, &value));
}

/*
 * bson_exists_any(bson, paths text[]) -> bool, bson ?| text[]: whether any of the paths exists.
 * Nulls among the paths are ignored.
 */
DP_FUNCTION(dp_bson_exists_any);
Datum
dp_bson_exists_any(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(exists_any(fcinfo, false));
}

/*
 * bson_exists_all(bson, paths text[]) -> bool, bson ?& text[]: whether all of
 * them do.
 */
DP_FUNCTION(dp_bson_exists_all);
Datum
dp_bson_exists_all(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(exists_any(fcinfo, true));
}

/* True if all or any of the paths in the second argument exist. */
static bool
exists_any(FunctionCallInfo fcinfo, bool all)
{
	const DpPathSet *set = dp_path_set(fcinfo, 1);
	DpFinder finder;

	if (set->n > DP_NAMES_FEW)
	{
		DpValue doc = dp_value_of_document(DP_GETARG_VARLENA(0));

		dp_finder_init(&finder, &doc);
	}
	for (int i = 0; i < set->n; i++)
	{
		DpValue value;

		if (all != (set->n > DP_NAMES_FEW
						? dp_finder_path(&finder, set->paths[i], &value)
						: dp_fetch_path(PG_GETARG_DATUM(0), set->paths[i], false, &value)))
			return !all;
	}
	return all;
}

const DpPathSet *
dp_path_set(FunctionCallInfo fcinfo, int argument)
{
	DpPathSet *set = fcinfo->flinfo->fn_extra;
	ArrayType *array = PG_GETARG_ARRAYTYPE_P(argument);
	MemoryContext mcxt;
	MemoryContext old;
	Datum *texts;
	bool *nulls;
	int n;

	if (set != NULL && VARSIZE(set->source) == VARSIZE(array) &&
		memcmp(set->source, array, VARSIZE(array)) == 0)
		return set;
	if (set != NULL)
	{
		fcinfo->flinfo->fn_extra = NULL;
		MemoryContextDelete(set->mcxt);
	}
	mcxt = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "paths", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(mcxt);
	set = palloc(sizeof(DpPathSet));
	set->mcxt = mcxt;
	set->source = palloc(VARSIZE(array));
	memcpy(set->source, array, VARSIZE(array));
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &texts, &nulls, &n);
	set->paths = palloc(sizeof(DpPath *) * Max(n, 1));
	set->n = 0;
	for (int i = 0; i < n; i++)
		if (!nulls[i])
			set->paths[set->n++] = dp_path_parse(VARDATA_ANY(DatumGetPointer(texts[i])),
												 VARSIZE_ANY_EXHDR(DatumGetPointer(texts[i])));
	MemoryContextSwitchTo(old);
	fcinfo->flinfo->fn_extra = set;
	return set;
}

/* ---------------------------------------------------------------- what it is */

/*
 * bson_typeof(bson_value) -> text: MongoDB's name of the type.
 */
DP_FUNCTION(dp_bson_value_typeof);
Datum
dp_bson_value_typeof(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(dp_type_name(dp_datum_first_byte(PG_GETARG_DATUM(0)))));
}

/*
 * bson_typeof(bson, path text) -> text: the type of the value at the path; NULL if there is none.
 */
DP_FUNCTION(dp_bson_typeof);
Datum
dp_bson_typeof(PG_FUNCTION_ARGS)
{
	DpValue value;

	if (!dp_fetch_path(PG_GETARG_DATUM(0), dp_path_arg(fcinfo, 1), false, &value))
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(dp_type_name(value.type)));
}

/*
 * bson_size(bson) -> int: bytes of the document, known without reading it.
 */
DP_FUNCTION(dp_bson_size);
Datum
dp_bson_size(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) dp_datum_size(PG_GETARG_DATUM(0)));
}

/*
 * bson_size(bson_value) -> int: bytes of the value, its type not counted.
 */
DP_FUNCTION(dp_bson_value_size);
Datum
dp_bson_value_size(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) dp_datum_size(PG_GETARG_DATUM(0)) - 1);
}

/*
 * bson_array_length(bson_value) -> int: the number of elements of an array.
 * Raises DATATYPE_MISMATCH for anything else.
 */
DP_FUNCTION(dp_bson_array_length);
Datum
dp_bson_array_length(PG_FUNCTION_ARGS)
{
	DpValue value = dp_value_of_varlena(DP_GETARG_VARLENA(0));

	if (value.type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("cannot get the length of a value that is not an array"),
						errdetail("The value has the type %s.", dp_type_name(value.type))));
	PG_RETURN_INT32((int32) dp_array_count(value.data, value.len));
}

/*
 * bson_array_length(bson, path text) -> int: the same for the value at the path; NULL if there is
 * none.
 */
DP_FUNCTION(dp_bson_array_length_path);
Datum
dp_bson_array_length_path(PG_FUNCTION_ARGS)
{
	DpValue value;

	if (!dp_fetch_path(PG_GETARG_DATUM(0), dp_path_arg(fcinfo, 1), true, &value))
		PG_RETURN_NULL();
	if (value.type != DP_TYPE_ARRAY)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("cannot get the length of a value that is not an array"),
						errdetail("The value has the type %s.", dp_type_name(value.type))));
	PG_RETURN_INT32((int32) dp_array_count(value.data, value.len));
}

/* ---------------------------------------------------------------- fan-out */

typedef struct ValuesState
{
	Tuplestorestate *store;
	TupleDesc desc;
} ValuesState;

/*
 * Puts one value into the result.
 */
static bool
values_visit(const DpValue *value, void *arg)
{
	ValuesState *state = arg;
	struct varlena *copy = dp_value_to_varlena(value);
	Datum datum = PointerGetDatum(copy);
	bool isnull = false;

	tuplestore_putvalues(state->store, state->desc, &datum, &isnull);
	pfree(copy);
	return true;
}

/*
 * bson_values(bson, path text) -> setof bson_value: every value that the path
 * reaches when it also looks into the documents in arrays.
 */
DP_FUNCTION(dp_bson_values);
Datum
dp_bson_values(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *info = (ReturnSetInfo *) fcinfo->resultinfo;
	struct varlena *doc = DP_GETARG_VARLENA(0);
	text *path = PG_GETARG_TEXT_PP(1);
	ValuesState state;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC | MAT_SRF_BLESS);
	state.store = info->setResult;
	state.desc = info->setDesc;
	dp_path_each(DP_DOC_DATA(doc), DP_DOC_SIZE(doc),
				 dp_path_parse(VARDATA_ANY(path), VARSIZE_ANY_EXHDR(path)), values_visit, &state);
	return (Datum) 0;
}
