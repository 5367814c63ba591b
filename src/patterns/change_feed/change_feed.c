/*
 * change_feed.c
 *		The change feed: options, triggers, and writing changes.
 *
 * AFTER INSERT, UPDATE or DELETE, for each row, and BEFORE TRUNCATE: writes the
 * change to the table of changes.  TRUNCATE of a single partition writes a
 * deletion for each document.
 *
 * If a user's trigger fires first and writes the same row again, its change is
 * written first, although it is a later command.  So it gets a new number.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_type.h"
#include "commands/async.h"
#include "commands/sequence.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "bson/catalog.h"
#include "bson/compare.h"
#include "bson/diff.h"
#include "kit/locks.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/rows/later.h"
#include "kit/shard.h"
#include "kit/side/side.h"
#include "kit/sql/run.h"
#include "kit/statement.h"
#include "kit/sql/template.h"
#include "kit/sql/text.h"
#include "kit/trigger.h"
#include "patterns/change_feed/change_feed.h"

#define PATTERN "change_feed"

/* Beyond this number, paths are replaced by the fields of the document that contain them */
#define MAX_PATHS 1000

/* A feed to which this transaction has written */
typedef struct FeedWriter
{
	DpState state;
	Oid feed;
	int64 first;    /* the number in its lock */
	CommandId last; /* the latest command that wrote */
	HTAB *nested;   /* keys written by triggers */
} FeedWriter;

typedef struct Nested
{
	uint64 hash;  /* of the key */
	int64 number; /* no smaller one */
} Nested;

/* A change of a document */
typedef struct Change
{
	const char *operation;
	struct varlena *key; /* a bson_value; NULL: all */
	struct varlena *doc; /* or NULL */
	ArrayType *paths;    /* or NULL */
	CommandId command;
	const TriggerData *fired; /* the row trigger, or NULL */
} Change;

/* For collect_path() */
typedef struct Paths
{
	List *names;
	bool top; /* only the fields of the document */
	bool many;
} Paths;

/*
 * Of FeedWriter. A subtransaction that is rolled back has lost its lock; a released one passes it
 * to its parent.
 */
static DpStates writers = { .outlives = true };

/* The command that truncates a table together with its partitions */
static Oid truncated_relid = InvalidOid;
static CommandId truncated_command;
static TimestampTz truncated_statement;

static void feed_row(DpChangeFeed *f, TriggerData *trigdata);
static void feed_truncate(DpChangeFeed *f, TriggerData *trigdata);
static void feed_rows(DpChangeFeed *f, Oid relid, const char *operation);
static struct varlena *row_key(DpChangeFeed *f, HeapTuple tuple, TupleDesc desc);
static ArrayType *changed_paths(struct varlena *before, struct varlena *after);
static bool
collect_path(const DpPath *path, const DpValue *before, const DpValue *after, void *arg);
static void feed_write(DpChangeFeed *f, const Change *change);
static FeedWriter *writer_find(DpChangeFeed *f);
static FeedWriter *writer_begin(DpChangeFeed *f);
static void insert_change(DpChangeFeed *f, int64 number, const Change *change);
static void renumber(DpChangeFeed *f, const Change *change, int64 since);

static const DpOption options[] = {
	{ "name", DP_OPTION_TEXT, DP_REQUIRED },
	{ "link_id", DP_OPTION_TEXT, DP_REQUIRED, DP_INTO(DpChangeFeed, link_id) },
	{ "documents", DP_OPTION_BOOL, DP_REQUIRED, DP_INTO(DpChangeFeed, documents) },
	{ "channel", DP_OPTION_TEXT, DP_ALTERABLE, DP_BETWEEN(1, NAMEDATALEN - 1),
	  DP_INTO(DpChangeFeed, channel) },
	{ "keep_for", DP_OPTION_INTERVAL, DP_ALTERABLE },
	{ NULL }
};

DP_DEFINE_PATTERN(change_feed) = { .name = "change_feed",
								   .whole_table = true,
								   .keeps_originals = true,
								   .options = options,
								   .partition = dp_change_feed_partition };

/*
 * change_feed_trigger(): the triggers of the pattern on its table.
 */
