/*
 * pack.c
 *		Converts documents of the attribute pattern from the wide layout to the
 *		packed one and back.
 *
 * A document without such fields costs a comparison of its field names.  Otherwise
 * it is written once: runs of other fields are copied, and the array is written
 * where it was or where its first field was.  Unpacking writes the fields where
 * the array was.
 *
 * A field whose key a member already has replaces the value of that member,
 * whatever its other fields; other fields are added after the members.  Only a
 * member with the key fields, a matching qualifier and a value, and no other
 * fields, can become a field.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/reader.h"
#include "bson/text.h"
#include "patterns/attribute/attribute.h"

/* A field that is to be packed */
typedef struct Found
{
	DpAttributeKey key;
	DpValue value;
	const uint8 *start; /* its element; NULL if it is inside others: */
	int path;           /* of several names, or -1 */
	bool placed;        /* a member has taken it */
} Found;

typedef struct FoundList
{
	Found *items;
	int n;
	int ntop; /* top-level fields first */
	int room;
	const uint8 *into_start; /* the array's element at the top of the document, or NULL */
	const uint8 *into_end;
	Found fixed[24];
} FoundList;

/* A member of the array */
typedef struct Member
{
	DpValue doc;
	bool has_key; /* it has all key fields */
	bool plain;   /* they are strings, it has a value and nothing that a field could not say */
	bool returns; /* it can become a field: */
	DpAttributeText name;
	int path;
	DpValue keys[DP_ATTRIBUTE_MAX_KEYS];
	DpValue qualifier; /* type 0: none */
	DpValue value;     /* type 0: none */
	int position;
} Member;

static void find_fields(const DpAttributeForm *form, struct varlena *doc, FoundList *list);
static void found_grow(FoundList *list);
static bool nested_find(const DpPath *path, struct varlena *doc, DpValue *value);
static void
wrong_value(const DpAttributeForm *form, int nsteps, const DpValue *found) pg_attribute_noreturn();
static void check_way(const DpAttributeForm *form, struct varlena *doc);
static Member *read_members(const DpAttributeForm *form, const DpValue *array, int *n);
static void read_member(const DpAttributeForm *form, const DpValue *value, Member *m);
static void
find_returning(const DpAttributeForm *form, struct varlena *doc, Member *members, int n);
static bool member_has_key(const DpAttributeForm *form, const Member *m, const DpAttributeKey *key);
static bool append_array(const DpAttributeForm *form, DpBuilder *b, const DpValue *array,
						 FoundList *list, bool only_found);
static void
append_replaced(const DpAttributeForm *form, DpBuilder *b, const Member *m, const DpValue *value);
static void append_found(const DpAttributeForm *form, DpBuilder *b, const Found *f);
static struct varlena *without_array(const DpAttributeForm *form, struct varlena *doc);
static int compare_keys(const void *a, const void *b, void *arg);
static int compare_names(const void *a, const void *b);

/* Containers around a member's value at least: the document, the array and the member */
#define MEMBER_PARENTS 3

/* Lists the fields to pack, in the order of the document; fields inside others are last. */
static void
find_fields(const DpAttributeForm *form, struct varlena *doc, FoundList *list)
{
	DpIter iter;
	DpElement element;
	int i;
	const DpPathStep *into = form->into->nsteps == 1 ? &form->into->steps[0] : NULL;

	list->items = list->fixed;
	list->n = 0;
	list->room = lengthof(list->fixed);
	list->into_start = NULL;
	dp_iter_init_varlena(&iter, doc);
	for (;;)
	{
		const uint8 *start = iter.next;
		Found *f;

		CHECK_FOR_INTERRUPTS();
		if (list->n == list->room)
			found_grow(list);
		f = &list->items[list->n];
		if (!dp_iter_next(&iter, &element))
			break;
		if (dp_attribute_match(form, element.name, element.namelen, &f->key))
		{
			f->value = element.value;
			f->start = start;
			f->path = -1;
			f->placed = false;
			list->n++;
		}
		else if (into != NULL && list->into_start == NULL && element.namelen == into->namelen &&
				 memcmp(element.name, into->name, into->namelen) == 0)
		{
			/* a duplicate field name is not checked here */
			list->into_start = start;
			list->into_end = iter.next;
		}
	}
	list->ntop = list->n;
	if (!form->nested)
		return;
	for (i = 0; i < form->npaths; i++)
	{
		DpValue value;
		Found *f;

		if (form->paths[i].path->nsteps == 1 || !nested_find(form->paths[i].path, doc, &value))
			continue;
		if (list->n == list->room)
			found_grow(list);
		f = &list->items[list->n++];
		dp_attribute_path_key(form, i, &f->key);
		f->value = value;
		f->start = NULL;
		f->path = i;
		f->placed = false;
	}
}

