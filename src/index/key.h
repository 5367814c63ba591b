/*
 * key.h
 *		Keys of the GIN operator class bson_ops: the keys that an index stores
 *		for a document, and those to search for.
 *
 * A key is a bytea of 1 to 23 bytes, compared byte by byte, the shorter first:
 *
 *		size	what
 *		4 or 1	the head: path and, in the last four bits, class
 *		0..19	bytes of the value, in order within the class
 *
 * So the keys of a path are adjacent, in the order of classes and values.
 * A head of four bytes, big-endian, has 28 bits of hash of the path.  An index
 * of named paths has heads of one byte for up to fifteen of them, with the
 * number of the path (0 to 14) in the upper half; all others there, of what is
 * below or on the way and of pairs, have 15 there and 24 bits of hash.
 *
 * The bytes of a value are as few as possible and may be fewer than the value
 * has: results of the index are always rechecked.  The bytes of each class:
 *
 *		missing		nothing.  Named paths only: some branch of the document
 *					does not have the path
 *		minkey, null (and undefined), maxkey: nothing
 *		number		the nearest double in order-preserving bytes, whole numbers
 *					within 2^22 in three of them, NaN in none; see key.c; zeros
 *					at the end are left out
 *		string		(and symbol) up to DP_KEY_WHOLE bytes as they are; of longer
 *					ones the first DP_KEY_PREFIX and four bytes of hash
 *		document	nothing for the empty one; otherwise 1, and not at all if it
 *					is an element of an array.  What is in it has keys of its own
 *		array		nothing for an empty one, 1 for one with one element, 2 for
 *					others.  Elements have keys under the same path
 *		binary		length (255: more), subtype, the first five bytes of data
 *					and, if there are more, four bytes of hash
 *		objectid	its seconds, and its last seven bytes
 *		bool		nothing for false, 1 for true
 *		date		milliseconds, see key.c; zeros at the end are left out
 *		timestamp	eight bytes; zeros at the end are left out
 *		regex		pattern, NUL and options, as a string
 *		dbpointer	four bytes of hash
 *		code		0, then as a string; with scope: 1 and four bytes of hash
 *
 * Parts of a path that are whole numbers are left out of its hash, since they
 * may be positions of arrays: a.0.b is a.b.  With named paths an array on the
 * way to one has its key too.  An array of several elements on the way to a
 * path (the path itself included) is where the path may lead to several values,
 * of which each may satisfy one of two conditions: a search for a range with two
 * ends must include those arrays (dp_key_array).
 *
 * The keys of a pair are those of its second part under a path that ends in the
 * value of its first part: see DpKeyPair.
 */
#ifndef DP_INDEX_KEY_H
#define DP_INDEX_KEY_H

#include "bson/path.h"

/*
 * Bytes of a value in a key.  With the first fifteen, times are distinguished by ten minutes
 * (2024-01-15T10:3), and of the names of 60,000 packages or files at most one in 400 has the same
 * prefix as another one.  Each eight more would enlarge the entry of a long string by a fifth and
 * halve that number.
 */
#define DP_KEY_WHOLE 19  /* a string of so many bytes is there as a whole */
#define DP_KEY_PREFIX 15 /* of a longer one so many, and the hash */
#define DP_KEY_VALUE_SIZE 19

#define DP_KEY_HEAD_SIZE 4 /* at most */
#define DP_KEY_SIZE (DP_KEY_HEAD_SIZE + DP_KEY_VALUE_SIZE)
#define DP_KEY_SHORT_PATHS 15 /* so many have heads of one byte */

/* Classes in keys, in order.  They are on disk. */
typedef enum DpKeyClass
{
	DP_KEY_MISSING = 0,
	DP_KEY_MINKEY = 1,
	DP_KEY_NULL = 2,
	DP_KEY_NUMBER = 3,
	DP_KEY_STRING = 4,
	DP_KEY_DOCUMENT = 5,
	DP_KEY_ARRAY = 6,
	DP_KEY_BINARY = 7,
	DP_KEY_OBJECTID = 8,
	DP_KEY_BOOL = 9,
	DP_KEY_DATE = 10,
	DP_KEY_TIMESTAMP = 11,
	DP_KEY_REGEX = 12,
	DP_KEY_DBPOINTER = 13,
	DP_KEY_CODE = 14,
	DP_KEY_MAXKEY = 15
} DpKeyClass;

