/*
 * regex_syntax.h
 *		Patterns of PCRE in the spelling of PostgreSQL's engine.
 */
#ifndef DP_MQL_REGEX_SYNTAX_H
#define DP_MQL_REGEX_SYNTAX_H

#include "dp.h"

#define DP_REGEX_IGNORE_CASE 1
#define DP_REGEX_MULTILINE 2
#define DP_REGEX_DOT_ALL 4
#define DP_REGEX_EXTENDED 8
#define DP_REGEX_UCP 16     /* \w, \d and \s know all of Unicode */
#define DP_REGEX_HAS_END 32 /* has an end ($, \Z) that may stand before a final newline */

/*
 * The pattern as the engine wants it (a palloc'd text).  The flags are those of
 * the options; those that the pattern sets itself, as (?i) in front, are added
 * or taken away.  newline: for strings that end in a newline, which $ may stand
 * before.  Raises INVALID_REGULAR_EXPRESSION for what the engine cannot do.
 */
extern text *dp_regex_rewrite(const char *pattern, uint32 len, int *flags, bool newline);

#endif /* DP_MQL_REGEX_SYNTAX_H */
