/*
 * stats_pack.c
 *		Statistics about one path as bytes: a document with these fields.
 *
 *		p	string		the path, as it is written
 *		s	binary		float4 each: the shares and numbers, in the order of scalars[]
 *		t	binary		for each type that occurs: its number (1 byte), then float4
 *						types and direct_types
 *		l	binary		lengths: DP_STATS_QUANTILES times float4 (absent: no arrays)
 *		k	binary		common lengths: int32 and float4 each
 *		c	binary		counts, as l (absent: no document has more than one item)
 *		m	array		the most common items, most common first
 *		d	binary		float4 each: their shares of documents
 *		o	binary		float4 each: how often they occur per document (only with c)
 *		e	binary		uint32 each: the hashes of further items, ascending
 *		f	binary		float4 each: their shares of documents
 *		h	array		the histogram
 *
 * Binary fields have subtype 0x80 and their numbers are little endian.
 */
#include "postgres.h"

#include <math.h>

#include "bson/builder.h"
#include "bson/validate.h"
#include "index/stats/stats.h"

#define STATS_SUBTYPE 0x80

/* The float4 fields of DpPathStats in s */
static const size_t scalars[] = {
	offsetof(DpPathStats, reached),   offsetof(DpPathStats, direct),
	offsetof(DpPathStats, scalar),    offsetof(DpPathStats, nullish),
	offsetof(DpPathStats, barren),    offsetof(DpPathStats, arrays),
	offsetof(DpPathStats, item_docs), offsetof(DpPathStats, values),
	offsetof(DpPathStats, documents), offsetof(DpPathStats, elements),
	offsetof(DpPathStats, items),     offsetof(DpPathStats, n_distinct),
	offsetof(DpPathStats, rest_docs), offsetof(DpPathStats, rest_items)
};

#define SCALAR(path, i) (*(float4 *) ((char *) (path) + scalars[i]))

/* A bound for what is unpacked: no slot has so many values. */
#define STATS_MAX_VALUES 65536

static float4
get_float(const uint8 *p)
{
	union
	{
		int32 i;
		float4 f;
	} u;

	u.i = dp_get_int32(p);
	return u.f;
}

static void
put_float(uint8 *p, float4 f)
{
	union
	{
		int32 i;
		float4 f;
	} u;

	u.f = f;
	dp_put_int32(p, u.i);
}

static void
append_floats(DpBuilder *b, const char *name, const float4 *floats, int n)
{
	uint8 *bytes = palloc(Max(n, 1) * 4);

	for (int i = 0; i < n; i++)
		put_float(bytes + i * 4, floats[i]);
	dp_builder_append_binary(b, name, 1, STATS_SUBTYPE, bytes, n * 4);
	pfree(bytes);
}

struct varlena *
dp_stats_pack(const DpPathStats *path)
{
	DpBuilder b;
	float4 s[lengthof(scalars)];
	uint8 types[DP_STATS_TYPES * 9];
	int ntypes = 0;
	uint8 pairs[DP_STATS_LENGTHS * 8];
	DpValue packed;
	struct varlena *result;

	dp_builder_init(&b, 512);
	dp_builder_begin_document(&b);
	dp_builder_append_string(&b, "p", 1, path->text, path->textlen);
	for (int i = 0; i < lengthof(scalars); i++)
		s[i] = SCALAR(path, i);
	append_floats(&b, "s", s, lengthof(scalars));

	for (int i = 0; i < DP_STATS_TYPES; i++)
		if (path->types[i] > 0)
		{
			types[ntypes * 9] = i;
			put_float(types + ntypes * 9 + 1, path->types[i]);
			put_float(types + ntypes * 9 + 5, path->direct_types[i]);
			ntypes++;
		}
	dp_builder_append_binary(&b, "t", 1, STATS_SUBTYPE, types, ntypes * 9);

	if (path->arrays > 0)
	{
		append_floats(&b, "l", path->lengths, DP_STATS_QUANTILES);
		for (int i = 0; i < path->nlengths; i++)
		{
			dp_put_int32(pairs + i * 8, path->common_lengths[i]);
			put_float(pairs + i * 8 + 4, path->length_shares[i]);
		}
		dp_builder_append_binary(&b, "k", 1, STATS_SUBTYPE, pairs, path->nlengths * 8);
	}
	if (path->multiple)
		append_floats(&b, "c", path->counts, DP_STATS_QUANTILES);
	if (path->nmcv > 0)
	{
		dp_builder_begin_array_field(&b, "m", 1);
		for (int i = 0; i < path->nmcv; i++)
			dp_builder_append_value(&b, NULL, 0, &path->mcv[i]);
		dp_builder_end(&b);
		append_floats(&b, "d", path->mcv_docs, path->nmcv);
		if (path->multiple)
			append_floats(&b, "o", path->mcv_items, path->nmcv);
	}
	if (path->ntail > 0)
	{
		uint8 *bytes = palloc(path->ntail * 4);

		for (int i = 0; i < path->ntail; i++)
			dp_put_int32(bytes + i * 4, (int32) path->tail[i]);
		dp_builder_append_binary(&b, "e", 1, STATS_SUBTYPE, bytes, path->ntail * 4);
		pfree(bytes);
		append_floats(&b, "f", path->tail_docs, path->ntail);
	}
	if (path->nhist > 0)
	{
		dp_builder_begin_array_field(&b, "h", 1);
		for (int i = 0; i < path->nhist; i++)
			dp_builder_append_value(&b, NULL, 0, &path->hist[i]);
		dp_builder_end(&b);
	}
	dp_builder_end(&b);
	/* the limit of the size of documents is not for this one */
	packed = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	result = dp_document_to_varlena(packed.data, packed.len);
	dp_builder_free(&b);
	return result;
}

