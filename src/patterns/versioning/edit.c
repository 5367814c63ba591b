/*
 * edit.c
 *		The document versioning pattern: functions that restore an old document,
 *		remove values from all revisions, check the history and repair it.
 *
 * Functions that rewrite revisions (redact, purge, repair) exclude each other, and
 * restoring a document without a row to lock: that could restore what another
 * function removes.  Writers of documents are not blocked.  They have locked the
 * row, or have inserted a revision that is not committed, which is waited for.
 * While a function rewrites, writers leave the deletion of oldest revisions to the
 * next write.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "bson/diff.h"
#include "bson/edit.h"
#include "bson/validate.h"
#include "kit/locks.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/rows/by_statement.h"
#include "kit/sql/run.h"
#include "kit/sql/template.h"
#include "patterns/versioning/versioning.h"

/* A row of revisions, copied */
typedef struct Row
{
	int64 revision;
	int64 change;
	char operation;
	struct varlena *delta;
	struct varlena *previous;
	bool has_checksum;
	int32 checksum;
	List *kept;          /* paths that are left out of doc */
	struct varlena *doc; /* of this revision, where it is known */
	bool lost;           /* the difference to the previous document is wrong */
} Row;

static void lock_rewriting(DpVersioning *v);
static bool lock_row(DpVersioning *v, const DpKey *key, bool as_owner, struct varlena **doc);
static void insert_document(DpVersioning *v, const DpKey *key, struct varlena *doc);
static Row *
read_rows(DpVersioning *v, const DpKey *key, Snapshot snapshot, int *n, TransactionId *writer);
static Row *latest_rows(DpVersioning *v, const DpKey *key, const DpPath *without,
						struct varlena **live, int *n);
static bool chain(Row *rows, int n, struct varlena *live, int *broken);
static struct varlena *apply_if(struct varlena *delta, struct varlena *doc);
static void write_payload(DpVersioning *v, const DpKey *key, int64 revision, struct varlena *delta,
						  struct varlena *previous);
static void write_checksum(DpVersioning *v, const DpKey *key, int64 revision, struct varlena *doc);
static bool fits(const Row *row, struct varlena *doc);
static struct varlena *with_kept(DpVersioning *v, struct varlena *doc, struct varlena *live);
static bool leads_to(const DpPath *path, const DpPath *inner);
static void complain(ReturnSetInfo *set, struct varlena *key, const char *what,
					 const char *expected, char *found);

static bool method_repair_row(DpDecl *decl, const DpKey *key);

static const DpOption options[] = {
	{ "revision_field", DP_OPTION_PATH, DP_REQUIRED | DP_KEPT | DP_GUARDED,
	  DP_INTO(DpVersioning, field) },
	{ "link_id", DP_OPTION_TEXT, DP_REQUIRED, DP_INTO(DpVersioning, link_id) },
	{ "second_link_id", DP_OPTION_TEXT, DP_REQUIRED, DP_INTO(DpVersioning, second_link_id) },
	{ "storage", DP_OPTION_WORD, DP_REQUIRED | DP_ALTERABLE, DP_WORDS("delta", "full"),
	  DP_INTO(DpVersioning, full) },
	{ "keep", DP_OPTION_INT, DP_ALTERABLE, DP_LONG_FROM(1), DP_INTO(DpVersioning, keep) },
	{ "keep_for", DP_OPTION_INTERVAL, DP_ALTERABLE },
	{ "optimistic", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE, DP_INTO(DpVersioning, optimistic) },
	{ "kept", DP_OPTION_BOOL, DP_REQUIRED | DP_ALTERABLE, DP_INTO(DpVersioning, kept) },
	{ NULL }
};

DP_DEFINE_PATTERN(versioning) = { .name = "versioning",
								  .init = dp_versioning_init,
								  .keeps_originals = true,
								  .views = "history deleted",
								  .options = options,
								  .repair_row = method_repair_row,
								  .partition = dp_versioning_partition };

/* ---------------------------------------------------------------- statements */

/* Keeps others from rewriting revisions until the transaction ends. */
static void
lock_rewriting(DpVersioning *v)
{
	(void) dp_lock(DP_LOCK_HISTORY, v->revisions, 0, ExclusiveLock, DP_LOCK_WAIT);
}

bool
dp_versioning_trim_begin(DpVersioning *v)
{
	return dp_lock(DP_LOCK_HISTORY, v->revisions, 0, ShareLock, DP_LOCK_NO_WAIT);
}

