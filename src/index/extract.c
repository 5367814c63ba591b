/*
 * extract.c
 *		The keys that an index stores for a document.
 *
 * The document is walked once for all paths, or once for each named path and each pair.  Keys are
 * written one after the other into a few chunks of memory.  They are sorted here, where a
 * comparison is cheap; GIN, which calls a function for each comparison, then only verifies the
 * order.  See key.h for the stored format.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "index/key.h"
#include "index/key_hash.h"

/* Chunks of memory for keys, and room for pointers to them, to begin with */
#define EXTRACT_FIRST_CHUNK 4096
#define EXTRACT_CHUNK 65536
#define EXTRACT_FIRST_KEYS 128

/* The most that a key takes of it while it is made: eight bytes behind it are cleared. */
#define EXTRACT_ROOM (sizeof(DpIndexKey) + 8)

/* A key and, to sort it, its first eight bytes (zeros behind a shorter one) */
typedef struct ExtractKey
{
	uint64 first;
	uint8 *key;
} ExtractKey;

typedef struct Extract
{
	const DpKeyOptions *options;
	ExtractKey *keys;
	uint32 nkeys;
	uint32 size;        /* room in keys */
	uint8 *next;        /* where the next key is made */
	uint8 *end;         /* of the chunk */
	DpKeyPairNote note; /* or NULL */
	void *arg;
} Extract;

/* Values of one part of a pair within one element. */
typedef struct PartValues
{
	uint32 n;     /* may be DP_KEY_PAIR_LIMIT + 1: too many */
	bool missing; /* in some branch */
	DpValue values[DP_KEY_PAIR_LIMIT];
} PartValues;

static void extract_grow(Extract *x);
static int32 extract_sort(Extract *x);
static inline int extract_compare(const ExtractKey *a, const ExtractKey *b);
static void walk_document(Extract *x, const DpValue *document, DpPathState state);
static void walk_container(Extract *x, const DpValue *value, DpPathState state, bool is_element);
static bool
walk_named(Extract *x, const DpKeyPath *path, int step, const DpValue *value, DpPathState state);
static void walk_pair(Extract *x, const DpKeyPair *pair, int step, const DpValue *value);
static void pair_element(Extract *x, const DpKeyPair *pair, const DpValue *element);
static void part_collect(PartValues *part, const DpPath *path, int step, const DpValue *value);
static void part_array(PartValues *part, const DpValue *array);

#define ST_SORT extract_sort_keys
#define ST_ELEMENT_TYPE ExtractKey
#define ST_COMPARE(a, b) extract_compare(a, b)
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* ---------------------------------------------------------------- keys */

/*
 * Makes room for one more key.  Keys that are made stay where they are.
 */
static void
extract_grow(Extract *x)
{
	if (x->nkeys == x->size)
	{
		x->size *= 2;
		x->keys = repalloc_huge(x->keys, x->size * sizeof(ExtractKey));
	}
	if (x->end - x->next < EXTRACT_ROOM)
	{
		x->next = palloc(EXTRACT_CHUNK);
		x->end = x->next + EXTRACT_CHUNK;
	}
}

/* The order of keys. */
static inline int
extract_compare(const ExtractKey *a, const ExtractKey *b)
{
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return dp_key_order(a->key + 1, VARSIZE_SHORT(a->key) - 1, b->key + 1,
						VARSIZE_SHORT(b->key) - 1);
}

/*
 * Sorts the keys and makes an array of datums of them, each once, in the same
 * place.  Returns their number.
 */
static int32
extract_sort(Extract *x)
{
	Datum *datums = (Datum *) x->keys;
	int32 n = 0;

	StaticAssertStmt(sizeof(Datum) <= sizeof(ExtractKey), "datums do not overtake keys");
	extract_sort_keys(x->keys, x->nkeys);
	for (uint32 i = 0; i < x->nkeys; i++)
	{
		ExtractKey key = x->keys[i];

		if (i + 1 < x->nkeys && extract_compare(&key, &x->keys[i + 1]) == 0)
			continue;
		datums[n++] = PointerGetDatum(key.key);
	}
	return n;
}

/* Begins the next key.  Returns where the bytes of its value go. */
static inline uint8 *
key_begin(Extract *x, DpKeyBase base, DpKeyClass class)
{
	if (unlikely(x->nkeys == x->size || x->end - x->next < EXTRACT_ROOM))
		extract_grow(x);
	return dp_key_put_head(x->next, base, class);
}

/* Ends the key. */
static inline void
key_finish(Extract *x, uint8 *end)
{
	ExtractKey *key = &x->keys[x->nkeys++];

	dp_key_put_size(x->next, end);
	memset(end, 0, 8);
	key->first = dp_key_load64(x->next + 1);
	key->key = x->next;
	x->next += MAXALIGN(end - x->next);
}

