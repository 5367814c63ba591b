/*
 * computed.c
 *		The computed pattern: fields of a document that are totals of the rows of
 *		another table.
 *
 * Methods of the derivation (derive.h): rows are added to totals of groups
 * (accumulate.h), and totals written to documents.  scan.c reads a group's rows.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "kit/adopt.h"
#include "kit/options.h"
#include "mql/sort_key.h"
#include "patterns/computed/computed.h"

static void computed_open(DpDerivation *d);
static void computed_take(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign);
static bool computed_same(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after);
static bool computed_changes(DpDerivation *d, DpGroup *group);
static struct varlena *computed_apply(DpDerivation *d, DpGroup *group, struct varlena *doc);
static struct varlena *computed_create(DpDerivation *d, DpGroup *group);
static struct varlena *
computed_protect(DpDerivation *d, struct varlena *before, struct varlena *after);
static bool computed_has_user_data(DpDerivation *d, struct varlena *before, struct varlena *after);
static void
computed_move_user_data(DpDerivation *d, const DpValue *key, struct varlena *doc, bool inserted);
static const char *computed_claim(DpComputed *c, struct varlena *doc);
static void computed_enqueue(DpDerivation *d, DpGroup *group);
static void computed_all_groups(DpDerivation *d, DpDeriveBatch *batch);

static const char *row_key(DpComputed *c, const DpSourceRow *row, uint32 *len);

static const DpOption options[] = {
	{ "on_field", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpComputed, on_field) },
	{ "fields", DP_OPTION_DOCUMENT, DP_REQUIRED | DP_ALTERABLE, DP_INT_FROM(1) },
	{ "target_field", DP_OPTION_PATH, DP_INTO(DpComputed, target),
	  DP_TEXT_INTO(DpComputed, target_field) },
	{ "filter", DP_OPTION_FILTER, DP_ALTERABLE },
	{ "order_by", DP_OPTION_ORDER, DP_ALTERABLE },
	{ "create_missing", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE,
	  DP_INTO(DpComputed, create_missing) },
	{ "mode", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE,
	  DP_WORDS("immediate", "deferred", "on_read"), DP_INTO(DpComputed, mode) },
	{ "view", DP_OPTION_TEXT }, /* for mode on_read */
	{ NULL }
};

static const DpDeriveMethods methods = { .main_on_source = false,
										 .open = computed_open,
										 .take = computed_take,
										 .same = computed_same,
										 .changes = computed_changes,
										 .apply = computed_apply,
										 .create = computed_create,
										 .protect = computed_protect,
										 .has_user_data = computed_has_user_data,
										 .move_user_data = computed_move_user_data,
										 .enqueue = computed_enqueue,
										 .all_groups = computed_all_groups };

DP_DEFINE_PATTERN(computed) = { .name = "computed",
								.waiting = "second_link_id",
								.adopt_hint = "Insert rows into {source} that give them.",
								.options = options,
								.derive = &methods };

/*
 * computed_trigger(): the triggers of the pattern, on both tables.
 */
DP_FUNCTION(dp_computed_trigger);
Datum
dp_computed_trigger(PG_FUNCTION_ARGS)
{
	return dp_derive_trigger(fcinfo, &dp_computed_pattern);
}

/*
 * Compiles the fields of a declaration.
 */
DpAccumulators *
dp_computed_compile(struct varlena *options)
{
	DpAccumulateOptions how = { 0 };
	DpValue fields;
	DpValue order_by;
	DpValue value;

	if (!dp_option_value(options, "fields", DP_TYPE_DOCUMENT, &fields))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"fields\" must be a document of accumulators")));
	if (dp_option_value(options, "order_by", DP_TYPE_DOCUMENT, &order_by))
		how.order_by = &order_by;
	if (dp_option_value(options, "filter", DP_TYPE_DOCUMENT, &value))
		(void) dp_filter_compile(&value, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
	how.state = "_computed";
	how.name = "";
	if (dp_option_value(options, "name", DP_TYPE_STRING, &value))
		how.name = pnstrdup(DP_STRING_DATA(&value), DP_STRING_LEN(&value));
	return dp_accumulators_compile(&fields, &how);
}

