/*
 * schema.c
 *		The polymorphic pattern: names and types read from schemas.
 *
 * Finds the field names in a schema, so that those of other variants can be
 * refused; and the columns of views, with types that fit the allowed values.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "patterns/polymorphic/polymorphic.h"

/* ---------------------------------------------------------------- names */

/* A name while schemas are read */
typedef struct SchemaWord
{
	const char *name;
	uint32 len;
	bool own;
	bool other;
	struct SchemaWord *below; /* the first of those below */
	struct SchemaWord *next;
} SchemaWord;

static void names_of_schema(SchemaWord *name, const DpValue *schema, bool own);
static void names_of_list(SchemaWord *name, const DpValue *list, bool own);
static SchemaWord *name_add(SchemaWord *name, const char *s, uint32 len, bool own);
static SchemaWord *name_below(SchemaWord *name, const char *s, uint32 len);
static bool names_keep(const SchemaWord *from, DpPolyNames *into);
static DpValue schema_itself(const DpValue *spec);
static bool find_option(const DpValue *document, const char *name, uint8 type, DpValue *value);

DpPolyNames *
dp_poly_foreign(const DpPoly *p, const DpPolyVariant *variant)
{
	SchemaWord root = { 0 };
	DpPolyNames *result = palloc0(sizeof(DpPolyNames));
	DpValue schema;
	int i;

	name_below(&root, p->field->steps[0].name, p->field->steps[0].namelen)->own = true;
	if (p->parent == NULL)
		name_below(&root, "_id", 3)->own = true;
	schema = schema_itself(&p->common_spec);
	if (schema.type == DP_TYPE_DOCUMENT)
		names_of_schema(&root, &schema, true);
	schema = schema_itself(&variant->schema_spec);
	if (schema.type == DP_TYPE_DOCUMENT)
		names_of_schema(&root, &schema, true);
	for (i = 0; i < p->nvariants; i++)
	{
		const DpPolyVariant *other = &p->variants[i];

		schema = schema_itself(&other->schema_spec);
		if (other != variant && schema.type == DP_TYPE_DOCUMENT)
			names_of_schema(&root, &schema, false);
	}
	return names_keep(&root, result) ? result : NULL;
}

/*
 * Adds the names in a schema below one. Includes names that only some documents have (anyOf,
 * oneOf, dependencies), but not those that are forbidden (not).
 */
static void
names_of_schema(SchemaWord *name, const DpValue *schema, bool own)
{
	/* "items" too, if it has a schema for each position */
	static const char *const lists[] = { "items", "allOf", "anyOf", "oneOf" };
	DpValue value;
	DpIter iter;
	DpElement property;
	int i;

	check_stack_depth();
	if (find_option(schema, "required", DP_TYPE_ARRAY, &value))
		names_of_list(name, &value, own);
	if (find_option(schema, "properties", DP_TYPE_DOCUMENT, &value))
	{
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next(&iter, &property))
		{
			SchemaWord *below = name_add(name, property.name, property.namelen, own);

			if (property.value.type == DP_TYPE_DOCUMENT)
				names_of_schema(below, &property.value, own);
		}
	}
	if (find_option(schema, "dependencies", DP_TYPE_DOCUMENT, &value))
	{
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next(&iter, &property))
		{
			name_add(name, property.name, property.namelen, own);
			if (property.value.type == DP_TYPE_DOCUMENT)
				names_of_schema(name, &property.value, own);
			else
				names_of_list(name, &property.value, own);
		}
	}
	if (find_option(schema, "items", DP_TYPE_DOCUMENT, &value))
		names_of_schema(name, &value, own);
	if (find_option(schema, "additionalItems", DP_TYPE_DOCUMENT, &value))
		names_of_schema(name, &value, own);
	for (i = 0; i < lengthof(lists); i++)
	{
		DpValue one;

		if (!find_option(schema, lists[i], DP_TYPE_ARRAY, &value))
			continue;
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &one))
		{
			if (one.type == DP_TYPE_DOCUMENT)
				names_of_schema(name, &one, own);
		}
	}
}

/* Adds the names in an array below one. */
static void
names_of_list(SchemaWord *name, const DpValue *list, bool own)
{
	DpIter iter;
	DpValue field;

	if (list->type != DP_TYPE_ARRAY)
		return;
	dp_iter_init_value(&iter, list);
	while (dp_iter_next_value(&iter, &field))
	{
		if (field.type == DP_TYPE_STRING)
			name_add(name, DP_STRING_DATA(&field), DP_STRING_LEN(&field), own);
	}
}

