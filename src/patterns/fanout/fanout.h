/*
 * fanout.h
 *		The fan-out pattern: each new post is put on the walls of those who
 *		follow its author.
 *
 * Words:
 *
 *		post		a row of the source, which has the main trigger
 *		follow		a row of the table of followers: who reads (follower) whom (followee)
 *		wall		a document of the target, one for each reader who follows anybody
 *
 *		{_id: "elmo", posts: [{_id: 150, author: "bigbird", order: ...}, ...],
 *		 merged: ["celebrity"]}
 *
 * posts has the first keep posts, in order, of the authors that the reader
 * follows and that are fanned out; merged has the other authors: those with
 * more than threshold follows, whose posts are looked up when the wall is read.
 * order has the bytes of bson_sort_key(), only where order_by was declared.
 *
 * The group of a derivation is the reader.  A wall with fewer posts than keep
 * has all that there are; of a full one nothing is known beyond its last entry.
 *
 * Locks: who writes posts holds the lock of each author (a group lock, whose
 * key is an array with the author) in RowExclusiveLock mode before it reads who
 * follows him; who changes follows holds those of the authors and of the
 * readers in ExclusiveLock mode.  All are taken in one order, before any row is locked.
 *
 * fanout.c has the methods of the derivation, wall.c the arithmetic of
 * walls, read.c reads posts and follows, follow.c handles
 * changes of follows, calls.c has functions for SQL.
 */
#ifndef DP_PATTERNS_FANOUT_FANOUT_H
#define DP_PATTERNS_FANOUT_FANOUT_H

#include "kit/derive/change.h"
#include "kit/derive/derive.h"
#include "kit/derive/source.h"
#include "kit/key.h"
#include "mql/sort_key.h"

#define DP_FANOUT_MAX_KEEP 10000

/* An entry of a wall; all point into doc. */
typedef struct DpFanoutEntry
{
	DpValue doc;
	DpValue key; /* of the post */
	DpValue author;
	const uint8 *order; /* bytes of the sort key, NULL without order_by */
	uint32 order_len;
	bool added; /* scratch */
} DpFanoutEntry;

typedef struct DpFanoutEntries
{
	int n;
	int size;
	DpFanoutEntry *list;
} DpFanoutEntries;

/* A column of the posts' primary key: how it is compared */
typedef struct DpFanoutKey
{
	Oid collation;
	FmgrInfo cmp;
} DpFanoutKey;

/* A declaration; in its memory. */
typedef struct DpFanout
{
	DpDerivation *derivation;
	char *follow_pair;
	Oid follows; /* the table of followers, InvalidOid if it is gone */
	DpSource *posts;
	DpSource *followers; /* NULL if the table is gone */
	DpPath *author;      /* in posts */
	DpPath *follower;    /* in follows */
	DpPath *followee;
	int keep;
	int64 threshold;
	struct varlena *order_by; /* or NULL: the primary key alone, the greatest first */
	DpSortSpec *sort;
	bool key_is_value; /* the primary key is one bson_value */
	DpFanoutKey keys[INDEX_MAX_KEYS];

	/* addresses that name statements */
	char plan_post;
	char plan_top;
	char plan_some;
	char plan_authors;
	char plan_follows;
	char plan_everybody;
	char plan_wall;
	char plan_read;
	char plan_read_top;
	char plan_read_authors;
} DpFanout;

/* What a statement does to the posts of an author: the same for all walls that have them. */
typedef struct DpFanoutBatch
{
	int nkeys;
	DpValue *keys;       /* of posts that were written, whatever has become of them */
	DpFanoutEntries now; /* those of them that are the author's now */
} DpFanoutBatch;

/* An author in a run: of a group whose key is an array. */
typedef struct DpFanoutAuthor
{
	DpValue author;
	List *keys; /* of posts, bson_values */
	bool gathered;
	int64 delta;          /* follows that came, less those that went */
	List *readers;        /* whose follows did, DpGroup * */
	DpFanoutEntries *top; /* his first posts, once they were read */
} DpFanoutAuthor;

/* What becomes of an author on a wall */
typedef enum DpFanoutStanding
{
	FANOUT_NONE,   /* not followed */
	FANOUT_FANNED, /* his posts are on the wall */
	FANOUT_MERGED  /* they are looked up */
} DpFanoutStanding;

