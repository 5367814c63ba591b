/*
 * edit.c
 *		Changes documents by path.
 *
 * A change is planned first: its position in the old bytes, and the containers around it.  Then the
 * new document is one allocation and three copies (before, new, after), and the lengths of the
 * containers are adjusted.  If the old document is the caller's own copy, because it was fetched or
 * decompressed, it becomes the new one and only the bytes after the change move.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#include "bson/builder.h"
#include "bson/edit.h"
#include "bson/names.h"

/* Where in a document a path leads, or where it ends */
typedef struct EditPlace
{
	DpValue root;                  /* what is changed */
	bool is_value;                 /* the result is a bson_value, not a bson */
	struct varlena *own;           /* root's varlena, if it may become the result */
	DpValue parents[DP_MAX_DEPTH]; /* containers on the way, the document first */
	int nparents;
	bool exists;          /* the path exists: */
	const uint8 *element; /* where its element begins, */
	DpValue value;        /* its type */
} EditPlace;

/* A field of the right document of a merge */
typedef struct MergeField
{
	DpElement element;
	const uint8 *start; /* the element's bytes */
	const uint8 *end;
	uint32 next;  /* next in its bucket, counted from 1 */
	uint32 first; /* the first field of that name, itself as a rule */
	bool used;    /* replaced a field of the left one */
} MergeField;

/* The fields of the right document of a merge, by name */
typedef struct MergeTable
{
	MergeField *fields;
	uint32 *buckets; /* first field, counted from 1 */
	uint32 mask;
} MergeTable;

/* A path that leads on from a container, by that step */
typedef struct Without
{
	const DpPath *path;
	int step;
} Without;

static void edit_locate(const uint8 *doc, uint32 size, const DpPath *path, EditPlace *place);
static void
edit_locate_in(const DpValue *root, bool is_value, const DpPath *path, EditPlace *place);
static void edit_locate_own(struct varlena *doc, const DpPath *path, EditPlace *place);
static struct varlena *
edit_set(const EditPlace *place, const DpPath *path, const DpValue *value, bool create);
static struct varlena *
edit_append(EditPlace *place, const DpPath *path, const DpValue *values, int nvalues);
static struct varlena *
merge(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize, uint32 head);
static uint32 *merge_find(MergeTable *table, const DpElement *element);
static struct varlena *edit_unset(const DpValue *root, bool is_value, const DpPath *path);
static bool copy_without(DpBuilder *b, const DpValue *from, const Without *paths, int n);
static struct varlena *unset_names(struct varlena *doc, const DpNames *names);
static int value_depth(const DpValue *value);
static struct varlena *
edit_splice(const EditPlace *place, const uint8 *at, uint32 removed, const DpBuilder *b);
static struct varlena *edit_replace(const EditPlace *place, const DpValue *value);
static struct varlena *
edit_insert(const EditPlace *place, const DpPath *path, const DpValue *value);
static struct varlena *edit_exchange(const EditPlace *place, uint32 before, uint32 removed,
									 const uint8 *added, uint32 nadded);
static void edit_adjust(uint8 *out, const EditPlace *place, int64 delta);
static void path_blocked(const DpPath *path, int step, uint8 type) pg_attribute_noreturn();

/*
 * A new bson with the value where the path leads.
 */
struct varlena *
dp_document_set(const uint8 *doc, uint32 size, const DpPath *path, const DpValue *value)
{
	return dp_document_set_if(doc, size, path, value, true);
}

struct varlena *
dp_document_set_if(const uint8 *doc, uint32 size, const DpPath *path, const DpValue *value,
				   bool create)
{
	EditPlace place;

	edit_locate(doc, size, path, &place);
	return edit_set(&place, path, value, create);
}

struct varlena *
dp_document_set_own(struct varlena *doc, const DpPath *path, const DpValue *value, bool create)
{
	EditPlace place;

	edit_locate_own(doc, path, &place);
	return edit_set(&place, path, value, create);
}

struct varlena *
dp_value_set_if(const DpValue *root, const DpPath *path, const DpValue *value, bool create)
{
	EditPlace place;

	edit_locate_in(root, true, path, &place);
	if (place.nparents == 0)
		path_blocked(path, 0, root->type);
	return edit_set(&place, path, value, create);
}

/*
 * The old bytes with the value where the path leads; NULL if there is nothing
 * yet and nothing is to be made.
 */
