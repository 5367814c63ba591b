/*
 * fields.c
 *		Hot and cold fields: rarely read fields are in a side table.
 *
 * The side table, <table>_<name>_cold, has a row for each document with any of the
 * fields: the document's key and {path: value, ...}.  A row's lock also protects
 * its cold fields.
 *
 * AFTER INSERT or UPDATE, for each row: moves cold fields in the document to the
 * side table and writes the row again.  Missing cold fields stay, so that saving a
 * row that was read from the table loses none; the view <table>_whole replaces
 * whole documents.
 *
 * AFTER UPDATE, DELETE or TRUNCATE, for each statement: moves or deletes cold
 * fields with their documents.  A statement may exchange keys, so all are removed
 * before any is inserted.
 *
 * BEFORE UPDATE, for each row: separates changes of users' triggers from the
 * pattern's own writes, and records changed keys, because a row that moves to
 * another partition is afterwards deleted and inserted.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "bson/builder.h"
#include "bson/edit.h"
#include "bson/limits.h"
#include "bson/reader.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/rows/by_statement.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/trigger.h"
#include "mql/collection_split.h"

#define PATTERN "subset_fields"

typedef struct Cold
{
	DpDecl *decl;
	int n;
	DpPath **paths;
	char **names; /* their texts */
	char *link_id;
	Oid side; /* InvalidOid until it is found */
} Cold;

/* Flags of a move */
#define MOVED_WHOLE 0x01   /* a whole document was written: former cold fields are obsolete */
#define MOVED_WRITTEN 0x02 /* written while its cold fields were still under another key */

static Cold *cold_of(DpDecl *decl);
static Oid side_of(Cold *c);
static HeapTuple cold_before(Cold *c, TriggerData *trigdata);
static void cold_after(Cold *c, TriggerData *trigdata);
static void *cold_leave(DpDecl *decl, const DpMove *move);
static void cold_arrive(DpDecl *decl, const DpMove *move, void *cold);
static void cold_correct(DpDecl *decl, const DpMove *move);
static void cold_drop_orphans(DpDecl *decl);
static bool cold_present(const Cold *c, struct varlena *doc);
static struct varlena *cold_extract(const Cold *c, struct varlena *doc, struct varlena **rest);
static struct varlena *cold_join(const Cold *c, struct varlena *doc, struct varlena *cold);
static bool path_taken(const Cold *c, struct varlena *doc, const DpPath *path);
static void cold_prune(Cold *c, struct varlena *doc, const DpKey *key);
static bool cold_repair_row(Cold *c, const DpKey *key);
static struct varlena *row_lock(Cold *c, const DpKey *key, bool *is_null);
static void row_write(Cold *c, const DpKey *key, struct varlena *doc);
static struct varlena *side_read(Cold *c, const DpKey *key, bool latest);
static void side_put(Cold *c, const DpKey *key, struct varlena *cold);
static void side_drop(Cold *c, const DpKey *key);
static void side_drop_lost(Cold *c, const DpKey *key);
static Cold *cold_argument(FunctionCallInfo fcinfo);

/*
 * subset_fields_trigger(): the triggers of the pattern.
 */
DP_FUNCTION(dp_subset_fields_trigger);
Datum
dp_subset_fields_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, PATTERN,
									DP_BEFORE_ROW(DP_UPDATE) | DP_AFTER_ROW(DP_WRITE) |
										DP_AFTER_STATEMENT(DP_ANY));

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	if (TRIGGER_FIRED_BEFORE(trigdata->tg_event))
		return PointerGetDatum(cold_before(cold_of(decl), trigdata));
	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		cold_after(cold_of(decl), trigdata);
	else
		dp_side_statement(decl, trigdata);
	return PointerGetDatum(NULL);
}

