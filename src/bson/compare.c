/*
 * compare.c
 *		The order of values and documents: see compare.h.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/collation.h"
#include "bson/compare.h"
#include "bson/number.h"

const uint8 dp_type_class[256] = {
	[DP_TYPE_MINKEY] = DP_CLASS_MINKEY,     [DP_TYPE_UNDEFINED] = DP_CLASS_UNDEFINED,
	[DP_TYPE_NULL] = DP_CLASS_NULL,         [DP_TYPE_DOUBLE] = DP_CLASS_NUMBER,
	[DP_TYPE_INT32] = DP_CLASS_NUMBER,      [DP_TYPE_INT64] = DP_CLASS_NUMBER,
	[DP_TYPE_DECIMAL128] = DP_CLASS_NUMBER, [DP_TYPE_STRING] = DP_CLASS_STRING,
	[DP_TYPE_SYMBOL] = DP_CLASS_STRING,     [DP_TYPE_DOCUMENT] = DP_CLASS_DOCUMENT,
	[DP_TYPE_ARRAY] = DP_CLASS_ARRAY,       [DP_TYPE_BINARY] = DP_CLASS_BINARY,
	[DP_TYPE_OBJECTID] = DP_CLASS_OBJECTID, [DP_TYPE_BOOL] = DP_CLASS_BOOL,
	[DP_TYPE_DATE] = DP_CLASS_DATE,         [DP_TYPE_TIMESTAMP] = DP_CLASS_TIMESTAMP,
	[DP_TYPE_REGEX] = DP_CLASS_REGEX,       [DP_TYPE_DBPOINTER] = DP_CLASS_DBPOINTER,
	[DP_TYPE_CODE] = DP_CLASS_CODE,         [DP_TYPE_CODEWSCOPE] = DP_CLASS_CODEWSCOPE,
	[DP_TYPE_MAXKEY] = DP_CLASS_MAXKEY
};

static int
documents_compare(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize, bool names);
static int codes_compare(const DpValue *a, const DpValue *b);

/* Compares two byte strings; a prefix is less than the longer one. */
static inline int
bytes_compare(const void *a, uint32 alen, const void *b, uint32 blen)
{
	int result = memcmp(a, b, Min(alen, blen));

	return result != 0 ? result : (alen > blen) - (alen < blen);
}

/*
 * Compares two runs of bytes, the shorter being less whatever it holds.
 */
static inline int
sized_compare(const void *a, uint32 alen, const void *b, uint32 blen)
{
	return alen != blen ? (alen < blen ? -1 : 1) : memcmp(a, b, alen);
}

int
dp_value_compare(const DpValue *a, const DpValue *b)
{
	uint8 aclass = dp_type_class[a->type];
	uint8 bclass = dp_type_class[b->type];

	if (aclass != bclass)
		return aclass < bclass ? -1 : 1;

	switch ((DpClass) aclass)
	{
		case DP_CLASS_NUMBER:
			return dp_number_compare(a, b);

		case DP_CLASS_STRING:
			if (unlikely(dp_collation != NULL))
				return dp_collation_compare(DP_STRING_DATA(a), DP_STRING_LEN(a), DP_STRING_DATA(b),
											DP_STRING_LEN(b));
			/* FALLTHROUGH */
		case DP_CLASS_CODE:
			return bytes_compare(DP_STRING_DATA(a), DP_STRING_LEN(a), DP_STRING_DATA(b),
								 DP_STRING_LEN(b));

		case DP_CLASS_DOCUMENT:
			return documents_compare(a->data, a->len, b->data, b->len, true);

		case DP_CLASS_ARRAY:
			return documents_compare(a->data, a->len, b->data, b->len, false);

		case DP_CLASS_BINARY:
			/* after the length come the subtype and the bytes */
			return sized_compare(a->data + 4, a->len - 4, b->data + 4, b->len - 4);

		case DP_CLASS_OBJECTID:
			return memcmp(a->data, b->data, DP_OBJECTID_SIZE);

		case DP_CLASS_BOOL:
			return (a->data[0] != 0) - (b->data[0] != 0);

		case DP_CLASS_DATE:
			return dp_int64_compare(dp_get_int64(a->data), dp_get_int64(b->data));

		case DP_CLASS_TIMESTAMP:
		{
			uint64 x = (uint64) dp_get_int64(a->data);
			uint64 y = (uint64) dp_get_int64(b->data);

			return (x > y) - (x < y);
		}

		case DP_CLASS_REGEX:
			/* two texts, each with its NUL, which sorts before everything */
			return bytes_compare(a->data, a->len, b->data, b->len);

		case DP_CLASS_DBPOINTER:
			return sized_compare(a->data, a->len, b->data, b->len);

		case DP_CLASS_CODEWSCOPE:
			return codes_compare(a, b);

		case DP_CLASS_MINKEY:
		case DP_CLASS_UNDEFINED:
		case DP_CLASS_NULL:
		case DP_CLASS_MAXKEY:
			return 0;

		case DP_CLASS_INVALID:
			break;
	}
	dp_corrupted("a field has a type that does not exist");
	return 0; /* not reached */
}

