/*
 * collection_split.c
 *		Whether a filter, an update, a projection or a sort specification concerns fields that
 *		patterns have split off.
 *
 * If the names of fields do not decide it, the answer is yes: the whole document is always right,
 * only slower.
 */
#include "postgres.h"

#include "miscadmin.h"

#include "bson/builder.h"
#include "mql/collection_calls.h"
#include "mql/collection_split.h"
#include "mql/projection.h"

DpSplit *(*dp_split_hook)(Relation rel, AttrNumber doc) = NULL;
char *(*dp_seen_hook)(Relation base) = NULL;
void (*dp_make_way_hook)(Oid base, Datum docs) = NULL;
bool (*dp_remote_hook)(Oid relid) = NULL;

static bool overlaps(const DpPath *a, const DpPath *b);
static bool touches_name(const DpSplit *split, const char *name);
static bool filter_touches(const DpSplit *split, const DpValue *filter);
static bool condition_touches(const DpSplit *split, const DpElement *condition);
static bool expression_touches(const DpSplit *split, const DpValue *value);
static bool
is_direct(const DpSplitField *field, const DpElement *operator, const DpValue * operand);
static bool shows(const DpSplit *split, const DpValue *fields, const char *prefix);
static bool excludes(const DpPath *path, int from, const DpValue *fields);

DpSplitField *
dp_split_field(DpPath *path, const char *direct)
{
	DpSplitField *field = palloc0(sizeof(DpSplitField));

	field->path = path;
	field->direct = direct;
	return field;
}

DpSplitField *
dp_split_find(const DpSplit *split, const DpPath *path)
{
	ListCell *lc;

	foreach(lc, split->fields)
	{
		DpSplitField *field = lfirst(lc);

		if (overlaps(field->path, path))
			return field;
	}
	return NULL;
}

/* Whether one path begins with the other. */
static bool
overlaps(const DpPath *a, const DpPath *b)
{
	for (int i = 0; i < a->nsteps && i < b->nsteps; i++)
		if (a->steps[i].namelen != b->steps[i].namelen ||
			memcmp(a->steps[i].name, b->steps[i].name, a->steps[i].namelen) != 0)
			return false;
	return true;
}

/* Does the same for a path in the syntax of filters. */
static bool
touches_name(const DpSplit *split, const char *name)
{
	return dp_split_find(split, dp_path_of_field(name)) != NULL;
}

/* ---------------------------------------------------------------- filters */

void
dp_split_filter(const DpSplit *split, const DpValue *filter, struct varlena **near,
				struct varlena **far)
{
	DpBuilder parts[2];
	struct varlena **results[2] = { near, far };
	DpIter iter;
	DpElement condition;

	for (int i = 0; i < 2; i++)
	{
		dp_builder_init(&parts[i], filter->len);
		dp_builder_begin_document(&parts[i]);
	}
	dp_iter_init_value(&iter, filter);
	while (dp_iter_next(&iter, &condition))
		dp_builder_append_value(&parts[condition_touches(split, &condition)], condition.name,
								condition.namelen, &condition.value);
	for (int i = 0; i < 2; i++)
	{
		dp_builder_end(&parts[i]);
		*results[i] = dp_builder_finish_bson(&parts[i]);
		if (DP_DOC_SIZE(*results[i]) == DP_DOCUMENT_MIN_SIZE)
			*results[i] = NULL;
	}
}

static bool
filter_touches(const DpSplit *split, const DpValue *filter)
{
	DpIter iter;
	DpElement condition;

	check_stack_depth();
	dp_iter_init_value(&iter, filter);
	while (dp_iter_next(&iter, &condition))
		if (condition_touches(split, &condition))
			return true;
	return false;
}

/* Whether an element of a filter, which was compiled before, touches what is split off. */
static bool
condition_touches(const DpSplit *split, const DpElement *condition)
{
	DpIter iter;
	DpValue filter;

	if (condition->name[0] != '$')
		return touches_name(split, condition->name);
	if (strcmp(condition->name, "$comment") == 0)
		return false;
	if (strcmp(condition->name, "$expr") == 0)
		return expression_touches(split, &condition->value);
	if (condition->value.type != DP_TYPE_ARRAY)
		return true; /* $jsonSchema is about everything */
	dp_iter_init_value(&iter, &condition->value);
	while (dp_iter_next_value(&iter, &filter))
		if (filter_touches(split, &filter))
			return true;
	return false;
}

/*
 * Whether an expression reads it: by a path, by the whole document, or by a
 * name that is computed.
 */
