/*
 * read.c
 *		The roll-up pattern: recomputing groups from the source or the level below,
 *		and checking them.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/sqltime.h"
#include "bson/text.h"
#include "kit/derive/batch.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"
#include "patterns/rollup/rollup.h"

/* Argument of row visitors */
typedef struct Visit
{
	DpRollup *r;
	DpAccumulation *g;
	DpDeriveBatch *batch;
	bool recompute;
	bool whole; /* all documents of the lower level had their state */
	ReturnSetInfo *rsinfo;
} Visit;

static void read_rows(DpRollup *r, DpAccumulation *g, const DpRollupKey *key);
static bool
read_lower(DpRollup *r, DpDeriveBatch *batch, DpAccumulation *g, const DpRollupKey *key);
static void read_changed(DpRollup *r, DpDeriveBatch *batch, DpAccumulation *g,
						 const DpRollupKey *key, const DpValue *groups);
static bool visit_row(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool visit_stored(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool visit_all(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static bool visit_target(void *arg, const DpSourceRow *row, const char *key, uint32 keylen);
static void violation(ReturnSetInfo *rsinfo, const DpValue *key, struct varlena *expected,
					  struct varlena *found);
static char *document_text(struct varlena *doc);
static DpAccumulation *rollup_whole(DpRollup *r, DpGroup *group);

/* Returns the field's parameter as a date of the column's type. */
static DpValue
date_value(TimestampTz t, uint8 *buf)
{
	int64 ms = t / 1000 + DP_EPOCH_DAYS * DP_MS_PER_DAY;
	DpValue v = { buf, 8, DP_TYPE_DATE };

	memcpy(buf, &ms, 8);
	return v;
}

int64
dp_rollup_each(DpRollup *r, SPIPlanPtr plan, ParamListInfo params, bool latest, DpSourceVisit visit,
			   void *arg)
{
	return dp_source_each(r->source, r->derivation->decl, plan, params, latest, false, visit, arg);
}

/* ---------------------------------------------------------------- recomputing */

DpAccumulation *
dp_rollup_evaluate(DpRollup *r, DpGroup *group)
{
	DpAccumulation *result;

	r->evaluation++;
	PushActiveSnapshot(GetLatestSnapshot());
	result = rollup_whole(r, group);
	PopActiveSnapshot();
	return result;
}

bool
dp_rollup_whole_begin(DpRollup *r, DpGroup *group)
{
	DpRollupGroup *state = dp_rollup_group(group);

	if (state->whole != NULL && state->evaluation == r->evaluation)
		return false;
	if (state->whole != NULL)
		dp_accumulation_reset(state->whole);
	else
	{
		MemoryContext old = MemoryContextSwitchTo(dp_derive_memory(group->batch));

		state->whole = dp_accumulation_make(r->acc);
		MemoryContextSwitchTo(old);
	}
	state->evaluation = r->evaluation;
	return true;
}

/* Does the same for a group needed by another group, with the snapshot of that evaluation. */
static DpAccumulation *
rollup_whole(DpRollup *r, DpGroup *group)
{
	DpRollupGroup *state = dp_rollup_group(group);
	DpRollupKey parts;

	if (r->time == NULL)
		return dp_rollup_node_whole(r, group);
	if (!dp_rollup_whole_begin(r, group))
		return state->whole;
	dp_rollup_key(r, &group->key, &parts);
	if (r->levels[parts.level].below < 0 || !read_lower(r, group->batch, state->whole, &parts))
	{
		dp_accumulation_reset(state->whole);
		read_rows(r, state->whole, &parts);
	}
	return state->whole;
}

/* Adds the rows of the source. */
static void
read_rows(DpRollup *r, DpAccumulation *g, const DpRollupKey *key)
{
	DpDecl *decl = r->derivation->decl;
	SPIPlanPtr plan = dp_plan(decl, &r->plan_rows);
	StringInfoData sql;
	Oid types[DP_ROLLUP_MAX_GROUPS + 2];
	ParamListInfo params = dp_source_params(r->ngroups + 2);
	Visit visit = { .r = r, .g = g };
	uint8 buf[2][8];
	DpValue since = date_value(key->start, buf[0]);
	DpValue until = date_value(key->next, buf[1]);
	DpIter iter;
	DpValue value;
	bool nulls = false;
	int i;

	/* the types are needed in any case */
	initStringInfo(&sql);
	dp_source_sql_select(&sql, r->source, r->need_key);
	appendStringInfoString(&sql, " WHERE ");
	types[0] = types[1] = dp_source_sql_require_field(&sql, r->source, r->time);
	dp_sql_type_operator(&sql, types[0], BTGreaterEqualStrategyNumber);
	appendStringInfoString(&sql, "$1 AND ");
	(void) dp_source_sql_field(&sql, r->source, r->time);
	dp_sql_type_operator(&sql, types[0], BTLessStrategyNumber);
	appendStringInfoString(&sql, "$2");
	dp_iter_init_value(&iter, &key->group);
	for (i = 0; i < r->ngroups && dp_iter_next_value(&iter, &value); i++)
	{
		bool is_null = value.type == DP_TYPE_NULL;

		appendStringInfoString(&sql, is_null ? " AND (" : " AND ");
		types[i + 2] = dp_source_sql_require_field(&sql, r->source, r->groups[i]);
		if (is_null)
		{
			/* rows without the field belong here too */
			appendStringInfoString(&sql, " IS NULL OR ");
			(void) dp_source_sql_field(&sql, r->source, r->groups[i]);
			nulls = true;
		}
		dp_sql_type_operator(&sql, types[i + 2], BTEqualStrategyNumber);
		appendStringInfo(&sql, "$%d%s", i + 3, is_null ? ")" : "");
		dp_source_param(params, i + 2, types[i + 2], &value);
	}
	dp_source_param(params, 0, types[0], &since);
	dp_source_param(params, 1, types[1], &until);
	if (nulls)
		plan = SPI_prepare(sql.data, r->ngroups + 2,
						   types); /* a separate statement, for rare groups */
	else if (plan == NULL)
		plan = dp_plan_make(decl, &r->plan_rows, sql.data, r->ngroups + 2, types, 0);
	(void) dp_source_each(r->source, decl, plan, params, false, r->need_key, visit_row, &visit);
}

/*
 * Adds the level below; returns false if one of its documents has no state. Omits documents of
 * groups that the batch changes, which may not have been written yet: these groups are computed.
 */
static bool
read_lower(DpRollup *r, DpDeriveBatch *batch, DpAccumulation *g, const DpRollupKey *key)
{
	SPIPlanPtr plan = dp_statement(r->derivation->decl,
								   "SELECT t.doc FROM {relation} AS t"
								   " WHERE t._id{own >=}{$1 bson_value}"
								   " AND t._id{own <}{$2 bson_value}",
								   r->derivation->target);
	ParamListInfo params = dp_source_params(2);
	Visit visit = { .r = r, .g = g, .batch = batch, .whole = true };
	DpValue groups[DP_ROLLUP_MAX_GROUPS];
	DpIter iter;
	int i;

	dp_iter_init_value(&iter, &key->group);
	for (i = 0; i < r->ngroups; i++)
		(void) dp_iter_next_value(&iter, &groups[i]);
	for (i = 0; i < 2; i++)
	{
		DpBuilder b;
		DpValue bound;

		dp_builder_init_value(&b, 0);
		dp_rollup_key_build(r, &b, r->levels[key->level].below, i == 0 ? key->start : key->next,
							groups);
		bound = dp_builder_view(&b, DP_TYPE_DOCUMENT);
		dp_source_param(params, i, dp_types()->bson_value, &bound);
		dp_builder_free(&b);
	}
	(void) dp_rollup_each(r, plan, params, false, visit_stored, &visit);
	if (visit.whole)
		read_changed(r, batch, g, key, groups);
	return visit.whole;
}

/* Adds the groups of the level below that the batch changes. */
static void
read_changed(DpRollup *r, DpDeriveBatch *batch, DpAccumulation *g, const DpRollupKey *key,
			 const DpValue *groups)
{
	int below = r->levels[key->level].below;
	TimestampTz t = key->start;

	while (t < key->next)
	{
		DpBuilder b;
		DpValue id;
		DpGroup *group;

		CHECK_FOR_INTERRUPTS();
		dp_builder_init_value(&b, 0);
		dp_rollup_key_build(r, &b, below, t, groups);
		id = dp_builder_view(&b, DP_TYPE_DOCUMENT);
		group = dp_derive_find(batch, r->derivation, &id);
		if (group != NULL)
			dp_accumulation_add(g, rollup_whole(r, group));
		dp_builder_free(&b);
		(void) dp_span_start(&r->levels[below].span, t, &t);
	}
}

/* Adds a row of the source to the totals. */
static bool
visit_row(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Visit *visit = arg;
	DpValue groups[DP_ROLLUP_MAX_GROUPS];
	TimestampTz t;
	DpValue doc = dp_value_of_document(row->doc);

	if (dp_rollup_row(visit->r, row, &t, groups))
		dp_accumulation_row(visit->g, &doc, key, keylen, 1);
	return true;
}

/* Adds the totals of a document of the target. */
static bool
visit_stored(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Visit *visit = arg;
	DpValue doc = dp_value_of_document(row->doc);
	DpValue id;

	if (dp_document_find(doc.data, doc.len, "_id", 3, &id) &&
		dp_derive_find(visit->batch, visit->r->derivation, &id) != NULL)
		return true;
	visit->whole = dp_accumulation_add_stored(visit->g, &doc);
	return visit->whole;
}

/* Reads the rows of a node of the tree. */
void
dp_rollup_read_node(DpRollup *r, DpAccumulation *g, const DpValue *node)
{
	DpDecl *decl = r->derivation->decl;
	SPIPlanPtr plan = dp_plan(decl, &r->plan_node);
	ParamListInfo params = dp_source_params(1);
	Visit visit = { .r = r, .g = g };
	StringInfoData sql;
	Oid type;

	initStringInfo(&sql);
	dp_source_sql_select(&sql, r->source, r->need_key);
	appendStringInfoString(&sql, " WHERE ");
	type = dp_source_sql_require_field(&sql, r->source, r->groups[0]);
	dp_sql_type_operator(&sql, type, BTEqualStrategyNumber);
	appendStringInfoString(&sql, "$1");
	if (plan == NULL)
		plan = dp_plan_make(decl, &r->plan_node, sql.data, 1, &type, 0);
	dp_source_param(params, 0, type, node);
	(void) dp_source_each(r->source, decl, plan, params, false, r->need_key, visit_row, &visit);
}

void
dp_rollup_read_all(DpRollup *r, DpDeriveBatch *batch, bool latest, bool recompute)
{
	DpDecl *decl = r->derivation->decl;
	SPIPlanPtr plan;
	Visit visit = { .r = r, .batch = batch, .recompute = recompute };

	SPI_connect();
	plan = dp_plan(decl, &r->plan_all);
	if (plan == NULL)
	{
		StringInfoData sql;

		initStringInfo(&sql);
		dp_source_sql_select(&sql, r->source, r->need_key);
		plan = dp_plan_make(decl, &r->plan_all, sql.data, 0, NULL, 0);
	}
	(void) dp_source_each(r->source, decl, plan, NULL, latest, r->need_key, visit_all, &visit);
	SPI_finish();
}

/* Adds a row of the source to its groups, or marks them for recomputation. */
static bool
visit_all(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Visit *visit = arg;
	DpRollup *r = visit->r;
	DpValue groups[DP_ROLLUP_MAX_GROUPS];
	TimestampTz t;
	int i;

	if (!visit->recompute)
	{
		r->derivation->methods->take(r->derivation, visit->batch, row, 1);
		return true;
	}
	if (!dp_rollup_row(r, row, &t, groups))
		return true;
	if (r->time == NULL)
	{
		DpGroup *group = dp_derive_group(visit->batch, r->derivation, &groups[0]);
		DpRollupGroup *g;

		group->recompute = true;
		dp_rollup_find_above(r, visit->batch, group);
		g = group->state;
		for (i = 0; i < g->nabove; i++)
			g->above[i]->recompute = true;
		return true;
	}
	for (i = 0; i < r->nlevels; i++)
	{
		DpBuilder b;
		DpValue id;

		dp_builder_init_value(&b, 0);
		dp_rollup_key_build(r, &b, i, dp_span_start(&r->levels[i].span, t, NULL), groups);
		id = dp_builder_view(&b, DP_TYPE_DOCUMENT);
		dp_derive_group(visit->batch, r->derivation, &id)->recompute = true;
		dp_builder_free(&b);
	}
	return true;
}

/* Corrects the groups of a row of the source, for pattern_build. */
bool
dp_rollup_repair_row(DpDecl *decl, const DpKey *key)
{
	DpRollup *r = dp_rollup(decl);
	DpDeriveBatch *batch = dp_derive_begin();
	Visit visit = { .r = r, .batch = batch, .recompute = true };
	SPIPlanPtr plan = dp_plan(decl, &r->plan_one);
	Oid types[INDEX_MAX_KEYS];
	ParamListInfo params = dp_source_params(decl->nkeys);
	int i;

	dp_sql_key_types(decl, types);
	if (plan == NULL)
	{
		StringInfoData sql;

		initStringInfo(&sql);
		dp_source_sql_select(&sql, r->source, false);
		appendStringInfoString(&sql, " WHERE ");
		dp_sql_key_match(&sql, decl);
		plan = dp_plan_make(decl, &r->plan_one, sql.data, decl->nkeys, types, 0);
	}
	for (i = 0; i < decl->nkeys; i++)
	{
		params->params[i].ptype = types[i];
		params->params[i].value = key->values[i];
		params->params[i].isnull = false;
	}
	(void) dp_rollup_each(r, plan, params, true, visit_all, &visit);
	return dp_derive_end(batch, true) > 0;
}

/* ---------------------------------------------------------------- calls */

/* Returns the derivation of the first two arguments, a table and a name. */
static DpDerivation *
rollup_argument(FunctionCallInfo fcinfo)
{
	Oid rel = PG_GETARG_OID(0);
	DpDerivation *d;

	dp_require_owner(rel);
	d = dp_derivation(dp_decl_find(rel, "rollup", text_to_cstring(PG_GETARG_TEXT_PP(1))));
	if (!OidIsValid(d->target))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("the roll-up \"%s\" of table \"%s\" has no table of totals",
							   d->decl->name, dp_relation_name(rel)),
						errdetail("The table or its triggers were dropped.")));
	return d;
}

/*
 * _rollup_recompute(rel, name) -> bigint: computes all documents; returns how many were written
 */
DP_ROUTED_FUNCTION(dp_rollup_recompute, DP_ROUTE_WHOLE, 0)
{
	PG_RETURN_INT64(dp_derive_whole(list_make1(rollup_argument(fcinfo)), false, true));
}

/*
 * _rollup_verify(rel, name): compiles the declaration.
 */
DP_FUNCTION(dp_rollup_verify);
Datum
dp_rollup_verify(PG_FUNCTION_ARGS)
{
	DpRollup *r = rollup_argument(fcinfo)->state;
	StringInfoData sql;
	int i;

	initStringInfo(&sql);
	if (r->time != NULL)
		(void) dp_source_sql_require_field(&sql, r->source, r->time);
	for (i = 0; i < r->ngroups; i++)
		(void) dp_source_sql_require_field(&sql, r->source, r->groups[i]);
	PG_RETURN_VOID();
}

/*
 * _rollup_start(rel, name, doc) -> timestamptz
 */
DP_FUNCTION(dp_rollup_start);
Datum
dp_rollup_start(PG_FUNCTION_ARGS)
{
	DpRollup *r =
		dp_rollup(dp_decl_find(PG_GETARG_OID(0), "rollup", text_to_cstring(PG_GETARG_TEXT_PP(1))));
	DpSourceRow row = { NULL, PG_GETARG_VARLENA_PP(2) };
	DpValue groups[DP_ROLLUP_MAX_GROUPS];
	TimestampTz t;

	if (r->time == NULL || !dp_rollup_row(r, &row, &t, groups))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(dp_span_start(&r->levels[0].span, t, NULL));
}

/*
 * _rollup_check_documents(rel, name) -> (key, what, expected, found): compares all documents with
 * the source, with the snapshot of the calling query. Keeps the totals of all groups in memory.
 */
DP_FUNCTION(dp_rollup_check_documents);
Datum
dp_rollup_check_documents(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpDerivation *d;
	DpRollup *r;
	Visit visit = { 0 };
	DpGroup *group;
	StringInfoData sql;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	d = dp_derivation(dp_decl_find(PG_GETARG_OID(0), "rollup",
								   text_to_cstring(PG_GETARG_TEXT_PP(1))));
	r = d->state;
	if (!OidIsValid(d->target) || (r->time == NULL && !OidIsValid(r->tree)))
	{
		Datum values[4] = { 0,
							CStringGetTextDatum(OidIsValid(d->target) ? "tree" : "table of totals"),
							CStringGetTextDatum("present"), CStringGetTextDatum("missing") };
		bool nulls[4] = { true };

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		return (Datum) 0;
	}

	visit.r = r;
	visit.rsinfo = rsinfo;
	visit.batch = dp_derive_begin();
	visit.batch->check = true;
	dp_rollup_read_all(r, visit.batch, false, false);

	SPI_connect();
	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT t.doc FROM ");
	dp_sql_table(&sql, d->target);
	appendStringInfoString(&sql, " AS t");
	(void) dp_rollup_each(r, SPI_prepare(sql.data, 0, NULL), NULL, false, visit_target, &visit);
	SPI_finish();

	for (group = visit.batch->groups; group != NULL; group = group->next)
	{
		DpRollupGroup *state = group->state;

		if (!group->found && state != NULL && state->totals != NULL &&
			dp_accumulation_rows(state->totals) > 0)
			violation(rsinfo, &group->key, dp_rollup_head(r, &group->key), NULL);
	}
	MemoryContextDelete(dp_derive_memory(visit.batch));
	return (Datum) 0;
}

/* Compares a document of the target with its group. */
static bool
visit_target(void *arg, const DpSourceRow *row, const char *key, uint32 keylen)
{
	Visit *visit = arg;
	DpRollup *r = visit->r;
	DpValue id;
	DpGroup *group;
	DpRollupGroup *state;
	struct varlena *expected;
	struct varlena *whole;
	DpValue head;

	if (!dp_document_find(DP_DOC_DATA(row->doc), DP_DOC_SIZE(row->doc), "_id", 3, &id))
		return true;
	group = dp_derive_group(visit->batch, r->derivation, &id);
	state = group->state;
	if (group->found || state == NULL || state->totals == NULL)
	{
		group->found = true;
		violation(visit->rsinfo, &id, NULL, row->doc);
		return true;
	}
	group->found = true;
	expected = dp_rollup_head(r, &id);
	head = dp_value_of_document(expected);
	whole = dp_accumulation_write(state->totals, &head);
	if (whole != NULL)
		expected = whole;
	if (!dp_same_bytes(expected, row->doc))
		violation(visit->rsinfo, &id, expected, row->doc);
	return true;
}

/* Adds a row. */
static void
violation(ReturnSetInfo *rsinfo, const DpValue *key, struct varlena *expected,
		  struct varlena *found)
{
	Datum values[4];
	bool nulls[4] = { false };

	values[0] = PointerGetDatum(dp_value_to_varlena(key));
	values[1] = CStringGetTextDatum("document of totals");
	values[2] = CStringGetTextDatum(expected == NULL ? "absent"
									: found == NULL  ? "present"
													 : document_text(expected));
	values[3] = CStringGetTextDatum(found == NULL ? "missing" : document_text(found));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* Returns a document as text, cut. */
static char *
document_text(struct varlena *doc)
{
	Oid output;
	bool varlena;
	char *text;

	getTypeOutputInfo(dp_types()->bson, &output, &varlena);
	text = OidOutputFunctionCall(output, PointerGetDatum(doc));
	if (strlen(text) > 300)
		strcpy(text + pg_mbcliplen(text, strlen(text), 297), "...");
	return text;
}
