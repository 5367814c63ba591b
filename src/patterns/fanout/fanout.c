/*
 * fanout.c
 *		The fan-out pattern: the methods of its derivation.
 *
 * The groups of a statement on posts are the authors of its posts; after all rows
 * have been read, authors are locked, and their posts are added to the walls of
 * their followers.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "bson/builder.h"
#include "bson/catalog.h"
#include "bson/compare.h"
#include "kit/derive/batch.h"
#include "kit/link.h"
#include "kit/options.h"
#include "patterns/fanout/fanout.h"

/* Argument for followers */
typedef struct Spread
{
	DpFanout *f;
	DpDeriveBatch *batch;
	DpFanoutPosts *posts;
	List *readers; /* copies of the values */
	MemoryContext context;
} Spread;

static void fanout_open(DpDerivation *d);
static void fanout_take(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign);
static bool fanout_same(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after);
static void fanout_gather(DpDerivation *d, DpDeriveBatch *batch);
static bool fanout_changes(DpDerivation *d, DpGroup *group);
static bool fanout_concerns(DpDerivation *d, DpGroup *group, struct varlena *doc);
static struct varlena *fanout_apply(DpDerivation *d, DpGroup *group, struct varlena *doc);
static struct varlena *fanout_create(DpDerivation *d, DpGroup *group);
static void fanout_all_groups(DpDerivation *d, DpDeriveBatch *batch);
static void row_key(DpDecl *decl, TupleTableSlot *slot, DpKey *key);
static void author_spread(DpFanout *f, DpDeriveBatch *batch, DpFanoutAuthor *author);
static void spread_keep(void *arg, const DpValue *value);

static const DpOption options[] = {
	{ "name", DP_OPTION_TEXT, DP_REQUIRED },
	{ "author", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpFanout, author) },
	{ "follower", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpFanout, follower) },
	{ "followee", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpFanout, followee) },
	{ "keep", DP_OPTION_INT, DP_REQUIRED, DP_BETWEEN(1, 10000), DP_INTO(DpFanout, keep) },
	{ "celebrity_threshold", DP_OPTION_INT, DP_REQUIRED, DP_LONG_FROM(0),
	  DP_INTO(DpFanout, threshold) },
	{ "order_by", DP_OPTION_ORDER },
	{ "walls_made", DP_OPTION_BOOL },
	{ NULL }
};

static const DpDeriveMethods methods = { .main_on_source = true,
										 .open = fanout_open,
										 .take = fanout_take,
										 .same = fanout_same,
										 .reads_columns = true,
										 .gather = fanout_gather,
										 .changes = fanout_changes,
										 .concerns = fanout_concerns,
										 .apply = fanout_apply,
										 .create = fanout_create,
										 .all_groups = fanout_all_groups };

DP_DEFINE_PATTERN(fanout) = { .name = "fanout",
							  .whole_table = true,
							  .options = options,
							  .word = dp_fanout_word,
							  .derive = &methods,
							  .repair_row = dp_fanout_repair_row,
							  .changes = dp_fanout_follows_changed };

/*
 * fanout_trigger(): the triggers of the pattern on posts and follows.
 */
DP_FUNCTION(dp_fanout_trigger);
Datum
dp_fanout_trigger(PG_FUNCTION_ARGS)
{
	return dp_derive_trigger(fcinfo, &dp_fanout_pattern);
}

/* ---------------------------------------------------------------- declarations */

/* Returns the declaration's fan-out. */
DpFanout *
dp_fanout(DpDecl *decl)
{
	return dp_derivation(decl)->state;
}

/* Reads a declaration. */
static void
fanout_open(DpDerivation *d)
{
	DpDecl *decl = d->decl;
	DpFanout *f = palloc0(sizeof(DpFanout));
	DpValue value;
	int i;

	f->derivation = d;
	d->state = f;
	d->create_missing = true;
	d->drop_empty = true;
	d->guarded = true;
	d->source_column = decl->doc_column;
	f->posts = dp_source_open(d->source, decl->doc_column);
	dp_options_read(decl, f);
	if (dp_option_value(decl->options, "order_by", DP_TYPE_DOCUMENT, &value))
	{
		f->order_by = dp_document_to_varlena(value.data, value.len);
		value = dp_value_of_document(f->order_by);
		f->sort = dp_sort_spec_compile(&value);
	}
	f->key_is_value = decl->nkeys == 1 && decl->keys[0].type == dp_types()->bson_value;
	for (i = 0; i < decl->nkeys; i++)
	{
		TypeCacheEntry *type = lookup_type_cache(decl->keys[i].type, TYPECACHE_CMP_PROC_FINFO);

		if (!OidIsValid(type->cmp_proc_finfo.fn_oid))
			ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
							errmsg("primary key column \"%s\" has a type that cannot be sorted",
								   decl->keys[i].name)));
		fmgr_info_copy(&f->keys[i].cmp, &type->cmp_proc_finfo, d->context);
		f->keys[i].collation = decl->keys[i].collation;
	}
	f->follow_link_id = dp_decl_text(decl, "second_link_id");
	if (f->follow_link_id != NULL)
		f->follows = dp_link_side(f->follow_link_id, decl->target);
	if (OidIsValid(f->follows))
		f->followers = dp_source_open(f->follows, dp_decl_text(decl, "source_doc_column"));
}