/* Room for more. */
static void
found_grow(FoundList *list)
{
	Found *items = palloc(sizeof(Found) * list->room * 2);

	memcpy(items, list->items, sizeof(Found) * list->n);
	list->items = items;
	list->room *= 2;
}

/* Returns the value at a path through documents; positions in arrays are not followed. */
static bool
nested_find(const DpPath *path, struct varlena *doc, DpValue *value)
{
	int i;

	*value = dp_value_of_document(doc);
	for (i = 0; i < path->nsteps; i++)
	{
		DpValue next;

		if (value->type != DP_TYPE_DOCUMENT ||
			!dp_field_find(value->data, value->len, path->steps[i].name, path->steps[i].namelen,
						   &next))
			return false;
		*value = next;
	}
	return true;
}

bool
dp_attribute_is_wide(const DpAttributeForm *form, struct varlena *doc, DpAttributeText *name)
{
	DpIter iter;
	DpElement element;
	DpAttributeKey key;
	int i;

	dp_iter_init_varlena(&iter, doc);
	while (dp_iter_next(&iter, &element))
	{
		CHECK_FOR_INTERRUPTS();
		if (!dp_attribute_match(form, element.name, element.namelen, &key))
			continue;
		if (name != NULL)
		{
			name->s = element.name;
			name->len = element.namelen;
		}
		return true;
	}
	for (i = 0; form->nested && i < form->npaths; i++)
	{
		DpValue value;

		if (form->paths[i].path->nsteps > 1 && nested_find(form->paths[i].path, doc, &value))
		{
			if (name != NULL)
				*name = form->paths[i].text;
			return true;
		}
	}
	return false;
}

/* The value at the array's path */
static bool
array_find(const DpAttributeForm *form, struct varlena *doc, DpValue *value)
{
	if (form->into->nsteps == 1)
		return dp_field_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), form->into->steps[0].name,
							 form->into->steps[0].namelen, value);
	return nested_find(form->into, doc, value);
}

bool
dp_attribute_array(const DpAttributeForm *form, struct varlena *doc, DpValue *array)
{
	return array_find(form, doc, array) && array->type == DP_TYPE_ARRAY;
}

/* Raises CHECK_VIOLATION for a value that cannot be an array, or a document around it. */
static void
wrong_value(const DpAttributeForm *form, int nsteps, const DpValue *found)
{
	StringInfoData path;
	const char **names = palloc(sizeof(char *) * nsteps);
	uint32 *lens = palloc(sizeof(uint32) * nsteps);
	int i;

	for (i = 0; i < nsteps; i++)
	{
		names[i] = form->into->steps[i].name;
		lens[i] = form->into->steps[i].namelen;
	}
	initStringInfo(&path);
	dp_path_to_text(&path, dp_path_of_names(nsteps, names, lens));
	ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
					errmsg("field \"%s\" of a document is of type %s", path.data,
						   dp_type_name(found->type)),
					errdetail("The attribute pattern packs other fields into it, so it must be %s.",
							  nsteps == form->into->nsteps ? "an array" : "a document")));
}

