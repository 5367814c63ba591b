/*
 * text_in.c
 *		From text to bytes: brackets, names, strings and numbers.
 *
 * The text is read once, from left to right, and the document is written as it
 * is read; there is no tree.  The buffer is kept large enough for everything
 * that one element can need (the rest of the text and DP_ELEMENT_ROOM), which
 * is checked once per element, so that strings are copied while they are
 * scanned.  Words (true, ObjectId(..)) are in text_word.c, {"$oid": ..} and
 * its kin in text_wrapper.c.
 */
#include "postgres.h"

#include <ctype.h>

#include <math.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/limits.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "bson/text_parse.h"

/* Bytes of an element besides those in the text: type, position, number, slack for wide stores */
#define DP_ELEMENT_ROOM 64

#define B DP_CLASS_BLANK
#define N DP_CLASS_NAME
#define D (DP_CLASS_NAME | DP_CLASS_DIGIT)
#define S DP_CLASS_STOP
#define SB (DP_CLASS_STOP | DP_CLASS_BLANK)
#define C DP_CLASS_COMMENT
#define NC (DP_CLASS_NAME | DP_CLASS_COMMENT)
#define N8 N, N, N, N, N, N, N, N

const uint8 dp_text_class[256] = {
	/* 0x00 */ S,  S,  S,  S,  S,  S,  S,  S,  S,  SB, SB, SB, SB, SB, S, S,
	/* 0x10 */ S,  S,  S,  S,  S,  S,  S,  S,  S,  S,  S,  S,  S,  S,  S, S,
	/* 0x20 */ B,  0,  S,  0,  N,  0,  0,  S,  0,  0,  0,  0,  0,  0,  0, C,
	/* 0x30 */ D,  D,  D,  D,  D,  D,  D,  D,  D,  D,  0,  0,  0,  0,  0, 0,
	/* 0x40 */ 0,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N, N,
	/* 0x50 */ N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  0,  S,  0,  0, N,
	/* 0x60 */ 0,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N, N,
	/* 0x70 */ N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  N,  0,  0,  0,  0, 0,
	/* 0x80 */ N8, N8, N8, N8, N8, N8, N8, N8,
	/* 0xC0 */ N,  N,  NC, N,  N,  N,  N,  N,  N8, N8, N8, N8,
	/* 0xE8 */ N,  N,  N,  N,  N,  N,  N,  NC, N8, N8
};

#undef B
#undef N
#undef D
#undef S
#undef SB
#undef C
#undef NC
#undef N8

static void parser_start(DpParser *p, const char *s, Size len, Node *escontext, const char *type);
static struct varlena *parser_finish(DpParser *p, int type);
static int parse_value(DpParser *p);
static int parse_document(DpParser *p, bool literal);
static int parse_array(DpParser *p);
static bool parse_name(DpParser *p);
static bool parse_string(DpParser *p);
static bool parse_escape(DpParser *p, const char *open);
static int parse_number(DpParser *p);
static int parse_regex(DpParser *p);
static bool open_container(DpParser *p, uint32 *start);
static bool close_container(DpParser *p, uint32 start, int height, const char *where);
static const char *sql_type(const DpParser *p, const char **meant);
static bool is_date(const DpParser *p);
static bool skip_comment(DpParser *p);
static bool fail_expected(DpParser *p, const char *expected);

/* The initial buffer size for a text of that length, which is usually sufficient. */
static inline Size
expected_size(Size len)
{
	return Min(len + len / 4 + 2 * DP_ELEMENT_ROOM, MaxAllocSize / 2);
}

/*
 * The document that the text spells.
 */
struct varlena *
dp_cstring_to_bson(const char *s, Size len, Node *escontext)
{
	DpParser p;
	const char *where;
	int type;

	parser_start(&p, s, len, escontext, "bson");
	dp_builder_init(&p.b, expected_size(len));
	dp_parser_skip_blanks(&p);
	where = p.cur;
	type = parse_value(&p);
	if (type < 0)
		return NULL;
	if (type != DP_TYPE_DOCUMENT)
	{
		dp_parser_fail(&p, ERRCODE_INVALID_TEXT_REPRESENTATION, where, NULL,
					   "a document is expected, a value of the type \"%s\" was found",
					   dp_type_name(type));
		return NULL;
	}
	return parser_finish(&p, type);
}

