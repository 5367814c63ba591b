/*
 * regex_syntax.c
 *		Rewrites PCRE patterns for PostgreSQL's engine.
 *
 * Most syntax is the same and copied.  The differences:
 *
 *		.				a newline does not match it unless dot-all is on; the
 *						engine's own switch for that changes [^a] too
 *		\b \B			boundaries of words: \y \Y
 *		\z \Z and $		ends: \Z; two of them also match before a final newline
 *		\w \d \s		ASCII, as in PCRE
 *		\h \v \R \N		classes that the engine does not have
 *		\xHH \x{..}		the engine takes all following digits
 *		\Q..\E			each character by itself
 *		(?<name>..)		a group without its name
 *		(?i) in front	a flag; the engine has other letters
 *		{				a brace that begins no bound is itself
 *		blanks, #..		removed if the pattern is extended
 *
 * Features that the engine lacks (possessive and atomic groups, recursion, Unicode properties,
 * flags for a part of the pattern) are errors.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "mql/regex_syntax.h"

typedef struct Rewriter
{
	const char *start;
	const char *p;
	const char *end;
	int flags;
	bool newline;
	StringInfoData out;
} Rewriter;

static void rewrite_front(Rewriter *r);
static bool rewrite_flags(Rewriter *r, const char *p, const char **after);
static void rewrite_group(Rewriter *r);
static void rewrite_escape(Rewriter *r);
static void rewrite_class(Rewriter *r);
static bool rewrite_class_escape(Rewriter *r);
static void rewrite_hex(Rewriter *r);
static void rewrite_quoted(Rewriter *r);
static void rewrite_end(Rewriter *r);
static bool is_bound(const char *p, const char *end);
static void put_literal(StringInfo out, const char *p, int len);
static void unsupported(Rewriter *r, const char *p, int len) pg_attribute_noreturn();

#define VERTICAL "\\n\\v\\f\\r\\u0085\\u2028\\u2029"
#define HORIZONTAL " \\t\\u00a0"
#define SPACES " \\t\\n\\v\\f\\r"

text *
dp_regex_rewrite(const char *pattern, uint32 len, int *flags, bool newline)
{
	Rewriter r;

	r.start = r.p = pattern;
	r.end = pattern + len;
	r.flags = *flags;
	r.newline = newline;
	initStringInfo(&r.out);
	rewrite_front(&r);

	/* three stars in front are a switch of the engine's */
	if (r.p < r.end && strchr("*+?", *r.p) != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_REGULAR_EXPRESSION),
						errmsg("invalid regular expression: quantifier operand invalid")));

	while (r.p < r.end)
	{
		char c = *r.p;

		switch (c)
		{
			case '\\':
				rewrite_escape(&r);
				break;
			case '[':
				rewrite_class(&r);
				break;
			case '(':
				rewrite_group(&r);
				break;
			case '.':
				appendStringInfoString(&r.out, (r.flags & DP_REGEX_DOT_ALL) ? "." : "[^\\n]");
				r.p++;
				break;
			case '$':
				r.p++;
				if (r.flags & DP_REGEX_MULTILINE)
					appendStringInfoChar(&r.out, '$');
				else
					rewrite_end(&r);
				break;
			case '{':
				if (!is_bound(r.p, r.end))
					appendStringInfoChar(&r.out, '\\');
				appendStringInfoChar(&r.out, c);
				r.p++;
				break;
			case '#':
			case ' ':
			case '\t':
			case '\n':
			case '\v':
			case '\f':
			case '\r':
				if (r.flags & DP_REGEX_EXTENDED)
				{
					if (c == '#')
						while (r.p < r.end && *r.p != '\n')
							r.p++;
					if (r.p < r.end)
						r.p++;
					break;
				}
				/* FALLTHROUGH */
			default:
				appendStringInfoChar(&r.out, c);
				r.p++;
				break;
		}
	}
	*flags = r.flags;
	return cstring_to_text_with_len(r.out.data, r.out.len);
}

/*
 * The switches in front of the pattern: (*UTF) and (*UCP), then (?imsx-imsx).
 */
