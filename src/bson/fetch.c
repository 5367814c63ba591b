/*
 * fetch.c
 *		Reads stored documents only as far as needed.
 *
 * A value may be stored in five ways: plain in the row, compressed in the row, and outside the row
 * plain, or compressed with pglz or with lz4.  PostgreSQL's own slices work for plain and pglz;
 * they fetch all of an external lz4 value, so the chunks that the slice needs are fetched here.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/toast_compression.h"
#include "access/toast_internals.h"

#include "bson/fetch.h"

/* The first read of a value that is compressed in its row. */
#define SLICE_INLINE 1024

/* The first read of a value outside its row: one chunk. */
#define SLICE_PLAIN ((int32) TOAST_MAX_CHUNK_SIZE)

/*
 * Bytes that surely come out of the first chunk of a compressed value, at
 * worst: pglz adds a byte to every eight, lz4 one to every 255 and a few.
 */
#define SLICE_PGLZ ((int32) (TOAST_MAX_CHUNK_SIZE * 8 / 9 - 8))
#define SLICE_LZ4 ((int32) (TOAST_MAX_CHUNK_SIZE - TOAST_MAX_CHUNK_SIZE / 255 - 32))

/*
 * Where a slice was not enough, the path most likely leads far into the next
 * documents too: this many of them are read as a whole, unless they are so
 * large that trying is cheaper than being wrong.
 */
#define SLICE_MISSES 31
#define SLICE_ALWAYS (64 * 1024)

/* Small documents are fetched into the cache this far ahead of the search. */
#define PREFETCH_BYTES 1024
#define CACHE_LINE 64

static struct varlena *fetch_first_lz4(struct varlena *stored);
static bool
find_in_stored(struct varlena *stored, bool is_value, DpPath *path, bool whole, DpValue *value);
static DpFind
find_in(struct varlena *part, uint32 size, bool is_value, DpPath *path, bool whole, DpValue *value);

/*
 * Asks for a cache line.  A macro, because compilers take a function that does
 * nothing else for one that does nothing.
 */
#if defined(__GNUC__) || defined(__clang__)
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define PREFETCH(p) ((void) 0)
#endif

/*
 * Prefetches the cache lines of a small document before the search, and those of its neighbour: in
 * a sequential scan the next row is below this one in the page, and its bytes arrive while this row
 * is processed.  An unmapped address does no harm.  Lines of the last call are not prefetched
 * again; a wrong guess only costs time.
 */
static pg_attribute_always_inline void
prefetch_document(const uint8 *doc, uint32 size)
{
	static const uint8 *last = NULL;
	uint32 n = Min(size, PREFETCH_BYTES);
	Size distance = last - doc;

	if (distance == 0)
		return;
	last = doc;
	if (distance > 2 * PREFETCH_BYTES)
		for (uint32 i = CACHE_LINE; i < n; i += CACHE_LINE)
			PREFETCH(doc + i);
	for (uint32 i = 0; i < n + CACHE_LINE; i += CACHE_LINE)
		PREFETCH(doc - CACHE_LINE - i);
}

void
dp_fetch_ahead(const uint8 *doc, uint32 size)
{
	prefetch_document(doc, size);
}

bool
dp_fetch_path(Datum document, DpPath *path, bool whole, DpValue *value)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(document);

	if (likely(!VARATT_IS_EXTERNAL(stored) && !VARATT_IS_COMPRESSED(stored)))
	{
		const uint8 *doc = DP_DOC_DATA(stored);
		uint32 size = DP_DOC_SIZE(stored);

		prefetch_document(doc, size);
		return dp_path_find(doc, size, path, value);
	}
	return find_in_stored(stored, false, path, whole, value);
}

bool
dp_fetch_value_path(Datum bson_value, DpPath *path, bool whole, DpValue *value)
{
	return find_in_stored((struct varlena *) DatumGetPointer(bson_value), true, path, whole, value);
}

bool
dp_fetch_element(Datum bson_value, int32 position, bool whole, DpValue *value)
{
	union
	{
		DpPath path;
		char room[offsetof(DpPath, steps) + sizeof(DpPathStep)];
	} p;

	if (dp_datum_first_byte(bson_value) != DP_TYPE_ARRAY)
		return false;
	memset(&p, 0, sizeof(p));
	p.path.nsteps = 1;
	p.path.steps[0].name = "";
	p.path.steps[0].is_index = true;
	p.path.steps[0].index = position;
	return dp_fetch_value_path(bson_value, &p.path, whole, value);
}

void
dp_fetch_document(Datum document, bool whole, DpValue *start, uint32 *avail)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(document);
	struct varlena *part = whole ? NULL : dp_fetch_first(stored);

	start->type = DP_TYPE_DOCUMENT;
	start->len = dp_datum_size(document);
	if (part == NULL)
		part = pg_detoast_datum_packed(stored);
	start->data = DP_DOC_DATA(part);
	*avail = DP_DOC_SIZE(part);
}