void
dp_versioning_trim_end(DpVersioning *v)
{
	dp_unlock(DP_LOCK_HISTORY, v->revisions, 0, ShareLock);
}

/*
 * Locks the row of a key; false if there is none.  *doc is its document, NULL
 * for a null.  As the owner it is the latest row, as the revisions are: what a
 * transaction's snapshot does not show is there nevertheless.
 */
static bool
lock_row(DpVersioning *v, const DpKey *key, bool as_owner, struct varlena **doc)
{
	return dp_row_read(v->decl, key, " FOR UPDATE", as_owner ? DP_RUN_AS_OWNER : DP_RUN_LOCK, doc);
}

/* Inserts the row of a deleted document, as the user. */
static void
insert_document(DpVersioning *v, const DpKey *key, struct varlena *doc)
{
	DpDecl *decl = v->decl;
	SPIPlanPtr plan =
		dp_statement(decl, "INSERT INTO {table} ({key}, {doc}) VALUES ({$key}, {$key+1 bson})");
	Datum values[INDEX_MAX_KEYS + 1];

	memcpy(values, key->values, decl->nkeys * sizeof(Datum));
	values[decl->nkeys] = PointerGetDatum(doc);
	if (dp_run(decl, plan, values, NULL, 0, 0, SPI_OK_INSERT) != 1)
		dp_write_refused(decl, decl->target);
}

/* Replaces the difference to the document before a revision. */
static void
write_payload(DpVersioning *v, const DpKey *key, int64 revision, struct varlena *delta,
			  struct varlena *previous)
{
	DpDecl *decl = v->decl;
	SPIPlanPtr plan =
		dp_statement(decl,
					 "UPDATE {relation} SET delta = {$key+2 bytea}, previous = {$key+3 bson}"
					 " WHERE {side key = $key} AND revision OPERATOR(pg_catalog.=) {$key+1 int8}",
					 v->revisions);
	int n = decl->nkeys;
	Datum values[INDEX_MAX_KEYS + 3];
	char nulls[INDEX_MAX_KEYS + 4];

	memset(nulls, ' ', sizeof(nulls));
	nulls[n + 3] = '\0';
	memcpy(values, key->values, n * sizeof(Datum));
	values[n] = Int64GetDatum(revision);
	values[n + 1] = PointerGetDatum(delta);
	values[n + 2] = PointerGetDatum(previous);
	if (delta == NULL)
		nulls[n + 1] = 'n';
	if (previous == NULL)
		nulls[n + 2] = 'n';
	(void) dp_run_marked(decl, plan, values, nulls, DP_RUN_AS_OWNER, SPI_OK_UPDATE, v->revisions,
						 decl->name, DP_MARK_INTERNAL);
}

/* The document of a revision is another one now; NULL: it is not known. */
static void
write_checksum(DpVersioning *v, const DpKey *key, int64 revision, struct varlena *doc)
{
	DpDecl *decl = v->decl;
	SPIPlanPtr plan =
		dp_statement(decl,
					 "UPDATE {relation} SET checksum = {$key+2 int4} WHERE {side key = $key}"
					 " AND revision OPERATOR(pg_catalog.=) {$key+1 int8}",
					 v->revisions);
	int n = decl->nkeys;
	Datum values[INDEX_MAX_KEYS + 2];
	char nulls[INDEX_MAX_KEYS + 3];

	memset(nulls, ' ', sizeof(nulls));
	nulls[n + 2] = '\0';
	memcpy(values, key->values, n * sizeof(Datum));
	values[n] = Int64GetDatum(revision);
	values[n + 1] = Int32GetDatum(doc == NULL ? 0 : dp_versioning_checksum(doc));
	if (doc == NULL)
		nulls[n + 1] = 'n';
	(void) dp_run_marked(decl, plan, values, nulls, DP_RUN_AS_OWNER, SPI_OK_UPDATE, v->revisions,
						 decl->name, DP_MARK_INTERNAL);
}

/* ---------------------------------------------------------------- revert */

/*
 * Returns an old document with the kept fields of the present one, except those inside something
 * that the old one lacks.
 */
