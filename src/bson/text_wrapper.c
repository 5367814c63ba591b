/*
 * text_wrapper.c
 *		Documents that represent other values: {"$oid": ".."} and the like.
 *
 * The first name of a document determines its meaning.  The parser checks it after it has written
 * the document; the printer checks stored documents in the same way and escapes those that would be
 * read as another value, as {"$document": {..}}.
 */
#include "postgres.h"

#include "bson/reader.h"
#include "bson/text_parse.h"

static const struct
{
	const char *name;
	DpWrapper wrapper;
	const char *usage; /* for messages */
} wrappers[] = {
	{ "$oid", DP_WRAP_OID, "{\"$oid\": \"24 hexadecimal digits\"}" },
	{ "$symbol", DP_WRAP_SYMBOL, "{\"$symbol\": \"string\"}" },
	{ "$numberInt", DP_WRAP_INT32, "{\"$numberInt\": \"digits\"}" },
	{ "$numberLong", DP_WRAP_INT64, "{\"$numberLong\": \"digits\"}" },
	{ "$numberDouble", DP_WRAP_DOUBLE, "{\"$numberDouble\": \"number\"}" },
	{ "$numberDecimal", DP_WRAP_DECIMAL, "{\"$numberDecimal\": \"number of at most 34 digits\"}" },
	{ "$binary", DP_WRAP_BINARY,
	  "{\"$binary\": {\"base64\": \"..\", \"subType\": \"hexadecimal digits\"}}" },
	{ "$uuid", DP_WRAP_UUID, "{\"$uuid\": \"32 hexadecimal digits, with or without hyphens\"}" },
	{ "$code", DP_WRAP_CODE,
	  "{\"$code\": \"string\"} or {\"$code\": \"string\", \"$scope\": {..}}" },
	{ "$timestamp", DP_WRAP_TIMESTAMP, "{\"$timestamp\": {\"t\": seconds, \"i\": number}}" },
	{ "$regularExpression", DP_WRAP_REGEX,
	  "{\"$regularExpression\": {\"pattern\": \"..\", \"options\": \"..\"}}" },
	{ "$dbPointer", DP_WRAP_DBPOINTER,
	  "{\"$dbPointer\": {\"$ref\": \"..\", \"$id\": {\"$oid\": \"..\"}}}" },
	{ "$date", DP_WRAP_DATE, "{\"$date\": \"ISO 8601\"} or {\"$date\": milliseconds}" },
	{ "$minKey", DP_WRAP_MINKEY, "{\"$minKey\": 1}" },
	{ "$maxKey", DP_WRAP_MAXKEY, "{\"$maxKey\": 1}" },
	{ "$undefined", DP_WRAP_UNDEFINED, "{\"$undefined\": true}" },
	{ "$document", DP_WRAP_DOCUMENT, "{\"$document\": {..}}" },
	{ "$array", DP_WRAP_ARRAY, "{\"$array\": {..}}" },
	{ "$type", DP_WRAP_TYPE_FIRST, "{\"$binary\": \"base64\", \"$type\": \"hexadecimal digits\"}" },
	{ "$scope", DP_WRAP_SCOPE_FIRST, "{\"$code\": \"string\", \"$scope\": {..}}" },
};

/* Up to two elements of a document, which is all that a wrapper has. */
typedef struct Parts
{
	int count; /* 3: more than two */
	DpElement e[2];
} Parts;

static void parts_of(const uint8 *doc, uint32 size, Parts *parts);
static const DpValue *part(const Parts *parts, const char *name);
static int convert(DpParser *p, uint32 start, DpWrapper wrapper);
static int convert_binary(DpParser *p, uint32 start, const DpValue *base64, const DpValue *subtype);

/* The possible meaning of a document with this first name. */
DpWrapper
dp_wrapper_of_name(const char *name, uint32 namelen)
{
	for (int i = 0; i < lengthof(wrappers); i++)
	{
		if (strlen(wrappers[i].name) == namelen && memcmp(name, wrappers[i].name, namelen) == 0)
			return wrappers[i].wrapper;
	}
	return DP_WRAP_NONE;
}

