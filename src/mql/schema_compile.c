/*
 * schema_compile.c
 *		From a schema, a document, to the rules that schema.c applies.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/compare.h"
#include "bson/number.h"
#include "mql/schema_node.h"

typedef struct SchemaKeyword
{
	const DpElement *field; /* the keyword and its argument */
	const DpLocation *location;
	const DpValue *spec; /* the schema in which it stands */
	int which;           /* distinguishes keywords with the same parser */
} SchemaKeyword;

typedef void (*KeywordParser)(DpSchema *schema, const SchemaKeyword *k);

static void parse_type(DpSchema *schema, const SchemaKeyword *k);
static void parse_required(DpSchema *schema, const SchemaKeyword *k);
static void parse_properties(DpSchema *schema, const SchemaKeyword *k);
static void parse_patterns(DpSchema *schema, const SchemaKeyword *k);
static void parse_additional(DpSchema *schema, const SchemaKeyword *k);
static void parse_dependencies(DpSchema *schema, const SchemaKeyword *k);
static void parse_limit(DpSchema *schema, const SchemaKeyword *k);
static void parse_number(DpSchema *schema, const SchemaKeyword *k);
static void parse_exclusive(DpSchema *schema, const SchemaKeyword *k);
static void parse_pattern(DpSchema *schema, const SchemaKeyword *k);
static void parse_items(DpSchema *schema, const SchemaKeyword *k);
static void parse_unique(DpSchema *schema, const SchemaKeyword *k);
static void parse_enum(DpSchema *schema, const SchemaKeyword *k);
static void parse_logic(DpSchema *schema, const SchemaKeyword *k);
static void parse_not(DpSchema *schema, const SchemaKeyword *k);
static void parse_text(DpSchema *schema, const SchemaKeyword *k);

enum
{
	WHICH_JSON_TYPE,
	WHICH_BSON_TYPE,
	WHICH_MIN_LENGTH,
	WHICH_MAX_LENGTH,
	WHICH_MIN_ITEMS,
	WHICH_MAX_ITEMS,
	WHICH_MIN_PROPERTIES,
	WHICH_MAX_PROPERTIES,
	WHICH_MINIMUM,
	WHICH_MAXIMUM,
	WHICH_MULTIPLE,
	WHICH_PROPERTIES,
	WHICH_ITEMS,
	WHICH_ALL,
	WHICH_ANY,
	WHICH_ONE
};

static const struct
{
	const char *name;
	KeywordParser parse;
	int which;
} keywords[] = { { "bsonType", parse_type, WHICH_BSON_TYPE },
				 { "type", parse_type, WHICH_JSON_TYPE },
				 { "required", parse_required, 0 },
				 { "properties", parse_properties, 0 },
				 { "patternProperties", parse_patterns, 0 },
				 { "additionalProperties", parse_additional, WHICH_PROPERTIES },
				 { "dependencies", parse_dependencies, 0 },
				 { "minProperties", parse_limit, WHICH_MIN_PROPERTIES },
				 { "maxProperties", parse_limit, WHICH_MAX_PROPERTIES },
				 { "minimum", parse_number, WHICH_MINIMUM },
				 { "maximum", parse_number, WHICH_MAXIMUM },
				 { "exclusiveMinimum", parse_exclusive, WHICH_MINIMUM },
				 { "exclusiveMaximum", parse_exclusive, WHICH_MAXIMUM },
				 { "multipleOf", parse_number, WHICH_MULTIPLE },
				 { "minLength", parse_limit, WHICH_MIN_LENGTH },
				 { "maxLength", parse_limit, WHICH_MAX_LENGTH },
				 { "pattern", parse_pattern, 0 },
				 { "items", parse_items, 0 },
				 { "additionalItems", parse_additional, WHICH_ITEMS },
				 { "minItems", parse_limit, WHICH_MIN_ITEMS },
				 { "maxItems", parse_limit, WHICH_MAX_ITEMS },
				 { "uniqueItems", parse_unique, 0 },
				 { "enum", parse_enum, 0 },
				 { "allOf", parse_logic, WHICH_ALL },
				 { "anyOf", parse_logic, WHICH_ANY },
				 { "oneOf", parse_logic, WHICH_ONE },
				 { "not", parse_not, 0 },
				 { "title", parse_text, 0 },
				 { "description", parse_text, 0 } };

static DpSchema *compile(const DpValue *spec, const DpLocation *location);
static void index_names(DpSchemaObject *object);

/* ---------------------------------------------------------------- entry points */

