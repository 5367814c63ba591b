/*
 * subset.c
 *		The subset pattern: documents that show the first rows of their group
 *		follow changes of the source.
 *
 * The changes of a statement to a group are reduced to one position in the order:
 * that of the first inserted or deleted row.  If keep rows are before it, no shown
 * row has changed, and the target is not read.  Else the members are read again.
 *
 * This is only right while these rows stay, so a group has two kinds of writers:
 *
 *	passers		changed no shown row.  They hold the group's lock in
 *				RowExclusiveLock mode until they end: concurrently.
 *	touchers	have changed a shown row and will read the source.  They hold it
 *				in ShareRowExclusiveLock mode, which waits for passers and blocks
 *				others.
 *
 * So when a toucher reads, rows of other transactions are committed, except those
 * of statements in progress, which will read its result.  And while there are
 * passers, the first rows stay as the last toucher found them, because each
 * passer's rows are behind all of them.
 *
 * If rows are counted immediately, every statement that inserts or deletes rows
 * writes the target's row, whose lock is used instead.
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "kit/adopt.h"
#include "kit/derive/queue.h"
#include "kit/options.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"
#include "patterns/subset/subset.h"

/* A batch's state of a group */
typedef struct SubsetState
{
	bool has_first;
	DpSubsetPosition first; /* the first position of an inserted or deleted row */
	int64 delta;            /* rows more */
	bool alone;             /* the group is locked as by a toucher */
	bool recount;           /* only the count must be computed again */
	bool deleted;           /* rows were deleted */
} SubsetState;

static void subset_open(DpDerivation *d);
static void subset_take(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign);
static bool subset_same(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after);
static bool subset_changes(DpDerivation *d, DpGroup *group);
static LOCKMODE subset_group_lock(DpDerivation *d, DpGroup *group);
static struct varlena *subset_apply(DpDerivation *d, DpGroup *group, struct varlena *doc);
static struct varlena *
subset_protect(DpDerivation *d, struct varlena *before, struct varlena *after);
static bool subset_has_user_data(DpDerivation *d, struct varlena *before, struct varlena *after);
static void
subset_move_user_data(DpDerivation *d, const DpValue *key, struct varlena *doc, bool inserted);
static void find_identity(DpSubset *s);
static void append_identity(const DpSubset *s, DpBuilder *b, const uint8 *member, uint32 size);
static void
remember_removed(DpDerivation *d, const DpValue *key, struct varlena *doc, const DpValue *now);
static bool has_element(const DpValue *array, const DpValue *element);
static struct varlena *subset_elsewhere(DpDerivation *d, const DpValue *key);
static bool keeps_held(DpSubset *s, DpGroup *group, struct varlena *doc, const DpValue *array);
static bool row_link(const DpSubset *s, struct varlena *doc, DpValue *link);
static bool row_belongs(const DpSubset *s, struct varlena *doc, DpValue *link);
static void
row_position(const DpSubset *s, const DpSourceRow *row, StringInfo key, DpSubsetPosition *position);
static struct varlena *set_field(struct varlena *doc, DpPath *path, const DpValue *value);
static struct varlena *set_count(struct varlena *doc, DpPath *path, int64 n);
static bool get_count(struct varlena *doc, DpPath *path, int64 *n);
static struct varlena *copy_field(DpPath *path, struct varlena *from, struct varlena *to);
static DpValue empty_array(void);