/*
 * How the parser would read this document.  The inner values of a wrapper are parsed already:
 * {"$date": {"$numberLong": ".."}} is a $date with an int64 inside.
 */
DpWrapper
dp_wrapper_of_document(const uint8 *doc, uint32 size)
{
	Parts parts;
	DpWrapper wrapper;

	if (likely(size < DP_DOCUMENT_MIN_SIZE + 3 || doc[5] != '$'))
		return DP_WRAP_NONE;
	parts_of(doc, size, &parts);
	wrapper = dp_wrapper_of_name(parts.e[0].name, parts.e[0].namelen);
	if (wrapper == DP_WRAP_TYPE_FIRST)
		return parts.count == 2 && part(&parts, "$binary") ? DP_WRAP_BINARY : DP_WRAP_NONE;
	if (wrapper == DP_WRAP_SCOPE_FIRST)
		return parts.count == 2 && part(&parts, "$code") ? DP_WRAP_CODE : DP_WRAP_NONE;
	return wrapper;
}

/*
 * The document written from start on has a first name that may have a meaning: replaces it by the
 * value that it represents.  where is its position in the text.  Returns the type, or -1 after an
 * error.
 */
int
dp_wrapper_convert(DpParser *p, uint32 start, const char *where)
{
	DpWrapper wrapper = dp_wrapper_of_document(p->b.buf + start, p->b.len - start);
	int type = DP_TYPE_DOCUMENT;

	if (wrapper != DP_WRAP_NONE)
		type = convert(p, start, wrapper);
	if (type < 0)
	{
		for (int i = 0; i < lengthof(wrappers); i++)
		{
			if (wrappers[i].wrapper == wrapper)
			{
				dp_parser_fail(
					p, ERRCODE_INVALID_TEXT_REPRESENTATION, where,
					"A document that begins with such a name is written as {\"$document\": {..}}.",
					"\"%s\" is not used as in %s", wrappers[i].name, wrappers[i].usage);
				break;
			}
		}
		return -1;
	}
	if (p->height > DP_MAX_DEPTH)
	{
		dp_parser_fail(p, ERRCODE_PROGRAM_LIMIT_EXCEEDED, where, NULL, "the limit is %d levels",
					   DP_MAX_DEPTH);
		return -1;
	}
	return type;
}

/*
 * The same; returns -1 if the document is not what its first name promises.
 */
