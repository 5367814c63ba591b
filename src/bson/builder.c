/*
 * builder.c
 *		Writing documents and values.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "bson/builder.h"
#include "bson/limits.h"

static void builder_enlarge(DpBuilder *b, Size n);
static void builder_push(DpBuilder *b, bool is_array);
static void builder_start(DpBuilder *b, uint32 head, Size expected);

/*
 * Start a bson with an empty buffer in the current memory context.  expected
 * is a guess at the number of bytes, or 0.
 */
void
dp_builder_init(DpBuilder *b, Size expected)
{
	builder_start(b, VARHDRSZ, expected);
}

/*
 * The same for a document or an array that will be a bson_value, whose type
 * stands between the header and the bytes.
 */
void
dp_builder_init_value(DpBuilder *b, Size expected)
{
	builder_start(b, VARHDRSZ + 1, expected);
}

/* Forget what was built and keep the buffer. */
void
dp_builder_reset(DpBuilder *b)
{
	b->len = b->head;
	b->depth = 0;
}

/* Frees a builder without a result. */
void
dp_builder_free(DpBuilder *b)
{
	pfree(b->buf);
	if (b->levels != b->fixed)
		pfree(b->levels);
	b->buf = NULL;
}

void
dp_builder_begin_document(DpBuilder *b)
{
	builder_push(b, false);
}

void
dp_builder_begin_array(DpBuilder *b)
{
	builder_push(b, true);
}

void
dp_builder_begin_document_field(DpBuilder *b, const char *name, uint32 namelen)
{
	dp_builder_begin_element(b, DP_TYPE_DOCUMENT, name, namelen);
	builder_push(b, false);
}

void
dp_builder_begin_array_field(DpBuilder *b, const char *name, uint32 namelen)
{
	dp_builder_begin_element(b, DP_TYPE_ARRAY, name, namelen);
	builder_push(b, true);
}

/*
 * Close the innermost container: its end and its length.
 */
void
dp_builder_end(DpBuilder *b)
{
	DpBuilderLevel *level;

	Assert(b->depth > 0);
	level = &b->levels[--b->depth];
	*dp_builder_reserve(b, 1) = 0;
	dp_put_int32(b->buf + level->start, (int32) (b->len - level->start));
}

/*
 * Type and name of the next element.  In an array the name is its position.
 * Raises an error if the name holds a NUL, which no document can.
 */
void
dp_builder_begin_element(DpBuilder *b, uint8 type, const char *name, uint32 namelen)
{
	char digits[12];
	uint8 *p;

	if (b->depth > 0 && b->levels[b->depth - 1].is_array)
	{
		namelen = dp_index_name(b->levels[b->depth - 1].index++, digits);
		name = digits;
	}
	else if (unlikely(memchr(name, 0, namelen) != NULL))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the name of a field cannot contain a null character")));

	p = dp_builder_reserve(b, (Size) namelen + 2);
	p[0] = type;
	memcpy(p + 1, name, namelen);
	p[1 + namelen] = 0;
}

void
dp_builder_append_bytes(DpBuilder *b, const void *bytes, Size n)
{
	if (n > 0) /* nothing may come as a null pointer */
		memcpy(dp_builder_reserve(b, n), bytes, n);
}

uint8 *
dp_builder_reserve(DpBuilder *b, Size n)
{
	uint8 *p;

	if (unlikely(n > b->cap - b->len))
		builder_enlarge(b, n);
	p = b->buf + b->len;
	b->len += n;
	return p;
}

void
dp_builder_append_value(DpBuilder *b, const char *name, uint32 namelen, const DpValue *value)
{
	dp_builder_begin_element(b, value->type, name, namelen);
	dp_builder_append_bytes(b, value->data, value->len);
}

void
dp_builder_append_null(DpBuilder *b, const char *name, uint32 namelen)
{
	dp_builder_begin_element(b, DP_TYPE_NULL, name, namelen);
}

void
dp_builder_append_bool(DpBuilder *b, const char *name, uint32 namelen, bool v)
{
	dp_builder_begin_element(b, DP_TYPE_BOOL, name, namelen);
	*dp_builder_reserve(b, 1) = v ? 1 : 0;
}

void
dp_builder_append_int32(DpBuilder *b, const char *name, uint32 namelen, int32 v)
{
	dp_builder_begin_element(b, DP_TYPE_INT32, name, namelen);
	dp_put_int32(dp_builder_reserve(b, 4), v);
}

void
dp_builder_append_int64(DpBuilder *b, const char *name, uint32 namelen, int64 v)
{
	dp_builder_begin_element(b, DP_TYPE_INT64, name, namelen);
	dp_put_int64(dp_builder_reserve(b, 8), v);
}

void
dp_builder_append_double(DpBuilder *b, const char *name, uint32 namelen, double v)
{
	dp_builder_begin_element(b, DP_TYPE_DOUBLE, name, namelen);
	dp_put_double(dp_builder_reserve(b, 8), v);
}

