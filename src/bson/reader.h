/*
 * reader.h
 *		Walking through the elements of a document in memory.
 *
 * The reader allocates nothing and parses nothing beforehand: an iterator is
 * two pointers into the document.  Every length is checked against the end of
 * the document before it is used, so bytes that are corrupt on disk end in
 * ERRCODE_DATA_CORRUPTED and never in a read beyond the buffer.  It does not
 * check what costs time and can do no harm when it is wrong (UTF-8, the inner
 * structure of sub-documents): dp_validate() has done that on the way in.
 */
#ifndef DP_BSON_READER_H
#define DP_BSON_READER_H

#include "port/pg_bitutils.h"

#include "bson/layout.h"

typedef struct DpIter
{
	const uint8 *next; /* the next element's type byte, or the final 0 */
	const uint8 *end;  /* where the document's final 0 stands */
} DpIter;

/* Raises ERRCODE_DATA_CORRUPTED; the text is the reason, in lower case. */
extern void dp_corrupted(const char *what) pg_attribute_noreturn();

/* Sizes of the types whose values all have the same one; 0xFF: look inside. */
extern const uint8 dp_fixed_size[256];

#define DP_SIZE_VARIES 0xFF  /* int32 length in front */
#define DP_SIZE_INVALID 0xFE /* no such type */

extern uint32 dp_variable_size(uint8 type, const uint8 *p, const uint8 *end);

/*
 * The number of bytes of the value of the given type at p.  end is the first
 * byte that is no longer readable.  Raises an error if the value would reach
 * beyond it, or if there is no such type.
 */
static inline uint32
dp_value_size(uint8 type, const uint8 *p, const uint8 *end)
{
	uint32 size = dp_fixed_size[type];

	if (unlikely(size >= DP_SIZE_INVALID))
		return dp_variable_size(type, p, end);
	if (unlikely(size > (uint32) (end - p)))
		dp_corrupted("a value reaches beyond the end of the document");
	return size;
}

/*
 * Start at the first element of the document of the given size.  Raises an
 * error unless its length and its final 0 are in place.
 */
static inline void
dp_iter_init(DpIter *iter, const uint8 *doc, uint32 size)
{
	if (unlikely(size < DP_DOCUMENT_MIN_SIZE || dp_get_int32(doc) != (int32) size ||
				 doc[size - 1] != 0))
		dp_corrupted("the length of the document is wrong");
	iter->next = doc + 4;
	iter->end = doc + size - 1;
}

/* The same for the elements of a value that is a document or an array. */
static inline void
dp_iter_init_value(DpIter *iter, const DpValue *value)
{
	dp_iter_init(iter, value->data, value->len);
}

/* The same for a detoasted bson. */
#define dp_iter_init_varlena(iter, v) dp_iter_init(iter, DP_DOC_DATA(v), DP_DOC_SIZE(v))

/*
 * The first NUL from p on, before end; NULL if there is none.  Names are short: they are searched
 * eight bytes at a time, without a call.
 */
static inline const uint8 *
dp_name_end(const uint8 *p, const uint8 *end)
{
#ifndef WORDS_BIGENDIAN
	while (end - p >= (ptrdiff_t) sizeof(uint64))
	{
		uint64 word;
		uint64 zeros;

		memcpy(&word, p, sizeof(word));
		zeros = (word - UINT64CONST(0x0101010101010101)) & ~word & UINT64CONST(0x8080808080808080);
		if (zeros != 0)
			return p + pg_rightmost_one_pos64(zeros) / 8;
		p += sizeof(word);
	}
#endif
	return (const uint8 *) memchr(p, 0, end - p);
}

/*
 * Fetch the next element.  Returns false at the end of the document.
 */
static inline bool
dp_iter_next(DpIter *iter, DpElement *element)
{
	const uint8 *p = iter->next;
	const uint8 *nul;
	uint8 type;

	if (p >= iter->end)
		return false;

	type = *p++;
	nul = dp_name_end(p, iter->end);
	if (unlikely(nul == NULL))
		dp_corrupted("the name of a field does not end");
	element->name = (const char *) p;
	element->namelen = nul - p;
	p = nul + 1;
	element->value.type = type;
	element->value.data = p;
	element->value.len = dp_value_size(type, p, iter->end);
	iter->next = p + element->value.len;
	return true;
}

/* The next value of an array: as above, without the name. */
static inline bool
dp_iter_next_value(DpIter *iter, DpValue *value)
{
	DpElement element;

	if (!dp_iter_next(iter, &element))
		return false;
	*value = element.value;
	return true;
}

/* The number of elements of a document or an array. */
extern uint32 dp_document_count(const uint8 *doc, uint32 size);

/*
 * The first element of the document that has the given name.  Returns false
 * if there is none.
 */
extern bool
dp_document_find(const uint8 *doc, uint32 size, const char *name, uint32 namelen, DpValue *value);

/* Whether two values have the same type and the same bytes. */
static inline bool
dp_value_identical(const DpValue *a, const DpValue *b)
{
	return a->type == b->type && a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static inline bool
dp_type_is_number(uint8 type)
{
	return type == DP_TYPE_INT32 || type == DP_TYPE_INT64 || type == DP_TYPE_DOUBLE ||
		   type == DP_TYPE_DECIMAL128;
}

static inline bool
dp_type_is_container(uint8 type)
{
	return type == DP_TYPE_DOCUMENT || type == DP_TYPE_ARRAY;
}

/*
 * MongoDB's name of a type ("double", "string", "object", ...), as $type and bson_typeof give it.
 */
extern const char *dp_type_name(uint8 type);

/* The whole document as a value of type DOCUMENT. */
static inline DpValue
dp_value_of_document(struct varlena *v)
{
	DpValue value;

	value.type = DP_TYPE_DOCUMENT;
	value.data = DP_DOC_DATA(v);
	value.len = DP_DOC_SIZE(v);
	return value;
}

/* The value of a detoasted bson_value. */
static inline DpValue
dp_value_of_varlena(struct varlena *v)
{
	DpValue value;
	const uint8 *p = (const uint8 *) VARDATA_ANY(v);
	uint32 size = VARSIZE_ANY_EXHDR(v);

	if (unlikely(size < 1))
		dp_corrupted("the value has no type");
	value.type = p[0];
	value.data = p + 1;
	value.len = size - 1;
	if (unlikely(dp_value_size(value.type, p + 1, p + size) != value.len))
		dp_corrupted("the length of the value is wrong");
	return value;
}

/* A new bson_value that holds a copy of the value (a palloc'd varlena). */
extern struct varlena *dp_value_to_varlena(const DpValue *value);

/* A new bson that holds a copy of the document (a palloc'd varlena). */
extern struct varlena *dp_document_to_varlena(const uint8 *doc, uint32 size);

/* The document without elements, and the array. */
extern const uint8 dp_empty_document[DP_DOCUMENT_MIN_SIZE];

#endif /* DP_BSON_READER_H */
