/*
 * rel.c
 *		The description of a relation of measurements: its columns, the underlying
 *		tables, its spans and limits.
 *
 * It is read from the declaration (the main trigger) and the three relations, and
 * cached per backend until one of them changes.  An outdated one is only freed when
 * the transaction ends, because a scan may be using it.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "common/int.h"
#include "executor/spi.h"
#include "foreign/foreign.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "bson/catalog.h"
#include "bson/reader.h"
#include "kit/depend.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/rows/lookup.h"
#include "kit/statement.h"
#include "mql/pipeline/row.h"
#include "patterns/bucket/fdw.h"

typedef struct RelEntry
{
	Oid relid; /* hash key */
	bool valid;
	DpBucketRel *rel;
	MemoryContext context;
} RelEntry;

/*
 * So often a relation is looked at at once that changes meanwhile; then it is taken as it is, and
 * looked at again next time
 */
#define READ_TRIES 5

static void bucket_init(void);
static bool has_documents(Oid relid);
static void bucket_depend(Oid relid);
static void bucket_columns_altered(Oid relid);

static const DpOption options[] = {
	{ "group_by", DP_OPTION_TEXTS, DP_REQUIRED },
	{ "time_field", DP_OPTION_TEXT },
	{ "span", DP_OPTION_INTERVAL, DP_ALTERABLE },
	{ "time_zone", DP_OPTION_TEXT, .with = "time_field" },
	{ "origin", DP_OPTION_TEXT },
	{ "granularity", DP_OPTION_INTERVAL },
	{ "same_slot", DP_OPTION_WORD, DP_ALTERABLE, DP_WORDS("refuse", "replace", "add", "keep"),
	  .with = "granularity", .dflt = "refuse", DP_INTO(DpBucketRel, same_slot) },
	{ "max_count", DP_OPTION_INT, DP_REQUIRED | DP_ALTERABLE, DP_BETWEEN(1, 65534),
	  DP_INTO(DpBucketRel, max_count) },
	{ "max_bytes", DP_OPTION_INT, DP_REQUIRED | DP_ALTERABLE, DP_BETWEEN(1000, 100000000),
	  DP_INTO(DpBucketRel, max_bytes) },
	{ "document", DP_OPTION_DOCUMENT },
	{ "pack_after", DP_OPTION_INTERVAL, DP_ALTERABLE },
	{ "retain", DP_OPTION_INTERVAL, DP_ALTERABLE },
	{ "end_date", DP_OPTION_WORD, DP_REQUIRED, DP_WORDS("inclusive", "exclusive") },
	{ "group_at", DP_OPTION_ANY },
	{ "time_at", DP_OPTION_INT },
	{ "doc_at", DP_OPTION_INT },
	{ NULL }
};

DP_DEFINE_PATTERN(bucket) = { .name = "bucket",
							  .creator = "bucket_create",
							  .init = bucket_init,
							  .views = "buckets",
							  .options = options,
							  .creates_table = true,
							  .waiting = "second_link_id",
							  .depend = bucket_depend,
							  .columns_altered = bucket_columns_altered };

static void
bucket_init(void)
{
	dp_documents_hook = has_documents;
}

/* For dp_documents_hook. */
static bool
has_documents(Oid relid)
{
	DpBucketRel *rel = dp_bucket_rel(relid, true);

	return rel != NULL && rel->doc != NULL;
}

/* The view of a relation's buckets is dropped with it. */
static void
bucket_depend(Oid relid)
{
	Oid types[] = { REGCLASSOID };
	Datum values[] = { ObjectIdGetDatum(relid) };
	bool isnull;
	Datum view;

	if (get_rel_relkind(relid) != RELKIND_FOREIGN_TABLE)
		return;
	SPI_connect();
	if (SPI_execute_with_args("SELECT docpatterns._bucket_view($1)", 1, types, values, NULL, true,
							  1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "could not look for the view of relation %u", relid);
	view = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	SPI_finish();
	if (!isnull)
		dp_depend(RelationRelationId, DatumGetObjectId(view), RelationRelationId, relid,
				  DEPENDENCY_AUTO);
}

static void
bucket_columns_altered(Oid relid)
{
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					errmsg("cannot change the columns of \"%s\", which are those of its buckets",
						   dp_relation_name(relid)),
					errhint("Add one with bucket_add_column().")));
}