void
dp_builder_append_date(DpBuilder *b, const char *name, uint32 namelen, int64 milliseconds)
{
	dp_builder_begin_element(b, DP_TYPE_DATE, name, namelen);
	dp_put_int64(dp_builder_reserve(b, 8), milliseconds);
}

void
dp_builder_append_string(DpBuilder *b, const char *name, uint32 namelen, const char *s, uint32 len)
{
	uint8 *p;

	dp_builder_begin_element(b, DP_TYPE_STRING, name, namelen);
	p = dp_builder_reserve(b, (Size) len + 5);
	dp_put_int32(p, (int32) (len + 1));
	memcpy(p + 4, s, len);
	p[4 + len] = 0;
}

void
dp_builder_append_binary(DpBuilder *b, const char *name, uint32 namelen, uint8 subtype,
						 const void *bytes, uint32 len)
{
	uint8 *p;

	dp_builder_begin_element(b, DP_TYPE_BINARY, name, namelen);
	p = dp_builder_reserve(b, (Size) len + 5);
	dp_put_int32(p, (int32) len);
	p[4] = subtype;
	memcpy(p + 5, bytes, len);
}

/*
 * The document that was built, as a bson that owns the builder's buffer.
 */
struct varlena *
dp_builder_finish_bson(DpBuilder *b)
{
	struct varlena *result = (struct varlena *) b->buf;

	Assert(b->depth == 0 && b->head == VARHDRSZ);
	dp_check_document_size(b->len - b->head);
	SET_VARSIZE(result, b->len);
	if (b->levels != b->fixed)
		pfree(b->levels);
	b->buf = NULL;
	return result;
}

/*
 * The document or array that was built, as a bson_value of that type.
 */
struct varlena *
dp_builder_finish_value(DpBuilder *b, uint8 type)
{
	struct varlena *result = (struct varlena *) b->buf;

	Assert(b->depth == 0 && b->head == VARHDRSZ + 1);
	dp_check_document_size(b->len - b->head);
	b->buf[VARHDRSZ] = type;
	SET_VARSIZE(result, b->len);
	if (b->levels != b->fixed)
		pfree(b->levels);
	b->buf = NULL;
	return result;
}

/*
 * Writes the decimal digits of an array position, and a NUL.
 */
uint32
dp_index_name(uint32 index, char *buf)
{
	uint32 len;

	if (index < 10)
	{
		buf[0] = '0' + index;
		buf[1] = '\0';
		return 1;
	}
	len = pg_ultoa_n(index, buf);
	buf[len] = '\0';
	return len;
}

/*
 * Raises PROGRAM_LIMIT_EXCEEDED if a document of this size may not be stored.
 */
void
dp_check_document_size(Size size)
{
	if (unlikely(size > (Size) dp_max_document_size))
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("document too large"),
						errdetail("The document has %zu bytes; the limit is %d bytes.", size,
								  dp_max_document_size),
						errhint("Increase docpatterns.max_document_size.")));
}

/*
 * An empty buffer with head bytes in front.  The guess may be more than there
 * can be: what is too large in the end is refused when it gets there.
 */
static void
builder_start(DpBuilder *b, uint32 head, Size expected)
{
	b->cap = Min(Max(head + expected, 128), MaxAllocSize);
	b->limit = MaxAllocSize;
	b->buf = palloc(b->cap);
	b->head = head;
	b->len = head;
	b->depth = 0;
	b->levels = b->fixed;
	b->maxdepth = lengthof(b->fixed);
}

/*
 * Make room for n more bytes, doubling the buffer.
 */
static void
builder_enlarge(DpBuilder *b, Size n)
{
	Size wanted = (Size) b->len + n;
	Size cap = b->cap;

	if (wanted > b->limit)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("document too large"),
						errdetail("The limit is %u bytes.", b->limit)));
	while (cap < wanted)
		cap *= 2;
	cap = Min(cap, b->limit);
	b->buf = repalloc(b->buf, cap);
	b->cap = cap;
}

/*
 * Open a container: room for its length, and a level to remember it by.
 */
static void
builder_push(DpBuilder *b, bool is_array)
{
	DpBuilderLevel *level;

	if (b->depth >= DP_MAX_DEPTH)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("document nested too deeply"),
				 errdetail("The limit is %d levels.", DP_MAX_DEPTH)));
	if (b->depth == b->maxdepth)
	{
		/* in the buffer's context, because an aggregate's builder outlives the current one */
		DpBuilderLevel *levels = MemoryContextAlloc(GetMemoryChunkContext(b->buf),
													sizeof(DpBuilderLevel) * b->maxdepth * 2);

		memcpy(levels, b->levels, sizeof(DpBuilderLevel) * b->maxdepth);
		if (b->levels != b->fixed)
			pfree(b->levels);
		b->levels = levels;
		b->maxdepth *= 2;
	}
	level = &b->levels[b->depth++];
	level->start = b->len;
	level->index = 0;
	level->is_array = is_array;
	dp_builder_reserve(b, 4);
}
