/*
 * layout.h
 *		The layout of BSON documents in memory and on disk, and views of it.
 *
 * A document has the bytes that a MongoDB driver writes:
 *
 *		offset	size	what
 *		0		4		length of the document in bytes, including this field,
 *						int32, little endian
 *		4		...		elements, each:
 *							1 byte type, never 0
 *							name, UTF-8 without a NUL, ended by a NUL
 *							value, see dp_value_size() in reader.h
 *		len-1	1		0
 *
 * An array is a document whose names are "0", "1", "2" and so on.  These names are written when an
 * array is built and ignored when it is read.
 *
 * The SQL type bson is a varlena header followed by these bytes, so that bson_send is a copy.  The
 * SQL type bson_value is a varlena header, one byte of type and the bytes of the value as in a
 * document. Neither layout can ever change: they are on disk in users' tables, and the first is a
 * public format (bsonspec.org).
 *
 * Values are not aligned: read them with the dp_get_... functions below.
 */
#ifndef DP_BSON_LAYOUT_H
#define DP_BSON_LAYOUT_H

#include "dp.h"

#include "port/pg_bswap.h"

/* Types of values, as in the specification of BSON */
#define DP_TYPE_EOD 0x00 /* end of document, not a value */
#define DP_TYPE_DOUBLE 0x01
#define DP_TYPE_STRING 0x02
#define DP_TYPE_DOCUMENT 0x03
#define DP_TYPE_ARRAY 0x04
#define DP_TYPE_BINARY 0x05
#define DP_TYPE_UNDEFINED 0x06
#define DP_TYPE_OBJECTID 0x07
#define DP_TYPE_BOOL 0x08
#define DP_TYPE_DATE 0x09
#define DP_TYPE_NULL 0x0A
#define DP_TYPE_REGEX 0x0B
#define DP_TYPE_DBPOINTER 0x0C
#define DP_TYPE_CODE 0x0D
#define DP_TYPE_SYMBOL 0x0E
#define DP_TYPE_CODEWSCOPE 0x0F
#define DP_TYPE_INT32 0x10
#define DP_TYPE_TIMESTAMP 0x11
#define DP_TYPE_INT64 0x12
#define DP_TYPE_DECIMAL128 0x13
#define DP_TYPE_MAXKEY 0x7F
#define DP_TYPE_MINKEY 0xFF

/* The smallest document, {}: its length and its end */
#define DP_DOCUMENT_MIN_SIZE 5

/* Documents and arrays inside each other, the outermost counted as 1 */
#define DP_MAX_DEPTH 100

#define DP_OBJECTID_SIZE 12
#define DP_DECIMAL128_SIZE 16

/* Subtypes of binary that the code knows by name */
#define DP_BINARY_GENERIC 0x00
#define DP_BINARY_OLD 0x02 /* has a second length inside */
#define DP_BINARY_UUID 0x04

/*
 * A value somewhere in memory.  data points to the value's bytes in the buffer
 * that it was read from (which must outlive it) and len is their number:
 * strings include their length and NUL, documents their length and end.
 */
typedef struct DpValue
{
	const uint8 *data;
	uint32 len;
	uint8 type;
} DpValue;

/*
 * An element of a document: the value and its name.  The name is not copied;
 * it is followed by a NUL in the buffer that it was read from.
 */
typedef struct DpElement
{
	const char *name;
	uint32 namelen;
	DpValue value;
} DpElement;

/* Little-endian loads from and stores to any address */
static inline int32
dp_get_int32(const uint8 *p)
{
	uint32 v;

	memcpy(&v, p, sizeof(v));
#ifdef WORDS_BIGENDIAN
	v = pg_bswap32(v);
#endif
	return (int32) v;
}

static inline int64
dp_get_int64(const uint8 *p)
{
	uint64 v;

	memcpy(&v, p, sizeof(v));
#ifdef WORDS_BIGENDIAN
	v = pg_bswap64(v);
#endif
	return (int64) v;
}

static inline double
dp_get_double(const uint8 *p)
{
	int64 i = dp_get_int64(p);
	double d;

	memcpy(&d, &i, sizeof(d));
	return d;
}

static inline void
dp_put_int32(uint8 *p, int32 i)
{
	uint32 v = (uint32) i;

#ifdef WORDS_BIGENDIAN
	v = pg_bswap32(v);
#endif
	memcpy(p, &v, sizeof(v));
}

static inline void
dp_put_int64(uint8 *p, int64 i)
{
	uint64 v = (uint64) i;

#ifdef WORDS_BIGENDIAN
	v = pg_bswap64(v);
#endif
	memcpy(p, &v, sizeof(v));
}

static inline void
dp_put_double(uint8 *p, double d)
{
	int64 i;

	memcpy(&i, &d, sizeof(i));
	dp_put_int64(p, i);
}

/*
 * SQL arguments.  The document or value is detoasted completely, keeping a short header; use path.h
 * instead if a part may be enough.
 */
#define DP_GETARG_VARLENA(n) PG_GETARG_VARLENA_PP(n)
#define DP_DOC_DATA(v) ((const uint8 *) VARDATA_ANY(v))
#define DP_DOC_SIZE(v) ((uint32) VARSIZE_ANY_EXHDR(v))

/* The string inside a STRING, SYMBOL or CODE value: bytes and their number, without the NUL */
#define DP_STRING_DATA(v) ((const char *) (v)->data + 4)
#define DP_STRING_LEN(v) ((v)->len - 5)

#endif /* DP_BSON_LAYOUT_H */
