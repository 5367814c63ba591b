/*
 * distinct.c
 *		Sketches of distinct values: HyperLogLog.
 *
 * The upper 11 bits of a 64-bit hash choose a register, which keeps the greatest rank (leading
 * zeros plus one) of the other bits.  While there are few values, their hashes are kept instead,
 * truncated to 32 bits: the upper 27 bits and the rank of the rest, which determine the register
 * and its rank.
 *
 * The estimate is that of O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches"
 * (2017), which needs no tables and has no biased range.
 */
#include "postgres.h"

#include <math.h>

#include "port/pg_bitutils.h"

#include "bson/distinct.h"
#include "bson/varint.h"

#define VERSION 1
#define FORM_SPARSE 0
#define FORM_DENSE 1

/* Bits of a hash that is kept: those that make its place, and those of the rank of the rest */
#define PLACE_BITS 27
#define RANK_BITS 5
#define RANK_MASK ((1 << RANK_BITS) - 1)

/* Bits of the place behind those that choose the register */
#define TAIL_BITS (PLACE_BITS - DP_DISTINCT_BITS)

void
dp_distinct_init(DpDistinct *sketch)
{
	sketch->dense = false;
	sketch->nsparse = 0;
}

/*
 * The hash with its bits mixed once more (the finalizer of MurmurHash3): those of
 * a hash of an integer are not even enough for ranks.
 */
static inline uint64
hash_mix(uint64 hash)
{
	hash ^= hash >> 33;
	hash *= UINT64CONST(0xFF51AFD7ED558CCD);
	hash ^= hash >> 33;
	hash *= UINT64CONST(0xC4CEB9FE1A85EC53);
	return hash ^ (hash >> 33);
}

/* Zeros in front of the bits, plus one, at most what a register holds. */
static inline int
rank_of(uint64 bits)
{
	if (bits == 0)
		return DP_DISTINCT_MAX_RANK;
	return Min(64 - pg_leftmost_one_pos64(bits), DP_DISTINCT_MAX_RANK);
}

/* The register of a hash, and its rank. */
static inline uint32
register_of_hash(uint64 hash, int *rank)
{
	*rank = rank_of(hash << DP_DISTINCT_BITS);
	return (uint32) (hash >> (64 - DP_DISTINCT_BITS));
}

/* The kept form of a hash while there are few. */
static inline uint32
sparse_of_hash(uint64 hash)
{
	return (uint32) (hash >> (64 - PLACE_BITS)) << RANK_BITS | (uint32) rank_of(hash << PLACE_BITS);
}

/* The register of a hash that was kept, and its rank. */
static inline uint32
register_of_sparse(uint32 kept, int *rank)
{
	uint32 tail = (kept >> RANK_BITS) & ((1 << TAIL_BITS) - 1);

	if (tail != 0)
		*rank = TAIL_BITS - pg_leftmost_one_pos32(tail);
	else
		*rank = Min(TAIL_BITS + (int) (kept & RANK_MASK), DP_DISTINCT_MAX_RANK);
	return kept >> (32 - DP_DISTINCT_BITS);
}

/* Goes over to registers. */
static void
make_dense(DpDistinct *sketch)
{
	uint8 registers[DP_DISTINCT_REGISTERS] = { 0 };

	for (int i = 0; i < sketch->nsparse; i++)
	{
		int rank;
		uint32 at = register_of_sparse(sketch->sparse[i], &rank);

		registers[at] = Max(registers[at], rank);
	}
	memcpy(sketch->registers, registers, sizeof(registers));
	sketch->dense = true;
	sketch->nsparse = 0;
}

/* Adds a hash that was kept to registers. */
static void
add_kept_dense(DpDistinct *sketch, uint32 kept)
{
	int rank;
	uint32 at = register_of_sparse(kept, &rank);

	sketch->registers[at] = Max(sketch->registers[at], rank);
}

/* Adds a kept hash. */
static void
add_kept(DpDistinct *sketch, uint32 kept)
{
	int low = 0;
	int high = sketch->nsparse;

	if (sketch->dense)
	{
		add_kept_dense(sketch, kept);
		return;
	}
	while (low < high)
	{
		int middle = (low + high) / 2;

		if (sketch->sparse[middle] >> RANK_BITS < kept >> RANK_BITS)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < sketch->nsparse && sketch->sparse[low] >> RANK_BITS == kept >> RANK_BITS)
	{
		sketch->sparse[low] = Max(sketch->sparse[low], kept);
		return;
	}
	if (sketch->nsparse == DP_DISTINCT_SPARSE)
	{
		make_dense(sketch);
		add_kept_dense(sketch, kept);
		return;
	}
	memmove(sketch->sparse + low + 1, sketch->sparse + low,
			sizeof(uint32) * (sketch->nsparse - low));
	sketch->sparse[low] = kept;
	sketch->nsparse++;
}

void
dp_distinct_add(DpDistinct *sketch, uint64 hash)
{
	hash = hash_mix(hash);
	if (sketch->dense)
	{
		int rank;
		uint32 at = register_of_hash(hash, &rank);

		if (sketch->registers[at] < rank)
			sketch->registers[at] = rank;
	}
	else
		add_kept(sketch, sparse_of_hash(hash));
}

void
dp_distinct_merge(DpDistinct *sketch, const DpDistinct *other)
{
	if (other->dense)
	{
		if (!sketch->dense)
			make_dense(sketch);
		for (int i = 0; i < DP_DISTINCT_REGISTERS; i++)
			sketch->registers[i] = Max(sketch->registers[i], other->registers[i]);
	}
	else
	{
		for (int i = 0; i < other->nsparse; i++)
			add_kept(sketch, other->sparse[i]);
	}
}

