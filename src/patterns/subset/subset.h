/*
 * subset.h
 *		The subset pattern: a document shows the first few rows of its group.
 *
 * The rows of the source (reviews) that refer to a target document (a product) are
 * ordered by the order keys of their documents (bson_sort_key()), then by the
 * source's primary key.  The field of the target is an array of members, the
 * projections of the first keep of them.
 *
 * The pattern creates an index on the source, ((document -> link), sort key,
 * primary key columns), so that the beginning of a group is the beginning of a
 * range of the index.
 *
 * subset.c follows changes, source.c reads the source by that index,
 * kit/derive/member.c builds members.
 *
 * A saved array may be an old copy.  To distinguish old elements from new ones, the
 * identities of members that are no longer shown are added to a list (a queue,
 * <target>_<name>_removed).
 */
#ifndef DP_PATTERNS_SUBSET_SUBSET_H
#define DP_PATTERNS_SUBSET_SUBSET_H

#include "bson/builder.h"
#include "kit/derive/derive.h"
#include "kit/derive/member.h"
#include "mql/filter.h"
#include "mql/sort_key.h"

#define DP_SUBSET_MAX_KEEP 10000

/* A column of the source's primary key. */
typedef struct DpSubsetKey
{
	char *name;
	AttrNumber attnum; /* in the table that was declared to be the source */
	bool byval;
	int16 len;
	Oid collation;
	FmgrInfo cmp;
} DpSubsetKey;

/* A table, or a partition, with rows of the source; and its index. */
typedef struct DpSubsetLeaf
{
	Oid relid;
	Oid index;
	AttrNumber doc_attnum;
} DpSubsetLeaf;

typedef struct DpSubset
{
	DpDerivation *derivation;
	DpPath *field;
	DpPath *count; /* or NULL */
	bool count_deferred;
	int keep;
	char *on_field;
	DpPath *link;
	DpValue order;
	struct varlena *order_by;
	DpSortSpec *sort;
	struct varlena *filter_spec; /* or NULL */
	DpFilter *filter;
	DpMember *member;
	int nidentity; /* paths in members by which they are known; 0: by their bytes */
	DpPath **identity;
	bool by_id;     /* the only one is the source's _id */
	bool remembers; /* there is a list of removed members */

	/* The source, looked at again after changes of the schema: */
	uint64 generation;
	char *doc_column;
	int nkeys;
	DpSubsetKey *keys;
	List *leaves; /* of DpSubsetLeaf */
	Oid equal;    /* the function that compares links */
	MemoryContext source_context;
} DpSubset;

/* A position in the order */
typedef struct DpSubsetPosition
{
	const char *key; /* the sort key's bytes */
	uint32 len;
	Datum row[INDEX_MAX_KEYS]; /* the row's primary key */
} DpSubsetPosition;

/* source.c */

/*
 * Finds out what the source looks like, unless that is known.  Raises UNDEFINED_TABLE and others.
 */
extern void dp_subset_source(DpSubset *s);

/* Whether the source, each partition of it, has the index. */
extern bool dp_subset_is_indexed(DpSubset *s);

/* Compares two positions: negative if the first is before the second. */
extern int
dp_subset_compare(const DpSubset *s, const DpSubsetPosition *a, const DpSubsetPosition *b);

/*
 * Returns whether a position is among the first keep of a group. Reads the latest committed rows,
 * and those of the transaction.
 */
extern bool dp_subset_reaches(DpSubset *s, const DpValue *link, const DpSubsetPosition *position);

/* Appends the members of a group to the array that is open in the builder, in their order. */
extern void dp_subset_members(DpSubset *s, const DpValue *link, DpBuilder *b);

/* The number of rows of a group. */
extern int64 dp_subset_count(DpSubset *s, const DpValue *link);

#endif /* DP_PATTERNS_SUBSET_SUBSET_H */
