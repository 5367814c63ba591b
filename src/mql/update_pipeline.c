/*
 * update_pipeline.c
 *		Updates that are arrays of stages: $set (or $addFields), $unset,
 *		$project, $replaceWith and $replaceRoot, with expressions.
 *
 * The stages that add and take away fields are trees of paths, as projections
 * are: a path leads into the documents of an array, and what is neither a
 * document nor an array gives way to a document where something is put into it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/limits.h"
#include "bson/names.h"
#include "mql/expression.h"
#include "mql/projection.h"
#include "mql/update_tree.h"

/* So many stages may leave their memory to the end. */
#define FEW_STAGES 4

/* A part of a path of $set or $unset */
typedef struct StageField
{
	const char *name;
	uint32 namelen;
	DpExpr *expr;                 /* what is put at the path, or NULL: */
	bool removes;                 /* the field is removed, or there are */
	DpNames names;                /* of the fields inside it */
	struct StageField **children; /* those fields */
	uint32 room;
} StageField;

typedef struct UpdateStage
{
	/* one of these */
	StageField *fields;
	DpExpr *replacement;
	DpProjection *projection;
	const char *name;
} UpdateStage;

struct DpUpdatePipeline
{
	int nstages;
	UpdateStage stages[FLEXIBLE_ARRAY_MEMBER];
};

/* A kind of stage */
typedef struct StageOperator
{
	const char *name;
	void (*compile)(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *location);
} StageOperator;

static void
compile_stage(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *top);
static void
compile_set(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *location);
static void
compile_unset(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *location);
static void
compile_project(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *location);
static void compile_replace_with(UpdateStage *stage, const DpValue *spec, int flags,
								 const DpLocation *location);
static void compile_replace_root(UpdateStage *stage, const DpValue *spec, int flags,
								 const DpLocation *location);
static void add_fields(StageField *node, const DpValue *spec, int flags, const DpLocation *location,
					   bool inside);
static StageField *
add_path(StageField *node, const char *path, uint32 len, const DpLocation *location);
static void
apply_stage(const UpdateStage *stage, DpExprState *state, const DpValue *old, DpValue *new);
static void
write_fields(DpBuilder *b, const StageField *node, const DpValue *old, DpExprState *state);
static void write_field(DpBuilder *b, const char *name, uint32 namelen, const StageField *node,
						const DpValue *old, DpExprState *state);
static bool puts_something(const StageField *node);

static const StageOperator stage_operators[] = { { "$set", compile_set },
												 { "$addFields", compile_set },
												 { "$unset", compile_unset },
												 { "$project", compile_project },
												 { "$replaceWith", compile_replace_with },
												 { "$replaceRoot", compile_replace_root } };

/* ---------------------------------------------------------------- compiling */

/*
 * Compiles an array of stages into the current memory context, with flags of dp_expr_compile().
 */
DpUpdatePipeline *
dp_update_pipeline_compile(const DpValue *stages, int flags)
{
	uint32 n = dp_array_count(stages->data, stages->len);
	DpUpdatePipeline *pipeline =
		palloc0(offsetof(DpUpdatePipeline, stages) + sizeof(UpdateStage) * n);
	DpIter iter;
	DpValue spec;

	dp_iter_init_value(&iter, stages);
	while (pipeline->nstages < n && dp_iter_next_value(&iter, &spec))
	{
		DpLocation location = dp_location_index(NULL, pipeline->nstages);

		compile_stage(&pipeline->stages[pipeline->nstages++], &spec, flags, &location);
	}
	return pipeline;
}

void
dp_update_stage_check(const DpValue *spec, int flags, const DpLocation *location)
{
	UpdateStage stage = { 0 };

	compile_stage(&stage, spec, flags, location);
}

