/*
 * declaration.h
 *		Declarations of patterns, read back from the triggers that carry them.
 *
 * A pattern is declared by creating triggers on a table.  One of them, the
 * main one, has all options as its only argument, in Extended JSON:
 *
 *		CREATE TRIGGER zz_docpatterns_50_outlier_buyers AFTER INSERT OR ...
 *			EXECUTE FUNCTION outlier_trigger('{"name": "buyers", ...}')
 *
 * The function is always called <pattern>_trigger.  The other triggers of the
 * same declaration have the arguments 'of' and its name.  Where a pattern keeps a
 * second table, that table has triggers with the arguments 'side', the pair
 * and the name; pair is a random text that also stands in the main trigger's
 * options (one that keeps several has a second_pair, or a gone_pair).  Thus dump, restore, rename
 *and change of schema carry everything, and nothing that is written anywhere else has to be kept in
 *step.
 */
#ifndef DP_KIT_DECLARATION_H
#define DP_KIT_DECLARATION_H

#include "dp.h"

#include "commands/trigger.h"
#include "executor/spi.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"

#include "bson/path.h"

/* How the names of all our triggers begin */
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
	const void *id; /* any address that is unique to the statement */
	SPIPlanPtr plan;
	struct DpPlan *next;
} DpPlan;

typedef struct DpDecl
{
	Oid relid;  /* the relation that was asked about: the table or a partition of it */
	Oid target; /* the table that carries the declaration */
	Oid owner;  /* the table's owner */
	const struct DpPattern *methods; /* of the pattern */
	const char *pattern;
	char *name;
	char *declared;          /* the main trigger's argument */
	struct varlena *options; /* the same as a bson, with the names that columns have now */
	List *others;            /* OIDs of other tables that these names were looked up in */
	Oid trigger;             /* the main trigger, or its clone on a partition */
	List *held;            /* paths (DpPath) with values from before the declaration: see adopt.h */
	char *doc_column;      /* NULL for relations of measurements, which are foreign tables */
	AttrNumber doc_attnum; /* in relid */
	int nkeys;             /* 0 for these */
	DpKeyColumn *keys;     /* attnums are those in relid */
	MemoryContext context; /* of all this; lives at least until the transaction ends */
	DpPlan *plans;
	void *state; /* the pattern's own, in context */
} DpDecl;

/* Declarations of a relation (DpDecl), in the order in which their triggers fire. */
extern List *dp_decls(Oid relid);

/*
 * Key and document column of any table, as if that pattern were declared on it;
 * lives in the context.  The column is the named one, or the only one of type
 * bson.  Raises what dp_decls() raises.  It is not kept in step with the table.
 */
extern DpDecl *dp_decl_of_table(Oid relid, const char *pattern, const char *name,
								const char *doc_column, MemoryContext context);

/*
 * The declaration of that pattern and name, or the only one of that pattern if
 * name is NULL.  Raises UNDEFINED_OBJECT if there is none and
 * INVALID_PARAMETER_VALUE if name is NULL and there are several.
 */
extern DpDecl *dp_decl_find(Oid relid, const char *pattern, const char *name);

/* The declaration that the called trigger belongs to.  Costs nothing after the first row. */
extern DpDecl *dp_decl_of_trigger(FunctionCallInfo fcinfo, const char *pattern);

/*
 * The same, but NULL where no declaration is left: for triggers that may stay
 * behind on a table that was a partition.
 */
extern DpDecl *dp_decl_of_trigger_if(FunctionCallInfo fcinfo, const char *pattern);

/* The one or the other: only triggers for statements stay behind. */
extern DpDecl *dp_decl_of_any_trigger(FunctionCallInfo fcinfo, const char *pattern);

/*
 * The triggers of a relation, copied to the current context; none is an empty
 * list, not NULL.  What the relation itself has (trigdesc) is freed whenever
 * its entry in the cache is built anew, which any look into a catalog may
 * cause: a loop in which there is one goes over this.
 */
extern TriggerDesc *dp_triggers(Relation rel);

/*
 * Whether the table is a partition that has no primary key yet.  That is so
 * only while a restore in parallel loads it, after the triggers of the table
 * above it were created: its rows are in order, and are to be left alone.
 */
extern bool dp_partition_restoring(Relation rel);

/*
 * The options of a declaration that name pairs.
 */
#define DP_PAIR_OPTIONS 3
extern const char *const dp_pair_options[DP_PAIR_OPTIONS];

/*
 * The two sides of a pair: the table whose main trigger names it, and the one
 * whose side triggers do; relid is the one that is known.  InvalidOid if there
 * is none with the same owner.  If there are several (a schema was copied),
 * the one in the same schema is taken.
 */
extern Oid dp_pair_main(const char *pair, Oid relid);
extern Oid dp_pair_side(const char *pair, Oid relid);

/* The same, neither kept nor read: the table may not be ready yet, in the midst of a restore. */
extern Oid dp_pair_find(const char *pair, bool main, Oid relid);

/*
 * Raises OBJECT_NOT_IN_PREREQUISITE_STATE if that side of a pair, which was not
 * found, is a table of another owner: nothing may be written then that it would
 * not be told.  It is not there at all only in the midst of a restore.
 */
extern void dp_pair_require_owner(const char *pair, bool main, Oid relid);

/*
 * The second table of a declaration where it belongs to another role than the
 * first, or InvalidOid.  It is not found then, as if it were not there, and must
 * not be made a second time: the other function raises
 * OBJECT_NOT_IN_PREREQUISITE_STATE.
 */
extern Oid dp_foreign_side(DpDecl *decl);
extern void dp_require_own_sides(DpDecl *decl);

/* Whether options have one of that type, and its value. */
extern bool
dp_option_value(struct varlena *options, const char *option, uint8 type, DpValue *value);

/* A main trigger's argument as a bson, or NULL if it is none. */
extern struct varlena *dp_declared_options(const char *declared);

/* Options.  Texts and paths live in the declaration's context; NULL if absent or null. */
extern char *dp_decl_text(DpDecl *decl, const char *option);

/*
 * What is kept with the declaration (its state, its plans) knows something of
 * another relation: the declaration is read anew when that one changes.
 */
extern void dp_decl_depends(DpDecl *decl, Oid relid);

/* docpatterns.maintain; honoured for owners and superusers only */
extern bool dp_maintain;

/* Defines the setting. */
extern void dp_declaration_init(void);

/*
 * Whether triggers have to work: false only while the owner restores with docpatterns.maintain off.
 */
extern bool dp_decl_maintained(DpDecl *decl);

/* Raises INSUFFICIENT_PRIVILEGE unless the current user owns the relation. */
extern void dp_require_owner(Oid relid);

/* schema.name of a relation, quoted where needed, for messages and generated SQL. */
extern char *dp_relation_name(Oid relid);

#endif /* DP_KIT_DECLARATION_H */
