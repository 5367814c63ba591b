/*
 * optimize.c
 *		Changes the stages of a pipeline so that the result is the same and less is computed.
 *
 * PostgreSQL plans the query; what it cannot know is which fields a stage leaves as they are.
 * Conditions move up to the relation and its indexes, an order moves above stages that only change
 * other fields, and fields that no later stage uses are not computed.
 *
 * All of it looks at the first part of a path only: what concerns "a.b" concerns "a".
 */
#include "postgres.h"

#include "miscadmin.h"

#include "mql/pipeline/pipeline.h"
#include "mql/update_tree.h"

/* The fields that something uses: first parts of paths */
typedef struct Fields
{
	bool all;
	List *names; /* char * */
} Fields;

static List *used(const Fields *fields);
static bool is_stage(const DpStageSpec *s, const char *name);
static void add_field(Fields *fields, const char *path);
static bool has_field(const Fields *fields, const char *path);
static void add_expression(Fields *fields, const DpValue *v);
static void add_filter(Fields *fields, const DpValue *filter);
static void add_filter_element(Fields *fields, const DpElement *e);
static void add_keys(Fields *fields, const DpValue *spec);
static bool document_field(const DpValue *spec, const char *name, DpValue *value);
static void add_option(Fields *fields, const DpValue *spec, const char *name);
static bool is_inclusion(const DpElement *e);
static bool includes(const DpValue *projection);
static bool keeps(const DpStageSpec *s, const char *field);
static bool keeps_all(const DpStageSpec *s, const Fields *fields);
static List *move_up(List *stages, int i);
static bool split_match(const DpStageSpec *match, const DpStageSpec *before, DpStageSpec *above,
						DpStageSpec *below);
static bool rename_group_key(const DpStageSpec *group, const DpElement *e, const char **path);
static bool is_plain_condition(const DpValue *v);
static bool is_plain_value(const DpValue *v);
static DpStageSpec *merge_matches(const DpStageSpec *a, const DpStageSpec *b);
static List *drop_unused(List *stages, Fields *needs);
static bool drop_fields(DpStageSpec *s, Fields *needs);

List *
dp_pipeline_optimize(List *stages, List **fields)
{
	Fields needs = { true, NIL };
	int i;

	for (i = 1; i < list_length(stages); i++)
		stages = move_up(stages, i);
	for (i = list_length(stages) - 1; i > 0; i--)
	{
		DpStageSpec *above = list_nth(stages, i - 1);
		DpStageSpec *below = list_nth(stages, i);

		if (is_stage(above, "$match") && is_stage(below, "$match"))
		{
			lfirst(list_nth_cell(stages, i - 1)) = merge_matches(above, below);
			stages = list_delete_nth_cell(stages, i);
		}
	}
	stages = drop_unused(stages, &needs);
	*fields = used(&needs);
	return stages;
}

List *
dp_pipeline_fields(const List *stages)
{
	Fields needs = { true, NIL };

	(void) drop_unused(list_copy(stages), &needs);
	return used(&needs);
}

List *
dp_pipeline_filter_fields(const DpValue *filter)
{
	Fields fields = { false, NIL };

	add_filter(&fields, filter);
	return used(&fields);
}

/* The names; NIL for all. */
static List *
used(const Fields *fields)
{
	if (fields->all)
		return NIL;
	return fields->names == NIL ? list_make1("_id") : fields->names;
}

static bool
is_stage(const DpStageSpec *s, const char *name)
{
	return strcmp(s->name, name) == 0;
}

/* ---------------------------------------------------------------- fields */

static void
add_field(Fields *fields, const char *path)
{
	if (!has_field(fields, path))
		fields->names = lappend(fields->names, pnstrdup(path, strcspn(path, ".")));
}

static bool
has_field(const Fields *fields, const char *path)
{
	Size len = strcspn(path, ".");
	ListCell *lc;

	if (fields->all)
		return true;
	foreach(lc, fields->names)
		if (strlen(lfirst(lc)) == len && strncmp(lfirst(lc), path, len) == 0)
			return true;
	return false;
}

