/*
 * migrate.c
 *		Migrates stored documents to another version, in batches.
 *
 * A migration scans the table in physical order, so it needs neither a list of
 * keys nor an index, and writes rows like a statement of the extension (write.h).
 * It skips rows that other transactions are writing and retries them later: with
 * several rows in a batch it never waits, so it causes no deadlock.  The procedure
 * that calls this commits after each batch.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/multixact.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"

#include "bson/catalog.h"
#include "kit/rows/write.h"
#include "kit/statement.h"
#include "mql/filter.h"
#include "patterns/schema_versioning/schema_versioning.h"

/* A batch that finds little to write ends after so many rows */
#define LOOKED_AT_MOST 100000

/* A batch */
typedef struct Batch
{
	/* arguments */
	Oid rel;
	Oid leaf;
	char *name;
	int32 target;
	struct varlena *filter; /* or NULL */
	uint64 first;           /* positions: block * 65536 + offset */
	uint64 last;
	int64 take;
	bool wait;
	int keys; /* columns of the key, in the leaf */
	AttrNumber *attnums;
	/* results */
	uint64 position; /* behind the last row that was looked at */
	int64 looked;
	int64 done;
	int64 passed_over;
	bool ended;
	TupleTableSlot *row; /* that is being worked on, NULL if none is */
	Datum *failed;       /* the key of the one that could not be migrated */
} Batch;

/* The migration that is going on in this session */
typedef struct Migration
{
	Oid relid;
	const char *name;
	int depth; /* triggers that were running when it began */
} Migration;

static Migration migration;

static void batch_run(Batch *b);
static bool batch_try(Batch *b, MemoryContext context, ErrorData **error);
static void key_note(Batch *b);
static bool row_migrate(Batch *b, DpSchemaVersioning *s, DpWriter *w, DpFilter *filter, int to);
static bool row_is_busy(TupleTableSlot *slot);
static bool own_trigger(const Trigger *trigger);
static bool same_id(struct varlena *a, struct varlena *b);
static void tid_set(ItemPointerData *tid, uint64 position);

/*
 * _schema_versioning_batch(rel, leaf, name, target, filter, first, last, take, wait) -> (position,
 * done, passed_over, ended, key, code, message, detail, hint): migrates up to take rows of a
 * table, or of a partition, from one position. If a document cannot be migrated, those before it
 * have been, and the last columns have its key and the error. As the table's owner.
 */
