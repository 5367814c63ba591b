/*
 * text_out.c
 *		From bytes to text.
 *
 * The relaxed form falls back to the canonical one exactly where it would lose
 * the type or the value.  A document that the parser would take for something
 * else is written as {"$document": {..}}, an array whose names are not its
 * positions as {"$array": {..}}.
 *
 * Everything is written straight into the output's buffer, in which room for
 * the worst case is made before each piece.
 */
#include "postgres.h"

#include <math.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "common/shortest_dec.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "bson/number.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "bson/text_parse.h"

typedef struct Printer
{
	StringInfo out;
	DpTextForm form;
	int indent;         /* blanks in front of the current line, or -1 */
	const uint8 *limit; /* end of the bytes that can be read */
} Printer;

/* A string is written in pieces of so many bytes, for which there is room whatever they hold. */
#define PIECE 4096

static void print_value(Printer *pr, const DpValue *v);
static void print_document(Printer *pr, const uint8 *doc, uint32 size);
static void print_fields(Printer *pr, const uint8 *doc, uint32 size);
static bool print_array(Printer *pr, const uint8 *doc, uint32 size);
static void print_name(Printer *pr, const char *name, uint32 namelen);
static void print_string(Printer *pr, const char *s, Size len);
static void print_number(Printer *pr, const DpValue *v);
static void print_date(Printer *pr, int64 ms);
static void print_decimal(Printer *pr, const uint8 *bytes);
static void print_binary(Printer *pr, const DpValue *v);
static void print_regex(Printer *pr, const DpValue *v);
static void print_code(Printer *pr, const DpValue *v);
static void print_pointer(Printer *pr, const DpValue *v);
static void print_newline(Printer *pr);

/* Room for n more bytes. */
static inline char *
room(Printer *pr, int n)
{
	StringInfo out = pr->out;

	if (unlikely(out->maxlen - out->len <= n))
		enlargeStringInfo(out, n);
	return out->data + out->len;
}

/* Append n bytes. */
static inline void
put(Printer *pr, const char *s, int n)
{
	memcpy(room(pr, n), s, n);
	pr->out->len += n;
}

/* Append a string literal. */
#define put_constant(pr, s) put(pr, s, sizeof(s) - 1)

/* Append one byte. */
static inline void
put_char(Printer *pr, char c)
{
	*room(pr, 1) = c;
	pr->out->len++;
}

/*
 * Append a value in one of the forms.  The text ends with a NUL as in every
 * StringInfo.  Raises DATA_CORRUPTED.
 */
void
dp_value_to_text(StringInfo out, const DpValue *v, DpTextForm form, int indent)
{
	Printer pr;

	pr.out = out;
	pr.form = form;
	pr.indent = indent;
	pr.limit = v->data + v->len;
	print_value(&pr, v);
	*room(&pr, 1) = '\0';
}

char *
dp_value_to_message(const DpValue *v)
{
	StringInfoData buf;
	int len;

	initStringInfo(&buf);
	dp_value_to_text(&buf, v, DP_TEXT_RELAXED, -1);
	len = pg_mbcliplen(buf.data, buf.len, 100);
	if (len < buf.len)
		return psprintf("%.*s...", len, buf.data);
	return buf.data;
}

/*
 * A value of any type.
 */
