/*
 * maintain.c
 *		Calls that maintain a relation of measurements: packing on demand, packing
 *		all buckets again, dropping old spans, checking, salvaging.
 *
 * They require ownership of the relation, except bucket_pack(), which only does what
 * an INSERT may do.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "patterns/bucket/bulk.h"
#include "patterns/bucket/pack.h"
#include "patterns/bucket/store.h"

static int64 time_argument(DpBucketRel *rel, TimestampTz time);
static void require_newest(DpBucketRel *rel);
static bool all_seen(Relation table, Snapshot by, Snapshot also_by);
static char *bucket_trouble(DpBucketRel *rel, Datum data, struct varlena **plain);

/*
 * bucket_pack(rel, until timestamptz) -> bigint
 *
 * Packs what waits, or the whole spans before the one of until.
 */
DP_FUNCTION(dp_bucket_pack_call);
Datum
dp_bucket_pack_call(PG_FUNCTION_ARGS)
{
	Oid relid;
	DpBucketRel *rel;
	DpBucketStore *store;
	int64 until = PG_INT64_MAX;
	int64 packed;
	AclResult acl;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the relation must not be null")));
	relid = PG_GETARG_OID(0);
	LockRelationOid(relid, RowExclusiveLock);
	rel = dp_bucket_rel(relid, false);
	acl = pg_class_aclcheck(relid, GetUserId(), ACL_INSERT);
	if (acl != ACLCHECK_OK)
		aclcheck_error(acl, OBJECT_FOREIGN_TABLE, dp_bucket_rel_name(rel));
	PreventCommandIfReadOnly("bucket_pack()");
	if (!PG_ARGISNULL(1) && rel->time == NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%s\" has pages, not spans of time", dp_bucket_rel_name(rel)),
						errhint("Call bucket_pack() without a time.")));
	if (!PG_ARGISNULL(1))
		until = dp_bucket_rel_start(rel, time_argument(rel, PG_GETARG_TIMESTAMPTZ(1)));

	store = dp_bucket_store_open(rel, NULL);
	store->packed_many = true;
	dp_bucket_store_begin(store);
	packed = dp_bucket_pack(store, NULL, until, false);
	dp_bucket_store_end(store);
	dp_bucket_store_close(store);
	PG_RETURN_INT64(packed);
}

/*
 * _bucket_repack(rel) -> bigint: packs all buckets again with the relation's present spans and
 * limits. The caller has locked the relation against writers. Returns the former number of
 * buckets.
 */
DP_FUNCTION(dp_bucket_repack);
Datum
dp_bucket_repack(PG_FUNCTION_ARGS)
{
	Oid relid = PG_GETARG_OID(0);
	DpBucketRel *rel;
	DpBucketStore *store;
	DpBucketBulk *bulk = NULL;
	IndexScanDesc scan;
	Snapshot snapshot;
	MemoryContext each;
	int64 n = 0;

	dp_require_owner(relid);
	PreventCommandIfReadOnly("bucket_resize()");
	LockRelationOid(relid, ShareRowExclusiveLock);
	rel = dp_bucket_rel(relid, false);
	require_newest(rel);
	store = dp_bucket_store_open(rel, NULL);
	dp_bucket_store_begin(store);
	snapshot = RegisterSnapshot(dp_bucket_store_snapshot(store, true));
	each =
		AllocSetContextCreate(store->context, "docpatterns bucket repack", ALLOCSET_DEFAULT_SIZES);
	if (rel->time != NULL)
		bulk = dp_bucket_bulk_create(store);
	else
		store->packed_many = true;

	scan = dp_bucket_packed_scan_all(store, snapshot);
	{
		/* pages: those of one group are put together in their order */
		DpBucketGroup group;
		Datum *pages = NULL;
		int npages = 0;
		int maxpages = 0;
		int seq = 0;

		for (;;)
		{
			bool more = dp_bucket_packed_next(store, scan);
			DpBucketGroup here;
			Datum data;
			MemoryContext old;

			CHECK_FOR_INTERRUPTS();
			if (more)
				dp_bucket_packed_row(store, &here, NULL, NULL, &data);
			if (npages > 0 && (!more || !dp_bucket_group_same(rel, &group, &here)))
			{
				DpBucketBuilder *builder;
				DpBucketReader *reader = dp_bucket_store_reader(store);
				ListCell *lc;
				int i;

				old = MemoryContextSwitchTo(each);
				builder = dp_bucket_store_builder(store);
				for (i = 0; i < npages; i++)
				{
					dp_bucket_open(reader, pages[i]);
					dp_bucket_append_bucket(builder, reader, 0, reader->count);
				}
				foreach(lc, dp_bucket_split(store, builder, false))
					dp_bucket_packed_insert(store, &group, 0, ++seq, PointerGetDatum(lfirst(lc)));
				MemoryContextSwitchTo(old);
				MemoryContextReset(each);
				npages = maxpages = seq = 0;
			}
			if (!more)
				break;

			old = MemoryContextSwitchTo(each);
			if (bulk != NULL)
			{
				dp_bucket_bulk_add_bucket(bulk, &here, data);
				MemoryContextReset(each);
			}
			else
			{
				if (npages == 0)
					dp_bucket_group_copy(rel, &here, &group);
				if (npages == maxpages)
				{
					maxpages = maxpages == 0 ? 16 : maxpages * 2;
					pages = npages == 0 ? palloc(sizeof(Datum) * maxpages)
										: repalloc(pages, sizeof(Datum) * maxpages);
				}
				pages[npages++] = PointerGetDatum(PG_DETOAST_DATUM_COPY(data));
			}
			MemoryContextSwitchTo(old);
			if (dp_table_delete(&store->packed, &store->packed.row->tts_tid, true) != TM_Ok)
				ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
								errmsg("could not serialize access due to concurrent update")));
			n++;
		}
	}
	index_endscan(scan);
	ExecClearTuple(store->packed.row);
	UnregisterSnapshot(snapshot);

	/* deletes former buckets, also for later reads */
	CommandCounterIncrement();
	(void) dp_bucket_store_snapshot(store, true);
	if (bulk != NULL)
		dp_bucket_bulk_finish(bulk);
	dp_bucket_store_end(store);
	dp_bucket_store_close(store);
	PG_RETURN_INT64(n);
}

