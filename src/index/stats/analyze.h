/*
 * analyze.h
 *		Shared by the parts of ANALYZE: the documents of a sample, the tree of their paths, and
 *		the items at one path.
 *
 * The documents are walked once to count everything at each path, and then again to collect the
 * items of the most frequent paths, as many paths at a time as memory allows.
 */
#ifndef DP_INDEX_STATS_ANALYZE_H
#define DP_INDEX_STATS_ANALYZE_H

#include "index/stats/stats.h"

/* A document of the sample, with its fetched bytes. */
typedef struct DpSampleDocument
{
	const uint8 *data;
	uint32 size;
	uint32 avail;
} DpSampleDocument;

/* An item: a value and the document in which it was found. */
typedef struct DpSampleItem
{
	uint64 order; /* dp_value_abbreviate(), when it is sorted */
	const uint8 *data;
	uint32 len;
	uint32 document : 24; /* its number; see SAMPLE_MAX_DOCUMENTS */
	uint32 type : 8;
} DpSampleItem;

#define SAMPLE_MAX_DOCUMENTS 0xFFFFFF

/* Collects the items and arrays at one path. */
typedef struct DpSamplePath
{
	DpSampleItem *items;
	int64 nitems;
	int64 room;
	int32 *lengths;
	int64 nlengths;
	int64 lengths_room;
	bool full;  /* the room did not do for all documents */
	int32 last; /* the last document that was taken whole */
} DpSamplePath;

/* A path, below the path that it extends. */
typedef struct DpPathNode
{
	struct DpPathNode *parent; /* NULL: the document itself */
	struct DpPathNode *next;   /* the field that followed the last time */
	const char *name;
	uint32 namelen;
	uint32 pathlen;       /* bytes of all names */
	uint32 order;         /* counts up */
	uint32 seen;          /* last document that has it, counted from 1 */
	uint64 container;     /* last container that has it */
	DpSamplePath *sample; /* where its items go, or NULL */

	/* in the document seen */
	uint32 now_values;
	uint32 now_documents;
	uint32 now_others; /* values that are neither documents nor arrays */
	uint32 now_items;
	uint32 now_types; /* a bit for each type, elements included */
	bool now_missing; /* some branch does not lead here */

	/* over all documents: numbers of documents, then of the named kinds */
	int32 reached;
	int32 direct;
	int32 scalar;
	int32 nullish; /* of those that reach it */
	int32 barren;  /* below it, not below its parents */
	int32 arrays;
	int32 item_docs;
	int32 types[DP_STATS_TYPES];
	int32 direct_types[DP_STATS_TYPES];
	int64 values;
	int64 documents;
	int64 elements;
	int64 items;
	int64 narrays;
	int64 bytes; /* of values that -> finds */
	int64 largest;
	bool multiple;
} DpPathNode;

typedef struct DpPathTree DpPathTree;

/*
 * An empty tree in the current memory context.  Paths beyond about max, the rarest, are forgotten.
 */
extern DpPathTree *dp_path_tree_create(int max);

/* Walks a document and counts what is there. */
extern void dp_path_tree_count(DpPathTree *tree, const DpSampleDocument *document);

/*
 * Walks a document again and collects items where a node has a sample; number counts documents from
 * 0.
 */
extern void dp_path_tree_collect(DpPathTree *tree, const DpSampleDocument *document, int32 number);

/*
 * The nodes, in a new array, those that most documents have first; and whether others were
 * forgotten.
 */
extern int dp_path_tree_nodes(DpPathTree *tree, DpPathNode ***nodes, bool *complete);

/* How the path of a node is written, palloc'd: fills in text and textlen. */
extern void dp_path_node_names(const DpPathNode *node, DpPathStats *path);

/* Sorts the items of a path: by value, then by document.  And whether two of them are equal. */
extern void dp_sample_sort(const DpSamplePath *sample);
extern bool dp_sample_same(const DpSampleItem *a, const DpSampleItem *b);

/*
 * Computes the statistics of the items at a path: n_distinct, the most common ones, the histogram,
 * counts and lengths.  target is the maximum number of values, maxbytes limits their size.
 * documents is the number of documents read, total that of the table.  New memory is in the current
 * context; the values point into the documents.
 */
extern void dp_sample_summarize(DpSamplePath *sample, DpPathStats *path, int target, Size maxbytes,
								double documents, double total);

#endif /* DP_INDEX_STATS_ANALYZE_H */