/* The fields that an expression uses: strings in $literal count, too. */
static void
add_expression(Fields *fields, const DpValue *v)
{
	DpIter iter;
	DpElement e;

	check_stack_depth();
	if (v->type == DP_TYPE_STRING)
	{
		const char *s = (const char *) v->data + 4;

		if (strncmp(s, "$$ROOT.", 7) == 0)
			add_field(fields, s + 7);
		else if (strncmp(s, "$$CURRENT.", 10) == 0)
			add_field(fields, s + 10);
		else if (strcmp(s, "$$ROOT") == 0 || strcmp(s, "$$CURRENT") == 0)
			fields->all = true;
		else if (s[0] == '$' && s[1] != '$')
			add_field(fields, s + 1);
	}
	else if (dp_type_is_container(v->type))
	{
		dp_iter_init_value(&iter, v);
		while (dp_iter_next(&iter, &e))
		{
			/*
			 * $let can give another document the name, $getField has names without a dollar sign,
			 * and $rand depends on the number of rows
			 */
			if (strcmp(e.name, "CURRENT") == 0 || strcmp(e.name, "$getField") == 0 ||
				strcmp(e.name, "$rand") == 0)
				fields->all = true;
			/* as $top has, and $sortArray for its elements */
			if (strcmp(e.name, "sortBy") == 0 && e.value.type == DP_TYPE_DOCUMENT)
				add_keys(fields, &e.value);
			add_expression(fields, &e.value);
		}
	}
}

/* The fields that a filter uses. */
static void
add_filter(Fields *fields, const DpValue *filter)
{
	DpIter iter;
	DpElement e;

	check_stack_depth();
	if (filter->type != DP_TYPE_DOCUMENT)
	{
		fields->all = true;
		return;
	}
	dp_iter_init_value(&iter, filter);
	while (dp_iter_next(&iter, &e))
		add_filter_element(fields, &e);
}

static void
add_filter_element(Fields *fields, const DpElement *e)
{
	if (e->name[0] != '$')
		add_field(fields, e->name);
	else if (strcmp(e->name, "$expr") == 0)
		add_expression(fields, &e->value);
	else if (e->value.type == DP_TYPE_ARRAY &&
			 (strcmp(e->name, "$and") == 0 || strcmp(e->name, "$or") == 0 ||
			  strcmp(e->name, "$nor") == 0))
	{
		DpIter iter;
		DpValue one;

		dp_iter_init_value(&iter, &e->value);
		while (dp_iter_next_value(&iter, &one))
			add_filter(fields, &one);
	}
	else
		fields->all = true;
}

/* The names of a document's fields. */
static void
add_keys(Fields *fields, const DpValue *spec)
{
	DpIter iter;
	DpElement e;

	if (spec->type != DP_TYPE_DOCUMENT)
	{
		fields->all = true;
		return;
	}
	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &e))
	{
		add_field(fields, e.name);
		/* {$meta: ..} or an order of its own */
		if (dp_type_is_container(e.value.type))
			fields->all = true;
	}
}

static bool
document_field(const DpValue *spec, const char *name, DpValue *value)
{
	return spec->type == DP_TYPE_DOCUMENT &&
		   dp_document_find(spec->data, spec->len, name, strlen(name), value);
}

/* The fields that an option's expression uses. */
static void
add_option(Fields *fields, const DpValue *spec, const char *name)
{
	DpValue value;

	if (document_field(spec, name, &value))
		add_expression(fields, &value);
}

/* ---------------------------------------------------------------- what stages keep */

/* Whether a field of a projection is shown as it is. */
static bool
is_inclusion(const DpElement *e)
{
	return (dp_type_is_number(e->value.type) || e->value.type == DP_TYPE_BOOL) &&
		   dp_value_is_true(&e->value);
}

