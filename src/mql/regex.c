/*
 * regex.c
 *		Regular expressions: options, the ways that need no engine, and the calls of PCRE2.
 *
 * PCRE2 backtracks: some patterns take exponential time.  A pattern is therefore compiled twice.
 * "quick" is machine code that cannot be interrupted.  It searches a slice of the starting points
 * at a time and stops after a number of steps that shrinks with the length of the string.  Where
 * it gives up, "careful" repeats the slice: it is interpreted, calls regex_callout() before each
 * item of the pattern, and is many times slower.
 */
#include "postgres.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/validate.h"
#include "mql/regex.h"

/* The longest pattern, as in MongoDB */
#define REGEX_MAX_PATTERN 16384

/* Machine code is made when so many bytes have been searched: it costs as much as this. */
#define REGEX_QUICK_AFTER 1000

/* Starting points in a slice of a string, and steps of quick code at each of them */
#define REGEX_SLICE(len) Max(256, (len) / 1024)
#define REGEX_QUICK_STEPS(len) Max(64, 500000000 / REGEX_SLICE(len) / ((len) + 1))

/* Limits of careful code: steps at each starting point, as PCRE2 has by default, and kB of memory
 */
#define REGEX_STEPS(len) Max(10000000, 8 * (len))
#define REGEX_MEMORY (64 * 1024)

/* The stack of machine code, in bytes */
#define REGEX_STACK (1024 * 1024)

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
	char *pattern;
	uint32 len;
	uint32 options; /* for PCRE2 */
	MemoryContext context;
	MemoryContextCallback callback; /* frees the machine code */
	pcre2_code *careful;
	pcre2_code *quick; /* NULL if there is no machine code */
	pcre2_match_data *match;
	bool anchored;   /* quick matches only where the search begins */
	uint64 searched; /* bytes, until quick was tried */
};

/* What all searches of the session share */
static pcre2_match_context *matching;

static bool regex_literal(DpRegex *regex, const char *pattern, uint32 len);
static void regex_prepare(DpRegex *regex);
static void regex_make_quick(DpRegex *regex);
static void regex_free_quick(void *regex);
static int regex_compile(DpRegex *regex, uint32 options, pcre2_code **code, PCRE2_SIZE *offset);
static pcre2_general_context *regex_memory(MemoryContext context);
static void *regex_alloc(PCRE2_SIZE size, void *context);
static void regex_free(void *p, void *context);
static int regex_callout(pcre2_callout_block *block, void *data);
static int regex_search(DpRegex *regex, const char *s, uint32 len, uint32 from, uint32 until,
						DpRegexSpan *spans, int nspans);
static int regex_run(pcre2_code *code, pcre2_match_data *data, const char *s, uint32 len,
					 uint32 from, DpRegexSpan *spans, int nspans);
static void regex_out_of_memory(void) pg_attribute_noreturn();

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

	regex->options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT;
	for (uint32 i = 0; i < optlen; i++)
		switch (options[i])
		{
			case 'i':
				regex->options |= PCRE2_CASELESS;
				break;
			case 'm':
				regex->options |= PCRE2_MULTILINE;
				break;
			case 's':
				regex->options |= PCRE2_DOTALL;
				break;
			case 'x':
				regex->options |= PCRE2_EXTENDED;
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
	regex->pattern = pnstrdup(pattern, len);
	regex->len = len;
	/* errors come now, not at the first string */
	if ((regex->options & (PCRE2_CASELESS | PCRE2_MULTILINE | PCRE2_EXTENDED)) != 0 ||
		!regex_literal(regex, pattern, len))
		regex_prepare(regex);
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
 * Compiles the careful code.
 */
static void
regex_prepare(DpRegex *regex)
{
	PCRE2_SIZE offset;
	char message[128];
	int result = regex_compile(regex, PCRE2_AUTO_CALLOUT, &regex->careful, &offset);

	/* callouts make the code several times larger */
	if (result == PCRE2_ERROR_PATTERN_TOO_LARGE)
		result = regex_compile(regex, 0, &regex->careful, &offset);
	if (regex->careful != NULL)
		return;
	if (result == PCRE2_ERROR_HEAP_FAILED)
		regex_out_of_memory();
	pcre2_get_error_message(result, (PCRE2_UCHAR *) message, sizeof(message));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_REGULAR_EXPRESSION),
			 errmsg("invalid regular expression: %s at offset %d", message,
					pg_mbstrlen_with_len(regex->pattern, Min((uint32) offset, regex->len)))));
}

