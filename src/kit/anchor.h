/*
 * anchor.h
 *		The columns and triggers of a declaration, tracked by the system catalogs.
 *
 * Options name columns as text, which a rename does not change.  So each user table of a
 * declaration has one more trigger, which does nothing:
 *
 *		CREATE TRIGGER zz_docpatterns_00_anchor_buyers BEFORE UPDATE OF doc ON ...
 *			EXECUTE FUNCTION pattern_anchor_trigger('anchor', 'buyers',
 *				'{"keys": ["id"], "triggers": ["zz_docpatterns_50_outlier_buyers", ...]}')
 *
 * Its column is the document column.  PostgreSQL tracks renames of it, also through dumps and
 * upgrades, and rejects dropping or retyping it; the event trigger rejects dropping it with
 * CASCADE.  The label is the name of the declaration on the table with the main trigger, and the
 * link ID on the other table.  Key columns may change their types, so the argument names them; an
 * event trigger renames them there.
 */
#ifndef DP_KIT_ANCHOR_H
#define DP_KIT_ANCHOR_H

#include "nodes/pg_list.h"
#include "utils/relcache.h"

#include "commands/trigger.h"

typedef struct DpAnchor
{
	char *trigger; /* its name */
	char *label;
	char *column;   /* NULL where no document column is declared */
	List *keys;     /* names of the primary key's columns (char *) */
	List *triggers; /* names of the declaration's triggers on the table (char *) */
} DpAnchor;

/* The anchors of a relation (DpAnchor), in the current context. */
extern List *dp_anchors(Oid relid);

/* The document column of the anchor with that label, or NULL. */
extern char *dp_anchor_column(Oid relid, const char *label);

/* True if a trigger is an anchor, which never does anything. */
extern bool dp_trigger_is_anchor(const Trigger *trigger);

/*
 * The options of a declaration on a relation, with the current names of columns.  Sets others to
 * the tables (OIDs) in which names were looked up.
 */
extern struct varlena *dp_anchor_options(struct varlena *options, Oid relid, List **others);

/*
 * Raises OBJECT_NOT_IN_PREREQUISITE_STATE if a relation has a primary key on other columns than
 * those with which its patterns were declared.  A missing primary key is not an error.
 */
extern void dp_anchor_require_key(Relation rel);

/*
 * Called after a column was dropped.  Raises DEPENDENT_OBJECTS_STILL_EXIST if a pattern's key or
 * document column was dropped.
 */
extern void dp_anchor_require_columns(Relation rel, bool cascade);

#endif /* DP_KIT_ANCHOR_H */