/* The key of a value as it stands. */
static inline void
key_add(Extract *x, DpKeyBase base, const DpValue *value)
{
	uint8 *out = key_begin(x, base, (DpKeyClass) dp_key_class[value->type]);

	key_finish(x, out + dp_key_value(value, out));
}

/* The key of a class, with a byte unless that is 0. */
static inline void
key_add_kind(Extract *x, DpKeyBase base, DpKeyClass class, uint8 kind)
{
	uint8 *out = key_begin(x, base, class);

	out[0] = kind;
	key_finish(x, out + (kind != 0));
}

Datum *
dp_key_extract(const uint8 *doc, uint32 size, const DpKeyOptions *options, int32 *nkeys)
{
	return dp_key_extract_noted(doc, size, options, nkeys, NULL, NULL);
}

Datum *
dp_key_extract_noted(const uint8 *doc, uint32 size, const DpKeyOptions *options, int32 *nkeys,
					 DpKeyPairNote note, void *arg)
{
	Extract x = { .options = options, .note = note, .arg = arg };
	DpValue document = { doc, size, DP_TYPE_DOCUMENT };

	x.size = EXTRACT_FIRST_KEYS;
	x.keys = palloc(x.size * sizeof(ExtractKey));
	x.next = palloc(EXTRACT_FIRST_CHUNK);
	x.end = x.next + EXTRACT_FIRST_CHUNK;

	if (options->all_paths)
		walk_document(&x, &document, DP_KEY_ROOT);
	for (int i = 0; i < options->npaths; i++)
	{
		const DpKeyPath *path = &options->paths[i];

		if (walk_named(&x, path, 0, &document, DP_KEY_ROOT))
			key_add_kind(&x, dp_key_base(options, path->state), DP_KEY_MISSING, 0);
	}
	for (int i = 0; i < options->npairs; i++)
		walk_pair(&x, &options->pairs[i], 0, &document);

	*nkeys = extract_sort(&x);
	return (Datum *) x.keys;
}

/* ---------------------------------------------------------------- all paths */

/*
 * The keys of the fields of a document.
 */
static void
walk_document(Extract *x, const DpValue *document, DpPathState state)
{
	DpIter iter;
	DpElement field;

	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	dp_iter_init_value(&iter, document);
	while (dp_iter_next(&iter, &field))
	{
		DpPathState below = dp_key_step(state, field.name, field.namelen);

		if (dp_type_is_container(field.value.type))
			walk_container(x, &field.value, below, false);
		else
			key_add(x, dp_key_base(x->options, below), &field.value);
	}
}

/*
 * The keys of a document or an array, and of its contents.  A non-empty document that is an element
 * of an array has no key of its own.
 */
static void
walk_container(Extract *x, const DpValue *value, DpPathState state, bool is_element)
{
	DpKeyBase base = dp_key_base(x->options, state);
	DpIter iter;
	DpValue element;
	uint32 n = 0;

	if (value->type == DP_TYPE_DOCUMENT)
	{
		if (value->len <= DP_DOCUMENT_MIN_SIZE)
			key_add_kind(x, base, DP_KEY_DOCUMENT, 0);
		else if (!is_element)
			key_add_kind(x, base, DP_KEY_DOCUMENT, 1);
		walk_document(x, value, state);
		return;
	}

	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	dp_iter_init_value(&iter, value);
	while (dp_iter_next_value(&iter, &element))
	{
		if (dp_type_is_container(element.type))
			walk_container(x, &element, state, true);
		else
			key_add(x, base, &element);
		n++;
	}
	key_add_kind(x, base, DP_KEY_ARRAY, Min(n, DP_KEY_ARRAY_SEVERAL));
}

/* ---------------------------------------------------------------- named paths */

/*
 * The keys at and below a named path, from the given step on.  Names that are whole numbers are
 * skipped, because paths do not contain them.  Returns true if some branch lacks the path, as
 * filters see it: in an array on the way they only test documents, so an array without documents
 * lacks it.
 */
static bool
walk_named(Extract *x, const DpKeyPath *path, int step, const DpValue *value, DpPathState state)
{
	const DpPathStep *name = &path->path->steps[step];
	bool found = false;
	bool missing = false;
	DpIter iter;
	DpElement field;
	uint32 n = 0;

	if (!dp_type_is_container(value->type))
		return true;

	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	dp_iter_init_value(&iter, value);

	if (value->type == DP_TYPE_ARRAY)
	{
		while (dp_iter_next(&iter, &field))
		{
			if (field.value.type == DP_TYPE_DOCUMENT)
			{
				found = true;
				missing |= walk_named(x, path, step, &field.value, state);
			}
			else if (field.value.type == DP_TYPE_ARRAY)
				(void) walk_named(x, path, step, &field.value, state);
			n++;
		}
		key_add_kind(x, dp_key_base(x->options, state), DP_KEY_ARRAY, Min(n, DP_KEY_ARRAY_SEVERAL));
		return missing || !found;
	}

	while (dp_iter_next(&iter, &field))
	{
		if (field.namelen == name->namelen && memcmp(field.name, name->name, field.namelen) == 0)
		{
			DpPathState below = dp_key_step(state, field.name, field.namelen);

			found = true;
			if (step + 1 < path->path->nsteps)
				missing |= walk_named(x, path, step + 1, &field.value, below);
			else if (dp_type_is_container(field.value.type))
				walk_container(x, &field.value, below, false);
			else
				key_add(x, dp_key_base(x->options, below), &field.value);
		}
		else if (dp_type_is_container(field.value.type) &&
				 dp_key_is_position(field.name, field.namelen))
			(void) walk_named(x, path, step, &field.value, state);
	}
	return missing || !found;
}