static HTAB *entries = NULL;

static void cache_init(void);
static void relation_invalidated(Datum arg, Oid relid);
static DpBucketRel *rel_make(Oid relid, DpDecl *decl);
static void rel_declared(DpBucketRel *rel, Relation main);
static bool newer_than(const DpBucketRel *rel, Snapshot snapshot);
static void rel_columns(DpBucketRel *rel, Relation main);
static void rel_roles(DpBucketRel *rel);
static void rel_documents(DpBucketRel *rel);
static void rel_packed(DpBucketRel *rel);
static void rel_recent(DpBucketRel *rel);
static void rel_spans(DpBucketRel *rel);
static void rel_limits(DpBucketRel *rel);
static Oid side_find(DpBucketRel *rel, const char *option);
static AttrNumber *live_columns(TupleDesc desc, int *n);
static Oid index_find(Relation rel, const AttrNumber *attnums, int n, Oid *eqops);
static void interval_option(DpDecl *decl, const char *option, Interval *result);
static int64 interval_fixed(const Interval *interval);
static int position_option(DpDecl *decl, const char *option, int nth);
static void mismatch(DpBucketRel *rel, Oid side) pg_attribute_noreturn();

/*
 * The description of a relation.
 */
DpBucketRel *
dp_bucket_rel(Oid relid, bool missing_ok)
{
	RelEntry *entry;
	DpDecl *decl;
	ListCell *lc;
	MemoryContext context;
	MemoryContext old;
	DpBucketRel *rel;
	uint64 before;
	int tries;
	bool found;

	cache_init();
	entry = hash_search(entries, &relid, HASH_FIND, NULL);
	if (likely(entry != NULL && entry->valid))
		return entry->rel;

	/* invalidations may arrive while it is read */
	for (tries = 1;; tries++)
	{
		before = dp_schema_generation();
		decl = NULL;
		if (get_rel_relkind(relid) == RELKIND_FOREIGN_TABLE)
		{
			foreach(lc, dp_decls(relid))
			{
				if (strcmp(((DpDecl *) lfirst(lc))->pattern, "bucket") == 0)
					decl = lfirst(lc);
			}
		}
		if (decl == NULL)
		{
			if (missing_ok)
				return NULL;
			ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
							errmsg("\"%s\" is not a relation of buckets", dp_relation_name(relid)),
							errhint("Create one with bucket_create().")));
		}

		context = AllocSetContextCreate(CurrentMemoryContext, "docpatterns bucket relation",
										ALLOCSET_SMALL_SIZES);
		old = MemoryContextSwitchTo(context);
		rel = rel_make(relid, decl);
		MemoryContextSwitchTo(old);
		if (dp_schema_generation() == before || tries == READ_TRIES)
			break;
		MemoryContextDelete(context);
	}

	entry = hash_search(entries, &relid, HASH_ENTER, &found);
	if (found && entry->context != NULL)
		dp_bury(entry->context);
	MemoryContextSetParent(context, CacheMemoryContext);
	entry->context = context;
	entry->rel = rel;
	entry->valid = dp_schema_generation() == before;
	return rel;
}

/*
 * The relation's name for messages.
 */
char *
dp_bucket_rel_name(const DpBucketRel *rel)
{
	return dp_relation_name(rel->relid);
}

/* Returns the beginning of the span of a time. */
int64
dp_bucket_rel_start(DpBucketRel *rel, int64 time)
{
	if (likely(rel->span_us > 0 && !TIMESTAMP_NOT_FINITE(time)))
	{
		int64 offset;
		int64 start;

		if (likely(!pg_sub_s64_overflow(time, rel->span_origin, &offset)))
		{
			offset %= rel->span_us;
			if (offset < 0)
				offset += rel->span_us;
			if (likely(!pg_sub_s64_overflow(time, offset, &start) && start >= MIN_TIMESTAMP))
				return start;
		}
	}
	return dp_span_start(&rel->calendar, time, NULL);
}