static const DpOption options[] = {
	{ "field", DP_OPTION_PATH, DP_REQUIRED | DP_KEPT | DP_GUARDED | DP_DERIVED,
	  DP_INTO(DpSubset, field) },
	{ "on_field", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpSubset, link),
	  DP_TEXT_INTO(DpSubset, on_field) },
	{ "order_by", DP_OPTION_ORDER, DP_REQUIRED | DP_ALTERABLE, DP_INTO(DpSubset, order) },
	{ "keep", DP_OPTION_INT, DP_REQUIRED | DP_ALTERABLE, DP_BETWEEN(1, 10000),
	  DP_INTO(DpSubset, keep) },
	{ "fields", DP_OPTION_DOCUMENT, DP_ALTERABLE },
	{ "filter", DP_OPTION_FILTER, DP_ALTERABLE },
	{ "count_field", DP_OPTION_PATH, DP_KEPT | DP_GUARDED | DP_DERIVED, DP_INTO(DpSubset, count) },
	{ "count_mode", DP_OPTION_WORD, DP_ALTERABLE, DP_WORDS("immediate", "deferred"),
	  .with = "count_field", .dflt = "immediate", DP_INTO(DpSubset, count_deferred) },
	{ "element", DP_OPTION_DOCUMENT }, /* written by subset_split() */
	{ NULL }
};

static const DpDeriveMethods methods = { .open = subset_open,
										 .take = subset_take,
										 .same = subset_same,
										 .reads_columns = true,
										 .changes = subset_changes,
										 .group_lock = subset_group_lock,
										 .apply = subset_apply,
										 .protect = subset_protect,
										 .has_user_data = subset_has_user_data,
										 .move_user_data = subset_move_user_data,
										 .elsewhere = subset_elsewhere };

DP_DEFINE_PATTERN(subset) = {
	.name = "subset",
	.waiting = "second_link_id",
	.adopts = "makes rows of elements whose document has none where it can",
	.adopt_hint =
		"Insert such elements into {source}, where the field \"{on_field}\" names their document, as subset_split() does before the declaration.",
	.options = options,
	.derive = &methods
};

/*
 * subset_trigger(): all triggers of the pattern.
 */
DP_FUNCTION(dp_subset_trigger);
Datum
dp_subset_trigger(PG_FUNCTION_ARGS)
{
	return dp_derive_trigger(fcinfo, &dp_subset_pattern);
}

/* Reads a declaration. */
static void
subset_open(DpDerivation *d)
{
	DpDecl *decl = d->decl;
	DpSubset *s = palloc0(sizeof(DpSubset));
	DpValue value;

	s->derivation = d;
	dp_options_read(decl, s);
	s->order_by = dp_document_to_varlena(s->order.data, s->order.len);
	value = dp_value_of_document(s->order_by);
	s->sort = dp_sort_spec_compile(&value);
	if (dp_option_value(decl->options, "filter", DP_TYPE_DOCUMENT, &value))
	{
		s->filter_spec = dp_document_to_varlena(value.data, value.len);
		value = dp_value_of_document(s->filter_spec);
		s->filter = dp_filter_compile(&value, DP_FILTER_IMMUTABLE, NULL);
	}
	if (dp_option_value(decl->options, "fields", DP_TYPE_DOCUMENT, &value))
		s->member = dp_member_compile(&value);
	else
		s->member = dp_member_compile(NULL);
	find_identity(s);
	s->remembers = dp_decl_text(decl, "removed_link_id") != NULL;
	s->source_context =
		AllocSetContextCreate(d->context, "docpatterns subset source", ALLOCSET_SMALL_SIZES);
	d->source_column = dp_decl_text(decl, "source_doc_column");
	d->state = s;
}

/* Returns the identity of a member: the source's _id if shown, else the shown order fields. */
static void
find_identity(DpSubset *s)
{
	char *name = dp_member_shows(s->member, "_id", 3);
	DpIter iter;
	DpElement field;

	s->identity =
		palloc(sizeof(DpPath *) *
			   (dp_document_count(DP_DOC_DATA(s->order_by), DP_DOC_SIZE(s->order_by)) + 1));
	if (name != NULL)
	{
		s->by_id = true;
		s->identity[s->nidentity++] = dp_path_parse(name, strlen(name));
		return;
	}
	dp_iter_init_varlena(&iter, s->order_by);
	while (dp_iter_next(&iter, &field))
	{
		name = dp_member_shows(s->member, field.name, field.namelen);
		if (name != NULL)
			s->identity[s->nidentity++] = dp_path_parse(name, strlen(name));
	}
}

