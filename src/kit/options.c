/*
 * options.c
 *		Checks the options of a pattern against its table.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "bson/builder.h"
#include "bson/path.h"
#include "bson/reader.h"
#include "dp.h"
#include "kit/options.h"
#include "mql/expression_node.h"
#include "mql/filter.h"
#include "mql/schema.h"
#include "mql/sort_key.h"

const DpPatternOptions *dp_option_tables;

/* What a user gives to no pattern_alter(), but declarations of all patterns have */
static const DpOption common[] = { { "name", DP_OPTION_TEXT },
								   { "doc_column", DP_OPTION_TEXT },
								   { "source_doc_column", DP_OPTION_TEXT },
								   { "pair", DP_OPTION_TEXT },
								   { "second_pair", DP_OPTION_TEXT },
								   { "gone_pair", DP_OPTION_TEXT },
								   { NULL } };

static const char *const type_names[] = {
	[DP_OPTION_TEXT] = "string",     [DP_OPTION_WORD] = "string",   [DP_OPTION_PATH] = "string",
	[DP_OPTION_BOOL] = "bool",       [DP_OPTION_INT] = "int",       [DP_OPTION_NUMBER] = "double",
	[DP_OPTION_INTERVAL] = "string", [DP_OPTION_TEXTS] = "array",   [DP_OPTION_PATHS] = "array",
	[DP_OPTION_DOCUMENT] = "object", [DP_OPTION_FILTER] = "object", [DP_OPTION_ORDER] = "object",
	[DP_OPTION_SCHEMA] = "object",
};

static const DpOption *options_of(const char *pattern);
static const DpOption *find_option(const DpOption *options, const DpElement *given);
static struct varlena *
complete(const DpOption *options, struct varlena *declared, struct varlena *changes);
static bool has_option(struct varlena *options, const char *name);
static bool gives_one_of(const DpOption *options, struct varlena *given);
static void require_one_of(const DpOption *options, struct varlena *declared);
static const DpOption *
declared_option(const char *pattern, const DpOption *options, const DpElement *given);
static const DpOption *
alterable_option(const char *pattern, const DpOption *options, const DpElement *given);
static char *pattern_words(const char *pattern);
static void refuse_unknown(const char *pattern, const DpOption *options, const DpElement *given)
	pg_attribute_noreturn();
static void refuse_null(const DpOption *option) pg_attribute_noreturn();
static bool has_type(const DpOption *option, const DpValue *value);
static void check_value(const DpOption *option, const DpValue *value);
static void check_list(const DpOption *option, const DpValue *value);
static void check_range(const DpOption *option, int64 n, const char *unit);
static void check_word(const DpOption *option, const DpValue *value);
static void append_value(DpBuilder *b, const DpOption *option, const DpElement *given);

/*
 * _pattern_options(pattern text, given bson, declared bson) -> bson
 *
 * What a declaration with the options given has, or (declared) one with these
 * options after changes to those given.  Errors 22023 and 22004 for options that
 * the pattern's table does not allow.  NULL without a pattern or options.
 */
