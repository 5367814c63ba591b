/*
 * error.h
 *		Errors of the query languages in a filter, an update, a projection, an expression or a
 *		schema, with their path.
 *
 * The compiler of a specification keeps a chain of locations, one for each level, on its own stack;
 * an error shows the location as a path in errdetail: At path "items.$elemMatch.price.$gt".
 */
#ifndef DP_MQL_ERROR_H
#define DP_MQL_ERROR_H

#include "lib/stringinfo.h"

#include "bson/names.h"
#include "bson/reader.h"

typedef struct DpLocation
{
	const struct DpLocation *up; /* the location around it, or NULL */
	const char *name;            /* name of the field, or NULL: an element of an array */
	uint32 namelen;
	uint32 index; /* the element's position */
} DpLocation;

/* A location inside another one: the field, or the element at a position. */
static inline DpLocation
dp_location_field(const DpLocation *up, const DpElement *field)
{
	DpLocation location = { up, field->name, field->namelen, 0 };

	return location;
}

static inline DpLocation
dp_location_index(const DpLocation *up, uint32 index)
{
	DpLocation location = { up, NULL, 0, index };

	return location;
}

/* The parts of the location with dots between them (palloc'd). */
extern char *dp_location_text(const DpLocation *location);

/*
 * Between push and pop, errors that others raise name the location in errdetail.
 */
typedef struct DpLocationContext
{
	ErrorContextCallback callback;
	const DpLocation *location;
} DpLocationContext;

extern void dp_location_push(DpLocationContext *context, const DpLocation *location);
extern void dp_location_pop(DpLocationContext *context);

/* True for the error context callback of a location, which adds no context. */
extern bool dp_location_is_callback(void (*callback)(void *));

/* How to do here what the operator or stage does in MongoDB, or NULL. */
extern const char *dp_elsewhere_hint(const char *name);

/*
 * The operator at the location does not exist in this language: FEATURE_NOT_SUPPORTED.  what is
 * "filter operator" or the like.  The hint is how to do it here, or the nearest operator, if there
 * is one; nearest may be NULL.
 */
extern void dp_unknown_operator(const DpLocation *location, const char *what,
								const DpNearest *nearest) pg_attribute_noreturn();

/*
 * The specification is wrong at this location: INVALID_PARAMETER_VALUE.  The text
 * is the errmsg: lower case, no full stop.
 */
extern void dp_bad_spec(const DpLocation *location, const char *fmt, ...) pg_attribute_noreturn()
	pg_attribute_printf(2, 3);

/* The value at the location has a wrong type: INVALID_PARAMETER_VALUE. */
extern void dp_bad_spec_type(const DpLocation *location, const char *expected, const DpValue *found)
	pg_attribute_noreturn();

/* So many names dp_read_named() takes */
#define DP_MOST_NAMED 12

/*
 * Puts the fields of a document in the order of names: "size ?unit", where a question mark marks
 * those that may be missing and then have no name.  Returns what is wrong, or NULL; what and kind
 * are what has fields and what they are to it.
 */
extern char *dp_read_named(const DpValue *doc, const char *what, const char *kind,
						   const char *names, DpElement *elements);

/*
 * A value that must be a whole number, in any of the four types of numbers
 * (2.0 is one).  Returns false if it is not, or is out of the range of int64.
 */
extern bool dp_value_to_whole(const DpValue *value, int64 *result);

/*
 * The value as an int64, fractions cut off.  Returns false for what is no
 * number, for NaN, infinities and numbers out of range.
 */
extern bool dp_value_truncate(const DpValue *value, int64 *result);

/* MongoDB's idea of truth: everything but false, null, undefined and zero. */
extern bool dp_value_is_true(const DpValue *value);

#endif /* DP_MQL_ERROR_H */
