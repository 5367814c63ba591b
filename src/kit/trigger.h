/*
 * trigger.h
 *		How trigger functions begin, and the documents of the rows that they get.
 *
 * A trigger function raises E_R_I_E_TRIGGER_PROTOCOL_VIOLATED unless its trigger is like those that
 * <pattern>_enable() creates.
 */
#ifndef DP_KIT_TRIGGER_H
#define DP_KIT_TRIGGER_H

#include "access/htup_details.h"
#include "commands/trigger.h"

#include "kit/declaration.h"

/* Events that a function may be called for: operations in the place of their timing and level */
enum
{
	DP_INSERT = 1 << TRIGGER_EVENT_INSERT,
	DP_DELETE = 1 << TRIGGER_EVENT_DELETE,
	DP_UPDATE = 1 << TRIGGER_EVENT_UPDATE,
	DP_TRUNCATE = 1 << TRIGGER_EVENT_TRUNCATE,
	DP_WRITE = DP_INSERT | DP_DELETE | DP_UPDATE,
	DP_ANY = DP_WRITE | DP_TRUNCATE
};
#define DP_BEFORE_ROW(operations) (operations)
#define DP_AFTER_ROW(operations) ((operations) << 4)
#define DP_INSTEAD_OF(operations) ((operations) << 8)
#define DP_BEFORE_STATEMENT(operations) ((operations) << 12)
#define DP_AFTER_STATEMENT(operations) ((operations) << 16)

/*
 * Requires one of the events and at least so many arguments.  The pattern's
 * name, or that of another function that creates such triggers, is for the error.
 */
extern TriggerData *
dp_trigger_require(FunctionCallInfo fcinfo, const char *pattern, uint32 events, int nargs);

/*
 * True for TRUNCATE of a table that Citus distributes: its shards have triggers of their own.
 */
extern bool dp_trigger_elsewhere(const TriggerData *trigdata);

/*
 * Returns the declaration of a trigger on its table.  NULL: there is nothing to
 * do, return dp_trigger_pass().  A partition without a key is being restored,
 * docpatterns.maintain is off, a statement-level trigger remains on a
 * detached partition, or dp_trigger_elsewhere().  Raises UNDEFINED_OBJECT if a row-level trigger
 * belongs to no declaration.
 */
extern DpDecl *dp_trigger_enter(FunctionCallInfo fcinfo, const char *pattern, uint32 events);

/*
 * The same for a trigger with the arguments ('side', link_id, name) on the other
 * table.  Locks the declaration's table as a writer does.  Also
 * returns NULL if the table was restored alone.  Raises
 * OBJECT_NOT_IN_PREREQUISITE_STATE if the tables have different owners.
 */
extern DpDecl *dp_trigger_enter_side(FunctionCallInfo fcinfo, const char *pattern, uint32 events);

/*
 * The same, for patterns whose other table each server may have: the declarations (DpDecl) of all
 * shards on this server.
 */
extern List *dp_trigger_enter_sides(FunctionCallInfo fcinfo, const char *pattern, uint32 events);

/* Returns the result of a trigger function that leaves a row unchanged. */
extern Datum dp_trigger_pass(FunctionCallInfo fcinfo);

/* The row after an INSERT or UPDATE, that before a DELETE. */
static inline HeapTuple
dp_trigger_row(const TriggerData *trigdata)
{
	return TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event) ? trigdata->tg_newtuple
													   : trigdata->tg_trigtuple;
}

/* Returns whether an UPDATE kept the document.  Does not detoast one that it did not touch. */
extern bool dp_trigger_same_document(const TriggerData *trigdata, const DpDecl *decl);

/* A bson column, detoasted, or NULL */
extern struct varlena *dp_tuple_bson(HeapTuple tuple, TupleDesc desc, int attnum);

/* The tuple with another value of a bson column */
extern HeapTuple
dp_tuple_with_bson(HeapTuple tuple, TupleDesc desc, int attnum, struct varlena *value);

/* The same with the document column of a declaration */
static inline struct varlena *
dp_tuple_document(const DpDecl *decl, HeapTuple tuple, TupleDesc desc)
{
	return dp_tuple_bson(tuple, desc, decl->doc_attnum);
}

static inline HeapTuple
dp_tuple_with_document(const DpDecl *decl, HeapTuple tuple, TupleDesc desc, struct varlena *doc)
{
	return dp_tuple_with_bson(tuple, desc, decl->doc_attnum, doc);
}

#endif /* DP_KIT_TRIGGER_H */
