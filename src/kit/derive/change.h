/*
 * change.h
 *		What a statement did to a table from which something is derived.
 *
 * Triggers for statements note which events a statement has (INSERT .. ON
 * CONFLICT DO UPDATE has two, MERGE up to three, and a query with several parts
 * may have all), and collect the rows that are gone and those that have come.
 * The last of them handles all at once, for all declarations that the table
 * feeds, so that locks are taken in one order; the others have nothing to do.
 *
 * A trigger function on a source begins with
 *
 *		DpChanges  *changes = dp_changes_of_trigger(fcinfo);
 *
 *		if (changes == NULL)
 *			return PointerGetDatum(NULL);
 *		while (dp_changes_next(changes, &change))
 *			...
 *
 * The triggers are made by the SQL function _derive_source_triggers() on the
 * table and on each of its partitions:
 *
 *		BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE
 *		AFTER INSERT, AFTER UPDATE, AFTER DELETE	with transition tables
 *		AFTER TRUNCATE
 *
 * for each statement.  Relations of measurements are foreign tables, which
 * have no transition tables and, before PostgreSQL 16, no TRUNCATE triggers:
 * there AFTER ROW triggers collect, and AFTER INSERT OR UPDATE OR DELETE is one
 * trigger; what happens beneath them is told by dp_changed_wholly().
 *
 * Their arguments are ('side', pair, name) or, where the source has the main
 * trigger, ('of', name); on partitions of the former ('part', pair, name).
 */
#ifndef DP_KIT_DERIVE_CHANGE_H
#define DP_KIT_DERIVE_CHANGE_H

#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "utils/rel.h"

#include "kit/declaration.h"

typedef struct DpChanges DpChanges;

/*
 * One change.  Of an update the nth row that is gone comes together with the
 * nth that has come.  They are usually two versions of one row, but nothing
 * says so: all that may be concluded is that two equal ones cancel each other.
 * The slots are valid until the next call.  Their columns are those of
 * dp_changes_table(), also where the statement wrote to a partition with
 * another order of columns.
 */
typedef struct DpChange
{
	TupleTableSlot *before; /* a row that is gone, or NULL */
	TupleTableSlot *after;  /* a row that has come, or NULL */
} DpChange;

/*
 * To be called by each trigger.  NULL: there is nothing to handle (yet, or it
 * has been done).  Else the caller handles it for all declarations of the
 * table.  Raises E_R_I_E_TRIGGER_PROTOCOL_VIOLATED for other callers.
 */
extern DpChanges *dp_changes_of_trigger(FunctionCallInfo fcinfo);

/* The table that declarations name: never a partition. */
extern Oid dp_changes_table(const DpChanges *changes);

/*
 * Whether rows have come or gone that are not told one by one: the table or a
 * partition was truncated, or much was dropped beneath a relation of
 * measurements.  All groups have to be computed anew; there may be single changes too.
 */
extern bool dp_changes_wholly(const DpChanges *changes);

/* Whether nothing at all is left in the table: a part of dp_changes_wholly(). */
extern bool dp_changes_emptied(const DpChanges *changes);

/* Whether groups of these changes have to be computed again (dp_changed_partition()). */
extern bool dp_changes_doubtful(const DpChanges *changes);

/* The changes one after another; again from the beginning after dp_changes_rewind(). */
extern bool dp_changes_next(DpChanges *changes, DpChange *change);
extern void dp_changes_rewind(DpChanges *changes);

/*
 * Whether a statement on the table (as dp_changes_table() gives it) is under
 * way around this trigger or function whose changes have not been handled yet.
 */
extern bool dp_changes_pending(Oid table);

/*
 * For those who handle changes: whether a statement on the same table is under
 * way around the one that made these whose changes not everybody has heard of
 * yet.  It is pending, or what others do to handle its changes made these: who
 * comes late in the list hears of the inner statement first.
 */
extern bool dp_changes_inside(const DpChanges *changes);

/*
 * The document of a row of dp_changes_table(): its column of type bson,
 * detoasted, an empty document for a null; for a table without one, and for a relation
 * of measurements, the row as a document.  column may be NULL where
 * there is at most one.  In the current memory context, or a part of the row.
 */
extern struct varlena *dp_source_document(TupleTableSlot *row, const char *column);

/*
 * What feeds from a table: the declarations whose side triggers it (or, for a
 * partition, a table above it) has, and its own ones.  Cached; lives until
 * the transaction ends at least, as the declarations do.
 */
typedef struct DpFeed
{
	DpDecl *decl;
	bool is_main;     /* the source has the main trigger; else a side's */
	const char *pair; /* of the side's triggers; NULL for the main one */
	Oid source;       /* the table that was declared to be it */
} DpFeed;

extern List *dp_feeds(Oid relid);

/*
 * Gives changes to dp_derive_changes() and to what patterns have registered (changes in
 * registry.h), and ends the reading.  Each looks after the declarations that are its own, as
 * the current user, and calls dp_changes_next() as triggers do.
 */
extern void dp_changes_handle(DpChanges *changes);

/* All rows of the table are to be looked at again; emptied: there are none left. */
extern void dp_changed_wholly(Oid relid, bool emptied);

/*
 * All rows of a partition have come to, or gone from, the table above it.
 * doubtful: the table was read without them before they went.
 */
extern void dp_changed_partition(Oid table, Oid partition, bool attached, bool doubtful);

#endif /* DP_KIT_DERIVE_CHANGE_H */
