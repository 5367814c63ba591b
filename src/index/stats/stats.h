/*
 * stats.h
 *		Statistics of the documents of a column, path by path.
 *
 * A path here leaves positions in arrays out: releases.date is where
 * releases.0.date and releases.1.date lead.  The values at a path:
 *
 *		values		what the fields hold, in each document and in each document
 *					that is an element of an array on the way
 *		documents	values that are documents, and elements of values that are arrays
 *		items		values and elements of values that are neither documents,
 *					arrays, null nor undefined: these are counted, compared and
 *					sorted
 *
 * All shares are of the documents that are not null, between 0 and 1; numbers
 * "per document" are averages over the same documents.
 *
 * On disk this is one slot of pg_statistic of the kind DP_STATISTIC_KIND, whose
 * numbers are DpStatsHeader and whose values are bytea, one for each path, most
 * frequent first: a document with the fields that stats_pack.c lists.
 * docs/formats.md has it byte by byte.
 */
#ifndef DP_INDEX_STATS_STATS_H
#define DP_INDEX_STATS_STATS_H

#include "access/htup.h"

#include "bson/compare.h"
#include "bson/path.h"

/* Kinds from 10000 on are for use between friends; this is "BS" as a number. */
#define DP_STATISTIC_KIND 16979
#define DP_STATISTIC_VERSION 1

/* The numbers of the slot */
typedef enum DpStatsHeader
{
	DP_STATS_VERSION,
	DP_STATS_DOCUMENTS, /* documents read */
	DP_STATS_COMPLETE,  /* 1: all paths of those are there; 0: the rarest are not */
	DP_STATS_LOWEST,    /* share of documents that the rarest path that is there has */
	DP_STATS_NUMBERS
} DpStatsHeader;

/* Sizes of the summaries of how many there are */
#define DP_STATS_QUANTILES 11 /* the least, the tenths, the most */
#define DP_STATS_LENGTHS 16   /* most common lengths of arrays */

/* Types are numbered 0 to 20: MinKey, those of the format, MaxKey. */
#define DP_STATS_TYPES 21

static inline int
dp_stats_type_number(uint8 type)
{
	return type == DP_TYPE_MINKEY ? 0 : type == DP_TYPE_MAXKEY ? DP_STATS_TYPES - 1 : type;
}

static inline uint8
dp_stats_type_of_number(int number)
{
	return number == 0 ? DP_TYPE_MINKEY : number == DP_STATS_TYPES - 1 ? DP_TYPE_MAXKEY : number;
}

typedef struct DpPathStats
{
	const char *text; /* the text of the path, not terminated */
	uint32 textlen;
	const char *key; /* its names, each followed by a NUL */
	uint32 keylen;

	/* shares of documents */
	float4 reached; /* have a value at the path */
	float4 direct;  /* the operator -> finds one */
	float4 scalar;  /* -> finds one that is an item */
	float4 nullish; /* {path: null} matches */
	float4 barren; /* no path below leads anywhere, not even to nothing: arrays without documents */
	float4 arrays; /* have an array at the path */
	float4 item_docs;                    /* have an item */
	float4 types[DP_STATS_TYPES];        /* have a value, or an element of an array, of the type */
	float4 direct_types[DP_STATS_TYPES]; /* -> finds a value of the type */

	/* numbers per document */
	float4 values;
	float4 documents;
	float4 elements; /* of the arrays at the path */
	float4 items;

	/* different items: a number, or if negative a multiple of the number of documents */
	float4 n_distinct;
	bool multiple; /* some documents have more than one item */

	/* lengths of the arrays at the path, and items per document that has any */
	float4 lengths[DP_STATS_QUANTILES];
	float4 counts[DP_STATS_QUANTILES];
	int nlengths;
	int32 common_lengths[DP_STATS_LENGTHS];
	float4 length_shares[DP_STATS_LENGTHS]; /* of the arrays */

	/*
	 * The most common items: the share of the documents that have one, and how often it occurs per
	 * document.
	 */
	int nmcv;
	const DpValue *mcv;
	const float4 *mcv_docs;
	const float4 *mcv_items; /* the same pointer unless multiple */

	/* Further items by the lower half of their hash, in its order: equality only. */
	int ntail;
	const uint32 *tail;
	const float4 *tail_docs;
	double tail_total; /* their sum; not packed */

	/*
	 * All items but the most common: pairs of document and different item, items, and a histogram.
	 */
	float4 rest_docs;
	float4 rest_items;
	int nhist;
	const DpValue *hist; /* long strings are cut */
} DpPathStats;

typedef struct DpStats
{
	double documents;
	double lowest;
	bool complete;
	int npaths;
	DpPathStats *paths;         /* most frequent first */
	struct DpStatsIndex *index; /* by key, for dp_stats_find() */
} DpStats;

/*
 * The statistics in a tuple of pg_statistic, or NULL if there are none of this kind and version.
 * They are cached while the tuple stays the same, and valid until the end of the transaction; those
 * of extended statistics are in the current memory context.
 */
extern const DpStats *dp_stats_of_tuple(HeapTuple tuple);

/* The statistics of a path given by its key; NULL if there are none. */
extern const DpPathStats *dp_stats_find(const DpStats *stats, const char *key, uint32 keylen);

/*
 * From a path to bytes (palloc'd, with a varlena header) and back (false: the bytes are not what
 * they should be).
 */
extern struct varlena *dp_stats_pack(const DpPathStats *path);
extern bool dp_stats_unpack(const uint8 *bytes, uint32 size, DpPathStats *path);

#endif /* DP_INDEX_STATS_STATS_H */
