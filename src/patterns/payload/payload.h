/*
 * payload.h
 *		The payload pattern: a bulky field is compressed in its document, and
 *		fields for queries are extracted from it on every write.
 *
 * pack.c has the format, extract.c extracts, payload.c has the triggers and the
 * functions of the views <table>_whole.
 */
#ifndef DP_PATTERNS_PAYLOAD_PAYLOAD_H
#define DP_PATTERNS_PAYLOAD_PAYLOAD_H

#include "bson/builder.h"
#include "bson/path.h"
#include "kit/registry.h"
#include "kit/rows/lookup.h"
#include "kit/sql/function.h"
#include "mql/regex.h"

/* Subtype of the Binary that a packed payload is; its layout is in docs/formats.md */
#define DP_PAYLOAD_SUBTYPE 0x81
#define DP_PAYLOAD_VERSION 1
#define DP_PAYLOAD_HEADER 7 /* version, method, type, number of bytes */
#define DP_PAYLOAD_PLAIN 0
#define DP_PAYLOAD_PGLZ 1

typedef enum DpExtractKind
{
	DP_EXTRACT_XPATH,
	DP_EXTRACT_JSONPATH,
	DP_EXTRACT_REGEX,
	DP_EXTRACT_FUNCTION
} DpExtractKind;

/* A processing field */
typedef struct DpExtract
{
	char *name; /* the path as it is written */
	DpPath *path;
	DpExtractKind kind;
	char *expression;
	Oid type;         /* InvalidOid: as it is found */
	bool is_list;     /* all that is found, as an array; else the first */
	Datum namespaces; /* XPATH: text[] */
	Datum jsonpath;
	DpRegex *regex;
	DpUserFunction function;
	Oid argtype;
	Oid result;
	/* input function of the type */
	FmgrInfo input;
	Oid ioparam;
} DpExtract;

typedef struct DpPayload
{
	DpDecl *decl;
	char *field_text;
	DpPath *field;
	int nextracts;
	DpExtract *extracts;
	bool needs_xml; /* there are XPATHs */
	bool needs_json;
	bool needs_zone; /* some types read dates */
	DpLookup *lookup;
} DpPayload;

/* pack.c */

/* Whether a value is a packed payload, by its first bytes. */
extern bool dp_payload_is_packed(const DpValue *value);

/* The packed form of a value: a new bson_value. */
extern struct varlena *dp_payload_pack(const DpValue *value);

/*
 * Returns the value of a packed payload, a new bson_value. Raises the given SQLSTATE for invalid
 * bytes: INVALID_BINARY_REPRESENTATION for written ones, DATA_CORRUPTED for stored ones.
 */
extern struct varlena *dp_payload_unpack(const DpValue *value, int sqlstate);

/* extract.c */

/*
 * Compiles the options of a declaration in its context. Raises INVALID_PARAMETER_VALUE and errors
 * in expressions.
 */
extern DpPayload *dp_payload_compile(DpDecl *decl);

/*
 * Tries XPaths: raises INVALID_PARAMETER_VALUE for one that is wrong, and
 * FEATURE_NOT_SUPPORTED if the server cannot read XML.
 */
extern void dp_payload_try(DpPayload *p);

/*
 * The document with the fields that are extracted from the payload, NULL: there is none.
 * Errors that the payload causes name the key.
 */
extern struct varlena *
dp_payload_extract(DpPayload *p, struct varlena *doc, const DpValue *payload, const DpKey *key);

/* The document with a value at an extract's path. */
extern struct varlena *
dp_payload_put(const DpPayload *p, struct varlena *doc, const DpPath *path, const DpValue *value);

#endif /* DP_PATTERNS_PAYLOAD_PAYLOAD_H */
