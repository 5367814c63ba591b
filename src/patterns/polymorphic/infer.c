/*
 * infer.c
 *		The polymorphic pattern: schemas inferred from documents.
 *
 * An aggregate reads all documents and counts, for each kind, a tree of the fields
 * in them: their number, their types, and their strings while these are few.  The
 * resulting schema is valid for all these documents: fields in all documents are
 * required, types are those found, and a few repeated strings are an enum.  The
 * common part of all kinds becomes a schema of its own.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "bson/builder.h"
#include "bson/compare.h"
#include "patterns/polymorphic/polymorphic.h"

/* The most strings of an enum */
#define MAX_ENUM 1000

/* Fields of one document, or kinds, beyond which no more are taken note of */
#define MAX_FIELDS 500
#define MAX_KINDS 200

/*
 * A document inside of another one with more fields than that is a map, and its fields are not
 * described
 */
#define MAP_FIELDS 50

/* Strings for an enum: maximal length, and minimal average number of occurrences */
#define ENUM_BYTES 100
#define ENUM_REPEATS 5

/* Counts for a path */
typedef struct Shape
{
	const char *name; /* of a field */
	uint32 namelen;
	int64 documents; /* in how many documents the field is; each counts once */
	int64 last;      /* the last of them */
	int64 values;
	int64 strings;
	int64 objects;
	bool types[256];
	struct Shape *below; /* fields of objects, in the order in which they were met */
	struct Shape *tail;
	int nbelow;
	struct Shape *next;
	struct Shape *items; /* elements of arrays */
	DpValue *distinct;   /* strings */
	int ndistinct;       /* -1: too many */
} Shape;

/* A kind of documents */
typedef struct Kind
{
	bool known; /* has the field */
	DpValue value;
	uint64 hash;
	Shape shape;
} Kind;

typedef struct Inference
{
	MemoryContext context;
	DpPath *parent;
	DpPath *field;
	int enum_max;
	int64 documents; /* a number for each object that is looked at */
	int nkinds;
	Kind *kinds[MAX_KINDS];
} Inference;

static Inference *inference_begin(FunctionCallInfo fcinfo, MemoryContext context);
static bool see_item(const DpValue *item, bool is_item, const DpPolyLocation *location, void *arg);
static Kind *kind_of(Inference *inference, bool known, const DpValue *value);
static void
see_object(Inference *inference, Shape *shape, const DpValue *object, const DpPath *except);
static void see_value(Inference *inference, Shape *shape, const DpValue *value);
static void see_string(Inference *inference, Shape *shape, const DpValue *value);
static Shape *shape_below(Shape *shape, const char *name, uint32 len, Shape *guess);
static void shape_merge(Shape *into, const Shape *from, int enum_max);
static void add_distinct(Shape *shape, const DpValue *value, int enum_max);
static void put_schema(DpBuilder *b, const Shape *shape, const Shape *common, int enum_max);
static void put_rules(DpBuilder *b, const Shape *shape, int enum_max);
static int value_compare(const void *a, const void *b);

#define APPEND(b, function, name, ...) function(b, name, sizeof(name) - 1, __VA_ARGS__)

/*
 * _polymorphic_infer_transfn(internal, doc bson, by text, enum_max int)
 */
DP_FUNCTION(dp_polymorphic_infer_transfn);
Datum
dp_polymorphic_infer_transfn(PG_FUNCTION_ARGS)
{
	Inference *inference = PG_ARGISNULL(0) ? NULL : (Inference *) PG_GETARG_POINTER(0);
	MemoryContext context;
	DpValue doc;
	MemoryContext old;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "_polymorphic_infer_transfn called in a context that is no aggregate's");
	if (inference == NULL)
		inference = inference_begin(fcinfo, context);
	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(inference);
	doc = dp_value_of_document(DP_GETARG_VARLENA(1));
	old = MemoryContextSwitchTo(inference->context);
	(void) dp_poly_each(inference->parent, &doc, see_item, inference);
	MemoryContextSwitchTo(old);
	PG_RETURN_POINTER(inference);
}