static struct varlena *
edit_set(const EditPlace *place, const DpPath *path, const DpValue *value, bool create)
{
	if (place->exists)
		return edit_replace(place, value);
	if (!create)
		return NULL;
	return edit_insert(place, path, value);
}

/* A new bson without the value at the path, or NULL. */
struct varlena *
dp_document_unset(const uint8 *doc, uint32 size, const DpPath *path)
{
	DpValue root = { doc, size, DP_TYPE_DOCUMENT };

	return edit_unset(&root, false, path);
}

struct varlena *
dp_value_unset(const DpValue *root, const DpPath *path)
{
	return edit_unset(root, true, path);
}

/* Names are removed at once, other paths one after the other, freeing each intermediate copy. */
struct varlena *
dp_document_unset_all(struct varlena *doc, DpPath *const *paths, int n)
{
	struct varlena *result = doc;
	DpNames names = { 0 };
	bool found;

	for (int i = 0; i < n; i++)
		if (paths[i]->nsteps == 1)
			(void) dp_names_add(&names, paths[i]->steps[0].name, paths[i]->steps[0].namelen,
								&found);
	if (names.n > 0)
		result = unset_names(doc, &names);
	dp_names_free(&names);
	for (int i = 0; i < n; i++)
	{
		struct varlena *previous = result;

		CHECK_FOR_INTERRUPTS();
		if (paths[i]->nsteps == 1)
			continue;
		result = dp_document_unset(DP_DOC_DATA(previous), DP_DOC_SIZE(previous), paths[i]);
		if (result == NULL)
			result = previous;
		else if (previous != doc)
			pfree(previous);
	}
	return result;
}

/* The document without the fields of these names. */
static struct varlena *
unset_names(struct varlena *doc, const DpNames *names)
{
	uint32 size = DP_DOC_SIZE(doc);
	struct varlena *result = palloc(VARHDRSZ + size);
	uint8 *out = (uint8 *) VARDATA(result) + 4;
	DpIter iter;
	DpElement element;
	const uint8 *start;

	dp_iter_init_varlena(&iter, doc);
	for (start = iter.next; dp_iter_next(&iter, &element); start = iter.next)
		if (dp_names_find(names, element.name, element.namelen) < 0)
		{
			memcpy(out, start, iter.next - start);
			out += iter.next - start;
		}
	*out++ = 0;
	if (out - (uint8 *) VARDATA(result) == size)
	{
		pfree(result);
		return doc;
	}
	size = out - (uint8 *) VARDATA(result);
	dp_put_int32((uint8 *) VARDATA(result), (int32) size);
	SET_VARSIZE(result, VARHDRSZ + size);
	return result;
}

/*
 * The same in any value.  Fields that the one that is removed has hidden go
 * with it, or the name would still be there.
 */
static struct varlena *
edit_unset(const DpValue *root, bool is_value, const DpPath *path)
{
	DpValue null = { (const uint8 *) "", 0, DP_TYPE_NULL };
	DpValue rest = *root;
	struct varlena *result = NULL;
	EditPlace place;

	for (;;)
	{
		struct varlena *previous = result;

		CHECK_FOR_INTERRUPTS();
		edit_locate_in(&rest, is_value, path, &place);
		if (place.nparents == 0)
			path_blocked(path, 0, root->type);
		if (!place.exists)
			return result;
		if (place.parents[place.nparents - 1].type == DP_TYPE_ARRAY)
			return edit_replace(&place, &null);
		result = edit_splice(&place, place.element,
							 place.value.data + place.value.len - place.element, NULL);
		if (previous != NULL)
			pfree(previous);
		rest = is_value ? dp_value_of_varlena(result) : dp_value_of_document(result);
	}
}

/*
 * A new bson with the values at the end of an array.
 */
struct varlena *
dp_document_append(const uint8 *doc, uint32 size, const DpPath *path, const DpValue *values,
				   int nvalues)
{
	EditPlace place;

	edit_locate(doc, size, path, &place);
	return edit_append(&place, path, values, nvalues);
}

struct varlena *
dp_document_append_own(struct varlena *doc, const DpPath *path, const DpValue *values, int nvalues)
{
	EditPlace place;

	edit_locate_own(doc, path, &place);
	return edit_append(&place, path, values, nvalues);
}