/* Requires documents along the path of the array. */
static void
check_way(const DpAttributeForm *form, struct varlena *doc)
{
	DpValue at = dp_value_of_document(doc);
	int i;

	for (i = 0; i < form->into->nsteps - 1; i++)
	{
		DpValue next;

		if (!dp_field_find(at.data, at.len, form->into->steps[i].name, form->into->steps[i].namelen,
						   &next))
			return;
		if (next.type != DP_TYPE_DOCUMENT)
			wrong_value(form, i + 1, &next);
		at = next;
	}
}

/* The members of an array. */
static Member *
read_members(const DpAttributeForm *form, const DpValue *array, int *n)
{
	int room = dp_document_count(array->data, array->len);
	Member *members = palloc(sizeof(Member) * Max(room, 1));
	DpIter iter;
	DpValue value;

	*n = 0;
	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &value))
	{
		read_member(form, &value, &members[*n]);
		members[*n].position = *n;
		(*n)++;
	}
	return members;
}

/* Reads the parts of a member. */
static void
read_member(const DpAttributeForm *form, const DpValue *value, Member *m)
{
	DpIter iter;
	DpElement element;
	int i;

	memset(m, 0, sizeof(Member));
	m->doc = *value;
	m->path = -1;
	if (value->type != DP_TYPE_DOCUMENT)
		return;
	m->plain = true;
	dp_iter_init_value(&iter, value);
	while (dp_iter_next(&iter, &element))
	{
		DpValue *target = NULL;

#define IS(text)                                                                                   \
	((text).len == element.namelen && memcmp((text).s, element.name, element.namelen) == 0)
		for (i = 0; i < form->nfields && target == NULL; i++)
		{
			if (IS(form->fields[i].name))
				target = &m->keys[i];
		}
		if (target == NULL && IS(form->value_field))
			target = &m->value;
		if (target == NULL && form->qualifier_field.s != NULL && IS(form->qualifier_field))
			target = &m->qualifier;
#undef IS
		if (target == NULL || target->type != 0)
			m->plain = false; /* something else, or the same once more */
		else
			*target = element.value;
	}
	m->has_key = true;
	for (i = 0; i < form->nfields; i++)
	{
		if (m->keys[i].type == 0)
			m->has_key = false;
		if (m->keys[i].type != DP_TYPE_STRING)
			m->plain = false;
	}
	if (m->value.type == 0)
		m->plain = false;
}

/* Finds the members that can become a field of the document. */
static void
find_returning(const DpAttributeForm *form, struct varlena *doc, Member *members, int n)
{
	Member **sorted = palloc(sizeof(Member *) * Max(n, 1));
	int nsorted = 0;
	int i;
	int j;

	for (i = 0; i < n; i++)
	{
		Member *m = &members[i];
		DpAttributeText parts[DP_ATTRIBUTE_MAX_KEYS];
		DpAttributeKey key;
		DpValue there;

		CHECK_FOR_INTERRUPTS();
		if (!m->plain)
			continue;
		for (j = 0; j < form->nfields; j++)
		{
			parts[j].s = DP_STRING_DATA(&m->keys[j]);
			parts[j].len = DP_STRING_LEN(&m->keys[j]);
		}
		if (!dp_attribute_name(form, parts, &m->name, &m->path, &key))
			continue;
		if (key.qualifier == NULL
				? m->qualifier.type != 0
				: m->qualifier.type == 0 || !dp_value_identical(key.qualifier, &m->qualifier))
			continue;
		if (m->path >= 0)
		{
			const DpPath *path = form->paths[m->path].path;
			DpValue at = dp_value_of_document(doc);
			int step;

			/* the way there must be free */
			for (step = 0; step < path->nsteps; step++)
			{
				if (at.type != DP_TYPE_DOCUMENT)
					break;
				if (!dp_field_find(at.data, at.len, path->steps[step].name,
								   path->steps[step].namelen, &there))
				{
					step = path->nsteps;
					at.type = DP_TYPE_DOCUMENT;
					break;
				}
				at = there;
				if (step == path->nsteps - 1)
					at.type = DP_TYPE_EOD; /* the field is there */
			}
			if (at.type != DP_TYPE_DOCUMENT)
				continue;
		}
		else if (dp_field_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), m->name.s, m->name.len, &there))
			continue;
		m->returns = true;
		sorted[nsorted++] = m;
	}

	/* one field cannot represent two */
	if (nsorted > 1)
		qsort(sorted, nsorted, sizeof(Member *), compare_names);
	for (i = 1; i < nsorted; i++)
	{
		if (sorted[i]->name.len == sorted[i - 1]->name.len &&
			memcmp(sorted[i]->name.s, sorted[i - 1]->name.s, sorted[i]->name.len) == 0)
			sorted[i]->returns = false;
	}
	pfree(sorted);
}

