/*
 * find.c
 *		The search for the values that a path leads to.
 *
 * The search is the hot loop of the extension.  It reads sixteen bytes from
 * where a name begins, compares them with the name that is wanted and finds the
 * name's end in them, and skips the value by a switch over the types with
 * constant sizes.  Both the switch and the guess that a name is as long as the
 * one before it are branches, which the processor predicts, so that it need not
 * wait for one element's bytes before it starts on the next one.
 */
#include "postgres.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "miscadmin.h"
#include "port/pg_bitutils.h"

#include "bson/path.h"

/*
 * The fast loop runs where this many bytes are readable: a type, a block of a
 * name that ends in it, and the length of the value behind it.
 */
#define FAST_BYTES		(1 + DP_PATH_BLOCK + 4)

static bool path_each_step(const DpValue *container, const DpPath *path, int step,
						   DpPathVisit visit, void *arg);

/*
 * The number of bytes of the value of the given type at p, by a switch whose
 * branches the processor can predict.  end is where the document's final 0
 * stands, limit where what is at hand ends.  Returns false if the bytes that
 * tell the size are not at hand.
 */
static inline bool
skip_size(uint8 type, const uint8 *p, const uint8 *end, const uint8 *limit, uint32 *size)
{
	int32		len;

	switch (type)
	{
		case DP_TYPE_INT32:
			*size = 4;
			return true;
		case DP_TYPE_DOUBLE:
		case DP_TYPE_DATE:
		case DP_TYPE_INT64:
		case DP_TYPE_TIMESTAMP:
			*size = 8;
			return true;
		case DP_TYPE_OBJECTID:
			*size = DP_OBJECTID_SIZE;
			return true;
		case DP_TYPE_BOOL:
			*size = 1;
			return true;
		case DP_TYPE_NULL:
		case DP_TYPE_UNDEFINED:
		case DP_TYPE_MINKEY:
		case DP_TYPE_MAXKEY:
			*size = 0;
			return true;
		case DP_TYPE_DECIMAL128:
			*size = DP_DECIMAL128_SIZE;
			return true;
		case DP_TYPE_STRING:
		case DP_TYPE_CODE:
		case DP_TYPE_SYMBOL:
			if (unlikely(limit - p < 4))
				return false;
			len = dp_get_int32(p);
			if (unlikely(len < 1 || len > end - p))
				dp_corrupted("a string has a wrong length");
			*size = (uint32) len + 4;
			return true;
		case DP_TYPE_DOCUMENT:
		case DP_TYPE_ARRAY:
		case DP_TYPE_CODEWSCOPE:
			if (unlikely(limit - p < 4))
				return false;
			len = dp_get_int32(p);
			if (unlikely(len < DP_DOCUMENT_MIN_SIZE))
				dp_corrupted("a sub-document has a wrong length");
			*size = (uint32) len;
			return true;
		case DP_TYPE_BINARY:
			if (unlikely(limit - p < 4))
				return false;
			len = dp_get_int32(p);
			if (unlikely(len < 0 || len > end - p))
				dp_corrupted("a binary value has a wrong length");
			*size = (uint32) len + 5;
			return true;
		default:
			/* rare: only with all of it at hand, or none */
			if (limit < end && dp_fixed_size[type] != DP_SIZE_INVALID)
				return false;
			*size = dp_variable_size(type, p, end);
			return true;
	}
}

/*
 * Whether the value found at p is one: what skip_size() leaves unchecked
 * because it does no harm there.
 */
static inline void
check_found(const DpValue *value, const uint8 *limit)
{
	if ((value->type == DP_TYPE_STRING || value->type == DP_TYPE_CODE ||
		 value->type == DP_TYPE_SYMBOL) &&
		value->len <= limit - value->data && value->data[value->len - 1] != 0)
		dp_corrupted("a string has a wrong length");
}

/*
 * Where the name that begins at p ends.  Returns NULL if its end is not before
 * limit.  For the last bytes of a buffer, and for long names.
 */
static const uint8 *
name_end(const uint8 *p, const uint8 *limit)
{
	for (; p < limit; p++)
		if (*p == 0)
			return p;
	return NULL;
}

/*
 * The first bytes of a name: which of them equal the block (a bit for each),
 * and which are zero.  p has DP_PATH_BLOCK readable bytes.
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
typedef const uint8 *NameBlock;

static inline NameBlock
block_load(const uint8 *p)
{
	return p;
}

static inline uint32
block_equal(NameBlock a, NameBlock b)
{
	uint32		bits = 0;

	for (int i = 0; i < DP_PATH_BLOCK; i++)
		bits |= (uint32) (a[i] == b[i]) << i;
	return bits;
}

static inline uint32
block_zeros(NameBlock a)
{
	uint32		bits = 0;

	for (int i = 0; i < DP_PATH_BLOCK; i++)
		bits |= (uint32) (a[i] == 0) << i;
	return bits;
}
#endif

/*
 * Keeps the compiler from replacing a guess that turned out right by the value
 * that it was compared with, which would make the next step wait for it.
 */
