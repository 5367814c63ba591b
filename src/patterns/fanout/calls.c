/*
 * calls.c
 *		The fan-out pattern: reading timelines, and functions of the verbs.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "bson/catalog.h"
#include "kit/derive/batch.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/fanout/fanout.h"

/* A post of a timeline */
typedef struct Shown
{
	DpFanoutEntry entry;
	struct varlena *doc;
} Shown;

/* The posts of a timeline */
typedef struct Timeline
{
	DpFanout *f;
	int take;
	int n;
	int size;
	Shown *posts;
} Timeline;

static DpFanout *fanout_argument(Oid rel, text *name);
static void timeline_rows(Timeline *t);
static void timeline_post(Timeline *t, const DpValue *key);
static void timeline_author(Timeline *t, const DpValue *author);
static int shown_compare(const void *a, const void *b, void *arg);

/*
 * Returns the fan-out of a table and a name (or NULL). Raises an error if its tables are missing.
 */
static DpFanout *
fanout_argument(Oid rel, text *name)
{
	DpFanout *f =
		dp_fanout(dp_decl_find(rel, "fanout", name != NULL ? text_to_cstring(name) : NULL));

	if (!OidIsValid(f->derivation->target) || f->followers == NULL)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the %s of the fan-out \"%s\" of table \"%s\" are missing",
							   f->followers == NULL ? "followers" : "walls",
							   f->derivation->decl->name, dp_relation_name(rel)),
						errdetail("The table or its triggers were dropped.")));
	return f;
}

/* ---------------------------------------------------------------- timelines */

/*
 * fanout_timeline(rel, reader, take, name) -> (key, doc): reads as the caller, with the snapshot
 * of the calling query
 */
DP_ROUTED_FUNCTION(dp_fanout_timeline, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Timeline t = { 0 };
	DpDecl *decl;
	SPIPlanPtr plan;
	DpKey key;
	DpFanoutEntries entries;
	List *merged = NIL;
	ListCell *lc;
	bool isnull;
	int i;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the table and the number of posts must not be null")));
	t.take = PG_GETARG_INT32(2);
	if (t.take < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("the number of posts must not be negative")));
	t.f = fanout_argument(PG_GETARG_OID(0), PG_ARGISNULL(3) ? NULL : PG_GETARG_TEXT_PP(3));
	t.take = Min(t.take, t.f->keep);
	decl = t.f->derivation->decl;
	dp_key_of_argument(dp_decl_of_table(t.f->derivation->target, "fanout", decl->name, NULL,
										CurrentMemoryContext),
					   fcinfo, 1, &key);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);

	SPI_connect();
	plan = dp_statement(decl, "SELECT t.doc FROM {relation} AS t WHERE t._id{own =}{$1 bson_value}",
						t.f->derivation->target);
	if (dp_run(decl, plan, key.values, NULL, DP_RUN_SNAPSHOT, 1, SPI_OK_SELECT) > 0)
	{
		dp_fanout_parse(t.f, (struct varlena *) DatumGetPointer(dp_result(0, 1, &isnull)), &entries,
						&merged);
		for (i = 0; i < entries.n && i < t.take; i++)
			timeline_post(&t, &entries.list[i].key);
	}
	else
	{
		/* without a wall, read the posts of all followed authors */
		plan = dp_statement(decl, DP_FANOUT_AUTHORS, t.f->follows);
		(void) dp_run(decl, plan, key.values, NULL, DP_RUN_SNAPSHOT, 0, SPI_OK_SELECT);
		for (i = 0; i < (int) SPI_processed; i++)
		{
			Datum value = dp_result(i, 1, &isnull);
			DpValue *author = palloc(sizeof(DpValue));

			if (isnull)
				continue;
			*author = dp_value_of_varlena((struct varlena *) DatumGetPointer(value));
			merged = lappend(merged, author);
		}
	}
	foreach(lc, merged)
		timeline_author(&t, lfirst(lc));

	if (t.n > 1)
		qsort_arg(t.posts, t.n, sizeof(Shown), shown_compare, t.f);
	for (i = 0; i < t.n && i < t.take; i++)
	{
		Datum values[2];
		bool nulls[2] = { false };

		values[0] = PointerGetDatum(dp_value_to_varlena(&t.posts[i].entry.key));
		values[1] = PointerGetDatum(t.posts[i].doc);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	SPI_finish();
	return (Datum) 0;
}

static int
shown_compare(const void *a, const void *b, void *arg)
{
	return dp_fanout_compare(arg, &((const Shown *) a)->entry, &((const Shown *) b)->entry);
}

