/*
 * names.c
 *		Finding names among many: see names.h.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"
#include "utils/varlena.h"

#include "bson/names.h"
#include "bson/path.h"

/* The cost of unsuccessful searches before the fields of a document are hashed: */
#define WALK_BYTES 4096 /* so many bytes, */
#define WALK_TIMES 8    /* and the document so many times */

static uint32 hash_of(const char *name, uint32 len);
static uint32 *slot_of(const DpNames *names, const char *name, uint32 len, uint32 hash);
static void names_grow(DpNames *names);
static void finder_hash(DpFinder *finder);

static uint32
hash_of(const char *name, uint32 len)
{
	return hash_bytes((const unsigned char *) name, len);
}

static inline bool
is_name(const DpName *n, const char *name, uint32 len)
{
	return n->len == len && memcmp(n->name, name, len) == 0;
}

/* Where a name's position stands, or the free slot where it belongs. */
static uint32 *
slot_of(const DpNames *names, const char *name, uint32 len, uint32 hash)
{
	for (uint32 i = hash & names->mask;; i = (i + 1) & names->mask)
	{
		uint32 *slot = &names->slots[i];

		if (*slot == 0 ||
			(names->names[*slot - 1].hash == hash && is_name(&names->names[*slot - 1], name, len)))
			return slot;
	}
}

int
dp_names_find_hashed(const DpNames *names, const char *name, uint32 len)
{
	return (int) *slot_of(names, name, len, hash_of(name, len)) - 1;
}

uint32
dp_names_add(DpNames *names, const char *name, uint32 len, bool *found)
{
	int at;
	DpName *last;

	CHECK_FOR_INTERRUPTS();
	if (names->n == names->room)
		names_grow(names);
	last = &names->names[names->n];
	last->name = name;
	last->len = len;
	if (names->slots != NULL)
	{
		uint32 *slot;

		last->hash = hash_of(name, len);
		slot = slot_of(names, name, len, last->hash);
		*found = *slot != 0;
		if (!*found)
			*slot = ++names->n;
		return *slot - 1;
	}
	at = dp_names_find(names, name, len);
	*found = at >= 0;
	return *found ? (uint32) at : names->n++;
}

/*
 * Makes room for as many names again, and from the second time on hashes them.
 */
static void
names_grow(DpNames *names)
{
	if (names->room == 0)
	{
		names->room = DP_NAMES_FEW;
		names->names = palloc(sizeof(DpName) * names->room);
		return;
	}
	names->room *= 2;
	names->names = repalloc_huge(names->names, sizeof(DpName) * (Size) names->room);
	if (names->slots == NULL)
		for (uint32 i = 0; i < names->n; i++)
			names->names[i].hash = hash_of(names->names[i].name, names->names[i].len);
	else
		pfree(names->slots);

	/* at most half of the slots are taken */
	names->mask = names->room * 2 - 1;
	names->slots = MemoryContextAllocExtended(GetMemoryChunkContext(names->names),
											  sizeof(uint32) * ((Size) names->mask + 1),
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 i = 0; i < names->n; i++)
	{
		DpName *n = &names->names[i];

		*slot_of(names, n->name, n->len, n->hash) = i + 1;
	}
}

void
dp_names_free(DpNames *names)
{
	if (names->names != NULL)
		pfree(names->names);
	if (names->slots != NULL)
		pfree(names->slots);
	memset(names, 0, sizeof(DpNames));
}

/* ---------------------------------------------------------------- documents */

void
dp_finder_init(DpFinder *finder, const DpValue *document)
{
	finder->doc = document->data;
	finder->size = document->len;
	finder->walked = 0;
	finder->context = CurrentMemoryContext;
	finder->fields = NULL;
}

bool
dp_finder_find(DpFinder *finder, const char *name, uint32 len, DpValue *value)
{
	int at;

	CHECK_FOR_INTERRUPTS();
	if (finder->fields == NULL)
	{
		bool found = dp_field_find(finder->doc, finder->size, name, len, value);

		finder->walked += found ? value->data - finder->doc : finder->size;
		if (likely(finder->walked <= WALK_BYTES + (Size) finder->size * WALK_TIMES))
			return found;
		finder_hash(finder);
		return found;
	}
	at = dp_names_find(&finder->names, name, len);
	if (at >= 0)
	{
		DpIter iter = { finder->fields[at], finder->doc + finder->size - 1 };
		DpElement element;

		(void) dp_iter_next(&iter, &element);
		*value = element.value;
	}
	return at >= 0;
}

bool
dp_finder_path(DpFinder *finder, const DpPath *path, DpValue *value)
{
	const uint8 *at;

	if (path->nsteps == 0)
		return dp_path_find(finder->doc, finder->size, path, value);
	if (!dp_finder_find(finder, path->steps[0].name, path->steps[0].namelen, value))
		return false;
	for (int i = 1; i < path->nsteps; i++)
	{
		if (!dp_type_is_container(value->type) || !dp_step_find(value, &path->steps[i], &at, value))
			return false;
	}
	return true;
}

/* Notes where the fields of the document are. */
static void
finder_hash(DpFinder *finder)
{
	DpIter iter;
	DpElement element;
	uint32 room = dp_array_count(finder->doc, finder->size);
	MemoryContext old = MemoryContextSwitchTo(finder->context);
	const uint8 *start;

	memset(&finder->names, 0, sizeof(DpNames));
	finder->fields = palloc_extended(sizeof(uint8 *) * Max((Size) room, 1), MCXT_ALLOC_HUGE);
	dp_iter_init(&iter, finder->doc, finder->size);
	for (start = iter.next; dp_iter_next(&iter, &element); start = iter.next)
	{
		bool found;
		uint32 at = dp_names_add(&finder->names, element.name, element.namelen, &found);

		if (!found)
			finder->fields[at] = start;
	}
	MemoryContextSwitchTo(old);
}

void
dp_finder_free(DpFinder *finder)
{
	if (finder->fields == NULL)
		return;
	dp_names_free(&finder->names);
	pfree(finder->fields);
}

/* A misspelling has at most three edits, and at most in half of the name. */
void
dp_nearest_try(DpNearest *n, const char *candidate)
{
	int length = strlen(candidate);
	int most = Min(Min(3, length / 2), n->nearest != NULL ? n->distance - 1 : (int) n->len / 2);
	int distance;

	if (n->len > 64)
		return;
	distance =
		varstr_levenshtein_less_equal(n->name, n->len, candidate, length, 1, 1, 1, most, true);
	if (distance <= most)
	{
		n->nearest = candidate;
		n->distance = distance;
	}
}

int
dp_nearest_hint(const DpNearest *n)
{
	return n->nearest != NULL ? errhint("Did you mean \"%s\"?", n->nearest) : 0;
}