static void
rewrite_front(Rewriter *r)
{
	static const struct
	{
		const char *text;
		int flag;
	} verbs[] = { { "(*UTF8)", 0 }, { "(*UTF)", 0 }, { "(*UCP)", DP_REGEX_UCP } };
	bool more = true;

	while (more)
	{
		more = false;
		for (int i = 0; i < lengthof(verbs); i++)
		{
			Size len = strlen(verbs[i].text);

			if (r->end - r->p >= len && memcmp(r->p, verbs[i].text, len) == 0)
			{
				r->flags |= verbs[i].flag;
				r->p += len;
				more = true;
			}
		}
	}
	while (rewrite_flags(r, r->p, &r->p))
		;
}

/*
 * Flags in parentheses, such as (?i-s): taken, and *after is behind them.
 * Returns false if p is at something else.
 */
static bool
rewrite_flags(Rewriter *r, const char *p, const char **after)
{
	bool on = true;
	int flags = r->flags;

	if (r->end - p < 4 || p[0] != '(' || p[1] != '?')
		return false;
	for (p += 2; p < r->end && *p != ')'; p++)
	{
		int flag;

		switch (*p)
		{
			case '-':
				on = false;
				continue;
			case 'i':
				flag = DP_REGEX_IGNORE_CASE;
				break;
			case 'm':
				flag = DP_REGEX_MULTILINE;
				break;
			case 's':
				flag = DP_REGEX_DOT_ALL;
				break;
			case 'x':
				flag = DP_REGEX_EXTENDED;
				break;
			default:
				return false;
		}
		flags = on ? flags | flag : flags & ~flag;
	}
	if (p == r->end)
		return false;
	r->flags = flags;
	*after = p + 1;
	return true;
}

/* An opening parenthesis and its kind. */
static void
rewrite_group(Rewriter *r)
{
	const char *p = r->p;
	Size left = r->end - p;
	char kind;
	char close;

	if (left >= 2 && p[1] == '*')
		unsupported(r, p, 2);
	if (left < 3 || p[1] != '?')
	{
		appendStringInfoChar(&r->out, '(');
		r->p++;
		return;
	}
	kind = p[2];
	if (kind == '#')
	{
		const char *end = memchr(p, ')', left);

		if (end == NULL)
			unsupported(r, p, 3);
		r->p = end + 1;
		return;
	}
	if (kind == ':' || kind == '=' || kind == '!')
	{
		appendBinaryStringInfo(&r->out, p, 3);
		r->p += 3;
		return;
	}
	if (kind == '<' && left >= 4 && (p[3] == '=' || p[3] == '!'))
	{
		appendBinaryStringInfo(&r->out, p, 4);
		r->p += 4;
		return;
	}

	/* (?<name>..), (?P<name>..), (?'name'..) */
	p += 2;
	if (*p == 'P')
		p++;
	if (p < r->end && (*p == '<' || *p == '\''))
	{
		close = *p == '<' ? '>' : '\'';
		for (p++; p < r->end && (isalnum((unsigned char) *p) || *p == '_'); p++)
			;
		if (p < r->end && *p == close)
		{
			appendStringInfoChar(&r->out, '(');
			r->p = p + 1;
			return;
		}
	}
	unsupported(r, r->p, 3);
}

/*
 * A backslash outside a class.
 */