static void
compile_stage(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *top)
{
	const StageOperator *op = NULL;
	DpLocation location;
	DpIter fields;
	DpElement element;
	DpElement other;

	if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(top, "a stage, a document", spec);
	dp_iter_init_value(&fields, spec);
	if (!dp_iter_next(&fields, &element))
		dp_bad_spec(top, "a stage has one field, its operator");
	location = dp_location_field(top, &element);
	if (dp_iter_next(&fields, &other))
		dp_bad_spec(top, "a stage has one field, its operator, but there is \"%s\" too",
					other.name);
	for (int i = 0; i < lengthof(stage_operators); i++)
		if (strcmp(stage_operators[i].name, element.name) == 0)
			op = &stage_operators[i];
	if (op == NULL)
	{
		DpNearest nearest = { element.name, element.namelen };

		for (int i = 0; i < lengthof(stage_operators); i++)
			dp_nearest_try(&nearest, stage_operators[i].name);
		dp_unknown_operator(&location, "update stage", &nearest);
	}
	stage->name = op->name;
	op->compile(stage, &element.value, flags, &location);
}

/* $set and $addFields: a document of expressions. */
static void
compile_set(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *location)
{
	if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a document of fields", spec);
	stage->fields = palloc0(sizeof(StageField));
	add_fields(stage->fields, spec, flags, location, false);
}

/*
 * The fields of a document of expressions, which is inside another one or not.  A document that is
 * no expression holds fields further in.
 */
static void
add_fields(StageField *node, const DpValue *spec, int flags, const DpLocation *location,
		   bool inside)
{
	DpIter iter;
	DpElement element;

	check_stack_depth();
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &element))
	{
		DpLocation inner = dp_location_field(location, &element);
		StageField *field = add_path(node, element.name, element.namelen, &inner);
		DpIter fields;
		DpElement first;

		if (inside && memchr(element.name, '.', element.namelen) != NULL)
			dp_bad_spec(&inner, "a name inside a document must not contain a dot");
		if (element.value.type == DP_TYPE_DOCUMENT)
		{
			dp_iter_init_value(&fields, &element.value);
			if (dp_iter_next(&fields, &first) && first.name[0] != '$')
			{
				add_fields(field, &element.value, flags, &inner, true);
				continue;
			}
		}
		field->expr = dp_expr_compile(&element.value, flags, dp_location_text(&inner));
	}
}

/*
 * The node for a new path below a node.
 */
static StageField *
add_path(StageField *node, const char *path, uint32 len, const DpLocation *location)
{
	uint32 start = 0;
	int depth = 0;

	for (;;)
	{
		const char *dot = memchr(path + start, '.', len - start);
		uint32 end = dot ? dot - path : len;
		StageField *child;
		uint32 at;
		bool found;

		if (end == start)
			dp_bad_spec(location, "a part of the path is empty");
		if (memchr(path + start, '\0', end - start) != NULL)
			dp_bad_spec(location, "a path must not contain a zero byte");
		if (path[start] == '$')
			dp_bad_spec(location, "the name of a field cannot begin with $");
		if (++depth > DP_MAX_DEPTH)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
							errmsg("a path of an update has too many parts"),
							errdetail("The limit is %d.", DP_MAX_DEPTH)));
		at = dp_names_add(&node->names, path + start, end - start, &found);
		child = found ? node->children[at] : NULL;
		if (child != NULL && (dot == NULL || child->expr != NULL || child->removes))
			dp_bad_spec(location, "operators of the update conflict at \"%.*s\"", (int) end, path);
		if (child == NULL)
		{
			child = palloc0(sizeof(StageField));
			child->name = path + start;
			child->namelen = end - start;
			if (node->room < node->names.room)
			{
				node->room = node->names.room;
				node->children =
					node->children
						? repalloc_huge(node->children, sizeof(StageField *) * (Size) node->room)
						: palloc(sizeof(StageField *) * node->room);
			}
			node->children[at] = child;
		}
		node = child;
		if (dot == NULL)
			return node;
		start = end + 1;
	}
}

