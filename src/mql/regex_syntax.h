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
#define DP_REGEX_HAS_END 32 /* has an end ($, \Z) that may match before a final newline */

/*
 * The pattern for the engine (a palloc'd text).  The flags are those of the options; flags that the
 * pattern sets itself, such as a leading (?i), are added or removed.  newline: for strings that end
 * with a newline, before which $ may match.  Raises INVALID_REGULAR_EXPRESSION for features that
 * the engine lacks.
 */
extern text *dp_regex_rewrite(const char *pattern, uint32 len, int *flags, bool newline);

#endif /* DP_MQL_REGEX_SYNTAX_H */