DP_FUNCTION(dp_change_feed_trigger);
Datum
dp_change_feed_trigger(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	DpDecl *decl = dp_trigger_enter(fcinfo, PATTERN,
									DP_AFTER_ROW(DP_WRITE) | DP_BEFORE_STATEMENT(DP_TRUNCATE));

	if (decl == NULL)
		return dp_trigger_pass(fcinfo);
	if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
		feed_row(dp_change_feed(decl), trigdata);
	else
		feed_truncate(dp_change_feed(decl), trigdata);
	return PointerGetDatum(NULL);
}

/*
 * Returns the options of a declaration, read once. Raises INVALID_PARAMETER_VALUE: a user may
 * create a trigger with any argument.
 */
DpChangeFeed *
dp_change_feed(DpDecl *decl)
{
	DpChangeFeed *f = decl->state;

	if (likely(f != NULL))
		return f;
	f = MemoryContextAllocZero(decl->context, sizeof(DpChangeFeed));
	f->decl = decl;
	dp_options_read(decl, f);
	decl->state = f;
	return f;
}

Oid
dp_change_feed_table(DpChangeFeed *f)
{
	Relation rel;
	Oid side;

	if (likely(OidIsValid(f->side)))
		return f->side;
	side = dp_side_find(f->decl, f->link_id,
						"number int8 identity; transaction int8, command int8, at timestamptz,"
						" operation text, key bson_value, document bson, paths text[]",
						f->columns);
	rel = table_open(side, AccessShareLock);
	f->sequence = dp_identity_sequence(rel, f->columns[0]);
	table_close(rel, NoLock);
	f->side = side;
	return side;
}

/* ---------------------------------------------------------------- triggers */

/*
 * AFTER INSERT, UPDATE or DELETE of a row.
 */
static void
feed_row(DpChangeFeed *f, TriggerData *trigdata)
{
	TupleDesc desc = RelationGetDescr(trigdata->tg_relation);
	HeapTuple old = TRIGGER_FIRED_BY_INSERT(trigdata->tg_event) ? NULL : trigdata->tg_trigtuple;
	HeapTuple new = TRIGGER_FIRED_BY_DELETE(trigdata->tg_event) ? NULL : dp_trigger_row(trigdata);
	Change change = { .fired = trigdata };

	if (old != NULL && new != NULL)
	{
		DpKey from;
		DpKey to;

		dp_key_of_tuple(f->decl, old, desc, &from);
		dp_key_of_tuple(f->decl, new, desc, &to);
		if (dp_key_identical(f->decl, &from, &to))
		{
			struct varlena *before;

			if (dp_trigger_same_document(trigdata, f->decl))
				return;
			before = dp_tuple_document(f->decl, old, desc);
			change.operation = "update";
			change.key = row_key(f, new, desc);
			change.doc = dp_tuple_document(f->decl, new, desc);
			if (before != NULL && change.doc != NULL)
				change.paths = changed_paths(before, change.doc);
			change.command = HeapTupleHeaderGetCmin(new->t_data);
			feed_write(f, &change);
			return;
		}
	}

	/* with another key it is another document */
	if (old != NULL)
	{
		change.operation = "delete";
		change.key = row_key(f, old, desc);
		change.doc = dp_tuple_document(f->decl, old, desc);
		change.command =
			new != NULL ? HeapTupleHeaderGetCmin(new->t_data) : HeapTupleHeaderGetCmax(old->t_data);
		feed_write(f, &change);
	}
	if (new != NULL)
	{
		change.operation = "insert";
		change.key = row_key(f, new, desc);
		change.doc = dp_tuple_document(f->decl, new, desc);
		change.command = HeapTupleHeaderGetCmin(new->t_data);
		feed_write(f, &change);
	}
}

/*
 * BEFORE TRUNCATE of the table or a partition.
 */
