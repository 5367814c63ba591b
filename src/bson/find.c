/*
 * find.c
 *		Searches values at paths.
 *
 * This is the hot loop of the extension.  It reads sixteen bytes from the beginning of a name,
 * compares them with the searched name and finds the name's end in them, and skips the value by a
 * switch over the types with constant sizes.  Both the switch and the guess that a name is as long
 * as the previous one are branches that the processor predicts, so that it need not wait for one
 * element's bytes before it starts with the next one.
 */
#include "postgres.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "bson/path.h"

/*
 * The most bytes of an element that the fast way reads: its type, a name that
 * ends in a block, and the length of its value.
 */
#define SAFE_BYTES (1 + DP_PATH_BLOCK + 4)

/* Documents of more bytes take so long that it is worth asking for interrupts. */
#define CHECKED_SIZE 1024

static bool path_each_step(const DpValue *container, const DpPath *path, int step,
						   DpPathVisit visit, void *arg);

/*
 * Keeps the compiler from computing a number of which it knows that it equals
 * another one: the next element would have to wait for that one.
 */
#if defined(__GNUC__) || defined(__clang__)
#define OPAQUE(x) __asm__("" : "+r"(x))
#else
#define OPAQUE(x) ((void) 0)
#endif

/*
 * A name's length as a number that does not depend on the name's bytes: the processor predicts the
 * branch.
 */
static inline uint32
guess_name(uint32 namelen)
{
	uint32 n;

	switch (namelen)
	{
#define NAME_OF(i)                                                                                 \
	case i:                                                                                        \
		n = i;                                                                                     \
		OPAQUE(n);                                                                                 \
		return n
		NAME_OF(0);
		NAME_OF(1);
		NAME_OF(2);
		NAME_OF(3);
		NAME_OF(4);
		NAME_OF(5);
		NAME_OF(6);
		NAME_OF(7);
		NAME_OF(8);
		NAME_OF(9);
		NAME_OF(10);
		NAME_OF(11);
		NAME_OF(12);
#undef NAME_OF
		default:
			return namelen;
	}
}

/*
 * The first bytes of a name, and a bit for each of them that equals another
 * block's, or is zero.
 */
#ifdef __SSE2__
typedef __m128i NameBlock;

static inline NameBlock
block_load(const uint8 *p)
{
	return _mm_loadu_si128((const __m128i *) p);
}

static inline uint32
block_equal(NameBlock a, NameBlock b)
{
	return (uint32) _mm_movemask_epi8(_mm_cmpeq_epi8(a, b));
}

static inline uint32
block_zeros(NameBlock a)
{
	return (uint32) _mm_movemask_epi8(_mm_cmpeq_epi8(a, _mm_setzero_si128()));
}
#else
typedef struct NameBlock
{
	uint8 bytes[DP_PATH_BLOCK];
} NameBlock;

static inline NameBlock
block_load(const uint8 *p)
{
	NameBlock block;

	memcpy(&block, p, sizeof(block));
	return block;
}

static inline uint32
block_equal(NameBlock a, NameBlock b)
{
	uint32 bits = 0;

	for (int i = 0; i < DP_PATH_BLOCK; i++)
		bits |= (uint32) (a.bytes[i] == b.bytes[i]) << i;
	return bits;
}

static inline uint32
block_zeros(NameBlock a)
{
	uint32 bits = 0;

	for (int i = 0; i < DP_PATH_BLOCK; i++)
		bits |= (uint32) (a.bytes[i] == 0) << i;
	return bits;
}
#endif

/*
 * The n bytes at p, fewer than a block, followed by zeros.
 */
static pg_noinline NameBlock
block_load_few(const uint8 *p, Size n)
{
	uint8 bytes[DP_PATH_BLOCK] = { 0 };

	memcpy(bytes, p, n);
	return block_load(bytes);
}

/*
 * The block at p where fewer bytes than a block are left before limit: they
 * are followed by zeros.  Nothing before doc is read.
 */
static inline NameBlock
block_load_tail(const uint8 *p, const uint8 *limit, const uint8 *doc)
{
	Size n = limit - p;

#ifdef __SSE2__
	/* two words, with the bytes before p or after limit shifted out */
	if (likely(limit - doc >= 8))
	{
		uint64 low = 0;
		uint64 high = 0;
		uint64 last;

		memcpy(&last, limit - 8, 8);
		if (n >= 8)
		{
			memcpy(&low, p, 8);
			if (n > 8)
				high = last >> (8 * (16 - n));
		}
		else if (n > 0)
			low = last >> (8 * (8 - n));
		return _mm_set_epi64x((int64) high, (int64) low);
	}
#endif
	return block_load_few(p, n);
}