#if defined(__GNUC__) || defined(__clang__)
#define OPAQUE(x)	__asm__("" : "+r" (x))
#else
#define OPAQUE(x)	((void) 0)
#endif

/*
 * The first element of the document that has the step's name or, without a
 * step, the one at *position (which is counted down to 0, so that the elements
 * of a shorter array are counted).  limit is where the bytes at hand end; it
 * may be before or behind the document's end.  *element is where the element
 * begins.  Inlined once for names and once for positions.
 */
static pg_attribute_always_inline DpFind
find_element(const uint8 *doc, uint32 size, const uint8 *limit, const DpPathStep *step,
			 uint32 *position, const uint8 **element, DpValue *value)
{
	const uint8 *end = doc + size - 1;
	const uint8 *p = doc + 4;
	const uint8 *start;
	const uint32 mask = step ? step->mask : 0;
	NameBlock	wanted;
	uint32		guess = 4;
	uint8		type;
	uint32		len;

	if (unlikely(limit - doc < DP_DOCUMENT_MIN_SIZE))
	{
		if (limit > end)
			dp_corrupted("the length of the document is wrong");
		return DP_FIND_SHORT;
	}
	if (unlikely(size < DP_DOCUMENT_MIN_SIZE || dp_get_int32(doc) != (int32) size ||
				 (end < limit && *end != 0)))
		dp_corrupted("the length of the document is wrong");

	if (step)
		wanted = block_load(step->block);

	while (likely(limit - p >= FAST_BYTES))
	{
		NameBlock	name;
		uint32		zeros;
		uint32		namelen;

		if (unlikely(p >= end))
			return DP_FIND_ABSENT;
		start = p;
		type = *p;
		name = block_load(p + 1);
		zeros = block_zeros(name);
		if (step && unlikely((block_equal(name, wanted) & mask) == mask))
		{
			if (likely(step->namelen < DP_PATH_BLOCK))
			{
				p += step->namelen + 2;
				goto found;
			}
			if (limit - (p + 1) <= step->namelen)
				break;
			if (memcmp(p + 1, step->name, step->namelen + 1) == 0)
			{
				p += step->namelen + 2;
				goto found;
			}
		}
		if (unlikely(zeros == 0))
		{
			const uint8 *nul = name_end(p + 1 + DP_PATH_BLOCK, limit);

			if (nul == NULL)
				break;
			p = nul + 1;
		}
		else
		{
			namelen = pg_rightmost_one_pos32(zeros);
			if (likely(namelen == guess))
				OPAQUE(guess);
			else
				guess = namelen;
			p += guess + 2;
		}
		if (!step && (*position)-- == 0)
			goto found;
		if (unlikely(!skip_size(type, p, end, limit, &len)))
		{
			if (limit > end)
				dp_corrupted("a value reaches beyond the end of the document");
			return DP_FIND_SHORT;
		}
		if (unlikely((int64) len > end - p))
			dp_corrupted("a value reaches beyond the end of the document");
		p += len;
	}

	/* the last bytes at hand, with care */
	for (;;)
	{
		const uint8 *nul;

		if (p >= end)
			return DP_FIND_ABSENT;
		if (p >= limit)
			return DP_FIND_SHORT;
		start = p;
		type = *p;
		nul = name_end(p + 1, Min(limit, end));
		if (nul == NULL)
		{
			if (limit >= end)
				dp_corrupted("the name of a field does not end");
			return DP_FIND_SHORT;
		}
		p = nul + 1;
		if (step)
		{
			if (nul - (start + 1) == step->namelen &&
				memcmp(start + 1, step->name, step->namelen) == 0)
				goto found;
		}
		else if ((*position)-- == 0)
			goto found;
		if (!skip_size(type, p, end, limit, &len))
		{
			if (limit > end)
				dp_corrupted("a value reaches beyond the end of the document");
			return DP_FIND_SHORT;
		}
		if ((int64) len > end - p)
			dp_corrupted("a value reaches beyond the end of the document");
		p += len;
	}

found:
	if (unlikely(!skip_size(type, p, end, limit, &len)))
	{
		if (limit > end)
			dp_corrupted("a value reaches beyond the end of the document");
		return DP_FIND_SHORT;
	}
	if (unlikely((int64) len > end - p))
		dp_corrupted("a value reaches beyond the end of the document");
	value->type = type;
	value->data = p;
	value->len = len;
	check_found(value, limit);
	*element = start;
	return DP_FIND_FOUND;
}

