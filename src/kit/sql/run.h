/*
 * run.h
 *		Runs the statements of patterns: prepared once, as the right user, with the right
 *		snapshot, and marked for the extension's own triggers.
 */
#ifndef DP_KIT_SQL_RUN_H
#define DP_KIT_SQL_RUN_H

#include "lib/stringinfo.h"

#include "kit/declaration.h"

/* How a statement is run */
#define DP_RUN_AS_OWNER 0x01    /* as the owner of the table; else as the current user */
#define DP_RUN_SNAPSHOT 0x02    /* reads with the calling statement's snapshot, not the latest */
#define DP_RUN_LOCK 0x04        /* locks rows for a user: those that the transaction sees */
#define DP_RUN_TRANSACTION 0x08 /* reads with the transaction's snapshot, and its own writes */

/*
 * For statements that are no templates (template.h).  Returns the plan of a statement of the
 * declaration, or NULL if it has to be (re)made with dp_plan_make().  id is the address of
 * something static, options are those of cursors.
 */
extern SPIPlanPtr dp_plan(DpDecl *decl, const void *id);
extern SPIPlanPtr
dp_plan_make(DpDecl *decl, const void *id, const char *sql, int nargs, Oid *argtypes, int options);

/* The parts of these: for template.c */
extern DpPlan *dp_plan_add(DpDecl *decl, const void *id);
extern SPIPlanPtr dp_plan_valid(DpPlan *p);
extern SPIPlanPtr
dp_plan_prepare(DpDecl *decl, DpPlan *p, const char *sql, int nargs, Oid *argtypes, int options);

/*
 * Runs a plan inside SPI_connect(); the result is in SPI_tuptable.  expected is the SPI_OK_...
 * code. Returns the number of rows.
 */
extern uint64 dp_run(DpDecl *decl, SPIPlanPtr plan, Datum *values, const char *nulls, int flags,
					 long maxrows, int expected);

/*
 * Checks, repairs and migrations run as the table's owner in a security-restricted operation;
 * settings that the owner's triggers and functions change are restored.  An error ends the
 * transaction or subtransaction, which restores everything.
 */
typedef struct DpActor
{
	Oid user;
	int sec;
	int nestlevel;
} DpActor;

extern void dp_owner_begin(Oid owner, DpActor *saved);
extern void dp_owner_end(const DpActor *saved);

/*
 * Only the owner's privileges, as dp_run() uses them with DP_RUN_AS_OWNER: for writes without a
 * statement.  The caller must call dp_act_end() also on errors.
 */
typedef struct DpActing
{
	Oid user;
	int sec;
	Oid acting;
	int nestlevel; /* restores settings that triggers change */
} DpActing;

extern void dp_act_as(Oid owner, DpActing *saved);
extern void dp_act_end(const DpActing *saved);

/* A column of the current SPI result, detoasted if a varlena; its memory is SPI's. */
extern Datum dp_result(uint64 row, int column, bool *isnull);

/*
 * Marks.  While a statement of the extension writes to a relation, the relation is marked with what
 * is being done, and the triggers that the statement fires read the mark.  Marks are C state, so
 * users cannot forge them, and apply only to the triggers of that statement: a write by a user's
 * trigger is an ordinary write.  Use:
 *
 *		DpMark	mark;
 *
 *		dp_mark_push(&mark, relid, name, DP_MARK_INTERNAL);
 *		PG_TRY();
 *		{
 *			...
 *		}
 *		PG_FINALLY();
 *		{
 *			dp_mark_pop(&mark);
 *		}
 *		PG_END_TRY();
 */
typedef enum DpMarkKind
{
	DP_MARK_NONE,
	DP_MARK_INTERNAL, /* the pattern itself writes consistent data */
	DP_MARK_WHOLE,    /* a whole document is written: it replaces side rows */
	DP_MARK_REPLACED, /* the same, and the side rows are deleted already */
	DP_MARK_DERIVED   /* derived fields are written; otherwise an ordinary write */
} DpMarkKind;

typedef struct DpMark
{
	Oid relid;
	const char *name; /* of the declaration; NULL: all of the relation's */
	DpMarkKind kind;
	int depth;           /* trigger depth when the statement starts */
	struct varlena *doc; /* the document that an internal statement writes */
	struct DpMark *outer;
} DpMark;

extern void dp_mark_push(DpMark *mark, Oid relid, const char *name, DpMarkKind kind);
extern void dp_mark_pop(DpMark *mark);
extern DpMarkKind dp_marked(Oid relid, const char *name);
/*
 * True if the command whose event triggers are being called is the extension's own on the relation.
 */
extern bool dp_marked_command(Oid relid);
extern void dp_mark_change(Oid relid, const char *name, DpMarkKind kind);

/* dp_run() of a statement that writes to relid, marked. */
extern uint64 dp_run_marked(DpDecl *decl, SPIPlanPtr plan, Datum *values, const char *nulls,
							int flags, int expected, Oid relid, const char *name, DpMarkKind kind);

/*
 * Does the same for an internal statement that writes the document to the table.  Users' BEFORE
 * triggers may change it; the pattern's own, which fire last, find the original here.
 */
extern void
dp_run_writing(DpDecl *decl, SPIPlanPtr plan, Datum *values, int flags, struct varlena *doc);
extern struct varlena *dp_marked_document(Oid relid, const char *name);

/*
 * True if the statement whose triggers are being called writes derived fields (DP_MARK_DERIVED,
 * which dp_marked() does not report, because other patterns treat it as an ordinary write).  In
 * BEFORE ROW triggers, sets *doc to the document before triggers changed it, whose derived fields
 * are right. doc may be NULL.
 */
extern bool dp_marked_derived(Oid relid, struct varlena **doc);

/* Raises TRIGGERED_DATA_CHANGE_VIOLATION: a user's trigger suppressed a write of the pattern. */
extern void dp_write_refused(DpDecl *decl, Oid relid) pg_attribute_noreturn();

/* The current user before dp_run() switched to an owner. */
extern Oid dp_acting_user(void);

#endif /* DP_KIT_SQL_RUN_H */