/* The available bytes end within an element: more are needed, unless these are all. */
static DpFind
find_cut(const uint8 *end, const uint8 *limit)
{
	if (limit > end)
		dp_corrupted("a value reaches beyond the end of the document");
	return DP_FIND_SHORT;
}

/*
 * True if values of the type begin with their length, in four bytes.  A regular expression does
 * not; it may consist of its two final zeros.
 */
static inline bool
find_has_length(uint8 type)
{
	return dp_fixed_size[type] == DP_SIZE_VARIES && type != DP_TYPE_REGEX;
}

/*
 * The number of bytes of a value at p, checked as dp_value_size() does, except that it may extend
 * beyond limit, the end of the available bytes.  Returns -1 if these do not determine it.  end is
 * the position of the document's final 0.
 */
static int64
find_size(uint8 type, const uint8 *p, const uint8 *end, const uint8 *limit)
{
	uint32 fixed = dp_fixed_size[type];
	int64 size;

	if (likely(limit >= end))
		return dp_value_size(type, p, end);
	if (fixed < DP_SIZE_INVALID)
		size = fixed;
	else if (fixed == DP_SIZE_INVALID)
		return dp_value_size(type, p, end);
	else if (type == DP_TYPE_REGEX || type == DP_TYPE_DBPOINTER || limit - p < 4)
		return -1;
	else
	{
		size = dp_get_int32(p);
		if (size < 0)
			dp_corrupted("a value has a negative length");
		if (type == DP_TYPE_BINARY)
			size += 5;
		else if (type == DP_TYPE_STRING || type == DP_TYPE_CODE || type == DP_TYPE_SYMBOL)
			size += 4;
		if (size < DP_DOCUMENT_MIN_SIZE)
			dp_corrupted("a value has a wrong length");
		/* a completely available value is checked as usual */
		if (size <= limit - p)
			return dp_value_size(type, p, limit);
	}
	if (size > end - p)
		dp_corrupted("a value reaches beyond the end of the document");
	return size;
}

/*
 * The first element of the document that has the step's name or, if not by name, the one at
 * *position (which is decremented, so that the elements of a shorter array are counted).  limit is
 * the end of the available bytes; it may be before or after the document's end.  Sets *element to
 * the beginning of the element.  Inlined once for names and once for positions.
 *
 * Lengths are not checked when they are read but by the resulting position: p is compared with fast
 * before anything is read there, and with end beyond that.  A length has 31 bits (if its sign is
 * set, the sum is beyond any end), so positions are computed in 64 bits.
 */
