/*
 * projection.c
 *		Projections: compiling and applying them.
 *
 * A projection becomes a tree of the names that it mentions.  Applying it walks
 * the tree and the document together: fields that the tree does not mention are
 * left out (inclusion) or copied (exclusion), and what is computed is appended.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/builder.h"
#include "bson/limits.h"
#include "bson/names.h"
#include "bson/path.h"
#include "mql/expression_node.h"
#include "mql/projection.h"
#include "mql/spec.h"

typedef enum FieldKind
{
	FIELD_FIELDS, /* has its own fields below */
	FIELD_INCLUDE,
	FIELD_EXCLUDE,
	FIELD_COMPUTE,
	FIELD_SLICE,
	FIELD_ELEM_MATCH
} FieldKind;

typedef struct Field
{
	const char *name;
	uint32 namelen;
	uint8 kind;      /* FieldKind */
	bool positional; /* the positional operator stands here or below */
	bool computes;   /* FIELD_COMPUTE here or below */
	union
	{
		struct Fields *below; /* FIELD_FIELDS */
		struct Slice *slice;  /* FIELD_SLICE */
		DpExpr *expr;         /* FIELD_COMPUTE */
		DpFilter *filter;     /* FIELD_ELEM_MATCH */
	};
} Field;

/* Fields below another; there may be very many */
typedef struct Fields
{
	DpNames names;
	Field *fields;
	int nkept;      /* those that are searched in the document */
	int ncomputing; /* those that have fields and compute */
} Fields;

typedef struct Slice
{
	int64 skip; /* negative: from the end */
	int64 take;
	bool from_end; /* the last take elements */
} Slice;

struct DpProjection
{
	bool inclusion;
	bool empty; /* nothing to do */
	Field root;
	int flags;
	const char *positional; /* the path in front of ".$", or NULL */
	uint32 positional_len;
};

/* While a projection is compiled */
typedef struct Compile
{
	DpProjection *p;
	bool has_kind;  /* whether it is an inclusion is known */
	bool has_match; /* $elemMatch occurs, with both kinds */
	char id;        /* of _id alone: '+', '-' or 0 */
} Compile;

/* While a projection is applied */
typedef struct Apply
{
	DpProjection *p;
	DpExprState state;
	DpBuilder b;
	int32 position; /* the position for the positional operator */
} Apply;

static void compile_fields(Compile *c, const DpValue *spec, Field *parent, const char *path);
static void compile_field(Compile *c, const DpElement *element, Field *parent, const char *path);
static void apply_fields(Apply *a, const Field *parent, const DpValue *doc, bool positional);
static bool apply_value(Apply *a, const Field *field, const DpValue *value, bool positional);

/* ---------------------------------------------------------------- compiling */

/*
 * Raises INVALID_PARAMETER_VALUE about a field.
 */
static void projection_error(const char *path, const char *fmt, ...) pg_attribute_printf(2, 3)
	pg_attribute_noreturn();

static void
projection_error(const char *path, const char *fmt, ...)
{
	char message[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid projection: %s", message),
			 errdetail("At \"%s\" in the specification.", path)));
}

/* Records that a field includes or excludes; all must agree. */
static void
decide(Compile *c, bool inclusion, const char *path)
{
	if (c->has_kind && c->p->inclusion != inclusion)
		projection_error(path, "fields cannot be %s where others are %s",
						 inclusion ? "included or computed" : "excluded",
						 inclusion ? "excluded" : "included or computed");
	c->has_kind = true;
	c->p->inclusion = inclusion;
}

/*
 * The field of a name below a parent, made when missing.  Others may move when one is made.
 */
static Field *
field_below(Field *parent, const char *name, uint32 namelen, bool *is_new)
{
	Fields *below = parent->below;
	uint32 room;
	uint32 at;
	bool found;

	if (below == NULL)
		below = parent->below = palloc0(sizeof(Fields));
	room = below->names.room;
	at = dp_names_add(&below->names, name, namelen, &found);
	*is_new = !found;
	if (found)
		return &below->fields[at];
	if (room < below->names.room)
	{
		Size size = sizeof(Field) * (Size) below->names.room;

		below->fields = room == 0 ? palloc(size) : repalloc_huge(below->fields, size);
	}
	below->fields[at] = (Field){ .name = name, .namelen = namelen };
	return &below->fields[at];
}