/* Adds a name below one, and returns it. */
static SchemaWord *
name_add(SchemaWord *name, const char *s, uint32 len, bool own)
{
	SchemaWord *below = name_below(name, s, len);

	below->own |= own;
	below->other |= !own;
	return below;
}

/* Returns the name below another one, created if it is new. */
static SchemaWord *
name_below(SchemaWord *name, const char *s, uint32 len)
{
	SchemaWord **next;

	for (next = &name->below; *next != NULL; next = &(*next)->next)
	{
		if ((*next)->len == len && memcmp((*next)->name, s, len) == 0)
			return *next;
	}
	*next = palloc0(sizeof(SchemaWord));
	(*next)->name = s;
	(*next)->len = len;
	return *next;
}

/*
 * Keeps refused names and the way to them. Inside a field without a schema of its own, every name
 * is allowed. Returns whether any name is left.
 */
static bool
names_keep(const SchemaWord *from, DpPolyNames *into)
{
	const SchemaWord *name;
	int n = 0;

	for (name = from->below; name != NULL; name = name->next)
		n++;
	if (n == 0)
		return false;
	into->below = palloc0(sizeof(DpPolyNames) * n);
	for (name = from->below; name != NULL; name = name->next)
	{
		DpPolyNames *below = &into->below[into->nbelow];
		const SchemaWord *inside;
		bool described = false;

		memset(below, 0, sizeof(DpPolyNames));
		below->name = name->name;
		below->namelen = name->len;
		below->refused = !name->own;
		for (inside = name->below; inside != NULL; inside = inside->next)
			described |= inside->own;
		if (!below->refused && !(described && names_keep(name, below)))
			continue;
		into->filter |= dp_poly_name_bit(name->name, name->len);
		into->nbelow++;
	}
	return into->nbelow > 0;
}

/* A schema; of a validator as MongoDB stores it, what $jsonSchema says. */
static DpValue
schema_itself(const DpValue *spec)
{
	DpValue inner;

	if (spec->type == DP_TYPE_DOCUMENT &&
		dp_document_find(spec->data, spec->len, "$jsonSchema", strlen("$jsonSchema"), &inner))
		return inner;
	return *spec;
}

/* A keyword of a schema, if it is there with a value of that type. */
static bool
find_option(const DpValue *document, const char *name, uint8 type, DpValue *value)
{
	return dp_document_find(document->data, document->len, name, strlen(name), value) &&
		   value->type == type;
}

/* ---------------------------------------------------------------- columns */

/* The kinds of values that a schema allows */
#define KIND_STRING 0x001
#define KIND_INT 0x002
#define KIND_LONG 0x004
#define KIND_DOUBLE 0x008
#define KIND_DECIMAL 0x010
#define KIND_BOOL 0x020
#define KIND_DATE 0x040
#define KIND_OBJECTID 0x080
#define KIND_BINARY 0x100
#define KIND_OBJECT 0x200
#define KIND_ARRAY 0x400
#define KIND_OTHER 0x800
#define KIND_NULL 0x1000
#define KIND_NUMBER (KIND_INT | KIND_LONG | KIND_DOUBLE | KIND_DECIMAL)

/* A field of documents, according to all schemas */
typedef struct Field
{
	char *name;
	uint32 len;
	uint32 kinds; /* 0: no type in the schemas */
	bool many;    /* an array, or it may be one */
	struct Field *below;
	struct Field *next;
} Field;

/* Receiver of columns */
typedef struct Columns
{
	ReturnSetInfo *result;
	const char **names; /* of the steps to the field */
	uint32 *lens;
	int depth;
} Columns;

static void fields_of_schema(Field *field, const DpValue *schema, bool itself);
static Field *field_below(Field *field, const char *s, uint32 len);
static uint32 schema_kinds(const DpValue *schema);
static uint32 kind_of_name(const char *s, uint32 len);
static uint32 kind_of_type(uint8 type);
static void put_columns(Columns *c, const Field *field, bool many);
static const char *column_type(uint32 kinds, const char **types);

/*
 * _polymorphic_columns(schemas bson[]) -> (name, path, type, types, many): the columns of views, a
 * row for each field in any of the schemas that is not a document with fields. types are the BSON
 * types that fit the column's type, NULL for all; many: the path contains an array.
 */