/*
 * Returns the beginning of the next span after the one that begins at start; the end of the
 * calendar if there is none.
 */
int64
dp_bucket_rel_end(DpBucketRel *rel, int64 start)
{
	int64 end;

	if (likely(rel->span_us > 0))
	{
		if (pg_add_s64_overflow(start, rel->span_us, &end))
			end = END_TIMESTAMP;
		return end;
	}
	(void) dp_span_start(&rel->calendar, start, &end);
	return end;
}

/*
 * Returns the description that a snapshot shows.  Changing the spans of a relation does not block
 * readers, so a query's snapshot may show new buckets before this backend has processed the
 * invalidation: that happens when a lock is taken, and a transaction is visible before it is sent.
 */
DpBucketRel *
dp_bucket_rel_for(Oid relid, Snapshot snapshot)
{
	DpBucketRel *rel = dp_bucket_rel(relid, false);
	int tries;

	for (tries = 0; !dp_bucket_rel_seen(rel, snapshot); tries++)
	{
		if (tries > 1 || newer_than(rel, snapshot))
			ereport(
				ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a new declaration of \"%s\"",
						dp_bucket_rel_name(rel)),
				 errdetail(
					 "The relation was created, or its spans or limits were changed, after the transaction's snapshot was taken.")));
		if (tries > 0)
			InvalidateSystemCaches();
		rel = dp_bucket_rel(relid, false);
	}
	return rel;
}

/*
 * Whether a snapshot sees the declaration.
 */
bool
dp_bucket_rel_seen(DpBucketRel *rel, Snapshot snapshot)
{
	Relation triggers;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	bool seen;

	if (snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC ||
		TransactionIdIsCurrentTransactionId(rel->declared_by))
		return true;
	/* between the same bounds the same transactions are running */
	if (TransactionIdIsValid(rel->seen_xmax) && rel->seen_xmax == snapshot->xmax &&
		rel->seen_xmin == snapshot->xmin && rel->seen_xcnt == snapshot->xcnt &&
		rel->seen_subxcnt == snapshot->subxcnt)
		return true;
	if (!rel->declaration_known || newer_than(rel, snapshot))
		return false;

	triggers = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(rel->declaration));
	scan = systable_beginscan(triggers, TriggerOidIndexId, true, snapshot, 1, &key);
	tuple = systable_getnext(scan);
	seen = HeapTupleIsValid(tuple) && HeapTupleHeaderGetRawXmin(tuple->t_data) == rel->declared_raw;
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);
	if (seen)
	{
		if (TransactionIdIsNormal(rel->declared_by) &&
			TransactionIdPrecedes(rel->declared_by, snapshot->xmin))
			rel->declared_by = InvalidTransactionId;
		rel->seen_xmin = snapshot->xmin;
		rel->seen_xmax = snapshot->xmax;
		rel->seen_xcnt = snapshot->xcnt;
		rel->seen_subxcnt = snapshot->subxcnt;
	}
	return seen;
}

/* Returns whether the relation was declared after the snapshot was taken. */
static bool
newer_than(const DpBucketRel *rel, Snapshot snapshot)
{
	return TransactionIdIsNormal(rel->declared_by) &&
		   !TransactionIdIsCurrentTransactionId(rel->declared_by) &&
		   XidInMVCCSnapshot(rel->declared_by, snapshot);
}

