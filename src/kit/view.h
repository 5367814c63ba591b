/*
 * view.h
 *		Views that show a table's documents in another shape and take writes.
 *
 * Such a view selects columns of one table, and in place of the document a
 * function of it.  Its INSTEAD OF triggers write to the table, as the user who
 * writes to the view; an UPDATE of a row that has changed since it was read
 * raises T_R_SERIALIZATION_FAILURE.
 */
#ifndef DP_KIT_VIEW_H
#define DP_KIT_VIEW_H

#include "kit/registry.h"
#include "kit/sql/run.h"
#include "mql/collection_split.h"

/* args are the arguments of the view's trigger. */
typedef struct DpViewMethods
{
	const char *label; /* what the views' names end with */

	/* Whether the stored document is shown otherwise than it is stored; must be cheap. */
	bool (*is_changed)(char **args, List *decls, struct varlena *stored);

	/* What is shown of it; stored itself if that is the same.  Inside SPI_connect(). */
	struct varlena *(*show)(char **args, List *decls, struct varlena *stored, const DpKey *key,
							bool latest);

	/*
	 * The document to be stored when one that is shown has been written over
	 * another; any may be NULL.  The statement that writes it is marked
	 * DP_MARK_WHOLE for the names that are put into marks, one for each
	 * declaration at most.
	 */
	struct varlena *(*store)(char **args, List *decls, struct varlena *stored,
							 struct varlena *old_shown, struct varlena *new_shown, DpMark *marks,
							 int *nmarks);

	/* Adapts what is split off to what is shown of it; NULL: fields are called the same. */
	void (*split)(char **args, List *decls, DpSplit *split);

	/* The trigger function of such views, and how many arguments it has; with DpPattern.view only.
	 */
	PGFunction trigger;
	int nargs;

	char ids[8]; /* for the plans of its statements */
} DpViewMethods;

/* How the columns of a view and of its table correspond */
typedef struct DpView
{
	const DpViewMethods *methods;
	char **args;
	Oid base;
	List *decls;
	DpDecl *decl; /* any of the table's: for key and document column */
	int ncolumns;
	AttrNumber *base_attnum; /* for each column of the view */
	int doc_column;          /* the view's column with the document, from 0 */
} DpView;

/*
 * Reads that from the view's own query, as names may have changed since it was
 * made, and locks the table.  False if it is not as such views are made.
 */
extern bool dp_view_read(Relation view, const DpViewMethods *methods, char **args,
						 LOCKMODE lockmode, DpView *v);

/* What the trigger function of such a view does. */
extern Datum dp_view_trigger(FunctionCallInfo fcinfo, const DpViewMethods *methods);

/* What the views <table>_whole do. */
extern const DpViewMethods dp_whole_view;

#endif /* DP_KIT_VIEW_H */