/* Compiles a declaration. */
static void
computed_open(DpDerivation *d)
{
	DpDecl *decl = d->decl;
	DpComputed *c = palloc0(sizeof(DpComputed));
	DpValue value;

	c->derivation = d;
	dp_options_read(decl, c);
	if (dp_option_value(decl->options, "filter", DP_TYPE_DOCUMENT, &value))
		c->filter = dp_filter_compile(&value, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
	c->acc = dp_computed_compile(decl->options);
	c->need_key = dp_accumulators_need_key(c->acc);
	c->on_read = c->mode == 2;

	/* a collection's key is the _id */
	if (c->target_field != NULL &&
		!(strcmp(c->target_field, "_id") == 0 && decl->nkeys == 1 &&
		  strcmp(decl->keys[0].name, "_id") == 0 && decl->keys[0].type == dp_types()->bson_value))
		d->link = c->target;
	d->create_missing = c->create_missing;
	d->deferred = c->mode == 1;
	d->state = c;
	c->id_path = dp_path_parse("_id", 3);
	c->plan_ids = palloc0(dp_accumulators_count(c->acc) + 2);
	if (!OidIsValid(d->source))
		return;
	c->source = dp_source_open(d->source, dp_decl_text(decl, "source_doc_column"));
	d->source_column = c->source->doc_column;
	if (c->need_key)
		dp_source_require_key(c->source);
}

/* Returns the group's totals, created when first used. */
static DpAccumulation *
group_totals(DpComputed *c, DpGroup *group)
{
	if (group->state == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(dp_derive_memory(group->batch));

		group->state = dp_accumulation_make(c->acc);
		MemoryContextSwitchTo(old);
	}
	return group->state;
}

/* Returns whether a row belongs to a group, and the group. */
bool
dp_computed_row_counts(DpComputed *c, const DpSourceRow *row, DpValue *link)
{
	if (!dp_path_find(DP_DOC_DATA(row->doc), DP_DOC_SIZE(row->doc), c->on_field, link) ||
		link->type == DP_TYPE_NULL || link->type == DP_TYPE_UNDEFINED)
		return false;
	if (c->filter != NULL)
	{
		DpValue doc = dp_value_of_document(row->doc);

		return dp_filter_match(c->filter, &doc);
	}
	return true;
}

/*
 * Returns the bytes that order rows with equal sort keys, or NULL if their order does not matter.
 */
static const char *
row_key(DpComputed *c, const DpSourceRow *row, uint32 *len)
{
	*len = 0;
	if (!c->need_key)
		return NULL;
	return dp_source_row_key(c->source, row->slot, len);
}

/* Adds or subtracts a row of the source. */
static void
computed_take(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign)
{
	DpComputed *c = d->state;
	DpValue link;
	DpGroup *group;
	DpValue doc;
	const char *key;
	uint32 keylen;

	if (!dp_computed_row_counts(c, row, &link))
		return;
	group = dp_derive_group(batch, d, &link);
	if (d->deferred || group->recompute)
		return;
	key = row_key(c, row, &keylen);
	doc = dp_value_of_document(row->doc);
	dp_accumulation_row(group_totals(c, group), &doc, key, keylen, sign);
}

/*
 * Returns whether two versions of a row are equal for all fields, so that the update changes no
 * document. Only makes cheap comparisons; a group whose totals stay equal is found by
 * dp_accumulation_changes().
 */
static bool
computed_same(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after)
{
	DpComputed *c = d->state;
	DpValue one;
	DpValue other;

	return !dp_computed_row_counts(c, before, &one) && !dp_computed_row_counts(c, after, &other);
}

/* Returns whether added and removed rows do not cancel out. */
static bool
computed_changes(DpDerivation *d, DpGroup *group)
{
	return group->state != NULL && dp_accumulation_changes(group->state);
}

/* Returns the target document with current totals. */
static struct varlena *
computed_apply(DpDerivation *d, DpGroup *group, struct varlena *doc)
{
	DpComputed *c = d->state;
	DpAccumulation *g = group->state;
	DpValue target = dp_value_of_document(doc);
	struct varlena *result;
	bool whole = group->recompute;

	if (group->recompute)
	{
		if (!group->locked && !group->emptied)
		{
			group->need_lock = true;
			return doc;
		}
		g = dp_accumulation_make(c->acc);
		if (!group->emptied)
		{
			dp_derive_reading(group);
			dp_computed_scan(c, g, &group->key, true);
		}
	}
	else
	{
		DpAccumulationResult loaded;

		/* loaded for one document, once */
		if (!group->locked || group->multiple)
		{
			g = dp_accumulation_make(c->acc);
			dp_accumulation_add(g, group->state);
		}
		loaded = dp_accumulation_load(g, &target);
		if (loaded != DP_ACCUMULATION_WHOLE)
		{
			if (!group->locked)
			{
				group->need_lock = true;
				dp_accumulation_free(g);
				return doc;
			}
			dp_derive_reading(group);
			if (loaded == DP_ACCUMULATION_SEARCH)
				dp_computed_search(c, g, &group->key);
			else
			{
				dp_computed_scan(c, g, &group->key, true);
				whole = true;
			}
		}
	}

	result = dp_accumulation_write(g, &target);
	if (g != group->state)
		dp_accumulation_free(g);
	if (result == NULL)
		return doc;
	if (dp_held_lost(d->decl, doc, result, NIL) != NULL)
	{
		struct varlena *updated = NULL;

		/* a total from before the declaration is kept; a correct one is ours from now on */
		if (!whole && !group->locked)
		{
			group->need_lock = true;
			return doc;
		}
		if (!whole)
		{
			target = dp_value_of_document(result);
			g = dp_accumulation_make(c->acc);
			dp_derive_reading(group);
			dp_computed_scan(c, g, &group->key, true);
			updated = dp_accumulation_write(g, &target);
			dp_accumulation_free(g);
		}
		if (whole || (updated != NULL && dp_held_lost(d->decl, result, updated, NIL) != NULL))
			return doc;
	}
	return result;
}

/* Returns a document for a group that has rows but no target. */
static struct varlena *
computed_create(DpDerivation *d, DpGroup *group)
{
	DpComputed *c = d->state;
	DpAccumulation *g = dp_accumulation_make(c->acc);
	struct varlena *doc = dp_document_to_varlena((const uint8 *) "\5\0\0\0\0", 5);
	DpValue target;
	struct varlena *result = NULL;

	/* not a valid _id */
	if (d->link == NULL && (group->key.type == DP_TYPE_ARRAY || group->key.type == DP_TYPE_REGEX))
		return NULL;
	dp_derive_reading(group);
	if (dp_computed_scan(c, g, &group->key, true))
	{
		if (d->link != NULL)
			doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), d->link, &group->key);
		else
			doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), c->id_path, &group->key);
		target = dp_value_of_document(doc);
		result = dp_accumulation_write(g, &target);
		if (result == NULL)
			result = doc;
	}
	dp_accumulation_free(g);
	return result;
}