/* By name, then by position. */
static int
compare_names(const void *a, const void *b)
{
	const Member *x = *(const Member *const *) a;
	const Member *y = *(const Member *const *) b;
	int c = memcmp(x->name.s, y->name.s, Min(x->name.len, y->name.len));

	if (c == 0)
		c = x->name.len < y->name.len ? -1 : x->name.len > y->name.len ? 1 : 0;
	if (c == 0)
		c = x->position < y->position ? -1 : 1;
	return c;
}

/* Whether a member is the one of a key. */
static bool
member_has_key(const DpAttributeForm *form, const Member *m, const DpAttributeKey *key)
{
	int i;

	if (!m->has_key)
		return false;
	for (i = 0; i < form->nfields; i++)
	{
		if (m->keys[i].type != DP_TYPE_STRING || DP_STRING_LEN(&m->keys[i]) != key->parts[i].len ||
			memcmp(DP_STRING_DATA(&m->keys[i]), key->parts[i].s, key->parts[i].len) != 0)
			return false;
	}
	if (key->qualifier == NULL)
		return m->qualifier.type == 0;
	return m->qualifier.type != 0 && dp_value_compare(&m->qualifier, key->qualifier) == 0;
}

/*
 * Appends the array's members together with the found fields. With only_found, omits members whose
 * field was not found; then returns false, and appends nothing, if none is left.
 */
static bool
append_array(const DpAttributeForm *form, DpBuilder *b, const DpValue *array, FoundList *list,
			 bool only_found)
{
	Member *members;
	int *taken;
	bool any = list->n > 0;
	int n;
	int i;
	int j;

	members = read_members(form, array, &n);
	taken = palloc(sizeof(int) * Max(n, 1));
	if (only_found)
	{
		/* names in the document that members represented before */
		find_returning(form, dp_document_to_varlena(dp_empty_document, sizeof(dp_empty_document)),
					   members, n);
	}
	for (i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		taken[i] = -1;
		for (j = 0; j < list->n; j++)
		{
			if (!list->items[j].placed && member_has_key(form, &members[i], &list->items[j].key))
			{
				taken[i] = j;
				list->items[j].placed = true;
				break;
			}
		}
		any = any || !only_found || !members[i].returns;
	}
	if (!any)
		return false;

	dp_builder_begin_array(b);
	for (i = 0; i < n; i++)
	{
		if (taken[i] < 0)
		{
			if (!only_found || !members[i].returns)
				dp_builder_append_value(b, NULL, 0, &members[i].doc);
		}
		else if (members[i].value.type != 0 &&
				 dp_value_identical(&members[i].value, &list->items[taken[i]].value))
			dp_builder_append_value(b, NULL, 0, &members[i].doc);
		else
			append_replaced(form, b, &members[i], &list->items[taken[i]].value);
	}
	for (j = 0; j < list->n; j++)
	{
		if (!list->items[j].placed)
			append_found(form, b, &list->items[j]);
	}
	dp_builder_end(b);
	pfree(members);
	pfree(taken);
	return true;
}

