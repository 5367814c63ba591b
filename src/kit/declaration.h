/*
 * declaration.h
 *		Declarations of patterns, read from the triggers that carry them.
 *
 * A pattern is declared by creating triggers on a table.  One of them, the main one, has all
 * options as its only argument, in Extended JSON:
 *
 *		CREATE TRIGGER zz_docpatterns_50_outlier_buyers AFTER INSERT ON ...
 *			EXECUTE FUNCTION outlier_trigger('{"name": "buyers", ...}')
 *
 * The function is always called <pattern>_trigger.  Other triggers of the declaration have the
 * arguments ('of', name), also ('part', ...) on partitions and ('anchor', ...) for anchor.h.  If a
 * pattern has a second table, its triggers have the arguments ('side', link_id, name).  The link ID
 * is a random text that identifies the second table and is also an option of the main trigger;
 * further tables have the options second_link_id and removed_link_id.  So dump, restore, rename and
 * change of schema preserve declarations, and nothing else must be kept in sync.
 */
#ifndef DP_KIT_DECLARATION_H
#define DP_KIT_DECLARATION_H

#include "dp.h"

#include "commands/trigger.h"
#include "executor/spi.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"

#include "bson/path.h"

/* Prefix of the names of all triggers of the extension */
#define DP_TRIGGER_PREFIX "zz_docpatterns_"

/* A column of a table's primary key. */
typedef struct DpKeyColumn
{
	AttrNumber attnum;
	char *name;
	Oid type;
	int32 typmod;
	Oid collation;
	Oid eqop; /* equality of the index's operator family */
} DpKeyColumn;

/* A prepared statement of a declaration. */
typedef struct DpPlan
{
	const void *id; /* its template, or another address that is unique to the statement */
	int narguments; /* of the template */
	struct DpArgument *arguments;
	SPIPlanPtr plan; /* NULL: is to be made again */
	struct DpPlan *next;
} DpPlan;

typedef struct DpDecl
{
	Oid relid;                       /* the relation that was asked for: the table or a partition */
	Oid target;                      /* the table with the main trigger */
	Oid owner;                       /* the table's owner */
	const struct DpPattern *methods; /* of the pattern */
	const char *pattern;
	char *name;
	char *declared;          /* the main trigger's argument */
	struct varlena *options; /* as a bson, with the current names of columns */
	List *others;            /* OIDs of other tables in which names were looked up */
	Oid trigger;             /* the main trigger, or its clone on a partition */
	List *held;              /* paths (DpPath) with values from before the declaration: adopt.h */
	char *doc_column;        /* NULL for relations of measurements, which are foreign tables */
	AttrNumber doc_attnum;   /* in relid */
	int nkeys;               /* 0 for relations of measurements */
	DpKeyColumn *keys;       /* attnums are those in relid */
	MemoryContext context;   /* of the declaration; lives at least until the transaction ends */
	DpPlan *plans;
	void *state; /* the pattern's own, in context */
} DpDecl;

/* Declarations of a relation (DpDecl), in the order in which their triggers fire. */
extern List *dp_decls(Oid relid);

/*
 * The key and document column of any table, as if that pattern were declared on it; lives in the
 * context.  The document column is the named one, or the only one of type bson.  Raises the errors
 * of dp_decls().  It is not updated when the table changes.  Only the key, if pattern is NULL.
 */
extern DpDecl *dp_decl_of_table(Oid relid, const char *pattern, const char *name,
								const char *doc_column, MemoryContext context);

/*
 * The declaration of that pattern and name, or the only one of that pattern if
 * name is NULL.  Raises UNDEFINED_OBJECT if there is none and
 * INVALID_PARAMETER_VALUE if name is NULL and there are several.
 */
extern DpDecl *dp_decl_find(Oid relid, const char *pattern, const char *name);

/* The declaration of the called trigger, cached after the first row, or NULL: see trigger.h. */
extern DpDecl *dp_decl_of_trigger(FunctionCallInfo fcinfo, const char *pattern);

/*
 * The triggers of a relation, copied to the current context; an empty list if there are none, not
 * NULL.  Use this copy in loops that access catalogs: rebuilding the relcache entry frees trigdesc.
 */
extern TriggerDesc *dp_triggers(Relation rel);

/*
 * True if the table is a partition without a primary key.  That happens only while a parallel
 * restore loads it, after the triggers of its parent were created: its rows are consistent and must
 * not be changed.
 */
extern bool dp_partition_restoring(Relation rel);

/*
 * The tables of a link ID: the one whose main trigger has it as an option, and the one with its
 * side triggers; relid is the other one.  InvalidOid if there is none with the same owner.  If
 * there are several (a schema was copied), the one in the same schema.
 */
extern Oid dp_link_main(const char *link_id, Oid relid);
extern Oid dp_link_side(const char *link_id, Oid relid);

/* The owner of a relation.  Raises UNDEFINED_TABLE, or returns InvalidOid with missing_ok. */
extern Oid dp_relation_owner(Oid relid, bool missing_ok);

/*
 * The tables whose declaration has a link ID: one, or all its shards on this server if relid is a
 * copy of a table that Citus has on each server.
 */
extern List *dp_link_mains(const char *link_id, Oid relid);

/* True if options have this option with that type; sets *value. */
extern bool
dp_option_value(struct varlena *options, const char *option, uint8 type, DpValue *value);

/* A main trigger's argument as a bson, or NULL if it is not one. */
extern struct varlena *dp_declared_options(const char *declared);

/* The value of an option, in the declaration's context; NULL if absent or null. */
extern char *dp_decl_text(DpDecl *decl, const char *option);

/* Makes the cached declaration depend on another relation: it is reloaded when that changes. */
extern void dp_decl_depends(DpDecl *decl, Oid relid);

/* docpatterns.maintain; honoured for owners and superusers only */
extern bool dp_maintain;

/* Defines the setting. */
extern void dp_declaration_init(void);

/*
 * False only while the owner restores data with docpatterns.maintain off; triggers then do nothing.
 */
extern bool dp_decl_maintained(DpDecl *decl);

/* Raises INSUFFICIENT_PRIVILEGE unless the current user owns the relation. */
extern void dp_require_owner(Oid relid);

/*
 * The name of a relation, for messages, which put it in double quotes as PostgreSQL's do; its OID
 * if it does not exist.  Of a shard, that of the table.
 */
extern char *dp_relation_name(Oid relid);

#endif /* DP_KIT_DECLARATION_H */
