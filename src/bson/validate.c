/*
 * validate.c
 *		Checking bytes that come from outside before anything trusts them.
 *
 * Everything that the reader relies on later, and everything that another
 * reader of the same bytes (a MongoDB driver) may rely on, is checked here:
 * each length against the container around it, every end, every type, UTF-8 of
 * names and strings, booleans, the inner length of old binary values, and the
 * depth.  The first fault is reported with its offset.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "bson/reader.h"
#include "bson/validate.h"

typedef struct Validation
{
	const uint8 *start;
	DpFault *fault;
} Validation;

static bool
validate_document(Validation *v, const uint8 *p, Size avail, bool exact, int depth, uint32 *size);
static bool validate_value(Validation *v, uint8 type, const uint8 *p, const uint8 *end, int depth,
						   uint32 *size);
static bool validate_string(Validation *v, const uint8 *p, const uint8 *end, uint32 *size);
static bool validate_cstring(Validation *v, const uint8 *p, const uint8 *end, uint32 *size);
static bool validate_utf8(Validation *v, const uint8 *p, uint32 len);
static bool fail(Validation *v, const uint8 *p, const char *what);

bool
dp_validate(const uint8 *doc, Size n, DpFault *fault)
{
	Validation v = { doc, fault };
	uint32 size;

	return validate_document(&v, doc, n, true, 1, &size);
}

bool
dp_validate_value(uint8 type, const uint8 *bytes, Size n, DpFault *fault)
{
	Validation v = { bytes, fault };
	uint32 size;

	if (n > MaxAllocSize)
		return fail(&v, bytes, "the value is too long");
	/* a document that is the value itself is at depth 1 */
	if (!validate_value(&v, type, bytes, bytes + n, 0, &size))
		return false;
	if (size != n)
		return fail(&v, bytes + size, "there are bytes after the end of the value");
	return true;
}

/*
 * The document at p, of which avail bytes can be read.  It must fill them if
 * exact.  Stores its size.
 */
static bool
validate_document(Validation *v, const uint8 *p, Size avail, bool exact, int depth, uint32 *size)
{
	const uint8 *end;
	int32 len;

	if (avail < DP_DOCUMENT_MIN_SIZE)
		return fail(v, p, "a document has fewer than 5 bytes");
	len = dp_get_int32(p);
	if (len < DP_DOCUMENT_MIN_SIZE)
		return fail(v, p, "the length of a document is less than 5");
	if ((Size) len > avail)
		return fail(v, p, "the length of a document is more than there are bytes");
	if (exact && (Size) len != avail)
		return fail(v, p, "the length of a document is less than there are bytes");
	if (depth > DP_MAX_DEPTH)
		return fail(v, p, "documents are nested more than 100 deep");
	end = p + len - 1;
	if (*end != 0)
		return fail(v, end, "a document does not end with a null byte");

	*size = (uint32) len;
	p += 4;
	while (p < end)
	{
		uint8 type = *p++;
		uint32 n;

		if (type == DP_TYPE_EOD)
			return fail(v, p - 1, "a document ends before its length says so");
		if (dp_fixed_size[type] == DP_SIZE_INVALID)
			return fail(v, p - 1, "a field has a type that does not exist");
		if (!validate_cstring(v, p, end, &n))
			return false;
		p += n;
		if (!validate_value(v, type, p, end, depth, &n))
			return false;
		p += n;
	}
	return true;
}

/*
 * The value at p, inside a container at the given depth that ends at end.
 * Stores its size.
 */