static void
rewrite_escape(Rewriter *r)
{
	StringInfo out = &r->out;
	bool ucp = (r->flags & DP_REGEX_UCP) != 0;
	char c;

	if (r->end - r->p < 2)
		ereport(ERROR, (errcode(ERRCODE_INVALID_REGULAR_EXPRESSION),
						errmsg("invalid regular expression: ends with a backslash")));
	c = r->p[1];
	if (!isalnum((unsigned char) c))
	{
		/* a byte of a character beyond ASCII needs no backslash */
		if (!IS_HIGHBIT_SET(c))
			appendStringInfoChar(out, '\\');
		appendStringInfoChar(out, c);
		r->p += 2;
		return;
	}
	switch (c)
	{
		case 'b':
			appendStringInfoString(out, "\\y");
			break;
		case 'B':
			appendStringInfoString(out, "\\Y");
			break;
		case 'z':
			appendStringInfoString(out, "\\Z");
			break;
		case 'Z':
			rewrite_end(r);
			break;
		case 'w':
			appendStringInfoString(out, ucp ? "\\w" : "[A-Za-z0-9_]");
			break;
		case 'W':
			appendStringInfoString(out, ucp ? "\\W" : "[^A-Za-z0-9_]");
			break;
		case 'd':
			appendStringInfoString(out, ucp ? "\\d" : "[0-9]");
			break;
		case 'D':
			appendStringInfoString(out, ucp ? "\\D" : "[^0-9]");
			break;
		case 's':
			appendStringInfoString(out, ucp ? "\\s" : "[" SPACES "]");
			break;
		case 'S':
			appendStringInfoString(out, ucp ? "\\S" : "[^" SPACES "]");
			break;
		case 'h':
			appendStringInfoString(out, "[" HORIZONTAL "]");
			break;
		case 'H':
			appendStringInfoString(out, "[^" HORIZONTAL "]");
			break;
		case 'v':
			appendStringInfoString(out, "[" VERTICAL "]");
			break;
		case 'V':
			appendStringInfoString(out, "[^" VERTICAL "]");
			break;
		case 'R':
			appendStringInfoString(out, "(?:\\r\\n|[" VERTICAL "])");
			break;
		case 'N':
			appendStringInfoString(out, "[^\\n]");
			break;
		case 'x':
			rewrite_hex(r);
			return;
		case 'Q':
			rewrite_quoted(r);
			return;
		case 'E':
			break;
		case 'A':
		case 'n':
		case 'r':
		case 't':
		case 'f':
		case 'e':
		case 'a':
		case 'c':
			appendStringInfoChar(out, '\\');
			appendStringInfoChar(out, c);
			break;
		default:
			if (!isdigit((unsigned char) c))
				unsupported(r, r->p, 2);
			appendStringInfoChar(out, '\\');
			appendStringInfoChar(out, c);
			break;
	}
	r->p += 2;
}

/*
 * The end of the string, or the place before the newline that ends it.
 */
static void
rewrite_end(Rewriter *r)
{
	r->flags |= DP_REGEX_HAS_END;
	appendStringInfoString(&r->out, r->newline ? "(?=\\n?\\Z)" : "\\Z");
}

/*
 * \xHH with up to two digits, or \x{H..}.
 */
static void
rewrite_hex(Rewriter *r)
{
	const char *p = r->p + 2;
	bool braces = p < r->end && *p == '{';
	uint32 code = 0;
	int digits = 0;

	if (braces)
		p++;
	while (p < r->end && isxdigit((unsigned char) *p) && digits < (braces ? 8 : 2))
	{
		code = code << 4 | (*p <= '9' ? *p - '0' : (*p | 0x20) - 'a' + 10);
		digits++;
		p++;
	}
	if (braces)
	{
		if (p == r->end || *p != '}' || digits == 0)
			unsupported(r, r->p, 3);
		p++;
	}
	if (code > 0x10FFFF)
		unsupported(r, r->p, p - r->p);
	appendStringInfo(&r->out, "\\U%08x", code);
	r->p = p;
}

/*
 * \Q up to \E, or to the end.
 */
static void
rewrite_quoted(Rewriter *r)
{
	const char *p = r->p + 2;

	while (p < r->end)
	{
		if (r->end - p >= 2 && p[0] == '\\' && p[1] == 'E')
		{
			p += 2;
			break;
		}
		put_literal(&r->out, p, 1);
		p++;
	}
	r->p = p;
}

/*
 * A class in brackets.
 */
