/*
 * template.c
 *		Statements of patterns from templates.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "bson/catalog.h"
#include "kit/registry.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"

#define MAX_ARGUMENTS 10

typedef struct DpArgument
{
	const char *text; /* NULL: it is an Oid */
	Oid oid;
} DpArgument;

/* A template that is being read */
typedef struct Reading
{
	DpDecl *decl;
	StringInfo sql;
	int keys; /* among the parameters */
	int ntypes;
	Oid types[2 * INDEX_MAX_KEYS + 10];
	va_list *given;
	int narguments; /* that were taken */
	DpArgument arguments[MAX_ARGUMENTS];
} Reading;

/* How columns of a key are written */
typedef enum Compared
{
	NOT_COMPARED,
	WITH_PARAMETERS,
	WITH_SIDE
} Compared;

static SPIPlanPtr statement_make(DpDecl *decl, DpPlan *p, const char *template, va_list *given);
static bool arguments_match(const DpPlan *p, va_list *given);
static void word_write(Reading *r, const char *word);
static Oid next_oid(Reading *r);
static const char *next_text(Reading *r);
static void parameter_write(Reading *r, const char *word);
static void key_write(StringInfo sql, DpDecl *decl, const char *table, int len, Compared compared);

SPIPlanPtr
dp_statement(DpDecl *decl, const char *template, ...)
{
	SPIPlanPtr plan = NULL;
	va_list given;
	DpPlan *p;

	for (p = decl->plans; p != NULL; p = p->next)
	{
		bool found;

		if (p->id != template)
			continue;
		va_start(given, template);
		found = arguments_match(p, &given);
		va_end(given);
		if (found)
		{
			plan = dp_plan_valid(p);
			break;
		}
	}
	if (plan == NULL)
	{
		va_start(given, template);
		plan = statement_make(decl, p, template, &given);
		va_end(given);
	}
	return plan;
}

/* Makes a plan, or makes it again. */
static SPIPlanPtr
statement_make(DpDecl *decl, DpPlan *p, const char *template, va_list *given)
{
	Reading r = { .decl = decl, .given = given };
	StringInfoData sql;
	const char *at = template;

	initStringInfo(&sql);
	r.sql = &sql;
	r.keys = strstr(template, "$new key}") != NULL ? 2 : strstr(template, "$key}") != NULL ? 1 : 0;
	for (int i = 0; i < r.keys; i++)
		dp_sql_key_types(decl, r.types + i * decl->nkeys);
	r.ntypes = r.keys * decl->nkeys;
	while (*at != '\0')
	{
		int plain = strcspn(at, "{");
		int word;

		appendBinaryStringInfo(&sql, at, plain);
		at += plain;
		if (*at == '\0')
			break;
		word = strcspn(at, "}");
		word_write(&r, pnstrdup(at + 1, word - 1));
		at += at[word] == '}' ? word + 1 : word;
	}

	if (p == NULL)
	{
		/* an error must leave no plan without its arguments */
		DpArgument *arguments = MemoryContextAlloc(decl->context, sizeof(r.arguments));

		memcpy(arguments, r.arguments, sizeof(r.arguments));
		for (int i = 0; i < r.narguments; i++)
		{
			if (arguments[i].text != NULL)
				arguments[i].text = MemoryContextStrdup(decl->context, arguments[i].text);
		}
		p = dp_plan_add(decl, template);
		p->arguments = arguments;
		p->narguments = r.narguments;
	}
	return dp_plan_prepare(decl, p, sql.data, r.ntypes, r.types, 0);
}

/* Whether a plan was made with these arguments. */
static bool
arguments_match(const DpPlan *p, va_list *given)
{
	for (int i = 0; i < p->narguments; i++)
	{
		const DpArgument *kept = &p->arguments[i];

		if (kept->text != NULL ? strcmp(kept->text, va_arg(*given, const char *)) != 0
							   : kept->oid != va_arg(*given, Oid))
			return false;
	}
	return true;
}

