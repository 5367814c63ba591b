/*
 * regex.h
 *		Regular expressions by PCRE2, with the meaning that they have in MongoDB.
 *
 * Patterns without special characters, or with only ^ in front of such, are compared without
 * PCRE2.  Long searches can be cancelled.  Strings that are not valid UTF-8 raise DATA_CORRUPTED.
 */
#ifndef DP_MQL_REGEX_H
#define DP_MQL_REGEX_H

#include "bson/reader.h"

typedef struct DpRegex DpRegex;

/*
 * Prepares a pattern, in the current memory context; nothing of the arguments
 * is kept.  Options are letters of "imsxu".  Raises INVALID_REGULAR_EXPRESSION
 * for a bad pattern and INVALID_PARAMETER_VALUE for a bad option.  Searches raise
 * PROGRAM_LIMIT_EXCEEDED if they take too many steps or too much memory.
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

/* A part of the string that was searched, in bytes; start is -1 if the group took no part. */
typedef struct DpRegexSpan
{
	int32 start;
	int32 len;
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
 * Where to search for the match after one that was searched for at or after from: behind it, and
 * one character further after an empty match.  May be len + 1.
 */
extern uint32 dp_regex_next(const char *s, uint32 len, uint32 from, const DpRegexSpan *match);

/*
 * regex_prefix.c: the literal prefix of all strings that the pattern matches; false if there is
 * none.
 */
extern bool dp_regex_literal_prefix(const char *pattern, uint32 len, const char *options,
									uint32 optlen, const char **literal, uint32 *literallen);

#endif /* DP_MQL_REGEX_H */
