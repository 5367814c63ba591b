/*
 * read.c
 *		The change feed: reading, positions, and purging.
 *
 * A reader finds the limit below which no change can be added any more, then takes
 * a snapshot, which shows all changes below it.  So it reads the latest state at
 * every isolation level.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/tuplestore.h"

#include "kit/locks.h"
#include "kit/shard.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/change_feed/change_feed.h"

#define PATTERN "change_feed"

static DpChangeFeed *feed_argument(FunctionCallInfo fcinfo, int name, bool owner);
static int64 feed_limit(DpChangeFeed *f);
static void make_durable(void);
static int64 sequence_last(DpChangeFeed *f);
static int64 feed_purged(DpChangeFeed *f);

/*
 * change_feed_read(rel, after bigint, take int, name) -> rows (position,
 * operation, key, document, paths, at, transaction)
 */
DP_ROUTED_FUNCTION(dp_change_feed_read, DP_ROUTE_WHOLE, 0)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	DpChangeFeed *f = feed_argument(fcinfo, 3, false);
	int64 after = PG_ARGISNULL(1) ? PG_INT64_MIN : PG_GETARG_INT64(1);
	int32 take = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT32(2);
	Datum values[3];
	int64 limit;
	uint64 n;
	uint64 i;

	if (!PG_ARGISNULL(2) && take < 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("take must be positive")));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	limit = feed_limit(f);
	SPI_connect();
	if (!PG_ARGISNULL(1))
	{
		int64 purged = feed_purged(f);

		if (after < purged)
			ereport(
				ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("changes after position " INT64_FORMAT " have been purged", after),
				 errdetail(
					 "The change feed \"%s\" of table \"%s\" is complete from position " INT64_FORMAT
					 " on.",
					 f->decl->name, dp_relation_name(f->decl->target), purged),
				 errhint("Read the whole table again, then continue from that position.")));
	}
	values[0] = Int64GetDatum(after);
	values[1] = Int64GetDatum(limit);
	values[2] = Int64GetDatum((int64) take);
	n = dp_run(
		f->decl,
		dp_statement(
			f->decl,
			"SELECT number, operation, key, document, paths, at, transaction FROM {relation}"
			" WHERE number OPERATOR(pg_catalog.>) {$1 int8}"
			" AND number OPERATOR(pg_catalog.<) {$2 int8}"
			" AND operation OPERATOR(pg_catalog.<>) 'purged' ORDER BY number LIMIT {$3 int8}",
			dp_change_feed_table(f)),
		values, PG_ARGISNULL(2) ? "  n" : NULL, DP_RUN_AS_OWNER, 0, SPI_OK_SELECT);
	if (n > 0)
		make_durable();
	for (i = 0; i < n; i++)
	{
		Datum row[7];
		bool nulls[7];
		int k;

		for (k = 0; k < 7; k++)
			row[k] = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, k + 1, &nulls[k]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row, nulls);
	}
	SPI_finish();
	return (Datum) 0;
}

/*
 * Flushes commits that did not wait for it (synchronous_commit = off): a crash must not undo
 * changes that were read, or their numbers would be used again.
 */
static void
make_durable(void)
{
	XLogRecPtr end = GetXLogInsertRecPtr();

	/* a new WAL page may only have its header, which cannot be flushed to */
	if (end % XLOG_BLCKSZ <= SizeOfXLogLongPHD)
		end -= end % XLOG_BLCKSZ;
	XLogFlush(end);
}

/*
 * change_feed_position(rel, name) -> bigint: the position after which later changes are read
 */
DP_ROUTED_FUNCTION(dp_change_feed_position, DP_ROUTE_WHOLE, 0)
{
	int64 limit = feed_limit(feed_argument(fcinfo, 1, false));

	make_durable();
	PG_RETURN_INT64(limit - 1);
}

/*
 * change_feed_purge(rel, until bigint, older_than interval, name) -> number of removed changes
 */
