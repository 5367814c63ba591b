/*
 * bucket.h
 *		The type bucket: many measurements of one group, packed by column.
 *
 * A bucket contains rows in the order of their times (or of arrival, if times are equal or
 * missing). Each column is packed separately, and a header contains for every column the number of
 * values, their minimum, maximum and sum.  format.h and docs/formats.md describe the bytes; other
 * code needs only this file:
 *
 *		builder		rows in, a bucket out
 *		reader		the header, the summaries and the columns of a bucket
 *		whole		merge, slice, validate
 *
 * A bucket is positional (made for a relation, which has the names and types of its columns) or
 * named (made by bucket_agg).  A column of type bson with documents can be split into its fields,
 * which are then columns, too; see DpPackedColumnDef.
 *
 * All readers raise DATA_CORRUPTED for bytes that are not a bucket.
 */
#ifndef DP_TYPES_BUCKET_BUCKET_H
#define DP_TYPES_BUCKET_BUCKET_H

#include "bson/layout.h"
#include "datatype/timestamp.h"
#include "nodes/pg_list.h"

/* No bucket has more rows, or more columns. */
#define DP_BUCKET_MAX_COUNT 1000000
#define DP_BUCKET_MAX_COLUMNS 32767

/* The type of a column's values.  The numbers are on disk. */
typedef enum DpPackedKind
{
	DP_PACKED_NOTHING = 0, /* no value at all so far */
	DP_PACKED_BOOL = 1,
	DP_PACKED_INT2 = 2,
	DP_PACKED_INT4 = 3,
	DP_PACKED_INT8 = 4,
	DP_PACKED_FLOAT4 = 5,
	DP_PACKED_FLOAT8 = 6,
	DP_PACKED_NUMERIC = 7,
	DP_PACKED_DATE = 8,
	DP_PACKED_TIME = 9,
	DP_PACKED_TIMESTAMP = 10,
	DP_PACKED_TIMESTAMPTZ = 11,
	DP_PACKED_TEXT = 12, /* text and varchar */
	DP_PACKED_BYTEA = 13,
	DP_PACKED_UUID = 14,
	DP_PACKED_OBJECTID = 15,
	DP_PACKED_VALUE = 16,          /* bson_value */
	DP_PACKED_DOCUMENT = 17,       /* bson, whole */
	DP_PACKED_SPLIT_DOCUMENT = 18, /* bson, with separate columns for its fields */
	DP_PACKED_OTHER = 19           /* any other type, as the text of its output function */
} DpPackedKind;

/* Whether a row has a value in a column */
#define DP_PACKED_PRESENT 0
#define DP_PACKED_NULL 1
#define DP_PACKED_MISSING 2

/*
 * The kind that values of a SQL type are stored as; domains are looked
 * through.  Every type has one.
 */
extern DpPackedKind dp_bucket_kind(Oid typid);

/*
 * The SQL type that a kind decodes to without conversion; text for OTHER, bson_value for NOTHING.
 */
extern Oid dp_bucket_kind_type(DpPackedKind kind);

/* ---------------------------------------------------------------- builder */

/* One of the columns that a bucket is to have. */
typedef struct DpPackedColumnDef
{
	Oid typid;
	const char *name; /* for named buckets, else NULL; copied */
	bool split;       /* typid is bson: split the documents into their fields */
	bool as_value;    /* types without a kind become bson_value, not text */
} DpPackedColumnDef;

/* Flags of dp_bucket_builder_create() */
#define DP_BUCKET_TIMELESS 0x01 /* rows have no time */
#define DP_BUCKET_NAMED 0x02    /* the names of columns are stored */

typedef struct DpBucketBuilder DpBucketBuilder;

/*
 * Creates a builder for any number of buckets, one after the other, in its own child context of
 * mcxt. Raises DUPLICATE_COLUMN, TOO_MANY_COLUMNS.
 */
extern DpBucketBuilder *dp_bucket_builder_create(MemoryContext mcxt, int flags, int ncolumns,
												 const DpPackedColumnDef *columns);
extern void dp_bucket_builder_free(DpBucketBuilder *b);

/* Forget the rows, keep the columns and the memory. */
extern void dp_bucket_builder_reset(DpBucketBuilder *b);

/*
 * Append a row; everything is copied.  time is a number of microseconds since
 * 2000 as in timestamptz (ignored when timeless); rows may come in any order of
 * time.  Datums may be toasted.  Raises DATETIME_VALUE_OUT_OF_RANGE for
 * infinities, PROGRAM_LIMIT_EXCEEDED beyond DP_BUCKET_MAX_COUNT.
 */