DP_FUNCTION(dp_polymorphic_columns);
Datum
dp_polymorphic_columns(PG_FUNCTION_ARGS)
{
	ArrayType *schemas = PG_GETARG_ARRAYTYPE_P(0);
	Field root = { 0 };
	Columns c;
	Datum *values;
	bool *nulls;
	int n;
	int i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	deconstruct_array(schemas, ARR_ELEMTYPE(schemas), -1, false, TYPALIGN_INT, &values, &nulls, &n);
	for (i = 0; i < n; i++)
	{
		DpValue schema;

		if (nulls[i])
			continue;
		schema = dp_value_of_document((struct varlena *) PG_DETOAST_DATUM_PACKED(values[i]));
		schema = schema_itself(&schema);
		if (schema.type == DP_TYPE_DOCUMENT)
			fields_of_schema(&root, &schema, false);
	}
	c.result = (ReturnSetInfo *) fcinfo->resultinfo;
	c.names = palloc(sizeof(char *) * DP_MAX_DEPTH);
	c.lens = palloc(sizeof(uint32) * DP_MAX_DEPTH);
	c.depth = 0;
	put_columns(&c, &root, false);
	return (Datum) 0;
}

/* Adds what a schema says of a field (itself) and of those inside of it. */
static void
fields_of_schema(Field *field, const DpValue *schema, bool itself)
{
	DpValue value;
	DpIter iter;

	check_stack_depth();
	if (itself)
	{
		uint32 kinds = schema_kinds(schema);

		/* one schema may narrow down what another one says */
		if (kinds != 0)
			field->kinds = field->kinds == 0 || (field->kinds & kinds) == 0 ? field->kinds | kinds
																			: field->kinds & kinds;
		field->many |= (kinds & KIND_ARRAY) != 0;
	}
	if (find_option(schema, "required", DP_TYPE_ARRAY, &value))
	{
		DpValue name;

		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &name))
		{
			if (name.type == DP_TYPE_STRING)
				(void) field_below(field, DP_STRING_DATA(&name), DP_STRING_LEN(&name));
		}
	}
	if (find_option(schema, "properties", DP_TYPE_DOCUMENT, &value))
	{
		DpElement property;

		dp_iter_init_value(&iter, &value);
		while (dp_iter_next(&iter, &property))
		{
			Field *below = field_below(field, property.name, property.namelen);

			if (property.value.type == DP_TYPE_DOCUMENT)
				fields_of_schema(below, &property.value, true);
		}
	}
	if (find_option(schema, "items", DP_TYPE_DOCUMENT, &value))
	{
		field->many = true;
		fields_of_schema(field, &value, false);
	}
	if (find_option(schema, "allOf", DP_TYPE_ARRAY, &value))
	{
		DpValue one;

		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &one))
		{
			if (one.type == DP_TYPE_DOCUMENT)
				fields_of_schema(field, &one, itself);
		}
	}
}

/* Returns the field inside another one, created if it is new. */
static Field *
field_below(Field *field, const char *s, uint32 len)
{
	Field **next;

	for (next = &field->below; *next != NULL; next = &(*next)->next)
	{
		if ((*next)->len == len && memcmp((*next)->name, s, len) == 0)
			return *next;
	}
	*next = palloc0(sizeof(Field));
	(*next)->name = pnstrdup(s, len);
	(*next)->len = len;
	return *next;
}

/* Returns the types of a value according to a schema; 0: not restricted. */
static uint32
schema_kinds(const DpValue *schema)
{
	uint32 kinds = 0;
	DpValue value;
	DpValue one;
	DpIter iter;

	if (dp_document_find(schema->data, schema->len, "bsonType", 8, &value) ||
		dp_document_find(schema->data, schema->len, "type", 4, &value))
	{
		if (value.type == DP_TYPE_STRING)
			return kind_of_name(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
		if (value.type != DP_TYPE_ARRAY)
			return 0;
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &one))
		{
			if (one.type == DP_TYPE_STRING)
				kinds |= kind_of_name(DP_STRING_DATA(&one), DP_STRING_LEN(&one));
		}
		return kinds;
	}
	if (find_option(schema, "enum", DP_TYPE_ARRAY, &value))
	{
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &one))
		{
			kinds |= kind_of_type(one.type);

			/* numbers of all types compare equal */
			if (dp_type_is_number(one.type))
				kinds |= KIND_NUMBER;
		}
	}
	return kinds;
}

