/*
 * whole.c
 *		The preallocated pattern: whole documents, and functions for its verbs.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "bson/edit.h"
#include "kit/adopt.h"
#include "kit/options.h"
#include "kit/registry.h"
#include "kit/shard.h"
#include "kit/side/moves.h"
#include "kit/sql/run.h"
#include "kit/sql/text.h"
#include "mql/collection_split.h"
#include "patterns/preallocated/preallocated.h"

#define PATTERN "preallocated"

/*
 * The time at which whole documents were read last, and by what: a row of the
 * view that is updated is read twice and compared, and a hold must not run out
 * in between.  For so long (microseconds) it stays the same in a statement.
 */
#define READ_TIME_STAYS 100000
static TimestampTz read_time = 0;
static TimestampTz read_statement = 0;
static CommandId read_command = 0;
static Snapshot read_snapshot = NULL;

static struct varlena *
whole_document(DpPreallocated *p, struct varlena *doc, const DpKey *key, void *arg);
static void note_time(bool latest);
static bool methods_is_split(DpDecl *decl, struct varlena *stored);
static struct varlena *
methods_whole(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest);
static struct varlena *methods_keep(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
									struct varlena *new_whole);
static bool method_repair_row(DpDecl *decl, const DpKey *key);

/*
 * _preallocated_wrong(options, doc) -> text: an error in a document, or NULL
 */
DP_FUNCTION(dp_preallocated_wrong);
Datum
dp_preallocated_wrong(PG_FUNCTION_ARGS)
{
	DpDecl decl = { 0 };
	DpPreallocated *p;
	struct varlena *doc = PG_GETARG_VARLENA_PP(1);
	DpValue field;
	DpCells *cells;
	const char *why = NULL;

	decl.pattern = pstrdup(PATTERN);
	decl.name = pstrdup("checked");
	decl.options = PG_GETARG_VARLENA_PP(0);
	decl.context = CurrentMemoryContext;
	p = dp_preallocated(&decl);
	if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->field, &field))
		PG_RETURN_TEXT_P(cstring_to_text("The field is missing."));
	cells = dp_shape_cells(p->shape, doc, &field, true, &why);
	if (cells == NULL)
		PG_RETURN_TEXT_P(cstring_to_text(why));
	if (p->shape->kind == DP_SHAPE_CLOCK)
		PG_RETURN_NULL();
	if (!p->in_document && dp_cells_free(cells) < cells->n)
		PG_RETURN_TEXT_P(cstring_to_text("Cells are taken in the stored document."));
	if (p->in_document)
	{
		why = dp_preallocated_until_wrong(p, doc, cells);
		if (why != NULL)
			PG_RETURN_TEXT_P(cstring_to_text(why));
		if (p->available != NULL)
		{
			DpValue available;

			if (!dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->available, &available) ||
				available.type != DP_TYPE_INT32 ||
				dp_get_int32(available.data) != dp_cells_free(cells))
				PG_RETURN_TEXT_P(cstring_to_text("The number of free cells is not right."));
		}
	}
	PG_RETURN_NULL();
}

/*
 * _preallocated_has_slot(options, doc, slot) -> bool: whether the document has
 * that slot.
 */
DP_FUNCTION(dp_preallocated_has_slot);
Datum
dp_preallocated_has_slot(PG_FUNCTION_ARGS)
{
	DpDecl decl = { 0 };
	DpPreallocated *p;
	struct varlena *doc = PG_GETARG_VARLENA_PP(1);
	DpValue field;
	DpCells *cells;
	const char *why = NULL;

	decl.pattern = pstrdup(PATTERN);
	decl.name = pstrdup("checked");
	decl.options = PG_GETARG_VARLENA_PP(0);
	decl.context = CurrentMemoryContext;
	p = dp_preallocated(&decl);
	if (!dp_preallocated_field(p, doc, &field, &why))
		PG_RETURN_BOOL(false);
	cells = dp_shape_cells(p->shape, doc, &field, false, &why);
	PG_RETURN_BOOL(cells != NULL &&
				   dp_cells_find(cells, text_to_cstring(PG_GETARG_TEXT_PP(2))) != NULL);
}

/*
 * _preallocated_put_back(rel, name) -> number of documents: writes what whole
 * documents show into the stored ones.
 */