/* Whether a projection shows the fields that it names, and not the others. */
static bool
includes(const DpValue *projection)
{
	DpIter iter;
	DpElement e;

	dp_iter_init_value(&iter, projection);
	while (dp_iter_next(&iter, &e))
		if (strcmp(e.name, "_id") != 0)
			return !(dp_type_is_number(e.value.type) || e.value.type == DP_TYPE_BOOL) ||
				   dp_value_is_true(&e.value);
	/* {_id: 1} and {_id: expression} */
	return document_field(projection, "_id", &e.value) &&
		   (is_inclusion(&e) || !(dp_type_is_number(e.value.type) || e.value.type == DP_TYPE_BOOL));
}

bool
dp_pipeline_inclusion(const DpValue *projection, List **fields)
{
	bool shows_id = true;
	DpIter iter;
	DpElement e;

	*fields = NIL;
	dp_iter_init_value(&iter, projection);
	while (dp_iter_next(&iter, &e))
	{
		if (strchr(e.name, '.') != NULL)
			return false;
		if (is_inclusion(&e))
			*fields = lappend(*fields, pstrdup(e.name));
		else if (strcmp(e.name, "_id") == 0 &&
				 (dp_type_is_number(e.value.type) || e.value.type == DP_TYPE_BOOL))
			shows_id = false;
		else
			return false;
	}
	if (*fields == NIL)
		return false;
	if (shows_id)
		*fields = lappend(*fields, "_id");
	return true;
}

/* Whether a stage returns one document for each, or none, in which the field is as it was. */
static bool
keeps(const DpStageSpec *s, const char *field)
{
	Size len = strcspn(field, ".");
	Fields changed = { false, NIL };
	DpIter iter;
	DpElement e;
	DpValue value;

	if (is_stage(s, "$set") || is_stage(s, "$addFields"))
	{
		if (s->spec.type != DP_TYPE_DOCUMENT)
			return false;
		dp_iter_init_value(&iter, &s->spec);
		while (dp_iter_next(&iter, &e))
			add_field(&changed, e.name);
	}
	else if (is_stage(s, "$unset") && s->spec.type == DP_TYPE_STRING)
		add_field(&changed, (const char *) s->spec.data + 4);
	else if (is_stage(s, "$unset") && s->spec.type == DP_TYPE_ARRAY)
	{
		dp_iter_init_value(&iter, &s->spec);
		while (dp_iter_next_value(&iter, &value))
			if (value.type == DP_TYPE_STRING)
				add_field(&changed, (const char *) value.data + 4);
	}
	else if (is_stage(s, "$project") && s->spec.type == DP_TYPE_DOCUMENT)
	{
		bool inclusion = includes(&s->spec);
		bool id = len == 3 && strncmp(field, "_id", 3) == 0;

		dp_iter_init_value(&iter, &s->spec);
		while (dp_iter_next(&iter, &e))
			if (e.namelen == len && strncmp(e.name, field, len) == 0)
				return is_inclusion(&e);
			else if (strcspn(e.name, ".") == len && strncmp(e.name, field, len) == 0)
				return false;
		return !inclusion || id;
	}
	else if ((is_stage(s, "$lookup") || is_stage(s, "$graphLookup")) &&
			 document_field(&s->spec, "as", &value) && value.type == DP_TYPE_STRING)
		add_field(&changed, (const char *) value.data + 4);
	else if (is_stage(s, "$unwind"))
	{
		value = s->spec;
		if (s->spec.type == DP_TYPE_DOCUMENT)
		{
			if (document_field(&s->spec, "includeArrayIndex", &value) &&
				value.type == DP_TYPE_STRING)
				add_field(&changed, (const char *) value.data + 4);
			if (!document_field(&s->spec, "path", &value))
				return false;
		}
		if (value.type != DP_TYPE_STRING || value.data[4] != '$')
			return false;
		add_field(&changed, (const char *) value.data + 5);
	}
	else
		return false;
	return !has_field(&changed, field);
}

static bool
keeps_all(const DpStageSpec *s, const Fields *fields)
{
	ListCell *lc;

	/* a condition without fields concerns the number of rows, which a stage may change */
	if (fields->all || fields->names == NIL)
		return false;
	foreach(lc, fields->names)
		if (!keeps(s, lfirst(lc)))
			return false;
	return true;
}