/*
 * _bucket_drop_before(rel, before timestamptz) -> bigint
 *
 * Deletes the spans that end before a time.  Returns the number of buckets
 * and of waiting measurements.
 */
DP_FUNCTION(dp_bucket_drop_before);
Datum
dp_bucket_drop_before(PG_FUNCTION_ARGS)
{
	Oid relid = PG_GETARG_OID(0);
	DpBucketRel *rel;
	Datum before;
	StringInfoData sql;
	uint64 n;

	dp_require_owner(relid);
	LockRelationOid(relid, RowExclusiveLock);
	rel = dp_bucket_rel(relid, false);
	if (rel->time == NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("\"%s\" has pages, not spans of time", dp_bucket_rel_name(rel))));
	before = Int64GetDatum(dp_bucket_rel_start(rel, time_argument(rel, PG_GETARG_TIMESTAMPTZ(1))));

	initStringInfo(&sql);
	appendStringInfoString(&sql, "DELETE FROM ");
	dp_sql_table(&sql, rel->recent);
	appendStringInfo(&sql, " WHERE %s OPERATOR(pg_catalog.<) $1",
					 quote_identifier(get_attname(rel->recent, rel->time->recent, false)));
	n = dp_bucket_run_beneath(rel, sql.data, before);
	resetStringInfo(&sql);
	appendStringInfoString(&sql, "DELETE FROM ");
	dp_sql_table(&sql, rel->packed);
	appendStringInfo(&sql, " WHERE %s OPERATOR(pg_catalog.<) $1",
					 quote_identifier(get_attname(rel->packed, rel->packed_start, false)));
	n += dp_bucket_run_beneath(rel, sql.data, before);
	PG_RETURN_INT64(n);
}

/*
 * _bucket_span_of(rel, time timestamptz) -> timestamptz
 *
 * Where the span of a time begins.
 */
DP_FUNCTION(dp_bucket_span_of);
Datum
dp_bucket_span_of(PG_FUNCTION_ARGS)
{
	DpBucketRel *rel = dp_bucket_rel(PG_GETARG_OID(0), false);
	int64 start;

	if (rel->time == NULL)
		PG_RETURN_NULL();
	start = dp_bucket_rel_start(rel, time_argument(rel, PG_GETARG_TIMESTAMPTZ(1)));
	if (rel->time->type == TIMESTAMPOID)
		return DirectFunctionCall1(timestamp_timestamptz, TimestampGetDatum(start));
	PG_RETURN_TIMESTAMPTZ(start);
}

