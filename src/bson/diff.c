/*
 * diff.c
 *		Packed differences: computes and applies them. diff.h describes them.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "utils/memutils.h"

#include "bson/builder.h"
#include "bson/diff.h"
#include "bson/diff_align.h"
#include "bson/varint.h"

/* Instructions */
#define OP_END 0
#define OP_COPY 1
#define OP_SKIP 2
#define OP_GO 3
#define OP_INSERT 4
#define OP_REPLACE 5
#define OP_INSIDE 6
#define OP_SPLICE 7

/* The bytes that a splice must save */
#define SPLICE_MIN 8

/* Instructions for one container that are being written */
typedef struct Writer
{
	StringInfo out;
	bool is_array;
	uint32 place; /* the reader's position after the pending copy */
	uint32 copy;  /* elements to be copied that have not been written */
} Writer;

/* An input container while instructions are applied */
typedef struct Source
{
	const DpValue *container;
	DpIter iter;
	uint32 *offsets; /* where the elements begin; NULL: not needed yet */
	uint32 n;        /* their number */
} Source;

static void write_container(StringInfo out, const DpValue *from, const DpValue *to, bool is_array);
static void write_rest(Writer *w, DpIter *from, DpIter *to, const DpElement *from_first,
					   const DpElement *to_first);
static inline void put(StringInfo out, uint32 op, uint64 n);
static void flush_copy(Writer *w);
static void write_insert(Writer *w, const DpElement *elements, uint32 n);
static void write_changed(Writer *w, const DpValue *from, const DpValue *to);
static bool text_of(const DpValue *v, const uint8 **text, uint32 *len);

static void follow(DpPacked *in, DpBuilder *b, const DpValue *from, bool is_array);
static void source_go(Source *source, uint64 n);
static void source_next(Source *source, DpElement *e);
static void copy_elements(DpBuilder *b, Source *source, uint64 n, bool is_array);
static void follow_insert(DpPacked *in, DpBuilder *b, uint64 n, bool is_array);
static void follow_splice(DpPacked *in, DpBuilder *b, const DpElement *e, uint64 n);
static DpValue unpack_value(DpPacked *in, uint8 type);

/* ---------------------------------------------------------------- making */

struct varlena *
dp_diff_make(const uint8 *from, uint32 fromsize, const uint8 *to, uint32 tosize)
{
	DpValue a = { from, fromsize, DP_TYPE_DOCUMENT };
	DpValue b = { to, tosize, DP_TYPE_DOCUMENT };
	StringInfoData out;
	pg_crc32c crc;
	uint8 crcbytes[4];
	static const char header[VARHDRSZ] = { 0 }; /* filled in at the end */

	if (dp_value_identical(&a, &b))
		return NULL;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, to, tosize);
	FIN_CRC32C(crc);
	dp_put_int32(crcbytes, (int32) crc);

	initStringInfo(&out);
	appendBinaryStringInfo(&out, header, VARHDRSZ);
	appendStringInfoCharMacro(&out, DP_DIFF_VERSION);
	appendBinaryStringInfo(&out, (char *) crcbytes, sizeof(crcbytes));
	dp_pack_varint(&out, fromsize);
	dp_pack_varint(&out, tosize);
	write_container(&out, &a, &b, false);
	SET_VARSIZE(out.data, out.len);
	return (struct varlena *) out.data;
}

/*
 * Instructions that turn one container into another.  As long as both have the
 * same elements they are read side by side and nothing is allocated.
 */
static void
write_container(StringInfo out, const DpValue *from, const DpValue *to, bool is_array)
{
	Writer w = { out, is_array, 0, 0 };
	DpIter a;
	DpIter b;

	check_stack_depth();
	dp_iter_init_value(&a, from);
	dp_iter_init_value(&b, to);
	for (;;)
	{
		DpElement x;
		DpElement y;
		bool more_a = dp_iter_next(&a, &x);
		bool more_b = dp_iter_next(&b, &y);

		if (!more_a || !more_b)
		{
			if (more_a || more_b)
				write_rest(&w, &a, &b, more_a ? &x : NULL, more_b ? &y : NULL);
			break;
		}
		if (dp_value_identical(&x.value, &y.value) && (is_array || dp_member_same_name(&x, &y)))
		{
			w.copy++;
			w.place++;
		}
		else if (!is_array && dp_member_same_name(&x, &y))
			write_changed(&w, &x.value, &y.value);
		else
		{
			write_rest(&w, &a, &b, &x, &y);
			break;
		}
	}
	put(out, OP_END, 0); /* so the pending copy need not be written */
}