/*
 * The value that the text spells.
 */
struct varlena *
dp_cstring_to_value(const char *s, Size len, Node *escontext)
{
	DpParser p;
	int type;

	parser_start(&p, s, len, escontext, "bson_value");
	dp_builder_init_value(&p.b, expected_size(len));
	dp_parser_skip_blanks(&p);
	type = parse_value(&p);
	if (type < 0)
		return NULL;
	return parser_finish(&p, type);
}

/* The same for text that need not end with a NUL. */
struct varlena *
dp_text_to_bson(const char *s, Size len, Node *escontext)
{
	char *copy = pnstrdup(s, len);
	struct varlena *result = dp_cstring_to_bson(copy, len, escontext);

	pfree(copy);
	return result;
}

/* The same for a value. */
struct varlena *
dp_text_to_value(const char *s, Size len, Node *escontext)
{
	char *copy = pnstrdup(s, len);
	struct varlena *result = dp_cstring_to_value(copy, len, escontext);

	pfree(copy);
	return result;
}

/*
 * Report an error: what is wrong becomes the detail, with line and column.
 * Returns false, and only if there is a soft error context.
 */
bool
dp_parser_fail(DpParser *p, int sqlstate, const char *where, const char *hint, const char *fmt, ...)
{
	char what[256];
	va_list args;
	int line = 1;
	int column = 1;
	const char *cast;
	const char *meant = NULL;

	cast = sqlstate == ERRCODE_INVALID_TEXT_REPRESENTATION ? sql_type(p, &meant) : NULL;
	if (cast != NULL)
		dp_ereturn(p->escontext, false,
				   (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					errmsg("invalid input for type %s: \"%s\"", p->type, p->start),
					errhint("Cast %s: '%s'::%s%s.", meant, p->start, cast,
							strcmp(cast, "text") == 0 ? ", or compare them with ->>" : "")));

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);

	for (const char *s = p->start; s < where; s++)
	{
		if (*s == '\n')
		{
			line++;
			column = 1;
		}
		else if (((uint8) *s & 0xC0) != 0x80)
			column++;
	}
	dp_ereturn(p->escontext, false,
			   (errcode(sqlstate),
				sqlstate == ERRCODE_PROGRAM_LIMIT_EXCEEDED ? errmsg("document nested too deeply")
				: sqlstate == ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE
					? errmsg("value out of range in input for type %s", p->type)
					: errmsg("invalid input syntax for type %s", p->type),
				errdetail("Line %d, column %d: %s.", line, column, what),
				hint ? errhint("%s", hint) : 0));
}

/*
 * The SQL type that the whole text of a value was meant to have, and what it is; NULL if it has
 * characters that Extended JSON has around names and strings.
 */
static const char *
sql_type(const DpParser *p, const char **meant)
{
	Size len = p->end - p->start;

	if (strcmp(p->type, "bson_value") != 0 || len > 100)
		return NULL;
	*meant = "dates";
	if (is_date(p))
		return "timestamptz";
	if (strcspn(p->start, "\"'{}[](),:;/\\\n") < len)
		return NULL;
	*meant = "ObjectIds";
	if (len == 24 && strspn(p->start, "0123456789abcdefABCDEF") == len)
		return "objectid";
	*meant = "UUIDs";
	if (len == 36 && strspn(p->start, "0123456789abcdefABCDEF-") == len)
		return "uuid";
	*meant = "strings";
	return "text";
}

static bool
is_date(const DpParser *p)
{
	static const char form[] = "0000-00-00";
	Size len = p->end - p->start;
	int i;

	for (i = 0; i < lengthof(form) - 1; i++)
	{
		if (form[i] == '0' ? !isdigit((unsigned char) p->start[i]) : p->start[i] != form[i])
			return false;
	}
	return len <= 40 && strspn(p->start, "0123456789-+:. TZ") == len;
}

/*
 * The long way of dp_parser_skip_blanks().  A comment that does not end leaves
 * the cursor on it, where nothing accepts it.
 */
void
dp_parser_skip_more(DpParser *p)
{
	while (dp_is_blank(*p->cur))
		p->cur++;
	while (skip_comment(p))
		;
}

/*
 * Skips one comment, byte order mark or no-break space and the following blanks.  Returns false if
 * there is none.
 */
