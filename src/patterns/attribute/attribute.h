/*
 * attribute.h
 *		The attribute pattern: many similar fields become one array of members
 *		{name, value}.
 *
 * A form declares the fields of a document to pack and the fields of members:
 * pattern release_{location} packs release_US into {location: "US", date: ...} in
 * the array releases.  The parts of a name matched by placeholders (or the whole
 * name, with a prefix or listed fields) are the member's key fields; it may also
 * have a qualifier.  Forms convert in both directions: from the wide layout, with
 * fields, to the packed one, with the array, and back.
 *
 * form.c compiles forms and converts names, pack.c converts documents; attribute.c
 * has the trigger, calls.c the SQL functions.
 */
#ifndef DP_PATTERNS_ATTRIBUTE_ATTRIBUTE_H
#define DP_PATTERNS_ATTRIBUTE_ATTRIBUTE_H

#include "bson/builder.h"
#include "bson/path.h"
#include "kit/registry.h"
#include "kit/rows/lookup.h"

/* Most placeholders of a pattern */
#define DP_ATTRIBUTE_MAX_KEYS 8

/* Bytes somewhere */
typedef struct DpAttributeText
{
	const char *s;
	uint32 len;
} DpAttributeText;

/* A name in the wide shape and the same in members */
typedef struct DpAttributeRename
{
	DpAttributeText wide;
	DpAttributeText packed;
} DpAttributeRename;

/* A key field of members */
typedef struct DpAttributeField
{
	DpAttributeText name;
	int nrenames;
	DpAttributeRename *renames;
} DpAttributeField;

/* A field of the list paths */
typedef struct DpAttributePath
{
	DpPath *path;
	DpAttributeText text; /* as members have it, before it is renamed */
	int next;             /* the next one of the same bucket, or -1 */
} DpAttributePath;

/* The qualifier of a key */
typedef struct DpAttributeQualifier
{
	DpAttributeText wide;
	DpValue value;
} DpAttributeQualifier;

#define DP_ATTRIBUTE_BUCKETS 64

typedef struct DpAttributeForm
{
	DpPath *into;
	bool wide; /* convert documents back to the wide layout */
	bool is_unique;
	int nfields;
	DpAttributeField fields[DP_ATTRIBUTE_MAX_KEYS];
	DpAttributeText value_field;
	DpAttributeText qualifier_field; /* s is NULL: members have none */
	int nqualifiers;
	DpAttributeQualifier *qualifiers;

	/* a pattern or a prefix: literals before, between and after the placeholders */
	DpAttributeText literals[DP_ATTRIBUTE_MAX_KEYS + 1];
	uint32 min_len; /* of a name */
	int nexcept;
	DpAttributeText *except; /* names that are never packed */

	/* or a list of paths */
	int npaths; /* 0: it is a pattern */
	DpAttributePath *paths;
	int buckets[DP_ATTRIBUTE_BUCKETS]; /* paths of one name, by their hash; -1: none */
	bool nested;                       /* some have several names */
} DpAttributeForm;

/* The key of a field: in members, and how its first part is called in the wide shape */
typedef struct DpAttributeKey
{
	DpAttributeText parts[DP_ATTRIBUTE_MAX_KEYS];
	DpAttributeText wide;
	const DpValue *qualifier; /* or NULL */
} DpAttributeKey;

/* form.c */

/*
 * Compiles options to a form in the current memory context; it points into them. Raises
 * INVALID_PARAMETER_VALUE.
 */
extern DpAttributeForm *dp_attribute_compile(const DpValue *options);

/* Whether a field of that name at the top of a document is meant, and its key. */
extern bool
dp_attribute_match(const DpAttributeForm *form, const char *name, uint32 len, DpAttributeKey *key);

/* The key of a path of the list. */
extern void dp_attribute_path_key(const DpAttributeForm *form, int path, DpAttributeKey *key);

/*
 * Returns the name of the field of a member with these parts, palloc'd or in the form; if it is a
 * path of several names, sets *path to its number (else -1). Returns false without such a field.
 * Sets *key to the field's key.
 */
extern bool dp_attribute_name(const DpAttributeForm *form, const DpAttributeText *parts,
							  DpAttributeText *name, int *path, DpAttributeKey *key);

/* pack.c */

/*
 * Returns the packed document, or NULL if there is nothing to pack. Unless base is NULL, that
 * array is used instead of the document's own, without the members whose field the document does
 * not have. Raises CHECK_VIOLATION if another value has the array's path, and
 * PROGRAM_LIMIT_EXCEEDED.
 */
extern struct varlena *
dp_attribute_pack(const DpAttributeForm *form, struct varlena *doc, const DpValue *base);

/* The wide document, or NULL if nothing changes.  Raises PROGRAM_LIMIT_EXCEEDED. */
extern struct varlena *dp_attribute_unpack(const DpAttributeForm *form, struct varlena *doc);

/* Returns how many members would become fields; sets *left to the number of those that cannot. */
extern int dp_attribute_returning(const DpAttributeForm *form, struct varlena *doc, int *left);

/* Returns the document in the form's layout, or NULL if it has it. */
extern struct varlena *dp_attribute_convert(const DpAttributeForm *form, struct varlena *doc);

/*
 * Returns whether a document has a field to pack, and the name of the first one unless name is
 * NULL.
 */
extern bool
dp_attribute_is_wide(const DpAttributeForm *form, struct varlena *doc, DpAttributeText *name);

/* The array of a document; false if it has none. */
extern bool dp_attribute_array(const DpAttributeForm *form, struct varlena *doc, DpValue *array);

/* Returns whether the document's array has a duplicate key; *text becomes it as JSON. */
extern bool dp_attribute_twice(const DpAttributeForm *form, struct varlena *doc, char **text);

/* attribute.c */

typedef struct DpAttribute
{
	DpDecl *decl;
	DpAttributeForm *form;
	DpLookup *lookup; /* or NULL: not used yet */
} DpAttribute;

#endif /* DP_PATTERNS_ATTRIBUTE_ATTRIBUTE_H */
