/*
 * calls.c
 *		The computed pattern: C functions that its SQL functions call.
 */
#include "postgres.h"

#include "executor/spi.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "kit/shard.h"
#include "kit/derive/batch.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "patterns/computed/computed.h"

static DpDerivation *computed_argument(FunctionCallInfo fcinfo);
static void
violation(ReturnSetInfo *rsinfo, const char *what, const char *expected, const char *found);
static char *value_text(const DpValue *value);

/*
 * _computed_fields(options, doc_column) -> (field, search, expression): compiles the fields,
 * filter and order of a declaration and raises their errors. For each field: how its new value is
 * searched after a necessary row was removed ('value', 'order', 'key' or null), and the index
 * expression for the search.
 */
DP_FUNCTION(dp_computed_fields);
Datum
dp_computed_fields(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	char *doc_column = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));
	DpAccumulators *acc;
	bool need_key;
	int i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0))
		return (Datum) 0;
	acc = dp_computed_compile(PG_GETARG_VARLENA_PP(0));
	need_key = dp_accumulators_need_key(acc);
	for (i = 0; i < dp_accumulators_count(acc); i++)
	{
		bool descending;
		bool not_null;
		Datum values[4];
		bool nulls[4] = { false };
		const char *search = NULL;

		switch (dp_accumulators_search(acc, i, &descending, &not_null))
		{
			case DP_SEARCH_NONE:
				break;
			case DP_SEARCH_VALUE:
				search = "value";
				break;
			case DP_SEARCH_ORDER:
				search = "order";
				break;
			case DP_SEARCH_KEY:
				search = "key";
				break;
		}
		values[0] = CStringGetTextDatum(dp_accumulators_name(acc, i));
		nulls[1] = search == NULL;
		if (search != NULL)
			values[1] = CStringGetTextDatum(search);
		nulls[2] = search == NULL || search[0] == 'k' || doc_column == NULL;
		if (!nulls[2])
			values[2] = CStringGetTextDatum(dp_accumulators_search_sql(acc, i, doc_column));
		values[3] = BoolGetDatum(need_key);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * _computed_strip(doc, options, fields) -> the document without the state of the fields and, if
 * fields is true, without the fields
 */
DP_FUNCTION(dp_computed_strip);
Datum
dp_computed_strip(PG_FUNCTION_ARGS)
{
	struct varlena *doc = PG_GETARG_VARLENA_PP(0);
	struct varlena *options = PG_GETARG_VARLENA_PP(1);
	DpValue value = dp_value_of_document(doc);
	struct varlena *result =
		dp_accumulators_strip(dp_computed_compile(options), &value, PG_GETARG_BOOL(2));

	PG_RETURN_POINTER(result != NULL ? result : doc);
}

/* Returns the derivation of the first two arguments, a table and a name. */
static DpDerivation *
computed_argument(FunctionCallInfo fcinfo)
{
	Oid rel = PG_GETARG_OID(0);
	DpDerivation *d;

	dp_require_owner(rel);
	d = dp_derivation(dp_decl_find(rel, "computed",
								   PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1))));
	if (!OidIsValid(d->source))
		ereport(
			ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the computed pattern \"%s\" of table \"%s\" has no source", d->decl->name,
					dp_relation_name(rel)),
			 errdetail(
				 "The source table or its triggers were dropped, or the mode is \"on_read\".")));
	return d;
}

/*
 * _computed_recompute(rel, name) -> bigint: computes all documents, in any mode; returns how many
 * were written
 */
DP_ROUTED_FUNCTION(dp_computed_recompute, DP_ROUTE_SUM, 0)
{
	DpDerivation *d = computed_argument(fcinfo);

	if (d->deferred)
	{
		DpQueue *queue = dp_queue_open(d->decl, "second_link_id");

		dp_queue_clear(queue);
		dp_queue_close(queue);
	}
	PG_RETURN_INT64(dp_derive_whole(list_make1(d), false, true));
}

/*
 * _computed_maintain(rel, name, most) -> bigint: processes entries of the queue; returns the number
 * of their groups
 */
DP_ROUTED_FUNCTION(dp_computed_maintain, DP_ROUTE_SUM, 0)
{
	DpDerivation *d = computed_argument(fcinfo);
	int32 most = PG_GETARG_INT32(2);
	DpQueue *queue;
	List *taken;
	ListCell *lc;
	DpDeriveBatch *batch;
	int64 keys = 0;

	if (!d->deferred)
		PG_RETURN_INT64(0);
	queue = dp_queue_open(d->decl, "second_link_id");
	taken = dp_queue_take(queue, NULL, most);
	dp_queue_close(queue);
	batch = dp_derive_begin();
	foreach(lc, taken)
	{
		DpQueued *q = lfirst(lc);
		DpValue key = dp_value_of_varlena(q->key);

		dp_derive_group(batch, d, &key)->recompute = true;
		keys++;
	}
	(void) dp_derive_end(batch, true);
	PG_RETURN_INT64(keys);
}

/* ---------------------------------------------------------------- checking */

/*
 * _computed_faults(rel, name, link, doc) -> (what, expected, found): compares a document with its
 * group, with the snapshot of the calling query
 */
DP_FUNCTION(dp_computed_faults);
Datum
dp_computed_faults(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpDerivation *d = computed_argument(fcinfo);
	DpComputed *c = d->state;
	DpValue link = dp_value_of_varlena(DP_GETARG_VARLENA(2));
	struct varlena *doc = DP_GETARG_VARLENA(3);
	DpAccumulation *g;
	DpValue target = dp_value_of_document(doc);
	struct varlena *right;
	bool reported = false;
	int i;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (link.type == DP_TYPE_NULL || link.type == DP_TYPE_UNDEFINED)
		return (Datum) 0;
	g = dp_accumulation_make(c->acc);
	SPI_connect();
	(void) dp_computed_scan(c, g, &link, false);
	SPI_finish();
	right = dp_accumulation_write(g, &target);
	if (right != NULL)
	{
		for (i = 0; i < dp_accumulators_count(c->acc); i++)
		{
			const char *name = dp_accumulators_name(c->acc, i);
			DpValue expected;
			DpValue found;
			bool has =
				dp_field_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), name, strlen(name), &found);

			if (!dp_field_find(DP_DOC_DATA(right), DP_DOC_SIZE(right), name, strlen(name),
							   &expected) ||
				(has && dp_value_identical(&expected, &found)))
				continue;
			violation(rsinfo, psprintf("field \"%s\"", name), value_text(&expected),
					  has ? value_text(&found) : "absent");
			reported = true;
		}
		if (!reported)
			violation(rsinfo, "state of the fields", "right", "wrong");
	}
	dp_accumulation_free(g);
	return (Datum) 0;
}

/* Adds a row. */
static void
violation(ReturnSetInfo *rsinfo, const char *what, const char *expected, const char *found)
{
	Datum values[3] = { CStringGetTextDatum(what), CStringGetTextDatum(expected),
						CStringGetTextDatum(found) };
	bool nulls[3] = { false };

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* Returns a value as text, cut at a hundred bytes. */
static char *
value_text(const DpValue *value)
{
	Datum datum = PointerGetDatum(dp_value_to_varlena(value));
	Oid output;
	bool varlena;
	char *text;

	getTypeOutputInfo(dp_types()->bson_value, &output, &varlena);
	text = OidOutputFunctionCall(output, datum);
	if (strlen(text) > 100)
		strcpy(text + pg_mbcliplen(text, strlen(text), 97), "...");
	return text;
}
