/*
 * schema.c
 *		Validates documents, either for a boolean result, or for a list of violations.
 *		schema_value.c compares values.
 *
 * A document is walked once, field by field, each field being looked up among the names in the
 * schema's rules; found ones are recorded, so that missing required fields are known at the end.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"

#include "bson/compare.h"
#include "bson/number.h"
#include "bson/path.h"
#include "bson/text.h"
#include "mql/schema_node.h"

/* Names of an object's rules whose being there is noted without memory from the heap */
#define SEEN_WORDS 4

/* The most bytes of a value, or of a list of them, that a report shows */
#define SHOWN_BYTES 80

/* Where the walk is: the parts of the path from here up */
typedef struct SchemaSpot
{
	const struct SchemaSpot *up;
	const char *name; /* NULL: an element */
	uint32 namelen;
	uint32 index;
} SchemaSpot;

/* The receiver of violations; NULL for a boolean result */
typedef struct SchemaWalk
{
	DpSchemaReport report;
	void *arg;
	int errors;
} SchemaWalk;

static bool match(const DpSchema *schema, const DpValue *value);
static bool match_object(const DpSchemaObject *rules, const DpValue *value);
static inline uint32 string_size(const uint8 *p, const uint8 *end);
static inline bool memo_fits(const DpSchemaMemo *memo, const DpIter *iter);
static void memo_take(DpSchemaMemo *memo, const DpElement *field, int index);
static bool
check(const DpSchema *schema, const DpValue *value, const SchemaSpot *spot, SchemaWalk *walk);
static bool check_number(const DpSchemaNumber *rules, const DpValue *value, const SchemaSpot *spot,
						 SchemaWalk *walk);
static bool check_string(const DpSchemaString *rules, const DpValue *value, const SchemaSpot *spot,
						 SchemaWalk *walk);
static bool check_object(const DpSchemaObject *rules, const DpValue *value, const SchemaSpot *spot,
						 SchemaWalk *walk);
static bool check_dependencies(const DpSchemaObject *rules, const uint64 *seen,
							   const DpValue *value, const SchemaSpot *spot, SchemaWalk *walk);
static bool check_array(const DpSchemaArray *rules, const DpValue *value, const SchemaSpot *spot,
						SchemaWalk *walk);
static bool check_logic(const DpSchemaLogic *rules, const DpValue *value, const SchemaSpot *spot,
						SchemaWalk *walk);
static bool fail(SchemaWalk *walk, const SchemaSpot *spot, const char *rule, const char *expected,
				 const DpValue *limit, const char *found);
static char *spot_path(const SchemaSpot *spot);
static char *type_names(const DpValue *value);
static char *shown(const DpValue *value);

/*
 * The end of a rule: without a receiver, the first violation ends the walk; otherwise it continues.
 */
#define CHECK(ok)                                                                                  \
	do                                                                                             \
	{                                                                                              \
		if (!(ok))                                                                                 \
		{                                                                                          \
			if (walk == NULL)                                                                      \
				return false;                                                                      \
			result = false;                                                                        \
		}                                                                                          \
	} while (0)

bool
dp_schema_match(DpSchema *schema, const DpValue *value)
{
	return match(schema, value);
}

int
dp_schema_errors(DpSchema *schema, const DpValue *value, DpSchemaReport report, void *arg)
{
	SchemaWalk walk = { report, arg, 0 };

	check(schema, value, NULL, &walk);
	return walk.errors;
}

/*
 * check() for a boolean result, short for the most common schemas: documents with fields of certain
 * types, some of which are required.
 */
static bool
match(const DpSchema *schema, const DpValue *value)
{
	if (schema->has_types && !dp_type_set_has(&schema->types, value->type))
		return false;
	if (schema->only_types)
		return true;
	if (value->type == DP_TYPE_DOCUMENT && schema->object != NULL && schema->object->plain &&
		schema->logic == NULL)
		return match_object(schema->object, value);
	return check(schema, value, NULL, NULL);
}

