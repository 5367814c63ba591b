/*
 * jsonb.c
 *		Conversion of BSON values to jsonb and back.
 *
 * null, booleans, strings, arrays, objects, integers and doubles have equivalents.  Types that
 * jsonb lacks are written as relaxed Extended JSON, as in the text form, and read back from it:
 * {"$oid": ".."}.  The name that jsonb puts first determines the meaning of a document, and a
 * document that would be read as another value is escaped, {"$document": {..}}.  Numbers of jsonb
 * are decimal, so doubles are written with the digits that identify them (an integral one as 1.0),
 * and a number with a fraction is read as a double if the double has the same digits, as a
 * decimal128 if a double would lose some.
 */
#include "postgres.h"

#include <math.h>

#include "common/shortest_dec.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

#include "bson/cast.h"
#include "bson/jsonb.h"
#include "bson/number.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "bson/text_parse.h"

/*
 * A decimal number of that many digits is what the shortest digits of its
 * double are, unless it is so small that doubles have fewer digits, or so large
 * that it can stand right between two doubles (which needs 54 bits).
 */
#define DOUBLE_SAFE_DIGITS 15
#define DOUBLE_SAFE_MAX 15 /* digits before the point */
#define DOUBLE_SAFE_MIN (-290)

/* The last date that relaxed Extended JSON writes as ISO 8601, the first is 0 */
#define LAST_ISO_DATE INT64CONST(253402300799999)

static void
append_container(DpBuilder *b, const char *name, uint32 namelen, JsonbContainer *container);
static void
append_plain_container(DpBuilder *b, const char *name, uint32 namelen, JsonbContainer *container);
static void append_scalar(DpBuilder *b, const char *name, uint32 namelen, const JsonbValue *v);
static void append_numeric(DpBuilder *b, const char *name, uint32 namelen, Numeric n);
static DpWrapper wrapper_of_object(JsonbContainer *container);
static DpWrapper wrapper_of_fields(const DpValue *document);
static JsonbValue *
push_value(JsonbParseState **state, JsonbIteratorToken token, const DpValue *value);
static JsonbValue *push_container(JsonbParseState **state, const DpValue *value);
static JsonbValue *push_extended(JsonbParseState **state, const char *name, char *s, int len);
static Jsonb *through_text(const DpValue *value);
static bool scalar_to_jsonb(const DpValue *value, JsonbValue *jv);
static void check_no_nul(const char *s, uint32 len);
static Numeric double_to_numeric(double d);

void
dp_builder_append_jsonb(DpBuilder *b, const char *name, uint32 namelen, struct varlena *jsonb)
{
	Jsonb *jb = (Jsonb *) jsonb;

	if (JB_ROOT_IS_SCALAR(jb))
	{
		JsonbValue v;

		(void) JsonbExtractScalar(&jb->root, &v);
		append_scalar(b, name, namelen, &v);
	}
	else
		append_container(b, name, namelen, &jb->root);
}

Jsonb *
dp_value_to_jsonb(const DpValue *value)
{
	JsonbParseState *state = NULL;
	JsonbValue scalar;

	if (scalar_to_jsonb(value, &scalar))
		return JsonbValueToJsonb(&scalar);
	if (!dp_type_is_container(value->type))
		return through_text(value);
	return JsonbValueToJsonb(push_container(&state, value));
}

/*
 * jsonb(bson) -> jsonb
 */
DP_FUNCTION(dp_bson_to_jsonb);
Datum
dp_bson_to_jsonb(PG_FUNCTION_ARGS)
{
	DpValue value = dp_value_of_document(DP_GETARG_VARLENA(0));

	PG_RETURN_POINTER(dp_value_to_jsonb(&value));
}

/*
 * bson(jsonb) -> bson.  Raises INVALID_PARAMETER_VALUE unless it is an object.
 */
