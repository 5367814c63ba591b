/*
 * single_collection.c
 *		The single collection pattern: identities and relations of documents, and
 *		the triggers of the pattern on its table.
 *
 * BEFORE INSERT, UPDATE or DELETE, for each row: checks type, id, key and
 * relations, adds a document to its own relations if its type requires it, and
 * collects new references and identities that may have been removed.  A row whose
 * identity changes is locked FOR UPDATE, like a deleted one, which waits for
 * transactions that prevent its deletion (FOR KEY SHARE).
 *
 * AFTER INSERT, UPDATE, DELETE or TRUNCATE, for each statement: finds and locks new
 * referenced rows, in the order of identities; then applies the delete rule to rows
 * that refer to removed ones.  Both use the present state: collected identities
 * only show what to search.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/builder.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/text.h"
#include "kit/options.h"
#include "kit/statement.h"
#include "kit/trigger.h"
#include "patterns/single_collection/single_collection.h"

/*
 * Collected by row triggers: ids are their addresses, values are [declaration, identity [, new
 * identity]]
 */
static const char noted_named;
static const char noted_deleted;

static void single_open(DpSingle *s);
static DpValue *strings_option(DpDecl *decl, const char *option, int *n);
static HeapTuple single_before(DpSingle *s, TriggerData *trigdata);
static void single_after(DpDecl *decl);
static void check_document(DpSingle *s, struct varlena *doc, const DpSingleDoc *read);
static bool has_type(const DpValue *types, int n, const DpSingleDoc *read);
static bool names(const DpSingleDoc *read, const DpValue *identity);
static void note(DpSingle *s, const void *what, const DpValue *identity, const DpValue *becomes);
static DpSingle *
noted(DpDecl *decl, struct varlena *value, DpValue *identity, DpValue *becomes, bool *moved);
static void lock_row(DpSingle *s, Relation rel, HeapTuple tuple);
static bool single_is_id(const DpValue *value);

/*
 * single_collection_trigger(): the triggers of the pattern.
 */
DP_FUNCTION(dp_single_collection_trigger);
Datum
dp_single_collection_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, "single_collection",
									DP_BEFORE_ROW(DP_WRITE) | DP_AFTER_STATEMENT(DP_ANY));

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		return PointerGetDatum(single_before(dp_single(decl), trigdata));
	if (TRIGGER_FIRED_BY_TRUNCATE(trigdata->tg_event))
	{
		SPI_connect();
		dp_single_forget_missing(dp_single(decl));
		SPI_finish();
	}
	else
		single_after(decl);
	return PointerGetDatum(NULL);
}

/*
 * The pattern's view of a declaration.
 */
DpSingle *
dp_single(DpDecl *decl)
{
	MemoryContext old;
	DpSingle *s = decl->state;

	if (likely(s != NULL))
		return s;
	old = MemoryContextSwitchTo(decl->context);
	s = palloc0(sizeof(DpSingle));
	s->decl = decl;
	single_open(s);
	MemoryContextSwitchTo(old);
	decl->state = s;
	return s;
}

/* Read the options; the current context is the declaration's. */
static void
single_open(DpSingle *s)
{
	DpDecl *decl = s->decl;
	DpValue value;
	List *arguments;

	dp_options_read(decl, s);
	if ((s->related_field == NULL) == (s->key_field == NULL))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid declaration of single collection pattern \"%s\" on table \"%s\"",
						decl->name, dp_relation_name(decl->target))));
	if (s->key_field != NULL)
	{
		s->separatorlen = s->separator != NULL ? strlen(s->separator) : 0;
		if (s->separatorlen == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("the single collection pattern \"%s\" has no separator", decl->name)));
		arguments = list_make2(dp_decl_text(decl, "key_field"), s->separator);
		s->by_identity = dp_lookup_call(decl->target, decl->doc_column, "single_collection_key",
										arguments, decl->context);
	}
	else
	{
		char *type_field = dp_decl_text(decl, "type_field");
		StringInfoData ids;

		/* as it is written in the index */
		initStringInfo(&ids);
		if (dp_option_value(decl->options, "id_fields", DP_TYPE_DOCUMENT, &value))
		{
			dp_single_ids_parse(&s->ids, value.data, value.len);
			dp_value_to_text(&ids, &value, DP_TEXT_RELAXED, -1);
		}
		else
			appendStringInfoString(&ids, "{}");
		arguments = list_make2(type_field != NULL ? type_field : "", ids.data);
		s->by_identity = dp_lookup_call(decl->target, decl->doc_column, "single_collection_id",
										arguments, decl->context);
	}
	s->self_related = strings_option(decl, "self_related", &s->nself);
	s->types = strings_option(decl, "types", &s->ntypes);
	if (s->types == NULL)
		s->ntypes = -1;
}

