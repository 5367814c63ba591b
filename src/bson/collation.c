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

/* How an option spells a value of ICU */
typedef struct OptionWord
{
	const char *word;
	int value;
} OptionWord;

const DpCollation *dp_collation = NULL;

static DpCollation *collation_open(const DpValue *spec);
static void collation_close(void *arg);
static void set_option(UCollator *collator, const DpElement *option);
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
	static const OptionWord strength[] = { { "1", UCOL_PRIMARY },   { "2", UCOL_SECONDARY },
										   { "3", UCOL_TERTIARY },  { "4", UCOL_QUATERNARY },
										   { "5", UCOL_IDENTICAL }, { NULL } };
	static const OptionWord flag[] = { { "false", UCOL_OFF }, { "true", UCOL_ON }, { NULL } };
	static const OptionWord first[] = {
		{ "off", UCOL_OFF }, { "upper", UCOL_UPPER_FIRST }, { "lower", UCOL_LOWER_FIRST }, { NULL }
	};
	static const OptionWord alternate[] = { { "non-ignorable", UCOL_NON_IGNORABLE },
											{ "shifted", UCOL_SHIFTED },
											{ NULL } };
	static const OptionWord variable[] = { { "punct", UCOL_REORDER_CODE_PUNCTUATION },
										   { "space", UCOL_REORDER_CODE_SPACE },
										   { NULL } };
	static const struct
	{
		const char *name;
		UColAttribute attribute; /* maxVariable is none */
		const OptionWord *words;
	} options[] = {
		{ "strength", UCOL_STRENGTH, strength },
		{ "caseLevel", UCOL_CASE_LEVEL, flag },
		{ "caseFirst", UCOL_CASE_FIRST, first },
		{ "numericOrdering", UCOL_NUMERIC_COLLATION, flag },
		{ "alternate", UCOL_ALTERNATE_HANDLING, alternate },
		{ "backwards", UCOL_FRENCH_COLLATION, flag },
		{ "normalization", UCOL_NORMALIZATION_MODE, flag },
		{ "maxVariable", UCOL_ATTRIBUTE_COUNT, variable },
	};
	UErrorCode status = U_ZERO_ERROR;
	const char *given = NULL;

	if (strcmp(option->name, "locale") == 0)
		return;
	if (option->value.type == DP_TYPE_STRING)
		given = DP_STRING_DATA(&option->value);
	else if (option->value.type == DP_TYPE_BOOL)
		given = option->value.data[0] ? "true" : "false";
	else if (dp_type_class[option->value.type] == DP_CLASS_NUMBER)
		given = psprintf("%g", dp_number_approximate(&option->value));
	for (int i = 0; i < lengthof(options); i++)
	{
		if (strcmp(option->name, options[i].name) != 0)
			continue;
		for (const OptionWord *w = options[i].words; given != NULL && w->word != NULL; w++)
			if (strcmp(w->word, given) == 0)
			{
				if (options[i].words == variable)
					ucol_setMaxVariable(collator, w->value, &status);
				else
					ucol_setAttribute(collator, options[i].attribute, w->value, &status);
				check(status);
				return;
			}
		invalid(option->name, "it does not take this value");
	}
	invalid(option->name, "no such option");
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