DpSchema *
dp_schema_compile(const DpValue *spec, const DpLocation *location)
{
	DpIter iter;
	DpElement field;

	/* a validator as MongoDB stores it has the schema one level down */
	if (spec->type == DP_TYPE_DOCUMENT)
	{
		dp_iter_init_value(&iter, spec);
		if (dp_iter_next(&iter, &field) && iter.next == iter.end &&
			strcmp(field.name, "$jsonSchema") == 0)
		{
			DpLocation here = dp_location_field(location, &field);

			return compile(&field.value, &here);
		}
	}
	return compile(spec, location);
}

void *
dp_schema_compile_spec(const DpValue *spec, void *arg)
{
	return dp_schema_compile(spec, NULL);
}

/*
 * One schema.
 */
static DpSchema *
compile(const DpValue *spec, const DpLocation *location)
{
	DpSchema *schema = palloc0(sizeof(DpSchema));
	DpIter iter;
	DpElement field;

	check_stack_depth();
	if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a schema, which is a document", spec);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &field))
	{
		DpLocation here = dp_location_field(location, &field);
		SchemaKeyword k = { &field, &here, spec };
		DpValue first;
		int i;

		for (i = 0; i < lengthof(keywords); i++)
			if (strcmp(field.name, keywords[i].name) == 0)
				break;
		if (i == lengthof(keywords))
		{
			DpNearest nearest = { field.name, field.namelen };

			for (i = 0; i < lengthof(keywords); i++)
				dp_nearest_try(&nearest, keywords[i].name);
			dp_unknown_operator(&here, "keyword of a schema", &nearest);
		}
		if (!dp_document_find(spec->data, spec->len, field.name, field.namelen, &first) ||
			first.data != field.value.data)
			dp_bad_spec(&here, "\"%s\" stands twice in the schema", field.name);
		k.which = keywords[i].which;
		keywords[i].parse(schema, &k);
	}
	if (schema->object != NULL)
		index_names(schema->object);
	schema->only_types = schema->number == NULL && schema->string == NULL &&
						 schema->object == NULL && schema->array == NULL && schema->logic == NULL;
	return schema;
}

/* ---------------------------------------------------------------- arguments */

static bool
argument_bool(const SchemaKeyword *k)
{
	if (k->field->value.type != DP_TYPE_BOOL)
		dp_bad_spec_type(k->location, "true or false", &k->field->value);
	return k->field->value.data[0] != 0;
}

