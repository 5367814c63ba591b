/*
 * compare.h
 *		The order of values and documents, and hashing that agrees with it.
 *
 * The order is MongoDB's.  Values of different classes compare by class, in
 * the order of DpClass.  Within a class:
 *
 *		number			by exact value, see number.h
 *		string			by bytes, then the shorter first; a symbol is a string
 *		document		element by element: the class of the value, then the
 *						name, then the value; then the one with fewer elements first
 *		array			value by value as they stand; then the shorter first
 *		binary			by length, then subtype, then bytes
 *		objectid		by bytes
 *		bool			false, true
 *		date			by time
 *		timestamp		by time, then increment
 *		regex			by pattern, then options
 *		dbpointer		by length, then bytes
 *		code			by bytes, as strings
 *		code with scope	by code, then scope, as documents
 *
 * The values of each other class are all equal.
 */
#ifndef DP_BSON_COMPARE_H
#define DP_BSON_COMPARE_H

#include "bson/reader.h"

/* Classes in order.  They are part of the frozen hash: see hash.c. */
typedef enum DpClass
{
	DP_CLASS_INVALID = 0,
	DP_CLASS_MINKEY = 1,
	DP_CLASS_UNDEFINED = 2,
	DP_CLASS_NULL = 3,
	DP_CLASS_NUMBER = 4,
	DP_CLASS_STRING = 5,
	DP_CLASS_DOCUMENT = 6,
	DP_CLASS_ARRAY = 7,
	DP_CLASS_BINARY = 8,
	DP_CLASS_OBJECTID = 9,
	DP_CLASS_BOOL = 10,
	DP_CLASS_DATE = 11,
	DP_CLASS_TIMESTAMP = 12,
	DP_CLASS_REGEX = 13,
	DP_CLASS_DBPOINTER = 14,
	DP_CLASS_CODE = 15,
	DP_CLASS_CODEWSCOPE = 16,
	DP_CLASS_MAXKEY = 17
} DpClass;

/* The DpClass of every type */
extern const uint8 dp_type_class[256];

/*
 * Compare two values or documents.  Return a negative number, 0 or a positive
 * number; allocate nothing; raise ERRCODE_DATA_CORRUPTED on bytes that are no
 * document.
 */
extern int dp_value_compare(const DpValue *a, const DpValue *b);

/* Whether an element of the array equals the value. */
extern bool dp_array_holds(const DpValue *array, const DpValue *value);
extern int dp_document_compare(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize);

/* Sorts values, the least first: stable. */
extern void dp_values_sort(DpValue *values, int n);

/* The position of a value among sorted ones, of any equal one; -1: none. */
extern int dp_values_find(const DpValue *values, int n, const DpValue *value);

/* Compares a value with a string that is not (yet) in BSON. */
extern int dp_value_compare_string(const DpValue *v, const char *s, uint32 len);

/*
 * Hashes of 64 bits.  Equal values have equal hashes for the same seed; they
 * are the same in every release.  The second is the hash of a string that is
 * not in BSON, the third that of a number.
 */
extern uint64 dp_value_hash(const DpValue *v, uint64 seed);
extern uint64 dp_document_hash(const uint8 *doc, uint32 size, uint64 seed);
extern uint64 dp_string_hash(const char *s, uint32 len, uint64 seed);

struct DpNumber;
extern uint64 dp_number_hash(const struct DpNumber *number, uint64 seed);

/*
 * Eight bytes that, compared as an unsigned integer, never contradict
 * dp_value_compare; the first byte is the class.  For abbreviated keys.
 */
extern uint64 dp_value_abbreviate(const DpValue *v);
extern uint64 dp_document_abbreviate(const uint8 *doc, uint32 size);

#endif /* DP_BSON_COMPARE_H */
