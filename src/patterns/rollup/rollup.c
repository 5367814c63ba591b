/*
 * rollup.c
 *		The roll-up pattern: declarations, keys and the methods of its derivation
 *		(derive.h).
 */
#include "postgres.h"

#include "common/int.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/edit.h"
#include "bson/sqltime.h"
#include "kit/options.h"
#include "patterns/rollup/rollup.h"

static void rollup_open(DpDerivation *d);
static void rollup_take(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign);
static bool rollup_same(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after);
static bool rollup_changes(DpDerivation *d, DpGroup *group);
static struct varlena *rollup_apply(DpDerivation *d, DpGroup *group, struct varlena *doc);
static struct varlena *rollup_create(DpDerivation *d, DpGroup *group);
static void rollup_all_groups(DpDerivation *d, DpDeriveBatch *batch);

static void open_levels(DpRollup *r);
static void open_level(DpRollup *r, const DpValue *name, const char *zone);
static int level_compare(const void *a, const void *b);
static void add_row(DpRollup *r, DpGroup *group, const DpSourceRow *row, int sign);
static struct varlena *totals_into(DpRollup *r, DpAccumulation *g, struct varlena *doc);

static const DpOption options[] = {
	{ "name", DP_OPTION_TEXT, DP_REQUIRED },
	{ "fields", DP_OPTION_DOCUMENT, DP_REQUIRED },
	{ "group_by", DP_OPTION_PATHS, DP_REQUIRED },
	{ "time_field", DP_OPTION_PATH, DP_USED, DP_INTO(DpRollup, time) },
	{ "levels", DP_OPTION_TEXTS, 0, DP_INT_FROM(1) },
	{ "time_zone", DP_OPTION_TEXT, DP_REQUIRED, .with = "time_field" },
	{ "filter", DP_OPTION_FILTER },
	{ "order_by", DP_OPTION_ORDER },
	{ NULL }
};

static const DpDeriveMethods methods = { .main_on_source = true,
										 .open = rollup_open,
										 .take = rollup_take,
										 .same = rollup_same,
										 .reads_columns = true,
										 .changes = rollup_changes,
										 .apply = rollup_apply,
										 .create = rollup_create,
										 .all_groups = rollup_all_groups };

DP_DEFINE_PATTERN(rollup) = { .name = "rollup",
							  .whole_table = true,
							  .options = options,
							  .derive = &methods,
							  .repair_row = dp_rollup_repair_row,
							  .changes = dp_rollup_tree_changed };

/*
 * rollup_trigger(): the triggers of the pattern on the source and on the tree.
 */
DP_FUNCTION(dp_rollup_trigger);
Datum
dp_rollup_trigger(PG_FUNCTION_ARGS)
{
	return dp_derive_trigger(fcinfo, &dp_rollup_pattern);
}

/* ---------------------------------------------------------------- declarations */

DpRollup *
dp_rollup(DpDecl *decl)
{
	return dp_derivation(decl)->state;
}

/* Compiles a declaration. */
static void
rollup_open(DpDerivation *d)
{
	DpDecl *decl = d->decl;
	DpRollup *r = palloc0(sizeof(DpRollup));
	DpAccumulateOptions how = { 0 };
	DpValue fields;
	DpValue value;
	DpValue order_by;

	r->derivation = d;
	d->state = r;
	d->create_missing = true;
	d->drop_empty = true;
	d->guarded = true;
	d->source_column = dp_decl_text(decl, "doc_column");
	r->source = dp_source_open(d->source, d->source_column);
	d->source_column = r->source->doc_column;

	dp_options_read(decl, r);
	(void) dp_option_value(decl->options, "fields", DP_TYPE_DOCUMENT, &fields);
	if (dp_option_value(decl->options, "order_by", DP_TYPE_DOCUMENT, &order_by))
		how.order_by = &order_by;
	how.state = "_computed";
	how.name = decl->name;
	how.keep_rows = true;
	r->acc = dp_accumulators_compile(&fields, &how);
	r->need_key = dp_accumulators_need_key(r->acc);
	if (r->need_key)
		dp_source_require_key(r->source);

	if (dp_option_value(decl->options, "filter", DP_TYPE_DOCUMENT, &value))
		r->filter = dp_filter_compile(&value, DP_FILTER_DOCUMENT | DP_FILTER_IMMUTABLE, NULL);
	if (dp_option_value(decl->options, "group_by", DP_TYPE_ARRAY, &value))
	{
		DpIter iter;
		DpValue path;

		dp_iter_init_value(&iter, &value);
		while (dp_iter_next_value(&iter, &path))
		{
			if (path.type != DP_TYPE_STRING || r->ngroups == DP_ROLLUP_MAX_GROUPS)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("\"group_by\" must be at most %d paths", DP_ROLLUP_MAX_GROUPS)));
			r->groups[r->ngroups++] = dp_path_parse(DP_STRING_DATA(&path), DP_STRING_LEN(&path));
		}
	}

	if (r->time != NULL)
		open_levels(r);
	else
	{
		if (r->ngroups != 1)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
							errmsg("\"group_by\" must be the field with the node of the tree")));
		r->tree_link_id = dp_decl_text(decl, "second_link_id");
		if (r->tree_link_id != NULL)
		{
			r->tree = dp_link_side(r->tree_link_id, decl->target);
			dp_decl_depends(decl, r->tree);
		}
	}
}