static struct varlena *
with_kept(DpVersioning *v, struct varlena *doc, struct varlena *live)
{
	List *paths = dp_versioning_left_out(v);
	struct varlena *bare = live == NULL ? NULL : dp_versioning_bare(paths, live);
	ListCell *lc;

	doc = dp_versioning_bare(paths, doc);
	if (live == NULL)
		return doc;
	foreach(lc, paths)
	{
		const DpPath *path = lfirst(lc);
		DpPath *around = palloc(offsetof(DpPath, steps) + path->nsteps * sizeof(DpPathStep));
		DpValue value;
		DpValue found;
		int step;
		uint8 type;

		if (!dp_path_find(DP_DOC_DATA(live), DP_DOC_SIZE(live), path, &value) ||
			dp_path_blocked(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &step, &type))
			continue;
		memcpy(around, path, offsetof(DpPath, steps) + path->nsteps * sizeof(DpPathStep));
		around->nsteps--;
		if (dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), around, &found) ||
			!dp_path_find(DP_DOC_DATA(bare), DP_DOC_SIZE(bare), around, &found))
			doc = dp_document_set(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), path, &value);
	}
	return doc;
}

/*
 * versioning_revert(rel, key, revision, name) -> the new revision's number
 */
DP_ROUTED_FUNCTION(dp_versioning_revert, DP_ROUTE_KEY, 1)
{
	DpVersioning *v;
	DpKey key;
	DpRevisionStore store;
	DpRevision r;
	struct varlena *live;
	struct varlena *doc = NULL;
	int64 revision;
	bool exists;
	bool shown;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the table and the revision must not be null")));
	revision = PG_GETARG_INT64(2);
	LockRelationOid(PG_GETARG_OID(0), RowExclusiveLock);
	v = dp_versioning(dp_decl_find(PG_GETARG_OID(0), "versioning",
								   PG_ARGISNULL(3) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(3))));
	dp_key_of_argument(v->decl, fcinfo, 1, &key);
	SPI_connect();
	exists = lock_row(v, &key, false, &live);
	shown = exists || check_enable_rls(v->decl->target, InvalidOid, true) != RLS_ENABLED;
	dp_versioning_require(v);
	if (!exists && shown)
		lock_rewriting(v);
	PushActiveSnapshot(GetLatestSnapshot());
	dp_revisions_open(&store, v, GetActiveSnapshot());
	if (exists && revision < dp_versioning_first_shown(v, &key, 0))
		shown = false;
	if (!shown || !dp_revisions_find(&store, &key, revision, &r))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("document %s of table \"%s\" has no revision " INT64_FORMAT,
							   dp_key_to_text(v->decl, &key), dp_relation_name(v->decl->target),
							   revision)));
	if (r.operation == DP_VERSION_DELETE ||
		dp_revisions_document(&store, &key, revision, live, true, &doc) != DP_VERSION_FOUND)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is no document in revision " INT64_FORMAT
						" of document %s of table \"%s\"",
						revision, dp_key_to_text(v->decl, &key), dp_relation_name(v->decl->target)),
				 r.operation == DP_VERSION_DELETE ? errdetail("It is a deletion.")
												  : errdetail("No stored revision leads to it.")));
	dp_revisions_close(&store);
	PopActiveSnapshot();
	doc = with_kept(v, doc, exists ? live : NULL);

	if (exists)
	{
		int64 number;
		struct varlena *numbered = doc;
		Datum values[INDEX_MAX_KEYS + 1];
		SPIPlanPtr plan;

		/*
		 * it is a new change, with the number that the document has now until the trigger gives it
		 * the next one
		 */
		if (live != NULL && dp_versioning_number(v, live, &number))
			numbered = dp_versioning_with_number(v, doc, number, live);
		else
		{
			numbered = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), v->field);
			if (numbered == NULL)
				numbered = doc;
		}

		/*
		 * a trigger may undo the write, as that of a threshold does: then the last revision stays
		 */
		plan = dp_row_plan_write(v->decl, &key, numbered, 0, values);
		(void) dp_run(v->decl, plan, values, NULL, 0, 0, SPI_OK_UPDATE);
	}
	else
	{
		struct varlena *bare = dp_document_unset(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), v->field);

		insert_document(v, &key, bare != NULL ? bare : doc);
	}

	PushActiveSnapshot(GetLatestSnapshot());
	CommandCounterIncrement();
	UpdateActiveSnapshotCommandId();
	dp_revisions_open(&store, v, GetActiveSnapshot());
	if (!dp_revisions_last(&store, &key, &r))
		elog(ERROR, "a document has no revision");
	revision = r.revision;
	dp_revisions_close(&store);
	PopActiveSnapshot();
	SPI_finish();
	PG_RETURN_INT64(revision);
}