/* A number of elements: the fraction is cut off, and what is too large is limited. */
static int64
slice_number(const DpValue *v)
{
	double d = dp_number_to_double(v);

	return isnan(d) ? 0 : (int64) Max(Min(d, PG_INT32_MAX), -PG_INT32_MAX);
}

/*
 * {$slice: n} or {$slice: [skip, n]}: the form of queries.  Returns false if it
 * is the one of expressions.
 */
static bool
compile_slice(Field *field, const DpValue *arg, const char *path)
{
	Slice slice = { 0 };
	DpValue *parts;

	if (dp_type_is_number(arg->type))
	{
		slice.take = slice_number(arg);
		slice.from_end = slice.take < 0;
		slice.take = llabs(slice.take);
	}
	else
	{
		if (arg->type != DP_TYPE_ARRAY || dp_array_values(arg, &parts) != 2 ||
			!dp_type_is_number(parts[0].type) || parts[1].type == DP_TYPE_NULL)
			return false;
		if (!dp_type_is_number(parts[1].type))
			projection_error(path, "$slice needs numbers");
		slice.skip = slice_number(&parts[0]);
		slice.take = slice_number(&parts[1]);
		if (slice.take <= 0)
			projection_error(path, "$slice needs a number of elements that is greater than 0");
	}
	field->kind = FIELD_SLICE;
	field->slice = palloc(sizeof(Slice));
	*field->slice = slice;
	return true;
}

/* The last part of a path. */
static void
compile_leaf(Compile *c, Field *field, const DpValue *value, Field *parent, const char *path,
			 bool positional)
{
	bool stage = (c->p->flags & DP_EXPR_STAGE) != 0;
	bool is_id = parent == &c->p->root && field->namelen == 3 && memcmp(field->name, "_id", 3) == 0;
	DpElement element;
	DpIter iter;

	if (value->type == DP_TYPE_BOOL || dp_type_is_number(value->type))
	{
		bool include = dp_value_is_true(value);

		if (positional && !include)
			projection_error(path, "the positional operator can only include");
		field->kind = include ? FIELD_INCLUDE : FIELD_EXCLUDE;
		if (is_id && !positional)
			c->id = include ? '+' : '-';
		else
			decide(c, include, path);
		return;
	}
	if (positional)
		projection_error(path, "the positional operator needs 1 or true");
	if (value->type == DP_TYPE_DOCUMENT)
	{
		dp_iter_init_value(&iter, value);
		if (!dp_iter_next(&iter, &element))
			projection_error(path, "a document that is empty says nothing");
		if (element.name[0] == '$' && dp_array_count(value->data, value->len) == 1)
		{
			if (!stage && strcmp(element.name, "$slice") == 0 &&
				compile_slice(field, &element.value, path))
				return;
			if (strcmp(element.name, "$meta") == 0)
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("$meta is not supported"),
						 errdetail("At \"%s\" in the specification.", path),
						 errhint("%s", dp_elsewhere_hint("$meta"))));
			if (!stage && strcmp(element.name, "$elemMatch") == 0)
			{
				DpElement where = { path, strlen(path), *value };
				DpLocation location = dp_location_field(NULL, &where);
				DpLocation inner = dp_location_field(&location, &element);

				if (parent != &c->p->root)
					projection_error(
						path, "$elemMatch can only be used for a field of the document itself");
				if (element.value.type != DP_TYPE_DOCUMENT)
					projection_error(path, "$elemMatch needs a document, not %s",
									 dp_type_name(element.value.type));
				c->has_match = true;
				field->kind = FIELD_ELEM_MATCH;
				field->filter =
					dp_filter_compile(&element.value,
									  DP_FILTER_ELEMENT |
										  ((c->p->flags & DP_EXPR_IMMUTABLE) ? DP_FILTER_IMMUTABLE
																			 : 0),
									  &inner);
				return;
			}
		}
		else if (element.name[0] != '$')
		{
			field->kind = FIELD_FIELDS;
			compile_fields(c, value, field, path);
			return;
		}
	}
	decide(c, true, path);
	field->kind = FIELD_COMPUTE;
	field->computes = true;
	field->expr = dp_expr_compile(value, c->p->flags, path);
}