/* Returns the options of a declaration, read once. */
static Cold *
cold_of(DpDecl *decl)
{
	Cold *c = decl->state;
	DpValue paths;
	DpValue path;
	DpIter iter;
	MemoryContext old;

	if (likely(c != NULL))
		return c;
	old = MemoryContextSwitchTo(decl->context);
	c = palloc0(sizeof(Cold));
	c->decl = decl;
	c->link_id = dp_decl_text(decl, "link_id");
	if (c->link_id == NULL || !dp_option_value(decl->options, "cold", DP_TYPE_ARRAY, &paths))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the declaration of the " PATTERN " pattern \"%s\" is incomplete",
							   decl->name)));
	c->n = dp_document_count(paths.data, paths.len);
	c->paths = palloc0(sizeof(DpPath *) * Max(c->n, 1));
	c->names = palloc0(sizeof(char *) * Max(c->n, 1));
	c->n = 0;
	dp_iter_init_value(&iter, &paths);
	while (dp_iter_next_value(&iter, &path))
	{
		if (path.type != DP_TYPE_STRING)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("the declaration of the " PATTERN " pattern \"%s\" is incomplete",
							decl->name)));
		c->names[c->n] = pnstrdup(DP_STRING_DATA(&path), DP_STRING_LEN(&path));
		c->paths[c->n] = dp_path_parse(c->names[c->n], strlen(c->names[c->n]));
		c->n++;
	}
	MemoryContextSwitchTo(old);
	decl->state = c;
	return c;
}

static Oid
side_of(Cold *c)
{
	if (!OidIsValid(c->side))
		c->side = dp_side_find(c->decl, c->link_id, "{side key}; cold bson", NULL);
	return c->side;
}

/*
 * BEFORE UPDATE of a row.
 */
static HeapTuple
cold_before(Cold *c, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	HeapTuple tuple = trigdata->tg_newtuple;
	DpMarkKind marked = dp_marked(c->decl->target, c->decl->name);

	if (marked == DP_MARK_INTERNAL)
	{
		struct varlena *wanted = dp_marked_document(c->decl->target, c->decl->name);
		struct varlena *doc = dp_tuple_document(c->decl, tuple, desc);
		struct varlena *rest;

		/* the pattern itself writes cold fields back */
		if (wanted == NULL || doc == NULL || cold_present(c, wanted) ||
			cold_extract(c, doc, &rest) == NULL)
			return tuple;
		/* a trigger of a user has added cold fields to a document without them */
		return dp_tuple_with_document(c->decl, tuple, desc, rest);
	}
	dp_moves_before(c->decl, trigdata);
	return tuple;
}

/*
 * AFTER INSERT, UPDATE or DELETE of a row.
 */
static void
cold_after(Cold *c, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	DpMarkKind marked = dp_marked(c->decl->target, c->decl->name);
	bool is_whole = marked == DP_MARK_WHOLE || marked == DP_MARK_REPLACED;
	struct varlena *doc;
	HeapTuple tuple;
	DpKey key;
	DpKey to;
	DpMove *move;

	if (marked == DP_MARK_INTERNAL)
		return;
	tuple = dp_trigger_row(trigdata);
	dp_key_of_tuple(c->decl, trigdata->tg_trigtuple, desc, &key);
	dp_key_of_tuple(c->decl, tuple, desc, &to);
	if (TRIGGER_FIRED_BY_DELETE(trigdata->tg_event) || !dp_key_identical(c->decl, &key, &to))
	{
		move = dp_side_after(c->decl, trigdata);
		if (move != NULL && is_whole)
			move->flags |= MOVED_WHOLE;
		return;
	}
	if (TRIGGER_FIRED_BY_INSERT(trigdata->tg_event) &&
		trigdata->tg_relation->rd_rel->relispartition && dp_moves_arriving(c->decl, &key))
		return;

	move = dp_moves_stay(c->decl, &key);
	if (move != NULL)
	{
		move->flags |= is_whole ? MOVED_WHOLE : MOVED_WRITTEN;
		return;
	}
	doc = dp_tuple_document(c->decl, tuple, desc);
	SPI_connect();
	if (doc == NULL)
		side_drop(c, &key);
	else if (is_whole)
	{
		/* the document has all fields */
		struct varlena *cold = cold_extract(c, doc, NULL);

		if (cold == NULL)
			side_drop(c, &key);
		else
		{
			side_put(c, &key, cold);
			(void) cold_repair_row(c, &key);
		}
	}
	else
	{
		if (cold_present(c, doc))
			(void) cold_repair_row(c, &key);
		if (TRIGGER_FIRED_BY_UPDATE(trigdata->tg_event))
			cold_prune(c, doc, &key);
	}
	SPI_finish();
}