/* ---------------------------------------------------------------- moving up */

/* Moves the stage at a position as far up as possible. */
static List *
move_up(List *stages, int i)
{
	DpStageSpec *s = list_nth(stages, i);

	if (is_stage(s, "$sort"))
	{
		Fields fields = { false, NIL };

		add_keys(&fields, &s->spec);
		while (i > 0 && !is_stage(list_nth(stages, i - 1), "$unwind") &&
			   keeps_all(list_nth(stages, i - 1), &fields))
		{
			stages = list_delete_nth_cell(stages, i);
			stages = list_insert_nth(stages, --i, s);
		}
	}
	else if (is_stage(s, "$match") && s->spec.type == DP_TYPE_DOCUMENT)
		while (i > 0)
		{
			DpStageSpec *before = list_nth(stages, i - 1);
			DpStageSpec *above = palloc0(sizeof(DpStageSpec));
			DpStageSpec below = { 0 };

			if (!split_match(s, before, above, &below))
				break;
			/* a rest stays where it is */
			stages = list_delete_nth_cell(stages, i);
			if (below.name != NULL)
			{
				DpStageSpec *rest = palloc(sizeof(DpStageSpec));

				*rest = below;
				stages = list_insert_nth(stages, i, rest);
			}
			stages = list_insert_nth(stages, --i, above);
			s = above;
		}
	return stages;
}

/*
 * Divides the conditions of a $match into those that can be tested before another stage and the
 * rest, of which below->name is NULL if there is none.  Returns false if none can be.
 */
static bool
split_match(const DpStageSpec *match, const DpStageSpec *before, DpStageSpec *above,
			DpStageSpec *below)
{
	DpBuilder up;
	DpBuilder down;
	bool any_up = false;
	bool any_down = false;
	DpIter iter;
	DpElement e;

	dp_builder_init(&up, match->spec.len + 32);
	dp_builder_begin_document(&up);
	dp_builder_begin_document_field(&up, "$match", 6);
	dp_builder_init(&down, match->spec.len + 32);
	dp_builder_begin_document(&down);
	dp_builder_begin_document_field(&down, "$match", 6);
	dp_iter_init_value(&iter, &match->spec);
	while (dp_iter_next(&iter, &e))
	{
		Fields fields = { false, NIL };
		const char *path;
		bool moves;

		if (is_stage(before, "$group"))
		{
			moves = rename_group_key(before, &e, &path);
			if (moves)
			{
				dp_builder_append_value(&up, path, strlen(path), &e.value);
				any_up = true;
				continue;
			}
		}
		else if (is_stage(before, "$sort") || is_stage(before, "$match"))
			moves = true;
		else
		{
			add_filter_element(&fields, &e);
			moves = keeps_all(before, &fields);
		}
		dp_builder_append_value(moves ? &up : &down, e.name, e.namelen, &e.value);
		any_up = any_up || moves;
		any_down = any_down || !moves;
	}
	if (!any_up)
		return false;
	*above = *match;
	dp_stage_finish(above, &up);
	if (any_down)
	{
		*below = *match;
		dp_stage_finish(below, &down);
	}
	return true;
}

/*
 * Whether a condition on the result of a $group only concerns its key, a field: then *path is the
 * field.  A missing field becomes null in the key, so conditions that null can satisfy stay; and
 * so do those on a path, which makes arrays of what filters look for in arrays.
 */
static bool
rename_group_key(const DpStageSpec *group, const DpElement *e, const char **path)
{
	DpValue id;
	DpValue part;
	const char *s;

	if (!document_field(&group->spec, "_id", &id) || !is_plain_condition(&e->value))
		return false;
	if (strcmp(e->name, "_id") == 0)
		part = id;
	else if (strncmp(e->name, "_id.", 4) != 0 || strchr(e->name + 4, '.') != NULL ||
			 !document_field(&id, e->name + 4, &part))
		return false;
	s = (const char *) part.data + 4;
	if (part.type != DP_TYPE_STRING || s[0] != '$' || s[1] == '$' || s[1] == '\0' ||
		strchr(s, '.') != NULL)
		return false;
	*path = s + 1;
	return true;
}