static void
print_value(Printer *pr, const DpValue *v)
{
	const bool shell = pr->form == DP_TEXT_SHELL;
	char *p;
	uint32 t, i;

	switch (v->type)
	{
		case DP_TYPE_STRING:
			print_string(pr, DP_STRING_DATA(v), DP_STRING_LEN(v));
			break;

		case DP_TYPE_INT32:
			if (pr->form != DP_TEXT_CANONICAL)
			{
				p = room(pr, 12);
				pr->out->len += pg_ltoa(dp_get_int32(v->data), p);
				break;
			}
			/* FALLTHROUGH */
		case DP_TYPE_INT64:
		case DP_TYPE_DOUBLE:
			print_number(pr, v);
			break;

		case DP_TYPE_BOOL:
			if (*v->data)
				put_constant(pr, "true");
			else
				put_constant(pr, "false");
			break;

		case DP_TYPE_NULL:
			put_constant(pr, "null");
			break;

		case DP_TYPE_DOCUMENT:
			print_document(pr, v->data, v->len);
			break;

		case DP_TYPE_ARRAY:
		{
			int len = pr->out->len;
			int indent = pr->indent;

			if (print_array(pr, v->data, v->len))
				break;
			pr->out->len = len;
			pr->indent = indent;
			put_constant(pr, "{\"$array\": ");
			print_fields(pr, v->data, v->len);
			put_char(pr, '}');
		}
		break;

		case DP_TYPE_OBJECTID:
			if (shell)
				put_constant(pr, "ObjectId(\"");
			else
				put_constant(pr, "{\"$oid\": \"");
			p = room(pr, 2 * DP_OBJECTID_SIZE);
			hex_encode((const char *) v->data, DP_OBJECTID_SIZE, p);
			pr->out->len += 2 * DP_OBJECTID_SIZE;
			if (shell)
				put_constant(pr, "\")");
			else
				put_constant(pr, "\"}");
			break;

		case DP_TYPE_DATE:
			print_date(pr, dp_get_int64(v->data));
			break;

		case DP_TYPE_DECIMAL128:
			print_decimal(pr, v->data);
			break;

		case DP_TYPE_BINARY:
			print_binary(pr, v);
			break;

		case DP_TYPE_REGEX:
			print_regex(pr, v);
			break;

		case DP_TYPE_TIMESTAMP:
			i = (uint32) dp_get_int32(v->data);
			t = (uint32) dp_get_int32(v->data + 4);
			if (shell)
				appendStringInfo(pr->out, "Timestamp({t: %u, i: %u})", t, i);
			else
				appendStringInfo(pr->out, "{\"$timestamp\": {\"t\": %u, \"i\": %u}}", t, i);
			break;

		case DP_TYPE_UNDEFINED:
			if (shell)
				put_constant(pr, "undefined");
			else
				put_constant(pr, "{\"$undefined\": true}");
			break;

		case DP_TYPE_MINKEY:
			if (shell)
				put_constant(pr, "MinKey()");
			else
				put_constant(pr, "{\"$minKey\": 1}");
			break;

		case DP_TYPE_MAXKEY:
			if (shell)
				put_constant(pr, "MaxKey()");
			else
				put_constant(pr, "{\"$maxKey\": 1}");
			break;

		case DP_TYPE_SYMBOL:
			if (shell)
				put_constant(pr, "Symbol(");
			else
				put_constant(pr, "{\"$symbol\": ");
			print_string(pr, DP_STRING_DATA(v), DP_STRING_LEN(v));
			put_char(pr, shell ? ')' : '}');
			break;

		case DP_TYPE_CODE:
		case DP_TYPE_CODEWSCOPE:
			print_code(pr, v);
			break;

		case DP_TYPE_DBPOINTER:
			print_pointer(pr, v);
			break;

		default:
			dp_corrupted("a field has a type that does not exist");
	}
}

/*
 * A document, escaped if the parser would take it for something else.
 */
static void
print_document(Printer *pr, const uint8 *doc, uint32 size)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (likely(dp_wrapper_of_document(doc, size) == DP_WRAP_NONE))
	{
		print_fields(pr, doc, size);
		return;
	}
	put_constant(pr, "{\"$document\": ");
	print_fields(pr, doc, size);
	put_char(pr, '}');
}

/*
 * The fields of a document between braces.
 */
