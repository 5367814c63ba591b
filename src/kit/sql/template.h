/*
 * template.h
 *		Statements of patterns from templates.
 *
 * A template is SQL in which names are words in braces.  As the pieces of
 * text.h do, they make it independent of the search_path and of what names
 * contain.
 *
 *		{table} {doc}                  the declaration's table and its document column
 *		{key} {key = $key}             the columns of the primary key, as a list and compared
 *		{base.key}                     the same of a table that is called base
 *		{side key} {side key = $key}   the columns of a side table that hold the key
 *		{base.key = side.key}          both, compared
 *		{$key} {$new key} {$key+1}     parameters: a key, a second key, the first one after keys
 *		{own} {own ->}                 "schema". of the extension, and an operator in it
 *
 * These take what they name from the arguments, in order:
 *
 *		{relation}                     an Oid
 *		{name} {text}                  const char *: an identifier, a literal
 *		{path}                         two const char *, a column and a path: (column -> 'path')
 */
#ifndef DP_KIT_SQL_TEMPLATE_H
#define DP_KIT_SQL_TEMPLATE_H

#include "kit/declaration.h"

/* The types of the parameters that follow the keys */
#define DP_TYPES(...) ((const Oid[]){ __VA_ARGS__, InvalidOid })

/*
 * Returns the plan of a statement, made once and kept with the declaration.  The address of the
 * template identifies it: for one declaration, the arguments of a template are always the same.
 * keys is the number of keys among the parameters (0 to 2), types may be NULL.
 */
extern SPIPlanPtr dp_statement(DpDecl *decl, const char *template, int keys, const Oid *types, ...);

#endif /* DP_KIT_SQL_TEMPLATE_H */