bool
dp_array_holds(const DpValue *array, const DpValue *value)
{
	DpIter iter;
	DpValue element;

	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &element))
	{
		if (dp_value_compare(&element, value) == 0)
			return true;
	}
	return false;
}

int
dp_document_compare(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize)
{
	/* the same bytes are the same document, which is cheap to find out */
	if (asize == bsize && memcmp(a, b, asize) == 0)
		return 0;
	return documents_compare(a, asize, b, bsize, true);
}

/*
 * Compares two documents, or two arrays, whose names do not count.
 */
static int
documents_compare(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize, bool names)
{
	DpIter aiter;
	DpIter biter;
	DpElement x;
	DpElement y;

	check_stack_depth();
	dp_iter_init(&aiter, a, asize);
	dp_iter_init(&biter, b, bsize);
	for (;;)
	{
		bool amore = dp_iter_next(&aiter, &x);
		bool bmore = dp_iter_next(&biter, &y);
		uint8 xclass;
		uint8 yclass;
		int result;

		if (!amore || !bmore)
			return amore - bmore;

		xclass = dp_type_class[x.value.type];
		yclass = dp_type_class[y.value.type];
		if (xclass != yclass)
			return xclass < yclass ? -1 : 1;
		if (names)
		{
			result = bytes_compare(x.name, x.namelen, y.name, y.namelen);
			if (result != 0)
				return result;
		}
		result = dp_value_compare(&x.value, &y.value);
		if (result != 0)
			return result;
	}
}

/*
 * The two parts of code with scope.  Raises DATA_CORRUPTED if they do not fill
 * the value.
 */
static void
code_split(const DpValue *v, DpValue *code, DpValue *scope)
{
	const uint8 *end = v->data + v->len;

	code->type = DP_TYPE_STRING;
	code->data = v->data + 4;
	code->len = dp_value_size(DP_TYPE_STRING, code->data, end);
	scope->type = DP_TYPE_DOCUMENT;
	scope->data = code->data + code->len;
	scope->len = dp_value_size(DP_TYPE_DOCUMENT, scope->data, end);
}

/* Compares two codes with scope. */
static int
codes_compare(const DpValue *a, const DpValue *b)
{
	DpValue acode;
	DpValue ascope;
	DpValue bcode;
	DpValue bscope;
	int result;

	code_split(a, &acode, &ascope);
	code_split(b, &bcode, &bscope);
	result = dp_value_compare(&acode, &bcode);
	return result != 0 ? result : dp_value_compare(&ascope, &bscope);
}

int
dp_value_compare_string(const DpValue *v, const char *s, uint32 len)
{
	uint8 class = dp_type_class[v->type];

	if (unlikely(class != DP_CLASS_STRING))
		return class < DP_CLASS_STRING ? -1 : 1;
	return bytes_compare(DP_STRING_DATA(v), DP_STRING_LEN(v), s, len);
}

/*
 * Up to n bytes as the upper bytes of an integer of eight, zeros below.
 */
static inline uint64
leading_bytes(const void *p, uint32 n)
{
	uint64 result = 0;

	memcpy(&result, p, Min(n, sizeof(result)));
#ifndef WORDS_BIGENDIAN
	result = pg_bswap64(result);
#endif
	return result;
}

/*
 * The abbreviation of a document or an array: the class of the container, the class of the first
 * element (0 if there is none), for a document its name and a NUL, then the remaining bytes of the
 * abbreviation of its value.
 */
static uint64
container_abbreviate(const uint8 *doc, uint32 size, uint8 class)
{
	DpIter iter;
	DpElement element;
	uint64 first;
	uint64 rest;
	uint64 result = (uint64) class << 56;

	dp_iter_init(&iter, doc, size);
	if (!dp_iter_next(&iter, &element))
		return result;
	first = dp_value_abbreviate(&element.value);
	rest = first & UINT64CONST(0xffffffffffffff);
	result |= (first >> 56) << 48;
	if (class == DP_CLASS_ARRAY)
		return result | rest >> 8;
	result |= leading_bytes(element.name, element.namelen) >> 16;
	if (element.namelen < 5)
		result |= rest >> (8 * (element.namelen + 2));
	return result;
}