static bool
match_object(const DpSchemaObject *rules, const DpValue *value)
{
	uint64 seen = 0;
	int required = 0;
	uint32 k = 0;
	DpIter iter;
	DpElement field;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	dp_iter_init_value(&iter, value);
	for (;; k++)
	{
		DpSchemaMemo *memo = &rules->memos[k];
		const DpSchemaName *name;
		int i;

		if (k < SCHEMA_MEMOS && memo_fits(memo, &iter))
		{
			const uint8 *p = iter.next + memo->len + 2;

			field.value.type = *iter.next;
			field.value.data = p;
			field.value.len = field.value.type == DP_TYPE_STRING
								  ? string_size(p, iter.end)
								  : dp_value_size(field.value.type, p, iter.end);
			iter.next = p + field.value.len;
			i = memo->index;
		}
		else
		{
			const uint8 *from = iter.next;

			if (!dp_iter_next(&iter, &field))
				break;
			i = dp_schema_find_name(rules, field.name, field.namelen);
			if (k < SCHEMA_MEMOS && field.namelen < sizeof(memo->name) &&
				iter.end - from > sizeof(memo->name))
				memo_take(memo, &field, i);
		}
		if (i < 0)
			continue;
		name = &rules->names[i];
		if (name->required && (seen >> i & 1) == 0)
		{
			seen |= UINT64CONST(1) << i;
			required++;
		}
		if (name->schema != NULL && !match(name->schema, &field.value))
			return false;
	}
	return required == rules->nrequired;
}

/* dp_value_size() of a string, without a call where it is in order. */
static inline uint32
string_size(const uint8 *p, const uint8 *end)
{
	if (likely(end - p >= 5))
	{
		int32 len = dp_get_int32(p);

		if (likely(len >= 1 && len <= end - p - 4 && p[len + 3] == 0))
			return (uint32) len + 4;
	}
	return dp_value_size(DP_TYPE_STRING, p, end);
}

/* Whether the next field has the name that the last document had there. */
static inline bool
memo_fits(const DpSchemaMemo *memo, const DpIter *iter)
{
	uint64 name[2];

	/* sixteen bytes after the type have to be there */
	if (iter->end - iter->next < (ptrdiff_t) sizeof(name) + 1)
		return false;
	memcpy(name, iter->next + 1, sizeof(name));
	return (((name[0] & memo->mask[0]) ^ memo->name[0]) |
			((name[1] & memo->mask[1]) ^ memo->name[1])) == 0 &&
		   memo->mask[0] != 0;
}

/* Takes note of a field with a name that fits. */
static void
memo_take(DpSchemaMemo *memo, const DpElement *field, int index)
{
	uint8 mask[sizeof(memo->mask)] = { 0 };

	memset(memo, 0, sizeof(DpSchemaMemo));
	memset(mask, 0xFF, field->namelen + 1);
	memcpy(memo->mask, mask, sizeof(mask));
	memcpy(memo->name, field->name, field->namelen);
	memo->len = field->namelen;
	memo->index = index;
}

/* True if a value satisfies a schema. */
static bool
check(const DpSchema *schema, const DpValue *value, const SchemaSpot *spot, SchemaWalk *walk)
{
	bool result = true;

	if (schema->has_types && !dp_type_set_has(&schema->types, value->type))
		CHECK(walk != NULL &&
			  fail(walk, spot, schema->type_rule.name, type_names(&schema->type_rule.value), NULL,
				   dp_type_name(value->type)));
	switch (value->type)
	{
		case DP_TYPE_INT32:
		case DP_TYPE_INT64:
		case DP_TYPE_DOUBLE:
		case DP_TYPE_DECIMAL128:
			if (schema->number != NULL)
				CHECK(check_number(schema->number, value, spot, walk));
			break;
		case DP_TYPE_STRING:
			if (schema->string != NULL)
				CHECK(check_string(schema->string, value, spot, walk));
			break;
		case DP_TYPE_DOCUMENT:
			if (schema->object != NULL)
				CHECK(check_object(schema->object, value, spot, walk));
			break;
		case DP_TYPE_ARRAY:
			if (schema->array != NULL)
				CHECK(check_array(schema->array, value, spot, walk));
			break;
	}
	if (schema->logic != NULL)
		CHECK(check_logic(schema->logic, value, spot, walk));
	return result;
}

/* ---------------------------------------------------------------- rules */

