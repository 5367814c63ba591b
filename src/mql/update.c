/*
 * update.c
 *		Updates as a whole: bson_update for SQL, documents that replace other
 *		ones, and what an upsert inserts.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "bson/compare.h"
#include "bson/text.h"
#include "mql/projection.h"
#include "mql/update_tree.h"

/* The arguments that an update is compiled from: update, filter, array_filters */
#define UPDATE_ARGS 3

/* The cache between the calls of bson_update */
typedef struct UpdateCache
{
	MemoryContext context;             /* holds the following */
	struct varlena *args[UPDATE_ARGS]; /* copies; NULL: was null */
	DpUpdate *update;
} UpdateCache;

/* The kind of the argument update */
typedef enum UpdateForm
{
	UPDATE_AS_VALUE,    /* a bson_value */
	UPDATE_AS_DOCUMENT, /* a bson */
	UPDATE_AS_TEXT      /* text that spells one */
} UpdateForm;

static Datum update_call(FunctionCallInfo fcinfo, UpdateForm form, bool immutable);
static DpUpdate *update_cached(FunctionCallInfo fcinfo, UpdateForm form, bool immutable);
static struct varlena *replace(const DpValue *replacement, const DpValue *doc);
static void part_paths(DpBuilder *b, const DpUpdateNode *node);
static void check_id(const DpValue *before, const DpValue *after);
static struct varlena *id_first(struct varlena *doc);
static void add_equal(const char *path, uint32 pathlen, const DpValue *value, void *arg);

/*
 * bson_update(doc bson, update bson_value, filter bson, array_filters bson_value, upsert boolean)
 * -> bson: the updated document, or the same datum if nothing changes.
 */
DP_FUNCTION(dp_bson_update);
Datum
dp_bson_update(PG_FUNCTION_ARGS)
{
	return update_call(fcinfo, UPDATE_AS_VALUE, false);
}

/* The same for an update that is a document, as bson_build() makes it. */
DP_FUNCTION(dp_bson_update_document);
Datum
dp_bson_update_document(PG_FUNCTION_ARGS)
{
	return update_call(fcinfo, UPDATE_AS_DOCUMENT, false);
}

/* The same for an update that is spelled out: what a bare literal is taken for. */
DP_FUNCTION(dp_bson_update_text);
Datum
dp_bson_update_text(PG_FUNCTION_ARGS)
{
	return update_call(fcinfo, UPDATE_AS_TEXT, false);
}

/*
 * bson_update_immutable(doc bson, update bson_value, filter bson, array_filters bson_value, upsert
 * boolean) -> bson: the same, without what depends on the clock or chance.
 */
DP_FUNCTION(dp_bson_update_immutable);
Datum
dp_bson_update_immutable(PG_FUNCTION_ARGS)
{
	return update_call(fcinfo, UPDATE_AS_VALUE, true);
}

/*
 * Shared by these functions.  NULL for a NULL document or update, except that an upsert makes a
 * document.
 */
static Datum
update_call(FunctionCallInfo fcinfo, UpdateForm form, bool immutable)
{
	bool upsert = !PG_ARGISNULL(4) && PG_GETARG_BOOL(4);
	DpUpdate *update;
	struct varlena *doc;
	struct varlena *result;

	if (PG_ARGISNULL(1) || (PG_ARGISNULL(0) && !upsert))
		PG_RETURN_NULL();
	update = update_cached(fcinfo, form, immutable);
	if (PG_ARGISNULL(0))
		PG_RETURN_POINTER(dp_update_insert(update));

	/* what was compressed or fetched is a copy of our own */
	doc = DP_GETARG_VARLENA(0);
	result = dp_update_apply(update, doc, (Pointer) doc != DatumGetPointer(PG_GETARG_DATUM(0)));
	if (result == NULL)
		return PG_GETARG_DATUM(0);
	PG_RETURN_POINTER(result);
}

/*
 * The update compiled, kept as long as its three arguments have the same bytes.
 */
