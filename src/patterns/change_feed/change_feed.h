/*
 * change_feed.h
 *		The change feed: changes of the documents of a table in an order that
 *		readers can follow.
 *
 * Each change has a number of a sequence, drawn after the row was written.  A
 * second writer of a row waits for the first, so the later change of a document
 * has the greater number, whichever transaction began first.  A transaction that
 * has drawn numbers holds a lock that contains the first of them until it ends.
 * Readers stop below the least number in such a lock: all smaller numbers belong
 * to transactions that have ended, and no change can be added between them.
 *
 * A transaction draws its first number and takes that lock while it holds the
 * numbering lock in a shared mode; a reader takes that exclusively while it reads
 * the lock table, so that no number is drawn that no lock shows.  Locks survive
 * PREPARE TRANSACTION, sequences and rows a dump, so positions stay valid.
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
	char *link_id;
	bool documents; /* store documents, not only keys and paths */
	char *channel;  /* to notify; NULL: none */
	Oid side;       /* the table of changes, InvalidOid until found */
	Oid sequence;
	AttrNumber columns[DP_FEED_COLUMNS];
} DpChangeFeed;

/* Returns the options of a declaration. */
extern DpChangeFeed *dp_change_feed(DpDecl *decl);

/* Writes changes for a partition that was attached or detached, to feeds of the table. */
extern void dp_change_feed_partition(Oid table, Oid partition, bool attached);

/* Returns the table of changes. Raises OBJECT_NOT_IN_PREREQUISITE_STATE if it is missing. */
extern Oid dp_change_feed_table(DpChangeFeed *f);

#endif /* DP_PATTERNS_CHANGE_FEED_CHANGE_FEED_H */