/* Whether a condition is a comparison that null and missing values never satisfy. */
static bool
is_plain_condition(const DpValue *v)
{
	static const char *const names[] = { "$eq", "$gt", "$gte", "$lt", "$lte" };
	DpIter iter;
	DpElement e;

	if (v->type != DP_TYPE_DOCUMENT)
		return is_plain_value(v);
	if (v->len == DP_DOCUMENT_MIN_SIZE)
		return false;
	dp_iter_init_value(&iter, v);
	while (dp_iter_next(&iter, &e))
	{
		bool plain = false;

		for (int i = 0; i < lengthof(names); i++)
			plain = plain || (strcmp(e.name, names[i]) == 0 && is_plain_value(&e.value));
		if (strcmp(e.name, "$in") == 0 && e.value.type == DP_TYPE_ARRAY)
		{
			DpIter values;
			DpValue one;

			plain = true;
			dp_iter_init_value(&values, &e.value);
			while (dp_iter_next_value(&values, &one))
				plain = plain && is_plain_value(&one);
		}
		if (!plain)
			return false;
	}
	return true;
}

static bool
is_plain_value(const DpValue *v)
{
	return dp_type_is_number(v->type) || v->type == DP_TYPE_STRING || v->type == DP_TYPE_OBJECTID ||
		   v->type == DP_TYPE_BOOL || v->type == DP_TYPE_DATE;
}

/* One $match with the conditions of two. */
static DpStageSpec *
merge_matches(const DpStageSpec *a, const DpStageSpec *b)
{
	DpStageSpec *merged = palloc(sizeof(DpStageSpec));
	DpBuilder builder;
	DpIter iter;
	DpElement e;
	DpValue value;
	bool distinct = a->spec.type == DP_TYPE_DOCUMENT && b->spec.type == DP_TYPE_DOCUMENT;

	if (distinct)
	{
		dp_iter_init_value(&iter, &b->spec);
		while (dp_iter_next(&iter, &e))
			distinct = distinct && !document_field(&a->spec, e.name, &value);
	}
	dp_builder_init(&builder, a->spec.len + b->spec.len + 64);
	dp_builder_begin_document(&builder);
	dp_builder_begin_document_field(&builder, "$match", 6);
	if (distinct)
	{
		dp_builder_append_elements(&builder, a->spec.data + 4, a->spec.len - 5);
		dp_builder_append_elements(&builder, b->spec.data + 4, b->spec.len - 5);
	}
	else
	{
		dp_builder_begin_array_field(&builder, "$and", 4);
		dp_builder_append_value(&builder, NULL, 0, &a->spec);
		dp_builder_append_value(&builder, NULL, 0, &b->spec);
		dp_builder_end(&builder);
	}
	*merged = *a;
	dp_stage_finish(merged, &builder);
	return merged;
}

/* ---------------------------------------------------------------- unused fields */

/*
 * Removes what computes fields that no later stage uses.  needs is what is used of the result, and
 * becomes what is used of the documents that come in.
 */
static List *
drop_unused(List *stages, Fields *needs)
{
	for (int i = list_length(stages) - 1; i >= 0; i--)
		if (drop_fields(list_nth(stages, i), needs))
			stages = list_delete_nth_cell(stages, i);
	return stages;
}

