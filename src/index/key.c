/*
 * key.c
 *		Keys of the GIN operator class: hashes of paths, bytes of values, and the keys and
 *		ranges to search. See key.h.
 *
 * All of this is on disk in users' indexes and can never change.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

#include "bson/compare.h"
#include "bson/number.h"
#include "index/key.h"
#include "index/key_hash.h"

/* Bytes of data of a binary in its key, before the hash */
#define KEY_BINARY_DATA 5

/* The stored length of all longer binaries */
#define KEY_BINARY_LONG 255

/* Bytes of an ObjectId: its time, and where the rest begins that is kept */
#define KEY_OBJECTID_TIME 4
#define KEY_OBJECTID_REST 5

/*
 * Whole numbers from -KEY_WHOLE_LIMIT on and below it have three bytes; other numbers up to eleven.
 */
#define KEY_WHOLE_LIMIT (1 << 22)
#define KEY_WHOLE_BIAS (1 << 23)
#define KEY_NUMBER_SIZE 11

/* Dates within 127 * 2^40 milliseconds (4,424 years) of 1970 have six bytes. */
#define KEY_DATE_LIMIT (INT64CONST(127) << 40)
#define KEY_DATE_BIAS (INT64CONST(128) << 40)

StaticAssertDecl(sizeof(DpIndexKey) == 24, "a key has 24 bytes");
StaticAssertDecl(DP_KEY_PREFIX + 4 == DP_KEY_VALUE_SIZE && DP_KEY_WHOLE <= DP_KEY_VALUE_SIZE,
				 "a string fits into a key");

const uint8 dp_key_class[256] = {
	[DP_TYPE_MINKEY] = DP_KEY_MINKEY,     [DP_TYPE_UNDEFINED] = DP_KEY_NULL,
	[DP_TYPE_NULL] = DP_KEY_NULL,         [DP_TYPE_DOUBLE] = DP_KEY_NUMBER,
	[DP_TYPE_INT32] = DP_KEY_NUMBER,      [DP_TYPE_INT64] = DP_KEY_NUMBER,
	[DP_TYPE_DECIMAL128] = DP_KEY_NUMBER, [DP_TYPE_STRING] = DP_KEY_STRING,
	[DP_TYPE_SYMBOL] = DP_KEY_STRING,     [DP_TYPE_DOCUMENT] = DP_KEY_DOCUMENT,
	[DP_TYPE_ARRAY] = DP_KEY_ARRAY,       [DP_TYPE_BINARY] = DP_KEY_BINARY,
	[DP_TYPE_OBJECTID] = DP_KEY_OBJECTID, [DP_TYPE_BOOL] = DP_KEY_BOOL,
	[DP_TYPE_DATE] = DP_KEY_DATE,         [DP_TYPE_TIMESTAMP] = DP_KEY_TIMESTAMP,
	[DP_TYPE_REGEX] = DP_KEY_REGEX,       [DP_TYPE_DBPOINTER] = DP_KEY_DBPOINTER,
	[DP_TYPE_CODE] = DP_KEY_CODE,         [DP_TYPE_CODEWSCOPE] = DP_KEY_CODE,
	[DP_TYPE_MAXKEY] = DP_KEY_MAXKEY
};

/* The purpose of the bytes of a value. */
typedef enum KeyPurpose
{
	KEY_EXACT, /* stored in an index */
	KEY_LOW,   /* the first key that a value not less may have */
	KEY_END    /* the last one, or its beginning, that one not greater may have */
} KeyPurpose;

static void
key_put(DpIndexKey *key, DpKeyBase base, DpKeyClass class, const uint8 *bytes, uint32 len);

/* ---------------------------------------------------------------- paths */

/*
 * The state after one more name.
 */
DpPathState
dp_key_step(DpPathState state, const char *name, uint32 namelen)
{
	if (dp_key_is_position(name, namelen))
		return state;
	return dp_key_hash((const uint8 *) name, namelen, state);
}

/*
 * The state after the first nsteps steps of a path.
 */
DpPathState
dp_key_steps(DpPathState state, const DpPath *path, int nsteps)
{
	for (int i = 0; i < nsteps; i++)
		state = dp_key_step(state, path->steps[i].name, path->steps[i].namelen);
	return state;
}

/*
 * The base of the keys of a pair for a value of its first part: the value is
 * the last step of the path.
 */