/* A member with another value. */
static void
append_replaced(const DpAttributeForm *form, DpBuilder *b, const Member *m, const DpValue *value)
{
	DpIter iter;
	DpElement element;
	bool done = false;

	if (dp_type_is_container(value->type))
		dp_check_depth(MEMBER_PARENTS + form->into->nsteps - 1, value);
	dp_builder_begin_document_field(b, NULL, 0);
	dp_iter_init_value(&iter, &m->doc);
	while (dp_iter_next(&iter, &element))
	{
		bool is_value = !done && element.namelen == form->value_field.len &&
						memcmp(element.name, form->value_field.s, element.namelen) == 0;

		dp_builder_append_value(b, element.name, element.namelen,
								is_value ? value : &element.value);
		done = done || is_value;
	}
	if (!done)
		dp_builder_append_value(b, form->value_field.s, form->value_field.len, value);
	dp_builder_end(b);
}

/* A new member. */
static void
append_found(const DpAttributeForm *form, DpBuilder *b, const Found *f)
{
	int i;

	if (dp_type_is_container(f->value.type))
		dp_check_depth(MEMBER_PARENTS + form->into->nsteps - 1, &f->value);
	dp_builder_begin_document_field(b, NULL, 0);
	for (i = 0; i < form->nfields; i++)
		dp_builder_append_string(b, form->fields[i].name.s, form->fields[i].name.len,
								 f->key.parts[i].s, f->key.parts[i].len);
	if (f->key.qualifier != NULL)
		dp_builder_append_value(b, form->qualifier_field.s, form->qualifier_field.len,
								f->key.qualifier);
	dp_builder_append_value(b, form->value_field.s, form->value_field.len, &f->value);
	dp_builder_end(b);
}

/*
 * The number of bytes of the member that a field becomes, without its name in
 * the array: type, length, key fields, qualifier, value, end.
 */
static inline Size
member_size(const DpAttributeForm *form, const Found *f)
{
	Size size = 1 + 4 + (1 + form->value_field.len + 1 + f->value.len) + 1;
	int i;

	for (i = 0; i < form->nfields; i++)
		size += 1 + form->fields[i].name.len + 1 + 4 + f->key.parts[i].len + 1;
	if (f->key.qualifier != NULL)
		size += 1 + form->qualifier_field.len + 1 + f->key.qualifier->len;
	return size;
}

/* Writes type and name of an element; returns the position of its value. */
static inline uint8 *
write_name(uint8 *p, uint8 type, DpAttributeText name)
{
	*p++ = type;
	memcpy(p, name.s, name.len);
	p += name.len;
	*p++ = 0;
	return p;
}

/* Writes an array of nothing but these fields; returns where it ends. */
static uint8 *
write_array(const DpAttributeForm *form, uint8 *p, const FoundList *list)
{
	uint8 *array = p;
	int j;
	int i;

	p += 4;
	for (j = 0; j < list->n; j++)
	{
		const Found *f = &list->items[j];
		uint8 *member;

		*p++ = DP_TYPE_DOCUMENT;
		p += dp_index_name(j, (char *) p);
		*p++ = 0;
		member = p;
		p += 4;
		for (i = 0; i < form->nfields; i++)
		{
			const DpAttributeText *part = &f->key.parts[i];

			p = write_name(p, DP_TYPE_STRING, form->fields[i].name);
			dp_put_int32(p, part->len + 1);
			memcpy(p + 4, part->s, part->len);
			p += 4 + part->len;
			*p++ = 0;
		}
		if (f->key.qualifier != NULL)
		{
			p = write_name(p, f->key.qualifier->type, form->qualifier_field);
			memcpy(p, f->key.qualifier->data, f->key.qualifier->len);
			p += f->key.qualifier->len;
		}
		p = write_name(p, f->value.type, form->value_field);
		memcpy(p, f->value.data, f->value.len);
		p += f->value.len;
		*p++ = 0;
		dp_put_int32(member, p - member);
	}
	*p++ = 0;
	dp_put_int32(array, p - array);
	return p;
}

