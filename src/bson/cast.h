/*
 * cast.h
 *		SQL values become BSON values, and BSON values become SQL values.
 *
 * From SQL any type is taken: what BSON has a type for becomes that type,
 * arrays become arrays, rows become documents, and everything else becomes the
 * string that its output function gives.  To SQL the conversion is strict: a
 * number that does not fit, a fraction for an integer, or a value of another
 * kind is an error.  docs/reference/casts.md has the table.
 */
#ifndef DP_BSON_CAST_H
#define DP_BSON_CAST_H

#include "access/tupdesc.h"
#include "datatype/timestamp.h"

#include "bson/builder.h"

/* From 1970, where BSON's dates begin, to 2000, where PostgreSQL's do */
#define DP_EPOCH_SHIFT_DAYS (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)
#define DP_EPOCH_SHIFT_MS ((int64) DP_EPOCH_SHIFT_DAYS * SECS_PER_DAY * 1000)

/* How the values of a type are written */
typedef enum DpConversion
{
	DP_CONVERT_BOOL,
	DP_CONVERT_INT2,
	DP_CONVERT_INT4,
	DP_CONVERT_INT8,
	DP_CONVERT_FLOAT4,
	DP_CONVERT_FLOAT8,
	DP_CONVERT_NUMERIC,
	DP_CONVERT_TEXT,
	DP_CONVERT_BPCHAR,
	DP_CONVERT_NAME,
	DP_CONVERT_CSTRING,
	DP_CONVERT_TIMESTAMP, /* with and without time zone */
	DP_CONVERT_DATE,
	DP_CONVERT_UUID,
	DP_CONVERT_BYTEA,
	DP_CONVERT_OBJECTID,
	DP_CONVERT_TREEPATH,
	DP_CONVERT_BSON,
	DP_CONVERT_BSON_VALUE,
	DP_CONVERT_JSONB,
	DP_CONVERT_JSON,
	DP_CONVERT_ARRAY,
	DP_CONVERT_ROW,
	DP_CONVERT_OUTPUT /* by the type's output function */
} DpConversion;

/* Cached facts about a type, for loops and for fn_extra. */
typedef struct DpConverter
{
	Oid typid; /* the type that it was made for */
	DpConversion conversion;
	MemoryContext mcxt; /* holds what is below */
	FmgrInfo output;    /* OUTPUT */
	/* ARRAY */
	struct DpConverter *element;
	int16 elmlen;
	bool elmbyval;
	char elmalign;
	/* ROW: one converter per column of the last row's type, made when needed */
	struct DpConverter *columns;
	int ncolumns;
} DpConverter;

/*
 * Appends a treepath as an array.  Set when the library is loaded, because bson must not depend on
 * types.
 */
extern void (*dp_append_treepath)(DpBuilder *b, const char *name, uint32 namelen,
								  struct varlena *path);

/*
 * Looks up how values of the type are converted.  Allocates in mcxt, which must live as long as the
 * converter.
 */
extern void dp_converter_init(DpConverter *c, Oid typid, MemoryContext mcxt);

/*
 * Append an element with the SQL value to the builder; SQL NULL becomes null.
 * Raises NUMERIC_VALUE_OUT_OF_RANGE for a numeric of more than 34 digits,
 * DATETIME_VALUE_OUT_OF_RANGE for an infinite date, PROGRAM_LIMIT_EXCEEDED
 * beyond 100 levels.
 */
extern void dp_converter_append(DpConverter *c, DpBuilder *b, const char *name, uint32 namelen,
								Datum d, bool isnull);

/* The same for a single value. */
extern void dp_builder_append_datum(DpBuilder *b, const char *name, uint32 namelen, Datum d,
									bool isnull, Oid typid);

/*
 * A bson_value from a SQL value that is not NULL: a new palloc'd varlena, or a detoasted bson_value
 * itself.
 */
extern struct varlena *dp_converter_value(DpConverter *c, Datum d);
extern struct varlena *dp_datum_to_value(Datum d, Oid typid);

/*
 * Reduces a builder with only one element to the element's value, and returns its type.  For
 * callers whose functions append elements but who need a value.
 */
extern uint8 dp_builder_strip_element(DpBuilder *b);

/*
 * dp_builder_append_value() that raises an error if the value would be nested too deeply where it
 * comes to stand.
 */
extern void
dp_builder_append_nested(DpBuilder *b, const char *name, uint32 namelen, const DpValue *value);

/*
 * The text of a scalar SQL value that shall be the name of a field, not
 * terminated.  Raises INVALID_PARAMETER_VALUE for what cannot be a name.
 */
extern const char *dp_converter_name(DpConverter *c, Datum d, uint32 *len);

/*
 * Sets *at to the time at which something expires: the value is a date, or seconds since 1970.
 * Returns false for other values, which mean never.
 */
extern bool dp_value_expiry(const DpValue *v, TimestampTz *at);

/*
 * A datum of type text, varchar or unknown as the input function of typid reads it.
 */
extern Datum dp_datum_of_text(Datum given, Oid type, Oid typid, int32 typmod);

/*
 * The BSON value as a datum of the SQL type, with the type's modifier applied (-1: none), palloc'd
 * if it is passed by reference.  BSON null and undefined set *isnull, except for the types with
 * their own null: bson_value, jsonb and json.  Raises INVALID_PARAMETER_VALUE if the value is of
 * another kind, NUMERIC_VALUE_OUT_OF_RANGE and DATETIME_VALUE_OUT_OF_RANGE if it does not fit, and
 * the errors of input functions and domains.
 */
extern Datum dp_value_to_datum(const DpValue *v, Oid typid, int32 typmod, bool *isnull);

#endif /* DP_BSON_CAST_H */
