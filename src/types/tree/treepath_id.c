/*
 * treepath_id.c
 *		Ids as bytes of a path, and back; treepath.h describes the bytes.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "bson/cast.h"
#include "bson/number.h"
#include "bson/validate.h"
#include "types/tree/treepath.h"

/* First bytes of ids */
#define ID_MINKEY 0x01
#define ID_NULL 0x02
#define ID_NEGATIVE 0x10 /* less the number of bytes */
#define ID_ONE 0x20
#define ID_TWO 0x80
#define ID_THREE 0xC0
#define ID_MORE 0xE0
#define ID_MORE_LAST 0xE5
#define ID_NUMBER 0xE8
#define ID_STRING 0xF0
#define ID_BINARY 0xF1
#define ID_UUID 0xF2
#define ID_OBJECTID 0xF4
#define ID_FALSE 0xF5
#define ID_TRUE 0xF6
#define ID_DATE 0xF7
#define ID_TIMESTAMP 0xF8
#define ID_MAXKEY 0xFF

/* Integers from here on take two, three and more bytes */
#define TWO_FROM 96
#define THREE_FROM (TWO_FROM + 16384)
#define MORE_FROM (THREE_FROM + 2097152)

/* In an ID_NUMBER, behind the double */
#define NUMBER_LESS 0x40
#define NUMBER_EXACT 0x80
#define NUMBER_GREATER 0xC0

#define EXPONENT_BIAS 32768

#define SIGN_BIT (UINT64CONST(1) << 63)

/* In an ID_STRING */
#define STRING_END 0x00
#define STRING_ESCAPE 0x01

static void number_append(DpTreepathBuilder *b, const DpValue *id);
static void number_read(const uint8 *p, const uint8 *end, DpValue *value, uint8 *room);

void
dp_treepath_begin(DpTreepathBuilder *b)
{
	b->cap = 64;
	b->buf = palloc(b->cap);
	b->len = VARHDRSZ;
	b->ended = false;
}

/* Room for n bytes at the end, which the caller fills. */
static uint8 *
reserve(DpTreepathBuilder *b, uint32 n)
{
	uint8 *p;

	if (unlikely(b->ended))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("MaxKey can only be the last id of a path")));
	if (unlikely(n > MaxAllocSize - b->len))
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("path is too long")));
	if (b->len + n > b->cap)
	{
		b->cap = (uint32) Min((Size) MaxAllocSize, Max((Size) b->cap * 2, (Size) b->len + n));
		b->buf = repalloc(b->buf, b->cap);
	}
	p = b->buf + b->len;
	b->len += n;
	return p;
}

struct varlena *
dp_treepath_finish(DpTreepathBuilder *b)
{
	SET_VARSIZE(b->buf, b->len);
	return (struct varlena *) b->buf;
}

void
dp_treepath_append_ids(DpTreepathBuilder *b, const uint8 *ids, uint32 size)
{
	if (size == 0)
		return;
	memcpy(reserve(b, size), ids, size);
	if (unlikely(ids[size - 1] == ID_MAXKEY))
		b->ended = *dp_treepath_last(ids, size) == ID_MAXKEY;
}

void
dp_treepath_append_maxkey(DpTreepathBuilder *b)
{
	if (b->ended)
		return;
	*reserve(b, 1) = ID_MAXKEY;
	b->ended = true;
}

struct varlena *
dp_treepath_of_ids(const uint8 *ids, uint32 size)
{
	struct varlena *result = palloc(VARHDRSZ + size);

	SET_VARSIZE(result, VARHDRSZ + size);
	if (size > 0)
		memcpy(VARDATA(result), ids, size);
	return result;
}

/* Writes the last n bytes of i, big-endian. */
static inline void
put_bytes(uint8 *p, uint64 i, int n)
{
	while (n-- > 0)
		*p++ = (uint8) (i >> (8 * n));
}

static inline uint64
get_bytes(const uint8 *p, int n)
{
	uint64 i = 0;

	while (n-- > 0)
		i = i << 8 | *p++;
	return i;
}

/* The number of bytes that i takes, at least 1. */
static inline int
bytes_of(uint64 i)
{
	int n = 1;

	while (n < 8 && i >> (8 * n) != 0)
		n++;
	return n;
}