/* x + x^2 + 2 x^4 + 4 x^8 + ...: the contribution of registers that are 0. */
static double
sigma(double x)
{
	double y = 1;
	double z = x;
	double before;

	do
	{
		x *= x;
		before = z;
		z += x * y;
		y += y;
	} while (z != before);
	return z;
}

/* The same for the registers that are full. */
static double
tau(double x)
{
	double y = 1;
	double z = 1 - x;
	double before;

	if (x == 0 || x == 1)
		return 0;
	do
	{
		x = sqrt(x);
		before = z;
		y *= 0.5;
		z -= (1 - x) * (1 - x) * y;
	} while (z != before);
	return z / 3;
}

int64
dp_distinct_count(const DpDistinct *sketch)
{
	const double m = DP_DISTINCT_REGISTERS;
	int counts[DP_DISTINCT_MAX_RANK + 1] = { 0 };
	double z;

	/* of a hundred million places hardly two are the same */
	if (!sketch->dense)
		return sketch->nsparse;
	for (int i = 0; i < DP_DISTINCT_REGISTERS; i++)
		counts[sketch->registers[i]]++;
	if (counts[0] == DP_DISTINCT_REGISTERS)
		return 0;
	z = m * tau(1 - counts[DP_DISTINCT_MAX_RANK] / m);
	for (int k = DP_DISTINCT_MAX_RANK - 1; k >= 1; k--)
		z = 0.5 * (z + counts[k]);
	z += m * sigma(counts[0] / m);
	if (z <= 0)
		return PG_INT64_MAX;
	z = m * m / (2 * M_LN2 * z);
	return z < (double) PG_INT64_MAX ? (int64) rint(z) : PG_INT64_MAX;
}

/* ---------------------------------------------------------------- bytes */

/* The five bits of a register: those of its byte and the next. */
static inline int
register_get(const uint8 *bytes, uint32 at)
{
	uint32 bit = at * 5;
	uint32 pair = bytes[bit / 8];

	if (bit % 8 > 3)
		pair |= (uint32) bytes[bit / 8 + 1] << 8;
	return (pair >> (bit % 8)) & DP_DISTINCT_MAX_RANK;
}

/* Sets bits of a register that may be 0. */
static inline void
register_set(uint8 *bytes, uint32 at, int rank)
{
	uint32 bit = at * 5;
	uint32 mask = (uint32) DP_DISTINCT_MAX_RANK << (bit % 8);
	uint32 pair = (uint32) rank << (bit % 8);

	bytes[bit / 8] = (bytes[bit / 8] & ~mask) | pair;
	if (bit % 8 > 3)
		bytes[bit / 8 + 1] = (bytes[bit / 8 + 1] & ~(mask >> 8)) | (pair >> 8);
}

void
dp_distinct_pack(StringInfo out, const DpDistinct *sketch)
{
	appendStringInfoChar(out, VERSION);
	if (!sketch->dense)
	{
		uint32 before = 0;

		appendStringInfoChar(out, FORM_SPARSE);
		for (int i = 0; i < sketch->nsparse; i++)
		{
			dp_pack_varint(out, sketch->sparse[i] - before);
			before = sketch->sparse[i];
		}
	}
	else
	{
		uint8 *bytes;

		appendStringInfoChar(out, FORM_DENSE);
		enlargeStringInfo(out, DP_DISTINCT_DENSE_SIZE - 2);
		bytes = (uint8 *) out->data + out->len;
		memset(bytes, 0, DP_DISTINCT_DENSE_SIZE - 2);
		for (int i = 0; i < DP_DISTINCT_REGISTERS; i++)
			register_set(bytes, i, sketch->registers[i]);
		out->len += DP_DISTINCT_DENSE_SIZE - 2;
		out->data[out->len] = '\0';
	}
}

void
dp_distinct_unpack(DpDistinct *sketch, const uint8 *bytes, uint32 len)
{
	DpPacked p = { bytes, bytes + len };
	uint8 form;

	dp_distinct_init(sketch);
	if (dp_unpack_byte(&p) != VERSION)
		dp_corrupted("a sketch has an unknown version");
	form = dp_unpack_byte(&p);
	if (form == FORM_DENSE)
	{
		if (len != DP_DISTINCT_DENSE_SIZE)
			dp_corrupted("a sketch has a wrong length");
		sketch->dense = true;
		for (int i = 0; i < DP_DISTINCT_REGISTERS; i++)
			sketch->registers[i] = register_get(p.next, i);
	}
	else if (form == FORM_SPARSE)
	{
		uint64 before = 0;

		while (p.next < p.end)
		{
			uint64 step = dp_unpack_varint(&p);
			uint64 kept = before + step;

			if (step > PG_UINT32_MAX || kept > PG_UINT32_MAX ||
				sketch->nsparse == DP_DISTINCT_SPARSE || (kept & RANK_MASK) == 0 ||
				(sketch->nsparse > 0 && kept >> RANK_BITS == before >> RANK_BITS))
				dp_corrupted("a sketch has a hash that cannot be");
			sketch->sparse[sketch->nsparse++] = (uint32) kept;
			before = kept;
		}
	}
	else
		dp_corrupted("a sketch has an unknown form");
}

bool
dp_distinct_add_packed(uint8 *bytes, uint32 len, uint64 hash, bool *changed)
{
	int rank;
	uint32 at;

	if (len != DP_DISTINCT_DENSE_SIZE || bytes[0] != VERSION || bytes[1] != FORM_DENSE)
		return false;
	at = register_of_hash(hash_mix(hash), &rank);
	*changed = register_get(bytes + 2, at) < rank;
	if (*changed)
		register_set(bytes + 2, at, rank);
	return true;
}