DP_ROUTED_FUNCTION(dp_change_feed_purge, DP_ROUTE_SUM, 0)
{
	DpChangeFeed *f = feed_argument(fcinfo, 3, true);
	DpActor self;
	int64 until;
	int64 n;
	Datum value;
	bool isnull;

	if (PG_ARGISNULL(1) == PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("exactly one of until and older_than must be specified")));
	PreventCommandIfReadOnly("change_feed_purge()");
	until = feed_limit(f) - 1;
	if (!PG_ARGISNULL(1))
		until = Min(until, PG_GETARG_INT64(1));

	dp_owner_begin(f->decl->owner, &self);
	SPI_connect();
	if (!PG_ARGISNULL(2))
	{
		/* up to the first change that is not old: all smaller numbers are removed */
		value = PG_GETARG_DATUM(2);
		dp_run(f->decl,
			   dp_statement(f->decl,
							"SELECT number FROM {relation} WHERE at OPERATOR(pg_catalog.>=)"
							" (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) {$1 interval})"
							" AND operation OPERATOR(pg_catalog.<>) 'purged' ORDER BY number",
							dp_change_feed_table(f)),
			   &value, NULL, 0, 1, SPI_OK_SELECT);
		if (SPI_processed > 0)
			until = Min(until, DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
														   SPI_tuptable->tupdesc, 1, &isnull)) -
								   1);
	}

	/* the last one is kept, to mark the purged position */
	value = Int64GetDatum(until);
	dp_run(f->decl,
		   dp_statement(f->decl,
						"SELECT pg_catalog.max(number) FROM {relation}"
						" WHERE number OPERATOR(pg_catalog.<=) {$1 int8}"
						" AND operation OPERATOR(pg_catalog.<>) 'purged'",
						dp_change_feed_table(f)),
		   &value, NULL, 0, 1, SPI_OK_SELECT);
	value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	if (isnull)
		n = 0;
	else
	{
		n = (int64) dp_run_marked(
			f->decl,
			dp_statement(f->decl,
						 "DELETE FROM {relation} WHERE number OPERATOR(pg_catalog.<) {$1 int8}"
						 " RETURNING (operation OPERATOR(pg_catalog.=) 'purged')::pg_catalog.int4",
						 dp_change_feed_table(f)),
			&value, NULL, 0, SPI_OK_DELETE_RETURNING, f->side, NULL, DP_MARK_INTERNAL);
		if (n > 0)
		{
			uint64 i;
			int64 marks = 0;

			for (i = 0; i < SPI_processed; i++)
				marks += DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc,
													 1, &isnull));
			n -= marks;
		}
		n += (int64) dp_run_marked(
			f->decl,
			dp_statement(f->decl,
						 "UPDATE {relation}"
						 " SET operation = 'purged', document = NULL, key = NULL, paths = NULL"
						 " WHERE number OPERATOR(pg_catalog.=) {$1 int8}",
						 dp_change_feed_table(f)),
			&value, NULL, 0, SPI_OK_UPDATE, f->side, NULL, DP_MARK_INTERNAL);
	}
	SPI_finish();
	dp_owner_end(&self);
	PG_RETURN_INT64(n);
}

/*
 * Returns the least number that may still be added: the first of the oldest transaction in
 * progress that has written, or else the next one.
 */
static int64
feed_limit(DpChangeFeed *f)
{
	LockData *locks;
	int64 last;
	int64 limit;
	int i;

	(void) dp_change_feed_table(f);
	(void) dp_lock(DP_LOCK_NUMBERING, f->side, 0, ExclusiveLock, DP_LOCK_WAIT);
	last = sequence_last(f);
	locks = GetLockStatusData();
	dp_unlock(DP_LOCK_NUMBERING, f->side, 0, ExclusiveLock);

	limit = last + 1;
	for (i = 0; i < locks->nelements; i++)
	{
		uint32 low = locks->locks[i].locktag.locktag_field3;
		LOCKTAG first = dp_lock_tag(DP_LOCK_FIRST_NUMBER, f->side, low);

		if (locks->locks[i].holdMask == 0 ||
			memcmp(&locks->locks[i].locktag, &first, sizeof(LOCKTAG)) != 0)
			continue;
		/* its number is at most the last one, and less than 2^32 smaller */
		limit = Min(limit, last - (int64) (int32) ((uint32) last - low));
	}
	return limit;
}

/* Returns the last number that was drawn, or 0. */
static int64
sequence_last(DpChangeFeed *f)
{
	LOCAL_FCINFO(call, 1);
	FmgrInfo flinfo;
	DpActing acting;
	volatile Datum last = (Datum) 0;

	fmgr_info(F_PG_SEQUENCE_LAST_VALUE, &flinfo);
	InitFunctionCallInfoData(*call, &flinfo, 1, InvalidOid, NULL, NULL);
	call->args[0].value = ObjectIdGetDatum(f->sequence);
	call->args[0].isnull = false;
	dp_act_as(f->decl->owner, &acting);
	PG_TRY();
	{
		last = FunctionCallInvoke(call);
	}
	PG_FINALLY();
	{
		dp_act_end(&acting);
	}
	PG_END_TRY();
	return call->isnull ? 0 : DatumGetInt64(last);
}

/* Returns the purged position, or the least number. */
static int64
feed_purged(DpChangeFeed *f)
{
	bool isnull;

	if (dp_run(
			f->decl,
			dp_statement(f->decl,
						 "SELECT number, operation OPERATOR(pg_catalog.=) 'purged' FROM {relation}"
						 " ORDER BY number",
						 dp_change_feed_table(f)),
			NULL, NULL, DP_RUN_AS_OWNER, 1, SPI_OK_SELECT) == 0 ||
		!DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &isnull)))
		return PG_INT64_MIN;
	return DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
}

/*
 * Returns the declaration. A feed contains former documents, to which row-level security cannot be
 * applied. Raises INSUFFICIENT_PRIVILEGE.
 */
static DpChangeFeed *
feed_argument(FunctionCallInfo fcinfo, int name, bool owner)
{
	Oid relid;
	Oid target;
	DpDecl *decl;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the table must not be null")));
	if (RecoveryInProgress())
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("a change feed cannot be read on a standby"),
						errdetail("A standby does not know which transactions are in progress."),
						errhint("Read it on the primary.")));
	relid = PG_GETARG_OID(0);
	LockRelationOid(relid, AccessShareLock);
	decl = dp_decl_find(relid, PATTERN,
						PG_ARGISNULL(name) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(name)));
	target = decl->target;
	if (owner)
		dp_require_owner(target);
	else
	{
		if (pg_class_aclcheck(target, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
			aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, get_rel_name(target));
		if (check_enable_rls(target, InvalidOid, true) == RLS_ENABLED)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("row-level security prevents reading the change feed of table \"%s\"",
							dp_relation_name(target))));
	}
	return dp_change_feed(decl);
}