/* _bucket_lock(rel): locks against writers until the transaction ends */
DP_FUNCTION(dp_bucket_lock);
Datum
dp_bucket_lock(PG_FUNCTION_ARGS)
{
	dp_require_owner(PG_GETARG_OID(0));
	PreventCommandIfReadOnly("a change of a relation of measurements");
	LockRelationOid(PG_GETARG_OID(0), ShareRowExclusiveLock);
	require_newest(dp_bucket_rel(PG_GETARG_OID(0), false));
	PG_RETURN_VOID();
}

/*
 * _bucket_fault(rel, start, data) -> (what, expected, found): errors in a bucket of the relation,
 * or NULLs
 */
DP_FUNCTION(dp_bucket_fault_call);
Datum
dp_bucket_fault_call(PG_FUNCTION_ARGS)
{
	DpBucketRel *rel;
	TupleDesc desc;
	Datum values[3];
	bool nulls[3] = { true, true, true };
	const char *what = NULL;
	char *expected = NULL;
	char *found = NULL;
	struct varlena *plain = NULL;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	rel = dp_bucket_rel(PG_GETARG_OID(0), false);
	found = bucket_trouble(rel, PG_GETARG_DATUM(2), &plain);
	if (found != NULL)
	{
		what = "bucket";
		expected = "sound";
	}
	else
	{
		DpBucketReader reader;

		dp_bucket_reader_init(&reader, CurrentMemoryContext);
		dp_bucket_open(&reader, PointerGetDatum(plain));
		if (!dp_bucket_rel_seen(rel, GetActiveSnapshot()))
			; /* packed with an unknown former declaration */
		else if (reader.count > rel->max_count)
		{
			what = "measurements of a bucket";
			expected = psprintf("at most %d", rel->max_count);
			found = psprintf("%d", reader.count);
		}
		else if (VARSIZE_ANY(plain) > rel->max_bytes && reader.count > 1)
		{
			what = "bytes of a bucket";
			expected = psprintf("at most " INT64_FORMAT, rel->max_bytes);
			found = psprintf("%zu", (Size) VARSIZE_ANY(plain));
		}
		else if (((reader.flags & DP_BUCKET_TIMELESS) != 0) != (rel->time == NULL))
		{
			what = "times of a bucket";
			expected = rel->time == NULL ? "none" : "there";
			found = rel->time == NULL ? "there" : "none";
		}
		else if (reader.ncolumns > rel->nvalues)
		{
			what = "columns of a bucket";
			expected = psprintf("at most %d", rel->nvalues);
			found = psprintf("%d", reader.ncolumns);
		}
		else if (rel->time != NULL)
		{
			PGFunction out = rel->time->type == TIMESTAMPTZOID ? timestamptz_out : timestamp_out;
			int64 start = PG_ARGISNULL(1) ? 0 : PG_GETARG_INT64(1);

			if (PG_ARGISNULL(1) || dp_bucket_rel_start(rel, reader.first) != start)
			{
				what = "start of a bucket";
				expected = DatumGetCString(DirectFunctionCall1(
					out, Int64GetDatum(dp_bucket_rel_start(rel, reader.first))));
				found = PG_ARGISNULL(1)
							? NULL
							: DatumGetCString(DirectFunctionCall1(out, Int64GetDatum(start)));
			}
			else if (dp_bucket_rel_start(rel, reader.last) != start)
			{
				what = "last time of a bucket";
				expected =
					psprintf("before %s", DatumGetCString(DirectFunctionCall1(
											  out, Int64GetDatum(dp_bucket_rel_end(rel, start)))));
				found = DatumGetCString(DirectFunctionCall1(out, Int64GetDatum(reader.last)));
			}
		}
	}

	if (what != NULL)
	{
		values[0] = CStringGetTextDatum(what);
		nulls[0] = false;
		values[1] = CStringGetTextDatum(expected);
		nulls[1] = false;
		if (found != NULL)
		{
			values[2] = CStringGetTextDatum(found);
			nulls[2] = false;
		}
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * _bucket_beneath(rel, command text) -> bigint: runs a command that writes to the underlying
 * tables, as their owner, who must be the current user
 */
DP_FUNCTION(dp_bucket_beneath);
Datum
dp_bucket_beneath(PG_FUNCTION_ARGS)
{
	Oid relid = PG_GETARG_OID(0);
	DpBucketRel *rel;

	dp_require_owner(relid);
	LockRelationOid(relid, RowExclusiveLock);
	rel = dp_bucket_rel(relid, false);
	PG_RETURN_INT64(dp_bucket_run_beneath(rel, text_to_cstring(PG_GETARG_TEXT_PP(1)), (Datum) 0));
}

/*
 * A complete rewrite must see all rows: at REPEATABLE READ and above its snapshot is older than
 * the lock, and rows that others have written since would be left in obsolete spans, lost, or
 * restored. Raises T_R_SERIALIZATION_FAILURE.
 */
static void
require_newest(DpBucketRel *rel)
{
	Oid tables[2] = { rel->packed, rel->recent };
	Snapshot latest;
	int i;

	if (!IsolationUsesXactSnapshot())
		return;
	latest = RegisterSnapshot(GetLatestSnapshot());
	for (i = 0; i < 2; i++)
	{
		Relation table = table_open(tables[i], AccessShareLock);

		if (!all_seen(table, latest, GetTransactionSnapshot()) ||
			!all_seen(table, GetTransactionSnapshot(), latest))
			ereport(
				ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update"),
				 errdetail(
					 "Measurements of \"%s\" were written after the transaction's snapshot was taken.",
					 dp_bucket_rel_name(rel)),
				 errhint("Retry the transaction, preferably at READ COMMITTED.")));
		table_close(table, NoLock);
	}
	UnregisterSnapshot(latest);
}

/* Whether all rows that one snapshot sees are seen by another. */
static bool
all_seen(Relation table, Snapshot by, Snapshot also_by)
{
	TupleTableSlot *slot = table_slot_create(table, NULL);
	TableScanDesc scan = table_beginscan(table, by, 0, NULL);
	bool result = true;

	while (result && table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		result = table_tuple_satisfies_snapshot(table, slot, also_by);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	return result;
}

/* A time that was given as timestamptz, as one of the relation's. */
static int64
time_argument(DpBucketRel *rel, TimestampTz time)
{
	if (TIMESTAMP_NOT_FINITE(time))
		ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
						errmsg("the time must not be infinite")));
	if (rel->time != NULL && rel->time->type == TIMESTAMPOID)
		return DatumGetTimestamp(DirectFunctionCall1(timestamptz_timestamp,
													 TimestampTzGetDatum(time)));
	return time;
}

