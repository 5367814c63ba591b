/*
 * member.c
 *		Documents of a source as elements of an array.
 *
 * The option "fields" is a projection, with two differences: _id is copied only when it is named
 * (unless fields are excluded), and the fields have the order in which they are named.
 */
#include "postgres.h"

#include "bson/builder.h"
#include "bson/path.h"
#include "kit/derive/member.h"
#include "mql/projection.h"
#include "mql/spec.h"

struct DpMember
{
	DpProjection *projection; /* NULL: the whole document */
	bool ordered;
	int n;
	DpValue fields;     /* as declared, in the declaration's memory */
	const char **names; /* first parts of field names, without duplicates */
	uint32 *lens;
};

static bool is_excluded(const DpValue *value);
static void *member_compile_spec(const DpValue *spec, void *arg);

DpMember *
dp_member_compile(const DpValue *fields)
{
	DpMember *member = palloc0(sizeof(DpMember));
	DpIter iter;
	DpElement element;
	DpBuilder b;
	bool excludes = false;
	bool has_id = false;
	uint32 n;
	struct varlena *spec;
	DpValue value;

	if (fields == NULL)
		return member;
	if (fields->type != DP_TYPE_DOCUMENT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("fields must be a document")));
	n = dp_document_count(fields->data, fields->len);
	if (n == 0)
		return member;
	member->fields = *fields;
	member->names = palloc(sizeof(char *) * n);
	member->lens = palloc(sizeof(uint32) * n);

	dp_builder_init(&b, fields->len + 16);
	dp_builder_begin_document(&b);
	dp_iter_init_value(&iter, fields);
	while (dp_iter_next(&iter, &element))
	{
		const char *dot = memchr(element.name, '.', element.namelen);
		uint32 len = dot != NULL ? dot - element.name : element.namelen;
		bool is_id = len == 3 && memcmp(element.name, "_id", 3) == 0;
		int i;

		has_id |= is_id;
		excludes |= is_excluded(&element.value) && !is_id;
		dp_builder_append_value(&b, element.name, element.namelen, &element.value);
		for (i = 0; i < member->n; i++)
		{
			if (member->lens[i] == len && memcmp(member->names[i], element.name, len) == 0)
				break;
		}
		if (i == member->n)
		{
			member->names[i] = pnstrdup(element.name, len);
			member->lens[i] = len;
			member->n++;
		}
	}
	if (!excludes && !has_id)
		dp_builder_append_int32(&b, "_id", 3, 0);
	dp_builder_end(&b);
	spec = dp_builder_finish_bson(&b);
	value = dp_value_of_document(spec);
	member->projection = dp_projection_compile(&value, DP_EXPR_IMMUTABLE);
	member->ordered = !excludes;
	return member;
}

/* True if the projection excludes the field. */
static bool
is_excluded(const DpValue *value)
{
	switch (value->type)
	{
		case DP_TYPE_BOOL:
			return value->data[0] == 0;
		case DP_TYPE_INT32:
			return dp_get_int32(value->data) == 0;
		case DP_TYPE_INT64:
			return dp_get_int64(value->data) == 0;
		case DP_TYPE_DOUBLE:
			return dp_get_double(value->data) == 0;
		default:
			return false;
	}
}

struct varlena *
dp_member_make(DpMember *member, struct varlena *doc)
{
	DpValue value = dp_value_of_document(doc);
	struct varlena *projected;
	DpBuilder b;
	int i;

	if (member->projection == NULL)
		return doc;
	projected = dp_projection_apply(member->projection, &value, NULL);
	if (projected == NULL)
		projected = doc;
	if (!member->ordered || member->n < 2)
		return projected;

	dp_builder_init(&b, DP_DOC_SIZE(projected) + VARHDRSZ);
	dp_builder_begin_document(&b);
	for (i = 0; i < member->n; i++)
	{
		if (dp_field_find(DP_DOC_DATA(projected), DP_DOC_SIZE(projected), member->names[i],
						  member->lens[i], &value))
			dp_builder_append_value(&b, member->names[i], member->lens[i], &value);
	}
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

/* Finds only whole paths, not parts of other values. */
char *
dp_member_shows(const DpMember *member, const char *path, uint32 len)
{
	DpIter iter;
	DpElement field;

	if (member->projection == NULL)
		return pnstrdup(path, len);
	dp_iter_init_value(&iter, &member->fields);
	while (dp_iter_next(&iter, &field))
	{
		bool same = field.namelen == len && memcmp(field.name, path, len) == 0;

		if (is_excluded(&field.value)
				? same
				: same && (field.value.type == DP_TYPE_BOOL || field.value.type == DP_TYPE_INT32 ||
						   field.value.type == DP_TYPE_INT64 || field.value.type == DP_TYPE_DOUBLE))
			return is_excluded(&field.value) ? NULL : pnstrdup(path, len);
		if (field.value.type == DP_TYPE_STRING && DP_STRING_LEN(&field.value) == len + 1 &&
			DP_STRING_DATA(&field.value)[0] == '$' &&
			memcmp(DP_STRING_DATA(&field.value) + 1, path, len) == 0)
			return pnstrdup(field.name, field.namelen);
	}
	return member->ordered ? NULL : pnstrdup(path, len);
}

/*
 * _subset_member(doc bson, fields bson) -> bson
 */
DP_FUNCTION(dp_subset_member);
Datum
dp_subset_member(PG_FUNCTION_ARGS)
{
	DpMember *member = dp_spec_arg(fcinfo, 1, member_compile_spec, NULL);

	PG_RETURN_POINTER(dp_member_make(member, PG_GETARG_VARLENA_PP(0)));
}

static void *
member_compile_spec(const DpValue *spec, void *arg)
{
	return dp_member_compile(spec);
}