void
dp_treepath_append_integer(DpTreepathBuilder *b, int64 id)
{
	uint8 *p;

	if (id < 0)
	{
		int n = bytes_of(~(uint64) id);

		p = reserve(b, 1 + n);
		*p = ID_NEGATIVE - n;
		put_bytes(p + 1, (uint64) id, n);
	}
	else if (id < TWO_FROM)
		*reserve(b, 1) = ID_ONE + id;
	else if (id < THREE_FROM)
		put_bytes(reserve(b, 2), (ID_TWO << 8) + (id - TWO_FROM), 2);
	else if (id < MORE_FROM)
		put_bytes(reserve(b, 3), (ID_THREE << 16) + (id - THREE_FROM), 3);
	else
	{
		int n = bytes_of((uint64) id);

		p = reserve(b, 1 + n);
		*p = ID_MORE + n - 3;
		put_bytes(p + 1, (uint64) id, n);
	}
}

void
dp_treepath_append_string(DpTreepathBuilder *b, const char *id, uint32 len)
{
	uint32 escapes = 0;
	uint8 *p;

	for (uint32 i = 0; i < len; i++)
		escapes += (uint8) id[i] <= STRING_ESCAPE;
	p = reserve(b, len + escapes + 2);
	*p++ = ID_STRING;
	if (likely(escapes == 0))
	{
		memcpy(p, id, len);
		p += len;
	}
	else
		for (uint32 i = 0; i < len; i++)
		{
			if ((uint8) id[i] <= STRING_ESCAPE)
			{
				*p++ = STRING_ESCAPE;
				*p++ = id[i] + 1;
			}
			else
				*p++ = id[i];
		}
	*p = STRING_END;
}

/* Appends an id of a first byte and n more. */
static void
plain_append(DpTreepathBuilder *b, uint8 first, const uint8 *bytes, uint32 n)
{
	uint8 *p = reserve(b, n + 1);

	*p = first;
	if (n > 0)
		memcpy(p + 1, bytes, n);
}

void
dp_treepath_append_objectid(DpTreepathBuilder *b, const uint8 *id)
{
	plain_append(b, ID_OBJECTID, id, DP_OBJECTID_SIZE);
}

void
dp_treepath_append_uuid(DpTreepathBuilder *b, const uint8 *id)
{
	plain_append(b, ID_UUID, id, 16);
}

void
dp_treepath_append_value(DpTreepathBuilder *b, const DpValue *id)
{
	uint8 *p;

	switch (id->type)
	{
		case DP_TYPE_INT32:
			dp_treepath_append_integer(b, dp_get_int32(id->data));
			break;
		case DP_TYPE_INT64:
			dp_treepath_append_integer(b, dp_get_int64(id->data));
			break;
		case DP_TYPE_DOUBLE:
		case DP_TYPE_DECIMAL128:
			number_append(b, id);
			break;
		case DP_TYPE_STRING:
		case DP_TYPE_SYMBOL:
			dp_treepath_append_string(b, DP_STRING_DATA(id), DP_STRING_LEN(id));
			break;
		case DP_TYPE_BINARY:
			/* length, subtype, bytes */
			if (id->data[4] == DP_BINARY_UUID && id->len == 5 + 16)
			{
				dp_treepath_append_uuid(b, id->data + 5);
				break;
			}
			p = reserve(b, 1 + id->len);
			*p = ID_BINARY;
			put_bytes(p + 1, id->len - 5, 4);
			memcpy(p + 5, id->data + 4, id->len - 4);
			break;
		case DP_TYPE_OBJECTID:
			dp_treepath_append_objectid(b, id->data);
			break;
		case DP_TYPE_BOOL:
			*reserve(b, 1) = id->data[0] ? ID_TRUE : ID_FALSE;
			break;
		case DP_TYPE_DATE:
		case DP_TYPE_TIMESTAMP:
			p = reserve(b, 9);
			*p = id->type == DP_TYPE_DATE ? ID_DATE : ID_TIMESTAMP;
			put_bytes(p + 1,
					  (uint64) dp_get_int64(id->data) ^ (id->type == DP_TYPE_DATE ? SIGN_BIT : 0),
					  8);
			break;
		case DP_TYPE_NULL:
			*reserve(b, 1) = ID_NULL;
			break;
		case DP_TYPE_MINKEY:
			*reserve(b, 1) = ID_MINKEY;
			break;
		case DP_TYPE_MAXKEY:
			if (b->ended)
				(void) reserve(b, 1);
			dp_treepath_append_maxkey(b);
			break;
		default:
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("a value of type \"%s\" cannot be the id of a node",
								   dp_type_name(id->type))));
	}
}