extern void
dp_bucket_append(DpBucketBuilder *b, int64 time, const Datum *values, const bool *isnull);

/*
 * Append rows [from, to) of a bucket, whose top-level columns have to be of the builder's kinds;
 * those that it has not are missing.
 */
struct DpBucketReader;
extern void dp_bucket_append_bucket(DpBucketBuilder *b, struct DpBucketReader *r, int from, int to);

/* The number of rows so far. */
extern int dp_bucket_builder_count(const DpBucketBuilder *b);

/* A bound on the bytes that the bucket will have: it may come out much smaller, never larger. */
extern Size dp_bucket_builder_bound(const DpBucketBuilder *b);

/*
 * The rows so far as a bucket, palloc'd in the current context, with a short varlena header if
 * possible.  NULL without rows.  The builder keeps its rows: more can be appended, or
 * dp_bucket_builder_reset() called.
 */
extern struct varlena *dp_bucket_builder_finish(DpBucketBuilder *b);

/* ---------------------------------------------------------------- reader */

/* The summary of a column's values in the header. */
typedef struct DpBucketSummary
{
	int nvalues;  /* rows that have a value */
	int nnulls;   /* rows that are NULL */
	int nmissing; /* rows without the field */

	/*
	 * min and max are exact. They are there unless the kind has none (text, documents and so on),
	 * there is no value, or (numeric, bson_value) the values are not all scaled integers.  sum is
	 * there for int2, int4, int8, float4, float8, numeric, bool (the number of true) and
	 * bson_values that all have one of the number types; not if it exceeds int64.
	 *
	 * With scale >= 0 the integers i are the exact values and sum, each to be divided by 10^scale,
	 * and the doubles d are the same values rounded once.  With scale -1 (float4, float8) there are
	 * only the doubles: min and max exact in PostgreSQL's order (NaN the greatest), sum of the
	 * doubles.
	 */
	bool has_range;
	bool has_sum;
	int scale;
	int64 min_i;
	int64 max_i;
	int64 sum_i;
	double min_d;
	double max_d;
	double sum_d;
	/* numeric: how many digits min, max and sum have after the point */
	int min_scale;
	int max_scale;
	int sum_scale;
} DpBucketSummary;

typedef struct DpPackedColumn
{
	uint8 kind;       /* DpPackedKind */
	uint8 bson_type;  /* VALUE: the type that all values have, or 0 */
	bool integers;    /* the values are integers (unscaled or scaled): min_i and so on are valid */
	int16 parent;     /* field of a split document: that column; else -1 */
	const char *name; /* not terminated; NULL in positional buckets, except fields */
	int namelen;
	DpBucketSummary summary;

	/* for the reader */
	uint8 form; /* how the values are packed */
	uint8 scale;
	uint32 offset; /* where the packed values begin */
	uint32 size;
} DpPackedColumn;

typedef struct DpBucketReader
{
	/* Filled in by dp_bucket_open() */
	uint8 flags; /* DP_BUCKET_TIMELESS, DP_BUCKET_NAMED */
	int count;   /* rows, at least 1 */
	int64 first; /* the least and the greatest time; 0 when timeless */
	int64 last;
	int ncolumns; /* top-level columns */
	int nfields;  /* fields of split documents, which come after them */
	uint32 total; /* size of the bucket in bytes, without varlena header */

	/*
	 * All columns, fields included. Those below nparsed are valid; use
	 * dp_bucket_column().
	 */
	DpPackedColumn *columns;

	/* Of split documents only these fields (String) are assembled; NIL: all.  Set by the user. */
	List *fields;

	/* for the reader */
	int nparsed;
	int maxcolumns;
	const uint8 *data;  /* the bytes from the start of the bucket */
	uint32 avail;       /* how many of them are there */
	uint32 header;      /* size of the header */
	const uint8 *next;  /* header of the next column to be parsed */
	uint32 next_data;   /* where its values begin */
	uint32 time_offset; /* the packed times */
	uint32 time_size;
	uint8 time_unit;
	Datum stored;       /* where the rest is, if avail < total */
	MemoryContext mcxt; /* holds columns, scratch and what was detoasted */
	struct varlena *detoasted;
	struct DpBucketScratch *scratch;
} DpBucketReader;

/*
 * A reader can be used for several buckets in turn, which needs no more memory.  Its results stay
 * in mcxt until dp_bucket_reader_free().
 */
extern void dp_bucket_reader_init(DpBucketReader *r, MemoryContext mcxt);
extern void dp_bucket_reader_free(DpBucketReader *r);

/*
 * The number of rows according to a stored bucket's header, for estimates: 0 if unknown.  Raises
 * nothing for corrupt buckets.
 */
