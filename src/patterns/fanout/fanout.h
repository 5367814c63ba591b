/*
 * fanout.h
 *		The fan-out pattern: each new post is added to the walls of the
 *		followers of its author.
 *
 * Words:
 *
 *		post		a row of the source, which has the main trigger
 *		follow		a row of the table of followers: a reader (follower) and an author (followee)
 *		wall		a document of the target, one for each reader with follows
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
 * Locks: a writer of posts locks each author (a group lock, whose key is an array
 * with the author) in RowExclusiveLock mode before it reads the followers; a
 * writer of follows locks the authors and the readers in ExclusiveLock mode.  All
 * are taken in one order, before any row is locked.
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
	char *follow_link_id;
	Oid follows; /* the table of followers, InvalidOid if it is missing */
	DpSource *posts;
	DpSource *followers; /* NULL if the table is missing */
	DpPath *author;      /* in posts */
	DpPath *follower;    /* in follows */
	DpPath *followee;
	int keep;
	int64 threshold;
	struct varlena *order_by; /* or NULL: the primary key alone, the greatest first */
	DpSortSpec *sort;
	bool key_is_value; /* the primary key is one bson_value */
	DpFanoutKey keys[INDEX_MAX_KEYS];
} DpFanout;

/* What a statement does to the posts of an author, the same for all walls */
typedef struct DpFanoutPosts
{
	int nkeys;
	DpValue *keys;       /* of written posts, whatever became of them */
	DpFanoutEntries now; /* entries of those that still belong to the author */
} DpFanoutPosts;

/* An author in a batch: a group whose key is an array */
typedef struct DpFanoutAuthor
{
	DpValue author;
	List *keys; /* of posts, bson_values */
	bool gathered;
	int64 delta;          /* added follows minus removed ones */
	List *readers;        /* groups of readers with changed follows, DpGroup * */
	DpFanoutEntries *top; /* first posts, once read */
} DpFanoutAuthor;

/* State of an author on a wall */
typedef enum DpFanoutStanding
{
	FANOUT_NONE,   /* not followed */
	FANOUT_FANNED, /* posts are on the wall */
	FANOUT_MERGED  /* posts are looked up when the wall is read */
} DpFanoutStanding;

typedef struct DpFanoutStand
{
	DpFanoutAuthor *author;
	DpFanoutStanding standing;
} DpFanoutStand;

/* A wall in a batch */
typedef struct DpFanoutWall
{
	List *posts;       /* DpFanoutPosts * */
	List *stands;      /* DpFanoutStand * */
	bool unfollowed;   /* the reader follows no author any more */
	bool only_missing; /* create the wall if it is missing */
} DpFanoutWall;

/* fanout.c */
extern DpFanout *dp_fanout(DpDecl *decl);
extern DpFanoutAuthor *dp_fanout_author(DpGroup *group);
extern DpFanoutWall *dp_fanout_wall(DpGroup *group);

/* Returns the group for an author: the key is an array. */
extern DpGroup *dp_fanout_author_group(DpFanout *f, DpDeriveBatch *batch, const DpValue *author);
extern bool dp_fanout_is_author(const DpGroup *group);

/* Returns whether a field contains an author. */
extern bool dp_fanout_name(const DpPath *path, struct varlena *doc, DpValue *author);

/* wall.c */

/*
 * Appends an entry for a post; returns false without an author. Its bytes are in the current
 * context.
 */
extern bool
dp_fanout_entry(DpFanout *f, struct varlena *doc, const DpKey *key, DpFanoutEntry *entry);

extern void dp_fanout_append(DpFanoutEntries *entries, const DpFanoutEntry *entry);

/* Compares two entries in the order of a wall. */
extern int dp_fanout_compare(DpFanout *f, const DpFanoutEntry *a, const DpFanoutEntry *b);
extern void dp_fanout_sort(DpFanout *f, DpFanoutEntries *entries);

/*
 * Read the entries of a wall, and the authors that are looked up (DpValue *); both point into the
 * document.
 */
extern void
dp_fanout_parse(DpFanout *f, struct varlena *wall, DpFanoutEntries *entries, List **merged);

/* Returns a wall's document. */
extern struct varlena *dp_fanout_build(DpFanout *f, const DpValue *reader,
									   const DpFanoutEntries *entries, int n, List *merged);

/*
 * Returns the wall changed by the batch; NULL if it must be recomputed. Updates merged in any case.
 */
extern struct varlena *
dp_fanout_change(DpFanout *f, DpGroup *group, struct varlena *wall, List **merged);

extern bool dp_fanout_has(List *values, const DpValue *value);

/* read.c: all inside SPI_connect(), as the owner */

/* Reads the first posts of an author. */
extern void
dp_fanout_top(DpFanout *f, const DpValue *author, bool latest, DpFanoutEntries *entries);

/* Returns the present entry of a post; false without the post or its author. */
extern bool dp_fanout_post(DpFanout *f, const DpValue *key, DpFanoutEntry *entry);

/*
 * Calls visit for each follower of an author, at most limit (0: all). Returns the number of
 * follows.
 */
typedef void (*DpFanoutVisit)(void *arg, const DpValue *value);
extern int64 dp_fanout_followers(DpFanout *f, const DpValue *author, int64 limit,
								 DpFanoutVisit visit, void *arg);

/* Returns the number of follows of an author, at most limit. */
extern int64 dp_fanout_count(DpFanout *f, const DpValue *author, int64 limit, bool latest);

extern bool dp_fanout_follows(DpFanout *f, const DpValue *reader, const DpValue *author);
extern bool dp_fanout_follows_any(DpFanout *f, const DpValue *reader);

/* Calls visit for each reader. */
extern void dp_fanout_readers(DpFanout *f, DpFanoutVisit visit, void *arg);

/*
 * Returns the whole wall of a reader; NULL without follows. merged: the known states of authors
 * that are looked up; NULL: counts their follows.
 */
extern struct varlena *
dp_fanout_compute(DpFanout *f, const DpValue *reader, List **merged, bool latest);

/* DpPattern: corrects a row. */
extern bool dp_fanout_repair_row(DpDecl *decl, const DpKey *key);

/* follow.c */

/* DpPattern: processes a statement on a table of followers. */
extern void dp_fanout_follows_changed(DpChanges *changes);

/*
 * Statements that are run as the owner and as the reader of a timeline.  Words of templates:
 * follower and followee of a row of follows, author of a post, posts and the order of walls.
 */
extern bool dp_fanout_word(DpDecl *decl, const char *word, StringInfo sql);

/* Document and primary key of the first $2 posts of author $1 */
#define DP_FANOUT_POSTS                                                                            \
	"{posts} WHERE {author}{own =}{$1 bson_value} ORDER BY {order} LIMIT {$2 int8}"

/* The authors that reader $1 follows, each once; of the table of follows */
#define DP_FANOUT_AUTHORS                                                                          \
	"SELECT DISTINCT {followee} FROM {relation} AS s WHERE {follower}{own =}{$1 bson_value}"

#endif /* DP_PATTERNS_FANOUT_FANOUT_H */
