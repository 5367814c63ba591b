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

#include "mql/expression.h"
#include "mql/pipeline/pipeline.h"
#include "mql/update_tree.h"

/* The fields that something uses: first parts of paths */
typedef struct Fields
{
	bool all;
	List *names; /* char * */
} Fields;

/* A condition of a $match */
typedef struct Condition
{
	DpElement e;
	Fields fields;
} Condition;

static List *used(const Fields *fields);
static bool is_stage(const DpStageSpec *s, const char *name);
static bool same_field(const char *a, const char *b);
static void add_field(Fields *fields, const char *path);
static bool has_field(const Fields *fields, const char *path);
static void add_expression(Fields *fields, const DpValue *v);
static void add_filter(Fields *fields, const DpValue *filter);
static void add_filter_element(Fields *fields, const DpElement *e);
static void add_keys(Fields *fields, const DpValue *spec);
static bool document_field(const DpValue *spec, const char *name, DpValue *value);
static const char *string_of(const DpValue *v);
static void add_option(Fields *fields, const DpValue *spec, const char *name);
static bool is_inclusion(const DpElement *e);
static bool includes(const DpValue *projection);
static bool keeps(const DpStageSpec *s, const char *field);
static bool keeps_all(const DpStageSpec *s, const Fields *fields);
static List *move_up(List *stages, int i);
static List *move_match(List *stages, int i);
static bool passes(const DpStageSpec *above, Condition *c);
static DpStageSpec *match_of(const DpStageSpec *match, const List *conditions);
static bool rename_group_key(const DpStageSpec *group, const DpElement *e, const char **path);
static bool is_plain_condition(const DpValue *v);
static bool is_plain_value(const DpValue *v);
static List *merge_matches(List *stages);
static DpStageSpec *merge(const List *stages, int from, int to);
static int compare_names(const ListCell *a, const ListCell *b);
static List *drop_unused(List *stages, Fields *needs);
static bool drop_fields(DpStageSpec *s, Fields *needs);

List *
dp_pipeline_optimize(List *stages, List **fields)
{
	Fields needs = { true, NIL };

	for (int i = 1; i < list_length(stages); i++)
		stages = move_up(stages, i);
	stages = drop_unused(merge_matches(stages), &needs);
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

/* Whether two paths concern the same field: they have the first part in common. */
static bool
same_field(const char *a, const char *b)
{
	Size len = strcspn(a, ".");

	return strcspn(b, ".") == len && strncmp(a, b, len) == 0;
}

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

	CHECK_FOR_INTERRUPTS();
	if (fields->all)
		return true;
	foreach(lc, fields->names)
	{
		const char *name = lfirst(lc);

		if (strncmp(name, path, len) == 0 && name[len] == '\0')
			return true;
	}
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
		const char *s = string_of(v);

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

/* The text of a string. */
static const char *
string_of(const DpValue *v)
{
	return (const char *) v->data + 4;
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
	DpIter iter;
	DpElement e;
	DpValue value;

	if (is_stage(s, "$set") || is_stage(s, "$addFields"))
	{
		if (s->spec.type != DP_TYPE_DOCUMENT)
			return false;
		dp_iter_init_value(&iter, &s->spec);
		while (dp_iter_next(&iter, &e))
			if (same_field(e.name, field))
				return false;
		return true;
	}
	if (is_stage(s, "$unset") && s->spec.type == DP_TYPE_ARRAY)
	{
		dp_iter_init_value(&iter, &s->spec);
		while (dp_iter_next_value(&iter, &value))
			if (value.type == DP_TYPE_STRING && same_field(string_of(&value), field))
				return false;
		return true;
	}
	if (is_stage(s, "$project") && s->spec.type == DP_TYPE_DOCUMENT)
	{
		dp_iter_init_value(&iter, &s->spec);
		while (dp_iter_next(&iter, &e))
			if (same_field(e.name, field))
				return strchr(e.name, '.') == NULL && is_inclusion(&e);
		return !includes(&s->spec) || same_field("_id", field);
	}
	if (is_stage(s, "$unwind"))
	{
		value = s->spec;
		if (s->spec.type == DP_TYPE_DOCUMENT)
		{
			if (document_field(&s->spec, "includeArrayIndex", &value) &&
				value.type == DP_TYPE_STRING && same_field(string_of(&value), field))
				return false;
			if (!document_field(&s->spec, "path", &value))
				return false;
		}
		return value.type == DP_TYPE_STRING && value.data[4] == '$' &&
			   !same_field(string_of(&value) + 1, field);
	}
	if (is_stage(s, "$unset"))
		value = s->spec;
	else if (!(is_stage(s, "$lookup") || is_stage(s, "$graphLookup")) ||
			 !document_field(&s->spec, "as", &value))
		return false;
	return value.type == DP_TYPE_STRING && !same_field(string_of(&value), field);
}

static bool
keeps_all(const DpStageSpec *s, const Fields *fields)
{
	ListCell *lc;

	/* a condition without fields concerns the number of rows, which a stage may change */
	if (fields->all || fields->names == NIL)
		return false;
	foreach(lc, fields->names)
	{
		CHECK_FOR_INTERRUPTS();
		if (!keeps(s, lfirst(lc)))
			return false;
	}
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
		stages = list_delete_nth_cell(stages, i);
		while (i > 0 && !is_stage(list_nth(stages, i - 1), "$unwind") &&
			   keeps_all(list_nth(stages, i - 1), &fields))
			i--;
		return list_insert_nth(stages, i, s);
	}
	if (is_stage(s, "$match") && s->spec.type == DP_TYPE_DOCUMENT)
		return move_match(stages, i);
	return stages;
}