/*
 * Appends the fields of a member's identity: {_id}, {order: [..]} or, also of one that lacks what
 * the others have, {hash}.
 */
static void
append_identity(const DpSubset *s, DpBuilder *b, const uint8 *member, uint32 size)
{
	DpValue value;
	int found = 0;
	int i;

	for (i = 0; i < s->nidentity; i++)
		found += dp_path_find(member, size, s->identity[i], &value);
	if (found == 0)
	{
		dp_builder_append_int64(b, "hash", 4, (int64) hash_bytes_extended(member, size, 0));
		return;
	}
	if (!s->by_id)
		dp_builder_begin_array_field(b, "order", 5);
	for (i = 0; i < s->nidentity; i++)
	{
		const char *name = s->by_id ? "_id" : NULL;

		if (dp_path_find(member, size, s->identity[i], &value))
			dp_builder_append_value(b, name, s->by_id ? 3 : 0, &value);
		else
			dp_builder_append_null(b, name, s->by_id ? 3 : 0);
	}
	if (!s->by_id)
		dp_builder_end(b);
}

/* ---------------------------------------------------------------- the source */

/* Adds or removes a row of the source. */
static void
subset_take(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign)
{
	DpSubset *s = d->state;
	DpValue link;
	DpGroup *group;
	SubsetState *state;
	DpSubsetPosition position;
	StringInfoData key;
	MemoryContext old;
	char *bytes;
	int i;

	if (!row_belongs(s, row->doc, &link))
		return;
	dp_subset_source(s);
	group = dp_derive_group(batch, d, &link);
	state = group->state;
	if (state == NULL)
		state = group->state = MemoryContextAllocZero(dp_derive_memory(batch), sizeof(SubsetState));
	state->delta += sign;
	state->deleted |= sign < 0;
	if (sign < 0 && dp_held(d->decl, s->field))
		dp_derive_deleted(group, dp_member_make(s->member, row->doc));

	initStringInfo(&key);
	row_position(s, row, &key, &position);
	if (state->has_first && dp_subset_compare(s, &state->first, &position) <= 0)
		return;
	old = MemoryContextSwitchTo(dp_derive_memory(batch));
	bytes = palloc(Max(position.len, 1));
	memcpy(bytes, position.key, position.len);
	state->first.key = bytes;
	state->first.len = position.len;
	for (i = 0; i < s->nkeys; i++)
		state->first.row[i] = datumCopy(position.row[i], s->keys[i].byval, s->keys[i].len);
	state->has_first = true;
	MemoryContextSwitchTo(old);
}

/*
 * Returns whether two versions of a row are equal for the pattern: same group, position and
 * member.
 */
static bool
subset_same(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after)
{
	DpSubset *s = d->state;
	bool equal = dp_same_bytes(before->doc, after->doc);
	DpValue was;
	DpValue is;
	bool had = row_belongs(s, before->doc, &was);
	DpSubsetPosition from;
	DpSubsetPosition to;
	StringInfoData from_key;
	StringInfoData to_key;
	struct varlena *old_member;
	struct varlena *new_member;

	if (had != row_belongs(s, after->doc, &is))
		return false;
	if (!had)
		return true;
	if (!equal && dp_value_compare(&was, &is) != 0)
		return false;
	dp_subset_source(s);
	initStringInfo(&from_key);
	initStringInfo(&to_key);
	row_position(s, before, &from_key, &from);
	row_position(s, after, &to_key, &to);
	if (dp_subset_compare(s, &from, &to) != 0)
		return false;
	if (equal)
		return true;
	old_member = dp_member_make(s->member, before->doc);
	new_member = dp_member_make(s->member, after->doc);
	return dp_same_bytes(old_member, new_member);
}

/* Whether a row belongs to a group, and to which. */
static bool
row_belongs(const DpSubset *s, struct varlena *doc, DpValue *link)
{
	DpValue value;

	if (!row_link(s, doc, link))
		return false;
	if (s->filter == NULL)
		return true;
	value = dp_value_of_document(doc);
	return dp_filter_match(s->filter, &value);
}