/* Adds the rows of the last statement. */
static void
timeline_rows(Timeline *t)
{
	uint64 i;

	for (i = 0; i < SPI_processed; i++)
	{
		Shown post;
		DpKey key;
		bool isnull;
		int k;

		post.doc = (struct varlena *) DatumGetPointer(dp_result(i, 1, &isnull));
		if (isnull)
			continue;
		key.n = t->f->derivation->decl->nkeys;
		for (k = 0; k < key.n; k++)
			key.values[k] = dp_result(i, k + 2, &isnull);
		if (!dp_fanout_entry(t->f, post.doc, &key, &post.entry))
			continue;
		if (t->n == t->size)
		{
			t->size = Max(t->size * 2, 128);
			t->posts = t->posts == NULL ? palloc(sizeof(Shown) * t->size)
										: repalloc(t->posts, sizeof(Shown) * t->size);
		}
		t->posts[t->n++] = post;
	}
}

/* Adds a post of the wall. */
static void
timeline_post(Timeline *t, const DpValue *key)
{
	DpDecl *decl = t->f->derivation->decl;
	SPIPlanPtr plan = dp_statement(decl, "{posts} WHERE {key = $key}");
	DpKey row;

	if (!dp_key_of_value(decl, key, &row))
		return;
	(void) dp_run(decl, plan, row.values, NULL, DP_RUN_SNAPSHOT, 1, SPI_OK_SELECT);
	timeline_rows(t);
}

/* Adds the first posts of an author above the threshold. */
static void
timeline_author(Timeline *t, const DpValue *author)
{
	DpDecl *decl = t->f->derivation->decl;
	SPIPlanPtr plan = dp_statement(decl, DP_FANOUT_POSTS);
	Datum values[2];

	CHECK_FOR_INTERRUPTS();
	values[0] = PointerGetDatum(dp_value_to_varlena(author));
	values[1] = Int64GetDatum(t->take);
	(void) dp_run(decl, plan, values, NULL, DP_RUN_SNAPSHOT, 0, SPI_OK_SELECT);
	timeline_rows(t);
}

/* ---------------------------------------------------------------- verbs */

/*
 * _fanout_recompute(rel, name) -> bigint: computes all walls; returns how many were written
 */
DP_ROUTED_FUNCTION(dp_fanout_recompute, DP_ROUTE_WHOLE, 0)
{
	dp_require_owner(PG_GETARG_OID(0));
	PG_RETURN_INT64(dp_derive_whole(list_make1(fanout_argument(PG_GETARG_OID(0),
															   PG_GETARG_TEXT_PP(1))
												   ->derivation),
									false, true));
}

/*
 * _fanout_verify(rel, name): compiles the declaration.
 */
DP_FUNCTION(dp_fanout_verify);
Datum
dp_fanout_verify(PG_FUNCTION_ARGS)
{
	(void) fanout_argument(PG_GETARG_OID(0), PG_GETARG_TEXT_PP(1));
	PG_RETURN_VOID();
}

/*
 * _fanout_expected(rel, name, reader) -> bson: the wall computed from posts and follows, with the
 * snapshot of the calling query; NULL without follows
 */
DP_FUNCTION(dp_fanout_expected);
Datum
dp_fanout_expected(PG_FUNCTION_ARGS)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext old;
	DpFanout *f;
	DpValue reader = dp_value_of_varlena(PG_GETARG_VARLENA_PP(2));
	struct varlena *wall;

	dp_require_owner(PG_GETARG_OID(0));
	f = fanout_argument(PG_GETARG_OID(0), PG_GETARG_TEXT_PP(1));
	if (reader.type == DP_TYPE_NULL || reader.type == DP_TYPE_UNDEFINED ||
		reader.type == DP_TYPE_ARRAY || reader.type == DP_TYPE_REGEX)
		PG_RETURN_NULL();
	SPI_connect();
	wall = dp_fanout_compute(f, &reader, NULL, false);
	if (wall != NULL)
	{
		old = MemoryContextSwitchTo(caller);
		wall = dp_document_to_varlena(DP_DOC_DATA(wall), DP_DOC_SIZE(wall));
		MemoryContextSwitchTo(old);
	}
	SPI_finish();
	if (wall == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(wall);
}

/* Creates walls for the followers of an author that have none. */
typedef struct Followers
{
	DpDeriveBatch *batch;
	DpDerivation *d;
} Followers;

static void
follower_visit(void *arg, const DpValue *value)
{
	Followers *s = arg;

	dp_fanout_wall(dp_derive_group(s->batch, s->d, value))->only_missing = true;
}

/* For pattern_build: creates walls for the followers of a post's author. */
bool
dp_fanout_repair_row(DpDecl *decl, const DpKey *key)
{
	DpFanout *f = dp_fanout(decl);
	DpValue value = dp_value_of_varlena(dp_key_to_value(decl, key));
	DpFanoutEntry entry;
	Followers s;

	if (f->followers == NULL || !OidIsValid(f->derivation->target) ||
		!dp_fanout_post(f, &value, &entry))
		return false;
	s.d = f->derivation;
	s.batch = dp_derive_begin();
	(void) dp_fanout_followers(f, &entry.author, 0, follower_visit, &s);
	return dp_derive_end(s.batch, true) > 0;
}