DP_FUNCTION(dp_pattern_options);
Datum
dp_pattern_options(PG_FUNCTION_ARGS)
{
	char *name;
	struct varlena *given;
	struct varlena *declared;
	struct varlena *result;
	const DpOption *options;
	const DpOption *option;
	DpBuilder b;
	DpIter iter;
	DpElement element;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	given = DP_GETARG_VARLENA(1);
	declared = PG_ARGISNULL(2) ? NULL : DP_GETARG_VARLENA(2);
	options = options_of(name);
	dp_builder_init(&b, DP_DOC_SIZE(given));
	dp_builder_begin_document(&b);
	if (declared != NULL)
	{
		dp_iter_init_varlena(&iter, declared);
		while (dp_iter_next(&iter, &element))
		{
			DpElement changed = element;

			option = find_option(options, &element);
			if (dp_document_find(DP_DOC_DATA(given), DP_DOC_SIZE(given), element.name,
								 element.namelen, &changed.value))
				append_value(&b, alterable_option(name, options, &element), &changed);
			else if (option == NULL || (option->flags & DP_ONE_OF) == 0 ||
					 !gives_one_of(options, given))
				dp_builder_append_value(&b, element.name, element.namelen, &element.value);
		}
	}
	dp_iter_init_varlena(&iter, given);
	while (dp_iter_next(&iter, &element))
	{
		option = declared == NULL ? declared_option(name, options, &element)
								  : alterable_option(name, options, &element);
		if (declared == NULL || !has_option(declared, option->name))
			append_value(&b, option, &element);
	}
	for (option = options; declared == NULL && option->name != NULL; option++)
	{
		if ((option->flags & DP_REQUIRED) != 0 && !has_option(given, option->name))
			refuse_null(option);
	}
	dp_builder_end(&b);
	result = complete(options, dp_builder_finish_bson(&b), declared != NULL ? given : NULL);
	require_one_of(options, result);
	PG_RETURN_POINTER(result);
}

/* The table of a pattern. */
static const DpOption *
options_of(const char *pattern)
{
	const DpPatternOptions *p;

	for (p = dp_option_tables; p->pattern != NULL; p++)
	{
		if (strcmp(p->pattern, pattern) == 0)
			return p->options;
	}
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("there is no pattern \"%s\"", pattern)));
}

/* The option of that name, or NULL. */
static const DpOption *
find_option(const DpOption *options, const DpElement *given)
{
	for (; options->name != NULL; options++)
	{
		if (strlen(options->name) == given->namelen &&
			memcmp(options->name, given->name, given->namelen) == 0)
			return options;
	}
	return NULL;
}

/*
 * A declaration without the options that belong to one which is absent, and
 * with the defaults of those that belong to one which is present.  Changes to
 * the former are not for nothing: INVALID_PARAMETER_VALUE.
 */
static struct varlena *
complete(const DpOption *options, struct varlena *declared, struct varlena *changes)
{
	const DpOption *option;
	DpBuilder b;
	DpIter iter;
	DpElement element;

	dp_builder_init(&b, DP_DOC_SIZE(declared));
	dp_builder_begin_document(&b);
	dp_iter_init_varlena(&iter, declared);
	while (dp_iter_next(&iter, &element))
	{
		option = find_option(options, &element);
		if (option == NULL || option->with == NULL || has_option(declared, option->with))
			dp_builder_append_value(&b, element.name, element.namelen, &element.value);
		else if (changes != NULL && has_option(changes, option->name))
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("%s needs %s", option->name, option->with)));
	}
	for (option = options; option->name != NULL; option++)
	{
		if (option->dflt != NULL && has_option(declared, option->with) &&
			!has_option(declared, option->name))
			dp_builder_append_string(&b, option->name, strlen(option->name), option->dflt,
									 strlen(option->dflt));
	}
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

/* Whether options have one that is not null. */
static bool
has_option(struct varlena *options, const char *name)
{
	DpValue value;

	return dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), name, strlen(name),
							&value) &&
		   value.type != DP_TYPE_NULL;
}

/* Whether one of the options that exclude each other is given. */
static bool
gives_one_of(const DpOption *options, struct varlena *given)
{
	for (; options->name != NULL; options++)
	{
		if ((options->flags & DP_ONE_OF) != 0 && has_option(given, options->name))
			return true;
	}
	return false;
}

/* Raises INVALID_PARAMETER_VALUE unless exactly one of them is there. */
static void
require_one_of(const DpOption *options, struct varlena *declared)
{
	StringInfoData names;
	int n = 0;

	initStringInfo(&names);
	for (; options->name != NULL; options++)
	{
		if ((options->flags & DP_ONE_OF) == 0)
			continue;
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", options->name);
		n += has_option(declared, options->name);
	}
	if (names.len > 0 && n != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("exactly one of these options must be given: %s", names.data)));
}

