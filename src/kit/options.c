/*
 * options.c
 *		Checks and reads the options of a pattern by its table.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "bson/cast.h"
#include "bson/edit.h"
#include "bson/names.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "mql/expression_node.h"
#include "mql/filter.h"
#include "mql/schema.h"
#include "mql/sort_key.h"

/* Options of all patterns, set by the extension. */
static const DpOption common[] = { { "name", DP_OPTION_TEXT },
								   { "doc_column", DP_OPTION_TEXT },
								   { "source_doc_column", DP_OPTION_TEXT },
								   { "link_id", DP_OPTION_TEXT },
								   { "second_link_id", DP_OPTION_TEXT },
								   { "removed_link_id", DP_OPTION_TEXT },
								   { NULL } };

/* The stored types of options; integers may be int64, and numbers have any numeric type */
static const uint8 stored[] = {
	[DP_OPTION_TEXT] = DP_TYPE_STRING,     [DP_OPTION_WORD] = DP_TYPE_STRING,
	[DP_OPTION_PATH] = DP_TYPE_STRING,     [DP_OPTION_BOOL] = DP_TYPE_BOOL,
	[DP_OPTION_INT] = DP_TYPE_INT32,       [DP_OPTION_NUMBER] = DP_TYPE_DOUBLE,
	[DP_OPTION_INTERVAL] = DP_TYPE_STRING, [DP_OPTION_TEXTS] = DP_TYPE_ARRAY,
	[DP_OPTION_PATHS] = DP_TYPE_ARRAY,     [DP_OPTION_DOCUMENT] = DP_TYPE_DOCUMENT,
	[DP_OPTION_FILTER] = DP_TYPE_DOCUMENT, [DP_OPTION_ORDER] = DP_TYPE_DOCUMENT,
	[DP_OPTION_SCHEMA] = DP_TYPE_DOCUMENT, [DP_OPTION_ANY] = 0,
};

static void put_path(FunctionCallInfo fcinfo, const DpOption *option, const DpValue *path);
static const DpOption *options_of(const char *pattern);
static const DpOption *
require_option(const char *pattern, const DpOption *options, const char *name);
static void require_alterable(const char *pattern, const DpOption *options, const DpOption *option);
static bool has_option(struct varlena *options, const char *name, DpValue *value);
static struct varlena *
with_option(struct varlena *options, const DpOption *option, const DpValue *value);
static struct varlena *without_option(struct varlena *options, const char *name);
static struct varlena *
without_one_of(const DpOption *options, struct varlena *declared, struct varlena *changes);
static struct varlena *
complete(const DpOption *options, struct varlena *declared, struct varlena *changes);
static void check_value(const DpOption *option, const DpValue *value);
static void check_list(const DpOption *option, const DpValue *value);
static void check_interval(const DpOption *option, const char *text);
static void check_range(const DpOption *option, int64 n, const char *unit);
static int word_index(const DpOption *option, const DpValue *value);
static void read_value(const DpOption *option, const DpValue *value, char *into);

/*
 * _pattern_options(pattern text, given bson, declared bson) -> bson
 *
 * The options to declare for the given ones or, with declared, the changed options of an existing
 * declaration.  Raises 22023 and 22004 for options that the pattern's table does not allow.  NULL
 * if pattern or given is NULL.
 */
DP_FUNCTION(dp_pattern_options);
Datum
dp_pattern_options(PG_FUNCTION_ARGS)
{
	char *pattern;
	struct varlena *given;
	struct varlena *result;
	const DpOption *options;
	bool alter = !PG_ARGISNULL(2);
	DpIter iter;
	DpElement element;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	pattern = text_to_cstring(PG_GETARG_TEXT_PP(0));
	given = DP_GETARG_VARLENA(1);
	options = options_of(pattern);
	result = alter ? without_one_of(options, DP_GETARG_VARLENA(2), given)
				   : dp_document_to_varlena(dp_empty_document, DP_DOCUMENT_MIN_SIZE);
	dp_iter_init_varlena(&iter, given);
	while (dp_iter_next(&iter, &element))
	{
		const DpOption *option = require_option(pattern, options, element.name);

		if (alter)
			require_alterable(pattern, options, option);
		if (element.value.type != DP_TYPE_NULL)
			check_value(option, &element.value);
		result = element.value.type != DP_TYPE_NULL ? with_option(result, option, &element.value)
													: without_option(result, option->name);
	}
	PG_RETURN_POINTER(complete(options, result, alter ? given : NULL));
}

/*
 * _pattern_option_paths(pattern text, options bson) -> (path, kept, guarded, derived)
 *
 * The paths that options with these flags have.
 */
DP_FUNCTION(dp_pattern_option_paths);
Datum
dp_pattern_option_paths(PG_FUNCTION_ARGS)
{
	const DpOption *option = options_of(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	struct varlena *options = DP_GETARG_VARLENA(1);
	DpValue value;
	DpIter iter;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (; option->name != NULL; option++)
	{
		if ((option->flags & (DP_KEPT | DP_GUARDED | DP_DERIVED | DP_USED)) == 0 ||
			!has_option(options, option->name, &value))
			continue;
		if (value.type == DP_TYPE_STRING)
			put_path(fcinfo, option, &value);
		if (value.type != DP_TYPE_ARRAY)
			continue;
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &value))
		{
			if (value.type == DP_TYPE_STRING)
				put_path(fcinfo, option, &value);
		}
	}
	return (Datum) 0;
}