/* The class of values of each type; types that do not exist have 0 */
extern const uint8 dp_key_class[256];

/* Arrays by their number of elements */
typedef enum DpKeyArray
{
	DP_KEY_ARRAY_EMPTY,
	DP_KEY_ARRAY_ONE,
	DP_KEY_ARRAY_SEVERAL
} DpKeyArray;

/* A stored key: a bytea with a header of one byte.  See dp_key_datum(). */
typedef struct DpIndexKey
{
	uint8 bytes[1 + DP_KEY_SIZE]; /* header, head, value */
} DpIndexKey;

#define DP_KEY_LEN(key) ((uint32) VARSIZE_SHORT((key)->bytes) - 1)
#define DP_KEY_DATA(key) ((key)->bytes + 1)

/* The key as a Datum of type bytea, which points into it. */
static inline Datum
dp_key_datum(const DpIndexKey *key)
{
	return PointerGetDatum(key->bytes);
}

/*
 * Keys that stand together: all from low on that do not come after the end.
 * A key that begins with the bytes of the end does not come after it.
 */
typedef struct DpKeyRange
{
	DpIndexKey low; /* where the search begins (GIN's partial match) */
	DpIndexKey end;
} DpKeyRange;

/*
 * The hash of a path while it is being followed: begin with DP_KEY_ROOT and
 * take a step for each name.  A name that is a whole number changes nothing.
 */
typedef uint64 DpPathState;

#define DP_KEY_ROOT UINT64CONST(0x9e3779b97f4a7c15)

/* Whether a part of a path is a whole number: digits, perhaps with a minus before them. */
static inline bool
dp_key_is_position(const char *name, uint32 namelen)
{
	uint32 i = namelen > 0 && name[0] == '-' ? 1 : 0;

	if (i == namelen)
		return false;
	for (; i < namelen; i++)
		if (name[i] < '0' || name[i] > '9')
			return false;
	return true;
}

extern DpPathState dp_key_step(DpPathState state, const char *name, uint32 namelen);

/* The same for the first nsteps steps of a path. */
extern DpPathState dp_key_steps(DpPathState state, const DpPath *path, int nsteps);

/*
 * The head of the keys of a path, with class 0.  For users of key_hash.h: the head's bytes from the
 * top, lowest bit set if it has only one.
 */
typedef uint32 DpKeyBase;

/*
 * The bytes of a value within its class, at most DP_KEY_VALUE_SIZE, are
 * written to out; returns their number.  Raises DATA_CORRUPTED for a type that
 * does not exist.
 */
extern uint32 dp_key_value(const DpValue *value, uint8 *out);

/* ---- keys to search for ---- */

/*
 * The key of a value under a path.  For documents this is only that there is
 * one, and an element of an array does not even have that.
 */
extern void dp_key_exact(DpIndexKey *key, DpKeyBase base, const DpValue *value);

/* The keys of an array, and of a branch without the named path. */
extern void dp_key_array(DpIndexKey *key, DpKeyBase base, DpKeyArray array);
extern void dp_key_missing(DpIndexKey *key, DpKeyBase base);

/*
 * All keys of the class of the value that may be of values not less than low
 * and not greater than high, either of which may be NULL; both are of one class.
 * The limits themselves are always included.
 */
extern void
dp_key_between(DpKeyRange *range, DpKeyBase base, const DpValue *low, const DpValue *high);

/* All keys of strings (or of another class whose bytes begin with these) that begin so. */
extern void
dp_key_prefix(DpKeyRange *range, DpKeyBase base, DpKeyClass class, const char *s, uint32 len);

/*
 * All keys of the classes from first to last: from MINKEY to MAXKEY for a path
 * that is there.  A document in an array is in the keys of the array.
 */
extern void dp_key_classes(DpKeyRange *range, DpKeyBase base, DpKeyClass first, DpKeyClass last);

