/*
 * collation.c
 *		Collations by ICU: see collation.h.
 */
#include "postgres.h"

#include <unicode/ucol.h>
#include <unicode/uloc.h>
#include <unicode/ustring.h>

#include "utils/memutils.h"

#include "bson/collation.h"
#include "bson/compare.h"
#include "bson/number.h"
#include "bson/path.h"

struct DpCollation
{
	DpValue spec;
	UCollator *collator; /* NULL: simple */
	MemoryContext context;
	MemoryContextCallback callback; /* closes it */
};

/* Of the session: opening one takes ICU long */
static DpCollation *collations[16];

/* A word that an option takes, or NULL for false and true */
typedef struct OptionValue
{
	const char *word;
	int value;
} OptionValue;

const DpCollation *dp_collation = NULL;

static DpCollation *collation_open(const DpValue *spec);
static void collation_close(void *arg);
static void set_option(UCollator *collator, const DpElement *option);
static void set_word(UCollator *collator, const DpElement *option, UColAttribute attribute,
					 const OptionValue *values);
static void invalid(const char *option, const char *what) pg_attribute_noreturn();
static void check(UErrorCode status);
static void call_function(void *arg);

const DpCollation *
dp_collation_get(const DpValue *spec)
{
	static int next = 0;
	DpCollation *c = NULL;
	MemoryContext context;
	MemoryContext old;

	for (int i = 0; i < lengthof(collations) && (c = collations[i]) != NULL; i++)
		if (c->spec.len == spec->len && memcmp(c->spec.data, spec->data, spec->len) == 0)
			return c->collator == NULL ? NULL : c;
	/* below the current context until everything succeeded */
	context =
		AllocSetContextCreate(CurrentMemoryContext, "docpatterns collation", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	c = collation_open(spec);
	c->spec = *spec;
	c->spec.data = memcpy(palloc(spec->len), spec->data, spec->len);
	c->context = context;
	MemoryContextSwitchTo(old);
	MemoryContextSetParent(context, TopMemoryContext);
	if (collations[next] != NULL)
		MemoryContextDelete(collations[next]->context);
	collations[next] = c;
	next = (next + 1) % lengthof(collations);
	return c->collator == NULL ? NULL : c;
}

/* In the current memory context, which closes it. */
static DpCollation *
collation_open(const DpValue *spec)
{
	DpCollation *collation = palloc0(sizeof(DpCollation));
	UErrorCode status = U_ZERO_ERROR;
	DpValue locale;
	DpIter iter;
	DpElement option;

	if (!dp_document_find(spec->data, spec->len, "locale", 6, &locale) ||
		locale.type != DP_TYPE_STRING)
		invalid("locale", "a string is required");
	if (strcmp(DP_STRING_DATA(&locale), "simple") == 0)
	{
		if (dp_array_count(spec->data, spec->len) > 1)
			invalid("locale", "\"simple\" has no other options");
		return collation;
	}
	if (strlen(DP_STRING_DATA(&locale)) != DP_STRING_LEN(&locale) ||
		uloc_getISO3Language(DP_STRING_DATA(&locale))[0] == '\0')
		invalid("locale", "no such locale");
	collation->collator = ucol_open(DP_STRING_DATA(&locale), &status);
	check(status);
	collation->callback.func = collation_close;
	collation->callback.arg = collation;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &collation->callback);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &option))
		set_option(collation->collator, &option);
	return collation;
}

static void
collation_close(void *arg)
{
	ucol_close(((DpCollation *) arg)->collator);
}

/* Raises INVALID_PARAMETER_VALUE for an unknown option or value. */
static void
set_option(UCollator *collator, const DpElement *option)
{
	static const OptionValue strength[] = { { "1", UCOL_PRIMARY },   { "2", UCOL_SECONDARY },
											{ "3", UCOL_TERTIARY },  { "4", UCOL_QUATERNARY },
											{ "5", UCOL_IDENTICAL }, { NULL } };
	static const OptionValue flag[] = { { "false", UCOL_OFF }, { "true", UCOL_ON }, { NULL } };
	static const OptionValue first[] = {
		{ "off", UCOL_OFF }, { "upper", UCOL_UPPER_FIRST }, { "lower", UCOL_LOWER_FIRST }, { NULL }
	};
	static const OptionValue alternate[] = { { "non-ignorable", UCOL_NON_IGNORABLE },
											 { "shifted", UCOL_SHIFTED },
											 { NULL } };

	if (strcmp(option->name, "strength") == 0)
		set_word(collator, option, UCOL_STRENGTH, strength);
	else if (strcmp(option->name, "caseLevel") == 0)
		set_word(collator, option, UCOL_CASE_LEVEL, flag);
	else if (strcmp(option->name, "caseFirst") == 0)
		set_word(collator, option, UCOL_CASE_FIRST, first);
	else if (strcmp(option->name, "numericOrdering") == 0)
		set_word(collator, option, UCOL_NUMERIC_COLLATION, flag);
	else if (strcmp(option->name, "alternate") == 0)
		set_word(collator, option, UCOL_ALTERNATE_HANDLING, alternate);
	else if (strcmp(option->name, "backwards") == 0)
		set_word(collator, option, UCOL_FRENCH_COLLATION, flag);
	else if (strcmp(option->name, "normalization") == 0)
		set_word(collator, option, UCOL_NORMALIZATION_MODE, flag);
	else if (strcmp(option->name, "maxVariable") == 0)
		set_word(collator, option, UCOL_ATTRIBUTE_COUNT, NULL);
	else if (strcmp(option->name, "locale") != 0)
		invalid(option->name, "no such option");
}

