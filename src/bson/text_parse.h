/*
 * text_parse.h
 *		Shared by the files of the text parser only.
 *
 * The parser reads the text once and writes the document at the same time.  A scalar in the syntax
 * of a document ({"$oid": ".."}) or a call (ObjectId("..")) is written as a document first and
 * replaced by the scalar at its end, so that its parts may come in any order and spelling.
 */
#ifndef DP_BSON_TEXT_PARSE_H
#define DP_BSON_TEXT_PARSE_H

#include "nodes/nodes.h"

#include "bson/builder.h"

typedef struct DpParser
{
	const char *start; /* the text, which ends with a NUL at end */
	const char *end;
	const char *cur; /* next byte */
	DpBuilder b;
	Node *escontext;
	const char *type; /* the SQL type, for messages */
	int nesting;      /* open brackets in the text */
	int height;       /* containers inside each other in the last value */
	bool nul;         /* an escape wrote a null character */
} DpParser;

/*
 * Brackets inside each other in a text.  A level of the document takes up to
 * three: {"$code": "..", "$scope": {"$document": {
 */
#define DP_MAX_NESTING (3 * DP_MAX_DEPTH + 10)

/* The meaning of a document's first name. */
typedef enum DpWrapper
{
	DP_WRAP_NONE,
	DP_WRAP_OID,
	DP_WRAP_SYMBOL,
	DP_WRAP_INT32,
	DP_WRAP_INT64,
	DP_WRAP_DOUBLE,
	DP_WRAP_DECIMAL,
	DP_WRAP_BINARY,
	DP_WRAP_UUID,
	DP_WRAP_CODE,
	DP_WRAP_TIMESTAMP,
	DP_WRAP_REGEX,
	DP_WRAP_DBPOINTER,
	DP_WRAP_DATE,
	DP_WRAP_MINKEY,
	DP_WRAP_MAXKEY,
	DP_WRAP_UNDEFINED,
	DP_WRAP_DOCUMENT,
	DP_WRAP_ARRAY,
	DP_WRAP_TYPE_FIRST, /* $type: the old form of binary, if $binary follows */
	DP_WRAP_SCOPE_FIRST /* $scope: if $code follows */
} DpWrapper;

/*
 * Reports an error at a place in the text and returns false.  hint may be
 * NULL.  The message becomes the detail, after line and column.
 */
extern bool dp_parser_fail(DpParser *p, int sqlstate, const char *where, const char *hint,
						   const char *fmt, ...) pg_attribute_printf(5, 6);

/* text_in.c */
extern void dp_parser_skip_more(DpParser *p);
extern bool dp_parser_elements(DpParser *p, char close, int *count);
extern const uint8 dp_text_class[256];

#define DP_CLASS_BLANK 0x01
#define DP_CLASS_NAME 0x02 /* letters, digits, _, $ and everything beyond ASCII */
#define DP_CLASS_DIGIT 0x04
#define DP_CLASS_STOP 0x08    /* ends a run inside a string: " ' \ and control characters */
#define DP_CLASS_COMMENT 0x10 /* begins a comment, a byte order mark or a no-break space */

#define dp_is_blank(c) (dp_text_class[(uint8) (c)] & DP_CLASS_BLANK)
#define dp_is_name(c) (dp_text_class[(uint8) (c)] & DP_CLASS_NAME)
#define dp_is_digit(c) (dp_text_class[(uint8) (c)] & DP_CLASS_DIGIT)

/* Move to the next byte that is neither blank nor part of a comment. */
static inline void
dp_parser_skip_blanks(DpParser *p)
{
	if (*p->cur == ' ')
		p->cur++;
	if (unlikely(dp_text_class[(uint8) *p->cur] & (DP_CLASS_BLANK | DP_CLASS_COMMENT)))
		dp_parser_skip_more(p);
}

/* text_word.c: the value spelled by the word at the cursor.  Returns its type or -1. */
extern int dp_parser_word(DpParser *p);

/* text_scalar.c: scalars from the strings that spell them.  False: not one. */
extern bool dp_text_to_int64(const char *s, Size len, int64 *v);
extern bool dp_text_to_double(const char *s, Size len, double *v);
extern bool dp_text_to_decimal(const char *s, Size len, uint8 *v);
extern bool dp_text_to_date(const char *s, Size len, int64 *ms);
extern bool dp_text_to_hex(const char *s, Size len, uint8 *bytes);
extern bool dp_text_to_base64(const char *s, Size len, uint8 *bytes, uint32 *n);
extern bool dp_text_to_uuid(const char *s, Size len, uint8 *bytes);
extern bool dp_regex_options_sorted(const char *options, Size len);

/*
 * text_put.c: replaces the bytes from start on by the scalar made from these values, which may be
 * among these bytes or NULL.  Returns the type, or -1 (and raises nothing) if the values do not
 * make one.
 */
extern int dp_put_objectid(DpParser *p, uint32 start, const DpValue *v);
extern int dp_put_string(DpParser *p, uint32 start, uint8 type, const DpValue *v);
extern int dp_put_decimal(DpParser *p, uint32 start, const DpValue *v);
extern int dp_put_binary(DpParser *p, uint32 start, uint8 subtype, const uint8 *bytes, uint32 n);
extern int dp_put_base64(DpParser *p, uint32 start, const DpValue *base64, const DpValue *subtype);
extern int dp_put_hex(DpParser *p, uint32 start, const DpValue *hex, const DpValue *subtype);
extern int dp_put_uuid(DpParser *p, uint32 start, const DpValue *v);
extern int dp_put_code(DpParser *p, uint32 start, const DpValue *code, const DpValue *scope);
extern int dp_put_timestamp(DpParser *p, uint32 start, const DpValue *t, const DpValue *i);
extern int
dp_put_regex(DpParser *p, uint32 start, const DpValue *pattern, const DpValue *options, bool sort);
extern int dp_put_dbpointer(DpParser *p, uint32 start, const DpValue *ref, const DpValue *id);
extern int dp_put_date(DpParser *p, uint32 start, const DpValue *v);
extern bool dp_number_of_value(const DpValue *v, int64 *i);

/* text_wrapper.c */
extern DpWrapper dp_wrapper_of_name(const char *name, uint32 namelen);
extern DpWrapper dp_wrapper_of_document(const uint8 *doc, uint32 size);
extern int dp_wrapper_convert(DpParser *p, uint32 start, const char *where);

/*
 * Replaces a container that was just closed, written from start on, by a scalar: there is room for
 * any short scalar.  bytes may overlap it.
 */
static inline void
dp_parser_replace(DpParser *p, uint32 start, const void *bytes, uint32 n)
{
	Assert(start + n <= p->b.cap);
	memmove(p->b.buf + start, bytes, n);
	p->b.len = start + n;
	p->height = 0;
}

#endif /* DP_BSON_TEXT_PARSE_H */