static bool
skip_comment(DpParser *p)
{
	const char *s = p->cur;

	if (s[0] == '/' && s[1] == '/')
	{
		while (s < p->end && *s != '\n')
			s++;
	}
	else if (s[0] == '/' && s[1] == '*')
	{
		s = strstr(s + 2, "*/");
		if (s == NULL)
			return false;
		s += 2;
	}
	else if ((uint8) s[0] == 0xEF && (uint8) s[1] == 0xBB && (uint8) s[2] == 0xBF)
		s += 3;
	else if ((uint8) s[0] == 0xC2 && (uint8) s[1] == 0xA0)
		s += 2;
	else
		return false;
	while (dp_is_blank(*s))
		s++;
	p->cur = s;
	return true;
}

/*
 * Prepare a parser for the text.  The caller initializes the builder.
 */
static void
parser_start(DpParser *p, const char *s, Size len, Node *escontext, const char *type)
{
	p->start = s;
	p->cur = s;
	p->end = s + len;
	p->escontext = escontext;
	p->type = type;
	p->nesting = 0;
	p->height = 0;
	p->nul = false;
}

/* The datum, after checking that only blanks follow and that it is not too large. */
static struct varlena *
parser_finish(DpParser *p, int type)
{
	Size size = p->b.len - p->b.head;

	dp_parser_skip_blanks(p);
	if (p->cur < p->end)
	{
		fail_expected(p, "the end of the text");
		return NULL;
	}
	if (size > (Size) dp_max_document_size)
		dp_ereturn(p->escontext, NULL,
				   (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("document too large"),
					errdetail("The document has %zu bytes; the limit is %d bytes.", size,
							  dp_max_document_size),
					errhint("Increase docpatterns.max_document_size.")));
	if (p->b.head == VARHDRSZ)
		return dp_builder_finish_bson(&p->b);
	return dp_builder_finish_value(&p->b, (uint8) type);
}

/* Reports an unexpected token. */
static bool
fail_expected(DpParser *p, const char *expected)
{
	const char *s = p->cur;
	int len = 0;

	if (s >= p->end)
		return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, s, NULL,
							  "%s is expected, the text ends", expected);
	if (s[0] == '/' && s[1] == '*')
		return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, s, NULL,
							  "a comment does not end");
	if (dp_is_name(*s))
		while (dp_is_name(s[len]) && len < 20)
			len++;
	else
		len = 1;
	while (s + len < p->end && ((uint8) s[len] & 0xC0) == 0x80)
		len++;
	if ((uint8) *s < 0x20)
		return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, s, NULL,
							  "%s is expected, a control character was found", expected);
	return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, s, NULL,
						  "%s is expected, \"%.*s\" was found", expected, len, s);
}

/* Makes sure that the rest of the text fits into the buffer, with the overhead of one element. */
static inline void
ensure_room(DpParser *p)
{
	Size need = (p->end - p->cur) + DP_ELEMENT_ROOM;

	if (unlikely(p->b.cap - p->b.len < need))
	{
		dp_builder_reserve(&p->b, need);
		p->b.len -= need;
	}
}

/*
 * The value at the cursor, which is not blank: writes its bytes and returns
 * its type, or -1.  The caller has made room.
 */
static int
parse_value(DpParser *p)
{
	switch (*p->cur)
	{
		case '"':
		case '\'':
		{
			uint32 start = p->b.len;

			p->height = 0;
			p->b.len += 4;
			if (!parse_string(p))
				return -1;
			p->b.buf[p->b.len++] = 0;
			dp_put_int32(p->b.buf + start, (int32) (p->b.len - start - 4));
			return DP_TYPE_STRING;
		}

		case '{':
			return parse_document(p, false);

		case '[':
			return parse_array(p);

		case '-':
		case '.':
		case '+':
		case '0':
		case '1':
		case '2':
		case '3':
		case '4':
		case '5':
		case '6':
		case '7':
		case '8':
		case '9':
			p->height = 0;
			return parse_number(p);

		case '/':
			p->height = 0;
			return parse_regex(p);

		default:
			p->height = 0;
			if (dp_is_name(*p->cur))
				return dp_parser_word(p);
			fail_expected(p, "a value");
			return -1;
	}
}

