/*
 * run.h
 *		Running the statements of patterns: prepared once, as the right user,
 *		with the right snapshot, and marked so that our own triggers know them.
 */
#ifndef DP_KIT_SQL_RUN_H
#define DP_KIT_SQL_RUN_H

#include "lib/stringinfo.h"

#include "kit/declaration.h"

/* How a statement is run */
#define DP_RUN_AS_OWNER 0x01 /* as the owner of the table; else as the current user */
#define DP_RUN_SNAPSHOT 0x02 /* reads what the calling statement sees; else the latest state */
#define DP_RUN_LOCK 0x04     /* locks rows for a user: those that the transaction sees */
#define DP_RUN_TRANSACTION                                                                         \
	0x08 /* reads what the transaction's snapshot shows, and what it has written itself */

/*
 * Returns the plan of a statement of the declaration, or NULL if it has to be
 * (re)made with dp_plan_make().  id is the address of something static.
 */
extern SPIPlanPtr dp_plan(DpDecl *decl, const void *id);
extern SPIPlanPtr
dp_plan_make(DpDecl *decl, const void *id, const char *sql, int nargs, Oid *argtypes);
/*
 * One that is planned once, whatever the values: where it is always the same index that serves it.
 */
extern SPIPlanPtr
dp_plan_make_generic(DpDecl *decl, const void *id, const char *sql, int nargs, Oid *argtypes);

/*
 * Runs a plan inside SPI_connect().  The result is in SPI_tuptable.  expected
 * is the SPI_OK_... code.  Returns the number of rows.
 */
extern uint64 dp_run(DpDecl *decl, SPIPlanPtr plan, Datum *values, const char *nulls, int flags,
					 long maxrows, int expected);

/*
 * Checks, repairs and migrations run as the table's owner, whoever calls them:
 * in a security-restricted operation, and so that settings which the owner's
 * triggers and functions change are afterwards what they were.  An error in
 * between ends the transaction or subtransaction, which restores all.
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
 * The owner's rights alone, as dp_run() has them with DP_RUN_AS_OWNER: for
 * what is written without a statement.  The caller ends it also on errors.
 */
typedef struct DpActing
{
	Oid user;
	int sec;
	Oid acting;
	int nestlevel; /* settings that triggers change are put back */
} DpActing;

extern void dp_act_as(Oid owner, DpActing *saved);
extern void dp_act_end(const DpActing *saved);

/* A column of the current SPI result, detoasted if a varlena; its memory is SPI's. */
extern Datum dp_result(uint64 row, int column, bool *isnull);

/*
 * Marks.  While a statement of our own writes to a relation, the relation is
 * marked with what is being done, and the triggers that the statement fires
 * look at the mark.  Marks are kept in C, so nobody can forge them, and hold
 * for the triggers of that very statement only: what a user's trigger writes
 * while it runs is an ordinary write.  Use:
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
	DP_MARK_INTERNAL, /* the pattern itself writes what is already in order */
	DP_MARK_WHOLE,    /* a whole document is written: it replaces what lies elsewhere */
	DP_MARK_REPLACED, /* the same, and what lay elsewhere is gone already */
	DP_MARK_DERIVED   /* derived fields are written; what else is done to the row is ordinary */
} DpMarkKind;

typedef struct DpMark
{
	Oid relid;
	const char *name; /* of the declaration; NULL: all of the relation's */
	DpMarkKind kind;
	int depth;           /* triggers that are running when the statement starts */
	struct varlena *doc; /* what an internal statement writes, if that is a document */
	struct DpMark *outer;
} DpMark;

extern void dp_mark_push(DpMark *mark, Oid relid, const char *name, DpMarkKind kind);
extern void dp_mark_pop(DpMark *mark);
extern DpMarkKind dp_marked(Oid relid, const char *name);
/* Whether the command whose event triggers are being called is one of our own on the relation. */
extern bool dp_marked_command(Oid relid);
extern void dp_mark_change(Oid relid, const char *name, DpMarkKind kind);

/* dp_run() for a statement that writes to relid, marked. */
extern uint64 dp_run_marked(DpDecl *decl, SPIPlanPtr plan, Datum *values, const char *nulls,
							int flags, int expected, Oid relid, const char *name, DpMarkKind kind);

/*
 * The same for an internal statement that writes the document to the table.
 * BEFORE triggers of users may change it on its way; the pattern's own, which
 * come last, find here what it was.
 */
extern void
dp_run_writing(DpDecl *decl, SPIPlanPtr plan, Datum *values, int flags, struct varlena *doc);
extern struct varlena *dp_marked_document(Oid relid, const char *name);

/*
 * Whether the statement whose triggers are being called writes derived fields
 * (DP_MARK_DERIVED, which dp_marked() does not tell: for other patterns it is
 * an ordinary write).  In BEFORE ROW triggers *doc is then what it writes,
 * before triggers changed it: derived fields are right there.  doc may be NULL.
 */
extern bool dp_marked_derived(Oid relid, struct varlena **doc);

/*
 * Raises TRIGGERED_DATA_CHANGE_VIOLATION: a user's trigger has suppressed what the pattern had to
 * write.
 */
extern void dp_write_refused(DpDecl *decl, Oid relid) pg_attribute_noreturn();

/* The user who acts: the one before dp_run() switched to an owner. */
extern Oid dp_acting_user(void);

#endif /* DP_KIT_SQL_RUN_H */