static bool
validate_value(Validation *v, uint8 type, const uint8 *p, const uint8 *end, int depth, uint32 *size)
{
	Size avail = end - p;
	uint32 n;
	int32 len;

	if (dp_fixed_size[type] < DP_SIZE_INVALID)
	{
		*size = dp_fixed_size[type];
		if (*size > avail)
			return fail(v, p, "a value reaches beyond the end of its document");
		if (type == DP_TYPE_BOOL && *p > 1)
			return fail(v, p, "a boolean is neither 0 nor 1");
		return true;
	}

	switch (type)
	{
		case DP_TYPE_STRING:
		case DP_TYPE_CODE:
		case DP_TYPE_SYMBOL:
			return validate_string(v, p, end, size);

		case DP_TYPE_DOCUMENT:
		case DP_TYPE_ARRAY:
			return validate_document(v, p, avail, false, depth + 1, size);

		case DP_TYPE_BINARY:
			if (avail < 5)
				return fail(v, p, "a value reaches beyond the end of its document");
			len = dp_get_int32(p);
			if (len < 0 || (Size) len > avail - 5)
				return fail(v, p, "the length of a binary value is wrong");
			if (p[4] == DP_BINARY_OLD && (len < 4 || dp_get_int32(p + 5) != len - 4))
				return fail(v, p + 5, "the inner length of an old binary value is wrong");
			*size = (uint32) len + 5;
			return true;

		case DP_TYPE_REGEX:
			if (!validate_cstring(v, p, end, size))
				return false;
			if (!validate_cstring(v, p + *size, end, &n))
				return false;
			*size += n;
			return true;

		case DP_TYPE_DBPOINTER:
			if (!validate_string(v, p, end, size))
				return false;
			if (avail - *size < DP_OBJECTID_SIZE)
				return fail(v, p + *size, "a value reaches beyond the end of its document");
			*size += DP_OBJECTID_SIZE;
			return true;

		case DP_TYPE_CODEWSCOPE:
			if (avail < 4 + 5 + DP_DOCUMENT_MIN_SIZE)
				return fail(v, p, "a value reaches beyond the end of its document");
			len = dp_get_int32(p);
			if (len < 4 + 5 + DP_DOCUMENT_MIN_SIZE || (Size) len > avail)
				return fail(v, p, "the length of code with scope is wrong");
			if (!validate_string(v, p + 4, p + len, &n))
				return false;
			*size = (uint32) len;
			return validate_document(v, p + 4 + n, len - 4 - n, true, depth + 1, &n);

		default:
			return fail(v, p, "a field has a type that does not exist");
	}
}

/* A string with its length in front and a NUL behind. */
static bool
validate_string(Validation *v, const uint8 *p, const uint8 *end, uint32 *size)
{
	Size avail = end - p;
	int32 len;

	if (avail < 5)
		return fail(v, p, "a value reaches beyond the end of its document");
	len = dp_get_int32(p);
	if (len < 1 || (Size) len > avail - 4)
		return fail(v, p, "the length of a string is wrong");
	if (p[4 + len - 1] != 0)
		return fail(v, p + 4 + len - 1, "a string does not end with a null byte");
	*size = (uint32) len + 4;
	return validate_utf8(v, p + 4, (uint32) len - 1);
}

/* A string that ends at its first NUL.  Stores its size, the NUL included. */
static bool
validate_cstring(Validation *v, const uint8 *p, const uint8 *end, uint32 *size)
{
	const uint8 *nul = p < end ? memchr(p, 0, end - p) : NULL;

	if (nul == NULL)
		return fail(v, p, "a name does not end");
	*size = (uint32) (nul + 1 - p);
	return validate_utf8(v, p, *size - 1);
}

static bool
validate_utf8(Validation *v, const uint8 *p, uint32 len)
{
	uint32 good = dp_utf8_valid(p, len);

	return good == len || fail(v, p + good, "a string is not valid UTF-8");
}

/*
 * PostgreSQL's own check stops at NULs, so it is called for the pieces between them.
 */
uint32
dp_utf8_valid(const uint8 *p, uint32 len)
{
	uint32 good = 0;

	while (good < len)
	{
		good += pg_encoding_verifymbstr(PG_UTF8, (const char *) p + good, len - good);
		if (good == len || p[good] != 0)
			break;
		good++;
	}
	return good;
}

/* Remember the first fault. */
static bool
fail(Validation *v, const uint8 *p, const char *what)
{
	v->fault->what = what;
	v->fault->offset = (uint32) (p - v->start);
	return false;
}