/* ---------------------------------------------------------------- chains */

/*
 * Reads all revisions of a key, in order, in the current context. *n is their number. With writer
 * not NULL, the snapshot shows uncommitted ones: then sets *writer to another transaction that is
 * writing some of them, or to invalid.
 */
static Row *
read_rows(DpVersioning *v, const DpKey *key, Snapshot snapshot, int *n, TransactionId *writer)
{
	DpRevisionStore store;
	DpRevision r;
	int cap = 16;
	Row *rows = palloc(cap * sizeof(Row));

	*n = 0;
	if (writer != NULL)
		*writer = InvalidTransactionId;
	dp_revisions_open(&store, v, snapshot);
	dp_revisions_begin(&store, key, PG_INT64_MIN, PG_INT64_MAX);
	while (dp_revisions_next(&store, &r))
	{
		Row *row;

		CHECK_FOR_INTERRUPTS();
		if (writer != NULL && TransactionIdIsValid(snapshot->xmin))
			*writer = snapshot->xmin;
		else if (writer != NULL && TransactionIdIsValid(snapshot->xmax))
			*writer = snapshot->xmax;
		if (*n == cap)
		{
			cap *= 2;
			rows = repalloc_huge(rows, (Size) cap * sizeof(Row));
		}
		row = &rows[(*n)++];
		row->revision = r.revision;
		row->change = r.change;
		row->operation = r.operation;
		row->delta = r.delta == NULL
						 ? NULL
						 : (struct varlena *) PG_DETOAST_DATUM_COPY(PointerGetDatum(r.delta));
		row->previous = r.previous == NULL
							? NULL
							: (struct varlena *) PG_DETOAST_DATUM_COPY(PointerGetDatum(r.previous));
		row->has_checksum = r.has_checksum;
		row->checksum = r.checksum;
		row->kept = dp_revision_kept(&r);
		row->doc = NULL;
		row->lost = false;
	}
	dp_revisions_close(&store);
	return rows;
}

/*
 * Locks the row of a key and reads its present revisions, waiting for uncommitted ones. *live is
 * the document without the value at path "without" (or NULL), NULL if there is none.
 */
static Row *
latest_rows(DpVersioning *v, const DpKey *key, const DpPath *without, struct varlena **live, int *n)
{
	for (;;)
	{
		struct varlena *doc = NULL;
		SnapshotData latest;
		TransactionId writer;
		Row *rows;

		if (lock_row(v, key, true, live) && *live != NULL && without != NULL)
			doc = dp_document_unset(DP_DOC_DATA(*live), DP_DOC_SIZE(*live), without);
		if (doc != NULL)
		{
			dp_row_write(v->decl, key, doc);
			CommandCounterIncrement();
			if (!lock_row(v, key, true, live) || *live == NULL)
				dp_write_refused(v->decl, v->decl->target);
		}
		InitDirtySnapshot(latest);
		rows = read_rows(v, key, &latest, n, &writer);
		if (!TransactionIdIsValid(writer))
			return rows;
		XactLockTableWait(writer, NULL, NULL, XLTW_None);
	}
}

/*
 * Computes the documents, from the newest down. Returns false if differences do not lead to one:
 * *broken is the first such row from above, and all of them are marked.
 */
static bool
chain(Row *rows, int n, struct varlena *live, int *broken)
{
	struct varlena *doc = live;
	bool right = true;

	for (int i = n - 1; i >= 0; i--)
	{
		Row *row = &rows[i];

		CHECK_FOR_INTERRUPTS();
		if (row->operation != DP_VERSION_DELETE && doc != NULL)
			row->doc = dp_versioning_bare(row->kept, doc);
		doc = NULL;
		if (row->operation == DP_VERSION_INSERT)
			continue;
		if (row->previous != NULL)
			doc = row->previous;
		else if (row->delta == NULL)
			doc = row->doc;
		else if (VARSIZE_ANY_EXHDR(row->delta) > 0 && row->doc != NULL)
		{
			doc = apply_if(row->delta, row->doc);
			if (doc == NULL)
			{
				row->lost = true;
				if (right)
					*broken = i;
				right = false;
			}
		}
		else if (VARSIZE_ANY_EXHDR(row->delta) > 0)
			row->lost = true; /* nothing to begin from */
	}
	return right;
}

