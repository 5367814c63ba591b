/*
 * treepath.h
 *		The type treepath: the ids from a root to a node, root first.
 *
 * A path is a varlena header and the bytes of its ids, one after the other.
 * The bytes of an id determine where it ends, and no id is a prefix of another
 * one.  So a path is a prefix of all paths below it and of no others; compared
 * as bytes (memcmp, then the shorter first) paths are in depth-first order; and
 * the paths below a path are one range: from the path itself to the path with
 * MaxKey appended, which is the greatest of them, because MaxKey can only be the
 * last id of a path.
 *
 * The first byte of an id is its kind:
 *
 *		0x01			MinKey
 *		0x02			null
 *		0x08 .. 0x0F	a negative integer i in 0x10 - first bytes: the last
 *						bytes of i, big-endian
 *		0x20 .. 0x7F	the integers 0 to 95
 *		0x80 .. 0xBF	the integers from 96 to 16,479 less 96: six bits here
 *						and a byte
 *		0xC0 .. 0xDF	the integers from 16,480 to 2,113,631 less 16,480: five
 *						bits here and two bytes
 *		0xE0 .. 0xE5	a greater integer in first - 0xDD bytes, big-endian
 *		0xE8			another number: the nearest double in eight bytes whose
 *						unsigned order is that of doubles; 0x80 if the number is
 *						that double, or 0x40 (it is less) or 0xC0 (greater), the
 *						exponent of 0.ddd * 10^e as e + 32768 in two bytes, each
 *						digit + 1 as a byte and 0x00, all of these complemented
 *						if the number is negative
 *		0xF0			a string: its bytes, 0x00 as 0x01 0x01 and 0x01 as 0x01
 *						0x02, then 0x00
 *		0xF1			binary: length in four bytes, subtype, bytes
 *		0xF2			a UUID (binary of subtype 4): 16 bytes
 *		0xF4			ObjectId: 12 bytes
 *		0xF5, 0xF6		false, true
 *		0xF7, 0xF8		date, timestamp: 8 bytes, the sign bit of a date inverted
 *		0xFF			MaxKey
 *
 * Equal numbers of any types are one id; integers come
 * before other numbers.  A symbol is a string.  These bytes are in users'
 * tables and indexes and can never change; values not used here are free.
 */
#ifndef DP_TYPES_TREE_TREEPATH_H
#define DP_TYPES_TREE_TREEPATH_H

#include "bson/builder.h"
#include "bson/reader.h"

/* SQL arguments: bytes of a path, and their number */
#define DP_TREEPATH_DATA(v) ((const uint8 *) VARDATA_ANY(v))
#define DP_TREEPATH_SIZE(v) ((uint32) VARSIZE_ANY_EXHDR(v))

/* A path that is being made: ids, appended. */
typedef struct DpTreepathBuilder
{
	uint8 *buf; /* palloc'd, begins with room for the varlena header */
	uint32 len; /* bytes used, header included */
	uint32 cap;
	bool ended; /* by MaxKey: nothing can follow */
} DpTreepathBuilder;

extern void dp_treepath_begin(DpTreepathBuilder *b);

/*
 * All raise INVALID_PARAMETER_VALUE for values that cannot be ids and for what
 * comes after MaxKey, PROGRAM_LIMIT_EXCEEDED for paths beyond 1 GB.
 */
extern void dp_treepath_append_value(DpTreepathBuilder *b, const DpValue *id);
extern void dp_treepath_append_integer(DpTreepathBuilder *b, int64 id);
extern void dp_treepath_append_string(DpTreepathBuilder *b, const char *id, uint32 len);
extern void dp_treepath_append_objectid(DpTreepathBuilder *b, const uint8 *id);
extern void dp_treepath_append_uuid(DpTreepathBuilder *b, const uint8 *id);

/* Bytes of ids from another path. */
extern void dp_treepath_append_ids(DpTreepathBuilder *b, const uint8 *ids, uint32 size);

/* MaxKey, unless it is there already: the greatest path below the one so far. */
extern void dp_treepath_append_maxkey(DpTreepathBuilder *b);

/* The path; the builder's buffer becomes it. */
extern struct varlena *dp_treepath_finish(DpTreepathBuilder *b);

/* A path of the bytes of ids, palloc'd. */
extern struct varlena *dp_treepath_of_ids(const uint8 *ids, uint32 size);

/* The bytes of the id that begins at p, which must be before end.  Raises DATA_CORRUPTED. */
extern uint32 dp_treepath_id_size(const uint8 *p, const uint8 *end);

/* Appends an id of that size as an element to a document or an array. */
extern void
dp_treepath_id_append(DpBuilder *b, const char *name, uint32 namelen, const uint8 *id, uint32 size);

/* Appends a path as an array of its ids. */
extern void
dp_builder_append_treepath(DpBuilder *b, const char *name, uint32 namelen, struct varlena *path);

/* The id as a new bson_value. */
extern struct varlena *dp_treepath_id_to_value(const uint8 *id, uint32 size);

/*
 * If the id is an integer, that integer; if it is a string, its bytes (palloc'd, followed by a
 * NUL).
 */
extern bool dp_treepath_id_integer(const uint8 *id, uint32 size, int64 *result);
extern bool dp_treepath_id_string(const uint8 *id, uint32 size, char **result, uint32 *len);

/* Whether these bytes are a path, each id in its only form; if not, what is wrong. */
extern const char *dp_treepath_fault(const uint8 *ids, uint32 size);

/* The number of ids. */
extern int dp_treepath_count(const uint8 *ids, uint32 size);

/* Where the last id begins.  There must be one. */
extern const uint8 *dp_treepath_last(const uint8 *ids, uint32 size);

/* The bytes that two paths have in common, in whole ids; sets *count to the number of ids. */
extern uint32
dp_treepath_common(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize, int *count);

/* Whether path b is a or below it. */
static inline bool
dp_treepath_covers(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize)
{
	return asize <= bsize && memcmp(a, b, asize) == 0;
}

/* The order of paths. */
static inline int
dp_treepath_compare(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize)
{
	int c = memcmp(a, b, Min(asize, bsize));

	return c != 0 ? c : (asize > bsize) - (asize < bsize);
}

#endif /* DP_TYPES_TREE_TREEPATH_H */