/*
 * The document at the cursor, which is at its bracket.  A literal one is not converted, whatever
 * its first name means.
 */
static int
parse_document(DpParser *p, bool literal)
{
	const char *where = p->cur;
	uint32 start;
	int height = 0;
	bool first = true;
	DpWrapper wrapper = DP_WRAP_NONE;

	if (!open_container(p, &start))
		return -1;
	dp_parser_skip_blanks(p);
	while (*p->cur != '}')
	{
		uint32 element;
		int type;

		ensure_room(p);
		element = p->b.len++;
		if (!parse_name(p))
			return -1;
		p->b.buf[p->b.len++] = 0;
		if (first)
		{
			first = false;
			if (unlikely(p->b.buf[element + 1] == '$') && !literal)
				wrapper =
					dp_wrapper_of_name((char *) p->b.buf + element + 1, p->b.len - element - 2);
		}

		if (unlikely(*p->cur != ':'))
		{
			dp_parser_skip_blanks(p);
			if (*p->cur != ':')
			{
				fail_expected(p, "a colon");
				return -1;
			}
		}
		p->cur++;
		dp_parser_skip_blanks(p);
		if (unlikely(wrapper == DP_WRAP_DOCUMENT || wrapper == DP_WRAP_ARRAY) && *p->cur == '{')
			type = parse_document(p, true);
		else
			type = parse_value(p);
		if (unlikely(type < 0))
			return -1;
		p->b.buf[element] = (uint8) type;
		height = Max(height, p->height);

		if (*p->cur == ',')
		{
			p->cur++;
			dp_parser_skip_blanks(p);
			continue;
		}
		dp_parser_skip_blanks(p);
		if (*p->cur == ',')
		{
			p->cur++;
			dp_parser_skip_blanks(p);
		}
		else if (*p->cur != '}')
		{
			fail_expected(p, "a comma or a closing brace");
			return -1;
		}
	}
	p->cur++;
	if (!close_container(p, start, height, where))
		return -1;
	if (unlikely(wrapper != DP_WRAP_NONE))
		return dp_wrapper_convert(p, start, where);
	if (unlikely(p->height > DP_MAX_DEPTH))
	{
		dp_parser_fail(p, ERRCODE_PROGRAM_LIMIT_EXCEEDED, where, NULL, "the limit is %d levels",
					   DP_MAX_DEPTH);
		return -1;
	}
	return DP_TYPE_DOCUMENT;
}

/* The array at the cursor, which is at its bracket. */
static int
parse_array(DpParser *p)
{
	const char *where = p->cur;
	int count;

	if (!dp_parser_elements(p, ']', &count))
		return -1;
	if (unlikely(p->height > DP_MAX_DEPTH))
	{
		dp_parser_fail(p, ERRCODE_PROGRAM_LIMIT_EXCEEDED, where, NULL, "the limit is %d levels",
					   DP_MAX_DEPTH);
		return -1;
	}
	return DP_TYPE_ARRAY;
}

/*
 * Values up to the closing bracket, of which the opening one is at the cursor.
 * Writes them as an array and stores their number.
 */
bool
dp_parser_elements(DpParser *p, char close, int *count)
{
	const char *where = p->cur;
	uint32 start;
	int height = 0;
	char name[16] = "0"; /* the position, counted in decimal digits */
	uint32 namelen = 1;

	*count = 0;
	if (!open_container(p, &start))
		return false;
	dp_parser_skip_blanks(p);
	while (*p->cur != close)
	{
		uint32 element;
		int type;
		int digit;

		ensure_room(p);
		element = p->b.len;
		memcpy(p->b.buf + element + 1, name, sizeof(name));
		p->b.len += namelen + 2;
		type = parse_value(p);
		if (unlikely(type < 0))
			return false;
		p->b.buf[element] = (uint8) type;
		height = Max(height, p->height);
		(*count)++;

		for (digit = namelen - 1; digit >= 0 && name[digit] == '9'; digit--)
			name[digit] = '0';
		if (digit >= 0)
			name[digit]++;
		else
		{
			name[0] = '1';
			name[namelen++] = '0';
		}

		dp_parser_skip_blanks(p);
		if (*p->cur == ',')
		{
			p->cur++;
			dp_parser_skip_blanks(p);
		}
		else if (*p->cur != close)
			return fail_expected(p, close == ']' ? "a comma or a closing bracket"
												 : "a comma or a closing parenthesis");
	}
	p->cur++;
	return close_container(p, start, height, where);
}

