/*
 * lookup.h
 *		Index lookups (lookup.c) and cached table facts (facts.c) for the writer, valid until
 *		dp_schema_generation() changes.
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
	Oid index; /* InvalidOid: none */
	int nkeys;
	ScanKeyData keys[INDEX_MAX_KEYS]; /* without their arguments */
	DpKeyColumn column; /* has a type if BSON values are searched in a column of another type */
} DpLookupIndex;

/*
 * The index for an open table or partition, searched again after changes of the schema; NULL if
 * there is none.
 */
extern DpLookupIndex *dp_lookup_index(DpLookup *lookup, Relation rel);

/* Describes the index of the primary key, in the current context. */
extern DpLookupIndex *dp_lookup_key(Relation rel);

/* Raises OBJECT_NOT_IN_PREREQUISITE_STATE: the table has no index for the lookup. */
extern void dp_lookup_missing(DpLookup *lookup, Relation rel) pg_attribute_noreturn();

/* Changes with every change of the schema of any relation. */
extern uint64 dp_schema_generation(void);

typedef bool (*DpSkipTrigger)(const Trigger *trigger);

/* An index of a table */
typedef struct DpTableIndex
{
	Oid oid;
	IndexInfo *info;
} DpTableIndex;

typedef struct DpTableIndexes
{
	DpLookupIndex *key; /* of the primary key */
	bool plain;         /* entries need no executor */
	int n;
	DpTableIndex index[FLEXIBLE_ARRAY_MEMBER];
} DpTableIndexes;

/* The key of cached facts */
typedef struct DpFactsKey
{
	Oid relid;
	DpSkipTrigger skip;
} DpFactsKey;

/* Facts that do not change between the statements on a table. */
typedef struct DpTableFacts
{
	DpFactsKey key;
	uint64 generation;
	MemoryContext context;
	Oid owner;
	AttrNumber doc;          /* the only column of type bson, 0 if none or several */
	bool collection;         /* the trigger for its _id is the only BEFORE UPDATE ROW trigger */
	bool fires;              /* any trigger must fire */
	TriggerDesc fire;        /* the kinds of triggers that must fire; contains no triggers */
	ExprState **checks;      /* prepared; NULL if they cannot be cached */
	DpTableIndexes *indexes; /* NULL if not read yet */
} DpTableFacts;

/*
 * Valid until the next change of the schema; the checks and indexes, until the transaction ends.
 */
extern DpTableFacts *dp_table_facts(Relation rel, DpSkipTrigger skip);

/* Returns the indexes of a table, which must be locked. */
extern DpTableIndexes *dp_table_indexes(Relation rel);

/*
 * Tables and partitions that hold rows of a table, in one order: itself if it is not partitioned.
 * Locks them.
 */
extern List *dp_table_leaves(Relation rel, LOCKMODE lockmode);

#endif /* DP_KIT_ROWS_LOOKUP_H */