/* ---------------------------------------------------------------- groups */

DpGroup *
dp_fanout_author_group(DpFanout *f, DpDeriveBatch *batch, const DpValue *author)
{
	DpBuilder b;
	DpValue key;
	DpGroup *group;

	dp_builder_init_value(&b, 0);
	dp_builder_begin_array(&b);
	dp_builder_append_value(&b, NULL, 0, author);
	dp_builder_end(&b);
	key = dp_builder_view(&b, DP_TYPE_ARRAY);
	group = dp_derive_group(batch, f->derivation, &key);
	dp_builder_free(&b);
	return group;
}

bool
dp_fanout_is_author(const DpGroup *group)
{
	return group->key.type == DP_TYPE_ARRAY;
}

/* Returns the batch's state of an author. */
DpFanoutAuthor *
dp_fanout_author(DpGroup *group)
{
	if (group->state == NULL)
	{
		DpFanoutAuthor *author =
			MemoryContextAllocZero(dp_derive_memory(group->batch), sizeof(DpFanoutAuthor));

		if (!dp_array_element(group->key.data, group->key.len, 0, &author->author))
			elog(ERROR, "a group of an author has none");
		group->state = author;
	}
	return group->state;
}

/* Returns the batch's state of a wall. */
DpFanoutWall *
dp_fanout_wall(DpGroup *group)
{
	if (group->state == NULL)
		group->state = MemoryContextAllocZero(dp_derive_memory(group->batch), sizeof(DpFanoutWall));
	return group->state;
}

bool
dp_fanout_name(const DpPath *path, struct varlena *doc, DpValue *author)
{
	return dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, author) &&
		   author->type != DP_TYPE_NULL && author->type != DP_TYPE_UNDEFINED;
}

/* ---------------------------------------------------------------- posts */

/* Returns the primary key of a row that a statement wrote. */
static void
row_key(DpDecl *decl, TupleTableSlot *slot, DpKey *key)
{
	int i;

	key->n = decl->nkeys;
	for (i = 0; i < decl->nkeys; i++)
	{
		bool isnull;

		key->values[i] = slot_getattr(slot, decl->keys[i].attnum, &isnull);
	}
}

/* Adds a post that was inserted or deleted; its final state is read after all rows. */
static void
fanout_take(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign)
{
	DpFanout *f = d->state;
	DpValue author;
	DpKey key;
	DpFanoutAuthor *a;
	MemoryContext old;

	if (!dp_fanout_name(f->author, row->doc, &author))
		return;
	a = dp_fanout_author(dp_fanout_author_group(f, batch, &author));
	row_key(d->decl, row->slot, &key);
	old = MemoryContextSwitchTo(dp_derive_memory(batch));
	a->keys = lappend(a->keys, dp_key_to_value(d->decl, &key));
	MemoryContextSwitchTo(old);
}

/* Returns whether the entry of a post on walls is unchanged. */
static bool
fanout_same(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after)
{
	DpFanout *f = d->state;
	DpFanoutEntry entry[2];
	DpKey key[2];
	bool has[2];

	row_key(d->decl, before->slot, &key[0]);
	row_key(d->decl, after->slot, &key[1]);
	has[0] = dp_fanout_entry(f, before->doc, &key[0], &entry[0]);
	has[1] = dp_fanout_entry(f, after->doc, &key[1], &entry[1]);
	return has[0] == has[1] && (!has[0] || dp_value_identical(&entry[0].doc, &entry[1].doc));
}

/*
 * Called after all posts of the statement were added: locks their authors and passes the posts to
 * the walls of followers.
 */
static void
fanout_gather(DpDerivation *d, DpDeriveBatch *batch)
{
	DpFanout *f = d->state;
	DpGroup **authors =
		MemoryContextAllocExtended(batch->context, sizeof(DpGroup *) * batch->ngroups,
								   MCXT_ALLOC_HUGE);
	DpGroup *group;
	int n = 0;
	int i;

	for (group = batch->groups; group != NULL; group = group->next)
	{
		if (group->derivation == d && dp_fanout_is_author(group) &&
			!dp_fanout_author(group)->gathered)
			authors[n++] = group;
	}
	if (n > 0 && f->followers == NULL && f->follow_link_id != NULL)
		dp_link_require_owner(f->follow_link_id, false, f->derivation->decl->target);
	if (n == 0 || f->followers == NULL)
		return;
	dp_derive_lock_groups(authors, n, RowExclusiveLock);
	for (i = 0; i < n; i++)
	{
		DpFanoutAuthor *author = dp_fanout_author(authors[i]);

		CHECK_FOR_INTERRUPTS();
		author->gathered = true;
		author_spread(f, batch, author);
	}
}