/* An option that is an array of strings, in the current context; NULL if it is absent. */
static DpValue *
strings_option(DpDecl *decl, const char *option, int *n)
{
	DpValue array;
	DpValue value;
	DpIter iter;
	DpValue *strings;

	*n = 0;
	if (!dp_option_value(decl->options, option, DP_TYPE_ARRAY, &array))
		return NULL;
	strings = palloc(sizeof(DpValue) * (dp_document_count(array.data, array.len) + 1));
	dp_iter_init_value(&iter, &array);
	while (dp_iter_next_value(&iter, &value))
		strings[(*n)++] = value;
	return strings;
}

/* ---------------------------------------------------------------- what documents say */

void
dp_single_ids_parse(DpSingleIds *ids, const uint8 *doc, uint32 size)
{
	DpIter iter;
	DpElement element;

	ids->ids = palloc(sizeof(DpSingleId) * (dp_document_count(doc, size) + 1));
	ids->n = 0;
	dp_iter_init(&iter, doc, size);
	while (dp_iter_next(&iter, &element))
	{
		if (element.value.type != DP_TYPE_STRING)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("id_fields must be a document of paths"),
							errdetail("Its field \"%s\" is of type %s.", element.name,
									  dp_type_name(element.value.type))));
		ids->ids[ids->n].type = element.name;
		ids->ids[ids->n].typelen = element.namelen;
		ids->ids[ids->n++].path =
			dp_path_parse(DP_STRING_DATA(&element.value), DP_STRING_LEN(&element.value));
	}
}

/* Which field has the id of documents of a type: NULL if they have none. */
static DpPath *
id_field(const DpSingleIds *ids, const DpValue *type)
{
	int i;

	for (i = 0; type != NULL && i < ids->n; i++)
	{
		if (ids->ids[i].typelen == DP_STRING_LEN(type) &&
			memcmp(ids->ids[i].type, DP_STRING_DATA(type), ids->ids[i].typelen) == 0)
			return ids->ids[i].path;
	}
	return NULL;
}

/* Whether a value can be an id. */
static bool
single_is_id(const DpValue *value)
{
	return value->type != DP_TYPE_NULL && value->type != DP_TYPE_UNDEFINED &&
		   value->type != DP_TYPE_ARRAY && value->type != DP_TYPE_REGEX &&
		   value->type != DP_TYPE_MINKEY && value->type != DP_TYPE_MAXKEY;
}

bool
dp_single_id(const DpSingleIds *ids, const uint8 *doc, uint32 size, DpValue *id)
{
	DpValue type;
	DpPath *path;

	if (ids->n == 0)
		return dp_document_find(doc, size, "_id", 3, id) && single_is_id(id);
	if (ids->type_field == NULL || !dp_path_find(doc, size, ids->type_field, &type) ||
		type.type != DP_TYPE_STRING)
		return false;
	path = id_field(ids, &type);
	return path != NULL && dp_path_find(doc, size, path, id) && single_is_id(id);
}

