/*
 * options.h
 *		The options of a pattern: a table by which declarations and alterations are checked. The
 *		pattern's SQL function _<pattern>_verify(regclass, bson) checks rules between several
 *		options.
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

/* Flags of an option */
#define DP_REQUIRED 1  /* never null; other options are omitted if null */
#define DP_ALTERABLE 2 /* pattern_alter() changes it */
#define DP_ONE_OF 4    /* exactly one with this flag is given; altering one removes the other */
#define DP_KEPT 8      /* a path, or paths, that the pattern maintains: other patterns must not */
#define DP_GUARDED 16  /* also true: making documents consistent could lose a value there */
#define DP_DERIVED 32  /* also: derived from something else; histories leave it out */
#define DP_USED 64     /* the pattern reads it there: other patterns must not move it */

typedef struct DpOption
{
	const char *name;
	DpOptionType type;
	int flags;
	int64 min, max;            /* no limits if max is 0 */
	const char *const *values; /* ends with NULL */
	const char *with;          /* valid only together with that option */
	const char *dflt;          /* default if the option "with" is set; a text or a word */
	Size into, size;           /* where dp_options_read() writes it, unless size is 0 */
	Size text;                 /* where it writes the text of a path, unless 0 */
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
 * Writes the options of a declaration into a pattern's struct: a word as its index, so that words
 * are listed in the order of the pattern's enum, a path as a DpPath, a document or an array as a
 * DpValue.  They live in the declaration's context.  Members of absent options stay unchanged.
 * Raises INVALID_PARAMETER_VALUE: a user can create a trigger with any argument.
 */
extern void dp_options_read(DpDecl *decl, void *state);

#endif /* DP_KIT_OPTIONS_H */