/*
 * Compiles the quick code, unless the pattern or the machine allows none.
 */
static void
regex_make_quick(DpRegex *regex)
{
	PCRE2_SIZE offset;
	uint32 options;

	/* what depends on the place where a search begins allows no slices */
	if (strstr(regex->pattern, "\\G") != NULL || strstr(regex->pattern, "_ATSTART)") != NULL)
		return;
	regex_compile(regex, 0, &regex->quick, &offset);
	if (regex->quick == NULL)
		return;
	regex->callback.func = regex_free_quick;
	regex->callback.arg = regex;
	MemoryContextRegisterResetCallback(regex->context, &regex->callback);
	regex->match = pcre2_match_data_create_from_pattern(regex->quick, NULL);
	if (regex->match == NULL || pcre2_jit_compile(regex->quick, PCRE2_JIT_COMPLETE) != 0)
	{
		regex_free_quick(regex);
		return;
	}
	pcre2_pattern_info(regex->quick, PCRE2_INFO_ALLOPTIONS, &options);
	regex->anchored = (options & PCRE2_ANCHORED) != 0;
}

/* Machine code is in no memory context. */
static void
regex_free_quick(void *arg)
{
	DpRegex *regex = arg;

	pcre2_code_free(regex->quick);
	regex->quick = NULL;
}

/*
 * Compiles the pattern with these options, too, in the memory context of the expression.  Returns
 * PCRE2's error code, and where the error is, if *code is NULL.
 */
static int
regex_compile(DpRegex *regex, uint32 options, pcre2_code **code, PCRE2_SIZE *offset)
{
	pcre2_general_context *memory = regex_memory(regex->context);
	pcre2_compile_context *compiling = pcre2_compile_context_create(memory);
	int result = PCRE2_ERROR_HEAP_FAILED;

	if (compiling != NULL)
	{
		/* not what the library was built with: matches are immutable */
		pcre2_set_newline(compiling, PCRE2_NEWLINE_LF);
		pcre2_set_bsr(compiling, PCRE2_BSR_UNICODE);
		*code = pcre2_compile((PCRE2_SPTR) regex->pattern, regex->len, regex->options | options,
							  &result, offset, compiling);
		pcre2_compile_context_free(compiling);
	}
	pcre2_general_context_free(memory);
	return result;
}

/*
 * Makes PCRE2 allocate in a memory context.
 */
static pcre2_general_context *
regex_memory(MemoryContext context)
{
	pcre2_general_context *memory = pcre2_general_context_create(regex_alloc, regex_free, context);

	if (memory == NULL)
		regex_out_of_memory();
	return memory;
}