/* Reads the levels, from the finest to the coarsest. */
static void
open_levels(DpRollup *r)
{
	DpDecl *decl = r->derivation->decl;
	char *zone = dp_decl_text(decl, "time_zone");
	DpValue levels;
	int i;

	if (dp_option_value(decl->options, "levels", DP_TYPE_ARRAY, &levels))
	{
		DpIter iter;
		DpValue name;

		dp_iter_init_value(&iter, &levels);
		while (dp_iter_next_value(&iter, &name))
			open_level(r, &name, zone);
	}
	if (r->nlevels == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"levels\" must not be empty")));
	qsort(r->levels, r->nlevels, sizeof(DpRollupLevel), level_compare);
	for (i = 0; i < r->nlevels; i++)
	{
		DpRollupLevel *level = &r->levels[i];
		int j;

		level->below = -1;
		for (j = 0; j < i; j++)
		{
			if (r->levels[j].width == level->width)
				ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
								errmsg("levels \"%s\" and \"%s\" have the same width",
									   r->levels[j].name, level->name)));
			if (dp_span_divides(&r->levels[j].span, &level->span))
				level->below = j;
		}
	}
}

/* Adds a level: the name of a unit, or an interval. */
static void
open_level(DpRollup *r, const DpValue *name, const char *zone)
{
	DpRollupLevel *level = &r->levels[r->nlevels];
	char *text;
	char *width;
	Interval *interval;

	if (name->type != DP_TYPE_STRING || r->nlevels == DP_ROLLUP_MAX_LEVELS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"levels\" must be at most %d units or intervals", DP_ROLLUP_MAX_LEVELS)));
	text = pnstrdup(DP_STRING_DATA(name), DP_STRING_LEN(name));
	if (strcmp(text, "quarter") == 0)
		width = "3 months";
	else
		width = text[0] >= 'a' && text[0] <= 'z' ? psprintf("1 %s", text) : text;
	interval =
		DatumGetIntervalP(DirectFunctionCall3(interval_in, CStringGetDatum(width),
											  ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
	dp_span_init(&level->span, interval, NULL, zone, zone != NULL ? strlen(zone) : 0);
	level->name = text;
	level->width = level->span.kind == DP_SPAN_MONTHS ? level->span.step * 30 * SECS_PER_DAY
													  : level->span.step / USECS_PER_SEC;
	if (level->width == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("level \"%s\" is shorter than a second", text)));
	r->nlevels++;
}

static int
level_compare(const void *a, const void *b)
{
	const DpRollupLevel *left = a;
	const DpRollupLevel *right = b;

	return (left->width > right->width) - (left->width < right->width);
}

/* ---------------------------------------------------------------- rows and keys */

bool
dp_rollup_row(DpRollup *r, const DpSourceRow *row, TimestampTz *t, DpValue *groups)
{
	const uint8 *data = DP_DOC_DATA(row->doc);
	uint32 size = DP_DOC_SIZE(row->doc);
	int i;

	if (r->time != NULL)
	{
		DpValue time;
		int64 ms;

		if (!dp_path_find(data, size, r->time, &time) || time.type != DP_TYPE_DATE)
			return false;
		ms = dp_get_int64(time.data) - DP_EPOCH_DAYS * DP_MS_PER_DAY;
		if (pg_mul_s64_overflow(ms, 1000, t) || !IS_VALID_TIMESTAMP(*t))
			return false;
	}
	for (i = 0; i < r->ngroups; i++)
	{
		if (!dp_path_find(data, size, r->groups[i], &groups[i]) ||
			groups[i].type == DP_TYPE_UNDEFINED)
		{
			groups[i].type = DP_TYPE_NULL;
			groups[i].len = 0;
			groups[i].data = NULL;
		}
	}
	if (r->time == NULL && (groups[0].type == DP_TYPE_NULL || groups[0].type == DP_TYPE_ARRAY ||
							groups[0].type == DP_TYPE_REGEX))
		return false;
	if (r->filter != NULL)
	{
		DpValue doc = dp_value_of_document(row->doc);

		return dp_filter_match(r->filter, &doc);
	}
	return true;
}