/* Runs a statement that writes to the underlying tables. */
uint64
dp_bucket_run_beneath(DpBucketRel *rel, const char *sql, Datum value)
{
	Oid type = rel->time != NULL ? rel->time->type : TIMESTAMPTZOID;
	DpMark packed;
	DpMark recent;
	DpActor self;
	volatile int rc = 0;
	uint64 n;

	dp_owner_begin(rel->owner, &self);
	SPI_connect();
	dp_mark_push(&packed, rel->packed, NULL, DP_MARK_INTERNAL);
	dp_mark_push(&recent, rel->recent, NULL, DP_MARK_INTERNAL);
	PG_TRY();
	{
		rc = value == (Datum) 0 ? SPI_execute(sql, false, 0)
								: SPI_execute_with_args(sql, 1, &type, &value, NULL, false, 0);
	}
	PG_FINALLY();
	{
		dp_mark_pop(&recent);
		dp_mark_pop(&packed);
	}
	PG_END_TRY();
	if (rc < 0)
		elog(ERROR, "SPI_execute returned %s", SPI_result_code_string(rc));
	n = SPI_processed;
	SPI_finish();
	dp_owner_end(&self);
	return n;
}

/*
 * Returns an error in the bytes of a bucket, or NULL and sets the bucket. Toasted bytes may be
 * damaged too: errors from reading them are caught.
 */
static char *
bucket_trouble(DpBucketRel *rel, Datum data, struct varlena **plain)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	char *volatile trouble = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(caller);
	PG_TRY();
	{
		*plain = PG_DETOAST_DATUM_PACKED(data);
		trouble = dp_bucket_fault((const uint8 *) VARDATA_ANY(*plain), VARSIZE_ANY_EXHDR(*plain));
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(caller);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData *error;

		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(caller);
		CurrentResourceOwner = owner;
		if (ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION ||
			ERRCODE_TO_CATEGORY(error->sqlerrcode) == ERRCODE_INSUFFICIENT_RESOURCES)
			ReThrowError(error);
		trouble = error->message;
	}
	PG_END_TRY();
	return trouble;
}