/* ---------------------------------------------------------------- pairs */

/*
 * The keys of a pair, from the given step of its path on.
 */
static void
walk_pair(Extract *x, const DpKeyPair *pair, int step, const DpValue *value)
{
	DpIter iter;
	DpElement field;

	if (!dp_type_is_container(value->type))
		return;
	if (value->type == DP_TYPE_DOCUMENT && step == pair->path->nsteps)
	{
		pair_element(x, pair, value);
		return;
	}

	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	dp_iter_init_value(&iter, value);
	while (dp_iter_next(&iter, &field))
	{
		if (value->type == DP_TYPE_ARRAY)
			walk_pair(x, pair, step, &field.value);
		else if (field.namelen == pair->path->steps[step].namelen &&
				 memcmp(field.name, pair->path->steps[step].name, field.namelen) == 0)
		{
			walk_pair(x, pair, step + 1, &field.value);
			return; /* the first one of the name counts */
		}
	}
}

/*
 * The keys of a pair for one element: all values of the first part with all of the second, up to a
 * limit.
 */
static void
pair_element(Extract *x, const DpKeyPair *pair, const DpValue *element)
{
	PartValues first;
	PartValues second;

	first.n = second.n = 0;
	first.missing = second.missing = false;
	part_collect(&first, pair->first, 0, element);
	if (first.n == 0)
		return;
	part_collect(&second, pair->second, 0, element);

	if (first.n * (second.n + second.missing) > DP_KEY_PAIR_LIMIT)
	{
		key_add_kind(x, dp_key_base(x->options, pair->state), DP_KEY_MISSING, 0);
		return;
	}
	for (uint32 i = 0; i < first.n; i++)
	{
		DpKeyBase base = dp_key_pair_base(x->options, pair, &first.values[i]);

		for (uint32 j = 0; j < second.n; j++)
			key_add(x, base, &second.values[j]);
		if (second.missing)
			key_add_kind(x, base, DP_KEY_MISSING, 0);
		if (x->note != NULL)
			x->note(pair, &first.values[i], base, x->arg);
	}
}

/* Notes a value of a part. */
static void
part_add(PartValues *part, const DpValue *value)
{
	if (part->n < DP_KEY_PAIR_LIMIT)
		part->values[part->n++] = *value;
	else
		part->n = DP_KEY_PAIR_LIMIT + 1;
}

/*
 * The values of a part of a pair, from the given step of its path on, and
 * whether it is missing in some branch: see walk_named().
 */
static void
part_collect(PartValues *part, const DpPath *path, int step, const DpValue *value)
{
	DpIter iter;
	DpValue element;
	bool found = false;

	while (value->type == DP_TYPE_DOCUMENT && step < path->nsteps)
	{
		if (!dp_field_find(value->data, value->len, path->steps[step].name,
						   path->steps[step].namelen, &element))
			break;
		value = &element;
		step++;
	}
	if (step == path->nsteps)
	{
		if (value->type == DP_TYPE_ARRAY)
			part_array(part, value);
		else
			part_add(part, value);
		return;
	}
	if (value->type != DP_TYPE_ARRAY)
	{
		part->missing = true;
		return;
	}

	/* an array on the way */
	part_add(part, value);
	check_stack_depth();
	dp_iter_init_value(&iter, value);
	while (part->n <= DP_KEY_PAIR_LIMIT && dp_iter_next_value(&iter, &element))
	{
		bool missing = part->missing;

		if (!dp_type_is_container(element.type))
			continue;
		part_collect(part, path, step, &element);
		if (element.type == DP_TYPE_DOCUMENT)
			found = true;
		else
			part->missing = missing;
	}
	if (!found)
		part->missing = true;
}

/*
 * An array at the end of a part: itself and its elements.
 */
static void
part_array(PartValues *part, const DpValue *array)
{
	DpIter iter;
	DpValue element;

	check_stack_depth();
	part_add(part, array);
	dp_iter_init_value(&iter, array);
	while (part->n <= DP_KEY_PAIR_LIMIT && dp_iter_next_value(&iter, &element))
	{
		if (element.type == DP_TYPE_ARRAY)
			part_array(part, &element);
		else
			part_add(part, &element);
	}
}