/*
 * Step over the opening bracket and leave room for the length.
 */
static bool
open_container(DpParser *p, uint32 *start)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (unlikely(p->nesting >= DP_MAX_NESTING))
		return dp_parser_fail(p, ERRCODE_PROGRAM_LIMIT_EXCEEDED, p->cur, NULL,
							  "the limit is %d levels", DP_MAX_DEPTH);
	p->nesting++;
	ensure_room(p);
	*start = p->b.len;
	p->b.len += 4;
	p->cur++;
	return true;
}

/*
 * Write end and length of the container that starts at start.
 */
static bool
close_container(DpParser *p, uint32 start, int height, const char *where)
{
	ensure_room(p);
	p->nesting--;
	p->height = height + 1;
	p->b.buf[p->b.len++] = 0;
	dp_put_int32(p->b.buf + start, (int32) (p->b.len - start));
	return true;
}

/*
 * The name at the cursor: a string, or letters and digits without quotes.
 */
static bool
parse_name(DpParser *p)
{
	const char *s = p->cur;

	if (likely(*s == '"' || *s == '\''))
	{
		p->nul = false;
		if (!parse_string(p))
			return false;
		if (unlikely(p->nul))
			return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, s, NULL,
								  "the name of a field cannot contain a null character");
		return true;
	}
	while (dp_is_name(*s))
		s++;
	if (s == p->cur)
		return fail_expected(p, "the name of a field");
	memcpy(p->b.buf + p->b.len, p->cur, s - p->cur);
	p->b.len += s - p->cur;
	p->cur = s;
	return true;
}

/* The string at the cursor, which is at its quote: writes only its characters. */
static bool
parse_string(DpParser *p)
{
	const char *open = p->cur;
	const char quote = *open;
	const char *s = open + 1;
	uint8 *out = p->b.buf + p->b.len;

	for (;;)
	{
#ifdef __SSE2__
		/* copy sixteen bytes, then see whether one of them should not have been */
		while (p->end - s >= 16)
		{
			const __m128i chunk = _mm_loadu_si128((const __m128i *) s);
			const __m128i special =
				_mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(chunk, _mm_set1_epi8(quote)),
										  _mm_cmpeq_epi8(chunk, _mm_set1_epi8('\\'))),
							 _mm_cmpeq_epi8(_mm_min_epu8(chunk, _mm_set1_epi8(0x1F)), chunk));
			const int mask = _mm_movemask_epi8(special);

			_mm_storeu_si128((__m128i *) out, chunk);
			if (mask != 0)
			{
				const int n = __builtin_ctz(mask);

				s += n;
				out += n;
				break;
			}
			s += 16;
			out += 16;
		}
#endif
		while (!(dp_text_class[(uint8) *s] & DP_CLASS_STOP))
			*out++ = *s++;
		if (likely(*s == quote))
			break;
		if (*s == '\'' || *s == '"')
		{
			*out++ = *s++;
			continue;
		}
		if (*s != '\\')
		{
			if (s >= p->end)
				return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, open, NULL,
									  "a string does not end");
			return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, s,
								  "Write it as an escape, as in \\n or \\u0001.",
								  "a string holds a control character");
		}
		p->cur = s + 1;
		p->b.len = out - p->b.buf;
		if (!parse_escape(p, open))
			return false;
		s = p->cur;
		out = p->b.buf + p->b.len;
	}
	p->cur = s + 1;
	p->b.len = out - p->b.buf;
	return true;
}

/*
 * Four hexadecimal digits, or -1.
 */
static int
four_digits(const char *s)
{
	uint8 bytes[2];

	if (memchr(s, 0, 4) != NULL || !dp_text_to_hex(s, 4, bytes))
		return -1;
	return bytes[0] << 8 | bytes[1];
}

/*
 * The escape behind a backslash: writes the character.
 */
