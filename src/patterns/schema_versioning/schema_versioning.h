/*
 * schema_versioning.h
 *		The schema versioning pattern: documents in several versions side by side.
 *
 * A field of a document contains the version of its schema; without the field (or
 * with null) the version is 1.  Steps lead from one version to the next, up and
 * down.  They form a chain: a version has at most one step up and one down.
 * chain.c has the chain of a version and converts documents along it;
 * schema_versioning.c has the triggers of the table, view.c the views of versions,
 * migrate.c migrations and calls.c the other functions.
 *
 * The declaration is a document, the argument of the main trigger:
 *
 *	name, field, doc_column
 *	current		the current version
 *	write		"upgrade" or "accept": treatment of older documents in writes
 *	type		"int", "long", "double", "decimal" or "string": type of the field
 *	first		whether version 1 is written too, or has no field
 *	stem		prefix of the names of views and functions
 *	steps		[{since, until, up_update | up_function, down_update | down_function}],
 *				in order; names of functions are only informative
 *	schemas		[{version, schema}]
 *
 * The trigger's condition refers to the functions of steps, so that dumps and
 * renames include them: _schema_versioning_uses(NULL, ARRAY[..]) lists them in the
 * order of the steps, up before down.  The trigger for TRUNCATE refers in the same
 * way to the generated functions, one for each version.  These call
 * _schema_versioning_as() with a document of the same form, which has "version"
 * instead of fields that they do not need, and the functions of the steps.
 */
#ifndef DP_PATTERNS_SCHEMA_VERSIONING_SCHEMA_VERSIONING_H
#define DP_PATTERNS_SCHEMA_VERSIONING_SCHEMA_VERSIONING_H

#include "nodes/execnodes.h"

#include "bson/path.h"
#include "kit/declaration.h"
#include "kit/sql/function.h"
#include "mql/schema.h"
#include "mql/update.h"

#define DP_SCHEMA_VERSIONING "schema_versioning"

/* A value that is not a version */
#define DP_VERSION_NONE 0

/* One direction of a step: an update document, or a function */
typedef struct DpVersionMove
{
	DpUpdate *update;
	bool leaves_field; /* the update does not reach the field with the version */
	DpUserFunction *function;
	ExprState *body;      /* the function's body, if it is an expression */
	ExprContext *context; /* with the document as its parameter */
	char *body_path;      /* search_path for that; NULL: any */
} DpVersionMove;

/* From versions[i] to versions[i + 1] */
typedef struct DpVersionStep
{
	DpVersionMove up;
	DpVersionMove down; /* neither update nor function: no step down */
} DpVersionStep;

typedef struct DpVersions
{
	char *field_text;
	DpPath *field;
	uint8 type; /* of the field */
	bool first; /* version 1 has the field too */
	int n;
	int32 *versions;      /* in order */
	DpVersionStep *steps; /* n - 1 */
	DpValue *written;     /* versions as values of that type */
} DpVersions;

/*
 * Reads the chain of a version. It is in the context, which spec must outlive. functions are those
 * of the steps, in order; as must be allowed to call them; brief: for one statement only, so that
 * bodies of functions may be used. Raises INVALID_PARAMETER_VALUE for an invalid chain,
 * INVALID_OBJECT_DEFINITION for a function that cannot be a step, INSUFFICIENT_PRIVILEGE, and
 * errors in updates.
 */
extern DpVersions *dp_versions_make(const DpValue *spec, int32 version, const Oid *functions,
									int nfunctions, Oid as, bool brief, MemoryContext context);

/*
 * Returns the version of a stored document, DP_VERSION_NONE if it is not valid; sets *absent,
 * unless NULL, if it has no such field.
 */
extern int32 dp_versions_of(DpVersions *v, Datum doc, bool *absent);

/* The position of a version in the chain, -1 if it is not in it. */
extern int dp_versions_find(const DpVersions *v, int32 version);

/*
 * Converts a document, detoasted and of versions[from], to versions[to]; returns itself if these
 * are the same, else a new one in the current context. absent: the field is known to be missing.
 * Raises errors of steps, and FEATURE_NOT_SUPPORTED without a step down.
 */
extern struct varlena *
dp_versions_move(DpVersions *v, struct varlena *doc, int from, int to, bool absent);

/* The document with that version written into it, unless it says so already. */
extern struct varlena *dp_versions_mark(DpVersions *v, struct varlena *doc, int at);

/* Raises CHECK_VIOLATION if a document has something in the way of the field with the version. */
extern void dp_versions_check_path(const DpVersions *v, struct varlena *doc);

/* Raises CHECK_VIOLATION: the document's version is not known, or none. */
extern void
dp_versions_unknown(DpVersions *v, Datum doc, const char *of_row) pg_attribute_noreturn();

/* A declaration's state */
typedef struct DpSchemaVersioning
{
	DpDecl *decl;
	DpVersions *versions;
	int32 current;
	int at;             /* its position */
	bool upgrade;       /* type of the field */
	DpSchema **schemas; /* of versions, NULL where there is none */
} DpSchemaVersioning;

extern DpSchemaVersioning *dp_schema_versioning(DpDecl *decl);

/* Returns its chain, read again for one statement, in the current context. */
extern DpVersions *dp_schema_versioning_brief(const DpSchemaVersioning *s);

/*
 * Raises CHECK_VIOLATION unless the document satisfies the schema of versions[at], if there is one.
 */
extern void dp_schema_versioning_check(const DpSchemaVersioning *s, struct varlena *doc, int at);

/* Whether the trigger of the declaration is called for what a migration writes. */
extern bool dp_schema_versioning_migrates(const DpDecl *decl);

/*
 * The functions that were generated for a table go with it: records that they
 * depend on it, as pg_dump does not.  Called when a trigger was created.
 */
extern void dp_schema_versioning_depend(Oid relid);

/* view.c: the views of versions. */
extern const struct DpViewMethods dp_schema_versioning_view;

#endif /* DP_PATTERNS_SCHEMA_VERSIONING_SCHEMA_VERSIONING_H */