/* Passes the written posts of an author to the walls of followers. */
static void
author_spread(DpFanout *f, DpDeriveBatch *batch, DpFanoutAuthor *author)
{
	Spread spread = { .f = f, .batch = batch, .context = batch->context };
	DpFanoutPosts *posts;
	MemoryContext old;
	ListCell *lc;
	int n = 0;
	int i;

	if (dp_fanout_followers(f, &author->author, f->threshold + 1, spread_keep, &spread) >
			f->threshold ||
		spread.readers == NIL)
		return;
	old = MemoryContextSwitchTo(batch->context);
	posts = palloc0(sizeof(DpFanoutPosts));
	posts->keys = palloc(sizeof(DpValue) * list_length(author->keys));
	foreach(lc, author->keys)
	{
		DpValue key = dp_value_of_varlena(lfirst(lc));
		DpFanoutEntry entry;

		CHECK_FOR_INTERRUPTS();
		posts->keys[posts->nkeys++] = key;
		if (dp_fanout_post(f, &key, &entry) &&
			dp_value_compare(&entry.author, &author->author) == 0)
			dp_fanout_append(&posts->now, &entry);
	}

	/* skip entries that no wall can show */
	dp_fanout_sort(f, &posts->now);
	for (i = 0; i < posts->now.n; i++)
	{
		/* an edited post is listed twice */
		if (n == 0 || dp_value_compare(&posts->now.list[n - 1].key, &posts->now.list[i].key) != 0)
			posts->now.list[n++] = posts->now.list[i];
	}
	posts->now.n = Min(n, f->keep);
	foreach(lc, spread.readers)
	{
		DpFanoutWall *wall = dp_fanout_wall(dp_derive_group(batch, f->derivation, lfirst(lc)));

		wall->posts = lappend(wall->posts, posts);
	}
	MemoryContextSwitchTo(old);
}

/* Adds a follower. */
static void
spread_keep(void *arg, const DpValue *value)
{
	Spread *spread = arg;
	MemoryContext old = MemoryContextSwitchTo(spread->context);
	DpValue *copy = palloc(sizeof(DpValue));

	*copy = dp_value_of_varlena(dp_value_to_varlena(value));
	spread->readers = lappend(spread->readers, copy);
	MemoryContextSwitchTo(old);
}

/* ---------------------------------------------------------------- walls */

/* Groups of authors only exist for their locks. */
static bool
fanout_changes(DpDerivation *d, DpGroup *group)
{
	return !dp_fanout_is_author(group);
}

static bool
fanout_concerns(DpDerivation *d, DpGroup *group, struct varlena *doc)
{
	return group->recompute || !dp_fanout_wall(group)->only_missing;
}

/* Returns the current wall. */
static struct varlena *
fanout_apply(DpDerivation *d, DpGroup *group, struct varlena *doc)
{
	DpFanout *f = d->state;
	DpFanoutWall *wall = dp_fanout_wall(group);
	DpFanoutEntries entries;
	List *merged = NIL;
	struct varlena *result;

	if (wall->unfollowed && !group->recompute)
		return NULL;
	if (!group->recompute)
	{
		result = dp_fanout_change(f, group, doc, &merged);
		if (result != NULL)
			return result;
	}
	if (!group->locked)
	{
		group->need_lock = true;
		return doc;
	}
	CommandCounterIncrement();
	if (group->recompute && group->emptied)
	{
		/* without posts, readers keep their follows */
		dp_fanout_parse(f, doc, &entries, &merged);
		result = dp_fanout_build(f, &group->key, &entries, 0, merged);
	}
	else
		result = dp_fanout_compute(f, &group->key, group->recompute ? NULL : &merged, true);
	if (result != NULL && dp_same_bytes(result, doc))
		return doc;
	return result;
}

/* Creates a wall. */
static struct varlena *
fanout_create(DpDerivation *d, DpGroup *group)
{
	CommandCounterIncrement();
	return dp_fanout_compute(d->state, &group->key, NULL, true);
}

/* Adds all readers. */
typedef struct AllWalls
{
	DpDeriveBatch *batch;
	DpDerivation *d;
} AllWalls;

static void
everybody_group(void *arg, const DpValue *value)
{
	AllWalls *all = arg;

	dp_derive_group(all->batch, all->d, value)->recompute = true;
}

static void
fanout_all_groups(DpDerivation *d, DpDeriveBatch *batch)
{
	AllWalls all = { batch, d };

	if (((DpFanout *) d->state)->followers == NULL)
		return;
	SPI_connect();
	dp_fanout_readers(d->state, everybody_group, &all);
	SPI_finish();
}