static void *
regex_alloc(PCRE2_SIZE size, void *context)
{
	return MemoryContextAllocExtended(context, size, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
}

static void
regex_free(void *p, void *context)
{
	if (p != NULL)
		pfree(p);
}

/*
 * An error may leave PCRE2 from here: all that it holds is in memory contexts.
 */
static int
regex_callout(pcre2_callout_block *block, void *data)
{
	CHECK_FOR_INTERRUPTS();
	return 0;
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
	return dp_regex_find(regex, s, len, 0, NULL, 0);
}

int
dp_regex_groups(DpRegex *regex)
{
	uint32 n;

	if (regex->careful == NULL)
		regex_prepare(regex);
	pcre2_pattern_info(regex->careful, PCRE2_INFO_CAPTURECOUNT, &n);
	return n;
}

uint32
dp_regex_next(const char *s, uint32 len, uint32 from, const DpRegexSpan *match)
{
	uint32 next = match->start + match->len;

	if (match->len > 0 && next > from)
		return next;
	next = Max(next, from);
	return next + (next < len ? pg_utf_mblen((const unsigned char *) s + next) : 1);
}

bool
dp_regex_find(DpRegex *regex, const char *s, uint32 len, uint32 from, DpRegexSpan *spans,
			  int nspans)
{
	uint32 slice = REGEX_SLICE(len);
	uint32 until;
	int result;

	if (regex->careful == NULL)
		regex_prepare(regex);
	if (from == 0 && dp_utf8_valid((const uint8 *) s, len) < len)
		dp_corrupted("a string is not valid UTF-8");
	if (matching == NULL)
	{
		pcre2_general_context *memory = regex_memory(TopMemoryContext);
		pcre2_match_context *made = pcre2_match_context_create(memory);

		if (made == NULL)
			regex_out_of_memory();
		pcre2_set_callout(made, regex_callout, NULL);
		pcre2_set_heap_limit(made, REGEX_MEMORY);
		pcre2_jit_stack_assign(made, NULL, pcre2_jit_stack_create(32 * 1024, REGEX_STACK, memory));
		pcre2_general_context_free(memory);
		matching = made;
	}
	if (regex->searched <= REGEX_QUICK_AFTER)
	{
		regex->searched += len + 1;
		if (regex->searched > REGEX_QUICK_AFTER)
			regex_make_quick(regex);
	}
	if (regex->quick == NULL)
		return regex_search(regex, s, len, from, len, spans, nspans) > 0;

	for (;; from = until)
	{
		CHECK_FOR_INTERRUPTS();
		until = regex->anchored || len - from <= slice ? len : from + slice;
		while (until < len && ((uint8) s[until] & 0xC0) == 0x80)
			until++;
		result = regex_search(regex, s, len, from, until, spans, nspans);
		if (result > 0 || until == len)
			return result > 0;
	}
}

/*
 * Searches for a match that begins at least at from and at most at until.  Returns PCRE2's result,
 * which is positive if there is one.
 */
static int
regex_search(DpRegex *regex, const char *s, uint32 len, uint32 from, uint32 until,
			 DpRegexSpan *spans, int nspans)
{
	pcre2_general_context *memory;
	pcre2_match_data *match;
	char message[128];
	int result;

	pcre2_set_offset_limit(matching, until);
	if (regex->quick != NULL)
	{
		pcre2_set_match_limit(matching, REGEX_QUICK_STEPS(len));
		result = regex_run(regex->quick, regex->match, s, len, from, spans, nspans);
		if (result >= PCRE2_ERROR_NOMATCH)
			return result;
	}

	/* this may need much memory, which an error leaves to the context of the caller */
	memory = regex_memory(CurrentMemoryContext);
	match = pcre2_match_data_create_from_pattern(regex->careful, memory);
	pcre2_general_context_free(memory);
	if (match == NULL)
		regex_out_of_memory();
	pcre2_set_match_limit(matching, REGEX_STEPS(len));
	result = regex_run(regex->careful, match, s, len, from, spans, nspans);
	pcre2_match_data_free(match);
	if (result >= PCRE2_ERROR_NOMATCH)
		return result;
	if (result == PCRE2_ERROR_NOMEMORY)
		regex_out_of_memory();
	pcre2_get_error_message(result, (PCRE2_UCHAR *) message, sizeof(message));
	ereport(ERROR, (errcode(result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_DEPTHLIMIT ||
									result == PCRE2_ERROR_HEAPLIMIT
								? ERRCODE_PROGRAM_LIMIT_EXCEEDED
								: ERRCODE_INVALID_REGULAR_EXPRESSION),
					errmsg("regular expression failed: %s", message)));
}

/*
 * Runs code and takes the spans of its match.
 */
static int
regex_run(pcre2_code *code, pcre2_match_data *data, const char *s, uint32 len, uint32 from,
		  DpRegexSpan *spans, int nspans)
{
	const PCRE2_SIZE *found = pcre2_get_ovector_pointer(data);
	int result = pcre2_match(code, (PCRE2_SPTR) s, len, from, PCRE2_NO_UTF_CHECK, data, matching);

	for (int i = 0; result > 0 && i < nspans; i++, found += 2)
	{
		spans[i].start = found[0] == PCRE2_UNSET ? -1 : (int32) found[0];
		/* \K can set the start behind the end */
		spans[i].len = found[1] > found[0] ? found[1] - found[0] : 0;
	}
	return result;
}

static void
regex_out_of_memory(void)
{
	ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"),
					errdetail("Failed while processing a regular expression.")));
}
