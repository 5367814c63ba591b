/*
 * format.h
 *		The format of buckets in memory and on disk.
 *
 * After the varlena header:
 *
 *		byte		version (1) << 4 | flags
 *		varint		size of the header: all bytes before the packed times
 *		varint		count: rows
 *		varint		number of columns
 *		varint		number of fields of split documents, with FLAG_FIELDS
 *	unless timeless:
 *		byte		unit of the times: 0 us, 1 ms, 2 s, 3 minutes, 4 hours, 5 days;
 *					with IRREGULAR unless they are a regular grid from first to last
 *		zigzag		first time in units since 2000
 *		varint		last - first in units
 *		varint		size of the packed times, with IRREGULAR
 *	each column:
 *		byte		kind | HAS_ABSENT | HAS_RANGE | HAS_SUM
 *		varint		number of NULLs, with HAS_ABSENT
 *		varint		number of missing values, with HAS_ABSENT
 *		byte		BSON type of all values or 0, if the kind is VALUE
 *		varint		number of the split column, if it is a field
 *		varint, ..	length and bytes of the name, if named or a field
 *		byte		form << 5 | scale
 *		3 bytes		scale of min, max and sum, if the form is DECIMALS
 *	with HAS_RANGE:
 *		zigzag		min				8 bytes		min
 *		varint		max - min		8 bytes		max
 *	with HAS_SUM:
 *		varint		sum - n * min	8 bytes		sum
 *					(forms INTS, DECIMALS)		(other forms)
 *		varint		size of the packed column, unless it is the last
 *
 * then the packed times and the packed columns, in that order, without gaps.
 * A packed column, n being its number of values:
 *
 *		presence	if there are NULLs or missing values, but not one of these
 *					alone: varint size, integers (0 value, 1 NULL, 2 missing)
 *		INTS		integers
 *		EXCEPTIONS	varint number, varint size and integers: positions; the
 *					doubles (or floats); integers that stand for all values,
 *					those of the exceptions repeating the one before
 *		XOR			bits, see codec_float.c
 *		PLAIN		the doubles (or floats) one after the other
 *		DECIMALS	varint size and integers: the scale of each value; integers
 *		STRINGS		strings
 *		DICTIONARY	varint number of entries, varint size and integers: entry of
 *					each value; the entries as strings
 *		MIXED		varint size and integers: BSON type of each value; for each
 *					type that occurs, ascending: varint size, form << 5 | scale,
 *					the values of the type in this form
 *		split		(form STRINGS) varint number, varint size and integers:
 *					rows whose document is kept whole; the documents as strings
 *
 *		strings		varint size and integers: lengths; byte method; the bytes one
 *					after the other (0), or varint size and pglz (1)
 *
 * Integers are a stream of its own kind, see codec_int.c.  A varint has seven
 * bits to the byte, least significant first, the top bit is set if more follow;
 * a zigzag is a varint of (v << 1) ^ (v >> 63).  Everything is little endian.
 *
 * Version 1 is on disk in users' tables: only new forms and stream codecs can be
 * added to it; a reader that does not know them raises DATA_CORRUPTED.
 */
#ifndef DP_TYPES_BUCKET_FORMAT_H
#define DP_TYPES_BUCKET_FORMAT_H

#include "lib/stringinfo.h"

#include "types/bucket/bucket.h"

#define DP_BUCKET_VERSION 1

/* Flags beside DP_BUCKET_TIMELESS and DP_BUCKET_NAMED */
#define DP_FLAG_FIELDS 0x04
#define DP_FLAGS_ALL 0x07

/* In the byte of the unit of times */
#define DP_TIME_IRREGULAR 0x08

#define DP_COLUMN_KIND 0x1F
#define DP_COLUMN_HAS_ABSENT 0x20
#define DP_COLUMN_HAS_RANGE 0x40
#define DP_COLUMN_HAS_SUM 0x80