/*
 * The same once the path was followed.
 */
static struct varlena *
edit_append(EditPlace *place, const DpPath *path, const DpValue *values, int nvalues)
{
	DpBuilder b;
	struct varlena *result;
	uint32 count;

	if (!place->exists)
	{
		DpValue array;

		dp_builder_init(&b, 64);
		dp_builder_begin_array(&b);
		for (int i = 0; i < nvalues; i++)
			dp_builder_append_value(&b, NULL, 0, &values[i]);
		dp_builder_end(&b);
		array = dp_builder_view(&b, DP_TYPE_ARRAY);
		result = edit_insert(place, path, &array);
		dp_builder_free(&b);
		return result;
	}
	if (place->value.type != DP_TYPE_ARRAY)
	{
		StringInfoData s;

		initStringInfo(&s);
		dp_path_to_text(&s, path);
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("cannot append to \"%s\", which is not an array", s.data),
						errdetail("The field has the type %s.", dp_type_name(place->value.type))));
	}
	if (place->nparents >= DP_MAX_DEPTH)
		dp_check_depth(place->nparents, &place->value);
	place->parents[place->nparents++] = place->value;

	dp_builder_init(&b, 0);
	count = dp_array_count(place->value.data, place->value.len);
	for (int i = 0; i < nvalues; i++)
	{
		char digits[12];
		uint32 n = dp_index_name(count + i, digits);

		dp_check_depth(place->nparents, &values[i]);
		dp_builder_append_value(&b, digits, n, &values[i]);
	}
	result = edit_splice(place, place->value.data + place->value.len - 1, 0, &b);
	dp_builder_free(&b);
	return result;
}

/*
 * A new bson with the fields of both.  The fields of a keep their places, with
 * the values of b where b has the same name; the other fields of b follow.
 */
struct varlena *
dp_document_merge(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize)
{
	return merge(a, asize, b, bsize, VARHDRSZ);
}

/*
 * The same for two documents that are values: a new bson_value.
 */
struct varlena *
dp_value_merge(const DpValue *a, const DpValue *b)
{
	struct varlena *result = merge(a->data, a->len, b->data, b->len, VARHDRSZ + 1);

	*(uint8 *) VARDATA(result) = DP_TYPE_DOCUMENT;
	return result;
}

/*
 * Each field is at the position where its name first occurred.  Of two fields of one document with
 * the same name the first counts.
 */
struct varlena *
dp_values_merge(const DpValue *documents, int n)
{
	DpNames names = { 0 };
	DpValue *values = NULL; /* by the positions of their names */
	int *owners = NULL;     /* and the documents that they are from */
	uint32 room = 0;
	DpBuilder b;
	DpIter iter;
	DpElement element;

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		dp_iter_init_value(&iter, &documents[i]);
		while (dp_iter_next(&iter, &element))
		{
			bool found;
			uint32 at = dp_names_add(&names, element.name, element.namelen, &found);

			if (names.room > room)
			{
				room = names.room;
				values = values ? repalloc_huge(values, sizeof(DpValue) * (Size) room)
								: palloc(sizeof(DpValue) * room);
				owners = owners ? repalloc_huge(owners, sizeof(int) * (Size) room)
								: palloc(sizeof(int) * room);
			}
			if (found && owners[at] == i)
				continue;
			values[at] = element.value;
			owners[at] = i;
		}
	}
	dp_builder_init_value(&b, 0);
	dp_builder_begin_document(&b);
	for (uint32 i = 0; i < names.n; i++)
		dp_builder_append_value(&b, names.names[i].name, names.names[i].len, &values[i]);
	dp_builder_end(&b);
	if (names.n > 0)
	{
		pfree(values);
		pfree(owners);
	}
	dp_names_free(&names);
	return dp_builder_finish_value(&b, DP_TYPE_DOCUMENT);
}

/*
 * Both, with head bytes before the document.
 */