static void
feed_truncate(DpChangeFeed *f, TriggerData *trigdata)
{
	Change change = { 0 };
	Oid relid = RelationGetRelid(trigdata->tg_relation);

	if (relid == f->decl->target)
	{
		change.command = GetCurrentCommandId(false);
		change.operation = "truncate";
		feed_write(f, &change);
		truncated_relid = relid;
		truncated_command = GetCurrentCommandId(false);
		truncated_statement = GetCurrentStatementStartTimestamp();
		return;
	}

	/* truncated together with its table, or alone */
	if ((truncated_relid == f->decl->target &&
		 truncated_statement == GetCurrentStatementStartTimestamp() &&
		 GetCurrentCommandId(false) - truncated_command <= 1) ||
		trigdata->tg_relation->rd_rel->relkind != RELKIND_RELATION)
		return;
	feed_rows(f, relid, "delete");
}

/* Writes changes for the rows of a partition that was attached or detached. */
void
dp_change_feed_partition(Oid table, Oid partition, bool attached)
{
	ListCell *lc;

	foreach(lc, dp_decls(table))
	{
		DpDecl *decl = lfirst(lc);

		/* written by tables above */
		if (strcmp(decl->pattern, PATTERN) == 0 && decl->target == table &&
			dp_decl_maintained(decl))
			feed_rows(dp_change_feed(decl), partition, attached ? "insert" : "delete");
	}
}

/* Writes an operation on each row of a partition. */
static void
feed_rows(DpChangeFeed *f, Oid relid, const char *operation)
{
	Change change = { 0 };
	StringInfoData sql;
	Portal portal;

	change.operation = operation;
	change.command = GetCurrentCommandId(false);
	SPI_connect();
	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	dp_sql_key_list(&sql, f->decl);
	appendStringInfo(&sql, ", %s FROM ", quote_identifier(f->decl->doc_column));
	dp_sql_table(&sql, relid);
	PushActiveSnapshot(GetLatestSnapshot());
	portal =
		SPI_cursor_open_with_args(NULL, sql.data, 0, NULL, NULL, NULL, true, CURSOR_OPT_NO_SCROLL);
	PopActiveSnapshot();
	for (;;)
	{
		SPITupleTable *rows;
		uint64 i;

		SPI_cursor_fetch(portal, true, 1000);
		rows = SPI_tuptable;
		if (SPI_processed == 0)
			break;
		for (i = 0; i < rows->numvals; i++)
		{
			DpKey key;
			bool isnull;
			Datum doc;
			int k;

			CHECK_FOR_INTERRUPTS();
			key.n = f->decl->nkeys;
			for (k = 0; k < key.n; k++)
				key.values[k] = SPI_getbinval(rows->vals[i], rows->tupdesc, k + 1, &isnull);
			doc = SPI_getbinval(rows->vals[i], rows->tupdesc, key.n + 1, &isnull);
			/* frees memory after each row */
			SPI_connect();
			change.key = dp_key_to_value(f->decl, &key);
			change.doc = isnull ? NULL : PG_DETOAST_DATUM_PACKED(doc);
			feed_write(f, &change);
			SPI_finish();
		}
		SPI_freetuptable(rows);
	}
	SPI_cursor_close(portal);
	SPI_finish();
}

/*
 * _change_feed_record(rel, name, operation, key bson_value, doc bson): writes a change, for
 * pattern_repair.
 */
DP_FUNCTION(dp_change_feed_record);
Datum
dp_change_feed_record(PG_FUNCTION_ARGS)
{
	Oid relid;
	DpChangeFeed *f;
	Change change = { 0 };

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2) || PG_ARGISNULL(3))
		PG_RETURN_VOID();
	relid = PG_GETARG_OID(0);
	dp_require_owner(relid);
	LockRelationOid(relid, RowExclusiveLock);
	f = dp_change_feed(dp_decl_find(relid, PATTERN, text_to_cstring(PG_GETARG_TEXT_PP(1))));
	change.operation = text_to_cstring(PG_GETARG_TEXT_PP(2));
	change.key = PG_GETARG_VARLENA_PP(3);
	change.doc = PG_ARGISNULL(4) ? NULL : PG_GETARG_VARLENA_PP(4);
	change.command = GetCurrentCommandId(false);
	feed_write(f, &change);
	PG_RETURN_VOID();
}