bool
dp_single_key(const DpValue *key, const char *separator, uint32 len, DpValue *identity)
{
	const char *s = DP_STRING_DATA(key);
	uint32 n = key->type == DP_TYPE_STRING ? DP_STRING_LEN(key) : 0;
	uint8 *out;
	uint32 to = 4;
	uint32 from = 0;

	if (key->type != DP_TYPE_STRING || memchr(s, 0, n) != NULL)
		return false;
	out = palloc(n + 5);
	while (from < n)
	{
		const char *next = memchr(s + from, separator[0], n - from);
		uint32 plain = next != NULL ? next - (s + from) : n - from;

		memcpy(out + to, s + from, plain);
		to += plain;
		from += plain;
		if (next == NULL)
			break;
		if (len == 1 || (from + len <= n && memcmp(s + from, separator, len) == 0))
		{
			out[to++] = 0;
			from += len;
		}
		else
			out[to++] = s[from++];
	}
	out[to++] = 0;
	dp_put_int32(out, to - 4);
	identity->type = DP_TYPE_STRING;
	identity->data = out;
	identity->len = to;
	return true;
}

/*
 * The identity of what a keyed document belongs to, in the current context; false if it belongs to
 * nothing.
 */
static bool
key_parent(const DpValue *identity, DpValue *parent)
{
	const char *s = DP_STRING_DATA(identity);
	uint32 n = DP_STRING_LEN(identity);
	uint8 *out;

	while (n > 0 && s[n - 1] != 0)
		n--;
	if (n == 0)
		return false;
	n--;
	out = palloc(n + 5);
	dp_put_int32(out, n + 1);
	memcpy(out + 4, s, n);
	out[n + 4] = 0;
	parent->type = DP_TYPE_STRING;
	parent->data = out;
	parent->len = n + 5;
	return true;
}

void
dp_single_read(const DpSingle *s, struct varlena *doc, DpSingleDoc *out)
{
	const uint8 *data = DP_DOC_DATA(doc);
	uint32 size = DP_DOC_SIZE(doc);
	DpValue value;
	DpValue element;
	DpIter iter;

	memset(out, 0, sizeof(*out));
	out->has_type = s->ids.type_field != NULL &&
					dp_path_find(data, size, s->ids.type_field, &out->type) &&
					out->type.type == DP_TYPE_STRING;
	if (s->key_field != NULL)
	{
		DpValue parent;

		out->has_identity = dp_path_find(data, size, s->key_field, &value) &&
							dp_single_key(&value, s->separator, s->separatorlen, &out->identity);
		if (out->has_identity && key_parent(&out->identity, &parent))
		{
			out->parents = palloc(sizeof(DpValue));
			out->parents[out->nparents++] = parent;
		}
		return;
	}

	out->has_identity = dp_single_id(&s->ids, data, size, &out->identity);
	if (!dp_path_find(data, size, s->related_field, &value) || value.type == DP_TYPE_NULL ||
		value.type == DP_TYPE_UNDEFINED)
		return;
	if (value.type != DP_TYPE_ARRAY)
	{
		out->parents = palloc(sizeof(DpValue));
		out->parents[out->nparents++] = value;
	}
	else
	{
		out->parents = palloc(sizeof(DpValue) * (dp_array_count(value.data, value.len) + 1));
		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &element))
			out->parents[out->nparents++] = element;
	}
	if (out->has_identity)
	{
		int from;
		int to = 0;

		for (from = 0; from < out->nparents; from++)
		{
			if (dp_value_compare(&out->parents[from], &out->identity) == 0)
				out->names_itself = true;
			else
				out->parents[to++] = out->parents[from];
		}
		out->nparents = to;
	}
}

/* Whether a document's type is one of them. */
static bool
has_type(const DpValue *types, int n, const DpSingleDoc *read)
{
	int i;

	for (i = 0; read->has_type && i < n; i++)
	{
		if (dp_value_compare(&types[i], &read->type) == 0)
			return true;
	}
	return false;
}

/* Whether a document names an identity. */
static bool
names(const DpSingleDoc *read, const DpValue *identity)
{
	int i;

	for (i = 0; i < read->nparents; i++)
	{
		if (dp_value_compare(&read->parents[i], identity) == 0)
			return true;
	}
	return false;
}

