/*
 * anchor.h
 *		What a declaration was made for: columns and triggers, known by the catalogs.
 *
 * Options name columns as text, which a rename would leave behind.  So each of
 * a declaration's tables that belongs to a user has one more trigger, which
 * does nothing:
 *
 *		CREATE TRIGGER zz_docpatterns_00_anchor_buyers BEFORE UPDATE OF doc ON ...
 *			EXECUTE FUNCTION pattern_anchor_trigger('anchor', 'buyers',
 *				'{"keys": ["id"], "triggers": ["zz_docpatterns_50_outlier_buyers", ...]}')
 *
 * Its column is the document's.  PostgreSQL follows it through renames, dumps
 * and upgrades, and lets it neither be dropped nor change its type; the event
 * trigger refuses to drop it with CASCADE.  Its label
 * is the name of the declaration on the table that carries it, and the pair on
 * the other table.  The key's columns may change their types, so these are
 * named in the argument, which an event trigger keeps in step with renames.
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

/* The document column of the one with that label, or NULL. */
extern char *dp_anchor_column(Oid relid, const char *label);

/* Whether a trigger is one of them: it never does anything. */
extern bool dp_trigger_is_anchor(const Trigger *trigger);

/*
 * Options of a declaration on a relation with the names that its columns have
 * now.  others: gets the tables (OIDs) that names were looked up in.
 */
extern struct varlena *dp_anchor_options(struct varlena *options, Oid relid, List **others);

/*
 * Raises OBJECT_NOT_IN_PREREQUISITE_STATE if the primary key of a relation is
 * not on the columns that its patterns were declared with.  None is no other.
 */
extern void dp_anchor_require_key(Relation rel);

/*
 * A column was dropped.  Raises DEPENDENT_OBJECTS_STILL_EXIST if the key of a
 * pattern had it, or its document was in it.
 */
extern void dp_anchor_require_columns(Relation rel, bool cascade);

#endif /* DP_KIT_ANCHOR_H */