uint32
dp_datum_size(Datum d)
{
	return (uint32) toast_raw_datum_size(d) - VARHDRSZ;
}

/* The first byte.  Raises DATA_CORRUPTED if the value is empty. */
uint8
dp_datum_first_byte(Datum d)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(d);

	if (VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v))
		v = PG_DETOAST_DATUM_SLICE(d, 0, 1);
	if (VARSIZE_ANY_EXHDR(v) < 1)
		dp_corrupted("the value has no type");
	return *(const uint8 *) VARDATA_ANY(v);
}

/*
 * One slice, then the whole.
 */
static bool
find_in_stored(struct varlena *stored, bool is_value, DpPath *path, bool whole, DpValue *value)
{
	uint32 size = dp_datum_size(PointerGetDatum(stored));
	struct varlena *part = NULL;
	DpFind found;

	if (path->misses == 0 || size > SLICE_ALWAYS)
		part = dp_fetch_first(stored);
	else
		path->misses--;
	if (part != NULL)
	{
		found = find_in(part, size, is_value, path, whole, value);
		if (found != DP_FIND_SHORT)
			return found == DP_FIND_FOUND;
		path->misses = SLICE_MISSES;
		if (part != stored)
			pfree(part);
	}
	part = pg_detoast_datum_packed(stored);
	return find_in(part, size, is_value, path, whole, value) == DP_FIND_FOUND;
}

/*
 * Searches the first part of a stored bson or bson_value of the given size.
 */
static DpFind
find_in(struct varlena *part, uint32 size, bool is_value, DpPath *path, bool whole, DpValue *value)
{
	uint32 avail = VARSIZE_ANY_EXHDR(part);
	DpValue start;

	start.type = DP_TYPE_DOCUMENT;
	start.data = (const uint8 *) VARDATA_ANY(part);
	start.len = size;
	if (is_value)
	{
		if (avail < 1)
			dp_corrupted("the value has no type");
		start.type = *start.data++;
		start.len--;
		avail--;
	}
	return dp_path_find_partial(&start, avail, path, whole, value);
}

/*
 * The first bytes of a stored value, or all of it if it is small or stands
 * plain in its row.  Returns NULL if there is no cheap way to get them.
 */
struct varlena *
dp_fetch_first(struct varlena *stored)
{
	if (VARATT_IS_EXTERNAL_ONDISK(stored))
	{
		struct varatt_external pointer;

		VARATT_EXTERNAL_GET_POINTER(pointer, stored);
		if (VARATT_EXTERNAL_GET_EXTSIZE(pointer) <= TOAST_MAX_CHUNK_SIZE)
			return NULL; /* a single chunk */
		if (!VARATT_EXTERNAL_IS_COMPRESSED(pointer))
			return pg_detoast_datum_slice(stored, 0, SLICE_PLAIN);
		switch (VARATT_EXTERNAL_GET_COMPRESS_METHOD(pointer))
		{
			case TOAST_PGLZ_COMPRESSION_ID:
				return pg_detoast_datum_slice(stored, 0, SLICE_PGLZ);
			case TOAST_LZ4_COMPRESSION_ID:
				return fetch_first_lz4(stored);
			default:
				return NULL;
		}
	}
	if (VARATT_IS_EXTERNAL(stored))
		return NULL; /* in memory, in another form */
	if (VARATT_IS_COMPRESSED(stored))
		return pg_detoast_datum_slice(stored, 0, SLICE_INLINE);
	return stored;
}

/*
 * The first bytes of a value that is compressed with lz4 and stored outside
 * its row: its first chunk, decompressed.  Returns NULL where the chunk ends
 * inside a run so long that its length does not end in the chunk; then the
 * decompressor reports the cut as corruption, which here it need not be.
 */
static struct varlena *
fetch_first_lz4(struct varlena *stored)
{
	struct varatt_external pointer;
	struct varlena *chunk;
	struct varlena *volatile part = NULL;
	Relation toast;
	MemoryContext context = CurrentMemoryContext;

	VARATT_EXTERNAL_GET_POINTER(pointer, stored);

	/* what is stored begins with the word that holds raw size and method */
	chunk = palloc(VARHDRSZ + TOAST_MAX_CHUNK_SIZE);
	SET_VARSIZE_COMPRESSED(chunk, VARHDRSZ + TOAST_MAX_CHUNK_SIZE);
	toast = table_open(pointer.va_toastrelid, AccessShareLock);
	table_relation_fetch_toast_slice(toast, pointer.va_valueid,
									 VARATT_EXTERNAL_GET_EXTSIZE(pointer), 0, TOAST_MAX_CHUNK_SIZE,
									 chunk);
	table_close(toast, AccessShareLock);

	PG_TRY();
	{
		part = lz4_decompress_datum_slice(chunk, SLICE_LZ4);
	}
	PG_CATCH();
	{
		if (geterrcode() != ERRCODE_DATA_CORRUPTED)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	pfree(chunk);
	return part;
}