/*
 * The first element with the step's name.
 */
static DpFind
find_name(const uint8 *doc, uint32 size, const uint8 *limit,
		  const DpPathStep *step, DpValue *value)
{
	const uint8 *element;

	return find_element(doc, size, limit, step, NULL, &element, value);
}

/*
 * The element at a position.  If there are fewer, *position is what is left
 * after counting them.
 */
static DpFind
find_position(const uint8 *doc, uint32 size, const uint8 *limit,
			  uint32 *position, const uint8 **element, DpValue *value)
{
	return find_element(doc, size, limit, NULL, position, element, value);
}

/*
 * The value that the path leads to in a document that is at hand as a whole.
 */
bool
dp_path_find(const uint8 *doc, uint32 size, const DpPath *path, DpValue *value)
{
	DpValue		start = {doc, size, DP_TYPE_DOCUMENT};

	return dp_path_find_partial(&start, size, path, true, value) == DP_FIND_FOUND;
}

/*
 * The same from any value on, with the steps before first already taken.
 */
bool
dp_path_find_from(const DpValue *start, const DpPath *path, int first, DpValue *value)
{
	DpValue		at = *start;

	for (int i = first; i < path->nsteps; i++)
	{
		const DpPathStep *step = &path->steps[i];

		if (at.type == DP_TYPE_DOCUMENT)
		{
			if (find_name(at.data, at.len, at.data + at.len, step, &at) != DP_FIND_FOUND)
				return false;
		}
		else if (at.type == DP_TYPE_ARRAY && step->is_index)
		{
			if (!dp_array_element(at.data, at.len, step->index, &at))
				return false;
		}
		else
			return false;
	}
	*value = at;
	return true;
}

/*
 * The same with only the first avail bytes of the document at hand.
 */
DpFind
dp_path_find_partial(const DpValue *start, uint32 avail, const DpPath *path,
					 bool whole, DpValue *value)
{
	const uint8 *limit = start->data + avail;
	DpValue		at = *start;

	for (int i = 0; i < path->nsteps; i++)
	{
		const DpPathStep *step = &path->steps[i];
		DpFind		found;

		if (at.type == DP_TYPE_DOCUMENT)
			found = find_name(at.data, at.len, limit, step, &at);
		else if (at.type == DP_TYPE_ARRAY && step->is_index)
		{
			uint32		position = (uint32) step->index;
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
	DpPathStep	step;

	step.name = name;
	step.namelen = namelen;
	dp_path_step_block(&step);
	return find_name(doc, size, doc + size, &step, value) == DP_FIND_FOUND;
}

/*
 * The element of an array at a position.
 */
bool
dp_array_element(const uint8 *array, uint32 size, int64 position, DpValue *value)
{
	const uint8 *element;
	uint32		n;

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
	uint32		left = size;
	DpValue		value;

	(void) find_position(array, size, array + size, &left, &element, &value);
	return size - left;
}

/*
 * One step of a path, for those who change what is there.
 */
bool
dp_step_find(const DpValue *container, const DpPathStep *step,
			 const uint8 **element, DpValue *value)
{
	const uint8 *limit = container->data + container->len;
	int64		position;
	uint32		n;

	if (container->type == DP_TYPE_DOCUMENT)
		return find_element(container->data, container->len, limit, step, NULL,
							element, value) == DP_FIND_FOUND;
	if (container->type != DP_TYPE_ARRAY || !step->is_index)
		return false;
	position = step->index;
	if (position < 0)
		position += dp_array_count(container->data, container->len);
	if (position < 0)
		return false;
	n = (uint32) position;
	return find_position(container->data, container->len, limit, &n, element,
						 value) == DP_FIND_FOUND;
}

/*
 * Every value that the path reaches, arrays on the way looked into.
 */
void
dp_path_each(const uint8 *doc, uint32 size, const DpPath *path, DpPathVisit visit, void *arg)
{
	DpValue		start = {doc, size, DP_TYPE_DOCUMENT};

	path_each_step(&start, path, 0, visit, arg);
}

/*
 * The values that the steps from the given one on reach in a document or an
 * array.  Returns false when visit wants no more.
 */
static bool
path_each_step(const DpValue *container, const DpPath *path, int step,
			   DpPathVisit visit, void *arg)
{
	const DpPathStep *s;
	DpIter		iter;
	DpValue		value;

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
		if (find_name(container->data, container->len, container->data + container->len,
					  s, &value) == DP_FIND_FOUND)
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
		if (value.type == DP_TYPE_DOCUMENT &&
			!path_each_step(&value, path, step, visit, arg))
			return false;
	return true;
}