DP_FUNCTION(dp_jsonb_to_bson);
Datum
dp_jsonb_to_bson(PG_FUNCTION_ARGS)
{
	Jsonb *jb = PG_GETARG_JSONB_P(0);
	DpBuilder b;
	uint8 type;

	dp_builder_init(&b, VARSIZE(jb));
	dp_builder_append_jsonb(&b, "", 0, (struct varlena *) jb);
	type = dp_builder_strip_element(&b);
	if (type != DP_TYPE_DOCUMENT)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("cannot convert jsonb to type %s", "bson"),
						errdetail("Found a value of BSON type \"%s\", expected an object.",
								  dp_type_name(type))));
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/* An array or an object of jsonb, or the value that the object represents. */
static void
append_container(DpBuilder *b, const char *name, uint32 namelen, JsonbContainer *container)
{
	DpWrapper wrapper = wrapper_of_object(container);
	StringInfoData text;
	struct varlena *parsed;
	DpValue value;

	if (likely(wrapper == DP_WRAP_NONE))
	{
		append_plain_container(b, name, namelen, container);
		return;
	}

	if (wrapper == DP_WRAP_DOCUMENT && JsonContainerSize(container) == 1)
	{
		JsonbValue inner;

		(void) getKeyJsonValueFromContainer(container, "$document", strlen("$document"), &inner);
		if (inner.type == jbvBinary && JsonContainerIsObject(inner.val.binary.data))
		{
			append_plain_container(b, name, namelen, inner.val.binary.data);
			return;
		}
	}

	/* the text parser knows the rest, and what is wrong with it */
	initStringInfo(&text);
	(void) JsonbToCString(&text, container, 0);
	parsed = dp_text_to_value(text.data, text.len, NULL);
	value = dp_value_of_varlena(parsed);
	dp_builder_append_nested(b, name, namelen, &value);
	pfree(parsed);
	pfree(text.data);
}

/* An array or an object as an array or a document. */
static void
append_plain_container(DpBuilder *b, const char *name, uint32 namelen, JsonbContainer *container)
{
	JsonbIterator *iter;
	JsonbIteratorToken token;
	JsonbValue v;
	const char *key = NULL;
	uint32 keylen = 0;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();

	if (JsonContainerIsArray(container))
		dp_builder_begin_array_field(b, name, namelen);
	else
		dp_builder_begin_document_field(b, name, namelen);

	iter = JsonbIteratorInit(container);
	while ((token = JsonbIteratorNext(&iter, &v, true)) != WJB_DONE)
	{
		switch (token)
		{
			case WJB_KEY:
				key = v.val.string.val;
				keylen = v.val.string.len;
				break;
			case WJB_VALUE:
			case WJB_ELEM:
				if (v.type == jbvBinary)
					append_container(b, key, keylen, v.val.binary.data);
				else
					append_scalar(b, key, keylen, &v);
				break;
			default:
				break;
		}
	}
	dp_builder_end(b);
}

/* Appends a scalar of jsonb as its BSON value. */
static void
append_scalar(DpBuilder *b, const char *name, uint32 namelen, const JsonbValue *v)
{
	switch (v->type)
	{
		case jbvNull:
			dp_builder_append_null(b, name, namelen);
			break;
		case jbvBool:
			dp_builder_append_bool(b, name, namelen, v->val.boolean);
			break;
		case jbvString:
			dp_builder_append_string(b, name, namelen, v->val.string.val, v->val.string.len);
			break;
		case jbvNumeric:
			append_numeric(b, name, namelen, v->val.numeric);
			break;
		default:
			elog(ERROR, "unexpected type of jsonb value: %d", (int) v->type);
	}
}

/*
 * A number: int32 or int64 if it has no fraction and fits, a double if that
 * double's shortest digits are the number, else decimal128.
 */
static void
append_numeric(DpBuilder *b, const char *name, uint32 namelen, Numeric n)
{
	char *s = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(n)));
	const char *p = s;
	bool fraction = false;
	int first = -1; /* positions, counted in digits, of the first */
	int last = -1;  /* and the last that is not 0 */
	int digits = 0;
	int before = 0; /* digits before the point */
	double d;

	if (*p == '-')
		p++;
	for (; *p; p++)
	{
		if (*p == '.')
		{
			fraction = true;
			before = digits;
			continue;
		}
		if (*p != '0')
		{
			if (first < 0)
				first = digits;
			last = digits;
		}
		digits++;
	}
	if (!fraction)
		before = digits;

	if (!fraction && digits <= 19)
	{
		int64 i;

		errno = 0;
		i = strtoll(s, NULL, 10);
		if (errno == 0)
		{
			if (i >= PG_INT32_MIN && i <= PG_INT32_MAX)
				dp_builder_append_int32(b, name, namelen, (int32) i);
			else
				dp_builder_append_int64(b, name, namelen, i);
			pfree(s);
			return;
		}
	}

	d = strtod(s, NULL);
	if (last - first + 1 <= DOUBLE_SAFE_DIGITS && before - first <= DOUBLE_SAFE_MAX &&
		before - first >= DOUBLE_SAFE_MIN)
		dp_builder_append_double(b, name, namelen, d);
	else if (isfinite(d) &&
			 DatumGetBool(DirectFunctionCall2(numeric_eq, NumericGetDatum(n),
											  NumericGetDatum(double_to_numeric(d)))))
		dp_builder_append_double(b, name, namelen, d);
	else
	{
		dp_builder_begin_element(b, DP_TYPE_DECIMAL128, name, namelen);
		dp_numeric_to_decimal128(n, dp_builder_reserve(b, DP_DECIMAL128_SIZE));
	}
	pfree(s);
}