static void
print_fields(Printer *pr, const uint8 *doc, uint32 size)
{
	const bool lines = pr->indent >= 0;
	DpIter iter;
	DpElement e;
	bool first = true;

	dp_iter_init(&iter, doc, size);
	put_char(pr, '{');
	if (lines)
		pr->indent += 2;
	while (dp_iter_next(&iter, &e))
	{
		if (!first)
		{
			if (lines)
				put_char(pr, ',');
			else
				put_constant(pr, ", ");
		}
		first = false;
		if (lines)
			print_newline(pr);
		print_name(pr, e.name, e.namelen);
		put_constant(pr, ": ");
		print_value(pr, &e.value);
	}
	if (lines)
	{
		pr->indent -= 2;
		if (!first)
			print_newline(pr);
	}
	put_char(pr, '}');
}

/*
 * The elements of an array between brackets.  Returns false, and may have
 * written anything, if a name is not the position of its element.
 */
static bool
print_array(Printer *pr, const uint8 *doc, uint32 size)
{
	const bool lines = pr->indent >= 0;
	DpIter iter;
	DpElement e;
	bool first = true;
	char name[16] = "0"; /* the position, counted in decimal digits */
	uint32 namelen = 1;

	check_stack_depth();
	dp_iter_init(&iter, doc, size);
	put_char(pr, '[');
	if (lines)
		pr->indent += 2;
	while (dp_iter_next(&iter, &e))
	{
		int digit;

		if (unlikely(e.namelen != namelen || memcmp(e.name, name, namelen) != 0))
			return false;
		for (digit = namelen - 1; digit >= 0 && name[digit] == '9'; digit--)
			name[digit] = '0';
		if (digit >= 0)
			name[digit]++;
		else
		{
			name[0] = '1';
			name[namelen++] = '0';
		}

		if (!first)
		{
			if (lines)
				put_char(pr, ',');
			else
				put_constant(pr, ", ");
		}
		first = false;
		if (lines)
			print_newline(pr);
		print_value(pr, &e.value);
	}
	if (lines)
	{
		pr->indent -= 2;
		if (!first)
			print_newline(pr);
	}
	put_char(pr, ']');
	return true;
}

/* A new line and its blanks. */
static void
print_newline(Printer *pr)
{
	char *p = room(pr, pr->indent + 1);

	*p = '\n';
	memset(p + 1, ' ', pr->indent);
	pr->out->len += pr->indent + 1;
}

/*
 * The name of a field: in quotes, except for the shell where it can do without.
 */
static void
print_name(Printer *pr, const char *name, uint32 namelen)
{
	uint32 i;

	if (pr->form == DP_TEXT_SHELL && namelen > 0 && namelen < 1000 && !dp_is_digit(*name))
	{
		for (i = 0; i < namelen; i++)
			if (!dp_is_name(name[i]) || (uint8) name[i] >= 0x80)
				break;
		if (i == namelen)
		{
			put(pr, name, namelen);
			return;
		}
	}
	print_string(pr, name, namelen);
}

/*
 * Writes the character as an escape and returns what follows it.
 */
static char *
put_escape(char *p, uint8 c)
{
	static const char hex[] = "0123456789abcdef";

	*p++ = '\\';
	switch (c)
	{
		case '"':
		case '\\':
			*p++ = c;
			break;
		case '\b':
			*p++ = 'b';
			break;
		case '\f':
			*p++ = 'f';
			break;
		case '\n':
			*p++ = 'n';
			break;
		case '\r':
			*p++ = 'r';
			break;
		case '\t':
			*p++ = 't';
			break;
		default:
			*p++ = 'u';
			*p++ = '0';
			*p++ = '0';
			*p++ = hex[c >> 4];
			*p++ = hex[c & 15];
	}
	return p;
}

/*
 * A string in double quotes.
 */
