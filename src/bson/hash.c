/*
 * hash.c
 *		Hashing consistent with the order: values that compare equal have the same hash.
 *
 * Hash-partitioned tables store rows by these hashes, so they can never change.  The hash of a
 * value begins with its class (DpClass, which cannot change either), followed by its canonical
 * bytes, each step using the previous hash as the seed of PostgreSQL's hash_bytes_extended():
 *
 *		number			int64 if it is one: class 4, eight bytes;
 *						else double if it is one: class 0x104, eight bytes;
 *						else: class 0x204, a byte of sign, the position of the
 *						point as an int32, the significant digits, one to a byte
 *						(all little-endian)
 *		string, code	the bytes without length and NUL
 *		document		for each element the name and the hash of the value,
 *						then the number of elements
 *		array			the same without names
 *		code with scope	the bytes of the code, then the hash of the scope
 *		bool			one byte, 0 or 1
 *		others			the bytes unchanged, without the length of a binary or
 *						pointer; nothing for classes of one value
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"

#include "bson/compare.h"
#include "bson/number.h"

static uint64 container_hash(const uint8 *doc, uint32 size, DpClass class, uint64 seed);

/* A hash that begins with the class. */
static inline uint64
hash_begin(uint32 class, uint64 seed)
{
	return hash_bytes_uint32_extended(class, seed);
}

/*
 * The hash of a number in canonical form.
 */
uint64
dp_number_hash(const DpNumber *number, uint64 seed)
{
	uint8 bytes[8];
	uint64 hash = hash_begin(DP_CLASS_NUMBER | (uint32) number->kind << 8, seed);

	switch (number->kind)
	{
		case DP_NUMBER_INTEGER:
			dp_put_int64(bytes, number->i);
			return hash_bytes_extended(bytes, 8, hash);
		case DP_NUMBER_DOUBLE:
			if (number->d != number->d)
				dp_put_int64(bytes, DP_DOUBLE_NAN);
			else
				dp_put_double(bytes, number->d);
			return hash_bytes_extended(bytes, 8, hash);
		case DP_NUMBER_DECIMAL:
			bytes[0] = number->exact.negative ? 1 : 0;
			dp_put_int32(bytes + 1, number->exact.point);
			hash = hash_bytes_extended(bytes, 5, hash);
			return hash_bytes_extended(number->exact.digits, number->exact.ndigits, hash);
	}
	return hash;
}

/*
 * The hash of a string that stands anywhere.
 */
uint64
dp_string_hash(const char *s, uint32 len, uint64 seed)
{
	return hash_bytes_extended((const unsigned char *) s, len, hash_begin(DP_CLASS_STRING, seed));
}

/*
 * The hash of a document.
 */
uint64
dp_document_hash(const uint8 *doc, uint32 size, uint64 seed)
{
	return container_hash(doc, size, DP_CLASS_DOCUMENT, seed);
}

/*
 * The hash of a value.  Raises ERRCODE_DATA_CORRUPTED.
 */
uint64
dp_value_hash(const DpValue *v, uint64 seed)
{
	DpClass class = (DpClass) dp_type_class[v->type];

	switch (class)
	{
		case DP_CLASS_NUMBER:
		{
			uint8 buf[DP_EXACT_MAX_DIGITS];
			DpNumber number;

			dp_number_from_value(&number, v, buf);
			return dp_number_hash(&number, seed);
		}

		case DP_CLASS_STRING:
			return dp_string_hash(DP_STRING_DATA(v), DP_STRING_LEN(v), seed);

		case DP_CLASS_CODE:
			return hash_bytes_extended((const unsigned char *) DP_STRING_DATA(v), DP_STRING_LEN(v),
									   hash_begin(class, seed));

		case DP_CLASS_DOCUMENT:
		case DP_CLASS_ARRAY:
			return container_hash(v->data, v->len, class, seed);

		case DP_CLASS_BINARY:
		case DP_CLASS_DBPOINTER:
			return hash_bytes_extended(v->data + 4, v->len - 4, hash_begin(class, seed));

		case DP_CLASS_BOOL:
		{
			uint8 byte = v->data[0] != 0;

			return hash_bytes_extended(&byte, 1, hash_begin(class, seed));
		}

		case DP_CLASS_CODEWSCOPE:
		{
			const uint8 *code = v->data + 4;
			const uint8 *end = v->data + v->len;
			uint32 codelen = dp_value_size(DP_TYPE_STRING, code, end);
			const uint8 *scope = code + codelen;

			seed = hash_bytes_extended(code + 4, codelen - 5, hash_begin(class, seed));
			return container_hash(scope, dp_value_size(DP_TYPE_DOCUMENT, scope, end),
								  DP_CLASS_DOCUMENT, seed);
		}

		case DP_CLASS_OBJECTID:
		case DP_CLASS_DATE:
		case DP_CLASS_TIMESTAMP:
		case DP_CLASS_REGEX:
			return hash_bytes_extended(v->data, v->len, hash_begin(class, seed));

		case DP_CLASS_MINKEY:
		case DP_CLASS_UNDEFINED:
		case DP_CLASS_NULL:
		case DP_CLASS_MAXKEY:
			return hash_begin(class, seed);

		case DP_CLASS_INVALID:
			break;
	}
	dp_corrupted("a field has a type that does not exist");
	return 0; /* not reached */
}

/*
 * The hash of a document or an array.
 */
static uint64
container_hash(const uint8 *doc, uint32 size, DpClass class, uint64 seed)
{
	DpIter iter;
	DpElement element;
	uint32 count = 0;

	check_stack_depth();
	seed = hash_begin(class, seed);
	dp_iter_init(&iter, doc, size);
	while (dp_iter_next(&iter, &element))
	{
		if (class == DP_CLASS_DOCUMENT)
			seed = hash_bytes_extended((const unsigned char *) element.name, element.namelen, seed);
		seed = dp_value_hash(&element.value, seed);
		count++;
	}
	return hash_begin(count, seed);
}
