/*
 * names.h
 *		Finds names among many: of specifications, which contain each name once, and of
 *		documents in which many names are searched.  Or the most similar one, for an error.
 *
 * A few names are compared one by one, and a few searches walk through the document, as the reader
 * does.  Beyond that the names are hashed, so that neither costs more than its bytes do.
 */
#ifndef DP_BSON_NAMES_H
#define DP_BSON_NAMES_H

#include "bson/path.h"

/* So many names are compared one by one. */
#define DP_NAMES_FEW 8

typedef struct DpName
{
	const char *name; /* the caller's */
	uint32 len;
	uint32 hash; /* once there are more than a few */
} DpName;

/* Names in the order of insertion; zeroed memory is an empty list. */
typedef struct DpNames
{
	DpName *names;
	uint32 n;
	uint32 room;
	uint32 mask;   /* of slots, whose number is a power of 2 */
	uint32 *slots; /* positions, counted from 1; NULL: names are few */
} DpNames;

extern int dp_names_find_hashed(const DpNames *names, const char *name, uint32 len);

/* The position of a name, or -1. */
static inline int
dp_names_find(const DpNames *names, const char *name, uint32 len)
{
	if (names->slots != NULL)
		return dp_names_find_hashed(names, name, len);
	for (uint32 i = 0; i < names->n; i++)
		if (names->names[i].len == len && memcmp(names->names[i].name, name, len) == 0)
			return (int) i;
	return -1;
}

/*
 * The position of a name, which is added if it is not among them: then it is
 * the last and *found is false.  The name must stay where it is.  Memory is
 * taken from the current context the first time.
 */
extern uint32 dp_names_add(DpNames *names, const char *name, uint32 len, bool *found);

extern void dp_names_free(DpNames *names);

/* A document in which several names are searched */
typedef struct DpFinder
{
	const uint8 *doc;
	uint32 size;
	Size walked;           /* bytes, for nothing */
	MemoryContext context; /* current when it was initialised */
	DpNames names;         /* of its fields, once that is too much, */
	const uint8 **fields;  /* and where the first of each name begins */
} DpFinder;

extern void dp_finder_init(DpFinder *finder, const DpValue *document);

/* The first field of that name, and the value at a path. */
extern bool dp_finder_find(DpFinder *finder, const char *name, uint32 len, DpValue *value);
extern bool dp_finder_path(DpFinder *finder, const DpPath *path, DpValue *value);

extern void dp_finder_free(DpFinder *finder);

/* The most similar of several names, for a hint; initialise the name that is not one of them */
typedef struct DpNearest
{
	const char *name;
	uint32 len;
	const char *nearest; /* the caller's; NULL: all are too different */
	int distance;
} DpNearest;

extern void dp_nearest_try(DpNearest *n, const char *candidate);

/* errhint() for ereport, if there is a similar name. */
extern int dp_nearest_hint(const DpNearest *n);

#endif /* DP_BSON_NAMES_H */
