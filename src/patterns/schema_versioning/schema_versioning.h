/*
 * schema_versioning.h
 *		The schema versioning pattern: documents of several shapes side by side.
 *
 * A document says in a field which version of its schema it has; without the
 * field (or with null) it has version 1.  Steps lead from one version to the
 * next one, up and down.  They make a chain: a version has at most one step
 * up and one down.  What chain a version belongs to, and how documents are
 * brought along it, is chain.c; the triggers of the table
 * are in schema_versioning.c, the views of versions in view.c
 * and the calls, migration among them, in calls.c.
 *
 * What is declared is a document, in the main trigger's argument:
 *
 *		name, field, doc_column
 *		current		the version that documents are brought to
 *		write		"upgrade" or "accept": what becomes of older ones that are written
 *		type		"int", "long", "double", "decimal" or "string": how the field is written
 *		first		whether version 1 is written too, or has no field
 *		stem		what the names of views and functions begin with
 *		steps		[{since, until, up_update | up_function, down_update | down_function}],
 *					in order; a function is named for people only
 *		schemas		[{version, schema}]
 *
 * The functions that steps name are referred to by the trigger's condition, so
 * that dumps and renames carry them: _schema_versioning_uses(NULL, ARRAY[..])
 * has them in the order of the steps, up before down.  One more trigger, for
 * TRUNCATE, refers in the same way to the functions that were generated, one
 * for each version.  These call _schema_versioning_as() with a document of the
 * same kind that has "version" in place of what they do not need, and the
 * functions of the steps.
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

/* A version that a field does not tell */
#define DP_VERSION_NONE 0

/* One direction of a step: an update document, or a function */
typedef struct DpVersionMove
{
	DpUpdate *update;
	bool leaves_field; /* the update does not reach the field with the version */
	DpUserFunction *function;
	ExprState *body;      /* what the function consists of, if it is an expression */
	ExprContext *context; /* with the document as its parameter */
	char *body_path;      /* search_path for that; NULL: any */
} DpVersionMove;

/* From versions[i] to versions[i + 1] */
typedef struct DpVersionStep
{
	DpVersionMove up;
	DpVersionMove down; /* neither update nor function: there is no way back */
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
 * The chain that a version belongs to.  Lives in the context, and so must the
 * bytes of spec.  functions are those of the steps, in order; as is who must be
 * allowed to call them; brief: it is used by one statement only, so that
 * functions can be taken for what they consist of.  Raises INVALID_PARAMETER_VALUE for what is no
 * chain, INVALID_OBJECT_DEFINITION for a function that cannot be a step, INSUFFICIENT_PRIVILEGE,
 * and what is wrong with an update.
 */
extern DpVersions *dp_versions_make(const DpValue *spec, int32 version, const Oid *functions,
									int nfunctions, Oid as, bool brief, MemoryContext context);

/*
 * The version of a document as it is stored, DP_VERSION_NONE for what is none;
 * *absent, which may be NULL, becomes whether it has no such field.
 */
extern int32 dp_versions_of(DpVersions *v, Datum doc, bool *absent);

/* The position of a version in the chain, -1 if it is not in it. */
extern int dp_versions_find(const DpVersions *v, int32 version);

/*
 * A document, detoasted and of versions[from], brought to versions[to]; itself if these are the
 * same, else a new one in the current context.  absent: it is known not to have
 * the field.  Raises what steps raise, and FEATURE_NOT_SUPPORTED where there is
 * no way down.
 */
extern struct varlena *
dp_versions_move(DpVersions *v, struct varlena *doc, int from, int to, bool absent);

/* The document with that version written into it, unless it says so already. */
extern struct varlena *dp_versions_mark(DpVersions *v, struct varlena *doc, int at);

/* Raises CHECK_VIOLATION if a document has something in the way of the field with the version. */
extern void dp_versions_check_place(const DpVersions *v, struct varlena *doc);

/* Raises CHECK_VIOLATION: the document's version is not known, or none. */
extern void
dp_versions_unknown(DpVersions *v, Datum doc, const char *place) pg_attribute_noreturn();

/* A declaration's state */
typedef struct DpSchemaVersioning
{
	DpDecl *decl;
	DpVersions *versions;
	int32 current;
	int at;             /* its position */
	bool upgrade;       /* what is written */
	DpSchema **schemas; /* of versions, NULL where there is none */
} DpSchemaVersioning;

extern DpSchemaVersioning *dp_schema_versioning(DpDecl *decl);

/* Its chain, made anew for one statement, in the current context. */
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
