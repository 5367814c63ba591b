/*
 * regex.h
 *		Regular expressions as MongoDB writes them, run by PostgreSQL's engine.
 *
 * A pattern in the syntax of PCRE is rewritten into PostgreSQL's where the two
 * spell the same thing differently; docs/filter.md lists what cannot be
 * rewritten.  Patterns without special characters, or with only ^ in front of
 * such, are compared without the engine.  Compiled patterns are kept by
 * PostgreSQL itself, a bounded number of them per backend; long searches can be
 * cancelled.
 */
#ifndef DP_MQL_REGEX_H
#define DP_MQL_REGEX_H

#include "bson/reader.h"

typedef struct DpRegex DpRegex;

/*
 * Prepares a pattern, in the current memory context; nothing of the arguments
 * is kept.  Options are letters of "imsxu".  Raises INVALID_REGULAR_EXPRESSION
 * for a bad pattern and INVALID_PARAMETER_VALUE for a bad option.
 */
extern DpRegex *
dp_regex_compile(const char *pattern, uint32 len, const char *options, uint32 optlen);

/* The same for a value of type REGEX. */
extern DpRegex *dp_regex_compile_value(const DpValue *value);

/* The two texts of a value of type REGEX, without their NULs. */
extern void dp_regex_split(const DpValue *value, const char **pattern, uint32 *len,
						   const char **options, uint32 *optlen);

/* Whether the pattern is found anywhere in the string. */
extern bool dp_regex_match(DpRegex *regex, const char *s, uint32 len);

/* A part of the string that was searched; start is -1 if the group took no part. */
typedef struct DpRegexSpan
{
	int32 start; /* in bytes */
	int32 len;
	int32 charstart; /* in characters */
} DpRegexSpan;

/* Number of groups in parentheses. */
extern int dp_regex_groups(DpRegex *regex);

/*
 * The first match in the string that begins at or after from (a number of bytes, at the beginning
 * of a character).  spans[0] is the match, the others, up to nspans, are the groups.  Returns false
 * if there is none.  Look-behind and anchors see the text before from.
 */
extern bool dp_regex_find(DpRegex *regex, const char *s, uint32 len, uint32 from,
						  DpRegexSpan *spans, int nspans);

/*
 * regex_prefix.c: the literal prefix of all strings that the pattern matches; false if there is
 * none.
 */
extern bool dp_regex_literal_prefix(const char *pattern, uint32 len, const char *options,
									uint32 optlen, const char **literal, uint32 *literallen);

#endif /* DP_MQL_REGEX_H */