typedef struct DpFanoutStand
{
	DpFanoutAuthor *author;
	DpFanoutStanding standing;
} DpFanoutStand;

/* A wall in a run. */
typedef struct DpFanoutWall
{
	List *batches;     /* DpFanoutBatch * */
	List *stands;      /* DpFanoutStand * */
	bool gone;         /* the reader follows nobody any more */
	bool only_missing; /* make the wall if there is none */
} DpFanoutWall;

/* fanout.c */
extern DpFanout *dp_fanout(DpDecl *decl);
extern DpFanoutAuthor *dp_fanout_author(DpGroup *group);
extern DpFanoutWall *dp_fanout_wall(DpGroup *group);

/* The group that stands for an author: the key is an array. */
extern DpGroup *dp_fanout_author_group(DpFanout *f, DpDerive *run, const DpValue *author);
extern bool dp_fanout_is_author(const DpGroup *group);

/* Whether a field names an author. */
extern bool dp_fanout_name(const DpPath *path, struct varlena *doc, DpValue *author);

/* wall.c */

/* Appends an entry for a post; false if it has no author.  Its bytes are in the current context. */
extern bool
dp_fanout_entry(DpFanout *f, struct varlena *doc, const DpKey *key, DpFanoutEntry *entry);

extern void dp_fanout_append(DpFanoutEntries *entries, const DpFanoutEntry *entry);

/* Which of two entries comes first on a wall. */
extern int dp_fanout_compare(DpFanout *f, const DpFanoutEntry *a, const DpFanoutEntry *b);
extern void dp_fanout_sort(DpFanout *f, DpFanoutEntries *entries);

/*
 * The entries of a wall, and the authors that are looked up (DpValue *); point into the document.
 */
extern void
dp_fanout_parse(DpFanout *f, struct varlena *wall, DpFanoutEntries *entries, List **merged);

/* A wall's document. */
extern struct varlena *dp_fanout_build(DpFanout *f, const DpValue *reader,
									   const DpFanoutEntries *entries, int n, List *merged);

/*
 * The wall with what the run knows of it; NULL if it must be computed anew.  merged is brought up
 * to date in any case.
 */
extern struct varlena *
dp_fanout_change(DpFanout *f, DpGroup *group, struct varlena *wall, List **merged);

extern bool dp_fanout_has(List *values, const DpValue *value);

/* read.c: all inside SPI_connect(), as the owner */

/* The first posts of an author. */
extern void
dp_fanout_top(DpFanout *f, const DpValue *author, bool latest, DpFanoutEntries *entries);

/* The entry of a post as it is now; false if there is none or it has no author. */
extern bool dp_fanout_post(DpFanout *f, const DpValue *key, DpFanoutEntry *entry);

/*
 * Calls visit with each follower of an author, at most limit (0: all); returns how many follows
 * there are.
 */
typedef void (*DpFanoutVisit)(void *arg, const DpValue *value);
extern int64 dp_fanout_followers(DpFanout *f, const DpValue *author, int64 limit,
								 DpFanoutVisit visit, void *arg);

/* The number of follows of an author, as far as limit. */
extern int64 dp_fanout_count(DpFanout *f, const DpValue *author, int64 limit, bool latest);

extern bool dp_fanout_follows(DpFanout *f, const DpValue *reader, const DpValue *author);
extern bool dp_fanout_follows_any(DpFanout *f, const DpValue *reader);

/* Calls visit with each reader. */
extern void dp_fanout_readers(DpFanout *f, DpFanoutVisit visit, void *arg);

/*
 * The whole wall of a reader; NULL if he follows nobody.  merged: what is known
 * of the authors that are looked up; NULL: their follows are counted.
 */
extern struct varlena *
dp_fanout_compute(DpFanout *f, const DpValue *reader, List **merged, bool latest);

/* DpPattern: brings a row in line. */
extern bool dp_fanout_settle(DpDecl *decl, const DpKey *key);

/* follow.c */

/* What a statement on a table of followers means to the walls: DpPattern. */
extern void dp_fanout_follows_changed(DpChanges *changes);

#endif /* DP_PATTERNS_FANOUT_FANOUT_H */