/* For GIN's comparePartial: 0 if a key from low on is in the range, 1 if it comes after it. */
extern int dp_key_after(const uint8 *key, uint32 len, const DpIndexKey *end);

/* ---- options of an index ---- */

/* A named path.  No part of it is a whole number. */
typedef struct DpKeyPath
{
	DpPath *path;
	DpPathState state; /* at its end */
} DpKeyPath;

/*
 * A pair: 'releases(location,date)'.  For each element of the array at the path (or the document at
 * the path), each value a of the first part and each value b of the second part, there is the key
 * of b under dp_key_pair_base(options, pair, a); b is missing if the element has no second part.
 * Values are also the elements of arrays, and the arrays themselves at the end of the part or on
 * the way to it, and all documents.  Elements without a first part have no keys.  Beyond
 * DP_KEY_PAIR_LIMIT combinations in one element there is only the key dp_key_missing(key,
 * dp_key_base(options, pair->state)), so every search must include that key.  No path of a pair
 * contains a whole number, and a pair cannot serve conditions on such paths.
 */
typedef struct DpKeyPair
{
	DpPath *path;
	DpPath *first;
	DpPath *second;
	DpPathState state; /* of the pair, not of the path */
} DpKeyPair;

#define DP_KEY_PAIR_LIMIT 256

typedef struct DpKeyOptions
{
	bool all_paths; /* neither paths nor pairs are named */
	uint32 escape;  /* what the longer heads begin with */
	int nshort;     /* of so many paths the heads are short */
	int npaths;
	DpKeyPath *paths;
	int npairs;
	DpKeyPair *pairs;
} DpKeyOptions;

/* The base of the keys of a path whose hash has come to this state. */
static inline DpKeyBase
dp_key_base(const DpKeyOptions *options, DpPathState state)
{
	for (int i = 0; i < options->nshort; i++)
		if (options->paths[i].state == state)
			return (DpKeyBase) i << 28 | 1;
	return ((DpKeyBase) ((state * UINT64CONST(0xd6e8feb86659fd93)) >> 32) & ~(DpKeyBase) 15) |
		   options->escape;
}

/* The base of the keys of the second part of a pair, given a value of the first part. */
extern DpKeyBase
dp_key_pair_base(const DpKeyOptions *options, const DpKeyPair *pair, const DpValue *first);

/*
 * The options written as text, either of which may be NULL; palloc'd in the
 * current context.  Raises INVALID_PARAMETER_VALUE.
 */
extern DpKeyOptions *dp_key_options_parse(const char *paths, const char *pairs);

/*
 * Does the same for the stored options of an operator class (IndexOptInfo->opclassoptions[column],
 * or NULL).
 */
extern DpKeyOptions *dp_key_options_read(bytea *options);

/* The same of the index whose support function is called. */
extern DpKeyOptions *dp_key_options_of(FunctionCallInfo fcinfo);

/*
 * Whether the keys of a path are in the index: it is, or is below, a named path; whole numbers do
 * not count.
 */
extern bool dp_key_options_has(const DpKeyOptions *options, const DpPath *path);

/*
 * The path whose missing branches have keys: the named path that it is, or NULL (also if it has
 * whole numbers).
 */
extern const DpKeyPath *dp_key_options_missing(const DpKeyOptions *options, const DpPath *path);

/* ---- what an index stores ---- */

/*
 * The keys of a document in memory, in order, each once: palloc'd, as is what
 * they point to.  Raises DATA_CORRUPTED.
 */
extern Datum *
dp_key_extract(const uint8 *doc, uint32 size, const DpKeyOptions *options, int32 *nkeys);

/* The same, telling which values of first parts of pairs the keys belong to. */
typedef void (*DpKeyPairNote)(const DpKeyPair *pair, const DpValue *first, DpKeyBase base,
							  void *arg);

extern Datum *dp_key_extract_noted(const uint8 *doc, uint32 size, const DpKeyOptions *options,
								   int32 *nkeys, DpKeyPairNote note, void *arg);

#endif /* DP_INDEX_KEY_H */