struct varlena *
dp_attribute_pack(const DpAttributeForm *form, struct varlena *doc, const DpValue *base)
{
	FoundList list;
	DpValue there;
	const DpValue *array = base;
	const DpPathStep *into = &form->into->steps[0];
	bool at_top = form->into->nsteps == 1;
	DpValue made = { NULL, 0, 0 }; /* the array, if it is not of new members alone */
	struct varlena *result;
	const uint8 *run = DP_DOC_DATA(doc) + 4;
	uint8 *p;
	Size array_size = 5;
	Size size;
	bool has_array = true;
	bool placed = false;
	int i;

	find_fields(form, doc, &list);
	if (list.n == 0 && base == NULL)
		return NULL;
	if (list.n > 0)
		check_way(form, doc);
	if (base == NULL && array_find(form, doc, &there) && there.type != DP_TYPE_NULL)
	{
		if (there.type != DP_TYPE_ARRAY)
			wrong_value(form, form->into->nsteps, &there);
		array = &there;
	}

	/* fields that go into the array */
	if (array != NULL)
	{
		DpBuilder b;

		dp_builder_init_value(&b, array->len);
		has_array = append_array(form, &b, array, &list, base != NULL);
		if (has_array)
			made = dp_value_of_varlena(dp_builder_finish_value(&b, DP_TYPE_ARRAY));
		array_size = made.len;
	}
	else
	{
		for (i = 0; i < list.n; i++)
		{
			if (dp_type_is_container(list.items[i].value.type))
				dp_check_depth(MEMBER_PARENTS + form->into->nsteps - 1, &list.items[i].value);
			array_size += member_size(form, &list.items[i]) + 11; /* a position and its NUL */
		}
	}
	size = DP_DOC_SIZE(doc) + into->namelen + 2 + array_size;
	if (!AllocSizeIsValid(VARHDRSZ + size))
		dp_check_document_size(size);

	/*
	 * writes the document without the fields, and with the array where it or the first of them was
	 */
	result = palloc(VARHDRSZ + size);
	p = (uint8 *) VARDATA(result) + 4;
	for (i = 0; i <= list.ntop; i++)
	{
		const uint8 *end = DP_DOC_DATA(doc) + DP_DOC_SIZE(doc) - 1;
		const uint8 *next = i < list.ntop ? list.items[i].start : end;

#define PLACE_ARRAY()                                                                              \
	do                                                                                             \
	{                                                                                              \
		if (at_top && has_array && !placed)                                                        \
		{                                                                                          \
			DpAttributeText name_ = { into->name, into->namelen };                                 \
			p = write_name(p, DP_TYPE_ARRAY, name_);                                               \
			if (made.data == NULL)                                                                 \
				p = write_array(form, p, &list);                                                   \
			else                                                                                   \
			{                                                                                      \
				memcpy(p, made.data, made.len);                                                    \
				p += made.len;                                                                     \
			}                                                                                      \
		}                                                                                          \
		placed = true;                                                                             \
	} while (0)

		if (list.into_start != NULL && list.into_start >= run && list.into_start < next)
		{
			memcpy(p, run, list.into_start - run);
			p += list.into_start - run;
			run = list.into_end;
			PLACE_ARRAY();
		}
		memcpy(p, run, next - run);
		p += next - run;
		if (i < list.ntop)
			run = list.items[i].value.data + list.items[i].value.len;
		PLACE_ARRAY();
#undef PLACE_ARRAY
	}
	*p++ = 0;
	size = p - (uint8 *) VARDATA(result);
	Assert(size <= INT_MAX);
	dp_put_int32((uint8 *) VARDATA(result), (int32) size);
	SET_VARSIZE(result, VARHDRSZ + size);

	/* fields inside others, and an array inside another document; not optimized */
	for (i = list.ntop; i < list.n; i++)
	{
		struct varlena *without = dp_document_unset(DP_DOC_DATA(result), DP_DOC_SIZE(result),
													form->paths[list.items[i].path].path);

		if (without != NULL)
			result = without;
	}
	if (!at_top)
	{
		struct varlena *changed;

		if (has_array && made.data == NULL)
		{
			uint8 *bytes = palloc(array_size);

			made.type = DP_TYPE_ARRAY;
			made.data = bytes;
			made.len = write_array(form, bytes, &list) - bytes;
		}
		changed = has_array
					  ? dp_document_set(DP_DOC_DATA(result), DP_DOC_SIZE(result), form->into, &made)
					  : without_array(form, result);
		if (changed != NULL)
			result = changed;
	}
	dp_check_document_size(DP_DOC_SIZE(result));
	return result;
}

