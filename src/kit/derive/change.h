/*
 * change.h
 *		The changes that a statement made to a table from which data are derived.
 *
 * Statement-level triggers record which events a statement has (INSERT .. ON CONFLICT DO UPDATE has
 * two, MERGE up to three, and a query with several parts may have all), and collect old and new
 * rows.  The last trigger handles all changes at once, for all declarations with this source, so
 * that locks are taken in one order; the other triggers do nothing more.
 *
 * A trigger function on a source returns dp_changes_trigger().
 *
 * The SQL function _derive_source_triggers() creates these statement-level triggers on the table
 * and on each of its partitions:
 *
 *		BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE
 *		AFTER INSERT, AFTER UPDATE, AFTER DELETE	with transition tables
 *		AFTER TRUNCATE
 *
 * Relations of measurements are foreign tables, which have no transition tables and, before
 * PostgreSQL 16, no TRUNCATE triggers.  There AFTER ROW triggers collect rows, AFTER INSERT OR
 * UPDATE OR DELETE is one trigger, and dp_changed_wholly() reports changes made to the underlying
 * storage.
 *
 * Their arguments are ('side', link_id, name) or, if the source has the main trigger, ('of', name);
 * on partitions of the former ('part', link_id, name).
 */
#ifndef DP_KIT_DERIVE_CHANGE_H
#define DP_KIT_DERIVE_CHANGE_H

#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "utils/rel.h"

#include "kit/declaration.h"

typedef struct DpChanges DpChanges;

/*
 * One change.  The n-th old and new row of an update are returned together, usually but not always
 * versions of one row: conclude only that two equal ones cancel each other.  The slots are valid
 * until the next call.  Their columns are those of dp_changes_table(), even if the statement wrote
 * to a partition with another column order.
 */
typedef struct DpChange
{
	TupleTableSlot *before; /* an old or deleted row, or NULL */
	TupleTableSlot *after;  /* a new row, or NULL */
} DpChange;

/*
 * The trigger function on a source.  The last AFTER trigger of a statement passes its changes to
 * dp_derive_changes() and to the patterns' handlers (changes in registry.h).  Each handler looks
 * after its own declarations, as the current user, and reads the changes by dp_changes_next().
 */
extern Datum dp_changes_trigger(FunctionCallInfo fcinfo, const char *pattern);

/* The table that declarations name; never a partition. */
extern Oid dp_changes_table(const DpChanges *changes);

/*
 * True if not all changes are reported row by row: the table or a partition was truncated, or much
 * was dropped below a relation of measurements.  All groups must be recomputed; there may be single
 * changes too.
 */
extern bool dp_changes_wholly(const DpChanges *changes);

/* True if the table is empty now; implies dp_changes_wholly(). */
extern bool dp_changes_emptied(const DpChanges *changes);

/* True if groups of these changes must be recomputed (dp_changed_partition()). */
extern bool dp_changes_recompute(const DpChanges *changes);

/* Returns the changes one after another; dp_changes_rewind() starts again. */
extern bool dp_changes_next(DpChanges *changes, DpChange *change);
extern void dp_changes_rewind(DpChanges *changes);

/*
 * True if an outer statement on the table (as dp_changes_table() returns it) has changes that were
 * not handled yet.
 */
extern bool dp_changes_pending(Oid table);

/*
 * For handlers: true if an outer statement on the same table has changes that not all handlers have
 * processed.  It is pending, or one of its handlers made these changes; later handlers then see the
 * inner changes first.
 */
extern bool dp_changes_inside(const DpChanges *changes);

/*
 * The document of a row of dp_changes_table(): its column of type bson, detoasted, or an empty
 * document for a null.  For a table without such a column, and for a relation of measurements, the
 * row as a document.  column may be NULL if there is at most one.  In the current memory context,
 * or part of the row.
 */
extern struct varlena *dp_source_document(TupleTableSlot *row, const char *column);

/*
 * A source as declarations use it: those whose side triggers it (or, for a partition, its ancestor)
 * has, and its own.  Cached; lives at least until the transaction ends, as the declarations do.
 */
typedef struct DpSourceDecl
{
	DpDecl *decl;
	bool is_main;        /* the source has the main trigger; else a side trigger */
	const char *link_id; /* of the side triggers; NULL for the main one */
	Oid source;          /* the table that was declared as the source */
} DpSourceDecl;

extern List *dp_source_decls(Oid relid);

/* Recomputes everything derived from the table; emptied: it has no rows now. */
extern void dp_changed_wholly(Oid relid, bool emptied);

/*
 * All rows of a partition were added to or removed from its ancestor, the table.  recompute: the
 * table was read without them before they were removed.
 */
extern void dp_changed_partition(Oid table, Oid partition, bool attached, bool recompute);

#endif /* DP_KIT_DERIVE_CHANGE_H */