/* Returns whether a document is that of a revision, as far as this is known. */
static bool
fits(const Row *row, struct varlena *doc)
{
	return !row->has_checksum ||
		   dp_versioning_checksum(dp_versioning_bare(row->kept, doc)) == row->checksum;
}

/* Returns the document after applying a difference, or NULL if it does not fit. */
static struct varlena *
apply_if(struct varlena *delta, struct varlena *doc)
{
	MemoryContext context = CurrentMemoryContext;
	struct varlena *volatile result = NULL;

	PG_TRY();
	{
		DpFault fault;

		/* it holds no resources but memory, so its error can be dropped */
		result = dp_diff_apply(DP_DOC_DATA(delta), DP_DOC_SIZE(delta), DP_DOC_DATA(doc),
							   DP_DOC_SIZE(doc));
		if (!dp_validate(DP_DOC_DATA(result), DP_DOC_SIZE(result), &fault))
			result = NULL;
	}
	PG_CATCH();
	{
		if (geterrcode() != ERRCODE_DATA_CORRUPTED &&
			geterrcode() != ERRCODE_PROGRAM_LIMIT_EXCEEDED)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		result = NULL;
	}
	PG_END_TRY();
	return result;
}

/* ---------------------------------------------------------------- redact */

/* Returns whether a path is equal to the other one, or leads to it. */
static bool
leads_to(const DpPath *path, const DpPath *inner)
{
	if (path->nsteps > inner->nsteps)
		return false;
	for (int i = 0; i < path->nsteps; i++)
	{
		if (path->steps[i].namelen != inner->steps[i].namelen ||
			memcmp(path->steps[i].name, inner->steps[i].name, path->steps[i].namelen) != 0)
			return false;
	}
	return true;
}

/*
 * versioning_redact(rel, key, path, name) -> number of revisions that had it
 *
 * The document itself is changed as by an UPDATE, which adds a revision; then
 * all of them are written again without it.
 */
DP_ROUTED_FUNCTION(dp_versioning_redact, DP_ROUTE_KEY, 1)
{
	DpVersioning *v;
	DpKey key;
	DpPath *path;
	text *pathtext;
	struct varlena *live;
	struct varlena *without;
	Row *rows;
	int n;
	int broken;
	int64 changed = 0;
	DpActor self;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
						errmsg("the table and the path must not be null")));
	dp_require_owner(PG_GETARG_OID(0));
	LockRelationOid(PG_GETARG_OID(0), RowExclusiveLock);
	v = dp_versioning(dp_decl_find(PG_GETARG_OID(0), "versioning",
								   PG_ARGISNULL(3) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(3))));
	dp_versioning_require(v);
	dp_key_of_argument(v->decl, fcinfo, 1, &key);
	pathtext = PG_GETARG_TEXT_PP(2);
	path = dp_path_parse(VARDATA_ANY(pathtext), VARSIZE_ANY_EXHDR(pathtext));
	if (leads_to(path, v->field))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("cannot remove the revision of a document from its history")));

	dp_owner_begin(v->decl->owner, &self);
	SPI_connect();
	lock_rewriting(v);
	rows = latest_rows(v, &key, path, &live, &n);
	(void) chain(rows, n, live, &broken);

	/* an unknown document may contain it, too */
	for (int i = 0; i < n; i++)
	{
		if (!rows[i].lost &&
			(i > 0 || (rows[i].previous == NULL &&
					   (rows[i].delta == NULL || VARSIZE_ANY_EXHDR(rows[i].delta) == 0))))
			continue;
		write_payload(v, &key, rows[i].revision, (struct varlena *) cstring_to_text(""), NULL);
		rows[i].lost = false;
	}
	for (int i = 0; i < n; i++)
		if (rows[i].doc == NULL && rows[i].has_checksum)
			write_checksum(v, &key, rows[i].revision, NULL);

	/* documents without it, then what leads from each to the one before */
	for (int i = 0; i < n; i++)
	{
		if (rows[i].doc == NULL)
			continue;
		without = dp_document_unset(DP_DOC_DATA(rows[i].doc), DP_DOC_SIZE(rows[i].doc), path);
		if (without == NULL)
			continue;
		rows[i].doc = without;
		write_checksum(v, &key, rows[i].revision, without);
		changed++;
		rows[i].lost = true; /* must be rewritten, and so must the revision above */
	}
	for (int i = 1; i < n && changed > 0; i++)
	{
		struct varlena *before = rows[i - 1].doc;
		struct varlena *delta = NULL;

		if (rows[i].operation == DP_VERSION_INSERT || before == NULL ||
			(!rows[i].lost && !rows[i - 1].lost))
			continue;
		if (rows[i].previous == NULL && rows[i].doc != NULL)
		{
			delta = dp_diff_make(DP_DOC_DATA(rows[i].doc), DP_DOC_SIZE(rows[i].doc),
								 DP_DOC_DATA(before), DP_DOC_SIZE(before));
			write_payload(v, &key, rows[i].revision, delta, NULL);
		}
		else
			write_payload(v, &key, rows[i].revision, NULL, before);
	}
	SPI_finish();
	dp_owner_end(&self);
	PG_RETURN_INT64(changed);
}