static bool
check_number(const DpSchemaNumber *rules, const DpValue *value, const SchemaSpot *spot,
			 SchemaWalk *walk)
{
	bool result = true;
	bool is_nan = (value->type == DP_TYPE_DOUBLE || value->type == DP_TYPE_DECIMAL128) &&
				  isnan(dp_number_approximate(value));

	if (rules->minimum.type != DP_TYPE_EOD)
	{
		int order = is_nan ? -1 : dp_number_compare(value, &rules->minimum);

		CHECK(order > 0 || (order == 0 && !rules->above) ||
			  fail(walk, spot, "minimum", rules->above ? "more than " : "at least ",
				   &rules->minimum, walk ? shown(value) : NULL));
	}
	if (rules->maximum.type != DP_TYPE_EOD)
	{
		int order = is_nan ? 1 : dp_number_compare(value, &rules->maximum);

		CHECK(order < 0 || (order == 0 && !rules->below) ||
			  fail(walk, spot, "maximum", rules->below ? "less than " : "at most ", &rules->maximum,
				   walk ? shown(value) : NULL));
	}
	if (rules->multiple.type != DP_TYPE_EOD)
		CHECK(dp_number_is_multiple(value, &rules->multiple) ||
			  fail(walk, spot, "multipleOf", "a multiple of ", &rules->multiple,
				   walk ? shown(value) : NULL));
	return result;
}

/* The number of characters. */
static int64
string_characters(const DpValue *value)
{
	const char *s = DP_STRING_DATA(value);
	uint32 len = DP_STRING_LEN(value);
	int64 n = 0;

	for (uint32 i = 0; i < len; i++)
		n += ((unsigned char) s[i] & 0xC0) != 0x80;
	return n;
}

/* A rule about how many there are. */
static bool
check_limit(int64 n, int64 min, int64 max, const char *min_rule, const char *max_rule,
			const char *what, const SchemaSpot *spot, SchemaWalk *walk)
{
	bool result = true;

	if (min >= 0 && n < min)
		CHECK(walk != NULL &&
			  fail(walk, spot, min_rule, psprintf("at least %lld %s", (long long) min, what), NULL,
				   psprintf("%lld", (long long) n)));
	if (max >= 0 && n > max)
		CHECK(walk != NULL &&
			  fail(walk, spot, max_rule, psprintf("at most %lld %s", (long long) max, what), NULL,
				   psprintf("%lld", (long long) n)));
	return result;
}

static bool
check_string(const DpSchemaString *rules, const DpValue *value, const SchemaSpot *spot,
			 SchemaWalk *walk)
{
	bool result = true;

	if (rules->min_length >= 0 || rules->max_length >= 0)
		CHECK(check_limit(string_characters(value), rules->min_length, rules->max_length,
						  "minLength", "maxLength", "characters", spot, walk));
	if (rules->regex != NULL &&
		!dp_regex_match(rules->regex, DP_STRING_DATA(value), DP_STRING_LEN(value)))
		CHECK(walk != NULL &&
			  fail(walk, spot, "pattern", "a match of ", &rules->pattern, shown(value)));
	return result;
}

/*
 * Objects: their fields, then what is missing.
 */
static bool
check_object(const DpSchemaObject *rules, const DpValue *value, const SchemaSpot *spot,
			 SchemaWalk *walk)
{
	bool result = true;
	uint64 words[SEEN_WORDS] = { 0 };
	uint64 *seen = words;
	bool others = rules->closed || rules->additional != NULL;
	DpIter iter;
	DpElement field;
	int64 nfields = 0;
	int required = 0;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (rules->nnames > SEEN_WORDS * 64)
		seen = palloc0((rules->nnames + 63) / 64 * sizeof(uint64));

	dp_iter_init_value(&iter, value);
	while (dp_iter_next(&iter, &field))
	{
		SchemaSpot here = { spot, field.name, field.namelen, 0 };
		int i = dp_schema_find_name(rules, field.name, field.namelen);
		bool known = false;

		nfields++;
		if (i >= 0)
		{
			const DpSchemaName *name = &rules->names[i];
			uint64 bit = UINT64CONST(1) << (i & 63);

			known = name->is_property;
			if ((seen[(uint32) i >> 6] & bit) == 0)
			{
				seen[(uint32) i >> 6] |= bit;
				required += name->required;
			}
			if (name->schema != NULL)
				CHECK(check(name->schema, &field.value, &here, walk));
		}
		if (rules->npatterns > 0)
			CHECK_FOR_INTERRUPTS();
		for (i = 0; i < rules->npatterns; i++)
			if (dp_regex_match(rules->patterns[i].regex, field.name, field.namelen))
			{
				known = true;
				CHECK(check(rules->patterns[i].schema, &field.value, &here, walk));
			}
		if (known || !others)
			continue;
		if (rules->additional != NULL)
			CHECK(check(rules->additional, &field.value, &here, walk));
		else
			CHECK(fail(walk, &here, "additionalProperties", "no other fields", NULL,
					   dp_type_name(field.value.type)));
	}

	if (required < rules->nrequired)
	{
		if (walk == NULL)
			return false;
		for (int i = 0; i < rules->nnames; i++)
			if (rules->names[i].required && !(seen[i / 64] >> (i % 64) & 1))
			{
				SchemaSpot here = { spot, rules->names[i].name, rules->names[i].len, 0 };

				CHECK(fail(walk, &here, "required", "a value", NULL, "missing"));
			}
	}
	if (rules->has_dependencies)
		CHECK(check_dependencies(rules, seen, value, spot, walk));
	CHECK(check_limit(nfields, rules->min_properties, rules->max_properties, "minProperties",
					  "maxProperties", "fields", spot, walk));
	if (seen != words)
		pfree(seen);
	return result;
}