static struct varlena *
merge(const uint8 *a, uint32 asize, const uint8 *b, uint32 bsize, uint32 head)
{
	uint32 nfields = dp_array_count(b, bsize);
	MergeTable table;
	DpIter iter;
	DpElement element;
	const uint8 *start;
	const uint8 *run;
	struct varlena *result;
	uint8 *doc;
	uint8 *out;
	uint32 n = 0;

	table.mask = pg_nextpower2_32(Max(nfields * 2, 4)) - 1;
	table.fields = palloc_extended(sizeof(MergeField) * Max((Size) nfields, 1), MCXT_ALLOC_HUGE);
	table.buckets = palloc_extended(sizeof(uint32) * ((Size) table.mask + 1),
									MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	dp_iter_init(&iter, b, bsize);
	for (start = iter.next; dp_iter_next(&iter, &element); start = iter.next)
	{
		uint32 *link = merge_find(&table, &element);
		MergeField *field = &table.fields[n];

		CHECK_FOR_INTERRUPTS();
		field->element = element;
		field->start = start;
		field->end = iter.next;
		field->next = 0;
		field->used = false;
		if (*link == 0)
			*link = n + 1;
		field->first = *link - 1;
		n++;
	}

	/* a, with runs of unchanged fields copied at once; the size is checked when it is known */
	result = palloc_extended(head + (Size) asize + bsize, MCXT_ALLOC_HUGE);
	doc = (uint8 *) result + head;
	out = doc + 4;
	dp_iter_init(&iter, a, asize);
	run = iter.next;
	for (start = iter.next; dp_iter_next(&iter, &element); start = iter.next)
	{
		uint32 i = *merge_find(&table, &element);
		MergeField *field;

		if (i == 0)
			continue;
		memcpy(out, run, start - run);
		out += start - run;
		run = iter.next;

		/* a second field of that name was hidden by the first one, and is removed */
		field = &table.fields[i - 1];
		if (field->used)
			continue;
		memcpy(out, field->start, field->end - field->start);
		out += field->end - field->start;
		field->used = true;
	}
	memcpy(out, run, iter.end - run);
	out += iter.end - run;

	/* the fields that only b has */
	for (uint32 i = 0; i < nfields; i++)
	{
		MergeField *field = &table.fields[i];

		if (table.fields[field->first].used)
			continue;
		memcpy(out, field->start, field->end - field->start);
		out += field->end - field->start;
	}
	*out++ = 0;

	n = out - doc;
	dp_check_document_size(n);
	dp_put_int32(doc, (int32) n);
	SET_VARSIZE(result, head + n);
	pfree(table.fields);
	pfree(table.buckets);
	return result;
}

/*
 * Where the number of the first field with the element's name stands, or the 0
 * at the end of its bucket.
 */
static uint32 *
merge_find(MergeTable *table, const DpElement *element)
{
	uint32 hash = hash_bytes((const unsigned char *) element->name, element->namelen);
	uint32 *link = &table->buckets[hash & table->mask];

	while (*link != 0)
	{
		MergeField *field = &table->fields[*link - 1];

		if (field->element.namelen == element->namelen &&
			memcmp(field->element.name, element->name, element->namelen) == 0)
			break;
		link = &field->next;
	}
	return link;
}

/*
 * An array of the elements of both values; a value that is no array is one
 * element.  The elements of the first one are copied, those of the second get
 * the numbers that follow.
 */
struct varlena *
dp_array_concat(const DpValue *a, const DpValue *b)
{
	DpBuilder out;
	DpIter iter;
	DpValue value;

	dp_builder_init_value(&out, (Size) a->len + b->len + 64);
	dp_builder_begin_array(&out);
	if (a->type == DP_TYPE_ARRAY)
	{
		uint32 count = dp_array_count(a->data, a->len);

		/* the builder continues counting after the copied elements */
		dp_builder_append_bytes(&out, a->data + 4, a->len - 5);
		out.levels[0].index = count;
	}
	else
	{
		dp_check_depth(1, a);
		dp_builder_append_value(&out, NULL, 0, a);
	}
	if (b->type == DP_TYPE_ARRAY)
	{
		dp_iter_init_value(&iter, b);
		while (dp_iter_next_value(&iter, &value))
			dp_builder_append_value(&out, NULL, 0, &value);
	}
	else
	{
		dp_check_depth(1, b);
		dp_builder_append_value(&out, NULL, 0, b);
	}
	dp_builder_end(&out);
	return dp_builder_finish_value(&out, DP_TYPE_ARRAY);
}

/*
 * An array without the element at a position, or NULL if there is none.  The following elements are
 * renumbered.
 */
struct varlena *
dp_array_remove(const DpValue *array, int64 position)
{
	DpBuilder out;
	DpIter iter;
	DpValue value;
	uint32 count = dp_array_count(array->data, array->len);

	if (position < 0)
		position += count;
	if (position < 0 || position >= count)
		return NULL;
	dp_builder_init_value(&out, array->len);
	dp_builder_begin_array(&out);
	dp_iter_init_value(&iter, array);
	for (uint32 i = 0; dp_iter_next_value(&iter, &value); i++)
		if (i != position)
			dp_builder_append_value(&out, NULL, 0, &value);
	dp_builder_end(&out);
	return dp_builder_finish_value(&out, DP_TYPE_ARRAY);
}

/* Follows the path as far as it exists in a document. */
static void
edit_locate(const uint8 *doc, uint32 size, const DpPath *path, EditPlace *place)
{
	DpValue root = { doc, size, DP_TYPE_DOCUMENT };

	edit_locate_in(&root, false, path, place);
}

/*
 * The same in a document that is the caller's own copy, with a header of four
 * bytes: it may become the result.
 */
static void
edit_locate_own(struct varlena *doc, const DpPath *path, EditPlace *place)
{
	Assert(!VARATT_IS_EXTENDED(doc));
	edit_locate(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, place);
	place->own = doc;
}

/*
 * The same in any value.
 */
static void
edit_locate_in(const DpValue *root, bool is_value, const DpPath *path, EditPlace *place)
{
	DpValue at = *root;

	if (path->nsteps == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the path has no parts")));
	place->root = *root;
	place->is_value = is_value;
	place->own = NULL;
	place->nparents = 0;
	place->exists = false;
	for (int i = 0; i < path->nsteps; i++)
	{
		if (!dp_type_is_container(at.type))
			return;
		if (place->nparents == DP_MAX_DEPTH)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("document nested too deeply"),
					 errdetail("The limit is %d levels.", DP_MAX_DEPTH)));
		place->parents[place->nparents++] = at;
		if (!dp_step_find(&at, &path->steps[i], &place->element, &at))
			return;
	}
	place->exists = true;
	place->value = at;
}