/* The state of an aggregate. */
static Inference *
inference_begin(FunctionCallInfo fcinfo, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	Inference *inference = palloc0(sizeof(Inference));
	text *by;
	DpPath *path;

	if (PG_ARGISNULL(2) || PG_ARGISNULL(3))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("by and enum_max must not be null")));
	by = PG_GETARG_TEXT_PP(2);
	path = dp_path_parse(VARDATA_ANY(by), VARSIZE_ANY_EXHDR(by));
	inference->context = context;
	inference->field =
		dp_path_of_name(path->steps[path->nsteps - 1].name, path->steps[path->nsteps - 1].namelen);
	path->nsteps--;
	if (path->nsteps > 0)
		inference->parent = path;
	inference->enum_max = PG_GETARG_INT32(3);
	if (inference->enum_max < 0 || inference->enum_max > MAX_ENUM)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("enum_max must be between 0 and %d", MAX_ENUM)));
	MemoryContextSwitchTo(old);
	return inference;
}

/* An item of a document. */
static bool
see_item(const DpValue *item, bool is_item, const DpPolyLocation *location, void *arg)
{
	Inference *inference = arg;
	DpValue value;
	Kind *kind;
	bool known;

	if (!is_item)
		return true;
	known = dp_field_find(item->data, item->len, inference->field->steps[0].name,
						  inference->field->steps[0].namelen, &value);
	kind = kind_of(inference, known, &value);
	see_object(inference, &kind->shape, item, inference->field);
	return true;
}

/* Returns the kind with a value of the field, created if it is new. */
static Kind *
kind_of(Inference *inference, bool known, const DpValue *value)
{
	uint64 hash = known ? dp_value_hash(value, 0) : 0;
	Kind *kind;
	uint8 *data;
	int i;

	for (i = 0; i < inference->nkinds; i++)
	{
		kind = inference->kinds[i];
		if (kind->known == known && kind->hash == hash &&
			(!known || dp_value_compare(&kind->value, value) == 0))
			return kind;
	}
	if (inference->nkinds == MAX_KINDS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("there are more than %d kinds of documents", MAX_KINDS),
						errhint("Another field probably distinguishes the kinds.")));
	kind = palloc0(sizeof(Kind));
	kind->known = known;
	kind->hash = hash;
	if (known)
	{
		kind->value = *value;
		data = palloc(Max(value->len, 1));
		memcpy(data, value->data, value->len);
		kind->value.data = data;
	}
	inference->kinds[inference->nkinds++] = kind;
	return kind;
}

/* A document, with its fields but one. */
static void
see_object(Inference *inference, Shape *shape, const DpValue *object, const DpPath *except)
{
	DpIter iter;
	DpElement field;
	Shape *last = NULL;
	int64 document = ++inference->documents;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	shape->objects++;
	dp_iter_init_value(&iter, object);
	while (dp_iter_next(&iter, &field))
	{
		Shape *below;

		if (except != NULL && field.namelen == except->steps[0].namelen &&
			memcmp(field.name, except->steps[0].name, field.namelen) == 0)
			continue;
		if (except != NULL && inference->parent == NULL && field.namelen == 3 &&
			memcmp(field.name, "_id", 3) == 0)
			continue;
		below = shape_below(shape, field.name, field.namelen, last);
		if (below == NULL)
			continue;
		last = below;
		if (below->last != document)
		{
			below->last = document;
			below->documents++;
		}
		see_value(inference, below, &field.value);
	}
}

static void
see_value(Inference *inference, Shape *shape, const DpValue *value)
{
	shape->values++;
	shape->types[value->type] = true;
	switch (value->type)
	{
		case DP_TYPE_DOCUMENT:
			see_object(inference, shape, value, NULL);
			break;
		case DP_TYPE_ARRAY:
		{
			DpIter iter;
			DpValue element;

			check_stack_depth();
			if (shape->items == NULL)
				shape->items = palloc0(sizeof(Shape));
			dp_iter_init_value(&iter, value);
			while (dp_iter_next_value(&iter, &element))
				see_value(inference, shape->items, &element);
		}
		break;
		case DP_TYPE_STRING:
			see_string(inference, shape, value);
			break;
	}
}

/* A string: one of few, perhaps. */
static void
see_string(Inference *inference, Shape *shape, const DpValue *value)
{
	shape->strings++;
	add_distinct(shape, value, inference->enum_max);
}