/*
 * Instructions for the elements from these on, at least one of which is there,
 * so that at their end only OP_END is left to be written.
 */
static void
write_rest(Writer *w, DpIter *from, DpIter *to, const DpElement *from_first,
		   const DpElement *to_first)
{
	DpMembers a = { 0, NULL };
	DpMembers b = { 0, NULL };
	int32 *match;
	uint32 base = w->place;
	uint32 j = 0;

	/* the iterators are behind the first ones: back to them */
	if (from_first)
	{
		from->next = DP_MEMBER_START(from_first);
		dp_members_read(from, &a);
	}
	if (to_first)
	{
		to->next = DP_MEMBER_START(to_first);
		dp_members_read(to, &b);
	}
	match = dp_members_align(&a, &b, w->is_array, false);
	while (j < b.n)
	{
		uint32 at;

		CHECK_FOR_INTERRUPTS();
		if (match[j] < 0)
		{
			uint32 first = j;

			while (j < b.n && match[j] < 0)
				j++;
			flush_copy(w);
			write_insert(w, &b.elements[first], j - first);
			continue;
		}
		at = base + match[j];
		if (at != w->place)
		{
			flush_copy(w);
			if (at > w->place)
				put(w->out, OP_SKIP, at - w->place);
			else
				put(w->out, OP_GO, at);
			w->place = at;
		}
		if (dp_value_identical(&a.elements[match[j]].value, &b.elements[j].value))
		{
			w->copy++;
			w->place++;
		}
		else
			write_changed(w, &a.elements[match[j]].value, &b.elements[j].value);
		j++;
	}
	if (w->place != base + a.n)
	{
		/* what is behind the place would be copied at the end */
		flush_copy(w);
		put(w->out, OP_SKIP, base + a.n - w->place);
	}
	if (a.elements)
		pfree(a.elements);
	if (b.elements)
		pfree(b.elements);
	pfree(match);
}

static inline void
put(StringInfo out, uint32 op, uint64 n)
{
	dp_pack_varint(out, n << 3 | op);
}

static void
flush_copy(Writer *w)
{
	if (w->copy > 0)
		put(w->out, OP_COPY, w->copy);
	w->copy = 0;
}

/* Elements that stand one behind the other. */
static void
write_insert(Writer *w, const DpElement *elements, uint32 n)
{
	put(w->out, OP_INSERT, n);
	if (!w->is_array)
	{
		const uint8 *start = DP_MEMBER_START(&elements[0]);

		appendBinaryStringInfo(w->out, (const char *) start,
							   DP_MEMBER_END(&elements[n - 1]) - start);
		return;
	}
	for (uint32 i = 0; i < n; i++)
	{
		appendStringInfoCharMacro(w->out, (char) elements[i].value.type);
		appendBinaryStringInfo(w->out, (const char *) elements[i].value.data,
							   elements[i].value.len);
	}
}

/*
 * The element at the place has another value: what is inside of it that is
 * different, or all of it, whichever is shorter.
 */
static void
write_changed(Writer *w, const DpValue *from, const DpValue *to)
{
	int start;
	const uint8 *a;
	const uint8 *b;
	uint32 alen;
	uint32 blen;

	flush_copy(w);
	w->place++;
	start = w->out->len;
	if (from->type == to->type && dp_type_is_container(from->type))
	{
		bool is_array = to->type == DP_TYPE_ARRAY && dp_array_is_plain(to);

		put(w->out, OP_INSIDE, is_array ? 1 : 0);
		write_container(w->out, from, to, is_array);
		if (w->out->len - start < to->len + 2)
			return;
		w->out->len = start;
	}
	else if (from->type == to->type && text_of(from, &a, &alen) && text_of(to, &b, &blen))
	{
		uint32 least = Min(alen, blen);
		uint32 front = 0;
		uint32 back = 0;

		while (front < least && a[front] == b[front])
			front++;
		while (back < least - front && a[alen - 1 - back] == b[blen - 1 - back])
			back++;
		if (front + back >= SPLICE_MIN)
		{
			put(w->out, OP_SPLICE, blen - front - back);
			dp_pack_varint(w->out, front);
			dp_pack_varint(w->out, back);
			appendBinaryStringInfo(w->out, (const char *) b + front, blen - front - back);
			return;
		}
	}
	put(w->out, OP_REPLACE, to->len);
	appendStringInfoCharMacro(w->out, (char) to->type);
	appendBinaryStringInfo(w->out, (const char *) to->data, to->len);
}

