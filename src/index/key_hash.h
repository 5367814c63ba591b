/*
 * key_hash.h
 *		Hashes, heads and the order of keys, inline, for files that make or compare millions of
 *		keys.
 *
 * The hash takes blocks of eight bytes, little-endian; the last one, of 0 to 7 bytes, is padded
 * with zeros.  Each is
 *
 *		h = (h XOR block) * 0x9fb21c651e98df25 mod 2^64;  h = h XOR (h >> 32)
 *
 * with h being the seed, or the previous hash.  Names contain no zeros, so the blocks determine
 * where a name ends.
 */
#ifndef DP_INDEX_KEY_HASH_H
#define DP_INDEX_KEY_HASH_H

#include "index/key.h"

#define DP_KEY_HASH_FACTOR UINT64CONST(0x9fb21c651e98df25)

static inline uint64
dp_key_hash_block(uint64 h, uint64 block)
{
	h = (h ^ block) * DP_KEY_HASH_FACTOR;
	return h ^ (h >> 32);
}

/* Eight bytes as a little-endian integer. */
static inline uint64
dp_key_load(const uint8 *p)
{
	return (uint64) dp_get_int64(p);
}

/* The hash of some bytes. */
static inline uint64
dp_key_hash(const uint8 *p, uint32 len, uint64 seed)
{
	uint64 last = 0;

	for (; len >= 8; p += 8, len -= 8)
		seed = dp_key_hash_block(seed, dp_key_load(p));
	for (uint32 i = 0; i < len; i++)
		last |= (uint64) p[i] << (8 * i);
	return dp_key_hash_block(seed, last);
}

/* The same of a value, beginning with its length: all bits are good. */
static inline uint64
dp_key_hash_final(const uint8 *p, uint32 len)
{
	return dp_key_hash(p, len, DP_KEY_ROOT ^ len) * DP_KEY_HASH_FACTOR;
}

/* Big-endian loads */
static inline uint32
dp_key_load32(const uint8 *p)
{
	uint32 v;

	memcpy(&v, p, sizeof(v));
	return pg_ntoh32(v);
}

static inline uint64
dp_key_load64(const uint8 *p)
{
	uint64 v;

	memcpy(&v, p, sizeof(v));
	return pg_ntoh64(v);
}

/* How many bytes the heads have that begin so. */
static inline uint32
dp_key_head_size(DpKeyBase base)
{
	return base & 1 ? 1 : DP_KEY_HEAD_SIZE;
}

/*
 * Writes the head of a key that begins, with its header, at p.  Returns the position of its value.
 */
static inline uint8 *
dp_key_put_head(uint8 *p, DpKeyBase base, DpKeyClass class)
{
	uint32 head = pg_hton32(base | class);

	if (base & 1)
	{
		p[1] = base >> 24 | class;
		return p + 2;
	}
	memcpy(p + 1, &head, DP_KEY_HEAD_SIZE);
	return p + 1 + DP_KEY_HEAD_SIZE;
}

/* Writes the header of a key that reaches from p to its end. */
static inline void
dp_key_put_size(uint8 *p, const uint8 *end)
{
	SET_VARSIZE_SHORT(p, end - p);
}

/*
 * Compares keys byte by byte, then the shorter first.  Most differ in the first four or eight
 * bytes, which are read as integers; the last integer may overlap the previous one.
 */
static inline int
dp_key_order(const uint8 *a, uint32 alen, const uint8 *b, uint32 blen)
{
	uint32 len = Min(alen, blen);

	if (likely(len >= 8))
	{
		uint64 x = dp_key_load64(a);
		uint64 y = dp_key_load64(b);

		if (x != y)
			return x < y ? -1 : 1;
		if (len > 16)
		{
			x = dp_key_load64(a + 8);
			y = dp_key_load64(b + 8);
			if (x != y)
				return x < y ? -1 : 1;
		}
		if (len > 8)
		{
			x = dp_key_load64(a + len - 8);
			y = dp_key_load64(b + len - 8);
			if (x != y)
				return x < y ? -1 : 1;
		}
	}
	else if (likely(len >= 4))
	{
		uint32 x = dp_key_load32(a);
		uint32 y = dp_key_load32(b);

		if (x != y)
			return x < y ? -1 : 1;
		x = dp_key_load32(a + len - 4);
		y = dp_key_load32(b + len - 4);
		if (x != y)
			return x < y ? -1 : 1;
	}
	else
	{
		for (uint32 i = 0; i < len; i++)
			if (a[i] != b[i])
				return a[i] < b[i] ? -1 : 1;
	}
	return (alen > blen) - (alen < blen);
}

#endif /* DP_INDEX_KEY_HASH_H */