/* ---------------------------------------------------------------- and back */

/* The bytes of a binary field whose length is a multiple of unit; -1 if it is something else. */
static int
read_units(const DpValue *value, int unit, const uint8 **bytes)
{
	int len;

	if (value->type != DP_TYPE_BINARY || value->data[4] != STATS_SUBTYPE)
		return -1;
	len = value->len - 5;
	*bytes = value->data + 5;
	return len % unit == 0 && len / unit <= STATS_MAX_VALUES ? len / unit : -1;
}

/* The floats of a binary field into room for exactly n of them. */
static bool
read_floats(const DpValue *value, float4 *floats, int n)
{
	const uint8 *bytes;

	if (read_units(value, 4, &bytes) != n)
		return false;
	for (int i = 0; i < n; i++)
	{
		floats[i] = get_float(bytes + i * 4);
		if (isnan(floats[i]))
			return false;
	}
	return true;
}

/* The same into new memory; returns their number or -1. */
static int
read_new_floats(const DpValue *value, const float4 **floats)
{
	const uint8 *bytes;
	int n = read_units(value, 4, &bytes);
	float4 *result;

	if (n < 0)
		return -1;
	result = palloc(Max(n, 1) * sizeof(float4));
	*floats = result;
	return read_floats(value, result, n) ? n : -1;
}

/* The values of an array, which point into it; returns their number or -1. */
static int
read_values(const DpValue *array, const DpValue **values)
{
	DpIter iter;
	DpValue *result;
	uint32 n;

	if (array->type != DP_TYPE_ARRAY)
		return -1;
	n = dp_document_count(array->data, array->len);
	if (n > STATS_MAX_VALUES)
		return -1;
	result = palloc(Max(n, 1) * sizeof(DpValue));
	dp_iter_init_value(&iter, array);
	for (uint32 i = 0; i < n; i++)
		if (!dp_iter_next_value(&iter, &result[i]))
			return -1;
	*values = result;
	return n;
}

static bool
read_types(const DpValue *value, DpPathStats *path)
{
	const uint8 *bytes;
	int n = read_units(value, 9, &bytes);

	for (int i = 0; i < n; i++, bytes += 9)
	{
		if (bytes[0] >= DP_STATS_TYPES)
			return false;
		path->types[bytes[0]] = get_float(bytes + 1);
		path->direct_types[bytes[0]] = get_float(bytes + 5);
	}
	return n >= 0;
}

static bool
read_lengths(const DpValue *value, DpPathStats *path)
{
	const uint8 *bytes;
	int n = read_units(value, 8, &bytes);

	if (n < 0 || n > DP_STATS_LENGTHS)
		return false;
	path->nlengths = n;
	for (int i = 0; i < n; i++, bytes += 8)
	{
		path->common_lengths[i] = dp_get_int32(bytes);
		path->length_shares[i] = get_float(bytes + 4);
	}
	return true;
}

static bool
read_tail(const DpValue *value, DpPathStats *path)
{
	const uint8 *bytes;
	int n = read_units(value, 4, &bytes);
	uint32 *result;

	if (n < 0)
		return false;
	path->tail = result = palloc(Max(n, 1) * sizeof(uint32));
	path->ntail = n;
	for (int i = 0; i < n; i++)
		result[i] = (uint32) dp_get_int32(bytes + i * 4);
	return true;
}

bool
dp_stats_unpack(const uint8 *bytes, uint32 size, DpPathStats *path)
{
	DpFault fault;
	DpIter iter;
	DpElement element;
	int docs = 0;
	int items = -1;
	int tail = 0;

	memset(path, 0, sizeof(*path));
	if (!dp_validate(bytes, size, &fault))
		return false;
	dp_iter_init(&iter, bytes, size);
	while (dp_iter_next(&iter, &element))
	{
		const DpValue *value = &element.value;
		float4 s[lengthof(scalars)];
		bool good = true;

		if (element.namelen != 1)
			return false;
		switch (element.name[0])
		{
			case 'p':
				good = value->type == DP_TYPE_STRING;
				if (good)
				{
					path->text = DP_STRING_DATA(value);
					path->textlen = DP_STRING_LEN(value);
				}
				break;
			case 's':
				good = read_floats(value, s, lengthof(scalars));
				for (int i = 0; good && i < lengthof(scalars); i++)
					SCALAR(path, i) = s[i];
				break;
			case 't':
				good = read_types(value, path);
				break;
			case 'l':
				good = read_floats(value, path->lengths, DP_STATS_QUANTILES);
				break;
			case 'k':
				good = read_lengths(value, path);
				break;
			case 'c':
				path->multiple = true;
				good = read_floats(value, path->counts, DP_STATS_QUANTILES);
				break;
			case 'm':
				path->nmcv = read_values(value, &path->mcv);
				good = path->nmcv >= 0;
				break;
			case 'd':
				docs = read_new_floats(value, &path->mcv_docs);
				break;
			case 'o':
				items = read_new_floats(value, &path->mcv_items);
				break;
			case 'e':
				good = read_tail(value, path);
				break;
			case 'f':
				tail = read_new_floats(value, &path->tail_docs);
				break;
			case 'h':
				path->nhist = read_values(value, &path->hist);
				good = path->nhist >= 0;
				break;
			default:
				return false;
		}
		if (!good)
			return false;
	}
	if (!path->multiple || path->nmcv == 0)
	{
		path->mcv_items = path->mcv_docs;
		items = docs;
	}
	for (int i = 0; i < path->ntail && tail == path->ntail; i++)
		path->tail_total += path->tail_docs[i];
	return path->text != NULL && docs == path->nmcv && items == path->nmcv && tail == path->ntail;
}