/* The bytes of a double, in order: -NaN is not among them. */
static uint64
double_to_ordered(double d)
{
	uint64 bits;

	if (isnan(d))
		return 0;
	memcpy(&bits, &d, sizeof(bits));
	return bits & SIGN_BIT ? ~bits : bits | SIGN_BIT;
}

static double
double_from_ordered(uint64 bits)
{
	double d;

	if (bits == 0)
		bits = DP_DOUBLE_NAN;
	else
		bits = bits & SIGN_BIT ? bits & ~SIGN_BIT : ~bits;
	memcpy(&d, &bits, sizeof(d));
	return d;
}

/* Appends a double or a decimal128, as an integer if it is one. */
static void
number_append(DpTreepathBuilder *b, const DpValue *id)
{
	uint8 digits[DP_EXACT_MAX_DIGITS];
	DpNumber number;
	uint8 *p;
	uint8 turn;

	dp_number_from_value(&number, id, digits);
	if (number.kind == DP_NUMBER_INTEGER)
	{
		dp_treepath_append_integer(b, number.i);
		return;
	}
	p = reserve(b, 10);
	*p = ID_NUMBER;
	put_bytes(p + 1, double_to_ordered(number.d), 8);
	if (number.kind == DP_NUMBER_DOUBLE)
	{
		p[9] = NUMBER_EXACT;
		return;
	}
	p[9] = number.side < 0 ? NUMBER_LESS : NUMBER_GREATER;
	turn = number.exact.negative ? 0xFF : 0;
	p = reserve(b, number.exact.ndigits + 3);
	put_bytes(p, (uint64) (number.exact.point + EXPONENT_BIAS), 2);
	p[0] ^= turn;
	p[1] ^= turn;
	p += 2;
	for (int i = 0; i < number.exact.ndigits; i++)
		*p++ = (number.exact.digits[i] + 1) ^ turn;
	*p = turn;
}

/* Raises DATA_CORRUPTED */
static void
corrupted(void)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("path is corrupt"),
					errdetail("An id in it is not terminated or has an unknown kind.")));
}

/* The size of the id at p, or 0 if it does not end before end or is invalid. */
static uint32
id_size(const uint8 *p, const uint8 *end)
{
	uint32 avail = end - p;
	uint32 size;
	uint8 first = *p;
	const uint8 *q;

	if (likely(first >= ID_ONE && first < ID_TWO))
		return 1;
	if (first >= ID_TWO && first < ID_THREE)
		size = 2;
	else if (first >= ID_THREE && first < ID_MORE)
		size = 3;
	else if (first >= ID_MORE && first <= ID_MORE_LAST)
		size = 1 + first - ID_MORE + 3;
	else if (first >= ID_NEGATIVE - 8 && first < ID_NEGATIVE)
		size = 1 + ID_NEGATIVE - first;
	else
		switch (first)
		{
			case ID_STRING:
				q = memchr(p + 1, STRING_END, avail - 1);
				return q == NULL ? 0 : q + 1 - p;
			case ID_OBJECTID:
				size = 1 + DP_OBJECTID_SIZE;
				break;
			case ID_UUID:
				size = 17;
				break;
			case ID_DATE:
			case ID_TIMESTAMP:
				size = 9;
				break;
			case ID_BINARY:
				if (avail < 6)
					return 0;
				size = (uint32) get_bytes(p + 1, 4);
				if (size > avail - 6)
					return 0;
				size += 6;
				break;
			case ID_NUMBER:
				if (avail < 10)
					return 0;
				if (p[9] == NUMBER_EXACT)
					return 10;
				if (avail < 12)
					return 0;
				/* a number is negative if the first bit of its double is not set */
				q = memchr(p + 12, p[1] & 0x80 ? 0 : 0xFF, avail - 12);
				return q == NULL ? 0 : q + 1 - p;
			case ID_FALSE:
			case ID_TRUE:
			case ID_NULL:
			case ID_MINKEY:
			case ID_MAXKEY:
				return 1;
			default:
				return 0;
		}
	return size <= avail ? size : 0;
}