/* $unset: a path, or an array of paths. */
static void
compile_unset(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *location)
{
	DpIter iter;
	DpValue path;
	uint32 n = 0;

	stage->fields = palloc0(sizeof(StageField));
	if (spec->type == DP_TYPE_STRING)
	{
		add_path(stage->fields, DP_STRING_DATA(spec), DP_STRING_LEN(spec), location)->removes =
			true;
		return;
	}
	if (spec->type != DP_TYPE_ARRAY)
		dp_bad_spec_type(location, "a path or an array of paths", spec);
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next_value(&iter, &path))
	{
		DpLocation inner = dp_location_index(location, n++);

		if (path.type != DP_TYPE_STRING)
			dp_bad_spec_type(&inner, "a path", &path);
		add_path(stage->fields, DP_STRING_DATA(&path), DP_STRING_LEN(&path), &inner)->removes =
			true;
	}
	if (n == 0)
		dp_bad_spec(location, "$unset names no fields");
}

/* $project: a projection. */
static void
compile_project(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *location)
{
	if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a projection, a document", spec);
	stage->projection = dp_projection_compile(spec, flags);
}

/* $replaceWith: an expression. */
static void
compile_replace_with(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *location)
{
	stage->replacement = dp_expr_compile(spec, flags, dp_location_text(location));
}

/* $replaceRoot: a document with one, newRoot. */
static void
compile_replace_root(UpdateStage *stage, const DpValue *spec, int flags, const DpLocation *location)
{
	DpIter iter;
	DpElement element;
	DpElement other;
	DpLocation inner;

	if (spec->type != DP_TYPE_DOCUMENT)
		dp_bad_spec_type(location, "a document with newRoot", spec);
	dp_iter_init_value(&iter, spec);
	if (!dp_iter_next(&iter, &element) || strcmp(element.name, "newRoot") != 0 ||
		dp_iter_next(&iter, &other))
		dp_bad_spec(location, "$replaceRoot has one field, newRoot");
	inner = dp_location_field(location, &element);
	stage->replacement = dp_expr_compile(&element.value, flags, dp_location_text(&inner));
}

/* ---------------------------------------------------------------- applying */

/*
 * Applies the stages to a document, one after the other; the result is in the document's own bytes
 * or in the current memory context.  The memory of a stage is freed when the next one has ended,
 * unless there are few stages.
 */
void
dp_update_pipeline_apply(DpUpdatePipeline *pipeline, const DpValue *doc, DpValue *result)
{
	MemoryContext outside = CurrentMemoryContext;
	MemoryContext rooms[2] = { NULL, NULL };
	DpExprState state;
	DpValue value = *doc;

	dp_expr_state_init(&state, &value);
	for (int i = 0; i < pipeline->nstages; i++)
	{
		DpValue before = value;

		CHECK_FOR_INTERRUPTS();
		if (i >= FEW_STAGES)
		{
			MemoryContext *room = &rooms[i % 2];

			if (*room == NULL)
				*room = AllocSetContextCreate(outside, "docpatterns stage", ALLOCSET_DEFAULT_SIZES);
			else
				MemoryContextReset(*room);
			MemoryContextSwitchTo(*room);
		}
		dp_expr_state_root(&state, &value);
		apply_stage(&pipeline->stages[i], &state, &before, &value);

		/* a part of the old value would be freed with it */
		if (i >= FEW_STAGES && value.data >= before.data && value.data <= before.data + before.len)
			value = dp_value_of_document(dp_document_to_varlena(value.data, value.len));
	}
	MemoryContextSwitchTo(outside);
	if (rooms[0] != NULL)
		value = dp_value_of_document(dp_document_to_varlena(value.data, value.len));
	for (int i = 0; i < 2; i++)
		if (rooms[i] != NULL)
			MemoryContextDelete(rooms[i]);
	*result = value;
}

