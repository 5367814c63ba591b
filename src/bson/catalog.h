/*
 * catalog.h
 *		OIDs of the extension's own types, looked up once per backend.
 */
#ifndef DP_BSON_CATALOG_H
#define DP_BSON_CATALOG_H

#include "lib/stringinfo.h"
#include "utils/inval.h"

#include "bson/layout.h"

typedef struct DpTypes
{
	Oid schema;   /* where the extension lives: what users call */
	Oid internal; /* docpatterns: what they do not call */
	Oid bson;
	Oid bson_value;
	Oid objectid;
	Oid treepath;   /* invalid while the install script has not come to it */
	Oid bson_array; /* bson[] and so on */
	Oid bson_value_array;
	Oid objectid_array;
} DpTypes;

/*
 * The types of the installed extension.  The result is valid until the next catalog change: do not
 * keep it.
 */
extern const DpTypes *dp_types(void);

/*
 * Calls a function whenever a relation changes, or all (InvalidOid).  PostgreSQL has ten places for
 * such functions of all extensions together; this takes one.
 */
extern void dp_on_relation_change(RelcacheCallbackFunction function);

/* Whether it is the function of that name in the schema docpatterns. */
extern bool dp_is_internal(Oid function, const char *name);

/* Appends OPERATOR(schema.op) of an operator of the extension. */
extern void dp_sql_own_operator(StringInfo sql, const char *name);

/* Appends "schema". of the extension. */
extern void dp_sql_own_schema(StringInfo sql);

/* A value or a document as a literal, palloc'd: '5'::"schema".bson_value */
extern char *dp_sql_value(const DpValue *value);
extern char *dp_sql_document(const DpValue *document);

/* A relation as a literal, palloc'd: '"schema".name'::regclass */
extern char *dp_sql_regclass(Oid relid);

#endif /* DP_BSON_CATALOG_H */
