/*
 * polymorphic.h
 *		The polymorphic pattern: documents of several kinds in one table, each
 *		of the shape that its kind asks for.
 *
 * A field says of which kind a document is.  It is a field of the document, or
 * of sub-documents, in arrays or not: then these are of different kinds.  Both
 * are called items here: a document has one item, or as many as it has
 * sub-documents.
 *
 *		polymorphic				the field, the schema of all items, and whether
 *								there may be items of other kinds
 *		polymorphic_variant		a kind: its value of the field, its schema
 *
 * Both are declarations of the table.  Rows pay for the trigger of the first
 * only, which knows all variants; those of the variants do nothing but carry
 * their declarations.
 *
 * polymorphic.c has the triggers and looks at items, schema.c
 * reads schemas for the names and types in them, calls.c has what
 * SQL calls, infer.c proposes schemas, merge.c is the
 * view of one thing from several tables.
 */
#ifndef DP_PATTERNS_POLYMORPHIC_POLYMORPHIC_H
#define DP_PATTERNS_POLYMORPHIC_POLYMORPHIC_H

#include "lib/stringinfo.h"

#include "bson/path.h"
#include "kit/declaration.h"
#include "mql/schema.h"

/*
 * Names of fields that are refused, and of those on the way to them.  The
 * filter has a bit for each, so that most other names are told apart at once.
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
	DpPolyNames *foreign; /* what belongs to other variants only; NULL: nothing is refused */
} DpPolyVariant;

/* Variants that were found lately; a power of 2 */
#define POLY_RECENT 32

typedef struct DpPoly
{
	DpDecl *decl;
	char *by;            /* as it is written */
	int nsteps;          /* to the items */
	DpPath *parent;      /* the same; NULL: the document is the item */
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

/* The pattern's view of a declaration, made once.  Raises what is wrong with its options. */
extern DpPoly *dp_poly(DpDecl *decl);

/* Where an item is in its document: from the last step up. */
typedef struct DpPolyPlace
{
	const struct DpPolyPlace *up;
	const char *name; /* NULL: an element */
	uint32 namelen;
	uint32 index;
} DpPolyPlace;

/* Appends it as paths are written; nothing for the document itself. */
extern void dp_poly_place_text(StringInfo out, const DpPolyPlace *place);

/*
 * Calls visit for each item.  is_item is false for what stands in the place
 * of a sub-document and is none (null and absent ones are not told).  visit
 * returns false to stop, and so does the walk then.
 */
typedef bool (*DpPolyVisit)(const DpValue *item, bool is_item, const DpPolyPlace *place, void *arg);
extern bool dp_poly_each(const DpPath *parent, const DpValue *doc, DpPolyVisit visit, void *arg);

/* Whether a document may be stored. */
extern bool dp_poly_valid(DpPoly *p, const DpValue *doc);

/*
 * What is wrong with a document: the item's variant (NULL: none), what says so
 * ("by", "common", "variant", "closed"), the path, the rule, and what people
 * may read.  All are valid during the call only.
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
