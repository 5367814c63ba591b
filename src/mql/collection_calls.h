/*
 * collection_calls.h
 *		How the calls for collections (collection_find() and the others) find
 *		indexes for their conditions.
 */
#ifndef DP_MQL_COLLECTION_CALLS_H
#define DP_MQL_COLLECTION_CALLS_H

#include "nodes/pg_list.h"
#include "utils/relcache.h"

#include "bson/path.h"

/*
 * What is known of a table's documents: expressions that btree indexes have and
 * checks.  Everything is in the memory context in which it was made.
 */
typedef struct DpDocFacts DpDocFacts;

/* Looks at the indexes and the checks of a relation, of which attnum is the column with the documents. */
extern DpDocFacts *dp_doc_facts(Relation rel, AttrNumber attnum);

/*
 * If a btree index has the expression (doc -> path), and no document can have
 * an array at the path or on the way to it: the path as the index spells it.
 * Otherwise NULL.
 */
extern const char *dp_doc_index(DpDocFacts *facts, const DpPath *path);

/* Whether no document can have a value of the type (its name) at such a path. */
extern bool dp_doc_never(DpDocFacts *facts, const DpPath *path, const char *type);

#endif							/* DP_MQL_COLLECTION_CALLS_H */