/* A field of a specification: the parts of its name lead to the field that its value specifies. */
static void
compile_field(Compile *c, const DpElement *element, Field *parent, const char *prefix)
{
	const char *path = *prefix ? psprintf("%s.%s", prefix, element->name) : element->name;
	const char *s = element->name;
	Field *chain[201];
	int depth = 0;
	bool positional = false;

	for (;;)
	{
		size_t len = strcspn(s, ".");
		bool is_new;
		Field *field;

		if (len == 0)
			projection_error(path, "a part of the path is empty");
		if (s[0] == '$')
			projection_error(path,
							 len == 1
								 ? "the positional operator can only stand at the end of a path"
								 : "the name of a field cannot begin with a dollar");
		if (depth == 200)
			projection_error(path, "the path has more than 200 parts");
		positional = strcmp(s + len, ".$") == 0 && (c->p->flags & DP_EXPR_STAGE) == 0;
		field = field_below(parent, s, len, &is_new);
		chain[depth++] = field;
		if (s[len] == '\0' || positional)
		{
			/* {a: {b: 1}, "a.c": 1} is well, {"a.b": 1, a: 1} is not */
			bool nested =
				element->value.type == DP_TYPE_DOCUMENT && !is_new && field->kind == FIELD_FIELDS;

			if (nested)
			{
				DpIter iter;
				DpElement first;

				dp_iter_init_value(&iter, &element->value);
				nested = dp_iter_next(&iter, &first) && first.name[0] != '$';
			}
			if (!is_new && !nested)
				projection_error(path, "the path collides with another one");
			if (positional)
			{
				if (c->p->positional != NULL)
					projection_error(path, "there can be only one positional operator");
				c->p->positional = path;
				c->p->positional_len = strlen(path) - 2;
			}
			compile_leaf(c, field, &element->value, parent, path, positional);
			break;
		}
		if (!is_new && field->kind != FIELD_FIELDS)
			projection_error(path, "the path collides with another one");
		field->kind = FIELD_FIELDS;
		parent = field;
		s += len + 1;
	}
	for (int i = 0; i < depth; i++)
	{
		chain[i]->positional = chain[i]->positional || positional || chain[depth - 1]->positional;
		chain[i]->computes = chain[i]->computes || chain[depth - 1]->computes;
	}
}

static void
compile_fields(Compile *c, const DpValue *spec, Field *parent, const char *path)
{
	DpIter iter;
	DpElement element;

	check_stack_depth();
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &element))
		compile_field(c, &element, parent, path);
	for (uint32 i = 0; i < parent->below->names.n; i++)
	{
		const Field *f = &parent->below->fields[i];

		parent->computes = parent->computes || f->computes;
		parent->positional = parent->positional || f->positional;
	}
}

/*
 * Counts, for each field, those below it that the document may have.
 */
static void
count_kept(Fields *fields)
{
	for (uint32 i = 0; i < fields->names.n; i++)
	{
		Field *f = &fields->fields[i];

		if (f->kind == FIELD_FIELDS)
			count_kept(f->below);
		if (f->kind != FIELD_COMPUTE && f->kind != FIELD_ELEM_MATCH)
			fields->nkept++;
		if (f->kind == FIELD_FIELDS && f->computes)
			fields->ncomputing++;
	}
}

