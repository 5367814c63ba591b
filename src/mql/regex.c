/*
 * regex.c
 *		Regular expressions: options, the ways that need no engine, and the
 *		calls of PostgreSQL's engine.  regex_syntax.c rewrites the patterns.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "regex/regex.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "mql/regex.h"
#include "mql/regex_syntax.h"

/* The longest pattern, as in MongoDB */
#define REGEX_MAX_PATTERN 32764

/* Room for the string being searched that is kept between searches, in characters */
#define REGEX_KEPT_ROOM (16 * 1024)

typedef enum RegexKind
{
	REGEX_ENGINE,
	REGEX_CONTAINS, /* the literal anywhere */
	REGEX_PREFIX    /* the literal in front */
} RegexKind;

struct DpRegex
{
	RegexKind kind;
	char *literal;
	uint32 literallen;
	int cflags;
	text *pattern;         /* in the engine's syntax */
	text *pattern_newline; /* for strings that end in a newline */
	MemoryContext context;
	pg_wchar *wide; /* the string being searched, a character each */
	uint32 room;
};

static bool regex_literal(DpRegex *regex, const char *pattern, uint32 len);
static regex_t *regex_compiled(DpRegex *regex, const char *s, uint32 len, int nspans);
static uint32 regex_widen(DpRegex *regex, const char *s, uint32 len);
static bool
regex_execute(DpRegex *regex, const char *s, uint32 len, uint32 from, regmatch_t *matches, int n);

void
dp_regex_split(const DpValue *value, const char **pattern, uint32 *len, const char **options,
			   uint32 *optlen)
{
	const uint8 *nul = memchr(value->data, 0, value->len);

	if (nul == NULL || nul + 1 >= value->data + value->len)
		dp_corrupted("a regular expression does not end");
	*pattern = (const char *) value->data;
	*len = nul - value->data;
	*options = (const char *) nul + 1;
	*optlen = value->len - *len - 2;
}

DpRegex *
dp_regex_compile_value(const DpValue *value)
{
	const char *pattern;
	const char *options;
	uint32 len;
	uint32 optlen;

	dp_regex_split(value, &pattern, &len, &options, &optlen);
	return dp_regex_compile(pattern, len, options, optlen);
}

DpRegex *
dp_regex_compile(const char *pattern, uint32 len, const char *options, uint32 optlen)
{
	DpRegex *regex = palloc0(sizeof(DpRegex));
	int flags = 0;

	for (uint32 i = 0; i < optlen; i++)
		switch (options[i])
		{
			case 'i':
				flags |= DP_REGEX_IGNORE_CASE;
				break;
			case 'm':
				flags |= DP_REGEX_MULTILINE;
				break;
			case 's':
				flags |= DP_REGEX_DOT_ALL;
				break;
			case 'x':
				flags |= DP_REGEX_EXTENDED;
				break;
			case 'u':
				break; /* UTF-8 it always is */
			default:
				ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
								errmsg("unknown option \"%.*s\" of a regular expression",
									   pg_mblen(options + i), options + i),
								errhint("The options are i, m, s, x and u.")));
		}
	if (len > REGEX_MAX_PATTERN)
		ereport(ERROR, (errcode(ERRCODE_INVALID_REGULAR_EXPRESSION),
						errmsg("regular expression of %u bytes is longer than %d bytes", len,
							   REGEX_MAX_PATTERN)));
	if (memchr(pattern, 0, len) != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_REGULAR_EXPRESSION),
						errmsg("regular expression contains a null character")));

	regex->context = CurrentMemoryContext;
	regex->pattern = dp_regex_rewrite(pattern, len, &flags, false);
	if (flags & DP_REGEX_HAS_END)
		regex->pattern_newline = dp_regex_rewrite(pattern, len, &flags, true);
	regex->cflags = REG_ADVANCED;
	if (flags & DP_REGEX_IGNORE_CASE)
		regex->cflags |= REG_ICASE;
	if (flags & DP_REGEX_MULTILINE)
		regex->cflags |= REG_NLANCH;
	if (flags == 0 || flags == DP_REGEX_DOT_ALL)
		regex_literal(regex, pattern, len);

	/* errors come now, not at the first string */
	if (regex->kind == REGEX_ENGINE)
		(void) RE_compile_and_cache(regex->pattern, regex->cflags | REG_NOSUB,
									DEFAULT_COLLATION_OID);
	return regex;
}

/*
 * Whether the pattern is a literal, perhaps with ^ in front: notes it if so.
 */
static bool
regex_literal(DpRegex *regex, const char *pattern, uint32 len)
{
	uint32 i = 0;
	uint32 n = 0;
	RegexKind kind = REGEX_CONTAINS;
	char *literal;

	if (i < len && pattern[i] == '^')
	{
		kind = REGEX_PREFIX;
		i++;
	}
	literal = palloc(len + 1);
	for (; i < len; i++)
	{
		char c = pattern[i];

		if (c == '\\' && i + 1 < len && ispunct((unsigned char) pattern[i + 1]))
			c = pattern[++i];
		else if (strchr("\\^$.[]|()?*+{}", c) != NULL)
		{
			pfree(literal);
			return false;
		}
		literal[n++] = c;
	}
	regex->literal = literal;
	regex->literallen = n;
	regex->kind = kind;
	return true;
}

/*
 * The pattern, compiled, for this string: from PostgreSQL's cache most times.
 */