/* The requirements of existing fields. */
static bool
check_dependencies(const DpSchemaObject *rules, const uint64 *seen, const DpValue *value,
				   const SchemaSpot *spot, SchemaWalk *walk)
{
	bool result = true;

	for (int i = 0; i < rules->nnames; i++)
	{
		const DpSchemaName *name = &rules->names[i];

		if (!(seen[i / 64] >> (i % 64) & 1))
			continue;
		for (int j = 0; j < name->ndependents; j++)
		{
			int other = name->dependents[j];
			SchemaSpot here = { spot, rules->names[other].name, rules->names[other].len, 0 };

			if (!(seen[other / 64] >> (other % 64) & 1))
				CHECK(walk != NULL &&
					  fail(walk, &here, "dependencies",
						   psprintf("a value beside \"%.*s\"", (int) name->len, name->name), NULL,
						   "missing"));
		}
		if (name->dependency != NULL)
			CHECK(check(name->dependency, value, spot, walk));
	}
	return result;
}

static bool
check_array(const DpSchemaArray *rules, const DpValue *value, const SchemaSpot *spot,
			SchemaWalk *walk)
{
	bool result = true;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (rules->min_items >= 0 || rules->max_items >= 0)
		CHECK(check_limit(dp_array_count(value->data, value->len), rules->min_items,
						  rules->max_items, "minItems", "maxItems", "elements", spot, walk));
	if (rules->items != NULL || rules->positions != NULL)
	{
		DpIter iter;
		DpValue element;

		dp_iter_init_value(&iter, value);
		for (uint32 index = 0; dp_iter_next_value(&iter, &element); index++)
		{
			SchemaSpot here = { spot, NULL, 0, index };

			if (rules->items != NULL)
				CHECK(check(rules->items, &element, &here, walk));
			else if (index < rules->npositions)
				CHECK(check(rules->positions[index], &element, &here, walk));
			else if (rules->additional != NULL)
				CHECK(check(rules->additional, &element, &here, walk));
			else if (rules->closed)
				CHECK(fail(walk, &here, "additionalItems", "no other elements", NULL,
						   dp_type_name(element.type)));
			else
				break;
		}
	}
	if (rules->unique)
	{
		DpSchemaValues set;
		bool unique;

		dp_schema_values(&set, value);
		unique = dp_schema_values_unique(&set);
		pfree(set.values);
		CHECK(unique ||
			  fail(walk, spot, "uniqueItems", "no element twice", NULL, "an element twice"));
	}
	return result;
}

/* How many of the schemas a value fits, counted no further than to the limit. */
static int
count_fits(DpSchema **schemas, int n, int limit, const DpValue *value)
{
	int fits = 0;

	for (int i = 0; i < n && fits < limit; i++)
		fits += check(schemas[i], value, NULL, NULL);
	return fits;
}