/* Applies one stage to a document. */
static void
apply_stage(const UpdateStage *stage, DpExprState *state, const DpValue *old, DpValue *new)
{
	if (stage->fields != NULL)
	{
		DpBuilder b;

		dp_builder_init(&b, (Size) old->len + 64);
		dp_builder_limit(&b, dp_max_document_size);
		dp_builder_begin_document(&b);
		write_fields(&b, stage->fields, old, state);
		dp_builder_end(&b);
		*new = dp_value_of_document(dp_builder_finish_bson(&b));
	}
	else if (stage->projection != NULL)
	{
		struct varlena *projected = dp_projection_apply(stage->projection, old, NULL);

		*new = projected != NULL ? dp_value_of_document(projected) : *old;
	}
	else
	{
		bool found = dp_expr_eval(stage->replacement, state, new);

		if (!found || new->type != DP_TYPE_DOCUMENT)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("%s of an update requires a document", stage->name),
							errdetail("The expression returned %s.",
									  found ? dp_type_name(new->type) : "nothing")));
	}
}

/*
 * Appends the fields of a document, which may be NULL, as a node has them.
 */
static void
write_fields(DpBuilder *b, const StageField *node, const DpValue *old, DpExprState *state)
{
	uint32 n = node->names.n;
	bool few[16] = { false };
	bool *seen = n <= lengthof(few) ? few : palloc0(n);
	DpIter iter;
	DpElement element;
	const uint8 *run;
	const uint8 *start;

	check_stack_depth();
	if (old != NULL)
	{
		dp_iter_init_value(&iter, old);
		run = iter.next;
		for (start = iter.next; dp_iter_next(&iter, &element); start = iter.next)
		{
			int i = dp_names_find(&node->names, element.name, element.namelen);

			if (i < 0)
				continue;
			dp_builder_append_elements(b, run, start - run);
			run = iter.next;
			if (!seen[i] || node->children[i]->removes)
				write_field(b, element.name, element.namelen, node->children[i], &element.value,
							state);
			seen[i] = true;
		}
		dp_builder_append_elements(b, run, iter.end - run);
	}
	for (uint32 i = 0; i < n; i++)
	{
		const StageField *child = node->children[i];

		if (!seen[i] && puts_something(child))
			write_field(b, child->name, child->namelen, child, NULL, state);
	}
	if (seen != few)
		pfree(seen);
}

/*
 * Appends a field as a node has it; old is its value, or NULL.
 */
static void
write_field(DpBuilder *b, const char *name, uint32 namelen, const StageField *node,
			const DpValue *old, DpExprState *state)
{
	DpIter iter;
	DpValue value;

	CHECK_FOR_INTERRUPTS();
	if (node->removes)
		return;
	if (node->expr != NULL)
	{
		if (dp_expr_eval(node->expr, state, &value))
		{
			dp_check_depth(b->depth, &value);
			dp_builder_append_value(b, name, namelen, &value);
		}
	}
	else if (old != NULL && old->type == DP_TYPE_ARRAY)
	{
		dp_builder_begin_array_field(b, name, namelen);
		dp_iter_init_value(&iter, old);
		while (dp_iter_next_value(&iter, &value))
			write_field(b, NULL, 0, node, &value, state);
		dp_builder_end(b);
	}
	else if (old != NULL && old->type != DP_TYPE_DOCUMENT && !puts_something(node))
		dp_builder_append_value(b, name, namelen, old);
	else
	{
		dp_builder_begin_document_field(b, name, namelen);
		write_fields(b, node, old != NULL && old->type == DP_TYPE_DOCUMENT ? old : NULL, state);
		dp_builder_end(b);
	}
}

/* Whether a node puts something at its path or below. */
static bool
puts_something(const StageField *node)
{
	if (node->expr != NULL)
		return true;
	for (uint32 i = 0; i < node->names.n; i++)
		if (puts_something(node->children[i]))
			return true;
	return false;
}