DP_ROUTED_FUNCTION(dp_preallocated_put_back, DP_ROUTE_SUM, 0)
{
	Oid relid = PG_GETARG_OID(0);
	DpDecl *decl;
	DpPreallocated *p;
	StringInfoData sql;
	Portal portal;
	DpActor self;
	int64 done = 0;

	dp_require_owner(relid);
	LockRelationOid(relid, RowExclusiveLock);
	decl = dp_decl_find(relid, PATTERN, text_to_cstring(PG_GETARG_TEXT_PP(1)));
	p = dp_preallocated(decl);

	dp_owner_begin(decl->owner, &self);
	SPI_connect();
	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	dp_sql_key_list(&sql, decl);
	appendStringInfoString(&sql, " FROM ");
	dp_sql_table(&sql, decl->target);
	portal =
		SPI_cursor_open_with_args(NULL, sql.data, 0, NULL, NULL, NULL, false, CURSOR_OPT_NO_SCROLL);
	for (;;)
	{
		SPITupleTable *keys;
		uint64 i;

		SPI_cursor_fetch(portal, true, 1000);
		keys = SPI_tuptable;
		if (SPI_processed == 0)
			break;
		for (i = 0; i < keys->numvals; i++)
		{
			bool written = false;
			DpKey key;
			int k;

			CHECK_FOR_INTERRUPTS();
			key.n = decl->nkeys;
			for (k = 0; k < key.n; k++)
			{
				bool isnull;

				key.values[k] = SPI_getbinval(keys->vals[i], keys->tupdesc, k + 1, &isnull);
			}
			/* frees memory after each row */
			SPI_connect();
			(void) dp_preallocated_write(p, &key, LockTupleNoKeyExclusive, whole_document,
										 &written);
			SPI_finish();
			done += written ? 1 : 0;
		}
		SPI_freetuptable(keys);
	}
	SPI_cursor_close(portal);
	SPI_finish();
	dp_owner_end(&self);
	PG_RETURN_INT64(done);
}

/* The document as the view shows it: a DpPreallocatedChange. */
static struct varlena *
whole_document(DpPreallocated *p, struct varlena *doc, const DpKey *key, void *arg)
{
	bool *written = arg;
	MemoryContext caller = CurrentMemoryContext;
	struct varlena *whole = doc;
	DpValue until;

	if (!methods_is_split(p->decl, doc))
		return NULL;
	SPI_connect();
	whole = methods_whole(p->decl, doc, key, true);
	MemoryContextSwitchTo(caller);
	if (whole != doc)
		whole = dp_document_to_varlena(DP_DOC_DATA(whole), DP_DOC_SIZE(whole));
	SPI_finish();
	MemoryContextSwitchTo(caller);
	if (p->in_document && dp_path_find(DP_DOC_DATA(doc), DP_DOC_SIZE(doc), p->until, &until) &&
		dp_had_field(p->decl, p->until))
		whole = dp_document_set(DP_DOC_DATA(whole), DP_DOC_SIZE(whole), p->until, &until);
	if (dp_same_bytes(whole, doc))
		return NULL;
	*written = true;
	return whole;
}

/* Whether the logical document may differ from the stored one. */
static bool
methods_is_split(DpDecl *decl, struct varlena *stored)
{
	DpPreallocated *p = dp_preallocated(decl);
	DpValue value;

	if (p->shape->kind == DP_SHAPE_CLOCK)
		return false;
	return !p->in_document ||
		   dp_path_find(DP_DOC_DATA(stored), DP_DOC_SIZE(stored), p->until, &value);
}

/* Returns the time for this read. latest: for comparison with an earlier read. */
static void
note_time(bool latest)
{
	TimestampTz now = GetCurrentTimestamp();
	bool same = read_statement == GetCurrentStatementStartTimestamp();

	if (same && (latest || (read_command == GetCurrentCommandId(false) && ActiveSnapshotSet() &&
							read_snapshot == GetActiveSnapshot() &&
							now - read_time < READ_TIME_STAYS && now >= read_time)))
		return;
	read_time = now;
	read_statement = GetCurrentStatementStartTimestamp();
	read_command = GetCurrentCommandId(false);
	read_snapshot = ActiveSnapshotSet() ? GetActiveSnapshot() : NULL;
}