/* The option that an element of a declaration means. */
static const DpOption *
declared_option(const char *pattern, const DpOption *options, const DpElement *given)
{
	const DpOption *option = find_option(options, given);

	if (option == NULL)
		option = find_option(common, given);
	if (option == NULL)
		refuse_unknown(pattern, options, given);
	return option;
}

/* Likewise, if it can be changed. */
static const DpOption *
alterable_option(const char *pattern, const DpOption *options, const DpElement *given)
{
	const DpOption *option = declared_option(pattern, options, given);
	const DpOption *other;
	StringInfoData names;

	if ((option->flags & DP_ALTERABLE) != 0)
		return option;
	initStringInfo(&names);
	for (other = options; other->name != NULL; other++)
	{
		if ((other->flags & DP_ALTERABLE) != 0)
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", other->name);
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("option \"%s\" of the %s pattern cannot be changed", option->name,
					pattern_words(pattern)),
			 names.len > 0 ? errhint("Options that can be changed: %s.", names.data)
						   : errhint("End it with pattern_disable() and declare it again.")));
}

/* The name of a pattern for messages. */
static char *
pattern_words(const char *pattern)
{
	char *words = pstrdup(pattern);
	char *p;

	for (p = words; *p != '\0'; p++)
	{
		if (*p == '_')
			*p = ' ';
	}
	return words;
}

/* Raises INVALID_PARAMETER_VALUE for a name that is no option, with one that is like it. */
static void
refuse_unknown(const char *pattern, const DpOption *options, const DpElement *given)
{
	const char *nearest = NULL;
	int best = Min(3, given->namelen / 2);

	for (; options->name != NULL && given->namelen <= 255; options++)
	{
		int distance = varstr_levenshtein(given->name, given->namelen, options->name,
										  strlen(options->name), 1, 1, 1, true);

		if (distance < best || (distance == best && nearest == NULL))
		{
			nearest = options->name;
			best = distance;
		}
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the %s pattern has no option \"%s\"", pattern_words(pattern), given->name),
			 nearest != NULL ? errhint("Did you mean \"%s\"?", nearest) : 0));
}

/* Raises NULL_VALUE_NOT_ALLOWED. */
static void
refuse_null(const DpOption *option)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", option->name)));
}

/* Appends what a declaration has of an option that was given: nothing for a null. */
static void
append_value(DpBuilder *b, const DpOption *option, const DpElement *given)
{
	int64 n;

	if (given->value.type == DP_TYPE_NULL)
	{
		if ((option->flags & DP_REQUIRED) != 0)
			refuse_null(option);
		return;
	}
	check_value(option, &given->value);
	/* readers of an option of type int need not know another one */
	if (option->type == DP_OPTION_INT && option->max <= PG_INT32_MAX &&
		dp_value_to_int64(&given->value, &n))
		dp_builder_append_int32(b, given->name, given->namelen, (int32) n);
	else
		dp_builder_append_value(b, given->name, given->namelen, &given->value);
}

static bool
has_type(const DpOption *option, const DpValue *value)
{
	switch (option->type)
	{
		case DP_OPTION_TEXT:
		case DP_OPTION_WORD:
		case DP_OPTION_PATH:
		case DP_OPTION_INTERVAL:
			return value->type == DP_TYPE_STRING;
		case DP_OPTION_BOOL:
			return value->type == DP_TYPE_BOOL;
		case DP_OPTION_INT:
			return value->type == DP_TYPE_INT32 || value->type == DP_TYPE_INT64;
		case DP_OPTION_NUMBER:
			return dp_type_is_number(value->type);
		case DP_OPTION_TEXTS:
		case DP_OPTION_PATHS:
			return value->type == DP_TYPE_ARRAY;
		case DP_OPTION_DOCUMENT:
		case DP_OPTION_FILTER:
		case DP_OPTION_ORDER:
		case DP_OPTION_SCHEMA:
			return value->type == DP_TYPE_DOCUMENT;
		case DP_OPTION_ANY:
			return true;
	}
	return false;
}