DpRollupGroup *
dp_rollup_group(DpGroup *group)
{
	if (group->state == NULL)
		group->state =
			MemoryContextAllocZero(dp_derive_memory(group->batch), sizeof(DpRollupGroup));
	return group->state;
}

void
dp_rollup_key_build(DpRollup *r, DpBuilder *b, int level, TimestampTz start, const DpValue *groups)
{
	int i;

	dp_builder_begin_document(b);
	if (r->levels[level].width <= PG_INT32_MAX)
		dp_builder_append_int32(b, "width", 5, (int32) r->levels[level].width);
	else
		dp_builder_append_int64(b, "width", 5, r->levels[level].width);
	dp_builder_begin_array_field(b, "group", 5);
	for (i = 0; i < r->ngroups; i++)
		dp_builder_append_value(b, NULL, 0, &groups[i]);
	dp_builder_end(b);
	dp_builder_append_date(b, "start", 5, start / 1000 + DP_EPOCH_DAYS * DP_MS_PER_DAY);
	dp_builder_end(b);
}

void
dp_rollup_key(DpRollup *r, const DpValue *key, DpRollupKey *out)
{
	DpValue width;
	DpValue start;

	out->level = -1;
	if (key->type == DP_TYPE_DOCUMENT &&
		dp_document_find(key->data, key->len, "width", 5, &width) &&
		(width.type == DP_TYPE_INT32 || width.type == DP_TYPE_INT64) &&
		dp_document_find(key->data, key->len, "group", 5, &out->group) &&
		out->group.type == DP_TYPE_ARRAY &&
		dp_document_find(key->data, key->len, "start", 5, &start) && start.type == DP_TYPE_DATE)
	{
		int64 ms = dp_get_int64(start.data) - DP_EPOCH_DAYS * DP_MS_PER_DAY;
		int64 seconds =
			width.type == DP_TYPE_INT32 ? dp_get_int32(width.data) : dp_get_int64(width.data);
		int i;

		for (i = 0; i < r->nlevels; i++)
		{
			if (r->levels[i].width == seconds && !pg_mul_s64_overflow(ms, 1000, &out->start) &&
				IS_VALID_TIMESTAMP(out->start) &&
				dp_span_start(&r->levels[i].span, out->start, &out->next) == out->start)
				out->level = i;
		}
	}
	if (out->level < 0 || dp_document_count(out->group.data, out->group.len) != r->ngroups)
		dp_corrupted("invalid key of a document of a roll-up");
}

struct varlena *
dp_rollup_head(DpRollup *r, const DpValue *key)
{
	DpBuilder b;
	struct varlena *doc;
	DpRollupKey parts;

	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	dp_builder_append_value(&b, "_id", 3, key);
	if (r->time != NULL)
	{
		DpRollupLevel *level;

		dp_rollup_key(r, key, &parts);
		level = &r->levels[parts.level];
		dp_builder_append_string(&b, "level", 5, level->name, strlen(level->name));
		dp_builder_append_date(&b, "start", 5, parts.start / 1000 + DP_EPOCH_DAYS * DP_MS_PER_DAY);
	}
	dp_builder_end(&b);
	doc = dp_builder_finish_bson(&b);
	if (r->time != NULL)
	{
		DpIter iter;
		DpValue value;
		int i = 0;

		dp_iter_init_value(&iter, &parts.group);
		while (i < r->ngroups && dp_iter_next_value(&iter, &value))
			doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), r->groups[i++], &value);
	}
	else
		doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), r->groups[0], key);
	return doc;
}

/* ---------------------------------------------------------------- methods */

/* Adds a row to a group's totals. */
static void
add_row(DpRollup *r, DpGroup *group, const DpSourceRow *row, int sign)
{
	DpRollupGroup *g = dp_rollup_group(group);
	DpValue doc = dp_value_of_document(row->doc);
	const char *key = NULL;
	uint32 keylen = 0;

	if (g->totals == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(dp_derive_memory(group->batch));

		g->totals = dp_accumulation_make(r->acc);
		MemoryContextSwitchTo(old);
	}
	if (r->need_key)
		key = dp_source_row_key(r->source, row->slot, &keylen);
	dp_accumulation_row(g->totals, &doc, key, keylen, sign);
}

