/*
 * change_feed.h
 *		The change feed: what happened to the documents of a table, in an order
 *		that readers can follow.
 *
 * Every change has a number of a sequence, drawn after the row was written: who
 * writes a row after somebody else has waited for him, so that of two changes
 * of one document the later has the greater number, whichever transaction began
 * first.  A transaction that has drawn numbers holds a lock that carries the
 * first of them until it ends.  Readers stop below the least number that such a
 * lock carries: what is below belongs to transactions that have ended, and can
 * be read; nothing will ever come in between.
 *
 * A transaction draws its first number and takes the lock while it holds a
 * gate, together with others; a reader closes the gate while it looks at the
 * locks, so that no number is drawn that no lock tells of.  Locks survive
 * PREPARE TRANSACTION, sequences and rows a dump: positions are numbers, and
 * stay good.
 *
 * change_feed.c writes, read.c reads.
 */
#ifndef DP_PATTERNS_CHANGE_FEED_CHANGE_FEED_H
#define DP_PATTERNS_CHANGE_FEED_CHANGE_FEED_H

#include "kit/declaration.h"
#include "kit/key.h"

/* Columns of the table */
typedef enum DpFeedColumn
{
	DP_FEED_NUMBER,
	DP_FEED_TRANSACTION,
	DP_FEED_COMMAND,
	DP_FEED_AT,
	DP_FEED_OPERATION,
	DP_FEED_KEY,
	DP_FEED_DOCUMENT,
	DP_FEED_PATHS,
	DP_FEED_COLUMNS
} DpFeedColumn;

typedef struct DpChangeFeed
{
	DpDecl *decl;
	char *pair;
	bool documents; /* documents are kept, not only keys and paths */
	char *channel;  /* that is notified; NULL: none */
	Oid side;       /* the table of changes, InvalidOid until it is found */
	Oid sequence;
	AttrNumber columns[DP_FEED_COLUMNS];
} DpChangeFeed;

/* The pattern's view of a declaration. */
extern DpChangeFeed *dp_change_feed(DpDecl *decl);

/*
 * A table with rows has become a partition of the table, or is none any more: feeds of that table
 * say so.
 */
extern void dp_change_feed_partition(Oid table, Oid partition, bool attached);

/* The table of changes.  Raises OBJECT_NOT_IN_PREREQUISITE_STATE if it is missing. */
extern Oid dp_change_feed_table(DpChangeFeed *f);

#endif /* DP_PATTERNS_CHANGE_FEED_CHANGE_FEED_H */
