/*
 * distinct.h
 *		Sketches that estimate the number of distinct values.
 *
 * A sketch (HyperLogLog) has about 1.3 kB for any number of values, and less for few; two sketches
 * can be merged.  Up to DP_DISTINCT_SPARSE values are counted exactly, beyond them with a standard
 * error of 2.3 %.  Equal values of different types count once: they have the same dp_value_hash().
 *
 * Stored sketches are the data of a Binary (docs/formats.md).  Equal sets of values have equal
 * sketches, in any order of adding and merging.
 */
#ifndef DP_BSON_DISTINCT_H
#define DP_BSON_DISTINCT_H

#include "lib/stringinfo.h"

#include "bson/reader.h"

/* Bits of the hash that choose a register, and registers */
#define DP_DISTINCT_BITS 11
#define DP_DISTINCT_REGISTERS (1 << DP_DISTINCT_BITS)

/* The most a register of five bits holds */
#define DP_DISTINCT_MAX_RANK 31

/* Hashes that are kept, truncated to 32 bits */
#define DP_DISTINCT_SPARSE 300

/*
 * Bytes of a packed sketch: version and form, then five bits for each register or fewer bytes of
 * hashes
 */
#define DP_DISTINCT_DENSE_SIZE (2 + DP_DISTINCT_REGISTERS * 5 / 8)

/* Subtype of the Binary */
#define DP_DISTINCT_SUBTYPE 0x80

/* A sketch that values are added to */
typedef struct DpDistinct
{
	bool dense;
	int nsparse;
	union
	{
		uint32 sparse[DP_DISTINCT_SPARSE];      /* ascending, each place (upper 27 bits) once */
		uint8 registers[DP_DISTINCT_REGISTERS]; /* if dense */
	};
} DpDistinct;

/* A sketch of nothing. */
extern void dp_distinct_init(DpDistinct *sketch);

/* Adds the value of this hash (of seed 0). */
extern void dp_distinct_add(DpDistinct *sketch, uint64 hash);

/* Adds all that another sketch has taken in. */
extern void dp_distinct_merge(DpDistinct *sketch, const DpDistinct *other);

/* How many distinct values there were. */
extern int64 dp_distinct_count(const DpDistinct *sketch);

/* Appends the packed sketch. */
extern void dp_distinct_pack(StringInfo out, const DpDistinct *sketch);

/* Reads a packed sketch.  Raises DATA_CORRUPTED for invalid bytes. */
extern void dp_distinct_unpack(DpDistinct *sketch, const uint8 *bytes, uint32 len);

/*
 * Adds a hash to a packed sketch in place, if that changes at most a register.  Returns false if
 * the sketch has to be unpacked; sets *changed if a byte changed.
 */
extern bool dp_distinct_add_packed(uint8 *bytes, uint32 len, uint64 hash, bool *changed);

#endif /* DP_BSON_DISTINCT_H */
