/*
 * builder.h
 *		Writing documents and values.
 *
 * A builder owns one palloc'd buffer that begins with room for the header of
 * the datum that it will become, so that there is no copy at the end: a bson
 * (dp_builder_init) or a bson_value (dp_builder_init_value).  Containers are
 * opened and closed; their lengths are filled in when they are closed.  A
 * builder points into itself: pass it by reference, never copy it.
 *
 *		DpBuilder	b;
 *
 *		dp_builder_init(&b, 0);
 *		dp_builder_begin_document(&b);				the document itself
 *		dp_builder_append_int32(&b, "a", 1, 5);
 *		dp_builder_begin_array_field(&b, "b", 1);
 *		dp_builder_append_value(&b, NULL, 0, &v);	"0": arrays count by themselves
 *		dp_builder_end(&b);
 *		dp_builder_end(&b);
 *		PG_RETURN_POINTER(dp_builder_finish_bson(&b));
 *
 * Inside an array the name is ignored and the position is written instead.
 */
#ifndef DP_BSON_BUILDER_H
#define DP_BSON_BUILDER_H

#include "utils/memutils.h"

#include "bson/layout.h"

typedef struct DpBuilderLevel
{
	uint32 start; /* where the container's length stands */
	uint32 index; /* next position */
	bool is_array;
} DpBuilderLevel;

typedef struct DpBuilder
{
	uint8 *buf;
	uint32 len; /* bytes used, header room included */
	uint32 cap;
	uint32 head;  /* bytes before the document */
	uint32 limit; /* bytes that it may grow to, MaxAllocSize unless set later */
	int depth;    /* open containers */
	int maxdepth; /* allocated levels */
	DpBuilderLevel *levels;
	DpBuilderLevel fixed[8];
} DpBuilder;

extern void dp_builder_init(DpBuilder *b, Size expected);
extern void dp_builder_init_value(DpBuilder *b, Size expected);
extern void dp_builder_reset(DpBuilder *b);
extern void dp_builder_free(DpBuilder *b);

/* Refuse to grow beyond so many bytes: PROGRAM_LIMIT_EXCEEDED, before memory is taken. */
static inline void
dp_builder_limit(DpBuilder *b, Size bytes)
{
	b->limit = (uint32) Min(b->head + bytes, MaxAllocSize);
}

extern void dp_builder_begin_document(DpBuilder *b);
extern void dp_builder_begin_array(DpBuilder *b);
extern void dp_builder_begin_document_field(DpBuilder *b, const char *name, uint32 namelen);
extern void dp_builder_begin_array_field(DpBuilder *b, const char *name, uint32 namelen);
extern void dp_builder_end(DpBuilder *b);

/* Type and name of an element; the caller appends the value's bytes next. */
extern void dp_builder_begin_element(DpBuilder *b, uint8 type, const char *name, uint32 namelen);
extern void dp_builder_append_bytes(DpBuilder *b, const void *bytes, Size n);

/* Room for n bytes at the end, which the caller fills. */
extern uint8 *dp_builder_reserve(DpBuilder *b, Size n);

/*
 * Elements of an existing document: n bytes from a type byte on, copied unchanged (not into
 * arrays).
 */
#define dp_builder_append_elements(b, from, n) dp_builder_append_bytes(b, from, n)

extern void
dp_builder_append_value(DpBuilder *b, const char *name, uint32 namelen, const DpValue *value);
extern void dp_builder_append_null(DpBuilder *b, const char *name, uint32 namelen);
extern void dp_builder_append_bool(DpBuilder *b, const char *name, uint32 namelen, bool v);
extern void dp_builder_append_int32(DpBuilder *b, const char *name, uint32 namelen, int32 v);
extern void dp_builder_append_int64(DpBuilder *b, const char *name, uint32 namelen, int64 v);
extern void dp_builder_append_double(DpBuilder *b, const char *name, uint32 namelen, double v);
extern void
dp_builder_append_date(DpBuilder *b, const char *name, uint32 namelen, int64 milliseconds);
extern void
dp_builder_append_string(DpBuilder *b, const char *name, uint32 namelen, const char *s, uint32 len);
extern void dp_builder_append_binary(DpBuilder *b, const char *name, uint32 namelen, uint8 subtype,
									 const void *bytes, uint32 len);

/*
 * The document that was built, as a bson.  Raises PROGRAM_LIMIT_EXCEEDED if it
 * is larger than docpatterns.max_document_size.  The builder gives its buffer
 * away.
 */
extern struct varlena *dp_builder_finish_bson(DpBuilder *b);

/* The document or array that was built, as a bson_value of that type. */
extern struct varlena *dp_builder_finish_value(DpBuilder *b, uint8 type);

/* The document so far, without header; valid until the next append. */
static inline DpValue
dp_builder_view(const DpBuilder *b, uint8 type)
{
	DpValue v;

	v.type = type;
	v.data = b->buf + b->head;
	v.len = b->len - b->head;
	return v;
}

/* Decimal digits of an array position; buf holds at least 11 bytes.  Returns their number. */
extern uint32 dp_index_name(uint32 index, char *buf);

/* Raises PROGRAM_LIMIT_EXCEEDED if a document of this size may not be accepted. */
extern void dp_check_document_size(Size size);

#endif /* DP_BSON_BUILDER_H */