/*
 * _versioning_purge_run(rel, name, purge, cut, changes) -> number of deleted revisions: in three
 * statements; the first and the second write to the table of revisions, the third to that of
 * changes
 */
DP_ROUTED_FUNCTION(dp_versioning_purge_run, DP_ROUTE_SUM, 0)
{
	DpVersioning *v;
	uint64 rows[3];

	dp_require_owner(PG_GETARG_OID(0));
	v = dp_versioning(dp_decl_find(PG_GETARG_OID(0), "versioning",
								   text_to_cstring(PG_GETARG_TEXT_PP(1))));
	dp_versioning_require(v);

	/* two at a time would leave payloads that lead nowhere */
	lock_rewriting(v);
	SPI_connect();
	for (int i = 0; i < 3; i++)
	{
		SPIPlanPtr plan = SPI_prepare(text_to_cstring(PG_GETARG_TEXT_PP(2 + i)), 0, NULL);

		if (plan == NULL)
			elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
		rows[i] =
			dp_run_marked(v->decl, plan, NULL, NULL, 0, i == 1 ? SPI_OK_UPDATE : SPI_OK_DELETE,
						  i < 2 ? v->revisions : v->changes, v->decl->name, DP_MARK_INTERNAL);
	}
	SPI_finish();
	PG_RETURN_INT64((int64) rows[0]);
}

/*
 * _versioning_maintain_run(rel, name, old, cut, changes, most int, cutoff timestamptz) -> number of
 * revisions that it wrote: deletes old revisions and returns their changes, cuts the first ones
 * that are left from their predecessors, and deletes changes of an array that have no revisions. $1
 * is most, $2 cutoff, $3 the array.
 */
