/*
 * single_table.h
 *		Single tables: items of many entities under keys that are computed from
 *		templates.
 *
 * Words:
 *
 *		item		a row; its document has its keys as fields, PK and SK
 *		entity		a kind of item, with a template for each key
 *		template	text with fields in braces: ORDER#{order_id}, {n:08} with leading
 *					zeros; separators of the template are escaped in values, so that
 *					a key can be read back
 *		index		a secondary one: GSI1PK and GSI1SK; items without are not in it
 *
 * The columns pk, sk, entity, gsi<n>_pk, gsi<n>_sk and expires_at follow from
 * the document.
 *
 * single_table.c computes items, key.c has the templates,
 * calls.c and query.c the functions.
 */
#ifndef DP_PATTERNS_SINGLE_TABLE_SINGLE_TABLE_H
#define DP_PATTERNS_SINGLE_TABLE_SINGLE_TABLE_H

#include "datatype/timestamp.h"
#include "lib/stringinfo.h"

#include "bson/path.h"
#include "kit/declaration.h"

#define DP_SINGLE_TABLE_INDEXES 5

/* ---------------------------------------------------------------- templates */

typedef struct DpTemplatePart
{
	char *literal; /* before the field; may be empty */
	uint32 len;
	DpPath *path; /* NULL: the template ends with the literal */
	char *field;  /* as it was written */
	int pad;      /* digits; 0: none */
} DpTemplatePart;

typedef struct DpTemplate
{
	char *text;
	int nparts;
	DpTemplatePart *parts;
	bool escaped[256]; /* bytes that are escaped in values */
} DpTemplate;

typedef enum DpTemplateResult
{
	DP_TEMPLATE_OK,
	DP_TEMPLATE_MISSING, /* a field is absent or null */
	DP_TEMPLATE_EMPTY,   /* a field is the empty string */
	DP_TEMPLATE_UNFIT    /* a field's value cannot be a part of a key */
} DpTemplateResult;

/* Compiles a template in the current context.  Raises INVALID_PARAMETER_VALUE. */
extern DpTemplate *dp_template_parse(const char *text);

/* Appends the key of a document.  *field is set to the field that is to blame. */
extern DpTemplateResult
dp_template_format(const DpTemplate *t, const DpValue *doc, StringInfo out, const char **field);

/*
 * Returns whether the template matches a key. Unless values is NULL, an array of nparts, also sets
 * the values of the fields.
 */
extern bool dp_template_match(const DpTemplate *t, const char *key, uint32 len, DpValue *values);

/* ---------------------------------------------------------------- declarations */

typedef struct DpEntity
{
	char *name;
	DpTemplate *pk;
	DpTemplate *sk;
	DpTemplate *gsi_pk[DP_SINGLE_TABLE_INDEXES]; /* or NULL */
	DpTemplate *gsi_sk[DP_SINGLE_TABLE_INDEXES];
	int literals; /* bytes of the literals of PK and SK */
} DpEntity;

typedef struct DpSingleTable
{
	DpDecl *decl;
	DpPath *ttl; /* or NULL */
	int nindexes;
	int nentities;
	DpEntity *entities;
	AttrNumber pk;
	AttrNumber sk;
	AttrNumber entity;
	AttrNumber expires_at; /* 0: no ttl */
	AttrNumber gsi_pk[DP_SINGLE_TABLE_INDEXES];
	AttrNumber gsi_sk[DP_SINGLE_TABLE_INDEXES];

	/* statements */
	char plan_query[1 + DP_SINGLE_TABLE_INDEXES][256];
} DpSingleTable;

/* The single table that a relation is.  Raises WRONG_OBJECT_TYPE if it is none. */
extern DpSingleTable *dp_single_table_of(Oid relid);

extern DpEntity *dp_single_table_entity(DpSingleTable *s, const char *name, uint32 len);

/* The fields of index n (from 0). */
extern const char *dp_gsi_field(int n, bool sk);

/* ---------------------------------------------------------------- items */

typedef struct DpItem
{
	struct varlena *doc; /* with its keys; the given one if nothing differs */
	char *pk;
	char *sk;
	char *entity;                          /* or NULL */
	char *gsi_pk[DP_SINGLE_TABLE_INDEXES]; /* or NULL */
	char *gsi_sk[DP_SINGLE_TABLE_INDEXES];
	bool expires;
	TimestampTz expires_at;
} DpItem;

/* The reason why a document is not a valid item */
typedef struct DpItemProblem
{
	int sqlstate;
	char *message;
	char *detail;
} DpItemProblem;

/*
 * The item that a document is, all of it in the current context.  entity is
 * what the row or the caller says, or NULL.  Returns false if it is none.
 */
extern bool dp_item_compute(DpSingleTable *s, struct varlena *doc, const char *entity, DpItem *item,
							DpItemProblem *problem);

/* Raises the problem. */
extern void dp_item_refuse(DpSingleTable *s, const DpItemProblem *problem) pg_attribute_noreturn();

#endif /* DP_PATTERNS_SINGLE_TABLE_SINGLE_TABLE_H */