DpProjection *
dp_projection_compile(const DpValue *spec, int flags)
{
	Compile c = { palloc0(sizeof(DpProjection)) };
	DpProjection *p = c.p;
	bool is_new;
	Field *id;

	p->flags = flags;
	p->root.kind = FIELD_FIELDS;
	p->root.below = palloc0(sizeof(Fields));
	if (spec->type != DP_TYPE_DOCUMENT)
		projection_error("", "it must be a document, not %s", dp_type_name(spec->type));
	compile_fields(&c, spec, &p->root, "");
	p->empty = p->root.below->names.n == 0;
	if (!c.has_kind)
		p->inclusion = c.id == '+' || c.has_match;
	if (p->inclusion && !p->empty)
	{
		/* _id comes along unless it is excluded */
		id = field_below(&p->root, "_id", 3, &is_new);
		if (is_new)
			id->kind = FIELD_INCLUDE;
	}
	count_kept(p->root.below);
	return p;
}

bool
dp_projection_includes(const DpProjection *p)
{
	return p->inclusion && !p->empty;
}

/* ---------------------------------------------------------------- applying */

/*
 * Appends the part of an array that $slice takes.
 */
static void
append_slice(DpBuilder *b, const Field *field, const DpValue *array)
{
	int64 size = dp_array_count(array->data, array->len);
	const Slice *slice = field->slice;
	int64 from = slice->skip;
	DpIter iter;
	DpValue v;

	if (slice->from_end)
		from = Max(size - slice->take, 0);
	else if (from < 0)
		from = Max(size + from, 0);
	dp_builder_begin_array_field(b, field->name, field->namelen);
	dp_iter_init_value(&iter, array);
	for (int64 i = 0; i < from + slice->take && dp_iter_next_value(&iter, &v); i++)
		if (i >= from)
			dp_builder_append_value(b, NULL, 0, &v);
	dp_builder_end(b);
}

/*
 * Appends an array of the one element that the positional operator means.
 */
static void
append_positional(Apply *a, const Field *field, const DpValue *array)
{
	DpValue v;

	dp_builder_begin_array_field(&a->b, field->name, field->namelen);
	if (a->position < 0 || !dp_array_element(array->data, array->len, a->position, &v))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the filter matches no element for the positional operator"),
						errdetail("At \"%s\" in the specification.", a->p->positional)));
	if (field->kind == FIELD_INCLUDE)
		dp_builder_append_value(&a->b, NULL, 0, &v);
	else
		(void) apply_value(a, field, &v, false);
	dp_builder_end(&a->b);
}

/*
 * Appends a value that has fields below it in the projection, with the field's
 * name or, in an array, a position.  Returns false if nothing was appended.
 */
static bool
apply_value(Apply *a, const Field *field, const DpValue *value, bool positional)
{
	DpIter iter;
	DpValue element;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	switch (value->type)
	{
		case DP_TYPE_DOCUMENT:
			dp_builder_begin_document_field(&a->b, field->name, field->namelen);
			apply_fields(a, field, value, positional);
			dp_builder_end(&a->b);
			return true;
		case DP_TYPE_ARRAY:
			if (positional)
			{
				append_positional(a, field, value);
				return true;
			}
			dp_builder_begin_array_field(&a->b, field->name, field->namelen);
			dp_iter_init_value(&iter, value);
			while (dp_iter_next_value(&iter, &element))
				(void) apply_value(a, field, &element, false);
			dp_builder_end(&a->b);
			return true;
		default:
			/* there is nothing in it to include, or to exclude */
			if (a->p->inclusion)
				return false;
			dp_builder_append_value(&a->b, field->name, field->namelen, value);
			return true;
	}
}

/*
 * Appends what the fields compute, for a location where the document has nothing
 * to walk through.
 */
static void
append_computed(Apply *a, const Field *field)
{
	DpValue v;

	CHECK_FOR_INTERRUPTS();
	if (field->kind == FIELD_COMPUTE)
	{
		if (dp_expr_eval(field->expr, &a->state, &v))
			dp_builder_append_value(&a->b, field->name, field->namelen, &v);
	}
	else if (field->kind == FIELD_FIELDS && field->computes)
	{
		dp_builder_begin_document_field(&a->b, field->name, field->namelen);
		for (uint32 i = 0; i < field->below->names.n; i++)
			append_computed(a, &field->below->fields[i]);
		dp_builder_end(&a->b);
	}
}

/*
 * Appends the first element that $elemMatch matches, as an array of one.
 */
