/*
 * text.h
 *		Pieces of SQL text for the statements of patterns.
 *
 * Names are quoted and schema-qualified, operators are written as
 * OPERATOR(schema.op), and values are always parameters, so that neither a
 * search_path nor a hostile name changes what a statement means.
 */
#ifndef DP_KIT_SQL_TEXT_H
#define DP_KIT_SQL_TEXT_H

#include "access/stratnum.h"
#include "lib/stringinfo.h"

#include "kit/declaration.h"

/* "schema"."name" */
extern void dp_sql_table(StringInfo sql, Oid relid);

/* OPERATOR(schema.op) of an operator's OID; bson/catalog.h has that of the extension's own */
extern void dp_sql_operator(StringInfo sql, Oid operator);
extern void dp_sql_type_operator(StringInfo sql, Oid type, StrategyNumber strategy);

/* k1, k2 of the table's primary key */
extern void dp_sql_key_list(StringInfo sql, DpDecl *decl);

/* k1 = $1 AND k2 = ... of the table's primary key */
extern void dp_sql_key_match(StringInfo sql, DpDecl *decl);

/* A key column of a side table: key, or key1, key2, ... */
extern void dp_sql_side_key_name(StringInfo sql, DpDecl *decl, int i);

/* $first, $first+1, ... */
extern void dp_sql_parameters(StringInfo sql, int first, int n);

/* (doc -> 'path') of a column */
extern void dp_sql_doc_path(StringInfo sql, const char *column, const char *path);

/* The types of a key's columns, into argtypes */
extern void dp_sql_key_types(DpDecl *decl, Oid *argtypes);

/* A type of PostgreSQL or of the extension, or an array of it: "int8", "bson[]" */
extern Oid dp_sql_type(const char *name);

#endif /* DP_KIT_SQL_TEXT_H */