/* A type as schemas name it. */
static uint32
kind_of_name(const char *s, uint32 len)
{
	static const struct
	{
		const char *name;
		uint32 kinds;
	} known[] = { { "string", KIND_STRING },   { "int", KIND_INT },
				  { "long", KIND_LONG },       { "double", KIND_DOUBLE },
				  { "decimal", KIND_DECIMAL }, { "number", KIND_NUMBER },
				  { "bool", KIND_BOOL },       { "boolean", KIND_BOOL },
				  { "date", KIND_DATE },       { "objectId", KIND_OBJECTID },
				  { "binData", KIND_BINARY },  { "object", KIND_OBJECT },
				  { "array", KIND_ARRAY },     { "null", KIND_NULL } };
	int i;

	for (i = 0; i < lengthof(known); i++)
	{
		if (strlen(known[i].name) == len && memcmp(known[i].name, s, len) == 0)
			return known[i].kinds;
	}
	return KIND_OTHER;
}

static uint32
kind_of_type(uint8 type)
{
	const char *name = dp_type_name(type);

	return kind_of_name(name, strlen(name));
}

/* Adds the columns of fields inside a field. */
static void
put_columns(Columns *c, const Field *field, bool many)
{
	const Field *below;

	check_stack_depth();
	if (c->depth == DP_MAX_DEPTH)
		return;
	for (below = field->below; below != NULL; below = below->next)
	{
		bool is_many = many || below->many;

		c->names[c->depth] = below->name;
		c->lens[c->depth] = below->len;
		c->depth++;

		/* an array is a column, and so are the fields of its elements */
		if (below->below == NULL || below->many || (below->kinds & ~(KIND_OBJECT | KIND_NULL)) != 0)
		{
			Datum values[5];
			bool nulls[5] = { false };
			StringInfoData name;
			StringInfoData path;
			const char *types;
			const char *type = column_type(below->kinds, &types);
			int i;

			initStringInfo(&name);
			initStringInfo(&path);
			for (i = 0; i < c->depth; i++)
			{
				if (i > 0)
					appendStringInfoChar(&name, '.');
				appendBinaryStringInfo(&name, c->names[i], c->lens[i]);
			}
			if (name.len >= NAMEDATALEN)
				name.data[pg_mbcliplen(name.data, name.len, NAMEDATALEN - 1)] = '\0';
			dp_path_to_text(&path, dp_path_of_names(c->depth, c->names, c->lens));
			if (is_many)
			{
				type = "bson_value";
				types = NULL;
			}
			values[0] = CStringGetTextDatum(name.data);
			values[1] = CStringGetTextDatum(path.data);
			values[2] = CStringGetTextDatum(type);
			nulls[3] = types == NULL;
			if (types != NULL)
				values[3] = CStringGetTextDatum(types);
			values[4] = BoolGetDatum(many);
			if (name.data[0] != '\0')
				tuplestore_putvalues(c->result->setResult, c->result->setDesc, values, nulls);
		}
		put_columns(c, below, is_many);
		c->depth--;
	}
}

/* The type of a column for values of these kinds; types: which they are, NULL for all. */
static const char *
column_type(uint32 kinds, const char **types)
{
	*types = NULL;
	kinds &= ~KIND_NULL;
	if (kinds == KIND_STRING)
	{
		*types = "string";
		return "text";
	}
	if (kinds == KIND_INT)
	{
		*types = "int";
		return "int4";
	}
	if (kinds != 0 && (kinds & ~(KIND_INT | KIND_LONG)) == 0)
	{
		*types = "int,long";
		return "int8";
	}
	if (kinds == KIND_DOUBLE)
	{
		*types = "double";
		return "float8";
	}
	if (kinds != 0 && (kinds & ~KIND_NUMBER) == 0)
	{
		*types = "int,long,double,decimal";
		return "numeric";
	}
	if (kinds == KIND_BOOL)
	{
		*types = "bool";
		return "bool";
	}
	if (kinds == KIND_DATE)
	{
		*types = "date";
		return "timestamptz";
	}
	if (kinds == KIND_OBJECTID)
	{
		*types = "objectId";
		return "objectid";
	}
	if (kinds == KIND_BINARY)
	{
		*types = "binData";
		return "bytea";
	}
	if (kinds == KIND_OBJECT)
	{
		*types = "object";
		return "bson";
	}
	return "bson_value";
}