/*
 * The bytes of a value that can be spliced.  Returns false for the others.  A
 * binary counts with its subtype.
 */
static bool
text_of(const DpValue *v, const uint8 **text, uint32 *len)
{
	switch (v->type)
	{
		case DP_TYPE_STRING:
		case DP_TYPE_SYMBOL:
		case DP_TYPE_CODE:
			*text = v->data + 4;
			*len = v->len - 5;
			return true;
		case DP_TYPE_BINARY:
			if (v->data[4] == DP_BINARY_OLD)
				return false; /* its second length would have to be changed, too */
			*text = v->data + 4;
			*len = v->len - 4;
			return true;
		default:
			return false;
	}
}

/* ---------------------------------------------------------------- applying */

struct varlena *
dp_diff_apply(const uint8 *diff, uint32 diffsize, const uint8 *from, uint32 fromsize)
{
	DpValue source = { from, fromsize, DP_TYPE_DOCUMENT };
	DpPacked in = { diff, diff + diffsize };
	const uint8 *crcbytes;
	uint64 tosize;
	DpBuilder b;
	DpValue result;
	pg_crc32c crc;

	if (dp_unpack_byte(&in) != DP_DIFF_VERSION)
		dp_corrupted("the difference has an unknown version");
	crcbytes = dp_unpack_bytes(&in, 4);
	if (dp_unpack_varint(&in) != fromsize)
		dp_corrupted("the difference is one from another document");
	tosize = dp_unpack_varint(&in);
	if (tosize < DP_DOCUMENT_MIN_SIZE || tosize > MaxAllocSize - VARHDRSZ)
		dp_corrupted("the difference has an impossible size");

	/* a wrong size must not cost more than the bytes that are there */
	dp_builder_init(&b, Min(tosize, (uint64) fromsize + diffsize));
	dp_builder_begin_document(&b);
	follow(&in, &b, &source, false);
	dp_builder_end(&b);
	if (in.next != in.end)
		dp_corrupted("the difference has bytes behind its end");

	result = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	if (result.len != tosize)
		dp_corrupted("the difference leads to another document");
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, result.data, result.len);
	FIN_CRC32C(crc);
	if (crc != (pg_crc32c) dp_get_int32(crcbytes))
		dp_corrupted("the difference leads to another document");
	return dp_builder_finish_bson(&b);
}

/*
 * Follows the instructions for one container, which is open in the builder, up
 * to their end.
 */
static void
follow(DpPacked *in, DpBuilder *b, const DpValue *from, bool is_array)
{
	Source source = { .container = from };

	check_stack_depth();
	dp_iter_init_value(&source.iter, from);
	for (;;)
	{
		uint64 word = dp_unpack_varint(in);
		uint64 n = word >> 3;
		DpElement e;
		DpValue value;

		switch (word & 7)
		{
			case OP_END:
				if (n != 0)
					dp_corrupted("an instruction of the difference is wrong");
				if (is_array)
					copy_elements(b, &source, PG_UINT64_MAX, true);
				else
					dp_builder_append_elements(b, source.iter.next,
											   source.iter.end - source.iter.next);
				if (source.offsets)
					pfree(source.offsets);
				return;
			case OP_COPY:
				copy_elements(b, &source, n, is_array);
				break;
			case OP_SKIP:
				for (; n > 0; n--)
					source_next(&source, &e);
				break;
			case OP_GO:
				source_go(&source, n);
				break;
			case OP_INSERT:
				follow_insert(in, b, n, is_array);
				break;
			case OP_REPLACE:
				source_next(&source, &e);
				value.type = dp_unpack_byte(in);
				value.data = dp_unpack_bytes(in, n);
				value.len = n;
				if (dp_value_size(value.type, value.data, value.data + n) != n)
					dp_corrupted("a value of the difference has a wrong length");
				dp_builder_append_value(b, e.name, e.namelen, &value);
				break;
			case OP_INSIDE:
				source_next(&source, &e);
				if (!dp_type_is_container(e.value.type) || n > 1 ||
					(n == 1 && e.value.type != DP_TYPE_ARRAY))
					dp_corrupted("the difference does not fit the document");
				dp_builder_begin_element(b, e.value.type, e.name, e.namelen);
				if (n == 1)
					dp_builder_begin_array(b);
				else
					dp_builder_begin_document(b);
				follow(in, b, &e.value, n == 1);
				dp_builder_end(b);
				break;
			case OP_SPLICE:
				source_next(&source, &e);
				follow_splice(in, b, &e, n);
				break;
		}
		CHECK_FOR_INTERRUPTS();
	}
}

