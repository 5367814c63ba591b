/*
 * template.c
 *		Statements of patterns from templates.
 */
#include "postgres.h"

#include "utils/builtins.h"

#include "bson/catalog.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"

#define MAX_TYPES 8

static void
word_write(StringInfo sql, DpDecl *decl, int keys, const char *word, va_list *arguments);
static void base_key_write(StringInfo sql, DpDecl *decl, bool match);

SPIPlanPtr
dp_statement(DpDecl *decl, const char *template, int keys, const Oid *types, ...)
{
	SPIPlanPtr plan = dp_plan(decl, template);
	Oid all[2 * INDEX_MAX_KEYS + MAX_TYPES];
	int n = keys * decl->nkeys;
	StringInfoData sql;
	va_list arguments;
	const char *at = template;

	if (plan != NULL)
		return plan;
	initStringInfo(&sql);
	va_start(arguments, types);
	while (*at != '\0')
	{
		int plain = strcspn(at, "{");
		int word;

		appendBinaryStringInfo(&sql, at, plain);
		at += plain;
		if (*at == '\0')
			break;
		word = strcspn(at, "}");
		word_write(&sql, decl, keys, pnstrdup(at + 1, word - 1), &arguments);
		at += at[word] == '}' ? word + 1 : word;
	}
	va_end(arguments);

	for (int i = 0; i < keys; i++)
		dp_sql_key_types(decl, all + i * decl->nkeys);
	while (types != NULL && OidIsValid(*types))
	{
		Assert(n < lengthof(all));
		all[n++] = *types++;
	}
	return dp_plan_make(decl, template, sql.data, n, all);
}

/* What a word stands for. */
static void
word_write(StringInfo sql, DpDecl *decl, int keys, const char *word, va_list *arguments)
{
	if (strcmp(word, "table") == 0)
		dp_sql_table(sql, decl->target);
	else if (strcmp(word, "doc") == 0)
		appendStringInfoString(sql, quote_identifier(decl->doc_column));
	else if (strcmp(word, "key") == 0)
		dp_sql_key_list(sql, decl);
	else if (strcmp(word, "key = $key") == 0)
		dp_sql_key_match(sql, decl, 1);
	else if (strcmp(word, "base.key") == 0)
		base_key_write(sql, decl, false);
	else if (strcmp(word, "base.key = side.key") == 0)
		base_key_write(sql, decl, true);
	else if (strcmp(word, "side key") == 0)
		dp_sql_side_key_list(sql, decl);
	else if (strcmp(word, "side key = $key") == 0)
		dp_sql_side_key_match(sql, decl, 1);
	else if (strcmp(word, "$key") == 0)
		dp_sql_parameters(sql, 1, decl->nkeys);
	else if (strcmp(word, "$new key") == 0)
		dp_sql_parameters(sql, decl->nkeys + 1, decl->nkeys);
	else if (strncmp(word, "$key+", 5) == 0)
		appendStringInfo(sql, "$%d", keys * decl->nkeys + atoi(word + 5));
	else if (strcmp(word, "own") == 0)
		dp_sql_own_schema(sql);
	else if (strncmp(word, "own ", 4) == 0)
		dp_sql_own_operator(sql, word + 4);
	else if (strcmp(word, "relation") == 0)
		dp_sql_table(sql, va_arg(*arguments, Oid));
	else if (strcmp(word, "name") == 0)
		appendStringInfoString(sql, quote_identifier(va_arg(*arguments, const char *)));
	else if (strcmp(word, "text") == 0)
		appendStringInfoString(sql, quote_literal_cstr(va_arg(*arguments, const char *)));
	else if (strcmp(word, "path") == 0)
	{
		const char *column = va_arg(*arguments, const char *);

		dp_sql_doc_path(sql, column, va_arg(*arguments, const char *));
	}
	else
		elog(ERROR, "a template of a statement has no word \"%s\"", word);
}

/* The key columns of a table called base: a list, or compared with those of a side table. */
static void
base_key_write(StringInfo sql, DpDecl *decl, bool match)
{
	for (int i = 0; i < decl->nkeys; i++)
	{
		if (i > 0)
			appendStringInfoString(sql, match ? " AND " : ", ");
		appendStringInfo(sql, "base.%s", quote_identifier(decl->keys[i].name));
		if (match)
		{
			dp_sql_operator(sql, decl->keys[i].eqop);
			appendStringInfoString(sql, "side.");
			dp_sql_side_key_name(sql, decl, i);
		}
	}
}