/* The document with its taken cells and the number of the free ones. */
static struct varlena *
methods_whole(DpDecl *decl, struct varlena *stored, const DpKey *key, bool latest)
{
	DpPreallocated *p = dp_preallocated(decl);
	DpValue field;
	DpCells *cells;
	const char *why;

	note_time(latest);
	if (!dp_preallocated_field(p, stored, &field, &why) ||
		(cells = dp_shape_cells(p->shape, stored, &field, false, &why)) == NULL)
		return stored;
	if (p->in_document)
	{
		struct varlena *result;

		(void) dp_preallocated_expire(p, stored, cells, read_time);
		result = dp_document_unset(DP_DOC_DATA(stored), DP_DOC_SIZE(stored), p->until);
		field = dp_value_of_varlena(dp_cells_value(p->shape, cells));
		return dp_preallocated_put(p, result, &field, dp_cells_free(cells));
	}
	else
	{
		DpClaim *claims;
		DpKey now;
		int n;

		dp_moves_stored(decl, key, &now);
		n = dp_claims_read(p, &now, latest, read_time, &claims);
		if (n > 0)
		{
			dp_claims_show(cells, claims, n);
			field = dp_value_of_varlena(dp_cells_value(p->shape, cells));
		}
		return dp_preallocated_put(p, stored, &field, dp_cells_free(cells));
	}
}

/*
 * A new whole document in which the slots are the same as in the old one: with those of the stored
 * document.
 */
static struct varlena *
methods_keep(DpDecl *decl, struct varlena *stored, struct varlena *old_whole,
			 struct varlena *new_whole)
{
	DpPreallocated *p = dp_preallocated(decl);
	const DpPath *paths[3];
	struct varlena *result = new_whole;
	DpValue was;
	DpValue is;
	int i;

	if (!methods_is_split(decl, stored))
		return new_whole;
	if (!dp_path_find(DP_DOC_DATA(old_whole), DP_DOC_SIZE(old_whole), p->field, &was) ||
		!dp_path_find(DP_DOC_DATA(new_whole), DP_DOC_SIZE(new_whole), p->field, &is) ||
		(!dp_value_identical(&was, &is) && !dp_preallocated_old_copy(p, old_whole, new_whole)))
		return NULL;
	paths[0] = p->field;
	paths[1] = p->available;
	paths[2] = p->in_document ? p->until : NULL;
	for (i = 0; i < 3; i++)
	{
		if (paths[i] == NULL)
			continue;
		if (dp_path_find(DP_DOC_DATA(stored), DP_DOC_SIZE(stored), paths[i], &was))
			result = dp_document_set(DP_DOC_DATA(result), DP_DOC_SIZE(result), paths[i], &was);
		else if (dp_path_find(DP_DOC_DATA(result), DP_DOC_SIZE(result), paths[i], &is))
			result = dp_document_unset(DP_DOC_DATA(result), DP_DOC_SIZE(result), paths[i]);
	}
	return result;
}

/* Gives one document the shape. */
static bool
method_repair_row(DpDecl *decl, const DpKey *key)
{
	return dp_preallocated_repair_row(dp_preallocated(decl), key);
}

/* Returns true: claims are in a table, or in the document, where they may have expired. */
static List *
methods_split(DpDecl *decl)
{
	DpPreallocated *p = dp_preallocated(decl);
	List *fields;

	if (p->shape->kind == DP_SHAPE_CLOCK)
		return NIL;
	fields = list_make1(dp_split_field(p->field, NULL));
	if (p->available != NULL)
		fields = lappend(fields, dp_split_field(p->available, NULL));
	return fields;
}

static const DpOption options[] = {
	{ "field", DP_OPTION_PATH, DP_REQUIRED, DP_INTO(DpPreallocated, field),
	  DP_TEXT_INTO(DpPreallocated, field_text) },
	{ "shape", DP_OPTION_DOCUMENT, DP_REQUIRED | DP_ALTERABLE },
	{ "store", DP_OPTION_WORD, DP_REQUIRED, DP_WORDS("slots", "document"),
	  DP_INTO(DpPreallocated, in_document) },
	{ "available_field", DP_OPTION_PATH, DP_ALTERABLE, DP_INTO(DpPreallocated, available) },
	{ NULL }
};

DP_DEFINE_PATTERN(preallocated) = { .name = PATTERN,
									.keeps_originals = true,
									.options = options,
									.is_split = methods_is_split,
									.whole = methods_whole,
									.keep = methods_keep,
									.split = methods_split,
									.side = &dp_claims_side,
									.repair_row = method_repair_row };
