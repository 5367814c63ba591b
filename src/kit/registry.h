/*
 * registry.h
 *		The patterns that there are, and what each gives to the kit.
 *
 * A pattern defines a DpPattern named dp_<name>_pattern and has a line in
 * patterns/patterns.h.  The kit knows no pattern by its name.
 */
#ifndef DP_KIT_REGISTRY_H
#define DP_KIT_REGISTRY_H

#include "kit/declaration.h"
#include "kit/key.h"

struct DpChanges;
struct DpCompanion;
struct DpDeriveMethods;
struct DpHierarchy;
struct DpOption;
struct DpViewMethods;

/* All members but the name are optional. */
typedef struct DpPattern
{
	const char *name; /* its trigger function is <name>_trigger */

	/* What it can be declared with; ends with an option without a name. */
	const struct DpOption *options;

	/*
	 * A pattern that splits documents over two places.  Whether the stored document is only
	 * a part; must be cheap and reads no other table.
	 */
	bool (*is_split)(DpDecl *decl, struct varlena *stored);

	/*
	 * With is_split: the whole document; called inside SPI_connect().  latest: else the calling
	 * statement's snapshot.
	 */
	struct varlena *(*whole)(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest);

	/*
	 * With is_split: a new whole document was written over an old one.  If the part that this
	 * pattern split off is the same in both, returns the new document with
	 * the stored part in its place, else NULL.
	 */
	struct varlena *(*keep)(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
							struct varlena *new_whole);

	/*
	 * The fields that differ between stored and whole documents: a list of DpSplitField, for rows
	 * called t.
	 */
	List *(*split)(DpDecl *decl);

	/*
	 * Brings one row in line; returns whether it was written.  Called inside SPI_connect(), as the
	 * owner.  A pattern that derives its data from rows of the other table leaves this out.
	 */
	bool (*settle)(DpDecl *decl, const DpKey *key);

	/* Brings in line what a note (note.h) of the pattern tells; likewise. */
	void (*settle_note)(DpDecl *decl, const DpValue *value);

	/* Views of its own that show a table's documents in another shape: view.h. */
	const struct DpViewMethods *view;

	/* A table of this pattern as a hierarchy: dp_hierarchy_find(). */
	const struct DpHierarchy *(*hierarchy)(Oid table);

	/* A pattern of derived data: derive/derive.h. */
	const struct DpDeriveMethods *derive;

	/* What is done together with derived data: derive/derive.h. */
	const struct DpCompanion *companion;

	/*
	 * A trigger of the extension was created on a table, or the table altered: records what
	 * depends on it.
	 */
	void (*depend)(Oid relid);

	/*
	 * All rows of a partition have come to a table above it, or gone from it.  Called for each
	 * table above, the nearest first.
	 */
	void (*partition)(Oid table, Oid partition, bool attached);

	/*
	 * Handles what a statement did to a source beside its rows' groups, or what no trigger tells
	 * of it: derive/change.h.  Called in the order of patterns.h.
	 */
	void (*changes)(struct DpChanges *changes);
} DpPattern;

/* All patterns, in the order of patterns.h; ends with NULL.  Set when the library is loaded. */
extern const DpPattern *const *dp_patterns;

/* NULL if there is none of that name. */
extern const DpPattern *dp_pattern_find(const char *name);

/* The hierarchy that a table is (derive/hierarchy.h).  Raises the errors of dp_decl_find(). */
extern const struct DpHierarchy *dp_hierarchy_find(Oid table);

/* Whether it is a C function of the extension. */
extern bool dp_own_function(Oid function);

/* The pattern whose trigger function this is, or NULL. */
extern const DpPattern *dp_pattern_of_function(Oid function);

/* The function _<pattern>_<verb> of the extension with these arguments, or InvalidOid. */
extern Oid dp_pattern_hook(const char *pattern, const char *verb, int nargs, const Oid *types);

#endif /* DP_KIT_REGISTRY_H */