uint32
dp_treepath_id_size(const uint8 *p, const uint8 *end)
{
	uint32 size = id_size(p, end);

	if (unlikely(size == 0))
		corrupted();
	return size;
}

bool
dp_treepath_id_integer(const uint8 *id, uint32 size, int64 *result)
{
	uint8 first = *id;

	if (first >= ID_ONE && first < ID_TWO)
		*result = first - ID_ONE;
	else if (first >= ID_TWO && first < ID_THREE)
		*result = (int64) (get_bytes(id, 2) & 0x3FFF) + TWO_FROM;
	else if (first >= ID_THREE && first < ID_MORE)
		*result = (int64) (get_bytes(id, 3) & 0x1FFFFF) + THREE_FROM;
	else if (first >= ID_MORE && first <= ID_MORE_LAST)
		*result = (int64) get_bytes(id + 1, size - 1);
	else if (first >= ID_NEGATIVE - 8 && first < ID_NEGATIVE)
	{
		/* the bytes in front are all ones */
		uint64 bits = get_bytes(id + 1, size - 1);

		if (size - 1 < 8)
			bits |= ~UINT64CONST(0) << (8 * (size - 1));
		*result = (int64) bits;
	}
	else
		return false;
	return true;
}

bool
dp_treepath_id_string(const uint8 *id, uint32 size, char **result, uint32 *len)
{
	char *s;

	if (*id != ID_STRING)
		return false;
	s = *result = palloc(size);
	for (const uint8 *p = id + 1; p < id + size - 1; p++)
	{
		if (unlikely(*p == STRING_ESCAPE))
		{
			p++;
			if (p >= id + size - 1 || *p == 0 || *p > STRING_ESCAPE + 1)
				corrupted();
			*s++ = *p - 1;
		}
		else
			*s++ = *p;
	}
	*s = '\0';
	*len = s - *result;
	return true;
}

/*
 * The value of an ID_NUMBER: a double, or a decimal128 whose bytes go to room.
 */
static void
number_read(const uint8 *p, const uint8 *end, DpValue *value, uint8 *room)
{
	uint8 digits[DP_EXACT_MAX_DIGITS];
	DpExact exact;
	uint8 turn;

	value->data = room;
	if (p[9] == NUMBER_EXACT)
	{
		value->type = DP_TYPE_DOUBLE;
		value->len = 8;
		dp_put_double(room, double_from_ordered(get_bytes(p + 1, 8)));
		return;
	}
	exact.rank = 0;
	exact.negative = (p[1] & 0x80) == 0;
	turn = exact.negative ? 0xFF : 0;
	exact.point = ((p[10] ^ turn) << 8 | (p[11] ^ turn)) - EXPONENT_BIAS;
	exact.ndigits = end - p - 13;
	exact.digits = digits;
	if (exact.ndigits < 1 || exact.ndigits > 34)
		corrupted();
	for (int i = 0; i < exact.ndigits; i++)
	{
		digits[i] = (p[12 + i] ^ turn) - 1;
		if (digits[i] > 9)
			corrupted();
	}
	value->type = DP_TYPE_DECIMAL128;
	value->len = DP_DECIMAL128_SIZE;
	dp_exact_round_to_decimal128(&exact, 0, room);
}