/* Writes the SQL of a word. */
static void
word_write(Reading *r, const char *word)
{
	StringInfo sql = r->sql;
	DpDecl *decl = r->decl;
	int len = strlen(word);

	if (len == 0)
		appendStringInfoString(sql, "{}");
	else if (strcmp(word, "table") == 0)
		dp_sql_table(sql, decl->target);
	else if (strcmp(word, "doc") == 0)
		appendStringInfoString(sql, quote_identifier(decl->doc_column));
	else if (strcmp(word, "key") == 0)
		dp_sql_key_list(sql, decl);
	else if (strcmp(word, "key = $key") == 0)
		dp_sql_key_match(sql, decl);
	else if (strcmp(word, "base.key = side.key") == 0)
		key_write(sql, decl, "base.", 5, WITH_SIDE);
	else if (strcmp(word, "side key") == 0)
		key_write(sql, decl, NULL, 0, NOT_COMPARED);
	else if (strcmp(word, "side key = $key") == 0)
		key_write(sql, decl, NULL, 0, WITH_PARAMETERS);
	else if (len > 4 && strcmp(word + len - 4, ".key") == 0)
		key_write(sql, decl, word, len - 3, NOT_COMPARED);
	else if (strcmp(word, "$key") == 0)
		dp_sql_parameters(sql, 1, decl->nkeys);
	else if (strcmp(word, "$new key") == 0)
		dp_sql_parameters(sql, decl->nkeys + 1, decl->nkeys);
	else if (word[0] == '$')
		parameter_write(r, word);
	else if (strcmp(word, "as owner") == 0)
		return;
	else if (strcmp(word, "own") == 0)
		dp_sql_own_schema(sql);
	else if (strncmp(word, "own ", 4) == 0)
		dp_sql_own_operator(sql, word + 4);
	else if (strncmp(word, "text ", 5) == 0)
		appendStringInfoString(sql, quote_literal_cstr(dp_decl_text(decl, word + 5)));
	else if (strncmp(word, "path ", 5) == 0)
		dp_sql_doc_path(sql, decl->doc_column, dp_decl_text(decl, word + 5));
	else if (strcmp(word, "relation") == 0)
		dp_sql_table(sql, next_oid(r));
	else if (strcmp(word, "name") == 0)
		appendStringInfoString(sql, quote_identifier(next_text(r)));
	else if (strcmp(word, "text") == 0)
		appendStringInfoString(sql, quote_literal_cstr(next_text(r)));
	else if (strcmp(word, "sql") == 0)
		appendStringInfoString(sql, next_text(r));
	else if (strcmp(word, "path") == 0)
	{
		const char *column = next_text(r);

		dp_sql_doc_path(sql, column, next_text(r));
	}
	else if (decl->methods->word == NULL || !decl->methods->word(decl, word, sql))
		elog(ERROR, "a template of a statement has no word \"%s\"", word);
}

static Oid
next_oid(Reading *r)
{
	Oid oid = va_arg(*r->given, Oid);

	Assert(r->narguments < MAX_ARGUMENTS);
	r->arguments[r->narguments++].oid = oid;
	return oid;
}

static const char *
next_text(Reading *r)
{
	const char *text = va_arg(*r->given, const char *);

	Assert(r->narguments < MAX_ARGUMENTS);
	r->arguments[r->narguments++].text = text;
	return text;
}

/* "$1" or "$key+1", with its type or without. */
static void
parameter_write(Reading *r, const char *word)
{
	bool after_keys = strncmp(word, "$key+", 5) == 0;
	char *type;
	int number = strtol(word + (after_keys ? 5 : 1), &type, 10);

	if (after_keys)
		number += r->keys * r->decl->nkeys;
	appendStringInfo(r->sql, "$%d", number);
	if (*type == ' ')
	{
		Assert(number <= lengthof(r->types));
		r->types[number - 1] = dp_sql_type(type + 1);
		r->ntypes = Max(r->ntypes, number);
	}
}

/*
 * The key's columns of a table that is called so ("base."), or of a side table:
 * a list, or compared with parameters or with those of a table called side.
 */
static void
key_write(StringInfo sql, DpDecl *decl, const char *table, int len, Compared compared)
{
	for (int i = 0; i < decl->nkeys; i++)
	{
		if (i > 0)
			appendStringInfoString(sql, compared == NOT_COMPARED ? ", " : " AND ");
		if (table == NULL)
			dp_sql_side_key_name(sql, decl, i);
		else
			appendStringInfo(sql, "%.*s%s", len, table, quote_identifier(decl->keys[i].name));
		if (compared != NOT_COMPARED)
			dp_sql_operator(sql, decl->keys[i].eqop);
		if (compared == WITH_PARAMETERS)
			appendStringInfo(sql, "$%d", i + 1);
		if (compared == WITH_SIDE)
		{
			appendStringInfoString(sql, "side.");
			dp_sql_side_key_name(sql, decl, i);
		}
	}
}
