/*
 * path.h
 *		Paths: the addresses of fields of a document.
 *
 * There is one grammar for all arguments, operators and options.  The parts of a path are separated
 * by dots; a part in double quotes may contain dots, commas and blanks, and doubled double quotes.
 * A part that is a whole number is a position in an array (negative: from the end) and a name in a
 * document. If a document has two fields of the same name the first is used.  A path never fans out
 * over the elements of an array (dp_path_each does).
 *
 * Lists of paths are separated by commas, with blanks around them ignored.
 */
#ifndef DP_BSON_PATH_H
#define DP_BSON_PATH_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "utils/array.h"

#include "bson/reader.h"

/* The first bytes of a name, which are compared at once */
#define DP_PATH_BLOCK 16

typedef struct DpPathStep
{
	const char *name; /* without quotes, followed by a NUL */
	uint32 namelen;
	int32 index;                /* the position, if is_index */
	bool is_index;              /* may be a position in an array */
	uint32 mask;                /* a bit for each byte of block that counts */
	uint8 block[DP_PATH_BLOCK]; /* the name and its NUL, or how it begins */
} DpPathStep;

/* Fills in block and mask from name and namelen. */
static inline void
dp_path_step_block(DpPathStep *step)
{
	memset(step->block, 0, sizeof(step->block));
	memcpy(step->block, step->name, Min(step->namelen, DP_PATH_BLOCK));
	step->mask = step->namelen < DP_PATH_BLOCK ? (1U << (step->namelen + 1)) - 1 : 0xFFFF;
}

/* A path is one palloc'd chunk: pfree() it. */
typedef struct DpPath
{
	int nsteps;
	int misses; /* fetch.c: documents to be read without trying a slice */
	DpPathStep steps[FLEXIBLE_ARRAY_MEMBER];
} DpPath;

/*
 * The path that is written in the len bytes at s.  Raises
 * INVALID_PARAMETER_VALUE if it is not well formed.
 */
extern DpPath *dp_path_parse(const char *s, Size len);

/* The paths of a list, separated by commas: a List of DpPath. */
extern List *dp_path_parse_list(const char *s, Size len);

/* A path of one literal name, including dots. */
extern DpPath *dp_path_of_name(const char *name, uint32 namelen);

/* A path of several literal names. */
extern DpPath *dp_path_of_names(int n, const char *const *names, const uint32 *lens);

/* A path whose parts are the literal elements of a text[]. */
extern DpPath *dp_path_of_array(ArrayType *array);

/* Appends the path in its syntax, with quotes if needed. */
extern void dp_path_to_text(StringInfo out, const DpPath *path);

/*
 * The value at the path.  Returns false if there is none.  The value points into the document.  A
 * path without parts is the document itself.
 */
extern bool dp_path_find(const uint8 *doc, uint32 size, const DpPath *path, DpValue *value);

/*
 * Does the same for a document of which only the first avail bytes are available.  DP_FIND_SHORT:
 * more bytes are needed.  A found value may extend beyond the available bytes unless whole is set:
 * its type, data and len are right nevertheless.  start is a DOCUMENT or ARRAY value with its full
 * len.
 */
typedef enum DpFind
{
	DP_FIND_ABSENT,
	DP_FIND_FOUND,
	DP_FIND_SHORT
} DpFind;

extern DpFind dp_path_find_partial(const DpValue *start, uint32 avail, const DpPath *path,
								   bool whole, DpValue *value);

/* The first field of a document with a name that is known only now: dp_document_find(), faster. */
extern bool
dp_field_find(const uint8 *doc, uint32 size, const char *name, uint32 namelen, DpValue *value);

/* The same in the first avail bytes of a document: see dp_path_find_partial(), with whole. */
extern DpFind dp_field_find_partial(const DpValue *document, uint32 avail, const char *name,
									uint32 namelen, DpValue *value);

/* The element of an array at a position, negative positions from the end. */
extern bool dp_array_element(const uint8 *array, uint32 size, int64 position, DpValue *value);

/* The number of elements of an array or a document, faster than dp_document_count(). */
extern uint32 dp_array_count(const uint8 *array, uint32 size);

/*
 * The value at one step in a document or an array, and the position of its element (the type byte).
 * Returns false if there is none.
 */
extern bool dp_step_find(const DpValue *container, const DpPathStep *step, const uint8 **element,
						 DpValue *value);

/*
 * Calls visit for each value at the path, descending also into documents that are elements of
 * arrays, as MongoDB's distinct and its multikey indexes do.  Of an array at the end of the path
 * the elements are visited and not the array itself; an array inside that array is one value.  In
 * an array, a whole number is only a position.  visit returns false to stop.
 */
typedef bool (*DpPathVisit)(const DpValue *value, void *arg);

extern void
dp_path_each(const uint8 *doc, uint32 size, const DpPath *path, DpPathVisit visit, void *arg);

/*
 * Paths of SQL arguments, parsed once as long as the argument stays the same.
 * The cache belongs into fn_extra, zeroed.  The result is valid until the next
 * call with the same cache.
 */
typedef struct DpPathCache
{
	DpPath *path;
	bool is_const; /* the argument is a constant of the query */
	uint32 len;    /* bytes of the argument, header included */
	char *source;  /* a copy of them */
} DpPathCache;

/*
 * Whether an argument is a constant in the expression that calls.  A parameter does not count, as
 * the expression may be run again with another value, unless planner support has marked it as
 * stable: dp_arg_mark_stable() returns it marked, or NULL if the argument is not a parameter.
 */
extern bool dp_arg_is_const(FunctionCallInfo fcinfo, int argno);
extern Node *dp_arg_mark_stable(Node *arg);

extern DpPath *dp_path_cached(DpPathCache *cache, FunctionCallInfo fcinfo, int argno);

/* For functions that keep nothing else in fn_extra; dp_path_arg() is what they call. */
extern DpPath *dp_path_arg_cached(FunctionCallInfo fcinfo, int argno);

static inline DpPath *
dp_path_arg(FunctionCallInfo fcinfo, int argno)
{
	const DpPathCache *cache = fcinfo->flinfo->fn_extra;

	if (likely(cache != NULL && cache->is_const))
		return cache->path;
	return dp_path_arg_cached(fcinfo, argno);
}

/* The same for text[] arguments. */
extern DpPath *dp_path_array_arg(FunctionCallInfo fcinfo, int argno);

#endif /* DP_BSON_PATH_H */
