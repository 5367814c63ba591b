/*
 * depend.h
 *		Dependencies between the two tables of a pattern.
 */
#ifndef DP_KIT_DEPEND_H
#define DP_KIT_DEPEND_H

#include "catalog/dependency.h"
#include "catalog/pg_trigger.h"
#include "nodes/pg_list.h"

/*
 * Records the dependencies that follow from the triggers of a relation, and those of each pattern.
 */
extern void dp_depend_relation(Oid relid);
extern void dp_depend_patterns(Oid relid);

/* Records that an object depends on another, unless it already does. */
extern void dp_depend(Oid class, Oid object, Oid on_class, Oid on, DependencyType type);

/*
 * Two sessions may create triggers of one declaration at a time, as a parallel restore does: the
 * second must see the trigger of the first.  Locks the link IDs that the arguments of a new trigger
 * name, and for the second link ID of a declaration the first too.  This order avoids deadlocks.
 */
extern void dp_depend_lock_links(Oid relid, List *args);

/*
 * True if a guard trigger shows that the table belongs to a pattern, unless it is known to belong
 * to a table other than main (InvalidOid: any).
 */
extern bool dp_depend_has_guard(Oid relid, Oid main);

/* True if a trigger has the extension's name prefix and function. */
extern bool dp_is_own_trigger(Form_pg_trigger form);

#endif /* DP_KIT_DEPEND_H */