/* The link of a row; false if it has none. */
static bool
row_link(const DpSubset *s, struct varlena *doc, DpValue *link)
{
	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), s->link, link) &&
		   link->type != DP_TYPE_NULL && link->type != DP_TYPE_UNDEFINED;
}

/* Returns the position of a row. It points into the row and the string. */
static void
row_position(const DpSubset *s, const DpSourceRow *row, StringInfo key, DpSubsetPosition *position)
{
	DpValue value = dp_value_of_document(row->doc);
	int i;

	dp_sort_key_append(key, s->sort, &value);
	position->key = key->data;
	position->len = key->len;
	for (i = 0; i < s->nkeys; i++)
	{
		bool isnull;

		position->row[i] = slot_getattr(row->slot, s->keys[i].attnum, &isnull);
	}
}

/* ---------------------------------------------------------------- the target */

/* Returns whether a group must be read: not if a row was only deleted and inserted again. */
static bool
subset_changes(DpDerivation *d, DpGroup *group)
{
	SubsetState *state = group->state;

	return state == NULL || state->has_first || state->recount;
}

/*
 * Passes or touches, see above. Takes the lock here, because the kind of lock can only be decided
 * while holding it.
 */
static LOCKMODE
subset_group_lock(DpDerivation *d, DpGroup *group)
{
	DpSubset *s = d->state;
	SubsetState *state = group->state;
	LOCKMODE mode = group->exclusive ? ShareRowExclusiveLock : RowExclusiveLock;

	/* whose statement it was may have left the group without being alone */
	if (group->from_note)
		return ShareRowExclusiveLock;
	if (state == NULL || !state->has_first)
		return NoLock; /* nothing has happened to the source */
	if (s->count != NULL)
	{
		/*
		 * the document's row is locked; if there is none this is the lock that would be taken then,
		 * but in its order
		 */
		if (!s->count_deferred)
			return mode;
		if (state->delta != 0 && !group->recompute)
		{
			DpQueue *queue = dp_queue_open(d->decl, "second_link_id");

			dp_queue_add(queue, &group->key, NULL);
			dp_queue_close(queue);
		}
	}

	if (!group->recompute)
	{
		if (!dp_derive_lock_or_leave(group, mode))
			return NoLock;
		if (!dp_subset_reaches(s, &group->key, &state->first))
		{
			group->changed = false;
			return NoLock;
		}
		/* not while holding it: two transactions would deadlock */
		if (mode == RowExclusiveLock)
			dp_derive_unlock_group(d, group->hash, mode);
	}
	state->alone = true;
	return ShareRowExclusiveLock;
}

/*
 * The document with its members, and its count, as they are now.
 */
static struct varlena *
subset_apply(DpDerivation *d, DpGroup *group, struct varlena *doc)
{
	DpSubset *s = d->state;
	SubsetState *state = group->state;
	bool read_all = group->recompute || state == NULL;
	bool members = read_all || state->has_first;
	bool immediate = s->count != NULL && !s->count_deferred;

	/* a single writer needs no other lock to read: it retries if a row changes meanwhile */
	if (!group->locked && !group->emptied && (read_all || !state->alone))
	{
		group->need_lock = true;
		return doc;
	}
	if (!group->emptied)
		dp_derive_reading(group);

	if (members && !read_all && immediate)
		members = dp_subset_reaches(s, &group->key, &state->first);
	if (members)
	{
		DpBuilder b;
		DpValue array;

		dp_builder_init_value(&b, 0);
		dp_builder_begin_array(&b);
		if (!group->emptied)
			dp_subset_members(s, &group->key, &b);
		dp_builder_end(&b);
		array = dp_builder_view(&b, DP_TYPE_ARRAY);
		if (!keeps_held(s, group, doc, &array))
		{
			if (s->remembers && (group->emptied || (state != NULL && state->deleted)))
				remember_removed(d, &group->key, doc, &array);
			doc = set_field(doc, s->field, &array);
		}
	}

	if (s->count != NULL && (immediate || read_all || state->recount))
	{
		int64 n = 0;
		int64 held;

		if (group->emptied)
			n = 0;
		else if (read_all || state->recount || !get_count(doc, s->count, &n))
			n = dp_subset_count(s, &group->key);
		else
			n += state->delta;
		/* a count that differs from the former one is from before the declaration */
		if (dp_held(d->decl, s->count) && get_count(doc, s->count, &held) && held != 0 &&
			(read_all || state->recount || group->emptied ||
			 held != dp_subset_count(s, &group->key) - state->delta))
			return doc;
		doc = set_count(doc, s->count, n);
	}
	return doc;
}