/*
 * Containers inside each other in a value: 0 for a scalar.
 */
static int
value_depth(const DpValue *value)
{
	DpIter iter;
	DpValue inner;
	int depth = 0;

	if (!dp_type_is_container(value->type))
		return 0;
	check_stack_depth();
	dp_iter_init_value(&iter, value);
	while (dp_iter_next_value(&iter, &inner))
		if (dp_type_is_container(inner.type))
		{
			int below = value_depth(&inner);

			depth = Max(depth, below);
		}
	return depth + 1;
}

/*
 * Raises PROGRAM_LIMIT_EXCEEDED if the value may not stand inside that many
 * containers.  A level takes at least seven bytes, so that a small value need
 * not be looked into.
 */
void
dp_check_depth(int parents, const DpValue *value)
{
	if (likely(parents + value->len / 7 + 1 <= DP_MAX_DEPTH))
		return;
	if (parents + value_depth(value) > DP_MAX_DEPTH)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("document nested too deeply"),
				 errdetail("The limit is %d levels.", DP_MAX_DEPTH)));
}

/*
 * Adds delta to the lengths of the containers around a change.  All of them begin before it, so
 * their positions are unchanged.
 */
static void
edit_adjust(uint8 *out, const EditPlace *place, int64 delta)
{
	if (delta == 0)
		return;
	for (int i = 0; i < place->nparents; i++)
		dp_put_int32(out + (place->parents[i].data - place->root.data),
					 (int32) (place->parents[i].len + delta));
}

/*
 * A bson or bson_value of the old bytes with others instead of so many at a place.  Every change
 * ends here.  If the caller's own copy was changed, pointers in place are invalid.  Raises
 * PROGRAM_LIMIT_EXCEEDED.
 */
