/*
 * lookup.h
 *		How rows are found by an index, and what is known of tables that are
 *		written to, for write*.c; and whether what anybody has learnt of tables
 *		is still true (dp_schema_generation).
 */
#ifndef DP_KIT_ROWS_LOOKUP_H
#define DP_KIT_ROWS_LOOKUP_H

#include "access/skey.h"
#include "commands/trigger.h"
#include "nodes/execnodes.h"

#include "kit/rows/write.h"

/* The index that serves a lookup in one table or partition. */
typedef struct DpLookupIndex
{
	Oid relid;
	Oid index; /* InvalidOid: there is none */
	int nkeys;
	ScanKeyData keys[INDEX_MAX_KEYS]; /* without their arguments */
} DpLookupIndex;

/*
 * The index for a table or partition that is open, found anew after changes of the schema; NULL if
 * there is none.
 */
extern DpLookupIndex *dp_lookup_index(DpLookup *lookup, Relation rel);

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE: the table has no index for the lookup. */
extern void dp_lookup_missing(DpLookup *lookup, Relation rel) pg_attribute_noreturn();

/* Whether a trigger keeps the _id of a collection, and whether a table has one. */
extern bool dp_trigger_is_collection(const Trigger *trigger);
extern bool dp_table_is_collection(Relation rel);

/* Changes with every change of any relation's schema. */
extern uint64 dp_schema_generation(void);

typedef bool (*DpSkipTrigger)(const Trigger *trigger);

/* What facts are kept for */
typedef struct DpFactsKey
{
	Oid relid;
	DpSkipTrigger skip;
} DpFactsKey;

/* What does not change between the statements on a table. */
typedef struct DpTableFacts
{
	DpFactsKey key;
	uint64 generation;
	MemoryContext context;
	Oid owner;
	AttrNumber doc;     /* the only column of type bson, 0 if there is none or more */
	bool collection;    /* but for the trigger that keeps its _id there are no BEFORE UPDATE ROW
						   triggers */
	bool fires;         /* anything at all has to be fired */
	TriggerDesc fire;   /* which kinds of triggers have to be; no triggers in it */
	ExprState **checks; /* prepared, or NULL: they are not of the kind that can be kept */
} DpTableFacts;

/*
 * They are valid until the next change of the schema; what checks points to, until the transaction
 * ends.
 */
extern DpTableFacts *dp_table_facts(Relation rel, DpSkipTrigger skip);

/*
 * Tables and partitions that hold rows of a table, in one order: itself if it is not partitioned.
 * Locks them.
 */
extern List *dp_table_leaves(Relation rel, LOCKMODE lockmode);

#endif /* DP_KIT_ROWS_LOOKUP_H */