/*
 * Whether a document holds members from before the declaration that the source does not have: these
 * stay.
 */
static bool
keeps_held(DpSubset *s, DpGroup *group, struct varlena *doc, const DpValue *array)
{
	DpDerivation *d = s->derivation;
	DpValue was;
	DpValue rest;

	if (!dp_held(d->decl, s->field) ||
		!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), s->field, &was) ||
		!dp_value_lost(&was, array, group->deleted_values))
		return false;
	rest = dp_value_of_varlena(subset_elsewhere(d, &group->key));
	return dp_value_lost(&was, array, lappend(list_copy(group->deleted_values), &rest));
}

/* All members of a group, and the rows that they show a part of. */
static struct varlena *
subset_elsewhere(DpDerivation *d, const DpValue *key)
{
	DpSubset all;
	DpBuilder b;
	DpValue array;

	dp_subset_source(d->state);
	all = *(DpSubset *) d->state;
	all.keep = Max(1, dp_subset_count(d->state, key));
	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	dp_subset_members(&all, key, &b);
	all.member = dp_member_compile(NULL);
	dp_subset_members(&all, key, &b);
	dp_builder_end(&b);
	array = dp_builder_view(&b, DP_TYPE_ARRAY);
	return dp_value_to_varlena(&array);
}

/* Processes a user's write to the target. */
static struct varlena *
subset_protect(DpDerivation *d, struct varlena *before, struct varlena *after)
{
	DpSubset *s = d->state;

	if (before == NULL)
	{
		DpValue array = empty_array();

		after = set_field(after, s->field, &array);
		if (s->count != NULL)
			after = set_count(after, s->count, 0);
		return after;
	}
	after = copy_field(s->field, before, after);
	if (s->count != NULL)
		after = copy_field(s->count, before, after);
	return after;
}

/*
 * Whether the array has elements that the old one has not, or a new document says that there are
 * some.
 */
static bool
subset_has_user_data(DpDerivation *d, struct varlena *before, struct varlena *after)
{
	DpSubset *s = d->state;
	DpValue is;
	DpValue was;
	DpValue element;
	DpIter iter;
	int64 n;
	bool had;

	if (before == NULL && s->count != NULL && get_count(after, s->count, &n) && n != 0)
		return true;
	if (!dp_path_find(DP_DOC_DATA(after), DP_DOC_SIZE(after), s->field, &is) ||
		is.type == DP_TYPE_NULL)
		return false;
	had = before != NULL && dp_path_find(DP_DOC_DATA(before), DP_DOC_SIZE(before), s->field, &was);
	if (had && dp_value_identical(&is, &was))
		return false;
	if (is.type != DP_TYPE_ARRAY)
		return true;
	had = had && was.type == DP_TYPE_ARRAY;
	dp_iter_init_value(&iter, &is);
	while (dp_iter_next_value(&iter, &element))
	{
		CHECK_FOR_INTERRUPTS();
		if (!had || !has_element(&was, &element))
			return true;
	}
	return false;
}

/* Whether an array has that element, byte for byte. */
static bool
has_element(const DpValue *array, const DpValue *element)
{
	DpIter iter;
	DpValue value;

	dp_iter_init_value(&iter, array);
	while (dp_iter_next_value(&iter, &value))
	{
		if (dp_value_identical(&value, element))
			return true;
	}
	return false;
}