DpKeyBase
dp_key_pair_base(const DpKeyOptions *options, const DpKeyPair *pair, const DpValue *first)
{
	uint8 bytes[1 + DP_KEY_VALUE_SIZE];
	uint32 len;

	bytes[0] = dp_key_class[first->type];
	len = dp_key_value(first, bytes + 1);
	return dp_key_base(options, dp_key_hash(bytes, len + 1, pair->state));
}

/* ---------------------------------------------------------------- values */

/* Writes the n upper bytes of an integer. */
static inline void
put_upper(uint8 *out, uint64 i, int n)
{
#ifndef WORDS_BIGENDIAN
	i = pg_bswap64(i);
#endif
	memcpy(out, &i, n);
}

/*
 * Writes an integer of eight bytes without the zeros at its end, or with them
 * if it is an end.  Returns the number of bytes.
 */
static inline uint32
put_cut(uint8 *out, uint64 i, KeyPurpose purpose)
{
	put_upper(out, i, 8);
	if (purpose == KEY_END)
		return 8;
	return i == 0 ? 0 : 8 - pg_rightmost_one_pos64(i) / 8;
}

/* The upper four bytes of a hash. */
static inline uint32
put_hash(uint8 *out, uint64 hash)
{
	put_upper(out, hash, 4);
	return 4;
}

/*
 * A double in eight bytes whose unsigned order is that of numbers: zero is 2^63,
 * and a negative number is as far below it as its opposite is above.
 */
static inline uint64
order_double(double d)
{
	uint64 bits;

	memcpy(&bits, &d, sizeof(bits));
	if (bits >> 63)
		return (UINT64CONST(1) << 63) - (bits & ~(UINT64CONST(1) << 63));
	return bits + (UINT64CONST(1) << 63);
}

/*
 * A whole number within 2^22 is three bytes, 2^23 being zero.  Others in there
 * begin with the whole number below them; what is left, always exact, follows
 * as eight bytes of binary fraction, and between -1 and 1 the order_double() of the
 * number itself.  The order_double() of all beyond begins with a byte less than
 * those, or greater.  NaN is nothing.
 */
static inline uint32
put_number(uint8 *out, double d, KeyPurpose purpose)
{
	uint32 len;

	if (likely(d >= -KEY_WHOLE_LIMIT && d < KEY_WHOLE_LIMIT))
	{
		int32 whole = (int32) d; /* towards zero */

		if (d == whole)
		{
			put_upper(out, (uint64) (whole + KEY_WHOLE_BIAS) << 40, 8);
			len = 3;
		}
		else if (whole == 0)
		{
			put_upper(out, (uint64) (KEY_WHOLE_BIAS - (d < 0)) << 40, 3);
			put_upper(out + 3, order_double(d), 8);
			len = 11;
		}
		else
		{
			whole -= d < 0;
			put_upper(out, (uint64) (whole + KEY_WHOLE_BIAS) << 40, 3);
			put_upper(out + 3, (uint64) ldexp(d - whole, 64), 8);
			len = 11;
		}
	}
	else if (likely(d == d))
	{
		put_upper(out, order_double(d), 8);
		len = 8;
	}
	else
		len = 0;

	if (purpose == KEY_END)
	{
		memset(out + len, 0, KEY_NUMBER_SIZE - len);
		return KEY_NUMBER_SIZE;
	}
	while (len > 0 && out[len - 1] == 0)
		len--;
	return len;
}

/*
 * Bytes that are ordered as they stand, cut after DP_KEY_PREFIX.  A limit that
 * is not cut ends in a NUL, which no longer one comes before.
 */
static uint32
put_bytes(uint8 *out, uint32 room, const uint8 *bytes, uint32 len, KeyPurpose purpose)
{
	uint32 prefix = DP_KEY_PREFIX - (DP_KEY_VALUE_SIZE - room);

	if (purpose != KEY_EXACT)
	{
		if (len >= prefix)
			len = prefix;
		memcpy(out, bytes, len);
		if (purpose == KEY_END && len < prefix)
			out[len++] = 0;
		return len;
	}
	if (len <= room)
	{
		memcpy(out, bytes, len);
		return len;
	}
	memcpy(out, bytes, prefix);
	return prefix + put_hash(out + prefix, dp_key_hash_final(bytes, len));
}

