/*
 * trigger.h
 *		How trigger functions begin, and the documents of the rows that they get.
 *
 * A trigger function raises E_R_I_E_TRIGGER_PROTOCOL_VIOLATED unless a trigger
 * calls it as the function that creates such triggers made them.
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
 * Enters a trigger on the table of a declaration, which is returned.  NULL if
 * there is nothing to do, but to return dp_trigger_pass(): a partition without
 * a key is being restored, docpatterns.maintain is off, or a partition that
 * was detached has kept the triggers for statements.  Raises UNDEFINED_OBJECT
 * if a trigger for rows belongs to no declaration.
 */
extern DpDecl *dp_trigger_enter(FunctionCallInfo fcinfo, const char *pattern, uint32 events);

/*
 * The same for a trigger with the arguments ('side', pair, name) on the other
 * table of a pair.  The declaration's table is locked as by a writer.  NULL
 * also if the table was restored alone.  Raises OBJECT_NOT_IN_PREREQUISITE_STATE
 * if the tables have different owners.
 */
extern DpDecl *dp_trigger_enter_side(FunctionCallInfo fcinfo, const char *pattern, uint32 events);

/* What a trigger function returns that leaves a row as it is. */
extern Datum dp_trigger_pass(FunctionCallInfo fcinfo);

/* The row after an INSERT or UPDATE, that before a DELETE. */
static inline HeapTuple
dp_trigger_row(const TriggerData *trigdata)
{
	return TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event) ? trigdata->tg_newtuple
													   : trigdata->tg_trigtuple;
}

/*
 * Whether an UPDATE left the document as it was.  A document that it did not
 * touch is not detoasted.
 */
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