static bool
check_logic(const DpSchemaLogic *rules, const DpValue *value, const SchemaSpot *spot,
			SchemaWalk *walk)
{
	bool result = true;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (rules->values.type != DP_TYPE_EOD && !dp_schema_values_find(&rules->set, value))
		CHECK(walk != NULL && fail(walk, spot, "enum", "one of ", &rules->values, shown(value)));
	for (int i = 0; i < rules->nall; i++)
		CHECK(check(rules->all[i], value, spot, walk));
	if (rules->nany > 0 && count_fits(rules->any, rules->nany, 1, value) == 0)
		CHECK(walk != NULL &&
			  fail(walk, spot, "anyOf",
				   psprintf("a fit of at least one of %d schemas", rules->nany), NULL, "none"));
	if (rules->none > 0)
	{
		int fits = count_fits(rules->one, rules->none, 2, value);

		if (fits != 1)
			CHECK(walk != NULL && fail(walk, spot, "oneOf",
									   psprintf("a fit of exactly one of %d schemas", rules->none),
									   NULL, fits == 0 ? "none" : "more than one"));
	}
	if (rules->not != NULL && check(rules->not, value, NULL, NULL))
		CHECK(fail(walk, spot, "not", "no fit of the schema", NULL, "a fit"));
	return result;
}

/* ---------------------------------------------------------------- reports */

/*
 * Reports a violation, if there is a receiver.  The requirement is a text followed by a value of
 * the schema.  Returns false.
 */
static bool
fail(SchemaWalk *walk, const SchemaSpot *spot, const char *rule, const char *expected,
	 const DpValue *limit, const char *found)
{
	if (walk == NULL)
		return false;
	walk->errors++;
	walk->report(spot_path(spot), rule,
				 limit != NULL ? psprintf("%s%s", expected, shown(limit)) : expected, found,
				 walk->arg);
	return false;
}

/*
 * The path to where the walk is, as paths are written.
 */
static char *
spot_path(const SchemaSpot *spot)
{
	StringInfoData out;
	int n = 0;
	const char **names;
	uint32 *lens;
	DpPath *path;
	char *text;

	for (const SchemaSpot *s = spot; s != NULL; s = s->up)
		n++;
	names = palloc(Max(1, n) * sizeof(char *));
	lens = palloc(Max(1, n) * sizeof(uint32));
	for (const SchemaSpot *s = spot; s != NULL; s = s->up)
	{
		n--;
		names[n] = s->name != NULL ? s->name : psprintf("%u", s->index);
		lens[n] = s->name != NULL ? s->namelen : strlen(names[n]);
	}
	for (const SchemaSpot *s = spot; s != NULL; s = s->up)
		n++;
	path = dp_path_of_names(n, names, lens);
	initStringInfo(&out);
	dp_path_to_text(&out, path);
	text = pstrdup(out.data);
	pfree(out.data);
	pfree(path);
	pfree(names);
	pfree(lens);
	return text;
}

/*
 * The argument of type or bsonType: "int", "int or string".
 */
static char *
type_names(const DpValue *value)
{
	StringInfoData out;
	DpIter iter;
	DpValue name;

	if (value->type == DP_TYPE_STRING)
		return pnstrdup(DP_STRING_DATA(value), DP_STRING_LEN(value));
	initStringInfo(&out);
	dp_iter_init_value(&iter, value);
	while (dp_iter_next_value(&iter, &name))
	{
		if (out.len > 0)
			appendStringInfoString(&out, " or ");
		appendBinaryStringInfo(&out, DP_STRING_DATA(&name), DP_STRING_LEN(&name));
	}
	return out.data;
}

/*
 * A value for people to read: whole if it is short, else its beginning.
 */
static char *
shown(const DpValue *value)
{
	StringInfoData out;

	if (value->type == DP_TYPE_DOCUMENT || (value->type == DP_TYPE_ARRAY && value->len > 4096))
		return psprintf("%s of %u %s", dp_type_name(value->type),
						dp_array_count(value->data, value->len),
						value->type == DP_TYPE_ARRAY ? "elements" : "fields");
	initStringInfo(&out);
	dp_value_to_text(&out, value, DP_TEXT_RELAXED, -1);
	if (out.len > SHOWN_BYTES)
	{
		out.len = pg_mbcliplen(out.data, out.len, SHOWN_BYTES);
		out.data[out.len] = '\0';
		appendStringInfoString(&out, "...");
	}
	return out.data;
}