static void
put_path(FunctionCallInfo fcinfo, const DpOption *option, const DpValue *path)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum values[4] = {
		PointerGetDatum(cstring_to_text_with_len(DP_STRING_DATA(path), DP_STRING_LEN(path))),
		BoolGetDatum(option->flags & DP_KEPT), BoolGetDatum(option->flags & DP_GUARDED),
		BoolGetDatum(option->flags & DP_DERIVED)
	};
	bool nulls[4] = { false };

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

void
dp_options_read(DpDecl *decl, void *state)
{
	const DpOption *option;
	DpValue value;

	for (option = options_of(decl->pattern); option->name != NULL; option++)
	{
		MemoryContext old;

		if (!has_option(decl->options, option->name, &value))
		{
			if ((option->flags & DP_REQUIRED) != 0 && option->with == NULL)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("declaration of pattern \"%s\" of table \"%s\" is incomplete",
								decl->name, dp_relation_name(decl->target)),
						 errdetail("It has no option \"%s\".", option->name)));
			continue;
		}
		check_value(option, &value);
		old = MemoryContextSwitchTo(decl->context);
		if (option->size > 0)
			read_value(option, &value, (char *) state + option->into);
		if (option->text > 0)
			*(char **) ((char *) state + option->text) = pstrdup(DP_STRING_DATA(&value));
		MemoryContextSwitchTo(old);
	}
}

/* The table of a pattern; the common options if the pattern does not exist. */
static const DpOption *
options_of(const char *pattern)
{
	const DpPattern *p = dp_pattern_find(pattern);

	return p != NULL && p->options != NULL ? p->options : common;
}

/*
 * The option of that name; raises INVALID_PARAMETER_VALUE, with the most similar name, if there is
 * none.
 */
static const DpOption *
require_option(const char *pattern, const DpOption *options, const char *name)
{
	DpNearest nearest = { name, strlen(name) };
	const DpOption *option;

	for (option = options; option->name != NULL; option++)
	{
		if (strcmp(option->name, name) == 0)
			return option;
	}
	for (option = common; option->name != NULL; option++)
	{
		if (strcmp(option->name, name) == 0)
			return option;
	}
	for (option = options; option->name != NULL; option++)
		dp_nearest_try(&nearest, option->name);
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("the %s pattern has no option \"%s\"", pattern, name),
					dp_nearest_hint(&nearest)));
}

/* Raises INVALID_PARAMETER_VALUE if pattern_alter() cannot change the option. */
static void
require_alterable(const char *pattern, const DpOption *options, const DpOption *option)
{
	StringInfoData names;

	if ((option->flags & DP_ALTERABLE) != 0)
		return;
	initStringInfo(&names);
	for (; options->name != NULL; options++)
	{
		if ((options->flags & DP_ALTERABLE) != 0)
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", options->name);
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("option \"%s\" of the %s pattern cannot be changed", option->name, pattern),
			 names.len > 0 ? errhint("You can change these options: %s.", names.data)
						   : errhint("Call pattern_disable() and declare the pattern again.")));
}

/* True if an option is present and not null. */
static bool
has_option(struct varlena *options, const char *name, DpValue *value)
{
	return dp_document_find(DP_DOC_DATA(options), DP_DOC_SIZE(options), name, strlen(name),
							value) &&
		   value->type != DP_TYPE_NULL;
}

/* The options with one of them changed; an integer is stored as int32 if it fits. */
static struct varlena *
with_option(struct varlena *options, const DpOption *option, const DpValue *value)
{
	DpValue shorter = *value;
	uint8 bytes[4];
	int64 n;

	if (option->type == DP_OPTION_INT && option->max <= PG_INT32_MAX &&
		dp_value_to_int64(value, &n))
	{
		dp_put_int32(bytes, (int32) n);
		shorter = (DpValue){ .type = DP_TYPE_INT32, .data = bytes, .len = sizeof(bytes) };
	}
	return dp_document_set(DP_DOC_DATA(options), DP_DOC_SIZE(options),
						   dp_path_of_name(option->name, strlen(option->name)), &shorter);
}

static struct varlena *
without_option(struct varlena *options, const char *name)
{
	DpPath *path = dp_path_of_name(name, strlen(name));

	return dp_document_unset_all(options, &path, 1);
}

/* If one of the mutually exclusive options is given, the declaration without the others. */
static struct varlena *
without_one_of(const DpOption *options, struct varlena *declared, struct varlena *changes)
{
	const DpOption *option;
	const DpOption *other;
	DpValue value;

	for (option = options; option->name != NULL; option++)
	{
		if ((option->flags & DP_ONE_OF) == 0 || !has_option(changes, option->name, &value))
			continue;
		for (other = options; other->name != NULL; other++)
		{
			if (other != option && (other->flags & DP_ONE_OF) != 0)
				declared = without_option(declared, other->name);
		}
	}
	return declared;
}

