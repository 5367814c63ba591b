/*
 * reference.c
 *		What a valid document is, once more: written from the specification of
 *		BSON and sharing nothing with the code under test.  Slow and plain.
 *
 * libbson alone is too lenient to be the judge: its bson_validate() passes over
 * values that are not valid UTF-8 and over sub-documents whose length or end is
 * wrong.  So validation is compared with both: it must agree with this file
 * always, and may not accept what libbson refuses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "reference.h"

typedef struct Input
{
	const uint8_t *bytes;
	size_t at;
	size_t end;
} Input;

static bool document(Input *in, int depth);

/* Steps over n bytes.  This and the others return false where the input is wrong. */
static bool
take(Input *in, size_t n)
{
	if (in->end - in->at < n)
		return false;
	in->at += n;
	return true;
}

/* Four bytes, the lowest first. */
static bool
number(Input *in, int64_t *v)
{
	const uint8_t *p = in->bytes + in->at;

	if (!take(in, 4))
		return false;
	*v = (int32_t) ((uint32_t) p[0] + ((uint32_t) p[1] << 8) + ((uint32_t) p[2] << 16) +
					((uint32_t) p[3] << 24));
	return true;
}

/* Whether n bytes are characters, none of them longer than it need be, half a pair or too large. */
static bool
utf8(const uint8_t *s, size_t n)
{
	size_t i = 0;

	while (i < n)
	{
		uint32_t code = s[i];
		int more = code < 0x80   ? 0
				   : code < 0xC0 ? -1
				   : code < 0xE0 ? 1
				   : code < 0xF0 ? 2
				   : code < 0xF8 ? 3
								 : -1;
		static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
		static const uint8_t bits[] = { 0x7F, 0x1F, 0x0F, 0x07 };

		if (more < 0 || n - i <= (size_t) more)
			return false;
		code &= bits[more];
		for (int k = 1; k <= more; k++)
		{
			if ((s[i + k] & 0xC0) != 0x80)
				return false;
			code = code << 6 | (s[i + k] & 0x3F);
		}
		if (code < least[more] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
			return false;
		i += 1 + more;
	}
	return true;
}

/* Characters up to a NUL. */
static bool
cstring(Input *in)
{
	size_t start = in->at;

	while (in->at < in->end && in->bytes[in->at] != 0)
		in->at++;
	if (in->at == in->end)
		return false;
	return utf8(in->bytes + start, in->at++ - start);
}

/* A length, characters, a NUL. */
static bool
string(Input *in)
{
	int64_t n;
	size_t start;

	if (!number(in, &n) || n < 1)
		return false;
	start = in->at;
	return take(in, (size_t) n) && in->bytes[in->at - 1] == 0 &&
		   utf8(in->bytes + start, (size_t) n - 1);
}

/* A value of the type, in a document at the depth. */
static bool
value(Input *in, uint8_t type, int depth)
{
	int64_t n, inner;
	size_t start = in->at;
	size_t end = in->end;

	switch (type)
	{
		case 1:
		case 9:
		case 17:
		case 18:
			return take(in, 8);
		case 2:
		case 13:
		case 14:
			return string(in);
		case 3:
		case 4:
			return document(in, depth + 1);
		case 5:
			if (!number(in, &n) || n < 0 || !take(in, 1))
				return false;
			if (in->bytes[in->at - 1] == 2)
			{
				Input copy = *in;

				if (n < 4 || !number(&copy, &inner) || inner != n - 4)
					return false;
			}
			return take(in, (size_t) n);
		case 6:
		case 10:
		case 127:
		case 255:
			return true;
		case 7:
			return take(in, 12);
		case 8:
			return take(in, 1) && in->bytes[in->at - 1] <= 1;
		case 11:
			return cstring(in) && cstring(in);
		case 12:
			return string(in) && take(in, 12);
		case 15:
			if (!number(in, &n) || n < 4 || (size_t) n > in->end - start)
				return false;
			in->end = start + (size_t) n;
			if (!string(in) || !document(in, depth + 1) || in->at != in->end)
				return false;
			in->end = end;
			return true;
		case 16:
			return take(in, 4);
		case 19:
			return take(in, 16);
		default:
			return false;
	}
}

/* A document, which may be followed by more. */
static bool
document(Input *in, int depth)
{
	size_t start = in->at;
	size_t end = in->end;
	int64_t n;

	if (depth > 100 || !number(in, &n) || n < 5 || (size_t) n > in->end - start)
		return false;
	in->end = start + (size_t) n;
	while (in->at < in->end - 1)
	{
		uint8_t type = in->bytes[in->at++];

		/* the end of this document may not be part of a value */
		in->end--;
		if (!cstring(in) || !value(in, type, depth))
			return false;
		in->end++;
	}
	if (in->bytes[in->at++] != 0 || in->at != in->end)
		return false;
	in->end = end;
	return true;
}

/* Whether the bytes are one document and nothing else. */
bool
reference_valid(const uint8_t *bytes, size_t n)
{
	Input in = { bytes, 0, n };

	return document(&in, 1) && in.at == n;
}
