/*
 * varint.h
 *		Integers of few bytes in the extension's own formats, and reading them from untrusted
 *		bytes.
 *
 * A varint has seven bits in a byte, the least significant first; the upper bit is set if more
 * follow. Signed integers are folded first: 0, -1, 1, -2, ...
 */
#ifndef DP_BSON_VARINT_H
#define DP_BSON_VARINT_H

#include "lib/stringinfo.h"

#include "bson/reader.h"

/* Bytes that are left to be read */
typedef struct DpPacked
{
	const uint8 *next;
	const uint8 *end;
} DpPacked;

static inline uint64
dp_fold(int64 i)
{
	return ((uint64) i << 1) ^ (uint64) (i >> 63);
}

static inline int64
dp_unfold(uint64 u)
{
	return (int64) (u >> 1) ^ -(int64) (u & 1);
}

static inline void
dp_pack_varint(StringInfo out, uint64 u)
{
	while (u >= 0x80)
	{
		appendStringInfoCharMacro(out, (char) (u | 0x80));
		u >>= 7;
	}
	appendStringInfoCharMacro(out, (char) u);
}

static inline void
dp_pack_signed(StringInfo out, int64 i)
{
	dp_pack_varint(out, dp_fold(i));
}

/* The next byte.  This and the following raise DATA_CORRUPTED where there are not enough. */
static inline uint8
dp_unpack_byte(DpPacked *p)
{
	if (unlikely(p->next >= p->end))
		dp_corrupted("packed data ends too early");
	return *p->next++;
}

/* The next n bytes. */
static inline const uint8 *
dp_unpack_bytes(DpPacked *p, uint64 n)
{
	const uint8 *bytes = p->next;

	if (unlikely(n > (uint64) (p->end - p->next)))
		dp_corrupted("packed data ends too early");
	p->next += n;
	return bytes;
}

/* The next varint, which must have the minimal number of bytes. */
static inline uint64
dp_unpack_varint(DpPacked *p)
{
	uint64 u = 0;

	for (int shift = 0;; shift += 7)
	{
		uint8 byte = dp_unpack_byte(p);

		if (unlikely(shift == 63 && byte > 1))
			dp_corrupted("a packed integer is too large");
		u |= (uint64) (byte & 0x7F) << shift;
		if ((byte & 0x80) == 0)
		{
			if (unlikely(byte == 0 && shift > 0))
				dp_corrupted("a packed integer is longer than it has to be");
			return u;
		}
	}
}

static inline int64
dp_unpack_signed(DpPacked *p)
{
	return dp_unfold(dp_unpack_varint(p));
}

#endif /* DP_BSON_VARINT_H */
