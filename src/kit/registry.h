/*
 * registry.h
 *		The patterns, and what each one provides to the kit.
 *
 * A pattern defines a DpPattern named dp_<name>_pattern and has a line in patterns/patterns.h.  The
 * kit knows no pattern by name.
 */
#ifndef DP_KIT_REGISTRY_H
#define DP_KIT_REGISTRY_H

#include "kit/declaration.h"
#include "kit/key.h"

struct DpChanges;
struct DpDeriveHooks;
struct DpDeriveMethods;
struct DpHierarchy;
struct DpOption;
struct DpViewMethods;

/* All members but the name are optional. */
typedef struct DpPattern
{
	const char *name;    /* its trigger function is <name>_trigger */
	const char *creator; /* the function that creates its triggers, unless it is <name>_enable */

	/* Defines settings and registers callbacks when the library is loaded. */
	void (*init)(void);

	/* Its options; the last one has no name. */
	const struct DpOption *options;

	/*
	 * The pattern creates the declared table itself: the table has neither a document column nor
	 * an anchor, and the tables beside it are parts of it.
	 */
	bool creates_table;

	/* The tables that it keeps hold data that the documents do not have. */
	bool keeps_originals;

	/* It reads or writes rows of several documents together, so they must be on one server. */
	bool whole_table;

	/* The option with the link ID of a table of waiting rows, for pattern_stats(). */
	const char *waiting;

	/*
	 * The last words of the names of its views, separated by spaces.  A function
	 * _<name>_view_labels(bson) says so where options decide.
	 */
	const char *views;

	/* What pattern_build() does with values that documents have already, for a hint. */
	const char *adopts;

	/*
	 * A hint for values that pattern_build() would lose.  {source} stands for the other table,
	 * {on_field} for that option.
	 */
	const char *adopt_hint;

	/*
	 * For a pattern that splits documents over two tables.  True if the stored document is only a
	 * part.  Must be cheap and read no other table.
	 */
	bool (*is_split)(DpDecl *decl, struct varlena *stored);

	/*
	 * With is_split: returns the whole document, as of the latest snapshot or the calling
	 * statement's.  Called inside SPI_connect().
	 */
	struct varlena *(*whole)(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest);

	/*
	 * With is_split: a new whole document was written over an old one.  If the part that this
	 * pattern split off is the same in both, returns the new document with the stored part instead,
	 * else NULL.
	 */
	struct varlena *(*keep)(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
							struct varlena *new_whole);

	/*
	 * The fields that differ between stored and whole documents: a list of DpSplitField, for rows
	 * called t.
	 */
	List *(*split)(DpDecl *decl);

	/*
	 * Which rows of the table calls for collections see, though plain SQL sees all: a condition for
	 * rows called t (NULL: all), in SQL that Citus can run on other servers, and whether a stored
	 * document is such a row's.  The others will be deleted, and make way for new ones: seen.h.
	 */
	char *(*seen)(DpDecl *decl);
	bool (*sees)(DpDecl *decl, struct varlena *stored);

	/*
	 * Writes the SQL of a word of this pattern in templates of statements; false if it does not
	 * know the word.
	 */
	bool (*word)(DpDecl *decl, const char *word, StringInfo sql);

	/*
	 * Makes one row consistent; returns true if it was written.  Called inside SPI_connect(), as
	 * the owner.  Omitted by patterns of derived data.
	 */
	bool (*repair_row)(DpDecl *decl, const DpKey *key);

	/* Makes consistent what a note (note.h) of the pattern names; called likewise. */
	void (*process_note)(DpDecl *decl, const DpValue *value);

	/* A side table whose rows follow the table's: side/side.h. */
	const struct DpSideMethods *side;

	/* The pattern's own views, which show a table's documents in another shape: view.h. */
	const struct DpViewMethods *view;

	/* A table of this pattern as a hierarchy: dp_hierarchy_find(). */
	const struct DpHierarchy *(*hierarchy)(Oid table);

	/* A pattern of derived data: derive/derive.h. */
	const struct DpDeriveMethods *derive;

	/* Runs together with derived data: derive/derive.h. */
	const struct DpDeriveHooks *hooks;

	/*
	 * A trigger of the extension was created on a table, or the table was altered: records its
	 * dependencies.
	 */
	void (*depend)(Oid relid);

	/* A column of a table was added or dropped, or got another type. */
	void (*columns_altered)(Oid relid);

	void (*schema_renamed)(Oid schema);

	/* Called after a partition was attached or detached, for each ancestor, nearest first. */
	void (*partition)(Oid table, Oid partition, bool attached);

	/*
	 * Handles effects of a statement on a source other than row changes of groups, or changes for
	 * which no trigger fires: derive/change.h.  Called in the order of patterns.h.
	 */
	void (*changes)(struct DpChanges *changes);
} DpPattern;

/* Defines a pattern of patterns.h. */
#define DP_DEFINE_PATTERN(name)                                                                    \
	extern const DpPattern dp_##name##_pattern;                                                    \
	const DpPattern dp_##name##_pattern

/* All patterns, in the order of patterns.h, and NULL. Set when the library is loaded. */
extern const DpPattern *const *dp_patterns;

/* Returns NULL for an unknown name. */
extern const DpPattern *dp_pattern_find(const char *name);

/* The hierarchy of a table (derive/hierarchy.h).  Raises the errors of dp_decl_find(). */
extern const struct DpHierarchy *dp_hierarchy_find(Oid table);

/* True for a C function of the extension. */
extern bool dp_own_function(Oid function);

/* The pattern whose trigger function this is, or NULL. */
extern const DpPattern *dp_pattern_of_function(Oid function);

/* The function _<pattern>_<verb> of the extension with these arguments, or InvalidOid. */
extern Oid dp_pattern_hook(const char *pattern, const char *verb, int nargs, const Oid *types);

/*
 * Runs SELECT * FROM _<pattern>_<verb>(rel, name, ...), inside SPI_connect(), as the table's owner
 * in a security-restricted operation.  Returns the number of rows, which are in SPI_tuptable.
 */
extern uint64 dp_pattern_call_hook(Oid rel, const char *pattern, const char *verb, const char *name,
								   int nextra, Oid *types, Datum *values, bool read_only);

#endif /* DP_KIT_REGISTRY_H */