/* Creates the cache and registers for invalidations, once per backend. */
static void
cache_init(void)
{
	HASHCTL ctl;
	HTAB *made;

	if (entries != NULL)
		return;
	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(RelEntry);
	ctl.hcxt = CacheMemoryContext;
	made = hash_create("docpatterns bucket relations", 16, &ctl,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	entries = made;
	dp_on_relation_change(relation_invalidated);
}

/* One of the relations has changed, or all have. */
static void
relation_invalidated(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS seq;
	RelEntry *entry;

	hash_seq_init(&seq, entries);
	while ((entry = hash_seq_search(&seq)) != NULL)
	{
		if (!OidIsValid(relid) || entry->relid == relid || !entry->valid ||
			entry->rel->packed == relid || entry->rel->recent == relid)
			entry->valid = false;
	}
}

/* Make a description in the current context. */
static DpBucketRel *
rel_make(Oid relid, DpDecl *decl)
{
	DpBucketRel *rel = palloc0(sizeof(DpBucketRel));
	Relation main = table_open(relid, AccessShareLock);

	rel->relid = relid;
	rel->decl = decl;
	rel->owner = main->rd_rel->relowner;
	rel_declared(rel, main);
	rel_columns(rel, main);
	table_close(main, NoLock);
	rel_roles(rel);
	rel_documents(rel);

	rel->packed = side_find(rel, "link_id");
	rel->recent = side_find(rel, "second_link_id");
	rel_packed(rel);
	rel_recent(rel);
	rel_spans(rel);
	rel_limits(rel);
	return rel;
}

/*
 * Returns the main trigger, and the transaction that wrote its row, both unset if the row is newer
 * than the backend's cache.
 */
static void
rel_declared(DpBucketRel *rel, Relation main)
{
	Relation triggers = table_open(TriggerRelationId, AccessShareLock);
	TriggerDesc *described = dp_triggers(main);
	int i;

	for (i = 0; i < described->numtriggers; i++)
	{
		const Trigger *trigger = &described->triggers[i];
		ScanKeyData key;
		SysScanDesc scan;
		HeapTuple tuple;

		if (trigger->tgnargs != 1 || strcmp(trigger->tgargs[0], rel->decl->declared) != 0)
			continue;
		ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
					ObjectIdGetDatum(trigger->tgoid));
		scan = systable_beginscan(triggers, TriggerOidIndexId, true, NULL, 1, &key);
		tuple = systable_getnext(scan);
		if (HeapTupleIsValid(tuple))
		{
			TransactionId xmin = HeapTupleHeaderGetXmin(tuple->t_data);
			bool isnull;
			Datum arguments =
				heap_getattr(tuple, Anum_pg_trigger_tgargs, RelationGetDescr(triggers), &isnull);
			Size len = strlen(trigger->tgargs[0]) + 1;
			struct varlena *bytes = isnull ? NULL : PG_DETOAST_DATUM_PACKED(arguments);

			if (bytes != NULL && VARSIZE_ANY_EXHDR(bytes) == len &&
				memcmp(VARDATA_ANY(bytes), trigger->tgargs[0], len) == 0)
			{
				rel->declaration_known = true;
				rel->declaration = trigger->tgoid;
				rel->declared_raw = HeapTupleHeaderGetRawXmin(tuple->t_data);
				rel->declared_by = TransactionIdIsNormal(xmin) ? xmin : InvalidTransactionId;
			}
		}
		systable_endscan(scan);
	}
	table_close(triggers, AccessShareLock);
}

/* The columns of the relation, without their roles. */
static void
rel_columns(DpBucketRel *rel, Relation main)
{
	TupleDesc desc = RelationGetDescr(main);
	int i;

	rel->natts = desc->natts;
	rel->columns = palloc0(sizeof(DpBucketColumn) * Max(desc->natts, 1));
	rel->by_attnum = palloc0(sizeof(DpBucketColumn *) * Max(desc->natts, 1));
	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		DpBucketColumn *column;

		if (att->attisdropped)
			continue;
		column = &rel->columns[rel->ncolumns++];
		rel->by_attnum[i] = column;
		column->attnum = att->attnum;
		column->name = pstrdup(NameStr(att->attname));
		column->type = att->atttypid;
		column->typmod = att->atttypmod;
		column->collation = att->attcollation;
		column->typlen = att->attlen;
		column->typbyval = att->attbyval;
		column->typalign = att->attalign;
	}
}