static pg_attribute_always_inline DpFind
find_element(const uint8 *doc, uint32 size, const uint8 *limit, bool by_name,
			 const DpPathStep *step, uint32 *position, const uint8 **element, DpValue *value)
{
	const uint32 mask = by_name ? step->mask : 0;
	const int64 avail = limit - doc;
	const int64 end = (int64) size - 1;
	const int64 fast = Min(avail - SAFE_BYTES, end - 1);
	int64 p = 4;
	int64 start;
	int64 len;
	uint32 guess = 3;
	uint32 left = by_name ? 0 : *position;
	NameBlock wanted;
	uint8 type;

	/* what calls in a loop over a large document can be stopped */
	if (unlikely(size > CHECKED_SIZE))
		CHECK_FOR_INTERRUPTS();
	if (unlikely(avail < DP_DOCUMENT_MIN_SIZE))
		return find_cut(doc + end, limit);
	if (unlikely(size < DP_DOCUMENT_MIN_SIZE || dp_get_int32(doc) != (int32) size))
		dp_corrupted("the length of the document is wrong");
	if (by_name)
		wanted = block_load(step->block);

	for (;;)
	{
		NameBlock name;
		uint32 zeros;

		start = p;
		if (likely(p <= fast))
		{
			name = block_load(doc + p + 1);
			zeros = block_zeros(name);
		}
		else
		{
			if (p >= end)
			{
				if (p > end || (p < avail && doc[p] != 0))
					dp_corrupted("a value reaches beyond the end of the document");
				break;
			}
			if (p >= avail)
				return find_cut(doc + end, limit);
			if (avail - p > DP_PATH_BLOCK)
				name = block_load(doc + p + 1);
			else
				name = block_load_tail(doc + p + 1, limit, doc);
			zeros = block_zeros(name);
			if (zeros != 0)
			{
				int64 data = p + 2 + pg_rightmost_one_pos32(zeros);

				if (data > avail || (avail - data < 4 && find_has_length(doc[p])))
					return find_cut(doc + end, limit);
			}
		}
		type = doc[p];

		if (by_name && unlikely((block_equal(name, wanted) & mask) == mask))
		{
			if (likely(step->namelen < DP_PATH_BLOCK) ||
				(avail - (p + 1) > step->namelen &&
				 memcmp(doc + p + 1, step->name, step->namelen + 1) == 0))
			{
				p += step->namelen + 2;
				goto found;
			}
		}

		if (likely(zeros != 0))
		{
			uint32 namelen = pg_rightmost_one_pos32(zeros);

			if (unlikely(namelen != guess))
				guess = guess_name(namelen);
			OPAQUE(guess);
			p += guess + 2;
		}
		else
		{
			const uint8 *nul =
				memchr(doc + p + 1 + DP_PATH_BLOCK, 0, avail - (p + 1 + DP_PATH_BLOCK));

			if (nul == NULL || limit - (nul + 1) < 4)
			{
				if (nul == NULL || find_has_length(type))
					return find_cut(doc + end, limit);
			}
			p = nul + 1 - doc;
		}

		if (!by_name && left-- == 0)
			goto found;

		switch (type)
		{
			case DP_TYPE_INT32:
				p += 4;
				break;
			case DP_TYPE_DOUBLE:
			case DP_TYPE_DATE:
			case DP_TYPE_INT64:
			case DP_TYPE_TIMESTAMP:
				p += 8;
				break;
			case DP_TYPE_STRING:
			case DP_TYPE_CODE:
			case DP_TYPE_SYMBOL:
				p += (uint32) dp_get_int32(doc + p);
				p += 4;
				break;
			case DP_TYPE_DOCUMENT:
			case DP_TYPE_ARRAY:
			case DP_TYPE_CODEWSCOPE:
				len = (uint32) dp_get_int32(doc + p);
				if (unlikely(len < DP_DOCUMENT_MIN_SIZE))
					dp_corrupted("a sub-document has a wrong length");
				p += len;
				break;
			case DP_TYPE_BINARY:
				p += (uint32) dp_get_int32(doc + p);
				p += 5;
				break;
			case DP_TYPE_OBJECTID:
				p += DP_OBJECTID_SIZE;
				break;
			case DP_TYPE_BOOL:
				p += 1;
				break;
			case DP_TYPE_NULL:
			case DP_TYPE_UNDEFINED:
				break;
			case DP_TYPE_DECIMAL128:
				p += DP_DECIMAL128_SIZE;
				break;
			default:
				if (p > end)
					dp_corrupted("a value reaches beyond the end of the document");
				len = find_size(type, doc + p, doc + end, limit);
				if (len < 0)
					return find_cut(doc + end, limit);
				p += len;
				break;
		}
	}

	if (!by_name)
		*position = left;
	return DP_FIND_ABSENT;

found:
	if (unlikely(p > end))
		dp_corrupted("a value reaches beyond the end of the document");
	if (likely(type == DP_TYPE_STRING && avail > end && avail - p > 4))
	{
		/* as dp_value_size() does, without the call */
		len = (int64) dp_get_int32(doc + p) + 4;
		if (unlikely(len < 5 || len > end - p || doc[p + len - 1] != 0))
			dp_corrupted("a string has a wrong length");
	}
	else
		len = find_size(type, doc + p, doc + end, limit);
	if (unlikely(len < 0))
		return find_cut(doc + end, limit);
	value->type = type;
	value->data = doc + p;
	value->len = (uint32) len;
	*element = doc + start;
	return DP_FIND_FOUND;
}

/*
 * The first element with the step's name.
 */
static DpFind
find_name(const uint8 *doc, uint32 size, const uint8 *limit, const DpPathStep *step, DpValue *value)
{
	const uint8 *element;

	return find_element(doc, size, limit, true, step, NULL, &element, value);
}

/*
 * The element at a position.  If there are fewer, *position is what is left
 * after counting them.
 */
static DpFind
find_position(const uint8 *doc, uint32 size, const uint8 *limit, uint32 *position,
			  const uint8 **element, DpValue *value)
{
	return find_element(doc, size, limit, false, NULL, position, element, value);
}

/* The value at the path in a completely available document. */
bool
dp_path_find(const uint8 *doc, uint32 size, const DpPath *path, DpValue *value)
{
	DpValue start = { doc, size, DP_TYPE_DOCUMENT };

	if (likely(path->nsteps == 1))
		return find_name(doc, size, doc + size, &path->steps[0], value) == DP_FIND_FOUND;
	return dp_path_find_partial(&start, size, path, true, value) == DP_FIND_FOUND;
}