/*
 * Does so for a $match.  Conditions that cannot pass a stage stay below it.  Another $match is
 * passed only on the way to a place above other stages: so conditions keep their order.
 */
static List *
move_match(List *stages, int i)
{
	DpStageSpec *match = list_nth(stages, i);
	List *conditions = NIL;
	bool same = true;
	DpIter iter;
	DpElement e;

	dp_iter_init_value(&iter, &match->spec);
	while (dp_iter_next(&iter, &e))
	{
		Condition *c = palloc0(sizeof(Condition));

		c->e = e;
		add_filter_element(&c->fields, &e);
		conditions = lappend(conditions, c);
	}
	stages = list_delete_nth_cell(stages, i);
	for (int j = i - 1; j >= 0; j--)
	{
		const DpStageSpec *above = list_nth(stages, j);
		List *passing = NIL;
		List *staying = NIL;
		ListCell *lc;

		CHECK_FOR_INTERRUPTS();
		if (is_stage(above, "$match"))
			continue;
		foreach(lc, conditions)
			if (passes(above, lfirst(lc)))
				passing = lappend(passing, lfirst(lc));
			else
				staying = lappend(staying, lfirst(lc));
		if (passing == NIL)
			break;
		if (staying != NIL)
			stages = list_insert_nth(stages, i, match_of(match, staying));
		same = same && staying == NIL && !is_stage(above, "$group");
		list_free(conditions);
		list_free(staying);
		conditions = passing;
		i = j;
	}
	return list_insert_nth(stages, i, same ? match : match_of(match, conditions));
}

/* Whether a condition can be tested above a stage; there it may be that of another field. */
static bool
passes(const DpStageSpec *above, Condition *c)
{
	const char *path;

	if (is_stage(above, "$sort"))
		return true;
	if (!is_stage(above, "$group"))
		return keeps_all(above, &c->fields);
	if (!rename_group_key(above, &c->e, &path))
		return false;
	c->e.name = path;
	c->e.namelen = strlen(path);
	c->fields.names = NIL;
	add_field(&c->fields, path);
	return true;
}

/* A $match in the place of another one, with some of its conditions. */
static DpStageSpec *
match_of(const DpStageSpec *match, const List *conditions)
{
	DpStageSpec *s = palloc(sizeof(DpStageSpec));
	DpBuilder b;
	ListCell *lc;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_begin_document_field(&b, "$match", 6);
	foreach(lc, conditions)
	{
		const DpElement *e = &((Condition *) lfirst(lc))->e;

		dp_builder_append_value(&b, e->name, e->namelen, &e->value);
	}
	*s = *match;
	dp_stage_finish(s, &b);
	return s;
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
	s = string_of(&part);
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

/* Makes one $match of those that follow each other. */
static List *
merge_matches(List *stages)
{
	List *merged = NIL;

	for (int i = 0, next; i < list_length(stages); i = next)
	{
		next = i;
		while (next < list_length(stages) && is_stage(list_nth(stages, next), "$match"))
			next++;
		next = Max(next, i + 1);
		merged = lappend(merged, next == i + 1 ? list_nth(stages, i) : merge(stages, i, next));
	}
	return merged;
}

/* One $match with the conditions of some: {$and: [..]} if names come twice. */
static DpStageSpec *
merge(const List *stages, int from, int to)
{
	DpStageSpec *merged = palloc(sizeof(DpStageSpec));
	List *names = NIL;
	bool distinct = true;
	DpBuilder b;

	for (int i = from; i < to; i++)
	{
		DpStageSpec *s = list_nth(stages, i);
		DpElement e = { s->name, strlen(s->name), s->spec };
		DpLocation location = dp_location_field(&s->location, &e);
		DpIter iter;

		/* the errors name the stage */
		dp_stage_check_filter(&s->spec, (s->flags & DP_EXPR_LET) != 0, &location);
		dp_iter_init_value(&iter, &s->spec);
		while (dp_iter_next(&iter, &e))
			names = lappend(names, (char *) e.name);
	}
	list_sort(names, compare_names);
	for (int i = 1; i < list_length(names); i++)
		distinct = distinct && strcmp(list_nth(names, i - 1), list_nth(names, i)) != 0;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_begin_document_field(&b, "$match", 6);
	if (!distinct)
		dp_builder_begin_array_field(&b, "$and", 4);
	for (int i = from; i < to; i++)
	{
		DpValue *filter = &((DpStageSpec *) list_nth(stages, i))->spec;

		CHECK_FOR_INTERRUPTS();
		if (distinct)
			dp_builder_append_elements(&b, filter->data + 4, filter->len - 5);
		else
			dp_builder_append_value(&b, NULL, 0, filter);
	}
	if (!distinct)
		dp_builder_end(&b);
	*merged = *(DpStageSpec *) list_nth(stages, from);
	dp_stage_finish(merged, &b);
	return merged;
}

static int
compare_names(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
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
				if (document_field(&s->spec, lfirst(lc), &value) || has_field(&before, lfirst(lc)))
					needs->names = foreach_delete_current(needs->names, lc);
			before.names = list_concat(before.names, needs->names);
			list_free(needs->names); /* there may be many stages, and many names */
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
		add_field(needs, string_of(&value));
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