/*
 * The meaning of an object in Extended JSON.  Its first name decides; names are ordered by their
 * lengths and then by their bytes.
 */
static DpWrapper
wrapper_of_object(JsonbContainer *container)
{
	uint32 count = JsonContainerSize(container);
	const char *first;
	JsonbValue v;
	DpWrapper wrapper;

	if (!JsonContainerIsObject(container) || count == 0)
		return DP_WRAP_NONE;
	first = (const char *) &container->children[count * 2];
	if (getJsonbLength(container, 0) == 0 || likely(*first != '$'))
		return DP_WRAP_NONE;

	wrapper = dp_wrapper_of_name(first, getJsonbLength(container, 0));
	if (wrapper == DP_WRAP_SCOPE_FIRST)
		return DP_WRAP_NONE; /* $code would come first */
	if (wrapper == DP_WRAP_TYPE_FIRST &&
		(count != 2 ||
		 getKeyJsonValueFromContainer(container, "$binary", strlen("$binary"), &v) == NULL))
		return DP_WRAP_NONE;
	return wrapper;
}

/* How the object of a document would be read. */
static DpWrapper
wrapper_of_fields(const DpValue *document)
{
	DpIter iter;
	DpElement element;
	DpElement first = { NULL, 0 };
	int count = 0;
	DpWrapper wrapper;
	DpValue v;

	dp_iter_init_value(&iter, document);
	while (dp_iter_next(&iter, &element))
	{
		if (count++ == 0 || element.namelen < first.namelen ||
			(element.namelen == first.namelen &&
			 memcmp(element.name, first.name, first.namelen) < 0))
			first = element;
	}
	if (likely(count == 0 || first.name[0] != '$'))
		return DP_WRAP_NONE;

	wrapper = dp_wrapper_of_name(first.name, first.namelen);
	if (wrapper == DP_WRAP_SCOPE_FIRST)
		return DP_WRAP_NONE;
	if (wrapper == DP_WRAP_TYPE_FIRST &&
		!dp_document_find(document->data, document->len, "$binary", strlen("$binary"), &v))
		return DP_WRAP_NONE;
	return wrapper;
}

/*
 * Push a value of any type: as an element of an array, or after its key.
 */
static JsonbValue *
push_value(JsonbParseState **state, JsonbIteratorToken token, const DpValue *value)
{
	JsonbValue v;

	if (scalar_to_jsonb(value, &v))
		return pushJsonbValue(state, token, &v);

	if (value->type == DP_TYPE_OBJECTID)
	{
		char *hex = palloc(2 * DP_OBJECTID_SIZE);

		(void) hex_encode((const char *) value->data, DP_OBJECTID_SIZE, hex);
		return push_extended(state, "$oid", hex, 2 * DP_OBJECTID_SIZE);
	}

	if (value->type == DP_TYPE_DATE)
	{
		int64 ms = dp_get_int64(value->data);

		if (ms >= 0 && ms <= LAST_ISO_DATE)
		{
			StringInfoData text;

			initStringInfo(&text);
			dp_date_to_text(&text, ms);
			return push_extended(state, "$date", text.data, text.len);
		}
	}

	if (dp_type_is_container(value->type))
		return push_container(state, value);

	{
		Jsonb *jb = through_text(value);

		/* a scalar is wrapped in an array */
		if (JB_ROOT_IS_SCALAR(jb))
			(void) JsonbExtractScalar(&jb->root, &v);
		else
		{
			v.type = jbvBinary;
			v.val.binary.data = &jb->root;
			v.val.binary.len = VARSIZE(jb) - VARHDRSZ;
		}
		return pushJsonbValue(state, token, &v);
	}
}

/*
 * Push a document or an array.  Of fields with the same name jsonb keeps the
 * last.
 */