/* Does the same with only the first avail bytes of the document. */
DpFind
dp_path_find_partial(const DpValue *start, uint32 avail, const DpPath *path, bool whole,
					 DpValue *value)
{
	const uint8 *limit = start->data + avail;
	DpValue at = *start;

	for (int i = 0; i < path->nsteps; i++)
	{
		const DpPathStep *step = &path->steps[i];
		DpFind found;

		if (at.type == DP_TYPE_DOCUMENT)
			found = find_name(at.data, at.len, limit, step, &at);
		else if (at.type == DP_TYPE_ARRAY && step->is_index)
		{
			uint32 position = (uint32) step->index;
			const uint8 *element;

			if (step->index < 0)
			{
				if (at.len > limit - at.data)
					return DP_FIND_SHORT;
				if (!dp_array_element(at.data, at.len, step->index, &at))
					return DP_FIND_ABSENT;
				continue;
			}
			found = find_position(at.data, at.len, limit, &position, &element, &at);
		}
		else
			return DP_FIND_ABSENT;
		if (found != DP_FIND_FOUND)
			return found;
	}
	if (whole && at.len > limit - at.data)
		return DP_FIND_SHORT;
	*value = at;
	return DP_FIND_FOUND;
}

/*
 * The first field with a name that has no step yet.
 */
bool
dp_field_find(const uint8 *doc, uint32 size, const char *name, uint32 namelen, DpValue *value)
{
	DpPathStep step;

	step.name = name;
	step.namelen = namelen;
	dp_path_step_block(&step);
	return find_name(doc, size, doc + size, &step, value) == DP_FIND_FOUND;
}

DpFind
dp_field_find_partial(const DpValue *document, uint32 avail, const char *name, uint32 namelen,
					  DpValue *value)
{
	const uint8 *limit = document->data + avail;
	DpPathStep step;
	DpFind found;

	step.name = name;
	step.namelen = namelen;
	dp_path_step_block(&step);
	found = find_name(document->data, document->len, limit, &step, value);
	if (found == DP_FIND_FOUND && value->len > limit - value->data)
		return DP_FIND_SHORT;
	return found;
}

/*
 * The element of an array at a position.
 */
bool
dp_array_element(const uint8 *array, uint32 size, int64 position, DpValue *value)
{
	const uint8 *element;
	uint32 n;

	if (position < 0)
		position += dp_array_count(array, size);
	if (position < 0 || position > size)
		return false;
	n = (uint32) position;
	return find_position(array, size, array + size, &n, &element, value) == DP_FIND_FOUND;
}

/*
 * The number of elements of an array or a document.
 */
uint32
dp_array_count(const uint8 *array, uint32 size)
{
	const uint8 *element;
	uint32 left = size;
	DpValue value;

	(void) find_position(array, size, array + size, &left, &element, &value);
	return size - left;
}

/* One step of a path, for changing the value there. */
bool
dp_step_find(const DpValue *container, const DpPathStep *step, const uint8 **element,
			 DpValue *value)
{
	const uint8 *limit = container->data + container->len;
	int64 position;
	uint32 n;

	if (container->type == DP_TYPE_DOCUMENT)
		return find_element(container->data, container->len, limit, true, step, NULL, element,
							value) == DP_FIND_FOUND;
	if (container->type != DP_TYPE_ARRAY || !step->is_index)
		return false;
	position = step->index;
	if (position < 0)
		position += dp_array_count(container->data, container->len);
	if (position < 0)
		return false;
	n = (uint32) position;
	return find_position(container->data, container->len, limit, &n, element, value) ==
		   DP_FIND_FOUND;
}

/*
 * Every value that the path reaches, arrays on the way looked into.
 */
void
dp_path_each(const uint8 *doc, uint32 size, const DpPath *path, DpPathVisit visit, void *arg)
{
	DpValue start = { doc, size, DP_TYPE_DOCUMENT };

	path_each_step(&start, path, 0, visit, arg);
}

/*
 * The values at the steps from the given one on in a document or an array.  Returns false if visit
 * stops.
 */
static bool
path_each_step(const DpValue *container, const DpPath *path, int step, DpPathVisit visit, void *arg)
{
	const DpPathStep *s;
	DpIter iter;
	DpValue value;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();

	/* the end: the value itself, or the elements of an array */
	if (step == path->nsteps)
	{
		if (container->type != DP_TYPE_ARRAY)
			return visit(container, arg);
		dp_iter_init_value(&iter, container);
		while (dp_iter_next_value(&iter, &value))
			if (!visit(&value, arg))
				return false;
		return true;
	}

	s = &path->steps[step];
	if (container->type == DP_TYPE_DOCUMENT)
	{
		if (find_name(container->data, container->len, container->data + container->len, s,
					  &value) == DP_FIND_FOUND)
			return path_each_step(&value, path, step + 1, visit, arg);
		return true;
	}
	if (container->type != DP_TYPE_ARRAY)
		return true;
	if (s->is_index)
	{
		if (dp_array_element(container->data, container->len, s->index, &value))
			return path_each_step(&value, path, step + 1, visit, arg);
		return true;
	}
	dp_iter_init_value(&iter, container);
	while (dp_iter_next_value(&iter, &value))
		if (value.type == DP_TYPE_DOCUMENT && !path_each_step(&value, path, step, visit, arg))
			return false;
	return true;
}