/* Sets an attribute to the value that the option spells; maxVariable is none, and has two words. */
static void
set_word(UCollator *collator, const DpElement *option, UColAttribute attribute,
		 const OptionValue *values)
{
	static const OptionValue variable[] = { { "punct", UCOL_REORDER_CODE_PUNCTUATION },
											{ "space", UCOL_REORDER_CODE_SPACE },
											{ NULL } };
	UErrorCode status = U_ZERO_ERROR;
	const char *word = NULL;

	if (option->value.type == DP_TYPE_STRING)
		word = DP_STRING_DATA(&option->value);
	else if (option->value.type == DP_TYPE_BOOL)
		word = option->value.data[0] ? "true" : "false";
	else if (dp_type_class[option->value.type] == DP_CLASS_NUMBER && attribute == UCOL_STRENGTH)
		word = psprintf("%g", dp_number_approximate(&option->value));
	if (values == NULL)
		values = variable;
	for (; word != NULL && values->word != NULL; values++)
		if (strcmp(values->word, word) == 0)
		{
			if (attribute == UCOL_ATTRIBUTE_COUNT)
				ucol_setMaxVariable(collator, values->value, &status);
			else
				ucol_setAttribute(collator, attribute, values->value, &status);
			check(status);
			return;
		}
	invalid(option->name, "it does not take this value");
}

static void
invalid(const char *option, const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid collation"),
					errdetail("Option \"%.100s\": %s.", option, what)));
}

static void
check(UErrorCode status)
{
	if (U_FAILURE(status))
		ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
						errmsg("collation failed: %s", u_errorName(status))));
}

int
dp_collation_compare(const char *a, uint32 alen, const char *b, uint32 blen)
{
	UErrorCode status = U_ZERO_ERROR;
	int result = ucol_strcollUTF8(dp_collation->collator, a, alen, b, blen, &status);

	check(status);
	return result;
}

char *
dp_collation_key(const char *s, uint32 len, uint32 *keylen)
{
	UErrorCode status = U_ZERO_ERROR;
	UChar *chars = palloc((len + 1) * sizeof(UChar));
	int32 nchars;
	int32 size;
	char *key;

	/* a string in UTF-16 has at most as many units as in UTF-8 it has bytes */
	u_strFromUTF8(chars, len + 1, &nchars, s, len, &status);
	check(status);
	size = ucol_getSortKey(dp_collation->collator, chars, nchars, NULL, 0);
	key = palloc(size);
	ucol_getSortKey(dp_collation->collator, chars, nchars, (uint8 *) key, size);
	pfree(chars);
	*keylen = size - 1; /* without the NUL at the end */
	return key;
}

/* ---------------------------------------------------------------- calls */

void
dp_collated(const DpValue *spec, void (*function)(void *), void *arg)
{
	const DpCollation *collation = spec == NULL ? NULL : dp_collation_get(spec);
	const DpCollation *outer = dp_collation;

	if (collation == outer)
	{
		function(arg);
		return;
	}
	dp_collation = collation;
	PG_TRY();
	{
		function(arg);
	}
	PG_FINALLY();
	{
		dp_collation = outer;
	}
	PG_END_TRY();
}

/* A call of a function of SQL */
typedef struct Call
{
	FunctionCallInfo fcinfo;
	PGFunction function;
	Datum result;
} Call;

Datum
dp_collated_by(const DpValue *spec, FunctionCallInfo fcinfo, PGFunction function)
{
	Call call = { fcinfo, function };

	dp_collated(spec, call_function, &call);
	return call.result;
}

Datum
dp_collated_call(FunctionCallInfo fcinfo, PGFunction function)
{
	DpValue spec;

	if (PG_ARGISNULL(PG_NARGS() - 1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("collation cannot be null")));
	spec = dp_value_of_document(DP_GETARG_VARLENA(PG_NARGS() - 1));
	return dp_collated_by(&spec, fcinfo, function);
}

static void
call_function(void *arg)
{
	Call *call = arg;

	call->result = call->function(call->fcinfo);
}