void
dp_treepath_id_append(DpBuilder *b, const char *name, uint32 namelen, const uint8 *id, uint32 size)
{
	int64 i;
	char *s;
	uint32 len;
	DpValue value;
	uint8 room[DP_DECIMAL128_SIZE];

	if (dp_treepath_id_integer(id, size, &i))
	{
		if (i >= PG_INT32_MIN && i <= PG_INT32_MAX)
			dp_builder_append_int32(b, name, namelen, (int32) i);
		else
			dp_builder_append_int64(b, name, namelen, i);
		return;
	}
	if (dp_treepath_id_string(id, size, &s, &len))
	{
		dp_builder_append_string(b, name, namelen, s, len);
		pfree(s);
		return;
	}
	value.data = room;
	value.len = 0;
	switch (*id)
	{
		case ID_NUMBER:
			number_read(id, id + size, &value, room);
			break;
		case ID_BINARY:
			dp_builder_append_binary(b, name, namelen, id[5], id + 6, size - 6);
			return;
		case ID_UUID:
			dp_builder_append_binary(b, name, namelen, DP_BINARY_UUID, id + 1, 16);
			return;
		case ID_OBJECTID:
			value.type = DP_TYPE_OBJECTID;
			value.data = id + 1;
			value.len = DP_OBJECTID_SIZE;
			break;
		case ID_FALSE:
		case ID_TRUE:
			dp_builder_append_bool(b, name, namelen, *id == ID_TRUE);
			return;
		case ID_DATE:
			dp_builder_append_date(b, name, namelen, (int64) (get_bytes(id + 1, 8) ^ SIGN_BIT));
			return;
		case ID_TIMESTAMP:
			value.type = DP_TYPE_TIMESTAMP;
			value.len = 8;
			dp_put_int64(room, (int64) get_bytes(id + 1, 8));
			break;
		case ID_NULL:
			dp_builder_append_null(b, name, namelen);
			return;
		case ID_MINKEY:
			value.type = DP_TYPE_MINKEY;
			break;
		case ID_MAXKEY:
			value.type = DP_TYPE_MAXKEY;
			break;
		default:
			corrupted();
	}
	dp_builder_append_value(b, name, namelen, &value);
}

struct varlena *
dp_treepath_id_to_value(const uint8 *id, uint32 size)
{
	DpBuilder b;
	uint8 type;

	dp_builder_init_value(&b, size + 16);
	dp_treepath_id_append(&b, "", 0, id, size);
	type = dp_builder_strip_element(&b);
	return dp_builder_finish_value(&b, type);
}

const char *
dp_treepath_fault(const uint8 *ids, uint32 size)
{
	const uint8 *end = ids + size;

	for (const uint8 *p = ids; p < end;)
	{
		uint32 n = id_size(p, end);
		DpTreepathBuilder again;
		struct varlena *value;
		DpValue v;
		DpFault fault;
		bool same;
		bool is_maxkey;

		if (n == 0)
			return "An id does not end or is of no known kind.";
		value = dp_treepath_id_to_value(p, n);
		v = dp_value_of_varlena(value);
		if (!dp_validate_value(v.type, v.data, v.len, &fault))
			return "An id is not a valid value.";
		dp_treepath_begin(&again);
		dp_treepath_append_value(&again, &v);
		is_maxkey = v.type == DP_TYPE_MAXKEY;
		same = again.len - VARHDRSZ == n && memcmp(again.buf + VARHDRSZ, p, n) == 0;
		pfree(again.buf);
		pfree(value);
		if (!same)
			return "An id is not in the form that it would be written in.";
		p += n;
		if (is_maxkey && p < end)
			return "MaxKey is not the last id.";
	}
	return NULL;
}

int
dp_treepath_count(const uint8 *ids, uint32 size)
{
	const uint8 *end = ids + size;
	int n = 0;

	for (const uint8 *p = ids; p < end; n++)
		p += dp_treepath_id_size(p, end);
	return n;
}

const uint8 *
dp_treepath_last(const uint8 *ids, uint32 size)
{
	const uint8 *end = ids + size;
	const uint8 *last = ids;

	Assert(size > 0);
	for (const uint8 *p = ids; p < end;)
	{
		last = p;
		p += dp_treepath_id_size(p, end);
	}
	return last;
}

uint32
dp_treepath_common(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize, int *count)
{
	const uint8 *end = a + asize;
	const uint8 *p = a;

	*count = 0;
	while (p < end)
	{
		uint32 n = dp_treepath_id_size(p, end);

		if (p + n - a > bsize || memcmp(p, b + (p - a), n) != 0)
			break;
		p += n;
		(*count)++;
	}
	return p - a;
}
