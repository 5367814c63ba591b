/*
 * codec_string.c
 *		Columns of strings: text, bytes, ids and documents; and the bytes that
 *		all codecs write.
 *
 * Strings are their lengths and their bytes one after the other, compressed as
 * PostgreSQL compresses (pglz) if that makes them smaller.  A column in which
 * strings repeat is a dictionary of different strings, in the order in which
 * they come, and the number of its entry for each value.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "common/pg_lzcompress.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "types/bucket/format.h"

#define METHOD_PLAIN 0
#define METHOD_PGLZ 1

/* Less is not worth the attempt to compress. */
#define MIN_COMPRESS 48

/* the maximum expansion of pglz */
#define PGLZ_MAX_RATIO 100

void
dp_bucket_corrupted(const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("corrupt bucket"),
					errdetail_internal("%s", what)));
}

uint64
dp_cursor_long_varint(DpCursor *c)
{
	uint64 v = 0;

	for (int shift = 0; shift < 64; shift += 7)
	{
		uint8 b = dp_cursor_byte(c);

		if (shift == 63 && b > 1)
			break;
		v |= (uint64) (b & 0x7F) << shift;
		if (b < 0x80)
			return v;
	}
	dp_bucket_corrupted("A number in it is too long.");
}

void
dp_put_varint(StringInfo out, uint64 v)
{
	while (v >= 0x80)
	{
		dp_put_byte(out, (uint8) v | 0x80);
		v >>= 7;
	}
	dp_put_byte(out, (uint8) v);
}

uint8 *
dp_put_room(StringInfo out, Size n)
{
	uint8 *p;

	if (n > MaxAllocSize)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("bucket is too large")));
	enlargeStringInfo(out, (int) n);
	p = (uint8 *) out->data + out->len;
	memset(p, 0, n);
	out->len += (int) n;
	return p;
}

/*
 * Appends the n strings, without saying how many there are.
 */
void
dp_strings_put(StringInfo out, const DpString *strings, int n)
{
	int64 *lengths = palloc_array(int64, n + 1);
	Size total = 0;
	uint8 *all;
	uint8 *p;

	for (int i = 0; i < n; i++)
	{
		lengths[i] = strings[i].len;
		total += strings[i].len;
	}
	dp_ints_encode_sized(out, lengths, n, 0);
	pfree(lengths);
	if (total > MaxAllocSize / 2)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("bucket is too large")));

	all = p = palloc(total + 1);
	for (int i = 0; i < n; i++)
	{
		if (strings[i].len > 0)
			memcpy(p, strings[i].data, strings[i].len);
		p += strings[i].len;
	}
	if (total >= MIN_COMPRESS)
	{
		char *packed = palloc(PGLZ_MAX_OUTPUT(total));
		int32 size = pglz_compress((const char *) all, (int32) total, packed, PGLZ_strategy_always);

		if (size >= 0 && (Size) size + 4 < total && total / PGLZ_MAX_RATIO < (Size) size)
		{
			dp_put_byte(out, METHOD_PGLZ);
			dp_put_varint(out, size);
			appendBinaryStringInfo(out, packed, size);
			pfree(packed);
			pfree(all);
			return;
		}
		pfree(packed);
	}
	dp_put_byte(out, METHOD_PLAIN);
	appendBinaryStringInfo(out, (const char *) all, (int) total);
	pfree(all);
}

void
dp_strings_get(DpCursor *c, int n, DpString *strings)
{
	int64 *lengths = palloc_array(int64, n + 1);
	uint64 total = 0;
	const uint8 *p = NULL;

	dp_ints_decode_sized(c, n, 0, lengths);
	for (int i = 0; i < n; i++)
	{
		if (lengths[i] < 0 || lengths[i] > MaxAllocSize)
			dp_bucket_corrupted("The length of a string is wrong.");
		total += lengths[i];
	}
	if (total > MaxAllocSize / 2)
		dp_bucket_corrupted("Its strings are too long.");
	switch (dp_cursor_byte(c))
	{
		case METHOD_PLAIN:
			p = dp_cursor_bytes(c, total);
			break;
		case METHOD_PGLZ:
		{
			uint32 size = dp_cursor_size(c, c->end - c->p);
			const uint8 *packed = dp_cursor_bytes(c, size);
			char *all;

			if (total / PGLZ_MAX_RATIO >= size)
				dp_bucket_corrupted("Its strings are too long.");
			all = palloc(total + 1);
			if (pglz_decompress((const char *) packed, size, all, (int32) total, true) !=
				(int32) total)
				dp_bucket_corrupted("Its strings cannot be decompressed.");
			p = (const uint8 *) all;
			break;
		}
		default:
			dp_bucket_corrupted("There is no such compression of strings.");
	}
	for (int i = 0; i < n; i++)
	{
		strings[i].data = p;
		strings[i].len = (uint32) lengths[i];
		p += lengths[i];
	}
	pfree(lengths);
}