DP_ROUTED_FUNCTION(dp_versioning_maintain_run, DP_ROUTE_SUM, 0)
{
	Oid types[3] = { INT4OID, TIMESTAMPTZOID, INT8ARRAYOID };
	Datum values[3] = { PG_GETARG_DATUM(5), PG_GETARG_DATUM(6), (Datum) 0 };
	const int expected[3] = { SPI_OK_DELETE_RETURNING, SPI_OK_UPDATE, SPI_OK_DELETE };
	Datum *changes = NULL;
	DpVersioning *v;
	uint64 rows[3];

	dp_require_owner(PG_GETARG_OID(0));
	v = dp_versioning(dp_decl_find(PG_GETARG_OID(0), "versioning",
								   text_to_cstring(PG_GETARG_TEXT_PP(1))));
	dp_versioning_require(v);
	lock_rewriting(v);
	SPI_connect();
	for (int i = 0; i < 3; i++)
	{
		SPIPlanPtr plan = SPI_prepare(text_to_cstring(PG_GETARG_TEXT_PP(2 + i)), 3, types);
		bool isnull;

		if (plan == NULL)
			elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
		rows[i] = dp_run_marked(v->decl, plan, values, i < 2 ? "  n" : NULL, 0, expected[i],
								i < 2 ? v->revisions : v->changes, v->decl->name, DP_MARK_INTERNAL);
		if (i > 0)
			continue;
		changes = palloc((rows[0] + 1) * sizeof(Datum));
		for (uint64 row = 0; row < rows[0]; row++)
			changes[row] = dp_result(row, 1, &isnull);
		values[2] = PointerGetDatum(construct_array(changes, rows[0], INT8OID, sizeof(int64),
													FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
	}
	SPI_finish();
	PG_RETURN_INT64((int64) (rows[0] + rows[1]));
}

/* ---------------------------------------------------------------- checking */

/* A violation. */
static void
complain(ReturnSetInfo *set, struct varlena *key, const char *what, const char *expected,
		 char *found)
{
	Datum values[4];
	bool nulls[4] = { false };

	values[0] = PointerGetDatum(key);
	values[1] = CStringGetTextDatum(what);
	values[2] = CStringGetTextDatum(expected);
	values[3] = CStringGetTextDatum(found);
	tuplestore_putvalues(set->setResult, set->setDesc, values, nulls);
}

/*
 * _versioning_check_key(rel, name, doc, key record) -> setof (key, what, expected, found): errors
 * in the history of one key, and in its document (NULL: none)
 */
DP_FUNCTION(dp_versioning_check_key);
Datum
dp_versioning_check_key(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	DpVersioning *v;
	DpDecl *decl;
	DpKey key;
	struct varlena *live;
	struct varlena *shown;
	Row *rows;
	int n;
	int broken = 0;
	bool stamped_before = true;
	TimestampTz before = DT_NOBEGIN;
	DpRevisionStore store;
	MemoryContext context;
	MemoryContext old;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(3))
		return (Datum) 0;
	dp_require_owner(PG_GETARG_OID(0));
	decl = dp_decl_find(PG_GETARG_OID(0), "versioning", text_to_cstring(PG_GETARG_TEXT_PP(1)));
	v = dp_versioning(decl);
	dp_versioning_require(v);
	dp_key_of_argument(decl, fcinfo, 3, &key);
	live = PG_ARGISNULL(2) ? NULL : DP_GETARG_VARLENA(2);
	context = AllocSetContextCreate(CurrentMemoryContext, "history", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	shown = dp_key_to_value(decl, &key);
	SPI_connect();
	rows = read_rows(v, &key, GetActiveSnapshot(), &n, NULL);

	if (n == 0)
	{
		if (live != NULL)
			complain(set, shown, "history", "a revision of the document", pstrdup("none"));
	}
	else
	{
		int64 number;

		for (int i = 1; i < n; i++)
			if (rows[i].revision != rows[i - 1].revision + 1)
				complain(set, shown, "revision", psprintf(INT64_FORMAT, rows[i - 1].revision + 1),
						 psprintf(INT64_FORMAT, rows[i].revision));
		for (int i = 1; i < n; i++)
			if ((rows[i].operation == DP_VERSION_INSERT) !=
				(rows[i - 1].operation == DP_VERSION_DELETE))
				complain(set, shown,
						 psprintf("operation of revision " INT64_FORMAT, rows[i].revision),
						 rows[i - 1].operation == DP_VERSION_DELETE ? "insert" : "update or delete",
						 pstrdup(rows[i].operation == DP_VERSION_INSERT ? "insert"
																		: "update or delete"));
		if (live != NULL && rows[n - 1].operation == DP_VERSION_DELETE)
			complain(set, shown, "newest revision", "the document", pstrdup("a deletion"));
		else if (live == NULL && rows[n - 1].operation != DP_VERSION_DELETE)
			complain(set, shown, "newest revision", "a deletion",
					 pstrdup("a document that does not exist"));
		else if (live != NULL && dp_versioning_number(v, live, &number) &&
				 number != rows[n - 1].revision)
			complain(set, shown, "revision of the document",
					 psprintf(INT64_FORMAT, rows[n - 1].revision), psprintf(INT64_FORMAT, number));
		if (!chain(rows, n, live, &broken))
			complain(set, shown,
					 psprintf("difference of revision " INT64_FORMAT, rows[broken].revision),
					 "leads to the document before it", pstrdup("does not fit"));
		else
			for (int i = 1; i < n; i++)
				if (rows[i].lost)
				{
					complain(set, shown,
							 psprintf("difference of revision " INT64_FORMAT, rows[i].revision),
							 "leads to the document before it",
							 pstrdup("has nothing to begin from"));
					break;
				}

		for (int i = 0; i < n; i++)
			if (rows[i].doc != NULL && !fits(&rows[i], rows[i].doc))
				complain(set, shown,
						 psprintf("document of revision " INT64_FORMAT, rows[i].revision),
						 "as it was recorded", pstrdup("another one"));

		/* times */
		dp_revisions_open(&store, v, GetActiveSnapshot());
		for (int i = 0; i < n; i++)
		{
			TimestampTz since;
			bool stamped = dp_revisions_since(&store, rows[i].change, &since, NULL, NULL);

			if (stamped && !stamped_before)
				complain(set, shown,
						 psprintf("beginning of revision " INT64_FORMAT, rows[i].revision),
						 "known of the one before it", pstrdup("unknown"));
			if (stamped && since < before)
				complain(set, shown,
						 psprintf("beginning of revision " INT64_FORMAT, rows[i].revision),
						 "not before that of the one before it", pstrdup("earlier"));
			if (stamped)
				before = since;
			stamped_before = stamped;
		}
		dp_revisions_close(&store);
	}
	SPI_finish();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return (Datum) 0;
}

/* ---------------------------------------------------------------- building and repairing */

/*
 * Repairs the history of a key: a document without a revision gets one; an unrecorded change is
 * recorded as a change of now; differences that do not fit are removed, which makes the others
 * readable; and missing numbers are filled with revisions of unknown documents.
 */
static bool
method_repair_row(DpDecl *decl, const DpKey *key)
{
	DpVersioning *v = dp_versioning(decl);
	struct varlena *live;
	Row *rows;
	int n;
	int broken = 0;
	int64 number;
	bool has_number;
	bool written = false;
	bool unseen;

	dp_versioning_require(v);
	lock_rewriting(v);
	rows = latest_rows(v, key, NULL, &live, &n);
	if (n == 0)
	{
		if (live == NULL)
			return false;
		(void) dp_versioning_adopt(v, key, live);
		return true;
	}

	/* numbers that are missing */
	for (int i = 1; i < n; i++)
	{
		for (int64 gap = rows[i - 1].revision + 1; gap < rows[i].revision; gap++)
		{
			char operation = DP_VERSION_UPDATE;

			CHECK_FOR_INTERRUPTS();
			if (gap == rows[i - 1].revision + 1 && rows[i - 1].operation == DP_VERSION_DELETE)
				operation = DP_VERSION_INSERT;
			else if (gap + 1 == rows[i].revision && rows[i].operation == DP_VERSION_INSERT)
				operation = DP_VERSION_DELETE;
			dp_revisions_add(v, NULL, key, gap, rows[i].change, operation,
							 operation == DP_VERSION_INSERT
								 ? NULL
								 : (struct varlena *) cstring_to_text(""),
							 NULL, NULL);
			written = true;
		}
	}
	if (written)
	{
		CommandCounterIncrement();
		rows = latest_rows(v, key, NULL, &live, &n);
	}

	/* does the newest revision lead down from the row as it is? */
	has_number = live != NULL && dp_versioning_number(v, live, &number);
	unseen = (live == NULL) != (rows[n - 1].operation == DP_VERSION_DELETE) ||
			 (has_number && number != rows[n - 1].revision) ||
			 (live != NULL && !fits(&rows[n - 1], live));
	if (!chain(rows, n, unseen && live != NULL ? NULL : live, &broken) && broken == n - 1)
		unseen = true;
	for (int i = 1; i < n; i++)
	{
		/* also what leads to a document that is not the one before: it had been changed unseen */
		if (rows[i].lost || (rows[i - 1].doc != NULL && !fits(&rows[i - 1], rows[i - 1].doc)))
		{
			write_payload(v, key, rows[i].revision, (struct varlena *) cstring_to_text(""), NULL);
			written = true;
		}
	}
	if (unseen)
	{
		int64 next = rows[n - 1].revision + 1;
		bool deleted = rows[n - 1].operation == DP_VERSION_DELETE;
		struct varlena *unknown = (struct varlena *) cstring_to_text("");

		char operation = live == NULL ? DP_VERSION_DELETE
						 : deleted    ? DP_VERSION_INSERT
									  : DP_VERSION_UPDATE;

		if (live == NULL || (has_number && number == next))
			dp_revisions_add(v, NULL, key, next, dp_versioning_change(v, key), operation, NULL,
							 NULL,
							 live == NULL ? NULL
										  : dp_versioning_bare(dp_versioning_left_out(v), live));
		else
			dp_versioning_correct(v, key, next, operation, NULL);
		CommandCounterIncrement();
		if (operation != DP_VERSION_INSERT)
			write_payload(v, key, next, unknown, NULL);
		written = true;
	}
	return written;
}
