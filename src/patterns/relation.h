/*
 * relation.h
 *		Two arrays of ids that point at each other: what their parts share.
 *
 * A document on one side has an array of ids of documents on the other side,
 * which have an array of ids of those that name them.  An edge is one id in an
 * array; the two edges between two documents are there together or not at all.
 * Both sides may be one table, and even one array (friends).
 *
 * relation.c has the triggers and keeps the other side in agreement,
 * relation_lookup.c has bson_lookup().
 */
#ifndef DP_PATTERNS_RELATION_H
#define DP_PATTERNS_RELATION_H

#include "bson/path.h"
#include "patterns/declaration.h"
#include "patterns/write.h"

/* One of the two sides */
typedef struct DpRelationSide
{
	Oid			relid;			/* InvalidOid: the other table is gone */
	DpDecl	   *table;			/* its key and its document column */
	DpPath	   *field;
	DpLookup   *primary;
} DpRelationSide;

typedef struct DpRelation
{
	DpDecl	   *decl;			/* of the main trigger, which side 0 has */
	char	   *pair;
	DpRelationSide sides[2];
	bool		symmetric;		/* both sides are the same array */
	bool		missing_error;
	bool		restrict_delete;
} DpRelation;

#endif							/* DP_PATTERNS_RELATION_H */