/* How the values of a column are packed */
typedef enum DpForm
{
	DP_FORM_INTS = 0,
	DP_FORM_EXCEPTIONS = 1,
	DP_FORM_XOR = 2,
	DP_FORM_PLAIN = 3,
	DP_FORM_DECIMALS = 4,
	DP_FORM_STRINGS = 5,
	DP_FORM_DICTIONARY = 6,
	DP_FORM_MIXED = 7
} DpForm;

#define DP_FORM_SHIFT 5
#define DP_FORM_SCALE 0x1F

/* The largest power of ten that decimals are scaled by */
#define DP_MAX_SCALE 18

extern const double dp_power10[DP_MAX_SCALE + 1];
extern const int64 dp_power10_int64[DP_MAX_SCALE + 1];

#define DP_TIME_UNITS 6
extern const int64 dp_time_units[DP_TIME_UNITS];

/* A string: bytes somewhere in memory */
typedef struct DpString
{
	const uint8 *data;
	uint32 len;
} DpString;

/*
 * The values of a column without the rows that have none.
 */
typedef struct DpValues
{
	int n;
	int64 *ints;       /* integers, or the bits of doubles */
	DpString *strings; /* text, bytes, documents, numerics that are no decimals */
	uint8 *types;      /* VALUE: BSON types; NUMERIC: scales, or DP_NO_DECIMAL */
} DpValues;

/* A numeric that is in strings, as text */
#define DP_NO_DECIMAL 0xFF

/* Raise DATA_CORRUPTED; what is a sentence. */
extern void dp_bucket_corrupted(const char *what) pg_attribute_noreturn();

/* ---------------------------------------------------------------- reading bytes */

typedef struct DpCursor
{
	const uint8 *p;
	const uint8 *end;
} DpCursor;

extern uint64 dp_cursor_long_varint(DpCursor *c);

static inline uint64
dp_cursor_varint(DpCursor *c)
{
	if (likely(c->p < c->end && *c->p < 0x80))
		return *c->p++;
	return dp_cursor_long_varint(c);
}

/* A varint that may not exceed max. */
static inline uint32
dp_cursor_size(DpCursor *c, uint32 max)
{
	uint64 v = dp_cursor_varint(c);

	if (unlikely(v > max))
		dp_bucket_corrupted("A size or number in it is too large.");
	return (uint32) v;
}

static inline int64
dp_unzigzag(uint64 v)
{
	return (int64) ((v >> 1) ^ (0 - (v & 1)));
}

static inline uint64
dp_zigzag(int64 v)
{
	return ((uint64) v << 1) ^ (uint64) (v >> 63);
}

static inline int64
dp_cursor_zigzag(DpCursor *c)
{
	return dp_unzigzag(dp_cursor_varint(c));
}

static inline uint8
dp_cursor_byte(DpCursor *c)
{
	if (unlikely(c->p >= c->end))
		dp_bucket_corrupted("It ends too early.");
	return *c->p++;
}

/* The next n bytes. */
static inline const uint8 *
dp_cursor_bytes(DpCursor *c, Size n)
{
	const uint8 *p = c->p;

	if (unlikely(n > (Size) (c->end - p)))
		dp_bucket_corrupted("It ends too early.");
	c->p += n;
	return p;
}

/* The next n bytes as a cursor. */
static inline DpCursor
dp_cursor_part(DpCursor *c, Size n)
{
	DpCursor part;

	part.p = dp_cursor_bytes(c, n);
	part.end = c->p;
	return part;
}

static inline void
dp_cursor_done(const DpCursor *c)
{
	if (unlikely(c->p != c->end))
		dp_bucket_corrupted("There are bytes that belong to nothing.");
}

/* ---------------------------------------------------------------- writing bytes */

extern void dp_put_varint(StringInfo out, uint64 v);

static inline void
dp_put_byte(StringInfo out, uint8 b)
{
	appendStringInfoCharMacro(out, (char) b);
}

/* Room for n bytes at the end, set to 0. */
extern uint8 *dp_put_room(StringInfo out, Size n);

/* ---------------------------------------------------------------- codecs */

/*
 * Integers.  Encoding appends the smallest of several encodings.  base is a
 * number near the values that both sides know.  Decoding reads what is left in
 * the cursor and raises an error unless it is exactly the stream of n values.
 */
