/*
 * fdw_documents.c
 *		The documents of a relation of measurements, shown by its view.
 *
 * The view <relation>_buckets lists groups and spans, packed or waiting, and calls
 * _bucket_documents() for each.  Waiting measurements are shown as if packed: in
 * the last bucket of their span if they fit, else in new ones.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/skey.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "patterns/bucket/fdw.h"
#include "types/bucket/document.h"

/* State between calls */
typedef struct Documents
{
	Oid relid;
	DpBucketDocument *document;
} Documents;

/* A bucket of the span */
typedef struct SpanPage
{
	Datum data;
	int seq;
	int count;
} SpanPage;

/* A group and span that is being shown */
typedef struct Span
{
	DpBucketRel *rel;
	Datum groups[INDEX_MAX_KEYS];
	bool nulls[INDEX_MAX_KEYS];
	int64 start; /* [start, until), unless pages */
	int64 until;
	List *pages; /* of SpanPage, by seq */
	DpBucketReader reader;
} Span;

static void require_select(DpBucketRel *rel);
static DpBucketDocument *document_of(FunctionCallInfo fcinfo, DpBucketRel *rel);
static DpBucketDocument *document_compile(DpBucketRel *rel);
static void span_packed(Span *span);
static void span_waiting(Span *span);
static void span_add(Span *span, struct varlena *bucket);
static int span_keys(Span *span, bool packed, ScanKeyData *keys);
static int compare_pages(const ListCell *a, const ListCell *b);

/*
 * _bucket_documents(rel, VARIADIC keys) -> (page, doc)
 *
 * The documents of a group and span: keys are the values of the group columns
 * and, unless the relation has pages, the beginning of the span.  Raises
 * INSUFFICIENT_PRIVILEGE unless the user may read the relation.
 */
DP_FUNCTION(dp_bucket_documents);
Datum
dp_bucket_documents(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpBucketRel *rel = dp_bucket_rel_for(PG_GETARG_OID(0), GetActiveSnapshot());
	Span span = { 0 };
	DpBucketDocument *document;
	ListCell *lc;
	int i;

	require_select(rel);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	document = document_of(fcinfo, rel);

	span.rel = rel;
	if (PG_NARGS() != 1 + rel->ngroups + (rel->time != NULL ? 1 : 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" has %d group columns", dp_bucket_rel_name(rel), rel->ngroups)));
	for (i = 0; i < rel->ngroups; i++)
	{
		if (get_fn_expr_argtype(fcinfo->flinfo, 1 + i) != rel->groups[i]->type)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("group column \"%s\" is of another type", rel->groups[i]->name)));
		span.nulls[i] = PG_ARGISNULL(1 + i);
		span.groups[i] = PG_GETARG_DATUM(1 + i);
	}
	if (rel->time != NULL)
	{
		if (PG_ARGISNULL(1 + i))
			return (Datum) 0;
		if (get_fn_expr_argtype(fcinfo->flinfo, 1 + i) != rel->time->type)
			ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
							errmsg("the time \"%s\" is of another type", rel->time->name)));
		span.start = PG_GETARG_INT64(1 + i);
		span.until = dp_bucket_rel_end(rel, span.start);
	}

	dp_bucket_reader_init(&span.reader, CurrentMemoryContext);
	span_packed(&span);
	span_waiting(&span);
	foreach(lc, span.pages)
	{
		SpanPage *page = lfirst(lc);
		Datum values[2];
		bool nulls[2] = { false };

		CHECK_FOR_INTERRUPTS();
		values[0] = Int32GetDatum(page->seq);
		values[1] =
			PointerGetDatum(dp_bucket_document_build(document, page->data, span.groups, span.nulls,
													 rel->time != NULL ? &span.start : NULL,
													 rel->time != NULL ? &span.until : NULL));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	dp_bucket_reader_free(&span.reader);
	return (Datum) 0;
}

/*
 * _bucket_span_start(rel, ts) -> the beginning of the time's span
 */
DP_FUNCTION(dp_bucket_span_start);
Datum
dp_bucket_span_start(PG_FUNCTION_ARGS)
{
	DpBucketRel *rel = dp_bucket_rel_for(PG_GETARG_OID(0), GetActiveSnapshot());

	if (rel->time == NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%s\" has no time", dp_bucket_rel_name(rel))));
	PG_RETURN_INT64(dp_bucket_rel_start(rel, PG_GETARG_INT64(1)));
}

/* _bucket_check_document(rel): raises errors in the template */
DP_FUNCTION(dp_bucket_check_document);
Datum
dp_bucket_check_document(PG_FUNCTION_ARGS)
{
	(void) document_compile(dp_bucket_rel(PG_GETARG_OID(0), false));
	PG_RETURN_VOID();
}