static void
add_distinct(Shape *shape, const DpValue *value, int enum_max)
{
	uint8 *data;
	int i;

	if (shape->ndistinct < 0)
		return;
	for (i = 0; i < shape->ndistinct; i++)
	{
		if (dp_value_identical(&shape->distinct[i], value))
			return;
	}
	if (shape->ndistinct >= enum_max || value->len > ENUM_BYTES)
	{
		shape->ndistinct = -1;
		return;
	}
	if (shape->distinct == NULL)
		shape->distinct = palloc(sizeof(DpValue) * enum_max);
	data = palloc(value->len);
	memcpy(data, value->data, value->len);
	shape->distinct[shape->ndistinct] = *value;
	shape->distinct[shape->ndistinct++].data = data;
}

/*
 * The field of a name; NULL if it would be one too many.  The one after guess
 * is looked at first, because documents of a kind have their fields in one order.
 */
static Shape *
shape_below(Shape *shape, const char *name, uint32 len, Shape *guess)
{
	Shape *below = guess != NULL ? guess->next : shape->below;
	char *copy;

	if (below != NULL && below->namelen == len && memcmp(below->name, name, len) == 0)
		return below;
	for (below = shape->below; below != NULL; below = below->next)
	{
		if (below->namelen == len && memcmp(below->name, name, len) == 0)
			return below;
	}
	if (shape->nbelow == MAX_FIELDS)
		return NULL;
	below = palloc0(sizeof(Shape));
	copy = palloc(len + 1);
	memcpy(copy, name, len);
	copy[len] = '\0';
	below->name = copy;
	below->namelen = len;
	if (shape->tail != NULL)
		shape->tail->next = below;
	else
		shape->below = below;
	shape->tail = below;
	shape->nbelow++;
	return below;
}

/* ---------------------------------------------------------------- schemas */

/* Merges the counts of two paths. */
static void
shape_merge(Shape *into, const Shape *from, int enum_max)
{
	const Shape *field;
	Shape *last = NULL;
	int i;

	check_stack_depth();
	into->documents += from->documents;
	into->values += from->values;
	into->strings += from->strings;
	into->objects += from->objects;
	for (i = 0; i < 256; i++)
		into->types[i] |= from->types[i];
	for (field = from->below; field != NULL; field = field->next)
	{
		Shape *below = shape_below(into, field->name, field->namelen, last);

		if (below == NULL)
			break;
		shape_merge(below, field, enum_max);
		last = below;
	}
	if (from->items != NULL)
	{
		if (into->items == NULL)
			into->items = palloc0(sizeof(Shape));
		shape_merge(into->items, from->items, enum_max);
	}
	if (from->ndistinct < 0)
		into->ndistinct = -1;
	for (i = 0; i < from->ndistinct; i++)
		add_distinct(into, &from->distinct[i], enum_max);
}

/*
 * _polymorphic_infer_finalfn(internal) -> bson: {common: schema, variants:
 * [{value, documents, schema}, ...]}
 */