static regex_t *
regex_compiled(DpRegex *regex, const char *s, uint32 len, int nspans)
{
	text *pattern = regex->pattern;

	if (regex->pattern_newline != NULL && len > 0 && s[len - 1] == '\n')
		pattern = regex->pattern_newline;
	return RE_compile_and_cache(pattern, regex->cflags | (nspans < 2 ? REG_NOSUB : 0),
								DEFAULT_COLLATION_OID);
}

/*
 * The characters of a string in regex->wide; returns their number.  The string may contain NULs.
 * Invalid UTF-8 bytes become separate characters.
 */
static uint32
regex_widen(DpRegex *regex, const char *s, uint32 len)
{
	const unsigned char *p = (const unsigned char *) s;
	const unsigned char *end = p + len;
	pg_wchar *out;

	if (regex->wide == NULL || regex->room < len)
	{
		uint32 room = Max(len, 256);

		if (regex->wide != NULL)
			pfree(regex->wide);
		regex->wide = NULL;
		regex->room = 0;
		regex->wide = MemoryContextAllocHuge(regex->context, (Size) room * sizeof(pg_wchar));
		regex->room = room;
	}
	out = regex->wide;
	while (p < end)
	{
		if (likely(*p < 0x80))
			*out++ = *p++;
		else if ((*p & 0xE0) == 0xC0 && end - p >= 2)
		{
			*out++ = (p[0] & 0x1F) << 6 | (p[1] & 0x3F);
			p += 2;
		}
		else if ((*p & 0xF0) == 0xE0 && end - p >= 3)
		{
			*out++ = (p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F);
			p += 3;
		}
		else if ((*p & 0xF8) == 0xF0 && end - p >= 4)
		{
			*out++ = (p[0] & 0x07) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 | (p[3] & 0x3F);
			p += 4;
		}
		else
			*out++ = *p++;
	}
	return out - regex->wide;
}

/*
 * Runs the engine from a character on.  Returns whether there is a match.
 */
static bool
regex_execute(DpRegex *regex, const char *s, uint32 len, uint32 from, regmatch_t *matches, int n)
{
	uint32 chars = regex_widen(regex, s, len);
	regex_t *compiled = regex_compiled(regex, s, len, n);
	int result;

	result = pg_regexec(compiled, regex->wide, chars, from, NULL, n, matches, 0);
	if (regex->room > REGEX_KEPT_ROOM)
	{
		pfree(regex->wide);
		regex->wide = NULL;
		regex->room = 0;
	}
	if (result != REG_OKAY && result != REG_NOMATCH)
	{
		char message[100];

		/* before PostgreSQL 16 the engine returns when it is cancelled */
		CHECK_FOR_INTERRUPTS();
		pg_regerror(result, compiled, message, sizeof(message));
		ereport(ERROR, (errcode(ERRCODE_INVALID_REGULAR_EXPRESSION),
						errmsg("regular expression failed: %s", message)));
	}
	return result == REG_OKAY;
}

bool
dp_regex_match(DpRegex *regex, const char *s, uint32 len)
{
	const char *end;

	switch (regex->kind)
	{
		case REGEX_PREFIX:
			return len >= regex->literallen && memcmp(s, regex->literal, regex->literallen) == 0;
		case REGEX_CONTAINS:
			if (regex->literallen == 0)
				return true;
			if (regex->literallen > len)
				return false;
			end = s + (len - regex->literallen) + 1;
			while ((s = memchr(s, regex->literal[0], end - s)) != NULL)
			{
				if (memcmp(s, regex->literal, regex->literallen) == 0)
					return true;
				if (++s == end)
					break;
			}
			return false;
		case REGEX_ENGINE:
			break;
	}
	return regex_execute(regex, s, len, 0, NULL, 0);
}

int
dp_regex_groups(DpRegex *regex)
{
	return (int) RE_compile_and_cache(regex->pattern, regex->cflags, DEFAULT_COLLATION_OID)
		->re_nsub;
}

bool
dp_regex_find(DpRegex *regex, const char *s, uint32 len, uint32 from, DpRegexSpan *spans,
			  int nspans)
{
	regmatch_t fixed[10];
	regmatch_t *matches = nspans <= lengthof(fixed) ? fixed : palloc(nspans * sizeof(regmatch_t));
	uint32 start = 0;
	bool found;

	for (uint32 i = 0; i < from; i++)
		start += !IS_HIGHBIT_SET(s[i]) || ((unsigned char) s[i] & 0xC0) == 0xC0;
	found = regex_execute(regex, s, len, start, matches, nspans);
	for (int i = 0; found && i < nspans; i++)
	{
		uint32 byte = 0;
		int32 chars = matches[i].rm_eo - matches[i].rm_so;

		spans[i].start = -1;
		spans[i].len = 0;
		spans[i].charstart = -1;
		if (matches[i].rm_so < 0)
			continue;
		for (int32 skip = matches[i].rm_so; skip > 0 && byte < len; skip--)
			byte += pg_utf_mblen((const unsigned char *) s + byte);
		spans[i].charstart = matches[i].rm_so;
		spans[i].start = Min(byte, len);
		for (; chars > 0 && byte < len; chars--)
			byte += pg_utf_mblen((const unsigned char *) s + byte);
		spans[i].len = Min(byte, len) - spans[i].start;
	}
	if (matches != fixed)
		pfree(matches);
	return found;
}