/* Which columns are the group and the time; the others are measured. */
static void
rel_roles(DpBucketRel *rel)
{
	DpDecl *decl = rel->decl;
	int position;
	int i;

	for (i = 0; i < rel->ncolumns; i++)
		rel->columns[i].role = DP_BUCKET_VALUE;

	rel->groups = palloc0(sizeof(DpBucketColumn *) * Max(rel->ncolumns, 1));
	while ((position = position_option(decl, "group_at", rel->ngroups)) > 0)
	{
		if (position > rel->ncolumns || rel->columns[position - 1].role != DP_BUCKET_VALUE)
			mismatch(rel, rel->relid);
		rel->groups[rel->ngroups] = &rel->columns[position - 1];
		rel->groups[rel->ngroups]->role = DP_BUCKET_GROUP;
		rel->groups[rel->ngroups]->number = rel->ngroups;
		rel->ngroups++;
	}

	position = position_option(decl, "time_at", 0);
	if (position > 0)
	{
		if (position > rel->ncolumns || rel->columns[position - 1].role != DP_BUCKET_VALUE)
			mismatch(rel, rel->relid);
		rel->time = &rel->columns[position - 1];
		rel->time->role = DP_BUCKET_TIME;
		if (rel->time->type != TIMESTAMPTZOID && rel->time->type != TIMESTAMPOID)
			mismatch(rel, rel->relid);
	}

	rel->values = palloc0(sizeof(DpBucketColumn *) * Max(rel->ncolumns, 1));
	for (i = 0; i < rel->ncolumns; i++)
	{
		if (rel->columns[i].role != DP_BUCKET_VALUE)
			continue;
		rel->columns[i].number = rel->nvalues;
		rel->values[rel->nvalues++] = &rel->columns[i];
	}
}

/* The column of documents, and the fields that the others follow. */
static void
rel_documents(DpBucketRel *rel)
{
	int position = position_option(rel->decl, "doc_at", 0);
	DpValue group_by;
	DpIter iter;
	DpValue field;
	int n = 0;

	if (position == 0)
		return;
	if (position > rel->ncolumns || rel->time == NULL ||
		rel->columns[position - 1].role != DP_BUCKET_VALUE ||
		rel->columns[position - 1].type != dp_types()->bson)
		mismatch(rel, rel->relid);
	for (int i = 0; i < rel->ngroups; i++)
		if (rel->groups[i]->type != dp_types()->bson_value)
			mismatch(rel, rel->relid);
	rel->doc = &rel->columns[position - 1];
	if (!dp_option_value(rel->decl->options, "time_field", DP_TYPE_STRING, &field) ||
		!dp_option_value(rel->decl->options, "group_by", DP_TYPE_ARRAY, &group_by))
		mismatch(rel, rel->relid);
	rel->time_path = dp_path_parse(DP_STRING_DATA(&field), DP_STRING_LEN(&field));
	rel->group_paths = palloc(sizeof(DpPath *) * Max(rel->ngroups, 1));
	dp_iter_init_value(&iter, &group_by);
	while (n < rel->ngroups && dp_iter_next_value(&iter, &field))
		rel->group_paths[n++] = dp_path_parse(DP_STRING_DATA(&field), DP_STRING_LEN(&field));
	if (n != rel->ngroups)
		mismatch(rel, rel->relid);
}

/* The table of buckets and its index. */
static void
rel_packed(DpBucketRel *rel)
{
	Relation packed = table_open(rel->packed, AccessShareLock);
	TupleDesc desc = RelationGetDescr(packed);
	AttrNumber *attnums;
	AttrNumber keys[INDEX_MAX_KEYS];
	Oid eqops[INDEX_MAX_KEYS];
	int n;
	int i;

	attnums = live_columns(desc, &n);
	if (n != rel->ngroups + (rel->time != NULL ? 3 : 2) || rel->ngroups >= INDEX_MAX_KEYS)
		mismatch(rel, rel->packed);
	for (i = 0; i < rel->ngroups; i++)
	{
		if (TupleDescAttr(desc, attnums[i] - 1)->atttypid != rel->groups[i]->type)
			mismatch(rel, rel->packed);
		rel->groups[i]->packed = attnums[i];
		keys[i] = attnums[i];
	}
	rel->packed_seq = attnums[i++];
	if (rel->time != NULL)
	{
		rel->packed_start = attnums[i++];
		if (TupleDescAttr(desc, rel->packed_start - 1)->atttypid != rel->time->type)
			mismatch(rel, rel->packed);
	}
	rel->packed_data = attnums[i];
	if (TupleDescAttr(desc, rel->packed_seq - 1)->atttypid != INT4OID ||
		TupleDescAttr(desc, rel->packed_data - 1)->attlen != -1)
		mismatch(rel, rel->packed);

	keys[rel->ngroups] = rel->time != NULL ? rel->packed_start : rel->packed_seq;
	rel->packed_index = index_find(packed, keys, rel->ngroups + 1, eqops);
	if (OidIsValid(rel->packed_index))
	{
		for (i = 0; i < rel->ngroups; i++)
			rel->groups[i]->eqop = eqops[i];
		if (rel->time != NULL)
			rel->time->eqop = eqops[i];
	}
	table_close(packed, NoLock);
}

