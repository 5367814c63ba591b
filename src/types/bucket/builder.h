/*
 * builder.h
 *		The state of a bucket builder.
 */
#ifndef DP_TYPES_BUCKET_BUILDER_H
#define DP_TYPES_BUCKET_BUILDER_H

#include "bson/cast.h"
#include "types/bucket/format.h"

/*
 * A column while rows are collected: one entry per row in each array that it
 * has.
 */
typedef struct DpBuilderColumn
{
	uint8 kind;
	Oid typid;  /* not of fields */
	int parent; /* -1, or the split column whose field it is */
	char *name;
	int namelen;
	int nnulls;
	int nmissing;
	int nfields; /* split: how many fields it has so far */
	int nwhole;  /* split: rows that are in strings, too; their types[] is 1 */
	int64 *ints; /* integers, or bits of doubles */
	uint8 *presence;
	uint8 *types; /* as in DpValues */
	DpString *strings;
	DpConverter *converter; /* VALUE: from the type, if it is not bson_value */
	FmgrInfo *output;       /* OTHER */
	bool isvarlena;
} DpBuilderColumn;

struct DpBucketBuilder
{
	MemoryContext mcxt;
	MemoryContext strings; /* what strings point to; reset with the rows */
	MemoryContext work;    /* for packing; reset after it */
	int flags;
	int ncolumns;
	int nfields;
	int maxcolumns;
	DpBuilderColumn *columns; /* fields come after the others */
	int count;
	int capacity;
	bool sorted;
	int64 *times;
	Size bound;
};

/* A builder whose columns are given by their kinds, one after the other. */
extern DpBucketBuilder *dp_builder_create(MemoryContext mcxt, int flags);
extern void dp_builder_add(DpBucketBuilder *b, DpPackedKind kind, const char *name, int namelen);

/* As dp_bucket_append(), with values that may be missing; datums are of the kinds' own types. */
extern void
dp_builder_append(DpBucketBuilder *b, int64 time, const Datum *values, const uint8 *presence);

/*
 * The output and input functions of a type, under fixed settings so that the text is always the
 * same. Results are palloc'd.
 */
extern char *dp_portable_output(FmgrInfo *output, Datum d);
extern Datum dp_portable_input(FmgrInfo *input, char *text, Oid ioparam, int32 typmod);

#endif /* DP_TYPES_BUCKET_BUILDER_H */
