/*
 * document.h
 *		Buckets as documents: the default one, those by a template, and the
 *		layouts of bucket_to_bson().
 *
 * The default document is
 *
 *		{<group>, start_date, end_date, measurements: [{timestamp, <fields>}, ...],
 *		 transaction_count, sum_<field>, ...}
 *
 * A template is a document of expressions.  In it
 *
 *		"$start", "$end", "$count"		are the bucket's
 *		"$sensor_id"					a group column's value
 *		{"$avg": "temperature"}			an accumulator over a measured column:
 *										$sum $avg $min $max $first $last
 *										$stdDevPop $stdDevSamp $count $push
 *		[{"at": "$ts", "t": "$temperature"}]
 *										an array of one element that names measured
 *										columns or the time: one for each measurement
 *		"$temperature"					elsewhere: an array of the column's values
 *
 * and everything else is as in projections.  Inside such an array measured
 * columns come before the others of the same name.
 */
#ifndef DP_TYPES_BUCKET_DOCUMENT_H
#define DP_TYPES_BUCKET_DOCUMENT_H

#include "bson/builder.h"
#include "bson/cast.h"
#include "mql/expression.h"
#include "types/bucket/fields.h"

/* ---------------------------------------------------------------- documents */

/* The definition of documents.  Strings need not outlive the compilation. */
typedef struct DpBucketDocumentDef
{
	int ngroups;
	const char *const *groups; /* names of the group columns */
	const Oid *group_types;
	int nvalues;
	const char *const *values; /* names of the bucket's columns; none: as the bucket has them */
	bool values_known; /* there are no others: a template may not name them (of documents the fields
						  are not known) */
	const char *time;  /* how templates name the time; NULL: there are no times */
	const DpValue *template; /* a document, copied; NULL: the default document */
	bool end_exclusive;      /* the end is the first moment after the span, not the last in it */
} DpBucketDocumentDef;

typedef struct DpBucketDocument DpBucketDocument;

/*
 * Prepares documents, in the current memory context.  Raises the errors of
 * dp_expr_compile(), and UNDEFINED_COLUMN for names that mean nothing.
 */
extern DpBucketDocument *dp_bucket_document_compile(const DpBucketDocumentDef *def);

/*
 * The document of a bucket: a new bson in the current context, which is used for all allocations.
 * The bucket's span is [*start, *until) in microseconds; NULL means none (pages).  Raises the
 * errors of expressions, and PROGRAM_LIMIT_EXCEEDED for a document that is too large.
 */
extern struct varlena *
dp_bucket_document_build(DpBucketDocument *d, Datum bucket, const Datum *groups,
						 const bool *group_nulls, const int64 *start, const int64 *until);

/* ---------------------------------------------------------------- parts of them */

/* Decoded measurements: call init in a context that lives as long as they are used. */
typedef struct DpBucketRows
{
	int count;
	int64 *times;        /* milliseconds since 1970; NULL: none, or not needed */
	DpValue *documents;  /* they are documents; else NULL */
	bool has_time_field; /* the documents may have a field with the time's name */
	int ncolumns;
	const DpBucketField *columns;
	DpValue **values; /* for each column; type DP_TYPE_EOD: missing */
} DpBucketRows;

extern void dp_bucket_rows_init(DpBucketRows *rows, const DpBucketFields *fields);

/*
 * Appends the fields of measurement i to an open document; after its time, if rows->times is set.
 */
extern void dp_bucket_rows_append(const DpBucketRows *rows, int i, DpBuilder *b);

/* The times of a bucket in milliseconds since 1970, rounded down, palloc'd. */
extern int64 *dp_bucket_times_ms(DpBucketReader *r);

/* From microseconds since 2000 to milliseconds since 1970, rounded down. */
static inline int64
dp_bucket_ms(int64 us)
{
	return us / 1000 - (us % 1000 < 0 ? 1 : 0) + DP_EPOCH_SHIFT_MS;
}

/* ---------------------------------------------------------------- slots */

/* The parts of a time that slots are named by, from the largest to the smallest */
typedef enum DpSlotUnit
{
	DP_UNIT_DAY, /* of the month: 1 to 31 */
	DP_UNIT_HOUR,
	DP_UNIT_MINUTE,
	DP_UNIT_SECOND
} DpSlotUnit;

typedef struct DpSlotUnits
{
	int n;            /* 0: slots are positions */
	DpSlotUnit first; /* n units from this one on */
} DpSlotUnits;

/*
 * Reads {hour,minute}; raises INVALID_PARAMETER_VALUE unless each is the part of the one before it.
 */
extern void dp_slot_units_parse(ArrayType *names, DpSlotUnits *units);

/* The units by name; false for an unknown name. */
extern bool dp_slot_unit_find(const char *name, uint32 len, DpSlotUnit *unit);
extern const char *dp_slot_unit_name(DpSlotUnit unit);

/*
 * The beginning of the larger unit that the first unit divides: of the month, the day, the hour,
 * the minute.
 */
extern int64 dp_slot_base(const DpSlotUnits *units, int64 ms);

/* How many slots the unit number level has, in what begins at base. */
extern int dp_slot_count(const DpSlotUnits *units, int level, int64 base);

/* The number that the first slot of a unit has. */
#define dp_slot_lowest(unit) ((unit) == DP_UNIT_DAY ? 1 : 0)

/* Milliseconds from one slot of the unit to the next. */
extern int64 dp_slot_width(DpSlotUnit unit);

#endif /* DP_TYPES_BUCKET_DOCUMENT_H */