/* Moves to the front of an element, also backwards.  The elements are listed at first use. */
static void
source_go(Source *source, uint64 n)
{
	if (source->offsets == NULL)
	{
		uint32 cap = 16;
		DpIter iter;
		DpElement e;

		source->offsets = palloc(cap * sizeof(uint32));
		dp_iter_init_value(&iter, source->container);
		for (;;)
		{
			if (source->n == cap)
			{
				cap *= 2;
				source->offsets = repalloc_huge(source->offsets, (Size) cap * sizeof(uint32));
			}
			source->offsets[source->n] = iter.next - source->container->data;
			if (!dp_iter_next(&iter, &e))
				break;
			source->n++;
		}
	}
	if (n > source->n)
		dp_corrupted("the difference does not fit the document");
	source->iter.next = source->container->data + source->offsets[n];
}

static void
source_next(Source *source, DpElement *e)
{
	if (!dp_iter_next(&source->iter, e))
		dp_corrupted("the difference does not fit the document");
}

/* Copies n elements, or PG_UINT64_MAX: all that are left. */
static void
copy_elements(DpBuilder *b, Source *source, uint64 n, bool is_array)
{
	const uint8 *start = source->iter.next;
	DpElement e;

	for (uint64 i = 0; i < n; i++)
	{
		if (!dp_iter_next(&source->iter, &e))
		{
			if (n == PG_UINT64_MAX)
				break;
			dp_corrupted("the difference does not fit the document");
		}
		if (is_array)
			dp_builder_append_value(b, NULL, 0, &e.value);
	}
	if (!is_array)
		dp_builder_append_elements(b, start, source->iter.next - start);
}

static void
follow_insert(DpPacked *in, DpBuilder *b, uint64 n, bool is_array)
{
	const uint8 *start = in->next;

	for (; n > 0; n--)
	{
		uint8 type = dp_unpack_byte(in);
		const uint8 *nul;
		DpValue value;

		if (!is_array)
		{
			nul = memchr(in->next, 0, in->end - in->next);
			if (nul == NULL)
				dp_corrupted("packed data ends too early");
			in->next = nul + 1;
		}
		value = unpack_value(in, type);
		if (is_array)
			dp_builder_append_value(b, NULL, 0, &value);
	}
	if (!is_array)
		dp_builder_append_elements(b, start, in->next - start);
}

/* A value of that type, whose size follows from its bytes. */
static DpValue
unpack_value(DpPacked *in, uint8 type)
{
	DpValue value;

	value.type = type;
	value.data = in->next;
	value.len = dp_value_size(type, in->next, in->end);
	in->next += value.len;
	return value;
}

static void
follow_splice(DpPacked *in, DpBuilder *b, const DpElement *e, uint64 n)
{
	uint64 front = dp_unpack_varint(in);
	uint64 back = dp_unpack_varint(in);
	const uint8 *middle = dp_unpack_bytes(in, n);
	const uint8 *text;
	uint32 len;
	uint64 total;
	uint8 *p;

	if (!text_of(&e->value, &text, &len) || front > len || back > len - front)
		dp_corrupted("the difference does not fit the document");
	total = front + n + back;
	if (total > MaxAllocSize)
		dp_corrupted("the difference has an impossible size");
	dp_builder_begin_element(b, e->value.type, e->name, e->namelen);
	p = dp_builder_reserve(b, 4);
	if (e->value.type == DP_TYPE_BINARY)
	{
		if (total < 1)
			dp_corrupted("the difference does not fit the document");
		dp_put_int32(p, (int32) total - 1);
	}
	else
		dp_put_int32(p, (int32) total + 1);
	dp_builder_append_bytes(b, text, front);
	dp_builder_append_bytes(b, middle, n);
	dp_builder_append_bytes(b, text + len - back, back);
	if (e->value.type != DP_TYPE_BINARY)
		*dp_builder_reserve(b, 1) = 0;
}
