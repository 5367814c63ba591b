/*
 * validate.h
 *		Checking bytes that come from outside before anything trusts them.
 */
#ifndef DP_BSON_VALIDATE_H
#define DP_BSON_VALIDATE_H

#include "bson/layout.h"

/* The first fault of a document. */
typedef struct DpFault
{
	const char *what; /* constant text, lower case */
	uint32 offset;    /* where, counted from the document's first byte */
} DpFault;

/*
 * Checks everything: lengths, ends, types, UTF-8, depth.  Returns true if the n bytes at doc are
 * exactly one document; otherwise fills in fault.  Makes one pass over the bytes and allocates
 * nothing.
 */
extern bool dp_validate(const uint8 *doc, Size n, DpFault *fault);

/* The same for the bytes of a value of the given type. */
extern bool dp_validate_value(uint8 type, const uint8 *bytes, Size n, DpFault *fault);

/*
 * How many of the bytes are valid UTF-8, in which strings of BSON may hold NULs: len, or where the
 * first fault is.
 */
extern uint32 dp_utf8_valid(const uint8 *p, uint32 len);

#endif /* DP_BSON_VALIDATE_H */