static struct varlena *
edit_exchange(const EditPlace *place, uint32 before, uint32 removed, const uint8 *added,
			  uint32 nadded)
{
	uint32 head = VARHDRSZ + (place->is_value ? 1 : 0);
	uint32 after = place->root.len - before - removed;
	int64 delta = (int64) nadded - removed;
	Size size = (Size) place->root.len + delta;
	struct varlena *result;
	uint8 *out;

	if (place->own && delta == 0)
	{
		result = place->own;
		out = (uint8 *) result + head;
	}
	else if (place->own)
	{
		dp_check_document_size(size);
		edit_adjust((uint8 *) place->own + head, place, delta);
		result = place->own;
		if (delta > 0)
			result = repalloc(result, head + size);
		SET_VARSIZE(result, head + size);
		out = (uint8 *) result + head;
		memmove(out + before + nadded, out + before + removed, after);
	}
	else
	{
		dp_check_document_size(size);
		result = palloc(head + size);
		SET_VARSIZE(result, head + size);
		out = (uint8 *) result + head;
		if (place->is_value)
			out[-1] = place->root.type;
		memcpy(out, place->root.data, before);
		memcpy(out + before + nadded, place->root.data + before + removed, after);
		edit_adjust(out, place, delta);
	}
	if (nadded > 0) /* null and its like have no bytes, not even a pointer to them */
		memcpy(out + before, added, nadded);
	return result;
}

/*
 * The old bytes with those that b holds instead of removed bytes at a place.
 */
static struct varlena *
edit_splice(const EditPlace *place, const uint8 *at, uint32 removed, const DpBuilder *b)
{
	uint32 before = at - place->root.data;

	if (b == NULL)
		return edit_exchange(place, before, removed, NULL, 0);
	return edit_exchange(place, before, removed, b->buf + b->head, b->len - b->head);
}

/*
 * The old bytes with another value in the element that was found.
 */
static struct varlena *
edit_replace(const EditPlace *place, const DpValue *value)
{
	uint32 head = VARHDRSZ + (place->is_value ? 1 : 0);
	uint32 element = place->element - place->root.data;
	struct varlena *result;

	dp_check_depth(place->nparents, value);
	result = edit_exchange(place, place->value.data - place->root.data, place->value.len,
						   value->data, value->len);
	((uint8 *) result)[head + element] = value->type;
	return result;
}

/*
 * The old bytes with the rest of the path, which was not found, made.
 */
static struct varlena *
edit_insert(const EditPlace *place, const DpPath *path, const DpValue *value)
{
	int step = place->nparents - 1;
	const DpValue *parent = &place->parents[step];
	const DpPathStep *missing = &path->steps[step];
	DpBuilder b;
	char digits[12];
	const char *name = missing->name;
	uint32 namelen = missing->namelen;
	struct varlena *result;
	const uint8 *element;
	DpValue there;

	/* the path may have ended at a value that cannot hold anything */
	if (step < path->nsteps - 1 && dp_step_find(parent, missing, &element, &there))
		path_blocked(path, step + 1, there.type);

	dp_check_depth(path->nsteps, value);
	dp_builder_init(&b, 64 + value->len);
	if (parent->type == DP_TYPE_ARRAY)
	{
		uint32 count = dp_array_count(parent->data, parent->len);

		if (!missing->is_index)
			path_blocked(path, step, DP_TYPE_ARRAY);
		if (missing->index < 0)
			ereport(ERROR,
					(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
					 errmsg("position %d is before the first element of the array", missing->index),
					 errdetail("The array has %u elements.", count)));
		if (missing->index - count > DP_EDIT_MAX_PADDING)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("position %d is too far beyond the end of the array", missing->index),
					 errdetail("The array has %u elements; at most %d nulls can be added.", count,
							   DP_EDIT_MAX_PADDING)));
		for (; count < missing->index; count++)
			dp_builder_append_null(&b, digits, dp_index_name(count, digits));
		namelen = dp_index_name(count, digits);
		name = digits;
	}
	for (; step < path->nsteps - 1; step++)
	{
		dp_builder_begin_document_field(&b, name, namelen);
		name = path->steps[step + 1].name;
		namelen = path->steps[step + 1].namelen;
	}
	dp_builder_append_value(&b, name, namelen, value);
	while (b.depth > 0)
		dp_builder_end(&b);

	result = edit_splice(place, parent->data + parent->len - 1, 0, &b);
	dp_builder_free(&b);
	return result;
}

/* Raises the error of a path that cannot continue at the given step. */
static void
path_blocked(const DpPath *path, int step, uint8 type)
{
	StringInfoData s;

	initStringInfo(&s);
	dp_path_to_text(&s, path);
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("cannot follow the path \"%s\"", s.data),
					errdetail("Part %d of the path, \"%s\", leads to a value of type %s.", step + 1,
							  path->steps[step].name, dp_type_name(type))));
}