static void
print_string(Printer *pr, const char *s, Size len)
{
	const char *end = s + len;
	char *p;

	put_char(pr, '"');
	while (s < end)
	{
		const char *piece = end - s > PIECE ? s + PIECE : end;

		/* sixteen bytes are stored at a time, so some more than needed */
		p = room(pr, (int) (piece - s) * 6 + 16);
		while (s < piece)
		{
#ifdef __SSE2__
			if ((const char *) pr->limit - s >= 16)
			{
				const __m128i chunk = _mm_loadu_si128((const __m128i *) s);
				const __m128i special =
					_mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(chunk, _mm_set1_epi8('"')),
											  _mm_cmpeq_epi8(chunk, _mm_set1_epi8('\\'))),
								 _mm_cmpeq_epi8(_mm_min_epu8(chunk, _mm_set1_epi8(0x1F)), chunk));
				const int mask = _mm_movemask_epi8(special) | 0x10000;
				const int plain = Min(__builtin_ctz(mask), (int) (piece - s));

				_mm_storeu_si128((__m128i *) p, chunk);
				p += plain;
				s += plain;
				if (plain == 16)
					continue;
				if (s < piece)
					p = put_escape(p, (uint8) *s++);
				continue;
			}
#endif
			if (likely((uint8) *s >= 0x20 && *s != '"' && *s != '\\'))
				*p++ = *s++;
			else
				p = put_escape(p, (uint8) *s++);
		}
		pr->out->len = p - pr->out->data;
	}
	put_char(pr, '"');
}

/* Writes 1e+07 as 1E+7; the new length. */
static int
canonical_exponent(char *digits, int len)
{
	char *e = memchr(digits, 'e', len);

	if (e == NULL)
		return len;
	*e = 'E';
	if (e[2] == '0')
	{
		memmove(e + 2, e + 3, digits + len - (e + 3));
		len--;
	}
	return len;
}

/*
 * An int32 in the canonical form, an int64, a double.
 */
static void
print_number(Printer *pr, const DpValue *v)
{
	char digits[64];
	int len;
	const char *before = "";
	const char *after = "";
	double d;
	int64 i;

	if (v->type == DP_TYPE_DOUBLE)
	{
		d = dp_get_double(v->data);
		len = double_to_shortest_decimal_bufn(d, digits);
		if (isfinite(d))
		{
			if (memchr(digits, '.', len) == NULL && memchr(digits, 'e', len) == NULL)
			{
				digits[len++] = '.';
				digits[len++] = '0';
			}
			if (pr->form == DP_TEXT_CANONICAL)
			{
				len = canonical_exponent(digits, len);
				before = "{\"$numberDouble\": \"";
				after = "\"}";
			}
		}
		else
		{
			i = dp_get_int64(v->data);
			/* the canonical form has one NaN */
			if (isnan(d))
				len =
					snprintf(digits, sizeof(digits),
							 i == DP_DOUBLE_NAN || pr->form == DP_TEXT_CANONICAL ? "NaN"
																				 : "NaN(0x%016llx)",
							 (unsigned long long) i);
			if (pr->form != DP_TEXT_SHELL)
			{
				before = "{\"$numberDouble\": \"";
				after = "\"}";
			}
			else if (len > 9)
			{
				before = "NumberDouble(\"";
				after = "\")";
			}
		}
	}
	else
	{
		i = v->type == DP_TYPE_INT32 ? dp_get_int32(v->data) : dp_get_int64(v->data);
		len = pg_lltoa(i, digits);
		if (pr->form == DP_TEXT_SHELL)
		{
			before = "NumberLong(\"";
			after = "\")";
		}
		else if (v->type == DP_TYPE_INT32)
		{
			before = "{\"$numberInt\": \"";
			after = "\"}";
		}
		else if (pr->form == DP_TEXT_CANONICAL || (pr->form == DP_TEXT_RELAXED && i == (int32) i))
		{
			before = "{\"$numberLong\": \"";
			after = "\"}";
		}
	}
	put(pr, before, strlen(before));
	put(pr, digits, len);
	put(pr, after, strlen(after));
}