/* Returns the key of a row as a bson_value. */
static struct varlena *
row_key(DpChangeFeed *f, HeapTuple tuple, TupleDesc desc)
{
	DpKey key;

	dp_key_of_tuple(f->decl, tuple, desc, &key);
	return dp_key_to_value(f->decl, &key);
}

/* ---------------------------------------------------------------- paths */

/* Returns the paths at which two documents differ, as a text[]. */
static ArrayType *
changed_paths(struct varlena *before, struct varlena *after)
{
	Paths paths = { 0 };
	Datum *values;
	ListCell *lc;
	int n = 0;

	dp_diff_each(DP_DOC_DATA(before), DP_DOC_SIZE(before), DP_DOC_DATA(after), DP_DOC_SIZE(after),
				 collect_path, &paths);
	if (paths.many)
	{
		paths.names = NIL;
		paths.top = true;
		dp_diff_each(DP_DOC_DATA(before), DP_DOC_SIZE(before), DP_DOC_DATA(after),
					 DP_DOC_SIZE(after), collect_path, &paths);
	}
	values = palloc(sizeof(Datum) * (list_length(paths.names) + 1));
	foreach(lc, paths.names)
		values[n++] = CStringGetTextDatum(lfirst(lc));
	return construct_array(values, n, TEXTOID, -1, false, TYPALIGN_INT);
}

/* A DpDiffVisit. */
static bool
collect_path(const DpPath *path, const DpValue *before, const DpValue *after, void *arg)
{
	Paths *paths = arg;
	StringInfoData text;

	CHECK_FOR_INTERRUPTS();
	initStringInfo(&text);
	if (paths->top && path->nsteps > 1)
	{
		dp_path_to_text(&text, dp_path_of_name(path->steps[0].name, path->steps[0].namelen));
		/* they are sorted */
		if (paths->names != NIL && strcmp(llast(paths->names), text.data) == 0)
			return true;
	}
	else
		dp_path_to_text(&text, path);
	paths->names = lappend(paths->names, text.data);
	if (!paths->top && list_length(paths->names) > MAX_PATHS)
	{
		paths->many = true;
		return false;
	}
	return true;
}

/* ---------------------------------------------------------------- writing */

