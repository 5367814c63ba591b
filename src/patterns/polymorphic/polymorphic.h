/*
 * polymorphic.h
 *		The polymorphic pattern: documents of several kinds in one table, each
 *		with the schema of its kind.
 *
 * A field contains the kind of a document, or of sub-documents, in arrays or not.
 * Both are called items: a document is one item, or has as many as sub-documents.
 *
 *	polymorphic				the field, the schema of all items, and whether
 *							items of other kinds are allowed
 *	polymorphic_variant		a kind: its value of the field, its schema
 *
 * Both are declarations of the table.  Only the trigger of the first fires for
 * rows and reads all variants; triggers of variants only carry their declarations.
 *
 * polymorphic.c has the triggers and validates items, schema.c reads names and
 * types from schemas, calls.c has the SQL functions, infer.c infers schemas,
 * merge.c is the single view of several tables.
 */
#ifndef DP_PATTERNS_POLYMORPHIC_POLYMORPHIC_H
#define DP_PATTERNS_POLYMORPHIC_POLYMORPHIC_H

#include "lib/stringinfo.h"

#include "bson/path.h"
#include "kit/declaration.h"
#include "mql/schema.h"

/*
 * Names of fields that are refused, and of fields on the way to them. The filter has a bit for
 * each, which excludes most other names at once.
 */
typedef struct DpPolyNames
{
	const char *name;
	uint32 namelen;
	bool refused;
	uint64 filter; /* of the names below */
	int nbelow;
	struct DpPolyNames *below;
} DpPolyNames;

static inline uint64
dp_poly_name_bit(const char *name, uint32 len)
{
	return UINT64CONST(1) << ((len * 7 +
							   (len > 0 ? (uint8) name[0] * 3 + (uint8) name[len - 1] : 0)) &
							  63);
}

typedef struct DpPolyVariant
{
	char *variant;
	DpValue value; /* of the field */
	uint64 hash;
	DpValue schema_spec; /* type DP_TYPE_EOD: none */
	DpSchema *schema;    /* or NULL */
	bool closed;
	DpPolyNames *foreign; /* fields of other variants only; NULL: nothing is refused */
} DpPolyVariant;

/* Variants that were found lately; a power of 2 */
#define POLY_RECENT 32

typedef struct DpPoly
{
	DpDecl *decl;
	char *by;            /* as it is written */
	int nsteps;          /* to the items */
	DpPath *parent;      /* compiled; NULL: the document is the item */
	DpPath *field;       /* in the item: one step */
	bool accept;         /* items of other kinds */
	DpValue common_spec; /* type DP_TYPE_EOD: none */
	DpSchema *common;    /* or NULL */
	int nvariants;
	DpPolyVariant *variants;
	uint32 mask;  /* of the table of variants by the hash of their value */
	int16 *table; /* -1: free */
	DpPolyVariant
		*recent[POLY_RECENT]; /* found before, by a part of the value's bytes; NULL: none yet */
	bool splits;              /* other patterns split documents of the table */
} DpPoly;

/* Returns the options of a declaration, read once. Raises errors in them. */
extern DpPoly *dp_poly(DpDecl *decl);

/* The path of an item in its document, from the last step up */
typedef struct DpPolyLocation
{
	const struct DpPolyLocation *up;
	const char *name; /* NULL: an element */
	uint32 namelen;
	uint32 index;
} DpPolyLocation;

/* Appends it as paths are written; nothing for the document itself. */
extern void dp_poly_location_text(StringInfo out, const DpPolyLocation *location);

/*
 * Calls visit for each item. is_item is false for a value that should be a sub-document but is not
 * (null and absent ones are skipped). visit returns false to stop, and so does the walk.
 */
typedef bool (*DpPolyVisit)(const DpValue *item, bool is_item, const DpPolyLocation *location,
							void *arg);
extern bool dp_poly_each(const DpPath *parent, const DpValue *doc, DpPolyVisit visit, void *arg);

/* Whether a document may be stored. */
extern bool dp_poly_valid(DpPoly *p, const DpValue *doc);

/*
 * An error in a document: the item's variant (NULL: none), its origin ("by", "common", "variant",
 * "closed"), the path, the rule, and the readable texts. All are valid only during the call.
 */
typedef void (*DpPolyReport)(const char *variant, const char *part, const char *path,
							 const char *rule, const char *expected, const char *found, void *arg);
extern void dp_poly_errors(DpPoly *p, const DpValue *doc, DpPolyReport report, void *arg);

/* schema.c */

/*
 * The names that the schemas of other variants speak of and neither the
 * variant's own nor the common one does; NULL if there are none.  In the
 * current context.
 */
extern DpPolyNames *dp_poly_foreign(const DpPoly *p, const DpPolyVariant *variant);

#endif /* DP_PATTERNS_POLYMORPHIC_POLYMORPHIC_H */
