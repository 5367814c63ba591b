/*
 * fields.h
 *		The fields of a bucket as users name them.
 *
 * A bucket has columns; a field for users is one of these:
 *
 *		- a field of the documents, if the only column of the bucket contains documents
 *		  whose fields are columns (made by bucket_agg(time, doc))
 *		- otherwise a column: by its own name, by the name that the caller gives
 *		  it, or, without a name, as "value" if there is one and as "value1",
 *		  "value2" and so on if there are more
 *
 * For any other name with a dot, the part after the dot is a path into the documents of the column
 * before it.
 */
#ifndef DP_TYPES_BUCKET_FIELDS_H
#define DP_TYPES_BUCKET_FIELDS_H

#include "bson/path.h"
#include "types/bucket/bucket.h"

/* Default names of the parts of buckets */
#define DP_BUCKET_NAME_TIME "timestamp"
#define DP_BUCKET_NAME_VALUE "value"

typedef struct DpBucketField
{
	int column; /* number for the reader */
	const char *name;
	uint32 namelen;
	const DpPackedColumn *packed;
} DpBucketField;

typedef struct DpBucketFields
{
	DpBucketReader *reader;
	bool split; /* they are the fields of column 0 */
	int n;
	DpBucketField *fields;
} DpBucketFields;

/*
 * The fields of an open bucket, palloc'd.  names, of which there are nnames,
 * are those of the columns in a bucket that does not have them, or NULL.
 * Parses the whole header.
 */
extern void
dp_bucket_fields(DpBucketReader *r, const char *const *names, int nnames, DpBucketFields *fields);

/* The field of that name, or NULL. */
extern const DpBucketField *
dp_bucket_fields_find(const DpBucketFields *fields, const char *name, uint32 namelen);

/* Where the values of a named field are: a column, and for some a path into its values. */
typedef struct DpBucketSource
{
	const DpPackedColumn *packed;
	int column;
	const DpPath *path; /* or NULL */
	int step;           /* of the path, where the column's values are entered */
} DpBucketSource;

/*
 * Finds the field of that name; NULL for the only one.  Returns false if the
 * bucket has documents, of which none has such a field.  Raises
 * UNDEFINED_COLUMN if there is no such column, INVALID_PARAMETER_VALUE if the
 * name is NULL and there are several.
 */
extern bool dp_bucket_source(DpBucketReader *r, const text *name, DpBucketSource *source);

/*
 * The values of a column as dp_bucket_values() gives them, with null for those that are NULL: type
 * DP_TYPE_EOD is missing.
 */
extern void dp_bucket_column_values(DpBucketReader *r, int column, DpValue *values);

/* The values of the source: those of its column, or those at the path in them. */
extern void
dp_bucket_source_values(DpBucketReader *r, const DpBucketSource *source, DpValue *values);

/* The reader that a function keeps in its fn_extra, with the bucket of its argument. */
extern DpBucketReader *dp_bucket_argument(FunctionCallInfo fcinfo, int argno);

#endif /* DP_TYPES_BUCKET_FIELDS_H */
