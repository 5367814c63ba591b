/*
 * view.h
 *		Views that show a table's documents in another shape and accept writes.
 *
 * Such a view selects columns of one table, and a function of the document instead of the document.
 * Its INSTEAD OF triggers write to the table as the user of the view.  An UPDATE of a row that has
 * changed since it was read raises T_R_SERIALIZATION_FAILURE.
 */
#ifndef DP_KIT_VIEW_H
#define DP_KIT_VIEW_H

#include "kit/registry.h"
#include "kit/sql/run.h"
#include "mql/collection_split.h"

/* args are the arguments of the view's trigger. */
typedef struct DpViewMethods
{
	const char *label; /* suffix of the views' names */

	/* True if the view shows the stored document differently.  Must be cheap. */
	bool (*is_changed)(char **args, List *decls, struct varlena *stored);

	/*
	 * Returns what the view shows; stored itself if that is the same.  Called inside SPI_connect().
	 */
	struct varlena *(*show)(char **args, List *decls, struct varlena *stored, const DpKey *key,
							bool latest);

	/*
	 * Returns the document to store after a write to the view; any of the three documents may be
	 * NULL.  The statement that writes it is marked DP_MARK_WHOLE for the names in marks, at most
	 * one per declaration.
	 */
	struct varlena *(*store)(char **args, List *decls, struct varlena *stored,
							 struct varlena *old_shown, struct varlena *new_shown, DpMark *marks,
							 int *nmarks);

	/* Adapts the split fields to the shape of the view; NULL if field names are the same. */
	void (*split)(char **args, List *decls, DpSplit *split);

	/*
	 * The trigger function of such views and the number of its arguments; with DpPattern.view only.
	 */
	PGFunction trigger;
	int nargs;
} DpViewMethods;

/* How the columns of a view and of its table correspond */
typedef struct DpView
{
	const DpViewMethods *methods;
	char **args;
	Oid base;
	List *decls;
	DpDecl *decl; /* any of the table's, for key and document column */
	int ncolumns;
	AttrNumber *base_attnum; /* for each column of the view */
	int doc_column;          /* the view's column with the document, from 0 */
} DpView;

/*
 * Reads this from the view's query, because names may have changed since it was created, and locks
 * the table.  Returns false if the query does not have the form of such views.
 */
extern bool dp_view_read(Relation view, const DpViewMethods *methods, char **args,
						 LOCKMODE lockmode, DpView *v);

/* The trigger function of such a view, after dp_trigger_require(). */
extern Datum dp_view_trigger(FunctionCallInfo fcinfo, const DpViewMethods *methods);

/*
 * The document with what patterns keep elsewhere, as of the latest snapshot or the calling
 * statement's; doc itself if that is nothing.
 */
extern struct varlena *
dp_whole_document(List *decls, struct varlena *doc, const DpKey *key, bool latest);

/* The views <table>_whole. */
extern const DpViewMethods dp_whole_view;

#endif /* DP_KIT_VIEW_H */