/*
 * A declaration without options whose prerequisite is absent, and with defaults of those whose
 * prerequisite is present.  Raises NULL_VALUE_NOT_ALLOWED for a missing required option and
 * INVALID_PARAMETER_VALUE for options that would have no effect.
 */
static struct varlena *
complete(const DpOption *options, struct varlena *declared, struct varlena *changes)
{
	StringInfoData one_of;
	int n = 0;
	DpValue value;

	initStringInfo(&one_of);
	for (; options->name != NULL; options++)
	{
		bool present = has_option(declared, options->name, &value);

		if ((options->flags & DP_REQUIRED) != 0 && !present)
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("%s must not be null", options->name)));
		if ((options->flags & DP_ONE_OF) != 0)
		{
			appendStringInfo(&one_of, "%s%s", one_of.len > 0 ? ", " : "", options->name);
			n += present;
		}
		if (options->with == NULL)
			continue;
		if (!has_option(declared, options->with, &value))
		{
			if (changes != NULL && has_option(changes, options->name, &value))
				ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
								errmsg("%s requires %s", options->name, options->with)));
			declared = without_option(declared, options->name);
		}
		else if (!present && options->dflt != NULL)
		{
			Datum dflt = CStringGetTextDatum(options->dflt);

			value = dp_value_of_varlena(dp_datum_to_value(dflt, TEXTOID));
			declared = with_option(declared, options, &value);
		}
	}
	if (one_of.len > 0 && n != 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("exactly one of these options must be specified: %s", one_of.data)));
	return declared;
}

/* Raises INVALID_PARAMETER_VALUE, or the errors of paths, filters and the like. */
static void
check_value(const DpOption *option, const DpValue *value)
{
	int64 n = 0;

	if (value->type != stored[option->type] && option->type != DP_OPTION_ANY &&
		!(option->type == DP_OPTION_INT && value->type == DP_TYPE_INT64) &&
		!(option->type == DP_OPTION_NUMBER && dp_type_is_number(value->type)))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("%s must be of type %s, not %s", option->name,
							   dp_type_name(stored[option->type]), dp_type_name(value->type))));
	switch (option->type)
	{
		case DP_OPTION_TEXT:
			check_range(option, DP_STRING_LEN(value), " bytes");
			break;
		case DP_OPTION_WORD:
			(void) word_index(option, value);
			break;
		case DP_OPTION_PATH:
			pfree(dp_path_parse(DP_STRING_DATA(value), DP_STRING_LEN(value)));
			break;
		case DP_OPTION_INT:
			if (dp_value_to_int64(value, &n))
				check_range(option, n, "");
			break;
		case DP_OPTION_INTERVAL:
			check_interval(option, DP_STRING_DATA(value));
			break;
		case DP_OPTION_TEXTS:
		case DP_OPTION_PATHS:
			check_list(option, value);
			break;
		case DP_OPTION_DOCUMENT:
			check_range(option, dp_document_count(value->data, value->len), " fields");
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

/* Checks the elements of an array of texts or paths. */
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

static void
check_interval(const DpOption *option, const char *text)
{
	Datum interval = DirectFunctionCall3(interval_in, CStringGetDatum(text),
										 ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	Interval zero = { 0 };

	if (DatumGetBool(DirectFunctionCall2(interval_lt, interval, IntervalPGetDatum(&zero))))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("%s must not be negative", option->name)));
}

/* Checks a number, or the number of elements. */
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

/* The index of the option's word; raises INVALID_PARAMETER_VALUE if it is not one of them. */
static int
word_index(const DpOption *option, const DpValue *value)
{
	StringInfoData words;
	int i;

	initStringInfo(&words);
	for (i = 0; option->values[i] != NULL; i++)
	{
		if (strcmp(option->values[i], DP_STRING_DATA(value)) == 0)
			return i;
		appendStringInfo(&words, "%s\"%s\"",
						 i == 0                          ? ""
						 : option->values[i + 1] != NULL ? ", "
														 : " or ",
						 option->values[i]);
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s must be %s, not \"%s\"", option->name, words.data, DP_STRING_DATA(value))));
}

/* Writes a checked value to a pattern's struct. */
static void
read_value(const DpOption *option, const DpValue *value, char *into)
{
	int64 n = 0;

	switch (option->type)
	{
		case DP_OPTION_TEXT:
			*(char **) into = pstrdup(DP_STRING_DATA(value));
			return;
		case DP_OPTION_PATH:
			*(DpPath **) into = dp_path_parse(DP_STRING_DATA(value), DP_STRING_LEN(value));
			return;
		case DP_OPTION_WORD:
			n = word_index(option, value);
			break;
		case DP_OPTION_BOOL:
			n = value->data[0];
			break;
		case DP_OPTION_INT:
			(void) dp_value_to_int64(value, &n);
			break;
		default:
			*(DpValue *) into = *value;
			return;
	}
	if (option->size == sizeof(bool))
		*(bool *) into = n != 0;
	else if (option->size == sizeof(int))
		*(int *) into = (int) n;
	else
		*(int64 *) into = n;
}