static void
append_elem_match(Apply *a, const Field *field, const DpValue *array)
{
	DpValue v;
	DpIter iter;

	CHECK_FOR_INTERRUPTS();
	if (array->type != DP_TYPE_ARRAY)
		return;
	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &v))
	{
		if (dp_filter_match_value(field->filter, &v))
		{
			dp_builder_begin_array_field(&a->b, field->name, field->namelen);
			dp_builder_append_value(&a->b, NULL, 0, &v);
			dp_builder_end(&a->b);
			return;
		}
	}
}

/*
 * The position of the field of the projection with the name of an element, or
 * -1.  The order is often that of the projection: of a few names the one
 * behind the last is tried first.
 */
static int
field_find(const Fields *fields, uint32 hint, const DpElement *element)
{
	const DpNames *names = &fields->names;

	if (names->slots != NULL)
		return dp_names_find(names, element->name, element->namelen);
	for (uint32 i = 0, at = hint; i < names->n; i++, at++)
	{
		if (at >= names->n)
			at = 0;
		if (names->names[at].len == element->namelen &&
			memcmp(names->names[at].name, element->name, element->namelen) == 0)
			return (int) at;
	}
	return -1;
}

/*
 * Appends the fields of a document that the projection leaves, and those that
 * it computes.  Runs of fields that stay are copied together.
 */
static void
apply_fields(Apply *a, const Field *parent, const DpValue *doc, bool positional)
{
	bool inclusion = a->p->inclusion;
	const Fields *fields = parent->below;
	uint32 hint = 0;
	bool few[16];
	bool *seen = NULL; /* those that have fields, compute and were found */
	int left = fields->nkept;
	const uint8 *run = NULL; /* where a run of fields to be copied begins */
	DpIter iter;
	DpElement element;

	if (fields->ncomputing > 0)
	{
		seen = fields->names.n <= lengthof(few) ? few : palloc(fields->names.n);
		memset(seen, 0, fields->names.n);
	}
	dp_iter_init_value(&iter, doc);
	for (;;)
	{
		const uint8 *start = iter.next;
		const Field *field;
		bool copy;
		int at;

		if ((inclusion && left == 0) || !dp_iter_next(&iter, &element))
		{
			if (run != NULL)
				dp_builder_append_elements(&a->b, run, start - run);
			break;
		}

		at = field_find(fields, hint, &element);
		field = at < 0 ? NULL : &fields->fields[at];
		if (field == NULL)
			copy = !inclusion;
		else
		{
			hint = (uint32) at + 1;
			left--;
			copy = (field->kind == FIELD_INCLUDE &&
					!(positional && field->positional && element.value.type == DP_TYPE_ARRAY)) ||
				   (field->kind == FIELD_SLICE && element.value.type != DP_TYPE_ARRAY);
		}
		if (copy)
		{
			if (run == NULL)
				run = start;
			continue;
		}
		if (run != NULL)
			dp_builder_append_elements(&a->b, run, start - run);
		run = NULL;
		if (field == NULL)
			continue;
		switch (field->kind)
		{
			case FIELD_SLICE:
				append_slice(&a->b, field, &element.value);
				break;
			case FIELD_INCLUDE:
				append_positional(a, field, &element.value);
				break;
			case FIELD_FIELDS:
				if (apply_value(a, field, &element.value, positional && field->positional) &&
					field->computes)
					seen[at] = true;
				break;
			case FIELD_EXCLUDE:
				break;
			case FIELD_ELEM_MATCH:
				if (!inclusion)
					append_elem_match(a, field, &element.value);
				/* FALLTHROUGH */
			case FIELD_COMPUTE:
				left++; /* these are not counted */
				break;
		}
	}

	if (!inclusion)
		return;
	for (uint32 i = 0; i < fields->names.n; i++)
	{
		const Field *f = &fields->fields[i];
		DpValue array;

		if (f->kind == FIELD_ELEM_MATCH &&
			dp_field_find(doc->data, doc->len, f->name, f->namelen, &array))
			append_elem_match(a, f, &array);
		if (seen == NULL || !seen[i])
			append_computed(a, f);
	}
}