/*
 * Length, subtype and the first bytes.  The order does not go beyond them, nor
 * beyond the length if it is a long one.
 */
static uint32
put_binary(uint8 *out, const DpValue *value, KeyPurpose purpose)
{
	const uint8 *bytes = value->data + 5;
	uint32 len = value->len - 5;
	uint32 kept = Min(len, KEY_BINARY_DATA);

	out[0] = Min(len, KEY_BINARY_LONG);
	if (len >= KEY_BINARY_LONG && purpose != KEY_EXACT)
		return 1;
	out[1] = value->data[4];
	memcpy(out + 2, bytes, kept);
	if (len <= KEY_BINARY_DATA || purpose != KEY_EXACT)
		return 2 + kept;
	return 2 + kept + put_hash(out + 2 + kept, dp_key_hash_final(bytes, len));
}

/*
 * Milliseconds: six bytes if they are within the limit, the first of which is
 * 1 to 254, else 0 or 255 and all eight.
 */
static uint32
put_date(uint8 *out, int64 ms, KeyPurpose purpose)
{
	uint32 len;

	if (likely(ms >= -KEY_DATE_LIMIT && ms < KEY_DATE_LIMIT))
	{
		put_upper(out, (uint64) (ms + KEY_DATE_BIAS) << 16, 6);
		len = 6;
	}
	else
	{
		out[0] = ms < 0 ? 0 : 255;
		put_upper(out + 1, (uint64) ms ^ UINT64CONST(1) << 63, 8);
		len = 9;
	}
	if (purpose != KEY_END)
		while (len > 0 && out[len - 1] == 0)
			len--;
	return len;
}

/* 0 for an empty array, 1 for one with one element, 2 for others. */
static DpKeyArray
array_kind(const DpValue *value)
{
	DpIter iter;
	DpValue element;

	dp_iter_init_value(&iter, value);
	if (!dp_iter_next_value(&iter, &element))
		return DP_KEY_ARRAY_EMPTY;
	return dp_iter_next_value(&iter, &element) ? DP_KEY_ARRAY_SEVERAL : DP_KEY_ARRAY_ONE;
}

/*
 * The bytes of a value for one of the purposes, and their number.
 */
static inline uint32
put_value(uint8 *out, const DpValue *value, KeyPurpose purpose)
{
	switch (value->type)
	{
		case DP_TYPE_INT32:
			return put_number(out, dp_get_int32(value->data), purpose);
		case DP_TYPE_DOUBLE:
			return put_number(out, dp_get_double(value->data), purpose);
		case DP_TYPE_INT64:
		case DP_TYPE_DECIMAL128:
			return put_number(out, dp_number_approximate(value), purpose);

		case DP_TYPE_STRING:
		case DP_TYPE_SYMBOL:
			return put_bytes(out, DP_KEY_VALUE_SIZE, (const uint8 *) DP_STRING_DATA(value),
							 DP_STRING_LEN(value), purpose);

		case DP_TYPE_REGEX:
			/* without the NUL behind the options */
			return put_bytes(out, DP_KEY_VALUE_SIZE, value->data, value->len - 1, purpose);

		case DP_TYPE_CODE:
			out[0] = 0;
			return 1 + put_bytes(out + 1, DP_KEY_VALUE_SIZE - 1,
								 (const uint8 *) DP_STRING_DATA(value), DP_STRING_LEN(value),
								 purpose);

		case DP_TYPE_CODEWSCOPE:
			out[0] = 1;
			if (purpose != KEY_EXACT)
				return 1;
			return 1 + put_hash(out + 1, dp_value_hash(value, 0));

		case DP_TYPE_DBPOINTER:
			if (purpose != KEY_EXACT)
				return 0;
			return put_hash(out, dp_value_hash(value, 0));

		case DP_TYPE_BINARY:
			return put_binary(out, value, purpose);

		case DP_TYPE_OBJECTID:
			memcpy(out, value->data, KEY_OBJECTID_TIME);
			if (purpose != KEY_EXACT)
				return KEY_OBJECTID_TIME;
			memcpy(out + KEY_OBJECTID_TIME, value->data + KEY_OBJECTID_REST,
				   DP_OBJECTID_SIZE - KEY_OBJECTID_REST);
			return KEY_OBJECTID_TIME + DP_OBJECTID_SIZE - KEY_OBJECTID_REST;

		case DP_TYPE_BOOL:
			out[0] = value->data[0] != 0;
			return out[0] != 0 || purpose == KEY_END ? 1 : 0;

		case DP_TYPE_DATE:
			return put_date(out, dp_get_int64(value->data), purpose);

		case DP_TYPE_TIMESTAMP:
			return put_cut(out, (uint64) dp_get_int64(value->data), purpose);

		case DP_TYPE_DOCUMENT:
		case DP_TYPE_ARRAY:
			/* what is in them decides the order, and is not here */
			if (purpose != KEY_EXACT)
				return 0;
			if (value->type == DP_TYPE_ARRAY)
				out[0] = array_kind(value);
			else
				out[0] = value->len > DP_DOCUMENT_MIN_SIZE;
			return out[0] != 0;

		case DP_TYPE_MINKEY:
		case DP_TYPE_UNDEFINED:
		case DP_TYPE_NULL:
		case DP_TYPE_MAXKEY:
			return 0;

		default:
			dp_corrupted("a field has a type that does not exist");
	}
	return 0; /* not reached */
}

