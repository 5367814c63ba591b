/*
 * error.h
 *		Errors of the query languages in a filter, an update, a projection, an expression or a
 *		schema, with their path.
 *
 * The compiler of a specification keeps a chain of places, one for each level, on its own stack; an
 * error shows the place as a path in errdetail: At path "items.$elemMatch.price.$gt".
 */
#ifndef DP_MQL_ERROR_H
#define DP_MQL_ERROR_H

#include "lib/stringinfo.h"

#include "bson/names.h"
#include "bson/reader.h"

typedef struct DpPlace
{
	const struct DpPlace *up; /* the place around it, or NULL */
	const char *name;         /* name of the field, or NULL: an element of an array */
	uint32 namelen;
	uint32 index; /* the element's position */
} DpPlace;

/* A place inside another one: the field, or the element at a position. */
static inline DpPlace
dp_place_field(const DpPlace *up, const DpElement *field)
{
	DpPlace place = { up, field->name, field->namelen, 0 };

	return place;
}

static inline DpPlace
dp_place_index(const DpPlace *up, uint32 index)
{
	DpPlace place = { up, NULL, 0, index };

	return place;
}

/* The parts of the place with dots between them (palloc'd). */
extern char *dp_place_text(const DpPlace *place);

/*
 * Between push and pop, errors that others raise name the place in errdetail.
 */
typedef struct DpPlaceContext
{
	ErrorContextCallback callback;
	const DpPlace *place;
} DpPlaceContext;

extern void dp_place_push(DpPlaceContext *context, const DpPlace *place);
extern void dp_place_pop(DpPlaceContext *context);

/*
 * The operator at the place does not exist in this language: FEATURE_NOT_SUPPORTED.  what is
 * "filter operator" or the like.  The nearest one is hinted at; NULL: nothing is.
 */
extern void dp_unknown_operator(const DpPlace *place, const char *what, const DpNearest *nearest)
	pg_attribute_noreturn();

/*
 * The specification is wrong at this place: INVALID_PARAMETER_VALUE.  The text
 * is the errmsg: lower case, no full stop.
 */
extern void dp_bad_spec(const DpPlace *place, const char *fmt, ...) pg_attribute_noreturn()
	pg_attribute_printf(2, 3);

/* The value at the place has a wrong type: INVALID_PARAMETER_VALUE. */
extern void dp_bad_spec_type(const DpPlace *place, const char *expected, const DpValue *found)
	pg_attribute_noreturn();

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