/* Raises INVALID_PARAMETER_VALUE, or what is wrong with a path, a filter and the like. */
static void
check_value(const DpOption *option, const DpValue *value)
{
	int64 n;

	if (!has_type(option, value))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("%s must be of type %s, not %s", option->name,
							   type_names[option->type], dp_type_name(value->type))));
	switch (option->type)
	{
		case DP_OPTION_TEXT:
			check_range(option, DP_STRING_LEN(value), " bytes");
			break;
		case DP_OPTION_WORD:
			check_word(option, value);
			break;
		case DP_OPTION_PATH:
			pfree(dp_path_parse(DP_STRING_DATA(value), DP_STRING_LEN(value)));
			break;
		case DP_OPTION_INT:
			if (dp_value_to_int64(value, &n))
				check_range(option, n, "");
			break;
		case DP_OPTION_DOCUMENT:
			check_range(option, dp_document_count(value->data, value->len), " fields");
			break;
		case DP_OPTION_INTERVAL:
		{
			Interval *interval =
				DatumGetIntervalP(DirectFunctionCall3(interval_in,
													  CStringGetDatum(DP_STRING_DATA(value)),
													  ObjectIdGetDatum(InvalidOid),
													  Int32GetDatum(-1)));
			Interval zero = { 0 };

			if (DatumGetBool(DirectFunctionCall2(interval_lt, IntervalPGetDatum(interval),
												 IntervalPGetDatum(&zero))))
				ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
								errmsg("%s must not be negative", option->name)));
			break;
		}
		case DP_OPTION_TEXTS:
		case DP_OPTION_PATHS:
			check_list(option, value);
			break;
		case DP_OPTION_FILTER:
			(void) dp_filter_compile(value, DP_FILTER_IMMUTABLE, NULL);
			break;
		case DP_OPTION_ORDER:
			(void) dp_sort_spec_compile(value);
			break;
		case DP_OPTION_SCHEMA:
			(void) dp_schema_compile(value, NULL);
			break;
		default:
			break;
	}
}

/* The elements of an array of texts or paths. */
static void
check_list(const DpOption *option, const DpValue *value)
{
	DpIter iter;
	DpValue element;

	check_range(option, dp_document_count(value->data, value->len), " elements");
	dp_iter_init_value(&iter, value);
	while (dp_iter_next_value(&iter, &element))
	{
		if (element.type == DP_TYPE_NULL)
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("%s must not contain nulls", option->name)));
		if (element.type != DP_TYPE_STRING)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("%s must be an array of strings", option->name)));
		if (option->type == DP_OPTION_PATHS)
			pfree(dp_path_parse(DP_STRING_DATA(&element), DP_STRING_LEN(&element)));
	}
}

/* A number of something, or a number. */
static void
check_range(const DpOption *option, int64 n, const char *unit)
{
	const char *have = *unit != '\0' ? "have" : "be";

	if (option->max == 0 || (n >= option->min && n <= option->max))
		return;
	if (n < option->min && option->max >= PG_INT32_MAX)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("%s must %s at least " INT64_FORMAT "%s, not " INT64_FORMAT,
							   option->name, have, option->min, unit, n)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s must %s between " INT64_FORMAT " and " INT64_FORMAT "%s, not " INT64_FORMAT,
					option->name, have, option->min, option->max, unit, n)));
}

/* One of the option's words. */
static void
check_word(const DpOption *option, const DpValue *value)
{
	StringInfoData words;
	const char *const *word;

	initStringInfo(&words);
	for (word = option->values; *word != NULL; word++)
	{
		if (strlen(*word) == DP_STRING_LEN(value) &&
			memcmp(*word, DP_STRING_DATA(value), DP_STRING_LEN(value)) == 0)
			return;
		appendStringInfo(&words, "%s\"%s\"",
						 words.len == 0    ? ""
						 : word[1] != NULL ? ", "
										   : " or ",
						 *word);
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s must be %s, not \"%s\"", option->name, words.data, DP_STRING_DATA(value))));
}