/* A date; in the relaxed form as ISO 8601 in the range of Extended JSON. */
static void
print_date(Printer *pr, int64 ms)
{
	if (pr->form == DP_TEXT_SHELL)
	{
		put_constant(pr, "ISODate(\"");
		dp_date_to_text(pr->out, ms);
		put_constant(pr, "\")");
	}
	else if (pr->form != DP_TEXT_CANONICAL && ms >= 0 && ms <= INT64CONST(253402300799999))
	{
		put_constant(pr, "{\"$date\": \"");
		dp_date_to_text(pr->out, ms);
		put_constant(pr, "\"}");
	}
	else
		appendStringInfo(pr->out, "{\"$date\": {\"$numberLong\": \"%lld\"}}", (long long) ms);
}

/*
 * A decimal.  If digits cannot represent its encoding, its bytes are written; see
 * dp_text_to_decimal().
 */
static void
print_decimal(Printer *pr, const uint8 *bytes)
{
	char digits[DP_DECIMAL128_TEXT_SIZE];
	uint8 again[DP_DECIMAL128_SIZE];
	int len = dp_decimal128_to_text(bytes, digits);

	if (!dp_text_to_decimal(digits, len, again) || memcmp(bytes, again, DP_DECIMAL128_SIZE) != 0)
		snprintf(digits, sizeof(digits), "0x%016llx%016llx",
				 (unsigned long long) dp_get_int64(bytes + 8),
				 (unsigned long long) dp_get_int64(bytes));
	if (pr->form == DP_TEXT_SHELL)
		appendStringInfo(pr->out, "NumberDecimal(\"%s\")", digits);
	else
		appendStringInfo(pr->out, "{\"$numberDecimal\": \"%s\"}", digits);
}

/*
 * n bytes in base64, with padding.  Raises PROGRAM_LIMIT_EXCEEDED if no text
 * can hold them.
 */
static void
print_base64(Printer *pr, const uint8 *bytes, uint32 n)
{
	char *p;

	if (n > MaxAllocSize / 2)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("binary value too large to be converted to text"),
						errdetail("It has %u bytes; the limit for base64 is %zu bytes.", n,
								  (Size) MaxAllocSize / 2)));
	p = dp_base64_write(room(pr, (int) DP_BASE64_SIZE(n)), bytes, n, false);
	pr->out->len = p - pr->out->data;
}

char *
dp_base64_write(char *p, const uint8 *bytes, uint32 n, bool url)
{
	const char *digits = url ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
							 : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (; n >= 3; n -= 3, bytes += 3)
	{
		uint32 bits = bytes[0] << 16 | bytes[1] << 8 | bytes[2];

		*p++ = digits[bits >> 18];
		*p++ = digits[bits >> 12 & 63];
		*p++ = digits[bits >> 6 & 63];
		*p++ = digits[bits & 63];
	}
	if (n > 0)
	{
		uint32 bits = bytes[0] << 16 | (n == 2 ? bytes[1] << 8 : 0);

		*p++ = digits[bits >> 18];
		*p++ = digits[bits >> 12 & 63];
		if (n == 2)
			*p++ = digits[bits >> 6 & 63];
		for (; !url && n < 3; n++)
			*p++ = '=';
	}
	return p;
}

/*
 * A binary value.  The inner length of an old one is not written, because the
 * parser writes it by itself.
 */
static void
print_binary(Printer *pr, const DpValue *v)
{
	const uint8 *bytes = v->data + 5;
	uint32 n = v->len - 5;
	uint8 subtype = v->data[4];

	if (subtype == DP_BINARY_OLD)
	{
		if (n < 4)
			dp_corrupted("a binary value has a wrong length");
		bytes += 4;
		n -= 4;
	}
	if (pr->form == DP_TEXT_SHELL)
	{
		if (subtype == DP_BINARY_UUID && n == 16)
		{
			char *p;

			put_constant(pr, "UUID(\"");
			p = room(pr, 40);
			for (int i = 0; i < 16; i++)
			{
				if (i == 4 || i == 6 || i == 8 || i == 10)
					*p++ = '-';
				p += hex_encode((const char *) bytes + i, 1, p);
			}
			pr->out->len = p - pr->out->data;
			put_constant(pr, "\")");
			return;
		}
		appendStringInfo(pr->out, "BinData(%d, \"", subtype);
		print_base64(pr, bytes, n);
		put_constant(pr, "\")");
		return;
	}
	put_constant(pr, "{\"$binary\": {\"base64\": \"");
	print_base64(pr, bytes, n);
	appendStringInfo(pr->out, "\", \"subType\": \"%02x\"}}", subtype);
}