/*
 * Finds the element that the positional operator means: the array is the first
 * one on its path.
 */
static void
find_position(Apply *a, const DpValue *doc, DpFilter *filter)
{
	const char *path = a->p->positional;
	uint32 end = 0;
	DpValue v = *doc;

	a->position = -1;
	if (filter == NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the positional operator needs a filter"),
						errdetail("At \"%s\" in the specification.", path)));
	if (dp_filter_has_expr(filter))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the positional operator needs a filter without $expr"),
						errdetail("At \"%s\" in the specification.", path)));
	while (v.type == DP_TYPE_DOCUMENT && end < a->p->positional_len)
	{
		uint32 from = end == 0 ? 0 : end + 1;

		end = from;
		while (end < a->p->positional_len && path[end] != '.')
			end++;
		if (!dp_field_find(v.data, v.len, path + from, end - from, &v))
			return;
	}
	if (v.type == DP_TYPE_ARRAY && !dp_filter_match_position(filter, doc, path, end, &a->position))
		a->position = -1;
}

struct varlena *
dp_projection_apply(DpProjection *p, const DpValue *doc, DpFilter *filter)
{
	Apply a;

	if (p->empty)
		return NULL;
	a.p = p;
	a.position = -1;
	if (p->positional != NULL)
		find_position(&a, doc, filter);
	dp_expr_state_init(&a.state, doc);
	dp_builder_init(&a.b, p->inclusion ? Min(doc->len, 4096) : doc->len);
	dp_builder_limit(&a.b, dp_max_document_size);
	dp_builder_begin_document(&a.b);
	apply_fields(&a, &p->root, doc, p->positional != NULL);
	dp_builder_end(&a.b);
	if (p->root.computes)
	{
		DpValue built = dp_builder_view(&a.b, DP_TYPE_DOCUMENT);

		dp_check_value_depth(&built);
	}
	if (a.b.len - a.b.head == doc->len && memcmp(a.b.buf + a.b.head, doc->data, doc->len) == 0)
	{
		dp_builder_free(&a.b);
		return NULL;
	}
	return dp_builder_finish_bson(&a.b);
}

/* ---------------------------------------------------------------- SQL */

/* The cache between calls */
typedef struct ProjectCache
{
	DpSpecCache projection;
	DpSpecCache filter;
} ProjectCache;

/* Compiles for dp_spec_cached(). */
static void *
project_compile(const DpValue *spec, void *arg)
{
	return dp_projection_compile(spec, *(bool *) arg ? DP_EXPR_IMMUTABLE : 0);
}

/* Both functions; a projection that is immutable depends on neither the clock nor chance. */
static Datum
project_call(FunctionCallInfo fcinfo, bool immutable)
{
	ProjectCache *cache = fcinfo->flinfo->fn_extra;
	DpProjection *p;
	DpFilter *filter = NULL;
	DpValue doc;
	struct varlena *result;
	int filter_flags = DP_FILTER_DOCUMENT | (immutable ? DP_FILTER_IMMUTABLE : 0);

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_NULL();
	if (cache == NULL)
		cache = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(ProjectCache));
	p = dp_spec_cached(&cache->projection, fcinfo, 1, project_compile, &immutable);
	if (!PG_ARGISNULL(2))
		filter = dp_spec_cached(&cache->filter, fcinfo, 2, dp_filter_compile_spec, &filter_flags);
	doc = dp_value_of_document(DP_GETARG_VARLENA(0));
	result = dp_projection_apply(p, &doc, filter);
	if (result == NULL)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_POINTER(result);
}

/*
 * bson_project(doc bson, projection bson, filter bson) -> bson
 */
DP_FUNCTION(dp_bson_project);
Datum
dp_bson_project(PG_FUNCTION_ARGS)
{
	return project_call(fcinfo, false);
}

/* bson_project_immutable, with the same arguments */
DP_FUNCTION(dp_bson_project_immutable);
Datum
dp_bson_project_immutable(PG_FUNCTION_ARGS)
{
	return project_call(fcinfo, true);
}