static bool
expression_touches(const DpSplit *split, const DpValue *value)
{
	DpIter iter;
	DpElement element;

	check_stack_depth();
	if (value->type == DP_TYPE_STRING)
	{
		const char *s = DP_STRING_DATA(value);

		if (s[0] != '$')
			return false;
		if (s[1] != '$')
			return touches_name(split, s + 1);
		return strncmp(s, "$$ROOT", 6) == 0 || strncmp(s, "$$CURRENT", 9) == 0;
	}
	if (value->type != DP_TYPE_DOCUMENT && value->type != DP_TYPE_ARRAY)
		return false;
	dp_iter_init_value(&iter, value);
	while (dp_iter_next(&iter, &element))
		if (strcmp(element.name, "$getField") == 0 || expression_touches(split, &element.value))
			return true;
	return false;
}

/* ---------------------------------------------------------------- updates */

bool
dp_split_update(const DpSplit *split, const DpValue *update)
{
	DpIter iter;
	DpElement operator;

	/* whole documents and pipelines concern all fields */
	if (update->type != DP_TYPE_DOCUMENT)
		return true;
	dp_iter_init_value(&iter, update);
	if (update->len == DP_DOCUMENT_MIN_SIZE)
		return true;
	while (dp_iter_next(&iter, &operator))
	{
		DpIter fields;
		DpElement field;

		if (operator.name[0] != '$' || operator.value.type != DP_TYPE_DOCUMENT)
			return true;
		dp_iter_init_value(&fields, &operator.value);
		while (dp_iter_next(&fields, &field))
		{
			DpPath *path = dp_path_of_field(field.name);
			DpSplitField *touched = dp_split_find(split, path);

			if (touched != NULL && !(path->nsteps == touched->path->nsteps &&
									 is_direct(touched, &operator, & field.value)))
				return true;
			if (strcmp(operator.name, "$rename") == 0 && field.value.type == DP_TYPE_STRING &&
				touches_name(split, DP_STRING_DATA(&field.value)))
				return true;
		}
	}
	return false;
}

/* True if the operator has the same effect on the stored field as on the whole one. */
static bool
is_direct(const DpSplitField *field, const DpElement *operator, const DpValue * operand)
{
	DpIter iter;
	DpElement modifier;

	if (field->direct == NULL || strcmp(field->direct, operator->name) != 0)
		return false;
	/* $push: what is appended, not where or how much is left */
	if (operand->type == DP_TYPE_DOCUMENT)
	{
		dp_iter_init_value(&iter, operand);
		while (dp_iter_next(&iter, &modifier))
			if (modifier.name[0] == '$' && strcmp(modifier.name, "$each") != 0)
				return false;
	}
	return true;
}

/* ---------------------------------------------------------------- projections and orders */

bool
dp_split_projection(const DpSplit *split, const DpValue *projection)
{
	ListCell *lc;

	if (dp_projection_includes(dp_projection_compile(projection, 0)))
		return shows(split, projection, "");
	foreach(lc, split->fields)
	{
		DpSplitField *field = lfirst(lc);

		if (!excludes(field->path, 0, projection))
			return true;
	}
	return false;
}

/* Whether one of the fields that are included or computed touches it. */
static bool
shows(const DpSplit *split, const DpValue *fields, const char *prefix)
{
	DpIter iter;
	DpElement field;

	dp_iter_init_value(&iter, fields);
	while (dp_iter_next(&iter, &field))
	{
		char *name = psprintf("%s%s", prefix, field.name);

		/* fields below a field that is only on the way are checked separately */
		if (field.value.type == DP_TYPE_DOCUMENT && field.name[0] != '$')
		{
			DpIter below;
			DpElement first;

			dp_iter_init_value(&below, &field.value);
			if (dp_iter_next(&below, &first) && first.name[0] != '$')
			{
				if (shows(split, &field.value, psprintf("%s.", name)))
					return true;
				continue;
			}
		}
		if (touches_name(split, name) || expression_touches(split, &field.value))
			return true;
	}
	return false;
}

/* Whether the path, from that part on, is in a field that is excluded. */
static bool
excludes(const DpPath *path, int from, const DpValue *fields)
{
	DpIter iter;
	DpElement field;

	dp_iter_init_value(&iter, fields);
	while (dp_iter_next(&iter, &field))
	{
		DpPath *excluded = dp_path_of_field(field.name);
		int i;

		for (i = 0; i < excluded->nsteps && from + i < path->nsteps; i++)
			if (excluded->steps[i].namelen != path->steps[from + i].namelen ||
				memcmp(excluded->steps[i].name, path->steps[from + i].name,
					   excluded->steps[i].namelen) != 0)
				break;
		if (i < excluded->nsteps)
			continue;
		if (field.value.type == DP_TYPE_DOCUMENT
				? from + i < path->nsteps && excludes(path, from + i, &field.value)
				: true)
			return true;
	}
	return false;
}

bool
dp_split_sort(const DpSplit *split, const DpValue *spec)
{
	DpIter iter;
	DpElement field;

	dp_iter_init_value(&iter, spec);
	while (dp_iter_next(&iter, &field))
		if (touches_name(split, field.name))
			return true;
	return false;
}
