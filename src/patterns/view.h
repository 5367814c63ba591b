/*
 * view.h
 *		Views that show a table's documents in another shape and take writes.
 *
 * Such a view selects columns of one table, and in place of the document a
 * function of it.  Its INSTEAD OF triggers write to the table, as the user who
 * writes to the view; an UPDATE of a row that has changed since it was read
 * raises T_R_SERIALIZATION_FAILURE.
 */
#ifndef DP_PATTERNS_VIEW_H
#define DP_PATTERNS_VIEW_H

#include "patterns/pattern.h"
#include "patterns/run.h"

typedef struct DpViewMethods
{
	const char *label;			/* what the views' names end with */

	/* Whether the stored document is shown otherwise than it is stored; must be cheap. */
	bool		(*is_changed) (List *decls, struct varlena *stored);

	/* What is shown of it; stored itself if that is the same.  Inside SPI_connect(). */
	struct varlena *(*show) (List *decls, struct varlena *stored, const DpKey *key, bool latest);

	/*
	 * The document to be stored when one that is shown has been written over
	 * another; any may be NULL.  The statement that writes it is marked
	 * DP_MARK_WHOLE for the names that are put into marks, one for each
	 * declaration at most.
	 */
	struct varlena *(*store) (List *decls, struct varlena *stored, struct varlena *old_shown,
							  struct varlena *new_shown, DpMark *marks, int *nmarks);

	char		ids[8];			/* for the plans of its statements */
} DpViewMethods;

/* What the trigger function of such a view does. */
extern Datum dp_view_trigger(FunctionCallInfo fcinfo, const DpViewMethods *methods);

/* What the views <table>_whole do. */
extern const DpViewMethods dp_whole_view;

#endif							/* DP_PATTERNS_VIEW_H */