DP_FUNCTION(dp_schema_versioning_batch);
Datum
dp_schema_versioning_batch(PG_FUNCTION_ARGS)
{
	Batch b = { 0 };
	MemoryContext context = CurrentMemoryContext;
	ErrorData *error = NULL;
	TupleDesc desc;
	Datum values[9];
	bool nulls[9] = { false };
	bool known = false;
	DpDecl *decl;
	int i;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	for (i = 0; i < 9; i++)
	{
		if (PG_ARGISNULL(i) && i != 4 && i != 7)
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
							errmsg("arguments other than filter and take must not be null")));
	}
	b.rel = PG_GETARG_OID(0);
	b.leaf = PG_GETARG_OID(1);
	b.name = text_to_cstring(PG_GETARG_TEXT_PP(2));
	b.target = PG_GETARG_INT32(3);
	b.filter = PG_ARGISNULL(4) ? NULL : PG_GETARG_VARLENA_PP(4);
	b.first = PG_GETARG_INT64(5);
	b.last = PG_GETARG_INT64(6);
	b.take = PG_ARGISNULL(7) ? PG_INT64_MAX : PG_GETARG_INT64(7);
	b.wait = PG_GETARG_BOOL(8);
	dp_require_owner(b.rel);

	decl = dp_decl_find(b.leaf, DP_SCHEMA_VERSIONING, b.name);
	b.keys = decl->nkeys;
	b.failed = palloc(sizeof(Datum) * b.keys);
	b.attnums = palloc(sizeof(AttrNumber) * b.keys);
	for (i = 0; i < b.keys; i++)
		b.attnums[i] = decl->keys[i].attnum;
	if (!batch_try(&b, context, &error))
	{
		int64 before = b.done;

		known = b.row != NULL;
		b.done = 0;
		b.position = b.first;
		if (known && before > 0 && b.take != PG_INT64_MAX)
		{
			/* those before it, which were undone with it */
			ErrorData *again = NULL;

			b.take = before;
			if (!batch_try(&b, context, &again))
			{
				error = again;
				known = b.row != NULL;
				b.done = 0;
				b.position = b.first;
			}
		}
	}

	memset(nulls + 4, true, 5 * sizeof(bool));
	values[0] = Int64GetDatum((int64) b.position);
	values[1] = Int64GetDatum(b.done);
	values[2] = Int64GetDatum(b.passed_over);
	values[3] = BoolGetDatum(b.ended && error == NULL);
	if (error != NULL)
	{
		if (known)
		{
			DpKey key;

			key.n = b.keys;
			memcpy(key.values, b.failed, sizeof(Datum) * b.keys);
			values[4] =
				PointerGetDatum(dp_key_to_value(dp_decl_find(b.leaf, DP_SCHEMA_VERSIONING, b.name),
												&key));
			nulls[4] = false;
		}
		values[5] = CStringGetTextDatum(unpack_sql_state(error->sqlerrcode));
		values[6] = CStringGetTextDatum(error->message != NULL ? error->message : "");
		nulls[5] = nulls[6] = false;
		if (error->detail != NULL)
		{
			values[7] = CStringGetTextDatum(error->detail);
			nulls[7] = false;
		}
		if (error->hint != NULL)
		{
			values[8] = CStringGetTextDatum(error->hint);
			nulls[8] = false;
		}
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/*
 * Run a batch in a subtransaction.  False if it failed: the error is copied
 * into the context.  What stops the session is raised again.
 */
static bool
batch_try(Batch *b, MemoryContext context, ErrorData **error)
{
	ResourceOwner owner = CurrentResourceOwner;
	Migration outer = migration;
	volatile bool ok = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		batch_run(b);
		ReleaseCurrentSubTransaction();
		ok = true;
	}
	PG_CATCH();
	{
		ErrorData *caught;
		int category;

		migration = outer;
		MemoryContextSwitchTo(context);
		caught = CopyErrorData();
		key_note(b);
		category = ERRCODE_TO_CATEGORY(caught->sqlerrcode);
		FlushErrorState();

		/* also before an error is raised again: a handler may end its own subtransaction */
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		if (category == ERRCODE_OPERATOR_INTERVENTION ||
			category == ERRCODE_INSUFFICIENT_RESOURCES || category == ERRCODE_SYSTEM_ERROR)
			ReThrowError(caught);
		*error = caught;
	}
	PG_END_TRY();
	migration = outer;
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return ok;
}

/*
 * Keeps the key of the row that could not be migrated; in the midst of an error, so it only looks
 * at memory.
 */
static void
key_note(Batch *b)
{
	int i;

	for (i = 0; i < b->keys && b->row != NULL; i++)
	{
		Form_pg_attribute att = TupleDescAttr(b->row->tts_tupleDescriptor, b->attnums[i] - 1);
		bool isnull;
		Datum value = slot_getattr(b->row, b->attnums[i], &isnull);

		if (isnull)
			b->row = NULL;
		else
			b->failed[i] = datumCopy(value, att->attbyval, att->attlen);
	}
}

/* The rows of a batch. */
static void
batch_run(Batch *b)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext row =
		AllocSetContextCreate(outer, "docpatterns migration", ALLOCSET_DEFAULT_SIZES);
	DpFilter *filter = NULL;
	DpDecl *decl;
	DpSchemaVersioning *s;
	DpSchemaVersioning mine;
	DpWriter *w;
	DpActor self;
	ItemPointerData first;
	ItemPointerData last;
	int to;

	b->position = b->first;
	b->looked = b->done = b->passed_over = 0;
	b->ended = true;
	b->row = NULL;
	if (b->filter != NULL)
	{
		DpValue spec = dp_value_of_document(b->filter);

		filter = dp_filter_compile(&spec, DP_FILTER_DOCUMENT, NULL);
	}
	w = dp_writer_open(b->rel, dp_decl_find(b->rel, DP_SCHEMA_VERSIONING, b->name)->doc_column,
					   DP_WRITE_ORDINARY, NULL);
	/* now that it is locked the declaration stays as it is */
	decl = dp_decl_find(b->leaf, DP_SCHEMA_VERSIONING, b->name);
	s = dp_schema_versioning(decl);
	to = dp_versions_find(s->versions, b->target);
	if (to < 0 || to > s->at)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("cannot migrate documents in table \"%s\" to version %d",
							   dp_relation_name(b->rel), b->target),
						errdetail("The version is unknown or newer than the current version %d.",
								  s->current)));
	dp_writer_skip(w, own_trigger);
	dp_owner_begin(decl->owner, &self);
	mine = *s;
	mine.versions = dp_schema_versioning_brief(s);
	migration.relid = decl->target;
	migration.name = b->name;
	migration.depth = dp_trigger_depth();
	tid_set(&first, b->first);
	tid_set(&last, b->last);
	dp_writer_scan(w, b->leaf, &first, &last);
	while (dp_writer_scan_next(w))
	{
		ItemPointerData tid = dp_writer_row(w)->tts_tid;

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(row);
		if (row_migrate(b, &mine, w, filter, to))
			b->done++;
		MemoryContextSwitchTo(outer);
		MemoryContextReset(row);
		b->position =
			((uint64) ItemPointerGetBlockNumber(&tid) << 16) + ItemPointerGetOffsetNumber(&tid) + 1;
		b->looked++;
		if (b->done >= b->take || (b->looked >= LOOKED_AT_MOST && b->take != PG_INT64_MAX))
		{
			b->ended = false;
			break;
		}
	}
	dp_writer_close(w);
	dp_owner_end(&self);
	MemoryContextDelete(row);
}