/*
 * Writes the document without an array inside other documents, and without those of them that are
 * empty then: packing has created them.
 */
static struct varlena *
without_array(const DpAttributeForm *form, struct varlena *doc)
{
	int n;

	for (n = form->into->nsteps; n > 0; n--)
	{
		const char **names = palloc(sizeof(char *) * n);
		uint32 *lens = palloc(sizeof(uint32) * n);
		DpPath *path;
		DpValue value;
		struct varlena *without;
		int i;

		for (i = 0; i < n; i++)
		{
			names[i] = form->into->steps[i].name;
			lens[i] = form->into->steps[i].namelen;
		}
		path = dp_path_of_names(n, names, lens);
		if (n < form->into->nsteps &&
			(!nested_find(path, doc, &value) || value.type != DP_TYPE_DOCUMENT ||
			 value.len > DP_DOCUMENT_MIN_SIZE))
			break;
		without = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path);
		if (without != NULL)
			doc = without;
	}
	return doc;
}

int
dp_attribute_returning(const DpAttributeForm *form, struct varlena *doc, int *left)
{
	DpValue array;
	Member *members;
	int returning = 0;
	int n;
	int i;

	*left = 0;
	if (!dp_attribute_array(form, doc, &array))
		return 0;
	members = read_members(form, &array, &n);
	find_returning(form, doc, members, n);
	for (i = 0; i < n; i++)
		returning += members[i].returns;
	pfree(members);
	*left = n - returning;
	return returning;
}

struct varlena *
dp_attribute_unpack(const DpAttributeForm *form, struct varlena *doc)
{
	const DpPathStep *into = &form->into->steps[0];
	bool at_top = form->into->nsteps == 1;
	DpValue array;
	Member *members;
	DpBuilder b;
	DpIter iter;
	DpElement element;
	const uint8 *run;
	bool done = false;
	int returning = 0;
	struct varlena *result;
	int n;
	int i;

	if (!dp_attribute_array(form, doc, &array))
		return NULL;
	members = read_members(form, &array, &n);
	find_returning(form, doc, members, n);
	for (i = 0; i < n; i++)
		returning += members[i].returns;
	if (returning == 0)
		return NULL;

	dp_builder_init(&b, DP_DOC_SIZE(doc));
	dp_builder_begin_document(&b);
	dp_iter_init_varlena(&iter, doc);
	run = iter.next;
	for (;;)
	{
		const uint8 *start = iter.next;
		bool at_end = !dp_iter_next(&iter, &element);

		if (!at_end && (done || !at_top || element.namelen != into->namelen ||
						memcmp(element.name, into->name, into->namelen) != 0))
			continue;
		dp_builder_append_elements(&b, run, start - run);
		run = iter.next;
		for (i = 0; i < n && !done; i++)
		{
			if (members[i].returns && members[i].path < 0)
				dp_builder_append_value(&b, members[i].name.s, members[i].name.len,
										&members[i].value);
		}
		if (!done && at_top && returning < n)
		{
			dp_builder_begin_array_field(&b, into->name, into->namelen);
			for (i = 0; i < n; i++)
			{
				if (!members[i].returns)
					dp_builder_append_value(&b, NULL, 0, &members[i].doc);
			}
			dp_builder_end(&b);
		}
		done = true;
		if (at_end)
			break;
	}
	dp_builder_end(&b);
	result = dp_builder_finish_bson(&b);

	for (i = 0; i < n; i++)
	{
		if (members[i].returns && members[i].path >= 0)
			result = dp_document_set(DP_DOC_DATA(result), DP_DOC_SIZE(result),
									 form->paths[members[i].path].path, &members[i].value);
	}
	if (!at_top)
	{
		if (returning == n)
			result = without_array(form, result);
		else
		{
			struct varlena *rest;
			DpValue value;

			dp_builder_init(&b, array.len);
			dp_builder_begin_document(&b);
			dp_builder_begin_array_field(&b, "a", 1);
			for (i = 0; i < n; i++)
			{
				if (!members[i].returns)
					dp_builder_append_value(&b, NULL, 0, &members[i].doc);
			}
			dp_builder_end(&b);
			dp_builder_end(&b);
			rest = dp_builder_finish_bson(&b);
			(void) dp_document_find(DP_DOC_DATA(rest), DP_DOC_SIZE(rest), "a", 1, &value);
			result = dp_document_set(DP_DOC_DATA(result), DP_DOC_SIZE(result), form->into, &value);
		}
	}
	return result;
}