static bool
parse_escape(DpParser *p, const char *open)
{
	const char *where = p->cur - 1;
	uint8 *out = p->b.buf + p->b.len;
	const char c = *p->cur++;
	int code;
	uint8 byte;

	switch (c)
	{
		case '"':
		case '\'':
		case '\\':
		case '/':
		case '`':
			*out = c;
			break;
		case 'b':
			*out = '\b';
			break;
		case 'f':
			*out = '\f';
			break;
		case 'n':
			*out = '\n';
			break;
		case 'r':
			*out = '\r';
			break;
		case 't':
			*out = '\t';
			break;
		case 'v':
			*out = '\v';
			break;
		case '0':
			if (dp_is_digit(*p->cur))
				return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, where, NULL,
									  "an octal escape is not supported");
			*out = 0;
			p->nul = true;
			break;
		case 'x':
			if (p->end - p->cur < 2 || !dp_text_to_hex(p->cur, 2, &byte))
				return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, where, NULL,
									  "\"\\x\" is followed by two hexadecimal digits");
			p->cur += 2;
			p->nul |= byte == 0;
			unicode_to_utf8(byte, out);
			p->b.len += byte < 0x80 ? 1 : 2;
			return true;
		case 'u':
			code = four_digits(p->cur);
			if (code < 0)
				return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, where, NULL,
									  "\"\\u\" is followed by four hexadecimal digits");
			p->cur += 4;
			p->nul |= code == 0;
			if (code >= 0xD800 && code <= 0xDBFF)
			{
				int low = p->cur[0] == '\\' && p->cur[1] == 'u' ? four_digits(p->cur + 2) : -1;

				if (low < 0xDC00 || low > 0xDFFF)
					return dp_parser_fail(
						p, ERRCODE_INVALID_TEXT_REPRESENTATION, where, NULL,
						"the first half of a surrogate pair is not followed by the second");
				code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
				p->cur += 6;
			}
			else if (code >= 0xDC00 && code <= 0xDFFF)
				return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, where, NULL,
									  "the second half of a surrogate pair stands alone");
			unicode_to_utf8(code, out);
			p->b.len += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
			return true;
		default:
			if (p->cur > p->end)
				return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, open, NULL,
									  "a string does not end");
			return dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, where,
								  "A backslash is written as two.", "an escape does not exist");
	}
	p->b.len++;
	return true;
}

/*
 * The digits of a number without the zeros at the end of its fraction, which
 * databases like to write: stores them in v if they fit and the exponent that
 * takes their place.  Returns the number of digits that are left.
 */
static int
drop_zeros(const char *s, const char *end, uint64 *v, int *exponent)
{
	const char *point = memchr(s, '.', end - s);
	int n = 0;

	if (point == NULL)
		return end - s;
	for (; end[-1] == '0'; end--)
		(*exponent)++;
	for (*v = 0; s < end; s++)
	{
		if (s == point)
			continue;
		if (++n > 19)
			break;
		*v = *v * 10 + (*s - '0');
	}
	return n;
}

/*
 * The number at the cursor.  Without point and exponent it is an int32 if it
 * fits, else an int64 if it fits, else a double.
 */