static DpUpdate *
update_cached(FunctionCallInfo fcinfo, UpdateForm form, bool immutable)
{
	UpdateCache *cache = fcinfo->flinfo->fn_extra;
	UpdateCache *fresh;
	struct varlena *args[UPDATE_ARGS];
	DpValue values[UPDATE_ARGS];
	MemoryContext context;
	MemoryContext old;
	bool same = cache != NULL;

	for (int i = 0; i < UPDATE_ARGS; i++)
	{
		args[i] = PG_ARGISNULL(i + 1) ? NULL : DP_GETARG_VARLENA(i + 1);
		same = same && dp_same_bytes(args[i], cache->args[i]);
	}
	if (likely(same))
		return cache->update;

	context = AllocSetContextCreate(CurrentMemoryContext, "bson update", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(context);
	fresh = palloc0(sizeof(UpdateCache));
	fresh->context = context;
	for (int i = 0; i < UPDATE_ARGS; i++)
		if (args[i] != NULL)
		{
			Size size = VARSIZE_ANY_EXHDR(args[i]);

			fresh->args[i] = palloc(VARHDRSZ + size);
			SET_VARSIZE(fresh->args[i], VARHDRSZ + size);
			memcpy(VARDATA(fresh->args[i]), VARDATA_ANY(args[i]), size);
		}
	if (form == UPDATE_AS_DOCUMENT)
		values[0] = dp_value_of_document(fresh->args[0]);
	else if (form == UPDATE_AS_VALUE)
		values[0] = dp_value_of_varlena(fresh->args[0]);
	else
		values[0] = dp_value_of_varlena(dp_text_to_value(VARDATA(fresh->args[0]),
														 VARSIZE(fresh->args[0]) - VARHDRSZ, NULL));
	if (fresh->args[1] != NULL)
		values[1] = dp_value_of_document(fresh->args[1]);
	if (fresh->args[2] != NULL)
		values[2] = dp_value_of_varlena(fresh->args[2]);
	fresh->update = dp_update_compile(&values[0], fresh->args[1] ? &values[1] : NULL,
									  fresh->args[2] ? &values[2] : NULL, immutable);
	MemoryContextSwitchTo(old);

	/* an error has left the old one in place, and its own memory to the current context */
	MemoryContextSetParent(context, fcinfo->flinfo->fn_mcxt);
	fcinfo->flinfo->fn_extra = fresh;
	if (cache != NULL)
		MemoryContextDelete(cache->context);
	return fresh->update;
}

/* ---------------------------------------------------------------- whole documents */

/*
 * The new document, or NULL if nothing changes: see update.h.
 */
struct varlena *
dp_update_apply(DpUpdate *update, struct varlena *doc, bool own)
{
	DpValue old = dp_value_of_document(doc);
	DpValue new;
	struct varlena *result;
	bool changed;

	if (update->replacement != NULL)
		return replace(update->replacement, &old);
	if (update->pipeline != NULL)
	{
		dp_update_pipeline_apply(update->pipeline, &old, &new);
		return replace(&new, &old);
	}

	/* the filter or the check of _id reads the old document later */
	if (update->touches_id || update->positional)
		own = false;
	result = dp_update_tree_apply(update, &old, own ? (uint8 *) VARDATA_ANY(doc) : NULL, false,
								  &changed);
	if (!changed)
		return NULL;
	if (result == NULL)
		return doc;
	if (update->touches_id)
	{
		new = dp_value_of_document(result);
		check_id(&old, &new);
	}
	return result;
}

/*
 * The document that replaces another one, with its _id first unless it has its own; NULL if it has
 * the same bytes.  Raises INVALID_PARAMETER_VALUE if it has another _id.
 */
static struct varlena *
replace(const DpValue *replacement, const DpValue *doc)
{
	DpValue id;
	DpValue own;
	DpBuilder b;
	DpValue new;

	if (!dp_document_find(doc->data, doc->len, "_id", 3, &id) ||
		dp_document_find(replacement->data, replacement->len, "_id", 3, &own))
	{
		check_id(doc, replacement);
		if (dp_value_identical(doc, replacement))
			return NULL;
		dp_check_document_size(replacement->len);
		return dp_document_to_varlena(replacement->data, replacement->len);
	}
	dp_builder_init(&b, (Size) replacement->len + id.len + 16);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, "_id", 3, &id);
	dp_builder_append_elements(&b, replacement->data + 4, replacement->len - 5);
	dp_builder_end(&b);
	new = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	if (dp_value_identical(doc, &new))
	{
		dp_builder_free(&b);
		return NULL;
	}
	return dp_builder_finish_bson(&b);
}

bool
dp_update_replaces(const DpUpdate *update)
{
	return update->replacement != NULL;
}

