/*
 * reader.c
 *		The parts of the reader that are too long to inline.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/reader.h"

const uint8 dp_empty_document[DP_DOCUMENT_MIN_SIZE] = { DP_DOCUMENT_MIN_SIZE, 0, 0, 0, 0 };

#define V DP_SIZE_VARIES
#define X DP_SIZE_INVALID
#define X8 X, X, X, X, X, X, X, X

const uint8 dp_fixed_size[256] = {
	/* 0x00 */ X,
	8,
	V,
	V,
	V,
	V,
	0,
	DP_OBJECTID_SIZE,
	/* 0x08 */ 1,
	8,
	0,
	V,
	V,
	V,
	V,
	V,
	/* 0x10 */ 4,
	8,
	8,
	DP_DECIMAL128_SIZE,
	X,
	X,
	X,
	X,
	/* 0x18 */ X8,
	/* 0x20 */ X8,
	X8,
	X8,
	X8,
	/* 0x40 */ X8,
	X8,
	X8,
	X8,
	/* 0x60 */ X8,
	X8,
	X8,
	/* 0x78 */ X,
	X,
	X,
	X,
	X,
	X,
	X,
	0,
	/* 0x80 */ X8,
	X8,
	X8,
	X8,
	/* 0xA0 */ X8,
	X8,
	X8,
	X8,
	/* 0xC0 */ X8,
	X8,
	X8,
	X8,
	/* 0xE0 */ X8,
	X8,
	X8,
	/* 0xF8 */ X,
	X,
	X,
	X,
	X,
	X,
	X,
	0
};

#undef V
#undef X
#undef X8

/*
 * Report that stored bytes are not a document.  Never returns.
 */
void
dp_corrupted(const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("corrupt BSON document"),
					errdetail("In the stored bytes: %s.", what)));
}

/*
 * dp_value_size() for the types that carry their length.
 */
uint32
dp_variable_size(uint8 type, const uint8 *p, const uint8 *end)
{
	uint32 avail = (uint32) (end - p);
	int32 len;

	if (type == DP_TYPE_REGEX)
	{
		const uint8 *nul = memchr(p, 0, avail);

		if (nul != NULL)
			nul = memchr(nul + 1, 0, end - (nul + 1));
		if (nul == NULL)
			dp_corrupted("a regular expression does not end");
		return (uint32) (nul + 1 - p);
	}

	if (dp_fixed_size[type] == DP_SIZE_INVALID)
		dp_corrupted("a field has a type that does not exist");
	if (avail < 4)
		dp_corrupted("a value reaches beyond the end of the document");

	len = dp_get_int32(p);
	switch (type)
	{
		case DP_TYPE_STRING:
		case DP_TYPE_CODE:
		case DP_TYPE_SYMBOL:
			/* the length counts the NUL but not itself */
			if (len < 1 || (uint32) len > avail - 4 || p[4 + len - 1] != 0)
				dp_corrupted("a string has a wrong length");
			return (uint32) len + 4;

		case DP_TYPE_DOCUMENT:
		case DP_TYPE_ARRAY:
		case DP_TYPE_CODEWSCOPE:
			/* the length counts itself */
			if (len < DP_DOCUMENT_MIN_SIZE || (uint32) len > avail)
				dp_corrupted("a sub-document has a wrong length");
			return (uint32) len;

		case DP_TYPE_BINARY:
			/* the length counts neither itself nor the subtype */
			if (len < 0 || avail < 5 || (uint32) len > avail - 5)
				dp_corrupted("a binary value has a wrong length");
			return (uint32) len + 5;

		case DP_TYPE_DBPOINTER:
			if (len < 1 || avail < 4 + DP_OBJECTID_SIZE ||
				(uint32) len > avail - 4 - DP_OBJECTID_SIZE)
				dp_corrupted("a pointer has a wrong length");
			return (uint32) len + 4 + DP_OBJECTID_SIZE;

		default:
			dp_corrupted("a field has a type that does not exist");
	}
	return 0; /* not reached */
}

/*
 * The number of elements of a document or an array, found by walking it.
 */
uint32
dp_document_count(const uint8 *doc, uint32 size)
{
	DpIter iter;
	DpElement element;
	uint32 count = 0;

	dp_iter_init(&iter, doc, size);
	while (dp_iter_next(&iter, &element))
		count++;
	return count;
}

/*
 * The first element of the document with the given name.
 */
bool
dp_document_find(const uint8 *doc, uint32 size, const char *name, uint32 namelen, DpValue *value)
{
	DpIter iter;
	DpElement element;

	CHECK_FOR_INTERRUPTS();
	dp_iter_init(&iter, doc, size);
	while (dp_iter_next(&iter, &element))
	{
		if (element.namelen == namelen && memcmp(element.name, name, namelen) == 0)
		{
			*value = element.value;
			return true;
		}
	}
	return false;
}

/*
 * MongoDB's name of a type.  The string is constant.
 */
const char *
dp_type_name(uint8 type)
{
	switch (type)
	{
		case DP_TYPE_DOUBLE:
			return "double";
		case DP_TYPE_STRING:
			return "string";
		case DP_TYPE_DOCUMENT:
			return "object";
		case DP_TYPE_ARRAY:
			return "array";
		case DP_TYPE_BINARY:
			return "binData";
		case DP_TYPE_UNDEFINED:
			return "undefined";
		case DP_TYPE_OBJECTID:
			return "objectId";
		case DP_TYPE_BOOL:
			return "bool";
		case DP_TYPE_DATE:
			return "date";
		case DP_TYPE_NULL:
			return "null";
		case DP_TYPE_REGEX:
			return "regex";
		case DP_TYPE_DBPOINTER:
			return "dbPointer";
		case DP_TYPE_CODE:
			return "javascript";
		case DP_TYPE_SYMBOL:
			return "symbol";
		case DP_TYPE_CODEWSCOPE:
			return "javascriptWithScope";
		case DP_TYPE_INT32:
			return "int";
		case DP_TYPE_TIMESTAMP:
			return "timestamp";
		case DP_TYPE_INT64:
			return "long";
		case DP_TYPE_DECIMAL128:
			return "decimal";
		case DP_TYPE_MAXKEY:
			return "maxKey";
		case DP_TYPE_MINKEY:
			return "minKey";
		default:
			dp_corrupted("a field has a type that does not exist");
	}
	return NULL; /* not reached */
}

/*
 * A new bson_value with a copy of the value.
 */
struct varlena *
dp_value_to_varlena(const DpValue *value)
{
	struct varlena *result = palloc(VARHDRSZ + 1 + value->len);
	uint8 *p = (uint8 *) VARDATA(result);

	SET_VARSIZE(result, VARHDRSZ + 1 + value->len);
	p[0] = value->type;
	if (value->len > 0) /* null may have no data at all */
		memcpy(p + 1, value->data, value->len);
	return result;
}

/*
 * A new bson with a copy of the document.
 */
struct varlena *
dp_document_to_varlena(const uint8 *doc, uint32 size)
{
	struct varlena *result = palloc(VARHDRSZ + size);

	SET_VARSIZE(result, VARHDRSZ + size);
	memcpy(VARDATA(result), doc, size);
	return result;
}