struct varlena *
dp_single_rebuild(const DpValue *value, const DpValue *first, DpSingleReplace replace, void *arg)
{
	DpBuilder b;
	DpIter iter;
	DpValue element;
	DpValue replacement;

	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	if (first != NULL)
		dp_builder_append_value(&b, NULL, 0, first);
	if (value != NULL && value->type == DP_TYPE_ARRAY)
	{
		dp_iter_init_value(&iter, value);
		while (dp_iter_next_value(&iter, &element))
		{
			if (replace == NULL)
				dp_builder_append_value(&b, NULL, 0, &element);
			else if (replace(&element, &replacement, arg))
				dp_builder_append_value(&b, NULL, 0, &replacement);
		}
	}
	else if (value != NULL && value->type != DP_TYPE_NULL && value->type != DP_TYPE_UNDEFINED)
	{
		if (replace == NULL)
			dp_builder_append_value(&b, NULL, 0, value);
		else if (replace(value, &replacement, arg))
			dp_builder_append_value(&b, NULL, 0, &replacement);
	}
	dp_builder_end(&b);
	return dp_builder_finish_value(&b, DP_TYPE_ARRAY);
}

/* Leaves one value out. */
static bool
without(const DpValue *element, DpValue *replacement, void *arg)
{
	*replacement = *element;
	return dp_value_compare(element, arg) != 0;
}

struct varlena *
dp_single_add_self(const DpSingle *s, struct varlena *doc, const DpSingleDoc *read,
				   const DpValue *old_id)
{
	DpValue value;
	DpValue array;
	bool present;
	bool had_old;

	if (!read->has_identity || !has_type(s->self_related, s->nself, read))
		return NULL;
	had_old = old_id != NULL && names(read, old_id);
	if (read->names_itself && !had_old)
		return NULL;
	present = dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), s->related_field, &value);
	array = dp_value_of_varlena(dp_single_rebuild(present ? &value : NULL,
												  read->names_itself ? NULL : &read->identity,
												  had_old ? without : NULL, (void *) old_id));
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), s->related_field, &array);
}

/* ---------------------------------------------------------------- rows */

/*
 * BEFORE a row is written: the row, with itself among its relations where that
 * is to be so.
 */
static HeapTuple
single_before(DpSingle *s, TriggerData *trigdata)
{
	bool is_update = TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event);
	bool is_delete = TRIGGER_FIRED_BY_DELETE(trigdata->tg_event);
	HeapTuple tuple = dp_trigger_row(trigdata);
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	struct varlena *before = NULL;
	struct varlena *after = NULL;
	struct varlena *changed = NULL;
	DpSingleDoc old_read;
	DpSingleDoc read;
	int i;

	memset(&old_read, 0, sizeof(old_read));
	memset(&read, 0, sizeof(read));
	if (is_update && dp_trigger_same_document(trigdata, s->decl))
		return tuple;
	if (is_update || is_delete)
		before = dp_tuple_document(s->decl, trigdata->tg_trigtuple, desc);
	if (!is_delete)
		after = dp_tuple_document(s->decl, tuple, desc);
	if (before != NULL)
		dp_single_read(s, before, &old_read);
	if (after != NULL)
	{
		dp_single_read(s, after, &read);
		changed =
			dp_single_add_self(s, after, &read,
							   old_read.has_identity && read.has_identity &&
									   dp_value_compare(&old_read.identity, &read.identity) != 0
								   ? &old_read.identity
								   : NULL);
		if (changed != NULL)
		{
			after = changed;
			dp_single_read(s, after, &read);
		}
		if (before == NULL || old_read.has_type != read.has_type ||
			old_read.has_identity != read.has_identity ||
			(read.has_type && !dp_value_identical(&old_read.type, &read.type)) ||
			(read.has_identity && !dp_value_identical(&old_read.identity, &read.identity)) ||
			old_read.nparents != read.nparents || read.nparents > 0)
			check_document(s, after, &read);
	}

	if (old_read.has_identity && s->on_delete != DP_SINGLE_KEEP &&
		(!read.has_identity || dp_value_compare(&old_read.identity, &read.identity) != 0))
	{
		if (is_update)
			lock_row(s, trigdata->tg_relation, trigdata->tg_trigtuple);
		note(s, &noted_deleted, &old_read.identity, read.has_identity ? &read.identity : NULL);
	}
	if (s->missing_error || s->on_delete != DP_SINGLE_KEEP)
	{
		for (i = 0; i < read.nparents; i++)
		{
			if (!names(&old_read, &read.parents[i]))
				note(s, &noted_named, &read.parents[i], NULL);
		}
	}

	return changed == NULL ? tuple : dp_tuple_with_document(s->decl, tuple, desc, changed);
}