/*
 * Elements without a row in the source become rows: _subset_new_rows() finds them, and refuses
 * invalid ones, with the owner's privileges, because the writer may lack SELECT on the source;
 * they are inserted with the writer's privileges.
 */
static void
subset_move_user_data(DpDerivation *d, const DpValue *key, struct varlena *doc, bool inserted)
{
	DpDecl *decl = d->decl;
	SPIPlanPtr plan;
	Datum values[5];
	Datum rows;
	bool isnull;

	SPI_connect();
	plan = dp_statement(decl, "SELECT docpatterns._subset_new_rows({$1 regclass}, {$2 text},"
							  " {$3 bson_value}, {$4 bson}, {$5 bool})");
	values[0] = ObjectIdGetDatum(d->target);
	values[1] = CStringGetTextDatum(decl->name);
	values[2] = PointerGetDatum(dp_value_to_varlena(key));
	values[3] = PointerGetDatum(doc);
	values[4] = BoolGetDatum(inserted);
	(void) dp_run(decl, plan, values, NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT);
	rows = dp_result(0, 1, &isnull);
	if (!isnull)
	{
		Oid array = get_array_type(dp_types()->bson);
		StringInfoData sql;

		dp_subset_source(d->state);
		initStringInfo(&sql);
		appendStringInfoString(&sql, "INSERT INTO ");
		dp_sql_table(&sql, d->source);
		appendStringInfo(&sql, " (%s) SELECT pg_catalog.unnest($1)",
						 quote_identifier(((DpSubset *) d->state)->doc_column));
		if (SPI_execute_with_args(sql.data, 1, &array, &rows, NULL, false, 0) != SPI_OK_INSERT)
			elog(ERROR, "could not insert into a source");
	}
	SPI_finish();
}

/* Adds members that are no longer shown to the list of removed ones. */
static void
remember_removed(DpDerivation *d, const DpValue *key, struct varlena *doc, const DpValue *now)
{
	DpSubset *s = d->state;
	DpQueue *queue = NULL;
	DpValue was;
	DpValue member;
	DpIter iter;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), s->field, &was) ||
		was.type != DP_TYPE_ARRAY)
		return;
	dp_iter_init_value(&iter, &was);
	while (dp_iter_next_value(&iter, &member))
	{
		DpBuilder b;

		CHECK_FOR_INTERRUPTS();
		if (member.type != DP_TYPE_DOCUMENT || has_element(now, &member))
			continue;
		dp_builder_init(&b, 0);
		dp_builder_begin_document(&b);
		append_identity(s, &b, member.data, member.len);
		dp_builder_end(&b);
		if (queue == NULL)
			queue = dp_queue_open(d->decl, "removed_link_id");
		dp_queue_add(queue, key, dp_builder_finish_bson(&b));
	}
	if (queue != NULL)
		dp_queue_close(queue);
}

/* [] */
static DpValue
empty_array(void)
{
	static const uint8 bytes[DP_DOCUMENT_MIN_SIZE] = { DP_DOCUMENT_MIN_SIZE, 0, 0, 0, 0 };
	DpValue array = { bytes, sizeof(bytes), DP_TYPE_ARRAY };

	return array;
}

/* The document with a field: the same one if it has that value already. */
static struct varlena *
set_field(struct varlena *doc, DpPath *path, const DpValue *value)
{
	DpValue is;

	if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &is) &&
		dp_value_identical(&is, value))
		return doc;
	return dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, value);
}

/* The document with a count. */
static struct varlena *
set_count(struct varlena *doc, DpPath *path, int64 n)
{
	uint8 bytes[8];
	DpValue value = { bytes, 4, DP_TYPE_INT32 };

	if (n > PG_INT32_MAX)
	{
		value.type = DP_TYPE_INT64;
		value.len = 8;
		dp_put_int64(bytes, n);
	}
	else
		dp_put_int32(bytes, (int32) n);
	return set_field(doc, path, &value);
}