static void
rewrite_class(Rewriter *r)
{
	StringInfo out = &r->out;
	const char *p = r->p;
	bool first = true;

	appendStringInfoChar(out, *p++);
	if (p < r->end && *p == '^')
		appendStringInfoChar(out, *p++);
	for (;; first = false)
	{
		if (p >= r->end)
			ereport(ERROR, (errcode(ERRCODE_INVALID_REGULAR_EXPRESSION),
							errmsg("invalid regular expression: brackets [] not balanced")));
		if (*p == ']' && !first)
			break;
		if (*p == '\\')
		{
			r->p = p;
			if (rewrite_class_escape(r) && r->end - r->p >= 2 && r->p[0] == '-' && r->p[1] != ']')
			{
				/* behind a class it is itself, in the engine it would begin a range */
				appendStringInfoString(out, "\\-");
				r->p++;
			}
			p = r->p;
			continue;
		}
		if (*p == '[' && r->end - p >= 2 && strchr(".=:", p[1]) != NULL)
		{
			const char *close = p + 2;

			while (close < r->end && isalpha((unsigned char) *close))
				close++;
			if (p[1] == ':' && r->end - close >= 2 && close[0] == ':' && close[1] == ']')
			{
				appendBinaryStringInfo(out, p, close + 2 - p);
				p = close + 2;
				continue;
			}
			appendStringInfoString(out, "\\[");
			p++;
			continue;
		}
		if (*p == '-' && r->end - p >= 3 && p[1] == '\\' && strchr("wdshv", p[2]) != NULL)
		{
			appendStringInfoString(out, "\\-");
			p++;
			continue;
		}
		appendStringInfoChar(out, *p++);
	}
	appendStringInfoChar(out, ']');
	r->p = p + 1;
}

/* A backslash inside a class.  Returns true if it represents several characters. */
static bool
rewrite_class_escape(Rewriter *r)
{
	StringInfo out = &r->out;
	bool ucp = (r->flags & DP_REGEX_UCP) != 0;
	char c;

	if (r->end - r->p < 2)
	{
		r->p++;
		return false; /* the class does not end: the caller complains */
	}
	c = r->p[1];
	if (c == 'x')
	{
		rewrite_hex(r);
		return false;
	}
	r->p += 2;
	if (!isalnum((unsigned char) c))
	{
		if (!IS_HIGHBIT_SET(c))
			appendStringInfoChar(out, '\\');
		appendStringInfoChar(out, c);
		return false;
	}
	switch (c)
	{
		case 'w':
			appendStringInfoString(out, ucp ? "\\w" : "A-Za-z0-9_");
			return true;
		case 'd':
			appendStringInfoString(out, ucp ? "\\d" : "0-9");
			return true;
		case 's':
			appendStringInfoString(out, ucp ? "\\s" : SPACES);
			return true;
		case 'h':
			appendStringInfoString(out, HORIZONTAL);
			return true;
		case 'v':
			appendStringInfoString(out, VERTICAL);
			return true;
		case 'W':
		case 'D':
		case 'S':
			appendStringInfo(out, "\\%c", c);
			return true;
		case 'b':
		case 'n':
		case 'r':
		case 't':
		case 'f':
		case 'e':
		case 'a':
		case 'c':
			appendStringInfo(out, "\\%c", c);
			return false;
		default:
			if (!isdigit((unsigned char) c))
				unsupported(r, r->p - 2, 2);
			appendStringInfo(out, "\\%c", c);
			return false;
	}
}

/* Whether the brace at p begins {n}, {n,} or {n,m}. */
static bool
is_bound(const char *p, const char *end)
{
	const char *digits = ++p;

	while (p < end && isdigit((unsigned char) *p))
		p++;
	if (p == digits)
		return false;
	if (p < end && *p == ',')
		for (p++; p < end && isdigit((unsigned char) *p); p++)
			;
	return p < end && *p == '}';
}

/* Characters that mean themselves. */
static void
put_literal(StringInfo out, const char *p, int len)
{
	for (int i = 0; i < len; i++)
	{
		if (ispunct((unsigned char) p[i]) && !IS_HIGHBIT_SET(p[i]) && p[i] != '_')
			appendStringInfoChar(out, '\\');
		appendStringInfoChar(out, p[i]);
	}
}

static void
unsupported(Rewriter *r, const char *p, int len)
{
	len = Min(len, r->end - p);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_REGULAR_EXPRESSION),
			 errmsg("regular expression has \"%.*s\" at character %d, which is not supported",
					pg_mbcliplen(p, r->end - p, len), p,
					pg_mbstrlen_with_len(r->start, p - r->start) + 1)));
}