/* Requires SELECT on all columns of the relation. */
static void
require_select(DpBucketRel *rel)
{
	if (pg_class_aclcheck(rel->relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		pg_attribute_aclcheck_all(rel->relid, GetUserId(), ACL_SELECT, ACLMASK_ALL) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FOREIGN_TABLE, get_rel_name(rel->relid));
}

/* The relation's document, compiled once in a query. */
static DpBucketDocument *
document_of(FunctionCallInfo fcinfo, DpBucketRel *rel)
{
	Documents *kept = fcinfo->flinfo->fn_extra;
	MemoryContext old;

	if (kept != NULL && kept->relid == rel->relid)
		return kept->document;
	old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
	kept = palloc(sizeof(Documents));
	kept->relid = rel->relid;
	kept->document = document_compile(rel);
	MemoryContextSwitchTo(old);
	fcinfo->flinfo->fn_extra = kept;
	return kept->document;
}

/* Compile it, in the current context. */
static DpBucketDocument *
document_compile(DpBucketRel *rel)
{
	DpBucketDocumentDef def = { 0 };
	const char **groups = palloc(sizeof(char *) * Max(rel->ngroups, 1));
	const char **values = palloc(sizeof(char *) * Max(rel->nvalues, 1));
	Oid *types = palloc(sizeof(Oid) * Max(rel->ngroups, 1));
	struct varlena *options = rel->decl->options;
	char *end_date = dp_decl_text(rel->decl, "end_date");
	DpValue template;
	int i;

	for (i = 0; i < rel->ngroups; i++)
	{
		groups[i] = rel->groups[i]->name;
		types[i] = rel->groups[i]->type;
	}
	for (i = 0; i < rel->nvalues; i++)
		values[i] = rel->values[i]->name;
	def.ngroups = rel->ngroups;
	def.groups = groups;
	def.group_types = types;
	def.nvalues = rel->nvalues;
	def.values = values;
	/* of a column of documents alone the fields are columns of the bucket */
	def.values_known =
		rel->nvalues != 1 || dp_bucket_kind(rel->values[0]->type) != DP_PACKED_DOCUMENT;
	def.time = rel->time != NULL ? rel->time->name : NULL;
	if (dp_option_value(options, "document", DP_TYPE_DOCUMENT, &template))
		def.template = &template;
	def.end_exclusive = end_date != NULL && strcmp(end_date, "exclusive") == 0;
	return dp_bucket_document_compile(&def);
}

/* The buckets of the span. */
static void
span_packed(Span *span)
{
	DpBucketRel *rel = span->rel;
	Relation packed = table_open(rel->packed, AccessShareLock);
	Relation index;
	ScanKeyData keys[INDEX_MAX_KEYS + 2];
	IndexScanDesc scan;
	TupleTableSlot *slot;
	int nkeys;

	if (!OidIsValid(rel->packed_index) || !OidIsValid(rel->recent_index))
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("an index of \"%s\" is missing", dp_bucket_rel_name(rel))));
	index = index_open(rel->packed_index, AccessShareLock);
	nkeys = span_keys(span, true, keys);
	slot = table_slot_create(packed, NULL);
	scan = dp_index_beginscan(packed, index, GetActiveSnapshot(), nkeys);
	index_rescan(scan, keys, nkeys, NULL, 0);
	while (index_getnext_slot(scan, ForwardScanDirection, slot))
	{
		SpanPage *page = palloc(sizeof(SpanPage));

		slot_getallattrs(slot);
		page->data = datumCopy(slot->tts_values[rel->packed_data - 1], false, -1);
		page->seq = DatumGetInt32(slot->tts_values[rel->packed_seq - 1]);
		dp_bucket_open(&span->reader, page->data);
		page->count = span->reader.count;
		span->pages = lappend(span->pages, page);
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, NoLock);
	table_close(packed, NoLock);
	list_sort(span->pages, compare_pages);
}