/*
 * Whether the trigger of the declaration is called for what a migration writes,
 * which is in order; not for what other triggers write meanwhile.
 */
bool
dp_schema_versioning_migrates(const DpDecl *decl)
{
	return unlikely(OidIsValid(migration.relid)) && migration.relid == decl->target &&
		   migration.depth == dp_trigger_depth() - 1 && strcmp(migration.name, decl->name) == 0;
}

/* The current row; whether it was written. */
static bool
row_migrate(Batch *b, DpSchemaVersioning *s, DpWriter *w, DpFilter *filter, int to)
{
	TupleTableSlot *slot = dp_writer_row(w);
	struct varlena *doc;
	struct varlena *result;
	DpWriteResult written;
	bool absent;
	bool isnull;
	Datum stored = slot_getattr(slot, s->decl->doc_attnum, &isnull);
	int from;

	if (isnull)
		return false;
	from = dp_versions_find(s->versions, dp_versions_of(s->versions, stored, &absent));
	if (from == to || from < 0)
		return false; /* without a step from its version; pattern_check() reports it */
	doc = dp_writer_document(w);
	if (filter != NULL)
	{
		DpValue value = dp_value_of_document(doc);

		if (!dp_filter_match(filter, &value))
			return false;
	}
	if (!b->wait && row_is_busy(slot))
	{
		b->passed_over++;
		return false;
	}
	b->row = slot;
	result = dp_versions_move(s->versions, doc, from, to, absent);
	dp_schema_versioning_check(s, result, to);
	if (!same_id(doc, result))
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("a step between versions has changed \"_id\" of a document in table \"%s\"",
						dp_relation_name(b->rel))));
	written = dp_writer_update(w, result);
	b->row = NULL;
	if (written == DP_WRITE_CHANGED)
		b->passed_over++; /* written concurrently: retry later */
	return written == DP_WRITE_DONE;
}

/*
 * Returns whether another transaction has written or locked the row, as far as visible without a
 * lock.
 */
static bool
row_is_busy(TupleTableSlot *slot)
{
	HeapTuple tuple;
	TransactionId xmax;

	if (!TTS_IS_BUFFERTUPLE(slot))
		return false;
	tuple = ((BufferHeapTupleTableSlot *) slot)->base.tuple;
	if (tuple->t_data->t_infomask & HEAP_XMAX_INVALID)
		return false;
	xmax = HeapTupleHeaderGetRawXmax(tuple->t_data);
	if (tuple->t_data->t_infomask & HEAP_XMAX_IS_MULTI)
		return MultiXactIdIsRunning(xmax, HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_data->t_infomask));
	return !TransactionIdIsCurrentTransactionId(xmax) && TransactionIdIsInProgress(xmax);
}

/* Returns whether a trigger is the pattern's own, which need not check the new document. */
static bool
own_trigger(const Trigger *trigger)
{
	return dp_is_internal(trigger->tgfoid, DP_SCHEMA_VERSIONING "_trigger");
}

/* Whether two documents have the same _id, or neither has one. */
static bool
same_id(struct varlena *a, struct varlena *b)
{
	DpValue left;
	DpValue right;
	bool has = dp_document_find(DP_DOC_DATA(a), DP_DOC_SIZE(a), "_id", 3, &left);

	return has == dp_document_find(DP_DOC_DATA(b), DP_DOC_SIZE(b), "_id", 3, &right) &&
		   (!has || dp_value_identical(&left, &right));
}

/* Returns the position of a row. */
static void
tid_set(ItemPointerData *tid, uint64 position)
{
	ItemPointerSet(tid, (BlockNumber) (position >> 16), (OffsetNumber) (position & 0xFFFF));
}