bool
dp_path_blocked(const uint8 *doc, uint32 size, const DpPath *path, int *step, uint8 *type)
{
	DpValue at = { doc, size, DP_TYPE_DOCUMENT };

	for (*step = 0; *step < path->nsteps; (*step)++)
	{
		const uint8 *element;
		DpValue next;

		*type = at.type;
		if (!dp_type_is_container(at.type) ||
			(at.type == DP_TYPE_ARRAY && !path->steps[*step].is_index))
			return true;
		if (!dp_step_find(&at, &path->steps[*step], &element, &next))
			return false;
		at = next;
	}
	return false;
}

/*
 * See edit.h.
 */
struct varlena *
dp_document_without(const uint8 *doc, uint32 size, List *paths)
{
	DpValue from = { doc, size, DP_TYPE_DOCUMENT };
	Without *all = palloc(list_length(paths) * sizeof(Without));
	int n = 0;
	DpBuilder b;
	ListCell *lc;

	foreach(lc, paths)
	{
		const DpPath *path = lfirst(lc);
		DpValue found;

		if (dp_field_find(doc, size, path->steps[0].name, path->steps[0].namelen, &found))
			all[n++] = (Without){ path, 0 };
	}
	if (n == 0)
		return NULL;
	dp_builder_init(&b, size);
	dp_builder_begin_document(&b);
	if (!copy_without(&b, &from, all, n))
	{
		dp_builder_free(&b);
		return NULL;
	}
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

/*
 * Copies elements, except values at the paths; consecutive fields that stay, at once.  Returns true
 * if anything was omitted.
 */
static bool
copy_without(DpBuilder *b, const DpValue *from, const Without *paths, int n)
{
	bool is_array = from->type == DP_TYPE_ARRAY;
	Without *inner = palloc(n * sizeof(Without));
	bool changed = false;
	int64 position = 0;
	const uint8 *kept = NULL; /* fields to copy, up to .. */
	const uint8 *kept_end = NULL;
	DpIter iter;
	DpElement e;

	check_stack_depth();
	dp_iter_init_value(&iter, from);
	for (; dp_iter_next(&iter, &e); position++)
	{
		uint32 before;
		int ninner = 0;
		bool goes = false;
		bool inside;

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < n && !goes; i++)
		{
			const DpPathStep *step = &paths[i].path->steps[paths[i].step];

			if (is_array ? step->is_index && step->index == position
						 : step->namelen == e.namelen && memcmp(step->name, e.name, e.namelen) == 0)
			{
				goes = paths[i].step + 1 == paths[i].path->nsteps;
				inner[ninner++] = (Without){ paths[i].path, paths[i].step + 1 };
			}
			else if (is_array && e.value.type == DP_TYPE_DOCUMENT)
				inner[ninner++] = paths[i];
		}
		if (!is_array && !goes &&
			(ninner == 0 || (e.value.type != DP_TYPE_DOCUMENT && e.value.type != DP_TYPE_ARRAY)))
		{
			if (kept == NULL)
				kept = (const uint8 *) e.name - 1;
			kept_end = e.value.data + e.value.len;
			continue;
		}
		if (kept != NULL)
			dp_builder_append_bytes(b, kept, kept_end - kept);
		kept = NULL;
		if (goes)
		{
			changed = true;
			if (is_array)
				dp_builder_append_null(b, NULL, 0);
			continue;
		}
		if (ninner == 0 || (e.value.type != DP_TYPE_DOCUMENT && e.value.type != DP_TYPE_ARRAY))
		{
			dp_builder_append_value(b, e.name, e.namelen, &e.value);
			continue;
		}
		before = b->len;
		if (e.value.type == DP_TYPE_ARRAY)
			dp_builder_begin_array_field(b, e.name, e.namelen);
		else
			dp_builder_begin_document_field(b, e.name, e.namelen);
		inside = copy_without(b, &e.value, inner, ninner);
		dp_builder_end(b);
		if (inside && !is_array && e.value.type == DP_TYPE_DOCUMENT &&
			b->len - before == 1 + e.namelen + 1 + DP_DOCUMENT_MIN_SIZE)
			b->len = before;
		changed |= inside;
	}
	if (kept != NULL)
		dp_builder_append_bytes(b, kept, kept_end - kept);
	pfree(inner);
	return changed;
}
