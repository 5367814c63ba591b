/*
 * options.h
 *		The options of a pattern: a table from which declaring and altering are
 *		checked.  What several options must have in common is for the pattern's
 *		SQL function _<pattern>_verify(regclass, bson).
 */
#ifndef DP_KIT_OPTIONS_H
#define DP_KIT_OPTIONS_H

#include "kit/declaration.h"

typedef enum DpOptionType
{
	DP_OPTION_TEXT, /* min and max: bytes */
	DP_OPTION_WORD, /* one of values */
	DP_OPTION_PATH,
	DP_OPTION_BOOL,
	DP_OPTION_INT, /* from min to max */
	DP_OPTION_NUMBER,
	DP_OPTION_INTERVAL, /* a text, not negative */
	DP_OPTION_TEXTS,    /* an array; min: of elements */
	DP_OPTION_PATHS,    /* likewise */
	DP_OPTION_DOCUMENT, /* min: of fields */
	DP_OPTION_FILTER,
	DP_OPTION_ORDER,
	DP_OPTION_SCHEMA,
	DP_OPTION_ANY
} DpOptionType;

/* Flags */
#define DP_REQUIRED 1  /* never null; any other option that is null is left out */
#define DP_ALTERABLE 2 /* pattern_alter() changes it */
#define DP_ONE_OF 4    /* of these exactly one is given; it takes the place of another one */
#define DP_KEPT 8      /* a path, or paths, of what the pattern keeps: others leave it alone */

typedef struct DpOption
{
	const char *name;
	DpOptionType type;
	int flags;
	int64 min, max;            /* no limits if max is 0 */
	const char *const *values; /* ends with NULL */
	const char *with;          /* left out where that option is absent */
	const char *dflt;          /* what it is where that one is present, of a text or a word */
	Size into, size;           /* where dp_options_read() writes it, if size is not 0 */
	Size text;                 /* where it writes a path as it is written, if not 0 */
} DpOption;

#define DP_WORDS(...)                                                                              \
	.values = (const char *const[])                                                                \
	{                                                                                              \
		__VA_ARGS__, NULL                                                                          \
	}
#define DP_BETWEEN(from, to) .min = (from), .max = (to)
#define DP_INT_FROM(from) DP_BETWEEN(from, PG_INT32_MAX)
#define DP_LONG_FROM(from) DP_BETWEEN(from, PG_INT64_MAX)
#define DP_INTO(type, member) .into = offsetof(type, member), .size = sizeof(((type *) 0)->member)
#define DP_TEXT_INTO(type, member) .text = offsetof(type, member)

/*
 * Writes the options of a declaration into a pattern's struct: a word as its index, so
 * that words stand in the order of the pattern's enum, a path as a DpPath, a document or
 * an array as a DpValue.  They live in the declaration's context.  Members of absent
 * options stay as they are.  Raises INVALID_PARAMETER_VALUE: a user can make a trigger
 * with any argument.
 */
extern void dp_options_read(DpDecl *decl, void *state);

#endif /* DP_KIT_OPTIONS_H */