/* Returns the new document with the old one's totals, or with those of a group without rows. */
static struct varlena *
computed_protect(DpDerivation *d, struct varlena *before, struct varlena *after)
{
	DpComputed *c = d->state;
	DpValue changed = dp_value_of_document(after);
	DpValue kept;
	struct varlena *result;

	if (before != NULL)
	{
		kept = dp_value_of_document(before);
		result = dp_accumulators_keep(c->acc, &kept, &changed);
	}
	else
	{
		DpAccumulation *g = dp_accumulation_make(c->acc);

		result = dp_accumulation_write(g, &changed);
		dp_accumulation_free(g);
	}
	return result != NULL ? result : after;
}

/*
 * Returns whether a new document contains totals. UPDATE may write an old copy or totals of an
 * application, which the source has too.
 */
static bool
computed_has_user_data(DpDerivation *d, struct varlena *before, struct varlena *after)
{
	return before == NULL && computed_claim(d->state, after) != NULL;
}

/* Returns a field in which a document has another total than that of no rows, or NULL. */
static const char *
computed_claim(DpComputed *c, struct varlena *doc)
{
	DpAccumulation *g = dp_accumulation_make(c->acc);
	DpValue given = dp_value_of_document(doc);
	struct varlena *without = dp_accumulation_write(g, &given);
	const char *claim = NULL;

	if (without != NULL)
	{
		DpValue empty = dp_value_of_document(without);

		claim = dp_accumulators_claim(c->acc, &empty, &given);
	}
	dp_accumulation_free(g);
	return claim;
}

/* A total over no rows exists nowhere else. */
static void
computed_move_user_data(DpDerivation *d, const DpValue *key, struct varlena *doc, bool inserted)
{
	DpComputed *c = d->state;
	const char *claim = computed_claim(c, doc);
	DpAccumulation *g;
	bool any;

	if (claim == NULL)
		return;
	g = dp_accumulation_make(c->acc);
	SPI_connect();
	CommandCounterIncrement();
	any = key != NULL && dp_computed_scan(c, g, key, true);
	SPI_finish();
	dp_accumulation_free(g);
	if (!any)
		ereport(
			ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg(
				 "field \"%s\" of table \"%s\" is computed from table \"%s\", which has no rows for the document",
				 claim, dp_relation_name(d->target), dp_relation_name(d->source)),
			 errhint("Insert the rows into table \"%s\" first, or leave the field out.",
					 dp_relation_name(d->source))));
}

/* Queues the group (deferred mode). */
static void
computed_enqueue(DpDerivation *d, DpGroup *group)
{
	dp_computed_enqueue(d->state, &group->key);
}

/* Adds all groups that have rows. */
static void
computed_all_groups(DpDerivation *d, DpDeriveBatch *batch)
{
	dp_computed_each_group(d->state, batch);
}