/* The bytes of a value as stored. */
uint32
dp_key_value(const DpValue *value, uint8 *out)
{
	return put_value(out, value, KEY_EXACT);
}

/* ---------------------------------------------------------------- keys to look for */

/* Writes a whole key. */
static void
key_put(DpIndexKey *key, DpKeyBase base, DpKeyClass class, const uint8 *bytes, uint32 len)
{
	uint8 *value = dp_key_put_head(key->bytes, base, class);

	memcpy(value, bytes, len);
	dp_key_put_size(key->bytes, value + len);
}

/* The key of a value, for a purpose. */
static void
key_of_value(DpIndexKey *key, DpKeyBase base, const DpValue *value, KeyPurpose purpose)
{
	uint8 bytes[DP_KEY_VALUE_SIZE];
	uint32 len = put_value(bytes, value, purpose);

	key_put(key, base, (DpKeyClass) dp_key_class[value->type], bytes, len);
}

void
dp_key_exact(DpIndexKey *key, DpKeyBase base, const DpValue *value)
{
	key_of_value(key, base, value, KEY_EXACT);
}

void
dp_key_array(DpIndexKey *key, DpKeyBase base, DpKeyArray array)
{
	uint8 kind = array;

	key_put(key, base, DP_KEY_ARRAY, &kind, kind != DP_KEY_ARRAY_EMPTY);
}

void
dp_key_missing(DpIndexKey *key, DpKeyBase base)
{
	key_put(key, base, DP_KEY_MISSING, (const uint8 *) "", 0);
}

/*
 * A missing limit leaves the class open on that side; code and code with scope share a class,
 * distinguished by their first byte.
 */
void
dp_key_between(DpKeyRange *range, DpKeyBase base, const DpValue *low, const DpValue *high)
{
	const DpValue *any = low != NULL ? low : high;
	DpKeyClass class = (DpKeyClass) dp_key_class[any->type];
	uint8 form = any->type == DP_TYPE_CODEWSCOPE;
	uint32 formlen = class == DP_KEY_CODE;

	if (low != NULL)
		key_of_value(&range->low, base, low, KEY_LOW);
	else
		key_put(&range->low, base, class, &form, formlen);
	if (high != NULL)
		key_of_value(&range->end, base, high, KEY_END);
	else
		key_put(&range->end, base, class, &form, formlen);
}

void
dp_key_prefix(DpKeyRange *range, DpKeyBase base, DpKeyClass class, const char *s, uint32 len)
{
	key_put(&range->low, base, class, (const uint8 *) s, Min(len, DP_KEY_PREFIX));
	range->end = range->low;
}

void
dp_key_classes(DpKeyRange *range, DpKeyBase base, DpKeyClass first, DpKeyClass last)
{
	key_put(&range->low, base, first, (const uint8 *) "", 0);
	key_put(&range->end, base, last, (const uint8 *) "", 0);
}

/* ---------------------------------------------------------------- order */

int
dp_key_after(const uint8 *key, uint32 len, const DpIndexKey *end)
{
	return memcmp(key, DP_KEY_DATA(end), Min(len, DP_KEY_LEN(end))) > 0;
}