struct varlena *
dp_update_part(const DpUpdate *update, struct varlena *doc)
{
	DpBuilder b;
	DpValue spec;
	DpValue value = dp_value_of_document(doc);
	struct varlena *part;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	if (update->root->nchildren == 0)
	{
		dp_builder_end(&b);
		return dp_builder_finish_bson(&b);
	}
	if (!update->touches_id)
		dp_builder_append_int32(&b, "_id", 3, 0);
	part_paths(&b, update->root);
	dp_builder_end(&b);
	spec = dp_builder_view(&b, DP_TYPE_DOCUMENT);
	part = dp_projection_apply(dp_projection_compile(&spec, 0), &value, NULL);
	return part != NULL ? part : doc;
}

/* Appends the paths below a node as fields of a projection. */
static void
part_paths(DpBuilder *b, const DpUpdateNode *node)
{
	int i;

	for (i = 0; i < node->nchildren; i++)
	{
		const DpUpdateNode *child = node->children[i];
		bool ends = child->kind != UPDATE_FIELDS || child->has_positional;
		int j;

		for (j = 0; j < child->nchildren && !ends; j++)
			ends = child->children[j]->step.is_index;
		if (ends)
			dp_builder_append_int32(b, child->path, child->pathlen, 1);
		else
			part_paths(b, child);
	}
}

/* Raises INVALID_PARAMETER_VALUE if a document lost its _id. */
static void
check_id(const DpValue *before, const DpValue *after)
{
	DpValue old;
	DpValue new;

	if (!dp_document_find(before->data, before->len, "_id", 3, &old))
		return;
	if (dp_document_find(after->data, after->len, "_id", 3, &new) &&
		dp_value_compare(&old, &new) == 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("an update cannot change \"_id\""),
			 errhint("Delete the document and insert it again.")));
}

/* ---------------------------------------------------------------- upserts */

/*
 * The document that an upsert inserts: see update.h.
 */
struct varlena *
dp_update_insert(DpUpdate *update)
{
	static const uint8 empty[DP_DOCUMENT_MIN_SIZE] = { DP_DOCUMENT_MIN_SIZE, 0, 0, 0, 0 };
	DpValue nothing = { empty, sizeof(empty), DP_TYPE_DOCUMENT };
	DpValue base = nothing;
	DpValue new;
	struct varlena *result = NULL;

	if (update->filter != NULL)
	{
		DpUpdate *equal = dp_update_of_fields();

		dp_filter_each_equal(update->filter, add_equal, equal);
		result = dp_update_tree_apply(equal, &nothing, NULL, true, NULL);
		if (result != NULL)
			base = dp_value_of_document(result);
	}

	if (update->replacement != NULL)
	{
		DpValue id;
		DpBuilder b;

		/* of the filter only the _id counts */
		dp_builder_init(&b, 16);
		dp_builder_begin_document(&b);
		if (dp_document_find(base.data, base.len, "_id", 3, &id))
			dp_builder_append_value(&b, "_id", 3, &id);
		dp_builder_end(&b);
		base = dp_builder_view(&b, DP_TYPE_DOCUMENT);
		result = replace(update->replacement, &base);
	}
	else if (update->pipeline != NULL)
	{
		dp_update_pipeline_apply(update->pipeline, &base, &new);
		result = replace(&new, &base);
	}
	else
	{
		result = dp_update_tree_apply(update, &base, NULL, true, NULL);
		if (result != NULL && update->touches_id)
		{
			new = dp_value_of_document(result);
			check_id(&base, &new);
		}
	}
	if (result == NULL)
		result = dp_document_to_varlena(base.data, base.len);
	return id_first(result);
}

/* For dp_filter_each_equal(): a field of the document that an upsert begins with. */
static void
add_equal(const char *path, uint32 pathlen, const DpValue *value, void *arg)
{
	dp_update_add_field(arg, path, pathlen, value);
}

/* The document with its _id, if it has one, in front of the other fields. */
static struct varlena *
id_first(struct varlena *doc)
{
	DpIter iter;
	DpElement element;
	const uint8 *start;

	dp_iter_init_varlena(&iter, doc);
	for (start = iter.next; dp_iter_next(&iter, &element); start = iter.next)
		if (strcmp(element.name, "_id") == 0)
		{
			const uint8 *data = DP_DOC_DATA(doc);
			uint32 size = DP_DOC_SIZE(doc);
			struct varlena *result;
			uint8 *out;

			if (start == data + 4)
				return doc;
			result = dp_document_to_varlena(data, size);
			out = (uint8 *) VARDATA(result) + 4;
			memcpy(out, start, iter.next - start);
			memcpy(out + (iter.next - start), data + 4, start - (data + 4));
			return result;
		}
	return doc;
}