/*
 * A regular expression; for the shell between slashes where that is read back
 * as the same.
 */
static void
print_regex(Printer *pr, const DpValue *v)
{
	const char *pattern = (const char *) v->data;
	Size npattern = strlen(pattern);
	const char *options = pattern + npattern + 1;
	Size noptions = strlen(options);

	if (pr->form == DP_TEXT_SHELL && dp_regex_options_sorted(options, noptions))
	{
		bool simple = npattern > 0 && *pattern != '*' && *pattern != '/';

		for (Size i = 0; simple && i < npattern; i++)
		{
			if (pattern[i] == '\\' && pattern[i + 1] > ' ')
				i++;
			else if (strchr("/\\[\n\r", pattern[i]) != NULL)
				simple = false;
		}
		if (simple)
		{
			put_char(pr, '/');
			put(pr, pattern, npattern);
			put_char(pr, '/');
			put(pr, options, noptions);
			return;
		}
		put_constant(pr, "RegExp(");
		print_string(pr, pattern, npattern);
		put_constant(pr, ", ");
		print_string(pr, options, noptions);
		put_char(pr, ')');
		return;
	}
	put_constant(pr, "{\"$regularExpression\": {\"pattern\": ");
	print_string(pr, pattern, npattern);
	put_constant(pr, ", \"options\": ");
	print_string(pr, options, noptions);
	put_constant(pr, "}}");
}

/*
 * Code, with or without scope.
 */
static void
print_code(Printer *pr, const DpValue *v)
{
	const bool shell = pr->form == DP_TEXT_SHELL;
	DpValue code = *v;

	if (v->type == DP_TYPE_CODEWSCOPE)
	{
		code.type = DP_TYPE_CODE;
		code.data = v->data + 4;
		code.len = dp_value_size(DP_TYPE_CODE, code.data, v->data + v->len);
	}
	if (shell)
		put_constant(pr, "Code(");
	else
		put_constant(pr, "{\"$code\": ");
	print_string(pr, DP_STRING_DATA(&code), DP_STRING_LEN(&code));
	if (v->type == DP_TYPE_CODEWSCOPE)
	{
		if (shell)
			put_constant(pr, ", ");
		else
			put_constant(pr, ", \"$scope\": ");
		print_document(pr, code.data + code.len, v->len - 4 - code.len);
	}
	put_char(pr, shell ? ')' : '}');
}

/*
 * A pointer of the old kind.
 */
static void
print_pointer(Printer *pr, const DpValue *v)
{
	const bool shell = pr->form == DP_TEXT_SHELL;
	DpValue id;

	id.type = DP_TYPE_OBJECTID;
	id.len = DP_OBJECTID_SIZE;
	id.data = v->data + v->len - DP_OBJECTID_SIZE;
	if (shell)
		put_constant(pr, "DBPointer(");
	else
		put_constant(pr, "{\"$dbPointer\": {\"$ref\": ");
	print_string(pr, (const char *) v->data + 4, v->len - 5 - DP_OBJECTID_SIZE);
	if (shell)
		put_constant(pr, ", ");
	else
		put_constant(pr, ", \"$id\": ");
	print_value(pr, &id);
	if (shell)
		put_char(pr, ')');
	else
		put_constant(pr, "}}");
}
