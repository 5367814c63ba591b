/*
 * pattern.h
 *		What a pattern gives to the verbs that are the same for all patterns.
 */
#ifndef DP_KIT_PATTERN_H
#define DP_KIT_PATTERN_H

#include "kit/declaration.h"
#include "kit/key.h"

/* A pattern that splits documents over two places says how to join them. */
typedef struct DpPatternMethods
{
	const char *pattern;

	/* Whether the stored document is only a part; must be cheap and reads no other table. */
	bool (*is_split)(DpDecl *decl, struct varlena *stored);

	/*
	 * The whole document; called inside SPI_connect().  latest: else the calling statement's
	 * snapshot.
	 */
	struct varlena *(*whole)(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest);

	/*
	 * A new whole document was written over an old one.  If the part that this
	 * pattern split off is the same in both, returns the new document with
	 * the stored part in its place, else NULL.
	 */
	struct varlena *(*keep)(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
							struct varlena *new_whole);

	/*
	 * Brings one row in line; returns whether it was written.  Called inside SPI_connect(), as the
	 * owner.
	 */
	bool (*settle)(DpDecl *decl, const DpKey *key);

	/*
	 * The fields that differ between stored and whole documents: a list of DpSplitField, for rows
	 * called t.
	 */
	List *(*split)(DpDecl *decl);

	/* Brings in line what a note (note.h) of the pattern tells; likewise. */
	void (*settle_note)(DpDecl *decl, const DpValue *value);
} DpPatternMethods;

/* NULL if the pattern does not split documents. */
extern const DpPatternMethods *dp_pattern_methods(const char *pattern);

extern const DpPatternMethods dp_outlier_methods;
extern const DpPatternMethods dp_subset_fields_methods;
extern const DpPatternMethods dp_approximation_methods;
extern const DpPatternMethods dp_preallocated_methods;
extern const DpPatternMethods dp_tree_methods;
extern const DpPatternMethods dp_tree_attach_methods;
extern const DpPatternMethods dp_reference_methods;
extern const DpPatternMethods dp_rollup_build;
extern const DpPatternMethods dp_fanout_build_methods;
extern const DpPatternMethods dp_query_table_build;
extern const DpPatternMethods dp_polymorphic_methods;
extern const DpPatternMethods dp_polymorphic_variant_methods;
extern const DpPatternMethods dp_attribute_methods;
extern const DpPatternMethods dp_schema_versioning_methods;
extern const DpPatternMethods dp_payload_methods;
extern const DpPatternMethods dp_single_collection_methods;
extern const DpPatternMethods dp_versioning_methods;
extern const DpPatternMethods dp_relationship_methods;

/* The function _<pattern>_<verb> of the extension with these arguments, or InvalidOid. */
extern Oid dp_pattern_hook(const char *pattern, const char *verb, int nargs, const Oid *types);

#endif /* DP_KIT_PATTERN_H */