static int
convert(DpParser *p, uint32 start, DpWrapper wrapper)
{
	const int height = p->height;
	Parts parts;
	Parts inner = { 0 };
	const DpValue *v;
	uint8 out[8];
	int64 i;
	double d;

	parts_of(p->b.buf + start, p->b.len - start, &parts);
	v = &parts.e[0].value;
	if (parts.count == 2 && wrapper == DP_WRAP_CODE)
	{
		if (part(&parts, "$scope") == NULL)
			return -1;
		return dp_put_code(p, start, part(&parts, "$code"), part(&parts, "$scope"));
	}
	if (parts.count == 2 && wrapper == DP_WRAP_BINARY)
		return convert_binary(p, start, part(&parts, "$binary"), part(&parts, "$type"));
	if (parts.count != 1)
		return -1;
	if (v->type == DP_TYPE_DOCUMENT)
	{
		parts_of(v->data, v->len, &inner);
		if (inner.count != 2 && wrapper != DP_WRAP_DOCUMENT && wrapper != DP_WRAP_ARRAY)
			return -1;
	}
	else if (v->type != DP_TYPE_STRING && wrapper != DP_WRAP_DATE && wrapper != DP_WRAP_MINKEY &&
			 wrapper != DP_WRAP_MAXKEY && wrapper != DP_WRAP_UNDEFINED)
		return -1;

	switch (wrapper)
	{
		case DP_WRAP_OID:
			return dp_put_objectid(p, start, v);

		case DP_WRAP_SYMBOL:
			return dp_put_string(p, start, DP_TYPE_SYMBOL, v);

		case DP_WRAP_INT32:
			if (v->type != DP_TYPE_STRING ||
				!dp_text_to_int64(DP_STRING_DATA(v), DP_STRING_LEN(v), &i) || i != (int32) i)
				return -1;
			dp_put_int32(out, (int32) i);
			dp_parser_replace(p, start, out, 4);
			return DP_TYPE_INT32;

		case DP_WRAP_INT64:
			if (v->type != DP_TYPE_STRING ||
				!dp_text_to_int64(DP_STRING_DATA(v), DP_STRING_LEN(v), &i))
				return -1;
			dp_put_int64(out, i);
			dp_parser_replace(p, start, out, 8);
			return DP_TYPE_INT64;

		case DP_WRAP_DOUBLE:
			if (v->type != DP_TYPE_STRING ||
				!dp_text_to_double(DP_STRING_DATA(v), DP_STRING_LEN(v), &d))
				return -1;
			dp_put_double(out, d);
			dp_parser_replace(p, start, out, 8);
			return DP_TYPE_DOUBLE;

		case DP_WRAP_DECIMAL:
			return dp_put_decimal(p, start, v);

		case DP_WRAP_BINARY:
			return convert_binary(p, start, part(&inner, "base64"), part(&inner, "subType"));

		case DP_WRAP_UUID:
			return dp_put_uuid(p, start, v);

		case DP_WRAP_CODE:
			return dp_put_code(p, start, v, NULL);

		case DP_WRAP_TIMESTAMP:
			return dp_put_timestamp(p, start, part(&inner, "t"), part(&inner, "i"));

		case DP_WRAP_REGEX:
			if (part(&inner, "options") == NULL)
				return -1;
			return dp_put_regex(p, start, part(&inner, "pattern"), part(&inner, "options"), false);

		case DP_WRAP_DBPOINTER:
			return dp_put_dbpointer(p, start, part(&inner, "$ref"), part(&inner, "$id"));

		case DP_WRAP_DATE:
			return dp_put_date(p, start, v);

		case DP_WRAP_MINKEY:
		case DP_WRAP_MAXKEY:
			if (!dp_number_of_value(v, &i) || i != 1)
				return -1;
			dp_parser_replace(p, start, out, 0);
			return wrapper == DP_WRAP_MINKEY ? DP_TYPE_MINKEY : DP_TYPE_MAXKEY;

		case DP_WRAP_UNDEFINED:
			if (v->type != DP_TYPE_BOOL || *v->data != 1)
				return -1;
			dp_parser_replace(p, start, out, 0);
			return DP_TYPE_UNDEFINED;

		case DP_WRAP_DOCUMENT:
		case DP_WRAP_ARRAY:
			if (v->type != DP_TYPE_DOCUMENT)
				return -1;
			dp_parser_replace(p, start, v->data, v->len);
			p->height = height - 1;
			return wrapper == DP_WRAP_ARRAY ? DP_TYPE_ARRAY : DP_TYPE_DOCUMENT;

		default:
			return -1;
	}
}

/*
 * Binary, whose subtype is a string of hexadecimal digits here: a number could
 * be meant to be either.
 */
static int
convert_binary(DpParser *p, uint32 start, const DpValue *base64, const DpValue *subtype)
{
	if (subtype == NULL || subtype->type != DP_TYPE_STRING)
		return -1;
	return dp_put_base64(p, start, base64, subtype);
}

/*
 * The first two elements of a document, and whether there are more.
 */
static void
parts_of(const uint8 *doc, uint32 size, Parts *parts)
{
	DpIter iter;
	DpElement more;

	parts->count = 0;
	dp_iter_init(&iter, doc, size);
	while (parts->count < 2 && dp_iter_next(&iter, &parts->e[parts->count]))
		parts->count++;
	if (parts->count == 2 && dp_iter_next(&iter, &more))
		parts->count++;
}

/*
 * The value of that name among two parts that have different names, or NULL.
 */
static const DpValue *
part(const Parts *parts, const char *name)
{
	for (int i = 0; i < parts->count && i < 2; i++)
	{
		if (strcmp(parts->e[i].name, name) == 0)
			return &parts->e[i].value;
	}
	return NULL;
}