/* The table of waiting measurements and its index. */
static void
rel_recent(DpBucketRel *rel)
{
	Relation recent = table_open(rel->recent, AccessShareLock);
	TupleDesc desc = RelationGetDescr(recent);
	AttrNumber *attnums;
	AttrNumber keys[INDEX_MAX_KEYS];
	int n;
	int i;

	attnums = live_columns(desc, &n);
	if (n != rel->ncolumns + (rel->time != NULL ? 0 : 1))
		mismatch(rel, rel->recent);
	for (i = 0; i < rel->ncolumns; i++)
	{
		if (TupleDescAttr(desc, attnums[i] - 1)->atttypid != rel->columns[i].type)
			mismatch(rel, rel->recent);
		rel->columns[i].recent = attnums[i];
	}
	if (rel->time == NULL)
	{
		rel->recent_arrived = attnums[i];
		if (TupleDescAttr(desc, rel->recent_arrived - 1)->atttypid != INT8OID)
			mismatch(rel, rel->recent);
	}

	for (i = 0; i < rel->ngroups; i++)
		keys[i] = rel->groups[i]->recent;
	keys[i] = rel->time != NULL ? rel->time->recent : rel->recent_arrived;
	rel->recent_index = index_find(recent, keys, rel->ngroups + 1, NULL);
	table_close(recent, NoLock);
}

/* The spans. */
static void
rel_spans(DpBucketRel *rel)
{
	char *text = dp_decl_text(rel->decl, "origin");
	bool zoned = rel->time != NULL && rel->time->type == TIMESTAMPTZOID;
	TimestampTz origin = 0;

	if (rel->time == NULL)
		return;
	rel->time_zone = dp_decl_text(rel->decl, "time_zone");
	interval_option(rel->decl, "span", &rel->span);
	if (text != NULL)
		origin = DatumGetTimestampTz(DirectFunctionCall3(zoned ? timestamptz_in : timestamp_in,
														 CStringGetDatum(text),
														 ObjectIdGetDatum(InvalidOid),
														 Int32GetDatum(-1)));
	if (!zoned || rel->time_zone == NULL)
		dp_span_init(&rel->calendar, &rel->span, text != NULL ? &origin : NULL, NULL, 0);
	else
		dp_span_init(&rel->calendar, &rel->span, text != NULL ? &origin : NULL, rel->time_zone,
					 strlen(rel->time_zone));
	if (rel->calendar.is_fixed && rel->calendar.kind != DP_SPAN_MONTHS)
	{
		rel->span_us = rel->calendar.step;
		rel->span_origin = dp_span_start(&rel->calendar, 0, NULL);
	}
}

/* Limits and slots. */
static void
rel_limits(DpBucketRel *rel)
{
	/* the words are those of DpBucketSameSlot but for the first */
	rel->same_slot = -1;
	dp_options_read(rel->decl, rel);
	rel->same_slot++;
	interval_option(rel->decl, "granularity", &rel->granularity);
	if (rel->granularity.month == 0)
		rel->granularity_us = interval_fixed(&rel->granularity);
}

