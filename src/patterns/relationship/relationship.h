/*
 * relationship.h
 *		Two arrays of ids that point at each other: what their parts share.
 *
 * A document on one side has an array of ids of documents on the other side,
 * which have an array of ids of those that name them.  An edge is one id in an
 * array; the two edges between two documents are there together or not at all.
 * Both sides may be one table, and even one array (friends).
 *
 * relationship.c has the triggers and keeps the other side in agreement,
 * calls.c has what the verbs need, lookup.c bson_lookup().
 */
#ifndef DP_PATTERNS_RELATIONSHIP_RELATIONSHIP_H
#define DP_PATTERNS_RELATIONSHIP_RELATIONSHIP_H

#include "bson/path.h"
#include "kit/declaration.h"
#include "kit/rows/write.h"

/* One of the two sides */
typedef struct DpRelationshipSide
{
	Oid relid;     /* InvalidOid: the other table is gone */
	DpDecl *table; /* its key and its document column */
	DpPath *field;
	DpLookup *primary;
} DpRelationshipSide;

typedef struct DpRelationship
{
	DpDecl *decl; /* of the main trigger, which side 0 has */
	char *pair;
	DpRelationshipSide sides[2];
	bool symmetric; /* both sides are the same array */
	bool missing_error;
	bool restrict_delete;
} DpRelationship;

typedef enum DpRelationshipSign
{
	DP_EDGE_COMES,
	DP_EDGE_GOES,
	DP_EDGE_DELETED /* with the row that named it */
} DpRelationshipSign;

/* An edge of a row on the one side to one on the other */
typedef struct DpRelationshipEdge
{
	int side; /* of the row that names */
	DpValue to;
	DpValue from;
	DpRelationshipSign sign;
} DpRelationshipEdge;

/* The pattern's view of a declaration. */
extern DpRelationship *dp_relationship(DpDecl *decl);

/* The array of a document; false if there is none. */
extern bool
dp_relationship_array(const DpRelationshipSide *side, struct varlena *doc, DpValue *array);

/*
 * The document of a row as it is now, in the current context; NULL if it is gone.  Inside
 * SPI_connect().
 */
extern struct varlena *dp_relationship_row(DpRelationship *r, int side, const DpValue *id);

/* Adds an edge to a list, palloc'd. */
extern void
dp_relationship_edge(DpRelationshipEdge **edges, int *n, int *cap, const DpRelationshipEdge *edge);

/*
 * Brings the rows that edges lead to in line, in the order of their ids; puts
 * the edges in order.  build: what is missing is left alone.  Inside SPI_connect().
 */
extern void dp_relationship_apply(DpRelationship *r, DpRelationshipEdge *edges, int n, bool build);

/* DpPattern: settle_note. */
extern void dp_relationship_settle_note(DpDecl *decl, const DpValue *note);

#endif /* DP_PATTERNS_RELATIONSHIP_RELATIONSHIP_H */