extern int dp_bucket_count_said(Datum bucket);

/*
 * Opens a stored bucket.  Of one that is stored out of line only the header is
 * fetched until a column is decoded.  The datum must stay valid while the
 * bucket is read.  Parses only what comes before the first column.
 */
extern void dp_bucket_open(DpBucketReader *r, Datum bucket);

/* Opens the size bytes of a bucket without varlena header. */
extern void dp_bucket_open_bytes(DpBucketReader *r, const uint8 *bytes, Size size);

/* Column i (fields of split documents have the numbers from ncolumns on), its summary included. */
extern const DpPackedColumn *dp_bucket_parse_column(DpBucketReader *r, int i);

static inline const DpPackedColumn *
dp_bucket_column(DpBucketReader *r, int i)
{
	if (likely(i < r->nparsed))
		return &r->columns[i];
	return dp_bucket_parse_column(r, i);
}

/*
 * The column of that name (in named buckets), or the field of that name of the column parent; -1 if
 * none.
 */
extern int dp_bucket_find_column(DpBucketReader *r, int parent, const char *name, int namelen);

/*
 * min, max and sum of a column as core's aggregates would return them for the
 * column's SQL type: min and max of that type, sum(bool) and sum(int2) and
 * sum(int4) as int8, sum(int8) as numeric, sum(float4) as float4, sum(numeric)
 * as numeric with the scale that it has.  Palloc'd in the current context.
 * false if the summary has it not: then the values have to be read.
 */
extern bool dp_bucket_min(const DpPackedColumn *column, Datum *result);
extern bool dp_bucket_max(const DpPackedColumn *column, Datum *result);
extern bool dp_bucket_sum(const DpPackedColumn *column, Datum *result);

/*
 * Decoding.  The arrays have room for r->count entries, one per row; rows
 * without a value are set to 0 and isnull to true (isnull may be NULL).
 */

/* The times, ascending.  Not for timeless buckets. */
extern void dp_bucket_times(DpBucketReader *r, int64 *times);

/*
 * bool, int2, int4, int8, date (days), time, timestamp, timestamptz (microseconds); bson_values of
 * type int, long, bool and date (ms)
 */
extern void dp_bucket_int64s(DpBucketReader *r, int column, int64 *values, bool *isnull);

/*
 * The numbers of any column that has integers or doubles; scaled numerics are rounded.  false if
 * there is something else in it.
 */
extern bool dp_bucket_doubles(DpBucketReader *r, int column, double *values, bool *isnull);

/*
 * The values as datums of the SQL type, palloc'd in the current context where
 * passed by reference (equal values may share their memory).  typid may be the
 * column's own type or one that it can be read as: integers as wider integers,
 * text and OTHER as any type by its input function, BSON values by dp_value_to_datum().
 */
extern void dp_bucket_datums(DpBucketReader *r, int column, Oid typid, int32 typmod, Datum *values,
							 bool *isnull);

/*
 * The values as BSON values, in the current context; rows without a value have type 0.  Times are
 * truncated to milliseconds, as everywhere in BSON; OTHER becomes strings.  Split documents are
 * assembled again, byte for byte.
 */
extern void dp_bucket_values(DpBucketReader *r, int column, DpValue *values);

/* DP_PACKED_PRESENT, _NULL or _MISSING for each row. */
extern void dp_bucket_presence(DpBucketReader *r, int column, uint8 *presence);

/* Rows [*from, *to) are those with since <= time < until.  Returns whether there is one. */
extern bool dp_bucket_find_times(DpBucketReader *r, int64 since, int64 until, int *from, int *to);

/* ---------------------------------------------------------------- whole buckets */

/*
 * All rows of the buckets in one bucket, palloc'd; of equal times those of the earlier bucket come
 * first.  Columns are matched by name, or by position.  Raises DATATYPE_MISMATCH if kinds differ,
 * or if named and positional buckets are mixed.
 */
extern struct varlena *dp_bucket_merge(const Datum *buckets, int n);

/*
 * The rows with since <= time < until as a bucket, palloc'd; NULL without rows.  A NULL bound does
 * not limit.
 */
extern struct varlena *dp_bucket_slice(Datum bucket, const int64 *since, const int64 *until);

/*
 * Checks everything, including the last value and the summaries in the header.  Returns NULL, or a
 * description of the fault (palloc'd).
 */
extern char *dp_bucket_fault(const uint8 *bytes, Size size);

/* The same, but raises DATA_CORRUPTED; leaves memory behind in the current context. */
extern void dp_bucket_validate(const uint8 *bytes, Size size);

#endif /* DP_TYPES_BUCKET_BUCKET_H */
