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
 *		{t.key}                        the same list of a table that is called t
 *		{side key} {side key = $key}   the columns of a side table that hold the key
 *		{base.key = side.key}          both, compared
 *		{$key} {$new key}              parameters: a key, a second key
 *		{$key+1} {$key+1 int8}         the first parameter after keys; its type, given once
 *		{$1 bson_value[]}              the same without keys
 *		{own} {own ->}                 "schema". of the extension, and an operator in it
 *		{as owner}                     nothing: gives an equal statement a second plan
 *		{}                             itself
 *		{text field} {path field}      an option: a literal, (document column -> literal)
 *
 * These take what they name from the arguments, in order:
 *
 *		{relation}                     an Oid
 *		{name} {text} {sql}            const char *: an identifier, a literal, SQL as it is
 *		{path}                         two const char *, a column and a path: (column -> 'path')
 *
 * All others are words of the pattern (DpPattern).
 */
#ifndef DP_KIT_SQL_TEMPLATE_H
#define DP_KIT_SQL_TEMPLATE_H

#include "kit/declaration.h"

/*
 * Returns the plan of a statement, made once and cached in the declaration, inside SPI_connect().
 * The address of the template, which must be static, and the values of the arguments identify it.
 */
extern SPIPlanPtr dp_statement(DpDecl *decl, const char *template, ...);

#endif /* DP_KIT_SQL_TEMPLATE_H */