/* Adds waiting measurements to the buckets. */
static void
span_waiting(Span *span)
{
	DpBucketRel *rel = span->rel;
	Relation recent = table_open(rel->recent, AccessShareLock);
	Relation index = index_open(rel->recent_index, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(recent, NULL);
	ScanKeyData keys[INDEX_MAX_KEYS + 2];
	int nkeys = span_keys(span, false, keys);
	IndexScanDesc scan = dp_index_beginscan(recent, index, GetActiveSnapshot(), nkeys);
	DpBucketBuilder *builder = NULL;
	Datum *values = palloc0(sizeof(Datum) * Max(rel->nvalues, 1));
	bool *nulls = palloc0(sizeof(bool) * Max(rel->nvalues, 1));
	SpanPage *last = span->pages != NIL ? llast(span->pages) : NULL;
	bool several = false;
	int i;

	index_rescan(scan, keys, nkeys, NULL, 0);
	while (index_getnext_slot(scan, ForwardScanDirection, slot))
	{
		int64 time = 0;

		CHECK_FOR_INTERRUPTS();
		if (builder == NULL)
		{
			DpPackedColumnDef *defs = palloc0(sizeof(DpPackedColumnDef) * Max(rel->nvalues, 1));

			for (i = 0; i < rel->nvalues; i++)
			{
				defs[i].typid = rel->values[i]->type;
				defs[i].split = defs[i].typid == dp_types()->bson;
			}
			builder = dp_bucket_builder_create(CurrentMemoryContext,
											   rel->time == NULL ? DP_BUCKET_TIMELESS : 0,
											   rel->nvalues, defs);
			/* a page is filled before the next one begins */
			if (rel->time == NULL && last != NULL && last->count < rel->max_count)
			{
				dp_bucket_open(&span->reader, last->data);
				dp_bucket_append_bucket(builder, &span->reader, 0, last->count);
				span->pages = list_delete_last(span->pages);
			}
		}
		if (dp_bucket_builder_count(builder) >= rel->max_count)
		{
			span_add(span, dp_bucket_builder_finish(builder));
			dp_bucket_builder_reset(builder);
			several = true;
		}
		slot_getallattrs(slot);
		if (rel->time != NULL)
			time = DatumGetInt64(slot->tts_values[rel->time->recent - 1]);
		for (i = 0; i < rel->nvalues; i++)
		{
			values[i] = slot->tts_values[rel->values[i]->recent - 1];
			nulls[i] = slot->tts_isnull[rel->values[i]->recent - 1];
		}
		dp_bucket_append(builder, time, values, nulls);
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index, NoLock);
	table_close(recent, NoLock);

	if (builder == NULL)
		return;
	if (rel->time != NULL && !several && last != NULL &&
		last->count + dp_bucket_builder_count(builder) <= rel->max_count)
	{
		Datum both[2];

		both[0] = last->data;
		both[1] = PointerGetDatum(dp_bucket_builder_finish(builder));
		last->data = PointerGetDatum(dp_bucket_merge(both, 2));
	}
	else
		span_add(span, dp_bucket_builder_finish(builder));
	dp_bucket_builder_free(builder);
}

/* One more bucket at the end. */
static void
span_add(Span *span, struct varlena *bucket)
{
	SpanPage *page = palloc0(sizeof(SpanPage));

	page->data = PointerGetDatum(bucket);
	page->seq = span->pages != NIL ? ((SpanPage *) llast(span->pages))->seq + 1 : 1;
	span->pages = lappend(span->pages, page);
}

/* Keys of the group and span for one of the indexes; their number. */
static int
span_keys(Span *span, bool packed, ScanKeyData *keys)
{
	DpBucketRel *rel = span->rel;
	bool zoned = rel->time != NULL && rel->time->type == TIMESTAMPTZOID;
	int n;

	for (n = 0; n < rel->ngroups; n++)
	{
		if (span->nulls[n])
			ScanKeyEntryInitialize(&keys[n], SK_ISNULL | SK_SEARCHNULL, n + 1, InvalidStrategy,
								   InvalidOid, InvalidOid, InvalidOid, (Datum) 0);
		else
			ScanKeyEntryInitialize(&keys[n], 0, n + 1, BTEqualStrategyNumber, InvalidOid,
								   rel->groups[n]->collation, get_opcode(rel->groups[n]->eqop),
								   span->groups[n]);
	}
	if (rel->time == NULL)
		return n;
	if (packed)
	{
		ScanKeyInit(&keys[n], n + 1, BTEqualStrategyNumber,
					zoned ? F_TIMESTAMPTZ_EQ : F_TIMESTAMP_EQ, Int64GetDatum(span->start));
		return n + 1;
	}
	ScanKeyInit(&keys[n], n + 1, BTGreaterEqualStrategyNumber,
				zoned ? F_TIMESTAMPTZ_GE : F_TIMESTAMP_GE, Int64GetDatum(span->start));
	ScanKeyInit(&keys[n + 1], n + 1, BTLessStrategyNumber,
				zoned ? F_TIMESTAMPTZ_LT : F_TIMESTAMP_LT, Int64GetDatum(span->until));
	return n + 2;
}

/* Buckets by their number. */
static int
compare_pages(const ListCell *a, const ListCell *b)
{
	int x = ((SpanPage *) lfirst(a))->seq;
	int y = ((SpanPage *) lfirst(b))->seq;

	return x < y ? -1 : x > y;
}