DP_FUNCTION(dp_polymorphic_infer_finalfn);
Datum
dp_polymorphic_infer_finalfn(PG_FUNCTION_ARGS)
{
	Inference *inference = PG_ARGISNULL(0) ? NULL : (Inference *) PG_GETARG_POINTER(0);
	Shape common = { 0 };
	DpBuilder b;
	int i;

	if (inference == NULL)
		PG_RETURN_NULL();

	/* fields that all kinds have; of one kind nothing is common */
	if (inference->nkinds > 1)
	{
		const Shape *field;

		for (field = inference->kinds[0]->shape.below; field != NULL; field = field->next)
		{
			Shape all = { 0 };
			Shape *below;

			for (i = 0; i < inference->nkinds; i++)
			{
				const Shape *same;

				for (same = inference->kinds[i]->shape.below; same != NULL; same = same->next)
				{
					if (same->namelen == field->namelen &&
						memcmp(same->name, field->name, field->namelen) == 0)
						break;
				}
				if (same == NULL)
					break;
				shape_merge(&all, same, inference->enum_max);
			}
			if (i < inference->nkinds)
				continue;
			below = shape_below(&common, field->name, field->namelen, common.tail);
			shape_merge(below, &all, inference->enum_max);
		}
		for (i = 0; i < inference->nkinds; i++)
			common.objects += inference->kinds[i]->shape.objects;
	}

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	APPEND(&b, dp_builder_append_int64, "documents", common.objects);
	if (common.below != NULL)
	{
		dp_builder_begin_document_field(&b, "common", 6);
		put_schema(&b, &common, NULL, inference->enum_max);
		dp_builder_end(&b);
	}
	dp_builder_begin_array_field(&b, "variants", 8);
	for (i = 0; i < inference->nkinds; i++)
	{
		const Kind *kind = inference->kinds[i];

		dp_builder_begin_document_field(&b, NULL, 0);
		if (kind->known)
			APPEND(&b, dp_builder_append_value, "value", &kind->value);
		APPEND(&b, dp_builder_append_int64, "documents", kind->shape.objects);
		dp_builder_begin_document_field(&b, "schema", 6);
		put_schema(&b, &kind->shape, &common, inference->enum_max);
		dp_builder_end(&b);
		dp_builder_end(&b);
	}
	dp_builder_end(&b);
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/* Appends the rules of an object to the document that is open; those of common are left out. */
static void
put_schema(DpBuilder *b, const Shape *shape, const Shape *common, int enum_max)
{
	const Shape *field;
	const Shape *other;
	bool required = false;
	int pass;

	check_stack_depth();
	for (pass = 0; pass < 2; pass++)
	{
		bool open = false;

		for (field = shape->below; field != NULL; field = field->next)
		{
			for (other = common != NULL ? common->below : NULL; other != NULL; other = other->next)
			{
				if (other->namelen == field->namelen &&
					memcmp(other->name, field->name, field->namelen) == 0)
					break;
			}
			if (other != NULL)
				continue;
			if (pass == 0)
			{
				if (field->documents < shape->objects)
					continue;
				if (!required)
					dp_builder_begin_array_field(b, "required", 8);
				required = true;
				dp_builder_append_string(b, NULL, 0, field->name, field->namelen);
				continue;
			}
			if (!open)
				dp_builder_begin_document_field(b, "properties", 10);
			open = true;
			dp_builder_begin_document_field(b, field->name, field->namelen);
			put_rules(b, field, enum_max);
			dp_builder_end(b);
		}
		if ((pass == 0 && required) || open)
			dp_builder_end(b);
	}
}

/* Appends the rules of a value to the document that is open. */
static void
put_rules(DpBuilder *b, const Shape *shape, int enum_max)
{
	static const uint8 numbers[] = { DP_TYPE_INT32, DP_TYPE_INT64, DP_TYPE_DOUBLE,
									 DP_TYPE_DECIMAL128 };
	const char *names[256];
	int n = 0;
	int nnumbers = 0;
	int i;

	for (i = 0; i < lengthof(numbers); i++)
		nnumbers += shape->types[numbers[i]];
	if (nnumbers > 1)
		names[n++] = "number";
	for (i = 0; i < 256; i++)
	{
		if (shape->types[i] && !(nnumbers > 1 && dp_type_is_number(i)))
			names[n++] = dp_type_name(i);
	}
	if (n == 1)
		APPEND(b, dp_builder_append_string, "bsonType", names[0], strlen(names[0]));
	else if (n > 1)
	{
		dp_builder_begin_array_field(b, "bsonType", 8);
		for (i = 0; i < n; i++)
			dp_builder_append_string(b, NULL, 0, names[i], strlen(names[i]));
		dp_builder_end(b);
	}

	/* few strings, each often, and nothing else */
	if (shape->ndistinct > 0 && shape->strings >= (int64) shape->ndistinct * ENUM_REPEATS &&
		n == (shape->types[DP_TYPE_NULL] ? 2 : 1))
	{
		qsort(shape->distinct, shape->ndistinct, sizeof(DpValue), value_compare);
		dp_builder_begin_array_field(b, "enum", 4);
		for (i = 0; i < shape->ndistinct; i++)
			dp_builder_append_value(b, NULL, 0, &shape->distinct[i]);
		if (shape->types[DP_TYPE_NULL])
			dp_builder_append_null(b, NULL, 0);
		dp_builder_end(b);
	}

	/*
	 * A field takes two levels of a schema, elements one, and a list of types one more; deeper
	 * levels are omitted.
	 */
	if (shape->types[DP_TYPE_DOCUMENT] && shape->nbelow <= MAP_FIELDS &&
		b->depth + 3 <= DP_MAX_DEPTH)
		put_schema(b, shape, NULL, enum_max);
	if (shape->items != NULL && shape->items->values > 0 && b->depth + 2 <= DP_MAX_DEPTH)
	{
		dp_builder_begin_document_field(b, "items", 5);
		put_rules(b, shape->items, enum_max);
		dp_builder_end(b);
	}
}

static int
value_compare(const void *a, const void *b)
{
	return dp_value_compare(a, b);
}