/* Writes a change. */
static void
feed_write(DpChangeFeed *f, const Change *change)
{
	Oid side = dp_change_feed_table(f);
	FeedWriter *writer = writer_find(f);
	int64 number;
	DpValue key;
	uint64 hash = 0;

	LockRelationOid(side, RowExclusiveLock);
	if (writer == NULL)
	{
		writer = writer_begin(f);
		number = writer->first;
	}
	else
		number = nextval_internal(f->sequence, false);
	insert_change(f, number, change);

	if (change->key == NULL)
	{
		writer->last = Max(writer->last, change->command);
		return;
	}
	if (writer->nested != NULL || dp_trigger_depth() > 1)
	{
		key = dp_value_of_varlena(change->key);
		hash = dp_value_hash(&key, 0);
	}
	if (change->command < writer->last && writer->nested != NULL)
	{
		Nested *later = hash_search(writer->nested, &hash, HASH_FIND, NULL);

		if (later != NULL)
			renumber(f, change, later->number);
	}
	writer->last = Max(writer->last, change->command);
	if (dp_trigger_depth() > 1)
	{
		Nested *nested;
		bool found;

		if (writer->nested == NULL)
		{
			HASHCTL ctl = { 0 };

			ctl.keysize = sizeof(uint64);
			ctl.entrysize = sizeof(Nested);
			ctl.hcxt = TopTransactionContext;
			writer->nested = hash_create("changes of triggers", 256, &ctl,
										 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		}
		nested = hash_search(writer->nested, &hash, HASH_ENTER, &found);
		if (!found)
			nested->number = number;
	}
}

/* Returns this transaction's entry for the feed, or NULL. */
static FeedWriter *
writer_find(DpChangeFeed *f)
{
	ListCell *lc;

	foreach(lc, writers.list)
	{
		if (((FeedWriter *) lfirst(lc))->feed == f->side)
			return lfirst(lc);
	}
	return NULL;
}

/*
 * Registers the transaction before its first change, so that readers wait for it before they read
 * greater numbers. Notifies once.
 */
static FeedWriter *
writer_begin(DpChangeFeed *f)
{
	FeedWriter *writer;
	int64 first;

	(void) dp_lock(DP_LOCK_NUMBERING, f->side, 0, ShareLock, DP_LOCK_WAIT);
	first = nextval_internal(f->sequence, false);
	(void) dp_lock(DP_LOCK_FIRST_NUMBER, f->side, (uint32) first, ExclusiveLock, DP_LOCK_WAIT);
	dp_unlock(DP_LOCK_NUMBERING, f->side, 0, ShareLock);

	writer = dp_state_begin(&writers, sizeof(FeedWriter));
	writer->feed = f->side;
	writer->first = first;
	/* Citus prepares transactions of several servers, which must not notify */
	if (f->channel != NULL && dp_shard_id(f->decl->relid) == 0)
	{
		StringInfoData table;

		initStringInfo(&table);
		dp_sql_table(&table, f->decl->target);
		Async_Notify(f->channel, table.data);
	}
	return writer;
}

/* Adds a row to the table of changes. */
static void
insert_change(DpChangeFeed *f, int64 number, const Change *change)
{
	Datum values[DP_FEED_COLUMNS] = { 0 };
	bool nulls[DP_FEED_COLUMNS] = { false };
	DpNewRow row;
	int i;

	values[DP_FEED_NUMBER] = Int64GetDatum(number);
	values[DP_FEED_TRANSACTION] =
		Int64GetDatum((int64) U64FromFullTransactionId(GetTopFullTransactionId()));
	values[DP_FEED_COMMAND] = Int64GetDatum((int64) change->command);
	values[DP_FEED_AT] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[DP_FEED_OPERATION] = CStringGetTextDatum(change->operation);
	values[DP_FEED_KEY] = PointerGetDatum(change->key);
	nulls[DP_FEED_KEY] = change->key == NULL;
	values[DP_FEED_DOCUMENT] = PointerGetDatum(change->doc);
	nulls[DP_FEED_DOCUMENT] = change->doc == NULL || !f->documents;
	values[DP_FEED_PATHS] = PointerGetDatum(change->paths);
	nulls[DP_FEED_PATHS] = change->paths == NULL;

	dp_new_row(&row, change->fired, f->side, NULL, NULL);
	for (i = 0; i < DP_FEED_COLUMNS; i++)
	{
		row.slot->tts_values[f->columns[i] - 1] = values[i];
		row.slot->tts_isnull[f->columns[i] - 1] = nulls[i];
	}
	dp_new_row_add(&row);
}

/*
 * Gives new numbers to changes of the same key that later commands of this transaction have
 * already written.
 */
static void
renumber(DpChangeFeed *f, const Change *change, int64 since)
{
	SPIPlanPtr plan;
	Datum values[5];

	SPI_connect();
	plan = dp_statement(
		f->decl,
		"WITH removed AS (DELETE FROM {relation} WHERE number OPERATOR(pg_catalog.>=) {$1 int8}"
		" AND transaction OPERATOR(pg_catalog.=) {$2 int8}"
		" AND command OPERATOR(pg_catalog.>) {$3 int8} AND key{own =}{$4 bson_value}"
		" RETURNING number, transaction, command, at, operation, key, document, paths)"
		" INSERT INTO {relation}"
		" (number, transaction, command, at, operation, key, document, paths)"
		" SELECT pg_catalog.nextval({$5 regclass}), q.transaction, q.command, q.at, q.operation,"
		" q.key, q.document, q.paths FROM (SELECT * FROM removed ORDER BY number) AS q",
		f->side, f->side);
	values[0] = Int64GetDatum(since);
	values[1] = Int64GetDatum((int64) U64FromFullTransactionId(GetTopFullTransactionId()));
	values[2] = Int64GetDatum((int64) change->command);
	values[3] = PointerGetDatum(change->key);
	values[4] = ObjectIdGetDatum(f->sequence);
	dp_run_marked(f->decl, plan, values, NULL, DP_RUN_AS_OWNER, SPI_OK_INSERT, f->side, NULL,
				  DP_MARK_INTERNAL);
	SPI_finish();
}