/* Returns an error in a document, as the detail of an error with that code, or NULL. */
const char *
dp_single_problem(const DpSingle *s, struct varlena *doc, const DpSingleDoc *read, int *code)
{
	const uint8 *data = DP_DOC_DATA(doc);
	uint32 size = DP_DOC_SIZE(doc);
	DpValue value;
	int i;

	*code = ERRCODE_CHECK_VIOLATION;
	if (s->ids.type_field != NULL)
	{
		if (!read->has_type)
		{
			if (!dp_path_find(data, size, s->ids.type_field, &value))
				*code = ERRCODE_NOT_NULL_VIOLATION;
			return psprintf("Its type, the field \"%s\", must be a string.",
							dp_decl_text(s->decl, "type_field"));
		}
		if (s->ntypes >= 0 && !has_type(s->types, s->ntypes, read))
			return psprintf("Its type %s is not one of the declared ones.",
							dp_single_identity_text(NULL, &read->type));
	}
	if (s->key_field != NULL)
	{
		const char *key;
		uint32 n;

		if (!dp_path_find(data, size, s->key_field, &value) || value.type == DP_TYPE_NULL)
		{
			*code = ERRCODE_NOT_NULL_VIOLATION;
			return psprintf("It has no key, the field \"%s\".", dp_decl_text(s->decl, "key_field"));
		}
		if (!read->has_identity)
			return psprintf("Its key, the field \"%s\", must be a string without NUL characters.",
							dp_decl_text(s->decl, "key_field"));
		key = DP_STRING_DATA(&read->identity);
		n = DP_STRING_LEN(&read->identity);
		for (i = 0; i <= n; i++)
		{
			if ((i == n || key[i] == 0) && (i == 0 || key[i - 1] == 0))
				return psprintf("Its key %s has an empty part.",
								dp_single_identity_text(s, &read->identity));
		}
		return NULL;
	}

	if (!read->has_identity && read->has_type &&
		(id_field(&s->ids, &read->type) != NULL || has_type(s->self_related, s->nself, read)))
	{
		*code = ERRCODE_NOT_NULL_VIOLATION;
		return psprintf("A document of type %s must have an ID.",
						dp_single_identity_text(NULL, &read->type));
	}
	for (i = 0; i < read->nparents; i++)
	{
		if (!single_is_id(&read->parents[i]))
			return psprintf("Its field \"%s\" contains a value of type %s, which cannot be an ID.",
							dp_decl_text(s->decl, "related_field"),
							dp_type_name(read->parents[i].type));
	}
	return NULL;
}

/* Raises a class 23 error unless a document is valid for the declaration. */
static void
check_document(DpSingle *s, struct varlena *doc, const DpSingleDoc *read)
{
	int code;
	const char *problem = dp_single_problem(s, doc, read, &code);
	DpValue id;

	if (problem == NULL)
		return;
	if (dp_document_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), "_id", 3, &id))
		problem = psprintf("%s The document has the _id %s.", problem,
						   dp_single_identity_text(NULL, &id));
	ereport(ERROR, (errcode(code),
					errmsg("invalid document for single collection \"%s\"",
						   dp_relation_name(s->decl->target)),
					errdetail_internal("%s", problem)));
}