/* Adds or subtracts a row of the source. */
static void
rollup_take(DpDerivation *d, DpDeriveBatch *batch, const DpSourceRow *row, int sign)
{
	DpRollup *r = d->state;
	DpValue groups[DP_ROLLUP_MAX_GROUPS];
	TimestampTz t = 0;
	int i;

	if (!dp_rollup_row(r, row, &t, groups))
		return;
	if (r->time != NULL)
	{
		for (i = 0; i < r->nlevels; i++)
		{
			TimestampTz start = dp_span_start(&r->levels[i].span, t, NULL);
			DpBuilder b;
			DpValue key;
			DpGroup *group;

			dp_builder_init_value(&b, 0);
			dp_rollup_key_build(r, &b, i, start, groups);
			key = dp_builder_view(&b, DP_TYPE_DOCUMENT);
			group = dp_derive_group(batch, d, &key);
			dp_builder_free(&b);
			if (!group->recompute)
				add_row(r, group, row, sign);
		}
	}
	else
	{
		DpGroup *group = dp_derive_group(batch, d, &groups[0]);
		DpRollupGroup *g;

		dp_rollup_find_above(r, batch, group);
		g = group->state;
		if (!group->recompute)
			add_row(r, group, row, sign);
		for (i = 0; i < g->nabove; i++)
		{
			g->above[i]->changed = true;
			if (!g->above[i]->recompute)
				add_row(r, g->above[i], row, sign);
		}
	}
}

/*
 * Returns whether two versions of a row are equal for the totals: the document, and the key if
 * rows are distinguished by it.
 */
static bool
rollup_same(DpDerivation *d, const DpSourceRow *before, const DpSourceRow *after)
{
	DpRollup *r = d->state;
	const char *key;
	char *before_key;
	uint32 keylen;
	uint32 before_keylen;

	if (before->doc == NULL || after->doc == NULL || !dp_same_bytes(before->doc, after->doc))
		return false;
	if (!r->need_key)
		return true;
	key = dp_source_row_key(r->source, before->slot, &before_keylen);
	before_key =
		memcpy(palloc(before_keylen + 1), key, before_keylen); /* the next one replaces it */
	key = dp_source_row_key(r->source, after->slot, &keylen);
	return keylen == before_keylen && memcmp(key, before_key, keylen) == 0;
}

/* Returns whether added and removed rows do not cancel out. */
static bool
rollup_changes(DpDerivation *d, DpGroup *group)
{
	DpRollupGroup *g = group->state;

	return group->recompute ||
		   (g != NULL && g->totals != NULL && dp_accumulation_changes(g->totals));
}

/* Returns the document with these totals; NULL if they are of no rows. */
static struct varlena *
totals_into(DpRollup *r, DpAccumulation *g, struct varlena *doc)
{
	DpValue target = dp_value_of_document(doc);
	struct varlena *result;

	if (dp_accumulation_rows(g) <= 0)
		return NULL;
	result = dp_accumulation_write(g, &target);
	return result != NULL ? result : doc;
}

/* Returns the group's current document. */
static struct varlena *
rollup_apply(DpDerivation *d, DpGroup *group, struct varlena *doc)
{
	DpRollup *r = d->state;
	DpRollupGroup *state = group->state;
	DpAccumulation *g;
	DpValue target = dp_value_of_document(doc);
	struct varlena *result;

	if (group->recompute && group->emptied)
		return NULL;
	g = dp_accumulation_make(r->acc);
	if (state != NULL && state->totals != NULL && !group->recompute)
	{
		dp_accumulation_add(g, state->totals);
		if (dp_accumulation_load(g, &target) == DP_ACCUMULATION_WHOLE)
		{
			result = totals_into(r, g, doc);
			dp_accumulation_free(g);
			return result;
		}
	}
	if (!group->locked)
	{
		group->need_lock = true;
		dp_accumulation_free(g);
		return doc;
	}
	dp_accumulation_free(g);
	dp_derive_reading(group);
	return totals_into(r, dp_rollup_evaluate(r, group), doc);
}

/* Creates a document for a group. */
static struct varlena *
rollup_create(DpDerivation *d, DpGroup *group)
{
	DpRollup *r = d->state;
	DpRollupGroup *state = group->state;
	DpAccumulation *g = NULL;
	struct varlena *result;

	if (group->recompute && group->emptied)
		return NULL;
	if (!group->recompute && state != NULL && state->totals != NULL)
	{
		/* without a document there were no other rows */
		DpValue nothing = { (const uint8 *) "\5\0\0\0\0", 5, DP_TYPE_DOCUMENT };
		struct varlena *empty;

		g = dp_accumulation_make(r->acc);
		empty = dp_accumulation_write(g, &nothing);
		if (empty != NULL)
			nothing = dp_value_of_document(empty);
		dp_accumulation_add(g, state->totals);
		if (dp_accumulation_load(g, &nothing) != DP_ACCUMULATION_WHOLE)
		{
			dp_accumulation_free(g);
			g = NULL;
		}
	}
	if (g == NULL)
	{
		dp_derive_reading(group);
		g = dp_rollup_evaluate(r, group);
	}
	result = dp_accumulation_rows(g) > 0 ? totals_into(r, g, dp_rollup_head(r, &group->key)) : NULL;
	return result;
}

/* Adds all groups of the source. */
static void
rollup_all_groups(DpDerivation *d, DpDeriveBatch *batch)
{
	dp_rollup_read_all(d->state, batch, true, true);
}