/* Returns the cold fields of a key. */
static void *
cold_leave(DpDecl *decl, const DpMove *move)
{
	Cold *c = cold_of(decl);
	SPIPlanPtr plan =
		dp_statement(decl, "DELETE FROM {relation} WHERE {side key = $key} RETURNING cold",
					 side_of(c));
	bool isnull;

	if (dp_run_marked(decl, plan, (Datum *) move->from.values, NULL, DP_RUN_AS_OWNER,
					  SPI_OK_DELETE_RETURNING, side_of(c), NULL, DP_MARK_INTERNAL) == 0)
		return NULL;
	return DatumGetPointer(dp_result(0, 1, &isnull));
}

static void
cold_arrive(DpDecl *decl, const DpMove *move, void *cold)
{
	if (!(move->flags & MOVED_WHOLE))
		side_put(cold_of(decl), &move->to, cold);
}

static void
cold_correct(DpDecl *decl, const DpMove *move)
{
	Cold *c = cold_of(decl);

	(void) cold_repair_row(c, &move->to);
	if (move->flags & MOVED_WRITTEN)
	{
		bool is_null;
		struct varlena *doc = row_lock(c, &move->to, &is_null);

		if (doc != NULL && !is_null)
			cold_prune(c, doc, &move->to);
	}
}

static void
cold_drop_orphans(DpDecl *decl)
{
	dp_side_drop_orphans(decl, side_of(cold_of(decl)), "");
}

/* Whether the document has any of the fields. */
static bool
cold_present(const Cold *c, struct varlena *doc)
{
	DpValue value;
	int i;

	for (i = 0; i < c->n; i++)
	{
		if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), c->paths[i], &value))
			return true;
	}
	return false;
}

/*
 * Returns the cold fields of a document as {path: value, ...}, or NULL; sets *rest, unless NULL,
 * to the document without them.
 */
static struct varlena *
cold_extract(const Cold *c, struct varlena *doc, struct varlena **rest)
{
	DpBuilder b;
	DpValue value;
	int i;

	if (rest != NULL)
		*rest = doc;
	if (!cold_present(c, doc))
		return NULL;
	dp_builder_init(&b, 0);
	dp_builder_begin_document(&b);
	for (i = 0; i < c->n; i++)
	{
		if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), c->paths[i], &value))
			continue;
		dp_builder_append_value(&b, c->names[i], strlen(c->names[i]), &value);
		if (rest != NULL)
		{
			struct varlena *without =
				dp_document_unset(DP_DOC_DATA(*rest), DP_DOC_SIZE(*rest), c->paths[i]);

			if (without != NULL)
				*rest = without;
		}
	}
	dp_builder_end(&b);
	return dp_builder_finish_bson(&b);
}

/* The document with the cold fields that it does not have itself, at its end. */
static struct varlena *
cold_join(const Cold *c, struct varlena *doc, struct varlena *cold)
{
	DpValue value;
	int i;

	for (i = 0; i < c->n; i++)
	{
		DpValue own;

		if (dp_document_find(DP_DOC_DATA(cold), DP_DOC_SIZE(cold), c->names[i], strlen(c->names[i]),
							 &value) &&
			!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), c->paths[i], &own) &&
			!path_taken(c, doc, c->paths[i]))
			doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), c->paths[i], &value);
	}
	return doc;
}

