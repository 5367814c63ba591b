/*
 * schema.h
 *		Schemas: MongoDB's dialect of JSON Schema, compiled and run over documents in their
 *		stored form. docs/schema.md has the language.
 */
#ifndef DP_MQL_SCHEMA_H
#define DP_MQL_SCHEMA_H

#include "bson/reader.h"
#include "mql/error.h"

typedef struct DpSchema DpSchema;

/*
 * Compiles a schema, a DOCUMENT, into the current memory context.  The result
 * points into the bytes of spec, which must live as long.  Raises
 * FEATURE_NOT_SUPPORTED for an unknown keyword and INVALID_PARAMETER_VALUE for
 * a bad argument, with the keyword's path in errdetail.
 */
extern DpSchema *dp_schema_compile(const DpValue *spec, const DpLocation *location);

/* For dp_spec_cached(); arg is not used. */
extern void *dp_schema_compile_spec(const DpValue *spec, void *arg);

/* True if a value, completely in memory, satisfies the schema. */
extern bool dp_schema_match(DpSchema *schema, const DpValue *value);

/*
 * Receives the violations of a value.  path is the field, in path syntax, or empty for the document
 * itself; rule is the keyword; the other two are texts for users.  All are valid during the call
 * only.
 */
typedef void (*DpSchemaReport)(const char *path, const char *rule, const char *expected,
							   const char *found, void *arg);

/* Calls report for each rule that is broken; returns their number. */
extern int
dp_schema_errors(DpSchema *schema, const DpValue *value, DpSchemaReport report, void *arg);

#endif /* DP_MQL_SCHEMA_H */
