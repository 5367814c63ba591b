/*
 * seen.h
 *		Rows that calls for collections do not see, because a pattern will delete them.
 */
#ifndef DP_KIT_SEEN_H
#define DP_KIT_SEEN_H

#include "kit/declaration.h"

/* For dp_seen_hook and dp_make_way_hook. */
extern char *dp_seen_of_table(Relation rel);
extern void dp_make_way(Oid relid, Datum docs);

/* Whether calls see the row of a stored document. */
extern bool dp_sees(List *decls, struct varlena *stored);

#endif /* DP_KIT_SEEN_H */