/* Returns whether a value along a path is not a document, so that the path cannot exist. */
static bool
path_taken(const Cold *c, struct varlena *doc, const DpPath *path)
{
	DpValue at = dp_value_of_document(doc);
	int i;

	for (i = 0; i < path->nsteps - 1; i++)
	{
		DpValue next;

		if (!dp_document_find(at.data, at.len, path->steps[i].name, path->steps[i].namelen, &next))
			return false;
		if (next.type != DP_TYPE_DOCUMENT)
			return true;
		at = next;
	}
	return false;
}

/* Deletes a cold field if a write has replaced the document around it. */
static void
cold_prune(Cold *c, struct varlena *doc, const DpKey *key)
{
	struct varlena *cold = NULL;
	struct varlena *left = NULL;
	int i;

	for (i = 0; i < c->n; i++)
	{
		struct varlena *without;

		if (c->paths[i]->nsteps < 2 || !path_taken(c, doc, c->paths[i]))
			continue;
		if (cold == NULL)
			cold = side_read(c, key, true);
		if (cold == NULL)
			return;
		if (left == NULL)
			left = cold;
		without = dp_document_unset(DP_DOC_DATA(left), DP_DOC_SIZE(left),
									dp_path_of_name(c->names[i], strlen(c->names[i])));
		if (without != NULL)
			left = without;
	}
	if (left == cold)
		return;
	if (DP_DOC_SIZE(left) == DP_DOCUMENT_MIN_SIZE)
		side_drop(c, key);
	else
		side_put(c, key, left);
}

/*
 * Moves the row's cold fields to the side table. Returns whether it had any. The caller is inside
 * SPI_connect().
 */
static bool
cold_repair_row(Cold *c, const DpKey *key)
{
	bool is_null;
	struct varlena *doc = row_lock(c, key, &is_null);
	struct varlena *rest;
	struct varlena *cold;
	struct varlena *before;

	if (doc == NULL)
	{
		side_drop_lost(c, key);
		return false;
	}
	if (is_null)
	{
		side_drop(c, key);
		return false;
	}
	cold = cold_extract(c, doc, &rest);
	if (cold == NULL)
		return false;
	before = side_read(c, key, true);
	if (before != NULL)
		cold = dp_document_merge(DP_DOC_DATA(before), DP_DOC_SIZE(before), DP_DOC_DATA(cold),
								 DP_DOC_SIZE(cold));
	if (before == NULL || !dp_same_bytes(before, cold))
		side_put(c, key, cold);
	row_write(c, key, rest);
	return true;
}

/*
 * Returns the latest document of the row, locked; NULL without such a row. Sets *is_null for a
 * null document.
 */
static struct varlena *
row_lock(Cold *c, const DpKey *key, bool *is_null)
{
	struct varlena *doc;

	if (!dp_row_read(c->decl, key, " FOR NO KEY UPDATE", DP_RUN_AS_OWNER, &doc))
		return NULL;
	*is_null = doc == NULL;
	return doc != NULL ? doc : dp_document_to_varlena(dp_empty_document, sizeof(dp_empty_document));
}

/* Write the document of a row, without the cold fields. */
static void
row_write(Cold *c, const DpKey *key, struct varlena *doc)
{
	Datum values[INDEX_MAX_KEYS + 1];
	SPIPlanPtr plan = dp_row_plan_write(c->decl, key, doc, DP_RUN_AS_OWNER, values);

	dp_run_writing(c->decl, plan, values, DP_RUN_AS_OWNER, doc);
}

/* Returns the stored cold fields of a key, or NULL. */
static struct varlena *
side_read(Cold *c, const DpKey *key, bool latest)
{
	SPIPlanPtr plan =
		dp_statement(c->decl, "SELECT cold FROM {relation} WHERE {side key = $key}", side_of(c));
	bool isnull;
	Datum value;

	if (dp_run(c->decl, plan, (Datum *) key->values, NULL,
			   DP_RUN_AS_OWNER | (latest ? 0 : DP_RUN_SNAPSHOT), 1, SPI_OK_SELECT) == 0)
		return NULL;
	value = dp_result(0, 1, &isnull);
	return isnull ? NULL : (struct varlena *) DatumGetPointer(value);
}