static int
parse_number(DpParser *p)
{
	static const double power[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
									1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
									1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	const char *start = p->cur;
	const char *s = start;
	const char *digits;
	const char *mantissa_end;
	bool negative = false;
	uint64 v = 0;
	int ndigits; /* that are in v */
	int exponent = 0;
	double d;

	if (*s == '-' || *s == '+')
		negative = *s++ == '-';
	digits = s;
	while (dp_is_digit(*s))
		v = v * 10 + (*s++ - '0');
	ndigits = s - digits;

	if (likely(!dp_is_name(*s) && *s != '.' && ndigits > 0 && ndigits < 19 &&
			   (*digits != '0' || (ndigits == 1 && !negative))))
	{
		int64 i = negative ? -(int64) v : (int64) v;

		p->cur = s;
		if (likely(i == (int32) i))
		{
			dp_put_int32(p->b.buf + p->b.len, (int32) i);
			p->b.len += 4;
			return DP_TYPE_INT32;
		}
		dp_put_int64(p->b.buf + p->b.len, i);
		p->b.len += 8;
		return DP_TYPE_INT64;
	}

	if (ndigits == 0 && strncmp(s, "Infinity", 8) == 0 && !dp_is_name(s[8]))
	{
		p->cur = s + 8;
		d = negative ? -INFINITY : INFINITY;
		dp_put_double(p->b.buf + p->b.len, d);
		p->b.len += 8;
		return DP_TYPE_DOUBLE;
	}
	if (ndigits > 1 && *digits == '0')
		goto wrong;
	if (*s == '.')
	{
		const char *point = s++;

		while (dp_is_digit(*s))
			v = v * 10 + (*s++ - '0');
		ndigits += s - point - 1;
		exponent = -(int) (s - point - 1);
	}
	if (ndigits == 0)
		goto wrong;
	mantissa_end = s;
	if (*s == 'e' || *s == 'E')
	{
		bool minus = false;
		int e = 0;

		s++;
		if (*s == '-' || *s == '+')
			minus = *s++ == '-';
		if (!dp_is_digit(*s))
			goto wrong;
		while (dp_is_digit(*s))
		{
			if (e < 100000)
				e = e * 10 + (*s - '0');
			s++;
		}
		exponent += minus ? -e : e;
	}
	else if (ndigits == 19 && s == digits + ndigits)
	{
		/* nineteen digits, which may or may not be too many */
		if (v <= (uint64) PG_INT64_MAX + (negative ? 1 : 0) && !dp_is_name(*s))
		{
			p->cur = s;
			dp_put_int64(p->b.buf + p->b.len, (int64) (negative ? -v : v));
			p->b.len += 8;
			return DP_TYPE_INT64;
		}
	}
	if (dp_is_name(*s) || *s == '.')
		goto wrong;

	if (ndigits > 19)
		ndigits = drop_zeros(digits, mantissa_end, &v, &exponent);
	if (ndigits <= 19 && v <= (UINT64CONST(1) << 53) && exponent >= -22 && exponent <= 22)
	{
		/* both are exact, so one operation gives the nearest double */
		d = (double) v;
		d = exponent < 0 ? d / power[-exponent] : d * power[exponent];
		if (negative)
			d = -d;
	}
	else
	{
		d = strtod(start, NULL);
		if (isinf(d) || (d == 0 && strspn(digits, "0.") < mantissa_end - digits))
		{
			dp_parser_fail(p, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, start,
						   "Use NumberDecimal(\"..\") for numbers beyond the range of a double.",
						   "a number does not fit into a double");
			return -1;
		}
	}
	p->cur = s;
	dp_put_double(p->b.buf + p->b.len, d);
	p->b.len += 8;
	return DP_TYPE_DOUBLE;

wrong:
	dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, start,
				   "Digits, a point and an exponent make a number; strings are written in quotes.",
				   "a number is not written as one");
	return -1;
}

/*
 * The regular expression between slashes at the cursor.  Its pattern is unchanged, its options are
 * sorted, as drivers do.
 */
static int
parse_regex(DpParser *p)
{
	const char *start = p->cur;
	const char *s = start + 1;
	const char *pattern = s;
	bool brackets = false;
	uint8 *options;
	uint8 *out;

	if (*s == '*')
	{
		fail_expected(p, "a value");
		return -1;
	}
	for (; *s != '/' || brackets; s++)
	{
		if (*s == '[')
			brackets = true;
		else if (*s == ']')
			brackets = false;
		else if (*s == '\\' && s[1] != '\n' && s + 1 < p->end)
			s++;
		else if (*s == '\n' || s >= p->end)
		{
			dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, start, NULL,
						   "a regular expression does not end");
			return -1;
		}
	}
	out = p->b.buf + p->b.len;
	memcpy(out, pattern, s - pattern);
	out += s - pattern;
	*out++ = 0;
	s++;
	for (options = out; dp_is_name(*s); s++)
	{
		uint8 *q = out++;

		if (strchr("ilmsux", *s) == NULL)
		{
			dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, s,
						   "The options are i, l, m, s, u and x.",
						   "a regular expression has an option that does not exist");
			return -1;
		}
		for (; q > options && q[-1] > (uint8) *s; q--)
			*q = q[-1];
		*q = *s;
		if (q > options && q[-1] == *q)
		{
			dp_parser_fail(p, ERRCODE_INVALID_TEXT_REPRESENTATION, s, NULL,
						   "a regular expression has an option twice");
			return -1;
		}
	}
	*out++ = 0;
	p->b.len = out - p->b.buf;
	p->cur = s;
	return DP_TYPE_REGEX;
}
