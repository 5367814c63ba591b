/*
 * relationship.h
 *		Two arrays of ids that refer to each other: declarations that the files share.
 *
 * A document on one side has an array of ids of documents on the other side, which
 * have an array of ids of the documents that refer to them.  An edge is one id in
 * an array; of the two edges between two documents there are both or none.  Both
 * sides may be one table, and even one array (friends).
 *
 * relationship.c has the triggers and keeps the other side consistent, calls.c has
 * functions for the verbs, lookup.c bson_lookup().
 */
#ifndef DP_PATTERNS_RELATIONSHIP_RELATIONSHIP_H
#define DP_PATTERNS_RELATIONSHIP_RELATIONSHIP_H

#include "bson/path.h"
#include "kit/declaration.h"
#include "kit/rows/write.h"

/* One of the two sides */
typedef struct DpRelationshipSide
{
	Oid relid;     /* InvalidOid: the other table is missing */
	DpDecl *table; /* its key and its document column */
	DpPath *field;
	DpLookup *primary;
} DpRelationshipSide;

typedef struct DpRelationship
{
	DpDecl *decl; /* of the main trigger, on side 0 */
	char *link_id;
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

/* An edge from a row of one side to one of the other */
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
 * Returns the document of the present row, in the current context; NULL if missing. Inside
 * SPI_connect().
 */
extern struct varlena *dp_relationship_row(DpRelationship *r, int side, const DpValue *id);

/* Adds an edge to a list, palloc'd. */
extern void
dp_relationship_edge(DpRelationshipEdge **edges, int *n, int *cap, const DpRelationshipEdge *edge);

/*
 * Corrects the rows to which edges lead, in the order of their ids; sorts the edges. build: skips
 * missing rows. Inside SPI_connect().
 */
extern void dp_relationship_apply(DpRelationship *r, DpRelationshipEdge *edges, int n, bool build);

/* DpPattern: process_note. */
extern void dp_relationship_process_note(DpDecl *decl, const DpValue *note);

#endif /* DP_PATTERNS_RELATIONSHIP_RELATIONSHIP_H */