uint64
dp_document_abbreviate(const uint8 *doc, uint32 size)
{
	return container_abbreviate(doc, size, DP_CLASS_DOCUMENT);
}

uint64
dp_value_abbreviate(const DpValue *v)
{
	uint8 class = dp_type_class[v->type];
	uint64 key; /* its upper seven bytes are used */

	switch ((DpClass) class)
	{
		case DP_CLASS_NUMBER:
		{
			double d = dp_number_approximate(v);
			uint64 bits;

			/* NaN is 0; the sign and the negative ones are turned round */
			if (d != d)
			{
				key = 0;
				break;
			}
			d += 0.0; /* -0.0 becomes 0.0 */
			memcpy(&bits, &d, sizeof(bits));
			key = bits >> 63 ? ~bits : bits | UINT64CONST(1) << 63;
			break;
		}

		case DP_CLASS_STRING:
		case DP_CLASS_CODE:
			key = leading_bytes(DP_STRING_DATA(v), DP_STRING_LEN(v));
			break;

		case DP_CLASS_DOCUMENT:
		case DP_CLASS_ARRAY:
			check_stack_depth();
			return container_abbreviate(v->data, v->len, class);

		case DP_CLASS_BINARY:
			/* two bytes of the length, then subtype and bytes; longer ones are equal */
			if (v->len - 5 < 0xffff)
				key = (uint64) (v->len - 5) << 48 | leading_bytes(v->data + 4, v->len - 4) >> 16;
			else
				key = PG_UINT64_MAX;
			break;

		case DP_CLASS_OBJECTID:
		case DP_CLASS_REGEX:
			key = leading_bytes(v->data, v->len);
			break;

		case DP_CLASS_BOOL:
			key = (uint64) (v->data[0] != 0) << 56;
			break;

		case DP_CLASS_DATE:
		{
			/* milliseconds within a million years; others at the ends */
			int64 ms = dp_get_int64(v->data);

			ms = Max(Min(ms, (INT64CONST(1) << 55) - 1), -(INT64CONST(1) << 55));
			key = (uint64) (ms + (INT64CONST(1) << 55)) << 8;
			break;
		}

		case DP_CLASS_TIMESTAMP:
			key = (uint64) dp_get_int64(v->data);
			break;

		default:
			key = 0;
			break;
	}
	return (uint64) class << 56 | key >> 8;
}

/* ---------------------------------------------------------------- many values */

typedef struct Keyed
{
	uint64 key; /* abbreviated value; 0 with a collation */
	int at;
} Keyed;

/* Equal values keep their order. */
static inline int
keyed_order(const Keyed *a, const Keyed *b, const DpValue *values)
{
	int order;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	order = dp_value_compare(&values[a->at], &values[b->at]);
	return order != 0 ? order : a->at - b->at;
}

#define ST_SORT keyed_sort
#define ST_ELEMENT_TYPE Keyed
#define ST_COMPARE_ARG_TYPE const DpValue
#define ST_COMPARE keyed_order
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

void
dp_values_sort(DpValue *values, int n)
{
	Keyed *keyed;
	DpValue *unsorted;

	if (n < 2)
		return;
	keyed = palloc_extended(sizeof(Keyed) * (Size) n, MCXT_ALLOC_HUGE);
	unsorted = palloc_extended(sizeof(DpValue) * (Size) n, MCXT_ALLOC_HUGE);
	memcpy(unsorted, values, sizeof(DpValue) * (Size) n);
	for (int i = 0; i < n; i++)
	{
		keyed[i].key = dp_collation == NULL ? dp_value_abbreviate(&values[i]) : 0;
		keyed[i].at = i;
	}
	keyed_sort(keyed, n, unsorted);
	for (int i = 0; i < n; i++)
		values[i] = unsorted[keyed[i].at];
	pfree(unsorted);
	pfree(keyed);
}

/*
 * Where a value stands, or -1.
 */
int
dp_values_find(const DpValue *values, int n, const DpValue *value)
{
	int low = 0;

	CHECK_FOR_INTERRUPTS();
	while (low < n)
	{
		int middle = low + (n - low) / 2;
		int order = dp_value_compare(&values[middle], value);

		if (order == 0)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			n = middle;
	}
	return -1;
}