/* Returns one of the two tables, by the option with its link ID. */
static Oid
side_find(DpBucketRel *rel, const char *option)
{
	char *link_id = dp_decl_text(rel->decl, option);
	Oid side = link_id != NULL ? dp_link_side(link_id, rel->relid) : InvalidOid;

	if (!OidIsValid(side))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a table that belongs to \"%s\" is missing", dp_bucket_rel_name(rel)),
				 errdetail("The table of %s was dropped, lost its triggers, or has another owner.",
						   strcmp(option, "link_id") == 0 ? "buckets" : "waiting measurements")));
	return side;
}

/* The columns that are not dropped, and how many they are. */
static AttrNumber *
live_columns(TupleDesc desc, int *n)
{
	AttrNumber *result = palloc(sizeof(AttrNumber) * Max(desc->natts, 1));
	int i;

	*n = 0;
	for (i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			result[(*n)++] = i + 1;
	}
	return result;
}

/*
 * A plain btree on exactly these columns, ascending with nulls last, by the
 * default operators; InvalidOid if there is none.
 */
static Oid
index_find(Relation rel, const AttrNumber *attnums, int n, Oid *eqops)
{
	List *indexes = RelationGetIndexList(rel);
	ListCell *lc;
	Oid result = InvalidOid;

	foreach(lc, indexes)
	{
		Relation index = index_open(lfirst_oid(lc), AccessShareLock);
		bool fits = index->rd_rel->relam == BTREE_AM_OID && index->rd_index->indisvalid &&
					IndexRelationGetNumberOfKeyAttributes(index) >= n &&
					RelationGetIndexExpressions(index) == NIL &&
					RelationGetIndexPredicate(index) == NIL;
		int i;

		for (i = 0; fits && i < n; i++)
			fits = index->rd_index->indkey.values[i] == attnums[i] && index->rd_indoption[i] == 0 &&
				   index->rd_indcollation[i] ==
					   TupleDescAttr(RelationGetDescr(rel), attnums[i] - 1)->attcollation;
		if (fits)
		{
			result = lfirst_oid(lc);
			for (i = 0; eqops != NULL && i < n; i++)
				eqops[i] = get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i],
											   index->rd_opcintype[i], BTEqualStrategyNumber);
		}
		index_close(index, NoLock);
		if (fits)
			break;
	}
	list_free(indexes);
	return result;
}

/* An option that is an interval; all zero if absent. */
static void
interval_option(DpDecl *decl, const char *option, Interval *result)
{
	char *text = dp_decl_text(decl, option);

	memset(result, 0, sizeof(Interval));
	if (text != NULL)
		*result = *DatumGetIntervalP(DirectFunctionCall3(interval_in, CStringGetDatum(text),
														 ObjectIdGetDatum(InvalidOid),
														 Int32GetDatum(-1)));
}

/* Days and time of an interval, in microseconds. */
static int64
interval_fixed(const Interval *interval)
{
	int64 days;
	int64 result;

	if (pg_mul_s64_overflow(interval->day, USECS_PER_DAY, &days) ||
		pg_add_s64_overflow(days, interval->time, &result) || result > PG_INT64_MAX / 4)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE), errmsg("interval out of range")));
	return result;
}

/* The nth number (from 0) of an option that is an array of positions; 0 if there is none. */
static int
position_option(DpDecl *decl, const char *option, int nth)
{
	DpValue array;
	DpValue value;
	char name[16];
	int len = snprintf(name, sizeof(name), "%d", nth);

	if (!dp_document_find(DP_DOC_DATA(decl->options), DP_DOC_SIZE(decl->options), option,
						  strlen(option), &array))
		return 0;
	if (array.type == DP_TYPE_INT32)
		return nth == 0 ? dp_get_int32(array.data) : 0;
	if (array.type != DP_TYPE_ARRAY ||
		!dp_document_find(array.data, array.len, name, len, &value) || value.type != DP_TYPE_INT32)
		return 0;
	return dp_get_int32(value.data);
}

/* A table does not fit to the others. */
static void
mismatch(DpBucketRel *rel, Oid side)
{
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("columns of \"%s\" do not match its buckets", dp_bucket_rel_name(rel)),
					errdetail("\"%s\" was altered directly.", dp_relation_name(side)),
					errhint("Add columns with bucket_add_column().")));
}