/* Does so for one stage; returns true if nothing of it is left. */
static bool
drop_fields(DpStageSpec *s, Fields *needs)
{
	Fields before = { false, NIL };
	bool sets = is_stage(s, "$set") || is_stage(s, "$addFields");
	bool groups = is_stage(s, "$group");
	bool projects =
		is_stage(s, "$project") && s->spec.type == DP_TYPE_DOCUMENT && includes(&s->spec);
	DpIter iter;
	DpElement e;
	DpValue value;

	if (s->spec.type == DP_TYPE_DOCUMENT && (sets || groups || projects))
	{
		DpBuilder b;
		int kept = 0;
		bool dropped = false;

		dp_builder_init(&b, s->spec.len + 32);
		dp_builder_begin_document(&b);
		dp_builder_begin_document_field(&b, s->name, strlen(s->name));
		dp_iter_init_value(&iter, &s->spec);
		while (dp_iter_next(&iter, &e))
		{
			bool id = strcmp(e.name, "_id") == 0;
			bool used = groups || has_field(needs, e.name) || (projects && id);

			if (!used && !(projects && is_inclusion(&e)))
			{
				dropped = true;
				continue;
			}
			kept++;
			dp_builder_append_value(&b, e.name, e.namelen, &e.value);
			if (projects && is_inclusion(&e))
			{
				if (has_field(needs, e.name))
					add_field(&before, e.name);
			}
			else
				add_expression(&before, &e.value);
			/* a part of the old value stays */
			if (strchr(e.name, '.') != NULL || e.value.type == DP_TYPE_DOCUMENT)
				add_field(&before, e.name);
		}
		if (sets && !needs->all)
		{
			ListCell *lc;

			foreach(lc, needs->names)
				if (!document_field(&s->spec, lfirst(lc), &value))
					add_field(&before, lfirst(lc));
		}
		else if (sets)
			before.all = true;
		if (projects && has_field(needs, "_id") && !document_field(&s->spec, "_id", &value))
			add_field(&before, "_id");
		if (dropped)
		{
			/* the errors of what is dropped are those of the pipeline */
			dp_update_stage_check(&s->stage, s->flags, &s->location);
			if (kept == 0 && projects)
				dp_builder_append_bool(&b, "_id", 3, true);
			dp_stage_finish(s, &b);
		}
		*needs = before;
		return dropped && kept == 0 && sets;
	}

	if (is_stage(s, "$match"))
		add_filter(needs, &s->spec);
	else if (is_stage(s, "$sort"))
		add_keys(needs, &s->spec);
	else if (is_stage(s, "$unwind"))
	{
		value = s->spec;
		if (s->spec.type != DP_TYPE_DOCUMENT || document_field(&s->spec, "path", &value))
			add_expression(needs, &value);
	}
	else if (is_stage(s, "$lookup") && document_field(&s->spec, "localField", &value) &&
			 value.type == DP_TYPE_STRING)
	{
		add_field(needs, (const char *) value.data + 4);
		add_option(needs, &s->spec, "let");
	}
	else if (is_stage(s, "$lookup"))
		add_option(needs, &s->spec, "let");
	else if (is_stage(s, "$graphLookup"))
		add_option(needs, &s->spec, "startWith");
	else if (is_stage(s, "$count"))
		*needs = before;
	else if (is_stage(s, "$sortByCount") || is_stage(s, "$replaceWith"))
	{
		add_expression(&before, &s->spec);
		*needs = before;
	}
	else if (is_stage(s, "$replaceRoot"))
	{
		add_option(&before, &s->spec, "newRoot");
		*needs = before;
	}
	else if (is_stage(s, "$bucket") || is_stage(s, "$bucketAuto"))
	{
		add_option(&before, &s->spec, "groupBy");
		add_option(&before, &s->spec, "output");
		*needs = before;
	}
	else if (!is_stage(s, "$limit") && !is_stage(s, "$skip") && !is_stage(s, "$sample") &&
			 !is_stage(s, "$unset") && !is_stage(s, "$project"))
		needs->all = true;
	return false;
}

/* ---------------------------------------------------------------- stages */

void
dp_stage_finish(DpStageSpec *s, DpBuilder *b)
{
	DpIter iter;
	DpElement e;

	dp_builder_end(b);
	dp_builder_end(b);
	s->stage = dp_builder_view(b, DP_TYPE_DOCUMENT);
	dp_iter_init_value(&iter, &s->stage);
	if (dp_iter_next(&iter, &e))
	{
		s->name = e.name;
		s->spec = e.value;
	}
}