extern void dp_ints_encode(StringInfo out, const int64 *values, int n, int64 base);
extern void dp_ints_decode(DpCursor c, int n, int64 base, int64 *values);

/* The same with the size in front. */
extern void dp_ints_encode_sized(StringInfo out, const int64 *values, int n, int64 base);
extern void dp_ints_decode_sized(DpCursor *c, int n, int64 base, int64 *values);

/*
 * Doubles.  dp_floats_scale() finds the least scale at which the doubles are
 * integers, all of them or all but some: returns it and sets ints, nexceptions
 * and exceptions (positions, room for n / 8 + 1); -1 if there are too many.
 */
extern int dp_floats_scale(const double *values, int n, bool single, int64 *ints, int *exceptions,
						   int *nexceptions);
extern DpForm dp_floats_encode(StringInfo out, const double *values, int n, bool single);
extern void dp_floats_encode_exceptions(StringInfo out, const double *values, int n, bool single,
										const int64 *ints, const int *exceptions, int nexceptions);
extern void
dp_floats_decode(DpCursor c, DpForm form, int scale, int n, bool single, double *values);

/* Scaled integers become doubles in place. */
extern void dp_floats_unscale(int64 *values, int n, int scale, bool single);

/* Strings; decoded ones point into the bucket or are palloc'd in the current context. */
extern DpForm dp_strings_encode(StringInfo out, const DpString *strings, int n);
extern void dp_strings_put(StringInfo out, const DpString *strings, int n);
extern void dp_strings_decode(DpCursor c, DpForm form, int n, DpString *strings);
extern void dp_strings_get(DpCursor *c, int n, DpString *strings);

/* A dictionary's entries, palloc'd, whose number is returned, and the entry of each value. */
extern int dp_strings_dictionary(DpCursor c, int n, int64 *codes, DpString **entries);

/* ---------------------------------------------------------------- columns */

/* Facts about a column to be packed. */
typedef struct DpColumnSource
{
	uint8 kind;
	bool last; /* of the bucket's columns */
	int parent;
	const char *name;
	int namelen;
	int count; /* rows */
	int nnulls;
	int nmissing;
	const uint8 *presence; /* of each row; NULL if all have values */
	DpValues values;
	/* split documents: those that are kept whole */
	int nwhole;
	const int64 *whole_rows;
} DpColumnSource;

/* Appends the column's header and its packed values; flags are the bucket's. */
extern void
dp_column_encode(StringInfo header, StringInfo data, const DpColumnSource *source, int flags);

/* Whether values of a VALUE column of this BSON type are in ints; doubles are bits. */
extern bool dp_type_is_int(uint8 bson_type);

/*
 * Loads the values of a column, everything palloc'd in the current context or
 * in the bucket, and fills presence.  Of split documents it loads nothing.
 */
extern void dp_column_load(DpBucketReader *r, int column, DpValues *values, uint8 *presence);

/* The bytes of a packed column, fetched if they have to be. */
extern DpCursor dp_reader_column_data(DpBucketReader *r, int column);

/*
 * Working memory of the reader for r->count entries; the times in it. Good until the next of these
 * calls.
 */
extern int64 *dp_reader_values(DpBucketReader *r);
extern uint8 *dp_reader_presences(DpBucketReader *r);
extern const int64 *dp_reader_times(DpBucketReader *r);

/* Reads the presence in front of a packed column. */
extern void
dp_reader_presence(DpBucketReader *r, const DpPackedColumn *column, DpCursor *c, uint8 *presence);

/* Numerics */
extern bool dp_numeric_to_decimal(Datum numeric, int64 *value, uint8 *scale);
extern Datum dp_decimal_to_numeric(int64 value, int scale);
extern Datum dp_text_to_numeric(DpString s);

/* Whether an integer is a value of the kind, or of the BSON type if that is VALUE. */
extern bool dp_int_in_range(int kind, int bson_type, int64 i);

#endif /* DP_TYPES_BUCKET_FORMAT_H */
