/*
 * text.h
 *		Documents and values as text: Extended JSON and the syntax of the shell.
 *
 * docs/reference/types.md describes input and output.  Output is read back byte for byte.
 */
#ifndef DP_BSON_TEXT_H
#define DP_BSON_TEXT_H

#include "lib/stringinfo.h"
#include "nodes/nodes.h"

#include "bson/layout.h"

typedef enum
{
	DP_TEXT_RELAXED,   /* what the output functions write */
	DP_TEXT_JSON,      /* the same, but with every int64 as a number, as jsonb has it */
	DP_TEXT_CANONICAL, /* every type spelled out */
	DP_TEXT_SHELL      /* ObjectId("..") and the like */
} DpTextForm;

/*
 * The document or the value in the len bytes at s, as a new bson or bson_value.  Raises
 * INVALID_TEXT_REPRESENTATION, NUMERIC_VALUE_OUT_OF_RANGE or PROGRAM_LIMIT_EXCEEDED, with line and
 * column; with a soft error context the error is saved there and the result is NULL.  s is valid
 * UTF-8. The first two copy it; for the others it must be followed by a NUL, s[len] == 0.
 */
extern struct varlena *dp_text_to_bson(const char *s, Size len, Node *escontext);
extern struct varlena *dp_text_to_value(const char *s, Size len, Node *escontext);
extern struct varlena *dp_cstring_to_bson(const char *s, Size len, Node *escontext);
extern struct varlena *dp_cstring_to_value(const char *s, Size len, Node *escontext);

/*
 * Append the value to out.  indent is the number of blanks in front of the
 * value's own line when it is spread over lines, or -1 for one line.
 */
extern void dp_value_to_text(StringInfo out, const DpValue *v, DpTextForm form, int indent);

/* A value for a message, cut at 100 bytes. */
extern char *dp_value_to_message(const DpValue *v);

/*
 * Append milliseconds since 1970 as ISO 8601 in UTC; years that have not four digits carry a sign.
 */
extern void dp_date_to_text(StringInfo out, int64 ms);

/* Room for n bytes in base64 */
#define DP_BASE64_SIZE(n) (((Size) (n) + 2) / 3 * 4)

/* Writes n bytes in base64, or in that of URLs, which has no padding; returns the end. */
extern char *dp_base64_write(char *p, const uint8 *bytes, uint32 n, bool url);

#endif /* DP_BSON_TEXT_H */
