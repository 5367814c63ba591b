/*
 * link.h
 *		The two tables of a link ID.
 */
#ifndef DP_KIT_LINK_H
#define DP_KIT_LINK_H

#include "kit/declaration.h"

/* Names of options that contain link IDs */
#define DP_LINK_OPTIONS 3
extern const char *const dp_link_options[DP_LINK_OPTIONS];

/*
 * As dp_link_main() and dp_link_side() find them, but without cache or declaration, because a table
 * may be incomplete during a restore.
 */
extern Oid dp_link_find(const char *link_id, bool main, Oid relid);

/*
 * Searches all triggers of the database for the other table of relid, among tables of the same
 * owner or of others (foreign).  Adds all that it finds to *all, unless NULL.
 */
extern Oid dp_link_scan(const char *link_id, bool main, Oid relid, bool foreign, List **all);

/*
 * Raises OBJECT_NOT_IN_PREREQUISITE_STATE if the other table exists but has another owner, because
 * a write would not be propagated to it.  A missing table is legal only during restore.
 */
extern void dp_link_require_owner(const char *link_id, bool main, Oid relid);

/*
 * The second table of a declaration if it has another owner than the first, or InvalidOid.  It is
 * then treated as missing, and must not be created again: dp_require_own_sides() raises
 * OBJECT_NOT_IN_PREREQUISITE_STATE.
 */
extern Oid dp_foreign_side(DpDecl *decl);
extern void dp_require_own_sides(DpDecl *decl);

#endif /* DP_KIT_LINK_H */
