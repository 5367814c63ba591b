/*
 * graph.h
 *		Walks through linked documents: the known nodes and the sources of rows. For the files
 *		graph*.c only.
 *
 * A node is a value.  Documents are edges: a document connects each value at its path connect_to
 * (where the search enters it) with each value at its path connect_from (where the search
 * continues).
 */
#ifndef DP_TYPES_TREE_GRAPH_H
#define DP_TYPES_TREE_GRAPH_H

#include "executor/spi.h"
#include "storage/buffile.h"
#include "utils/hsearch.h"

#include "bson/path.h"
#include "mql/filter.h"

typedef struct DpGraphRow DpGraphRow;

/* A row that links to a node, in a table that was read completely */
typedef struct DpGraphLink
{
	DpGraphRow *row;
	struct DpGraphLink *next;
} DpGraphLink;

typedef struct DpGraphNode
{
	struct DpGraphNode *from; /* the previous node; NULL: the search began here */
	DpGraphLink *links;
	int32 depth;                       /* -1: not reached */
	char value[FLEXIBLE_ARRAY_MEMBER]; /* a bson_value with a header of four bytes */
} DpGraphNode;

/* A place in the hash table of nodes; empty if node is NULL */
typedef struct DpGraphSlot
{
	DpGraphNode *node;
	uint32 hash;
} DpGraphSlot;

#define DP_GRAPH_NODE_VALUE(node) ((struct varlena *) (node)->value)

/* How rows are found */
typedef enum DpGraphAccess
{
	DP_GRAPH_BY_VALUE,  /* a btree index contains the values at connect_to */
	DP_GRAPH_BY_FILTER, /* an index serves filters on it */
	DP_GRAPH_HASHED,    /* the relation was read and is in memory or in a file */
	DP_GRAPH_SCANNED    /* it is too large for that: it is read once a level */
} DpGraphAccess;

typedef struct DpGraph DpGraph;

/*
 * Called for rows that may have one of the searched nodes at connect_to.  node is the one through
 * which the row was found, or NULL if that is unknown; then seen is NULL as well.  *seen is false
 * when the row is visited for the first time, and keeps its value.
 */
typedef void (*DpGraphVisit)(DpGraph *g, struct varlena *doc, Datum key, bool key_is_null,
							 DpGraphNode *node, bool *seen, void *arg);

struct DpGraph
{
	/* the arguments */
	Oid relid;
	DpPath *connect_from;
	DpPath *connect_to;
	DpFilter *restricted;     /* NULL: to nothing */
	const DpValue *collation; /* values compare and the filter matches by it; NULL: by bytes */

	/* nodes that are known */
	MemoryContext context;     /* of everything */
	MemoryContext row_context; /* reset after each row */
	DpGraphSlot *table;
	uint32 slots; /* a power of two */
	uint32 nnodes;
	char *room; /* for small things that stay */
	Size room_left;
	Size used; /* bytes that stay */
	Size limit;

	/* where rows come from */
	DpGraphAccess access;
	char *field;             /* connect_to as filters spell it; NULL: they cannot */
	SPIPlanPtr plan;         /* looks nodes up, or reads the relation */
	bool has_arrays;         /* BY_VALUE: rows with arrays there are hashed */
	bool is_table;           /* rows have a tableoid and a ctid */
	BufFile *file;           /* HASHED: documents beyond the limit */
	HTAB *seen;              /* rows that may be visited again */
	unsigned char rowid[16]; /* of the row that is visited, if not hashed */
};

/* graph_nodes.c */

/* Raises CONFIGURATION_LIMIT_EXCEEDED where no memory is left that the settings allow. */
extern void *dp_graph_alloc(DpGraph *g, Size size);
extern void dp_graph_account(DpGraph *g, Size size);

/*
 * The node of a value; NULL if it is not known, unless make is set: then it is made, not reached.
 */
extern DpGraphNode *dp_graph_node(DpGraph *g, const DpValue *value, bool make);

/* True if the visited row was visited before; records the visit. */
extern bool dp_graph_met(DpGraph *g);

/* Whether the filter, if there is one, matches a document. */
extern bool dp_graph_admits(DpGraph *g, const DpValue *doc);

/* True for values other than null and undefined, which can be nodes. */
extern bool dp_graph_connects(const DpValue *value);

/* graph_source.c: both inside SPI_connect() */

/* Chooses how rows are found.  start has the first nodes to search. */
extern void dp_graph_open(DpGraph *g, DpGraphNode **start, int nstart);

/* Visits the rows that lead on from nodes. */
extern void dp_graph_find(DpGraph *g, DpGraphNode **nodes, int n, DpGraphVisit visit, void *arg);

#endif /* DP_TYPES_TREE_GRAPH_H */