static JsonbValue *
push_container(JsonbParseState **state, const DpValue *value)
{
	DpIter iter;
	DpElement element;
	JsonbValue key;
	JsonbValue *result;
	bool is_array = value->type == DP_TYPE_ARRAY;
	bool escaped = !is_array && wrapper_of_fields(value) != DP_WRAP_NONE;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();

	key.type = jbvString;
	if (escaped)
	{
		pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
		key.val.string.val = "$document";
		key.val.string.len = strlen("$document");
		pushJsonbValue(state, WJB_KEY, &key);
	}
	dp_iter_init_value(&iter, value);
	pushJsonbValue(state, is_array ? WJB_BEGIN_ARRAY : WJB_BEGIN_OBJECT, NULL);
	while (dp_iter_next(&iter, &element))
	{
		if (!is_array)
		{
			key.val.string.val = unconstify(char *, element.name);
			key.val.string.len = element.namelen;
			pushJsonbValue(state, WJB_KEY, &key);
		}
		(void) push_value(state, is_array ? WJB_ELEM : WJB_VALUE, &element.value);
	}
	result = pushJsonbValue(state, is_array ? WJB_END_ARRAY : WJB_END_OBJECT, NULL);
	if (escaped)
		result = pushJsonbValue(state, WJB_END_OBJECT, NULL);
	return result;
}

/*
 * Push an object of one string, Extended JSON's usual way to write a value.
 */
static JsonbValue *
push_extended(JsonbParseState **state, const char *name, char *s, int len)
{
	JsonbValue v;

	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	v.type = jbvString;
	v.val.string.val = unconstify(char *, name);
	v.val.string.len = strlen(name);
	pushJsonbValue(state, WJB_KEY, &v);
	v.val.string.val = s;
	v.val.string.len = len;
	pushJsonbValue(state, WJB_VALUE, &v);
	return pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

/*
 * The jsonb that the value's text is: relaxed, except for doubles, because
 * jsonb's numbers have no -0.0.  Raises an error if the text holds an escaped
 * null character.
 */
static Jsonb *
through_text(const DpValue *value)
{
	StringInfoData text;
	Datum jb;
	bool canonical = value->type == DP_TYPE_DOUBLE && !isnan(dp_get_double(value->data));

	initStringInfo(&text);
	dp_value_to_text(&text, value, canonical ? DP_TEXT_CANONICAL : DP_TEXT_RELAXED, -1);
	jb = DirectFunctionCall1(jsonb_in, CStringGetDatum(text.data));
	pfree(text.data);
	return DatumGetJsonbP(jb);
}

/*
 * Fills in jv and returns true if jsonb has a scalar for the value.  A string
 * points into the value's memory.
 */
static bool
scalar_to_jsonb(const DpValue *value, JsonbValue *jv)
{
	double d;

	switch (value->type)
	{
		case DP_TYPE_NULL:
			jv->type = jbvNull;
			return true;

		case DP_TYPE_BOOL:
			jv->type = jbvBool;
			jv->val.boolean = value->data[0] != 0;
			return true;

		case DP_TYPE_STRING:
			check_no_nul(DP_STRING_DATA(value), DP_STRING_LEN(value));
			jv->type = jbvString;
			jv->val.string.val = unconstify(char *, DP_STRING_DATA(value));
			jv->val.string.len = DP_STRING_LEN(value);
			return true;

		case DP_TYPE_INT32:
			jv->type = jbvNumeric;
			jv->val.numeric = int64_to_numeric(dp_get_int32(value->data));
			return true;

		case DP_TYPE_INT64:
			jv->type = jbvNumeric;
			jv->val.numeric = int64_to_numeric(dp_get_int64(value->data));
			return true;

		case DP_TYPE_DOUBLE:
			d = dp_get_double(value->data);
			if (!isfinite(d) || (d == 0 && signbit(d)))
				return false;
			jv->type = jbvNumeric;
			jv->val.numeric = double_to_numeric(d);
			return true;

		default:
			return false;
	}
}

/* jsonb's strings are made of text, which cannot contain a NUL. */
static void
check_no_nul(const char *s, uint32 len)
{
	if (memchr(s, 0, len) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
				 errmsg("cannot convert a string with a null character to type %s", "jsonb")));
}

/*
 * The number that the shortest digits that identify the double are.  One that
 * could be an integer gets the digit .0 so that it is a double when read back.
 */
static Numeric
double_to_numeric(double d)
{
	char digits[DOUBLE_SHORTEST_DECIMAL_LEN + 32];
	Datum n;

	/* integers below 2^53 have their digits in common with the double */
	if (fabs(d) < 9007199254740992.0 && d == floor(d))
		snprintf(digits, sizeof(digits), "%.1f", d);
	else
		double_to_shortest_decimal_buf(d, digits);
	n = DirectFunctionCall3(numeric_in, CStringGetDatum(digits), ObjectIdGetDatum(InvalidOid),
							Int32GetDatum(-1));
	if (fabs(d) >= 9007199254740992.0 && fabs(d) < 1e19)
		n = DirectFunctionCall2(numeric_round, n, Int32GetDatum(1));
	return DatumGetNumeric(n);
}