struct varlena *
dp_attribute_convert(const DpAttributeForm *form, struct varlena *doc)
{
	return form->wide ? dp_attribute_unpack(form, doc) : dp_attribute_pack(form, doc, NULL);
}

bool
dp_attribute_twice(const DpAttributeForm *form, struct varlena *doc, char **text)
{
	DpValue array;
	Member *members;
	Member **sorted;
	int nsorted = 0;
	int n;
	int i;
	int j;

	if (!dp_attribute_array(form, doc, &array))
		return false;
	members = read_members(form, &array, &n);
	sorted = palloc(sizeof(Member *) * Max(n, 1));
	for (i = 0; i < n; i++)
	{
		if (members[i].has_key)
			sorted[nsorted++] = &members[i];
	}
	if (nsorted > 1)
		qsort_arg(sorted, nsorted, sizeof(Member *), compare_keys,
				  unconstify(DpAttributeForm *, form));
	for (i = 1; i < nsorted; i++)
	{
		StringInfoData out;

		if (compare_keys(&sorted[i - 1], &sorted[i], unconstify(DpAttributeForm *, form)) != 0)
			continue;
		initStringInfo(&out);
		for (j = 0; j < form->nfields; j++)
		{
			appendStringInfoString(&out, j > 0 ? ", " : "");
			dp_value_to_text(&out, &sorted[i]->keys[j], DP_TEXT_RELAXED, -1);
		}
		if (sorted[i]->qualifier.type != 0)
		{
			appendStringInfoString(&out, ", ");
			dp_value_to_text(&out, &sorted[i]->qualifier, DP_TEXT_RELAXED, -1);
		}
		if (out.len > 100)
		{
			out.len = pg_mbcliplen(out.data, out.len, 100);
			out.data[out.len] = '\0';
			appendStringInfoString(&out, "...");
		}
		*text = out.data;
		return true;
	}
	pfree(members);
	pfree(sorted);
	return false;
}

/* The order of two members' keys: 0 if they are equal. */
static int
compare_keys(const void *a, const void *b, void *arg)
{
	const DpAttributeForm *form = arg;
	const Member *x = *(const Member *const *) a;
	const Member *y = *(const Member *const *) b;
	int i;

	for (i = 0; i < form->nfields; i++)
	{
		int c = dp_value_compare(&x->keys[i], &y->keys[i]);

		if (c != 0)
			return c;
	}
	if (x->qualifier.type == 0 || y->qualifier.type == 0)
		return (x->qualifier.type != 0) - (y->qualifier.type != 0);
	return dp_value_compare(&x->qualifier, &y->qualifier);
}