/* Replaces the stored cold fields of a key. */
static void
side_put(Cold *c, const DpKey *key, struct varlena *cold)
{
	Oid side = side_of(c);
	SPIPlanPtr plan = dp_statement(c->decl,
								   "INSERT INTO {relation} ({side key}, cold)"
								   " VALUES ({$key}, {$key+1 bson}) ON CONFLICT ({side key})"
								   " DO UPDATE SET cold = EXCLUDED.cold",
								   side);
	Datum values[INDEX_MAX_KEYS + 1];

	memcpy(values, key->values, sizeof(Datum) * c->decl->nkeys);
	values[c->decl->nkeys] = PointerGetDatum(cold);
	dp_run_marked(c->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_INSERT, side, NULL,
				  DP_MARK_INTERNAL);
}

/* Deletes the stored cold fields of a key. */
static void
side_drop(Cold *c, const DpKey *key)
{
	SPIPlanPtr plan =
		dp_statement(c->decl, "DELETE FROM {relation} WHERE {side key = $key}", side_of(c));

	dp_run_marked(c->decl, plan, (Datum *) key->values, NULL, DP_RUN_AS_OWNER, SPI_OK_DELETE,
				  side_of(c), NULL, DP_MARK_INTERNAL);
}

/*
 * Does the same for a missing document: a concurrent insert of it adds to the row or waits for it.
 */
static void
side_drop_lost(Cold *c, const DpKey *key)
{
	SPIPlanPtr plan =
		dp_statement(c->decl, "SELECT FROM {relation} WHERE {side key = $key} FOR UPDATE",
					 side_of(c));
	bool is_null;

	if (dp_run(c->decl, plan, (Datum *) key->values, NULL, DP_RUN_AS_OWNER, 1, SPI_OK_SELECT) > 0 &&
		row_lock(c, key, &is_null) == NULL)
		side_drop(c, key);
}

/* Functions for the views <table>_whole and pattern_build */
static bool
methods_is_split(DpDecl *decl, struct varlena *stored)
{
	Cold *c = cold_of(decl);
	DpValue value;
	int i;

	for (i = 0; i < c->n; i++)
	{
		if (!dp_path_find(DP_DOC_DATA(stored), DP_DOC_SIZE(stored), c->paths[i], &value))
			return true;
	}
	return false;
}

static struct varlena *
methods_whole(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest)
{
	Cold *c = cold_of(decl);
	struct varlena *cold;
	DpKey at;

	dp_moves_stored(decl, key, &at);
	cold = side_read(c, &at, latest);
	return cold == NULL ? stored : cold_join(c, stored, cold);
}

static struct varlena *
methods_keep(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
			 struct varlena *new_whole)
{
	Cold *c = cold_of(decl);
	struct varlena *result = new_whole;
	int i;

	for (i = 0; i < c->n; i++)
	{
		DpValue was;
		DpValue is;
		bool had = dp_path_find(DP_DOC_DATA(old_whole), DP_DOC_SIZE(old_whole), c->paths[i], &was);
		bool has = dp_path_find(DP_DOC_DATA(new_whole), DP_DOC_SIZE(new_whole), c->paths[i], &is);

		if (had != has || (has && !dp_value_identical(&was, &is)))
			return NULL;
		/* without its document, the field would get another path */
		if (!has && path_taken(c, new_whole, c->paths[i]))
			return NULL;
		if (has && !dp_path_find(DP_DOC_DATA(stored), DP_DOC_SIZE(stored), c->paths[i], &was))
			result = dp_document_unset(DP_DOC_DATA(result), DP_DOC_SIZE(result), c->paths[i]);
	}
	return result;
}

static bool
method_repair_row(DpDecl *decl, const DpKey *key)
{
	return cold_repair_row(cold_of(decl), key);
}