static void
argument_document(const SchemaKeyword *k)
{
	if (k->field->value.type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(k->location, "a document", &k->field->value);
}

/* An array that is not empty; returns how many elements it has. */
static uint32
argument_array(const SchemaKeyword *k)
{
	uint32 n;

	if (k->field->value.type != DP_TYPE_ARRAY)
		dp_bad_spec_type(k->location, "an array", &k->field->value);
	n = dp_document_count(k->field->value.data, k->field->value.len);
	if (n == 0)
		dp_bad_spec(k->location, "\"%s\" needs an array that is not empty", k->field->name);
	return n;
}

/* Another field of the same schema. */
static bool
sibling(const SchemaKeyword *k, const char *name, DpValue *value)
{
	return dp_document_find(k->spec->data, k->spec->len, name, strlen(name), value);
}

static DpSchemaObject *
object_of(DpSchema *schema)
{
	if (schema->object == NULL)
	{
		schema->object = palloc0(sizeof(DpSchemaObject));
		schema->object->min_properties = schema->object->max_properties = -1;
	}
	return schema->object;
}

static DpSchemaArray *
array_of(DpSchema *schema)
{
	if (schema->array == NULL)
	{
		schema->array = palloc0(sizeof(DpSchemaArray));
		schema->array->min_items = schema->array->max_items = -1;
	}
	return schema->array;
}

static DpSchemaString *
string_of(DpSchema *schema)
{
	if (schema->string == NULL)
	{
		schema->string = palloc0(sizeof(DpSchemaString));
		schema->string->min_length = schema->string->max_length = -1;
	}
	return schema->string;
}

static DpSchemaNumber *
number_of(DpSchema *schema)
{
	if (schema->number == NULL)
		schema->number = palloc0(sizeof(DpSchemaNumber));
	return schema->number;
}

static DpSchemaLogic *
logic_of(DpSchema *schema)
{
	if (schema->logic == NULL)
		schema->logic = palloc0(sizeof(DpSchemaLogic));
	return schema->logic;
}

/* ---------------------------------------------------------------- names */

/*
 * The position of a name, which is added if it is new.
 */
static int
add_name(DpSchemaObject *object, const char *name, uint32 len)
{
	bool found;
	uint32 at = dp_names_add(&object->known, name, len, &found);

	if (found)
		return (int) at;
	if (object->nnames == object->room)
	{
		object->room = Max(8, object->room * 2);
		if (object->names == NULL)
			object->names = palloc(object->room * sizeof(DpSchemaName));
		else
			object->names =
				repalloc_huge(object->names, (Size) object->room * sizeof(DpSchemaName));
	}
	memset(&object->names[object->nnames], 0, sizeof(DpSchemaName));
	object->names[object->nnames].name = name;
	object->names[object->nnames].len = len;
	return object->nnames++;
}

/* Makes the table by which names are found, and counts those that are required. */
static void
index_names(DpSchemaObject *object)
{
	uint32 size = 4;

	dp_names_free(&object->known);
	while (size < object->nnames * 2)
		size *= 2;
	object->mask = size - 1;
	object->slots = palloc(sizeof(int) * size);
	memset(object->slots, 0xFF, sizeof(int) * size);
	for (int i = 0; i < object->nnames; i++)
	{
		DpSchemaName *name = &object->names[i];
		uint32 slot;

		name->words = dp_schema_name_words(name->name, name->len);
		slot = dp_schema_name_hash(&name->words, name->name, name->len) & object->mask;
		while (object->slots[slot] >= 0)
			slot = (slot + 1) & object->mask;
		object->slots[slot] = i;
		object->nrequired += name->required;
	}
	object->plain = object->nnames <= 64 && object->npatterns == 0 && !object->closed &&
					object->additional == NULL && !object->has_dependencies &&
					object->min_properties < 0 && object->max_properties < 0;
	if (object->plain)
		object->memos = palloc0(sizeof(DpSchemaMemo) * SCHEMA_MEMOS);
}

/* ---------------------------------------------------------------- keywords */

static void
add_type(DpSchema *schema, const SchemaKeyword *k, const DpValue *value, const DpLocation *location)
{
	DpTypeSet before = schema->types;
	bool known;

	if (value->type != DP_TYPE_STRING)
		dp_bad_spec(location, "\"%s\" needs names of types, not %s", k->field->name,
					dp_type_name(value->type));
	if (k->which == WHICH_BSON_TYPE)
		known = dp_type_set_add_name(&schema->types, DP_STRING_DATA(value), DP_STRING_LEN(value));
	else
		known =
			dp_type_set_add_json_name(&schema->types, DP_STRING_DATA(value), DP_STRING_LEN(value));
	if (!known)
		dp_bad_spec(location, "unknown type \"%.*s\"", (int) DP_STRING_LEN(value),
					DP_STRING_DATA(value));
	if (memcmp(&before, &schema->types, sizeof(before)) == 0)
		dp_bad_spec(location, "type \"%.*s\" stands twice", (int) DP_STRING_LEN(value),
					DP_STRING_DATA(value));
}

/*
 * type and bsonType: a name or an array of names.
 */
static void
parse_type(DpSchema *schema, const SchemaKeyword *k)
{
	DpIter iter;
	DpValue value;
	uint32 index = 0;

	if (schema->has_types)
		dp_bad_spec(k->location, "\"type\" and \"bsonType\" cannot be used together");
	schema->has_types = true;
	schema->type_rule = *k->field;
	if (k->field->value.type != DP_TYPE_ARRAY)
	{
		add_type(schema, k, &k->field->value, k->location);
		return;
	}
	argument_array(k);
	dp_iter_init_value(&iter, &k->field->value);
	while (dp_iter_next_value(&iter, &value))
	{
		DpLocation here = dp_location_index(k->location, index++);

		add_type(schema, k, &value, &here);
	}
}

static void
parse_required(DpSchema *schema, const SchemaKeyword *k)
{
	DpSchemaObject *object = object_of(schema);
	DpIter iter;
	DpValue value;
	uint32 index = 0;

	argument_array(k);
	dp_iter_init_value(&iter, &k->field->value);
	while (dp_iter_next_value(&iter, &value))
	{
		DpLocation here = dp_location_index(k->location, index++);
		int i;

		if (value.type != DP_TYPE_STRING)
			dp_bad_spec(&here, "\"required\" needs names of fields, not %s",
						dp_type_name(value.type));
		i = add_name(object, DP_STRING_DATA(&value), DP_STRING_LEN(&value));
		if (object->names[i].required)
			dp_bad_spec(&here, "field \"%.*s\" stands twice", (int) DP_STRING_LEN(&value),
						DP_STRING_DATA(&value));
		object->names[i].required = true;
	}
}

static void
parse_properties(DpSchema *schema, const SchemaKeyword *k)
{
	DpSchemaObject *object = object_of(schema);
	DpIter iter;
	DpElement field;

	argument_document(k);
	dp_iter_init_value(&iter, &k->field->value);
	while (dp_iter_next(&iter, &field))
	{
		DpLocation here = dp_location_field(k->location, &field);
		DpSchema *property = compile(&field.value, &here);
		int i = add_name(object, field.name, field.namelen);

		if (object->names[i].is_property)
			dp_bad_spec(&here, "field \"%s\" stands twice", field.name);
		object->names[i].is_property = true;
		object->names[i].schema = property;
	}
}

static void
parse_patterns(DpSchema *schema, const SchemaKeyword *k)
{
	DpSchemaObject *object = object_of(schema);
	DpIter iter;
	DpElement field;

	argument_document(k);
	object->patterns = palloc(Max(1, dp_document_count(k->field->value.data, k->field->value.len)) *
							  sizeof(DpSchemaPattern));
	dp_iter_init_value(&iter, &k->field->value);
	while (dp_iter_next(&iter, &field))
	{
		DpLocation here = dp_location_field(k->location, &field);
		DpSchemaPattern *pattern = &object->patterns[object->npatterns++];
		DpLocationContext context;

		dp_location_push(&context, &here);
		pattern->regex = dp_regex_compile(field.name, field.namelen, "", 0);
		dp_location_pop(&context);
		pattern->schema = compile(&field.value, &here);
	}
}

/*
 * additionalProperties and additionalItems: whether there may be others, or
 * what they must be.
 */
static void
parse_additional(DpSchema *schema, const SchemaKeyword *k)
{
	DpSchema *additional = NULL;
	bool closed = false;

	if (k->field->value.type == DP_TYPE_DOCUMENT)
		additional = compile(&k->field->value, k->location);
	else if (k->field->value.type == DP_TYPE_BOOL)
		closed = k->field->value.data[0] == 0;
	else
		dp_bad_spec_type(k->location, "true, false or a schema", &k->field->value);
	if (k->which == WHICH_PROPERTIES)
	{
		object_of(schema)->closed = closed;
		object_of(schema)->additional = additional;
	}
	else
	{
		array_of(schema)->closed = closed;
		array_of(schema)->additional = additional;
	}
}

static void
parse_dependencies(DpSchema *schema, const SchemaKeyword *k)
{
	DpSchemaObject *object = object_of(schema);
	DpIter iter;
	DpElement field;

	argument_document(k);
	dp_iter_init_value(&iter, &k->field->value);
	while (dp_iter_next(&iter, &field))
	{
		DpLocation here = dp_location_field(k->location, &field);
		SchemaKeyword inner = { &field, &here, &k->field->value, 0 };
		int i = add_name(object, field.name, field.namelen);

		object->has_dependencies = true;
		if (field.value.type == DP_TYPE_DOCUMENT)
			object->names[i].dependency = compile(&field.value, &here);
		else if (field.value.type == DP_TYPE_ARRAY)
		{
			int *dependents = palloc(argument_array(&inner) * sizeof(int));
			int n = 0;
			DpIter names;
			DpValue name;

			dp_iter_init_value(&names, &field.value);
			while (dp_iter_next_value(&names, &name))
			{
				if (name.type != DP_TYPE_STRING)
					dp_bad_spec(&here, "a dependency needs names of fields, not %s",
								dp_type_name(name.type));
				dependents[n++] = add_name(object, DP_STRING_DATA(&name), DP_STRING_LEN(&name));
			}
			object->names[i].dependents = dependents;
			object->names[i].ndependents = n;
		}
		else
			dp_bad_spec_type(&here, "an array of names or a schema", &field.value);
	}
}

/*
 * The keywords that limit a number of things.
 */
static void
parse_limit(DpSchema *schema, const SchemaKeyword *k)
{
	int64 limit;

	if (!dp_value_to_whole(&k->field->value, &limit) || limit < 0)
		dp_bad_spec(k->location, "\"%s\" needs a whole number that is not negative",
					k->field->name);
	switch (k->which)
	{
		case WHICH_MIN_LENGTH:
			string_of(schema)->min_length = limit;
			break;
		case WHICH_MAX_LENGTH:
			string_of(schema)->max_length = limit;
			break;
		case WHICH_MIN_ITEMS:
			array_of(schema)->min_items = limit;
			break;
		case WHICH_MAX_ITEMS:
			array_of(schema)->max_items = limit;
			break;
		case WHICH_MIN_PROPERTIES:
			object_of(schema)->min_properties = limit;
			break;
		default:
			object_of(schema)->max_properties = limit;
			break;
	}
}

/*
 * minimum, maximum and multipleOf.
 */
static void
parse_number(DpSchema *schema, const SchemaKeyword *k)
{
	static const uint8 zero_bytes[4] = { 0 };
	DpValue zero = { zero_bytes, 4, DP_TYPE_INT32 };
	DpSchemaNumber *number = number_of(schema);

	if (!dp_type_is_number(k->field->value.type))
		dp_bad_spec_type(k->location, "a number", &k->field->value);
	switch (k->which)
	{
		case WHICH_MINIMUM:
			number->minimum = k->field->value;
			break;
		case WHICH_MAXIMUM:
			number->maximum = k->field->value;
			break;
		default:
			if (dp_number_compare(&k->field->value, &zero) <= 0)
				dp_bad_spec(k->location, "\"multipleOf\" needs a number greater than 0");
			number->multiple = k->field->value;
			break;
	}
}

/* exclusiveMinimum and exclusiveMaximum: whether the limit itself is excluded. */
static void
parse_exclusive(DpSchema *schema, const SchemaKeyword *k)
{
	bool exclusive = argument_bool(k);
	const char *limit = k->which == WHICH_MINIMUM ? "minimum" : "maximum";
	DpValue value;

	if (!sibling(k, limit, &value))
		dp_bad_spec(k->location, "\"%s\" needs \"%s\" beside it", k->field->name, limit);
	if (k->which == WHICH_MINIMUM)
		number_of(schema)->above = exclusive;
	else
		number_of(schema)->below = exclusive;
}

static void
parse_pattern(DpSchema *schema, const SchemaKeyword *k)
{
	DpLocationContext context;

	if (k->field->value.type != DP_TYPE_STRING)
		dp_bad_spec_type(k->location, "a string", &k->field->value);
	string_of(schema)->pattern = k->field->value;
	dp_location_push(&context, k->location);
	string_of(schema)->regex =
		dp_regex_compile(DP_STRING_DATA(&k->field->value), DP_STRING_LEN(&k->field->value), "", 0);
	dp_location_pop(&context);
}

/* The schemas of an array, one each. */
static DpSchema **
compile_array(const SchemaKeyword *k, int *n)
{
	DpSchema **schemas =
		palloc(Max(1, dp_document_count(k->field->value.data, k->field->value.len)) *
			   sizeof(DpSchema *));
	DpIter iter;
	DpValue value;

	*n = 0;
	dp_iter_init_value(&iter, &k->field->value);
	while (dp_iter_next_value(&iter, &value))
	{
		DpLocation here = dp_location_index(k->location, *n);

		schemas[(*n)++] = compile(&value, &here);
	}
	return schemas;
}

/*
 * items: a schema for all, or an array of schemas, one for each of the first.
 */
static void
parse_items(DpSchema *schema, const SchemaKeyword *k)
{
	DpSchemaArray *array = array_of(schema);

	if (k->field->value.type == DP_TYPE_ARRAY)
		array->positions = compile_array(k, &array->npositions);
	else
		array->items = compile(&k->field->value, k->location);
}

static void
parse_unique(DpSchema *schema, const SchemaKeyword *k)
{
	array_of(schema)->unique = argument_bool(k);
}

static void
parse_enum(DpSchema *schema, const SchemaKeyword *k)
{
	DpSchemaLogic *logic = logic_of(schema);

	argument_array(k);
	logic->values = k->field->value;
	dp_schema_values(&logic->set, &logic->values);
	if (!dp_schema_values_unique(&logic->set))
		dp_bad_spec(k->location, "\"enum\" has a value twice");
}

/*
 * allOf, anyOf and oneOf.
 */
static void
parse_logic(DpSchema *schema, const SchemaKeyword *k)
{
	DpSchemaLogic *logic = logic_of(schema);

	argument_array(k);
	switch (k->which)
	{
		case WHICH_ALL:
			logic->all = compile_array(k, &logic->nall);
			break;
		case WHICH_ANY:
			logic->any = compile_array(k, &logic->nany);
			break;
		default:
			logic->one = compile_array(k, &logic->none);
			break;
	}
}

static void
parse_not(DpSchema *schema, const SchemaKeyword *k)
{
	logic_of(schema)->not = compile(&k->field->value, k->location);
}

/* title and description: a text for people. */
static void
parse_text(DpSchema *schema, const SchemaKeyword *k)
{
	if (k->field->value.type != DP_TYPE_STRING)
		dp_bad_spec_type(k->location, "a string", &k->field->value);
}