/* The count that a document has; false if it has none. */
static bool
get_count(struct varlena *doc, DpPath *path, int64 *n)
{
	DpValue value;

	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value))
		return false;
	if (value.type == DP_TYPE_INT32)
		*n = dp_get_int32(value.data);
	else if (value.type == DP_TYPE_INT64)
		*n = dp_get_int64(value.data);
	else
		return false;
	return true;
}

/* A document with a field as it is in another: absent if it is absent there. */
static struct varlena *
copy_field(DpPath *path, struct varlena *from, struct varlena *to)
{
	DpValue value;

	if (dp_path_find(DP_DOC_DATA(from), DP_DOC_SIZE(from), path, &value))
		return set_field(to, path, &value);
	{
		struct varlena *without = dp_document_unset(DP_DOC_DATA(to), DP_DOC_SIZE(to), path);

		return without != NULL ? without : to;
	}
}

/* ---------------------------------------------------------------- calls */

/*
 * subset_refresh(rel, name) -> bigint: counts the queued groups; returns how many documents were
 * written.  _subset_maintain(rel, name, most) takes only so many entries of the queue.
 */
DP_ROUTED_FUNCTION(dp_subset_refresh, DP_ROUTE_SUM, 0)
{
	Oid rel;
	DpDecl *decl;
	DpDerivation *d;
	DpSubset *s;
	int64 written = 0;
	DpActor self;
	DpQueue *queue;
	List *taken;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	rel = PG_GETARG_OID(0);
	dp_require_owner(rel);
	LockRelationOid(rel, RowExclusiveLock);
	decl =
		dp_decl_find(rel, "subset", PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1)));
	d = dp_derivation(decl);
	s = d->state;
	if (s->count == NULL || !s->count_deferred)
		PG_RETURN_INT64(0);

	dp_owner_begin(d->decl->owner, &self);
	SPI_connect();
	queue = dp_queue_open(d->decl, "second_link_id");
	/* all at once, or in a transaction each: later batches would be locked out of order */
	taken = dp_queue_take(queue, NULL, PG_NARGS() > 2 ? PG_GETARG_INT32(2) : PG_INT64_MAX);
	dp_queue_close(queue);
	if (taken != NIL)
	{
		DpDeriveBatch *batch = dp_derive_begin();
		ListCell *lc;

		foreach(lc, taken)
		{
			DpQueued *q = lfirst(lc);
			DpValue key = dp_value_of_varlena(q->key);
			DpGroup *group = dp_derive_group(batch, d, &key);
			SubsetState *state =
				MemoryContextAllocZero(dp_derive_memory(batch), sizeof(SubsetState));

			state->recount = true;
			group->state = state;
		}
		written = dp_derive_end(batch, true);
	}
	SPI_finish();
	dp_owner_end(&self);
	PG_RETURN_INT64(written);
}

/*
 * _subset_identity(rel, name, member) -> bson
 */
DP_FUNCTION(dp_subset_identity);
Datum
dp_subset_identity(PG_FUNCTION_ARGS)
{
	DpDecl *decl = dp_decl_find(PG_GETARG_OID(0), "subset", text_to_cstring(PG_GETARG_TEXT_PP(1)));
	struct varlena *member = PG_GETARG_VARLENA_PP(2);
	DpBuilder b;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	append_identity(dp_derivation(decl)->state, &b, DP_DOC_DATA(member), DP_DOC_SIZE(member));
	dp_builder_end(&b);
	PG_RETURN_POINTER(dp_builder_finish_bson(&b));
}

/*
 * _subset_indexed(rel, name) -> boolean
 */
DP_FUNCTION(dp_subset_indexed);
Datum
dp_subset_indexed(PG_FUNCTION_ARGS)
{
	DpDecl *decl = dp_decl_find(PG_GETARG_OID(0), "subset", text_to_cstring(PG_GETARG_TEXT_PP(1)));

	PG_RETURN_BOOL(dp_subset_is_indexed(dp_derivation(decl)->state));
}