/* Locks a row that is being updated as if it were deleted, after transactions that prevent that. */
static void
lock_row(DpSingle *s, Relation rel, HeapTuple tuple)
{
	DpWriter *w = dp_writer_open(RelationGetRelid(rel), s->decl->doc_column, 0, NULL);
	DpRowRef ref = { 0 };

	ref.relid = RelationGetRelid(rel);
	ref.tid = tuple->t_self;
	if (dp_writer_fetch_own(w, &ref))
		(void) dp_writer_lock(w, LockTupleExclusive);
	dp_writer_close(w);
}

/* ---------------------------------------------------------------- statements */

/* Remember an identity for the end of the statement. */
static void
note(DpSingle *s, const void *what, const DpValue *identity, const DpValue *becomes)
{
	DpBuilder b;

	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	dp_builder_append_string(&b, NULL, 0, s->decl->name, strlen(s->decl->name));
	dp_builder_append_value(&b, NULL, 0, identity);
	if (becomes != NULL)
		dp_builder_append_value(&b, NULL, 0, becomes);
	dp_builder_end(&b);
	dp_collect(s->decl->target, what, dp_builder_finish_value(&b, DP_TYPE_ARRAY));
}

/* A collected identity and its declaration */
static DpSingle *
noted(DpDecl *decl, struct varlena *value, DpValue *identity, DpValue *becomes, bool *moved)
{
	DpValue array = dp_value_of_varlena(value);
	DpValue name;
	DpIter iter;

	dp_iter_init_value(&iter, &array);
	if (!dp_iter_next_value(&iter, &name) || !dp_iter_next_value(&iter, identity))
		elog(ERROR, "what was noted of a single collection is not as it was");
	*moved = dp_iter_next_value(&iter, becomes);
	if (strcmp(DP_STRING_DATA(&name), decl->name) == 0)
		return dp_single(decl);
	return dp_single(dp_decl_find(decl->target, "single_collection", DP_STRING_DATA(&name)));
}

/* AFTER a statement: for all declarations of the table, with the first of their triggers. */
static void
single_after(DpDecl *decl)
{
	List *named = dp_collected(decl->target, &noted_named);
	List *removed = dp_collected(decl->target, &noted_deleted);
	ListCell *lc;
	DpValue identity;
	DpValue becomes;
	bool moved;

	if (named == NIL && removed == NIL)
		return;
	SPI_connect();
	if (named != NIL)
	{
		DpWriter *w = dp_writer_open(decl->target, decl->doc_column, 0, NULL);
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns relations",
													  ALLOCSET_SMALL_SIZES);
		MemoryContext old = MemoryContextSwitchTo(context);

		dp_writer_refresh(w);
		foreach(lc, named)
		{
			DpSingle *s = noted(decl, lfirst(lc), &identity, &becomes, &moved);

			CHECK_FOR_INTERRUPTS();
			dp_single_require(s, w, &identity);
			MemoryContextReset(context);
		}
		MemoryContextSwitchTo(old);
		MemoryContextDelete(context);
		dp_writer_close(w);
	}
	if (removed != NIL)
	{
		/* of each declaration all at once: they are ordered by it */
		DpSingleRemoved *all =
			MemoryContextAllocHuge(CurrentMemoryContext,
								   sizeof(DpSingleRemoved) * list_length(removed));
		DpSingle *current = NULL;
		int n = 0;

		foreach(lc, removed)
		{
			DpSingle *s = noted(decl, lfirst(lc), &all[n].identity, &all[n].becomes, &all[n].moved);

			if (current != NULL && s != current)
			{
				DpSingleRemoved next = all[n];

				dp_single_deleted(current, all, n);
				all[0] = next;
				n = 0;
			}
			current = s;
			n++;
		}
		dp_single_deleted(current, all, n);
	}
	SPI_finish();
}