/*
 * Finds the different strings: codes gets the number of each, which counts from
 * 0 in the order in which they come, and distinct their positions.  Gives up,
 * with -1, when there are more than limit.
 */
static int
find_distinct(const DpString *strings, int n, int limit, int64 *codes, int *distinct)
{
	int size = pg_nextpower2_32(2 * limit + 2);
	int *table = palloc0_array(int, size);
	int count = 0;

	for (int i = 0; i < n; i++)
	{
		const DpString *s = &strings[i];
		uint32 at;

		/* often the one before */
		if (i > 0 && s->len == s[-1].len &&
			(s->data == s[-1].data || memcmp(s->data, s[-1].data, s->len) == 0))
		{
			codes[i] = codes[i - 1];
			continue;
		}
		at = hash_bytes(s->data, (int) s->len) & (size - 1);
		while (table[at] != 0)
		{
			const DpString *t = &strings[distinct[table[at] - 1]];

			if (t->len == s->len && memcmp(t->data, s->data, s->len) == 0)
				break;
			at = (at + 1) & (size - 1);
		}
		if (table[at] == 0)
		{
			if (count == limit)
			{
				pfree(table);
				return -1;
			}
			distinct[count++] = i;
			table[at] = count;
		}
		codes[i] = table[at] - 1;
	}
	pfree(table);
	return count;
}

/*
 * Appends the strings in the form STRINGS or DICTIONARY, which is returned.
 */
DpForm
dp_strings_encode(StringInfo out, const DpString *strings, int n)
{
	int64 *codes;
	int *distinct;
	int ndistinct;
	DpString *entries;

	if (n < 2)
	{
		dp_strings_put(out, strings, n);
		return DP_FORM_STRINGS;
	}
	codes = palloc_array(int64, n);
	distinct = palloc_array(int, n / 2 + 1);
	ndistinct = find_distinct(strings, n, n / 2, codes, distinct);
	if (ndistinct < 0)
		dp_strings_put(out, strings, n);
	else
	{
		entries = palloc_array(DpString, ndistinct);
		for (int i = 0; i < ndistinct; i++)
			entries[i] = strings[distinct[i]];
		dp_put_varint(out, ndistinct);
		dp_ints_encode_sized(out, codes, n, 0);
		dp_strings_put(out, entries, ndistinct);
		pfree(entries);
	}
	pfree(codes);
	pfree(distinct);
	return ndistinct < 0 ? DP_FORM_STRINGS : DP_FORM_DICTIONARY;
}

int
dp_strings_dictionary(DpCursor c, int n, int64 *codes, DpString **entries)
{
	int nentries = dp_cursor_size(&c, n);

	*entries = palloc_array(DpString, nentries + 1);
	dp_ints_decode_sized(&c, n, 0, codes);
	dp_strings_get(&c, nentries, *entries);
	dp_cursor_done(&c);
	for (int i = 0; i < n; i++)
	{
		if (unlikely((uint64) codes[i] >= (uint64) nentries))
			dp_bucket_corrupted("There is no such entry in the dictionary.");
	}
	return nentries;
}

/*
 * Equal strings of a dictionary have the same address.
 */
void
dp_strings_decode(DpCursor c, DpForm form, int n, DpString *strings)
{
	if (form == DP_FORM_STRINGS)
	{
		dp_strings_get(&c, n, strings);
		dp_cursor_done(&c);
	}
	else if (form == DP_FORM_DICTIONARY)
	{
		int64 *codes = palloc_array(int64, n + 1);
		DpString *entries;

		(void) dp_strings_dictionary(c, n, codes, &entries);
		for (int i = 0; i < n; i++)
			strings[i] = entries[codes[i]];
		pfree(codes);
		pfree(entries);
	}
	else
		dp_bucket_corrupted("Strings are not packed in that way.");
}