static List *
methods_split(DpDecl *decl)
{
	Cold *c = cold_of(decl);
	List *fields = NIL;

	for (int i = 0; i < c->n; i++)
		fields = lappend(fields, dp_split_field(c->paths[i], NULL));
	return fields;
}

static const DpOption options[] = {
	{ "cold", DP_OPTION_PATHS, DP_REQUIRED | DP_ALTERABLE | DP_KEPT, DP_INT_FROM(1) }, { NULL }
};

static const DpSideMethods side = { .leave = cold_leave,
									.arrive = cold_arrive,
									.correct = cold_correct,
									.drop_orphans = cold_drop_orphans };

DP_DEFINE_PATTERN(subset_fields) = { .name = PATTERN,
									 .keeps_originals = true,
									 .views = "whole",
									 .options = options,
									 .is_split = methods_is_split,
									 .whole = methods_whole,
									 .keep = methods_keep,
									 .split = methods_split,
									 .side = &side,
									 .repair_row = method_repair_row };

/* The declaration that a function is called for, its table locked as by a writer. */
static Cold *
cold_argument(FunctionCallInfo fcinfo)
{
	Oid rel = PG_GETARG_OID(0);

	dp_require_owner(rel);
	LockRelationOid(rel, RowExclusiveLock);
	return cold_of(dp_decl_find(rel, PATTERN, text_to_cstring(PG_GETARG_TEXT_PP(1))));
}

/*
 * _subset_fields_rejoin(rel, name, key, paths text[]): moves cold fields, all or those listed,
 * back into the document of a key. Returns the size of the document; writes only if it is allowed.
 * Deletes cold fields without a document.
 */
DP_ROUTED_FUNCTION(dp_subset_fields_rejoin, DP_ROUTE_KEY, 2)
{
	Cold *c;
	Cold some;
	DpKey key;
	bool is_null;
	struct varlena *doc;
	struct varlena *cold;
	struct varlena *whole;
	int64 size = 0;
	int i;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	c = cold_argument(fcinfo);
	some = *c;
	if (!PG_ARGISNULL(3))
	{
		Datum *paths;
		bool *nulls;
		int n;

		deconstruct_array(PG_GETARG_ARRAYTYPE_P(3), TEXTOID, -1, false, TYPALIGN_INT, &paths,
						  &nulls, &n);
		some.n = 0;
		some.paths = palloc(sizeof(DpPath *) * Max(n, 1));
		some.names = palloc(sizeof(char *) * Max(n, 1));
		for (i = 0; i < n; i++)
		{
			if (nulls[i])
				continue;
			some.names[some.n] = TextDatumGetCString(paths[i]);
			some.paths[some.n] = dp_path_parse(some.names[some.n], strlen(some.names[some.n]));
			some.n++;
		}
	}
	dp_key_of_argument(c->decl, fcinfo, 2, &key);
	SPI_connect();
	doc = row_lock(c, &key, &is_null);
	cold = side_read(c, &key, true);
	if (cold == NULL)
	{
		SPI_finish();
		PG_RETURN_INT64(0);
	}
	if (doc == NULL)
		side_drop_lost(c, &key);
	else if (is_null)
		side_drop(c, &key);
	if (doc == NULL || is_null)
	{
		SPI_finish();
		PG_RETURN_INT64(0);
	}
	whole = cold_join(&some, doc, cold);
	size = DP_DOC_SIZE(whole);
	if (size <= dp_max_document_size)
	{
		for (i = 0; i < some.n; i++)
		{
			struct varlena *without =
				dp_document_unset(DP_DOC_DATA(cold), DP_DOC_SIZE(cold),
								  dp_path_of_name(some.names[i], strlen(some.names[i])));

			if (without != NULL)
				cold = without;
		}
		if (DP_DOC_SIZE(cold) == DP_DOCUMENT_MIN_SIZE)
			side_drop(c, &key);
		else
			side_put(c, &key, cold);
		if (!dp_same_bytes(whole, doc))
			row_write(c, &key, whole);
	}
	SPI_finish();
	PG_RETURN_INT64(size);
}
